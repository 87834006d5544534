// Vision: text recognition on a picture file. It reads the labels that the fake screencapture wrote into the file (facts F).
'use strict';
const { defineClass, makeObject, nil, wrap, dataOf, isKind, toJs, isNull } = load('bridge');
const { state, note, strict } = load('world');

const word = (bytes, at, size) => [...bytes.slice(at, at + size)].reduce((sum, letter) => sum * 256 + letter.charCodeAt(0), 0);

function pngLabels(bytes) {
  const found = { width: word(bytes, 16, 4), height: word(bytes, 20, 4), labels: [] };
  for (let at = 8; at + 8 <= bytes.length; at += 12 + word(bytes, at, 4)) {
    const body = bytes.slice(at + 8, at + 8 + word(bytes, at, 4));
    if (bytes.slice(at + 4, at + 8) === 'tEXt' && body.startsWith('Labels\0')) found.labels = JSON.parse(body.slice(7));
  }
  return found;
}

function jpegLabels(bytes) {
  const found = { width: 0, height: 0, labels: [] };
  for (let at = 2; at + 4 <= bytes.length && bytes[at] === '\xff' && bytes[at + 1] !== '\xda'; at += 2 + word(bytes, at + 2, 2)) {
    const body = bytes.slice(at + 4, at + 2 + word(bytes, at + 2, 2));
    if (bytes[at + 1] === '\xc0') { found.height = word(body, 1, 2); found.width = word(body, 3, 2); }
    if (bytes[at + 1] === '\xfe') found.labels = JSON.parse(body);
  }
  return found;
}

function readable(bytes) {
  if (bytes && bytes.startsWith('\x89PNG')) return pngLabels(bytes);
  if (bytes && bytes.startsWith('\xff\xd8\xff')) return jpegLabels(bytes);
  return null;
}

// Normalised to the region, origin bottom left.
function observations({ width, height, labels }, { origin, size }) {
  const placed = labels.map(({ text, rect: [x, y, w, h] }) => ({ text,
    box: { origin: { x: (x / width - origin.x) / size.width, y: (1 - (y + h) / height - origin.y) / size.height },
      size: { width: w / width / size.width, height: h / height / size.height } } }));
  const within = ({ box }) => ['x', 'y'].every((key) => box.origin[key] >= -1e-9)
    && box.origin.x + box.size.width <= 1 + 1e-9 && box.origin.y + box.size.height <= 1 + 1e-9;
  return placed.filter(within).map(({ text, box }) => makeObject('VNRecognizedTextObservation', {
    text, confidence: /^[\x20-\x7e]*$/.test(text) ? 1 : 0.5, box }));
}

const WHOLE = { origin: { x: 0, y: 0 }, size: { width: 1, height: 1 } };
const isInside = ({ origin, size }) => origin.x >= 0 && origin.y >= 0 && origin.x + size.width <= 1 && origin.y + size.height <= 1;

const framework = 'Vision';
const set = Object.fromEntries(['recognitionLevel', 'usesLanguageCorrection', 'recognitionLanguages', 'minimumTextHeight', 'automaticallyDetectsLanguage', 'revision', 'regionOfInterest']
  .map((key) => [key, (data, value) => { data[key] = toJs(value); }]));
const zero = { results: (data) => (data.results ? wrap(data.results) : nil), recognitionLevel: (data) => data.recognitionLevel, usesLanguageCorrection: (data) => data.usesLanguageCorrection };
defineClass('VNRecognizeTextRequest', { framework, init: () => makeObject('VNRecognizeTextRequest', { results: null, region: WHOLE, recognitionLevel: 0, usesLanguageCorrection: true }), zero, set,
  args: { supportedRecognitionLanguagesAndReturnError: (data) => wrap(supported(data)) } });
defineClass('VNRecognizedText', { framework, zero: { string: (data) => wrap(data.text), confidence: (data) => data.confidence } });
defineClass('VNRecognizedTextObservation', {
  framework, zero: { boundingBox: (data) => data.box, confidence: (data) => data.confidence },
  args: { topCandidates: (data, count) => wrap(count > 0 ? [makeObject('VNRecognizedText', data)] : []) },
});

// Vision fails for a language that it does not support; the fast level knows only Latin letters.
const SUPPORTED = [['en-US', 'de-DE', 'fr-FR', 'ru-RU', 'zh-Hans', 'ja-JP'], ['en-US', 'de-DE', 'fr-FR']];
const supported = (request) => SUPPORTED[request.recognitionLevel];
const isForeign = (text) => /[^\x00-\u024f\u2000-\u20cf]/.test(text);

// Without its language asked for or detected (macOS 13) a text in other letters than English ones is not recognised,
// and never at the fast level, which knows only Latin letters. An isolated text is one character: the accurate level
// misses it, and so does any level in a region that is much larger than it (a third party's report).
function legible(picture, request) {
  const detects = request.automaticallyDetectsLanguage === true && state().switches.language_detection === 'works';
  const knowsAll = request.recognitionLevel === 0 && (detects || (request.recognitionLanguages || []).some((code) => /^(ru|zh|ja)/.test(code)));
  const isFound = ({ text, rect }) => text.length > 1 || (request.recognitionLevel === 1 && rect[3] / picture.height > request.region.size.height / 32);
  return { ...picture, labels: picture.labels.filter((label) => isFound(label) && (knowsAll || !isForeign(label.text))) };
}

const handler = (bytes) => makeObject('VNImageRequestHandler', { bytes });
defineClass('VNImageRequestHandler', {
  framework,
  initialisers: {
    initWithURLOptions: (url) => handler(isNull(url) ? null : host.read(dataOf(url).path)),
  },
  args: {
    performRequestsError: (data, requests, error) => {
      const picture = readable(data.bytes);
      if (!picture) {
        if (error && typeof error === 'object' && !isNull(error)) error[0] = makeObject('NSError', { text: 'The image could not be read', code: 9 });
        return false;
      }
      return dataOf(wrap(requests)).every((request) => {
        const asked = dataOf(request);
        asked.region = asked.regionOfInterest || WHOLE;
        note('vision', { languages: asked.recognitionLanguages });
        asked.results = observations(legible(picture, asked), asked.region);
        return isInside(asked.region) && (asked.recognitionLanguages || []).every((code) => supported(asked).includes(code));
      });
    },
  },
});

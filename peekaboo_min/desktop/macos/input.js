// one JSON request as the argument -> one JSON answer; the same contract as input.swift, for a Mac without a compiler
//   {"do":"preflight"}                                        -> {"ok":true,"accessibility":b,"post_event":b,"screen_recording":b}
//   {"do":"move","x":n,"y":n}                                 -> {"ok":true,"pointer":{"x":n,"y":n}}, read back, screen points
//   {"do":"click","x":n,"y":n,"button":"left","clicks":1}     -> the same; button left, right or middle; clicks 1, 2 or 3
//   {"do":"type","text":"..."}                                -> {"ok":true}
//   {"do":"press","key_code":n,"flags":n}                     -> {"ok":true}; flags are CGEventFlags bits
//   refused                                                   -> {"ok":false,"code":"...","message":"..."}, and nothing was posted
ObjC.import('ApplicationServices');
ObjC.import('CoreGraphics');
ObjC.import('Foundation');
ObjC.bindFunction('AXIsProcessTrusted', ['bool', []]);
ObjC.bindFunction('CGPreflightPostEventAccess', ['bool', []]);
ObjC.bindFunction('CGPreflightScreenCaptureAccess', ['bool', []]);
// Bound by hand because nobody is on record as having found it in the bridge.
ObjC.bindFunction('CGEventSourceSetLocalEventsSuppressionInterval', ['void', ['void *', 'double']]);
// As the bridge declares it, it takes no JavaScript value and types "a" without a word; it takes the bytes of an NSData as a pointer.
ObjC.bindFunction('CGEventKeyboardSetUnicodeString', ['void', ['void *', 'unsigned long', 'void *']]);

// Numbers: the bridge does not have every enum (CGEventTypes.h, CGEventSource.h).
const HID_TAP = 0;
const PRIVATE_STATE = -1;
const CLICK_STATE = 1;
const MOVED = 5;
const BUTTONS = {left: [0, 1, 2], right: [1, 3, 4], middle: [2, 25, 26]};  // button, down, up
const KEYS = {'\n': 36, '\r': 36, '\r\n': 36, '\t': 48, '\b': 51};

function refusal(code, message) {
  return {refused: true, code: code, message: message};
}

function invalid(message) {
  return refusal('INVALID_ARGUMENT', message);
}

// Without access the system drops every post and reports nothing, so ask in this process, before the first one.
function openSource() {
  if (!$.AXIsProcessTrusted() || !$.CGPreflightPostEventAccess()) {
    throw refusal('PERMISSION_DENIED_ACCESSIBILITY', 'mouse and keyboard events are not allowed without Accessibility access');
  }
  // A private source does not inherit the modifier keys that somebody is holding down.
  const source = $.CGEventSourceCreate(PRIVATE_STATE);
  $.CGEventSourceSetLocalEventsSuppressionInterval(source, 0);
  return source;
}

function post(event, flags, pauseSeconds) {
  $.CGEventSetFlags(event, flags);
  $.CGEventPost(HID_TAP, event);
  $.NSThread.sleepForTimeInterval(pauseSeconds);
}

// 30 ms: AppKit drops clicks that come faster than its event loop turns.
function postMouse(source, type, point, button, clickState) {
  const event = $.CGEventCreateMouseEvent(source, type, $.CGPointMake(point.x, point.y), button);
  $.CGEventSetIntegerValueField(event, CLICK_STATE, clickState);
  post(event, 0, 0.03);
}

function postKey(source, code, flags, text) {
  const units = $(text).dataUsingEncoding($.NSUTF16LittleEndianStringEncoding);
  [true, false].forEach(function (down) {
    const event = $.CGEventCreateKeyboardEvent(source, code, down);
    if (text !== '') $.CGEventKeyboardSetUnicodeString(event, text.length, units.bytes);
    post(event, flags, 0.008);
  });
}

function isWhole(value, low, high) {
  return Number.isInteger(value) && value >= low && value <= high;
}

function target(request) {
  if (!Number.isFinite(request.x) || !Number.isFinite(request.y)) throw invalid('x and y must be finite numbers');
  return {x: request.x, y: request.y};
}

// Posting is asynchronous: give the pointer up to 200 ms to arrive, then say where it is.
function pointerNear(point) {
  let now = $.CGEventGetLocation($.CGEventCreate(null));
  for (let i = 0; i < 20 && !(Math.abs(now.x - point.x) <= 1 && Math.abs(now.y - point.y) <= 1); i++) {
    $.NSThread.sleepForTimeInterval(0.01);
    now = $.CGEventGetLocation($.CGEventCreate(null));
  }
  return {ok: true, pointer: {x: now.x, y: now.y}};
}

function move(request) {
  const point = target(request);
  postMouse(openSource(), MOVED, point, 0, 0);
  return pointerNear(point);
}

function click(request) {
  const point = target(request);
  if (!Object.keys(BUTTONS).includes(request.button)) throw invalid('button must be left, right or middle');
  if (!isWhole(request.clicks, 1, 3)) throw invalid('clicks must be 1, 2 or 3');
  const button = BUTTONS[request.button];
  const source = openSource();
  postMouse(source, MOVED, point, 0, 0);
  for (let state = 1; state <= request.clicks; state++) {
    postMouse(source, button[1], point, button[0], state);
    postMouse(source, button[2], point, button[0], state);
  }
  return pointerNear(point);
}

// Grapheme clusters; a JavaScriptCore that has no Segmenter gets code points, which at least never splits a surrogate pair.
function characters(text) {
  if (typeof Intl !== 'object' || !Intl.Segmenter) return text.match(/\r\n|[^]/gu) || [];
  return Array.from(new Intl.Segmenter('en', {granularity: 'grapheme'}).segment(text), function (part) { return part.segment; });
}

// 20 UTF-16 units an event is what applications are known to read; a longer grapheme cluster goes whole.
function typeText(request) {
  // A lone surrogate is no text: Swift's JSON reader refuses it too.
  if (typeof request.text !== 'string' || /[\ud800-\udfff]/u.test(request.text)) throw invalid('text must be a string');
  const source = openSource();
  let chunk = '';
  function flush() {
    if (chunk !== '') postKey(source, 0, 0, chunk);
    chunk = '';
  }
  characters(request.text).forEach(function (character) {
    const code = KEYS[character];
    if (code !== undefined || chunk.length + character.length > 20) flush();
    if (code !== undefined) postKey(source, code, 0, ''); else chunk += character;
  });
  flush();
  return {ok: true};
}

function press(request) {
  if (!isWhole(request.key_code, 0, 65535)) throw invalid('key_code must be a whole number from 0 to 65535');
  if (!isWhole(request.flags, 0, 4294967295)) throw invalid('flags must be a whole number from 0 to 4294967295');
  postKey(openSource(), request.key_code, request.flags, '');
  return {ok: true};
}

function parsed(text) {
  let request = null;
  try { request = JSON.parse(text); } catch (error) { if (!(error instanceof SyntaxError)) throw error; }
  if (request === null || typeof request !== 'object' || Array.isArray(request)) throw invalid('the request must be one JSON object');
  return request;
}

function answer(text) {
  const request = parsed(text);
  switch (request.do) {
    case 'preflight':
      return {ok: true, accessibility: !!$.AXIsProcessTrusted(), post_event: !!$.CGPreflightPostEventAccess(),
              screen_recording: !!$.CGPreflightScreenCaptureAccess()};
    case 'move': return move(request);
    case 'click': return click(request);
    case 'type': return typeText(request);
    case 'press': return press(request);
    default: throw invalid('do must be preflight, move, click, type or press');
  }
}

function run(argv) {
  try {
    return JSON.stringify(answer(argv[0]));
  } catch (reason) {
    if (!reason.refused) throw reason;
    return JSON.stringify({ok: false, code: reason.code, message: reason.message});
  }
}

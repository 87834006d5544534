// The objects and commands of the fake Keynote (the fact sheet E, the fact sheet 3.2). Its dictionary is in dictionary.json.
'use strict';
const { state, post, appleError } = load('world');
const { applicationProperty } = load('plain_app');
const failed = (text = 'AppleEvent handler failed.') => appleError(text, -10000);

const documents = () => state().keynote.documents;
const documentOf = (handle) => {
  const found = documents().find((one) => one.id === handle.document);
  if (!found) throw appleError("Can't get object.", -1728);
  return found;
};
const slideOf = (handle) => documentOf(handle).slides[handle.slide];
const shapeOf = (handle) => slideOf(handle).shapes[handle.shape];
const bundleOf = () => module.exports.bundle;

// Even a blank slide has two text items nobody can see or delete; shapes with text appear among them again (facts E2).
const PHANTOMS = 2;

function elements(handle, cls) {
  const { document, slide } = handle;
  switch (cls) {
    case 'document': return documents().filter((one) => one.bundle_id === bundleOf()).map((one) => ({ cls: 'document', document: one.id }));
    case 'theme': return state().keynote.themes.map((name) => ({ cls: 'theme', name }));
    case 'slide layout':
      if (!state().keynote.has_layouts) throw appleError("Can't get object.", -1728); // they were called masters
      return state().keynote.layouts.map((name) => ({ cls: 'slide layout', name }));
    case 'slide': return documentOf(handle).slides.map((one, index) => ({ cls: 'slide', document, slide: index }));
    case 'shape': return slideOf(handle).shapes.map((one, index) => ({ cls: 'shape', document, slide, shape: index }));
    case 'text item': return [...Array(PHANTOMS).keys()].map((phantom) => ({ cls: 'text item', document, slide, phantom }))
      .concat(slideOf(handle).shapes.map((one, index) => ({ cls: 'text item', document, slide, shape: index })).filter((one) => shapeOf(one).object_text));
    case 'iWork item': return [...elements(handle, 'shape'), ...elements(handle, 'text item')].map((one) => ({ ...one, cls: 'iWork item' }));
    default: return [];
  }
}

// `count of text items` lies: what is hidden is counted, what is visible is counted twice (facts E2).
function countOf(handle, cls) {
  if (cls !== 'text item') return undefined;
  return PHANTOMS + 2 * slideOf(handle).shapes.filter((shape) => shape.object_text).length;
}

const key = (property) => property.replace(/ /g, '_');

function documentProperty(handle, property) {
  const document = documentOf(handle);
  if (['width', 'height'].includes(property) && host.now() < document.ready_at) throw appleError("Can't get object.", -1728); // a fresh launch (facts E5)
  if (property === 'document theme') return { cls: 'theme', name: document.theme };
  if (property === 'current slide') return { cls: 'slide', document: document.id, slide: document.current_slide - 1 };
  return document[key(property)];
}

function slideProperty(handle, property) {
  const slide = slideOf(handle);
  if (property === 'slide number') return handle.slide + 1;
  if (property === 'base layout') return { cls: 'slide layout', name: slide.base_layout };
  if (property === 'default title item') return { cls: 'text item', document: handle.document, slide: handle.slide, phantom: 0 };
  if (property === 'default body item') return { cls: 'text item', document: handle.document, slide: handle.slide, phantom: 1 };
  return slide[key(property)];
}

const PHANTOM = { position: { x: 60, y: 60 }, width: 900, height: 120, rotation: 0, opacity: 100, locked: false, object_text: '', text_color: [0, 0, 0], text_font: 'HelveticaNeue-Bold', text_size: 84 };
const itemOf = (handle) => (handle.phantom === undefined ? shapeOf(handle) : PHANTOM);

function itemProperty(handle, property) {
  if (property === 'parent') return { cls: 'slide', document: handle.document, slide: handle.slide };
  if (property === 'object text') return { cls: 'rich text', of: handle };
  if (property === 'background fill type') return 'color fill';
  return itemOf(handle)[key(property)];
}

function property(handle, name) {
  switch (handle.cls) {
    case 'application': return name === 'version' ? (bundleOf() === 'com.apple.Keynote' ? '15.3' : '14.5') : applicationProperty(bundleOf(), name);
    case 'theme': case 'slide layout': return name === 'id' ? `Application/${handle.name}` : handle.name;
    case 'document': return documentProperty(handle, name);
    case 'slide': return slideProperty(handle, name);
    case 'rich text': if (name === 'alignment') throw appleError("Can't get object.", -1728); // it can be named, and neither read nor set (facts E2)
      return itemOf(handle.of)[`text_${name}`];
    default: return itemProperty(handle, name);
  }
}

const valueOf = (handle) => (handle.cls === 'rich text' ? itemOf(handle.of).object_text : handle);

function set(handle, name, value) {
  const { document, slide, shape } = handle;
  const base = { bundle_id: bundleOf(), document, slide, shape };
  if (handle.cls === 'document') {
    if (name === 'document theme') post({ ...base, do: 'keynote_set_document', key: 'theme', value: value.name });
    else if (name === 'current slide') post({ ...base, do: 'keynote_set_document', key: 'current_slide', value: value.slide + 1 });
    else post({ ...base, do: 'keynote_set_document', key: key(name), value });
  } else if (handle.cls === 'slide') {
    post({ ...base, do: 'keynote_set_slide', key: key(name), value: name === 'base layout' ? value.name : value });
  } else if (handle.cls === 'rich text') {
    if (handle.of.phantom === undefined) post({ ...base, ...handle.of, cls: undefined, do: 'keynote_set_shape', key: `text_${name}`, value });
  } else if (handle.phantom === undefined) {
    post({ ...base, do: 'keynote_set_shape', key: key(name), value });
  }
}

// --- commands ---

const events = () => load('apple_events');
const stored = (properties) => Object.fromEntries(Object.entries(properties).map(([name, value]) => [key(name), value]));

function makeDocument(properties) {
  const id = host.randomId();
  const { 'document theme': theme, ...rest } = properties;
  post({ do: 'keynote_make_document', bundle_id: bundleOf(), document: id, properties: { ...stored(rest), ...(theme ? { theme: theme.name } : {}) } });
  return { cls: 'document', document: id };
}

function makeSlide(at, properties) {
  if (!at || at.cls !== 'document') throw failed();
  const { 'base layout': layout, ...rest } = properties;
  post({ do: 'keynote_make_slide', bundle_id: bundleOf(), document: at.document, properties: { ...stored(rest), ...(layout ? { base_layout: layout.name } : {}) } });
  return { cls: 'slide', document: at.document, slide: documentOf(at).slides.length - 1 };
}

function makeShape(at, properties) {
  if (!at || at.cls !== 'slide') throw failed();
  post({ do: 'keynote_make_shape', bundle_id: bundleOf(), document: at.document, slide: at.slide, properties: stored(properties) });
  return { cls: 'shape', document: at.document, slide: at.slide, shape: slideOf(at).shapes.length - 1 };
}

function make(app, direct, { new: className, at, withProperties = {} }) {
  if (!['document', 'slide', 'shape'].includes(className)) throw failed();
  const properties = events().checkedProperties(app, className, withProperties);
  if (className === 'document') return makeDocument(properties);
  return className === 'slide' ? makeSlide(at, properties) : makeShape(at, properties);
}

function close(app, direct, { saving = 'ask' }) {
  for (const handle of [direct].flat()) {
    if (!handle || handle.cls !== 'document') throw appleError('Message not understood.', -1708);
    if (saving !== 'no' && documentOf(handle).slides.some((slide) => slide.shapes.length)) host.hang(); // a sheet that asks whether to save
    post({ do: 'keynote_close', document: handle.document, saving });
  }
}

function save(app, direct, { in: target }) {
  const document = documentOf(direct);
  // The first save of an untitled document opens a modal sheet and blocks the queue (facts E5).
  if (target === undefined && document.file === null) host.hang();
  if (target !== undefined && !host.write(target, 'fake Keynote document')) throw failed();
  post({ do: 'keynote_save', document: document.id, file: target || document.file });
}

function remove(app, direct) {
  // Deleting what is not there silently succeeds (facts E2); the phantom text items cannot be deleted.
  for (const handle of [direct].flat().filter(Boolean)) {
    if (handle.phantom !== undefined) throw failed();
    if (handle.cls === 'shape') post({ do: 'keynote_delete_shape', document: handle.document, slide: handle.slide, shape: handle.shape });
    if (handle.cls === 'slide') post({ do: 'keynote_delete_slide', document: handle.document, slide: handle.slide });
  }
}

const EXTENSIONS = { PNG: 'png', JPEG: 'jpeg' };

// All slides that are not skipped, into a folder, as <its name>.001.png and so on (facts E4).
function exportImages(document, folder, format) {
  const slash = folder.replace(/\/+$/, '').lastIndexOf('/');
  const name = folder.replace(/\/+$/, '').slice(slash + 1);
  if (!host.isFolder(folder.slice(0, slash) || '/')) throw failed('The parent folder does not exist.');
  let place = folder.replace(/\/+$/, '');
  if (host.isThere(place)) place = `${place}/${name}`; // "sometimes in a sub-folder": here, when the folder was there before
  if (host.isThere(place)) host.remove(place);
  host.makeFolder(place);
  const shown = document.slides.map((slide, index) => index).filter((index) => !document.slides[index].skipped);
  return shown.map((slide, index) => {
    const file = `${place}/${name}.${String(index + 1).padStart(3, '0')}.${EXTENSIONS[format]}`;
    host.runPython('draw-slide', document.id, String(slide), format, file);
    return file;
  });
}

function exportDocument(app, direct, { to, as: kind, withProperties = {}, patience = 120 }) {
  const document = documentOf(direct);
  if (state().keynote.export_takes_s > patience) throw appleError('AppleEvent timed out.', -1712);
  const format = withProperties['image format'] || 'JPEG';
  if (kind !== 'slide images' || !(format in EXTENSIONS)) throw failed(); // `as PNG` is no export format
  const files = exportImages(document, to, format);
  post({ do: 'keynote_export', document: document.id, folder: to, format, files });
}

module.exports = {
  elements, countOf, property, valueOf, set,
  commands: {
    make, close, save, delete: remove, export: exportDocument,
    activate: load('plain_app').commands.activate,
    quit: load('plain_app').commands.quit,
    open: () => host.hang(), // it can wedge the whole event queue (facts E5)
  },
};

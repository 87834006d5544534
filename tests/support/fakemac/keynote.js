// The objects of the fake Keynote (fact sheet E and 3.2) that scripts read, set and make; decks.py stores them.
'use strict';
const { state, post, appleError, appWithBundle } = load('world');
const { cannotGet } = load('apple_events');
const failed = (text = 'AppleEvent handler failed.') => appleError(text, -10000);

// class -> properties (type, rw if settable), elements (name -> class). Nothing else exists.
const PLAIN = { name: 'text', id: 'text' };
const APPLICATION = { ...PLAIN, frontmost: 'boolean', version: 'text' };
const CLASSES = {
  'other application': { properties: APPLICATION, elements: {} },
  application: { properties: APPLICATION, elements: { documents: 'document', themes: 'theme' } },
  theme: { properties: PLAIN, elements: {} },
  document: {
    properties: { ...PLAIN, width: 'number rw', height: 'number rw', documentTheme: 'theme rw', currentSlide: 'slide rw' },
    elements: { slides: 'slide', slideLayouts: 'layout' },
  },
  layout: { properties: { name: 'text' }, elements: {} },
  slide: { properties: { slideNumber: 'number', skipped: 'boolean rw', baseLayout: 'layout rw' }, elements: { shapes: 'shape' } },
  shape: {
    properties: { position: 'point rw', width: 'number rw', height: 'number rw', objectText: 'text rw', backgroundFillType: 'text' },
    elements: {},
  },
};

const documentOf = (handle) => {
  const found = state().keynote.documents.find((one) => one.id === handle.document);
  if (!found) throw cannotGet();
  return found;
};
const slideOf = (handle) => documentOf(handle).slides[handle.slide];

function elements(handle, cls) {
  const { documents, themes, layouts, has_layouts: hasLayouts } = state().keynote;
  switch (cls) {
    case 'document': return documents.filter((one) => one.bundle_id === handle.bundle).map((one) => ({ cls, document: one.id }));
    case 'theme': return themes.map((name) => ({ cls, name }));
    case 'layout':
      if (!hasLayouts) throw cannotGet(); // they were called masters
      return layouts.map((name) => ({ cls, name }));
    case 'slide': return documentOf(handle).slides.map((one, index) => ({ ...handle, cls, slide: index }));
    default: return slideOf(handle).shapes.map((one, index) => ({ ...handle, cls, shape: index }));
  }
}

// The place of a property in decks.py.
const key = (name) => ({ documentTheme: 'theme' }[name] || name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));

function property(handle, name) {
  const world = state();
  if (handle.bundle) {
    const app = appWithBundle(world, handle.bundle);
    return { name: app.name, id: app.bundle_id, frontmost: app.pid !== null && world.frontmost_pid === app.pid, version: '15.3' }[name];
  }
  if (handle.cls === 'theme' || handle.cls === 'layout') return name === 'id' ? `Application/${handle.name}` : handle.name;
  if (handle.cls === 'document') {
    const document = documentOf(handle);
    if (['width', 'height'].includes(name) && host.now() < document.ready_at) throw cannotGet(); // a fresh launch (facts E5)
    if (name === 'documentTheme') return { cls: 'theme', name: document.theme };
    return name === 'currentSlide' ? { ...handle, cls: 'slide', slide: document.current_slide - 1 } : document[key(name)];
  }
  if (name === 'slideNumber') return handle.slide + 1;
  if (name === 'baseLayout') return { cls: 'layout', name: slideOf(handle).base_layout };
  if (name === 'backgroundFillType') return 'color fill';
  return (handle.cls === 'shape' ? slideOf(handle).shapes[handle.shape] : slideOf(handle))[key(name)];
}

// As decks.py keeps it: a theme and a layout by name, a slide by number.
const stored = (value) => (!value.cls ? value : value.cls === 'slide' ? value.slide + 1 : value.name);

function set({ document, slide, shape }, name, value) {
  post({ do: 'keynote_set', document, slide, shape, key: key(name), value: stored(value) });
}

function make(cls, owner, given) {
  const properties = Object.fromEntries(Object.entries(given).map(([name, value]) => [key(name), stored(value)]));
  if (cls === 'document') post({ do: 'keynote_make_document', bundle_id: owner.bundle, document: host.randomId(), properties });
  else if (owner.cls !== 'slide') throw failed();
  else post({ do: 'keynote_make_shape', document: owner.document, slide: owner.slide, properties });
}

// All slides that are not skipped, into a folder, as <its name>.001.png and so on (facts E4).
function exportImages(bundle, id, folder, patience) {
  const handle = elements({ bundle }, 'document').find((one) => one.document === id);
  if (!handle) throw cannotGet();
  if (state().keynote.export_takes_s > patience) throw appleError('AppleEvent timed out.', -1712);
  const [, parent, name] = /^(.*)\/([^/]+)\/*$/.exec(folder);
  if (!host.isFolder(parent || '/')) throw failed('The parent folder does not exist.');
  let place = `${parent}/${name}`;
  const isThere = host.isThere(place);
  if (!isThere) host.makeFolder(place);
  // "sometimes in a sub-folder": here, when the folder was there before, or by the mood
  if (isThere || state().keynote.exports_below) host.makeFolder((place = `${place}/${name}`));
  const { slides } = documentOf(handle);
  const shown = slides.map((slide, index) => index).filter((index) => !slides[index].skipped);
  const files = shown.map((slide, index) => {
    const file = `${place}/${name}.${String(index + 1).padStart(3, '0')}.png`;
    host.runPython('draw-slide', id, String(slide), file);
    return file;
  });
  post({ do: 'note', kind: 'keynote_export', what: { document: id, folder, files } });
}

module.exports = { CLASSES, elements, property, set, make, exportImages };

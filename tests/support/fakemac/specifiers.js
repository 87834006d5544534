// JXA's Application() and object specifiers; the objects are Keynote's (keynote.js), other apps are only activated.
// A specifier is no value: properties need `()`, element collections are no arrays (facts 6.3.8).
'use strict';
const { state, post, appleError, appWithBundle } = load('world');
const { gate, cannotGet, wrongType, cannotAssign } = load('apple_events');
const keynote = load('keynote');

const insides = new WeakMap(); // specifier -> {bundle, kind, cls, find}; find() gives a handle ({cls, ...}), a list of them, or a value
const plans = new WeakMap(); // KN.Shape({...}) before it is pushed -> {cls, record}
const ARRAY_METHODS = Object.getOwnPropertyNames(Array.prototype);
const invalidIndex = () => appleError('Invalid index.', -1719);
const isHandle = (value) => value !== null && typeof value === 'object' && value.cls !== undefined;
const propertiesOf = (handle) => (isHandle(handle) ? keynote.CLASSES[handle.cls].properties : {});

function send(inside, work) {
  gate(inside.bundle);
  return work();
}

// --- values in and out ---

function shown(inside, value) {
  if (Array.isArray(value)) return value.map((one) => shown(inside, one));
  return isHandle(value) ? specifier({ ...inside, kind: 'object', cls: value.cls, find: () => value }) : value;
}

// Converts a script's value to the type of a property.
function typed(type, given) {
  const value = insides.has(given) ? insides.get(given).find() : given;
  const isNumber = (one) => typeof one === 'number' && Number.isFinite(one);
  const fits = {
    number: () => isNumber(value), boolean: () => typeof value === 'boolean', text: () => ['string', 'number'].includes(typeof value),
    point: () => value && isNumber(value.x) && isNumber(value.y),
  }[type] || (() => isHandle(value) && value.cls === type);
  if (!fits()) throw wrongType();
  return type === 'text' ? String(value) : value;
}

function settable(declared, value) {
  const [type, access] = declared.split(' ');
  if (access !== 'rw') throw cannotAssign();
  return typed(type, value);
}

function assign(inside, name, value) {
  send(inside, () => {
    const owner = inside.find();
    const declared = propertiesOf(owner)[name];
    if (!declared) throw isHandle(owner) ? cannotGet() : cannotAssign(); // nothing of a text can be set (facts E2)
    keynote.set(owner, name, settable(declared, value));
  });
  return true;
}

function push(inside, object) {
  const plan = plans.get(object);
  if (!plan) throw wrongType();
  return send(inside, () => {
    const declared = keynote.CLASSES[plan.cls].properties;
    const record = Object.entries(plan.record).map(([name, value]) => {
      if (!(name in declared)) throw wrongType();
      return [name, settable(declared[name], value)];
    });
    keynote.make(plan.cls, inside.owner.find(), Object.fromEntries(record));
    return inside.find().length;
  });
}

// --- specifiers ---

function propertyOf(inside, name) {
  const read = (handle) => {
    if (!(name in propertiesOf(handle))) throw cannotGet();
    return keynote.property(handle, name);
  };
  const find = () => {
    const owner = inside.find();
    return Array.isArray(owner) ? owner.map(read) : read(owner);
  };
  return specifier({ ...inside, kind: 'property', find });
}

function elementsOf(inside, cls) {
  return specifier({ ...inside, kind: 'elements', cls, owner: inside, find: () => keynote.elements(inside.find(), cls) });
}

function chosen(inside, find) {
  return specifier({ ...inside, kind: 'object', find });
}

function ofElements(inside, name) {
  const by = (property) => (value) => chosen(inside, () => {
    const found = inside.find().find((handle) => property in propertiesOf(handle) && keynote.property(handle, property) === value);
    if (!found) throw cannotGet();
    return found;
  });
  if (name === 'length') return send(inside, () => inside.find().length);
  if (name === 'byName') return by('name');
  if (name === 'byId') return by('id');
  if (name === 'push') return (made) => push(inside, made);
  if (/^-?\d+$/.test(name)) {
    return chosen(inside, () => {
      const found = inside.find().at(Number(name));
      if (!found) throw invalidIndex();
      return found;
    });
  }
  return ARRAY_METHODS.includes(name) ? undefined : propertyOf(inside, name); // it is no array
}

function exists(inside) {
  return send(inside, () => {
    try {
      return isHandle(inside.find());
    } catch (error) {
      if ([-1728, -1719].includes(error.errorNumber)) return false;
      throw error;
    }
  });
}

function activate({ bundle }) {
  // launching needs no grant, the event does
  if (appWithBundle(state(), bundle).pid === null) post({ do: 'launch', bundle_id: bundle, activate: false, by: 'activate' });
  gate(bundle);
  post({ do: 'launch', bundle_id: bundle, by: 'activate' });
}

function ofObject(inside, name) {
  const isApplication = inside.kind === 'application';
  if (isApplication && name === 'running') return () => appWithBundle(state(), inside.bundle).pid !== null;
  if (isApplication && name === 'activate') return () => activate(inside);
  if (isApplication && ['Document', 'Shape'].includes(name)) {
    return (record = {}) => { // with `new` or without
      const made = specifier({ ...inside, kind: 'object', find: () => { throw cannotGet(); } });
      plans.set(made, { cls: name.toLowerCase(), record });
      return made;
    };
  }
  if (name === 'exists') return () => exists(inside);
  const element = inside.kind !== 'property' && keynote.CLASSES[inside.cls].elements[name];
  return element ? elementsOf(inside, element) : propertyOf(inside, name); // a name the dictionary does not have: its event fails
}

function specifier(inside) {
  const target = function objectSpecifier() {};
  delete target.length;
  delete target.name;
  const self = new Proxy(target, {
    apply: () => send(inside, () => shown(inside, inside.find())),
    get(ignored, name) {
      if (name === Symbol.toPrimitive || name === 'toString') return () => '[object ObjectSpecifier]';
      if (typeof name === 'symbol' || name === 'prototype' || name === 'toJSON' || name === 'then') return undefined;
      return inside.kind === 'elements' ? ofElements(inside, name) : ofObject(inside, name);
    },
    set: (ignored, name, value) => assign(inside, name, value),
  });
  insides.set(self, inside);
  return self;
}

function Application(name) {
  const found = state().apps.filter((app) => app.bundle_id === name || app.name === name || app.path === name);
  const app = found.find((one) => one.pid !== null) || found[0]; // a bare "Keynote" resolves to either (facts E1)
  if (!app) throw appleError("Application can't be found.", -2700);
  const handle = { cls: app.name === 'Keynote' ? 'application' : 'other application', bundle: app.bundle_id };
  return specifier({ bundle: app.bundle_id, kind: 'application', cls: handle.cls, find: () => handle });
}

module.exports = { Application };

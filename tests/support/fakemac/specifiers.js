// JXA's Application() and object specifiers.
// A specifier is no value: properties need `()`, element collections are no arrays (facts 6.3.8).
'use strict';
const { state, post, appleError, appWithBundle } = load('world');
const events = load('apple_events');

const camel = (term) => term.replace(/ (\w)/g, (all, letter) => letter.toUpperCase()).replace(/^UI([a-zA-Z])/, (all, letter) => `ui${letter.toUpperCase()}`);
const insides = new WeakMap(); // specifier -> {bundle, path, cls, kind}
class ObjectSpecifier {}

class PathObject {
  constructor(text) { Object.defineProperty(this, 'text', { value: text }); }
  toString() { return this.text; }
}
const Path = (text) => {
  if (typeof text !== 'string') throw new TypeError('Path: a string is needed');
  return new PathObject(text);
};

const appOf = (inside) => appWithBundle(state(), inside.bundle);
function enter(inside) {
  const app = events.gate(inside.bundle);
  events.objectsOf(app).bundle = inside.bundle;
  return app;
}
const isSpecifier = (value) => typeof value === 'function' && insides.has(value);

// --- values in and out ---

function fromHandle(inside, value) {
  if (Array.isArray(value)) return value.map((one) => fromHandle(inside, one));
  return events.isHandle(value) ? handleSpecifier(inside, value) : value;
}

// A specifier that holds what it was found as: document by id, shape by its place.
function handleSpecifier(inside, handle) {
  const place = (element, by, value) => ({ element, by, value });
  const paths = {
    document: () => [place('document', 'id', handle.document)],
    slide: () => [place('document', 'id', handle.document), place('slide', 'index', handle.slide)],
    shape: () => [place('document', 'id', handle.document), place('slide', 'index', handle.slide), place('shape', 'index', handle.shape)],
    theme: () => [place('theme', 'name', handle.name)],
  };
  const path = handle.cls in paths ? paths[handle.cls]() : [{ fixed: handle }];
  return specifier({ bundle: inside.bundle, path, cls: handle.cls, kind: 'object' });
}

// The handle (or value) behind what a script passed.
function toHandle(app, value) {
  if (Array.isArray(value)) return value.map((one) => toHandle(app, one));
  if (!isSpecifier(value)) return value;
  const inside = insides.get(value);
  if (inside.kind === 'chosen') return pickedObject(inside);
  return events.resolve(app, inside.kind === 'location' || inside.kind === 'elements' ? inside.path.slice(0, -1) : inside.path);
}

function read(inside) {
  const app = enter(inside);
  return fromHandle(inside, events.get(app, inside.path));
}

function write(inside, value) {
  const app = enter(inside);
  const plain = isSpecifier(value) ? toHandle(app, value) : value;
  events.set(app, inside.path, plain);
}

function properties(record) {
  return Object.fromEntries(Object.entries(record || {}).map(([name, value]) => [spaced(name), value]));
}

// --- terms ---

function spaced(name) { return name.replace(/^ui([A-Z])/, 'UI $1').replace(/^iWork([A-Z])/, 'iWork $1').replace(/([a-z])([A-Z])/g, '$1 $2').replace(/ ([A-Z])/g, (all, letter) => ` ${letter.toLowerCase()}`).replace(/^UI E/, 'UI e'); }

function termOf(inside, name) {
  const dictionary = events.dictionaryOf(appOf(inside));
  const cls = inside.cls && events.classOf(dictionary, inside.cls);
  if (!cls) return null;
  for (const property of Object.keys(cls.properties)) if (camel(property) === name) return { property, type: cls.properties[property].replace(/ rw?$/, '') };
  for (const [element, plural] of Object.entries(cls.elements)) if (camel(plural) === name) return { element };
  return null;
}

const resultClass = (inside, term) => (events.classOf(events.dictionaryOf(appOf(inside)), term.type) ? term.type : null);

// --- commands ---

const ARRAY_METHODS = Object.getOwnPropertyNames(Array.prototype).filter((name) => !['push', 'at', 'length', 'constructor'].includes(name));

function runCommand(inside, name, direct, record = {}) {
  const app = enter(inside);
  const parameters = Object.fromEntries(Object.entries(record).map(([key, value]) => [key, value]));
  if (name === 'count') return direct ? lengthOf(insides.get(direct)) : 0;
  if (name === 'exists') return existsOf(insides.get(direct));
  if (name === 'make') {
    parameters.at = parameters.at === undefined ? undefined : toHandle(app, parameters.at);
    parameters.withProperties = handled(app, properties(parameters.withProperties));
    return fromHandle(inside, events.command(app, 'make', undefined, { ...parameters, new: spaced(String(parameters.new)) }));
  }
  if (name === 'export') return exportFromJxa(app, direct, parameters);
  if (parameters.in instanceof PathObject) parameters.in = parameters.in.text;
  let target;
  try {
    target = isSpecifier(direct) ? toHandle(app, direct) : direct;
  } catch (error) {
    if (name !== 'delete') throw error; // deleting what is not there silently succeeds (facts E2)
  }
  return fromHandle(inside, events.command(app, name, target, parameters));
}

const handled = (app, record) => Object.fromEntries(Object.entries(record).map(([name, value]) => [name, isSpecifier(value) ? toHandle(app, value) : value]));

function exportFromJxa(app, direct, { to, as: kind, withProperties }) {
  if (!(to instanceof PathObject)) throw events.wrongType(); // a string is no file
  if (withProperties !== undefined) throw events.wrongType(); // the record does not convert from JXA (facts E6)
  if (!events.TABLES.keynote.export.as.includes(kind)) throw events.wrongType();
  events.command(app, 'export', toHandle(app, direct), { to: to.text, as: kind });
}

function lengthOf(inside) {
  const app = enter(inside);
  return events.count(app, inside.path);
}

function existsOf(inside) {
  const app = enter(inside);
  return events.exists(app, inside.path);
}

// --- specifiers ---

const child = (inside, step, cls, kind) => specifier({ bundle: inside.bundle, path: [...inside.path, step], cls, kind });

function chosen(inside, by, value) {
  const last = inside.path[inside.path.length - 1];
  const kind = by === 'whose' ? 'elements' : 'object';
  // A choice among what `whose` found is made after it.
  if (last.by === 'whose') return specifier({ bundle: inside.bundle, path: inside.path, cls: inside.cls, kind: 'chosen', pick: { by, value } });
  return specifier({ ...inside, path: [...inside.path.slice(0, -1), { ...last, by, value }], kind });
}

function pickedObject(inside) {
  const found = events.resolve(enter(inside), inside.path);
  const index = inside.pick.value < 0 ? found.length + inside.pick.value : inside.pick.value;
  if (!(index >= 0 && index < found.length)) throw events.invalidIndex();
  return found[index];
}
const pickedHandle = (inside) => handleSpecifier(inside, pickedObject(inside));

function ofElements(inside, name) {
  if (name === 'length') return lengthOf(inside);
  if (name === 'byName') return (value) => chosen(inside, 'name', value);
  if (name === 'byId') return (value) => chosen(inside, 'id', value);
  if (name === 'at') return (value) => chosen(inside, 'index', value);
  if (name === 'whose') return (test) => chosen(inside, 'whose', properties(test));
  if (name === 'push') return (made) => push(inside, made);
  if (name === 'beginning' || name === 'end' || name === 'first' || name === 'last') return specifier({ ...inside, kind: 'location' });
  if (/^-?\d+$/.test(name)) return chosen(inside, 'index', Number(name));
  if (ARRAY_METHODS.includes(name)) return undefined; // it is no array
  return null;
}

const unmade = new WeakMap(); // KN.Shape({...}) before it is pushed

function push(inside, object) {
  const plan = unmade.get(object);
  if (!plan) throw events.wrongType();
  const app = enter(inside);
  const owner = inside.path.length > 1 ? events.resolve(app, inside.path.slice(0, -1)) : undefined;
  const made = events.command(app, 'make', undefined, { new: plan.className, at: owner, withProperties: handled(app, properties(plan.record)) });
  unmade.delete(object);
  insides.set(object, insides.get(handleSpecifier(inside, made)));
  return lengthOf(inside);
}

// KN.Shape, KN.Document, KN.Slide
function constructorOf(inside, name) {
  const className = spaced(name).toLowerCase();
  if (inside.path.length || !/^[A-Z]/.test(name) || !events.classOf(events.dictionaryOf(appOf(inside)), className)) return undefined;
  return function construct(record = {}) { // with `new` or without
    const object = specifier({ bundle: inside.bundle, path: [{ fixed: { cls: 'nothing yet' } }], cls: className, kind: 'object' });
    unmade.set(object, { className, record });
    return object;
  };
}

function ofObject(inside, name, self) {
  if (name === 'exists') return () => existsOf(inside);
  if (name === 'get') return () => read(inside);
  if (name === 'set') return (value) => write(inside, value);
  if (name === 'properties') return () => Object.fromEntries(Object.keys(events.classOf(events.dictionaryOf(appOf(inside)), inside.cls).properties).map((property) => [camel(property), read(insides.get(child(inside, { property }, null, 'property')))]));
  if (name === 'make' && unmade.has(self)) {
    return () => {
      const app = enter(inside);
      const { className, record } = unmade.get(self);
      const made = events.command(app, 'make', undefined, { new: className, withProperties: handled(app, properties(record)) });
      insides.set(self, insides.get(handleSpecifier(inside, made)));
      return self;
    };
  }
  const term = termOf(inside, name);
  if (term && term.element) return child(inside, { element: term.element, by: 'every' }, term.element, 'elements');
  if (term) return child(inside, { property: term.property }, resultClass(inside, term), 'property');
  const commands = events.dictionaryOf(appOf(inside)).commands;
  const command = commands.find((one) => camel(one) === name);
  if (command) return (...given) => runCommand(inside, command, self, given[0]);
  // A name the dictionary does not have: a specifier all the same, whose event fails.
  return child(inside, { property: spaced(name) }, null, 'property');
}

function specifier(inside) {
  const target = function objectSpecifier() {};
  delete target.length;
  delete target.name;
  const self = new Proxy(target, {
    apply: () => (insides.get(self).kind === 'chosen' ? pickedHandle(insides.get(self)) : read(insides.get(self))),
    get(ignored, name) {
      const now = insides.get(self);
      if (name === Symbol.toPrimitive || name === 'toString') return () => '[object ObjectSpecifier]';
      if (typeof name === 'symbol' || name === 'prototype' || name === 'toJSON' || name === 'then') return undefined;
      if (now.kind === 'chosen') return pickedHandle(now)[name];
      if (now.kind === 'elements') {
        const found = ofElements(now, name);
        if (found !== null) return found;
        const term = termOf(now, name);
        if (!term) return chosen(now, 'name', name); // windows['Untitled']
        return term.element ? child(now, { element: term.element, by: 'every' }, term.element, 'elements') : child(now, { property: term.property }, null, 'property');
      }
      return ofObject(now, name, self);
    },
    set(ignored, name, value) {
      const now = insides.get(self);
      if (now.kind === 'chosen') { pickedHandle(now)[name] = value; return true; }
      const term = termOf(now, name);
      write(insides.get(child(now, { property: term && term.property ? term.property : spaced(name) }, null, 'property')), value);
      return true;
    },
    getPrototypeOf: () => ObjectSpecifier.prototype,
  });
  insides.set(self, inside);
  return self;
}

// --- applications ---

function installed(name) {
  const { apps } = state();
  const found = apps.filter((app) => app.bundle_id === name || app.name === name || app.path === name);
  return found.find((app) => app.pid !== null) || found[0]; // a bare "Keynote" resolves to either (facts E1)
}

function Application(name) {
  if (typeof name === 'number') {
    const found = state().apps.find((app) => app.pid === name);
    if (!found) throw appleError("Application can't be found.", -2700);
    return application(found.bundle_id);
  }
  const app = installed(name);
  if (!app) throw appleError("Application can't be found.", -2700);
  return application(app.bundle_id);
}

function activate(inside) {
  const app = appOf(inside);
  if (app.pid === null) post({ do: 'launch', bundle_id: inside.bundle, activate: false, by: 'activate' }); // launching needs no grant, the event does
  enter(inside);
  post({ do: 'launch', bundle_id: inside.bundle, by: 'activate' });
}

function application(bundle) {
  const inside = { bundle, path: [], cls: 'application', kind: 'application' };
  const options = { includeStandardAdditions: false, strictPropertyScope: false, strictCommandScope: false, strictParameterType: true };
  const self = new Proxy(function applicationObject() {}, {
    get(ignored, name) {
      if (name === Symbol.toPrimitive || name === 'toString') return () => '[object Application]';
      if (typeof name === 'symbol' || name === 'prototype' || name === 'toJSON' || name === 'then') return undefined;
      if (name in options) return options[name];
      if (name === 'running') return () => appOf(inside).pid !== null;
      if (name === 'activate') return () => activate(inside);
      if (name === 'launch') return () => { post({ do: 'launch', bundle_id: bundle, activate: false, by: 'launch' }); };
      const constructor = constructorOf(inside, name);
      if (constructor) return constructor;
      const dictionary = events.dictionaryOf(appOf(inside));
      const command = dictionary.commands.find((one) => camel(one) === name);
      if (command) return (direct, record) => (command === 'make' ? runCommand(inside, 'make', undefined, direct) : runCommand(inside, command, direct, record));
      const term = termOf(inside, name);
      if (term && term.element) return child(inside, { element: term.element, by: 'every' }, term.element, 'elements');
      if (term) return child(inside, { property: term.property }, null, 'property');
      return child(inside, { property: spaced(name) }, null, 'property'); // a name the dictionary does not have: its event fails
    },
    set(ignored, name, value) {
      if (name in options) { options[name] = value; return true; }
      const term = termOf(inside, name);
      write(insides.get(child(inside, { property: term && term.property ? term.property : spaced(name) }, null, 'property')), value);
      return true;
    },
  });
  insides.set(self, inside);
  return self;
}

module.exports = { Application, Path, ObjectSpecifier };

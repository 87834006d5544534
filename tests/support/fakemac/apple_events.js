// Apple events to the apps of the fake world: object specifiers are resolved, properties got and set, commands run.
// JXA (specifiers.js) and the one AppleScript (applescript.js) both come here.
//
// A path is a list of steps: {element, by: 'index'|'name'|'id'|'every'|'whose', value}, {property}, or first {fixed: an object already found}.
// An app's own objects are handles ({cls, ...}) that only its module (keynote.js) understands.
'use strict';
const { state, post, appleError, appWithBundle } = load('world');

const TABLES = JSON.parse(host.dictionaryText());
const touched = new Set();

const cannotGet = () => appleError("Can't get object.", -1728);
const invalidIndex = () => appleError('Invalid index.', -1719);
const wrongType = () => appleError("Can't convert types.", -1700);
const cannotAssign = () => appleError('Access not allowed.', -10006);

function dictionaryOf(app) {
  if (app.name === 'Keynote') return TABLES.keynote;
  return { classes: TABLES.standard, commands: ['activate', 'quit'] };
}

function objectsOf(app) {
  if (app.name === 'Keynote') return load('keynote');
  return load('plain_app');
}

// What every event to an app passes: is it running, may we, is the connection good (facts D2, 6.3.2, E5).
// JXA gets -600 from an app that does not run; AppleScript's tell starts it.
function gate(bundle, { starts = false, permissionOnly = false } = {}) {
  let world = state();
  const app = appWithBundle(world, bundle);
  touched.add(bundle);
  if (app.name === 'Keynote' && world.keynote.connection_invalid) {
    post({ do: 'keynote_connection_error_seen' });
    throw appleError('Connection is invalid.', -609);
  }
  if (app.pid === null && !permissionOnly) {
    if (!starts) throw appleError("Application isn't running.", -600);
    post({ do: 'launch', bundle_id: bundle, activate: false, by: 'tell' });
    world = state();
  }
  const automation = world.permissions.automation;
  const answer = automation[bundle] || automation['*'];
  if (answer === 'not_asked') host.hang(); // a prompt nobody answers (facts 6.3.5)
  if (answer === 'denied') throw appleError(`Not authorized to send Apple events to ${app.name}.`, -1743);
  return appWithBundle(world, bundle);
}

// The class of a term, with what it may have.
function classOf(dictionary, name) {
  return dictionary.classes[name];
}

// --- resolving ---

function resolve(app, path) {
  const dictionary = dictionaryOf(app);
  const objects = objectsOf(app);
  let here = { cls: 'application' };
  for (const step of path) here = Array.isArray(here) ? here.map((one) => stepInto(dictionary, objects, one, step)) : stepInto(dictionary, objects, here, step);
  return here;
}

function stepInto(dictionary, objects, handle, step) {
  if (step.fixed) return step.fixed;
  if (!handle || handle.cls === undefined) throw cannotGet();
  const cls = classOf(dictionary, handle.cls);
  if (step.property !== undefined) {
    if (!(step.property in cls.properties)) throw cannotGet();
    return objects.property(handle, step.property);
  }
  if (!(step.element in cls.elements)) throw cannotGet();
  const all = objects.elements(handle, step.element, step);
  return choose(dictionary, objects, all, step);
}

function choose(dictionary, objects, all, step) {
  const value = (handle, property) => objects.property(handle, property);
  if (step.by === 'every') return all;
  if (step.by === 'index') {
    const index = step.value < 0 ? all.length + step.value : step.value;
    if (!Number.isInteger(index) || index < 0 || index >= all.length) throw invalidIndex();
    return all[index];
  }
  if (step.by === 'whose') return all.filter((handle) => Object.entries(step.value).every(([name, test]) => passes(value(handle, name), test)));
  const property = step.by === 'id' ? 'id' : 'name';
  const found = all.find((handle) => property in classOf(dictionary, handle.cls).properties && value(handle, property) === step.value);
  if (!found) throw cannotGet();
  return found;
}

function passes(value, test) {
  if (test === null || typeof test !== 'object') return value === test;
  const [[operator, other]] = Object.entries(test);
  const operators = { _equals: value === other, '=': value === other, _contains: String(value).includes(other), _beginsWith: String(value).startsWith(other),
    _endsWith: String(value).endsWith(other), '>': value > other, '<': value < other, _not: value !== other };
  if (!(operator in operators)) throw wrongType();
  return operators[operator];
}

// --- events ---

const isHandle = (value) => value !== null && typeof value === 'object' && value.cls !== undefined;

// The value of an object: a handle for an object, the text for rich text, a plain value otherwise.
function get(app, path) {
  const found = resolve(app, path);
  const objects = objectsOf(app);
  const read = (one) => (isHandle(one) && objects.valueOf ? objects.valueOf(one) : one);
  if (Array.isArray(found) && found.some((one) => isHandle(one) && one.cls === 'iWork item')) throw wrongType(); // a mixed list does not convert (facts E6)
  return Array.isArray(found) && path.some((step) => step.by === 'every' || step.by === 'whose') ? found.map(read) : read(found);
}

function set(app, path, value) {
  const dictionary = dictionaryOf(app);
  const last = path[path.length - 1];
  if (last.property === undefined) throw cannotAssign();
  const owner = resolve(app, path.slice(0, -1));
  if (Array.isArray(owner)) { owner.forEach((one) => setOne(dictionary, objectsOf(app), one, last.property, value)); return; }
  setOne(dictionary, objectsOf(app), owner, last.property, value);
}

function setOne(dictionary, objects, owner, property, value) {
  const declared = isHandle(owner) && classOf(dictionary, owner.cls).properties[property];
  // No `alignment` of an object text, no writable fill: -10006 (facts E2).
  if (!declared || !declared.endsWith(' rw')) throw owner.cls === 'rich text' || declared ? cannotAssign() : cannotGet();
  objects.set(owner, property, typed(declared.replace(/ rw$/, ''), value));
}

// A value as a property's type wants it.
function typed(type, value) {
  if (value === undefined || value === null) throw wrongType();
  if (type === 'number') {
    if (typeof value !== 'number' || !Number.isFinite(value)) throw wrongType();
  } else if (type === 'boolean') {
    if (typeof value !== 'boolean') throw wrongType();
  } else if (type === 'point') {
    if (Array.isArray(value)) value = { x: value[0], y: value[1] };
    if (![value.x, value.y].every((one) => typeof one === 'number' && Number.isFinite(one))) throw wrongType();
    return { x: value.x, y: value.y };
  } else if (type === 'pair') {
    if (!Array.isArray(value) || value.length !== 2 || !value.every(Number.isFinite)) throw wrongType();
  } else if (type === 'text' || type === 'rich text') {
    if (!['string', 'number'].includes(typeof value)) throw wrongType();
    return String(value);
  } else if (type === 'colour') {
    if (!Array.isArray(value) || value.length !== 3 || !value.every((one) => one >= 0 && one <= 65535)) throw wrongType();
  } else if (type !== 'any' && !(isHandle(value) && value.cls === type)) {
    throw wrongType();
  }
  return value;
}

function count(app, path) {
  const objects = objectsOf(app);
  const last = path[path.length - 1];
  const owner = resolve(app, path.slice(0, -1));
  if (last.by === 'every' && objects.countOf) {
    const lie = objects.countOf(owner, last.element);
    if (lie !== undefined) return lie;
  }
  const found = resolve(app, path);
  return Array.isArray(found) ? found.length : 1;
}

function exists(app, path) {
  try {
    const found = resolve(app, path);
    return !Array.isArray(found) || found.length > 0;
  } catch (error) {
    if ([-1728, -1719].includes(error.errorNumber)) return false;
    throw error;
  }
}

// The properties given to a new object, checked against its class; a name the class does not have is refused.
function checkedProperties(app, className, given) {
  const dictionary = dictionaryOf(app);
  const cls = classOf(dictionary, className);
  return Object.fromEntries(Object.entries(given).map(([name, value]) => {
    const declared = cls.properties[name];
    if (!declared) throw wrongType();
    if (!declared.endsWith(' rw')) throw cannotAssign();
    return [name, typed(declared.replace(/ rw$/, ''), value)];
  }));
}

// A command with its direct object (a handle, a list of them, or a plain value) and named parameters.
function command(app, name, direct, parameters) {
  const run = objectsOf(app).commands[name];
  if (!run) throw appleError('Message not understood.', -1708);
  return run(app, direct, parameters);
}

function endOfCall() {
  if ([...touched].some((bundle) => /Keynote$/.test(bundle)) && state().keynote.auto_quits) post({ do: 'keynote_end_of_call' });
}

module.exports = { TABLES, dictionaryOf, objectsOf, gate, classOf, resolve, get, set, count, exists, checkedProperties, command, endOfCall, isHandle,
  cannotGet, invalidIndex, wrongType, cannotAssign };

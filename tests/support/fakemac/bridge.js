// JXA's Objective-C bridge: ObjC, $ and Ref, and the classes of Foundation.
// All other names are undefined, as on a Mac, so that a typo fails (the fact sheet 1.3, 6.3.7).
'use strict';
const { state, strict, isStrict } = load('world');

// Which ObjC.import gives which names. Without the import they are undefined.
const GIVES = {
  Foundation: ['Foundation'], AppKit: ['Foundation', 'AppKit', 'CoreServices'], Cocoa: ['Foundation', 'AppKit', 'CoreGraphics', 'CoreServices'],
  CoreGraphics: ['CoreGraphics'], Quartz: ['CoreGraphics', 'ImageIO'], Carbon: ['CoreGraphics', 'ApplicationServices', 'CoreServices'],
  ApplicationServices: ['CoreGraphics', 'ApplicationServices', 'CoreServices'], ImageIO: ['ImageIO'], Vision: ['Vision'],
  stdlib: ['stdlib'], unistd: ['unistd'], CoreFoundation: ['Foundation'], CoreServices: ['Foundation', 'CoreServices'],
};
// On at least some systems the bridge gives 64-bit integers (NSInteger, NSUInteger, size_t, int64_t) as strings, and
// nil as null; a script has to live with both.
const { bridged_integers: integers, nil_is_null: nilIsNull } = state().switches;
const wide = (value) => (integers === 'strings' ? String(value) : value);
const shownNil = (value) => (nilIsNull && value === nil ? null : value);
const imported = new Set(['Foundation', 'libSystem']);
const classes = {}; // name: {name, framework, parent, statics: {zero, args}, zero, args, set}
const functions = {}; // name: {framework, arity, returns, needsBinding, call}
const constants = {}; // framework: {name: value}
const bound = {}; // name: {returns}
const insides = new WeakMap(); // bridged object -> {cls, data}
const pointers = new WeakMap(); // Ref -> its target

// --- objects ---

function defineClass(name, definition) {
  classes[name] = { name, framework: 'Foundation', parent: name === 'NSObject' ? null : 'NSObject', shown: name, statics: {}, zero: {}, args: {}, set: {}, ...definition };
}

function lookUp(cls, table, key) {
  for (let at = cls; at; at = classes[at.parent]) {
    if (Object.prototype.hasOwnProperty.call(at[table] || {}, key)) return at[table][key];
  }
  return undefined;
}

function checkArguments(what, given) {
  given.forEach((value, index) => {
    if (value === undefined && isStrict()) throw strict(`${what}: argument ${index + 1} is undefined`);
  });
}

function makeObject(className, data) {
  const cls = classes[className];
  const inside = { cls, data };
  const object = new Proxy({}, {
    get(target, key) {
      if (key === Symbol.toPrimitive || key === 'toString') return () => `[id ${cls.shown}]`;
      if (typeof key === 'symbol') return undefined;
      if (key === 'js') return unwrap(object);
      if (key === 'isNil') return () => false;
      const zero = lookUp(cls, 'zero', key);
      if (zero) return shownNil(zero(inside.data, object)); // a selector without arguments runs on access: it is no function
      const method = lookUp(cls, 'args', key);
      if (!method) return undefined;
      return (...given) => { checkArguments(`${cls.name}.${key}`, given); return shownNil(method(inside.data, ...given)); };
    },
    set(target, key, value) {
      const setter = lookUp(cls, 'set', key);
      if (!setter) throw strict(`${cls.name} has no property ${String(key)} to set`);
      setter(inside.data, value);
      return true;
    },
    has: () => false,
  });
  insides.set(object, inside);
  return object;
}

const nil = new Proxy({}, {
  get: (target, key) => {
    if (key === 'isNil') return () => true;
    if (key === Symbol.toPrimitive || key === 'toString') return () => '[id nil]';
    return undefined;
  },
  set: () => true,
});

const isObject = (value) => insides.has(value);
const className = (value) => (isObject(value) ? insides.get(value).cls.name : null);
const dataOf = (value) => insides.get(value).data;
const isKind = (value, name) => { for (let at = isObject(value) && insides.get(value).cls; at; at = classes[at.parent]) if (at.name === name) return true; return false; };

function wrap(value) {
  if (value === null || value === undefined) return nil;
  if (isObject(value) || value === nil || pointers.has(value)) return value;
  if (typeof value === 'string') return makeObject('NSString', value);
  if (typeof value === 'number' || typeof value === 'boolean') return makeObject('NSNumber', value);
  if (Array.isArray(value)) return makeObject('NSArray', value);
  if (value instanceof Date) return makeObject('NSDate', value.getTime());
  if (typeof value === 'object') return makeObject('NSDictionary', value);
  throw new TypeError('Unable to bridge this value');
}

const isPlain = (value) => ['NSString', 'NSNumber', 'NSArray', 'NSDictionary', 'NSDate'].some((name) => isKind(value, name));

// One level: the elements of an array or a dictionary stay bridged objects.
function unwrap(value) {
  if (value === nil) return undefined;
  if (!isObject(value) || !isPlain(value)) return value;
  const data = dataOf(value);
  if (isKind(value, 'NSArray')) return data.map(wrap);
  if (isKind(value, 'NSDictionary')) return Object.fromEntries(Object.entries(data).map(([key, item]) => [key, wrap(item)]));
  if (isKind(value, 'NSDate')) return new Date(data);
  return data;
}

function deepUnwrap(value) {
  if (pointers.has(value)) {
    // A bare CFRef: undefined for some, "Ref has incompatible type" for others (facts B3, 6.3.7). Cast it first.
    if (state().switches.bare_ref === 'throws') throw new Error('Ref has incompatible type');
    return undefined;
  }
  if (value === nil) return undefined;
  if (isObject(value)) return isPlain(value) ? deepUnwrap(unwrapData(value)) : value;
  if (Array.isArray(value)) return value.map(deepUnwrap);
  if (value && typeof value === 'object' && !(value instanceof Date)) return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, deepUnwrap(item)]));
  return value;
}

function unwrapData(value) {
  const inside = insides.get(value);
  if (inside.data && inside.data.resistsDeepUnwrap) {
    if (inside.data.resistsDeepUnwrap === 'throws') throw new Error('Ref has incompatible type');
    return undefined;
  }
  return inside.cls.name === 'NSDate' ? new Date(inside.data) : inside.data;
}

const toJs = (value) => (isObject(value) ? deepUnwrap(value) : value === nil ? undefined : value);
const isNull = (value) => value === null || value === nil || (pointers.has(value) && pointers.get(value) === null);

// --- Ref and C functions ---

class Pointer {}
function Ref(type) {
  const made = new Pointer();
  if (type !== undefined) Object.defineProperty(made, 'type', { value: type, enumerable: false });
  return made;
}
const isPlainRef = (value) => value instanceof Pointer && !pointers.has(value);
// The result of an unbound C function that returns a CF type: unreadable until it is cast.
function cfRef(target) {
  const made = new Pointer();
  pointers.set(made, target);
  return made;
}
const pointee = (value) => (pointers.has(value) ? pointers.get(value) : value);

function number(what, value) {
  if (typeof value === 'boolean') return Number(value);
  const plain = toJs(value);
  if (!Number.isFinite(plain) && !isStrict()) return 0; // undefined becomes 0 in C calls (facts 6.3.7)
  if (typeof plain !== 'number' || !Number.isFinite(plain)) throw strict(`${what} is ${plain === undefined ? 'undefined' : String(plain)}, not a number`);
  return plain;
}

function defineFunction(name, definition) {
  functions[name] = { framework: 'CoreGraphics', needsBinding: false, ...definition };
}

function result(name, definition, binding, value) {
  if (definition.returns === 'cf') {
    if (!binding) return cfRef(value === undefined ? null : value);
    if (binding.returns === 'id') return value === null ? nil : isObject(value) ? value : cfRef(value);
    return cfRef(value);
  }
  if (binding && binding.returns === 'void') return undefined;
  if (definition.returns === 'bool') return binding ? (binding.returns === 'bool' ? Boolean(value) : Number(value)) : Boolean(value);
  if (definition.returns === 'Boolean') return binding && binding.returns === 'bool' ? Boolean(value) : Number(value); // unsigned char
  if (definition.returns === 'long') return wide(value);
  return value;
}

function callFunction(name, given) {
  const definition = functions[name];
  const binding = bound[name];
  checkArguments(`$.${name}`, given);
  if (given.length !== definition.arity && isStrict()) throw strict(`$.${name} takes ${definition.arity} arguments, not ${given.length}`);
  return result(name, definition, binding, definition.call(given, binding));
}

// bindFunction uses dlsym, which finds loaded libraries: AppKit loads these, with or without an import.
const LOADED = { AppKit: ['CoreGraphics', 'ApplicationServices', 'CoreServices', 'Carbon'] };
const isLoaded = (framework) => [...imported].some((one) => one === framework || (LOADED[one] || []).includes(framework));
const isAvailable = (name) => functions[name] && (imported.has(functions[name].framework) || (bound[name] && isLoaded(functions[name].framework)));

const dollar = new Proxy(function bridge() {}, {
  apply: (target, self, given) => (given.length ? wrap(given[0]) : nil),
  get(target, key) {
    if (typeof key === 'symbol') return undefined;
    if (isAvailable(key) && (!functions[key].needsBinding || bound[key])) return (...given) => callFunction(key, given);
    if (classes[key] && imported.has(classes[key].framework)) return classObject(key);
    for (const framework of imported) if (constants[framework] && key in constants[framework]) return constantValue(constants[framework][key]);
    return undefined;
  },
  set(target, key) { throw strict(`$.${String(key)} cannot be set`); },
});

const constantValue = (value) => (typeof value === 'function' ? value() : typeof value === 'string' ? wrap(value) : value);

function classObject(name) {
  const cls = classes[name];
  return new Proxy(function objcClass() {}, {
    get(target, key) {
      if (typeof key === 'symbol') return undefined;
      const zero = lookUp(cls, 'zeroStatics', key);
      if (zero) return shownNil(zero(name));
      if (key === 'alloc') return allocated(name);
      const method = lookUp(cls, 'statics', key);
      if (!method) return undefined;
      return (...given) => { checkArguments(`${name}.${key}`, given); return shownNil(method(...given)); };
    },
  });
}

function allocated(name) {
  const cls = classes[name];
  return new Proxy({}, {
    get(target, key) {
      if (key === 'init' && cls.init) return cls.init();
      const initialiser = lookUp(cls, 'initialisers', key);
      if (!initialiser) return undefined;
      return (...given) => { checkArguments(`${name}.${String(key)}`, given); return shownNil(initialiser(...given)); };
    },
  });
}

const ObjC = {
  import(name) {
    if (!(name in GIVES)) throw new Error(`ObjC.import: no framework or header "${name}"`);
    GIVES[name].forEach((framework) => imported.add(framework));
  },
  wrap, unwrap, deepUnwrap,
  castRefToObject(ref) {
    if (ref === undefined) throw new Error('castRefToObject: not a Ref');
    const target = pointee(ref);
    if (target === null || target === nil) return nil;
    if (isObject(target)) return target;
    throw new Error('Ref has incompatible type');
  },
  castObjectToRef: (object) => cfRef(object),
  bindFunction(name, signature) {
    if (!Array.isArray(signature) || typeof signature[0] !== 'string' || !Array.isArray(signature[1])) throw new TypeError('bindFunction: [returnType, [argumentTypes]]');
    const known = functions[name];
    if (!known) return; // dlsym finds nothing: the name stays undefined
    if (signature[1].length !== known.arity) throw strict(`bindFunction: ${name} takes ${known.arity} arguments, not ${signature[1].length}`);
    bound[name] = { returns: signature[0], types: signature[1] };
  },
  block: () => { throw strict('ObjC.block is not simulated'); },
  registerSubclass: () => { throw strict('ObjC.registerSubclass is not simulated'); },
};
ObjC.$ = dollar;

module.exports = { ObjC, $: dollar, Ref, wide, defineClass, defineFunction, constants, classes, makeObject, nil, wrap, unwrap, deepUnwrap, toJs, isNull, isObject, isKind,
  className, dataOf, cfRef, pointee, isPlainRef, number, functions, bound };
load('foundation');

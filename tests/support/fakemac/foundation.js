// The classes of Foundation that scripts use: text, numbers, collections, data, dates, files, the process, the run loop.
'use strict';
const { constants, wide, defineClass, defineFunction, makeObject, nil, wrap, toJs, dataOf, cfRef, number, isNull } = load('bridge');
const { state, strict, responsibleApp, appWithPid } = load('world');

const text = (what, value) => {
  const plain = toJs(value);
  if (typeof plain !== 'string') throw strict(`${what} is not a string`);
  return plain;
};
const UTF8 = 4;
const UTF16LE = 0x94000100;
const ENCODINGS = { 1: 'latin1', [UTF8]: 'utf8', 10: 'utf16le', [UTF16LE]: 'utf16le' };
constants.Foundation = { NSUTF8StringEncoding: UTF8, NSUTF16LittleEndianStringEncoding: UTF16LE, NSASCIIStringEncoding: 1, NSUnicodeStringEncoding: 10,
  kCFBooleanTrue: () => wrap(true), kCFBooleanFalse: () => wrap(false) };
constants.stdlib = {};
const encodingOf = (value) => {
  if (!(value in ENCODINGS)) throw strict(`no string encoding ${String(value)}`);
  return ENCODINGS[value];
};
const dataObject = (bytes) => makeObject('NSData', bytes);
const encoded = (string, encoding) => dataObject(host.encode(string, encodingOf(encoding)));

defineClass('NSObject', { zero: { description: (data) => wrap(String(data)), self: (data, object) => object } });

defineClass('NSString', {
  shown: '__NSCFString',
  zero: {
    length: (data) => wide(data.length), description: (data) => wrap(data),
    stringByExpandingTildeInPath: (data) => wrap(data.replace(/^~/, JSON.parse(host.environmentText).HOME || '/')),
  },
  statics: {
    stringWithContentsOfFileEncodingError: (path, encoding) => {
      const bytes = host.read(text('path', path));
      return bytes === null ? nil : wrap(host.decode(bytes, encodingOf(encoding)));
    },
  },
  args: {
    dataUsingEncoding: (data, encoding) => encoded(data, encoding),
  },
});

defineClass('NSNumber', {
  shown: '__NSCFNumber', zero: { description: (data) => wrap(String(data)) },
});

const item = (data, index) => {
  if (!Number.isInteger(index) || index < 0 || index >= data.length) throw new Error(`-[__NSArrayM objectAtIndex:]: index ${index} beyond bounds`);
  return wrap(data[index]);
};
defineClass('NSArray', {
  shown: '__NSArrayM',
  zero: { count: (data) => wide(data.length), firstObject: (data) => wrap(data[0]) },
  args: { objectAtIndex: (data, index) => item(data, index) },
});

defineClass('NSDictionary', { shown: '__NSDictionaryM', args: { objectForKey: (data, key) => wrap(data[text('key', key)]) } });

// The data of NSData are bytes as a latin1 string.
defineClass('NSData', {
  shown: '__NSCFData',
  zero: { length: (data) => wide(data.length), bytes: (data) => cfRef({ bytes: data }) },
});
defineClass('NSDate', {
  shown: '__NSTaggedDate',
  statics: { dateWithTimeIntervalSinceNow: (seconds) => makeObject('NSDate', host.now() + 1000 * number('interval', seconds)) },
});

defineClass('NSURL', {
  statics: { fileURLWithPath: (path) => makeObject('NSURL', { path: text('path', path) }), URLWithString: (url) => makeObject('NSURL', { url: text('url', url) }) },
  zero: { path: (data) => wrap(data.path || new RegExp('^file://(.*)').exec(data.url || '')?.[1] || null), absoluteString: (data) => wrap(data.url || `file://${encodeURI(data.path)}`),
    isFileURL: (data) => data.path !== undefined },
});

// Preferences of another program, as `defaults read DOMAIN KEY` shows them.
const LAYOUTS = { us: 'US', azerty: 'French', german: 'German', dvorak: 'Dvorak' };
defineClass('NSUserDefaults', {
  initialisers: { initWithSuiteName: (suite) => makeObject('NSUserDefaults', text('suite name', suite)) },
  args: {
    stringForKey: (suite, key) => {
      const layout = LAYOUTS[state().keyboard.layout];
      const known = suite === 'com.apple.HIToolbox' && layout ? { AppleCurrentKeyboardLayoutInputSourceID: `com.apple.keylayout.${layout}` } : {};
      const value = known[text('key', key)];
      return value === undefined ? nil : wrap(String(value));
    },
  },
});

defineClass('NSAppleEventDescriptor', {
  statics: { descriptorWithBundleIdentifier: (bundle) => makeObject('NSAppleEventDescriptor', { bundle: text('bundle id', bundle) }) },
  zero: { aeDesc: (data) => makeObject('AEDesc', data) },
});

defineClass('NSLocale', { zeroStatics: { preferredLanguages: () => wrap(state().languages) } });
defineClass('NSThread', { statics: { sleepForTimeInterval: (seconds) => host.sleep(1000 * number('sleepForTimeInterval', seconds)) } });

// AppKit's values stay frozen until the run loop turns (facts B4).
const turned = [];
const turn = (until) => { host.sleep(Math.max(1, until - host.now())); turned.forEach((react) => react()); };
defineClass('NSRunLoop', {
  zeroStatics: { currentRunLoop: () => makeObject('NSRunLoop', null) },
  args: { runUntilDate: (data, date) => turn(dataOf(date)) },
});

defineClass('NSFileManager', {
  zeroStatics: { defaultManager: () => makeObject('NSFileManager', null) },
  args: {
    // of the simulated disk: the applications that are installed
    contentsOfDirectoryAtPathError: (data, path) => {
      const within = text('path', path);
      const host_ = state().apps.find((app) => `${app.path}/Contents/Frameworks` === within);
      if (host_ && host_.frameworks) return wrap(host_.frameworks);
      const names = state().apps.filter((app) => app.path.replace(/\/[^/]*$/, '') === within).map((app) => app.path.split('/').pop());
      return names.length ? wrap([...names, '.DS_Store', 'Utilities']) : nil;
    },
    displayNameAtPath: (data, path) => {
      const app = state().apps.find((one) => one.path === text('path', path));
      return wrap((app && app.shown_name) || text('path', path).split('/').pop());
    },
    removeItemAtPathError: (data, path) => host.remove(text('path', path)),
    // read the state first, so that earlier posts have taken effect
    fileExistsAtPath: (data, path) => Boolean(state()) && host.isThere(text('path', path)),
  },
});

defineClass('NSBundle', {
  statics: { bundleWithPath: (path) => { const app = state().apps.find((one) => one.path === text('path', path)); return app ? makeObject('NSBundle', app) : nil; } },
  zero: { bundleIdentifier: (app) => (app.bundle_id ? wrap(app.bundle_id) : nil) },
});

// --- C ---

// It segfaults osascript (facts B3).
defineFunction('CFBridgingRelease', { framework: 'Foundation', arity: 1, call: () => host.crash() });

module.exports = { text, dataObject, turned };

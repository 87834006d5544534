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
  statics: {
    stringWithString: (value) => wrap(text('stringWithString', value)),
    stringWithUTF8String: (value) => wrap(text('stringWithUTF8String', value)),
    stringWithContentsOfFileEncodingError: (path, encoding) => {
      const bytes = host.read(text('path', path));
      return bytes === null ? nil : wrap(host.decode(bytes, encodingOf(encoding)));
    },
  },
  initialisers: { initWithDataEncoding: (data, encoding) => (isNull(data) ? nil : wrap(host.decode(dataOf(data), encodingOf(encoding)))) },
  zero: {
    length: (data) => wide(data.length), UTF8String: (data) => data, description: (data) => wrap(data), intValue: (data) => parseInt(data, 10) || 0,
    lowercaseString: (data) => wrap(data.toLowerCase()), uppercaseString: (data) => wrap(data.toUpperCase()),
    stringByExpandingTildeInPath: (data) => wrap(data.replace(/^~/, JSON.parse(host.environmentText).HOME || '/')),
    lastPathComponent: (data) => wrap(data.split('/').pop()),
  },
  args: {
    dataUsingEncoding: (data, encoding) => encoded(data, encoding),
    isEqualToString: (data, other) => data === toJs(other),
    stringByAppendingString: (data, other) => wrap(data + text('string', other)),
    writeToFileAtomicallyEncodingError: (data, path, atomically, encoding) => host.write(text('path', path), host.encode(data, encodingOf(encoding))),
  },
});

defineClass('NSNumber', {
  shown: '__NSCFNumber',
  statics: { numberWithInt: (value) => wrap(Math.trunc(value)), numberWithDouble: (value) => wrap(value), numberWithBool: (value) => wrap(Boolean(value)), numberWithInteger: (value) => wrap(Math.trunc(value)) },
  zero: { intValue: (data) => Math.trunc(data), integerValue: (data) => wide(Math.trunc(data)), unsignedIntValue: (data) => Math.trunc(data), doubleValue: (data) => Number(data),
    floatValue: (data) => Number(data), boolValue: (data) => Boolean(data), stringValue: (data) => wrap(String(Number(data))), description: (data) => wrap(String(data)) },
});

const item = (data, index) => {
  if (!Number.isInteger(index) || index < 0 || index >= data.length) throw new Error(`-[__NSArrayM objectAtIndex:]: index ${index} beyond bounds`);
  return wrap(data[index]);
};
defineClass('NSArray', {
  shown: '__NSArrayM',
  statics: { arrayWithObject: (value) => wrap([value]), arrayWithArray: (value) => wrap(dataOf(value)) },
  zeroStatics: { array: () => wrap([]) },
  zero: { count: (data) => wide(data.length), firstObject: (data) => wrap(data[0]), lastObject: (data) => wrap(data[data.length - 1]) },
  args: { objectAtIndex: (data, index) => item(data, index), containsObject: (data, value) => data.map(toJs).includes(toJs(value)) },
});
defineClass('NSMutableArray', { parent: 'NSArray', shown: '__NSArrayM', zeroStatics: { array: () => makeObject('NSMutableArray', []) }, args: { addObject: (data, value) => { data.push(value); } } });

defineClass('NSDictionary', {
  shown: '__NSDictionaryM',
  statics: { dictionaryWithObjectForKey: (value, key) => wrap({ [toJs(key)]: value }) },
  zeroStatics: { dictionary: () => wrap({}) },
  zero: { count: (data) => wide(Object.keys(data).length), allKeys: (data) => wrap(Object.keys(data)) },
  args: { objectForKey: (data, key) => wrap(data[text('key', key)]), valueForKey: (data, key) => wrap(data[text('key', key)]) },
});
defineClass('NSMutableDictionary', { parent: 'NSDictionary', shown: '__NSDictionaryM', zeroStatics: { dictionary: () => makeObject('NSMutableDictionary', {}) },
  args: { setObjectForKey: (data, value, key) => { data[toJs(key)] = value; } } });

// The data of NSData are bytes as a latin1 string.
defineClass('NSData', {
  shown: '__NSCFData',
  statics: { dataWithContentsOfFile: (path) => { const bytes = host.read(text('path', path)); return bytes === null ? nil : dataObject(bytes); } },
  initialisers: { initWithBase64EncodedStringOptions: (value) => dataObject(host.encode(text('base64', value), 'base64')) },
  zero: { length: (data) => wide(data.length), bytes: (data) => cfRef({ bytes: data }) },
  args: {
    base64EncodedStringWithOptions: (data) => wrap(host.decode(data, 'base64')),
    writeToFileAtomically: (data, path) => host.write(text('path', path), data),
  },
});
defineClass('NSMutableData', {
  parent: 'NSData', statics: { dataWithData: (value) => makeObject('NSMutableData', dataOf(value)), dataWithLength: (size) => makeObject('NSMutableData', '\0'.repeat(size)) },
  zero: { mutableBytes: () => { throw new Error('Ref has incompatible type'); } }, // facts B5
});

defineClass('NSDate', {
  shown: '__NSTaggedDate',
  statics: { dateWithTimeIntervalSinceNow: (seconds) => makeObject('NSDate', host.now() + 1000 * number('interval', seconds)), dateWithTimeIntervalSince1970: (seconds) => makeObject('NSDate', 1000 * number('interval', seconds)) },
  zeroStatics: { date: () => makeObject('NSDate', host.now()) },
  zero: { timeIntervalSince1970: (data) => data / 1000, timeIntervalSinceNow: (data) => (data - host.now()) / 1000 },
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
      const value = { ...known, ...state().defaults[suite] }[text('key', key)];
      return value === undefined ? nil : wrap(String(value));
    },
  },
});

defineClass('NSAppleEventDescriptor', {
  statics: { descriptorWithBundleIdentifier: (bundle) => makeObject('NSAppleEventDescriptor', { bundle: text('bundle id', bundle) }) },
  zero: { aeDesc: (data) => makeObject('AEDesc', data) },
});

defineClass('NSThread', { statics: { sleepForTimeInterval: (seconds) => host.sleep(1000 * number('sleepForTimeInterval', seconds)) } });

// AppKit's values stay frozen until the run loop turns (facts B4).
const turned = [];
const turn = (until) => { host.sleep(Math.max(1, until - host.now())); turned.forEach((react) => react()); };
defineClass('NSRunLoop', {
  zeroStatics: { currentRunLoop: () => makeObject('NSRunLoop', null), mainRunLoop: () => makeObject('NSRunLoop', null) },
  args: { runUntilDate: (data, date) => turn(dataOf(date)), runModeBeforeDate: (data, mode, date) => { turn(dataOf(date)); return true; } },
});
constants.Foundation.NSDefaultRunLoopMode = 'kCFRunLoopDefaultMode';

defineClass('NSProcessInfo', {
  zeroStatics: { processInfo: () => makeObject('NSProcessInfo', null) },
  zero: {
    environment: () => wrap(JSON.parse(host.environmentText)), processIdentifier: () => host.pid, processName: () => wrap('osascript'),
    operatingSystemVersionString: () => { const { system } = state(); return wrap(`Version ${system.version} (Build ${system.build})`); },
    operatingSystemVersion: () => { const [majorVersion, minorVersion = 0, patchVersion = 0] = state().system.version.split('.').map(Number); return { majorVersion, minorVersion, patchVersion }; },
    systemUptime: () => host.now() / 1000,
  },
});

const handle = (name) => () => makeObject('NSFileHandle', name);
defineClass('NSFileHandle', {
  zeroStatics: { fileHandleWithStandardInput: handle('in'), fileHandleWithStandardOutput: handle('out'), fileHandleWithStandardError: handle('err') },
  zero: { readDataToEndOfFile: () => dataObject(host.readStdin()), availableData: () => dataObject(host.readStdin()) },
  args: { writeData: (data, bytes) => (data === 'out' ? host.print(dataOf(bytes)) : host.warn(host.decode(dataOf(bytes), 'utf8'))) },
});

defineClass('NSFileManager', {
  zeroStatics: { defaultManager: () => makeObject('NSFileManager', null) },
  zero: { currentDirectoryPath: () => wrap(host.cwd), temporaryDirectory: () => makeObject('NSURL', { path: JSON.parse(host.environmentText).TMPDIR || '/tmp' }) },
  args: {
    // of the simulated disk: the applications that are installed
    contentsOfDirectoryAtPathError: (data, path) => {
      const names = state().apps.filter((app) => app.path.replace(/\/[^/]*$/, '') === text('path', path)).map((app) => app.path.split('/').pop());
      return names.length ? wrap([...names, '.DS_Store']) : nil;
    },
    fileExistsAtPath: (data, path) => host.isThere(text('path', path)),
    contentsAtPath: (data, path) => { const bytes = host.read(text('path', path)); return bytes === null ? nil : dataObject(bytes); },
    removeItemAtPathError: (data, path) => { const there = host.isThere(text('path', path)); host.remove(text('path', path)); return there; },
  },
});

defineClass('NSBundle', {
  statics: { bundleWithPath: (path) => { const app = state().apps.find((one) => one.path === text('path', path)); return app ? makeObject('NSBundle', app) : nil; } },
  zero: { bundleIdentifier: (app) => (app.bundle_id ? wrap(app.bundle_id) : nil) },
});

defineClass('NSError', { zero: { localizedDescription: (data) => wrap(data.text), code: (data) => data.code } });

// --- C ---

defineFunction('exit', { framework: 'stdlib', arity: 1, call: ([code]) => host.exit(number('exit', code)) });
defineFunction('getenv', { framework: 'stdlib', arity: 1, call: ([name]) => JSON.parse(host.environmentText)[toJs(name)] });
defineFunction('getpid', { framework: 'unistd', arity: 0, call: () => host.pid });
defineFunction('usleep', { framework: 'unistd', arity: 1, call: ([micros]) => { host.sleep(number('usleep', micros) / 1000); return 0; } });
// Private, in libSystem (facts D1): an app answers for itself, everything it started answers by it.
defineFunction('responsibility_get_pid_responsible_for_pid', {
  framework: 'libSystem', arity: 1, needsBinding: true,
  call: ([pid]) => { const world = state(); return appWithPid(world, pid) ? pid : (responsibleApp(world) || { pid: -1 }).pid; },
});
// It segfaults osascript (facts B3).
defineFunction('CFBridgingRelease', { framework: 'Foundation', arity: 1, call: () => host.crash() });
defineFunction('CFRelease', { framework: 'Foundation', arity: 1, call: () => undefined });
defineFunction('NSLog', { framework: 'Foundation', arity: 1, call: ([value]) => host.warn(`${toJs(value)}\n`) });

module.exports = { text, dataObject, turned };

// AppKit: running apps, screens, the pasteboard.
'use strict';
const { constants, wide, defineClass, makeObject, nil, wrap, toJs, dataOf, number } = load('bridge');
const { text, turned } = load('foundation');
const { state, post, appWithPid, appWithBundle, frontToBack, activeDisplays } = load('world');

// Time-varying values are frozen until the run loop turns (SDK header, facts B4); a new process starts fresh.
let snapshot = null;
const frozen = () => (snapshot = snapshot || state());
turned.push(() => { snapshot = null; });

const appObject = (pid) => makeObject('NSRunningApplication', pid);
const running = (world) => world.apps.filter((app) => app.pid !== null);
const seen = (pid) => appWithPid(frozen(), pid) || appWithPid(state(), pid) || { name: '', bundle_id: '', path: '', gone: true };
const orNil = (value) => (value === '' || value === undefined ? nil : wrap(value));

// Activation is only a request (facts B4): the answer is that it was sent.
function requestActivation(pid, options) {
  if (!appWithPid(state(), pid)) return false;
  post({ do: 'activate', pid, all_windows: Boolean(number('activateWithOptions', options) & 1), by: 'NSRunningApplication' });
  return true;
}
const quit = (pid) => { post({ do: 'quit', pid }); return true; };
const setHidden = (hidden) => (pid) => { post({ do: 'set_hidden', pid, hidden }); return true; };
const isActive = (pid) => frozen().frontmost_pid === pid;
const isHidden = (pid) => Boolean(seen(pid).hidden);
const isGone = (pid) => !appWithPid(frozen(), pid);

constants.AppKit = { NSPasteboardTypeString: 'public.utf8-plain-text', NSPasteboardTypePNG: 'public.png', NSPasteboardTypeHTML: 'public.html' };

defineClass('NSRunningApplication', {
  framework: 'AppKit',
  statics: {
    runningApplicationWithProcessIdentifier: (pid) => (appWithPid(state(), number('pid', pid)) ? appObject(toJs(pid)) : nil),
    runningApplicationsWithBundleIdentifier: (bundle) => wrap(running(state()).filter((app) => app.bundle_id === text('bundle id', bundle)).map((app) => appObject(app.pid))),
  },
  zero: {
    localizedName: (pid) => orNil(seen(pid).name), bundleIdentifier: (pid) => orNil(seen(pid).bundle_id), processIdentifier: (pid) => (isGone(pid) ? -1 : pid),
    bundleURL: (pid) => (seen(pid).path ? makeObject('NSURL', { path: seen(pid).path }) : nil),
    executableURL: (pid) => (seen(pid).path ? makeObject('NSURL', { path: `${seen(pid).path}/Contents/MacOS/${seen(pid).name}` }) : nil),
    active: isActive, isActive, hidden: isHidden, isHidden, terminated: isGone, isTerminated: isGone,
    activationPolicy: (pid) => wide(seen(pid).policy), launchDate: () => nil,
    hide: setHidden(true), unhide: setHidden(false), terminate: quit, forceTerminate: quit, // no arguments: they run on access
  },
  args: { activateWithOptions: requestActivation },
});

defineClass('NSWorkspace', {
  framework: 'AppKit',
  zeroStatics: { sharedWorkspace: () => makeObject('NSWorkspace', null) },
  zero: {
    runningApplications: () => wrap(running(frozen()).map((app) => appObject(app.pid))),
    frontmostApplication: () => (appWithPid(frozen(), frozen().frontmost_pid) ? appObject(frozen().frontmost_pid) : nil),
    menuBarOwningApplication: () => (appWithPid(frozen(), frozen().frontmost_pid) ? appObject(frozen().frontmost_pid) : nil),
  },
  args: {
    URLForApplicationWithBundleIdentifier: (data, bundle) => { const app = appWithBundle(state(), text('bundle id', bundle)); return app ? makeObject('NSURL', { path: app.path }) : nil; },
    // nil for what nothing opens
    URLForApplicationToOpenURL: (data, url) => {
      const { url: address, path } = dataOf(url);
      if (path !== undefined && !host.isThere(path)) return nil;
      const key = address === undefined ? /(\.[^./]*)?$/.exec(path)[0] : /^[^:]*:?/.exec(address)[0];
      const app = appWithBundle(state(), path !== undefined && host.isFolder(path) ? 'com.apple.finder' : state().handlers[key]);
      return app ? makeObject('NSURL', { path: app.path }) : nil;
    },
    openURL: (data, url) => { post({ do: 'open_target', target: dataOf(url).url || dataOf(url).path, activate: true }); return true; },
    launchApplication: (data, name) => { const app = state().apps.find((one) => one.name === text('name', name)); if (app) post({ do: 'launch', bundle_id: app.bundle_id, by: 'NSWorkspace' }); return Boolean(app); },
  },
});

// Cocoa: the origin is bottom left of screen 0, y goes up (facts B4).
function cocoaRect([x, y, width, height]) {
  const main = activeDisplays(state())[0];
  return { origin: { x, y: main.bounds[3] - (y + height) }, size: { width, height } };
}
function visibleRect(display) {
  const [x, y, width, height] = display.bounds;
  return cocoaRect(display.main ? [x, y + 25, width, height - 95] : [x, y, width, height]);
}
const screenObject = (display) => makeObject('NSScreen', display);
// "The screen with keyboard focus", which is not always the first one (facts B4).
function focusedScreen() {
  const world = state();
  const window = frontToBack(world).find((one) => one.pid === world.frontmost_pid && one.layer === 0 && one.alpha > 0);
  const inside = (display) => window && window.bounds[0] >= display.bounds[0] && window.bounds[0] < display.bounds[0] + display.bounds[2]
    && window.bounds[1] >= display.bounds[1] && window.bounds[1] < display.bounds[1] + display.bounds[3];
  return screenObject(activeDisplays(world).find(inside) || activeDisplays(world)[0]);
}
defineClass('NSScreen', {
  framework: 'AppKit',
  zeroStatics: { screens: () => wrap(state().session.gui ? activeDisplays(state()).map(screenObject) : []), mainScreen: () => (state().session.gui ? focusedScreen() : nil) },
  zero: {
    frame: (display) => cocoaRect(display.bounds), visibleFrame: visibleRect, backingScaleFactor: (display) => display.scale, localizedName: (display) => wrap(display.name),
    deviceDescription: (display) => wrap({ NSScreenNumber: display.id, NSDeviceIsScreen: 'YES' }),
  },
});

const clipboard = () => state().clipboard;
const bytesOf = (found) => ('text' in found ? host.encode(found.text, 'utf8') : host.encode(found.base64, 'base64'));
const clear = () => { post({ do: 'clipboard_clear' }); return clipboard().change_count; };
function typeName(type) { return text('pasteboard type', type); }
function put(type, what) { post({ do: 'clipboard_set', type: typeName(type), ...what }); return true; }
function stringFor(data, type) {
  const found = clipboard().types[typeName(type)];
  return found ? wrap('text' in found ? found.text : host.decode(bytesOf(found), 'utf8')) : nil;
}
function dataFor(data, type) {
  const found = clipboard().types[typeName(type)];
  return found ? makeObject('NSData', bytesOf(found)) : nil;
}
defineClass('NSPasteboardItem', {
  framework: 'AppKit', init: () => makeObject('NSPasteboardItem', { fresh: {} }),
  zero: { types: (data) => wrap(Object.keys(data ? data.fresh : clipboard().types)) },
  args: {
    stringForType: stringFor, dataForType: dataFor,
    setStringForType: (data, value, type) => { data.fresh[typeName(type)] = { text: text('string', value) }; return true; },
    setDataForType: (data, value, type) => { data.fresh[typeName(type)] = { base64: host.decode(dataOf(value), 'base64') }; return true; },
  },
});
defineClass('NSPasteboard', {
  framework: 'AppKit',
  zeroStatics: { generalPasteboard: () => makeObject('NSPasteboard', null) },
  zero: {
    changeCount: () => wide(clipboard().change_count), clearContents: clear, types: () => wrap(Object.keys(clipboard().types)),
    pasteboardItems: () => wrap(Object.keys(clipboard().types).length ? [makeObject('NSPasteboardItem', null)] : []),
  },
  args: {
    stringForType: stringFor, dataForType: dataFor,
    setStringForType: (data, value, type) => put(type, { text: text('string', value) }),
    setDataForType: (data, value, type) => put(type, { base64: host.decode(dataOf(value), 'base64') }),
    declareTypesOwner: () => clear(),
    writeObjects: (data, objects) => { dataOf(wrap(objects)).forEach((object) => Object.entries(dataOf(object).fresh).forEach(([type, what]) => put(type, what))); return true; },
  },
});

defineClass('NSImage', {
  framework: 'AppKit',
  initialisers: { initWithContentsOfFile: (path) => (host.isThere(text('path', path)) ? makeObject('NSImage', { path: toJs(path) }) : nil) },
  args: { CGImageForProposedRectContextHints: (data) => makeObject('CGImage', data) },
});
defineClass('CGImage', {});

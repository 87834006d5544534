// AppKit: running apps, screens, the pasteboard.
'use strict';
const { wide, defineClass, defineFunction, makeObject, nil, wrap, toJs, dataOf, number, pointee } = load('bridge');
const { text, turned } = load('foundation');
const { state, post, appWithPid, appWithBundle, activeDisplays, windowAt } = load('world');

// Time-varying values are frozen until the run loop turns (SDK header, facts B4); a new process starts fresh.
let snapshot = null;
const frozen = () => (snapshot = snapshot || state());
turned.push(() => { snapshot = null; });
// In some processes the loop never turns.
const frontmost = () => state().switches.frozen_frontmost_pid || frozen().frontmost_pid;

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
const isActive = (pid) => frozen().frontmost_pid === pid;
const isHidden = (pid) => Boolean(seen(pid).hidden);
// One that has just ended is still in the list, without a process id (NSRunningApplication.h).
const isGone = (pid) => !appWithPid(frozen(), pid) || Boolean(seen(pid).terminated);

defineClass('NSRunningApplication', {
  framework: 'AppKit',
  statics: {
    runningApplicationWithProcessIdentifier: (pid) => { frozen(); return appWithPid(state(), number('pid', pid)) ? appObject(toJs(pid)) : nil; },
  },
  zero: {
    localizedName: (pid) => orNil(seen(pid).name), bundleIdentifier: (pid) => orNil(seen(pid).bundle_id), processIdentifier: (pid) => (isGone(pid) ? -1 : pid),
    active: isActive, isActive, hidden: isHidden, isHidden, terminated: isGone, isTerminated: isGone,
    activationPolicy: (pid) => wide(seen(pid).policy), bundleURL: (pid) => (seen(pid).path ? makeObject('NSURL', { path: seen(pid).path }) : nil),
  },
  args: { activateWithOptions: requestActivation },
});

defineClass('NSWorkspace', {
  framework: 'AppKit',
  zeroStatics: { sharedWorkspace: () => makeObject('NSWorkspace', null) },
  zero: {
    runningApplications: () => wrap(running(frozen()).map((app) => appObject(app.pid))),
    frontmostApplication: () => (appWithPid(frozen(), frontmost()) ? appObject(frontmost()) : nil),
  },
  args: {
    URLForApplicationWithBundleIdentifier: (data, bundle) => { const app = appWithBundle(state(), text('bundle id', bundle)); return app ? makeObject('NSURL', { path: app.path }) : nil; },
    // nil if no application opens it
    URLForApplicationToOpenURL: (data, url) => {
      const { url: address, path } = dataOf(url);
      if (path !== undefined && !host.isThere(path)) return nil;
      const key = address === undefined ? /(\.[^./]*)?$/.exec(path)[0] : /^[^:]*:?/.exec(address)[0];
      const app = appWithBundle(state(), path !== undefined && host.isFolder(path) ? 'com.apple.finder' : state().handlers[key]);
      return app ? makeObject('NSURL', { path: app.path }) : nil;
    },
  },
});

// Cocoa: the origin is bottom left of screen 0, y goes up (facts B4).
function cocoaRect([x, y, width, height]) {
  const main = activeDisplays(state())[0];
  return { origin: { x, y: main.bounds[3] - (y + height) }, size: { width, height } };
}
const screenObject = (display) => makeObject('NSScreen', display);
// The character of a key in the keyboard's layout. It is unknown whether the bridge returns it for an event that is only created.
function charactersOf({ unicode, keycode, flags }) {
  const { keyboard, switches } = state();
  if (unicode || !switches.key_events_have_characters) return unicode;
  const [plain, shifted, commanded] = keyboard.keys[keycode] || ['', '', ''];
  return flags & 0x100000 ? commanded : flags & 0x20000 ? shifted : plain;
}
// An event that was made, as AppKit reads it; and the pointer, counted from the bottom of the main screen.
defineClass('NSEvent', {
  framework: 'AppKit',
  statics: { eventWithCGEvent: (event) => makeObject('NSEvent', pointee(event).event) },
  zeroStatics: { mouseLocation: () => ({ x: state().pointer.x, y: activeDisplays(state())[0].bounds[3] - state().pointer.y }) },
  zero: { characters: (event) => wrap(charactersOf(event)), type: (event) => wide(event.type), keyCode: (event) => event.keycode },
});
// The number of the window that a press there reaches, of any application; 0 or an unlisted number if the hit test fails.
defineClass('NSWindow', {
  framework: 'AppKit',
  statics: { windowNumberAtPointBelowWindowWithWindowNumber: (point, below) => {
    const world = state();
    number('windowNumberAtPoint: below', below);
    const hit = windowAt(world, number('x', point.x), activeDisplays(world)[0].bounds[3] - number('y', point.y));
    return wide({ works: hit ? hit.id : 0, zero: 0, unknown: 999999 }[world.switches.hit_test]);
  } },
});
defineFunction('NSMakeRect', { framework: 'Foundation', arity: 4, call: (given) => cocoaNumbers(given) });
const cocoaNumbers = (given) => { const [x, y, width, height] = given.map((one) => number('NSMakeRect', one)); return { origin: { x, y }, size: { width, height } }; };

defineClass('NSScreen', {
  framework: 'AppKit',
  zeroStatics: { screens: () => wrap(state().session.gui ? activeDisplays(state()).map(screenObject) : []) },
  zero: {
    frame: (display) => cocoaRect(display.bounds), backingScaleFactor: (display) => display.scale, localizedName: (display) => wrap(display.name),
    deviceDescription: (display) => wrap({ NSScreenNumber: display.id }),
  },
});

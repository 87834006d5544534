// CoreGraphics: the window list, displays, the session, permissions, and events.
'use strict';
const { constants, defineFunction, makeObject, isNull, isObject, dataOf, pointee, number, isPlainRef, isKind } = load('bridge');
const { state, post, strict, ownerName, isOnScreen, frontToBack, activeDisplays, responsibleApp } = load('world');

constants.CoreGraphics = {
  kCGWindowNumber: 'kCGWindowNumber', kCGWindowOwnerPID: 'kCGWindowOwnerPID', kCGWindowOwnerName: 'kCGWindowOwnerName', kCGWindowName: 'kCGWindowName',
  kCGWindowBounds: 'kCGWindowBounds', kCGWindowLayer: 'kCGWindowLayer', kCGWindowAlpha: 'kCGWindowAlpha', kCGWindowIsOnscreen: 'kCGWindowIsOnscreen',
};
// Whether JXA has the enums is contradictory in public (facts B3, B5): they are undefined here, so pass numbers.
const fn = (name, arity, returns, call, more) => defineFunction(name, { arity, returns, call, ...more });
const bind = { needsBinding: true };

// --- permissions and session: they answer for the responsible process (facts B6) ---

const granted = (kind) => state().permissions[kind] === 'granted';
// stale: it refers to an older copy of the host
fn('CGPreflightScreenCaptureAccess', 0, 'bool', () => ['granted', 'stale'].includes(state().permissions.screen_recording), bind);
// One of the two preflights was seen to return no while the other returned yes (facts D4).
fn('CGPreflightPostEventAccess', 0, 'bool', () => granted('accessibility') && state().switches.post_event_preflight === 'agrees', bind);
// A prompt on the user's screen: the product must never raise one by itself (B6).
const request = (kind) => () => { post({ do: 'dialog', text: `Terminal would like access: ${kind}` }); return granted(kind); };
fn('CGRequestScreenCaptureAccess', 0, 'bool', request('screen_recording'), bind);
fn('CGRequestPostEventAccess', 0, 'bool', request('accessibility'), bind);

// Asks without a prompt when the last argument is false: 0 allowed, -1743 denied, -1744 would ask, -600 does not run (facts D2).
fn('AEDeterminePermissionToAutomateTarget', 4, 'int', ([target, , , asks]) => {
  const { bundle } = dataOf(target);
  const app = state().apps.find((one) => one.bundle_id === bundle);
  if (!app || app.pid === null) return -600;
  const { automation } = state().permissions;
  const answer = automation[bundle] || automation['*'];
  if (answer === 'not_asked' && asks) { post({ do: 'dialog', text: `Terminal wants access to control ${app.name}.` }); host.hang(); }
  return { granted: 0, denied: -1743, not_asked: -1744 }[answer];
}, { ...bind, framework: 'CoreServices' });

fn('CGSessionCopyCurrentDictionary', 0, 'cf', () => {
  const { session } = state();
  if (!session.gui) return null; // no GUI session (facts D6)
  const known = { kCGSSessionUserNameKey: session.user, kCGSSessionUserIDKey: 501 };
  if (session.on_console !== null) known.kCGSSessionOnConsoleKey = session.on_console; // it is not documented to be always present
  if (session.locked) known.CGSSessionScreenIsLocked = true; // only while locked
  return makeObject('NSDictionary', known);
});

// --- windows ---

const ON_SCREEN_ONLY = 1; const NO_DESKTOP = 16;

function listed(world, option) {
  // the order of option All is not documented (facts B3)
  const windows = option & ON_SCREEN_ONLY ? frontToBack(world) : [...world.windows].sort((a, b) => a.id - b.id);
  return option & NO_DESKTOP ? windows.filter((window) => !window.desktop) : windows;
}

function windowInfo(world, window) {
  const [X, Y, Width, Height] = window.bounds;
  const info = {
    kCGWindowNumber: window.id, kCGWindowStoreType: 1, kCGWindowLayer: window.layer, kCGWindowBounds: { X, Y, Width, Height }, kCGWindowSharingState: window.sharing === 'none' ? 0 : 1,
    kCGWindowAlpha: window.alpha, kCGWindowOwnerPID: window.pid, kCGWindowMemoryUsage: 2288, kCGWindowOwnerName: ownerName(world, window),
  };
  if (isOnScreen(world, window)) info.kCGWindowIsOnscreen = true; // absent when off screen (facts 6.3.9)
  // Other programs' titles need Screen Recording, except menu bar items; the host that we answer for always sees its own.
  const isOurs = (responsibleApp(world) || {}).pid === window.pid;
  if ((world.permissions.screen_recording === 'granted' || isOurs || window.layer > 0) && window.title) info.kCGWindowName = window.title;
  return info;
}

fn('CGWindowListCopyWindowInfo', 2, 'cf', ([option, relativeTo]) => {
  const world = state();
  const bits = number('CGWindowListCopyWindowInfo: option', option);
  number('CGWindowListCopyWindowInfo: window id', relativeTo);
  if (!world.session.gui) return null; // NULL outside a GUI session (facts A8)
  const infos = listed(world, bits).map((window) => windowInfo(world, window));
  if (world.switches.deep_unwrap_window_list !== 'works') infos.resistsDeepUnwrap = world.switches.deep_unwrap_window_list;
  return makeObject('NSArray', infos);
});

// Private, and found by dlsym: the process that grants are charged to (facts D1).
fn('responsibility_get_pid_responsible_for_pid', 1, 'int', () => (responsibleApp(state()) || { pid: -1 }).pid, { ...bind, framework: 'libSystem' });

// --- displays ---

const rectangle = ([x, y, width, height]) => ({ origin: { x, y }, size: { width, height } });
const displayWithId = (id) => state().displays.find((display) => display.id === number('display id', id));
const ofDisplay = (read, otherwise) => ([id]) => { const display = displayWithId(id); return display ? read(display) : otherwise; };
fn('CGMainDisplayID', 0, 'number', () => activeDisplays(state())[0].id);
fn('CGDisplayBounds', 1, 'struct', ofDisplay((display) => rectangle(display.bounds), rectangle([0, 0, 0, 0])));

fn('CGGetActiveDisplayList', 3, 'number', ([limit, ids, count]) => {
  const found = activeDisplays(state()).slice(0, number('display list: limit', limit));
  if (!isNull(ids)) found.forEach((display, index) => { ids[index] = display.id; });
  // An untyped Ref holds one value, no C array (facts B4: some read nothing from it).
  if (!isNull(ids) && !(isPlainRef(ids) && ids.type)) throw new Error('Ref has incompatible type');
  if (!isPlainRef(count)) throw new Error('Ref has incompatible type');
  count[0] = found.length;
  return 0;
});

// --- geometry ---

fn('CGPointMake', 2, 'struct', ([x, y]) => ({ x: number('CGPointMake: x', x), y: number('CGPointMake: y', y) }));

// --- events ---

const ANY_SOURCE = 0; // a NULL source is the combined session state
const sourceOf = (source) => (isNull(source) ? ANY_SOURCE : pointee(source).source);
function eventOf(what, event) {
  const target = pointee(event);
  if (!target || !target.event) throw strict(`${what}: that is not an event`);
  return target.event;
}
function pointOf(what, point) {
  if (point === null || typeof point !== 'object') throw strict(`${what}: that is not a point`);
  return { x: number(`${what}: x`, point.x), y: number(`${what}: y`, point.y) };
}
// The system drops the person's events this long after a synthetic event (CGEventSource.h).
const suppressionOf = (source) => { const own = isNull(source) ? null : pointee(source).suppression_s; return own === undefined || own === null ? 0.25 : own; };
const made = (source, values) => ({ event: { flags: null, source_state: sourceOf(source), suppression_s: suppressionOf(source), ...values } });

fn('CGEventSourceCreate', 1, 'cf', ([stateId]) => ({ source: number('CGEventSourceCreate', stateId) }));
fn('CGEventSourceSetLocalEventsSuppressionInterval', 2, 'void', ([source, seconds]) => { pointee(source).suppression_s = number('suppression interval', seconds); });
// The keys that a person holds, perhaps posted keys too, and in the session's state also stuck flags.
const HID_STATE = 1;
fn('CGEventSourceFlagsState', 1, 'long', ([stateId]) => { const { keyboard, switches } = state(); return keyboard.held_flags | (switches.posted_is_held ? keyboard.pressed_flags : 0) | (number('CGEventSourceFlagsState', stateId) === HID_STATE ? 0 : keyboard.session_flags); });
fn('CGEventSourceButtonState', 2, 'bool', ([stateId, button]) => { number('CGEventSourceButtonState', stateId); const { mouse, switches } = state(); return mouse.held.includes(number('button', button)) || (switches.posted_is_held && String(button) in mouse.down); });
fn('CGEventSourceCounterForEventType', 2, 'long', ([stateId, type]) => { number('CGEventSourceCounterForEventType', stateId); return state().mouse.presses[number('event type', type)] || 0; });
// CGEventPost is asynchronous: for some milliseconds (here: many) the pointer still reads as before.
const SETTLES_MS = 100;
let moved = { at: 0, from: null };
const pointerNow = () => (Date.now() - moved.at < SETTLES_MS ? moved.from : state().pointer);
fn('CGEventCreate', 1, 'cf', ([source]) => made(source, { type: 0, ...pointerNow() }));
fn('CGEventGetLocation', 1, 'struct', ([event]) => { const { x, y } = eventOf('CGEventGetLocation', event); return { x, y }; });
fn('CGEventCreateMouseEvent', 4, 'cf', ([source, type, point, button]) => made(source, {
  type: number('CGEventCreateMouseEvent: type', type), ...pointOf('CGEventCreateMouseEvent: point', point), button: number('CGEventCreateMouseEvent: button', button), clickState: 0 }));
fn('CGEventCreateKeyboardEvent', 3, 'cf', ([source, code, down]) => made(source, {
  type: code >= 54 && code <= 63 ? 12 : (typeof down === 'boolean' ? down : number('CGEventCreateKeyboardEvent: keyDown', down)) ? 10 : 11, keycode: number('CGEventCreateKeyboardEvent: key code', code), unicode: '' }));
fn('CGEventCreateScrollWheelEvent2', 6, 'cf', ([source, unit, count, ...wheels]) => made(source, {
  type: 22, unit: number('scroll: unit', unit), wheel: wheels.slice(0, number('scroll: wheel count', count)).map((wheel) => number('scroll: wheel', wheel)) }));

const FIELDS = { 0: 'number', 1: 'clickState', 3: 'button', 4: 'dx', 5: 'dy', 9: 'keycode' };
const WHEELS = [11, 12]; // kCGScrollWheelEventDeltaAxis1 and 2
fn('CGEventSetIntegerValueField', 3, 'void', ([event, field, value]) => { eventOf('CGEventSetIntegerValueField', event)[FIELDS[number('event field', field)] || `field_${field}`] = number('event field value', value); });
fn('CGEventSetDoubleValueField', 3, 'void', ([event, field, value]) => {
  const found = eventOf('CGEventSetDoubleValueField', event);
  found[`double_${FIELDS[number('event field', field)]}`] = number('event field value', value);
});
fn('CGEventGetIntegerValueField', 2, 'long', ([event, field]) => {
  const found = eventOf('CGEventGetIntegerValueField', event);
  return (WHEELS.includes(field) ? (found.wheel || [])[WHEELS.indexOf(field)] : found[FIELDS[number('event field', field)] || `field_${field}`]) || 0;
});
fn('CGEventSetFlags', 2, 'void', ([event, flags]) => { eventOf('CGEventSetFlags', event).flags = number('CGEventSetFlags: flags', flags); });
fn('CGEventGetType', 1, 'number', ([event]) => eventOf('CGEventGetType', event).type);

// Called plainly, or with anything but the bytes of an NSData, it silently makes the event type an "a";
// it works after bindFunction(..., ['void', ['void *', 'unsigned long', 'void *']]) (facts B5).
fn('CGEventKeyboardSetUnicodeString', 3, 'void', ([event, length, text], binding) => {
  const target = eventOf('CGEventKeyboardSetUnicodeString', event);
  const units = number('CGEventKeyboardSetUnicodeString: length', length);
  if (!isObject(text) && text instanceof Object && isPlainRef(text)) throw new Error('Ref has incompatible type');
  const bytes = !isNull(text) && pointee(text) ? pointee(text).bytes : undefined;
  const rebound = binding && binding.types.every((type, index) => index === 1 || type === 'void *');
  if (!rebound || bytes === undefined) { target.unicode = 'a'; return; }
  if (2 * units > bytes.length) throw strict(`CGEventKeyboardSetUnicodeString: ${units} units from ${bytes.length} bytes reads beyond them`);
  target.unicode = host.decode(bytes.slice(0, 2 * units), 'utf16le');
});

fn('CGEventPost', 2, 'void', ([tap, event]) => {
  if (eventOf('CGEventPost', event).x !== undefined) moved = { from: pointerNow(), at: Date.now() };
  const { double_dx: dx, double_dy: dy, ...values } = eventOf('CGEventPost', event);
  const doubles = dx !== undefined && dx === values.dx && dy === values.dy ? { doubles: true } : {};
  post({ ...values, ...doubles, tap: number('CGEventPost: tap', tap) });
});

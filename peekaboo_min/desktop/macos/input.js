// one JSON request -> one JSON reply. Does the same as input.swift, on a Mac without a compiler; input.swift documents the request,
// the reply and the functions.
// Comes after window_list.js and accessibility.js.
ObjC.import('Foundation');
// Bound explicitly, because no public script is known to use them unbound.
ObjC.bindFunction('CGEventSourceSetLocalEventsSuppressionInterval', ['void', ['void *', 'double']]);
ObjC.bindFunction('CGEventSourceFlagsState', ['unsigned long', ['int']]);
ObjC.bindFunction('CGEventSourceButtonState', ['bool', ['int', 'unsigned int']]);
ObjC.bindFunction('CGEventSourceCounterForEventType', ['unsigned int', ['int', 'unsigned int']]);
ObjC.bindFunction('TISCopyCurrentKeyboardInputSource', ['id', []]);
ObjC.bindFunction('TISCopyCurrentASCIICapableKeyboardLayoutInputSource', ['id', []]);
ObjC.bindFunction('TISGetInputSourceProperty', ['id', ['id', 'id']]);
ObjC.bindFunction('TISCreateInputSourceList', ['id', ['id', 'bool']]);
ObjC.bindFunction('TISSelectInputSource', ['int', ['id']]);
// Unbound, it ignores JavaScript strings and silently types "a". Bound like this, it accepts a pointer to the bytes of an NSData.
ObjC.bindFunction('CGEventKeyboardSetUnicodeString', ['void', ['void *', 'unsigned long', 'void *']]);

// Numbers, because the bridge does not export every enum (CGEventTypes.h, CGEventSource.h).
const HID_TAP = 0;
const PRIVATE_STATE = -1, HID_STATE = 1;
const FIELDS = {number: 0, clicks: 1, dx: 4, dy: 5}; // step field -> CGEventField
const LINE_UNIT = 1;
const SHIFT = 0x20000, COMMAND = 0x100000, MODIFIERS = 0x1e0000;
const LAST_TYPING_KEY = 50; // higher codes are keys without text, and the numeric pad
const TYPED_S = 0.004; // between the events of a text; not measured
const SLICE_MS = 50; // during a pause, checks the stop file this often
const ANSWER_S = 0.5; // for one accessibility call
const DOCK = 'com.apple.dock';
// Layouts whose characters are at the places of a US keyboard; '' means that the layout's name cannot be read.
const ANSI_LAYOUTS = ['', 'US', 'ABC'];
const SETTLE_MS = 20, MIN_SETTLE_MS = 60, MAX_SETTLE_MS = 500;

let source = null;
let pointer = null; // its last known position
let isCertain = true; // false once an overlay or an open menu may have received a press
let settledAt = 0; // when the last posted event should have arrived, in ms
let pressesBefore = 0; // mouse presses that the system counted before ours

function failure(code, message, reachedId = null, sourceId = null) {
    return {isFailure: true, code: code, message: message, reached_id: reachedId, source_id: sourceId};
}

function listOnScreen() {
    const locked = isLocked();
    const windows = listWindows(ON_SCREEN_ONLY);
    if (locked === null || windows === null) throw failure('NO_GUI_SESSION', 'there is no GUI session');
    if (locked) throw failure('SCREEN_LOCKED', 'the screen is locked');
    return windows;
}

function nameOf(w) {
    return `window ${w.id} of ${w.app || 'an unknown application'}`;
}

function isDock(pid) {
    const app = $.NSRunningApplication.runningApplicationWithProcessIdentifier(pid);
    return !isNil(app) && textOf(app.bundleIdentifier) === DOCK;
}

function windowHitAt(point, windows) {
    try {
        const flipped = $.CGPointMake(point.x, Number($.CGDisplayBounds($.CGMainDisplayID()).size.height) - point.y);
        const id = Number($.NSWindow.windowNumberAtPointBelowWindowWithWindowNumber(flipped, 0));
        return windows.find(w => w.id === id) || null;
    } catch (e) {
        return null;
    }
}

function checkWindowAt(target, point) {
    const windows = listOnScreen();
    const current = windows.find(w => w.id === target.id);
    if (!current) throw failure('WINDOW_NOT_FOUND', `window ${target.id} is no longer on the screen`);
    if (!isSameFrame(current.bounds, target)) {
        throw failure('STALE_SCREENSHOT', `window ${target.id} has just moved or changed its size`);
    }
    if (windows.some(w => w.id !== target.id && isOpenMenu(w))) isCertain = false;
    for (const w of windows) {
        if (w.alpha <= 0 || !containsPoint(w.bounds, point)) continue;
        if (w.id === target.id) return;
        const isOverlay = w.layer !== 0 && encloses(w.bounds, current.bounds);
        const hit = isOverlay ? windowHitAt(point, windows) : w;
        if (hit && hit.id === target.id) return;
        if (hit) throw failure('WINDOW_COVERED', `window ${target.id} is covered by ${nameOf(hit)} at that point`, hit.id);
        if (!isDock(w.pid)) isCertain = false;
    }
    throw failure('WINDOW_COVERED', `that point is outside window ${target.id}`);
}

// Returns the window that accessibility reports as focused, or `front` if it reports none; null if that window is not in the list.
function focusedWindow(pid, windows, front) {
    const element = attribute($.AXUIElementCreateApplication(pid), 'AXFocusedWindow', pid);
    return element ? windowOf(element, windows, pid) : front;
}

function checkKeyboard(target, stopFile) {
    checkNotStopped(stopFile);
    $.NSRunLoop.currentRunLoop.runUntilDate($.NSDate.dateWithTimeIntervalSinceNow(0.001));
    const windows = listOnScreen();
    const lostTo = w => failure('FOCUS_LOST', `${w ? nameOf(w) : 'another application'} has the keyboard focus`, w ? w.id : null);
    const panel = panelWithKeys(target.pid, windows);
    if (panel) throw lostTo(panel);
    const isInFront = isFrontmost(target.pid);
    const pid = isInFront ? target.pid : frontmostPid();
    const front = windows.find(w => w.pid === pid && isOrdinary(w));
    if (!isInFront) throw lostTo(pid === target.pid ? null : front);
    const menu = windows.find(w => w.pid === pid && isOpenMenu(w));
    if (menu || target.is_popup) {
        if (menu && target.is_popup && menu.id === target.id) return;
        throw lostTo(menu || front);
    }
    const candidates = windows.filter(w => w.layer >= 0 && w.layer < MENU_LAYER && w.alpha > 0);
    const focused = focusedWindow(pid, candidates, front);
    if (!focused || focused.id !== target.id) throw lostTo(focused);
}

function checkNothingHeld() {
    const isButton = [0, 1, 2].some(number => $.CGEventSourceButtonState(HID_STATE, number));
    const isModifier = (Number($.CGEventSourceFlagsState(HID_STATE)) & MODIFIERS) !== 0;
    if (isButton || isModifier) {
        throw failure('WINDOW_BLOCKED', `a ${isButton ? 'mouse button' : 'modifier key'} is held down`);
    }
}

function checkPointerAt(point) {
    for (let attempt = 0; attempt < 20; attempt++) {
        const location = $.CGEventGetLocation($.CGEventCreate(null));
        pointer = {x: location.x, y: location.y};
        if (Math.abs(location.x - point.x) <= 1 && Math.abs(location.y - point.y) <= 1) return;
        sleep(0.01);
    }
    throw failure(null, 'the pointer did not arrive');
}

function checkNotStopped(stopFile) {
    if (stopFile && $.NSFileManager.defaultManager.fileExistsAtPath($(stopFile))) throw failure('POLICY_DENIED', 'the stop file exists');
}

// Checks this process before its first event, because without the permission the system drops events silently.
function checkAccess() {
    if (!mayAct()) {
        throw failure('PERMISSION_DENIED_ACCESSIBILITY', 'mouse and keyboard cannot be used');
    }
    limitAccessibility(ANSWER_S);
    source = $.CGEventSourceCreate(PRIVATE_STATE);
    $.CGEventSourceSetLocalEventsSuppressionInterval(source, 0);
    // CGEventTypes of a press: left, right and other buttons
    for (const type of [1, 3, 25]) pressesBefore += Number($.CGEventSourceCounterForEventType(HID_STATE, type));
}

let layouts = {};

// Returns {character: key code} while the modifiers in `flags` are held, from events that AppKit translates. Without dead keys.
function layoutFor(flags) {
    if (layouts[flags]) return layouts[flags];
    const codes = layouts[flags] = {};
    for (let code = LAST_TYPING_KEY; code >= 0; code--) {
        const event = $.CGEventCreateKeyboardEvent(source, code, true);
        $.CGEventSetFlags(event, flags);
        const typed = textOf($.NSEvent.eventWithCGEvent(event).characters);
        if (typed && typed.length === 1 && typed >= ' ') codes[typed] = code;
    }
    return codes;
}

function findKey(character, held) {
    for (const flags of held & COMMAND ? [COMMAND, 0, SHIFT] : [0, SHIFT]) {
        const code = layoutFor(flags)[character];
        if (code !== undefined) return {code: code, flags: held | flags};
    }
    return null;
}

// Returns the last part of `com.apple.keylayout.German`, or '' if it cannot be read.
function layoutName() {
    const defaults = $.NSUserDefaults.alloc.initWithSuiteName($('com.apple.HIToolbox'));
    const layout = isNil(defaults) ? null : textOf(defaults.stringForKey($('AppleCurrentKeyboardLayoutInputSourceID')));
    return (layout || '').split('.').pop();
}

function keyForStep(step) {
    const key = step.character === undefined ? step : findKey(step.character, step.held);
    if (key) return key;
    if (Object.keys(layoutFor(0)).length === 0 && !ANSI_LAYOUTS.includes(layoutName())) {
        throw failure('INVALID_ARGUMENT', `the keys of the keyboard layout ${layoutName()} cannot be read`);
    }
    return step;
}

function checkLayout() {
    const source = $.TISCopyCurrentKeyboardInputSource ? $.TISCopyCurrentKeyboardInputSource() : null;
    if (isNil(source)) return;
    const [id, type] = ['ID', 'Type'].map(name => textOf($.TISGetInputSourceProperty(source, $(`TISPropertyInputSource${name}`))));
    if (type === 'TISTypeKeyboardLayout') return;
    throw failure('WINDOW_BLOCKED', `the input method ${id} would compose other text from the keys`, null, id);
}

function selectSource(step) {
    const sources = step.id ? $.TISCreateInputSourceList($({TISPropertyInputSourceID: step.id}), false) : null;
    const source = step.id ? !isNil(sources) && sources.firstObject : $.TISCopyCurrentASCIICapableKeyboardLayoutInputSource();
    if (source && !isNil(source)) $.TISSelectInputSource(source);
    layouts = {};
}

function sleep(seconds) {
    $.NSThread.sleepForTimeInterval(seconds);
}

function post(event, flags) {
    $.CGEventSetFlags(event, flags);
    $.CGEventPost(HID_TAP, event);
    settledAt = Math.max(Date.now(), settledAt) + SETTLE_MS;
}

function postMouse(step) {
    const eventSource = step.no_source ? null : source;
    const event = $.CGEventCreateMouseEvent(eventSource, step.type, $.CGPointMake(step.x, step.y), step.button || 0);
    for (const [name, field] of Object.entries(FIELDS)) {
        const offset = name === 'number' ? pressesBefore : 0;
        if (step[name] !== undefined) $.CGEventSetIntegerValueField(event, field, offset + step[name]);
        // deskflow sets the deltas as doubles, too (OSXScreen.mm)
        if (step[name] !== undefined && name[0] === 'd') $.CGEventSetDoubleValueField(event, field, step[name]);
    }
    post(event, step.flags || 0);
}

function postKey(code, isDown, flags, text) {
    const event = $.CGEventCreateKeyboardEvent(source, code, isDown);
    const units = $(text).dataUsingEncoding($.NSUTF16LittleEndianStringEncoding);
    if (text !== '') $.CGEventKeyboardSetUnicodeString(event, text.length, units.bytes);
    post(event, flags);
}

function typeWithKey(key, text) {
    postKey(key.code, true, key.flags, text);
    sleep(TYPED_S);
    postKey(key.code, false, 0, text);
    sleep(TYPED_S);
}

function typeText(step) {
    if (step.code !== undefined) return typeWithKey({code: step.code, flags: 0}, step.text || '');
    for (const unit of step.text.split('')) typeWithKey(findKey(unit, 0) || {code: 0, flags: 0}, unit);
}

const STEPS = {
    window_at: (step, request) => checkWindowAt(request.window, step),
    pointer_at: checkPointerAt,
    has_keyboard: (step, request) => checkKeyboard(request.window, request.stop_file),
    has_layout: checkLayout,
    select_source: selectSource,
    mouse: postMouse,
    wheel: step => post($.CGEventCreateScrollWheelEvent2(source, LINE_UNIT, 2, step.vertical, step.horizontal, 0), 0),
    key: step => {
        const key = keyForStep(step);
        postKey(key.code, step.is_down, step.is_down ? key.flags : step.flags, '');
    },
    type: (step, request) => {
        checkKeyboard(request.window, request.stop_file);
        typeText(step);
    },
};

function runRelease(steps, request) {
    for (const step of steps) {
        STEPS[step.do](step, request);
        sleep((step.ms || 0) / 1000);
    }
}

function pause(ms, stopFile) {
    for (let left = ms || 0; left > 0; left -= SLICE_MS) {
        sleep(Math.min(left, SLICE_MS) / 1000);
        checkNotStopped(stopFile);
    }
}

function run(argv) {
    const request = readRequest(argv);
    let [completed, release, failed] = [0, [], null];
    try {
        checkAccess();
        runRelease(request.release, request);
        checkNothingHeld();
        for (const step of request.steps) {
            STEPS[step.do](step, request);
            release = step.release || release;
            completed += 1;
            pause(step.ms, request.stop_file);
        }
    } catch (reason) {
        runRelease(release, request);
        if (!reason.isFailure) throw reason;
        failed = reason;
    } finally {
        $.NSFileManager.defaultManager.removeItemAtPathError($(request.record), null);
        if (settledAt) sleep(Math.min(Math.max(settledAt - Date.now(), MIN_SETTLE_MS), MAX_SETTLE_MS) / 1000);
    }
    const {code, message, reached_id, source_id} = failed || {code: null, message: '', reached_id: null, source_id: null};
    return JSON.stringify({
        ok: failed === null, step: completed, pointer: pointer, is_certain: isCertain, code: code, message: message,
        reached_id: reached_id, source_id: source_id, released: failed !== null && release.length > 0,
    });
}

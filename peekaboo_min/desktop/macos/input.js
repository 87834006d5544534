// one JSON request as the argument -> one JSON answer: those of input.swift, for a Mac without a compiler.
// Comes after window_list.js and accessibility.js.
ObjC.import('Foundation');
// Bound by hand because nobody is on record as having found it in the bridge.
ObjC.bindFunction('CGEventSourceSetLocalEventsSuppressionInterval', ['void', ['void *', 'double']]);
ObjC.bindFunction('CGEventSourceFlagsState', ['unsigned long', ['int']]);
ObjC.bindFunction('CGEventSourceButtonState', ['bool', ['int', 'unsigned int']]);
ObjC.bindFunction('CGEventSourceCounterForEventType', ['unsigned int', ['int', 'unsigned int']]);
// As the bridge declares it, it takes no JavaScript value and silently types "a"; it takes the bytes of an NSData as a pointer.
ObjC.bindFunction('CGEventKeyboardSetUnicodeString', ['void', ['void *', 'unsigned long', 'void *']]);

// Numbers: the bridge does not have every enum (CGEventTypes.h, CGEventSource.h).
const HID_TAP = 0;
const PRIVATE_STATE = -1, HID_STATE = 1;
const FIELDS = {number: 0, clicks: 1, dx: 4, dy: 5}; // CGEventField, by our names
const LINE_UNIT = 1;
const SHIFT = 0x20000, COMMAND = 0x100000, MODIFIERS = 0x1e0000;
const LAST_TYPING_KEY = 50; // beyond it are keys without text, and the numeric pad
const TYPED_S = 0.004;
const SLICE_MS = 50; // so often a pause looks at the stop file
const ANSWER_S = 0.5;
const DOCK = 'com.apple.dock';
// On these keyboards a key code is the place of the character; '' where the name cannot be read.
const ANSI_LAYOUTS = ['', 'US', 'ABC'];
// Events of a process that ends at once may be lost: one library gives each 20 ms.
const SETTLE_MS = 20, LEAST_SETTLE_MS = 60, MOST_SETTLE_MS = 500;

let source = null;
let pointer = null;
let isCertain = true;
let settledAt = 0;
let pressesBefore = 0;

function failure(code, message, reachedId) {
    return {isFailure: true, code: code, message: message, reached_id: reachedId === undefined ? null : reachedId};
}

// looking last ---------------------------------------------------------------------------------------------------------

// The windows on the screen, front to back. Nothing that is posted to a locked screen arrives.
function look() {
    const locked = isLocked();
    const windows = windowList(ON_SCREEN_ONLY);
    if (locked === null || windows === null) throw failure('NO_GUI_SESSION', 'there is no GUI session');
    if (locked) throw failure('SCREEN_LOCKED', 'the screen is locked');
    return windows;
}

function named(w) {
    return `window ${w.id} of ${w.app || 'an unknown application'}`;
}

function isDock(pid) {
    const app = $.NSRunningApplication.runningApplicationWithProcessIdentifier(pid);
    return !isNil(app) && textOf(app.bundleIdentifier) === DOCK;
}

// The window that a press there reaches by the window server's own test, which goes past what lets clicks through; null where it
// names none of those listed (without an application object it may not answer). It counts upwards.
function hitWindow(point, windows) {
    try {
        const place = $.CGPointMake(point.x, Number($.CGDisplayBounds($.CGMainDisplayID()).size.height) - point.y);
        const id = Number($.NSWindow.windowNumberAtPointBelowWindowWithWindowNumber(place, 0));
        return windows.find(w => w.id === id) || null;
    } catch (e) {
        return null;
    }
}

// Throws unless a press at this point reaches the window that is meant; notes where that is not certain.
function checkReached(target, point) {
    const windows = look();
    const now = windows.find(w => w.id === target.id);
    if (!now) throw failure('WINDOW_NOT_FOUND', `window ${target.id} is no longer on the screen`);
    if (!isSameFrame(now.bounds, target)) {
        throw failure('STALE_SCREENSHOT', `window ${target.id} moved or changed its size just now`);
    }
    if (windows.some(w => w.id !== target.id && isOpenMenu(w))) isCertain = false;
    for (const w of windows) {
        if (w.alpha <= 0 || !holds(w.bounds, point)) continue;
        if (w.id === target.id) return;
        // an overlay as large as a whole window may let clicks through, which is not in the list of windows
        const isOverlay = w.layer !== 0 && encloses(w.bounds, now.bounds);
        const hit = isOverlay ? hitWindow(point, windows) : w;
        if (hit && hit.id === target.id) return;
        if (hit) throw failure('WINDOW_COVERED', `window ${target.id} is covered by ${named(hit)} there`, hit.id);
        if (!isDock(w.pid)) isCertain = false;
    }
    throw failure('WINDOW_COVERED', `that point is outside window ${target.id}`);
}

// The window that accessibility calls focused, the one in front where it tells none; null for one that is not listed, or two.
function focusedWindow(pid, windows, front) {
    const element = attribute($.AXUIElementCreateApplication(pid), 'AXFocusedWindow', pid);
    return element ? windowOf(element, windows, pid) : front;
}

// Throws unless a key that is posted now goes to the window that is meant.
function checkKeyboard(target, stopFile) {
    checkNotStopped(stopFile);
    // what AppKit tells of the frontmost app does not change before the run loop turns
    $.NSRunLoop.currentRunLoop.runUntilDate($.NSDate.dateWithTimeIntervalSinceNow(0.001));
    const windows = look();
    const lost = w => failure('FOCUS_LOST', `the keyboard is with ${w ? named(w) : 'another application'}`, w ? w.id : null);
    const panel = panelWithKeys(target.pid, windows);
    if (panel) throw lost(panel);
    const isInFront = isFrontmost(target.pid);
    const pid = isInFront ? target.pid : frontmostPid();
    const front = windows.find(w => w.pid === pid && isOrdinary(w));
    if (!isInFront) throw lost(pid === target.pid ? null : front);
    // an open menu takes every key
    const menu = windows.find(w => w.pid === pid && isOpenMenu(w));
    if (menu || target.is_popup) {
        if (menu && target.is_popup && menu.id === target.id) return;
        throw lost(menu || front);
    }
    const own = windows.filter(w => w.layer >= 0 && w.layer < MENU_LAYER && w.alpha > 0);
    const focused = focusedWindow(pid, own, front);
    if (!focused || focused.id !== target.id) throw lost(focused);
}

// What a person holds, by the hardware's own state; caps lock does not count.
function checkNothingHeld() {
    const isButton = [0, 1, 2].some(number => $.CGEventSourceButtonState(HID_STATE, number));
    const isModifier = (Number($.CGEventSourceFlagsState(HID_STATE)) & MODIFIERS) !== 0;
    if (isButton || isModifier) {
        throw failure('WINDOW_BLOCKED', `a ${isButton ? 'mouse button' : 'modifier key'} is held down`);
    }
}

// Posting is asynchronous: the pointer gets 200 ms to arrive.
function checkPointer(point) {
    for (let tries = 0; tries < 20; tries++) {
        const now = $.CGEventGetLocation($.CGEventCreate(null));
        pointer = {x: now.x, y: now.y};
        if (Math.abs(now.x - point.x) <= 1 && Math.abs(now.y - point.y) <= 1) return;
        sleep(0.01);
    }
    throw failure(null, 'the pointer is elsewhere');
}

function checkNotStopped(stopFile) {
    if (stopFile && $.NSFileManager.defaultManager.fileExistsAtPath($(stopFile))) throw failure('POLICY_DENIED', 'the stop file is there');
}

// Without access the system drops every post and reports nothing, so ask in this process, before the first one. One of
// the two answers may be a false no.
function checkAccess() {
    if (!mayAct()) {
        throw failure('PERMISSION_DENIED_ACCESSIBILITY', 'mouse and keyboard cannot be used');
    }
    limitAccessibility(ANSWER_S);
    // A private source does not inherit the modifier keys that somebody is holding down.
    source = $.CGEventSourceCreate(PRIVATE_STATE);
    $.CGEventSourceSetLocalEventsSuppressionInterval(source, 0);
    // of the left, right and other buttons
    for (const type of [1, 3, 25]) pressesBefore += Number($.CGEventSourceCounterForEventType(HID_STATE, type));
}

// the keyboard's layout ------------------------------------------------------------------------------------------------

const layouts = {};

// character -> code of the key that makes it while these modifiers are held, as AppKit reads an event. A dead key has none.
function layoutWith(flags) {
    if (layouts[flags]) return layouts[flags];
    const keys = layouts[flags] = {};
    for (let code = LAST_TYPING_KEY; code >= 0; code--) {
        const event = $.CGEventCreateKeyboardEvent(source, code, true);
        $.CGEventSetFlags(event, flags);
        const typed = textOf($.NSEvent.eventWithCGEvent(event).characters);
        if (typed && typed.length === 1 && typed >= ' ') keys[typed] = code;
    }
    return keys;
}

// {code, flags} of the key that makes a character, null where the layout has none. Command may change a layout's letters.
function keyOf(character, held) {
    for (const flags of held & COMMAND ? [COMMAND, 0, SHIFT] : [0, SHIFT]) {
        const code = layoutWith(flags)[character];
        if (code !== undefined) return {code: code, flags: held | flags};
    }
    return null;
}

// The last part of `com.apple.keylayout.German`; '' where it cannot be read, which is taken for a US keyboard.
function layoutName() {
    const defaults = $.NSUserDefaults.alloc.initWithSuiteName($('com.apple.HIToolbox'));
    const layout = isNil(defaults) ? null : textOf(defaults.stringForKey($('AppleCurrentKeyboardLayoutInputSourceID')));
    return (layout || '').split('.').pop();
}

function resolved(step) {
    const key = step.character === undefined ? step : keyOf(step.character, step.held);
    if (key) return key;
    if (Object.keys(layoutWith(0)).length === 0 && !ANSI_LAYOUTS.includes(layoutName())) {
        throw failure('INVALID_ARGUMENT', `the keys of the keyboard layout ${layoutName()} cannot be read`);
    }
    return step; // the place that it has on a US keyboard, as macOS takes it on Cyrillic ones
}

// posting --------------------------------------------------------------------------------------------------------------

function sleep(seconds) {
    $.NSThread.sleepForTimeInterval(seconds);
}

function post(event, flags) {
    $.CGEventSetFlags(event, flags);
    $.CGEventPost(HID_TAP, event);
    settledAt = Math.max(Date.now(), settledAt) + SETTLE_MS;
}

function postMouse(step) {
    const [from, place] = [step.no_source ? null : source, $.CGPointMake(step.x, step.y)];
    const event = $.CGEventCreateMouseEvent(from, step.type, place, step.button || 0);
    for (const [name, field] of Object.entries(FIELDS)) {
        // a process's first press is taken only where its number follows the system's last one
        const first = name === 'number' ? pressesBefore : 0;
        if (step[name] !== undefined) $.CGEventSetIntegerValueField(event, field, first + step[name]);
    }
    post(event, step.flags || 0);
}

function postKey(code, isDown, flags, text) {
    const event = $.CGEventCreateKeyboardEvent(source, code, isDown);
    const units = $(text).dataUsingEncoding($.NSUTF16LittleEndianStringEncoding);
    if (text !== '') $.CGEventKeyboardSetUnicodeString(event, text.length, units.bytes);
    post(event, flags);
}

// A program may read the text, the key, or both, so that it gets both. The modifiers' own keys are not pressed.
function typeOne(key, text) {
    postKey(key.code, true, key.flags, text);
    sleep(TYPED_S);
    postKey(key.code, false, 0, text);
    sleep(TYPED_S);
}

function typeText(step) {
    if (step.code !== undefined) return typeOne({code: step.code, flags: 0}, step.text || '');
    for (const unit of step.text.split('')) typeOne(keyOf(unit, 0) || {code: 0, flags: 0}, unit);
}

// steps ----------------------------------------------------------------------------------------------------------------

const STEPS = {
    window_at: (step, request) => checkReached(request.window, step),
    pointer_at: checkPointer,
    has_keyboard: (step, request) => checkKeyboard(request.window, request.stop_file),
    mouse: postMouse,
    wheel: step => post($.CGEventCreateScrollWheelEvent2(source, LINE_UNIT, 2, step.vertical, step.horizontal, 0), 0),
    key: step => {
        const key = resolved(step);
        postKey(key.code, step.is_down, step.is_down ? key.flags : step.flags, '');
    },
    type: (step, request) => {
        checkKeyboard(request.window, request.stop_file);
        typeText(step);
    },
};

function letGo(steps, request) {
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
    const request = JSON.parse(argv[0]);
    let [count, held, failed] = [0, [], null];
    try {
        checkAccess();
        letGo(request.release, request);
        checkNothingHeld();
        for (const step of request.steps) {
            STEPS[step.do](step, request);
            held = step.release || held;
            count += 1;
            pause(step.ms, request.stop_file);
        }
    } catch (reason) {
        letGo(held, request);
        if (!reason.isFailure) throw reason;
        failed = reason;
    } finally {
        $.NSFileManager.defaultManager.removeItemAtPathError($(request.record), null);
        if (settledAt) sleep(Math.min(Math.max(settledAt - Date.now(), LEAST_SETTLE_MS), MOST_SETTLE_MS) / 1000);
    }
    const {code, message, reached_id} = failed || {code: null, message: '', reached_id: null};
    return JSON.stringify({
        ok: failed === null, step: count, pointer: pointer, is_certain: isCertain, code: code, message: message,
        reached_id: reached_id, released: failed !== null && held.length > 0,
    });
}

// one JSON request as the argument -> one JSON answer: those that input.swift lists, for a Mac without a compiler. Besides:
//   {"do":"press", ..., "character":"a","using":["command down"],"layouts":["US"]}: on another keyboard layout than these
//       System Events finds the key of the character
// Comes after window_list.js and accessibility.js.
ObjC.import('Foundation');
// Bound by hand because nobody is on record as having found it in the bridge.
ObjC.bindFunction('CGEventSourceSetLocalEventsSuppressionInterval', ['void', ['void *', 'double']]);
// As the bridge declares it, it takes no JavaScript value and silently types "a"; it takes the bytes of an NSData as a pointer.
ObjC.bindFunction('CGEventKeyboardSetUnicodeString', ['void', ['void *', 'unsigned long', 'void *']]);

// Numbers: the bridge does not have every enum (CGEventTypes.h, CGEventSource.h).
const HID_TAP = 0;
const PRIVATE_STATE = -1;
const CLICK_STATE = 1;
const MOVED = 5;
const BUTTONS = { // kCGMouseButton..., and the types of its events
    left: {number: 0, down: 1, up: 2, dragged: 6},
    right: {number: 1, down: 3, up: 4, dragged: 7},
    middle: {number: 2, down: 25, up: 26, dragged: 27},
};
const LINE_UNIT = 1;
const WHEELS = {up: [1, 0], down: [-1, 0], left: [0, 1], right: [0, -1]}; // vertical, horizontal
const LINES_A_NOTCH = 3;
const DRAG_STEPS = 15; // an application follows a drag only through several points
const KEYS = {'\n': 36, '\r': 36, '\r\n': 36, '\t': 48, '\b': 51};
const PIECE = 20; // UTF-16 units an event: what applications are known to read
const HOLD_STEP_MS = 50; // so often the stop file is looked at while a key is held
const ANSWER_S = 0.5;
const DOCK = 'com.apple.dock';

function refusal(code, message, more) {
    return Object.assign({refused: true, code: code, message: message, sent: 0, reached_id: null}, more);
}

function invalid(field) {
    return refusal('INVALID_ARGUMENT', `${field} is missing or wrong`);
}

// Without access the system drops every post and reports nothing, so ask in this process, before the first one. One of
// the two answers may be a false no.
function openSource() {
    if (!mayAct()) {
        throw refusal('PERMISSION_DENIED_ACCESSIBILITY', 'mouse and keyboard events are not allowed without Accessibility access');
    }
    limitAccessibility(ANSWER_S);
    // A private source does not inherit the modifier keys that somebody is holding down.
    const source = $.CGEventSourceCreate(PRIVATE_STATE);
    $.CGEventSourceSetLocalEventsSuppressionInterval(source, 0);
    return source;
}

// looking last ---------------------------------------------------------------------------------------------------------

// The windows on the screen, front to back. Nothing that is posted to a locked screen arrives.
function look() {
    const locked = isLocked();
    const windows = windowList(ON_SCREEN_ONLY);
    if (locked === null || windows === null) throw refusal('NO_GUI_SESSION', 'there is no GUI session');
    if (locked) throw refusal('SCREEN_LOCKED', 'the screen is locked');
    return windows;
}

function named(w) {
    return `window ${w.id} of ${w.app || 'an unknown application'}`;
}

function isDock(pid) {
    const app = $.NSRunningApplication.runningApplicationWithProcessIdentifier(pid);
    return !isNil(app) && textOf(app.bundleIdentifier) === DOCK;
}

// Whose element accessibility finds at a point; null where it cannot tell.
function pidAt(point) {
    const element = Ref();
    const pid = Ref();
    try {
        if ($.AXUIElementCopyElementAtPosition($.AXUIElementCreateSystemWide(), point.x, point.y, element) !== 0) return null;
        return $.AXUIElementGetPid(element[0], pid) === 0 ? Number(pid[0]) : null;
    } catch (e) {
        return null;
    }
}

// An overlay as large as a whole window may let clicks through: the Dock's does, others are not in the list of windows.
function letsThrough(over, target, point) {
    if (isDock(over.pid)) return true;
    const pid = pidAt(point);
    if (pid === null || over.pid === target.pid) return null;
    return pid === target.pid;
}

// Throws unless a press at this point reaches the target; returns whether that is certain.
function checkReached(target, point) {
    const windows = look();
    const now = windows.find(w => w.id === target.id);
    if (!now) throw refusal('WINDOW_NOT_FOUND', `window ${target.id} is no longer on the screen`);
    if (!isSameFrame(now.bounds, target)) {
        throw refusal('STALE_SCREENSHOT', `window ${target.id} moved or changed its size just now`);
    }
    let isCertain = !windows.some(w => w.layer === MENU_LAYER && w.alpha > 0 && w.id !== target.id);
    for (const w of windows) {
        if (w.alpha <= 0 || !holds(w.bounds, point)) continue;
        if (w.id === target.id) return isCertain;
        const passes = w.layer !== 0 && encloses(w.bounds, now.bounds) ? letsThrough(w, now, point) : false;
        if (passes === false) {
            throw refusal('WINDOW_COVERED', `window ${target.id} is covered by ${named(w)} there`, {reached_id: w.id});
        }
        if (passes === null) isCertain = false;
    }
    throw refusal('WINDOW_COVERED', `that point is outside window ${target.id}`);
}

// The window that accessibility calls focused; null where it cannot tell, or where two have its frame.
function focusedWindow(pid, windows) {
    const element = attribute($.AXUIElementCreateApplication(pid), 'AXFocusedWindow', pid);
    return element && windowOf(element, windows, pid);
}

// Throws unless a key that is posted now goes to the target.
function checkKeyboard(target, sent) {
    // what AppKit tells of the frontmost app does not change before the run loop turns
    $.NSRunLoop.currentRunLoop.runUntilDate($.NSDate.dateWithTimeIntervalSinceNow(0.001));
    let windows;
    try {
        windows = look();
    } catch (reason) {
        throw Object.assign(reason, {sent: sent});
    }
    const pid = frontmostPid();
    const lost = w => refusal('FOCUS_LOST', `the keyboard is with ${w ? named(w) : 'another application'}`, {
        sent: sent,
        reached_id: w ? w.id : null,
    });
    const front = windows.find(w => w.pid === pid && isOrdinary(w));
    const menu = windows.find(w => w.pid === pid && w.layer === MENU_LAYER && w.alpha > 0);
    if (pid !== target.pid) throw lost(front);
    // an open menu takes every key
    if (menu || target.is_popup) {
        if (menu && target.is_popup && menu.id === target.id) return;
        throw lost(menu || front);
    }
    const own = windows.filter(w => w.layer >= 0 && w.layer < MENU_LAYER && w.alpha > 0);
    const focused = focusedWindow(pid, own) || front;
    if (!focused || focused.id !== target.id) throw lost(focused);
}

// posting --------------------------------------------------------------------------------------------------------------

function sleep(seconds) {
    $.NSThread.sleepForTimeInterval(seconds);
}

function post(event, flags, pauseSeconds) {
    $.CGEventSetFlags(event, flags);
    $.CGEventPost(HID_TAP, event);
    sleep(pauseSeconds);
}

// 30 ms: AppKit drops clicks that come faster than its event loop turns.
function postMouse(source, type, point, button, clickState, flags) {
    const event = $.CGEventCreateMouseEvent(source, type, $.CGPointMake(point.x, point.y), button);
    $.CGEventSetIntegerValueField(event, CLICK_STATE, clickState);
    post(event, flags, 0.03);
}

function postKey(source, code, flags, text, hold) {
    const units = $(text).dataUsingEncoding($.NSUTF16LittleEndianStringEncoding);
    [true, false].forEach(function (down) {
        const event = $.CGEventCreateKeyboardEvent(source, code, down);
        if (text !== '') $.CGEventKeyboardSetUnicodeString(event, text.length, units.bytes);
        post(event, flags, 0.008);
        if (down && hold) hold();
    });
}

function isNear(now, point) {
    return Math.abs(now.x - point.x) <= 1 && Math.abs(now.y - point.y) <= 1;
}

// Posting is asynchronous: give the pointer up to 200 ms to arrive, then say where it is.
function moveTo(source, point) {
    postMouse(source, MOVED, point, 0, 0, 0);
    let now = $.CGEventGetLocation($.CGEventCreate(null));
    for (let i = 0; i < 20 && !isNear(now, point); i++) {
        sleep(0.01);
        now = $.CGEventGetLocation($.CGEventCreate(null));
    }
    return {x: now.x, y: now.y};
}

// Moves the pointer over the window, then does `act` there a number of times, as long as the window stays under it.
function atPointer(request, times, act) {
    const point = {x: request.x, y: request.y};
    const source = openSource();
    checkReached(request.window, point);
    const answer = {ok: true, pointer: moveTo(source, point), done: 0, is_certain: true};
    if (!isNear(answer.pointer, point)) return answer;
    while (answer.done < times) {
        try {
            // the pointer's arrival, or the act before, may have changed what is there
            answer.is_certain = checkReached(request.window, point) && answer.is_certain;
        } catch (reason) {
            if (!reason.refused || answer.done === 0) throw reason;
            return answer;
        }
        answer.done += 1;
        act(source, point, answer.done);
    }
    return answer;
}

function move(request) {
    return atPointer(request, 1, () => {});
}

function click(request) {
    const button = BUTTONS[request.button];
    return atPointer(request, request.clicks, (source, point, count) => {
        postMouse(source, button.down, point, button.number, count, request.flags);
        postMouse(source, button.up, point, button.number, count, request.flags);
    });
}

function scroll(request) {
    const lines = WHEELS[request.direction].map(sign => sign * LINES_A_NOTCH);
    return atPointer(request, request.amount, source => {
        post($.CGEventCreateScrollWheelEvent2(source, LINE_UNIT, 2, lines[0], lines[1], 0), 0, 0.02);
    });
}

function drag(request) {
    const button = BUTTONS[request.button];
    const end = {x: request.to_x, y: request.to_y};
    return atPointer(request, 1, (source, start) => {
        postMouse(source, button.down, start, button.number, 1, 0);
        try {
            for (let step = 1; step <= DRAG_STEPS; step++) {
                const part = step / DRAG_STEPS;
                const point = {x: start.x + (end.x - start.x) * part, y: start.y + (end.y - start.y) * part};
                postMouse(source, button.dragged, point, button.number, 1, 0);
            }
        } finally {
            postMouse(source, button.up, end, button.number, 1, 0);
        }
    });
}

// Grapheme clusters; a JavaScriptCore that has no Segmenter gets code points, which at least never splits a surrogate pair.
function characters(text) {
    if (typeof Intl !== 'object' || !Intl.Segmenter) return text.match(/\r\n|[^]/gu) || [];
    const parts = new Intl.Segmenter('en', {granularity: 'grapheme'}).segment(text);
    return Array.from(parts, part => part.segment);
}

// What goes out at once: {code} for a key, {text} for characters; a grapheme cluster that is longer than that goes whole.
function piecesOf(text, most) {
    const pieces = [];
    let chunk = '';
    const flush = () => {
        if (chunk !== '') pieces.push({code: 0, text: chunk, length: Array.from(chunk).length});
        chunk = '';
    };
    for (const character of characters(text)) {
        const code = KEYS[character];
        if (code !== undefined || chunk.length + character.length > most) flush();
        if (code !== undefined) pieces.push({code: code, text: '', length: character.length});
        else chunk += character;
    }
    flush();
    return pieces;
}

function isStopped(request) {
    return $.NSFileManager.defaultManager.fileExistsAtPath($(request.stop_file));
}

function stopped(sent) {
    return refusal('POLICY_DENIED', 'the stop file is there', {sent: sent});
}

function typeText(request) {
    const source = openSource();
    let sent = 0;
    for (const piece of piecesOf(request.text, request.delay_ms ? 1 : PIECE)) {
        if (sent) sleep(request.delay_ms / 1000);
        checkKeyboard(request.window, sent);
        if (isStopped(request)) throw stopped(sent);
        postKey(source, piece.code, 0, piece.text, null);
        sent += piece.length;
    }
    return {ok: true, sent: sent};
}

// The last part of `com.apple.keylayout.German`; '' where it cannot be read, which is taken for a US keyboard.
function layoutName() {
    const defaults = $.NSUserDefaults.alloc.initWithSuiteName($('com.apple.HIToolbox'));
    const layout = isNil(defaults) ? null : textOf(defaults.stringForKey($('AppleCurrentKeyboardLayoutInputSourceID')));
    return (layout || '').split('.').pop();
}

function press(request) {
    const source = openSource();
    const layout = request.character === undefined ? '' : layoutName();
    const isElsewhere = layout !== '' && !request.layouts.includes(layout);
    if (isElsewhere && request.hold_ms) {
        throw refusal('INVALID_ARGUMENT', `on the keyboard layout ${layout} a chord with a character cannot be held down`);
    }
    const hold = () => {
        for (let left = request.hold_ms; left > 0 && !isStopped(request); left -= HOLD_STEP_MS) {
            sleep(Math.min(left, HOLD_STEP_MS) / 1000);
        }
    };
    for (let sent = 0; sent < request.repeat; sent++) {
        checkKeyboard(request.window, sent);
        if (isStopped(request)) throw stopped(sent);
        // key codes are places: on a French keyboard cmd+a would be cmd+q. System Events knows the layout.
        if (isElsewhere) Application('System Events').keystroke(request.character, {using: request.using});
        else postKey(source, request.key_code, request.flags, '', hold);
        if (request.hold_ms && isStopped(request)) throw stopped(sent + 1);
    }
    return {ok: true, sent: request.repeat};
}

function preflight() {
    return {
        ok: true,
        accessibility: Boolean($.AXIsProcessTrusted()),
        post_event: Boolean($.CGPreflightPostEventAccess()),
        screen_recording: Boolean($.CGPreflightScreenCaptureAccess()),
    };
}

// requests -------------------------------------------------------------------------------------------------------------

const whole = (low, high) => value => Number.isInteger(value) && value >= low && value <= high;
const keyOf = table => value => typeof value === 'string' && Object.keys(table).includes(value);
const AT_WINDOW = {
    window: w => w !== null && typeof w === 'object' && whole(0, 4294967295)(w.id) && whole(0, 2147483647)(w.pid)
        && ['x', 'y', 'width', 'height'].every(key => Number.isFinite(w[key])) && typeof w.is_popup === 'boolean',
};
const AT_POINT = Object.assign({x: Number.isFinite, y: Number.isFinite}, AT_WINDOW);
const FLAGS = whole(0, 4294967295);
const FIELDS = {
    preflight: {},
    move: AT_POINT,
    click: Object.assign({button: keyOf(BUTTONS), clicks: whole(1, 3), flags: FLAGS}, AT_POINT),
    scroll: Object.assign({direction: keyOf(WHEELS), amount: whole(1, 50)}, AT_POINT),
    drag: Object.assign({to_x: Number.isFinite, to_y: Number.isFinite, button: keyOf(BUTTONS)}, AT_POINT),
    type: Object.assign({
        // A lone surrogate is no text: Swift's JSON reader refuses it too.
        text: value => typeof value === 'string' && !/[\ud800-\udfff]/u.test(value),
        stop_file: value => typeof value === 'string',
        delay_ms: whole(0, 1000),
    }, AT_WINDOW),
    press: Object.assign({
        key_code: whole(0, 65535), flags: FLAGS, hold_ms: whole(0, 10000), repeat: whole(1, 100),
        stop_file: value => typeof value === 'string',
    }, AT_WINDOW),
};

function parsed(text) {
    let request = null;
    try {
        request = JSON.parse(text);
    } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
    }
    if (request === null || typeof request !== 'object' || Array.isArray(request)) throw invalid('the request');
    if (!keyOf(FIELDS)(request.do)) throw invalid('do');
    for (const [name, isRight] of Object.entries(FIELDS[request.do])) {
        if (!isRight(request[name])) throw invalid(name);
    }
    return request;
}

function run(argv) {
    const acts = {preflight: preflight, move: move, click: click, scroll: scroll, drag: drag, type: typeText, press: press};
    try {
        const request = parsed(argv[0]);
        return JSON.stringify(acts[request.do](request));
    } catch (reason) {
        if (!reason.refused) throw reason;
        const {code, message, sent, reached_id} = reason;
        return JSON.stringify({ok: false, code: code, message: message, sent: sent, reached_id: reached_id});
    }
}

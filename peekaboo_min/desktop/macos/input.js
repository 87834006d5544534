// one JSON request as the argument -> one JSON answer; the same contract as input.swift, for a Mac without a compiler
//   {"do":"preflight"}                           -> {"ok":true,"accessibility":b,"post_event":b,"screen_recording":b}
//   {"do":"move","x":n,"y":n}                    -> {"ok":true,"pointer":{"x":n,"y":n}}, read back, screen points
//   {"do":"click","window":W,"x":n,"y":n,"button":"left","clicks":1,"flags":0}
//       -> {"ok":true,"pointer":...,"clicked":n,"is_certain":b}; button left, right or middle; clicks 1 to 3. clicked: how
//          many were made before something else came under the pointer, or 0 where the pointer did not get there.
//          is_certain: no overlay or open menu leaves a doubt whom they reached
//   {"do":"type","window":W,"text":"...","stop_file":"..."}  -> {"ok":true,"sent":n}, in characters
//   {"do":"press","window":W,"key_code":n,"flags":n}         -> {"ok":true}; flags are CGEventFlags bits
//       by JXA also "character", "using" and "layouts": on another keyboard layout than these System Events finds the key
//   refused -> {"ok":false,"code":"...","message":"...","sent":n,"reached_id":n|null}, and nothing was posted after `sent`
//   W is {"id","pid","x","y","width","height","is_popup"}: what must be under the pointer, or have the keyboard, right before
//   each press or piece of text, or nothing is posted
ObjC.import('Foundation');
ObjC.bindFunction('CGPreflightPostEventAccess', ['bool', []]);
// Bound by hand because nobody is on record as having found it in the bridge.
ObjC.bindFunction('CGEventSourceSetLocalEventsSuppressionInterval', ['void', ['void *', 'double']]);
// As the bridge declares it, it takes no JavaScript value and silently types "a"; it takes the bytes of an NSData as a pointer.
ObjC.bindFunction('CGEventKeyboardSetUnicodeString', ['void', ['void *', 'unsigned long', 'void *']]);

// Numbers: the bridge does not have every enum (CGEventTypes.h, CGEventSource.h).
const HID_TAP = 0;
const PRIVATE_STATE = -1;
const CLICK_STATE = 1;
const MOVED = 5;
const BUTTONS = {left: [0, 1, 2], right: [1, 3, 4], middle: [2, 25, 26]}; // button, down, up
const KEYS = {'\n': 36, '\r': 36, '\r\n': 36, '\t': 48, '\b': 51};
const PIECE = 20; // UTF-16 units an event: what applications are known to read
const ANSWER_S = 0.5;
const DOCK = 'com.apple.dock';

function refusal(code, message, more) {
    return Object.assign({refused: true, code: code, message: message, sent: 0, reached_id: null}, more);
}

function invalid(message) {
    return refusal('INVALID_ARGUMENT', message);
}

// Without access the system drops every post and reports nothing, so ask in this process, before the first one. One of
// the two answers may be a false no.
function openSource() {
    if (!$.AXIsProcessTrusted() && !$.CGPreflightPostEventAccess()) {
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
    const about = session();
    const windows = windowList(ON_SCREEN_ONLY);
    if (about === null || windows === null) throw refusal('NO_GUI_SESSION', 'there is no GUI session');
    if (about.is_locked || !about.is_on_console) throw refusal('SCREEN_LOCKED', 'the screen is locked');
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

function post(event, flags, pauseSeconds) {
    $.CGEventSetFlags(event, flags);
    $.CGEventPost(HID_TAP, event);
    $.NSThread.sleepForTimeInterval(pauseSeconds);
}

// 30 ms: AppKit drops clicks that come faster than its event loop turns.
function postMouse(source, type, point, button, clickState, flags) {
    const event = $.CGEventCreateMouseEvent(source, type, $.CGPointMake(point.x, point.y), button);
    $.CGEventSetIntegerValueField(event, CLICK_STATE, clickState);
    post(event, flags, 0.03);
}

function postKey(source, code, flags, text) {
    const units = $(text).dataUsingEncoding($.NSUTF16LittleEndianStringEncoding);
    [true, false].forEach(function (down) {
        const event = $.CGEventCreateKeyboardEvent(source, code, down);
        if (text !== '') $.CGEventKeyboardSetUnicodeString(event, text.length, units.bytes);
        post(event, flags, 0.008);
    });
}

function isWhole(value, low, high) {
    return Number.isInteger(value) && value >= low && value <= high;
}

function pointOf(request) {
    if (!Number.isFinite(request.x) || !Number.isFinite(request.y)) throw invalid('x and y must be finite numbers');
    return {x: request.x, y: request.y};
}

function targetOf(request) {
    const w = request.window;
    const isRead = w !== null && typeof w === 'object' && isWhole(w.id, 0, 4294967295) && isWhole(w.pid, 0, 2147483647)
        && ['x', 'y', 'width', 'height'].every(key => Number.isFinite(w[key])) && typeof w.is_popup === 'boolean';
    if (!isRead) throw invalid('window must have id, pid, x, y, width, height and is_popup');
    return w;
}

function flagsOf(request) {
    if (!isWhole(request.flags, 0, 4294967295)) throw invalid('flags must be a whole number from 0 to 4294967295');
    return request.flags;
}

function isNear(now, point) {
    return Math.abs(now.x - point.x) <= 1 && Math.abs(now.y - point.y) <= 1;
}

// Posting is asynchronous: give the pointer up to 200 ms to arrive, then say where it is.
function moveTo(source, point) {
    postMouse(source, MOVED, point, 0, 0, 0);
    let now = $.CGEventGetLocation($.CGEventCreate(null));
    for (let i = 0; i < 20 && !isNear(now, point); i++) {
        $.NSThread.sleepForTimeInterval(0.01);
        now = $.CGEventGetLocation($.CGEventCreate(null));
    }
    return {x: now.x, y: now.y};
}

function move(request) {
    const point = pointOf(request);
    return {ok: true, pointer: moveTo(openSource(), point)};
}

function click(request) {
    const point = pointOf(request);
    if (!Object.keys(BUTTONS).includes(request.button)) throw invalid('button must be left, right or middle');
    if (!isWhole(request.clicks, 1, 3)) throw invalid('clicks must be 1, 2 or 3');
    const flags = flagsOf(request);
    const target = targetOf(request);
    const button = BUTTONS[request.button];
    const source = openSource();
    checkReached(target, point);
    const answer = {ok: true, pointer: moveTo(source, point), clicked: 0, is_certain: true};
    if (!isNear(answer.pointer, point)) return answer;
    while (answer.clicked < request.clicks) {
        try {
            // the pointer's arrival, or the click before, may have changed what is there
            answer.is_certain = checkReached(target, point) && answer.is_certain;
        } catch (reason) {
            if (!reason.refused || answer.clicked === 0) throw reason;
            return answer;
        }
        answer.clicked += 1;
        postMouse(source, button[1], point, button[0], answer.clicked, flags);
        postMouse(source, button[2], point, button[0], answer.clicked, flags);
    }
    return answer;
}

// Grapheme clusters; a JavaScriptCore that has no Segmenter gets code points, which at least never splits a surrogate pair.
function characters(text) {
    if (typeof Intl !== 'object' || !Intl.Segmenter) return text.match(/\r\n|[^]/gu) || [];
    const parts = new Intl.Segmenter('en', {granularity: 'grapheme'}).segment(text);
    return Array.from(parts, part => part.segment);
}

// What goes out at once: {code} for a key, {text} for characters; a grapheme cluster that is longer than that goes whole.
function piecesOf(text) {
    const pieces = [];
    let chunk = '';
    const flush = () => {
        if (chunk !== '') pieces.push({code: 0, text: chunk, length: Array.from(chunk).length});
        chunk = '';
    };
    for (const character of characters(text)) {
        const code = KEYS[character];
        if (code !== undefined || chunk.length + character.length > PIECE) flush();
        if (code !== undefined) pieces.push({code: code, text: '', length: character.length});
        else chunk += character;
    }
    flush();
    return pieces;
}

function typeText(request) {
    // A lone surrogate is no text: Swift's JSON reader refuses it too.
    if (typeof request.text !== 'string' || /[\ud800-\udfff]/u.test(request.text)) throw invalid('text must be a string');
    if (typeof request.stop_file !== 'string') throw invalid('stop_file must be a string');
    const target = targetOf(request);
    const source = openSource();
    let sent = 0;
    for (const piece of piecesOf(request.text)) {
        checkKeyboard(target, sent);
        if ($.NSFileManager.defaultManager.fileExistsAtPath($(request.stop_file))) {
            throw refusal('POLICY_DENIED', 'the stop file is there', {sent: sent});
        }
        postKey(source, piece.code, 0, piece.text);
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
    if (!isWhole(request.key_code, 0, 65535)) throw invalid('key_code must be a whole number from 0 to 65535');
    const flags = flagsOf(request);
    const target = targetOf(request);
    const source = openSource();
    const layout = request.character === undefined ? '' : layoutName();
    const isElsewhere = layout !== '' && !request.layouts.includes(layout);
    checkKeyboard(target, 0);
    // key codes are places: on a French keyboard cmd+a would be cmd+q. System Events knows the layout.
    if (isElsewhere) Application('System Events').keystroke(request.character, {using: request.using});
    else postKey(source, request.key_code, flags, '');
    return {ok: true};
}

function parsed(text) {
    let request = null;
    try {
        request = JSON.parse(text);
    } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
    }
    const isObject = request !== null && typeof request === 'object' && !Array.isArray(request);
    if (!isObject) throw invalid('the request must be one JSON object');
    return request;
}

function preflight() {
    return {
        ok: true,
        accessibility: Boolean($.AXIsProcessTrusted()),
        post_event: Boolean($.CGPreflightPostEventAccess()),
        screen_recording: Boolean($.CGPreflightScreenCaptureAccess()),
    };
}

function run(argv) {
    const acts = {preflight: preflight, move: move, click: click, type: typeText, press: press};
    try {
        const request = parsed(argv[0]);
        const isKnown = typeof request.do === 'string' && Object.keys(acts).includes(request.do);
        if (!isKnown) throw invalid('do must be preflight, move, click, type or press');
        return JSON.stringify(acts[request.do](request));
    } catch (reason) {
        if (!reason.refused) throw reason;
        const {code, message, sent, reached_id} = reason;
        return JSON.stringify({ok: false, code: code, message: message, sent: sent, reached_id: reached_id});
    }
}

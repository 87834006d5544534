// Comes before the other sources: the window server's list of windows, the session, and what they show of our grants.
ObjC.import('AppKit');
ObjC.import('ApplicationServices');
ObjC.bindFunction('AXIsProcessTrusted', ['bool', []]);
ObjC.bindFunction('CGPreflightPostEventAccess', ['bool', []]);
ObjC.bindFunction('CGPreflightScreenCaptureAccess', ['bool', []]);

// CGWindowListOption, and the level of pop-up menus (CGWindowLevel.h), by number: JXA does not export every enum.
const ALL_WINDOWS = 0;
const ON_SCREEN_ONLY = 1;
const WITHOUT_DESKTOP = 16;
const MENU_LAYER = 101;

// The bridge gives nil as an object or as null, depending on the system.
function isNil(value) {
    return value === null || value === undefined || (typeof value.isNil === 'function' && value.isNil());
}

function textOf(value) {
    return isNil(value) ? null : value.js;
}

// Numbers may come as strings: that is what the bridge makes of 64-bit integers on some systems.
function plainWindow(w) {
    const b = w.kCGWindowBounds;
    return {
        id: Number(w.kCGWindowNumber),
        pid: Number(w.kCGWindowOwnerPID),
        app: w.kCGWindowOwnerName || '',
        title: w.kCGWindowName === undefined ? null : w.kCGWindowName, // absent without Screen Recording
        layer: Number(w.kCGWindowLayer),
        alpha: Number(w.kCGWindowAlpha),
        is_protected: Number(w.kCGWindowSharingState) === 0,  // NSWindowSharingNone: no capture shows it
        on_screen: Boolean(w.kCGWindowIsOnscreen),
        bounds: {x: Number(b.X), y: Number(b.Y), width: Number(b.Width), height: Number(b.Height)},
    };
}

// The windows, front to back where only those on the screen are asked for; null without a GUI session.
function windowList(option) {
    const list = $.CGWindowListCopyWindowInfo(option | WITHOUT_DESKTOP, 0);
    if (!list) return null;
    const cast = ObjC.castRefToObject(list);
    if (isNil(cast)) return null;
    let windows = null;
    try {
        windows = ObjC.deepUnwrap(cast);
    } catch (e) { /* some systems unwrap the items, but not the array */ }
    if (!Array.isArray(windows)) {
        windows = [];
        for (let i = 0; i < Number(cast.count); i++) windows.push(ObjC.deepUnwrap(cast.objectAtIndex(i)));
    }
    return windows.map(plainWindow);
}

// Titles of two applications' windows are visible only with Screen Recording; our host's own always are. The preflight
// answers false in some command line programs that have the grant.
function canRecord(onScreen) {
    const titled = new Set(onScreen.filter(w => w.layer === 0 && w.title).map(w => w.pid));
    return Boolean($.CGPreflightScreenCaptureAccess()) || titled.size > 1;
}

// Whether we may act: either of the two answers may be a false no in a command line program.
function mayAct() {
    return Boolean($.AXIsProcessTrusted()) || Boolean($.CGPreflightPostEventAccess());
}

// Whether this user's session is locked, or behind another user's on the screen; null without a GUI session.
function isLocked() {
    const dictionary = $.CGSessionCopyCurrentDictionary();
    const cast = dictionary ? ObjC.castRefToObject(dictionary) : null;
    if (isNil(cast)) return null;
    const about = ObjC.deepUnwrap(cast) || {};
    const onConsole = about.kCGSSessionOnConsoleKey;
    const isOnConsole = onConsole === undefined || Boolean(Number(onConsole));
    return !isOnConsole || Boolean(Number(about.CGSSessionScreenIsLocked || 0)); // the key is there only while it is locked
}

// As large as what a person would call a window: an app may keep invisible or tiny ones in front of it.
function isLarge(w) {
    return w.alpha > 0 && w.bounds.width >= 50 && w.bounds.height >= 50;
}

function isOrdinary(w) {
    return w.layer === 0 && isLarge(w);
}

function holds(b, point) {
    return b.x <= point.x && point.x < b.x + b.width && b.y <= point.y && point.y < b.y + b.height;
}

function encloses(outer, b) {
    return outer.x <= b.x && outer.y <= b.y
        && outer.x + outer.width >= b.x + b.width && outer.y + outer.height >= b.y + b.height;
}

// Two points apart at most: accessibility and the window server round frames differently.
function isSameFrame(a, b) {
    return ['x', 'y', 'width', 'height'].every(key => Math.abs(a[key] - b[key]) <= 2);
}

function frontmostPid() {
    const app = $.NSWorkspace.sharedWorkspace.frontmostApplication;
    return isNil(app) ? null : Number(app.processIdentifier);
}

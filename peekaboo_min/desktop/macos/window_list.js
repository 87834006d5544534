// Comes before all other sources: the window server's list of windows, the session, and our permissions.
ObjC.import('AppKit');
ObjC.import('ApplicationServices');
ObjC.bindFunction('AXIsProcessTrusted', ['bool', []]);
ObjC.bindFunction('CGPreflightPostEventAccess', ['bool', []]);
ObjC.bindFunction('CGPreflightScreenCaptureAccess', ['bool', []]);

// CGWindowListOption, and the level of pop-up menus (CGWindowLevel.h), as numbers: JXA does not export every enum.
const ALL_WINDOWS = 0;
const ON_SCREEN_ONLY = 1;
const WITHOUT_DESKTOP = 16;
const MENU_LAYER = 101;
const SMALLEST_WINDOW = 50; // points; applications keep many smaller, invisible windows

// Depending on the system, the bridge returns nil as an object or as null.
function isNil(value) {
    return value === null || value === undefined || (typeof value.isNil === 'function' && value.isNil());
}

function textOf(value) {
    return isNil(value) ? null : value.js;
}

// Converts every number: on some systems the bridge returns 64-bit integers as strings.
function toWindow(info) {
    const bounds = info.kCGWindowBounds;
    return {
        id: Number(info.kCGWindowNumber),
        pid: Number(info.kCGWindowOwnerPID),
        app: info.kCGWindowOwnerName || '',
        title: info.kCGWindowName === undefined ? null : info.kCGWindowName, // absent without Screen Recording
        layer: Number(info.kCGWindowLayer),
        alpha: Number(info.kCGWindowAlpha),
        is_protected: Number(info.kCGWindowSharingState) === 0, // NSWindowSharingNone: no capture shows it
        on_screen: Boolean(info.kCGWindowIsOnscreen),
        bounds: {x: Number(bounds.X), y: Number(bounds.Y), width: Number(bounds.Width), height: Number(bounds.Height)},
    };
}

// Returns null without a GUI session. Only ON_SCREEN_ONLY orders the windows front to back.
function listWindows(option) {
    const list = $.CGWindowListCopyWindowInfo(option | WITHOUT_DESKTOP, 0);
    if (!list) return null;
    const array = ObjC.castRefToObject(list);
    if (isNil(array)) return null;
    let infos = null;
    try {
        infos = ObjC.deepUnwrap(array);
    } catch (e) { /* some systems unwrap the items but not the array */ }
    if (!Array.isArray(infos)) {
        infos = [];
        for (let i = 0; i < Number(array.count); i++) infos.push(ObjC.deepUnwrap(array.objectAtIndex(i)));
    }
    return infos.map(toWindow);
}

// Without Screen Recording, only our host application's titles are visible. Titles of two applications prove the permission:
// the preflight returns false in some command line programs that have it.
function canRecord(onScreen) {
    const titled = new Set(onScreen.filter(w => w.layer === 0 && w.title).map(w => w.pid));
    return Boolean($.CGPreflightScreenCaptureAccess()) || titled.size > 1;
}

// In a command line program, either of the two may wrongly return false.
function mayAct() {
    return Boolean($.AXIsProcessTrusted()) || Boolean($.CGPreflightPostEventAccess());
}

// True if the session is locked or another user's session is on the screen; null without a GUI session.
function isLocked() {
    const dictionary = $.CGSessionCopyCurrentDictionary();
    const object = dictionary ? ObjC.castRefToObject(dictionary) : null;
    if (isNil(object)) return null;
    const session = ObjC.deepUnwrap(object) || {};
    const onConsole = session.kCGSSessionOnConsoleKey;
    const isOnConsole = onConsole === undefined || Boolean(Number(onConsole));
    return !isOnConsole || Boolean(Number(session.CGSSessionScreenIsLocked || 0)); // the key exists only while it is locked
}

// True unless the window is invisible or tiny; an application may keep such windows in front of its real ones.
function isLarge(w) {
    return w.alpha > 0 && w.bounds.width >= SMALLEST_WINDOW && w.bounds.height >= SMALLEST_WINDOW;
}

function isOrdinary(w) {
    return w.layer === 0 && isLarge(w);
}

function containsPoint(b, point) {
    return b.x <= point.x && point.x < b.x + b.width && b.y <= point.y && point.y < b.y + b.height;
}

function encloses(outer, b) {
    return outer.x <= b.x && outer.y <= b.y
        && outer.x + outer.width >= b.x + b.width && outer.y + outer.height >= b.y + b.height;
}

// Allows a difference of two points: accessibility and the window server round frames differently.
function isSameFrame(a, b) {
    return ['x', 'y', 'width', 'height'].every(key => Math.abs(a[key] - b[key]) <= 2);
}

function frontmostPid() {
    const app = $.NSWorkspace.sharedWorkspace.frontmostApplication;
    return isNil(app) ? null : Number(app.processIdentifier);
}

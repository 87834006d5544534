// Read before windows.js, apps.js, displays.js, focus.js and permissions.js: the window server's list, and what it shows of our grants.
ObjC.import('AppKit');
ObjC.import('CoreGraphics');
ObjC.bindFunction('CGPreflightScreenCaptureAccess', ['bool', []]);

// CGWindowListOption, by number: JXA does not export every enum.
const ALL_WINDOWS = 0;
const ON_SCREEN_ONLY = 1;
const WITHOUT_DESKTOP = 16;

function windowList(option) {
    const list = $.CGWindowListCopyWindowInfo(option | WITHOUT_DESKTOP, 0);
    if (!list) return null; // no GUI session
    const cast = ObjC.castRefToObject(list);
    if (cast.isNil()) return null;
    try {
        const unwrapped = ObjC.deepUnwrap(cast);
        if (Array.isArray(unwrapped)) return unwrapped;
    } catch (e) { /* some systems unwrap the items, but not the array */ }
    const windows = [];
    for (let i = 0; i < cast.count; i++) windows.push(ObjC.deepUnwrap(cast.objectAtIndex(i)));
    return windows;
}

// Titles of two applications' windows are visible only with Screen Recording; our host's own always are. The preflight
// answers false in some command line programs that have the grant.
function canRecord(onScreen) {
    const titled = new Set(onScreen.filter(w => w.kCGWindowLayer === 0 && w.kCGWindowName).map(w => w.kCGWindowOwnerPID));
    return $.CGPreflightScreenCaptureAccess() || titled.size > 1;
}

// What the session tells of itself; null without a GUI session. CGSSessionScreenIsLocked is there only while it is locked.
function session() {
    const dictionary = $.CGSessionCopyCurrentDictionary();
    return dictionary ? ObjC.deepUnwrap(ObjC.castRefToObject(dictionary)) || {} : null;
}

// A window that a person would call one: an app may keep invisible or tiny ones in front of it.
function isOrdinary(w) {
    return w.kCGWindowLayer === 0 && w.kCGWindowAlpha > 0 && w.kCGWindowBounds.Width >= 50 && w.kCGWindowBounds.Height >= 50;
}

// An overlay of another layer that lies over a whole window lets clicks through, as the Dock's does.
function covers(over, b) {
    const o = over.kCGWindowBounds;
    return over.kCGWindowLayer !== 0 && o.X <= b.x && o.Y <= b.y && o.X + o.Width >= b.x + b.width && o.Y + o.Height >= b.y + b.height;
}

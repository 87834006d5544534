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
    const unwrapped = ObjC.deepUnwrap(cast);
    if (Array.isArray(unwrapped)) return unwrapped;
    const windows = []; // some systems unwrap the items, but not the array
    for (let i = 0; i < cast.count; i++) windows.push(ObjC.deepUnwrap(cast.objectAtIndex(i)));
    return windows;
}

// Titles of two applications' windows are visible only with Screen Recording; our host's own always are. The preflight
// answers false in some command line programs that have the grant.
function canRecord(onScreen) {
    const titled = new Set(onScreen.filter(w => w.kCGWindowLayer === 0 && w.kCGWindowName).map(w => w.kCGWindowOwnerPID));
    return $.CGPreflightScreenCaptureAccess() || titled.size > 1;
}

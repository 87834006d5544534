// Comes after window_list.js. Finds windows, sheets, menus and the focus in the accessibility tree; without the permission, none.
ObjC.import('ApplicationServices');
ObjC.bindFunction('AXUIElementCreateApplication', ['id', ['int']]);
ObjC.bindFunction('AXUIElementCreateSystemWide', ['id', []]);
ObjC.bindFunction('AXUIElementSetMessagingTimeout', ['int', ['id', 'float']]);
ObjC.bindFunction('AXUIElementCopyAttributeValue', ['int', ['id', 'id', 'id*']]);
ObjC.bindFunction('AXUIElementSetAttributeValue', ['int', ['id', 'id', 'id']]);
ObjC.bindFunction('AXUIElementPerformAction', ['int', ['id', 'id']]);
ObjC.bindFunction('AXUIElementCopyElementAtPosition', ['int', ['id', 'float', 'float', 'id*']]);
ObjC.bindFunction('AXUIElementGetPid', ['int', ['id', 'int*']]);

const CANNOT_COMPLETE = -25204; // kAXErrorCannotComplete: the element is gone, or its application did not answer in time
// These limits keep a query short if a tree is very large.
const MAX_CHILDREN = 40;
const MAX_ANCESTORS = 20;
const MAX_WINDOWS = 100;
const PANEL_SERVICE = 'com.apple.appkit.xpc.openAndSavePanelService';
const hungPids = new Set(); // applications that did not answer in time; they are not asked again

// Sets how long a call waits for an application, for all elements of this process.
function limitAccessibility(seconds) {
    $.AXUIElementSetMessagingTimeout($.AXUIElementCreateSystemWide(), seconds);
}

// True for an Open or Save panel. The window server lists it under a process of its own; accessibility lists it under the
// application that opened it.
function isPanel(w) {
    const app = isOrdinary(w) ? $.NSRunningApplication.runningApplicationWithProcessIdentifier(w.pid) : null;
    return !isNil(app) && textOf(app.bundleIdentifier) === PANEL_SERVICE;
}

// Returns null if the element does not have the attribute or its application does not answer.
function attribute(element, name, pid) {
    if (hungPids.has(pid)) return null;
    const value = Ref();
    const error = $.AXUIElementCopyAttributeValue(element, $(name), value);
    if (error === CANNOT_COMPLETE) hungPids.add(pid);
    return error === 0 && !isNil(value[0]) ? value[0] : null;
}

function plainAttribute(element, name, pid) {
    const value = attribute(element, name, pid);
    return value === null ? null : ObjC.unwrap(value);
}

function elements(parent, name, pid, max) {
    const array = attribute(parent, name, pid);
    const list = [];
    for (let i = 0; array && i < Math.min(Number(array.count), max); i++) list.push(array.objectAtIndex(i));
    return list;
}

// Reads the two numbers of an AXValue, or returns null. The bridge cannot unpack the value, but its description is
// `{value = x:10.0 y:45.0 type = ...}`.
function numbersIn(value) {
    const match = isNil(value) ? null : /[xw]:(-?[\d.]+) [yh]:(-?[\d.]+)/.exec(textOf(value.description));
    return match ? [Number(match[1]), Number(match[2])] : null;
}

function boxOf(position, size) {
    const [origin, extent] = [numbersIn(position), numbersIn(size)];
    return origin && extent ? {x: origin[0], y: origin[1], width: extent[0], height: extent[1]} : null;
}

function frameOf(element, pid) {
    return boxOf(attribute(element, 'AXPosition', pid), attribute(element, 'AXSize', pid));
}

// Returns an element's window in the window server's list, or null unless exactly one window matches. Accessibility has no window
// numbers, so compares frames, then titles.
function windowOf(element, windows, pid) {
    const frame = frameOf(element, pid);
    let matches = frame ? windows.filter(w => isSameFrame(w.bounds, frame) && (w.pid === pid || isPanel(w))) : [];
    if (matches.length > 1) {
        const title = plainAttribute(element, 'AXTitle', pid);
        matches = matches.filter(w => w.title === title);
    }
    return matches.length === 1 ? matches[0] : null;
}

// A sheet is a child of the window that it is attached to.
function sheetsOf(element, pid) {
    return elements(element, 'AXChildren', pid, MAX_CHILDREN).filter(child => plainAttribute(child, 'AXRole', pid) === 'AXSheet');
}

// Returns the elements (windows and sheets) with the target's frame; if several have it, those with its title, too. Pairs each
// element with the window to raise for it: a sheet with the window that it is attached to, a window with itself.
function matchingElements(app, target) {
    const windows = elements(app, 'AXWindows', target.pid, MAX_WINDOWS);
    const pairs = windows.map(w => [w, w]).concat(...windows.map(w => sheetsOf(w, target.pid).map(sheet => [sheet, w])));
    const matches = pairs.filter(([element]) => {
        const frame = frameOf(element, target.pid);
        return frame && isSameFrame(frame, target);
    });
    if (matches.length < 2) return matches;
    return matches.filter(([element]) => plainAttribute(element, 'AXTitle', target.pid) === target.title);
}

function pidOf(element) {
    const pid = Ref();
    return $.AXUIElementGetPid(element, pid) === 0 ? Number(pid[0]) : null;
}

// Asks the application itself: NSWorkspace's frontmost application does not change in a process without a run loop.
function isFrontmost(pid) {
    const live = plainAttribute($.AXUIElementCreateApplication(pid), 'AXFrontmost', pid);
    return live === null ? frontmostPid() === pid : Boolean(live);
}

// Returns another application's panel if it has the keyboard focus, or undefined. A panel takes it without becoming frontmost.
// AXFocusedApplication may be outdated: trusts it only if that application shows a panel larger than an item of the menu bar.
function panelWithKeys(pid, windows) {
    const app = attribute($.AXUIElementCreateSystemWide(), 'AXFocusedApplication', 0);
    const owner = app && pidOf(app);
    if (owner === null || owner === pid) return undefined;
    return windows.find(w => w.pid === owner && w.layer > 0 && isLarge(w));
}

// Searches the element at the centre of a frame, then its ancestors. Returns the first match, undefined if none matches, or null
// if accessibility finds no element there.
function findAtCentre(pid, frame, isMatch) {
    const [app, at] = [$.AXUIElementCreateApplication(pid), Ref()];
    const [x, y] = [frame.x + frame.width / 2, frame.y + frame.height / 2];
    if (hungPids.has(pid) || $.AXUIElementCopyElementAtPosition(app, x, y, at) !== 0) return null;
    for (let [element, depth] = [at[0], 0]; element && depth < MAX_ANCESTORS; depth++) {
        if (isMatch(element)) return element;
        element = attribute(element, 'AXParent', pid);
    }
    return undefined;
}

function isMenu(element, pid) {
    return plainAttribute(element, 'AXRole', pid) === 'AXMenu';
}

// True if a window is an open menu, or if accessibility does not answer. An interrupted menu may leave its window behind: then it is
// false, because accessibility finds another element there.
function isOpenMenu(w) {
    if (w.layer !== MENU_LAYER || w.alpha <= 0) return false;
    const isKnown = element => isMenu(element, w.pid) || isSameFrame(frameOf(element, w.pid) || {}, w.bounds);
    return findAtCentre(w.pid, w.bounds, isKnown) !== undefined || hungPids.has(w.pid);
}

// Comes after window_list.js: windows, sheets and the focus as the accessibility tree has them; without the grant: nothing.
ObjC.import('ApplicationServices');
ObjC.bindFunction('AXUIElementCreateApplication', ['id', ['int']]);
ObjC.bindFunction('AXUIElementCreateSystemWide', ['id', []]);
ObjC.bindFunction('AXUIElementSetMessagingTimeout', ['int', ['id', 'float']]);
ObjC.bindFunction('AXUIElementCopyAttributeValue', ['int', ['id', 'id', 'id*']]);
ObjC.bindFunction('AXUIElementSetAttributeValue', ['int', ['id', 'id', 'id']]);
ObjC.bindFunction('AXUIElementPerformAction', ['int', ['id', 'id']]);
ObjC.bindFunction('AXUIElementCopyElementAtPosition', ['int', ['id', 'float', 'float', 'id*']]);
ObjC.bindFunction('AXUIElementGetPid', ['int', ['id', 'int*']]);

const CANNOT_COMPLETE = -25204; // kAXErrorCannotComplete: gone, or it did not answer in time
const MOST_CHILDREN = 40;
const MOST_ANCESTORS = 20;
const hungPids = new Set();
const PANELS = 'com.apple.appkit.xpc.openAndSavePanelService';

// An application that hangs holds each call for this long, so it is asked once. Set for all elements of this process.
function limitAccessibility(seconds) {
    $.AXUIElementSetMessagingTimeout($.AXUIElementCreateSystemWide(), seconds);
}

// An Open or Save panel is a window of another process, to accessibility one of the application that asked for it.
function isPanel(w) {
    const app = isOrdinary(w) ? $.NSRunningApplication.runningApplicationWithProcessIdentifier(w.pid) : null;
    return !isNil(app) && textOf(app.bundleIdentifier) === PANELS;
}

function attribute(element, name, pid) {
    if (hungPids.has(pid)) return null;
    const value = Ref();
    const error = $.AXUIElementCopyAttributeValue(element, $(name), value);
    if (error === CANNOT_COMPLETE) hungPids.add(pid);
    return error === 0 && !isNil(value[0]) ? value[0] : null;
}

function elements(element, name, pid, most) {
    const list = attribute(element, name, pid);
    const found = [];
    for (let i = 0; list && i < Math.min(Number(list.count), most); i++) found.push(list.objectAtIndex(i));
    return found;
}

function plainAttribute(element, name, pid) {
    const value = attribute(element, name, pid);
    return value === null ? null : ObjC.unwrap(value);
}

// Two numbers of an AXValue, or null. It cannot be opened through the bridge; its description reads
// `{value = x:10.0 y:45.0 type = ...}`.
function numbersIn(value) {
    const found = isNil(value) ? null : /[xw]:(-?[\d.]+) [yh]:(-?[\d.]+)/.exec(textOf(value.description));
    return found ? [Number(found[1]), Number(found[2])] : null;
}

function boxOf(position, size) {
    const [place, extent] = [numbersIn(position), numbersIn(size)];
    return place && extent ? {x: place[0], y: place[1], width: extent[0], height: extent[1]} : null;
}

function frameOf(element, pid) {
    return boxOf(attribute(element, 'AXPosition', pid), attribute(element, 'AXSize', pid));
}

// The window server's window of an element; accessibility knows no window numbers: the frame tells windows apart, then
// the title. null where that leaves none, or two.
function windowOf(element, windows, pid) {
    const frame = frameOf(element, pid);
    let found = frame ? windows.filter(w => isSameFrame(w.bounds, frame) && (w.pid === pid || isPanel(w))) : [];
    if (found.length > 1) {
        const title = plainAttribute(element, 'AXTitle', pid);
        found = found.filter(w => w.title === title);
    }
    return found.length === 1 ? found[0] : null;
}

// A sheet is a child of the window that it is attached to.
function sheetsOf(element, pid) {
    return elements(element, 'AXChildren', pid, MOST_CHILDREN).filter(one => plainAttribute(one, 'AXRole', pid) === 'AXSheet');
}

// The elements that may be a window, told by frame, then title: [element, the window to raise]. For a sheet, that is the one it
// is attached to.
function candidates(app, target) {
    const windows = elements(app, 'AXWindows', target.pid, 100);
    const pairs = windows.map(w => [w, w]).concat(...windows.map(w => sheetsOf(w, target.pid).map(sheet => [sheet, w])));
    const found = pairs.filter(pair => {
        const frame = frameOf(pair[0], target.pid);
        return frame && isSameFrame(frame, target);
    });
    if (found.length < 2) return found;
    return found.filter(pair => plainAttribute(pair[0], 'AXTitle', target.pid) === target.title);
}

function pidOf(element) {
    const pid = Ref();
    return $.AXUIElementGetPid(element, pid) === 0 ? Number(pid[0]) : null;
}

// Whether an application is in front: by its own live answer, else by AppKit's, which is frozen where no run loop turns.
function isFrontmost(pid) {
    const live = plainAttribute($.AXUIElementCreateApplication(pid), 'AXFrontmost', pid);
    return live === null ? frontmostPid() === pid : Boolean(live);
}

// The panel of another application that has the keyboard, which it may without coming to the front. What is called the focused
// application can be stale: it counts only where it shows such a panel, larger than a menu bar's item.
function panelWithKeys(pid, windows) {
    const app = attribute($.AXUIElementCreateSystemWide(), 'AXFocusedApplication', 0);
    const owner = app && pidOf(app);
    if (owner === null || owner === pid) return undefined;
    return windows.find(w => w.pid === owner && w.layer > 0 && isLarge(w));
}

// The first that is wanted of the element in the middle of a window and those that hold it; undefined where there is none, null
// where accessibility cannot tell.
function elementAt(pid, frame, isWanted) {
    const [app, at] = [$.AXUIElementCreateApplication(pid), Ref()];
    const [x, y] = [frame.x + frame.width / 2, frame.y + frame.height / 2];
    if (hungPids.has(pid) || $.AXUIElementCopyElementAtPosition(app, x, y, at) !== 0) return null;
    for (let [element, depth] = [at[0], 0]; element && depth < MOST_ANCESTORS; depth++) {
        if (isWanted(element)) return element;
        element = attribute(element, 'AXParent', pid);
    }
    return undefined;
}

function isMenu(element, pid) {
    return plainAttribute(element, 'AXRole', pid) === 'AXMenu';
}

// Whether a window of the menus' layer is a menu: menus that were interrupted stay there, and accessibility does not know them.
// Where it cannot tell what is there, it is one.
function isOpenMenu(w) {
    if (w.layer !== MENU_LAYER || w.alpha <= 0) return false;
    const isKnown = element => isMenu(element, w.pid) || isSameFrame(frameOf(element, w.pid) || {}, w.bounds);
    return elementAt(w.pid, w.bounds, isKnown) !== undefined || hungPids.has(w.pid);
}

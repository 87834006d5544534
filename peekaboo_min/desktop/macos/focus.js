// {"window": {id, pid, title, x, y, width, height}} -> {"is_active", "is_front", "is_trusted": bool, "matches": number}
// Activates the window's application and raises the window. matches: how many elements match the window; raises it only if one does.
// Comes after window_list.js and accessibility.js.
const ANSWER_S = 0.5; // for one accessibility call
const RAISING_ITEM = 'makeKeyAndOrderFront:'; // the identifier that Cocoa gives to menu items that raise a window

// Accessibility lists only windows of the active Space. The application's Window menu, the last but one, lists all by title.
function chooseInMenu(app, target) {
    const bar = target.title ? attribute(app, 'AXMenuBar', target.pid) : null;
    const childrenOf = element => elements(element, 'AXChildren', target.pid, MAX_CHILDREN);
    for (const title of bar ? childrenOf(bar).reverse() : []) {
        const items = [].concat(...childrenOf(title).map(childrenOf));
        const windows = items.filter(item => plainAttribute(item, 'AXIdentifier', target.pid) === RAISING_ITEM);
        const matches = windows.filter(item => plainAttribute(item, 'AXTitle', target.pid) === target.title);
        if (matches.length === 1) $.AXUIElementPerformAction(matches[0], $('AXPress'));
        if (windows.length) return matches.length;
    }
    return 0;
}

// Returns how many elements match the target.
function raise(app, target) {
    const matches = matchingElements(app, target);
    if (!matches.length && !(listWindows(ON_SCREEN_ONLY) || []).some(w => w.id === target.id)) return chooseInMenu(app, target);
    if (matches.length !== 1) return matches.length;
    const window = matches[0][1];
    $.AXUIElementSetAttributeValue(window, $('AXMinimized'), $(false));
    $.AXUIElementPerformAction(window, $('AXRaise'));
    $.AXUIElementSetAttributeValue(window, $('AXMain'), $(true));
    return 1;
}

function run(argv) {
    const target = readRequest(argv).window;
    const app = $.NSRunningApplication.runningApplicationWithProcessIdentifier(target.pid);
    const isTrusted = mayAct();
    let matches = 0;
    if (!isNil(app)) {
        app.activateWithOptions(3); // all windows, ignoring other applications; only a request since macOS 14
        if (isTrusted) {
            limitAccessibility(ANSWER_S);
            const element = $.AXUIElementCreateApplication(target.pid);
            $.AXUIElementSetAttributeValue(element, $('AXFrontmost'), $(true));
            matches = raise(element, target);
        }
        // AppKit's frontmost application does not change before the run loop turns
        $.NSRunLoop.currentRunLoop.runUntilDate($.NSDate.dateWithTimeIntervalSinceNow(0.05));
    }
    const front = (listWindows(ON_SCREEN_ONLY) || []).find(w => w.pid === target.pid && isOrdinary(w));
    return JSON.stringify({
        is_active: isFrontmost(target.pid),
        is_front: Boolean(front) && front.id === target.id,
        is_trusted: isTrusted,
        matches: matches,
    });
}

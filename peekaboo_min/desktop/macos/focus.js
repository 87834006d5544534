// {"window": {id, pid, title, x, y, width, height}} -> {"is_active", "is_front", "is_trusted": bool, "matches": n}
// matches: how many windows of the application could be the one that is meant; only a single one is raised.
const ANSWER_S = 0.5;
const RAISES = 'makeKeyAndOrderFront:'; // an item of the Window menu that raises a window: Cocoa names it by what it does

// Accessibility lists the windows of the active Space; the application's Window menu, its last but one, has all by their titles.
function chooseInMenu(app, target) {
    const bar = target.title ? attribute(app, 'AXMenuBar', target.pid) : null;
    const within = element => elements(element, 'AXChildren', target.pid, MOST_CHILDREN);
    for (const title of bar ? within(bar).reverse() : []) {
        const windows = [].concat(...within(title).map(within)).filter(item => plainAttribute(item, 'AXIdentifier', target.pid) === RAISES);
        const found = windows.filter(item => plainAttribute(item, 'AXTitle', target.pid) === target.title);
        if (found.length === 1) $.AXUIElementPerformAction(found[0], $('AXPress'));
        if (windows.length) return found.length;
    }
    return 0;
}

function raise(app, target) {
    const found = candidates(app, target);
    if (!found.length && !(windowList(ON_SCREEN_ONLY) || []).some(w => w.id === target.id)) return chooseInMenu(app, target);
    if (found.length !== 1) return found.length;
    const element = found[0][1];
    $.AXUIElementSetAttributeValue(element, $('AXMinimized'), $(false));
    $.AXUIElementPerformAction(element, $('AXRaise'));
    $.AXUIElementSetAttributeValue(element, $('AXMain'), $(true));
    return 1;
}

function run(argv) {
    const target = JSON.parse(argv[0]).window;
    const app = $.NSRunningApplication.runningApplicationWithProcessIdentifier(target.pid);
    const trusted = mayAct();
    let matches = 0;
    if (!isNil(app)) {
        app.activateWithOptions(3); // all windows, ignoring other apps; only a request since macOS 14
        if (trusted) {
            limitAccessibility(ANSWER_S);
            const element = $.AXUIElementCreateApplication(target.pid);
            $.AXUIElementSetAttributeValue(element, $('AXFrontmost'), $(true));
            matches = raise(element, target);
        }
        // what AppKit tells of the frontmost app does not change before the run loop turns
        $.NSRunLoop.currentRunLoop.runUntilDate($.NSDate.dateWithTimeIntervalSinceNow(0.05));
    }
    const front = (windowList(ON_SCREEN_ONLY) || []).find(w => w.pid === target.pid && isOrdinary(w));
    return JSON.stringify({
        is_active: frontmostPid() === target.pid,
        is_front: Boolean(front) && front.id === target.id,
        is_trusted: trusted,
        matches: matches,
    });
}

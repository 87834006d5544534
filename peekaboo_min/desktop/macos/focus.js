// {pid, window_id|null, title|null, bounds|null} -> {"activated": bool, "active": bool, "front": bool, "trusted": bool, "matches": n, "title_bar_is_free": bool}
ObjC.import('ApplicationServices');
ObjC.bindFunction('AXIsProcessTrusted', ['bool', []]);
ObjC.bindFunction('AXUIElementCreateApplication', ['id', ['int']]);
ObjC.bindFunction('AXUIElementCopyAttributeValue', ['int', ['id', 'id', 'id*']]);
ObjC.bindFunction('AXUIElementSetAttributeValue', ['int', ['id', 'id', 'id']]);
ObjC.bindFunction('AXUIElementPerformAction', ['int', ['id', 'id']]);

function attribute(element, name) {
    const value = Ref();
    return $.AXUIElementCopyAttributeValue(element, $(name), value) === 0 ? value[0] : null;
}

// An AXValue cannot be opened through the bridge; its description reads `{value = x:10.0 y:45.0 type = ...}`.
function numbers(element, name) {
    const value = attribute(element, name);
    const found = value ? /[xw]:(-?[\d.]+) [yh]:(-?[\d.]+)/.exec(ObjC.unwrap(value.description)) : null;
    return found ? [Number(found[1]), Number(found[2])] : null;
}

function isAt(element, b) {
    const place = numbers(element, 'AXPosition');
    const size = numbers(element, 'AXSize');
    const near = (a, c) => Math.abs(a - c) <= 2;
    return place && size && near(place[0], b.x) && near(place[1], b.y) && near(size[0], b.width) && near(size[1], b.height);
}

// The accessibility tree knows no window numbers: the frame tells windows apart, then the title.
function raise(app, request) {
    const windows = attribute(app, 'AXWindows');
    if (!windows) return 0;
    const titled = w => {
        const title = attribute(w, 'AXTitle');
        return title && ObjC.unwrap(title) === request.title;
    };
    let found = [];
    for (let i = 0; i < windows.count; i++) found.push(windows.objectAtIndex(i));
    found = found.filter(w => isAt(w, request.bounds));
    if (found.length > 1) found = found.filter(titled);
    if (found.length !== 1) return found.length;
    $.AXUIElementSetAttributeValue(found[0], $('AXMinimized'), $(false));
    $.AXUIElementPerformAction(found[0], $('AXRaise'));
    $.AXUIElementSetAttributeValue(found[0], $('AXMain'), $(true));
    return 1;
}

function frontWindow(pid) {
    return (windowList(ON_SCREEN_ONLY) || []).find(w => w.kCGWindowOwnerPID === pid && isOrdinary(w));
}

function titleBarIsFree(request) {
    const x = request.bounds.x + request.bounds.width / 2;
    const y = request.bounds.y + 10;
    const holds = b => b.X <= x && x < b.X + b.Width && b.Y <= y && y < b.Y + b.Height;
    const top = (windowList(ON_SCREEN_ONLY) || []).find(w => w.kCGWindowAlpha > 0 && holds(w.kCGWindowBounds) && !covers(w, request.bounds));
    return Boolean(top) && top.kCGWindowNumber === request.window_id;
}

function run(argv) {
    const request = JSON.parse(argv[0]);
    const app = $.NSRunningApplication.runningApplicationWithProcessIdentifier(request.pid);
    if (app.isNil()) return JSON.stringify({activated: false, active: false, front: false, trusted: true, matches: 0, title_bar_is_free: false});
    const activated = app.activateWithOptions(3); // all windows, ignoring other apps; only a request since macOS 14
    const trusted = $.AXIsProcessTrusted();
    let matches = 0;
    if (trusted) {
        const element = $.AXUIElementCreateApplication(request.pid);
        $.AXUIElementSetAttributeValue(element, $('AXFrontmost'), $(true));
        if (request.window_id !== null) matches = raise(element, request);
    }
    // what AppKit tells of the frontmost app does not change before the run loop turns
    $.NSRunLoop.currentRunLoop.runUntilDate($.NSDate.dateWithTimeIntervalSinceNow(0.05));
    const frontmost = $.NSWorkspace.sharedWorkspace.frontmostApplication;
    const front = frontWindow(request.pid);
    return JSON.stringify({
        activated: Boolean(activated),
        active: !frontmost.isNil() && frontmost.processIdentifier === request.pid,
        front: request.window_id === null || Boolean(front && front.kCGWindowNumber === request.window_id),
        trusted: Boolean(trusted),
        matches: matches,
        title_bar_is_free: request.window_id !== null && titleBarIsFree(request),
    });
}

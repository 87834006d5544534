// {"with_minimised": bool} -> one look at the desktop, or {"windows": null} without a GUI session; with_minimised: tell which are, else all are not:
//   {"windows": [{id, pid, app, bundle_id, title, layer, alpha, on_screen, bounds, kind, parent_id, is_modal, is_minimised}],
//    "apps": [{pid, name, bundle_id, is_active, is_regular, window_count}], "displays": [{name, scale, bounds}], main first,
//    "frontmost_pid": n|null, "can_record": bool, "is_locked": bool}
const ANSWER_S = 0.25; // how long one application may take to answer accessibility
const BUDGET_MS = 700; // and all of them together, before the last one is asked
const MOST_WINDOWS = 60;

function runningApps(onScreen, frontmost) {
    const running = $.NSWorkspace.sharedWorkspace.runningApplications;
    const apps = [];
    for (let i = 0; i < Number(running.count); i++) {
        const app = running.objectAtIndex(i);
        const pid = Number(app.processIdentifier);
        const name = textOf(app.localizedName);
        if (pid < 0 || name === null) continue; // one that has just ended has no process id
        apps.push({
            pid: pid,
            name: name,
            bundle_id: textOf(app.bundleIdentifier),
            is_active: pid === frontmost,
            is_regular: Number(app.activationPolicy) === 0, // NSApplicationActivationPolicyRegular
            window_count: onScreen.filter(w => w.pid === pid && isOrdinary(w)).length,
        });
    }
    return apps;
}

// In the order of NSScreen, the one with the menu bar first.
function screens() {
    const list = $.NSScreen.screens;
    const displays = [];
    let mainHeight = 0;
    for (let i = 0; i < Number(list.count); i++) {
        const screen = list.objectAtIndex(i);
        const {origin, size} = screen.frame;
        const [x, up, width, height] = [origin.x, origin.y, size.width, size.height].map(Number);
        if (i === 0) mainHeight = height;
        // Cocoa counts upwards from the bottom of the main screen, everything else downwards from its top
        const bounds = {x: x, y: mainHeight - up - height, width: width, height: height};
        displays.push({name: textOf(screen.localizedName) || '', scale: Number(screen.backingScaleFactor), bounds: bounds});
    }
    return displays;
}

// Menus that an ordinary application has open belong to its front window.
function markPopups(windows, regular) {
    for (const w of windows) {
        if (w.layer !== MENU_LAYER || !w.on_screen || w.alpha <= 0 || !regular.has(w.pid)) continue;
        const owner = windows.find(one => one.pid === w.pid && one.on_screen && isOrdinary(one));
        Object.assign(w, {kind: 'popup', parent_id: owner ? owner.id : null});
    }
}

// A panel is its application's: that of the window below it, and of one that is in front of all others, the one in front.
// Returns pairs of a panel and the window that it belongs to.
function adoptPanels(onScreen, frontmost) {
    const shown = onScreen.filter(isOrdinary);
    const panels = shown.filter(isPanel);
    return panels.map((panel, number) => {
        const at = shown.indexOf(panel);
        const parent = shown.slice(at + 1).find(w => at === number ? w.pid === frontmost : !panels.includes(w));
        const app = $.NSRunningApplication.runningApplicationWithProcessIdentifier(parent ? parent.pid : frontmost || 0);
        if (!isNil(app)) Object.assign(panel, {pid: Number(app.processIdentifier), app: textOf(app.localizedName)});
        return [panel, parent];
    });
}

function markDialog(dialog, parent) {
    if (dialog) Object.assign(dialog, {kind: 'dialog', is_modal: true, parent_id: parent ? parent.id : null});
}

// Sheets and modal dialogs of one application. One that shows a single window has none, and is not asked.
function markModal(pid, windows) {
    const own = windows.filter(w => w.pid === pid && w.on_screen && w.layer >= 0 && w.layer < MENU_LAYER && w.alpha > 0);
    if (own.length < 2) return;
    for (const element of elements($.AXUIElementCreateApplication(pid), 'AXWindows', pid, MOST_WINDOWS)) {
        const window = windowOf(element, own, pid);
        if (Number(plainAttribute(element, 'AXModal', pid))) markDialog(window, null); // it blocks its whole application
        for (const sheet of sheetsOf(element, pid)) markDialog(windowOf(sheet, own, pid), window);
    }
}

function markMinimised(pid, windows) {
    const own = windows.filter(w => w.pid === pid && !w.on_screen && isOrdinary(w));
    for (const element of elements($.AXUIElementCreateApplication(pid), 'AXWindows', pid, MOST_WINDOWS)) {
        if (!Number(plainAttribute(element, 'AXMinimized', pid))) continue;
        const window = windowOf(element, own, pid);
        if (window) window.is_minimised = true;
    }
}

// Only what a decision needs is asked: the dialogs of the application in front (an act brings its own there first, and
// looks again), and for a list, which windows off the screen are minimised rather than on another Space: nearly every
// application has hidden ones, and those that nap answer slowly.
function askAccessibility(windows, frontmost, asked) {
    if (!mayAct()) return;
    limitAccessibility(ANSWER_S);
    const until = Date.now() + BUDGET_MS;
    if (frontmost !== null) markModal(frontmost, windows);
    const away = new Set(windows.filter(w => !w.on_screen && isOrdinary(w) && asked.has(w.pid)).map(w => w.pid));
    for (const pid of away) {
        if (Date.now() < until) markMinimised(pid, windows);
    }
}

function run(argv) {
    // Only the on-screen list is ordered front to back; what else exists follows it.
    const onScreen = windowList(ON_SCREEN_ONLY);
    if (onScreen === null) return JSON.stringify({windows: null});
    const seen = new Set(onScreen.map(w => w.id));
    const windows = onScreen.concat((windowList(ALL_WINDOWS) || []).filter(w => !seen.has(w.id)));
    const frontmost = frontmostPid();
    const panels = adoptPanels(onScreen, frontmost);
    const apps = runningApps(onScreen, frontmost);
    const bundleIds = new Map(apps.map(app => [app.pid, app.bundle_id]));
    for (const w of windows) {
        const bundleId = bundleIds.get(w.pid) || null;
        Object.assign(w, {bundle_id: bundleId, kind: 'window', parent_id: null, is_modal: false, is_minimised: false});
    }
    const locked = isLocked() !== false;
    const regular = new Set(apps.filter(app => app.is_regular).map(app => app.pid));
    markPopups(windows, regular);
    for (const [panel, parent] of panels) markDialog(panel, parent);
    if (!locked) askAccessibility(windows, frontmost, JSON.parse(argv[0]).with_minimised ? regular : new Set());
    return JSON.stringify({
        windows: windows,
        apps: apps,
        displays: screens(),
        frontmost_pid: frontmost,
        can_record: canRecord(onScreen),
        is_locked: locked,
    });
}

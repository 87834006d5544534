// {"with_minimised": bool} -> one listing of the desktop, or {"windows": null} without a GUI session:
//   {"windows": [{id, pid, app, bundle_id, title, layer, alpha, on_screen, bounds, kind, parent_id, is_modal, is_minimised, is_protected}],
//    "apps": [{pid, name, bundle_id, is_active, is_regular, window_count}], "displays": [{name, scale, bounds}], main display first,
//    "frontmost_pid": number|null, "can_record": bool, "is_locked": bool}
// Without with_minimised, is_minimised is always false.
// Comes after window_list.js and accessibility.js.
const ANSWER_S = 0.25; // for one accessibility call, so that a hung application delays the listing only a little
const BUDGET_MS = 700; // after this, no further application is asked for minimised windows

function runningApps(onScreen, frontmost) {
    const running = $.NSWorkspace.sharedWorkspace.runningApplications;
    const apps = [];
    for (let i = 0; i < Number(running.count); i++) {
        const app = running.objectAtIndex(i);
        const pid = Number(app.processIdentifier);
        const name = textOf(app.localizedName);
        if (pid < 0 || name === null) continue; // an application that has just quit has no process id
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

// In the order of NSScreen.screens: the display with the menu bar is first.
function listDisplays() {
    const screens = $.NSScreen.screens;
    const displays = [];
    let mainHeight = 0;
    for (let i = 0; i < Number(screens.count); i++) {
        const screen = screens.objectAtIndex(i);
        const {origin, size} = screen.frame;
        const [x, bottom, width, height] = [origin.x, origin.y, size.width, size.height].map(Number);
        if (i === 0) mainHeight = height;
        // Cocoa measures y upwards from the bottom of the main display, all other functions downwards from its top
        const bounds = {x: x, y: mainHeight - bottom - height, width: width, height: height};
        displays.push({name: textOf(screen.localizedName) || '', scale: Number(screen.backingScaleFactor), bounds: bounds});
    }
    return displays;
}

// Open menus of a regular application belong to its front window.
function markPopups(windows, regularPids) {
    for (const w of windows) {
        if (w.layer !== MENU_LAYER || !w.on_screen || w.alpha <= 0 || !regularPids.has(w.pid)) continue;
        const owner = windows.find(other => other.pid === w.pid && other.on_screen && isOrdinary(other));
        Object.assign(w, {kind: 'popup', parent_id: owner ? owner.id : null});
    }
}

// The window server lists Open and Save panels under another process. Sets each panel's pid and app name to its application's,
// which is the frontmost one if only panels are in front of the panel, otherwise that of the next window behind it.
// Returns pairs of a panel and its parent window, which may be undefined.
function adoptPanels(onScreen, frontmost) {
    const ordinary = onScreen.filter(isOrdinary);
    const panels = ordinary.filter(isPanel);
    return panels.map((panel, index) => {
        const position = ordinary.indexOf(panel);
        const isInFront = position === index; // all windows in front of it are panels
        const parent = ordinary.slice(position + 1).find(w => isInFront ? w.pid === frontmost : !panels.includes(w));
        const app = $.NSRunningApplication.runningApplicationWithProcessIdentifier(parent ? parent.pid : frontmost || 0);
        if (!isNil(app)) Object.assign(panel, {pid: Number(app.processIdentifier), app: textOf(app.localizedName)});
        return [panel, parent];
    });
}

function markDialog(dialog, parent) {
    if (dialog) Object.assign(dialog, {kind: 'dialog', is_modal: true, parent_id: parent ? parent.id : null});
}

// Marks sheets and modal dialogs. Asks only an application with two windows or more: a single window is no dialog of another.
function markModal(pid, windows) {
    const candidates = windows.filter(w => w.pid === pid && w.on_screen && w.layer >= 0 && w.layer < MENU_LAYER && w.alpha > 0);
    if (candidates.length < 2) return;
    for (const element of elements($.AXUIElementCreateApplication(pid), 'AXWindows', pid, MAX_WINDOWS)) {
        const window = windowOf(element, candidates, pid);
        // a modal dialog has no parent window: it blocks its whole application
        if (Number(plainAttribute(element, 'AXModal', pid))) markDialog(window, null);
        for (const sheet of sheetsOf(element, pid)) markDialog(windowOf(sheet, candidates, pid), window);
    }
}

function markMinimised(pid, windows) {
    const candidates = windows.filter(w => w.pid === pid && !w.on_screen && isOrdinary(w));
    for (const element of elements($.AXUIElementCreateApplication(pid), 'AXWindows', pid, MAX_WINDOWS)) {
        if (!Number(plainAttribute(element, 'AXMinimized', pid))) continue;
        const window = windowOf(element, candidates, pid);
        if (window) window.is_minimised = true;
    }
}

// Marks dialogs and minimised windows. Asks few applications, because those in App Nap answer slowly.
// Dialogs: asks the frontmost application only, because an act brings its application to the front and then lists again.
// Minimised windows: asks the applications in `pidsToAsk` that have windows off the screen.
function askAccessibility(windows, frontmost, pidsToAsk) {
    if (!mayAct()) return;
    limitAccessibility(ANSWER_S);
    const deadline = Date.now() + BUDGET_MS;
    if (frontmost !== null) markModal(frontmost, windows);
    const hidden = windows.filter(w => !w.on_screen && isOrdinary(w) && pidsToAsk.has(w.pid));
    for (const pid of new Set(hidden.map(w => w.pid))) {
        if (Date.now() < deadline) markMinimised(pid, windows);
    }
}

function run(argv) {
    // Only the on-screen list is ordered front to back; all other windows follow it.
    const onScreen = listWindows(ON_SCREEN_ONLY);
    if (onScreen === null) return JSON.stringify({windows: null});
    const onScreenIds = new Set(onScreen.map(w => w.id));
    const windows = onScreen.concat((listWindows(ALL_WINDOWS) || []).filter(w => !onScreenIds.has(w.id)));
    const frontmost = frontmostPid();
    const panels = adoptPanels(onScreen, frontmost);
    const apps = runningApps(onScreen, frontmost);
    const bundleIds = new Map(apps.map(app => [app.pid, app.bundle_id]));
    for (const w of windows) {
        const bundleId = bundleIds.get(w.pid) || null;
        Object.assign(w, {bundle_id: bundleId, kind: 'window', parent_id: null, is_modal: false, is_minimised: false});
    }
    const isUsable = isLocked() === false;
    const regularPids = new Set(apps.filter(app => app.is_regular).map(app => app.pid));
    markPopups(windows, regularPids);
    for (const [panel, parent] of panels) markDialog(panel, parent);
    if (isUsable) askAccessibility(windows, frontmost, readRequest(argv).with_minimised ? regularPids : new Set());
    return JSON.stringify({
        windows: windows,
        apps: apps,
        displays: listDisplays(),
        frontmost_pid: frontmost,
        can_record: canRecord(onScreen),
        is_locked: !isUsable,
    });
}

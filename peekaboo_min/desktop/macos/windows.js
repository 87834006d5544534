// {} -> {"windows": [...] front to back, "frontmost_pid": n|null, "can_record": bool, "is_locked": bool}, or {"windows": null} without a GUI session.
function describe(w, bundleIds) {
    const pid = w.kCGWindowOwnerPID;
    if (!(pid in bundleIds)) {
        const app = $.NSRunningApplication.runningApplicationWithProcessIdentifier(pid);
        bundleIds[pid] = app.isNil() || app.bundleIdentifier.isNil() ? null : app.bundleIdentifier.js;
    }
    return {
        id: w.kCGWindowNumber,
        pid: pid,
        app: w.kCGWindowOwnerName || '',
        bundle_id: bundleIds[pid],
        title: w.kCGWindowName === undefined ? null : w.kCGWindowName,
        layer: w.kCGWindowLayer,
        alpha: w.kCGWindowAlpha,
        on_screen: Boolean(w.kCGWindowIsOnscreen),
        bounds: {x: w.kCGWindowBounds.X, y: w.kCGWindowBounds.Y, width: w.kCGWindowBounds.Width, height: w.kCGWindowBounds.Height},
    };
}

function run(argv) {
    // Only the on-screen list is ordered front to back; what else exists follows it.
    const onScreen = windowList(ON_SCREEN_ONLY);
    if (onScreen === null) return JSON.stringify({windows: null});
    const seen = new Set(onScreen.map(w => w.kCGWindowNumber));
    const others = (windowList(ALL_WINDOWS) || []).filter(w => !seen.has(w.kCGWindowNumber));
    const frontmost = $.NSWorkspace.sharedWorkspace.frontmostApplication;
    const bundleIds = {};
    return JSON.stringify({
        windows: onScreen.concat(others).map(w => describe(w, bundleIds)),
        frontmost_pid: frontmost.isNil() ? null : frontmost.processIdentifier,
        can_record: canRecord(onScreen),
        is_locked: Boolean((session() || {}).CGSSessionScreenIsLocked),
    });
}

// {} -> {"apps": [{pid, name, bundle_id, is_active, is_regular, window_count}]}, window_count being normal windows on the screen.
function run(argv) {
    const counts = {};
    for (const w of windowList(ON_SCREEN_ONLY) || []) {
        if (isOrdinary(w)) counts[w.kCGWindowOwnerPID] = (counts[w.kCGWindowOwnerPID] || 0) + 1;
    }
    const running = $.NSWorkspace.sharedWorkspace.runningApplications;
    const apps = [];
    for (let i = 0; i < running.count; i++) {
        const app = running.objectAtIndex(i);
        const pid = app.processIdentifier;
        if (pid < 0 || app.terminated || app.localizedName.isNil()) continue;
        apps.push({
            pid: pid,
            name: app.localizedName.js,
            bundle_id: app.bundleIdentifier.isNil() ? null : app.bundleIdentifier.js,
            is_active: Boolean(app.active),
            is_regular: app.activationPolicy === 0, // NSApplicationActivationPolicyRegular
            window_count: counts[pid] || 0,
        });
    }
    return JSON.stringify({apps: apps});
}

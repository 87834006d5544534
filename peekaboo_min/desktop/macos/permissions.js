// {} -> {"screen_recording": bool or null, "accessibility": bool, "has_session": bool, "is_locked": bool}; raises no dialog.
// screen_recording is null where two applications show windows and none a title: a preflight's yes may be of an older copy of our host.
function run(argv) {
    const onScreen = windowList(ON_SCREEN_ONLY);
    const records = canRecord(onScreen || []);
    const shown = (onScreen || []).filter(isOrdinary);
    const [pids, titled] = [shown, shown.filter(w => w.title)].map(windows => new Set(windows.map(w => w.pid))); // our host's own always are
    const locked = isLocked();
    return JSON.stringify({
        screen_recording: records && titled.size < 2 && pids.size - titled.size > 1 ? null : records,
        accessibility: mayAct(),
        has_session: locked !== null && onScreen !== null,
        is_locked: Boolean(locked),
    });
}

// {} -> {"screen_recording": bool, "accessibility": bool, "has_session": bool, "is_locked": bool}; raises no dialog.
function run(argv) {
    const onScreen = windowList(ON_SCREEN_ONLY);
    const locked = isLocked();
    return JSON.stringify({
        screen_recording: canRecord(onScreen || []),
        accessibility: mayAct(),
        has_session: locked !== null && onScreen !== null,
        is_locked: Boolean(locked),
    });
}

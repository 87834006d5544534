// {} -> {"screen_recording": bool, "accessibility": bool, "has_session": bool, "is_locked": bool}; raises no dialog.
function run(argv) {
    const onScreen = windowList(ON_SCREEN_ONLY);
    const about = session();
    return JSON.stringify({
        screen_recording: canRecord(onScreen || []),
        accessibility: mayAct(),
        has_session: about !== null && onScreen !== null,
        is_locked: about !== null && (about.is_locked || !about.is_on_console),
    });
}

// {} -> {"screen_recording": bool|null, "accessibility": bool, "has_session": bool, "is_locked": bool}. Opens no dialog.
// screen_recording is null if macOS reports it as granted but two other applications show windows without titles: the permission
// may belong to an older copy of our host application. Our host's own titles are always visible.
// Comes after window_list.js.
function run(argv) {
    const onScreen = listWindows(ON_SCREEN_ONLY);
    const windows = (onScreen || []).filter(isOrdinary);
    const appCount = new Set(windows.map(w => w.pid)).size;
    const titledAppCount = new Set(windows.filter(w => w.title).map(w => w.pid)).size;
    const isGranted = canRecord(onScreen || []);
    const isDoubtful = isGranted && titledAppCount < 2 && appCount - titledAppCount >= 2;
    const locked = isLocked();
    return JSON.stringify({
        screen_recording: isDoubtful ? null : isGranted,
        accessibility: mayAct(),
        has_session: locked !== null && onScreen !== null,
        is_locked: Boolean(locked),
    });
}

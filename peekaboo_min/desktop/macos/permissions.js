// {} -> {"screen_recording": bool, "accessibility": bool, "has_session": bool, "is_locked": bool}; raises no dialog.
ObjC.import('ApplicationServices');
ObjC.bindFunction('AXIsProcessTrusted', ['bool', []]);
ObjC.bindFunction('CGPreflightPostEventAccess', ['bool', []]);

function run(argv) {
    const onScreen = windowList(ON_SCREEN_ONLY);
    const about = session();
    return JSON.stringify({
        screen_recording: canRecord(onScreen || []),
        // either of the two may be a false no in a command line program
        accessibility: Boolean($.AXIsProcessTrusted()) || Boolean($.CGPreflightPostEventAccess()),
        has_session: about !== null && onScreen !== null,
        is_locked: about !== null && (about.is_locked || !about.is_on_console),
    });
}

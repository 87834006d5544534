// {} -> {"screen_recording": bool, "accessibility": bool, "has_session": bool, "is_locked": bool}; asks without raising a dialog.
ObjC.import('ApplicationServices');
ObjC.bindFunction('AXIsProcessTrusted', ['bool', []]);
ObjC.bindFunction('CGPreflightPostEventAccess', ['bool', []]);

function run(argv) {
    const onScreen = windowList(ON_SCREEN_ONLY);
    const session = $.CGSessionCopyCurrentDictionary();
    const about = session ? ObjC.deepUnwrap(ObjC.castRefToObject(session)) || {} : {};
    return JSON.stringify({
        screen_recording: canRecord(onScreen || []),
        accessibility: $.AXIsProcessTrusted() && $.CGPreflightPostEventAccess(),
        has_session: Boolean(session) && onScreen !== null,
        is_locked: Boolean(about.CGSSessionScreenIsLocked), // there only while it is locked
    });
}

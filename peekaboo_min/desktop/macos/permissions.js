// {} -> {"screen_recording": bool, "accessibility": bool, "automation": bool|null, "has_session": bool, "is_locked": bool}; raises no dialog.
ObjC.import('ApplicationServices');
ObjC.bindFunction('AXIsProcessTrusted', ['bool', []]);
ObjC.bindFunction('CGPreflightPostEventAccess', ['bool', []]);

// May Keynote be controlled? null when it does not run, was never asked for, or cannot be told.
function mayAutomateKeynote() {
    const ANY = 0x2a2a2a2a; // typeWildCard '****'
    try {
        ObjC.bindFunction('AEDeterminePermissionToAutomateTarget', ['int', ['void *', 'unsigned int', 'unsigned int', 'bool']]);
        const answers = ['com.apple.Keynote', 'com.apple.iWork.Keynote'].map(id => {
            const target = $.NSAppleEventDescriptor.descriptorWithBundleIdentifier($(id));
            return $.AEDeterminePermissionToAutomateTarget(target.aeDesc, ANY, ANY, false);
        });
        return answers.includes(-1743) ? false : answers.includes(0) ? true : null;
    } catch (e) {
        return null;
    }
}

function run(argv) {
    const onScreen = windowList(ON_SCREEN_ONLY);
    const about = session();
    return JSON.stringify({
        screen_recording: canRecord(onScreen || []),
        accessibility: $.AXIsProcessTrusted() && $.CGPreflightPostEventAccess(),
        automation: mayAutomateKeynote(),
        has_session: about !== null && onScreen !== null,
        is_locked: Boolean(about && about.CGSSessionScreenIsLocked),
    });
}

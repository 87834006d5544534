// {} -> {"automation": bool|null}: may Keynote be controlled? null when it does not run, was never asked for, or cannot be
// told. Raises no dialog. By itself, because a bridge that fails here must not take other answers along.
ObjC.import('AppKit');
ObjC.import('CoreServices');
ObjC.bindFunction('AEDeterminePermissionToAutomateTarget', ['int', ['void *', 'unsigned int', 'unsigned int', 'bool']]);

const ANY = 0x2a2a2a2a; // typeWildCard '****'
const DENIED = -1743;

function run(argv) {
    const answers = ['com.apple.Keynote', 'com.apple.iWork.Keynote'].map(id => {
        const target = $.NSAppleEventDescriptor.descriptorWithBundleIdentifier($(id));
        return $.AEDeterminePermissionToAutomateTarget(target.aeDesc, ANY, ANY, false);
    });
    return JSON.stringify({automation: answers.includes(DENIED) ? false : answers.includes(0) ? true : null});
}

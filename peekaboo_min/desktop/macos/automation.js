// {} -> {"automation": bool|null}: may Keynote be controlled? null if unknown: it does not run, or macOS has not asked yet.
// Opens no dialog. Runs in a process of its own, so that a crash of the bridge here loses no other answer.
ObjC.import('AppKit');
ObjC.import('CoreServices');
ObjC.bindFunction('AEDeterminePermissionToAutomateTarget', ['int', ['void *', 'unsigned int', 'unsigned int', 'bool']]);

const ANY_EVENT = 0x2a2a2a2a; // typeWildCard '****'
const DENIED = -1743;

function run(argv) {
    const statuses = ['com.apple.Keynote', 'com.apple.iWork.Keynote'].map(id => {
        const target = $.NSAppleEventDescriptor.descriptorWithBundleIdentifier($(id));
        return $.AEDeterminePermissionToAutomateTarget(target.aeDesc, ANY_EVENT, ANY_EVENT, false);
    });
    return JSON.stringify({automation: statuses.includes(DENIED) ? false : statuses.includes(0) ? true : null});
}

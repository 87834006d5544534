// {} -> {}: lets macOS ask the user for Screen Recording and Accessibility, and list our host application in both panes.
// Comes after window_list.js.
ObjC.bindFunction('CGRequestScreenCaptureAccess', ['bool', []]);
ObjC.bindFunction('AXIsProcessTrustedWithOptions', ['bool', ['id']]);

function run(argv) {
    $.CGRequestScreenCaptureAccess();
    $.AXIsProcessTrustedWithOptions($({AXTrustedCheckOptionPrompt: true}));
    return '{}';
}

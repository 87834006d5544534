// {} -> {}: macOS asks the person for Screen Recording and Accessibility, and lists our host in both panes. Comes after window_list.js.
ObjC.bindFunction('CGRequestScreenCaptureAccess', ['bool', []]);
ObjC.bindFunction('AXIsProcessTrustedWithOptions', ['bool', ['id']]);

function run(argv) {
    $.CGRequestScreenCaptureAccess();
    $.AXIsProcessTrustedWithOptions($({AXTrustedCheckOptionPrompt: true}));
    return '{}';
}

// {"text": one character, "using": ["command down", ...]} -> {"ok": true}: a chord on the keyboard layout in use, by System Events.
function run(argv) {
    const request = JSON.parse(argv[0]);
    Application('System Events').keystroke(request.text, {using: request.using});
    return JSON.stringify({ok: true});
}

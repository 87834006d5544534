"""The fake Mac refuses and misbehaves like a real Mac; each test covers one fact (fact sheet 6.3)."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any, Callable

import fakemac
import pytest
from fakemac import FakeMac
from worlds import PATIENCE_S, ROOT, wait_for

MOUSE = """ObjC.import('CoreGraphics');
var number = Date.now() % 1e9;
function mouse(type, x, y, button, state) {
  if ([2, 4, 26].includes(type)) delay(0.045);
  if ([1, 3, 25].includes(type)) number += 1;
  var event = $.CGEventCreateMouseEvent(null, type, $.CGPointMake(x, y), button || 0);
  $.CGEventSetIntegerValueField(event, 0, number);
  $.CGEventSetIntegerValueField(event, 1, state || 1);
  $.CGEventSetFlags(event, 0);
  $.CGEventPost(0, event);
}
function click(x, y) { mouse(5, x, y); mouse(1, x, y); mouse(2, x, y); };
"""
KEYS = """ObjC.import('CoreGraphics');
function key(code, flags) { [true, false].forEach(function (down) {
  var event = $.CGEventCreateKeyboardEvent(null, code, down);
  if (flags !== undefined) $.CGEventSetFlags(event, flags);
  $.CGEventPost(0, event);
}) }
function type(text, flags) { [true, false].forEach(function (down) {
  var event = $.CGEventCreateKeyboardEvent(null, 0, down);
  var units = $(text).dataUsingEncoding($.NSUTF16LittleEndianStringEncoding);
  $.CGEventKeyboardSetUnicodeString(event, text.length, units.bytes);
  if (flags !== undefined) $.CGEventSetFlags(event, flags);
  $.CGEventPost(0, event);
}) }
"""
REBIND = (
    "ObjC.bindFunction('CGEventKeyboardSetUnicodeString', ['void', ['void *', 'unsigned long', 'void *']]);"
)
AX_BINDINGS = "ObjC.import('ApplicationServices')" + "".join(
    f", ObjC.bindFunction('{name}', {signature})"
    for name, signature in {
        "AXUIElementCreateApplication": ["id", ["int"]],
        "AXUIElementCopyAttributeValue": ["int", ["id", "id", "id*"]],
        "AXUIElementPerformAction": ["int", ["id", "id"]],
    }.items()
)
DECK = (
    "var KN = Application('com.apple.Keynote'); KN.activate();"
    "KN.documents.push(KN.Document({width: 1920, height: 1080}));"
    "var doc = KN.documents[0], slide = doc.slides[0];"
)
SHAPE = DECK + "slide.shapes.push(KN.Shape({position: {x: 10, y: 20}, width: 300, height: 100}));"


@pytest.fixture
def mac(tmp_path: Path) -> FakeMac:
    return FakeMac(tmp_path)


def run(mac: FakeMac, program: str, *argv: Any, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(mac.bin_dir / program), *map(str, argv)]
    pipes: dict[str, Any] = {"input": stdin, "capture_output": True, "text": True}
    return subprocess.run(command, **pipes, timeout=PATIENCE_S, env=mac.env(), cwd=mac.folder)


def jxa(mac: FakeMac, source: str, *argv: str) -> subprocess.CompletedProcess[str]:
    return run(mac, "osascript", "-l", "JavaScript", "-", *argv, stdin=source)


def answer(mac: FakeMac, source: str) -> Any:
    """Return the value of a script's last expression, through JSON."""
    *before, last = source.rstrip().rstrip(";").rsplit(";", 1)
    done = jxa(mac, f"{before[0] + ';' if before else ''} JSON.stringify({last})")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def error(mac: FakeMac, source: str) -> str:
    done = jxa(mac, source)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def capture(mac: FakeMac, *argv: Any) -> Path:
    target = mac.folder / "shot.png"
    done = run(mac, "screencapture", "-x", *argv, target)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return target


# --- osascript ---


ERRORS = {
    "throw new Error('boom')": "execution error: Error: Error: boom (-2700)\n",
    "throw new Error('')": "execution error: Error: Error (-2700)\n",
    "throw 'plain text (-1712)'": "execution error: Error: plain text (-1712) (-2700)\n",
    "function run( {": "-: syntax error: Error on line 1: SyntaxError:",
    "({a: 1})": "fakemac strict: the script did not return a string\n",
}


def test_osascript_errors_have_the_real_texts(mac: FakeMac) -> None:
    assert {source: error(mac, source)[: len(end)] for source, end in ERRORS.items()} == ERRORS
    assert [one["why"] for one in mac.events("strict")] == ["the script returned object, not a string"]


# A script and its result on the default fake Mac; an error is its number or a part of its text.
FACTS: dict[str, tuple[str, Any]] = {
    # must come first, before any import
    "no import, no name": ("[typeof $.CGMainDisplayID, typeof $.NSScreen]", ["undefined", "undefined"]),
    "node's own names": (
        "[typeof setTimeout, typeof require, typeof process, typeof Buffer, typeof URL]", ["undefined"] * 5,
    ),
    "no such application": ("Application('Nobody').name()", -2700),
    "an application that does not run": ("Application('Keynote').documents.length", -600),
    "a bare CF ref": (
        "(ObjC.import('CoreGraphics'), typeof ObjC.deepUnwrap($.CGWindowListCopyWindowInfo(17, 0)))",
        "undefined",
    ),
    "an undefined argument": ("$.CGWindowListCopyWindowInfo($.kCGNoSuchName, 0)", "argument 1 is undefined"),
    "not a number": ("$.CGPointMake(0 / 0, 1)", "CGPointMake: x is NaN"),
    "a bridged string": (
        "[String($('x')), $('x').js, $().isNil(), $('x').isNil()]", ["[id __NSCFString]", "x", True, False],
    ),
    "a preflight that is not bound": ("typeof $.CGPreflightScreenCaptureAccess", "undefined"),
    "an untyped Ref": (
        "(ObjC.import('ApplicationServices'), $.AXUIElementCopyAttributeValue(ObjC.castRefToObject("
        "$.AXUIElementCreateApplication(410)), $('AXTitle'), Ref()))",
        "Ref has incompatible type",
    ),
    "64-bit integers": (
        "(ObjC.import('AppKit'), app => [typeof $.NSWorkspace.sharedWorkspace.runningApplications.count,"
        " typeof app.activationPolicy, typeof app.processIdentifier])"
        "($.NSWorkspace.sharedWorkspace.frontmostApplication)",
        ["string", "string", "number"],
    ),
    "NSScreen counts upwards": (
        "[$.NSScreen.screens.objectAtIndex(1).frame.origin.y, $.CGDisplayBounds(3).origin.y]", [0, -180],
    ),
    "AX: no such attribute": (
        "(" + AX_BINDINGS + ", read($.AXUIElementCreateApplication(410), 'AXNothing')[0])", -25205,
    ),
    "AX: no such application": ("read($.AXUIElementCreateApplication(9999), 'AXTitle')[0]", -25204),
    "AX: no such action": (
        "$.AXUIElementPerformAction(windowsOf(410).objectAtIndex(0), $('AXNothing'))", -25206,
    ),
    "AX values are only described": (
        "read(windowsOf(410).objectAtIndex(0), 'AXPosition')[1].description.js",
        "{value = x:120.000000 y:120.000000 type",
    ),
    "AX order is by age, not by depth": (
        "[0, 1, 2].map(i => read(windowsOf(410).objectAtIndex(i), 'AXTitle')[1].js.slice(0, 9))",
        ["Bug 12/34", "Downloads", "Start Pag"],
    ),
    "AX: many attributes, one of them missing": (
        "(ObjC.bindFunction('AXUIElementCopyMultipleAttributeValues',"
        " ['int', ['id', 'id', 'unsigned int', 'id*']]),"
        " many(windowsOf(410).objectAtIndex(0), ['AXRole', 'AXValue'], 0))",
        [0, "AXWindow", "<AXValue 0x600003c2> {value = error:-25205 type = kAXValueAXErrorType}"],
    ),
    "AX: the same, stopping at an error": (
        "many(windowsOf(410).objectAtIndex(0), ['AXRole', 'AXValue'], 1)", [-25205],
    ),
    "a folder that is not there": (
        "$.NSFileManager.defaultManager.contentsOfDirectoryAtPathError($('/nowhere'), null).isNil()", True,
    ),
}  # fmt: skip
HARNESS = """
function read(element, name) { var out = Ref(); return [$.AXUIElementCopyAttributeValue(element, $(name),
out), out[0]] }
function windowsOf(pid) { return read($.AXUIElementCreateApplication(pid), 'AXWindows')[1] }
function many(element, names, options) {
  var out = Ref(), code = $.AXUIElementCopyMultipleAttributeValues(element, $(names), options, out);
  return code ? [code] : [code, out[0].objectAtIndex(0).js, out[0].objectAtIndex(1).description.js];
}
function tried(f) { try { return f() } catch (e) { return e.errorNumber || String(e) } };
"""


def test_bridge_answers_and_refuses_like_a_mac(mac: FakeMac) -> None:
    tries = ", ".join(f"tried(() => {source})" for source, _ in FACTS.values())
    done = jxa(mac, f"{HARNESS} JSON.stringify([{tries}])")
    assert (done.returncode, done.stderr) == (0, "")
    answers = dict(zip(FACTS, json.loads(done.stdout)))
    texts = {name: expected for name, (_, expected) in FACTS.items() if isinstance(expected, str)}
    assert [name for name, text in texts.items() if text not in str(answers[name])] == []
    rest = {name: expected for name, (_, expected) in FACTS.items() if name not in texts}
    assert {name: answers[name] for name in rest} == rest


# A change of the fake Mac, a script, and its result or the end of its error.
def _deny(*kinds: str) -> Callable[[FakeMac], Any]:
    return lambda mac: [mac.deny(kind) for kind in kinds]


def _as_it_is(mac: FakeMac) -> None:
    pass


def _switch(**values: Any) -> Callable[[FakeMac], Any]:
    return lambda mac: mac.switch(**values)


def _hang(mac: FakeMac) -> None:
    mac.update(lambda state: next(app for app in state["apps"] if app["pid"] == 410).update(hung=True))


IMPORT, SESSION = "ObjC.import('AppKit'); ObjC.import('CoreGraphics'); ", "$.CGSessionCopyCurrentDictionary()"
FRONT = "$.NSWorkspace.sharedWorkspace.frontmostApplication.localizedName.js"
BOTH = (
    IMPORT + f"[{SESSION}, $.CGWindowListCopyWindowInfo(17, 0)].map(one => ObjC.castRefToObject(one).isNil())"
)
TIMEOUT = (
    "ObjC.bindFunction('AXUIElementCreateSystemWide', ['id', []]);"
    "ObjC.bindFunction('AXUIElementSetMessagingTimeout', ['int', ['id', 'float']]);"
    "$.AXUIElementSetMessagingTimeout($.AXUIElementCreateSystemWide(), 0.3); var start = Date.now();"
)
OTHER_WORLDS: dict[str, tuple[Callable[[FakeMac], Any], str, Any]] = {
    "automation denied": (
        _deny("automation"), "Application('Finder').activate(); ''",
        "Not authorized to send Apple events to Finder. (-1743)\n",
    ),
    "AX without accessibility": (
        _deny("accessibility"),
        AX_BINDINGS + ";" + HARNESS + "read($.AXUIElementCreateApplication(410), 'AXRole')[0]", -25211,
    ),
    "a ref that throws": (
        _switch(bare_ref="throws"), IMPORT + "ObjC.deepUnwrap($.CGWindowListCopyWindowInfo(17, 0)); ''",
        "Ref has incompatible type (-2700)\n",
    ),
    "integers as numbers": (
        _switch(bridged_integers="numbers"), IMPORT + "typeof $.NSScreen.screens.count", "number",
    ),
    "nil as null": (
        _switch(nil_is_null=True),
        IMPORT + "$.NSRunningApplication.runningApplicationWithProcessIdentifier(99999) === null", True,
    ),
    "an application that hangs, until the messaging timeout": (
        _hang,
        AX_BINDINGS + ";" + HARNESS + TIMEOUT
        + "var code = read($.AXUIElementCreateApplication(410), 'AXRole')[0];"
        " var took = Date.now() - start; [code, 300 <= took && took < 5000]",
        [-25204, True],
    ),
    "AX on a locked screen": (
        lambda mac: mac.lock_screen(), AX_BINDINGS + ";" + HARNESS + "Number(windowsOf(410).count)", 0,
    ),
    "no session": (
        lambda mac: mac.no_gui_session(),
        IMPORT + f"[$.CGWindowListCopyWindowInfo(17, 0), {SESSION}]"
        ".map(one => ObjC.castRefToObject(one).isNil())",
        [True, True],
    ),
    "a session that is not reported, with windows": (
        lambda mac: mac.set("session.is_told", False), BOTH, [True, False],
    ),
    "no window list in a session": (lambda mac: mac.set("session.lists_windows", False), BOTH, [False, True]),
    "a bound function before its library is loaded": (
        _as_it_is,
        "ObjC.bindFunction('AXIsProcessTrusted', ['bool', []]); var before = typeof $.AXIsProcessTrusted;"
        "ObjC.import('Cocoa'); [before, $.AXIsProcessTrusted(), typeof $.AXUIElementCreateApplication]",
        ["undefined", True, "undefined"],
    ),
    "a pointer that was moved just now": (
        lambda mac: None,
        MOUSE + "var at = () => $.CGEventGetLocation($.CGEventCreate(null)).x; var before = at();"
        "mouse(5, 321, 40); var now = at(); ObjC.import('Foundation'); $.NSThread.sleepForTimeInterval(0.2);"
        "[now === before, at()]",
        [True, 321],
    ),
    "a declined activation returns true": (
        _switch(activation="declined"),
        IMPORT + "$.NSRunningApplication.runningApplicationWithProcessIdentifier(430)"
        ".activateWithOptions(1)", True,
    ),
    "AppKit is frozen until the run loop turns": (
        lambda mac: None,
        IMPORT + f"var seen = [{FRONT}]; $.NSRunningApplication.runningApplicationWithProcessIdentifier(430)"
        f".activateWithOptions(1); seen.push({FRONT}); $.NSRunLoop.currentRunLoop.runUntilDate("
        f"$.NSDate.dateWithTimeIntervalSinceNow(0.001)); seen.push({FRONT}); seen",
        ["Terminal", "Terminal", "TextEdit"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("arrange", "source", "expected"), OTHER_WORLDS.values(), ids=OTHER_WORLDS.keys())
def test_osascript_on_a_changed_mac(
    mac: FakeMac, arrange: Callable[[FakeMac], Any], source: str, expected: Any
) -> None:
    arrange(mac)
    if isinstance(expected, str) and expected.endswith(")\n"):
        assert error(mac, source).endswith(expected)
    else:
        assert answer(mac, source) == expected


def test_prompt_unanswered_hangs_and_ignores_sigterm(mac: FakeMac) -> None:
    mac.ask("automation", "com.apple.finder")
    words = ["-l", "JavaScript", "-e", "Application('Finder').activate() + ''"]
    child = subprocess.Popen([str(mac.bin_dir / "osascript"), *words], env=mac.env(), start_new_session=True)
    wait_for(mac.hanging, "it hangs")
    child.terminate()
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.4)
    assert len(mac.running()) == 1
    child.kill()
    child.wait()
    assert mac.running() == []


def test_cf_bridging_release_kills_osascript(mac: FakeMac) -> None:
    crash = "$.CFBridgingRelease($.CGWindowListCopyWindowInfo(17, 0)); 'x'"
    done = jxa(mac, f"console.log('a line'); ObjC.import('CoreGraphics'); {crash}")
    assert (done.returncode, done.stderr) == (-signal.SIGSEGV, "a line\n")  # 139 in a shell


# --- windows ---


def test_window_list_has_other_titles_only_with_screen_recording(mac: FakeMac) -> None:
    lists = "[17, 16].map(option => $.CGWindowListCopyWindowInfo(option, 0))"
    both = f"ObjC.import('CoreGraphics'); {lists}.map(one => ObjC.deepUnwrap(ObjC.castRefToObject(one)))"
    shown, everything = answer(mac, both)
    by_number = {one["kCGWindowNumber"]: one for one in everything}
    assert list(by_number) == sorted(by_number), "not in stacking order"
    # shown, other Space, hidden app, minimised
    on_screen = [by_number[number].get("kCGWindowIsOnscreen") for number in (1080, 1081, 1060, 1061)]
    assert on_screen == [True, None, None, None]
    mac.deny("screen_recording")
    denied = answer(mac, both)[0]
    titled = [one["kCGWindowOwnerName"] for one in denied if "kCGWindowName" in one]
    assert titled == ["Terminal"], "the responsible app sees its own titles"
    assert [{**one, "kCGWindowName": ""} for one in shown] == [{**one, "kCGWindowName": ""} for one in denied]


def test_ax_raise_does_not_activate(mac: FakeMac) -> None:
    raised = "$.AXUIElementPerformAction(windowsOf(410).objectAtIndex(0), $('AXRaise'))"
    assert answer(mac, AX_BINDINGS + ";" + HARNESS + raised) == 0
    state = mac.state()
    mine = [window["id"] for window in state["windows"] if window["pid"] == 410]
    assert (state["frontmost_pid"], mine[0]) == (480, 1004)


# --- mouse and keyboard ---


DROPPED: dict[str, tuple[Callable[[FakeMac], Any], str]] = {
    "without accessibility": (_deny("accessibility"), "click(900, 210)"),
    "on a locked screen": (lambda mac: mac.lock_screen(), "click(900, 210)"),
    "a button that does not fit its type": (
        _as_it_is, "mouse(1, 900, 210, 1); mouse(2, 900, 210, 1); mouse(25, 900, 210, 0)",
    ),
    "a drag without points between": (_as_it_is, "mouse(1, 900, 300); mouse(2, 950, 300)"),
}  # fmt: skip


@pytest.mark.parametrize(("arrange", "script"), DROPPED.values(), ids=DROPPED.keys())
def test_impossible_events_are_dropped(mac: FakeMac, arrange: Callable[[FakeMac], Any], script: str) -> None:
    arrange(mac)
    assert jxa(mac, MOUSE + script + "; 'x'").stdout == "x\n"
    assert {event["kind"] for event in mac.events()} - {"activate", "raise", "lost"} == {"dropped"}


def test_double_click_that_is_too_fast_counts_once(mac: FakeMac) -> None:
    once, again = (f"mouse(1, 900, 310, 0, {n}); mouse(2, 900, 310, 0, {n});" for n in (1, 2))
    at_most_ms = mac.state()["switches"]["fast_clicks_dropped_ms"]
    mac.switch(fast_clicks_dropped_ms=60_000)  # so that a busy machine is fast enough
    jxa(mac, f"{MOUSE} {once} {again} 'x'")
    mac.switch(fast_clicks_dropped_ms=at_most_ms)
    jxa(mac, f"{MOUSE} {once} delay(0.03); {again} 'x'")
    assert [one["text"] for one in mac.events("note")] == ["clicked once", "clicked once", "clicked twice"]


def test_dialogs_and_menus_take_input_for_other_windows(mac: FakeMac) -> None:
    mac.open_window("Form", title="Sure?", bounds=[200, 600, 300, 200], modal=True)
    jxa(mac, MOUSE + "click(-1650, 0); click(900, 210); 'x'")
    clicks = mac.events("click")
    assert (clicks[0]["blocked_by_sheet"], clicks[1]["blocked_by_modal"]) == (1041, 2000)
    jxa(mac, KEYS + "key(48, 0); 'x'")
    menu = mac.open_window("Form", bounds=[100, 100, 100, 100], layer=101)
    jxa(mac, KEYS + "key(125, 0); key(0, 0); 'x'")
    assert [one["window"] for one in mac.events("key", "text")] == [2000, menu, menu]
    jxa(mac, MOUSE + "click(900, 210); 'x'")
    assert (mac.window(menu), mac.events("click")[-1]["window"]) == (None, None)


# A script that types into TextEdit, and the text afterwards; before, it is "eggs\nmilk".
TYPED = {
    "an a without rebind": (KEYS + "type('caf\u00e9', 0)", "eggs\nmilka"),
    "all text with rebind": (KEYS + REBIND + "type('\u6771 \U0001f600', 0)", "eggs\nmilk\u6771 \U0001f600"),
    "20 units an event": (
        KEYS + REBIND + "type('abcdefghijklmnopqrstuvwxyz', 0)", "eggs\nmilkabcdefghijklmnopqrst",
    ),
    "half a surrogate pair is no character": (
        KEYS + REBIND + "type('\U0001f600'.slice(0, 1), 0); type('\U0001f600'.slice(1), 0)",
        "eggs\nmilk\ufffd\ufffd",
    ),
    "a newline is lost, and return is a key": (
        KEYS + REBIND + "type('a\\nb', 0); key(36, 0); type('c', 0)", "eggs\nmilkab\nc",
    ),
    "a Command flag leaks": (KEYS + REBIND + "key(0, 0x100000); type('lost'); type('kept', 0)", "kept"),
}  # fmt: skip


@pytest.mark.parametrize(("script", "expected"), TYPED.values(), ids=TYPED.keys())
def test_typing_needs_the_rebind_and_zero_flags(mac: FakeMac, script: str, expected: str) -> None:
    mac.activate("TextEdit")
    jxa(mac, script + "; 'x'")
    assert mac.widget(1030, "text")["value"] == expected


def test_event_source_suppresses_hardware_input_unless_the_interval_is_zero(mac: FakeMac) -> None:
    name = "CGEventSourceSetLocalEventsSuppressionInterval"
    post = "$.CGEventPost(0, $.CGEventCreateMouseEvent(source, 5, $.CGPointMake(9, 9), 0));"
    bind = f"ObjC.bindFunction('{name}', ['void', ['void *', 'double']]); $.{name}(source, 0);"
    jxa(mac, f"ObjC.import('CoreGraphics'); var source = $.CGEventSourceCreate(-1); {post}{bind}{post} ''")
    assert [one["suppression_s"] for one in mac.raw_events() if "type" in one] == [0.25, 0]


def test_chords_need_the_flags_of_their_keys(mac: FakeMac) -> None:
    chords = {123: (0x40000, 0xA40000), 115: (0x100000, 0x900000), 117: (0x80000, 0x880000)}
    for place, full in enumerate((False, True)):
        jxa(mac, KEYS + "".join(f"key({code}, {flags[place]});" for code, flags in chords.items()) + "''")
        assert len(mac.events("dropped")) == 3
        assert [one["code"] for one in mac.events("key")] == (list(chords) if full else [])


# --- programs ---


def _changed(**values: Any) -> Callable[[FakeMac], Any]:
    return lambda mac: mac.change_window(1030, values)


WINDOW, NO_WINDOW = ("screencapture", "-x", "-o", "-l"), "could not create image from window\n"
REFUSED_PROGRAMS: dict[str, tuple[Callable[[FakeMac], Any], list[str], int, str]] = {
    "an unknown flag": (
        _as_it_is, ["screencapture", "-Z", "s.png"], 1, "screencapture: illegal option -- Z\nusage",
    ),
    "no file": (_as_it_is, ["screencapture", "-x", "-l", "1090"], 1, "screencapture: no file specified\n"),
    "off all screens": (
        _as_it_is, ["screencapture", "-x", "-R", "9000,9000,10,10", "s.png"], 1,
        "could not create image from rect\n",
    ),
    "a display's id is no number": (
        _as_it_is, ["screencapture", "-x", "-D", "3", "s.png"], 1,
        "Invalid display specified. Only 2 displays",
    ),
    "an unknown window": (_as_it_is, [*WINDOW, "9999", "s.png"], 1, NO_WINDOW),
    "a minimised window": (_changed(minimised=True), [*WINDOW, "1030", "s.png"], 1, NO_WINDOW),
    "a window on another Space": (_changed(space=2), [*WINDOW, "1030", "s.png"], 1, NO_WINDOW),
    "a protected window": (_changed(sharing="none"), [*WINDOW, "1030", "s.png"], 1, NO_WINDOW),
    "a hidden app": (lambda mac: mac.set("apps.5.hidden", True), [*WINDOW, "1030", "s.png"], 1, NO_WINDOW),
    "a closed window that lingers": (
        lambda mac: mac.close_window(1030, lingers_ms=60000), [*WINDOW, "1030", "s.png"], 1, NO_WINDOW,
    ),
    "a locked screen": (lambda mac: mac.lock_screen(), [*WINDOW, "1030", "s.png"], 1, NO_WINDOW),
    "an interactive capture": (
        lambda mac: mac.switch(hang_limit_s=0), ["screencapture", "-i", "s.png"], 98, "fakemac: this program",
    ),
    "an unanswered prompt": (
        lambda mac: [mac.switch(hang_limit_s=0), mac.ask("screen_recording")], ["screencapture", "-x",
        "s.png"], 98, "fakemac",
    ),
    "a newer Mac, denied": (
        lambda mac: [mac.deny("screen_recording"), mac.era("error")], ["screencapture", "-x", "s.png"], 1,
        "could not create image from display\n",
    ),
    "no developer tools": (_as_it_is, ["xcode-select", "-p"], 2, "xcode-select: error: unable to get active"),
    "the shim of a compiler": (
        _as_it_is, ["swiftc", "--version"], 1, "xcode-select: note: No developer tools",
    ),
    "a compiler by its own path": (
        lambda mac: mac.tools("good"), ["swiftc", "a.swift", "-o", "a"], 1,
        "<unknown>:0: error: unable to load standard",
    ),
    "a compiler without an SDK": (
        lambda mac: mac.tools("good"), ["xcrun", "swiftc", "a.swift", "-o", "a"], 1,
        "<unknown>:0: error: unable to load",
    ),
    "another SDK": (
        lambda mac: mac.tools("good"), ["xcrun", "--sdk", "iphoneos", "swiftc", "--version"], 72,
        "xcrun: error",
    ),
    "an SDK of another compiler": (
        lambda mac: mac.tools("broken"), ["xcrun", "--sdk", "macosx", "swiftc", "a.swift", "-o", "a"], 1,
        "<unknown>:0: error: this SDK is not supported by the compiler",
    ),
    "open: no such name": (_as_it_is, ["open", "-a", "X"], 1, "Unable to find application named 'X'\n"),
    "open: no such id": (
        _as_it_is, ["open", "-b", "x.y"], 1, "LSCopyApplicationURLsForBundleIdentifier() failed",
    ),
    "open: no such file": (_as_it_is, ["open", "/nowhere"], 1, "The file /nowhere does not exist.\n"),
    "open: an unknown scheme": (
        _as_it_is, ["open", "nosuch://x"], 1, "No application knows how to open",
    ),
    "open: nothing": (_as_it_is, ["open"], 1, "Usage: open"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("arrange", "words", "code", "stderr"), REFUSED_PROGRAMS.values(), ids=REFUSED_PROGRAMS.keys()
)
def test_programs_fail_with_the_real_codes_and_texts(
    mac: FakeMac, arrange: Callable[[FakeMac], Any], words: list[str], code: int, stderr: str
) -> None:
    arrange(mac)
    done = run(mac, *words)
    assert (done.returncode, done.stdout, done.stderr[: len(stderr)]) == (code, "", stderr), done.stderr
    assert not (mac.folder / "s.png").exists()


def test_screencapture_denied_is_a_wallpaper_on_older_systems(mac: FakeMac) -> None:
    mac.deny("screen_recording")
    shot = capture(mac)
    assert fakemac.pixel(shot, 1700, 300) == fakemac.WALLPAPER, "in place of the Form"
    assert fakemac.pixel(shot, 10, 10) == fakemac.MENU_BAR
    assert fakemac.pixel(shot, 200, 300) == fakemac.window_colour(1080), "the responsible app's own window"
    assert fakemac.pixel(capture(mac, "-o", "-l", "1090"), 5, 5) == fakemac.WALLPAPER


def test_screencapture_may_exit_0_with_an_empty_file_or_without_a_file(mac: FakeMac) -> None:
    mac.fail("screencapture", exit=0, file=b"", times=1)
    assert capture(mac).stat().st_size == 0
    done = run(mac, "screencapture", "-x", "missing/shot.png")
    assert (done.returncode, done.stderr, (mac.folder / "missing").exists()) == (0, "", False)
    run(mac, "screencapture", "other.png", "-x")
    assert [event["kind"] for event in mac.events()] == ["strict", "sound"], "a flag after a file is a file"


def test_sips_takes_height_first_and_exits_0_on_no_image(mac: FakeMac) -> None:
    shot = capture(mac)
    run(mac, "sips", "-z", "100", "300", shot)
    assert fakemac.image_size(shot) == (300, 100), "changed in place without --out"
    assert run(mac, "sips", "-s", "format", "jpg", shot, "--out", mac.folder / "a.jpg").returncode == 1
    words = ["-s", "format", "jpeg", "-s", "formatOptions", "80", shot, "--out", mac.folder / "a.jpg"]
    assert run(mac, "sips", *words).returncode == 0
    assert (mac.folder / "a.jpg").read_bytes()[:3] == b"\xff\xd8\xff"
    (mac.folder / "no.png").write_text("no picture")
    done = run(mac, "sips", "-z", "10", "10", "no.png", "--out", "out.png")
    assert (done.returncode, (mac.folder / "out.png").exists()) == (0, False)


OCR = """ObjC.import('Vision'); function read(path, detects) {
  var request = $.VNRecognizeTextRequest.alloc.init; request.recognitionLevel = 0;
  if (detects) request.automaticallyDetectsLanguage = true;
  var handler = $.VNImageRequestHandler.alloc.initWithURLOptions($.NSURL.fileURLWithPath(path), $({}));
  return handler.performRequestsError($([request]), null)
    ? request.results.js.map(found => found.topCandidates(1).firstObject.string.js) : null };
"""


def test_vision_reads_visible_text_of_the_known_languages(mac: FakeMac) -> None:
    mac.change_window(1090, lambda window: window["widgets"][0].update(text="\u4f1a\u5458"))
    (mac.folder / "no.png").write_text("no picture")
    shot, none = (json.dumps(str(path)) for path in (capture(mac), mac.folder / "no.png"))
    known, every, nothing = answer(mac, OCR + f"[read({shot}), read({shot}, true), read({none})]")
    assert ({*every} - {*known}, nothing) == ({"\u4f1a\u5458"}, None)
    assert "New entry" in known and "hunter2" not in known, "a covered label cannot be read"


# --- Keynote ---


REFUSED_BY_KEYNOTE = {
    "slide.shapes[0].id()": -1728,
    "doc.slideSize()": -1728,
    "doc.masterSlides.byName('Blank').name()": -1728,
    "slide.shapes[0].shapeType()": -1728,
    "slide.shapes.push(KN.Shape({shapeType: 'rectangle'}))": -1700,
    "slide.shapes[0].backgroundFillType = 'none'": -10006,
    "slide.shapes[0].objectText.alignment = 'center'": -10006,
    "KN.frontmost = true": -10006,
    "slide.shapes[7].width()": -1719,
    "KN.documents.byId('nope').width()": -1728,
    "KN.themes.byName('Weiss').id()": -1728,
    "slide.shapes[0].width = 'wide'": -1700,
    "slide.shapes[0].width = 0 / 0": -1700,
    "slide.shapes.push({width: 5})": -1700,
    "slide.iWorkItems()": -1728,
    "Application('Finder').documents()": -1728,
}


def test_keynote_refuses_names_outside_its_dictionary(mac: FakeMac) -> None:
    tries = "".join(
        f"try {{ {source}; numbers.push('accepted') }} catch (error) {{ numbers.push(error.errorNumber) }}\n"
        for source in REFUSED_BY_KEYNOTE
    )
    numbers = answer(mac, SHAPE + "var numbers = [];" + tries + "; numbers")
    assert dict(zip(REFUSED_BY_KEYNOTE, numbers)) == REFUSED_BY_KEYNOTE


EXPORT = (ROOT / "peekaboo_min" / "integrations" / "keynote_export.applescript").read_text("utf-8")


def test_keynote_export_is_a_folder_of_numbered_images(mac: FakeMac) -> None:
    deck = answer(mac, SHAPE + "slide.shapes[0].objectText = 'Hello'; doc.id()")
    slides: list[dict[str, Any]] = [{"skipped": True, "shapes": []}, {"skipped": False, "shapes": []}]
    mac.update(lambda state: state["keynote"]["documents"][0]["slides"].extend(slides))
    target = mac.folder / "deck"
    words = ("-", "com.apple.Keynote", deck, str(target))
    done = run(mac, "osascript", *words, stdin=EXPORT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert sorted(path.name for path in target.iterdir()) == ["deck.001.png", "deck.002.png"]
    assert fakemac.image_size(target / "deck.001.png") == (1920, 1080)
    assert [label["text"] for label in fakemac.labels(target / "deck.001.png")] == ["Hello"]
    run(mac, "osascript", *words, stdin=EXPORT)
    assert (target / "deck" / "deck.001.png").exists(), "into an existing folder: a folder inside it"


@pytest.mark.parametrize(
    ("source", "number"),
    [
        (EXPORT, -1728),  # its arguments are missing
        (EXPORT.replace("image format:PNG", "image format:JPEG"), -2741),
        (EXPORT.replace('application id "com.apple.Keynote"', 'application id "com.example.none"'), -2741),
        ('do shell script "ls"', -2741),
    ],
)
def test_applescript_runs_only_the_export_script(mac: FakeMac, source: str, number: int) -> None:
    done = run(mac, "osascript", "-", stdin=source)
    assert (done.returncode, done.stdout, mac.events()) == (1, "", [])
    assert done.stderr.endswith(f"({number})\n")

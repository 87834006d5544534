"""The fake Mac refuses, or mis-answers, what a real one refuses or mis-answers: one fact, one test (the fact sheet 6.3)."""  # noqa: E501

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any, Optional

import fakemac
import pytest
from fakemac import FakeMac
from worlds import PATIENCE_S, wait_for

KILLED_AFTER_S = 0.4
LIST = "ObjC.import('CoreGraphics'); var windows = ObjC.deepUnwrap(ObjC.castRefToObject($.CGWindowListCopyWindowInfo(%d, 0)));"  # noqa: E501
MOUSE = """ObjC.import('CoreGraphics');
function mouse(type, x, y, button, state) {
  var event = $.CGEventCreateMouseEvent(null, type, $.CGPointMake(x, y), button || 0);
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
  $.CGEventKeyboardSetUnicodeString(event, text.length, $(text).dataUsingEncoding($.NSUTF16LittleEndianStringEncoding).bytes);
  if (flags !== undefined) $.CGEventSetFlags(event, flags);
  $.CGEventPost(0, event);
}) }
"""  # noqa: E501
REBIND = (
    "ObjC.bindFunction('CGEventKeyboardSetUnicodeString', ['void', ['void *', 'unsigned long', 'void *']]);"
)
AX = """ObjC.import('ApplicationServices');
ObjC.bindFunction('AXUIElementCreateApplication', ['id', ['int']]);
ObjC.bindFunction('AXUIElementCopyAttributeValue', ['int', ['id', 'id', 'id*']]);
ObjC.bindFunction('AXUIElementPerformAction', ['int', ['id', 'id']]);
ObjC.bindFunction('AXUIElementSetAttributeValue', ['int', ['id', 'id', 'id']]);
ObjC.bindFunction('_AXUIElementGetWindow', ['int', ['id', 'unsigned int*']]);
function windowsOf(pid) { var out = Ref(); return [$.AXUIElementCopyAttributeValue($.AXUIElementCreateApplication(pid), $('AXWindows'), out), out]; };
"""  # noqa: E501
DECK = "var KN = Application('com.apple.Keynote'); KN.activate(); var doc = KN.make({new: 'document', withProperties: {width: 1920, height: 1080}}); var slide = doc.slides[0];"  # noqa: E501
SHAPE = DECK + "slide.shapes.push(KN.Shape({position: {x: 10, y: 20}, width: 300, height: 100}));"


@pytest.fixture
def mac(tmp_path: Path) -> FakeMac:
    return FakeMac(tmp_path)


def run(
    mac: FakeMac, program: str, *argv: Any, stdin: Optional[str] = None, env: Optional[dict[str, str]] = None
) -> subprocess.CompletedProcess[str]:
    command = [str(mac.bin_dir / program), *map(str, argv)]
    return subprocess.run(
        command,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**mac.env(), **(env or {})},
        cwd=mac.folder,
    )


def jxa(mac: FakeMac, source: str, *argv: str) -> subprocess.CompletedProcess[str]:
    return run(mac, "osascript", "-l", "JavaScript", "-", *argv, stdin=source)


def answer(mac: FakeMac, source: str) -> Any:
    """The JSON of what the last expression of a script gives."""
    *before, last = source.rstrip().rstrip(";").rsplit(";", 1)
    done = jxa(mac, f"{before[0] + ';' if before else ''} JSON.stringify({last})")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def error(mac: FakeMac, source: str) -> str:
    done = jxa(mac, source)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def applescript(mac: FakeMac, source: str, *argv: str) -> subprocess.CompletedProcess[str]:
    return run(mac, "osascript", "-", *argv, stdin=source)


def hangs(mac: FakeMac, program: str, *argv: Any, stdin: str = "") -> bool:
    """Whether it waits to be killed: with no time to wait it says that nobody did, which nothing else
    says.
    """
    patience_s = mac.state()["switches"]["hang_limit_s"]
    mac.switch(hang_limit_s=0)
    done = run(mac, program, *argv, stdin=stdin)
    mac.switch(hang_limit_s=patience_s)
    return done.returncode == 98 and "nobody killed this" in done.stderr


def capture(mac: FakeMac, *argv: Any) -> Path:
    target = mac.folder / "shot.png"
    done = run(mac, "screencapture", "-x", *argv, target)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return target


# --- osascript: results and errors ---


@pytest.mark.parametrize(
    "thrown, stderr",
    [
        ("new Error('boom')", "execution error: Error: Error: boom (-2700)\n"),
        ("new Error('')", "execution error: Error: Error (-2700)\n"),
        ("'plain text (-1712)'", "execution error: Error: plain text (-1712) (-2700)\n"),
        ("new TypeError('no')", "execution error: Error: TypeError: no (-2700)\n"),
    ],
)
def test_a_thrown_error_ends_with_its_number_and_exit_1(mac: FakeMac, thrown: str, stderr: str) -> None:
    assert error(mac, f"throw {thrown}") == stderr


def test_older_systems_put_the_file_and_the_line_before_the_error(mac: FakeMac) -> None:
    mac.switch(older_errors=True)
    script = mac.folder / "script.js"
    script.write_text("\nthrow new Error('boom')")
    done = run(mac, "osascript", "-l", "JavaScript", script)
    assert done.stderr == f"{script}:0:24: execution error: Error on line 2: Error: boom (-2700)\n"


def test_error_texts_may_be_localised_and_keep_their_number(mac: FakeMac) -> None:
    mac.switch(language="ko")
    mac.deny("automation")
    stderr = error(mac, "Application('System Events').processes.length")
    assert "Not authorized" not in stderr and stderr.endswith("(-1743)\n")


def test_a_syntax_error_is_no_execution_error(mac: FakeMac) -> None:
    stderr = error(mac, "function run( {")
    assert "syntax error" in stderr and "execution error" not in stderr


@pytest.mark.parametrize(
    "source, ending",
    [
        ("Application('Keynote').documents.length", "Error: Application isn't running. (-600)\n"),
        ("Application('Nobody').name()", "Error: Application can't be found. (-2700)\n"),
        ("Application('System Events').processes[99].name()", "Error: Invalid index. (-1719)\n"),
        (
            "Application('System Events').processes.byName('Nobody').name()",
            "Error: Can't get object. (-1728)\n",
        ),
    ],
)
def test_apple_events_fail_with_numbers_of_their_own(mac: FakeMac, source: str, ending: str) -> None:
    assert error(mac, source) == f"execution error: Error: {ending}"


def test_a_denied_automation_is_minus_1743_and_leaves_accessibility_alone(mac: FakeMac) -> None:
    mac.deny("automation", "com.apple.systemevents")
    assert error(mac, "Application('System Events').processes.length").endswith(
        "Not authorized to send Apple events to System Events. (-1743)\n"
    )
    assert answer(mac, "ObjC.import('ApplicationServices'); $.AXIsProcessTrusted()") == 1
    assert answer(mac, "Application('Safari').name()") == "Safari"


def test_without_accessibility_windows_of_system_events_are_minus_25211(mac: FakeMac) -> None:
    mac.deny("accessibility")
    assert answer(mac, "Application('System Events').processes.byName('Safari').unixId()") == 410
    assert error(mac, "Application('System Events').processes.byName('Safari').windows.length").endswith(
        "osascript is not allowed assistive access. (-25211)\n"
    )
    mac.switch(accessibility_error=-1719)
    assert error(mac, "Application('System Events').processes.byName('Safari').windows.length").endswith(
        "osascript is not allowed assistive access. (-1719)\n"
    )


def test_without_accessibility_keystrokes_are_a_positive_1002(mac: FakeMac) -> None:
    mac.deny("accessibility")
    assert error(mac, "Application('System Events').keystroke('a')").endswith(
        "osascript is not allowed to send keystrokes. (1002)\n"
    )


def test_a_leading_dash_in_the_first_argument_is_an_option(mac: FakeMac) -> None:
    done = run(mac, "osascript", "-l", "JavaScript", "-e", "'x'", "-1")
    assert done.returncode == 1 and "illegal option -- 1" in done.stderr


def test_a_double_dash_is_swallowed_after_e_and_kept_after_a_file(mac: FakeMac) -> None:
    source = "function run(argv) { return JSON.stringify(argv) }"
    script = mac.folder / "script.js"
    script.write_text(source)
    assert json.loads(run(mac, "osascript", "-l", "JavaScript", "-e", source, "--", "a", "b").stdout) == [
        "a",
        "b",
    ]
    assert json.loads(run(mac, "osascript", "-l", "JavaScript", script, "--", "a").stdout) == ["--", "a"]


def test_an_unanswered_prompt_hangs_and_ignores_sigterm(mac: FakeMac) -> None:
    mac.ask("automation", "com.apple.systemevents")
    child = subprocess.Popen(
        [
            str(mac.bin_dir / "osascript"),
            "-l",
            "JavaScript",
            "-e",
            "Application('System Events').processes.length + ''",
        ],
        env=mac.env(),
        start_new_session=True,
    )
    wait_for(mac.hanging, "it hangs")
    child.terminate()
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.4)
    assert len(mac.running()) == 1
    child.kill()
    child.wait()
    assert mac.running() == []


def test_console_log_goes_to_stderr(mac: FakeMac) -> None:
    done = jxa(mac, "console.log('a line'); 'the result'")
    assert (done.returncode, done.stdout, done.stderr) == (0, "the result\n", "a line\n")


def test_what_node_has_and_jxa_has_not_is_undefined(mac: FakeMac) -> None:
    names = [
        "setTimeout",
        "require",
        "fetch",
        "process",
        "Buffer",
        "module",
        "WebAssembly",
        "queueMicrotask",
        "TextEncoder",
        "URL",
        "structuredClone",
        "performance",
    ]
    assert answer(mac, "[" + ", ".join(f"typeof {name}" for name in names) + "]") == ["undefined"] * len(
        names
    )


def test_a_result_that_is_no_string_is_refused_in_strict_mode(mac: FakeMac) -> None:
    assert "did not return a string" in error(mac, "({a: 1})")
    assert mac.events("strict") == [{"kind": "strict", "why": "the script returned object, not a string"}]
    mac.switch(strict=False)
    assert jxa(mac, "5").stdout == "5\n"


# --- the bridge ---


def test_a_bare_cf_ref_unwraps_to_undefined_or_throws(mac: FakeMac) -> None:
    source = "ObjC.import('CoreGraphics'); typeof ObjC.deepUnwrap($.CGWindowListCopyWindowInfo(17, 0))"
    assert answer(mac, source) == "undefined"
    mac.switch(bare_ref="throws")
    assert "Ref has incompatible type" in error(mac, source)


def test_both_idioms_for_the_window_list_work(mac: FakeMac) -> None:
    bound = "ObjC.import('CoreGraphics'); ObjC.bindFunction('CGWindowListCopyWindowInfo', ['id', ['unsigned int', 'unsigned int']]); ObjC.deepUnwrap($.CGWindowListCopyWindowInfo(17, 0))"  # noqa: E501
    assert answer(mac, bound) == answer(mac, LIST % 17 + "windows")


def test_the_whole_list_may_refuse_to_unwrap_and_its_items_do_not(mac: FakeMac) -> None:
    mac.switch(deep_unwrap_window_list="undefined")
    source = """ObjC.import('CoreGraphics'); var list = ObjC.castRefToObject($.CGWindowListCopyWindowInfo(17, 0)); var whole = ObjC.deepUnwrap(list); var first = [];
    for (var i = 0; i < list.count; i++) first.push(list.objectAtIndex(i).objectForKey('kCGWindowNumber').js);
    [whole === undefined, first.length, first[0]]"""  # noqa: E501
    assert answer(mac, source) == [True, 16, 12]


def test_cf_bridging_release_kills_osascript(mac: FakeMac) -> None:
    done = jxa(
        mac, "ObjC.import('CoreGraphics'); $.CFBridgingRelease($.CGWindowListCopyWindowInfo(17, 0)); 'x'"
    )
    assert done.returncode == -signal.SIGSEGV  # 139 in a shell


def test_without_the_import_a_name_is_undefined(mac: FakeMac) -> None:
    assert (
        answer(mac, "[typeof $.CGMainDisplayID, typeof $.NSScreen, typeof $.VNRecognizeTextRequest]")
        == ["undefined"] * 3
    )


def test_an_undefined_argument_is_an_error_in_strict_mode(mac: FakeMac) -> None:
    assert "argument 1 is undefined" in error(
        mac, "ObjC.import('CoreGraphics'); $.CGWindowListCopyWindowInfo($.kCGNoSuchName, 0); 'x'"
    )
    assert mac.events("strict")[0]["why"] == "$.CGWindowListCopyWindowInfo: argument 1 is undefined"


def test_not_a_number_never_reaches_a_cg_call(mac: FakeMac) -> None:
    assert "CGPointMake: x is NaN" in error(mac, "ObjC.import('CoreGraphics'); $.CGPointMake(0 / 0, 1); 'x'")


def test_a_selector_without_arguments_is_no_function(mac: FakeMac) -> None:
    assert "is not a function" in error(
        mac, "ObjC.import('AppKit'); $.NSPasteboard.generalPasteboard.clearContents(); 'x'"
    )
    assert mac.state()["clipboard"]["types"] == {}, "it ran on access"


def test_a_bridged_string_shows_as_its_class(mac: FakeMac) -> None:
    assert answer(mac, "[String($('x')), $('x').js, $().isNil(), $('x').isNil()]") == [
        "[id __NSCFString]",
        "x",
        True,
        False,
    ]


def test_a_preflight_function_has_to_be_bound(mac: FakeMac) -> None:
    source = "ObjC.import('CoreGraphics'); var before = typeof $.CGPreflightScreenCaptureAccess; ObjC.bindFunction('CGPreflightScreenCaptureAccess', ['bool', []]); [before, $.CGPreflightScreenCaptureAccess()]"  # noqa: E501
    mac.deny("screen_recording")
    assert answer(mac, source) == ["undefined", False]


def test_an_untyped_ref_throws_when_an_ax_call_succeeds(mac: FakeMac) -> None:
    source = "ObjC.import('ApplicationServices'); var app = ObjC.castRefToObject($.AXUIElementCreateApplication(410)); $.AXUIElementCopyAttributeValue(app, $('AXTitle'), Ref()) + ''"  # noqa: E501
    assert "Ref has incompatible type" in error(mac, source)
    mac.deny("accessibility")
    assert jxa(mac, source).stdout == "-25211\n"


def test_appkit_is_frozen_until_the_run_loop_turns(mac: FakeMac) -> None:
    source = """ObjC.import('AppKit'); var front = function () { return $.NSWorkspace.sharedWorkspace.frontmostApplication.localizedName.js }; var seen = [front()];
    $.NSRunningApplication.runningApplicationWithProcessIdentifier(430).activateWithOptions(1); seen.push(front());
    $.NSRunLoop.currentRunLoop.runUntilDate($.NSDate.dateWithTimeIntervalSinceNow(0.001)); seen.push(front()); seen"""  # noqa: E501
    assert answer(mac, source) == ["Terminal", "Terminal", "TextEdit"]


def test_activation_is_a_request_that_says_yes_and_may_be_declined(mac: FakeMac) -> None:
    mac.switch(activation="declined")
    assert (
        answer(
            mac,
            "ObjC.import('AppKit'); $.NSRunningApplication.runningApplicationWithProcessIdentifier(430).activateWithOptions(1)",  # noqa: E501
        )
        is True
    )
    assert mac.state()["frontmost_pid"] == 480
    assert (
        answer(
            mac,
            AX
            + "$.AXUIElementSetAttributeValue($.AXUIElementCreateApplication(430), $('AXFrontmost'), $(true))",  # noqa: E501
        )
        == 0
    )
    assert mac.state()["frontmost_pid"] == 430


def test_an_activation_may_take_its_time(mac: FakeMac) -> None:
    activate = "ObjC.import('AppKit'); $.NSRunningApplication.runningApplicationWithProcessIdentifier(430).activateWithOptions(1)"  # noqa: E501
    mac.switch(activation_delay_ms=3_600_000)
    assert answer(mac, activate) is True
    assert mac.state()["frontmost_pid"] == 480
    mac.switch(activation_delay_ms=300)
    assert answer(mac, activate) is True
    wait_for(lambda: mac.state()["frontmost_pid"] == 430, "the app comes to the front")


def test_nsscreen_counts_from_the_bottom_left(mac: FakeMac) -> None:
    source = "ObjC.import('AppKit'); ObjC.import('CoreGraphics'); var screen = $.NSScreen.screens.objectAtIndex(1); [screen.frame.origin.y, $.CGDisplayBounds(screen.deviceDescription.objectForKey('NSScreenNumber').js).origin.y]"  # noqa: E501
    assert answer(mac, source) == [0, -180]


def test_the_main_screen_is_the_one_with_the_keyboard(mac: FakeMac) -> None:
    mac.activate("Calendar")
    assert answer(
        mac,
        "ObjC.import('AppKit'); [$.NSScreen.mainScreen.localizedName.js, $.NSScreen.screens.objectAtIndex(0).localizedName.js]",  # noqa: E501
    ) == ["LG UltraFine", "Built-in Retina Display"]


def test_pixels_wide_are_points_on_retina(mac: FakeMac) -> None:
    assert answer(
        mac,
        "ObjC.import('CoreGraphics'); var id = $.CGMainDisplayID(); [$.CGDisplayPixelsWide(id), $.CGDisplayModeGetPixelWidth($.CGDisplayCopyDisplayMode(id))].map(Number)",  # noqa: E501
    ) == [1440, 2880]


def test_element_collections_are_no_arrays(mac: FakeMac) -> None:
    for expression in ("forEach(function (x) {})", "map(String)", "filter(Boolean)"):
        assert "is not a function" in error(mac, f"Application('System Events').processes.{expression}; 'x'")
    assert "not iterable" in error(mac, "for (var x of Application('System Events').processes) {} 'x'")


def test_a_property_needs_its_brackets(mac: FakeMac) -> None:
    assert answer(
        mac,
        "var name = Application('System Events').processes[0].name; [typeof name, name == 'Finder', name()]",
    ) == ["function", False, "Finder"]


# --- windows ---


def test_without_screen_recording_only_the_titles_are_missing(mac: FakeMac) -> None:
    granted = answer(mac, LIST % 17 + "windows")
    mac.deny("screen_recording")
    denied = answer(mac, LIST % 17 + "windows")
    others = [window for window in denied if window["kCGWindowOwnerPID"] != 480]
    assert not any("kCGWindowName" in window for window in others)
    assert [window["kCGWindowName"][:8] for window in denied if window not in others] == ["peekaboo"], (
        "the app that we answer for always sees its own"
    )
    assert [
        {key: value for key, value in window.items() if key != "kCGWindowName"} for window in granted
    ] == [{key: value for key, value in window.items() if key != "kCGWindowName"} for window in denied]


def test_the_on_screen_key_is_absent_off_screen(mac: FakeMac) -> None:
    shown = {
        window["kCGWindowNumber"]: window.get("kCGWindowIsOnscreen")
        for window in answer(mac, LIST % 16 + "windows")
    }
    assert (shown[1080], shown[1081], shown[1060], shown[1061]) == (
        True,
        None,
        None,
        None,
    )  # shown, other Space, hidden app, minimised


def test_bounds_are_points_from_the_top_left_under_capital_keys(mac: FakeMac) -> None:
    calendar = next(
        window for window in answer(mac, LIST % 17 + "windows") if window["kCGWindowNumber"] == 1040
    )
    assert calendar["kCGWindowBounds"] == {"X": -1700, "Y": -60, "Width": 1100, "Height": 700}


def test_the_on_screen_list_is_front_to_back_and_the_whole_list_is_not(mac: FakeMac) -> None:
    front = [
        window["kCGWindowNumber"]
        for window in answer(mac, LIST % 17 + "windows")
        if window["kCGWindowLayer"] == 0
    ]
    assert front[:4] == [1071, 1080, 1090, 1012]
    everything = [window["kCGWindowNumber"] for window in answer(mac, LIST % 16 + "windows")]
    assert everything == sorted(everything)


def test_the_dock_has_a_layer_and_covers_the_display(mac: FakeMac) -> None:
    dock = next(
        window for window in answer(mac, LIST % 17 + "windows") if window["kCGWindowOwnerName"] == "Dock"
    )
    assert (dock["kCGWindowLayer"], dock["kCGWindowBounds"]["Width"]) == (20, 1440)


def test_without_a_gui_session_there_is_no_window_list(mac: FakeMac) -> None:
    mac.no_gui_session()
    assert answer(
        mac,
        "ObjC.import('CoreGraphics'); [ObjC.castRefToObject($.CGWindowListCopyWindowInfo(17, 0)).isNil(), ObjC.castRefToObject($.CGSessionCopyCurrentDictionary()).isNil()]",  # noqa: E501
    ) == [True, True]
    assert run(mac, "launchctl", "managername").stdout == "Background\n"


def test_the_lock_key_is_there_only_while_locked(mac: FakeMac) -> None:
    source = "ObjC.import('CoreGraphics'); ObjC.deepUnwrap(ObjC.castRefToObject($.CGSessionCopyCurrentDictionary())).CGSSessionScreenIsLocked || 'absent'"  # noqa: E501
    assert answer(mac, source) == "absent"
    mac.lock_screen()
    assert answer(mac, source) is True


def test_ax_order_is_not_the_order_on_screen(mac: FakeMac) -> None:
    source = (
        AX
        + "var found = windowsOf(410); var ids = found[1][0].js.map(function (window) { var id = Ref(); $._AXUIElementGetWindow(window, id); return id[0] }); ids"  # noqa: E501
    )
    assert answer(mac, source) == [1004, 1005, 1012]


def test_ax_raise_does_not_activate(mac: FakeMac) -> None:
    source = AX + "$.AXUIElementPerformAction(windowsOf(410)[1][0].objectAtIndex(0), $('AXRaise'))"
    assert answer(mac, source) == 0
    state = mac.state()
    mine = [window["id"] for window in state["windows"] if window["pid"] == 410]
    assert (state["frontmost_pid"], mine[0]) == (480, 1004)


def test_ax_values_are_only_described(mac: FakeMac) -> None:
    source = (
        AX
        + "var out = Ref(); $.AXUIElementCopyAttributeValue(windowsOf(410)[1][0].objectAtIndex(0), $('AXPosition'), out); out[0].description.js"  # noqa: E501
    )
    assert "{value = x:120.000000 y:120.000000 type" in answer(mac, source)


@pytest.mark.parametrize(
    "source, code",
    [
        ("$.AXUIElementPerformAction(windowsOf(410)[1][0].objectAtIndex(0), $('AXNothing'))", -25206),
        (
            "$.AXUIElementCopyAttributeValue($.AXUIElementCreateApplication(410), $('AXNothing'), Ref())",
            -25205,
        ),
        (
            "$.AXUIElementCopyAttributeValue($.AXUIElementCreateApplication(9999), $('AXTitle'), Ref())",
            -25204,
        ),
    ],
)
def test_ax_errors_have_the_numbers_of_the_header(mac: FakeMac, source: str, code: int) -> None:
    assert answer(mac, AX + source) == code


def test_while_locked_ax_shows_no_windows(mac: FakeMac) -> None:
    mac.lock_screen()
    assert answer(mac, AX + "Number(windowsOf(410)[1][0].count)") == 0


# --- mouse and keyboard ---


def test_a_click_hits_the_topmost_window_and_brings_it_forward(mac: FakeMac) -> None:
    assert answer(mac, MOUSE + "click(900, 210); $.CGEventGetLocation($.CGEventCreate(null))") == {
        "x": 900,
        "y": 210,
    }
    assert list(mac.events("activate", "click", "open_window")) == [
        {"kind": "activate", "app": "Form", "pid": 500, "by": "click"},
        {
            "kind": "click",
            "window": 1090,
            "app": "Form",
            "widget": "new",
            "button": "left",
            "count": 1,
            "x": 900,
            "y": 210,
        },
        {"kind": "open_window", "window": 2000, "title": "New entry", "app": "Form"},
    ]


def test_without_accessibility_a_post_silently_does_nothing(mac: FakeMac) -> None:
    mac.deny("accessibility")
    assert answer(mac, MOUSE + "click(900, 210); $.CGEventGetLocation($.CGEventCreate(null))") == {
        "x": 700,
        "y": 450,
    }
    assert {(event["kind"], event.get("why")) for event in mac.events()} == {("dropped", "accessibility")}


def test_nothing_arrives_while_the_screen_is_locked(mac: FakeMac) -> None:
    mac.lock_screen()
    jxa(mac, MOUSE + "click(900, 210); 'x'")
    assert {event["kind"] for event in mac.events()} == {"dropped"}


def test_a_button_that_does_not_fit_its_event_type_does_nothing(mac: FakeMac) -> None:
    jxa(mac, MOUSE + "mouse(1, 900, 210, 1); mouse(2, 900, 210, 1); mouse(25, 900, 210, 0); 'x'")
    assert {event["kind"] for event in mac.events()} == {"dropped"}


def test_two_clicks_too_fast_are_no_double_click(mac: FakeMac) -> None:
    twice = "mouse(1, 900, 310, 0, 1); mouse(2, 900, 310, 0, 1); %s mouse(1, 900, 310, 0, 2); mouse(2, 900, 310, 0, 2); 'x'"  # noqa: E501
    at_most_ms = mac.state()["switches"]["fast_clicks_dropped_ms"]
    mac.switch(fast_clicks_dropped_ms=60_000)  # so that a busy machine is fast enough, too
    jxa(mac, MOUSE + twice % "")
    assert [event["text"] for event in mac.events("note")] == ["clicked once"]
    mac.switch(fast_clicks_dropped_ms=at_most_ms)
    jxa(mac, MOUSE + twice % "delay(0.03);")
    assert [event["text"] for event in mac.events("note")] == [
        "clicked once",
        "clicked once",
        "clicked twice",
    ]


def test_a_sheet_keeps_clicks_from_its_window(mac: FakeMac) -> None:
    jxa(mac, MOUSE + "click(-1650, 0); 'x'")
    assert mac.events("click")[0]["blocked_by_sheet"] == 1041


def test_unicode_text_needs_the_rebind_and_types_an_a_without(mac: FakeMac) -> None:
    mac.activate("TextEdit")
    jxa(mac, KEYS + "type('caf\u00e9 \u6771\u4eac', 0); 'x'")
    assert mac.widget(1030, "text")["value"] == "eggs\nmilka"
    jxa(mac, REBIND_FIRST + "type('caf\u00e9 \u6771\u4eac \U0001f600', 0); 'x'")
    assert mac.widget(1030, "text")["value"] == "eggs\nmilkacaf\u00e9 \u6771\u4eac \U0001f600"


REBIND_FIRST = KEYS + REBIND


def test_mutable_bytes_have_an_incompatible_type(mac: FakeMac) -> None:
    assert "Ref has incompatible type" in error(mac, "$.NSMutableData.dataWithLength(4).mutableBytes; 'x'")


def test_one_event_carries_twenty_units(mac: FakeMac) -> None:
    mac.activate("TextEdit")
    jxa(mac, REBIND_FIRST + "type('abcdefghijklmnopqrstuvwxyz', 0); 'x'")
    assert mac.widget(1030, "text")["value"] == "eggs\nmilkabcdefghijklmnopqrst"


def test_half_a_surrogate_pair_is_no_character(mac: FakeMac) -> None:
    mac.activate("TextEdit")
    jxa(mac, REBIND_FIRST + "type('\U0001f600'.slice(0, 1), 0); type('\U0001f600'.slice(1), 0); 'x'")
    assert mac.widget(1030, "text")["value"] == "eggs\nmilk\ufffd\ufffd"


def test_a_newline_in_a_unicode_event_is_lost_and_return_is_a_key(mac: FakeMac) -> None:
    mac.activate("TextEdit")
    jxa(mac, REBIND_FIRST + "type('a\\nb', 0); key(36, 0); type('c', 0); 'x'")
    assert mac.widget(1030, "text")["value"] == "eggs\nmilkab\nc"


def test_a_command_flag_leaks_into_events_without_flags(mac: FakeMac) -> None:
    mac.activate("TextEdit")
    jxa(mac, REBIND_FIRST + "key(0, 0x100000); type('lost'); type('kept', 0); 'x'")
    assert mac.widget(1030, "text")["value"] == "kept", (
        "cmd+a selected all, the leaked Command ate the first text"
    )


def test_chords_select_copy_and_paste(mac: FakeMac) -> None:
    mac.activate("TextEdit")
    jxa(mac, KEYS + "key(0, 0x100000); key(8, 0x100000); key(124, 0); key(9, 0x100000); 'x'")
    assert mac.widget(1030, "text")["value"] == "eggs\nmilkeggs\nmilk"
    assert run(mac, "pbpaste").stdout == "eggs\nmilk"


def test_tab_moves_return_presses_the_default_button_escape_the_cancel_button(mac: FakeMac) -> None:
    jxa(mac, MOUSE + "click(900, 210); click(1000, 210); 'x'")
    jxa(mac, REBIND_FIRST + "type('Ada', 0); key(48, 0); type('ada@example.org', 0); key(36, 0); 'x'")
    assert mac.state()["reports"] == {
        "entries": [{"name": "Ada", "email": "ada@example.org", "agree": False}]
    }
    assert mac.window(2000) is None
    jxa(mac, MOUSE + "click(900, 210); 'x'")
    jxa(mac, KEYS + "key(53, 0); 'x'")
    assert (mac.window(2001), len(mac.state()["reports"]["entries"])) == (None, 1)


def test_keystroke_types_an_a_for_what_the_layout_lacks(mac: FakeMac) -> None:
    mac.activate("TextEdit")
    jxa(mac, "Application('System Events').keystroke('\u00e9Z!'); 'x'")
    assert mac.widget(1030, "text")["value"] == "eggs\nmilkaZ!"


def test_a_bad_modifier_of_keystroke_is_refused(mac: FakeMac) -> None:
    assert error(mac, "Application('System Events').keystroke('a', {using: ['cmd down']})").endswith(
        "(-1700)\n"
    )


def test_key_codes_are_positions_not_letters(mac: FakeMac) -> None:
    mac.activate("TextEdit")
    mac.set("keyboard.layout", "azerty")
    jxa(mac, KEYS + "key(0, 0); key(6, 0); 'x'")
    assert mac.widget(1030, "text")["value"] == "eggs\nmilkqw"


def test_the_pasteboard_counts_its_changes_and_wants_a_real_type(mac: FakeMac) -> None:
    source = "ObjC.import('AppKit'); var board = $.NSPasteboard.generalPasteboard; var before = board.changeCount; board.clearContents; board.setStringForType($('x'), $.NSPasteboardTypeString); [Number(before), Number(board.changeCount), board.stringForType('public.utf8-plain-text').js]"  # noqa: E501
    assert answer(mac, source) == [7, 8, "x"]
    assert "is undefined" in error(
        mac,
        "ObjC.import('AppKit'); $.NSPasteboard.generalPasteboard.setStringForType($('x'), $.NSStringPboardTypo); 'x'",  # noqa: E501
    )


# --- the bridge on other systems ---

WIDE = """ObjC.import('AppKit'); var running = $.NSWorkspace.sharedWorkspace.runningApplications; var app = running.objectAtIndex(0);
    [typeof running.count, typeof app.activationPolicy, typeof app.processIdentifier, typeof $.NSScreen.screens.objectAtIndex(0).frame.size.width]"""  # noqa: E501


def test_64_bit_integers_come_as_strings_and_on_other_systems_as_numbers(mac: FakeMac) -> None:
    assert answer(mac, WIDE) == ["string", "string", "number", "number"]
    mac.switch(bridged_integers="numbers")
    assert answer(mac, WIDE) == ["number"] * 4


def test_nil_is_an_object_or_null(mac: FakeMac) -> None:
    source = "ObjC.import('AppKit'); $.NSRunningApplication.runningApplicationWithProcessIdentifier(99999) === null"  # noqa: E501
    assert answer(mac, source) is False
    mac.switch(nil_is_null=True)
    assert answer(mac, source) is True


def test_preferences_of_another_program_can_be_read(mac: FakeMac) -> None:
    source = "ObjC.import('Foundation'); $.NSUserDefaults.alloc.initWithSuiteName('com.apple.HIToolbox').stringForKey('AppleCurrentKeyboardLayoutInputSourceID').js"  # noqa: E501
    mac.set("keyboard.layout", "german")
    assert answer(mac, source) == "com.apple.keylayout.German"
    words = ("defaults", "read", "com.apple.HIToolbox", "AppleCurrentKeyboardLayoutInputSourceID")
    assert run(mac, *words).stdout == "com.apple.keylayout.German\n"
    mac.set("keyboard.layout", "unreadable")
    assert run(mac, *words).returncode == 1


# --- menus, dialogs, applications that hang ---


def test_a_sheet_is_a_child_of_its_window_and_no_window_of_its_app(mac: FakeMac) -> None:
    roles = """var read = function (element, name) { var out = Ref(); $.AXUIElementCopyAttributeValue(element, $(name), out); return out[0] };
    var list = windowsOf(440)[1][0]; var sheet = read(list.objectAtIndex(0), 'AXChildren').objectAtIndex(0);
    [Number(list.count), read(sheet, 'AXRole').js, read(list.objectAtIndex(0), 'AXRole').js]"""  # noqa: E501
    assert answer(mac, AX + roles) == [1, "AXSheet", "AXWindow"]


def test_a_modal_dialog_says_so_and_blocks_the_other_windows_of_its_app(mac: FakeMac) -> None:
    mac.open_window("Form", title="Sure?", bounds=[200, 600, 300, 200], modal=True)
    read = "var out = Ref(); $.AXUIElementCopyAttributeValue(windowsOf(500)[1][0].objectAtIndex(1), $('AXModal'), out); out[0].js"  # noqa: E501
    assert answer(mac, AX + read) is True
    jxa(mac, MOUSE + "click(900, 210); 'x'")
    assert mac.events("click")[-1]["blocked_by_modal"] == 2000
    jxa(mac, KEYS + "key(48, 0); 'x'")
    assert mac.events("key")[-1]["window"] == 2000


def test_a_menu_takes_keys_and_no_text_and_closes_when_an_app_comes_forward(mac: FakeMac) -> None:
    menu = mac.open_window("Terminal", bounds=[100, 100, 100, 100], layer=101)
    jxa(mac, KEYS + "key(125, 0); key(0, 0); 'x'")
    assert [(one["kind"], one["window"]) for one in mac.events("key", "text")] == [
        ("key", menu),
        ("text", menu),
    ]
    mac.activate("Form")
    assert mac.window(menu) is None


def test_a_click_beside_a_menu_closes_it_and_reaches_nobody(mac: FakeMac) -> None:
    menu = mac.open_window("Terminal", bounds=[100, 100, 100, 100], layer=101)
    jxa(mac, MOUSE + "click(900, 210); 'x'")
    assert (mac.window(menu), mac.events("click")[-1]["window"], mac.state()["frontmost_pid"]) == (
        None,
        None,
        480,
    )


def test_an_app_that_hangs_holds_an_ax_call_until_the_messaging_timeout(mac: FakeMac) -> None:
    mac.update(lambda state: next(app for app in state["apps"] if app["pid"] == 410).update(hung=True))
    bound = "ObjC.bindFunction('AXUIElementCreateSystemWide', ['id', []]); ObjC.bindFunction('AXUIElementSetMessagingTimeout', ['int', ['id', 'float']]);"  # noqa: E501
    source = f"{bound} $.AXUIElementSetMessagingTimeout($.AXUIElementCreateSystemWide(), 0.3); var start = Date.now(); var code = windowsOf(410)[0]; [code, Date.now() - start]"  # noqa: E501
    code, took_ms = answer(mac, AX + source)
    assert (code, 300 <= took_ms < 5000) == (-25204, True)


def test_the_element_at_a_position_is_what_a_click_would_reach(mac: FakeMac) -> None:
    bound = "ObjC.bindFunction('AXUIElementCreateSystemWide', ['id', []]); ObjC.bindFunction('AXUIElementCopyElementAtPosition', ['int', ['id', 'float', 'float', 'id*']]); ObjC.bindFunction('AXUIElementGetPid', ['int', ['id', 'int*']]);"  # noqa: E501
    source = f"{bound} var out = Ref(), pid = Ref(); [$.AXUIElementCopyElementAtPosition($.AXUIElementCreateSystemWide(), 900, 210, out), $.AXUIElementGetPid(out[0], pid), pid[0]]"  # noqa: E501
    assert answer(mac, AX + source) == [0, 0, 500]
    mac.open_window("Safari", bounds=[0, 0, 1440, 900], layer=25, click_through=True)
    assert answer(mac, AX + source) == [0, 0, 500]


def test_something_can_happen_between_two_events(mac: FakeMac) -> None:
    mac.when({"type": 10}, {"do": "activate_now", "pid": 500}, skip=1)
    jxa(mac, KEYS + "key(0, 0); key(1, 0); key(2, 0); 'x'")
    assert [(one["text"], one["app"]) for one in mac.events("text")] == [
        ("a", "Terminal"),
        ("s", "Terminal"),
        ("d", "Form"),
    ]


# --- keys of other layouts, and with flags of their own ---


@pytest.mark.parametrize(
    ("code", "bare", "full"),
    [(123, 0x40000, 0xA40000), (115, 0x100000, 0x900000), (117, 0x80000, 0x880000), (96, 0x40000, 0x840000)],
)
def test_a_chord_of_such_a_key_is_nobodys_without_the_flags_that_a_keyboard_sends(
    mac: FakeMac, code: int, bare: int, full: int
) -> None:
    jxa(mac, KEYS + f"key({code}, {bare}); 'x'")
    assert (mac.events("key"), [one["kind"] for one in mac.events("dropped")]) == ([], ["dropped"])
    jxa(mac, KEYS + f"key({code}, {full}); 'x'")
    assert [(one["code"], len(one["modifiers"])) for one in mac.events("key")] == [(code, 1)]


@pytest.mark.parametrize(
    ("layout", "letters"), [("german", "zy"), ("dvorak", "f;"), ("azerty", "yw"), ("us", "yz")]
)
def test_the_places_of_a_keyboard_carry_other_letters_on_other_layouts(
    mac: FakeMac, layout: str, letters: str
) -> None:
    mac.set("keyboard.layout", layout)
    jxa(mac, KEYS + "key(16, 0); key(6, 0); 'x'")
    assert "".join(one["text"] for one in mac.events("text")) == letters


# --- developer tools ---


def test_a_compiler_that_is_run_by_its_own_path_has_no_sdk(mac: FakeMac) -> None:
    mac.tools("good")
    done = run(mac, "swiftc", "a.swift", "-o", "a")
    assert (done.returncode, "unable to load standard library" in done.stderr) == (1, True)
    done = run(mac, "xcrun", "swiftc", "a.swift", "-o", "a")
    assert "unable to load standard library" in done.stderr
    assert run(mac, "xcrun", "--sdk", "iphoneos", "swiftc", "--version").returncode == 72
    assert "Apple Swift version" in run(mac, "xcrun", "--sdk", "macosx", "swiftc", "--version").stdout


# --- screencapture ---


def test_an_unknown_flag_is_refused_with_the_usage(mac: FakeMac) -> None:
    done = run(mac, "screencapture", "-x", "-Z", "shot.png")
    assert done.returncode == 1 and done.stderr.startswith(
        "screencapture: illegal option -- Z\nusage: screencapture"
    )
    assert run(mac, "screencapture", "-h").stderr.startswith("screencapture: illegal option -- h")


def test_an_interactive_capture_waits_for_a_person(mac: FakeMac) -> None:
    assert [hangs(mac, "screencapture", flag, "shot.png") for flag in ("-i", "-w", "-W", "-s")] == [True] * 4


@pytest.mark.parametrize("change", [None, "minimise", "space", "hide", "close", "protect", "lock"])
def test_a_window_that_cannot_be_taken_is_always_the_same_sentence(
    mac: FakeMac, change: Optional[str]
) -> None:
    window = 9999 if change is None else 1030
    changes = {"minimise": {"minimised": True}, "space": {"space": 2}, "protect": {"sharing": "none"}}
    if change in changes:
        mac.change_window(1030, changes[change])
    elif change == "hide":
        mac.update(lambda state: next(app for app in state["apps"] if app["pid"] == 430).update(hidden=True))
    elif change == "close":
        mac.close_window(1030, lingers_ms=60000)
    elif change == "lock":
        mac.lock_screen()
    done = run(mac, "screencapture", "-x", "-o", "-l", window, "shot.png")
    assert (done.returncode, done.stderr) == (1, "could not create image from window\n")
    assert not (mac.folder / "shot.png").exists()


def test_a_closing_window_lingers_in_the_list(mac: FakeMac) -> None:
    mac.close_window(1030, lingers_ms=60000)
    assert 1030 in [window["kCGWindowNumber"] for window in answer(mac, LIST % 17 + "windows")]


@pytest.mark.parametrize(
    "argv, subject", [([], "display"), (["-R", "0,0,10,10"], "rect"), (["-l", "1090"], "window")]
)
def test_a_denied_capture_is_an_error_on_newer_systems(mac: FakeMac, argv: list[str], subject: str) -> None:
    mac.deny("screen_recording")
    mac.era("error")
    done = run(mac, "screencapture", "-x", *argv, "shot.png")
    assert (done.returncode, done.stderr, (mac.folder / "shot.png").exists()) == (
        1,
        f"could not create image from {subject}\n",
        False,
    )


def test_a_denied_capture_is_a_wallpaper_on_older_systems(mac: FakeMac) -> None:
    mac.deny("screen_recording")
    shot = capture(mac)
    assert fakemac.pixel(shot, 1700, 300) == fakemac.WALLPAPER, "where the Form is"
    assert fakemac.pixel(shot, 10, 10) == fakemac.MENU_BAR
    assert fakemac.pixel(shot, 200, 300) == fakemac.window_colour(1080), "the responsible app's own window"
    assert fakemac.pixel(capture(mac, "-o", "-l", "1090"), 5, 5) == fakemac.WALLPAPER


def test_an_unanswered_screen_recording_prompt_hangs(mac: FakeMac) -> None:
    mac.ask("screen_recording")
    assert hangs(mac, "screencapture", "-x", "shot.png")


def test_a_capture_may_exit_0_and_leave_an_empty_file(mac: FakeMac) -> None:
    mac.fail("screencapture", exit=0, file=b"", times=1)
    assert capture(mac).stat().st_size == 0
    assert fakemac.image_size(capture(mac)) == (2880, 1800)


def test_a_window_picture_is_its_points_times_the_scale(mac: FakeMac) -> None:
    shot = capture(mac, "-o", "-l", "1004")
    assert (fakemac.image_size(shot), fakemac.pixel(shot, 900, 700)) == (
        (1800, 1280),
        fakemac.window_colour(1004),
    ), "though it is covered"
    assert fakemac.image_size(capture(mac, "-o", "-a", "-l1040")) == (1100, 700)


def test_the_shadow_makes_the_picture_larger_by_over_100_pixels_on_retina(mac: FakeMac) -> None:
    width = fakemac.image_size(capture(mac, "-l", "1090"))[0] - 960
    assert width > 100
    assert 0 < fakemac.image_size(capture(mac, "-a", "-l", "1040"))[0] - 1100 < 100


def test_without_a_the_sheet_is_in_the_picture(mac: FakeMac) -> None:
    assert fakemac.image_size(capture(mac, "-o", "-l", "1040")) == (1100, 800)


def test_r_takes_points_and_gives_pixels(mac: FakeMac) -> None:
    shot = capture(mac, "-R", "820,100,480,360")
    assert (fakemac.image_size(shot), fakemac.pixel(shot, 900, 100)) == (
        (960, 720),
        fakemac.window_colour(1090),
    )


def test_r_takes_negative_coordinates_joined_or_not(mac: FakeMac) -> None:
    assert fakemac.image_size(capture(mac, "-R-1700,-60,1100,700")) == (1100, 700)
    assert fakemac.pixel(capture(mac, "-R", "-1700,-60,1100,700"), 5, 5) == fakemac.window_colour(1040)


def test_r_off_all_screens_is_an_error(mac: FakeMac) -> None:
    done = run(mac, "screencapture", "-x", "-R", "9000,9000,10,10", "shot.png")
    assert (done.returncode, done.stderr) == (1, "could not create image from rect\n")


def test_r_is_ignored_together_with_l(mac: FakeMac) -> None:
    assert fakemac.image_size(capture(mac, "-o", "-R", "0,0,10,10", "-l", "1090")) == (960, 720)


def test_d_counts_active_displays_from_1_and_takes_no_display_id(mac: FakeMac) -> None:
    assert fakemac.image_size(capture(mac, "-D", "2")) == (1920, 1080)
    done = run(
        mac, "screencapture", "-x", "-D", "3", "shot.png"
    )  # 3 is the second display's CGDirectDisplayID
    assert done.returncode == 1 and done.stderr.startswith("Invalid display specified. Only 2 displays")


def test_one_file_is_the_main_display_and_two_files_are_two_displays(mac: FakeMac) -> None:
    assert fakemac.image_size(capture(mac)) == (2880, 1800)
    run(mac, "screencapture", "-x", "a.png", "b.png")
    assert [fakemac.image_size(mac.folder / name) for name in ("a.png", "b.png")] == [
        (2880, 1800),
        (1920, 1080),
    ]


def test_a_flag_after_a_file_name_is_a_file_name(mac: FakeMac) -> None:
    run(mac, "screencapture", "shot.png", "-x")
    assert [event["kind"] for event in mac.events()] == ["strict", "sound"]


def test_no_file_is_an_error(mac: FakeMac) -> None:
    done = run(mac, "screencapture", "-x", "-l", "1090")
    assert (done.returncode, done.stderr) == (1, "screencapture: no file specified\n")


def test_a_missing_folder_writes_nothing_and_says_nothing(mac: FakeMac) -> None:
    done = run(mac, "screencapture", "-x", "missing/shot.png")
    assert (done.returncode, done.stderr, (mac.folder / "missing").exists()) == (0, "", False)


def test_dpi_tells_retina_unless_r(mac: FakeMac) -> None:
    assert "dpiWidth: 144.000" in run(mac, "sips", "-g", "dpiWidth", capture(mac)).stdout
    assert "dpiWidth: 72.000" in run(mac, "sips", "-g", "dpiWidth", capture(mac, "-D2")).stdout


def test_t_decides_the_format_not_the_name(mac: FakeMac) -> None:
    assert capture(mac, "-t", "jpg").read_bytes()[:3] == b"\xff\xd8\xff"


# --- sips, Vision ---


def test_sips_takes_height_first(mac: FakeMac) -> None:
    shot = capture(mac)
    run(mac, "sips", "-z", "100", "300", shot)
    assert fakemac.image_size(shot) == (300, 100), "and in place, without --out"


def test_sips_enlarges_too(mac: FakeMac) -> None:
    shot = capture(mac, "-R", "0,0,100,50")
    run(mac, "sips", "-Z", "400", shot, "--out", mac.folder / "large.png")
    assert (fakemac.image_size(mac.folder / "large.png"), fakemac.image_size(shot)) == (
        (400, 200),
        (200, 100),
    )


def test_sips_knows_jpeg_and_not_jpg(mac: FakeMac) -> None:
    shot = capture(mac)
    assert run(mac, "sips", "-s", "format", "jpg", shot, "--out", mac.folder / "a.jpg").returncode == 1
    assert (
        run(
            mac,
            "sips",
            "-s",
            "format",
            "jpeg",
            "-s",
            "formatOptions",
            "80",
            shot,
            "--out",
            mac.folder / "a.jpg",
        ).returncode
        == 0
    )
    assert (mac.folder / "a.jpg").read_bytes()[:3] == b"\xff\xd8\xff"


def test_sips_exits_0_on_what_it_cannot_read(mac: FakeMac) -> None:
    (mac.folder / "no.png").write_text("no picture")
    done = run(mac, "sips", "-Z", "10", "no.png", "--out", "out.png")
    assert (done.returncode, (mac.folder / "out.png").exists()) == (0, False)


OCR = """ObjC.import('Vision'); function read(path) { var request = $.VNRecognizeTextRequest.alloc.init; request.recognitionLevel = 0;
  var handler = $.VNImageRequestHandler.alloc.initWithURLOptions($.NSURL.fileURLWithPath(path), $({}));
  if (!handler.performRequestsError($([request]), null)) return null;
  return request.results.js.map(function (found) { var box = found.boundingBox; return [found.topCandidates(1).firstObject.string.js, box.origin.x, box.origin.y, box.size.height]; }); };
"""  # noqa: E501


def test_vision_reads_what_is_visible_from_the_bottom_left(mac: FakeMac) -> None:
    shot = capture(mac, "-o", "-l", "1090")
    found = {
        text: (x, y, height) for text, x, y, height in answer(mac, OCR + f"read({json.dumps(str(shot))})")
    }
    assert set(found) == {"Form", "Members", "New entry", "Search", "Twice", "Delete", "Later", "Close"}
    x, y, height = found["New entry"]
    assert x * 960 == pytest.approx(56) and (1 - y - height) * 720 == pytest.approx(204)


def test_vision_reads_a_smaller_jpeg_and_no_text_file(mac: FakeMac) -> None:
    shot = capture(mac, "-o", "-l", "1090")
    run(mac, "sips", "-Z", "480", "-s", "format", "jpeg", shot, "--out", mac.folder / "small.jpg")
    assert len(answer(mac, OCR + f"read({json.dumps(str(mac.folder / 'small.jpg'))})")) == 8
    (mac.folder / "no.png").write_text("no picture")
    assert answer(mac, OCR + f"read({json.dumps(str(mac.folder / 'no.png'))})") is None


def test_a_covered_label_cannot_be_read(mac: FakeMac) -> None:
    texts = [label["text"] for label in fakemac.labels(capture(mac))]
    assert "New entry" in texts and "hunter2" not in texts


# --- Keynote ---


def test_keynote_starts_by_activate_and_a_new_document_is_1024_by_768(mac: FakeMac) -> None:
    assert answer(
        mac,
        "var KN = Application('Keynote'); KN.activate(); var doc = KN.make({new: 'document'}); [doc.width(), doc.height(), KN.documents.length]",  # noqa: E501
    ) == [1024, 768, 1]
    assert [event["kind"] for event in mac.events("launch", "activate", "keynote_make_document")] == [
        "launch",
        "activate",
        "keynote_make_document",
    ]


@pytest.mark.parametrize(
    "bundles, found",
    [
        (["com.apple.Keynote"], [True, False]),
        (["com.apple.iWork.Keynote"], [False, True]),
        ([], [False, False]),
    ],
)
def test_there_are_two_keynotes(mac: FakeMac, bundles: list[str], found: list[bool]) -> None:
    mac.keynote(installed=bundles)
    source = "ObjC.import('AppKit'); ['com.apple.Keynote', 'com.apple.iWork.Keynote'].map(function (id) { return !$.NSWorkspace.sharedWorkspace.URLForApplicationWithBundleIdentifier(id).isNil() })"  # noqa: E501
    assert answer(mac, source) == found


REFUSED_BY_KEYNOTE = {
    "slide.shapes[0].id()": -1728,
    "doc.slideSize()": -1728,
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
    "slide.iWorkItems()": -1700,
    "KN.export(doc, {to: '/tmp/x', as: 'slide images'})": -1700,
    "KN.export(doc, {to: Path('/tmp/x'), as: 'PNG'})": -1700,
    "KN.export(doc, {to: Path('/tmp/x'), as: 'slide images', withProperties: {imageFormat: 'PNG'}})": -1700,
    "KN.export(doc, {to: Path('/no/such/parent/x'), as: 'slide images'})": -10000,
}


def test_what_keynotes_dictionary_does_not_have_is_refused(mac: FakeMac) -> None:
    tries = "".join(
        f"try {{ {source}; numbers.push('accepted') }} catch (error) {{ numbers.push(error.errorNumber) }}\n"
        for source in REFUSED_BY_KEYNOTE
    )
    numbers = answer(mac, SHAPE + "var numbers = [];" + tries + "; numbers")
    assert dict(zip(REFUSED_BY_KEYNOTE, numbers)) == REFUSED_BY_KEYNOTE


def test_a_shape_is_pushed_or_made_and_written_into(mac: FakeMac) -> None:
    source = (
        SHAPE
        + """KN.make({new: 'shape', at: slide.shapes, withProperties: {position: {x: 1, y: 2}, width: 30, height: 40}}).objectText = 'Hello';
    [slide.shapes.length, slide.shapes[0].position(), slide.shapes[1].width(), slide.shapes[1].objectText()]"""  # noqa: E501
    )
    assert answer(mac, source) == [2, {"x": 10, "y": 20}, 30, "Hello"]


def test_the_push_of_a_shape_may_fail(mac: FakeMac) -> None:
    mac.keynote(shape_push="fails")
    assert error(mac, SHAPE + "'x'").endswith("(-10000)\n")
    make = DECK + "KN.make({new: 'shape', at: slide.shapes, withProperties: {width: 30}}).width()"
    assert answer(mac, make) == 30
    mac.keynote(shape_make="fails")
    assert error(mac, make + "+ ''").endswith("(-10000)\n")


def test_the_count_of_text_items_lies(mac: FakeMac) -> None:
    assert answer(
        mac,
        SHAPE
        + "slide.shapes[0].objectText = 'Hello'; [slide.textItems.length, slide.textItems().length, slide.shapes.length]",  # noqa: E501
    ) == [4, 3, 1]


def test_deleting_what_is_not_there_succeeds_and_a_phantom_cannot_be_deleted(mac: FakeMac) -> None:
    assert answer(mac, SHAPE + "KN.delete(slide.shapes[7]); slide.shapes.length") == 1
    assert error(mac, SHAPE + "KN.delete(slide.textItems[0]); 'x'").endswith("(-10000)\n")


def test_a_windowless_keynote_is_gone_between_calls(mac: FakeMac) -> None:
    mac.keynote(auto_quits=True)
    assert answer(mac, "var KN = Application('Keynote'); KN.activate(); KN.documents.length") == 0
    assert error(mac, "Application('Keynote').documents.length").endswith("Connection is invalid. (-609)\n")
    assert error(mac, "Application('Keynote').documents.length").endswith("(-600)\n")


def test_document_1_may_be_somebody_elses(mac: FakeMac) -> None:
    mac.keynote(restores_a_deck=True)
    assert (
        answer(mac, "var KN = Application('Keynote'); KN.activate(); KN.documents[0].name()")
        == "Quarterly Results"
    )


def test_a_fresh_keynote_may_not_know_its_size_yet(mac: FakeMac) -> None:
    mac.keynote(ready_after_ms=60000)
    assert error(mac, DECK + "doc.width() + ''").endswith("(-1728)\n")


def test_the_first_save_of_an_untitled_document_blocks(mac: FakeMac) -> None:
    assert hangs(mac, "osascript", "-l", "JavaScript", "-", stdin=DECK + "KN.save(doc); 'x'")


EXPORT = """on run argv
  set deckId to item 1 of argv
  set folderPath to item 2 of argv
  using terms from application "Keynote"
    tell application id "com.apple.Keynote"
      with timeout of 120 seconds
        export document id deckId to (POSIX file folderPath) as slide images with properties {image format:PNG, skipped slides:false}
      end timeout
    end tell
  end using terms from
  return folderPath
end run
"""  # noqa: E501


def test_an_export_is_a_folder_of_numbered_pictures_without_skipped_slides(mac: FakeMac) -> None:
    deck = answer(
        mac,
        SHAPE
        + "slide.shapes[0].objectText = 'Hello'; KN.make({new: 'slide', at: doc}).skipped = true; KN.make({new: 'slide', at: doc}); doc.id()",  # noqa: E501
    )
    target = mac.folder / "deck"
    done = applescript(mac, EXPORT, deck, str(target))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{target}\n", "")
    assert sorted(path.name for path in target.iterdir()) == ["deck.001.png", "deck.002.png"]
    assert fakemac.image_size(target / "deck.001.png") == (1920, 1080)
    assert [label["text"] for label in fakemac.labels(target / "deck.001.png")] == ["Hello"]
    applescript(mac, EXPORT, deck, str(target))
    assert (target / "deck" / "deck.001.png").exists(), "into a folder that is there: a folder inside it"


@pytest.mark.parametrize(
    "line, number",
    [
        ("make new shape with properties {shape type:rectangle}", -2741),
        ("set s to slide size", -2741),
        ("export it to x as PDF sideways", -2741),
        ('do shell script "ls"', -2741),
        ("set frontmost to true", -10006),
        ("return width of document 9", -1719),
        ('return width of document id "x"', -1728),
        ("return nothing", -2753),
    ],
)
def test_applescript_refuses_what_is_no_term(mac: FakeMac, line: str, number: int) -> None:
    done = applescript(mac, f'tell application "Keynote"\nactivate\nmake new document\n{line}\nend tell')
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.endswith(f"({number})\n")
    assert (mac.events() == []) == (number == -2741), "what does not compile does not run"


# With two shapes on slide 1, of which newShape is the second.
ON_A_SLIDE = """on run argv
  set leftEdge to item 1 of argv as integer
  set topEdge to item 2 of argv as real
  tell application id "com.apple.Keynote"
    activate
    set deck to make new document with properties {width:1920, height:1080}
    tell slide 1 of deck
      make new shape at end of shapes
      set newShape to make new shape at end of shapes with properties {position:{leftEdge, topEdge}, width:300, height:100}
      BODY
    end tell
  end tell
end run
"""  # noqa: E501


def on_a_slide(mac: FakeMac, body: str) -> subprocess.CompletedProcess[str]:
    mac.keynote(shape_push="fails", shape_make="fails")  # which are moods towards JXA alone
    return applescript(mac, ON_A_SLIDE.replace("BODY", body), "10", "20.5")


WHICH = """repeat with i from 1 to count of shapes
  if shape i is newShape then
    set found to i
    exit repeat
  end if
end repeat
return found
"""


@pytest.mark.parametrize(
    "body, printed",
    [
        (WHICH, "2"),
        (WHICH.replace("is newShape", "is not newShape"), "1"),
        (WHICH.replace("from 1 to", "from 3 to").replace("return found", "return i"), None),
        (
            'set at2 to position of newShape\nset h to height of shape 2\nreturn (item 1 of at2 as text) & "|" & item 2 of at2 & "|" & h',  # noqa: E501
            "10|20.5|100",
        ),
        (
            "set position of shape 1 to {1, 2}\nset width of shape 1 to 55\nset at1 to position of shape 1\nreturn at1 & (width of shape 1)",  # noqa: E501
            "1, 2, 55",
        ),
        (
            'set object text of shape 2 to "Grüße"\nreturn (object text of shape 2) & "/" & (object text of shape 1)',  # noqa: E501
            "Grüße/",
        ),
        ("return count of shapes", "2"),
        ('return 1 & "a"', "1, a"),
        ('return {1, "a"} as text', "1a"),
        ('return "1" + 1', "2"),
    ],
)
def test_applescript_makes_a_shape_finds_it_again_and_reads_its_place(
    mac: FakeMac, body: str, printed: Optional[str]
) -> None:
    done = on_a_slide(mac, body)
    if printed is None:
        assert done.stderr.endswith("The variable i is not defined. (-2753)\n"), (
            "a loop from 3 to 2 has no rounds"
        )
    else:
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{printed}\n", "")


REFUSED_ON_A_SLIDE = {
    "make new shape at end of shapes with properties {shape type:rectangle}": -2741,
    "set shape type of newShape to rectangle": -2741,
    "return corner radius of newShape": -2741,
    "return current slide of newShape": -1728,
    "set alignment of object text of newShape to center": -10006,
    'set background fill type of newShape to "none"': -10006,
    "return id of newShape": -1728,
    "return width of shape 3": -1719,
    'set object text of shape 0 to "x"': -1719,
    "return item 1 of position of newShape": -1728,  # asks Keynote for an item of it: get it first
    "return newShape as text": -1700,
    'return "a" & newShape': -1700,
    'return "a" as integer': -1700,
    "return item 3 of argv": -1728,
    'set width of newShape to "wide"': -1700,
    "set st to 1": -2741,
    "set before to 1": -2741,
    "set plain to 1": -10003,
    "repeat with width from 1 to 2\nend repeat": -2741,
    "exit repeat": -2741,
    "repeat with i from 1 to 2": -2741,
    "if 1 is 1 then": -2741,
}


@pytest.mark.parametrize("body", REFUSED_ON_A_SLIDE)
def test_what_keynote_or_applescript_does_not_take_on_a_slide_is_refused(mac: FakeMac, body: str) -> None:
    done = on_a_slide(mac, body)
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.endswith(
        f"({REFUSED_ON_A_SLIDE[body]})\n"
    )


def test_a_fraction_becomes_text_as_the_language_writes_it(mac: FakeMac) -> None:
    mac.switch(language="de")
    assert on_a_slide(mac, 'return (20.5 as text) & "|" & 7').stdout == "20,5|7\n"


def test_an_applescript_file_stands_before_its_errors(mac: FakeMac) -> None:
    mac.deny("automation", "com.apple.Keynote")
    script = mac.folder / "export.applescript"
    script.write_text(EXPORT)
    done = run(mac, "osascript", script, "x", mac.folder / "deck")
    assert done.stderr.startswith(f"{script}:") and done.stderr.endswith(
        "execution error: Not authorized to send Apple events to Keynote. (-1743)\n"
    )


# --- small tools ---


def test_without_developer_tools_the_compiler_opens_a_dialog(mac: FakeMac) -> None:
    mac.tools("none")
    assert run(mac, "xcode-select", "-p").returncode == 2
    assert mac.events("dialog") == []
    done = run(mac, "swiftc", "--version")
    assert done.returncode == 1 and "requesting install" in done.stderr and len(mac.events("dialog")) == 1


def test_broken_developer_tools_look_good_until_they_compile(mac: FakeMac) -> None:
    mac.tools("broken")
    folder = run(mac, "xcode-select", "-p").stdout.strip()
    assert (
        Path(folder, "usr", "bin", "swiftc").exists()
        and run(mac, "xcrun", "--find", "swiftc").returncode == 0
    )
    done = run(mac, "xcrun", "--sdk", "macosx", "swiftc", "a.swift", "-o", "a")
    assert done.returncode == 1 and "this SDK is not supported by the compiler" in done.stderr


def test_open_activates_unless_g_and_names_what_it_cannot_find(mac: FakeMac) -> None:
    run(mac, "open", "-g", "-b", "com.apple.TextEdit")
    assert mac.state()["frontmost_pid"] == 480
    run(mac, "open", "-a", "TextEdit")
    assert mac.state()["frontmost_pid"] == 430
    assert run(mac, "open", "-a", "X").stderr == "Unable to find application named 'X'\n"
    assert run(mac, "open", "-b", "x.y").stderr.startswith(
        "LSCopyApplicationURLsForBundleIdentifier() failed"
    )


def test_the_clipboard_programs_mangle_text_without_a_locale(mac: FakeMac) -> None:
    run(mac, "pbcopy", stdin="caf\u00e9")
    assert run(mac, "pbpaste").stdout == "caf\u00e9"
    run(mac, "pbcopy", stdin="caf\u00e9", env={"LANG": ""})
    assert run(mac, "pbpaste").stdout != "caf\u00e9"


def test_getwindowid_is_not_installed_and_says_254_for_nothing_found(mac: FakeMac) -> None:
    assert not (mac.bin_dir / "GetWindowID").exists()
    mac.install("GetWindowID")
    assert run(mac, "GetWindowID", "Form", "Form").stdout == "1090\n"
    assert run(mac, "GetWindowID", "com.example.form", "--list").returncode == 254
    mac.deny("screen_recording")
    assert run(mac, "GetWindowID", "Form", "--list").stdout == '"(null)" size=480x360 id=1090\n'


def test_the_responsible_app_is_the_one_that_hosts_us(mac: FakeMac) -> None:
    source = "ObjC.bindFunction('responsibility_get_pid_responsible_for_pid', ['int', ['int']]); $.responsibility_get_pid_responsible_for_pid($.NSProcessInfo.processInfo.processIdentifier)"  # noqa: E501
    assert answer(mac, source) == 480
    pid, chain = os.getpid(), []
    while pid > 1:
        _, parent, name = run(mac, "ps", "-o", "pid=,ppid=,comm=", "-p", pid).stdout.split(None, 2)
        pid, chain = int(parent), [*chain, Path(name.strip()).name]
    assert chain == ["python3", "-zsh", "login", "Terminal"]


def test_system_profiler_knows_names_and_no_coordinates(mac: FakeMac) -> None:
    cards = json.loads(run(mac, "system_profiler", "SPDisplaysDataType", "-json").stdout)[
        "SPDisplaysDataType"
    ]
    assert [screen["_name"] for screen in cards[0]["spdisplays_ndrvs"]] == [
        "Built-in Retina Display",
        "LG UltraFine",
    ]
    assert "spdisplays_ndrvs" not in cards[1]


def test_a_hang_lasts_until_it_is_killed_and_a_failure_as_often_as_told(mac: FakeMac) -> None:
    mac.hang("sips")
    assert hangs(mac, "sips", "-g", "pixelWidth", "x.png")
    child = subprocess.Popen(
        [str(mac.bin_dir / "sips"), "-g", "pixelWidth", "x.png"], env=mac.env(), start_new_session=True
    )
    wait_for(mac.hanging, "it hangs")
    assert [call["program"] for call in mac.running()] == ["sips"]
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    assert mac.running() == []
    mac.heal()
    mac.fail("osascript", stderr="execution error: AppleEvent timed out. (-1712)", when=["front"], times=1)
    assert error(mac, "'the front'").endswith("(-1712)\n")
    assert jxa(mac, "'the front'").stdout == "the front\n"


def test_events_that_a_compiled_helper_appends_are_settled_too(mac: FakeMac) -> None:
    lines = [
        {
            "type": kind,
            "x": 900,
            "y": 210,
            "button": 0,
            "clickState": 1,
            "flags": 0,
            "tap": 0,
            "source_state": -1,
            "suppression_s": 0,
        }
        for kind in (5, 1, 2)
    ]
    (mac.folder / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [event["widget"] for event in mac.events("click")] == ["new"]
    assert json.loads((mac.folder / "pointer.json").read_text()) == {"x": 900, "y": 210}

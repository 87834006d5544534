"""Acts on a fake Mac through the command line and the backend: points, windows, refusals, focus, helper.

test_swift.py tests the steps and their events.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import stat
import threading
import time
from contextlib import nullcontext
from contextvars import copy_context
from pathlib import Path
from typing import IO, Any, Callable, Optional

import pytest
from fakemac import FakeMac, pixel, widget_colour
from fakemac.pointer_and_keys import DIGITS, LETTERS, NAMED, SIGNS
from mac_desk import STARTED, Desk, check_permission_error, widget
from samples import error_of
from worlds import PATIENCE_S, executable, need_swift, wait_for

from peekaboo_min.core.call import use_cancel_token
from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.core.models import Act, Delivery, Point, Window
from peekaboo_min.desktop.keys import read_chord
from peekaboo_min.desktop.macos import input as mac_input
from peekaboo_min.desktop.macos import osascript, swift_helper
from peekaboo_min.desktop.macos.backend import MacDesktop
from peekaboo_min.desktop.macos.input import make_steps

COMMAND, SHIFT, OPTION, CONTROL = 0x100000, 0x20000, 0x80000, 0x40000

# clicks: the exact point for every display and screenshot size ---------------------------------------------


def test_click_below_a_sheet_is_refused_and_on_it_arrives(desk: Desk) -> None:
    data = desk.data("screenshot", 1040)  # without the sheet, which reaches beyond the window
    assert (data["image_width"], data["image_height"]) == (1100, 700)
    refused = desk.run("click", 1040, 10, 10)
    assert (refused.error["code"], desk.posted()) == ("WINDOW_BLOCKED", [])
    sheet = desk.data("screenshot", 1041)
    assert pixel(Path(sheet["path"]), 400, 280) == widget_colour(1041, "keep")
    desk.data("click", 1041, 400, 280)
    assert desk.clicks() == [(1041, "keep", "left", 1, -1000, 680)]
    assert desk.mac.window(1041) is None


# refused before any event is posted -------------------------------------------------------------------------

ACTS: dict[str, tuple[Any, ...]] = {
    "click": ("click", 1080, 500, 100),
    "type": ("type", 1080, "hello"),
    "press": ("press", 1080, "return"),
}


def test_act_without_accessibility_error_names_the_app(desk: Desk) -> None:
    desk.data("screenshot", 1080)
    desk.mac.deny("accessibility")
    finished = desk.run(*ACTS["click"])
    assert finished.error["code"] == "PERMISSION_DENIED_ACCESSIBILITY"
    check_permission_error(finished, 12)


def test_act_on_a_locked_screen_is_refused_after_one_program(desk: Desk) -> None:
    desk.data("screenshot", 1080)
    desk.mac.lock_screen()  # events posted now are lost
    before = len(desk.mac.calls())
    assert [desk.run(*words).error["code"] for words in ACTS.values()] == ["SCREEN_LOCKED"] * 3
    assert (desk.posted(), len(desk.mac.calls()) - before) == ([], 3)
    assert desk.run("open", "--app", "Notes").error["code"] == "SCREEN_LOCKED"
    assert desk.mac.calls("open") == []


# keys -----------------------------------------------------------------------------------------------------

FAKE_NAMES = {"forward_delete": "delete", "enter": "enter_keypad", "help": "insert"}
SIGN_NAMES = {
    "=": "equal", "-": "minus", "]": "right_bracket", "[": "left_bracket", "'": "quote", ";": "semicolon",
    "\\": "backslash", ",": "comma", "/": "slash", ".": "period", "`": "backquote", " ": "space",
}  # fmt: skip


def key_down(chord: str) -> dict[str, Any]:
    """Return the step that presses a chord's key."""
    return next(step for step in make_steps(Act("press", chord=read_chord(chord))) if step.get("counts"))


def test_key_has_its_hardware_key_code() -> None:
    names = {**NAMED, **LETTERS, **DIGITS, **SIGNS}
    expected = {FAKE_NAMES.get(name) or SIGN_NAMES.get(name, name): code for code, name in names.items()}
    assert {name: key_down(name)["code"] for name in expected} == expected


@pytest.mark.parametrize(
    ("chord", "code", "flags"),
    [
        ("ctrl+alt+f5", 96, CONTROL | OPTION | 0x800000),
        ("delete", 117, 0x800000),
        ("fn+f1", 122, 0x800000),
        ("super+cmd+a", 0, COMMAND),
        ("ctrl", 59, CONTROL),
        ("shift+super", 55, SHIFT | COMMAND),
        ("cmd+keypad_9", 92, COMMAND | 0x200000),
        ("keypad_add", 69, 0x200000),
    ],
)
def test_chord_has_the_flags_of_its_modifiers(chord: str, code: int, flags: int) -> None:
    assert (key_down(chord)["code"], key_down(chord)["flags"]) == (code, flags)


def test_modifier_pressed_alone_is_released() -> None:
    steps = make_steps(Act("press", chord=read_chord("shift+ctrl")))
    keys = [(step["code"], step["is_down"], step["flags"]) for step in steps if step["do"] == "key"]
    assert keys == [(56, True, SHIFT), (59, True, SHIFT | CONTROL), (59, False, SHIFT), (56, False, 0)]


@pytest.mark.parametrize("key", ["f13", "menu", "print", "pause", "scroll_lock", "num_lock"])
def test_key_missing_on_macs_is_refused(key: str) -> None:
    assert error_of(key_down, key).code is ErrorCode.INVALID_ARGUMENT


def test_typed_text_and_pressed_keys_arrive_with_other_bridge_types(desk: Desk) -> None:
    desk.mac.switch(bridged_integers="numbers", nil_is_null=True)
    text = "Grüße, 世界 👩‍💻 and $(touch x) `x` \"'\\ that is longer than twenty\nanother"
    desk.mac.activate("TextEdit")
    desk.data("type", 1030, text, "--replace")
    assert desk.mac.widget(1030, "text")["value"] == text
    assert {one["flags"] for one in desk.posted() if one["type"] in (10, 11)} == {0, SHIFT, COMMAND}


def test_request_of_any_size_reaches_the_script_and_leaves_no_file(desk: Desk) -> None:
    # more than an argument may have; that it is private is a rule of the fake Mac
    assert error_of(desk.backend.find_handler, "app", "x" * 200_000).code is ErrorCode.APP_NOT_FOUND
    desk.mac.fail("osascript")
    assert error_of(desk.backend.find_handler, "app", "x").code is ErrorCode.PROGRAM_FAILED
    assert not list(desk.mac.folder.rglob("peekaboo_*.json"))


@pytest.mark.parametrize("text", ["ab" * 10_000, "a" * 20_000, "a\n" * 1000])
def test_text_that_takes_too_long_is_refused_with_the_most_that_fits(desk: Desk, text: str) -> None:
    desk.mac.deny("accessibility")  # so that nothing is typed
    refused = desk.run("type", 1080, text).error
    most = int(re.findall(r"at most (\d+) characters", refused["message"])[0])
    codes = [desk.run("type", 1080, text[:size]).error["code"] for size in (most, most + 20)]
    assert codes == ["PERMISSION_DENIED_ACCESSIBILITY", "INVALID_ARGUMENT"]
    assert 300 < most < 4500


def test_focus_asks_the_application_itself_whether_it_is_in_front(desk: Desk) -> None:
    desk.mac.switch(frozen_frontmost_pid=480)
    desk.backend.focus(desk.window(1090), may_click=True)
    assert (desk.focused_id(), desk.posted()) == (1090, [])
    panel = desk.mac.open_window("Form", title="Colours", bounds=[850, 150, 300, 200], layer=8, modal=True)
    desk.backend.focus(desk.window(panel), may_click=True)
    desk.backend.focus(desk.window(panel)._replace(pid=4711))  # its application has just ended
    assert desk.posted() == []


METHOD = "com.apple.inputmethod.SCIM.ITABC"
ON = {"PEEKABOO_SWITCH_INPUT": "1"}


def test_character_with_an_input_method_is_refused(desk: Desk) -> None:
    desk.mac.set("keyboard.source", METHOD)
    for words in (("type", 1080, "http"), ("press", 1080, "shift+h"), ("press", 1080, "keypad_5")):
        refused = desk.run(*words).error
        assert (refused["code"], desk.posted()) == ("WINDOW_BLOCKED", []), words
        assert f"{METHOD} would compose other text from the keys; switch to" in refused["message"]
        assert "ctrl+space" in refused["message"]


def test_keys_without_a_character_need_no_keyboard_layout(desk: Desk) -> None:
    desk.mac.set("keyboard.source", METHOD)
    desk.mac.activate("TextEdit")
    chords = [("press", 1030, f"{name}+c") for name in ("ctrl", "cmd", "super")]
    for words in (("type", 1030, "", "--replace"), ("type", 1030, "\n"), *chords):
        desk.data(*words)
    assert desk.keys() == ["a", "backspace", "return", *"ccc"]


@pytest.mark.parametrize("source", [METHOD, None])  # None: it cannot be read
def test_typing_switches_from_an_input_method_and_back(desk: Desk, source: Optional[str]) -> None:
    desk.mac.set("keyboard.source", source)
    desk.mac.activate("TextEdit")
    desk.data("type", 1030, "http", "--replace", **ON)
    desk.data("press", 1030, "s", "--repeat", 2, **ON)
    assert desk.mac.widget(1030, "text")["value"] == "httpss"
    assert desk.mac.state()["keyboard"]["source"] == source


@pytest.mark.parametrize(("event", "skip"), [({"do": "select_source"}, 0), ({"type": 10}, 20)])
def test_input_method_is_restored_after_a_failure(desk: Desk, event: dict[str, Any], skip: int) -> None:
    desk.mac.set("keyboard.source", METHOD)
    desk.mac.activate("TextEdit")
    desk.mac.when(event, STEAL, skip=skip)
    assert desk.run("type", 1030, "0123456789" * 5, "--replace", **ON).error["code"] == "FOCUS_LOST"
    assert desk.mac.state()["keyboard"]["source"] == METHOD


@pytest.mark.parametrize(
    "words", [("type", 1030, "0123456789" * 20, "--replace"), ("press", 1030, "a", "--repeat", 50)]
)
def test_input_method_is_restored_after_a_kill_by_the_next_act(desk: Desk, words: tuple[Any, ...]) -> None:
    desk.mac.set("keyboard.source", METHOD)
    desk.mac.activate("TextEdit")
    child = desk.program.start(*words, **ON)
    wait_for(lambda: len(desk.posted()) > 5, "it types")
    for pid in (child.pid, desk.mac.calls("osascript")[-1]["pid"]):
        os.kill(pid, signal.SIGKILL)
    child.communicate(timeout=PATIENCE_S)
    assert desk.mac.state()["keyboard"]["source"] == "com.apple.keylayout.US"
    desk.data("press", 1030, "tab")
    assert desk.mac.state()["keyboard"]["source"] == METHOD


# acts that end early and their errors -----------------------------------------------------------------------

STEAL = {"do": "activate_now", "pid": 410}
COVER = {"do": "open_window", "pid": 430, "window": {"title": "", "bounds": [100, 100, 400, 300]}}
AWAY, CLOSE = {"do": "point", "x": 9, "y": 9}, {"do": "close_window", "window": 1080}
UP, KEY, LAST_DRAGGED = {"type": 2}, {"type": 10}, {"type": 6, "x": 450}
SPOT = Point(300, 200)
CLICK, MOVE, DRAG = Act("click", (SPOT,)), Act("move_pointer", (SPOT,)), Act("drag", (SPOT, Point(450, 170)))
TEXT, PRESSES = Act("type", text="0123456789" * 5), Act("press", chord=read_chord("tab"), repeat=5)
COVERED = "window 1080 is covered by window 2000 of TextEdit at that point; nothing was clicked"
LOST_TO_SAFARI = "window 1012 of Safari has the keyboard focus"
# act, the event that triggers a change, the number of earlier events to skip, the change; and the error's
# code and message, or the delivery
ENDS: dict[str, tuple[Act, dict[str, Any], int, dict[str, Any], Any]] = {
    "a text": (TEXT, KEY, 39, STEAL, ("FOCUS_LOST", f"{LOST_TO_SAFARI}; 40 characters were typed")),
    "presses": (PRESSES, KEY, 1, STEAL, ("FOCUS_LOST", f"{LOST_TO_SAFARI}; 2 key presses were sent")),
    "a click that is covered": (CLICK, STARTED, 1, COVER, ("WINDOW_COVERED", COVERED)),
    "a locked screen": (MOVE, STARTED, 1, {"do": "lock_screen"}, ("SCREEN_LOCKED", "the screen is locked; ")),
    "a pointer that is moved": (CLICK, {"type": 5}, 0, AWAY, Delivery(False, Point(9, 9))),
    "a second click that is impossible": (CLICK._replace(clicks=2), UP, 0, CLOSE, Delivery(None, SPOT)),
    "a drag that is disturbed": (DRAG, LAST_DRAGGED, 0, AWAY, Delivery(None, Point(9, 9))),
}


@pytest.mark.parametrize("name", ENDS)
def test_act_that_ends_early_reports_how_much_was_sent(desk: Desk, name: str) -> None:
    act, on, skip, change, expected = ENDS[name]
    desk.mac.when(on, change, skip=skip)
    if isinstance(expected, Delivery):
        assert desk.backend.act(desk.window(1080), act, desk.stop_file) == expected
    else:
        error = error_of(desk.backend.act, desk.window(1080), act, desk.stop_file)
        assert error.code.value == expected[0] and error.message.startswith(expected[1])
        assert error.hint or error.code.value == "FOCUS_LOST"
    assert {one["app"] for one in desk.mac.events("text", "key", "click")} <= {"Terminal"}
    assert desk.mac.state()["mouse"]["down"] == {}


@pytest.mark.parametrize("source", ["com.apple.keylayout.US", METHOD])
def test_stop_file_ends_a_running_act(desk: Desk, source: str) -> None:
    desk.mac.set("keyboard.source", source)
    desk.mac.activate("TextEdit")
    desk.mac.when({"type": 10}, {"do": "write_file", "path": str(desk.stop_file)})
    error = desk.run("type", 1030, "0123456789" * 5, **ON).error
    assert (error["code"], "20 characters were typed" in error["message"]) == ("POLICY_DENIED", True)
    assert desk.mac.widget(1030, "text")["value"] == "eggs\nmilk" + "0123456789" * 2


def test_click_whose_pointer_does_not_arrive_is_not_delivered(desk: Desk) -> None:
    desk.mac.move_window(1080, 1200, 80)
    assert desk.act(1080, "click", (1500, 200)) == Delivery(False, Point(1439, 200))
    assert desk.mac.events("click") == []


SIGNALS: dict[str, tuple[tuple[Any, ...], int, signal.Signals]] = {
    "a drag": (("drag", 1080, 100, 190, 230, 195), 1, signal.SIGTERM),
    "a click": (("click", 1080, 100, 190, "--clicks", 3), 1, signal.SIGINT),
    "a held key": (("press", 1080, "t", "--hold-ms", 1000), 10, signal.SIGHUP),
    "a held chord": (("press", 1080, "cmd+t", "--hold-ms", 1000), 10, signal.SIGHUP),
}


@pytest.mark.parametrize(("words", "down", "number"), SIGNALS.values(), ids=SIGNALS.keys())
def test_interrupted_act_releases_keys_and_buttons(
    desk: Desk, words: tuple[Any, ...], down: int, number: signal.Signals
) -> None:
    desk.data("screenshot", 1080)
    child = desk.program.start(*words)
    wait_for(lambda: any(one["type"] == down for one in desk.posted()), "something is held")
    child.send_signal(number)
    child.communicate(timeout=PATIENCE_S)
    assert (desk.mac.running(), desk.mac.state()["mouse"]["down"]) == ([], {})
    kinds = [one["type"] for one in desk.posted()]
    assert kinds.count(down) == kinds.count(down + 1) > 0
    # released in reverse order
    assert kinds[-1] == (12 if "cmd+t" in words else down + 1)


@pytest.mark.parametrize("is_held", [True, False])
@pytest.mark.parametrize("name", ["a drag", "a held chord", "a drag by Swift"])
def test_next_act_releases_the_keys_of_a_killed_act(desk: Desk, name: str, is_held: bool) -> None:
    words, down, _ = SIGNALS[name.removesuffix(" by Swift")]
    if name.endswith("Swift"):
        need_swift()
        desk.mac.tools("good")
        built()
    desk.mac.switch(posted_is_held=is_held)  # whether the hardware state includes posted events
    desk.data("screenshot", 1080)
    child = desk.program.start(*words)
    wait_for(lambda: any(one["type"] == down for one in desk.posted()), "something is held")
    os.kill(desk.mac.running()[-1]["pid"], signal.SIGKILL)
    child.communicate(timeout=PATIENCE_S)
    desk.mac.fail("osascript", exit=-9, when=["function runRelease"], times=1)  # the first release fails
    desk.run("press", 1080, "cmd+t")
    desk.data("press", 1080, "tab")
    state = desk.mac.state()
    assert (state["mouse"]["down"], state["keyboard"]["pressed_flags"], desk.keys()[-1]) == ({}, 0, "tab")
    held = {one["keycode"] for one in desk.posted() if one["type"] == 10}
    assert held <= {one["keycode"] for one in desk.posted() if one["type"] == 11}
    before = len(desk.posted())
    desk.data("press", 1080, "tab")
    assert len(desk.posted()) == before + 2


def test_timeout_includes_the_events_and_pauses(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds: list[float] = []

    def run_jxa(names: Any, request: Any, timeout_s: float, pass_fds: Any) -> dict[str, Any]:
        seconds.append(round(timeout_s, 3))
        return osascript.run_jxa(names, request, timeout_s, pass_fds)

    graces: list[float] = []
    monkeypatch.setattr(mac_input, "run_jxa", run_jxa)
    monkeypatch.setattr(mac_input, "uninterrupted", lambda grace_s: nullcontext(graces.append(grace_s)))
    desk.act(1080, "press", chord=read_chord("escape"), hold_ms=500)
    desk.act(1080, "type", text="abcde", delay_ms=10)
    desk.act(1080, "move_pointer", (300, 200))
    desk.act(1080, "press", chord=read_chord("escape"), hold_ms=200, repeat=2)
    desk.act(1080, "press", chord=read_chord("shift+escape"))
    assert seconds[:3] == [20.6, 20.21, 20.08]
    assert graces == [1.5, 1.4, 1.0], "a signal leaves no key down"


# the input lock -------------------------------------------------------------------------------------------


def is_free(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


LOCKED = {"type": ("function typeText", "type", 1080, "ls"), "focus": ("function raise", "focus", 1090)}


@pytest.mark.leaves(".*/peekaboo_[^/]*.json", ".*/held-macos.json")  # of the killed child
@pytest.mark.parametrize("name", [*LOCKED, "press by Swift"])
def test_acting_child_keeps_the_lock_when_its_parent_is_killed(desk: Desk, name: str) -> None:
    if name not in LOCKED:
        need_swift()
        desk.mac.tools("good")
        built()
    source, *words = LOCKED.get(name, ("never", "press", 1080, "tab", "--hold-ms", 5000))
    desk.mac.hang("osascript", when=[str(source)])
    child = desk.program.start(*words)
    wait_for(lambda: desk.mac.hanging() or desk.posted(), "the child acts")
    acting = desk.mac.running()[-1]["pid"]
    child.kill()
    child.communicate()
    (lock,) = desk.mac.bin_dir.rglob("input-macos.lock")
    with open(lock) as f:
        assert not is_free(f)
        os.kill(acting, signal.SIGKILL)
        wait_for(lambda: is_free(f), "the lock is free after the child")


# menus ----------------------------------------------------------------------------------------------------

COPIED = [{"log": "copied"}, {"close_window": "this"}]
MENU: dict[str, Any] = {
    "bounds": [300, 200, 150, 60],
    "layer": 101,
    "widgets": [widget("copy", "button", 0, 0, 150, 24, text="Copy", on_click=COPIED)],
}


def test_menu_is_clicked_and_typed_into_without_a_focus_change(desk: Desk) -> None:
    menu = desk.mac.open_window("Terminal", **MENU)
    desk.data("screenshot", menu)
    desk.backend.focus(desk.window(menu))  # does nothing, because a focus change closes the menu
    desk.data("press", menu, "down")
    answer = desk.data("click", menu, 40, 20)
    assert (answer["delivered"], [one["text"] for one in desk.mac.events("note")]) == (True, ["copied"])
    assert [(one["key"], one["window"]) for one in desk.mac.events("key")] == [("down", menu)]
    assert desk.mac.events("activate", "ax_raise", "ax_set") == []
    assert desk.run("click", menu, 40, 20).error["code"] == "WINDOW_NOT_FOUND"


# focus ----------------------------------------------------------------------------------------------------


def raised(desk: Desk) -> set[int]:
    """Return the windows that accessibility touched."""
    return {one["window"] for one in desk.mac.events("ax_raise", "ax_set") if "window" in one}


@pytest.mark.parametrize(
    ("window_id", "raised_id"), [(1004, 1004), (1060, 1060), (1041, 1040)], ids=["behind", "hidden", "sheet"]
)
def test_focus_raises_only_that_window(desk: Desk, window_id: int, raised_id: int) -> None:
    desk.mac.open_window("Calendar", title="Another", bounds=[-1670, -30, 1100, 700])
    assert desk.data("focus", window_id)["is_focused"] is True
    assert (desk.focused_id(), raised(desk)) == (window_id, {raised_id})
    # AXMain directs the app's keys to the window; AXRaise alone does not
    assert "AXMain" in [one["attribute"] for one in desk.mac.events("ax_set")]


FRAME, ELSEWHERE = [820, 100, 480, 360], [300, 300, 400, 300]
LONG_TITLE = "two  spaces, and\u200b more than two hundred characters " + "x" * 200
# new values of window 1090, and title and bounds of another window of its app
FOUND: dict[str, tuple[dict[str, Any], str, list[int]]] = {
    "a frame that is rounded otherwise": ({"ax_bounds": [821, 98, 481.5, 360]}, "Another", ELSEWHERE),
    "a twin by title": ({}, "Form", ELSEWHERE),
    "a twin by title, thirty points apart": ({}, "Form", [850, 130, 480, 360]),
    "a twin by frame": ({}, "Another", FRAME),
    "a twin by frame, its title cleaned": ({"title": LONG_TITLE}, "Another", FRAME),
}
NOT_FOUND: dict[str, tuple[dict[str, Any], str, list[int]]] = {
    "a frame that is another": ({"ax_bounds": [823, 100, 480, 360]}, "Another", ELSEWHERE),
    "a twin by title and frame": ({}, "Form", FRAME),
}


@pytest.mark.parametrize("name", [*FOUND, *NOT_FOUND])
def test_focus_raises_a_window_only_if_it_is_certain(desk: Desk, name: str) -> None:
    values, title, bounds = {**FOUND, **NOT_FOUND}[name]
    desk.mac.change_window(1090, values)
    desk.mac.open_window("Form", title=title, bounds=bounds)
    error = desk.run("focus", 1090).json.get("error") or {"code": None}
    assert error["code"] == (None if name in FOUND else "FOCUS_FAILED")
    assert raised(desk) == ({1090} if name in FOUND else set())


def test_focus_raises_a_window_behind_twenty_others(desk: Desk) -> None:
    for at in range(20):
        desk.mac.open_window("Form", title=f"Form {at}", bounds=[300 + 5 * at, 300, 400, 300])
    assert desk.data("focus", 1090)["is_focused"] is True


def test_focus_waits_for_a_slow_activation_and_needs_no_title(desk: Desk) -> None:
    desk.mac.switch(activation_delay_ms=600)
    desk.mac.deny("screen_recording")
    assert desk.data("focus", 1004)["is_focused"] is True
    desk.mac.deny("accessibility")
    assert desk.data("focus", 1090)["is_focused"] is True, "the only window of its app"


def test_focus_of_an_app_that_declines_it_is_set_by_accessibility(desk: Desk) -> None:
    desk.mac.switch(activation="declined")
    assert desk.data("focus", 1031)["is_focused"] is True
    assert desk.mac.events("activate")[-1]["by"] == "AXFrontmost"


def test_focus_waits_for_a_minimised_window_on_a_slow_mac(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def focus(self: MacDesktop, window: Window, may_click: bool) -> None:
        real(self, window, may_click)
        time.sleep(2.2)  # more than an act waits from its first listing on

    real = MacDesktop.focus
    monkeypatch.setattr(MacDesktop, "focus", focus)
    assert desk.data("focus", 1005)["is_focused"] is True


@pytest.fixture
def stubborn(desk: Desk) -> Desk:
    """Return a Mac whose applications refuse to come forward."""
    desk.mac.switch(activation="stubborn")
    return desk


def test_focus_clicks_the_title_bar_only_if_allowed(stubborn: Desk) -> None:
    stubborn.mac.open_window("TextEdit", title="", bounds=[800, 80, 600, 60], alpha=0)  # invisible
    stubborn.mac.activate("Terminal")
    assert (stubborn.refusal("focus", 1090)[1], stubborn.posted()) == ("FOCUS_FAILED", [])
    assert stubborn.data("focus", 1090, PEEKABOO_SAFE_CLICK="1")["is_focused"] is True
    assert stubborn.clicks() == [(1090, None, "left", 1, 1060, 110)]


def test_focus_clicks_no_window_over_the_title_bar(stubborn: Desk) -> None:
    stubborn.mac.open_window("TextEdit", title="cover", bounds=[800, 80, 600, 60])
    stubborn.mac.activate("Terminal")
    assert stubborn.run("focus", 1090, PEEKABOO_SAFE_CLICK="1").error["code"] == "WINDOW_COVERED"
    assert stubborn.posted() == []


def test_focus_clicks_the_title_bar_of_a_twin_if_allowed(desk: Desk) -> None:
    desk.mac.open_window("Form", title="Form", bounds=desk.mac.window(1090)["bounds"], minimised=True)
    desk.mac.open_window("Form", title="Another", bounds=[700, 300, 400, 300])  # in front of both
    desk.mac.activate("Form")
    assert desk.data("focus", 1090, PEEKABOO_SAFE_CLICK="1")["is_focused"] is True
    assert desk.clicks() == [(1090, None, "left", 1, 1060, 110)]


def test_focus_without_accessibility_works_for_an_app_with_one_window(desk: Desk) -> None:
    desk.mac.deny("accessibility")
    desk.mac.open_window("Form", title="", bounds=[820, 100, 480, 20])  # a strip, not a real window
    assert desk.data("focus", 1090)["is_focused"] is True
    assert desk.refusal("focus", 1031) == (12, "PERMISSION_DENIED_ACCESSIBILITY")
    assert desk.mac.events("ax_set", "ax_raise") == []


def test_focus_is_not_hidden_by_invisible_windows_of_the_same_app(desk: Desk) -> None:
    desk.mac.open_window("Form", title="", bounds=[0, 0, 1440, 900], alpha=0)
    desk.mac.open_window("Form", title="", bounds=[820, 100, 1, 1])
    desk.mac.activate("Form")
    assert [one["window_id"] for one in desk.windows() if one["is_focused"]] == [1090]
    desk.data("screenshot", 1090)
    desk.data("click", 1090, 280, 400)
    assert [one[:2] for one in desk.clicks()] == [(1090, "double")]


# speed: the number of programs per operation ---------------------------------------------------------------

PROGRAMS = {
    "windows": ["osascript"],
    "list apps": ["osascript"],
    "list windows --app Safari": ["osascript"],
    "screenshot 1080 --max-dimension 300": ["osascript", "screencapture", "sips"],
    "type 1080 more-than-one-piece-of-text": ["osascript"] * 2,
    "press 1080 cmd+a": ["osascript"] * 2,
}


@pytest.mark.parametrize(("line", "programs"), PROGRAMS.items())
def test_operation_starts_only_these_programs(desk: Desk, line: str, programs: list[str]) -> None:
    desk.mac.set("keyboard.layout", "german")  # reading its table needs no program
    desk.data(*line.split())
    assert [call["program"] for call in desk.mac.calls()] == programs
    assert desk.mac.events("activate", "ax_set", "ax_raise") == []  # it was in front already


# the Swift helper -----------------------------------------------------------------------------------------


def compiled(mac: FakeMac) -> int:
    """Return the number of compilations."""
    return sum("-O" in call["argv"] for call in mac.calls("xcrun"))


def helper_acts(mac: FakeMac) -> int:
    """Return the number of helper runs for acts; each compilation adds a trial run."""
    return len(mac.calls("swift-helper")) - compiled(mac)


def built() -> str:
    """Build the helper like a starting server; return the reason of a failure, or an empty text."""
    swift_helper.build_helper()
    return swift_helper.last_failure()


def with_cancelled_token(function: Callable[[], Any]) -> Any:
    token = threading.Event()
    token.set()
    use_cancel_token(token)
    return function()


def build_and_cancel(mac: FakeMac) -> None:
    token = threading.Event()
    use_cancel_token(token)

    def cancel() -> None:
        wait_for(lambda: compiled(mac) > 0, "it compiles")
        token.set()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    try:
        swift_helper.build_helper()
    finally:
        canceller.join()


def input_by(desk: Desk, *words: str) -> str:
    checks = desk.data("doctor", *words)["checks"]
    return next(str(one["found"]) for one in checks if one["name"] == "mouse and keyboard by")


def test_helper_is_not_compiled_while_an_act_waits(desk: Desk) -> None:
    desk.mac.tools("slow")
    desk.data("press", 1080, "escape")
    assert [desk.mac.calls(name) for name in ("xcode-select", "xcrun", "swiftc")] == [[], [], []]
    assert input_by(desk).startswith("JXA (no Swift helper: doctor --compile builds it")


@pytest.mark.leaves(".*/peekaboo-input.new")
@pytest.mark.parametrize(
    ("tools", "reason"),
    [
        ("none", "xcode-select failed with exit code 2"),
        ("broken", "this SDK is not supported by the compiler"),
        ("killed", "peekaboo-input.new failed with exit code -9"),
    ],
)
def test_jxa_acts_if_the_helper_cannot_be_compiled(desk: Desk, tools: str, reason: str) -> None:
    desk.mac.tools(tools)
    assert reason in built()
    desk.data("press", 1080, "escape")
    assert (desk.keys(), reason in input_by(desk)) == (["escape"], True)
    assert desk.mac.events("dialog") == []  # of a shim that offers to install the tools


def test_helper_is_compiled_in_a_stated_language_mode(desk: Desk) -> None:
    desk.mac.tools("broken")
    built()
    argv = desk.mac.calls("xcrun")[-1]["argv"]
    assert argv[argv.index("-swift-version") + 1] == "5"


def test_failed_compilation_is_repeated_after_a_day(desk: Desk) -> None:
    built()
    (failure,) = (desk.mac.home / "Library").rglob("failure.txt")
    for hours, tries in (0, 1), (23, 1), (25, 2):
        os.utime(failure, (time.time() - hours * 3600,) * 2)
        assert "xcode-select failed" in built()
        assert len(desk.mac.calls("xcode-select")) == tries


@pytest.mark.leaves(".*/helper")
def test_helper_whose_folder_cannot_be_written_is_an_error(desk: Desk) -> None:
    desk.mac.tools("good")
    folder = desk.mac.home / "Library/Caches/peekaboo_min/helper"
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.write_text("not a folder")
    finished = desk.run("doctor", "--compile")
    assert finished.error["code"] == "FILE_IO_ERROR" and str(folder) in finished.error["message"]


def test_compilation_that_takes_too_long_is_repeated_next_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.mac.tools("slow")
    # cancellation and timeout are not remembered as failures
    assert error_of(copy_context().run, build_and_cancel, desk.mac).code is ErrorCode.CANCELLED
    monkeypatch.setattr(swift_helper, "_COMPILE_S", 2)
    for tries in (2, 3):
        desk.data("doctor", "--compile")
        assert (desk.mac.running(), compiled(desk.mac)) == ([], tries)
    assert not list((desk.mac.home / "Library").rglob("failure.txt"))
    desk.data("press", 1080, "tab")
    assert desk.keys() == ["tab"]


def test_helper_of_another_source_is_ignored(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    helper = executable(swift_helper._cached_file("peekaboo-input"), "sleep 60")
    assert swift_helper.find_helper() == helper
    os.utime(helper, (1, 1))  # as after a restart, when the helper is tried
    cancelled = error_of(copy_context().run, with_cancelled_token, swift_helper.find_helper)
    assert (cancelled.code, helper.exists()) == (ErrorCode.CANCELLED, True)
    monkeypatch.setattr(swift_helper, "native_source", lambda _name: "// of the next version")
    assert swift_helper.find_helper() is None


def test_forced_build_waits_for_another_process(desk: Desk) -> None:
    desk.mac.tools("broken")
    assert "SDK" in built()
    (lock,) = desk.mac.bin_dir.rglob("helper.lock")
    with open(lock) as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        assert error_of(swift_helper.build_helper).code is ErrorCode.TIMEOUT
        threading.Timer(0.5, fcntl.flock, [os.dup(f.fileno()), fcntl.LOCK_UN]).start()
        swift_helper.build_helper(is_forced=True)
    assert compiled(desk.mac) == 2


def test_helper_is_compiled_once_and_acts(desk: Desk) -> None:
    need_swift()
    desk.mac.tools("good")
    assert [built(), built()] == ["", ""]
    desk.data("screenshot", 1090)
    desk.data("click", 1090, 300, 330)
    desk.data("type", 1090, "Grüße, 世界 👩‍💻 and more than twenty units")
    assert desk.mac.widget(1090, "search")["value"] == "Grüße, 世界 👩‍💻 and more than twenty units"
    assert (compiled(desk.mac), helper_acts(desk.mac), desk.mac.events("strict")) == (1, 2, [])

    home = desk.mac.home / "Library" / "Caches" / "peekaboo_min" / "helper"
    (helper,) = home.glob("*/peekaboo-input")
    assert re.fullmatch("[0-9a-f]{16}", helper.parent.name)
    assert [stat.S_IMODE(one.stat().st_mode) for one in (home.parent, helper.parent, helper)] == [0o700] * 3
    assert sorted(one.name for one in helper.parent.iterdir()) == ["input.swift", "peekaboo-input"]


def test_lost_or_damaged_helper_is_replaced(desk: Desk) -> None:
    need_swift()
    desk.mac.tools("good")
    desk.data("doctor", "--compile")
    (helper,) = (desk.mac.home / "Library").rglob("peekaboo-input")
    helper.unlink()  # files in Caches may be deleted at any time
    desk.data("press", 1080, "tab")
    assert (desk.keys(), helper_acts(desk.mac)) == (["tab"], 0)
    built()
    desk.data("press", 1080, "tab")
    assert (compiled(desk.mac), helper_acts(desk.mac)) == (2, 1)
    os.utime(helper, (1, 1))  # after a restart of the system, one more trial run
    desk.data("press", 1080, "tab")
    desk.data("press", 1080, "tab")
    assert helper_acts(desk.mac) == 4
    helper.write_text("#!/bin/sh\nexit 3\n")
    assert "returned no JSON" in desk.run("press", 1080, "escape").error["message"]
    assert "returned no JSON" in input_by(desk)
    desk.data("press", 1080, "escape")
    assert input_by(desk, "--compile") == f"Swift helper {helper}"
    helper.write_text("#!/bin/sh\nkill -9 $$\n")
    os.utime(helper, (1, 1))
    desk.data("press", 1080, "escape")
    assert "exit code -9" in input_by(desk)
    assert input_by(desk, "--compile") == f"Swift helper {helper}"
    assert swift_helper.last_failure() == "", "it would prevent a compilation for a day"
    desk.data("press", 1080, "escape")
    assert desk.keys() == ["tab"] * 4 + ["escape"] * 3

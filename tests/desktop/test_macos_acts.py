"""What is done to a Mac through the command line and the backend: which point, which window, what is refused.

The steps and their events are in test_swift.py.
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
from mac_desk import STARTED, Desk, tells_who_needs_what, widget
from samples import error_of
from worlds import PATIENCE_S, need_swift, wait_for

from peekaboo_min.automation import act as acts
from peekaboo_min.core.cancellation import CancelToken, use_cancel_token
from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.core.models import Act, Delivery, Point, Window
from peekaboo_min.desktop.keys import read_chord
from peekaboo_min.desktop.macos import input as mac_input
from peekaboo_min.desktop.macos import osascript, swift_helper
from peekaboo_min.desktop.macos.backend import MacDesktop
from peekaboo_min.desktop.macos.input import steps_of

COMMAND, SHIFT, OPTION, CONTROL, ARROW = 0x100000, 0x20000, 0x80000, 0x40000, 0xA00000

# clicks: the exact point, whatever the display and the size of the picture --------------------------------

CLICKS: dict[str, Any] = {
    "a Retina window": (1090, 0, (280, 400), (960, 300), "double"),
    "a Retina window, half size": (1090, 480, (140, 200), (960, 300), "double"),
    "a Retina window, a third": (1090, 320, (95, 135), (962.5, 302.5), "double"),
    "a window left of the main display": (1031, 0, (100, 60), (-460, 160), "text"),
    "the same, half size": (1031, 250, (50, 30), (-460, 160), "text"),
}


@pytest.mark.parametrize("name", CLICKS)
def test_click_on_a_pixel_is_at_its_exact_point(desk: Desk, name: str) -> None:
    window_id, size, at, point, clicked = CLICKS[name]
    desk.data("screenshot", window_id, *(["--max-dimension", size] if size else []))
    answer = desk.data("click", window_id, *at)
    assert desk.clicks() == [(window_id, clicked, "left", 1, *point)]
    assert (answer["point"], answer["delivered"]) == ({"x": point[0], "y": point[1]}, True)
    assert desk.mac.state()["pointer"] == {"x": point[0], "y": point[1]}
    width, height = {1090: (960, 720), 1031: (480, 500)}[window_id]
    factor = size / max(width, height)
    small = ["-z", str(round(height * factor)), str(round(width * factor)), "-s", "format", "png"]
    assert [call["argv"][:6] for call in desk.mac.calls("sips")] == ([small] if size else [])


def test_click_below_a_sheet_is_refused_and_on_it_arrives(desk: Desk) -> None:
    data = desk.data("screenshot", 1040)  # the sheet makes the picture another shape
    assert (data["image_width"], data["image_height"], data["bounds"]["height"]) == (1100, 800, 700)
    refused = desk.run("click", 1040, 10, 10)
    assert (refused.code, refused.error["code"], desk.posted()) == (20, "STALE_SCREENSHOT", [])
    sheet = desk.data("screenshot", 1041)
    assert pixel(Path(sheet["path"]), 400, 280) == widget_colour(1041, "keep")
    desk.data("click", 1041, 400, 280)
    assert desk.clicks() == [(1041, "keep", "left", 1, -1000, 680)]
    assert desk.mac.window(1041) is None


def test_click_outside_every_display_is_refused(desk: Desk) -> None:
    desk.data("screenshot", 1090)
    desk.mac.move_window(1090, 1200, 700)
    finished = desk.run("click", 1090, 900, 100)
    assert (finished.code, finished.error["code"], desk.posted()) == (1, "WINDOW_COVERED", [])


# what is refused before anything is posted ------------------------------------------------------------------

ACTS: dict[str, tuple[Any, ...]] = {
    "click": ("click", 1080, 500, 100),
    "type": ("type", 1080, "hello"),
    "press": ("press", 1080, "return"),
}


@pytest.mark.parametrize("words", ACTS.values(), ids=ACTS.keys())
def test_act_without_accessibility_says_who_needs_it(desk: Desk, words: tuple[Any, ...]) -> None:
    desk.data("screenshot", 1080)
    desk.mac.deny("accessibility")
    finished = desk.run(*words)
    assert (finished.code, finished.error["code"]) == (12, "PERMISSION_DENIED_ACCESSIBILITY")
    tells_who_needs_what(finished, 12)
    assert (desk.posted(), desk.mac.events("click", "key", "text", "dropped")) == ([], [])


def test_act_on_a_locked_screen_is_refused_at_the_first_look(desk: Desk) -> None:
    desk.data("screenshot", 1080)
    desk.mac.lock_screen()  # what is posted now is lost
    before = len(desk.mac.calls())
    assert [desk.run(*words).error["code"] for words in ACTS.values()] == ["SCREEN_LOCKED"] * 3
    assert (desk.posted(), len(desk.mac.calls()) - before) == ([], 3)
    assert desk.run("open", "--app", "Notes").error["code"] == "SCREEN_LOCKED"
    assert desk.mac.calls("open") == []


@pytest.mark.parametrize("preflight", ["post_event_preflight", "trust_preflight"])
def test_act_is_not_blocked_by_one_false_no_of_two_preflights(desk: Desk, preflight: str) -> None:
    desk.mac.switch(**{preflight: "denies"})
    assert desk.data("permissions")["permissions"]["accessibility"] is True
    assert desk.run("press", 1040, "tab").error["code"] == "WINDOW_BLOCKED"  # its sheet is known


def test_act_is_denied_by_the_apps_bundle_id(desk: Desk) -> None:
    desk.mac.activate("Form")
    refused = desk.run("press", 1090, "tab", PEEKABOO_DENY_APPS="com.example.form")
    assert (refused.code, refused.error["code"], desk.posted()) == (21, "POLICY_DENIED", [])


BLOCKED: dict[str, tuple[str, int, int, dict[str, Any]]] = {
    "a sheet, its app in front": ("Calendar", 1040, 1041, {}),
    "a sheet, its app behind": ("Terminal", 1040, 1041, {}),
    "a modal dialog": ("Form", 1090, 2000, {"bounds": [200, 640, 300, 200]}),
    "a modal dialog exactly over its window": ("Form", 1090, 2000, {"bounds": [820, 100, 480, 360]}),
    "a modal panel of another layer": ("Terminal", 1080, 2000, {"bounds": [300, 300, 300, 200], "layer": 8}),
}


@pytest.mark.parametrize(("front", "window_id", "dialog_id", "window"), BLOCKED.values(), ids=BLOCKED.keys())
def test_keys_below_a_modal_dialog_are_refused_and_name_it(
    desk: Desk, front: str, window_id: int, dialog_id: int, window: dict[str, Any]
) -> None:
    if window:
        desk.mac.open_window(front, title="Sure?", modal=True, **window)
    desk.mac.activate(front)
    for words in (["type", window_id, "x"], ["press", window_id, "return"]):
        refused = desk.run(*words).error
        assert (refused["code"], f"window {dialog_id}" in refused["message"]) == ("WINDOW_BLOCKED", True)
    assert desk.posted() == []
    desk.data("press", dialog_id, "escape")
    assert [one["window"] for one in desk.mac.events("key")] == [dialog_id]


# keys -----------------------------------------------------------------------------------------------------

FAKE_NAMES = {"forward_delete": "delete", "enter": "enter_keypad", "help": "insert"}
SIGN_NAMES = (
    "equal minus right_bracket left_bracket quote semicolon backslash comma slash period backquote space"
)
SIGN_OF = dict(zip(SIGN_NAMES.split(), "=-][';\\,/.` "))


def key_down(chord: str) -> dict[str, Any]:
    """The step that presses a chord's key."""
    return next(step for step in steps_of(Act("press", chord=read_chord(chord))) if step.get("counts"))


def test_key_has_the_code_of_its_place_on_the_keyboard() -> None:
    expected = {FAKE_NAMES.get(name, name): code for code, name in NAMED.items()}
    expected |= {sign: code for table in (LETTERS, DIGITS) for code, sign in table.items()}
    expected |= {name: code for name in SIGN_OF for code, sign in SIGNS.items() if sign == SIGN_OF[name]}
    assert {name: key_down(name)["code"] for name in expected} == expected


@pytest.mark.parametrize(
    ("chord", "code", "flags"),
    [
        ("cmd+shift+t", 17, COMMAND | SHIFT),
        ("ctrl+alt+f5", 96, CONTROL | OPTION | 0x800000),
        ("ctrl+left", 123, CONTROL | ARROW),
        ("down", 125, ARROW),
        ("page_down", 121, 0x800000),
        ("delete", 117, 0x800000),
        ("backspace", 51, 0),
        ("return", 36, 0),
        ("enter_keypad", 76, 0x200000),
        ("cmd+home", 115, COMMAND | 0x800000),
        ("fn+f1", 122, 0x800000),
        ("super+cmd+a", 0, COMMAND),
        ("plus", 24, SHIFT),
        ("caps_lock", 57, 0),
    ],
)
def test_chord_has_the_flags_of_its_modifiers(chord: str, code: int, flags: int) -> None:
    assert (key_down(chord)["code"], key_down(chord)["flags"]) == (code, flags)


def test_press_of_a_key_that_no_mac_has_is_refused(desk: Desk) -> None:
    assert desk.refusal("press", 1080, "f13") == (2, "INVALID_ARGUMENT")
    assert desk.posted() == []


@pytest.mark.parametrize("switches", [{}, {"bridged_integers": "numbers", "nil_is_null": True}])
def test_type_and_press_of_any_kind_arrive(desk: Desk, switches: dict[str, Any]) -> None:
    desk.mac.switch(**switches)
    text = "Grüße, 世界 👩‍💻 and $(touch x) `x` \"'\\ that is longer than twenty\nanother"
    desk.data("screenshot", 1031)
    desk.data("click", 1031, 100, 60)
    desk.data("type", 1031, text)
    assert desk.mac.widget(1031, "text")["value"] == text
    desk.data("press", 1031, "cmd+a")
    desk.data("press", 1031, "escape")
    keys = [(one["key"], one["code"], one["modifiers"], one["window"]) for one in desk.mac.events("key")]
    assert keys[-2:] == [("a", 0, ["cmd"], 1031), ("escape", 53, [], 1031)]
    assert {one["flags"] for one in desk.posted() if one["type"] in (10, 11)} == {0, SHIFT, COMMAND}


# acts that end early: what is said of them ------------------------------------------------------------------

STEAL = {"do": "activate_now", "pid": 410}
COVER = {"do": "open_window", "pid": 430, "window": {"title": "", "bounds": [100, 100, 400, 300]}}
AWAY = {"do": "point", "x": 9, "y": 9}
KEY, LAST_DRAGGED = {"type": 10}, {"type": 6, "x": 450}
SPOT = Point(300, 200)
CLICK, MOVE = Act("click", (SPOT,)), Act("move_pointer", (SPOT,))
TEXT, PRESSES = Act("type", text="0123456789" * 5), Act("press", chord=read_chord("tab"), repeat=5)
COVERED = "window 1080 is covered by window 2000 of TextEdit there; nothing was clicked"
WITH_SAFARI = "the keyboard is with window 1012 of Safari"
# act, the event after which something happens, how many of them pass before, what happens; the error's code
# and message, or the delivery
ENDS: dict[str, tuple[Act, dict[str, Any], int, dict[str, Any], Any]] = {
    "a text": (TEXT, KEY, 39, STEAL, ("FOCUS_LOST", f"{WITH_SAFARI}; 40 characters were typed")),
    "presses": (PRESSES, KEY, 1, STEAL, ("FOCUS_LOST", f"{WITH_SAFARI}; 2 presses went out")),
    "a click that is covered": (CLICK, STARTED, 1, COVER, ("WINDOW_COVERED", COVERED)),
    "a locked screen": (MOVE, STARTED, 1, {"do": "lock_screen"}, ("SCREEN_LOCKED", "the screen is locked; ")),
    "a pointer that is moved": (CLICK, {"type": 5}, 0, AWAY, Delivery(False, Point(9, 9))),
    "a second click that is impossible": (
        CLICK._replace(clicks=2),
        {"type": 2},
        0,
        {"do": "close_window", "window": 1080},
        Delivery(None, SPOT),
    ),
    "a drag that is disturbed": (
        Act("drag", (SPOT, Point(450, 170))),
        LAST_DRAGGED,
        0,
        AWAY,
        Delivery(None, Point(9, 9)),
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_act_that_ends_early_says_how_much_went_out(desk: Desk, name: str) -> None:
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


def test_act_is_stopped_by_the_stop_file_in_the_middle(desk: Desk) -> None:
    desk.mac.activate("TextEdit")
    desk.mac.when({"type": 10}, {"do": "write_file", "path": str(desk.stop_file)})
    finished = desk.run("type", 1030, "0123456789" * 5)
    assert (finished.code, finished.error["code"]) == (21, "POLICY_DENIED")
    assert "20 characters were typed" in finished.error["message"]
    assert desk.mac.widget(1030, "text")["value"] == "eggs\nmilk" + "0123456789" * 2


def test_click_whose_pointer_does_not_arrive_is_not_delivered(desk: Desk) -> None:
    desk.mac.move_window(1080, 1200, 80)
    assert desk.act(1080, "click", (1500, 200)) == Delivery(False, Point(1439, 200))
    assert desk.mac.events("click") == []


SIGNALS: dict[str, tuple[tuple[Any, ...], int, signal.Signals]] = {
    "a drag": (("drag", 1080, 100, 190, 230, 195), 1, signal.SIGTERM),
    "a click": (("click", 1080, 100, 190, "--clicks", 3), 1, signal.SIGINT),
    "a held key": (("press", 1080, "cmd+t", "--hold-ms", 1000), 10, signal.SIGHUP),
}


@pytest.mark.parametrize(("words", "down", "number"), SIGNALS.values(), ids=SIGNALS.keys())
def test_act_that_a_signal_interrupts_lets_go(
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
    # what was pressed first comes up last
    assert kinds[-1] == (12 if words[0] == "press" else down + 1)


@pytest.mark.parametrize("is_held", [True, False])
@pytest.mark.parametrize("name", ["a drag", "a held key", "a drag by Swift"])
def test_act_that_is_killed_is_let_go_by_the_next(desk: Desk, name: str, is_held: bool) -> None:
    words, down, _ = SIGNALS[name.removesuffix(" by Swift")]
    if name.endswith("Swift"):
        need_swift()
        desk.mac.tools("good")
        built()
    desk.mac.switch(posted_is_held=is_held)  # whether the hardware's state tells of what was posted
    desk.data("screenshot", 1080)
    child = desk.program.start(*words)
    wait_for(lambda: any(one["type"] == down for one in desk.posted()), "something is held")
    os.kill(desk.mac.running()[-1]["pid"], signal.SIGKILL)
    child.communicate(timeout=PATIENCE_S)
    desk.mac.fail("osascript", exit=-9, when=["function letGo"], times=1)  # so that the next lets nothing go
    desk.run("press", 1080, "cmd+t")
    desk.data("press", 1080, "tab")
    state = desk.mac.state()
    assert (state["mouse"]["down"], state["keyboard"]["pressed_flags"], desk.keys()[-1]) == ({}, 0, "tab")
    held = {one["keycode"] for one in desk.posted() if one["type"] == 10}
    assert held <= {one["keycode"] for one in desk.posted() if one["type"] == 11}
    before = len(desk.posted())
    desk.data("press", 1080, "tab")
    assert len(desk.posted()) == before + 2


def test_execution_has_time_for_its_events_and_pauses(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert seconds[:3] == [20 + 0.3 + 0.54, 20 + 0.5 + 0.04, 20 + 0.4]
    assert graces == [1.5, 1.4], "a hold is not cut where a signal ends us"


# the lock: whoever acts keeps it --------------------------------------------------------------------------


def is_free(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


LOCKED = {"type": ("function typeText", "type", 1080, "ls"), "focus": ("function raise", "focus", 1090)}


@pytest.mark.parametrize("name", [*LOCKED, "press by Swift"])
def test_lock_is_kept_by_what_acts_when_its_parent_is_killed(desk: Desk, name: str) -> None:
    is_script = name in LOCKED
    words: tuple[Any, ...] = ("press", 1080, "tab", "--hold-ms", 5000)
    if is_script:
        source, *words = LOCKED[name]  # type: ignore[assignment]
        desk.mac.hang("osascript", when=[str(source)])
    else:
        need_swift()
        desk.mac.tools("good")
        built()
    child = desk.program.start(*words)
    try:
        wait_for(lambda: desk.mac.hanging() if is_script else desk.posted(), "it acts")
        acting = desk.mac.running()
        child.kill()
        child.wait()
        (lock,) = (desk.mac.home / "Library").rglob("input-macos.lock")
        with open(lock) as f:
            assert not is_free(f)
            if is_script:
                os.kill(acting[0]["pid"], signal.SIGKILL)
            else:
                desk.stop_file.touch()
            wait_for(lambda: is_free(f), "the lock is free when that has ended")
    finally:
        for stream in filter(None, (child.stdin, child.stdout, child.stderr)):
            stream.close()
    assert is_script or [one["type"] for one in desk.posted()] == [10, 11]


# menus ----------------------------------------------------------------------------------------------------

COPIED = [{"log": "copied"}, {"close_window": "this"}]
MENU: dict[str, Any] = {
    "bounds": [300, 200, 150, 60],
    "layer": 101,
    "widgets": [widget("copy", "button", 0, 0, 150, 24, text="Copy", on_click=COPIED)],
}


def test_menu_is_clicked_and_typed_into_without_any_focus(desk: Desk) -> None:
    menu = desk.mac.open_window("Terminal", **MENU)
    desk.data("screenshot", menu)
    desk.backend.focus(desk.window(menu))  # nothing happens: it would close
    desk.data("press", menu, "down")
    answer = desk.data("click", menu, 40, 20)
    assert (answer["delivered"], [one["text"] for one in desk.mac.events("note")]) == (True, ["copied"])
    assert [(one["key"], one["window"]) for one in desk.mac.events("key")] == [("down", menu)]
    assert desk.mac.events("activate", "ax_raise", "ax_set") == []
    assert desk.run("click", menu, 40, 20).error["code"] == "WINDOW_NOT_FOUND"


def test_menu_that_is_open_makes_a_click_beside_it_doubtful(desk: Desk) -> None:
    desk.data("screenshot", 1080)
    desk.mac.open_window("Terminal", **MENU)
    assert desk.data("click", 1080, 1000, 600)["delivered"] is None
    assert desk.mac.events("click")[-1]["closed_a_menu"]


# focus ----------------------------------------------------------------------------------------------------


def ax_frame(*frame: float) -> Callable[[FakeMac], Any]:
    def arrange(mac: FakeMac) -> None:
        mac.open_window("Form", title="Another", bounds=[300, 300, 400, 300])
        mac.change_window(1090, {"ax_bounds": list(frame)})

    return arrange


def beside(title: str, *bounds: int, app: str = "Form") -> Callable[[FakeMac], Any]:
    return lambda mac: mac.open_window(app, title=title, bounds=list(bounds))


def like_it_but_its_title(mac: FakeMac) -> None:
    title = "two  spaces, and\u200b more than two hundred characters " + "x" * 200
    mac.change_window(1090, {"title": title})
    mac.open_window("Form", title="Another", bounds=[820, 100, 480, 360])


def switched(**switches: Any) -> Callable[[FakeMac], Any]:
    return lambda mac: mac.switch(**switches)


def behind_many(mac: FakeMac) -> None:
    for at in range(20):
        mac.open_window("Form", title=f"Form {at}", bounds=[300 + 5 * at, 300, 400, 300])


def as_it_is(mac: FakeMac) -> None:
    pass


# the window that is asked for, and the one that is raised by accessibility: none where the focus fails
FOCUSED: dict[str, tuple[Callable[[FakeMac], Any], int, Optional[int]]] = {
    "behind another of its app": (as_it_is, 1004, 1004),
    "minimised": (as_it_is, 1005, 1005),
    "of a hidden app": (as_it_is, 1060, 1060),
    "a sheet": (beside("Another", -1670, -30, 1100, 700, app="Calendar"), 1041, 1040),
    "declined by the app": (switched(activation="declined"), 1031, 1031),
    "slow to come": (switched(activation_delay_ms=600), 1090, 1090),
    "a frame that is rounded otherwise": (ax_frame(821, 98, 481.5, 360), 1090, 1090),
    "its title unknown": (lambda mac: mac.deny("screen_recording"), 1004, 1004),
    "a frame that is another": (ax_frame(823, 100, 480, 360), 1090, None),
    "behind twenty others of its app": (behind_many, 1090, 1090),
    "a twin by title": (beside("Form", 300, 300, 400, 300), 1090, 1090),
    "a twin by title, thirty points apart": (beside("Form", 850, 130, 480, 360), 1090, 1090),
    "a twin by frame": (beside("Another", 820, 100, 480, 360), 1090, 1090),
    "a twin by frame, its title cleaned": (like_it_but_its_title, 1090, 1090),
    "a twin by title and frame": (beside("Form", 820, 100, 480, 360), 1090, None),
}


@pytest.mark.parametrize(("arrange", "window_id", "raised"), FOCUSED.values(), ids=FOCUSED.keys())
def test_focus_raises_the_window_or_touches_none(
    desk: Desk, arrange: Callable[[FakeMac], Any], window_id: int, raised: Optional[int]
) -> None:
    arrange(desk.mac)
    finished = desk.run("focus", window_id)
    touched = [one for one in desk.mac.events("ax_raise", "ax_set") if "window" in one]
    assert {one["window"] for one in touched} == ({raised} if raised else set())
    assert (desk.focused_id() == window_id) is bool(raised)
    if not raised:
        assert (finished.code, finished.error["code"]) == (1, "FOCUS_FAILED")
        return
    assert (finished.data["window_id"], finished.data["is_focused"]) == (window_id, True)
    # its application's keys go there then, which raising alone does not promise
    assert {one["attribute"] for one in touched if one["kind"] == "ax_set"} >= {"AXMain"}
    if window_id == 1005:
        assert desk.mac.window(1005)["minimised"] is False
    if window_id == 1031:
        assert desk.mac.events("activate")[-1]["by"] == "AXFrontmost"


def test_focus_waits_for_a_minimised_window_on_a_slow_mac(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def focus(self: MacDesktop, window: Window, may_click: bool) -> None:
        real(self, window, may_click)
        time.sleep(0.7)

    real = MacDesktop.focus
    monkeypatch.setattr(MacDesktop, "focus", focus)
    monkeypatch.setattr(acts, "_FOCUS_S", 0.6)
    assert desk.data("focus", 1005)["is_focused"] is True


# what is over the title bar, and whether it is clicked where that is allowed
STUBBORN: dict[str, tuple[dict[str, Any], str]] = {
    "something invisible": ({"title": "", "bounds": [800, 80, 600, 60], "alpha": 0}, ""),
    "something": ({"title": "cover", "bounds": [800, 80, 600, 60]}, "WINDOW_COVERED"),
}


@pytest.mark.parametrize(("window", "code"), STUBBORN.values(), ids=STUBBORN.keys())
def test_focus_of_what_does_not_come_may_click_its_title_bar(
    desk: Desk, window: dict[str, Any], code: str
) -> None:
    desk.data("screenshot", 1090)
    desk.mac.switch(activation="stubborn")
    assert desk.run("click", 1090, 40, 20).error["code"] == "FOCUS_FAILED"
    assert desk.posted() == []
    desk.mac.open_window("TextEdit", **window)
    desk.mac.activate("Terminal")
    finished = desk.run("focus", 1090, PEEKABOO_SAFE_CLICK="1")
    if code:
        assert (finished.error["code"], desk.posted()) == (code, [])
    else:
        assert desk.clicks() == [(1090, None, "left", 1, 1060, 110)]
        assert (finished.code, desk.focused_id()) == (0, 1090)


def test_focus_of_one_of_two_that_are_alike_may_click_its_title_bar(desk: Desk) -> None:
    desk.mac.open_window("Form", title="Form", bounds=desk.mac.window(1090)["bounds"], minimised=True)
    desk.mac.open_window("Form", title="Another", bounds=[700, 300, 400, 300])  # in front of both
    desk.mac.activate("Form")
    assert desk.data("focus", 1090, PEEKABOO_SAFE_CLICK="1")["is_focused"] is True
    assert desk.clicks() == [(1090, None, "left", 1, 1060, 110)]


def test_focus_clicks_nothing_where_the_window_comes_by_itself(desk: Desk) -> None:
    desk.data("focus", 1090, PEEKABOO_SAFE_CLICK="1")
    assert (desk.focused_id(), desk.posted()) == (1090, [])


def test_focus_without_accessibility_brings_an_app_alone(desk: Desk) -> None:
    desk.mac.deny("accessibility")
    desk.mac.open_window("Form", title="", bounds=[820, 100, 480, 20])  # a strip, no window to act in
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


# speed: how many programs an operation starts -------------------------------------------------------------

LISTING, ACT = ["osascript"], ["osascript"] * 2
PROGRAMS: dict[tuple[Any, ...], list[str]] = {
    ("windows",): LISTING,
    ("list", "apps"): LISTING,
    ("list", "screens"): LISTING,
    ("list", "windows", "--app", "Safari"): LISTING,
    ("screenshot", 1080, "--max-dimension", 300): [*LISTING, "screencapture", "sips"],
    ("click", 1080, 20, 20): ACT,
    ("type", 1080, "ls, and more than one piece of text"): ACT,
    ("press", 1080, "tab"): ACT,
    ("press", 1080, "cmd+a"): ACT,
}


def test_speed_is_in_the_few_programs_that_are_started(desk: Desk) -> None:
    desk.mac.set("keyboard.layout", "german")  # its table needs none
    for words, programs in PROGRAMS.items():
        before = len(desk.mac.calls())
        desk.data(*words)
        assert [call["program"] for call in desk.mac.calls()[before:]] == programs, words
    assert desk.mac.events("activate", "ax_set", "ax_raise") == []  # it was in front already


# the Swift helper -----------------------------------------------------------------------------------------


def compiled(mac: FakeMac) -> int:
    """How often the compiler was asked to compile."""
    return sum("-O" in call["argv"] for call in mac.calls("xcrun"))


def helper_acts(mac: FakeMac) -> int:
    """How often the helper ran for an act: after each compilation it runs once to see whether it does."""
    return len(mac.calls("swift-helper")) - compiled(mac)


def built() -> str:
    """What a server does in the background at its start; the reason why there is no helper, or nothing."""
    swift_helper.build_helper()
    return swift_helper.last_failure()


def build_and_cancel(mac: FakeMac) -> None:
    token = CancelToken()
    use_cancel_token(token)

    def cancel() -> None:
        wait_for(lambda: compiled(mac) > 0, "it compiles")
        token.cancel()

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
    assert input_by(desk).startswith("JXA (no Swift helper: doctor --compile makes it")


@pytest.mark.leaves(".*/peekaboo-input.new")
@pytest.mark.parametrize(
    ("tools", "reason"),
    [
        ("none", "xcode-select failed with exit code 2"),
        ("broken", "this SDK is not supported by the compiler"),
        ("killed", "peekaboo-input.new failed with exit code -9"),
    ],
)
def test_helper_that_cannot_be_made_leaves_the_acts_to_jxa(desk: Desk, tools: str, reason: str) -> None:
    desk.mac.tools(tools)
    assert reason in built()
    desk.data("press", 1080, "escape")
    assert (desk.keys(), reason in input_by(desk)) == (["escape"], True)
    if tools == "none":
        assert [call["argv"] for call in desk.mac.calls("xcode-select")] == [["-p"]]
        assert (desk.mac.calls("swiftc"), desk.mac.calls("xcrun"), desk.mac.events("dialog")) == ([], [], [])
    # tried again after a day
    tries = len(desk.mac.calls("xcode-select"))
    assert reason in built()
    assert len(desk.mac.calls("xcode-select")) == tries
    (failure,) = (desk.mac.home / "Library").rglob("failure.txt")
    for hours, more in (23, 0), (25, 1):
        os.utime(failure, (time.time() - hours * 3600,) * 2)
        built()
        assert len(desk.mac.calls("xcode-select")) == tries + more


@pytest.mark.leaves(".*/helper")
def test_helper_whose_folder_cannot_be_written_is_an_error(desk: Desk) -> None:
    desk.mac.tools("good")
    folder = desk.mac.home / "Library/Caches/peekaboo_min/helper"
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.write_text("not a folder")
    finished = desk.run("doctor", "--compile")
    assert finished.error["code"] == "FILE_IO_ERROR" and str(folder) in finished.error["message"]


def test_helper_that_compiles_too_long_is_tried_again_next_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.mac.tools("slow")
    # cancelled, it is not remembered as a failure; nor is one that ran out of time
    assert error_of(copy_context().run, build_and_cancel, desk.mac).code is ErrorCode.CANCELLED
    monkeypatch.setattr(swift_helper, "_COMPILE_S", 2)
    for tries in (2, 3):
        desk.data("doctor", "--compile")
        assert (desk.mac.running(), compiled(desk.mac)) == ([], tries)
    assert not list((desk.mac.home / "Library").rglob("failure.txt"))
    desk.data("press", 1080, "tab")
    assert desk.keys() == ["tab"]


def test_helper_of_another_source_is_none(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    helper = swift_helper._file("peekaboo-input")
    helper.parent.mkdir(parents=True)
    helper.touch(mode=0o700)
    assert swift_helper.find_helper() == helper
    monkeypatch.setattr(swift_helper, "native_source", lambda _name: "// of the next version")
    assert swift_helper.find_helper() is None


def test_helper_that_another_process_compiles_is_waited_for_where_a_person_asks(desk: Desk) -> None:
    desk.mac.tools("broken")
    assert "SDK" in built()
    (lock,) = (desk.mac.home / "Library").rglob("helper.lock")
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

    desk.mac.deny("accessibility")
    before = len(desk.posted())
    finished = desk.run("press", 1090, "escape")
    assert (finished.code, len(desk.posted())) == (12, before)
    tells_who_needs_what(finished, 12)


def test_helper_that_is_lost_or_damaged_is_noticed(desk: Desk) -> None:
    need_swift()
    desk.mac.tools("good")
    desk.data("doctor", "--compile")
    (helper,) = (desk.mac.home / "Library").rglob("peekaboo-input")
    helper.unlink()  # what is in Caches may be deleted at any time
    desk.data("press", 1080, "tab")
    assert (desk.keys(), helper_acts(desk.mac)) == (["tab"], 0)
    built()
    desk.data("press", 1080, "tab")
    assert (compiled(desk.mac), helper_acts(desk.mac)) == (2, 1)
    os.utime(helper, (1, 1))  # the system was started since: one more question
    desk.data("press", 1080, "tab")
    desk.data("press", 1080, "tab")
    assert helper_acts(desk.mac) == 4
    helper.write_text("#!/bin/sh\nexit 3\n")
    assert "no answer" in desk.run("press", 1080, "escape").error["message"]
    assert "no answer" in input_by(desk)
    desk.data("press", 1080, "escape")
    assert input_by(desk, "--compile") == f"Swift helper {helper}"
    helper.write_text("#!/bin/sh\nkill -9 $$\n")
    os.utime(helper, (1, 1))
    desk.data("press", 1080, "escape")
    assert "exit code -9" in input_by(desk)
    assert input_by(desk, "--compile") == f"Swift helper {helper}"
    desk.data("press", 1080, "escape")
    assert desk.keys() == ["tab"] * 4 + ["escape"] * 3

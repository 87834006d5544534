"""Screenshots, lists and permissions of a fake Mac, and their errors."""

from __future__ import annotations

import os
import platform
import plistlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Optional

import pytest
from fakemac import SHADOW, FakeMac, image_size, pixel, window_colour
from fakemac.pictures import Picture, paint
from fakemac.png import png_bytes
from mac_desk import PANELS, PANES, Desk, add_app, change_app, check_permission_error, widget
from samples import error_of

from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.tools.status import doctor

FRONT_TO_BACK = [1080, 1090, 1012, 1030, 1004, 1020, 1070, 1050, 1041, 1040, 1031, 1001]
MINIMISED = [1005, 1061]

# screenshots: pixels and sizes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window_id", "bounds", "scale"),
    [
        (1012, (200, 60, 1000, 700), 2),  # covered
        (1031, (-560, 100, 480, 500), 1),  # on the second display, with a negative origin
        (1090, (820, 100, 480, 360), 2),  # covered, with a button at its corner
    ],
)
def test_screenshot_shows_only_the_window_at_its_scale(
    desk: Desk, tmp_path: Path, window_id: int, bounds: tuple[int, ...], scale: int
) -> None:
    path = tmp_path / "out" / "shot.png"
    data = desk.data("screenshot", window_id, "--path", path)
    width, height = bounds[2] * scale, bounds[3] * scale
    assert image_size(path) == (width, height) == (data["image_width"], data["image_height"])
    corners = [(x, y) for x in (0, width - 1) for y in (0, height - 1)]
    assert [pixel(path, *corner) for corner in corners] == [window_colour(window_id)] * 4
    assert (tuple(data["bounds"].values()), data["scale"]) == (bounds, scale)
    assert desk.captures() == [["-x", "-a", "-o", "-l", str(window_id), "-t", "png"]]
    assert desk.images_left() == []


def test_window_on_two_displays_has_the_scale_at_its_centre(desk: Desk) -> None:
    scales = []
    for x in (-300, -200, 9999):  # beyond all displays, like on the main one
        desk.mac.move_window(1031, x, 100)
        scales.append(desk.window(1031).scale)
    assert scales == [1, 2, 2]


# the main display; two of equal size, left of it and above it; a rotated display on the right
FOUR_DISPLAYS: list[dict[str, Any]] = [
    {"id": 1, "name": "Built-in", "main": True, "bounds": [0, 0, 1440, 900], "scale": 2},
    {"id": 3, "name": "Left", "bounds": [-1920, -180, 1920, 1080], "scale": 1},
    {"id": 4, "name": "Above", "bounds": [0, -1080, 1920, 1080], "scale": 1},
    {"id": 5, "name": "Rotated", "bounds": [1920, -500, 1080, 1920], "scale": 1},
]


@pytest.mark.parametrize("order", ["as listed", "reversed"])
@pytest.mark.parametrize(
    ("index", "x", "y", "option"),
    [(0, 70, 90, "-D"), (1, -559, 101, "-R"), (2, 110, -700, "-R"), (3, 2010, 1200, "-R")],
)
def test_image_shows_the_right_display_in_any_order(
    desk: Desk, tmp_path: Path, order: str, index: int, x: int, y: int, option: str
) -> None:
    desk.mac.set("displays", FOUR_DISPLAYS)
    desk.mac.switch(display_order=order)  # the -D numbers of the other displays are unknown
    window = desk.mac.open_window("Finder", title="here", bounds=[x - 10, y - 10, 400, 300])
    (image,) = desk.data("image", "--screen-index", index, "--path", tmp_path / "a.png")["saved_files"]
    (left, top, width, height), scale = (FOUR_DISPLAYS[index][key] for key in ("bounds", "scale"))
    assert image_size(tmp_path / "a.png") == (width * scale, height * scale)
    assert pixel(tmp_path / "a.png", (x - left) * scale, (y - top) * scale) == window_colour(window)
    shown = next(one for one in image["windows"] if one["window_id"] == window)
    assert (shown["x"], shown["y"]) == ((x - 10 - left) * scale, (y - 10 - top) * scale)
    assert desk.captures()[0][1] == option


@pytest.mark.parametrize(
    ("words", "bounds", "scale", "places"),
    [
        ("Safari", "200,60,1000,700", 2, [(2, 2, 1012), (2 * 640, 2 * 50, 1090), (2, 2 * 30, 1080)]),
        ("TextEdit --windowIndex 1", "-560,100,480,500", 1, [(2, 2, 1031)]),
    ],
)
def test_rectangle_capture_shows_the_screen(
    desk: Desk, words: str, bounds: str, scale: int, places: list[tuple[int, int, int]]
) -> None:
    data = desk.data("screenshot-app-window", "--no-preferWindowId", "--appName", *words.split())
    rect = dict(zip("xywh", map(int, bounds.split(","))))
    assert image_size(Path(data["path"])) == (rect["w"] * scale, rect["h"] * scale)
    colours = [pixel(Path(data["path"]), x, y) for x, y, _ in places]
    assert colours == [window_colour(one) for _, _, one in places]
    assert (data["rect"], data["scale"], data["format"]) == (rect, scale, "png")
    assert desk.captures() == [["-x", "-R", bounds, "-t", "png"]]


def test_capture_with_a_shadow_is_larger_and_cannot_be_clicked(desk: Desk) -> None:
    words = ("--appName", "Form", "--includeShadow", "--format", "jpg")
    data = desk.data("screenshot-app-window", *words)
    width, height = image_size(Path(data["path"]))
    assert width > 960 and height > 720 and data["scale"] == 2
    assert all(abs(one - two) < 24 for one, two in zip(pixel(Path(data["path"]), 1, 1), SHADOW))
    assert desk.captures() == [["-x", "-a", "-l", "1090", "-t", "jpg"]]
    assert (desk.run("click", 1090, 10, 10).code, desk.posted()) == (20, [])


# failures of screencapture ---------------------------------------------------------------------------------

PICTURE = png_bytes(Picture(8, 8, paint(8, 8, (1, 2, 3), [])))
RUBBISH = b"rubbish, and more than twenty-four bytes of it"
NO_IMAGE = "could not create image from window"
Arrange = Callable[[FakeMac], Any]


def protect(mac: FakeMac) -> None:
    mac.change_window(1090, {"sharing": "none"})


def stale(mac: FakeMac) -> None:
    mac.era("error")
    mac.set("permissions.screen_recording", "stale")


def leave(exit_code: int, file: bytes) -> Arrange:
    return lambda mac: mac.fail("screencapture", NO_IMAGE, exit=exit_code, file=file)


NOT_CAPTURED: dict[str, tuple[Arrange, int, int, str, int]] = {
    "the screen is locked": (FakeMac.lock_screen, 1090, 1, "SCREEN_LOCKED", 1),
    "there is no GUI session": (FakeMac.no_gui_session, 1090, 1, "NO_GUI_SESSION", 0),
    "the window is minimised": (FakeMac.heal, 1005, 14, "CAPTURE_FAILED", 1),
    "the window is protected": (protect, 1090, 14, "CAPTURE_FAILED", 1),
    "the grant is stale": (stale, 1090, 14, "CAPTURE_FAILED", 4),
    "no window has the id": (FakeMac.heal, 4242, 15, "WINDOW_NOT_FOUND", 0),
    "exit 0 and an empty file": (leave(0, b""), 1090, 14, "CAPTURE_FAILED", 4),
    "exit 1 and a picture": (leave(1, PICTURE), 1090, 14, "CAPTURE_FAILED", 4),
    "exit 0 and no picture": (leave(0, RUBBISH), 1090, 14, "CAPTURE_FAILED", 4),
    "exit 0 and a picture of another shape": (leave(0, PICTURE), 1090, 14, "CAPTURE_FAILED", 3),
}


@pytest.mark.parametrize(
    ("arrange", "window_id", "exit_code", "code", "tries"), NOT_CAPTURED.values(), ids=NOT_CAPTURED
)
def test_failed_screenshot_reports_the_reason(
    desk: Desk, arrange: Arrange, window_id: int, exit_code: int, code: str, tries: int
) -> None:
    arrange(desk.mac)
    assert desk.refusal("screenshot", window_id) == (exit_code, code)
    assert len(desk.captures()) == tries


def test_screenshot_with_a_stale_grant_fails_naming_it(desk: Desk) -> None:
    stale(desk.mac)
    message = desk.run("screenshot", 1090).error["message"]
    assert "an older copy of the app" in message and "quit and reopen Terminal" in message


@pytest.mark.parametrize(("exit_code", "file"), [(0, RUBBISH), (13, None), (0, b"")])
def test_sips_fails_by_a_bad_file_or_exit_code(
    desk: Desk, tmp_path: Path, exit_code: int, file: Optional[bytes]
) -> None:
    desk.data("screenshot", 1090, "--path", tmp_path / "whole.png")
    left = (tmp_path / "whole.png").read_bytes() if file is None else file
    desk.mac.fail("sips", "Error 13", exit=exit_code, file=left)
    assert desk.refusal("screenshot", 1090, "--max-dimension", 300)[1] == "SIPS_ERROR"


@pytest.mark.parametrize("link", ["child_of", "attached_to"])
def test_screenshot_shows_a_window_without_its_attached_windows(desk: Desk, link: str) -> None:
    desk.mac.open_window("Form", bounds=[1200, 300, 200, 400], **{link: 1090})
    data = desk.data("screenshot", 1090)
    assert (data["image_width"], data["image_height"], len(desk.captures())) == (960, 720, 1)


def test_screenshots_of_several_windows_are_taken_one_at_a_time(desk: Desk) -> None:
    desk.mac.set("latency_ms", {"screencapture": [2100, 2100]})  # two at once are a strict event
    assert len(desk.data("image", "--app", "Safari", "--mode", "multi")["saved_files"]) == 2


def test_screenshot_of_a_protected_window_works_if_macos_ignores_the_protection(desk: Desk) -> None:
    protect(desk.mac)
    desk.mac.switch(window_sharing="ignored")  # from macOS 15 on
    assert desk.data("screenshot", 1090)["image_width"] == 960


TINY = {"bounds": [900, 150, 66, 20], "title": "Window"}  # a capture adds this window to the captured app
IN_FRONT: list[tuple[str, dict[str, Any], bool]] = [
    ("TextEdit", {"bounds": [900, 150, 100, 100], "alpha": 0}, True),
    ("TextEdit", {"bounds": [900, 150, 100, 100], "alpha": 0.5}, False),
    ("Form", TINY, True),
    ("Form", {**TINY, "title": ""}, True),
    ("Form", {**TINY, "title": "Tools"}, False),
    ("Form", {**TINY, "bounds": [900, 150, 66, 50]}, False),
    ("TextEdit", TINY, False),
]


@pytest.mark.parametrize(("app", "window", "is_seen"), IN_FRONT)
def test_screenshot_by_rectangle_needs_a_window_without_visible_cover(
    desk: Desk, app: str, window: dict[str, Any], is_seen: bool
) -> None:
    desk.data("focus", 1090)
    desk.mac.open_window(app, **window)
    desk.mac.fail("screencapture", NO_IMAGE, when=["-l"])
    assert desk.run("screenshot", 1090).code == (0 if is_seen else 14)
    assert [one[1] for one in desk.captures() if one[1] == "-R"] == ["-R"] * is_seen


def test_screenshot_of_a_window_that_closes_is_not_found(desk: Desk) -> None:
    desk.mac.set("latency_ms", {"screencapture": [500, 500]})
    desk.mac.close_window(1030, lingers_ms=1000)
    assert desk.refusal("screenshot", 1030) == (15, "WINDOW_NOT_FOUND")


# screenshot_app_window ------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", ["screencapture", "osascript", "both, slowly"])
def test_app_window_has_one_timeout_for_all_programs(desk: Desk, program: str) -> None:
    if program == "both, slowly":
        desk.mac.set("latency_ms", {"osascript": [2000, 2000], "screencapture": [2000, 2000]})
    else:
        desk.mac.hang(program)  # like behind an unanswered prompt
    finished = desk.run("screenshot-app-window", "--appName", "Form", "--timeoutMs", 3500)
    assert (finished.code, finished.error["code"]) == (22, "Timeout")
    assert "; raise timeoutMs; " in finished.error["message"]
    assert ("any screen recorder" in finished.error["message"]) is (program != "osascript")
    assert len(desk.mac.calls(program if program == "screencapture" else "osascript")) == 1
    assert desk.mac.running() == []


# lists ----------------------------------------------------------------------------------------------------


def test_list_windows_is_front_to_back_with_owners(desk: Desk) -> None:
    windows = desk.windows()
    assert [one["window_id"] for one in windows] == [*FRONT_TO_BACK, *MINIMISED]
    assert [one["window_id"] for one in windows if one["is_focused"]] == [1080]
    assert [one["window_id"] for one in windows if one["is_minimised"]] == MINIMISED
    letter = next(one for one in windows if one["window_id"] == 1031)
    assert (letter["owner_name"], letter["pid"], letter["title"]) == ("TextEdit", 430, "Letter")


def test_list_of_all_windows_ends_with_those_off_the_screen(desk: Desk) -> None:
    windows = desk.windows("--all")
    on_screen = [one["window_id"] for one in windows if one["is_on_screen"]]
    assert on_screen == [12, 14, 1071, *FRONT_TO_BACK[:6], 1021, *FRONT_TO_BACK[6:]]
    assert sorted(one["window_id"] for one in windows[16:]) == [1005, 1060, 1061, 1081]


BRIDGES: dict[str, dict[str, Any]] = {
    "a deep unwrap of nothing": {"deep_unwrap_window_list": "undefined", "bare_ref": "throws"},
    "a deep unwrap that throws": {"deep_unwrap_window_list": "throws", "bare_ref": "throws"},
    "integers are numbers, nil is null": {"bridged_integers": "numbers", "nil_is_null": True},
}


@pytest.mark.parametrize("switches", BRIDGES.values(), ids=BRIDGES)
def test_list_is_the_same_for_all_bridge_types(desk: Desk, switches: dict[str, Any]) -> None:
    before = desk.backend.snapshot()
    desk.mac.switch(**switches)
    assert desk.backend.snapshot() == before
    assert (before.windows[0].pid, before.apps[0].pid, before.displays[0].scale) == (180, 301, 2.0)
    change_app(desk.mac, "TextEdit", bundle_id="")
    assert {one["window_id"] for one in desk.windows("--app", "TextEdit")} == {1030, 1031}


MENU: dict[str, Any] = {"bounds": [100, 120, 30, 20], "layer": 101}
# a menu of the Dock, and a faded menu between an open menu and its submenu
MENUS = [("Terminal", MENU), ("Dock", MENU), ("Terminal", {**MENU, "alpha": 0}), ("Terminal", MENU)]
# and a menu of an application without another window on the screen
MENUS += [("System Settings", {"bounds": [9, 99, 300, 200], "minimised": True}), ("System Settings", MENU)]
OWNERS = [(2005, None), (2003, 1080), (2000, 1080)]
PANEL = {"bounds": [300, 300, 300, 200], "layer": 8, "modal": True}
TOOLS = {"title": "tools", "bounds": [700, 300, 100, 100], "layer": 3}  # not a dialog
OVER = {"title": "Sure?", "bounds": [820, 100, 480, 360], "modal": True}
GROUP = widget("panel", "group", 80, 50, 300, 200)  # at the position of the window BESIDE
BESIDE = {"title": "Beside", "bounds": [900, 150, 300, 200]}
# the app in front, windows that open, and id, kind, parent and modality of popups and dialogs
MARKED: dict[str, tuple[str, list[tuple[str, dict[str, Any]]], list[Any]]] = {
    "menus": ("", MENUS, [(at, "popup", owner, False) for at, owner in OWNERS]),
    "a sheet": ("Calendar", [], [(1041, "dialog", 1040, True)]),
    "a modal panel": ("Terminal", [("Terminal", PANEL), ("Terminal", TOOLS)], [(2000, "dialog", None, True)]),
    "a modal dialog exactly over its window": ("Form", [("Form", OVER)], [(2000, "dialog", None, True)]),
    "a group within a window": ("Form", [("Form", BESIDE)], []),
    "two windows that look the same": ("Form", [("Form", {**OVER, "title": "Form"})], []),
}


def marked(desk: Desk) -> list[tuple[Any, ...]]:
    names = ("window_id", "kind", "parent_id", "is_modal")
    return [tuple(one[key] for key in names) for one in desk.windows() if one["kind"] != "window"]


@pytest.mark.parametrize("name", MARKED)
def test_list_windows_marks_menus_sheets_and_dialogs(desk: Desk, name: str) -> None:
    front, opened, expected = MARKED[name]
    desk.mac.change_window(1090, {"widgets": [GROUP]})
    if front:  # it would close the menus
        desk.mac.activate(front)
    for app, window in opened:
        desk.mac.open_window(app, **window)
    assert marked(desk) == expected


def test_list_windows_without_accessibility_marks_and_finds_less(desk: Desk) -> None:
    desk.mac.deny("accessibility")
    desk.mac.activate("Calendar")
    assert (marked(desk), sorted(one["window_id"] for one in desk.windows())) == ([], sorted(FRONT_TO_BACK))


def test_modal_panel_is_listed_and_has_the_focus_and_tools_are_not(desk: Desk) -> None:
    for window in (PANEL, TOOLS):
        desk.mac.open_window("Terminal", **window)
    windows = {one["window_id"]: one["is_focused"] for one in desk.windows()}
    assert (windows[2000], 2001 in windows, windows[1080]) == (True, False, False)


NAME = widget("name", "field", 40, 60, 300, 30, value="")
SAVE = widget("save", "button", 300, 240, 100, 40, text="Save", on_click={"close_window": "this"})
SAVE_PANEL = {"title": "Save", "bounds": [760, 460, 440, 300], "focus": "name", "widgets": [NAME, SAVE]}


def test_panels_in_front_belong_to_the_app_in_front(desk: Desk) -> None:
    add_app(desk.mac, "Open and Save Panel Service", 600, bundle_id=PANELS, policy=1, panels_of=430)
    desk.mac.activate("TextEdit")
    desk.mac.open_window("Form", **BESIDE)  # between the panels and TextEdit's windows

    def count() -> int:
        return next(one.window_count for one in desk.backend.snapshot().apps if one.name == "TextEdit")

    before = count()
    panels = [desk.mac.open_window(600, **SAVE_PANEL) for _ in range(2)]
    owners = {one["window_id"]: one["owner_name"] for one in desk.windows()}
    assert [owners[panel] for panel in panels] == ["TextEdit", "TextEdit"]
    assert count() == before + 2


# how the panel belongs to its app, and its parent (a modal panel blocks all windows and has none)
PANEL_FORMS: list[Any] = [({"modal": True}, None), ({"attached_to": 1030}, 1030), ({}, 1030)]


@pytest.mark.parametrize(("form", "parent"), PANEL_FORMS)
def test_panel_of_another_process_is_a_dialog_of_its_app(
    desk: Desk, form: dict[str, Any], parent: Optional[int]
) -> None:
    add_app(desk.mac, "Open and Save Panel Service", 600, bundle_id=PANELS, policy=1, panels_of=430)
    desk.mac.activate("TextEdit")
    panel = desk.mac.open_window(600, **SAVE_PANEL, **form)
    names = ("owner_name", "pid", "kind", "parent_id", "is_modal", "is_focused")

    def listed() -> list[tuple[Any, ...]]:
        return [tuple(one[key] for key in names) for one in desk.windows() if one["window_id"] == panel]

    assert listed() == [("TextEdit", 430, "dialog", parent, True, True)]
    assert desk.refusal("press", 1030, "tab")[1] == "WINDOW_BLOCKED"
    desk.mac.activate("Form")  # the panel is behind it
    assert listed() == [("TextEdit", 430, "dialog", 1030, True, False)]
    assert desk.data("elements", panel)["elements"][-1]["name"] == "Save"
    assert desk.data("type", panel, "a.txt")["delivered"] is True
    assert desk.mac.widget(panel, "name")["value"] == "a.txt"
    shot = desk.data("screenshot", panel)
    desk.data("click", panel, 700, 520, "--screenshot-id", shot["screenshot_id"])
    assert listed() == []
    for window_id in (1030, 1031):  # like at its start, when the app asks for a file to open
        desk.mac.change_window(window_id, {"minimised": True})
    panel, _ = [desk.mac.open_window(600, **SAVE_PANEL) for _ in range(2)]  # the second is in front
    assert listed() == [("TextEdit", 430, "dialog", None, True, False)]
    desk.mac.set("frontmost_pid", None)
    assert listed() == [("Open and Save Panel Service", 600, "dialog", None, True, False)]


def test_list_windows_finds_a_minimised_window_with_a_twin(desk: Desk) -> None:
    bounds = desk.mac.window(1090)["bounds"]
    desk.mac.open_window("Form", title="Form", bounds=bounds, minimised=True, alpha=0)  # invisible
    twin = desk.mac.open_window("Form", title="Form", bounds=bounds, minimised=True)
    minimised = [one["window_id"] for one in desk.windows() if one["is_minimised"]]
    assert sorted(minimised) == sorted([*MINIMISED, twin])


def test_list_windows_is_not_blocked_by_hung_apps(desk: Desk) -> None:
    for pid in range(600, 640):
        add_app(desk.mac, f"App {pid}", pid, bundle_id=f"com.example.app{pid}")
        desk.mac.open_window(f"App {pid}", bounds=[0, 0, 300, 200], minimised=True)
    desk.mac.open_window("Terminal", bounds=[500, 500, 300, 200])
    desk.mac.update(lambda state: [app.update(hung=True) for app in state["apps"]])
    started = time.monotonic()
    assert len(desk.windows()) == len(FRONT_TO_BACK) + 1
    assert time.monotonic() - started < 60  # four minutes with the system's own timeout


def test_act_asks_no_other_app_for_its_windows(desk: Desk) -> None:
    change_app(desk.mac, "Safari", hung=True)  # it has a minimised window
    desk.data("press", 1090, "tab")
    assert desk.mac.events("asked_in_vain") == []
    desk.windows()
    assert desk.mac.events("asked_in_vain") != []


# windows that accessibility lists, whether Cocoa names the menu's items, whether the window is focused
SPACES = [("this space", "named", True), ("this space", "unnamed", False), ("all", "unnamed", True)]


@pytest.mark.parametrize(("ax_windows", "window_menu", "comes"), SPACES)
def test_focus_brings_a_window_from_another_space(
    desk: Desk, ax_windows: str, window_menu: str, comes: bool
) -> None:
    desk.mac.switch(ax_windows=ax_windows, window_menu=window_menu)
    desk.mac.activate("Form")
    finished = desk.run("focus", 1081)
    assert (finished.code == 0, desk.focused_id() == 1081) == (comes, comes)
    if not comes:
        assert "it is minimised, or on another Space" in finished.error["message"]


def test_focus_chooses_no_window_by_a_title_that_two_have(desk: Desk) -> None:
    title = desk.mac.window(1081)["title"]
    desk.mac.open_window("Terminal", title=title, bounds=[60, 80, 300, 200], space=2)
    desk.mac.activate("Form")
    assert desk.run("focus", 1081).error["code"] == "FOCUS_FAILED"
    assert desk.mac.state()["space"] == 1


def test_list_windows_does_not_ask_an_app_with_one_window_for_dialogs(desk: Desk) -> None:
    change_app(desk.mac, "Form", hung=True)
    desk.mac.activate("Form")
    desk.mac.open_window("Form", bounds=[900, 120, 30, 20], layer=101)  # a menu does not count
    desk.mac.open_window("Form", bounds=[900, 120, 300, 200], minimised=True)
    desk.backend.snapshot()
    assert desk.mac.events("asked_in_vain") == []


@pytest.mark.parametrize(
    ("pid", "nil_is_null"), [(None, False), (None, True), (460, False)]
)  # 460: Notes has no window on screen
def test_no_window_is_focused_without_a_frontmost_window(
    desk: Desk, pid: Optional[int], nil_is_null: bool
) -> None:
    desk.mac.switch(nil_is_null=nil_is_null)
    desk.mac.set("frontmost_pid", pid)
    listed = {one["window_id"]: one["is_focused"] for one in desk.windows()}
    assert listed == dict.fromkeys([*FRONT_TO_BACK, *MINIMISED], False)


def test_list_windows_without_screen_recording_explains_missing_titles(desk: Desk) -> None:
    desk.mac.deny("screen_recording")
    finished = desk.run("windows")
    assert [one["window_id"] for one in finished.data["windows"]] == [*FRONT_TO_BACK, *MINIMISED]
    # the responsible app sees its own titles
    assert {one["title"] for one in finished.data["windows"] if one["owner_name"] != "Terminal"} == {""}
    (message,) = finished.json["messages"]
    assert message.startswith("window titles are hidden: Terminal lacks the Screen Recording permission; ")
    assert desk.refusal("list", "windows", "--app", "Safari") == (11, "PERMISSION_DENIED_SCREEN_RECORDING")
    assert desk.run("list", "apps").code == 0


@pytest.mark.parametrize(
    "text",
    ["$(touch x) `touch x`; \"'\\", "a\x1b]0;x\x07\u202eb\nc\u2028d", "x" * 10_000],
    ids=["shell", "control", "long"],
)
def test_hostile_names_are_listed_as_one_short_line_and_not_executed(desk: Desk, text: str) -> None:
    desk.mac.change_window(1090, {"title": text})
    change_app(desk.mac, "Form", name=text)
    (listed,) = (one for one in desk.windows() if one["window_id"] == 1090)
    for shown in (listed["title"], listed["owner_name"]):
        assert shown.isprintable() and len(shown) <= 200 and shown[:1] == text[:1]
        assert shown == text or "touch" not in text
    assert desk.run("press", 1090, "tab").code == 0
    assert not [*desk.mac.folder.rglob("x")]


@pytest.mark.parametrize("nil_is_null", [False, True])
def test_list_apps_counts_listed_windows_and_skips_ended_apps(desk: Desk, nil_is_null: bool) -> None:
    add_app(desk.mac, "Gone", 779, terminated=True)
    add_app(desk.mac, "", 777)
    add_app(desk.mac, "Unsigned\x1b", 778)
    add_app(desk.mac, "Form", 601)  # a second process, without a window
    desk.mac.switch(nil_is_null=nil_is_null)
    apps = desk.data("list", "apps")["applications"]
    counts = {one["app_name"]: one["window_count"] for one in apps}
    assert list(counts) == sorted(counts) and not {"Gone", ""} & set(counts)
    assert (counts["Calendar"], counts["Notes"], counts["Safari"], counts["Unsigned"]) == (2, 0, 2, 0)
    assert sorted(one["window_count"] for one in apps if one["app_name"] == "Form") == [0, 1]
    assert [one["app_name"] for one in apps if one["is_active"]] == ["Terminal"]
    assert [one.get("bundle_id") for one in apps if one["pid"] in (440, 778)] == ["com.apple.iCal", None]


def test_list_screens_begins_with_the_main_display(desk: Desk) -> None:
    desk.mac.close_window(1030)
    desk.mac.activate("TextEdit")
    assert desk.focused_id() == 1031  # NSScreen.mainScreen is now the second display
    names = ("screen_index", "name", "is_main", "scale", "bounds")
    listed = [tuple(map(one.get, names)) for one in desk.data("list", "screens")["screens"]]
    numbers = ("x", "y", "width", "height")
    assert listed == [
        (0, "Built-in Retina Display", True, 2.0, dict(zip(numbers, (0, 0, 1440, 900)))),
        (1, "LG UltraFine", False, 1.0, dict(zip(numbers, (-1920, -180, 1920, 1080)))),
    ]


def test_inactive_display_is_not_listed(desk: Desk) -> None:
    desk.mac.set("displays.1.active", False)
    assert len(desk.data("list", "screens")["screens"]) == 1


GRANTS = ("screen_recording", "accessibility")
APP_WINDOW = "screenshot-app-window --appName Safari"

# permissions: denied, or not yet requested ------------------------------------------------------------------


def test_verify_needs_screen_recording(desk: Desk) -> None:
    desk.mac.deny("screen_recording")
    assert (desk.run("press", 1090, "tab", "--verify").code, desk.posted()) == (11, [])


@pytest.mark.parametrize(
    ("line", "code"),
    [
        *(
            (line, "SCREEN_LOCKED")
            for line in ("screenshot 1090", "image", "image --app Safari --mode multi")
        ),
        (APP_WINDOW, "CaptureFailed"),
    ],
)
def test_capture_in_the_session_of_another_user_is_refused(desk: Desk, line: str, code: str) -> None:
    desk.mac.set("session.on_console", False)
    error = desk.run(*line.split()).error
    assert (error["code"], "another user is active" in error["message"]) == (code, True)


def test_display_is_not_captured_without_screen_recording(desk: Desk, tmp_path: Path) -> None:
    desk.mac.deny("screen_recording")
    display = desk.backend.snapshot().displays[0]
    shot = (tmp_path / "shot.png", "png")
    refused = error_of(desk.backend.capture_display, display, *shot)
    assert error_of(desk.backend.capture_rect, display.bounds, *shot).code is refused.code
    assert refused.code.value == "PERMISSION_DENIED_SCREEN_RECORDING"


@pytest.mark.parametrize("answer", ["denied", "not_asked"])
def test_missing_permission_on_a_newer_mac_is_reported(desk: Desk, answer: str) -> None:
    desk.mac.era("error")
    desk.mac.set("permissions.screen_recording", answer)
    assert desk.refusal("screenshot", 1090) == (11, "PERMISSION_DENIED_SCREEN_RECORDING")
    assert desk.refusal(*APP_WINDOW.split()) == (11, "PermissionDenied")


def shown_permissions(desk: Desk) -> str:
    return desk.program.run("permissions").out


@pytest.mark.parametrize(
    ("denied", "exit_code"),
    [(["screen_recording"], 11), (["accessibility"], 12), (["accessibility", "screen_recording"], 11)],
)
def test_permissions_exit_code_is_the_first_missing_grant(
    desk: Desk, denied: Sequence[str], exit_code: int
) -> None:
    for kind in denied:
        desk.mac.deny(kind)
    finished = desk.run("permissions")
    check_permission_error(finished, exit_code)
    named = [
        kind for kind, (pane, _) in zip(GRANTS, PANES.values()) if f"{pane}: NOT" in finished.error["details"]
    ]
    assert (finished.code, named) == (exit_code, sorted(denied, reverse=True))
    grants = {kind: kind not in denied for kind in GRANTS}
    assert desk.data("list", "server_status")["permissions"] == grants


def test_permissions_report_a_stale_grant(desk: Desk) -> None:
    assert desk.data("permissions") == {"permissions": dict.fromkeys(GRANTS, True)}
    desk.mac.set("permissions.screen_recording", "stale")
    assert "Screen Recording: unknown: granted, but" in shown_permissions(desk)
    assert "quit and reopen Terminal" in shown_permissions(desk)


@pytest.mark.parametrize("pids", [(480,), (480, 500), (480, 500, 430)])
def test_windows_of_two_other_apps_are_evidence_of_a_stale_grant(desk: Desk, pids: tuple[int, ...]) -> None:
    desk.mac.set("permissions.screen_recording", "stale")
    for window in desk.mac.state()["windows"]:
        desk.mac.change_window(window["id"], {"minimised": window["pid"] not in pids})
    assert ("Screen Recording: unknown" in shown_permissions(desk)) == (len(pids) == 3)


def test_owners_of_missing_permissions_are_looked_up_in_parallel(desk: Desk) -> None:
    # in sequence, they would exceed the two seconds of server_status
    for kind in GRANTS:
        desk.mac.deny(kind)
    desk.mac.set("latency_ms", {"osascript": [900, 900]})
    desk.run("list", "server_status")
    first, second = [call["t"] for call in desk.mac.calls("osascript") if call["argv"][-1].isdigit()]
    assert second - first < 900


@pytest.mark.parametrize(
    ("version", "pane"), [("14.7", "Screen Recording"), ("15.0", "Screen & System Audio Recording")]
)
def test_permission_error_names_the_pane_of_the_macos_version(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, version: str, pane: str
) -> None:
    monkeypatch.setattr(platform, "mac_ver", lambda: (version, ("", "", ""), ""))
    error = desk.backend.denied(ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING, "no image")
    assert f" lacks the {pane} permission" in error.message and f"Privacy & Security > {pane} " in error.hint


def test_permissions_without_a_session_report_no_gui_session(desk: Desk) -> None:
    desk.mac.no_gui_session()
    assert desk.run("permissions").error["code"] == "NO_GUI_SESSION"


def test_permissions_survive_a_crash_of_the_keynote_check(desk: Desk) -> None:
    desk.mac.fail("osascript", exit=-11, when=["AEDeterminePermissionToAutomateTarget"])
    assert "Automation: macOS asks at first use (Keynote)" in shown_permissions(desk)


@pytest.mark.parametrize("bundle_id", ["com.apple.Keynote", "com.apple.iWork.Keynote"])
@pytest.mark.parametrize(
    ("answer", "code", "found"),
    [
        (FakeMac.grant, 0, "granted"),
        (FakeMac.deny, 13, "NOT granted"),
        (FakeMac.ask, 0, "macOS asks at first use"),
    ],
)
def test_keynote_permission_is_checked_without_a_dialog(
    desk: Desk, answer: Callable[..., None], code: int, found: str, bundle_id: str
) -> None:
    desk.mac.keynote(installed=[bundle_id])
    desk.data("keynote", "open")  # the check needs a running app
    answer(desk.mac, "automation", bundle_id)
    shown = desk.program.run("permissions")
    assert (shown.code, f"Automation: {found} (Keynote)" in shown.out + shown.err) == (code, True)
    assert code == 0 or "Privacy_Automation" in shown.err


_TERMINAL = "/System/Applications/Utilities/Terminal.app"
_SHELL = [f"{_TERMINAL}/Contents/MacOS/Terminal", "login", "-zsh"]
_PYTHON = "Library/Frameworks/Python3.framework/Versions/3.9/Resources/Python.app"
_VS_CODE = "/Applications/Visual Studio Code.app"
_NESTED = f"{_VS_CODE}/Contents/Frameworks/Code Helper.app/Contents/MacOS/Helper"
_CLAUDE = "/Users/someone/Library/Application Support/Claude/claude-code/2.1.209-with-a-long-name/claude.app"
_DESKTOP = "/Applications/Claude.app/Contents/MacOS/Claude"
_BY_UV = "/Users/someone/.local/share/uv/python/cpython-3.13-macos-aarch64-none/bin/python3.13"
_XCODES, _TOOLS = f"/Applications/Xcode.app/{_PYTHON}", f"/Library/Developer/CommandLineTools/{_PYTHON}"
# the path that needs the grant, and the process chain that ends with us; the app to reopen if it is another
HOSTS = {
    "an editor's nested helper": (_VS_CODE, [_NESTED, "/bin/zsh", "python3"]),
    "an app that another app installed": (_CLAUDE, [_DESKTOP, f"{_CLAUDE}/Contents/MacOS/claude", "python3"]),
    "Terminal below the tools' Python": (_TERMINAL, [*_SHELL, f"{_TOOLS}/Contents/MacOS/Python"]),
    "Terminal below Xcode's Python": (_TERMINAL, [*_SHELL, f"{_XCODES}/Contents/MacOS/Python"]),
    "a daemon": ("", ["/usr/sbin/sshd", "-zsh", "python3"]),
    "unknown without ps": ("", ["python3"]),
    "responsible: python, for any launcher": (_BY_UV, [_DESKTOP, "disclaimer", _BY_UV], "Claude"),
    "responsible: Python.app": (_XCODES, [_DESKTOP, f"{_XCODES}/Contents/MacOS/Python"], "Claude"),
    "responsible: python of a daemon": (_BY_UV, ["/usr/sbin/sshd", _BY_UV], "python3.13"),
}


@pytest.mark.parametrize("case", HOSTS)
def test_permission_error_names_the_app_that_needs_the_grant(desk: Desk, case: str) -> None:
    path, processes, *reopened = HOSTS[case]
    if "without ps" in case:
        (desk.mac.bin_dir / "ps").unlink()
        desk.mac.fail("osascript", exit=-11, when=["responsibility_get_pid_responsible_for_pid"])
    rows: list[dict[str, Any]] = [
        {"pid": 700 + at, "ppid": 699 + at if at else 1, "comm": comm} for at, comm in enumerate(processes)
    ]
    rows[-1]["this_is_us"] = True
    desk.mac.set("processes", rows)
    change_app(desk.mac, "Terminal", responsible=False)
    if "responsible" in case:
        add_app(desk.mac, "python", os.getpid(), responsible=True)
    desk.mac.deny("screen_recording")
    refused = desk.run("screenshot", 1090)
    name = Path(path).name.replace(".app", "") or "the app that started this"
    assert (refused.code, f": {name} lacks the Screen Recording" in refused.error["message"]) == (11, True)
    message = refused.error["message"]
    assert (f"press +, then shift-cmd-G, and enter {path}" in message) is bool(path)
    assert ("If the dialog refuses it, or after an upgrade, " in message) is (path == _BY_UV)
    assert " If it is already on, remove it with - and add it again. Then" in message
    assert message.endswith(f". Then quit and reopen {(reopened or [name])[0]}")


@pytest.mark.parametrize(("usage", "advice"), [("We click.", "tccutil reset AppleEvents"), (None, "with uv")])
def test_automation_error_advises_by_the_apps_info_plist(
    desk: Desk, tmp_path: Path, usage: Optional[str], advice: str
) -> None:
    contents = tmp_path / "Python.app" / "Contents"
    contents.mkdir(parents=True)
    keys = {"NSAppleEventsUsageDescription": usage} if usage else {"CFBundleName": "Python"}
    (contents / "Info.plist").write_bytes(plistlib.dumps(keys))
    row = {"pid": os.getpid(), "ppid": 1, "comm": f"{contents}/MacOS/Python", "this_is_us": True}
    desk.mac.set("processes", [row])
    change_app(desk.mac, "Terminal", responsible=False)
    add_app(desk.mac, "Python", os.getpid(), responsible=True)
    error = desk.backend.denied(ErrorCode.PERMISSION_DENIED_AUTOMATION, "Keynote cannot be controlled")
    assert error.message.startswith("Keynote cannot be controlled: Python lacks the Automation permission")
    assert advice in error.hint and "+" not in error.hint


@pytest.mark.parametrize(("is_person", "dialogs"), [(True, 2), (False, 0)])
def test_doctor_requests_permissions_only_from_a_person(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, is_person: bool, dialogs: int
) -> None:
    for kind in GRANTS:
        desk.mac.deny(kind)
    assert (desk.run("doctor").code, desk.mac.events("dialog")) == (11, [])
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: is_person))
    error = error_of(doctor, request=True)
    assert (error.code.exit_code, len(desk.mac.events("dialog"))) == (11 if is_person else 2, dialogs)
    desk.mac.set("log", [])  # no other command may raise a dialog


def test_doctor_fails_if_the_permissions_are_unknown(desk: Desk) -> None:
    desk.mac.fail("osascript", "timed out (-1712)", when=["isDoubtful"])
    assert desk.run("doctor").error["code"] == "TIMEOUT"


def test_request_names_the_app_before_macos_asks(desk: Desk) -> None:
    desk.mac.deny("accessibility")
    notices: list[tuple[str, int]] = []
    desk.backend.request_permissions(lambda text: notices.append((text, len(desk.mac.events("dialog")))))
    notice = "macOS asks in the name of Terminal; a grant counts for every program that runs in Terminal"
    assert notices == [(notice, 0)]
    desk.mac.set("log", [])


@pytest.mark.parametrize("edges_differ", [True, False])
def test_verify_and_wait_for_still_ignore_changes_at_the_edges(desk: Desk, edges_differ: bool) -> None:
    desk.mac.switch(edges_differ=edges_differ)
    desk.mac.change_window(1090, {"focus": "search"})
    assert desk.data("press", 1090, "f5", "--verify")["changed"] is False
    typed = desk.data("type", 1090, "Ada", "--verify")
    assert (typed["changed"], typed["changed_rect"]["y"]) == (True, 300)
    assert desk.data("wait-for", "--window-id", 1090, "--still", "--timeout-s", 8)["window_id"] == 1090


# errors of osascript ---------------------------------------------------------------------------------------

FAILED = "execution error: Error: Error: "
NOT_ALLOWED = "execution error: osascript is not allowed"
SCRIPT_ERRORS = {
    f"{FAILED}Nicht berechtigt. (-1743)": "PERMISSION_DENIED_AUTOMATION",
    f"{FAILED}Nicht berechtigt. (-1744)": "PERMISSION_DENIED_AUTOMATION",
    "44:48: execution error: 허용되지 않습니다. (-25211)\n": "PERMISSION_DENIED_ACCESSIBILITY",
    f"{NOT_ALLOWED} to send keystrokes. (1002)": "PERMISSION_DENIED_ACCESSIBILITY",
    f"{NOT_ALLOWED} assistive access. (-1719)": "PERMISSION_DENIED_ACCESSIBILITY",
    f"{FAILED}Invalid index. (-1719)": "PROGRAM_FAILED",
    f"{FAILED}AppleEvent timed out. (-1712)": "TIMEOUT",
    f"{'a warning; ' * 60}{FAILED}timed out. (-1712)": "TIMEOUT",
    f"{FAILED}Connection is invalid. (-609)": "APP_NOT_FOUND",
    f"{FAILED}Application isn’t running. (-600)": "APP_NOT_FOUND",
    f"{FAILED}window “(-1743)” of (-600) (-2700)": "PROGRAM_FAILED",  # numbers in a user's words
    "/x/y.js:0:99: execution error: Error on line 3: (-1743) nope (-1712)\n": "TIMEOUT",  # the older form
    "<stdin>: syntax error": "PROGRAM_FAILED",
}


@pytest.mark.parametrize(("stderr", "code"), SCRIPT_ERRORS.items())
def test_script_error_code_is_the_number_at_the_end(desk: Desk, stderr: str, code: str) -> None:
    desk.mac.fail("osascript", stderr)
    refused = error_of(desk.backend.snapshot)
    assert (refused.code.value, bool(refused.hint)) == (code, True)


@pytest.mark.parametrize(
    ("exit_code", "code"), [(-11, "PROGRAM_FAILED"), (139, "PROGRAM_FAILED"), (0, "INTERNAL_SWIFT_ERROR")]
)
def test_script_without_an_answer_is_an_error(desk: Desk, exit_code: int, code: str) -> None:
    desk.mac.fail("osascript", exit=exit_code)  # a crash, a crash behind a shell, no JSON
    assert error_of(desk.backend.snapshot).code.value == code

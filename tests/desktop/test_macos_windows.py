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
from fakemac import MENU_BAR, SHADOW, FakeMac, image_size, pixel, window_colour
from fakemac.pictures import Picture, paint
from fakemac.png import png_bytes
from mac_desk import PANELS, PANES, Desk, add_app, change_app, check_permission_error, widget
from samples import error_of

from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.tools.status import doctor

FRONT_TO_BACK = [1080, 1090, 1012, 1030, 1004, 1020, 1070, 1050, 1041, 1040, 1031, 1001]
MINIMISED = [1005, 1061]

# screenshots: pixels and sizes -----------------------------------------------------------------------------

WINDOWS = {
    "covered, on the Retina display": (1012, (200, 60, 1000, 700), 2),
    "on the second display, with a negative origin": (1031, (-560, 100, 480, 500), 1),
    "covered, with a button at its corner": (1090, (820, 100, 480, 360), 2),
}


@pytest.mark.parametrize(("window_id", "bounds", "scale"), WINDOWS.values(), ids=WINDOWS.keys())
def test_screenshot_shows_only_the_window_at_its_scale(
    desk: Desk, tmp_path: Path, window_id: int, bounds: tuple[int, ...], scale: int
) -> None:
    path = tmp_path / "out" / "shot.png"
    data = desk.data("screenshot", window_id, "--path", path)
    width, height = bounds[2] * scale, bounds[3] * scale
    assert image_size(path) == (width, height)
    corners = [(x, y) for x in (0, width - 1) for y in (0, height - 1)]
    assert [pixel(path, *corner) for corner in corners] == [window_colour(window_id)] * 4
    assert data == {
        "window_id": window_id,
        "bounds": dict(zip(("x", "y", "width", "height"), bounds)),
        "image_width": width,
        "image_height": height,
        "scale": scale,
        "screenshot_id": data["screenshot_id"],
        "path": str(path),
    }
    assert desk.captures() == [["-x", "-a", "-o", "-l", str(window_id), "-t", "png"]]
    assert desk.images_left() == []


def test_list_apps_counts_the_windows_of_each_process(desk: Desk) -> None:
    add_app(desk.mac, "Form", 601)  # a second process, without a window
    apps = [app for app in desk.backend.snapshot().apps if app.name == "Form"]
    assert sorted(app.window_count for app in apps) == [0, 1]


def test_window_on_two_displays_has_the_scale_at_its_centre(desk: Desk) -> None:
    scales = []
    for x in (-300, -200):
        desk.mac.move_window(1031, x, 100)
        scales.append(desk.window(1031).scale)
    assert scales == [1, 2]


def test_image_captures_each_display_at_its_own_scale(desk: Desk, tmp_path: Path) -> None:
    data = desk.data("image", "--path", tmp_path / "out" / "all.png")
    main, second = tmp_path / "out" / "all_display0_main.png", tmp_path / "out" / "all_display1.png"
    labelled = [(str(main), "Display 1 / Main"), (str(second), "Display 2")]
    assert [(one["path"], one["item_label"]) for one in data["saved_files"]] == labelled
    assert (image_size(main), image_size(second)) == ((2880, 1800), (1920, 1080))
    assert [pixel(main, 10, 10), pixel(main, 420, 1200)] == [MENU_BAR, window_colour(1012)]
    assert pixel(second, 1920 - 1399, 180 + 401) == window_colour(1041)
    assert all("screenshot_id" not in one for one in data["saved_files"])


def test_image_as_jpg_is_a_jpeg_of_the_given_size(desk: Desk, tmp_path: Path) -> None:
    large, small = tmp_path / "second.jpg", tmp_path / "small.jpg"
    data = desk.data("image", "--screen-index", 1, "--path", large)
    desk.data("image", "--screen-index", 1, "--path", small, "--max-dimension", 480)
    assert [one["mime_type"] for one in data["saved_files"]] == ["image/jpeg"]
    assert [path.read_bytes()[:3] for path in (large, small)] == [b"\xff\xd8\xff"] * 2
    assert [image_size(path) for path in (large, small)] == [(1920, 1080), (480, 270)]
    assert desk.captures() == [["-x", "-R", "-1920,-180,1920,1080", "-t", "jpg"]] * 2
    (words,) = (call["argv"] for call in desk.mac.calls("sips"))
    assert words[:7] == ["-z", "270", "480", "-s", "format", "jpeg", "-s"]


# The main display; two of equal size, left of it and above it; a rotated display on the right.
FOUR_DISPLAYS: list[dict[str, Any]] = [
    {"id": 1, "name": "Built-in", "main": True, "bounds": [0, 0, 1440, 900], "scale": 2},
    {"id": 3, "name": "Left", "bounds": [-1920, -180, 1920, 1080], "scale": 1},
    {"id": 4, "name": "Above", "bounds": [0, -1080, 1920, 1080], "scale": 1},
    {"id": 5, "name": "Rotated", "bounds": [1920, -500, 1080, 1920], "scale": 1},
]


@pytest.mark.parametrize("order", ["as listed", "reversed"])
def test_image_shows_the_right_display_in_any_order(desk: Desk, tmp_path: Path, order: str) -> None:
    desk.mac.set("displays", FOUR_DISPLAYS)
    desk.mac.switch(display_order=order)
    above = desk.mac.open_window("Finder", title="above", bounds=[100, -900, 400, 300])
    right = desk.mac.open_window("Finder", title="right", bounds=[2000, 1000, 400, 300])
    places = [(70, 90, 1080), (-559, 101, 1031), (110, -700, above), (2010, 1200, right)]
    listed = desk.data("list", "screens")["screens"]
    assert [list(one["bounds"].values()) for one in listed] == [one["bounds"] for one in FOUR_DISPLAYS]
    for index, ((x, y, window), display) in enumerate(zip(places, FOUR_DISPLAYS)):
        path = tmp_path / f"{index}.png"
        (image,) = desk.data("image", "--screen-index", index, "--path", path)["saved_files"]
        (left, top, width, height), scale = display["bounds"], display["scale"]
        shown = next(one for one in image["windows"] if one["window_id"] == window)
        assert 0 <= (x - left) * scale - shown["x"] < shown["width"], display["name"]
        assert 0 <= (y - top) * scale - shown["y"] < shown["height"], display["name"]
        assert image_size(path) == (width * scale, height * scale)
        assert pixel(path, (x - left) * scale, (y - top) * scale) == window_colour(window), display["name"]
    # the -D numbers of the other displays are unknown
    assert [argv[1] for argv in desk.captures()] == ["-D", "-R", "-R", "-R"]


RECTANGLES: dict[str, Any] = {
    "Safari": ("200,60,1000,700", 2, [(2, 2, 1012), (2 * 640, 2 * 50, 1090), (2, 2 * 30, 1080)]),
    "TextEdit": ("-560,100,480,500", 1, [(2, 2, 1031)]),
}


@pytest.mark.parametrize("app", RECTANGLES)
def test_rectangle_capture_shows_the_screen(desk: Desk, app: str) -> None:
    bounds, scale, places = RECTANGLES[app]
    window = ["--windowIndex", "1"] if app == "TextEdit" else []
    data = desk.data("screenshot-app-window", "--appName", app, *window, "--no-preferWindowId")
    path = Path(data["path"])
    rect = dict(zip("xywh", map(int, bounds.split(","))))
    assert image_size(path) == (rect["w"] * scale, rect["h"] * scale)
    assert [pixel(path, x, y) for x, y, _ in places] == [window_colour(one) for _, _, one in places]
    described = {"appName": app, "rect": rect, "scale": scale, "format": "png"}
    assert data == {"path": str(path), "uri": path.as_uri(), **described}
    assert desk.captures() == [["-x", "-R", bounds, "-t", "png"]]


@pytest.mark.parametrize(
    ("app", "window_id", "size", "scale"), [("Form", 1090, (960, 720), 2), ("TextEdit", 1031, (480, 500), 1)]
)
def test_capture_with_a_shadow_is_larger_and_cannot_be_clicked(
    desk: Desk, app: str, window_id: int, size: tuple[int, int], scale: int
) -> None:
    chosen = ["--appName", app, "--windowIndex", str(int(app == "TextEdit"))]
    plain = desk.data("screenshot-app-window", *chosen)
    assert (image_size(Path(plain["path"])), plain["scale"]) == (size, scale)
    for record in (desk.mac.folder / "tmp").rglob("record_*"):
        record.unlink()
    shadowed = desk.data("screenshot-app-window", *chosen, "--includeShadow", "--format", "jpg")
    width, height = image_size(Path(shadowed["path"]))
    assert width > size[0] and height > size[1]
    assert (shadowed["scale"], shadowed["format"]) == (scale, "jpg")
    assert all(abs(one - two) < 24 for one, two in zip(pixel(Path(shadowed["path"]), 1, 1), SHADOW))
    number = str(window_id)
    expected = [["-x", "-a", "-o", "-l", number, "-t", "png"], ["-x", "-a", "-l", number, "-t", "jpg"]]
    assert desk.captures() == expected
    assert desk.run("click", window_id, 10, 10).code == 20
    assert desk.posted() == []


# failures of screencapture ---------------------------------------------------------------------------------

PICTURE = png_bytes(Picture(8, 8, paint(8, 8, (1, 2, 3), []), [], None))
RUBBISH = b"rubbish, and more than twenty-four bytes of it"
NO_IMAGE = "could not create image from window"
Arrange = Callable[[FakeMac], Any]


def as_it_is(mac: FakeMac) -> None:
    pass


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
    "the window is minimised": (as_it_is, 1005, 14, "CAPTURE_FAILED", 1),
    "the window is protected": (protect, 1090, 14, "CAPTURE_FAILED", 1),
    "the grant is stale": (stale, 1090, 14, "CAPTURE_FAILED", 4),
    "no window has the id": (as_it_is, 4242, 15, "WINDOW_NOT_FOUND", 0),
    "exit 0 and an empty file": (leave(0, b""), 1090, 14, "CAPTURE_FAILED", 4),
    "exit 1 and a picture": (leave(1, PICTURE), 1090, 14, "CAPTURE_FAILED", 4),
    "exit 0 and no picture": (leave(0, RUBBISH), 1090, 14, "CAPTURE_FAILED", 4),
}


@pytest.mark.parametrize(
    ("arrange", "window_id", "exit_code", "code", "tries"), NOT_CAPTURED.values(), ids=NOT_CAPTURED.keys()
)
def test_failed_screenshot_reports_the_reason(
    desk: Desk, arrange: Arrange, window_id: int, exit_code: int, code: str, tries: int
) -> None:
    arrange(desk.mac)
    assert desk.refusal("screenshot", window_id) == (exit_code, code)
    assert len(desk.captures()) == tries
    if arrange is stale:  # the failure names the grant
        message = desk.run("screenshot", window_id).error["message"]
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


def test_screenshot_of_another_shape_is_never_accepted(desk: Desk) -> None:
    desk.mac.fail("screencapture", exit=0, when=["-l"], file=PICTURE)
    assert desk.refusal("screenshot", 1090) == (14, "CAPTURE_FAILED")


def test_screenshots_of_several_windows_are_taken_one_at_a_time(desk: Desk) -> None:
    desk.mac.set("latency_ms", {"screencapture": [2100, 2100]})  # two at once are a strict event
    assert len(desk.data("image", "--app", "Safari", "--mode", "multi")["saved_files"]) == 2


def test_failed_screenshot_is_retried(desk: Desk) -> None:
    desk.mac.fail("screencapture", NO_IMAGE, times=2)
    assert desk.data("screenshot", 1090)["image_width"] == 960
    assert len(desk.captures()) == 3


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


def test_app_window_has_the_specified_error_codes(desk: Desk) -> None:
    assert desk.refusal("screenshot-app-window", "--appName", "Notes") == (15, "NoWindow")
    assert desk.refusal("screenshot-app-window") == (2, "INVALID_ARGUMENT")


@pytest.mark.parametrize("program", ["screencapture", "osascript", "both, slowly"])
def test_app_window_has_one_timeout_for_all_programs(desk: Desk, program: str) -> None:
    if program == "both, slowly":
        desk.mac.set("latency_ms", {"osascript": [2000, 2000], "screencapture": [2000, 2000]})
    else:
        desk.mac.hang(program)  # like behind an unanswered prompt
    finished = desk.run("screenshot-app-window", "--appName", "Form", "--timeoutMs", 3500)
    assert (finished.code, finished.error["code"]) == (22, "Timeout")
    assert ("any screen recorder" in finished.error["message"]) is (program != "osascript")
    assert len(desk.mac.calls(program if program == "screencapture" else "osascript")) == 1
    assert desk.mac.running() == []


# lists ----------------------------------------------------------------------------------------------------


def test_list_windows_is_front_to_back_with_owners(desk: Desk) -> None:
    windows = desk.windows()
    assert [one["window_id"] for one in windows] == [*FRONT_TO_BACK, *MINIMISED]
    assert [one["window_id"] for one in windows if one["is_focused"]] == [1080]
    assert [one["window_id"] for one in windows if one["is_minimised"]] == MINIMISED
    assert next(one for one in windows if one["window_id"] == 1031) == {
        "window_id": 1031,
        "owner_name": "TextEdit",
        "pid": 430,
        "title": "Letter",
        "bounds": {"x": -560, "y": 100, "width": 480, "height": 500},
        "is_on_screen": True,
        "is_focused": False,
        "is_minimised": False,
        "kind": "window",
        "parent_id": None,
        "is_modal": False,
    }
    everything = desk.windows("--all")
    on_screen = [one["window_id"] for one in everything[:16]]
    assert on_screen == [12, 14, 1071, *FRONT_TO_BACK[:6], 1021, *FRONT_TO_BACK[6:]]
    assert sorted(one["window_id"] for one in everything[16:]) == [1005, 1060, 1061, 1081]
    assert [one["is_on_screen"] for one in everything] == [True] * 16 + [False] * 4


BRIDGES: dict[str, dict[str, Any]] = {
    "a deep unwrap of nothing": {"deep_unwrap_window_list": "undefined", "bare_ref": "throws"},
    "a deep unwrap that throws": {"deep_unwrap_window_list": "throws", "bare_ref": "throws"},
    "integers are numbers, nil is null": {"bridged_integers": "numbers", "nil_is_null": True},
}


@pytest.mark.parametrize("switches", BRIDGES.values(), ids=BRIDGES.keys())
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
PANEL = {"bounds": [300, 300, 300, 200], "layer": 8, "modal": True}
TOOLS = {"title": "tools", "bounds": [700, 300, 100, 100], "layer": 3}  # not a dialog
GROUP = widget("panel", "group", 80, 50, 300, 200)  # at the position of the window BESIDE
BESIDE = {"title": "Beside", "bounds": [900, 150, 300, 200]}
TWIN = {"title": "Form", "bounds": [820, 100, 480, 360], "modal": True}
# windows that open, the app in front, and id, kind, parent and modality of popups and dialogs
MARKED: dict[str, tuple[list[tuple[str, dict[str, Any]]], str, list[Any]]] = {
    "menus": (MENUS, "Terminal", [(2003, "popup", 1080, False), (2000, "popup", 1080, False)]),
    "a sheet": ([], "Calendar", [(1041, "dialog", 1040, True)]),
    "a modal panel": ([("Terminal", PANEL), ("Terminal", TOOLS)], "", [(2000, "dialog", None, True)]),
    "a group within a window": ([("Form", BESIDE)], "Form", []),
    "two windows that look the same": ([("Form", TWIN)], "Form", []),
    "a sheet without Accessibility": ([], "Calendar", []),
}


@pytest.mark.parametrize("name", MARKED)
def test_list_windows_marks_menus_sheets_and_dialogs(desk: Desk, name: str) -> None:
    opened, front, expected = MARKED[name]
    desk.mac.change_window(1090, {"widgets": [GROUP]})
    if front != "Terminal":  # activating Terminal again would close its menus
        desk.mac.activate(front or "Terminal")
    for app, window in opened:
        desk.mac.open_window(app, **window)
    if "without" in name:
        desk.mac.deny("accessibility")
    listed = desk.windows()
    names = ("window_id", "kind", "parent_id", "is_modal")
    marked = [tuple(one[key] for key in names) for one in listed if one["kind"] != "window"]
    assert marked == expected
    ids = [one["window_id"] for one in listed]
    assert all(ids.index(parent) < ids.index(one) for one, kind, parent, _ in expected if kind == "popup")
    if "without" in name:
        assert ids == FRONT_TO_BACK[-4:-2] + FRONT_TO_BACK[:-4] + FRONT_TO_BACK[-2:]  # none minimised
    if name == "a modal panel":
        assert [one["window_id"] for one in listed if one["is_focused"]] == [2000]
        assert 2001 not in ids


NAME = widget("name", "field", 40, 60, 300, 30, value="")
SAVE = widget("save", "button", 300, 240, 100, 40, text="Save", on_click={"close_window": "this"})
SAVE_PANEL = {"title": "Save", "bounds": [760, 460, 440, 300], "focus": "name", "widgets": [NAME, SAVE]}
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
    panel = desk.mac.open_window(600, **SAVE_PANEL)
    assert listed() == [("TextEdit", 430, "dialog", None, True, True)]


def test_list_windows_finds_a_minimised_window_with_a_twin(desk: Desk) -> None:
    bounds = desk.mac.window(1090)["bounds"]
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
    desk.windows()
    assert desk.mac.events("asked_in_vain") == []


@pytest.mark.parametrize("nil_is_null", [False, True])
@pytest.mark.parametrize("pid", [None, 460])  # Notes has no window on screen
def test_list_windows_without_a_frontmost_window_has_no_focused_window(
    desk: Desk, nil_is_null: bool, pid: Optional[int]
) -> None:
    desk.mac.switch(nil_is_null=nil_is_null)
    desk.mac.set("frontmost_pid", pid)
    windows = desk.windows("--all")
    assert (len(windows), [one for one in windows if one["is_focused"]]) == (20, [])
    assert len(desk.windows()) == len(FRONT_TO_BACK) + len(MINIMISED)


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


HOSTILE = {
    "shell syntax": "$(touch x) `touch x`; \"'\\",
    "control characters": "a\x1b]0;x\x07\u202eb\nc\u2028d",
    "very long": "x" * 10_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_names_are_listed_as_one_short_line_and_not_executed(desk: Desk, text: str) -> None:
    desk.mac.change_window(1090, {"title": text})
    change_app(desk.mac, "Form", name=text)
    (listed,) = (one for one in desk.windows() if one["window_id"] == 1090)
    (app,) = (one for one in desk.data("list", "apps")["applications"] if one["pid"] == 500)
    for shown in (listed["title"], listed["owner_name"], app["app_name"]):
        assert shown.isprintable() and len(shown) <= 200 and shown[:1] == text[:1]
        assert shown == text or "touch" not in text
    assert desk.run("press", 1090, "tab").code == 0
    assert not [*desk.mac.folder.rglob("x")]


def test_list_apps_counts_listed_windows_and_skips_ended_apps(desk: Desk) -> None:
    add_app(desk.mac, "Gone", 779, terminated=True)
    add_app(desk.mac, "", 777)
    add_app(desk.mac, "Unsigned", 778)
    names = ("app_name", "bundle_id", "pid", "is_active", "window_count")
    expected = [
        ("1Password", "com.1password.1password", 470, False, 1),
        ("Calculator", "com.apple.calculator", 450, False, 1),
        ("Calendar", "com.apple.iCal", 440, False, 2),
        ("Finder", "com.apple.finder", 301, False, 1),
        ("Form", "com.example.form", 500, False, 1),
        ("Google Chrome", "com.google.Chrome", 420, False, 1),
        ("Notes", "com.apple.Notes", 460, False, 0),
        ("Safari", "com.apple.Safari", 410, False, 2),
        ("System Settings", "com.apple.systempreferences", 490, False, 0),
        ("Terminal", "com.apple.Terminal", 480, True, 1),
        ("TextEdit", "com.apple.TextEdit", 430, False, 2),
        ("Unsigned", None, 778, False, 0),
    ]
    for nil_is_null in (False, True):
        desk.mac.switch(nil_is_null=nil_is_null)
        apps = desk.data("list", "apps")["applications"]
        assert [tuple(map(one.get, names)) for one in apps] == expected


def test_list_screens_begins_with_the_main_display(desk: Desk) -> None:
    names, numbers = ("screen_index", "name", "is_main", "scale"), ("x", "y", "width", "height")
    first = dict(zip(names, (0, "Built-in Retina Display", True, 2.0)))
    second = dict(zip(names, (1, "LG UltraFine", False, 1.0)))
    screens = [
        {**first, "bounds": dict(zip(numbers, (0, 0, 1440, 900)))},
        {**second, "bounds": dict(zip(numbers, (-1920, -180, 1920, 1080)))},
    ]
    desk.mac.close_window(1030)
    desk.mac.activate("TextEdit")
    assert desk.focused_id() == 1031  # NSScreen.mainScreen is now the second display
    assert desk.data("list", "screens") == {"screens": screens}
    desk.mac.set("displays.1.active", False)
    assert desk.data("list", "screens") == {"screens": screens[:1]}


# permissions: denied, or not yet requested ------------------------------------------------------------------

CAPTURES = {
    "a window": ["screenshot", "1090"],
    "all screens": ["image"],
    "all windows of an app": ["image", "--app", "Safari", "--mode", "multi"],
}


@pytest.mark.parametrize("words", CAPTURES.values(), ids=CAPTURES.keys())
def test_screen_recording_is_checked_before_any_capture(desk: Desk, words: list[str]) -> None:
    desk.mac.deny("screen_recording")  # a capture would exit 0 with the wallpaper
    finished = desk.run(*words)
    assert (finished.code, finished.error["code"]) == (11, "PERMISSION_DENIED_SCREEN_RECORDING")
    check_permission_error(finished, 11)
    assert (desk.captures(), desk.images_left()) == ([], [])
    desk.mac.grant("screen_recording")
    desk.mac.set("session.on_console", False)  # another user's session is in front
    error = desk.run(*words).error
    assert (error["code"], "another user is active" in error["message"]) == ("SCREEN_LOCKED", True)


def test_screen_recording_is_needed_for_verify_and_displays(desk: Desk, tmp_path: Path) -> None:
    desk.mac.deny("screen_recording")
    assert desk.run("press", 1090, "tab", "--verify").code == 11
    assert desk.posted() == []
    display = desk.backend.snapshot().displays[0]
    refused = error_of(desk.backend.capture_display, display, tmp_path / "shot.png", "png")
    assert refused.code.value == "PERMISSION_DENIED_SCREEN_RECORDING"
    assert (desk.captures(), desk.images_left()) == ([], [])


@pytest.mark.parametrize("answer", ["denied", "not_asked"])
def test_missing_permission_on_a_newer_mac_is_reported(desk: Desk, answer: str) -> None:
    desk.mac.era("error")
    desk.mac.set("permissions.screen_recording", answer)
    assert desk.refusal("screenshot", 1090) == (11, "PERMISSION_DENIED_SCREEN_RECORDING")


@pytest.mark.parametrize(
    ("denied", "exit_code"),
    [
        ([], 0),
        (["screen_recording"], 11),
        (["accessibility"], 12),
        (["accessibility", "screen_recording"], 11),
    ],
)
def test_permissions_exit_code_is_the_first_missing_grant(
    desk: Desk, denied: Sequence[str], exit_code: int
) -> None:
    for kind in denied:
        desk.mac.deny(kind)
    grants = {kind: kind not in denied for kind in ("screen_recording", "accessibility")}
    finished = desk.run("permissions")
    assert finished.code == exit_code
    assert desk.data("list", "server_status")["permissions"] == grants
    if not denied:
        assert finished.data == {"permissions": grants}
        desk.mac.set("permissions.screen_recording", "stale")
        shown = desk.program.run("permissions").out
        assert "Screen Recording: unknown: granted, but" in shown and "quit and reopen Terminal" in shown
        # the windows of one other app are no evidence of a stale grant
        for shown_pids in ((480, 500), (480,)):
            for window in desk.mac.state()["windows"]:
                desk.mac.change_window(window["id"], {"minimised": window["pid"] not in shown_pids})
            assert "Screen Recording: granted" in desk.program.run("permissions").out
        return
    check_permission_error(finished, exit_code)
    for number, kind in ((11, "screen_recording"), (12, "accessibility")):
        assert (f"{PANES[number][0]}: NOT granted" in finished.error["details"]) is (kind in denied)


def test_owners_of_missing_permissions_are_looked_up_in_parallel(desk: Desk) -> None:
    # in sequence, they would exceed the two seconds of server_status
    for kind in ("accessibility", "screen_recording"):
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
    granted = desk.data("permissions")["permissions"]
    assert granted == {"screen_recording": True, "accessibility": True}
    assert "Automation: macOS asks at first use (Keynote)" in desk.program.run("permissions").out


@pytest.mark.parametrize("bundle_id", ["com.apple.Keynote", "com.apple.iWork.Keynote"])
@pytest.mark.parametrize(
    ("answer", "code", "found"),
    [("grant", 0, "granted"), ("deny", 13, "NOT granted"), ("ask", 0, "macOS asks at first use")],
)
def test_keynote_permission_is_checked_without_a_dialog(
    desk: Desk, answer: str, code: int, found: str, bundle_id: str
) -> None:
    desk.mac.keynote(installed=[bundle_id])
    desk.data("keynote", "open")  # the check needs a running app
    getattr(desk.mac, answer)("automation", bundle_id)
    finished = desk.run("permissions")
    assert finished.code == code, finished.out
    shown = desk.program.run("permissions")
    assert f"Automation: {found} (Keynote)" in shown.out + shown.err
    if code:
        assert finished.error["code"] == "PERMISSION_DENIED_AUTOMATION"
        assert "Privacy_Automation" in finished.error["message"]
    assert desk.mac.events("dialog") == []


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
        desk.mac.uninstall("ps")
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
    for kind in ("screen_recording", "accessibility"):
        desk.mac.deny(kind)
    assert (desk.run("doctor").code, desk.mac.events("dialog")) == (11, [])
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: is_person))
    error = error_of(doctor, request=True)
    assert (error.code.exit_code, len(desk.mac.events("dialog"))) == (11 if is_person else 2, dialogs)
    desk.mac.set("log", [])  # no other command may raise a dialog


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
SCRIPT_ERRORS = {
    "automation refused, in German": (f"{FAILED}Nicht berechtigt. (-1743)", "PERMISSION_DENIED_AUTOMATION"),
    "consent not given": (f"{FAILED}Nicht berechtigt. (-1744)", "PERMISSION_DENIED_AUTOMATION"),
    "accessibility refused, in Korean": (
        "44:48: execution error: 허용되지 않습니다. (-25211)\n",
        "PERMISSION_DENIED_ACCESSIBILITY",
    ),
    "keystrokes refused": (
        "execution error: osascript is not allowed to send keystrokes. (1002)",
        "PERMISSION_DENIED_ACCESSIBILITY",
    ),
    "an older refusal": (
        "execution error: osascript is not allowed assistive access. (-1719)",
        "PERMISSION_DENIED_ACCESSIBILITY",
    ),
    "an index that is not there": (f"{FAILED}Invalid index. (-1719)", "PROGRAM_FAILED"),
    "no answer in time": (f"{FAILED}AppleEvent timed out. (-1712)", "TIMEOUT"),
    "a long story before it": (f"{'a warning; ' * 60}{FAILED}timed out. (-1712)", "TIMEOUT"),
    "an application that quits": (f"{FAILED}Connection is invalid. (-609)", "APP_NOT_FOUND"),
    "not running": (f"{FAILED}Application isn’t running. (-600)", "APP_NOT_FOUND"),
    "a number in a user's words": (f"{FAILED}window “(-1743)” of (-600) (-2700)", "PROGRAM_FAILED"),
    "the older form": ("/x/y.js:0:99: execution error: Error on line 3: (-1743) nope (-1712)\n", "TIMEOUT"),
    "no number at all": ("<stdin>: syntax error", "PROGRAM_FAILED"),
    "a crash": ("", "PROGRAM_FAILED"),
    "a crash behind a shell": ("", "PROGRAM_FAILED"),
    "no JSON": ("", "INTERNAL_SWIFT_ERROR"),
}


@pytest.mark.parametrize("name", SCRIPT_ERRORS)
def test_script_error_code_is_the_number_at_the_end(desk: Desk, name: str) -> None:
    stderr, code = SCRIPT_ERRORS[name]
    exits = {"a crash": -11, "a crash behind a shell": 139, "no JSON": 0}
    desk.mac.fail("osascript", stderr, exit=exits.get(name, 1))
    refused = error_of(desk.backend.snapshot)
    assert (refused.code.value, bool(refused.hint)) == (code, True)

"""The shipped macOS command lines on the fake Mac: whose pixel, which point, what is refused, what is run."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Callable, Optional

import pytest
from fakemac import MENU_BAR, SHADOW, FakeMac, image_size, labels, pixel, widget_colour, window_colour
from fakemac.pictures import Picture, paint
from fakemac.png import png_bytes
from fakemac.pointer_and_keys import DIGITS, LETTERS, NAMED, SIGNS
from in_process import InProcessProgram
from worlds import PATIENCE_S, ROOT, Finished, Program, need, need_swift, wait_for

from peekaboo_min.core.models import Act
from peekaboo_min.desktop.keys import read_chord
from peekaboo_min.desktop.macos.input import steps_of

COMMAND, SHIFT, OPTION, CONTROL = 0x100000, 0x20000, 0x80000, 0x40000
PANES = {11: ("Screen Recording", "Privacy_ScreenCapture"), 12: ("Accessibility", "Privacy_Accessibility")}
# A command line whose waiting for the compiler is short; everything else of it is what is shipped.
IMPATIENT = (
    "from peekaboo_min.desktop.macos import swift_helper; from peekaboo_min.frontends import cli; "
    "swift_helper._COMPILE_S = 2; raise SystemExit(cli.main())"
)


# One method of the backend: a number is the window of that id, a pair a point; the answer as JSON.
BACKEND = """
import json, sys
from pathlib import Path
from peekaboo_min.core.errors import PeekabooError
from peekaboo_min.core.models import Act, Point, as_plain
from peekaboo_min.desktop.keys import read_chord
from peekaboo_min.desktop.macos.backend import MacDesktop
FIELDS = {"click": ("button", "clicks"), "scroll": ("direction", "amount"), "drag": ("button",),
          "move_pointer": (), "press": ("chord", "hold_ms", "repeat")}
desktop, (name, *rest) = MacDesktop(), json.loads(sys.argv[1])
try:
    if name in ("find_handler", "open"):
        answer = handler = desktop.find_handler(*rest)
        if name == "open":
            answer = desktop.open(*rest, handler)
    elif name == "capture_display":
        answer = desktop.capture_display(desktop.snapshot().displays[0], Path(*rest), "png")
    elif name in ("read_text", "read_characters"):
        answer = getattr(desktop, name)(Path(*rest))
    else:
        window = next(one for one in desktop.snapshot().windows if one.window_id == rest[0])
        if name in FIELDS:
            points = tuple(Point(*one) for one in rest[1:] if isinstance(one, list))
            fields = dict(zip(FIELDS[name], (one for one in rest[1:] if not isinstance(one, list))))
            if "chord" in fields:
                fields["chord"] = read_chord(fields["chord"], [])
            answer = desktop.act(window, Act(name, points, **fields), Path("/nowhere"))
        else:
            answer = getattr(desktop, name)(window, *rest[1:])
    shown = as_plain(answer)
except PeekabooError as e:
    shown = {"code": e.code.value, "message": e.message, "hint": e.hint}
print(json.dumps(shown))
"""


class Desk:
    """A fake Mac, and our command line on it."""

    def __init__(self, folder: Path, words: Sequence[str] = ()) -> None:
        self.mac = FakeMac(folder)
        environment = {**self.mac.env(), "PYTHONPATH": str(ROOT)}
        self.program = Program(words, environment) if words else InProcessProgram(environment)

    def run(self, *words: Any, **variables: str) -> Finished:
        return self.program.run(*words, "--json", **variables)

    def data(self, *words: Any, **variables: str) -> dict[str, Any]:
        return self.run(*words, **variables).data

    def refusal(self, *words: Any, **variables: str) -> tuple[int, str]:
        """Exit code and error code of a command that fails; it left no picture behind."""
        finished = self.run(*words, **variables)
        assert finished.error["message"], finished.out
        assert self.pictures_left() == []
        return finished.code, finished.error["code"]

    def backend(self, *words: Any) -> Any:
        """The answer of one method of the backend, or its error's code, message and hint."""
        command = [sys.executable, "-W", "error", "-c", BACKEND, json.dumps(words)]
        finished = Program(command, self.program.environment).run()
        assert (finished.code, finished.err) == (0, "")
        return json.loads(finished.out)

    def pictures_left(self) -> list[str]:
        return [path.name for path in (self.mac.folder / "tmp").rglob("*") if path.suffix in (".png", ".jpg")]

    def programs_of(self, *words: Any, **variables: str) -> list[str]:
        """The programs that a command, which succeeds, started."""
        before = len(self.mac.calls())
        self.data(*words, **variables)
        return [call["program"] for call in self.mac.calls()[before:]]

    def captures(self) -> list[list[str]]:
        """The words of every screencapture, but for the path of its file."""
        return [call["argv"][:-1] for call in self.mac.calls("screencapture")]

    def clicks(self) -> list[tuple[Any, ...]]:
        """Window, widget, button, count and point of every click that arrived."""
        return [
            tuple(one[key] for key in ("window", "widget", "button", "count", "x", "y"))
            for one in self.mac.events("click")
        ]

    def posted(self) -> list[dict[str, Any]]:
        """Every mouse and keyboard event that was posted, whatever it did."""
        return [one for one in self.mac.raw_events() if "type" in one]

    def focused_id(self) -> Optional[int]:
        window = self.mac.front_window()
        return window["id"] if window else None


def nothing_sloppy(mac: FakeMac) -> None:
    assert mac.events("strict") == []
    assert mac.events("dialog", "sound") == []
    assert mac.running() == []


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    need("node")
    one = Desk(tmp_path)
    yield one
    nothing_sloppy(one.mac)


# screenshots: whose pixel it is, and how large it is ------------------------------------------------------

WINDOWS = {
    "covered, on the Retina display": (1012, (200, 60, 1000, 700), 2),
    "on the second display, with a negative origin": (1031, (-560, 100, 480, 500), 1),
    "covered, with a button at its corner": (1090, (820, 100, 480, 360), 2),
}


@pytest.mark.parametrize(("window_id", "bounds", "scale"), WINDOWS.values(), ids=WINDOWS.keys())
def test_a_window_screenshot_shows_that_window_alone_at_its_displays_scale(
    desk: Desk, tmp_path: Path, window_id: int, bounds: tuple[int, ...], scale: int
) -> None:
    path = tmp_path / "out" / "shot.png"
    data = desk.data("screenshot", window_id, "--path", path)
    x, y, width, height = bounds
    assert image_size(path) == (width * scale, height * scale)
    corners = [
        (0, 0),
        (width * scale - 1, 0),
        (0, height * scale - 1),
        (width * scale - 1, height * scale - 1),
    ]
    assert [pixel(path, *place) for place in corners] == [window_colour(window_id)] * 4
    assert data == {
        "window_id": window_id,
        "bounds": {"x": x, "y": y, "width": width, "height": height},
        "image_width": width * scale,
        "image_height": height * scale,
        "scale": scale,
        "screenshot_id": data["screenshot_id"],
        "path": str(path),
    }
    assert desk.captures() == [["-x", "-o", "-l", str(window_id), "-t", "png"]]
    assert desk.pictures_left() == []


def test_each_display_is_captured_at_its_own_scale(desk: Desk, tmp_path: Path) -> None:
    data = desk.data("image", "--path", tmp_path / "out" / "all.png")
    main, second = tmp_path / "out" / "all_display0_main.png", tmp_path / "out" / "all_display1.png"
    assert [(one["path"], one["item_label"]) for one in data["saved_files"]] == [
        (str(main), "Display 1 / Main"),
        (str(second), "Display 2"),
    ]
    assert (image_size(main), image_size(second)) == ((2880, 1800), (1920, 1080))
    assert [pixel(main, 2 * x, 2 * y) for x, y in ((5, 5), (70, 90), (1100, 120), (210, 600))] == [
        MENU_BAR,
        window_colour(1080),
        window_colour(1090),
        window_colour(1012),
    ]
    assert [pixel(second, x + 1920, y + 180) for x, y in ((-559, 101), (-1690, -50), (-1399, 401))] == [
        window_colour(1031),
        window_colour(1040),
        window_colour(1041),
    ]
    assert sorted(desk.captures()) == [
        ["-x", "-D", "1", "-t", "png"],
        ["-x", "-R", "-1920,-180,1920,1080", "-t", "png"],
    ]
    assert all("screenshot_id" not in one for one in data["saved_files"])


def test_one_display_is_chosen_by_its_index_and_jpg_is_jpg(desk: Desk, tmp_path: Path) -> None:
    data = desk.data("image", "--screen-index", 1, "--path", tmp_path / "second.jpg")
    assert [(one["image_width"], one["image_height"], one["mime_type"]) for one in data["saved_files"]] == [
        (1920, 1080, "image/jpeg")
    ]
    assert (tmp_path / "second.jpg").read_bytes()[:3] == b"\xff\xd8\xff"
    assert desk.captures() == [["-x", "-R", "-1920,-180,1920,1080", "-t", "jpg"]]
    desk.data("image", "--screen-index", 1, "--path", tmp_path / "small.jpg", "--max-dimension", 480)
    assert ((tmp_path / "small.jpg").read_bytes()[:3], image_size(tmp_path / "small.jpg")) == (
        b"\xff\xd8\xff",
        (480, 270),
    )
    assert [call["argv"][:7] for call in desk.mac.calls("sips")] == [
        ["-z", "270", "480", "-s", "format", "jpeg", "-s"]
    ]


# The main display; one left of it and one above it of the same size; one on the right that is rotated.
FOUR_DISPLAYS = [
    {"id": 1, "name": "Built-in", "main": True, "bounds": [0, 0, 1440, 900], "scale": 2},
    {"id": 3, "name": "Left", "bounds": [-1920, -180, 1920, 1080], "scale": 1},
    {"id": 4, "name": "Above", "bounds": [0, -1080, 1920, 1080], "scale": 1},
    {"id": 5, "name": "Rotated", "bounds": [1920, -500, 1080, 1920], "scale": 1},
]


@pytest.mark.parametrize("order", ["as listed", "reversed"])
def test_of_four_displays_each_is_captured_whichever_number_it_has(
    desk: Desk, tmp_path: Path, order: str
) -> None:
    desk.mac.set("displays", FOUR_DISPLAYS)
    desk.mac.switch(display_order=order)
    above = desk.mac.open_window("Finder", title="above", bounds=[100, -900, 400, 300])
    right = desk.mac.open_window("Finder", title="right", bounds=[2000, 1000, 400, 300])
    places = [(70, 90, 1080), (-559, 101, 1031), (110, -700, above), (2010, 1200, right)]
    listed = desk.data("list", "screens")["screens"]
    assert [list(one["bounds"].values()) for one in listed] == [one["bounds"] for one in FOUR_DISPLAYS]
    for index, ((x, y, window), display) in enumerate(zip(places, FOUR_DISPLAYS)):
        path = tmp_path / f"{index}.png"
        desk.data("image", "--screen-index", index, "--path", path)
        (left, top, width, height), scale = display["bounds"], display["scale"]
        assert image_size(path) == (width * scale, height * scale)
        assert pixel(path, (x - left) * scale, (y - top) * scale) == window_colour(window), display["name"]
    # of the others nobody knows the numbers
    assert [argv[1] for argv in desk.captures()] == ["-D", "-R", "-R", "-R"]


@pytest.mark.parametrize(
    ("app", "bounds", "scale", "size", "places"),
    [
        (
            "Safari",
            "200,60,1000,700",
            2,
            (2000, 1400),
            {(2, 2): 1012, (2 * 640, 2 * 50): 1090, (2, 2 * 30): 1080},
        ),
        ("TextEdit", "-560,100,480,500", 1, (480, 500), {(2, 2): 1031}),
    ],
)
def test_a_rectangle_is_in_points_and_shows_what_the_screen_shows(
    desk: Desk, app: str, bounds: str, scale: int, size: tuple[int, int], places: dict[tuple[int, int], int]
) -> None:
    window = ["--windowIndex", "1"] if app == "TextEdit" else []
    data = desk.data("screenshot-app-window", "--appName", app, *window, "--no-preferWindowId")
    path = Path(data["path"])
    assert image_size(path) == size
    assert [pixel(path, *place) for place in places] == [
        window_colour(window_id) for window_id in places.values()
    ]
    x, y, width, height = map(int, bounds.split(","))
    assert data == {
        "path": str(path),
        "uri": path.as_uri(),
        "appName": app,
        "rect": {"x": x, "y": y, "w": width, "h": height},
        "scale": scale,
        "format": "png",
    }
    assert desk.captures() == [["-x", "-R", bounds, "-t", "png"]]


@pytest.mark.parametrize(
    ("app", "index", "size", "scale"), [("Form", 0, (960, 720), 2), ("TextEdit", 1, (480, 500), 1)]
)
def test_a_shadow_makes_the_picture_larger_and_it_cannot_be_clicked(
    desk: Desk, app: str, index: int, size: tuple[int, int], scale: int
) -> None:
    chosen = ["--appName", app, "--windowIndex", str(index)]
    plain = desk.data("screenshot-app-window", *chosen)
    assert (image_size(Path(plain["path"])), plain["scale"]) == (size, scale)
    desk.mac.update(lambda state: [path.unlink() for path in (desk.mac.folder / "tmp").rglob("record_*")])
    shadowed = desk.data("screenshot-app-window", *chosen, "--includeShadow", "--format", "jpg")
    width, height = image_size(Path(shadowed["path"]))
    assert (width > size[0], height > size[1], shadowed["scale"], shadowed["format"]) == (
        True,
        True,
        scale,
        "jpg",
    )
    assert all(abs(one - two) < 24 for one, two in zip(pixel(Path(shadowed["path"]), 1, 1), SHADOW))
    window_id = {"Form": 1090, "TextEdit": 1031}[app]
    assert desk.captures() == [
        ["-x", "-o", "-l", str(window_id), "-t", "png"],
        ["-x", "-l", str(window_id), "-t", "jpg"],
    ]
    assert desk.run("click", window_id, 10, 10).code == 20
    assert desk.posted() == []


# lists ----------------------------------------------------------------------------------------------------

FRONT_TO_BACK = [1080, 1090, 1012, 1030, 1004, 1020, 1070, 1050, 1041, 1040, 1031, 1001]
MINIMISED = [1005, 1061]


def test_windows_are_listed_front_to_back_with_who_owns_them(desk: Desk) -> None:
    windows = desk.data("windows")["windows"]
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
    everything = desk.data("windows", "--all")["windows"]
    on_screen = [one["window_id"] for one in everything if one["is_on_screen"]]
    off_screen = sorted(one["window_id"] for one in everything if not one["is_on_screen"])
    assert on_screen == [12, 14, 1071, *FRONT_TO_BACK[:6], 1021, *FRONT_TO_BACK[6:]]
    assert off_screen == [1005, 1060, 1061, 1081]
    assert [everything.index(one) for one in everything if not one["is_on_screen"]] == [16, 17, 18, 19]


@pytest.mark.parametrize("how", ["undefined", "throws"])
def test_the_window_list_is_read_where_the_bridge_unwraps_no_array(desk: Desk, how: str) -> None:
    desk.mac.switch(deep_unwrap_window_list=how, bare_ref="throws")
    assert [one["window_id"] for one in desk.data("windows")["windows"]] == [*FRONT_TO_BACK, *MINIMISED]


def test_everything_works_where_integers_are_numbers_and_nil_is_null(desk: Desk) -> None:
    as_strings = [desk.data("list", "apps"), desk.data("list", "screens"), desk.data("windows")]
    desk.mac.switch(bridged_integers="numbers", nil_is_null=True, deep_unwrap_window_list="undefined")
    assert [desk.data("list", "apps"), desk.data("list", "screens"), desk.data("windows")] == as_strings
    desk.data("screenshot", 1031)
    desk.data("click", 1031, 100, 60)
    desk.data("type", 1031, "Grüße")
    desk.data("press", 1031, "cmd+a")
    assert (desk.focused_id(), desk.mac.widget(1031, "text")["value"]) == (1031, "Grüße")
    desk.mac.update(
        lambda state: next(one for one in state["apps"] if one["pid"] == 430).update(bundle_id="")
    )
    assert desk.data("windows", "--app", "TextEdit")["windows"] != []


def test_menus_and_sheets_are_listed_after_what_they_belong_to(desk: Desk) -> None:
    menu = desk.mac.open_window("Terminal", bounds=[100, 120, 30, 20], layer=101)
    desk.mac.open_window("Dock", bounds=[100, 820, 90, 60], layer=101)  # of no ordinary application
    desk.mac.open_window("Terminal", bounds=[100, 120, 60, 20], layer=101, alpha=0)  # it has faded out
    submenu = desk.mac.open_window("Terminal", bounds=[130, 120, 30, 20], layer=101)
    marked = [one for one in desk.data("windows")["windows"] if one["kind"] != "window"]
    assert [(one["window_id"], one["kind"], one["parent_id"], one["is_modal"]) for one in marked] == [
        (submenu, "popup", 1080, False),
        (menu, "popup", 1080, False),
    ]
    windows = desk.data("windows")["windows"]
    assert [one["window_id"] for one in windows[:3]] == [1080, submenu, menu]
    desk.mac.activate("Calendar")  # asked for its dialogs now that it is in front
    marked = [one for one in desk.data("windows")["windows"] if one["kind"] != "window"]
    assert [(one["window_id"], one["kind"], one["parent_id"], one["is_modal"]) for one in marked] == [
        (1041, "dialog", 1040, True)
    ]


def test_a_modal_panel_of_another_layer_is_listed_blocks_and_is_typed_into(desk: Desk) -> None:
    field = {"name": "name", "kind": "field", "rect": [20, 20, 200, 24], "value": ""}
    panel = desk.mac.open_window(
        "Terminal", bounds=[300, 300, 300, 200], layer=8, modal=True, focus="name", widgets=[field]
    )
    desk.mac.open_window("Terminal", title="tools", bounds=[700, 300, 100, 100], layer=3)  # no dialog
    listed = desk.data("windows", "--app", "Terminal")["windows"]
    assert [(one["window_id"], one["kind"], one["is_modal"], one["is_focused"]) for one in listed] == [
        (panel, "dialog", True, True),
        (1080, "window", False, False),
    ]
    assert desk.run("press", 1080, "tab").error["code"] == "WINDOW_BLOCKED"
    desk.data("type", panel, "Ada")
    assert desk.mac.widget(panel, "name")["value"] == "Ada"


def test_only_a_sheet_among_the_children_of_a_window_is_one(desk: Desk) -> None:
    desk.mac.open_window("Form", title="Beside", bounds=[900, 150, 300, 200])
    panel = widget("panel", "group", 80, 50, 300, 200)  # in the Form's window, right where the other one is
    desk.mac.change_window(1090, {"widgets": [panel]})
    desk.mac.activate("Form")
    assert {one["kind"] for one in desk.data("windows")["windows"]} == {"window"}


def test_of_two_windows_that_nothing_tells_apart_none_is_called_a_dialog(desk: Desk) -> None:
    desk.mac.open_window("Form", title="Form", bounds=[820, 100, 480, 360], modal=True)
    desk.mac.activate("Form")
    assert {one["kind"] for one in desk.data("windows")["windows"]} == {"window"}


def test_a_minimised_window_is_known_beside_one_that_looks_like_it(desk: Desk) -> None:
    bounds = desk.mac.window(1090)["bounds"]
    twin = desk.mac.open_window("Form", title="Form", bounds=bounds, minimised=True)
    minimised = [one["window_id"] for one in desk.data("windows")["windows"] if one["is_minimised"]]
    assert sorted(minimised) == sorted([*MINIMISED, twin])


def test_without_accessibility_dialogs_are_not_known_and_everything_else_is_listed(desk: Desk) -> None:
    desk.mac.activate("Calendar")
    desk.mac.deny("accessibility")
    windows = desk.data("windows")["windows"]
    assert {one["kind"] for one in windows} == {"window"}
    assert len(windows) == len(FRONT_TO_BACK)  # nor is it known what is minimised


def test_applications_that_hang_delay_a_listing_by_a_second_at_most(desk: Desk) -> None:
    def hang(state: dict[str, Any]) -> None:
        for pid in range(600, 640):
            app = {
                "pid": pid,
                "name": f"App {pid}",
                "bundle_id": f"com.example.app{pid}",
                "policy": 0,
                "path": "",
            }
            window = {
                "id": 3000 + pid,
                "pid": pid,
                "layer": 0,
                "title": "",
                "alpha": 1,
                "space": 1,
                "widgets": [],
            }
            state["apps"].append({**app, "hidden": False})
            state["windows"].append({**window, "bounds": [0, 0, 300, 200], "minimised": True})
        for app in state["apps"]:
            app["hung"] = True

    desk.mac.open_window("Terminal", bounds=[500, 500, 300, 200])
    desk.mac.update(hang)
    started = time.monotonic()
    assert len(desk.data("windows")["windows"]) == len(FRONT_TO_BACK) + 1
    assert time.monotonic() - started < 60  # with the system's own timeout it would be four minutes
    assert desk.mac.calls("osascript")[-1]["argv"][-1] == "{}"


def test_an_application_that_shows_one_window_is_asked_for_no_dialogs(desk: Desk) -> None:
    desk.mac.update(lambda state: _app(state, "Form").update(hung=True))
    desk.mac.activate("Form")
    desk.mac.open_window("Form", bounds=[900, 120, 30, 20], layer=101)  # its menu is none
    desk.data("windows")
    assert desk.mac.events("asked_in_vain") == []


@pytest.mark.parametrize("nil_is_null", [False, True])
def test_where_no_application_is_in_front_nothing_is_focused(desk: Desk, nil_is_null: bool) -> None:
    desk.mac.switch(nil_is_null=nil_is_null)
    for pid in (None, 460):  # of Notes every window is away
        desk.mac.set("frontmost_pid", pid)
        windows = desk.data("windows", "--all")["windows"]
        assert [one["window_id"] for one in windows if one["is_focused"]] == []
    windows = desk.data("windows")["windows"]
    assert len(windows) == len(FRONT_TO_BACK) + len(MINIMISED)


def test_apps_are_listed_with_the_windows_that_they_show(desk: Desk) -> None:
    gone = {"pid": 779, "name": "Gone", "bundle_id": "", "policy": 0, "path": "", "hidden": False}
    desk.mac.update(lambda state: state["apps"].append({**gone, "terminated": True}))
    apps = desk.data("list", "apps")["applications"]
    assert [
        (one["app_name"], one["bundle_id"], one["pid"], one["is_active"], one["window_count"]) for one in apps
    ] == [
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
    ]


def test_an_app_without_a_name_or_a_bundle_id_is_no_trouble(desk: Desk) -> None:
    known = desk.data("list", "apps")["applications"]
    nameless = {"pid": 777, "name": "", "bundle_id": "", "policy": 0, "path": "", "hidden": False}
    desk.mac.update(lambda state: state["apps"].append(nameless))
    desk.mac.update(lambda state: state["apps"].append({**nameless, "pid": 778, "name": "Unsigned"}))
    added = {"app_name": "Unsigned", "bundle_id": None, "pid": 778, "is_active": False, "window_count": 0}
    for nil_is_null in (False, True):
        desk.mac.switch(nil_is_null=nil_is_null)
        listed = desk.data("list", "apps")["applications"]
        assert [one for one in listed if one not in known] == [added]


def test_displays_are_listed_with_the_main_one_first_and_their_places_from_the_top(desk: Desk) -> None:
    second = {
        "screen_index": 1,
        "name": "LG UltraFine",
        "is_main": False,
        "scale": 1.0,
        "bounds": {"x": -1920, "y": -180, "width": 1920, "height": 1080},
    }
    first = {
        "screen_index": 0,
        "name": "Built-in Retina Display",
        "is_main": True,
        "scale": 2.0,
        "bounds": {"x": 0, "y": 0, "width": 1440, "height": 900},
    }
    desk.mac.activate("TextEdit")
    desk.mac.update(
        lambda state: state["windows"].insert(
            0, state["windows"].pop(next(at for at, one in enumerate(state["windows"]) if one["id"] == 1031))
        )
    )
    assert desk.focused_id() == 1031  # NSScreen.mainScreen is now the second display
    assert desk.data("list", "screens") == {"screens": [first, second]}
    desk.mac.set("displays.1.active", False)
    assert desk.data("list", "screens") == {"screens": [first]}


# clicks: the exact point, whatever the display and the size of the picture --------------------------------

CLICKS = {
    "a Retina window": (1090, [], (280, 400), (960, 300), "double"),
    "a Retina window, half size": (1090, ["--max-dimension", 480], (140, 200), (960, 300), "double"),
    "a Retina window, a third": (1090, ["--max-dimension", 320], (95, 135), (962.5, 302.5), "double"),
    "a window left of the main display": (1031, [], (100, 60), (-460, 160), "text"),
    "the same, half size": (1031, ["--max-dimension", 250], (50, 30), (-460, 160), "text"),
}


@pytest.mark.parametrize(("window_id", "size", "at", "point", "widget"), CLICKS.values(), ids=CLICKS.keys())
def test_a_pixel_is_clicked_at_its_exact_point(
    desk: Desk, window_id: int, size: list[Any], at: tuple[int, int], point: tuple[float, float], widget: str
) -> None:
    desk.data("screenshot", window_id, *size)
    answer = desk.data("click", window_id, *at)
    assert desk.clicks() == [(window_id, widget, "left", 1, *point)]
    assert (answer["point"], answer["delivered"]) == ({"x": point[0], "y": point[1]}, True)
    assert desk.mac.state()["pointer"] == {"x": point[0], "y": point[1]}
    resized = [call["argv"] for call in desk.mac.calls("sips")]
    width, height = {1090: (960, 720), 1031: (480, 500)}[window_id]
    factor = size[1] / max(width, height) if size else 0
    small = [str(round(height * factor)), str(round(width * factor))]
    assert [words[:6] for words in resized] == ([["-z", *small, "-s", "format", "png"]] if size else [])


def test_a_sheet_makes_the_picture_another_shape_and_its_pixels_are_refused(desk: Desk) -> None:
    data = desk.data("screenshot", 1040)
    assert (data["image_width"], data["image_height"], data["bounds"]["height"]) == (1100, 800, 700)
    refused = desk.run("click", 1040, 10, 10)
    assert (refused.code, refused.error["code"], desk.posted()) == (20, "STALE_SCREENSHOT", [])
    sheet = desk.data("screenshot", 1041)
    assert pixel(Path(sheet["path"]), 400, 280) == widget_colour(1041, "keep")
    desk.data("click", 1041, 400, 280)
    assert desk.clicks() == [(1041, "keep", "left", 1, -1000, 680)]
    assert desk.mac.window(1041) is None


def test_a_panel_over_the_point_refuses_the_click_and_the_docks_full_screen_window_does_not(
    desk: Desk,
) -> None:
    desk.data("screenshot", 1080)
    panel = desk.mac.open_window("Terminal", title="", bounds=[100, 120, 200, 300], layer=25)
    assert [
        one["is_focused"] for one in desk.data("windows")["windows"] if one["window_id"] in (panel, 1080)
    ] == [True]
    refused = desk.run("click", 1080, 100, 100).error
    assert (refused["code"], f"window {panel} " in refused["message"]) == ("WINDOW_COVERED", True)
    assert desk.posted() == []
    desk.data("click", 1080, 1000, 200)
    assert [one[0] for one in desk.clicks()] == [1080]


def test_where_the_pointer_does_not_get_nothing_was_delivered(desk: Desk) -> None:
    desk.mac.move_window(1080, 1200, 80)
    answer = desk.backend("click", 1080, [1500, 200], "left", 1)
    assert (answer["delivered"], answer["point"]) == (False, {"x": 1439, "y": 200})
    assert desk.mac.events("click") == []


def test_a_second_click_that_could_not_be_made_leaves_a_doubt(desk: Desk) -> None:
    button = {"name": "x", "kind": "button", "text": "x", "rect": [0, 0, 400, 300]}
    closing = {**button, "on_click": {"close_window": "this"}}
    quick = desk.mac.open_window("Terminal", title="Quick", bounds=[830, 110, 400, 300], widgets=[closing])
    assert desk.backend("click", quick, [900, 200], "left", 2)["delivered"] is None
    assert [one["window"] for one in desk.mac.events("click")] == [quick]


def test_a_point_outside_every_display_is_refused(desk: Desk) -> None:
    desk.data("screenshot", 1090)
    desk.mac.move_window(1090, 1200, 700)
    finished = desk.run("click", 1090, 900, 100)
    assert (finished.code, finished.error["code"], desk.posted()) == (1, "WINDOW_COVERED", [])


def test_on_a_locked_screen_nothing_is_reported_as_done(desk: Desk) -> None:
    desk.data("screenshot", 1080)
    desk.mac.lock_screen()  # what is posted now is lost
    before = len(desk.mac.calls())
    acts = (["click", 1080, 100, 100], ["type", 1080, "ls"], ["press", 1080, "tab"])
    assert [desk.run(*words).json.get("error", {}).get("code") for words in acts] == ["SCREEN_LOCKED"] * 3
    assert (desk.posted(), len(desk.mac.calls()) - before) == ([], 3)  # the first look was enough
    assert desk.run("open", "--app", "Notes").error["code"] == "SCREEN_LOCKED"
    assert desk.mac.calls("open") == []


# keys -----------------------------------------------------------------------------------------------------

FAKE_NAMES = {"forward_delete": "delete", "enter": "enter_keypad", "help": "insert"}
SIGN_NAMES = {
    "=": "equal",
    "-": "minus",
    "]": "right_bracket",
    "[": "left_bracket",
    "'": "quote",
    ";": "semicolon",
    "\\": "backslash",
    ",": "comma",
    "/": "slash",
    ".": "period",
    "`": "backquote",
    " ": "space",
}


def key_down(chord: str) -> dict[str, Any]:
    """The step that presses a chord's key."""
    return steps_of(Act("press", chord=read_chord(chord)))[1]


def test_every_key_has_the_code_of_its_place_on_the_keyboard() -> None:
    expected = {FAKE_NAMES.get(name, name): code for code, name in NAMED.items()}
    expected.update({sign: code for table in (LETTERS, DIGITS) for code, sign in table.items()})
    expected.update({SIGN_NAMES[sign]: code for code, sign in SIGNS.items()})
    assert {name: key_down(name)["code"] for name in expected} == expected


@pytest.mark.parametrize(
    ("chord", "code", "flags"),
    [
        ("cmd+shift+t", 17, COMMAND | SHIFT),
        ("ctrl+alt+f5", 96, CONTROL | OPTION | 0x800000),
        ("ctrl+left", 123, CONTROL | 0xA00000),
        ("down", 125, 0xA00000),
        ("page_down", 121, 0x800000),
        ("delete", 117, 0x800000),
        ("backspace", 51, 0),
        ("return", 36, 0),
        ("enter_keypad", 76, 0x200000),
        ("cmd+home", 115, COMMAND | 0x800000),
        ("fn+f1", 122, 0x800000),
        ("super+a", 0, COMMAND),
        ("plus", 24, SHIFT),
        ("caps_lock", 57, 0),
    ],
)
def test_a_chord_has_the_flags_of_its_modifiers(chord: str, code: int, flags: int) -> None:
    assert (key_down(chord)["code"], key_down(chord)["flags"]) == (code, flags)


def test_an_app_is_denied_by_its_bundle_id(desk: Desk) -> None:
    desk.mac.activate("Form")
    refused = desk.run("press", 1090, "tab", PEEKABOO_DENY_APPS="com.example.form")
    assert (refused.code, refused.error["code"], desk.posted()) == (21, "POLICY_DENIED", [])


def test_text_and_keys_of_any_kind_arrive(desk: Desk) -> None:
    text = "Grüße, 世界 👩‍💻 and a line that is longer than twenty\nanother"
    desk.data("type", 1031, text)
    assert desk.mac.widget(1031, "text")["value"] == text
    desk.data("press", 1031, "cmd+a")
    desk.data("press", 1031, "escape")
    keys = [(one["key"], one["code"], one["modifiers"], one["window"]) for one in desk.mac.events("key")]
    assert keys[-2:] == [("a", 0, ["cmd"], 1031), ("escape", 53, [], 1031)]
    assert {one["flags"] for one in desk.posted() if one["type"] in (10, 11)} == {0, SHIFT, COMMAND}


# the world changes meanwhile ------------------------------------------------------------------------------

HAND = {"do": "started", "program": "osascript"}


def test_what_covers_the_window_after_the_look_is_named_and_nothing_is_clicked(desk: Desk) -> None:
    desk.data("screenshot", 1080)
    cover = {"title": "", "bounds": [100, 100, 400, 300]}
    desk.mac.when(HAND, {"do": "open_window", "pid": 430, "window": cover}, skip=1)
    finished = desk.run("click", 1080, 300, 300)
    assert (finished.code, finished.error["code"]) == (1, "WINDOW_COVERED")
    assert "window 2000 of TextEdit" in finished.error["message"]
    assert (desk.posted(), desk.clicks()) == ([], [])


def test_a_window_that_moves_after_the_look_is_not_clicked_elsewhere(desk: Desk) -> None:
    desk.data("screenshot", 1080)
    moved = {"do": "change_window", "window": 1080, "values": {"bounds": [90, 80, 700, 420]}}
    desk.mac.when(HAND, moved, skip=1)
    finished = desk.run("click", 1080, 300, 300)
    assert (finished.code, finished.error["code"], desk.clicks()) == (20, "STALE_SCREENSHOT", [])
    desk.data("click", 1080, 300, 300)
    assert [one[-2:] for one in desk.clicks()] == [(240, 230)]


def test_a_focus_thief_gets_no_text_and_the_answer_says_how_much_went_out(desk: Desk) -> None:
    desk.mac.activate("TextEdit")
    desk.mac.when({"type": 10}, {"do": "activate_now", "pid": 410}, skip=39)
    finished = desk.run("type", 1030, "0123456789" * 5)
    assert (finished.code, finished.error["code"]) == (1, "FOCUS_LOST")
    assert "40 characters were typed" in finished.error["message"]
    assert "window 1012 of Safari" in finished.error["message"]
    assert desk.mac.widget(1030, "text")["value"] == "eggs\nmilk" + "0123456789" * 4
    assert {one["app"] for one in desk.mac.events("text")} == {"TextEdit"}


def test_a_stop_file_stops_a_text_in_the_middle(desk: Desk) -> None:
    stop = desk.mac.home / "Library" / "Caches" / "peekaboo_min" / "STOP"
    desk.mac.activate("TextEdit")
    desk.mac.when({"type": 10}, {"do": "write_file", "path": str(stop)})
    finished = desk.run("type", 1030, "0123456789" * 5)
    assert (finished.code, finished.error["code"]) == (21, "POLICY_DENIED")
    assert "20 characters were typed" in finished.error["message"]
    assert desk.mac.widget(1030, "text")["value"] == "eggs\nmilk" + "0123456789" * 2


def is_free(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@pytest.mark.parametrize(
    ("source", "words"),
    [("function typeText", ("type", 1080, "ls")), ("function raise", ("focus", 1090))],
    ids=["type", "focus"],
)
def test_the_hand_keeps_the_input_lock_when_its_parent_is_killed(
    desk: Desk, source: str, words: tuple[Any, ...]
) -> None:
    desk.mac.hang("osascript", when=[source])
    child = desk.program.start(*words)
    try:
        wait_for(
            lambda: len(desk.mac.running()) == 1 and len(desk.mac.calls("osascript")) == 2, "the hand runs"
        )
        (hand,) = desk.mac.running()
        child.kill()
        child.wait()
        (lock,) = (desk.mac.home / "Library").rglob("input-macos.lock")
        with open(lock) as f:
            assert not is_free(f)
            os.kill(hand["pid"], signal.SIGKILL)
            wait_for(lambda: is_free(f), "the lock is free when the hand is gone")
    finally:
        for stream in (child.stdin, child.stdout, child.stderr):
            stream.close()


# menus and dialogs ----------------------------------------------------------------------------------------

ITEMS = [
    {
        "name": "copy",
        "kind": "button",
        "text": "Copy",
        "rect": [0, 0, 150, 24],
        "on_click": [{"log": "copied"}, {"close_window": "this"}],
    }
]


def test_a_menus_item_is_clicked_without_focusing_anything_and_keys_reach_the_menu(desk: Desk) -> None:
    menu = desk.mac.open_window("Terminal", bounds=[300, 200, 150, 60], layer=101, widgets=ITEMS)
    desk.data("screenshot", menu)
    assert desk.backend("focus", menu) is None  # nothing happens: it would close
    desk.data("press", menu, "down")
    answer = desk.data("click", menu, 40, 20)
    assert (answer["delivered"], [one["text"] for one in desk.mac.events("note")]) == (True, ["copied"])
    assert [(one["key"], one["window"]) for one in desk.mac.events("key")] == [("down", menu)]
    assert desk.mac.events("activate", "ax_raise", "ax_set") == []
    assert desk.run("click", menu, 40, 20).error["code"] == "WINDOW_NOT_FOUND"


def test_a_click_beside_an_open_menu_is_not_reported_as_delivered(desk: Desk) -> None:
    desk.data("screenshot", 1080)
    desk.mac.open_window("Terminal", bounds=[300, 200, 150, 60], layer=101, widgets=ITEMS)
    assert desk.data("click", 1080, 1000, 600)["delivered"] is None
    assert desk.mac.events("click")[-1]["closed_a_menu"]


BLOCKED = {
    "a sheet, its app in front": ("Calendar", "Calendar", 1040, 1041),
    "a sheet, its app behind": ("Terminal", "Calendar", 1040, 1041),
    "a modal dialog": ("Form", "Form", 1090, 2000),
    "a modal dialog exactly over its window": ("Form", "Form", 1090, 2000),
}


@pytest.mark.parametrize(("front", "app", "window_id", "dialog_id"), BLOCKED.values(), ids=BLOCKED.keys())
def test_a_window_with_a_modal_dialog_takes_no_input_and_the_dialog_is_named(
    desk: Desk, request: pytest.FixtureRequest, front: str, app: str, window_id: int, dialog_id: int
) -> None:
    if app == "Form":
        bounds = [820, 100, 480, 360] if "exactly" in request.node.name else [200, 640, 300, 200]
        desk.mac.open_window("Form", title="Sure?", bounds=bounds, modal=True)
    desk.mac.activate(front)
    for words in (["type", window_id, "x"], ["press", window_id, "return"]):
        refused = desk.run(*words).error
        assert (refused["code"], f"window {dialog_id}" in refused["message"]) == ("WINDOW_BLOCKED", True)
    assert desk.posted() == []
    desk.data("press", dialog_id, "escape")
    assert [one["window"] for one in desk.mac.events("key")] == [dialog_id]


# wheel, drag, pointer, held and repeated keys: the events themselves are in test_swift.py -------------------


def test_a_drag_moves_a_slider_and_ends_with_the_button_up(desk: Desk) -> None:
    volume = widget("volume", "slider", 20, 100, 200, 20, value=10)
    desk.mac.change_window(1080, {"widgets": [volume]})
    answer = desk.backend("drag", 1080, [100, 190], [230, 195], "left")
    assert (answer["delivered"], answer["point"]) == (True, {"x": 100, "y": 190})
    assert desk.mac.widget(1080, "volume")["value"] == 75
    assert desk.mac.state()["mouse"]["down"] == {}
    desk.mac.deny("accessibility")
    before = len(desk.posted())
    assert (
        desk.backend("drag", 1080, [100, 190], [230, 195], "left")["code"]
        == "PERMISSION_DENIED_ACCESSIBILITY"
    )
    assert len(desk.posted()) == before


def test_a_drag_that_a_signal_interrupts_ends_with_the_button_up(desk: Desk) -> None:
    desk.data("screenshot", 1080)
    child = desk.program.start("drag", 1080, 100, 190, 230, 195)
    wait_for(lambda: any(one["type"] == 1 for one in desk.mac.raw_events()), "the button is down")
    child.terminate()
    child.communicate(timeout=PATIENCE_S)
    assert desk.mac.running() == []
    assert desk.mac.state()["mouse"]["down"] == {}


def test_a_held_key_that_a_signal_interrupts_goes_up(desk: Desk) -> None:
    child = desk.program.start("press", 1080, "cmd+t", "--hold-ms", 2000)
    wait_for(lambda: any(one["type"] == 10 for one in desk.mac.raw_events()), "the key is down")
    child.terminate()
    child.communicate(timeout=PATIENCE_S)
    assert [one["type"] for one in desk.mac.raw_events()] == [10, 11]


def test_the_pointer_moves_over_a_window_and_presses_nothing(desk: Desk) -> None:
    assert desk.backend("move_pointer", 1080, [300, 300])["delivered"] is True
    assert desk.mac.state()["pointer"] == {"x": 300, "y": 300}
    desk.mac.lock_screen()
    assert desk.backend("move_pointer", 1080, [300, 310])["code"] == "SCREEN_LOCKED"
    assert [one["type"] for one in desk.posted()] == [5]


def test_a_key_is_repeated_until_the_focus_is_lost_and_it_is_said_how_often(desk: Desk) -> None:
    desk.backend("press", 1080, "down", 0, 3)
    assert [one["key"] for one in desk.mac.events("key")] == ["down"] * 3
    desk.mac.when({"type": 10}, {"do": "activate_now", "pid": 430}, skip=1)
    lost = desk.backend("press", 1080, "tab", 0, 5)
    assert (lost["code"], "2 presses went out" in lost["message"]) == ("FOCUS_LOST", True)


# elements ---------------------------------------------------------------------------------------------------


def found(elements: list[dict[str, Any]]) -> list[str]:
    """Each as `role "name" value states x,y widthxheight`."""
    return [
        " ".join(
            [
                one["role"],
                json.dumps(one["name"]),
                *([one["value"]] if one["value"] else []),
                *one["states"],
                "{x:g},{y:g} {width:g}x{height:g}".format(**one["box"]),
            ]
        )
        for one in elements
    ]


def widget(name: str, kind: str, *rect: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": kind, "rect": list(rect), **more}


SLIDER, SWITCH = {"AXDescription": "Volume"}, {"AXSubrole": "AXSwitch"}
TAB = {"AXRole": "AXRadioButton", "AXSubrole": "AXTabButton", "AXTitle": "Log", "AXValue": 1}
ROW = {"AXRole": "AXRow", "AXSubrole": "AXOutlineRow", "AXTitle": "Folder"}
TREE = [
    widget("page", "scroll", 0, 30, 480, 200),
    widget("label", "label", 20, 40, 60, 20, text="Name", inside="page"),
    widget("name", "field", 100, 38, 200, 26, value="Ada", label="label", inside="page"),
    widget("secret", "password", 100, 78, 200, 26, text="Password", value="hunter2", inside="page"),
    widget("volume", "slider", 100, 110, 200, 20, value=0.25, ax=SLIDER, inside="page"),
    widget("agree", "checkbox", 100, 140, 150, 20, text="I agree", value=True, inside="page"),
    widget("dark", "checkbox", 300, 142, 90, 20, text="Dark", value=False, ax=SWITCH, inside="page"),
    widget("above", "button", 320, 20, 80, 30, text="Lower half", inside="page"),
    widget("half", "button", 20, 220, 80, 30, text="Half seen", inside="page"),
    widget("below", "button", 20, 250, 80, 30, text="Scrolled out", inside="page"),
    widget("group", "group", 0, 260, 480, 0),
    widget("more", "button", 20, 270, 80, 30, text="More", ax={"AXExpanded": False}, inside="group"),
    widget("off", "button", 120, 270, 80, 30, text="Delete", enabled=False, inside="group"),
    widget("tab", "button", 220, 270, 80, 30, ax=TAB),
    widget("wide", "button", 400, 270, 300, 30, text="Wide"),
    widget("gone", "button", 10, 400, 80, 30, text="Outside"),
    widget("close", "button", 8, 4, 14, 14, ax={"AXSubrole": "AXCloseButton"}),
    widget("bare", "button", 320, 310, 40, 30, ax={"AXTitle": None, "AXHelp": "Share"}),
    widget("picture", "button", 370, 310, 40, 30, ax={"AXRole": "AXImage"}),
    widget("row", "group", 20, 340, 200, 15, ax={**ROW, "AXDisclosing": True, "AXSelected": True}),
    widget("find", "field", 20, 310, 200, 30, text="Find", value="", ax={"AXSubrole": "AXSearchField"}),
]


@pytest.mark.parametrize("bridged", ["strings", "numbers"])
def test_the_elements_of_a_window_have_roles_names_states_and_places(desk: Desk, bridged: str) -> None:
    desk.mac.switch(bridged_integers=bridged, nil_is_null=bridged == "numbers")
    desk.mac.change_window(1090, {"widgets": TREE, "focus": "name"})
    elements = desk.backend("read_elements", 1090)
    assert found(elements) == [
        'text "Name" 840,140 60x20',
        'button "Lower half" 1140,130 80x20',
        'textbox "Name" Ada focused 920,138 200x26',
        'textbox "Password" 920,178 200x26',
        'slider "Volume" 0.25 920,210 200x20',
        'checkbox "I agree" checked 920,240 150x20',
        'switch "Dark" 1120,242 90x20',
        'button "Half seen" 840,320 80x10',
        'button "More" collapsed 840,370 80x30',
        'button "Delete" disabled 940,370 80x30',
        'tab "Log" selected 1040,370 80x30',
        'button "Wide" 1220,370 80x30',
        'searchbox "Find" 840,410 200x30',
        'button "Share" 1140,410 40x30',
        'treeitem "Folder" expanded selected 840,440 200x15',
    ]
    assert "hunter2" not in json.dumps(elements)


def test_a_long_table_offers_the_rows_that_are_on_the_screen(desk: Desk) -> None:
    rows = [
        widget(f"row{at}", "label", 0, 20 + 20 * at, 400, 20, text=f"Row {at}", inside="table")
        for at in range(1500)
    ]
    table = widget("table", "group", 0, 20, 400, 30000)
    desk.mac.change_window(1090, {"widgets": [table, *rows]})
    names = [one["name"] for one in desk.backend("read_elements", 1090)]
    assert names == [f"Row {at}" for at in range(17)]


def test_a_long_table_that_is_scrolled_offers_the_rows_that_are_seen(desk: Desk) -> None:
    rows = [
        widget(f"row{at}", "label", 0, 20 * (at - 1000), 400, 20, text=f"Row {at}", inside="table")
        for at in range(1500)
    ]
    seen = [f"row{at}" for at in range(1000, 1018)]
    table = widget("table", "group", 0, 0, 400, 360, visible_rows=seen)
    desk.mac.change_window(1090, {"widgets": [table, *rows]})
    names = [one["name"] for one in desk.backend("read_elements", 1090)]
    assert names == [f"Row {at}" for at in range(1000, 1018)]


def test_of_a_thousand_elements_and_more_a_thousand_are_read(desk: Desk) -> None:
    buttons = [
        widget(f"b{at}", "button", at % 40 * 10, at // 40 * 8, 10, 8, text=f"B{at}", inside=f"g{at // 400}")
        for at in range(1200)
    ]
    groups = [widget(f"g{at}", "group", 0, 0, 480, 360) for at in range(3)]
    desk.mac.change_window(1090, {"widgets": groups + buttons})
    assert len(desk.backend("read_elements", 1090)) == 1000


def test_an_app_that_builds_its_tree_on_demand_is_asked_for_it(desk: Desk) -> None:
    desk.mac.update(lambda state: _app(state, "Form").update(builds_tree_on_demand=True))
    assert 'button "New entry" 840,190 140x40' in found(desk.backend("read_elements", 1090))


def test_an_app_that_stops_answering_is_not_asked_on(desk: Desk) -> None:
    names = [("first", {}), ("second", {"hangs": True}), ("third", {})]
    buttons = [
        widget(name, "button", 20, 40 + 40 * at, 80, 30, text=name, inside="group", **more)
        for at, (name, more) in enumerate(names)
    ]
    desk.mac.change_window(1090, {"widgets": [widget("group", "group", 0, 0, 480, 360), *buttons]})
    assert found(desk.backend("read_elements", 1090)) == ['button "first" 840,140 80x30']


def _app(state: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in state["apps"] if one["name"] == name)


def test_elements_of_a_menu_and_of_a_sheet_are_read_too(desk: Desk) -> None:
    under = widget("under", "button", 400, 520, 80, 30, text="Under the sheet")
    desk.mac.change_window(1040, {"widgets": [under]})
    assert found(desk.backend("read_elements", 1041)) == [
        'text "Delete all events?" -1360,460 300x24',
        'button "Keep" -1060,660 120x40',
    ]
    desk.mac.change_window(1041, {"bounds": desk.mac.window(1040)["bounds"]})
    names = [one["name"] for one in desk.backend("read_elements", 1041)]
    assert names == ["Delete all events?", "Keep"]  # where both have one frame, the title tells them apart
    copy = widget("copy", "menuitem", 0, 10, 150, 24, text="Copy", enabled=False)
    menu = desk.mac.open_window("Terminal", bounds=[300, 200, 150, 44], layer=101, widgets=[copy])
    assert found(desk.backend("read_elements", menu)) == ['menuitem "Copy" disabled 300,210 150x24']


def hang(mac: FakeMac) -> None:
    mac.update(lambda state: _app(state, "Form").update(hung=True))


def empty(mac: FakeMac) -> None:
    mac.change_window(1090, {"widgets": []})


def twin(mac: FakeMac) -> None:
    mac.open_window("Form", title="Form", bounds=[820, 100, 480, 360])


def deny_accessibility(mac: FakeMac) -> None:
    mac.deny("accessibility")


NO_ELEMENTS = {
    "denied": (deny_accessibility, "PERMISSION_DENIED_ACCESSIBILITY", "Terminal lacks the Accessibility"),
    "none are offered": (empty, "NO_ELEMENTS", "window 1090 of Form offers no elements"),
    "another window is alike": (twin, "NO_ELEMENTS", "not to be told from another"),
    "the application hangs": (hang, "TIMEOUT", "does not answer"),
}


@pytest.mark.parametrize(("arrange", "code", "message"), NO_ELEMENTS.values(), ids=NO_ELEMENTS.keys())
def test_why_there_are_no_elements_is_said(
    desk: Desk, arrange: Callable[[FakeMac], Any], code: str, message: str
) -> None:
    arrange(desk.mac)
    refused = desk.backend("read_elements", 1090)
    assert (refused["code"], message in refused["message"]) == (code, True), refused


# opening ----------------------------------------------------------------------------------------------------

TEXT_EDIT = {"app_name": "TextEdit", "entry": "com.apple.TextEdit", "bundle_id": "com.apple.TextEdit"}


def install(mac: FakeMac, name: str, bundle_id: str, path: str) -> None:
    app = {"pid": None, "name": name, "bundle_id": bundle_id, "policy": 0, "path": path, "hidden": False}
    mac.update(lambda state: state["apps"].append(app))


def test_the_application_that_opens_something_is_known_before(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "data.unknown").write_text("x")
    for name in ("com.apple.TextEdit", "TextEdit", "textedit.app"):
        assert desk.backend("find_handler", "app", name) == TEXT_EDIT
    assert desk.backend("find_handler", "path", str(tmp_path / "notes.txt")) == TEXT_EDIT
    assert desk.backend("find_handler", "path", str(tmp_path))["bundle_id"] == "com.apple.finder"
    assert desk.backend("find_handler", "url", "https://example.org/a?b=c d")["app_name"] == "Safari"
    missing = desk.backend("find_handler", "path", str(tmp_path / "data.unknown"))
    assert missing["code"] == "APP_NOT_FOUND"
    assert desk.backend("find_handler", "app", "TextEdti") == TEXT_EDIT  # as a running one is named
    install(desk.mac, "Mine", "org.example.mine", str(desk.mac.home / "Applications" / "Mine.app"))
    for name, bundle_id in {"Mine": "org.example.mine", "Finder": "com.apple.finder"}.items():
        assert desk.backend("find_handler", "app", name)["bundle_id"] == bundle_id
    assert desk.backend("find_handler", "app", "Nonesuch")["code"] == "APP_NOT_FOUND"
    assert desk.backend("find_handler", "app", "Utilities")["code"] == "APP_NOT_FOUND"  # a folder
    assert desk.mac.calls("open") == []


def test_two_applications_of_one_name_are_not_guessed_between(desk: Desk) -> None:
    twin = {
        "pid": None,
        "name": "Form",
        "bundle_id": "org.other.form",
        "policy": 0,
        "path": "/Applications/Utilities/Form.app",
    }
    desk.mac.update(lambda state: state["apps"].append({**twin, "hidden": False}))
    refused = desk.backend("find_handler", "app", "Form")
    assert (refused["code"], refused["hint"]) == (
        "AMBIGUOUS_APP_IDENTIFIER",
        "name one of them: Form (com.example.form), Form (org.other.form)",
    )


def test_an_application_a_file_and_an_address_are_opened_by_the_one_that_was_found(
    desk: Desk, tmp_path: Path
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("x")
    opened = [("app", "Keynote Creator Studio"), ("path", str(file)), ("url", "https://example.org/a")]
    assert [desk.backend("open", *words) for words in opened] == [None] * 3
    assert [call["argv"] for call in desk.mac.calls("open")] == [
        ["-b", "com.apple.Keynote"],
        ["-b", "com.apple.TextEdit", str(file)],
        ["-b", "com.apple.Safari", "https://example.org/a"],
    ]
    assert [one["app"] for one in desk.mac.events("launch")] == ["Keynote"]
    assert [(one["title"], one["app"]) for one in desk.mac.events("open_window")[-2:]] == [
        ("notes.txt", "TextEdit"),
        ("a", "Safari"),
    ]


def test_an_application_without_a_bundle_id_is_opened_by_its_path_and_a_failure_is_told(desk: Desk) -> None:
    tool = {
        "pid": None,
        "name": "Tool",
        "bundle_id": "",
        "policy": 0,
        "path": "/Applications/Tool.app",
        "hidden": False,
    }
    desk.mac.update(lambda state: state["apps"].append(tool))
    assert desk.backend("open", "app", "Tool") is None
    assert desk.mac.calls("open")[-1]["argv"] == ["-a", "/Applications/Tool.app"]
    desk.mac.fail("open", "The application cannot be opened because it is damaged.")
    refused = desk.backend("open", "app", "Tool")
    assert (refused["code"], refused["message"]) == ("PROGRAM_FAILED", "open failed with exit code 1")


def test_text_in_other_letters_than_english_ones_is_read(desk: Desk, tmp_path: Path) -> None:
    widgets = [
        widget(f"l{at}", "label", 20, 40 * at + 40, 200, 24, text=text)
        for at, text in enumerate(["Сохранить", "東京", "Save"])
    ]
    desk.mac.change_window(1090, {"widgets": widgets})
    desk.data("screenshot", 1090, "--path", tmp_path / "shot.png")
    lines = desk.backend("read_text", str(tmp_path / "shot.png"))
    found = [(one["text"], one["confidence"]) for one in lines]
    assert found == [("Form", 1), ("Сохранить", 0.5), ("東京", 0.5), ("Save", 1)]
    # in pixels, counted from the top
    places = [[round(one["box"][key]) for key in ("x", "y", "width", "height")] for one in lines]
    assert places == [[round(part) for part in one["rect"]] for one in labels(tmp_path / "shot.png")]


def test_a_calculators_keys_are_found_in_parts_of_the_window(desk: Desk, tmp_path: Path) -> None:
    keys = "789+456/123="
    labels = [
        widget(f"key{at}", "button", 20 + at % 4 * 110, 60 + at // 4 * 80, 100, 60, text=text)
        for at, text in enumerate(keys)
    ]
    desk.mac.change_window(1090, {"widgets": labels})
    desk.data("screenshot", 1090, "--path", tmp_path / "shot.png")
    assert [one["text"] for one in desk.backend("read_text", str(tmp_path / "shot.png"))] == ["Form"]
    read = desk.backend("read_characters", str(tmp_path / "shot.png"))
    assert {one["text"] for one in read} >= set(keys)
    for key in "8+=":
        told = desk.data("find-text", 1090, key)
        (hit,) = told["found"]
        desk.data("click", 1090, hit["x"], hit["y"], "--screenshot-id", told["screenshot_id"])
        assert desk.mac.events("click")[-1]["widget"] == f"key{keys.index(key)}"


# what screencapture cannot capture ---------------------------------------------------------------------


def locked(mac: FakeMac) -> None:
    mac.lock_screen()


def without_session(mac: FakeMac) -> None:
    mac.no_gui_session()


def left_empty(mac: FakeMac) -> None:
    mac.fail("screencapture", exit=0, file=b"")


def left_rubbish(mac: FakeMac) -> None:
    mac.fail("screencapture", exit=0, file=b"rubbish, and more than twenty-four bytes of it")


def failed_late(mac: FakeMac) -> None:
    picture = Picture(8, 8, paint(8, 8, (1, 2, 3), []), [], None)
    mac.fail("screencapture", "could not create image from window", file=png_bytes(picture))


def protected(mac: FakeMac) -> None:
    mac.change_window(1090, {"sharing": "none"})


def as_it_is(mac: FakeMac) -> None:
    pass


NOT_CAPTURED = {
    "the screen is locked": (locked, 1090, 1, "SCREEN_LOCKED", 1),
    "there is no GUI session": (without_session, 1090, 1, "NO_GUI_SESSION", 0),
    "the window is minimised": (as_it_is, 1005, 14, "CAPTURE_FAILED", 1),
    "the window is protected": (protected, 1090, 14, "CAPTURE_FAILED", 1),
    "the id is nobody's": (as_it_is, 4242, 15, "WINDOW_NOT_FOUND", 0),
    "exit 0 and an empty file": (left_empty, 1090, 14, "CAPTURE_FAILED", 4),
    "exit 1 and a picture": (failed_late, 1090, 14, "CAPTURE_FAILED", 4),
    "exit 0 and no picture": (left_rubbish, 1090, 14, "CAPTURE_FAILED", 4),
}


@pytest.mark.parametrize(
    ("arrange", "window_id", "exit_code", "code", "tries"), NOT_CAPTURED.values(), ids=NOT_CAPTURED.keys()
)
def test_why_there_is_no_picture_is_told_apart(
    desk: Desk, arrange: Callable[[FakeMac], None], window_id: int, exit_code: int, code: str, tries: int
) -> None:
    arrange(desk.mac)
    assert desk.refusal("screenshot", window_id) == (exit_code, code)
    assert len(desk.captures()) == tries


@pytest.mark.parametrize(("exit_code", "file"), [(0, b"rubbish" * 9), (13, None), (0, b"")])
def test_what_sips_leaves_is_looked_at_and_its_exit_code_too(
    desk: Desk, tmp_path: Path, exit_code: int, file: Optional[bytes]
) -> None:
    desk.data("screenshot", 1090, "--path", tmp_path / "whole.png")
    left = (tmp_path / "whole.png").read_bytes() if file is None else file
    desk.mac.fail("sips", "Error 13", exit=exit_code, file=left)
    assert desk.refusal("screenshot", 1090, "--max-dimension", 300)[1] == "SIPS_ERROR"


def test_a_window_that_is_just_opening_is_tried_again(desk: Desk) -> None:
    desk.mac.fail("screencapture", "could not create image from window", times=2)
    assert desk.data("screenshot", 1090)["image_width"] == 960
    assert len(desk.captures()) == 3


@pytest.mark.parametrize(("alpha", "is_seen"), [(0, True), (0.5, False)])
def test_a_window_is_captured_by_its_rectangle_where_only_what_is_invisible_is_over_it(
    desk: Desk, alpha: float, is_seen: bool
) -> None:
    desk.data("focus", 1090)
    desk.mac.open_window("TextEdit", bounds=[900, 150, 100, 100], alpha=alpha)
    desk.mac.fail("screencapture", "could not create image from window", when=["-l"])
    finished = desk.run("screenshot", 1090)
    assert finished.code == (0 if is_seen else 14)
    assert [one[1] for one in desk.captures() if one[1] == "-R"] == ["-R"] * is_seen


def test_a_window_that_closes_while_it_is_captured_is_not_found(desk: Desk) -> None:
    desk.mac.set("latency_ms", {"screencapture": [500, 500]})
    desk.mac.close_window(1030, lingers_ms=1000)
    assert desk.refusal("screenshot", 1030) == (15, "WINDOW_NOT_FOUND")


# denied, or not asked -------------------------------------------------------------------------------------

PICTURES = {
    "a window": ["screenshot", "1090"],
    "all screens": ["image"],
    "all windows of an app": ["image", "--app", "Safari", "--mode", "multi"],
}


def tells_who_needs_what(finished: Finished, exit_code: int) -> None:
    pane, address = PANES[exit_code]
    message = finished.error["message"]
    assert f"Terminal lacks the {pane} permission" in message
    assert f"switch Terminal on in System Settings > Privacy & Security > {pane}" in message
    assert f'open "x-apple.systempreferences:com.apple.preference.security?{address}"' in message
    assert message.endswith("quit and reopen Terminal")


@pytest.mark.parametrize("words", PICTURES.values(), ids=PICTURES.keys())
def test_without_screen_recording_nothing_is_a_picture(desk: Desk, words: list[str]) -> None:
    desk.mac.deny("screen_recording")  # a capture would exit 0 with the wallpaper
    finished = desk.run(*words)
    assert (finished.code, finished.error["code"]) == (11, "PERMISSION_DENIED_SCREEN_RECORDING")
    tells_who_needs_what(finished, 11)
    assert (desk.captures(), desk.pictures_left()) == ([], [])


def test_without_screen_recording_no_effect_is_looked_for_and_no_display_is_captured(
    desk: Desk, tmp_path: Path
) -> None:
    desk.mac.deny("screen_recording")
    assert desk.run("press", 1090, "tab", "--verify").code == 11
    assert desk.posted() == []
    refused = desk.backend("capture_display", str(tmp_path / "shot.png"))
    assert refused["code"] == "PERMISSION_DENIED_SCREEN_RECORDING"
    assert (desk.captures(), desk.pictures_left()) == ([], [])


@pytest.mark.parametrize("answer", ["denied", "not_asked"])
def test_a_newer_mac_or_an_unanswered_question_is_no_picture_either(desk: Desk, answer: str) -> None:
    desk.mac.era("error")
    desk.mac.set("permissions.screen_recording", answer)
    assert desk.refusal("screenshot", 1090) == (11, "PERMISSION_DENIED_SCREEN_RECORDING")


def test_without_screen_recording_windows_are_listed_without_titles_and_it_is_said_why(desk: Desk) -> None:
    desk.mac.deny("screen_recording")
    finished = desk.run("windows")
    assert [one["window_id"] for one in finished.data["windows"]] == [*FRONT_TO_BACK, *MINIMISED]
    # the app that we answer for always sees its own
    assert {one["title"] for one in finished.data["windows"] if one["owner_name"] != "Terminal"} == {""}
    (message,) = finished.json["messages"]
    assert message.startswith("window titles are hidden: Terminal lacks the Screen Recording permission; ")
    refused = desk.run("list", "windows", "--app", "Safari")
    assert (refused.code, refused.error["code"]) == (11, "PERMISSION_DENIED_SCREEN_RECORDING")
    assert desk.run("list", "apps").code == 0


ACTS = {
    "click": ["click", "1080", "500", "100"],
    "type": ["type", "1080", "hello"],
    "press": ["press", "1080", "return"],
}


@pytest.mark.parametrize("words", ACTS.values(), ids=ACTS.keys())
def test_without_accessibility_nothing_is_posted_and_it_is_said_who_needs_it(
    desk: Desk, words: list[str]
) -> None:
    desk.data("screenshot", 1080)
    desk.mac.deny("accessibility")
    finished = desk.run(*words)
    assert (finished.code, finished.error["code"]) == (12, "PERMISSION_DENIED_ACCESSIBILITY")
    tells_who_needs_what(finished, 12)
    assert (desk.posted(), desk.mac.events("click", "key", "text", "dropped")) == ([], [])


def test_without_accessibility_an_app_comes_forward_but_one_of_its_windows_cannot(desk: Desk) -> None:
    desk.mac.deny("accessibility")
    desk.mac.open_window(
        "Form", title="", bounds=[820, 100, 480, 20]
    )  # a strip, which is no window to act in
    assert desk.data("focus", 1090)["is_focused"] is True
    finished = desk.run("focus", 1031)
    assert (finished.code, finished.error["code"]) == (12, "PERMISSION_DENIED_ACCESSIBILITY")
    assert desk.mac.events("ax_set", "ax_raise") == []


@pytest.mark.parametrize(
    ("denied", "exit_code", "granted"),
    [
        ((), 0, (True, True)),
        (("screen_recording",), 11, None),
        (("accessibility",), 12, None),
        (("accessibility", "screen_recording"), 11, None),
    ],
)
def test_permissions_tells_each_grant_and_fails_by_the_first_that_is_missing(
    desk: Desk, denied: Sequence[str], exit_code: int, granted: Any
) -> None:
    for kind in denied:
        desk.mac.deny(kind)
    finished = desk.run("permissions")
    assert finished.code == exit_code
    if granted:
        assert finished.data == {"permissions": {"screen_recording": True, "accessibility": True}}
    else:
        tells_who_needs_what(finished, exit_code)
        assert all(
            f"{PANES[{'screen_recording': 11, 'accessibility': 12}[kind]][0]}: NOT granted"
            in finished.error["details"]
            for kind in denied
        )
    if len(denied) == 2:
        status = desk.data("list", "server_status")["permissions"]
        assert status == {"screen_recording": False, "accessibility": False}


def test_permissions_without_a_session_are_an_error_of_its_own(desk: Desk) -> None:
    desk.mac.no_gui_session()
    assert desk.run("permissions").error["code"] == "NO_GUI_SESSION"


@pytest.mark.parametrize("preflight", ["post_event_preflight", "trust_preflight"])
def test_one_false_no_of_two_preflights_blocks_no_act(desk: Desk, preflight: str) -> None:
    desk.mac.switch(**{preflight: "denies"})
    assert desk.data("permissions")["permissions"]["accessibility"] is True
    assert desk.run("press", 1040, "tab").error["code"] == "WINDOW_BLOCKED"  # its sheet is known
    desk.data("press", 1004, "tab")
    assert (desk.focused_id(), len(desk.posted())) == (1004, 2)


def test_behind_another_users_session_no_picture_is_taken_and_the_reason_is_the_lock(desk: Desk) -> None:
    desk.mac.set("session.on_console", False)
    assert [desk.refusal(*words)[1] for words in PICTURES.values()] == ["SCREEN_LOCKED"] * len(PICTURES)


_TERMINAL = "/System/Applications/Utilities/Terminal.app/Contents/MacOS/Terminal"
_PYTHON = "Library/Frameworks/Python3.framework/Versions/3.9/Resources/Python.app/Contents/MacOS/Python"
HOSTS = {
    "an editor's nested helper": (
        "Visual Studio Code",
        [
            "/Applications/Visual Studio Code.app/Contents/Frameworks/Code Helper.app/Contents/MacOS/Helper",
            "/bin/zsh",
        ],
    ),
    "an app that another app installed": (
        "claude",
        [
            "/Applications/Claude.app/Contents/MacOS/Claude",
            "/Users/someone/Library/Application Support/Claude/claude-code/2.1.209-with-a-long-name"
            "/claude.app/Contents/MacOS/claude",
            "/bin/zsh",
        ],
    ),
    "Terminal below the Command Line Tools' Python": (
        "Terminal",
        [_TERMINAL, "login", "-zsh", f"/Library/Developer/CommandLineTools/{_PYTHON}"],
    ),
    "Terminal below Xcode's Python": (
        "Terminal",
        [_TERMINAL, "login", "-zsh", f"/Applications/Xcode.app/Contents/Developer/{_PYTHON}"],
    ),
    "a daemon": (
        "the app that started this",
        ["/usr/sbin/sshd", "-zsh"],
    ),
}


@pytest.mark.parametrize(("name", "ancestors"), HOSTS.values(), ids=HOSTS.keys())
def test_the_app_that_needs_the_grant_is_found_in_the_process_ancestry(
    desk: Desk, name: str, ancestors: list[str]
) -> None:
    rows = [
        {"pid": 700 + at, "ppid": 699 + at if at else 1, "comm": comm} for at, comm in enumerate(ancestors)
    ]
    if ancestors[-1].endswith("Python"):
        rows[-1]["this_is_us"] = True
    else:
        rows.append({"pid": 799, "ppid": rows[-1]["pid"], "comm": "python3", "this_is_us": True})
    desk.mac.set("processes", rows)
    desk.mac.deny("screen_recording")
    assert f": {name} lacks the Screen Recording permission" in desk.run("screenshot", 1090).error["message"]


def test_without_ps_the_app_is_not_named_and_the_error_stays_the_same(desk: Desk) -> None:
    desk.mac.uninstall("ps")
    desk.mac.deny("screen_recording")
    finished = desk.run("screenshot", 1090)
    assert (finished.code, "the app that started this lacks" in finished.error["message"]) == (11, True)


# what osascript says when it fails ------------------------------------------------------------------------

SCRIPT_ERRORS = {
    "automation refused, in German": (
        "execution error: Error: Error: Nicht berechtigt. (-1743)",
        1, 13, "PERMISSION_DENIED_AUTOMATION",
    ),
    "accessibility refused, in Korean": (
        "44:48: execution error: 허용되지 않습니다. (-25211)\n",
        1, 12, "PERMISSION_DENIED_ACCESSIBILITY",
    ),
    "keystrokes refused": (
        "execution error: osascript is not allowed to send keystrokes. (1002)",
        1, 12, "PERMISSION_DENIED_ACCESSIBILITY",
    ),
    "an older refusal": (
        "execution error: osascript is not allowed assistive access. (-1719)",
        1, 12, "PERMISSION_DENIED_ACCESSIBILITY",
    ),
    "an index that is not there": (
        "execution error: Error: Error: Invalid index. (-1719)",
        1, 1, "PROGRAM_FAILED",
    ),
    "no answer in time": ("execution error: Error: Error: AppleEvent timed out. (-1712)", 1, 22, "TIMEOUT"),
    "a consent that nobody gave": (
        "execution error: Error: Error: Nicht berechtigt. (-1744)", 1, 13, "PERMISSION_DENIED_AUTOMATION",
    ),
    "an application that quits": (
        "execution error: Error: Error: Connection is invalid. (-609)", 1, 18, "APP_NOT_FOUND",
    ),
    "not running": (
        "execution error: Error: Error: Application isn\u2019t running. (-600)",
        1, 18, "APP_NOT_FOUND",
    ),
    "a number in a user's words": (
        "execution error: Error: Error: window “(-1743)” of (-600) (-2700)",
        1, 1, "PROGRAM_FAILED",
    ),
    "the older form": (
        "/x/y.js:0:99: execution error: Error on line 3: Error: (-1743) nope (-1712)\n",
        1, 22, "TIMEOUT",
    ),
    "no number at all": ("<stdin>: syntax error", 1, 1, "PROGRAM_FAILED"),
    "a crash": ("", -11, 1, "PROGRAM_FAILED"),
    "a crash behind a shell": ("", 139, 1, "PROGRAM_FAILED"),
    "no JSON": ("", 0, 1, "INTERNAL_SWIFT_ERROR"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("stderr", "exit_code", "our_exit", "code"), SCRIPT_ERRORS.values(), ids=SCRIPT_ERRORS.keys()
)
def test_only_the_number_at_the_end_of_a_script_error_is_believed(
    desk: Desk, stderr: str, exit_code: int, our_exit: int, code: str
) -> None:
    desk.mac.fail("osascript", stderr, exit=exit_code)
    finished = desk.run("windows")
    assert (finished.code, finished.error["code"]) == (our_exit, code)


# the Swift helper -----------------------------------------------------------------------------------------


BUILD = "from peekaboo_min.desktop.macos import swift_helper as h; h.build_helper(); print(h.last_failure())"


def compiled(mac: FakeMac) -> int:
    """How often the compiler was asked to compile."""
    return sum("-O" in call["argv"] for call in mac.calls("xcrun"))


def helper_acts(mac: FakeMac) -> int:
    """How often the helper ran for an act: after each compilation it runs once to see whether it does."""
    return len(mac.calls("swift-helper")) - compiled(mac)


def build_as_a_server(desk: Desk) -> str:
    """What a server does in the background at its start; the reason why there is no helper, or nothing."""
    finished = Program([sys.executable, "-W", "error", "-c", BUILD], desk.program.environment).run()
    assert finished.err == ""
    return finished.out.strip()


def input_by(desk: Desk) -> str:
    return {one["name"]: one["found"] for one in desk.data("doctor")["checks"]}["mouse and keyboard by"]


def test_no_act_waits_for_a_compiler(desk: Desk) -> None:
    desk.mac.tools("slow")
    desk.data("press", 1080, "escape")
    assert [desk.mac.calls(name) for name in ("xcode-select", "xcrun", "swiftc")] == [[], [], []]
    assert input_by(desk).startswith("JXA (no Swift helper: doctor --compile makes it")


def test_without_developer_tools_no_dialog_opens_and_jxa_acts(desk: Desk) -> None:
    assert build_as_a_server(desk).startswith("xcode-select failed with exit code 2")
    assert [call["argv"] for call in desk.mac.calls("xcode-select")] == [["-p"]]
    desk.data("press", 1080, "escape")
    assert [one["key"] for one in desk.mac.events("key")] == ["escape"]
    assert (desk.mac.calls("swiftc"), desk.mac.calls("xcrun"), desk.mac.events("dialog")) == ([], [], [])
    assert input_by(desk).startswith("JXA (no Swift helper: xcode-select failed with exit code 2")


def test_a_compiler_that_fails_is_tried_again_after_a_day(desk: Desk) -> None:
    desk.mac.tools("broken")
    assert "this SDK is not supported by the compiler" in build_as_a_server(desk)
    assert "this SDK is not supported by the compiler" in build_as_a_server(desk)
    assert compiled(desk.mac) == 1
    desk.data("press", 1080, "escape")
    assert [one["key"] for one in desk.mac.events("key")] == ["escape"]
    (failure,) = (desk.mac.home / "Library").rglob("failure.txt")
    os.utime(failure, (1, 1))
    build_as_a_server(desk)
    assert compiled(desk.mac) == 2
    assert "this SDK is not supported by the compiler" in input_by(desk)


def test_a_helper_that_does_not_live_leaves_the_acts_to_jxa(desk: Desk) -> None:
    desk.mac.tools("killed")
    assert "peekaboo-input.new failed with exit code -9" in build_as_a_server(desk)
    desk.data("press", 1080, "escape")
    assert [one["key"] for one in desk.mac.events("key")] == ["escape"]


def test_a_folder_that_cannot_be_written_is_an_error_of_doctor(desk: Desk) -> None:
    desk.mac.tools("good")
    folder = desk.mac.home / "Library/Caches/peekaboo_min/helper"
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.write_text("not a folder")
    finished = desk.run("doctor", "--compile")
    assert finished.error["code"] == "FILE_IO_ERROR" and str(folder) in finished.error["message"]


def test_a_compiler_that_takes_too_long_is_killed_and_tried_again_next_time(tmp_path: Path) -> None:
    need("node")
    desk = Desk(tmp_path, [sys.executable, "-W", "error", "-c", IMPATIENT])
    desk.mac.tools("slow")
    for tries in (1, 2):
        desk.data("doctor", "--compile")
        assert (desk.mac.running(), compiled(desk.mac)) == ([], tries)
    desk.data("press", 1080, "tab")
    assert [one["key"] for one in desk.mac.events("key")] == ["tab"]
    assert not list((desk.mac.home / "Library").rglob("failure.txt"))
    nothing_sloppy(desk.mac)


def test_a_cancelled_compilation_is_not_remembered_as_a_failure(desk: Desk) -> None:
    desk.mac.tools("slow")
    cancelled = (
        "import threading; from peekaboo_min.core.cancellation import CancelToken, use_cancel_token\n"
        "from peekaboo_min.desktop.macos import swift_helper\n"
        "token = CancelToken(); use_cancel_token(token); threading.Timer(0.6, token.cancel).start()\n"
        "try: swift_helper.build_helper()\n"
        "except Exception: pass\n"
        "print(swift_helper.last_failure())"
    )
    finished = Program([sys.executable, "-c", cancelled], desk.program.environment).run()
    assert (finished.err, finished.out) == ("", "\n")


def act_on_everything(desk: Desk) -> None:
    desk.data("screenshot", 1090)
    desk.data("click", 1090, 180, 440, "--clicks", 2)
    desk.data("click", 1090, 300, 330)
    desk.data("type", 1090, "Grüße, 世界 👩‍💻 and more than twenty units")
    desk.data("press", 1090, "cmd+shift+t")
    desk.data("press", 1090, "ctrl+left")


def shown_events(mac: FakeMac) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in one.items() if key not in ("t", "idle_ms", "suppression_s")}
        for one in mac.raw_events()
        if "type" in one
    ]


def test_the_helper_is_compiled_once_and_does_exactly_what_jxa_does(tmp_path: Path) -> None:
    need("node")
    need_swift()
    by_swift, by_jxa = Desk(tmp_path / "swift"), Desk(tmp_path / "jxa")
    by_swift.mac.tools("good")
    assert build_as_a_server(by_swift) == ""
    for one in (by_swift, by_jxa):
        act_on_everything(one)
    assert shown_events(by_swift.mac) == shown_events(by_jxa.mac)
    assert by_swift.mac.widget(1090, "search") == by_jxa.mac.widget(1090, "search")
    assert by_swift.mac.widget(1090, "search")["value"] == "Grüße, 世界 👩‍💻 and more than twenty units"
    assert by_swift.clicks() == by_jxa.clicks() != []
    assert compiled(by_swift.mac) == 1
    assert helper_acts(by_swift.mac) == 5
    assert by_jxa.mac.calls("swift-helper") == []

    home = by_swift.mac.home / "Library" / "Caches" / "peekaboo_min" / "helper"
    (helper,) = home.glob("*/peekaboo-input")
    assert re.fullmatch("[0-9a-f]{16}", helper.parent.name)
    assert [stat.S_IMODE(one.stat().st_mode) for one in (home.parent, helper.parent, helper)] == [0o700] * 3
    assert sorted(one.name for one in helper.parent.iterdir()) == ["input.swift", "peekaboo-input"]

    by_swift.mac.deny("accessibility")
    before = len(by_swift.posted())
    finished = by_swift.run("press", 1090, "escape")
    assert (finished.code, len(by_swift.posted())) == (12, before)
    tells_who_needs_what(finished, 12)
    by_swift.mac.grant("accessibility")
    for one in (by_swift, by_jxa):
        nothing_sloppy(one.mac)


def test_a_helper_that_outlives_its_parent_keeps_the_input_lock(tmp_path: Path) -> None:
    need("node")
    need_swift()
    desk = Desk(tmp_path)
    desk.mac.tools("good")
    build_as_a_server(desk)
    stop = desk.mac.home / "Library" / "Caches" / "peekaboo_min" / "STOP"
    child = desk.program.start("press", 1080, "tab", "--hold-ms", 5000)
    try:
        wait_for(lambda: desk.posted() != [], "the key is held")
        child.kill()
        child.wait()
        (lock,) = (desk.mac.home / "Library").rglob("input-macos.lock")
        with open(lock) as f:
            assert not is_free(f)
            stop.touch()
            wait_for(lambda: is_free(f), "the lock is free when the helper has ended")
    finally:
        for stream in (child.stdin, child.stdout, child.stderr):
            stream.close()
    assert [one["type"] for one in desk.posted()] == [10, 11]
    nothing_sloppy(desk.mac)


def test_a_lost_helper_is_noticed(tmp_path: Path) -> None:
    need("node")
    need_swift()
    desk = Desk(tmp_path)
    desk.mac.tools("good")
    assert [build_as_a_server(desk), build_as_a_server(desk)] == ["", ""]
    assert compiled(desk.mac) == 1
    (helper,) = (desk.mac.home / "Library").rglob("peekaboo-input")
    helper.unlink()  # what is in Caches may be deleted at any time
    desk.data("press", 1080, "tab")
    assert ([one["key"] for one in desk.mac.events("key")], helper_acts(desk.mac)) == (["tab"], 0)
    build_as_a_server(desk)
    assert compiled(desk.mac) == 2
    desk.data("press", 1080, "tab")
    assert helper_acts(desk.mac) == 1
    nothing_sloppy(desk.mac)


def test_doctor_builds_a_damaged_helper_anew(tmp_path: Path) -> None:
    need("node")
    need_swift()
    desk = Desk(tmp_path)
    desk.mac.tools("good")
    desk.data("doctor", "--compile")
    (helper,) = (desk.mac.home / "Library").rglob("peekaboo-input")
    desk.data("press", 1080, "tab")
    assert [one["key"] for one in desk.mac.events("key")] == ["tab"]
    helper.write_text("#!/bin/sh\nexit 3\n")
    assert "doctor --compile" in desk.run("press", 1080, "escape").error["message"]
    found = {one["name"]: one["found"] for one in desk.data("doctor", "--compile")["checks"]}
    assert found["mouse and keyboard by"] == f"Swift helper {helper}"
    desk.data("press", 1080, "escape")
    assert [one["key"] for one in desk.mac.events("key")] == ["tab", "escape"]
    nothing_sloppy(desk.mac)


# focus ----------------------------------------------------------------------------------------------------


def test_a_window_behind_another_of_its_app_is_raised_and_has_the_keyboard(desk: Desk) -> None:
    answer = desk.data("focus", 1004)
    assert (desk.focused_id(), answer["window_id"], answer["is_focused"]) == (1004, 1004, True)
    assert {one["window"] for one in desk.mac.events("ax_raise")} == {1004}
    made = [one["window"] for one in desk.mac.events("ax_set") if one["attribute"] == "AXMain"]
    assert made == [1004]  # its application's keys go there then, which raising alone does not promise


@pytest.mark.parametrize(
    ("place", "is_found"), [([821, 98, 481.5, 360], True), ([823, 100, 480, 360], False)]
)
def test_a_window_is_raised_whose_frame_accessibility_rounds_otherwise(
    desk: Desk, place: list[float], is_found: bool
) -> None:
    desk.mac.open_window("Form", title="Another", bounds=[300, 300, 400, 300])
    desk.mac.change_window(1090, {"ax_bounds": place})
    assert (desk.run("focus", 1090).code, desk.focused_id() == 1090) == (0 if is_found else 1, is_found)


def test_a_declined_activation_is_made_up_for_by_accessibility(desk: Desk) -> None:
    desk.mac.switch(activation="declined")
    desk.data("focus", 1031)
    assert (desk.focused_id(), desk.mac.events("activate")[-1]["by"]) == (1031, "AXFrontmost")


def test_a_slow_activation_is_waited_for(desk: Desk) -> None:
    desk.mac.switch(activation_delay_ms=600)
    desk.data("focus", 1090)
    assert desk.focused_id() == 1090


def test_a_window_that_will_not_come_is_not_acted_on(desk: Desk) -> None:
    desk.data("screenshot", 1090)
    desk.mac.switch(activation="stubborn")
    finished = desk.run("click", 1090, 40, 20)
    assert (finished.code, finished.error["code"]) == (1, "FOCUS_FAILED")
    assert desk.posted() == []


def test_where_it_is_allowed_such_a_window_is_clicked_in_its_title_bar(desk: Desk) -> None:
    desk.mac.switch(activation="stubborn")
    desk.mac.open_window("TextEdit", title="", bounds=[800, 80, 600, 60], alpha=0)
    desk.mac.set("frontmost_pid", 480)
    desk.data("focus", 1090, PEEKABOO_SAFE_CLICK="1")
    assert desk.clicks() == [(1090, None, "left", 1, 1060, 110)]
    assert desk.focused_id() == 1090


def test_where_it_is_allowed_a_window_that_comes_by_itself_is_not_clicked(desk: Desk) -> None:
    desk.data("focus", 1090, PEEKABOO_SAFE_CLICK="1")
    assert (desk.focused_id(), desk.posted()) == (1090, [])


def test_a_title_bar_that_something_covers_is_not_clicked(desk: Desk) -> None:
    desk.mac.switch(activation="stubborn")
    desk.mac.open_window("TextEdit", title="cover", bounds=[800, 80, 600, 60])
    desk.mac.activate("Terminal")
    assert desk.run("focus", 1090, PEEKABOO_SAFE_CLICK="1").error["code"] == "WINDOW_COVERED"
    assert desk.posted() == []


def test_a_sheet_is_focused_by_raising_the_window_that_it_is_attached_to(desk: Desk) -> None:
    x, y, width, height = desk.mac.window(1040)["bounds"]
    desk.mac.open_window("Calendar", title="Another", bounds=[x + 30, y + 30, width, height])
    desk.data("focus", 1041)
    assert {one["window"] for one in desk.mac.events("ax_raise")} == {1040}
    assert desk.focused_id() == 1041


TWINS = {
    "one title": ({"title": "Form", "bounds": [300, 300, 400, 300]}, True),
    "one title, and thirty points apart": ({"title": "Form", "bounds": [850, 130, 480, 360]}, True),
    "one frame": ({"title": "Another", "bounds": [820, 100, 480, 360]}, True),
    "one title and one frame": ({"title": "Form", "bounds": [820, 100, 480, 360]}, False),
}


@pytest.mark.parametrize(("twin", "is_told_apart"), TWINS.values(), ids=TWINS.keys())
def test_two_windows_are_told_apart_by_frame_then_title_or_not_touched(
    desk: Desk, twin: dict[str, Any], is_told_apart: bool
) -> None:
    above = desk.mac.open_window("Form", **twin)
    finished = desk.run("focus", 1090)
    assert {one["window"] for one in desk.mac.events("ax_raise", "ax_set") if "window" in one} == (
        {1090} if is_told_apart else set()
    )
    assert (finished.code, desk.focused_id()) == ((0, 1090) if is_told_apart else (1, above))
    if not is_told_apart:
        assert finished.error["code"] == "FOCUS_FAILED"


def test_a_title_that_is_cleaned_for_people_still_tells_two_windows_apart(desk: Desk) -> None:
    desk.mac.change_window(
        1090, {"title": "two  spaces, and\u200b more than two hundred characters " + "x" * 200}
    )
    desk.mac.open_window("Form", title="Another", bounds=[820, 100, 480, 360])
    assert desk.run("focus", 1090).code == 0
    assert desk.focused_id() == 1090


def test_a_minimised_window_and_a_hidden_apps_window_come_back(desk: Desk) -> None:
    desk.data("focus", 1005)
    assert (desk.focused_id(), desk.mac.window(1005)["minimised"]) == (1005, False)
    desk.data("focus", 1060)
    assert desk.focused_id() == 1060


def test_an_invisible_overlay_of_the_same_app_does_not_hide_who_has_the_keyboard(desk: Desk) -> None:
    desk.mac.open_window("Form", title="", bounds=[0, 0, 1440, 900], alpha=0)
    desk.mac.open_window("Form", title="", bounds=[820, 100, 1, 1])
    desk.mac.activate("Form")
    assert desk.focused_id() == 1090
    assert [one["window_id"] for one in desk.data("windows")["windows"] if one["is_focused"]] == [1090]
    desk.data("screenshot", 1090)
    desk.data("click", 1090, 280, 400)
    assert [one[:2] for one in desk.clicks()] == [(1090, "double")]


# speed: how many programs an operation starts -------------------------------------------------------------


def test_each_operation_starts_as_few_programs_as_are_promised(desk: Desk) -> None:
    listing, capture, hand = ["osascript"], ["screencapture"], ["osascript"]
    assert desk.programs_of("windows") == listing
    assert desk.programs_of("list", "apps") == listing
    assert desk.programs_of("list", "screens") == listing
    assert desk.programs_of("list", "windows", "--app", "Safari") == listing
    assert desk.programs_of("screenshot", 1080, "--max-dimension", 300) == [*listing, *capture, "sips"]
    assert desk.programs_of("click", 1080, 20, 20) == [*listing, *hand]
    assert desk.programs_of("type", 1080, "ls, and more than one piece of text") == [*listing, *hand]
    assert desk.programs_of("press", 1080, "tab") == [*listing, *hand]
    assert desk.programs_of("press", 1080, "cmd+a") == [*listing, *hand]
    desk.mac.set("keyboard.layout", "german")
    assert desk.programs_of("press", 1080, "cmd+a") == [*listing, *hand]
    assert desk.mac.events("activate", "ax_set", "ax_raise") == []  # it was in front already


# screenshot_app_window ------------------------------------------------------------------------------------


def refuses(desk: Desk, *words: Any) -> tuple[int, str]:
    return desk.refusal("screenshot-app-window", *words)


def test_its_document_names_five_errors(desk: Desk) -> None:
    assert refuses(desk, "--appName", "Nothing of that name") == (18, "ProcessNotFound")
    assert refuses(desk, "--appName", "Notes") == (15, "NoWindow")
    assert refuses(desk, "--bundleId", "com.apple.Safari", "--windowIndex", 7) == (15, "NoWindow")
    desk.mac.fail("screencapture", "could not create image from window")
    assert refuses(desk, "--bundleId", "com.apple.calculator") == (14, "CaptureFailed")
    assert [words[1] for words in desk.captures()] == [
        "-o"
    ] * 3  # its place shows another window: not captured
    desk.mac.activate("Calculator")
    assert refuses(desk, "--bundleId", "com.apple.calculator") == (14, "CaptureFailed")
    assert [words[1] for words in desk.captures()[3:]] == [
        "-o",
        "-o",
        "-o",
        "-R",
    ]  # by its id, then by its place
    desk.mac.heal()
    desk.mac.deny("screen_recording")
    assert refuses(desk, "--appName", "Form") == (11, "PermissionDenied")
    assert refuses(desk) == (2, "INVALID_ARGUMENT")
    assert refuses(desk, "--appName", "Form", "--timeoutMs", 99) == (2, "INVALID_ARGUMENT")


@pytest.mark.parametrize("program", ["screencapture", "osascript"])
def test_a_program_that_hangs_is_killed_when_the_time_is_up(desk: Desk, program: str) -> None:
    desk.mac.hang(program)  # as behind a question that nobody answers
    assert refuses(desk, "--appName", "Form", "--timeoutMs", 3500) == (22, "Timeout")
    assert len(desk.mac.calls(program)) == 1
    assert desk.mac.running() == []


def test_the_time_is_one_budget_for_all_its_programs(desk: Desk) -> None:
    desk.mac.set("latency_ms", {"osascript": [2000, 2000], "screencapture": [2000, 2000]})
    assert refuses(desk, "--appName", "Form", "--timeoutMs", 3500) == (22, "Timeout")
    assert len(desk.mac.calls("osascript")) == 1


# doctor ---------------------------------------------------------------------------------------------------


def test_a_crash_over_keynote_takes_no_other_answer_along(desk: Desk) -> None:
    desk.mac.fail("osascript", exit=-11, when=["AEDeterminePermissionToAutomateTarget"])
    granted = desk.data("permissions")["permissions"]
    assert granted == {"screen_recording": True, "accessibility": True}
    assert "Automation: macOS asks at first use (Keynote)" in desk.program.run("permissions").out


@pytest.mark.parametrize("bundle_id", ["com.apple.Keynote", "com.apple.iWork.Keynote"])
@pytest.mark.parametrize(("answer", "code"), [("grant", 0), ("deny", 13), ("ask", 0)])
def test_whether_keynote_may_be_controlled_is_asked_without_a_dialog(
    desk: Desk, answer: str, code: int, bundle_id: str
) -> None:
    desk.mac.keynote(installed=[bundle_id])
    desk.data("keynote", "open")  # only a running app can be asked about
    getattr(desk.mac, answer)("automation", bundle_id)
    finished = desk.run("permissions")
    assert finished.code == code, finished.out
    shown = desk.program.run("permissions")
    found = {"grant": "granted", "deny": "NOT granted", "ask": "macOS asks at first use"}[answer]
    assert f"Automation: {found} (Keynote)" in shown.out + shown.err
    if code:
        assert finished.error["code"] == "PERMISSION_DENIED_AUTOMATION"
        assert "Privacy_Automation" in finished.error["message"]
    assert desk.mac.events("dialog") == []

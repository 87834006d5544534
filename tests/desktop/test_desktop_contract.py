"""Every desktop gives the same keys and codes: a fake Mac and a real X server.

Read-only tests are marked `mac`: with `pytest -m mac` on a Mac they run on that Mac.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Callable, Union

import pytest
from fakemac import FakeMac, default_desktop
from in_process import InProcessProgram
from mac_desk import widget
from worlds import ROOT, Form, clean_environment, need, wait_for, x_server

from peekaboo_min.core.settings import platform_name

TITLE = "Visitor book"


class Commands:
    """Our command line on a desktop: `app` has a window TITLE, `other` is another app, `both` matches two."""

    app, other, both = "Form", "Forum", "For"

    def __init__(self, environment: dict[str, str]) -> None:
        self.program = InProcessProgram(environment)
        self._ids: dict[str, int] = {}

    def data(self, *words: Any, **variables: Any) -> dict[str, Any]:
        return self.program.run("--json", *words, **variables).data

    def refusal(self, *words: Any, **variables: Any) -> tuple[int, str]:
        """Run a command that fails; return its exit code and error code."""
        finished = self.program.run("--json", *words, **variables)
        assert set(finished.json) == {"success", "error", "debug_logs"}
        assert set(finished.error) == {"code", "message", "details"} and finished.error["message"]
        return finished.code, finished.error["code"]

    def window(self, title: str) -> dict[str, Any]:
        """Wait until a window with this title is listed; return it."""
        listed: dict[str, Any] = wait_for(
            lambda: next((one for one in self.data("windows")["windows"] if one["title"] == title), None),
            f"{title} is listed",
        )
        return listed

    def known_id(self, title: str) -> int:
        """Return the id of a window, cached by its title."""
        if title not in self._ids:
            self._ids[title] = self.window(title)["window_id"]
        return self._ids[title]

    def words(self, line: str) -> list[Any]:
        """Split a command line; Form, Forum and For become app names, FORM and FORUM window ids."""
        named = {"Form": self.app, "form": self.app.lower(), "Forum": self.other, "For": self.both}
        titles = {"FORM": TITLE, "FORUM": self.other}
        given = shlex.split(line)
        return [self.known_id(titles[word]) if word in titles else named.get(word, word) for word in given]

    @property
    def form_id(self) -> int:
        return self.known_id(TITLE)

    def act(self, command: str, *words: Any) -> dict[str, Any]:
        """Run a command on the form's window; return its data."""
        return self.data(command, self.form_id, *words)

    def click(self, name: str, *options: Any) -> dict[str, Any]:
        return self.act("click", *self.centre(name), *options)

    def settle(self, what: Callable[[], Any]) -> Any:
        """Wait for the effect of an act."""
        return wait_for(what, "the act has its effect")


class MacWorld(Commands):
    """A fake Mac with an app Form, whose window has the keyboard focus, and an app Forum."""

    def __init__(self, folder: Path) -> None:
        need("node")
        self.mac = FakeMac(folder, self._desktop())
        super().__init__({**self.mac.env(), "PYTHONPATH": str(ROOT)})

    @staticmethod
    def _desktop() -> dict[str, Any]:
        ok = widget("d.ok", "button", 40, 100, 100, 40, text="Confirm", on_click={"close_window": "this"})
        details = {"open_window": {"title": "Details", "bounds": [900, 200, 300, 200], "widgets": [ok]}}
        widgets = [
            widget("notes", "textview", 20, 40, 300, 100, value=""),
            widget("agree", "checkbox", 20, 160, 200, 30, text="I agree", value=False),
            widget("head", "label", 20, 200, 200, 30, text=TITLE),
            widget("details", "button", 20, 240, 120, 40, text="Details", on_click=details),
        ]
        desktop: dict[str, Any] = default_desktop()
        form = next(one for one in desktop["windows"] if one["id"] == 1090)
        form.update(title=TITLE, focus="notes", widgets=widgets)
        place = {"id": 1190, "pid": 510, "bounds": [40, 560, 300, 200]}
        forum = {**form, **place, "title": "Forum", "widgets": []}
        desktop["windows"].remove(form)
        desktop["windows"] = [form, *desktop["windows"], forum]
        app = next(one for one in desktop["apps"] if one["pid"] == 500)
        path, bundle_id = "/Applications/Forum.app", "com.example.forum"
        desktop["apps"].append({**app, "pid": 510, "name": "Forum", "bundle_id": bundle_id, "path": path})
        desktop["frontmost_pid"] = 500
        return desktop

    def centre(self, name: str) -> tuple[int, int]:
        """Return the centre of a widget, in pixels of its window's full-size screenshot."""
        widgets = [one for window in self.mac.state()["windows"] for one in window["widgets"]]
        x, y, width, height = next(one["rect"] for one in widgets if one["name"] == name)
        return 2 * x + width, 2 * y + height

    def is_agreed(self) -> bool:
        return bool(self.mac.widget(1090, "agree")["value"])

    def buttons(self) -> list[str]:
        """Return the buttons of the clicks that reached the form."""
        return [one["button"] for one in self.mac.events("click") if one["window"] == 1090]

    def notes(self) -> str:
        return str(self.mac.widget(1090, "notes")["value"])

    def opened(self, window: dict[str, Any], before: int) -> None:
        """Check the window that `open` returned, and close it if it is new."""
        assert (window["is_new_window"], window["window_id"]) == (False, before)

    def close_form(self) -> None:
        self.mac.close_window(1090)

    def end(self) -> None:
        assert self.mac.events("strict") == []
        assert self.mac.running() == []


class TextEditWorld(Commands):
    """TextEdit and Calculator on the real Mac or a fake one; nothing is clicked or typed."""

    app, other, both = "TextEdit", "Calculator", "Cal"

    def __init__(self, folder: Path) -> None:
        self.mac = None if platform_name() == "macos" else FakeMac(folder)
        fake = {**self.mac.env(), "PYTHONPATH": str(ROOT)} if self.mac else {}
        super().__init__({**os.environ, **fake})
        grants = self.program.run("permissions")
        if grants.code:
            pytest.skip(f"not allowed here: {grants.err.partition(';')[0].strip()}")
        (folder / TITLE).touch()
        opener = str(self.mac.bin_dir / "open") if self.mac else "open"
        for words in (["-a", self.other], ["-a", self.app, str(folder / TITLE)]):
            subprocess.run([opener, *words], check=True, timeout=60)
        wait_for(lambda: self.window(TITLE)["is_focused"], "the new document has the focus")

    def is_untouched(self) -> bool:
        elements = self.data("elements", self.form_id)["elements"]
        return [one["value"] for one in elements if one["role"] == "textbox"] == [""]

    def end(self) -> None:
        assert self.mac is None or (self.mac.events("strict"), self.mac.running()) == ([], [])


class X11World(Commands):
    """The same apps on a real X server; Form is scripts/demo_form.tcl."""

    def __init__(self, folder: Path, display: str) -> None:
        super().__init__(clean_environment(folder, DISPLAY=display))
        (folder / "forum.tcl").write_text("wm title . Forum\nwm geometry . 300x200+700+500\n")
        words = ["wish", str(folder / "forum.tcl"), "-name", "Forum"]
        entries = folder / "home" / ".local" / "share" / "applications"
        entries.mkdir(parents=True)
        entry = f"[Desktop Entry]\nType=Application\nName=Forum\nExec={' '.join(words)}\n"
        (entries / "forum.desktop").write_text(entry)
        self.form = Form(display, folder / "report", TITLE)
        self._forum = subprocess.Popen(words, env=self.program.environment, stdin=subprocess.DEVNULL)
        try:
            self.window("Forum")
            self.form.xdotool("windowactivate", "--sync", str(self.form_id))
            wait_for(lambda: self.window(TITLE)["is_focused"], "the form has the focus")
        except BaseException:
            self.end()
            raise

    def centre(self, widget: str) -> tuple[int, int]:
        return self.form.centre(widget)

    def is_agreed(self) -> bool:
        return bool(self.form.events("toggle")) and self.form.events("toggle")[-1]["value"] == 1

    def buttons(self) -> list[str]:
        names = {1: "left", 2: "middle", 3: "right"}
        return [names[one["button"]] for one in self.form.events("click") if one["button"] in names]

    def is_untouched(self) -> bool:
        return (self.buttons(), self.is_agreed()) == ([], False)

    def notes(self) -> str:
        before = len(self.form.events("text"))
        self.form.xdotool("key", "F12")
        return str(self.form.wait_for_event("text", after=before)["notes"])

    def opened(self, window: dict[str, Any], before: int) -> None:
        assert window["is_new_window"] and window["window_id"] != before
        self.form.xdotool("windowclose", str(window["window_id"]))

    def close_form(self) -> None:
        self.form.close()
        wait_for(
            lambda: TITLE not in [one["title"] for one in self.data("windows")["windows"]], "the form is gone"
        )

    def end(self) -> None:
        self.form.close()
        self._forum.kill()
        self._forum.wait()


World = Union[MacWorld, X11World]
Still = Union[TextEditWorld, X11World]


@pytest.fixture(params=["macos", "x11"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    one = (
        MacWorld(tmp_path)
        if request.param == "macos"
        else X11World(tmp_path, request.getfixturevalue("display"))
    )
    yield one
    one.end()


@pytest.fixture(scope="module", params=[pytest.param("macos", marks=pytest.mark.mac), "x11"])
def still_world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Still]:
    """Share one desktop, on its own display, among all read-only tests."""
    folder = tmp_path_factory.mktemp("still")
    with x_server() if request.param == "x11" else nullcontext("") as display:
        one = X11World(folder, display) if display else TextEditWorld(folder)
        yield one
        one.end()


# reading ----------------------------------------------------------------------------------------------------


def keys_of(value: Any) -> Any:
    """Return a document's keys without its values; a list becomes the keys of its members."""
    if isinstance(value, dict):
        return {key: keys_of(one) for key, one in value.items() if key != "bundle_id"}  # X11 has none
    if isinstance(value, list):
        members = [keys_of(one) for one in value]
        assert all(one == members[0] for one in members), value
        return members[:1]
    return None


def keys(words: str, **deeper: Any) -> dict[str, Any]:
    return {**dict.fromkeys(words.split()), **deeper}


BOUNDS = keys("x y width height")
MACHINE = "version platform system python input log_file"
GRANTS = {"permissions": keys("screen_recording accessibility")}
WINDOW = keys(
    "window_id owner_name pid title is_on_screen is_focused is_minimised kind parent_id is_modal",
    bounds=BOUNDS,
)
SAVED = keys(
    "path item_label mime_type image_width image_height window_title window_id window_index scale "
    "screenshot_id"
)
TARGET = {"target_application_info": keys("app_name pid")}
DETAILED = keys("window_title window_index window_id is_on_screen", bounds=BOUNDS)
LOOKS: dict[str, Any] = {
    "windows": {"windows": [WINDOW]},
    "windows --app form": {"windows": [WINDOW]},
    "list apps": {"applications": [keys("app_name pid is_active window_count")]},
    "list windows --app Form": {**TARGET, "windows": [keys("window_title window_index")]},
    "list windows --app Form --include-details off_screen,bounds,ids": {**TARGET, "windows": [DETAILED]},
    "list screens": {"screens": [keys("screen_index name is_main scale", bounds=BOUNDS)]},
    "list server_status": {**GRANTS, **keys(MACHINE)},
    "permissions": GRANTS,
    "doctor": keys(MACHINE, checks=[keys("name ok needed found advice")]),
    "screenshot FORM": keys("window_id image_width image_height scale screenshot_id path", bounds=BOUNDS),
    "image --mode frontmost": {"saved_files": [SAVED]},
}


@pytest.mark.parametrize("words", LOOKS)
def test_reading_commands_return_the_same_keys(still_world: Still, words: str) -> None:
    finished = still_world.program.run(*still_world.words(words), "--json-output")
    assert (finished.code, finished.err) == (0, "")
    assert set(finished.json) == {"success", "data", "messages", "debug_logs"}
    assert keys_of(finished.data) == LOOKS[words]


def test_lists_agree_with_each_other(still_world: Still) -> None:
    windows = still_world.data("windows")["windows"]
    form = next(one for one in windows if one["title"] == TITLE)
    assert (windows[0], form["owner_name"], form["is_on_screen"]) == (form, still_world.app, True)
    assert form["is_focused"]
    words = ["--app", still_world.app.upper(), "--include-details", "ids,bounds"]
    detailed = still_world.data("list", "windows", *words)
    row = {"window_title": TITLE, "window_index": 0, "window_id": form["window_id"], "bounds": form["bounds"]}
    assert detailed["windows"][0] == row
    assert detailed["target_application_info"]["pid"] == form["pid"]
    apps = {one["app_name"]: one for one in still_world.data("list", "apps")["applications"]}
    mine = [one for one in windows if one["owner_name"] == still_world.app and one["is_on_screen"]]
    assert apps[still_world.app]["window_count"] == len(mine)
    assert [apps[name]["is_active"] for name in (still_world.app, still_world.other)] == [True, False]
    screens = still_world.data("list", "screens")["screens"]
    assert [one["screen_index"] for one in screens if one["is_main"]] == [0]
    assert (screens[0]["bounds"]["x"], screens[0]["bounds"]["y"]) == (0, 0)


REFUSALS = {
    "elements FORUM": (1, "NO_ELEMENTS"),
    "click-text FORM Qqqqzzxx": (1, "TEXT_NOT_FOUND"),
    "image --screen-index 9": (2, "INVALID_ARGUMENT"),
    "screenshot 424242424": (15, "WINDOW_NOT_FOUND"),
    "click 424242424 1 1": (15, "WINDOW_NOT_FOUND"),
    "elements 424242424": (15, "WINDOW_NOT_FOUND"),
    "image --app Form --window-title 'no such'": (15, "WINDOW_NOT_FOUND"),
    "image --app Form --path /etc/passwd/shot.png": (17, "FILE_IO_ERROR"),
    "image --app Qqqqzz": (18, "APP_NOT_FOUND"),
    "open --app Forun": (18, "APP_NOT_FOUND"),
    "image --app Forun --capture-focus foreground": (18, "APP_NOT_FOUND"),
    "image --app For": (19, "AMBIGUOUS_APP_IDENTIFIER"),
    "click FORUM 1 1": (20, "STALE_SCREENSHOT"),
    "click FORM 1 1 --screenshot-id 0123456789abcdef": (20, "STALE_SCREENSHOT"),
    "drag FORUM 1 1 9 9": (20, "STALE_SCREENSHOT"),
    "wait-for --window-id FORM --text Qqqqzzxx --timeout-s 1": (22, "TIMEOUT"),
}


@pytest.mark.parametrize(("line", "expected"), REFUSALS.items())
def test_refusals_have_the_same_codes(still_world: Still, line: str, expected: tuple[int, str]) -> None:
    if platform_name() == "macos" and line in ("elements FORUM", "image --app For"):
        pytest.skip("the real Mac may have no window without elements and no two apps with similar names")
    assert still_world.refusal(*still_world.words(line)) == expected
    assert still_world.is_untouched()


# acting -----------------------------------------------------------------------------------------------------


@pytest.fixture
def shown(world: World) -> World:
    """Return a desktop with a screenshot of the form, which clicks need."""
    world.act("screenshot")
    return world


def test_click_on_a_pixel_of_the_screenshot_hits_the_widget(world: World) -> None:
    shot = world.act("screenshot")
    x, y = world.centre("agree")
    answer = world.click("agree", "--verify")
    assert world.settle(world.is_agreed)
    assert world.buttons() == ["left"]
    bounds = shot["bounds"]
    rect = answer.pop("changed_rect")
    assert rect["image_width"] == shot["image_width"] and answer.pop("effect_ms") >= 50
    assert rect["x"] <= x <= rect["x"] + rect["width"] and rect["y"] <= y <= rect["y"] + rect["height"]
    assert answer == {
        "window_id": world.form_id,
        "pixel": {"x": x, "y": y},
        "point": {"x": bounds["x"] + x / shot["scale"], "y": bounds["y"] + y / shot["scale"]},
        "clamped": False,
        "delivered": True,
        "changed": True,
    }


def test_click_that_closes_its_window_succeeds(shown: World) -> None:
    shown.click("details")
    dialog = shown.window("Details")["window_id"]
    shown.data("screenshot", dialog)
    answer = shown.data("click", dialog, *shown.centre("d.ok"), "--verify")
    assert (answer["changed"], answer["window_closed"]) == (True, True)
    form_id = shown.form_id
    shown.close_form()
    assert shown.refusal("click", form_id, 9, 9) == (15, "WINDOW_NOT_FOUND")


def test_keys_arrive_repeat_hold_and_replace(shown: World) -> None:
    form_id = shown.form_id
    shown.click("notes")
    typed = shown.act("type", "Grüße, 世界 👩‍💻\nand -x more")
    assert typed == {"window_id": form_id, "characters": 25, "delivered": True, "changed": None}
    pressed = shown.act("press", "return")
    assert pressed == {"window_id": form_id, "key": "return", "delivered": True, "changed": None}
    shown.act("type", "--", "--json")
    assert shown.notes() == "Grüße, 世界 👩‍💻\nand -x more\n--json"
    assert shown.act("type", "old", "--replace", "--delay-ms", 30)["characters"] == 3
    shown.act("press", "a", "--repeat", 3)
    shown.act("press", "b", "--hold-ms", 200)
    assert shown.notes() == "oldaaab"


def test_open_returns_the_window(world: World) -> None:
    need("gtk-launch")
    forum = world.known_id("Forum")
    opened = world.data("open", "--app", "Forum", "--timeout-s", 40)
    assert keys_of(opened) == {**WINDOW, **keys("is_new_window handler")}
    assert (opened["owner_name"], opened["handler"], opened["title"]) == ("Forum", "Forum", "Forum")
    world.opened(opened, forum)


def test_clean_deletes_our_screenshots_but_not_files_at_given_paths(world: World, tmp_path: Path) -> None:
    kept = Path(world.act("screenshot", "--path", tmp_path / "kept.png")["path"])
    ours = Path(world.act("screenshot")["path"])
    assert world.data("clean") == {"deleted": 3}  # an image and two coordinate records
    assert (kept.exists(), ours.exists()) == (True, False)
    assert world.refusal("click", world.form_id, 5, 5) == (20, "STALE_SCREENSHOT")

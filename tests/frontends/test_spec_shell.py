"""The specified command line: argv, JSON shapes and text of image and list."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from answers import APPLICATIONS, files_in, kept_by, screen_row, window_row
from fakemac import FakeMac, image_size
from in_process import InProcessProgram
from macs import mac_environment
from worlds import Form, clean_environment, wait_for

from peekaboo_min import __version__
from peekaboo_min.system.bitmaps import sniff_image


class Shell(InProcessProgram):
    """The command line, with checks of each reply's shape."""

    def answer(self, *argv: Any) -> dict[str, Any]:
        """Return the envelope of a successful command."""
        done = self.run(*argv, "--json-output")
        assert (done.code, done.err) == (0, ""), done
        assert done.json == {"success": True, "data": ANY, "messages": ANY, "debug_logs": ANY}
        assert all(isinstance(line, str) for line in [*done.json["messages"], *done.json["debug_logs"]])
        return done.json

    def data(self, *argv: Any, **variables: str) -> dict[str, Any]:
        assert not variables
        data: dict[str, Any] = self.answer(*argv)["data"]
        return data

    def refusal(self, *argv: Any) -> str:
        """Return exit code and error code of a failed command."""
        done = self.run(*argv, "--json-output")
        error = {"code": ANY, "message": ANY, "details": ANY}
        assert (done.json, done.err) == ({"success": False, "error": error, "debug_logs": ANY}, "")
        assert done.error["message"] and isinstance(done.error["details"], str)
        return f"{done.code} {done.error['code']}"

    def text(self, *argv: Any) -> str:
        done = self.run(*argv)
        assert (done.code, done.err) == (0, ""), done
        return done.out


@pytest.fixture(scope="module")
def shell(mac: FakeMac) -> Shell:
    return Shell(mac_environment(mac))


@pytest.fixture(scope="module")
def x11(display: str, shared_form: Form, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    shell = Shell(clean_environment(tmp_path_factory.mktemp("x11"), DISPLAY=display))
    wait_for(lambda: shell.data("list", "apps")["applications"], "the form is listed")
    return shell


# the argv that the original sends ---------------------------------------------------------------------------

START, BUG = (1012, "Start Page"), (1004, "Bug 12/34: crash in usr/bin")
MAIN, SECOND = "Display 1 / Main", "Display 2"

# the original's argv for a client's target, and the images' labels or the refusal. The targets:
# nothing, screen:0, screen:1.5, screen:007, SCREEN:0, frontmost, Safari, com.apple.calculator, PID:450,
# PID:450:WINDOW_INDEX:0, TextEdit:window_title:..., TextEdit:WINDOW_TITLE:Letter, Calculator:WINDOW_INDEX:0,
# Calculator:FOO:1, a space, a:b
TARGETS: dict[str, Any] = {
    "--mode screen": [MAIN, SECOND],
    "--mode screen --screen-index 0": [MAIN],
    "--mode screen --screen-index 1": [SECOND],
    "--mode screen --screen-index 7": "2 INVALID_ARGUMENT",
    "--app SCREEN:0 --mode multi": "18 APP_NOT_FOUND",
    "--mode frontmost": ["peekaboo — -zsh — 80\u00d724"],
    "--app Safari --mode multi": [START[1], BUG[1]],
    "--app com.apple.calculator --mode multi": ["Calculator"],
    "--app PID:450 --mode multi": ["Calculator"],
    "--app PID --mode window": "18 APP_NOT_FOUND",
    "--app TextEdit --mode window --window-title http://x:8080/a": "15 WINDOW_NOT_FOUND",
    "--app TextEdit --mode window --window-title Letter": ["Letter"],
    "--app Calculator --mode window --window-index 0": ["Calculator"],
    "--app Calculator --mode window": ["Calculator"],
    "--app '' --mode multi": "2 INVALID_ARGUMENT",
    "--app a:b --mode multi": "18 APP_NOT_FOUND",
    "--app PID:9": "18 APP_NOT_FOUND",
    "--app Notes": "15 WINDOW_NOT_FOUND",
}
TAILS = [("png", "background"), ("png", "auto"), ("jpg", "auto")]  # foreground has its own test below


@pytest.mark.parametrize(("target", "outcome"), TARGETS.items(), ids=TARGETS)
def test_image_accepts_the_originals_argv(
    shell: Shell, mac: FakeMac, tmp_path: Path, target: str, outcome: Any
) -> None:
    kind, focus = TAILS[list(TARGETS).index(target) % len(TAILS)]
    album, before = tmp_path / "album", kept_by(mac)
    tail = ["--path", album, "--format", kind, "--capture-focus", focus]
    argv = ["image", *shlex.split(target), *tail]
    if isinstance(outcome, str):
        assert shell.refusal(*argv) == outcome
        assert (album.exists(), kept_by(mac)) == (False, before)
        return
    rows = shell.data(*argv)["saved_files"]
    mime_type = {"png": "image/png", "jpg": "image/jpeg"}[kind]
    assert [(row["item_label"], row["mime_type"]) for row in rows] == [(name, mime_type) for name in outcome]
    assert files_in(album) == sorted(Path(row["path"]).name for row in rows)
    assert {Path(row["path"]).suffix for row in rows} == {f".{kind}"}
    infos = [sniff_image(Path(row["path"]).read_bytes()) for row in rows]
    sizes = [(kind, row["image_width"], row["image_height"]) for row in rows]
    assert [(info.kind, info.width, info.height) for info in infos if info] == sizes
    assert kept_by(mac) == before


@pytest.mark.parametrize("denied", ["screen_recording", "accessibility"])
def test_list_permissions_reports_both_grants_without_an_error(
    shell: Shell, mac: FakeMac, denied: str
) -> None:
    granted = {"screen_recording": True, "accessibility": True}
    assert shell.data("list", "server_status")["permissions"] == granted
    mac.deny(denied)
    try:
        for word in ("server_status", "permissions"):
            assert shell.data("list", word)["permissions"] == {**granted, denied: False}
        text = shell.text("list", "server_status")
    finally:
        mac.grant(denied)
    assert text.startswith(f"--- Peekaboo MCP Server Status ---\nName: PeekabooMCP\nVersion: {__version__}\n")
    missing = {"screen_recording": "Screen Recording", "accessibility": "Accessibility"}
    for name, title in missing.items():
        assert f"{title}: {'NOT granted' if name == denied else 'granted'}" in text


# list -------------------------------------------------------------------------------------------------------

SAFARI = {"app_name": "Safari", "pid": 410, "bundle_id": "com.apple.Safari"}
TITLES = [START[1], BUG[1], "Downloads"]
SIDES = ("x", "y", "width", "height")
PLACES = [(200, 60, 1000, 700), (120, 120, 900, 640), (500, 300, 500, 300)]
WINDOWS: list[dict[str, Any]] = [
    {
        "window_title": title,
        "window_index": index,
        "window_id": (1012, 1004, 1005)[index],
        "bounds": dict(zip(SIDES, PLACES[index])),
        "is_on_screen": index < 2,
    }
    for index, title in enumerate(TITLES)
]
# options: number of windows, and their keys in addition to title and index
DETAILS = {
    "": (2, []),
    "--include-details off_screen": (3, ["is_on_screen"]),
    "--include-details 'ids, bounds'": (2, ["window_id", "bounds"]),
    "--include-details=off_screen,bounds,ids": (3, ["window_id", "bounds", "is_on_screen"]),
}


def test_list_apps_has_the_original_shape(shell: Shell) -> None:
    assert shell.data("list", "apps") == {"applications": APPLICATIONS}


@pytest.mark.parametrize(("options", "expected"), DETAILS.items(), ids=DETAILS)
def test_list_windows_has_the_original_shape(
    shell: Shell, options: str, expected: tuple[int, list[str]]
) -> None:
    count, keys = expected
    rows = [{key: row[key] for key in ["window_title", "window_index", *keys]} for row in WINDOWS[:count]]
    data = shell.data("list", "windows", "--app", "Safari", *shlex.split(options))
    assert data == {"windows": rows, "target_application_info": SAFARI}


@pytest.mark.parametrize("argv", ["image --app Form", "image", "list windows --app Form"])
def test_failure_without_screen_recording_leaves_no_file(shell: Shell, mac: FakeMac, argv: str) -> None:
    before = kept_by(mac)
    mac.deny("screen_recording")
    try:
        assert shell.refusal(*argv.split()) == "11 PERMISSION_DENIED_SCREEN_RECORDING"
    finally:
        mac.grant("screen_recording")
    assert kept_by(mac) == before


@pytest.mark.parametrize("world", ["usual", "stubborn", "no Accessibility"])
def test_image_in_the_foreground_raises_the_window_or_reports_why_not(
    own_mac: FakeMac, tmp_path: Path, world: str
) -> None:
    if world == "stubborn":
        own_mac.switch(activation="stubborn")
    elif world == "no Accessibility":
        own_mac.deny("accessibility")
    argv = ["image", "--app", "Safari", "--window-index", "1", "--capture-focus", "foreground"]
    answer = Shell(mac_environment(own_mac)).answer(*argv, "--path", tmp_path / "a.png")
    (row,) = answer["data"]["saved_files"]
    assert (row["window_id"], row["window_title"]) == BUG
    assert (own_mac.front_window()["id"] == BUG[0]) is (world == "usual")
    assert (own_mac.front_window()["pid"] == SAFARI["pid"]) is (world != "stubborn"), "the app is activated"
    problem = "Could not raise specific window; proceeding with frontmost of activated app."
    assert (problem in answer["debug_logs"]) is (world != "usual")
    messages = "".join(answer["messages"])
    assert ("Accessibility" in messages) is (world == "no Accessibility")
    front = own_mac.front_window()
    found = re.findall(r"captured window (\d+) of Safari .* in front is window (\d+) of", messages)
    assert found == ([] if world == "usual" else [(str(BUG[0]), str(front["id"]))])


# image ------------------------------------------------------------------------------------------------------


def test_image_without_a_path_is_a_private_file(shell: Shell) -> None:
    (row,) = shell.data("image", "--app", "Form")["saved_files"]
    assert Path(row["path"]).is_absolute() and image_size(Path(row["path"])) == (960, 720)
    assert Path(row["path"]).stat().st_mode & 0o777 == 0o600


def test_image_suffix_overrides_the_format(shell: Shell, tmp_path: Path) -> None:
    argv = ["image", "--app", "Form", "--format", "png", "--path", tmp_path / "a.jpg"]
    (row,) = shell.data(*argv)["saved_files"]
    assert (row["mime_type"], (tmp_path / "a.jpg").read_bytes()[:3]) == ("image/jpeg", b"\xff\xd8\xff")


# text output -----------------------------------------------------------------------------------------------


def test_image_text_lists_every_file_with_its_window(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "shots"
    text = shell.text("image", "--app", "Safari", "--mode", "multi", "--path", folder / "a.png")
    lines = [re.sub(r"screenshot_id [0-9a-f]{16}", "screenshot_id S", line) for line in text.splitlines()]
    assert lines == [
        "Captured 2 image(s):",
        f"1. {folder / 'a_window0_Start_Page.png'} (Start Page, 2000x1400, window 1012, screenshot_id S)",
        f"2. {folder / 'a_window1_Bug_12_34_crash_in_usr_bin.png'} "
        "(Bug 12/34: crash in usr/bin, 1800x1280, window 1004, screenshot_id S)",
    ]


# X11 --------------------------------------------------------------------------------------------------------


def test_list_and_image_on_x11_have_the_same_shapes(x11: Shell, shared_form: Form, tmp_path: Path) -> None:
    (app,) = x11.data("list", "apps")["applications"]
    assert app == {"app_name": "Form", "pid": ANY, "is_active": ANY, "window_count": 1}
    listed = x11.data("list", "windows", "--app", "Form", "--include-details", "off_screen,bounds,ids")
    (row,) = listed["windows"]
    expected = {"window_title": shared_form.title, "window_index": 0, "window_id": ANY, "is_on_screen": True}
    assert row == {**expected, "bounds": dict.fromkeys(SIDES, ANY)}
    assert listed["target_application_info"] == {"app_name": "Form", "pid": app["pid"]}

    bounds = row["bounds"]
    tail = ["--format", "png", "--capture-focus", "auto", "--path", tmp_path / "a.png"]
    size = (bounds["width"], bounds["height"])
    shot = x11.data("image", "--app", "Form", "--mode", "multi", *tail)
    rows = [window_row(tmp_path / "a.png", row["window_id"], shared_form.title, 0, size, 1.0)]
    assert shot == {"saved_files": rows}
    screen = x11.data("image", "--mode", "screen", "--screen-index", 0, *tail)
    assert screen == {"saved_files": [screen_row(tmp_path / "a.png", MAIN, (1280, 800))]}

    text = x11.text("list", "windows", "--app", "Form", "--include-details", "ids,bounds")
    place = f"{bounds['x']},{bounds['y']} {size[0]}x{size[1]}"
    named = f'0. "{shared_form.title}" [ID: {row["window_id"]}] [{place}]'
    assert text.endswith(f"- PID: {app['pid'] or 'unknown'}\n\nWindows:\n{named}\n")

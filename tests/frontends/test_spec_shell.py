"""The specified command line: options of image and list, the original's argv, JSON shapes, plain text."""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from answers import APPLICATIONS, files_in, kept_by, screen_row, window_row
from fakemac import FakeMac, image_size
from in_process import InProcessProgram
from macs import mac_environment
from worlds import Finished, Form, Program, clean_environment, program_words, wait_for

from peekaboo_min import __version__
from peekaboo_min.frontends.arguments import read_signature, shell_arguments
from peekaboo_min.frontends.tools import COMMANDS, load_function
from peekaboo_min.system.images import sniff_image


class Shell:
    """The command line as the original's server runs it: its stdin is an open pipe that is never read."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._done: dict[tuple[str, ...], Finished] = {}

    def run_beforehand(self, commands: list[list[Any]]) -> None:
        """Run these, some at a time, and keep how they ended for run()."""
        with ThreadPoolExecutor(3) as pool:
            for words, done in zip(commands, pool.map(lambda words: self._run(*words), commands)):
                self._done[tuple(map(str, words))] = done

    def run(self, *words: Any) -> Finished:
        return self._done.pop(tuple(map(str, words)), None) or self._run(*words)

    def _run(self, *words: Any) -> Finished:
        reader, writer = os.pipe()
        try:
            os.write(writer, b"unread")
            done = subprocess.run(
                [*self._program.words, *map(str, words)],
                env=self._program.environment,
                stdin=reader,
                capture_output=True,
                timeout=60,
                encoding="utf-8",
            )
            assert os.read(reader, 100) == b"unread"
        finally:
            os.close(reader)
            os.close(writer)
        return Finished(done.returncode, done.stdout, done.stderr)

    def answer(self, *words: Any) -> dict[str, Any]:
        """The envelope of a success; --json-output stands last."""
        done = self.run(*words, "--json-output")
        assert (done.code, done.err) == (0, ""), done
        assert done.json == {"success": True, "data": ANY, "messages": ANY, "debug_logs": ANY}
        assert all(isinstance(line, str) for line in [*done.json["messages"], *done.json["debug_logs"]])
        return done.json

    def data(self, *words: Any) -> dict[str, Any]:
        return self.answer(*words)["data"]

    def refusal(self, *words: Any) -> tuple[int, str]:
        """Exit code and error code of a failure."""
        done = self.run(*words, "--json-output")
        error = {"code": ANY, "message": ANY, "details": ANY}
        assert (done.json, done.err) == ({"success": False, "error": error, "debug_logs": ANY}, "")
        assert done.error["message"] and isinstance(done.error["details"], str)
        return done.code, done.error["code"]

    def text(self, *words: Any) -> str:
        """What people read."""
        done = self.run(*words)
        assert (done.code, done.err) == (0, ""), done
        return done.out


@pytest.fixture(scope="module")
def shell(mac: FakeMac) -> Shell:
    """The command line on a fake Mac; the tables' commands have run, and left only the asked files."""
    shell = Shell(InProcessProgram(mac_environment(mac)))
    commands = [
        *(target_words(mac, one) for one in TARGETS),
        *(["list", "windows", "--app", "Safari", *words] for words, _ in DETAILS.values()),
        *(words for words, _ in REFUSED.values()),
    ]
    shell.run_beforehand([[*words, "--json-output"] for words in commands])
    assert kept_by(mac) == []
    return shell


@pytest.fixture
def own_shell(own_mac: FakeMac) -> Shell:
    return Shell(InProcessProgram(mac_environment(own_mac)))


@pytest.fixture(scope="module")
def x11(display: str, shared_form: Form, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    environment = clean_environment(tmp_path_factory.mktemp("x11"), DISPLAY=display)
    shell = Shell(Program(program_words("single file"), environment))
    wait_for(lambda: shell.data("list", "apps")["applications"], "the form is listed")
    return shell


# the words that the original sends --------------------------------------------------------------------------

NOTHING = {
    "app": None,
    "path": None,
    "mode": None,
    "window_title": None,
    "window_index": None,
    "window_id": None,
    "screen_index": None,
    "format": None,
    "capture_focus": "background",
    "question": None,
    "max_dimension": None,
    "in_shell": True,
}
ADDRESS = "http://x:8080/a"
START, BUG = (1012, "Start Page"), (1004, "Bug 12/34: crash in usr/bin")
MAIN, SECOND = "Display 1 / Main", "Display 2"

# What a client named: the target's options, what they mean, and the labels of the images or the refusal.
TARGETS: dict[str, tuple[list[str], dict[str, Any], Any]] = {
    "nothing": (["--mode", "screen"], {"mode": "screen"}, [MAIN, SECOND]),
    "screen:0": (["--mode", "screen", "--screen-index", "0"], {"mode": "screen", "screen_index": 0}, [MAIN]),
    "screen:1.5": (
        ["--mode", "screen", "--screen-index", "1"],
        {"mode": "screen", "screen_index": 1},
        [SECOND],
    ),
    "screen:007": (
        ["--mode", "screen", "--screen-index", "7"],
        {"mode": "screen", "screen_index": 7},
        (2, "INVALID_ARGUMENT"),
    ),
    "SCREEN:0": (
        ["--app", "SCREEN:0", "--mode", "multi"],
        {"app": "SCREEN:0", "mode": "multi"},
        (18, "APP_NOT_FOUND"),
    ),
    "frontmost": (["--mode", "frontmost"], {"mode": "frontmost"}, ["peekaboo — -zsh — 80\u00d724"]),
    "Safari": (
        ["--app", "Safari", "--mode", "multi"],
        {"app": "Safari", "mode": "multi"},
        [START[1], BUG[1]],
    ),
    "com.apple.calculator": (
        ["--app", "com.apple.calculator", "--mode", "multi"],
        {"app": "com.apple.calculator", "mode": "multi"},
        ["Calculator"],
    ),
    "PID:450": (["--app", "PID:450", "--mode", "multi"], {"app": "PID:450", "mode": "multi"}, ["Calculator"]),
    "PID:450:WINDOW_INDEX:0": (
        ["--app", "PID", "--mode", "window"],
        {"app": "PID", "mode": "window"},
        (18, "APP_NOT_FOUND"),
    ),
    "TextEdit:window_title:...": (
        ["--app", "TextEdit", "--mode", "window", "--window-title", ADDRESS],
        {"app": "TextEdit", "mode": "window", "window_title": ADDRESS},
        (15, "WINDOW_NOT_FOUND"),
    ),
    "TextEdit:WINDOW_TITLE:Letter": (
        ["--app", "TextEdit", "--mode", "window", "--window-title", "Letter"],
        {"app": "TextEdit", "mode": "window", "window_title": "Letter"},
        ["Letter"],
    ),
    "Calculator:WINDOW_INDEX:0": (
        ["--app", "Calculator", "--mode", "window", "--window-index", "0"],
        {"app": "Calculator", "mode": "window", "window_index": 0},
        ["Calculator"],
    ),
    "Calculator:FOO:1": (
        ["--app", "Calculator", "--mode", "window"],
        {"app": "Calculator", "mode": "window"},
        ["Calculator"],
    ),
    "a space": (["--app", "", "--mode", "multi"], {"app": "", "mode": "multi"}, (2, "INVALID_ARGUMENT")),
    "a:b": (["--app", "a:b", "--mode", "multi"], {"app": "a:b", "mode": "multi"}, (18, "APP_NOT_FOUND")),
}
TAILS = [("png", "background"), ("png", "auto"), ("jpg", "auto"), ("jpg", "foreground")]


@pytest.mark.parametrize("tail", TAILS, ids=" ".join)
@pytest.mark.parametrize(("words", "meaning", "_outcome"), TARGETS.values(), ids=TARGETS.keys())
def test_the_originals_words_for_image_are_understood(
    words: list[str], meaning: Any, _outcome: Any, tail: tuple[str, str]
) -> None:
    given = [*words, "--path", "/p", "--format", tail[0], "--capture-focus", tail[1]]
    understood = shell_arguments(
        "image", read_signature(load_function(COMMANDS["image"]), True), list(map(str, given))
    )
    assert understood == {**NOTHING, **meaning, "path": "/p", "format": tail[0], "capture_focus": tail[1]}


def album(mac: FakeMac, row: str) -> Path:
    """Where a row of a table saves its pictures."""
    return mac.folder / "album" / re.sub(r"\W", "_", row)


def target_words(mac: FakeMac, target: str) -> list[Any]:
    kind, focus = tail_of(target)
    return [
        "image",
        *TARGETS[target][0],
        "--path",
        album(mac, target),
        "--format",
        kind,
        "--capture-focus",
        focus,
    ]


def tail_of(target: str) -> tuple[str, str]:
    return TAILS[list(TARGETS).index(target) % 3]  # those that leave the world as it is


@pytest.mark.parametrize("target", TARGETS)
def test_the_originals_words_for_image_do_what_they_say(shell: Shell, mac: FakeMac, target: str) -> None:
    outcome, kind = TARGETS[target][2], tail_of(target)[0]
    if isinstance(outcome, tuple):
        assert shell.refusal(*target_words(mac, target)) == outcome
        assert not album(mac, target).exists()
        return
    rows = shell.data(*target_words(mac, target))["saved_files"]
    mime_type = {"png": "image/png", "jpg": "image/jpeg"}[kind]
    assert [(one["item_label"], one["mime_type"]) for one in rows] == [
        (label, mime_type) for label in outcome
    ]
    assert files_in(album(mac, target)) == sorted(Path(one["path"]).name for one in rows)
    infos = [sniff_image(Path(one["path"]).read_bytes()) for one in rows]
    sizes = [(kind, one["image_width"], one["image_height"]) for one in rows]
    assert [(one.kind, one.width, one.height) for one in infos if one] == sizes


def test_the_version_is_one_word(shell: Shell) -> None:
    assert shell.text("--version") == f"{__version__}\n"
    assert shell.data("--version") == {"version": __version__}


@pytest.mark.parametrize("word", ["server_status", "permissions"])
def test_the_permissions_are_two_truths_and_the_exit_code_is_0_even_where_they_are_missing(
    shell: Shell, mac: FakeMac, word: str
) -> None:
    told = {"screen_recording": True, "accessibility": True}
    assert shell.data("list", word)["permissions"] == told
    mac.deny("screen_recording")
    try:
        assert shell.data("list", word)["permissions"] == {**told, "screen_recording": False}
    finally:
        mac.grant("screen_recording")


# list -------------------------------------------------------------------------------------------------------

SAFARI = {"app_name": "Safari", "pid": 410, "bundle_id": "com.apple.Safari"}
ROWS = [
    {"window_title": "Start Page", "window_index": 0},
    {"window_title": "Bug 12/34: crash in usr/bin", "window_index": 1},
    {"window_title": "Downloads", "window_index": 2},
]
IDS = [{"window_id": 1012}, {"window_id": 1004}, {"window_id": 1005}]
BOUNDS = [
    {"bounds": {"x": 200, "y": 60, "width": 1000, "height": 700}},
    {"bounds": {"x": 120, "y": 120, "width": 900, "height": 640}},
    {"bounds": {"x": 500, "y": 300, "width": 500, "height": 300}},
]
ON_SCREEN = [{"is_on_screen": True}, {"is_on_screen": True}, {"is_on_screen": False}]


def joined(*columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for part in parts for key, value in part.items()} for parts in zip(*columns)]


DETAILS = {
    "none": ([], ROWS[:2]),
    "off_screen": (["--include-details", "off_screen"], joined(ROWS, ON_SCREEN)),
    "two, with a blank": (["--include-details", "ids, bounds"], joined(ROWS, IDS, BOUNDS)[:2]),
    "all, with an equals sign": (
        ["--include-details=off_screen,bounds,ids"],
        joined(ROWS, IDS, BOUNDS, ON_SCREEN),
    ),
}


def test_the_applications_have_the_shape_that_the_original_reads(shell: Shell) -> None:
    assert shell.data("list", "apps") == {"applications": APPLICATIONS}


@pytest.mark.parametrize(("words", "rows"), DETAILS.values(), ids=DETAILS.keys())
def test_the_windows_have_the_shape_that_the_original_reads(
    shell: Shell, words: list[str], rows: list[Any]
) -> None:
    told = shell.data("list", "windows", "--app", "Safari", *words)
    assert told == {"windows": rows, "target_application_info": SAFARI}


REFUSED = {
    "no app": (["list", "windows"], (2, "INVALID_ARGUMENT")),
    "an unknown app": (["list", "windows", "--app", "Zzzz"], (18, "APP_NOT_FOUND")),
    "a process id that does not run": (["list", "windows", "--app", "PID:9"], (18, "APP_NOT_FOUND")),
    "an ambiguous app": (["list", "windows", "--app", "Ca"], (19, "AMBIGUOUS_APP_IDENTIFIER")),
    "a list of nothing known": (["list", "menus"], (2, "INVALID_ARGUMENT")),
    "a mode of nothing known": (["image", "--mode", "area"], (2, "INVALID_ARGUMENT")),
    "a focus of nothing known": (["image", "--capture-focus", "front"], (2, "INVALID_ARGUMENT")),
    "an ambiguous app to photograph": (["image", "--app", "Ca"], (19, "AMBIGUOUS_APP_IDENTIFIER")),
    "an app without windows": (["image", "--app", "Notes"], (15, "WINDOW_NOT_FOUND")),
    "a path in a file": (["image", "--app", "Form", "--path", "/etc/passwd/a.png"], (17, "FILE_IO_ERROR")),
}


@pytest.mark.parametrize(("words", "outcome"), REFUSED.values(), ids=REFUSED.keys())
def test_a_failure_is_one_document_with_the_specifications_code(
    shell: Shell, words: list[str], outcome: Any
) -> None:
    assert shell.refusal(*words) == outcome


def test_an_ambiguity_shows_its_candidates_in_the_details(shell: Shell) -> None:
    details = shell.run("image", "--app", "Ca", "--json-output").error["details"]
    assert details.splitlines() == [
        "Calendar (com.apple.iCal, PID:440)",
        "Calculator (com.apple.calculator, PID:450)",
    ]


GRANTS = {
    "image without Screen Recording": (
        "screen_recording",
        ["image", "--app", "Form"],
        (11, "PERMISSION_DENIED_SCREEN_RECORDING"),
    ),
    "a screen without Screen Recording": (
        "screen_recording",
        ["image"],
        (11, "PERMISSION_DENIED_SCREEN_RECORDING"),
    ),
    "windows without Screen Recording": (
        "screen_recording",
        ["list", "windows", "--app", "Form"],
        (11, "PERMISSION_DENIED_SCREEN_RECORDING"),
    ),
}


@pytest.mark.parametrize(("kind", "words", "outcome"), GRANTS.values(), ids=GRANTS.keys())
def test_a_missing_grant_is_reported_and_nothing_hangs(
    shell: Shell, mac: FakeMac, kind: str, words: list[str], outcome: Any
) -> None:
    before = kept_by(mac)
    mac.deny(kind)
    try:
        assert shell.refusal(*words) == outcome
    finally:
        mac.grant(kind)
    assert kept_by(mac) == before


SECOND_WINDOW = ["image", "--app", "Safari", "--window-index", "1", "--capture-focus", "foreground"]


def test_a_window_that_may_not_be_raised_without_accessibility_is_captured_with_a_warning(
    own_shell: Shell, own_mac: FakeMac, tmp_path: Path
) -> None:
    own_mac.deny("accessibility")
    answer = own_shell.answer(*SECOND_WINDOW, "--path", tmp_path / "a.png")
    assert "Accessibility" in answer["messages"][0]
    assert [(one["window_id"], one["window_title"]) for one in answer["data"]["saved_files"]] == [BUG]


def test_a_window_that_was_raised_is_the_one_that_is_captured(
    own_shell: Shell, own_mac: FakeMac, tmp_path: Path
) -> None:
    (row,) = own_shell.data(*SECOND_WINDOW, "--path", tmp_path / "a.png")["saved_files"]
    assert own_mac.front_window()["id"] == 1004  # type: ignore[index]
    assert (row["window_id"], row["window_title"]) == BUG


def test_a_window_that_will_not_be_raised_is_captured_all_the_same_and_the_debug_log_says_so(
    own_shell: Shell, own_mac: FakeMac, tmp_path: Path
) -> None:
    own_mac.switch(activation="stubborn")
    answer = own_shell.answer(*SECOND_WINDOW, "--path", tmp_path / "a.png")
    assert (
        "Could not raise specific window; proceeding with frontmost of activated app." in answer["debug_logs"]
    )
    assert [(one["window_id"], one["window_title"]) for one in answer["data"]["saved_files"]] == [BUG]


# image ------------------------------------------------------------------------------------------------------


def test_without_a_path_the_file_is_still_there_when_its_path_is_read(shell: Shell, mac: FakeMac) -> None:
    (row,) = shell.data("image", "--app", "Form")["saved_files"]
    assert Path(row["path"]).is_absolute() and image_size(Path(row["path"])) == (960, 720)
    assert Path(row["path"]).stat().st_mode & 0o777 == 0o600


def test_a_file_is_what_its_name_says_whatever_the_format(shell: Shell, tmp_path: Path) -> None:
    (row,) = shell.data("image", "--app", "Form", "--format", "png", "--path", tmp_path / "a.jpg")[
        "saved_files"
    ]
    assert (row["mime_type"], (tmp_path / "a.jpg").read_bytes()[:3]) == ("image/jpeg", b"\xff\xd8\xff")


# for people -------------------------------------------------------------------------------------------------


def test_the_text_of_a_capture_shows_every_file_and_what_it_shows(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "shots"
    text = shell.text("image", "--app", "Safari", "--mode", "multi", "--path", folder / "a.png")
    lines = [re.sub(r"screenshot_id [0-9a-f]{16}", "screenshot_id S", line) for line in text.splitlines()]
    assert lines == [
        "Captured 2 image(s). Saved files:",
        f"1. {folder / 'a_window0_Start_Page.png'} (Start Page, 2000x1400, window 1012, screenshot_id S)",
        f"2. {folder / 'a_window1_Bug_12_34_crash_in_usr_bin.png'} "
        "(Bug 12/34: crash in usr/bin, 1800x1280, window 1004, screenshot_id S)",
    ]


def test_the_text_of_the_status_shows_the_version_and_the_grants(shell: Shell, mac: FakeMac) -> None:
    mac.deny("accessibility")
    try:
        text = shell.text("list", "server_status")
    finally:
        mac.grant("accessibility")
    assert text.startswith(f"--- Peekaboo MCP Server Status ---\nName: PeekabooMCP\nVersion: {__version__}\n")
    assert "Screen Recording: granted" in text and "Accessibility: NOT granted" in text


def test_an_error_for_people_is_on_stderr_with_its_exit_code(shell: Shell) -> None:
    done = shell.run("list", "windows", "--app", "Ca")
    assert (done.code, done.out) == (19, "")
    assert done.err.startswith("peekaboo-min: 'Ca' could be 2 applications; name one of them: Calendar")


# X11 --------------------------------------------------------------------------------------------------------


def test_on_x11_the_shapes_are_the_same(x11: Shell, shared_form: Form, tmp_path: Path) -> None:
    (app,) = x11.data("list", "apps")["applications"]
    assert app == {"app_name": "Form", "bundle_id": None, "pid": ANY, "is_active": ANY, "window_count": 1}
    told = x11.data("list", "windows", "--app", "Form", "--include-details", "off_screen,bounds,ids")
    (row,) = told["windows"]
    size = {"x": ANY, "y": ANY, "width": ANY, "height": ANY}
    assert row == {
        "window_title": shared_form.title,
        "window_index": 0,
        "window_id": ANY,
        "bounds": size,
        "is_on_screen": True,
    }
    assert told["target_application_info"] == {"app_name": "Form", "pid": app["pid"], "bundle_id": None}

    bounds = row["bounds"]
    tail = ["--format", "png", "--capture-focus", "auto", "--path", tmp_path / "a.png"]
    shot = x11.data("image", "--app", "Form", "--mode", "multi", *tail)
    expected = window_row(
        tmp_path / "a.png", row["window_id"], shared_form.title, 0, (bounds["width"], bounds["height"]), 1.0
    )
    assert shot == {"saved_files": [expected]}
    screen = x11.data("image", "--mode", "screen", "--screen-index", 0, *tail)
    assert screen == {"saved_files": [screen_row(tmp_path / "a.png", MAIN, (1280, 800))]}

    text = x11.text("list", "windows", "--app", "Form", "--include-details", "ids,bounds")
    place = f"{bounds['x']},{bounds['y']} {bounds['width']}x{bounds['height']}"
    assert text.endswith(
        f"- PID: {app['pid'] or 'unknown'}\n\nWindows:\n"
        f'1. "{shared_form.title}" [ID: {row["window_id"]}] [{place}]\n'
    )

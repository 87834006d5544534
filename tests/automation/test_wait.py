"""wait_for on X11: text, title, closed window, unchanged window."""

from __future__ import annotations

import itertools
import subprocess
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import pytest
from samples import app, error_of, window
from tk_windows import Wish, programs_by, window_titled
from worlds import PATIENCE_S, Program, need

from peekaboo_min.automation import wait
from peekaboo_min.core.errors import PeekabooError
from peekaboo_min.core.models import Scene
from peekaboo_min.system.bitmaps import Bitmap
from peekaboo_min.tools import look_tools

# %s: Tcl that changes the window later.
WINDOW = """
wm title . "Slow work"
wm geometry . 420x160+90+90
label .state -text "Preparing the files" -font {{DejaVu Sans} 14}
label .count -textvariable n -font {{DejaVu Sans} 14}
pack .state .count -padx 20 -pady 20
set n ""
%s
"""


# run each line of stdin as Tcl
ON_COMMAND = (
    "fileevent stdin readable {if {[gets stdin line] >= 0} {eval $line} else {fileevent stdin readable {}}}"
)
Opener = Callable[[str], "tuple[int, Wish]"]


@pytest.fixture
def open_window(peek: Program, wish: Callable[..., Wish]) -> Opener:
    """Return a function that opens WINDOW with a script; it returns the window id and the program."""
    need("tesseract", "convert")

    def open_with(script: str) -> tuple[int, Wish]:
        program = wish(WINDOW % script, "Slow")
        return window_titled(peek, "Slow work")["window_id"], program

    return open_with


def test_wait_for_text_returns_its_place(peek: Program, open_window: Opener) -> None:
    window_id, _ = open_window('after 1500 {.state configure -text "All files saved"}')
    answer = peek.data("wait-for", "--window-id", window_id, "--text", "files saved", "--timeout-s", 30)
    (hit,) = answer["found"]
    assert (hit["text"], hit["match"]) == ("files saved", "part")
    assert 0 < answer["waited_s"] < 34
    # click accepts x and y with the returned screenshot_id
    clicked = peek.data("click", window_id, hit["x"], hit["y"], "--screenshot-id", answer["screenshot_id"])
    assert clicked["delivered"] is True


def test_wait_for_text_reads_each_image_once(peek: Program, open_window: Opener, tmp_path: Path) -> None:
    window_id, _ = open_window(
        "proc blink {} {set ::n [expr {$::n eq {} ? {||} : {}}]; after 400 blink}; blink"
    )
    log = tmp_path / "children"
    logged = programs_by(tmp_path / "bin", f"echo $name $* >> {log}")
    words = ["--window-id", window_id, "--text", "saved", "--timeout-s", 8]
    error = peek.error("wait-for", *words, PEEKABOO_OCR_LANGUAGES="eng", **logged)  # a run for each language
    assert error["code"] == "TIMEOUT"
    runs = log.read_text().splitlines()
    assert sum("--psm" in run for run in runs) <= 3  # two states, perhaps one in between
    assert sum(run.startswith("maim") for run in runs) > 4
    # the compared image is also read by OCR; there is no second capture in another format
    assert {run.split()[3] for run in runs if run.startswith("maim --hide")} == {"png"}, runs


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        ("--window-id ID --text Xylophone", "'Preparing the files'"),
        ("--app Slow --title Finished", "'Slow work'"),
        ("--app Nowhere", "Nowhere"),
        ("--window-id ID --closed", "is open"),
    ],
)
def test_wait_for_timeout_shows_the_state(peek: Program, open_window: Opener, words: str, seen: str) -> None:
    window_id, _ = open_window("")
    error = peek.error("wait-for", *words.replace("ID", str(window_id)).split(), "--timeout-s", 1)
    assert error["code"] == "TIMEOUT" and seen in error["message"]


def test_wait_for_text_skips_a_minimised_window(peek: Program, open_window: Opener) -> None:
    window_id, _ = open_window("")
    minimise = ["xdotool", "windowminimize", "--sync", str(window_id)]
    subprocess.run(minimise, env=peek.environment, check=True)
    open_window("")
    error = peek.error("wait-for", "--app", "Slow", "--text", "Xylophone", "--timeout-s", 1)
    assert error["code"] == "TIMEOUT" and "'Preparing the files'" in error["message"]
    assert peek.data("wait-for", "--app", "Slow", "--text", "Preparing")["found"]
    error = peek.error("wait-for", "--window-id", window_id, "--text", "Preparing", "--timeout-s", 1)
    assert error["code"] == "TIMEOUT" and "is minimised" in error["message"]


def test_wait_for_a_window_its_title_and_its_closing(peek: Program, open_window: Opener) -> None:
    def waiting(*words: object) -> Callable[[], str]:
        process = peek.start("wait-for", *words, "--timeout-s", 40, "--json")
        return lambda: process.communicate(timeout=PATIENCE_S)[0].decode()

    answer = waiting("--app", "Slow")
    window_id, program = open_window(ON_COMMAND)
    assert f'"window_id": {window_id}' in answer()
    answer = waiting("--title", "finished")
    program.tell('wm title . "Work: Finished"')
    assert '"title": "Work: Finished"' in answer()
    answer = waiting("--window-id", window_id, "--closed")
    program.tell("exit")
    assert '"closed": true' in answer()
    error = peek.error("wait-for", "--window-id", window_id, "--text", "saved", "--timeout-s", 5)
    assert error["code"] == "WINDOW_NOT_FOUND"


def test_wait_for_an_app_finds_its_second_window(peek: Program, open_window: Opener) -> None:
    window_id, _ = open_window("toplevel .more; wm title .more Progress; wm geometry .more 200x100+600+90")
    assert peek.data("wait-for", "--app", "Slow", "--title", "Progress")["window_id"] != window_id
    assert peek.data("wait-for", "--app", "Toplevel", "--title", "Slow work")["window_id"] == window_id


def test_wait_for_in_the_shell_may_take_ten_minutes(peek: Program) -> None:
    assert peek.data("wait-for", "--app", "Slow", "--closed", "--timeout-s", 600)["closed"] is True
    assert error_of(look_tools.wait_for, app="Slow", timeout_s=46).hint == "give a number from 1 to 45"


def test_wait_for_still_needs_a_second_without_changes(peek: Program, open_window: Opener) -> None:
    window_id, program = open_window(
        f"proc tick {{}} {{incr ::n; set ::timer [after 200 tick]}}; set n 100000; tick; {ON_COMMAND}"
    )
    still = ["wait-for", "--window-id", window_id, "--still", "--timeout-s"]
    # the last change may be a digit no larger than a caret
    assert peek.error(*still, 4)["code"] == "TIMEOUT"
    program.tell("after cancel $timer")
    assert peek.data(*still, 40)["waited_s"] >= 1


# a Mac may flash at each capture, so it captures less often
@pytest.mark.parametrize(
    ("signs", "cost", "most"), [(1, 1, 0), (2, 1, 0), (2, 2, 0), (3, 1, 25), (4, 1, 25), (3, 2, 15)]
)
def test_still_ignores_carets(monkeypatch: pytest.MonkeyPatch, signs: int, cost: int, most: int) -> None:
    """A corner of the window has the next of `signs` colours in each capture."""
    captures, pauses = itertools.count(1), [0.0]

    def capture(*_: Any) -> Bitmap:
        corner = bytes([next(captures) % signs] * 3)
        return Bitmap(300, 3, (corner + bytes(3 * 299), *[bytes(3 * 300)] * 199))

    desktop: Any = SimpleNamespace(capture_cost=cost, snapshot=lambda **_: Scene((window(7),), (), ()))
    monkeypatch.setattr(wait, "pause", pauses.append)
    monkeypatch.setattr(wait, "time", SimpleNamespace(monotonic=lambda: sum(pauses)))
    monkeypatch.setattr(wait, "take_bitmap", capture)
    with pytest.raises(PeekabooError, match="stop changing") if most else nullcontext():
        wait.wait_for(desktop, 7, None, None, None, None, False, True, 20)
    assert not most or next(captures) == most + 1


def test_wait_for_closed_includes_other_workspaces() -> None:
    away = window(7, is_elsewhere=True, is_on_screen=False)
    scene = Scene((away,), (app("Notes", 60),), ())
    assert [wait._windows(scene, None, "Notes", closed) for closed in (True, False)] == [[away], []]


BAD = (
    ("", "neither a window nor an app"),
    ("--text a", "neither a window nor an app"),
    ("--window-id 7", "no condition"),
    ("--window-id 7 --still --role button", "no text"),
    ("--window-id 7 --app x --closed", "both a window and an app"),
    ("--app x --closed --still", "several conditions"),
    ("--app x --text=", "is empty"),
    ("--title=", "is empty"),
    ("--app x --timeout-s 601", "timeout_s is 601; give a number from 1 to 600"),
    ("--app x --timeout-s 0", "timeout_s is 0"),
)


@pytest.mark.parametrize(("words", "problem"), BAD)
def test_wait_for_an_impossible_condition_is_refused(peek: Program, words: str, problem: str) -> None:
    argv = [word.replace("=", "= ") for word in words.split()]  # a space is no text
    error = peek.error("wait-for", *argv)
    assert error["code"] == "INVALID_ARGUMENT" and problem in error["message"]

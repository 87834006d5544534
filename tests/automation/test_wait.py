"""Waiting for a text, a title, an end or stillness: on X11, in a window that changes by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Callable

import pytest
from accessible import group_of
from fakemac import FakeMac
from macs import mac_environment
from samples import window
from worlds import X_PROGRAMS, Program, clean_environment, need, program_words, wait_for

from peekaboo_min.automation import wait
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import Scene
from peekaboo_min.system.images import Bitmap

# %s: what happens by itself, as Tcl.
WINDOW = """
wm title . "Slow work"
wm geometry . 420x160+90+90
label .state -text "Preparing the files" -font {{DejaVu Sans} 14}
label .count -textvariable n -font {{DejaVu Sans} 14}
pack .state .count -padx 20 -pady 20
set n ""
%s
puts ready; flush stdout
"""


@pytest.fixture
def peek(display: str, tmp_path: Path) -> Program:
    need("tesseract", "convert")
    return Program(program_words("package"), clean_environment(tmp_path, DISPLAY=display))


@pytest.fixture
def open_window(
    display: str, tmp_path: Path, peek: Program
) -> Iterator[Callable[[str], tuple[int, subprocess.Popen[str]]]]:
    """Opens such a window: its id, and its program, which reads commands from stdin where its script does."""
    with ExitStack() as stack:

        def open_one(script: str) -> tuple[int, subprocess.Popen[str]]:
            path = tmp_path / "window.tcl"
            path.write_text(WINDOW % script, encoding="utf-8")
            words, environment = ["wish", str(path), "-name", "Slow"], {**os.environ, "DISPLAY": display}
            process = stack.enter_context(group_of(words, environment, stdin=subprocess.PIPE))
            assert process.stdout and process.stdout.readline() == "ready\n"

            def find() -> list[int]:
                windows = peek.data("windows")["windows"]
                return [one["window_id"] for one in windows if one["title"] == "Slow work"]

            return wait_for(find, "it is listed")[0], process

        yield open_one


# what a line on stdin does, so that the test decides when
ON_COMMAND = (
    "fileevent stdin readable {if {[gets stdin line] >= 0} {eval $line} else {fileevent stdin readable {}}}"
)


def tell(process: subprocess.Popen[str], script: str) -> None:
    assert process.stdin
    process.stdin.write(f"{script}\n")
    process.stdin.flush()


Opener = Callable[[str], tuple[int, "subprocess.Popen[str]"]]


def test_a_text_that_comes_later_is_answered_with_its_place(peek: Program, open_window: Opener) -> None:
    window_id, _ = open_window('after 2500 {.state configure -text "All files saved"}')
    answer = peek.data("wait-for", "--window-id", window_id, "--text", "files saved", "--timeout-s", 30)
    (hit,) = answer["found"]
    assert (hit["text"], hit["match"], answer["window_id"]) == ("files saved", "part", window_id)
    assert 0 < answer["waited_s"] < 34
    # its pixels are for click, by the screenshot that it names
    clicked = peek.data("click", window_id, hit["x"], hit["y"], "--screenshot-id", answer["screenshot_id"])
    assert clicked["delivered"] is True


def test_a_picture_is_read_once_and_a_blinking_one_is_read_once_for_each_state(
    peek: Program, open_window: Opener, tmp_path: Path
) -> None:
    window_id, _ = open_window(
        "proc blink {} {set ::n [expr {$::n eq {} ? {||} : {}}]; after 400 blink}; blink"
    )
    programs, log = tmp_path / "bin", tmp_path / "children"
    programs.mkdir()
    for name in {*X_PROGRAMS, "tesseract", "xdpyinfo", "xargs"}:
        found = shutil.which(name)
        if found:
            (programs / name).write_text(f'#!/bin/sh\necho {name} $* >> {log}\nexec {found} "$@"\n')
            (programs / name).chmod(0o755)
    error = peek.error(
        "wait-for", "--window-id", window_id, "--text", "saved", "--timeout-s", 12,
        PEEKABOO_BIN_DIR=str(programs),
    )  # fmt: skip
    assert error["code"] == "TIMEOUT"
    runs = log.read_text().splitlines()
    counts = Counter(run.split()[0] for run in runs)
    # two states, each read by two runs of tesseract, which is asked for its version before
    assert (counts["tesseract"] <= 5, counts["maim"] > 6) == (True, True), counts
    # what is read is what was compared: no second screenshot, of another kind, of a state that is new
    assert {run.split()[3] for run in runs if run.startswith("maim --hide")} == {"png"}, runs


def test_a_text_is_waited_for_on_a_mac(mac: FakeMac) -> None:
    peek = Program(program_words("package"), mac_environment(mac))
    answer = peek.data("wait-for", "--window-id", 1090, "--text", "entry", "--timeout-s", 20)
    assert [(hit["text"], hit["match"]) for hit in answer["found"]] == [("entry", "part")]
    peek.data(
        "click", 1090, *(answer["found"][0][key] for key in "xy"), "--screenshot-id", answer["screenshot_id"]
    )
    assert [one["widget"] for one in mac.events("click")] == ["new"]


def test_what_does_not_come_is_a_timeout_that_tells_what_was_seen(peek: Program, open_window: Opener) -> None:
    window_id, _ = open_window("")
    finished = peek.run(
        "wait-for", "--window-id", window_id, "--text", "Preparing the file", "--timeout-s", 1, "--json"
    )
    assert (finished.code, finished.error["code"]) == (22, "TIMEOUT")
    assert "'Preparing the files'" in finished.error["message"]
    finished = peek.run("wait-for", "--app", "Slow", "--title", "Finished", "--timeout-s", 1, "--json")
    assert (finished.code, "'Slow work'" in finished.error["message"]) == (22, True)
    finished = peek.run("wait-for", "--app", "No such app", "--timeout-s", 1, "--json")
    assert (finished.code, "No such app" in finished.error["message"]) == (22, True)


def test_a_minimised_window_keeps_no_other_from_being_read(
    peek: Program, open_window: Opener, display: str
) -> None:
    window_id, _ = open_window("")
    environment = {**os.environ, "DISPLAY": display}
    subprocess.run(["xdotool", "windowminimize", "--sync", str(window_id)], env=environment, check=True)
    open_window("")
    error = peek.error("wait-for", "--app", "Slow", "--text", "Xylophone", "--timeout-s", 1)
    assert (error["code"], "'Preparing the files'" in error["message"]) == ("TIMEOUT", True), error
    (hit,) = peek.data("wait-for", "--app", "Slow", "--text", "Preparing")["found"]
    assert hit["match"] == "part"
    error = peek.error("wait-for", "--window-id", window_id, "--text", "Preparing", "--timeout-s", 1)
    assert (error["code"], "is minimised" in error["message"]) == ("TIMEOUT", True), error


def test_a_title_and_a_new_window_of_an_app_are_waited_for(peek: Program, open_window: Opener) -> None:
    waiting = peek.start("wait-for", "--app", "Slow", "--timeout-s", "40", "--json")
    window_id, process = open_window(ON_COMMAND)
    out, _ = waiting.communicate(timeout=90)
    assert f'"window_id": {window_id}' in out.decode()
    waiting = peek.start("wait-for", "--title", "finished", "--timeout-s", "40", "--json")
    tell(process, 'wm title . "Work: Finished"')
    out, _ = waiting.communicate(timeout=90)
    assert '"title": "Work: Finished"' in out.decode()


def test_the_end_of_a_window_is_waited_for_and_else_ends_the_waiting(
    peek: Program, open_window: Opener
) -> None:
    window_id, process = open_window(ON_COMMAND)
    error = peek.error("wait-for", "--window-id", window_id, "--closed", "--timeout-s", 1)
    assert (error["code"], "is open" in error["message"]) == ("TIMEOUT", True)
    waiting = peek.start("wait-for", "--window-id", window_id, "--closed", "--timeout-s", "40", "--json")
    tell(process, "exit")
    out, _ = waiting.communicate(timeout=90)
    assert '"closed": true' in out.decode()
    assert peek.data("wait-for", "--app", "Slow", "--closed")["closed"] is True
    error = peek.error("wait-for", "--window-id", window_id, "--text", "saved", "--timeout-s", 5)
    assert error["code"] == "WINDOW_NOT_FOUND"


def test_stillness_comes_once_nothing_changes_for_a_second(peek: Program, open_window: Opener) -> None:
    window_id, process = open_window(
        f"proc tick {{}} {{incr ::n; set ::timer [after 200 tick]}}; set n 100000; tick; {ON_COMMAND}"
    )
    error = peek.error("wait-for", "--window-id", window_id, "--still", "--timeout-s", 12)
    # what was seen last may be a digit no larger than a caret
    assert (error["code"], f"window {window_id}" in error["message"]) == ("TIMEOUT", True)
    tell(process, "after cancel $timer")
    answer = peek.data("wait-for", "--window-id", window_id, "--still", "--timeout-s", 40)
    assert (answer["window_id"], answer["waited_s"] >= 1) == (window_id, True)


class SmallChange:
    """A desktop of one window, in whose corner each look shows the next of some signs."""

    def __init__(self, signs: int) -> None:
        self.signs, self.looks = signs, 0

    def snapshot(self) -> Scene:
        return Scene((window(7),), (), ())

    def bitmap(self) -> Bitmap:
        self.looks += 1
        rows = [bytes(3 * 300)] * 200
        rows[9] = bytes([self.looks % self.signs] * 3) + rows[9][3:]
        return Bitmap(300, 3, tuple(rows))


@pytest.mark.parametrize(("signs", "is_still"), [(1, True), (2, True), (3, False), (4, False)])
def test_what_blinks_is_a_caret_and_what_turns_is_none(
    monkeypatch: pytest.MonkeyPatch, signs: int, is_still: bool
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(wait, "pause", pauses.append)
    monkeypatch.setattr(wait, "time", SimpleNamespace(monotonic=lambda: sum(pauses)))
    monkeypatch.setattr(wait, "take_bitmap", lambda desktop, _: desktop.bitmap())
    try:
        answer = wait.wait_for_condition(SmallChange(signs), window_id=7, still=True, timeout_s=20)
        found = answer.data["window_id"] == 7
    except PeekabooError as e:
        found = e.code is not ErrorCode.TIMEOUT
    assert found is is_still


BAD = [
    ([], "neither a window nor an app"),
    (["--text", "a"], "neither a window nor an app"),
    (["--window-id", "7"], "no condition"),
    (["--window-id", "7", "--app", "x", "--closed"], "both a window and an app"),
    (["--app", "x", "--closed", "--still"], "several conditions"),
    (["--app", "x", "--text", " "], "is empty"),
    (["--title", " "], "is empty"),
    (["--app", "x", "--timeout-s", "46"], "timeout_s is 46"),
    (["--app", "x", "--timeout-s", "0"], "timeout_s is 0"),
]


@pytest.mark.parametrize(("words", "problem"), BAD, ids=[" ".join(words) or "nothing" for words, _ in BAD])
def test_what_cannot_be_waited_for_is_refused(peek: Program, words: list[str], problem: str) -> None:
    finished = peek.run("wait-for", *words, "--json")
    assert (finished.code, problem in finished.error["message"]) == (2, True), finished.out

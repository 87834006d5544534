"""Single characters on keys, found by text recognition; what their application calls them is the truth."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from accessible import elements_of, group_of
from in_process import InProcessProgram
from worlds import X_PROGRAMS, Program, clean_environment, need, wait_for

from peekaboo_min.automation.labels import find_in_lines, with_characters
from peekaboo_min.core.models import RecognisedText, Rect
from peekaboo_min.desktop.x11.ocr import read_characters_by_tesseract, read_text_by_tesseract

# Light on dark and coloured keys, as calculators have them; the last column in another colour.
KEYS = ("C", "CE", "%", "/", "7", "8", "9", "*", "4", "5", "6", "-", "1", "2", "3", "+", "0", "=")
CALCULATOR = """
wm title . "Tk calculator"
wm geometry . +40+60
. configure -background #333333
set at 0
foreach key {%s} {
    set colour [expr {$at %% 4 == 3 ? "#ff9500" : "#505050"}]
    button .key$at -text $key -width 3 -font {{DejaVu Sans} 13 bold} -background $colour -foreground white \\
        -activebackground $colour -activeforeground white -command "puts {$key}; flush stdout"
    grid .key$at -row [expr {$at / 4}] -column [expr {$at %% 4}] -padx 3 -pady 3 -sticky nsew
    incr at
}
update
foreach key [winfo children .] {
    puts "[$key cget -text] [winfo x $key] [winfo y $key] [winfo width $key] [winfo height $key]"
}
puts ready
flush stdout
"""


def is_in(hit: dict[str, Any], box: Rect) -> bool:
    return box.x <= hit["x"] < box.x + box.width and box.y <= hit["y"] < box.y + box.height


def rect_of(element: dict[str, Any]) -> Rect:
    width, height = element["width"], element["height"]
    return Rect(element["x"] - width / 2, element["y"] - height / 2, width, height)


def texts_of(peek: Program, window_id: int, path: Path) -> list[RecognisedText]:
    """A window's words and single characters, read once for many questions."""
    peek.data("screenshot", window_id, "--path", path)
    return with_characters(read_text_by_tesseract(path), read_characters_by_tesseract(path))


def test_every_key_of_a_calculator_is_found_within_it_and_nowhere_else(
    on_gtk: Program, tmp_path: Path
) -> None:
    need("galculator", "tesseract", "convert")
    with group_of(["galculator"], on_gtk.environment) as process:
        told = elements_of(on_gtk, process, "button")
        window_id, keys = told["window_id"], {one["name"]: rect_of(one) for one in told["elements"]}
        (display,) = elements_of(on_gtk, process, "textbox")["elements"]
        texts = texts_of(on_gtk, window_id, tmp_path / "window.png")
    for name in "0123456789+-*/=%()":
        found = [hit.as_data() for hit in find_in_lines(name, texts)]
        assert any(is_in(hit, keys[name]) for hit in found), (name, found)
        # the display shows a 0
        wrong = [hit for hit in found if not is_in(hit, keys[name])]
        assert name == "0" or not wrong, (name, wrong)
        assert all(is_in(hit, rect_of(display)) for hit in wrong), (name, wrong)


def test_a_sum_is_clicked_by_the_texts_of_the_keys(on_gtk: Program) -> None:
    need("galculator", "tesseract", "convert")
    with group_of(["galculator"], on_gtk.environment) as process:
        window_id = elements_of(on_gtk, process, "button")["window_id"]
        assert on_gtk.data("find-text", window_id, "+/-")["found"][0]["text"] == "+/-"
        for name in "7+5=":
            assert on_gtk.data("click-text", "--", window_id, name)["text"] == name

        def shown() -> str:
            return elements_of(on_gtk, process, "textbox")["elements"][0]["value"]

        wait_for(lambda: shown() == "12", f"the display shows the sum, not {shown()!r}")


@pytest.fixture
def calculator(display: str, tmp_path: Path) -> Iterator[tuple[Program, dict[str, Rect]]]:
    """Our program beside a window of light keys, and where each key is in it."""
    need("tesseract", "convert", "wish")
    script = tmp_path / "calculator.tcl"
    script.write_text(CALCULATOR % " ".join(KEYS), encoding="utf-8")
    words = ["wish", str(script)]
    with group_of(words, {**os.environ, "DISPLAY": display}) as process:
        assert process.stdout
        rows = iter(process.stdout.readline, "ready\n")
        keys = {name: Rect(*map(float, place)) for name, *place in map(str.split, rows)}
        yield InProcessProgram(clean_environment(tmp_path, DISPLAY=display)), keys


def listed(peek: Program) -> int:
    def find() -> list[int]:
        windows = peek.data("windows")["windows"]
        return [one["window_id"] for one in windows if one["title"] == "Tk calculator"]

    return wait_for(find, "the calculator is listed")[0]


def test_light_keys_on_dark_and_coloured_ground_are_found(
    calculator: tuple[Program, dict[str, Rect]], tmp_path: Path
) -> None:
    peek, keys = calculator
    texts = texts_of(peek, listed(peek), tmp_path / "window.png")
    for name in KEYS:
        found = [hit.as_data() for hit in find_in_lines(name, texts)]
        assert [is_in(hit, keys[name]) for hit in found] == [True], (name, found)


def test_single_characters_are_read_only_when_one_is_asked_for(
    calculator: tuple[Program, dict[str, Rect]], tmp_path: Path
) -> None:
    peek, keys = calculator
    window_id, log, programs = listed(peek), tmp_path / "runs", tmp_path / "bin"
    programs.mkdir()
    for name in {*X_PROGRAMS, "tesseract", "xdpyinfo", "xargs"}:
        found = shutil.which(name)
        if found:
            (programs / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {log}\nexec {found} "$@"\n')
            (programs / name).chmod(0o755)
    for text, runs in (("Xylophone", 0), ("CE", 0), ("7", 2)):
        log.write_text("")
        finished = peek.run("find-text", window_id, text, "--json", PEEKABOO_BIN_DIR=str(programs))
        assert (log.read_text().count("--psm 11"), log.read_text().count("--psm 10")) == (1, runs), text
    (hit,) = finished.data["found"]
    assert is_in(hit, keys["7"])


def test_a_picture_with_nothing_alone_has_no_characters(tmp_path: Path) -> None:
    need("tesseract", "convert")
    subprocess.run(["convert", "-size", "60x40", "xc:white", str(tmp_path / "white.png")], check=True)
    assert read_characters_by_tesseract(tmp_path / "white.png") == []


# pure


def text_at(text: str, x: float, confidence: float) -> RecognisedText:
    return RecognisedText(text, Rect(x, 0, 10, 10), confidence)


def test_of_two_readings_of_a_place_the_surer_one_counts() -> None:
    words = (text_at("Ibs", 80, 0.4), text_at("Help", 100, 0.9))
    lines = [
        text_at("1", 0, 0.5),
        text_at("3", 50, 0.9),
        RecognisedText("Ibs Help", Rect(80, 0, 30, 10), 0.6, words),
    ]
    characters = [text_at("/", 2, 0.8), text_at("8", 52, 0.6), text_at("4", 82, 0.9), text_at("=", 150, 0.5)]
    characters.append(text_at("+", 151, 0.7))  # the same place, read in two parts of the image
    found = with_characters(lines, characters)
    assert sorted(one.text for one in found) == ["+", "/", "3", "4", "Help"]
    assert find_in_lines("1", found) == []


def test_of_single_characters_one_that_looks_alike_is_found_where_none_is_equal() -> None:
    lines = [text_at(text, 30 * at, 0.9) for at, text in enumerate("1l!")]
    assert [(place.text, place.match) for place in find_in_lines("1", lines)] == [("1", "label")]
    assert [(place.text, place.match) for place in find_in_lines("I", lines)] == [("l", "lookalike")]

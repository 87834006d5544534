"""Single characters on keys, found by text recognition; what their application calls them is the truth."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest
from accessible import elements_of, group_of
from tk_windows import Wish, programs_by, window_titled
from worlds import Program, need, wait_for

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
        -activebackground $colour -activeforeground white -command "puts {$key}"
    grid .key$at -row [expr {$at / 4}] -column [expr {$at %% 4}] -padx 3 -pady 3 -sticky nsew
    incr at
}
update
foreach key [winfo children .] {
    puts "[$key cget -text] [winfo x $key] [winfo y $key] [winfo width $key] [winfo height $key]"
}
puts ready
"""


@pytest.fixture(autouse=True)
def programs() -> None:
    need("galculator", "tesseract", "convert")


def is_in(hit: dict[str, Any], box: Rect) -> bool:
    return box.x <= hit["x"] < box.x + box.width and box.y <= hit["y"] < box.y + box.height


def rect_of(element: dict[str, Any]) -> Rect:
    width, height = element["width"], element["height"]
    return Rect(element["x"] - width / 2, element["y"] - height / 2, width, height)


def texts_of(peek: Program, window_id: int, path: Path) -> list[RecognisedText]:
    """A window's words and single characters, read once for many questions."""
    peek.data("screenshot", window_id, "--path", path)
    return with_characters(read_text_by_tesseract(path), read_characters_by_tesseract(path))


def test_click_text_presses_the_keys_of_a_calculator(on_gtk: Program, tmp_path: Path) -> None:
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
        assert on_gtk.data("find-text", window_id, "+/-")["found"][0]["text"] == "+/-"
        for name in "7+5=":
            assert on_gtk.data("click-text", "--", window_id, name)["text"] == name

        def shown() -> str:
            return elements_of(on_gtk, process, "textbox")["elements"][0]["value"]

        wait_for(lambda: shown() == "12", f"the display shows the sum, not {shown()!r}")


def test_find_text_reads_single_characters_where_asked(
    peek: Program, wish: Callable[..., Wish], tmp_path: Path
) -> None:
    calculator = wish(CALCULATOR % " ".join(KEYS))
    calculator.wait_for("ready")
    keys = {name: Rect(*map(float, place)) for name, *place in map(str.split, calculator.lines()[:-1])}
    window_id, log = window_titled(peek, "Tk calculator")["window_id"], tmp_path / "runs"
    texts = texts_of(peek, window_id, tmp_path / "window.png")
    for name in KEYS:
        found = [hit.as_data() for hit in find_in_lines(name, texts)]
        assert [is_in(hit, keys[name]) for hit in found] == [True], (name, found)
    logged = programs_by(tmp_path / "bin", f'echo $name "$@" >> {log}')
    for text, runs in (("Xylophone", 0), ("CE", 0), ("7", 2)):
        log.write_text("")
        finished = peek.run("find-text", window_id, text, "--json", **logged)
        assert (log.read_text().count("--psm 11"), log.read_text().count("--psm 10")) == (1, runs), text
    (hit,) = finished.data["found"]
    assert is_in(hit, keys["7"])


def test_read_characters_of_an_empty_picture_finds_none(tmp_path: Path) -> None:
    subprocess.run(["convert", "-size", "60x40", "xc:white", str(tmp_path / "white.png")], check=True)
    assert read_characters_by_tesseract(tmp_path / "white.png") == []


# pure


def text_at(text: str, x: float, confidence: float) -> RecognisedText:
    return RecognisedText(text, Rect(x, 0, 10, 10), confidence)


def test_read_characters_keeps_the_surer_reading() -> None:
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


def test_label_of_one_character_that_looks_alike() -> None:
    lines = [text_at(text, 30 * at, 0.9) for at, text in enumerate("1l!")]
    assert [(place.text, place.match) for place in find_in_lines("1", lines)] == [("1", "label")]
    assert [(place.text, place.match) for place in find_in_lines("I", lines)] == [("l", "lookalike")]

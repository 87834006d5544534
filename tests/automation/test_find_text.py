"""Finding a text in a window: what is found, how it is ranked, and that a click there hits it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest
from fakemac import FakeMac
from forked import ForkedProgram
from worlds import (
    ROOT,
    X_PROGRAMS,
    Form,
    Program,
    clean_environment,
    need,
    program_words,
    wait_for,
    x_server,
)

from peekaboo_min.automation.find_text import compare_texts, find_in_lines, words_of_line
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import RecognisedText, Rect
from peekaboo_min.desktop.x11.ocr import read_text_by_tesseract

# Buttons with light texts on colours, as applications have them; name, text, colour, font.
BUTTONS = (
    ("save", "Save", "#1a73e8", "{DejaVu Sans} 9"),
    ("cancel", "Cancel", "#d93025", "{DejaVu Sans} 11"),
    ("approve", "Approve", "#188038", "{DejaVu Sans} 14 bold"),
    ("reject", "Reject", "#f29900", "{DejaVu Sans} 11"),
    ("archive", "Archive", "#5f6368", "{DejaVu Serif} 11"),
    ("again", "Save", "#7b1fa2", "{DejaVu Sans} 11"),
)
BUTTON_WINDOW = """
wm title . Buttons
wm geometry . +500+80
. configure -background #f4f1ea
label .head -text "Requests of today" -font {{DejaVu Sans} 12} -background #f4f1ea
pack .head -padx 20 -pady 8
foreach {name text colour font} {%s} {
    button .$name -text $text -background $colour -activebackground $colour \
        -foreground white -activeforeground white -font $font -relief flat -borderwidth 0 \
        -highlightthickness 0 -padx 14 -pady 6 -command "puts $name; flush stdout"
    pack .$name -padx 60 -pady 7
}
"""


@pytest.fixture
def peek(display: str, tmp_path: Path) -> Program:
    """The package on the session's display; the other tests prove that the single file is the same."""
    need("tesseract", "convert")
    return ForkedProgram(clean_environment(tmp_path, DISPLAY=display))


@pytest.fixture
def form_id(peek: Program, form: Form) -> int:
    return window_titled(peek, form.title)


def window_titled(program: Program, title: str) -> int:
    def find() -> list[int]:
        return [one["window_id"] for one in program.data("windows")["windows"] if one["title"] == title]

    return wait_for(find, f"{title} is listed")[0]


def find(program: Program, window_id: int, text: str) -> dict[str, Any]:
    return program.data("find-text", window_id, text)


def widget_at(form: Form, place: dict[str, Any]) -> str:
    """The form's widget under a place's pixel."""
    layout = {one["widget"]: one for one in form.events("layout")}
    for name, one in layout.items():
        if 0 <= place["x"] - one["x"] < one["width"] and 0 <= place["y"] - one["y"] < one["height"]:
            return name
    return ""


def test_a_label_is_found_and_a_click_there_presses_its_button(
    peek: Program, form: Form, form_id: int
) -> None:
    told = find(peek, form_id, "Sign the book")
    assert set(told) == {"window_id", "screenshot_id", "image_width", "image_height", "found"}
    best = told["found"][0]
    assert set(best) == {"text", "x", "y", "box", "match", "confidence"}
    assert (best["text"], best["match"], widget_at(form, best)) == ("Sign the book", "exact", "sign")
    assert best["confidence"] > 0.7
    box = best["box"]
    assert box["x"] < best["x"] < box["x"] + box["width"] and box["y"] < best["y"] < box["y"] + box["height"]
    # another screenshot since: the id tells whose pixels these are
    peek.data("screenshot", form_id, "--max-dimension", 200)
    peek.data("click", form_id, best["x"], best["y"], "--screenshot-id", told["screenshot_id"])
    assert form.wait_for_event("sign")["agreed"] == 0


def read(program: Program, window_id: int, folder: Path) -> list[RecognisedText]:
    """A window's lines, read once for many questions."""
    program.data("screenshot", window_id, "--path", folder / "window.png")
    return read_text_by_tesseract(folder / "window.png")


def test_another_case_a_misspelling_a_part_of_a_line_and_several_places(
    peek: Program, form: Form, form_id: int, tmp_path: Path
) -> None:
    lines = read(peek, form_id, tmp_path)
    table = {
        "DETAILS": [("Details", "case_insensitive", "details")],
        "Sing teh book": [("Sign the book", "close", "sign")],
        "E-mai1": [("E-mail", "close", "mail_label")],
        "my name to other": [("my name to other", "exact", "agree")],
        "E-mail": [("E-mail", "exact", "mail_label")],
        "book": [("book", "exact", "head"), ("book", "exact", "sign")],
    }
    for text, expected in table.items():
        hits = find_in_lines(text, lines)[: len(expected)]
        assert [(hit.text, hit.match, widget_at(form, hit.as_data())) for hit in hits] == expected
    # the word, not the line's middle
    assert hits[1].as_data()["x"] > form.centre("sign")[0] + 15


def test_people_are_told_the_places_and_where_there_is_none_the_nearest_lines(
    peek: Program, form_id: int
) -> None:
    finished = peek.run("find-text", form_id, "book")
    assert (finished.code, finished.err) == (0, "")
    head, first, second = finished.out.rstrip().split("\n")[:3]
    assert head.startswith(f"found 'book' in 2 places in window {form_id}, in pixels of screenshot ")
    assert first.endswith(": 'book' (exact)") and second.endswith(": 'book' (exact)")
    document = peek.run("find-text", form_id, "Xylophone", "--json")
    assert (document.code, document.data["found"]) == (3, [])
    finished = peek.run("find-text", form_id, "Xylophone")
    assert (finished.code, finished.err) == (3, "")
    assert finished.out.startswith(
        f"no text like 'Xylophone' was recognised in window {form_id}; the nearest of "
    )


@pytest.fixture
def button_window(
    display: str, peek: Program, tmp_path: Path
) -> Iterator[tuple[int, Callable[[], list[str]]]]:
    """A window of light texts on colours: its id, and the names of the buttons that were pressed."""
    script, said = tmp_path / "buttons.tcl", tmp_path / "pressed"
    rows = " ".join(f"{name} {text} {colour} {{{font}}}" for name, text, colour, font in BUTTONS)
    script.write_text(BUTTON_WINDOW % rows, encoding="utf-8")
    with said.open("w") as out:
        process = subprocess.Popen(["wish", str(script)], env={**os.environ, "DISPLAY": display}, stdout=out)
    try:
        yield window_titled(peek, "Buttons"), lambda: said.read_text().split()
    finally:
        process.kill()
        process.wait()


def test_light_texts_on_coloured_buttons_are_found_and_pressed(
    peek: Program, button_window: tuple[int, Callable[[], list[str]]], tmp_path: Path
) -> None:
    window_id, pressed = button_window
    lines = read(peek, window_id, tmp_path)
    found = [
        (text, find_in_lines(text, lines))
        for text in ("Requests of today", *sorted({row[1] for row in BUTTONS}))
    ]
    assert [[(hit.text, hit.match) for hit in hits] for _, hits in found] == [
        [(text, "exact")] * (2 if text == "Save" else 1) for text, _ in found
    ]
    for place, name in ((0, "save"), (1, "again")):
        told = find(peek, window_id, "Save")
        best = told["found"][place]
        peek.data("click", window_id, best["x"], best["y"], "--screenshot-id", told["screenshot_id"])
        wait_for(lambda name=name: pressed()[-1:] == [name], f"{name} is pressed")


def test_a_text_is_found_and_clicked_in_one_call(peek: Program, form: Form, form_id: int) -> None:
    answer = peek.data("click-text", form_id, "sign the BOOK", "--verify")
    assert form.wait_for_event("sign")["agreed"] == 0
    assert (answer["text"], answer["delivered"], answer["changed"]) == ("Sign the book", True, True)
    assert widget_at(form, answer["pixel"]) == "sign"


def test_two_equally_good_places_and_none_are_errors_and_nothing_is_clicked(
    peek: Program, form: Form, form_id: int
) -> None:
    error = peek.error("click-text", form_id, "book")
    assert error["code"] == "AMBIGUOUS_TEXT"
    places = re.findall(r"'book' at x (\d+) y (\d+)", error["message"])
    hit = [widget_at(form, {"x": int(x), "y": int(y)}) for x, y in places]
    assert hit == ["head", "sign"]
    # what it names can be clicked
    (shot,) = re.findall(r"screenshot_id ([0-9a-f]{16})", error["message"])
    error = peek.error("click-text", form_id, "Xylophone")
    assert (error["code"], "'Sign the book'" in error["message"]) == ("TEXT_NOT_FOUND", True)
    assert form.events("click") == []
    peek.data("click", form_id, *places[1], "--screenshot-id", shot)
    form.wait_for_event("sign")


def test_a_large_window_is_read_whole_and_answered_in_the_pixels_of_its_screenshot(
    tmp_path: Path,
) -> None:
    need("tesseract", "convert")
    with x_server(screen="2560x1600x24") as name:
        peek = Program(program_words("package"), clean_environment(tmp_path, DISPLAY=name))
        form = Form(name, tmp_path / "report.jsonl", place="2400x1500+40+40")
        try:
            window_id = window_titled(peek, form.title)
            told = find(peek, window_id, "Sign the book")
            # as take_window_screenshot gives it
            size = (told["image_width"], told["image_height"])
            assert max(size) <= 1568 and size[0] * size[1] <= 1_150_000
            best = told["found"][0]
            assert best["match"] == "exact"
            peek.data("click", window_id, best["x"], best["y"])
            form.wait_for_event("sign")
        finally:
            form.close()


def test_the_example_script_clicks_a_word(peek: Program, form: Form) -> None:
    need("python3")
    words = [str(ROOT / "scripts" / "click_word.sh"), "Form", "Sign the book"]
    done = subprocess.run(words, env=peek.environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    form.wait_for_event("sign")
    done = subprocess.run(
        [*words[:2], "Xylophone"], env=peek.environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, "does not show: Xylophone" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "is empty"), (" \t ", "is empty"), ("\u202e", "is empty")],
    ids=["empty", "blank", "invisible"],
)
def test_no_text_is_no_question(peek: Program, text: str, said: str) -> None:
    finished = peek.run("find-text", 7, text, "--json")
    assert (finished.code, finished.error["code"]) == (2, "INVALID_ARGUMENT")
    assert said in finished.error["message"]


def test_a_window_that_is_gone_is_not_found(peek: Program) -> None:
    assert peek.error("find-text", 7, "Save")["code"] == "WINDOW_NOT_FOUND"


def test_without_tesseract_its_package_is_named_and_no_image_remains(
    peek: Program, form_id: int, tmp_path: Path
) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in X_PROGRAMS:
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(found)
    error = peek.error("find-text", form_id, "Name", PEEKABOO_BIN_DIR=str(folder))
    assert error["code"] == "MISSING_PROGRAM"
    assert "tesseract" in error["message"] and "tesseract-ocr" in error["message"]
    assert list((tmp_path / "tmp").rglob("*.png")) == []


def test_what_is_not_an_image_is_not_read(tmp_path: Path) -> None:
    # convert would obey a drawing's commands
    drawing = tmp_path / "drawing.png"
    drawing.write_text(
        "push graphic-context\nimage over 0,0 0,0 '/etc/passwd'\npop graphic-context\n", encoding="utf-8"
    )
    with pytest.raises(PeekabooError) as caught:
        read_text_by_tesseract(drawing)
    assert caught.value.code is ErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("text", "found", "match", "widget"),
    [
        ("entry", "entry", "exact", "new"),
        ("twice", "Twice", "case_insensitive", "double"),
        ("1ater", "Later", "close", "slow"),
    ],
)
def test_on_a_mac_the_same_finds_labels_and_hits_them(
    tmp_path: Path, text: str, found: str, match: str, widget: str
) -> None:
    need("node")
    mac = FakeMac(tmp_path)
    program = Program([sys.executable, "-m", "peekaboo_min"], {**mac.env(), "PYTHONPATH": str(ROOT)})
    told = find(program, 1090, text)
    best = told["found"][0]
    assert (best["text"], best["match"]) == (found, match)
    assert (told["image_width"], told["image_height"]) == (960, 720)
    program.data("click", 1090, best["x"], best["y"], "--screenshot-id", told["screenshot_id"])
    clicks = [(one["window"], one["widget"]) for one in mac.events("click")]
    assert clicks[-1] == (1090, widget)


# pure -------------------------------------------------------------------------------------------------------


def line(text: str, y: float = 0.0, confidence: float = 0.9) -> RecognisedText:
    """A line whose letters are 10 pixels wide and 20 high."""
    return RecognisedText(text, Rect(100, y, len(text) * 10, 20), confidence)


@pytest.mark.parametrize(
    ("wanted", "text", "match"),
    [
        ("Save", "Save", "exact"),
        ("Save", "Save...", "exact"),
        ("Name", "Name:", "exact"),
        ("save", "[Save]", "case_insensitive"),
        ("STRASSE", "Straße", "case_insensitive"),
        ("Illinois", "lllin0is", "close"),
        ("Log in", "Login", "close"),
        ("Keynote", "Keynole", "close"),
        ("+", "+", "exact"),
        ("+", "-", ""),
        ("Save", "Cancel", ""),
        ("OK", "0k", "close"),
        ("File", "FiIe", "close"),
        ("Yes", "bytes", ""),
        ("Chat", "Chart", ""),
        ("Sent", "set", ""),
        ("Save", "Saved", ""),
        ("Log in", "Login", "close"),
        ("OK", "No", ""),
    ],
)
def test_texts_are_compared_as_people_read_them(wanted: str, text: str, match: str) -> None:
    assert compare_texts(wanted, text)[0] == match


def test_the_best_place_comes_first() -> None:
    lines = [
        line("Saved", 0),
        line("save", 40),
        line("Save all of it", 80),
        line("Save", 120),
        line("Please Save", 160),
    ]
    found = [(hit.text, hit.match, hit.box.y) for hit in find_in_lines("Save", lines)]
    assert found == [
        ("Save", "exact", 120),
        ("Save", "exact", 80),
        ("Save", "exact", 160),
        ("save", "case_insensitive", 40),
    ]


def test_a_part_of_a_line_without_word_boxes_has_its_share_of_the_box() -> None:
    (hit,) = find_in_lines("my name", [line("Show my name to all", 40)])
    assert (hit.text, hit.box) == ("my name", Rect(150, 40, 70, 20))


def test_words_with_boxes_of_their_own_are_believed() -> None:
    words = (
        RecognisedText("Save", Rect(0, 0, 30, 9), 0.9),
        RecognisedText("Cancel", Rect(500, 0, 50, 9), 0.7),
    )
    whole = RecognisedText("Save Cancel", Rect(0, 0, 550, 9), 0.8, words)
    (hit,) = find_in_lines("Cancel", [whole])
    assert (hit.box, hit.confidence, hit.is_whole_line) == (Rect(500, 0, 50, 9), 0.7, False)
    assert words_of_line(whole) == list(words)


def test_the_same_word_twice_in_a_line_is_two_places() -> None:
    assert [hit.box.x for hit in find_in_lines("go", [line("go and go")])] == [100, 170]


def test_what_a_window_shows_cannot_turn_the_text_round_or_flood() -> None:
    (hit,) = find_in_lines("Pay", [line("Pay\u202e")])
    assert hit.text == "Pay"
    assert len(find_in_lines("go", [line("go", y) for y in range(0, 900, 30)])) == 20

"""Text found with OCR: matches, their ranking, and clicks on them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest
from accessible import elements_of, group_of
from samples import error_of
from tk_windows import Wish, programs_by, window_titled
from worlds import Form, Program, need, wait_for

from peekaboo_min.automation.labels import find_in_lines, with_characters
from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.core.models import RecognisedText, Rect
from peekaboo_min.desktop.readings import best_readings, parse_pgm
from peekaboo_min.desktop.x11.ocr import (
    _character,
    missing_language,
    read_characters_by_tesseract,
    read_text_by_tesseract,
    text_languages,
)


@pytest.fixture(autouse=True)
def programs() -> None:
    need("tesseract", "convert", "galculator")


def widget_at(form: Form, place: dict[str, Any]) -> str:
    """Return the name of the form's widget at a place; empty if there is none."""
    layout = {one["widget"]: one for one in form.events("layout")}
    for name, one in layout.items():
        if 0 <= place["x"] - one["x"] < one["width"] and 0 <= place["y"] - one["y"] < one["height"]:
            return name
    return ""


def test_find_text_and_click_text_press_the_button(peek: Program, form: Form, form_id: int) -> None:
    reply = peek.data("find-text", form_id, "Sign the book")
    assert list(Path(peek.environment["TMPDIR"]).rglob("*.png")) == []
    best, box = reply["found"][0], reply["found"][0]["box"]
    assert (best["text"], best["match"], widget_at(form, best)) == ("Sign the book", "label", "sign")
    assert best["confidence"] > 0.7
    assert box["x"] < best["x"] < box["x"] + box["width"] and box["y"] < best["y"] < box["y"] + box["height"]
    answer = peek.data("click-text", form_id, "sign the BOOK", "--verify")
    assert form.wait_for_event("sign")["agreed"] == 0
    assert answer["text"] == "Sign the book" and answer["delivered"] and answer["changed"]
    # other screenshots were taken since; pass the id
    peek.data("screenshot", form_id, "--max-dimension", 200)
    peek.data("click", form_id, best["x"], best["y"], "--screenshot-id", reply["screenshot_id"])
    form.wait_for_event("sign", after=1)


def read(program: Program, window_id: int, folder: Path) -> list[RecognisedText]:
    program.data("screenshot", window_id, "--path", folder / "window.png")
    return read_text_by_tesseract(folder / "window.png")


# A bold title, light text on coloured buttons, frames close to text, a striped list with two rows selected,
# a disabled button, a placeholder.
WINDOW = """
wm title . Shown
wm geometry . +60+20
. configure -background #f0f0f0
label .title -text "Purchase request" -font {{DejaVu Sans} -36 bold} -background #1a3a6b -foreground white
pack .title -fill x -ipady 8
foreach {text colour font} {
    Apply #1a73e8 {{DejaVu Sans} 9} Cancel #d93025 {{DejaVu Sans} 11} Approve #188038 {{DejaVu Sans} 14 bold}
    Reject #f29900 {{DejaVu Sans} 11} Archive #5f6368 {{DejaVu Serif} 11}
} {
    button .x$text -text $text -background $colour -foreground white -font $font -relief flat \
        -borderwidth 0 -highlightthickness 0 -padx 14 -pady 6
    pack .x$text -padx 60 -pady 7
}
foreach {text back fore} {Save #2e8b57 white Delete #f0f0f0 #202020} {
    frame .f$text -background $back -width 130 -height 40 -highlightthickness 2 -highlightbackground black
    label .f$text.text -text $text -font {{DejaVu Sans} -15} -background $back -foreground $fore
    place .f$text.text -relx 0.5 -rely 0.5 -anchor center
    pack .f$text -padx 7 -pady 12
}
ttk::style configure Treeview -font {{DejaVu Sans} -13} -rowheight 24
ttk::treeview .list -columns kind -show tree -height 4
.list tag configure odd -background #e8eef7
foreach {name kind tag} {Hamburg Harbour {} Bremen Airport odd Kassel Station {} Munich Market odd} {
    .list insert {} end -id $name -text $name -values $kind -tags $tag
}
.list selection set {Bremen Kassel}
pack .list
pack [button .off -text "Export page" -state disabled -font {{DejaVu Sans} 10}] -pady 7
pack [entry .empty -foreground #a8a8a8 -font {{DejaVu Sans} 10}] -pady 7
.empty insert 0 "Search files"
"""
TEXTS = (
    *("Purchase request", "Apply", "Cancel", "Approve", "Reject", "Archive", "Save", "Delete"),
    *("Hamburg", "Harbour", "Bremen", "Airport", "Kassel", "Station", "Munich", "Market"),
    *("Export page", "Search files"),
)


def test_find_text_reads_colours_and_lists(peek: Program, wish: Callable[..., Wish], tmp_path: Path) -> None:
    wish(WINDOW)
    lines = read(peek, window_titled(peek, "Shown")["window_id"], tmp_path)
    labels = {text: [place.match for place in find_in_lines(text, lines)] for text in TEXTS}
    assert labels == {text: ["label"] for text in TEXTS}


def test_find_text_without_tesseract_names_its_package(peek: Program, form_id: int, tmp_path: Path) -> None:
    without = programs_by(tmp_path / "bin", "exit 1", "tesseract")
    (tmp_path / "bin" / "tesseract").unlink()
    error = peek.error("find-text", form_id, "Name", **without)
    assert error["code"] == "MISSING_PROGRAM" and "tesseract-ocr" in error["message"]
    assert list((tmp_path / "tmp").rglob("*.png")) == []


# installed, the locale, PEEKABOO_OCR_LANGUAGES, a text -> languages that are used, the missing package
LANGUAGES = {
    ("osd eng", "C.UTF-8", "", "Save 25 °C"): (["eng"], ""),
    ("eng", "C.UTF-8", "", "Schlüssel"): (["eng"], "tesseract-ocr-deu"),
    ("eng", "C.UTF-8", "", "Ж"): (["eng"], "tesseract-ocr-rus"),
    ("eng", "fr_FR.UTF-8", "", "Save"): (["eng"], "tesseract-ocr-fra"),
    ("eng osd rus deu", "de_DE.UTF-8", "", "Größe Ж"): (["deu", "eng", "rus"], ""),
    ("eng rus deu", "de_DE.UTF-8", "rus+eng", "Save"): (["rus", "eng"], ""),
    ("afr ara ces deu eng fra rus spa swe", "sv_SE", "", ""): (["swe", "eng", "deu", "rus", "fra"], ""),
    ("eng script/Latin", "C", "", "ő"): (["eng", "script/Latin"], ""),
}  # fmt: skip


@pytest.mark.parametrize(("installed", "locale", "variable", "text"), LANGUAGES)
def test_text_languages_are_those_installed(
    environment: Callable[..., None], tmp_path: Path, installed: str, locale: str, variable: str, text: str
) -> None:
    listed = programs_by(tmp_path / "bin", f"printf 'List:\n'; printf '%s\n' {installed}; exit", "tesseract")
    environment(LC_ALL=locale, PEEKABOO_OCR_LANGUAGES=variable, **listed)
    assert (text_languages(), missing_language(text)) == LANGUAGES[installed, locale, variable, text]


# the readings of one line by several languages, as WORD:TENTHS_OF_CONFIDENCE -> the merged line
MERGED = {
    ("Save:9 %:9", "Save:9"): "Save %",
    ("Save:9 %:9", "Save:9", "Save:9"): "Save",  # a part of a picture
    ("Schlussel:9", "Schlüssel:9"): "Schlüssel",
    ("Sove:5", "Save:9"): "Save",
    ("C:8", "С:9"): "C",  # noqa: RUF001 - the second is Cyrillic
    ("Bce:8", "Все:9"): "Все",  # noqa: RUF001
}  # fmt: skip


@pytest.mark.parametrize("readings", MERGED)
def test_line_is_merged_from_the_readings_of_each_language(readings: tuple[str, ...]) -> None:
    def words(reading: str) -> list[RecognisedText]:
        pairs = [word.split(":") for word in reading.split()]
        return [text_at(text, 30 * at, int(tenths) / 10) for at, (text, tenths) in enumerate(pairs)]

    white = parse_pgm(b"P5\n300 50\n255\n" + b"\xff" * 300 * 50)
    (line,) = best_readings([[words(reading)] for reading in readings], white)
    assert [word.text for word in line] == MERGED[readings].split()


@pytest.mark.parametrize("points", ["26", "48"])
def test_large_bold_title_is_text_and_not_background(tmp_path: Path, points: str) -> None:
    style = ["-background", "#f4f1ea", "-fill", "#1b3a57", "-font", "DejaVu-Sans-Bold", "-pointsize", points]
    style += ["label:Visitor book", "-set", "comment", "made by hand"]
    subprocess.run(["convert", *style, str(tmp_path / "title.jpg")], check=True)
    assert [line.text for line in read_text_by_tesseract(tmp_path / "title.jpg")] == ["Visitor book"]


def test_doctor_lists_the_languages_and_names_the_missing_package(peek: Program) -> None:
    check = {one["name"]: one for one in peek.data("doctor", LC_ALL="et_EE")["checks"]}["text languages"]
    assert "eng" in check["found"].split(", ") and check["ok"]
    checks = {one["name"]: one for one in peek.data("doctor", LC_ALL="he_IL.UTF-8")["checks"]}
    assert checks["text languages"]["found"].endswith("; not yours")
    assert checks["text languages"]["advice"] == "sudo apt-get install tesseract-ocr-heb"
    error = peek.error("find-text", 7, "Save", PEEKABOO_OCR_LANGUAGES="xyz")
    assert "tesseract-ocr-xyz" in error["message"] or error["code"] == "WINDOW_NOT_FOUND"


ACCENTS = """
wm title . Shown
foreach text {Schlüssel Über Größe Zurück Cancel} {
    button .x$text -text $text -font {{DejaVu Sans} -14} -padx 9 -command "puts $text"
    pack .x$text -padx 40 -pady 8
}
"""


def test_accent_is_a_letter(peek: Program, wish: Callable[..., Wish]) -> None:
    program = wish(ACCENTS)
    window_id = window_titled(peek, "Shown")["window_id"]
    for languages in ({"PEEKABOO_OCR_LANGUAGES": "eng"}, {}):
        for text in ("Schlussel", "Uber", "Zuruck", "GroBe"):
            assert peek.error("click-text", window_id, text, **languages)["code"] == "TEXT_NOT_FOUND", text
    assert peek.data("click-text", window_id, "Cancel", PEEKABOO_OCR_LANGUAGES="eng")["text"] == "Cancel"
    program.wait_for("Cancel")
    if "deu" not in text_languages():
        pytest.skip("tesseract has no German data: apt-get install tesseract-ocr-deu")
    for text in ("Schlüssel", "über", "Größe", "Zurück"):
        assert peek.data("click-text", window_id, text)["text"].casefold() == text.casefold()
        program.wait_for(text.capitalize())


NAMED = """
import gi
gi.require_version("Gtk", "3.0")
from gi.repository import Gtk
window, box = Gtk.Window(title="Named"), Gtk.Box(orientation=1, spacing=9, margin=20)
window.add(box)
for kind, text, name in (
    (Gtk.Label, "Save", ""), (Gtk.Button, "Save", ""), (Gtk.Button, "Twice", ""), (Gtk.Button, "Twice", ""),
    (Gtk.Button, "Schlüssel", ""), (Gtk.Button, "~", "Paint it"),
):
    widget = kind(label=text)
    if name:
        widget.get_accessible().set_name(name)
    if kind is Gtk.Button:
        widget.connect("clicked", lambda _, text=name or text: print(text, flush=True))
    box.add(widget)
for value, is_visible in ((5, True), (47, False), (47, True)):
    spin = Gtk.SpinButton.new_with_range(0, 99, 1)
    spin.set_value(value)
    spin.set_visibility(is_visible)
    box.add(spin)
window.show_all()
spin.set_text("")
Gtk.main()
"""


def test_click_text_presses_the_element_of_that_name(on_gtk: Program) -> None:
    with group_of(["/usr/bin/python3", "-I", "-c", NAMED], on_gtk.environment) as process:
        spins = elements_of(on_gtk, process, "spinbutton")
        window_id, english = spins["window_id"], {"PEEKABOO_OCR_LANGUAGES": "eng"}
        assert [one["value"] for one in spins["elements"]] == ["5", "", "47"], "a hidden value is hidden"
        for words in (["Save"], ["Paint it"], ["save", "--role", "button"], ["Schlüssel"]):
            on_gtk.data("wait-for", "--window-id", window_id, "--still")  # after GTK's animations
            reply = on_gtk.data("click-text", window_id, *words, **english)
            assert process.stdout and process.stdout.readline().casefold().strip() == words[0].casefold()
            assert reply["by"] == "tree" and reply["delivered"], words
        for command in (
            ["find-text", window_id, "Paint it"],
            ["wait-for", "--window-id", window_id, "--text", "Paint it"],
        ):
            for options in ([], ["--role", "button"]):
                assert [place["by"] for place in on_gtk.data(*command, *options)["found"]] == ["tree"]
        timeout = on_gtk.error(*command, "--role", "link", "--timeout-s", "1")
        assert timeout["code"] == "TIMEOUT"
        for words, code in ((["Twice"], "AMBIGUOUS_TEXT"), (["Twice", "--role", "link"], "TEXT_NOT_FOUND")):
            assert on_gtk.error("click-text", window_id, *words)["code"] == code
        error = on_gtk.error("click-text", window_id, "Schlüsse", **english)
        assert "accents unverified" in error["message"] and "tesseract-ocr-deu" in error["message"]


def test_read_text_of_a_file_that_is_no_image_is_refused(tmp_path: Path) -> None:
    # convert would run the commands in this drawing
    drawing = tmp_path / "drawing.png"
    drawing.write_text("push graphic-context\nimage over 0,0 0,0 '/etc/passwd'\npop graphic-context\n")
    assert error_of(read_text_by_tesseract, drawing).code is ErrorCode.INVALID_ARGUMENT


def is_in(hit: dict[str, Any], box: Rect) -> bool:
    return box.x <= hit["x"] < box.x + box.width and box.y <= hit["y"] < box.y + box.height


def rect_of(element: dict[str, Any]) -> Rect:
    width, height = element["width"], element["height"]
    return Rect(element["x"] - width / 2, element["y"] - height / 2, width, height)


def test_click_text_presses_the_keys_of_a_calculator(on_gtk: Program, tmp_path: Path) -> None:
    with group_of(["galculator"], on_gtk.environment) as process:
        reply = elements_of(on_gtk, process, "button")
        window_id, keys = reply["window_id"], {one["name"]: rect_of(one) for one in reply["elements"]}
        (display,) = elements_of(on_gtk, process, "textbox")["elements"]
        lines = read(on_gtk, window_id, tmp_path)
        texts = with_characters(lines, read_characters_by_tesseract(tmp_path / "window.png"))
        for name in "0123456789+-*/=%()":
            found = [hit.as_data() for hit in find_in_lines(name, texts)]
            assert any(is_in(hit, keys[name]) for hit in found), (name, found)
            # the display shows a 0
            wrong = [hit for hit in found if not is_in(hit, keys[name])]
            assert name == "0" or not wrong, (name, wrong)
            assert all(is_in(hit, rect_of(display)) for hit in wrong), (name, wrong)
        # an unchanged window is not read again; single characters are read only for a search of one character
        log = tmp_path / "runs"
        logged = programs_by(tmp_path / "bin", f'echo $name "$@" >> {log}')
        logged["PEEKABOO_OCR_LANGUAGES"] = "eng"  # each language is a run
        for text, *runs in (("Xylophone", 1, 0), ("sqrt", 0, 0), ("7", 0, 2), ("8", 0, 0)):
            log.write_text("")
            on_gtk.run("find-text", window_id, text, "--json", **logged)
            assert [log.read_text().count("--psm 11"), log.read_text().count("--psm 10")] == runs, text
        assert on_gtk.data("find-text", window_id, "+/-")["found"][0]["text"] == "+/-"
        for name in "75":
            assert on_gtk.data("click-text", "--", window_id, name)["text"] == name

        def shown() -> str:
            return elements_of(on_gtk, process, "textbox")["elements"][0]["value"]

        wait_for(lambda: shown() == "75", f"the display shows the number, not {shown()!r}")


def test_read_characters_of_an_empty_image_returns_none(tmp_path: Path) -> None:
    subprocess.run(["convert", "-size", "60x40", "xc:white", str(tmp_path / "white.png")], check=True)
    assert read_characters_by_tesseract(tmp_path / "white.png") == []


def text_at(text: str, x: float, confidence: float) -> RecognisedText:
    return RecognisedText(text, Rect(x, 0, 10, 10), confidence)


def test_reading_with_more_confidence_is_kept() -> None:
    words = (text_at("Ibs", 80, 0.4), text_at("Help", 100, 0.9))
    whole = RecognisedText("Ibs Help", Rect(80, 0, 30, 10), 0.6, words)
    lines = [text_at("1", 0, 0.5), text_at("3", 50, 0.9), whole]
    characters = [text_at("/", 2, 0.8), text_at("8", 52, 0.6), text_at("4", 82, 0.9), text_at("=", 150, 0.5)]
    characters.append(text_at("+", 151, 0.7))  # the same place, read in two overlapping tiles
    found = with_characters(lines, characters)
    assert sorted(one.text for one in found) == ["+", "/", "3", "4", "Help"]
    assert find_in_lines("1", found) == []


@pytest.mark.parametrize(("read", "shown"), [("11", "11"), ("Cc", "C"), ("—", "-")])
def test_lone_letter_that_was_read_twice_is_one(read: str, shown: str) -> None:
    assert _character(text_at(read, 0, 0.9)).text == shown


def test_lookalike_character_is_found_only_without_an_equal_one() -> None:
    lines = [text_at(text, 30 * at, 0.9) for at, text in enumerate("1l!")]
    assert [(place.text, place.match) for place in find_in_lines("1", lines)] == [("1", "label")]
    assert [(place.text, place.match) for place in find_in_lines("I", lines)] == [("l", "lookalike")]

"""Labels matched in lines of recognised words with boxes."""

from __future__ import annotations

import pytest

from peekaboo_min.automation.labels import find_in_lines, rows_of
from peekaboo_min.core.models import SIDE, RecognisedText, Rect, rect_around

WIDTH, HEIGHT = 10.0, 14.0
GAPS = {1: 8.0, 2: 20.0}  # gap after one space (words) and two (menu entries)


def line(text: str, y: float = 0.0) -> RecognisedText:
    """Make a line of letters 10 wide, with GAPS; `?` after a short word means low confidence."""
    words, x, spaces = [], 100.0, 0
    for part in text.split(" "):
        spaces += 1
        if part:
            x += GAPS[spaces] if words else 0
            confidence = 0.5 if part.endswith("?") and len(part) <= 3 else 0.95
            shown = part[:-1] if confidence < 0.9 else part
            words.append(RecognisedText(shown, Rect(x, y, WIDTH * len(shown), HEIGHT), confidence))
            x, spaces = x + WIDTH * len(shown), 0
    whole = " ".join(word.text for word in words)
    return RecognisedText(whole, rect_around([word.box for word in words]), 0.9, tuple(words))


def matches(wanted: str, *shown: str) -> list[tuple[str, str]]:
    places = find_in_lines(wanted, [line(text, 40.0 * at) for at, text in enumerate(shown)])
    return [(place.text, place.match) for place in places]


def labels_pressed(wanted: str, *shown: str) -> list[str]:
    """Return the labels that click_text would click in these lines."""
    return [text for text, match in matches(wanted, *shown) if match in ("label", "lookalike")]


def test_label_ends_at_the_side_of_a_field() -> None:
    assert labels_pressed("Quantity", f"Quantity {SIDE} 12") == ["Quantity"]
    assert labels_pressed("12", f"Quantity {SIDE} 12") == ["12"]


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        # more, fewer or other letters
        ("Install", ["Uninstall", "Uninstall  Repair  Cancel"]),
        ("Mail", ["Mall", "Mali", "Nail", "E-mail", "Mails"]),
        ("MAIL", ["Mall", "mall"]),
        # a word before, behind or between
        ("Save", ["Don't Save", "Cancel  Don't Save", "Safe", "Saved", "Save As"]),
        ("Delete", ["Do not delete", "File  Do not delete  Edit", "Delete all"]),
        ("Reply", ["No reply", "@ No reply", "mw? No reply", "No? reply", "Reply all"]),
        ("files", ["My files"]),
        ("удалять", ["Не удалять"]),  # noqa: RUF001
        ("保存", ["不 保存"]),
        ("Send", ["Click Send to go on", "The “Send” button sends it"]),
        ("Edit View", ["File  Edit  View  Help"]),
        # digits are no letters
        ("Pay 10", ["Pay 100", "Pay 1.0", "Pay lO", "Pay IO", "Pay 16"]),
        ("10", ["1O", "lO", "100"]),
        ("O", ["0"]),
        ("Row AO", ["Row A0"]),
        ("Page 1", ["Page 2", "Page 1 of 9", "Page I", "Page l"]),
        # a sign or a space changes a number
        ("5", ["-5", "- 5", "\u2212 5", "+5", "5 %", "5%", ".5", "<5", "$5", "€ 5", "(5)"]),
        ("-5", ["5", "+5", "- 6"]),
        ("$100", ["€100", "$100.00", "$1000", "100"]),
        ("1,000", ["1.000", "1000", "1 000"]),
        ("1 0", ["10"]),
        ("A", ["A-", "A+", "A#", "Å"]),
        # an accent makes another letter
        ("Schlussel", ["Schlüssel"]),
        ("Größe", ["Grobe", "Grosse"]),
        ("Laczyc", ["Łączyć"]),
        ("Все", ["Всё"]),  # noqa: RUF001
    ],
)
def test_different_label_is_not_clicked(wanted: str, shown: list[str]) -> None:
    found = {text: labels_pressed(wanted, text) for text in shown}
    assert not any(found.values()), found
    assert labels_pressed(wanted, *shown) == []


@pytest.mark.parametrize(
    ("wanted", "shown", "label"),
    [
        ("Remember me", "© Remember me", "Remember me"),
        ("Accept", "mw? Accept", "Accept"),
        ("Accept", "[J? Accept", "Accept"),
        ("Accept", "O Accept", "Accept"),
        ("My files", "=  My files", "My files"),
        ("I agree", "* I agree", "I agree"),
        ("View", "File  Edit  View  Help", "View"),
        ("File Edit View", "File  Edit  View", "File Edit View"),
        ("Don't Save", "Save  |  Don't Save  |  Cancel", "Don't Save"),
        ("Notes", "- Notes -", "Notes -"),
        ("Full pass", "‘ One day © Full pass", "Full pass"),
        ("One day", "® Oneday", "Oneday"),
        ("Refresh", "(G Refresh", "Refresh"),
        ("Open file", "Г] Open file", "Open file"),
        ("Remember me", "v Remember me", "Remember me"),
    ],
)
def test_label_is_found_beside_a_mark_or_another_label(wanted: str, shown: str, label: str) -> None:
    assert labels_pressed(wanted, shown) == [label]


ACCENTS = """
resume résumé; schon schön; drucken drücken; Zahlen Zählen; Masse Maße; Busse Buße; cote côté; sur sûr;
Peche Pêche; ano año; Esta Está; Papa Papá; Laska Łaska; Zadanie Żądanie; kat kąt; Rad Řád; Ore Øre; Sok Şok;
Olu Ölü; Нет Нёт; Файл Фаил; Zurich Zürich; Cafe Café; Munchen München; Schlussel Schlussel◌
"""
SPACES = (("1 0", "10"), ("10 0", "1 00"), ("Row 1 2", "Row 12"), ("5 5", "55"), ("A 1 1", "A 11"))


@pytest.mark.parametrize(
    "pair", [*(tuple(pair.split()) for pair in ACCENTS.split(";")), *SPACES], ids="-".join
)
def test_accents_and_spaces_between_digits_make_other_labels(pair: tuple[str, str]) -> None:
    for wanted, shown in (pair, pair[::-1]):
        assert labels_pressed(wanted, shown) == []


SAME = {
    # case, punctuation, hyphens and spaces
    "save": "SAVE", "STRASSE": "Straße", "Cafe\u0301": "Café", "Save As": "Save As...", "Open…": "Open...",
    "Name": "Name:", "Save": "[Save]", "Delete": "Delete?", "Don't Save": "Don’t Save", "Next": "Next >",
    "Email": "E-mail", "E\u2011mail": "E-mail", "-5": "\u22125", "Log in": "Login",
    "148 s": "148s", "25 °C": "25°C", "Wi-Fi": "WiFi",
    # letters that look alike
    "I agree": "| agree", "Illinois": "lllinois", "OK": "0K", "All done": "AIl done",
}  # fmt: skip


@pytest.mark.parametrize(("wanted", "shown"), SAME.items())
def test_whole_line_is_the_label_despite_printing_and_ocr_variants(wanted: str, shown: str) -> None:
    assert labels_pressed(wanted, shown) == [shown]


RANKS = {
    "equal labels before parts before similar text": (
        "Save",
        ["Safe", "Don't Save", "SAVE", "Save"],
        [("Save", "label"), ("SAVE", "label"), ("Save", "part"), ("Safe", "similar")],
    ),
    "a lookalike is only similar if a label is equal": (
        "Mail", ["MaiI", "Mail"], [("Mail", "label"), ("MaiI", "similar")],
    ),
    "two lookalikes are only similar": ("Mail", ["MaiI", "Mai|"], [("MaiI", "similar"), ("Mai|", "similar")]),
    "the same word twice in a line is two places": ("go", ["go and go"], [("go", "part"), ("go", "part")]),
    "a part across two labels": ("Edit View", ["File  Edit  View"], [("Edit View", "part")]),
    "direction characters are not shown": ("Pay", ["Pay\u202e"], [("Pay", "label")]),
}  # fmt: skip


@pytest.mark.parametrize(("wanted", "shown", "expected"), RANKS.values(), ids=RANKS)
def test_label_places_are_ranked(wanted: str, shown: list[str], expected: list[tuple[str, str]]) -> None:
    assert matches(wanted, *shown) == expected


def test_region_contains_a_label_if_it_contains_its_centre() -> None:
    lines = [line("Save", 0), line("Don't Save", 40)]
    (place,) = find_in_lines("Save", lines, Rect(0, 38, 400, 20))
    assert (place.text, place.label, place.match, place.box.y) == ("Save", "Don't Save", "part", 40)
    assert find_in_lines("Save", lines, place.box.whole()) == [place]


def test_label_recognised_in_parts_is_joined() -> None:
    words = line("Don't Save  Cancel").words
    apart = [RecognisedText(word.text, word.box, 0.9) for word in (words[1], words[0], words[2])]
    assert [[label.text for label in row] for row in rows_of(apart)] == [["Don't Save"], ["Cancel"]]
    assert [place.match for place in find_in_lines("Save", apart)] == ["part"]


def test_label_excludes_text_below_it() -> None:
    cancel = RecognisedText("Cancel", Rect(97, 99, 49, 19), 0.97)
    corner = RecognisedText("4", Rect(155, 117, 6, 6), 0.03)
    whole = RecognisedText("Cancel 4", rect_around([cancel.box, corner.box]), 0.5, (cancel, corner))
    assert [(place.text, place.match) for place in find_in_lines("Cancel", [whole])] == [("Cancel", "label")]


def test_label_that_two_languages_read_with_other_boxes_is_one() -> None:
    readings = [RecognisedText("Approve", Rect(60, y, 70, height), 0.9) for y, height in ((40, 40), (55, 12))]
    assert len(find_in_lines("Approve", readings)) == 1


def test_part_of_a_label_without_word_boxes_is_placed_by_length() -> None:
    whole = RecognisedText("Show my name to all", Rect(100, 40, 190, 20), 0.9)
    (place,) = find_in_lines("my name", [whole])
    assert (place.box, place.label, place.match) == (Rect(150, 40, 70, 20), whole.text, "part")

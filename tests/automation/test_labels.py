"""Labels matched in lines of recognised words with boxes."""

from __future__ import annotations

import pytest

from peekaboo_min.automation.labels import find_in_lines, rows_of
from peekaboo_min.core.models import RecognisedText, Rect, rect_around

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


def pairs_of(table: str) -> list[list[str]]:
    """Parse pairs such as `wanted=shown`; `_` stands for a space."""
    return [pair.replace("_", " ").split("=") for pair in table.split()]


# wanted text: lines that must not be clicked
OTHERS = {
    # the opposite
    "Install": ["Uninstall", "Uninstall  Repair  Cancel", "Reinstall"],
    "Enable": ["Disable", "[x] Disable"],
    "Connect": ["Disconnect", "Reconnect"],
    "Lock": ["Unlock", "Block"],
    "Allow": ["Disallow", "Don't allow", "Do not allow"],
    "Accept": ["Except", "I do not accept"],
    "Save": ["Don't Save", "Cancel  Don't Save", "Safe", "Saved", "Save As", "Save all", "Sale"],
    "Delete": ["Do not delete", "Undelete", "File  Do not delete  Edit", "Delete all", "Deleted"],
    "Reply": ["No reply", "@ No reply", "mw? No reply", "No? reply", "Reply all"],
    "удалять": ["Не удалять"],  # noqa: RUF001
    "保存": ["不 保存"],
    "Send": ["Send later", "Resend", "Sent", "Click Send to go on", "The “Send” button sends it"],
    # other numbers, amounts, signs, versions, dates
    "Pay 10": ["Pay 100", "Pay 1.0", "Pay lO", "Pay IO", "Pay 16"],
    "10": ["1O", "lO", "100"],
    "User 17": ["User 11", "User 71", "User l7", "User 117"],
    "Page 1": ["Page 2", "Page 1 of 9", "Page I", "Page l"],
    "1": ["Page 1 of 9", "l", "I", "11"],
    "5": ["-5", "- 5", "\u2212 5", "+5", "5 %", "5%", ".5", "<5", "$5", "€ 5", "(5)"],
    "-5": ["5", "+5", "- 6"],
    "2 MB": ["2 GB", "20 MB"],
    "$100": ["€100", "$100.00", "$1000", "100"],
    "1,000": ["1.000", "1000", "1 000"],
    "Version 2.1": ["Version 2.2", "Version 21", "Version 1.2"],
    "Python 3.1": ["Python 3.11", "Python 31"],
    "2024-05-01": ["2024-06-01", "2024-05-11"],
    "May 3": ["May 8", "Mar 3", "May 31"],
    "10:30": ["10:80", "18:30"],
    "4K": ["AK", "4 M"],
    "A": ["A-", "A+", "Å"],
    "C": ["C++", "C#"],
    # accents, umlauts, one letter, singular and plural
    "Mail": ["Mall", "Mali", "Nail", "E-mail", "Mails"],
    "MAIL": ["Mall", "mall"],
    "File": ["Files", "Tile", "Profile"],
    "User": ["Users", "Use"],
    "Chat": ["Chart", "Chats"],
    "Quiet": ["Quit", "Quite"],
    "Log in": ["Log on", "Log out", "Logins"],
    "Sign in": ["Sign up", "Sign in with a key"],
    "Test": ["Text", "Rest"],
    "Yes": ["bytes", "Yes to all"],
    "Close": ["Close all", "Clone"],
    "Edit View": ["File  Edit  View  Help"],
}  # fmt: skip
PAIRS = (
    "Subscribe=Unsubscribe Mute=Unmute Include=Exclude Increase=Decrease Import=Export Upload=Download "
    "Approve=Disapprove Encrypt=Decrypt Attach=Detach Maximum=Minimum Thanks=No_thanks cookies=No_cookies "
    "files=My_files lO=10 O=0 Drive_O=Drive_0 Row_AO=Row_A0 Wi-Fi_5=Wi-Fi_6 schon=schön Zuruck=Zurück "
    "resume=résumé ano=año Form=From Word_wrap=Word_warp Clear=Clean"
)
ACCENTS = (
    "Schlussel=Schlüssel Uber=Über Grosse=Größe Offnen=Öffnen Loschen=Löschen fur=für Mude=Müde Tur=Tür "
    "Peche=Pêche pecheur=pécheur Cote=Côté cote=côte Ou=Où Reseau=Réseau Creer=Créer Francais=Français "
    "Usun=Usuń Laczyc=Łączyć Zrodlo=Źródło Sad=Sąd zolty=żółty Wroc=Wróć Pena=Peña Cana=Caña Mama=Mamá "
    "Все=Всё Мои=Мой Koln=Köln Malmo=Malmö Tak=Ták OBен=Öben Schlüssel=Schlussel Größe=Grobe "  # noqa: RUF001
    "10_5=105 1_0=10 Row_1_1=Row_11 Version_2_1=Version_21 Not_able=Not_a_table No_thing=Something "
    "25_°C=25_°F 148_s=143_s 3_of_7=3_of_1"
)
OTHERS |= {wanted: [shown] for wanted, shown in pairs_of(f"{PAIRS} {ACCENTS}")}


@pytest.mark.parametrize("wanted", OTHERS)
def test_different_label_is_not_clicked(wanted: str) -> None:
    found = {text: labels_pressed(wanted, text) for text in OTHERS[wanted]}
    assert not any(found.values()), found
    assert labels_pressed(wanted, *OTHERS[wanted]) == []


# wanted text, line, label that is clicked
SAME = [
    ("Remember me", "© Remember me", "Remember me"),
    ("No reply", "@ No reply", "No reply"),
    ("Accept", "mw? Accept", "Accept"),
    ("Accept", "[J? Accept", "Accept"),
    ("Accept", "O Accept", "Accept"),
    ("Toall", "wv? Toall", "Toall"),
    ("My files", "=  My files", "My files"),
    ("I agree", "* I agree", "I agree"),
    ("Settings", "& Settings", "Settings"),
    ("New", "+ New", "New"),
    ("View", "File  Edit  View  Help", "View"),
    ("File", "File  Edit  View  Help", "File"),
    ("Word wrap", "Undo  Word wrap  Redo", "Word wrap"),
    ("File Edit View", "File  Edit  View", "File Edit View"),
    ("Save", "Save  |  Don't Save  |  Cancel", "Save"),
    ("Don't Save", "Save  |  Don't Save  |  Cancel", "Don't Save"),
    ("Cancel", "Save  |  Don't Save  |  Cancel", "Cancel"),
    ("Notes", "- Notes -", "Notes -"),
    ("Full pass", "‘ One day © Full pass", "Full pass"),
    ("One day", "‘ One day © Full pass", "One day"),
    ("One day", "® Oneday", "Oneday"),
    ("Refresh", "(G Refresh", "Refresh"),
    ("Open file", "Г] Open file", "Open file"),
    ("Remember me", "v Remember me", "Remember me"),
]
# the whole line is the label; the last row has lookalike letters
WHOLE = (
    "Save=Save save=SAVE STRASSE=Straße Cafe\u0301=Café Save_As=Save_As... Open…=Open... Name=Name: "
    "Save=[Save] Delete=Delete? Don't_Save=Don’t_Save Email=E-mail E\u2011mail=E-mail -5=\u22125 "
    "Signal_strength=Signalstrength 148_s=148s 25_°C=25°C Log_in=Login "
    "Wi-Fi=WiFi I_agree=|_agree Next=Next_> 5_items=5_items "
    "File=FiIe Illinois=lllinois Install=|nstall OK=0K All_done=AIl_done"
)
SAME += [(wanted, shown, shown) for wanted, shown in pairs_of(WHOLE)]


@pytest.mark.parametrize(("wanted", "shown", "label"), SAME)
def test_label_is_found_despite_printing_and_ocr_variants(wanted: str, shown: str, label: str) -> None:
    assert labels_pressed(wanted, shown) == [label]


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
    "a plural is similar": ("Files", ["File"], [("File", "similar")]),
    "joined words are equal": ("Log in", ["Login"], [("Login", "label")]),
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

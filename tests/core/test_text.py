"""Cleaning and cutting of foreign text, and durations as text."""

from __future__ import annotations

import pytest

from peekaboo_min.core import text as texts
from peekaboo_min.core.text import clean_text, seconds_text


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\nb\r\tc", "a b  c"),
        ("\x1b[31mred\x1b[0m", "[31mred [0m"),  # colours of a terminal
        ("\u202eevil\u2066x\u2069", "evil x"),  # bidi overrides
        ("a\u200bb\ufeffc\u061cd\u200ee\u200ff", "a b c d e f"),  # zero width, marks of direction
        ("a\u2028b\u2029c", "a b c"),  # line separators
        ("a\x85b\x9fc", "a b c"),  # C1 controls
        ("y" * 201, "y" * 200),
        ("👩‍💻", "👩‍💻"),
    ],
    ids=ascii,
)
def test_clean_text_cleans_and_cuts(text: str, cleaned: str) -> None:
    assert clean_text(text) == cleaned


SECONDS = {1.0: "1 second", 2: "2 seconds", 1.79889: "1.8 seconds", 0.3: "0.3 seconds",
           0.0512: "0.051 seconds", 9.6: "9.6 seconds", 14.98: "15 seconds", 600: "600 seconds"}  # fmt: skip


def test_seconds_text_rounds_and_knows_the_singular() -> None:
    assert {seconds: seconds_text(seconds) for seconds in SECONDS} == SECONDS


# function and its arguments -> the text that it returns
SHOWN = {
    ("one_line", "a\r\nb\nc\td\x1b\u202e"): "a\\nb\\nc d  ",
    ("shown_text", "a\r\nb\tc\x1b[0m\x9b\u202e\ud800\ufffe\uffff"): "a\nb\tc\ufffd[0m" + "\ufffd" * 5,
    ("control_character_in", "a\tb\nc\rd é"): "",
    ("control_character_in", "ab\x0bc\x07"): "\x0b",
    ("control_character_in", "a\ud800"): "\ud800",
    ("control_character_in", "a\x7f"): "\x7f",
    ("control_character_in", "a\0"): "\0",
    ("encodable", "a\udcffé"): "a\ufffdé",
    ("cut_to_bytes", "aé", 2): "a",
    ("cut_to_bytes", "aé", 3): "aé",
    ("cut_to_bytes", "\ud800", 3): "\ufffd",
}


@pytest.mark.parametrize("call", SHOWN, ids=ascii)
def test_foreign_text_is_made_safe(call: tuple[str, ...]) -> None:
    assert getattr(texts, call[0])(*call[1:]) == SHOWN[call]

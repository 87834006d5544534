"""Cleaning and cutting of foreign text, and durations as text."""

from __future__ import annotations

import pytest

from peekaboo_min.core.text import clean_text, seconds_text


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\nb\r\tc", "a b  c"),
        ("\x1b[31mred\x1b[0m", "[31mred [0m"),  # colours of a terminal
        ("\u202eevil\u2066x\u2069", "evil x"),  # bidi overrides
        ("a\u200bb\ufeffc", "a b c"),  # zero width
        ("a\u2028b\u2029c", "a b c"),  # line separators
        ("a\x85b\x9bc", "a b c"),  # C1 controls
        ("y" * 201, "y" * 200),
        ("👩‍💻", "👩‍💻"),
    ],
    ids=ascii,
)
def test_clean_text_cleans_and_cuts(text: str, cleaned: str) -> None:
    assert clean_text(text) == cleaned


SECONDS = {1.0: "1 second", 2: "2 seconds", 1.79889: "1.8 seconds", 0.3: "0.3 seconds",
           0.0512: "0.051 seconds", 9.97: "10 seconds", 14.98: "15 seconds", 600: "600 seconds"}  # fmt: skip


def test_seconds_text_rounds_and_knows_the_singular() -> None:
    assert {seconds: seconds_text(seconds) for seconds in SECONDS} == SECONDS

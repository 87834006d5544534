"""Text from outside, made safe to show."""

from __future__ import annotations

import re

# Control characters, and those that change the direction of a line: a title could imitate another with them.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_UNTYPABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def clean_text(text: str, limit: int = 200) -> str:
    """Text from outside (a window's title, recognised text) without control and direction characters.

    Cut at `limit` characters.
    """
    return _UNSAFE.sub(" ", text)[:limit].strip()


def control_character_in(text: str) -> str:
    """The first control character or lone surrogate of a text, tabs and line breaks aside; empty: none."""
    found = _UNTYPABLE.search(text)
    return found[0] if found else ""

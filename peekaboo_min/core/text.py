"""Text from outside, made safe to show or to send."""

from __future__ import annotations

import re

# Each is compiled where it is first used: all at once would cost every command a twentieth of its start.
# Control characters, and those that change the direction of a line: a title could imitate another with them.
_UNSAFE = "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
_UNTYPABLE = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]"
_UNSHOWN = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
_SURROGATE = "[\ud800-\udfff]"


def clean_text(text: str, limit: int = 200) -> str:
    """Text from outside (a title, for instance) without control and direction characters, cut at `limit`."""
    return re.sub(_UNSAFE, " ", text[:limit]).strip()


def shown_text(text: str) -> str:
    """A text of several lines from outside, with U+FFFD for what a terminal or a page must not get."""
    return re.sub(_UNSHOWN, "\ufffd", text.replace("\r\n", "\n"))


def control_character_in(text: str) -> str:
    """The first control character or lone surrogate of a text, tabs and line breaks aside; empty: none."""
    found = re.search(_UNTYPABLE, text)
    return found[0] if found else ""


def encodable(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which no UTF-8 can hold."""
    return text if text.isascii() else re.sub(_SURROGATE, "\ufffd", text)


def cut_to_bytes(text: str, limit: int) -> str:
    """As much of the start of the text as fits into `limit` bytes of UTF-8, with no character cut in two."""
    return encodable(text).encode("utf-8")[:limit].decode("utf-8", "ignore")

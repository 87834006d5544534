"""Text from outside, made safe to show."""

from __future__ import annotations

import re

# Control characters, and those that turn the direction of a line round (a title could fake another name with them).
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def clean_text(text: str, limit: int = 200) -> str:
    """Text from outside (a window's title, recognised text) without control and direction characters, cut at `limit`."""
    return _UNSAFE.sub(" ", text)[:limit].strip()

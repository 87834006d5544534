"""Clean text from outside, so that it is safe to show or to send."""

from __future__ import annotations

import json
import re
from typing import Any, Union

# Compiled at first use: compiling all of them would take a twentieth of a command's start.
# Control characters, and characters that change the writing direction and could forge another title.
_UNSAFE = "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
_UNTYPABLE = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]"
_UNSHOWN = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
_SURROGATE = "[\ud800-\udfff]"


def clean_text(text: str, limit: int = 200) -> str:
    """Replace control and direction characters of a text (such as a title) by spaces; cut it at `limit`."""
    return re.sub(_UNSAFE, " ", text[:limit]).strip()


def one_line(text: str) -> str:
    r"""Write line breaks as `\n`, and replace other control and direction characters by spaces."""
    return re.sub(_UNSAFE, " ", text.replace("\r\n", "\n").replace("\n", r"\n"))


def seconds_text(seconds: float) -> str:
    """Format a duration with at most two significant digits below 10: `1 second`, `1.8 seconds`."""
    number = f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"
    return f"{number} second" if number == "1" else f"{number} seconds"


def shown_text(text: str) -> str:
    """Replace characters that may upset a terminal or a page by U+FFFD; keep tabs and line breaks."""
    return re.sub(_UNSHOWN, "\ufffd", text.replace("\r\n", "\n"))


def control_character_in(text: str) -> str:
    """Return the first control character or lone surrogate, except tabs and line breaks; empty if none."""
    match = re.search(_UNTYPABLE, text)
    return match[0] if match else ""


def encodable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by U+FFFD."""
    return text if text.isascii() else re.sub(_SURROGATE, "\ufffd", text)


def cut_to_bytes(text: str, limit: int) -> str:
    """Cut the text to at most `limit` bytes of UTF-8, at the end of a character."""
    return encodable(text).encode("utf-8")[:limit].decode("utf-8", "ignore")


def parsed_json(text: Union[str, bytes]) -> Any:
    """Parse JSON. Raises ValueError, also if it is nested too deep."""
    try:
        return json.loads(text)
    except RecursionError as e:
        raise ValueError(str(e)) from None


def outgoing_data(data: Any) -> Any:
    """Convert to JSON types that UTF-8 can encode; lone surrogates become U+FFFD, NaN becomes None."""
    text = encodable(json.dumps(data, ensure_ascii=False, default=str))
    return json.loads(text, parse_constant=lambda _: None)

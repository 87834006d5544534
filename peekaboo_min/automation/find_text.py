"""Where a text is in a window, by text recognition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..core.cancellation import report_progress
from ..core.errors import ErrorCode, PeekabooError
from ..core.models import RecognisedText, Rect, Result, Screenshot, rect_around
from ..core.text import clean_text
from ..desktop.base import Desktop
from .capture import scene_to_capture, screenshot_window

MATCHES = ("exact", "case_insensitive", "close")
_CLOSE_ENOUGH = 0.75
_HITS_AT_MOST = 20
_NEAREST_SHOWN = 5
# Around a word these do not make it a different one: `Name:`, `[Save]`, `Open...`
_PUNCTUATION = " .,:;!?…*()[]{}<>|_'\"‘’“”«»-–—"
# What text recognition confuses, as one letter.
_LOOKALIKES = str.maketrans("1i|!0", "llllo")


@dataclass(frozen=True)
class TextHit:
    """Where the wanted text is: whole words of one line."""

    text: str
    box: Rect
    """In pixels of the screenshot."""
    match: str
    """One of MATCHES."""
    likeness: float
    is_whole_line: bool
    confidence: float

    def as_data(self) -> dict[str, Any]:
        centre = self.box.centre
        box = {key: round(value) for key, value in self.box.as_data().items()}
        return {
            "text": self.text,
            "x": int(centre.x),
            "y": int(centre.y),
            "box": box,
            "match": self.match,
            "confidence": round(self.confidence, 3),
        }


def find_text_in_window(desktop: Desktop, window_id: int, text: str) -> Result:
    """Take a screenshot of a window, recognise its text, and find `text` in it, the best match first.

    data: {window_id, screenshot_id, image_width, image_height,
    found: [{text, x, y, box, match, confidence}]}; x and y are a match's middle, in pixels that `click` takes
    with this screenshot_id. Not found is an empty list.
    Raises INVALID_ARGUMENT for a text without a word, and what capturing and recognising raise.
    """
    wanted = " ".join(clean_text(text, 1000).split())
    if not wanted:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, "the text to find is empty", hint="give a word of the window"
        )
    window = scene_to_capture(desktop).by_id(window_id)
    image = screenshot_window(desktop, window, "png")
    report_progress(f"reading the text of window {window_id}")
    try:
        lines = desktop.read_text(image.path)
    finally:
        image.path.unlink(missing_ok=True)
    record = image.screenshot
    assert record is not None  # an image without a shadow has one
    hits = find_in_lines(wanted, lines)
    summary = _found_text(wanted, hits, record) if hits else _nothing_text(wanted, lines, record)
    data = {
        "window_id": window_id,
        "screenshot_id": record.screenshot_id,
        "image_width": record.image_width,
        "image_height": record.image_height,
        "found": [hit.as_data() for hit in hits],
    }
    return Result(summary, data)


def find_in_lines(wanted: str, lines: Sequence[RecognisedText]) -> list[TextHit]:
    """Where `wanted` is in lines (pure), best first: exact before case-insensitive before close spelling, a
    whole line before a part of one, then top to bottom.
    """
    hits: list[TextHit] = []
    for line in lines:
        hits += _apart(_ranked(_hits_in_line(wanted, line)))
    return _ranked(hits)[:_HITS_AT_MOST]


def _ranked(hits: Sequence[TextHit]) -> list[TextHit]:
    def rank(hit: TextHit) -> tuple[float, ...]:
        return MATCHES.index(hit.match), -hit.likeness, not hit.is_whole_line, hit.box.y, hit.box.x

    return sorted(hits, key=rank)


def _apart(hits: Sequence[TextHit]) -> list[TextHit]:
    """Hits of one line without those that overlap a better one."""
    kept: list[TextHit] = []
    for hit in hits:
        if all(
            hit.box.x >= other.box.x + other.box.width or other.box.x >= hit.box.x + hit.box.width
            for other in kept
        ):
            kept.append(hit)
    return kept


def _hits_in_line(wanted: str, line: RecognisedText) -> list[TextHit]:
    words = words_of_line(line)
    count = len(wanted.split())
    hits = []
    # recognition may join two words or split one
    for length in range(max(1, count - 1), min(len(words), count + 1) + 1):
        for start in range(len(words) - length + 1):
            part = words[start : start + length]
            text = clean_text(" ".join(word.text for word in part))
            match, likeness = compare_texts(wanted, text)
            if match:
                is_whole = length == len(words)
                confidence = line.confidence if is_whole else sum(word.confidence for word in part) / length
                hits.append(
                    TextHit(
                        text, rect_around([word.box for word in part]), match, likeness, is_whole, confidence
                    )
                )
    return hits


def words_of_line(line: RecognisedText) -> list[RecognisedText]:
    """A line's words; where they were not recognised one by one, each with its share of the line's box."""
    if line.words:
        return list(line.words)
    words: list[RecognisedText] = []
    width = line.box.width / max(1, len(line.text))
    at = 0
    for text in line.text.split():
        at = line.text.index(text, at)
        box = Rect(line.box.x + at * width, line.box.y, len(text) * width, line.box.height)
        words.append(RecognisedText(text, box, line.confidence))
        at += len(text)
    return words


def compare_texts(wanted: str, text: str) -> tuple[str, float]:
    """Which of MATCHES `text` is for `wanted`, and how alike they are, 0 to 1; "" when it is none."""
    if wanted == text or _bare(wanted) == _bare(text):
        return "exact", 1.0
    if _bare(wanted).casefold() == _bare(text).casefold():
        return "case_insensitive", 1.0
    likeness = _likeness(wanted, text, _CLOSE_ENOUGH)
    return ("close", likeness) if likeness >= _CLOSE_ENOUGH else ("", likeness)


def _bare(text: str) -> str:
    """Without punctuation around it; a text that is nothing else stays."""
    return text.strip(_PUNCTUATION) or text


def _likeness(wanted: str, text: str, least: float = 0.0) -> float:
    """0 to 1, without regard to case, spaces, and letters that look alike; may stop below `least`."""
    import difflib  # 3 ms that most commands do not need

    first, second = (
        _bare(each).casefold().replace(" ", "").translate(_LOOKALIKES) for each in (wanted, text)
    )
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    if matcher.real_quick_ratio() < least or matcher.quick_ratio() < least:
        return 0.0
    return matcher.ratio()


def _found_text(wanted: str, hits: Sequence[TextHit], record: Screenshot) -> str:
    lines = [
        f"x {int(hit.box.centre.x)} y {int(hit.box.centre.y)}: {hit.text!r} ({hit.match})" for hit in hits
    ]
    where = f"in window {record.window_id}, in pixels of screenshot {record.screenshot_id}"
    if len(lines) == 1:
        return f"found {wanted[:80]!r} {where}: {lines[0]}"
    return "\n".join([f"found {wanted[:80]!r} in {len(lines)} places {where}, the best first:", *lines])


def _nothing_text(wanted: str, lines: Sequence[RecognisedText], record: Screenshot) -> str:
    texts = list(dict.fromkeys(clean_text(line.text) for line in lines))
    nearest = sorted(texts, key=lambda text: -_likeness(wanted, text))[:_NEAREST_SHOWN]
    head = f"no text like {wanted[:80]!r} was recognised in window {record.window_id}"
    if not nearest:
        return f"{head}; no text at all was recognised there"
    return f"{head}; the nearest of {len(texts)} lines: " + ", ".join(map(repr, nearest))

"""Where a text is in a window, by text recognition; and a click there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.cancellation import report_progress
from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.models import NOTHING_FOUND, RecognisedText, Rect, Result, Screenshot, rect_around
from ..core.text import clean_text
from ..desktop.base import Desktop
from .capture import CapturedImage, scene_to_capture, screenshot_to_read
from .effects import is_other_within, take_bitmap
from .input import click_pixel
from .policy import check_may_act

MATCHES = ("exact", "case_insensitive", "close")
_CLOSE_ENOUGH = 0.75
_SHORT = 5  # letters
_HITS_AT_MOST = 20
_NEAREST_SHOWN = 5
# Recognition misses some single characters, and labels that stand close to a frame.
_OTHER_WAY = "find_elements may know it, by the application's own names"
# Around a word these do not make it a different one: `Name:`, `[Save]`, `Open...`
_PUNCTUATION = " .,:;!?…*()[]{}<>|_'\"‘’“”«»-–—"
# What text recognition confuses, as one letter.
_LOOKALIKES = str.maketrans("1i|!0×\N{MINUS SIGN}–—", "llllox---")


class TextHit(NamedTuple):
    """Where the wanted text is: whole words of one line."""

    text: str
    box: Rect
    """In pixels of the screenshot."""
    match: str
    """One of MATCHES."""
    likeness: float
    is_whole_line: bool
    confidence: float

    @property
    def rank(self) -> tuple[float, ...]:
        """Smaller for a better match; places of one rank are equally good."""
        return MATCHES.index(self.match), -self.likeness, not self.is_whole_line

    @property
    def at(self) -> str:
        return f"x {int(self.box.centre.x)} y {int(self.box.centre.y)}"

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


class TextSearch(NamedTuple):
    """What was recognised in a window, and where the wanted text is, the best match first; in pixels of
    `record`, which `click` takes.
    """

    wanted: str
    record: Screenshot
    lines: tuple[RecognisedText, ...]
    hits: list[TextHit]

    def as_data(self) -> dict[str, Any]:
        return {
            "window_id": self.record.window_id,
            "screenshot_id": self.record.screenshot_id,
            "image_width": self.record.image_width,
            "image_height": self.record.image_height,
            "found": [hit.as_data() for hit in self.hits],
        }

    def found_text(self) -> str:
        """Where it is, for people."""
        lines = [f"{hit.at}: {hit.text!r} ({hit.match})" for hit in self.hits]
        where = f"in window {self.record.window_id}, in pixels of screenshot {self.record.screenshot_id}"
        if len(lines) == 1:
            return f"found {self.wanted[:80]!r} {where}: {lines[0]}"
        head = f"found {self.wanted[:80]!r} in {len(lines)} places {where}, the best first:"
        return "\n".join([head, *lines])

    def nearest_text(self) -> str:
        """What was recognised instead, for people."""
        texts = list(dict.fromkeys(clean_text(line.text) for line in self.lines))
        head = f"no text like {self.wanted[:80]!r} was recognised in window {self.record.window_id}"
        if not texts:
            return f"{head}; no text at all was recognised there"
        nearest = sorted(texts, key=lambda text: -_likeness(self.wanted, text))[:_NEAREST_SHOWN]
        return f"{head}; the nearest of {len(texts)} lines: " + ", ".join(map(repr, nearest))


def wanted_text(text: str) -> str:
    """A text to find, in one line. Raises INVALID_ARGUMENT for one without a word."""
    wanted = " ".join(clean_text(text, 1000).split())
    if not wanted:
        raise invalid("the text to find is empty", "give a word of the window")
    return wanted


def search_image(desktop: Desktop, image: CapturedImage, record: Screenshot, wanted: str) -> TextSearch:
    """Look for a text in a window's screenshot, recognised at full resolution, placed in the pixels of
    `record`. The image's file is deleted.
    """
    report_progress(f"reading the text of window {record.window_id}")
    try:
        lines = desktop.read_text(image.path)
        is_like_a_key = len(wanted) <= 2 or not any(map(str.isalnum, wanted))
        if len(wanted) == 1 or (is_like_a_key and not find_in_lines(wanted, lines)):
            lines = with_characters(lines, desktop.read_characters(image.path))
    finally:
        image.path.unlink(missing_ok=True)
    factor = record.image_width / image.info.width
    scaled = tuple(_scaled(line, factor) for line in lines)
    return TextSearch(wanted, record, scaled, find_in_lines(wanted, scaled))


def with_characters(
    lines: Sequence[RecognisedText], characters: Sequence[RecognisedText]
) -> list[RecognisedText]:
    """The words of lines and the characters that they lack (pure); of two readings of one place the surer."""
    kept = [
        word
        for word in (word for line in lines for word in words_of_line(line))
        if all(found.confidence <= word.confidence for found in characters if found.box.overlaps(word.box))
    ]
    for found in sorted(characters, key=lambda found: -found.confidence):
        if not any(found.box.overlaps(other.box) for other in kept):
            kept.append(found)
    return kept


def _scaled(line: RecognisedText, factor: float) -> RecognisedText:
    if factor == 1:
        return line
    words = tuple(_scaled(word, factor) for word in line.words)
    return line._replace(box=line.box.scaled(factor), words=words)


def find_text_in_window(desktop: Desktop, window_id: int, text: str) -> Result:
    """Take a screenshot of a window, recognise its text, and find `text` in it, the best match first.

    data: {window_id, screenshot_id, image_width, image_height,
    found: [{text, x, y, box, match, confidence}]}; x and y are a match's middle, in pixels that `click` takes
    with this screenshot_id. Not found is an empty list.
    Raises INVALID_ARGUMENT for a text without a word, and what capturing and recognising raise.
    """
    wanted = wanted_text(text)
    window = scene_to_capture(desktop).by_id(window_id)
    seen = search_image(desktop, *screenshot_to_read(desktop, window), wanted)
    if not seen.hits:
        return Result(f"{seen.nearest_text()}; {_OTHER_WAY}", seen.as_data(), exit_code=NOTHING_FOUND)
    return Result(seen.found_text(), seen.as_data())


def click_text_in_window(
    desktop: Desktop, window_id: int, text: str, button: str, clicks: int, verify: bool
) -> dict[str, Any]:
    """Find a text in a window and click its middle; `text` in the answer is what was clicked.

    Raises TEXT_NOT_FOUND with the nearest texts, AMBIGUOUS_TEXT where two places are equally good,
    STALE_SCREENSHOT where the text changed while it was read, and what find_text_in_window and click_pixel
    raise.
    """
    wanted = wanted_text(text)
    check_may_act("click")
    window = scene_to_capture(desktop).by_id(window_id)
    check_may_act("click", window.app_name, window.bundle_id)
    before = take_bitmap(desktop, window)
    seen = search_image(desktop, *screenshot_to_read(desktop, window), wanted)
    if not seen.hits:
        hint = f"{_OTHER_WAY}; or take a screenshot and click by its pixels, or scroll to the text"
        raise PeekabooError(ErrorCode.TEXT_NOT_FOUND, seen.nearest_text(), hint)
    best, *others = seen.hits
    equal = [best, *(hit for hit in others if hit.rank == best.rank)]
    if len(equal) > 1:
        places = "; ".join(f"{hit.text!r} at {hit.at}" for hit in equal)
        raise PeekabooError(
            ErrorCode.AMBIGUOUS_TEXT,
            f"{wanted[:80]!r} is in {len(equal)} places of window {window_id}; nothing was clicked: {places}",
            hint=f"click one of them by its x and y, with screenshot_id {seen.record.screenshot_id}",
        )
    if is_other_within(before, take_bitmap(desktop, window), best.box, seen.record.image_width):
        raise PeekabooError(
            ErrorCode.STALE_SCREENSHOT,
            f"window {window_id} changed where {best.text!r} was while it was read; nothing was clicked",
            hint="try again once it rests: wait_for with still=true",
        )
    data = click_pixel(desktop, window_id, best.box.centre, button, clicks, seen.record.screenshot_id, verify)
    return {**data, "text": best.text, "screenshot_id": seen.record.screenshot_id}


def find_in_lines(wanted: str, lines: Sequence[RecognisedText]) -> list[TextHit]:
    """Where `wanted` is in lines (pure), best first: exact before case-insensitive before close spelling, a
    whole line before a part of one, then top to bottom.
    """
    hits: list[TextHit] = []
    for line in lines:
        hits += _apart(_ranked(_hits_in_line(wanted, line)))
    ranked = _ranked(hits)
    if len(wanted) == 1:  # too many characters look alike: 1, l, I, | and !
        ranked = [hit for hit in ranked if hit.match == ranked[0].match]
    return ranked[:_HITS_AT_MOST]


def _ranked(hits: Sequence[TextHit]) -> list[TextHit]:
    return sorted(hits, key=lambda hit: (hit.rank, hit.box.y, hit.box.x))


def _apart(hits: Sequence[TextHit]) -> list[TextHit]:
    """Hits of one line without those that overlap a better one."""
    kept: list[TextHit] = []
    for hit in hits:
        if not any(hit.box.overlaps(other.box) for other in kept):
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
    """Which of MATCHES `text` is for `wanted`, and how alike they are, 0 to 1; "" when it is none.

    A short text is close only when it differs in nothing but letters that look alike: of Chat and Chart, or
    Yes and bytes, too many letters are the same.
    """
    if wanted == text or _bare(wanted) == _bare(text):
        return "exact", 1.0
    if _bare(wanted).casefold() == _bare(text).casefold():
        return "case_insensitive", 1.0
    least = 1.0 if len(_folded(wanted)) <= _SHORT else _CLOSE_ENOUGH
    likeness = _likeness(wanted, text, least)
    return ("close", likeness) if likeness >= least else ("", likeness)


def _bare(text: str) -> str:
    """Without punctuation around it; a text that is nothing else stays."""
    return text.strip(_PUNCTUATION) or text


def _folded(text: str) -> str:
    """Without case, spaces, and differences between letters that look alike."""
    return _bare(text).casefold().replace(" ", "").translate(_LOOKALIKES)


def _likeness(wanted: str, text: str, least: float = 0.0) -> float:
    """0 to 1, of the folded texts; may stop below `least`."""
    import difflib  # 3 ms that most commands do not need

    matcher = difflib.SequenceMatcher(None, _folded(wanted), _folded(text), autojunk=False)
    if matcher.real_quick_ratio() < least or matcher.quick_ratio() < least:
        return 0.0
    return matcher.ratio()

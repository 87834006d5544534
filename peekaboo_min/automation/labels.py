"""Group recognised words into labels, and find a text among them (pure).

Distances are in widths of a line's average character. Measured with three fonts of 8 to 24 points: words are
0.4 to 1.0 apart (1.2 to 1.5 in a monospaced font), menu entries 1.9 to 3.1, a tick box and its label 0.5 to
1.6. Distance does not separate a tick box from its label, but its reading does: of 82 tick boxes, 64 were
read without any letter.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Optional

from ..core.models import SIDE, Element, RecognisedText, Rect, joined

# How a place matches: a whole label; a label that differs only in letters that look alike; equal words inside
# a longer label; a similar text.
MATCHES = ("label", "lookalike", "part", "similar")
EQUAL, LOOKALIKE, SIMILAR = 1.0, 0.99, 0.75
_TYPOGRAPHY = str.maketrans(
    {**dict.fromkeys("‘’", "'"), **dict.fromkeys("“”„", '"'), "…": "..."}
    | dict.fromkeys("\u00ad\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
)
# ignored around a text: `Name:`, `[Save]`, `Open...`
_OUTER = " .,:;!?*()[]{}<>|_'\"«»·•"
_OUTER_END = rf"(?: -+|[{re.escape(_OUTER)}])+$"  # `A-` keeps its sign
_HYPHEN = r"(?<=[^\W\d_])-(?=[^\W\d_])"
_SPACE = r"(?<!\d) | (?!\d)"  # recognition misses spaces, but `1 0` is not 10
_ALIKE = str.maketrans("I|0", "llO")
_SHOWN_DIGIT = r"[^\D0]|0(?![^\W\d_])"  # the 0 in `0K` may be an O, but not in `10` and `A0`

_APART_WIDTHS, _APART_HEIGHTS = 1.7, 0.8
_MARK_WIDTHS, _UNSURE = 1.15, 0.75
_VOWELS = frozenset("aeiouyAEIOUY")
_BOXES = frozenset("©®○◯◉●☐☑□■•")  # readings of radio buttons and tick boxes
_CIRCLES = ("O", "Q", "О")  # noqa: RUF001 - the third is Cyrillic
_DEEP = frozenset("gjpqyQ,;()[]{}|")  # reach below the baseline


class Place(NamedTuple):
    """A text in a window; `label` is the whole label that contains it."""

    text: str
    label: str
    box: Rect  # in pixels of the screenshot
    match: str  # one of MATCHES
    likeness: float
    confidence: float
    by: str = "text"  # or tree: an element of that name; `confidence` is 1 then

    def as_data(self) -> dict[str, Any]:
        x, y = self.box.middle
        place = {"text": self.text, "label": self.label, "x": x, "y": y, "box": self.box.whole().as_data()}
        by = {"by": self.by} if self.by != "text" else {}
        return {**place, "match": self.match, "confidence": round(self.confidence, 3), **by}

    def __str__(self) -> str:
        inside = f" inside {self.label[:80]!r}" if self.label != self.text else ""
        region = ",".join(f"{number:.0f}" for number in self.box.whole())  # what `region` takes
        x, y = self.box.middle
        return f"{self.text[:80]!r}{inside} at x {x} y {y}, region {region}"


def element_places(
    wanted: str, role: str, elements: Sequence[Element], window: Rect, width: int
) -> list[Place]:
    """Return the elements of this name, and of this role unless it is empty, in an image `width` wide.

    A label and the field that it names have the same name; they are one place, the field's.
    """
    named = [e for e in elements if role in ("", e.role) and _likeness(wanted, e.name) == EQUAL]
    fields = [element for element in named if element.role not in ("text", "heading")] or named
    boxes = [element.box.in_image_of(window, width) for element in fields]
    return [Place(e.name, e.name, box, "label", EQUAL, 1.0, "tree") for e, box in zip(fields, boxes)]


def find_in_lines(wanted: str, lines: Sequence[RecognisedText], region: Optional[Rect] = None) -> list[Place]:
    """Return the places of `wanted` that do not overlap, best matches first, then top to bottom."""
    places: list[Place] = []
    for row in rows_of(lines):
        kept: list[Place] = []
        # prefer the shorter of equal matches: the longer may contain a border, read as punctuation
        for place in sorted(_places_in_row(wanted, row), key=lambda place: (*_rank(place), len(place.text))):
            is_inside = region is None or region.contains(place.box.centre)
            # two languages may read one label with boxes so different that they count as two rows
            same = [other.box for other in places if other.text == place.text]
            again = any(b.contains(place.box.centre) or place.box.contains(b.centre) for b in same)
            if is_inside and not again and not any(place.box.overlaps(other.box) for other in kept):
                kept.append(place)
        places += kept
    matches = [place.match for place in places]
    if "label" in matches or matches.count("lookalike") > 1:
        places = [place._replace(match=place.match.replace("lookalike", "similar")) for place in places]
    return sorted(places, key=lambda place: (*_rank(place), place.text != wanted, place.box.y, place.box.x))


def _rank(place: Place) -> tuple[float, float]:
    return MATCHES.index(place.match), -place.likeness


def _places_in_row(wanted: str, row: Sequence[RecognisedText]) -> Iterator[Place]:
    labels = [label.words for label in row]
    if len(labels) > 1:
        labels.append(tuple(word for words in labels for word in words))
    count = len(wanted.split())
    for words in labels:
        # recognition may join two words or split one
        lengths = range(max(1, count - 1), min(len(words), count + 1) + 1)
        parts = [words[at : at + length] for length in lengths for at in range(len(words) - length + 1)]
        runs = [(True, words), (True, _without_mark(words)), *((False, part) for part in parts)]
        for is_whole, shown in ((is_whole, joined(run)) for is_whole, run in runs):
            value = _likeness(wanted, shown.text)
            match = "part" if value == EQUAL else "similar"
            if is_whole and value >= LOOKALIKE:
                match = "label" if value == EQUAL else "lookalike"
            if value >= SIMILAR:
                label = shown.text if is_whole else joined(words).text
                yield Place(shown.text, label, shown.box, match, value, shown.confidence)


def _likeness(wanted: str, shown: str) -> float:
    """Return the likeness, 0 to 1. EQUAL ignores case and outer punctuation, not accents and digits."""
    # `STRASSE` is Straße, but Masse is not Maße
    fold = str.upper if wanted.isupper() or shown.isupper() else str.lower
    a, b = _bare(fold(wanted)), _bare(fold(shown))
    if re.sub(_SPACE, "", a) == re.sub(_SPACE, "", b):
        return EQUAL
    if _with_letters_alike(wanted, r"\d") == _with_letters_alike(shown, _SHOWN_DIGIT):
        return LOOKALIKE
    matcher = difflib.SequenceMatcher(None, a.replace(" ", ""), b.replace(" ", ""), autojunk=False)
    is_far = matcher.real_quick_ratio() < SIMILAR or matcher.quick_ratio() < SIMILAR
    return 0.0 if is_far else min(float(matcher.ratio()), LOOKALIKE - 0.01)


@lru_cache(maxsize=100)
def _bare(text: str) -> str:
    """Remove hyphens and outer punctuation. Keep the case, and a text of nothing but these."""
    plain = " ".join(unicodedata.normalize("NFC", text).translate(_TYPOGRAPHY).split())
    plain = re.sub(_HYPHEN, "", plain)
    start = plain.lstrip(f"{_OUTER}-")
    return re.sub(_OUTER_END, "", plain if start[:1].isnumeric() else start) or plain


def _with_letters_alike(text: str, digit: str) -> str:
    words = (word if re.search(digit, word) else word.translate(_ALIKE) for word in text.split())
    return _bare(" ".join(words))


def with_characters(
    lines: Sequence[RecognisedText], characters: Sequence[RecognisedText]
) -> list[RecognisedText]:
    """Merge lines with separately read characters; keep the more confident reading of each place."""
    kept = [
        word
        for line in lines
        for word in _words_of_line(line)
        if all(found.confidence <= word.confidence for found in characters if found.box.overlaps(word.box))
    ]
    for found in sorted(characters, key=lambda found: -found.confidence):
        if not any(found.box.overlaps(other.box) for other in kept):
            kept.append(found)
    return kept


def rows_of(lines: Sequence[RecognisedText]) -> list[list[RecognisedText]]:
    """Return the labels of each line, left to right, also of a line that was recognised in parts."""
    rows: list[list[RecognisedText]] = []
    for words in sorted(filter(None, map(_words_of_line, lines)), key=lambda words: words[0].box.x):
        if row := (next((row for row in rows if _continues(row[-1], words[0], [*row, *words])), None)):
            row += words
        else:
            rows.append(words)
    return sorted(map(_labels_of, rows), key=lambda row: (row[0].box.y, row[0].box.x))


def _words_of_line(line: RecognisedText) -> list[RecognisedText]:
    # if recognition did not separate the words, each gets its share of the line's box
    if line.words:
        return list(line.words)
    x, y, width, height = line.box
    letter = width / max(1, len(line.text))
    parts = [(match[0], x + match.start() * letter) for match in re.finditer(r"\S+", line.text)]
    boxes = [Rect(start, y, len(text) * letter, height) for text, start in parts]
    return [RecognisedText(text, box, line.confidence) for (text, _), box in zip(parts, boxes)]


def _without_mark(words: Sequence[RecognisedText]) -> Sequence[RecognisedText]:
    """Remove a tick box or icon before a label: up to three characters that are not a word."""
    width, start = _character_width(words), 0
    for word, following in zip(words, words[1:]):
        length = sum(len(mark.text) for mark in words[: start + 1])
        is_icon = length <= 3 and _is_icon(word, words[start + 1 :])
        if not is_icon and (length > 2 or not _is_mark(word, following, _gap(word, following) / width)):
            break
        start += 1
    # before a digit it may be a sign
    return words if words[start].text[:1].isnumeric() else words[start:]


def _is_icon(word: RecognisedText, words: Sequence[RecognisedText]) -> bool:
    """Return True if a word seems to be a misread icon.

    It has an unpaired bracket, reaches above and below the words after it, or is far less tall.
    """
    if any(word.text.count(left) != word.text.count(right) for left, right in ("()", "[]", "{}")):
        return True
    if not _DEEP.isdisjoint(word.text):
        return False
    level = [other for other in words if _DEEP.isdisjoint(other.text)] or words
    top, bottom = min(other.box.y for other in words), max(other.box.y + other.box.height for other in level)
    rest = (bottom - top) / 10
    is_higher = word.box.y < top - rest and word.box.y + word.box.height > bottom + rest
    return is_higher or (word.text.isalpha() and word.box.height < 3 * rest)


def _is_mark(word: RecognisedText, following: RecognisedText, gap: float) -> bool:
    """Return True if a word is a tick box or icon; `No` is not, it changes the label. gap: in widths."""
    letters = [letter for letter in word.text if letter.isalnum()]
    if not letters or word.text in _CIRCLES:
        return True
    if len(word.text) == 1 and word.text.islower() and following.text[:1].isupper():
        return True
    can_be_word = len(letters) > 1 and not _VOWELS.isdisjoint(letters)
    is_ascii_letters = all(letter.isascii() and letter.isalpha() for letter in letters)
    return is_ascii_letters and not can_be_word and (word.confidence < _UNSURE or gap >= _MARK_WIDTHS)


def _labels_of(words: Sequence[RecognisedText]) -> list[RecognisedText]:
    runs = [[words[0]]]
    for word, following in zip(words, words[1:]):
        is_end = SIDE in (word.text, following.text) or not _BOXES.isdisjoint(following.text)
        if is_end or not _continues(word, following, words):
            runs.append([])
        runs[-1].append(following)
    return [joined(run) for run in runs if run[0].text != SIDE] or [joined(words)]


def _continues(word: RecognisedText, following: RecognisedText, words: Sequence[RecognisedText]) -> bool:
    # on one line? the corner of a button may be read as a 4 below it
    _, y, _, height = word.box
    _, other_y, _, other_height = following.box
    if min(y + height, other_y + other_height) - max(y, other_y) < min(height, other_height) / 2:
        return False
    heights = sorted(readable.box.height for readable in _readable(words))
    width, height = _character_width(words), heights[len(heights) // 2]
    return -width < _gap(word, following) < max(_APART_WIDTHS * width, _APART_HEIGHTS * height)


def _gap(left: RecognisedText, right: RecognisedText) -> float:
    return right.box.x - left.box.x - left.box.width


def _character_width(words: Sequence[RecognisedText]) -> float:
    readable = _readable(words)
    return max(1.0, sum(word.box.width for word in readable) / sum(len(word.text) for word in readable))


def _readable(words: Sequence[RecognisedText]) -> Sequence[RecognisedText]:
    # a button's edge, read as a sign, is as high as the button
    return [word for word in words if any(map(str.isalnum, word.text))] or words

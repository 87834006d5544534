"""Prepare an image for text recognition; merge several readings of it (pure).

tesseract alone misses most text that is lighter than its background, and text in a frame. So each pixel is
replaced by its difference from the background, which makes all text dark on white, and lines are removed.

Run with several languages at once, tesseract keeps a word that its first language reads without accents. So
each language reads by itself, and the most confident reading of each place is kept. A language without an
accented letter reads it without the accent, with a confidence as high as any; but the accent is a shape close
above a letter, or a letter that reaches below the line. scripts/label_bench.py has 1,050 words that
differ in an accent or a letter from a label that is shown: click_text would press 18 if only English is
installed, 12 with the labels' six languages. Of 1,200 words read right, none is marked by mistake.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from ..core.models import RecognisedText, Rect, joined

Words = list[RecognisedText]
# Readings whose confidence differs by less are equally good. With 0.25 to 0.9, as many labels are found.
_CLOSE = 0.25
_KNOWN = 0.95  # the confidence of a word in the language's dictionary; others have less than 0.934
_LOST = "\u25cc"  # after a word: the image shows an accent that no language read
_UNACCENTED = str.maketrans("łßđøı", "lBdoi")
_DEEP = frozenset("gjpqyQ|[](){}/@$&,;друфцщДЦЩ")
# Lines are removed: tesseract reads a label in a frame as part of a drawing. Lengths in pixels; shorter lines
# are letters. An upright line may be shorter if it connects two level lines.
_INK, _LEAST_LEVEL, _LEAST_SIDE, _LONG_SIDE = 240, 48, 12, 60
_LIGHT = bytes(range(128, 256))
# Tables for grey values. With 7 bits, a sum or a difference of two fits in a byte, so that one addition or
# subtraction of large integers works on a whole image.
_HALF = bytes(value // 2 for value in range(256))
_TWICE = bytes(2 * value + (value > 0) for value in range(128)) + bytes(128)
_ALIKE = bytes(255 * (126 <= value <= 130) for value in range(256))  # JPEG and gradients change a little
_FROM_WHITE = bytes(max(0, 255 - 2 * abs(value - 128)) for value in range(256))
# tesseract has one threshold for the whole image: it misses light grey text, and misreads faint edges. So up
# to 70 % of white becomes black, and from 95 % on white.
_CONTRAST = bytes(min(255, max(0, 4 * (value - 178))) for value in range(256))
# A dot is as wide as its i, an acute twice as wide. With 1.25, one word more is marked.
_WIDER_THAN_A_DOT = 1.4
_DARK = 0.7  # of the way from a word's darkest pixel to white; with 0.5 or 0.8, 31 are pressed instead of 18


class Pgm(NamedTuple):
    """A grey image: one byte a pixel, row by row from the top."""

    pixels: bytes
    width: int
    height: int

    @property
    def data(self) -> bytes:
        """The content of a .pgm file."""
        return f"P5\n{self.width} {self.height}\n255\n".encode() + self.pixels

    def row(self, y: int, left: int, right: int) -> slice:
        return slice(y * self.width + left, y * self.width + right)

    def without_background(self, least_width: int) -> Pgm:
        """Return how much each pixel differs from its background: white for not at all.

        The background is where grey hardly changes, in at least `least_width` pixels of a row and to the next
        row. Elsewhere, as in a letter, the background is that of the pixel above.
        """
        width, half = self.width, self.pixels.translate(_HALF)
        flat = bytearray(len(half))  # 255 in wide runs of like pixels
        for run in re.finditer(b"\xff{%d,}" % (least_width - 1), _alike(half, 1)):
            flat[run.start() : run.end() + 1] = run[0] + b"\xff"  # the last is like one more
        flat_below, like_below = flat[width:] + flat[-width:], _alike(half, width)
        everywhere = _number(b"\xff" * width)
        background, above = [], _number(half[:width])
        for y in range(self.height):
            row = self.row(y, 0, width)
            is_area = _number(flat[row]) & _number(flat_below[row]) & _number(like_below[row])
            above = _number(half[row]) & is_area | above & (everywhere ^ is_area)
            background.append(above.to_bytes(width, "little"))
        return self._replace(pixels=_differences(half, b"".join(background)).translate(_FROM_WHITE))

    def doubled(self) -> Pgm:
        """Return the image twice as wide and high. Each new pixel is between two, and has their mean."""
        half, width = self.pixels.translate(_HALF), 2 * self.width
        wide = bytearray(2 * len(half))
        wide[0::2], wide[1::2] = half, _means(half, half[1:] + half[-1:])
        between = _means(wide, wide[width:] + wide[-width:])
        starts = range(0, len(wide), width)
        rows = (part[start : start + width] for start in starts for part in (wide, between))
        return Pgm(b"".join(rows).translate(_TWICE), width, 2 * self.height)

    def with_contrast(self) -> Pgm:
        """Return the image for tesseract: grey text is black, faint edges are white."""
        return self._replace(pixels=self.pixels.translate(_CONTRAST))

    def is_blank(self) -> bool:
        """Return True if fewer pixels are dark than in one small letter."""
        return len(self.pixels.translate(None, _LIGHT)) < 20

    def without(self, boxes: Iterable[Rect]) -> Pgm:
        """Return the image with white boxes, wider by half their height: words may reach beyond them."""
        image = bytearray(self.pixels)
        for x, y, width, height in (map(int, box) for box in boxes):
            left, right = max(0, x - height // 2), min(self.width, x + width + height // 2)
            for at in range(y, min(self.height, y + height)):
                image[self.row(at, left, right)] = b"\xff" * (right - left)
        return self._replace(pixels=bytes(image))

    def without_lines(self) -> tuple[Pgm, list[Rect]]:
        """Return the image without long straight lines and frames, and the frames' sides."""
        width, image, sides = self.width, bytearray(self.pixels), list[Rect]()
        ink = self.pixels.translate(bytes([1] * _INK + [0] * (256 - _INK)))
        ends: dict[int, list[int]] = {}  # row: where its lines start and end
        for y, start, end in _runs(ink, width, _LEAST_LEVEL):
            ends.setdefault(y, []).extend((start, end))
            image[self.row(y, start, end)] = b"\xff" * (end - start)
        columns = b"".join(ink[x::width] for x in range(width))
        for x, top, bottom in _runs(columns, self.height, _LEAST_SIDE):
            length = bottom - top
            near = length // 4  # corners are rounded
            corners = range(top - near + 1, top + 3), range(bottom - 2, bottom + near)
            is_side = all(any(abs(x - at) <= near for y in ys for at in ends.get(y, ())) for ys in corners)
            if is_side:
                sides.append(Rect(x, top, 1, length))
            if is_side or length >= _LONG_SIDE:
                first = top * width + x
                image[first : first + (length - 1) * width + 1 : width] = b"\xff" * length
        return self._replace(pixels=bytes(image)), sides


def _runs(ink: bytes, width: int, length: int) -> Iterator[tuple[int, int, int]]:
    """Yield the row, start and end of each run of at least `length` ones."""
    line = b"\1" * length
    start = ink.find(line)
    while start >= 0:
        row = start // width
        end = ink.find(b"\0", start, (row + 1) * width)
        end = end if end >= 0 else (row + 1) * width
        if end - start >= length:
            yield row, start - row * width, end - row * width
        start = ink.find(line, end)


def _differences(pixels: bytes, others: bytes) -> bytes:
    """Subtract images of 7 bits a pixel; 128 is no difference, so that no byte is below 0."""
    with_128 = _number(pixels) | _number(b"\x80" * len(pixels))
    return (with_128 - _number(others)).to_bytes(len(pixels), "little")


def _alike(half: bytes, step: int) -> bytes:
    """Return 255 for each pixel that hardly differs from the one `step` bytes further, else 0."""
    return _differences(half, half[step:] + half[-step:]).translate(_ALIKE)


def _means(pixels: bytes | bytearray, others: bytes | bytearray) -> bytes:
    """Return the mean of each two pixels of 7 bits."""
    halves = (_number(pixels) + _number(others)) >> 1
    return (halves & _number(b"\x7f" * len(pixels))).to_bytes(len(pixels), "little")


def _number(pixels: bytes | bytearray) -> int:
    return int.from_bytes(pixels, "little")


def parse_pgm(data: bytes) -> Pgm:
    _, size, _, pixels = data.split(b"\n", 3)
    return Pgm(pixels, *map(int, size.split()))


def is_known(line: Words, image: Pgm) -> bool:
    """Return True if other languages need not read a line. A single character may be a tick box."""
    words = [word for word in line if len(word.text) > 1]
    return bool(words) and all(word.confidence >= _KNOWN and not _lacks_mark(word, image) for word in words)


def best_readings(readings: Sequence[list[Words]], image: Pgm) -> list[Words]:
    """Merge the lines that each language read."""
    lines: list[tuple[Rect, list[tuple[int, RecognisedText]]]] = []
    for rank, reading in enumerate(readings):
        for words in reading:
            box = joined(words).box
            line = next((line for at, line in lines if _is_same_line(at, box)), None)
            if line is None:
                lines.append((box, line := []))
            line += [(rank, word) for word in words]
    merged = list(filter(None, (_best_reading_of_line(line, image) for _, line in lines)))
    _marks.cache_clear()  # it keeps the image in memory
    return merged


def _is_same_line(box: Rect, other: Rect) -> bool:
    part = box.clipped(other)
    return part is not None and part.height > max(box.height, other.height) / 2


def _best_reading_of_line(line: Sequence[tuple[int, RecognisedText]], image: Pgm) -> Words:
    # languages separate words differently: words that overlap are readings of one place
    places: list[dict[int, Words]] = []
    end = float("-inf")
    for rank, word in sorted(line, key=lambda entry: entry[1].box.x):
        if word.box.x >= end - 1:
            places.append({})
        places[-1].setdefault(rank, []).append(word)
        end = max(end, word.box.x + word.box.width)
    ranks = {rank for rank, _ in line}
    readings = [
        list(map(joined, place.values()))
        for place in places
        # a sign that most languages do not see is a part of a picture
        if 2 * len(place) >= len(ranks) or any(word.confidence >= _KNOWN for word in chain(*place.values()))
    ]
    surest = "".join(max(place, key=_least_confidence).text for place in readings)
    letters = list(map(_is_latin, filter(str.isalpha, surest)))
    # a single letter decides nothing: C exists in other scripts, too
    is_latin = len(letters) < 2 or 2 * sum(letters) >= len(letters)
    best = chain(*(_best_reading(place, is_latin, image).words for place in readings))
    return [word._replace(text=word.text + _LOST * _lacks_mark(word, image)) for word in best]


def _least_confidence(reading: RecognisedText) -> float:
    return min(word.confidence for word in reading.words)


def _is_latin(text: str) -> bool:
    return all(letter < "\u0250" for letter in text if letter.isalpha())


def _best_reading(readings: Sequence[RecognisedText], is_latin: bool, image: Pgm) -> RecognisedText:
    """Return the most confident reading in the line's script that lacks no mark.

    Of equally good readings that differ only in accents, return the one with the most accents: a language
    that lacks an accented letter reads it without the accent, with the same confidence.
    """
    if not readings[1:]:
        return readings[0]
    readings = sorted(readings, key=_least_confidence, reverse=True)
    in_script = [reading for reading in readings if _is_latin(reading.text) == is_latin]
    if in_script and _is_close(in_script[0], readings[0]):
        readings = in_script
    best, *others = [reading for reading in readings if not _lacks_mark(reading, image)] or readings
    plain = _without_accents(best.text)
    alike = [other for other in others if _is_close(other, best) and _without_accents(other.text) == plain]
    return max([best, *alike], key=lambda reading: sum(not letter.isascii() for letter in reading.text))


def _is_close(reading: RecognisedText, best: RecognisedText) -> bool:
    return _least_confidence(reading) >= _least_confidence(best) - _CLOSE


def _without_accents(text: str) -> str:
    letters = unicodedata.normalize("NFKD", text.translate(_UNACCENTED).casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter) and letter != " ")


def _lacks_mark(reading: RecognisedText, image: Pgm) -> bool:
    """Return True if the image shows more marks than a reading in Latin or Cyrillic letters has."""
    letters = [letter for letter in reading.text if letter.isalpha()]
    if not letters or not all(letter < "\u0250" or "\u0400" <= letter <= "\u045f" for letter in letters):
        return False
    above = below = 0
    for letter in unicodedata.normalize("NFD", reading.text):
        combining = unicodedata.combining(letter)
        above += 2 * (combining == 230) + (letter in "ij\u0456")
        below += combining in (202, 220) or letter in _DEEP
    seen_above, seen_below = _marks(image, reading.box)
    return seen_above > above or seen_below > below


@lru_cache(maxsize=500)
def _marks(image: Pgm, box: Rect) -> tuple[int, int]:
    """Count the shapes above the letters and the letters that reach below the line."""
    left, right = max(0, int(box.x) - 3), min(image.width, int(box.x + box.width) + 3)
    # an accent may be outside the box
    top, bottom = max(0, int(box.y - 0.4 * box.height)), min(image.height, int(box.y + 1.3 * box.height) + 1)
    shapes = _shapes([image.pixels[image.row(y, left, right)] for y in range(top, bottom)])
    shapes = [shape for shape in shapes if 8 * shape.width > shape.height]  # without a frame's sides
    tallest = max((shape.height for shape in shapes), default=0)
    letters = [shape for shape in shapes if 2 * shape.height >= tallest]
    if not letters:
        return 0, 0
    line = sorted(shape.y + shape.height for shape in letters)[len(letters) // 2]
    height = sorted(shape.height for shape in letters)[len(letters) // 2]
    above = sum(_parts_above(shape, letters, height) for shape in shapes if shape.height >= height / 10)
    below = sum(at.y < line < at.y + at.height - max(2, 0.12 * height) for at in letters)
    return above, below


def _parts_above(shape: Rect, letters: Sequence[Rect], height: float) -> int:
    """Return 1 if a shape is close above a letter, 2 if it is also too wide for an i's dot; else 0."""
    right, bottom = shape.x + shape.width, shape.y + shape.height
    under = [at for at in letters if at.x < right and shape.x < at.x + at.width]
    if shape.width <= 1 or not any(0 <= at.y - bottom <= 0.3 * height for at in under):
        return 0
    return 2 if shape.width > _WIDER_THAN_A_DOT * min(at.width for at in under) else 1


def _shapes(rows: list[bytes]) -> list[Rect]:
    """Return the boxes of connected dark pixels that do not touch the border."""
    darkest = min(map(min, rows))
    limit = re.escape(bytes([darkest + int((255 - darkest) * _DARK)]))
    boxes: dict[int, tuple[int, int, int, int]] = {}  # left, top, right, bottom
    above: list[list[int]] = []  # left, right, key of its box: the runs of dark pixels in the row above
    for y, row in enumerate(rows):
        runs: list[list[int]] = []
        for new, match in enumerate(re.finditer(b"[\\x00-" + limit + b"]+", row, re.DOTALL), len(row) * y):
            left, right = match.span()
            touching = {run[2] for run in above if run[0] <= right and left <= run[1]}
            key = min(touching, default=new)
            runs.append([left, right, key])
            if len(touching) > 1:
                for run in chain(above, runs):
                    run[2] = key if run[2] in touching else run[2]
            top = y
            for other in touching:
                others_left, others_top, others_right, _ = boxes.pop(other)
                left, top, right = min(left, others_left), min(top, others_top), max(right, others_right)
            boxes[key] = left, top, right, y + 1
        above = runs
    width, height = len(rows[0]), len(rows)
    inner = (box for box in boxes.values() if box[0] and box[1] and box[2] < width and box[3] < height)
    return [Rect(left, top, right - left, bottom - top) for left, top, right, bottom in inner]

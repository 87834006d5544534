"""Read the text in an image: tesseract, helped by ImageMagick's convert.

tesseract alone misses most texts that are lighter than what is behind them, and those in a frame. So it reads
the image's difference from its background, every text dark on white, without long straight lines. Measured
with `--psm 11` on 32 windows (Tk, GTK 3 and 4, Qt, web pages; forms, lists, framed, coloured and dark; 8 to
28 points, 9 of them doubled) with 631 labels: 482 are found in the image as it is, 615 in this one, with 18
misread words (590 and 46 where it is a JPEG); nearly the same with Debian 12's and 13's programs. A window of
554x388 costs 0.4 s of processor time, 1280x800 1.3 s.

It misses most single characters. So what stands alone is cut out, and read by itself, when one is asked for:
that finds the digits and signs of calculators (galculator; Tk, light on dark). Not found are what tesseract's
English data does not know (÷ ± π √ ²), a dot, and texts with an arrow beside them. 40 keys cost 1.5 s of
processor time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...core.cancellation import in_parallel
from ...core.errors import invalid
from ...core.models import ImageInfo, RecognisedText, Rect, rect_around
from ...core.text import clean_text
from ...system.images import read_image_info
from ...system.process import program_path, run_program

_OCR_S = 60.0
# Above it an image is most likely one of a display with two pixels a point: its text is large, and time
# matters more.
_LARGE_PIXELS = 2_000_000
_LEAST_CONFIDENCE = 0.4
# tesseract takes a widget's border or corner for a word of these.
_BORDER_WORD = re.compile(r"[|()\[\]{}_~.,:;'‘’“”\"—–-]+")
_FRAME_SIDE = re.compile(r"[|\[\]]+")  # between two buttons, too
# Four times as fast for images of this size as with its own threads, which get in each other's way.
_ONE_THREAD = {"OMP_THREAD_LIMIT": "1"}
# The background: areas of one grey, larger than a letter, with what is smaller merged into them; twice, as
# the first pass merges some parts of letters with each other. Every other pixel tells it, in a quarter of the
# time; of fewer the letters of a bold title would be one area. Mode leaves fewer areas in photographs, which
# cost time, and over 65,535 convert refuses.
_BACKGROUND = [
    *("-statistic", "Mode", "3x3", "-fuzz", "5%", "-define", "connected-components:area-threshold=400"),
    *("-define", "connected-components:mean-color=true"),
    *("-connected-components", "8", "-connected-components", "8"),
]
_DARK_ON_WHITE = ["-compose", "Difference", "-composite", "-negate"]
# tesseract takes a label in a frame for a part of a drawing. Close leaves of what is dark only lines, from 48
# pixels across and 60 upright on, as stems of large letters are none; every fourth pixel along them tells it.
_ACROSS = ["-sample", "25%x100%", "-morphology", "Close", "Rectangle:12x1"]
_UPRIGHT = ["-sample", "100%x25%", "-morphology", "Close", "Rectangle:1x15"]
# The levels drop the faint edges of bevelled buttons, which confuse tesseract, and keep white on orange.
_LEVELS = ["-level", "45%,95%"]

# How far apart the parts of a character may be, twice this: of = and of a word; a key's border stays apart.
_REACH_X, _REACH_Y = 3, 2
_ALONE = [
    *("-threshold", "82%", "-statistic", "Minimum", f"{2 * _REACH_X + 1}x{2 * _REACH_Y + 1}"),
    *("-define", "connected-components:verbose=true", "-connected-components", "8"),
]
# id: WIDTHxHEIGHT+X+Y centroid area colour, of the black ones
_COMPONENT = re.compile(r"^ *\d+: (\d+)x(\d+)\+(\d+)\+(\d+) \S+ \d+ (?:gray|s?rgb)a?\(0[,)]", re.MULTILINE)
_LARGEST_ALONE = 34
_ALONE_AT_MOST = 200  # 20 ms of processor time each, in each size
_MARGIN = 3
_LEAST_CONFIDENCE_ALONE = 0.7  # no neighbour helps
# No size is the best for every character: of two readings the surer one is taken.
_SIZES = (2, 4)
_DASHES = re.compile(r"[-_—–]+")


def read_text_by_tesseract(path: Path) -> list[RecognisedText]:
    """The lines of text in an image, top to bottom, each with its words; boxes in the image's pixels.

    Raises INVALID_ARGUMENT for what is no image, MISSING_PROGRAM, TIMEOUT, PROGRAM_FAILED.
    """
    program_path("tesseract")  # without it convert would work in vain
    info, data, source = _image(path)
    zoom = 2 if info.width * info.height <= _LARGE_PIXELS else 1
    # small text is read better enlarged
    enlarged = ["-filter", "Triangle", "-resize", f"{zoom}00%"] if zoom > 1 else []
    steps = [*_dark_on_white(info), *_LEVELS, *enlarged]
    lines = _read_lines(_converted(data, source, steps), zoom)
    return sorted(lines, key=lambda line: (line.box.y, line.box.x))


def read_characters_by_tesseract(path: Path) -> list[RecognisedText]:
    """What stands alone and is no wider than two or three characters, as on the keys of a calculator; boxes
    in the image's pixels. Raises as read_text_by_tesseract does.
    """
    info, data, source = _image(path)
    grey = _converted(data, source, _dark_on_white(info))
    boxes = _standing_alone(grey)
    readings = in_parallel(lambda size: _read_boxes(grey, boxes, size), _SIZES)
    surest: dict[Rect, RecognisedText] = {}
    for found in (one for reading in readings for one in reading):
        if found.box not in surest or found.confidence > surest[found.box].confidence:
            surest[found.box] = found
    return [one for one in surest.values() if one.confidence >= _LEAST_CONFIDENCE_ALONE]


def _image(path: Path) -> tuple[ImageInfo, bytes, str]:
    """An image's size, its bytes, and what convert calls them on its stdin. Raises INVALID_ARGUMENT."""
    info = read_image_info(path)
    if info is None:
        raise invalid(f"{path} is not an image", "give a png or jpg")
    # the kind is named: convert would run a drawing's or a script's commands as gladly
    return info, path.read_bytes(), f"{info.kind.replace('jpg', 'jpeg')}:-[0]"


def _dark_on_white(info: ImageInfo) -> list[str]:
    """The steps of convert for every text dark on white, and no lines."""
    part = "50%" if info.width * info.height <= _LARGE_PIXELS else "25%"
    back = ["-sample", f"{info.width}x{info.height}!"]
    background = ["(", "+clone", "-sample", part, *_BACKGROUND, *back, ")", *_DARK_ON_WHITE]
    lines = [
        "(",
        "+clone",
        *_ACROSS,
        *back,
        "-negate",
        ")",
        "(",
        "-clone",
        "0",
        *_UPRIGHT,
        *back,
        "-negate",
        ")",
    ]
    return [*background, *lines, "-evaluate-sequence", "Add"]


def _converted(data: bytes, source: str, steps: Sequence[str]) -> bytes:
    """An image in grey, after these steps of convert, as a PGM."""
    argv = ["convert", source, "-background", "white", "-alpha", "remove", "-colorspace", "Gray", *steps]
    return run_program([*argv, "-depth", "8", "pgm:-"], timeout_s=_OCR_S, stdin=data).stdout


def _read_lines(pgm: bytes, zoom: int) -> list[RecognisedText]:
    lines: dict[tuple[str, ...], list[RecognisedText]] = {}
    for cells in _words(pgm, "11"):
        box = Rect(*(int(cell) / zoom for cell in cells[6:10]))
        if not _FRAME_SIDE.fullmatch(cells[11]):
            word = RecognisedText(cells[11], box, float(cells[10]) / 100)
            lines.setdefault(tuple(cells[1:5]), []).append(word)
    return [
        line
        for line in map(_line_of, lines.values())
        if line.confidence >= _LEAST_CONFIDENCE and any(map(str.isalnum, line.text))
    ]


def _words(image: bytes, segmentation: str) -> Iterator[list[str]]:
    """The words that tesseract finds, each as it prints them: level (5: a word), page, block, paragraph,
    line, word, left, top, width, height, confidence, text. segmentation: its page segmentation mode.
    """
    argv = ["tesseract", "stdin", "stdout", "--psm", segmentation, "tsv"]
    printed = run_program(argv, timeout_s=_OCR_S, stdin=image, environment=_ONE_THREAD).text
    for row in printed.split("\n")[1:]:
        cells = row.split("\t", 11)
        text = clean_text(cells[-1])
        if len(cells) == 12 and cells[0] == "5" and text:
            yield [*cells[:11], text]


def _standing_alone(grey: bytes) -> list[Rect]:
    """The boxes of what has nothing near it, dark on white: no borders, no words of a text."""
    printed = run_program(["convert", "pgm:-", *_ALONE, "null:"], timeout_s=_OCR_S, stdin=grey).text
    boxes = []
    for found in _COMPONENT.finditer(printed):
        width, height, x, y = map(int, found.groups())
        width, height = width - 2 * _REACH_X, height - 2 * _REACH_Y
        is_border = width < 2 or height > 5 * max(width, 3) or (height > 24 and height > 2.2 * width)
        if max(width, height) <= _LARGEST_ALONE and width + height > 4 and not is_border:
            boxes.append(Rect(x + _REACH_X, y + _REACH_Y, width, height))
    return sorted(boxes, key=lambda box: (box.y, box.x))[:_ALONE_AT_MOST]


def _read_boxes(grey: bytes, boxes: Sequence[Rect], size: int) -> list[RecognisedText]:
    """Each box by itself, so many times enlarged: a page each for one run of tesseract."""
    if not boxes:
        return []
    cuts: list[str] = []
    for box in boxes:
        left, top = max(0, int(box.x) - _MARGIN), max(0, int(box.y) - _MARGIN)
        place = f"{int(box.width) + 2 * _MARGIN}x{int(box.height) + 2 * _MARGIN}+{left}+{top}"
        cuts += ["(", "-clone", "0", "-crop", place, "+repage", ")"]
    larger = ["-normalize", "-filter", "Mitchell", "-resize", f"{size}00%"]
    framed = ["-bordercolor", "white", "-border", "16"]
    argv = ["convert", "pgm:-", *cuts, "-delete", "0", *larger, *framed, "-compress", "none", "tiff:-"]
    pages = run_program(argv, timeout_s=_OCR_S, stdin=grey).stdout
    found: dict[int, list[RecognisedText]] = {}
    for cells in _words(pages, "10"):
        page = int(cells[1]) - 1
        word = RecognisedText(cells[11], boxes[page], float(cells[10]) / 100)
        found.setdefault(page, []).append(word)
    return [_character(words) for words in found.values()]


def _character(words: list[RecognisedText]) -> RecognisedText:
    """What was read in one box, without the doubts of who expects a word there."""
    text = " ".join(word.text for word in words)
    if len(text) == 2 and text[0] != text[1] and text[0].casefold() == text[1].casefold():
        text = text[0]  # Cc for a C that has no neighbour to compare it with
    if _DASHES.fullmatch(text):
        text = "-"
    return RecognisedText(text, words[0].box, sum(word.confidence for word in words) / len(words))


def _line_of(words: list[RecognisedText]) -> RecognisedText:
    """Words as one line with the box around them all, without borders at its ends."""
    while len(words) > 1 and _BORDER_WORD.fullmatch(words[0].text):
        words = words[1:]
    while len(words) > 1 and _BORDER_WORD.fullmatch(words[-1].text):
        words = words[:-1]
    confidence = sum(one.confidence for one in words) / len(words)
    text = " ".join(one.text for one in words)
    return RecognisedText(text, rect_around([one.box for one in words]), confidence, tuple(words))

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
from itertools import chain
from pathlib import Path

from ...core.cancellation import in_parallel
from ...core.errors import invalid
from ...core.models import RecognisedText, Rect, joined
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
# For convert. The background: areas of one grey, larger than a letter, with what is smaller merged into them;
# twice, as the first pass merges some parts of letters with each other. Every other pixel tells it, in a
# quarter of the time; of fewer the letters of a bold title would be one area. Mode leaves fewer areas in
# photographs, which cost time, and over 65,535 convert refuses.
# tesseract takes a label in a frame for a part of a drawing. Close leaves of what is dark only lines, from 48
# pixels across and 60 upright on, as stems of large letters are none; every fourth pixel along them tells it.
_DARK_ON_WHITE = """
    -background white -alpha remove -colorspace Gray
    ( +clone -sample {part}% -statistic Mode 3x3 -fuzz 5% -define connected-components:area-threshold=400
      -define connected-components:mean-color=true
      -connected-components 8 -connected-components 8 -sample {width}x{height}! )
    -compose Difference -composite -negate
    ( +clone -sample 25%x100% -morphology Close Rectangle:12x1 -sample {width}x{height}! -negate )
    ( -clone 0 -sample 100%x25% -morphology Close Rectangle:1x15 -sample {width}x{height}! -negate )
    -evaluate-sequence Add
"""
# The levels drop the faint edges of bevelled buttons, which confuse tesseract, and keep white on orange;
# small text is read better enlarged.
_FOR_LINES = "-level 45%,95% -filter Triangle -resize {zoom}00%"
# How far apart the parts of a character may be, twice this: of = and of a word; a key's border stays apart.
_REACH_X, _REACH_Y = 3, 2
_ALONE = f"""
    -threshold 82% -statistic Minimum {2 * _REACH_X + 1}x{2 * _REACH_Y + 1}
    -define connected-components:verbose=true -connected-components 8 null:
"""
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
    pgm, zoom = _dark_on_white(path, is_for_lines=True)
    lines: dict[tuple[str, ...], list[RecognisedText]] = {}
    for key, word in _words(pgm, "11"):
        if not _FRAME_SIDE.fullmatch(word.text):
            lines.setdefault(key, []).append(word._replace(box=word.box.scaled(1 / zoom)))
    found = [joined(_without_borders(words)) for words in lines.values()]
    sure = [line for line in found if line.confidence >= _LEAST_CONFIDENCE]
    texts = [line for line in sure if any(map(str.isalnum, line.text))]
    return sorted(texts, key=lambda line: (line.box.y, line.box.x))


def read_characters_by_tesseract(path: Path) -> list[RecognisedText]:
    """What stands alone and is no wider than two or three characters, as on the keys of a calculator; boxes
    in the image's pixels. Raises as read_text_by_tesseract does.
    """
    pgm, _ = _dark_on_white(path, is_for_lines=False)
    boxes = _standing_alone(pgm)
    readings = in_parallel(lambda size: _read_boxes(pgm, boxes, size), _SIZES)
    found = [found for found in chain(*readings) if found.confidence >= _LEAST_CONFIDENCE_ALONE]
    # of two that are as sure the shorter: % rather than Yo
    found.sort(key=lambda found: (round(found.confidence, 1), -len(found.text), found.confidence))
    return list({character.box: character for character in found}.values())


def _dark_on_white(path: Path, is_for_lines: bool) -> tuple[bytes, int]:
    """An image in grey as a PGM, every text dark on white, without lines; and how many times enlarged."""
    info = read_image_info(path)
    if info is None:
        raise invalid(f"{path} is not an image", "give a png or jpg")
    is_large = info.width * info.height > _LARGE_PIXELS
    zoom = 2 if is_for_lines and not is_large else 1
    part = 25 if is_large else 50
    steps = _DARK_ON_WHITE.format(part=part, width=info.width, height=info.height)
    steps += _FOR_LINES.format(zoom=zoom) if is_for_lines else ""
    # the kind is named: convert would run a drawing's or a script's commands as gladly
    argv = ["convert", f"{info.kind.replace('jpg', 'jpeg')}:-[0]", *steps.split(), "-depth", "8", "pgm:-"]
    return run_program(argv, timeout_s=_OCR_S, stdin=path.read_bytes()).stdout, zoom


def _words(image: bytes, segmentation: str) -> Iterator[tuple[tuple[str, ...], RecognisedText]]:
    """The words that tesseract finds in these pages, and of each its page, block, paragraph and line.
    segmentation: its page segmentation mode.
    """
    argv = ["tesseract", "stdin", "stdout", "--psm", segmentation, "tsv"]
    printed = run_program(argv, timeout_s=_OCR_S, stdin=image, environment=_ONE_THREAD).text
    for row in printed.split("\n")[1:]:
        # level (5: a word), page, block, paragraph, line, word, left, top, width, height, confidence, text
        cells = row.split("\t", 11)
        text = clean_text(cells[-1])
        if len(cells) == 12 and cells[0] == "5" and text:
            box = Rect(*map(float, cells[6:10]))
            yield tuple(cells[1:5]), RecognisedText(text, box, float(cells[10]) / 100)


def _without_borders(words: list[RecognisedText]) -> list[RecognisedText]:
    texts = [at for at, word in enumerate(words) if not _BORDER_WORD.fullmatch(word.text)]
    return words[texts[0] : texts[-1] + 1] if texts else words


def _standing_alone(grey: bytes) -> list[Rect]:
    """The boxes of what has nothing near it, dark on white: no borders, no words of a text."""
    printed = run_program(["convert", "pgm:-", *_ALONE.split()], timeout_s=_OCR_S, stdin=grey).text
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
    steps = ""
    for x, y, width, height in (map(int, box) for box in boxes):
        crop = f"{width + 2 * _MARGIN}x{height + 2 * _MARGIN}+{max(0, x - _MARGIN)}+{max(0, y - _MARGIN)}"
        steps += f"( -clone 0 -crop {crop} +repage ) "
    steps += f"-delete 0 -normalize -filter Mitchell -resize {size}00% -bordercolor white -border 16"
    argv = ["convert", "pgm:-", *steps.split(), "-compress", "none", "tiff:-"]
    pages: dict[int, list[RecognisedText]] = {}
    for key, word in _words(run_program(argv, timeout_s=_OCR_S, stdin=grey).stdout, "10"):
        page = int(key[0]) - 1
        pages.setdefault(page, []).append(word._replace(box=boxes[page]))
    return [_character(joined(words)) for words in pages.values()]


def _character(found: RecognisedText) -> RecognisedText:
    """What was read in one box, without the doubts of who expects a word there."""
    text = found.text
    if len(text) == 2 and text[0] != text[1] and text[0].casefold() == text[1].casefold():
        text = text[0]  # Cc for a C that has no neighbour to compare it with
    return RecognisedText("-" if _DASHES.fullmatch(text) else text, found.box, found.confidence)

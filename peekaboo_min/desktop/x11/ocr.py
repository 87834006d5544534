"""Read the text in an image with tesseract.

readings.py prepares the image: all text dark on white, without lines. scripts/label_bench.py has 20 windows
of five toolkits (light, dark, up to twice the size) with 1,400 labels in six languages. Plain tesseract with
`--psm 11` finds 911 of them with all six languages, and 188 of the 219 English ones with English; in the
prepared image it finds 1,279 and 217. A window of 980x761 costs 0.8 s of processor time with one language,
1.4 times plain tesseract.

Each language reads in its own process: the user's own first, then the second, then the others side by side.
Each skips the lines in which an earlier one knows every word, and no accent is lost. readings.py chooses.

tesseract also misses most single characters. If one is requested, isolated shapes are cut out and read one by
one, which finds the digits and signs of calculators (galculator; Tk, light on dark). It does not find the
characters that tesseract's English data lacks (÷ ± π √ ²), a dot, and text with an arrow beside it. 40 keys
cost 1.5 s of processor time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from ...core.call import in_parallel
from ...core.errors import ErrorCode, PeekabooError, invalid
from ...core.models import SIDE, RecognisedText, Rect, joined
from ...core.settings import settings, user_language
from ...core.text import clean_text
from ...system.image_files import whole_image
from ...system.process import program_path, run_program
from ..readings import Pgm, Words, best_readings, is_known, parse_pgm

_OCR_S = 60.0  # a photograph takes some seconds; random noise would take minutes
_LINES, _CHARACTERS = "--psm 11", "--psm 10"  # sparse text; one character
# At this size, tesseract with more threads takes four times as long, and convert twice the processor time.
_ONE_THREAD = {"OMP_THREAD_LIMIT": "1"}

# Each entry: the language in a locale's name, tesseract's name for it, and its letters beyond ASCII, or its
# scripts by their Unicode names. If many languages are installed, the first in this order are used: the most
# spoken first, other scripts early.
_LANGUAGES = dict[str, list[str]](
    (name, rest)
    for name, *rest in map(
        str.split,
        """en eng é; de deu äöüß; ru rus CYRILLIC; fr fra àâæçèéêëîïôœùûüÿ; es spa áéíñóúü; pl pol ąćęłńóśźż;
        it ita àèéìòù; pt por àáâãçéêíóôõú; nl nld éëïóö; tr tur çğıöşü; uk ukr CYRILLIC; el ell GREEK;
        ja jpn CJK/HIRAGANA/KATAKANA; zh chi_sim CJK; ko kor HANGUL; ar ara ARABIC; he heb HEBREW;
        cs ces áčďéěíňóřšťúůýž; sk slk áäčďéíĺľňóôŕšťúýž; hu hun áéíóöőúüű; ro ron ăâîșț; sv swe åäöé;
        da dan æøåé; nb nor æøåé; fi fin åäö; hr hrv čćđšž; bg bul CYRILLIC""".split(";"),  # noqa: SIM905
    )
)
_MOST_LANGUAGES = 5  # each is a run of tesseract
# A larger image is most likely of a display with two pixels per point, which shows its text large.
_LARGE_PIXELS = 2_000_000
# tesseract reads a widget's border or corner as a word of these characters.
_BORDER_WORD = re.compile(r"[|()\[\]{}_~.,:;'‘’“”\"—–-]+")
_FRAME_SIDE = re.compile(r"[|\[\]]+")  # also between two buttons
_GREY = "-strip -background white -alpha remove -colorspace Gray -depth 8 pgm:-"  # no comment in its header
# Wider than the bars of a bold T in a title, narrower than a calculator's key, in pixels.
_LEAST_BACKGROUND = 40
# Parts of a character (=) or of a word may be twice this far apart, in pixels; a key's border stays apart.
_REACH_X, _REACH_Y = 3, 2
_ALONE = f"""
    -threshold 82% -statistic Minimum {2 * _REACH_X + 1}x{2 * _REACH_Y + 1}
    -define connected-components:verbose=true -connected-components 8 null:
"""
# a black area in convert's output: `id: WIDTHxHEIGHT+X+Y centroid area colour`
_COMPONENT = re.compile(r"^ *\d+: (\d+)x(\d+)\+(\d+)\+(\d+) \S+ \d+ (?:gray|s?rgb)a?\(0[,)]", re.MULTILINE)
_ALONE_AT_MOST = 200  # 20 ms of processor time each, in each size
_MARGIN = 3  # pixels: the faint edge of a character is outside its box
_LEAST_CONFIDENCE_ALONE = 0.7  # higher, because no neighbour confirms the reading
# No enlargement is best for every character: read at two and keep the more confident reading.
_SIZES = (2, 4)


def read_text_by_tesseract(path: Path) -> list[RecognisedText]:
    """Return the lines of text, top to bottom, each with its words; boxes in the image's pixels.

    Raises INVALID_ARGUMENT if the file is not an image, MISSING_PROGRAM, TIMEOUT, PROGRAM_FAILED.
    """
    program_path("tesseract")  # fail before convert has done its work
    image, sides = _dark_on_white(path)
    zoom = 1 if _is_large(image) else 2  # small text is recognised better when enlarged
    image = image.doubled() if zoom == 2 else image
    languages, readings, rest = text_languages(), list[list[Words]](), image.with_contrast()
    for group in filter(None, (languages[:1], languages[1:2], languages[2:])):
        readings += in_parallel(partial(_read_lines, rest.data), group)
        rest = rest.without(joined(line).box for line in readings[-1] if is_known(line, image))
        if rest.is_blank():  # a language may not see a line in another script at all
            break
    lines = best_readings(readings, image)
    words = [[word._replace(box=word.box.scaled(1 / zoom)) for word in line] for line in lines]
    frames = [RecognisedText(SIDE, side, 1.0) for side in sides]
    read = [joined(_without_borders(_with_sides(line, frames))) for line in words]
    texts = [line for line in read if line.confidence >= 0.4 and any(map(str.isalnum, line.text))]
    return sorted(texts, key=lambda line: (line.box.y, line.box.x))


def text_languages() -> list[str]:
    """Return the languages to read with: PEEKABOO_OCR_LANGUAGES, or those installed; the user's own first.

    Raises MISSING_PROGRAM if a language of the variable is not installed.
    """
    installed = run_program(["tesseract", "--list-langs"], timeout_s=_OCR_S).text.split("\n")[1:]
    wanted = re.findall(r"[^+,\s]+", settings().ocr_languages)
    for code in wanted:
        if code not in installed:
            problem = f"tesseract has no data for the language {code[:40]!r}"
            hint = f"sudo apt-get install {_package(code)}, or change PEEKABOO_OCR_LANGUAGES"
            raise PeekabooError(ErrorCode.MISSING_PROGRAM, problem, hint)
    own = _LANGUAGES.get(user_language(), ["eng"])[0]
    ordered = dict.fromkeys([own, "eng", *(code for code, _ in _LANGUAGES.values()), *sorted(installed)])
    readable = [code for code in ordered if code in installed and code not in ("", "osd", "equ")]
    return wanted or readable[:_MOST_LANGUAGES] or ["eng"]


def missing_language(text: str) -> str:
    """Return the package without which letters of `text`, or of the user's language, may be misread."""
    used, own = text_languages(), _LANGUAGES.get(user_language())
    if own and own[0] not in used and not settings().ocr_languages:
        return _package(own[0])
    letters = {letter for letter in text.casefold() if letter.isalpha() and not letter.isascii()}
    readers = {code: {letter for letter in letters if _is_of(letter, of)} for code, of in _LANGUAGES.values()}
    unread = letters.difference(*(readers.get(code, letters) for code in used))
    return next((_package(code) for code, read in readers.items() if unread & read), "")


def _is_of(letter: str, letters: str) -> bool:
    script = unicodedata.name(letter, "?").partition(" ")[0]
    return letter in letters or script in letters.split("/")


def _package(language: str) -> str:
    return f"tesseract-ocr-{language.replace('_', '-')}"


def _read_lines(image: bytes, language: str) -> list[Words]:
    lines: dict[tuple[str, ...], Words] = {}
    for key, word in _words(image, _LINES, language):
        if not _FRAME_SIDE.fullmatch(word.text):
            lines.setdefault(key, []).append(word)
    return list(lines.values())


def read_characters_by_tesseract(path: Path) -> list[RecognisedText]:
    """Return lone texts of at most three characters, such as a calculator's keys."""
    pgm = _dark_on_white(path)[0].data
    boxes = _standing_alone(pgm)
    readings = in_parallel(lambda size: _read_boxes(pgm, boxes, size), _SIZES)
    characters = [text for text in chain(*readings) if text.confidence >= _LEAST_CONFIDENCE_ALONE]
    # prefer the shorter of two equally confident readings: % rather than Yo
    characters.sort(key=lambda text: (round(text.confidence, 1), -len(text.text), text.confidence))
    return list({character.box: character for character in characters}.values())


def _dark_on_white(path: Path) -> tuple[Pgm, list[Rect]]:
    """Return the image with all text dark on white and no lines, and the frames' sides."""
    data = path.read_bytes()
    info = whole_image(data)
    if info is None:
        raise invalid(f"{path} is not an image", "give a png or jpg")
    # name the format, or convert would execute the commands in a drawing or a script
    argv = ["convert", f"{info.kind.replace('jpg', 'jpeg')}:-[0]", *_GREY.split()]
    grey = run_program(argv, timeout_s=_OCR_S, stdin=data, environment=_ONE_THREAD).stdout
    image = parse_pgm(grey)
    return image.without_background(_LEAST_BACKGROUND * (2 if _is_large(image) else 1)).without_lines()


def _is_large(image: Pgm) -> bool:
    return image.width * image.height > _LARGE_PIXELS


def _words(image: bytes, options: str, language: str) -> Iterator[tuple[tuple[str, ...], RecognisedText]]:
    """Yield each word with its page, block, paragraph and line."""
    argv = ["tesseract", "stdin", "stdout", *options.split(), "-l", language]
    argv += ["-c", "tessedit_do_invert=0", "tsv"]  # no text is light: do not read it again, inverted
    printed = run_program(argv, timeout_s=_OCR_S, stdin=image, environment=_ONE_THREAD).text
    for row in printed.split("\n")[1:]:
        # columns: level (5 is a word), page, block, paragraph, line, word, left, top, width, height,
        # confidence, text
        cells = row.split("\t", 11)
        text = clean_text(cells[-1])
        if len(cells) == 12 and cells[0] == "5" and text:
            box = Rect(*map(float, cells[6:10]))
            yield tuple(cells[1:5]), RecognisedText(text, box, float(cells[10]) / 100)


def _with_sides(words: Words, sides: Words) -> Words:
    """Insert the frames' sides between words: labels end there."""
    y, start, end = joined(words).box.centre.y, words[0].box.centre.x, words[-1].box.centre.x
    between = [side for side in sides if side.box.y < y < side.box.y + side.box.height]
    inside = [side for side in between if start < side.box.x < end]
    line = sorted([*words, *inside], key=lambda word: word.box.centre.x)
    return [word for before, word in zip([line[-1], *line], line) if not word.text == before.text == SIDE]


def _without_borders(words: list[RecognisedText]) -> list[RecognisedText]:
    texts = [at for at, word in enumerate(words) if not _BORDER_WORD.fullmatch(word.text)]
    return words[texts[0] : texts[-1] + 1] if texts else words


def _standing_alone(grey: bytes) -> list[Rect]:
    """Return the boxes of isolated dark shapes. Skip borders, and words of a text."""
    printed = run_program(["convert", "pgm:-", *_ALONE.split()], timeout_s=_OCR_S, stdin=grey).text
    boxes = []
    for area in _COMPONENT.finditer(printed):
        width, height, x, y = map(int, area.groups())
        width, height = width - 2 * _REACH_X, height - 2 * _REACH_Y
        is_border = width < 2 or height > 5 * max(width, 3) or (height > 24 and height > 2.2 * width)
        if max(width, height) <= 34 and width + height > 4 and not is_border:
            boxes.append(Rect(x + _REACH_X, y + _REACH_Y, width, height))
    return sorted(boxes, key=lambda box: (box.y, box.x))[:_ALONE_AT_MOST]


def _read_boxes(grey: bytes, boxes: Sequence[Rect], size: int) -> list[RecognisedText]:
    """Read each box by itself, `size` times enlarged, as one page each in one run of tesseract."""
    if not boxes:
        return []
    steps = ""
    for x, y, width, height in (map(int, box) for box in boxes):
        crop = f"{width + 2 * _MARGIN}x{height + 2 * _MARGIN}+{max(0, x - _MARGIN)}+{max(0, y - _MARGIN)}"
        steps += f"( -clone 0 -crop {crop} +repage ) "
    steps += f"-delete 0 -normalize -filter Mitchell -resize {size}00% -bordercolor white -border 16"
    argv = ["convert", "pgm:-", *steps.split(), "-compress", "none", "tiff:-"]
    pages: dict[int, list[RecognisedText]] = {}
    for key, word in _words(
        run_program(argv, timeout_s=_OCR_S, stdin=grey).stdout, _CHARACTERS, text_languages()[0]
    ):
        page = int(key[0]) - 1
        pages.setdefault(page, []).append(word._replace(box=boxes[page]))
    return [_character(joined(words)) for words in pages.values()]


def _character(reading: RecognisedText) -> RecognisedText:
    text = reading.text
    if len(text) == 2 and text[0] != text[1] and text[0].casefold() == text[1].casefold():
        text = text[0]  # tesseract reads a lone C as Cc
    return RecognisedText("-" if re.fullmatch("[-_—–]+", text) else text, reading.box, reading.confidence)

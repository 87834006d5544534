"""Readings of an image in several languages: the best of each place, accents that none read."""

from __future__ import annotations

import pytest

from peekaboo_min.core.models import RecognisedText, Rect
from peekaboo_min.desktop.readings import Pgm, _marks, best_readings, is_known, parse_pgm

ROWS = (
    "..................",
    "..................",
    "..####....####....",
    "..#..#....#..#....",
    "..#..#....#..#....",
    "..####....####....",
    "..................",
    "..................",
)


def image_of(rows: tuple[str, ...]) -> bytes:
    pixels = "".join(rows).replace("#", "\0").replace(".", "\xff").encode("latin-1")
    return f"P5\n{len(rows[0])} {len(rows)}\n255\n".encode() + pixels


def word(text: str, confidence: float) -> RecognisedText:
    return RecognisedText(text, Rect(1, 2, 16, 5), confidence)


def test_lines_that_are_known_are_white_for_other_languages() -> None:
    assert Pgm(bytes(18), 6, 3).without([Rect(2, 0, 1, 2)]).pixels == b"\0\xff\xff\xff\0\0" * 2 + bytes(6)


@pytest.mark.parametrize(
    ("accent", "readings", "best"),
    [
        (0, [("oo", 0.96)], "oo"),
        (2, [("oo", 0.96)], "oo◌"),
        (2, [("oo", 0.96), ("ôo", 0.4)], "ôo"),
        (0, [("oo", 0.96), ("ôo", 0.4)], "oo"),
        (0, [("lacze", 0.6), ("łacze", 0.5)], "łacze"),
        (0, [("ио", 0.96)], "ио"),
        (2, [("ио", 0.96)], "ио◌"),
        (2, [("ио", 0.96), ("йо", 0.4)], "йо"),
    ],
)
def test_accent_of_the_image_is_read_or_marked(
    accent: int, readings: list[tuple[str, float]], best: str
) -> None:
    dots = "." * 2 + "#" * accent
    image = parse_pgm(image_of((ROWS[0], dots.ljust(18, "."), *ROWS[1:])))
    assert is_known([word("oo", 0.96), word("U", 0.1)], image) is (accent == 0)
    ((found,),) = best_readings([[[word(*reading)]] for reading in readings], image)
    assert found.text == best
    assert _marks.cache_info().currsize == 0, "the image stays in memory"


@pytest.mark.parametrize(
    ("mark", "readings", "best"),
    [
        ("..##..", [("oi", 0.96)], "oi"),
        (".####.", [("oi", 0.96)], "oi◌"),
        (".####.", [("oi", 0.96), ("oí", 0.4)], "oí"),
        ("#.##.#", [("oi", 0.96)], "oi"),
    ],
)
def test_dot_of_an_i_is_no_accent(mark: str, readings: list[tuple[str, float]], best: str) -> None:
    o_and_stem = (f"{row[:9]}##......." for row in ROWS[2:6])
    image = parse_pgm(image_of((ROWS[0], f".......{mark}.....", ROWS[0], *o_and_stem, *ROWS[:2])))
    ((found,),) = best_readings([[[word(*reading)]] for reading in readings], image)
    assert found.text == best


def test_image_is_blank_once_its_letters_are_read() -> None:
    image = parse_pgm(image_of(ROWS))
    assert not image.is_blank()
    assert image.without([Rect(0, 0, 18, 8)]).is_blank()


def test_frame_is_removed_and_what_is_in_it_stays() -> None:
    edge, inside = "." * 2 + "#" * 60 + "." * 2, "." * 2 + "#" + "." * 58 + "#" + "." * 2
    stroke = inside[:30] + "##" + inside[32:]
    rows = ("." * 64, edge, *[inside] * 4, *[stroke] * 14, *[inside] * 4, edge, "." * 64)
    image, sides = parse_pgm(image_of(rows)).without_lines()
    margin, strokes = ["." * 64] * 6, ["." * 30 + "##" + "." * 32] * 14
    assert image.data == image_of((*margin, *strokes, *margin))
    assert {side.x for side in sides} == {2, 61}


def test_text_on_each_background_becomes_dark_on_white() -> None:
    margin = bytes([60] * 50 + [230] * 50)
    letters = bytes([60] * 20 + [220] * 8 + [60] * 22 + [230] * 20 + [30] * 8 + [230] * 22)
    image = Pgm(margin * 3 + letters * 2 + margin, 100, 6).without_background(40)
    expected = [255] * 20 + [95] * 8 + [255] * 42 + [55] * 8 + [255] * 22
    assert list(image.pixels) == [255] * 300 + expected * 2 + [255] * 100


@pytest.mark.parametrize(("width", "height", "is_seen"), [(39, 3, True), (40, 3, False), (80, 1, True)])
def test_wide_area_is_background_but_no_line_or_letter(width: int, height: int, is_seen: bool) -> None:
    bar = b"\xff" * 10 + bytes(width) + b"\xff" * (90 - width)
    image = Pgm(b"\xff" * 300 + bar * height + b"\xff" * 300, 100, 6 + height).without_background(40)
    assert (min(image.pixels) < 255) is is_seen


def test_doubled_image_has_means_between_its_pixels() -> None:
    doubled = Pgm(bytes([0, 255, 100, 200]), 2, 2).doubled()
    assert list(doubled.pixels) == [0, 127, 255, 177, 51, 139, 227, 189, *2 * [101, 151, 201, 201]]


def test_grey_text_is_black_and_faint_edges_are_white_for_tesseract() -> None:
    assert list(Pgm(bytes([0, 178, 210, 242, 255]), 5, 1).with_contrast().pixels) == [0, 0, 128, 255, 255]

"""Images: kind and size, truncation, size for a model, changed region."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from samples import error_of
from worlds import need

from peekaboo_min.core.errors import PeekabooError
from peekaboo_min.core.models import ImageInfo, Rect
from peekaboo_min.system.bitmaps import Bitmap, changed_rect, read_bitmap
from peekaboo_min.system.image_files import model_size, sniff_image, whole_image
from peekaboo_min.system.saved_images import prepare_target

JPEG_HEAD = b"\xff\xd8\xff\xe0\x00\x10JFIF\0\1\1\0\0\1\0\1\0\0\xff\xc4\x00\x04\0\0\xff\xff\xc1\x00\x11\x08"
WEBP = b"RIFF\0\0\0\0WEBP"
WEBP_SIZE = (639).to_bytes(3, "little") + (479).to_bytes(3, "little")


@pytest.mark.parametrize(
    ("kind", "data", "needed"),
    [
        ("png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480) + b"\x08\x02\0\0\0", 24),
        ("jpg", JPEG_HEAD + struct.pack(">HH", 480, 640) + b"\x03", len(JPEG_HEAD) + 4),
        ("gif", b"GIF87a" + struct.pack("<HH", 640, 480) + b"\0\0\0", 10),
        ("webp", WEBP + b"VP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640 | 0x4000, 480), 30),
        ("webp", WEBP + b"VP8L\0\0\0\0\x2f" + struct.pack("<I", 639 | 479 << 14), 25),
        ("webp", WEBP + b"VP8X\x0a\0\0\0\0\0\0\0" + WEBP_SIZE, 30),
        ("bmp", b"BM" + b"\0" * 12 + struct.pack("<IiiH", 40, 640, -480, 1), 28),
    ],
    ids=["png", "jpg", "gif", "lossy webp", "lossless webp", "extended webp", "bmp"],
)
def test_sniff_image_needs_the_whole_header(kind: str, data: bytes, needed: int) -> None:
    assert sniff_image(data) == ImageInfo(kind, 640, 480)
    for length in range(needed):
        assert sniff_image(data[:length]) is None, f"cut to {length} bytes"


@pytest.mark.parametrize(
    "data",
    [
        b"GIF89a\1\0\0\0",
        b"GIF89a\0\0\1\0",
        b"RIFF\0\0\0\0WAVEfmt ",
        b"\xff\xd8\xff" * 40,
        b"BM" + b"\0" * 60,
        b"BMW and other cars " * 3,
    ],
)
def test_sniff_image_of_other_data_is_none(data: bytes) -> None:
    assert sniff_image(data) is None


@pytest.mark.parametrize("kind", ["png", "jpg", "gif", "webp", "bmp"])
def test_whole_image_of_a_truncated_image_is_none(tmp_path: Path, kind: str) -> None:
    need("convert")
    path = tmp_path / f"a.{kind}"
    argv = ["convert", "-seed", "1", "-size", "120x90", "plasma:fractal", "-interlace", "JPEG", str(path)]
    if subprocess.run(argv, capture_output=True).returncode and kind == "webp":
        pytest.skip("this ImageMagick writes no webp")
    data, info = path.read_bytes(), ImageInfo(kind, 120, 90)
    longer = data + b"\n" * (kind != "gif")  # some cameras append bytes
    assert whole_image(data) == whole_image(longer) == info
    for length in (len(data) - 1, len(data) // 2, len(data) // 5):
        assert whole_image(data[:length]) is None, length


def test_whole_image_does_not_end_at_its_thumbnail(tmp_path: Path) -> None:
    need("convert")
    path = tmp_path / "a.jpg"
    subprocess.run(["convert", "-size", "64x64", "gradient:red-blue", str(path)], check=True)
    data = path.read_bytes()
    thumbnail = b"Exif\0\0" + data
    with_thumbnail = data[:2] + b"\xff\xe1" + (len(thumbnail) + 2).to_bytes(2, "big") + thumbnail + data[2:]
    assert whole_image(with_thumbnail) == ImageInfo("jpg", 64, 64)
    assert whole_image(with_thumbnail[: len(thumbnail) + 200]) is None
    path.write_bytes(data[:200])
    prepare_target(path)
    path.write_text("a letter")
    with pytest.raises(PeekabooError):
        prepare_target(path)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((1568, 733), (1568, 733)),  # at both limits: 1568 pixels a side, 1,150,000 in all
        ((400, 3136), (200, 1568)),
        ((1568, 1568), (1072, 1072)),
        ((100_000, 1), (1568, 1)),
    ],
)
def test_model_size_is_the_largest_allowed(size: tuple[int, int], expected: tuple[int, int]) -> None:
    assert model_size(*size) == expected


# a change in 100x100 pixels (x, y, pixels, levels); the columns that count at scale 1, at scale 2
CHANGES = [
    ((3, 50, 1, 200), [], []),  # the left edge, and beside it
    ((4, 50, 1, 200), [4], []),
    ((94, 50, 6, 200), [94, 95], []),  # the right one
    ((50, 3, 1, 200), [], []),  # the upper one
    ((50, 92, 1, 200), [50], []),  # the lower one
    ((9, 9, 1, 200), [], []),  # a round corner, and within it
    ((21, 21, 1, 200), [21], [21]),
    ((30, 50, 5, 2), [], []),  # faint, and less faint
    ((30, 50, 5, 4), [*range(30, 35)], [*range(30, 35)]),
]


@pytest.mark.parametrize(("change", "seen", "seen_at_2"), CHANGES)
def test_changed_rect_ignores_the_edge(change: Sequence[int], seen: list[int], seen_at_2: list[int]) -> None:
    x, y, pixels, levels = change
    rows = [bytes([55] * 300) for _ in range(100)]
    before = Bitmap(100, 3, tuple(rows))
    rows[y] = rows[y][: 3 * x] + bytes([55 + levels] * 3 * pixels) + rows[y][3 * (x + pixels) :]
    after = Bitmap(100, 3, tuple(rows))
    for scale, columns in ((0.0, [*range(x, x + pixels)]), (1.0, seen), (2.0, seen_at_2)):
        expected = Rect(columns[0], y, len(columns), 1) if columns else None
        for pair in ((before, after), (after, before)):
            assert changed_rect(*(bitmap._replace(noisy_scale=scale) for bitmap in pair)) == expected


@pytest.mark.parametrize(("height", "rows"), [(2, (b"defghi", b"abcxyz")), (-2, (b"abcxyz", b"defghi"))])
def test_bitmap_with_a_positive_height_has_its_last_row_first(height: int, rows: tuple[bytes, ...]) -> None:
    header = b"BM" + b"\0" * 8 + struct.pack("<IIiiHHI", 54, 40, 2, height, 1, 24, 0) + b"\0" * 20
    assert read_bitmap(header + b"abcxyz--defghi--") == Bitmap(2, 3, rows)


def test_changed_rect_of_a_tiny_window_is_none() -> None:
    small = [Bitmap(7, 3, (bytes([level] * 21),) * 20, noisy_scale=1.0) for level in (0, 200)]
    assert changed_rect(*small) is None


def test_changed_rect_of_a_window_that_grew_is_the_whole_window() -> None:
    before, after = (Bitmap(100, 3, (bytes(300),) * height) for height in (100, 120))
    assert changed_rect(before, after) == Rect(0, 0, 100, 120)


def test_bitmap_of_32_bits_is_read_only_if_it_is_complete() -> None:
    header = b"BM" + b"\0" * 8 + struct.pack("<IIiiHHI", 54, 40, 1, -2, 1, 32, 3) + b"\0" * 20
    assert read_bitmap(header + b"abcdefgh") == Bitmap(1, 4, (b"abcd", b"efgh"))
    for data in (header + b"abcdefg", header[:20], b""):
        assert error_of(read_bitmap, data).hint == "try again"


def test_part_of_a_bitmap_has_every_pixel_that_the_box_touches() -> None:
    bitmap = Bitmap(5, 1, (b"abcde", b"fghij"))
    parts = [bitmap.cropped(box, 4) for box in (Rect(1, 0, 1, 1), Rect(3, 0, 2, 0.5))]
    assert parts == [Bitmap(2, 1, (b"bc", b"gh")), Bitmap(2, 1, (b"de",))]


def test_bitmap_of_one_colour_has_it_in_every_row_and_column() -> None:
    rows = [(b"aa", b"aa"), (b"aa", b"bb"), (b"ab", b"ab")]
    assert [Bitmap(2, 1, row).is_of_one_colour for row in rows] == [True, False, False]

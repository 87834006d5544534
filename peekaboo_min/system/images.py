"""Image files: kind, size and pixels, read from their bytes."""

from __future__ import annotations

import errno
import math
import os
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Callable, NamedTuple, Optional

from ..core.errors import ErrorCode, PeekabooError, file_errors, invalid
from ..core.models import ImageInfo, Rect, Window
from .files import new_temporary_path, write_privately

EXTENSIONS = {".png": "png", ".jpg": "jpg", ".jpeg": "jpg", ".webp": "webp", ".gif": "gif"}
_HEADER_BYTES = 256 * 1024
_PNG_START, _PNG_END = b"\x89PNG\r\n\x1a\n", b"\0\0\0\0IEND\xaeB`\x82"

# A model shrinks what is larger, and then answers in pixels that we never saw. These are the limits of
# Anthropic's standard tier, and of one result in Claude Desktop.
MODEL_EDGE = 1568
MODEL_PIXELS = 1_150_000
MODEL_BYTES = 700_000
# Screen points: the block caret of a large terminal font.
_CARET_WIDTH, _CARET_HEIGHT = 14, 40
_CARET_LINE_WIDTH = 3  # pixels
# Public reports: two captures of an idle window on a Mac differ at its edges and round corners. Points.
_RIM, _CORNER_RADIUS = 4, 26
_STEPS = [bytes(min(255, level + start) & ~3 for level in range(256)) for start in (0, 2)]
_MARKS = bytes([0, *[255] * 255])


def sniff_image(data: bytes) -> Optional[ImageInfo]:
    """Kind and size from the first bytes of a file, or None when they are not an image's."""
    info = None
    data = data[:_HEADER_BYTES]
    with suppress(struct.error, IndexError):  # cut short within its header
        if data[:8] == _PNG_START and data[12:16] == b"IHDR":
            info = ImageInfo("png", *struct.unpack(">II", data[16:24]))
        elif data[:3] == b"\xff\xd8\xff":
            sizes = (segment[1:5] for marker, segment in _jpeg_segments(data) if marker in _JPEG_FRAMES)
            height, width = struct.unpack(">HH", next(sizes, b""))
            info = ImageInfo("jpg", width, height)
        elif data[:6] in (b"GIF87a", b"GIF89a"):
            info = ImageInfo("gif", *struct.unpack("<HH", data[6:10]))
        elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            info = _sniff_webp(data)
        elif data[:2] == b"BM" and data[26:28] == b"\1\0":
            width, height = struct.unpack("<ii", data[18:26])
            info = ImageInfo("bmp", max(0, width), abs(height))
    return info if info and info.width and info.height else None


# A marker in a JPEG: FF 00 is a byte of its image data, FF D0 to FF D7 restart it, FF FF is padding.
_JPEG_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_JPEG_MARKER = re.compile(rb"\xff([^\x00\xd0-\xd7\xff])")


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The markers of a JPEG and their segments; a thumbnail is a part of its segment."""
    at = 2
    while marker := _JPEG_MARKER.search(data, at):
        start = marker.end()
        at = start + max(2, int.from_bytes(data[start : start + 2], "big"))
        yield marker[1][0], data[start + 2 : at]


def _sniff_webp(data: bytes) -> ImageInfo:
    if data[12:16] == b"VP8X":
        width, width_high, height, height_high = struct.unpack("<HBHB", data[24:30])
        return ImageInfo("webp", width + (width_high << 16) + 1, height + (height_high << 16) + 1)
    if data[12:16] == b"VP8L":
        (bits,) = struct.unpack("<I", data[21:25])
        return ImageInfo("webp", (bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1)
    width, height = struct.unpack("<HH", data[26:30])
    return ImageInfo("webp", width & 0x3FFF, height & 0x3FFF)


def read_image_info(path: Path) -> Optional[ImageInfo]:
    """Kind and size of a complete image file; None for another file and for a part of one. Raises OSError."""
    return whole_image(path.read_bytes())


def whole_image(data: bytes) -> Optional[ImageInfo]:
    """Kind and size of an image's bytes when they are all there, else None."""
    info = sniff_image(data)
    return info if info and _IS_WHOLE[info.kind](data) else None


_IS_WHOLE: dict[str, Callable[[bytes], bool]] = {
    "png": lambda data: _PNG_END in data,
    "jpg": lambda data: any(marker == 0xD9 for marker, _ in _jpeg_segments(data)),
    "gif": lambda data: data.endswith(b";"),
    "webp": lambda data: int.from_bytes(data[4:8], "little") + 8 <= len(data),
    "bmp": lambda data: int.from_bytes(data[2:6], "little") <= len(data),
}


@contextmanager
def image_file(kind: str, data: bytes = b"") -> Iterator[Path]:
    """A file of our temporary folder that holds `data`, or that a program is to write, while the block runs.

    Raises FILE_IO_ERROR.
    """
    path = new_temporary_path("peekaboo", kind)
    try:
        with file_errors(path):
            if data:
                write_privately(path, data)
            yield path
    finally:
        path.unlink(missing_ok=True)


class Bitmap(NamedTuple):
    """An uncompressed image: its rows, top to bottom, `step` bytes a pixel."""

    width: int
    step: int
    rows: tuple[bytes, ...]
    scale: float = 0.0  # of a Mac's window, whose rim and faint differences are no change: pixels per point

    @property
    def is_of_one_colour(self) -> bool:
        return set(self.rows) == {self.rows[0][: self.step] * self.width}

    def cropped(self, box: Rect, image_width: int) -> Bitmap:
        """The part of it that `box` is in, which counts in pixels of an image of that width."""
        part = box.scaled(self.width / image_width)
        left, right = int(part.x), min(self.width, math.ceil(part.x + part.width))
        rows = self.rows[int(part.y) : math.ceil(part.y + part.height)]
        columns = slice(left * self.step, right * self.step)
        return Bitmap(right - left, self.step, tuple(row[columns] for row in rows))

    def without_rim(self) -> Bitmap:
        """A Mac's window, black where two captures of it may differ."""
        rows = []
        for place, row in enumerate(self.rows):
            from_edge = min(place + 1, len(self.rows) - place) / self.scale
            from_centre = max(0.0, _CORNER_RADIUS - from_edge)
            inner = (_CORNER_RADIUS - _RIM) ** 2 - from_centre**2
            rim = math.ceil((_CORNER_RADIUS - math.sqrt(inner)) * self.scale) if inner > 0 else self.width
            black = bytes(rim * self.step)
            rows.append((black + row[len(black) : -len(black)] + black)[: len(row)])
        return self._replace(rows=tuple(rows))

    def as_png(self) -> bytes:
        def chunk(kind: bytes, data: bytes) -> bytes:
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        lines = bytearray()
        for row in self.rows:
            line = bytearray(3 * self.width)  # a bitmap has blue first
            line[0::3], line[1::3], line[2::3] = (row[part :: self.step] for part in (2, 1, 0))
            lines += b"\0" + line
        header = struct.pack(">IIBBBBB", self.width, len(self.rows), 8, 2, 0, 0, 0)
        pixels = zlib.compress(bytes(lines), 6)
        return _PNG_START + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + _PNG_END


def read_bitmap(data: bytes) -> Bitmap:
    """A BMP of 24 or 32 bits a pixel. Raises CAPTURE_FAILED for anything else."""
    with suppress(struct.error, ValueError):  # cut short, or without a pixel
        (offset,) = struct.unpack("<I", data[10:14])
        width, height, _, bits, compression = struct.unpack("<iiHHI", data[18:34])
        row_bytes = (width * bits + 31) // 32 * 4
        end = offset + row_bytes * abs(height)
        if bits in (24, 32) and compression in (0, 3) and end <= len(data):
            rows = [data[at : at + width * bits // 8] for at in range(offset, end, row_bytes)]
            # a positive height means that the last row comes first
            return Bitmap(width, bits // 8, tuple(rows if height < 0 else reversed(rows)))
    raise PeekabooError(ErrorCode.CAPTURE_FAILED, "the capture program left no whole bitmap", "try again")


def changed_rect(before: Bitmap, after: Bitmap) -> Optional[Rect]:
    """The smallest rectangle around all pixels that differ; None for none, all where the sizes differ."""
    if (before.width, before.step, len(before.rows)) != (after.width, after.step, len(after.rows)):
        return Rect(0, 0, after.width, len(after.rows))
    if after.scale:
        before, after = before.without_rim(), after.without_rim()
    changed, difference = [], 0  # of all rows
    for place, (row, other) in enumerate(zip(before.rows, after.rows)):
        if row != other and (differing := _difference(row, other, after.scale > 0)):
            changed.append(place)
            difference |= differing
    if not changed:
        return None
    lowest_bit = (difference & -difference).bit_length() - 1
    same_at_start = (len(before.rows[0]) * 8 - difference.bit_length()) // 8
    left, same_at_end = same_at_start // before.step, lowest_bit // 8 // before.step
    return Rect(left, changed[0], before.width - same_at_end - left, changed[-1] - changed[0] + 1)


def _difference(row: bytes, other: bytes, is_of_mac: bool) -> int:
    """One large number, with a byte that is not 0 where they differ: a loop over bytes is slow."""
    if not is_of_mac:
        return int.from_bytes(row, "big") ^ int.from_bytes(other, "big")
    # levels that differ by at most two are in one step of four, whether those count from 0 or from 2
    marks = []
    for steps in _STEPS:
        difference = _difference(row.translate(steps), other.translate(steps), False)
        marks.append(int.from_bytes(difference.to_bytes(len(row), "big").translate(_MARKS), "big"))
    return marks[0] & marks[1]


def is_caret(rect: Rect, width: int, window: Window) -> bool:
    """Whether a change in a window's bitmap of this width is not larger than a caret that blinks."""
    scale = max(1.0, width / max(1.0, window.bounds.width))
    return rect.width <= _CARET_WIDTH * scale and rect.height <= _CARET_HEIGHT * scale


def is_other_within(before: Bitmap, now: Bitmap, box: Rect, image_width: int) -> bool:
    """Whether a part of a window shows something else now, but for a caret.

    box: in pixels of a screenshot of that width.
    """
    rect = changed_rect(before.cropped(box, image_width), now.cropped(box, image_width))
    return rect is not None and rect.width > _CARET_LINE_WIDTH


def model_size(
    width: int, height: int, edge: int = MODEL_EDGE, pixels: int = MODEL_PIXELS
) -> tuple[int, int]:
    """The largest size of this shape within `edge` and `pixels`, and never larger than it is."""
    factor = min(1.0, edge / max(width, height), math.sqrt(pixels / (width * height)))
    return max(1, int(width * factor)), max(1, int(height * factor))


def kind_by_name(path: Path) -> str:
    """png or jpg, as the file's name says. Raises INVALID_ARGUMENT for another extension."""
    kind = EXTENSIONS.get(path.suffix.lower())
    if kind not in ("png", "jpg"):
        raise invalid(f"{path.name}: images are saved as png or jpg", "end the path in .png or .jpg")
    return kind


def prepare_target(path: Path) -> None:
    """Create the parents of `path`, and check that an image may be written there. Raises FILE_IO_ERROR."""
    problem = ""
    with file_errors(path):
        if not path.parent.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
        if path.parent.is_file():
            problem = f"{path.parent} is a file, not a folder"
        elif path.is_dir():
            problem = f"{path} is a folder"
        elif path.exists() and not (path.is_file() and _is_image_or_empty(path)):
            problem = f"{path} exists and is not an image; it was left as it is"
        elif not os.access(path if path.exists() else path.parent, os.W_OK):
            raise PermissionError(errno.EACCES, "Permission denied")
    if problem:
        raise PeekabooError(ErrorCode.FILE_IO_ERROR, problem, "choose another path")


def _is_image_or_empty(path: Path) -> bool:
    with open(path, "rb") as f:
        start = f.read(_HEADER_BYTES)
    return not start or sniff_image(start) is not None

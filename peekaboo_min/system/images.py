"""Image files: kind, size and pixels, read from their bytes."""

from __future__ import annotations

import errno
import math
import os
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Callable, NamedTuple, Optional

from ..core.errors import ErrorCode, PeekabooError, file_errors, invalid
from ..core.models import ImageInfo, Rect

EXTENSIONS = {".png": "png", ".jpg": "jpg", ".jpeg": "jpg", ".webp": "webp", ".gif": "gif"}
_HEADER_BYTES = 256 * 1024
_PNG_START = b"\x89PNG\r\n\x1a\n"

# A model shrinks what is larger, and then answers in pixels that we never saw. These are the limits of
# Anthropic's standard tier, and of one result in Claude Desktop.
MODEL_EDGE = 1568
MODEL_PIXELS = 1_150_000
MODEL_BYTES = 700_000


def sniff_image(data: bytes) -> Optional[ImageInfo]:
    """Kind and size from the first bytes of a file, or None when they are not an image's."""
    info = None
    data = data[:_HEADER_BYTES]
    with suppress(struct.error, IndexError):  # cut short within its header
        if data[:8] == _PNG_START and data[12:16] == b"IHDR":
            info = ImageInfo("png", *struct.unpack(">II", data[16:24]))
        elif data[:3] == b"\xff\xd8\xff":
            info = _sniff_jpeg(data)
        elif data[:6] in (b"GIF87a", b"GIF89a"):
            info = ImageInfo("gif", *struct.unpack("<HH", data[6:10]))
        elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            info = _sniff_webp(data)
        elif data[:2] == b"BM" and data[26:28] == b"\1\0":
            width, height = struct.unpack("<ii", data[18:26])
            info = ImageInfo("bmp", max(0, width), abs(height))
    return info if info and info.width and info.height else None


def _sniff_jpeg(data: bytes) -> Optional[ImageInfo]:
    at = 2
    while at + 9 < len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return ImageInfo("jpg", width, height)
        at += 1 if marker == 0xFF else 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
    return None


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


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The kinds and data of the chunks that are there to their end.

    They follow one another: length, kind, data, checksum.
    """
    at = 8
    while at + 12 <= len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        if end <= len(data):
            yield data[at + 4 : at + 8], data[at + 8 : end - 4]
        at = end


def png_pixels(path: Path) -> bytes:
    """The pixels of a PNG as its program compressed them, without what else it says. Raises OSError."""
    chunks = _png_chunks(path.read_bytes())
    return b"".join(content for kind, content in chunks if kind in (b"IHDR", b"IDAT"))


# A marker in a JPEG's image data: FF 00 is a byte of the data, FF D0 to FF D7 restart it, FF FF is padding.
_JPEG_MARKER = re.compile(rb"\xff([^\x00\xd0-\xd7\xff])")


def _has_jpeg_end(data: bytes) -> bool:
    """Its segments lead to the marker EOI, image data between them; a thumbnail's EOI is skipped."""
    at = 2
    while found := _JPEG_MARKER.search(data, at):
        if found[1] == b"\xd9":
            return True
        length = data[found.end() : found.end() + 2]
        at = found.end() + max(2, int.from_bytes(length, "big"))
    return False


class Bitmap(NamedTuple):
    """An uncompressed image: its rows, top to bottom, `step` bytes a pixel."""

    width: int
    step: int
    rows: tuple[bytes, ...]

    @property
    def is_of_one_colour(self) -> bool:
        return set(self.rows) == {self.rows[0][: self.step] * self.width}

    def cropped(self, left: int, top: int, right: int, bottom: int) -> Bitmap:
        """The pixels from `left` and `top` to before `right` and `bottom`."""
        rows = [row[left * self.step : right * self.step] for row in self.rows[top:bottom]]
        return Bitmap(right - left, self.step, tuple(rows))

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
        return _PNG_START + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def read_bitmap(path: Path) -> Optional[Bitmap]:
    """A BMP of 24 or 32 bits a pixel; None when it is not one, or cut short. Raises OSError."""
    return _bitmap_of(path.read_bytes())


def _bitmap_of(data: bytes) -> Optional[Bitmap]:
    if data[:2] != b"BM" or len(data) < 34:
        return None
    (offset,) = struct.unpack("<I", data[10:14])
    width, height, _, bits, compression = struct.unpack("<iiHHI", data[18:34])
    row_bytes = (width * bits + 31) // 32 * 4
    end = offset + row_bytes * abs(height)
    is_plain = bits in (24, 32) and compression in (0, 3) and width > 0 and height != 0
    if not is_plain or len(data) < end:
        return None
    rows = [data[at : at + width * bits // 8] for at in range(offset, end, row_bytes)]
    # a positive height means that the last row comes first
    return Bitmap(width, bits // 8, tuple(rows if height < 0 else reversed(rows)))


_IS_WHOLE: dict[str, Callable[[bytes], bool]] = {
    "png": lambda data: any(kind == b"IEND" for kind, _ in _png_chunks(data)),
    "jpg": _has_jpeg_end,
    "gif": lambda data: data.endswith(b";"),
    "webp": lambda data: int.from_bytes(data[4:8], "little") + 8 <= len(data),
    "bmp": lambda data: _bitmap_of(data) is not None,
}


def changed_rect(before: Bitmap, after: Bitmap) -> Optional[Rect]:
    """The smallest rectangle around all pixels that differ; None for none, all where the sizes differ."""
    if (before.width, before.step, len(before.rows)) != (after.width, after.step, len(after.rows)):
        return Rect(0, 0, after.width, len(after.rows))
    changed = [place for place, pair in enumerate(zip(before.rows, after.rows)) if pair[0] != pair[1]]
    if not changed:
        return None
    difference = 0  # of all rows: a row is compared as one large number, a loop over bytes is slow
    for place in changed:
        difference |= int.from_bytes(before.rows[place], "big") ^ int.from_bytes(after.rows[place], "big")
    lowest_bit = (difference & -difference).bit_length() - 1
    same_at_start = (len(before.rows[0]) * 8 - difference.bit_length()) // 8
    left, same_at_end = same_at_start // before.step, lowest_bit // 8 // before.step
    return Rect(left, changed[0], before.width - same_at_end - left, changed[-1] - changed[0] + 1)


def model_size(info: ImageInfo, edge: int = MODEL_EDGE, pixels: int = MODEL_PIXELS) -> tuple[int, int]:
    """The largest size of this shape within `edge` and `pixels`, and never larger than it is."""
    factor = min(1.0, edge / max(info.width, info.height), math.sqrt(pixels / (info.width * info.height)))
    return max(1, int(info.width * factor)), max(1, int(info.height * factor))


def kind_by_name(path: Path) -> str:
    """png or jpg, as the file's name says. Raises INVALID_ARGUMENT for another extension."""
    kind = EXTENSIONS.get(path.suffix.lower())
    if kind not in ("png", "jpg"):
        raise invalid(f"{path.name}: images are saved as png or jpg", "end the path in .png or .jpg")
    return kind


def prepare_target(path: Path) -> None:
    """Create the parents of `path`, and check that an image may be written there. Raises FILE_IO_ERROR."""
    problem, hint = "", ""
    with file_errors(path):
        if path.parent.is_file():
            problem = f"{path.parent} is a file, not a folder"
            hint = "name a folder, or an image that ends in .png or .jpg"
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                problem, hint = f"{path} is a folder", "name a file in it"
            elif path.exists() and not (path.is_file() and _is_image_or_empty(path)):
                problem = f"{path} exists and is not an image; it was left as it is"
                hint = "choose another path"
            elif not os.access(path if path.exists() else path.parent, os.W_OK):
                raise PermissionError(errno.EACCES, "Permission denied")
    if problem:
        raise PeekabooError(ErrorCode.FILE_IO_ERROR, problem, hint)


def _is_image_or_empty(path: Path) -> bool:
    with open(path, "rb") as f:
        start = f.read(_HEADER_BYTES)
    return not start or sniff_image(start) is not None

"""Kind and size of image files, read from their bytes; sizes for models."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Callable, Optional

from ..core.models import ImageInfo

EXTENSIONS = {".png": "png", ".jpg": "jpg", ".jpeg": "jpg", ".webp": "webp", ".gif": "gif"}
PNG_START, PNG_END = b"\x89PNG\r\n\x1a\n", b"\0\0\0\0IEND\xaeB`\x82"

# A model shrinks a larger image, and answers in pixels of the shrunk one. These are the limits of
# Anthropic's standard tier (edge, area) and of one result in Claude Desktop (bytes).
MODEL_EDGE = 1568
MODEL_PIXELS = 1_150_000
MODEL_BYTES = 700_000


def sniff_image(data: bytes) -> Optional[ImageInfo]:
    """Return kind and size from the first bytes of a file, or None if they are not an image's."""
    info = None
    with suppress(struct.error):  # the header is incomplete
        if data[:8] == PNG_START and data[12:16] == b"IHDR":
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


# A JPEG marker is FF and a byte, except FF 00 (image data), FF D0 to FF D7 (restart) and FF FF (padding).
# The markers of frame headers, which contain the size:
_JPEG_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_JPEG_MARKER = re.compile(rb"\xff([^\x00\xd0-\xd7\xff])")


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    # jumps from segment to segment, because one of them may contain a thumbnail with markers of its own
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


def whole_image(data: bytes) -> Optional[ImageInfo]:
    """Return kind and size of an image, or None for other data and if bytes are missing."""
    info = sniff_image(data)
    return info if info and _IS_WHOLE[info.kind](data) else None


_IS_WHOLE: dict[str, Callable[[bytes], bool]] = {
    "png": lambda data: PNG_END in data,
    "jpg": lambda data: any(marker == 0xD9 for marker, _ in _jpeg_segments(data)),
    "gif": lambda data: data.endswith(b";"),
    "webp": lambda data: int.from_bytes(data[4:8], "little") + 8 <= len(data),
    "bmp": lambda data: int.from_bytes(data[2:6], "little") <= len(data),
}


def model_size(width: int, height: int, edge: int = MODEL_EDGE, area: int = MODEL_PIXELS) -> tuple[int, int]:
    """Return the largest size of this shape within `edge` and `area` (pixels); never enlarge."""
    factor = min(1.0, edge / max(width, height), math.sqrt(area / (width * height)))
    return max(1, int(width * factor)), max(1, int(height * factor))

"""Images as the vendors receive them, and test images to send."""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple, Optional

from peekaboo_min.system.image_files import whole_image


class ReceivedImage(NamedTuple):
    data: bytes
    declared_type: Optional[str]  # as the client declared it; None: the vendor gets no type (Ollama)
    real_type: Optional[str]  # read from the bytes; None: not a complete image
    width: int  # pixels, 0 when real_type is None
    height: int


def read_image(data: bytes, declared_type: Optional[str] = None) -> ReceivedImage:
    info = whole_image(data)
    if info is None:
        return ReceivedImage(data, declared_type, None, 0, 0)
    return ReceivedImage(data, declared_type, info.mime_type, info.width, info.height)


def picture(kind: str = "png", width: int = 64, height: int = 48, padding: int = 0) -> bytes:
    """Return an image with a true header: png (decodable, plus `padding` bytes), jpeg, gif or webp (header
    only).
    """
    if kind == "png":
        rows = zlib.compress(b"".join(b"\0" + b"\x80" * width for _ in range(height)), 1)
        head = _png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
        extra = _png_chunk(b"tEXt", b"\0" * padding) if padding else b""
        return b"\x89PNG\r\n\x1a\n" + head + extra + _png_chunk(b"IDAT", rows) + _png_chunk(b"IEND", b"")
    if kind == "jpeg":
        app0 = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0\1\1\0\0\1\0\1\0\0"
        sof0 = b"\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\1\x11\0"
        return b"\xff\xd8" + app0 + sof0 + b"\xff\xd9"
    if kind == "gif":
        return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0;"
    if kind == "webp":
        size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        return b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8X" + struct.pack("<II", 10, 0) + size
    raise ValueError(f"no such kind of image: {kind}")


def _png_chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

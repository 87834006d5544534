"""Images as the vendors receive them: type and size are read from the bytes; and test images to send."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class ReceivedImage:
    data: bytes
    declared_type: Optional[str]  # as the client declared it; None: the vendor gets no type (Ollama)
    real_type: Optional[str]  # read from the bytes; None: not an image that can be decoded
    width: int  # pixels, 0 when real_type is None
    height: int


def read_image(data: bytes, declared_type: Optional[str] = None) -> ReceivedImage:
    """Read type and pixel size from the header; an incomplete file has no real_type."""
    for kind, reader in (("png", _png_size), ("jpeg", _jpeg_size), ("webp", _webp_size)):
        try:
            size = reader(data)
        except (struct.error, IndexError):
            size = None
        if size and size[0] and size[1]:
            return ReceivedImage(data, declared_type, f"image/{kind}", size[0], size[1])
    return ReceivedImage(data, declared_type, None, 0, 0)


def _png_size(data: bytes) -> Optional[tuple[int, int]]:
    if not data.startswith(b"\x89PNG\r\n\x1a\n") or data[12:16] != b"IHDR":
        return None
    at = 8
    while at < len(data):
        length, name = struct.unpack_from(">I4s", data, at)
        chunk = data[at + 4 : at + 8 + length]
        if struct.unpack_from(">I", data, at + 8 + length)[0] != zlib.crc32(chunk):
            return None
        if name == b"IEND":
            return struct.unpack_from(">II", data, 16)
        at += 12 + length
    return None


def _jpeg_size(data: bytes) -> Optional[tuple[int, int]]:
    if not data.startswith(b"\xff\xd8\xff") or not data.endswith(b"\xff\xd9"):
        return None
    at = 2
    while data[at] == 0xFF:
        marker, length = struct.unpack_from(">BH", data, at + 1)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + length
    return None


def _webp_size(data: bytes) -> Optional[tuple[int, int]]:
    """Read the size of a WebP in extended form, which `picture` writes."""
    if data[:4] != b"RIFF" or data[8:16] != b"WEBPVP8X":
        return None
    return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")


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

"""PNG files as the fake programs write them: 8 bit RGB, filter type 0, the labels in a tEXt chunk."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from .pictures import NotAPicture, Picture, merged

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
TEXT_KEY = b"Labels\0"
FORM = (8, 2, 0, 0, 0)  # depth, colour type, compression, filters, interlacing


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_bytes(picture: Picture) -> bytes:
    parts = [PNG_MAGIC, chunk(b"IHDR", struct.pack(">IIBBBBB", picture.width, picture.height, *FORM))]
    parts.append(chunk(b"tEXt", TEXT_KEY + json.dumps(picture.labels).encode("ascii")))
    packer = zlib.compressobj(1)
    packed = [packer.compress((b"\0" + row) * count) for count, row in picture.bands]
    return b"".join([*parts, chunk(b"IDAT", b"".join(packed) + packer.flush()), chunk(b"IEND", b"")])


def read_png(data: bytes) -> Picture:
    header: tuple[int, ...] = ()
    labels: list[dict[str, Any]] = []
    packed = b""
    for kind, body in png_chunks(data):
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", body)
        elif kind == b"tEXt" and body.startswith(TEXT_KEY):
            labels = json.loads(body[len(TEXT_KEY) :])
        elif kind == b"IDAT":
            packed += body
    try:
        raw = zlib.decompress(packed)
    except zlib.error as error:
        raise NotAPicture(str(error)) from error
    if header[2:] != FORM or any(raw[:: 3 * header[0] + 1]):
        raise NotAPicture("not an 8 bit RGB picture without filters")
    stride = 3 * header[0] + 1
    rows = (raw[at + 1 : at + stride] for at in range(0, len(raw), stride))
    return Picture(header[0], header[1], merged(rows), labels)


def png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(PNG_MAGIC)
    while at + 8 <= len(data):
        size = struct.unpack(">I", data[at : at + 4])[0]
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        at += 12 + size

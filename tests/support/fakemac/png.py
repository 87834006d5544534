"""PNG files: IHDR, pHYs, the labels in a tEXt chunk, filter type 0; reads any 8 bit grey, RGB or RGBA one."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from .pictures import NotAPicture, Picture, grain, merged

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
TEXT_KEY = b"Labels"
GRAIN = b"fmGr"  # a chunk that only makes the file larger


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_bytes(picture: Picture) -> bytes:
    parts = [PNG_MAGIC, chunk(b"IHDR", struct.pack(">IIBBBBB", picture.width, picture.height, 8, 2, 0, 0, 0))]
    if picture.dpi:
        per_metre = round(picture.dpi / 0.0254)  # 144 dpi is 5669 pixels per metre (facts A7)
        parts.append(chunk(b"pHYs", struct.pack(">IIB", per_metre, per_metre, 1)))
    parts.append(chunk(b"tEXt", TEXT_KEY + b"\0" + json.dumps(picture.labels).encode("ascii")))
    if picture.grain:
        parts.append(chunk(GRAIN, grain(picture.grain)))
    packer = zlib.compressobj(1)
    packed = [packer.compress((b"\0" + row) * count) for count, row in picture.bands]
    return b"".join([*parts, chunk(b"IDAT", b"".join(packed) + packer.flush()), chunk(b"IEND", b"")])


def read_png(data: bytes) -> Picture:
    header: tuple[int, ...] = ()
    labels: list[dict[str, Any]] = []
    dpi, grain_bytes, packed = None, 0, []
    for kind, body in png_chunks(data):
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", body)
        elif kind == b"pHYs":
            dpi = round(struct.unpack(">I", body[:4])[0] * 0.0254)
        elif kind == b"tEXt" and body.startswith(TEXT_KEY + b"\0"):
            labels = json.loads(body[len(TEXT_KEY) + 1 :])
        elif kind == GRAIN:
            grain_bytes = len(body)
        elif kind == b"IDAT":
            packed.append(body)
    if not header or header[2] != 8 or header[3] not in (0, 2, 6) or header[6]:
        raise NotAPicture("not an 8 bit grey, RGB or RGBA picture")
    try:
        raw = zlib.decompress(b"".join(packed))
    except zlib.error as error:
        raise NotAPicture(str(error)) from error
    bands = merged(unfiltered_rows(raw, header[0], header[1], {0: 1, 2: 3, 6: 4}[header[3]]))
    return Picture(header[0], header[1], bands, labels, dpi, grain_bytes)


def png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(PNG_MAGIC)
    while at + 8 <= len(data):
        size = struct.unpack(">I", data[at : at + 4])[0]
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        at += 12 + size


def unfiltered_rows(raw: bytes, width: int, height: int, channels: int) -> Iterator[bytes]:
    stride = width * channels
    previous = bytes(stride)
    for y in range(height):
        at = y * (stride + 1)
        previous = unfiltered(raw[at], raw[at + 1 : at + 1 + stride], previous, channels)
        yield as_rgb(previous, channels)


def unfiltered(kind: int, line: bytes, above: bytes, channels: int) -> bytes:
    if kind == 0:
        return line
    out = bytearray(line)
    for index in range(len(out)):
        left = out[index - channels] if index >= channels else 0
        corner = above[index - channels] if index >= channels else 0
        guess = {1: left, 2: above[index], 3: (left + above[index]) // 2}.get(kind)
        out[index] = (out[index] + (paeth(left, above[index], corner) if guess is None else guess)) & 255
    return bytes(out)


def paeth(left: int, above: int, corner: int) -> int:
    estimate = left + above - corner
    return min((left, above, corner), key=lambda value: abs(estimate - value))


def as_rgb(row: bytes, channels: int) -> bytes:
    if channels == 3:
        return row
    out = bytearray(len(row) // channels * 3)
    for colour in range(3):
        out[colour::3] = row[min(colour, channels - 1) :: channels] if channels == 4 else row
    return bytes(out)

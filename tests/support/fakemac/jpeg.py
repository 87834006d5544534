"""JPEG files without image data of JPEG's own: a true header, the labels in a comment.

The exact pixels are in a segment of our own, so that a JPEG can be edited again; nothing here decodes others.
"""

from __future__ import annotations

import json
import struct
import zlib

from .pictures import NotAPicture, Picture

PIXELS = b"fakemac\0"  # the name of our own segment
COMPONENTS = b"\x03\x01\x11\0\x02\x11\0\x03\x11\0"
SCAN = b"\x03\x01\0\x02\0\x03\0\0\x3f\0"


def segment(marker: int, data: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def jpeg_bytes(picture: Picture) -> bytes:
    parts = [b"\xff\xd8", segment(0xE0, b"JFIF\0" + struct.pack(">HBHHBB", 0x0101, 1, 72, 72, 0, 0))]
    parts.append(segment(0xC0, struct.pack(">BHH", 8, picture.height, picture.width) + COMPONENTS))
    parts.append(segment(0xFE, json.dumps(picture.labels).encode("ascii")))
    exact = zlib.compress(json.dumps([[count, row.hex()] for count, row in picture.bands]).encode(), 9)
    parts += [segment(0xEF, PIXELS + exact[at : at + 60000]) for at in range(0, len(exact), 60000)]
    return b"".join([*parts, segment(0xDA, SCAN), b"\xff\xd9"])


def read_jpeg(data: bytes) -> Picture:
    at, exact, size, labels = 2, b"", (0, 0), []
    while at + 4 <= len(data) and data[at + 1] != 0xDA:
        marker, length = data[at + 1], struct.unpack(">H", data[at + 2 : at + 4])[0]
        body = data[at + 4 : at + 2 + length]
        if marker == 0xC0:
            size = struct.unpack(">HH", body[1:5])
        elif marker == 0xFE:
            labels = json.loads(body)
        elif marker == 0xEF and body.startswith(PIXELS):
            exact += body[len(PIXELS) :]
        at += 2 + length
    if not exact:
        raise NotAPicture("a JPEG that the fake Mac did not write")
    bands = [(count, bytes.fromhex(row)) for count, row in json.loads(zlib.decompress(exact))]
    return Picture(size[1], size[0], bands, labels)

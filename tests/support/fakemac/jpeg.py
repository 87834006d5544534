"""JPEG files: baseline, 4:4:4, every 8x8 block flat in the colour of its middle, one restart interval per row of blocks.

The labels travel in a comment, the exact pixels in a segment of our own, so that a JPEG can be edited again.
"""  # noqa: E501

from __future__ import annotations

import json
import math
import struct
import zlib

from .pictures import NotAPicture, Picture

# The standard luminance DC table (ITU T.81, table K.3); the AC table has one symbol, "end of block".
DC_COUNTS = (0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0)
# 00, 010 to 110, then as many ones as the length and a zero
DC_CODES = ["00", "010", "011", "100", "101", *("1" * ones + "0" for ones in range(2, 9))]
END_OF_BLOCK = "0"
PIXELS = b"fakemac\0"  # our own segment: the exact pixels, so that a JPEG can be edited again


def segment(marker: int, data: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def jpeg_bytes(picture: Picture, quality: int = 75) -> bytes:
    step = max(1, round((100 - quality) / 6))
    dpi = picture.dpi or 72
    parts = [b"\xff\xd8", segment(0xE0, b"JFIF\0" + struct.pack(">HBHHBB", 0x0101, 1, dpi, dpi, 0, 0))]
    parts.append(segment(0xFE, json.dumps(picture.labels).encode("ascii")))
    exact = zlib.compress(json.dumps([[count, row.hex()] for count, row in picture.bands]).encode(), 9)
    parts += [segment(0xEF, PIXELS + exact[at : at + 60000]) for at in range(0, len(exact), 60000)]
    parts.append(segment(0xDB, b"\0" + bytes([step] * 64)))
    components = b"\x01\x11\0\x02\x11\0\x03\x11\0"
    parts.append(segment(0xC0, struct.pack(">BHHB", 8, picture.height, picture.width, 3) + components))
    tables = b"\x00" + bytes(DC_COUNTS) + bytes(range(12)), b"\x10" + bytes([1] + [0] * 15) + b"\0"
    parts.append(segment(0xC4, b"".join(tables)))
    parts.append(segment(0xDD, struct.pack(">H", math.ceil(picture.width / 8))))
    parts.append(segment(0xDA, b"\x03\x01\0\x02\0\x03\0\0\x3f\0"))
    return b"".join(parts) + scan(picture, step) + b"\xff\xd9"


def scan(picture: Picture, step: int) -> bytes:
    done: dict[bytes, bytes] = {}
    out = []
    for index in range(math.ceil(picture.height / 8)):
        row = picture.row(min(index * 8 + 4, picture.height - 1))
        if row not in done:
            done[row] = scan_row(row, picture.width, step)
        if index:
            out.append(bytes([0xFF, 0xD0 + (index - 1) % 8]))
        out.append(done[row])
    return b"".join(out)


def scan_row(row: bytes, width: int, step: int) -> bytes:
    bits: list[str] = []
    last = (0, 0, 0)
    for block in range(math.ceil(width / 8)):
        at = 3 * min(block * 8 + 4, width - 1)
        values = dc_values(row[at], row[at + 1], row[at + 2], step)
        for value, before in zip(values, last):
            bits.append(dc_bits(value - before) + END_OF_BLOCK)
        last = values
    text = "".join(bits)
    text += "1" * (-len(text) % 8)
    return int(text, 2).to_bytes(len(text) // 8, "big").replace(b"\xff", b"\xff\0")


def dc_values(red: int, green: int, blue: int, step: int) -> tuple[int, int, int]:
    luma = 0.299 * red + 0.587 * green + 0.114 * blue - 128
    return (
        round(8 * luma / step),
        round(8 * (-0.168736 * red - 0.331264 * green + 0.5 * blue) / step),
        round(8 * (0.5 * red - 0.418688 * green - 0.081312 * blue) / step),
    )


def dc_bits(difference: int) -> str:
    size = abs(difference).bit_length()
    if size == 0:
        return DC_CODES[0]
    value = difference if difference > 0 else difference + (1 << size) - 1
    return DC_CODES[size] + format(value, f"0{size}b")


def read_jpeg(data: bytes) -> Picture:
    at, exact, size, labels, dpi = 2, b"", (0, 0), [], 72
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] != 0xDA:
        marker, length = data[at + 1], struct.unpack(">H", data[at + 2 : at + 4])[0]
        body = data[at + 4 : at + 2 + length]
        if marker == 0xC0:
            size = struct.unpack(">HH", body[1:5])
        elif marker == 0xE0:
            dpi = struct.unpack(">H", body[8:10])[0]
        elif marker == 0xFE:
            labels = json.loads(body)
        elif marker == 0xEF and body.startswith(PIXELS):
            exact += body[len(PIXELS) :]
        at += 2 + length
    if not exact:
        raise NotAPicture("a JPEG that the fake Mac did not write")
    bands = [(count, bytes.fromhex(row)) for count, row in json.loads(zlib.decompress(exact))]
    return Picture(size[1], size[0], bands, labels, dpi)

"""Flat-coloured pictures as PNG and JPEG files, without any library.

A picture is bands: (number of equal rows, the bytes of one RGB row). So a whole Retina screen is a few dozen rows.
What stands in it for Vision to read travels with it: PNG in a tEXt chunk, JPEG in a comment.
"""
from __future__ import annotations

import json
import math
import random
import struct
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

Colour = Tuple[int, int, int]
Band = Tuple[int, bytes]
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
TEXT_KEY = b"Labels"
GRAIN = b"fmGr"  # a chunk that only makes the file as large as a real photograph would be


class NotAPicture(Exception):
    """The file is not a picture that we can read."""


@dataclass(frozen=True)
class Picture:
    """labels: [{"text", "rect": [x, y, width, height] in pixels of this picture}]; dpi None: the file says nothing."""
    width: int
    height: int
    bands: List[Band]
    labels: List[Dict[str, Any]] = field(default_factory=list)
    dpi: Optional[int] = 72
    grain: int = 0  # bytes

    def row(self, y: int) -> bytes:
        for count, row in self.bands:
            if y < count:
                return row
            y -= count
        raise IndexError(y)


@dataclass(frozen=True)
class Block:
    """A filled rectangle in pixels; later blocks lie on top."""
    x: int
    y: int
    width: int
    height: int
    colour: Colour


def paint(width: int, height: int, background: Colour, blocks: Sequence[Block]) -> List[Band]:
    """By bands between the top and bottom edges of the blocks, so the cost does not grow with the pixels."""
    edges = {0, height}
    for block in blocks:
        edges.update(min(max(edge, 0), height) for edge in (block.y, block.y + block.height))
    cuts = sorted(edges)
    return [(bottom - top, painted_row(width, background, [block for block in blocks if block.y <= top and block.y + block.height >= bottom]))
            for top, bottom in zip(cuts, cuts[1:])]


def painted_row(width: int, background: Colour, blocks: Sequence[Block]) -> bytes:
    row = bytearray(bytes(background) * width)
    for block in blocks:
        left, right = max(0, block.x), min(width, block.x + block.width)
        if left < right:
            row[3 * left:3 * right] = bytes(block.colour) * (right - left)
    return bytes(row)


# --- PNG ---

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
    return b"".join(parts + [chunk(b"IDAT", b"".join(packed) + packer.flush()), chunk(b"IEND", b"")])


def grain(size: int) -> bytes:
    return random.Random(size).getrandbits(8 * size).to_bytes(size, "big")


def read_png(data: bytes) -> Picture:
    header: Tuple[int, ...] = ()
    labels: List[Dict[str, Any]] = []
    dpi, grain_bytes, packed = None, 0, []
    for kind, body in png_chunks(data):
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", body)
        elif kind == b"pHYs":
            dpi = round(struct.unpack(">I", body[:4])[0] * 0.0254)
        elif kind == b"tEXt" and body.startswith(TEXT_KEY + b"\0"):
            labels = json.loads(body[len(TEXT_KEY) + 1:])
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


def png_chunks(data: bytes) -> Iterator[Tuple[bytes, bytes]]:
    at = len(PNG_MAGIC)
    while at + 8 <= len(data):
        size = struct.unpack(">I", data[at:at + 4])[0]
        yield data[at + 4:at + 8], data[at + 8:at + 8 + size]
        at += 12 + size


def unfiltered_rows(raw: bytes, width: int, height: int, channels: int) -> Iterator[bytes]:
    stride = width * channels
    previous = bytes(stride)
    for y in range(height):
        at = y * (stride + 1)
        previous = unfiltered(raw[at], raw[at + 1:at + 1 + stride], previous, channels)
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
        out[colour::3] = row[min(colour, channels - 1)::channels] if channels == 4 else row
    return bytes(out)


def merged(rows: Iterator[bytes]) -> List[Band]:
    bands: List[Band] = []
    for row in rows:
        if bands and bands[-1][1] == row:
            bands[-1] = (bands[-1][0] + 1, row)
        else:
            bands.append((1, row))
    return bands


# --- JPEG: baseline, 4:4:4, every 8x8 block flat in the colour of its middle, one restart interval per row of blocks ---

# The standard luminance DC table (ITU T.81, table K.3); the AC table has one symbol, "end of block".
DC_COUNTS = (0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0)
DC_CODES = ("00", "010", "011", "100", "101", "110", "1110", "11110", "111110", "1111110", "11111110", "111111110")
END_OF_BLOCK = "0"
PIXELS = b"fakemac\0"  # our own segment: the exact pixels, so that a JPEG can be edited again


def segment(marker: int, data: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def jpeg_bytes(picture: Picture, quality: int = 75) -> bytes:
    step = max(1, round((100 - quality) / 6))
    dpi = picture.dpi or 72
    parts = [b"\xff\xd8", segment(0xE0, b"JFIF\0" + struct.pack(">HBHHBB", 0x0101, 1, dpi, dpi, 0, 0))]
    parts.append(segment(0xFE, json.dumps(picture.labels).encode("ascii")[:65000]))
    exact = zlib.compress(json.dumps([[count, row.hex()] for count, row in picture.bands]).encode(), 9)
    parts += [segment(0xEF, PIXELS + exact[at:at + 60000]) for at in range(0, len(exact), 60000)]
    filling = grain(picture.grain)
    parts += [segment(0xEE, filling[at:at + 60000]) for at in range(0, len(filling), 60000)]
    parts.append(segment(0xDB, b"\0" + bytes([step] * 64)))
    parts.append(segment(0xC0, struct.pack(">BHHB", 8, picture.height, picture.width, 3) + b"\x01\x11\0\x02\x11\0\x03\x11\0"))
    parts.append(segment(0xC4, b"\x00" + bytes(DC_COUNTS) + bytes(range(12)) + b"\x10" + bytes([1] + [0] * 15) + b"\0"))
    parts.append(segment(0xDD, struct.pack(">H", math.ceil(picture.width / 8))))
    parts.append(segment(0xDA, b"\x03\x01\0\x02\0\x03\0\0\x3f\0"))
    return b"".join(parts) + scan(picture, step) + b"\xff\xd9"


def scan(picture: Picture, step: int) -> bytes:
    done: Dict[bytes, bytes] = {}
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
    bits: List[str] = []
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


def dc_values(red: int, green: int, blue: int, step: int) -> Tuple[int, int, int]:
    luma = 0.299 * red + 0.587 * green + 0.114 * blue - 128
    return (round(8 * luma / step), round(8 * (-0.168736 * red - 0.331264 * green + 0.5 * blue) / step),
            round(8 * (0.5 * red - 0.418688 * green - 0.081312 * blue) / step))


def dc_bits(difference: int) -> str:
    size = abs(difference).bit_length()
    if size == 0:
        return DC_CODES[0]
    value = difference if difference > 0 else difference + (1 << size) - 1
    return DC_CODES[size] + format(value, f"0{size}b")


def read_jpeg(data: bytes) -> Picture:
    at, exact, size, labels, dpi, grain_bytes = 2, b"", (0, 0), [], 72, 0
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] != 0xDA:
        marker, length = data[at + 1], struct.unpack(">H", data[at + 2:at + 4])[0]
        body = data[at + 4:at + 2 + length]
        if marker == 0xC0:
            size = struct.unpack(">HH", body[1:5])
        elif marker == 0xE0:
            dpi = struct.unpack(">H", body[8:10])[0]
        elif marker == 0xFE:
            labels = json.loads(body)
        elif marker == 0xEF and body.startswith(PIXELS):
            exact += body[len(PIXELS):]
        elif marker == 0xEE:
            grain_bytes += len(body)
        at += 2 + length
    if not exact:
        raise NotAPicture("a JPEG that the fake Mac did not write")
    bands = [(count, bytes.fromhex(row)) for count, row in json.loads(zlib.decompress(exact))]
    return Picture(size[1], size[0], bands, labels, dpi, grain_bytes)


def read_picture(path: Path) -> Picture:
    data = path.read_bytes()
    if data.startswith(PNG_MAGIC):
        return read_png(data)
    if data.startswith(b"\xff\xd8\xff"):
        return read_jpeg(data)
    raise NotAPicture(f"{path} is neither PNG nor JPEG")


def kind_of(path: Path) -> str:
    return "png" if path.read_bytes()[:8] == PNG_MAGIC else "jpeg"


# --- changes ---

def resized(picture: Picture, width: int, height: int) -> Picture:
    """The nearest pixel of each place."""
    columns = [(2 * x + 1) * picture.width // (2 * width) for x in range(width)]
    done: Dict[bytes, bytes] = {}

    def narrowed(row: bytes) -> bytes:
        if row not in done:
            done[row] = b"".join([row[3 * column:3 * column + 3] for column in columns])
        return done[row]

    rows = (narrowed(row) for row in picked_rows(picture, [(2 * y + 1) * picture.height // (2 * height) for y in range(height)]))
    across, down = width / picture.width, height / picture.height
    labels = moved_labels(picture, lambda r: [r[0] * across, r[1] * down, r[2] * across, r[3] * down])
    share = width * height / (picture.width * picture.height)
    return replace(picture, width=width, height=height, bands=merged(rows), labels=labels, grain=int(picture.grain * share))


def picked_rows(picture: Picture, wanted: Sequence[int]) -> Iterator[bytes]:
    """The rows with the given numbers, which must ascend."""
    bands = iter(picture.bands)
    end, row = next(bands)
    for y in wanted:
        while y >= end:
            count, row = next(bands)
            end += count
        yield row


def cropped(picture: Picture, left: int, top: int, width: int, height: int) -> Picture:
    rows = (row[3 * left:3 * (left + width)] for row in picked_rows(picture, range(top, top + height)))
    labels = moved_labels(picture, lambda r: [r[0] - left, r[1] - top, r[2], r[3]])
    inside = [label for label in labels if 0 <= label["rect"][0] < width and 0 <= label["rect"][1] < height]
    share = width * height / (picture.width * picture.height)
    return replace(picture, width=width, height=height, bands=merged(rows), labels=inside, grain=int(picture.grain * share))


def moved_labels(picture: Picture, move: Callable[[List[float]], List[float]]) -> List[Dict[str, Any]]:
    return [{"text": label["text"], "rect": [round(value, 2) for value in move(label["rect"])]} for label in picture.labels]

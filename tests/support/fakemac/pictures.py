"""Flat-coloured pictures: painting, resizing.

A picture is bands: (number of equal rows, the bytes of one RGB row), for a whole Retina screen a few dozen.
Its labels carry the text that Vision can read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

Colour = tuple[int, int, int]
Band = tuple[int, bytes]


class NotAPicture(Exception):
    """The file is not a picture that we can read."""


class Picture(NamedTuple):  # dataclasses take a third of a small program's time
    """A picture. labels: [{"text", "rect": [x, y, width, height] in pixels}]."""

    width: int
    height: int
    bands: list[Band]
    labels: Sequence[dict[str, Any]] = ()

    def row(self, y: int) -> bytes:
        for count, row in self.bands:
            if y < count:
                return row
            y -= count
        raise IndexError(y)


class Block(NamedTuple):
    """A filled rectangle in pixels; later blocks lie on top."""

    x: int
    y: int
    width: int
    height: int
    colour: Colour


def paint(width: int, height: int, background: Colour, blocks: Sequence[Block]) -> list[Band]:
    """Paint in bands between the edges of the blocks, so that the cost does not grow with the pixels."""
    edges = {0, height}
    for block in blocks:
        edges.update(min(max(edge, 0), height) for edge in (block.y, block.y + block.height))
    cuts = sorted(edges)
    bands = []
    for top, bottom in zip(cuts, cuts[1:]):
        crossing = [block for block in blocks if block.y <= top and block.y + block.height >= bottom]
        bands.append((bottom - top, painted_row(width, background, crossing)))
    return bands


def painted_row(width: int, background: Colour, blocks: Sequence[Block]) -> bytes:
    row = bytearray(bytes(background) * width)
    for block in blocks:
        left, right = max(0, block.x), min(width, block.x + block.width)
        if left < right:
            row[3 * left : 3 * right] = bytes(block.colour) * (right - left)
    return bytes(row)


def merged(rows: Iterator[bytes]) -> list[Band]:
    bands: list[Band] = []
    for row in rows:
        if bands and bands[-1][1] == row:
            bands[-1] = (bands[-1][0] + 1, row)
        else:
            bands.append((1, row))
    return bands


def resized(picture: Picture, width: int, height: int) -> Picture:
    """Resize to the nearest pixels."""
    columns = [(2 * x + 1) * picture.width // (2 * width) for x in range(width)]
    done: dict[bytes, bytes] = {}

    def narrowed(row: bytes) -> bytes:
        if row not in done:
            done[row] = b"".join([row[3 * column : 3 * column + 3] for column in columns])
        return done[row]

    rows = (narrowed(picture.row((2 * y + 1) * picture.height // (2 * height))) for y in range(height))
    factors = [width / picture.width, height / picture.height] * 2
    labels = [
        {"text": label["text"], "rect": [round(a * b, 2) for a, b in zip(label["rect"], factors)]}
        for label in picture.labels
    ]
    return picture._replace(width=width, height=height, bands=merged(rows), labels=labels)

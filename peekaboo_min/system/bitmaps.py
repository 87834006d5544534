"""Bitmaps: their pixels, and the differences between two of them."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple, Optional

from ..core.errors import ErrorCode, PeekabooError
from ..core.models import Rect, Window
from .image_files import PNG_END, PNG_START

# Points. Two captures of an idle window on a Mac differ at its edges and round corners (public reports).
_RIM, _CORNER_RADIUS = 4, 26
_TO_255 = bytes([0, *[255] * 255])  # a table for bytes.translate, as are the following
# Two levels that differ by at most 2 of 256 are equal in the first table or in the second.
_IN_FOURS = bytes(level & ~3 for level in range(256))
_IN_FOURS_FROM_2 = bytes(min(255, level + 2) & ~3 for level in range(256))


class Bitmap(NamedTuple):
    """An uncompressed image: its rows, top to bottom, `step` bytes a pixel."""

    width: int
    step: int
    rows: tuple[bytes, ...]
    noisy_scale: float = 0.0  # pixels per point if captures are noisy: ignore the rim and faint differences

    @property
    def is_of_one_colour(self) -> bool:
        return set(self.rows) == {self.rows[0][: self.step] * self.width}

    def cropped(self, box: Rect, image_width: int) -> Bitmap:
        """Return the part in `box`, given in pixels of an image of that width."""
        part = box.scaled(self.width / image_width)
        left, right = int(part.x), min(self.width, math.ceil(part.x + part.width))
        rows = self.rows[int(part.y) : math.ceil(part.y + part.height)]
        columns = slice(left * self.step, right * self.step)
        return Bitmap(right - left, self.step, tuple(row[columns] for row in rows))

    def without_rim(self) -> Bitmap:
        """Blacken the edges and the round corners, where two captures of one Mac window may differ."""
        rows = []
        for number, row in enumerate(self.rows):
            from_edge = min(number + 1, len(self.rows) - number) / self.noisy_scale
            # in a corner, the black ends at a circle around the corner's centre
            above_centre = max(0.0, _CORNER_RADIUS - from_edge)
            squared = (_CORNER_RADIUS - _RIM) ** 2 - above_centre**2
            rim = _CORNER_RADIUS - math.sqrt(squared) if squared > 0 else self.width
            black = bytes(math.ceil(rim * self.noisy_scale) * self.step)
            rows.append((black + row[len(black) : -len(black)] + black)[: len(row)])
        return self._replace(rows=tuple(rows))

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
        return PNG_START + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + PNG_END


def read_bitmap(data: bytes) -> Bitmap:
    """Read a BMP of 24 or 32 bits a pixel. Raises CAPTURE_FAILED for anything else."""
    with suppress(struct.error, ValueError):  # cut short, or without a pixel
        (offset,) = struct.unpack("<I", data[10:14])
        width, height, _, bits, compression = struct.unpack("<iiHHI", data[18:34])
        row_bytes = (width * bits + 31) // 32 * 4
        end = offset + row_bytes * abs(height)
        if bits in (24, 32) and compression in (0, 3) and end <= len(data):
            rows = [data[at : at + width * bits // 8] for at in range(offset, end, row_bytes)]
            # a positive height means that the last row comes first
            return Bitmap(width, bits // 8, tuple(rows if height < 0 else reversed(rows)))
    raise PeekabooError(ErrorCode.CAPTURE_FAILED, "the capture program wrote no complete image", "try again")


Marks = dict[int, int]
"""A set of a bitmap's bytes: number of a row -> integer with 0xFF for each byte in the set; no empty rows."""


def changed_bytes(before: Bitmap, after: Bitmap) -> Marks:
    """Mark the bytes that differ; all bytes if the sizes differ."""
    if (before.width, before.step, len(before.rows)) != (after.width, after.step, len(after.rows)):
        return {number: (1 << 8 * len(row)) - 1 for number, row in enumerate(after.rows)}
    mark = _mark_differing
    if after.noisy_scale:
        before, after, mark = before.without_rim(), after.without_rim(), _mark_clearly_differing
    pairs = enumerate(zip(before.rows, after.rows))
    marks = {number: mark(row, other) for number, (row, other) in pairs if row != other}
    return {number: marked for number, marked in marks.items() if marked}


def _mark_differing(row: bytes, other: bytes) -> int:
    # as two large numbers, because a loop over bytes is slow
    difference = int.from_bytes(row, "big") ^ int.from_bytes(other, "big")
    return int.from_bytes(difference.to_bytes(len(row), "big").translate(_TO_255), "big")


def _mark_clearly_differing(row: bytes, other: bytes) -> int:
    differing = _mark_differing(row.translate(_IN_FOURS), other.translate(_IN_FOURS))
    return differing & _mark_differing(row.translate(_IN_FOURS_FROM_2), other.translate(_IN_FOURS_FROM_2))


def rect_of_bytes(marks: Mapping[int, int], bitmap: Bitmap) -> Optional[Rect]:
    """Return the smallest rectangle around the marked bytes of a bitmap, or None without any."""
    if not marks:
        return None
    in_any_row = 0
    for marked in marks.values():
        in_any_row |= marked
    lowest_bit = (in_any_row & -in_any_row).bit_length() - 1
    same_at_start = (len(bitmap.rows[0]) * 8 - in_any_row.bit_length()) // 8
    left, same_at_end = same_at_start // bitmap.step, lowest_bit // 8 // bitmap.step
    top, bottom = min(marks), max(marks)
    return Rect(left, top, bitmap.width - same_at_end - left, bottom - top + 1)


def changed_rect(before: Bitmap, after: Bitmap) -> Optional[Rect]:
    """Return the smallest rectangle around all pixels that differ, or None if none does."""
    return rect_of_bytes(changed_bytes(before, after), after)


def is_caret(rect: Rect, width: int, window: Window) -> bool:
    """Return True if a change in a window's bitmap of this width is not larger than a blinking caret."""
    scale = max(1.0, width / max(1.0, window.bounds.width))
    return rect.width <= 14 * scale and rect.height <= 40 * scale  # a large terminal font's block caret

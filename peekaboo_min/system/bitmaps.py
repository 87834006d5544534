"""Image files: kind, size and pixels, read from their bytes."""

from __future__ import annotations

import errno
import math
import os
import re
import stat
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Callable, NamedTuple, Optional
from urllib.parse import unquote

from ..core.errors import ErrorCode, PeekabooError, file_errors, invalid
from ..core.models import ImageData, ImageInfo, Rect, Window
from ..core.text import clean_text

EXTENSIONS = {".png": "png", ".jpg": "jpg", ".jpeg": "jpg", ".webp": "webp", ".gif": "gif"}
_PNG_START, _PNG_END = b"\x89PNG\r\n\x1a\n", b"\0\0\0\0IEND\xaeB`\x82"

# A model shrinks what is larger, and then answers in pixels that we never saw. These are the limits of
# Anthropic's standard tier, and of one result in Claude Desktop.
MODEL_EDGE = 1568
MODEL_PIXELS = 1_150_000
MODEL_BYTES = 700_000
# Public reports: two captures of an idle window on a Mac differ at its edges and round corners. Points.
_RIM, _CORNER_RADIUS = 4, 26
_STEPS = [bytes(min(255, level + start) & ~3 for level in range(256)) for start in (0, 2)]
_MARKS = bytes([0, *[255] * 255])


def sniff_image(data: bytes) -> Optional[ImageInfo]:
    """Return kind and size from the first bytes of a file, or None if they are not an image's."""
    info = None
    with suppress(struct.error, IndexError):  # cut short within its header
        if data[:8] == _PNG_START and data[12:16] == b"IHDR":
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


# A marker in a JPEG: FF 00 is a byte of its image data, FF D0 to FF D7 restart it, FF FF is padding.
_JPEG_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_JPEG_MARKER = re.compile(rb"\xff([^\x00\xd0-\xd7\xff])")


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    # a thumbnail is a part of its segment
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


def read_image_info(path: Path) -> Optional[ImageInfo]:
    """Return kind and size of a complete image file, or None for any other file. Raises OSError."""
    return whole_image(path.read_bytes())


def whole_image(data: bytes) -> Optional[ImageInfo]:
    """Return kind and size of an image, or None if bytes of it are missing."""
    info = sniff_image(data)
    return info if info and _IS_WHOLE[info.kind](data) else None


_IS_WHOLE: dict[str, Callable[[bytes], bool]] = {
    "png": lambda data: _PNG_END in data,
    "jpg": lambda data: any(marker == 0xD9 for marker, _ in _jpeg_segments(data)),
    "gif": lambda data: data.endswith(b";"),
    "webp": lambda data: int.from_bytes(data[4:8], "little") + 8 <= len(data),
    "bmp": lambda data: int.from_bytes(data[2:6], "little") <= len(data),
}


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
        """Return a Mac's window, black where two captures of it may differ."""
        rows = []
        for place, row in enumerate(self.rows):
            from_edge = min(place + 1, len(self.rows) - place) / self.noisy_scale
            from_centre = max(0.0, _CORNER_RADIUS - from_edge)
            inner = (_CORNER_RADIUS - _RIM) ** 2 - from_centre**2
            rim = _CORNER_RADIUS - math.sqrt(inner) if inner > 0 else self.width
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
        return _PNG_START + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + _PNG_END


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


def changed_bytes(before: Bitmap, after: Bitmap) -> dict[int, int]:
    """Map each row that differs to a mask: a large number whose bytes are 255 if they differ, else 0.

    All bytes of all rows differ if the sizes of the bitmaps do.
    """
    if (before.width, before.step, len(before.rows)) != (after.width, after.step, len(after.rows)):
        return {number: (1 << 8 * len(row)) - 1 for number, row in enumerate(after.rows)}
    if after.noisy_scale:
        before, after = before.without_rim(), after.without_rim()
    return {
        number: differing
        for number, (row, other) in enumerate(zip(before.rows, after.rows))
        if row != other and (differing := _differing_bytes(row, other, after.noisy_scale > 0))
    }


def rect_of_bytes(changed: Mapping[int, int], bitmap: Bitmap) -> Optional[Rect]:
    """Return the smallest rectangle around the marked bytes of a bitmap's rows, or None without any."""
    if not changed:
        return None
    in_any_row = 0
    for differing in changed.values():
        in_any_row |= differing
    lowest_bit = (in_any_row & -in_any_row).bit_length() - 1
    same_at_start = (len(bitmap.rows[0]) * 8 - in_any_row.bit_length()) // 8
    left, same_at_end = same_at_start // bitmap.step, lowest_bit // 8 // bitmap.step
    top, bottom = min(changed), max(changed)
    return Rect(left, top, bitmap.width - same_at_end - left, bottom - top + 1)


def changed_rect(before: Bitmap, after: Bitmap) -> Optional[Rect]:
    """Return the smallest rectangle around all pixels that differ, or None if none does."""
    return rect_of_bytes(changed_bytes(before, after), after)


def _differing_bytes(row: bytes, other: bytes, is_of_mac: bool) -> int:
    # one large number, because a loop over bytes is slow
    marks = -1
    # On a Mac, ignore a difference of up to 2 of 256 levels: round both rows to multiples of 4, then do so
    # again with all levels raised by 2. Such levels are equal in one of the two.
    for steps in _STEPS if is_of_mac else [None]:
        pair = [one.translate(steps) for one in (row, other)]
        difference = int.from_bytes(pair[0], "big") ^ int.from_bytes(pair[1], "big")
        marks &= int.from_bytes(difference.to_bytes(len(row), "big").translate(_MARKS), "big")
    return marks


def is_caret(rect: Rect, width: int, window: Window) -> bool:
    """Return True if a change in a window's bitmap of this width is not larger than a blinking caret."""
    scale = max(1.0, width / max(1.0, window.bounds.width))
    return rect.width <= 14 * scale and rect.height <= 40 * scale  # a large terminal font's block caret


def model_size(width: int, height: int, edge: int = MODEL_EDGE, area: int = MODEL_PIXELS) -> tuple[int, int]:
    """Return the largest size of this shape within `edge` and `area` (pixels); never enlarge."""
    factor = min(1.0, edge / max(width, height), math.sqrt(area / (width * height)))
    return max(1, int(width * factor)), max(1, int(height * factor))


def kind_by_name(path: Path) -> str:
    """Return png or jpg, by the file's extension. Raises INVALID_ARGUMENT for another one."""
    kind = EXTENSIONS.get(path.suffix.lower())
    if kind not in ("png", "jpg"):
        raise invalid(f"{path.name}: images are saved as png or jpg", "end the path in .png or .jpg")
    return kind


_saved: dict[Path, tuple[int, ...]] = {}  # the path and identity of each, oldest first


def _identity(status: os.stat_result) -> tuple[int, ...]:
    # a new file may get the inode of a deleted one
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def note_saved(paths: Iterable[Path]) -> None:
    """Remember image files that this process has just written. Raises FILE_IO_ERROR."""
    for path in paths:
        with file_errors(path):
            status = path.lstat()
        _saved.pop(path, None)
        if stat.S_ISREG(status.st_mode):
            _saved[path] = _identity(status)
    for path in [*_saved][:-1000]:
        _saved.pop(path, None)


def saved_images() -> Iterator[tuple[Path, int]]:
    """Yield the image files, and their bytes, that we wrote and nobody deleted or replaced; newest first."""
    for path, saved_as in reversed([*_saved.items()]):
        with suppress(OSError):
            status = path.lstat()
            if saved_as == _identity(status):
                yield path, status.st_size


def read_saved_image(uri: str) -> ImageData:
    """Return an image that this process wrote, by its file URI. Raises FILE_IO_ERROR for any other file."""
    path = next((path for path in [*_saved] if unquote(path.as_uri()) == unquote(uri)), None)
    if path is None:
        hint = "list the resources; a server offers only the images that it saved itself"
        raise PeekabooError(ErrorCode.FILE_IO_ERROR, f"there is no resource {clean_text(uri)}", hint)
    # without O_NONBLOCK a named pipe in its place would block
    with suppress(OSError), open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as f:
        is_same = _saved.get(path) == _identity(os.fstat(f.fileno()))
        data = f.read() if is_same else b""
        if info := whole_image(data):
            return ImageData(data, info, path.name, str(path))
    message = f"{path} was deleted, or is not the image that was saved"
    raise PeekabooError(ErrorCode.FILE_IO_ERROR, message, "take the screenshot again")


def prepare_target(path: Path) -> Path:
    """Return the path to write an image to, which is not a link; create its parents. Raises FILE_IO_ERROR.

    Refuses files that are not images, and links, unless they are the user's own and lead to an image.
    """
    problem = ""
    with file_errors(path):
        if not path.parent.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
        target = _link_target(path)
        if path.parent.is_file():
            problem = f"{path.parent} is a file, not a folder"
        elif target is None:
            problem = f"{path} is a link that is not yours, or is not to an image; nothing was written"
        elif target.is_dir():
            problem = f"{path} is a folder"
        elif target.exists() and not (target.is_file() and _is_image(target, or_empty=target == path)):
            problem = f"{path} exists and is not an image; it was left unchanged"
        elif not os.access(target if target.exists() else target.parent, os.W_OK):
            raise PermissionError(errno.EACCES, "Permission denied")
    if problem or target is None:
        raise PeekabooError(ErrorCode.FILE_IO_ERROR, problem, "choose another path")
    return target


def _link_target(path: Path) -> Optional[Path]:
    """Follow links that this user owns; return None at another user's link, a loop or a missing file."""
    target = path
    for _ in range(40):  # as many as Linux follows
        if not target.is_symlink():
            return target if target == path or target.exists() else None
        if target.lstat().st_uid != os.getuid():
            break
        target = target.parent / os.readlink(target)
    return None


def _is_image(path: Path, or_empty: bool) -> bool:
    with open(path, "rb") as f:
        start = f.read(256 * 1024)  # more than the metadata before the size of a JPEG
    return sniff_image(start) is not None or (or_empty and not start)

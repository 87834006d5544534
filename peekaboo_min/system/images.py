"""Image files: kind, size and pixels by bytes, names, our temporary folder."""

from __future__ import annotations

import errno
import math
import os
import re
import shutil
import stat
import struct
import tempfile
import time
from pathlib import Path
from typing import Optional

from ..core.errors import ErrorCode, PeekabooError
from ..core.models import ImageInfo
from ..core.settings import settings

EXTENSIONS = {".png": "png", ".jpg": "jpg", ".jpeg": "jpg", ".webp": "webp", ".gif": "gif"}
_NAME_BYTES = 255
_HEADER_BYTES = 256 * 1024
# Control characters, and those that turn the direction of a line round (a title could fake another name with them).
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)

# A model shrinks what is larger, and then answers in pixels that we never saw (Anthropic's standard tier; also what
# Claude Desktop takes in one result).
MODEL_EDGE = 1568
MODEL_PIXELS = 1_150_000
MODEL_BYTES = 700_000


def sniff_image(data: bytes) -> Optional[ImageInfo]:
    """Kind and size from the first bytes of a file, or None when they are no image's."""
    try:
        if data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR":
            return ImageInfo("png", *struct.unpack(">II", data[16:24]))
        if data[:3] == b"\xff\xd8\xff":
            return _sniff_jpeg(data)
        if data[:6] in (b"GIF87a", b"GIF89a"):
            return ImageInfo("gif", *struct.unpack("<HH", data[6:10]))
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return _sniff_webp(data)
    except (struct.error, IndexError):
        pass  # cut short within its header
    return None


def _sniff_jpeg(data: bytes) -> Optional[ImageInfo]:
    at = 2
    while at + 9 < len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return ImageInfo("jpg", width, height)
        at += 1 if marker == 0xFF else 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
    return None


def _sniff_webp(data: bytes) -> Optional[ImageInfo]:
    if len(data) < (25 if data[12:16] == b"VP8L" else 30):
        return None
    if data[12:16] == b"VP8X":
        return ImageInfo(
            "webp", int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
        )
    if data[12:16] == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return ImageInfo("webp", (bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1)
    width, height = struct.unpack("<HH", data[26:30])
    return ImageInfo("webp", width & 0x3FFF, height & 0x3FFF)


def read_image_info(path: Path) -> Optional[ImageInfo]:
    """Kind and size of an image file, None when it is not one. Raises OSError when it cannot be read."""
    with open(path, "rb") as f:
        info = sniff_image(f.read(_HEADER_BYTES))
    return info if info and info.width and info.height else None


def pixel_digest(path: Path) -> str:
    """A digest of a PNG's pixel data (its IDAT bytes, nothing decoded): equal for equal pictures of one program."""
    import hashlib  # 3 ms that only `verify` needs

    data = path.read_bytes()
    digest = hashlib.sha256(data[16:29])
    at = 8
    while at + 8 <= len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            digest.update(data[at + 8 : at + 8 + length])
        at += length + 12
    return digest.hexdigest()


def model_size(info: ImageInfo, edge: int = MODEL_EDGE, pixels: int = MODEL_PIXELS) -> tuple[int, int]:
    """The largest size of this shape with no side above `edge` and no more than `pixels` in all; never larger than it is."""
    factor = min(1.0, edge / max(info.width, info.height), math.sqrt(pixels / (info.width * info.height)))
    return max(1, int(info.width * factor)), max(1, int(info.height * factor))


def clean_text(text: str, limit: int = 200) -> str:
    """Text from outside (a window's title, recognised text) without control and direction characters, cut at `limit`."""
    return _UNSAFE.sub(" ", text)[:limit].strip()


def file_name(stem: str, kind: str) -> str:
    """A name for a picture: what a file system refuses or a shell stumbles over is `_`; at most 255 bytes."""
    cleaned = re.sub(r"[\s/\\:*?\"<>|]+", "_", clean_text(stem, 1000)).strip("._") or "window"
    room = _NAME_BYTES - len(kind) - 1
    return f"{cleaned.encode('utf-8')[:room].decode('utf-8', 'ignore')}.{kind}"


def temporary_folder() -> Path:
    """Our folder for pictures and their records, ours alone (0700). Raises FILE_IO_ERROR when it is someone else's."""
    folder = Path(tempfile.gettempdir()) / f"peekaboo_min-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as e:
        raise file_error(folder, e) from e
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PeekabooError(
            ErrorCode.FILE_IO_ERROR,
            f"{folder} is not a private folder of ours",
            hint="remove it, or set TMPDIR to a folder of your own",
        )
    return folder


def kind_by_name(path: Path) -> str:
    """png or jpg, as the file's name says; raises INVALID_ARGUMENT for another ending."""
    kind = EXTENSIONS.get(path.suffix.lower())
    if kind not in ("png", "jpg"):
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT,
            f"{path.name}: pictures are png or jpg",
            hint="end the path in .png or .jpg",
        )
    return kind


def new_temporary_path(stem: str, kind: str) -> Path:
    """A path that nothing has yet, in our temporary folder."""
    return temporary_folder() / file_name(f"{stem}_{os.urandom(6).hex()}", kind)


def sweep(ttl_seconds: Optional[int] = None) -> int:
    """Delete what has lived longer than its time in our temporary folder; return how many files."""
    ttl = settings().ttl_seconds if ttl_seconds is None else ttl_seconds
    if ttl == 0 and ttl_seconds is None:
        return 0
    oldest = time.time() - ttl
    removed = 0
    for entry in os.scandir(temporary_folder()):
        try:
            if entry.stat(follow_symlinks=False).st_mtime > oldest:
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
            removed += 1
        except OSError:
            continue  # another process sweeps as well, or a file is not ours to delete
    return removed


def prepare_target(path: Path) -> None:
    """Make ready to write an image at `path`: its parents exist, and what is there already is an image.

    Raises FILE_IO_ERROR.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise PeekabooError(ErrorCode.FILE_IO_ERROR, f"{path} is a folder", hint="name a file in it")
        is_empty_file = path.is_file() and not path.stat().st_size
        if path.exists() and not is_empty_file and (not path.is_file() or read_image_info(path) is None):
            raise PeekabooError(
                ErrorCode.FILE_IO_ERROR,
                f"{path} exists and is not an image; it was left as it is",
                hint="choose another path",
            )
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise PermissionError(errno.EACCES, "Permission denied")
    except OSError as e:
        raise file_error(path, e) from e


def move_into_place(source: Path, target: Path) -> None:
    """Put a finished picture where it was asked for. Raises FILE_IO_ERROR; `source` is gone in either case."""
    try:
        shutil.move(str(source), str(target))
    except OSError as e:
        source.unlink(missing_ok=True)
        raise file_error(target, e) from e


def file_error(path: Path, error: OSError) -> PeekabooError:
    """FILE_IO_ERROR for what the system said of `path`."""
    hints = {
        errno.EACCES: "choose a folder that you may write to",
        errno.EPERM: "choose a folder that you may write to",
        errno.EROFS: "choose a folder that you may write to",
        errno.ENOSPC: "free some space, or choose another disk",
        errno.ENAMETOOLONG: "choose a shorter path",
        errno.ENOTDIR: "a part of that path is a file; choose another",
        errno.ENOENT: "see that the path is right",
    }
    reason = error.strerror or type(error).__name__
    return PeekabooError(
        ErrorCode.FILE_IO_ERROR, f"{path}: {reason}", hint=hints.get(error.errno or 0, "choose another path")
    )

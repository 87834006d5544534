"""Save image files: check their paths, and remember them as MCP resources."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Optional
from urllib.parse import unquote

from ..core.errors import ErrorCode, PeekabooError, file_errors, invalid
from ..core.models import ImageData
from ..core.text import clean_text
from .image_files import EXTENSIONS, sniff_image, whole_image

_unusable = partial(PeekabooError, ErrorCode.FILE_IO_ERROR, hint="choose another path")


def kind_by_name(path: Path) -> str:
    """Return png or jpg, by the file's extension. Raises INVALID_ARGUMENT for another one."""
    kind = EXTENSIONS.get(path.suffix.lower())
    if kind not in ("png", "jpg"):
        raise invalid(f"{path.name}: images are saved as png or jpg", "end the path in .png or .jpg")
    return kind


def prepare_target(path: Path) -> Path:
    """Return the path to write an image to, with its links followed; create its parents.

    Raises FILE_IO_ERROR. Only an image or an empty file may be overwritten; through a link, only an image,
    and only if the user owns the link.
    """
    with file_errors(path):
        if path.parent.is_file():
            raise _unusable(f"{path.parent} is a file, not a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        target = _link_target(path)
        if target is None:
            raise _unusable(f"{path} is a link that is not yours, or is not to an image; nothing was written")
        if target.is_dir():
            raise _unusable(f"{path} is a folder")
        if target.exists() and not (target.is_file() and _is_image(target, or_empty=target == path)):
            raise _unusable(f"{path} exists and is not an image; it was left unchanged")
        if not os.access(target if target.exists() else target.parent, os.W_OK):
            raise PermissionError(errno.EACCES, "Permission denied")
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


# The saved files, oldest first, with their identities. Loops copy it, because other threads save, too.
_saved: dict[Path, tuple[int, ...]] = {}


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
    """Yield path and size in bytes of each saved file that nobody deleted or replaced; newest first."""
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

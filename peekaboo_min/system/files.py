"""Our folders and their files: names, lifetimes, locks, atomic writes."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Optional

from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError, file_error
from ..core.settings import platform_name, settings
from ..core.text import clean_text

_NAME_BYTES = 255


def state_folder() -> Path:
    """Our folder for what must outlive a process, ours alone. Raises FILE_IO_ERROR."""
    folder = settings().mac_state_folder if platform_name() == "macos" else settings().xdg_state_folder
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as e:
        raise file_error(folder, e) from e
    return folder


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


def move_into_place(source: Path, target: Path) -> None:
    """Put a finished picture where it was asked for. Raises FILE_IO_ERROR; `source` is gone in either case."""
    try:
        shutil.move(str(source), str(target))
    except OSError as e:
        source.unlink(missing_ok=True)
        raise file_error(target, e) from e


def write_privately(path: Path, text: str) -> None:
    """Put `text` into `path` (0600) so that a reader sees the old file or the new one. Raises FILE_IO_ERROR."""
    fresh = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as f:
            f.write(text)
        os.replace(fresh, path)
    except OSError as e:
        with suppress(OSError):
            fresh.unlink()
        raise file_error(path, e) from e


_TURN_POLL_S = 0.02
_held_locks: ContextVar[tuple[int, ...]] = ContextVar("held_locks", default=())


def held_locks() -> tuple[int, ...]:
    """The descriptors of the locks that this call holds. A program that inherits them keeps the locks while it
    runs, also when we are killed.
    """
    return _held_locks.get()


@contextmanager
def only_one(lock_name: str, wait_s: float, what: str) -> Iterator[None]:
    """Hold a lock file of the state folder while the `with` block runs.

    Raises FILE_IO_ERROR, and TIMEOUT when another process keeps it.
    """
    path = state_folder() / lock_name
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as e:
        raise file_error(path, e) from e
    with open(descriptor, "a") as f:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    message = f"another peekaboo is using {what}"
                    raise PeekabooError(ErrorCode.TIMEOUT, message, hint="try again in a moment") from None
                pause(_TURN_POLL_S)
        reset = _held_locks.set((*_held_locks.get(), descriptor))
        try:
            yield
        finally:
            _held_locks.reset(reset)

"""Our folders and their files: names, lifetimes, locks, atomic writes."""

from __future__ import annotations

import fcntl
import math
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Optional, Union

from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError, file_errors, invalid
from ..core.log import log_warning
from ..core.settings import platform_name, settings
from ..core.text import clean_text, cut_to_bytes, encodable

_NAME_BYTES = 255
_SUFFIX_BYTES = 80
_LOCK_POLL_S = 0.02


def asked_path(text: str) -> Path:
    """A path as it was given, made absolute, its `~` resolved. Raises INVALID_ARGUMENT, FILE_IO_ERROR."""
    try:
        if b"\0" in os.fsencode(text):
            raise ValueError("it holds a NUL character")
        with file_errors(Path(text)):  # the working folder does not exist any more
            return Path(text).expanduser().absolute()
    except (ValueError, RuntimeError) as e:  # half of a surrogate pair; `~`, and there is no such home
        message = f"this cannot be a path: {clean_text(text, 80)}"
        raise invalid(message, "write it without ~ and control characters, or set HOME") from e


def state_folder() -> Path:
    """Our folder for what must outlive a process, ours alone. Raises INVALID_ARGUMENT, FILE_IO_ERROR."""
    home = "~/Library/Caches" if platform_name() == "macos" else settings().state_home
    return _private_folder(asked_path(home) / "peekaboo_min")


def temporary_folder() -> Path:
    """Our folder for images and their records, ours alone (0700). Raises FILE_IO_ERROR."""
    return _private_folder(system_temporary_folder() / f"peekaboo_min-{os.getuid()}")


def system_temporary_folder() -> Path:
    """The system's folder for temporary files. Raises FILE_IO_ERROR where none can be written to."""
    import tempfile  # 4 ms with shutil, which a listing does not need

    with file_errors(Path("the temporary folder")):
        return Path(tempfile.gettempdir())


def _private_folder(folder: Path) -> Path:
    """The folder, created where it is missing, that only this user can enter. Raises FILE_IO_ERROR."""
    with file_errors(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
        is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
        if is_ours and not status.st_mode & 0o022:
            folder.chmod(0o700)  # nobody else could write here, and from now on nobody else can read
            return folder
    message = f"{folder} is not a folder that only you can write to"
    hint = "remove it, or set TMPDIR and XDG_STATE_HOME to folders of your own"
    raise PeekabooError(ErrorCode.FILE_IO_ERROR, message, hint)


def log_file() -> Path:
    """Where the server logs. Raises INVALID_ARGUMENT, FILE_IO_ERROR."""
    return asked_path(settings().log_file or str(system_temporary_folder() / "peekaboo-mcp.log"))


def file_name(stem: str, kind: str, suffix: str = "") -> str:
    """A name for an image: what a file system refuses or a shell stumbles over is `_`; at most 255 bytes.

    suffix: what follows the stem, and tells several images of one stem apart. A stem that is too long loses
    its middle: names differ at the start and at the end.
    """
    ending = f"{cut_to_bytes(_safe_in_names(suffix).rstrip('._'), _SUFFIX_BYTES)}.{kind}"
    cleaned = _safe_in_names(stem).strip("._") or "window"
    limit = _NAME_BYTES - len(ending.encode())
    if len(cleaned.encode()) > limit:
        start = cut_to_bytes(cleaned, limit - limit // 2)
        cleaned = start + cleaned.encode()[len(start.encode()) - limit :].decode("utf-8", "ignore")
    return cleaned + ending


def _safe_in_names(text: str) -> str:
    return re.sub(r"[\s/\\:*?\"<>|]+", "_", clean_text(text, 1000))


def new_temporary_path(stem: str, kind: str) -> Path:
    """A path that nothing has yet, in our temporary folder."""
    return temporary_folder() / file_name(stem, kind, f"_{os.urandom(6).hex()}")


@contextmanager
def working_folder(prefix: str) -> Iterator[Path]:
    """A new temporary folder that is not swept while the block runs; what has expired is deleted. Raises
    FILE_IO_ERROR.
    """
    sweep()
    folder = new_temporary_path(prefix, "d")
    with file_errors(folder):
        folder.mkdir(mode=0o700)
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield folder
    finally:
        os.close(descriptor)


def sweep(ttl_seconds: Optional[float] = None) -> int:
    """Delete what is expired and unused in our temporary folder; return how many files and folders."""
    if ttl_seconds is None:
        ttl_seconds = settings().ttl_seconds or math.inf
    paths = list(temporary_folder().iterdir())
    return len(paths) - len(_delete(paths, time.time() - ttl_seconds))


def remove_all(kept: Sequence[Path], others: Sequence[Path]) -> list[Path]:
    """Delete our two folders with what is in them, and `others`; return what stays.

    What is in use, in `kept` or not ours to delete stays, with its folder.
    """
    folders = (temporary_folder(), state_folder())
    paths = [*others, *(path for folder in folders for path in folder.iterdir())]
    staying = [path for path in others if path.is_dir()]  # PEEKABOO_LOG_FILE may name a user's folder
    staying += [path for path in paths if any(path in (keep, *keep.parents) for keep in kept)]
    staying += _delete([path for path in paths if path not in staying])
    for folder in folders:
        with suppress(OSError):  # something stays in it
            folder.rmdir()
    return staying


def _delete(paths: Sequence[Path], oldest: float = math.inf) -> list[Path]:
    """Delete what nobody holds a lock on and was not changed since `oldest`; return what stays."""
    staying = []
    for path in paths:
        try:
            if path.lstat().st_mtime > oldest or not _delete_unused(path):
                staying.append(path)
        except FileNotFoundError:
            continue  # another process deletes as well
        except OSError as e:
            log_warning(f"{path} cannot be deleted: {e.strerror}")
            staying.append(path)
    return staying


def _delete_unused(path: Path) -> bool:
    if path.is_symlink():
        path.unlink()
        return True
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        import shutil

        shutil.rmtree(path) if path.is_dir() else path.unlink()
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)


def write_all(contents: Mapping[Path, bytes]) -> None:
    """Put these into their files (0600), all or none; a reader sees the old file or the new one. Raises
    FILE_IO_ERROR.

    First each goes beside its file: a full disk must not cost the one that is there. Then all are renamed.
    """
    staged = {path: path.with_name(f".peekaboo_{os.urandom(6).hex()}") for path in contents}
    try:
        for path, beside in staged.items():
            with file_errors(path):
                descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with open(descriptor, "wb") as f:
                    f.write(contents[path])
        for path, beside in staged.items():
            with file_errors(path):
                os.replace(beside, path)
    finally:
        for leftover in staged.values():
            with suppress(OSError):
                leftover.unlink()


def write_privately(path: Path, content: Union[str, bytes]) -> None:
    """One file, and its folder where that is missing; see write_all. Raises FILE_IO_ERROR."""
    with file_errors(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_all({path: content if isinstance(content, bytes) else encodable(content).encode("utf-8")})


_held_locks: ContextVar[tuple[int, ...]] = ContextVar("held_locks", default=())


def held_locks() -> tuple[int, ...]:
    """The descriptors of the locks that this call holds. A program that inherits them keeps the locks while
    it runs, also when we are killed.
    """
    return _held_locks.get()


@contextmanager
def file_lock(lock_name: str, wait_s: float, what: str) -> Iterator[None]:
    """Hold a lock file of the state folder while the `with` block runs.

    Raises FILE_IO_ERROR, CANCELLED, and TIMEOUT when another process keeps it.
    """
    path = state_folder() / lock_name
    with file_errors(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "a"):
        deadline = time.monotonic() + wait_s
        while True:
            with file_errors(path), suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > deadline:
                message = f"another peekaboo is using {what}"
                raise PeekabooError(ErrorCode.TIMEOUT, message, hint="try again in a moment")
            pause(_LOCK_POLL_S)
        reset = _held_locks.set((*_held_locks.get(), descriptor))
        try:
            yield
        finally:
            _held_locks.reset(reset)

"""Our folders and their files: names, lifetimes, file locks, atomic writes."""

from __future__ import annotations

import fcntl
import math
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Optional, Union

from ..core.call import pause
from ..core.errors import ErrorCode, PeekabooError, file_errors, invalid
from ..core.log import log_warning, open_own_file
from ..core.settings import platform_name, settings
from ..core.text import clean_text, cut_to_bytes, encodable


def absolute_path(text: str) -> Path:
    """Return an absolute path, with `~` expanded. Raises INVALID_ARGUMENT, FILE_IO_ERROR."""
    try:
        if b"\0" in os.fsencode(text):
            raise ValueError("the path has a NUL character")
        with file_errors(Path(text)):  # the working folder was deleted
            return Path(text).expanduser().absolute()
    except (ValueError, RuntimeError) as e:  # a lone surrogate; `~` without a home folder
        message = f"this is not a valid path: {clean_text(text, 80)}"
        raise invalid(message, "write it without ~ and control characters, or set HOME") from e


def state_folder() -> Path:
    """Return our private folder for lasting files. Raises INVALID_ARGUMENT, FILE_IO_ERROR."""
    home = "~/Library/Caches" if platform_name() == "macos" else settings().state_home
    return _private_folder(absolute_path(home) / "peekaboo_min", "XDG_STATE_HOME")


def temporary_folder() -> Path:
    """Return our private folder for images and their records. Raises FILE_IO_ERROR."""
    return _private_folder(system_temporary_folder() / f"peekaboo_min-{os.getuid()}", "TMPDIR")


def lock_folder() -> Path:
    """Return the private folder of the file locks, one for all processes of a user. Raises FILE_IO_ERROR."""
    # a user's servers may have different XDG_STATE_HOME, TMPDIR and HOME, but they share /tmp and the mouse
    shared = "/tmp"
    if platform_name() == "macos" and settings().bin_dir:
        shared = settings().bin_dir  # the programs of a fake Mac, which has its own mouse
    return _private_folder(Path(shared) / f"peekaboo_min-{os.getuid()}")


def system_temporary_folder() -> Path:
    """Return the system's folder for temporary files. Raises FILE_IO_ERROR if there is none."""
    import tempfile  # takes 4 ms with shutil; a listing does not need it

    with file_errors(Path("the temporary folder")):
        return Path(tempfile.gettempdir())


def _private_folder(folder: Path, variable: str = "") -> Path:
    with file_errors(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
        is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
        if is_ours and not status.st_mode & 0o022:
            folder.chmod(0o700)  # others could read it, but not write
            return folder
    message = f"{folder} is not a folder that only you can write to"
    hint = f"remove it, or set {variable} to a folder of your own" if variable else "remove it"
    raise PeekabooError(ErrorCode.FILE_IO_ERROR, message, hint)


def log_file() -> Path:
    """Return the path of the server's log. Raises INVALID_ARGUMENT, FILE_IO_ERROR."""
    return absolute_path(settings().log_file) if settings().log_file else default_log_file()


def default_log_file() -> Path:
    """Return the path of the log without PEEKABOO_LOG_FILE. Raises FILE_IO_ERROR."""
    return system_temporary_folder() / "peekaboo-mcp.log"


def file_name(stem: str, kind: str, suffix: str = "") -> str:
    """Return a file name of at most 255 bytes; `_` replaces characters that file systems or shells interpret.

    suffix: distinguishes images with the same stem. A long stem loses its middle, because names mostly differ
    at the start and at the end.
    """
    ending = f"{cut_to_bytes(_safe_in_names(suffix).rstrip('._'), 80)}.{kind}"
    cleaned = _safe_in_names(stem).strip("._") or "window"
    limit = 255 - len(ending.encode())
    if len(cleaned.encode()) > limit:
        start = cut_to_bytes(cleaned, limit - limit // 2)
        cleaned = start + cleaned.encode()[len(start.encode()) - limit :].decode("utf-8", "ignore")
    return cleaned + ending


def _safe_in_names(text: str) -> str:
    return re.sub(r"[\s/\\:*?\"<>|]+", "_", clean_text(text, 1000))


def new_temporary_path(stem: str, kind: str) -> Path:
    """Return the path of a new file or folder in our temporary folder. Raises FILE_IO_ERROR."""
    return temporary_folder() / file_name(stem, kind, f"_{os.urandom(6).hex()}")


@contextmanager
def temporary_file(kind: str, data: bytes = b"") -> Iterator[Path]:
    """Create a private file during the block; without `data`, return only its path. Raises FILE_IO_ERROR."""
    path = new_temporary_path("peekaboo", kind)
    try:
        with file_errors(path):
            if data:
                write_privately(path, data)
            yield path
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def working_folder(prefix: str) -> Iterator[Path]:
    """Create a temporary folder, which `sweep` keeps during the block. Raises FILE_IO_ERROR."""
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
    """Delete expired, unused files and folders in our temporary folder; return how many.

    ttl_seconds: None means PEEKABOO_TTL_SECONDS.
    """
    if ttl_seconds is None:
        ttl_seconds = settings().ttl_seconds or math.inf
    now = time.time()
    paths = list(temporary_folder().iterdir())
    for path in paths:
        with suppress(FileNotFoundError):  # another process deletes, too
            # after the clock was set back, an older file has a time in the future, and would not expire
            if path.lstat().st_mtime > now + 2:
                os.utime(path, (now, now), follow_symlinks=False)
    return len(paths) - len(_delete(paths, now - ttl_seconds))


def remove_all(kept: Sequence[Path], others: Sequence[Path]) -> list[Path]:
    """Delete our folders and locks, and the files in `others`; return the paths that stay.

    Keep files in use, the files in `kept`, folders that contain such files, and folders in `others`.
    """
    folders = (temporary_folder(), state_folder())
    paths = [*others, *lock_folder().glob("*.lock")]
    paths += [path for folder in folders for path in folder.iterdir()]
    staying = _delete([*dict.fromkeys(paths)], kept=(*kept, *filter(Path.is_dir, others)))
    for folder in (*folders, lock_folder()):
        with suppress(OSError):  # it is not empty
            folder.rmdir()
    return staying


def _delete(paths: Sequence[Path], until: float = math.inf, kept: Sequence[Path] = ()) -> list[Path]:
    """Delete the paths that have not changed since `until` and are not in use; return the others.

    The log, the stop file, the paths in `kept`, and folders that contain one of them stay.
    """
    named = [absolute_path(name) for name in (settings().log_file, settings().stop_file) if name]
    kept = [Path(os.path.realpath(path)) for path in (*kept, *named)]
    staying = []
    for path in paths:
        try:
            is_kept = any(Path(os.path.realpath(path)) in (keep, *keep.parents) for keep in kept)
            if path.lstat().st_mtime > until or is_kept or not _delete_unused(path):
                staying.append(path)
        except FileNotFoundError:
            continue  # another process deletes, too
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


def write_all(contents: Mapping[Path, bytes], mode: Optional[int] = None) -> None:
    """Write all of these files, or none; a reader sees the old file or the new one. Raises FILE_IO_ERROR.

    mode: the permissions of new files, less the umask; an existing file keeps its own. New files in a folder
    of several users (with the sticky bit, such as /tmp) are private. None: all of the files become private.
    """
    # written beside the files first: if the disk is full, the existing ones stay
    staged = {path: path.with_name(f".peekaboo_{os.urandom(6).hex()}") for path in contents}
    try:
        for path, beside in staged.items():
            with file_errors(path):
                is_shared = path.parent.stat().st_mode & stat.S_ISVTX
                new_mode = 0o600 if is_shared or mode is None else mode
                with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, new_mode), "wb") as f:
                    if mode is not None and path.exists():
                        os.fchmod(f.fileno(), path.stat().st_mode & 0o777)
                    f.write(contents[path])
        for path, beside in staged.items():
            with file_errors(path):
                os.replace(beside, path)
    finally:
        for leftover in staged.values():
            with suppress(OSError):
                leftover.unlink()


def write_privately(path: Path, content: Union[str, bytes]) -> None:
    """Write a private file, and create its folder; see write_all. Raises FILE_IO_ERROR."""
    with file_errors(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_all({path: content if isinstance(content, bytes) else encodable(content).encode("utf-8")})


_held_locks: ContextVar[dict[str, int]] = ContextVar("held_locks", default={})  # noqa: B039 - only replaced


def held_locks() -> tuple[int, ...]:
    """Return the descriptors of the locks that this call holds; a child that inherits them keeps them."""
    return tuple(_held_locks.get().values())


@contextmanager
def file_lock(lock_name: str, wait_s: float, what: str) -> Iterator[None]:
    """Hold a lock during the block; a call that holds it already may enter again.

    what: the locked thing, for the error. Raises FILE_IO_ERROR, CANCELLED, TIMEOUT.
    """
    if lock_name in _held_locks.get():
        yield
        return
    path = lock_folder() / lock_name
    deadline = time.monotonic() + wait_s
    while (descriptor := _try_lock(path)) is None:
        if time.monotonic() > deadline:
            message = f"another peekaboo is using {what}"
            raise PeekabooError(ErrorCode.TIMEOUT, message, hint="try again in a moment")
        pause(0.02)
    reset = _held_locks.set({**_held_locks.get(), lock_name: descriptor})
    try:
        yield
    finally:
        _held_locks.reset(reset)
        os.close(descriptor)


def _try_lock(path: Path) -> Optional[int]:
    with file_errors(path), ExitStack() as on_failure:
        descriptor = open_own_file(path, os.O_RDWR | os.O_CREAT)
        on_failure.callback(os.close, descriptor)
        with suppress(BlockingIOError, FileNotFoundError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.utime(descriptor)  # systems delete old files in /tmp
            # if the file was deleted before we had the lock, the next process creates and locks another one
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                on_failure.pop_all()
                return descriptor
    return None

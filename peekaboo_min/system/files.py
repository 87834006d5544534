"""Our folders and their files: names, lifetimes, locks, atomic writes."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Optional, Union

from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError, file_error, file_errors, invalid
from ..core.log import log_warning
from ..core.settings import platform_name, settings
from ..core.text import clean_text, cut_to_bytes, encodable

_NAME_BYTES = 255
_SUFFIX_BYTES = 80


def state_folder() -> Path:
    """Our folder for what must outlive a process, ours alone. Raises FILE_IO_ERROR."""
    folder = settings().mac_state_folder if platform_name() == "macos" else settings().xdg_state_folder
    return _private_folder(folder, "set XDG_STATE_HOME to a folder of your own")


def file_name(stem: str, kind: str, suffix: str = "") -> str:
    """A name for an image: what a file system refuses or a shell stumbles over is `_`; at most 255 bytes.

    suffix: what follows the stem, and tells several images of one stem apart. A stem that is too long loses
    its middle: names differ at the start and at the end.
    """
    cleaned = _safe_in_names(stem).strip("._") or "window"
    ending = f"{cut_to_bytes(_safe_in_names(suffix).rstrip('._'), _SUFFIX_BYTES)}.{kind}"
    limit = _NAME_BYTES - len(ending.encode())
    if len(cleaned.encode()) > limit:
        start = cut_to_bytes(cleaned, limit - limit // 2)
        cleaned = start + cleaned.encode()[len(start.encode()) - limit :].decode("utf-8", "ignore")
    return cleaned + ending


def _safe_in_names(text: str) -> str:
    return re.sub(r"[\s/\\:*?\"<>|]+", "_", clean_text(text, 1000))


def temporary_folder() -> Path:
    """Our folder for images and their records, ours alone (0700). Raises FILE_IO_ERROR."""
    folder = system_temporary_folder() / f"peekaboo_min-{os.getuid()}"
    return _private_folder(folder, "remove it, or set TMPDIR to a folder of your own")


def system_temporary_folder() -> Path:
    """The system's folder for temporary files. Raises FILE_IO_ERROR where none can be written to."""
    with file_errors(Path("the temporary folder")):
        return Path(tempfile.gettempdir())


def _private_folder(folder: Path, hint: str) -> Path:
    """The folder, created where it is missing, that only this user can enter. Raises FILE_IO_ERROR."""
    with file_errors(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
        if is_ours and found.st_mode & 0o055:
            folder.chmod(0o700)  # nobody else could write here, and from now on nobody else can read
    if not is_ours:
        raise PeekabooError(
            ErrorCode.FILE_IO_ERROR, f"{folder} is not a folder that only you can write to", hint=hint
        )
    return folder


def asked_path(text: str) -> Path:
    """A path as it was given, made absolute, its `~` resolved. Raises INVALID_ARGUMENT, FILE_IO_ERROR."""
    try:
        if b"\0" in os.fsencode(text):
            raise invalid("a path cannot hold a NUL character", "remove it")
        return Path(text).expanduser().absolute()
    except UnicodeEncodeError as e:
        raise invalid("a path holds half of a surrogate pair, which cannot be encoded", "remove it") from e
    except RuntimeError as e:  # `~name` of an unknown user
        raise invalid(
            f"there is no user of that name: {clean_text(text, 80)}", "write the path without ~"
        ) from e
    except OSError as e:  # the working folder does not exist any more
        raise file_error(Path(text), e) from e


def log_file() -> Path:
    """Where the server logs. Raises INVALID_ARGUMENT, FILE_IO_ERROR."""
    asked = settings().log_file
    return asked_path(asked) if asked else system_temporary_folder() / "peekaboo-mcp.log"


def new_temporary_path(stem: str, kind: str) -> Path:
    """A path that nothing has yet, in our temporary folder."""
    return temporary_folder() / file_name(f"{stem}_{os.urandom(6).hex()}", kind)


@contextmanager
def working_folder(prefix: str) -> Iterator[Path]:
    """A new temporary folder that is not swept while the block runs. Raises FILE_IO_ERROR."""
    parent = temporary_folder()
    with file_errors(parent):
        folder = tempfile.mkdtemp(prefix=f"{prefix}_", dir=parent)
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield Path(folder)
    finally:
        os.close(descriptor)


def sweep(ttl_seconds: Optional[int] = None) -> int:
    """Delete what is expired and unused in our temporary folder; return how many files and folders."""
    ttl = settings().ttl_seconds if ttl_seconds is None else ttl_seconds
    if ttl == 0 and ttl_seconds is None:
        return 0
    oldest = time.time() - ttl
    removed = 0
    for entry in os.scandir(temporary_folder()):
        try:
            if entry.stat(follow_symlinks=False).st_mtime > oldest:
                continue
            removed += _delete_unused(entry)
        except FileNotFoundError:
            continue  # another process sweeps as well
        except OSError as e:
            log_warning(f"{entry.path} has expired, but cannot be deleted: {e.strerror}")
    return removed


def _delete_unused(entry: os.DirEntry[str]) -> bool:
    """Delete a file or a folder, unless somebody holds a lock on it. Raises OSError."""
    if not entry.is_dir(follow_symlinks=False) and not entry.is_file(follow_symlinks=False):
        os.unlink(entry.path)  # a link or a pipe: nobody locks it, and opening it could block
        return True
    descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)


def remove_all(kept: Sequence[Path], others: Sequence[Path]) -> list[Path]:
    """Delete our two folders with what is in them, and `others`; return what stays.

    What is in use or in `kept` stays, with its folder. Raises FILE_IO_ERROR.
    """
    folders = (temporary_folder(), state_folder())
    staying = []
    for entry in [each for folder in folders for each in os.scandir(folder)]:
        path = Path(entry.path)
        with file_errors(path), suppress(FileNotFoundError):  # another process sweeps as well
            if any(path in (each, *each.parents) for each in kept) or not _delete_unused(entry):
                staying.append(path)
    for path in others:
        try:
            path.unlink(missing_ok=True)
        except OSError:  # another user's, perhaps
            staying.append(path)
    for folder in folders:
        with suppress(OSError):  # something stays in it
            folder.rmdir()
    return staying


def move_into_place(source: Path, target: Path) -> None:
    """Put a finished file where it was asked for. Raises FILE_IO_ERROR; `source` is gone in either case."""
    move_all_into_place([source], [target])


def move_all_into_place(sources: Sequence[Path], targets: Sequence[Path]) -> None:
    """Put finished files where they were asked for, all or none. Raises FILE_IO_ERROR; the sources are gone
    in either case.

    First each goes beside its target: a full disk must not cost the file that is there. Then all are renamed.
    """
    staged = [target.with_name(f".peekaboo_{os.urandom(6).hex()}") for target in targets]
    try:
        for source, beside, target in zip(sources, staged, targets):
            with file_errors(target):
                shutil.move(source, beside)
        for beside, target in zip(staged, targets):
            with file_errors(target):
                os.replace(beside, target)
    finally:
        for leftover in (*sources, *staged):
            with suppress(OSError):
                leftover.unlink()


def write_privately(path: Path, content: Union[str, bytes]) -> None:
    """Put `content` into `path` (0600); a reader sees the old file or the new one. Raises FILE_IO_ERROR."""
    fresh = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
            f.write(content if isinstance(content, bytes) else encodable(content).encode("utf-8"))
        os.replace(fresh, path)
    except OSError as e:
        with suppress(OSError):
            fresh.unlink()
        raise file_error(path, e) from e


_LOCK_POLL_S = 0.02
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
                pause(_LOCK_POLL_S)
            except OSError as e:  # a file system without locks
                raise file_error(path, e) from e
        reset = _held_locks.set((*_held_locks.get(), descriptor))
        try:
            yield
        finally:
            _held_locks.reset(reset)

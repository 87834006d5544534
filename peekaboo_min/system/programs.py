"""Where a program is, identified by its version output; its Debian package."""

from __future__ import annotations

import json
import os
import re
import stat
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

from ..core.cancellation import within_budget
from ..core.errors import ErrorCode, PeekabooError
from ..core.settings import search_path, settings
from .files import write_privately

# Mac programs by absolute path: an MCP host that the Finder started has a PATH without /usr/sbin.
_SYSTEM_FOLDERS = ("/usr/bin", "/usr/sbin", "/bin", "/sbin")
# Where Homebrew links programs, on Apple silicon and on Intel: no part of the PATH that launchd gives.
_HOMEBREW_FOLDERS = ("/opt/homebrew/bin", "/usr/local/bin")

_VERSION_TIMEOUT_S = 5.0
# Threads that need the same program run it once. Reentrant: an exit hook may interrupt its holder.
_lookup_lock = threading.RLock()

RunProgram = Callable[..., Any]
"""process.run_program: a parameter, because that module imports this one."""


class _Identity(NamedTuple):
    """How a program shows that it is the one meant: `flag` prints `pattern`, group 1 its version."""

    flag: str
    pattern: str
    package: str
    """Debian's."""
    other_names: tuple[str, ...] = ()
    folder: str = ""
    """The only folder in which it is looked for; "" for those of PATH."""


_IDENTITIES = {
    "convert": _Identity("-version", r"^Version: ImageMagick (\S+)", "imagemagick", ("magick",)),
    "gtk-launch": _Identity("--version", r"\A(\d+\.\d+\S*)$", "libgtk-3-bin"),
    "maim": _Identity("--version", r"\Av(\d+\.\d+\S*)$", "maim"),
    # the system's own: a virtual environment's has no gi. What follows -c in the same argument is the code
    "python3": _Identity(
        "-Icimport gi; gi.require_version('Atspi', '2.0'); print('gi', gi.__version__)",
        r"^(gi \d\S*)",
        "python3-gi gir1.2-atspi-2.0 at-spi2-core",
        folder="/usr/bin",
    ),
    "tesseract": _Identity("--version", r"^tesseract v?(\d\S*)", "tesseract-ocr"),
    "xclip": _Identity("-version", r"^xclip version (\S+)", "xclip"),
    "xdg-mime": _Identity("--version", r"^xdg-mime (\d\S*)", "xdg-utils"),
    "xdotool": _Identity("--version", r"^xdotool version (\S+)", "xdotool"),
}
PACKAGES = {name: identity.package for name, identity in _IDENTITIES.items()}
_NO_VERSION = "(version unknown)"


class FoundProgram(NamedTuple):
    """The outcome of looking for a program along PATH."""

    path: Optional[str]
    """None when it is not there."""
    version: str = ""
    """As it printed it; empty for a program that is not in the table."""
    namesakes: tuple[str, ...] = ()
    """Other programs of that name, or broken ones, that were found before `path`."""

    def namesakes_text(self, prefix: str = "") -> str:
        """A sentence about the namesakes, after `prefix`; '' where there are none."""
        if not self.namesakes:
            return ""
        verb = "is another program" if len(self.namesakes) == 1 else "are other programs"
        return f"{prefix}{' and '.join(self.namesakes)} {verb} of that name, or broken"


def find_program(name: str) -> Optional[str]:
    """The first program of this name, or None. With PEEKABOO_BIN_DIR only that folder is searched."""
    return next((path for path, _ in _files_named(name)), None)


def look_for_program(name: str, run: RunProgram, afresh: bool = False) -> FoundProgram:
    """Where the program meant by `name` is: another program of that name is passed over.

    A file is run once for its version, which is cached by path, size and time; afresh: run it again.
    """
    identity = _IDENTITIES.get(name)
    if identity is None:
        return FoundProgram(find_program(name))
    namesakes: list[str] = []
    has_cached_namesake = False
    names = (name, *identity.other_names)
    for path, status in (found for each in names for found in _files_named(each, identity.folder)):
        with _lookup_lock:
            version = None if afresh else _cached_version(path, status)
            if version is None:
                version = _version(path, identity, run)
                _store_version(path, status, version)
            elif not version:
                has_cached_namesake = True
        if version:
            return FoundProgram(path, version, tuple(namesakes))
        namesakes.append(path)
    if has_cached_namesake:
        # it may work now: what it needs may have been missing, or the machine too busy
        return look_for_program(name, run, afresh=True)
    return FoundProgram(None, "", tuple(namesakes))


def program_path(name: str, run: RunProgram) -> str:
    """The path of a program; a path is taken as it is. Raises MISSING_PROGRAM with what to install."""
    found = look_for_program(name, run)
    if found.path is None:
        package = PACKAGES.get(os.path.basename(name))
        hint = f"install it: sudo apt-get install {package}" if package else "install it, or put it on PATH"
        message = f"the program {name} is not installed{found.namesakes_text(': ')}"
        raise PeekabooError(ErrorCode.MISSING_PROGRAM, message, hint=hint)
    return found.path


def _files_named(name: str, folder: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """The programs of this name, in the order of PATH."""
    folders = [folder] if folder else [*search_path(), *_SYSTEM_FOLDERS, *_HOMEBREW_FOLDERS]
    if settings().bin_dir:
        folders = [settings().bin_dir]
    if os.sep in name:
        folders, name = [os.path.dirname(name)], os.path.basename(name)
    seen = set()  # /bin may be /usr/bin
    for folder in folders:
        path = os.path.join(os.path.abspath(folder), name)
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            continue
        file_id = (status.st_dev, status.st_ino)
        if file_id not in seen and stat.S_ISREG(status.st_mode) and os.access(path, os.X_OK):
            seen.add(file_id)
            yield path, status


def _version(path: str, identity: _Identity, run: RunProgram) -> str:
    """The version that the program prints; '' for another program, and for one that fails or hangs."""
    try:
        # no display, so that none can keep it waiting
        environment = {"DISPLAY": ""}
        done = run([path, identity.flag], timeout_s=_VERSION_TIMEOUT_S, accept=None, environment=environment)
    except PeekabooError as e:
        if e.code is ErrorCode.CANCELLED:
            raise
        within_budget(_VERSION_TIMEOUT_S)  # raises when it was the call's own time that ran out
        return ""
    match = re.search(identity.pattern, f"{done.text}{done.stderr}", re.MULTILINE)
    return (match[1] or _NO_VERSION) if match else ""


def _cache_file() -> Path:
    """path -> [size, time, version], '' for another program."""
    return settings().xdg_state_folder / "programs.json"  # all programs of the table are an X11 desktop's


def _read_cache_file() -> dict[str, Any]:
    try:
        with open(_cache_file(), encoding="utf-8") as f:
            versions = json.load(f)
    except (OSError, ValueError, RecursionError, PeekabooError):
        return {}  # none yet, damaged, or no home folder: every program is run again
    return versions if isinstance(versions, dict) else {}


_cache = lru_cache(maxsize=1)(_read_cache_file)


def _cached_version(path: str, status: os.stat_result) -> Optional[str]:
    """The version of an unchanged program, '' for another program; None for one that is not cached."""
    known = _cache().get(path)
    if isinstance(known, list) and known[:2] == [status.st_size, status.st_mtime_ns]:
        return known[2] if len(known) == 3 and isinstance(known[2], str) else None
    return None


def _store_version(path: str, status: os.stat_result, version: str) -> None:
    _cache()[path] = [status.st_size, status.st_mtime_ns, version]
    with suppress(PeekabooError):  # then it is cached in this process alone
        write_privately(_cache_file(), json.dumps({**_read_cache_file(), path: _cache()[path]}))

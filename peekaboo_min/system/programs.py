"""Where programs and their packages are, our own command and its sources."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Any, Optional

from ..core.errors import ErrorCode, PeekabooError
from ..core.settings import child_environment, settings

# Mac programs by absolute path: an MCP host that the Finder started has a PATH without /usr/sbin. Homebrew's
# folders, on Apple silicon and on Intel, are no part of the PATH that launchd gives.
_FOLDERS = ("/usr/bin", "/usr/sbin", "/bin", "/sbin", "/opt/homebrew/bin", "/usr/local/bin")
_PACKAGE = Path(__file__).parent.parent

PACKAGES = {
    "convert": "imagemagick",
    "gtk-launch": "libgtk-3-bin",
    "maim": "maim",
    "python3": "python3-gi gir1.2-atspi-2.0 at-spi2-core",
    "tesseract": "tesseract-ocr",
    "xclip": "xclip",
    "xdg-mime": "xdg-utils",
    "xdotool": "xdotool",
}
"""Debian's packages of the programs that an X11 desktop needs."""


def find_programs(name: str) -> Iterator[str]:
    """The programs of this name, in order; a path is taken as it is.

    Searched are the absolute folders of PATH, the system's and Homebrew's; with PEEKABOO_BIN_DIR only that.
    """
    import shutil  # 2 ms that a listing does not need

    # absolute: nothing is executed because it lies in the working folder
    path = filter(os.path.isabs, child_environment().get("PATH", os.defpath).split(os.pathsep))
    folders = [settings().bin_dir] if settings().bin_dir else [*path, *_FOLDERS]
    if name == "python3" and not settings().bin_dir:  # the system's own: a virtual environment's has no gi
        folders = ["/usr/bin"]
    return filter(None, (shutil.which(name, path=folder) for folder in folders))


def missing_program(name: str, problem: str = "") -> PeekabooError:
    """MISSING_PROGRAM with what to install, to be raised."""
    package = PACKAGES.get(name)
    hint = f"install it: sudo apt-get install {package}" if package else "install it, or put it on PATH"
    return PeekabooError(ErrorCode.MISSING_PROGRAM, problem or f"the program {name} is not installed", hint)


def native_source(path: str) -> str:
    """The text of a file such as `desktop/macos/focus.js`; in the single file, too."""
    loader: Any = __spec__.loader
    source: bytes = loader.get_data(str(_PACKAGE / path))
    return source.decode("utf-8")


def single_file() -> Optional[str]:
    """The path of the single file when that is what runs, None in the package."""
    return getattr(__spec__.loader, "single_file", None)


def own_command() -> list[str]:
    """argv of this program, in the form in which it runs, for any working folder and PYTHONPATH.

    By a path: `-m` puts the working folder first on sys.path, and so does `-c`, for which Python 3.13 itself
    imports `linecache` before the first statement runs.
    """
    return [sys.executable, single_file() or str(_PACKAGE.resolve() / "__main__.py")]


def how_to_install() -> str:
    """What to do where this Python cannot serve MCP. Debian's own pip refuses to install."""
    by_pip = "python3 -m venv .venv && .venv/bin/pip install"
    file = single_file()
    if file:
        return f"start it by `uv run {quote(file)}`, or by a Python that has it: {by_pip} 'mcp>=2,<3'"
    parent = _PACKAGE.resolve().parent
    what = quote(str(parent)) if (parent / "pyproject.toml").is_file() else "peekaboo-min"
    return f"install it by `uv tool install {what}`, or: {by_pip} {what}, then start .venv/bin/peekaboo-min"

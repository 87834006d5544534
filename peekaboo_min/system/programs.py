"""Paths of programs, their Debian packages, our own command and sources."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Any, Optional

from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.settings import child_environment, settings

# An MCP host that the Finder started has a PATH without /usr/sbin and without Homebrew's folders (on Apple
# silicon and on Intel).
_FOLDERS = ("/usr/bin", "/usr/sbin", "/bin", "/sbin", "/opt/homebrew/bin", "/usr/local/bin")
_PACKAGE = Path(__file__).parent.parent

PACKAGES = {  # program -> its Debian packages
    "Xephyr": "xserver-xephyr", "Xvfb": "xvfb", "convert": "imagemagick", "dbus-daemon": "dbus-daemon",
    "gtk-launch": "libgtk-3-bin", "maim": "maim", "openbox": "openbox",
    "python3": "python3-gi gir1.2-atspi-2.0 at-spi2-core", "tesseract": "tesseract-ocr", "xclip": "xclip",
    "xcompmgr": "xcompmgr", "xdg-mime": "xdg-utils", "xdotool": "xdotool",
}  # fmt: skip


def find_programs(name: str) -> Iterator[str]:
    """Yield a program's paths, from PATH, the system's folders and Homebrew's; yield a path unchanged."""
    import shutil  # takes 2 ms; a listing does not need it

    path = child_environment()["PATH"].split(os.pathsep)
    folders = [settings().bin_dir] if settings().bin_dir else [*path, *_FOLDERS]
    if name == "python3" and not settings().bin_dir:  # a virtual environment's python3 has no gi
        folders = ["/usr/bin"]
    return filter(None, (shutil.which(name, path=folder) for folder in folders))


def missing_program(name: str, problem: str = "") -> PeekabooError:
    """Return the error MISSING_PROGRAM, which names the package to install."""
    package = PACKAGES.get(name)
    hint = f"install it: sudo apt-get install {package}" if package else "install it, or put it on PATH"
    return PeekabooError(ErrorCode.MISSING_PROGRAM, problem or f"the program {name} is not installed", hint)


def native_source(path: str) -> str:
    """Return the text of a file such as `desktop/macos/focus.js`, from the package or the single file."""
    loader: Any = __spec__.loader
    source: bytes = loader.get_data(str(_PACKAGE / path))
    return source.decode("utf-8")


def single_file() -> Optional[str]:
    """Return the path of the single file, or None if the package runs."""
    return getattr(__spec__.loader, "single_file", None)


def own_command() -> list[str]:
    """Return the argv that starts this program in its present form, in any working folder."""
    # `-m` and `-c` put the working folder first on sys.path; with `-c`, Python 3.13 imports linecache first
    return [sys.executable, single_file() or str(_PACKAGE.resolve() / "__main__.py")]


def mcp_version() -> str:
    """Return the version of the package mcp. Raises INVALID_ARGUMENT unless it is 2.x."""
    from importlib import metadata  # 15 ms that only few commands need

    try:
        version = metadata.version("mcp")
    except metadata.PackageNotFoundError:
        version = ""
    if not version.startswith("2."):
        need = "the package mcp 2" + (" and Python 3.10 or newer" if sys.version_info < (3, 10) else "")
        installed = f"mcp {version}" if version else "none"
        raise invalid(f"MCP needs {need}; {sys.executable} has {installed}", _how_to_install())
    return version


def _how_to_install() -> str:
    # Debian's own pip refuses to install outside a virtual environment
    by_pip = "python3 -m venv .venv && .venv/bin/pip install"
    file = single_file()
    if file:
        return f"start it by `uv run {quote(file)}`, or by a Python that has it: {by_pip} 'mcp>=2,<3'"
    parent = _PACKAGE.resolve().parent
    what = quote(str(parent)) if (parent / "pyproject.toml").is_file() else "peekaboo-min"
    return f"install it by `uv tool install {what}`, or: {by_pip} {what}, then start .venv/bin/peekaboo-min"

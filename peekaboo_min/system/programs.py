"""Where a program is, and its Debian package."""

from __future__ import annotations

import os
import shutil
from typing import Any, Callable, Optional

from ..core.cancellation import within_budget
from ..core.errors import ErrorCode, PeekabooError
from ..core.settings import search_path, settings

# Mac programs by absolute path: an MCP host that the Finder started has a PATH without /usr/sbin.
_SYSTEM_FOLDERS = ("/usr/bin", "/usr/sbin", "/bin", "/sbin")
# Where Homebrew links programs, on Apple silicon and on Intel: no part of the PATH that launchd gives.
_HOMEBREW_FOLDERS = ("/opt/homebrew/bin", "/usr/local/bin")
# The only folder of a program. The system's own Python: a virtual environment's has no gi.
_ONLY_FOLDERS = {"python3": "/usr/bin"}

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

_VERSION_TIMEOUT_S = 5.0
_image_magick: set[str] = set()  # paths of programs that said so

RunProgram = Callable[..., Any]
"""process.run_program: a parameter, because that module imports this one."""


def find_program(name: str) -> Optional[str]:
    """The first program of this name, or None; a path is taken as it is.

    Searched are the absolute folders of PATH, the system's and Homebrew's; with PEEKABOO_BIN_DIR only that.
    """
    return shutil.which(name, path=os.pathsep.join(_folders(name)))


def program_path(name: str, run: RunProgram) -> str:
    """The path of a program; a path is taken as it is. Raises MISSING_PROGRAM with what to install."""
    path = _find_image_magick(run) if name == "convert" else find_program(name)
    if path is None:
        package = PACKAGES.get(name)
        hint = f"install it: sudo apt-get install {package}" if package else "install it, or put it on PATH"
        raise PeekabooError(ErrorCode.MISSING_PROGRAM, f"the program {name} is not installed", hint=hint)
    return path


def _folders(name: str) -> list[str]:
    if settings().bin_dir:
        return [settings().bin_dir]
    if name in _ONLY_FOLDERS:
        return [_ONLY_FOLDERS[name]]
    return [*search_path(), *_SYSTEM_FOLDERS, *_HOMEBREW_FOLDERS]


def _find_image_magick(run: RunProgram) -> Optional[str]:
    """The first `convert`, else `magick`, that is ImageMagick's: other programs have the name, too."""
    paths = (shutil.which(name, path=folder) for name in ("convert", "magick") for folder in _folders(name))
    return next((path for path in paths if path and _is_image_magick(path, run)), None)


def _is_image_magick(path: str, run: RunProgram) -> bool:
    if path in _image_magick:
        return True
    try:
        # no display, so that none can keep it waiting
        argv, environment = [path, "-version"], {"DISPLAY": ""}
        answer = run(argv, timeout_s=_VERSION_TIMEOUT_S, accept=None, environment=environment).text
    except PeekabooError as e:
        if e.code is ErrorCode.CANCELLED:
            raise
        within_budget(_VERSION_TIMEOUT_S)  # raises when it was the call's own time that ran out
        return False
    if not answer.startswith("Version: ImageMagick "):
        return False
    _image_magick.add(path)
    return True

"""Where a program is, and what to install when it is missing."""

from __future__ import annotations

import os
from typing import Optional

from .errors import ErrorCode, PeekabooError
from .settings import search_path, settings

# Mac programs by absolute path: an MCP host that the Finder started has a PATH without /usr/sbin.
_SYSTEM_FOLDERS = ("/usr/bin", "/usr/sbin", "/bin", "/sbin")

# What to install for a program that is missing (Debian's package names).
PACKAGES = {
    "xwininfo": "x11-utils",
    "xprop": "x11-utils",
    "xdpyinfo": "x11-utils",
    "maim": "maim",
    "xdotool": "xdotool",
    "xclip": "xclip",
    "convert": "imagemagick",
    "tesseract": "tesseract-ocr",
}


def find_program(name: str) -> Optional[str]:
    """The path of a program, or None. PEEKABOO_BIN_DIR, when set, is the only place that is searched."""
    folders = [settings().bin_dir] if settings().bin_dir else [*search_path(), *_SYSTEM_FOLDERS]
    if os.sep in name:
        folders, name = [os.path.dirname(name)], os.path.basename(name)
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def program_path(name: str) -> str:
    """The path of a program. Raises MISSING_PROGRAM with what to install."""
    path = find_program(name)
    if path is None:
        package = PACKAGES.get(os.path.basename(name))
        hint = f"install it: sudo apt-get install {package}" if package else "install it, or put it on PATH"
        raise PeekabooError(ErrorCode.MISSING_PROGRAM, f"the program {name} is not on this machine", hint=hint)
    return path

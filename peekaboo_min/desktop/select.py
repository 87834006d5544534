"""Which Desktop this machine has, and where our state lives on it."""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path

from ..core.errors import ErrorCode, PeekabooError
from ..core.settings import settings
from ..system.images import file_error
from .base import Desktop


def platform_name() -> str:
    """`macos` or `x11`: PEEKABOO_DESKTOP, else what this machine is. Raises INVALID_ARGUMENT for another word."""
    asked = settings().desktop.lower()
    if asked not in ("", "macos", "x11"):
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, f"PEEKABOO_DESKTOP is {asked[:40]!r}", hint="set it to macos or x11"
        )
    return asked or ("macos" if sys.platform == "darwin" else "x11")


@lru_cache(maxsize=1)
def this_desktop() -> Desktop:
    """The desktop in front of us."""
    # one of the two, not both: each has ten rooms behind it
    if platform_name() == "macos":
        from .macos.backend import MacDesktop

        return MacDesktop()
    from .x11.backend import X11Desktop

    return X11Desktop()


def state_folder() -> Path:
    """Our folder for what must outlive a process, ours alone. Raises FILE_IO_ERROR."""
    folder = settings().mac_state_folder if platform_name() == "macos" else settings().xdg_state_folder
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as e:
        raise file_error(folder, e) from e
    return folder

"""Which Desktop this machine has."""

from __future__ import annotations

from ..core.settings import platform_name
from .base import Desktop


def this_desktop() -> Desktop:
    """The desktop of this machine, by its platform."""
    # one of the two, not both: each imports ten modules
    if platform_name() == "macos":
        from .macos.backend import MacDesktop

        return MacDesktop()
    from .x11.backend import X11Desktop

    return X11Desktop()

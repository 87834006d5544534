"""Select the Desktop for this machine."""

from __future__ import annotations

from ..core.settings import platform_name
from .base import Desktop


def this_desktop() -> Desktop:
    """Return the Desktop for this machine's platform."""
    # each of the two imports ten modules: import only the one in use
    if platform_name() == "macos":
        from .macos.backend import MacDesktop

        return MacDesktop()
    from .x11.backend import X11Desktop

    return X11Desktop()

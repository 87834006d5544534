"""Select the Desktop for this machine."""

from __future__ import annotations

from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Callable, cast

from ..core.settings import platform_name
from .base import Desktop

_is_only_checking = ContextVar("is_only_checking", default=False)


class _FirstUse(Exception):
    pass


class _UnusableDesktop:
    def __getattr__(self, name: str) -> Any:
        raise _FirstUse


def check_arguments(tool: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Run only a tool's checks of its arguments: call it, and end the call when it first uses the desktop."""
    reset = _is_only_checking.set(True)
    try:
        with suppress(_FirstUse):
            tool(**arguments)
    finally:
        _is_only_checking.reset(reset)


def this_desktop() -> Desktop:
    """Return the Desktop for this machine's platform."""
    if _is_only_checking.get():
        return cast(Desktop, _UnusableDesktop())
    # each of the two imports ten modules: import only the one in use
    if platform_name() == "macos":
        from .macos.backend import MacDesktop

        return MacDesktop()
    from .x11.backend import X11Desktop

    return X11Desktop()

"""Select the Desktop for this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, cast

from ..core.settings import platform_name
from .base import Desktop


class _ArgumentsAreValid(Exception):
    pass


class _NoDesktop:
    def __getattr__(self, name: str) -> Any:
        raise _ArgumentsAreValid


_only_checks = ContextVar("only_checks", default=False)


@contextmanager
def only_checking_arguments() -> Iterator[None]:
    """Run the block only up to its first use of the desktop; by then a tool has checked its arguments.

    The block raises what these checks raise, and nothing else.
    """
    reset = _only_checks.set(True)
    try:
        with suppress(_ArgumentsAreValid):
            yield
    finally:
        _only_checks.reset(reset)


def this_desktop() -> Desktop:
    """Return the Desktop for this machine's platform."""
    if _only_checks.get():
        return cast(Desktop, _NoDesktop())
    # each of the two imports ten modules: import only the one in use
    if platform_name() == "macos":
        from .macos.backend import MacDesktop

        return MacDesktop()
    from .x11.backend import X11Desktop

    return X11Desktop()

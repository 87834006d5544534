"""The end of this process: signals, and what is still to be done then."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from typing import Callable, Optional

from ..core.log import log_error, log_info

starting: set[int] = set()
"""The threads that are about to start a program: a signal is handled when it can be killed."""
exit_hooks: list[Callable[[], None]] = []
"""Called in this order before we end; the first kills all programs, once one can have been started."""
_exit_codes: dict[int, int] = {}
_signals: list[int] = []  # those received that end us


def end_cleanly_on_signals(exit_codes: Optional[Mapping[int, int]] = None) -> None:
    """From now on SIGTERM, SIGINT and SIGHUP kill our children and end this process.

    Its exit code is 128 + the signal's number, or what `exit_codes` has for the signal.
    os._exit, because a thread that blocks on stdin or in a tool would keep an ordinary exit waiting.
    """
    _exit_codes.update(exit_codes or {})

    def on_signal(number: int, _frame: object) -> None:
        _signals.append(number)
        # a start in this very thread goes on when we return, and then exits
        if threading.get_ident() not in starting:
            exit_if_signalled()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, on_signal)


def exit_if_signalled() -> None:
    """End this process when a signal asked for that. A BaseException of an exit hook unwinds the stack."""
    if _signals:
        call_exit_hooks()
        log_info(f"ended by {signal.Signals(_signals[0]).name}")
        os._exit(_exit_codes.get(_signals[0], 128 + _signals[0]))


def call_exit_hooks() -> None:
    """At our end. No lock: a signal handler calls it."""
    for hook in list(exit_hooks):
        try:
            hook()
        except Exception as e:  # the next hook puts back something else
            log_error(f"at our end: {type(e).__name__}: {e}")

"""Signals and exit hooks: how this process ends."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from typing import Callable, Optional

from ..core.log import log_error, log_info

starting: set[int] = set()
"""Ids of the threads that are starting a program. A signal is not handled until its process can be killed."""
exit_hooks: list[Callable[[], None]] = []
"""Called in this order before this process ends. system.process puts its own first: it kills all programs."""
_exit_codes: dict[int, int] = {}
_signals: list[int] = []  # received signals that end this process


def end_cleanly_on_signals(exit_codes: Optional[Mapping[int, int]] = None) -> None:
    """Make SIGTERM, SIGINT and SIGHUP kill our children and end this process.

    The exit code is `exit_codes[signal]` if given, else 128 + the signal's number. The process ends with
    os._exit, because an ordinary exit would wait for threads that block on stdin or in a tool.
    """
    _exit_codes.update(exit_codes or {})

    def on_signal(number: int, _frame: object) -> None:
        _signals.append(number)
        # if this very thread is starting a program, it calls exit_if_signalled after the start
        if threading.get_ident() not in starting:
            exit_if_signalled()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, on_signal)


def exit_if_signalled() -> None:
    """End this process if it received such a signal; an exit hook may raise BaseException instead."""
    if _signals:
        call_exit_hooks()
        log_info(f"ended by {signal.Signals(_signals[0]).name}")
        os._exit(_exit_codes.get(_signals[0], 128 + _signals[0]))


def call_exit_hooks() -> None:
    """Call all exit hooks. Takes no lock, because a signal handler calls it."""
    for hook in list(exit_hooks):
        try:
            hook()
        except Exception as e:  # the remaining hooks restore other things
            log_error(f"an exit hook failed: {type(e).__name__}: {e}")

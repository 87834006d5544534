"""Signals, exit hooks and a supervisor: how this process ends."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Callable, Optional

from ..core.log import log_error, log_info

starting: set[int] = set()
"""Ids of the threads that are starting a program. A signal waits until that program can be killed."""
exit_hooks: list[Callable[[], None]] = []
"""Called in this order before this process ends. system.process puts its own first: it kills all programs."""
_TERM_S = 3.0  # from SIGTERM to SIGKILL, for the programs that a person's command has started
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
    """End this process if it received SIGTERM, SIGINT or SIGHUP.

    An exit hook may raise BaseException instead: the vision agent then writes its report.
    """
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


def continue_in_supervisor() -> int:
    """Fork a supervisor, and return only in it: a pipe that becomes readable when its parent ends.

    The parent waits for the supervisor and ends with its exit code. In both, `end_children` ends everything
    that the supervisor has started, even daemons.
    """
    import ctypes  # only a desktop of its own needs it

    reader, writer = os.pipe()
    supervisor = os.fork()
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: adopt our descendants' orphans
    if not supervisor:
        os.close(writer)
        os.setpgid(0, 0)  # a client may kill our whole process group
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        return reader

    def end_supervisor() -> None:
        with suppress(OSError):  # a second signal: it is already closed
            os.close(writer)
            os.waitpid(supervisor, 0)
        end_children()

    exit_hooks.append(end_supervisor)
    code = os.waitstatus_to_exitcode(os.waitpid(supervisor, 0)[1])
    end_children()
    os._exit(code if code >= 0 else 128 - code)


def end_children() -> None:
    """End our children and adopted orphans; SIGTERM first, because an X server then removes its socket."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        signalled: set[int] = set()
        deadline = time.monotonic() + _TERM_S
        while time.monotonic() < deadline:
            for pid in set(_children()) - signalled:
                signalled.add(pid)
                with suppress(OSError):  # it has just ended, or it is root's
                    os.kill(pid, number)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            time.sleep(0.01)


def _children() -> Iterator[int]:
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat", errors="replace") as f:
            # `pid (name) state parent ...`; a name may contain any character
            if int(f.read().rpartition(")")[2].split()[1]) == os.getpid():
                yield int(name)

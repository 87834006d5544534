"""One call: its cancel token, time budget, progress, waits and threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Callable, Optional, TypeVar

from .errors import ErrorCode, PeekabooError

_AT_ONCE = 4


class CancelToken(threading.Event):
    """An event that kills every program that runs under it, and ends everything that waits on it."""

    cancel = threading.Event.set


_TOKEN: ContextVar[Optional[CancelToken]] = ContextVar("cancel_token", default=None)
_DEADLINE: ContextVar[Optional[float]] = ContextVar("deadline", default=None)


def use_cancel_token(token: CancelToken) -> None:
    """From now on, in this context, programs and waits end when `token` is cancelled."""
    _TOKEN.set(token)


def check_cancelled() -> None:
    """Raises CANCELLED when the current call was cancelled."""
    token = _TOKEN.get()
    if token and token.is_set():
        raise PeekabooError(ErrorCode.CANCELLED, "the call was cancelled")


_REPORTER: ContextVar[Optional[Callable[[str], None]]] = ContextVar("progress_reporter", default=None)


def use_progress_reporter(reporter: Callable[[str], None]) -> None:
    """From now on, in this context, what jobs report goes to `reporter`, which any thread may call."""
    _REPORTER.set(reporter)


def report_progress(message: str) -> None:
    """What is being done now, for a client that waits; nobody may be listening."""
    reporter = _REPORTER.get()
    if reporter:
        reporter(message)


@contextmanager
def time_budget(seconds: float) -> Iterator[None]:
    """Everything that runs in this block shares `seconds`: a program gets no more than what is left."""
    reset = _DEADLINE.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _DEADLINE.reset(reset)


def within_budget(timeout_s: float) -> float:
    """`timeout_s`, or what is left of the time budget when that is less. Raises TIMEOUT for nothing."""
    deadline = _DEADLINE.get()
    if deadline is None:
        return timeout_s
    left = deadline - time.monotonic()
    if left <= 0:
        raise PeekabooError(ErrorCode.TIMEOUT, "the time for this call is used up", hint="allow it more time")
    return min(timeout_s, left)


def pause(seconds: float) -> None:
    """Sleep; a cancelled call wakes up at once, with CANCELLED."""
    token = _TOKEN.get()
    if token:
        token.wait(seconds)
        check_cancelled()
    else:
        time.sleep(seconds)


_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


def in_parallel(work: Callable[[_Item], _Answer], items: Sequence[_Item]) -> list[_Answer]:
    """work(item) for every item, four at a time at most, in order; the first exception is raised."""
    if len(items) < 2:
        return [work(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor  # 7 ms that a listing does not need

    # each thread gets the caller's context, and with it the cancel token
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        futures = [pool.submit(copy_context().run, work, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise


_IS_UNINTERRUPTED: ContextVar[bool] = ContextVar("is_uninterrupted", default=False)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """What runs in this block is neither cancelled nor out of time, and gets a moment when a signal ends us.

    For what restores what an act changed, and for keys: a program that is killed between the press and the
    release of a key leaves it pressed.
    """
    token, deadline, flag = _TOKEN.set(None), _DEADLINE.set(None), _IS_UNINTERRUPTED.set(True)
    try:
        yield
    finally:
        _IS_UNINTERRUPTED.reset(flag)
        _DEADLINE.reset(deadline)
        _TOKEN.reset(token)


def is_uninterrupted() -> bool:
    return _IS_UNINTERRUPTED.get()

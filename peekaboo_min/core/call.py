"""The current call: cancel token, time budget, progress, pauses, threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from typing import Callable, NamedTuple, Optional, TypeVar

from .errors import ErrorCode, PeekabooError

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


class _Call(NamedTuple):
    token: threading.Event = threading.Event()  # set to cancel the call
    deadline: float = float("inf")  # monotonic
    report: Optional[Callable[[str], None]] = None
    grace_s: float = 0.0  # see uninterrupted


_CALL = ContextVar("call", default=_Call())  # noqa: B039 - it is never changed in place


def use_cancel_token(token: threading.Event) -> None:
    """From now on, `token.set()` kills the programs and ends the pauses of this context."""
    _CALL.set(_CALL.get()._replace(token=token))


def use_progress_reporter(report: Callable[[str], None]) -> None:
    """Send the progress of this context to `report` from now on. Any thread may call it."""
    _CALL.set(_CALL.get()._replace(report=report))


@contextmanager
def _as_current(call: _Call) -> Iterator[None]:
    reset = _CALL.set(call)
    try:
        yield
    finally:
        _CALL.reset(reset)


def time_budget(seconds: float) -> AbstractContextManager[None]:
    """Limit all that runs in this block to `seconds` together, and to the rest of an outer budget."""
    call = _CALL.get()
    return _as_current(call._replace(deadline=min(call.deadline, time.monotonic() + seconds)))


def uninterrupted(grace_s: float = 1.0) -> AbstractContextManager[None]:
    """Run a block to its end, even if the call is cancelled or its time budget is used up.

    If a signal ends this process, programs of this block may run on for `grace_s` seconds. Use it to restore
    the user's state, and for keys: a program killed between press and release leaves a key pressed.
    """
    return _as_current(_Call(report=_CALL.get().report, grace_s=grace_s))


def grace_s() -> float:
    """Return how many seconds a program that starts now may still run after a signal that ends us."""
    return _CALL.get().grace_s


def check_cancelled() -> None:
    """Raise CANCELLED if the current call was cancelled."""
    if _CALL.get().token.is_set():
        raise PeekabooError(ErrorCode.CANCELLED, "the call was cancelled")


def report_progress(message: str) -> None:
    """Report the current work to the client, if it listens."""
    report = _CALL.get().report
    if report:
        report(message)


def within_budget(timeout_s: float) -> float:
    """Return `timeout_s`, or the rest of the time budget if less. Raises TIMEOUT if nothing is left."""
    timeout_s = min(timeout_s, _CALL.get().deadline - time.monotonic())
    if timeout_s <= 0:
        raise PeekabooError(ErrorCode.TIMEOUT, "the call timed out")
    return timeout_s


def pause(seconds: float) -> None:
    """Sleep. Raises CANCELLED as soon as the call is cancelled."""
    _CALL.get().token.wait(seconds)
    check_cancelled()


def in_parallel(work: Callable[[_Item], _Answer], items: Sequence[_Item]) -> list[_Answer]:
    """Call `work` for every item in threads; return the results in order. Raises the first exception."""
    if len(items) < 2:
        return [work(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor  # 7 ms that a listing does not need

    # each thread gets a copy of the caller's context, and with it the cancel token
    contexts = [copy_context() for _ in items]
    with ThreadPoolExecutor(4) as pool:  # two per core of a small machine: most of the work is waiting
        return list(pool.map(lambda context, item: context.run(work, item), contexts, items))

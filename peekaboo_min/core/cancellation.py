"""One call: its cancel token, time budget, progress, waits and threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, Callable, NamedTuple, Optional, TypeVar

from .errors import ErrorCode, PeekabooError

_AT_ONCE = 4
_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


class CancelToken(threading.Event):
    """An event that kills every program that runs under it, and ends everything that waits on it."""

    cancel = threading.Event.set


class _Call(NamedTuple):
    token: CancelToken = CancelToken()
    deadline: float = float("inf")
    report: Optional[Callable[[str], None]] = None
    grace_s: float = 0.0


_CALL = ContextVar("call", default=_Call())  # noqa: B039 - nobody changes it in place


def use_cancel_token(token: CancelToken) -> None:
    """From now on, in this context, programs and waits end when `token` is cancelled."""
    _CALL.set(_CALL.get()._replace(token=token))


def use_progress_reporter(report: Callable[[str], None]) -> None:
    """From now on, in this context, what jobs report goes to `report`, which any thread may call."""
    _CALL.set(_CALL.get()._replace(report=report))


@contextmanager
def _changed(**changes: Any) -> Iterator[None]:
    reset = _CALL.set(_CALL.get()._replace(**changes))
    try:
        yield
    finally:
        _CALL.reset(reset)


def time_budget(seconds: float) -> AbstractContextManager[None]:
    """Everything that runs in this block shares `seconds`: a program gets no more than what is left."""
    return _changed(deadline=time.monotonic() + seconds)


def uninterrupted(grace_s: float = 1.0) -> AbstractContextManager[None]:
    """What runs in this block is neither cancelled nor out of time, and gets `grace_s` when a signal ends us.

    For what restores what an act changed, and for keys: a program that is killed between the press and the
    release of a key leaves it pressed.
    """
    return _changed(token=CancelToken(), deadline=float("inf"), grace_s=grace_s)


def grace_s() -> float:
    """What a program that starts now gets when a signal ends us; 0: it may be killed at any time."""
    return _CALL.get().grace_s


def check_cancelled() -> None:
    """Raises CANCELLED when the current call was cancelled."""
    if _CALL.get().token.is_set():
        raise PeekabooError(ErrorCode.CANCELLED, "the call was cancelled")


def report_progress(message: str) -> None:
    """What is being done now, for a client that waits; nobody may be listening."""
    report = _CALL.get().report
    if report:
        report(message)


def within_budget(timeout_s: float) -> float:
    """`timeout_s`, or what is left of the time budget when that is less. Raises TIMEOUT for nothing."""
    timeout_s = min(timeout_s, _CALL.get().deadline - time.monotonic())
    if timeout_s <= 0:
        raise PeekabooError(ErrorCode.TIMEOUT, "the time for this call is used up", hint="allow it more time")
    return timeout_s


def pause(seconds: float) -> None:
    """Sleep; a cancelled call wakes up at once, with CANCELLED."""
    _CALL.get().token.wait(seconds)
    check_cancelled()


def in_parallel(work: Callable[[_Item], _Answer], items: Sequence[_Item]) -> list[_Answer]:
    """work(item) for every item, four at a time at most, in order; the first exception is raised."""
    if len(items) < 2:
        return [work(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor  # 7 ms that a listing does not need

    # each thread gets the caller's context, and with it the cancel token
    contexts = [copy_context() for _ in items]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda context, item: context.run(work, item), contexts, items))

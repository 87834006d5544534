"""The current call: cancelling, time budgets, progress, parallel work."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from contextvars import copy_context

import pytest
from samples import error_of

from peekaboo_min.core import call
from peekaboo_min.core.errors import PeekabooError


@pytest.mark.parametrize(
    ("budgets", "asked", "left"), [([], 5, 5), ([60], 5, 5), ([2], 5, 2), ([2, 60], 5, 2), ([60, 2], 5, 2)]
)
def test_time_budget_limits_a_timeout(budgets: list[float], asked: float, left: float) -> None:
    def work(budgets: list[float]) -> float:
        with call.time_budget(budgets[0]) if budgets else nullcontext():
            return work(budgets[1:]) if budgets else call.within_budget(asked)

    assert work(budgets) == pytest.approx(left, abs=0.5)
    assert call.within_budget(99) == 99, "the budget ends with its block"


@pytest.mark.parametrize(("budget", "asked"), [(0, 5), (-1, 5), (5, 0), (5, -1)])
def test_used_up_time_is_a_timeout(budget: float, asked: float) -> None:
    with pytest.raises(PeekabooError) as raised, call.time_budget(budget):
        call.within_budget(asked)
    assert call.within_budget(99) == 99, "the budget ends also with an error"
    assert raised.value.sentence() == "the call timed out; increase the timeout and try again"


def test_cancelled_call_ends_its_pauses_except_uninterrupted_ones() -> None:
    def work() -> None:
        token = threading.Event()
        call.use_cancel_token(token)
        call.use_progress_reporter(print)  # neither replaces the other
        call.check_cancelled()
        call.pause(0.0)
        token.set()
        codes = [error_of(call.pause, 600).code, error_of(call.check_cancelled).code]
        with call.time_budget(0), call.uninterrupted(2.5):
            call.pause(0.0)
            call.check_cancelled()
            assert (call.within_budget(5), call.grace_s()) == (5, 2.5)
        with call.uninterrupted():
            assert call.grace_s() == 1.0
        assert (codes, call.grace_s()) == (["CANCELLED"] * 2, 0.0)
        assert error_of(call.check_cancelled).code == "CANCELLED"

    copy_context().run(work)  # the test's own call stays as it is


def test_progress_is_reported_also_from_uninterrupted_blocks() -> None:
    messages: list[str] = []

    def work() -> None:
        call.report_progress("nobody listens")
        call.use_progress_reporter(messages.append)
        call.use_cancel_token(threading.Event())
        call.report_progress("one")
        with call.uninterrupted(), call.time_budget(9):
            call.report_progress("two")

    copy_context().run(work)  # the test's own call stays as it is
    assert messages == ["one", "two"]


def test_parallel_work_keeps_order_context_and_errors() -> None:
    started = threading.Barrier(4)

    def together(number: int) -> tuple[int, bool]:
        started.wait(60)
        return number * number, call.within_budget(99) < 50

    def alone(number: int) -> str:
        return f"{number} {threading.current_thread() is threading.main_thread()}"

    def fail(number: int) -> None:
        raise PeekabooError(call.ErrorCode.TIMEOUT, f"{number}")

    with call.time_budget(40):
        assert call.in_parallel(together, [3, 1, 2, 0]) == [(9, True), (1, True), (4, True), (0, True)]
    assert call.in_parallel(alone, [7]) == ["7 True"] and call.in_parallel(alone, []) == []
    assert call.in_parallel(alone, [7, 8]) == ["7 False", "8 False"]
    assert error_of(call.in_parallel, fail, [3, 1, 2]).message == "3"

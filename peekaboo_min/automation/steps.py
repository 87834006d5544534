"""Do several acts and waits in one call; stop at the first that fails."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional

from ..core.call import report_progress, time_budget
from ..core.errors import ErrorCode, PeekabooError
from ..core.models import Result
from ..desktop.base import Desktop
from .act import input_lock

OPENED = "opened"  # as a window_id: the newest window that an earlier step reported
MOST_STEPS = 20
LONGEST_S = 50.0  # clients end a call after 60 s
_LEAST_S = 2.0  # about what a click takes on a busy machine


class Step(NamedTuple):
    """One call of a tool with checked arguments; their `window_id` may be OPENED."""

    tool: str
    call: Callable[[dict[str, Any]], Result]
    arguments: dict[str, Any]

    @property
    def uses_opened(self) -> bool:
        return bool(self.arguments.get("window_id") == OPENED)


def perform_steps(
    desktop: Desktop, steps: Sequence[Step], look: Optional[Callable[[int], Result]] = None
) -> Result:
    """Do the steps in order, with the input lock held; return the outcome of each, also if one fails.

    Stops at the first error, at the first act that is not known to be delivered, and after LONGEST_S.
    look: takes the screenshot of a window, for one image of the last window that still exists.
    """
    rows: list[dict[str, Any]] = []
    summaries: list[str] = []
    window_ids: list[Optional[int]] = []  # of the steps, newest last
    opened: Optional[int] = None
    failure = None
    start = time.monotonic()
    with input_lock(desktop.session):
        with time_budget(LONGEST_S):
            for number, step in enumerate(steps, 1):
                report_progress(f"step {number} of {len(steps)}: {step.tool}")
                try:
                    if time.monotonic() - start > LONGEST_S - _LEAST_S:
                        message = f"the {LONGEST_S:g} s of one call are used up"
                        raise PeekabooError(ErrorCode.TIMEOUT, message, "call again with the other steps")
                    arguments = _arguments(step, opened)
                    window_ids.append(arguments.get("window_id"))
                    result = step.call(arguments)
                    window_ids.append(new := _opened_by(step, result.data))
                    opened = new or opened
                    rows.append(_row(step, result.data))
                    summaries.append(result.summary)
                    if rows[-1]["outcome"] == "done":
                        continue
                    failure = PeekabooError(ErrorCode.NOT_DELIVERED, result.summary)
                except PeekabooError as e:
                    if e.code is ErrorCode.CANCELLED:
                        raise
                    rows.append({"tool": step.tool, "outcome": "failed", "error": e.code_name})
                    failure = e
                failure.message = f"step {number} of {len(steps)}, {step.tool}: {failure.message}"
                break
        picture = _picture(look, [known for known in window_ids if known]) if look else Result("")
    done = sum(row["outcome"] == "done" for row in rows)
    rows += [{"tool": step.tool, "outcome": "not reached"} for step in steps[len(rows) :]]
    texts = [*summaries, *(row["outcome"] for row in rows[len(summaries) :])]
    lines = [f"{number} {row['tool']}: {text}" for number, (row, text) in enumerate(zip(rows, texts), 1)]
    data = {"steps": rows, **({"screenshot": picture.data} if picture.data else {})}
    text = "\n".join([f"{done} of {len(steps)} steps done", *lines])
    return Result(text, data, picture.images, picture.messages, failure)


def _arguments(step: Step, opened: Optional[int]) -> dict[str, Any]:
    if not step.uses_opened:
        return step.arguments
    if opened is None:
        hint = "put wait_for with the new window's title before this step"
        raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, "no earlier step reported a new window", hint)
    return {**step.arguments, "window_id": opened}


def _opened_by(step: Step, data: dict[str, Any]) -> Optional[int]:
    is_search = step.tool == "wait_for" and "window_id" not in step.arguments
    return (data if is_search else data.get("new_window", {})).get("window_id")


def _row(step: Step, data: dict[str, Any]) -> dict[str, Any]:
    outcome = {True: "done", False: "not delivered", None: "unknown"}[data.get("delivered", True)]
    stated = {name: value for name, value in data.items() if value or type(value) in (int, float)}
    stated.pop("delivered", None)
    return {"tool": step.tool, "outcome": outcome, **stated}


def _picture(look: Callable[[int], Result], window_ids: Sequence[int]) -> Result:
    for window_id in dict.fromkeys(reversed(window_ids)):
        try:
            return look(window_id)
        except PeekabooError as e:
            problem = e.message
            if e.code is not ErrorCode.WINDOW_NOT_FOUND:
                break
    return Result("", messages=(f"no screenshot was taken: {problem}",) if window_ids else ())

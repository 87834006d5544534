"""The vision agent's loop: look, decide, act, verify; with its limits."""

from __future__ import annotations

import math
import sys
import time
from contextlib import suppress
from typing import Any, Optional

from ..ai.client import ModelChoice
from ..ai.grid import ASSUMED, describe_unit
from ..automation.policy import check_may_act
from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError
from ..core.models import App, Point
from ..core.text import clean_text
from ..desktop.select import this_desktop
from .actions import Action
from .mcp_client import McpClient
from .planner import Planner, out_of_time
from .run import AgentRun, AgentStep, AgentStop, new_run_folder, save_step
from .target import NOTHING_CHANGED, AgentTarget

_WAIT_S = 1.0
_MAX_NOOPS = 2
_MAX_REFUSALS = 3
_REPEATS_TO_REPORT = 3
_REPEATS_TO_STOP = 5
_SAME_PLACE_PX = 8.0


class AgentLoop:
    """One run in progress."""

    def __init__(self, run: AgentRun, choice: ModelChoice, server: McpClient) -> None:
        self._task = run.task
        self._run = run
        self._target = AgentTarget(server)
        self._planner = Planner(run.task.goal, choice, run.task.confidence is not None)
        self._deadline = time.monotonic() + run.task.max_seconds
        self._owner: Optional[App] = None
        self._noops = 0
        self._refusals = 0
        run.system_prompt = self._planner.system_prompt
        run.grid = describe_unit(choice.model)

    def work(self) -> None:
        """Run until the run has its status.

        Raises AgentStop, or another PeekabooError, when the goal is not reached.
        """
        self._owner = self._target.choose(list(this_desktop().snapshot().apps), self._task)
        self._check_may_continue()
        self._run.folder = new_run_folder(self._task.run_folder)
        if ASSUMED in self._run.grid:
            print(f"{self._run.model_used}: {ASSUMED}", file=sys.stderr, flush=True)
        try:
            self._run.status = self._take_steps()
        except PeekabooError:
            self._look_at_the_end()
            raise
        self._look_at_the_end()

    def _take_steps(self) -> str:
        """Step by step to the run's status. Raises AgentStop, and what a step raises."""
        for number in range(1, self._task.max_steps + 1):
            self._check_may_continue()
            step = AgentStep(number)
            self._run.steps.append(step)
            started = time.monotonic()
            try:
                status = self._take(step)
            except PeekabooError as e:
                step.effect = step.effect or e.message
                raise
            finally:
                step.milliseconds = round((time.monotonic() - started) * 1000)
                save_step(self._run, step)
                _show_progress(step)
            if status:
                return status
        message = f"the goal was not reached in {self._task.max_steps} step(s)"
        raise AgentStop("limit", ErrorCode.TIMEOUT, message, "see the report, then raise --max-steps")

    def _look_at_the_end(self) -> None:
        """Take a screenshot of what the last action led to, for the report. A closed window is no failure."""
        last = self._run.steps[-1].action if self._run.steps else None
        if last and last.is_act and not self._task.dry_run:
            end = AgentStep(0)
            with suppress(PeekabooError):
                self._target.observe(end)
            self._run.final_image = end.image

    def _check_may_continue(self) -> None:
        if not self._task.dry_run and self._owner:
            check_may_act("agent", self._owner.name, self._owner.bundle_id)
        if time.monotonic() >= self._deadline:
            raise out_of_time()

    def _take(self, step: AgentStep) -> str:
        """One step. Returns the run's status when it ends with this step, else an empty text."""
        if step.number == 1 and not self._task.dry_run:
            self._target.focus()
        self._target.observe(step)
        before = self._run.steps[:-1]
        history = [each.history_line for each in before]
        steps_left = self._task.max_steps - step.number + 1
        action = self._planner.decide(step, history, facts(before), steps_left, self._deadline)
        step.action = action
        step.pixel, step.end_pixel = step.pixel_of(action.place), step.pixel_of(action.end)
        self._check_confidence(step, action)
        if action.kind == "done":
            doubt = doubt_about(before)
            if doubt and has_reported(before):
                message = f"not confirmed: the model reports that the goal is reached, but {doubt}"
                hint = "look at the last screenshot in the report"
                raise AgentStop("not_confirmed", ErrorCode.AI_PROVIDER_ERROR, message, hint)
            self._run.message = "" if doubt else "the model reports that the goal is reached"
            step.effect = f"asked again: {doubt}" if doubt else self._run.message
            return "" if doubt else "done"
        self._noops = self._noops + 1 if action.kind == "noop" else 0
        if self._noops >= _MAX_NOOPS:
            raise _unsure("the model does not know what to do")
        if not action.is_act:
            self._wait(step, action)
            return ""
        if action.kind == "scroll" and step.pixel is None and step.image:
            step.pixel = Point(step.image.info.width // 2, step.image.info.height // 2)
        if self._task.dry_run:
            step.effect = "not done: this is a dry run"
            self._run.message = f"dry run: the model would {step.describe_action()}"
            return "dry_run"
        if self._task.confirm:
            self._ask_person(step)
        return self._act(step)

    def _check_confidence(self, step: AgentStep, action: Action) -> None:
        least = self._task.confidence
        if least is not None and action.confidence is not None and action.confidence < least:
            what = step.describe_action(shows_text=False)
            raise _unsure(
                f"the model is not sure enough of `{what}`: {action.confidence:g} is below {least:g}"
            )

    def _wait(self, step: AgentStep, action: Action) -> None:
        """Wait for a text, or for a while. After a noop, too: the model then gets a new screenshot."""
        left_s = max(0.0, self._deadline - time.monotonic())
        step.effect = "looked again"
        text, seconds = action.values.get("text"), action.values.get("seconds")
        if text and self._target.window and not self._task.dry_run:
            step.effect = self._target.wait_for(text, seconds, left_s)
        else:
            pause(min(_WAIT_S if seconds is None else seconds, left_s))
        self._target.follow()

    def _ask_person(self, step: AgentStep) -> None:
        """y or n on the terminal. The time it takes does not count."""
        started = time.monotonic()
        where = f"{step.window.title!r} of {step.window.app_name}" if step.window else ""
        why = step.action.why if step.action else ""
        question = clean_text(f"{step.describe_action()} in {where} ({why})", 900)
        print(f"{question}? [y/n] ", end="", file=sys.stderr, flush=True)
        is_allowed = sys.stdin.readline().strip().lower() in ("y", "yes")
        self._deadline += time.monotonic() - started
        if not is_allowed:
            raise AgentStop("declined", ErrorCode.CANCELLED, "the action was declined; nothing more was done")

    def _act(self, step: AgentStep) -> str:
        """Act and verify; then see which window is in front. Three refusals in a row end the run."""
        self._target.act(step)
        self._target.follow()
        now = self._target.window
        is_opened = step.action is not None and step.action.kind == "open"
        if not is_opened and (now is None or (step.window and now.window_id != step.window.window_id)):
            where = f"its window {now.title!r} is in front now" if now else "the app shows no window now"
            step.effect = where if step.effect == NOTHING_CHANGED else f"{step.effect}; {where}"
            step.changed, step.changed_rect = True, None
        self._refusals = self._refusals + 1 if step.refusal else 0
        if self._refusals >= _MAX_REFUSALS:
            message = f"{_MAX_REFUSALS} actions in a row were refused; {step.effect}"
            raise AgentStop("failed", ErrorCode(step.refusal), message)
        if repeats(self._run.steps) >= _REPEATS_TO_STOP:
            what = step.describe_action(shows_text=False)
            message = f"the same action had no effect {_REPEATS_TO_STOP} times: {what}"
            hint = "see the report; choose a stronger model, or state the goal more clearly"
            raise AgentStop("stuck", ErrorCode.AI_PROVIDER_ERROR, message, hint)
        if step.changed and has_reported(self._run.steps):
            self._run.message = "the model reports that the goal is reached with its last action"
            return "done"
        return ""


def _unsure(message: str) -> AgentStop:
    hint = "see the report, and state the goal more clearly"
    return AgentStop("unsure", ErrorCode.AI_PROVIDER_ERROR, message, hint)


def _show_progress(step: AgentStep) -> None:
    """One line on stderr; typed text stays in the report."""
    action = step.describe_action(shows_text=False)
    why = f" ({step.action.why})" if step.action and step.action.why else ""
    effect = f" -> {step.effect}" if step.effect else ""
    spent = f"[{step.milliseconds / 1000:.1f} s, {step.tokens_in}+{step.tokens_out} tokens]"
    print(clean_text(f"step {step.number}: {action}{why}{effect} {spent}", 600), file=sys.stderr, flush=True)


# what the steps so far show of their effects


def doubt_about(steps: list[AgentStep]) -> str:
    """Why a report that the goal is reached is not believed after these steps; empty where it is."""
    acts = _acts(steps)
    if acts and not acts[-1].is_delivered:
        return f"your last action failed: {acts[-1].effect}"
    if acts and has_reported(acts) and not acts[-1].changed:
        what = acts[-1].action.describe() if acts[-1].action else ""
        return f"your last action, `{what}`, was delivered, but {acts[-1].effect}"
    has_effect = not acts or any(step.changed for step in acts)
    return "" if has_effect else "none of your actions had a visible effect"


def has_reported(steps: list[AgentStep]) -> bool:
    """Whether the model has reported that the goal is reached: since its last act, or with it."""
    for step in reversed(steps):
        if step.action and step.action.is_act:
            return step.action.is_last and step.is_delivered
        if step.action and step.action.kind == "done":
            return True
    return False


def facts(steps: list[AgentStep]) -> list[str]:
    """What the model has to consider before its next action."""
    sentences = []
    doubt, acts, count = doubt_about(steps), _acts(steps), repeats(steps)
    if doubt and has_reported(steps):
        sentences.append(
            f"You reported that the goal is reached, but {doubt}. Answer done only if the last "
            "image shows that the goal is reached; otherwise act."
        )
    if count >= _REPEATS_TO_REPORT and acts[-1].action:
        sentences.append(f"`{acts[-1].action.describe()}` had no effect {count} times. Do something else.")
    return sentences


def repeats(steps: list[AgentStep]) -> int:
    """How often the last act was made since anything had an effect."""
    idle: list[AgentStep] = []
    for step in _acts(steps):
        idle = [] if step.changed else [*idle, step]
    return sum(_is_same(step, idle[-1]) for step in idle)


def _acts(steps: list[AgentStep]) -> list[AgentStep]:
    return [step for step in steps if step.action and step.action.is_act]


def _is_same(step: AgentStep, other: AgentStep) -> bool:
    """Whether two acts are the same, at nearly the same place."""
    if step.pixel and other.pixel and math.dist(step.pixel, other.pixel) > _SAME_PLACE_PX:
        return False
    return _without_place(step) == _without_place(other)


def _without_place(step: AgentStep) -> tuple[str, dict[str, Any]]:
    action = step.action or Action("noop")
    return action.kind, {name: value for name, value in action.values.items() if name not in ("x", "y")}

"""The vision agent's loop: look, decide, act, verify; with its limits."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import replace
from typing import Optional

from ..ai.client import ModelChoice
from ..automation.policy import check_may_act
from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError
from ..core.log import log_info
from ..core.models import App, Point
from ..core.settings import settings
from ..core.text import clean_text
from ..desktop.select import this_desktop
from .actions import Action
from .mcp_client import McpClient
from .model_check import choose_grid
from .planner import Planner, agent_system_prompt, out_of_time
from .run import AgentRun, AgentStep, AgentStop, new_run_folder, save_step
from .target import NOTHING_CHANGED, AgentTarget, Observation, Outcome

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
        self._choice = choice
        self._planner: Planner
        self._deadline = time.monotonic() + run.task.max_seconds
        self._owner: Optional[App] = None
        self._progress = Progress()
        self._noops = 0
        self._refusals = 0

    def work(self) -> None:
        """Run until the run has its status.

        Raises AgentStop, or another PeekabooError, when the goal is not reached.
        """
        task, run = self._task, self._run
        apps = list(this_desktop().snapshot().apps)
        self._owner = self._target.choose(apps, task.app, task.window_id, task.window_title)
        self._check_may_continue()
        run.folder = new_run_folder(task.run_folder)
        self._choose_planner()
        for number in range(1, task.max_steps + 1):
            self._check_may_continue()
            step = AgentStep(number)
            run.steps.append(step)
            try:
                status = self._take(step)
            except PeekabooError as e:
                step.effect = step.effect or e.message
                raise
            finally:
                step.total_ms = _ms_since(step.started_at)
                save_step(run, step)
                _show_progress(step)
            if status:
                run.status = status
                self._look_at_the_end(step)
                return
        self._look_at_the_end(run.steps[-1])
        message = f"the goal was not reached in {task.max_steps} step(s)"
        raise AgentStop("limit", ErrorCode.TIMEOUT, message, "see the report, then raise --max-steps")

    def _look_at_the_end(self, last: AgentStep) -> None:
        """Keep what the last action led to, for the report. A window that is gone is no failure then."""
        if last.action and last.action.is_input and not self._task.dry_run:
            try:
                seen = self._target.observe()
            except PeekabooError as e:
                log_info(f"there is no screenshot of the end: {e.message}")
            else:
                self._run.final_image = seen.image if seen else None

    def _choose_planner(self) -> None:
        """The model, asked in its own grid; what no table names is measured first."""
        left_s = max(0.001, self._deadline - time.monotonic())
        found = choose_grid(self._choice, min(left_s, settings().ai_timeout_s))
        assert found.unit is not None
        self._run.grid = found.describe()
        self._run.system_prompt = agent_system_prompt(found.unit)
        needs_confidence = self._task.confidence is not None
        self._planner = Planner(self._task.goal, self._choice, found.unit, needs_confidence)

    def _check_may_continue(self) -> None:
        if not self._task.dry_run and self._owner:
            check_may_act("agent", self._owner.name, self._owner.bundle_id)
        if time.monotonic() >= self._deadline:
            raise out_of_time()

    def _take(self, step: AgentStep) -> str:
        """One step. Returns the run's status when it ends with this step, else an empty text."""
        seen = self._look(step)
        history = [each.history_line for each in self._run.steps if each.history_line]
        history += self._progress.facts()
        steps_left = self._task.max_steps - step.number + 1
        action = step.action = self._planner.decide(step, history, steps_left, self._deadline)
        if seen:
            step.pixel = _pixel_of(step, action.place)
            step.end_pixel = _pixel_of(step, action.end)
        self._check_confidence(step, action)
        if action.kind == "done":
            doubt = self._progress.note_report()
            self._run.message = "" if doubt else "the model reports that the goal is reached"
            step.effect = f"asked again: {doubt}" if doubt else self._run.message
            return "" if doubt else "done"
        if action.kind == "zoom" and seen:
            self._enlarge(step, seen)
            return ""
        if not action.is_input or seen is None:
            self._wait(step, action)
            return ""
        if action.kind == "scroll" and step.pixel is None:
            step.pixel = Point(seen.image.info.width // 2, seen.image.info.height // 2)
        if self._task.dry_run:
            step.effect = "not done: this is a dry run"
            self._run.message = f"dry run: the model would {step.describe_action()}"
            return "dry_run"
        if self._task.confirm:
            self._ask_person(step, seen)
        return self._act(step, action, seen)

    def _look(self, step: AgentStep) -> Optional[Observation]:
        started = time.perf_counter()
        if step.number == 1 and not self._task.dry_run:
            self._target.focus()
        seen = self._target.observe()
        if seen:
            step.window, step.image = seen.window, seen.image
        step.look_ms = _ms_since(started)
        return seen

    def _check_confidence(self, step: AgentStep, action: Action) -> None:
        least = self._task.confidence
        if least is not None and action.confidence is not None and action.confidence < least:
            what = step.describe_action(shows_text=False)
            raise _unsure(
                f"the model is not sure enough of `{what}`: {action.confidence:g} is below {least:g}"
            )

    def _wait(self, step: AgentStep, action: Action) -> None:
        """After a noop the model gets a new screenshot; a second noop in a row ends the run."""
        self._noops = self._noops + 1 if action.kind == "noop" else 0
        if self._noops >= _MAX_NOOPS:
            raise _unsure("the model does not know what to do")
        started = time.perf_counter()
        left_s = max(0.0, self._deadline - time.monotonic())
        step.effect = "looked again"
        if action.text and self._target.window:
            step.effect = self._target.wait_for(action.text, action.seconds, left_s)
        else:
            pause(min(_WAIT_S if action.seconds is None else action.seconds, left_s))
        step.settle_ms = _ms_since(started)
        self._target.follow()
        step.act_ms = _ms_since(started)

    def _enlarge(self, step: AgentStep, seen: Observation) -> None:
        """The next question shows a part of the window enlarged. A useless part is told to the model."""
        started = time.perf_counter()
        assert step.pixel and step.end_pixel
        try:
            step.detail = self._target.enlarge(seen, step.pixel, step.end_pixel)
        except PeekabooError as e:
            if e.code is not ErrorCode.INVALID_ARGUMENT:
                raise
            step.effect = f"it was not done: {e.message}"
        else:
            step.effect = "shown enlarged"
            self._planner.show_enlarged(step.detail, step.action.describe() if step.action else "")
        step.act_ms = _ms_since(started)

    def _ask_person(self, step: AgentStep, seen: Observation) -> None:
        """y or n on the terminal. The time it takes does not count."""
        started = time.monotonic()
        where = f"{seen.window.title!r} of {seen.window.app_name}"
        why = step.action.why if step.action else ""
        question = clean_text(f"{step.describe_action()} in {where} ({why})", 600)
        print(f"{question}? [y/n] ", end="", file=sys.stderr, flush=True)
        is_allowed = sys.stdin.readline().strip().lower() in ("y", "yes")
        self._deadline += time.monotonic() - started
        if not is_allowed:
            raise AgentStop("declined", ErrorCode.CANCELLED, "the action was declined; nothing more was done")

    def _act(self, step: AgentStep, action: Action, seen: Observation) -> str:
        """Act and verify; then see which window is in front. Three refusals in a row end the run."""
        started = time.perf_counter()
        outcome = self._target.act(action, seen, step.pixel, step.end_pixel)
        step.pixel, step.point = outcome.pixel, outcome.point
        step.effect, step.is_refused = outcome.effect, bool(outcome.refusal)
        self._target.follow()
        window = self._target.window
        is_elsewhere = window is None or window.window_id != seen.window.window_id
        if is_elsewhere:
            where = (
                f"its window {window.title!r} is in front now" if window else "the app shows no window now"
            )
            step.effect = where if outcome.effect == NOTHING_CHANGED else f"{outcome.effect}; {where}"
        step.changed = True if is_elsewhere else outcome.has_changed
        step.changed_rect = None if is_elsewhere else outcome.changed_rect
        step.act_ms = _ms_since(started)
        self._noops = 0
        self._refusals = self._refusals + 1 if outcome.refusal else 0
        if self._refusals >= _MAX_REFUSALS:
            message = f"{_MAX_REFUSALS} actions in a row were refused; {outcome.effect}"
            raise AgentStop("failed", ErrorCode(outcome.refusal), message)
        if self._progress.note_act(action, outcome, has_effect=bool(step.changed)):
            self._run.message = "the model reports that the goal is reached with its last action"
            return "done"
        return ""


def _unsure(message: str) -> AgentStop:
    hint = "see the report, and state the goal more clearly"
    return AgentStop("unsure", ErrorCode.AI_PROVIDER_ERROR, message, hint)


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def _pixel_of(step: AgentStep, place: Optional[Point]) -> Optional[Point]:
    if place is None or step.grid is None or step.image is None:
        return None
    return step.grid.pixel_of(place, step.image.info.width, step.image.info.height)


def _show_progress(step: AgentStep) -> None:
    """One line on stderr; typed text stays in the report."""
    action = step.describe_action(shows_text=False)
    why = f" ({step.action.why})" if step.action and step.action.why else ""
    effect = f" -> {step.effect}" if step.effect else ""
    times = f"[{step.total_ms / 1000:.1f} s, {step.tokens_in}+{step.tokens_out} tokens]"
    print(clean_text(f"step {step.number}: {action}{why}{effect} {times}", 600), file=sys.stderr, flush=True)


class Progress:
    """What is known of the effects of a run's acts."""

    def __init__(self) -> None:
        self._acts = 0
        self._effects = 0
        self._problem = ""  # why the last act was not done, or did not arrive
        self._doubt = ""  # why the model's report that the goal is reached is not confirmed
        self._idle: list[tuple[Action, Optional[Point]]] = []  # the acts since the last one with an effect

    def note_act(self, action: Action, outcome: Outcome, has_effect: bool) -> bool:
        """Note an act and its outcome. Returns whether the run is done: it was the last act, and worked.

        Raises AgentStop when the same act had no effect for too long.
        """
        self._acts += 1
        self._effects += has_effect
        is_done = action.is_last and outcome.is_delivered
        self._problem = "" if outcome.is_delivered else f"your last action failed: {outcome.effect}"
        self._doubt = ""
        if has_effect:
            self._idle.clear()
            return is_done
        if is_done:
            what = action.describe()
            self._doubt = f"your last action, `{what}`, was delivered, but {outcome.effect}"
        self._idle.append((_without_comment(action), outcome.pixel))
        if self._repeats() >= _REPEATS_TO_STOP:
            what = action.describe(shows_text=False, at=outcome.pixel)
            message = f"the same action had no effect {_REPEATS_TO_STOP} times: {what}"
            hint = "see the report; choose a stronger model, or state the goal more clearly"
            raise AgentStop("stuck", ErrorCode.AI_PROVIDER_ERROR, message, hint)
        return False

    def note_report(self) -> str:
        """The model reports that the goal is reached. Returns why it is asked again; empty: the run is done.

        Raises AgentStop when it was asked already: then the run ends without a confirmation.
        """
        if self._doubt:
            message = f"not confirmed: the model reports that the goal is reached, but {self._doubt}"
            hint = "look at the last screenshot in the report"
            raise AgentStop("not_confirmed", ErrorCode.AI_PROVIDER_ERROR, message, hint)
        if self._problem:
            self._doubt = self._problem
        elif self._acts and not self._effects:
            self._doubt = "none of your actions had a visible effect"
        return self._doubt

    def facts(self) -> list[str]:
        """What the model has to know before its next action, besides its history."""
        facts = []
        if self._doubt:
            facts.append(
                f"You reported that the goal is reached, but {self._doubt}. Answer done only if the last "
                "image shows that the goal is reached; otherwise act."
            )
        repeats = self._repeats()
        if repeats >= _REPEATS_TO_REPORT:
            what = self._idle[-1][0].describe()
            facts.append(f"`{what}` had no effect {repeats} times. Do something else.")
        return facts

    def _repeats(self) -> int:
        """How often the last act was made since anything had an effect."""
        return sum(_is_same(each, self._idle[-1]) for each in self._idle)


def _without_comment(action: Action) -> Action:
    return replace(action, why="", confidence=None, is_last=False)


def _is_same(one: tuple[Action, Optional[Point]], other: tuple[Action, Optional[Point]]) -> bool:
    (action, pixel), (other_action, other_pixel) = one, other
    if pixel is None or other_pixel is None:
        return action == other_action
    is_near = math.hypot(pixel.x - other_pixel.x, pixel.y - other_pixel.y) <= _SAME_PLACE_PX
    return is_near and replace(action, place=None) == replace(other_action, place=None)

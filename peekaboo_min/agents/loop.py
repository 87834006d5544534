"""The vision agent's loop: look, decide, act, verify; with its limits."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from typing import Optional

from ..ai.client import ModelChoice
from ..automation.policy import check_may_act
from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.models import App
from ..core.settings import settings
from ..core.text import clean_text
from ..desktop.select import this_desktop
from .actions import Action
from .mcp_client import McpClient
from .model_check import choose_grid
from .planner import AgentStop, Planner, agent_system_prompt, out_of_time
from .progress import Progress
from .run import AgentRun, AgentStep, new_run_folder, save_step
from .target import NOTHING_CHANGED, AgentTarget, Observation

_WAIT_S = 1.0
_MAX_NOOPS = 2
_MAX_REFUSALS = 3


@dataclass(frozen=True)
class AgentTask:
    """What a run has to reach, where, and its limits. `app` or `window_id` is given."""

    goal: str
    app: Optional[str]
    window_id: Optional[int]
    window_title: Optional[str]
    max_steps: int
    max_seconds: float
    confidence: Optional[float]
    """An action of which the model is less sure ends the run; None: confidence is not required."""
    is_dry: bool
    needs_consent: bool
    """A person confirms each action on the terminal."""
    folder: Optional[str]

    def check(self) -> None:
        """Raises INVALID_ARGUMENT for a task that cannot be run."""
        problem = ""
        if not self.goal.strip():
            problem = "the goal is empty"
        elif (self.app is None) == (self.window_id is None):
            problem = "name either the app (--app) or the window (--window-id)"
        elif self.window_title is not None and self.app is None:
            problem = "--window-title requires --app"
        elif self.max_steps < 1 or not self.max_seconds > 0 or not math.isfinite(self.max_seconds):
            problem = "--max-steps and --max-seconds must be above 0"
        elif self.confidence is not None and not 0 <= self.confidence <= 1:
            problem = "--confidence is a number from 0 to 1"
        if problem:
            raise invalid(problem, hint="see peekaboo-min agent --help")
        if self.needs_consent and not (sys.stdin and sys.stdin.isatty()):
            raise invalid("--confirm needs a terminal, and stdin is not one", hint="omit --confirm")


class AgentLoop:
    """One run in progress."""

    def __init__(self, task: AgentTask, choice: ModelChoice, run: AgentRun, server: McpClient) -> None:
        self._task = task
        self._run = run
        self._target = AgentTarget(server)
        self._choice = choice
        self._planner: Planner
        self._deadline = time.monotonic() + task.max_seconds
        self._owner: Optional[App] = None
        self._progress = Progress()
        self._noops = 0
        self._refusals = 0

    def work(self) -> None:
        """Run until the run has its status.

        Raises AgentStop, or another PeekabooError, when the goal is not reached.
        """
        task, run = self._task, self._run
        self._owner = self._target.choose(
            list(this_desktop().snapshot().apps), task.app, task.window_id, task.window_title
        )
        self._check_may_continue()
        run.folder = new_run_folder(task.folder)
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
                return
        message = f"the goal was not reached in {task.max_steps} step(s)"
        raise AgentStop("limit", ErrorCode.TIMEOUT, message, "see the report, then raise --max-steps")

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
        if not self._task.is_dry and self._owner:
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
        if action.place and step.grid and seen:
            step.pixel = step.grid.pixel_of(action.place, seen.image.info.width, seen.image.info.height)
        self._check_confidence(step, action)
        if action.kind == "done":
            doubt = self._progress.note_report()
            self._run.message = "" if doubt else "the model reports that the goal is reached"
            step.effect = f"asked again: {doubt}" if doubt else self._run.message
            return "" if doubt else "done"
        if not action.is_input or seen is None:
            return self._wait(step, action)
        if self._task.is_dry:
            step.effect = "not done: this is a dry run"
            self._run.message = f"dry run: the model would {step.describe_action()}"
            return "dry_run"
        if self._task.needs_consent:
            self._ask_person(step, seen)
        return self._act(step, action, seen)

    def _look(self, step: AgentStep) -> Optional[Observation]:
        started = time.perf_counter()
        if step.number == 1 and not self._task.is_dry:
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

    def _wait(self, step: AgentStep, action: Action) -> str:
        """After a noop the model gets a new screenshot; a second noop in a row ends the run."""
        self._noops = self._noops + 1 if action.kind == "noop" else 0
        if self._noops >= _MAX_NOOPS:
            raise _unsure("the model does not know what to do")
        started = time.perf_counter()
        pause(max(0.0, min(_WAIT_S, self._deadline - time.monotonic())))
        step.settle_ms = _ms_since(started)
        self._target.follow()
        step.act_ms = _ms_since(started)
        step.effect = "looked again"
        return ""

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
        outcome = self._target.act(action, seen, step.pixel)
        step.pixel, step.point = outcome.pixel, outcome.point
        step.effect = outcome.effect
        self._target.follow()
        window = self._target.window
        is_elsewhere = window is None or window.window_id != seen.window.window_id
        if is_elsewhere:
            where = (
                f"its window {window.title!r} is in front now" if window else "the app shows no window now"
            )
            step.effect = where if outcome.effect == NOTHING_CHANGED else f"{outcome.effect}; {where}"
        step.act_ms = _ms_since(started)
        self._noops = 0
        self._refusals = self._refusals + 1 if outcome.refusal else 0
        if self._refusals >= _MAX_REFUSALS:
            message = f"{_MAX_REFUSALS} actions in a row were refused; {outcome.effect}"
            raise AgentStop("failed", ErrorCode(outcome.refusal), message)
        if self._progress.note_act(action, outcome, outcome.has_changed or is_elsewhere):
            self._run.message = "the model reports that the goal is reached with its last action"
            return "done"
        return ""


def _unsure(message: str) -> AgentStop:
    hint = "see the report, and state the goal more clearly"
    return AgentStop("unsure", ErrorCode.AI_PROVIDER_ERROR, message, hint)


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def _show_progress(step: AgentStep) -> None:
    """One line on stderr; typed text stays in the report."""
    action = step.describe_action(shows_text=False)
    why = f" ({step.action.why})" if step.action and step.action.why else ""
    effect = f" -> {step.effect}" if step.effect else ""
    times = f"[{step.total_ms / 1000:.1f} s, {step.tokens_in}+{step.tokens_out} tokens]"
    print(clean_text(f"step {step.number}: {action}{why}{effect} {times}", 600), file=sys.stderr, flush=True)

"""The vision agent's loop: look, decide, act, verify, again; with its limits."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Optional

from ..ai.client import ModelChoice
from ..automation.policy import check_may_act
from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError
from ..core.models import App
from ..core.text import clean_text
from ..desktop.select import this_desktop
from .actions import Action
from .mcp_client import McpClient
from .planner import AgentMind, AgentStop, out_of_time
from .run import AgentRun, AgentStep, keep_step, new_run_folder
from .target import NOTHING_CHANGED, AgentTarget, Look

_WAIT_S = 1.0
_NOOPS_AT_MOST = 2
_REFUSALS_AT_MOST = 3


@dataclass(frozen=True)
class AgentOrder:
    """What a run shall reach, where, with which model, and its limits. `app` or `window_id` is given."""

    goal: str
    choice: ModelChoice
    app: Optional[str]
    window_id: Optional[int]
    window_title: Optional[str]
    max_steps: int
    max_seconds: float
    confidence: Optional[float]
    """An action of which the model is less sure ends the run; None: it is not asked for."""
    is_dry: bool
    asks_person: bool
    folder: Optional[str]


class AgentLoop:
    """One run while it goes."""

    def __init__(self, order: AgentOrder, run: AgentRun, server: McpClient) -> None:
        self._order = order
        self._run = run
        self._target = AgentTarget(server)
        self._mind = AgentMind(order.goal, order.choice, order.confidence is not None)
        self._deadline = time.monotonic() + order.max_seconds
        self._owner: Optional[App] = None
        self._noops = 0
        self._refusals = 0

    def work(self) -> None:
        """Until the run has its status. Raises AgentStop, or another PeekabooError, when the goal is not reached."""
        order, run = self._order, self._run
        self._owner = self._target.choose(
            this_desktop().apps(), order.app, order.window_id, order.window_title
        )
        self._check_may_go_on()
        run.folder = new_run_folder(order.folder)
        for number in range(1, order.max_steps + 1):
            self._check_may_go_on()
            step = AgentStep(number)
            run.steps.append(step)
            try:
                ending = self._take(step)
            except PeekabooError as e:
                step.effect = step.effect or e.message
                raise
            finally:
                step.total_ms = _ms_since(step.started_at)
                keep_step(run, step)
                _tell(step)
            if ending:
                run.status = ending
                return
        message = f"the goal was not reached in {order.max_steps} step(s)"
        raise AgentStop("limit", ErrorCode.TIMEOUT, message, "see the report, then allow more by --max-steps")

    def _check_may_go_on(self) -> None:
        if not self._order.is_dry and self._owner:
            check_may_act("agent", self._owner.name, self._owner.bundle_id)
        if time.monotonic() >= self._deadline:
            raise out_of_time()

    def _take(self, step: AgentStep) -> str:
        """One step. Returns the run's status when it ends with this step, else an empty text."""
        look = self._look(step)
        deeds = [one.deed for one in self._run.steps if one.deed]
        steps_left = self._order.max_steps - step.number + 1
        action = step.action = self._mind.decide(step, deeds, steps_left, self._deadline)
        self._check_sure(action)
        if action.kind == "done":
            step.effect = self._run.message = "the model says that the goal is reached"
            return "done"
        if not action.acts or look is None:
            return self._wait(step, action)
        if action.pixel:
            step.pixel = look.pixel_of(action.pixel, *step.seen_size)
        if self._order.is_dry:
            step.effect = "not done: this is a dry run"
            self._run.message = f"dry run: the model would {action.described()}"
            return "dry_run"
        if self._order.asks_person:
            self._ask_person(action, look)
        return self._act(step, action, look)

    def _look(self, step: AgentStep) -> Optional[Look]:
        started = time.perf_counter()
        if step.number == 1 and not self._order.is_dry:
            self._target.focus()
        look = self._target.look()
        if look:
            step.window, step.picture = look.window, look.picture
        step.look_ms = _ms_since(started)
        return look

    def _check_sure(self, action: Action) -> None:
        least = self._order.confidence
        if least is not None and action.confidence is not None and action.confidence < least:
            what = action.described(shows_text=False)
            message = f"the model is not sure enough of `{what}`: {action.confidence:g} is below {least:g}"
            raise AgentStop(
                "unsure",
                ErrorCode.AI_PROVIDER_ERROR,
                message,
                "see the report, and word the goal more clearly",
            )

    def _wait(self, step: AgentStep, action: Action) -> str:
        """A noop says that the model does not know: it gets another picture, and a second noop ends the run."""
        self._noops = self._noops + 1 if action.kind == "noop" else 0
        if self._noops >= _NOOPS_AT_MOST:
            message = "the model does not know what to do"
            raise AgentStop(
                "unsure",
                ErrorCode.AI_PROVIDER_ERROR,
                message,
                "see the report, and word the goal more clearly",
            )
        started = time.perf_counter()
        pause(max(0.0, min(_WAIT_S, self._deadline - time.monotonic())))
        step.settle_ms = _ms_since(started)
        self._target.follow()
        step.act_ms = _ms_since(started)
        step.effect = "looked again"
        return ""

    def _ask_person(self, action: Action, look: Look) -> None:
        """y or n on the terminal. A person's time is not the run's."""
        started = time.monotonic()
        what = clean_text(
            f"{action.described()} in {look.window.title!r} of {look.window.app_name} ({action.why})", 600
        )
        print(f"{what}? [y/n] ", end="", file=sys.stderr, flush=True)
        is_allowed = sys.stdin.readline().strip().lower() in ("y", "yes")
        self._deadline += time.monotonic() - started
        if not is_allowed:
            raise AgentStop("declined", ErrorCode.CANCELLED, "the action was declined; nothing more was done")

    def _act(self, step: AgentStep, action: Action, look: Look) -> str:
        """Do it and verify; see which window is in front then. Three refusals in a row end the run."""
        started = time.perf_counter()
        outcome = self._target.act(action, look, step.pixel)
        step.pixel, step.point = outcome.pixel, outcome.point
        step.effect = outcome.effect
        self._target.follow()
        is_elsewhere = self._target.window is None or self._target.window.window_id != look.window.window_id
        step.effect = self._effect_text(outcome.effect, is_elsewhere)
        step.act_ms = _ms_since(started)
        self._noops = 0
        self._refusals = self._refusals + 1 if outcome.refusal else 0
        if self._refusals >= _REFUSALS_AT_MOST:
            message = f"{_REFUSALS_AT_MOST} acts in a row were refused; {outcome.effect}"
            raise AgentStop("failed", ErrorCode(outcome.refusal), message)
        if action.is_last and (outcome.has_changed or is_elsewhere) and not outcome.refusal:
            self._run.message = "the model says that the goal is reached with its last act"
            return "done"
        return ""

    def _effect_text(self, effect: str, is_elsewhere: bool) -> str:
        here = self._target.window
        if not is_elsewhere:
            return effect
        where = f"its window {here.title!r} is in front now" if here else "the app shows no window now"
        return where if effect == NOTHING_CHANGED else f"{effect}; {where}"


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def _tell(step: AgentStep) -> None:
    """One line for the person who waits; typed text stays in the report."""
    action = step.action.described(shows_text=False) if step.action else "no action"
    why = f" ({step.action.why})" if step.action and step.action.why else ""
    effect = f" -> {step.effect}" if step.effect else ""
    times = f"[{step.total_ms / 1000:.1f} s, {step.tokens_in}+{step.tokens_out} tokens]"
    print(clean_text(f"step {step.number}: {action}{why}{effect} {times}", 600), file=sys.stderr, flush=True)

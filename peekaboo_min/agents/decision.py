"""One action from a model: what it is shown, and how its reply is taken."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Optional

from ..ai.client import ask_model
from ..ai.images import fit_pictures
from ..ai.selection import ModelChoice
from ..core.errors import ErrorCode, PeekabooError
from ..core.models import Picture
from ..core.settings import settings
from ..desktop.select import this_desktop
from .actions import ACTION_SCHEMA, Action, read_action
from .run import AgentStep, ModelReply
from .vision_prompts import AGENT_SYSTEM_PROMPT, agent_prompt, agent_second_prompt


class AgentStop(PeekabooError):
    """The run ends here, without its goal; `status` is what run.json says."""

    def __init__(self, status: str, code: ErrorCode, message: str, hint: str = "") -> None:
        super().__init__(code, message, hint)
        self.status = status


class AgentMind:
    """The model that decides, and the picture that it saw before."""

    def __init__(self, goal: str, choice: ModelChoice, needs_confidence: bool) -> None:
        self._goal = goal
        self._choice = choice
        self._needs_confidence = needs_confidence
        self._before: Optional[Picture] = None  # as the model saw it; its label is the window's title

    def decide(self, step: AgentStep, deeds: list[str], steps_left: int, deadline: float) -> Action:
        """The model's action for what this step sees; a reply that cannot be used is asked again, once, with the reason.

        deeds: what was done before. deadline: monotonic; no question lasts longer. Raises AgentStop, and what ask_model
        raises.
        """
        seen = self._seen_picture(step)
        before, self._before = self._before, seen
        pictures = [one for one in (before, seen) if one] if seen else []
        titles = (seen.label if seen else "", before.label if before and seen else None)
        question = step.prompt = agent_prompt(
            self._goal, titles[0], step.seen_size, titles[1], deeds, steps_left
        )
        for _ in range(2):
            text = self._ask(step, pictures, question, deadline)
            try:
                action = read_action(text, *step.seen_size)
                self._check_action(action, has_window=seen is not None)
            except PeekabooError as e:
                reason = e.message
                step.replies.append(ModelReply(text, reason))
                question = agent_second_prompt(step.prompt, text, reason)
            else:
                step.replies.append(ModelReply(text))
                return action
        message = f"the model's reply cannot be used, also when asked again: {reason}"
        raise AgentStop(
            "confused",
            ErrorCode.AI_PROVIDER_ERROR,
            message,
            "choose a stronger model; the report has its words",
        )

    def _seen_picture(self, step: AgentStep) -> Optional[Picture]:
        """The step's picture as the vendor takes it: what it would shrink itself, it would answer in other pixels."""
        if step.picture is None or step.window is None:
            return None
        (seen,) = fit_pictures(this_desktop(), self._choice.provider, self._choice.model, [step.picture])
        step.seen_size = (seen.info.width, seen.info.height)
        return replace(seen, label=step.window.title or "")

    def _ask(self, step: AgentStep, pictures: list[Picture], question: str, deadline: float) -> str:
        started = time.monotonic()
        left = deadline - started
        if left <= 0:
            raise out_of_time()
        try:
            answer = ask_model(
                this_desktop(),
                pictures,
                question,
                choice=self._choice,
                system=AGENT_SYSTEM_PROMPT,
                schema=ACTION_SCHEMA,
                timeout_s=min(left, settings().ai_timeout_s),
            )
        except PeekabooError as e:
            if time.monotonic() >= deadline:
                raise out_of_time() from e
            raise
        finally:
            step.model_ms += (time.monotonic() - started) * 1000
        if answer.sent:
            step.seen_size = (answer.sent[-1].width, answer.sent[-1].height)
        step.tokens_in += answer.tokens_in or 0
        step.tokens_out += answer.tokens_out or 0
        return answer.text

    def _check_action(self, action: Action, has_window: bool) -> None:
        if self._needs_confidence and action.confidence is None:
            raise PeekabooError(
                ErrorCode.AI_PROVIDER_ERROR, "confidence is missing, and it is wanted here: 0 to 1"
            )
        if action.acts and not has_window:
            raise PeekabooError(
                ErrorCode.AI_PROVIDER_ERROR, "the application shows no window to act in; say done or wait"
            )


def out_of_time() -> AgentStop:
    message = "the goal was not reached in the time allowed"
    return AgentStop("limit", ErrorCode.TIMEOUT, message, "see the report, then allow more by --max-seconds")

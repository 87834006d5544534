"""Whether a run gets anywhere: idle acts, and reports that nothing confirms."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Optional

from ..core.errors import ErrorCode
from ..core.models import Point
from .actions import Action
from .planner import AgentStop
from .target import Outcome

_REPEATS_TO_REPORT = 3
_REPEATS_TO_STOP = 5
_SAME_PLACE_PX = 8.0


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

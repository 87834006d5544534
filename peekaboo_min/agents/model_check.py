"""`agent --check-model`: in which grid a model says where something is."""

from __future__ import annotations

import math
from base64 import b64decode
from typing import Optional

from ..ai.client import ModelChoice, ask_model
from ..ai.grid import PIXELS, THOUSANDTHS, UNIT_NAMES, grid_over, unit_by_name, unit_by_variable
from ..core.errors import PeekabooError
from ..core.models import ImageData, ImageInfo, Point, Result
from ..desktop.select import this_desktop
from .actions import ACTION_SCHEMA, read_action
from .planner import agent_prompt, agent_system_prompt

# Whole patches of 28 and of 32 pixels, and more than 1024 of the former: nothing we know of resizes it. A
# model that counts in the pixels of a resized image counts in the pixels of this one.
_WIDTH, _HEIGHT = 1344, 672
_SQUARES = {"1": Point(0.83, 0.22), "2": Point(0.31, 0.86)}
"""Where the numbered squares are, as shares of the image."""
# A PNG of one bit a pixel: two black squares on white, with a white number in each.
_IMAGE = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAABUAAAAKgAQAAAABynuqaAAACG0lEQVR42u3azQmEMBAG0AELsARLsTO1tC1pjx7ESLACIQsb533kGn"
    "inMD+J0kkCFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU"
    "FBQUFBT0zdBv3BlBQUFBQUFBn0IXUFDQXNDpBAUFzQX1joKCgoKCgoKCgoKCgoKC9gudyg4KCpoKahcKCgoKCgr6g4CCgoKCgoKCgo"
    "KCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKC"
    "goKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgo"
    "KCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKC"
    "toJucWcFBQUFBQUFfQgt5QMKCpoJOkc9oKCgeaABCgqaDTr0Uj2BgoI2gh69DCBAQUGbtSKgoKC5oPUaKChoIqhdKCgoKCgoqB+5oK"
    "CgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCg/54LzPPArOkz4SQAAAAASUVORK5CYII="
)
_NEAR = 0.06
_CLEARLY_WORSE = 2.5


def model_check(choice: ModelChoice) -> Result:
    """Ask a model where two squares are, with the agent's own prompt; the report says what to set.

    Raises what ask_model raises, and INVALID_ARGUMENT for another PEEKABOO_AI_GRID.
    """
    by_name, by_variable = unit_by_name(choice.model), unit_by_variable()
    unit, problem = None, "its clicks on a test image fit neither grid"
    replies = {digit: _reply_of(choice, digit) for digit in _SQUARES}
    try:
        unit = unit_of({digit: read_action(reply, None).places for digit, reply in replies.items()})
    except PeekabooError as e:
        problem = e.message
    if unit is None:
        text = f"it is unclear in which grid the model counts: {problem}; choose another model"
    else:
        advice = (
            "nothing needs to be set" if unit == (by_variable or by_name) else f"set PEEKABOO_AI_GRID={unit}"
        )
        text = f"the model counts in {UNIT_NAMES[unit]}: {advice}"
    data = {"model": choice.name, "grid": unit, "grid_by_name": by_name, "grid_by_variable": by_variable}
    return Result(f"{choice.name}: {text}", data)


def _reply_of(choice: ModelChoice, digit: str) -> str:
    """The model's reply to the goal to click one square of the image, which it gets as it is."""
    unit = unit_by_name(choice.model) or THOUSANDTHS
    goal = f"Click the square with the number {digit}."
    return ask_model(
        this_desktop(),
        [ImageData(_IMAGE, ImageInfo("png", _WIDTH, _HEIGHT))],
        agent_prompt(goal, ["Two numbered squares"], grid_over(unit, _WIDTH, _HEIGHT)),
        choice=choice,
        system=agent_system_prompt(unit),
        schema=ACTION_SCHEMA,
        are_fitted=True,
    ).text


def unit_of(places: dict[str, list[Point]]) -> Optional[str]:
    """The unit in which these numbers hit the squares; None: it is not clear, or one was not clicked."""
    if not all(places.values()):
        return None
    errors = {}
    for unit in (PIXELS, THOUSANDTHS):
        grid = grid_over(unit, _WIDTH, _HEIGHT)
        errors[unit] = max(
            math.hypot(place.x / grid.width - _SQUARES[digit].x, place.y / grid.height - _SQUARES[digit].y)
            for digit, (place, *_) in places.items()
        )
    best, other = sorted(errors, key=lambda unit: errors[unit])
    is_clear = errors[best] <= _NEAR and errors[other] >= _CLEARLY_WORSE * errors[best]
    return best if is_clear else None

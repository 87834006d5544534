"""`agent --check-model`: measure the coordinate grid of a model."""

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

# A size that no known vendor resizes: whole patches of 28 and of 32 pixels, and more than 1024 of 28 pixels.
# So a model that answers in pixels of its resized image answers in pixels of this one.
_WIDTH, _HEIGHT = 1344, 672
_SQUARES = {"1": Point(0.83, 0.22), "2": Point(0.31, 0.86)}  # their centres, as shares of the image
# A one-bit PNG: two black squares on white, with a white number in each.
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
# Within 6 % of the image, and the other grid at least 2.5 times worse. Simulated with 4,000 replies and noise
# of 2 % of the image: 97.7 % right, none wrong.
_NEAR, _CLEARLY_WORSE = 0.06, 2.5


def model_check(choice: ModelChoice) -> Result:
    """Ask a model to click two squares, with the agent's own prompt; report its grid and the variable to set.

    Raises the errors of ask_model, and INVALID_ARGUMENT for an invalid PEEKABOO_AI_GRID.
    """
    by_name, by_variable = unit_by_name(choice.model), unit_by_variable()
    unit, problem = None, "its clicks on a test image match neither grid"
    replies = {digit: _reply_of(choice, digit) for digit in _SQUARES}
    try:
        unit = unit_of({digit: read_action(reply, None).points for digit, reply in replies.items()})
    except PeekabooError as e:
        problem = e.message
    if unit is None:
        text = f"the model's grid is unclear: {problem}; choose another model"
    else:
        is_set = unit == (by_variable or by_name)
        advice = "nothing needs to be set" if is_set else f"set PEEKABOO_AI_GRID={unit}"
        text = f"the model answers in {UNIT_NAMES[unit]}: {advice}"
    data = {"model": choice.name, "grid": unit, "grid_by_name": by_name, "grid_by_variable": by_variable}
    return Result(f"{choice.name}: {text}", data)


def _reply_of(choice: ModelChoice, digit: str) -> str:
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


def unit_of(points: dict[str, list[Point]]) -> Optional[str]:
    """Return the unit in which the points hit their squares (by digit); None if that is unclear."""
    if not all(points.values()):
        return None
    errors = {}
    for unit in (PIXELS, THOUSANDTHS):
        grid = grid_over(unit, _WIDTH, _HEIGHT)
        errors[unit] = max(
            math.hypot(point.x / grid.width - _SQUARES[digit].x, point.y / grid.height - _SQUARES[digit].y)
            for digit, (point, *_) in points.items()
        )
    best, other = sorted(errors, key=lambda unit: errors[unit])
    is_clear = errors[best] <= _NEAR and errors[other] >= _CLEARLY_WORSE * errors[best]
    return best if is_clear else None

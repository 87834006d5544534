"""In which grid a model says where something is: measured once, and kept."""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode
from dataclasses import dataclass
from typing import Optional

from ..ai.client import ModelChoice, ask_model
from ..ai.grid import FRACTIONS, PIXELS, THOUSANDTHS, grid_over, unit_by_name, unit_by_variable
from ..ai.images import fit_for_model
from ..ai.providers import VENDORS
from ..core.errors import ErrorCode, PeekabooError
from ..core.log import log_info
from ..core.models import ImageData, ImageInfo, Point
from ..desktop.select import this_desktop
from ..system.files import state_folder, write_privately
from .actions import ACTION_SCHEMA, read_action
from .planner import agent_prompt, agent_system_prompt
from .run import AgentStop

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
_FILE = "model_grids.json"
_UNIT_NAMES = {
    PIXELS: "pixels of the image",
    THOUSANDTHS: "thousandths of the image's width and height",
    FRACTIONS: "fractions of the image's width and height",
}


@dataclass(frozen=True)
class GridChoice:
    """What a model counts in, and why we think so. `unit` is None where a measurement did not tell."""

    unit: Optional[str]
    source: str
    """variable, measured (also in an earlier run), or name."""
    problem: str = ""

    def describe(self) -> str:
        if self.unit is None:
            return f"it is unclear in which grid the model counts: {self.problem}"
        why = {
            "variable": "PEEKABOO_AI_GRID",
            "measured": "measured",
            "name": "by the model's name",
        }
        return f"the model counts in {_UNIT_NAMES[self.unit]} ({why[self.source]})"


def choose_grid(choice: ModelChoice, timeout_s: float) -> GridChoice:
    """By the variable, a kept measurement, the model's name; else it is measured now.

    timeout_s: for each of the two questions. Raises AgentStop where that does not tell: clicks that may be
    silently wrong are not made. Raises what ask_model raises.
    """
    unit = unit_by_variable()
    if unit:
        return GridChoice(unit, "variable")
    unit = _kept_units().get(_key(choice))
    if unit in _UNIT_NAMES:
        return GridChoice(unit, "measured")
    unit = unit_by_name(choice.model)
    if unit:
        return GridChoice(unit, "name")
    found = measure_grid(choice, timeout_s)
    if found.unit is None:
        message = f"{choice.name}: {found.describe()}"
        hint = "set PEEKABOO_AI_GRID to pixels or 1000 where you know it, or choose another model"
        raise AgentStop("undecided", ErrorCode.AI_PROVIDER_ERROR, message, hint)
    return found


def measure_grid(choice: ModelChoice, timeout_s: float) -> GridChoice:
    """Ask a model where two squares are, with the agent's own prompt, and keep what its clicks tell.

    timeout_s: for each question. Raises what ask_model raises.
    """
    image = ImageData(_IMAGE, ImageInfo("png", _WIDTH, _HEIGHT), "Two numbered squares")
    fitted = fit_for_model(this_desktop(), choice.provider, choice.model, image, in_pixels=True)
    unit, problem = None, ""
    try:
        places = {digit: _asked_place(choice, fitted, digit, timeout_s) for digit in _SQUARES}
    except _Unusable as e:
        problem = e.message
    else:
        unit = unit_of(places, fitted.info.width, fitted.info.height)
        problem = "" if unit else "its clicks on a test image fit no grid"
    _keep(choice, unit)
    found = GridChoice(unit, "measured", problem)
    log_info(f"{choice.name}: {found.describe()}")
    return found


class _Unusable(PeekabooError):
    """A reply that tells nothing about the grid."""


def _asked_place(choice: ModelChoice, image: ImageData, digit: str, timeout_s: float) -> Point:
    """The model's own numbers for one square."""
    unit = unit_by_name(choice.model) or THOUSANDTHS
    grid = grid_over(unit, image.info.width, image.info.height)
    goal = f"Click the square with the number {digit}."
    answer = ask_model(
        this_desktop(),
        [image],
        agent_prompt(goal, image.label, grid, None, [], 1),
        choice=choice,
        system=agent_system_prompt(unit),
        schema=ACTION_SCHEMA,
        are_fitted=True,
        timeout_s=timeout_s,
    )
    try:
        place = read_action(answer.text, None).place
    except PeekabooError as e:
        raise _Unusable(e.code, e.message) from e
    if place is None:
        raise _Unusable(ErrorCode.AI_PROVIDER_ERROR, "it did not click a square of a test image")
    return place


def unit_of(places: dict[str, Point], width: int, height: int) -> Optional[str]:
    """The unit in which these numbers hit the squares of an image of this size; None: it is not clear."""
    errors = {}
    for unit in _UNIT_NAMES:
        grid = grid_over(unit, width, height)
        errors[unit] = max(
            math.hypot(place.x / grid.width - _SQUARES[digit].x, place.y / grid.height - _SQUARES[digit].y)
            for digit, place in places.items()
        )
    best, second = sorted(errors, key=lambda unit: errors[unit])[:2]
    is_clear = errors[best] <= _NEAR and errors[second] >= _CLEARLY_WORSE * errors[best]
    return best if is_clear else None


def _key(choice: ModelChoice) -> str:
    """A model and its address, without a password that the address may hold."""
    vendor = VENDORS.get(choice.provider)
    address = re.sub(r"//[^/@]*@", "//", vendor.base_url) if vendor else ""
    return f"{choice.name} at {address}"


def _kept_units() -> dict[str, str]:
    try:
        kept = json.loads((state_folder() / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # nothing was kept, or it was damaged: measured again
    units = kept.items() if isinstance(kept, dict) else ()
    return {key: unit for key, unit in units if isinstance(unit, str)}


def _keep(choice: ModelChoice, unit: Optional[str]) -> None:
    units = {key: known for key, known in _kept_units().items() if key != _key(choice)}
    if unit:
        units[_key(choice)] = unit
    write_privately(state_folder() / _FILE, json.dumps(units, indent=2) + "\n")

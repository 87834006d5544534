"""The grid in which a model says where something is, by the model's name."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

from ..core.errors import invalid
from ..core.models import Point
from ..core.settings import settings

PIXELS, THOUSANDTHS = "pixels", "1000"
"""The units in which models count: pixels of the image, thousandths of each of its sides."""

UNIT_NAMES = {
    PIXELS: "pixels of the image",
    THOUSANDTHS: "thousandths of the image's width and height",
}
ASSUMED = "grid assumed, not known: run agent --check-model"

# What a model was trained on: a prompt that asks for another unit is not followed. From the documents of
# their vendors and from harnesses for these models. The first family that fits counts.
_FAMILIES = (
    (
        PIXELS,
        r"claude|\bchatgpt|\bgpt-|^o[1-9]\b|computer-use-preview|qwen-?2|ui-?tars-1\.5(?!.*72b)|holo-?1"
        r"|mimo-vl|opencua|\bfara|gta-?1|gelato|llava|kimi",
    ),
    (THOUSANDTHS, r"gemini|gemma|qwen-?3|ui-?tars|gui-owl|glm-?\d|internvl|yutori|doubao|\bseed|holo-?2"),
)


class Grid(NamedTuple):
    """A grid over an image, in which a model is asked and its reply is read."""

    unit: str
    width: int
    height: int

    def describe(self) -> str:
        """The grid for a prompt; both axes by name, because models do not agree on the order of a pair."""
        over, last_x, last_y = "whatever the image's shape, each axis by itself", self.width, self.height
        if self.unit == PIXELS:
            over, last_x, last_y = "the pixels of this image", self.width - 1, self.height - 1
        return (
            f"under a grid {self.width} wide and {self.height} high ({over}): "
            f"x goes from 0 at the left edge to {last_x} at the right edge, "
            f"y goes from 0 at the top edge to {last_y} at the bottom edge"
        )

    def problem_of(self, x: float, y: float) -> str:
        """Why a model's numbers are no place in this grid; empty when they are one.

        Models that count in thousandths do answer 1000, the far edge. In pixels the far edge is an error:
        another unit may be meant.
        """
        for name, value, size in (("x", x, self.width), ("y", y, self.height)):
            if not 0 <= value <= size or (self.unit == PIXELS and value == size):
                return f"{name} is {value:g}, outside the grid of {self.width}x{self.height}"
        if x < 1 and y < 1 and (x % 1 or y % 1):
            return f"x and y look like fractions; give places in the grid of {self.width}x{self.height}"
        return ""

    def pixel_of(self, place: Point, width: int, height: int) -> Point:
        """A place in this grid as a pixel of an image of this size, whatever size the model got."""
        x, y = place.x * width / self.width, place.y * height / self.height
        return Point(min(x, width - 1), min(y, height - 1))


def grid_over(unit: str, width: int, height: int) -> Grid:
    """The grid over an image that a model gets in this size, pixels."""
    if unit == PIXELS:
        return Grid(unit, width, height)
    return Grid(unit, int(unit), int(unit))


def base_name(model: str) -> str:
    """A model's name without the folders that gateways put before it: `google/gemini-3.6-flash`."""
    return model.lower().rsplit("/", 1)[-1]


def unit_by_name(model: str) -> Optional[str]:
    """The unit of a model's family, through a gateway as well; None for a name of no known family."""
    name = base_name(model)
    return next((unit for unit, pattern in _FAMILIES if re.search(pattern, name)), None)


def unit_by_variable() -> Optional[str]:
    """The unit that PEEKABOO_AI_GRID sets; None where it is unset. Raises INVALID_ARGUMENT."""
    unit = settings().ai_grid.lower()
    if unit not in ("", PIXELS, THOUSANDTHS):
        raise invalid(f"PEEKABOO_AI_GRID is {unit[:40]!r}", hint=f"set it to {PIXELS} or {THOUSANDTHS}")
    return unit or None


def unit_for(model: str) -> str:
    """The unit in which a model is asked, by the variable, else by the name; thousandths where neither tells.

    Raises INVALID_ARGUMENT.
    """
    return unit_by_variable() or unit_by_name(model) or THOUSANDTHS


def describe_unit(model: str) -> str:
    """What a model counts in, and why we think so, as a sentence. Raises INVALID_ARGUMENT."""
    why = "by the model's name" if unit_by_name(model) else ASSUMED
    source = "PEEKABOO_AI_GRID" if unit_by_variable() else why
    return f"the model counts in {UNIT_NAMES[unit_for(model)]} ({source})"

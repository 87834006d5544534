"""Image sizes and coordinate grids of models, by the model's name."""

from __future__ import annotations

import math
import re
from typing import NamedTuple, Optional

from ..core.errors import invalid
from ..core.models import ImageData, Point
from ..core.settings import settings
from ..desktop.base import Desktop
from ..desktop.images import fit
from ..system.image_files import MODEL_EDGE, model_size

PIXELS, THOUSANDTHS = "pixels", "1000"  # the units of models' coordinates
UNIT_NAMES = {PIXELS: "pixels of the image", THOUSANDTHS: "thousandths of the image's width and height"}
ASSUMED = "grid assumed, not known: run agent --check-model"

# A model answers in the unit of its training, even if the prompt asks for another. Sources: the vendors'
# documents and test harnesses for these models. The first pattern that matches decides.
_FAMILIES = (
    (
        PIXELS,
        r"claude|\bchatgpt|\bgpt-|^o[1-9]\b|computer-use-preview|qwen-?2|ui-?tars-1\.5(?!.*72b)|holo-?1"
        r"|mimo-vl|opencua|\bfara|gta-?1|gelato|llava|kimi",
    ),
    (THOUSANDTHS, r"gemini|gemma|qwen-?3|ui-?tars|gui-owl|glm-?\d|internvl|yutori|doubao|\bseed|holo-?2"),
)
_MAX_IMAGE_BYTES = 3_600_000  # Anthropic accepts 5 MB of base64 per image
# Qwen2.5-VL divides images into patches of 28 x 28 pixels, and Ollama enlarges its images to 1024 patches.
# 1536 patches are 1.2 megapixels, which no vendor shrinks.
_PATCH, _FEWEST_PATCHES, _MOST_PATCHES = 28, 1024, 1536
_SMART_RESIZED = r"qwen-?2|ui-?tars|holo-?1|mimo-vl|opencua|\bfara|gta-?1|gelato"
_SHORT_SIDED = r"\bgpt-4|\bchatgpt-4"


class Grid(NamedTuple):
    """A coordinate grid over an image, for the prompt and for the model's reply."""

    unit: str
    width: int
    height: int

    def describe(self) -> str:
        """Describe the grid for a prompt, with x and y named: models disagree about the order of a pair."""
        meaning, last_x, last_y = "whatever the image's shape, each axis by itself", self.width, self.height
        if self.unit == PIXELS:
            meaning, last_x, last_y = "the pixels of this image", self.width - 1, self.height - 1
        return (
            f"under a grid {self.width} wide and {self.height} high ({meaning}): "
            f"x goes from 0 at the left edge to {last_x} at the right edge, "
            f"y goes from 0 at the top edge to {last_y} at the bottom edge"
        )

    def problem_of(self, x: float, y: float) -> str:
        """Return why x and y are not in this grid; empty if they are."""
        # in thousandths, models answer 1000 for the far edge; in pixels, its number may mean another unit
        for name, value, size in (("x", x, self.width), ("y", y, self.height)):
            if not 0 <= value <= size or (self.unit == PIXELS and value == size):
                return f"{name} is {value:g}, outside the grid of {self.width}x{self.height}"
        if x < 1 and y < 1 and (x % 1 or y % 1):
            return f"x and y look like fractions; give places in the grid of {self.width}x{self.height}"
        return ""

    def pixel_of(self, point: Point, width: int, height: int) -> Point:
        """Convert to a pixel of an image of this size; the model may have received it in another size."""
        x, y = point.x * width / self.width, point.y * height / self.height
        return Point(min(x, width - 1), min(y, height - 1))


def grid_over(unit: str, width: int, height: int) -> Grid:
    """Return the grid over an image that is sent in this size, in pixels."""
    return Grid(unit, width, height) if unit == PIXELS else Grid(unit, int(unit), int(unit))


def base_name(model: str) -> str:
    """Return a model's name in lower case, without a gateway's prefix: `google/gemini-3.6-flash`."""
    return model.lower().rsplit("/", 1)[-1]


def unit_by_name(model: str) -> Optional[str]:
    """Return the unit of the model's family, or None if its name belongs to no known family."""
    return next((unit for unit, pattern in _FAMILIES if re.search(pattern, base_name(model))), None)


def unit_by_variable() -> Optional[str]:
    """Return the unit that PEEKABOO_AI_GRID sets, or None if it is unset. Raises INVALID_ARGUMENT."""
    unit = settings().ai_grid.lower()
    if unit not in ("", PIXELS, THOUSANDTHS):
        raise invalid(f"PEEKABOO_AI_GRID is {unit[:40]!r}", hint=f"set it to {PIXELS} or {THOUSANDTHS}")
    return unit or None


def unit_for(model: str) -> str:
    """Return the unit to ask in, by the variable, the name, else thousandths. Raises INVALID_ARGUMENT."""
    return unit_by_variable() or unit_by_name(model) or THOUSANDTHS


def describe_unit(model: str) -> str:
    """Return a sentence with the model's unit and how it was chosen. Raises INVALID_ARGUMENT."""
    reason = "by the model's name" if unit_by_name(model) else ASSUMED
    source = "PEEKABOO_AI_GRID" if unit_by_variable() else reason
    return f"the model answers in {UNIT_NAMES[unit_for(model)]} ({source})"


def fitted_size(model: str, width: int, height: int, in_pixels: bool = False) -> tuple[int, int]:
    """Return the largest size with these proportions that the vendor does not resize, by the model's name.

    A model answers in pixels of the resized image. Fitting a fitted size changes nothing. in_pixels: True if
    the user set PEEKABOO_AI_GRID=pixels; then a model that is not known to answer in pixels gets a size that
    no known vendor resizes.
    """
    name = base_name(model)
    if re.search(_SMART_RESIZED, name) or (in_pixels and unit_by_name(model) != PIXELS):
        return _fit_smart_resize(width, height)
    # OpenAI shrinks the short side of images for these models to 768
    edge = max(width, height) * 768 // min(width, height) if re.search(_SHORT_SIDED, name) else MODEL_EDGE
    return model_size(width, height, min(edge, MODEL_EDGE))


def _fit_smart_resize(width: int, height: int) -> tuple[int, int]:
    """Return the nearest size of whole patches, which the `smart_resize` of Qwen2.5-VL does not change."""
    columns, rows = max(1, round(width / _PATCH)), max(1, round(height / _PATCH))
    if columns * rows > _MOST_PATCHES:
        factor = math.sqrt(_MOST_PATCHES / (columns * rows))
        columns, rows = (max(1, math.floor(side * factor)) for side in (columns, rows))
    elif columns * rows < _FEWEST_PATCHES:
        factor = math.sqrt(_FEWEST_PATCHES / (columns * rows))
        columns, rows = math.ceil(columns * factor), math.ceil(rows * factor)
    return columns * _PATCH, rows * _PATCH


def fit_for_model(desktop: Desktop, model: str, image: ImageData, wants_places: bool = True) -> ImageData:
    """Resize an image for a model, see fitted_size. An image that fits is returned unchanged.

    wants_places: True if the model is to answer with coordinates; only then its grid matters.
    """
    in_pixels = wants_places and unit_by_variable() == PIXELS
    size = fitted_size(model, image.info.width, image.info.height, in_pixels)
    return fit(desktop, image, size, _MAX_IMAGE_BYTES)

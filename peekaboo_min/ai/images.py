"""Fit images to the sizes that models accept unchanged."""

from __future__ import annotations

import math
import re

from ..core.models import ImageData
from ..desktop.base import Desktop
from ..desktop.images import fit
from ..system.bitmaps import MODEL_EDGE, model_size
from .grid import PIXELS, base_name, unit_by_name

_MAX_IMAGE_BYTES = 3_600_000  # Anthropic accepts 5 MB of base64 per image
# Qwen2.5-VL divides images into patches of 28 x 28 pixels, and Ollama enlarges its images to 1024 patches.
# 1536 patches are 1.2 megapixels, which no vendor shrinks.
_PATCH, _FEWEST_PATCHES, _MOST_PATCHES = 28, 1024, 1536
_SMART_RESIZED = r"qwen-?2|ui-?tars|holo-?1|mimo-vl|opencua|\bfara|gta-?1|gelato"
_SHORT_SIDED = r"\bgpt-4|\bchatgpt-4"


def fitted_size(model: str, width: int, height: int, in_pixels: bool = False) -> tuple[int, int]:
    """Return the largest size with these proportions that the vendor does not resize, by the model's name.

    A model answers in pixels of the resized image. Fitting a fitted size changes nothing. in_pixels: the user
    set PEEKABOO_AI_GRID=pixels; a model of no known pixel family gets a size that no known vendor resizes.
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


def fit_for_model(desktop: Desktop, model: str, image: ImageData, in_pixels: bool = False) -> ImageData:
    """Resize an image for a model, see fitted_size. An image that fits is returned unchanged."""
    size = fitted_size(model, image.info.width, image.info.height, in_pixels)
    return fit(desktop, image, size, _MAX_IMAGE_BYTES)

"""Images for a model: read, checked, at a size that no vendor shrinks."""

from __future__ import annotations

import math
import re
import stat
from pathlib import Path

from ..core.errors import file_errors, invalid
from ..core.models import ImageData
from ..desktop.base import Desktop
from ..system.images import MODEL_BYTES, MODEL_EDGE, image_file, model_size, whole_image
from .grid import PIXELS, base_name, unit_by_name

_MAX_FILE_BYTES = 64 * 1024 * 1024
_MAX_PIXELS = 200_000_000
_MAX_IMAGE_BYTES = 3_600_000  # Anthropic takes 5 MB of base64 per image
_JPEG_QUALITIES = (80, 60, 40, 20)
_PATCH = 28  # Qwen2.5-VL's, pixels
_FEWEST_PATCHES, _MOST_PATCHES = 1024, 1536
_SMART_RESIZED = r"qwen-?2|ui-?tars|holo-?1|mimo-vl|opencua|\bfara|gta-?1|gelato"
_SHORT_SIDED = r"\bgpt-4|\bchatgpt-4"


def load_image(path: Path) -> ImageData:
    """An image file's bytes and true kind, whatever its name. Raises FILE_IO_ERROR, INVALID_ARGUMENT."""
    with file_errors(path):
        status = path.stat()
        # a pipe would block us
        is_readable = stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_FILE_BYTES
        data = path.read_bytes() if is_readable else b""
    info = whole_image(data)
    if not info or info.kind not in ("png", "jpg", "webp") or info.width * info.height > _MAX_PIXELS:
        most = f"{_MAX_FILE_BYTES // 1024**2} MB and {_MAX_PIXELS // 1_000_000} megapixels"
        hint = f"name a PNG, JPEG or WebP file of at most {most}"
        raise invalid(f"{path} is not a whole image that a model takes", hint)
    return ImageData(data, info, path.name, str(path))


def fitted_size(model: str, width: int, height: int, in_pixels: bool = False) -> tuple[int, int]:
    """The largest size in these proportions that nobody shrinks or enlarges on the way to the model.

    By the model's name, because gateways offer every vendor's models. A model whose image is resized answers
    in the pixels of the resized one. A fitted size fits unchanged.
    in_pixels: it answers in pixels, although its name does not tell; then what everything known leaves alone.
    """
    name = base_name(model)
    if re.search(_SMART_RESIZED, name) or (in_pixels and unit_by_name(model) != PIXELS):
        return _fit_smart_resize(width, height)
    # the short side of those is shrunk to 768
    edge = max(width, height) * 768 // min(width, height) if re.search(_SHORT_SIDED, name) else MODEL_EDGE
    return model_size(width, height, min(edge, MODEL_EDGE))


def _fit_smart_resize(width: int, height: int) -> tuple[int, int]:
    """Qwen2.5-VL and its descendants see whole patches. Ollama enlarges their images to 1024 of these first.

    Their own `smart_resize` leaves such a size alone.
    """
    columns, rows = max(1, round(width / _PATCH)), max(1, round(height / _PATCH))
    if columns * rows > _MOST_PATCHES:
        factor = math.sqrt(_MOST_PATCHES / (columns * rows))
        columns, rows = (max(1, math.floor(side * factor)) for side in (columns, rows))
    elif columns * rows < _FEWEST_PATCHES:
        factor = math.sqrt(_FEWEST_PATCHES / (columns * rows))
        columns, rows = math.ceil(columns * factor), math.ceil(rows * factor)
    return columns * _PATCH, rows * _PATCH


def fit_for_model(desktop: Desktop, model: str, image: ImageData, in_pixels: bool = False) -> ImageData:
    """An image as the model should get it, see fitted_size; one that fits already keeps its bytes."""
    size = fitted_size(model, image.info.width, image.info.height, in_pixels)
    return _fit(desktop, image, size, _MAX_IMAGE_BYTES)


def fit_for_client(desktop: Desktop, image: ImageData) -> ImageData:
    """An image as any MCP client takes it, whatever its model; one that fits already keeps its bytes."""
    return _fit(desktop, image, model_size(image.info.width, image.info.height), MODEL_BYTES)


def _fit(desktop: Desktop, image: ImageData, size: tuple[int, int], most_bytes: int) -> ImageData:
    """The image at this size: a PNG where that is small enough, else a JPEG of the best quality that is.

    Where none is, the last and smallest is returned: the vendor may take it.
    """
    is_right_size = size == image.info[1:]
    if is_right_size and len(image.data) <= most_bytes:
        return image
    attempts = [("jpg", quality) for quality in _JPEG_QUALITIES]
    if not is_right_size and image.info.kind != "jpg":
        attempts.insert(0, ("png", _JPEG_QUALITIES[0]))
    for kind, quality in attempts:
        fitted = resized(desktop, image, size, kind, quality)
        if len(fitted.data) <= most_bytes:
            break
    return fitted


def resized(
    desktop: Desktop, image: ImageData, size: tuple[int, int], kind: str, quality: int = 80
) -> ImageData:
    """An image at another size. Raises what fit_image raises."""
    with image_file(image.info.kind, image.data) as source, image_file(kind) as target:
        desktop.fit_image(source, target, *size, kind, quality)
        data = target.read_bytes()
    info = whole_image(data)
    assert info
    return image._replace(data=data, info=info)

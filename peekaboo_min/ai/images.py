"""Images for a model: read, checked, at a size that no vendor shrinks."""

from __future__ import annotations

import math
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..core.errors import PeekabooError, file_errors, invalid
from ..core.models import ImageData
from ..desktop.base import Desktop
from ..system.files import new_temporary_path, write_privately
from ..system.images import MODEL_BYTES, model_size, sniff_image, whole_image
from .grid import PIXELS, base_name, unit_by_name

_MAX_FILE_BYTES = 64 * 1024 * 1024
_MAX_PIXELS = 200_000_000
_MAX_IMAGE_BYTES = 3_600_000  # Anthropic takes 5 MB of base64 per image
_JPEG_QUALITIES = (80, 60, 40, 20)
_NOT_AN_IMAGE = "is not an image, whatever its name suggests"
_PATCH = 28  # Anthropic's and Qwen2.5-VL's, pixels
_FEWEST_PATCHES, _MOST_PATCHES = 1024, 1536
_STRIP = 50  # the longer side in shorter ones
_SMART_RESIZED = r"qwen-?2|ui-?tars|holo-?1|mimo-vl|opencua|\bfara|gta-?1|gelato"
# The families of Claude that take larger images, each from this version on.
_LARGER_FROM = {"opus": (4, 7), "sonnet": (5, 0), "fable": (5, 0), "mythos": (5, 0)}


def load_image(path: Path) -> ImageData:
    """An image file's bytes and true kind, whatever its name. Raises FILE_IO_ERROR, INVALID_ARGUMENT."""
    with file_errors(path):
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe must not block us
            raise _unfit(path, "is not a regular file")
        if status.st_size > _MAX_FILE_BYTES:
            raise _unfit(path, f"has more than {_MAX_FILE_BYTES // 1024 // 1024} MB")
        data = path.read_bytes()
    info = whole_image(data)
    if not info:
        is_part = sniff_image(data) is not None
        raise _unfit(path, "is only a part of an image" if is_part else _NOT_AN_IMAGE if data else "is empty")
    if info.kind in ("gif", "bmp"):
        raise _unfit(path, f"holds a {info.kind} image, which is not supported")
    if info.width * info.height > _MAX_PIXELS:
        raise _unfit(path, f"is too large ({info.width}x{info.height} pixels)")
    return ImageData(data, info, path.name, str(path))


def _unfit(path: Path, why: str) -> PeekabooError:
    return invalid(f"{path} {why}", hint="name a PNG, JPEG or WebP file")


def fitted_size(
    provider: str, model: str, width: int, height: int, in_pixels: bool = False
) -> tuple[int, int]:
    """The largest size in these proportions that nobody shrinks or enlarges on the way to the model.

    By the model's name, because gateways offer every vendor's models. A model whose image is resized answers
    in the pixels of the resized one. A fitted size fits unchanged.
    in_pixels: it answers in pixels, although its name does not tell; then what everything known leaves alone.
    """
    name = base_name(model)
    if "claude" in name or provider == "anthropic":
        return _fit_anthropic(name, width, height)
    if re.search(_SMART_RESIZED, name) or (in_pixels and unit_by_name(model) != PIXELS):
        return _fit_smart_resize(width, height)
    if re.search(r"\bgpt-4|\bchatgpt-4", name):
        return _fit_edges(width, height, 2048, 768)
    size = _fit_edges(width, height, *((1280, 1280) if provider == "ollama" else (1440, 900)))
    return _whole_patches(*size) if re.search(r"qwen-?3", name) else size


def _fit_edges(width: int, height: int, longest: int, shortest: int) -> tuple[int, int]:
    factor = min(1.0, longest / max(width, height), shortest / min(width, height))
    return max(1, round(width * factor)), max(1, round(height * factor))


def _fit_anthropic(name: str, width: int, height: int) -> tuple[int, int]:
    """Anthropic limits the pixels of the long edge, and the number of patches."""
    # where a version is unknown, the smaller size is safe for all
    edge, patches = (2576, 4784) if _takes_larger(name) else (1568, 1568)
    for long_side in range(min(max(width, height), edge), 0, -1):
        size = _fit_edges(width, height, long_side, long_side)
        if math.ceil(size[0] / _PATCH) * math.ceil(size[1] / _PATCH) <= patches:
            break
    return size


def _takes_larger(name: str) -> bool:
    """Whether a model of Claude's name takes larger images than those before it."""
    found = re.search(r"(opus|sonnet|fable|mythos)-(\d+)(?:[-.](\d{1,2})(?!\d))?", name)
    return bool(found and (int(found[2]), int(found[3] or 0)) >= _LARGER_FROM[found[1]])


def _fit_smart_resize(width: int, height: int) -> tuple[int, int]:
    """Qwen2.5-VL and its descendants see whole patches. Ollama enlarges their images to 1024 of these first.

    Their own `smart_resize` leaves such a size alone. A strip is not enlarged: it would become too long.
    """
    columns, rows = max(1, round(width / _PATCH)), max(1, round(height / _PATCH))
    count, is_strip = columns * rows, max(columns, rows) > _STRIP * min(columns, rows)
    if count > _MOST_PATCHES:
        factor = math.sqrt(_MOST_PATCHES / count)
        columns, rows = (max(1, math.floor(side * factor)) for side in (columns, rows))
        columns, rows = min(columns, _MOST_PATCHES // rows), min(rows, _MOST_PATCHES // columns)
    elif count < _FEWEST_PATCHES and not is_strip:
        factor = math.sqrt(_FEWEST_PATCHES / count)
        columns, rows = math.ceil(columns * factor), math.ceil(rows * factor)
    return columns * _PATCH, rows * _PATCH


def _whole_patches(width: int, height: int) -> tuple[int, int]:
    """Qwen3's models see whole patches of 32 pixels, and answer in thousandths."""
    most = max(1280, width, height) // 32
    columns, rows = (max(1, min(most, round(side / 32))) for side in (width, height))
    return 32 * columns, 32 * rows


def fit_for_model(
    desktop: Desktop, provider: str, model: str, image: ImageData, in_pixels: bool = False
) -> ImageData:
    """An image as the model should get it, see fitted_size; one that fits already keeps its bytes."""
    size = fitted_size(provider, model, image.info.width, image.info.height, in_pixels)
    return _fit(desktop, image, size, _MAX_IMAGE_BYTES)


def fit_for_client(desktop: Desktop, image: ImageData) -> ImageData:
    """An image as any MCP client takes it, whatever its model; one that fits already keeps its bytes."""
    return _fit(desktop, image, model_size(image.info), MODEL_BYTES)


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
    with private_copy(image) as source:
        for kind, quality in attempts:
            fitted = resized(desktop, source, size, kind, quality)
            if len(fitted.data) <= most_bytes:
                break
    return image._replace(data=fitted.data, info=fitted.info)


def resized(desktop: Desktop, source: Path, size: tuple[int, int], kind: str, quality: int = 80) -> ImageData:
    """A file's image at another size. Raises INVALID_ARGUMENT where that fails, and what fit_image raises."""
    target = new_temporary_path("model", kind)  # the desktop's programs read and write files
    try:
        desktop.fit_image(source, target, size[0], size[1], kind, quality)
        with file_errors(target):
            data = target.read_bytes()
    finally:
        target.unlink(missing_ok=True)
    info = whole_image(data)
    if info is None:
        raise invalid("the image cannot be scaled", "save it again as PNG")
    return ImageData(data, info)


@contextmanager
def private_copy(image: ImageData) -> Iterator[Path]:
    """An image as a file of ours (0600) while the `with` block runs. Raises FILE_IO_ERROR."""
    path = new_temporary_path("model", image.info.kind)
    write_privately(path, image.data)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)

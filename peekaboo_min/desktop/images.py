"""Load images, resize them with the desktop's programs, fit them for clients."""

from __future__ import annotations

import stat
from pathlib import Path

from ..core.errors import file_errors, invalid
from ..core.models import ImageData
from ..system.files import temporary_file
from ..system.image_files import MODEL_BYTES, model_size, whole_image
from .base import Desktop

# A larger image could fill our memory.
_MAX_FILE_BYTES, _MAX_PIXELS = 64 * 1024 * 1024, 200_000_000
_JPEG_QUALITIES = (80, 60, 40, 20)  # tried in this order until the image is small enough


def load_image(path: Path) -> ImageData:
    """Read an image file; its bytes decide the kind. Raises FILE_IO_ERROR, INVALID_ARGUMENT."""
    with file_errors(path):
        status = path.stat()
        # reading a pipe would block
        is_readable = stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_FILE_BYTES
        data = path.read_bytes() if is_readable else b""
    info = whole_image(data)
    if not info or info.kind not in ("png", "jpg", "webp") or info.width * info.height > _MAX_PIXELS:
        limits = f"{_MAX_FILE_BYTES // 1024**2} MB and {_MAX_PIXELS // 1_000_000} megapixels"
        hint = f"name a PNG, JPEG or WebP file of at most {limits}"
        raise invalid(f"{path} is not a complete image that models accept", hint)
    return ImageData(data, info, path.name, str(path))


def fit_for_client(desktop: Desktop, image: ImageData) -> ImageData:
    """Resize an image so that any MCP client accepts it. An image that fits is returned unchanged."""
    return fit(desktop, image, model_size(image.info.width, image.info.height), MODEL_BYTES)


def fit(desktop: Desktop, image: ImageData, size: tuple[int, int], most_bytes: int) -> ImageData:
    """Resize an image: try PNG, then JPEG with falling quality; return the first that fits, else the last."""
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
    """Resize an image. Raises the errors of Desktop.fit_image."""
    with temporary_file(image.info.kind, image.data) as source, temporary_file(kind) as target:
        desktop.fit_image(source, target, *size, kind, quality)
        data = target.read_bytes()
    info = whole_image(data)
    assert info
    return image._replace(data=data, info=info)

"""Pictures for a model: read, checked, at a size that no vendor shrinks."""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..core.errors import ErrorCode, PeekabooError, file_error
from ..core.models import Picture
from ..desktop.base import Desktop
from ..system.files import new_temporary_path
from ..system.images import sniff_image, whole_image

_FILE_CAP = 64 * 1024 * 1024
_PIXELS_CAP = 200_000_000
_PICTURE_CAP = 3_600_000  # Anthropic takes 5 MB of base64 a picture
_NOT_AN_IMAGE = "is not an image, whatever its name says"
_PATCH = 28  # Anthropic's, pixels


def load_picture(path: Path) -> Picture:
    """An image file's bytes and true kind, whatever its name says. Raises FILE_IO_ERROR, INVALID_ARGUMENT."""
    try:
        data = _read_regular(path)
    except OSError as e:
        raise file_error(path, e) from e
    except ValueError:
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, "a path cannot hold a NUL character") from None
    info = whole_image(data)
    if not info:
        is_part = sniff_image(data) is not None
        raise _unfit(path, "is only a part of an image" if is_part else _NOT_AN_IMAGE if data else "is empty")
    if info.kind == "gif":
        raise _unfit(path, "holds a gif image, which is not supported")
    if info.width * info.height > _PIXELS_CAP:
        raise _unfit(path, f"is too large ({info.width}x{info.height} pixels)")
    return Picture(data, info, path.name, str(path))


def _read_regular(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not hold us
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _unfit(path, "is not a regular file")
        if found.st_size > _FILE_CAP:
            raise _unfit(path, f"has more than {_FILE_CAP // 1024 // 1024} MB")
        with open(descriptor, "rb", closefd=False) as f:
            return f.read(_FILE_CAP)
    finally:
        os.close(descriptor)


def _unfit(path: Path, why: str) -> PeekabooError:
    return PeekabooError(ErrorCode.INVALID_ARGUMENT, f"{path} {why}", hint="name a PNG, JPEG or WebP file")


def fitted_size(provider: str, model: str, width: int, height: int) -> tuple[int, int]:
    """The largest size of this shape that the vendor takes as it is; what it shrinks itself, it answers in other pixels.

    Never larger than the picture, but for the rounding of Qwen's models; a fitted size stays itself.
    """
    if provider == "anthropic":
        return _fit_anthropic(model, width, height)
    if provider == "ollama":
        size = _fit_edges(width, height, 1280, 1280)
    elif provider == "openai" and re.match(r"gpt-4|chatgpt-4", model):
        size = _fit_edges(width, height, 2048, 768)
    else:
        size = _fit_edges(width, height, 1440, 900)
    return _whole_patches(model, *size)


def _fit_edges(width: int, height: int, longest: int, shortest: int) -> tuple[int, int]:
    factor = min(1.0, longest / max(width, height), shortest / min(width, height))
    return max(1, round(width * factor)), max(1, round(height * factor))


def _fit_anthropic(model: str, width: int, height: int) -> tuple[int, int]:
    """At most so many pixels on the long edge, and so many patches."""
    edge, patches = (2576, 4784) if _is_high_resolution(model) else (1568, 1568)
    for long_side in range(min(max(width, height), edge), 0, -1):
        if width >= height:
            size = long_side, max(1, round(long_side * height / width))
        else:
            size = max(1, round(long_side * width / height)), long_side
        if math.ceil(size[0] / _PATCH) * math.ceil(size[1] / _PATCH) <= patches:
            break
    return size


def _is_high_resolution(model: str) -> bool:
    """Opus 4.7 and later. Of other models that is not known, and the smaller size is right for both."""
    found = re.search(r"opus-(\d+)(?:-(\d{1,2})(?!\d))?", model)
    return bool(found) and (int(found[1]), int(found[2] or 0)) >= (4, 7)


def _whole_patches(model: str, width: int, height: int) -> tuple[int, int]:
    """Qwen rounds a picture to whole patches itself, and answers in the rounded pixels (2.5) or in shares of them (3)."""
    found = re.search(r"qwen-?(2\.5|3)-?vl", model.lower())
    if not found:
        return width, height
    patch = 28 if found[1] == "2.5" else 32
    most = max(1280, width, height) // patch
    return tuple(patch * max(1, min(most, round(side / patch))) for side in (width, height))  # type: ignore[return-value]


def fit_pictures(
    desktop: Desktop, provider: str, model: str, pictures: Sequence[Picture]
) -> tuple[Picture, ...]:
    """The pictures as the vendor should get them; one that fits already is left as it is, bytes and all."""
    return tuple(
        _fit_one(desktop, one, fitted_size(provider, model, one.info.width, one.info.height))
        for one in pictures
    )


def _fit_one(desktop: Desktop, picture: Picture, size: tuple[int, int]) -> Picture:
    is_right = size == (picture.info.width, picture.info.height) and picture.info.kind in (
        "png",
        "jpg",
        "webp",
    )
    if is_right and len(picture.data) <= _PICTURE_CAP:
        return picture
    kinds: list[str] = ["jpg"] if is_right or picture.info.kind == "jpg" else ["png", "jpg"]
    for kind in kinds:
        fitted = _scale(desktop, picture, size, kind)
        if len(fitted.data) <= _PICTURE_CAP:
            break
    return fitted


def _scale(desktop: Desktop, picture: Picture, size: tuple[int, int], kind: str) -> Picture:
    """By way of two files of ours: the desktop's programs read and write files, and ours have harmless names."""
    target = new_temporary_path("model", kind)
    try:
        with private_copy(picture) as source:
            desktop.fit_image(source, target, size[0], size[1], kind)
        data = target.read_bytes()
    except OSError as e:
        raise file_error(target, e) from e
    finally:
        target.unlink(missing_ok=True)
    info = sniff_image(data)
    if info is None:
        name = picture.label or "the picture"
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, f"{name} cannot be scaled", hint="save it again as PNG"
        )
    return Picture(data, info, picture.label, picture.source_path)


@contextmanager
def private_copy(picture: Picture) -> Iterator[Path]:
    """A picture as a file of ours (0600) while the `with` block runs. Raises FILE_IO_ERROR."""
    path = new_temporary_path("model", picture.info.kind)
    try:
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
                f.write(picture.data)
        except OSError as e:
            raise file_error(path, e) from e
        yield path
    finally:
        path.unlink(missing_ok=True)

"""Photograph screens and windows, and keep what each pixel means."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional

from ..core.cancellation import in_parallel, pause
from ..core.errors import ErrorCode, PeekabooError
from ..core.log import log_debug
from ..core.models import ImageInfo, Picture, Screenshot, Window
from ..desktop.base import Desktop
from ..desktop.matching import window_by_id
from ..system.images import (
    MODEL_BYTES,
    file_error,
    model_size,
    move_into_place,
    new_temporary_path,
    prepare_target,
    read_image_info,
)
from .capture_request import ImageRequest, Subject, check_dimension, find_subjects, kind_of_files, paths_of
from .coordinates import keep_record

_TRIES = 3
_CAPTURE_SETTLE_S = 0.15
_JPEG_QUALITIES = (80, 60, 40, 20)


@dataclass(frozen=True)
class Photograph:
    """A picture on disk, and what it shows."""

    path: Path
    info: ImageInfo
    subject: Subject
    screenshot: Optional[Screenshot] = None
    """The coordinate record; None where the picture is not one of a window."""


def take_image(desktop: Desktop, request: ImageRequest) -> list[Photograph]:
    """Everything that `image` asks for, as files. Raises PeekabooError; then no file of it remains."""
    check_dimension(request.max_dimension)
    kind = kind_of_files(request)
    subjects = find_subjects(desktop, request)
    targets = paths_of(request, kind, subjects)
    for target in targets:
        prepare_target(target)

    def take(pair: tuple[Subject, Path]) -> Photograph:
        subject, target = pair
        shot = _photograph_subject(desktop, subject, kind, request.max_dimension)
        move_into_place(shot.path, target)
        return replace(shot, path=target)

    return in_parallel(take, list(zip(subjects, targets)))


def photograph_window(
    desktop: Desktop,
    window: Window,
    kind: str,
    max_dimension: Optional[int] = None,
    with_shadow: bool = False,
    keeps_record: bool = True,
) -> Photograph:
    """One window into a file of our temporary folder; a picture with a shadow never has a record."""
    subject = Subject(window.title or window.app_name, "", window=window)
    return _photograph_subject(desktop, subject, kind, max_dimension, with_shadow, keeps_record)


def _photograph_subject(
    desktop: Desktop,
    subject: Subject,
    kind: str,
    max_dimension: Optional[int],
    with_shadow: bool = False,
    keeps_record: bool = True,
) -> Photograph:
    path = new_temporary_path("peekaboo", kind)
    try:
        if subject.window:
            _capture_settled(desktop, subject.window, path, kind, with_shadow)
        elif subject.display:
            desktop.capture_display(subject.display, path, kind)
        info = _checked(path)
        if max_dimension and max(info.width, info.height) > max_dimension:
            path, info = _refit(desktop, path, model_size(info, max_dimension, 10**9), kind)
        path.chmod(0o600)
    except OSError as e:
        path.unlink(missing_ok=True)
        raise file_error(path, e) from e
    except PeekabooError:
        path.unlink(missing_ok=True)
        raise
    record = (
        keep_record(subject.window, info) if subject.window and keeps_record and not with_shadow else None
    )
    return Photograph(path, info, subject, record)


def _capture_settled(desktop: Desktop, window: Window, path: Path, kind: str, with_shadow: bool) -> None:
    """A window that opens or closes just now is listed but cannot be photographed for a moment: try again."""
    for left in reversed(range(_TRIES)):
        try:
            return desktop.capture_window(window, path, kind, with_shadow)
        except PeekabooError as e:
            if e.code is not ErrorCode.CAPTURE_FAILED or not window.is_on_screen:
                raise
            if not left:
                window_by_id(window.window_id, desktop.windows())  # a window that is gone is told as that
                raise
            log_debug(f"window {window.window_id} could not be photographed yet: {e.message}")
            pause(_CAPTURE_SETTLE_S)


def _checked(path: Path) -> ImageInfo:
    """A picture is checked before it is reported: there, not empty, an image by its header, of a size."""
    info = read_image_info(path) if path.is_file() else None
    if info is None:
        raise PeekabooError(
            ErrorCode.CAPTURE_FAILED,
            "the capture program ended well, but left no readable picture",
            hint="see that the screen is unlocked and the window open, then try again",
        )
    return info


def _refit(
    desktop: Desktop, path: Path, size: tuple[int, int], kind: str, quality: int = 80
) -> tuple[Path, ImageInfo]:
    target = new_temporary_path("peekaboo", kind)
    desktop.fit_image(path, target, size[0], size[1], kind, quality)
    path.unlink()
    return target, _checked(target)


def picture_for_model(
    desktop: Desktop, shot: Photograph, kind: Optional[str] = None
) -> tuple[Picture, Optional[Screenshot]]:
    """A photograph as a model should get it: not larger than it would be shrunk to, and not too many bytes.

    Returns the picture and the coordinate record of its own pixels. The file of `shot` is left as it is.
    """
    kind = kind or shot.info.kind
    size = model_size(shot.info)
    data, info = shot.path.read_bytes(), shot.info
    attempts = [(kind, _JPEG_QUALITIES[0])] if size != (info.width, info.height) or kind != info.kind else []
    attempts += [("jpg", quality) for quality in _JPEG_QUALITIES]
    for target_kind, quality in attempts:
        if (
            len(data) <= MODEL_BYTES
            and (info.width, info.height) == size
            and (info.kind == kind or info.kind == "jpg")
        ):
            break
        fitted = new_temporary_path("peekaboo", target_kind)
        try:
            desktop.fit_image(shot.path, fitted, size[0], size[1], target_kind, quality)
            data, info = fitted.read_bytes(), _checked(fitted)
        finally:
            fitted.unlink(missing_ok=True)
    record = shot.screenshot
    if (
        record
        and shot.subject.window
        and (info.width, info.height) != (record.image_width, record.image_height)
    ):
        record = keep_record(shot.subject.window, info)
    return Picture(data, info, shot.subject.label, str(shot.path)), record

"""Photograph screens and windows, and keep what each pixel means."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional

from ..core.cancellation import in_parallel, pause, report_progress
from ..core.errors import ErrorCode, PeekabooError, file_error
from ..core.log import log_debug
from ..core.models import Display, ImageInfo, Picture, Scene, Screenshot, Window
from ..core.settings import settings
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..desktop.matching import find_app, find_window, visible_windows, windows_of
from ..system.files import asked_path, file_name, move_into_place, new_temporary_path
from ..system.images import (
    EXTENSIONS,
    MODEL_BYTES,
    kind_by_name,
    model_size,
    prepare_target,
    read_image_info,
)
from .coordinates import forget_record, keep_record

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
        report_progress(f"captured {clean_text(subject.label)}")
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
    has_record = subject.window and keeps_record and not with_shadow
    record = keep_record(desktop.session, subject.window, info) if subject.window and has_record else None
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
                desktop.snapshot().by_id(window.window_id)  # of a window that is gone, say that
                raise
            log_debug(f"window {window.window_id} could not be photographed yet: {e.message}")
            pause(_CAPTURE_SETTLE_S)


def _checked(path: Path) -> ImageInfo:
    """An image is checked before it is reported: there, not empty, of a size, and whole."""
    info = read_image_info(path) if path.is_file() else None
    if info is None:
        raise PeekabooError(
            ErrorCode.CAPTURE_FAILED,
            "the capture program ended with success, but left no whole image",
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
    desktop: Desktop, shot: Photograph, kind: Optional[str] = None, replaces_file: bool = False
) -> tuple[Picture, Optional[Screenshot]]:
    """A photograph as a model should get it: not larger than it would be shrunk to, and not too many bytes.

    Returns the picture and the coordinate record of its own pixels. The file of `shot` is left as it is;
    replaces_file: nobody gets to see it, so its record is forgotten where the picture has another size.
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
        if replaces_file:
            forget_record(desktop.session, record)
        record = keep_record(desktop.session, shot.subject.window, info)
    return Picture(data, info, shot.subject.label, str(shot.path)), record


_STEM_CHARACTERS = 50


@dataclass(frozen=True)
class ImageRequest:
    """What `image` was asked. Exactly what the specification's parameters say; None means not given."""

    app: Optional[str] = None
    mode: Optional[str] = None
    """screen, window, multi or frontmost; None: window when an app or a window is named, else screen."""
    window_title: Optional[str] = None
    window_index: Optional[int] = None
    window_id: Optional[int] = None
    screen_index: Optional[int] = None
    kind: Optional[str] = None
    """png or jpg; None: what the path's name says, else png."""
    path: Optional[str] = None
    max_dimension: Optional[int] = None
    is_temporary: bool = False
    """True where no file is wanted: only what is returned as data."""


@dataclass(frozen=True)
class Subject:
    """One thing to photograph: a display, or a window with its index in its app."""

    label: str
    suffix: str
    """What its file's name gets where several pictures share one path."""
    display: Optional[Display] = None
    window: Optional[Window] = None
    index: Optional[int] = None


def check_dimension(max_dimension: Optional[int]) -> None:
    """Raises INVALID_ARGUMENT for a size that no picture can have."""
    if max_dimension is not None and max_dimension < 1:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT,
            f"max_dimension is {max_dimension}",
            hint="give the pixels of the long side, 1 or more",
        )


def find_subjects(desktop: Desktop, request: ImageRequest) -> list[Subject]:
    mode = request.mode or (
        "window" if request.app is not None or request.window_id is not None else "screen"
    )
    if mode == "screen" and (request.window_title is not None or request.window_index is not None):
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT,
            "a window's title or index is asked for, but no app",
            hint="name its app, or drop it",
        )
    scene = desktop.snapshot()
    windows = scene.windows
    if mode == "screen":
        return _screens(scene, request.screen_index)
    if request.window_id is not None:
        return [_window_subject(scene.by_id(request.window_id), None)]
    if mode == "frontmost":
        return [_window_subject(_frontmost(windows), 0)]
    if request.app is None:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, f"mode {mode} needs an app", hint="name one, or a window id"
        )
    app = find_app(request.app, scene.apps)
    own = visible_windows(windows_of(app, windows))
    if mode == "multi":
        find_window(app, own)  # raises when there is none
        return [_window_subject(one, number) for number, one in enumerate(own)]
    chosen = find_window(app, own, request.window_title, request.window_index)
    return [_window_subject(chosen, own.index(chosen))]


def _screens(scene: Scene, index: Optional[int]) -> list[Subject]:
    displays = scene.displays
    if not displays:
        raise PeekabooError(
            ErrorCode.CAPTURE_FAILED, "no displays available for capture", hint="wake or attach a display"
        )
    if index is not None and not 0 <= index < len(displays):
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT,
            f"there is no screen {index}",
            hint=f"there are {len(displays)}, counted from 0",
        )
    return [
        Subject(
            f"Display {display.number}" + (" / Main" if display.is_main else ""),
            f"_display{number}" + ("_main" if display.is_main else ""),
            display=display,
            index=number,
        )
        for number, display in enumerate(displays)
        if index is None or number == index
    ]


def _window_subject(window: Window, index: Optional[int]) -> Subject:
    label = window.title or window.app_name
    return Subject(label, f"_window{index or 0}_{label}", window=window, index=index)


def _frontmost(windows: Sequence[Window]) -> Window:
    visible = visible_windows(windows)
    for one in [*(one for one in visible if one.is_focused), *visible]:
        return one
    raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, "there is no window on the screen", hint="open one")


def _asked_path(request: ImageRequest) -> Optional[Path]:
    """Where the pictures go: the asked path, else the environment's; None for our temporary folder."""
    asked = request.path or ("" if request.is_temporary else settings().default_save_path)
    return asked_path(asked) if asked else None


def _names_a_file(request: ImageRequest, path: Path) -> bool:
    return path.suffix.lower() in EXTENSIONS and not (request.path or "").endswith("/") and not path.is_dir()


def kind_of_files(request: ImageRequest) -> str:
    """png or jpg: a file's bytes are what its name says, whatever the format asked. Raises FILE_IO_ERROR."""
    base = _asked_path(request)
    try:
        is_free = base is None or not _names_a_file(request, base)
    except OSError as e:  # a name that no file system takes
        raise file_error(Path(request.path or settings().default_save_path), e) from e
    return request.kind or "png" if is_free or base is None else kind_by_name(base)


def paths_of(request: ImageRequest, kind: str, subjects: list[Subject]) -> list[Path]:
    base = _asked_path(request)
    if base is None:
        return [new_temporary_path(_stem(one), kind) for one in subjects]
    if not _names_a_file(request, base):
        return [base / file_name(f"{_moment()}_{_stem(one)}", kind) for one in subjects]
    if len(subjects) == 1:
        return [base]
    stem = clean_text(
        base.stem, _STEM_CHARACTERS
    )  # so that the end, which tells them apart, is not what is cut
    return [base.parent / file_name(stem + one.suffix, base.suffix[1:]) for one in subjects]


def _stem(subject: Subject) -> str:
    return (f"{subject.window.app_name}" if subject.window else "screen") + subject.suffix


def _moment() -> str:
    # two captures within a second must not meet
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}"

"""What `image` was asked: its subjects, and the paths of their files."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from ..core.errors import ErrorCode, PeekabooError
from ..core.models import Display, Window
from ..core.settings import settings
from ..desktop.base import Desktop
from ..desktop.matching import find_app, find_window, visible_windows, window_by_id, windows_of
from ..system.images import EXTENSIONS, clean_text, file_error, file_name, kind_by_name, new_temporary_path

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
    if mode == "screen":
        return _screens(desktop, request.screen_index)
    windows = desktop.windows()
    if request.window_id is not None:
        return [_window_subject(window_by_id(request.window_id, windows), None)]
    if mode == "frontmost":
        return [_window_subject(_frontmost(windows), 0)]
    if request.app is None:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, f"mode {mode} needs an app", hint="name one, or a window id"
        )
    app = find_app(request.app, desktop.apps())
    own = visible_windows(windows_of(app, windows))
    if mode == "multi":
        find_window(app, own)  # raises when there is none
        return [_window_subject(one, number) for number, one in enumerate(own)]
    chosen = find_window(app, own, request.window_title, request.window_index)
    return [_window_subject(chosen, own.index(chosen))]


def _screens(desktop: Desktop, index: Optional[int]) -> list[Subject]:
    displays = desktop.displays()
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


def _frontmost(windows: list[Window]) -> Window:
    visible = visible_windows(windows)
    for one in [*(one for one in visible if one.is_focused), *visible]:
        return one
    raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, "there is no window on the screen", hint="open one")


def _asked_path(request: ImageRequest) -> Optional[Path]:
    """Where the pictures go: the asked path, else the environment's; None for our temporary folder."""
    asked = request.path or ("" if request.is_temporary else settings().default_save_path)
    return Path(asked).expanduser().absolute() if asked else None


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

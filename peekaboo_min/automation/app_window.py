"""The job of `screenshot_app_window`, with its document's names and errors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from ..core.cancellation import time_budget
from ..core.errors import ErrorCode, PeekabooError, RelayedError
from ..core.log import log_debug
from ..core.models import ImageInfo, Result, Scene, Window
from ..desktop.base import Desktop
from ..desktop.matching import app_by_bundle_id, cover_at, find_app, find_window, visible_windows, windows_of
from ..system.files import new_temporary_path
from ..system.images import read_image_info
from .capture import photograph_window

_SHORTEST_MS, _LONGEST_MS = 100, 50_000

# Our codes, by the names that its document gives them.
_NAMES = {
    ErrorCode.APP_NOT_FOUND: "ProcessNotFound",
    ErrorCode.AMBIGUOUS_APP_IDENTIFIER: "ProcessNotFound",
    ErrorCode.WINDOW_NOT_FOUND: "NoWindow",
    ErrorCode.TIMEOUT: "Timeout",
    ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING: "PermissionDenied",
    ErrorCode.CAPTURE_FAILED: "CaptureFailed",
    ErrorCode.PROGRAM_FAILED: "CaptureFailed",
    ErrorCode.SCREEN_LOCKED: "CaptureFailed",
    ErrorCode.NO_GUI_SESSION: "CaptureFailed",
    ErrorCode.FILE_IO_ERROR: "CaptureFailed",
}


@dataclass(frozen=True)
class AppWindowRequest:
    """What screenshot_app_window was asked; the time is for all its programs together."""

    bundle_id: Optional[str]
    app_name: Optional[str]
    window_index: int
    kind: str
    includes_shadow: bool
    timeout_ms: int
    prefers_window_id: bool


def app_window_result(desktop: Desktop, request: AppWindowRequest) -> Result:
    """`{path, uri, appName, rect{x,y,w,h}, scale, format}`; the file lives its time in our temporary folder.

    Raises RelayedError ProcessNotFound, NoWindow, CaptureFailed, Timeout, PermissionDenied.
    """
    if not (request.bundle_id or "").strip() and not (request.app_name or "").strip():
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, "Either bundleId or appName must be given.", hint="name the app"
        )
    if not _SHORTEST_MS <= request.timeout_ms <= _LONGEST_MS:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT,
            f"timeoutMs is {request.timeout_ms}",
            hint=f"it is {_SHORTEST_MS} to {_LONGEST_MS}",
        )
    try:
        with time_budget(request.timeout_ms / 1000):
            return _photograph_app_window(desktop, request)
    except PeekabooError as e:
        if e.code not in _NAMES:
            raise
        raise RelayedError(_NAMES[e.code], e.code, e.message, e.hint, e.details) from e


def _photograph_app_window(desktop: Desktop, request: AppWindowRequest) -> Result:
    bundle_id, scene = (request.bundle_id or "").strip(), desktop.snapshot()
    app = (
        app_by_bundle_id(bundle_id, scene.apps) if bundle_id else find_app(request.app_name or "", scene.apps)
    )
    own = visible_windows(windows_of(app, scene.windows))
    window = find_window(app, own, index=request.window_index)
    path, info = _take(desktop, window, scene, request)
    scale = (
        _scale_of(scene, window) if request.includes_shadow else round(info.width / window.bounds.width, 4)
    )
    data: dict[str, Any] = {
        "path": str(path),
        "uri": path.as_uri(),
        "appName": app.name,
        "rect": window.bounds.as_short_data(),
        "scale": scale,
        "format": info.kind,
    }
    return Result(f"photographed {app.name}: {path}", data, files=(path,))


def _take(
    desktop: Desktop, window: Window, scene: Scene, request: AppWindowRequest
) -> tuple[Path, ImageInfo]:
    """By the window's id; by its rectangle on the screen when that is preferred, or when the id fails and it is in front."""
    if request.prefers_window_id:
        try:
            shot = photograph_window(desktop, window, request.kind, with_shadow=request.includes_shadow)
            return shot.path, shot.info
        except PeekabooError as e:
            if e.code is not ErrorCode.CAPTURE_FAILED or cover_at(
                window.bounds.centre, window, scene.windows
            ):
                raise
            log_debug(f"window {window.window_id} failed by its id, trying its rectangle: {e.message}")
    path = new_temporary_path("peekaboo", request.kind)
    desktop.capture_rect(window.bounds, path, request.kind)
    path.chmod(0o600)
    info = read_image_info(path)
    if info is None:
        raise PeekabooError(
            ErrorCode.CAPTURE_FAILED, "the rectangle made no picture", hint="see that it is on the screen"
        )
    return path, info


def _scale_of(scene: Scene, window: Window) -> float:
    """The scale of the display that holds the window's centre: a shadow's margin hides it in the picture's size."""
    displays = scene.displays
    return next(
        (one.scale for one in displays if one.bounds.contains(window.bounds.centre)), displays[0].scale
    )

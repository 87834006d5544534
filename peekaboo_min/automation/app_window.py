"""The job of `screenshot_app_window`, with its document's names and errors."""

from __future__ import annotations

from typing import Any

from ..core.cancellation import time_budget
from ..core.errors import ErrorCode, PeekabooError, RelayedError
from ..core.models import Result, Scene, Window
from ..desktop.base import Desktop
from ..desktop.matching import app_by_bundle_id, find_app, find_window, visible_windows, windows_of
from .capture import CapturedImage, scene_to_capture, screenshot_rect, screenshot_window_or_rect

_SHORTEST_MS, _LONGEST_MS = 100, 50_000
_NO_SHADOW = "the image shows the window's rectangle on the screen, without a shadow"

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


def app_window_result(
    desktop: Desktop,
    bundle_id: str,
    app_name: str,
    *,
    window_index: int,
    kind: str,
    has_shadow: bool,
    timeout_ms: int,
    prefers_window_id: bool,
) -> Result:
    """`{path, uri, appName, rect{x,y,w,h}, scale, format}`; the file lives its time in our temporary folder.

    bundle_id, app_name: "" for not given. timeout_ms: for all programs together.
    Raises RelayedError ProcessNotFound, NoWindow, CaptureFailed, Timeout, PermissionDenied.
    """
    if not bundle_id and not app_name:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, "Either bundleId or appName must be given.", hint="name the app"
        )
    if not _SHORTEST_MS <= timeout_ms <= _LONGEST_MS:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT,
            f"timeoutMs is {timeout_ms}",
            hint=f"it is {_SHORTEST_MS} to {_LONGEST_MS}",
        )
    try:
        with time_budget(timeout_ms / 1000):
            scene = scene_to_capture(desktop)
            app = app_by_bundle_id(bundle_id, scene.apps) if bundle_id else find_app(app_name, scene.apps)
            window = find_window(app, visible_windows(windows_of(app, scene.windows)), index=window_index)
            if prefers_window_id:
                image = screenshot_window_or_rect(desktop, scene, window, kind, with_shadow=has_shadow)
            else:
                image = screenshot_rect(desktop, window, kind)
    except PeekabooError as e:
        if e.code not in _NAMES:
            raise
        raise RelayedError(_NAMES[e.code], e.code, e.message, e.hint, e.details) from e
    data: dict[str, Any] = {
        "path": str(image.path),
        "uri": image.path.as_uri(),
        "appName": app.name,
        "rect": window.bounds.as_short_data(),
        "scale": _scale(scene, window, image, has_shadow),
        "format": image.info.kind,
    }
    messages = (_NO_SHADOW,) if has_shadow and image.is_of_rect else ()
    return Result(f"screenshot of {app.name}: {image.path}", data, messages=messages, files=(image.path,))


def _scale(scene: Scene, window: Window, image: CapturedImage, has_shadow: bool) -> float:
    """Pixels per point. A shadow's margin hides it in the image's size: then that of the window's display."""
    if not has_shadow or image.is_of_rect:
        return round(image.info.width / window.bounds.width, 4)
    centre, displays = window.bounds.centre, scene.displays
    return next((one.scale for one in displays if one.bounds.contains(centre)), displays[0].scale)

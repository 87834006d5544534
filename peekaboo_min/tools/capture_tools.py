"""The specified tools: image, analyze, list, screenshot_app_window."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Union

from ..automation.capture import recorded, save_images, scene_to_capture, screenshot_rect, screenshot_window
from ..automation.image import ImageRequest, image_result
from ..automation.listing import app_windows, running_apps
from ..core.call import time_budget
from ..core.errors import ErrorCode, PeekabooError, check_range, invalid
from ..core.models import Result
from ..core.settings import image_lifetime, settings
from ..desktop.matching import app_by_bundle_id, find_app, find_window, visible_windows, windows_of
from ..desktop.select import this_desktop
from ..integrations.peekaboo_cli import delegate_path, image_by_cli, list_by_cli
from ..system.files import new_temporary_path
from .list_tools import AnalyzeType


@dataclass(frozen=True)
class ProviderConfig:
    """Which provider and model to ask."""

    type: AnalyzeType = field(
        default="auto",
        metadata={
            "description": "AI provider. 'auto' uses server's PEEKABOO_AI_PROVIDERS ENV preference. Specific "
            "provider must be one of the currently implemented options ('ollama', 'openai', 'gemini', "
            "'anthropic', 'ocr') and enabled in server's PEEKABOO_AI_PROVIDERS. Default: auto."
        },
    )
    model: Optional[str] = field(
        default=None, metadata={"description": "Optional. Default: the configured model."}
    )


@dataclass(frozen=True)
class WindowTitle:
    title: str = field(metadata={"description": "Capture window by title."})


@dataclass(frozen=True)
class WindowIndex:
    index: int = field(
        metadata={
            "description": "Capture window by index (0=frontmost). 'capture_focus' might need to be "
            "'foreground'.",
            "ge": 0,
        }
    )


# The specification of screenshot_app_window has its own names for our codes.
_DOCUMENT_NAMES = {
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


def image(
    app: Annotated[
        Optional[str],
        "Optional. Target application: name, bundle ID, or partial name. If omitted, captures screen(s). "
        "Uses fuzzy matching.",
    ] = None,
    path: Annotated[
        Optional[str],
        "Optional. Base absolute path for saving. One image is saved at exactly this path; several get "
        "suffixes, such as _display0_main or _window1_TITLE. If omitted, the server checks the "
        "PEEKABOO_DEFAULT_SAVE_PATH environment variable. If neither is set, a temporary folder is used. If "
        "'return_data' true, images saved AND returned if a path is determined (either from input or ENV).",
    ] = None,
    mode: Annotated[
        Optional[Literal["screen", "window", "multi"]],
        "Capture mode. Defaults to 'window' if 'app' is provided, otherwise 'screen'.",
    ] = None,
    window_specifier: Annotated[
        Optional[Union[WindowTitle, WindowIndex]],
        "Optional. Specifies which window for 'window' mode. Defaults to main/frontmost of target app.",
    ] = None,
    format: Annotated[
        Optional[Literal["png", "jpg"]], "Output image format. Defaults to 'png'.", "png"
    ] = None,
    return_data: Annotated[
        bool,
        "Optional. If true, image data is returned in response content (one item for 'window' mode, "
        "multiple for 'screen' or 'multi' mode). Defaults to false.",
    ] = False,
    capture_focus: Annotated[
        Literal["background", "foreground"],
        "Optional. Focus behavior. 'background' (default): capture without altering window focus. "
        "'foreground': bring target to front before capture.",
    ] = "background",
    question: Annotated[
        Optional[str],
        "Optional. A question about the image(s), answered by the first operational AI provider.",
    ] = None,
    window_id: Annotated[Optional[int], "Optional. From list_windows, instead of app."] = None,
    max_dimension: Annotated[Optional[int], "Optional. Shrink to this many pixels on the long side."] = None,
) -> Result:
    """Capture screen content as pictures: screenshots of the desktop, a monitor, an app or its windows.

    Targets: entire screen (each display separately), a specific application window, or all windows of an
    application. Supports foreground/background capture. Captured image(s) can be saved to file(s) and/or
    returned directly as image data. Window shadows/frames are automatically excluded. Application
    identification uses intelligent fuzzy matching. The pixels of a screen are not for click.
    """
    window = (getattr(window_specifier, "title", None), getattr(window_specifier, "index", None), window_id)
    is_temporary = (return_data or question is not None) and not (path or settings().default_save_path)
    request = ImageRequest(app, mode, *window, None, format, path, max_dimension, is_temporary)
    if program := (delegate_path() if question is None else None):
        return image_by_cli(program, request, capture_focus, return_data)
    return image_result(this_desktop(), request, capture_focus, return_data, question)


def analyze(
    image_path: Annotated[str, "Required. Absolute path to image file (.png, .jpg, .webp) to be analyzed."],
    question: Annotated[str, "Required. Question for the AI about the image."],
    provider_config: Annotated[
        Optional[ProviderConfig],
        "Optional. Explicit provider/model. Validated against server's PEEKABOO_AI_PROVIDERS.",
    ] = None,
) -> Result:
    """Analyze an image file (picture, photo, screenshot) using a configured AI model (local Ollama, cloud
    OpenAI, etc.) and return a textual analysis/answer: describe what it shows or says, read it, answer a
    question. Requires image path. AI provider selection and model defaults are governed by the server's
    PEEKABOO_AI_PROVIDERS environment variable and client overrides.
    """  # noqa: D205 - the words of the specification
    from ..ai.client import analyze_file  # 25 ms that the capture tools do not need

    config = provider_config or ProviderConfig()
    model = (config.model or "").strip() or None  # strict clients send an empty string for "not given"
    return analyze_file(this_desktop(), image_path, question, config.type, model)


def list_items(
    item_type: Annotated[
        Optional[Literal["running_applications", "application_windows", "server_status"]],
        "What to list. 'server_status' returns Peekaboo server info. Defaults to 'application_windows' when "
        "'app' is given, otherwise 'running_applications'.",
    ] = None,
    app: Annotated[
        Optional[str],
        "Required if 'item_type' is 'application_windows'. Target application. Uses fuzzy matching.",
    ] = None,
    include_window_details: Annotated[
        Optional[list[Literal["off_screen", "bounds", "ids"]]],
        "Optional, for 'application_windows'. Additional window details; 'ids' for window_id. "
        "Example: ['bounds', 'ids']",
    ] = None,
) -> Result:
    """List system items: all running applications (apps), windows of a specific app, or server status.

    Programs with their process ids (pid). Allows specifying window details. App ID uses fuzzy matching. The
    status shows which permissions this machine has: record the screen, control the mouse.
    """
    item_type = item_type or ("application_windows" if app is not None else "running_applications")
    details = include_window_details or []
    if item_type == "application_windows" and not (app or "").strip():
        raise invalid("For 'application_windows', 'app' identifier is required.")
    if item_type == "server_status" and (app or details):
        raise invalid("'app' and 'include_window_details' not applicable for 'server_status'.")
    if details and item_type != "application_windows":
        raise invalid("'include_window_details' only for 'application_windows'.")
    if item_type == "server_status":
        from .status import server_status_text  # it imports the models' client

        return Result(server_status_text(this_desktop()))
    program = delegate_path()
    if item_type == "running_applications":
        answer = list_by_cli(program, None, ()) if program else running_apps(this_desktop())
        return answer._replace(data={"application_list": answer.data["applications"]})
    name = app or ""
    answer = list_by_cli(program, name, details) if program else app_windows(this_desktop(), name, details)
    windows = [dict(window) for window in answer.data["windows"]]
    for window in windows:
        if isinstance(bounds := window.get("bounds"), dict):
            window["bounds"] = _with_short_names(bounds)
    info = answer.data["target_application_info"]
    return answer._replace(data={"window_list": windows, "target_application_info": info})


def screenshot_app_window(
    bundleId: Annotated[Optional[str], "this or appName is required"] = None,
    appName: Annotated[Optional[str], "this or bundleId is required"] = None,
    windowIndex: Annotated[int, "which of its windows, 0 = frontmost; default 0"] = 0,
    format: Annotated[Literal["png", "jpg"], "png or jpg; default png"] = "png",
    includeShadow: Annotated[bool, "include the window's shadow; default false"] = False,
    timeoutMs: Annotated[int, "for the whole call, 100 to 50000; default 10000"] = 10_000,
    preferWindowId: Annotated[
        bool, "capture the window itself, even if covered; false: the screen's pixels there; default true"
    ] = True,
) -> Result:
    """Save a screenshot of one window of an app as a temporary file; return path, URI, rectangle and scale.

    take_window_screenshot returns the image itself.

    Example: peekaboo-min screenshot-app-window --appName Safari
    """
    bundle_id = (bundleId or "").strip()
    if not bundle_id and not (appName or "").strip():
        raise invalid("Either bundleId or appName must be given.", "name the app")
    check_range("timeoutMs", timeoutMs, 100, 50_000)
    desktop = this_desktop()
    try:
        with time_budget(timeoutMs / 1000):
            scene = scene_to_capture(desktop)
            apps = scene.apps
            app = app_by_bundle_id(bundle_id, apps) if bundle_id else find_app(appName or "", apps)
            window = find_window(app, visible_windows(windows_of(app, scene.windows)), index=windowIndex)
            if preferWindowId:
                image = screenshot_window(desktop, scene, window, format, includeShadow)
                if not includeShadow:  # a shadow's margin would shift every pixel
                    image = recorded(desktop, image)
            else:
                image = screenshot_rect(desktop, window, format)
            (image,) = save_images([image], [new_temporary_path("peekaboo", format)])
    except PeekabooError as e:
        e.code_name = _DOCUMENT_NAMES.get(e.code, e.code_name)
        if e.code is ErrorCode.TIMEOUT:
            e.hint = f"raise timeoutMs; {e.hint}"
        raise
    window = image.subject.window or window
    has_shadow = includeShadow and not image.points(window.scale).has_size_of(window.bounds)
    data = {
        "path": image.path,
        "uri": Path(image.path).as_uri(),
        "appName": app.name,
        "rect": _with_short_names(window.bounds.as_data()),
        # the shadow's margin makes the image larger than the window
        "scale": window.scale if has_shadow else round(image.info.width / window.bounds.width, 4),
        "format": image.info.kind,
    }
    messages = ("the image shows the window without a shadow",) if includeShadow and not has_shadow else ()
    kept = f"the file is temporary: it is kept {image_lifetime()}"
    return Result(f"screenshot of {app.name}: {image.path}", data, messages=(kept, *messages))


def _with_short_names(bounds: dict[str, Any]) -> dict[str, Any]:
    return {{"width": "w", "height": "h"}.get(name, name): value for name, value in bounds.items()}

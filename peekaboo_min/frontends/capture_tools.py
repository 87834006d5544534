"""The capture tools: image, analyze, list, screenshot_app_window."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Union

from ..automation.capture import recorded, save_images, scene_to_capture, screenshot_rect, screenshot_window
from ..automation.image import ImageRequest, image_result
from ..automation.listing import list_app_windows, list_apps
from ..core.cancellation import time_budget
from ..core.errors import ErrorCode, PeekabooError, check_range, invalid
from ..core.models import MCP_ONLY, SHELL_ONLY, Offer, Result
from ..core.settings import image_lifetime, settings, settings_with_env_file
from ..desktop.matching import app_by_bundle_id, find_app, find_window, visible_windows, windows_of
from ..desktop.select import this_desktop
from ..integrations.peekaboo_cli import delegate_path, image_by_cli, list_by_cli
from ..system.files import new_temporary_path

AnalyzeType = Literal["auto", "ollama", "openai", "gemini", "anthropic", "ocr"]


@dataclass(frozen=True)
class ProviderConfig:
    """Which provider and model to ask."""

    type: AnalyzeType = field(default="auto", metadata={"description": "default auto: the first operational"})
    model: Optional[str] = field(default=None, metadata={"description": "default: the configured one"})


@dataclass(frozen=True)
class WindowTitle:
    """A window by its title, or a part of it."""

    title: str = field(metadata={"description": "the title or a part of it; case does not matter"})


@dataclass(frozen=True)
class WindowIndex:
    """A window by its position among its app's windows."""

    index: int = field(metadata={"description": "0 is the frontmost", "ge": 0})


# The names that the specification of screenshot_app_window gives to our codes.
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
SavePath = Annotated[
    Optional[str],
    "Optional. Base absolute path for saving. For 'screen' or 'multi' mode, display/window info is "
    "appended by backend. If omitted, the server checks the PEEKABOO_DEFAULT_SAVE_PATH environment "
    "variable. If neither is set, a temporary folder is used. If 'return_data' true, images saved AND "
    "returned if a path is determined (either from input or ENV).",
    Offer(
        shell_help="a file (.png, .jpg), a folder, or - for stdout; without it a temporary file, kept for 10 "
        "minutes"
    ),
]
Mode = Annotated[
    Optional[Literal["screen", "window", "multi"]],
    "Capture mode. Defaults to 'window' if 'app' is provided, otherwise 'screen'.",
    Offer(shell_choices=("frontmost",)),
]
WindowSpecifier = Annotated[
    Optional[Union[WindowTitle, WindowIndex]],
    'Optional. Specifies which window for \'window\' mode: {"title": "..."} or {"index": 0} '
    "(0=frontmost). Defaults to main/frontmost of target app.",
    MCP_ONLY,
]
CaptureFocus = Annotated[
    Literal["background", "foreground"],
    "Optional. Focus behavior. 'background' (default): capture without altering window focus. "
    "'foreground': bring target to front before capture.",
    Offer(shell_choices=("auto",)),
]


def image(
    app: Annotated[
        Optional[str],
        "Optional. Target application: name, bundle ID, or partial name. If omitted, captures screen(s). "
        "Uses fuzzy matching.",
    ] = None,
    path: SavePath = None,
    mode: Mode = None,
    window_specifier: WindowSpecifier = None,
    format: Annotated[
        Optional[Literal["png", "jpg"]],
        "Output image format. Defaults to 'png'.",
        Offer(shell_help="default: as the path's name says, else png"),
    ] = None,
    return_data: Annotated[
        bool,
        "Optional. If true, image data is returned in response content (one item for 'window' mode, "
        "multiple for 'screen' or 'multi' mode). Defaults to false.",
        MCP_ONLY,
    ] = False,
    capture_focus: CaptureFocus = "background",
    question: Annotated[
        Optional[str],
        "Optional. A question about the image(s), answered by the first operational AI provider.",
    ] = None,
    window_id: Annotated[
        Optional[int],
        "Optional. A window's id from list_windows, instead of 'app'. Pixels of screens are not for click.",
    ] = None,
    max_dimension: Annotated[Optional[int], "Optional. Shrink to this many pixels on the long side."] = None,
    window_title: Annotated[
        Optional[str], "the window with this title, or this in its title", SHELL_ONLY
    ] = None,
    window_index: Annotated[Optional[int], "the window with this index, 0 = frontmost", SHELL_ONLY] = None,
    screen_index: Annotated[Optional[int], "only this screen, 0 = the main one", SHELL_ONLY] = None,
    in_shell: bool = False,
) -> Result:
    """Captures macOS screen content. Targets: entire screen (each display separately), a specific
    application window, or all windows of an application. Supports foreground/background capture. Captured
    image(s) can be saved to file(s) and/or returned directly as image data. Window shadows/frames are
    automatically excluded. Application identification uses intelligent fuzzy matching.

    In the shell: Captures screens, one window, or all windows of an app, as files.

    Example: peekaboo-min image --app Safari --path shot.png
    leaves shot.png; with --mode multi it leaves shot_window0_TITLE.png, shot_window1_TITLE.png, ...
    """
    if isinstance(window_specifier, WindowTitle):
        window_title = window_specifier.title
    elif isinstance(window_specifier, WindowIndex):
        window_index = window_specifier.index
    has_file = in_shell or bool(path or settings().default_save_path)
    request = ImageRequest(
        app, mode, window_title, window_index, window_id, screen_index, format, path, max_dimension,
        is_temporary=(return_data or question is not None) and not has_file,
    )  # fmt: skip
    delegate = None if in_shell or question is not None else delegate_path()
    if delegate:
        return image_by_cli(this_desktop(), delegate, request, capture_focus, return_data)
    return image_result(this_desktop(), request, capture_focus, return_data, question)


def analyze(
    image_path: Annotated[
        str,
        "Required. Absolute path to image file (.png, .jpg, .webp) to be analyzed.",
        Offer(shell_help="the image file: .png, .jpg or .webp"),
    ],
    question: Annotated[str, "Required. Question for the AI about the image."],
    provider_config: Annotated[
        Optional[ProviderConfig],
        'Optional. Explicit provider/model, like {"type": "ollama", "model": "qwen3-vl:8b"}. Validated '
        "against server's PEEKABOO_AI_PROVIDERS; type 'auto' (the default) takes the first operational one; "
        "without a model the configured one, or the provider's default.",
        MCP_ONLY,
    ] = None,
    provider: Annotated[
        AnalyzeType, "default auto: the first one of PEEKABOO_AI_PROVIDERS that is operational", SHELL_ONLY
    ] = "auto",
    model: Annotated[Optional[str], "default: the configured one", SHELL_ONLY] = None,
    in_shell: bool = False,
) -> Result:
    """Analyzes an image file using a configured AI model (local Ollama, cloud OpenAI, etc.) and returns a
    textual analysis/answer. Requires image path. AI provider selection and model defaults are governed by
    the server's PEEKABOO_AI_PROVIDERS environment variable and client overrides.

    In the shell: Asks a configured model about an image file. Keys may be in a file .env in this folder.

    Example: peekaboo-min analyze shot.png "What does it say?"
    """
    from ..ai.client import analyze_file  # 25 ms that a command which only captures can spare

    if in_shell:
        settings_with_env_file(Path.cwd())
    wanted = provider_config or ProviderConfig(provider, model)
    model = (wanted.model or "").strip() or None  # strict clients leave nothing out
    return analyze_file(this_desktop(), image_path, question, wanted.type, model)


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
        "Optional, for 'application_windows'. Additional window details; 'ids' are what other tools take as "
        "window_id. Example: ['bounds', 'ids']",
    ] = None,
) -> Result:
    """Lists system items: all running applications, windows of a specific app, or server status. Allows
    specifying window details. App ID uses fuzzy matching.
    """
    item_type = item_type or ("application_windows" if app is not None else "running_applications")
    details = include_window_details
    if item_type == "application_windows" and not (app or "").strip():
        raise invalid("For 'application_windows', 'app' identifier is required.")
    if item_type == "server_status" and (app or details):
        raise invalid("'app' and 'include_window_details' not applicable for 'server_status'.")
    if details and item_type != "application_windows":
        raise invalid("'include_window_details' only for 'application_windows'.")
    if item_type == "server_status":
        from .doctor import server_status_text  # it needs the models' client as well

        return Result(server_status_text(this_desktop()))
    delegate = delegate_path()
    if item_type == "running_applications":
        listed = list_by_cli(delegate, None, ()) if delegate else list_apps()
        return listed._replace(data={"application_list": listed.data["applications"]})
    if delegate:
        listed = list_by_cli(delegate, app, details or [])
    else:
        listed = list_app_windows(app=app or "", include_details=details)
    windows = [dict(window) for window in listed.data["windows"]]
    for window in windows:
        if isinstance(bounds := window.get("bounds"), dict):
            window["bounds"] = _with_short_names(bounds)
    info = listed.data["target_application_info"]
    return listed._replace(data={"window_list": windows, "target_application_info": info})


def _with_short_names(bounds: dict[str, Any]) -> dict[str, Any]:
    """With `w` and `h`, as the specification's MCP results have it."""
    return {{"width": "w", "height": "h"}.get(name, name): value for name, value in bounds.items()}


def screenshot_app_window(
    bundleId: Annotated[Optional[str], "the app's bundle id; this or appName is required"] = None,
    appName: Annotated[Optional[str], "the app's name; this or bundleId is required"] = None,
    windowIndex: Annotated[int, "which of its windows, 0 = frontmost; default 0"] = 0,
    format: Annotated[Literal["png", "jpg"], "png or jpg; default png"] = "png",
    includeShadow: Annotated[bool, "include the window's shadow; default false"] = False,
    timeoutMs: Annotated[int, "milliseconds for all of it, 100 to 50000; default 10000"] = 10_000,
    preferWindowId: Annotated[
        bool, "capture the window itself, even if covered; false: what the screen shows there; default true"
    ] = True,
) -> Result:
    """Saves a screenshot of one window of an app as a temporary file, kept for 10 minutes, and returns its
    path, URI, rectangle and scale. To look at the image itself, use take_window_screenshot.

    Example: peekaboo-min screenshot-app-window --appName Safari
    """
    by_id = (bundleId or "").strip()
    if not by_id and not (appName or "").strip():
        raise invalid("Either bundleId or appName must be given.", "name the app")
    check_range("timeoutMs", timeoutMs, 100, 50_000)
    desktop = this_desktop()
    try:
        with time_budget(timeoutMs / 1000):
            scene = scene_to_capture(desktop)
            app = app_by_bundle_id(by_id, scene.apps) if by_id else find_app(appName or "", scene.apps)
            window = find_window(app, visible_windows(windows_of(app, scene.windows)), index=windowIndex)
            if preferWindowId:
                image = screenshot_window(desktop, scene, window, format, includeShadow)
                if not includeShadow:  # its margin would shift every pixel
                    image = recorded(desktop, image)
            else:
                image = screenshot_rect(desktop, window, format)
            (image,) = save_images([image], [new_temporary_path("peekaboo", format)])
    except PeekabooError as e:
        if e.code not in _DOCUMENT_NAMES:
            raise
        hint = f"raise timeoutMs; {e.hint}" if e.code is ErrorCode.TIMEOUT else e.hint
        raise PeekabooError(e.code, e.message, hint, e.details, _DOCUMENT_NAMES[e.code]) from e
    window = image.subject.window or window
    path = Path(image.path)
    has_shadow = includeShadow and not image.is_of_rect
    data = {
        "path": image.path,
        "uri": path.as_uri(),
        "appName": app.name,
        "rect": _with_short_names(window.bounds.as_data()),
        # a shadow's margin hides it in the image's size
        "scale": window.scale if has_shadow else image.scale,
        "format": image.info.kind,
    }
    no_shadow = "the image shows the window's rectangle on the screen, without a shadow"
    messages = (no_shadow,) if includeShadow and image.is_of_rect else ()
    kept = f"the file is temporary: it is kept {image_lifetime()}"
    return Result(f"screenshot of {app.name}: {image.path}", data, messages=(kept, *messages))

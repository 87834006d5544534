"""TOOLS: every MCP tool. A tool is a typed function; its docstring is its description, its hints are its schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Callable, Dict, List, Literal, Optional, Tuple, Union

from .automation import click_pixel, focus_by_id, press_in_window, type_into_window
from .capture import ImageRequest, photograph_window, picture_for_model
from .errors import ErrorCode, PeekabooError
from .imaging import image_result
from .listing import catalogue, list_app_windows, list_running_apps, window_data
from .matching import visible_windows, window_by_id
from .model import Point, Result
from .platforms import this_desktop
from .settings import settings
from .status import initial_status

# What every tool that points at a window says of it; shell and MCP read the same words.
WindowId = Annotated[int, "the window's id, from list_windows"]
Verify = Annotated[bool, "photograph the window before and after, and report whether the picture changed; default false"]


@dataclass(frozen=True)
class WindowTitle:
    """A window by its title, or a part of it."""

    title: str


@dataclass(frozen=True)
class WindowIndex:
    """A window by its place among its app's windows, 0 = frontmost."""

    index: int


@dataclass(frozen=True)
class Tool:
    """One MCP tool: its wire name, its function, its group, and what it does to the world."""

    name: str
    title: str
    group: str
    function: Callable[..., Result]
    acts: bool = False
    """True for what changes focus, presses, types, draws or sends: not offered when read-only."""
    is_read_only: bool = True
    is_idempotent: bool = False
    is_open_world: bool = False
    description: str = ""
    """Where the specification words it; else the docstring."""


def image(
    app: Annotated[
        Optional[str],
        "Optional. Target application: name, bundle ID, or partial name. If omitted, captures screen(s). Uses fuzzy matching.",
    ] = None,
    path: Annotated[
        Optional[str],
        "Optional. Base absolute path for saving. For 'screen' or 'multi' mode, display/window info is appended by backend. "
        "If omitted, the server checks the PEEKABOO_DEFAULT_SAVE_PATH environment variable. If neither is set, a temporary "
        "folder is used. If 'return_data' true, images saved AND returned if a path is determined (either from input or ENV).",
    ] = None,
    mode: Annotated[
        Optional[Literal["screen", "window", "multi"]],
        "Capture mode. Defaults to 'window' if 'app' is provided, otherwise 'screen'.",
    ] = None,
    window_specifier: Annotated[
        Optional[Union[WindowTitle, WindowIndex]],
        "Optional. Specifies which window for 'window' mode: {\"title\": \"...\"} or {\"index\": 0} (0=frontmost). Defaults "
        "to main/frontmost of target app.",
    ] = None,
    format: Annotated[Literal["png", "jpg"], "Output image format. Defaults to 'png'."] = "png",
    return_data: Annotated[
        bool,
        "Optional. If true, image data is returned in response content (one item for 'window' mode, multiple for 'screen' "
        "or 'multi' mode). Defaults to false.",
    ] = False,
    capture_focus: Annotated[
        Literal["background", "foreground"],
        "Optional. Focus behavior. 'background' (default): capture without altering window focus. 'foreground': bring "
        "target to front before capture.",
    ] = "background",
    window_id: Annotated[Optional[int], "Optional. The window with this id, from list_windows, instead of 'app'."] = None,
    max_dimension: Annotated[Optional[int], "Optional. Shrink the pictures to this many pixels on the long side."] = None,
) -> Result:
    """Captures macOS screen content. Targets: entire screen (each display separately), a specific application window, or
    all windows of an application. Supports foreground/background capture. Captured image(s) can be saved to file(s)
    and/or returned directly as image data. Window shadows/frames are automatically excluded. Application identification
    uses intelligent fuzzy matching.
    """
    request = ImageRequest(
        app=app,
        mode=mode,
        window_title=window_specifier.title if isinstance(window_specifier, WindowTitle) else None,
        window_index=window_specifier.index if isinstance(window_specifier, WindowIndex) else None,
        window_id=window_id,
        kind=format,
        path=path,
        max_dimension=max_dimension,
        is_temporary=return_data and not path and not settings().default_save_path,
    )
    return image_result(this_desktop(), request, capture_focus, return_data)


def list_items(
    item_type: Annotated[
        Optional[Literal["running_applications", "application_windows", "server_status"]],
        "What to list. 'server_status' returns Peekaboo server info. Defaults to 'application_windows' when 'app' is given, "
        "otherwise 'running_applications'.",
    ] = None,
    app: Annotated[
        Optional[str], "Required if 'item_type' is 'application_windows'. Target application. Uses fuzzy matching."
    ] = None,
    include_window_details: Annotated[
        Optional[List[Literal["off_screen", "bounds", "ids"]]],
        "Optional, for 'application_windows'. Additional window details. Example: ['bounds', 'ids']",
    ] = None,
) -> Result:
    """Lists system items: all running applications, windows of a specific app, or server status. Allows specifying window
    details. App ID uses fuzzy matching.
    """
    item_type = item_type or ("application_windows" if app is not None else "running_applications")
    _refine_list(item_type, app, include_window_details)
    if item_type == "server_status":
        return Result(initial_status().strip())
    if item_type == "application_windows":
        found = list_app_windows(this_desktop(), app or "", include_window_details or ())
        for one in found.data["windows"]:
            if "bounds" in one:  # the specification's names over MCP
                one["bounds"] = {"x": one["bounds"]["x"], "y": one["bounds"]["y"], "w": one["bounds"]["width"], "h": one["bounds"]["height"]}
        return Result(found.text, {"window_list": found.data["windows"], **{k: v for k, v in found.data.items() if k != "windows"}})
    apps = list_running_apps(this_desktop())
    return Result(apps.text, {"application_list": apps.data["applications"]})


def _refine_list(item_type: str, app: Optional[str], details: Optional[List[str]]) -> None:
    """The specification's refinements, in its words."""
    problem = ""
    if item_type == "application_windows" and not (app or "").strip():
        problem = "For 'application_windows', 'app' identifier is required."
    elif item_type == "server_status" and (app is not None or details is not None):
        problem = "'app' and 'include_window_details' not applicable for 'server_status'."
    elif details and item_type != "application_windows":
        problem = "'include_window_details' only for 'application_windows'."
    if problem:
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, problem)


def list_windows() -> Result:
    """Lists the windows on the screen, front to back, with id, owner, title and bounds in screen points. Start here: the
    other tools take a window_id.
    """
    desktop = this_desktop()
    return catalogue(desktop, visible_windows(desktop.windows()))


def focus_window(window_id: WindowId) -> Result:
    """Brings a window to the front and gives it the keyboard, and checks that it has it. On a Mac: activates the app and
    raises the window.

    Example: peekaboo-min focus 14680078
    """
    window = focus_by_id(this_desktop(), window_id)
    return Result(f"window {window_id} of {window.app_name} is in front and has the keyboard", window_data(window))


def take_window_screenshot(window_id: WindowId) -> Result:
    """Photographs a window and returns the picture (JPEG, at most 1568 pixels on the long side) with image_width,
    image_height, scale and screenshot_id. The x and y of click are pixels of this picture, from its top left corner.
    """
    desktop = this_desktop()
    window = window_by_id(window_id, desktop.windows())
    shot = photograph_window(desktop, window, "jpg")
    try:
        picture, record = picture_for_model(desktop, shot)
    finally:
        shot.path.unlink(missing_ok=True)
    assert record is not None  # a picture without a shadow has one
    return Result(f"window {window_id} of {window.app_name}", record.as_data(), (picture,))


def click(
    window_id: WindowId,
    x: Annotated[float, "pixels from the left edge of the window's last screenshot; clamped into it"],
    y: Annotated[float, "pixels from the top edge of the window's last screenshot; clamped into it"],
    button: Annotated[Literal["left", "right", "middle"], "left, right or middle; default left"] = "left",
    clicks: Annotated[int, "1 or 2 (a double click); default 1"] = 1,
    screenshot_id: Annotated[
        Optional[str], "the screenshot that x and y were read from; default: the window's last one"
    ] = None,
    verify: Verify = False,
) -> Result:
    """Clicks a pixel of a window's last screenshot. The window is brought to the front first; refused when the window was
    resized since, or is covered at that point. A moved window is hit where it is now.

    Example: peekaboo-min click 14680078 120 48 --verify
    """
    data = click_pixel(this_desktop(), window_id, Point(x, y), button, clicks, screenshot_id, verify)
    where = data["point"]
    return Result(_with_effect_text(f"clicked window {window_id} at screen point {where['x']:g},{where['y']:g}", data), data)


def type_text(
    window_id: WindowId,
    text: Annotated[str, "the text, any Unicode; a newline presses return, a tab presses tab"],
    verify: Verify = False,
) -> Result:
    """Types text into the field of a window that has the keyboard; click the field first. The window is brought to the
    front when it is not. On X11 what is not ASCII goes through the clipboard, which is put back.

    Example: peekaboo-min type 14680078 "Grüße, 世界"
    """
    data = type_into_window(this_desktop(), window_id, text, verify)
    return Result(_with_effect_text(f"typed {data['characters']} character(s) into window {window_id}", data), data)


def press_key(
    window_id: WindowId,
    key: Annotated[str, "a key or a chord: return, escape, page_down, f5, a, cmd+shift+t, ctrl,a (on X11 cmd is Control)"],
    modifiers: Annotated[
        Optional[List[str]], "cmd, ctrl, alt, shift, super or fn, held besides those in key; default none"
    ] = None,
    verify: Verify = False,
) -> Result:
    """Presses one key, or a chord, in a window, which is brought to the front when it is not.

    Example: peekaboo-min press 14680078 cmd+s
    """
    data = press_in_window(this_desktop(), window_id, key, modifiers or [], verify)
    return Result(_with_effect_text(f"pressed {data['key']} in window {window_id}", data), data)


def _with_effect_text(text: str, data: Dict[str, Any]) -> str:
    if data.get("window_closed"):
        return f"{text}; the window closed"
    if data.get("clamped"):
        text += "; the pixel was outside the picture and was moved to its edge"
    if data.get("delivered") is False:
        text += "; the pointer was not seen there afterwards"
    effects = {True: "; the picture changed", False: "; the picture did not change", None: ""}
    return text + effects[data.get("changed")]


TOOLS: Tuple[Tool, ...] = (
    Tool("image", "Capture screens or windows", "capture", image, is_read_only=False, is_idempotent=True),
    Tool("list", "List apps, windows, server status", "capture", list_items),
    Tool("list_windows", "List windows", "desktop", list_windows),
    Tool("focus_window", "Focus a window", "desktop", focus_window, acts=True, is_idempotent=True),
    Tool("take_window_screenshot", "Photograph a window", "desktop", take_window_screenshot),
    Tool("click", "Click in a window", "desktop", click, acts=True, is_open_world=True),
    Tool("type_text", "Type text into a window", "desktop", type_text, acts=True, is_open_world=True),
    Tool("press_key", "Press a key in a window", "desktop", press_key, acts=True, is_open_world=True),
)


def offered_tools() -> List[Tool]:
    """The tools that this server offers: those that PEEKABOO_TOOLS chooses, without the acting ones when read-only.

    Raises INVALID_ARGUMENT for a word that is neither a tool nor a group.
    """
    wanted = [word.strip() for word in settings().tools.split(",") if word.strip()]
    known = {tool.name for tool in TOOLS} | {tool.group for tool in TOOLS}
    unknown = [word for word in wanted if word not in known]
    if unknown:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT,
            f"PEEKABOO_TOOLS names {unknown[0][:40]!r}, which is no tool and no group",
            hint="it may name " + ", ".join(sorted(known)),
        )
    chosen = [tool for tool in TOOLS if not wanted or tool.name in wanted or tool.group in wanted]
    return [tool for tool in chosen if not (tool.acts and settings().is_read_only)]

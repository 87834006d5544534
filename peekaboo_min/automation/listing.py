"""Apps, windows and screens, as text and as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Optional

from ..core.errors import ErrorCode
from ..core.models import SHELL_ONLY, App, Display, Result, Window
from ..core.settings import settings
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..desktop.matching import catalogue_windows, find_app, visible_windows, windows_of
from ..desktop.select import this_desktop

WindowDetails = Annotated[
    Optional[list[Literal["off_screen", "bounds", "ids"]]], "off_screen, bounds and ids, with commas between"
]


def list_windows(
    app: Annotated[Optional[str], "only this app's windows", SHELL_ONLY] = None,
    all: Annotated[bool, "include docks, menus, minimised and tiny windows", SHELL_ONLY] = False,
) -> Result:
    """Lists the windows on the screen, front to back, with id, owner, title and bounds in screen points.
    Start here: the other tools take a window_id.

    In the shell: Lists all windows, front to back: id, owner, title, bounds in screen points. The ids are
    what the other commands take.

    Example: peekaboo-min windows --app Safari
    """
    desktop = this_desktop()
    scene = desktop.snapshot()
    windows = list(scene.windows) if all else catalogue_windows(scene)
    if app is not None:
        windows = windows_of(find_app(app, scene.apps), windows)
    messages = session_warnings(desktop)
    if not scene.can_see_titles:
        hidden = ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING
        messages = (*messages, desktop.denied(hidden, "window titles are hidden").sentence())
    text = "\n".join([f"{len(windows)} window(s), front to back:", *map(_catalogue_line, windows)])
    return Result(text, {"windows": [window_data(window) for window in windows]}, messages=messages)


def list_apps() -> Result:
    """Lists the running applications, with their process ids and how many windows they show.

    Example: peekaboo-min list apps --json-output
    """
    apps = sorted(
        (app for app in this_desktop().snapshot().apps if app.is_regular or app.window_count),
        key=lambda app: app.name.lower(),
    )
    lines = [
        f"{number}. {_app_text(app)}{' [ACTIVE]' if app.is_active else ''} - Windows: {app.window_count}"
        for number, app in enumerate(apps, 1)
    ]
    text = "\n".join([f"Found {len(apps)} running application(s):", "", *lines]).rstrip()
    return Result(text, {"applications": [_app_data(app) for app in apps]})


def list_app_windows(
    *,
    app: Annotated[str, "name, bundle id, PID:n or a part of the name"],
    include_details: WindowDetails = None,
) -> Result:
    """Lists an application's windows, front to back.

    Example: peekaboo-min list windows --app Safari --include-details bounds,ids
    """
    details = include_details or []
    desktop = this_desktop()
    scene = desktop.snapshot()
    if not scene.can_see_titles:
        raise desktop.denied(ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING, "window titles cannot be read")
    owner = find_app(app, scene.apps)
    windows = visible_windows(windows_of(owner, scene.windows), with_off_screen="off_screen" in details)
    lines = [_window_line(index, window, details) for index, window in enumerate(windows)]
    head = f"Found {len(windows)} window(s) for application: {_app_text(owner)}"
    text = "\n".join([head, "", "Windows:", *lines] if lines else [head])
    rows = [_listed_window(index, window, details) for index, window in enumerate(windows)]
    return Result(text, {"windows": rows, "target_application_info": app_info(owner)})


def list_screens() -> Result:
    """Lists the screens, the main one first, with their bounds and scales.

    Example: peekaboo-min list screens
    """
    displays = this_desktop().snapshot().displays
    rows = [
        {
            "screen_index": display.number - 1,
            "name": clean_text(display.name),
            "is_main": display.is_main,
            "bounds": display.bounds.as_data(),
            "scale": display.scale,
        }
        for display in displays
    ]
    lines = [f"Found {len(displays)} screen(s):", "", *map(_display_line, displays)]
    return Result("\n".join(lines), {"screens": rows})


def session_warnings(desktop: Desktop) -> tuple[str, ...]:
    """What hides a part of this desktop from us: under Wayland every program that does not use X11."""
    if desktop.name != "x11" or not settings().wayland_display:
        return ()
    return (
        "a Wayland session: only programs that run through XWayland can be seen; log in to an X11 session",
    )


def _catalogue_line(window: Window) -> str:
    owner = f"{window.app_name} ({'no pid' if window.pid is None else window.pid})"
    return f"{window.window_id}  {owner}  {_title(window)!r}  {_bounds_text(window)}{_marks(window)}"


def _marks(window: Window) -> str:
    belongs = f" of window {window.parent_id}" if window.parent_id is not None else ""
    marks = [
        "" if window.kind == "window" else f"{window.kind.upper()}{belongs}",
        "MODAL" if window.is_modal else "",
        "FOCUSED" if window.is_focused else "",
        "MINIMISED" if window.is_minimised else "" if window.is_on_screen else "OFF-SCREEN",
    ]
    return "".join(f" [{mark}]" for mark in marks if mark)


def window_data(window: Window) -> dict[str, Any]:
    """A window as `list_windows` describes it, and whether it can be seen and has the keyboard."""
    return {
        "window_id": window.window_id,
        "owner_name": window.app_name,
        "pid": window.pid,
        "title": _title(window),
        "bounds": window.bounds.as_data(),
        "is_on_screen": window.is_on_screen,
        "is_focused": window.is_focused,
        "is_minimised": window.is_minimised,
        "kind": window.kind,
        "parent_id": window.parent_id,
        "is_modal": window.is_modal,
    }


def _app_text(app: App) -> str:
    pid = app.pid if app.pid is not None else "unknown"
    return f"{app.name} ({app.bundle_id or 'no bundle id'}) - PID: {pid}"


def app_info(app: App) -> dict[str, Any]:
    return {"app_name": app.name, "pid": app.pid, "bundle_id": app.bundle_id}


def _app_data(app: App) -> dict[str, Any]:
    return {**app_info(app), "is_active": app.is_active, "window_count": app.window_count}


def _listed_window(index: int, window: Window, details: Sequence[str]) -> dict[str, Any]:
    data: dict[str, Any] = {"window_title": _title(window), "window_index": index}
    if "ids" in details:
        data["window_id"] = window.window_id
    if "bounds" in details:
        data["bounds"] = window.bounds.as_data()
    if "off_screen" in details:
        data["is_on_screen"] = window.is_on_screen
    return data


def _window_line(index: int, window: Window, details: Sequence[str]) -> str:
    parts = [f'{index + 1}. "{_title(window)}"']
    if "ids" in details:
        parts.append(f"[ID: {window.window_id}]")
    if "off_screen" in details:
        parts.append("[ON-SCREEN]" if window.is_on_screen else "[OFF-SCREEN]")
    if "bounds" in details:
        parts.append(f"[{_bounds_text(window)}]")
    return " ".join(parts)


def _display_line(display: Display) -> str:
    bounds = display.bounds
    size = f"{bounds.width:g}x{bounds.height:g} points at {bounds.x:g},{bounds.y:g}"
    main = " [MAIN]" if display.is_main else ""
    return f"{display.number - 1}. {clean_text(display.name)}: {size}, scale {display.scale:g}{main}"


def _title(window: Window) -> str:
    return clean_text(window.title or "")


def _bounds_text(window: Window) -> str:
    return f"{window.bounds.x:g},{window.bounds.y:g} {window.bounds.width:g}x{window.bounds.height:g}"

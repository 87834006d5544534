"""Apps, windows and screens, as text and as data."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Optional

from ..core.errors import ErrorCode
from ..core.models import SHELL_ONLY, App, Rect, Result, Window
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
    scene = desktop.snapshot(with_minimised=True)
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
    apps = [app for app in this_desktop().snapshot().apps if app.is_regular or app.window_count]
    rows, lines = [], [f"Found {len(apps)} running application(s):", ""]
    for number, app in enumerate(sorted(apps, key=lambda app: app.name.lower()), 1):
        rows.append({**_app_data(app), "is_active": app.is_active, "window_count": app.window_count})
        active = " [ACTIVE]" if app.is_active else ""
        lines.append(f"{number}. {_app_text(app)}{active} - Windows: {app.window_count}")
    return Result("\n".join(lines).rstrip(), {"applications": rows})


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
    rows, lines = [], [f"Found {len(windows)} window(s) for application: {_app_text(owner)}"]
    for index, window in enumerate(windows):
        row: dict[str, Any] = {"window_title": window.shown_title, "window_index": index}
        line = f'{index}. "{window.shown_title}"'
        if "ids" in details:
            row["window_id"] = window.window_id
            line += f" [ID: {window.window_id}]"
        if "off_screen" in details:
            row["is_on_screen"] = window.is_on_screen
            line += " [ON-SCREEN]" if window.is_on_screen else " [OFF-SCREEN]"
        if "bounds" in details:
            row["bounds"] = window.bounds.as_data()
            line += f" [{_bounds_text(window.bounds)}]"
        rows.append(row)
        lines += ["", "Windows:", line] if index == 0 else [line]
    return Result("\n".join(lines), {"windows": rows, "target_application_info": _app_data(owner)})


def list_screens() -> Result:
    """Lists the screens, the main one first, with their bounds and scales.

    Example: peekaboo-min list screens
    """
    displays = this_desktop().snapshot().displays
    rows, lines = [], [f"Found {len(displays)} screen(s):", ""]
    for display in displays:
        bounds, name = display.bounds, clean_text(display.name)
        index = {"screen_index": display.number - 1, "name": name, "is_main": display.is_main}
        rows.append({**index, "bounds": bounds.as_data(), "scale": display.scale})
        size = f"{bounds.width:g}x{bounds.height:g} points at {bounds.x:g},{bounds.y:g}"
        main = " [MAIN]" if display.is_main else ""
        lines.append(f"{display.number - 1}. {name}: {size}, scale {display.scale:g}{main}")
    return Result("\n".join(lines), {"screens": rows})


def session_warnings(desktop: Desktop) -> tuple[str, ...]:
    """What hides a part of this desktop from us: under Wayland every program that does not use X11."""
    if desktop.name != "x11" or not settings().wayland_display:
        return ()
    text = "a Wayland session: only programs that run through XWayland can be seen; log in to an X11 session"
    return (text,)


def _catalogue_line(window: Window) -> str:
    owner = f"{window.app_name} ({'no pid' if window.pid is None else window.pid})"
    belongs = f" of window {window.parent_id}" if window.parent_id is not None else ""
    marks = [
        "" if window.kind == "window" else f"{window.kind.upper()}{belongs}",
        "MODAL" if window.is_modal else "",
        "FOCUSED" if window.is_focused else "",
        "MINIMISED" if window.is_minimised else "" if window.is_on_screen else "OFF-SCREEN",
    ]
    line = f"{window.window_id}  {owner}  {window.shown_title!r}  {_bounds_text(window.bounds)}"
    return line + "".join(f" [{mark}]" for mark in marks if mark)


def window_data(window: Window) -> dict[str, Any]:
    """A window as `list_windows` describes it, and whether it can be seen and has the keyboard."""
    named = {"window_id": window.window_id, "owner_name": window.app_name, "pid": window.pid}
    flags = ("is_on_screen", "is_focused", "is_minimised", "kind", "parent_id", "is_modal")
    place = {"title": window.shown_title, "bounds": window.bounds.as_data()}
    return {**named, **place, **{name: getattr(window, name) for name in flags}}


def _app_text(app: App) -> str:
    pid = app.pid if app.pid is not None else "unknown"
    return f"{app.name} ({app.bundle_id or 'no bundle id'}) - PID: {pid}"


def _app_data(app: App) -> dict[str, Any]:
    return {"app_name": app.name, "pid": app.pid, "bundle_id": app.bundle_id}


def _bounds_text(bounds: Rect) -> str:
    return f"{bounds.x:g},{bounds.y:g} {bounds.width:g}x{bounds.height:g}"

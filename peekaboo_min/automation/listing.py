"""Apps, windows and screens, as text and as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from ..core.errors import ErrorCode
from ..core.models import App, Rect, Result, Window
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..desktop.matching import catalogue_windows, find_app, visible_windows, windows_of


def window_catalogue(desktop: Desktop, app: Optional[str] = None, includes_all: bool = False) -> Result:
    """List windows front to back. includes_all: also docks, menus, minimised and tiny windows."""
    scene = desktop.snapshot(with_minimised=True)
    windows = list(scene.windows) if includes_all else catalogue_windows(scene)
    if app is not None:
        windows = windows_of(find_app(app, scene.apps), windows)
    messages = desktop.warnings()
    if not scene.can_see_titles:
        hidden = ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING
        messages = (*messages, desktop.denied(hidden, "window titles are hidden").sentence())
    text = "\n".join([f"{len(windows)} window(s), front to back:", *map(_catalogue_line, windows)])
    return Result(text, {"windows": [window_data(window) for window in windows]}, messages=messages)


def running_apps(desktop: Desktop) -> Result:
    """List the running applications by name, without helpers that have no windows."""
    apps = [app for app in desktop.snapshot().apps if app.is_regular or app.window_count]
    rows, lines = [], [f"Found {len(apps)} running application(s):", ""]
    for number, app in enumerate(sorted(apps, key=lambda app: app.name.lower()), 1):
        rows.append({**_app_data(app), "is_active": app.is_active, "window_count": app.window_count})
        active = " [ACTIVE]" if app.is_active else ""
        lines.append(f"{number}. {_app_text(app)}{active} - Windows: {app.window_count}")
    return Result("\n".join(lines).rstrip(), {"applications": rows})


def app_windows(desktop: Desktop, app: str, details: Sequence[str]) -> Result:
    """List an app's windows. Raises PERMISSION_DENIED_SCREEN_RECORDING and the errors of find_app."""
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


def screens(desktop: Desktop) -> Result:
    """List the screens, the main screen first."""
    displays = desktop.snapshot().displays
    rows, lines = [], [f"Found {len(displays)} screen(s):", ""]
    for display in displays:
        bounds, name = display.bounds, clean_text(display.name)
        index = {"screen_index": display.number - 1, "name": name, "is_main": display.is_main}
        rows.append({**index, "bounds": bounds.as_data(), "scale": display.scale})
        size = f"{bounds.width:g}x{bounds.height:g} points at {bounds.x:g},{bounds.y:g}"
        main = " [MAIN]" if display.is_main else ""
        lines.append(f"{display.number - 1}. {name}: {size}, scale {display.scale:g}{main}")
    return Result("\n".join(lines), {"screens": rows})


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
    """Return the fields of a window in `list_windows`."""
    named = {"window_id": window.window_id, "owner_name": window.app_name, "pid": window.pid}
    flags = ("is_on_screen", "is_focused", "is_minimised", "kind", "parent_id", "is_modal")
    place = {"title": window.shown_title, "bounds": window.bounds.as_data()}
    return {**named, **place, **{name: getattr(window, name) for name in flags}}


def _app_text(app: App) -> str:
    pid = "unknown" if app.pid is None else app.pid
    return f"{app.name} ({app.bundle_id or 'no bundle id'}) - PID: {pid}"


def _app_data(app: App) -> dict[str, Any]:
    # absent, not null: the specification has a string
    bundle = {"bundle_id": app.bundle_id} if app.bundle_id else {}
    return {"app_name": app.name, "pid": app.pid, **bundle}


def _bounds_text(bounds: Rect) -> str:
    return f"{bounds.x:g},{bounds.y:g} {bounds.width:g}x{bounds.height:g}"

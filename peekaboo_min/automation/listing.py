"""Apps, windows and screens, as text and as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import ErrorCode, invalid
from ..core.models import App, Display, Result, Scene, Window
from ..core.settings import settings
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..desktop.matching import find_app, visible_windows, windows_of

DETAILS = ("off_screen", "bounds", "ids")


def list_running_apps(desktop: Desktop) -> Result:
    """`{"applications": [...]}`; text numbered from 1."""
    apps = sorted(
        (app for app in desktop.snapshot().apps if app.is_regular or app.window_count),
        key=lambda app: app.name.lower(),
    )
    lines = [
        f"{number}. {_app_text(app)}{' [ACTIVE]' if app.is_active else ''} - Windows: {app.window_count}"
        for number, app in enumerate(apps, 1)
    ]
    text = "\n".join([f"Found {len(apps)} running application(s):", "", *lines]).rstrip()
    return Result(text, {"applications": [_app_data(app) for app in apps]})


def list_app_windows(desktop: Desktop, identifier: str, details: Sequence[str]) -> Result:
    """`{"windows": [...], "target_application_info": {...}}`, front to back; details as in DETAILS."""
    unknown = [name for name in details if name not in DETAILS]
    if unknown:
        raise invalid(f"there is no window detail {unknown[0][:40]!r}", f"they are {', '.join(DETAILS)}")
    scene = desktop.snapshot()
    if not scene.can_see_titles:
        raise desktop.denied(ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING, "window titles cannot be read")
    app = find_app(identifier, scene.apps)
    windows = visible_windows(windows_of(app, scene.windows), with_off_screen="off_screen" in details)
    lines = [_window_line(index, window, details) for index, window in enumerate(windows)]
    head = f"Found {len(windows)} window(s) for application: {_app_text(app)}"
    text = "\n".join([head, "", "Windows:", *lines] if lines else [head])
    rows = [_listed_window(index, window, details) for index, window in enumerate(windows)]
    return Result(text, {"windows": rows, "target_application_info": app_info(app)})


def list_displays(desktop: Desktop) -> Result:
    """`{"screens": [...]}`; screen_index is what `image --screen-index` takes."""
    displays = desktop.snapshot().displays
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


def catalogue(desktop: Desktop, scene: Scene, windows: Sequence[Window]) -> Result:
    """Windows as `list_windows` shows them, front to back, with a message where not all can be seen."""
    messages = session_warnings(desktop)
    if not scene.can_see_titles:
        hidden = ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING
        messages = (*messages, desktop.denied(hidden, "window titles are hidden").sentence())
    text = "\n".join([f"{len(windows)} window(s), front to back:", *map(_catalogue_line, windows)])
    return Result(text, {"windows": [window_data(window) for window in windows]}, messages=messages)


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

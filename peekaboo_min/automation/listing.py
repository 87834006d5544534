"""Apps, windows and screens, as text and as the specification's data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import ErrorCode, PeekabooError
from ..core.models import App, Display, Result, Scene, Window
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
        f"{number}. {app.name} ({app.bundle_id or 'no bundle id'}) - PID: {app.pid if app.pid is not None else 'unknown'}"
        + (" [ACTIVE]" if app.is_active else "")
        + f" - Windows: {app.window_count}"
        for number, app in enumerate(apps, 1)
    ]
    text = "\n".join([f"Found {len(apps)} running application(s):", "", *lines]).rstrip()
    return Result(text, {"applications": [_app_data(app) for app in apps]})


def list_app_windows(desktop: Desktop, identifier: str, details: Sequence[str] = ()) -> Result:
    """`{"windows": [...], "target_application_info": {...}}`, front to back; details as in DETAILS."""
    unknown = [word for word in details if word not in DETAILS]
    if unknown:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT,
            f"there is no window detail {unknown[0][:40]!r}",
            hint=f"they are {', '.join(DETAILS)}",
        )
    scene = desktop.snapshot()
    app = find_app(identifier, scene.apps)
    if not scene.can_see_titles:
        raise desktop.denied(ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING, "window titles cannot be read")
    windows = visible_windows(windows_of(app, scene.windows), with_off_screen="off_screen" in details)
    lines = [_window_line(number, one, details) for number, one in enumerate(windows)]
    pid = app.pid if app.pid is not None else "unknown"
    head = f"Found {len(windows)} window(s) for application: {app.name} ({app.bundle_id or 'no bundle id'}) - PID: {pid}"
    text = "\n".join([head, "", "Windows:", *lines] if lines else [head])
    return Result(
        text,
        {
            "windows": [_listed_window(number, one, details) for number, one in enumerate(windows)],
            "target_application_info": app_info(app),
        },
    )


def list_displays(desktop: Desktop) -> Result:
    """`{"screens": [...]}`; screen_index is what `image --screen-index` takes."""
    displays = desktop.snapshot().displays
    lines = [_display_line(one) for one in displays]
    return Result(
        "\n".join([f"Found {len(displays)} screen(s):", "", *lines]),
        {
            "screens": [
                {
                    "screen_index": one.number - 1,
                    "name": clean_text(one.name),
                    "is_main": one.is_main,
                    "bounds": one.bounds.as_data(),
                    "scale": one.scale,
                }
                for one in displays
            ]
        },
    )


def catalogue(desktop: Desktop, scene: Scene, windows: Sequence[Window]) -> Result:
    """Windows as `list_windows` shows them: with ids, owners and bounds, front to back; says why titles are missing."""
    hidden = ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING
    messages = (
        (desktop.denied(hidden, "window titles are hidden").sentence(),) if not scene.can_see_titles else ()
    )
    lines = [
        f"{one.window_id}  {one.app_name} ({'no pid' if one.pid is None else one.pid})  {_title(one)!r}  {_bounds_text(one)}"
        + _marks(one)
        for one in windows
    ]
    return Result(
        "\n".join([f"{len(windows)} window(s), front to back:", *lines]),
        {"windows": [window_data(one) for one in windows]},
        messages=messages,
    )


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


def app_info(app: App) -> dict[str, Any]:
    return {"app_name": app.name, "pid": app.pid, "bundle_id": app.bundle_id}


def _app_data(app: App) -> dict[str, Any]:
    return {
        "app_name": app.name,
        "bundle_id": app.bundle_id,
        "pid": app.pid,
        "is_active": app.is_active,
        "window_count": app.window_count,
    }


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
    size = f"{display.bounds.width:g}x{display.bounds.height:g} points at {display.bounds.x:g},{display.bounds.y:g}"
    return f"{display.number - 1}. {clean_text(display.name)}: {size}, scale {display.scale:g}" + (
        " [MAIN]" if display.is_main else ""
    )


def _title(window: Window) -> str:
    return clean_text(window.title or "")


def _bounds_text(window: Window) -> str:
    return f"{window.bounds.x:g},{window.bounds.y:g} {window.bounds.width:g}x{window.bounds.height:g}"

"""Windows and apps of the fake Mac: order, visibility, activation.

`state["windows"]` is in front-to-back order. Bounds are [x, y, width, height] in points from the top left of
the main display.
"""

from __future__ import annotations

import copy
from typing import Any, Optional

from .world import State, later, log

Window = dict[str, Any]
App = dict[str, Any]


def app_with_pid(state: State, pid: Optional[int]) -> Optional[App]:
    return next((app for app in state["apps"] if app["pid"] is not None and app["pid"] == pid), None)


def app_with_bundle(state: State, bundle_id: str) -> Optional[App]:
    return next((app for app in state["apps"] if app["bundle_id"] == bundle_id), None)


def window_with_id(state: State, window_id: int) -> Optional[Window]:
    return next((window for window in state["windows"] if window["id"] == window_id), None)


def is_on_screen(state: State, window: Window) -> bool:
    app = app_with_pid(state, window["pid"])
    if window.get("minimised") or not window.get("on_screen", True) or (app or {}).get("hidden"):
        return False
    return window.get("space") in (None, state["space"])  # None: on all spaces


def front_to_back(state: State) -> list[Window]:
    """Return the windows on screen in the order of CGWindowList with OnScreenOnly: higher layers first."""
    shown = [window for window in state["windows"] if is_on_screen(state, window)]
    return sorted(shown, key=lambda window: -window["layer"])


def contains(rect: list[float], x: float, y: float) -> bool:
    return rect[0] <= x < rect[0] + rect[2] and rect[1] <= y < rect[1] + rect[3]


def window_at(state: State, x: float, y: float) -> Optional[Window]:
    """Return the topmost window that a click there reaches; transparent windows let it through."""
    for window in front_to_back(state):
        is_passed = window["alpha"] <= 0 or window.get("click_through") or window.get("closing")
        if not is_passed and contains(window["bounds"], x, y):
            return window
    return None


def family_of(state: State, window: Window) -> list[Window]:
    """Return a window and the windows attached to it: sheets, and popovers and others with `child_of`."""
    family = [window]
    for member in family:
        links = {member.get("attached_to"), member.get("child_of")}
        others = [other for other in state["windows"] if is_open(state, other) and other not in family]
        for other in others:
            if other["id"] in links or member["id"] in (other.get("attached_to"), other.get("child_of")):
                family.append(other)
    return family


def sheet_of(state: State, window: Window) -> Optional[Window]:
    sheets = [one for one in state["windows"] if one.get("attached_to") == window["id"]]
    return next((sheet for sheet in sheets if not sheet.get("closing")), None)


MENU_LAYER = 101  # kCGPopUpMenuWindowLevel (CGWindowLevel.h); facts B3


def is_open(state: State, window: Window) -> bool:
    return is_on_screen(state, window) and not window.get("closing")


def menu_of(state: State, pid: Optional[int] = None) -> Optional[Window]:
    """Return the front open menu, of one app or of any."""
    for window in front_to_back(state):
        is_menu = window["layer"] == MENU_LAYER and not window.get("orphaned")
        if is_menu and is_open(state, window) and pid in (None, window["pid"]):
            return window
    return None


def panel_with_keys(state: State) -> Optional[Window]:
    """Return the non-activating panel (such as Spotlight) that takes the front application's keys."""
    return next((window for window in front_to_back(state) if window.get("takes_keys")), None)


def close_menus(state: State) -> None:
    """Close menus: another window came forward, an app was activated, or a click missed them."""
    for window in [one for one in state["windows"] if one["layer"] == MENU_LAYER and is_open(state, one)]:
        close_window(state, window)


def modal_of(state: State, window: Window) -> Optional[Window]:
    """Return what blocks a window: its sheet, or a modal dialog of its app (AXModal)."""
    sheet = sheet_of(state, window)
    if sheet is not None or window["layer"] == MENU_LAYER:
        return sheet
    for dialog in windows_of(state, owner_pid(state, window)):
        is_other = dialog is not window and window.get("attached_to") != dialog["id"]
        if is_other and dialog.get("modal") and is_open(state, dialog):
            return dialog
    return None


def owner_pid(state: State, window: Window) -> int:
    """Return the app that owns a panel; the process that shows an Open or Save panel has `panels_of`."""
    app = app_with_pid(state, window["pid"])
    return app.get("panels_of", window["pid"]) if app else window["pid"]


def windows_of(state: State, pid: int) -> list[Window]:
    return [window for window in state["windows"] if owner_pid(state, window) == pid]


def key_window(state: State, pid: Optional[int] = None) -> Optional[Window]:
    """Return the receiver of keys: an open menu, a modal dialog, or the front app's window or sheet."""
    pid = state["frontmost_pid"] if pid is None else pid
    menu = menu_of(state, pid)
    if menu is not None:
        return menu
    for window in front_to_back(state):
        is_big = window["bounds"][2] >= 50 and window["bounds"][3] >= 50
        is_ordinary = 0 <= window["layer"] < 20 and window["alpha"] > 0 and not window.get("closing")
        if owner_pid(state, window) == pid and is_big and is_ordinary and not window.get("never_key"):
            for _ in range(3):
                window = modal_of(state, window) or window
            return window
    return None


def raise_window(state: State, window: Window) -> None:
    """Raise in its layer and Space, with its sheet above it; do not activate the app (facts B7)."""
    state["space"] = window.get("space") or state["space"]
    moving = [sheet for sheet in state["windows"] if sheet.get("attached_to") == window["id"]] + [window]
    order = [id(item) for item in state["windows"]]
    if window["layer"] != MENU_LAYER:
        close_menus(state)
    state["windows"] = moving + [other for other in state["windows"] if other not in moving]
    if order != [id(item) for item in state["windows"]]:
        log(state, "raise", window=window["id"], app=name_of(state, window["pid"]))


def name_of(state: State, pid: int) -> Optional[str]:
    app = app_with_pid(state, pid)
    return app["name"] if app else None


def activate(state: State, event: dict[str, Any]) -> None:
    """Request activation; `switches.activation` declines it for NSRunningApplication or for all (facts
    B4).
    """
    mode = state["switches"]["activation"]
    if mode == "stubborn" or (mode == "declined" and event.get("by") == "NSRunningApplication"):
        log(state, "activation_declined", pid=event["pid"], by=event.get("by"))
        return
    later(state, dict(event, do="activate_now"), state["switches"]["activation_delay_ms"])


def activate_now(state: State, event: dict[str, Any]) -> None:
    app = app_with_pid(state, event["pid"])
    app = app_with_pid(state, app.get("panels_of", app["pid"])) if app else None
    if app is None:
        return
    app["hidden"] = False
    close_menus(state)
    own = windows_of(state, app["pid"])
    mine = [window for window in own if window["layer"] == 0 and not window.get("minimised")]
    if mine and not any(is_on_screen(state, window) for window in mine):
        state["space"] = mine[0].get("space")
    shown = [window for window in mine if is_on_screen(state, window) and not window.get("attached_to")]
    raised = shown if event.get("all_windows") else shown[:1]
    changed = state["frontmost_pid"] != app["pid"]
    state["frontmost_pid"] = app["pid"]
    if changed:
        log(state, "activate", app=app["name"], pid=app["pid"], by=event.get("by"))
    for window in reversed(raised):
        raise_window(state, window)


def launch(state: State, event: dict[str, Any]) -> None:
    app = app_with_bundle(state, event["bundle_id"])
    if app is None:
        return
    if app["pid"] is None:
        app["pid"] = state["next_pid"]
        state["next_pid"] += 1
        app["hidden"] = False
        log(state, "launch", app=app["name"], bundle_id=app["bundle_id"], pid=app["pid"])
        if app["name"] == "Keynote":
            from .decks import keynote_started

            keynote_started(state, app)
    if event.get("activate", True):
        activate(state, {"pid": app["pid"], "by": event.get("by", "launch")})


def quit_app(state: State, event: dict[str, Any]) -> None:
    app = app_with_pid(state, event["pid"])
    if app is None:
        return
    log(state, "quit", app=app["name"], pid=app["pid"])
    state["windows"] = [window for window in state["windows"] if window["pid"] != app["pid"]]
    if state["frontmost_pid"] == app["pid"]:
        behind = next((window["pid"] for window in front_to_back(state) if window["layer"] == 0), None)
        state["frontmost_pid"] = behind
    app["pid"] = None


def open_window(state: State, template: dict[str, Any], pid: int) -> Window:
    defaults = {"layer": 0, "alpha": 1, "title": "", "space": state["space"], "widgets": []}
    window = {**defaults, "id": state["next_window_id"], **copy.deepcopy(template), "pid": pid}
    state["next_window_id"] += 1
    state["windows"].insert(0, window)
    log(state, "open_window", window=window["id"], title=window["title"], app=name_of(state, pid))
    return window


def close_window(state: State, window: Window, lingers_ms: float = 0) -> None:
    """Close a window; it stays in the list for a moment (facts B3), but takes no capture or click."""
    log(state, "close_window", window=window["id"], title=window["title"], app=name_of(state, window["pid"]))
    window["closing"] = True
    for sheet in [other for other in state["windows"] if other.get("attached_to") == window["id"]]:
        state["windows"].remove(sheet)
    later(state, {"do": "forget_window", "window": window["id"]}, lingers_ms)


def forget_window(state: State, event: dict[str, Any]) -> None:
    state["windows"] = [window for window in state["windows"] if window["id"] != event["window"]]


def active_displays(state: State) -> list[dict[str, Any]]:
    """Return the active displays, the main one first, as CGDirectDisplay.h promises."""
    active = [display for display in state["displays"] if display.get("active", True)]
    return sorted(active, key=lambda display: not display.get("main", False))


def display_of(state: State, rect: list[float]) -> dict[str, Any]:
    """Return the display that shows most of the rectangle; the main one if none shows it."""
    displays = active_displays(state)
    return max(displays, key=lambda display: overlap(rect, display["bounds"]))


def overlap(one: list[float], other: list[float]) -> float:
    width = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    height = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    return max(0, width) * max(0, height)

"""Acts on the fake world other than input: raising, accessibility, launching, the effects of buttons.

One function per `do` of an event; `run_actions` runs a widget's `on_click` from desktop.json:
  {"open_window": {...}}  {"close_window": "this" | id}  {"report": "name"}  {"log": "text"}
  {"calculate": "7" | "+" | "="}: a key of a calculator, which shows the sum in its widget "display"
  and {"after_ms": n, "open_window": ...} for a delayed action
"""

from __future__ import annotations

import os
from typing import Any, Callable

from . import windows
from .decks import KEYNOTE_ACTS
from .world import State, later, log

Event = dict[str, Any]
Window = dict[str, Any]


def run_actions(state: State, window: Window, actions: Any) -> None:
    for action in actions if isinstance(actions, list) else [actions]:
        event = {"do": "widget_action", "window": window["id"], "pid": window["pid"], "action": action}
        later(state, event, action.get("after_ms", 0))


def widget_action(state: State, event: Event) -> None:
    window = windows.window_with_id(state, event["window"])
    action = event["action"]
    if "report" in action and window is not None:
        values = {widget["name"]: widget["value"] for widget in window["widgets"] if "value" in widget}
        state["reports"].setdefault(action["report"], []).append(values)
        log(state, "report", name=action["report"], values=values)
    if "log" in action:
        log(state, "note", text=action["log"])
    if "calculate" in action and window is not None:
        entered = window["entered"] = window.get("entered", "") + action["calculate"]
        numbers = [int(number) for number in entered.strip("=").split("+") if number]
        display = next(widget for widget in window["widgets"] if widget["name"] == "display")
        display["text"] = str(sum(numbers) if entered.endswith("=") else numbers[-1])
    if "close_window" in action:
        is_own = action["close_window"] == "this"
        which = window if is_own else windows.window_with_id(state, action["close_window"])
        if which is not None:
            windows.close_window(state, which)
    if "open_window" in action:
        windows.open_window(state, action["open_window"], event["pid"])


def raise_act(state: State, event: Event) -> None:
    """Raise a window above its app's other windows, without activating the app (AXRaise, facts B7)."""
    window = windows.window_with_id(state, event["window"])
    if window is None:
        return
    log(state, "ax_raise", window=window["id"])
    windows.close_menus(state)
    if window["pid"] == state["frontmost_pid"]:
        return windows.raise_window(state, window)
    mine = [index for index, other in enumerate(state["windows"]) if other["pid"] == window["pid"]]
    state["windows"].remove(window)
    state["windows"].insert(mine[0], window)


def ax_set(state: State, event: Event) -> None:
    """Set an accessibility attribute of a window or an app."""
    log(state, "ax_set", **{key: event[key] for key in event if key not in ("do", "t")})
    window = windows.window_with_id(state, event["window"]) if "window" in event else None
    attribute, value = event["attribute"], event["value"]
    if window is not None and attribute == "AXMinimized":
        window["minimised"] = bool(value)
    elif window is not None and attribute == "AXMain" and value:
        raise_act(state, event)
    elif attribute == "AXFrontmost" and value:
        windows.activate(state, {"pid": event["pid"], "by": "AXFrontmost"})
    elif attribute == "AXManualAccessibility":
        # it takes about as long (facts B8)
        later(state, {**event, "do": "build_tree"}, 400)


def build_tree(state: State, event: Event) -> None:
    app = windows.app_with_pid(state, event["pid"])
    if app is not None:
        app["has_tree"] = bool(event["value"])


def open_target(state: State, event: Event) -> None:
    """Open a file or an address in an application."""
    target = event["target"]
    windows.launch(state, {"bundle_id": event["bundle_id"], "by": "open"})
    app = windows.app_with_bundle(state, event["bundle_id"])
    if app is not None:
        log(state, "open_target", target=target, app=app["name"])
        title = target.rstrip("/").rsplit("/", 1)[-1]
        text = {"name": "text", "kind": "textview", "value": "", "rect": [10, 40, 580, 350]}
        window = {"title": title, "bounds": [240, 120, 600, 400], "focus": "text", "widgets": [text]}
        windows.open_window(state, window, app["pid"])


def use_fault(state: State, event: Event) -> None:
    for fault in state["faults"]:
        if fault["key"] == event["key"] and fault.get("times") is not None:
            fault["times"] -= 1
    state["faults"] = [fault for fault in state["faults"] if fault.get("times") is None or fault["times"] > 0]


def close_window_act(state: State, event: Event) -> None:
    window = windows.window_with_id(state, event["window"])
    if window is not None:
        windows.close_window(state, window, event.get("lingers_ms", 0))


def change_window(state: State, event: Event) -> None:
    window = windows.window_with_id(state, event["window"])
    if window is not None:
        window.update(event["values"])


def write_file(state: State, event: Event) -> None:
    """Create a file, for example the stop file."""
    os.makedirs(os.path.dirname(event["path"]), exist_ok=True)
    with open(event["path"], "w") as stream:
        stream.write(event.get("text", ""))


ACTS: dict[str, Callable[[State, Event], None]] = {
    "widget_action": widget_action,
    "raise": raise_act,
    "ax_set": ax_set,
    "build_tree": build_tree,
    "activate": windows.activate,
    "activate_now": windows.activate_now,
    "launch": windows.launch,
    "forget_window": windows.forget_window,
    "open_target": open_target,
    "dialog": lambda state, event: log(state, "dialog", text=event["text"]),
    "started": lambda state, event: None,  # a program has started; only for triggers
    "open_window": lambda state, event: windows.open_window(state, event["window"], event["pid"]),
    "close_window": close_window_act,
    "change_window": change_window,
    "lock_screen": lambda state, event: state["session"].update(locked=True),
    "point": lambda state, event: state["pointer"].update(x=event["x"], y=event["y"]),  # a person
    "write_file": write_file,
    "select_source": lambda state, event: state["keyboard"].update(source=event["id"]),
    "note": lambda state, event: log(state, event["kind"], **event.get("what", {})),
    "use_fault": use_fault,
    **KEYNOTE_ACTS,
}

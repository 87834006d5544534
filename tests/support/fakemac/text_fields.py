"""Editing text in the fake world: the focused field of the key window."""

from __future__ import annotations

from typing import Any, Optional

from .world import State, log

Window = dict[str, Any]
Widget = dict[str, Any]
EDITABLE = ("field", "password", "textview")
COMMAND, SHIFT = 0x100000, 0x20000


def focused(window: Optional[Window]) -> Optional[Widget]:
    if window is None:
        return None
    return next(
        (
            widget
            for widget in window["widgets"]
            if widget["name"] == window.get("focus") and widget["kind"] in EDITABLE
        ),
        None,
    )


def selection_of(widget: Widget) -> list[int]:
    length = len(widget["value"])
    return list(widget.get("selection", [length, length]))


def insert_text(state: State, app: Any, window: Optional[Window], text: str) -> None:
    widget = focused(window)
    log(
        state,
        "text",
        text=text,
        app=app["name"] if app else None,
        window=window["id"] if window else None,
        widget=widget["name"] if widget else None,
    )
    if widget is not None:
        replace_selection(widget, text)


def replace_selection(widget: Widget, text: str) -> None:
    start, end = selection_of(widget)
    widget["value"] = widget["value"][:start] + text + widget["value"][end:]
    widget["selection"] = [start + len(text)] * 2


def press_named_key(state: State, window: Window, key: str, flags: int) -> None:
    widget = focused(window)
    if key in ("return", "enter"):
        press_return(state, window, widget)
    elif key == "tab":
        press_tab(window, widget, backwards=bool(flags & SHIFT))
    elif key == "escape":
        press_marked_button(state, window, "cancel")
    elif widget is not None and key in ("backspace", "forward_delete"):
        delete(widget, key, whole_line=bool(flags & COMMAND))
    elif widget is not None and key in ("left", "right", "home", "end", "up", "down"):
        move_caret(widget, key, flags)


def press_return(state: State, window: Window, widget: Optional[Widget]) -> None:
    if widget is not None and widget["kind"] == "textview":
        replace_selection(widget, "\n")
    elif widget is not None and "on_return" in widget:
        from .acts import run_actions

        run_actions(state, window, widget["on_return"])
    else:
        press_marked_button(state, window, "default")


def press_marked_button(state: State, window: Window, mark: str) -> None:
    from .pointer_and_keys import use_widget

    for widget in window["widgets"]:
        if widget.get(mark) and widget.get("enabled", True):
            log(state, "press_button", window=window["id"], widget=widget["name"])
            return use_widget(state, window, widget, 1)


def press_tab(window: Window, widget: Optional[Widget], backwards: bool) -> None:
    if widget is not None and widget["kind"] == "textview" and not backwards:
        return replace_selection(widget, "\t")
    order = [item for item in window["widgets"] if item["kind"] in EDITABLE]
    if not order:
        return
    here = order.index(widget) if widget is not None else (0 if backwards else -1)
    there = order[(here + (-1 if backwards else 1)) % len(order)]
    window["focus"] = there["name"]
    there["selection"] = [0, len(there["value"])]


def delete(widget: Widget, key: str, whole_line: bool) -> None:
    start, end = selection_of(widget)
    if start == end:
        if whole_line:
            start = 0
        elif key == "backspace":
            start = max(0, start - cluster_before(widget["value"], start))
        else:
            end = min(len(widget["value"]), end + 1)
    widget["selection"] = [start, end]
    replace_selection(widget, "")


def cluster_before(text: str, at: int) -> int:
    """Backspace takes a letter with what is joined to it."""
    taken = 1
    while at - taken > 0 and (
        text[at - taken] in "\u200d\ufe0f"
        or "\u0300" <= text[at - taken] <= "\u036f"
        or text[at - taken - 1] == "\u200d"
    ):
        taken += 1
    return taken


def move_caret(widget: Widget, key: str, flags: int) -> None:
    start, end = selection_of(widget)
    length = len(widget["value"])
    far = bool(flags & COMMAND)
    if key in ("left", "home", "up"):
        at = (
            0
            if far or key != "left"
            else (start if start != end and not flags & SHIFT else max(0, start - 1))
        )
        widget["selection"] = [at, end] if flags & SHIFT else [at, at]
    else:
        at = (
            length
            if far or key != "right"
            else (end if start != end and not flags & SHIFT else min(length, end + 1))
        )
        widget["selection"] = [start, at] if flags & SHIFT else [at, at]


def select_all(state: State, window: Window) -> None:
    widget = focused(window)
    if widget is not None:
        widget["selection"] = [0, len(widget["value"])]


SHORTCUTS = {"cmd+a": select_all}

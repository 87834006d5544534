"""Editing text in the fake world: the focused field of the key window."""

from __future__ import annotations

from typing import Any, Optional

from .world import State, log

Window = dict[str, Any]
Widget = dict[str, Any]
EDITABLE = ("field", "password", "textview")


def focused(window: Optional[Window]) -> Optional[Widget]:
    if window is None:
        return None
    widgets = [item for item in window["widgets"] if item["name"] == window.get("focus")]
    return widgets[0] if widgets and widgets[0]["kind"] in EDITABLE else None


def selection_of(widget: Widget) -> list[int]:
    length = len(widget["value"])
    return list(widget.get("selection", [length, length]))


def insert_text(state: State, app: Any, window: Optional[Window], text: Optional[str]) -> None:
    widget = focused(window)
    log_text(state, app, window, text, widget)
    if widget is not None and text is not None:
        replace_selection(widget, text)


def log_text(state: State, app: Any, window: Optional[Window], text: Any, widget: Any = None) -> None:
    places = {"app": app and app["name"], "window": window and window["id"]}
    log(state, "text", text=text, **places, widget=widget and widget["name"])


def replace_selection(widget: Widget, text: str) -> None:
    start, end = selection_of(widget)
    widget["value"] = widget["value"][:start] + text + widget["value"][end:]
    widget["selection"] = [start + len(text)] * 2


def press_named_key(window: Window, key: str) -> None:
    widget = focused(window)
    if widget is not None and widget["kind"] == "textview" and key in ("return", "tab"):
        replace_selection(widget, "\n" if key == "return" else "\t")


def select_all(window: Optional[Window]) -> None:
    widget = focused(window)
    if widget is not None:
        widget["selection"] = [0, len(widget["value"])]

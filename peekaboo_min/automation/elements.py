"""The elements of a window, as text and as data."""

from __future__ import annotations

from typing import Any, Optional

from ..core.errors import WindowMoves
from ..core.models import NOTHING_FOUND, Element, Rect, Result
from ..core.text import clean_text
from ..desktop.base import Desktop
from .capture import Subject, record_to_read, scene_to_capture, take_image

_ELEMENTS_AT_MOST = 200
_ROLES_SHOWN = 30
_VALUE_LENGTH = 300


def find_elements_in_window(
    desktop: Desktop, window_id: int, text: Optional[str], role: Optional[str]
) -> Result:
    """The visible elements of a window in reading order, at most 200: those whose name or value holds `text`,
    of this role.

    data: {window_id, screenshot_id, image_width, image_height, count, elements: [{role, name, value, states,
    x, y, width, height}]}; x and y are an element's middle, in pixels that `click` takes with this
    screenshot_id. Raises NO_ELEMENTS for an application without a tree, and what capturing raises.
    """
    window = scene_to_capture(desktop).by_id(window_id)
    all_elements = desktop.read_elements(window)
    image = take_image(desktop, Subject(window=window))
    record = record_to_read(desktop, image)
    if record.bounds != window.bounds:
        raise WindowMoves(window_id)
    found = [element for element in all_elements if _fits(element, text, role)]
    shown = [
        _data_of(element, record.to_pixels(element.box, window.bounds))
        for element in found[:_ELEMENTS_AT_MOST]
    ]
    head = f"{len(shown)} element(s) of window {window_id}"
    if len(found) > len(shown):
        head += f", the first of {len(found)}: name a text or a role to see others"
    elif not found and all_elements:
        roles = list(dict.fromkeys(element.role for element in all_elements))
        head += f"; of {len(all_elements)} none fits; their roles are {', '.join(roles[:_ROLES_SHOWN])}"
    elif found:
        head += f"; x,y are pixels of screenshot {record.screenshot_id}"
    data = {
        "window_id": window_id,
        "screenshot_id": record.screenshot_id,
        "image_width": record.image_width,
        "image_height": record.image_height,
        "count": len(found),
        "elements": shown,
    }
    code = 0 if found else NOTHING_FOUND
    lines = [head, *map(_line_of, shown)]
    return Result("\n".join(lines), data, is_text_enough=True, exit_code=code)


def _fits(element: Element, text: Optional[str], role: Optional[str]) -> bool:
    wanted = (text or "").strip().casefold()
    has_text = wanted in element.name.casefold() or wanted in element.value.casefold()
    return has_text and (role is None or element.role == role.strip().lower())


def _data_of(element: Element, box: Rect) -> dict[str, Any]:
    """An element whose box is in pixels of a screenshot; x and y are its middle: what `click` takes."""
    return {
        "role": element.role,
        "name": clean_text(element.name),
        "value": _cut(clean_text(element.value, _VALUE_LENGTH + 1)),
        "states": list(element.states),
        "x": int(box.centre.x),
        "y": int(box.centre.y),
        "width": round(box.width),
        "height": round(box.height),
    }


def _cut(value: str) -> str:
    return value if len(value) <= _VALUE_LENGTH else value[: _VALUE_LENGTH - 1] + "…"


def _line_of(data: dict[str, Any]) -> str:
    """`button "Save" 120,48`; with its value and states where it has any."""
    value = f' = "{data["value"]}"' if data["value"] else ""
    states = f" [{', '.join(data['states'])}]" if data["states"] else ""
    return f'{data["role"]} "{data["name"]}"{value} {data["x"]},{data["y"]}{states}'

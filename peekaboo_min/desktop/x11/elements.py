"""The elements of a window: AT-SPI's tree, read by the system's own Python."""

from __future__ import annotations

import json
import os
import re
import signal
from typing import Any

from ...core.errors import ErrorCode, PeekabooError
from ...core.models import Element, Rect, Window
from ...core.settings import child_environment
from ...core.text import clean_text
from ...system.process import run_program
from ...system.programs import PACKAGES, native_source
from .windows import own_rect

PYTHON = "python3"
_NO_GI = re.compile(r"ModuleNotFoundError|Namespace \w+ not available")
_READ_S = 12.0
_VALUE_LENGTH = 301  # more than is shown of it
_NO_BUS = -signal.SIGTRAP  # libatspi ends its program where it finds no bus
_BUS = "DBUS_SESSION_BUS_ADDRESS"
_FIELDS = ("textbox", "combobox", "spinbutton", "slider")
_PROBLEMS = {
    "bus": "there is no accessibility bus",
    "application": "its application is not on the accessibility bus",
    "twins": "another window of it has the same title, size and place; focus this one first",
}


def read_x11_elements(window: Window) -> list[Element]:
    """The visible elements of a window, in reading order, at most 1,000; boxes in screen points.

    Raises NO_ELEMENTS for an application that offers no tree, MISSING_PROGRAM.
    """
    question = {
        "pid": window.pid,
        "title": window.title,
        "is_popup": window.is_popup,
        "is_focused": window.is_focused,
        "bounds": window.bounds,
        "whole": own_rect(window),
        "outer": window.outer,
    }
    # -I: neither the working folder nor PYTHONPATH; no bus is started for us where there is none
    argv = [PYTHON, "-I", "-", json.dumps(question)]
    source = native_source("desktop/x11/elements_atspi.py").encode("utf-8")
    session = f"unix:path=/run/user/{os.getuid()}/bus"
    bus = {_BUS: child_environment().get(_BUS, session)}
    try:
        done = run_program(argv, timeout_s=_READ_S, stdin=source, environment=bus, accept=(0, _NO_BUS))
    except PeekabooError as e:
        if not _NO_GI.search(e.details):
            raise
        raise PeekabooError(
            ErrorCode.MISSING_PROGRAM,
            "a window's elements are read by the system's python3 with gi, which is not installed",
            hint=f"install it: sudo apt-get install {PACKAGES[PYTHON]}; or use find_text",
        ) from e
    answer: dict[str, Any] = json.loads(done.text or '{"elements": [], "problem": "bus"}')
    found = [
        Element(role, clean_text(name), clean_text(value, _VALUE_LENGTH), tuple(states), Rect(*box))
        for role, name, value, states, box in answer["elements"]
    ]
    if not found:
        raise PeekabooError(
            ErrorCode.NO_ELEMENTS,
            f"{window.app_name} offers no elements: "
            f"{_PROBLEMS.get(answer['problem'], 'this window of it shows none')}",
            hint="use find_text and take_window_screenshot; some applications offer elements only when "
            "started for it (Chromium: with ACCESSIBILITY_ENABLED=1 in its environment; Firefox: "
            "GNOME_ACCESSIBILITY=1; Qt: QT_LINUX_ACCESSIBILITY_ALWAYS_ON=1)",
        )
    return _in_reading_order(found)


def _in_reading_order(elements: list[Element]) -> list[Element]:
    """Row by row: what overlaps a row's first element by its middle stands in that row."""
    rows: list[list[Element]] = []
    for one in sorted(elements, key=lambda one: (one.box.y, one.box.x)):
        last = rows[-1][0].box if rows else None
        if last and one.box.centre.y < last.y + last.height and one.box.height < 2 * last.height:
            rows[-1].append(one)
        else:
            rows.append([one])
    return [one for row in rows for one in _with_labels(sorted(row, key=lambda one: one.box.x))]


def _with_labels(row: list[Element]) -> list[Element]:
    """A field that has no name is called by the text right before it: few forms declare their labels."""
    named = row[:1]
    for one, before in zip(row[1:], row):
        is_label = before.role == "text" or before.box.encloses(one.box)  # a combobox holds its textbox
        is_nameless = one.role in _FIELDS and not one.name
        named.append(one._replace(name=named[-1].name) if is_label and is_nameless else one)
    return named

"""Read a window's elements from AT-SPI, with the system's own Python."""

from __future__ import annotations

import json
import os
import re
import signal

from ...core.errors import ErrorCode, PeekabooError
from ...core.models import Element, Rect, Window
from ...core.settings import child_environment
from ...core.text import clean_text
from ...system.process import run_program
from ...system.programs import missing_program, native_source
from ..base import VALUE_LENGTH
from .windows import own_rect

PYTHON = "python3"
_NO_GI = re.compile(r"ModuleNotFoundError|Namespace \w+ not available")
_NO_BUS = -signal.SIGTRAP  # libatspi ends its program if it finds no bus
_BUS = "DBUS_SESSION_BUS_ADDRESS"
_HINT = (
    "use find_text or take_window_screenshot, or set a variable and restart the application: Chromium "
    "ACCESSIBILITY_ENABLED=1, Firefox GNOME_ACCESSIBILITY=1, Qt QT_LINUX_ACCESSIBILITY_ALWAYS_ON=1"
)
_FIELDS = ("textbox", "combobox", "spinbutton", "slider")


def read_x11_elements(window: Window) -> list[Element]:
    """Return a window's elements; see Desktop.read_elements. Raises NO_ELEMENTS, MISSING_PROGRAM."""
    rectangles = {"whole": own_rect(window), "outer": window.outer}
    question = {**window._asdict(), **rectangles, "is_popup": window.is_popup}
    # -I: import nothing from the working folder or PYTHONPATH
    argv = [PYTHON, "-I", "-", json.dumps(question)]
    source = native_source("desktop/x11/elements_atspi.py").encode("utf-8")
    # name a bus, or libatspi would start one
    bus = {_BUS: child_environment().get(_BUS, f"unix:path=/run/user/{os.getuid()}/bus")}
    try:
        done = run_program(argv, timeout_s=15.0, stdin=source, environment=bus, accept=(0, _NO_BUS))
    except PeekabooError as e:
        if not _NO_GI.search(e.details):
            raise
        problem = "elements need the Python module gi for the system's python3, which is not installed"
        raise missing_program(PYTHON, problem) from e
    rows, problem = json.loads(done.text) if done.text else ([], "there is no accessibility bus")
    if not rows:
        raise PeekabooError(ErrorCode.NO_ELEMENTS, f"{window.app_name} has no elements: {problem}", _HINT)
    elements = [
        Element(role, clean_text(name), clean_text(value, VALUE_LENGTH), tuple(states), Rect(*box))
        for role, name, value, states, box in rows
    ]
    return _in_reading_order(elements)


def _in_reading_order(elements: list[Element]) -> list[Element]:
    """Sort row by row. An element belongs to a row if the row's first element reaches below its centre."""
    rows: list[list[Element]] = []
    for element in sorted(elements, key=lambda element: (element.box.y, element.box.x)):
        box, first = element.box, rows[-1][0].box if rows else None
        if first and box.centre.y < first.y + first.height:
            rows[-1].append(element)
        else:
            rows.append([element])
    return [element for row in rows for element in _with_labels(sorted(row, key=lambda field: field.box.x))]


def _with_labels(row: list[Element]) -> list[Element]:
    # few forms declare their labels: take the text right before an unnamed field
    for at in range(1, len(row)):
        before, field = row[at - 1], row[at]
        is_label = before.role == "text" or before.box.encloses(field.box)  # a combobox contains its textbox
        if is_label and field.role in _FIELDS and not field.name:
            row[at] = field._replace(name=before.name)
    return row

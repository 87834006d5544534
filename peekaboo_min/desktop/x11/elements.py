"""The elements of a window: AT-SPI's tree, read by the system's own Python."""

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
from .windows import own_rect

PYTHON = "python3"
_NO_GI = re.compile(r"ModuleNotFoundError|Namespace \w+ not available")
_READ_S = 12.0
_VALUE_LENGTH = 301  # more than is shown of it
_NO_BUS = -signal.SIGTRAP  # libatspi ends its program where it finds no bus
_BUS = "DBUS_SESSION_BUS_ADDRESS"
_HINT = (
    "use find_text and take_window_screenshot; some applications offer elements only when started for it "
    "(Chromium: with ACCESSIBILITY_ENABLED=1 in its environment; Firefox: GNOME_ACCESSIBILITY=1; "
    "Qt: QT_LINUX_ACCESSIBILITY_ALWAYS_ON=1)"
)
_FIELDS = ("textbox", "combobox", "spinbutton", "slider")


def read_x11_elements(window: Window) -> list[Element]:
    """The visible elements of a window, in reading order, at most 1,000; boxes in screen points.

    Raises NO_ELEMENTS for an application that offers no tree, MISSING_PROGRAM.
    """
    rectangles = {"whole": own_rect(window), "outer": window.outer}
    question = {**window._asdict(), **rectangles, "is_popup": window.is_popup}
    # -I: neither the working folder nor PYTHONPATH; no bus is started for us where there is none
    argv = [PYTHON, "-I", "-", json.dumps(question)]
    source = native_source("desktop/x11/elements_atspi.py").encode("utf-8")
    bus = {_BUS: child_environment().get(_BUS, f"unix:path=/run/user/{os.getuid()}/bus")}
    try:
        done = run_program(argv, timeout_s=_READ_S, stdin=source, environment=bus, accept=(0, _NO_BUS))
    except PeekabooError as e:
        if not _NO_GI.search(e.details):
            raise
        what = "a window's elements are read by the system's python3 with gi, which is not installed"
        raise missing_program(PYTHON, what) from e
    rows, problem = json.loads(done.text) if done.text else ([], "there is no accessibility bus")
    if not rows:
        raise PeekabooError(ErrorCode.NO_ELEMENTS, f"{window.app_name} offers no elements: {problem}", _HINT)
    elements = [
        Element(role, clean_text(name), clean_text(value, _VALUE_LENGTH), tuple(states), Rect(*box))
        for role, name, value, states, box in rows
    ]
    return _in_reading_order(elements)


def _in_reading_order(elements: list[Element]) -> list[Element]:
    """Row by row: what overlaps a row's first element by its middle stands in that row."""
    rows: list[list[Element]] = []
    for element in sorted(elements, key=lambda element: (element.box.y, element.box.x)):
        box, first = element.box, rows[-1][0].box if rows else None
        if first and box.centre.y < first.y + first.height and box.height < 2 * first.height:
            rows[-1].append(element)
        else:
            rows.append([element])
    return [element for row in rows for element in _with_labels(sorted(row, key=lambda field: field.box.x))]


def _with_labels(row: list[Element]) -> list[Element]:
    """A field that has no name is called by the text right before it: few forms declare their labels."""
    for at in range(1, len(row)):
        before, field = row[at - 1], row[at]
        is_label = before.role == "text" or before.box.encloses(field.box)  # a combobox holds its textbox
        if is_label and field.role in _FIELDS and not field.name:
            row[at] = field._replace(name=before.name)
    return row

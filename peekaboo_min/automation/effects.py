"""What an act changed in its window, by screenshots before and after."""

from __future__ import annotations

import time
from typing import Any, NamedTuple, Optional

from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError, file_errors
from ..core.log import log_debug
from ..core.models import Rect, Window
from ..desktop.base import Desktop
from ..system.files import new_temporary_path
from ..system.images import Bitmap, changed_rect, read_bitmap

_EFFECT_S = 0.3
# A caret that blinks shows its other state within this time (both states: GTK 1.2 s, Qt 1 s, xterm 0.9 s).
_BLINK_S = 1.3
_LOOK_AGAIN_S = 0.05
_PAINT_S, _PAINT_POLL_S = 2.0, 0.15
_FIELD_S, _FIELD_POLL_S = 1.0, 0.1
_FIELDS = ("textbox", "combobox", "spinbutton")
_READ_LENGTH = 300  # of a field's value no more is read
# Screen points: the block caret of a large terminal font.
_CARET_WIDTH, _CARET_HEIGHT = 14, 40
_CARET_LINE_WIDTH = 3


class Effect(NamedTuple):
    """What was seen of an act. None for what was not looked at."""

    has_changed: Optional[bool] = None
    is_window_closed: bool = False
    rect: Optional[Rect] = None
    """What changed, in pixels of the window's screenshot at full size."""
    image_width: int = 0
    """That screenshot's width."""
    waited_ms: float = 0.0

    def as_data(self, factor: float = 1.0) -> dict[str, Any]:
        """factor: pixels of the caller's screenshot for each one of a full-size screenshot.

        changed_rect names the width of the image that it counts in: after a key it is the full-size one.
        """
        data: dict[str, Any] = {"changed": self.has_changed}
        if self.rect:
            rect = self.rect.scaled(factor).as_data()
            data["changed_rect"] = {**rect, "image_width": round(self.image_width * factor)}
        if self.is_window_closed:
            data["window_closed"] = True
        if self.has_changed is not None:
            data["effect_ms"] = round(self.waited_ms)
        return data


class FieldWatch:
    """The focused field's value before and after it was replaced, where its application offers a tree."""

    def __init__(self, desktop: Desktop, window: Window) -> None:
        self._desktop, self._window = desktop, window
        self._before = self._value()

    def is_replaced(self, text: str) -> Optional[bool]:
        """Whether the field holds `text` and nothing else; None where that cannot be known."""
        if self._before is None:
            return None
        deadline = time.monotonic() + _FIELD_S  # the application may still be reading its keys
        while True:
            answer = compare_values(self._before, self._value(), text)
            if answer or time.monotonic() > deadline:
                return answer
            pause(_FIELD_POLL_S)

    def _value(self) -> Optional[str]:
        try:
            elements = self._desktop.read_elements(self._window)
        except PeekabooError as e:
            if e.code is ErrorCode.CANCELLED:
                raise
            log_debug(f"what the field holds is not known: {e.message}")
            return None
        focused = [
            element.value for element in elements if element.role in _FIELDS and "focused" in element.states
        ]
        return focused[0] if len(focused) == 1 else None


def compare_values(before: str, after: Optional[str], text: str) -> Optional[bool]:
    """Whether a field was replaced by a text, by its values (pure). False only where what it held is still
    there: a field may format what is typed, complete it, or hide it.
    """
    if after is None or not (before or after):
        return None
    held, holds, typed = ("".join(value.split()) for value in (before, after, text))
    if holds == typed or (len(after) >= _READ_LENGTH and typed.startswith(holds)):
        return True
    return False if held and held in holds and held not in typed else None


class Watch:
    """A window's screenshot before an act, and the comparison after it. Raises CAPTURE_FAILED."""

    def __init__(self, desktop: Desktop, window: Window) -> None:
        self._desktop = desktop
        self._window = window
        self._before = take_bitmap(desktop, window)
        self.width = self._before.width

    def is_other_within(self, box: Rect, image_width: int) -> bool:
        """Whether a part of the window shows something else now, but for a caret.

        box: in pixels of a screenshot of that width.
        """
        whole = box.scaled(self.width / image_width)
        place = map(int, (whole.x, whole.y, whole.x + whole.width + 1, whole.y + whole.height + 1))
        left, top, right, bottom = place
        now = take_bitmap(self._desktop, self._window)
        rect = changed_rect(
            self._before.cropped(left, top, right, bottom), now.cropped(left, top, right, bottom)
        )
        return rect is not None and rect.width > _CARET_LINE_WIDTH

    def effect(self) -> Effect:
        """Whether the window's pixels changed; a window that does not react is watched for _EFFECT_S.

        What is not larger than a caret counts only when it stays for longer than a caret blinks.
        A window that closed is an outcome, and a change; one that was minimised is a change.
        """
        start = time.monotonic()
        found = self._effect(start)
        waited_ms = (time.monotonic() - start) * 1000
        return found._replace(image_width=self.width, waited_ms=waited_ms)

    def _effect(self, start: float) -> Effect:
        last: Optional[Rect] = None
        while True:
            pause(_LOOK_AGAIN_S)
            try:
                rect = changed_rect(self._before, take_bitmap(self._desktop, self._window))
            except PeekabooError as e:
                if e.code not in (ErrorCode.WINDOW_NOT_FOUND, ErrorCode.CAPTURE_FAILED):
                    raise
                is_closed = self._desktop.snapshot().find(self._window.window_id) is None
                return Effect(True, is_window_closed=is_closed)
            elapsed_s = time.monotonic() - start
            if rect is None and (elapsed_s > _EFFECT_S or last is not None):
                return Effect(False)
            if rect is not None:
                is_settled = rect == last or elapsed_s > _EFFECT_S
                if is_settled and (not is_caret(rect, self.width, self._window) or elapsed_s > _BLINK_S):
                    return Effect(True, rect=rect)
            last = rect


def is_caret(rect: Rect, width: int, window: Window) -> bool:
    """Whether a change in a window's bitmap of this width is not larger than a caret that blinks."""
    scale = max(1.0, width / max(1.0, window.bounds.width))
    return rect.width <= _CARET_WIDTH * scale and rect.height <= _CARET_HEIGHT * scale


def take_bitmap(desktop: Desktop, window: Window) -> Bitmap:
    """A window's pixels as they are now. Raises CAPTURE_FAILED."""
    path = new_temporary_path("peekaboo", "bmp")
    try:
        with file_errors(path):
            desktop.capture_window(window, path, "bmp")
        bitmap = read_bitmap(path) if path.is_file() else None
    finally:
        path.unlink(missing_ok=True)
    if bitmap is None:
        raise PeekabooError(
            ErrorCode.CAPTURE_FAILED, "the capture program left no whole bitmap", hint="try again"
        )
    return bitmap


def wait_until_painted(desktop: Desktop, window: Window) -> None:
    """A window that was just restored shows nothing until its app has painted it: wait, but not for ever."""
    last: Optional[Bitmap] = None
    deadline = time.monotonic() + _PAINT_S
    while time.monotonic() < deadline:
        pause(_PAINT_POLL_S)
        try:
            bitmap = take_bitmap(desktop, window)
        except PeekabooError as e:
            if e.code is ErrorCode.CANCELLED:
                raise
            log_debug(f"whether window {window.window_id} is painted is not known: {e.message}")
            if e.code is not ErrorCode.CAPTURE_FAILED:
                return  # the screenshot itself says what is wrong
            continue
        if bitmap == last and not bitmap.is_of_one_colour:
            return
        last = bitmap

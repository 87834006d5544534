"""What an act changed in its window, by screenshots before and after."""

from __future__ import annotations

import time
from typing import Any, NamedTuple, Optional

from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError, file_errors
from ..core.log import log_debug
from ..core.models import Rect, Scene, Window
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..desktop.matching import catalogue_windows
from ..system.files import new_temporary_path
from ..system.images import Bitmap, changed_rect, read_bitmap

_BEFORE_S, _BEFORE_AT_MOST = 0.1, 4  # a window that was just focused may still be drawing that
_AFTER_S = (0.05, 0.1, 0.2, 0.3, 0.35)  # the pauses before the screenshots after an act: 1 s
_AGAIN_S = 0.05
_PAINT_S, _PAINT_POLL_S = 2.0, 0.15
# Screen points: the block caret of a large terminal font.
_CARET_WIDTH, _CARET_HEIGHT = 14, 40
_CARET_LINE_WIDTH = 3


class Effect(NamedTuple):
    """What was seen of an act. None for what was not looked at."""

    has_changed: Optional[bool] = None
    """Also None for a window that changes by itself."""
    is_window_closed: bool = False
    rect: Optional[Rect] = None
    """What changed, in pixels of the window's screenshot at full size."""
    image_width: int = 0
    """That screenshot's width; 0 where nothing was looked at."""
    waited_ms: float = 0.0
    new_window: Optional[Window] = None
    """The front one of those that came."""

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
        if self.new_window:
            title = clean_text(self.new_window.title or "")
            data["new_window"] = {"window_id": self.new_window.window_id, "title": title}
        if self.image_width:
            data["effect_ms"] = round(self.waited_ms)
        return data


class Watch:
    """A window's screenshots before an act, and the comparison after it. Raises CAPTURE_FAILED."""

    def __init__(self, desktop: Desktop, scene: Scene, window: Window) -> None:
        self._desktop = desktop
        self._window = window
        self._known_ids = {known.window_id for known in scene.windows}
        self._before = [take_bitmap(desktop, window)]
        self.width = self._before[0].width
        for _ in range(_BEFORE_AT_MOST - 1):
            pause(_BEFORE_S)
            self._before = [self._before[-1], take_bitmap(desktop, window)]
            self._changes_by_itself = self._is_large(changed_rect(*self._before))
            if not self._changes_by_itself:
                break

    def effect(self) -> Effect:
        """Whether the window's pixels changed, and which window came; one that does not react is watched for
        a second.

        What is not larger than a caret counts only when each screenshot has it: a caret blinks.
        A window that closed is an outcome, and a change; one that was minimised is a change.
        """
        start = time.monotonic()
        found = self._effect()
        waited_ms = (time.monotonic() - start) * 1000
        scene = self._desktop.snapshot()
        is_closed = scene.find(self._window.window_id) is None
        came = [window for window in catalogue_windows(scene) if window.window_id not in self._known_ids]
        return found._replace(
            has_changed=True if is_closed else found.has_changed,
            is_window_closed=is_closed,
            image_width=self.width,
            waited_ms=waited_ms,
            new_window=next((window for window in came if window.kind != "tooltip"), None),
        )

    def _effect(self) -> Effect:
        was_large, is_always_other = False, True
        rect: Optional[Rect] = None
        for seconds in _AFTER_S:
            pause(_AGAIN_S if was_large else seconds)
            try:
                now = take_bitmap(self._desktop, self._window)
            except PeekabooError as e:
                if e.code not in (ErrorCode.WINDOW_NOT_FOUND, ErrorCode.CAPTURE_FAILED):
                    raise
                return Effect(True)
            if self._changes_by_itself:
                return Effect(None)
            rects = [changed_rect(before, now) for before in self._before]
            rect = rects[-1]
            is_large = all(map(self._is_large, rects))
            if is_large and was_large:
                return Effect(True, rect=rect)
            was_large = is_large
            is_always_other = is_always_other and all(rects)
        return Effect(True, rect=rect) if was_large or is_always_other else Effect(False)

    def _is_large(self, rect: Optional[Rect]) -> bool:
        return rect is not None and not is_caret(rect, self.width, self._window)


def is_other_within(before: Bitmap, now: Bitmap, box: Rect, image_width: int) -> bool:
    """Whether a part of a window shows something else now, but for a caret.

    box: in pixels of a screenshot of that width.
    """
    whole = box.scaled(before.width / image_width)
    place = map(int, (whole.x, whole.y, whole.x + whole.width + 1, whole.y + whole.height + 1))
    left, top, right, bottom = place
    rect = changed_rect(before.cropped(left, top, right, bottom), now.cropped(left, top, right, bottom))
    return rect is not None and rect.width > _CARET_LINE_WIDTH


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

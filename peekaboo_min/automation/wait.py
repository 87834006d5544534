"""Wait until a window shows a text, opens, closes or stops changing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Callable, Optional, Union

from ..core.cancellation import pause, report_progress, time_budget
from ..core.errors import ErrorCode, PeekabooError, check_range, invalid
from ..core.models import Rect, Result, Scene, Window
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..desktop.matching import catalogue_windows, find_app, windows_of
from ..system.images import Bitmap, changed_rect, is_caret
from .capture import Subject, scene_to_capture, take_bitmap, take_image
from .find_text import search_image, wanted_text
from .listing import window_data

_LONGEST_S = 45.0
_LAST_LOOK_S = 4.0  # a look that began in time may end
_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _GROWTH = 0.1, 1.0, 1.4
_STILL_S = 1.0
_WINDOWS_READ = 3

# The result when the condition holds; else what was seen.
_Look = Callable[[Sequence[Window]], Union[Result, str]]


def wait_for_condition(
    desktop: Desktop,
    window_id: Optional[int] = None,
    app: Optional[str] = None,
    text: Optional[str] = None,
    title: Optional[str] = None,
    closed: bool = False,
    still: bool = False,
    timeout_s: float = 10.0,
) -> Result:
    """Look again and again, with growing pauses, until the condition holds in a window, or in those of an
    app; without a condition: until the app has a window.

    data: `waited_s`, and what find_text answers (text), a window as list_windows has it (title, still, app).
    Raises TIMEOUT with what was seen last, WINDOW_NOT_FOUND for one that is gone, and what looking raises.
    """
    goal, look = _condition(desktop, window_id, app, text, title, closed, still)
    check_range("timeout_s", timeout_s, 1, _LONGEST_S)
    start = time.monotonic()
    pause_s, last = _FIRST_PAUSE_S, "nothing yet"
    with time_budget(timeout_s + _LAST_LOOK_S):
        while True:
            try:
                scene = desktop.snapshot() if closed else scene_to_capture(desktop)
                answer = look(_windows(scene, window_id, app, closed))
            except PeekabooError as e:
                if e.code not in (ErrorCode.APP_NOT_FOUND, ErrorCode.CAPTURE_FAILED, ErrorCode.TIMEOUT):
                    raise
                answer = e.message
            waited_s = time.monotonic() - start
            if isinstance(answer, Result):
                return answer._replace(data={**answer.data, "waited_s": round(waited_s, 1)})
            if answer != last:
                last = answer
                report_progress(f"waiting for {goal}: {last}")
            if waited_s + pause_s > timeout_s:
                raise PeekabooError(
                    ErrorCode.TIMEOUT,
                    f"waited {timeout_s:g} s for {goal}; last seen: {last}",
                    hint="take a screenshot to see what is there, or wait again with a longer timeout_s",
                )
            pause(pause_s)
            pause_s = min(pause_s * _GROWTH, _LONGEST_PAUSE_S)


def _condition(
    desktop: Desktop,
    window_id: Optional[int],
    app: Optional[str],
    text: Optional[str],
    title: Optional[str],
    closed: bool,
    still: bool,
) -> tuple[str, _Look]:
    """What is waited for, in words, and the look that tells. Raises INVALID_ARGUMENT."""
    if window_id is not None and app is not None:
        raise invalid("both a window and an app are given", "name one of them")
    where = f"window {window_id}" if window_id is not None else f"a window of {app!r}" if app else "a window"
    if sum((text is not None, title is not None, closed, still)) > 1:
        raise invalid("several conditions are given", "wait for text, title, closed or still, one at a time")
    if title is None and window_id is None and app is None:
        raise invalid("neither a window nor an app is given", "name one, or wait for a title")
    if text is not None:
        wanted = wanted_text(text)
        return f"the text {wanted[:80]!r} in {where}", _TextLook(desktop, wanted)
    if title is not None:
        part = title.strip().casefold()
        if not part:
            raise invalid("the title is empty", "give the title, or a part of it")
        return f"the title {title[:80]!r} of {where}", lambda windows: _titled(part, windows)
    if closed:
        return f"{where} to close", lambda windows: _closed(where, windows)
    if still:
        return f"{where} to stop changing", _StillLook(desktop)
    if window_id is not None:
        raise invalid("no condition is given", "wait for text, title, closed or still")
    return where, lambda windows: _of_window("open", windows[0]) if windows else "no window of it"


def _windows(scene: Scene, window_id: Optional[int], app: Optional[str], may_be_gone: bool) -> list[Window]:
    """The windows that may fulfil the condition. Raises WINDOW_NOT_FOUND, APP_NOT_FOUND."""
    if window_id is not None:
        found = scene.find(window_id) if may_be_gone else scene.by_id(window_id)
        return [found] if found else []
    windows = catalogue_windows(scene)
    if may_be_gone:
        windows += [one for one in scene.windows if one.is_elsewhere and one not in windows]
    if app is None:
        return windows
    try:
        return windows_of(find_app(app, scene.apps), windows)
    except PeekabooError as e:
        if may_be_gone and e.code is ErrorCode.APP_NOT_FOUND:
            return []
        raise


def _of_window(what: str, window: Window) -> Result:
    title = clean_text(window.title or "")
    return Result(
        f"window {window.window_id} of {window.app_name} ({title!r}) is {what}", window_data(window)
    )


def _titled(part: str, windows: Sequence[Window]) -> Union[Result, str]:
    for window in windows:
        if part in (window.title or "").casefold():
            return _of_window("there", window)
    titles = ", ".join(repr(clean_text(window.title or "")) for window in windows[:10])
    return f"the titles {titles}" if titles else "no window"


def _closed(where: str, windows: Sequence[Window]) -> Union[Result, str]:
    if windows:
        return f"window {windows[0].window_id} ({clean_text(windows[0].title or '')!r}) is open"
    return Result(f"{where} is closed", {"closed": True})


class _TextLook:
    """Reads the text of the front windows; an image that was read once is not read again (a caret blinks)."""

    def __init__(self, desktop: Desktop, wanted: str) -> None:
        self._desktop = desktop
        self._wanted = wanted
        self._read: set[int] = set()
        self._last = "no window"

    def __call__(self, windows: Sequence[Window]) -> Union[Result, str]:
        shown = [window for window in windows if window.is_on_screen] or windows
        for window in shown[:_WINDOWS_READ]:
            image = take_image(self._desktop, Subject(window=window))
            state = hash((window.window_id, image.content.data))
            if state in self._read:
                continue
            seen = search_image(self._desktop, image, self._wanted)
            self._read.add(state)
            if seen.found:
                return Result(seen.found_text(), seen.as_data())
            self._last = seen.nearest_text()
        return self._last


class _StillLook:
    """Compares a window, and its place, with what was seen. A blinking caret is no change: small, and back to
    what was seen before.
    """

    def __init__(self, desktop: Desktop) -> None:
        self._desktop = desktop
        self._place: Optional[tuple[int, Rect]] = None
        self._states: list[Bitmap] = []
        self._since = 0.0

    def __call__(self, windows: Sequence[Window]) -> Union[Result, str]:
        if not windows:
            return "no window"
        window, now = windows[0], take_bitmap(self._desktop, windows[0])
        place = window.window_id, window.bounds
        if place == self._place and now in self._states:
            is_rested = time.monotonic() - self._since >= _STILL_S
            return _of_window("still", window) if is_rested else f"window {window.window_id}"
        rect = changed_rect(self._states[0], now) if len(self._states) == 1 else None
        if place == self._place and rect and is_caret(rect, now.width, window):
            self._states.append(now)
            return f"window {window.window_id}"
        is_first = not self._states
        self._place, self._states, self._since = place, [now], time.monotonic()
        return f"window {window.window_id}" if is_first else f"window {window.window_id} changed"

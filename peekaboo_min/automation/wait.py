"""Wait until a window shows a text, opens, closes or stops changing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Callable, Optional, Union

from ..core.cancellation import pause, report_progress, time_budget
from ..core.errors import ErrorCode, PeekabooError, check_range, invalid
from ..core.models import Rect, Result, Scene, Window
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..desktop.matching import catalogue_windows, find_app, windows_of
from ..system.images import Bitmap, changed_rect, png_pixels
from .capture import image_to_read, scene_to_capture
from .effects import is_caret, take_bitmap
from .find import search_image, wanted_text
from .listing import window_data

_LONGEST_S = 45.0
_LAST_LOOK_S = 4.0  # a look that began in time may end
_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _GROWTH = 0.1, 1.0, 1.4
_STILL_S = 1.0
_WINDOWS_READ = 3

# The result when the condition holds in these windows; else what was seen.
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
    if window_id is not None and app is not None:
        raise invalid("both a window and an app are given", "name one of them")
    if sum((text is not None, title is not None, closed, still)) > 1:
        raise invalid("several conditions are given", "wait for text, title, closed or still, one at a time")
    if title is None and window_id is None and app is None:
        raise invalid("neither a window nor an app is given", "name one, or wait for a title")
    if window_id is not None and text is title is None and not (closed or still):
        raise invalid("no condition is given", "wait for text, title, closed or still")
    check_range("timeout_s", timeout_s, 1, _LONGEST_S)
    where = f"window {window_id}" if window_id is not None else f"a window of {app!r}" if app else "a window"
    goal, look = _condition(desktop, where, text, title, closed, still)
    start = time.monotonic()
    pause_s, last = _FIRST_PAUSE_S, "nothing yet"
    with time_budget(timeout_s + _LAST_LOOK_S):
        while True:
            try:
                scene = desktop.snapshot() if closed else scene_to_capture(desktop)
                answer = look(_windows(scene, window_id, app, closed))
            except PeekabooError as e:
                if closed and e.code in (ErrorCode.APP_NOT_FOUND, ErrorCode.WINDOW_NOT_FOUND):
                    answer = _closed([])
                elif e.code in (ErrorCode.APP_NOT_FOUND, ErrorCode.CAPTURE_FAILED, ErrorCode.TIMEOUT):
                    answer = e.message
                else:
                    raise
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
    desktop: Desktop, where: str, text: Optional[str], title: Optional[str], closed: bool, still: bool
) -> tuple[str, _Look]:
    """What is waited for, in words, and the look that tells. Raises INVALID_ARGUMENT."""
    if text is not None:
        return f"the text {text[:80]!r} in {where}", _text_look(desktop, wanted_text(text))
    if closed:
        return f"{where} to close", _closed
    if still:
        return f"{where} to stop changing", _still_look(desktop)
    if title is None:
        return where, partial(_titled, "")
    if not title.strip():
        raise invalid("the title is empty", "give the title, or a part of it")
    return f"the title {title[:80]!r} of {where}", partial(_titled, title.strip().casefold())


def _windows(scene: Scene, window_id: Optional[int], app: Optional[str], closed: bool) -> list[Window]:
    """The windows that may fulfil the condition. Raises WINDOW_NOT_FOUND, APP_NOT_FOUND."""
    if window_id is not None:
        return [scene.by_id(window_id)]
    windows = catalogue_windows(scene)
    if closed:
        windows += [window for window in scene.windows if window.is_elsewhere and window not in windows]
    return windows_of(find_app(app, scene.apps), windows) if app is not None else windows


def _named(window: Window) -> str:
    return f"window {window.window_id} of {window.app_name} ({clean_text(window.title or '')!r})"


def _result(window: Window, state: str) -> Result:
    return Result(f"{_named(window)} is {state}", window_data(window))


def _titled(part: str, windows: Sequence[Window]) -> Union[Result, str]:
    window = next((window for window in windows if part in (window.title or "").casefold()), None)
    return _result(window, "there") if window else "; ".join(map(_named, windows[:10])) or "no window"


def _closed(windows: Sequence[Window]) -> Union[Result, str]:
    return f"{_named(windows[0])} is open" if windows else Result("it is closed", {"closed": True})


def _text_look(desktop: Desktop, wanted: str) -> _Look:
    """Reads the text of the front windows; an image that was read once is not read again (a caret blinks)."""
    read: set[int] = set()
    last = "no window"

    def look(windows: Sequence[Window]) -> Union[Result, str]:
        nonlocal last
        shown = [window for window in windows if window.is_on_screen] or windows
        for window in shown[:_WINDOWS_READ]:
            image = image_to_read(desktop, window)
            state = hash((window.window_id, png_pixels(image.path)))
            if state in read:
                image.path.unlink()
                continue
            seen = search_image(desktop, image, wanted)
            read.add(state)
            if seen.found:
                return seen.result()
            last = seen.nearest_text()
        return last

    return look


def _still_look(desktop: Desktop) -> _Look:
    """Compares a window, and its place, with what was seen. A blinking caret is no change: small, and back to
    what was seen before.
    """
    states: list[tuple[int, Rect, Bitmap]] = []
    since = 0.0

    def look(windows: Sequence[Window]) -> Union[Result, str]:
        nonlocal since
        if not windows:
            return "no window"
        window = windows[0]
        state = (window.window_id, window.bounds, take_bitmap(desktop, window))
        if state in states:
            is_rested = time.monotonic() - since >= _STILL_S
            return _result(window, "still") if is_rested else f"window {window.window_id}"
        is_in_place = len(states) == 1 and state[:2] == states[0][:2]
        rect = changed_rect(states[0][2], state[2]) if is_in_place else None
        if not (rect and is_caret(rect, state[2].width, window)):
            states.clear()
            since = time.monotonic()
        states.append(state)
        return f"window {window.window_id}"

    return look

"""Wait until a window shows a text, opens, closes or stops changing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Callable, Optional, Union

from ..core.call import pause, report_progress, time_budget, within_budget
from ..core.errors import ErrorCode, PeekabooError, check_range, invalid
from ..core.models import Rect, Result, Scene, Window
from ..desktop.base import Desktop
from ..desktop.matching import catalogue_windows, find_app, windows_of
from ..system.bitmaps import Bitmap, changed_rect, is_caret
from .capture import Subject, scene_to_capture, take_bitmap, take_image
from .find import search_image, wanted_role, wanted_text
from .listing import window_data

_MAY_PASS = (ErrorCode.APP_NOT_FOUND, ErrorCode.CAPTURE_FAILED, ErrorCode.NO_ELEMENTS, ErrorCode.TIMEOUT)
# Returns the result if these windows meet the condition, else a description of them.
_Look = Callable[[Sequence[Window]], Union[Result, str]]


def wait_for(
    desktop: Desktop,
    window_id: Optional[int],
    app: Optional[str],
    text: Optional[str],
    role: Optional[str],
    title: Optional[str],
    closed: bool,
    still: bool,
    timeout_s: float,
    longest_s: float,
) -> Result:
    """Wait until a window, or any window of an app, meets one condition. role: of the element `text`.

    With an app and no condition, wait until it has a window.
    Raises INVALID_ARGUMENT, TIMEOUT with the last observation, WINDOW_NOT_FOUND if the window is gone, and
    the errors of listing and capturing.
    """
    if window_id is not None and app is not None:
        raise invalid("both a window and an app are given", "give one of them")
    if sum((text is not None, title is not None, closed, still)) > 1:
        raise invalid("several conditions are given", "wait for text, title, closed or still, one at a time")
    if title is None and window_id is None and app is None:
        raise invalid("neither a window nor an app is given", "give one, or wait for a title")
    if window_id is not None and text is title is None and not (closed or still):
        raise invalid("no condition is given", "wait for text, title, closed or still")
    role = wanted_role(role, text)
    check_range("timeout_s", timeout_s, 1, longest_s)
    timeout_s = within_budget(timeout_s)
    where = f"window {window_id}" if window_id is not None else f"a window of {app!r}" if app else "a window"
    goal, look = _condition(desktop, where, text, role, title, closed, still)
    start = time.monotonic()
    pause_s, last = 0.1 * desktop.capture_cost, "nothing yet"
    with time_budget(timeout_s + 4.0):  # a look that began in time may finish
        while True:
            try:
                scene = desktop.snapshot(with_minimised=True) if closed else scene_to_capture(desktop)
                answer = look(_windows(scene, window_id, app, closed))
            except PeekabooError as e:
                if closed and e.code in (ErrorCode.APP_NOT_FOUND, ErrorCode.WINDOW_NOT_FOUND):
                    answer = _closed([])
                elif e.code in _MAY_PASS:
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
                message = f"waited {timeout_s:g} s for {goal}; last seen: {last}"
                hint = "take a screenshot to see what is there, or increase the timeout"
                raise PeekabooError(ErrorCode.TIMEOUT, message, hint)
            pause(pause_s)
            pause_s = min(pause_s * 1.4, 1.0 * desktop.capture_cost)


def _condition(
    desktop: Desktop,
    where: str,
    text: Optional[str],
    role: str,
    title: Optional[str],
    closed: bool,
    still: bool,
) -> tuple[str, _Look]:
    if text is not None:
        return f"the text {text[:80]!r} in {where}", _text_look(desktop, wanted_text(text), role)
    if closed:
        return f"{where} to close", _closed
    if still:
        return f"{where} to stop changing", _still_look(desktop)
    if title is None:
        return where, partial(_titled, "")
    if not title.strip():
        raise invalid("the title is empty", "give the title or a part of it")
    return f"the title {title[:80]!r} of {where}", partial(_titled, title.strip().casefold())


def _windows(scene: Scene, window_id: Optional[int], app: Optional[str], closed: bool) -> list[Window]:
    if window_id is not None:
        return [scene.by_id(window_id)]
    windows = catalogue_windows(scene)
    if closed:
        windows += [window for window in scene.windows if window.is_elsewhere and window not in windows]
    return windows_of(find_app(app, scene.apps), windows) if app is not None else windows


def _result(window: Window, state: str) -> Result:
    return Result(f"{window} is {state}", window_data(window))


def _titled(part: str, windows: Sequence[Window]) -> Union[Result, str]:
    window = next((window for window in windows if part in (window.title or "").casefold()), None)
    return _result(window, "there") if window else "; ".join(map(str, windows[:10])) or "no window"


def _closed(windows: Sequence[Window]) -> Union[Result, str]:
    return f"{windows[0]} is open" if windows else Result("it is closed", {"closed": True})


def _text_look(desktop: Desktop, wanted: str, role: str) -> _Look:
    """Read the text of the front windows; skip an image that was read before, as when a caret blinks.

    With a role, ask the tree each time: an element may change its name before its picture.
    """
    read: set[int] = set()
    last = "no window"

    def look(windows: Sequence[Window]) -> Union[Result, str]:
        nonlocal last
        shown = [window for window in windows if window.is_on_screen] or windows
        for window in shown[:3]:
            image = take_image(desktop, Subject(window=window))
            state = hash((window.window_id, image.content.data))
            if state in read and not role:
                continue
            search = search_image(desktop, image, wanted, role=role)
            read.add(state)
            if search.found:
                return search.result()
            last = search.nearest_text()
        return last

    return look


def _still_look(desktop: Desktop) -> _Look:
    """Compare with earlier bitmaps. A small change back to an earlier bitmap is a blinking caret."""
    states: list[tuple[int, Rect, Bitmap]] = []
    since = 0.0

    def look(windows: Sequence[Window]) -> Union[Result, str]:
        nonlocal since
        if not windows:
            return "no window"
        window = windows[0]
        state = (window.window_id, window.bounds, take_bitmap(desktop, window))
        if any(known[:2] == state[:2] and not changed_rect(known[2], state[2]) for known in states):
            is_rested = time.monotonic() - since >= 1.0
            return _result(window, "still") if is_rested else f"window {window.window_id}"
        is_in_place = len(states) == 1 and state[:2] == states[0][:2]
        rect = changed_rect(states[0][2], state[2]) if is_in_place else None
        if not (rect and is_caret(rect, state[2].width, window)):
            states.clear()
            since = time.monotonic()
        states.append(state)
        return f"window {window.window_id}"

    return look

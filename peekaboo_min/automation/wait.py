"""Wait until a window shows a text, opens, closes or stops changing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Callable, Optional, Union

from ..core.cancellation import pause, report_progress, time_budget
from ..core.errors import ErrorCode, PeekabooError, check_range, invalid
from ..core.models import Rect, Result, Scene, Window
from ..desktop.base import Desktop
from ..desktop.matching import catalogue_windows, find_app, windows_of
from ..desktop.select import this_desktop
from ..system.images import Bitmap, changed_rect, is_caret
from .capture import Subject, scene_to_capture, take_bitmap, take_image
from .find import search_image, wanted_text
from .listing import window_data

_LONGEST_S = 45.0
_LAST_LOOK_S = 4.0  # a look that began in time may end
_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _GROWTH = 0.1, 1.0, 1.4
_RARER_ON_MAC = 2  # macOS 26 flashes the screen at each capture
_STILL_S = 1.0
_WINDOWS_READ = 3

# The result when the condition holds in these windows; else what was seen.
_Look = Callable[[Sequence[Window]], Union[Result, str]]


def wait_for(
    window_id: Annotated[Optional[int], "the window's id, from list_windows; this or app"] = None,
    app: Annotated[Optional[str], "an app's name or bundle id: any window of it"] = None,
    text: Annotated[
        Optional[str], "until the window shows this text: whole words, case does not matter"
    ] = None,
    title: Annotated[Optional[str], "until a window has this in its title"] = None,
    closed: Annotated[bool, "until the window, or the app's last one, is gone; default false"] = False,
    still: Annotated[bool, "until the window has not changed for a second; default false"] = False,
    timeout_s: Annotated[float, "seconds, 1 to 45; default 10"] = 10.0,
) -> Result:
    """Waits until a window shows a text or a title, closes, or stops changing. Give one of text (the result
    has its x and y), title, closed, still; or an app alone, until it has a window. Else TIMEOUT, with what
    was seen last.

    Example: peekaboo-min wait-for --window-id 14680078 --text "Saved"
    """
    # Raises WINDOW_NOT_FOUND for a window that is gone, and what looking raises
    desktop = this_desktop()
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
    rarer = _RARER_ON_MAC if desktop.name == "macos" else 1
    pause_s, last = _FIRST_PAUSE_S * rarer, "nothing yet"
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
                message = f"waited {timeout_s:g} s for {goal}; last seen: {last}"
                hint = "take a screenshot to see what is there, or wait again with a longer timeout_s"
                raise PeekabooError(ErrorCode.TIMEOUT, message, hint)
            pause(pause_s)
            pause_s = min(pause_s * _GROWTH, _LONGEST_PAUSE_S * rarer)


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


def _result(window: Window, state: str) -> Result:
    return Result(f"{window} is {state}", window_data(window))


def _titled(part: str, windows: Sequence[Window]) -> Union[Result, str]:
    window = next((window for window in windows if part in (window.title or "").casefold()), None)
    return _result(window, "there") if window else "; ".join(map(str, windows[:10])) or "no window"


def _closed(windows: Sequence[Window]) -> Union[Result, str]:
    return f"{windows[0]} is open" if windows else Result("it is closed", {"closed": True})


def _text_look(desktop: Desktop, wanted: str) -> _Look:
    """Reads the text of the front windows; an image that was read once is not read again (a caret blinks)."""
    read: set[int] = set()
    last = "no window"

    def look(windows: Sequence[Window]) -> Union[Result, str]:
        nonlocal last
        shown = [window for window in windows if window.is_on_screen] or windows
        for window in shown[:_WINDOWS_READ]:
            image = take_image(desktop, Subject(window=window))
            state = hash((window.window_id, image.content.data))
            if state in read:
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
        if any(known[:2] == state[:2] and not changed_rect(known[2], state[2]) for known in states):
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

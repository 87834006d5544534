"""The pointer on X11: click where the X server says the window is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, Optional

from ...core.errors import ErrorCode, PeekabooError
from ...core.models import Delivery, Point, Window
from ...system.background import InteractiveProgram, interactive_program
from ...system.files import held_locks
from .keyboard import release_x11_modifiers, x11_modifiers
from .server import UTF8, app_with_window, check_x, is_viewable, top_level, top_level_under_pointer
from .windows import is_same_client, take_scene

_BUTTONS = {"left": "1", "middle": "2", "right": "3"}
_CLICK_S = 5.0
_DOUBLE_CLICK_MS = "60"
_WHOLE_LOOK = re.compile(r"^SCREEN=\d+\nWINDOW=\d+\n", re.M)  # the end of getmouselocation --shell


class _Look(NamedTuple):
    """What xdotool's getmouselocation and getwindowgeometry print."""

    point: Point
    under_id: int
    """The window under the pointer; xdotool names the client, its frame, or a child of the root window."""
    size: tuple[int, int]


def click_x11(
    window: Window, point: Point, button: str, clicks: int, modifiers: Sequence[str] = ()
) -> Delivery:
    """Move the pointer, ask what is under it, and press only when that is the window.

    One xdotool does it, line by line: it moves and looks; it is told to press only when that was right; then
    it looks again and presses, and what it printed right before the press is what was reached. It moves
    relative to the window, which the server does itself: a window that moves meanwhile takes its pixel along.
    """
    top_id = window.frame_id or window.window_id
    left, _, above, _ = window.insets
    held = x11_modifiers(modifiers)
    inside = (int(point.x - window.bounds.x + left), int(point.y - window.bounds.y + above))
    look_words = ["mousemove", "--window", str(window.window_id), "--", *map(str, inside)]
    look_words += ["getwindowgeometry", "--shell", str(window.window_id), "getmouselocation", "--shell"]
    ours = {window.window_id, top_id}
    with interactive_program(
        ["xdotool", "-"], timeout_s=_CLICK_S, environment=UTF8, pass_fds=held_locks()
    ) as xdotool:
        look = _look(xdotool, look_words)
        if look.under_id not in ours and top_level_under_pointer() != top_id:
            raise _covered(window, look.under_id)
        _check_still_there(window, point, look)
        try:
            pressed = _look(xdotool, [*look_words, *_press_words(button, clicks, held)])
            xdotool.end()
        except PeekabooError:
            if held:
                release_x11_modifiers(held)
            raise
    is_ours = pressed.under_id in ours or _is_still_ours(window, top_id, look, pressed)
    if is_ours is False:
        return Delivery(False, pressed.point, _listed_id(pressed.under_id))
    has_changed = pressed.point != look.point or pressed.size != look.size
    if has_changed or _is_covered_by_another_program(window, top_id):
        return Delivery(None, pressed.point)
    return Delivery(is_ours, pressed.point)


def _is_covered_by_another_program(window: Window, top_id: int) -> bool:
    """Whether another program's window lies over the window right after the press: it may have come before
    it, in the microseconds since xdotool looked. What the press itself opened is a window of its own program.
    """
    now = top_level_under_pointer()
    if not now or now == top_id or is_same_client(now, window.window_id):
        return False
    # a frame is the window manager's: whose window is in it takes a whole look to tell
    return not is_same_client(_listed_id(now), window.window_id) and is_viewable(window.window_id)


def _is_still_ours(window: Window, top_id: int, look: _Look, pressed: _Look) -> Optional[bool]:
    """Whether what xdotool named right before the press was the window, where it did not name it or its
    frame.

    The same child of it as in the first look is. 0 stands for any window that no manager manages (a popup,
    and all without a manager): then the window is still under the pointer, or the press closed it, or opened
    another window of its program, or another program's new window came in between: that is not known.
    """
    if pressed.under_id:
        return pressed.under_id == look.under_id or top_level(pressed.under_id) == top_id
    if look.under_id:
        return False
    now = top_level_under_pointer()
    if now == top_id or (now and is_same_client(now, window.window_id)):
        return True
    # a window that existed before the press's own effects is what a closed popup uncovers
    return True if not is_viewable(window.window_id) and now is not None else None


def _press_words(button: str, clicks: int, held: Sequence[str]) -> list[str]:
    """xdotool's words for the press. Not `click --window 0`: it pressed twice in one of four trials."""
    delay = _DOUBLE_CLICK_MS if clicks > 1 else "0"
    keys = "+".join(held)
    return [
        *(["keydown", "--delay", "0", keys] if held else []),
        *["click", "--repeat", str(clicks), "--delay", delay, _BUTTONS[button]],
        *(["keyup", "--delay", "0", keys] if held else []),
    ]


def _look(xdotool: InteractiveProgram, words: Sequence[str]) -> _Look:
    """Let xdotool do one line that prints where the pointer is, and wait for what it prints."""
    text = xdotool.ask(" ".join(words), lambda answer: _WHOLE_LOOK.search(answer) is not None)
    numbers = [
        [int(value) for value in re.findall(rf"^{name}=(-?\d+)$", text, re.M)]
        for name in ("X", "Y", "WINDOW", "WIDTH", "HEIGHT")
    ]
    if [len(one) for one in numbers] != [2, 2, 2, 1, 1]:
        done = xdotool.end()
        check_x("xdotool", done)
        raise PeekabooError(
            ErrorCode.PROGRAM_FAILED,
            "xdotool did not print where the pointer is; nothing was clicked",
            hint="see the details",
            details=text[-300:],
        )
    (_, x), (_, y), (_, under), (width,), (height,) = numbers
    return _Look(Point(x, y), under, (width, height))


def _check_still_there(window: Window, point: Point, look: _Look) -> None:
    left, right, above, below = window.insets
    if look.size != (window.bounds.width + left + right, window.bounds.height + above + below):
        raise _changed(window, "resized")
    if look.point != Point(int(point.x), int(point.y)):
        raise _changed(window, "moved, or reaches beyond the screen's edge,")


def _changed(window: Window, how: str) -> PeekabooError:
    return PeekabooError(
        ErrorCode.STALE_SCREENSHOT,
        f"window {window.window_id} was {how} in this moment; nothing was clicked",
        hint="take a new screenshot, and use its pixels",
    )


def _covered(window: Window, under_id: int) -> PeekabooError:
    listed_id = _listed_id(under_id)
    return PeekabooError(
        ErrorCode.WINDOW_COVERED,
        f"window {window.window_id} is covered by {app_with_window(listed_id)} at that point; "
        "nothing was clicked",
        hint="close what covers it, or act on that window",
    )


def _listed_id(under_id: int) -> int:
    """The id under which `list_windows` may show what xdotool found: of a frame, the client in it."""
    try:
        top_id = top_level(under_id) or top_level_under_pointer() or 0
        under_id = under_id or top_id
        for window in take_scene().windows:
            if window.app_name and {under_id, top_id} & {window.window_id, window.frame_id}:
                return window.window_id
    except PeekabooError as e:
        if e.code is ErrorCode.CANCELLED:
            raise
    return under_id

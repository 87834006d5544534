"""The pointer on X11, by an xdotool that releases what it has pressed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import NamedTuple, Optional

from ...core.cancellation import check_cancelled, uninterrupted
from ...core.errors import ErrorCode, PeekabooError, invalid
from ...core.log import log_debug, log_warning
from ...core.models import Act, Delivery, Point, Window
from ...system.files import held_locks
from ...system.process import (
    RunningProgram,
    exit_hooks,
    run_program,
    running,
    start_daemon,
)
from .connection import ORIGIN, fields_in, is_same_client, request, x_connection
from .presses import Delivered, recorded_presses
from .server import (
    UTF8,
    app_with_window,
    check_xdotool,
    held_input,
    is_viewable,
    physical_button,
    top_level,
    top_level_under_pointer,
)
from .windows import own_rect, take_scene

_BUTTONS = {"left": 1, "middle": 2, "right": 3}
_WHEEL = {"up": 4, "down": 5, "left": 6, "right": 7}
_ACT_S, _EACH_S = 8.0, 0.2
_CLICK = ("click", "--delay", "0")  # it would wait 100 ms after it
_CLICK_AGAIN_S, _NOTCH_AGAIN_S, _HELD_ON_S = "0.06", "0.005", "0.1"
_DRAG_STEPS = 12
# Printed once something is pressed; a look at the pointer would fail where the press closes its window.
_IS_PRESSED = "getdisplaygeometry"
# getwindowgeometry's, whose place is wrong by the frame's offset, and getmouselocation's
_PRINTED_LOOK = (
    r"WINDOW=\d+\nX=-?\d+\nY=-?\d+\nWIDTH=(\d+)\nHEIGHT=(\d+)\nSCREEN=\d+\n"
    r"X=(-?\d+)\nY=(-?\d+)\nSCREEN=\d+\nWINDOW=(\d+)\n"
)

_RELEASE_S = 5.0
# What is pressed with Command on a Mac is pressed with Control here; the logo key is called super.
_MODIFIERS = {"cmd": "ctrl", "ctrl": "ctrl", "alt": "alt", "shift": "shift", "super": "super"}


def x11_modifiers(modifiers: Sequence[str]) -> list[str]:
    """xdotool's names of modifiers, each once. Raises INVALID_ARGUMENT for fn, which X11 does not have."""
    if "fn" in modifiers:
        raise invalid("X11 has no fn key", "leave it out")
    return list(dict.fromkeys(_MODIFIERS[name] for name in modifiers))


class Xdotool:
    """An xdotool that does each line at once. It ends by itself when we are killed, after its last line."""

    def __init__(self, program: RunningProgram) -> None:
        self._program = program
        self.is_pressing = False

    def look(self, words: Sequence[str], pattern: str) -> Iterator[int]:
        """The numbers of the pattern's groups in what a line prints that presses nothing, as soon as that
        fits. Raises what its error output means when it never does.
        """
        text = self._program.ask(" ".join(words), lambda answer: re.search(pattern, answer) is not None)
        found = re.search(pattern, text)
        if found is None:
            check_xdotool(self._program.end())
            what = "something may have been" if self.is_pressing else "nothing was"
            raise PeekabooError(
                ErrorCode.PROGRAM_FAILED,
                f"xdotool ended early; {what} pressed",
                hint="take a new screenshot and see",
                details=text[-300:],
            )
        return map(int, found.groups())

    def press(self, words: Sequence[str], pattern: str) -> Iterator[int]:
        """As `look`, for a line that presses something, and releases it in the end."""
        self.is_pressing = True
        return self.look(words, pattern)

    def end(self) -> None:
        """Wait until everything is done."""
        check_xdotool(self._program.end())
        self.is_pressing = False


@contextmanager
def xdotool_session(release: Sequence[str], timeout_s: float) -> Iterator[Xdotool]:
    """An xdotool for one act. `release`: its words that release what the act presses; they are run when the
    block ends before the act does, also by a signal: a killed xdotool leaves everything pressed.
    """
    words = ["xdotool", *release]
    session: list[Xdotool] = []

    def release_by_daemon() -> None:
        if session and session[0].is_pressing:
            start_daemon(words, b"")

    exit_hooks.append(release_by_daemon)
    try:
        with running(["xdotool", "-"], None, timeout_s, UTF8, pass_fds=held_locks()) as program:
            session.append(Xdotool(program))
            yield session[0]
    finally:
        try:
            if session and session[0].is_pressing:
                with uninterrupted():
                    run_program(words, timeout_s=_RELEASE_S, accept=None, pass_fds=held_locks())
        except PeekabooError as e:
            log_warning(f"a key or button may be pressed still: {e.message}")
        finally:
            exit_hooks.remove(release_by_daemon)


class _Look(NamedTuple):
    """What xdotool's getwindowgeometry and getmouselocation print."""

    width: int
    height: int
    x: int
    y: int
    under_id: int
    """The window under the pointer; xdotool names the client, its frame, or a child of the root window."""

    @property
    def point(self) -> Point:
        return Point(self.x, self.y)


def act_by_pointer(window: Window, act: Act) -> Delivery:
    """Click, scroll, drag, or move the pointer."""
    if act.kind == "move_pointer":
        return _press(window, act.points[0], [], [])
    if act.kind == "scroll":
        number = physical_button(_WHEEL[act.direction])
        press, release = [*_CLICK, number, _IS_PRESSED], ["mouseup", number]
        return _press(
            window, act.points[0], press, release, _WHEEL[act.direction], act.amount, _NOTCH_AGAIN_S
        )
    number = physical_button(_BUTTONS[act.button])
    press, release = [*_CLICK, number], ["mouseup", number]
    if act.kind == "drag":
        target = _press(window, act.points[1], [], [])
        if not target.delivered:  # what is dropped there would be another window's
            raise _covered(window, target.reached_id or 0)
        way = _way(*act.points)
        press = ["mousedown", number, _IS_PRESSED, "sleep", "0.1", *way, "sleep", "0.1", *release]
        return _press(window, act.points[0], press, release, _BUTTONS[act.button])
    held = x11_modifiers(act.modifiers)
    if held:
        up = ["keyup", "--delay", "0", "+".join(held)]
        # a window manager that focuses by click passes the press on later (i3), and Chromium asks for the
        # modifiers of that moment
        press = ["keydown", "--delay", "0", "+".join(held), *press, "sleep", _HELD_ON_S, *up]
        release += up
    press.append(_IS_PRESSED)
    return _press(window, act.points[0], press, release, _BUTTONS[act.button], act.clicks, _CLICK_AGAIN_S)


def _way(start: Point, end: Point) -> list[str]:
    """xdotool's words for steps that a program notices as a drag; in screen points, as what is dragged may be
    the window itself.
    """
    way = []
    for step in range(1, _DRAG_STEPS + 1):
        x = start.x + (end.x - start.x) * step / _DRAG_STEPS
        y = start.y + (end.y - start.y) * step / _DRAG_STEPS
        way += ["mousemove", "--", str(int(x)), str(int(y)), "sleep", "0.015"]
    return way


def click_title_bar(window: Window) -> None:
    """Click in the middle of a window's title bar, if it has one and nothing else is there."""
    if window.frame_id is None or window.frame is None or window.bounds.y - window.frame.y < 4:
        return
    frame = window._replace(
        window_id=window.frame_id, bounds=window.frame, frame_id=None, insets=(0, 0, 0, 0)
    )
    try:
        middle = Point(frame.bounds.centre.x, (frame.bounds.y + window.bounds.y) / 2)
        act_by_pointer(frame, Act("click", (middle,)))
    except PeekabooError as e:
        if e.code not in (ErrorCode.WINDOW_COVERED, ErrorCode.STALE_SCREENSHOT):
            raise
        log_debug(f"the title bar was not clicked: {e.message}")


def _press(
    window: Window,
    point: Point,
    press: Sequence[str],
    release: Sequence[str],
    button: int = 0,
    times: int = 1,
    again_s: str = "0",
) -> Delivery:
    """Move the pointer, ask what is under it, and press only when that is the window; so each time.

    One xdotool does it, line by line: it moves and looks; it gets the press only when that was right; then
    it looks again and presses. What the server delivered by that is what was reached; where nobody asked for
    presses, or they are not recorded, what xdotool printed right before. It moves relative to the window,
    which the server does itself: a window that moves meanwhile takes its pixel along.

    press: what presses, and prints something then; nothing: the pointer is only moved.
    release: what releases a button or key that an interrupted press has left down.
    button: the one that programs see; none for the pointer alone.
    """
    _check_nothing_is_held()
    top_id = window.frame_id or window.window_id
    words = _to_move_and_look(window, point)

    def is_over(look: _Look) -> bool:
        return look.under_id in (window.window_id, top_id) or top_level_under_pointer() == top_id

    recording = recorded_presses() if press else nullcontext()
    with recording as record, xdotool_session(release, _ACT_S + times * _EACH_S) as xdotool:
        look = _Look(*xdotool.look(words, _PRINTED_LOOK))
        _check_still_there(window, point, look)
        if not press:
            is_there = is_over(look)
            return Delivery(is_there, look.point, None if is_there else _found_id(look.under_id))
        if not is_over(look):
            raise _covered(window, look.under_id)
        check_cancelled()
        pressed, delivered = look, None
        with uninterrupted():  # what is dragged is not dropped halfway
            for number in range(times):
                try:
                    if number:
                        now = _Look(*xdotool.look(["sleep", again_s, *words], _PRINTED_LOOK))
                        if now != look or not is_over(now):
                            delivered = None  # this press is not made, nor are those after it
                            break
                    pressed = _Look(*xdotool.press([*words, *press], _PRINTED_LOOK + r"\d+ \d+\n"))
                    got = record.press_of(button) if record else None
                    got_id = top_level(got.window_id) if got else 0
                    pressed = pressed._replace(under_id=got_id or pressed.under_id)
                    delivered = _was_reached(window, top_id, look, pressed, got)
                    if delivered and got and "mousedown" not in press and _moved(window, point, look, got):
                        delivered = None
                except PeekabooError as e:
                    if not number or e.code is not ErrorCode.WINDOW_NOT_FOUND:
                        raise
                    return Delivery(delivered, pressed.point)  # the press before closed it
                if not delivered:
                    break
            if delivered is not False:
                xdotool.end()
    return Delivery(delivered, pressed.point, _found_id(pressed.under_id) if delivered is False else None)


def _inside(window: Window, point: Point) -> tuple[int, int]:
    """The pixel of a screen point in the window that its program made."""
    own = own_rect(window)
    return int(point.x - own.x), int(point.y - own.y)


def _to_move_and_look(window: Window, point: Point) -> list[str]:
    """What xdotool does before a press: to the point, relative to the window, and a look at both."""
    target, inside = str(window.window_id), map(str, _inside(window, point))
    look = ["getwindowgeometry", "--shell", target, "getmouselocation", "--shell"]
    return ["mousemove", "--window", target, "--", *inside, *look]


def _check_nothing_is_held() -> None:
    held = held_input()
    if held:
        raise PeekabooError(
            ErrorCode.WINDOW_BLOCKED,
            f"{held} is held down, so no window would get the press as meant; nothing was clicked",
            hint="wait until whoever uses the desktop has let go; "
            "or release it: xdotool mouseup 1 keyup shift keyup ctrl keyup alt",
        )


def _is_programs(got: Delivered, window: Window, top_id: int) -> bool:
    """Whether a program got a press by a window of its own: not the window manager for a shortcut, nor a
    program that has grabbed the pointer to let a window be chosen.
    """
    is_frames = is_same_client(got.client, top_id) and not is_same_client(window.window_id, top_id)
    return got.is_owners and not is_frames


def _was_reached(
    window: Window, top_id: int, look: _Look, pressed: _Look, got: Optional[Delivered]
) -> Optional[bool]:
    """Whether what was pressed is the window, its frame, or the same child of it as in the first look; None
    where that is not known. got: what the server delivered; then `pressed` names its top-level window.

    Without it xdotool named it right before, as 0 for any window that no manager manages (a popup, and all
    without a manager). Then, and because a window may come in the microseconds between xdotool's look and its
    press, what is under the pointer after it decides, too: what the press itself opened is a window of its
    own program, and a window that it closed is what uncovers another.
    """
    if got and not _is_programs(got, window, top_id):
        return None
    is_named = pressed.under_id in (window.window_id, top_id, look.under_id)
    if not is_named and top_level(pressed.under_id) != top_id:
        return False
    if pressed[:4] != look[:4]:  # resized or moved
        return None
    if got and top_level(got.window_id):
        return True
    now = top_level_under_pointer()
    if now and (now == top_id or is_same_client(now, window.window_id)):
        return True
    if now is not None and not is_viewable(window.window_id):
        return True
    # a frame is the window manager's: whose window is in it takes a whole look to tell
    if not now or is_same_client(_found_id(now), window.window_id):
        return True if pressed.under_id else None
    return None


def _moved(window: Window, point: Point, look: _Look, got: Delivered) -> bool:
    """Whether a press went to another place of the window, which moved right before it; where that was not
    recorded, whether the window moved at all.
    """
    inside, (x, y) = _inside(window, point), got.place or (0, 0)
    with x_connection() as server:
        asked = [request(ORIGIN, window.window_id, server.root_id, 0)]
        asked += [request(ORIGIN, got.window_id, window.window_id, x & 0xFFFF | (y & 0xFFFF) << 16)]
        origin, place = server.ask(asked)
    if not origin or fields_in(origin, "4xhh") == (look.x - inside[0], look.y - inside[1]):
        return False  # it is closed, or where it was
    return got.place is None or (place is not None and fields_in(place, "4xhh") != inside)


def _check_still_there(window: Window, point: Point, look: _Look) -> None:
    own = own_rect(window)
    is_resized = (look.width, look.height) != (own.width, own.height)
    if not is_resized and look.point == Point(int(point.x), int(point.y)):
        return
    how = "was resized" if is_resized else "was moved, or reaches beyond the screen's edge"
    raise PeekabooError(
        ErrorCode.STALE_SCREENSHOT,
        f"window {window.window_id} {how}; nothing was clicked",
        hint="take a new screenshot, and use its pixels",
    )


def _covered(window: Window, under_id: int) -> PeekabooError:
    cover = app_with_window(_found_id(under_id))
    return PeekabooError(
        ErrorCode.WINDOW_COVERED,
        f"window {window.window_id} is covered by {cover} at that point; nothing was clicked",
        hint="close what covers it, or act on that window",
    )


def _found_id(under_id: int) -> int:
    """The id in the list of windows of what xdotool found: of a frame, the client in it."""
    try:
        top_id = top_level(under_id) or top_level_under_pointer() or 0
        ids = {under_id or top_id, top_id}
        return next(
            (one.window_id for one in take_scene().windows if ids & {one.window_id, one.frame_id}), under_id
        )
    except PeekabooError as e:
        if e.code is ErrorCode.CANCELLED:
            raise
        return under_id

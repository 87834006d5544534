"""The pointer on X11: one xdotool an act, and whether what it did arrived."""

from __future__ import annotations

from typing import NamedTuple, Optional

from ...core.cancellation import check_cancelled, uninterrupted
from ...core.errors import ErrorCode, PeekabooError
from ...core.log import log_debug
from ...core.models import Act, Delivery, Point, Window
from .connection import ORIGIN, XConnection, fields_in, is_same_client, request, x_connection
from .presses import Event, recorded_presses
from .windows import own_rect, take_scene
from .xdotool import Xdotool, x11_modifiers, xdotool_session

_BUTTONS = {"left": 1, "middle": 2, "right": 3}
_WHEEL = {"up": 4, "down": 5, "left": 6, "right": 7}
_ACT_S, _EACH_S = 8.0, 0.2
_CLICK = ("click", "--delay", "0")  # it would wait 100 ms after it
_CLICK_AGAIN_S, _NOTCH_AGAIN_S, _HELD_ON_S = "0.06", "0.005", "0.1"
_DRAG_STEPS = 12
# Printed once something is pressed; a look at the pointer would fail where the press closes its window.
_IS_PRESSED, _PRINTED_PRESSED = "getdisplaygeometry", r"\d+ \d+\n"
# getwindowgeometry's, whose place is wrong by the frame's offset, and getmouselocation's
_PRINTED_LOOK = (
    r"WINDOW=\d+\nX=-?\d+\nY=-?\d+\nWIDTH=(\d+)\nHEIGHT=(\d+)\nSCREEN=\d+\n"
    r"X=(-?\d+)\nY=(-?\d+)\nSCREEN=\d+\nWINDOW=(\d+)\n"
)


class _Look(NamedTuple):
    """What xdotool's getwindowgeometry and getmouselocation print."""

    width: int
    height: int
    x: int
    y: int
    under_id: int
    """The window under the pointer; xdotool names the client, its frame, or a child of the root window."""


class _Press(NamedTuple):
    """What xdotool does, with the pointer at its place."""

    button: int
    """As programs see it."""
    words: list[str]
    """What presses, prints something then, and releases."""
    release: list[str]
    """What releases a button or key that an interrupted press has left down."""
    times: int = 1
    again_s: str = "0"


def act_by_pointer(window: Window, act: Act) -> Delivery:
    """Click, scroll, drag, or move the pointer."""
    start, end = act.points[0], act.points[-1]
    with x_connection() as server:
        if act.kind == "move_pointer":
            return _Pointer(server, window, start).move()
        if act.kind == "drag":
            target = _Pointer(server, window, end)
            there = target.move()
            if not there.delivered:  # what is dropped there would be another window's
                raise target.covered(there.reached_id or 0)
        press = {"click": _click, "scroll": _scroll, "drag": _drag}[act.kind](server, act)
        return _Pointer(server, window, start).press(press)


def _click(server: XConnection, act: Act) -> _Press:
    button = _BUTTONS[act.button]
    number = server.physical_button(button)
    words, release = [*_CLICK, number], ["mouseup", number]
    held = x11_modifiers(act.modifiers)
    if held:
        up = ["keyup", "--delay", "0", "+".join(held)]
        # a window manager that focuses by click passes the press on later (i3), and Chromium asks for the
        # modifiers of that moment
        words = ["keydown", "--delay", "0", "+".join(held), *words, "sleep", _HELD_ON_S, *up]
        release += up
    return _Press(button, [*words, _IS_PRESSED], release, act.clicks, _CLICK_AGAIN_S)


def _scroll(server: XConnection, act: Act) -> _Press:
    button = _WHEEL[act.direction]
    number = server.physical_button(button)
    return _Press(button, [*_CLICK, number, _IS_PRESSED], ["mouseup", number], act.amount, _NOTCH_AGAIN_S)


def _drag(server: XConnection, act: Act) -> _Press:
    """In steps that a program notices as a drag, all in one line of xdotool's, which it ends also when we are
    killed. They are in screen points: what is dragged may be the window itself.
    """
    start, end = act.points
    steps = []
    for step in range(1, _DRAG_STEPS + 1):
        x = start.x + (end.x - start.x) * step / _DRAG_STEPS
        y = start.y + (end.y - start.y) * step / _DRAG_STEPS
        steps += ["mousemove", "--", str(int(x)), str(int(y)), "sleep", "0.015"]
    button = _BUTTONS[act.button]
    number = server.physical_button(button)
    release = ["mouseup", number]
    words = ["mousedown", number, _IS_PRESSED, "sleep", "0.1", *steps, "sleep", "0.1", *release]
    return _Press(button, words, release)


def click_title_bar(window: Window) -> None:
    """Click in the middle of a window's title bar, if it has one and nothing else is there."""
    if window.frame_id is None or window.frame is None or window.bounds.y - window.frame.y < 4:
        return
    frame = window._replace(
        window_id=window.frame_id, bounds=window.frame, frame_id=None, insets=(0, 0, 0, 0)
    )
    middle = Point(frame.bounds.centre.x, (frame.bounds.y + window.bounds.y) / 2)
    try:
        act_by_pointer(frame, Act("click", (middle,)))
    except PeekabooError as e:
        if e.code not in (ErrorCode.WINDOW_COVERED, ErrorCode.STALE_SCREENSHOT):
            raise
        log_debug(f"the title bar was not clicked: {e.message}")


class _Pointer:
    """The pointer at one screen point of a window.

    It is moved relative to the window, which the server does itself: a window that moves meanwhile takes its
    pixel along.
    """

    def __init__(self, server: XConnection, window: Window, point: Point) -> None:
        self._server, self._window, self._point = server, window, point
        self._id, self._top_id = window.window_id, window.frame_id or window.window_id
        own = own_rect(window)
        self._size = (own.width, own.height)
        self._inside = (int(point.x - own.x), int(point.y - own.y))
        target = str(self._id)
        move = ["mousemove", "--window", target, "--", *map(str, self._inside)]
        self._move_and_look = [*move, "getwindowgeometry", "--shell", target, "getmouselocation", "--shell"]

    def move(self) -> Delivery:
        with xdotool_session([], _ACT_S) as xdotool:
            look = self._first_look(xdotool)
        is_there = self._is_over(look)
        return Delivery(is_there, Point(look.x, look.y), None if is_there else self._listed_id(look.under_id))

    def press(self, press: _Press) -> Delivery:
        """Move the pointer, ask what is under it, and press only when that is the window; so each time.

        One xdotool does it, line by line: it moves and looks; it gets the press only when that was right;
        then it looks again and presses.
        """
        timeout_s = _ACT_S + press.times * _EACH_S
        with recorded_presses(self._server) as record, xdotool_session(press.release, timeout_s) as xdotool:
            first = self._first_look(xdotool)
            if not self._is_over(first):
                raise self.covered(first.under_id)
            check_cancelled()
            last, delivered = first, None
            with uninterrupted():  # what is dragged is not dropped halfway
                for number in range(press.times):
                    try:
                        if number:
                            look = self._look(xdotool, press.again_s)
                            if look != first or not self._is_over(look):
                                delivered = None  # this press is not made, nor are those after it
                                break
                        line = [*self._move_and_look, *press.words]
                        last = _Look(*xdotool.press(line, _PRINTED_LOOK + _PRINTED_PRESSED))
                        got = record.press_of(press.button) if record else None
                        got_id = self._server.top_level(got.window_id) if got else 0
                        last = last._replace(under_id=got_id or last.under_id)
                        delivered = self._is_delivered(first, last, got, got_id, press)
                    except PeekabooError as e:
                        if not number or e.code is not ErrorCode.WINDOW_NOT_FOUND:
                            raise
                        return Delivery(delivered, Point(last.x, last.y))  # the press before closed it
                    if not delivered:
                        break
                if delivered is not False:
                    xdotool.end()
        reached_id = self._listed_id(last.under_id) if delivered is False else None
        return Delivery(delivered, Point(last.x, last.y), reached_id)

    def covered(self, under_id: int) -> PeekabooError:
        cover = self._server.describe(self._listed_id(under_id))
        return PeekabooError(
            ErrorCode.WINDOW_COVERED,
            f"window {self._id} is covered by {cover} at that point; nothing was clicked",
            hint="close what covers it, or act on that window",
        )

    def _look(self, xdotool: Xdotool, after_s: str = "0") -> _Look:
        return _Look(*xdotool.look(["sleep", after_s, *self._move_and_look], _PRINTED_LOOK))

    def _first_look(self, xdotool: Xdotool) -> _Look:
        """Raises WINDOW_BLOCKED, STALE_SCREENSHOT."""
        held = self._server.held_input()
        if held:
            raise PeekabooError(
                ErrorCode.WINDOW_BLOCKED,
                f"{held} is held down, so no window would get the press as meant; nothing was clicked",
                hint="wait until whoever uses the desktop has let go; "
                "or release it: xdotool mouseup 1 keyup shift keyup ctrl keyup alt",
            )
        look = self._look(xdotool)
        is_resized = (look.width, look.height) != self._size
        if is_resized or (look.x, look.y) != (int(self._point.x), int(self._point.y)):
            how = "was resized" if is_resized else "was moved, or reaches beyond the screen's edge"
            raise PeekabooError(
                ErrorCode.STALE_SCREENSHOT,
                f"window {self._id} {how}; nothing was clicked",
                hint="take a new screenshot, and use its pixels",
            )
        return look

    def _is_over(self, look: _Look) -> bool:
        return look.under_id in (self._id, self._top_id) or self._server.under_pointer() == self._top_id

    def _is_delivered(
        self, first: _Look, last: _Look, got: Optional[Event], got_id: int, press: _Press
    ) -> Optional[bool]:
        """Whether what was pressed is the window, its frame, or the same child of it as in the first look, at
        the place that was meant; None where that is not known.

        got: the press that the server delivered, got_id: to which top-level window, which `last` names then.
        Without it xdotool named one right before, as 0 for any window that no manager manages (a popup, and
        all without a manager). Then, and because a window may come in the microseconds between xdotool's look
        and its press, what is under the pointer after it decides, too: what the press itself opened is a
        window of its own program, and a window that it closed is what uncovers another.
        """
        if got and not self._is_programs(got):
            return None
        is_named = last.under_id in (self._id, self._top_id, first.under_id)
        if not is_named and self._server.top_level(last.under_id) != self._top_id:
            return False
        if last[:4] != first[:4]:  # resized or moved
            return None
        if not got_id and not self._is_under_pointer_now(last):
            return None
        # a drag may move the window itself
        return None if got and press.words[0] != "mousedown" and self._moved(first, got) else True

    def _is_programs(self, got: Event) -> bool:
        """Whether a program got a press by a window of its own: not the window manager for a shortcut, nor a
        program that has grabbed the pointer to let a window be chosen.
        """
        is_frames = is_same_client(got.client, self._top_id) and not is_same_client(self._id, self._top_id)
        return got.is_by_its_own_window and not is_frames

    def _is_under_pointer_now(self, last: _Look) -> bool:
        now = self._server.under_pointer()
        if now and (now == self._top_id or is_same_client(now, self._id)):
            return True
        if not self._server.is_viewable(self._id):
            return True
        # a frame is the window manager's: whose window is in it takes a whole look to tell
        return bool(last.under_id) and (not now or is_same_client(self._listed_id(now), self._id))

    def _moved(self, first: _Look, got: Event) -> bool:
        """Whether a press went to another place of the window, which moved right before it; where that was
        not recorded, whether the window moved at all.
        """
        x, y = got.place or (0, 0)
        asked = [request(ORIGIN, self._id, self._server.root_id, 0)]
        asked += [request(ORIGIN, got.window_id, self._id, x & 0xFFFF | (y & 0xFFFF) << 16)]
        origin, place = self._server.ask(asked)
        expected = (first.x - self._inside[0], first.y - self._inside[1])
        if not origin or fields_in(origin, "4xhh") == expected:
            return False  # it is closed, or where it was
        return got.place is None or (place is not None and fields_in(place, "4xhh") != self._inside)

    def _listed_id(self, under_id: int) -> int:
        """The id in the list of windows of what xdotool found: of a frame, the client in it."""
        try:
            top_id = self._server.top_level(under_id) or self._server.under_pointer()
            ids = {under_id or top_id, top_id}
            listed = (
                each.window_id for each in take_scene().windows if ids & {each.window_id, each.frame_id}
            )
            return next(listed, under_id)
        except PeekabooError as e:
            if e.code is ErrorCode.CANCELLED:
                raise
            return under_id

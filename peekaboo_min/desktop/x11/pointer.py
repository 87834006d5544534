"""The pointer on X11: one xdotool an act, and whether what it did arrived."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Optional

from ...core.cancellation import check_cancelled, uninterrupted
from ...core.errors import ErrorCode, PeekabooError
from ...core.models import Act, Delivery, Point, Window
from .connection import (
    GEOMETRY,
    ORIGIN,
    POINTER,
    XConnection,
    fields_in,
    is_same_client,
    request,
    x_connection,
)
from .presses import Event, PressRecord, recorded_presses, run_xdotool, x11_modifiers
from .windows import own_rect, take_scene

# Buttons as programs see them.
_BUTTONS = {"left": 1, "middle": 2, "right": 3}
_WHEEL = {"up": 4, "down": 5, "left": 6, "right": 7}
_CLICK_AGAIN_S, _NOTCH_AGAIN_S, _HELD_ON_S = 0.06, 0.005, "0.1"
_DRAG_STEPS = 12


def act_by_pointer(window: Window, act: Act) -> Delivery:
    """Click, scroll, drag, or move the pointer."""
    with x_connection() as server, recorded_presses(server) as record:
        server.state_with_nothing_held()
        pointer = _Pointer(server, window)
        if act.kind == "move_pointer":
            return pointer.move(act.points[0])
        if act.kind == "drag":  # what is dropped on another window would be that one's
            pointer.move(act.points[1])
            pointer.check_over(act.points[1])
        return pointer.press(record, act)


def _drag_words(start: Point, end: Point) -> list[str]:
    """Steps that a program notices as a drag, in screen points: what is dragged may be the window."""
    words = ["sleep", "0.1"]
    for step in range(1, _DRAG_STEPS + 1):
        x = start.x + (end.x - start.x) * step / _DRAG_STEPS
        y = start.y + (end.y - start.y) * step / _DRAG_STEPS
        words += ["mousemove", "--", str(int(x)), str(int(y)), "sleep", "0.015"]
    return [*words, "sleep", "0.1", "getmouselocation", "--shell"]


def click_title_bar(window: Window) -> None:
    """Click in the middle of a window's title bar, if it has one and nothing else is there."""
    if window.frame_id is None or window.frame is None or window.bounds.y - window.frame.y < 4:
        return
    top = window._replace(window_id=window.frame_id, bounds=window.frame, frame_id=None, insets=(0, 0, 0, 0))
    middle = Point(top.bounds.centre.x, (top.bounds.y + window.bounds.y) / 2)
    with suppress(PeekabooError):  # the caller looks whether the window has the focus
        act_by_pointer(top, Act("click", (middle,)))


class _Pointer:
    """The pointer over one window."""

    def __init__(self, server: XConnection, window: Window) -> None:
        self._server = server
        self._id, self._top_id = window.window_id, window.frame_id or window.window_id
        self._own = own_rect(window)

    def move(self, point: Point) -> Delivery:
        """Raises STALE_SCREENSHOT."""
        run_xdotool(self._move_words(point))
        under_id = self._under(point)
        is_over = under_id == self._top_id
        return Delivery(is_over, point, None if is_over else self._listed_id(under_id))

    def check_over(self, point: Point) -> None:
        """Raises STALE_SCREENSHOT, WINDOW_COVERED."""
        under_id = self._under(point)
        if under_id != self._top_id:
            cover = f"window {self._listed_id(under_id)}"
            message = f"window {self._id} is covered by {cover} at that point; nothing was clicked"
            raise PeekabooError(
                ErrorCode.WINDOW_COVERED, message, "close what covers it, or act on that window"
            )

    def press(self, record: PressRecord, act: Act) -> Delivery:
        """Move the pointer, ask what is under it, and press only when that is the window; so each time.

        One xdotool does it: it moves, and gets the press only when that was right; then it moves again, and
        says where the pointer is.
        """
        point, is_drag = act.points[0], act.kind == "drag"
        button = _WHEEL[act.direction] if act.kind == "scroll" else _BUTTONS[act.button]
        number, keys = self._server.physical_button(button), "+".join(x11_modifiers(act.modifiers))
        release = ["mouseup", number, *(["keyup", "--delay", "0", keys] if keys else [])]
        words = ["click", "--delay", "0", number]
        if is_drag:
            words = ["mousedown", number, *_drag_words(*act.points), *release]
        elif keys:
            # a window manager that focuses by click passes the press on later (i3), and Chromium asks for the
            # modifiers of that moment
            held = ["sleep", _HELD_ON_S, "keyup", "--delay", "0", keys]
            words = ["keydown", "--delay", "0", keys, *words, *held]
        move = self._move_words(point)
        first, line = [*move, "getmouselocation"], [*move, "getmouselocation", "--shell", *words]
        times = {"click": act.clicks, "scroll": act.amount}.get(act.kind, 1)
        delivery = Delivery(None, point)
        check_cancelled()
        with uninterrupted():  # what is dragged is not dropped halfway
            for press_number in range(times):
                if press_number:
                    time.sleep(_NOTCH_AGAIN_S if act.kind == "scroll" else _CLICK_AGAIN_S)
                try:
                    done = run_xdotool(line, release, move=first, look=partial(self.check_over, point))
                except PeekabooError:
                    if not press_number:
                        raise
                    # this press is not made, nor are those after it
                    is_closed = not self._server.top_level(self._id)  # by the press before
                    return delivery if is_closed else delivery._replace(delivered=None)
                delivery = self._delivery(record.press_of(button), act.points)
                # somebody may have moved it
                places = [f"X={int(place.x)}\nY={int(place.y)}\n" for place in act.points]
                if delivery.delivered and not all(place in done.text for place in places):
                    delivery = delivery._replace(delivered=None)
                if not delivery.delivered:
                    break
        return delivery

    def _move_words(self, point: Point) -> list[str]:
        """Relative to the window, which the server does itself: one that moves takes its pixel along."""
        x, y = int(point.x - self._own.x), int(point.y - self._own.y)
        return ["mousemove", "--window", str(self._id), "--", str(x), str(y)]

    def _under(self, point: Point) -> int:
        """The top-level window under the pointer, 0 for the root window. Raises STALE_SCREENSHOT when the
        pointer is not at that point, or the window has another size.
        """
        requests = [request(POINTER, self._server.root_id), request(GEOMETRY, self._id)]
        pointer, geometry = self._server.ask(requests)
        under_id, x, y = fields_in(pointer, "4xIhh")
        size = (self._own.width, self._own.height)
        if (x, y) != (int(point.x), int(point.y)) or fields_in(geometry, "8xHH") != size:
            what = "was resized or moved, or reaches beyond the screen's edge"
            message = f"window {self._id} {what}; nothing was clicked"
            raise PeekabooError(ErrorCode.STALE_SCREENSHOT, message, ErrorCode.STALE_SCREENSHOT.next_step)
        return under_id

    def _delivery(self, got: Optional[Event], points: Sequence[Point]) -> Delivery:
        """What became of a press: delivered, when the window, its frame or a child of it got it.

        Not known for one that no program got, or not by a window of its own: a window manager took it for a
        shortcut, or a program that has grabbed the pointer to let a window be chosen; nor where the window
        moved.
        """
        point, end = points[0], points[-1]
        if not got or not got.is_by_its_own_window:
            return Delivery(None, point)
        # of a click the press alone; its release is wherever the pointer went since
        if any(at != (int(place.x), int(place.y)) for at, place in zip(got.places, points)):
            return Delivery(None, point)
        if is_same_client(got.client, self._top_id) and not is_same_client(self._id, self._top_id):
            return Delivery(None, point)  # the window manager, by its frame
        top_id = self._server.top_level(got.window_id)
        if top_id not in (0, self._top_id):
            return Delivery(False, point, self._listed_id(top_id))
        (origin,) = self._server.ask([request(ORIGIN, self._id, self._server.root_id, 0)])
        # a window that the press has closed is known by its client
        is_known = top_id != 0 or is_same_client(got.window_id, self._id)
        if origin is None:  # a drag ended elsewhere then
            return Delivery(True if is_known and len(points) == 1 else None, point)
        x, y = fields_in(origin, "4xhh")
        moved = (x - self._own.x, y - self._own.y)
        dragged = (int(end.x) - int(point.x), int(end.y) - int(point.y))  # maybe the window itself
        return Delivery(True if is_known and moved in ((0, 0), dragged) else None, point)

    def _listed_id(self, top_id: int) -> int:
        """The id in the list of windows of a top-level window: of a frame, the client in it."""
        try:
            windows = take_scene().windows
        except PeekabooError:  # an act that was done does not fail for this
            return top_id
        return next((each.window_id for each in windows if top_id in (each.window_id, each.frame_id)), top_id)

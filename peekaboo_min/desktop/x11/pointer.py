"""Click, scroll, drag and move on X11, and check who received the press."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from typing import Optional

from ...core.call import check_cancelled, uninterrupted
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
from .presses import ACT_S, XDOTOOL_S, Event, PressRecord, recorded_presses, run_xdotool, x11_modifiers
from .windows import own_rect, take_scene

# X buttons, as programs see them.
_BUTTONS = {"left": 1, "middle": 2, "right": 3}
_WHEEL = {"up": 4, "down": 5, "left": 6, "right": 7}
_CLICK_AGAIN_S, _NOTCH_AGAIN_S = 0.06, 0.005  # the pause between clicks, and between notches of the wheel
# i3 passes a press on later, and Chromium asks for the modifiers of that moment: hold them a little longer.
_HOLD_ON_S = "0.1"
_DRAG_STEPS = 12  # programs notice a drag only by moves between its ends
_TRIPS = 150  # more round trips than xdotool needs, also for a drag

# Who received the press of an act -> whether the act was delivered.
_VERDICTS = {
    "the window": True,
    "another window": False,
    "nobody": None,
    "a grab": None,  # a window manager's shortcut, or a program that lets the user pick a window
    "the window manager": None,  # by the window's frame
    "another place": None,  # a person moved the pointer
    "a moved window": None,
}


def act_by_pointer(window: Window, act: Act) -> Delivery:
    """Do the act. Raises WINDOW_BLOCKED, WINDOW_COVERED, STALE_SCREENSHOT and TIMEOUT."""
    with x_connection() as server, recorded_presses(server) as record:
        server.check_nothing_held()
        pointer = _Pointer(server, record, window)
        if act.kind == "move_pointer":
            return pointer.move(act.points[0])
        if act.kind == "drag":  # another window there would receive what is dropped
            pointer.move(act.points[1])
            pointer.check_over(act.points[1])
        return pointer.press(act)


def click_title_bar(window: Window) -> None:
    """Click in the middle of a window's title bar, if it has one and nothing covers it."""
    if window.frame_id is None or window.frame is None or window.bounds.y - window.frame.y < 4:
        return
    top = window._replace(window_id=window.frame_id, bounds=window.frame, frame_id=None, insets=(0, 0, 0, 0))
    middle = Point(top.bounds.centre.x, (top.bounds.y + window.bounds.y) / 2)
    with suppress(PeekabooError):  # the caller checks whether the window has the focus
        act_by_pointer(top, Act("click", (middle,)))


def _drag_argv(start: Point, end: Point) -> list[str]:
    # in screen points, because the drag may move the window itself
    argv = ["sleep", "0.1"]
    for step in range(1, _DRAG_STEPS + 1):
        x = start.x + (end.x - start.x) * step / _DRAG_STEPS
        y = start.y + (end.y - start.y) * step / _DRAG_STEPS
        argv += ["mousemove", "--", str(int(x)), str(int(y)), "sleep", "0.015"]
    return [*argv, "sleep", "0.1", "getmouselocation", "--shell"]


class _Pointer:
    def __init__(self, server: XConnection, record: PressRecord, window: Window) -> None:
        self._server, self._record = server, record
        self._id, self._top_id = window.window_id, window.frame_id or window.window_id
        self._own = own_rect(window)
        self._xdotool_s = XDOTOOL_S + _TRIPS * server.round_trip_s

    def move(self, point: Point) -> Delivery:
        """Move the pointer. Raises STALE_SCREENSHOT."""
        run_xdotool(self._move_argv(point), timeout_s=self._xdotool_s)
        top_id = self._top_level_under(point)
        is_over = top_id == self._top_id
        return Delivery(is_over, point, None if is_over else self._listed_id(top_id))

    def check_over(self, point: Point) -> None:
        """Check that the window is under the pointer. Raises STALE_SCREENSHOT, WINDOW_COVERED."""
        top_id = self._top_level_under(point)
        if top_id != self._top_id:
            cover = f"window {self._listed_id(top_id)}"
            message = f"window {self._id} is covered by {cover} at that point; nothing was clicked"
            hint = "close what covers it, or act on that window"
            raise PeekabooError(ErrorCode.WINDOW_COVERED, message, hint)

    def press(self, act: Act) -> Delivery:
        """Press a button as often as the act says, until a press is not delivered."""
        # One xdotool makes each press: it moves the pointer, and receives the press only once the window is
        # under it. Then it moves again, reports where the pointer is, and presses.
        point, is_scroll = act.points[0], act.kind == "scroll"
        button = _WHEEL[act.direction] if is_scroll else _BUTTONS[act.button]
        argv, release = self._press_argv(act, self._server.physical_button(button))
        move = [*self._move_argv(point), "getmouselocation"]
        check, timeout_s = partial(self.check_over, point), self._xdotool_s
        press = partial(run_xdotool, timeout_s=timeout_s, first=move, check=check, release=release)
        count = {"click": act.clicks, "scroll": act.amount}.get(act.kind, 1)
        delivery = Delivery(None, point)
        deadline = time.monotonic() + ACT_S
        check_cancelled()
        with uninterrupted():  # do not drop in the middle of a drag
            for number in range(count):
                if number:
                    time.sleep(_NOTCH_AGAIN_S if is_scroll else _CLICK_AGAIN_S)
                if time.monotonic() > deadline:
                    message = f"{number} of {count} presses took {ACT_S:g} seconds"
                    message += ", and the others were not made"
                    raise PeekabooError(ErrorCode.TIMEOUT, message, "take a new screenshot")
                try:
                    output = press([*move, "--shell", *argv])
                except PeekabooError:
                    if not number:
                        raise
                    # a press before this one may have closed the window; no more presses are made
                    is_closed = not self._server.top_level(self._id)
                    return delivery if is_closed else delivery._replace(delivered=None)
                delivery = self._delivery(act, button, output)
                if not delivery.delivered:
                    break
        return delivery

    def _press_argv(self, act: Act, button: str) -> tuple[list[str], list[str]]:
        keys = "+".join(x11_modifiers(act.modifiers))
        release_keys = ["keyup", "--delay", "0", keys] if keys else []
        release = ["mouseup", button, *release_keys]
        if act.kind == "drag":
            return ["mousedown", button, *_drag_argv(*act.points), *release], release
        click = ["click", "--delay", "0", button]
        if keys:
            click = ["keydown", "--delay", "0", keys, *click, "sleep", _HOLD_ON_S, *release_keys]
        return click, release

    def _move_argv(self, point: Point) -> list[str]:
        # relative to the window, so that the pointer follows a window that moves
        x, y = int(point.x - self._own.x), int(point.y - self._own.y)
        return ["mousemove", "--window", str(self._id), "--", str(x), str(y)]

    def _top_level_under(self, point: Point) -> int:
        """Return the top-level window under the pointer, 0 for the root window. Raises STALE_SCREENSHOT."""
        requests = [request(POINTER, self._server.root_id), request(GEOMETRY, self._id)]
        pointer, geometry = self._server.ask(requests)
        top_id, x, y = fields_in(pointer, "4xIhh")
        size = (self._own.width, self._own.height)
        if (x, y) != (int(point.x), int(point.y)) or fields_in(geometry, "8xHH") != size:
            what = "was resized or moved, or reaches beyond the screen's edge"
            message = f"window {self._id} {what}; nothing was clicked"
            raise PeekabooError(ErrorCode.STALE_SCREENSHOT, message)
        return top_id

    def _delivery(self, act: Act, button: int, output: str) -> Delivery:
        event = self._record.press_of(button)
        top_id = self._server.top_level(event.window_id) if event else 0
        receiver = self._receiver(event, top_id, act)
        places = [f"X={int(place.x)}\nY={int(place.y)}\n" for place in act.points]
        if receiver == "the window" and not all(place in output for place in places):
            receiver = "another place"
        delivered = _VERDICTS[receiver]
        return Delivery(delivered, act.points[0], self._listed_id(top_id) if delivered is False else None)

    def _receiver(self, event: Optional[Event], top_id: int, act: Act) -> str:
        """Return who received a press: a key of _VERDICTS. top_id: the window's top-level one, 0 if gone."""
        if not event:
            return "nobody"
        if not event.is_by_its_own_window:
            return "a grab"
        # of a click compare the press alone: its release is wherever the pointer went since
        if any(place != (int(point.x), int(point.y)) for place, point in zip(event.places, act.points)):
            return "another place"
        if is_same_client(event.client, self._top_id) and not is_same_client(self._id, self._top_id):
            return "the window manager"
        if top_id not in (0, self._top_id):
            return "another window"
        if top_id == 0 and not is_same_client(event.window_id, self._id):
            return "nobody"  # a window of an unknown program, which is gone
        pairs = ((self._id, self._server.root_id), (event.window_id, self._id))
        origin, offset = self._server.ask([request(ORIGIN, *pair, 0) for pair in pairs])
        if origin is None:  # the press closed the window; a drag ended elsewhere then
            return "a moved window" if act.kind == "drag" else "the window"
        x, y = fields_in(origin, "4xhh")
        start, end = act.points[0], act.points[-1]
        dragged = (int(end.x) - int(start.x), int(end.y) - int(start.y))  # a drag may move the window itself
        moved = (x - self._own.x, y - self._own.y)
        is_in_place = moved in ((0, 0), dragged)
        if offset and event.inside and act.kind != "drag":
            # the click may have moved the window since (openbox animates a minimised one): compare the press
            axes = zip(event.places[0], event.inside, fields_in(offset, "4xhh"))
            corner = [screen - inside - child for screen, inside, child in axes]
            is_in_place |= corner == [self._own.x, self._own.y]
        return "the window" if is_in_place else "a moved window"

    def _listed_id(self, top_id: int) -> int:
        try:
            windows = take_scene().windows
        except PeekabooError:  # an act that was done does not fail for this
            return top_id
        listed = (window.window_id for window in windows if top_id in (window.window_id, window.frame_id))
        return next(listed, top_id)

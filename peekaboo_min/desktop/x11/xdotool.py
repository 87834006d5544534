"""Run xdotool, and click, scroll, drag and move with it on X11.

A click presses a button once, a scroll once for each notch, a drag once, with moves until the release:

1. Move the pointer, and ask the server what is under it (`check_over`). For another window, press nothing.
2. Move again, because the window may have moved; print where the pointer is, and press. This is one line for
   the xdotool of step 1, so that nothing delays the press.
3. Read from the server's record which window received the press (`_is_delivered`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Callable, Optional

from ...core.call import uninterrupted
from ...core.errors import ErrorCode, PeekabooError, invalid
from ...core.log import log_warning
from ...core.models import Act, Delivery, Point, Window
from ...system.ending import exit_hooks
from ...system.files import held_locks
from ...system.process import RunningProgram, run_program, running, start_daemon
from .connection import GEOMETRY, ORIGIN, POINTER, UTF8, XConnection, is_same_client, request, x_connection
from .record import Event, Record, recording
from .windows import own_rect, take_scene

ACT_S = 45.0  # the longest act: a tool call has 50 seconds
XDOTOOL_S = 10.0  # it takes milliseconds; this is for a busy machine

# X buttons, as programs see them.
_BUTTONS = {"left": 1, "middle": 2, "right": 3}
_WHEEL = {"up": 4, "down": 5, "left": 6, "right": 7}
_CLICK_AGAIN_S, _NOTCH_AGAIN_S = 0.06, 0.005  # between clicks (Tk then sees a double click), and notches
# i3 passes a press on later, and Chromium then asks which modifiers are down: hold them longer.
_HOLD_ON_S = "0.1"
_DRAG_STEPS = 12  # programs notice a drag only by moves between its ends
_TRIPS = 150  # more round trips than xdotool needs, also for a drag
_LAST_LINE = re.compile(r"^\d+ \d+\n", re.M)  # of getdisplaygeometry: all commands before it are done


@contextmanager
def restored_by(restorer: Callable[[], Optional[tuple[list[str], bytes]]]) -> Iterator[None]:
    """Undo an act's changes at the end of the block, or after a signal.

    restorer: returns the argv and the stdin of a program that undoes them, or None if there are none.
    """

    def start_restorer() -> None:
        if command := restorer():
            start_daemon(*command)

    exit_hooks.append(start_restorer)
    try:
        yield
    finally:
        try:
            if command := restorer():
                with uninterrupted():
                    run_program(command[0], stdin=command[1], timeout_s=5.0, leaves_daemon=True)
        except PeekabooError as e:
            log_warning(f"the act's changes are not restored: {e.message}")
            if e.code is ErrorCode.TIMEOUT:  # the display hangs; this one waits for it
                start_restorer()
        finally:
            exit_hooks.remove(start_restorer)


class Xdotool:
    """A running xdotool. The methods raise WINDOW_NOT_FOUND, PROGRAM_FAILED and TIMEOUT."""

    def __init__(self, program: RunningProgram, release: list[str]) -> None:
        self._program = program
        self.release = release  # commands that release what it presses, in case it fails or is killed
        self.output = ""

    def run(self, commands: Sequence[str], watch: Optional[Callable[[], None]] = None) -> None:
        """Run commands and wait until they are done. Call `watch` every 50 ms meanwhile; it may raise."""

        def are_done(printed: str) -> bool:
            if watch:
                watch()
            return re.search(_LAST_LINE, printed) is not None

        printed = self._program.ask(" ".join([*commands, "getdisplaygeometry"]), are_done)
        self.output += printed
        if not re.search(_LAST_LINE, printed):
            self.end(is_complete=False)

    def end(self, is_complete: bool = True) -> None:
        """Wait for the end, and raise an error if any command failed."""
        done = self._program.end()
        if re.search(r"BadWindow|Bad ?Drawable|No such window|no window with", done.stderr, re.I):
            raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, "that window is gone")
        # xdotool ignores an unknown key, and exits with 0
        if done.code or not is_complete or "No such key name" in done.stderr:
            message = f"an xdotool command failed (exit code {done.code}); it may have pressed something"
            hint, details = "take a new screenshot", done.stderr.strip()[-1000:]
            raise PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint, details)
        self.release.clear()


@contextmanager
def running_xdotool(timeout_s: float = XDOTOOL_S) -> Iterator[Xdotool]:
    """Start an xdotool, which inherits the input lock. At the end of the block, wait until it has ended.

    If the block or xdotool fails, or this process ends, kill xdotool and run the commands in `release`.
    """
    release: list[str] = []
    releasing = restored_by(lambda: (["xdotool", *release], b"") if release else None)
    # by stdin: other users can read the arguments of a process
    with releasing, running(["xdotool", "-"], None, timeout_s, UTF8, pass_fds=held_locks()) as program:
        xdotool = Xdotool(program, release)
        yield xdotool
        xdotool.end()


def run_xdotool(commands: Sequence[str], timeout_s: float = XDOTOOL_S) -> None:
    """Run xdotool commands. Raises WINDOW_NOT_FOUND, PROGRAM_FAILED and TIMEOUT."""
    with running_xdotool(timeout_s) as xdotool:
        xdotool.run(commands)


def x11_modifiers(modifiers: Sequence[str]) -> list[str]:
    """Return xdotool's names of modifiers, each once. Raises INVALID_ARGUMENT for fn, which X11 lacks."""
    if "fn" in modifiers:
        raise invalid("X11 has no fn key", "leave it out")
    # shortcuts with Command on a Mac use Control here
    return list(dict.fromkeys("ctrl" if name == "cmd" else name for name in modifiers))


def act_by_pointer(window: Window, act: Act) -> Delivery:
    """Do the act. Raises WINDOW_BLOCKED, WINDOW_COVERED, STALE_SCREENSHOT and TIMEOUT."""
    with x_connection() as server, recording(server) as record:
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


class _Pointer:
    """Moves the pointer over one window, and presses buttons there."""

    def __init__(self, server: XConnection, record: Record, window: Window) -> None:
        self._server, self._record = server, record
        self._id, self._top_id = window.window_id, window.frame_id or window.window_id
        self._rect = own_rect(window)  # as listed before the act
        self._xdotool_s = XDOTOOL_S + _TRIPS * server.round_trip_s

    def move(self, point: Point) -> Delivery:
        """Move the pointer. Raises STALE_SCREENSHOT."""
        run_xdotool(self._move_argv(point), self._xdotool_s)
        top_id = self._top_level_under(point)
        is_over = top_id == self._top_id
        return Delivery(is_over, point, None if is_over else _listed_id(top_id))

    def check_over(self, point: Point) -> None:
        """Check that the window is under the pointer. Raises STALE_SCREENSHOT, WINDOW_COVERED."""
        top_id = self._top_level_under(point)
        if top_id != self._top_id:
            cover = f"window {_listed_id(top_id)}"
            message = f"window {self._id} is covered by {cover} at that point; nothing was pressed"
            raise PeekabooError(ErrorCode.WINDOW_COVERED, message)

    def press(self, act: Act) -> Delivery:
        """Press a button, repeatedly if the act asks for it, until a press is not delivered."""
        count = {"click": act.clicks, "scroll": act.amount}.get(act.kind, 1)
        pause_s = _NOTCH_AGAIN_S if act.kind == "scroll" else _CLICK_AGAIN_S
        deadline = time.monotonic() + ACT_S
        with uninterrupted():  # do not drop in the middle of a drag
            delivery = self._press_once(act)
            for number in range(1, count):
                if not delivery.delivered:
                    break
                time.sleep(pause_s)
                if time.monotonic() > deadline:
                    message = f"{number} of {count} presses took {ACT_S:g} seconds; no more were made"
                    raise PeekabooError(ErrorCode.TIMEOUT, message, "take a new screenshot")
                try:
                    delivery = self._press_once(act)
                except PeekabooError:
                    # a press before this one may have closed the window; no more presses are made
                    is_closed = not self._server.top_level(self._id)
                    return delivery if is_closed else delivery._replace(delivered=None)
        return delivery

    def _press_once(self, act: Act) -> Delivery:
        button = _WHEEL[act.direction] if act.kind == "scroll" else _BUTTONS[act.button]
        press, release = _press_argv(act, self._server.physical_button(button))
        move = [*self._move_argv(act.points[0]), "getmouselocation"]
        with running_xdotool(self._xdotool_s) as xdotool:
            xdotool.run(move)
            self.check_over(act.points[0])
            xdotool.release += release
            xdotool.run([*move, "--shell", *press])
        event = self._record.press_of(button)
        top_id = self._server.top_level(event.window_id) if event else 0
        delivered = self._is_delivered(event, top_id, act)
        places = [f"X={int(place.x)}\nY={int(place.y)}\n" for place in act.points]
        if delivered and not all(place in xdotool.output for place in places):
            delivered = None  # a person moved the pointer
        return Delivery(delivered, act.points[0], _listed_id(top_id) if delivered is False else None)

    def _move_argv(self, point: Point) -> list[str]:
        # relative to the window, so that the pointer follows a window that moves
        x, y = int(point.x - self._rect.x), int(point.y - self._rect.y)
        return ["mousemove", "--window", str(self._id), "--", str(x), str(y)]

    def _top_level_under(self, point: Point) -> int:
        """Return the top-level window under the pointer, 0 for the root window. Raises STALE_SCREENSHOT."""
        requests = [request(POINTER, self._server.root_id), request(GEOMETRY, self._id)]
        pointer, geometry = self._server.ask(requests)
        top_id, x, y = pointer.fields("4xIhh")
        size = (self._rect.width, self._rect.height)
        if (x, y) != (int(point.x), int(point.y)) or geometry.fields("8xHH") != size:
            what = "was resized or moved, or reaches beyond the screen's edge"
            message = f"window {self._id} {what}; nothing was pressed"
            raise PeekabooError(ErrorCode.STALE_SCREENSHOT, message)
        return top_id

    def _is_delivered(self, event: Optional[Event], top_id: int, act: Act) -> Optional[bool]:
        """Return True if the window received a press, False if another one did, None if that is unknown.

        top_id: the top-level window of the window that received it, 0 if it is gone.
        """
        # a grab: a window manager's shortcut, or a program that lets the user pick a window
        if event is None or not event.is_ungrabbed:
            return None
        # a person moved the pointer; a click may be released elsewhere, because programs act on the press
        if any(place != (int(point.x), int(point.y)) for place, point in zip(event.places, act.points)):
            return None
        if is_same_client(event.client, self._top_id) and not is_same_client(self._id, self._top_id):
            return None  # the frame, and with it the window manager, received the press
        if top_id not in (0, self._top_id, self._id):
            return False
        if top_id == 0 and not is_same_client(event.window_id, self._id):
            return None  # a window of an unknown program, which is gone
        return True if self._was_in_place(event, act) else None

    def _was_in_place(self, event: Event, act: Act) -> bool:
        """Return True unless the window may have been elsewhere at the press, or at a drag's release."""
        pairs = ((self._id, self._server.root_id), (event.window_id, self._id))
        origin, offset = self._server.ask([request(ORIGIN, *pair, 0) for pair in pairs])
        is_drag = act.kind == "drag"
        if origin.has_failed:  # the press closed the window; a drag ended elsewhere then
            return not is_drag
        x, y = origin.fields("4xhh")
        start, end = act.points[0], act.points[-1]
        dragged = (int(end.x) - int(start.x), int(end.y) - int(start.y))
        # a drag may move the window itself
        if (x - self._rect.x, y - self._rect.y) in ((0, 0), dragged):
            return True
        if event.inside and not is_drag and not offset.has_failed:
            # the window may have moved after the press (openbox animates a minimised one)
            axes = zip(event.places[0], event.inside, offset.fields("4xhh"))
            corner = [screen - inside - child for screen, inside, child in axes]
            if corner == [self._rect.x, self._rect.y]:
                return True
        # a window manager takes the frame off a window that closes, and so moves it
        return not is_drag and self._top_id != self._id and self._server.top_level(self._id) in (0, self._id)


def _press_argv(act: Act, button: str) -> tuple[list[str], list[str]]:
    """Return the commands that press and release, and the commands that only release."""
    keys = "+".join(x11_modifiers(act.modifiers))
    release_keys = ["keyup", "--delay", "0", keys] if keys else []
    release = ["mouseup", button, *release_keys]
    if act.kind == "drag":
        start, end = act.points
        argv = ["mousedown", button, "sleep", "0.1"]
        for step in range(1, _DRAG_STEPS + 1):
            # in screen points, because the drag may move the window itself
            x = start.x + (end.x - start.x) * step / _DRAG_STEPS
            y = start.y + (end.y - start.y) * step / _DRAG_STEPS
            argv += ["mousemove", "--", str(int(x)), str(int(y)), "sleep", "0.015"]
        return [*argv, "sleep", "0.1", "getmouselocation", "--shell", *release], release
    click = ["click", "--delay", "0", button]
    if keys:
        click = ["keydown", "--delay", "0", keys, *click, "sleep", _HOLD_ON_S, *release_keys]
    return click, release


def _listed_id(top_id: int) -> int:
    windows: tuple[Window, ...] = ()
    with suppress(PeekabooError):  # an act that was done does not fail for this
        windows = take_scene().windows
    listed = (window.window_id for window in windows if top_id in (window.window_id, window.frame_id))
    return next(listed, top_id)

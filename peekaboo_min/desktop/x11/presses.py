"""xdotool, and the X server's record of who got what it pressed.

A look before the press leaves microseconds for another window, and a window manager that holds a press back
until it has seen it passes it on to what is under the pointer then. Encodings: the protocol specifications of
the extension RECORD, and of XInput 2 for its events.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Callable, NamedTuple, Optional

from ...core.cancellation import pause, uninterrupted
from ...core.errors import ErrorCode, PeekabooError, invalid
from ...core.log import log_warning
from ...system.ending import exit_hooks
from ...system.files import held_locks
from ...system.process import Completed, run_program, running, start_daemon
from .connection import EXTENSION, UTF8, XConnection, fields_in, is_same_client, named, request, x_connection

_ACT_S, _RESTORE_S, _WATCH_S = 10.0, 5.0, 0.05
_CREATE_CONTEXT, _ENABLE_CONTEXT, _ALL_CLIENTS, _FROM_CLIENT = 1, 5, 3, 1
_SET_OWNER = 22  # the one request that is recorded; what follows are events
_KEY, _PRESS, _RELEASE, _SELECTION_REQUEST, _GENERIC = 2, 4, 5, 30, 35  # those of XInput alike
# The server delivers at once. What no program asked for is not recorded, and is waited for only once.
_FIRST_S = 0.5
_HANDED_ON_S = 0.1  # by a window manager that took it first
_RELEASED_S = 0.06  # a release is not delivered to a program that asked for presses only


def x11_modifiers(modifiers: Sequence[str]) -> list[str]:
    """xdotool's names of modifiers, each once. Raises INVALID_ARGUMENT for fn, which X11 does not have."""
    if "fn" in modifiers:
        raise invalid("X11 has no fn key", "leave it out")
    # what is pressed with Command on a Mac is pressed with Control here
    return list(dict.fromkeys("ctrl" if name == "cmd" else name for name in modifiers))


class Restorer(NamedTuple):
    """A program that puts back what an act changed, and what it reads."""

    argv: list[str]
    stdin: bytes = b""


@contextmanager
def restored_by(restorer: Callable[[], Optional[Restorer]]) -> Iterator[None]:
    """Run what `restorer` returns when this block ends, however it ends, also by a signal."""

    def start_restorer() -> None:
        needed = restorer()
        if needed:
            start_daemon(needed.argv, needed.stdin)

    exit_hooks.append(start_restorer)
    try:
        yield
    finally:
        try:
            needed = restorer()
            if needed:
                with uninterrupted():
                    run_program(needed.argv, timeout_s=_RESTORE_S, stdin=needed.stdin, leaves_daemon=True)
        except PeekabooError as e:
            log_warning(f"what the act has changed is not put back: {e.message}")
            if e.code is ErrorCode.TIMEOUT:  # the display hangs: once it wakes up
                start_restorer()
        finally:
            exit_hooks.remove(start_restorer)


def run_xdotool(
    words: Sequence[str],
    release: Sequence[str] = (),
    timeout_s: float = _ACT_S,
    watch: Optional[Callable[[], None]] = None,
    move: Sequence[str] = (),
    look: Optional[Callable[[], None]] = None,
) -> Completed:
    """Run a line of xdotool's, which it ends also when we are killed; it inherits the input lock.

    release: the words that release what the line presses, run when it does not end by itself: a killed
    xdotool leaves it pressed. watch: called while it runs. move: words to run before, after which `look` is
    called, with nothing but a write left to do. What these raise ends it. Raises WINDOW_NOT_FOUND,
    PROGRAM_FAILED.
    """
    pressed = [] if look else [*release]
    releasing = restored_by(lambda: Restorer(["xdotool", *pressed]) if pressed else None)
    # by stdin: other users can read the arguments of a process
    line = " ".join(words)
    stdin = None if look else f"{line}\n".encode("ascii")
    with releasing, running(["xdotool", "-"], stdin, timeout_s, UTF8, pass_fds=held_locks()) as program:
        is_ready = not look or "\n" in program.ask(" ".join(move), lambda answer: "\n" in answer)
        if look and is_ready:
            look()
            pressed += release
            program.ask(line, lambda _answer: True)
        while watch and not program.has_ended():
            pause(_WATCH_S)
            watch()
        done = program.end()
        if re.search(r"BadWindow|Bad ?Drawable|No such window|no window with", done.stderr, re.I):
            raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, "that window is gone", "list the windows again")
        # an unknown key is ignored with exit 0
        if done.code or not is_ready or "No such key name" in done.stderr:
            message = f"xdotool failed with exit code {done.code}; something may have been pressed"
            hint, details = "take a new screenshot and see", done.stderr.strip()[-1000:]
            raise PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint, details)
        pressed.clear()
    return done


class Event(NamedTuple):
    """A press, a release or a key that the server delivered."""

    kind: int
    detail: int  # the button, or the key's code
    window_id: int
    client: int
    """The first id of the client that got it: not the window's own where a window manager's shortcut took it,
    or a program that has grabbed the pointer.
    """
    places: tuple[tuple[int, ...], ...] = ()
    """Where the pointer was on the screen, at a press and then at its release; none for an event of XInput,
    of which a record has no more than its window.
    """

    @property
    def is_by_its_own_window(self) -> bool:
        return is_same_client(self.client, self.window_id)


class PressRecord:
    """What is delivered from now on: presses, keys, requests for a selection's content; and who takes one."""

    def __init__(self, connection: XConnection, server: XConnection, xinput: int) -> None:
        self._connection, self._server, self._xinput = connection, server, xinput
        self._first_s = _FIRST_S
        self._requests: set[tuple[int, int]] = set()
        self._taken: list[int] = []
        self._targets = 0

    def has_asked(self, window_id: int, owner_id: int) -> bool:
        """Whether a window's program has asked that owner for a selection's content since the last call."""
        self._targets = self._server.atoms(["TARGETS"])["TARGETS"]  # 0 before any program has named it
        while self._events(time.monotonic()) is not None:
            pass
        requests, self._requests = self._requests, set()
        asking = [requestor for owner, requestor in requests if owner == owner_id]
        return any(self._server.is_same_program(each, window_id) for each in asking)

    def times_taken(self, selection: str) -> int:
        """How often anybody has made himself the owner of a selection since the last call."""
        atom = self._server.atoms([selection])[selection]  # an answer, before which the record is written
        while self._events(time.monotonic()) is not None:
            pass
        taken, self._taken = self._taken, []
        return taken.count(atom)

    def press_of(self, button: int) -> Optional[Event]:
        """The last press of that button since the last call; that which a window's own client got counts more
        than another's. None where no program got it.

        It is called once the button is up, or soon will be.
        """
        pressed: Optional[Event] = None
        end = time.monotonic() + self._first_s
        while (events := self._events(end)) is not None:
            for event in events:
                if event.detail != button:
                    continue
                sure = pressed if pressed and pressed.is_by_its_own_window else None
                if event.kind == _RELEASE and event.is_by_its_own_window and sure:
                    return sure._replace(places=sure.places + event.places)
                if event.kind == _PRESS and (event.is_by_its_own_window or not sure):
                    pressed = event
                    end = time.monotonic() + (_RELEASED_S if event.is_by_its_own_window else _HANDED_ON_S)
        self._first_s = _FIRST_S if pressed else 0
        return pressed

    def keys(self) -> list[Event]:
        """The keys delivered since the last call, from an xdotool that has ended: it has waited until the
        server had done all.
        """
        keys: list[Event] = []
        end = time.monotonic() + self._first_s
        while (events := self._events(time.monotonic() if keys else end)) is not None:
            keys += [event for event in events if event.kind == _KEY]
        self._first_s = _FIRST_S if keys else 0
        return keys

    def _events(self, end: float) -> Optional[list[Event]]:
        """What counts of the server's next message; None when none comes until `end`."""
        reply = self._connection.receive(max(0, end - time.monotonic()))
        if reply is None:
            return None
        if reply[1] == _FROM_CLIENT:
            self._taken += [selection for (selection,) in struct.iter_unpack("<8xI4x", reply[32:])]
            return []
        (client,) = fields_in(reply, "4xI")
        events = []
        for at in range(32, len(reply) - 31, 32):  # of each event, also a longer one, its first 32 bytes
            kind, detail, window_id, x, y = struct.unpack_from("<BB10xI4xhh", reply, at)
            places: tuple[tuple[int, ...], ...] = ((x, y),)
            if kind == _GENERIC and detail == self._xinput:
                kind, detail, window_id = struct.unpack_from("<8xH6xI4xI", reply, at)
                places = ()
            if kind == _SELECTION_REQUEST:
                owner_id, requestor_id, target = struct.unpack_from("<8xII4xI", reply, at)
                # many ask first in which formats there is any, some whenever another program owns it
                if target != self._targets:
                    self._requests.add((owner_id, requestor_id))
            elif kind in (_KEY, _PRESS, _RELEASE):
                events.append(Event(kind, detail, window_id, client, places))
        return events


@contextmanager
def recorded_presses(server: XConnection) -> Iterator[PressRecord]:
    """A record while the block runs. It has a connection of its own, which answers nothing else from then on.

    Raises PROGRAM_FAILED where the server makes no record: nobody would know who gets a press.
    """
    with x_connection() as connection:
        replies = connection.ask([named(EXTENSION, "RECORD"), named(EXTENSION, "XInputExtension")])
        record, xinput = (fields_in(reply, "xB")[0] for reply in replies)
        # one range, though most of it does not count: of several, Xorg 21 forgets those above 31
        wanted = struct.pack("<IBB14xBB6x", _ALL_CLIENTS, _SET_OWNER, _SET_OWNER, _KEY, _GENERIC)
        context = connection.resource_base
        create = request(record, context, 0, 1, 1, data=_CREATE_CONTEXT, text=wanted)
        connection.send(create + request(record, context, data=_ENABLE_CONTEXT))
        started = connection.receive(5.0)
        if not started or started[0] != 1:
            message = "the X server does not record who gets a press, so nothing was pressed"
            raise PeekabooError(ErrorCode.PROGRAM_FAILED, message, "enable its extension RECORD")
        yield PressRecord(connection, server, xinput)

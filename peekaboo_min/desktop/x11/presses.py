"""Who got a press or a key, or fetched a selection, by the X server's record.

A look before the press leaves microseconds for another window, and a window manager that holds a press back
until it has seen it passes it on to what is under the pointer then. Encodings: the protocol specifications of
the extension RECORD, and of XInput 2 for its events.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, Optional

from ...core.errors import ErrorCode, PeekabooError
from ...core.log import log_debug
from .connection import EXTENSION, XConnection, fields_in, is_same_client, named, request, x_connection

_CREATE_CONTEXT, _ENABLE_CONTEXT = 1, 5
_ALL_CLIENTS = 3
_KEY, _PRESS, _RELEASE, _GENERIC = 2, 4, 5, 35  # XInput numbers them in its generic events alike
_SELECTION_REQUEST = 30
_START_S = 1.0
# The server delivers at once. What nobody asked for is not recorded, and is waited for only once.
_FIRST_S = 0.1
# A release is not delivered to a program that asked for presses only.
_RELEASE_S = 0.06
_FLOOD_S = 1.0


class Event(NamedTuple):
    """A press, a release or a key that the server delivered."""

    kind: int
    detail: int
    """The button, or the key's code."""
    window_id: int
    client: int
    """The first id of the client that got it: not the window's own where a window manager's shortcut took it,
    or a program that has grabbed the pointer.
    """
    place: Optional[tuple[int, int]] = None
    """Where in that window; None for XInput's events, whose ends are not recorded."""

    @property
    def is_by_its_own_window(self) -> bool:
        return is_same_client(self.client, self.window_id)


class PressRecord:
    """What is delivered from now on: presses, keys, and requests for a selection's content."""

    def __init__(self, connection: XConnection, server: XConnection, xinput: int) -> None:
        self._connection, self._server, self._xinput = connection, server, xinput
        self._first_s = _FIRST_S
        self._requestors: set[int] = set()

    def forget_requests(self) -> None:
        self._read_all()
        self._requestors.clear()

    def has_asked(self, window_id: int) -> bool:
        """Whether a window's program has asked for a selection's content since forget_requests."""
        self._read_all()
        return any(self._server.is_same_program(each, window_id) for each in self._requestors)

    def press_of(self, button: int) -> Optional[Event]:
        """The last press of that button since the last call; that which a window's own client got counts more
        than another's. None for none.

        It is called once the button is up, or soon will be.
        """
        pressed: Optional[Event] = None
        end = time.monotonic() + self._first_s
        while (events := self._events(end)) is not None:
            for event in events:
                if event.detail != button:
                    continue
                is_sure = pressed is not None and pressed.is_by_its_own_window
                if event.kind == _RELEASE and event.is_by_its_own_window and is_sure:
                    return pressed
                if event.kind == _PRESS and (event.is_by_its_own_window or not is_sure):
                    pressed = event
                    end = time.monotonic() + (_RELEASE_S if event.is_by_its_own_window else _FIRST_S)
        self._first_s = 0 if pressed is None else _FIRST_S
        return pressed

    def windows_with_keys(self, count: int) -> set[int]:
        """The windows that got keys since the last call, in which at least `count` were pressed."""
        found: set[int] = set()
        end = time.monotonic() + self._first_s
        while (events := self._events(end if count > 0 else min(end, time.monotonic()))) is not None:
            keys = [event.window_id for event in events if event.kind == _KEY]
            found.update(keys)
            count -= len(keys)
        self._first_s = _FIRST_S if found else 0
        return found

    def _read_all(self) -> None:
        while self._events(time.monotonic()) is not None:
            pass

    def _events(self, end: float) -> Optional[list[Event]]:
        """What counts of the server's next message; None when none comes until `end`, or they never stop."""
        now = time.monotonic()
        reply = self._connection.receive(max(0, end - now)) if now < end + _FLOOD_S else None
        if reply is None:
            return None
        (client,) = fields_in(reply, "4xI")
        found = []
        for at in range(32, len(reply) - 31, 32):
            kind, detail, window_id, x, y = struct.unpack_from("<BB10xI8xhh", reply, at)
            place: Optional[tuple[int, int]] = (x, y)
            if kind == _GENERIC and detail == self._xinput:
                kind, detail, window_id = struct.unpack_from("<8xH6xI4xI4x", reply, at)
                place = None
            if kind == _SELECTION_REQUEST:
                self._requestors.add(window_id)
            elif kind in (_KEY, _PRESS, _RELEASE):
                found.append(Event(kind, detail, window_id, client, place))
        return found


@contextmanager
def recorded_presses(server: XConnection) -> Iterator[Optional[PressRecord]]:
    """A record while the block runs; None where the server cannot make one.

    It has a connection of its own, which answers nothing else from then on.
    """
    with ExitStack() as stack:
        record = None
        try:
            record = _start(stack.enter_context(x_connection()), server)
        except PeekabooError as e:
            if e.code is ErrorCode.CANCELLED:
                raise
            log_debug(f"presses are not recorded: {e.message}")
        yield record


def _start(connection: XConnection, server: XConnection) -> Optional[PressRecord]:
    replies = connection.ask([named(EXTENSION, "RECORD"), named(EXTENSION, "XInputExtension")])
    (has_record, record), (has_xinput, xinput) = (fields_in(reply, "BB") for reply in replies)
    if not has_record:
        return None
    # one range, though most of it does not count: of several, Xorg 21 forgets those above 31
    kinds = struct.pack("<16xBB6x", _KEY, _GENERIC if has_xinput else _RELEASE)
    clients = struct.pack("<I", _ALL_CLIENTS)
    context = connection.resource_base
    connection.send(
        request(record, context, 0, 1, 1, data=_CREATE_CONTEXT, text=clients + kinds)
        + request(record, context, data=_ENABLE_CONTEXT)
    )
    started = connection.receive(_START_S)
    return PressRecord(connection, server, xinput) if started and started[0] == 1 else None

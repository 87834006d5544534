"""Record who received the keys, the presses and the content of selections.

A check before a press leaves microseconds in which another window may come, and a window manager may hold a
press back and pass it on later. So the record decides what was delivered. Encodings: the protocol
specifications of the extension RECORD, and of XInput 2 for its events.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Optional

from ...core.errors import ErrorCode, PeekabooError
from .connection import XConnection, is_same_client, request, x_connection

_CREATE_CONTEXT, _ENABLE_CONTEXT, _ALL_CLIENTS, _FROM_CLIENT = 1, 5, 3, 1
_SET_OWNER = 22  # the one request that is recorded; all others are events
_KEY, _PRESS, _RELEASE, _SELECTION_REQUEST, _GENERIC = 2, 4, 5, 30, 35  # XInput uses the same numbers
_SELECTION_ANSWER = 31 | 0x80  # a SelectionNotify; the owner of the selection sends it as an event
FIRST_S = 0.5  # for the first event: delivered at once, but a busy machine may record it late
_HANDED_ON_S = 0.1  # a window manager may take a press first, and hand it on
_RELEASED_S = 0.06  # many programs select presses only, so a release may never be delivered


class Event(NamedTuple):
    """A key press, or the press or release of a button, that the server delivered."""

    kind: int
    detail: int  # the button, or the key's code
    window_id: int
    client: int  # the base id of the client that received it: the window's, or one that has a grab
    places: tuple[tuple[int, ...], ...] = ()  # the pointer on the screen, at the press and at the release
    inside: tuple[int, ...] = ()  # the pointer in the window, at the press; XInput events have neither

    @property
    def is_ungrabbed(self) -> bool:
        """Return True if the window's own client received it."""
        return is_same_client(self.client, self.window_id)


class SelectionRequest(NamedTuple):
    """A request for the content of a selection, or its answer."""

    owner_id: int
    requestor_id: int
    target: int  # the atom of the requested format
    is_answered: bool  # False for the request, and True for the answer that brings the content


class Record:
    """The server's record of delivered presses and keys, of requests for selections, and of their owners."""

    def __init__(self, connection: XConnection, server: XConnection, xinput: int) -> None:
        self._connection, self._server, self._xinput = connection, server, xinput
        self._first_s = FIRST_S
        self._requests: list[SelectionRequest] = []
        self._unanswered: dict[tuple[int, int], int] = {}  # requestor and target -> owner
        self._taken: list[tuple[int, int]] = []  # owner and selection

    def drop_requests(self) -> None:
        """Forget the requests for selections so far, and their answers that are still to come."""
        self._read_all()
        self._requests.clear()
        self._unanswered.clear()

    def requests_to(self, owner_id: int) -> list[SelectionRequest]:
        """Return the requests to a selection's owner, and its answers, since the last call."""
        self._read_all()
        requests, self._requests = self._requests, []
        return [request for request in requests if request.owner_id == owner_id]

    def new_owners(self, selection: str) -> list[int]:
        """Return the windows that became the owner of a selection since the last call, 0 for none."""
        atom = self._server.atoms([selection])[selection]  # the server writes the record before it replies
        self._read_all()
        taken, self._taken = self._taken, []
        return [owner_id for owner_id, taken_atom in taken if taken_atom == atom]

    def press_of(self, button: int) -> Optional[Event]:
        """Return the last press of a button since the last call, or None if no client received it.

        Prefers a press that the window's own client received to one that a grab took. Call it when
        the button is up, or soon will be.
        """
        pressed: Optional[Event] = None
        end = time.monotonic() + self._first_s
        while (events := self._events(end)) is not None:
            for event in events:
                if event.detail != button:
                    continue
                ungrabbed = pressed if pressed and pressed.is_ungrabbed else None
                if event.kind == _RELEASE and event.is_ungrabbed and ungrabbed:
                    return ungrabbed._replace(places=ungrabbed.places + event.places)
                if event.kind == _PRESS and (event.is_ungrabbed or not ungrabbed):
                    pressed = event
                    wait_s = _RELEASED_S if event.is_ungrabbed else _HANDED_ON_S
                    end = time.monotonic() + wait_s + self._server.round_trip_s
        self._first_s = FIRST_S if pressed else 0  # do not wait again for a window that takes no buttons
        return pressed

    def keys(self, end: float) -> Optional[list[Event]]:
        """Return keys delivered since the last call; None if the time `end` (monotonic) comes first."""
        events = self._events(end)
        return events and [event for event in events if event.kind == _KEY]

    def _read_all(self) -> None:
        while self._events(0) is not None:
            pass

    def _events(self, end: float) -> Optional[list[Event]]:
        reply = self._connection.receive(max(0, end - time.monotonic()))
        if reply is None:
            return None
        if reply[1] == _FROM_CLIENT:
            self._taken += struct.iter_unpack("<4xII4x", reply[32:])
            return []
        (client,) = reply.fields("4xI")
        events = []
        for at in range(32, len(reply) - 31, 32):  # the record holds the first 32 bytes of each event
            kind, detail, window_id, x, y, *inside = struct.unpack_from("<BB10xI4xhhhh", reply, at)
            places: tuple[tuple[int, ...], ...] = ((x, y),)
            if kind == _GENERIC and detail == self._xinput:
                kind, detail, window_id = struct.unpack_from("<8xH6xI4xI", reply, at)
                places, inside = (), []
            if kind == _SELECTION_REQUEST:
                owner_id, requestor_id, target = struct.unpack_from("<8xII4xI", reply, at)
                self._unanswered[requestor_id, target] = owner_id
                self._requests.append(SelectionRequest(owner_id, requestor_id, target, False))
            elif kind == _SELECTION_ANSWER:
                requestor_id, target, property_atom = struct.unpack_from("<8xI4xII", reply, at)
                asked_id = self._unanswered.pop((requestor_id, target), None)
                if asked_id is not None and property_atom:  # without a property it is a refusal
                    self._requests.append(SelectionRequest(asked_id, requestor_id, target, True))
            elif kind in (_KEY, _PRESS, _RELEASE):
                events.append(Event(kind, detail, window_id, client, places, tuple(inside)))
        return events


@contextmanager
def recording(server: XConnection) -> Iterator[Record]:
    """Record deliveries in the block, on a connection of its own. Raises PROGRAM_FAILED without RECORD."""
    with x_connection() as connection:
        record, xinput = connection.extension("RECORD"), connection.extension("XInputExtension")
        # one large range: if there are several, Xorg 21 ignores events with numbers above 31
        wanted = struct.pack("<IBB14xBB6x", _ALL_CLIENTS, _SET_OWNER, _SET_OWNER, _KEY, _GENERIC)
        context = connection.resource_base
        create = request(record, context, 0, 1, 1, data=_CREATE_CONTEXT, text=wanted)
        connection.send(create + request(record, context, data=_ENABLE_CONTEXT))
        started = connection.receive(5.0)
        if not started or started[0] != 1:
            message = "the X server does not record who receives a press, so nothing was pressed"
            raise PeekabooError(ErrorCode.PROGRAM_FAILED, message, "enable its extension RECORD")
        yield Record(connection, server, xinput)

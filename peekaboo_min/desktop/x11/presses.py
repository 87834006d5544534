"""Which windows got a press or a key: the X server records what it delivers.

A look before the press leaves microseconds for another window, and a window manager that holds a press back
until it has seen it passes it on to what is under the pointer then. Encodings: the protocol specifications of
the extension RECORD, and of XInput 2 for its events.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Optional

from ...core.errors import ErrorCode, PeekabooError
from ...core.log import log_debug
from .connection import EXTENSION, XConnection, fields_in, named, request, x_connection

_CREATE_CONTEXT, _ENABLE_CONTEXT = 1, 5
_ALL_CLIENTS = 3
_KEY, _PRESS, _RELEASE, _GENERIC = 2, 4, 5, 35  # XInput numbers them in its generic events alike
_START_S = 1.0
# The server delivers at once. What nobody asked for is not recorded (GTK takes the wheel as motion), and is
# waited for only once.
_FIRST_S = 0.1
# A release is not delivered to a program that asked for presses only.
_RELEASE_S = 0.06
_POLL_S = 0.02


class PressRecord:
    """What is delivered from now on: the windows that get presses and keys."""

    def __init__(self, connection: XConnection, xinput: int) -> None:
        self._connection = connection
        self._xinput = xinput
        self._first_s = _FIRST_S

    def window_pressed(self, button: int) -> Optional[int]:
        """The last window that got a press of that button since the last call; None for none.

        It was called once the button is up, or soon will be.
        """
        pressed: Optional[int] = None
        end = time.monotonic() + self._first_s
        while True:
            for kind, detail, window_id in self._events(_POLL_S if time.monotonic() < end else 0):
                if detail != button:
                    continue
                if kind == _RELEASE and pressed is not None:
                    return pressed
                if kind == _PRESS:
                    pressed = window_id
                    end = time.monotonic() + _RELEASE_S
            if time.monotonic() >= end:
                self._first_s = 0 if pressed is None else _FIRST_S
                return pressed

    def windows_with_keys(self, count: int) -> set[int]:
        """The windows that got keys since the last call, in which at least `count` were pressed."""
        found: set[int] = set()
        end = time.monotonic() + self._first_s
        while True:
            is_late = count <= 0 or time.monotonic() >= end
            events = self._events(0 if is_late else _POLL_S)
            keys = [window_id for kind, _, window_id in events if kind == _KEY]
            if is_late and not keys:
                self._first_s = _FIRST_S if found else 0
                return found
            found.update(keys)
            count -= len(keys)

    def _events(self, seconds: float) -> Iterator[tuple[int, int, int]]:
        reply = self._connection.receive(seconds)
        for at in range(32, len(reply or b"") - 31, 32):
            kind, detail = struct.unpack_from("<BB", reply or b"", at)
            if kind == _GENERIC and detail == self._xinput:
                kind, detail, window_id = struct.unpack_from("<8xH6xI4xI4x", reply or b"", at)
            else:
                (window_id,) = struct.unpack_from("<12xI", reply or b"", at)
            if kind in (_KEY, _PRESS, _RELEASE):
                yield kind, detail, window_id


@contextmanager
def recorded_presses() -> Iterator[Optional[PressRecord]]:
    """A record while the block runs; None where the server cannot make one."""
    with ExitStack() as stack:
        record = None
        try:
            record = _start(stack.enter_context(x_connection()))
        except PeekabooError as e:
            if e.code is ErrorCode.CANCELLED:
                raise
            log_debug(f"presses are not recorded: {e.message}")
        yield record


def _start(connection: XConnection) -> Optional[PressRecord]:
    replies = connection.ask([named(EXTENSION, "RECORD"), named(EXTENSION, "XInputExtension")])
    (has_record, record), (has_xinput, xinput) = (fields_in(reply, "BB") for reply in replies)
    if not has_record:
        return None
    kinds = [(_KEY, _KEY), (_PRESS, _RELEASE), *([(_GENERIC, _GENERIC)] if has_xinput else [])]
    ranges = b"".join(struct.pack("<16xBB6x", *kind) for kind in kinds)
    clients = struct.pack("<I", _ALL_CLIENTS)
    context = connection.resource_base
    words = (context, 0, 1, len(kinds))
    connection.send(
        request(record, *words, data=_CREATE_CONTEXT, text=clients + ranges)
        + request(record, context, data=_ENABLE_CONTEXT)
    )
    started = connection.receive(_START_S)
    return PressRecord(connection, xinput) if started and started[0] == 1 else None

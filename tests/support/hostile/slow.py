"""A proxy that makes an X server answer late, each connection at its own time, as over a network."""

from __future__ import annotations

import heapq
import itertools
import random
import selectors
import socket
import threading
import time
from collections import defaultdict
from contextlib import suppress
from typing import Optional

from worlds import PATIENCE_S


class SlowDisplay:
    """`name` is a DISPLAY that answers after `round_trip_s`, which may be changed at any time.

    hidden: the name of an extension that it does not offer.
    """

    def __init__(self, display: str, round_trip_s: float, hidden: bytes = b"") -> None:
        self.round_trip_s, self._hidden = round_trip_s, hidden
        self._server = f"/tmp/.X11-unix/X{display.lstrip(':')}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.name = f"127.0.0.1:{self._listener.getsockname()[1] - 6000}"
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._pass_on, daemon=True)

    def __enter__(self) -> SlowDisplay:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()
        self._thread.join(PATIENCE_S)

    def _pass_on(self) -> None:
        peers: dict[socket.socket, socket.socket] = {}
        late: list[tuple[float, int, socket.socket, bytes]] = []  # a heap
        due: dict[socket.socket, float] = defaultdict(float)
        numbers = itertools.count()
        with selectors.DefaultSelector() as selector, self._listener:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._has_ended.is_set():
                wait_s = min(0.05, max(0.0, late[0][0] - time.monotonic())) if late else 0.05
                for key, _ in selector.select(wait_s):
                    if key.fileobj is self._listener:
                        client, server = self._listener.accept()[0], socket.socket(socket.AF_UNIX)
                        server.connect(self._server)
                        peers.update({client: server, server: client})
                        selector.register(client, selectors.EVENT_READ, data=self._hidden)
                        selector.register(server, selectors.EVENT_READ)
                        continue
                    data = _received(key.fileobj, key.data)
                    if not data:
                        selector.unregister(key.fileobj)
                    to = peers[key.fileobj]
                    delay_s = self.round_trip_s / 2 * random.uniform(0.7, 1.3)
                    due[to] = max(due[to], time.monotonic() + delay_s)
                    heapq.heappush(late, (due[to], next(numbers), to, data))
                while late and late[0][0] <= time.monotonic():
                    _send(*heapq.heappop(late)[2:])
            for connection in peers:
                connection.close()


def _received(connection: socket.socket, hidden: Optional[bytes]) -> bytes:
    try:
        data = connection.recv(1 << 16)
    except ConnectionError:
        return b""
    return data.replace(hidden, hidden[:-1] + b"?") if hidden else data


def _send(connection: socket.socket, data: bytes) -> None:
    with suppress(OSError):  # the other side has ended
        if data:
            connection.sendall(data)
        else:
            connection.shutdown(socket.SHUT_WR)

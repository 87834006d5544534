"""A proxy that makes an X server answer late, like over a network."""

from __future__ import annotations

import random
import socket
import threading
import time
from contextlib import suppress


class SlowDisplay:
    """`name` is a DISPLAY that answers after `round_trip_s`, which may be changed at any time.

    hidden: the name of an extension that it does not offer.
    """

    def __init__(self, display: str, round_trip_s: float, hidden: bytes = b"") -> None:
        self.round_trip_s, self._hidden = round_trip_s, hidden
        self._server = f"/tmp/.X11-unix/X{display.lstrip(':')}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]
        self.name = f"127.0.0.1:{self._listener.getsockname()[1] - 6000}"

    def __enter__(self) -> SlowDisplay:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._sockets:
            with suppress(OSError):  # the other side has ended
                one.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads it
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                client, server = self._listener.accept()[0], socket.socket(socket.AF_UNIX)
                self._sockets += [client, server]
                server.connect(self._server)
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._forward, args=pair, daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):  # one side has ended
            while data := source.recv(1 << 20):
                time.sleep(self.round_trip_s / 2 * random.uniform(0.7, 1.3))
                target.sendall(data.replace(self._hidden, self._hidden[:-1] + b"?") if self._hidden else data)
            target.shutdown(socket.SHUT_WR)

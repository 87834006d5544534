"""An HTTP server on the loopback for the fakes of web services."""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Optional


class Refusal(Exception):
    """A service's error answer."""

    def __init__(self, status: int, body: Any, message: str) -> None:
        super().__init__(message)
        self.status, self.body, self.message = status, body, message
        self.headers: dict[str, str] = {}


class LoopbackServer(ThreadingHTTPServer):
    """An HTTP server on 127.0.0.1 and a free port, which lets its threads end before it closes."""

    daemon_threads = False

    def __init__(self, answer: Callable[[Call], None]) -> None:
        super().__init__(("127.0.0.1", 0), Call)
        self.answer = answer
        self.closing = threading.Event()
        self.crashes: list[BaseException] = []  # of ours: the fake is wrong, or the test's brain is
        self.thread = threading.Thread(target=self.serve_forever, args=(0.005,), daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        crash = sys.exc_info()[1]
        if crash and not isinstance(crash, (ConnectionError, TimeoutError)):  # a client may leave any time
            self.crashes.append(crash)

    def close(self) -> None:
        self.closing.set()
        self.shutdown()
        self.server_close()
        self.thread.join()


class Call(BaseHTTPRequestHandler):
    """One connection with one request: reads it, calls the server's `answer`, writes the response."""

    protocol_version = "HTTP/1.1"
    timeout = 60  # a client that stops in the middle of its request
    server: LoopbackServer

    def do_GET(self) -> None:
        self.close_connection = True
        length = int(self.headers.get("content-length") or 0)
        self.raw = self.rfile.read(length)
        self.server.answer(self)

    do_POST = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()

    def send(self, status: int, body: Any, headers: Optional[dict[str, str]] = None) -> None:
        """Answer with JSON, or with the bytes given."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        described = {"Content-Type": "application/json; charset=utf-8", "Content-Length": str(len(data))}
        self.head(status, {**described, **(headers or {})})
        self.wfile.write(data)

    def reset(self) -> None:
        """Drop the connection with a TCP reset, so that the client sees ECONNRESET and not a short read."""
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

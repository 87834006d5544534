"""One HTTP server that speaks Ollama, OpenAI, Gemini and Anthropic, and is as strict as they are.

    with FakeAI() as ai:
        ai.brain = script(["a window", {"action": "done"}])
        run(command, env={**os.environ, **ai.env("openai", "gpt-5.4-mini")})
        assert ai.requests[-1].images[0].real_type == "image/png"

A request that the vendor would refuse is refused with the vendor's own message, before any failure that a
test has ordered with `fail_with`. The error texts are the vendors', as people report them.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import socket
import struct
import sys
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Optional, Union
from urllib.parse import parse_qs, unquote, urlsplit

MEGABYTE = 1024 * 1024
KEY_VARIABLES = {"openai": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
MODELS = {  # "vendor/model": can it see?
    "ollama/qwen3-vl:8b": True,
    "ollama/llava:latest": True,
    "ollama/hf.co/someone/vision:q4": True,
    "ollama/llama3.2:3b": False,
    "openai/gpt-5.4-mini": True,
    "openai/gpt-5.5": True,
    "openai/gpt-4o": True,
    "openai/gpt-3.5-turbo": False,
    "gemini/gemini-3.6-flash": True,
    "gemini/gemini-3.5-flash": True,
    "gemini/gemma-3-1b-it": False,
    "anthropic/claude-sonnet-5": True,
    "anthropic/claude-opus-4-7": True,
    "anthropic/claude-sonnet-4-6": True,
    "anthropic/claude-haiku-4-5": True,
    "anthropic/claude-text-only": False,
}


# images


@dataclass(frozen=True)
class ReceivedImage:
    data: bytes
    declared_type: Optional[str]  # as the client declared it; None: the vendor gets no type (Ollama)
    real_type: Optional[str]  # read from the bytes; None: not an image that can be decoded
    width: int  # pixels, 0 when real_type is None
    height: int


def look(data: bytes, declared_type: Optional[str] = None) -> ReceivedImage:
    """Read type and pixel size from the header; an incomplete file has no real_type."""
    for kind, reader in (("png", _png_size), ("jpeg", _jpeg_size), ("gif", _gif_size), ("webp", _webp_size)):
        try:
            size = reader(data)
        except (struct.error, IndexError):
            size = None
        if size and size[0] and size[1]:
            return ReceivedImage(data, declared_type, f"image/{kind}", size[0], size[1])
    return ReceivedImage(data, declared_type, None, 0, 0)


def _png_size(data: bytes) -> Optional[tuple[int, int]]:
    if not data.startswith(b"\x89PNG\r\n\x1a\n") or data[12:16] != b"IHDR":
        return None
    at = 8
    while at < len(data):
        length, name = struct.unpack_from(">I4s", data, at)
        chunk = data[at + 4 : at + 8 + length]
        if struct.unpack_from(">I", data, at + 8 + length)[0] != zlib.crc32(chunk):
            return None
        if name == b"IEND":
            return struct.unpack_from(">II", data, 16)
        at += 12 + length
    return None


def _jpeg_size(data: bytes) -> Optional[tuple[int, int]]:
    if not data.startswith(b"\xff\xd8\xff") or not data.endswith(b"\xff\xd9"):
        return None
    at = 2
    while data[at] == 0xFF:
        marker, length = struct.unpack_from(">BH", data, at + 1)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + length
    return None


def _gif_size(data: bytes) -> Optional[tuple[int, int]]:
    return struct.unpack_from("<HH", data, 6) if data[:6] in (b"GIF87a", b"GIF89a") else None


def _webp_size(data: bytes) -> Optional[tuple[int, int]]:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        return None
    if data[12:16] == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if data[12:16] == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF


def picture(kind: str = "png", width: int = 64, height: int = 48, padding: int = 0) -> bytes:
    """An image with a true header: png (decodable, plus `padding` bytes), jpeg, gif or webp (header only)."""
    if kind == "png":

        def chunk(name: bytes, body: bytes) -> bytes:
            return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

        rows = zlib.compress(b"".join(b"\0" + b"\x80" * width for _ in range(height)), 1)
        head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
        extra = chunk(b"tEXt", b"\0" * padding) if padding else b""
        return (
            b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
        )
    if kind == "jpeg":
        app0 = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0\1\1\0\0\1\0\1\0\0"
        sof0 = b"\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\1\x11\0"
        return b"\xff\xd8" + app0 + sof0 + b"\xff\xd9"
    if kind == "gif":
        return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0;"
    if kind == "webp":
        size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        return b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8X" + struct.pack("<II", 10, 0) + size
    raise ValueError(f"no such kind of image: {kind}")


# what was asked, what is answered


@dataclass
class Request:
    """One HTTP request as it arrived. Text and images are those of all messages, in order."""

    vendor: str  # "" when the path belongs to nobody
    method: str
    path: str  # without the query
    query: dict[str, list[str]]
    headers: dict[str, str]  # lower-case names
    raw: bytes
    body: Any = None  # the JSON body; None when there is none or it is not JSON
    model: str = ""
    prompt: str = ""
    system: str = ""
    schema: Optional[dict[str, Any]] = None
    images: list[ReceivedImage] = field(default_factory=list)
    at: float = field(default_factory=time.monotonic)
    status: int = 0  # the HTTP status that was sent; 0: none
    refusal: str = ""  # the vendor's error text, when there was one
    bytes_sent: int = 0  # of the answer's body


@dataclass(frozen=True)
class Reply:
    """A brain's reply. finish: stop, length (cut off), refused (the model), blocked (the vendor's filter)."""

    text: str
    tokens_in: int = 1200
    tokens_out: int = 34
    finish: str = "stop"
    thinking: str = ""  # sent where the vendor sends it, never part of the answer
    pieces: int = 1  # the vendors that answer with a list of parts cut the text into so many


Brain = Callable[[Request], Union[str, dict, Reply]]


class Refusal(Exception):
    """A vendor's error answer."""

    def __init__(
        self, status: int, body: Any, message: str, headers: Optional[dict[str, str]] = None
    ) -> None:
        super().__init__(message)
        self.status, self.body, self.message, self.headers = status, body, message, headers or {}


def see(request: Request) -> Union[str, dict]:
    """The default brain: it describes what it sees, or fills in the schema."""
    if request.schema:
        return example_of(request.schema)
    return "I see " + (
        ", ".join(f"a {p.width}x{p.height} {p.real_type}" for p in request.images) or "nothing"
    )


def example_of(schema: dict[str, Any]) -> Any:
    """The smallest value that a JSON schema allows, near enough."""
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0])
    kind = schema.get("type", "object")
    kind = (kind[0] if isinstance(kind, list) else kind).lower()
    if kind == "object":
        return {name: example_of(part) for name, part in schema.get("properties", {}).items()}
    return {"array": [], "integer": 0, "number": 0, "boolean": False, "null": None}.get(kind, "text")


def script(replies: Iterable[Union[str, dict, Reply, Brain]]) -> Brain:
    """A brain that gives these replies in turn; one question more fails the test when its FakeAI closes."""
    left = deque(replies)

    def next_line(request: Request) -> Union[str, dict, Reply]:
        if not left:
            raise AssertionError(
                f"the script is over, but {request.vendor} was asked: {request.prompt[:200]!r}"
            )
        line = left.popleft()
        return line(request) if callable(line) else line

    return next_line


def _smart_size(width: int, height: int, least: int) -> tuple[int, int]:
    """Qwen2.5-VL's own smart_resize: whole patches of 28 pixels, `least` pixels or more."""
    size = round(width / 28) * 28, round(height / 28) * 28
    if size[0] * size[1] < least:
        beta = (least / (width * height)) ** 0.5
        size = math.ceil(width * beta / 28) * 28, math.ceil(height * beta / 28) * 28
    return size


CONVENTIONS: dict[str, Callable[[int, int], tuple[float, float]]] = {
    "pixels": lambda width, height: (width, height),
    "thousandths": lambda width, height: (1000, 1000),
    "28-px smart size": lambda width, height: _smart_size(width, height, 4 * 28 * 28),
    "1024-token size": lambda width, height: _smart_size(width, height, 1024 * 28 * 28),
    "1.3x": lambda width, height: (1.3 * width, 1.3 * height),
    "shares": lambda width, height: (1, 1),
}
"""The size in which a model counts over an image of this size, whatever it was asked for."""


def pointer(convention: str, truth: Callable[[Request], tuple[float, float]]) -> Brain:
    """A brain that clicks where `truth` knows the widget, as shares of the last image's width and height."""

    def click(request: Request) -> dict[str, Any]:
        seen = request.images[-1]
        place = zip("xy", truth(request), CONVENTIONS[convention](seen.width, seen.height))
        digits = 3 if convention == "shares" else None
        found = {axis: round(share * size, digits) for axis, share, size in place}
        return {**dict.fromkeys(ACTION_FIELDS), **found, "action": "click", "done": False, "why": "there"}

    return click


ACTION_FIELDS = (
    "action",
    "x",
    "y",
    "button",
    "clicks",
    "text",
    "key",
    "modifiers",
    "done",
    "why",
    "confidence",
)


def http_date(seconds_from_now: float) -> str:
    """A Retry-After value of the second kind."""
    return formatdate(time.time() + seconds_from_now, usegmt=True)


def error(
    vendor: str,
    status: int,
    message: str,
    *,
    kind: str = "",
    code: Optional[str] = None,
    param: Optional[str] = None,
    details: Iterable[dict[str, Any]] = (),
) -> Refusal:
    """An error in the vendor's own shape; `kind` is OpenAI's and Anthropic's type and Gemini's status."""
    if vendor == "ollama":
        return Refusal(status, {"error": message}, message)
    if vendor == "gemini":
        names = {
            400: "INVALID_ARGUMENT",
            403: "PERMISSION_DENIED",
            404: "NOT_FOUND",
            429: "RESOURCE_EXHAUSTED",
            500: "INTERNAL",
            503: "UNAVAILABLE",
            504: "DEADLINE_EXCEEDED",
        }
        inside = {"code": status, "message": message, "status": kind or names.get(status, "UNKNOWN")}
        return Refusal(
            status, {"error": {**inside, **({"details": list(details)} if details else {})}}, message
        )
    if vendor == "anthropic":
        names = {
            400: "invalid_request_error",
            401: "authentication_error",
            403: "permission_error",
            404: "not_found_error",
            413: "request_too_large",
            429: "rate_limit_error",
            529: "overloaded_error",
        }
        kind = kind or names.get(status, "invalid_request_error" if status < 500 else "api_error")
        body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011CFake"}
        return Refusal(status, body, message)
    kind = kind or ("invalid_request_error" if status < 500 else "server_error")
    return Refusal(
        status, {"error": {"message": message, "type": kind, "param": param, "code": code}}, message
    )


# the server


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
        if crash and not isinstance(
            crash, (ConnectionError, TimeoutError)
        ):  # a client may leave when it likes
            self.crashes.append(crash)

    def close(self) -> None:
        self.closing.set()
        self.shutdown()
        self.server_close()
        self.thread.join()


class Call(BaseHTTPRequestHandler):
    """One connection, one request: reads it, hands it to the server's `answer`, writes what that sends."""

    protocol_version = "HTTP/1.1"
    timeout = 60  # a client that stops in the middle of its request
    server: LoopbackServer

    def do_GET(self) -> None:
        self.close_connection = True
        length = int(self.headers.get("content-length") or 0)
        self.raw = self.rfile.read(length)
        self.server.answer(self)

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()

    def send(self, status: int, body: Any, headers: Optional[dict[str, str]] = None) -> int:
        """Answer with JSON, or with the bytes given; returns the length of the body."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.head(
            status,
            {
                "Content-Type": "application/json; charset=utf-8",
                "Content-Length": str(len(data)),
                **(headers or {}),
            },
        )
        self.wfile.write(data)
        return len(data)

    def reset(self) -> None:
        """Drop the connection with a TCP reset, so that the client sees ECONNRESET and not a short read."""
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


@dataclass
class Failure:
    kind: str
    times: Optional[int]  # None: for ever
    path: str  # a part of the path; "": every question to a model
    retry_after: Union[int, float, str, None]
    status: Optional[int]
    seconds: float
    text: str
    size_bytes: int


FAILURES = (
    "wrong_key",
    "missing_model",
    "text_only_model",
    "rate_limited",
    "server_error",
    "overloaded",
    "truncated",
    "refused",
    "blocked",
    "empty",
    "malformed_json",
    "not_json_content_type",
    "stalled",
    "slow_drip",
    "connection_reset",
    "redirect",
    "huge",
)


class FakeAI:
    """The four vendors. `models` maps "vendor/model" to whether it sees; a key of None asks for no key."""

    def __init__(self, models: Optional[dict[str, bool]] = None, brain: Brain = see) -> None:
        self.models = dict(MODELS if models is None else models)
        self.brain = brain
        self.keys: dict[str, Optional[str]] = {
            vendor: f"fake-{vendor}-key-0123456789" for vendor in KEY_VARIABLES
        }
        self.requests: list[Request] = []
        self.redirected: list[Request] = []  # what reached the other host that `redirect` points to
        self.gemini_errors_in_list = False  # Gemini wraps its error in a one-element list on some routes
        self.ollama_lists_capabilities = True  # False: before Ollama 0.30, only /api/show had them
        self.blind_text_models = False  # True: a text-only Ollama model answers, without having seen anything
        self._failures: list[Failure] = []
        self._changed = threading.Condition()
        self._held: list[socket.socket] = []

    def __enter__(self) -> FakeAI:
        self._server = LoopbackServer(self._answer)
        self._redirected = LoopbackServer(self._answer_redirected)
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self._server.close()
        self._redirected.close()
        for held in self._held:
            held.close()
        if kind is None and self._server.crashes:
            raise self._server.crashes[0]

    # addresses

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def ollama_base_url(self) -> str:
        return self.url

    @property
    def openai_base_url(self) -> str:
        return self.url + "/v1"

    @property
    def gemini_base_url(self) -> str:
        return self.url

    @property
    def anthropic_base_url(self) -> str:
        return self.url

    @property
    def redirect_url(self) -> str:
        """Another server under another host name, where a redirect leads."""
        return self._redirected.url.replace("127.0.0.1", "localhost")

    def env(self, provider: str, model: str) -> dict[str, str]:
        """The variables that make `provider/model` the only provider, with its key and every base URL."""
        variables = {
            "PEEKABOO_AI_PROVIDERS": f"{provider}/{model}",
            "PEEKABOO_OLLAMA_BASE_URL": self.ollama_base_url,
            "OPENAI_BASE_URL": self.openai_base_url,
            "GEMINI_BASE_URL": self.gemini_base_url,
            "ANTHROPIC_BASE_URL": self.anthropic_base_url,
        }
        if self.keys.get(provider):
            variables[KEY_VARIABLES[provider]] = str(self.keys[provider])
        return variables

    def refused_port(self) -> int:
        """A port that refuses connections until this FakeAI closes."""
        held = socket.socket()  # bound and not listening: connecting is refused, and the port stays ours
        held.bind(("127.0.0.1", 0))
        self._held.append(held)
        return held.getsockname()[1]

    # orders

    def fail_with(
        self,
        kind: str,
        times: Optional[int] = 1,
        *,
        path: str = "",
        retry_after: Union[int, float, str, None] = None,
        status: Optional[int] = None,
        seconds: float = 30.0,
        text: str = "",
        size_bytes: int = 64 * MEGABYTE,
    ) -> None:
        """Answer the next `times` valid questions with a failure (see FAILURES); several calls queue up.

        path: fail requests whose path contains it instead of questions to a model ("/api/tags").
        retry_after: for rate_limited, overloaded and server_error; seconds or an HTTP date.
        status: for server_error (500), rate_limited (429) and redirect (302).
        seconds: how long stalled stays silent and slow_drip drips; both answer correctly in the end.
        text: of truncated, refused, blocked, malformed_json and not_json_content_type.
        """
        if kind not in FAILURES:
            raise ValueError(f"no failure {kind!r}; there are {', '.join(FAILURES)}")
        with self._changed:
            self._failures.append(Failure(kind, times, path, retry_after, status, seconds, text, size_bytes))

    def heal(self) -> None:
        """Forget every failure that was ordered."""
        with self._changed:
            self._failures.clear()

    def wait_for_requests(self, count: int, timeout_s: float = 60.0) -> list[Request]:
        """The requests, as soon as there are so many."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= count, timeout_s):
                raise AssertionError(f"{len(self.requests)} of {count} requests came in {timeout_s} s")
            return list(self.requests)

    @property
    def questions(self) -> list[Request]:
        """The requests that asked a model, without those for lists and descriptions of models."""
        return [request for request in self.requests if is_question(request)]

    # answering

    def _answer(self, call: Call) -> None:
        request = read(call)
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        try:
            listing = self.check(request)
            failure = self._next_failure(request)
            if failure:
                self._fail(call, request, failure, listing)
            else:
                self._send(call, request, listing or self.think(request))
        except Refusal as refusal:
            body = (
                [refusal.body] if request.vendor == "gemini" and self.gemini_errors_in_list else refusal.body
            )
            request.status, request.refusal = refusal.status, refusal.message
            request.bytes_sent = call.send(refusal.status, body, refusal.headers)
        except (ConnectionError, TimeoutError):
            pass  # the client left; what it got is in bytes_sent
        except (
            Exception
        ) as crash:  # a brain that raises is a failed test, which the client must not retry away
            self._server.crashes.append(crash)
            request.status, request.refusal = 400, f"the test's brain failed: {crash}"
            call.send(400, error(request.vendor, 400, request.refusal).body)

    def check(self, request: Request) -> Any:
        """What answers a request that is no question to a model; None for one that is. Raises Refusal."""
        return CHECKS[request.vendor](self, request) if request.vendor else _nowhere(request)

    def _answer_redirected(self, call: Call) -> None:
        request = read(call)
        self.redirected.append(request)
        body = ANSWERS[request.vendor](request, Reply("I am another server.")) if request.vendor else {}
        call.send(200, body)

    def _next_failure(self, request: Request) -> Optional[Failure]:
        with self._changed:
            for failure in self._failures:
                if failure.path in request.path if failure.path else is_question(request):
                    if failure.times is not None:
                        failure.times -= 1
                        if failure.times <= 0:
                            self._failures.remove(failure)
                    return failure
        return None

    def think(self, request: Request) -> Any:
        answer = self.brain(request)
        if (
            self.blind_text_models
            and request.vendor == "ollama"
            and request.images
            and not self.sees(request)
        ):
            answer = "Please provide the image you would like me to look at."
        if isinstance(answer, dict):
            answer = json.dumps(answer)
        return ANSWERS[request.vendor](request, Reply(answer) if isinstance(answer, str) else answer)

    def _send(self, call: Call, request: Request, body: Any) -> None:
        request.status = 200
        request.bytes_sent = call.send(200, body)

    def _fail(self, call: Call, request: Request, failure: Failure, listing: Any) -> None:
        kind, vendor = failure.kind, request.vendor
        refusal = _refusal(self, request, failure)
        if refusal:
            raise refusal
        if kind in REPLIES:
            self._send(call, request, _spoilt(request, failure))
            return
        request.status = 200
        if kind == "redirect":
            request.status = failure.status or 302
            call.send(request.status, b"", {"Location": self.redirect_url + call.path})
        elif kind == "malformed_json":
            request.bytes_sent = call.send(
                200, (failure.text or '{"choices": [{"message": {"content": "I se').encode()
            )
        elif kind == "not_json_content_type":
            page = failure.text or "<html><body>Please sign in to the hotel's network.</body></html>"
            request.bytes_sent = call.send(200, page.encode(), {"Content-Type": "text/html"})
        elif kind == "connection_reset":
            data = json.dumps(ANSWERS[vendor](request, Reply("This answer is never finished."))).encode()
            call.head(200, {"Content-Type": "application/json", "Content-Length": str(len(data))})
            call.wfile.write(data[: len(data) // 2])
            request.bytes_sent = len(data) // 2
            call.reset()
        elif kind == "stalled":
            request.status = 0
            if not self._server.closing.wait(failure.seconds):
                self._send(call, request, listing or self.think(request))
        elif kind == "slow_drip":
            self._drip(call, request, json.dumps(listing or self.think(request)).encode(), failure.seconds)
        elif kind == "huge":
            self._flood(call, request, failure.size_bytes)

    def _drip(self, call: Call, request: Request, data: bytes, seconds: float) -> None:
        call.head(200, {"Content-Type": "application/json", "Content-Length": str(len(data))})
        pause = seconds / len(data)
        for at in range(len(data)):
            if self._server.closing.wait(pause):
                return
            call.wfile.write(data[at : at + 1])
            request.bytes_sent += 1

    def _flood(self, call: Call, request: Request, size_bytes: int) -> None:
        """A whole and right answer of this size, whose length is not announced."""
        start, end = json.dumps(ANSWERS[request.vendor](request, Reply("@@@"))).encode().split(b"@@@")
        call.head(200, {"Content-Type": "application/json"})
        call.wfile.write(start)
        while request.bytes_sent < size_bytes and not self._server.closing.is_set():
            request.bytes_sent += call.wfile.write(b"x" * 65536)
        call.wfile.write(end)

    # what the vendors' checks ask

    def name_of(self, vendor: str, model: str) -> Optional[str]:
        """The key in `models`; Ollama adds :latest and ignores case."""
        wanted = f"{vendor}/{model}"
        if vendor != "ollama":
            return wanted if wanted in self.models else None
        wanted = (wanted if ":" in model else wanted + ":latest").lower()
        return next((name for name in self.models if name.lower() == wanted), None)

    def sees(self, request: Request) -> bool:
        return self.models[str(self.name_of(request.vendor, request.model))]

    def names(self, vendor: str) -> list[str]:
        return [name.split("/", 1)[1] for name in self.models if name.startswith(vendor + "/")]


def read(call: Call) -> Request:
    parts = urlsplit(call.path)
    headers = {name.lower(): value for name, value in call.headers.items()}
    vendor = vendor_of(parts.path, headers)
    request = Request(vendor, call.command, parts.path, parse_qs(parts.query), headers, call.raw)
    try:
        request.body = json.loads(call.raw) if call.raw else None
    except ValueError:
        request.body = None
    return request


def vendor_of(path: str, headers: dict[str, str]) -> str:
    if path == "/" or path.startswith("/api/"):
        return "ollama"
    if path.startswith("/v1beta/"):
        return "gemini"
    if path.startswith("/v1/messages") or "anthropic-version" in headers or "x-api-key" in headers:
        return "anthropic"
    return "openai" if path.startswith("/v1/") else ""


def is_question(request: Request) -> bool:
    return request.path in ("/api/generate", "/v1/chat/completions", "/v1/messages") or request.path.endswith(
        ":generateContent"
    )


def _nowhere(request: Request) -> Any:
    raise Refusal(404, {"detail": "Not Found"}, "Not Found")


# failures

REPLIES = {"truncated": "length", "refused": "refused", "blocked": "blocked", "empty": "stop"}


def _spoilt(request: Request, failure: Failure) -> Any:
    texts = {
        "truncated": '{"action": "click", "x": 1',
        "refused": "I cannot help with that.",
        "blocked": "",
        "empty": "",
    }
    finish = REPLIES[failure.kind]
    return ANSWERS[request.vendor](request, Reply(failure.text or texts[failure.kind], finish=finish))


def _refusal(ai: FakeAI, request: Request, failure: Failure) -> Optional[Refusal]:
    """The HTTP error that this failure is, or None."""
    kind, vendor = failure.kind, request.vendor
    if kind == "wrong_key":
        return _wrong_key(vendor, "fake-revoked-key")
    if kind == "missing_model":
        return _missing_model(vendor, request.model)
    if kind == "text_only_model":
        return _text_only(vendor, request.model)
    if kind == "blocked" and vendor == "anthropic":
        return error(vendor, 400, failure.text or "Output blocked by content filtering policy")
    if kind not in ("rate_limited", "server_error", "overloaded"):
        return None
    status, message, code = {
        ("rate_limited", "ollama"): (429, "too many requests", None),
        ("rate_limited", "openai"): (
            429,
            "Rate limit reached for requests. Please try again.",
            "rate_limit_exceeded",
        ),
        ("rate_limited", "gemini"): (
            429,
            "You exceeded your current quota, please check your plan and billing details.",
            None,
        ),
        ("rate_limited", "anthropic"): (
            429,
            "This request would exceed your organization's rate limit.",
            None,
        ),
        ("overloaded", "ollama"): (
            503,
            "server busy, please try again.  maximum pending requests exceeded",
            None,
        ),
        ("overloaded", "openai"): (503, "The engine is currently overloaded, please try again later", None),
        ("overloaded", "gemini"): (503, "The model is overloaded. Please try again later.", None),
        ("overloaded", "anthropic"): (529, "Overloaded", None),
    }.get((kind, vendor), (500, "An internal error occurred.", None))
    details = []
    if vendor == "gemini" and isinstance(failure.retry_after, (int, float)):
        details = [
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{failure.retry_after}s"}
        ]
    types = {"rate_limited": "requests" if vendor == "openai" else ""}
    refusal = error(
        vendor,
        failure.status or status,
        failure.text or message,
        code=code,
        details=details,
        kind=types.get(kind, ""),
    )
    if failure.retry_after is not None:
        refusal.headers["Retry-After"] = str(failure.retry_after)
    return refusal


def _missing_model(vendor: str, model: str) -> Refusal:
    message = {
        "ollama": f"model '{model}' not found",
        "openai": f"The model `{model}` does not exist or you do not have access to it.",
        "gemini": f"models/{model} is not found for API version v1beta, "
        "or is not supported for generateContent. "
        "Call ListModels to see the list of available models and their supported methods.",
        "anthropic": f"model: {model}",
    }[vendor]
    return error(vendor, 404, message, code="model_not_found")


def _text_only(vendor: str, model: str) -> Refusal:
    status, message = {
        "ollama": (
            500,
            "Failed to create new sequence: failed to process inputs: this model is missing data "
            "required for image input",
        ),
        "openai": (400, "Invalid content type. image_url is only supported by certain models."),
        "gemini": (400, f"Image input modality is not enabled for models/{model}"),
        "anthropic": (400, "This model does not support image input."),
    }[vendor]
    return error(vendor, status, message, param="messages.[0].content.[1].type")


def _wrong_key(vendor: str, key: str) -> Refusal:
    if vendor == "openai":
        return error(
            vendor,
            401,
            f"Incorrect API key provided: {key[:4]}****{key[-4:]}. You can find your API key at "
            "https://platform.openai.com/account/api-keys.",
            code="invalid_api_key",
        )
    if vendor == "anthropic":
        return error(vendor, 401, "invalid x-api-key")
    if vendor == "gemini":  # 400, not 401
        message = "API key not valid. Please pass a valid API key."
        service = {"service": "generativelanguage.googleapis.com"}
        return error(
            vendor,
            400,
            message,
            details=[
                {
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "API_KEY_INVALID",
                    "domain": "googleapis.com",
                    "metadata": service,
                },
                {
                    "@type": "type.googleapis.com/google.rpc.LocalizedMessage",
                    "locale": "en-US",
                    "message": message,
                },
            ],
        )
    return error(
        vendor, 401, "unauthorized"
    )  # Ollama has no key, but may stand behind a proxy that wants one


# what every vendor checks


def _json_body(request: Request, not_json: str, wrong_type: str, type_status: int = 400) -> dict[str, Any]:
    if request.method != "POST":
        raise error(request.vendor, 405, "Method Not Allowed")
    if wrong_type and not request.headers.get("content-type", "").startswith("application/json"):
        raise error(request.vendor, type_status, wrong_type)  # urllib's default is form-urlencoded
    if not isinstance(request.body, dict):
        raise error(request.vendor, 400, not_json)
    return request.body


def _decode(data: Any) -> Optional[bytes]:
    """Standard base64 with its padding; None when it is something else."""
    try:
        return base64.b64decode(data, validate=True) or None
    except (binascii.Error, ValueError, TypeError):
        return None


def _objects(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every sub-schema of a JSON schema, with where it stands."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from _objects(part, (*path, "properties", name))
    for name, part in schema.get("$defs", {}).items():
        yield from _objects(part, (*path, "$defs", name))
    if "items" in schema:
        yield from _objects(schema["items"], (*path, "items"))
    for at, part in enumerate(schema.get("anyOf", [])):
        yield from _objects(part, (*path, "anyOf", str(at)))


# Ollama


def check_ollama(ai: FakeAI, request: Request) -> Any:
    if request.method == "GET" and request.path == "/":
        return b"Ollama is running"
    if request.method == "GET" and request.path == "/api/tags":
        return {"models": [_ollama_model(ai, name) for name in ai.names("ollama")]}
    if request.path not in ("/api/show", "/api/generate"):
        raise error("ollama", 404, "404 page not found")
    body = _json_body(
        request, "invalid character in request body", ""
    )  # Ollama reads JSON whatever the content type
    request.model = body.get("model") or ""
    if not request.model:
        raise error("ollama", 400, "invalid model name")
    name = ai.name_of("ollama", request.model)
    if name is None:
        raise _missing_model("ollama", request.model)
    if request.path == "/api/show":
        details = _ollama_model(ai, name.split("/", 1)[1])["details"]
        return {"details": details, "model_info": {}, "capabilities": _ollama_capabilities(ai, name)}
    if body.get("stream") is not False:  # true is its default
        raise error("ollama", 400, "This fake does not stream.")
    _read_ollama_body(request, body)
    if body.get("think"):
        raise error("ollama", 400, f'"{request.model}" does not support thinking')
    form = body.get("format")
    if form not in (None, "", "json") and not isinstance(form, dict):
        raise error(
            "ollama",
            500,
            f'invalid format: {json.dumps(form)}; expected "json" or a valid JSON Schema object',
        )
    request.schema = form if isinstance(form, dict) else None
    for seen in request.images:
        if seen.real_type not in ("image/png", "image/jpeg", "image/webp"):
            raise error(
                "ollama",
                500,
                "Failed to create new sequence: failed to process inputs: image: unknown format",
            )
    if request.images and not ai.sees(request) and not ai.blind_text_models:
        raise _text_only("ollama", request.model)
    return None


def _read_ollama_body(request: Request, body: dict[str, Any]) -> None:
    request.system, request.prompt = body.get("system") or "", body.get("prompt") or ""
    for text in body.get("images") or []:
        data = _decode(text)
        if data is None:  # a data: prefix fails at its colon, byte 4
            wrong = re.search(r"[^A-Za-z0-9+/\r\n]", str(text))
            raise error(
                "ollama", 400, f"illegal base64 data at input byte {wrong.start() if wrong else len(text)}"
            )
        request.images.append(look(data))


def _ollama_capabilities(ai: FakeAI, name: str) -> list[str]:
    return ["completion", "vision"] if ai.models[name] else ["completion"]


def _ollama_model(ai: FakeAI, name: str) -> dict[str, Any]:
    family = name.split(":")[0]
    model = {
        "name": name,
        "model": name,
        "modified_at": "2026-08-01T12:00:00Z",
        "size": 6_000_000_000,
        "digest": "0" * 64,
        "details": {
            "format": "gguf",
            "family": family,
            "families": [family],
            "parameter_size": "8B",
            "quantization_level": "Q4_K_M",
        },
    }
    if ai.ollama_lists_capabilities:
        model["capabilities"] = _ollama_capabilities(ai, "ollama/" + name)
    return model


def answer_ollama(request: Request, reply: Reply) -> Any:
    if not (request.body or {}).get("prompt"):  # that only loads the model
        reply = replace(reply, text="", finish="load")
    return {
        "model": request.model,
        "created_at": "2026-08-01T12:00:00.000000Z",
        "response": reply.text,
        **({"thinking": reply.thinking} if reply.thinking else {}),
        "done": True,
        "done_reason": reply.finish if reply.finish in ("length", "load") else "stop",
        "total_duration": 5_000_000,
        "load_duration": 1_000_000,
        "prompt_eval_count": reply.tokens_in,
        "eval_count": reply.tokens_out,
    }


def _pieces(text: str, count: int) -> list[str]:
    step = max(1, -(-len(text) // max(1, count)))
    return [text[at : at + step] for at in range(0, len(text), step)] or [""]


# OpenAI

CHAT_FIELDS = {
    "model",
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "n",
    "stop",
    "stream",
    "stream_options",
    "seed",
    "response_format",
    "reasoning_effort",
    "verbosity",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "user",
    "store",
    "metadata",
    "logprobs",
    "top_logprobs",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "service_tier",
    "modalities",
    "prediction",
    "prompt_cache_key",
    "safety_identifier",
}
OPENAI_FORMATS = "['png', 'jpeg', 'gif', 'webp']"


def check_openai(ai: FakeAI, request: Request) -> Any:
    key = request.headers.get("authorization", "")
    if ai.keys["openai"] is not None:
        if not key.startswith("Bearer ") or not key[7:].strip():
            raise error(
                "openai",
                401,
                "You didn't provide an API key. You need to provide your API key in an "
                "Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
            )
        if key[7:] != ai.keys["openai"]:
            raise _wrong_key("openai", key[7:])
    if request.method == "GET" and request.path.startswith("/v1/models"):
        return _openai_models(ai, request.path)
    if request.path != "/v1/chat/completions":
        raise error("openai", 404, f"Invalid URL ({request.method} {request.path})")
    body = _json_body(
        request, "We could not parse the JSON body of your request.", "you must provide a model parameter"
    )
    request.model = body.get("model") or ""
    if not request.model:
        raise error("openai", 400, "you must provide a model parameter")
    if not ai.name_of("openai", request.model):
        raise _missing_model("openai", request.model)
    _openai_fields(request, body)
    _openai_messages(ai, request, body.get("messages"))
    _openai_format(request, body.get("response_format") or {"type": "text"})
    return None


def _openai_models(ai: FakeAI, path: str) -> Any:
    models = [
        {"id": name, "object": "model", "created": 1754000000, "owned_by": "openai"}
        for name in ai.names("openai")
    ]
    if path == "/v1/models":
        return {"object": "list", "data": models}
    wanted = unquote(path[len("/v1/models/") :])
    found = [model for model in models if model["id"] == wanted]
    if not found:
        raise _missing_model("openai", wanted)
    return found[0]


def _openai_fields(request: Request, body: dict[str, Any]) -> None:
    for name in body:
        if name not in CHAT_FIELDS:
            raise error("openai", 400, f"Unrecognized request argument supplied: {name}")
    if body.get("stream"):
        raise error("openai", 400, "This fake does not stream.", param="stream", code="unsupported_value")
    if re.match(r"gpt-5|o\d", request.model):
        if "max_tokens" in body:
            raise error(
                "openai",
                400,
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                "'max_completion_tokens' instead.",
                param="max_tokens",
                code="unsupported_parameter",
            )
        if body.get("temperature", 1) != 1:
            raise error(
                "openai",
                400,
                f"Unsupported value: 'temperature' does not support {body['temperature']} with this "
                "model. Only the default (1) value is supported.",
                param="temperature",
                code="unsupported_value",
            )


def _openai_messages(ai: FakeAI, request: Request, messages: Any) -> None:
    if messages is None:
        raise error(
            "openai",
            400,
            "Missing required parameter: 'messages'.",
            param="messages",
            code="missing_required_parameter",
        )
    if not isinstance(messages, list) or not messages:
        raise error(
            "openai",
            400,
            "Invalid 'messages': empty array. Expected an array with minimum length 1.",
            param="messages",
            code="empty_array",
        )
    for at, message in enumerate(messages):
        location = f"messages[{at}]"
        role, content = message.get("role"), message.get("content")
        if role not in ("system", "developer", "user", "assistant", "tool"):
            raise error(
                "openai",
                400,
                f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', "
                "and 'developer'.",
                param=f"{location}.role",
                code="invalid_value",
            )
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(parts, list):
            raise error(
                "openai",
                400,
                f"Invalid value for 'content': expected a string, got {json.dumps(content)}.",
                param=f"{location}.content",
            )
        for number, part in enumerate(parts):
            _openai_part(ai, request, part, f"{location}.content[{number}]", role)


def _openai_part(ai: FakeAI, request: Request, part: dict[str, Any], location: str, role: str) -> None:
    kind = part.get("type")
    target = {"system": "system", "developer": "system", "user": "prompt"}.get(role)
    if kind == "text":
        if target:
            setattr(request, target, getattr(request, target) + part.get("text", ""))
        return
    if kind != "image_url":
        raise error(
            "openai",
            400,
            f"Invalid value: '{kind}'. Supported values are: 'text', 'image_url'.",
            param=f"{location}.type",
            code="invalid_value",
        )
    image, location = part.get("image_url"), f"{location}.image_url"
    if not isinstance(image, dict):  # a string in /v1/responses
        raise error(
            "openai",
            400,
            f"Invalid type for '{location}': expected an object, but got a string instead.",
            param=location,
            code="invalid_type",
        )
    url, detail, location = image.get("url"), image.get("detail"), f"{location}.url"
    if not isinstance(url, str):
        raise error(
            "openai",
            400,
            f"Invalid type for '{location}': expected an image URL, but got an object instead.",
            param=location,
            code="invalid_type",
        )
    if detail not in (None, "low", "high", "auto", "original"):
        raise error(
            "openai",
            400,
            f"Invalid value: '{detail}'. Supported values are: 'low', 'high', 'auto', and 'original'.",
            param=location,
            code="invalid_value",
        )
    if not ai.sees(request):
        raise _text_only("openai", request.model)
    request.images.append(_openai_image(url, location))


def _openai_image(url: str, location: str) -> ReceivedImage:
    if url.startswith(("http://", "https://")):
        raise error("openai", 400, f"Failed to download image from {url}.", code="invalid_image_url")
    expected = (
        f"Invalid image URL: '{location}'. Expected a base64-encoded data URL with an image MIME type (e.g. "
        "'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got "
    )
    found = re.fullmatch(r"data:([^;,]*);base64,(.*)", url, re.DOTALL)
    if not found:
        raise error(
            "openai",
            400,
            expected + "a value without the 'data:' prefix.",
            param=location,
            code="invalid_value",
        )
    if not found[1].startswith("image/"):
        raise error(
            "openai",
            400,
            expected + f"unsupported MIME type '{found[1]}'.",
            param=location,
            code="invalid_value",
        )
    data = _decode(found[2])
    if data is None:
        raise error(
            "openai",
            400,
            expected + "invalid base64-encoded bytes.",
            param=location,
            code="invalid_base64_image",
        )
    if len(data) > 20 * MEGABYTE:
        raise error(
            "openai",
            400,
            "You uploaded an unsupported image. Please make sure your image is below 20 MB in size "
            f"and is of one the following formats: {OPENAI_FORMATS}.",
            code="image_file_too_large",
        )
    seen = look(data, found[1])
    if seen.real_type is None or found[1].replace("jpg", "jpeg") != seen.real_type:
        raise error(
            "openai",
            400,
            "You uploaded an unsupported image. Please make sure your image has of one the "
            f"following formats: {OPENAI_FORMATS}.",
            code="invalid_image_format",
        )
    return seen


def _openai_format(request: Request, form: dict[str, Any]) -> None:
    kind, spec = form.get("type"), form.get("json_schema") or {}
    param, name_param = "response_format", "response_format.json_schema.name"
    if kind not in ("text", "json_object", "json_schema"):
        raise error(
            "openai",
            400,
            f"Invalid value: '{kind}'. Supported values are: 'json_object', 'json_schema', and 'text'.",
            param=param,
            code="invalid_value",
        )
    if kind == "json_object" and "json" not in (request.prompt + request.system).lower():
        raise error(
            "openai",
            400,
            "'messages' must contain the word 'json' in some form, to use 'response_format' of "
            "type 'json_object'.",
            param="messages",
        )
    if kind != "json_schema":
        return
    name = spec.get("name")
    if not name:
        raise error(
            "openai",
            400,
            f"Missing required parameter: '{name_param}'.",
            param=name_param,
            code="missing_required_parameter",
        )
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise error(
            "openai",
            400,
            f"Invalid '{name_param}': string does not match pattern. Expected a string that "
            "matches the pattern '^[a-zA-Z0-9_-]+$'.",
            param=name_param,
            code="invalid_value",
        )
    request.schema = spec.get("schema")
    if spec.get("strict"):
        _openai_strict(name, request.schema or {}, param)


def _openai_strict(name: str, schema: dict[str, Any], param: str) -> None:
    start = f"Invalid schema for response_format '{name}': "
    if schema.get("type") != "object":
        raise error(
            "openai",
            400,
            start + f"schema must be a JSON Schema of 'type: \"object\"', got 'type: "
            f'"{schema.get("type")}"\'.',
            param=param,
            code="invalid_json_schema",
        )
    for path, part in _objects(schema):
        where = f"In context={path!r}, "
        if part.get("type") != "object" and "properties" not in part:
            continue
        if part.get("additionalProperties") is not False:
            raise error(
                "openai",
                400,
                start + where + "'additionalProperties' is required to be supplied and to be false.",
                param=param,
                code="invalid_json_schema",
            )
        missing = [key for key in part.get("properties", {}) if key not in part.get("required", [])]
        if missing:
            raise error(
                "openai",
                400,
                start + where + "'required' is required to be supplied and to be an array including "
                f"every key in properties. Missing '{missing[0]}'.",
                param=param,
                code="invalid_json_schema",
            )


def answer_openai(request: Request, reply: Reply) -> Any:
    refused = reply.finish == "refused"
    finish = {"length": "length", "blocked": "content_filter"}.get(reply.finish, "stop")
    message = {
        "role": "assistant",
        "content": None if refused else reply.text,
        "refusal": reply.text if refused else None,
    }
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion",
        "created": 1754000000,
        "model": request.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": reply.tokens_in,
            "completion_tokens": reply.tokens_out,
            "total_tokens": reply.tokens_in + reply.tokens_out,
        },
    }


# Gemini

GEMINI_FIELDS = {
    "contents",
    "systemInstruction",
    "generationConfig",
    "safetySettings",
    "tools",
    "toolConfig",
    "cachedContent",
}
GEMINI_PART_FIELDS = {
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "thought",
    "thoughtSignature",
    "videoMetadata",
    "mediaResolution",
}
GEMINI_CONFIG_FIELDS = {
    "temperature",
    "topP",
    "topK",
    "candidateCount",
    "maxOutputTokens",
    "stopSequences",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "mediaResolution",
    "seed",
    "presencePenalty",
    "frequencyPenalty",
    "responseLogprobs",
    "logprobs",
    "thinkingConfig",
    "responseModalities",
    "speechConfig",
}
GEMINI_SCHEMA_FIELDS = {
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "default",
    "items",
    "minItems",
    "maxItems",
    "enum",
    "properties",
    "propertyOrdering",
    "required",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "anyOf",
}
GEMINI_IMAGES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")


def check_gemini(ai: FakeAI, request: Request) -> Any:
    key = request.headers.get("x-goog-api-key") or "".join(request.query.get("key", []))
    if not key:
        raise error(
            "gemini",
            403,
            "Method doesn't allow unregistered callers (callers without established identity). "
            "Please use API Key or other form of API consumer identity to call this API.",
        )
    if key != ai.keys["gemini"] and ai.keys["gemini"] is not None:
        raise _wrong_key("gemini", key)
    path = unquote(request.path)
    if request.method == "GET" and path.startswith("/v1beta/models"):
        return _gemini_models(ai, path)
    found = re.fullmatch(r"/v1beta/models/(.+):generateContent", path)
    if not found:
        raise error("gemini", 404, "Requested entity was not found.")
    if len(request.raw) > 20 * MEGABYTE:
        raise error("gemini", 400, f"Request payload size exceeds the limit: {20 * MEGABYTE} bytes.")
    body = _json_body(
        request,
        "Invalid JSON payload received. Unexpected token.",
        'Invalid JSON payload received. Unknown name "{": Cannot bind query parameter.',
    )
    request.model = found[1]
    if not ai.name_of("gemini", request.model):
        raise _missing_model("gemini", request.model)
    body = _gemini_names(body, GEMINI_FIELDS, "")
    system = _gemini_names(body.get("systemInstruction") or {}, {"role", "parts"}, "system_instruction")
    request.system = "".join(part.get("text", "") for part in _list(system.get("parts")))
    _gemini_contents(ai, request, body.get("contents"))
    _gemini_config(request, body.get("generationConfig") or {})
    return None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _gemini_names(value: dict[str, Any], known: set[str], where: str) -> dict[str, Any]:
    """The object with camelCase names; Google takes snake_case too, and nothing that it does not know."""
    named = {
        re.sub(r"_([a-z])", lambda found: found[1].upper(), name): (name, part)
        for name, part in value.items()
    }
    for name, (written, _) in named.items():
        if name not in known:
            location = f" at '{where}'" if where else ""
            message = f'Invalid JSON payload received. Unknown name "{written}"{location}: Cannot find field.'
            raise error(
                "gemini",
                400,
                message,
                details=[
                    {
                        "@type": "type.googleapis.com/google.rpc.BadRequest",
                        "fieldViolations": [{"field": where, "description": message}],
                    }
                ],
            )
    return {name: part for name, (_, part) in named.items()}


def _gemini_models(ai: FakeAI, path: str) -> Any:
    models = [
        {
            "name": f"models/{name}",
            "displayName": name,
            "inputTokenLimit": 1048576,
            "outputTokenLimit": 65536,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }
        for name in ai.names("gemini")
    ]
    if path == "/v1beta/models":
        return {"models": models}
    found = [model for model in models if "/v1beta/" + str(model["name"]) == path]
    if not found:
        raise _missing_model("gemini", path[len("/v1beta/models/") :])
    return found[0]


def _gemini_contents(ai: FakeAI, request: Request, contents: Any) -> None:
    if not _list(contents):
        raise error("gemini", 400, "* GenerateContentRequest.contents: contents is not specified\n")
    for at, content in enumerate(_list(contents)):
        content = _gemini_names(content, {"role", "parts"}, f"contents[{at}]")
        if content.get("role", "user") not in ("user", "model"):
            raise error("gemini", 400, "Please use a valid role: user, model.")
        if not _list(content.get("parts")):
            raise error(
                "gemini",
                400,
                f"* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty.\n",
            )
        for number, part in enumerate(_list(content["parts"])):
            location = f"contents[{at}].parts[{number}]"
            part = _gemini_names(part, GEMINI_PART_FIELDS, location)
            if content.get("role", "user") == "user":
                request.prompt += part.get("text", "")
            if "inlineData" in part:
                request.images.append(_gemini_image(part["inlineData"], location))
    if request.images and not ai.sees(request):
        raise _text_only("gemini", request.model)


def _gemini_image(blob: dict[str, Any], location: str) -> ReceivedImage:
    blob = _gemini_names(blob, {"mimeType", "data", "displayName"}, f"{location}.inline_data")
    data = _decode(blob.get("data"))
    if data is None:
        raise error(
            "gemini",
            400,
            f"Invalid value at '{location}.inline_data.data' (TYPE_BYTES), Base64 decoding failed for "
            f'"{str(blob.get("data"))[:40]}"',
        )
    if blob.get("mimeType") not in GEMINI_IMAGES:
        raise error("gemini", 400, f"Unsupported MIME type: {blob.get('mimeType') or ''}")
    seen = look(data, blob["mimeType"])
    if seen.real_type not in GEMINI_IMAGES:
        raise error(
            "gemini",
            400,
            "Unable to process input image. Please retry or report in "
            "https://developers.generativeai.google/guide/troubleshooting",
        )
    return seen


def _gemini_config(request: Request, config: dict[str, Any]) -> None:
    config = _gemini_names(config, GEMINI_CONFIG_FIELDS, "generation_config")
    schema, json_schema = config.get("responseSchema"), config.get("responseJsonSchema")
    if schema and json_schema:
        raise error("gemini", 400, "Only one of response_schema and response_json_schema can be set.")
    request.schema = schema or json_schema
    if request.schema and config.get("responseMimeType") != "application/json":
        raise error("gemini", 400, "response_schema is set, but response_mime_type is not application/json.")
    level = config.get("mediaResolution", "MEDIA_RESOLUTION_LOW")
    if level not in [f"MEDIA_RESOLUTION_{name}" for name in ("UNSPECIFIED", "LOW", "MEDIUM", "HIGH")]:
        raise error(
            "gemini",
            400,
            f"Invalid value at 'generation_config.media_resolution' "
            f'(type.googleapis.com/google.ai.generativelanguage.v1beta.MediaResolution), "{level}"',
        )
    for path, part in _objects(schema):
        where = ".".join(("generation_config.response_schema", *path))
        _gemini_names(dict.fromkeys(part, 0), GEMINI_SCHEMA_FIELDS, where)
        kind = part.get("type", "STRING")
        if not isinstance(kind, str):
            raise error(
                "gemini",
                400,
                f"Invalid value at '{where}.type': Proto field is not repeating, cannot start list.",
            )
        if kind.upper() not in ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"):
            raise error(
                "gemini",
                400,
                f"Invalid value at '{where}.type' "
                f'(type.googleapis.com/google.ai.generativelanguage.v1beta.Type), "{kind}"',
            )


def answer_gemini(request: Request, reply: Reply) -> Any:
    usage = {
        "promptTokenCount": reply.tokens_in,
        "candidatesTokenCount": reply.tokens_out,
        "totalTokenCount": reply.tokens_in + reply.tokens_out,
    }
    body = {"usageMetadata": usage, "modelVersion": request.model, "responseId": "fake"}
    if reply.finish == "blocked":
        return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **body}
    finish = {"length": "MAX_TOKENS", "refused": "SAFETY"}.get(reply.finish, "STOP")
    parts: list[dict[str, Any]] = [{"text": reply.thinking, "thought": True}] if reply.thinking else []
    if reply.text and finish != "SAFETY":
        parts += [{"text": text} for text in _pieces(reply.text, reply.pieces)]
    content = {
        "role": "model",
        **({"parts": parts} if parts else {}),
    }  # an empty answer has no "parts" at all
    return {"candidates": [{"content": content, "finishReason": finish, "index": 0}], **body}


# Anthropic

ANTHROPIC_FIELDS = {
    "model",
    "messages",
    "max_tokens",
    "system",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "stream",
    "metadata",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "service_tier",
    "container",
    "context_management",
    "cache_control",
}
ANTHROPIC_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
NO_SAMPLING = ("claude-opus-4-7", "claude-opus-4-8", "claude-opus-5", "claude-sonnet-5", "claude-fable-5")
NO_PREFILL = (*NO_SAMPLING, "claude-opus-4-6", "claude-sonnet-4-6")
UNSUPPORTED = {
    "number": ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"),
    "string": ("maxLength", "minLength"),
    "array": ("maxItems", "uniqueItems"),
}


def check_anthropic(ai: FakeAI, request: Request) -> Any:
    key = request.headers.get("x-api-key", "")
    if ai.keys["anthropic"] is not None and key != ai.keys["anthropic"]:
        raise error("anthropic", 401, "invalid x-api-key" if key else "x-api-key header is required")
    if "anthropic-version" not in request.headers:
        raise error("anthropic", 400, "anthropic-version: header is required")
    if request.headers["anthropic-version"] != "2023-06-01":
        raise error(
            "anthropic",
            400,
            f'anthropic-version: "{request.headers["anthropic-version"]}" is not a valid version',
        )
    if request.method == "GET" and request.path == "/v1/models":
        models = [
            {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"}
            for name in ai.names("anthropic")
        ]
        return {
            "data": models,
            "has_more": False,
            "first_id": models[0]["id"] if models else None,
            "last_id": models[-1]["id"] if models else None,
        }
    if request.path != "/v1/messages":
        raise error("anthropic", 404, "Not Found")
    if len(request.raw) > 32 * MEGABYTE:
        raise error("anthropic", 413, "Request exceeds the maximum size")
    body = _json_body(
        request, "The request body is not valid JSON", "Content-Type must be application/json", 415
    )
    _anthropic_fields(ai, request, body)
    _anthropic_messages(request, body["messages"])
    if request.images and not ai.sees(request):
        raise _text_only("anthropic", request.model)
    _anthropic_output(request, body.get("output_config") or {})
    return None


def _anthropic_fields(ai: FakeAI, request: Request, body: dict[str, Any]) -> None:
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            raise error("anthropic", 400, f"{name}: Field required")
    for name in body:
        if name not in ANTHROPIC_FIELDS:
            raise error("anthropic", 400, f"{name}: Extra inputs are not permitted")
    if not isinstance(body["max_tokens"], int) or body["max_tokens"] < 1:
        raise error("anthropic", 400, "max_tokens: Input should be greater than or equal to 1")
    request.model = body["model"]
    if not ai.name_of("anthropic", request.model):
        raise _missing_model("anthropic", request.model)
    if body.get("stream"):
        raise error("anthropic", 400, "stream: this fake does not stream")
    system = body.get("system") or ""
    request.system = system if isinstance(system, str) else "".join(block.get("text", "") for block in system)
    for name in ("temperature", "top_p", "top_k"):
        if name in body and body[name] != 1 and request.model.startswith(NO_SAMPLING):
            raise error("anthropic", 400, f"`{name}` is deprecated for this model.")
    if not 0 <= body.get("temperature", 1) <= 1:
        raise error("anthropic", 400, "temperature: range: 0..1")
    if not isinstance(body["messages"], list) or not body["messages"]:
        raise error("anthropic", 400, "messages: at least one message is required")
    if body["messages"][-1].get("role") == "assistant" and request.model.startswith(NO_PREFILL):
        raise error(
            "anthropic",
            400,
            "This model does not support assistant message prefill. The conversation must end "
            "with a user message.",
        )


def _anthropic_messages(request: Request, messages: list[Any]) -> None:
    for at, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant"):
            raise error(
                "anthropic",
                400,
                f'messages: Unexpected role "{role}". The Messages API accepts a top-level '
                '`system` parameter, not "system" as an input message role.',
            )
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        for number, block in enumerate(blocks):
            location = f"messages.{at}.content.{number}"
            if block.get("type") == "text":
                if not block.get("text"):
                    raise error("anthropic", 400, "messages: text content blocks must be non-empty")
                request.prompt += block["text"] if role == "user" else ""
            elif block.get("type") == "image":
                request.images.append(_anthropic_image(block.get("source") or {}, location))
            else:
                raise error(
                    "anthropic",
                    400,
                    f"{location}: Input tag '{block.get('type')}' found using 'type' does not match "
                    "any of the expected tags: 'image', 'text'",
                )
    most = 2000 if len(request.images) > 20 else 8000
    for seen in request.images:
        if max(seen.width, seen.height) > most:
            many = " for many-image requests" if most == 2000 else ""
            raise error(
                "anthropic",
                400,
                "messages.0.content.0.image.source.base64.data: At least one of the image "
                f"dimensions exceed max allowed size{many}: {most} pixels",
            )


def _anthropic_image(source: dict[str, Any], location: str) -> ReceivedImage:
    location = f"{location}.image.source.base64"
    if source.get("type") != "base64":
        raise error(
            "anthropic",
            400,
            f"{location[:-7]}: Input tag '{source.get('type')}' found using 'type' does not match "
            "any of the expected tags: 'base64', 'file', 'url'",
        )
    if source.get("media_type") not in ANTHROPIC_IMAGES:
        raise error(
            "anthropic",
            400,
            f"{location}.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
        )
    data = _decode(source.get("data"))
    if data is None:
        raise error("anthropic", 400, f"{location}.data: Invalid base64 data")
    if len(source["data"]) > 5 * MEGABYTE:  # measured on the base64 text, not on the image
        raise error(
            "anthropic",
            400,
            f"{location}: image exceeds 5 MB maximum: {len(source['data'])} bytes > {5 * MEGABYTE} bytes",
        )
    seen = look(data, source["media_type"])
    if seen.real_type is None:
        raise error("anthropic", 400, "Could not process image")
    if seen.real_type != seen.declared_type:
        raise error(
            "anthropic",
            400,
            f"{location}: The image was specified using the {seen.declared_type} media type, but "
            f"the image appears to be a {seen.real_type} image",
        )
    return seen


def _anthropic_output(request: Request, config: dict[str, Any]) -> None:
    for name in config:
        if name not in ("format", "effort"):
            raise error("anthropic", 400, f"output_config.{name}: Extra inputs are not permitted")
    if config.get("effort", "high") not in ("low", "medium", "high", "xhigh", "max"):
        raise error(
            "anthropic",
            400,
            "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'",
        )
    form = config.get("format")
    if form is None:
        return
    for name in form:
        if name not in ("type", "schema"):
            raise error("anthropic", 400, f"output_config.format.{name}: Extra inputs are not permitted")
    if form.get("type") != "json_schema" or not isinstance(form.get("schema"), dict):
        raise error("anthropic", 400, "output_config.format.schema: Field required")
    request.schema = form["schema"]
    for _, part in _objects(form["schema"]):
        kind = part.get("type")
        start = f"output_config.format.schema: For '{kind}' type, "
        if kind == "object" and part.get("additionalProperties") is not False:
            raise error("anthropic", 400, start + "'additionalProperties' must be explicitly set to false")
        banned = UNSUPPORTED.get("number" if kind == "integer" else str(kind), ())
        found = [name for name in banned if name in part] + (
            ["minItems"] if part.get("minItems", 0) > 1 else []
        )
        if found:
            raise error("anthropic", 400, start + f"properties {', '.join(found)} are not supported")


def answer_anthropic(request: Request, reply: Reply) -> Any:
    reason = {"length": "max_tokens", "refused": "refusal", "blocked": "refusal"}.get(
        reply.finish, "end_turn"
    )
    content: list[dict[str, Any]] = []
    if reply.thinking:
        content.append({"type": "thinking", "thinking": reply.thinking, "signature": "fake"})
    if reply.text and reason != "refusal":
        content += [{"type": "text", "text": text} for text in _pieces(reply.text, reply.pieces)]
    return {
        "id": "msg_fake",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": reply.tokens_in, "output_tokens": reply.tokens_out},
    }


CHECKS = {
    "ollama": check_ollama,
    "openai": check_openai,
    "gemini": check_gemini,
    "anthropic": check_anthropic,
}
ANSWERS = {
    "ollama": answer_ollama,
    "openai": answer_openai,
    "gemini": answer_gemini,
    "anthropic": answer_anthropic,
}

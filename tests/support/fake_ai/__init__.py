"""One HTTP server that speaks Ollama, OpenAI, Gemini and Anthropic, and is as strict as they are.

    with FakeAI() as ai:
        ai.brain = script(["a window", {"action": "done"}])
        run(command, env={**os.environ, **ai.env("openai", "gpt-5.4-mini")})
        assert ai.requests[-1].images[0].real_type == "image/png"

A request that the vendor would refuse is refused with the vendor's own message, before any failure that a
test has ordered with `fail_with`.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any, Optional, Union
from urllib.parse import parse_qs, urlsplit

from . import anthropic, gemini, ollama, openai
from .brains import CONVENTIONS, Brain, Reply, Request, example_of, pointer, script, see
from .images import MEGABYTE, picture, read_image
from .loopback import Call, LoopbackServer, Refusal
from .refusals import error, missing_model, overloaded, rate_limited, text_only, wrong_key

__all__ = [
    "CONVENTIONS", "FAILURES", "MEGABYTE", "MODELS", "FakeAI", "Reply", "Request", "example_of", "http_date",
    "picture", "pointer", "read_image", "script",
]  # fmt: skip

VENDORS = {"ollama": ollama, "openai": openai, "gemini": gemini, "anthropic": anthropic}
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
# kind -> the text of a model's reply, and how it ends
_SPOILT_REPLIES = {
    "truncated": ('{"action": "click", "x": 1', "length"),
    "refused": ("I cannot help with that.", "refused"),
    "blocked": ("", "blocked"),
    "empty": ("", "stop"),
}
_REFUSED = ("wrong_key", "missing_model", "text_only_model", "rate_limited", "server_error", "overloaded")
_BROKEN = (
    "malformed_json", "not_json_content_type", "stalled", "slow_drip", "connection_reset", "redirect", "huge"
)  # fmt: skip
FAILURES = (*_REFUSED, *_SPOILT_REPLIES, *_BROKEN)


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


def http_date(seconds_from_now: float) -> str:
    """A Retry-After value of the second kind."""
    return formatdate(time.time() + seconds_from_now, usegmt=True)


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

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def redirect_url(self) -> str:
        """The same kind of server under another host name, which is another origin."""
        return self._redirected.url.replace("127.0.0.1", "localhost")

    def env(self, provider: str, model: str) -> dict[str, str]:
        """The variables that make `provider/model` the only provider, with its key and every base URL."""
        variables = {
            "PEEKABOO_AI_PROVIDERS": f"{provider}/{model}",
            "PEEKABOO_OLLAMA_BASE_URL": self.url,
            "OPENAI_BASE_URL": self.url + "/v1",
            "GEMINI_BASE_URL": self.url,
            "ANTHROPIC_BASE_URL": self.url,
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
        text: instead of the failure's own.
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
        return [request for request in self.requests if request.is_question]

    # answering

    def _answer(self, call: Call) -> None:
        request = _read(call)
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        try:
            if not request.vendor:
                raise Refusal(404, {"detail": "Not Found"}, "Not Found")
            listing = VENDORS[request.vendor].check(self, request)
            failure = self._next_failure(request)
            if failure and failure.kind in _REFUSED:
                raise _refusal(request, failure)
            if failure and failure.kind == "blocked" and request.vendor == "anthropic":
                raise error("anthropic", 400, failure.text or "Output blocked by content filtering policy")
            if failure and failure.kind in _SPOILT_REPLIES:
                text, finish = _SPOILT_REPLIES[failure.kind]
                listing = self._reply(request, Reply(failure.text or text, finish=finish))
            if failure and failure.kind in _BROKEN:
                self._break(call, request, failure, listing)
            else:
                self._send(call, request, listing or self._think(request))
        except Refusal as refusal:
            in_list = request.vendor == "gemini" and self.gemini_errors_in_list
            request.status, request.refusal = refusal.status, refusal.message
            call.send(refusal.status, [refusal.body] if in_list else refusal.body, refusal.headers)
        except (ConnectionError, TimeoutError):
            pass  # the client left
        except (
            Exception
        ) as crash:  # a brain that raises is a failed test, which the client must not retry away
            self._server.crashes.append(crash)
            request.status, request.refusal = 400, f"the test's brain failed: {crash}"
            call.send(400, error(request.vendor, 400, request.refusal).body)

    def _answer_redirected(self, call: Call) -> None:
        request = _read(call)
        self.redirected.append(request)
        call.send(200, self._reply(request, Reply("I am another server.")) if request.vendor else {})

    def _next_failure(self, request: Request) -> Optional[Failure]:
        with self._changed:
            for failure in self._failures:
                if failure.path in request.path if failure.path else request.is_question:
                    if failure.times is not None:
                        failure.times -= 1
                        if failure.times <= 0:
                            self._failures.remove(failure)
                    return failure
        return None

    def _think(self, request: Request) -> Any:
        reply = self.brain(request)
        is_blind = self.blind_text_models and request.vendor == "ollama" and request.images
        if is_blind and not self.sees(request):
            reply = "Please provide the image you would like me to look at."
        text = json.dumps(reply) if isinstance(reply, dict) else reply
        return self._reply(request, Reply(text) if isinstance(text, str) else text)

    def _reply(self, request: Request, reply: Reply) -> Any:
        return VENDORS[request.vendor].answer(request, reply)

    def _send(self, call: Call, request: Request, body: Any) -> None:
        request.status = 200
        call.send(200, body)

    def _break(self, call: Call, request: Request, failure: Failure, listing: Any) -> None:
        """Answer with something that is not this vendor's answer, or not in time."""
        kind, is_json = failure.kind, {"Content-Type": "application/json"}
        request.status = 200
        if kind == "redirect":
            request.status = failure.status or 302
            call.send(request.status, b"", {"Location": self.redirect_url + call.path})
        elif kind == "malformed_json":
            call.send(200, (failure.text or '{"choices": [{"message": {"content": "I se').encode())
        elif kind == "not_json_content_type":
            page = failure.text or "<html><body>Please sign in to the hotel's network.</body></html>"
            call.send(200, page.encode(), {"Content-Type": "text/html"})
        elif kind == "connection_reset":
            data = json.dumps(self._reply(request, Reply("This answer is never finished."))).encode()
            call.head(200, {**is_json, "Content-Length": str(len(data))})
            call.wfile.write(data[: len(data) // 2])
            call.reset()
        elif kind == "stalled":
            request.status = 0
            if not self._server.closing.wait(failure.seconds):
                self._send(call, request, listing or self._think(request))
        elif kind == "slow_drip":
            data = json.dumps(listing or self._think(request)).encode()
            call.head(200, {**is_json, "Content-Length": str(len(data))})
            for at in range(len(data)):
                if self._server.closing.wait(failure.seconds / len(data)):
                    return
                call.wfile.write(data[at : at + 1])
        else:
            self._flood(call, request, failure.size_bytes)

    def _flood(self, call: Call, request: Request, size_bytes: int) -> None:
        """A whole and right answer of this size, whose length is not announced."""
        start, end = json.dumps(self._reply(request, Reply("@@@"))).encode().split(b"@@@")
        call.head(200, {"Content-Type": "application/json"})
        call.wfile.write(start)
        sent = 0
        while sent < size_bytes and not self._server.closing.is_set():
            sent += call.wfile.write(b"x" * 65536)
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


def _read(call: Call) -> Request:
    parts = urlsplit(call.path)
    headers = {name.lower(): value for name, value in call.headers.items()}
    vendor = _vendor_of(parts.path, headers)
    request = Request(vendor, call.command, parts.path, parse_qs(parts.query), headers, call.raw)
    try:
        request.body = json.loads(call.raw) if call.raw else None
    except ValueError:
        request.body = None
    return request


def _vendor_of(path: str, headers: dict[str, str]) -> str:
    if path == "/" or path.startswith("/api/"):
        return "ollama"
    if path.startswith("/v1beta/"):
        return "gemini"
    if path.startswith("/v1/messages") or "anthropic-version" in headers or "x-api-key" in headers:
        return "anthropic"
    return "openai" if path.startswith("/v1/") else ""


def _refusal(request: Request, failure: Failure) -> Refusal:
    """The HTTP error that this failure is."""
    kind, vendor = failure.kind, request.vendor
    if kind == "wrong_key":
        return wrong_key(vendor, "fake-revoked-key")
    if kind == "missing_model":
        return missing_model(vendor, request.model)
    if kind == "text_only_model":
        return text_only(vendor, request.model)
    usual = error(vendor, 500, "An internal error occurred.")
    if kind != "server_error":
        usual = rate_limited(vendor) if kind == "rate_limited" else overloaded(vendor)
    details = []
    if vendor == "gemini" and isinstance(failure.retry_after, (int, float)):
        delay = f"{failure.retry_after}s"
        details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]
    code = "rate_limit_exceeded" if kind == "rate_limited" else None
    text = failure.text or usual.message
    refusal = error(vendor, failure.status or usual.status, text, code=code, details=details)
    if failure.retry_after is not None:
        refusal.headers["Retry-After"] = str(failure.retry_after)
    return refusal

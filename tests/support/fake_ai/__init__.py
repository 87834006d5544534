"""One HTTP server that speaks Ollama, OpenAI, Gemini and Anthropic.

    with FakeAI() as ai:
        ai.brain = script(["a window", {"action": "done"}])
        run(command, env={**os.environ, **ai.env("openai", "gpt-5.4-mini")})
        assert ai.requests[-1].images[0].real_type == "image/png"

A wrong key, path, model or image is refused with the vendor's own message, before any failure that a test has
ordered with `fail_with`. test_vision.py compares whole requests with the vendors' documents.
"""

from __future__ import annotations

import base64
import json
import re
import socket
import threading
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any, NamedTuple, Optional
from urllib.parse import parse_qs, unquote, urlsplit

from .brains import Brain, Reply, Request, example_of, pointer, script, see
from .images import picture, read_image
from .loopback import Call, LoopbackServer, Refusal
from .vendors import OLLAMA, VENDORS

__all__ = ["MODELS", "FakeAI", "Reply", "Request", "example_of", "picture", "pointer", "script"]

_ROUTES = {"/api/": "ollama", "/v1beta/": "gemini", "/v1/messages": "anthropic", "/v1/": "openai"}
KEY_VARIABLES = {"openai": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_SEEING = (
    "ollama/qwen3-vl:8b ollama/llava:latest ollama/hf.co/someone/vision:q4 openai/gpt-5.4-mini "
    "openai/gpt-5.5 openai/gpt-4o gemini/gemini-3.6-flash anthropic/claude-sonnet-5"
)
_BLIND = "ollama/llama3.2:3b openai/gpt-3.5-turbo gemini/gemma-3-1b-it anthropic/claude-text-only"
MODELS = {**dict.fromkeys(_SEEING.split(), True), **dict.fromkeys(_BLIND.split(), False)}
"""The default models as PROVIDER/MODEL, and whether each takes images."""
# kind -> the text of a model's reply, and how it ends
_SPOILT_REPLIES = {
    "truncated": ('{"action": "click", "x": 1', "length"),
    "refused": ("I cannot help with that.", "refused"),
    "blocked": ("", "blocked"),
    "empty": ("", "stop"),
}
_BROKEN = ("malformed_json", "stalled", "slow_drip", "connection_reset", "redirect", "huge")
_FAILURES = (*OLLAMA.kinds, *_SPOILT_REPLIES, *_BROKEN)
_HUGE_BYTES = 17_000_000


class Failure(NamedTuple):
    kind: str
    retry_after: Optional[float]  # seconds, where the vendor has them: in a header, Gemini in its error
    status: Optional[int]  # None: the failure's own
    text: str  # empty: the failure's own


class FakeAI:
    """The four vendors. `models` maps "vendor/model" to whether it takes images.

    keys: OpenAI's may be None, for a compatible server that asks for none.
    """

    def __init__(self, models: Optional[dict[str, bool]] = None, brain: Brain = see) -> None:
        self.models = dict(MODELS if models is None else models)
        self.brain = brain
        self.keys: dict[str, Optional[str]] = {
            vendor: f"fake-{vendor}-key-0123456789" for vendor in KEY_VARIABLES
        }
        self.requests: list[Request] = []
        self.gemini_errors_in_list = False  # Gemini wraps its error in a one-element list on some routes
        self._failures: Iterator[Failure] = iter(())
        self._lock = threading.Lock()
        self._held: list[socket.socket] = []

    def __enter__(self) -> FakeAI:
        self._server = LoopbackServer(self._answer)
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self._server.close()
        for held in self._held:
            held.close()
        if kind is None and self._server.crashes:
            raise self._server.crashes[0]

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def redirect_url(self) -> str:
        """Return the target of `redirect`: another host name, which is another origin."""
        return self.url.replace("127.0.0.1", "localhost")

    @property
    def redirected(self) -> list[Request]:
        """Return the requests that followed a redirect."""
        return [request for request in self.requests if request.headers["host"].startswith("localhost")]

    def env(self, provider: str, model: str) -> dict[str, str]:
        """Return the variables that make `provider/model` the only provider, with its key and all URLs."""
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
        """Return a port that refuses connections until this FakeAI closes."""
        held = socket.socket()  # bound and not listening: connecting is refused, and the port stays ours
        held.bind(("127.0.0.1", 0))
        self._held.append(held)
        return int(held.getsockname()[1])

    def fail_with(
        self,
        kind: str,
        times: Optional[int] = 1,
        *,
        retry_after: Optional[float] = None,
        status: Optional[int] = None,
        text: str = "",
    ) -> None:
        """Answer the next `times` valid questions (None: all) with one of _FAILURES; calls queue up."""
        assert kind in _FAILURES, f"no failure {kind!r}; there are {', '.join(_FAILURES)}"
        failure = Failure(kind, retry_after, status, text)
        self._failures = chain(self._failures, repeat(failure) if times is None else repeat(failure, times))

    def heal(self) -> None:
        """Remove every ordered failure."""
        self._failures = iter(())

    @property
    def questions(self) -> list[Request]:
        """Return the requests that asked a model, without requests for lists and descriptions of models."""
        return [request for request in self.requests if request.is_question]

    # answering

    def _answer(self, call: Call) -> None:
        request = _read(call)
        self.requests.append(request)
        try:
            if not request.vendor:
                raise Refusal(404, {"detail": "Not Found"}, "Not Found")
            vendor = VENDORS[request.vendor]
            answer = self._check(request)
            with self._lock:
                failure = next(self._failures, None) if request.is_question else None
            if failure and failure.kind in vendor.kinds:
                raise _refusal(request, failure)
            if failure and failure.kind == "blocked" and request.vendor == "anthropic":
                raise vendor.refusal("Output blocked by content filtering policy")
            if failure and failure.kind in _SPOILT_REPLIES:
                text, finish = _SPOILT_REPLIES[failure.kind]
                answer = self._reply(request, Reply(failure.text or text, finish=finish))
            if failure and failure.kind in _BROKEN:
                self._break(call, request, failure)
            else:
                call.send(200, answer or self._think(request))
        except Refusal as refusal:
            in_list = request.vendor == "gemini" and self.gemini_errors_in_list
            request.refusal = refusal.message
            call.send(refusal.status, [refusal.body] if in_list else refusal.body, refusal.headers)
        except (ConnectionError, TimeoutError):
            pass  # the client left
        except Exception as crash:  # a failed test, which the client must not retry away
            self._server.crashes.append(crash)
            call.send(400, {"error": f"the test's brain or the request is wrong: {crash!r}"})

    def _check(self, request: Request) -> Any:
        """Validate a request; return the answer if it asks no model. Raises Refusal like the vendor."""
        vendor, key = VENDORS[request.vendor], self.keys.get(request.vendor)
        for name, value in vendor.headers.items():
            is_key = "{key}" in value
            if (key or not is_key) and request.headers.get(name) != value.format(key=key):
                raise vendor.of("wrong_key") if is_key else vendor.refusal(f"{name} is not {value}")
        path = re.fullmatch(vendor.path, unquote(request.path))
        if not path:
            raise vendor.refusal("Not Found", 404)
        # urllib's default is form-urlencoded
        if not request.headers.get("content-type", "").startswith("application/json"):
            raise vendor.refusal("Content-Type must be application/json", 415)
        request.model = path[1] if path.re.groups else str(request.body.get("model", ""))
        name_here = self._name_of(request)
        if name_here is None:
            raise vendor.of("missing_model", request.model)
        sees = self.models[name_here]
        if not request.is_question:
            return {"model_info": {}, "capabilities": ["completion", *(["vision"] if sees else [])]}
        for text, declared_type in vendor.read(request, request.body):
            seen = read_image(base64.b64decode(text, validate=True), declared_type)
            if seen.real_type is None or declared_type not in (None, seen.real_type):
                raise vendor.refusal(f"Could not process the image, which is no {declared_type or 'image'}.")
            request.images.append(seen)
        if request.images and not sees:
            raise vendor.of("text_only_model", request.model)
        return None

    def _name_of(self, request: Request) -> Optional[str]:
        """Return the key in `models`; Ollama adds :latest and ignores case."""
        wanted = f"{request.vendor}/{request.model}"
        if request.vendor != "ollama":
            return wanted if wanted in self.models else None
        wanted = (wanted if ":" in request.model else wanted + ":latest").lower()
        return next((name for name in self.models if name.lower() == wanted), None)

    def _think(self, request: Request) -> Any:
        reply = self.brain(request)
        text = json.dumps(reply) if isinstance(reply, dict) else reply
        return self._reply(request, Reply(text) if isinstance(text, str) else text)

    def _reply(self, request: Request, reply: Reply) -> Any:
        return VENDORS[request.vendor].answer(request, reply)

    def _break(self, call: Call, request: Request, failure: Failure) -> None:
        """Answer with something that is not this vendor's answer, or not in time."""
        kind, is_json = failure.kind, {"Content-Type": "application/json"}
        if kind == "redirect":
            call.send(302, b"", {"Location": self.redirect_url + call.path})
        elif kind == "malformed_json":
            text = failure.text or '{"choices": [{"message": {"content": "I se'
            call.send(failure.status or 200, text.encode("latin-1"))  # as old proxies do
        elif kind == "connection_reset":
            data = json.dumps(self._reply(request, Reply("This answer is never finished."))).encode()
            call.head(200, {**is_json, "Content-Length": str(len(data))})
            call.wfile.write(data[: len(data) // 2])
            call.reset()
        elif kind == "stalled":
            self._server.closing.wait(600)
        elif kind == "slow_drip":
            data = json.dumps(self._think(request)).encode()
            call.head(200, {**is_json, "Content-Length": str(len(data))})
            for at in range(len(data)):
                if self._server.closing.wait(30.0 / len(data)):
                    return
                call.wfile.write(data[at : at + 1])
        else:  # huge, without a content length
            call.head(200, is_json)
            call.wfile.write(json.dumps(self._reply(request, Reply("x" * _HUGE_BYTES))).encode())


def _read(call: Call) -> Request:
    parts = urlsplit(call.path)
    headers = {name.lower(): value for name, value in call.headers.items()}
    vendor = next((each for prefix, each in _ROUTES.items() if parts.path.startswith(prefix)), "")
    request = Request(vendor, parts.path, parse_qs(parts.query), headers, call.raw)
    try:
        request.body = json.loads(call.raw) if call.raw else None
    except ValueError:
        request.body = None
    return request


def _refusal(request: Request, failure: Failure) -> Refusal:
    """Return the HTTP error of this failure."""
    after = failure.retry_after
    refusal = VENDORS[request.vendor].of(failure.kind, request.model, failure.text, failure.status)
    if after is not None and request.vendor == "gemini":
        delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{after}s"}
        refusal.body["error"]["details"] = [delay]
    elif after is not None:
        refusal.headers["Retry-After"] = str(after)
    return refusal

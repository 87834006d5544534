"""Models that lie: answers of an endpoint that are wrong in every way, and replies that are no actions."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any, Optional

from fake_ai.brains import Reply as ModelReply
from fake_ai.brains import Request
from fake_ai.loopback import Call, LoopbackServer
from fake_ai.vendors import VENDORS
from worlds import PATIENCE_S

from peekaboo_min.agents.actions import read_action
from peekaboo_min.ai.grid import PIXELS, grid_over
from peekaboo_min.core.errors import PeekabooError

from .rpc import GONE, HUNG, Client, Reply
from .stage import Stage
from .tally import Tally
from .wire import NOT_FINITE, ODD_NUMBERS, ODD_TEXTS, odd

KEY = "sk-secret-of-the-trial"
_ADDRESSES = (
    *("http://[bad", "file:///etc/passwd", "//", "", "ftp://x/", "http://127.0.0.1:1/", "javascript:x"),
)
_STATUSES = (
    *("400 Bad", "401 No", "403 No", "404 No", "413 Large", "418 Teapot", "204 Nothing", "999 What"),
    *("0 x", "abc x"),
)
_BODIES = (*("", "null", "[]", "<html>", "\xff\xfe", "[" * 100_000, "1" * 6000, f'"{"x" * 2_000_000}"'),)
_NO_HTTP = (
    *(b"", b"\r\n\r\n", b"HTTP/9.9 200\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n"),
    bytes(range(99)),
)
_TOKENS = 987_654


class _Liar:
    """Answers every request with the bytes that it was given, whatever they are."""

    answer = b""
    lingers = False

    def send(self, call: Call) -> None:
        with suppress(OSError):
            call.wfile.write(self.answer)
            if self.lingers:
                call.connection.settimeout(5)
                call.connection.recv(1)


def lie_to_models(on: Stage, rng: random.Random, trials: int, kind: Optional[str] = None) -> None:
    """Answers of a model's endpoint that are wrong in every way; `analyze` says so, and the server lives."""
    picture = str(on.folder / "picture.png")
    subprocess.run(["convert", "-size", "64x48", "xc:red", picture], check=True, timeout=PATIENCE_S)
    liar = _Liar()
    with closing(LoopbackServer(liar.send)) as server:
        clients: dict[str, Client] = {}
        for _ in range(trials):
            vendor = kind or rng.choice([*VENDORS])
            if vendor not in clients:
                prefix = {"ollama": "PEEKABOO_OLLAMA"}.get(vendor, vendor.upper())
                own = {f"{prefix}_BASE_URL": server.url, f"{prefix}_API_KEY": KEY}
                common = {"PEEKABOO_AI_TIMEOUT": "1", "PEEKABOO_LOG_LEVEL": "debug"}
                clients[vendor] = on.client(PEEKABOO_AI_PROVIDERS=f"{vendor}/model", **own, **common)
            liar.answer, liar.lingers = _lie(rng, vendor), rng.random() < 0.02
            reply = clients[vendor].call("analyze", 30, image_path=picture, question="what is this?")
            on.tally.count("trials")
            judge_analysis(on.tally, f"{vendor}: {liar.answer[:40]!r}...{liar.answer[-60:]!r}", reply)
            if reply.code in (HUNG, GONE):
                del clients[vendor]
    for log in (on.folder / "log", *on.folder.glob("tmp/**/*.log")):
        judge_log(on.tally, log.read_bytes() if log.is_file() else b"")


def judge_analysis(tally: Tally, what: str, reply: Reply) -> None:
    if tally.has_failed(what, reply):
        return
    tally.count("" if reply.code else "acted")
    said = f"reported as {reply.code or 'a success'}"
    if KEY in reply.text:
        tally.count("wrong", f"{what}: the key stands in the answer, {said}")
    if any(ord(character) < 32 and character not in "\n\t" for character in reply.text):
        tally.count("wrong", f"{what}: control characters in the answer, {said}")


def judge_log(tally: Tally, log: bytes) -> None:
    if KEY.encode() in log:
        tally.count("wrong", "the key stands in the log")


def _lie(rng: random.Random, vendor: str) -> bytes:
    text: Any = rng.choice((*ODD_TEXTS, "a window", None, 7, [], {}))
    tokens: Any = rng.choice((3, *ODD_NUMBERS, *NOT_FINITE, "x", None, []))
    said = ModelReply("@", _TOKENS, _TOKENS)
    right = VENDORS[vendor].answer(Request(vendor, "POST", "", {}, {}, b""), said)
    answer = json.dumps(right).replace('"@"', json.dumps(text)).replace(str(_TOKENS), json.dumps(tokens))
    key = KEY if vendor != "ollama" else ""  # it has none, and could not know that this is one
    refusal = json.dumps({"error": {"message": f"wrong key {key} \x1b[31m\ud800"}})
    chunk = f"{rng.choice(('-1', 'ffffffffffffffffffff', 'zz', '5;x', ''))}\r\nhello\r\n0\r\n\r\n"
    length = rng.choice(("-1", "99999999999999999999", "x", "1", "5, 6"))
    moved = rng.choice(("301 Moved", "302 Found", "307 Found"))
    return rng.choice(
        (
            _http(answer),
            _http(json.dumps(_mutated(rng, json.loads(answer)))),
            _http(answer[: rng.randint(0, len(answer))]),
            _http(rng.choice(_BODIES)),
            _http(rng.choice((answer, refusal, "\x1b[2J" * 100, "")), status=rng.choice(_STATUSES)),
            _http(answer, f"Location: {rng.choice(_ADDRESSES)}", status=moved),
            _http(chunk, "Transfer-Encoding: chunked"),
            _http(answer, f"Content-Length: {length}"),
            rng.choice(_NO_HTTP),
        )
    )


def _http(body: str, *headers: str, status: str = "200 OK") -> bytes:
    data = body.encode("latin-1")
    own = () if "Length" in str(headers) or "Encoding" in str(headers) else (f"Content-Length: {len(data)}",)
    lines = (f"HTTP/1.1 {status}", "Content-Type: application/json", *headers, *own, "Connection: close")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def _mutated(rng: random.Random, value: Any) -> Any:
    """The same shape with one part replaced by something odd."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        name = rng.choice(sorted(value))
        return {**value, name: _mutated(rng, value[name])}
    if isinstance(value, list) and value and rng.random() < 0.7:
        return [_mutated(rng, value[0]), *value[1:]]
    return odd(rng)


def read_lies(on: Stage, rng: random.Random, trials: int, _kind: Optional[str] = None) -> None:
    """Replies of a model to the agent: an action, or an expected error; nothing else."""
    for _ in range(trials):
        on.tally.count("trials")
        judge_action(on.tally, _action_text(rng), lambda text: read_action(text, grid_over(PIXELS, 640, 480)))


def judge_action(tally: Tally, text: str, read: Callable[[str], Any]) -> None:
    try:
        read(text)
        tally.count("acted")
    except (PeekabooError, ValueError):
        pass
    except BaseException as e:
        tally.count("tracebacks", f"{type(e).__name__}: {str(e)[:60]} for {text[:100]!r}")


_KINDS = ["click", "type", "press", "wait", "done", "noop", "drag", "scroll", "hscroll", "zoom", "hold_key"]
_RARE = ["x2", "y2", "direction", "amount", "pixels", "coordinate", "region", "seconds", "modifiers"]


def _action_text(rng: random.Random) -> str:
    action: Any = {
        "action": rng.choice((*_KINDS, odd(rng))),
        "x": rng.choice((5, 600, odd(rng))),
        "y": rng.choice((5, 470, odd(rng))),
        "text": rng.choice(("a", odd(rng))),
        "key": rng.choice(("enter", odd(rng))),
        "confidence": rng.choice((0.9, odd(rng))),
        "reason": rng.choice(("x", odd(rng))),
    }
    if rng.random() < 0.5:
        action = {"action": action["action"], **{name: odd(rng) for name in rng.sample(_RARE, 2)}}
    action = {name: value for name, value in action.items() if rng.random() < 0.7}
    text = json.dumps(action, ensure_ascii=rng.random() < 0.5)
    part = text[: rng.randint(0, len(text))]
    forms = (f"```json\n{text}\n```", part, f"Sure! {text} {text}", rng.choice(ODD_TEXTS), text, text)
    return rng.choice(forms)

"""What comes in from outside: arguments by a tool's schema."""

from __future__ import annotations

import json
import random
import time
from typing import Any, Optional

from worlds import PATIENCE_S

from .rpc import GONE, HUNG, Reply
from .stage import Stage
from .tally import Tally

_LIMIT_S = 50 + PATIENCE_S
_ODD_TEXTS = (
    *("", " ", "\0", "a\0b", "\r\n", "\u2028", "\x1b[2J\x1b]0;x\x07", "\u202eabc", "\ud800", "\udfff\ud800"),
    *("~", "~nosuchuser/x.png", "a/../../x.png", "a/b\\c:d", ".png", "con.jpg", "é" * 300 + ".png"),
    *("-", "--help", "-rf", "*", "%s%n", "{}", "null", "x" * 300, "x" * 100_000),
    *("NaN", "1e999", "0x10", "٣", "9" * 5000, "PID:99999999999999999999", "PID:-1", "PID:"),
    *("file:///etc/passwd", "http://[bad"),
)
_ODD_NUMBERS = (
    *(0, -1, 1, 2, 3, 10**5, 2**31, 2**32, 2**63, 2**64, -(2**63), 10**400),
    *(0.5, -0.0, 1e308, 1e-320),
)
_BIG = "@5000 digits@"  # a number that Python would not print
_ODD_VALUES: tuple[Any, ...] = (
    *(_BIG, None, True, False, [], {}, [[]], {"a": {"b": []}}, [None] * 50, "text", 7),
)


def _odd(rng: random.Random) -> Any:
    return rng.choice((*_ODD_TEXTS, *_ODD_NUMBERS, *_ODD_VALUES))


def _value(rng: random.Random, schema: dict[str, Any], window_id: int) -> Any:
    """A value for a parameter: mostly of its type, sometimes not."""
    if rng.random() < 0.25:
        return _odd(rng)
    if schema.get("anyOf"):
        return _value(rng, rng.choice(schema["anyOf"]), window_id)
    if schema.get("enum"):
        return rng.choice(schema["enum"])
    if schema.get("type") == "array":
        return [_value(rng, schema.get("items") or {}, window_id) for _ in range(rng.randint(0, 3))]
    values: dict[str, tuple[Any, ...]] = {
        "integer": (window_id, window_id, rng.choice(_ODD_NUMBERS), rng.randint(0, 50)),
        "number": (rng.uniform(0, 40), rng.choice(_ODD_NUMBERS)),
        "boolean": (True, False),
        "object": ({"type": "auto"}, {"type": "ocr"}, {"type": "x"}),
    }
    return rng.choice(values.get(schema.get("type", ""), (rng.choice(_ODD_TEXTS), "shot.png", "field", "a")))


def arguments_for(rng: random.Random, tool: dict[str, Any], window_id: int) -> dict[str, Any]:
    schema = tool["inputSchema"]
    needed = schema.get("required", [])
    arguments = {
        name: rng.choice((0.1, 0.2, -1, "x")) if "timeout" in name else _value(rng, one, window_id)
        for name, one in schema.get("properties", {}).items()
        if name in needed or rng.random() < 0.35
    }
    if rng.random() < 0.1:
        arguments[rng.choice(("x", "window", "unknown", ""))] = _odd(rng)
    if arguments and rng.random() < 0.1:
        del arguments[rng.choice(sorted(arguments))]
    return arguments


def fuzz_arguments(on: Stage, rng: random.Random, trials: int, _kind: Optional[str] = None) -> None:
    """Arguments of every kind for every tool: an answer in JSON, nothing unexpected, a server that lives."""
    client, _, window_id = on.field()
    # what opens a file or an address starts programs of the desktop's own
    listed = client.ask("tools/list")["result"]["tools"]
    tools = [tool for tool in listed if tool["name"] not in ("open", "send_email")]
    for _ in range(trials):
        tool, number = rng.choice(tools), f"trial-{time.monotonic_ns()}"
        arguments = arguments_for(rng, tool, rng.choice((window_id, 1, 0)))
        params = {"name": tool["name"], "arguments": arguments}
        text = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        client.write(text.replace(f'"{_BIG}"', "9" * 5000).encode())
        what = f"{tool['name']}({json.dumps(arguments)[:120]})"
        is_odd = "\\ud" in text or _BIG in text
        reply = client.reply(number, 2 if is_odd else _LIMIT_S)
        on.tally.count("trials")
        is_alive = reply.code not in (HUNG, GONE) or client.is_alive()
        judge_arguments(on.tally, what, reply, is_odd and is_alive)
        client = client if is_alive else on.client()


def judge_arguments(tally: Tally, what: str, reply: Reply, may_be_unanswered: bool) -> None:
    if may_be_unanswered and reply.code == HUNG:
        tally.count("lost", "a request with a lone surrogate or 5000 digits gets no answer")
    elif not tally.has_failed(what, reply):
        tally.count("" if reply.code else "acted")

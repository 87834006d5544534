"""What comes in from outside: arguments by schema, lines on stdin, argv."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from typing import Any, Optional

from in_process import InProcessProgram
from worlds import PATIENCE_S, Finished

from peekaboo_min.frontends.tools import COMMANDS  # the table itself, so that a new command is tried as well

from .rpc import GONE, HUNG, Reply
from .stage import Stage
from .tally import Tally

_LIMIT_S = 50 + PATIENCE_S
ODD_TEXTS = (
    *("", " ", "\0", "a\0b", "\r\n", "\u2028", "\x1b[2J\x1b]0;x\x07", "\u202eabc", "\ud800", "\udfff\ud800"),
    *("~", "~nosuchuser/x.png", "a/../../x.png", "a/b\\c:d", ".png", "con.jpg", "é" * 300 + ".png"),
    *("-", "--help", "-rf", "*", "%s%n", "{}", "null", "x" * 300, "x" * 100_000),
    *("NaN", "1e999", "0x10", "٣", "9" * 5000, "PID:99999999999999999999", "PID:-1", "PID:"),
    *("file:///etc/passwd", "http://[bad"),
)
ODD_NUMBERS = (
    *(0, -1, 1, 2, 3, 10**5, 2**31, 2**32, 2**63, 2**64, -(2**63), 10**400),
    *(0.5, -0.0, 1e308, 1e-320),
)
NOT_FINITE = (float("nan"), float("inf"), float("-inf"))
_BIG = "@5000 digits@"  # a number that Python would not print
_ODD_VALUES: tuple[Any, ...] = (
    *(_BIG, None, True, False, [], {}, [[]], {"a": {"b": []}}, [None] * 50, "text", 7),
)
# the bytes of requests that are none, and of nothing at all
_BAD_LINES = (b"", b"{}", b"[]", b"null", b"0", b'"x"', b"\xff\xfe", b"\xed\xa0\x80", b"1" * 10_000)


def odd(rng: random.Random) -> Any:
    return rng.choice((*ODD_TEXTS, *ODD_NUMBERS, *_ODD_VALUES))


def _value(rng: random.Random, schema: dict[str, Any], window_id: int) -> Any:
    """A value for a parameter: mostly of its type, sometimes not."""
    if rng.random() < 0.25:
        return odd(rng)
    if schema.get("anyOf"):
        return _value(rng, rng.choice(schema["anyOf"]), window_id)
    if schema.get("enum"):
        return rng.choice(schema["enum"])
    if schema.get("type") == "array":
        return [_value(rng, schema.get("items") or {}, window_id) for _ in range(rng.randint(0, 3))]
    values: dict[str, tuple[Any, ...]] = {
        "integer": (window_id, window_id, rng.choice(ODD_NUMBERS), rng.randint(0, 50)),
        "number": (rng.uniform(0, 40), rng.choice(ODD_NUMBERS)),
        "boolean": (True, False),
        "object": ({"type": "auto"}, {"type": "ocr"}, {"type": "x"}),
    }
    return rng.choice(values.get(schema.get("type", ""), (rng.choice(ODD_TEXTS), "shot.png", "field", "a")))


def arguments_for(rng: random.Random, tool: dict[str, Any], window_id: int) -> dict[str, Any]:
    schema = tool["inputSchema"]
    needed = schema.get("required", [])
    arguments = {
        name: rng.choice((0.1, 0.2, -1, "x")) if "timeout" in name else _value(rng, one, window_id)
        for name, one in schema.get("properties", {}).items()
        if name in needed or rng.random() < 0.35
    }
    if rng.random() < 0.1:
        arguments[rng.choice(("x", "window", "unknown", ""))] = odd(rng)
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


def fuzz_lines(on: Stage, rng: random.Random, trials: int, _kind: Optional[str] = None) -> None:
    """Lines on stdin that are no messages, or nearly: whatever comes out is JSON, and the server lives."""
    client = on.client()
    for _ in range(trials):
        line = _bad_line(rng).replace(b"\n", b" ")
        client.write(line)
        on.tally.count("trials")
        is_alive = client.is_alive()
        judge_line(on.tally, line, is_alive)
        client = client if is_alive else on.client()


def judge_line(tally: Tally, line: bytes, is_alive: bool) -> None:
    tally.count(*(["acted"] if is_alive else ["tracebacks", f"the server is dead after {line[:100]!r}"]))


def _bad_line(rng: random.Random) -> bytes:
    names, number = ("list_windows", "click", "x", "\ud800"), rng.randint(10**6, 10**9)
    params = {"name": rng.choice(names), "arguments": {"window_id": 1}}
    call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    text = json.dumps(call)
    mixed = bytearray(text.encode())
    mixed[rng.randrange(len(mixed))] = rng.randrange(256)
    without = rng.choice([*call])
    return rng.choice(
        (
            bytes(rng.randrange(256) for _ in range(rng.randint(0, 200))),
            text[: rng.randint(0, len(text))].encode(),
            b'{"jsonrpc":"2.0","id":1,"method":' + b"[" * rng.choice((10, 1000, 100_000)),
            json.dumps([call, call]).encode(),
            json.dumps({**call, rng.choice(("id", "method", "params")): odd(rng)}).encode(),
            json.dumps({**call, "params": {"name": odd(rng), "arguments": odd(rng)}}).encode(),
            text.encode("utf-16"),
            bytes(mixed),
            json.dumps({key: value for key, value in call.items() if key != without}).encode(),
            rng.choice(_BAD_LINES),
        )
    )


# those start programs of the desktop's own, wait for people or run an agent
_NOT_TRIED = ("open", "gmail-login", "agent", "keynote-agent")
_FLAGS = (
    *("--json-output", "--app", "--path", "--format", "--mode", "--window-id", "--verify", "--clicks"),
    *("--button", "--screenshot-id", "--max-dimension", "--help", "--", "--all", "1", "10"),
)


class NoEnd(BaseException):
    """A command goes on for too long."""


def _no_end(_number: int, _frame: object) -> None:
    raise NoEnd


def fuzz_argv(on: Stage, rng: random.Random, trials: int, _kind: Optional[str] = None) -> None:
    """The shell's words: a known exit code, with --json-output one JSON document, never a traceback."""
    commands = [name for name in COMMANDS if name.split()[0] not in _NOT_TRIED]
    window_id = on.field().window_id
    program, before = InProcessProgram(on.environment), os.getcwd()
    handler = signal.signal(signal.SIGALRM, _no_end)
    os.chdir(on.folder)
    try:
        for _ in range(trials):
            words = _argv(rng, commands, window_id)
            on.tally.count("trials")
            outcome: Any
            try:
                signal.alarm(int(PATIENCE_S))
                outcome = program.run(*words)
                on.replies += outcome.out  # images that it names are no leaks
            except (Exception, NoEnd) as e:
                outcome = e
            finally:
                signal.alarm(0)
            judge_command(on.tally, words, outcome)
    finally:
        os.chdir(before)
        signal.signal(signal.SIGALRM, handler)


def judge_command(tally: Tally, words: list[str], outcome: Any) -> None:
    """outcome: how it finished, or what it raised: bytes on stdout that are no UTF-8 raise as well."""
    what = " ".join(words)[:120]
    if isinstance(outcome, NoEnd):
        tally.count("hung", f"no end: {what}")
        return
    flags = {*words[: words.index("--")]} if "--" in words else {*words}
    problem = f"unexpected: {outcome!r:.100}"
    if isinstance(outcome, Finished):
        problem = _problem(outcome, bool({"--json-output", "--json", "-j"} & flags))
        tally.count("" if outcome.code else "acted")
    if problem:
        tally.count("tracebacks", f"{problem}: {what}")


def _problem(done: Finished, wants_json: bool) -> str:
    if "Traceback" in done.err or "INTERNAL_ERROR" in done.out + done.err:
        return f"unexpected: {(done.err or done.out).strip().splitlines()[-1][:100]!r}"
    if done.code not in (0, 1, 2, *range(11, 23)):
        return f"exit code {done.code}"
    if "\x1b" in done.out + done.err:
        return "an escape character is printed raw"
    if wants_json:
        try:
            document = done.json
        except ValueError:
            return "stdout is not one JSON document"
        # `exec` ends as the program that it ran
        ended = (document.get("data") or {}).get("exit_code", 0)
        if done.code not in ((0, ended) if document.get("success") else {*range(1, 256)}):
            return "success and exit code differ"
    return ""


def _argv(rng: random.Random, commands: list[str], window_id: int) -> list[str]:
    words = rng.choice(commands).split()
    for _ in range(rng.randint(0, 5)):
        number = str(rng.choice((*ODD_NUMBERS, *NOT_FINITE)))
        text = rng.choice([text for text in ODD_TEXTS if "\0" not in text])
        words.append(rng.choice((*_FLAGS, str(window_id), number, text)))
    if rng.random() < 0.5:
        words.insert(rng.randint(0, len(words)), "--json-output")
    # what a shell passes on: bytes that are no UTF-8 arrive as lone surrogates
    return [word.encode("utf-8", "replace").decode() for word in words] + ["\udcff"] * (rng.random() < 0.03)

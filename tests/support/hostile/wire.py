"""What comes in from outside: lines on stdin, arguments by schema, argv, answers of models."""

from __future__ import annotations

import json
import os
import random
import socket
import struct
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable, Optional

from worlds import PATIENCE_S

from .rpc import Client
from .stage import Stage, count_failure, stage
from .tally import Tally

_LIMIT_S = 50 + PATIENCE_S
_ODD_TEXTS = (
    "",
    " ",
    "\0",
    "a\0b",
    "\ud800",
    "\udfff\ud800",
    "\x1b[2J\x1b]0;x\x07",
    "\u202eabc",
    "~nosuchuser/x.png",
    "~",
    "a/../../x.png",
    "-",
    "--help",
    "-rf",
    "x" * 300,
    "x" * 100_000,
    "é" * 300 + ".png",
    "PID:99999999999999999999",
    "PID:-1",
    "PID:",
    "*",
    "%s%n",
    "{}",
    "null",
    "NaN",
    "1e999",
    "0x10",
    "\r\n",
    "a/b\\c:d",
    ".png",
    "\u2028",
    "٣",
    "9" * 5000,
    "file:///etc/passwd",
    "http://[bad",
    "con.jpg",
)
_ODD_ADDRESSES = (
    "http://[bad", "file:///etc/passwd", "//", "", "ftp://x/", "http://127.0.0.1:1/", "javascript:x"
)  # fmt: skip
_BIG = "@5000 digits@"
_NOT_FINITE = (float("nan"), float("inf"), float("-inf"))
_ODD_NUMBERS = (
    0,
    -1,
    1,
    2,
    3,
    10**5,
    2**31,
    2**32,
    2**63,
    2**64,
    -(2**63),
    10**400,
    0.5,
    -0.0,
    1e308,
    1e-320,
)
_ODD_VALUES: tuple[Any, ...] = (
    _BIG,
    None,
    True,
    False,
    [],
    {},
    [[]],
    {"a": {"b": []}},
    [None] * 50,
    "text",
    7,
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
    kind = schema.get("type")
    if kind == "integer":
        return rng.choice((window_id, window_id, rng.choice(_ODD_NUMBERS), rng.randint(0, 50)))
    if kind == "number":
        return rng.choice((rng.uniform(0, 40), rng.choice(_ODD_NUMBERS)))
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "array":
        return [_value(rng, schema.get("items") or {}, window_id) for _ in range(rng.randint(0, 3))]
    if kind == "object":
        return {"type": rng.choice(("auto", "ocr", "x"))}
    return rng.choice((rng.choice(_ODD_TEXTS), "shot.png", "field", "a"))


def arguments_for(rng: random.Random, tool: dict[str, Any], window_id: int) -> dict[str, Any]:
    schema = tool["inputSchema"]
    needed = schema.get("required", [])
    arguments = {
        name: _value(rng, one, window_id)
        for name, one in schema.get("properties", {}).items()
        if name in needed or rng.random() < 0.35
    }
    for name in arguments:
        if "timeout" in name:
            arguments[name] = rng.choice((0.1, 0.2, -1, "x"))
    if rng.random() < 0.1:
        arguments[rng.choice(("x", "window", "unknown", ""))] = _odd(rng)
    if arguments and rng.random() < 0.1:
        del arguments[rng.choice(sorted(arguments))]
    return arguments


def fuzz_arguments(rng: random.Random, trials: int, _kind: Optional[str] = None) -> Tally:
    """Arguments of every kind for every tool: an answer in JSON, nothing unexpected, a server that lives."""
    tally = Tally("arguments by schema")
    start = time.monotonic()
    with stage() as on:
        client, tools, window_id = _fuzzed_server(on)
        for _ in range(trials):
            tool = rng.choice(tools)
            arguments = arguments_for(rng, tool, rng.choice((window_id, 1, 0)))
            tally.trials += 1
            text = json.dumps(arguments)
            is_odd = "\\ud" in text or _BIG in text
            reply = client.finish_call(_send_raw(client, tool["name"], arguments), 2 if is_odd else _LIMIT_S)
            what = f"{tool['name']}({text[:120]})"
            if is_odd and reply.code == "HUNG" and client.is_alive():
                tally.lost += 1
                tally.note(
                    f"a request with {'5000 digits' if _BIG in text else 'a lone surrogate'} gets no answer"
                )
                continue
            if not count_failure(tally, reply, what):
                tally.acted += not reply.code
            if reply.code in ("HUNG", "SERVER_GONE"):
                client, tools, window_id = _fuzzed_server(on)
        on.finish(tally)
    tally.seconds = time.monotonic() - start
    return tally


def _send_raw(client: Client, tool: str, arguments: dict[str, Any]) -> str:
    """Call a tool with numbers that Python would not print."""
    number = f"trial-{time.monotonic_ns()}"
    params = {"name": tool, "arguments": arguments}
    text = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
    client.write(text.replace(f'"{_BIG}"', "9" * 5000).encode())
    return number


def _fuzzed_server(on: Stage) -> tuple[Client, list[dict[str, Any]], int]:
    client = on.client()
    listed = client.wait(client.send("tools/list"), PATIENCE_S)
    assert listed is not None
    # what opens a file or an address starts programs of the desktop's own
    tools = [one for one in listed["result"]["tools"] if one["name"] not in ("open", "send_email")]
    witness = on.x_witness()
    window_id = witness.open("field", x=100, y=100, w=300, h=200, app="Field")
    on.wait_for_window(client, window_id)
    return client, tools, window_id


def fuzz_lines(rng: random.Random, trials: int, _kind: Optional[str] = None) -> Tally:
    """Lines on stdin that are no messages, or nearly: whatever comes out is JSON, and the server lives."""
    tally = Tally("malformed JSON-RPC")
    start = time.monotonic()
    with stage() as on:
        client = on.client()
        for _ in range(trials):
            line = _bad_line(rng)
            tally.trials += 1
            client.write(line.replace(b"\n", b" "))
            if client.is_alive():
                tally.acted += 1
                continue
            tally.tracebacks += 1
            is_gone = client.process.poll() is not None
            tally.note(f"{'the server died' if is_gone else 'no answer'} after {line[:100]!r}")
            client.kill()
            client = on.client()
        on.finish(tally)
    tally.seconds = time.monotonic() - start
    return tally


def _bad_line(rng: random.Random) -> bytes:
    call = {
        "jsonrpc": "2.0",
        "id": rng.randint(10**6, 10**9),
        "method": "tools/call",
        "params": {
            "name": rng.choice(("list_windows", "click", "x", "\ud800")),
            "arguments": {"window_id": 1},
        },
    }
    which = rng.randrange(12)
    if which == 0:
        return bytes(rng.randrange(256) for _ in range(rng.randint(0, 200)))
    if which == 1:
        text = json.dumps(call)
        return text[: rng.randint(0, len(text))].encode()
    if which == 2:
        return b'{"jsonrpc":"2.0","id":1,"method":' + b"[" * rng.choice((10, 1000, 100_000))
    if which == 3:
        return json.dumps([call, call]).encode()
    if which == 4:
        return json.dumps({**call, "id": _odd(rng)}).encode()
    if which == 5:
        return json.dumps({**call, "method": _odd(rng)}).encode()
    if which == 6:
        return json.dumps({**call, "params": _odd(rng)}).encode()
    if which == 7:
        return json.dumps({**call, "params": {"name": _odd(rng), "arguments": _odd(rng)}}).encode()
    if which == 8:
        return json.dumps(call).encode("utf-16")
    if which == 9:
        mixed = bytearray(json.dumps(call).encode())
        mixed[rng.randrange(len(mixed))] = rng.randrange(256)
        return bytes(mixed)
    if which == 10:
        return json.dumps(
            {name: value for name, value in call.items() if name != rng.choice(list(call))}
        ).encode()
    return rng.choice((b"", b"{}", b"[]", b"null", b"0", b'"x"', b"\xff\xfe", b"\xed\xa0\x80", b"1" * 10_000))


def fuzz_argv(rng: random.Random, trials: int, _kind: Optional[str] = None) -> Tally:
    """The shell's words: a known exit code, with --json-output one JSON document, never a traceback."""
    tally = Tally("argv")
    start = time.monotonic()
    with stage() as on:
        client, _, window_id = _fuzzed_server(on)
        commands = _commands()
        for _ in range(trials):
            words = _argv(rng, commands, window_id)
            tally.trials += 1
            code, out, errors = _run_forked(words, on)
            client.texts.append(out.decode("utf-8", "replace"))  # pictures that it names are no leaks
            what = " ".join(words)[:120]
            if code is None:
                tally.hung += 1
                tally.note(f"no end: {what}")
                continue
            wants_json = bool(
                {"--json-output", "--json", "-j"}
                & set(words[: words.index("--")] if "--" in words else words)
            )
            problem = _argv_problem(code, out, errors, wants_json)
            if problem:
                tally.tracebacks += 1
                tally.note(f"{problem}: {what}")
            tally.acted += code == 0
        client.end()
        on.finish(tally)
    tally.seconds = time.monotonic() - start
    return tally


def _argv_problem(code: int, out: bytes, errors: bytes, wants_json: bool) -> str:
    if b"Traceback" in errors or b"INTERNAL_ERROR" in out + errors:
        lines = (errors if b"Traceback" in errors else out).strip().splitlines()
        return f"unexpected: {lines[-1][:100]!r}"
    if code not in (0, 1, 2, *range(11, 23)):
        return f"exit code {code}"
    try:
        text = out.decode("utf-8")
    except UnicodeDecodeError:
        return "stdout is not UTF-8"
    if "\x1b" in text or b"\x1b" in errors:
        return "an escape character is printed raw"
    if wants_json:
        try:
            document = json.loads(text)
        except ValueError:
            return "stdout is not one JSON document"
        # `exec` ends as the program that it ran
        ended = (document.get("data") or {}).get("exit_code", 0)
        if document.get("success") != (code == 0) and not (document.get("success") and code == ended):
            return "success and exit code differ"
    return ""


def _commands() -> list[str]:
    from peekaboo_min.frontends.tools import (
        COMMANDS,
    )  # the table itself, so that a new command is tried as well

    # those start programs of the desktop's own, wait for people or run an agent
    return [
        one for one in COMMANDS if one.split()[0] not in ("open", "gmail-login", "agent", "keynote-agent")
    ]


def _argv(rng: random.Random, commands: list[str], window_id: int) -> list[str]:
    words = rng.choice(commands).split()
    for _ in range(rng.randint(0, 5)):
        words.append(
            rng.choice(
                (
                    str(window_id),
                    "--json-output",
                    "--app",
                    "--path",
                    "--format",
                    "--mode",
                    "--window-id",
                    "--verify",
                    "--clicks",
                    "--button",
                    "--screenshot-id",
                    "--max-dimension",
                    "--help",
                    "--",
                    "--all",
                    "1",
                    "10",
                    str(rng.choice((*_ODD_NUMBERS, *_NOT_FINITE))),
                    rng.choice(_ODD_TEXTS[5:]).replace("\0", "")[:100_000],
                )
            )
        )
    if rng.random() < 0.5:
        words.insert(rng.randint(0, len(words)), "--json-output")
    # what a shell passes on: bytes that are no UTF-8 arrive as lone surrogates
    return [word.encode("utf-8", "replace").decode() for word in words] + ["\udcff"] * (rng.random() < 0.03)


def _run_forked(
    words: list[str], on: Stage, limit_s: float = PATIENCE_S
) -> tuple[Optional[int], bytes, bytes]:
    """The command line in a child of this process, which has it imported: much faster than exec."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        pid = os.fork()
        if pid == 0:
            _be_the_command(words, on, out.fileno(), errors.fileno())
        deadline = time.monotonic() + limit_s
        while True:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                break
            if time.monotonic() > deadline:
                os.kill(pid, 9)
                os.waitpid(pid, 0)
                return None, b"", b""
            time.sleep(0.002)
        out.seek(0)
        errors.seek(0)
        return os.waitstatus_to_exitcode(status), out.read(), errors.read()


def _be_the_command(words: list[str], on: Stage, out: int, errors: int) -> None:
    """In the child: never returns."""
    code = 70
    try:
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (out, 1), (errors, 2)):
            os.dup2(source, target)
        os.environ.clear()
        os.environ.update(on.environment)
        os.chdir(on.folder)
        import sys
        import traceback

        sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="strict", buffering=1)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)
        from peekaboo_min.frontends.cli import start

        try:
            sys.argv = ["peekaboo-min", *words]
            start()
        except SystemExit as e:
            code = e.code if isinstance(e.code, int) else 1
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


class Liar:
    """A socket that answers every HTTP request with what it was told to: any bytes at all."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.answer: bytes = b""
        self.linger = False
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(5)
            try:
                data = b""
                while b"\r\n\r\n" not in data:
                    data += connection.recv(1 << 16)
                head, _, body = data.partition(b"\r\n\r\n")
                length = next(
                    (
                        int(one[15:])
                        for one in head.lower().split(b"\r\n")
                        if one.startswith(b"content-length:")
                    ),
                    0,
                )
                while len(body) < length:
                    body += connection.recv(1 << 16)
                connection.sendall(self.answer)
                if self.linger:
                    connection.recv(1)
            except OSError:
                pass

    def close(self) -> None:
        self._socket.close()


@contextmanager
def liar() -> Iterator[Liar]:
    one = Liar()
    try:
        yield one
    finally:
        one.close()


def lie_to_models(rng: random.Random, trials: int, _kind: Optional[str] = None) -> Tally:
    """Answers of a model's endpoint that are wrong in every way; `analyze` says so, and the server lives."""
    tally = Tally("lying models")
    start = time.monotonic()
    with stage() as on, liar() as one:
        base = f"http://127.0.0.1:{one.port}"
        picture = on.folder / "picture.png"
        picture.write_bytes(_png())
        key = "sk-secret-of-the-trial"
        clients = {
            vendor: on.client(
                PEEKABOO_AI_PROVIDERS=f"{vendor}/model",
                PEEKABOO_AI_TIMEOUT="1",
                PEEKABOO_LOG_LEVEL="debug",
                **{f"{prefix}_BASE_URL": base},
                **({f"{vendor.upper()}_API_KEY": key} if vendor != "ollama" else {}),
            )
            for vendor, prefix in (
                ("ollama", "PEEKABOO_OLLAMA"),
                ("openai", "OPENAI"),
                ("gemini", "GEMINI"),
                ("anthropic", "ANTHROPIC"),
            )
        }
        for _ in range(trials):
            vendor = rng.choice(sorted(clients))
            sent = key if vendor != "ollama" else ""  # it has none, and could not know that this is one
            one.answer, one.linger = _lie(rng, vendor, sent), rng.random() < 0.02
            tally.trials += 1
            reply = clients[vendor].call("analyze", 30, image_path=str(picture), question="what is this?")
            what = f"{vendor}: {one.answer[:40]!r}...{one.answer[-60:]!r}"
            if not count_failure(tally, reply, what):
                tally.acted += not reply.code
                if key in reply.text:
                    tally.wrong += 1
                    tally.note(f"{vendor}: the key stands in the answer")
                if any(ord(c) < 32 and c not in "\n\t" for c in reply.text):
                    tally.wrong += 1
                    tally.note(f"{vendor}: control characters in the answer: {reply.code or 'success'}")
            if reply.code in ("HUNG", "SERVER_GONE"):
                clients[vendor] = on.client(PEEKABOO_AI_PROVIDERS=f"{vendor}/model", PEEKABOO_AI_TIMEOUT="1")
        for log in (on.folder / "log", *on.folder.glob("tmp/**/*.log")):
            if log.is_file() and key.encode() in log.read_bytes():
                tally.wrong += 1
                tally.note("the key stands in the log")
        on.finish(tally)
    tally.seconds = time.monotonic() - start
    return tally


def _reply_body(vendor: str, text: Any, tokens: Any) -> Any:
    if vendor == "ollama":
        return {
            "model": "m",
            "response": text,
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": tokens,
            "eval_count": tokens,
        }
    if vendor == "openai":
        return {
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            ],
            "usage": {"prompt_tokens": tokens, "completion_tokens": tokens},
            "model": "m",
        }
    if vendor == "gemini":
        return {
            "candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": tokens, "candidatesTokenCount": tokens},
        }
    return {
        "type": "message",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": tokens, "output_tokens": tokens},
        "model": "m",
    }


def _lie(rng: random.Random, vendor: str, key: str) -> bytes:
    body: Any = _reply_body(
        vendor,
        rng.choice((*_ODD_TEXTS, "a window", None, 7, [], {})),
        rng.choice((3, *_ODD_NUMBERS, *_NOT_FINITE, "x", None, [])),
    )
    status, headers = "200 OK", ["Content-Type: application/json"]
    which = rng.randrange(9)
    data = json.dumps(body).encode()
    if which == 0:
        data = json.dumps(_mutated(rng, body)).encode()
    elif which == 1:
        data = data[: rng.randint(0, len(data))]
    elif which == 2:
        data = rng.choice(
            (
                b"",
                b"null",
                b"[]",
                b"<html>",
                b"\xff\xfe",
                b"[" * 100_000,
                b"1" * 6000,
                b'"' + b"x" * 2_000_000 + b'"',
            )
        )
    elif which == 3:
        status = rng.choice(
            (
                "400 Bad",
                "401 No",
                "403 No",
                "404 No",
                "413 Large",
                "418 Teapot",
                "204 Nothing",
                "999 What",
                "0 x",
                "abc x",
            )
        )
        data = rng.choice(
            (
                data,
                json.dumps({"error": {"message": f"wrong key {key} \x1b[31m\ud800"}}).encode(),
                b"\x1b[2J" * 100,
                b"",
            )
        )
    elif which == 4:
        status = rng.choice(("301 Moved", "302 Found", "307 Found"))
        headers.append(f"Location: {rng.choice(_ODD_ADDRESSES)}")
    elif which == 5:
        headers.append("Transfer-Encoding: chunked")
        size = rng.choice(("-1", "ffffffffffffffffffff", "zz", "5;x", ""))
        return _http(status, headers, f"{size}\r\nhello\r\n0\r\n\r\n".encode(), with_length=False)
    elif which == 6:
        headers.append(f"Content-Length: {rng.choice(('-1', '99999999999999999999', 'x', '1', '5, 6'))}")
        return _http(status, headers, data, with_length=False)
    elif which == 7:
        return rng.choice(
            (
                b"",
                b"\r\n\r\n",
                b"HTTP/9.9 200\r\n\r\n",
                b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n",
                bytes(rng.randrange(256) for _ in range(99)),
            )
        )
    return _http(status, headers, data)


def _http(status: str, headers: list[str], data: bytes, with_length: bool = True) -> bytes:
    lines = [
        f"HTTP/1.1 {status}",
        *headers,
        *([f"Content-Length: {len(data)}"] if with_length else []),
        "Connection: close",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def _mutated(rng: random.Random, value: Any) -> Any:
    """The same shape with one part replaced by something odd."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        name = rng.choice(sorted(value))
        return {**value, name: _mutated(rng, value[name])}
    if isinstance(value, list) and value and rng.random() < 0.7:
        return [_mutated(rng, value[0]), *value[1:]]
    return _odd(rng)


def _png() -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    rows = b"".join(b"\0" + b"\x80\x20\x20" * 64 for _ in range(48))
    header = struct.pack(">IIBBBBB", 64, 48, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def read_lies(rng: random.Random, trials: int, _kind: Optional[str] = None) -> Tally:
    """Replies of a model to the agent: an action, or an expected error; nothing else."""
    from peekaboo_min.core.errors import PeekabooError

    read = _action_reader()
    tally = Tally("model replies")
    start = time.monotonic()
    for _ in range(trials):
        text = _action_text(rng)
        tally.trials += 1
        try:
            read(text)
            tally.acted += 1
        except (PeekabooError, ValueError):
            pass
        except BaseException as e:
            tally.tracebacks += 1
            tally.note(f"{type(e).__name__}: {str(e)[:60]} for {text[:100]!r}")
    tally.seconds = time.monotonic() - start
    return tally


def _action_reader() -> Callable[[str], Any]:
    from peekaboo_min.agents import actions
    from peekaboo_min.ai.grid import PIXELS, grid_over

    return lambda text: actions.read_action(text, grid_over(PIXELS, 640, 480))


def _action_text(rng: random.Random) -> str:
    kinds = (
        "click",
        "type",
        "press",
        "wait",
        "done",
        "noop",
        "drag",
        "scroll",
        "hscroll",
        "zoom",
        "hold_key",
    )
    action: Any = {
        "action": rng.choice((*kinds, _odd(rng))),
        "x": rng.choice((5, 600, _odd(rng))),
        "y": rng.choice((5, 470, _odd(rng))),
        "text": rng.choice(("a", _odd(rng))),
        "key": rng.choice(("enter", _odd(rng))),
        "confidence": rng.choice((0.9, _odd(rng))),
        "reason": rng.choice(("x", _odd(rng))),
    }
    if rng.random() < 0.5:
        rare = ("x2", "y2", "direction", "amount", "pixels", "coordinate", "region", "seconds", "modifiers")
        action = {"action": action["action"], **{name: _odd(rng) for name in rng.sample(rare, 2)}}
    action = {name: value for name, value in action.items() if rng.random() < 0.7}
    text = json.dumps(action, ensure_ascii=rng.random() < 0.5)
    form = rng.randrange(6)
    if form == 0:
        return f"```json\n{text}\n```"
    if form == 1:
        return text[: rng.randint(0, len(text))]
    if form == 2:
        return f"Sure! {text} {text}"
    if form == 3:
        return rng.choice(_ODD_TEXTS)
    return text

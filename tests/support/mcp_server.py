"""Talk to our server process in raw JSON-RPC."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import pytest
from leftovers import replied
from worlds import PATIENCE_S, SINGLE_FILE, wait_for

# a script that writes its own and its child's pid, and does not end
SLOW = """[ "$1" != -version ] || {{ echo "${{0##*/}} 1.1"; exit; }}
trap '' TERM INT HUP
echo $$ >> {pids}
sleep 600 &
echo $! >> {pids}
wait"""
FORMS = {"package": ["-m", "peekaboo_min"], "single file": [str(SINGLE_FILE)]}


class Server:
    """A server process and its pipes; keeps every line of its stdout."""

    def __init__(
        self,
        form: str,
        environment: dict[str, str],
        stdin: Any = subprocess.PIPE,
        python: str = sys.executable,
    ) -> None:
        self.process = subprocess.Popen(
            [python, "-W", "error::ResourceWarning", *FORMS[form]],
            env=environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.lines: list[bytes] = []
        self._errors: list[bytes] = []
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._kept: dict[Any, dict[str, Any]] = {}
        self._readers = [threading.Thread(target=one) for one in (self._read_stdout, self._read_stderr)]
        for one in self._readers:
            one.start()
        self._last_id = 0

    def _read_stdout(self) -> None:
        for line in self.process.stdout:  # type: ignore[union-attr]
            self.lines.append(line)
            replied(line.decode("utf-8"))
            self._answers.put(json.loads(line))

    def _read_stderr(self) -> None:
        for line in self.process.stderr:  # type: ignore[union-attr]
            self._errors.append(line)

    def send(self, method: str, params: Optional[dict[str, Any]] = None, is_request: bool = True) -> int:
        self._last_id += is_request
        message = {"jsonrpc": "2.0", "method": method, **({"id": self._last_id} if is_request else {})}
        self.process.stdin.write(json.dumps({**message, "params": params or {}}).encode() + b"\n")  # type: ignore
        self.process.stdin.flush()  # type: ignore[union-attr]
        return self._last_id

    def answer_to(self, number: int, seconds: float = PATIENCE_S) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while number not in self._kept:
            try:
                message = self._answers.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                pytest.fail(f"no answer to request {number} in {seconds:g} s; stderr: {self.errors[-2000:]}")
            self._kept[message.get("id")] = message
        return self._kept.pop(number)

    def ask(self, method: str, params: Optional[dict[str, Any]] = None) -> Any:
        return self.answer_to(self.send(method, params))

    def start_call(self, tool: str, **arguments: Any) -> int:
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.answer_to(self.start_call(tool, **arguments))["result"]

    def shake_hands(self, version: str = "2025-11-25") -> Any:
        client = {"name": "test", "version": "1"}
        asked = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
        answer = self.ask("initialize", asked)["result"]
        self.send("notifications/initialized", is_request=False)
        return answer

    @property
    def errors(self) -> str:
        return b"".join(self._errors).decode("utf-8", "replace")

    def wait(self, seconds: float = PATIENCE_S) -> int:
        code = self.process.wait(seconds)
        for one in self._readers:
            one.join(seconds)
        return code

    def end(self, seconds: float = PATIENCE_S) -> int:
        """Close stdin, like a client that has finished."""
        self.process.stdin.close()  # type: ignore[union-attr]
        return self.wait(seconds)

    def close(self) -> None:
        self.process.kill()
        self.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()


@dataclass(frozen=True)
class Reply:
    """An answer to a tool call; `code` is empty on success."""

    code: str = ""
    text: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    images: tuple[dict[str, Any], ...] = ()

    @property
    def is_delivered(self) -> bool:
        """Return True if the reply claims that the act reached its window."""
        return not self.code and self.data.get("delivered", True) is True


class Client(Server):
    """A server whose calls return a Reply."""

    def reply(self, number: int, seconds: float = 2 * PATIENCE_S) -> Reply:
        result = self.answer_to(number, seconds)["result"]
        text = "\n".join(block["text"] for block in result["content"] if block["type"] == "text")
        if result.get("isError"):
            return Reply(result["_meta"]["backend_error_code"], text, result.get("structuredContent") or {})
        images = tuple(block for block in result["content"] if block["type"] == "image")
        documents = [line for line in text.splitlines() if line.startswith("{")]  # used with images
        data = result.get("structuredContent") or json.loads((documents or ["{}"])[-1])
        return Reply("", text, data, images)

    def call(self, tool: str, **arguments: Any) -> Reply:
        return self.reply(self.start_call(tool, **arguments))


@contextmanager
def serving(
    form: str, environment: dict[str, str], stdin: Any = subprocess.PIPE, python: str = sys.executable
) -> Iterator[Server]:
    """Start our server. python: the interpreter that runs it."""
    server = Server(form, environment, stdin, python)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def initialized(form: str, environment: dict[str, str]) -> Iterator[Server]:
    """Start our server and shake hands."""
    with serving(form, environment) as server:
        server.shake_hands()
        yield server


def pids_in(path: Path, count: int = 2) -> list[int]:
    """Wait until a script has written this many pids; return them."""

    def noted() -> list[int]:
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [int(line) for line in lines] if len(lines) >= count else []

    return wait_for(noted, f"{count} programs note their pids")


def is_alive(pid: int) -> bool:
    """Return True if the process lives; a zombie counts as dead, because its parent may not reap it."""
    argv = ["ps", "-o", "stat=", "-p", str(pid)]
    return subprocess.run(argv, capture_output=True).stdout.strip()[:1] not in (b"", b"Z")


def assert_all_dead(pids: list[int]) -> None:
    wait_for(lambda: not any(map(is_alive, pids)), f"{pids} are dead")

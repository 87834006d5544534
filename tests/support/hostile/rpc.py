"""A raw MCP client for a server that may hang, die or say what is not JSON; every odd byte is counted."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import warm_python
from worlds import PATIENCE_S

HUNG = "HUNG"
GONE = "SERVER_GONE"


@dataclass(frozen=True)
class Reply:
    """An answer to a tool call; `code` is empty for a success, HUNG or GONE where none came."""

    code: str
    text: str
    data: dict[str, Any] = field(default_factory=dict)
    images: tuple[dict[str, Any], ...] = ()
    seconds: float = 0.0

    @property
    def is_delivered(self) -> bool:
        """Whether it claims that the act reached its window."""
        return not self.code and self.data.get("delivered", True) is True


class Client:
    """A server process and its pipes. Requests may overlap; answers are found by their id."""

    def __init__(self, words: list[str], environment: dict[str, str], folder: Optional[Path] = None) -> None:
        self.process = subprocess.Popen(
            words, env=environment, cwd=folder,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.errors: list[bytes] = []
        self.bad_lines: list[bytes] = []
        self.answers: dict[Any, dict[str, Any]] = {}
        self.texts: list[str] = []  # of all tool results
        self._wake: queue.Queue[None] = queue.Queue()
        self._last_id = 0
        self._readers = [
            threading.Thread(target=one, daemon=True) for one in (self._read_stdout, self._read_stderr)
        ]
        for reader in self._readers:
            reader.start()

    def _read_stdout(self) -> None:
        for line in self.process.stdout:  # type: ignore[union-attr]
            try:
                message = json.loads(line, parse_constant=_refuse_constant)
                line.decode("utf-8")
                if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
                    raise ValueError("not a message")
            except ValueError:
                self.bad_lines.append(line)
                continue
            if "id" in message and isinstance(message["id"], (int, str, type(None))):
                self.answers[message["id"]] = message
            self._wake.put(None)
        self._wake.put(None)

    def _read_stderr(self) -> None:
        for line in self.process.stderr:  # type: ignore[union-attr]
            self.errors.append(line)

    def write(self, line: bytes) -> bool:
        """One raw line; False when the server is gone."""
        try:
            self.process.stdin.write(line + b"\n")  # type: ignore[union-attr]
            self.process.stdin.flush()  # type: ignore[union-attr]
        except (BrokenPipeError, ValueError):
            return False
        return True

    def send(self, method: str, params: Optional[dict[str, Any]] = None, is_request: bool = True) -> int:
        self._last_id += is_request
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        self.write(json.dumps({**message, **({"id": self._last_id} if is_request else {})}).encode())
        return self._last_id

    def wait(self, number: Any, seconds: float) -> Optional[dict[str, Any]]:
        """The answer of that id; None when there is none in time, or the server is gone."""
        deadline = time.monotonic() + seconds
        while number not in self.answers:
            left = deadline - time.monotonic()
            if left <= 0 or (self.process.poll() is not None and self._wake.empty()):
                break
            try:
                self._wake.get(timeout=min(left, 0.2))
            except queue.Empty:
                continue
        return self.answers.pop(number, None)

    def shake_hands(self, seconds: float = PATIENCE_S) -> dict[str, Any]:
        client = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "trial", "version": "1"},
        }
        answer = self.wait(self.send("initialize", client), seconds)
        if answer is None:
            raise RuntimeError(f"the server did not start: {self.error_text[-2000:]}")
        self.send("notifications/initialized", is_request=False)
        return answer["result"]

    def start_call(self, tool: str, arguments: dict[str, Any]) -> int:
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def finish_call(
        self, number: Any, seconds: float = 2 * PATIENCE_S, since: Optional[float] = None
    ) -> Reply:
        start = time.monotonic() if since is None else since
        message = self.wait(number, seconds)
        if message is None:
            is_gone = self.process.poll() is not None
            return Reply(GONE if is_gone else HUNG, "", seconds=time.monotonic() - start)
        return self.read(message, time.monotonic() - start)

    def read(self, message: dict[str, Any], seconds: float = 0.0) -> Reply:
        if "error" in message:
            return Reply("RPC_ERROR", json.dumps(message["error"]), seconds=seconds)
        result = message["result"]
        content = result.get("content", [])
        text = "\n".join(one["text"] for one in content if one["type"] == "text")
        self.texts.append(text)
        images = tuple(one for one in content if one["type"] == "image")
        code = (result.get("_meta") or {}).get("backend_error_code", "ERROR") if result.get("isError") else ""
        return Reply(code, text, _data(result, text), images, seconds)

    def call(self, tool: str, seconds: float = 2 * PATIENCE_S, **arguments: Any) -> Reply:
        start = time.monotonic()
        return self.finish_call(self.start_call(tool, arguments), seconds, start)

    def is_alive(self, seconds: float = PATIENCE_S) -> bool:
        return self.wait(self.send("ping"), seconds) is not None

    @property
    def error_text(self) -> str:
        return b"".join(self.errors).decode("utf-8", "replace")

    def end(self, seconds: float = PATIENCE_S) -> bool:
        """Close stdin, as a client does; kill what does not end by that. True when it ended by itself."""
        with suppress(BrokenPipeError):
            self.process.stdin.close()  # type: ignore[union-attr]
        try:
            self.process.wait(seconds)
            return True
        except subprocess.TimeoutExpired:
            self.kill()
            return False

    def close(self) -> None:
        """Kill what still runs, and close the pipes."""
        if self.process.poll() is None:
            self.kill()
        for reader in self._readers:
            reader.join(PATIENCE_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        if number == signal.SIGKILL:
            self.process.wait(PATIENCE_S)


def _data(result: dict[str, Any], text: str) -> dict[str, Any]:
    if result.get("structuredContent"):
        return result["structuredContent"]
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                continue
    return {}


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def server_words() -> list[str]:
    return [warm_python.python(), "-m", "peekaboo_min"]

"""An MCP client for a server that may hang, die or write invalid JSON."""

from __future__ import annotations

import json
import os
import queue
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from mcp_server import FORMS, Server
from worlds import PATIENCE_S

HUNG = "HUNG"
GONE = "SERVER_GONE"


@dataclass(frozen=True)
class Reply:
    """An answer to a tool call; `code` is empty on success, HUNG or GONE without an answer."""

    code: str = ""
    text: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    images: tuple[dict[str, Any], ...] = ()

    @property
    def is_delivered(self) -> bool:
        """Return True if the reply claims that the act reached its window."""
        return not self.code and self.data.get("delivered", True) is True


class Client(Server):
    """A server process with its own working folder. Requests may overlap; answers match by id."""

    def __init__(self, words: list[str], environment: dict[str, str], folder: Optional[Path] = None) -> None:
        self._messages: dict[Any, dict[str, Any]] = {}
        before = Path.cwd()
        os.chdir(folder or before)
        try:
            super().__init__("package", environment, python=words[0])
        finally:
            os.chdir(before)

    def _read_stdout(self) -> None:
        """Skip lines that are not JSON; put None as the last message when the server ends."""
        while True:
            try:
                super()._read_stdout()
                break
            except ValueError:
                continue
        self._answers.put(None)  # type: ignore[arg-type]

    def answer(self, number: Any, seconds: float) -> Optional[dict[str, Any]]:
        """Return the answer with this id, or None on a timeout or if the server has ended."""
        deadline = time.monotonic() + seconds
        while number not in self._messages:
            try:
                message = self._answers.get(timeout=max(0.001, deadline - time.monotonic()))
            except queue.Empty:
                return None
            if message is None:
                self._answers.put(message)
                return None
            if isinstance(message, dict) and isinstance(message.get("id"), (int, str)):
                self._messages[message["id"]] = message
        return self._messages.pop(number)

    def arrived(self) -> Collection[Any]:
        """Return the ids of answers that have arrived and were not yet read."""
        self.answer(None, 0)
        return self._messages.keys()

    def reply(self, number: Any, seconds: float = 2 * PATIENCE_S) -> Reply:
        message = self.answer(number, seconds)
        if message is None:
            return Reply(HUNG if self.process.poll() is None else GONE)
        return read_reply(message)

    def call(self, tool: str, seconds: float = 2 * PATIENCE_S, **arguments: Any) -> Reply:  # type: ignore[override]
        with suppress(BrokenPipeError):
            return self.reply(self.start_call(tool, **arguments), seconds)
        return Reply(GONE)

    def is_alive(self) -> bool:
        with suppress(BrokenPipeError):
            return self.answer(self.send("ping"), PATIENCE_S) is not None
        return False

    def close(self) -> None:
        with suppress(BrokenPipeError):
            self.process.stdin.close()  # type: ignore[union-attr]
        super().close()

    @property
    def bad_lines(self) -> list[bytes]:
        """Return the lines of stdout that are not JSON-RPC messages."""
        return [line for line in self.lines if not _is_message(line)]


def read_reply(message: dict[str, Any]) -> Reply:
    if "error" in message:
        return Reply("RPC_ERROR", json.dumps(message["error"]))
    result = message["result"]
    content = result.get("content", [])
    text = "\n".join(block["text"] for block in content if block["type"] == "text")
    if result.get("isError"):
        code = (result.get("_meta") or {}).get("backend_error_code", "ERROR")
        return Reply(code, text, result.get("structuredContent") or {})
    images = tuple(block for block in content if block["type"] == "image")
    documents = [line for line in text.splitlines() if line.startswith("{")]  # used with images
    return Reply("", text, result.get("structuredContent") or json.loads((documents or ["{}"])[-1]), images)


def _is_message(line: bytes) -> bool:
    try:
        message = json.loads(line)
    except ValueError:
        return False
    return isinstance(message, dict) and message.get("jsonrpc") == "2.0"


def server_words() -> list[str]:
    return [sys.executable, *FORMS["package"]]

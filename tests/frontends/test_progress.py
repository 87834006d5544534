"""Progress over the wire: each stage of a long call, and signs of life while a model thinks."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from fake_ai import FakeAI
from mcp_server import FORMS, Server, serving
from worlds import PATIENCE_S, Form, clean_environment, wait_for

TOKEN = "a token"


def start(server: Server, tool: str, **arguments: Any) -> int:
    params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": TOKEN}}
    return server.send("tools/call", params)


def reported(server: Server) -> list[dict[str, Any]]:
    messages = [json.loads(line) for line in list(server.lines)]
    return [each["params"] for each in messages if each.get("method") == "notifications/progress"]


@pytest.mark.parametrize("form_name", list(FORMS))
def test_progress_is_reported_while_a_model_thinks(tmp_path: Path, display: str, form_name: str) -> None:
    may_answer = threading.Event()

    def think(_request: Any) -> str:
        assert may_answer.wait(PATIENCE_S)
        return "A screen."

    with FakeAI({"ollama/qwen3-vl:8b": True}, think) as ai:
        variables = ai.env("ollama", "qwen3-vl:8b")
        environment = clean_environment(tmp_path, DISPLAY=display, **variables)
        with serving(form_name, environment) as server:
            server.shake_hands()
            number = start(server, "image", question="What is there?")
            wait_for(lambda: len(reported(server)) >= 3, "the server says that the call still runs")
            may_answer.set()
            answer = server.answer_to(number)["result"]
            assert "A screen." in answer["content"][0]["text"]
            rows = reported(server)
            assert [row["progress"] for row in rows] == list(range(1, len(rows) + 1))
            assert {row["progressToken"] for row in rows} == {TOKEN}
            messages = [row["message"] for row in rows]
            assert messages[-1] == "asking ollama/qwen3-vl:8b"
            assert json.loads(server.lines[-1])["id"] == number, "nothing follows the answer"


def test_progress_is_for_clients_with_a_token(tmp_path: Path, display: str, form: Form) -> None:
    with serving("package", clean_environment(tmp_path, DISPLAY=display)) as server:
        server.shake_hands()
        windows = server.call("list_windows")["structuredContent"]["windows"]
        (window_id,) = [each["window_id"] for each in windows if each["title"] == form.title]
        server.call("wait_for", window_id=window_id, still=True)
        assert reported(server) == []
        server.answer_to(start(server, "wait_for", window_id=window_id, title="Visitor"))
        server.answer_to(start(server, "wait_for", window_id=window_id, still=True))
        assert [row["message"] for row in reported(server)][:1] == [
            f"waiting for window {window_id} to stop changing: window {window_id}"
        ]

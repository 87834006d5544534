"""run-steps: several acts in one call, and the truth about each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from leftovers import machine_state
from mcp_server import initialized
from tk_windows import audit
from worlds import PATIENCE_S, Form, Program, wait_for

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(peek: Program, tmp_path: Path) -> Run:
    """Run these steps by the shell; return its JSON document."""

    def run_steps(*steps: Any, options: tuple[str, ...] = (), **environment: str) -> dict[str, Any]:
        file = tmp_path / "steps.json"
        file.write_text(json.dumps(steps))
        finished = peek.having(**environment).run("run-steps", file, *options, "--json")
        document: dict[str, Any] = json.loads(finished.out)
        return document

    return run_steps


def test_steps_fill_a_dialog(peek: Program, form: Form, form_id: int, run: Run, tmp_path: Path) -> None:
    peek.data("screenshot", form_id)
    x, y = form.centre("name")
    picture = tmp_path / "last.png"
    document = run(
        {"tool": "click", "window_id": form_id, "x": x, "y": y},
        {"tool": "type_text", "window_id": "Form", "text": "Ada\tada@example.org\t"},
        {"tool": "click_text", "window_id": form_id, "text": "Details"},
        {"tool": "type_text", "window_id": "opened", "text": "Zurich\tengineer"},
        {"tool": "wait_for", "window_id": form_id, "title": form.title},
        {"tool": "click_text", "window_id": "opened", "text": "Confirm"},
        {"tool": "wait_for", "window_id": form_id, "text": "Details of Zurich kept."},
        {"tool": "click_text", "window_id": form_id, "text": "Sign the book"},
        options=("--path", str(picture)),
    )
    assert [step["outcome"] for step in document["data"]["steps"]] == ["done"] * 8, document
    assert {"city": "Zurich", "job": "engineer"}.items() <= form.wait_for_event("details").items()
    assert {"name": "Ada", "mail": "ada@example.org"}.items() <= form.wait_for_event("sign").items()
    assert document["data"]["screenshot"]["window_id"] == form_id and picture.stat().st_size > 1000
    assert [line["action"] for line in audit(peek)] == ["click", "type", "click", "type", "click", "click"]


def test_steps_keep_the_lock_between_them(peek: Program, form: Form, form_id: int) -> None:
    a, b = ({"tool": "press_key", "window_id": form_id, "key": key} for key in "ab")
    steps = [a, {"tool": "wait_for", "window_id": form_id, "still": True}, b]
    with peek.start("run-steps", "-") as running:
        running.stdin.write(json.dumps(steps).encode())  # type: ignore[union-attr]
        running.stdin.close()  # type: ignore[union-attr]
        form.wait_for_event("key")
        peek.data("press", form_id, "c")
        assert running.wait(PATIENCE_S) == 0
    form.wait_for_event("key", after=2)
    assert [event["keysym"] for event in form.events("key")] == ["a", "b", "c"]


KEY = {"tool": "press_key", "window_id": 7, "key": "x"}


def test_server_takes_only_steps_whose_tools_it_offers(peek: Program, form: Form, form_id: int) -> None:
    environment = {**peek.environment, "PEEKABOO_TOOLS": "run_steps,focus_window"}
    with initialized("package", environment) as server:
        offered = {tool["name"]: tool for tool in server.ask("tools/list")["result"]["tools"]}
        assert offered["run_steps"]["annotations"]["destructiveHint"] is True
        focus = {"tool": "focus_window", "window_id": form_id}
        refused = server.call("run_steps", steps=[focus, {**KEY, "window_id": form_id}])
        assert refused["content"][0]["text"].endswith("give one of focus_window"), refused
        named = server.call("run_steps", steps=[{**focus, "window_id": "Form"}])
        assert "window_id is 'Form', not a whole number" in named["content"][0]["text"]
        done = server.call("run_steps", steps=json.dumps([focus]), screenshot=True)
        assert [block["type"] for block in done["content"]] == ["text", "image"], done
    assert form.events("key") == []


def test_record_shows_every_act(peek: Program, form: Form, form_id: int, run: Run, tmp_path: Path) -> None:
    record = tmp_path / "record"
    peek.data("screenshot", form_id)
    x, y = form.centre("name")
    click = {"tool": "click", "window_id": form_id, "x": x, "y": y}
    typing = {"tool": "type_text", "window_id": form_id, "text": "my secret"}
    recording = {"PEEKABOO_RECORD": str(record)}
    run(click, typing, **recording)
    assert peek.error("click-text", form_id, "No such label", **recording)["code"] == "TEXT_NOT_FOUND"
    peek.error("press", form_id, "x", PEEKABOO_DENY_APPS="Form", **recording)
    page = Path(peek.data("report", record)["report"]).read_text("utf-8")
    assert record.stat().st_mode & 0o777 == 0o700
    assert page.count("<section>") == 4 and page.count("data:image/jpeg") == 5
    assert f"click {x},{y} " in page and f'd="M{x} {y}m' in page
    assert "typed 9 character(s)" in page and "POLICY_DENIED" in page and "TEXT_NOT_FOUND" in page
    assert "which may be private" in page and "From 20" in page
    assert b"my secret" not in b"".join(path.read_bytes() for path in record.iterdir())
    assert peek.error("report", tmp_path)["code"] == "INVALID_ARGUMENT"


def test_record_keeps_the_first_200_acts(peek: Program, form_id: int, tmp_path: Path) -> None:
    for number in range(1, 201):
        (tmp_path / f"act_{number:03d}.json").touch()
    peek.data("press", form_id, "x", PEEKABOO_RECORD=str(tmp_path))
    assert len([*tmp_path.glob("act_*.json")]) == 200


def test_session_leaves_nothing_behind(peek: Program, form: Form, form_id: int, tmp_path: Path) -> None:
    before: dict[str, Any] = machine_state(tmp_path, form.display)
    with initialized("package", peek.environment) as server:
        during = machine_state(tmp_path, form.display)
        x, y = form.centre("notes")
        server.call("take_window_screenshot", window_id=form_id)
        place = {"window_id": form_id, "x": x, "y": y}
        steps = [{"tool": "click", **place}, {"tool": "type_text", "window_id": form_id, "text": "a\né日本"}]
        steps += [{"tool": "scroll", **place, "direction": "down"}, {"tool": "move_pointer", **place}]
        answer = server.call("run_steps", steps=steps, screenshot=True)
        assert not answer["isError"], answer["content"][0]
        server.call("click_text", window_id=form_id, text="Details", verify=True)
        assert server.end() == 0
    assert during["programs"] != before["programs"]

    def is_as_before() -> bool:
        now = machine_state(tmp_path, form.display)
        clients = now.pop("X clients"), before["X clients"]  # the windows of the last test may close late
        return {**before, **now} == before and clients[0] <= clients[1]

    wait_for(is_as_before, "programs, devices and X clients are as before")

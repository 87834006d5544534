"""run-steps: several acts in one call, and the truth about each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from leftovers import machine_state
from mcp_server import initialized
from tk_windows import Opened, audit
from worlds import PATIENCE_S, Form, Program, wait_for

from peekaboo_min.automation import steps
from peekaboo_min.core.models import Result

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


def result_of(document: dict[str, Any]) -> str:
    """Return the outcome of each step and the error code, as text."""
    code = document["error"]["code"] if document.get("error") else ""
    return ", ".join(filter(None, [*(step["outcome"] for step in document["data"]["steps"]), code]))


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
    assert result_of(document) == ", ".join(["done"] * 8), document
    assert {"city": "Zurich", "job": "engineer"}.items() <= form.wait_for_event("details").items()
    assert {"name": "Ada", "mail": "ada@example.org"}.items() <= form.wait_for_event("sign").items()
    assert document["data"]["screenshot"]["window_id"] == form_id and picture.stat().st_size > 1000
    assert [line["action"] for line in audit(peek)] == ["click", "type", "click", "type", "click", "click"]


def test_steps_stop_at_the_first_that_fails(form: Form, form_id: int, run: Run) -> None:
    document = run(
        {"tool": "focus_window", "window_id": form_id},
        {"tool": "click_text", "window_id": form_id, "text": "No such label"},
        {"tool": "click_text", "window_id": form_id, "text": "Sign the book"},
    )
    assert result_of(document) == "done, failed, not reached, TEXT_NOT_FOUND"
    assert document["data"]["steps"][1]["error"] == "TEXT_NOT_FOUND"
    assert document["error"]["message"].startswith("step 2 of 3, click_text: no text equal to")
    assert form.events("sign") == []


def test_steps_stop_at_a_wait_that_is_not_met(form: Form, form_id: int, run: Run) -> None:
    document = run(
        {"tool": "wait_for", "title": "No such window", "timeout_s": 1},
        {"tool": "press_key", "window_id": form_id, "key": "x"},
    )
    assert result_of(document) == "failed, not reached, TIMEOUT"
    assert form.events("key") == []


# The second click would hit the window that the first click opens.
COVERS_ITSELF = """bind . <ButtonPress> {toplevel .p; wm overrideredirect .p 1; wm geometry .p 300x200+600+100
raise .p; update}"""


def test_steps_stop_after_an_act_in_doubt(opened: Opened, form: Form, form_id: int, run: Run) -> None:
    _, window_id = opened("Shy", COVERS_ITSELF)
    document = run(
        {"tool": "click", "window_id": window_id, "x": 150, "y": 100, "clicks": 3},
        {"tool": "press_key", "window_id": form_id, "key": "x"},
    )
    assert result_of(document) == "unknown, not reached, NOT_DELIVERED"
    assert form.events("key") == []


def test_screenshot_after_the_steps_is_of_the_last_window() -> None:
    picture = steps._picture(lambda window_id: Result(f"of window {window_id}"), [7, 8])
    assert picture.text == "of window 8"


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


def test_steps_with_a_new_window_that_nobody_opened_are_not_done(form_id: int, run: Run) -> None:
    document = run({"tool": "type_text", "window_id": "opened", "text": "x"})
    assert result_of(document) == "failed, WINDOW_NOT_FOUND"


KEY = {"tool": "press_key", "window_id": 7, "key": "x"}
CLICK = {"tool": "click", "window_id": 7, "x": 1, "y": 1}
# a second step that is refused, and a part of the error
BAD: list[tuple[Any, str]] = [
    ("click", "its tool is None"),
    ({"tool": "open", "app": "x"}, "its tool is 'open'"),
    ({"tool": "run_steps", "steps": []}, "its tool is 'run_steps'"),
    ({"tool": "click", "window_id": 7, "x": 1}, "y is missing"),
    ({**CLICK, "y": True}, "y is True, not a number"),
    ({**CLICK, "clicks": 4}, "clicks is 4"),
    ({**CLICK, "window_id": 7.5}, "window_id is 7.5, not a whole number"),
    ({**CLICK, "clicks": True}, "clicks is True, not a whole number"),
    ({**CLICK, "modifiers": "cmd"}, "not a list of text"),
    ({**CLICK, "modifiers": ["hyper"]}, "no modifier called 'hyper'"),
    ({**CLICK, "modifiers": ["fn"]}, "no modifier called 'fn'"),
    ({**KEY, "key": "hyper+x"}, "no modifier called 'hyper'"),
    ({**KEY, "keys": "x"}, "no parameter 'keys'"),
    ({"tool": "type_text", "window_id": 7, "text": ""}, "the text is empty"),
    ({"tool": "wait_for", "window_id": 7}, "no condition is given"),
    ({"tool": "wait_for", "window_id": 7, "text": "x", "timeout_s": 60}, "timeout_s is 60"),
]


@pytest.mark.parametrize(("bad", "problem"), BAD)
def test_steps_are_all_checked_first(form: Form, form_id: int, run: Run, bad: Any, problem: str) -> None:
    error = run({**KEY, "window_id": form_id}, bad)["error"]
    assert error["code"] == "INVALID_ARGUMENT"
    assert error["message"].startswith("step 2: ") and problem in error["message"]
    assert form.events("key") == []


def test_steps_are_at_least_one_and_at_most_20_and_allowed(run: Run) -> None:
    assert run()["error"]["code"] == run(*[KEY] * 21)["error"]["code"] == "INVALID_ARGUMENT"
    assert run(KEY, PEEKABOO_READONLY="1")["error"]["code"] == "POLICY_DENIED"


def test_steps_check_the_path_of_the_screenshot_first(form: Form, form_id: int, run: Run) -> None:
    for path in ("-", "last.gif"):
        error = run({**KEY, "window_id": form_id}, options=("--path", path))["error"]
        assert error["code"] == "INVALID_ARGUMENT" and ".png or .jpg" in error["message"]
    assert form.events("key") == []


def test_steps_with_an_unknown_window_name_are_refused(form: Form, form_id: int, run: Run) -> None:
    error = run({**KEY, "window_id": form_id}, {**KEY, "window_id": "Nobody"})["error"]
    assert error["code"] == "WINDOW_NOT_FOUND"
    assert error["message"].startswith("step 2: no window is called 'Nobody'; nothing was done; list the win")
    assert form.events("key") == []


def test_steps_file_that_is_not_json_is_refused(peek: Program, tmp_path: Path) -> None:
    for content in (b"[", b"\xff"):
        (tmp_path / "steps.json").write_bytes(content)
        error = peek.error("run-steps", tmp_path / "steps.json")
        assert error["code"] == "INVALID_ARGUMENT" and "steps.json is not JSON" in error["message"]


def test_steps_end_when_their_time_is_up(form_id: int, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("peekaboo_min.automation.steps.LONGEST_S", 4.0)
    wait = {"tool": "wait_for", "window_id": form_id, "text": "never there", "timeout_s": 40}
    document = run(wait, wait)
    assert result_of(document) == "failed, not reached, TIMEOUT"
    assert "waited 40 s" not in document["error"]["message"]


def test_server_takes_only_steps_whose_tools_it_offers(peek: Program, form: Form, form_id: int) -> None:
    environment = {**peek.environment, "PEEKABOO_TOOLS": "run_steps,focus_window"}
    with initialized("package", environment) as server:
        offered = {tool["name"]: tool for tool in server.ask("tools/list")["result"]["tools"]}
        assert offered["run_steps"]["annotations"]["destructiveHint"] is True
        focus = {"tool": "focus_window", "window_id": form_id}
        refused = server.call("run_steps", steps=[focus, {**KEY, "window_id": form_id}])
        assert refused["content"][0]["text"].endswith("give one of focus_window"), refused
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


def test_act_without_its_record_is_not_done(peek: Program, form: Form, form_id: int, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    error = peek.error("press", form_id, "x", PEEKABOO_RECORD=str(tmp_path / "file"))
    assert error["code"] == "FILE_IO_ERROR"
    assert form.events("key") == []


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

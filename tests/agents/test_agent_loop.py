"""The agent's loop with a scripted target and model: each way to go on or to end."""

from __future__ import annotations

import io
import json
import sys
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import pytest
from fake_ai import picture
from samples import app, error_of, window

from peekaboo_min.agents import vision_agent
from peekaboo_min.agents.actions import Action
from peekaboo_min.agents.run import AgentRun, AgentStep
from peekaboo_min.agents.vision_agent import AgentLoop
from peekaboo_min.ai.client import choose_model
from peekaboo_min.ai.grid import THOUSANDTHS, grid_over
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import ImageData, ImageInfo

CLICK = Action("click", {"x": 500, "y": 500})
LAST, DONE = Action("press", {"key": "a"}, is_last=True), Action("done")
NOOP, WAIT = Action("noop"), Action("wait")
FOR_TEXT = Action("wait", {"text": "Saved", "seconds": 0.5})


class Script:
    """A target and a model in one. They do the actions in turn, and record the calls.

    effects: of the acts: changed, nothing, missed (not delivered) or refused (an error).
    """

    def __init__(self, loop: Any, actions: list[Action], effects: str) -> None:
        loop._target = loop._planner = self
        self.actions, self.effects, self.calls = [*actions], effects.split(), ""

    def choose(self, _: AgentRun) -> Any:
        return app("Form", 50)

    def focus(self) -> None:
        self.calls += " focus"

    def observe(self, step: AgentStep) -> None:
        self.calls += " observe"
        step.window = window(7)
        step.image = ImageData(picture("jpeg", 80, 60), ImageInfo("jpg", 80, 60))
        step.grid = grid_over(THOUSANDTHS, 80, 60)

    def read_elements(self, step: AgentStep) -> None:
        self.calls += " read"

    def decide(self, _: AgentStep) -> Action:
        return self.actions.pop(0)

    def act(self, step: AgentStep) -> None:
        self.calls += f" {step.describe_action()}"
        effect = self.effects.pop(0)
        if effect == "refused":
            raise PeekabooError(ErrorCode.POLICY_DENIED, "the stop file exists")
        step.effect, step.changed, step.is_delivered = effect, effect == "changed", effect != "missed"

    def wait_for(self, *given: Any) -> str:
        self.calls += f" wait_for {given}"
        return "shown"

    def pause(self, seconds: float) -> None:
        self.calls += f" pause {seconds:g}"

    def follow(self) -> None:
        self.calls += " follow"


@pytest.fixture
def loop(environment: Callable[..., None]) -> Any:
    environment(OPENAI_API_KEY="k", PEEKABOO_DENY_APPS="com.example.notes")
    model = choose_model("openai/gpt-5.4-mini")
    return AgentLoop(AgentRun("Sign it", model.name, confidence=0.5), model, None)  # type: ignore[arg-type]


LOOK = " observe read"
PRESS, CLICKED, WAITED = f"{LOOK} press a", f"{LOOK} click 40,30", f"{LOOK} pause 1 follow"
REACHED = "the model reports that the goal is reached"
FINISHED = f"done: {REACHED}"
NOT = f"not confirmed: {REACHED}, but "
ACTED, MISSED = "none of your actions had a visible effect", "your action `press a` failed: missed"
UNSEEN = "your last action, `press a`, was delivered, but nothing"
LESS_SURE = "the model is not sure enough of `press a`: 0.4 is below 0.5"
SURE = {"confidence": 0.5}
UNSURE = Action("press", {"key": "a"}, confidence=0.4)
# options, actions, effects of the acts -> status; calls after the focus; the steps' effects. "-": the error
ENDS: list[tuple[dict[str, Any], list[Action], str, str, str, list[str]]] = [
    ({}, [DONE], "", FINISHED, LOOK, [REACHED]),
    ({}, [CLICK, DONE], "changed", FINISHED, f"{CLICKED}{LOOK}", ["changed", REACHED]),
    ({}, [LAST], "changed", FINISHED, f"{PRESS} observe", ["changed"]),
    ({}, [LAST, DONE], "nothing", f"not_confirmed: {NOT}{UNSEEN}", f"{PRESS}{LOOK}", ["nothing", "-"]),
    ({}, [CLICK, DONE, DONE], "nothing", f"not_confirmed: {NOT}{ACTED}", f"{CLICKED}{LOOK * 2}",
        ["nothing", f"asked again: {ACTED}", "-"]),
    ({}, [LAST, DONE, DONE], "missed", f"not_confirmed: {NOT}{MISSED}", f"{PRESS}{LOOK * 2}",
        ["missed", f"asked again: {MISSED}", "-"]),
    ({"max_steps": 5}, [CLICK, DONE, CLICK, DONE, CLICK], "nothing nothing changed",
        "limit: the goal was not reached in 5 step(s)", f"{CLICKED}{LOOK}" * 2 + f"{CLICKED} observe",
        ["nothing", f"asked again: {ACTED}"] * 2 + ["changed"]),
    ({}, [CLICK, DONE, FOR_TEXT, DONE], "nothing", f"not_confirmed: {NOT}{ACTED}",
        f"{CLICKED}{LOOK * 2} wait_for (7, 'Saved', 0.5) follow{LOOK}",
        ["nothing", f"asked again: {ACTED}", "shown", "-"]),
    ({}, [Action("wait", {"text": "A"}), DONE], "", FINISHED,
        f"{LOOK} wait_for (7, 'A', 10.0) follow{LOOK}", ["shown", REACHED]),
    ({}, [NOOP, NOOP], "", "unsure: the model does not know what to do", f"{WAITED}{LOOK}", ["waited", "-"]),
    ({}, [NOOP, WAIT, NOOP, DONE], "", FINISHED, f"{WAITED * 3}{LOOK}", ["waited"] * 3 + [REACHED]),
    (SURE, [UNSURE], "", f"unsure: {LESS_SURE}", f"{LOOK} observe", ["-"]),
    (SURE, [Action("done", confidence=0.5)], "", FINISHED, LOOK, [REACHED]),
    ({}, [UNSURE, DONE], "changed", FINISHED, f"{PRESS}{LOOK}", ["changed", REACHED]),
    ({}, [CLICK, DONE, LAST], "nothing nothing", f"not_confirmed: {NOT}{UNSEEN}",
        f"{CLICKED}{LOOK}{PRESS} observe", ["nothing", f"asked again: {ACTED}", "nothing"]),
    ({"deadline": 0.0}, [], "", "limit: the time limit of 120 s was reached before the goal", "", []),
    ({}, [CLICK], "refused", "POLICY_DENIED: the stop file exists", f"{CLICKED} observe", ["-"]),
    ({"dry_run": True}, [FOR_TEXT, CLICK], "", "dry_run: dry run: the model would click 40,30",
        f"{LOOK} pause 0.5 follow{LOOK}", ["waited", "not performed: this is a dry run"]),
]  # fmt: skip


def end_of(loop: Any, folder: Path) -> str:
    """Return the status and the message of the run, or of its error."""
    try:
        loop.work(str(folder))
    except PeekabooError as e:
        return f"{getattr(e, 'status', e.code_name)}: {e.message}"
    return f"{loop._run.status}: {loop._run.message}"


@pytest.mark.parametrize(("options", "actions", "acted", "end", "calls", "effects"), ENDS)
def test_agent_run_has_its_end_calls_and_effects(
    loop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, options: dict[str, Any],
    actions: list[Action], acted: str, end: str, calls: str, effects: list[str],
) -> None:  # fmt: skip
    script = Script(loop, actions, acted)
    monkeypatch.setattr(vision_agent, "pause", script.pause)
    monkeypatch.setattr(vision_agent, "time", SimpleNamespace(monotonic=count().__next__))
    vars(loop._run).update({"confidence": None, **options})
    assert end_of(loop, tmp_path / "run") == end
    focus = " focus" * options.keys().isdisjoint({"dry_run", "deadline"})
    assert script.calls == f"{focus}{calls}"
    steps = [json.loads(path.read_text()) for path in sorted((tmp_path / "run").glob("step_*.json"))]
    message = end.partition(": ")[2]
    assert [step["effect"] for step in steps] == [{"-": message}.get(effect, effect) for effect in effects]
    assert len([*(tmp_path / "run").glob("step_*.jpg")]) == len(effects)
    assert {step["milliseconds"] for step in steps} <= {1000, 2000}, "a clock that counts its calls"
    assert capsys.readouterr().err.count("step ") == len(effects)
    final = [step.number for step in filter(None, [loop._run.final])]
    assert final == [len(effects) + 1] * calls.endswith(" observe")


def test_agent_without_a_window_can_be_done(
    loop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Script, "observe", lambda *_: None)
    Script(loop, [Action("done", confidence=1.0)], "")
    assert end_of(loop, tmp_path / "run") == FINISHED
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["step_001.json"]


def test_agent_warns_of_an_assumed_grid(loop: Any, tmp_path: Path, capsys: Any) -> None:
    other = AgentLoop(loop._run, choose_model("openai/nobody"), None)  # type: ignore[arg-type]
    Script(other, [Action("done", confidence=1.0)], "")
    assert end_of(other, tmp_path / "run") == FINISHED
    warning = "grid assumed, not known: run agent --check-model"
    assert capsys.readouterr().err.splitlines()[0] == f"{loop._run.model_used}: {warning}"
    assert loop._run.grid.endswith(f"({warning})")


def test_agent_takes_no_screenshot_of_a_forbidden_app(loop: Any, tmp_path: Path) -> None:
    loop._target = SimpleNamespace(choose=lambda _: app("Notes", 60, "com.example.Notes"))
    error = error_of(loop.work, str(tmp_path / "run"))
    assert (error.code, (tmp_path / "run").exists()) == (ErrorCode.POLICY_DENIED, False)


def test_person_sees_the_whole_action_and_the_time_extends_the_deadline(
    loop: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    monkeypatch.setattr(vision_agent, "time", SimpleNamespace(monotonic=iter((10.0, 70.0)).__next__))
    loop._run.deadline = 100.0
    loop._ask_person(AgentStep(1, pixel_action=Action("type", {"text": "a" * 900 + "; rm -r ~"})), "why")
    assert loop._run.deadline == 160.0 and "; rm -r ~" in capsys.readouterr().err


@pytest.mark.parametrize("slow", ["focus", "observe", "read_elements", "decide"])
def test_agent_makes_no_call_after_the_one_that_used_up_the_time(loop: Any, slow: str) -> None:
    calls = []

    def call(name: str) -> Action:
        calls.append(name)
        if name == slow:
            loop._run.deadline = 0.0
        return Action("click", CLICK.values, confidence=1.0)

    names = ("focus", "observe", "read_elements", "act")
    loop._target = SimpleNamespace(**{name: lambda *_, name=name: call(name) for name in names})
    if slow == "decide":  # else the planner itself must not ask the model
        loop._planner = SimpleNamespace(decide=lambda _: call("decide"))
    error = error_of(loop._take, AgentStep(1))
    assert (error.code, calls[-1]) == (ErrorCode.TIMEOUT, slow)
    assert error.message == "the time limit of 120 s was reached before the goal"

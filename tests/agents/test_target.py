"""The agent's acts: tool calls, effects, doubts about `done`, and runs that end before an act."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Optional

import pytest
from samples import app, error_of, window

from peekaboo_min.agents import vision_agent
from peekaboo_min.agents.actions import Action
from peekaboo_min.agents.mcp_client import ToolAnswer
from peekaboo_min.agents.run import AgentRun, AgentStep, doubt_about
from peekaboo_min.agents.target import AgentTarget
from peekaboo_min.agents.vision_agent import AgentLoop
from peekaboo_min.ai.client import choose_model
from peekaboo_min.ai.grid import PIXELS, grid_over
from peekaboo_min.automation.coordinates import find_record
from peekaboo_min.automation.listing import window_data
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import ImageData, ImageInfo, Rect

SAVE = Action("press", {"key": "cmd+s"})
LAST_SAVE = Action("press", {"key": "cmd+s"}, is_last=True)


def act(action: Action = SAVE, changed: Optional[bool] = False, **more: Any) -> AgentStep:
    effect = {True: "the window changed", False: "nothing changed", None: "it is not known"}[changed]
    return AgentStep(1, action=action, **{"effect": effect, "changed": changed, **more})


WORKED, DONE, WAITED = act(changed=True), act(Action("done", is_last=True)), act(Action("wait"))
MISSED = act(LAST_SAVE, True, effect="another window got it", is_delivered=False)


@pytest.mark.parametrize(
    "steps, doubt",
    [
        ([], ""),
        ([WORKED], ""),
        ([act(LAST_SAVE, True)], ""),
        ([WORKED, act(LAST_SAVE)], "your last action, `press cmd+s`, was delivered, but nothing changed"),
        ([act(LAST_SAVE, None)], "your last action, `press cmd+s`, was delivered, but it is not known"),
        ([act(LAST_SAVE), WORKED], ""),
        ([WORKED, MISSED], "your action `press cmd+s` failed: another window got it"),
        ([WORKED, MISSED, DONE, WAITED], "your action `press cmd+s` failed: another window got it"),
        ([WORKED, MISSED, DONE, WORKED], ""),
        ([act()], "none of your actions had a visible effect"),
        ([act(), DONE], "none of your actions had a visible effect"),
        ([WAITED, DONE], ""),
    ],
)
def test_claim_after_acts_without_effect_is_doubted(steps: list[AgentStep], doubt: str) -> None:
    """ "Repeat until `"done": true` or safety limit triggers": the model is asked again once."""
    assert doubt_about(steps) == doubt


class Server:
    """A server that records calls and answers each act alike; window 7 is in front."""

    def __init__(self, **data: Any) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.data = data

    def call(self, tool: str, arguments: dict[str, Any]) -> ToolAnswer:
        if tool == "list_windows":
            return ToolAnswer("", {"windows": [window_data(window(7))]})
        self.calls.append((tool, arguments))
        return ToolAnswer("", self.data)


def test_agent_never_chooses_an_app_by_likeness() -> None:
    server = Server(target_application_info={"app_name": "Notes", "pid": 60, "bundle_id": None})
    assert AgentTarget(server)._app("note") == app("Notes", 60)  # type: ignore[arg-type]
    error = error_of(AgentTarget(server)._app, "Notas")  # type: ignore[arg-type]
    assert (error.code, "Notes" in error.hint) == (ErrorCode.APP_NOT_FOUND, True)


AT = {"x": 6, "y": 5}
PIXEL = {"x": 60, "y": 50, "screenshot_id": "ab"}


@pytest.mark.parametrize(
    "kind, values, tool, arguments",
    [
        ("click", {**AT, "modifiers": ["cmd"]}, "click", {**PIXEL, "modifiers": ["cmd"], "verify": True}),
        ("move", AT, "move_pointer", PIXEL),
        ("drag", {**AT, "to_x": 2, "to_y": 9}, "drag", {**PIXEL, "to_x": 20, "to_y": 90, "verify": True}),
        ("press", {"key": "a", "hold_ms": 500}, "press_key", {"key": "a", "hold_ms": 500, "verify": True}),
    ],
)
def test_act_becomes_a_call_with_all_its_properties(
    kind: str, values: dict[str, Any], tool: str, arguments: dict[str, Any]
) -> None:
    server = Server(summary="done", delivered=True)
    act_in(server, AgentStep(1, screenshot_id="ab", action=Action(kind, values)))
    assert server.calls == [(tool, {**arguments, "window_id": 7})]


def test_act_on_a_screen_image_uses_no_earlier_pixels() -> None:
    server = Server(summary="done", delivered=True)
    act_in(server, AgentStep(1, action=Action("click", AT)))
    with pytest.raises(PeekabooError, match="screenshot_id must have 16 hexadecimal digits"):
        find_record("session", window(7), server.calls[0][1]["screenshot_id"])


def act_in(server: Server, step: AgentStep) -> None:
    """Do the step's action in window 7, seen in an image ten times as wide and high as the grid."""
    step.window, step.image = window(7), ImageData(b"", ImageInfo("jpg", 100, 100))
    assert step.action
    step.pixel_action = step.action.in_pixels(grid_over(PIXELS, 10, 10), 100, 100)
    target = AgentTarget(server)  # type: ignore[arg-type]
    target._go_to(step.window)
    target.act(step)


def test_wait_for_a_text_lasts_at_least_a_second_as_the_tool_requires() -> None:
    server = Server()
    AgentTarget(server).wait_for(7, "Saved", 0.2)  # type: ignore[arg-type]
    assert server.calls == [("wait_for", {"window_id": 7, "text": "Saved", "timeout_s": 1.0})]


NEW_WINDOW = {"new_window": {"window_id": 8, "title": "Save"}}
RECT = {"x": 10, "y": 20, "width": 30, "height": 40, "image_width": 200}


@pytest.mark.parametrize(
    "data, changed, effect",
    [
        ({"changed": True, "changed_rect": RECT}, True, "the window changed"),
        ({"changed": False, "effect_ms": 1500}, False, "no change within 1.5 s"),
        ({"changed": None}, None, "its effect is not known"),
        ({"changed": False, "delivered": False}, False, "but the window did not receive it"),
        ({"changed": True, "window_closed": True}, True, "the window closed"),
        ({"changed": True, **NEW_WINDOW}, True, "the window changed; window 8 'Save' opened"),
    ],
)
def test_act_effect_is_read_from_the_tools_data(
    data: dict[str, Any], changed: Optional[bool], effect: str
) -> None:
    step = AgentStep(1, action=SAVE)
    act_in(Server(**{"summary": "pressed cmd+s; a; b", "delivered": True, **data}), step)
    assert (step.effect, step.changed) == (effect, changed)
    assert step.is_delivered == ("delivered" not in data)
    # in the pixels of the model's image
    assert step.changed_rect == (Rect(5, 10, 15, 20) if "changed_rect" in data else None)


@pytest.fixture
def loop(environment: Callable[..., None]) -> Any:
    """Return a loop that takes no screenshots and asks no model."""
    environment(OPENAI_API_KEY="k", PEEKABOO_DENY_APPS="com.example.notes")
    model, server = choose_model("openai/gpt-5.4-mini"), Any
    return AgentLoop(AgentRun("Sign it", model.name, confidence=0.5), model, server)  # type: ignore[arg-type]


def test_agent_takes_no_screenshot_of_a_forbidden_app(loop: Any, tmp_path: Path) -> None:
    loop._target = SimpleNamespace(choose=lambda _: app("Notes", 60, "com.example.Notes"))
    error = error_of(loop.work, str(tmp_path / "run"))
    assert (error.code, (tmp_path / "run").exists()) == (ErrorCode.POLICY_DENIED, False)


def test_agent_goes_on_if_the_model_is_as_sure_as_required(loop: Any) -> None:
    loop._target = SimpleNamespace(focus=lambda: None, observe=lambda _: None, read_elements=lambda _: None)
    loop._planner = SimpleNamespace(decide=lambda step: Action("done", confidence=step.number / 2))
    assert loop._take(AgentStep(1)) == "done"
    assert error_of(loop._take, AgentStep(0)).code is ErrorCode.AI_PROVIDER_ERROR


def test_time_for_the_persons_answer_extends_the_deadline(loop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    monkeypatch.setattr(vision_agent, "time", SimpleNamespace(monotonic=iter((10.0, 70.0)).__next__))
    loop._run.deadline = 100.0
    loop._ask_person(AgentStep(1), "")
    assert loop._run.deadline == 160.0


def test_wait_ends_at_the_time_limit(loop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(vision_agent, "pause", pauses.append)
    loop._target, loop._run.deadline = SimpleNamespace(follow=lambda: None), time.monotonic() + 5
    loop._wait(AgentStep(1), Action("wait", {"seconds": 45.0}))
    assert 0 < pauses[0] <= 5


@pytest.mark.parametrize("slow", ["focus", "observe", "read_elements", "decide"])
def test_agent_makes_no_call_after_the_one_that_used_up_the_time(loop: Any, slow: str) -> None:
    calls = []

    def call(name: str) -> Action:
        calls.append(name)
        if name == slow:
            loop._run.deadline = 0.0
        return Action("click", AT, confidence=1.0)

    names = ("focus", "observe", "read_elements", "act")
    loop._target = SimpleNamespace(**{name: lambda *_, name=name: call(name) for name in names})
    if slow == "decide":  # else the planner itself must not ask the model
        loop._planner = SimpleNamespace(decide=lambda _: call("decide"))
    error = error_of(loop._take, AgentStep(1))
    assert (error.code, calls[-1]) == (ErrorCode.TIMEOUT, slow)
    assert error.message == "the time limit of 120 s was reached before the goal"

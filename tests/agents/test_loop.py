"""Acts without effect and unconfirmed reports: when a run is done, asked again, not confirmed or stuck."""

from __future__ import annotations

from typing import Any, Optional

import pytest
from samples import window

from peekaboo_min.agents.actions import Action
from peekaboo_min.agents.loop import Progress
from peekaboo_min.agents.mcp_client import ToolAnswer
from peekaboo_min.agents.run import AgentStep, AgentStop
from peekaboo_min.agents.target import AgentTarget
from peekaboo_min.core.models import ImageData, ImageInfo, Point, Rect

SAVE = Action("press", {"key": "cmd+s"})
LAST_SAVE = Action("press", {"key": "cmd+s"}, is_last=True)


def act(
    action: Action, effect: str = "nothing changed", changed: Optional[bool] = False, **more: Any
) -> AgentStep:
    return AgentStep(1, action=action, effect=effect, changed=changed, **more)


def working(action: Action) -> AgentStep:
    return act(action, "the window changed", True)


def click(x: float, y: float) -> AgentStep:
    return act(Action("click", {"x": x, "y": y}, f"try {x}"), pixel=Point(x, y))


def test_a_last_act_that_was_delivered_and_changed_something_ends_the_run() -> None:
    """ "Repeat until `"done": true` or safety limit triggers." """
    assert Progress().note_act(working(LAST_SAVE))
    assert not Progress().note_act(working(SAVE))


@pytest.mark.parametrize("effect, changed", [("nothing changed", False), ("it is not known", None)])
def test_a_last_act_without_a_visible_effect_is_one_question_and_then_not_confirmed(
    effect: str, changed: Optional[bool]
) -> None:
    """ "Enable an LLM-vision agent loop: `focus → screenshot → decide → act → verify`." """
    progress = Progress()
    assert not progress.note_act(act(LAST_SAVE, effect, changed))
    (fact,) = progress.facts()
    assert "`press cmd+s`, was delivered" in fact and effect in fact
    with pytest.raises(AgentStop) as caught:
        progress.note_report()
    assert caught.value.status == "not_confirmed" and "not confirmed" in caught.value.message


def test_an_act_after_that_question_continues_the_run() -> None:
    """ "Repeat until `"done": true` or safety limit triggers." """
    progress = Progress()
    progress.note_act(act(LAST_SAVE))
    assert not progress.note_act(working(Action("press", {"key": "tab"})))
    assert progress.facts() == [] and progress.note_report() == ""


@pytest.mark.parametrize("effect, changed", [("WINDOW_COVERED", False), ("another window got it", True)])
def test_a_refused_or_missed_act_never_ends_the_run(effect: str, changed: bool) -> None:
    """ "Parse action JSON and execute `click`. Repeat until `"done": true`": not executed, not done."""
    progress = Progress()
    progress.note_act(working(SAVE))
    assert not progress.note_act(act(LAST_SAVE, effect, changed, is_delivered=False))
    assert effect in progress.note_report(), "asked once more"
    assert effect in progress.facts()[0]
    with pytest.raises(AgentStop):
        progress.note_report()


def test_a_report_without_any_effect_is_asked_once_more() -> None:
    progress = Progress()
    progress.note_act(act(SAVE))
    assert progress.note_report() == "none of your actions had a visible effect"


def test_a_goal_that_was_reached_before_the_run_is_done() -> None:
    assert Progress().note_report() == ""


def test_the_same_act_without_effect_is_reported_at_three_and_stuck_at_five() -> None:
    progress = Progress()
    facts = []
    for shift in range(4):
        progress.note_act(click(100 + shift, 50))
        facts.append(progress.facts())
    assert facts[:2] == [[], []]
    assert facts[2] == ["`click 102,50` had no effect 3 times. Do something else."]
    assert "4 times" in facts[3][0]
    with pytest.raises(AgentStop) as caught:
        progress.note_act(click(100, 50))
    assert caught.value.status == "stuck" and "click 100,50" in caught.value.message


def test_two_acts_by_turns_are_counted_each() -> None:
    progress = Progress()
    for _ in range(4):
        progress.note_act(click(100, 50))
        progress.note_act(act(SAVE))
    with pytest.raises(AgentStop):
        progress.note_act(click(100, 50))


def test_other_places_and_effects_between_are_no_repetition() -> None:
    progress = Progress()
    for at in range(9):
        progress.note_act(click(100 + 20 * at, 50))
    assert progress.facts() == []
    for _ in range(3):
        progress.note_act(act(SAVE))
        progress.note_act(act(SAVE))
        progress.note_act(working(SAVE))
    assert progress.facts() == []


class Server:
    """Notes the calls of tools, and answers each alike."""

    def __init__(self, **data: Any) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.data = data

    def call(self, tool: str, arguments: dict[str, Any]) -> ToolAnswer:
        self.calls.append((tool, arguments))
        return ToolAnswer("", self.data, (), False)


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
def test_an_action_becomes_a_call_with_all_that_it_says(
    kind: str, values: dict[str, Any], tool: str, arguments: dict[str, Any]
) -> None:
    server, action = Server(), Action(kind, values)
    step = AgentStep(1, window=window(7), screenshot_id="ab", action=action)
    step.pixel, step.end_pixel = action.place and Point(60, 50), action.end and Point(20, 90)
    AgentTarget(server).act(step)
    assert server.calls == [(tool, {**arguments, "window_id": 7})]


RECT = {"x": 10, "y": 20, "width": 30, "height": 40, "image_width": 200}


@pytest.mark.parametrize(
    "data, effect, changed",
    [
        ({"changed": True, "changed_rect": RECT}, "the window changed", True),
        ({"changed": False}, "nothing changed", False),
        ({"changed": None}, "it is not known whether anything changed", None),
        ({"changed": False, "delivered": False}, "nothing changed; another window got it", False),
        ({"window_closed": True}, "the window closed", True),
        ({"changed": False, "new_window": {"title": "Save"}}, "the window 'Save' came", True),
    ],
)
def test_an_effect_is_noted_in_the_pixels_of_the_models_image(
    data: dict[str, Any], effect: str, changed: Optional[bool]
) -> None:
    step = AgentStep(1, window=window(7), action=SAVE, image=ImageData(b"", ImageInfo("jpg", 100, 80)))
    AgentTarget(Server(**data)).act(step)
    assert (step.effect, step.changed) == (effect, changed)
    assert step.is_delivered == ("delivered" not in data)
    assert step.changed_rect == (Rect(5, 10, 15, 20) if "changed_rect" in data else None)

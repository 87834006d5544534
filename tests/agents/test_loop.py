"""Acts without effect and unconfirmed reports: when a run is done, asked again, not confirmed or stuck."""

from __future__ import annotations

from typing import Any, Optional

import pytest
from samples import window

from peekaboo_min.agents.actions import Action
from peekaboo_min.agents.loop import doubt_about, facts, has_reported, repeats
from peekaboo_min.agents.mcp_client import ToolAnswer
from peekaboo_min.agents.run import AgentStep
from peekaboo_min.agents.target import AgentTarget
from peekaboo_min.core.models import ImageData, ImageInfo, Point, Rect

SAVE = Action("press", {"key": "cmd+s"})
LAST_SAVE = Action("press", {"key": "cmd+s"}, is_last=True)


def act(action: Action = SAVE, changed: Optional[bool] = False, **more: Any) -> AgentStep:
    effect = {True: "the window changed", False: "nothing changed", None: "it is not known"}[changed]
    return AgentStep(1, action=action, **{"effect": effect, "changed": changed, **more})


def click(x: float, y: float) -> AgentStep:
    return act(Action("click", {"x": x, "y": y}, f"try {x}"), pixel=Point(x, y))


WORKED, DONE, WAITED = act(changed=True), act(Action("done", is_last=True)), act(Action("wait"))
MISSED = act(LAST_SAVE, True, effect="another window got it", is_delivered=False)


@pytest.mark.parametrize(
    "steps, has_already_reported, doubt",
    [
        ([], False, ""),
        ([WORKED], False, ""),
        ([act(LAST_SAVE, True)], True, ""),
        (
            [WORKED, act(LAST_SAVE)],
            True,
            "your last action, `press cmd+s`, was delivered, but nothing changed",
        ),
        ([act(LAST_SAVE, None)], True, "your last action, `press cmd+s`, was delivered, but it is not known"),
        ([act(LAST_SAVE), WORKED], False, ""),
        ([WORKED, MISSED], False, "your last action failed: another window got it"),
        ([WORKED, MISSED, DONE, WAITED], True, "your last action failed: another window got it"),
        ([WORKED, MISSED, DONE, WORKED], False, ""),
        ([act()], False, "none of your actions had a visible effect"),
        ([act(), DONE], True, "none of your actions had a visible effect"),
        ([WAITED, DONE], True, ""),
    ],
)
def test_a_report_is_doubted_where_the_acts_show_no_effect(
    steps: list[AgentStep], has_already_reported: bool, doubt: str
) -> None:
    """ "Repeat until `"done": true` or safety limit triggers": the model is asked again once."""
    assert (has_reported(steps), doubt_about(steps)) == (has_already_reported, doubt)
    expected = (
        f"You reported that the goal is reached, but {doubt}." if doubt and has_already_reported else ""
    )
    assert "".join(facts(steps)).startswith(expected) and bool(facts(steps)) == bool(expected)


@pytest.mark.parametrize(
    "steps, count",
    [
        ([], 0),
        ([click(100 + shift, 50) for shift in range(4)], 4),
        ([click(100, 50), act()] * 4, 4),
        ([click(100 + 20 * at, 50) for at in range(9)], 1),
        ([act(), act(), WORKED] * 3, 0),
        ([act(), WAITED, act()], 2),
    ],
)
def test_a_repetition_is_the_same_act_at_nearly_the_same_place(steps: list[AgentStep], count: int) -> None:
    assert repeats(steps) == count


def test_the_model_hears_of_an_act_that_had_no_effect_three_times() -> None:
    assert facts([WORKED, *[click(100, 50)] * 2]) == []
    assert facts([WORKED, *[click(100, 50)] * 3]) == [
        "`click 100,50` had no effect 3 times. Do something else."
    ]


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

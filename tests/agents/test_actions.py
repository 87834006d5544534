"""Reading a vision model's action: accepted replies, and refused ones with the reason."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest
from fake_ai import example_of

from peekaboo_min.agents.actions import _DEFAULTS, ACTION_SCHEMA, ACTIONS, Action, read_action
from peekaboo_min.ai.grid import PIXELS, THOUSANDTHS, grid_over
from peekaboo_min.core.errors import PeekabooError
from peekaboo_min.tools.table import TOOLS

GRID = grid_over(PIXELS, 800, 600)
CLICK: dict[str, Any] = {"action": "click", "x": 12, "y": 34, "done": False, "why": "Go on"}
AT, DOWN = {"x": 1, "y": 2}, {"direction": "down"}
DRAG = {"action": "drag", "x": 1, "y": 2, "to_x": 0, "to_y": 9}
CLICKED = Action("click", {"x": 12, "y": 34}, "Go on")
NOTHING = dict.fromkeys(set(ACTION_SCHEMA["properties"]) - {"action", "done", "why"})


def read(reply: Any) -> Action:
    return read_action(reply if isinstance(reply, str) else json.dumps(reply), GRID)


def made(kind: str, **values: Any) -> Action:
    return Action(kind, values, is_last=kind == "done")


@pytest.mark.parametrize(
    "reply, expected",
    [
        (CLICK, CLICKED),
        ({**NOTHING, **CLICK, "text": "", "modifiers": [], "button": "left", "clicks": 1}, CLICKED),
        ({"action": "click", "x": 0, "y": 599.5}, made("click", x=0, y=599.5)),
        ({**CLICK, "done": True}, Action("click", CLICKED.values, "Go on", is_last=True)),
        ({"action": "noop", "confidence": 1}, Action("noop", confidence=1.0)),
        ({"action": "noop", "done": True}, Action("done", is_last=True)),
        (
            {"action": "click", **AT, "button": "right", "clicks": 2, "modifiers": ["Control"]},
            made("click", **AT, button="right", clicks=2, modifiers=["ctrl"]),
        ),
        ({**DRAG, "clicks": 1}, made("drag", x=1, y=2, to_x=0, to_y=9)),
        ({"action": "scroll", **DOWN, "amount": 10.0, **AT}, made("scroll", **DOWN, amount=10, **AT)),
        ({"action": "scroll", "direction": "left"}, made("scroll", direction="left")),
        ({"action": "type", "text": "Zürich\n日本 😀"}, made("type", text="Zürich\n日本 😀")),
        ({"action": "type", "text": "", "replace": True}, made("type", text="", replace=True)),
        ({"action": "press", "key": "Enter"}, made("press", key="return")),
        ({"action": "press", "key": "cmd+t", "modifiers": ["shift"]}, made("press", key="cmd+shift+t")),
        ({"action": "wait", "text": "Saved", "seconds": 20}, made("wait", text="Saved", seconds=20.0)),
        ({**NOTHING, "action": "wait", "x": 0, "y": 0}, made("wait")),
        ({"action": "done"}, made("done")),
        ("```json\n" + json.dumps(CLICK) + "\n```", CLICKED),
        ("I shall click it.\n" + json.dumps(CLICK, indent=2) + "\nThen I type {the name}.", CLICKED),
        ({**CLICK, "why": 'a } in "quotes" { too'}, Action("click", CLICKED.values, 'a } in "quotes" { too')),
        ({**CLICK, "action": "left_click"}, CLICKED),
        ({"action": "right_click", "x": 1, "y": 2, "button": None}, made("click", x=1, y=2, button="right")),
        ({"action": "double_click", "x": 1, "y": 2, "clicks": 1}, made("click", x=1, y=2, clicks=2)),
        ({"action": "hotkey", "key": "ctrl+c"}, made("press", key="ctrl+c")),
        ({"action": "finished"}, made("done")),
    ],
)
def test_read_action_accepts_a_valid_reply(reply: Any, expected: Action) -> None:
    assert read(reply) == expected


@pytest.mark.parametrize(
    "reply, pattern",
    [
        ("click at 12,34", "contains no JSON object"),
        ('{"a":' * 100_000, "contains no JSON object"),
        ("[1, 2]", "contains no JSON object"),
        ({}, "action is None; it must be one of click, move"),
        ({"action": "Click", "x": 1, "y": 1}, "action is 'Click'"),
        ({**CLICK, "target": "OK"}, "there is no property 'target'"),
        ({"action": "click", "x": 1}, "y is missing"),
        ({**CLICK, "x": None}, "x is missing"),
        ({**CLICK, "x": "12"}, "x is '12'"),
        ({**CLICK, "y": True}, "y is True"),
        ({**CLICK, "x": 800}, "x is 800, outside the grid of 800x600"),
        (
            {**CLICK, "button": "wheel"},
            "is 'wheel'; it must be of the type string, one of left, right, middle",
        ),
        ({**CLICK, "clicks": 4}, "clicks is 4.0; it must be of the type integer, 1 to 3"),
        ({**CLICK, "modifiers": "ctrl"}, "modifiers is 'ctrl'"),
        ({**CLICK, "modifiers": ["hyper"]}, "there is no modifier called 'hyper'"),
        ({**CLICK, "to_x": 0}, "to_x does not belong to the action click; do one thing at a time"),
        ({"action": "type", "text": "Ada", "x": 0, "y": 0}, "x does not belong to the action type"),
        ({"action": "drag", "x": 1, "y": 2, "to_x": 3}, "to_y is missing"),
        ({"action": "drag", "x": 1, "y": 2, "to_x": 3, "to_y": 600}, "y is 600, outside the grid"),
        ({"action": "scroll", "direction": "down", "x": 5}, "x or y is missing"),
        ({"action": "scroll", "direction": "up", "amount": 1.5}, "amount is 1.5"),
        ({"action": "type", "text": ""}, "text is missing"),
        ({"action": "type", "text": "a\x1b[2J"}, "text contains the character"),
        ({"action": "press", "key": "banana"}, "there is no key called 'banana'"),
        ({**CLICK, "done": "false"}, "done is 'false'"),
        ({"action": "done", "done": False}, "the action is done, but done is false"),
        ({**CLICK, "why": 5}, "why is 5.0; it must be of the type string"),
        ({**CLICK, "confidence": 1.1}, "confidence is 1.1; it must be of the type number, 0 to 1"),
    ],
)
def test_read_action_refuses_an_invalid_reply_with_the_reason(reply: Any, pattern: str) -> None:
    with pytest.raises(PeekabooError, match=pattern):
        read(reply)


@pytest.mark.parametrize(
    "action, with_text, without",
    [
        (made("click", x=1.5, y=2, button="right", clicks=2), "click 2,2 button right clicks 2", ""),
        (made("drag", x=1, y=2, to_x=3, to_y=4.26), "drag 1,2 to 3,4", ""),
        (made("scroll", direction="up"), "scroll up", ""),
        (made("type", text="hunter2"), "type 'hunter2'", "type 7 character(s)"),
        (made("press", key="cmd+shift+t", repeat=2), "press cmd+shift+t repeat 2", ""),
        (made("wait", text="Saved"), "wait text 'Saved'", "wait text 5 character(s)"),
        (made("done"), "done", ""),
    ],
)
def test_action_is_described_with_and_without_its_text(action: Action, with_text: str, without: str) -> None:
    assert (action.describe(), action.describe(shows_text=False)) == (with_text, without or with_text)


@pytest.mark.parametrize("name", [name for name, kind in ACTIONS.items() if kind.tool])
def test_action_has_the_parameters_and_defaults_of_its_tool(name: str) -> None:
    kind = ACTIONS[name]
    parameters = inspect.signature(TOOLS[kind.tool].load()).parameters
    for property_name in (*kind.required, *kind.optional):
        default = parameters[property_name].default
        known = _DEFAULTS.get(property_name) or None  # an empty text or list is left out as well
        assert known == (None if default is inspect.Parameter.empty else default or None), property_name


def test_action_points_become_pixels() -> None:
    grid = grid_over(THOUSANDTHS, 800, 600)
    drag = made("drag", x=100, y=1000, to_x=0, to_y=500, button="right")
    assert drag.in_pixels(grid, 800, 600).values == {**drag.values, "x": 80, "y": 599, "to_x": 0, "to_y": 300}
    assert made("scroll", direction="up").in_pixels(grid, 800, 600).describe() == "scroll 400,300 up"
    assert made("press", key="a").in_pixels(grid, 800, 600) == made("press", key="a")


def test_action_schema_is_one_that_openai_and_anthropic_enforce() -> None:
    """Both demand a closed object and enforce no limits; OpenAI demands every property in `required`."""
    properties = ACTION_SCHEMA["properties"]
    assert ACTION_SCHEMA["additionalProperties"] is False
    assert set(ACTION_SCHEMA["required"]) == set(properties)
    assert {name for part in properties.values() for name in part} == {"type", "enum", "items", "description"}
    assert read({**example_of(ACTION_SCHEMA), "action": "done", "done": True}).kind == "done"

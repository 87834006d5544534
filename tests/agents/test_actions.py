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
AT = {"x": 1, "y": 2}
TO = {**AT, "to_x": 0, "to_y": 9}
# each kind of action with all its properties
WHOLE: dict[str, dict[str, Any]] = {
    "click": {**AT, "button": "right", "clicks": 2, "modifiers": ["ctrl"]},
    "move": AT,
    "drag": {**TO, "button": "middle"},
    "scroll": {"direction": "down", "amount": 10, **AT},
    "type": {"text": "Zürich\n日本 😀", "replace": True},
    "press": {"key": "cmd+shift+t", "repeat": 50, "hold_ms": 5000},
    "open": {"app": "Form", "path": "/a", "url": "https://a.example"},
    "wait": {"text": "Saved", "seconds": 44.5},
    "noop": {},
    "done": {},
}
# the names in the vendors' own tools, and the properties that the name stands for
ALIASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "left_click": ("click", AT, {}),
    "right_click": ("click", AT, {"button": "right"}),
    "middle_click": ("click", AT, {"button": "middle"}),
    "double_click": ("click", {**AT, "clicks": 1}, {"clicks": 2}),
    "triple_click": ("click", AT, {"clicks": 3}),
    "mouse_move": ("move", AT, {}),
    "left_click_drag": ("drag", TO, {}),
    **dict.fromkeys(("key", "keypress", "hotkey"), ("press", {"key": "a"}, {})),
    "screenshot": ("wait", {}, {}),
    "finished": ("done", {}, {}),
}
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
        *(({"action": kind, **values}, made(kind, **values)) for kind, values in WHOLE.items()),
        *(
            ({"action": alias, **given}, made(kind, **{**given, **more}))
            for alias, (kind, given, more) in ALIASES.items()
        ),
        ({"action": "drag", **TO, "clicks": 1}, made("drag", **TO)),
        ({"action": "scroll", "direction": "left"}, made("scroll", direction="left")),
        ({"action": "type", "text": "", "replace": True}, made("type", text="", replace=True)),
        ({"action": "press", "key": "Enter"}, made("press", key="return")),
        ({"action": "press", "key": "Command+t", "modifiers": ["shift"]}, made("press", key="cmd+shift+t")),
        ({"action": "wait", "seconds": 45}, made("wait", seconds=45)),
        ({**NOTHING, "action": "wait", "x": 0, "y": 0}, made("wait")),
        ("```json\n" + json.dumps(CLICK) + "\n```", CLICKED),
        ("I shall click it.\n" + json.dumps(CLICK, indent=2) + "\nThen I type {the name}.", CLICKED),
        ({**CLICK, "why": 'a } in "quotes" { too'}, Action("click", CLICKED.values, 'a } in "quotes" { too')),
        ({**CLICK, "why": "a\x1bb"}, Action("click", CLICKED.values, "a\x1bb")),
    ],
    ids=lambda cell: str(cell)[:40],
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
        ({**CLICK, "action": ["click"]}, r"action is \['click'\]"),
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
        ({**CLICK, "modifiers": ["ctrl", 5]}, r"modifiers is \['ctrl', 5.0\]"),
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
        ({**CLICK, "confidence": "high"}, "confidence is 'high'; it must be of the type number, 0 to 1"),
        ({"action": "wait", "seconds": 45.5}, "seconds is 45.5; it must be of the type number, 0 to 45"),
    ],
    ids=lambda cell: str(cell)[:40],
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
        (read({"action": "click", **WHOLE["click"]}), "click 1,2 button right clicks 2 modifiers ctrl", ""),
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

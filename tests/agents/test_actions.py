"""Reading a vision model's action: accepted replies, and refused ones with the reason."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from fake_ai import example_of

from peekaboo_min.agents.actions import _DEFAULTS, ACTION_SCHEMA, ACTIONS, Action, read_action
from peekaboo_min.ai.grid import PIXELS, THOUSANDTHS, grid_over
from peekaboo_min.core.errors import PeekabooError
from peekaboo_min.tools.table import TOOLS

GRID = grid_over(PIXELS, 800, 600)
CLICK: dict[str, Any] = {"action": "click", "x": 12, "y": 34, "done": False, "why": "Go on"}
NOTHING = dict.fromkeys(set(ACTION_SCHEMA["properties"]) - {"action", "done", "why"})


def read(reply: Any) -> Action:
    return read_action(reply if isinstance(reply, str) else json.dumps(reply), GRID)


def made(kind: str, **values: Any) -> Action:
    return Action(kind, values, is_last=kind == "done")


# a reply and its action, then a reply and the reason to refuse it
BLOCKS = Path(__file__).with_name("replies.jsonl").read_text("utf-8").split("\n\n")
ACCEPTED, REFUSED = ([json.loads(line) for line in block.splitlines()] for block in BLOCKS)
UNUSED: dict[str, Any] = {"text": "", "modifiers": [], "button": "left", "clicks": 1}
ACCEPTED += [
    [{**NOTHING, **CLICK, **UNUSED}, {"kind": "click", "values": {"x": 12, "y": 34}, "why": "Go on"}],
    [{**NOTHING, "action": "wait", "x": 0, "y": 0}, {"kind": "wait"}],
]


@pytest.mark.parametrize(("reply", "action"), ACCEPTED, ids=lambda cell: str(cell)[:40])
def test_read_action_accepts_a_valid_reply(reply: Any, action: dict[str, Any]) -> None:
    assert read(reply) == Action(**action)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [*REFUSED, ['{"a":' * 100_000, "contains no JSON object"]],
    ids=lambda cell: str(cell)[:40],
)
def test_read_action_refuses_an_invalid_reply_with_the_reason(reply: Any, reason: str) -> None:
    with pytest.raises(PeekabooError, match=reason):
        read(reply)


@pytest.mark.parametrize(
    "action, with_text, without",
    [
        (made("click", x=1.5, y=2, button="right", clicks=2), "click 2,2 button right clicks 2", ""),
        (made("drag", x=1, y=2, to_x=3, to_y=4.26), "drag 1,2 to 3,4", ""),
        (made("scroll", direction="up"), "scroll up", ""),
        (made("type", text="hunter2"), "type 'hunter2'", "type 7 character(s)"),
        (read(ACCEPTED[5][0]), "click 1,2 button right clicks 2 modifiers ctrl", ""),
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

"""Replies in the forms that models write: one action each, or a refusal with its reason."""

from __future__ import annotations

import json
from typing import Any, Union

import pytest

from peekaboo_min.agents.actions import Action, read_action
from peekaboo_min.ai.grid import THOUSANDTHS, grid_over
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import Point

GRID = grid_over(THOUSANDTHS, 800, 600)
AT = Point(120, 340)

HELD = Action("press", key="a", modifiers=("shift",), seconds=2.0)
SCROLLED = Action("scroll", AT, direction="down")


def qwen(**arguments: Any) -> str:
    call = {"name": "computer_use", "arguments": arguments}
    return f"I click it.\n<tool_call>\n{json.dumps(call)}\n</tool_call>"


def read(reply: Union[str, dict[str, Any]]) -> Action:
    return read_action(reply if isinstance(reply, str) else json.dumps(reply), GRID)


@pytest.mark.parametrize(
    "reply, expected",
    [
        ({"action": "left_click", "x": 120, "y": 340}, Action("click", AT)),
        ({"action": "left_click", "x": 120, "y": 340, "button": "left"}, Action("click", AT)),
        ({"action": "right_click", "x": 120, "y": 340, "button": None}, Action("click", AT, "right")),
        ({"action": "middle_click", "x": 120, "y": 340}, Action("click", AT, "middle")),
        ({"action": "double_click", "x": 120, "y": 340, "clicks": 2}, Action("click", AT, clicks=2)),
        ({"action": "key", "text": "ctrl+s"}, Action("press", key="s", modifiers=("ctrl",))),
        ({"action": "press_key", "key": "Return"}, Action("press", key="return")),
        ({"action": "keypress", "keys": ["CTRL", "s"]}, Action("press", key="s", modifiers=("ctrl",))),
        ({"action": "press", "keys": ["tab"], "key": None}, Action("press", key="tab")),
        ({"action": "hotkey", "keys": "ctrl+c"}, Action("press", key="c", modifiers=("ctrl",))),
        ({"action": "type_text", "text": "Ada"}, Action("type", text="Ada")),
        ({"action": "type", "content": "Ada", "thought": "name"}, Action("type", text="Ada", why="name")),
        ({"action": "finished"}, Action("done", is_last=True)),
        ({"action": "screenshot"}, Action("wait")),
        (qwen(action="left_click", coordinate=[120, 340]), Action("click", AT)),
        (qwen(action="double_click", coordinate=[120, 340]), Action("click", AT, clicks=2)),
        (qwen(action="key", keys=["ctrl", "s"]), Action("press", key="s", modifiers=("ctrl",))),
        (qwen(action="type", text="a </tool> {b}"), Action("type", text="a </tool> {b}")),
        (qwen(action="wait", time=2), Action("wait", seconds=2.0)),
        (qwen(action="triple_click", coordinate=[120, 340]), Action("click", AT, clicks=3)),
        (qwen(action="mouse_move", coordinate=[120, 340]), Action("move", AT)),
        (
            qwen(action="left_click_drag", start_coordinate=[120, 340], coordinate=[7, 9]),
            Action("drag", AT, end=Point(7, 9)),
        ),
        (
            qwen(action="scroll", coordinate=[120, 340], pixels=-5),
            Action("scroll", AT, direction="down", amount=5),
        ),
        (qwen(action="scroll", pixels=400), Action("scroll", direction="up", amount=4)),
        (qwen(action="scroll", pixels=50), Action("scroll", direction="up", amount=50)),
        (qwen(action="hscroll", pixels=-9000), Action("scroll", direction="left", amount=50)),
        (qwen(action="zoom", region=[120, 340, 500, 600]), Action("zoom", AT, end=Point(500, 600))),
        ({"action": "drag", "x": 120, "y": 340, "to_x": 7, "to_y": 9}, Action("drag", AT, end=Point(7, 9))),
        (
            {"action": "drag_and_drop", "start_x": 120, "start_y": 340, "end_x": 7, "end_y": 9},
            Action("drag", AT, end=Point(7, 9)),
        ),
        (
            {"action": "scroll", "scroll_direction": "up", "scroll_amount": 2},
            Action("scroll", direction="up", amount=2),
        ),
        ({"action": "hold_key", "text": "shift+a", "duration": 2}, HELD),
        ({"action": "hover", "x": 120, "y": 340}, Action("move", AT)),
        ({"action": "wait_for", "text": "Saved"}, Action("wait", text="Saved")),
        ("Action: scroll(point='<point>120 340</point>', direction='down')", SCROLLED),
        ("Action: drag(start_box='(120,340)', end_box='(7,9)')", Action("drag", AT, end=Point(7, 9))),
        (qwen(action="terminate", status="success"), Action("done", is_last=True)),
        (qwen(action="terminate", status="failure"), Action("noop")),
        (qwen(action="terminate"), Action("done", is_last=True)),
        (qwen(action="answer", text="It is 5"), Action("done", is_last=True, why="It is 5")),
        ("Thought: There.\nAction: click(point='<point>120 340</point>')", Action("click", AT, why="There.")),
        ("Action: click(start_box='(120,340)')", Action("click", AT)),
        ("Action: click(start_box='<|box_start|>(120,340)<|box_end|>')", Action("click", AT)),
        ("Action: left_double(point='<point>120 340</point>')", Action("click", AT, clicks=2)),
        ("Action: right_single(start_box='[120, 340]')", Action("click", AT, "right")),
        ("Action: hotkey(key='ctrl c')", Action("press", key="c", modifiers=("ctrl",))),
        (r"Action: type(content='It\'s (a), b=\"c\"\n')", Action("type", text='It\'s (a), b="c"\n')),
        ("Action: wait()", Action("wait")),
        ("Thought: Good.\nAction: finished(content='Signed')", Action("done", is_last=True, why="Signed")),
        # a screen's text in our own JSON is no tool call
        (
            {"action": "wait", "why": qwen(action="left_click", coordinate=[1, 2])},
            Action("wait", why=qwen(action="left_click", coordinate=[1, 2])),
        ),
        ({"action": "wait", "why": "\nAction: wait()\n"}, Action("wait", why="\nAction: wait()\n")),
    ],
)
def test_a_reply_in_a_known_dialect_is_read(reply: Union[str, dict[str, Any]], expected: Action) -> None:
    assert read(reply) == expected


@pytest.mark.parametrize(
    "reply, reason",
    [
        ({"action": "left_click", "coordinate": [120, 340]}, "no property 'coordinate'"),
        ({"action": "right_click", "x": 1, "y": 2, "button": "left"}, "two meanings"),
        ({"action": "double_click", "x": 1, "y": 2, "clicks": 1}, "two meanings"),
        ({"action": "press", "key": "a", "keys": ["b"]}, "key is given twice"),
        ({"action": "key", "text": "a", "key": "b"}, "key is given twice"),
        ({"action": "type", "text": "a", "content": "b"}, "text is given twice"),
        ({"action": "drag", "x": 1, "y": 2}, "x2 is missing"),
        ({"action": "drag", "x": 1, "y": 2, "x2": 3, "to_x": 4, "y2": 5}, "x2 is given twice"),
        (qwen(action="left_click_drag", coordinate=[120, 340]), "x is missing"),
        (qwen(action="zoom", region=[120, 340]), "two pairs"),
        (qwen(action="scroll", pixels=0), "pixels is 0"),
        (qwen(action="scroll", pixels="much"), "pixels is much"),
        (qwen(action="scroll", pixels=10**400), "pixels is 1000"),
        (qwen(action="scroll"), "direction is missing"),
        ({"action": "press", "keys": [["a"]]}, "there is no key"),
        (qwen(action="left_click", coordinate=[120, 340]) * 2, "2 tool calls"),
        (qwen(action="left_click", coordinate=[120, 340])[:-3], "1 tool calls"),
        ("<tool_call>" * 100_000, "100000 tool calls"),  # a model that repeats itself must not cost minutes
        (qwen(action="left_click", coordinate=[120]), "one pair"),
        (qwen(action="left_click", coordinate=[120, 340], x=5), "one pair"),
        (qwen(action="left_click", coordinate=["120", 340]), "x is '120'"),
        (qwen(action="left_click", coordinate=[120, 1340]), "y is 1340, outside"),
        ('<tool_call>{"name": "browser", "arguments": {}}</tool_call>', "not one of computer_use"),
        ("<tool_call></tool_call>", "no JSON object"),
        ("Action: click(point='<point>1 2</point>')\nAction: wait()", "one line"),
        ("Action: click(point='<point>1 2</point>'", "one line"),
        ("Action: click(point='<point>1 2 3 4</point>')", "not one place"),
        ("Action: click(point=1)", "cannot be read"),
        ("Action: click(point='(1,2)', point='(3,4)')", "two places"),
        ("Action: drag(start_box='(1,2)')", "x2 is missing"),
        ("Action: type(content='a', content='b')", "cannot be read"),
        ("Action: hotkey(key='banana')", "no key called"),
        ("Action: click()", "x is missing"),
    ],
)
def test_what_is_malformed_or_has_two_meanings_is_refused(
    reply: Union[str, dict[str, Any]], reason: str
) -> None:
    with pytest.raises(PeekabooError) as caught:
        read(reply)
    assert caught.value.code is ErrorCode.AI_PROVIDER_ERROR and reason in caught.value.message

"""The action JSON of a vision model: what is accepted, and what is refused with its reason."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from fake_ai import FakeAI, Request, example_of

from peekaboo_min.agents.actions import ACTION_SCHEMA, Action, read_action
from peekaboo_min.ai.client import ask_model, choose_model
from peekaboo_min.ai.grid import PIXELS, grid_over
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import Point
from peekaboo_min.core.settings import forget_environment
from peekaboo_min.desktop.select import this_desktop

WIDTH, HEIGHT = 800, 600
CLICK: dict[str, Any] = {"action": "click", "x": 12, "y": 34, "done": False, "why": "Click 'Continue'"}
CLICKED = Action("click", Point(12, 34), why="Click 'Continue'")
NOTHING = dict.fromkeys(set(ACTION_SCHEMA["properties"]) - {"action", "done", "why"})


def read(reply: Any, width: int = WIDTH, height: int = HEIGHT, unit: str = PIXELS) -> Action:
    grid = grid_over(unit, width, height)
    return read_action(reply if isinstance(reply, str) else json.dumps(reply), grid)


def reason(reply: Any, width: int = WIDTH, height: int = HEIGHT) -> str:
    with pytest.raises(PeekabooError) as caught:
        read(reply, width, height)
    assert caught.value.code is ErrorCode.AI_PROVIDER_ERROR
    return caught.value.message


@pytest.mark.parametrize(
    "reply, expected",
    [
        (CLICK, CLICKED),
        ({**NOTHING, **CLICK}, CLICKED),
        ({**CLICK, "x": 0, "y": 0}, Action("click", Point(0, 0), why=CLICK["why"])),
        ({**CLICK, "x": 0.0, "y": 0}, Action("click", Point(0, 0), why=CLICK["why"])),
        ({**CLICK, "x": 799.5, "y": 599}, Action("click", Point(799.5, 599), why=CLICK["why"])),
        (
            {**CLICK, "button": "right", "clicks": 2},
            Action("click", Point(12, 34), "right", 2, why=CLICK["why"]),
        ),
        ({**CLICK, "text": "", "modifiers": [], "key": None}, CLICKED),
        ({**CLICK, "done": True}, Action("click", Point(12, 34), is_last=True, why=CLICK["why"])),
        ({"action": "click", "x": 1, "y": 2}, Action("click", Point(1, 2))),
        ({"action": "click", "x": 1, "y": 2, "confidence": 0}, Action("click", Point(1, 2), confidence=0.0)),
        (
            {"action": "click", "x": 1, "y": 2, "confidence": 1, "why": None},
            Action("click", Point(1, 2), confidence=1.0),
        ),
        (
            {"action": "type", "text": "Zürich\n日本 😀", "why": "w"},
            Action("type", text="Zürich\n日本 😀", why="w"),
        ),
        ({**NOTHING, "action": "type", "text": " ", "button": "left", "clicks": 1}, Action("type", text=" ")),
        ({"action": "press", "key": "Enter"}, Action("press", key="return")),
        (
            {"action": "press", "key": "cmd+shift+t", "modifiers": None},
            Action("press", key="t", modifiers=("cmd", "shift")),
        ),
        (
            {"action": "press", "key": "a", "modifiers": ["control"]},
            Action("press", key="a", modifiers=("ctrl",)),
        ),
        (
            {**CLICK, "clicks": 3, "modifiers": ["Control", "shift"]},
            Action("click", Point(12, 34), clicks=3, modifiers=("ctrl", "shift"), why=CLICK["why"]),
        ),
        ({"action": "move", "x": 1, "y": 2}, Action("move", Point(1, 2))),
        (
            {"action": "drag", "x": 1, "y": 2, "x2": 0, "y2": 9, "clicks": 1},
            Action("drag", Point(1, 2), end=Point(0, 9)),
        ),
        (
            {"action": "scroll", "direction": "down", "amount": 10.0, "x": 1, "y": 2},
            Action("scroll", Point(1, 2), direction="down", amount=10),
        ),
        ({"action": "scroll", "direction": "left"}, Action("scroll", direction="left")),
        ({"action": "type", "text": "Ada", "replace": True}, Action("type", text="Ada", replace=True)),
        ({"action": "type", "text": "", "replace": True}, Action("type", replace=True)),
        (
            {"action": "press", "key": "down", "repeat": 5, "seconds": 0.5},
            Action("press", key="down", repeat=5, seconds=0.5),
        ),
        ({"action": "press", "key": "a", "seconds": 5}, Action("press", key="a", seconds=5.0)),
        ({"action": "wait", "text": "Saved", "seconds": 20}, Action("wait", text="Saved", seconds=20.0)),
        ({"action": "zoom", "x": 1, "y": 2, "x2": 5, "y2": 9}, Action("zoom", Point(1, 2), end=Point(5, 9))),
        ({**NOTHING, "action": "open", "app": "Calculator", "url": ""}, Action("open", app="Calculator")),
        ({"action": "open", "url": "https://example.org"}, Action("open", url="https://example.org")),
        ({"action": "noop", "done": False, "why": "?"}, Action("noop", why="?")),
        ({**NOTHING, "action": "wait", "x": 0, "y": 0}, Action("wait")),
        ({"action": "done"}, Action("done", is_last=True)),
        (
            {**NOTHING, "action": "done", "done": True, "why": "It says Signed"},
            Action("done", is_last=True, why="It says Signed"),
        ),
        ("```json\n" + json.dumps(CLICK) + "\n```", CLICKED),
        ("I shall click it.\n" + json.dumps(CLICK, indent=2) + "\nThen I type {the name}.", CLICKED),
        (json.dumps(CLICK) + json.dumps({"action": "done"}), CLICKED),
        ({**CLICK, "action": "left_click", "button": "left"}, CLICKED),
        ({"action": "right_click", "x": 1, "y": 2, "button": None}, Action("click", Point(1, 2), "right")),
        ({"action": "double_click", "x": 1, "y": 2, "clicks": 2}, Action("click", Point(1, 2), clicks=2)),
        ({"action": "hover", "x": 1, "y": 2}, Action("move", Point(1, 2))),
        ({"action": "hotkey", "key": "ctrl+c"}, Action("press", key="c", modifiers=("ctrl",))),
        ({"action": "type_text", "text": "Ada"}, Action("type", text="Ada")),
        ({"action": "screenshot"}, Action("wait")),
        ({"action": "finished"}, Action("done", is_last=True)),
        (
            {**CLICK, "why": 'a } in "quotes" and a { too'},
            Action("click", Point(12, 34), why='a } in "quotes" and a { too'),
        ),
    ],
)
def test_a_valid_reply_is_accepted(reply: Any, expected: Action) -> None:
    assert read(reply) == expected


@pytest.mark.parametrize(
    "reply, pattern",
    [
        ("", "contains no JSON object"),
        ("click at 12,34", "contains no JSON object"),
        ("[1, 2]", "contains no JSON object"),
        ('{"action": "click", "x": 1', "not valid JSON"),
        ("{'action': 'click'}", "not valid JSON"),
        ("{not json} " + json.dumps(CLICK), "not valid JSON"),
        ('{"a":' * 100_000, "not valid JSON"),
        ('{"action": "click", "x": ' + "9" * 5000 + ', "y": 1}', "not valid JSON|outside the image"),
        ('{"action": "click", "x": 1, "x": 2, "y": 3}', "the JSON object repeats a property"),
        ('{"action": "click", "x": NaN, "y": 3}', "NaN is not a JSON number"),
        ('{"action": "click", "x": Infinity, "y": 3}', "Infinity is not a JSON number"),
        ('{"action": "click", "x": 1e999, "y": 3}', "x is inf"),
        ({}, "action is missing"),
        ({"action": None}, "action is missing"),
        ({"action": ["click"]}, "action is"),
        ({"action": "scroll", "x": 1, "y": 1}, "direction is missing"),
        ({"action": "Click", "x": 1, "y": 1}, "action is 'Click'"),
        ({**CLICK, "target": "OK"}, "there is no property 'target'"),
        ({"action": "left_click", "coordinate": [1, 2]}, "there is no property 'coordinate'"),
        ({"action": "right_click", "x": 1, "y": 2, "button": "left"}, "button 'left' has two meanings"),
        ({"action": "double_click", "x": 1, "y": 2, "clicks": 1}, "clicks 1 has two meanings"),
        ('<tool_call>{"name": "computer_use", "arguments": {}}</tool_call>', "action is missing"),
        ("Action: click(point='<point>1 2</point>')", "contains no JSON object"),
        ({"action": "click", "x": 1}, "y is missing"),
        ({"action": "click", "y": 1}, "x is missing"),
        ({**CLICK, "x": None}, "x is missing"),
        ({**CLICK, "x": "12"}, "x is '12'"),
        ({**CLICK, "x": True}, "x is True"),
        ({**CLICK, "y": False}, "y is False"),
        ({**CLICK, "x": [12]}, r"x is \[12\]"),
        ({**CLICK, "x": -1}, "x is -1, outside the grid of 800x600"),
        ({**CLICK, "x": -0.5}, "x is -0.5, outside"),
        ({**CLICK, "x": 800}, "x is 800, outside"),
        ({**CLICK, "y": 600}, "y is 600, outside"),
        ({**CLICK, "y": 10**400}, "y is|not valid JSON"),
        ({**CLICK, "x": 0.51, "y": 0.2}, "look like fractions"),
        ({**CLICK, "x": 0, "y": 0.2}, "look like fractions"),
        ({**CLICK, "button": "wheel"}, "button is 'wheel'"),
        ({**CLICK, "button": ["left"]}, "button is"),
        ({**CLICK, "clicks": 4}, "clicks is 4; it must be a number from 1 to 3"),
        ({**CLICK, "clicks": 0}, "clicks is 0"),
        ({**CLICK, "clicks": True}, "clicks is True"),
        ({**CLICK, "clicks": "2"}, "clicks is '2'"),
        ({**CLICK, "text": "Ada"}, "text does not belong to the action click"),
        ({"action": "move", "x": 1, "y": 2, "modifiers": ["shift"]}, "modifiers does not belong"),
        ({**CLICK, "modifiers": ["hyper"]}, "there is no modifier called 'hyper'"),
        ({**CLICK, "x2": 0}, "x2 does not belong to the action click"),
        ({**CLICK, "replace": True}, "replace does not belong"),
        ({"action": "move", "x": 1}, "y is missing"),
        ({"action": "drag", "x": 1, "y": 2, "x2": 3}, "y2 is missing"),
        ({"action": "drag", "x": 1, "y": 2, "x2": 3, "y2": 600}, "y is 600, outside the grid"),
        ({"action": "scroll", "direction": "down", "x": 5}, "y is missing"),
        ({"action": "scroll", "direction": "north"}, "direction is 'north'; it must be one of up, down"),
        ({"action": "scroll", "direction": "up", "amount": 51}, "amount is 51"),
        ({"action": "scroll", "direction": "up", "amount": 1.5}, "amount is 1.5"),
        ({"action": "press", "key": "a", "seconds": 6}, "seconds is 6; a key is held for at most 5"),
        ({"action": "wait", "seconds": -1}, "seconds is -1"),
        ({"action": "zoom", "x": 1, "y": 2}, "x2 is missing"),
        ({"action": "open"}, "open needs one of app, path, url"),
        ({"action": "open", "app": "A", "url": "https://a.org"}, "and only one"),
        ({"action": "open", "app": "A", "x": 1, "y": 1}, "x does not belong to the action open"),
        ({**CLICK, "app": "A"}, "app does not belong to the action click"),
        ({"action": "type"}, "text is missing"),
        ({"action": "type", "text": ""}, "text is empty"),
        ({"action": "type", "text": 5}, "text is 5"),
        ({"action": "type", "text": "a\x1b[2J"}, "text contains the character"),
        ({"action": "type", "text": "\ud800"}, "text contains the character"),
        ({"action": "type", "text": "Ada", "x": 0, "y": 0}, "x does not belong to the action type"),
        ({"action": "type", "text": "Ada", "clicks": 2}, "clicks does not belong"),
        ({"action": "press", "text": "return"}, "text does not belong"),
        ({"action": "press"}, "key is missing"),
        ({"action": "press", "key": ""}, "key is"),
        ({"action": "press", "key": "banana"}, "there is no key called 'banana'"),
        ({"action": "press", "key": "a", "modifiers": "ctrl"}, "modifiers is 'ctrl'"),
        ({"action": "press", "key": "a", "modifiers": ["hyper"]}, "there is no modifier called 'hyper'"),
        ({**CLICK, "done": "false"}, "done is 'false'"),
        ({**CLICK, "done": 0}, "done is 0"),
        ({"action": "done", "done": False}, "the action is done, but done is false"),
        ({"action": "noop", "done": True}, "the action is noop, but done is true"),
        ({**CLICK, "why": 5}, "why is 5"),
        ({**CLICK, "confidence": 1.1}, "confidence is 1.1"),
        ({**CLICK, "confidence": -0.1}, "confidence is -0.1"),
        ({**CLICK, "confidence": "0.9"}, "confidence is '0.9'"),
        ({**CLICK, "confidence": True}, "confidence is True"),
    ],
)
def test_an_invalid_reply_is_refused_with_the_reason(reply: Any, pattern: str) -> None:
    assert re.search(pattern, reason(reply)), reason(reply)


def test_without_an_image_nothing_can_be_clicked() -> None:
    assert reason(CLICK, 0, 0) == "there is no image to click in"
    assert read({"action": "done"}, 0, 0).is_last


@pytest.mark.parametrize(
    "action, with_text, without",
    [
        (CLICKED, "click 12,34", "click 12,34"),
        (Action("click", Point(1.5, 2), "right", 2), "right double-click 1.5,2", "right double-click 1.5,2"),
        (
            Action("click", Point(1, 2), "right", 3, modifiers=("ctrl",)),
            "ctrl+right triple-click 1,2",
            "ctrl+right triple-click 1,2",
        ),
        (Action("move", Point(1, 2)), "move the pointer to 1,2", "move the pointer to 1,2"),
        (Action("drag", Point(1, 2), end=Point(3, 4.26)), "drag 1,2 to 3,4.3", "drag 1,2 to 3,4.3"),
        (Action("scroll", direction="up"), "scroll up 3", "scroll up 3"),
        (
            Action("press", key="a", repeat=2, seconds=0.5),
            "press a 2 times for 0.5 s",
            "press a 2 times for 0.5 s",
        ),
        (Action("wait", text="Saved"), "wait for 'Saved'", "wait for 5 character(s)"),
        (Action("zoom", Point(1, 2), end=Point(3, 4)), "zoom into 1,2 to 3,4", "zoom into 1,2 to 3,4"),
        (Action("type", text="hunter2"), "type 'hunter2'", "type 7 character(s)"),
        (Action("press", key="t", modifiers=("cmd", "shift")), "press cmd+shift+t", "press cmd+shift+t"),
        (Action("open", url="https://a.org"), "open https://a.org", "open https://a.org"),
        (Action("done"), "done", "done"),
    ],
)
def test_an_action_is_described_with_and_without_its_text(
    action: Action, with_text: str, without: str
) -> None:
    assert (action.describe(), action.describe(shows_text=False)) == (with_text, without)


@pytest.mark.parametrize("provider", ["ollama", "openai", "gemini", "anthropic"])
def test_every_vendor_accepts_the_schema(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fakes check a schema as their vendors do; OpenAI's strict mode requires every property required."""
    models = {
        "ollama": "qwen3-vl:8b",
        "openai": "gpt-5.4-mini",
        "gemini": "gemini-3.6-flash",
        "anthropic": "claude-sonnet-5",
    }

    def brain(request: Request) -> dict[str, Any]:
        assert request.schema and set(request.schema["required"]) == set(request.schema["properties"])
        return {**example_of(request.schema), "action": "done", "done": True}

    with FakeAI(brain=brain) as ai:
        environment = ai.env(provider, models[provider])
        if provider == "openai":  # as if at its own address: strict mode is used only there
            monkeypatch.setattr("peekaboo_min.ai.providers._is_compatible_server", lambda: False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        forget_environment()
        try:
            answer = ask_model(
                this_desktop(), [], "What now?", choice=choose_model(provider), schema=ACTION_SCHEMA
            )
        finally:
            monkeypatch.undo()
            forget_environment()
        assert read(answer.text, 0, 0).kind == "done"
        body = ai.questions[-1].body
    assert provider != "openai" or body["response_format"]["json_schema"]["strict"] is True

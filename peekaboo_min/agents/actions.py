"""What a vision model may do: one table, of which prompt and reader are made."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Optional

from ..ai.grid import Grid
from ..core.errors import ErrorCode, PeekabooError
from ..core.models import ACT_LIMITS, ACT_NAMES, Act, Point
from ..core.text import control_character_in
from ..desktop.keys import read_chord


class Kind(NamedTuple):
    """A row of the table: the tool that does it (empty: none does) and its parameters, as properties."""

    tool: str
    needs: tuple[str, ...]
    may_have: tuple[str, ...]
    line: str  # the prompt's


ACTIONS = {
    "click": Kind("click", ("x", "y"), ("button", "clicks", "modifiers"),
        'at x, y. button: left, right or middle; clicks: 1 to 3; modifiers: held, such as ["shift"].'),
    "move": Kind("move_pointer", ("x", "y"), (),
        "the pointer goes to x, y and stays there, for menus and hints that open under it."),
    "drag": Kind("drag", ("x", "y", "to_x", "to_y"), ("button",), "from x, y to to_x, to_y."),
    "scroll": Kind("scroll", ("direction",), ("amount", "x", "y"),
        "direction up, down, left or right; amount: notches of the wheel; over x, y, else in the middle."),
    "type": Kind("type_text", ("text",), ("replace",),
        "the text goes where the keyboard focus is. Click a field first, and type in the next step. "
        'replace true: the text replaces what the field holds. "\\n" presses return.'),
    "press": Kind("press_key", ("key",), ("modifiers", "repeat", "hold_ms"),
        'key is one key (return, tab, escape, backspace, down, f5, a), modifiers such as ["ctrl"] or '
        '["cmd"]; repeat: how often; hold_ms: how long it is held.'),
    "open": Kind("open", (), ("app", "path", "url"),
        "one of app (an installed application's name), path (of a document) and url (http or https), only "
        "where the goal needs it."),
    "wait": Kind("", (), ("text", "seconds"),
        "the window is busy; look again in a second. With a text: until the window shows that text."),
    "noop": Kind("", (), (), "you do not know what to do. Two in a row end the run."),
    "done": Kind("", (), (),
        "the screenshot shows that the goal is reached. done is true with this action, and false otherwise."),
}  # fmt: skip
_OF_EVERY_ACTION = ("done", "why", "confidence")
_OF_ONE_KIND = (each for kind in ACTIONS.values() for each in (*kind.needs, *kind.may_have))
PROPERTIES = tuple(dict.fromkeys((*_OF_ONE_KIND, *_OF_EVERY_ACTION)))
_TYPES = {  # all others are strings; every number in a reply is read as a float
    **dict.fromkeys(("x", "y", "to_x", "to_y", "seconds", "confidence"), "number"),
    **dict.fromkeys(("clicks", "amount", "repeat", "hold_ms"), "integer"),
    **dict.fromkeys(("replace", "done"), "boolean"),
    "modifiers": "array",
}
_PYTHON_TYPES: dict[str, type] = {"number": float, "integer": float, "boolean": bool, "array": list}
_LIMITS = {**ACT_LIMITS, "seconds": (0, 45), "confidence": (0, 1)}
_DEFAULTS = {name: value for name, value in Act._field_defaults.items() if name != "direction"}
_PLACES = (("x", "y"), ("to_x", "to_y"))
# What else models call them, as their families' own tools do.
_OTHER_NAMES: dict[str, dict[str, Any]] = {
    "left_click": {"action": "click"},
    "right_click": {"action": "click", "button": "right"},
    "middle_click": {"action": "click", "button": "middle"},
    "double_click": {"action": "click", "clicks": 2.0},
    "triple_click": {"action": "click", "clicks": 3.0},
    "mouse_move": {"action": "move"},
    "left_click_drag": {"action": "drag"},
    **{name: {"action": "press"} for name in ("key", "keypress", "hotkey")},
    "screenshot": {"action": "wait"},
    "finished": {"action": "done"},
}


def _property_schema(name: str) -> dict[str, Any]:
    kind = _TYPES.get(name, "string")
    schema: dict[str, Any] = {"type": kind if name in ("done", "why") else [kind, "null"]}
    if kind == "array":
        schema["items"] = {"type": "string"}
    if name in _LIMITS:
        schema["description"] = f"{_LIMITS[name][0]} to {_LIMITS[name][1]}"
    if name in ACT_NAMES:
        schema["description"] = f"one of {', '.join(ACT_NAMES[name])}"
    return schema


# Every property is required and every object closed, as OpenAI enforces it; unused properties are null.
ACTION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": list(ACTIONS)},
        **{name: _property_schema(name) for name in PROPERTIES},
    },
    "required": ["action", *PROPERTIES],
    "additionalProperties": False,
}
ACTION_LINES = "\n".join(f"- {name}: {kind.line}" for name, kind in ACTIONS.items())


@dataclass(frozen=True)
class Action:
    """One action of a model; its values are the properties of its kind that the reply gives, no defaults."""

    kind: str
    values: dict[str, Any] = field(default_factory=dict)
    why: str = ""
    confidence: Optional[float] = None
    is_last: bool = False  # the model considers the goal reached: with `done`, or by this action

    @property
    def is_act(self) -> bool:
        """Whether it changes something: wait, noop and done do not."""
        return ACTIONS[self.kind].tool != ""

    @property
    def places(self) -> list[Point]:
        """Where, and where a drag ends; empty for what has no place, as a scroll in the middle."""
        return [Point(self.values[x], self.values[y]) for x, y in _PLACES if x in self.values]

    def in_pixels(self, grid: Grid, width: int, height: int) -> Action:
        """The same action with its places as pixels of an image of this size; a scroll always has one."""
        middle = {"x": width // 2, "y": height // 2} if self.kind == "scroll" else {}
        values = {**middle, **self.values}
        for (x, y), place in zip(_PLACES, self.places):
            values[x], values[y] = grid.pixel_of(place, width, height)
        return replace(self, values=values)

    def describe(self, shows_text: bool = True) -> str:
        """`click 412,87 button right`; shows_text=False leaves out the text to type, which may be private."""
        places = " to ".join(f"{place.x:.0f},{place.y:.0f}" for place in self.places)
        parts = [self.kind, places] if places else [self.kind]
        for name, value in self.values.items():
            shown = "+".join(value) if isinstance(value, list) else str(value)
            if name == "text":
                shown = repr(value) if shows_text else f"{len(value)} character(s)"
            if name not in ("x", "y", "to_x", "to_y"):
                parts.append(shown if name in ACTIONS[self.kind].needs else f"{name} {shown}")
        return " ".join(parts)


def read_action(text: str, grid: Optional[Grid]) -> Action:
    """The action in a model's reply to a question in this grid; None: its numbers are read as they are.

    Fences and prose around its JSON are ignored; everything else must be correct, nothing is guessed.
    Raises AI_PROVIDER_ERROR with the reason; INVALID_ARGUMENT for a key or a modifier that does not exist.
    """
    reply = _first_object(text)
    reply.update(_OTHER_NAMES.get(str(reply.get("action")), {}))
    name = reply.pop("action", None)
    if not isinstance(name, str) or name not in ACTIONS:
        raise unusable(f"action is {name!r:.60}; it must be one of {', '.join(ACTIONS)}")
    given = _read_properties(name, reply)
    kind = ACTIONS[name]
    if given.get("replace"):
        given.setdefault("text", "")  # it clears the field
    missing = [each for each in kind.needs if each not in given]
    if missing:
        raise unusable(f"{missing[0]} is missing")
    done = given.get("done", name == "done")
    if not kind.tool and done != (name == "done"):
        raise unusable(f"the action is {name}, but done is {str(done).lower()}")
    values = {each: given[each] for each in (*kind.needs, *kind.may_have) if each in given}
    if "key" in values:  # under the names of desktop.keys
        values["key"] = str(read_chord(values["key"], values.pop("modifiers", ())))
    if "modifiers" in values:
        values["modifiers"] = list(read_chord("a", values["modifiers"]).modifiers)
    if ("x" in values) != ("y" in values):
        raise unusable("x or y is missing")
    action = Action(name, values, given.get("why", ""), given.get("confidence"), done)
    problems = [grid.problem_of(*place) for place in action.places] if grid else []
    if any(problems):
        raise unusable(next(filter(None, problems)))
    return action


def unusable(reason: str) -> PeekabooError:
    """AI_PROVIDER_ERROR for a reply that is no action, to be raised."""
    return PeekabooError(ErrorCode.AI_PROVIDER_ERROR, reason)


def _first_object(text: str) -> dict[str, Any]:
    """The first JSON object in a text, every number in it a float."""
    _, brace, rest = text.partition("{")
    try:
        return dict(json.JSONDecoder(parse_int=float).raw_decode(brace + rest)[0])
    except (ValueError, RecursionError) as e:  # a model that repeats one brace
        raise unusable(f"the reply contains no JSON object: {e}") from e


def _read_properties(action: str, reply: dict[str, Any]) -> dict[str, Any]:
    """The properties that a reply gives, of the right type; without what is null, empty or a default.

    What does not belong to the action is refused: a `type` with an x may mean a click first, and the model
    has to say so itself. What else wait, noop and done carry has no meaning.
    """
    kind, given = ACTIONS[action], {}
    for name, value in reply.items():
        if name not in PROPERTIES:
            raise unusable(f"there is no property {name!r:.60}")
        if value in (None, "", [], _DEFAULTS.get(name)):
            continue
        if name in (*kind.needs, *kind.may_have, *_OF_EVERY_ACTION):
            given[name] = _read_value(name, value)
        elif kind.tool:
            raise unusable(f"{name} does not belong to the action {action}; do one thing at a time")
    return given


def _read_value(name: str, value: Any) -> Any:
    kind = _TYPES.get(name, "string")
    fits = type(value) is _PYTHON_TYPES.get(kind, str) and value in ACT_NAMES.get(name, (value,))
    if fits and name in _LIMITS:
        fits = _LIMITS[name][0] <= value <= _LIMITS[name][1] and (kind == "number" or value.is_integer())
    elif fits and kind == "array":
        fits = all(isinstance(each, str) for each in value)
    if not fits:
        limits = ACTION_SCHEMA["properties"][name].get("description", "")
        raise unusable(f"{name} is {value!r:.60}; it must be of the type {kind}{limits and ', '}{limits}")
    bad = control_character_in(value) if kind == "string" and name != "why" else ""
    if bad:
        raise unusable(f"{name} contains the character {bad!r}; use press for keys")
    return int(value) if kind == "integer" else value

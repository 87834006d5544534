"""Actions of a vision model: one table for prompt, schema and reader."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Optional

from ..ai.grid import Grid
from ..core.errors import ErrorCode, PeekabooError
from ..core.models import ACT_LIMITS, ACT_NAMES, Act, Point
from ..core.settings import without_secrets
from ..core.text import control_character_in
from ..desktop.keys import read_chord


class Kind(NamedTuple):
    """A kind of action. Its properties are parameters of the tool, with the same names."""

    tool: str  # the tool that performs it; empty for wait, noop and done
    required: tuple[str, ...]
    optional: tuple[str, ...]
    help: str  # for the prompt


ACTIONS = {
    "click": Kind("click", ("x", "y"), ("button", "clicks", "modifiers"),
        'at x, y. button: left, right or middle; clicks: 1 to 3; modifiers: held, such as ["shift"].'),
    "move": Kind("move_pointer", ("x", "y"), (),
        "move the pointer to x, y and leave it there, for menus and hints that open under it."),
    "drag": Kind("drag", ("x", "y", "to_x", "to_y"), ("button",), "from x, y to to_x, to_y."),
    "scroll": Kind("scroll", ("direction",), ("amount", "x", "y"),
        "direction: up, down, left or right; amount: notches of the wheel; at x, y, or in the middle."),
    "type": Kind("type_text", ("text",), ("replace",),
        "the text goes to the keyboard focus. Click a field first, and type in the next step. "
        'replace true: the text replaces the content of the field. "\\n" presses return.'),
    "press": Kind("press_key", ("key",), ("modifiers", "repeat", "hold_ms"),
        'key: one key (return, tab, escape, backspace, down, f5, a); modifiers: such as ["ctrl"] or '
        '["cmd"]; repeat: how often; hold_ms: how long it is held, in milliseconds.'),
    "open": Kind("open", (), ("app", "path", "url"),
        "give one of app (an installed application's name), path (of a document) and url (http or https). "
        "Use it only if the goal needs it."),
    "wait": Kind("", (), ("text", "seconds"),
        "the window is busy; look again in a second. With text: wait until the window shows that text."),
    "noop": Kind("", (), (), "you do not know how to go on. Two in a row end the run."),
    "done": Kind("", (), (),
        "the screenshot shows that the goal is reached. done is true with this action, and false otherwise."),
}  # fmt: skip
_COMMON_PROPERTIES = ("done", "why", "confidence")
_KIND_PROPERTIES = (name for kind in ACTIONS.values() for name in (*kind.required, *kind.optional))
PROPERTIES = tuple(dict.fromkeys((*_KIND_PROPERTIES, *_COMMON_PROPERTIES)))
_TYPES = {  # JSON types; all other properties are strings
    **dict.fromkeys(("x", "y", "to_x", "to_y", "seconds", "confidence"), "number"),
    **dict.fromkeys(("clicks", "amount", "repeat", "hold_ms"), "integer"),
    **dict.fromkeys(("replace", "done"), "boolean"),
    "modifiers": "array",
}
# _first_object reads every number as a float.
_PYTHON_TYPES: dict[str, type] = {"number": float, "integer": float, "boolean": bool, "array": list}
_LIMITS = {**ACT_LIMITS, "seconds": (0, 45), "confidence": (0, 1)}
# Defaults in a reply are ignored, but a scroll must name its direction.
_DEFAULTS = {name: value for name, value in Act._field_defaults.items() if name != "direction"}
_POINTS = (("x", "y"), ("to_x", "to_y"))
# Other names that models use, taken from their vendors' own tools.
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


# OpenAI requires closed objects and every property in `required`; unused properties are null.
ACTION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": list(ACTIONS)},
        **{name: _property_schema(name) for name in PROPERTIES},
    },
    "required": ["action", *PROPERTIES],
    "additionalProperties": False,
}
ACTION_LINES = "\n".join(f"- {name}: {kind.help}" for name, kind in ACTIONS.items())


@dataclass(frozen=True)
class Action:
    """One action of a model."""

    kind: str
    values: dict[str, Any] = field(default_factory=dict)  # the properties that the reply sets, no defaults
    why: str = ""
    confidence: Optional[float] = None
    is_last: bool = False  # the model considers the goal reached once this action is done

    @property
    def is_act(self) -> bool:
        """Return True if a tool performs it: not for wait, noop and done."""
        return ACTIONS[self.kind].tool != ""

    @property
    def points(self) -> list[Point]:
        """Return the action's point, or a drag's start and end, or an empty list."""
        return [Point(self.values[x], self.values[y]) for x, y in _POINTS if x in self.values]

    def in_pixels(self, grid: Grid, width: int, height: int) -> Action:
        """Return the action with its points as pixels of an image; a scroll without one gets the middle."""
        middle = {"x": width // 2, "y": height // 2} if self.kind == "scroll" else {}
        values = {**middle, **self.values}
        for (x, y), point in zip(_POINTS, self.points):
            values[x], values[y] = grid.pixel_of(point, width, height)
        return replace(self, values=values)

    def describe(self, shows_text: bool = True) -> str:
        """Describe it in one line, such as `click 412,87 button right`; a private text only by its length."""
        points = " to ".join(f"{point.x:.0f},{point.y:.0f}" for point in self.points)
        parts = [self.kind, points] if points else [self.kind]
        for name, value in self.values.items():
            shown = "+".join(value) if isinstance(value, list) else str(value)
            if name == "text":
                shown = repr(value) if shows_text else f"{len(value)} character(s)"
            if name not in ("x", "y", "to_x", "to_y"):
                parts.append(shown if name in ACTIONS[self.kind].required else f"{name} {shown}")
        return " ".join(parts)


def read_action(text: str, grid: Optional[Grid]) -> Action:
    """Read the action from a model's reply. Ignore fences and prose around the JSON; correct nothing else.

    grid: the grid for x and y; None accepts any numbers.
    Raises AI_PROVIDER_ERROR with the reason, or INVALID_ARGUMENT for an unknown key or modifier.
    """
    reply = _first_object(text)
    reply.update(_OTHER_NAMES.get(str(reply.get("action")), {}))
    name = reply.pop("action", None)
    if not isinstance(name, str) or name not in ACTIONS:
        raise unusable(f"action is {name!r:.60}; it must be one of {', '.join(ACTIONS)}")
    properties = _read_properties(name, reply)
    kind = ACTIONS[name]
    if properties.get("replace"):
        properties.setdefault("text", "")  # clears the field
    if missing := ([required for required in kind.required if required not in properties]):
        raise unusable(f"{missing[0]} is missing")
    is_done = properties.get("done", name == "done")
    if is_done and name == "noop":
        name, kind = "done", ACTIONS["done"]
    if not kind.tool and is_done != (name == "done"):
        raise unusable(f"the action is {name}, but done is {str(is_done).lower()}")
    values = {key: properties[key] for key in (*kind.required, *kind.optional) if key in properties}
    if "key" in values:  # one chord such as "ctrl+c", in the names of desktop.keys
        values["key"] = str(read_chord(values["key"], values.pop("modifiers", ())))
    if "modifiers" in values:
        values["modifiers"] = list(read_chord("a", values["modifiers"]).modifiers)
    if ("x" in values) != ("y" in values):
        raise unusable("x or y is missing")
    action = Action(name, values, properties.get("why", ""), properties.get("confidence"), is_done)
    for point in action.points:
        if grid and (problem := grid.problem_of(*point)):
            raise unusable(problem)
    return action


def unusable(reason: str) -> PeekabooError:
    """Return an AI_PROVIDER_ERROR for a reply that is no valid action, to be raised."""
    return PeekabooError(ErrorCode.AI_PROVIDER_ERROR, without_secrets(reason))


def _first_object(text: str) -> dict[str, Any]:
    _, brace, rest = text.partition("{")
    try:
        return dict(json.JSONDecoder(parse_int=float).raw_decode(brace + rest)[0])
    except (ValueError, RecursionError) as e:  # RecursionError: a model that repeats one brace
        raise unusable(f"the reply contains no JSON object: {e}") from e


def _read_properties(action: str, reply: dict[str, Any]) -> dict[str, Any]:
    # refuse another act's property: a `type` with an x may mean that the model wants to click first
    kind, properties = ACTIONS[action], {}
    for name, value in reply.items():
        if name not in PROPERTIES:
            raise unusable(f"there is no property {name!r:.60}")
        if value in (None, "", [], _DEFAULTS.get(name)):
            continue
        if name in (*kind.required, *kind.optional, *_COMMON_PROPERTIES):
            properties[name] = _read_value(name, value)
        elif kind.tool:
            raise unusable(f"{name} does not belong to the action {action}; do one thing at a time")
    return properties


def _read_value(name: str, value: Any) -> Any:
    kind = _TYPES.get(name, "string")
    fits = type(value) is _PYTHON_TYPES.get(kind, str) and value in ACT_NAMES.get(name, (value,))
    if fits and name in _LIMITS:
        fits = _LIMITS[name][0] <= value <= _LIMITS[name][1] and (kind == "number" or value.is_integer())
    elif fits and kind == "array":
        fits = all(isinstance(item, str) for item in value)
    if not fits:
        limits = ACTION_SCHEMA["properties"][name].get("description", "")
        raise unusable(f"{name} is {value!r:.60}; it must be of the type {kind}{limits and ', '}{limits}")
    if bad := (control_character_in(value) if kind == "string" and name != "why" else ""):
        raise unusable(f"{name} contains the character {bad!r}; use press for keys")
    return int(value) if kind == "integer" else value

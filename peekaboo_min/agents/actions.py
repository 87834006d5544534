"""What a vision model may do: one table, of which prompt and reader are made."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional

from ..ai.grid import Grid
from ..core.errors import ErrorCode, PeekabooError
from ..core.models import Point
from ..core.text import control_character_in
from ..desktop.keys import read_chord

_TYPES = {"number": float, "integer": float, "array": list, "boolean": bool, "string": str}
_EXPECTED = {
    "number": "a number",
    "integer": "a whole number",
    "array": "a list of names",
    "boolean": "true or false",
    "string": "a string",
}


class Property(NamedTuple):
    """A property of a reply. limits: of a number; choices: of a string; null means the default."""

    kind: str
    """Its JSON type."""
    help: str
    limits: Optional[tuple[float, float]] = None
    choices: tuple[str, ...] = ()
    default: Any = None

    @property
    def expected(self) -> str:
        if self.limits:
            return f"{_EXPECTED[self.kind]} from {self.limits[0]:g} to {self.limits[1]:g}"
        return f"one of {', '.join(self.choices)}" if self.choices else _EXPECTED[self.kind]

    def read(self, value: Any) -> Any:
        """The value as Python has it; None for one that is not as expected. A number comes as a float."""
        fits = type(value) is _TYPES[self.kind]
        fits = fits and (not self.limits or self.limits[0] <= value <= self.limits[1])
        fits = fits and (not self.choices or value in self.choices)
        if self.kind == "array":
            fits = fits and all(isinstance(name, str) for name in value)
        if self.kind == "integer":
            return int(value) if fits and value.is_integer() else None
        return value if fits else None


PROPERTIES = {
    "x": Property("number", "from the left edge of the last image, in its grid"),
    "y": Property("number", "from the top edge of the last image, in its grid"),
    "to_x": Property("number", "where a drag ends"),
    "to_y": Property("number", "where a drag ends"),
    "button": Property("string", "the mouse button", choices=("left", "right", "middle"), default="left"),
    "clicks": Property("integer", "2 is a double click", (1, 3), default=1),
    "modifiers": Property("array", "cmd, ctrl, alt, shift, held meanwhile"),
    "direction": Property(
        "string", "down shows what is further below", choices=("up", "down", "left", "right")
    ),
    "amount": Property("integer", "notches of the wheel", (1, 50), default=3),
    "text": Property("string", "type: the text; wait: a text to wait for"),
    "replace": Property("boolean", "type: replace what the field holds", default=False),
    "key": Property("string", "one key, such as return, tab, escape, down, a, f5"),
    "repeat": Property("integer", "press: how often", (1, 50), default=1),
    "hold_ms": Property("integer", "press: milliseconds to hold the key", (0, 5000), default=0),
    "seconds": Property("number", "wait: at most so long", (0, 45)),
    "app": Property("string", "open: an installed application's name"),
    "path": Property("string", "open: a document's path"),
    "url": Property("string", "open: an http or https address"),
    "done": Property("boolean", "true only when the goal is reached"),
    "why": Property("string", "one short sentence"),
    "confidence": Property("number", "how sure you are", (0, 1)),
}
_OF_EVERY_ACTION = ("done", "why", "confidence")


class Kind(NamedTuple):
    """A row of the table: the tool that does it (empty: none does) and its parameters, as properties."""

    tool: str
    needs: tuple[str, ...]
    may_have: tuple[str, ...]
    line: str
    """The prompt's."""


ACTIONS = {
    "click": Kind(
        "click", ("x", "y"), ("button", "clicks", "modifiers"),
        'at x, y. button: left, right or middle; clicks: 1 to 3; modifiers: held, such as ["shift"].',
    ),
    "move": Kind(
        "move_pointer", ("x", "y"), (),
        "the pointer goes to x, y and stays there, for menus and hints that open under it.",
    ),
    "drag": Kind("drag", ("x", "y", "to_x", "to_y"), ("button",), "from x, y to to_x, to_y."),
    "scroll": Kind(
        "scroll", ("direction",), ("amount", "x", "y"),
        "direction up, down, left or right; amount: notches of the wheel; over x, y, else in the middle.",
    ),
    "type": Kind(
        "type_text", ("text",), ("replace",),
        "the text goes where the keyboard focus is. Click a field first, and type in the next step. "
        'replace true: the text replaces what the field holds. "\\n" presses return.',
    ),
    "press": Kind(
        "press_key", ("key",), ("modifiers", "repeat", "hold_ms"),
        'key is one key (return, tab, escape, backspace, down, f5, a), modifiers such as ["ctrl"] or '
        '["cmd"]; repeat: how often; hold_ms: how long it is held.',
    ),
    "open": Kind(
        "open", (), ("app", "path", "url"),
        "one of app (an installed application's name), path (of a document) and url (http or https), only "
        "where the goal needs it.",
    ),
    "wait": Kind(
        "", (), ("text", "seconds"),
        "the window is busy; look again in a second. With a text: until the window shows that text.",
    ),
    "noop": Kind("", (), (), "you do not know what to do. Two in a row end the run."),
    "done": Kind(
        "", (), (),
        "the screenshot shows that the goal is reached. done is true with this action, and false otherwise.",
    ),
}  # fmt: skip
# What else models call them, as their families' own tools do, and what such a name implies.
_OTHER_NAMES = {
    "click": ("left_click", "right_click", "middle_click", "double_click", "triple_click"),
    "move": ("mouse_move", "move_pointer", "hover"),
    "drag": ("left_click_drag", "drag_and_drop"),
    "type": ("type_text", "input_text", "write"),
    "press": ("key", "press_key", "keypress", "hotkey"),
    "wait": ("screenshot", "wait_for"),
    "done": ("finished", "finish"),
}
_KIND_OF = {other: kind for kind, others in _OTHER_NAMES.items() for other in others}
_IMPLIED: dict[str, dict[str, Any]] = {
    "right_click": {"button": "right"},
    "middle_click": {"button": "middle"},
    "double_click": {"clicks": 2.0},
    "triple_click": {"clicks": 3.0},
}


def _property_schema(name: str, known: Property) -> dict[str, Any]:
    limits = f"; {known.expected}" if known.limits or known.choices else ""
    default = "" if known.default is None else f"; null: {json.dumps(known.default)}"
    kind: Any = known.kind if name in ("done", "why") else [known.kind, "null"]
    items = {"items": {"type": "string"}} if known.kind == "array" else {}
    return {"type": kind, "description": f"{known.help}{limits}{default}", **items}


# Every property is required and every object closed, as OpenAI enforces it; unused properties are null.
ACTION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": list(ACTIONS)},
        **{name: _property_schema(name, known) for name, known in PROPERTIES.items()},
    },
    "required": ["action", *PROPERTIES],
    "additionalProperties": False,
}
ACTION_LINES = "\n".join(f"- {name}: {kind.line}" for name, kind in ACTIONS.items())
"""The actions, for a prompt."""


@dataclass(frozen=True)
class Action:
    """One action of a model. Its places are in the grid in which the model was asked."""

    kind: str
    """A key of ACTIONS."""
    values: dict[str, Any] = field(default_factory=dict)
    """The properties of its kind that the reply gives, in the table's order; no defaults."""
    why: str = ""
    confidence: Optional[float] = None
    is_last: bool = False
    """The model considers the goal reached: with `done`, or by this action."""

    @property
    def place(self) -> Optional[Point]:
        """None for what has no place, and for a scroll in the middle of the window."""
        return Point(self.values["x"], self.values["y"]) if "x" in self.values else None

    @property
    def end(self) -> Optional[Point]:
        """Where a drag ends."""
        return Point(self.values["to_x"], self.values["to_y"]) if "to_x" in self.values else None

    @property
    def is_act(self) -> bool:
        """Whether it changes something: wait, noop and done do not."""
        return ACTIONS[self.kind].tool != ""

    def describe(
        self, shows_text: bool = True, at: Optional[Point] = None, to: Optional[Point] = None
    ) -> str:
        """`click 412,87 button right`; shows_text=False leaves out the text to type, which may be private.

        at, to: the places to show instead of the model's own numbers, in the window's pixels.
        """
        parts = [self.kind, _shown_place(at or self.place)]
        parts.append(f"to {_shown_place(to or self.end)}" if self.end else "")
        for name, value in self.values.items():
            if name in ("x", "y", "to_x", "to_y"):
                continue
            shown = "+".join(value) if isinstance(value, list) else str(value)
            if name == "text":
                shown = repr(value) if shows_text else f"{len(value)} character(s)"
            parts.append(shown if name in ACTIONS[self.kind].needs else f"{name} {shown}")
        return " ".join(filter(None, parts))


def _shown_place(place: Optional[Point]) -> str:
    return f"{round(place.x, 1):g},{round(place.y, 1):g}" if place else ""


def read_action(text: str, grid: Optional[Grid]) -> Action:
    """The action in a model's reply to a question in this grid; None: its numbers are read as they are.

    Fences and prose around its JSON are ignored; everything else must be correct, nothing is guessed.
    Raises AI_PROVIDER_ERROR with the reason; INVALID_ARGUMENT for a key or a modifier that does not exist.
    """
    reply = _first_object(text)
    given_name = reply.pop("action", None)
    name = _KIND_OF.get(given_name, given_name) if isinstance(given_name, str) else ""
    if name not in ACTIONS:
        raise unusable(f"action is {_shown(given_name)}; it must be one of {', '.join(ACTIONS)}")
    reply.update(_IMPLIED.get(str(given_name), {}))
    given = _read_properties(name, reply)
    needs, may_have = ACTIONS[name].needs, ACTIONS[name].may_have
    if given.get("replace"):
        given.setdefault("text", "")  # it clears the field
    missing = [each for each in needs if each not in given]
    if missing:
        raise unusable(f"{missing[0]} is missing; it must be {PROPERTIES[missing[0]].expected}")
    if name == "open" and sum(each in given for each in may_have) != 1:
        raise unusable(f"open needs one of {', '.join(may_have)}, and only one")
    done = given.get("done", name == "done")
    if not ACTIONS[name].tool and done != (name == "done"):
        raise unusable(f"the action is {name}, but done is {str(done).lower()}")
    values = {each: given[each] for each in (*needs, *may_have) if each in given}
    if "key" in values:  # under the names of desktop.keys
        values["key"] = str(read_chord(values["key"], values.pop("modifiers", ())))
    if "modifiers" in values:
        values["modifiers"] = list(read_chord("a", values["modifiers"]).modifiers)
    _check_places(values, grid)
    return Action(name, values, given.get("why", ""), given.get("confidence"), done)


def unusable(reason: str) -> PeekabooError:
    """AI_PROVIDER_ERROR for a reply that is no action, to be raised."""
    return PeekabooError(ErrorCode.AI_PROVIDER_ERROR, reason)


def _first_object(text: str) -> dict[str, Any]:
    """The first JSON object in a text, every number in it a float."""
    start = text.find("{")
    if start < 0:
        raise unusable("the reply contains no JSON object")
    try:
        # float: an integer of 5,000 digits is one, too
        reply: dict[str, Any] = json.JSONDecoder(parse_int=float).raw_decode(text, start)[0]
    except (ValueError, RecursionError) as e:
        raise unusable(f"the reply is not valid JSON: {e}") from e
    return reply


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return "missing" if value is None else repr(value)[:60]


def _read_properties(kind: str, reply: dict[str, Any]) -> dict[str, Any]:
    """The properties that a reply gives, of the right type; without what is null, empty or a default.

    What does not belong to the action is refused: a `type` with an x may mean a click first, and the model
    has to say so itself. What else wait, noop and done carry has no meaning.
    """
    given = {}
    for name, value in reply.items():
        known = PROPERTIES.get(name)
        if known is None:
            raise unusable(f"there is no property {_shown(name)}")
        if value in (None, "", [], known.default):
            continue
        if name not in (*ACTIONS[kind].needs, *ACTIONS[kind].may_have, *_OF_EVERY_ACTION):
            if ACTIONS[kind].tool:
                problem = f"{name} does not belong to the action {kind}"
                raise unusable(f"{problem}; do one thing at a time, and leave it null")
            continue
        given[name] = known.read(value)
        if given[name] is None:
            raise unusable(f"{name} is {_shown(value)}; it must be {known.expected}")
        bad = control_character_in(value) if isinstance(value, str) and name != "why" else ""
        if bad:
            raise unusable(f"{name} contains the character {bad!r}; use press for keys")
    return given


def _check_places(values: dict[str, Any], grid: Optional[Grid]) -> None:
    for x, y in (("x", "y"), ("to_x", "to_y")):
        if (x in values) != (y in values):
            raise unusable(f"{y if x in values else x} is missing; it must be a number")
        problem = grid.problem_of(values[x], values[y]) if grid and x in values else ""
        if problem:
            raise unusable(problem)

"""The action JSON of a vision model, read strictly (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, Optional

from ..ai.grid import Grid
from ..core.errors import ErrorCode, PeekabooError
from ..core.models import Point
from ..core.text import control_character_in
from ..desktop.keys import read_chord

_LONGEST_HOLD_S = 5
_LARGEST = 1e9  # no image is larger, and a float holds it


@dataclass(frozen=True)
class _Field:
    """A property of a reply. default: what null means; bounds: of a number; names: of a string."""

    kind: str
    help: str
    default: Any = None
    bounds: Optional[tuple[float, float]] = None
    names: tuple[str, ...] = ()

    @property
    def expected(self) -> str:
        if self.bounds:
            return f"a number from {self.bounds[0]:g} to {self.bounds[1]:g}"
        if self.names:
            return f"one of {', '.join(self.names)}"
        return {"array": "a list of names", "boolean": "true or false"}.get(self.kind, f"a {self.kind}")

    def accepts(self, value: Any) -> bool:
        if self.kind in ("number", "integer"):
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not abs(value) < _LARGEST or (self.kind == "integer" and value != int(value)):
                return False
            return self.bounds is None or self.bounds[0] <= value <= self.bounds[1]
        if self.kind == "array":
            return isinstance(value, list) and all(isinstance(each, str) for each in value)
        if self.kind == "boolean":
            return isinstance(value, bool)
        return isinstance(value, str) and (not self.names or value in self.names)


_FIELDS = {
    "x": _Field("number", "from the left edge of the last image, in its grid"),
    "y": _Field("number", "from the top edge of the last image, in its grid"),
    "x2": _Field("number", "drag: where it ends; zoom: the other corner"),
    "y2": _Field("number", "drag: where it ends; zoom: the other corner"),
    "button": _Field(
        "string", "left, right or middle; null: left", "left", names=("left", "right", "middle")
    ),
    "clicks": _Field("integer", "1, 2 or 3; null: 1", 1, (1, 3)),
    "modifiers": _Field("array", "cmd, ctrl, alt, shift, held meanwhile; null: none", ()),
    "direction": _Field("string", "up, down, left or right", names=("up", "down", "left", "right")),
    "amount": _Field("integer", "notches of the wheel; null: 3", 3, (1, 50)),
    "text": _Field("string", "type: the text; wait: a text to wait for", ""),
    "replace": _Field("boolean", "type: replace what the field holds; null: false", False),
    "key": _Field("string", "one key, such as return, tab, escape, down, a, f5", ""),
    "repeat": _Field("integer", "press: how often; null: 1", 1, (1, 50)),
    "seconds": _Field("number", "press: how long it is held; wait: at most so long", None, (0, 60)),
    "app": _Field("string", "open: an installed application's name", ""),
    "path": _Field("string", "open: a document's path", ""),
    "url": _Field("string", "open: an http or https address", ""),
}
OPENED = ("app", "path", "url")
"""What `open` opens: one of these."""
# The actions: the properties that each needs, and those that it may have.
_OWN_FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "click": (("x", "y"), ("button", "clicks", "modifiers")),
    "move": (("x", "y"), ()),
    "drag": (("x", "y", "x2", "y2"), ("button",)),
    "scroll": (("direction",), ("x", "y", "amount")),
    "type": (("text",), ("replace",)),
    "press": (("key",), ("modifiers", "repeat", "seconds")),
    "wait": ((), ("text", "seconds")),
    "zoom": (("x", "y", "x2", "y2"), ()),
    "open": ((), OPENED),
    "noop": ((), ()),
    "done": ((), ()),
}
_QUIET_KINDS = ("wait", "zoom", "noop", "done")
# What else models call them, as their families' own tools do, and the properties that such a name implies.
_OTHER_NAMES: dict[str, dict[str, Any]] = {
    "left_click": {"action": "click", "button": "left"},
    "right_click": {"action": "click", "button": "right"},
    "middle_click": {"action": "click", "button": "middle"},
    "double_click": {"action": "click", "clicks": 2},
    "triple_click": {"action": "click", "clicks": 3},
    "mouse_move": {"action": "move"},
    "move_pointer": {"action": "move"},
    "hover": {"action": "move"},
    "left_click_drag": {"action": "drag"},
    "drag_and_drop": {"action": "drag"},
    "key": {"action": "press"},
    "press_key": {"action": "press"},
    "keypress": {"action": "press"},
    "hotkey": {"action": "press"},
    "type_text": {"action": "type"},
    "input_text": {"action": "type"},
    "write": {"action": "type"},
    "screenshot": {"action": "wait"},
    "wait_for": {"action": "wait"},
    "finished": {"action": "done"},
    "finish": {"action": "done"},
}
_SHARED_FIELDS = {
    "done": _Field("boolean", "true only when the goal is reached"),
    "why": _Field("string", "one short sentence", ""),
    "confidence": _Field("number", "0 to 1: how sure you are", None, (0, 1)),
}
_ALL_FIELDS = {**_FIELDS, **_SHARED_FIELDS}


def _property(name: str, field: _Field) -> dict[str, Any]:
    kind: Any = field.kind if name in ("done", "why") else [field.kind, "null"]
    more = {"items": {"type": "string"}} if field.kind == "array" else {}
    return {"type": kind, "description": field.help, **more}


_PROPERTIES: dict[str, dict[str, Any]] = {
    "action": {"type": "string", "enum": list(_OWN_FIELDS)},
    **{name: _property(name, field) for name, field in _ALL_FIELDS.items()},
}
# Every property is required and every object closed, as OpenAI enforces it; unused properties are null.
ACTION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": _PROPERTIES,
    "required": list(_PROPERTIES),
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Action:
    """One action of a model. `place` and `end` are in the grid in which the model was asked."""

    kind: str
    """A key of the table above. wait, zoom, noop (the model is unsure) and done change nothing."""
    place: Optional[Point] = None
    """None for what has no place, and for a scroll in the middle of the window."""
    button: str = "left"
    clicks: int = 1
    text: str = ""
    key: str = ""
    modifiers: tuple[str, ...] = ()
    end: Optional[Point] = None
    """Where a drag ends; the other corner of what is zoomed into."""
    direction: str = ""
    amount: int = 3
    replace: bool = False
    repeat: int = 1
    seconds: Optional[float] = None
    app: str = ""
    path: str = ""
    url: str = ""
    is_last: bool = False
    """The model considers the goal reached: with `done`, or by this action."""
    why: str = ""
    confidence: Optional[float] = None

    @property
    def is_input(self) -> bool:
        return self.kind not in _QUIET_KINDS

    @property
    def needs_window(self) -> bool:
        return self.kind != "open" and self.is_input

    def describe(
        self, shows_text: bool = True, at: Optional[Point] = None, to: Optional[Point] = None
    ) -> str:
        """A short description; shows_text=False leaves out the text to type, which may be private.

        at, to: the places to show instead of the model's own numbers, in the window's pixels.
        """
        where, end = _shown_place(at or self.place), _shown_place(to or self.end)
        text = repr(self.text) if shows_text else f"{len(self.text)} character(s)"
        chord = "+".join((*self.modifiers, self.key))
        button = "" if self.button == "left" else f"{self.button} "
        times = ("", "", "double-", "triple-")[self.clicks]
        if self.kind == "click":
            return f"{'+'.join((*self.modifiers, ''))}{button}{times}click {where}"
        if self.kind == "press":
            hold = f" for {self.seconds:g} s" if self.seconds else ""
            return f"press {chord}{f' {self.repeat} times' if self.repeat > 1 else ''}{hold}"
        return {
            "move": f"move the pointer to {where}",
            "drag": f"{button}drag {where} to {end}",
            "scroll": f"scroll {self.direction} {self.amount}{f' at {where}' if where else ''}",
            "type": f"type {text}{' in place of what is there' if self.replace else ''}",
            "wait": f"wait for {text}" if self.text else "wait",
            "zoom": f"zoom into {where} to {end}",
            "open": f"open {self.app or self.path or self.url}",
        }.get(self.kind, self.kind)


def _shown_place(place: Optional[Point]) -> str:
    return f"{round(place.x, 1):g},{round(place.y, 1):g}" if place else ""


def read_action(text: str, grid: Optional[Grid]) -> Action:
    """The action in a model's reply to a question in this grid; None: its numbers are read as they are.

    Fences and prose around its JSON are ignored; everything else must be correct, nothing is guessed.
    Raises AI_PROVIDER_ERROR with the reason.
    """
    reply = _in_our_names(_first_object(text))
    kind = reply.get("action")
    if not isinstance(kind, str) or kind not in _OWN_FIELDS:
        raise unusable(f"action is {_shown(kind)}; it must be one of {', '.join(_OWN_FIELDS)}")
    unknown = [name for name in reply if name not in _PROPERTIES]
    if unknown:
        raise unusable(f"there is no property {_shown(unknown[0])}")
    needed, optional = _OWN_FIELDS[kind]
    own = (*needed, *optional)
    if needed or kind == "open":  # what else wait, noop and done carry has no meaning
        _check_foreign_fields(reply, kind, own)
    if kind == "open" and sum(not _is_empty(reply.get(name)) for name in OPENED) != 1:
        raise unusable(f"open needs one of {', '.join(OPENED)}, and only one")
    if kind == "type" and reply.get("replace") is True and reply.get("text") == "":
        needed = ()  # it clears the field
    values = {name: _value(reply, name, is_needed=name in needed) for name in (*own, *_SHARED_FIELDS)}
    values["is_last"] = _read_done(values.pop("done"), kind)
    place = _read_place(values, "x", "y", grid)
    end = _read_place(values, "x2", "y2", grid)
    if values.get("text"):
        bad = control_character_in(values["text"])
        if bad:
            raise unusable(f"text contains the character {bad!r}; use press for keys")
    values.update(_read_keys(kind, values))
    return Action(kind, place, end=end, **values)


def unusable(reason: str) -> PeekabooError:
    """AI_PROVIDER_ERROR for a reply that is no action, to be raised."""
    return PeekabooError(ErrorCode.AI_PROVIDER_ERROR, reason)


def _first_object(text: str) -> dict[str, Any]:
    """The first JSON object in a text."""
    start = text.find("{")
    if start < 0:
        raise unusable("the reply contains no JSON object")
    decoder = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_no_constant)
    try:
        found: dict[str, Any] = decoder.raw_decode(text, start)[0]
    except json.JSONDecodeError as e:
        raise unusable(f"the reply is not valid JSON: {e.msg}") from e
    except (ValueError, RecursionError) as e:
        reason = "a number is too large, or the nesting too deep"
        raise unusable(f"the reply is not valid JSON: {reason}") from e
    return found


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise unusable("the JSON object repeats a property")
    return found


def _no_constant(name: str) -> NoReturn:
    raise unusable(f"{name} is not a JSON number")


def _in_our_names(reply: dict[str, Any]) -> dict[str, Any]:
    """The reply with our name of its action, and what that name implied."""
    name = reply.get("action")
    implied = _OTHER_NAMES.get(name, {}) if isinstance(name, str) else {}
    for key, value in implied.items():
        if key != "action" and reply.get(key) not in (None, value):
            raise unusable(f"the action {name} with {key} {_shown(reply[key])} has two meanings")
    return {**reply, **implied}


def _shown(value: Any) -> str:
    return "missing" if value is None else repr(value)[:60]


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or value == []


def _value(reply: dict[str, Any], name: str, is_needed: bool) -> Any:
    """A property's value of the right type, or its default; refused where it is needed and missing."""
    field = _ALL_FIELDS[name]
    value: Any = reply.get(name)
    if _is_empty(value):
        if is_needed:
            raise unusable(f"{name} is {'empty' if value == '' else 'missing'}; it must be {field.expected}")
        return field.default
    if not field.accepts(value):
        raise unusable(f"{name} is {_shown(value)}; it must be {field.expected}")
    return int(value) if field.kind == "integer" else float(value) if field.kind == "number" else value


def _check_foreign_fields(reply: dict[str, Any], kind: str, own: Iterable[str]) -> None:
    """A `type` with an x may mean a click first: the model has to say so itself."""
    for name, field in _FIELDS.items():
        value = reply.get(name)
        # 0 is a coordinate, and equal to False
        is_default = type(value) is type(field.default) and value == field.default
        if name not in own and not _is_empty(value) and not is_default:
            problem = f"{name} does not belong to the action {kind}"
            raise unusable(f"{problem}; do one thing at a time, and leave it null")


def _read_done(done: Optional[bool], kind: str) -> bool:
    if done is None:
        return kind == "done"
    if kind in _QUIET_KINDS and done != (kind == "done"):
        raise unusable(f"the action is {kind}, but done is {str(done).lower()}")
    return done


def _read_place(values: dict[str, Any], x_name: str, y_name: str, grid: Optional[Grid]) -> Optional[Point]:
    x, y = values.pop(x_name, None), values.pop(y_name, None)
    if x is None and y is None:
        return None
    if x is None or y is None:
        raise unusable(f"{x_name if x is None else y_name} is missing; it must be a number")
    problem = grid.problem_of(x, y) if grid else ""
    if problem:
        raise unusable(problem)
    return Point(x, y)


def _read_keys(kind: str, values: dict[str, Any]) -> dict[str, Any]:
    """Key and modifiers under the names of desktop.keys."""
    if kind not in ("click", "press"):
        return {}
    if kind == "press" and (values["seconds"] or 0) > _LONGEST_HOLD_S:
        raise unusable(f"seconds is {values['seconds']:g}; a key is held for at most {_LONGEST_HOLD_S}")
    try:
        chord = read_chord(values.get("key", "a"), values["modifiers"])
    except PeekabooError as e:
        raise unusable(e.sentence()) from e
    return {"modifiers": chord.modifiers, **({"key": chord.key} if kind == "press" else {})}

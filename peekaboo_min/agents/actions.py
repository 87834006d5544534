"""The action JSON of a vision model, read strictly (pure)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NoReturn, Optional

from ..ai.dialects import read_reply
from ..ai.grid import Grid
from ..core.errors import ErrorCode, PeekabooError
from ..core.models import Point
from ..core.text import control_character_in
from ..desktop.keys import read_chord

# The input actions, and the fields each may have besides done, why and confidence.
_FIELDS_OF = {"click": ("x", "y", "button", "clicks"), "type": ("text",), "press": ("key", "modifiers")}
_QUIET_KINDS = ("wait", "noop", "done")
_KINDS = (*_FIELDS_OF, *_QUIET_KINDS)
_BUTTONS = ("left", "right", "middle")
_EMPTY: tuple[Any, ...] = (None, "", [])


def _optional(kind: str, description: str, **more: Any) -> dict[str, Any]:
    return {"type": [kind, "null"], "description": description, **more}


_PROPERTIES: dict[str, dict[str, Any]] = {
    "action": {"type": "string", "enum": list(_KINDS)},
    "x": _optional("number", "click: from the left edge of the last image, in its grid"),
    "y": _optional("number", "click: from the top edge of the last image, in its grid"),
    "button": _optional("string", "click: left, right or middle; null means left"),
    "clicks": _optional("integer", "click: 1, or 2 for a double click; null means 1"),
    "text": _optional("string", "type: the text"),
    "key": _optional("string", "press: one key, such as return, tab, escape, down, a, f5"),
    "modifiers": _optional("array", "press: cmd, ctrl, alt, shift; null for none", items={"type": "string"}),
    "done": {"type": "boolean", "description": "true only when the goal is reached"},
    "why": {"type": "string", "description": "one short sentence"},
    "confidence": _optional("number", "0 to 1: how sure you are"),
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
    """One action of a model. `place` is in the grid in which the model was asked; None except for a click."""

    kind: str
    """click, type, press; wait, noop (the model is unsure) and done change nothing."""
    place: Optional[Point] = None
    button: str = "left"
    clicks: int = 1
    text: str = ""
    key: str = ""
    modifiers: tuple[str, ...] = ()
    is_last: bool = False
    """The model considers the goal reached: with `done`, or by this action."""
    why: str = ""
    confidence: Optional[float] = None

    @property
    def is_input(self) -> bool:
        return self.kind in _FIELDS_OF

    def describe(self, shows_text: bool = True, at: Optional[Point] = None) -> str:
        """A short description; shows_text=False leaves out the text to type, which may be private.

        at: the place to show instead of the model's own numbers, in the window's pixels.
        """
        place = Point(round(at.x, 1), round(at.y, 1)) if at else self.place
        if place is not None:
            times = "double-" if self.clicks == 2 else ""
            button = "" if self.button == "left" else f"{self.button} "
            return f"{button}{times}click {place.x:g},{place.y:g}"
        if self.kind == "type":
            return f"type {self.text!r}" if shows_text else f"type {len(self.text)} character(s)"
        if self.kind == "press":
            return "press " + "+".join([*self.modifiers, self.key])
        return self.kind


def read_action(text: str, grid: Optional[Grid]) -> Action:
    """The action in a model's reply to a question in this grid; None: its numbers are read as they are.

    It is in one of the dialects that ai.dialects reads; everything else must be correct, nothing is guessed.
    Raises AI_PROVIDER_ERROR with the reason.
    """
    reply = read_reply(text)
    kind = reply.get("action")
    if not isinstance(kind, str) or kind not in _KINDS:
        _refuse(f"action is {_shown(kind)}; it must be one of {', '.join(_KINDS)}")
    unknown = [name for name in reply if name not in _PROPERTIES]
    if unknown:
        _refuse(f"there is no property {_shown(unknown[0])}")
    is_last = _read_done(reply, kind)
    why = "" if reply.get("why") is None else reply["why"]
    if not isinstance(why, str):
        _refuse(f"why is {_shown(why)}; it must be a string")
    shared: dict[str, Any] = {
        "is_last": is_last,
        "why": why,
        "confidence": _read_confidence(reply.get("confidence")),
    }
    if kind in _FIELDS_OF:
        _check_foreign_fields(reply, kind)
    if kind == "click":
        return Action(kind, _read_place(reply, grid), _read_button(reply), _read_clicks(reply), **shared)
    if kind == "type":
        return Action(kind, text=_read_text(reply), **shared)
    if kind == "press":
        key, modifiers = _read_key(reply)
        return Action(kind, key=key, modifiers=modifiers, **shared)
    return Action(kind, **shared)


def _refuse(reason: str) -> NoReturn:
    raise PeekabooError(ErrorCode.AI_PROVIDER_ERROR, reason)


def _shown(value: Any) -> str:
    return "missing" if value is None else repr(value)[:60]


def _read_done(reply: dict[str, Any], kind: str) -> bool:
    done = reply.get("done")
    if done is None:
        return kind == "done"
    if not isinstance(done, bool):
        _refuse(f"done is {_shown(done)}; it must be true or false")
    if kind in _QUIET_KINDS and done != (kind == "done"):
        _refuse(f"the action is {kind}, but done is {str(done).lower()}")
    return done


def _read_confidence(value: Any) -> Optional[float]:
    if value is None:
        return None
    if not _is_number(value) or not 0 <= value <= 1:
        _refuse(f"confidence is {_shown(value)}; it must be a number from 0 to 1")
    return float(value)


def _is_number(value: Any) -> bool:
    """Whether it is a finite number; a bool, which Python counts as an int, is not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < math.inf


def _check_foreign_fields(reply: dict[str, Any], kind: str) -> None:
    """A `type` with an x may mean a click first: the model has to say so itself."""
    defaults = {"button": "left", "clicks": 1}
    own = (*_FIELDS_OF[kind], "action", "done", "why", "confidence")
    for name, value in reply.items():
        # `in` would find 0 equal to False, and 0 is a coordinate
        is_empty = any(type(value) is type(empty) and value == empty for empty in _EMPTY)
        if name not in own and not is_empty and defaults.get(name) != value:
            _refuse(f"{name} does not belong to the action {kind}; do one thing at a time, and leave it null")


def _read_place(reply: dict[str, Any], grid: Optional[Grid]) -> Point:
    for name in ("x", "y"):
        if not _is_number(reply.get(name)):
            _refuse(f"{name} is {_shown(reply.get(name))}; it must be a number")
    problem = grid.problem_of(reply["x"], reply["y"]) if grid else ""
    if problem:
        _refuse(problem)
    return Point(float(reply["x"]), float(reply["y"]))


def _read_button(reply: dict[str, Any]) -> str:
    button = reply.get("button")
    if button is not None and button not in _BUTTONS:
        _refuse(f"button is {_shown(button)}; it must be one of {', '.join(_BUTTONS)}")
    return button or "left"


def _read_clicks(reply: dict[str, Any]) -> int:
    clicks = reply.get("clicks")
    if clicks is None:
        return 1
    if not _is_number(clicks) or clicks not in (1, 2):
        _refuse(f"clicks is {_shown(clicks)}; it must be 1 or 2")
    return int(clicks)


def _read_text(reply: dict[str, Any]) -> str:
    text = reply.get("text")
    if not isinstance(text, str) or not text:
        _refuse("text is empty; give the text to type")
    bad = control_character_in(text)
    if bad:
        _refuse(f"text contains the character {bad!r}; use press for keys")
    return text


def _read_key(reply: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    key, modifiers = reply.get("key"), reply.get("modifiers") or []
    if not isinstance(key, str) or not key:
        _refuse(f"key is {_shown(key)}; name the key to press")
    if not isinstance(modifiers, list) or not all(isinstance(name, str) for name in modifiers):
        _refuse(f"modifiers is {_shown(modifiers)}; it must be a list of names")
    try:
        chord = read_chord(key, modifiers)
    except PeekabooError as e:
        _refuse(e.sentence())
    return chord.key, chord.modifiers

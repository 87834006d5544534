"""The action JSON of a vision model, read strictly (pure)."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, NoReturn, Optional

from ..core.errors import ErrorCode, PeekabooError
from ..core.models import Point
from ..desktop.keys import read_chord

# Which fields an action may hold besides done, why and confidence; all actions that do something stand here.
_FIELDS_OF = {"click": ("x", "y", "button", "clicks"), "type": ("text",), "press": ("key", "modifiers")}
_QUIET_KINDS = ("wait", "noop", "done")
_EVERY_FIELD = (
    "action",
    "x",
    "y",
    "button",
    "clicks",
    "text",
    "key",
    "modifiers",
    "done",
    "why",
    "confidence",
)
_ACTION_BUTTONS = ("left", "right", "middle")
_EMPTY: tuple[Any, ...] = (None, "", [])
_NO_CONTROL = "\n\r\t"

# Every property is required and every object closed, as OpenAI enforces it; what an action has no use for is null.
ACTION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": [*_FIELDS_OF, *_QUIET_KINDS]},
        "x": {
            "type": ["number", "null"],
            "description": "click: pixels from the left edge of the last picture",
        },
        "y": {
            "type": ["number", "null"],
            "description": "click: pixels from the top edge of the last picture",
        },
        "button": {
            "type": ["string", "null"],
            "description": "click: left, right or middle; null means left",
        },
        "clicks": {
            "type": ["integer", "null"],
            "description": "click: 1, or 2 for a double click; null means 1",
        },
        "text": {"type": ["string", "null"], "description": "type: the text"},
        "key": {
            "type": ["string", "null"],
            "description": "press: one key, such as return, tab, escape, down, a, f5",
        },
        "modifiers": {
            "type": ["array", "null"],
            "items": {"type": "string"},
            "description": "press: cmd, ctrl, alt, shift; null for none",
        },
        "done": {"type": "boolean", "description": "true only when the goal is reached"},
        "why": {"type": "string", "description": "one short sentence"},
        "confidence": {"type": ["number", "null"], "description": "0 to 1: how sure you are"},
    },
    "required": list(_EVERY_FIELD),
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Action:
    """One thing that a model wants done. `pixel` is of the picture as the model saw it; None but for a click."""

    kind: str
    """click, type, press; wait, noop (it is unsure) and done change nothing."""
    pixel: Optional[Point] = None
    button: str = "left"
    clicks: int = 1
    text: str = ""
    key: str = ""
    modifiers: tuple[str, ...] = ()
    is_last: bool = False
    """The model holds the goal to be reached: by a `done`, or with this act."""
    why: str = ""
    confidence: Optional[float] = None

    @property
    def acts(self) -> bool:
        return self.kind in _FIELDS_OF

    def described(self, shows_text: bool = True) -> str:
        """In a few words; without the text to type where nobody else shall read it."""
        if self.pixel is not None:
            times = "double-" if self.clicks == 2 else ""
            button = "" if self.button == "left" else f"{self.button} "
            return f"{button}{times}click {self.pixel.x:g},{self.pixel.y:g}"
        if self.kind == "type":
            return f"type {self.text!r}" if shows_text else f"type {len(self.text)} character(s)"
        if self.kind == "press":
            return "press " + "+".join([*self.modifiers, self.key])
        return self.kind


def read_action(text: str, image_width: int, image_height: int) -> Action:
    """The action in a model's reply, for a picture of this size in pixels; 0x0 where it saw none.

    Fences and words around the first JSON object are tolerated; everything else must be right, and nothing is guessed.
    Raises AI_PROVIDER_ERROR with the reason.
    """
    reply = _first_object(text)
    kind = reply.get("action")
    if not isinstance(kind, str) or kind not in (*_FIELDS_OF, *_QUIET_KINDS):
        _refuse(f"action is {_shown(kind)}; it must be one of {', '.join([*_FIELDS_OF, *_QUIET_KINDS])}")
    unknown = [name for name in reply if name not in _EVERY_FIELD]
    if unknown:
        _refuse(f"there is no property {_shown(unknown[0])}")
    is_last = _read_done(reply, kind)
    why = "" if reply.get("why") is None else reply["why"]
    if not isinstance(why, str):
        _refuse(f"why is {_shown(why)}; it must be a text")
    shared: dict[str, Any] = {
        "is_last": is_last,
        "why": why,
        "confidence": _read_confidence(reply.get("confidence")),
    }
    if kind in _FIELDS_OF:
        _check_foreign_fields(reply, kind)
    if kind == "click":
        pixel = _read_pixel(reply, image_width, image_height)
        return Action(kind, pixel, _read_button(reply), _read_clicks(reply), **shared)
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


def _first_object(text: str) -> dict[str, Any]:
    """The first JSON object in a text; what stands around it (fences, words) is left aside."""
    start = text.find("{")
    if start < 0:
        _refuse("the reply holds no JSON object")
    decoder = json.JSONDecoder(object_pairs_hook=_without_doubles, parse_constant=_no_constant)
    try:
        found, _ = decoder.raw_decode(text, start)
    except (ValueError, RecursionError) as e:
        reason = e.msg if isinstance(e, json.JSONDecodeError) else "a number or the nesting is too large"
        _refuse(f"the reply is not valid JSON: {reason}")
    return found


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        _refuse("a property stands in the JSON object twice")
    return found


def _no_constant(word: str) -> NoReturn:
    _refuse(f"{word} is no JSON number")


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
    """True for 0, too; a bool is an int to Python, and none to us."""
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, float) and math.isfinite(value)
    )


def _check_foreign_fields(reply: dict[str, Any], kind: str) -> None:
    """`type` with an x may mean a click first: that is for the model to say."""
    defaults = {"button": "left", "clicks": 1}
    own = (*_FIELDS_OF[kind], "action", "done", "why", "confidence")
    for name, value in reply.items():
        # `in` would find 0 equal to False, and 0 is a coordinate
        is_empty = any(value is one or (value == one and type(value) is type(one)) for one in _EMPTY)
        if name not in own and not is_empty and defaults.get(name) != value:
            _refuse(f"{name} does not belong to the action {kind}; do one thing at a time, and leave it null")


def _read_pixel(reply: dict[str, Any], width: int, height: int) -> Point:
    if not width or not height:
        _refuse("there is no picture to click in")
    for name, size in (("x", width), ("y", height)):
        value = reply.get(name)
        if not _is_number(value):
            _refuse(f"{name} is {_shown(value)}; it must be a number of pixels")
        if not 0 <= value < size:
            _refuse(f"{name} is {_shown(value)}, outside the picture of {width}x{height} pixels")
    x, y = float(reply["x"]), float(reply["y"])
    if x < 1 and y < 1 and (x % 1 or y % 1):
        _refuse("x and y look like shares of the picture; give pixels")
    return Point(x, y)


def _read_button(reply: dict[str, Any]) -> str:
    button = reply.get("button")
    if button is not None and button not in _ACTION_BUTTONS:
        _refuse(f"button is {_shown(button)}; it must be one of {', '.join(_ACTION_BUTTONS)}")
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
    bad = next(
        (
            c
            for c in text
            if ((ord(c) < 32 or ord(c) == 127) and c not in _NO_CONTROL) or "\ud800" <= c <= "\udfff"
        ),
        None,
    )
    if bad is not None:
        _refuse(f"text holds the character {bad!r}; press such a key instead")
    return text


def _read_key(reply: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    key, modifiers = reply.get("key"), reply.get("modifiers") or []
    if not isinstance(key, str) or not key:
        _refuse(f"key is {_shown(key)}; name the key to press")
    if not isinstance(modifiers, list) or not all(isinstance(one, str) for one in modifiers):
        _refuse(f"modifiers is {_shown(modifiers)}; it must be a list of names")
    try:
        chord = read_chord(key, modifiers)
    except PeekabooError as e:
        _refuse(e.sentence())
    return chord.key, chord.modifiers

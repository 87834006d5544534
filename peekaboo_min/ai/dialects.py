"""Replies as models write them, as an object with the names of our schema."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from ..core.errors import ErrorCode, PeekabooError

# Other names of our actions, and the properties that they imply.
_OTHER_NAMES: dict[str, dict[str, Any]] = {
    **{name: {"action": "click", "button": "left"} for name in ("left_click", "left_single")},
    **{name: {"action": "click", "button": "right"} for name in ("right_click", "right_single")},
    "middle_click": {"action": "click", "button": "middle"},
    **{name: {"action": "click", "clicks": 2} for name in ("double_click", "left_double")},
    "triple_click": {"action": "click", "clicks": 3},
    **{name: {"action": "move"} for name in ("mouse_move", "move_pointer", "hover")},
    **{name: {"action": "drag"} for name in ("left_click_drag", "drag_and_drop")},
    "hscroll": {"action": "scroll"},
    **{name: {"action": "press"} for name in ("key", "press_key", "keypress", "hotkey", "hold_key")},
    **{name: {"action": "type"} for name in ("type_text", "input_text", "write")},
    **{name: {"action": "done"} for name in ("finished", "finish", "terminate", "answer")},
    **{name: {"action": "wait"} for name in ("screenshot", "take_screenshot", "wait_for")},
    "call_user": {"action": "noop"},
}
# Other names of our properties, by action.
_OTHER_FIELDS = {
    "press": {"keys": "key", "hotkey": "key", "duration": "seconds"},
    "type": {"content": "text"},
    "drag": {
        **{"to_x": "x2", "to_y": "y2", "start_x": "x", "start_y": "y", "end_x": "x2", "end_y": "y2"},
        **{"destination_x": "x2", "destination_y": "y2"},
    },
    "scroll": {"scroll_direction": "direction", "scroll_amount": "amount"},
    "wait": {"time": "seconds", "duration": "seconds"},
    "done": {"content": "why"},
}
_SHARED_FIELDS = {"thought": "why", "reason": "why"}
# Pairs and boxes of Qwen's tool, and the places of UI-TARS' lines.
_PLACES = {"coordinate": ("x", "y"), "start_coordinate": ("x", "y"), "region": ("x", "y", "x2", "y2")}
_POINTS = {
    **dict.fromkeys(("point", "start_point", "start_box"), ("x", "y")),
    **dict.fromkeys(("end_point", "end_box"), ("x2", "y2")),
}
_PIXELS_PER_NOTCH = 100
_MOST_NOTCHES = 50
_MOST_PIXELS = 1e6
_TOOL_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_ACTION_LINE = re.compile(r"^[ \t]*Action:[ \t]*(.*)$", re.MULTILINE)
_THOUGHT = re.compile(r"^[ \t]*Thought:[ \t]*(.*)$", re.MULTILINE)
_CALL = re.compile(r"(\w+)\((.*)\)")
_ARGUMENT = re.compile(r"""\s*(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*(?:,|$)""")
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_PLACE = re.compile(rf"(?:<point>|[(\[])?\s*{_NUMBER}[\s,]+{_NUMBER}\s*(?:</point>|[)\]])?")
_ESCAPES = {"n": "\n", "t": "\t"}


def read_reply(text: str) -> dict[str, Any]:
    """The one action of a reply (our JSON, Qwen's `<tool_call>`, a line of UI-TARS) in our schema's names.

    Fences and prose around it are tolerated. What has two meanings is refused, never guessed; the values are
    the caller's to check. Raises AI_PROVIDER_ERROR with the reason.
    """
    opening = text.find("{")
    # a tag within our JSON is text, which may come from the screen
    if "<tool_call>" in (text[:opening] if opening >= 0 else text):
        return _in_our_names(_tool_call(text))
    lines = _ACTION_LINE.findall(text)
    if lines and not text.lstrip().startswith(("{", "```")):
        return _in_our_names(_action_line(lines, _THOUGHT.findall(text)))
    return _in_our_names(_first_object(text, opening))


def unusable(reason: str) -> PeekabooError:
    """AI_PROVIDER_ERROR for a reply that is no action, to be raised."""
    return PeekabooError(ErrorCode.AI_PROVIDER_ERROR, reason)


def _in_our_names(reply: dict[str, Any]) -> dict[str, Any]:
    name = reply.get("action")
    implied = _OTHER_NAMES.get(name, {}) if isinstance(name, str) else {}
    if name in ("key", "keypress", "hold_key") and reply.get("text"):  # Anthropic's name for it
        reply = _renamed(reply, {"text": "key"})
    if name == "answer":
        reply = _renamed(reply, {"text": "why"})
    if name == "terminate":
        status = reply.get("status")
        implied = {"action": "done" if status in (None, "success") else "noop"}
        reply = {key: value for key, value in reply.items() if key != "status"}
    reply = {**reply, "action": implied.get("action", name)}
    fields = _OTHER_FIELDS.get(reply["action"], {}) if isinstance(reply["action"], str) else {}
    reply = _renamed(reply, {**_SHARED_FIELDS, **fields})
    for key, value in implied.items():
        if reply.get(key) not in (None, value):
            raise unusable(f"the action {name} with {key} {reply[key]!r} has two meanings")
        reply[key] = value
    if reply["action"] == "press" and isinstance(reply.get("key"), list):
        reply["key"] = "+".join(str(key) for key in reply["key"])
    return reply


def _renamed(reply: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """The properties under our names; one that has a value under two names is refused."""
    found: dict[str, Any] = {}
    for key, value in reply.items():
        ours = names.get(key, key)
        if ours != "why" and found.get(ours) not in (None, "", []) and value not in (None, "", []):
            raise unusable(f"{ours} is given twice, under two names")
        if found.get(ours) in (None, "", []):
            found[ours] = value
    return found


# our JSON ---


def _first_object(text: str, start: int) -> dict[str, Any]:
    """The first JSON object in a text; the text around it (fences, prose) is ignored."""
    if start < 0:
        raise unusable("the reply contains no JSON object")
    decoder = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_no_constant)
    try:
        found: dict[str, Any] = decoder.raw_decode(text, start)[0]
    except (ValueError, RecursionError) as e:
        reason = (
            e.msg if isinstance(e, json.JSONDecodeError) else "a number is too large, or the nesting too deep"
        )
        raise unusable(f"the reply is not valid JSON: {reason}") from e
    return found


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise unusable("the JSON object repeats a property")
    return found


def _no_constant(name: str) -> NoReturn:
    raise unusable(f"{name} is not a JSON number")


# Qwen ---


def _tool_call(text: str) -> dict[str, Any]:
    """`<tool_call>{"name": "computer_use", "arguments": {"action", "coordinate": [x, y]}}</tool_call>`."""
    count = text.count("<tool_call>")
    found = _TOOL_CALL.search(text) if count == 1 else None
    if not found:
        raise unusable(f"the reply has {count} tool calls; exactly one complete call is expected")
    call = _first_object(found[1], found[1].find("{"))
    arguments = call.get("arguments")
    if call.get("name") != "computer_use" or not isinstance(arguments, dict):
        raise unusable("the tool call is not one of computer_use with its arguments")
    return unpaired(arguments)


def unpaired(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a tool of Qwen's or Anthropic's, with x and y for their pairs.

    Raises AI_PROVIDER_ERROR.
    """
    reply = {key: value for key, value in arguments.items() if key not in (*_PLACES, "pixels")}
    for name, fields in _PLACES.items():
        place = arguments.get(name)
        if name == "coordinate" and arguments.get("action") == "left_click_drag":
            fields = ("x2", "y2")
        if place is not None:
            if not isinstance(place, list) or len(place) != len(fields) or set(fields) & set(reply):
                raise unusable(f"{name} must be {'one pair' if len(fields) == 2 else 'two pairs'} of numbers")
            reply.update(zip(fields, place))
    if arguments.get("pixels") is not None:
        reply.update(_scroll_of(arguments["pixels"], is_horizontal=arguments.get("action") == "hscroll"))
    return reply


def _scroll_of(pixels: Any, is_horizontal: bool) -> dict[str, Any]:
    """Qwen's scroll: up and to the right are positive. Small numbers are notches, as its harnesses do it."""
    is_number = isinstance(pixels, (int, float)) and not isinstance(pixels, bool)
    if not is_number or not 0 < abs(pixels) < _MOST_PIXELS:
        raise unusable(f"pixels is {str(pixels)[:60]}; it must be a number other than 0")
    backwards, forwards = ("left", "right") if is_horizontal else ("down", "up")
    direction = forwards if pixels > 0 else backwards
    is_in_notches = abs(pixels) <= _MOST_NOTCHES
    return {"direction": direction, "amount": notches_of(pixels, 1 if is_in_notches else _PIXELS_PER_NOTCH)}


def notches_of(pixels: float, pixels_per_notch: int = _PIXELS_PER_NOTCH) -> int:
    """How many notches of the wheel a scroll by so many pixels is, in either direction."""
    return max(1, min(_MOST_NOTCHES, round(abs(pixels) / pixels_per_notch)))


# UI-TARS ---


def _action_line(lines: list[str], thoughts: list[str]) -> dict[str, Any]:
    """`Action: click(point='<point>x y</point>')`, with `Thought: ...` before it."""
    call = _CALL.fullmatch(lines[0].strip())
    if len(lines) != 1 or not call:
        raise unusable("the reply must have one line `Action: NAME(...)`")
    reply: dict[str, Any] = {"action": call[1]}
    if thoughts:
        reply["why"] = thoughts[0].strip()
    rest = call[2].strip()
    while rest:
        argument = _ARGUMENT.match(rest)
        if not argument or argument[1] in reply:
            raise unusable(f"the arguments of {call[1]} cannot be read")
        name, value = argument[1], argument[2] if argument[2] is not None else argument[3]
        rest = rest[argument.end() :]
        if name in _POINTS:
            if _POINTS[name][0] in reply:
                raise unusable("the action has two places")
            reply.update(zip(_POINTS[name], _place(value)))
        elif call[1] == "hotkey" and name in ("key", "hotkey"):
            reply["key"] = "+".join(value.split())
        else:
            reply[name] = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), value)
    if call[1] == "finished":
        reply["why"] = reply.pop("content", "") or reply.get("why", "")
    return reply


def _place(text: str) -> tuple[float, float]:
    found = _PLACE.fullmatch(re.sub(r"<\|box_(?:start|end)\|>", "", text).strip())
    if not found or not all(math.isfinite(float(each)) for each in found.groups()):
        raise unusable(f"{text[:60]!r} is not one place")
    return float(found[1]), float(found[2])

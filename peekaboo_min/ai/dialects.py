"""Replies as models write them, as an object with the names of our schema."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from ..core.errors import ErrorCode, PeekabooError

# Other names of our actions, and the properties that they imply.
_OTHER_NAMES: dict[str, dict[str, Any]] = {
    "left_click": {"action": "click", "button": "left"},
    "left_single": {"action": "click", "button": "left"},
    "right_click": {"action": "click", "button": "right"},
    "right_single": {"action": "click", "button": "right"},
    "middle_click": {"action": "click", "button": "middle"},
    "double_click": {"action": "click", "clicks": 2},
    "left_double": {"action": "click", "clicks": 2},
    **{name: {"action": "press"} for name in ("key", "press_key", "keypress", "hotkey")},
    **{name: {"action": "type"} for name in ("type_text", "input_text", "write")},
    **{name: {"action": "done"} for name in ("finished", "finish", "terminate", "answer")},
    **{name: {"action": "wait"} for name in ("screenshot", "take_screenshot")},
    "call_user": {"action": "noop"},
}
# Other names of our properties, by action.
_OTHER_FIELDS = {
    "press": {"keys": "key", "hotkey": "key"},
    "type": {"content": "text"},
    "done": {"content": "why"},
}
_SHARED_FIELDS = {"thought": "why", "reason": "why"}
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


def _refuse(reason: str) -> NoReturn:
    raise PeekabooError(ErrorCode.AI_PROVIDER_ERROR, reason)


def _in_our_names(reply: dict[str, Any]) -> dict[str, Any]:
    name = reply.get("action")
    implied = _OTHER_NAMES.get(name, {}) if isinstance(name, str) else {}
    if name in ("key", "keypress") and reply.get("text"):  # Anthropic's name for it
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
            _refuse(f"the action {name} with {key} {reply[key]!r} has two meanings")
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
            _refuse(f"{ours} is given twice, under two names")
        if found.get(ours) in (None, "", []):
            found[ours] = value
    return found


# our JSON ---


def _first_object(text: str, start: int) -> dict[str, Any]:
    """The first JSON object in a text; the text around it (fences, prose) is ignored."""
    if start < 0:
        _refuse("the reply contains no JSON object")
    decoder = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_no_constant)
    try:
        found: dict[str, Any] = decoder.raw_decode(text, start)[0]
    except (ValueError, RecursionError) as e:
        reason = e.msg if isinstance(e, json.JSONDecodeError) else "a number or the nesting is too large"
        _refuse(f"the reply is not valid JSON: {reason}")
    return found


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        _refuse("the JSON object repeats a property")
    return found


def _no_constant(name: str) -> NoReturn:
    _refuse(f"{name} is not a JSON number")


# Qwen ---


def _tool_call(text: str) -> dict[str, Any]:
    """`<tool_call>{"name": "computer_use", "arguments": {"action", "coordinate": [x, y]}}</tool_call>`."""
    calls = _TOOL_CALL.findall(text)
    if len(calls) != 1 or text.count("<tool_call>") != 1:
        _refuse(f"the reply has {text.count('<tool_call>')} tool calls; it must be one, and complete")
    call = _first_object(calls[0], calls[0].find("{"))
    arguments = call.get("arguments")
    if call.get("name") != "computer_use" or not isinstance(arguments, dict):
        _refuse("the tool call is not one of computer_use with its arguments")
    reply = {key: value for key, value in arguments.items() if key not in ("coordinate", "time")}
    place = arguments.get("coordinate")
    if place is not None:
        if not isinstance(place, list) or len(place) != 2 or "x" in reply or "y" in reply:
            _refuse("coordinate must be one pair of numbers")
        reply.update(x=place[0], y=place[1])
    return reply


# UI-TARS ---


def _action_line(lines: list[str], thoughts: list[str]) -> dict[str, Any]:
    """`Action: click(point='<point>x y</point>')`, with `Thought: ...` before it."""
    call = _CALL.fullmatch(lines[0].strip())
    if len(lines) != 1 or not call:
        _refuse("the reply must have one line `Action: NAME(...)`")
    reply: dict[str, Any] = {"action": call[1]}
    if thoughts:
        reply["why"] = thoughts[0].strip()
    rest = call[2].strip()
    while rest:
        argument = _ARGUMENT.match(rest)
        if not argument or argument[1] in reply:
            _refuse(f"the arguments of {call[1]} cannot be read")
        name, value = argument[1], argument[2] if argument[2] is not None else argument[3]
        rest = rest[argument.end() :]
        if name in ("point", "start_box"):
            if "x" in reply:
                _refuse("the action has two places")
            reply.update(zip("xy", _place(value)))
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
        _refuse(f"{text[:60]!r} is not one place")
    return float(found[1]), float(found[2])

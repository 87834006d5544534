"""FUNCTION_CALL: name|a|b, read from a model's reply and converted by schema."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Optional, Union

from ..core.errors import invalid

# Models wrap the line in markdown nevertheless: quotes, bullets, fences, emphasis.
_ACTION_LINE = re.compile(
    r"[ \t>]*(?:[-*+] |\d+[.)] )?(?P<mark>[`*_]*)(?P<keyword>FUNCTION_CALL|FINAL_ANSWER):(?P<rest>.*)"
)
_LINE_END = re.compile(r"\r\n|\n|\r")
_WHOLE_NUMBER = re.compile(r"([+-]?[0-9]{1,15})(\.0*)?")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")
_COORDINATES = ("x", "y", "width", "height")


@dataclass(frozen=True)
class FunctionCall:
    """A call that a model asks for: the tool's name and its parameters, as written."""

    name: str
    arguments: tuple[str, ...]

    @property
    def text(self) -> str:
        return "|".join((self.name, *self.arguments))


@dataclass(frozen=True)
class FinalAnswer:
    """The model reports that it is done."""

    text: str


def read_reply(reply: str) -> Union[FunctionCall, FinalAnswer, None]:
    """The first line of a reply that is a FUNCTION_CALL or a FINAL_ANSWER; the rest is ignored."""
    for line in _LINE_END.split(reply):
        found = _ACTION_LINE.match(line)
        if not found:
            continue
        rest = found["rest"]
        mark = found["mark"][::-1]
        if mark and rest.rstrip().endswith(mark):
            rest = rest.rstrip()[: -len(mark)]
        if found["keyword"] == "FINAL_ANSWER":
            return FinalAnswer(rest.strip())
        name, *arguments = rest.split("|")
        return FunctionCall(name.strip(), tuple(arguments))
    return None


def convert_arguments(call: FunctionCall, schema: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a call by name, each of the type that the tool's inputSchema gives it.

    Raises INVALID_ARGUMENT; the message is for the model.
    """
    properties: dict[str, dict[str, Any]] = schema.get("properties", {})
    names = list(properties)
    given = () if call.arguments == ("",) and not names else call.arguments  # `open_keynote|`
    least = len([name for name in names if name in schema.get("required", ())])
    if not least <= len(given) <= len(names):
        raise invalid(_wrong_count(call, names, least))
    return {
        name: _convert_argument(call.name, name, properties[name], argument)
        for name, argument in zip(names, given)
    }


def _wrong_count(call: FunctionCall, names: list[str], least: int) -> str:
    count = str(least) if least == len(names) else f"{least} to {len(names)}"
    wanted = f"{count} parameter(s): {'|'.join(names)}" if names else "no parameters"
    hint = "; write ¦ where a text contains |" if len(call.arguments) > len(names) > 0 else ""
    return f"{call.name} takes {wanted}; you gave {len(call.arguments)}{hint}"


def _convert_argument(tool: str, name: str, schema: dict[str, Any], argument: str) -> Any:
    kind = schema.get("type", "string")
    if kind == "string":
        return argument
    number = argument.strip()
    if kind == "integer" or (kind == "number" and name in _COORDINATES):
        value = _whole(number) if kind == "integer" else _rounded(number)
        if value is not None:
            return value
        raise invalid(f"{tool}: {name} is {argument[:40]!r}, which is not a whole number; write digits only")
    if kind == "number" and _NUMBER.fullmatch(number):
        return float(number)
    if kind == "boolean" and number.lower() in ("true", "false"):
        return number.lower() == "true"
    raise invalid(f"{tool}: {name} is {argument[:40]!r}, which is not of the type {kind}")


def _whole(text: str) -> Optional[int]:
    found = _WHOLE_NUMBER.fullmatch(text)
    return int(found[1]) if found else None


def _rounded(text: str) -> Optional[int]:
    return round(float(text)) if _NUMBER.fullmatch(text) else None

"""FUNCTION_CALL: name|a|b, read from a model's reply and converted by schema."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Optional, Union

from ..core.errors import ErrorCode, PeekabooError

# Models wrap a line in markdown all the same: quotes, bullets, fences, emphasis.
_ACTION_LINE = re.compile(
    r"[ \t>]*(?:[-*+] |\d+[.)] )?(?P<mark>[`*_]*)(?P<word>FUNCTION_CALL|FINAL_ANSWER):(?P<rest>.*)"
)
_LINE_END = re.compile(r"\r\n|\n|\r")
_WHOLE_NUMBER = re.compile(r"([+-]?[0-9]{1,15})(\.0*)?")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")
_COORDINATES = ("x", "y", "width", "height")


@dataclass(frozen=True)
class FunctionCall:
    """A call that a model asks for: the tool's name and its parameters, as written."""

    name: str
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        return "|".join((self.name, *self.words))


@dataclass(frozen=True)
class FinalAnswer:
    """The model says that it is done."""

    text: str


def read_reply(reply: str) -> Union[FunctionCall, FinalAnswer, None]:
    """The first line of a reply that is a FUNCTION_CALL or a FINAL_ANSWER; whatever else it holds is not read."""
    for line in _LINE_END.split(reply):
        found = _ACTION_LINE.match(line)
        if not found:
            continue
        rest = found["rest"]
        mark = found["mark"][::-1]
        if mark and rest.rstrip().endswith(mark):
            rest = rest.rstrip()[: -len(mark)]
        if found["word"] == "FINAL_ANSWER":
            return FinalAnswer(rest.strip())
        name, *words = rest.split("|")
        if words == [""]:
            words = []  # `open_keynote|`
        return FunctionCall(name.strip(), tuple(words))
    return None


def convert_arguments(call: FunctionCall, schema: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a call by name, each of the type that the tool's inputSchema gives it.

    Raises INVALID_ARGUMENT, in words for the model.
    """
    properties: dict[str, dict[str, Any]] = schema.get("properties", {})
    names = list(properties)
    least = len([name for name in names if name in schema.get("required", ())])
    if not least <= len(call.words) <= len(names):
        raise _bad_call(_wrong_count(call, names, least))
    return {
        name: _convert_word(call.name, name, properties[name], word) for name, word in zip(names, call.words)
    }


def _wrong_count(call: FunctionCall, names: list[str], least: int) -> str:
    count = str(least) if least == len(names) else f"{least} to {len(names)}"
    wanted = f"{count} parameter(s): {'|'.join(names)}" if names else "no parameters"
    hint = "; write ¦ where a text holds |" if len(call.words) > len(names) > 0 else ""
    return f"{call.name} takes {wanted}; you gave {len(call.words)}{hint}"


def _convert_word(tool: str, name: str, schema: dict[str, Any], word: str) -> Any:
    kind = schema.get("type", "string")
    if kind == "string":
        return word
    number = word.strip()
    if kind == "integer" or (kind == "number" and name in _COORDINATES):
        value = _whole(number) if kind == "integer" else _rounded(number)
        if value is not None:
            return value
        raise _bad_call(f"{tool}: {name} is {word[:40]!r}, which is not a whole number; write digits only")
    if kind == "number" and _NUMBER.fullmatch(number):
        return float(number)
    if kind == "boolean" and number.lower() in ("true", "false"):
        return number.lower() == "true"
    raise _bad_call(f"{tool}: {name} is {word[:40]!r}, which is no {kind}")


def _whole(word: str) -> Optional[int]:
    found = _WHOLE_NUMBER.fullmatch(word)
    return int(found[1]) if found else None


def _rounded(word: str) -> Optional[int]:
    return round(float(word)) if _NUMBER.fullmatch(word) else None


def _bad_call(message: str) -> PeekabooError:
    return PeekabooError(ErrorCode.INVALID_ARGUMENT, message)

"""The Keynote agent's lines: FUNCTION_CALL, and what the answers prove."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from ..core.errors import invalid
from ..core.models import Rect

# Models wrap the line in markdown nevertheless: quotes, bullets, fences, emphasis.
_ACTION_LINE = re.compile(
    r"[ \t>]*(?:[-*+] |\d+[.)] )?(?P<mark>[`*_]*)(?P<keyword>FUNCTION_CALL|FINAL_ANSWER):(?P<rest>.*)"
)
_LINE_END = re.compile(r"\r\n|\n|\r")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(\.0*)?")  # a float holds it exactly
_NUMBER = re.compile(r"[+-]?([0-9]{1,15}(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")  # always finite
_COORDINATES = ("x", "y", "width", "height")
_FIELD = re.compile(r"(\w+)=([^,]*)")
_NOTE = ", note="
# How far from 60 % x 30 % of the slide, and from its centre, a rectangle may be: a part of the slide's size.
_TOLERANCE = 0.05


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
    if kind == "integer" and _WHOLE_NUMBER.fullmatch(number):
        return int(float(number))
    if kind == "number" and _NUMBER.fullmatch(number):
        return round(float(number)) if name in _COORDINATES else float(number)
    if kind == "boolean" and number.lower() in ("true", "false"):
        return number.lower() == "true"
    is_whole = kind == "integer" or (kind == "number" and name in _COORDINATES)
    wanted = "a whole number; write digits only" if is_whole else f"of the type {kind}"
    raise invalid(f"{tool}: {name} is {argument[:40]!r}, which is not {wanted}")


# what a run drew and wrote ---


@dataclass
class Drawing:
    """What the calls of one run left on the slide."""

    slide: Optional[Rect] = None
    rectangles: dict[str, Rect] = field(default_factory=dict)
    """By id, in the order of drawing; points."""
    texts: dict[str, str] = field(default_factory=dict)
    """By the id of the rectangle that holds it."""
    notes: list[str] = field(default_factory=list)
    """What Keynote did otherwise than asked."""

    def note(self, answer: str, text: str) -> None:
        """Note what a tool's answer proves: RECTANGLE_OK first, then TEXT_OK for the same rectangle.

        text: what its call asked to write.
        """
        answer, _, note = answer.partition(_NOTE)
        status = answer.partition(":")[0]
        fields = dict(_FIELD.findall(answer))
        if status in ("KEYNOTE_READY", "KEYNOTE_READY_WITH_WARNING"):
            self.slide = Rect(0, 0, float(fields["slide_width"]), float(fields["slide_height"]))
        elif status == "SLIDE_SIZE":
            self.slide = Rect(0, 0, float(fields["width"]), float(fields["height"]))
        elif status == "RECTANGLE_OK":
            self.rectangles[fields["id"]] = Rect(*(float(fields[name]) for name in _COORDINATES))
            self.texts.pop(fields["id"], None)
        elif status == "TEXT_OK" and fields["id"] in self.rectangles:
            self.texts.pop(fields["id"], None)  # so that what was written last is the last entry
            self.texts[fields["id"]] = _with_pipes(text)
        else:
            return
        if note:
            self.notes.append(note)

    def written_text(self, wanted: Optional[str]) -> Optional[str]:
        """The text that is in a rectangle of this run: `wanted`, or the last one where any will do (None)."""
        if wanted is None:
            return next(reversed(self.texts.values()), None)
        return wanted if _with_pipes(wanted) in self.texts.values() else None

    def missing(self, wanted: Optional[str]) -> str:
        """What the run did not do; empty when the drawing is complete."""
        if not self.rectangles:
            return "no call of this run returned RECTANGLE_OK"
        if self.written_text(wanted) is not None:
            return ""
        what = "any text" if wanted is None else "that exact text"
        return f"no call after RECTANGLE_OK returned TEXT_OK for {what}"

    def warnings(self) -> list[str]:
        """What a person should look at although the drawing is complete."""
        found = list(self.notes)
        if len(self.rectangles) > 1:
            found.append(f"{len(self.rectangles)} rectangles were drawn instead of one")
        for rectangle in self.rectangles.values():
            if self.slide and not _follows_rule(rectangle, self.slide):
                position = f"{rectangle.x:g},{rectangle.y:g} {rectangle.width:g}x{rectangle.height:g}"
                size = f"{self.slide.width:g}x{self.slide.height:g}"
                found.append(f"the rectangle {position} is not a centered 60 % x 30 % of the slide ({size})")
        return found


def _with_pipes(text: str) -> str:
    """As add_text_in_keynote writes it: a FUNCTION_CALL cannot hold `|`."""
    return text.replace("¦", "|")


def _follows_rule(rectangle: Rect, slide: Rect) -> bool:
    dx, dy = _TOLERANCE * slide.width, _TOLERANCE * slide.height
    return (
        abs(rectangle.width - 0.6 * slide.width) <= dx
        and abs(rectangle.height - 0.3 * slide.height) <= dy
        and abs(rectangle.centre.x - slide.centre.x) <= dx
        and abs(rectangle.centre.y - slide.centre.y) <= dy
    )

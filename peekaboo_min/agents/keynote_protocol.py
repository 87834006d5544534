"""The Keynote agent's lines: FUNCTION_CALL, and what the answers prove."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional, Union

from ..core.errors import invalid
from ..core.models import Rect

# Models wrap the line in markdown nevertheless: quotes, bullets, fences, emphasis.
_ACTION_LINE = re.compile(
    r"^[ \t>]*(?:[-*+] |\d+[.)] )?(?P<mark>[`*_]*)(?P<keyword>FUNCTION_CALL|FINAL_ANSWER):(?P<rest>[^\r\n]*)",
    re.MULTILINE,
)
_COORDINATES = ("x", "y", "width", "height")
_FIELD = re.compile(r"(\w+)=([^,]*)")
# How far from 60 % x 30 % of the slide, centred, a rectangle may be: a part of the slide's size.
_TOLERANCE = 0.05


class FunctionCall(NamedTuple):
    """A call that a model asks for: the tool's name and its parameters, as written."""

    name: str
    arguments: tuple[str, ...]

    @property
    def text(self) -> str:
        return "|".join((self.name, *self.arguments))


class FinalAnswer(NamedTuple):
    """The model reports that it is done."""

    text: str


def read_reply(reply: str) -> Union[FunctionCall, FinalAnswer, None]:
    """The first line of a reply that is a FUNCTION_CALL or a FINAL_ANSWER; the rest is ignored."""
    line = _ACTION_LINE.search(reply)
    if not line:
        return None
    rest: str = line["rest"]
    if line["mark"]:
        rest = rest.rstrip().removesuffix(line["mark"][::-1])
    if line["keyword"] == "FINAL_ANSWER":
        return FinalAnswer(rest.strip())
    name, *arguments = rest.split("|")
    return FunctionCall(name.strip(), tuple(arguments))


def convert_arguments(call: FunctionCall, schema: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a call by name, each of the type that the tool's inputSchema gives it.

    Raises INVALID_ARGUMENT; the message is for the model.
    """
    properties: dict[str, dict[str, Any]] = schema.get("properties", {})
    given = () if call.arguments == ("",) and not properties else call.arguments  # `open_keynote|`
    if not len(schema.get("required", ())) <= len(given) <= len(properties):
        names = "|".join(properties) or "none"
        raise invalid(
            f"{call.name} takes {len(properties)} parameter(s): {names}; you gave {len(given)}",
            "write ¦ where a text contains |" if len(given) > len(properties) > 0 else "",
        )
    return {
        name: _convert_argument(call.name, name, kind.get("type"), argument)
        for (name, kind), argument in zip(properties.items(), given)
    }


def _convert_argument(tool: str, name: str, kind: Optional[str], argument: str) -> Any:
    """An integer for coordinates, whatever number their type is; what is no number stays as it is."""
    if kind not in ("integer", "number"):
        return argument
    try:
        number = float(argument)
        if kind == "integer" and not number.is_integer():
            raise ValueError
        return round(number) if kind == "integer" or name in _COORDINATES else number
    except (ValueError, OverflowError):  # OverflowError: infinity
        wanted = "a whole number" if kind == "integer" else "a number"
        message = f"{tool}: {name} is {argument[:40]!r}, which is not {wanted}"
        raise invalid(message, "write digits only") from None


@dataclass
class Drawing:
    """What the calls of one run left on the slide."""

    slide: Optional[Rect] = None
    rectangles: dict[str, Rect] = field(default_factory=dict)
    """By id, in the order of drawing; points."""
    texts: dict[str, str] = field(default_factory=dict)
    """By the id of the rectangle that holds it; the last entry was written last."""
    notes: list[str] = field(default_factory=list)
    """What Keynote did otherwise than asked."""

    def note(self, answer: str, text: str) -> None:
        """Note what a tool's answer proves; `text` is what its call asked to write."""
        answer, _, note = answer.partition(", note=")
        status, fields = answer.partition(":")[0], dict(_FIELD.findall(answer))
        if status in ("KEYNOTE_READY", "KEYNOTE_READY_WITH_WARNING"):
            self.slide = Rect(0, 0, float(fields["slide_width"]), float(fields["slide_height"]))
        elif status == "RECTANGLE_OK":
            self.rectangles[fields["id"]] = Rect(*(float(fields[name]) for name in _COORDINATES))
        elif status == "TEXT_OK" and fields["id"] in self.rectangles:
            self.texts.pop(fields["id"], None)
            self.texts[fields["id"]] = text.replace("¦", "|")  # as add_text_in_keynote writes it
        if note:
            self.notes.append(note)

    def missing(self, wanted: Optional[str]) -> str:
        """What the run did not do; empty when a rectangle holds `wanted`, or any text where it is None."""
        if not self.rectangles:
            return "no call of this run returned RECTANGLE_OK"
        if self.texts if wanted is None else wanted.replace("¦", "|") in self.texts.values():
            return ""
        what = "any text" if wanted is None else "that exact text"
        return f"no call after RECTANGLE_OK returned TEXT_OK for {what}"

    def warnings(self) -> list[str]:
        """What a person should look at although the drawing is complete."""
        warnings = list(self.notes)
        if len(self.rectangles) > 1:
            warnings.append(f"{len(self.rectangles)} rectangles were drawn instead of one")
        for rect in self.rectangles.values():
            if self.slide and not _follows_rule(rect, self.slide):
                position = f"{rect.x:g},{rect.y:g} {rect.width:g}x{rect.height:g}"
                size = f"{self.slide.width:g}x{self.slide.height:g}"
                warnings.append(
                    f"the rectangle {position} is not a centered 60 % x 30 % of the slide ({size})"
                )
        return warnings


def _follows_rule(rect: Rect, slide: Rect) -> bool:
    width, height = slide.width, slide.height
    expected = Rect(0.2 * width, 0.35 * height, 0.6 * width, 0.3 * height)
    sizes = (width, height, width, height)
    return all(abs(a - e) <= _TOLERANCE * size for a, e, size in zip(rect, expected, sizes))

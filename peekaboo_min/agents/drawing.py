"""What a run of the Keynote agent drew and wrote, by its tool results."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Optional

from ..core.models import Rect

_FIELD = re.compile(r"(\w+)=([^,]*)")
_NOTE = ", note="
# How far from 60 % x 30 % of the slide, and from its centre, a rectangle may be: a part of the slide's size.
_TOLERANCE = 0.05


@dataclass(frozen=True)
class DrawingStep:
    """One turn: the call that the model asked for (or its reply without one), and the answer to it."""

    call: str
    answer: str
    tool: str = ""
    """Empty when no tool was called."""
    text: str = ""
    """What the call asked to write."""


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

    def written_text(self, wanted: Optional[str]) -> Optional[str]:
        """The text that is in a rectangle of this run: `wanted`, or the last one where any will do (None)."""
        if wanted is None:
            return next(reversed(list(self.texts.values())), None)
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


def read_drawing(steps: Iterable[DrawingStep]) -> Drawing:
    """The drawing that the steps' answers prove: RECTANGLE_OK first, then TEXT_OK for the same rectangle."""
    drawing = Drawing()
    for step in steps:
        answer, _, note = step.answer.partition(_NOTE)
        fields = dict(_FIELD.findall(answer))
        if step.tool == "open_keynote" and answer.startswith("KEYNOTE_READY"):
            drawing.slide = Rect(0, 0, float(fields["slide_width"]), float(fields["slide_height"]))
        elif step.tool == "get_slide_size" and answer.startswith("SLIDE_SIZE:"):
            drawing.slide = Rect(0, 0, float(fields["width"]), float(fields["height"]))
        elif step.tool == "draw_rectangle" and answer.startswith("RECTANGLE_OK:"):
            position = (float(fields[name]) for name in ("x", "y", "width", "height"))
            drawing.rectangles[fields["id"]] = Rect(*position)
            drawing.texts.pop(fields["id"], None)
        elif step.tool == "add_text_in_keynote" and answer.startswith("TEXT_OK:"):
            if fields["id"] not in drawing.rectangles:
                continue
            drawing.texts.pop(fields["id"], None)  # the last written stands last
            drawing.texts[fields["id"]] = _with_pipes(step.text)
        else:
            continue
        if note:
            drawing.notes.append(note)
    return drawing


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

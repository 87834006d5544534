"""FUNCTION_CALL lines: how a model's reply is read, and how its parameters are converted by the schema."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import pytest
from samples import error_of

from peekaboo_min.agents.keynote_agent import DrawingRun, convert_arguments, read_reply
from peekaboo_min.ai.client import ModelChoice
from peekaboo_min.core.errors import ErrorCode

CALL, NOTHING = "FUNCTION_CALL", ("", "")
OPEN, DRAW = (CALL, "open_keynote"), (CALL, "draw_rectangle|384|378|1152|324")
DONE = ("FINAL_ANSWER", "[done]")
REPLIES = {
    "FUNCTION_CALL: open_keynote": OPEN,
    "FUNCTION_CALL: open_keynote|": (CALL, "open_keynote|"),
    "FUNCTION_CALL: draw_rectangle|384|378|1152|324\r\nFINAL_ANSWER: [done]": DRAW,
    "FINAL_ANSWER: [done]\nFUNCTION_CALL: open_keynote": DONE,
    "Sure, I will draw it.\n\nFUNCTION_CALL: draw_rectangle|384|378|1152|324\nIt is drawn.": DRAW,
    "```\nFUNCTION_CALL: draw_rectangle|384|378|1152|324\n```": DRAW,
    "`FUNCTION_CALL: draw_rectangle|384|378|1152|324`": DRAW,
    "- **FUNCTION_CALL: draw_rectangle|384|378|1152|324**": DRAW,
    "*`FUNCTION_CALL: open_keynote`* ": OPEN,
    " > 10. FUNCTION_CALL: draw_rectangle|384|378|1152|324": DRAW,
    "  FINAL_ANSWER:[done]": DONE,
    "FUNCTION_CALL: write|  two  spaces  ": (CALL, "write|  two  spaces  "),
    "FUNCTION_CALL: write|2 * 3 = **6**": (CALL, "write|2 * 3 = **6**"),
    "FUNCTION_CALL: write|a\u2028b": (CALL, "write|a\u2028b"),
    "I would say FUNCTION_CALL: open_keynote": NOTHING,
    "function_call: open_keynote": NOTHING,
}


@pytest.mark.parametrize("reply", REPLIES)
def test_read_reply_takes_only_the_first_matching_line(reply: str) -> None:
    assert read_reply(reply) == REPLIES[reply]


def schema(**types: str) -> dict[str, object]:
    return {"properties": {name: {"type": kind} for name, kind in types.items()}, "required": list(types)}


DRAWN, OTHER = ("", "RECTANGLE_OK: id=D/1/1"), ("", "RECTANGLE_OK: id=D/1/2")


def wrote(text: str, id_: str = "D/1/1") -> tuple[str, str]:
    return (f"write|{text}", f"TEXT_OK: id={id_}, characters=5")


# the turns, the required text, and the text that counts as written
WRITTEN: list[tuple[list[tuple[str, str]], Optional[str], Optional[str]]] = [
    ([], None, None),
    ([DRAWN, ("write|a", "ERROR: no")], None, None),
    ([DRAWN, wrote("a ¦ b")], "a ¦ b", "a | b"),
    ([DRAWN, wrote("a")], "b", None),
    ([DRAWN, wrote("a"), wrote("b")], "a", None),
    ([DRAWN, wrote("a"), wrote("b")], None, "b"),
    ([DRAWN, wrote("a"), OTHER, wrote("b", "D/1/2")], None, "b"),
    ([DRAWN, wrote("a"), OTHER, wrote("b", "D/1/2")], "a", "a"),
    ([DRAWN, wrote("a"), OTHER], None, "a"),
    ([DRAWN, wrote("a"), DRAWN], "a", None),
    ([wrote("a"), DRAWN], "a", None),
    ([OTHER, wrote("a")], "a", None),
    ([DRAWN, wrote("")], None, None),
]


@pytest.mark.parametrize(("turns", "required", "text"), WRITTEN)
def test_written_text_is_the_newest_in_a_rectangle_of_this_run(
    turns: list[tuple[str, str]], required: Optional[str], text: Optional[str]
) -> None:
    run = DrawingRun("", required, ModelChoice("gemini", "x"), Path("log"))
    run.turns = [{"call": call, "answer": answer} for call, answer in turns]
    assert run.written_text() == text


RECTANGLE = schema(x="integer", y="integer", width="integer", height="integer")
CONVERTED = [
    (("384", "378", "1152", "324"), RECTANGLE, {"x": 384, "y": 378, "width": 1152, "height": 324}),
    ((" 384 ", "-378", "+1152", "324.0"), RECTANGLE, {"x": 384, "y": -378, "width": 1152, "height": 324}),
    (("12.6", "2.5"), schema(x="number", ratio="number"), {"x": 13, "ratio": 2.5}),
    (("  as it is ",), schema(text="string"), {"text": "  as it is "}),
    (("",), schema(), {}),
    (("",), schema(text="string"), {"text": ""}),
    (("a",), {**schema(first="string", second="string"), "required": ["first"]}, {"first": "a"}),
]


@pytest.mark.parametrize(("values", "wanted", "expected"), CONVERTED)
def test_convert_arguments_gives_the_types_of_the_schema(
    values: tuple[str, ...], wanted: dict[str, object], expected: dict[str, object]
) -> None:
    converted = convert_arguments(list(values), wanted)
    assert converted == expected
    assert [type(value) for value in converted.values()] == [type(value) for value in expected.values()]


TOO_MANY = "it takes 1 parameter(s): t; you gave 2; write ¦ where a text contains |"
REFUSED = [
    (("384", "378", "1152"), RECTANGLE, "it takes 4 parameter(s): x|y|width|height; you gave 3"),
    (("a", "a"), schema(t="string"), TOO_MANY),
    (("x",), schema(), "it takes 0 parameter(s): none; you gave 1"),
    (("ten",), schema(x="number"), "x is 'ten', not a valid number; write only digits"),
    (("inf",), schema(x="number"), "x is 'inf', not a valid number; write only digits"),
    (("1,152",), schema(x="integer"), "x is '1,152', not a valid integer; write only digits"),
    (("384.5",), schema(x="integer"), "x is '384.5', not a valid integer; write only digits"),
]


@pytest.mark.parametrize(("values", "wanted", "message"), REFUSED)
def test_convert_arguments_refuses_what_does_not_fit_the_schema(
    values: tuple[str, ...], wanted: dict[str, object], message: str
) -> None:
    error = error_of(convert_arguments, list(values), wanted)
    assert (error.code, error.sentence()) == (ErrorCode.INVALID_ARGUMENT, message)

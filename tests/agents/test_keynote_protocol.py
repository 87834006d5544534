"""FUNCTION_CALL lines: how a model's reply is read, and how its parameters are converted by the schema."""

from __future__ import annotations

import pytest

from peekaboo_min.agents.keynote_agent import (
    DEFAULT_TEXT,
    KEYNOTE_QUERY,
    KEYNOTE_SYSTEM_PROMPT,
    keynote_turn_prompt,
)
from peekaboo_min.agents.keynote_protocol import FinalAnswer, FunctionCall, convert_arguments, read_reply
from peekaboo_min.core.errors import ErrorCode, PeekabooError

DRAW = FunctionCall("draw_rectangle", ("384", "378", "1152", "324"))
DONE = FinalAnswer("[done]")
REPLIES = {
    "FUNCTION_CALL: open_keynote": FunctionCall("open_keynote", ()),
    "FUNCTION_CALL:open_keynote": FunctionCall("open_keynote", ()),
    "FUNCTION_CALL: open_keynote|": FunctionCall("open_keynote", ("",)),
    "FUNCTION_CALL: screenshot_slide|": FunctionCall("screenshot_slide", ("",)),
    "FUNCTION_CALL: draw_rectangle|384|378|1152|324": DRAW,
    "FUNCTION_CALL: draw_rectangle|384|378|1152|324\r\nFINAL_ANSWER: [done]": DRAW,
    "FINAL_ANSWER: [done]": DONE,
    "FINAL_ANSWER: [done]\nFUNCTION_CALL: open_keynote": DONE,
    "Sure, I will draw it.\n\nFUNCTION_CALL: draw_rectangle|384|378|1152|324\nIt is drawn.": DRAW,
    "```\nFUNCTION_CALL: draw_rectangle|384|378|1152|324\n```": DRAW,
    "`FUNCTION_CALL: draw_rectangle|384|378|1152|324`": DRAW,
    "**FUNCTION_CALL: draw_rectangle|384|378|1152|324**": DRAW,
    "- FUNCTION_CALL: draw_rectangle|384|378|1152|324": DRAW,
    "1. FUNCTION_CALL: draw_rectangle|384|378|1152|324": DRAW,
    "> FUNCTION_CALL: draw_rectangle|384|378|1152|324": DRAW,
    "  FINAL_ANSWER:[done]  ": DONE,
    "FUNCTION_CALL: write|  two  spaces  ": FunctionCall("write", ("  two  spaces  ",)),
    "FUNCTION_CALL: write|2 * 3 = **6**": FunctionCall("write", ("2 * 3 = **6**",)),
    "FUNCTION_CALL: write|Grüße, 世界 👩‍💻 ¦": FunctionCall("write", ("Grüße, 世界 👩‍💻 ¦",)),
    "FUNCTION_CALL: write|a\u2028b": FunctionCall("write", ("a\u2028b",)),
    "FUNCTION_CALL: write|a\\nb": FunctionCall("write", ("a\\nb",)),
    "FUNCTION_CALL: write||": FunctionCall("write", ("", "")),
    "FUNCTION_CALL: ": FunctionCall("", ()),
    "I would say FUNCTION_CALL: open_keynote": None,
    "function_call: open_keynote": None,
    "FUNCTION_CALL open_keynote": None,
    '{"tool": "open_keynote"}': None,
    "": None,
}


@pytest.mark.parametrize("reply", REPLIES)
def test_only_the_first_matching_line_of_a_reply_is_read(reply: str) -> None:
    assert read_reply(reply) == REPLIES[reply]


def schema(**types: str) -> dict[str, object]:
    return {"properties": {name: {"type": kind} for name, kind in types.items()}, "required": list(types)}


RECTANGLE = schema(x="integer", y="integer", width="integer", height="integer")
GOOD = [
    (("384", "378", "1152", "324"), RECTANGLE, {"x": 384, "y": 378, "width": 1152, "height": 324}),
    ((" 384 ", "-378", "+1152", "324.0"), RECTANGLE, {"x": 384, "y": -378, "width": 1152, "height": 324}),
    (("12.6", "2.5"), schema(x="number", ratio="number"), {"x": 13, "ratio": 2.5}),
    (("  as it is ",), schema(text="string"), {"text": "  as it is "}),
    (("",), schema(path="string"), {"path": ""}),
    (("True",), schema(loud="boolean"), {"loud": True}),
    ((), schema(), {}),
    (("",), schema(), {}),
    ((), {}, {}),
    (("a",), {**schema(one="string", two="string"), "required": ["one"]}, {"one": "a"}),
]
BAD = [
    (("384", "378", "1152"), RECTANGLE, "f takes 4 parameter(s): x|y|width|height; you gave 3"),
    (
        ("a", "b"),
        schema(text="string"),
        "f takes 1 parameter(s): text; you gave 2; write ¦ where a text contains |",
    ),
    ((), schema(text="string"), "f takes 1 parameter(s): text; you gave 0"),
    (("x",), schema(), "f takes no parameters; you gave 1"),
    (
        (),
        {**schema(one="string", two="string"), "required": ["one"]},
        "f takes 1 to 2 parameter(s): one|two; you gave 0",
    ),
    (("ten", "1", "2", "3"), RECTANGLE, "f: x is 'ten', which is not a whole number; write digits only"),
    (("1,152", "1", "2", "3"), RECTANGLE, "f: x is '1,152', which is not a whole number; write digits only"),
    (("384pt", "1", "2", "3"), RECTANGLE, "f: x is '384pt', which is not a whole number; write digits only"),
    (("384.5", "1", "2", "3"), RECTANGLE, "f: x is '384.5', which is not a whole number; write digits only"),
    (("1_0", "1", "2", "3"), RECTANGLE, "f: x is '1_0', which is not a whole number; write digits only"),
    (("٣", "1", "2", "3"), RECTANGLE, "f: x is '٣', which is not a whole number; write digits only"),
    (
        ("9" * 400, "1", "2", "3"),
        RECTANGLE,
        f"f: x is {'9' * 40!r}, which is not a whole number; write digits only",
    ),
    (
        ("9" * 400,),
        schema(x="number"),
        f"f: x is {'9' * 40!r}, which is not a whole number; write digits only",
    ),
    (("nan",), schema(x="number"), "f: x is 'nan', which is not a whole number; write digits only"),
    (("inf",), schema(ratio="number"), "f: ratio is 'inf', which is not of the type number"),
    (("perhaps",), schema(loud="boolean"), "f: loud is 'perhaps', which is not of the type boolean"),
    (("[1]",), schema(many="array"), "f: many is '[1]', which is not of the type array"),
]


@pytest.mark.parametrize(("values", "wanted", "expected"), GOOD)
def test_parameters_get_the_types_of_the_schema(
    values: tuple[str, ...], wanted: dict[str, object], expected: object
) -> None:
    converted = convert_arguments(FunctionCall("f", values), wanted)
    assert converted == expected
    assert [type(value) for value in converted.values()] == [type(value) for value in expected.values()]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("values", "wanted", "message"), BAD)
def test_a_call_that_does_not_fit_its_schema_is_refused_with_a_message_for_the_model(
    values: tuple[str, ...], wanted: dict[str, object], message: str
) -> None:
    with pytest.raises(PeekabooError) as caught:
        convert_arguments(FunctionCall("f", values), wanted)
    assert (caught.value.code, caught.value.sentence()) == (ErrorCode.INVALID_ARGUMENT, message)


def test_the_prompts_take_any_text_as_it_is() -> None:
    assert KEYNOTE_QUERY + DEFAULT_TEXT == (
        "Create a rectangle in Keynote slide 1 and write this exact text inside it: Hello from MCP on macOS."
    )
    odd = "{tools_description} {steps} {query} {0} %s \\"
    assert keynote_turn_prompt(odd, "") == odd
    assert keynote_turn_prompt(odd, "1. {query}").startswith(
        f"{odd}\n\nWhat you did so far, with the results:\n1. {{query}}\n"
    )
    assert KEYNOTE_SYSTEM_PROMPT.count("{tools_description}") == KEYNOTE_SYSTEM_PROMPT.count("{") == 1

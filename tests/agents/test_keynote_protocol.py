"""FUNCTION_CALL lines: how a reply is read, converted by the schema, and counted as written text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Optional

import pytest
from samples import error_of

from peekaboo_min.agents.keynote_agent import DrawingRun, convert_arguments, read_reply
from peekaboo_min.ai.client import ModelChoice
from peekaboo_min.core.errors import ErrorCode

# a reply with its keyword and rest; a run's turns, the required text and the text that counts as written;
# values with a schema, and the arguments or the error
BLOCKS = Path(__file__).with_name("keynote_lines.jsonl").read_text("utf-8").split("\n\n")
REPLIES, WRITTEN, CONVERTED, REFUSED = (
    [*map(json.loads, block.split("\n"))] for block in map(str.strip, BLOCKS)
)


@pytest.mark.parametrize(("reply", "read"), REPLIES)
def test_read_reply_takes_only_the_first_matching_line(reply: str, read: list[str]) -> None:
    assert read_reply(reply) == tuple(read)


@pytest.mark.parametrize(("turns", "required", "text"), WRITTEN)
def test_written_text_is_the_newest_in_a_rectangle_of_this_run(
    turns: list[list[str]], required: Optional[str], text: Optional[str]
) -> None:
    run = DrawingRun("", required, ModelChoice("gemini", "x"), Path("log"))
    run.turns = [{"call": call, "answer": answer} for call, answer in turns]
    assert run.written_text() == text


@pytest.mark.parametrize(("values", "schema", "expected"), CONVERTED)
def test_convert_arguments_gives_the_types_of_the_schema(
    values: list[str], schema: dict[str, Any], expected: dict[str, Any]
) -> None:
    converted = convert_arguments(values, schema)
    assert converted == expected
    assert [type(value) for value in converted.values()] == [type(value) for value in expected.values()]


@pytest.mark.parametrize(("values", "schema", "message"), REFUSED)
def test_convert_arguments_refuses_what_does_not_fit_the_schema(
    values: list[str], schema: dict[str, Any], message: str
) -> None:
    error = error_of(convert_arguments, values, schema)
    assert (error.code, error.sentence()) == (ErrorCode.INVALID_ARGUMENT, message)

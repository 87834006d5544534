"""Results fit into JSON and stay bounded; empty arguments count as absent."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import ImageData, ImageInfo, Result
from peekaboo_min.core.text import outgoing_data
from peekaboo_min.frontends.arguments import checked_arguments, given_arguments, read_signature
from peekaboo_min.frontends.server import error_message, outgoing_text, success_message
from peekaboo_min.tools.act_tools import click, focus_window, scroll, type_text
from peekaboo_min.tools.capture_tools import image, screenshot_app_window


def as_sent(message: dict[str, Any]) -> str:
    """Encode the message as a JSON line; fail if JSON or UTF-8 cannot hold it."""
    return json.dumps(message, ensure_ascii=False, allow_nan=False).encode("utf-8").decode("utf-8")


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("a\ud800b", "a\ufffdb"),
        (math.nan, None),
        ([math.inf, -math.inf, 1.5], [None, None, 1.5]),
        (2**70, 2**70),
        ({1: True, "\udcff": None}, {"1": True, "\ufffd": None}),
        (Path("/a"), "/a"),
    ],
    ids=ascii,
)
def test_value_is_converted_to_valid_json(value: Any, sent: Any) -> None:
    assert outgoing_data({"value": value}) == {"value": sent}
    message = success_message(Result("\udcff text", {"value": value}, messages=("\ud800",)))
    assert message["structuredContent"] == {"summary": "\ufffd text\nnote: \ufffd", "value": sent}
    compact = json.dumps({"value": sent}, ensure_ascii=False, separators=(",", ":"))
    assert message["content"][0]["text"].split("\n", 2)[2] == compact
    as_sent(message)


def test_value_that_is_too_large_is_cut_with_a_note() -> None:
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    data = {"stdout": "x" * 10**6, "json": [{"a": "ü" * 100}] * 10**5, "deep": deep, "code": 0}
    message = success_message(Result("exit code 0", data))
    assert len(as_sent(message)) < 1_500_000
    notes = message["content"][0]["text"].split("\n")[1:3]
    assert notes == [f"note: {name} is cut, because it was too large" for name in ("stdout", "json")]
    assert message["structuredContent"]["json"].startswith('[{"a": "ü')
    assert (message["structuredContent"]["code"], message["structuredContent"]["deep"]) == (0, deep)
    assert len(as_sent(success_message(Result("x" * 10**6, is_text_only=True)))) < 300_000


@pytest.mark.parametrize(("length", "is_cut"), [(200_000, False), (200_001, True)])
def test_value_is_cut_above_the_limit(length: int, is_cut: bool) -> None:
    message = success_message(Result("ran", {"stdout": "x" * length}))
    assert ("note: stdout is cut" in message["content"][0]["text"]) is is_cut
    assert (message["structuredContent"]["stdout"] == "x" * length) is not is_cut
    assert (outgoing_text("x" * length) == "x" * length) is not is_cut


@pytest.mark.parametrize(("length", "given", "sent"), [(3_000_000, 5, 2), (8_000_000, 1, 1)])
def test_images_that_are_too_large_are_left_out_and_counted(length: int, given: int, sent: int) -> None:
    picture = ImageData(b"x" * length, ImageInfo("png", 1, 1))
    message = success_message(Result("images", {"a": 1}, (picture,) * given))
    assert [block["type"] for block in message["content"]] == ["text", *["image"] * sent]
    assert ("note: 3 image(s) were left out" in message["content"][0]["text"]) is (sent < given)
    assert len(as_sent(message)) < 16_000_000


def test_failed_result_has_its_error_then_its_text_and_images() -> None:
    picture, error = ImageData(b"x", ImageInfo("png", 1, 1)), PeekabooError(ErrorCode.TIMEOUT, "late")
    data = {"stdout": "half", "code": None}
    text = {"type": "text", "text": 'killed\nnote: look\n{"stdout":"half","code":null}'}
    image_block = {"type": "image", "data": "eA==", "mimeType": "image/png"}
    late = {"type": "text", "text": "TIMEOUT: late. Next step: increase the timeout and try again"}
    meta = {"backend_error_code": "TIMEOUT", "message": "late", "next_step": ErrorCode.TIMEOUT.next_step}
    failed = {"content": [late, text], "isError": True, "_meta": meta}
    result = Result("killed", data, messages=("look",), failure=error)
    assert success_message(result) == {
        **failed,
        "structuredContent": {"summary": "killed\nnote: look", **data},
    }
    with_image = success_message(result._replace(images=(picture,)))
    assert with_image == {**failed, "content": [late, text, image_block]}
    done = success_message(result._replace(failure=None, is_text_only=True, data={"note": "moved"}))
    shown = {"type": "text", "text": "killed\nnote: look"}
    assert done == {"content": [shown], "isError": False, "_meta": {"note": "moved"}}


def test_text_that_has_all_of_the_data_is_sent_without_json() -> None:
    message = success_message(Result("2 labels", {"found": [1, 2]}, is_text_enough=True))
    assert message["content"] == [{"type": "text", "text": "2 labels"}]
    assert message["structuredContent"] == {"summary": "2 labels", "found": [1, 2]}


def test_error_can_always_be_sent() -> None:
    error = PeekabooError(
        ErrorCode.CAPTURE_FAILED, "\ud800. Next step: no.", "h" * 10**6, "\udcff", "\ud800" * 200
    )
    message = error_message(error)
    assert len(as_sent(message)) < 7_000
    name = "\ufffd" * 100
    assert message["content"][0]["text"].startswith(f"{name}: \ufffd. Next step: no. Next step: h")
    parts = {"message": "\ufffd. Next step: no.", "next_step": f"{'h' * 2_000}... (cut)"}
    assert message["_meta"] == {"backend_error_code": name, **parts}
    long = error_message(PeekabooError(ErrorCode.TIMEOUT, "m" * 2_001))
    assert long["_meta"]["message"] == f"{'m' * 2_000}... (cut)"


UNCHANGED: list[tuple[Any, dict[str, Any]]] = [
    (type_text, {"text": "[1]"}),
    (image, {"app": " "}),
    (screenshot_app_window, {"windowIndex": 0}),
    (image, {"mode": "", "format": ""}),
    (image, {"window_id": False, "return_data": False}),
    (focus_window, {"window_id": 0}),
    (image, {"windowid": 0, "a": ""}),
    (scroll, {"x": 0, "y": 0}),
    (click, {"modifiers": "[" * 100_000}),
]


@pytest.mark.parametrize(
    ("tool", "arguments", "given"),
    [
        (image, {"app": "", "path": "", "question": ""}, {}),
        (image, {"window_id": 0, "max_dimension": 0}, {}),
        (image, {"window_id": 0.0}, {}),
        (click, {"x": 0, "y": 0, "screenshot_id": ""}, {"x": 0, "y": 0}),
        (click, {"modifiers": '["cmd"]'}, {"modifiers": ["cmd"]}),
        (image, {"window_specifier": '{"index": 0}'}, {"window_specifier": {"index": 0}}),
        *((tool, arguments, arguments) for tool, arguments in UNCHANGED),
    ],
)
def test_empty_arguments_of_strict_clients_count_as_absent(tool: Any, arguments: Any, given: Any) -> None:
    assert given_arguments(read_signature(tool), arguments) == given


def test_number_that_no_float_can_hold_is_refused() -> None:
    with pytest.raises(PeekabooError, match="x is 1000"):
        checked_arguments(read_signature(click), {"window_id": 7, "x": 10**400, "y": 1})

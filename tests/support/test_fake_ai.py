"""The fake AI vendors refuse the same requests as the real vendors; test_vision.py tests their answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_ai import MEGABYTE, FakeAI, picture
from fake_ai.loopback import Answer, post

from peekaboo_min.ai import providers
from peekaboo_min.ai.providers import Question
from peekaboo_min.core.models import ImageData, ImageInfo

INTEGER = {"type": "integer"}
STRICT = {"type": "object", "properties": {"x": INTEGER}, "required": ["x"], "additionalProperties": False}
NESTED = {**STRICT, "properties": {"x": {"type": "object", "properties": {}, "required": []}}}
BOUNDED = {**STRICT, "properties": {"x": {**INTEGER, "minimum": 0}}}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
NO_STRICT_FORMAT = {"maxOutputTokens": 1, "responseJsonSchema": STRICT}


def ask(
    ai: FakeAI, vendor: str, model: str = "", data: bytes = b"", schema: Any = None, headers: Any = None,
    **changed: Any,
) -> Answer:  # fmt: skip
    """Send the product's own question with changed top-level fields; None removes a field."""
    ours = providers.VENDORS[vendor]
    model, key = model or ours.default_model, f"fake-{vendor}-key-0123456789"
    image = ImageData(data or picture(), ImageInfo("png", 64, 48))
    body = {**ours.body(Question(model, "What?", [image], "Look.", schema)), **changed}
    body = {name: value for name, value in body.items() if value is not None}
    keys = {name: value.replace("{key}", key) for name, value in ours.key_headers.items()}
    path = "/v1" * (vendor == "openai") + ours.ask_path.replace("{model}", model)
    all_headers = {"Content-Type": "application/json", **keys, **(headers or {})}
    return post(ai.url + path, json.dumps(body).encode(), all_headers)


def messages(part: dict[str, Any], role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": [part]}]}


@pytest.mark.parametrize("vendor", providers.VENDORS)
def test_fake_ai_answers_the_products_question(ai: FakeAI, vendor: str) -> None:
    assert ask(ai, vendor, schema=STRICT).status == 200


@pytest.mark.parametrize(
    ("vendor", "asked", "status", "text"),
    [
        ("ollama", {"headers": FORM}, 415, "Content-Type must be application/json"),
        ("ollama", {"model": "no-such-model"}, 404, "no-such-model"),
        ("ollama", {"odd": 1}, 400, "odd: unknown field"),
        ("ollama", {"stream": None}, 400, "stream: field required"),
        ("ollama", {"stream": True}, 400, "stream: expected False"),
        ("ollama", {"images": ["data:image/png;base64,aW1n"]}, 400, "Invalid base64"),
        ("ollama", {"data": picture()[:-20]}, 400, "Could not process the image"),
        ("openai", {"data": picture("jpeg")}, 400, "the image, which is no image/png"),
        ("openai", {"headers": {"Authorization": "Bearer wrong-key"}}, 401, "Incorrect API key"),
        ("openai", messages({"type": "image_url", "image_url": {"url": "aW1n"}}), 400, "url: expected"),
        ("openai", {"schema": NESTED}, 400, "additionalProperties"),
        ("openai", {"schema": {**STRICT, "required": []}}, 400, "Missing 'x'"),
        ("gemini", {"headers": {"x-goog-api-key": "wrong-key"}}, 400, "API key not valid"),
        ("gemini", {"generationConfig": {"mediaResolution": "HIGH"}}, 400, "mediaResolution: expected"),
        ("gemini", {"generationConfig": NO_STRICT_FORMAT}, 400, "responseJsonSchema: unknown field"),
        ("gemini", {"data": picture(padding=15 * MEGABYTE)}, 413, "payload size exceeds"),
        ("anthropic", {"headers": {"anthropic-version": ""}}, 400, "anthropic-version is not"),
        ("anthropic", messages({"type": "text", "text": "x"}, role="system"), 400, "role: expected 'user'"),
        ("anthropic", messages({"type": "text", "text": ""}), 400, "text"),
        ("anthropic", {"data": picture(padding=4 * MEGABYTE)}, 400, "larger than allowed"),
        ("anthropic", {"schema": NESTED}, 400, "additionalProperties"),
        ("anthropic", {"schema": BOUNDED}, 400, "for 'integer' type, minimum is not supported"),
    ],
)
def test_fake_ai_refuses_like_its_vendor(
    ai: FakeAI, vendor: str, asked: dict[str, Any], status: int, text: str
) -> None:
    answer = ask(ai, vendor, **asked)
    assert answer.status == status and text in str(answer.json), answer

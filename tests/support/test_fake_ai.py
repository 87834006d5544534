"""The fake AI vendors refuse the same requests as the real vendors; test_vision.py tests their answers."""

from __future__ import annotations

import json
from typing import Any, Optional

import pytest
from fake_ai import MEGABYTE, FakeAI, picture
from fake_ai.loopback import Answer, post
from fake_ai.vendors import VENDORS

from peekaboo_min.ai import providers
from peekaboo_min.ai.providers import Question
from peekaboo_min.core.models import ImageData, ImageInfo

STRICT: dict[str, Any] = {
    "type": "object",
    "properties": {"x": {"type": "integer"}},
    "required": ["x"],
    "additionalProperties": False,
}


def headers_of(vendor: str) -> dict[str, str]:
    headers = providers.VENDORS[vendor].key_headers.items()
    return {name: value.replace("{key}", f"fake-{vendor}-key-0123456789") for name, value in headers}


def ask(
    ai: FakeAI,
    vendor: str,
    change: Any = None,
    headers: Optional[dict[str, str]] = None,
    model: str = "",
    data: bytes = b"",
    schema: Any = None,
) -> Answer:
    """Send the product's own question with changed top-level fields; None removes a field."""
    ours = providers.VENDORS[vendor]
    model = model or ours.default_model
    image = ImageData(data or picture(), ImageInfo("png", 64, 48))
    body = {**ours.body(Question(model, "What?", [image], "Look.", schema)), **(change or {})}
    body = {name: value for name, value in body.items() if value is not None}
    headers = {"Content-Type": "application/json", **headers_of(vendor), **(headers or {})}
    path = "/v1" * (vendor == "openai") + ours.ask_path.replace("{model}", model)
    return post(ai.url + path, json.dumps(body).encode(), headers)


def message_of(answer: Answer) -> str:
    error = answer.json.get("error", answer.json)
    return str(error if isinstance(error, str) else error.get("message", ""))


# A change to a valid question, the status, a part of the error text.
COMMON: list[tuple[dict[str, Any], int, str]] = [
    ({"headers": {"Content-Type": "application/x-www-form-urlencoded"}}, 415, "application/json"),
    ({"model": "no-such-model"}, 404, "no-such-model"),
    ({"change": {"odd": 1}}, 400, "odd: unknown field"),
    ({"data": picture()[:-20]}, 400, "Could not process the image"),
]
IN_CLOUD = ({"data": picture("jpeg")}, 400, "Could not process the image, which is no image/png")
OPEN = {"type": "object", "properties": {}, "required": []}
NESTED = {**STRICT, "properties": {"x": OPEN}}
BOUNDED = {**STRICT, "properties": {"x": {"type": "integer", "minimum": 0}}}


def content(*parts: Any, role: str = "user") -> Any:
    return {"change": {"messages": [{"role": role, "content": list(parts)}]}}


def openai_image(url: str) -> Any:
    return content({"type": "image_url", "image_url": {"url": url}})


def gemini_config(**config: Any) -> Any:
    return {"change": {"generationConfig": config}}


REFUSED: dict[str, list[tuple[dict[str, Any], int, str]]] = {
    "ollama": [
        ({"change": {"stream": True}}, 400, "stream: expected False"),
        ({"change": {"think": True}}, 400, "think: expected False"),
        ({"change": {"images": ["data:image/png;base64,aW1n"]}}, 400, "Invalid base64"),
    ],
    "openai": [
        IN_CLOUD,
        ({"headers": {"Authorization": "Bearer wrong-key"}}, 401, "Incorrect API key"),
        ({"change": {"max_tokens": 100}}, 400, "max_tokens: unknown field"),
        (openai_image("aW1n"), 400, "url: expected"),
        ({"schema": NESTED}, 400, "additionalProperties"),
        ({"schema": {**STRICT, "required": []}}, 400, "Missing 'x'"),
    ],
    "gemini": [
        IN_CLOUD,
        ({"headers": {"x-goog-api-key": "wrong-key"}}, 400, "API key not valid"),
        (gemini_config(max_tokens=5), 400, "max_tokens: unknown field"),
        (gemini_config(mediaResolution="HIGH"), 400, "mediaResolution: expected"),
        (gemini_config(responseJsonSchema=STRICT), 400, "responseJsonSchema: unknown field"),
        ({"data": picture(padding=15 * MEGABYTE)}, 413, "payload size exceeds"),
    ],
    "anthropic": [
        IN_CLOUD,
        ({"headers": {"x-api-key": "wrong-key"}}, 401, "invalid x-api-key"),
        ({"headers": {"anthropic-version": ""}}, 400, "anthropic-version is not"),
        (content({"type": "text", "text": "x"}, role="system"), 400, "role: expected 'user'"),
        (content({"type": "text", "text": ""}), 400, "text"),
        (content({"type": "image_url"}), 400, "source: field required"),
        ({"data": picture(padding=4 * MEGABYTE)}, 400, "larger than allowed"),
        ({"schema": NESTED}, 400, "additionalProperties"),
        ({"schema": BOUNDED}, 400, "for 'integer' type, minimum is not supported"),
    ],
}


@pytest.mark.parametrize("vendor", REFUSED)
def test_fake_ai_refuses_like_its_vendor(ai: FakeAI, vendor: str) -> None:
    assert ask(ai, vendor).status == ask(ai, vendor, schema=STRICT).status == 200
    required = [name[:-1] for name in VENDORS[vendor].shape if name.endswith("!") and name != "model!"]
    missing = [({"change": {name: None}}, 400, f"{name}: field required") for name in required]
    for asked, status, text in (*COMMON, *missing, *REFUSED[vendor]):
        answer = ask(ai, vendor, **asked)
        assert (answer.status, text in message_of(answer)) == (status, True), (text, answer)
    assert post(f"{ai.url}{VENDORS[vendor].path}/nobody", b"{}", headers_of(vendor)).status == 404

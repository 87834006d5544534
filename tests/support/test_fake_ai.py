"""The fake vendors refuse what the real ones refuse, and fail in the ways that tests order."""

from __future__ import annotations

import base64
import json
from typing import Any, Optional

import pytest
from fake_ai import MEGABYTE, FakeAI, Reply, picture, read_image, script
from fake_ai.loopback import Answer, post

MODELS = {
    "ollama": "qwen3-vl:8b",
    "openai": "gpt-5.4-mini",
    "gemini": "gemini-3.6-flash",
    "anthropic": "claude-sonnet-5",
}
EVERY = pytest.mark.parametrize("vendor", MODELS)
KEY = "fake-{vendor}-key-0123456789"
STRICT: dict[str, Any] = {
    "type": "object",
    "properties": {"x": {"type": "integer"}},
    "required": ["x"],
    "additionalProperties": False,
}


def message_of(answer: Answer) -> str:
    error = answer.json.get("error", answer.json)
    return str(error if isinstance(error, str) else error.get("message", ""))


def key_headers(vendor: str) -> dict[str, str]:
    key = KEY.format(vendor=vendor)
    return {
        "ollama": {},
        "openai": {"Authorization": f"Bearer {key}"},
        "gemini": {"x-goog-api-key": key},
        "anthropic": {"x-api-key": key, "anthropic-version": "2023-06-01"},
    }[vendor]


def question(
    vendor: str, model: str = "", data: bytes = b"", kind: str = "image/png", schema: Optional[Any] = None
) -> tuple[str, dict[str, Any]]:
    """The path and body of a valid question with one image and, when asked, a schema."""
    text, model = base64.b64encode(data or picture()).decode(), model or MODELS[vendor]
    if vendor == "ollama":
        body = {"model": model, "prompt": "What?", "system": "Look.", "images": [text], "stream": False}
        return "/api/generate", {**body, "format": schema}
    if vendor == "gemini":
        config = {"responseMimeType": "application/json", "responseJsonSchema": schema} if schema else {}
        parts = [{"inline_data": {"mime_type": kind, "data": text}}, {"text": "What?"}]
        system, contents = {"parts": [{"text": "Look."}]}, [{"role": "user", "parts": parts}]
        body = {"systemInstruction": system, "generationConfig": config, "contents": contents}
        return f"/v1beta/models/{model}:generateContent", body
    asked = {"type": "text", "text": "What?"}
    if vendor == "openai":
        image = {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{text}", "detail": "high"}}
        messages = [{"role": "system", "content": "Look."}, {"role": "user", "content": [image, asked]}]
        wanted = {"name": "action", "strict": True, "schema": schema}
        form = {"response_format": {"type": "json_schema", "json_schema": wanted}} if schema else {}
        return "/v1/chat/completions", {"model": model, "messages": messages, **form}
    source = {"type": "base64", "media_type": kind, "data": text}
    messages = [{"role": "user", "content": [{"type": "image", "source": source}, asked]}]
    output = {"output_config": {"format": {"type": "json_schema", "schema": schema}}} if schema else {}
    body = {"model": model, "max_tokens": 500, "system": "Look.", "messages": messages, **output}
    return "/v1/messages", body


def ask(
    ai: FakeAI, vendor: str, change: Any = None, headers: Optional[dict[str, str]] = None, **asked: Any
) -> Answer:
    """Ask a valid question, changed at its top level; None removes what is there."""
    path, body = question(vendor, **asked)
    body = {name: value for name, value in {**body, **(change or {})}.items() if value is not None}
    headers = {"Content-Type": "application/json", **(key_headers(vendor) if headers is None else headers)}
    return post(ai.url + path, json.dumps(body).encode(), headers)


def text_of(vendor: str, body: Any) -> str:
    if vendor == "ollama":
        return str(body["response"])
    if vendor == "openai":
        return str(body["choices"][0]["message"]["content"])
    if vendor == "gemini":
        parts = body["candidates"][0]["content"].get("parts", [])
        return "".join(part["text"] for part in parts if not part.get("thought"))
    return "".join(block["text"] for block in body["content"] if block["type"] == "text")


@EVERY
def test_fake_ai_answers_and_records_a_right_question(ai: FakeAI, vendor: str) -> None:
    data = picture("jpeg", 321, 123)
    ai.brain = script([Reply("a grey rectangle", thinking="hm", pieces=2)])
    answer = ask(ai, vendor, data=data, kind="image/jpeg", schema=STRICT)
    assert (answer.status, text_of(vendor, answer.json)) == (200, "a grey rectangle")
    (got,) = ai.requests
    seen = read_image(data, None if vendor == "ollama" else "image/jpeg")
    texts = (got.prompt, got.system, got.schema, got.model)
    assert (texts, got.images) == (("What?", "Look.", STRICT, MODELS[vendor]), [seen])


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
def test_fake_ai_reads_an_images_type_and_size_from_its_bytes(kind: str) -> None:
    seen = read_image(picture(kind, 640, 400))
    assert (seen.real_type, seen.width, seen.height) == (f"image/{kind}", 640, 400)
    assert read_image(picture()[:-20]).real_type is None


def openai_image(url: str) -> Any:
    return {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]}


def gemini_image(data: str) -> Any:
    return {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": data}}]}]}


def anthropic_content(*blocks: Any) -> Any:
    return {"messages": [{"role": "user", "content": list(blocks)}]}


FORM = {"Content-Type": "application/x-www-form-urlencoded"}
OPEN = {"type": "object", "properties": {}, "required": []}
NESTED = {**STRICT, "properties": {"x": {"type": "object", "properties": {}}}}
BOUNDED = {**STRICT, "properties": {"x": {"type": "integer", "minimum": 0}}}
CUT = "%%%%%%%%"
CUT_SOURCE = {"type": "base64", "media_type": "image/png", "data": CUT}
JPEG, TEXT, LARGE, HUGE = picture("jpeg"), b"this is a text", 4 * MEGABYTE, 15 * MEGABYTE
# vendor: what is changed in a right question (body, headers, how it is made), status, a part of the text
REFUSED: dict[str, list[tuple[dict[str, Any], int, str]]] = {
    "ollama": [
        ({"model": "no-such-model"}, 404, "model 'no-such-model' not found"),
        ({"model": "llama3.2:3b"}, 500, "missing data required for image input"),
        ({"change": {"model": None}}, 400, "invalid model name"),
        ({"change": {"stream": None}}, 400, "does not stream"),
        ({"change": {"think": True}}, 400, "does not support thinking"),
        ({"change": {"format": 3}}, 500, "invalid format: 3"),
        ({"change": {"images": ["data:image/png;base64,aW1n"]}}, 400, "illegal base64 data at input byte 4"),
        ({"data": TEXT}, 500, "unknown format"),
    ],
    "openai": [
        ({"headers": {}}, 401, "You didn't provide an API key"),
        ({"headers": {"Authorization": "Bearer wrong-key"}}, 401, "Incorrect API key"),
        ({"headers": {**key_headers("openai"), **FORM}}, 400, "you must provide a model parameter"),
        ({"model": "no-such-model"}, 404, "The model `no-such-model` does not exist"),
        ({"model": "gpt-3.5-turbo"}, 400, "image_url is only supported by certain models"),
        ({"change": {"messages": []}}, 400, "empty array"),
        ({"change": {"max_tokens": 100}}, 400, "Use 'max_completion_tokens' instead"),
        ({"change": {"max_output_tokens": 100}}, 400, "Unrecognized request argument supplied"),
        ({"change": openai_image("aW1n")}, 400, "without the 'data:' prefix"),
        ({"change": openai_image(f"data:image/png;base64,{CUT}")}, 400, "invalid base64-encoded bytes"),
        ({"data": TEXT}, 400, "unsupported image"),
        ({"data": JPEG}, 400, "unsupported image"),
        ({"schema": OPEN}, 400, "additionalProperties"),
        ({"schema": NESTED}, 400, "additionalProperties"),
        ({"schema": {**STRICT, "required": []}}, 400, "Missing 'x'"),
    ],
    "gemini": [
        ({"headers": {}}, 403, "unregistered callers"),
        ({"headers": {"x-goog-api-key": "wrong-key"}}, 400, "API key not valid"),
        ({"headers": {**key_headers("gemini"), **FORM}}, 400, "Cannot bind query parameter"),
        ({"model": "no-such-model"}, 404, "models/no-such-model is not found"),
        ({"model": "gemma-3-1b-it"}, 400, "Image input modality is not enabled"),
        ({"change": {"system_prompt": "x"}}, 400, 'Unknown name "system_prompt"'),
        ({"change": {"contents": []}}, 400, "contents is not specified"),
        ({"change": {"generationConfig": {"max_tokens": 5}}}, 400, "\"max_tokens\" at 'generation_config'"),
        ({"change": {"generationConfig": {"mediaResolution": "HIGH"}}}, 400, "media_resolution"),
        ({"change": {"generationConfig": {"responseJsonSchema": STRICT}}}, 400, "response_mime_type is not"),
        ({"change": gemini_image(CUT)}, 400, "Base64 decoding failed"),
        ({"data": TEXT}, 400, "Unable to process input image"),
        ({"data": JPEG, "kind": "image/gif"}, 400, "Unsupported MIME type: image/gif"),
        ({"data": picture(padding=HUGE)}, 400, "payload size exceeds"),
    ],
    "anthropic": [
        ({"headers": {"anthropic-version": "2023-06-01"}}, 401, "x-api-key header is required"),
        ({"headers": {"x-api-key": KEY.format(vendor="anthropic")}}, 400, "anthropic-version: header is"),
        ({"headers": {**key_headers("anthropic"), "x-api-key": "wrong-key"}}, 401, "invalid x-api-key"),
        ({"headers": {**key_headers("anthropic"), **FORM}}, 415, "must be application/json"),
        ({"model": "no-such-model"}, 404, "model: no-such-model"),
        ({"model": "claude-text-only"}, 400, "does not support image input"),
        ({"change": {"model": None}}, 400, "model: Field required"),
        ({"change": {"max_tokens": None}}, 400, "max_tokens: Field required"),
        ({"change": {"max_completion_tokens": 5}}, 400, "Extra inputs are not permitted"),
        ({"change": {"messages": [{"role": "system"}]}}, 400, 'Unexpected role "system"'),
        ({"change": anthropic_content({"type": "text"})}, 400, "must be non-empty"),
        ({"change": anthropic_content({"type": "image_url"})}, 400, "Input tag 'image_url'"),
        ({"change": anthropic_content({"type": "image", "source": CUT_SOURCE})}, 400, "Invalid base64 data"),
        ({"change": {"output_config": {"format": {"name": "x"}}}}, 400, "format.name: Extra inputs"),
        ({"data": TEXT}, 400, "Could not process image"),
        ({"data": JPEG}, 400, "the image appears to be a image/jpeg image"),
        ({"data": JPEG, "kind": "image/jpg"}, 400, "media_type: Input should be"),
        ({"data": picture(padding=LARGE)}, 400, "image exceeds 5 MB maximum"),
        ({"data": picture("png", 8001, 2)}, 400, "max allowed size: 8000 pixels"),
        ({"schema": OPEN}, 400, "additionalProperties"),
        ({"schema": NESTED}, 400, "additionalProperties"),
        ({"schema": BOUNDED}, 400, "For 'integer' type, properties minimum are not supported"),
    ],
}


@EVERY
def test_fake_ai_refuses_what_its_vendor_refuses(ai: FakeAI, vendor: str) -> None:
    for asked, status, text in REFUSED[vendor]:
        answer = ask(ai, vendor, **asked)
        assert (answer.status, text in message_of(answer)) == (status, True), (text, answer)
    assert post(f"{ai.url}{question(vendor)[0]}/nobody", b"{}", key_headers(vendor)).status == 404


def test_fake_ai_errors_have_the_vendors_own_shape(ai: FakeAI) -> None:
    ollama, openai, gemini, anthropic = (ask(ai, vendor, model="no-such-model").json for vendor in MODELS)
    assert ollama == {"error": "model 'no-such-model' not found"}
    assert openai["error"].keys() == {"message", "type", "param", "code"}
    assert openai["error"]["code"] == "model_not_found"
    assert (gemini["error"]["code"], gemini["error"]["status"]) == (404, "NOT_FOUND")
    assert anthropic["error"] == {"type": "not_found_error", "message": "model: no-such-model"}
    ai.gemini_errors_in_list = True
    assert [each["error"]["code"] for each in ask(ai, "gemini", model="no-such-model").json] == [404]


@pytest.mark.parametrize(
    ("kind", "statuses"),
    [
        ("wrong_key", (401, 401, 400, 401)),
        ("missing_model", (404, 404, 404, 404)),
        ("text_only_model", (500, 400, 400, 400)),
        ("rate_limited", (429, 429, 429, 429)),
        ("server_error", (500, 500, 500, 500)),
        ("overloaded", (503, 503, 503, 529)),
    ],
)
def test_fake_ai_fails_with_the_vendors_status(ai: FakeAI, kind: str, statuses: tuple[int, ...]) -> None:
    ai.fail_with(kind, times=4, retry_after=7)
    answers = [ask(ai, vendor) for vendor in MODELS]
    assert tuple(answer.status for answer in answers) == statuses
    assert [answer.headers.get("retry-after") for answer in answers] == ["7", "7", None, "7"]
    assert answers[2].json["error"]["details"][0]["retryDelay"] == "7s"


@pytest.mark.parametrize(
    ("vendor", "truncated", "refused"),
    [
        ("ollama", '"done_reason": "length"', '"done_reason": "stop"'),
        ("openai", '"finish_reason": "length"', '"content": null, "refusal": "No."'),
        ("gemini", '"finishReason": "MAX_TOKENS"', '"finishReason": "SAFETY"'),
        ("anthropic", '"stop_reason": "max_tokens"', '"stop_reason": "refusal"'),
    ],
)
def test_fake_ai_marks_a_spoilt_reply_as_its_vendor_does(
    ai: FakeAI, vendor: str, truncated: str, refused: str
) -> None:
    for kind in ("truncated", "refused", "empty"):
        ai.fail_with(kind, text="No." if kind == "refused" else "")
    assert [text in json.dumps(ask(ai, vendor).json) for text in (truncated, refused)] == [True, True]
    assert text_of(vendor, ask(ai, vendor).json) == ""


def test_fake_ai_blocks_a_question_to_gemini_without_candidates(ai: FakeAI) -> None:
    ai.fail_with("blocked")
    body = ask(ai, "gemini").json
    assert ("candidates" in body, body["promptFeedback"]) == (False, {"blockReason": "PROHIBITED_CONTENT"})

"""The fake vendors refuse what the real ones refuse, and fail in the ways that tests order."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Optional
from urllib.parse import urlsplit

import pytest
from fake_ai import MEGABYTE, FakeAI, Reply, picture, read_image, script
from worlds import PATIENCE_S

MODELS = {
    "ollama": "qwen3-vl:8b",
    "openai": "gpt-5.4-mini",
    "gemini": "gemini-3.6-flash",
    "anthropic": "claude-sonnet-5",
}
CLOUD = ("openai", "gemini", "anthropic")
EVERY = ("ollama", *CLOUD)
STRICT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}},
    "required": ["x"],
    "additionalProperties": False,
}


@pytest.fixture
def ai() -> Iterator[FakeAI]:
    with FakeAI() as fake:
        yield fake


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    json: Any

    @property
    def message(self) -> str:
        error = self.json.get("error", self.json)
        return error if isinstance(error, str) else error.get("message", "")


def call(base: str, method: str, path: str, body: Any = None, headers: Optional[dict] = None) -> Answer:
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=PATIENCE_S)
    try:
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        names = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, names, json.loads(answer.read()))
    finally:
        connection.close()


def key_headers(ai: FakeAI, vendor: str) -> dict[str, str]:
    return {
        "ollama": {},
        "openai": {"Authorization": f"Bearer {ai.keys['openai']}"},
        "gemini": {"x-goog-api-key": str(ai.keys["gemini"])},
        "anthropic": {"x-api-key": str(ai.keys["anthropic"]), "anthropic-version": "2023-06-01"},
    }[vendor]


def question(
    vendor: str, data: Optional[bytes], kind: str, model: str, schema: Optional[dict]
) -> tuple[str, dict[str, Any]]:
    """The path and body of a valid question with one image and, when asked, a schema."""
    text = base64.b64encode(picture() if data is None else data).decode()
    form: dict[str, Any] = {"type": "json_schema", "schema": schema}
    if vendor == "ollama":
        body = {"model": model, "prompt": "What?", "system": "Look.", "images": [text], "stream": False}
        return "/api/generate", {**body, **({"format": schema} if schema else {})}
    if vendor == "gemini":
        config = {"responseMimeType": "application/json", "responseJsonSchema": schema} if schema else {}
        parts = [{"inline_data": {"mime_type": kind, "data": text}}, {"text": "What?"}]
        system, contents = {"parts": [{"text": "Look."}]}, [{"role": "user", "parts": parts}]
        body = {"systemInstruction": system, "generationConfig": config, "contents": contents}
        return f"/v1beta/models/{model}:generateContent", body
    asked = {"type": "text", "text": "What?"}
    if vendor == "openai":
        image = {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{text}", "detail": "high"}}
        system, user = {"role": "system", "content": "Look."}, {"role": "user", "content": [asked, image]}
        body = {"model": model, "max_completion_tokens": 500, "messages": [system, user]}
        form = {"type": "json_schema", "json_schema": {"name": "action", "strict": True, "schema": schema}}
        return "/v1/chat/completions", {**body, **({"response_format": form} if schema else {})}
    image = {"type": "image", "source": {"type": "base64", "media_type": kind, "data": text}}
    messages = [{"role": "user", "content": [image, asked]}]
    body = {"model": model, "max_tokens": 500, "system": "Look.", "messages": messages}
    return "/v1/messages", {**body, **({"output_config": {"format": form}} if schema else {})}


def ask(
    ai: FakeAI,
    vendor: str,
    change: Any = None,
    *,
    headers: Optional[dict[str, str]] = None,
    data: Optional[bytes] = None,
    kind: str = "image/png",
    model: str = "",
    schema: Optional[dict] = None,
) -> Answer:
    """Ask a valid question, changed: by a mapping of its top level, or by a function of its body."""
    path, body = question(vendor, data, kind, model or MODELS[vendor], schema)
    if callable(change):
        change(body)
    else:
        body.update(change or {})
    return call(ai.url, "POST", path, body, key_headers(ai, vendor) if headers is None else headers)


def text_of(vendor: str, body: Any) -> str:
    if vendor == "ollama":
        return body["response"]
    if vendor == "openai":
        return body["choices"][0]["message"]["content"]
    if vendor == "gemini":
        parts = body["candidates"][0]["content"].get("parts", [])
        return "".join(part["text"] for part in parts if not part.get("thought"))
    return "".join(block["text"] for block in body["content"] if block["type"] == "text")


# right questions


@pytest.mark.parametrize("vendor", EVERY)
def test_right_question_is_answered_and_recorded(ai: FakeAI, vendor: str) -> None:
    data = picture("jpeg", 321, 123)
    ai.brain = script([Reply("a grey rectangle", thinking="hm", pieces=2)])
    answer = ask(ai, vendor, data=data, kind="image/jpeg", schema=STRICT)
    assert text_of(vendor, answer.json) == "a grey rectangle"
    (got,) = ai.requests
    seen = read_image(data, None if vendor == "ollama" else "image/jpeg")
    texts = (got.prompt, got.system, got.schema, got.model, got.status)
    assert (texts, got.images) == (("What?", "Look.", STRICT, MODELS[vendor], 200), [seen])


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp"])
def test_image_type_and_size_are_read_from_its_bytes(kind: str) -> None:
    seen = read_image(picture(kind, 640, 400))
    assert (seen.real_type, seen.width, seen.height) == (f"image/{kind}", 640, 400)
    assert read_image(picture()[:-20]).real_type is None


@pytest.mark.parametrize(
    "vendor, path, name",
    [
        ("ollama", "/api/tags", lambda body: body["models"][0]["name"]),
        ("openai", "/v1/models", lambda body: body["data"][0]["id"]),
        ("gemini", "/v1beta/models", lambda body: body["models"][0]["name"].removeprefix("models/")),
        ("anthropic", "/v1/models", lambda body: body["data"][0]["id"]),
    ],
)
def test_models_are_listed_in_the_vendors_shape(ai: FakeAI, vendor: str, path: str, name: Any) -> None:
    assert name(call(ai.url, "GET", path, headers=key_headers(ai, vendor)).json) == ai.names(vendor)[0]


def test_ollama_loads_a_model_and_tells_what_it_can_do(ai: FakeAI) -> None:
    answer = ask(ai, "ollama", {"prompt": ""}).json
    assert (answer["response"], answer["done_reason"]) == ("", "load")
    shown = [
        call(ai.url, "POST", "/api/show", {"model": name}).json["capabilities"]
        for name in ("qwen3-vl:8b", "llama3.2:3b")
    ]
    assert shown == [["completion", "vision"], ["completion"]]
    ai.blind_text_models = True
    assert "Please provide the image" in ask(ai, "ollama", model="llama3.2:3b").json["response"]


# what is refused


@pytest.mark.parametrize(
    "vendor, headers, status, excerpt",
    [
        ("openai", {}, 401, "You didn't provide an API key"),
        ("gemini", {}, 403, "unregistered callers"),
        ("anthropic", {"anthropic-version": "2023-06-01"}, 401, "x-api-key header is required"),
        ("anthropic", {"x-api-key": "fake-anthropic-key-0123456789"}, 400, "anthropic-version: header is"),
        (
            "anthropic",
            {"Authorization": "Bearer fake-anthropic-key-0123456789", "anthropic-version": "2023-06-01"},
            401,
            "x-api-key",
        ),
        ("openai", {"Authorization": "Bearer wrong-key"}, 401, "Incorrect API key"),
        ("gemini", {"x-goog-api-key": "wrong-key"}, 400, "API key not valid"),
        ("anthropic", {"x-api-key": "wrong-key", "anthropic-version": "2023-06-01"}, 401, "invalid x-api"),
    ],
)
def test_keys_are_checked(ai: FakeAI, vendor: str, headers: dict, status: int, excerpt: str) -> None:
    answer = ask(ai, vendor, headers=headers)
    assert (answer.status, excerpt in answer.message) == (status, True), answer


def test_errors_have_the_vendors_own_shape(ai: FakeAI) -> None:
    ollama, openai, gemini, anthropic = (ask(ai, vendor, model="no-such-model") for vendor in EVERY)
    assert {ollama.status, openai.status, gemini.status, anthropic.status} == {404}
    assert ollama.json == {"error": "model 'no-such-model' not found"}
    error = openai.json["error"]
    assert (error["code"], set(error)) == ("model_not_found", {"message", "type", "param", "code"})
    assert (gemini.json["error"]["code"], gemini.json["error"]["status"]) == (404, "NOT_FOUND")
    assert anthropic.json["type"] == "error"
    assert anthropic.json["error"] == {"type": "not_found_error", "message": "model: no-such-model"}
    ai.gemini_errors_in_list = True
    path = "/v1beta/models/no-such-model:generateContent"
    answer = call(ai.url, "POST", path, {}, key_headers(ai, "gemini")).json
    assert [item["error"]["code"] for item in answer] == [404]


def _part(*path: Any) -> Callable[[dict], Any]:
    def inside(body: Any) -> Any:
        for step in path:
            body = body[step]
        return body

    return inside


OPENAI_IMAGE = _part("messages", 1, "content", 1, "image_url")
ANTHROPIC_IMAGE = _part("messages", 0, "content", 0, "source")
GEMINI_IMAGE = _part("contents", 0, "parts", 0, "inline_data")
CUT = "%%%%%%%%"


@pytest.mark.parametrize(
    "vendor, change, excerpt",
    [
        ("openai", {"max_tokens": 100}, "Use 'max_completion_tokens' instead"),
        ("openai", {"temperature": 0}, "Only the default (1) value is supported"),
        ("openai", {"max_output_tokens": 100}, "Unrecognized request argument supplied"),
        ("openai", {"response_format": {"type": "json_object"}}, "must contain the word 'json'"),
        ("openai", lambda body: OPENAI_IMAGE(body).update(url="aW1n"), "without the 'data:' prefix"),
        (
            "openai",
            lambda body: OPENAI_IMAGE(body).update(url=f"data:image/png;base64,{CUT}"),
            "invalid base64-encoded bytes",
        ),
        ("gemini", {"system_prompt": "x"}, 'Unknown name "system_prompt"'),
        ("gemini", {"contents": []}, "contents is not specified"),
        ("gemini", {"generationConfig": {"max_tokens": 5}}, "\"max_tokens\" at 'generation_config'"),
        ("gemini", {"generationConfig": {"mediaResolution": "HIGH"}}, "media_resolution"),
        ("gemini", {"generationConfig": {"responseJsonSchema": STRICT}}, "response_mime_type is not"),
        (
            "gemini",
            {"generationConfig": {"responseMimeType": "application/json", "responseSchema": STRICT}},
            "Unknown name \"additionalProperties\" at 'generation_config.response_schema'",
        ),
        ("gemini", lambda body: GEMINI_IMAGE(body).update(data=CUT), "Base64 decoding failed"),
        ("anthropic", {"temperature": 0}, "`temperature` is deprecated for this model."),
        ("anthropic", {"max_completion_tokens": 5}, "Extra inputs are not permitted"),
        ("anthropic", {"messages": [{"role": "system", "content": "x"}]}, 'Unexpected role "system"'),
        ("anthropic", {"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "must be non-empty"),
        (
            "anthropic",
            {"output_config": {"format": {"type": "json_schema", "name": "x", "schema": STRICT}}},
            "output_config.format.name: Extra inputs",
        ),
        ("anthropic", lambda body: ANTHROPIC_IMAGE(body).update(data=CUT), "Invalid base64 data"),
        ("anthropic", lambda body: body.pop("max_tokens"), "max_tokens: Field required"),
        ("anthropic", lambda body: body.pop("model"), "model: Field required"),
        ("anthropic", lambda body: body.pop("messages"), "messages: Field required"),
        ("ollama", {"think": True}, "does not support thinking"),
        ("ollama", {"images": ["data:image/png;base64,aW1n"]}, "illegal base64 data at input byte 4"),
    ],
)
def test_request_that_the_vendor_does_not_take_is_400(
    ai: FakeAI, vendor: str, change: Any, excerpt: str
) -> None:
    answer = ask(ai, vendor, change)
    assert (answer.status, excerpt in answer.message) == (400, True), answer


@pytest.mark.parametrize(
    "vendor, data, kind, status, excerpt",
    [
        *[(vendor, b"this is a text", "image/png", 400, "") for vendor in CLOUD],
        ("ollama", b"this is a text", "image/png", 500, "unknown format"),
        ("openai", picture("jpeg"), "image/png", 400, "unsupported image"),
        (
            "anthropic",
            picture("jpeg"),
            "image/png",
            400,
            "messages.0.content.0.image.source.base64: The image was specified using the image/png media "
            "type, but the image appears to be a image/jpeg image",
        ),
        ("anthropic", picture("jpeg"), "image/jpg", 400, "media_type: Input should be"),
        ("gemini", picture("gif"), "image/gif", 400, "Unsupported MIME type: image/gif"),
        ("anthropic", picture(padding=4 * MEGABYTE), "image/png", 400, "image exceeds 5 MB maximum"),
        ("anthropic", picture("png", 8001, 2), "image/png", 400, "max allowed size: 8000 pixels"),
        ("gemini", picture(padding=15 * MEGABYTE), "image/png", 400, "payload size exceeds"),
    ],
    ids=str,
)
def test_image_that_the_vendor_does_not_take_is_refused(
    ai: FakeAI, vendor: str, data: bytes, kind: str, status: int, excerpt: str
) -> None:
    answer = ask(ai, vendor, data=data, kind=kind)
    assert (answer.status, excerpt in answer.message) == (status, True), answer


@pytest.mark.parametrize("vendor", CLOUD)
def test_json_body_that_is_declared_as_a_form_is_refused(ai: FakeAI, vendor: str) -> None:
    headers = {**key_headers(ai, vendor), "Content-Type": "application/x-www-form-urlencoded"}
    assert ask(ai, vendor, headers=headers).status == (415 if vendor == "anthropic" else 400)


OPEN = {"type": "object", "properties": {}, "required": []}
NESTED = {
    "type": "object",
    "properties": {"a": {"type": "object", "properties": {}}},
    "required": ["a"],
    "additionalProperties": False,
}
BOUNDED = {**STRICT, "properties": {"x": {"type": "integer", "minimum": 0}}}


@pytest.mark.parametrize(
    "vendor, schema, excerpt",
    [
        *[
            (name, schema, "additionalProperties")
            for name in ("openai", "anthropic")
            for schema in (OPEN, NESTED)
        ],
        ("openai", {**STRICT, "required": []}, "Missing 'x'"),
        ("anthropic", BOUNDED, "For 'integer' type, properties minimum are not supported"),
    ],
)
def test_schema_that_the_vendor_does_not_take_is_400(
    ai: FakeAI, vendor: str, schema: dict, excerpt: str
) -> None:
    answer = ask(ai, vendor, schema=schema)
    assert (answer.status, excerpt in answer.message) == (400, True), answer


def test_path_of_nobody_is_404(ai: FakeAI) -> None:
    assert call(ai.url, "POST", "/v1/v1/chat/completions", {}, key_headers(ai, "openai")).status == 404


# failures


@pytest.mark.parametrize(
    "kind, statuses",
    [
        ("wrong_key", (401, 401, 400, 401)),
        ("missing_model", (404, 404, 404, 404)),
        ("text_only_model", (500, 400, 400, 400)),
        ("rate_limited", (429, 429, 429, 429)),
        ("server_error", (500, 500, 500, 500)),
        ("overloaded", (503, 503, 503, 529)),
    ],
)
def test_ordered_error_has_the_vendors_status(ai: FakeAI, kind: str, statuses: tuple[int, ...]) -> None:
    ai.fail_with(kind, times=4, retry_after=7)
    answers = [ask(ai, vendor) for vendor in EVERY]
    assert tuple(answer.status for answer in answers) == statuses
    if kind == "rate_limited":
        assert {answer.headers["retry-after"] for answer in answers} == {"7"}
        assert answers[2].json["error"]["details"][0]["retryDelay"] == "7s"


REASONS = {
    "ollama": lambda body: body["done_reason"],
    "openai": lambda body: body["choices"][0]["finish_reason"],
    "gemini": lambda body: body["candidates"][0]["finishReason"],
    "anthropic": lambda body: body["stop_reason"],
}


@pytest.mark.parametrize("vendor", EVERY)
def test_spoilt_reply_is_told_where_the_vendor_tells_it(ai: FakeAI, vendor: str) -> None:
    for kind in ("truncated", "empty", "refused"):
        ai.fail_with(kind, text="No." if kind == "refused" else "")
    truncated, empty, refused = (ask(ai, vendor).json for _ in range(3))
    reasons = {"gemini": "MAX_TOKENS", "anthropic": "max_tokens"}
    assert (REASONS[vendor](truncated), text_of(vendor, empty)) == (reasons.get(vendor, "length"), "")
    if vendor == "openai":
        message = refused["choices"][0]["message"]
        assert (message["content"], message["refusal"]) == (None, "No.")
    elif vendor != "ollama":
        assert (REASONS[vendor](refused).upper(), text_of(vendor, refused)) in (
            ("SAFETY", ""),
            ("REFUSAL", ""),
        )


def test_blocked_question_to_gemini_has_no_candidates(ai: FakeAI) -> None:
    ai.fail_with("blocked")
    body = ask(ai, "gemini").json
    assert ("candidates" in body, body["promptFeedback"]) == (False, {"blockReason": "PROHIBITED_CONTENT"})

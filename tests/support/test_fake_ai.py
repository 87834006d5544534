"""The fakes refuse what the real vendors refuse, and fail in the ways that tests order."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Optional
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from fake_ai import MEGABYTE, FakeAI, Reply, http_date, look, picture, script
from fake_google import SCOPE, SEND_PATH, FakeGoogle
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


@pytest.fixture
def google() -> Iterator[FakeGoogle]:
    with FakeGoogle() as fake:
        yield fake


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)


def call(
    base: str,
    method: str,
    path: str,
    body: Any = None,
    headers: Optional[dict[str, str]] = None,
    timeout: float = PATIENCE_S,
) -> Answer:
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=timeout)
    try:
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
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
    vendor: str,
    data: Optional[bytes] = None,
    kind: str = "image/png",
    model: str = "",
    schema: Optional[dict] = None,
) -> tuple[str, dict[str, Any]]:
    """The path and body of a valid question with one image and, when asked, a schema."""
    model, text = model or MODELS[vendor], base64.b64encode(picture() if data is None else data).decode()
    url = f"data:{kind};base64,{text}"
    if vendor == "ollama":
        return "/api/generate", {
            "model": model,
            "prompt": "What?",
            "system": "Look.",
            "images": [text],
            "stream": False,
            **({"format": schema} if schema else {}),
        }
    if vendor == "openai":
        form = {"type": "json_schema", "json_schema": {"name": "action", "strict": True, "schema": schema}}
        return "/v1/chat/completions", {
            "model": model,
            "max_completion_tokens": 500,
            "messages": [
                {"role": "system", "content": "Look."},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "What?"},
                        {"type": "image_url", "image_url": {"url": url, "detail": "high"}},
                    ],
                },
            ],
            **({"response_format": form} if schema else {}),
        }
    if vendor == "gemini":
        config = {"responseMimeType": "application/json", "responseJsonSchema": schema} if schema else {}
        return f"/v1beta/models/{model}:generateContent", {
            "systemInstruction": {"parts": [{"text": "Look."}]},
            "generationConfig": config,
            "contents": [
                {
                    "role": "user",
                    "parts": [{"inline_data": {"mime_type": kind, "data": text}}, {"text": "What?"}],
                }
            ],
        }
    return "/v1/messages", {
        "model": model,
        "max_tokens": 500,
        "system": "Look.",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": kind, "data": text}},
                    {"type": "text", "text": "What?"},
                ],
            }
        ],
        **({"output_config": {"format": {"type": "json_schema", "schema": schema}}} if schema else {}),
    }


def ask(
    ai: FakeAI,
    vendor: str,
    headers: Optional[dict[str, str]] = None,
    change: Optional[dict[str, Any]] = None,
    timeout: float = PATIENCE_S,
    **asked: Any,
) -> Answer:
    path, body = question(vendor, **asked)
    return call(
        ai.url,
        "POST",
        path,
        {**body, **(change or {})},
        key_headers(ai, vendor) if headers is None else headers,
        timeout,
    )


def text_of(vendor: str, body: Any) -> str:
    return {
        "ollama": lambda: body["response"],
        "openai": lambda: body["choices"][0]["message"]["content"],
        "gemini": lambda: "".join(
            part["text"] for part in body["candidates"][0]["content"]["parts"] if not part.get("thought")
        ),
        "anthropic": lambda: "".join(b["text"] for b in body["content"] if b["type"] == "text"),
    }[vendor]()


def message_of(body: Any) -> str:
    return body["error"] if isinstance(body["error"], str) else body["error"]["message"]


# right questions


@pytest.mark.parametrize("vendor", EVERY)
def test_a_right_question_is_answered_in_the_vendors_shape(ai: FakeAI, vendor: str) -> None:
    ai.brain = script([Reply("a grey rectangle", thinking="hm", pieces=2)])
    assert text_of(vendor, ask(ai, vendor).json) == "a grey rectangle"


@pytest.mark.parametrize("vendor", EVERY)
def test_the_record_has_the_images_bytes_type_and_size_and_every_text(ai: FakeAI, vendor: str) -> None:
    data = picture("jpeg", 321, 123)
    ask(ai, vendor, data=data, kind="image/jpeg", schema=STRICT)
    (got,) = ai.requests
    declared = None if vendor == "ollama" else "image/jpeg"
    assert (got.prompt, got.system, got.schema, got.model, got.status) == (
        "What?",
        "Look.",
        STRICT,
        MODELS[vendor],
        200,
    )
    assert got.images == [look(data, declared)]
    assert (got.images[0].real_type, got.images[0].width, got.images[0].height) == ("image/jpeg", 321, 123)


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp"])
def test_type_and_size_are_read_from_the_image_itself(kind: str) -> None:
    seen = look(picture(kind, 640, 400))
    assert (seen.real_type, seen.width, seen.height) == (f"image/{kind}", 640, 400)


def test_a_truncated_png_is_not_an_image() -> None:
    assert look(picture()[:-20]).real_type is None


@pytest.mark.parametrize(
    "vendor, path, name",
    [
        ("ollama", "/api/tags", lambda body: body["models"][0]["name"]),
        ("openai", "/v1/models", lambda body: body["data"][0]["id"]),
        ("gemini", "/v1beta/models", lambda body: body["models"][0]["name"].removeprefix("models/")),
        ("anthropic", "/v1/models", lambda body: body["data"][0]["id"]),
    ],
)
def test_the_models_are_listed_in_the_vendors_shape(ai: FakeAI, vendor: str, path: str, name: Any) -> None:
    assert name(call(ai.url, "GET", path, headers=key_headers(ai, vendor)).json) == ai.names(vendor)[0]


# keys and models


@pytest.mark.parametrize(
    "vendor, status, excerpt",
    [
        ("openai", 401, "You didn't provide an API key"),
        ("gemini", 403, "unregistered callers"),
        ("anthropic", 401, "x-api-key header is required"),
    ],
)
def test_a_missing_key_is_refused(ai: FakeAI, vendor: str, status: int, excerpt: str) -> None:
    headers = {name: value for name, value in key_headers(ai, vendor).items() if name == "anthropic-version"}
    answer = ask(ai, vendor, headers=headers)
    assert (answer.status, excerpt in message_of(answer.json)) == (status, True)


@pytest.mark.parametrize(
    "vendor, header",
    [("openai", {"Authorization": "Bearer wrong-key"}), ("anthropic", {"x-api-key": "wrong-key"})],
)
def test_a_wrong_key_is_401(ai: FakeAI, vendor: str, header: dict[str, str]) -> None:
    assert ask(ai, vendor, headers={**key_headers(ai, vendor), **header}).status == 401


def test_geminis_wrong_key_is_400_with_the_reason_in_the_details(ai: FakeAI) -> None:
    answer = ask(ai, "gemini", headers={"x-goog-api-key": "wrong-key"})
    error = answer.json["error"]
    assert (answer.status, error["status"], error["details"][0]["reason"]) == (
        400,
        "INVALID_ARGUMENT",
        "API_KEY_INVALID",
    )


def test_geminis_errors_may_come_in_a_one_element_list(ai: FakeAI) -> None:
    ai.gemini_errors_in_list = True
    assert [
        item["error"]["code"] for item in ask(ai, "gemini", headers={"x-goog-api-key": "wrong-key"}).json
    ] == [400]


def test_another_vendors_header_is_no_key(ai: FakeAI) -> None:
    headers = {"Authorization": f"Bearer {ai.keys['anthropic']}", "anthropic-version": "2023-06-01"}
    assert ask(ai, "anthropic", headers=headers).status == 401


def test_an_error_has_the_vendors_own_shape(ai: FakeAI) -> None:
    errors = {
        vendor: ask(ai, vendor, model="no-such-model")
        for vendor in ("ollama", "openai", "gemini", "anthropic")
    }
    assert {vendor: answer.status for vendor, answer in errors.items()} == dict.fromkeys(errors, 404)
    assert errors["ollama"].json == {"error": "model 'no-such-model' not found"}
    assert (errors["openai"].json["error"]["code"], set(errors["openai"].json["error"])) == (
        "model_not_found",
        {"message", "type", "param", "code"},
    )
    assert (errors["gemini"].json["error"]["code"], errors["gemini"].json["error"]["status"]) == (
        404,
        "NOT_FOUND",
    )
    assert (errors["anthropic"].json["type"], errors["anthropic"].json["error"]) == (
        "error",
        {"type": "not_found_error", "message": "model: no-such-model"},
    )


@pytest.mark.parametrize(
    "vendor, model, status",
    [
        ("ollama", "llama3.2:3b", 500),
        ("openai", "gpt-3.5-turbo", 400),
        ("gemini", "gemma-3-1b-it", 400),
        ("anthropic", "claude-text-only", 400),
    ],
)
def test_a_text_only_model_refuses_an_image(ai: FakeAI, vendor: str, model: str, status: int) -> None:
    assert ask(ai, vendor, model=model).status == status


def test_a_text_only_ollama_model_can_answer_blindly(ai: FakeAI) -> None:
    ai.blind_text_models = True
    assert "Please provide the image" in ask(ai, "ollama", model="llama3.2:3b").json["response"]


def test_a_path_of_nobody_is_404(ai: FakeAI) -> None:
    assert call(ai.url, "POST", "/v1/v1/chat/completions", {}, key_headers(ai, "openai")).status == 404


# images


@pytest.mark.parametrize("vendor", ("openai", "anthropic"))
def test_a_media_type_that_the_bytes_contradict_is_refused(ai: FakeAI, vendor: str) -> None:
    assert ask(ai, vendor, data=picture("jpeg"), kind="image/png").status == 400


def test_anthropic_reports_the_true_type_of_an_image(ai: FakeAI) -> None:
    assert message_of(ask(ai, "anthropic", data=picture("jpeg")).json) == (
        "messages.0.content.0.image.source.base64: The image was specified using the image/png media type, "
        "but the image "
        "appears to be a image/jpeg image"
    )


def test_anthropic_does_not_know_image_jpg(ai: FakeAI) -> None:
    assert "media_type: Input should be" in message_of(
        ask(ai, "anthropic", data=picture("jpeg"), kind="image/jpg").json
    )


@pytest.mark.parametrize("vendor", EVERY)
def test_what_is_not_an_image_is_refused(ai: FakeAI, vendor: str) -> None:
    assert ask(ai, vendor, data=b"this is a text").status in (400, 500)


def test_a_data_prefix_in_ollamas_images_is_illegal_base64(ai: FakeAI) -> None:
    text = base64.b64encode(picture()).decode()
    answer = ask(ai, "ollama", change={"images": ["data:image/png;base64," + text]})
    assert (answer.status, answer.json) == (400, {"error": "illegal base64 data at input byte 4"})


def test_openai_wants_the_data_prefix_that_ollama_refuses(ai: FakeAI) -> None:
    path, body = question("openai")
    body["messages"][1]["content"][1]["image_url"]["url"] = base64.b64encode(picture()).decode()
    answer = call(ai.url, "POST", path, body, key_headers(ai, "openai"))
    assert (answer.status, "without the 'data:' prefix" in message_of(answer.json)) == (400, True)


@pytest.mark.parametrize(
    "vendor, spot",
    [
        ("openai", lambda body: body["messages"][1]["content"][1]["image_url"]),
        ("anthropic", lambda body: body["messages"][0]["content"][0]["source"]),
        ("gemini", lambda body: body["contents"][0]["parts"][0]["inline_data"]),
    ],
)
def test_what_is_not_base64_is_refused(ai: FakeAI, vendor: str, spot: Any) -> None:
    path, body = question(vendor)
    place = spot(body)
    name = "url" if "url" in place else "data"
    place[name] = place[name][:-8] + "%%%%%%%%"
    assert call(ai.url, "POST", path, body, key_headers(ai, vendor)).status == 400


def test_anthropic_measures_five_megabytes_on_the_base64_text(ai: FakeAI) -> None:
    answer = ask(ai, "anthropic", data=picture(padding=4 * MEGABYTE))
    assert (answer.status, "image exceeds 5 MB maximum" in message_of(answer.json)) == (400, True)


def test_anthropic_refuses_more_than_8000_pixels_a_side(ai: FakeAI) -> None:
    assert (
        ask(ai, "anthropic", data=picture("png", 8001, 2))
        .json["error"]["message"]
        .endswith("At least one of the image dimensions exceed max allowed size: 8000 pixels")
    )


def test_gemini_refuses_a_request_above_20_megabytes(ai: FakeAI) -> None:
    answer = ask(ai, "gemini", data=picture(padding=15 * MEGABYTE))
    assert (answer.status, "payload size exceeds" in message_of(answer.json)) == (400, True)


def test_gemini_does_not_take_gif(ai: FakeAI) -> None:
    assert (
        message_of(ask(ai, "gemini", data=picture("gif"), kind="image/gif").json)
        == "Unsupported MIME type: image/gif"
    )


# parameters


@pytest.mark.parametrize(
    "vendor, change, excerpt",
    [
        ("openai", {"max_tokens": 100}, "Use 'max_completion_tokens' instead"),
        ("openai", {"temperature": 0}, "Only the default (1) value is supported"),
        ("openai", {"max_output_tokens": 100}, "Unrecognized request argument supplied"),
        ("openai", {"response_format": {"type": "json_object"}}, "must contain the word 'json'"),
        ("gemini", {"system_prompt": "x"}, 'Unknown name "system_prompt"'),
        ("gemini", {"contents": []}, "contents is not specified"),
        (
            "gemini",
            {"generationConfig": {"max_tokens": 5}},
            "Unknown name \"max_tokens\" at 'generation_config'",
        ),
        ("gemini", {"generationConfig": {"mediaResolution": "HIGH"}}, "media_resolution"),
        ("anthropic", {"temperature": 0}, "`temperature` is deprecated for this model."),
        ("anthropic", {"max_completion_tokens": 5}, "Extra inputs are not permitted"),
        ("anthropic", {"messages": [{"role": "system", "content": "x"}]}, 'Unexpected role "system"'),
        (
            "anthropic",
            {"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]},
            "must be non-empty",
        ),
        (
            "anthropic",
            {"output_config": {"format": {"type": "json_schema", "name": "x", "schema": STRICT}}},
            "output_config.format.name: Extra inputs",
        ),
        ("ollama", {"think": True}, "does not support thinking"),
    ],
)
def test_a_parameter_that_the_vendor_does_not_take_is_400(
    ai: FakeAI, vendor: str, change: dict, excerpt: str
) -> None:
    answer = ask(ai, vendor, change=change)
    assert (answer.status, excerpt in message_of(answer.json)) == (400, True), answer.json


@pytest.mark.parametrize("missing", ["max_tokens", "model", "messages"])
def test_anthropic_refuses_a_request_without_its_required_fields(ai: FakeAI, missing: str) -> None:
    path, body = question("anthropic")
    del body[missing]
    assert (
        message_of(call(ai.url, "POST", path, body, key_headers(ai, "anthropic")).json)
        == f"{missing}: Field required"
    )


def test_anthropic_refuses_a_request_without_its_version_header(ai: FakeAI) -> None:
    answer = ask(ai, "anthropic", headers={"x-api-key": str(ai.keys["anthropic"])})
    assert (answer.status, message_of(answer.json)) == (400, "anthropic-version: header is required")


@pytest.mark.parametrize("vendor", CLOUD)
def test_a_json_body_that_says_it_is_a_form_is_refused(ai: FakeAI, vendor: str) -> None:
    headers = {**key_headers(ai, vendor), "Content-Type": "application/x-www-form-urlencoded"}
    assert ask(ai, vendor, headers=headers).status in (400, 415)


def test_ollama_only_loads_the_model_when_the_prompt_is_empty(ai: FakeAI) -> None:
    answer = ask(ai, "ollama", change={"prompt": ""}).json
    assert (answer["response"], answer["done_reason"]) == ("", "load")


def test_ollamas_show_says_whether_a_model_sees(ai: FakeAI) -> None:
    seeing, blind = (
        call(ai.url, "POST", "/api/show", {"model": name}).json["capabilities"]
        for name in ("qwen3-vl:8b", "llama3.2:3b")
    )
    assert (seeing, blind) == (["completion", "vision"], ["completion"])


# schemas


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "object", "properties": {}, "required": []},
        {
            "type": "object",
            "properties": {"a": {"type": "object", "properties": {}}},
            "required": ["a"],
            "additionalProperties": False,
        },
    ],
)
def test_every_object_of_a_schema_must_forbid_additional_properties(
    ai: FakeAI, vendor: str, wrong: dict
) -> None:
    answer = ask(ai, vendor, schema=wrong)
    assert (answer.status, "additionalProperties" in message_of(answer.json)) == (400, True)


def test_openais_strict_schema_requires_every_property(ai: FakeAI) -> None:
    answer = ask(ai, "openai", schema={**STRICT, "required": []})
    assert "Missing 'x'" in message_of(answer.json)


def test_anthropics_schema_has_no_bounds_for_numbers(ai: FakeAI) -> None:
    answer = ask(ai, "anthropic", schema={**STRICT, "properties": {"x": {"type": "integer", "minimum": 0}}})
    assert message_of(answer.json).endswith("For 'integer' type, properties minimum are not supported")


def test_geminis_response_schema_does_not_know_additional_properties(ai: FakeAI) -> None:
    config = {"responseMimeType": "application/json", "responseSchema": STRICT}
    answer = ask(ai, "gemini", change={"generationConfig": config})
    assert "Unknown name \"additionalProperties\" at 'generation_config.response_schema'" in message_of(
        answer.json
    )


def test_geminis_schema_needs_the_json_mime_type(ai: FakeAI) -> None:
    assert ask(ai, "gemini", change={"generationConfig": {"responseJsonSchema": STRICT}}).status == 400


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
def test_an_ordered_error_has_the_vendors_status(ai: FakeAI, kind: str, statuses: tuple[int, ...]) -> None:
    ai.fail_with(kind, times=4)
    assert tuple(ask(ai, vendor).status for vendor in EVERY) == statuses


def test_retry_after_is_seconds_or_a_date_and_for_gemini_also_a_detail(ai: FakeAI) -> None:
    ai.fail_with("rate_limited", retry_after=7)
    ai.fail_with("rate_limited", retry_after=http_date(60))
    ai.fail_with("rate_limited", retry_after=7)
    seconds, date, gemini = ask(ai, "openai"), ask(ai, "openai"), ask(ai, "gemini")
    assert seconds.headers["retry-after"] == "7"
    assert 50 < parsedate_to_datetime(date.headers["retry-after"]).timestamp() - time.time() <= 60
    assert gemini.json["error"]["details"][0]["retryDelay"] == "7s"


REASONS = {
    "ollama": lambda body: body["done_reason"],
    "openai": lambda body: body["choices"][0]["finish_reason"],
    "gemini": lambda body: body["candidates"][0]["finishReason"],
    "anthropic": lambda body: body["stop_reason"],
}


@pytest.mark.parametrize(
    "vendor, reason",
    [
        ("ollama", "length"),
        ("openai", "length"),
        ("gemini", "MAX_TOKENS"),
        ("anthropic", "max_tokens"),
    ],
)
def test_a_truncated_answer_says_so_where_the_vendor_says_it(ai: FakeAI, vendor: str, reason: str) -> None:
    ai.fail_with("truncated")
    assert REASONS[vendor](ask(ai, vendor).json) == reason


def test_a_refusal_stands_where_the_vendor_puts_it(ai: FakeAI) -> None:
    ai.fail_with("refused", times=3, text="No.")
    chat, gemini, anthropic = (ask(ai, vendor).json for vendor in CLOUD)
    message = chat["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == (None, "No.")
    assert (gemini["candidates"][0]["finishReason"], "parts" in gemini["candidates"][0]["content"]) == (
        "SAFETY",
        False,
    )
    assert (anthropic["stop_reason"], anthropic["content"]) == ("refusal", [])


def test_a_blocked_question_to_gemini_has_no_candidates(ai: FakeAI) -> None:
    ai.fail_with("blocked")
    body = ask(ai, "gemini").json
    assert ("candidates" in body, body["promptFeedback"]) == (False, {"blockReason": "PROHIBITED_CONTENT"})


@pytest.mark.parametrize("vendor", EVERY)
def test_an_empty_answer_has_no_text(ai: FakeAI, vendor: str) -> None:
    ai.fail_with("empty")
    body = ask(ai, vendor).json
    if vendor == "gemini":
        assert "parts" not in body["candidates"][0]["content"]
    else:
        assert text_of(vendor, body) == ""


# Google


class Program:
    """What gmail-login does: a listener on the loopback, and the address for the browser."""

    def __init__(self, google: FakeGoogle) -> None:
        got = self.got = []

        class Listener(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                got.append(self.path)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"You may close this page.")

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.google = google
        self.listener = HTTPServer(("127.0.0.1", 0), Listener)
        self.thread = threading.Thread(target=self.listener.serve_forever, args=(0.005,))
        self.thread.start()
        self.verifier = "v" * 50
        self.installed = json.loads(google.credentials_json())["installed"]

    def address(self, **change: Optional[str]) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        asked = {
            "client_id": self.installed["client_id"],
            "redirect_uri": self.redirect_uri,
            "response_type": "code",
            "scope": SCOPE,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
            "state": "my-state",
            "access_type": "offline",
            **change,
        }
        return (
            self.installed["auth_uri"]
            + "?"
            + urlencode({name: text for name, text in asked.items() if text is not None})
        )

    @property
    def redirect_uri(self) -> str:
        return f"http://127.0.0.1:{self.listener.server_address[1]}"

    @property
    def answered(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.got[-1]).query).items()}

    def token(self, **form: str) -> Answer:
        asked = {
            "client_id": self.installed["client_id"],
            "client_secret": self.installed["client_secret"],
            **form,
        }
        return call(
            self.google.url,
            "POST",
            "/token",
            urlencode(asked).encode(),
            {"Content-Type": "application/x-www-form-urlencoded"},
        )

    def exchange(self, **change: str) -> Answer:
        return self.token(
            **{
                "grant_type": "authorization_code",
                "code": self.answered["code"],
                "redirect_uri": self.redirect_uri,
                "code_verifier": self.verifier,
                **change,
            }
        )

    def send(self, message: EmailMessage, token: str) -> Answer:
        raw = base64.urlsafe_b64encode(message.as_bytes()).decode()
        return call(self.google.url, "POST", SEND_PATH, {"raw": raw}, {"Authorization": f"Bearer {token}"})


@pytest.fixture
def program(google: FakeGoogle) -> Iterator[Program]:
    program = Program(google)
    yield program
    program.listener.shutdown()
    program.listener.server_close()
    program.thread.join()


def mail(to: str = "ann@example.org") -> EmailMessage:
    message = EmailMessage()
    message["To"], message["Subject"] = to, "Grüße"
    message.set_content("Hallö")
    message.add_alternative("<b>Hallö</b>", subtype="html")
    return message


def test_consent_brings_code_and_state_to_the_program(google: FakeGoogle, program: Program) -> None:
    page = google.consent(program.address(), stray_request_first=True)
    assert (page.status, page.body) == (200, "You may close this page.")
    assert (program.got[0], program.answered["state"]) == ("/favicon.ico", "my-state")
    assert program.exchange().json.keys() == {
        "access_token",
        "refresh_token",
        "expires_in",
        "scope",
        "token_type",
    }


def test_the_fake_can_be_run_as_a_browser(google: FakeGoogle, program: Program) -> None:
    fake = Path(__file__).with_name("fake_google.py")
    subprocess.run(
        [sys.executable, fake, program.address()], check=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL
    )
    assert program.answered["state"] == "my-state"


@pytest.mark.parametrize(
    "change, excerpt",
    [
        ({"client_id": "somebody"}, "invalid_client"),
        ({"redirect_uri": "http://127.0.0.1"}, "redirect_uri_mismatch"),
        ({"redirect_uri": "http://example.org:80"}, "redirect_uri_mismatch"),
        ({"redirect_uri": "https://127.0.0.1:80"}, "redirect_uri_mismatch"),
        ({"redirect_uri": "urn:ietf:wg:oauth:2.0:oob"}, "redirect_uri_mismatch"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": SCOPE + " https://mail.google.com/"}, "invalid_scope"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"state": None}, "invalid_request"),
        ({"access_type": None}, "invalid_request"),
    ],
)
def test_google_shows_a_wrong_address_to_the_user_and_does_not_redirect(
    google: FakeGoogle, program: Program, change: dict, excerpt: str
) -> None:
    page = google.consent(program.address(**change))
    assert (page.status in (400, 401), excerpt in page.body, program.got) == (True, True, [])


def test_a_user_who_denies_comes_back_without_a_code(google: FakeGoogle, program: Program) -> None:
    google.user_denies = True
    google.consent(program.address())
    assert program.answered == {"error": "access_denied", "state": "my-state"}


def test_a_wrong_state_can_come_back(google: FakeGoogle, program: Program) -> None:
    google.wrong_state = True
    google.consent(program.address())
    assert program.answered["state"] != "my-state"


@pytest.mark.parametrize(
    "change, status, code",
    [
        ({"code_verifier": "w" * 50}, 400, "invalid_grant"),
        ({"code_verifier": ""}, 400, "invalid_grant"),
        ({"code": "4/0other"}, 400, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:1"}, 400, "redirect_uri_mismatch"),
        ({"client_secret": "wrong"}, 401, "invalid_client"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
    ],
)
def test_an_exchange_with_a_wrong_part_is_refused(
    google: FakeGoogle, program: Program, change: dict, status: int, code: str
) -> None:
    google.consent(program.address())
    answer = program.exchange(**change)
    assert (answer.status, answer.json["error"]) == (status, code)


def test_a_code_can_be_exchanged_once(google: FakeGoogle, program: Program) -> None:
    google.consent(program.address())
    assert [program.exchange().status, program.exchange().status] == [200, 400]


def test_a_refresh_brings_a_new_access_token_and_no_refresh_token(
    google: FakeGoogle, program: Program
) -> None:
    old = google.sign_in()
    new = program.token(grant_type="refresh_token", refresh_token=old["refresh_token"]).json
    assert (new["access_token"] != old["access_token"], "refresh_token" in new) == (True, False)


def test_a_revoked_grant_cannot_be_refreshed(google: FakeGoogle, program: Program) -> None:
    token = google.sign_in()["refresh_token"]
    google.revoke()
    answer = program.token(grant_type="refresh_token", refresh_token=token)
    assert (answer.status, answer.json) == (
        400,
        {"error": "invalid_grant", "error_description": "Token has been expired or revoked."},
    )


def test_a_sent_mail_is_recorded_with_its_headers_and_both_texts_decoded(
    google: FakeGoogle, program: Program
) -> None:
    answer = program.send(mail(), google.sign_in()["access_token"])
    (sent,) = google.sent
    assert answer.json == {"id": sent.id, "threadId": sent.id, "labelIds": ["SENT"]}
    assert (sent.to, sent.subject, sent.plain, sent.html) == (
        ("ann@example.org",),
        "Grüße",
        "Hallö\n",
        "<b>Hallö</b>\n",
    )
    assert sent.headers["Subject"] == "Grüße"


def test_a_mail_needs_a_token_that_lives(google: FakeGoogle, program: Program) -> None:
    token = google.sign_in()["access_token"]
    google.expire_access_tokens()
    assert [program.send(mail(), token).status, program.send(mail(), "").status, len(google.sent)] == [
        401,
        401,
        0,
    ]


def test_a_mail_needs_a_recipient(google: FakeGoogle, program: Program) -> None:
    message = EmailMessage()
    message.set_content("to nobody")
    answer = program.send(message, google.sign_in()["access_token"])
    assert (answer.status, answer.json["error"]["message"]) == (400, "Recipient address required")


@pytest.mark.parametrize("raw", ["", "++//", "a mail"])
def test_a_mail_is_base64_in_the_webs_alphabet(google: FakeGoogle, raw: str) -> None:
    headers = {"Authorization": "Bearer " + google.sign_in()["access_token"]}
    assert call(google.url, "POST", SEND_PATH, {"raw": raw}, headers).status == 400


@pytest.mark.parametrize(
    "kind, status, reason",
    [
        ("insufficient_scope", 403, "insufficientPermissions"),
        ("rate_limited", 429, "rateLimitExceeded"),
        ("server_error", 500, "backendError"),
        ("unavailable", 503, "backendError"),
    ],
)
def test_a_send_can_fail_as_gmail_fails(
    google: FakeGoogle, program: Program, kind: str, status: int, reason: str
) -> None:
    google.fail_with(kind)
    token = google.sign_in()["access_token"]
    answer = program.send(mail(), token)
    assert (answer.status, answer.json["error"]["errors"][0]["reason"]) == (status, reason)
    assert program.send(mail(), token).status == 200

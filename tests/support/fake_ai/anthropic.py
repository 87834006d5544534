"""Anthropic's /v1/messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .brains import Reply, Request
from .images import MEGABYTE, ReceivedImage, read_image
from .loopback import Refusal
from .refusals import Errors, decode, json_body, schemas

if TYPE_CHECKING:
    from . import FakeAI

_TYPES = {
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def _body(status: int, message: str, kind: str) -> Any:
    name = _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    return {"type": "error", "error": {"type": name, "message": message}, "request_id": "req_011CFake"}


ERRORS = Errors(
    _body,
    {
        "wrong_key": (401, "invalid x-api-key"),
        "missing_model": (404, "model: {model}"),
        "text_only_model": (400, "This model does not support image input."),
        "rate_limited": (429, "This request would exceed your organization's rate limit."),
        "server_error": (500, "An internal error occurred."),
        "overloaded": (529, "Overloaded"),
    },
)
_FIELDS = {"model", "messages", "max_tokens", "system", "output_config"}  # that the product sends
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_UNSUPPORTED = {
    "number": ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"),
    "string": ("maxLength", "minLength"),
    "array": ("maxItems", "uniqueItems"),
}


def _refusal(message: str) -> Refusal:
    return ERRORS.refusal(message)


def check(ai: FakeAI, request: Request) -> Any:
    key, version = request.headers.get("x-api-key", ""), request.headers.get("anthropic-version")
    if not key:
        raise ERRORS.refusal("x-api-key header is required", 401)
    if key != ai.keys["anthropic"]:
        raise ERRORS.of("wrong_key", "")
    if version != "2023-06-01":
        problem = f'"{version}" is not a valid version' if version else "header is required"
        raise _refusal(f"anthropic-version: {problem}")
    if request.path != "/v1/messages":
        raise ERRORS.refusal("Not Found", 404)
    if len(request.raw) > 32 * MEGABYTE:
        raise ERRORS.refusal("Request exceeds the maximum size", 413)
    form = "Content-Type must be application/json"
    body = json_body(ERRORS, request, "The request body is not valid JSON", form, 415)
    _check_fields(ai, request, body)
    _read_messages(request, body["messages"])
    if request.images and not ai.sees(request):
        raise ERRORS.of("text_only_model", request.model)
    _check_output(request, body.get("output_config") or {})
    return None


def _check_fields(ai: FakeAI, request: Request, body: dict[str, Any]) -> None:
    for name in ("model", "max_tokens", "messages"):
        if not body.get(name):
            raise _refusal(f"{name}: Field required")
    for name in body:
        if name not in _FIELDS:
            raise _refusal(f"{name}: Extra inputs are not permitted")
    if not isinstance(body["max_tokens"], int) or body["max_tokens"] < 1:
        raise _refusal("max_tokens: Input should be greater than or equal to 1")
    request.model, request.system = body["model"], body.get("system") or ""
    if not ai.name_of("anthropic", request.model):
        raise ERRORS.of("missing_model", request.model)


def _read_messages(request: Request, messages: list[Any]) -> None:
    for at, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant"):
            advice = 'a top-level `system` parameter, not "system" as an input message role'
            raise _refusal(f'messages: Unexpected role "{role}". The Messages API accepts {advice}.')
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        for number, block in enumerate(blocks):
            location = f"messages.{at}.content.{number}"
            if block.get("type") == "text":
                if not block.get("text"):
                    raise _refusal("messages: text content blocks must be non-empty")
                request.prompt += block["text"] if role == "user" else ""
            elif block.get("type") == "image":
                request.images.append(_image(block.get("source") or {}, f"{location}.image.source"))
            else:
                raise _wrong_tag(location, block.get("type"), "'image', 'text'")


def _wrong_tag(location: str, tag: Any, expected: str) -> Refusal:
    wrong = f"Input tag '{tag}' found using 'type' does not match any of the expected tags"
    return _refusal(f"{location}: {wrong}: {expected}")


def _image(source: dict[str, Any], location: str) -> ReceivedImage:
    if source.get("type") != "base64":
        raise _wrong_tag(location, source.get("type"), "'base64', 'file', 'url'")
    location += ".base64"
    if source.get("media_type") not in _IMAGES:
        expected = "'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
        raise _refusal(f"{location}.media_type: Input should be {expected}")
    data = decode(source.get("data"))
    if data is None:
        raise _refusal(f"{location}.data: Invalid base64 data")
    size, most = len(source["data"]), 5 * MEGABYTE  # measured on the base64 text, not on the image
    if size > most:
        raise _refusal(f"{location}: image exceeds 5 MB maximum: {size} bytes > {most} bytes")
    seen = read_image(data, source["media_type"])
    if seen.real_type is None:
        raise _refusal("Could not process image")
    if seen.real_type != seen.declared_type:
        start = f"{location}: The image was specified using the {seen.declared_type} media type, but the "
        raise _refusal(f"{start}image appears to be a {seen.real_type} image")
    if max(seen.width, seen.height) > 8000:
        start = f"{location}.data: At least one of the image dimensions exceed max allowed size"
        raise _refusal(f"{start}: 8000 pixels")
    return seen


def _check_output(request: Request, config: dict[str, Any]) -> None:
    form = config.get("format")
    if form is None:
        return
    for name in form:
        if name not in ("type", "schema"):
            raise _refusal(f"output_config.format.{name}: Extra inputs are not permitted")
    if form.get("type") != "json_schema" or not isinstance(form.get("schema"), dict):
        raise _refusal("output_config.format.schema: Field required")
    request.schema = form["schema"]
    for _, part in schemas(form["schema"]):
        kind = part.get("type")
        start = f"output_config.format.schema: For '{kind}' type, "
        if kind == "object" and part.get("additionalProperties") is not False:
            raise _refusal(start + "'additionalProperties' must be explicitly set to false")
        names = _UNSUPPORTED.get("number" if kind == "integer" else str(kind), ())
        unsupported = [name for name in names if name in part]
        if unsupported:
            raise _refusal(f"{start}properties {', '.join(unsupported)} are not supported")


def answer(request: Request, reply: Reply) -> Any:
    reasons = {"length": "max_tokens", "refused": "refusal", "blocked": "refusal"}
    reason = reasons.get(reply.finish, "end_turn")
    content: list[dict[str, Any]] = []
    if reply.thinking:
        content.append({"type": "thinking", "thinking": reply.thinking, "signature": "fake"})
    if reason != "refusal":
        content += [{"type": "text", "text": text} for text in reply.parts()]
    return {
        "model": request.model,
        "content": content,
        "stop_reason": reason,
        "usage": {"input_tokens": reply.tokens_in, "output_tokens": reply.tokens_out},
    }

"""Anthropic's /v1/models and /v1/messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .brains import Reply, Request
from .images import MEGABYTE, ReceivedImage, read_image
from .loopback import Refusal
from .refusals import decode, error, json_body, missing_model, schemas, text_only

if TYPE_CHECKING:
    from . import FakeAI

_FIELDS = {
    "model", "messages", "max_tokens", "system", "temperature", "top_p", "top_k", "stop_sequences",
    "stream", "metadata", "tools", "tool_choice", "thinking", "output_config", "service_tier",
    "container", "context_management", "cache_control",
}  # fmt: skip
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_NO_SAMPLING = ("claude-opus-4-7", "claude-opus-4-8", "claude-opus-5", "claude-sonnet-5", "claude-fable-5")
_NO_PREFILL = (*_NO_SAMPLING, "claude-opus-4-6", "claude-sonnet-4-6")
_UNSUPPORTED = {
    "number": ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"),
    "string": ("maxLength", "minLength"),
    "array": ("maxItems", "uniqueItems"),
}


def _refusal(message: str) -> Refusal:
    return error("anthropic", 400, message)


def check(ai: FakeAI, request: Request) -> Any:
    key, version = request.headers.get("x-api-key", ""), request.headers.get("anthropic-version")
    if ai.keys["anthropic"] is not None and key != ai.keys["anthropic"]:
        raise error("anthropic", 401, "invalid x-api-key" if key else "x-api-key header is required")
    if version is None:
        raise _refusal("anthropic-version: header is required")
    if version != "2023-06-01":
        raise _refusal(f'anthropic-version: "{version}" is not a valid version')
    if request.method == "GET" and request.path == "/v1/models":
        models = [
            {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"}
            for name in ai.names("anthropic")
        ]
        return {"data": models, "has_more": False}
    if request.path != "/v1/messages":
        raise error("anthropic", 404, "Not Found")
    if len(request.raw) > 32 * MEGABYTE:
        raise error("anthropic", 413, "Request exceeds the maximum size")
    form = "Content-Type must be application/json"
    body = json_body(request, "The request body is not valid JSON", form, 415)
    _check_fields(ai, request, body)
    _read_messages(request, body["messages"])
    if request.images and not ai.sees(request):
        raise text_only("anthropic", request.model)
    _check_output(request, body.get("output_config") or {})
    return None


def _check_fields(ai: FakeAI, request: Request, body: dict[str, Any]) -> None:
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            raise _refusal(f"{name}: Field required")
    for name in body:
        if name not in _FIELDS:
            raise _refusal(f"{name}: Extra inputs are not permitted")
    if not isinstance(body["max_tokens"], int) or body["max_tokens"] < 1:
        raise _refusal("max_tokens: Input should be greater than or equal to 1")
    request.model = body["model"]
    if not ai.name_of("anthropic", request.model):
        raise missing_model("anthropic", request.model)
    if body.get("stream"):
        raise _refusal("stream: this fake does not stream")
    system = body.get("system") or ""
    request.system = system if isinstance(system, str) else "".join(block.get("text", "") for block in system)
    for name in ("temperature", "top_p", "top_k"):
        if name in body and body[name] != 1 and request.model.startswith(_NO_SAMPLING):
            raise _refusal(f"`{name}` is deprecated for this model.")
    if not 0 <= body.get("temperature", 1) <= 1:
        raise _refusal("temperature: range: 0..1")
    if not isinstance(body["messages"], list) or not body["messages"]:
        raise _refusal("messages: at least one message is required")
    if body["messages"][-1].get("role") == "assistant" and request.model.startswith(_NO_PREFILL):
        message = "This model does not support assistant message prefill. The conversation must end with a "
        raise _refusal(message + "user message.")


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
                request.images.append(_image(block.get("source") or {}, location))
            else:
                raise _wrong_tag(location, block.get("type"), "'image', 'text'")
    most = 2000 if len(request.images) > 20 else 8000
    if any(max(image.width, image.height) > most for image in request.images):
        start = "messages.0.content.0.image.source.base64.data: At least one of the image dimensions exceed "
        many = " for many-image requests" if most == 2000 else ""
        raise _refusal(f"{start}max allowed size{many}: {most} pixels")


def _wrong_tag(location: str, tag: Any, expected: str) -> Refusal:
    wrong = f"Input tag '{tag}' found using 'type' does not match any of the expected tags"
    return _refusal(f"{location}: {wrong}: {expected}")


def _image(source: dict[str, Any], location: str) -> ReceivedImage:
    location = f"{location}.image.source"
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
        start = (
            f"{location}: The image was specified using the {seen.declared_type} media type, but the image"
        )
        raise _refusal(f"{start} appears to be a {seen.real_type} image")
    return seen


def _check_output(request: Request, config: dict[str, Any]) -> None:
    form = config.get("format")
    unknown = [f"output_config.{name}" for name in config if name not in ("format", "effort")]
    unknown += [f"output_config.format.{name}" for name in form or {} if name not in ("type", "schema")]
    if unknown:
        raise _refusal(f"{unknown[0]}: Extra inputs are not permitted")
    if config.get("effort", "high") not in ("low", "medium", "high", "xhigh", "max"):
        raise _refusal("output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")
    if form is None:
        return
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
        unsupported += ["minItems"] if part.get("minItems", 0) > 1 else []
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
        "id": "msg_fake",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": content,
        "stop_reason": reason,
        "usage": {"input_tokens": reply.tokens_in, "output_tokens": reply.tokens_out},
    }

"""Gemini's generateContent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from .brains import Reply, Request
from .images import MEGABYTE, ReceivedImage, read_image
from .loopback import Refusal
from .refusals import Errors, decode, json_body

if TYPE_CHECKING:
    from . import FakeAI

_STATUS = {
    400: "INVALID_ARGUMENT",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


def _body(status: int, message: str, kind: str) -> Any:
    error = {"code": status, "message": message, "status": _STATUS.get(status, "UNKNOWN")}
    if kind == "wrong_key":  # which is 400, not 401
        info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
        error["details"] = [info]
    return {"error": error}


ERRORS = Errors(
    _body,
    {
        "wrong_key": (400, "API key not valid. Please pass a valid API key."),
        "missing_model": (404, "models/{model} is not found for API version v1beta, or is not supported."),
        "text_only_model": (400, "Image input modality is not enabled for models/{model}"),
        "rate_limited": (429, "You exceeded your current quota, please check your plan and billing details."),
        "server_error": (500, "An internal error occurred."),
        "overloaded": (503, "The model is overloaded. Please try again later."),
    },
)
# The fields that the product sends.
_FIELDS = {"contents", "systemInstruction", "generationConfig"}
_CONFIG_FIELDS = {"maxOutputTokens", "responseMimeType", "responseJsonSchema", "mediaResolution"}
_RESOLUTIONS = [f"MEDIA_RESOLUTION_{name}" for name in ("UNSPECIFIED", "LOW", "MEDIUM", "HIGH")]
_IMAGES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
_NO_KEY = "Method doesn't allow unregistered callers (callers without established identity)."


def _refusal(message: str) -> Refusal:
    return ERRORS.refusal(message)


def check(ai: FakeAI, request: Request) -> Any:
    key = request.headers.get("x-goog-api-key")
    if not key:
        raise ERRORS.refusal(_NO_KEY, 403)
    if key != ai.keys["gemini"]:
        raise ERRORS.of("wrong_key", "")
    method = re.fullmatch(r"/v1beta/models/(.+):generateContent", unquote(request.path))
    if not method:
        raise ERRORS.refusal("Requested entity was not found.", 404)
    if len(request.raw) > 20 * MEGABYTE:
        raise _refusal(f"Request payload size exceeds the limit: {20 * MEGABYTE} bytes.")
    form = 'Invalid JSON payload received. Unknown name "{": Cannot bind query parameter.'
    body = json_body(ERRORS, request, "Invalid JSON payload received. Unexpected token.", form)
    request.model = method[1]
    if not ai.name_of("gemini", request.model):
        raise ERRORS.of("missing_model", request.model)
    body = _camel_case(body, _FIELDS, "")
    system = _camel_case(body.get("systemInstruction") or {}, {"role", "parts"}, "system_instruction")
    request.system = "".join(part.get("text", "") for part in system.get("parts") or [])
    _read_contents(ai, request, body.get("contents"))
    _check_config(request, body.get("generationConfig") or {})
    return None


def _camel_case(value: dict[str, Any], known: set[str], where: str) -> dict[str, Any]:
    """The object with camelCase names; Google takes snake_case too, and nothing that it does not know."""
    named = {}
    for written, part in value.items():
        name = re.sub(r"_([a-z])", lambda letter: letter[1].upper(), written)
        if name not in known:
            location = f" at '{where}'" if where else ""
            start = "Invalid JSON payload received. Unknown name"
            raise _refusal(f'{start} "{written}"{location}: Cannot find field.')
        named[name] = part
    return named


def _read_contents(ai: FakeAI, request: Request, contents: Any) -> None:
    if not contents:
        raise _refusal("* GenerateContentRequest.contents: contents is not specified\n")
    for at, content in enumerate(contents):
        content = _camel_case(content, {"role", "parts"}, f"contents[{at}]")
        if content.get("role", "user") != "user":
            raise _refusal("Please use a valid role: user, model.")
        for number, part in enumerate(content.get("parts") or []):
            location = f"contents[{at}].parts[{number}]"
            part = _camel_case(part, {"text", "inlineData"}, location)
            request.prompt += part.get("text", "")
            if "inlineData" in part:
                request.images.append(_image(part["inlineData"], location))
    if request.images and not ai.sees(request):
        raise ERRORS.of("text_only_model", request.model)


def _image(blob: dict[str, Any], location: str) -> ReceivedImage:
    blob = _camel_case(blob, {"mimeType", "data", "displayName"}, f"{location}.inline_data")
    data = decode(blob.get("data"))
    if data is None:
        start = f"Invalid value at '{location}.inline_data.data' (TYPE_BYTES), Base64 decoding failed for "
        raise _refusal(start + f'"{str(blob.get("data"))[:40]}"')
    if blob.get("mimeType") not in _IMAGES:
        raise _refusal(f"Unsupported MIME type: {blob.get('mimeType') or ''}")
    seen = read_image(data, blob["mimeType"])
    if seen.real_type is None:
        raise _refusal("Unable to process input image.")
    return seen


def _check_config(request: Request, config: dict[str, Any]) -> None:
    config = _camel_case(config, _CONFIG_FIELDS, "generation_config")
    request.schema = config.get("responseJsonSchema")
    if request.schema and config.get("responseMimeType") != "application/json":
        raise _refusal("response_schema is set, but response_mime_type is not application/json.")
    level = config.get("mediaResolution", "MEDIA_RESOLUTION_LOW")
    if level not in _RESOLUTIONS:
        start = "Invalid value at 'generation_config.media_resolution' (type.googleapis.com/"
        raise _refusal(f'{start}google.ai.generativelanguage.v1beta.MediaResolution), "{level}"')


def answer(request: Request, reply: Reply) -> Any:
    usage = {"promptTokenCount": reply.tokens_in, "candidatesTokenCount": reply.tokens_out}
    if reply.finish == "blocked":
        return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": usage}
    finish = {"length": "MAX_TOKENS", "refused": "SAFETY"}.get(reply.finish, "STOP")
    parts: list[dict[str, Any]] = [{"text": reply.thinking, "thought": True}] if reply.thinking else []
    if finish != "SAFETY":
        parts += [{"text": text} for text in reply.parts()]
    content = {"role": "model", **({"parts": parts} if parts else {})}  # an empty answer has no "parts"
    return {"candidates": [{"content": content, "finishReason": finish}], "usageMetadata": usage}

"""Gemini's models and generateContent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from .brains import Reply, Request
from .images import MEGABYTE, ReceivedImage, read_image
from .loopback import Refusal
from .refusals import decode, error, json_body, missing_model, schemas, text_only, wrong_key

if TYPE_CHECKING:
    from . import FakeAI

_FIELDS = {
    "contents", "systemInstruction", "generationConfig", "safetySettings", "tools", "toolConfig",
    "cachedContent",
}  # fmt: skip
_PART_FIELDS = {
    "text", "inlineData", "fileData", "functionCall", "functionResponse", "thought", "thoughtSignature",
    "videoMetadata", "mediaResolution",
}  # fmt: skip
_CONFIG_FIELDS = {
    "temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences",
    "responseMimeType", "responseSchema", "responseJsonSchema", "mediaResolution", "seed",
    "presencePenalty", "frequencyPenalty", "responseLogprobs", "logprobs", "thinkingConfig",
    "responseModalities", "speechConfig",
}  # fmt: skip
_SCHEMA_FIELDS = {
    "type", "format", "title", "description", "nullable", "default", "items", "minItems", "maxItems",
    "enum", "properties", "propertyOrdering", "required", "minProperties", "maxProperties", "minimum",
    "maximum", "minLength", "maxLength", "pattern", "example", "anyOf",
}  # fmt: skip
_TYPES = ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")
_RESOLUTIONS = [f"MEDIA_RESOLUTION_{name}" for name in ("UNSPECIFIED", "LOW", "MEDIUM", "HIGH")]
_IMAGES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
_NO_KEY = (
    "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or "
    "other form of API consumer identity to call this API."
)
_UNREADABLE = (
    "Unable to process input image. Please retry or report in "
    "https://developers.generativeai.google/guide/troubleshooting"
)


def _refusal(message: str) -> Refusal:
    return error("gemini", 400, message)


def check(ai: FakeAI, request: Request) -> Any:
    key = request.headers.get("x-goog-api-key") or "".join(request.query.get("key", []))
    if not key:
        raise error("gemini", 403, _NO_KEY)
    if key != ai.keys["gemini"] and ai.keys["gemini"] is not None:
        raise wrong_key("gemini", key)
    path = unquote(request.path)
    if request.method == "GET" and path.startswith("/v1beta/models"):
        return _models(ai, path)
    method = re.fullmatch(r"/v1beta/models/(.+):generateContent", path)
    if not method:
        raise error("gemini", 404, "Requested entity was not found.")
    if len(request.raw) > 20 * MEGABYTE:
        raise _refusal(f"Request payload size exceeds the limit: {20 * MEGABYTE} bytes.")
    form = 'Invalid JSON payload received. Unknown name "{": Cannot bind query parameter.'
    body = json_body(request, "Invalid JSON payload received. Unexpected token.", form)
    request.model = method[1]
    if not ai.name_of("gemini", request.model):
        raise missing_model("gemini", request.model)
    body = _camel_case(body, _FIELDS, "")
    system = _camel_case(body.get("systemInstruction") or {}, {"role", "parts"}, "system_instruction")
    request.system = "".join(part.get("text", "") for part in _list(system.get("parts")))
    _read_contents(ai, request, body.get("contents"))
    _check_config(request, body.get("generationConfig") or {})
    return None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


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


def _models(ai: FakeAI, path: str) -> Any:
    methods = ["generateContent", "countTokens"]
    models = [
        {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods}
        for name in ai.names("gemini")
    ]
    if path == "/v1beta/models":
        return {"models": models}
    for model in models:
        if f"/v1beta/{model['name']}" == path:
            return model
    raise missing_model("gemini", path[len("/v1beta/models/") :])


def _read_contents(ai: FakeAI, request: Request, contents: Any) -> None:
    if not _list(contents):
        raise _refusal("* GenerateContentRequest.contents: contents is not specified\n")
    for at, content in enumerate(_list(contents)):
        content = _camel_case(content, {"role", "parts"}, f"contents[{at}]")
        role = content.get("role", "user")
        if role not in ("user", "model"):
            raise _refusal("Please use a valid role: user, model.")
        if not _list(content.get("parts")):
            where = f"* GenerateContentRequest.contents[{at}].parts"
            raise _refusal(f"{where}: contents.parts must not be empty.\n")
        for number, part in enumerate(_list(content["parts"])):
            location = f"contents[{at}].parts[{number}]"
            part = _camel_case(part, _PART_FIELDS, location)
            request.prompt += part.get("text", "") if role == "user" else ""
            if "inlineData" in part:
                request.images.append(_image(part["inlineData"], location))
    if request.images and not ai.sees(request):
        raise text_only("gemini", request.model)


def _image(blob: dict[str, Any], location: str) -> ReceivedImage:
    blob = _camel_case(blob, {"mimeType", "data", "displayName"}, f"{location}.inline_data")
    data = decode(blob.get("data"))
    if data is None:
        start = f"Invalid value at '{location}.inline_data.data' (TYPE_BYTES), Base64 decoding failed for "
        raise _refusal(start + f'"{str(blob.get("data"))[:40]}"')
    if blob.get("mimeType") not in _IMAGES:
        raise _refusal(f"Unsupported MIME type: {blob.get('mimeType') or ''}")
    seen = read_image(data, blob["mimeType"])
    if seen.real_type not in _IMAGES:
        raise _refusal(_UNREADABLE)
    return seen


def _check_config(request: Request, config: dict[str, Any]) -> None:
    config = _camel_case(config, _CONFIG_FIELDS, "generation_config")
    schema, json_schema = config.get("responseSchema"), config.get("responseJsonSchema")
    if schema and json_schema:
        raise _refusal("Only one of response_schema and response_json_schema can be set.")
    request.schema = schema or json_schema
    if request.schema and config.get("responseMimeType") != "application/json":
        raise _refusal("response_schema is set, but response_mime_type is not application/json.")
    level, api = config.get("mediaResolution", "MEDIA_RESOLUTION_LOW"), "google.ai.generativelanguage.v1beta"
    if level not in _RESOLUTIONS:
        start = "Invalid value at 'generation_config.media_resolution' (type.googleapis.com/"
        raise _refusal(f'{start}{api}.MediaResolution), "{level}"')
    for path, part in schemas(schema):
        where = ".".join(("generation_config.response_schema", *path))
        _camel_case(dict.fromkeys(part, 0), _SCHEMA_FIELDS, where)
        kind = part.get("type", "STRING")
        if not isinstance(kind, str):
            raise _refusal(
                f"Invalid value at '{where}.type': Proto field is not repeating, cannot start list."
            )
        if kind.upper() not in _TYPES:
            raise _refusal(f"Invalid value at '{where}.type' (type.googleapis.com/{api}.Type), \"{kind}\"")


def answer(request: Request, reply: Reply) -> Any:
    usage = {"promptTokenCount": reply.tokens_in, "candidatesTokenCount": reply.tokens_out}
    body = {"usageMetadata": usage, "modelVersion": request.model, "responseId": "fake"}
    if reply.finish == "blocked":
        return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **body}
    finish = {"length": "MAX_TOKENS", "refused": "SAFETY"}.get(reply.finish, "STOP")
    parts: list[dict[str, Any]] = [{"text": reply.thinking, "thought": True}] if reply.thinking else []
    if finish != "SAFETY":
        parts += [{"text": text} for text in reply.parts()]
    content = {"role": "model", **({"parts": parts} if parts else {})}  # an empty answer has no "parts"
    return {"candidates": [{"content": content, "finishReason": finish, "index": 0}], **body}

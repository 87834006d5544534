"""OpenAI's /v1/models and /v1/chat/completions."""

from __future__ import annotations

import json
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
    "model", "messages", "max_tokens", "max_completion_tokens", "temperature", "top_p", "n", "stop",
    "stream", "stream_options", "seed", "response_format", "reasoning_effort", "verbosity", "tools",
    "tool_choice", "parallel_tool_calls", "user", "store", "metadata", "logprobs", "top_logprobs",
    "presence_penalty", "frequency_penalty", "logit_bias", "service_tier", "modalities", "prediction",
    "prompt_cache_key", "safety_identifier",
}  # fmt: skip
_ROLES = {"system": "system", "developer": "system", "user": "prompt", "assistant": "", "tool": ""}
_NO_MODEL = "you must provide a model parameter"


def _refusal(message: str, code: str = "invalid_value") -> Refusal:
    return error("openai", 400, message, code=code)


def check(ai: FakeAI, request: Request) -> Any:
    key = request.headers.get("authorization", "")
    if ai.keys["openai"] is not None:
        if not key.startswith("Bearer ") or not key[7:].strip():
            message = "You didn't provide an API key. You need to provide your API key in an Authorization "
            raise error(
                "openai", 401, message + "header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
            )
        if key[7:] != ai.keys["openai"]:
            raise wrong_key("openai", key[7:])
    if request.method == "GET" and request.path.startswith("/v1/models"):
        return _models(ai, request.path)
    if request.path != "/v1/chat/completions":
        raise error("openai", 404, f"Invalid URL ({request.method} {request.path})")
    body = json_body(request, "We could not parse the JSON body of your request.", _NO_MODEL)
    request.model = body.get("model") or ""
    if not request.model:
        raise _refusal(_NO_MODEL)
    if not ai.name_of("openai", request.model):
        raise missing_model("openai", request.model)
    _check_fields(request, body)
    _read_messages(ai, request, body.get("messages"))
    _check_format(request, body.get("response_format") or {"type": "text"})
    return None


def _models(ai: FakeAI, path: str) -> Any:
    models = [{"id": name, "object": "model", "owned_by": "openai"} for name in ai.names("openai")]
    if path == "/v1/models":
        return {"object": "list", "data": models}
    name = unquote(path[len("/v1/models/") :])
    for model in models:
        if model["id"] == name:
            return model
    raise missing_model("openai", name)


def _check_fields(request: Request, body: dict[str, Any]) -> None:
    for name in body:
        if name not in _FIELDS:
            raise _refusal(f"Unrecognized request argument supplied: {name}")
    if body.get("stream"):
        raise _refusal("This fake does not stream.")
    if re.match(r"gpt-5|o\d", request.model):
        if "max_tokens" in body:
            message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            raise _refusal(message + "'max_completion_tokens' instead.", "unsupported_parameter")
        if body.get("temperature", 1) != 1:
            message = (
                f"Unsupported value: 'temperature' does not support {body['temperature']} with this model. "
            )
            raise _refusal(message + "Only the default (1) value is supported.", "unsupported_value")


def _read_messages(ai: FakeAI, request: Request, messages: Any) -> None:
    if messages is None:
        raise _refusal("Missing required parameter: 'messages'.", "missing_required_parameter")
    if not isinstance(messages, list) or not messages:
        message = "Invalid 'messages': empty array. Expected an array with minimum length 1."
        raise _refusal(message, "empty_array")
    for at, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role not in _ROLES:
            supported = "'system', 'assistant', 'user', and 'developer'"
            raise _refusal(f"Invalid value: '{role}'. Supported values are: {supported}.")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(parts, list):
            raise _refusal(f"Invalid value for 'content': expected a string, got {json.dumps(content)}.")
        for number, part in enumerate(parts):
            _read_part(ai, request, part, f"messages[{at}].content[{number}]", _ROLES[role])


def _read_part(ai: FakeAI, request: Request, part: dict[str, Any], location: str, target: str) -> None:
    kind = part.get("type")
    if kind == "text":
        if target:
            setattr(request, target, getattr(request, target) + part.get("text", ""))
        return
    if kind != "image_url":
        raise _refusal(f"Invalid value: '{kind}'. Supported values are: 'text', 'image_url'.")
    image, location = part.get("image_url"), f"{location}.image_url"
    if not isinstance(image, dict):  # a string in /v1/responses
        message = f"Invalid type for '{location}': expected an object, but got a string instead."
        raise _refusal(message, "invalid_type")
    url, detail = image.get("url"), image.get("detail")
    if not isinstance(url, str):
        message = f"Invalid type for '{location}.url': expected an image URL, but got an object instead."
        raise _refusal(message, "invalid_type")
    if detail not in (None, "low", "high", "auto", "original"):
        supported = "'low', 'high', 'auto', and 'original'"
        raise _refusal(f"Invalid value: '{detail}'. Supported values are: {supported}.")
    if not ai.sees(request):
        raise text_only("openai", request.model)
    request.images.append(_image(url, f"{location}.url"))


def _image(url: str, location: str) -> ReceivedImage:
    if url.startswith(("http://", "https://")):
        raise _refusal(f"Failed to download image from {url}.", "invalid_image_url")
    expected = (
        f"Invalid image URL: '{location}'. Expected a base64-encoded data URL with an image MIME type (e.g. "
        "'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got "
    )
    parts = re.fullmatch(r"data:([^;,]*);base64,(.*)", url, re.DOTALL)
    if not parts:
        raise _refusal(expected + "a value without the 'data:' prefix.")
    if not parts[1].startswith("image/"):
        raise _refusal(expected + f"unsupported MIME type '{parts[1]}'.")
    data = decode(parts[2])
    if data is None:
        raise _refusal(expected + "invalid base64-encoded bytes.", "invalid_base64_image")
    unsupported = "You uploaded an unsupported image. Please make sure your image "
    if len(data) > 20 * MEGABYTE:
        raise _refusal(unsupported + "is below 20 MB in size.", "image_file_too_large")
    seen = read_image(data, parts[1])
    if seen.real_type is None or parts[1].replace("jpg", "jpeg") != seen.real_type:
        formats = "['png', 'jpeg', 'gif', 'webp']"
        raise _refusal(unsupported + f"has of one the following formats: {formats}.", "invalid_image_format")
    return seen


def _check_format(request: Request, form: dict[str, Any]) -> None:
    kind, spec = form.get("type"), form.get("json_schema") or {}
    if kind not in ("text", "json_object", "json_schema"):
        supported = "'json_object', 'json_schema', and 'text'"
        raise _refusal(f"Invalid value: '{kind}'. Supported values are: {supported}.")
    if kind == "json_object" and "json" not in (request.prompt + request.system).lower():
        message = "'messages' must contain the word 'json' in some form, to use 'response_format' of type "
        raise _refusal(message + "'json_object'.")
    if kind != "json_schema":
        return
    name, request.schema = spec.get("name"), spec.get("schema")
    parameter = "'response_format.json_schema.name'"
    if not name:
        raise _refusal(f"Missing required parameter: {parameter}.", "missing_required_parameter")
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        message = f"Invalid {parameter}: string does not match pattern. Expected a string that "
        raise _refusal(message + "matches the pattern '^[a-zA-Z0-9_-]+$'.")
    if spec.get("strict"):
        _check_strict(name, request.schema or {})


def _check_strict(name: str, schema: dict[str, Any]) -> None:
    start, code = f"Invalid schema for response_format '{name}': ", "invalid_json_schema"
    if schema.get("type") != "object":
        got = f"got 'type: \"{schema.get('type')}\"'"
        raise _refusal(f"{start}schema must be a JSON Schema of 'type: \"object\"', {got}.", code)
    for path, part in schemas(schema):
        if part.get("type") != "object" and "properties" not in part:
            continue
        where = f"{start}In context={path!r}, "
        if part.get("additionalProperties") is not False:
            message = "'additionalProperties' is required to be supplied and to be false."
            raise _refusal(where + message, code)
        missing = [key for key in part.get("properties", {}) if key not in part.get("required", [])]
        if missing:
            message = "'required' is required to be supplied and to be an array including every key in "
            raise _refusal(f"{where}{message}properties. Missing '{missing[0]}'.", code)


def answer(request: Request, reply: Reply) -> Any:
    is_refused = reply.finish == "refused"
    finish = {"length": "length", "blocked": "content_filter"}.get(reply.finish, "stop")
    content, refusal = (None, reply.text) if is_refused else (reply.text, None)
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion",
        "model": request.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": {"prompt_tokens": reply.tokens_in, "completion_tokens": reply.tokens_out},
    }

"""OpenAI's /v1/chat/completions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .brains import Reply, Request
from .images import MEGABYTE, ReceivedImage, read_image
from .loopback import Refusal
from .refusals import Errors, decode, json_body, schemas

if TYPE_CHECKING:
    from . import FakeAI

_CODES = {"wrong_key": "invalid_api_key", "missing_model": "model_not_found"}


def _body(status: int, message: str, kind: str) -> Any:
    error_type = "requests" if status == 429 else "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": error_type, "param": None, "code": _CODES.get(kind)}}


ERRORS = Errors(
    _body,
    {
        "wrong_key": (401, "Incorrect API key provided: fake****6789."),
        "missing_model": (404, "The model `{model}` does not exist or you do not have access to it."),
        "text_only_model": (400, "Invalid content type. image_url is only supported by certain models."),
        "rate_limited": (429, "Rate limit reached for requests. Please try again."),
        "server_error": (500, "An internal error occurred."),
        "overloaded": (503, "The engine is currently overloaded, please try again later"),
    },
)
_FIELDS = {"model", "messages", "max_completion_tokens", "response_format"}  # that the product sends
_ROLES = {"system": "system", "user": "prompt"}
_NO_KEY = "You didn't provide an API key. You need to provide it in an Authorization header, by Bearer."
_NO_MODEL = "you must provide a model parameter"
_BAD_URL = "Expected a base64-encoded data URL with an image MIME type, but got "
_BAD_IMAGE = "You uploaded an unsupported image. Please make sure your image "


def _refusal(message: str) -> Refusal:
    return ERRORS.refusal(message)


def check(ai: FakeAI, request: Request) -> Any:
    key = request.headers.get("authorization", "")
    if ai.keys["openai"] is not None and not key.startswith("Bearer "):
        raise ERRORS.refusal(_NO_KEY, 401)
    if ai.keys["openai"] not in (None, key[7:]):
        raise ERRORS.of("wrong_key", "")
    if request.path != "/v1/chat/completions":
        raise ERRORS.refusal(f"Invalid URL ({request.method} {request.path})", 404)
    body = json_body(ERRORS, request, "We could not parse the JSON body of your request.", _NO_MODEL)
    request.model = body.get("model") or ""
    if not request.model:
        raise _refusal(_NO_MODEL)
    if not ai.name_of("openai", request.model):
        raise ERRORS.of("missing_model", request.model)
    if "max_tokens" in body and request.model.startswith("gpt-5"):
        raise _refusal("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    for name in body:
        if name not in _FIELDS:
            raise _refusal(f"Unrecognized request argument supplied: {name}")
    if not body.get("messages"):
        raise _refusal("Invalid 'messages': empty array. Expected an array with minimum length 1.")
    for at, message in enumerate(body["messages"]):
        _read_message(ai, request, message, f"messages[{at}]")
    if "response_format" in body:
        _check_format(request, body["response_format"])
    return None


def _read_message(ai: FakeAI, request: Request, message: dict[str, Any], location: str) -> None:
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES:
        raise _refusal(f"Invalid value: '{role}'. Supported values are: 'system' and 'user'.")
    target = _ROLES[role]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    for number, part in enumerate(parts):
        if part.get("type") == "text":
            setattr(request, target, getattr(request, target) + part.get("text", ""))
        elif part.get("type") == "image_url":
            image = _image(part.get("image_url"), f"{location}.content[{number}].image_url")
            if not ai.sees(request):
                raise ERRORS.of("text_only_model", request.model)
            request.images.append(image)
        else:
            kind = part.get("type")
            raise _refusal(f"Invalid value: '{kind}'. Supported values are: 'text', 'image_url'.")


def _image(image: Any, location: str) -> ReceivedImage:
    if not isinstance(image, dict) or not isinstance(image.get("url"), str):  # a string in /v1/responses
        raise _refusal(f"Invalid type for '{location}': expected an object, but got a string instead.")
    if image.get("detail") not in (None, "low", "high", "auto", "original"):
        supported = "'low', 'high', 'auto', and 'original'"
        raise _refusal(f"Invalid value: '{image['detail']}'. Supported values are: {supported}.")
    expected = f"Invalid image URL: '{location}.url'. {_BAD_URL}"
    parts = re.fullmatch(r"data:([^;,]*);base64,(.*)", image["url"], re.DOTALL)
    if not parts:
        raise _refusal(expected + "a value without the 'data:' prefix.")
    data = decode(parts[2])
    if data is None:
        raise _refusal(expected + "invalid base64-encoded bytes.")
    if len(data) > 20 * MEGABYTE:
        raise _refusal(_BAD_IMAGE + "is below 20 MB in size.")
    seen = read_image(data, parts[1])
    if seen.real_type is None or seen.declared_type != seen.real_type:
        raise _refusal(_BAD_IMAGE + "has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].")
    return seen


def _check_format(request: Request, form: dict[str, Any]) -> None:
    spec = form.get("json_schema") or {}
    if form.get("type") != "json_schema":
        raise _refusal(f"Invalid value: '{form.get('type')}'. Supported values are: 'json_schema'.")
    request.schema = spec.get("schema")
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", spec.get("name") or ""):
        raise _refusal("Invalid 'response_format.json_schema.name': string does not match pattern.")
    if spec.get("strict"):
        _check_strict(f"Invalid schema for response_format '{spec['name']}': ", request.schema or {})


def _check_strict(start: str, schema: dict[str, Any]) -> None:
    for path, part in schemas(schema):
        if part.get("type") != "object":
            continue
        where = f"{start}In context={path!r}, "
        if part.get("additionalProperties") is not False:
            raise _refusal(where + "'additionalProperties' is required to be supplied and to be false.")
        missing = [key for key in part.get("properties", {}) if key not in part.get("required", [])]
        if missing:
            raise _refusal(
                f"{where}'required' has to include every key in properties. Missing '{missing[0]}'."
            )


def answer(request: Request, reply: Reply) -> Any:
    is_refused = reply.finish == "refused"
    finish = {"length": "length", "blocked": "content_filter"}.get(reply.finish, "stop")
    content, refusal = (None, reply.text) if is_refused else (reply.text, None)
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return {
        "model": request.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": reply.tokens_in, "completion_tokens": reply.tokens_out},
    }

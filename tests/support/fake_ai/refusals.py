"""Errors in the vendors' own shapes and texts, as people report them; and what every vendor checks."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import Any, Optional

from .brains import Request
from .loopback import Refusal

_GEMINI_STATUS = {
    400: "INVALID_ARGUMENT",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
_ANTHROPIC_TYPE = {
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def error(
    vendor: str,
    status: int,
    message: str,
    *,
    code: Optional[str] = None,
    details: Iterable[dict[str, Any]] = (),
) -> Refusal:
    """An error in the vendor's own shape. code: OpenAI's. details: Gemini's."""
    inside: dict[str, Any]
    if vendor == "ollama":
        return Refusal(status, {"error": message}, message)
    if vendor == "gemini":
        inside = {"code": status, "message": message, "status": _GEMINI_STATUS.get(status, "UNKNOWN")}
        if details:
            inside["details"] = list(details)
        return Refusal(status, {"error": inside}, message)
    if vendor == "anthropic":
        kind = _ANTHROPIC_TYPE.get(status, "invalid_request_error" if status < 500 else "api_error")
        body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011CFake"}
        return Refusal(status, body, message)
    kind = "requests" if status == 429 else "invalid_request_error" if status < 500 else "server_error"
    inside = {"message": message, "type": kind, "param": None, "code": code}
    return Refusal(status, {"error": inside}, message)


def missing_model(vendor: str, model: str) -> Refusal:
    message = {
        "ollama": f"model '{model}' not found",
        "openai": f"The model `{model}` does not exist or you do not have access to it.",
        "gemini": f"models/{model} is not found for API version v1beta, or is not supported for "
        "generateContent. Call ListModels to see the list of available models and their supported methods.",
        "anthropic": f"model: {model}",
    }[vendor]
    return error(vendor, 404, message, code="model_not_found")


def text_only(vendor: str, model: str) -> Refusal:
    message = {
        "ollama": "Failed to create new sequence: failed to process inputs: this model is missing data "
        "required for image input",
        "openai": "Invalid content type. image_url is only supported by certain models.",
        "gemini": f"Image input modality is not enabled for models/{model}",
        "anthropic": "This model does not support image input.",
    }[vendor]
    return error(vendor, 500 if vendor == "ollama" else 400, message)


def wrong_key(vendor: str, key: str) -> Refusal:
    if vendor == "openai":
        message = f"Incorrect API key provided: {key[:4]}****{key[-4:]}. You can find your API key at "
        message += "https://platform.openai.com/account/api-keys."
        return error(vendor, 401, message, code="invalid_api_key")
    if vendor == "gemini":  # 400, not 401
        info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
        return error(vendor, 400, "API key not valid. Please pass a valid API key.", details=[info])
    # Ollama has no key, but may stand behind a proxy that wants one
    return error(vendor, 401, "invalid x-api-key" if vendor == "anthropic" else "unauthorized")


def rate_limited(vendor: str) -> Refusal:
    message = {
        "ollama": "too many requests",
        "openai": "Rate limit reached for requests. Please try again.",
        "gemini": "You exceeded your current quota, please check your plan and billing details.",
        "anthropic": "This request would exceed your organization's rate limit.",
    }[vendor]
    return error(vendor, 429, message, code="rate_limit_exceeded")


def overloaded(vendor: str) -> Refusal:
    message = {
        "ollama": "server busy, please try again.  maximum pending requests exceeded",
        "openai": "The engine is currently overloaded, please try again later",
        "gemini": "The model is overloaded. Please try again later.",
        "anthropic": "Overloaded",
    }[vendor]
    return error(vendor, 529 if vendor == "anthropic" else 503, message)


def json_body(request: Request, not_json: str, wrong_type: str, type_status: int = 400) -> dict[str, Any]:
    if request.method != "POST":
        raise error(request.vendor, 405, "Method Not Allowed")
    if wrong_type and not request.headers.get("content-type", "").startswith("application/json"):
        raise error(request.vendor, type_status, wrong_type)  # urllib's default is form-urlencoded
    if not isinstance(request.body, dict):
        raise error(request.vendor, 400, not_json)
    return request.body


def decode(data: Any) -> Optional[bytes]:
    """Standard base64 with its padding; None when it is something else."""
    try:
        return base64.b64decode(data, validate=True) or None
    except (binascii.Error, ValueError, TypeError):
        return None


def schemas(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every sub-schema of a JSON schema, with where it stands."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for group in ("properties", "$defs"):
        for name, part in schema.get(group, {}).items():
            yield from schemas(part, (*path, group, name))
    if "items" in schema:
        yield from schemas(schema["items"], (*path, "items"))
    for at, part in enumerate(schema.get("anyOf", [])):
        yield from schemas(part, (*path, "anyOf", str(at)))

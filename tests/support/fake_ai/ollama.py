"""Ollama's /api/show and /api/generate."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from .brains import Reply, Request
from .images import read_image
from .refusals import Errors, decode, json_body

if TYPE_CHECKING:
    from . import FakeAI

ERRORS = Errors(
    lambda status, message, kind: {"error": message},
    {
        "wrong_key": (401, "unauthorized"),  # of a proxy before it
        "missing_model": (404, "model '{model}' not found"),
        "text_only_model": (500, "this model is missing data required for image input"),
        "rate_limited": (429, "too many requests"),
        "server_error": (500, "An internal error occurred."),
        "overloaded": (503, "server busy, please try again.  maximum pending requests exceeded"),
    },
)


def check(ai: FakeAI, request: Request) -> Any:
    if request.path not in ("/api/show", "/api/generate"):
        raise ERRORS.refusal("404 page not found", 404)
    body = json_body(ERRORS, request, "invalid character in request body", "")  # whatever the content type
    request.model = body.get("model") or ""
    if not request.model:
        raise ERRORS.refusal("invalid model name")
    name = ai.name_of("ollama", request.model)
    if name is None:
        raise ERRORS.of("missing_model", request.model)
    if request.path == "/api/show":
        return {"model_info": {}, "capabilities": ["completion", *(["vision"] if ai.models[name] else [])]}
    if body.get("stream") is not False:  # true is its default
        raise ERRORS.refusal("This fake does not stream.")
    if body.get("think"):
        raise ERRORS.refusal(f'"{request.model}" does not support thinking')
    request.system, request.prompt = body.get("system") or "", body.get("prompt") or ""
    form = body.get("format")
    if form not in (None, "", "json") and not isinstance(form, dict):
        message = f'invalid format: {json.dumps(form)}; expected "json" or a valid JSON Schema object'
        raise ERRORS.refusal(message, 500)
    request.schema = form if isinstance(form, dict) else None
    _read_images(ai, request, body.get("images") or [])
    return None


def _read_images(ai: FakeAI, request: Request, texts: list[Any]) -> None:
    for text in texts:
        data = decode(text)
        if data is None:  # a data: prefix fails at its colon, byte 4
            wrong = re.search(r"[^A-Za-z0-9+/\r\n]", str(text))
            raise ERRORS.refusal(f"illegal base64 data at input byte {wrong.start() if wrong else len(text)}")
        request.images.append(read_image(data))
    if any(image.real_type is None for image in request.images):
        raise ERRORS.refusal("failed to process inputs: image: unknown format", 500)
    if request.images and not ai.sees(request) and not ai.blind_text_models:
        raise ERRORS.of("text_only_model", request.model)


def answer(request: Request, reply: Reply) -> Any:
    return {
        "model": request.model,
        "response": reply.text,
        **({"thinking": reply.thinking} if reply.thinking else {}),
        "done": True,
        "done_reason": "length" if reply.finish == "length" else "stop",
        "prompt_eval_count": reply.tokens_in,
        "eval_count": reply.tokens_out,
    }

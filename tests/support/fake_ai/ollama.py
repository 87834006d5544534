"""Ollama's /api/tags, /api/show and /api/generate."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from .brains import Reply, Request
from .images import read_image
from .refusals import decode, error, json_body, missing_model, text_only

if TYPE_CHECKING:
    from . import FakeAI

_UNREADABLE = "Failed to create new sequence: failed to process inputs: image: unknown format"


def check(ai: FakeAI, request: Request) -> Any:
    if request.method == "GET" and request.path == "/":
        return b"Ollama is running"
    if request.method == "GET" and request.path == "/api/tags":
        return {"models": [_model(ai, name) for name in ai.names("ollama")]}
    if request.path not in ("/api/show", "/api/generate"):
        raise error("ollama", 404, "404 page not found")
    body = json_body(request, "invalid character in request body", "")  # whatever the content type
    request.model = body.get("model") or ""
    if not request.model:
        raise error("ollama", 400, "invalid model name")
    name = ai.name_of("ollama", request.model)
    if name is None:
        raise missing_model("ollama", request.model)
    if request.path == "/api/show":
        return {"model_info": {}, "capabilities": _capabilities(ai, name)}
    _check_question(ai, request, body)
    return None


def _check_question(ai: FakeAI, request: Request, body: dict[str, Any]) -> None:
    if body.get("stream") is not False:  # true is its default
        raise error("ollama", 400, "This fake does not stream.")
    request.system, request.prompt = body.get("system") or "", body.get("prompt") or ""
    for text in body.get("images") or []:
        data = decode(text)
        if data is None:  # a data: prefix fails at its colon, byte 4
            wrong = re.search(r"[^A-Za-z0-9+/\r\n]", str(text))
            at = wrong.start() if wrong else len(text)
            raise error("ollama", 400, f"illegal base64 data at input byte {at}")
        request.images.append(read_image(data))
    if body.get("think"):
        raise error("ollama", 400, f'"{request.model}" does not support thinking')
    form = body.get("format")
    if form not in (None, "", "json") and not isinstance(form, dict):
        message = f'invalid format: {json.dumps(form)}; expected "json" or a valid JSON Schema object'
        raise error("ollama", 500, message)
    request.schema = form if isinstance(form, dict) else None
    if any(seen.real_type not in ("image/png", "image/jpeg", "image/webp") for seen in request.images):
        raise error("ollama", 500, _UNREADABLE)
    if request.images and not ai.sees(request) and not ai.blind_text_models:
        raise text_only("ollama", request.model)


def _capabilities(ai: FakeAI, name: str) -> list[str]:
    return ["completion", "vision"] if ai.models[name] else ["completion"]


def _model(ai: FakeAI, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "model": name,
        "size": 6_000_000_000,
        "details": {"family": name.split(":")[0], "parameter_size": "8B"},
        "capabilities": _capabilities(ai, "ollama/" + name),
    }


def answer(request: Request, reply: Reply) -> Any:
    is_load = not (request.body or {}).get("prompt")  # that only loads the model
    reason = "load" if is_load else "length" if reply.finish == "length" else "stop"
    return {
        "model": request.model,
        "response": "" if is_load else reply.text,
        **({"thinking": reply.thinking} if reply.thinking else {}),
        "done": True,
        "done_reason": reason,
        "prompt_eval_count": reply.tokens_in,
        "eval_count": reply.tokens_out,
    }

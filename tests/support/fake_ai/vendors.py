"""The four vendors: how a request is read, their answers and their failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Optional

from .brains import Reply, Request
from .loopback import Refusal

Sent = list[tuple[str, Optional[str]]]
"""Images in base64, each with its declared type."""


class Vendor(NamedTuple):
    path: str  # a pattern; its group is the model's name; without a group, the name is in the body
    read: Callable[[Request, dict[str, Any]], Sent]  # stores prompt, system and schema; returns the images
    answer: Callable[[Request, Reply], Any]
    kinds: dict[str, tuple[int, str]]  # the failures that a test may order: status and text
    error_body: Callable[[int, str, str], Any]  # the JSON body for a status, a message and a kind
    headers: dict[str, str]  # required; {key} stands for the key

    def refusal(self, message: str, status: int = 400, kind: str = "") -> Refusal:
        return Refusal(status, self.error_body(status, message, kind), message)

    def of(self, kind: str, model: str = "", text: str = "", status: Optional[int] = None) -> Refusal:
        """Order a failure of this kind, with another text or status."""
        usual_status, usual_text = self.kinds[kind]
        return self.refusal(text or usual_text.format(model=model), status or usual_status, kind)


_SERVER_ERROR = (500, "An internal error occurred.")


def _read_ollama(request: Request, body: dict[str, Any]) -> Sent:
    request.prompt, request.system = body.get("prompt", ""), body.get("system", "")
    request.schema = body.get("format")
    return [(text, None) for text in body.get("images", [])]


def _answer_ollama(request: Request, reply: Reply) -> Any:
    return {
        "model": request.model,
        "response": reply.text,
        **({"thinking": reply.thinking} if reply.thinking else {}),
        "done": True,
        "done_reason": "length" if reply.finish == "length" else "stop",
        "prompt_eval_count": reply.tokens_in,
        "eval_count": reply.tokens_out,
    }


OLLAMA = Vendor(
    "/api/generate|/api/show",
    _read_ollama,
    _answer_ollama,
    {
        "wrong_key": (401, "unauthorized"),  # of a proxy before it
        "missing_model": (404, "model '{model}' not found"),
        "text_only_model": (500, "this model is missing data required for image input"),
        "rate_limited": (429, "too many requests"),
        "server_error": _SERVER_ERROR,
        "overloaded": (503, "server busy, please try again.  maximum pending requests exceeded"),
    },
    lambda status, message, kind: {"error": message},
    {},
)


def _read_messages(request: Request, messages: list[Any]) -> list[dict[str, Any]]:
    """Set the prompt; return the parts that are not text."""
    contents = [message["content"] for message in messages if message["role"] == "user"]
    parts = [part for content in contents for part in content]
    request.prompt = "".join(part.get("text", "") for part in parts)
    return [part for part in parts if part["type"] != "text"]


def _read_openai(request: Request, body: dict[str, Any]) -> Sent:
    messages = body["messages"]
    request.system = "".join(each["content"] for each in messages if each["role"] == "system")
    request.schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    urls = [part["image_url"]["url"] for part in _read_messages(request, messages)]
    return [(url.partition(",")[2], url[len("data:") :].partition(";")[0]) for url in urls]


def _openai_error(status: int, message: str, kind: str) -> Any:
    error_type = "requests" if status == 429 else "invalid_request_error" if status < 500 else "server_error"
    code = {"wrong_key": "invalid_api_key", "missing_model": "model_not_found"}.get(kind)
    return {"error": {"message": message, "type": error_type, "param": None, "code": code}}


def _answer_openai(request: Request, reply: Reply) -> Any:
    is_refused = reply.finish == "refused"
    finish = {"length": "length", "blocked": "content_filter"}.get(reply.finish, "stop")
    # some compatible servers answer in parts
    parts = [{"text": text} for text in reply.parts()] if reply.pieces > 1 else reply.text
    content, refusal = (None, reply.text) if is_refused else (parts, None)
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return {
        "model": request.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": reply.tokens_in, "completion_tokens": reply.tokens_out},
    }


OPENAI = Vendor(
    "/v1/chat/completions",
    _read_openai,
    _answer_openai,
    {
        "wrong_key": (401, "Incorrect API key provided: fake****6789."),
        "missing_model": (404, "The model `{model}` does not exist or you do not have access to it."),
        "text_only_model": (400, "Invalid content type. image_url is only supported by certain models."),
        "rate_limited": (429, "Rate limit reached for requests. Please try again."),
        "server_error": _SERVER_ERROR,
        "overloaded": (503, "The engine is currently overloaded, please try again later"),
    },
    _openai_error,
    {"authorization": "Bearer {key}"},
)


def _read_gemini(request: Request, body: dict[str, Any]) -> Sent:
    parts = [part for content in body["contents"] for part in content["parts"]]
    request.prompt = "".join(part.get("text", "") for part in parts)
    request.system = "".join(part["text"] for part in body.get("systemInstruction", {}).get("parts", []))
    request.schema = body.get("generationConfig", {}).get("responseJsonSchema")
    blobs = [part["inlineData"] for part in parts if "inlineData" in part]
    return [(blob["data"], blob["mimeType"]) for blob in blobs]


def _gemini_error(status: int, message: str, kind: str) -> Any:
    names = {
        400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
        429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE",
    }  # fmt: skip
    error: dict[str, Any] = {"code": status, "message": message, "status": names.get(status, "UNKNOWN")}
    if kind == "wrong_key":  # which is 400, not 401
        info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
        error["details"] = [info]
    return {"error": error}


def _answer_gemini(request: Request, reply: Reply) -> Any:
    usage = {"promptTokenCount": reply.tokens_in, "candidatesTokenCount": reply.tokens_out}
    if reply.finish == "blocked":
        return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": usage}
    finish = {"length": "MAX_TOKENS", "refused": "SAFETY"}.get(reply.finish, "STOP")
    parts: list[dict[str, Any]] = [{"text": reply.thinking, "thought": True}] if reply.thinking else []
    if finish != "SAFETY":
        parts += [{"text": text} for text in reply.parts()]
    content = {"role": "model", **({"parts": parts} if parts else {})}  # an empty answer has no "parts"
    return {"candidates": [{"content": content, "finishReason": finish}], "usageMetadata": usage}


GEMINI = Vendor(
    "/v1beta/models/(.+):generateContent",
    _read_gemini,
    _answer_gemini,
    {
        "wrong_key": (400, "API key not valid. Please pass a valid API key."),
        "missing_model": (404, "models/{model} is not found for API version v1beta, or is not supported."),
        "text_only_model": (400, "Image input modality is not enabled for models/{model}"),
        "rate_limited": (429, "You exceeded your current quota, please check your plan and billing details."),
        "server_error": _SERVER_ERROR,
        "overloaded": (503, "The model is overloaded. Please try again later."),
    },
    _gemini_error,
    {"x-goog-api-key": "{key}"},
)


def _read_anthropic(request: Request, body: dict[str, Any]) -> Sent:
    request.system = body.get("system", "")
    request.schema = body.get("output_config", {}).get("format", {}).get("schema")
    sources = [part["source"] for part in _read_messages(request, body["messages"])]
    return [(source["data"], source["media_type"]) for source in sources]


def _anthropic_error(status: int, message: str, kind: str) -> Any:
    names = {
        401: "authentication_error", 404: "not_found_error", 413: "request_too_large",
        429: "rate_limit_error", 529: "overloaded_error",
    }  # fmt: skip
    name = names.get(status, "invalid_request_error" if status < 500 else "api_error")
    return {"type": "error", "error": {"type": name, "message": message}, "request_id": "req_011CFake"}


def _answer_anthropic(request: Request, reply: Reply) -> Any:
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


ANTHROPIC = Vendor(
    "/v1/messages",
    _read_anthropic,
    _answer_anthropic,
    {
        "wrong_key": (401, "invalid x-api-key"),
        "missing_model": (404, "model: {model}"),
        "text_only_model": (400, "This model does not support image input."),
        "rate_limited": (429, "This request would exceed your organization's rate limit."),
        "server_error": _SERVER_ERROR,
        "overloaded": (529, "Overloaded"),
    },
    _anthropic_error,
    {"x-api-key": "{key}", "anthropic-version": "2023-06-01"},
)

VENDORS = {"ollama": OLLAMA, "openai": OPENAI, "gemini": GEMINI, "anthropic": ANTHROPIC}

"""Model vendors: their requests, replies and errors."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple, Optional
from urllib.parse import quote

from ..core.errors import ErrorCode, PeekabooError
from ..core.models import ImageData
from ..core.settings import VARIABLES, settings
from ..core.text import seconds_text
from ..system.web import WebError, ask_json, error_text, is_local_address, is_loopback


class Question(NamedTuple):
    """A question for a model. schema: of the JSON answer; None asks for free text.

    OpenAI and Anthropic accept it only with closed objects, all properties required, and without limits.
    """

    model: str
    prompt: str
    images: Sequence[ImageData] = ()
    system: str = ""
    schema: Optional[dict[str, Any]] = None


class Answer(NamedTuple):
    """A model's answer. tokens_in and tokens_out are None if the provider does not report them."""

    text: str
    tokens_in: Optional[int] = None
    tokens_out: Optional[int] = None
    problem: Any = ""  # why the answer is refused or truncated; ask_model raises an error for it
    model_used: str = ""  # PROVIDER/MODEL
    seconds: float = 0.0


class Vendor(NamedTuple):
    """One vendor's API. Its key and address are the fields NAME_key and NAME_base_url of Settings."""

    title: str
    default_model: str
    ask_path: str  # the URL path for questions; {model} is replaced by the model's name
    key_headers: Mapping[str, str]  # sent if there is a key, which replaces {key}; empty if none is needed
    body: Callable[[Question], dict[str, Any]]  # builds the request; None values are left out
    read: Callable[[Any], Answer]  # may raise KeyError, IndexError, TypeError or AttributeError

    @property
    def name(self) -> str:
        return self.title.lower()

    @property
    def is_local(self) -> bool:
        """Return True for Ollama: the user starts it and pulls its models."""
        return not self.key_headers

    @property
    def key_variable(self) -> str:
        return "" if self.is_local else VARIABLES[f"{self.name}_key"].name

    @property
    def base_variable(self) -> str:
        return VARIABLES[f"{self.name}_base_url"].name

    @property
    def base_url(self) -> str:
        return str(getattr(settings(), f"{self.name}_base_url")).rstrip("/")

    @property
    def key(self) -> str:
        return str(getattr(settings(), f"{self.name}_key", ""))

    @property
    def lacks_key(self) -> bool:
        # a compatible server on this machine or in this network may need no key
        is_own_server = self.title == "OpenAI" and is_local_address(self.base_url)
        return not (self.is_local or self.key or is_own_server)

    def ask(self, question: Question, deadline: float) -> Any:
        """Send a question and return the JSON reply. deadline: monotonic. Raises WebError."""
        if self.is_local and question.images:
            check_ollama(question.model, max(0.001, deadline - time.monotonic()))
        url = self.base_url + self.ask_path.replace("{model}", quote(question.model, safe=""))
        headers = {name: value.replace("{key}", self.key) for name, value in self.key_headers.items()}
        prompt = prompt_with_schema(self.name, question.prompt, question.schema)
        fields = self.body(question._replace(prompt=prompt))
        body = {name: value for name, value in fields.items() if value is not None}
        timeout_s = max(0.001, deadline - time.monotonic())
        reply = ask_json(url, headers=headers if self.key else {}, body=body, timeout_s=timeout_s)
        if isinstance(reply, dict) and reply.get("error"):  # some gateways report errors with status 200
            raise WebError("status", "an error with status 200", 200, reply)
        return reply


def _as_base64(image: ImageData) -> str:
    return base64.b64encode(image.data).decode()


def prompt_with_schema(provider: str, prompt: str, schema: Optional[dict[str, Any]]) -> str:
    """Return the prompt to send, with the schema unless the vendor enforces it."""
    enforces = provider in ("gemini", "anthropic") or (provider == "openai" and not _is_compatible_server())
    if schema is None or enforces:
        return prompt
    request = "Answer with one JSON object that fits this JSON schema, and with nothing else:"
    return f"{prompt}\n\n{request}\n{json.dumps(schema)}"


def _ollama_body(question: Question) -> dict[str, Any]:
    return {
        "model": question.model,
        "prompt": question.prompt,
        "system": question.system or None,
        "images": [_as_base64(image) for image in question.images] or None,
        "format": question.schema,
        "stream": False,
        "think": False,
        # Ollama's default of 4096 tokens truncates the prompt; an image needs up to 1300
        "options": {
            "temperature": 0,
            "num_ctx": 8192 + 2048 * max(0, len(question.images) - 1),
            "num_predict": settings().ai_max_tokens,
        },
    }


def _read_ollama(reply: Any) -> Answer:
    tokens = reply.get("prompt_eval_count"), reply.get("eval_count")
    return Answer(reply["response"], *tokens, "length" if reply.get("done_reason") == "length" else "")


def check_ollama(model: str, timeout_s: float) -> None:
    """Check that Ollama has the model, and that it accepts images (others may answer). Raises WebError."""
    url = VENDORS["ollama"].base_url + "/api/show"
    details = ask_json(url, headers={}, body={"model": model}, timeout_s=timeout_s)
    capabilities = details.get("capabilities") if isinstance(details, dict) else None  # since Ollama 0.6
    if capabilities and "vision" not in capabilities:
        raise WebError("status", "no vision", 400, {"error": "it does not support vision"})


def _is_compatible_server() -> bool:
    return bool(VENDORS["openai"].base_url != VARIABLES["openai_base_url"].default)


def _openai_body(question: Question) -> dict[str, Any]:
    # compatible servers may ignore response_format, and reject max_completion_tokens (or max_tokens)
    is_compatible = _is_compatible_server()
    content: list[dict[str, Any]] = [{"type": "text", "text": question.prompt}]
    for image in question.images:
        url = f"data:{image.info.mime_type};base64,{_as_base64(image)}"
        content.append({"type": "image_url", "image_url": {"url": url, "detail": "high"}})
    system = [{"role": "system", "content": question.system}] if question.system else []
    json_schema = {"name": "answer", "strict": True, "schema": question.schema}
    response_format = {"type": "json_schema", "json_schema": json_schema}
    return {
        "model": question.model,
        "messages": [*system, {"role": "user", "content": content}],
        "max_completion_tokens": None if is_compatible else settings().ai_max_tokens,
        "response_format": response_format if question.schema else None,
    }


def _read_openai(reply: Any) -> Answer:
    choice = reply["choices"][0]
    content = choice["message"].get("content") or ""
    if isinstance(content, list):  # some compatible servers send a list of parts
        content = "".join(part.get("text") or "" for part in content)
    usage = reply.get("usage") or {}
    finish = choice.get("finish_reason")
    problem = finish if finish in ("length", "content_filter") else choice["message"].get("refusal")
    return Answer(content, usage.get("prompt_tokens"), usage.get("completion_tokens"), problem)


def _gemini_body(question: Question) -> dict[str, Any]:
    # text before images makes clicks more accurate, according to Google's and Anthropic's documents
    parts: list[dict[str, Any]] = [{"text": question.prompt}]
    for image in question.images:
        parts.append({"inlineData": {"mimeType": image.info.mime_type, "data": _as_base64(image)}})
    config: dict[str, Any] = {"maxOutputTokens": settings().ai_max_tokens}
    if question.images:
        config["mediaResolution"] = "MEDIA_RESOLUTION_HIGH"
    if question.schema is not None:
        config.update(responseMimeType="application/json", responseJsonSchema=question.schema)
    return {
        "contents": [{"role": "user", "parts": parts}],
        "systemInstruction": {"parts": [{"text": question.system}]} if question.system else None,
        "generationConfig": config,
    }


def _read_gemini(reply: Any) -> Answer:
    if blocked := ((reply.get("promptFeedback") or {}).get("blockReason")):
        return Answer("", problem=blocked)
    candidate = reply["candidates"][0]
    parts = (candidate.get("content") or {}).get("parts") or []
    text = "".join(part.get("text") or "" for part in parts if not part.get("thought"))
    finish = candidate.get("finishReason")
    usage = reply.get("usageMetadata") or {}
    tokens = usage.get("promptTokenCount"), usage.get("candidatesTokenCount")
    return Answer(text, *tokens, "" if finish == "STOP" else finish)


def _anthropic_body(question: Question) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": question.prompt}]
    for image in question.images:
        source = {"type": "base64", "media_type": image.info.mime_type, "data": _as_base64(image)}
        content.append({"type": "image", "source": source})
    output_config = {"format": {"type": "json_schema", "schema": question.schema}}
    return {
        "model": question.model,
        "max_tokens": settings().ai_max_tokens,
        "system": question.system or None,
        "messages": [{"role": "user", "content": content}],
        "output_config": output_config if question.schema else None,
    }


def _read_anthropic(reply: Any) -> Answer:
    text = "".join(block.get("text") or "" for block in reply["content"] if block.get("type") == "text")
    usage = reply.get("usage") or {}
    tokens = usage.get("input_tokens"), usage.get("output_tokens")
    stop = reply.get("stop_reason")
    problems = ("refusal", "max_tokens", "model_context_window_exceeded")
    return Answer(text, *tokens, stop if stop in problems else "")


_ALL = (
    Vendor("Ollama", "qwen3-vl:8b", "/api/generate", {}, _ollama_body, _read_ollama),
    Vendor("OpenAI", "gpt-5.4-mini", "/chat/completions", {"Authorization": "Bearer {key}"},
        _openai_body, _read_openai),
    Vendor("Gemini", "gemini-3.6-flash", "/v1beta/models/{model}:generateContent",
        {"x-goog-api-key": "{key}"},  # not ?key=, which ends up in logs
        _gemini_body, _read_gemini),
    Vendor("Anthropic", "claude-sonnet-5", "/v1/messages",
        {"x-api-key": "{key}", "anthropic-version": "2023-06-01"}, _anthropic_body, _read_anthropic),
)  # fmt: skip
VENDORS = {vendor.name: vendor for vendor in _ALL}


_NO_ANSWER, _OTHER = "did not answer", "choose another provider"
# Pattern for "KIND STATUS BODY" of a WebError (the first match counts), message, hint, may a retry succeed?
_FAILURES = (
    ("^unreachable", _NO_ANSWER, "{start}, or check {base}", True),
    ("^timeout", _NO_ANSWER, "try again, choose a faster model, or raise PEEKABOO_AI_TIMEOUT", False),
    ("^closed", _NO_ANSWER, "try again", True),
    ("^untrusted", _NO_ANSWER,
     "check {base} and SSL_CERT_FILE; for python.org's Python, run Install Certificates.command", False),
    ("^(?!status)", "gave no usable answer", "check {settings}, and log in to the network if it asks", False),
    ("image_url is only supported|(not|n't) support (image|vision)|image input"
     "|missing data required for image|only supports text|not a multimodal",
     "reports that its model {model} does not accept images",
     "choose a vision model, such as {default}", False),
    # Gemini reports a wrong key with status 400
    ("^status 40[13]|API_KEY_INVALID", "rejected the key", "check {key}", False),
    ("^status 404", "has no model {model}", "{get_model}, or check {base}", False),
    ("^status 402|insufficient_quota|billing_error|credit balance", "refused: billing required",
     "check your plan and billing with the provider", False),
    ("^status 429", "refused: too many requests", f"wait {{wait}}, or {_OTHER}", True),
    ("^status (408|5)", "failed with a server error ({status})", f"try again later, or {_OTHER}", True),
    ("", "rejected the request ({status})", f"rephrase the question, or {_OTHER}", False),
)  # fmt: skip


def explain(vendor: Vendor, model: str, error: WebError) -> tuple[PeekabooError, Optional[float]]:
    """Return the error to raise, and the seconds until a retry: 0 if unknown, None if it cannot succeed."""
    failure = f"{error.kind} {error.status} {error.body}"
    # search Python's text of the parsed body, because Gemini nests `"retryDelay": "7s"` in a list of details
    delay = re.search(r"'retryDelay': '(\d+(?:\.\d+)?)s'", failure)
    delay_s = float(delay[1]) if delay else max(0.0, error.retry_after_s or 0.0)  # NaN becomes 0
    names = {
        "model": model,
        "default": vendor.default_model,
        "status": error.status,
        "base": vendor.base_variable,
        "key": vendor.key_variable or vendor.base_variable,
        "settings": " and ".join(filter(None, (vendor.base_variable, vendor.key_variable))),
        "start": "start it (ollama serve)" if vendor.is_local else "check the network",
        "get_model": f"run: ollama pull {model}" if vendor.is_local else "choose another model",
        "wait": seconds_text(delay_s) if delay_s else "a while",
    }
    rows = (row for row in _FAILURES if re.search(row[0], failure, re.IGNORECASE))
    _, template, hint, may_succeed = next(rows)
    if error.kind == "unreachable" and is_loopback(vendor.base_url):
        may_succeed = False  # a server on this machine does not start by itself
    text = error_text(error.body) if error.kind == "status" else error.message
    message = template.format(**names) + (f": {text}" if text else "")
    return provider_error(vendor, message, hint.format(**names)), delay_s if may_succeed else None


def provider_error(vendor: Vendor, problem: str, hint: str) -> PeekabooError:
    return PeekabooError(ErrorCode.AI_PROVIDER_ERROR, f"{vendor.title} {problem}", hint=hint)

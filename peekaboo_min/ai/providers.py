"""The vendors of vision models: the request to each, and its answer."""

from __future__ import annotations

import base64
import json
from functools import lru_cache
from typing import Any, Callable, NamedTuple, Optional
from urllib.parse import quote

from ..core.models import ImageData
from ..core.settings import VARIABLES, settings
from ..system.web import ask_json

_SCHEMA_TEXT = "Answer with one JSON object that fits this JSON schema, and with nothing else:"


class Question(NamedTuple):
    """A question for a model. The schema is that of the one JSON object wanted; None for free text.

    Its objects are closed, every property is required, and nothing has limits: OpenAI and Anthropic refuse
    to enforce any other.
    """

    model: str
    prompt: str
    images: tuple[ImageData, ...] = ()
    system: str = ""
    schema: Optional[dict[str, Any]] = None

    def __repr__(self) -> str:
        return f"Question({self.model!r})"  # never a prompt in a log


class Reply(NamedTuple):
    """A vendor's answer. `cut_short`: it reached the limit of tokens. `refusal`: why there is no answer."""

    text: str
    tokens_in: Optional[int] = None
    tokens_out: Optional[int] = None
    cut_short: bool = False
    refusal: str = ""


class Vendor(NamedTuple):
    """One vendor. key_field and base_field name its key (empty: none) and its address in Settings."""

    title: str
    default_model: str
    key_field: str
    base_field: str
    models_path: str
    ask_path: str
    """Where a question is posted; {model} stands for the model's name."""
    headers_for: Callable[[str], dict[str, str]]
    """The headers that carry a key."""
    body: Callable[[Question], dict[str, Any]]
    read: Callable[[Any], Reply]
    """Raises KeyError, IndexError, TypeError or AttributeError for an answer of another form."""
    may_lack_key: Callable[[], bool] = lambda: False
    is_local: bool = False
    """It runs models on a machine of the user's (Ollama), which have to be started and pulled."""

    @property
    def key_variable(self) -> str:
        return VARIABLES[self.key_field].name if self.key_field else ""

    @property
    def base_variable(self) -> str:
        return VARIABLES[self.base_field].name

    @property
    def base_url(self) -> str:
        return str(getattr(settings(), self.base_field)).rstrip("/")

    @property
    def key(self) -> str:
        return str(getattr(settings(), self.key_field)) if self.key_field else ""

    @property
    def lacks_key(self) -> bool:
        return bool(self.key_field) and not self.key and not self.may_lack_key()

    @property
    def headers(self) -> dict[str, str]:
        return self.headers_for(self.key) if self.key else {}

    def post(self, body: dict[str, Any], model: str, timeout_s: float) -> Any:
        """The JSON answer to a question's body. Raises WebError."""
        url = self.base_url + self.ask_path.replace("{model}", quote(model, safe=""))
        return ask_json(url, headers=self.headers, body=body, timeout_s=timeout_s)

    def list_models(self, timeout_s: float) -> list[str]:
        """The names of its models. Raises WebError."""
        found = ask_json(self.base_url + self.models_path, headers=self.headers, timeout_s=timeout_s)
        entries = found.get("models") or found.get("data") if isinstance(found, dict) else None
        models = [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
        names = [str(model.get("name") or model.get("id") or "") for model in models]
        return [name.removeprefix("models/") for name in names]  # Gemini's


def as_base64(image: ImageData) -> str:
    return base64.b64encode(image.data).decode()


def _with_schema_text(question: Question) -> str:
    if question.schema is None:
        return question.prompt
    return f"{question.prompt}\n\n{_SCHEMA_TEXT}\n{json.dumps(question.schema)}"


def _ollama_body(question: Question) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": question.model,
        "prompt": _with_schema_text(question),
        "stream": False,
        "think": False,
        # its default of 4096 tokens truncates the prompt; an image takes up to 1300
        "options": {
            "temperature": 0,
            "num_ctx": 8192 + 2048 * max(0, len(question.images) - 1),
            "num_predict": settings().ai_max_tokens,
        },
    }
    if question.system:
        body["system"] = question.system
    if question.images:
        body["images"] = [as_base64(image) for image in question.images]
    if question.schema is not None:
        body["format"] = question.schema
    return body


def _read_ollama(answer: Any) -> Reply:
    cut_short = answer.get("done_reason") == "length"
    return Reply(answer["response"], answer.get("prompt_eval_count"), answer.get("eval_count"), cut_short)


@lru_cache(maxsize=16)
def ollama_takes_images(base_url: str, model: str, timeout_s: float) -> bool:
    """Whether an Ollama model takes images: some that do not still answer, blindly. Raises WebError."""
    found = ask_json(base_url + "/api/show", headers={}, body={"model": model}, timeout_s=timeout_s)
    capabilities = found.get("capabilities") if isinstance(found, dict) else None
    return not isinstance(capabilities, list) or "vision" in capabilities  # Ollama before 0.6 lists none


def _is_compatible_server() -> bool:
    """Whether another server is set for OpenAI's API; such a server may need no key."""
    return bool(settings().openai_base_url.rstrip("/") != VARIABLES["openai_base_url"].default)


def _openai_body(question: Question) -> dict[str, Any]:
    # other servers may not support response_format, and only one of max_tokens and max_completion_tokens
    is_other = _is_compatible_server()
    content: list[dict[str, Any]] = [
        {"type": "text", "text": _with_schema_text(question) if is_other else question.prompt}
    ]
    for image in question.images:
        url = f"data:{image.info.mime_type};base64,{as_base64(image)}"
        content.append({"type": "image_url", "image_url": {"url": url, "detail": "high"}})
    messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
    if question.system:
        messages.insert(0, {"role": "system", "content": question.system})
    body: dict[str, Any] = {"model": question.model, "messages": messages}
    if not is_other:
        body["max_completion_tokens"] = settings().ai_max_tokens
    if question.schema is not None:
        wanted = {"name": "answer", "strict": True, "schema": question.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": wanted}
    return body


def _read_openai(answer: Any) -> Reply:
    choice = answer["choices"][0]
    content = choice["message"].get("content") or ""
    if isinstance(content, list):  # some compatible servers answer in parts
        content = "".join(part.get("text") or "" for part in content)
    usage = answer.get("usage") or {}
    refusal = choice["message"].get("refusal") or ""
    if choice.get("finish_reason") == "content_filter":
        refusal = "content_filter"
    cut_short = choice.get("finish_reason") == "length"
    tokens = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return Reply(content, *tokens, cut_short, refusal)


def _gemini_body(question: Question) -> dict[str, Any]:
    # text before the images: clicks are more accurate, as Google and Anthropic write
    parts: list[dict[str, Any]] = [{"text": question.prompt}]
    for image in question.images:
        parts.append({"inlineData": {"mimeType": image.info.mime_type, "data": as_base64(image)}})
    config: dict[str, Any] = {"maxOutputTokens": settings().ai_max_tokens}
    if question.images:
        config["mediaResolution"] = "MEDIA_RESOLUTION_HIGH"
    if question.schema is not None:
        config.update(responseMimeType="application/json", responseJsonSchema=question.schema)
    body: dict[str, Any] = {"contents": [{"role": "user", "parts": parts}], "generationConfig": config}
    if question.system:
        body["systemInstruction"] = {"parts": [{"text": question.system}]}
    return body


def _read_gemini(answer: Any) -> Reply:
    blocked = (answer.get("promptFeedback") or {}).get("blockReason")
    if blocked:
        return Reply("", refusal=blocked)
    candidate = answer["candidates"][0]
    parts = (candidate.get("content") or {}).get("parts") or []
    text = "".join(part.get("text") or "" for part in parts if not part.get("thought"))
    finish = candidate.get("finishReason") or "STOP"
    usage = answer.get("usageMetadata") or {}
    refusal = "" if finish in ("STOP", "MAX_TOKENS") else finish
    return Reply(
        text,
        usage.get("promptTokenCount"),
        usage.get("candidatesTokenCount"),
        finish == "MAX_TOKENS",
        refusal,
    )


def _anthropic_body(question: Question) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": question.prompt}]
    for image in question.images:
        source = {"type": "base64", "media_type": image.info.mime_type, "data": as_base64(image)}
        content.append({"type": "image", "source": source})
    body: dict[str, Any] = {
        "model": question.model,
        "max_tokens": settings().ai_max_tokens,
        "messages": [{"role": "user", "content": content}],
    }
    if question.system:
        body["system"] = question.system
    if question.schema is not None:
        body["output_config"] = {"format": {"type": "json_schema", "schema": question.schema}}
    return body


def _read_anthropic(answer: Any) -> Reply:
    text = "".join(block.get("text") or "" for block in answer["content"] if block.get("type") == "text")
    usage = answer.get("usage") or {}
    stop = answer.get("stop_reason")
    cut_short = stop in ("max_tokens", "model_context_window_exceeded")
    return Reply(
        text,
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        cut_short,
        stop if stop == "refusal" else "",
    )


VENDORS: dict[str, Vendor] = {
    "ollama": Vendor(
        "Ollama", "qwen3-vl:8b", "", "ollama_base_url", "/api/tags", "/api/generate",
        lambda _: {}, _ollama_body, _read_ollama, is_local=True,
    ),
    "openai": Vendor(
        "OpenAI", "gpt-5.4-mini", "openai_key", "openai_base_url", "/models", "/chat/completions",
        lambda key: {"Authorization": f"Bearer {key}"}, _openai_body, _read_openai,
        may_lack_key=_is_compatible_server,
    ),
    "gemini": Vendor(
        "Gemini", "gemini-3.6-flash", "gemini_key", "gemini_base_url",
        "/v1beta/models?pageSize=1000", "/v1beta/models/{model}:generateContent",
        lambda key: {"x-goog-api-key": key},  # not as ?key=, which ends up in logs
        _gemini_body, _read_gemini,
    ),
    "anthropic": Vendor(
        "Anthropic", "claude-sonnet-5", "anthropic_key", "anthropic_base_url",
        "/v1/models?limit=1000", "/v1/messages",
        lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"}, _anthropic_body, _read_anthropic,
    ),
}  # fmt: skip

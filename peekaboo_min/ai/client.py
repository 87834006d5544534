"""Ask a model about pictures, or the machine's own text recognition."""

from __future__ import annotations

import hashlib
import random
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Optional, Union

from ..core.cancellation import in_parallel, pause, report_progress
from ..core.errors import ErrorCode, PeekabooError
from ..core.log import log_debug, log_error, log_info
from ..core.models import ImageInfo, Picture, Result
from ..core.settings import settings
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..system.files import asked_path
from ..system.web import WebError, ask_json
from .errors import (
    asked_delay_s,
    blind_model_error,
    check_reply,
    is_worth_retrying,
    provider_error,
    strange_answer_error,
    vendor_text,
)
from .images import fit_pictures, load_picture, private_copy
from .providers import VENDORS, Question, Reply, Vendor, WebCall, ollama_model_sees

_SUPPORTED = (".png", ".jpg", ".jpeg", ".webp")
_DEFAULT_QUESTION = "Please describe what you see in this image."
_TRIES_AT_MOST = 4
_FIRST_PAUSE_S = 0.5
_SHOW_S = 3.0
_LONGEST_OCR_LINE = 1000
_THOUGHTS = re.compile(r"\s*<think>.*?</think>\s*", re.DOTALL)


@dataclass(frozen=True)
class Answer:
    """What a model said. Tokens are None where the provider does not count them."""

    text: str
    provider: str
    model: str
    seconds: float
    tokens_in: Optional[int] = None
    tokens_out: Optional[int] = None
    sent: tuple[ImageInfo, ...] = ()
    """The pictures as the model saw them: its pixels are pixels of these."""

    @property
    def model_used(self) -> str:
        return f"{self.provider}/{self.model}"


def ask_model(
    desktop: Desktop,
    pictures: Sequence[Union[Path, Picture]],
    prompt: str,
    *,
    choice: ModelChoice,
    system: str = "",
    schema: Optional[dict[str, Any]] = None,
    timeout_s: Optional[float] = None,
) -> Answer:
    """Ask a model a question about some pictures, or about none.

    choice: from choose_provider or choose_model. schema: of the one JSON object that is wanted; its vendor enforces it,
    whoever reads it checks it. timeout_s: for all of it, retries included; None: PEEKABOO_AI_TIMEOUT.
    Raises AI_NOT_CONFIGURED (no key), AI_PROVIDER_ERROR, CANCELLED, and what reading and scaling a picture raises.
    """
    started = time.monotonic()
    deadline = started + (settings().ai_timeout_s if timeout_s is None else timeout_s)
    choice = choose_model(choice.provider, choice.model)
    loaded = [load_picture(one) if isinstance(one, Path) else one for one in pictures]
    report_progress(f"asking {choice.name}")
    if choice.provider == OCR:
        reply, sent = _read_all_text(desktop, loaded, schema is not None), tuple(loaded)
    else:
        vendor = VENDORS[choice.provider]
        _check_key(vendor)
        sent = fit_pictures(desktop, choice.provider, choice.model, loaded)
        reply = _ask_vendor(vendor, Question(choice.model, prompt, sent, system, schema), deadline)
    seconds = time.monotonic() - started
    log_info(
        f"{choice.name} answered in {seconds:.2f} s; {_sizes(sent)}; tokens {reply.tokens_in} in, {reply.tokens_out} out"
    )
    infos = tuple(one.info for one in sent)
    return Answer(
        reply.text, choice.provider, choice.model, seconds, reply.tokens_in, reply.tokens_out, infos
    )


def _sizes(pictures: Sequence[Picture]) -> str:
    """What the log may know of pictures: no pixels."""
    described = []
    for one in pictures:
        digest = hashlib.sha256(one.data).hexdigest()[:12]
        described.append(
            f"{one.info.width}x{one.info.height} {one.info.kind}, {len(one.data)} bytes, sha256 {digest}"
        )
    return "; ".join(described) or "no picture"


def _check_key(vendor: Vendor) -> None:
    if vendor.lacks_key:
        message = f"{vendor.title} needs a key, and {vendor.key_variable} is not set"
        raise PeekabooError(ErrorCode.AI_NOT_CONFIGURED, message, hint="set it, or choose another provider")


def _read_all_text(desktop: Desktop, pictures: Sequence[Picture], wants_json: bool) -> Reply:
    """The lines of text in the pictures, by what this machine has for that."""
    if wants_json or not pictures:
        message = "the provider ocr reads the text in pictures, and nothing else"
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, message, hint="choose a model: " + ", ".join(VENDORS))
    lines = []
    for one in pictures:
        with private_copy(one) as path:
            lines += [clean_text(found.text, _LONGEST_OCR_LINE) for found in desktop.read_text(path)]
    return Reply("\n".join(line for line in lines if line) or "No text was found in this image.")


def _ask_vendor(vendor: Vendor, question: Question, deadline: float) -> Reply:
    has_pictures = bool(question.pictures)
    call = vendor.ask(question)
    if vendor.title == "Ollama" and has_pictures:
        _check_ollama_sees(vendor, question.model)
    try:
        answer = _call_with_retries(call, has_pictures, deadline)
        if isinstance(answer, dict) and answer.get("error"):  # some gateways say it with status 200
            raise WebError("status", "an error with status 200", 200, answer)
    except WebError as e:
        raise provider_error(vendor, question.model, e, has_pictures) from None
    try:
        reply = vendor.read(answer)
        text = _THOUGHTS.sub("", reply.text) if reply.text.lstrip().startswith("<think>") else reply.text
    except (KeyError, IndexError, TypeError, AttributeError):
        raise strange_answer_error(vendor) from None
    check_reply(vendor, question.model, reply)
    return Reply(text, reply.tokens_in, reply.tokens_out)


def _check_ollama_sees(vendor: Vendor, model: str) -> None:
    try:
        sees = _ollama_sees(vendor.base_url, model)
    except WebError:
        return  # the question itself will tell what is wrong
    if not sees:
        raise blind_model_error(vendor, model)


@lru_cache(maxsize=16)
def _ollama_sees(_base_url: str, model: str) -> bool:
    return ollama_model_sees(model, _SHOW_S)


def _call_with_retries(call: WebCall, has_pictures: bool, deadline: float) -> Any:
    """Ask; what may pass is asked again, later each time, never past the deadline. Raises WebError, CANCELLED."""
    for attempt in range(_TRIES_AT_MOST):
        try:
            return ask_json(
                call.url,
                headers=call.headers,
                body=call.body,
                timeout_s=max(0.001, deadline - time.monotonic()),
            )
        except WebError as e:
            asked = asked_delay_s(e)
            # with jitter, so that many callers do not come back together
            delay = _FIRST_PAUSE_S * 2**attempt * random.uniform(1.0, 1.5) if asked is None else asked
            is_last = attempt == _TRIES_AT_MOST - 1 or time.monotonic() + delay >= deadline
            if is_last or not is_worth_retrying(e, call.url, has_pictures):
                raise
            log_info(f"{e.message}; asking again in {delay:.1f} s")
            pause(delay)
    raise AssertionError("the last try returns or raises")


def analyze_file(
    desktop: Desktop,
    image_path: str,
    question: str,
    provider_type: Optional[str] = None,
    model: Optional[str] = None,
) -> Result:
    """The job of `analyze`: ask a configured model about an image file.

    Checked in the specification's order: the file's name, the configuration, the provider, the file. An empty question
    asks for a description, as the original does. Raises INVALID_ARGUMENT, FILE_IO_ERROR, AI_NOT_CONFIGURED, AI_PROVIDER_ERROR.
    """
    path = asked_path(image_path)
    if path.suffix.lower() not in _SUPPORTED:
        found = clean_text(path.suffix, 20) or "none"
        message = f"Unsupported image format: {found}. Supported formats: {', '.join(_SUPPORTED)}"
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, message)
    choice = choose_provider(provider_type, model)
    answer = ask_model(desktop, [path], question.strip() or _DEFAULT_QUESTION, choice=choice)
    data = {
        "analysis_text": answer.text,
        "model_used": answer.model_used,
        "seconds": round(answer.seconds, 2),
        "tokens_in": answer.tokens_in,
        "tokens_out": answer.tokens_out,
    }
    return Result(answer.text, data)


OCR = "ocr"
"""The provider that asks the machine itself: it reads text, without a model, a key or a network."""

_OCR_MODEL = "local"
_PROBE_S = 3.0
_NOT_CONFIGURED = (
    "AI analysis not configured on this server. Set the PEEKABOO_AI_PROVIDERS environment variable."
)
_EXAMPLE = 'for example "ollama/qwen3-vl:8b,openai/gpt-5.4-mini", or "ocr" to read text without a model'


@dataclass(frozen=True)
class ModelChoice:
    """A provider and its model. The provider may be unknown to us: that is said when it is used."""

    provider: str
    model: str

    @property
    def name(self) -> str:
        """As in PEEKABOO_AI_PROVIDERS and in `model_used`."""
        return f"{self.provider}/{self.model}"


@dataclass(frozen=True)
class ProviderStatus:
    """Whether a configured provider would answer now; `problem` is empty when it would."""

    choice: ModelChoice
    problem: str

    @property
    def is_available(self) -> bool:
        return not self.problem


def choose_model(provider: str, model: Optional[str] = None) -> ModelChoice:
    """A provider by its name, configured or not, with its default model where none is named.

    Raises INVALID_ARGUMENT for a provider that does not exist.
    """
    if provider != OCR and provider not in VENDORS:
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, _unknown_provider(provider), hint=_EXAMPLE)
    return _with_default(provider, model or "")


def _with_default(provider: str, model: str) -> ModelChoice:
    if provider == OCR:
        return ModelChoice(OCR, _OCR_MODEL)
    return ModelChoice(provider, model or (VENDORS[provider].default_model if provider in VENDORS else ""))


def _unknown_provider(provider: str) -> str:
    return f"there is no provider {provider[:40]!r}; there are {', '.join([*VENDORS, OCR])}"


def parse_providers(text: str) -> list[ModelChoice]:
    """`ollama/hf.co/someone/model:q4; openai,ocr` in order: what follows the first slash is the model."""
    entries = [entry.strip() for entry in re.split("[,;]", text)]
    pairs = [entry.partition("/") for entry in entries if entry]
    return [_with_default(provider.strip().lower(), model.strip()) for provider, _, model in pairs]


def choose_provider(
    requested_type: Optional[str] = None, requested_model: Optional[str] = None
) -> ModelChoice:
    """The configured provider that is asked for; for `auto`, or none, the first one that is operational.

    Raises AI_NOT_CONFIGURED, AI_PROVIDER_ERROR (none is operational), INVALID_ARGUMENT (no such provider).
    """
    configured = _configured()
    wanted = (requested_type or "auto").strip().lower()
    if wanted == "auto":
        return _first_operational(configured, requested_model)
    found = next((one for one in configured if one.provider == wanted), None)
    if found is None:
        message = f"Provider '{wanted[:40]}' is not enabled in server's PEEKABOO_AI_PROVIDERS configuration."
        hint = "it enables " + ", ".join(dict.fromkeys(one.provider for one in configured))
        raise PeekabooError(ErrorCode.AI_NOT_CONFIGURED, message, hint=hint)
    return choose_model(wanted, requested_model or found.model)


def _configured() -> list[ModelChoice]:
    if not settings().ai_providers:
        log_error(_NOT_CONFIGURED)
        raise PeekabooError(ErrorCode.AI_NOT_CONFIGURED, _NOT_CONFIGURED, hint=_EXAMPLE)
    configured = parse_providers(settings().ai_providers)
    if not configured:
        message = "No valid AI providers found in PEEKABOO_AI_PROVIDERS configuration."
        raise PeekabooError(ErrorCode.AI_NOT_CONFIGURED, message, hint=_EXAMPLE)
    return configured


def _first_operational(configured: list[ModelChoice], requested_model: Optional[str]) -> ModelChoice:
    problems = []
    for one in configured:
        choice = _with_default(one.provider, requested_model or one.model)
        problem = _problem_of(choice)
        if not problem:
            return choice
        log_debug(f"{choice.name} is not operational: {problem}")
        problems.append(f"{choice.provider}: {problem}")
    raise PeekabooError(
        ErrorCode.AI_PROVIDER_ERROR,
        "No configured AI providers in PEEKABOO_AI_PROVIDERS are currently operational.",
        hint="; ".join(problems),
    )


def _problem_of(choice: ModelChoice, asks_cloud: bool = False) -> str:
    """Why a provider would not answer now, or an empty text. A cloud is only asked for the status: it costs a second."""
    vendor = VENDORS.get(choice.provider)
    if choice.provider == OCR:
        return ""
    if vendor is None:
        return _unknown_provider(choice.provider)
    if vendor.lacks_key:
        return f"{vendor.key_variable} is not set"
    if vendor.key_field and not asks_cloud:
        return ""
    try:
        names = vendor.list_models(_PROBE_S)
    except WebError as e:
        if e.status == 404:
            return ""  # a compatible server that lists no models
        return vendor_text(e.body) or e.message
    return "" if _is_listed(choice.model, names) else f"it has no model {choice.model}"


def _is_listed(model: str, names: list[str]) -> bool:
    """Ollama does not mind the case, and says :latest where no tag is asked."""
    known = {name.lower() for name in names}
    return model.lower() in known or f"{model.lower()}:latest" in known


def provider_status() -> list[ProviderStatus]:
    """What each configured provider is up to, asked at the same time; none where nothing is configured."""
    configured = parse_providers(settings().ai_providers)
    return in_parallel(
        lambda choice: ProviderStatus(choice, _problem_of(choice, asks_cloud=True)), configured
    )

"""Ask a model about images, or the machine's own text recognition."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Optional, Union

from ..core.cancellation import in_parallel, pause, report_progress, within_budget
from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.log import log_error, log_info
from ..core.models import ImageData, Result
from ..core.settings import settings, without_secrets
from ..core.text import clean_text, shown_text
from ..desktop.base import Desktop
from ..system.files import asked_path
from ..system.images import image_file
from ..system.web import WebError
from .images import fit_for_model, load_image
from .providers import VENDORS, Answer, Question, Vendor, check_ollama, explain, provider_error

OCR = "ocr"  # the provider that asks the machine itself: it reads text, without a model, a key or a network

_DEFAULT_MODELS = {**{name: vendor.default_model for name, vendor in VENDORS.items()}, OCR: "local"}
_LONGEST_OCR_LINE = 1000
_SUPPORTED = (".png", ".jpg", ".jpeg", ".webp")
_DEFAULT_QUESTION = "Please describe what you see in this image."
_MAX_TRIES = 4
_FIRST_PAUSE_S = 0.5
_PROBE_S = 3.0
_THOUGHTS = re.compile(r"\A(?:\s*<think>.*?</think>)+\s*", re.DOTALL)
_NOT_CONFIGURED = (
    "AI analysis not configured on this server. Set the PEEKABOO_AI_PROVIDERS environment variable."
)
_EXAMPLE = 'for example "ollama/qwen3-vl:8b,openai/gpt-5.4-mini", or "ocr" to read text without a model'


class ModelChoice(NamedTuple):
    """A provider and its model. An unknown provider is reported only when it is used."""

    provider: str
    model: str

    @property
    def name(self) -> str:
        """As in PEEKABOO_AI_PROVIDERS and in `model_used`."""
        return f"{self.provider}/{self.model}"


class ProviderStatus(NamedTuple):
    """Whether a configured provider would answer now; `problem` is empty when it would."""

    choice: ModelChoice
    problem: str = ""
    is_absent: bool = False
    """It has no key or cannot be reached: `auto` asks the next one, as for no other problem."""


def analyze_file(
    desktop: Desktop,
    image_path: str,
    question: str,
    provider_type: Optional[str] = None,
    model: Optional[str] = None,
) -> Result:
    """The job of `analyze`: ask a configured model about an image file.

    Checked in the specification's order: the file's name, the configuration, the provider, the file.
    An empty question asks for a description, as the original does.
    Raises INVALID_ARGUMENT, FILE_IO_ERROR, AI_NOT_CONFIGURED, AI_PROVIDER_ERROR.
    """
    path = asked_path(image_path)
    if path.suffix.lower() not in _SUPPORTED:
        suffix = clean_text(path.suffix, 20) or "none"
        raise invalid(f"Unsupported image format: {suffix}. Supported formats: {', '.join(_SUPPORTED)}")
    choice = choose_provider(provider_type, model)
    answer = ask_model(desktop, [path], question.strip() or _DEFAULT_QUESTION, choice=choice)
    said = {"analysis_text": answer.text, "model_used": answer.model_used}
    spent = {
        "seconds": round(answer.seconds, 2),
        "tokens_in": answer.tokens_in,
        "tokens_out": answer.tokens_out,
    }
    return Result(answer.text, {**said, **spent})


def choose_model(name: str) -> ModelChoice:
    """The model of `PROVIDER` or `PROVIDER/MODEL`, configured or not. Raises INVALID_ARGUMENT."""
    if re.search("[,;]", name):
        raise invalid(f"{name[:60]!r} is not one model", hint="name it as PROVIDER/MODEL")
    return _checked(_read_choice(name))


def choose_provider(
    requested_type: Optional[str] = None, requested_model: Optional[str] = None
) -> ModelChoice:
    """The configured provider that is asked for; for `auto`, or none, the first one that is operational.

    `auto` passes over what has no key or cannot be reached, and over nothing else: an image that is meant for
    a model on this machine does not go to a cloud because that model's name is mistyped.
    Raises AI_NOT_CONFIGURED, INVALID_ARGUMENT (no such provider), AI_PROVIDER_ERROR (none is operational, or
    the first that answers lacks the model).
    """
    configured = parse_providers(settings().ai_providers)
    if not configured:
        log_error(_NOT_CONFIGURED)
        raise PeekabooError(ErrorCode.AI_NOT_CONFIGURED, _NOT_CONFIGURED, hint=_EXAMPLE)
    wanted = (requested_type or "auto").strip().lower()
    candidates = [choice for choice in configured if wanted in ("auto", choice.provider)]
    if not candidates:
        message = f"Provider '{wanted[:40]}' is not enabled in server's PEEKABOO_AI_PROVIDERS configuration."
        hint = "it enables " + ", ".join(dict.fromkeys(choice.provider for choice in configured))
        raise PeekabooError(ErrorCode.AI_NOT_CONFIGURED, message, hint=hint)
    problems = []
    for candidate in candidates:
        choice = _checked(candidate._replace(model=requested_model or candidate.model))
        status = _status_of(choice) if wanted == "auto" else ProviderStatus(choice)
        if not status.problem:
            return choice
        if not status.is_absent:
            hint = "or put another provider before it; those after it were not asked"
            raise PeekabooError(ErrorCode.AI_PROVIDER_ERROR, status.problem, hint)
        problems.append(f"{choice.provider}: {status.problem}")
    message = "No configured AI providers in PEEKABOO_AI_PROVIDERS are currently operational."
    raise PeekabooError(ErrorCode.AI_PROVIDER_ERROR, message, hint="; ".join(problems))


def parse_providers(text: str) -> list[ModelChoice]:
    """The choices of PEEKABOO_AI_PROVIDERS, in order: `ollama/hf.co/someone/model:q4; openai,ocr`."""
    return [_read_choice(entry) for entry in re.split("[,;]", text) if entry.strip()]


def _read_choice(text: str) -> ModelChoice:
    provider, _, model = text.partition("/")  # the model's name may contain a slash
    provider = provider.strip().lower()
    return ModelChoice(provider, model.strip() or _DEFAULT_MODELS.get(provider, ""))


def _checked(choice: ModelChoice) -> ModelChoice:
    if choice.provider not in _DEFAULT_MODELS:
        raise invalid(_unknown_provider(choice.provider), hint=_EXAMPLE)
    return choice


def provider_status() -> list[ProviderStatus]:
    """The status of each configured provider; none where nothing is configured. No cloud is asked."""
    return in_parallel(_status_of, parse_providers(settings().ai_providers))


def _unknown_provider(provider: str) -> str:
    return f"there is no provider {provider[:40]!r}; there are {', '.join(_DEFAULT_MODELS)}"


def _status_of(choice: ModelChoice) -> ProviderStatus:
    """Of a cloud only whether its key is set."""
    vendor = VENDORS.get(choice.provider)
    if vendor is None:
        return ProviderStatus(choice, "" if choice.provider == OCR else _unknown_provider(choice.provider))
    if vendor.lacks_key:
        return ProviderStatus(choice, f"{vendor.key_variable} is not set", is_absent=True)
    try:
        if vendor.is_local:
            check_ollama(choice.model, within_budget(_PROBE_S))
    except WebError as e:
        problem = explain(vendor, choice.model, e)[0].sentence()
        return ProviderStatus(choice, problem, is_absent=e.status == 0)  # there was no answer
    return ProviderStatus(choice)


def ask_model(
    desktop: Desktop,
    images: Sequence[Union[Path, ImageData]],
    prompt: str,
    *,
    choice: ModelChoice,
    system: str = "",
    schema: Optional[dict[str, Any]] = None,
    are_fitted: bool = False,
    timeout_s: Optional[float] = None,
) -> Answer:
    """Ask a model a question about some images, or about none.

    choice: from choose_provider or choose_model. schema: of the one JSON object that is wanted; the vendor
    enforces it where it can, so the caller checks the answer. are_fitted: the images come from fit_for_model.
    timeout_s: for all of it, retries included; None: PEEKABOO_AI_TIMEOUT.
    Raises AI_NOT_CONFIGURED (no key), AI_PROVIDER_ERROR, CANCELLED, and the errors of reading and scaling.
    """
    started = time.monotonic()
    deadline = started + (settings().ai_timeout_s if timeout_s is None else timeout_s)
    loaded = [load_image(image) if isinstance(image, Path) else image for image in images]
    report_progress(f"asking {choice.name}")
    if choice.provider == OCR:
        answer = _read_all_text(desktop, loaded, schema is not None)
    else:
        vendor = VENDORS[choice.provider]
        if vendor.lacks_key:
            message = f"{vendor.title} needs a key, and {vendor.key_variable} is not set"
            hint = "set it, or choose another provider"
            raise PeekabooError(ErrorCode.AI_NOT_CONFIGURED, message, hint=hint)
        if not are_fitted:
            loaded = [fit_for_model(desktop, choice.model, image) for image in loaded]
        answer = _ask_vendor(vendor, Question(choice.model, prompt, loaded, system, schema), deadline)
    answer = answer._replace(model_used=choice.name, seconds=time.monotonic() - started)
    sizes = [f"{info.width}x{info.height} {info.kind}" for info in (image.info for image in loaded)]
    tokens = f"tokens {answer.tokens_in} in, {answer.tokens_out} out"
    log_info(f"{choice.name} answered in {answer.seconds:.2f} s; {', '.join(sizes) or 'no image'}; {tokens}")
    return answer


def _read_all_text(desktop: Desktop, images: Sequence[ImageData], wants_json: bool) -> Answer:
    if wants_json or not images:
        message = "the provider ocr only reads the text in images"
        raise invalid(message, hint="choose a model: " + ", ".join(VENDORS))
    lines = []
    for image in images:
        with image_file(image.info.kind, image.data) as path:
            lines += [clean_text(line.text, _LONGEST_OCR_LINE) for line in desktop.read_text(path)]
    return Answer("\n".join(filter(None, lines)) or "No text was found in this image.")


def _ask_vendor(vendor: Vendor, question: Question, deadline: float) -> Answer:
    """The vendor's answer. What may succeed later is asked again, after a pause, never past the deadline.

    Raises AI_PROVIDER_ERROR, CANCELLED.
    """
    for attempt in count():
        try:
            reply = vendor.ask(question, deadline)
            break
        except WebError as e:
            error, delay_s = explain(vendor, question.model, e)
            # with jitter, so that many callers do not come back together
            pause_s = delay_s or _FIRST_PAUSE_S * 2**attempt * random.uniform(1.0, 1.5)
            is_last = attempt == _MAX_TRIES - 1 or time.monotonic() + pause_s >= deadline
            if is_last or delay_s is None:
                raise error from None
            log_info(f"{e.message}; asking again in {pause_s:.1f} s")
            pause(pause_s)
    try:
        answer = vendor.read(reply)
        # an endpoint may repeat what it was sent
        text = shown_text(without_secrets(_THOUGHTS.sub("", answer.text)))
    except (KeyError, IndexError, TypeError, AttributeError):
        what = "sent an answer that does not follow its API"
        raise provider_error(vendor, what, f"check {vendor.base_variable}") from None
    problem = answer.problem or ("" if text.strip() else "it is empty")
    if problem:
        hint = "rephrase the question, raise PEEKABOO_AI_MAX_TOKENS, or choose another provider"
        raise provider_error(vendor, f"sent no whole answer: {clean_text(str(problem))}", hint)
    return Answer(text, answer.tokens_in, answer.tokens_out)

"""Choose a model provider and ask it about images."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple, Optional

from ..core.call import in_parallel, pause, report_progress, within_budget
from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.log import log_error, log_info, log_warning
from ..core.models import ImageData, Result
from ..core.settings import settings, without_secrets
from ..core.text import clean_text, shown_text
from ..desktop.base import Desktop
from ..desktop.images import load_image
from ..system.files import absolute_path, temporary_file
from ..system.web import WebError
from .grid import fit_for_model
from .providers import VENDORS, Answer, Question, Vendor, check_ollama, explain, provider_error

OCR = "ocr"  # the provider that reads text with the desktop's own OCR: no model, no key, no network

_DEFAULT_MODELS = {**{name: vendor.default_model for name, vendor in VENDORS.items()}, OCR: "local"}
_SUPPORTED = (".png", ".jpg", ".jpeg", ".webp")
_FIRST_PAUSE_S = 0.5  # before the first retry; doubled before each further one
_THOUGHTS = re.compile(r"\A(?:\s*<think>.*?</think>)+\s*", re.DOTALL)
_NOT_CONFIGURED = (
    "AI analysis not configured on this server. Set the PEEKABOO_AI_PROVIDERS environment variable."
)
_EXAMPLE = 'for example "ollama/qwen3-vl:8b,openai/gpt-5.4-mini", or "ocr" to read text without a model'


class ModelChoice(NamedTuple):
    """A provider and its model, as the user named them; perhaps neither exists."""

    provider: str
    model: str

    @property
    def name(self) -> str:
        """Return PROVIDER/MODEL, as in PEEKABOO_AI_PROVIDERS and `model_used`."""
        return f"{self.provider}/{self.model}"


class ProviderStatus(NamedTuple):
    """The state of a configured provider. `problem` is empty if it is ready to answer."""

    choice: ModelChoice
    problem: str = ""
    is_absent: bool = False  # unknown, no key or not reachable: only then does `auto` try the next provider


def analyze_file(
    desktop: Desktop,
    image_path: str,
    question: str,
    provider_type: Optional[str] = None,
    model: Optional[str] = None,
) -> Result:
    """Ask a configured model about an image file, for the tool `analyze`.

    An empty question asks for a description, like the original Peekaboo. Raises, in the order of the
    specification: INVALID_ARGUMENT (file name), the errors of choose_provider, FILE_IO_ERROR and
    INVALID_ARGUMENT (file), AI_PROVIDER_ERROR (the answer).
    """
    path = absolute_path(image_path)
    if path.suffix.lower() not in _SUPPORTED:
        suffix = clean_text(path.suffix, 20) or "none"
        raise invalid(f"Unsupported image format: {suffix}. Supported formats: {', '.join(_SUPPORTED)}")
    choice = choose_provider(provider_type, model)
    question = question.strip() or "Please describe what you see in this image."
    answer = ask_model(desktop, [load_image(path)], question, choice=choice)
    text = without_secrets(answer.text)
    data = {"analysis_text": text, "model_used": answer.model_used, "seconds": round(answer.seconds, 2)}
    return Result(text, {**data, "tokens_in": answer.tokens_in, "tokens_out": answer.tokens_out})


def choose_model(name: str) -> ModelChoice:
    """Return the model named by PROVIDER or PROVIDER/MODEL, also if PEEKABOO_AI_PROVIDERS does not list it.

    Raises INVALID_ARGUMENT, and AI_NOT_CONFIGURED if its provider needs a key.
    """
    if re.search("[,;]", name):
        raise invalid(f"{name[:60]!r} names more than one model", hint="write PROVIDER/MODEL")
    return _checked(_read_choice(name))


def choose_provider(
    requested_type: Optional[str] = None, requested_model: Optional[str] = None
) -> ModelChoice:
    """Return the requested provider, or the first operational one for `auto` and None.

    `auto` skips a provider that is unknown, has no key or cannot be reached. Any other problem is an error: a
    mistyped name of a local model must not send the image to a cloud. Raises AI_NOT_CONFIGURED (also for a
    requested provider without a key), INVALID_ARGUMENT (the provider is unknown), AI_PROVIDER_ERROR (no
    provider is operational, or the first one that answers lacks the model).
    """
    configured = parse_providers(settings().ai_providers)
    if not configured:
        log_error(_NOT_CONFIGURED)
        raise PeekabooError(ErrorCode.AI_NOT_CONFIGURED, _NOT_CONFIGURED, hint=_EXAMPLE)
    choices = [choice._replace(model=requested_model or choice.model) for choice in configured]
    name = (requested_type or "auto").strip().lower()
    if name != "auto":
        requested = [choice for choice in choices if choice.provider == name]
        if requested:
            return _checked(requested[0])
        message = f"Provider '{name[:40]}' is not enabled in server's PEEKABOO_AI_PROVIDERS configuration."
        hint = "it enables " + ", ".join(dict.fromkeys(choice.provider for choice in choices))
        raise PeekabooError(ErrorCode.AI_NOT_CONFIGURED, message, hint=hint)
    problems = []
    for choice in choices:
        status = _status_of(choice)
        if not status.problem:
            return choice
        if not status.is_absent:
            hint = "or put another provider before it, because later providers were not tried"
            raise PeekabooError(ErrorCode.AI_PROVIDER_ERROR, status.problem, hint)
        problems.append(f"{choice.provider}: {status.problem}")
    message = "No configured AI providers in PEEKABOO_AI_PROVIDERS are currently operational."
    raise PeekabooError(ErrorCode.AI_PROVIDER_ERROR, message, hint="; ".join(problems))


def parse_providers(text: str) -> list[ModelChoice]:
    """Parse a list of providers, in order, for example `ollama/hf.co/someone/model:q4; openai,ocr`."""
    return [_read_choice(entry) for entry in re.split("[,;]", text) if entry.strip()]


def _read_choice(text: str) -> ModelChoice:
    provider, _, model = text.partition("/")  # a model's name may contain slashes, too
    provider = provider.strip().lower()
    return ModelChoice(provider, model.strip() or _DEFAULT_MODELS.get(provider, ""))


def _checked(choice: ModelChoice) -> ModelChoice:
    if choice.provider not in _DEFAULT_MODELS:
        raise invalid(_unknown_provider(choice.provider), hint=_EXAMPLE)
    vendor = VENDORS.get(choice.provider)
    if vendor and vendor.lacks_key:
        message = f"{vendor.title} needs a key, and {vendor.key_variable} is not set"
        raise PeekabooError(ErrorCode.AI_NOT_CONFIGURED, message, "set it, or choose another provider")
    return choice


def provider_status() -> list[ProviderStatus]:
    """Return the status of each configured provider. Sends no request to a cloud."""
    return in_parallel(_status_of, parse_providers(settings().ai_providers))


def _unknown_provider(provider: str) -> str:
    return f"there is no provider {provider[:40]!r}; the providers are {', '.join(_DEFAULT_MODELS)}"


def _status_of(choice: ModelChoice) -> ProviderStatus:
    # a cloud is not asked: only its key is checked
    vendor = VENDORS.get(choice.provider)
    if vendor is None and choice.provider != OCR:
        log_warning(f"PEEKABOO_AI_PROVIDERS: {_unknown_provider(choice.provider)}; {choice.name} is skipped")
        return ProviderStatus(choice, _unknown_provider(choice.provider), is_absent=True)
    if vendor and vendor.lacks_key:
        return ProviderStatus(choice, f"{vendor.key_variable} is not set", is_absent=True)
    if vendor and vendor.is_local:
        try:
            # it answers within milliseconds, unless it is loading a model
            check_ollama(choice.model, within_budget(3.0))
        except WebError as e:
            problem = explain(vendor, choice.model, e)[0].sentence()
            return ProviderStatus(choice, problem, is_absent=e.kind in ("unreachable", "timeout", "closed"))
    return ProviderStatus(choice)


def ask_model(
    desktop: Desktop,
    images: Sequence[ImageData],
    prompt: str,
    *,
    choice: ModelChoice,
    system: str = "",
    schema: Optional[dict[str, Any]] = None,
    timeout_s: Optional[float] = None,
) -> Answer:
    """Ask a model one question, with or without images.

    schema: of the JSON object to answer with; check the answer, because not every vendor enforces it.
    timeout_s: includes retries; None means PEEKABOO_AI_TIMEOUT. The answer may repeat a key: call
    without_secrets before you show or save it. Raises AI_PROVIDER_ERROR, CANCELLED, and the errors of
    fit_for_model.
    """
    started = time.monotonic()
    deadline = started + (settings().ai_timeout_s if timeout_s is None else timeout_s)
    report_progress(f"asking {choice.name}")
    if choice.provider == OCR:
        answer = _read_all_text(desktop, images, schema is not None)
    else:
        vendor = VENDORS[choice.provider]
        wants_places = schema is not None  # an action's; the caller has fitted its image to the grid
        images = [fit_for_model(desktop, choice.model, image, wants_places) for image in images]
        question = Question(choice.model, prompt, images, system, schema)
        answer = _read_answer(vendor, _ask_vendor(vendor, question, deadline))
    answer = answer._replace(model_used=choice.name, seconds=time.monotonic() - started)
    sizes = [f"{info.width}x{info.height} {info.kind}" for info in (image.info for image in images)]
    tokens = f"tokens {answer.tokens_in} in, {answer.tokens_out} out"
    log_info(f"{choice.name} answered in {answer.seconds:.2f} s; {', '.join(sizes) or 'no image'}; {tokens}")
    return answer


def _read_all_text(desktop: Desktop, images: Sequence[ImageData], wants_json: bool) -> Answer:
    if wants_json or not images:
        message = "the provider ocr can only read the text in images"
        raise invalid(message, hint="choose a model: " + ", ".join(VENDORS))
    lines = []
    for image in images:
        with temporary_file(image.info.kind, image.data) as path:
            # clean_text's default of 200 characters would cut a line of small print
            lines += [clean_text(line.text, 1000) for line in desktop.read_text(path)]
    return Answer("\n".join(filter(None, lines)) or "No text was found in this image.")


def _ask_vendor(vendor: Vendor, question: Question, deadline: float) -> Any:
    for attempt in count(1):
        try:
            return vendor.ask(question, deadline)
        except WebError as e:
            error, delay_s = explain(vendor, question.model, e)
            # jitter keeps many callers from retrying at the same moment
            pause_s = delay_s or _FIRST_PAUSE_S * 2 ** (attempt - 1) * random.uniform(1.0, 1.5)
            if delay_s is None or attempt == 4 or time.monotonic() + pause_s >= deadline:
                raise error from None
            log_info(f"{e.message}; retrying in {pause_s:.1f} s")
            pause(pause_s)


def _read_answer(vendor: Vendor, reply: Any) -> Answer:
    try:
        answer = vendor.read(reply)
        text = shown_text(_THOUGHTS.sub("", answer.text))
    except (KeyError, IndexError, TypeError, AttributeError):
        message = "sent an answer that does not follow its API"
        raise provider_error(vendor, message, f"check {vendor.base_variable}") from None
    problem = answer.problem or ("" if text.strip() else "it is empty")
    if problem:
        hint = "rephrase the question, raise PEEKABOO_AI_MAX_TOKENS, or choose another provider"
        raise provider_error(vendor, f"sent no complete answer: {clean_text(str(problem))}", hint)
    return Answer(text, answer.tokens_in, answer.tokens_out)

"""Ask a model about images, or the machine's own text recognition."""

from __future__ import annotations

import hashlib
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional, Union

from ..core.cancellation import in_parallel, pause, report_progress
from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.log import log_debug, log_error, log_info
from ..core.models import ImageData, Result
from ..core.settings import settings, without_secrets
from ..core.text import clean_text, shown_text
from ..desktop.base import Desktop
from ..system.files import asked_path
from ..system.images import image_file
from ..system.web import WebError, host_of
from .errors import (
    asked_delay_s,
    check_reply,
    is_worth_retrying,
    malformed_reply_error,
    provider_error,
    takes_no_images_error,
    vendor_text,
)
from .images import fit_for_model, load_image
from .providers import VENDORS, Question, Reply, Vendor, ollama_takes_images

OCR = "ocr"
"""The provider that asks the machine itself: it reads text, without a model, a key or a network."""

_OCR_MODEL = "local"
_LONGEST_OCR_LINE = 1000
_SUPPORTED = (".png", ".jpg", ".jpeg", ".webp")
_DEFAULT_QUESTION = "Please describe what you see in this image."
_MAX_TRIES = 4
_FIRST_PAUSE_S = 0.5
_PROBE_S = 3.0
# Anchored: where many are opened and none is closed, a search from each of them would take minutes.
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


class Answer(NamedTuple):
    """A model's answer. Tokens are None where the provider does not count them."""

    text: str
    model_used: str
    """PROVIDER/MODEL."""
    seconds: float
    tokens_in: Optional[int] = None
    tokens_out: Optional[int] = None


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
        found = clean_text(path.suffix, 20) or "none"
        raise invalid(f"Unsupported image format: {found}. Supported formats: {', '.join(_SUPPORTED)}")
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


# which provider ---


def choose_model(provider: str, model: Optional[str] = None) -> ModelChoice:
    """A provider by its name, configured or not, with its default model where none is named.

    Raises INVALID_ARGUMENT for a provider that does not exist.
    """
    if provider != OCR and provider not in VENDORS:
        raise invalid(_unknown_provider(provider), hint=_EXAMPLE)
    return _with_default(provider, model or "")


def choose_named_model(name: str) -> ModelChoice:
    """The model of `PROVIDER` or `PROVIDER/MODEL`. Raises INVALID_ARGUMENT."""
    named = parse_providers(name)
    if len(named) != 1:
        raise invalid(f"{name[:60]!r} is not one model", hint="name it as PROVIDER/MODEL")
    return choose_model(named[0].provider, named[0].model)


def choose_provider(
    requested_type: Optional[str] = None, requested_model: Optional[str] = None
) -> ModelChoice:
    """The configured provider that is asked for; for `auto`, or none, the first one that is operational.

    `auto` passes over what has no key or cannot be reached, and over nothing else: an image that is meant for
    a model on this machine does not go to a cloud because that model's name is mistyped.
    Raises AI_NOT_CONFIGURED, INVALID_ARGUMENT (no such provider), AI_PROVIDER_ERROR (none is operational, or
    the first that answers lacks the model).
    """
    configured = _configured()
    wanted = (requested_type or "auto").strip().lower()
    if wanted == "auto":
        return _first_operational(configured, requested_model)
    found = next((choice for choice in configured if choice.provider == wanted), None)
    if found is None:
        message = f"Provider '{wanted[:40]}' is not enabled in server's PEEKABOO_AI_PROVIDERS configuration."
        hint = "it enables " + ", ".join(dict.fromkeys(choice.provider for choice in configured))
        raise PeekabooError(ErrorCode.AI_NOT_CONFIGURED, message, hint=hint)
    return choose_model(wanted, requested_model or found.model)


def parse_providers(text: str) -> list[ModelChoice]:
    """`ollama/hf.co/someone/model:q4; openai,ocr` in order: what follows the first slash is the model."""
    entries = [entry.strip() for entry in re.split("[,;]", text)]
    pairs = [entry.partition("/") for entry in entries if entry]
    return [_with_default(provider.strip().lower(), model.strip()) for provider, _, model in pairs]


def provider_status() -> list[ProviderStatus]:
    """The status of each configured provider; none where nothing is configured. No cloud is asked."""
    configured = parse_providers(settings().ai_providers)
    return in_parallel(_status_of, configured)


def _with_default(provider: str, model: str) -> ModelChoice:
    if provider == OCR:
        return ModelChoice(OCR, _OCR_MODEL)
    return ModelChoice(provider, model or (VENDORS[provider].default_model if provider in VENDORS else ""))


def _unknown_provider(provider: str) -> str:
    return f"there is no provider {provider[:40]!r}; there are {', '.join([*VENDORS, OCR])}"


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
    for candidate in configured:
        choice = choose_model(candidate.provider, requested_model or candidate.model)
        _, problem, is_absent = _status_of(choice)
        if not problem:
            return choice
        if not is_absent:
            message = f"{choice.provider} answers, but {problem}"
            hint = "or put another provider before it; those after it were not asked"
            raise PeekabooError(ErrorCode.AI_PROVIDER_ERROR, message, hint)
        log_debug(f"{choice.name} is not operational: {problem}")
        problems.append(f"{choice.provider}: {problem}")
    message = "No configured AI providers in PEEKABOO_AI_PROVIDERS are currently operational."
    raise PeekabooError(ErrorCode.AI_PROVIDER_ERROR, message, hint="; ".join(problems))


def _status_of(choice: ModelChoice) -> ProviderStatus:
    """Of a cloud only whether its key is set."""
    vendor = VENDORS.get(choice.provider)
    if choice.provider == OCR:
        return ProviderStatus(choice)
    if vendor is None:
        return ProviderStatus(choice, _unknown_provider(choice.provider))
    if vendor.lacks_key:
        return ProviderStatus(choice, f"{vendor.key_variable} is not set", is_absent=True)
    if not vendor.is_local:
        return ProviderStatus(choice)
    try:
        names = vendor.list_models(_PROBE_S)
    except WebError as e:
        other = f"{host_of(vendor.base_url)} is another server: it does not list {vendor.title}'s models"
        problem = other if e.status == 404 else vendor_text(e.body) or e.message
        return ProviderStatus(choice, problem, is_absent=e.status in (0, 404))  # 0: no answer at all
    if _is_listed(choice.model, names):
        return ProviderStatus(choice)
    return ProviderStatus(choice, f"it has no model {choice.model}: run `ollama pull {choice.model}`")


def _is_listed(model: str, names: list[str]) -> bool:
    """Ollama ignores case, and adds :latest where no tag is named."""
    known = {name.lower() for name in names}
    return model.lower() in known or f"{model.lower()}:latest" in known


# the question ---


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
    choice = choose_model(choice.provider, choice.model)
    loaded = [load_image(image) if isinstance(image, Path) else image for image in images]
    report_progress(f"asking {choice.name}")
    if choice.provider == OCR:
        reply = _read_all_text(desktop, loaded, schema is not None)
    else:
        vendor = VENDORS[choice.provider]
        if vendor.lacks_key:
            message = f"{vendor.title} needs a key, and {vendor.key_variable} is not set"
            hint = "set it, or choose another provider"
            raise PeekabooError(ErrorCode.AI_NOT_CONFIGURED, message, hint=hint)
        if not are_fitted:
            loaded = [fit_for_model(desktop, choice.model, each) for each in loaded]
        reply = _ask_vendor(vendor, Question(choice.model, prompt, tuple(loaded), system, schema), deadline)
    seconds = time.monotonic() - started
    tokens = f"tokens {reply.tokens_in} in, {reply.tokens_out} out"
    log_info(f"{choice.name} answered in {seconds:.2f} s; {_image_summary(loaded)}; {tokens}")
    return Answer(reply.text, choice.name, seconds, reply.tokens_in, reply.tokens_out)


def _image_summary(images: Sequence[ImageData]) -> str:
    """What the log may hold about images: no pixels."""
    described = []
    for image in images:
        digest = hashlib.sha256(image.data).hexdigest()[:12]
        size = f"{image.info.width}x{image.info.height} {image.info.kind}, {len(image.data)} bytes"
        described.append(f"{size}, sha256 {digest}")
    return "; ".join(described) or "no image"


def _read_all_text(desktop: Desktop, images: Sequence[ImageData], wants_json: bool) -> Reply:
    """The lines of text in the images, by this machine's own text recognition."""
    if wants_json or not images:
        message = "the provider ocr only reads the text in images"
        raise invalid(message, hint="choose a model: " + ", ".join(VENDORS))
    lines = []
    for image in images:
        with image_file(image.info.kind, image.data) as path:
            lines += [clean_text(found.text, _LONGEST_OCR_LINE) for found in desktop.read_text(path)]
    return Reply("\n".join(line for line in lines if line) or "No text was found in this image.")


def _ask_vendor(vendor: Vendor, question: Question, deadline: float) -> Reply:
    has_images = bool(question.images)
    if vendor.is_local and has_images and not _takes_images(vendor.base_url, question.model):
        raise takes_no_images_error(vendor, question.model)
    try:
        answer = _post_with_retries(vendor, question, deadline)
        if isinstance(answer, dict) and answer.get("error"):  # some gateways send errors with status 200
            raise WebError("status", "an error with status 200", 200, answer)
    except WebError as e:
        raise provider_error(vendor, question.model, e, has_images) from None
    try:
        reply = vendor.read(answer)
        reply = reply._replace(text=_THOUGHTS.sub("", reply.text))
    except (KeyError, IndexError, TypeError, AttributeError):
        raise malformed_reply_error(vendor) from None
    reply = reply._replace(
        text=shown_text(without_secrets(reply.text)),  # an endpoint may repeat what it was sent
        tokens_in=_count(reply.tokens_in),
        tokens_out=_count(reply.tokens_out),
    )
    check_reply(vendor, question.model, reply)
    return reply


def _count(value: Any) -> Optional[int]:
    """A number of tokens; None for anything else that a server sends as one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _takes_images(base_url: str, model: str) -> bool:
    try:
        return ollama_takes_images(base_url, model, _PROBE_S)
    except WebError:
        return True  # the question itself will show what is wrong


def _post_with_retries(vendor: Vendor, question: Question, deadline: float) -> Any:
    """Send the question; repeat what may succeed later, with growing pauses, never past the deadline.

    Raises WebError, CANCELLED.
    """
    body = vendor.body(question)
    for attempt in range(_MAX_TRIES):
        timeout_s = max(0.001, deadline - time.monotonic())
        try:
            return vendor.post(body, question.model, timeout_s)
        except WebError as e:
            asked = asked_delay_s(e)
            # with jitter, so that many callers do not come back together
            delay = _FIRST_PAUSE_S * 2**attempt * random.uniform(1.0, 1.5) if asked is None else asked
            is_last = attempt == _MAX_TRIES - 1 or time.monotonic() + delay >= deadline
            if is_last or not is_worth_retrying(e, vendor, bool(question.images)):
                raise
            log_info(f"{e.message}; asking again in {delay:.1f} s")
            pause(delay)
    raise AssertionError("the last try returns or raises")

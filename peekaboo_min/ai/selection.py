"""Which provider and model are asked: PEEKABOO_AI_PROVIDERS, read and tried."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional

from ..core.cancellation import in_parallel
from ..core.errors import ErrorCode, PeekabooError
from ..core.log import log_debug, log_error
from ..core.settings import settings
from ..system.web import WebError
from .errors import vendor_text
from .providers import VENDORS

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

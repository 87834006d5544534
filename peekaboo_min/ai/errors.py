"""What a vendor's refusal means: whether to ask again, and what to do."""

from __future__ import annotations

import re
from typing import Any, Optional

from ..core.errors import ErrorCode, PeekabooError
from ..core.settings import without_secrets
from ..core.text import clean_text
from ..system.web import WebError, is_loopback
from .providers import Reply, Vendor

_RETRIED_STATUSES = (408, 429, 500, 502, 503, 504, 529)
_LONGEST_VENDOR_TEXT = 400
_PIXELS = re.compile(r"[A-Za-z0-9+/_=-]{64,}")  # an error may quote what was sent
_TEXT_ONLY = re.compile(
    r"image_url is only supported|(not|n't) support (image|vision)|image input|missing data required for image"
    r"|only supports text|multimodal",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content filter|content policy|safety system", re.IGNORECASE)
_SPENT = re.compile(r"insufficient_quota|billing_error|credit balance", re.IGNORECASE)


def vendor_text(body: Any) -> str:
    """The vendor's own words in an error answer, as one line without keys and pixels; empty where there are none.

    `{"error": {"message"}}` is OpenAI's, Anthropic's and Gemini's (also in a list of one), `{"error": "..."}` Ollama's;
    compatible servers have `detail` or `message`.
    """
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, dict):
        body = body.get("error") or body.get("detail") or body.get("message") or ""
    if isinstance(body, dict):
        body = body.get("message") or ""
    text = body if isinstance(body, str) else ""
    return clean_text(_PIXELS.sub("...", without_secrets(text)), _LONGEST_VENDOR_TEXT)


def is_worth_retrying(error: WebError, url: str, has_pictures: bool) -> bool:
    """Whether the same request may succeed in a while. Nobody starts a server on this machine meanwhile."""
    if error.kind == "status":
        text = vendor_text(error.body)
        is_final = _SPENT.search(str(error.body)) or (has_pictures and _TEXT_ONLY.search(text))
        return error.status in _RETRIED_STATUSES and not is_final
    return error.kind == "closed" or (error.kind == "unreachable" and not is_loopback(url))


def asked_delay_s(error: WebError) -> Optional[float]:
    """How long the vendor asks us to wait: Retry-After, or Gemini's RetryInfo. None where it does not say."""
    if error.retry_after_s is not None:
        return error.retry_after_s
    found = re.search(r"'retryDelay': '(\d+(?:\.\d+)?)s'", str(error.body))
    return float(found[1]) if found else None


def provider_error(vendor: Vendor, model: str, error: WebError, has_pictures: bool) -> PeekabooError:
    """AI_PROVIDER_ERROR for a request that failed for good."""
    text = ""
    if error.kind == "status":
        text = vendor_text(error.body)
        what, hint = _meaning_of_refusal(vendor, model, error, text, has_pictures)
        what = f"{what}: {text}" if text else f"{what} (status {error.status})"
    else:
        what, hint = f"gave no answer: {error.message}", _hint_for_failure(vendor, error.kind)
    return PeekabooError(ErrorCode.AI_PROVIDER_ERROR, f"{vendor.title} {what}", hint=hint)


def _hint_for_failure(vendor: Vendor, kind: str) -> str:
    where = f"see that {vendor.base_variable} is right"
    if kind == "unreachable" and vendor.title == "Ollama":
        return f"start it (ollama serve), or {where}"
    return {
        "unreachable": f"see that the network is there, and {where}",
        "timeout": "try again, choose a quicker model, or set PEEKABOO_AI_TIMEOUT higher",
        "closed": "try again",
        "untrusted": f"{where}, and that Python knows your certificates (SSL_CERT_FILE, or Install Certificates.command)",
        "invalid": f"{where}, and {vendor.key_variable}" if vendor.key_variable else where,
    }.get(kind, f"{where}, and that no sign-in page stands before it")


def _meaning_of_refusal(
    vendor: Vendor, model: str, error: WebError, text: str, has_pictures: bool
) -> tuple[str, str]:
    """What an error's status means, and what to do."""
    where = f"see that {vendor.base_variable} is right"
    status = error.status
    if status in (401, 403) or "API_KEY_INVALID" in str(error.body):  # Gemini says 400 of a wrong key
        return (
            "did not accept the key",
            f"see that {vendor.key_variable} is right" if vendor.key_variable else where,
        )
    if has_pictures and _TEXT_ONLY.search(text):
        return _takes_no_pictures(model), f"choose a model that sees, such as {vendor.default_model}"
    if _FILTERED.search(text):
        return "blocked the answer", "ask something else, or choose another provider"
    if status == 404:
        get_it = f"run: ollama pull {model}" if vendor.title == "Ollama" else "choose another model"
        return f"has no model {model}", f"{get_it}, or {where}"
    if status == 413:
        return "found the question too large", "send a smaller picture"
    if status == 402 or _SPENT.search(str(error.body)):
        return "wants to be paid first", "see your plan and billing there"
    if status == 429:
        delay = asked_delay_s(error)
        wait = f"wait {delay:.0f} seconds" if delay else "wait a while"
        return "is asked too often", f"{wait}, or choose another provider"
    if status >= 500:
        return f"has a problem of its own ({status})", "try again later, or choose another provider"
    return f"refused the question ({status})", f"see that it knows the model {model}"


def _takes_no_pictures(model: str) -> str:
    return f"says that its model {model} takes no pictures"


def blind_model_error(vendor: Vendor, model: str) -> PeekabooError:
    """AI_PROVIDER_ERROR for a model that would answer without having seen anything."""
    hint = f"choose a model that sees, such as {vendor.default_model}"
    return PeekabooError(
        ErrorCode.AI_PROVIDER_ERROR, f"{vendor.title} {_takes_no_pictures(model)}", hint=hint
    )


def strange_answer_error(vendor: Vendor) -> PeekabooError:
    """AI_PROVIDER_ERROR for an answer that is JSON, but not what the vendor's API answers."""
    message = f"{vendor.title} answered in a shape that is not its API's"
    return PeekabooError(
        ErrorCode.AI_PROVIDER_ERROR, message, hint=f"see that {vendor.base_variable} is right"
    )


def check_reply(vendor: Vendor, model: str, reply: Reply) -> None:
    """Raises AI_PROVIDER_ERROR for an answer that was refused, cut off or is empty: none of them is an answer."""
    if reply.refusal:
        what = f"refused to answer: {clean_text(str(reply.refusal), _LONGEST_VENDOR_TEXT)}"
        hint = "ask something else, or choose another provider"
    elif reply.cut_short:
        what = f"cut the answer of {model} off after {reply.tokens_out} tokens"
        hint = "ask for less, or set PEEKABOO_AI_MAX_TOKENS higher"
    elif not reply.text.strip():
        what, hint = f"answered with nothing, by {model}", "try again, or choose another model"
    else:
        return
    raise PeekabooError(ErrorCode.AI_PROVIDER_ERROR, f"{vendor.title} {what}", hint=hint)

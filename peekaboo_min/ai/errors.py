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
    r"image_url is only supported|(not|n't) support (image|vision)|image input"
    r"|missing data required for image|only supports text|multimodal",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content filter|content policy|safety system", re.IGNORECASE)
_UNPAID = re.compile(r"insufficient_quota|billing_error|credit balance", re.IGNORECASE)


def vendor_text(body: Any) -> str:
    """The vendor's own message in an error answer, as one line without keys and pixels; may be empty.

    `{"error": {"message"}}` is OpenAI's, Anthropic's and Gemini's (also in a list of one), `{"error": "..."}`
    is Ollama's; compatible servers have `detail` or `message`.
    """
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, dict):
        body = body.get("error") or body.get("detail") or body.get("message") or ""
    if isinstance(body, dict):
        body = body.get("message") or ""
    text = body if isinstance(body, str) else ""
    return clean_text(_PIXELS.sub("...", without_secrets(text)), _LONGEST_VENDOR_TEXT)


def is_worth_retrying(error: WebError, vendor: Vendor, has_images: bool) -> bool:
    """Whether the same request may succeed in a while. A server on this machine does not start by itself."""
    if error.kind == "status":
        text = vendor_text(error.body)
        is_final = _UNPAID.search(str(error.body)) or (has_images and _TEXT_ONLY.search(text))
        return error.status in _RETRIED_STATUSES and not is_final
    return error.kind == "closed" or (error.kind == "unreachable" and not is_loopback(vendor.base_url))


def asked_delay_s(error: WebError) -> Optional[float]:
    """How long the vendor asks us to wait: Retry-After, or Gemini's RetryInfo. None: not specified."""
    if error.retry_after_s is not None:
        return error.retry_after_s
    # the body was parsed: this is how Python writes `"retryDelay": "7s"`, at whatever depth
    found = re.search(r"'retryDelay': '(\d+(?:\.\d+)?)s'", str(error.body))
    return float(found[1]) if found else None


def provider_error(vendor: Vendor, model: str, error: WebError, has_images: bool) -> PeekabooError:
    """AI_PROVIDER_ERROR for a request that failed for good."""
    if error.kind != "status":
        return _error(vendor, f"gave no answer: {error.message}", _hint_for_failure(vendor, error.kind))
    text = vendor_text(error.body)
    if has_images and _TEXT_ONLY.search(text):
        return takes_no_images_error(vendor, model, text)
    what, hint = _explain_status(vendor, model, error, text)
    return _error(vendor, f"{what}: {text}" if text else f"{what} (status {error.status})", hint)


def _error(vendor: Vendor, what: str, hint: str) -> PeekabooError:
    return PeekabooError(ErrorCode.AI_PROVIDER_ERROR, f"{vendor.title} {what}", hint=hint)


def _hint_for_failure(vendor: Vendor, kind: str) -> str:
    check = f"check {vendor.base_variable}"
    if kind == "unreachable" and vendor.is_local:
        return f"start it (ollama serve), or {check}"
    return {
        "unreachable": f"check the network and {vendor.base_variable}",
        "timeout": "try again, choose a faster model, or raise PEEKABOO_AI_TIMEOUT",
        "closed": "try again",
        "untrusted": f"{check}, and that Python finds your certificates"
        " (SSL_CERT_FILE, or Install Certificates.command)",
        "invalid": f"{check} and {vendor.key_variable}" if vendor.key_variable else check,
    }.get(kind, f"{check}, and that no sign-in page answers in its place")


def _explain_status(vendor: Vendor, model: str, error: WebError, text: str) -> tuple[str, str]:
    """What an error's status means, to follow the vendor's name; and a hint."""
    check = f"check {vendor.base_variable}"
    status = error.status
    if status in (401, 403) or "API_KEY_INVALID" in str(error.body):  # Gemini answers 400 to a wrong key
        return "rejected the key", f"check {vendor.key_variable or vendor.base_variable}"
    if _FILTERED.search(text):
        return "blocked the answer", "rephrase the question, or choose another provider"
    if status == 404:
        remedy = f"run: ollama pull {model}" if vendor.is_local else "choose another model"
        return f"has no model {model}", f"{remedy}, or {check}"
    if status == 413:
        return "refused: the request is too large", "send a smaller image"
    if status == 402 or _UNPAID.search(str(error.body)):
        return "refused: billing required", "check your plan and billing with the provider"
    if status == 429:
        delay = asked_delay_s(error)
        wait = f"wait {delay:.0f} seconds" if delay else "wait a while"
        return "refused: too many requests", f"{wait}, or choose another provider"
    if status >= 500:
        return f"failed with a server error ({status})", "try again later, or choose another provider"
    return f"rejected the request ({status})", f"check that it has the model {model}"


def takes_no_images_error(vendor: Vendor, model: str, text: str = "") -> PeekabooError:
    """AI_PROVIDER_ERROR for a model that takes no images. text: what the vendor itself wrote."""
    what = f"reports that its model {model} takes no images"
    hint = f"choose a vision model, such as {vendor.default_model}"
    return _error(vendor, f"{what}: {text}" if text else what, hint)


def malformed_reply_error(vendor: Vendor) -> PeekabooError:
    """AI_PROVIDER_ERROR for an answer that is JSON, but not in the form of the vendor's API."""
    return _error(vendor, "sent an answer that does not follow its API", f"check {vendor.base_variable}")


def check_reply(vendor: Vendor, model: str, reply: Reply) -> None:
    """Raises AI_PROVIDER_ERROR for an answer that was refused or cut off, or is empty."""
    if reply.refusal:
        what = f"refused to answer: {clean_text(str(reply.refusal), _LONGEST_VENDOR_TEXT)}"
        raise _error(vendor, what, "rephrase the question, or choose another provider")
    if reply.cut_short:
        tokens = "" if reply.tokens_out is None else f" after {reply.tokens_out} tokens"
        what = f"cut the answer of {model} off{tokens}"
        raise _error(vendor, what, "ask for less, or raise PEEKABOO_AI_MAX_TOKENS")
    if not reply.text.strip():
        raise _error(vendor, f"sent an empty answer from {model}", "try again, or choose another model")

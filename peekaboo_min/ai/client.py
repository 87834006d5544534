"""Ask a model about pictures, or the machine's own text recognition."""

from __future__ import annotations

import hashlib
import os
import random
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Optional, Union

from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError
from ..core.log import log_info
from ..core.models import ImageInfo, Picture, Result
from ..core.settings import settings
from ..desktop.base import Desktop
from ..system.images import clean_text
from ..system.web import WebError, ask_json
from .errors import (
    asked_delay_s,
    blind_model_error,
    check_reply,
    is_worth_retrying,
    provider_error,
    strange_answer_error,
)
from .images import fit_pictures, load_picture, private_copy
from .providers import VENDORS, Question, Reply, Vendor, WebCall, ollama_model_sees
from .selection import OCR, ModelChoice, choose_model, choose_provider

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
    path = Path(os.path.expanduser(image_path)).absolute()
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

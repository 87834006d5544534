"""One JSON request to a web server: the only user of urllib.request."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, InvalidURL
from ssl import SSLCertVerificationError
from typing import Any, Optional
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from .. import __version__
from ..core.cancellation import check_cancelled
from ..core.text import clean_text

_ERROR_CAP = 64 * 1024
_ANSWER_CAP = 16 * 1024 * 1024
_POLL_S = 0.05
_NO_ADDRESS = "the address is not a plain http or https URL"
_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")


@dataclass(eq=False)
class WebError(Exception):
    """A request that failed; the caller interprets it.

    kind: `unreachable` (no connection), `closed` (it ended before the answer did), `timeout`, `redirect`
    (not followed), `status` (an error's status, see `status` and `body`), `malformed` (not JSON),
    `untrusted` (its certificate), `invalid` (never sent).
    body: the error answer, parsed where it is JSON, else its text. Neither the message nor the body holds
    what was sent.
    """

    kind: str
    message: str
    status: int = 0
    body: Any = None
    retry_after_s: Optional[float] = None


def ask_json(url: str, *, headers: Mapping[str, str], body: Any = None, timeout_s: float) -> Any:
    """POST `body` as JSON, or bytes as a web form's, or GET where it is None; returns the parsed answer.

    timeout_s bounds the whole exchange. Raises WebError, CANCELLED.
    """
    # urllib would refuse them with the whole URL or the key in its message
    is_plain = re.fullmatch(r"https?://[!-~]+", url, re.IGNORECASE) and host_of(url)
    if not is_plain or "@" in urlsplit(url).netloc:
        raise WebError("invalid", _NO_ADDRESS)
    if not all(value.isascii() and value.isprintable() for value in headers.values()):
        raise WebError("invalid", "a header, such as the key, holds characters that cannot be sent")
    ours = {"Accept": "application/json", "User-Agent": f"peekaboo_min/{__version__}"}
    if body is not None and not isinstance(body, bytes):  # of bytes, urllib says that they are a form
        ours["Content-Type"] = "application/json"
        body = json.dumps(body).encode()
    request = Request(url, body, {**ours, **headers})
    raw = _fetch(request, timeout_s)
    try:
        return json.loads(raw)
    except ValueError:
        raise WebError("malformed", f"{host_of(url)} answered with something that is not JSON") from None


def host_of(url: str) -> str:
    """Host and port of a URL, for messages: without the user, path and query, which may hold a secret.

    Empty for what is not a URL, such as `http://[bad`.
    """
    try:
        return clean_text(urlsplit(url).netloc.rpartition("@")[2])
    except ValueError:
        return ""


def is_loopback(url: str) -> bool:
    """Whether a URL points to this machine."""
    return bool(_LOOPBACK.fullmatch(urlsplit(url).hostname or ""))


def _fetch(request: Request, timeout_s: float) -> bytes:
    """The answer's bytes, fetched by a thread that is abandoned when time is up or the call is cancelled.

    A socket's own timeout starts anew with every byte: a slow server could keep us waiting for ever.
    """
    answers: list[bytes] = []  # one item here or there, once the thread ends
    errors: list[Exception] = []

    def work() -> None:
        try:
            answers.append(_exchange(request, timeout_s))
        except Exception as e:  # raised again below, in the calling thread
            errors.append(e)

    thread = threading.Thread(target=work, name="web request", daemon=True)
    thread.start()
    deadline = time.monotonic() + timeout_s
    while thread.is_alive():
        thread.join(_POLL_S)
        check_cancelled()
        if thread.is_alive() and time.monotonic() >= deadline:
            message = f"{host_of(request.full_url)} did not answer within {round(timeout_s, 2):g} seconds"
            raise WebError("timeout", message)
    if errors:
        # kept by no frame: in older Pythons its traceback holds the socket that a proxy's refusal leaves open
        raise _as_web_error(errors.pop(), request.full_url) from None
    return answers[0]


def _exchange(request: Request, timeout_s: float) -> bytes:
    """One request and its whole answer, through the environment's proxy where there is one."""
    url = request.full_url
    # not build_opener: that opens file:, ftp: and data: as well, and follows redirects with the key
    opener = OpenerDirector()
    proxies = ProxyHandler({}) if is_loopback(url) else ProxyHandler()
    for handler in (proxies, HTTPHandler(), HTTPSHandler(), HTTPErrorProcessor(), HTTPDefaultErrorHandler()):
        opener.add_handler(handler)
    try:
        # later than the caller's own deadline, which reports the timeout
        with opener.open(request, timeout=timeout_s + 1) as answer:
            raw: bytes = answer.read(_ANSWER_CAP + 1)
            if len(raw) <= _ANSWER_CAP:
                return raw + bytes(answer.read())  # which raises where the connection ended too early
    except HTTPError as e:
        with e:
            raise _status_error(url, e.code, e.headers, e.read(_ERROR_CAP)) from None
    raise WebError("malformed", f"{host_of(url)} answered with more than {_ANSWER_CAP} bytes")


def _status_error(url: str, status: int, headers: Any, raw: bytes) -> WebError:
    if 300 <= status < 400:
        target = host_of(headers.get("Location") or "") or "another address"
        return WebError("redirect", f"{host_of(url)} redirects to {target}, which is not followed", status)
    body: Any = raw.decode("utf-8", "replace")
    with suppress(ValueError):
        body = json.loads(body)
    if isinstance(body, str) and body.lstrip().startswith("<"):  # a web page
        body = ""
    retry_after_s = None
    with suppress(ValueError):  # a date: no vendor sends one
        retry_after_s = float(headers.get("Retry-After", ""))
    return WebError("status", f"{host_of(url)} answered with status {status}", status, body, retry_after_s)


def _as_web_error(error: Exception, url: str) -> Exception:
    """What went wrong below HTTP, as a WebError; a bug of ours stays as it is."""
    host = host_of(url)
    if isinstance(error, URLError) and isinstance(error.reason, Exception):
        error = error.reason
    if isinstance(error, SSLCertVerificationError):
        return WebError("untrusted", f"the certificate of {host} is not trusted: {error.verify_message}")
    if isinstance(error, (UnicodeError, OverflowError, InvalidURL)):  # of the host, the port or the proxy
        return WebError("invalid", _NO_ADDRESS)
    if isinstance(error, (ConnectionResetError, BrokenPipeError, ConnectionAbortedError, HTTPException)):
        return WebError("closed", f"{host} closed the connection before its answer was complete")
    if isinstance(error, ConnectionRefusedError):
        return WebError("unreachable", f"connection refused by {host}")
    if isinstance(error, OSError):
        return WebError("unreachable", f"{host} cannot be reached: {error.strerror or type(error).__name__}")
    return error

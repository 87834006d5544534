"""One JSON request to a web server: the only user of urllib.request."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, InvalidURL
from socket import SHUT_RDWR, socket
from ssl import SSLCertVerificationError
from typing import Any, Optional
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
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

_ANSWER_CAP = 16 * 1024 * 1024
_ERROR_CAP = 64 * 1024
_POLL_S = 0.05
_NO_ADDRESS = "the address is not a plain http or https URL"
_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")


class WebError(Exception):
    """A request that failed; the caller interprets it.

    kind: `unreachable` (no connection), `closed` (it ended before the answer did), `timeout`, `redirect`
    (not followed), `status` (an error's status, see `status` and `body`), `malformed` (not JSON),
    `too_large`, `untrusted` (its certificate), `invalid` (never sent).
    body: the error answer, parsed where it is JSON, else its text. Neither the message nor the body holds
    what was sent.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        status: int = 0,
        body: Any = None,
        retry_after_s: Optional[float] = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.status = status
        self.body = body
        self.retry_after_s = retry_after_s


def ask_json(url: str, *, headers: Mapping[str, str], body: Any = None, timeout_s: float) -> Any:
    """POST `body` as JSON, or GET where it is None; returns the parsed answer.

    timeout_s bounds the whole exchange. Raises WebError, CANCELLED.
    """
    if body is None:
        return _ask(url, None, dict(headers), timeout_s)
    return _ask(url, json.dumps(body).encode(), {**headers, "Content-Type": "application/json"}, timeout_s)


def ask_form(url: str, *, form: Mapping[str, str], timeout_s: float) -> Any:
    """POST `form` as a web form does, for OAuth; returns the parsed answer. Raises WebError, CANCELLED."""
    data = urlencode(form).encode()
    return _ask(url, data, {"Content-Type": "application/x-www-form-urlencoded"}, timeout_s)


def quote_for_path(text: str) -> str:
    """Text as one part of a URL's path."""
    return quote(text, safe="")


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


def _ask(url: str, data: Optional[bytes], headers: dict[str, str], timeout_s: float) -> Any:
    _check_request(url, headers)
    headers = {"Accept": "application/json", "User-Agent": f"peekaboo_min/{__version__}", **headers}
    raw = _fetch(url, data, headers, timeout_s)
    try:
        return json.loads(raw, parse_constant=lambda _name: None)  # NaN and Infinity are not JSON
    except (ValueError, RecursionError):
        what = "a web page" if raw.lstrip()[:1] == b"<" else "something that is not JSON"
        raise WebError("malformed", f"{host_of(url)} answered with {what}") from None


def _check_request(url: str, headers: Mapping[str, str]) -> None:
    """Refuse what urllib would refuse with the whole URL or the key in its message."""
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
        is_fine = has_host and parts.scheme in ("http", "https")
    except ValueError:  # a port that is not a number
        is_fine = False
    if not is_fine or not url.isascii() or re.search(r"[\x00-\x20\x7f]", url):
        raise WebError("invalid", _NO_ADDRESS)
    for name, value in headers.items():
        if not value.isascii() or not value.isprintable():
            raise WebError("invalid", f"the value for the header {name} holds characters that cannot be sent")


def _fetch(url: str, data: Optional[bytes], headers: dict[str, str], timeout_s: float) -> bytes:
    """The answer's bytes, fetched by a thread that is abandoned when time is up or the call is cancelled.

    A socket's own timeout starts anew with every byte: a slow server could keep us waiting for ever.
    """
    answers: list[bytes] = []  # one item here or there, once `done` is set
    errors: list[Exception] = []
    done = threading.Event()
    handler = _Handler()

    def work() -> None:
        try:
            answers.append(_exchange(Request(url, data, headers), timeout_s, handler))
        except Exception as e:  # raised again below, in the calling thread
            errors.append(e)
        done.set()

    threading.Thread(target=work, name="web request", daemon=True).start()
    deadline = time.monotonic() + timeout_s
    try:
        while not done.wait(max(0.0, min(_POLL_S, deadline - time.monotonic()))):
            check_cancelled()
            if time.monotonic() >= deadline:
                message = f"{host_of(url)} did not answer within {round(timeout_s, 2):g} seconds"
                raise WebError("timeout", message)
    finally:
        for each in () if done.is_set() else handler.sockets:
            with suppress(OSError):  # it may be closed already
                each.shutdown(SHUT_RDWR)  # wakes the thread that reads from it; a model stops writing
    if errors:
        # kept by no frame: in older Pythons its traceback holds the socket that a proxy's refusal leaves open
        raise _as_web_error(errors.pop(), url) from None
    return answers[0]


class _Handler(HTTPHandler, HTTPSHandler):
    """Opens http and https, and keeps the sockets."""

    def __init__(self) -> None:
        super().__init__()
        self.sockets: list[socket] = []

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(self._keeping(HTTPConnection), req)

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(self._keeping(HTTPSConnection), req)

    def _keeping(self, kind: Any) -> Any:
        class Connection(kind):  # type: ignore[misc]
            def connect(connection) -> None:
                super().connect()
                self.sockets.append(connection.sock)

        return Connection


def _exchange(request: Request, timeout_s: float, handler: _Handler) -> bytes:
    """One request and its whole answer, through the environment's proxy where there is one."""
    url = request.full_url
    # not build_opener: that opens file:, ftp: and data: as well, and follows redirects with the key
    opener = OpenerDirector()
    proxies = ProxyHandler({}) if is_loopback(url) else ProxyHandler()
    for each in (proxies, handler, HTTPErrorProcessor(), HTTPDefaultErrorHandler()):
        opener.add_handler(each)
    try:
        # later than the caller's own deadline, which reports the timeout
        with opener.open(request, timeout=timeout_s + 1) as answer:
            raw: bytes = answer.read(_ANSWER_CAP + 1)
            if len(raw) > _ANSWER_CAP:
                raise WebError("too_large", f"{host_of(url)} answered with more than {_ANSWER_CAP} bytes")
            if answer.length:  # what is still missing of the length that it announced
                raise ConnectionResetError
            return raw
    except HTTPError as e:
        with e:
            raise _status_error(url, e.code, e.headers, e.read(_ERROR_CAP)) from None


def _status_error(url: str, status: int, headers: Any, raw: bytes) -> WebError:
    if 300 <= status < 400:
        target = host_of(headers.get("Location") or "") or "another address"
        return WebError("redirect", f"{host_of(url)} redirects to {target}, which is not followed", status)
    text = raw.decode("utf-8", "replace")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = "" if text.lstrip().startswith("<") else text
    message = f"{host_of(url)} answered with status {status}"
    return WebError("status", message, status, body, _read_retry_after(headers.get("Retry-After")))


def _read_retry_after(value: Optional[str]) -> Optional[float]:
    """Retry-After, a number or an HTTP date, in seconds from now; None for neither."""
    if not value:
        return None
    with suppress(ValueError):
        seconds = float(value)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _as_web_error(error: Exception, url: str) -> Exception:
    """What went wrong below HTTP, as a WebError; a bug of ours stays as it is."""
    host = host_of(url)
    if isinstance(error, URLError) and isinstance(error.reason, Exception):
        error = error.reason
    if isinstance(error, SSLCertVerificationError):
        return WebError("untrusted", f"the certificate of {host} is not trusted: {error.verify_message}")
    if isinstance(error, (UnicodeError, InvalidURL)):  # a label of the host name is too long; a bad proxy
        return WebError("invalid", _NO_ADDRESS)
    if isinstance(error, (ConnectionResetError, BrokenPipeError, ConnectionAbortedError, HTTPException)):
        return WebError("closed", f"{host} closed the connection before its answer was complete")
    if isinstance(error, ConnectionRefusedError):
        return WebError("unreachable", f"connection refused by {host}")
    if isinstance(error, ValueError):  # a chunk of a negative size, for instance
        return WebError("malformed", f"{host} answered with something that is not HTTP")
    if isinstance(error, OSError):
        return WebError("unreachable", f"{host} cannot be reached: {error.strerror or type(error).__name__}")
    return error

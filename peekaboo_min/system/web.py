"""Send JSON requests to web servers. No other module imports urllib.request."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, InvalidURL
from ipaddress import ip_address
from queue import Empty, SimpleQueue
from ssl import SSLCertVerificationError
from typing import Any, Optional, Union
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
from ..core.call import check_cancelled
from ..core.settings import without_secrets
from ..core.text import clean_text, parsed_json, seconds_text

# Bytes read of an error and of a reply: a server that never stops sending must not fill our memory.
_ERROR_CAP, _REPLY_CAP = 64 * 1024, 16 * 1024 * 1024
_POLL_S = 0.05  # how late a cancelled call may return
_BASE64 = re.compile(r"[A-Za-z0-9+/_=-]{64,}")  # an image of the request, quoted in an error
_NO_ADDRESS = "the address is not a plain http or https URL"
_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")


@dataclass(eq=False)
class WebError(Exception):
    """A failed request. The caller turns it into a PeekabooError.

    kind:
      unreachable  no connection
      closed       the connection ended before the reply was complete
      timeout
      redirect     not followed
      status       an HTTP error, see `status` and `body`
      malformed    the reply is no JSON, or too large
      untrusted    the server's certificate was rejected
      invalid      the URL or a header is invalid; nothing was sent
    status: 0 without an HTTP error. body: the error reply as JSON, else as text; empty for a web page.
    retry_after_s: None if the server sent none. The message contains nothing of the request except its host.
    """

    kind: str
    message: str
    status: int = 0
    body: Any = None
    retry_after_s: Optional[float] = None


def ask_json(url: str, *, headers: Mapping[str, str], body: Any = None, timeout_s: float) -> Any:
    """Send one request and return the parsed JSON reply.

    body: bytes are posted as a web form, anything else as JSON; None sends a GET. timeout_s: for the whole
    exchange. Raises WebError, CANCELLED.
    """
    # check here: urllib's own errors contain the whole URL or the key
    is_plain = re.fullmatch(r"https?://[!-~]+", url, re.IGNORECASE) and host_of(url)
    if not is_plain or "@" in urlsplit(url).netloc:
        raise WebError("invalid", _NO_ADDRESS)
    if not all(value.isascii() and value.isprintable() for value in headers.values()):
        raise WebError("invalid", "a header, such as the key, contains characters that cannot be sent")
    common = {"Accept": "application/json", "User-Agent": f"peekaboo_min/{__version__}"}
    if body is not None and not isinstance(body, bytes):  # urllib itself labels bytes as a form
        common["Content-Type"] = "application/json"
        body = json.dumps(body).encode()
    request = Request(url, body, {**common, **headers})
    raw = _fetch(request, timeout_s)
    try:
        return parsed_json(raw)
    except ValueError:
        raise WebError("malformed", f"{host_of(url)} sent a reply that is not JSON") from None


def host_of(url: str) -> str:
    """Return a URL's host and port for messages, without user, path and query (secrets); empty if invalid."""
    try:
        return clean_text(urlsplit(url).netloc.rpartition("@")[2])
    except ValueError:  # http://[bad
        return ""


def is_loopback(url: str) -> bool:
    return bool(_LOOPBACK.fullmatch(urlsplit(url).hostname or ""))


def is_local_address(url: str) -> bool:
    """Return True if the URL points to this machine or a private network, by address or by name."""
    with suppress(ValueError):  # no valid URL, or a name on the internet
        host = urlsplit(url).hostname or ""
        is_local_name = not re.search(r"[.:]", host) or host.endswith((".local", ".lan", ".internal"))
        return is_local_name or ip_address(host).is_private
    return False


def error_text(body: Any) -> str:
    """Return a server's own message in an error reply, as one line without keys and images; may be empty."""
    # OpenAI, Anthropic, Gemini: {"error": {"message"}} (Gemini also in a list); Ollama: {"error": "..."};
    # compatible servers: `detail` or `message`; OAuth servers: `error_description`
    body = body[0] if isinstance(body, list) and body else body
    while isinstance(body, dict):
        names = ("error_description", "error", "detail", "message")
        body = next((body[name] for name in names if body.get(name)), "")
    text = body if isinstance(body, str) else ""
    return clean_text(_BASE64.sub("...", without_secrets(text)), 400)


def _fetch(request: Request, timeout_s: float) -> bytes:
    # in a thread, abandoned on timeout: a slow server restarts a socket's own timeout with every byte
    results: SimpleQueue[Union[bytes, Exception]] = SimpleQueue()

    def exchange() -> None:
        try:
            results.put(_exchange(request, timeout_s))
        except Exception as e:  # raised below, in the calling thread
            results.put(_as_web_error(e, request.full_url))

    threading.Thread(target=exchange, name="web request", daemon=True).start()
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        check_cancelled()
        with suppress(Empty):
            result = results.get(timeout=_POLL_S)
            if isinstance(result, Exception):
                raise result
            return result
    raise WebError("timeout", f"{host_of(request.full_url)} did not answer within {seconds_text(timeout_s)}")


def _exchange(request: Request, timeout_s: float) -> bytes:
    url = request.full_url
    # not build_opener: it also opens file:, ftp: and data: URLs, and sends the key along with redirects
    opener = OpenerDirector()
    # ProxyHandler() uses the proxies that the environment names
    proxies = ProxyHandler({}) if is_loopback(url) else ProxyHandler()
    for handler in (proxies, HTTPHandler(), HTTPSHandler(), HTTPErrorProcessor(), HTTPDefaultErrorHandler()):
        opener.add_handler(handler)
    try:
        # one second more: _fetch reports the timeout
        with opener.open(request, timeout=timeout_s + 1) as reply:
            raw: bytes = reply.read(_REPLY_CAP + 1)
            if len(raw) <= _REPLY_CAP:
                return raw + bytes(reply.read())  # raises if the connection ended too early
    except HTTPError as e:
        with e:
            raise _status_error(url, e.code, e.headers, e.read(_ERROR_CAP)) from None
    raise WebError("malformed", f"{host_of(url)} sent more than {_REPLY_CAP} bytes")


def _status_error(url: str, status: int, headers: Any, raw: bytes) -> WebError:
    if 300 <= status < 400:
        target = host_of(headers.get("Location") or "") or "another address"
        message = f"{host_of(url)} redirects to {target}; redirects are not followed"
        return WebError("redirect", message, status)
    body: Any = raw.decode("utf-8", "replace")
    with suppress(ValueError):
        body = parsed_json(body)
    if isinstance(body, str) and body.lstrip().startswith("<"):  # a web page, unreadable in an error message
        body = ""
    retry_after_s = None
    with suppress(ValueError):  # HTTP also allows a date, which no model vendor sends
        retry_after_s = float(headers.get("Retry-After", ""))
    return WebError("status", f"{host_of(url)} answered with status {status}", status, body, retry_after_s)


def _as_web_error(error: Exception, url: str) -> Exception:
    host = host_of(url)
    if isinstance(error, URLError) and isinstance(error.reason, Exception):
        error = error.reason
    if isinstance(error, SSLCertVerificationError):
        return WebError("untrusted", f"the certificate of {host} is not trusted: {error.verify_message}")
    if isinstance(error, (UnicodeError, OverflowError, InvalidURL)):  # in the host, the port or the proxy
        return WebError("invalid", _NO_ADDRESS)
    if isinstance(error, (ConnectionResetError, BrokenPipeError, ConnectionAbortedError, HTTPException)):
        return WebError("closed", f"{host} closed the connection before its reply was complete")
    if isinstance(error, ConnectionRefusedError):
        return WebError("unreachable", f"connection refused by {host}")
    if isinstance(error, OSError):
        return WebError("unreachable", f"{host} cannot be reached: {error.strerror or type(error).__name__}")
    return error  # a bug

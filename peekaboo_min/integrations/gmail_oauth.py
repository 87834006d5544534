"""Google's permission to send mail: requested once, stored, renewed."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from ..core.cancellation import check_cancelled
from ..core.errors import ErrorCode, PeekabooError
from ..core.log import log_debug
from ..core.models import Result
from ..core.settings import platform_name, settings
from ..core.text import clean_text
from ..system.files import asked_path, state_folder, write_privately
from ..system.process import run_program
from ..system.programs import find_program
from ..system.web import WebError, ask_json

_SCOPE = "https://www.googleapis.com/auth/gmail.send"
_TOKEN_S = 15.0
_EARLY_S = 60.0  # a token that expires this soon is renewed before it is used
_LOGIN_HINT = "run peekaboo-min gmail-login"
_PAGE = (
    "<!doctype html><meta charset=utf-8><title>peekaboo-min</title>"
    "<p>{text}</p><p>You can close this page.</p>"
)


@dataclass(frozen=True)
class OAuthClient:
    """The client that credentials.json describes."""

    client_id: str
    client_secret: str = field(repr=False)
    auth_uri: str
    token_uri: str


@dataclass(frozen=True)
class GmailToken:
    """Google's permission. expires_at: of the access token, seconds since 1970."""

    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    expires_at: float

    @property
    def is_fresh(self) -> bool:
        return bool(self.access_token) and self.expires_at - _EARLY_S > time.time()


def gmail_folder() -> Path:
    """Where credentials.json and token.json live."""
    folder = settings().gmail_folder
    return asked_path(folder) if folder else state_folder() / "gmail"


def has_gmail_credentials() -> bool:
    """Whether there is a credentials.json: without one, send_email is not offered."""
    try:
        return os.path.isfile(gmail_folder() / "credentials.json")
    except PeekabooError:
        return False  # there is no such folder


def read_client() -> OAuthClient:
    """The client of credentials.json, from Google's console, of a desktop app. Raises FILE_IO_ERROR."""
    path = gmail_folder() / "credentials.json"
    try:
        client = json.loads(path.read_text(encoding="utf-8"))["installed"]
        return OAuthClient(
            *(client[name] for name in ("client_id", "client_secret", "auth_uri", "token_uri"))
        )
    except (OSError, ValueError, KeyError, TypeError) as e:
        hint = "create an OAuth client of the type Desktop app in Google's console and save its JSON there"
        message = f"{path} is missing, or describes no OAuth client for a desktop app"
        raise PeekabooError(ErrorCode.FILE_IO_ERROR, message, hint, details=str(e)) from e


def read_token() -> GmailToken:
    """The stored token; a file of Google's own Python library works too. Raises FILE_IO_ERROR."""
    path = gmail_folder() / "token.json"
    try:
        token = json.loads(path.read_text(encoding="utf-8"))
        expires_at = float(token.get("expires_at") or 0)
        return GmailToken(token.get("access_token", ""), token["refresh_token"], expires_at)
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as e:
        message = f"{path} is missing, or has no refresh token"
        raise PeekabooError(ErrorCode.FILE_IO_ERROR, message, _LOGIN_HINT, details=str(e)) from e


def renew_token(token: GmailToken) -> GmailToken:
    """A new access token, which is also stored. Raises FILE_IO_ERROR, PROGRAM_FAILED (permission revoked)."""
    form = {"grant_type": "refresh_token", "refresh_token": token.refresh_token}
    return _ask_for_token(read_client(), form)


def _ask_for_token(client: OAuthClient, form: dict[str, str]) -> GmailToken:
    """The token that Google gives for a code or a refresh token; it is stored in token.json (0600)."""
    credentials = {"client_id": client.client_id, "client_secret": client.client_secret}
    try:
        data = urlencode({**form, **credentials}).encode()
        answer = ask_json(client.token_uri, headers={}, body=data, timeout_s=_TOKEN_S)
        refresh_token = answer.get("refresh_token") or form["refresh_token"]  # a renewal returns no new one
        token = GmailToken(answer["access_token"], refresh_token, time.time() + answer["expires_in"])
    except WebError as e:
        body = e.body if isinstance(e.body, dict) else {}
        reason = clean_text(str(body.get("error_description") or body.get("error") or e.message))
        if body.get("error") == "invalid_grant":
            message = f"the permission is no longer valid ({reason})"
            raise google_error(message, f"{_LOGIN_HINT} again") from None
        hint = "check the network and credentials.json"
        raise google_error(f"Google sent no token: {reason}", hint) from None
    except (AttributeError, KeyError, TypeError):
        raise google_error("Google's answer has no token", "check token_uri in credentials.json") from None
    write_privately(gmail_folder() / "token.json", json.dumps(asdict(token)))
    return token


def google_error(message: str, hint: str) -> PeekabooError:
    """PROGRAM_FAILED, for a refusal of Google's or a failed connection to it."""
    return PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint)


def gmail_login(timeout_s: float = 300.0) -> Result:
    """Authorizes send_email to use your Gmail account: prints an address to open, waits for your consent,
    saves the token.

    Needs credentials.json (an OAuth client of the kind Desktop app) in the folder that PEEKABOO_GMAIL_FOLDER
    names.

    Example: peekaboo-min gmail-login
    """
    client = read_client()
    verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
    digest = hashlib.sha256(verifier.encode()).digest()
    with _RedirectServer(state) as server:
        query = {
            "client_id": client.client_id, "redirect_uri": server.url, "response_type": "code",
            "scope": _SCOPE, "state": state, "access_type": "offline", "prompt": "consent",
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }  # fmt: skip
        address = f"{client.auth_uri}?{urlencode(query)}"
        request = "Open this address in a browser on this machine, and grant the permission:"
        print(f"{request}\n{address}", file=sys.stderr, flush=True)
        threading.Thread(target=_open_browser, args=(address, timeout_s), daemon=True).start()
        answer = server.wait(timeout_s)
    if "code" not in answer:
        reason = clean_text(answer.get("error", "no code"))
        raise google_error(f"the permission was not granted ({reason})", f"{_LOGIN_HINT} again, and grant it")
    form = {"grant_type": "authorization_code", "code": answer["code"], "code_verifier": verifier}
    _ask_for_token(client, {**form, "redirect_uri": server.url})
    path = gmail_folder() / "token.json"
    text = f"logged in to Gmail, to send mail only; the token is stored in {path}"
    return Result(text, {"token_path": str(path)})


def _open_browser(address: str, timeout_s: float) -> None:
    """Runs in its own thread: xdg-open may run as long as the browser, which must outlive us."""
    try:
        is_mac = platform_name() == "macos"
        name = "open" if is_mac else "xdg-open"
        # without a display xdg-open would start a browser in the terminal
        if find_program(name) and (is_mac or settings().x_display or settings().wayland_display):
            run_program([name, address], timeout_s=timeout_s, accept=None, leaves_daemon=True)
    except PeekabooError as e:
        log_debug(f"no browser: {e.message}")  # the address is on stderr


class _RedirectServer(ThreadingHTTPServer):
    """A web server on the loopback for one redirect: ours, by its state. Anything else gets 404."""

    timeout = 0.1  # between two looks at the deadline

    def __init__(self, state: str) -> None:
        super().__init__(("127.0.0.1", 0), _RedirectHandler)
        self.state = state
        self.url = f"http://127.0.0.1:{self.server_port}/"
        self.answer: dict[str, str] = {}
        """The redirect's query, once it arrived."""

    def handle_error(self, *_: Any) -> None:
        """A browser that disconnected early is no error."""

    def wait(self, timeout_s: float) -> dict[str, str]:
        """The redirect's query. Raises TIMEOUT, CANCELLED."""
        deadline = time.monotonic() + timeout_s
        while not self.answer:
            check_cancelled()
            if time.monotonic() >= deadline:
                message = f"the permission was not granted in the browser within {timeout_s:g} seconds"
                raise PeekabooError(ErrorCode.TIMEOUT, message, f"{_LOGIN_HINT} again")
            self.handle_request()
        return self.answer


class _RedirectHandler(BaseHTTPRequestHandler):
    server: _RedirectServer
    timeout = 5  # browsers open connections that they never use

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        query = dict(parse_qsl(address.query))
        has_our_state = secrets.compare_digest(query.get("state", "").encode(), self.server.state.encode())
        if address.path != "/" or not has_our_state:
            self.send_error(404)
            return
        text = "peekaboo-min may now send mail." if "code" in query else "The permission was not granted."
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(_PAGE.format(text=text).encode())
        self.server.answer = query  # ends the wait, and perhaps the process

    def log_message(self, *_: Any) -> None:
        """Not to stderr: it would hold the code."""

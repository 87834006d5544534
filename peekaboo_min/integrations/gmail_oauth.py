"""Google's permission to send mail: requested once, stored, renewed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import secrets
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..core.cancellation import check_cancelled
from ..core.errors import ErrorCode, PeekabooError, file_error
from ..core.log import log_debug
from ..core.models import Result
from ..core.settings import platform_name, settings
from ..core.text import clean_text
from ..system.files import asked_path, state_folder, write_privately
from ..system.process import run_program
from ..system.programs import find_program
from ..system.web import WebError, ask_form

_SCOPE = "https://www.googleapis.com/auth/gmail.send"
_TOKEN_S = 15.0
_EARLY_S = 60.0  # a token that expires this soon is renewed before it is used
_POLL_CONSENT_S = 0.1
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
    asked = settings().gmail_folder
    return asked_path(asked) if asked else state_folder() / "gmail"


def has_gmail_credentials() -> bool:
    """Whether there is a credentials.json: without one, send_email is not offered."""
    try:
        return os.path.isfile(gmail_folder() / "credentials.json")
    except PeekabooError:
        return False  # there is no such folder


def read_client() -> OAuthClient:
    """The client of credentials.json, from Google's console, of a desktop app. Raises FILE_IO_ERROR."""
    path = gmail_folder() / "credentials.json"
    hint = f"create an OAuth client of the type Desktop app in Google's console and save its JSON as {path}"
    found = _read_json(path, hint)
    client = found.get("installed")
    names = ("client_id", "auth_uri", "token_uri")
    if not isinstance(client, dict) or not all(isinstance(client.get(name), str) for name in names):
        message = f"{path} does not describe an OAuth client for a desktop app"
        raise PeekabooError(ErrorCode.FILE_IO_ERROR, message, hint=hint)
    client_id, auth_uri, token_uri = (client[name] for name in names)
    return OAuthClient(client_id, str(client.get("client_secret") or ""), auth_uri, token_uri)


def _read_json(path: Path, hint: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PeekabooError(ErrorCode.FILE_IO_ERROR, f"there is no {path}", hint=hint) from None
    except OSError as e:
        raise file_error(path, e) from e
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise PeekabooError(ErrorCode.FILE_IO_ERROR, f"{path} is not a JSON object", hint=hint) from None
    return found


def read_token() -> GmailToken:
    """The stored token; a file of Google's own Python library works too. Raises FILE_IO_ERROR."""
    found = _read_json(gmail_folder() / "token.json", _LOGIN_HINT)
    refresh_token = found.get("refresh_token")
    if not isinstance(refresh_token, str) or not refresh_token:
        raise PeekabooError(ErrorCode.FILE_IO_ERROR, "token.json has no refresh token", hint=_LOGIN_HINT)
    expires_at = found.get("expires_at")
    until = float(expires_at) if isinstance(expires_at, (int, float)) else 0.0
    return GmailToken(str(found.get("access_token") or ""), refresh_token, until)


def _save_token(token: GmailToken) -> Path:
    """Write token.json (0600), atomically. Raises FILE_IO_ERROR."""
    path = gmail_folder() / "token.json"
    write_privately(path, json.dumps(asdict(token)))
    return path


def renew_token(token: GmailToken) -> GmailToken:
    """A new access token, which is also stored. Raises FILE_IO_ERROR, PROGRAM_FAILED (permission revoked)."""
    form = {"grant_type": "refresh_token", "refresh_token": token.refresh_token}
    renewed = _ask_for_token(read_client(), form, token.refresh_token)
    _save_token(renewed)
    return renewed


def _ask_for_token(client: OAuthClient, form: dict[str, str], refresh_token: str) -> GmailToken:
    whole = {**form, "client_id": client.client_id, "client_secret": client.client_secret}
    try:
        found = ask_form(client.token_uri, form=whole, timeout_s=_TOKEN_S)
    except WebError as e:
        raise _token_error(e) from None
    if not isinstance(found, dict) or not isinstance(found.get("access_token"), str):
        raise google_error("Google's answer has no token", "check token_uri in credentials.json")
    if _SCOPE not in str(found.get("scope", _SCOPE)).split():
        hint = f"{_LOGIN_HINT} again, and tick its box"
        raise google_error("the permission does not include sending mail", hint)
    refresh_token = found.get("refresh_token") or refresh_token  # a renewal returns no new one
    if not refresh_token:
        hint = f"remove the program at myaccount.google.com/permissions, then {_LOGIN_HINT} again"
        raise google_error("Google gave no refresh token", hint)
    lives_s = found.get("expires_in")
    expires_at = time.time() + (lives_s if isinstance(lives_s, (int, float)) else 0)
    return GmailToken(found["access_token"], refresh_token, expires_at)


def _token_error(error: WebError) -> PeekabooError:
    body = error.body if isinstance(error.body, dict) else {}
    code, text = str(body.get("error") or ""), clean_text(str(body.get("error_description") or ""))
    if code == "invalid_grant":
        return google_error(f"the permission is no longer valid ({text or code})", f"{_LOGIN_HINT} again")
    if code == "invalid_client":
        return google_error(f"Google does not know this client ({text or code})", "check credentials.json")
    what = f"{clean_text(code)} {text}".strip() if code else error.message
    return google_error(f"Google sent no token: {what}", "check the network and credentials.json")


def google_error(message: str, hint: str) -> PeekabooError:
    """PROGRAM_FAILED, for a refusal of Google's or a failed connection to it."""
    return PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint=hint)


def gmail_login(timeout_s: float = 300.0) -> Result:
    """Ask Google in a browser for the permission to send mail, and store it in token.json.

    The address is opened, and printed to stderr in case a browser has to be started by hand on this machine.
    timeout_s: how long to wait for the person there.
    Raises FILE_IO_ERROR (no credentials.json), TIMEOUT, PROGRAM_FAILED (denied), CANCELLED.
    """
    from urllib.parse import urlencode

    client = read_client()
    verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
    with _RedirectServer(state) as server:
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "client_id": client.client_id, "redirect_uri": server.url, "response_type": "code",
            "scope": _SCOPE, "state": state, "code_challenge": digest, "code_challenge_method": "S256",
            "access_type": "offline", "prompt": "consent",
        }  # fmt: skip
        separator = "&" if "?" in client.auth_uri else "?"
        address = f"{client.auth_uri}{separator}{urlencode(query)}"
        request = "Open this address in a browser on this machine, and grant the permission:"
        print(f"{request}\n{address}", file=sys.stderr, flush=True)
        threading.Thread(target=_open_browser, args=(address, timeout_s), daemon=True).start()
        answer = server.wait(timeout_s)
    if "code" not in answer:
        reason = clean_text(answer.get("error", "no code"))
        raise google_error(f"the permission was not granted ({reason})", f"{_LOGIN_HINT} again, and grant it")
    form = {
        "grant_type": "authorization_code",
        "code": answer["code"],
        "redirect_uri": server.url,
        "code_verifier": verifier,
    }
    path = _save_token(_ask_for_token(client, form, ""))
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


class _RedirectServer:
    """A web server on the loopback that accepts one redirect: ours, by its state. Anything else gets 404."""

    def __init__(self, state: str) -> None:
        self._state = state
        self._answers: list[dict[str, str]] = []
        self._is_answered = False
        self._foreign_redirects = 0

    def __enter__(self) -> _RedirectServer:
        from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

        outer = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 5  # browsers open connections that they never use

            def do_GET(self) -> None:
                outer._answer(self)

            do_POST = do_HEAD = do_GET

            def log_message(self, *_: Any) -> None:
                pass  # it would write the code to stderr

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            timeout = _POLL_CONSENT_S

            def handle_error(self, *_: Any) -> None:
                pass  # a browser that disconnected early

        self._server = Server(("127.0.0.1", 0), Handler)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def _answer(self, request: Any) -> None:
        from urllib.parse import parse_qsl, urlsplit

        found = dict(parse_qsl(urlsplit(request.path).query))
        has_our_state = hmac.compare_digest(
            found.get("state", "").encode("utf-8", "replace"), self._state.encode()
        )
        is_redirect = request.command == "GET" and request.path.startswith("/?")
        if not has_our_state or self._is_answered or not is_redirect:
            self._foreign_redirects += "state" in found and not has_our_state
            request.send_error(404)
            return
        self._is_answered = True
        try:
            self._show_page(request, found)
        finally:
            self._answers.append(found)  # ends the wait, and perhaps the process

    def _show_page(self, request: Any, found: dict[str, str]) -> None:
        text = "peekaboo-min may now send mail." if "code" in found else "The permission was not granted."
        page = _PAGE.format(text=text).encode()
        request.send_response(200)
        request.send_header("Content-Type", "text/html; charset=utf-8")
        request.send_header("Content-Length", str(len(page)))
        request.end_headers()
        request.wfile.write(page)

    def wait(self, timeout_s: float) -> dict[str, str]:
        """The redirect's query. Raises TIMEOUT, CANCELLED."""
        deadline = time.monotonic() + timeout_s
        while not self._answers:
            check_cancelled()
            if time.monotonic() >= deadline:
                note = " (a redirect of another login arrived)" if self._foreign_redirects else ""
                message = f"the permission was not granted in the browser within {timeout_s:g} seconds{note}"
                raise PeekabooError(ErrorCode.TIMEOUT, message, hint=f"{_LOGIN_HINT} again")
            self._server.handle_request()
        return self._answers[0]

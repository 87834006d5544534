"""Send mail through Gmail: the tool send_email and the command gmail-login."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import secrets
import sys
import time
from contextlib import suppress
from email.message import EmailMessage
from email.policy import SMTP
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any, Optional
from urllib.parse import parse_qsl, urlencode, urlsplit

from ..automation.policy import check_may_act, write_audit_line
from ..core.call import check_cancelled
from ..core.errors import ErrorCode, PeekabooError, file_errors, invalid
from ..core.models import Result
from ..core.settings import platform_name, settings
from ..core.text import clean_text, parsed_json, seconds_text
from ..system.files import absolute_path, write_privately
from ..system.process import program_path, run_program
from ..system.web import WebError, ask_json, error_text

_SCOPE = "https://www.googleapis.com/auth/gmail.send"
_LOGIN_HINT = "run peekaboo-min gmail-login"
# One plain address: ASCII, no quotes, no route. Gmail refuses other invalid addresses.
_ADDRESS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@([A-Za-z0-9-]{1,63}\.)+[A-Za-z0-9-]{2,63}")
# Refuse encoded words (RFC 2047), too: Python would decode them, including line breaks, into a header.
_UNSENDABLE = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]|=\?.*\?=")
_LONGEST_SUBJECT = 900  # a header line has at most 998 bytes (RFC 5322)
_google_error = partial(PeekabooError, ErrorCode.PROGRAM_FAILED)
_PAGE = b"<!doctype html><title>peekaboo-min</title><p>peekaboo-min got the reply: you can close this page."


def gmail_folder() -> Path:
    """Return the folder of credentials.json and token.json."""
    data = "~/Library/Application Support" if platform_name() == "macos" else settings().data_home
    return absolute_path(settings().gmail_folder or f"{data}/peekaboo_min/gmail")


def gmail_state() -> str:
    """Describe the login for a report. Raises FILE_IO_ERROR, with the next step, if mail cannot be sent."""
    _read_client()
    _read_refresh_token()
    return f"logged in; the credentials are in {gmail_folder()}"


def has_gmail_credentials() -> bool:
    """Return True if credentials.json exists; otherwise send_email is not offered."""
    try:
        return os.path.isfile(gmail_folder() / "credentials.json")
    except PeekabooError:
        return False  # the folder's path is invalid


def send_email(
    to: Annotated[str, "one address: ann@example.org, or Ann <ann@example.org>"],
    subject: Annotated[str, "the subject: one line of any Unicode, at most 900 characters"],
    body: Annotated[str, "the mail as plain text, any Unicode"],
    body_html: Annotated[
        Optional[str], "the same as HTML, for readers that show it; default: plain text only"
    ] = None,
) -> Result:
    """Send one e-mail from the Gmail account that you logged in to with gmail-login.

    It is sent at once and cannot be recalled.

    Example: peekaboo-min send-email ann@example.org "Hello" "How are you?"
    """
    # Raises INVALID_ARGUMENT, POLICY_DENIED, FILE_IO_ERROR (not logged in), PROGRAM_FAILED (Gmail refuses)
    named = re.fullmatch(r'(?:"[^"<>]*"|[^<>@,:;"]*) *<([^<>]*)> *', to)
    address = named[1] if named else to.strip(" ")
    if not _ADDRESS.fullmatch(address) or _UNSENDABLE.search(to):
        message = f"{clean_text(to, 80)!r} is not an e-mail address"
        raise invalid(message, "give one address, such as ann@example.org")
    raw = _mail(address, subject, body, body_html)
    check_may_act("send_email")
    refresh_token = _read_refresh_token()
    answer = _ask_for_token(_read_client(), grant_type="refresh_token", refresh_token=refresh_token)
    write_audit_line("send_email", {"to": address})
    message_id = _send(raw, answer["access_token"])
    data = {"to": address, "id": message_id}
    return Result(f"EMAIL_SENT: to={address}, id={message_id}", data, is_text_only=True)


def _mail(to: str, subject: str, body: str, body_html: Optional[str]) -> bytes:
    if len(subject) > _LONGEST_SUBJECT or _UNSENDABLE.search(subject):
        message = "the subject is too long, or has line breaks, control characters or encoded words"
        raise invalid(message, f"write one line of plain Unicode, at most {_LONGEST_SUBJECT} characters")
    mail = EmailMessage(policy=SMTP.clone(cte_type="7bit"))
    try:
        mail["To"] = to
        mail["Subject"] = subject
        mail.set_content(body)
        if body_html:
            mail.add_alternative(body_html, subtype="html")
        return mail.as_bytes()
    except UnicodeEncodeError:
        message = "the mail contains a lone surrogate, which is only half a character"
        raise invalid(message, "send complete Unicode characters") from None


def _send(raw: bytes, access_token: str) -> str:
    """Send the mail once and return its id. Never retry: the mail might arrive twice."""
    url = settings().gmail_base_url.rstrip("/") + "/gmail/v1/users/me/messages/send"
    headers = {"Authorization": f"Bearer {access_token}"}
    body = {"raw": base64.urlsafe_b64encode(raw).decode()}
    hint = "check the sent mails before you try again"
    try:
        sent = ask_json(url, headers=headers, body=body, timeout_s=40.0)
    except WebError as e:
        if e.status in (401, 403):
            hint = f"{_LOGIN_HINT} again, and check that the Gmail API is enabled in Google's console"
        what = f"rejected the mail with status {e.status}" if e.status else "did not confirm the mail"
        raise _google_error(f"Gmail {what}: {error_text(e.body) or e.message}", hint) from None
    if not (isinstance(sent, dict) and sent.get("id")):
        raise _google_error("Gmail did not confirm the mail: its reply has no id", hint)
    return clean_text(str(sent["id"]))


def _stored(name: str, hint: str, *keys: str) -> str:
    path = gmail_folder() / name
    with file_errors(path.parent):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # the error below names the folder
    try:
        value = parsed_json(path.read_bytes())
        for key in keys:
            value = value[key]
        if not (isinstance(value, str) and value):
            raise ValueError(f"{value!r:.40} is not a text")
        return value
    except (OSError, ValueError, KeyError, TypeError) as e:
        message = f"{path} is missing, or has no {'.'.join(keys)!r}"
        raise PeekabooError(ErrorCode.FILE_IO_ERROR, message, hint, details=str(e)) from e


def _read_refresh_token() -> str:
    return _stored("token.json", _LOGIN_HINT, "refresh_token")


def _read_client() -> dict[str, str]:
    """Read the OAuth client of a desktop app, as Google's console saves it. Raises FILE_IO_ERROR."""
    hint = "create an OAuth client of the type Desktop app in Google's console and save its JSON there"
    keys = ("client_id", "client_secret", "auth_uri", "token_uri")
    return {key: _stored("credentials.json", hint, "installed", key) for key in keys}


def _ask_for_token(client: dict[str, str], **form: str) -> dict[str, Any]:
    """Exchange a code or a refresh token for an access token. Raises PROGRAM_FAILED."""
    form.update(client_id=client["client_id"], client_secret=client["client_secret"])
    hint = f"{_LOGIN_HINT} again, or check the network and credentials.json"
    try:
        token = ask_json(client["token_uri"], headers={}, body=urlencode(form).encode(), timeout_s=15.0)
    except WebError as e:
        raise _google_error(f"Google sent no token: {error_text(e.body) or e.message}", hint) from None
    if not (isinstance(token, dict) and token.get("access_token")):
        raise _google_error("Google sent no token: its reply has none", hint)
    return token


def gmail_login(timeout_s: float = 300.0) -> Result:
    """Authorize send_email: print an address to open, wait for your consent in the browser, save the token.

    Needs credentials.json (an OAuth client of the type Desktop app) in the folder PEEKABOO_GMAIL_FOLDER.

    Example: peekaboo-min gmail-login
    """
    client = _read_client()
    verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
    digest = hashlib.sha256(verifier.encode()).digest()
    with _RedirectServer(state) as server:
        redirect_uri = f"http://127.0.0.1:{server.server_port}/"
        query = {
            "client_id": client["client_id"], "redirect_uri": redirect_uri, "response_type": "code",
            "scope": _SCOPE, "state": state, "access_type": "offline", "prompt": "consent",
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }  # fmt: skip
        address = f"{client['auth_uri']}?{urlencode(query)}"
        request = "Open this address in a browser on this machine, and grant the permission:"
        print(f"{request}\n{address}", file=sys.stderr, flush=True)
        _open_browser(address)
        reply = server.wait(timeout_s)
    again = f"{_LOGIN_HINT} again, and grant it"
    code = reply.get("code")
    if not code:
        reason = clean_text(reply.get("error", "no code"))
        raise _google_error(f"the permission was not granted ({reason})", again)
    form = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier}
    token = _ask_for_token(client, redirect_uri=redirect_uri, **form)
    if _SCOPE not in str(token.get("scope")).split() or not token.get("refresh_token"):
        raise _google_error("Google granted no lasting permission to send mail", again)
    path = gmail_folder() / "token.json"
    write_privately(path, json.dumps({"refresh_token": token["refresh_token"]}))
    text = f"logged in to Gmail, to send mail only; the token is stored in {path}"
    return Result(text, {"token_path": str(path)})


def _open_browser(address: str) -> None:
    """Open the address in a browser that outlives us, by a shell: xdg-open may run as long as the browser."""
    opener = "open" if platform_name() == "macos" else "xdg-open"
    # without a display, xdg-open would start a browser in the terminal
    if opener == "open" or settings().x_display or settings().wayland_display:
        with suppress(PeekabooError):  # the address is on stderr
            argv = ["/bin/sh", "-c", '"$@" &', "sh", program_path(opener), address]
            run_program(argv, timeout_s=10.0, leaves_daemon=True)


class _RedirectServer(ThreadingHTTPServer):
    """A server on this machine that waits for the browser's redirect. `reply` is its query, once it came."""

    timeout = 0.1  # seconds between two checks of the deadline

    def __init__(self, state: str) -> None:
        super().__init__(("127.0.0.1", 0), _RedirectHandler)
        self.state = state  # proves that the redirect belongs to this login
        self.reply: dict[str, str] = {}

    def wait(self, timeout_s: float) -> dict[str, str]:
        deadline = time.monotonic() + timeout_s
        while not self.reply:
            check_cancelled()
            if time.monotonic() >= deadline:
                message = f"the permission was not granted in the browser within {seconds_text(timeout_s)}"
                raise PeekabooError(ErrorCode.TIMEOUT, message, f"{_LOGIN_HINT} again")
            self.handle_request()
        return self.reply

    def handle_error(self, *_: Any) -> None:
        """Print no traceback for a connection that closes early or sends no valid request."""


class _RedirectHandler(BaseHTTPRequestHandler):
    server: _RedirectServer
    timeout = 5  # browsers open connections that they never use

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        query = dict(parse_qsl(address.query))
        if address.path != "/" or query.get("state") != self.server.state:
            self.send_error(404)
            return
        with suppress(OSError):  # the browser may be gone
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(_PAGE)
        self.server.reply = query  # last: it ends the wait, and perhaps the process

    def log_message(self, *_: Any) -> None:
        """Log nothing: the line would contain the code."""

"""Google's OAuth for installed apps and Gmail's send, in one HTTP server on the loopback.

    with FakeGoogle() as google:
        credentials.write_text(google.credentials_json())
        ...                                  # the program prints or opens an address
        consent(address)                     # the user consents in the browser
        assert google.sent[0].subject == "Hello"

`python fake_google.py ADDRESS` plays the same browser, for a BROWSER variable.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import re
import secrets
import sys
import time
from dataclasses import dataclass, field
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Any, Optional
from urllib.parse import parse_qsl, urlencode, urlsplit

from fake_ai.loopback import Call, LoopbackServer, Refusal

SCOPE = "https://www.googleapis.com/auth/gmail.send"
SEND_PATH = "/gmail/v1/users/me/messages/send"
_TOO_NARROW = "Request had insufficient authentication scopes."
FAILURES = {  # kind: status, Google's status, reason, message
    "insufficient_scope": (403, "PERMISSION_DENIED", "insufficientPermissions", _TOO_NARROW),
    "rate_limited": (429, "RESOURCE_EXHAUSTED", "rateLimitExceeded", "User-rate limit exceeded."),
}
# Required parameters of a consent address: name, a pattern, Google's error for any other value.
_AUTH_RULES = (
    ("redirect_uri", r"http://(127\.0\.0\.1|localhost|\[::1\]):\d+(/.*)?", "redirect_uri_mismatch"),
    ("response_type", "code", "unsupported_response_type"),
    ("scope", re.escape(SCOPE), "invalid_scope"),
    ("code_challenge_method", "S256", "invalid_request"),
    ("code_challenge", "[A-Za-z0-9_-]{43}", "invalid_request"),  # SHA-256 in base64url without padding
    ("state", ".+", "invalid_request"),
    ("access_type", "offline", "invalid_request"),  # without it there is no refresh token
)


@dataclass(frozen=True)
class SentMail:
    id: str
    to: tuple[str, ...]  # the addresses alone
    subject: str
    plain: Optional[str]  # None without such a part
    html: Optional[str]
    raw: bytes
    message: EmailMessage


@dataclass(frozen=True)
class GoogleRequest:
    method: str
    path: str
    headers: dict[str, str]  # lower-case names
    params: dict[str, Any]  # of the query, the form or the JSON body


@dataclass(frozen=True)
class Page:
    """The page that the browser shows at the end: our program's own, or Google's error page."""

    status: int
    body: str


@dataclass
class Grant:
    """A consent of one user."""

    challenge: str
    redirect_uri: str
    code: Optional[str]  # None after the exchange, which works only once
    refresh_token: str = field(default_factory=lambda: "1//fake-" + secrets.token_urlsafe(24))
    access_tokens: dict[str, float] = field(default_factory=dict)  # token: when it expires, by time.monotonic
    revoked: bool = False


class FakeGoogle:
    """Google's servers; the attributes change their answers. expires_in: an access token's seconds."""

    def __init__(self) -> None:
        self.client_id = "1234567890-fake.apps.googleusercontent.com"
        self.client_secret = "fake-client-secret"
        self.user_denies = False
        self.wrong_state = False
        self.expires_in = 3599
        self.scope = SCOPE
        self.gives_refresh_token = True
        self.sent: list[SentMail] = []
        self.requests: list[GoogleRequest] = []
        self.grants: list[Grant] = []
        self._failures: list[str] = []

    def __enter__(self) -> FakeGoogle:
        self._server = LoopbackServer(self._answer)
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self._server.close()
        if kind is None and self._server.crashes:
            raise self._server.crashes[0]

    @property
    def url(self) -> str:
        return self._server.url

    def credentials_json(self) -> str:
        """Return the client_secret_….json of a desktop app, with this server's addresses."""
        client = {
            "client_id": self.client_id,
            "auth_uri": self.url + "/o/oauth2/v2/auth",
            "token_uri": self.url + "/token",
            "client_secret": self.client_secret,
        }
        return json.dumps({"installed": client})

    def sign_in(self) -> dict[str, Any]:
        """Return a token granted earlier, in the format of /token, for tests of a stored token.json."""
        grant = Grant("", "", None)
        self.grants.append(grant)
        return {**self._new_access(grant), "refresh_token": grant.refresh_token}

    def revoke(self) -> None:
        for grant in self.grants:
            grant.revoked = True

    def fail_with(self, kind: str) -> None:
        """Let the next send fail (see FAILURES)."""
        self._failures.append(kind)

    # answering

    def _answer(self, call: Call) -> None:
        parts = urlsplit(call.path)
        headers = {name.lower(): value for name, value in call.headers.items()}
        request = GoogleRequest(call.command, parts.path, headers, _params(call, headers, parts.query))
        self.requests.append(request)
        route = {
            ("GET", "/o/oauth2/v2/auth"): self._auth,
            ("POST", "/token"): self._token,
            ("POST", SEND_PATH): self._send,
        }.get((request.method, request.path))
        try:
            if route is None:
                raise _api_error(404, "NOT_FOUND", "notFound", "Requested entity was not found.")
            answer = route(request)
            if isinstance(answer, str):
                call.send(302, b"", {"Location": answer})
            else:
                call.send(200, answer)
        except Refusal as refusal:
            call.send(refusal.status, refusal.body, refusal.headers)

    def _auth(self, request: GoogleRequest) -> str:
        asked = request.params
        if asked.get("client_id") != self.client_id:
            raise _page(401, "invalid_client")
        for name, pattern, code in _AUTH_RULES:
            if not re.fullmatch(pattern, asked.get(name, "")):
                raise _page(400, code)
        answer = {"state": "somebody-else's-state" if self.wrong_state else asked["state"]}
        if self.user_denies:
            answer["error"] = "access_denied"
        else:
            code = "4/0Fake-" + secrets.token_urlsafe(24)
            self.grants.append(Grant(asked["code_challenge"], asked["redirect_uri"], code))
            answer.update(code=code, scope=SCOPE)
        return f"{asked['redirect_uri']}?{urlencode(answer)}"

    def _token(self, request: GoogleRequest) -> dict[str, Any]:
        asked = request.params
        if asked.get("client_id") != self.client_id:
            raise _token_error(401, "invalid_client", "The OAuth client was not found.")
        if asked.get("client_secret") != self.client_secret:
            raise _token_error(401, "invalid_client", "The provided client secret is invalid.")
        if asked.get("grant_type") == "authorization_code":
            return self._exchange(asked)
        if asked.get("grant_type") != "refresh_token":
            raise _token_error(400, "unsupported_grant_type", "Invalid grant_type")
        grants = [grant for grant in self.grants if grant.refresh_token == asked.get("refresh_token")]
        if not grants:
            raise _token_error(400, "invalid_grant", "Bad Request")
        if grants[0].revoked:
            raise _token_error(400, "invalid_grant", "Token has been expired or revoked.")
        return self._new_access(grants[0])  # without a refresh_token: the client must keep the one it has

    def _exchange(self, asked: dict[str, Any]) -> dict[str, Any]:
        grant = next((each for each in self.grants if each.code and each.code == asked.get("code")), None)
        if grant is None:
            raise _token_error(400, "invalid_grant", "Malformed auth code.")
        if asked.get("redirect_uri") != grant.redirect_uri:
            raise _token_error(400, "redirect_uri_mismatch", "Bad Request")
        verifier = asked.get("code_verifier", "")
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        if not re.fullmatch(r"[A-Za-z0-9._~-]{43,128}", verifier) or digest != grant.challenge:
            raise _token_error(400, "invalid_grant", "Invalid code verifier.")
        grant.code = None
        answer = self._new_access(grant)
        return {**answer, "refresh_token": grant.refresh_token} if self.gives_refresh_token else answer

    def _new_access(self, grant: Grant) -> dict[str, Any]:
        token = "ya29.fake-" + secrets.token_urlsafe(24)
        grant.access_tokens[token] = time.monotonic() + self.expires_in
        lasts = {"expires_in": self.expires_in, "scope": self.scope, "token_type": "Bearer"}
        return {"access_token": token, **lasts}

    def _send(self, request: GoogleRequest) -> dict[str, Any]:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        expires = [grant.access_tokens.get(token, 0.0) for grant in self.grants if not grant.revoked]
        if scheme != "Bearer" or max(expires, default=0.0) <= time.monotonic():
            message = "Request had invalid authentication credentials. Expected OAuth 2 access token, login "
            message += "cookie or other valid authentication credential."
            raise _api_error(401, "UNAUTHENTICATED", "authError", message)
        if self._failures:
            raise _api_error(*FAILURES[self._failures.pop(0)])
        mail = read_mail(_raw(request))
        self.sent.append(mail)
        return {"id": mail.id, "threadId": mail.id, "labelIds": ["SENT"]}


def _params(call: Call, headers: dict[str, str], query: str) -> dict[str, Any]:
    params: dict[str, Any] = dict(parse_qsl(query, keep_blank_values=True))
    if headers.get("content-type", "").startswith("application/json"):
        return {**params, **json.loads(call.raw)}
    return {**params, **dict(parse_qsl(call.raw.decode("utf-8", "replace"), keep_blank_values=True))}


def _raw(request: GoogleRequest) -> bytes:
    raw = request.params.get("raw") or ""
    is_json = request.headers.get("content-type", "").startswith("application/json")
    # the URL-safe alphabet of base64
    if not is_json or not re.fullmatch(r"[A-Za-z0-9_-]+={0,2}", raw):
        message = "Invalid value at 'message.raw' (TYPE_BYTES), Base64 decoding failed"
        raise _api_error(400, "INVALID_ARGUMENT", "invalid", message)
    return base64.urlsafe_b64decode(raw + "==")


def read_mail(raw: bytes) -> SentMail:
    """Parse a mail like Gmail, which refuses a mail without a recipient."""
    message = BytesParser(policy=policy.default).parsebytes(raw)
    to = tuple(
        address.addr_spec
        for name in ("To", "Cc", "Bcc")
        for header in message.get_all(name, [])
        for address in header.addresses
    )
    if not to:
        raise _api_error(400, "INVALID_ARGUMENT", "invalidArgument", "Recipient address required")
    parts = {kind: message.get_body((kind,)) for kind in ("plain", "html")}
    texts = {kind: None if part is None else part.get_content() for kind, part in parts.items()}
    return SentMail(
        secrets.token_hex(8), to, str(message["Subject"] or ""), texts["plain"], texts["html"], raw, message
    )


def _api_error(status: int, name: str, reason: str, message: str) -> Refusal:
    errors = [{"message": message, "domain": "global", "reason": reason}]
    body = {"code": status, "message": message, "status": name, "errors": errors}
    return Refusal(status, {"error": body}, message)


def _token_error(status: int, code: str, description: str) -> Refusal:
    return Refusal(status, {"error": code, "error_description": description}, description)


def _page(status: int, code: str) -> Refusal:
    """Show the error to the user without a redirect, like Google for a broken request."""
    page = f"<html><body><h1>Error {status}: {code}</h1></body></html>"
    return Refusal(status, page.encode(), code, {"Content-Type": "text/html; charset=utf-8"})


def consent(address: str) -> Page:
    """Open the address as the user's browser would and follow Google's redirect to the program."""
    page, location = open_page(address)
    return page if location is None else open_page(location)[0]


def open_page(address: str) -> tuple[Page, Optional[str]]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    try:
        connection.request("GET", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
        answer = connection.getresponse()
        page = Page(answer.status, answer.read().decode("utf-8", "replace"))
        return page, answer.getheader("Location")
    finally:
        connection.close()


if __name__ == "__main__":
    consent(sys.argv[1])

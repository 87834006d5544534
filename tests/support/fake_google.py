"""Google's OAuth for installed apps and Gmail's send, in one HTTP server on the loopback.

    with FakeGoogle() as google:
        credentials.write_text(google.credentials_json())
        ...                                  # the program prints or opens an address
        google.consent(address)              # the user consents in the browser
        assert google.sent[0].subject == "Hello"

`python fake_google.py ADDRESS` plays the same browser, for a BROWSER variable.
"""

from __future__ import annotations

import base64
import binascii
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
FAILURES = {  # kind: status, Google's status, reason, message
    "insufficient_scope": (
        403,
        "PERMISSION_DENIED",
        "insufficientPermissions",
        "Request had insufficient authentication scopes.",
    ),
    "rate_limited": (429, "RESOURCE_EXHAUSTED", "rateLimitExceeded", "User-rate limit exceeded."),
    "server_error": (500, "INTERNAL", "backendError", "Internal error encountered."),
    "unavailable": (503, "UNAVAILABLE", "backendError", "The service is currently unavailable."),
}


@dataclass(frozen=True)
class SentMail:
    id: str
    headers: dict[str, str]  # decoded; a header that stands there twice is joined by a newline
    to: tuple[str, ...]  # the addresses alone
    subject: str
    plain: Optional[str]  # None: there is no such part
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
    """What the browser shows at the end: our program's own page, or Google's error page."""

    status: int
    body: str
    address: str


@dataclass
class Grant:
    """What one user allowed once."""

    challenge: str
    redirect_uri: str
    code: Optional[str]  # None: it has been exchanged, and cannot be again
    refresh_token: str = ""
    access_tokens: dict[str, float] = field(default_factory=dict)  # token: when it expires, by time.monotonic
    revoked: bool = False


class FakeGoogle:
    """Switches: user_denies, wrong_state, expires_in (seconds an access token lives), and what is granted:
    scope, gives_refresh_token.
    """

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
        self._failures: list[tuple[str, Optional[int]]] = []

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
        """The client_secret_….json that Google's console offers for a desktop app, pointing here."""
        return json.dumps(
            {
                "installed": {
                    "client_id": self.client_id,
                    "project_id": "fake-project",
                    "auth_uri": self.url + "/o/oauth2/v2/auth",
                    "token_uri": self.url + "/token",
                    "auth_provider_x509_cert_url": self.url + "/oauth2/v1/certs",
                    "client_secret": self.client_secret,
                    "redirect_uris": ["http://localhost"],
                }
            }
        )

    def consent(self, address: str, stray_request_first: bool = False) -> Page:
        """Open the address as the user's browser would and follow Google's redirect to the program.

        stray_request_first: ask the program for /favicon.ico before, as browsers and scanners do.
        """
        return browse(address, stray_request_first)

    def sign_in(self) -> dict[str, Any]:
        """A token that was granted earlier, as /token answers it: for tests of a stored token.json."""
        grant = Grant("", "", None)
        self.grants.append(grant)
        return {**self._new_access(grant), "refresh_token": grant.refresh_token}

    def expire_access_tokens(self) -> None:
        for grant in self.grants:
            grant.access_tokens = dict.fromkeys(grant.access_tokens, 0.0)

    def revoke(self) -> None:
        """The user takes every permission back."""
        for grant in self.grants:
            grant.revoked = True

    def fail_with(self, kind: str, times: Optional[int] = 1) -> None:
        """Let the next sends fail (see FAILURES); None: all of them."""
        if kind not in FAILURES:
            raise ValueError(f"no failure {kind!r}; there are {', '.join(FAILURES)}")
        self._failures += [(kind, None)] if times is None else [(kind, 1)] * times

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
        redirect = urlsplit(asked.get("redirect_uri", ""))
        if asked.get("client_id") != self.client_id:
            raise _page(401, "invalid_client", "The OAuth client was not found.")
        if (
            redirect.scheme != "http"
            or redirect.hostname not in ("127.0.0.1", "localhost", "::1")
            or not redirect.port
        ):
            raise _page(
                400,
                "redirect_uri_mismatch",
                "The redirect URI in the request does not match a loopback address with a port.",
            )
        if asked.get("response_type") != "code":
            raise _page(
                400, "unsupported_response_type", f"Invalid response_type: {asked.get('response_type', '')}"
            )
        if asked.get("scope") != SCOPE:
            raise _page(400, "invalid_scope", f"This client may ask for {SCOPE} and nothing else.")
        if asked.get("code_challenge_method") != "S256":
            raise _page(400, "invalid_request", "Only the code_challenge_method S256 will do here.")
        if not re.fullmatch(r"[A-Za-z0-9_-]{43}", asked.get("code_challenge", "")):
            raise _page(
                400, "invalid_request", "code_challenge is not a SHA-256 in base64url without padding."
            )
        if not asked.get("state"):
            raise _page(400, "invalid_request", "Missing required parameter: state")
        if asked.get("access_type") != "offline":
            raise _page(400, "invalid_request", "Without access_type=offline there is no refresh token.")
        state = "somebody-else's-state" if self.wrong_state else asked["state"]
        if self.user_denies:
            return f"{asked['redirect_uri']}?{urlencode({'error': 'access_denied', 'state': state})}"
        grant = Grant(asked["code_challenge"], asked["redirect_uri"], "4/0Fake-" + secrets.token_urlsafe(24))
        self.grants.append(grant)
        return f"{asked['redirect_uri']}?{urlencode({'state': state, 'code': grant.code, 'scope': SCOPE})}"

    def _token(self, request: GoogleRequest) -> dict[str, Any]:
        asked = request.params
        if "client_secret" not in asked:
            raise _token_error(400, "invalid_request", "client_secret is missing.")
        if asked.get("client_id") != self.client_id:
            raise _token_error(401, "invalid_client", "The OAuth client was not found.")
        if asked["client_secret"] != self.client_secret:
            raise _token_error(401, "invalid_client", "The provided client secret is invalid.")
        if asked.get("grant_type") == "authorization_code":
            return self._exchange(asked)
        if asked.get("grant_type") == "refresh_token":
            grant = next(
                (g for g in self.grants if g.refresh_token and g.refresh_token == asked.get("refresh_token")),
                None,
            )
            if grant is None:
                raise _token_error(400, "invalid_grant", "Bad Request")
            if grant.revoked:
                raise _token_error(400, "invalid_grant", "Token has been expired or revoked.")
            return self._new_access(grant)  # without a refresh_token: the client must keep the one it has
        raise _token_error(
            400, "unsupported_grant_type", f"Invalid grant_type: {asked.get('grant_type', '')}"
        )

    def _exchange(self, asked: dict[str, Any]) -> dict[str, Any]:
        grant = next((g for g in self.grants if g.code and g.code == asked.get("code")), None)
        if grant is None:
            raise _token_error(400, "invalid_grant", "Malformed auth code.")
        if asked.get("redirect_uri") != grant.redirect_uri:
            raise _token_error(400, "redirect_uri_mismatch", "Bad Request")
        verifier = asked.get("code_verifier", "")
        if not verifier:
            raise _token_error(400, "invalid_grant", "Missing code verifier.")
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        if not re.fullmatch(r"[A-Za-z0-9._~-]{43,128}", verifier) or digest != grant.challenge:
            raise _token_error(400, "invalid_grant", "Invalid code verifier.")
        grant.code = None
        answer = self._new_access(grant)
        return {**answer, "refresh_token": grant.refresh_token} if self.gives_refresh_token else answer

    def _new_access(self, grant: Grant) -> dict[str, Any]:
        grant.refresh_token = grant.refresh_token or "1//fake-" + secrets.token_urlsafe(24)
        token = "ya29.fake-" + secrets.token_urlsafe(24)
        grant.access_tokens[token] = time.monotonic() + self.expires_in
        return {
            "access_token": token,
            "expires_in": self.expires_in,
            "scope": self.scope,
            "token_type": "Bearer",
        }

    def _send(self, request: GoogleRequest) -> dict[str, Any]:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or not token:
            raise _api_error(
                401,
                "UNAUTHENTICATED",
                "required",
                "Request is missing required authentication credential. "
                "Expected OAuth 2 access token, login cookie or other valid authentication credential.",
            )
        expires = [
            grant.access_tokens[token]
            for grant in self.grants
            if token in grant.access_tokens and not grant.revoked
        ]
        if not expires or expires[0] <= time.monotonic():
            raise _api_error(
                401,
                "UNAUTHENTICATED",
                "authError",
                "Request had invalid authentication credentials. Expected "
                "OAuth 2 access token, login cookie or other valid authentication credential.",
            )
        if self._failures:
            kind, times = self._failures[0]
            if times is not None:
                self._failures.pop(0)
            status, name, reason, message = FAILURES[kind]
            raise _api_error(status, name, reason, message)
        mail = read_mail(_raw(request))
        self.sent.append(mail)
        return {"id": mail.id, "threadId": mail.id, "labelIds": ["SENT"]}


def _params(call: Call, headers: dict[str, str], query: str) -> dict[str, Any]:
    params: dict[str, Any] = dict(parse_qsl(query, keep_blank_values=True))
    if headers.get("content-type", "").startswith("application/json"):
        try:
            body = json.loads(call.raw or b"{}")
        except ValueError:
            body = {}
        return {**params, **(body if isinstance(body, dict) else {})}
    return {**params, **dict(parse_qsl(call.raw.decode("utf-8", "replace"), keep_blank_values=True))}


def _raw(request: GoogleRequest) -> bytes:
    raw = request.params.get("raw")
    if not request.headers.get("content-type", "").startswith("application/json") or not raw:
        raise _api_error(
            400,
            "INVALID_ARGUMENT",
            "invalidArgument",
            "'raw' RFC822 payload message string or uploading message via /upload/* URL required",
        )
    try:
        if not re.fullmatch(r"[A-Za-z0-9_-]+={0,2}", raw):  # the web's alphabet, not the standard one
            raise ValueError(raw)
        return base64.urlsafe_b64decode(raw.rstrip("=") + "=" * (-len(raw.rstrip("=")) % 4))
    except (binascii.Error, ValueError, TypeError):
        raise _api_error(
            400,
            "INVALID_ARGUMENT",
            "invalid",
            f"Invalid value at 'message.raw' (TYPE_BYTES), Base64 decoding failed for \"{str(raw)[:40]}\"",
        ) from None


def read_mail(raw: bytes) -> SentMail:
    """Parse a mail as Gmail does; one without a recipient is refused."""
    message = BytesParser(policy=policy.default).parsebytes(raw)
    headers: dict[str, str] = {}
    for name, value in message.items():
        headers[name] = f"{headers[name]}\n{value}" if name in headers else str(value)
    recipients = [
        address.addr_spec
        for name in ("To", "Cc", "Bcc")
        for header in message.get_all(name, [])
        for address in header.addresses
    ]
    if not recipients:
        raise _api_error(400, "INVALID_ARGUMENT", "invalidArgument", "Recipient address required")
    if not all(re.fullmatch(r"[^@\s]+@[^@\s]+", address) for address in recipients):
        raise _api_error(400, "INVALID_ARGUMENT", "invalidArgument", "Invalid To header")
    parts = {kind: message.get_body((kind,)) for kind in ("plain", "html")}
    texts = {kind: None if part is None else part.get_content() for kind, part in parts.items()}
    to = tuple(address.addr_spec for header in message.get_all("To", []) for address in header.addresses)
    return SentMail(
        secrets.token_hex(8),
        headers,
        to,
        str(message["Subject"] or ""),
        texts["plain"],
        texts["html"],
        raw,
        message,
    )


def _api_error(status: int, name: str, reason: str, message: str) -> Refusal:
    body = {
        "code": status,
        "message": message,
        "status": name,
        "errors": [{"message": message, "domain": "global", "reason": reason}],
    }
    if reason == "insufficientPermissions":
        body["details"] = [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "domain": "googleapis.com",
                "reason": "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
            }
        ]
    return Refusal(status, {"error": body}, message)


def _token_error(status: int, code: str, description: str) -> Refusal:
    return Refusal(status, {"error": code, "error_description": description}, description)


def _page(status: int, code: str, message: str) -> Refusal:
    """Google shows a broken request to the user and does not redirect."""
    page = f"<html><body><h1>Error {status}: {code}</h1><p>{message}</p></body></html>"
    return Refusal(status, page.encode(), message, {"Content-Type": "text/html; charset=utf-8"})


def browse(address: str, stray_request_first: bool = False) -> Page:
    page, location = _get(address)
    if location is None:
        return page
    if stray_request_first:
        _get("http://" + urlsplit(location).netloc + "/favicon.ico")
    return _get(location)[0]


def _get(address: str) -> tuple[Page, Optional[str]]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    try:
        connection.request("GET", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
        answer = connection.getresponse()
        return Page(answer.status, answer.read().decode("utf-8", "replace"), address), answer.getheader(
            "Location"
        )
    finally:
        connection.close()


if __name__ == "__main__":
    browse(sys.argv[1])

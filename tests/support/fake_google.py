"""Google's OAuth for installed apps and Gmail's send, in one HTTP server on the loopback.

    with FakeGoogle() as google:
        credentials.write_text(google.credentials_json())
        ...                                  # the program prints or opens an address
        consent(address)                     # the user consents in the browser
        assert google.sent[0].subject == "Hello"

`python fake_google.py ADDRESS` plays the same browser, for a BROWSER variable. test_gmail.py compares whole
requests with Google's documents.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import secrets
import sys
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Any, NamedTuple, Optional
from urllib.parse import parse_qsl, urlencode, urlsplit

from fake_ai.loopback import Call, LoopbackServer, Refusal

SCOPE = "https://www.googleapis.com/auth/gmail.send"
SEND_PATH = "/gmail/v1/users/me/messages/send"
_TOO_NARROW = "Request had insufficient authentication scopes."
_NO_LOGIN = "Request had invalid authentication credentials. Expected OAuth 2 access token."
FAILURES = {  # kind: status, Google's status, reason, message
    "no_login": (401, "UNAUTHENTICATED", "authError", _NO_LOGIN),
    "insufficient_scope": (403, "PERMISSION_DENIED", "insufficientPermissions", _TOO_NARROW),
    "rate_limited": (429, "RESOURCE_EXHAUSTED", "rateLimitExceeded", "User-rate limit exceeded."),
}


class SentMail(NamedTuple):
    id: str
    to: tuple[str, ...]  # the addresses alone
    subject: str
    plain: Optional[str]  # None without such a part
    html: Optional[str]
    raw: bytes
    message: EmailMessage


class GoogleRequest(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]  # lower-case names
    params: dict[str, Any]  # of the query, the form or the JSON body


class Page(NamedTuple):
    """The page that the browser shows at the end."""

    status: int
    body: str


class FakeGoogle:
    """Google's servers and their one user; the attributes change their answers."""

    def __init__(self) -> None:
        self.client_id = "1234567890-fake.apps.googleusercontent.com"
        self.client_secret = "fake-client-secret"
        self.user_denies = False
        self.wrong_state = False
        self.scope = SCOPE
        self.gives_refresh_token = True
        self.is_revoked = False
        self.left_out = ""  # a field that no answer has
        self.refresh_token = "1//fake-" + secrets.token_urlsafe(24)
        self.sent: list[SentMail] = []
        self.requests: list[GoogleRequest] = []
        self._codes: set[str] = set()  # each works once
        self._access_tokens: set[str] = set()
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

    def fail_with(self, kind: str) -> None:
        """Let the next send fail (see FAILURES)."""
        self._failures.append(kind)

    # answering

    def _answer(self, call: Call) -> None:
        parts = urlsplit(call.path)
        headers = {name.lower(): value for name, value in call.headers.items()}
        request = GoogleRequest(call.command, parts.path, headers, _params(call, headers, parts.query))
        self.requests.append(request)
        routes = {"/o/oauth2/v2/auth": self._auth, "/token": self._token, SEND_PATH: self._send}
        try:
            answer = routes[request.path](request)
            if isinstance(answer, str):
                call.send(302, b"", {"Location": answer})
            else:
                call.send(200, {name: value for name, value in answer.items() if name != self.left_out})
        except Refusal as refusal:
            call.send(refusal.status, refusal.body, refusal.headers)

    def _auth(self, request: GoogleRequest) -> str:
        asked = request.params
        answer = {"state": "somebody-else's-state" if self.wrong_state else asked["state"]}
        if self.user_denies:
            answer["error"] = "access_denied"
        else:
            code = "4/0Fake-" + secrets.token_urlsafe(24)
            self._codes.add(code)
            answer.update(code=code, scope=SCOPE)
        return f"{asked['redirect_uri']}?{urlencode(answer)}"

    def _token(self, request: GoogleRequest) -> dict[str, Any]:
        asked = request.params
        if asked["client_id"] != self.client_id:
            raise _token_error(401, "invalid_client", "The OAuth client was not found.")
        if asked["grant_type"] == "authorization_code":
            return self._exchange(asked["code"])
        if self.is_revoked or asked["refresh_token"] != self.refresh_token:
            raise _token_error(400, "invalid_grant", "Token has been expired or revoked.")
        return self._new_access()  # without a refresh_token: the client must keep the one it has

    def _exchange(self, code: str) -> dict[str, Any]:
        if code not in self._codes:
            raise _token_error(400, "invalid_grant", "Malformed auth code.")
        self._codes.remove(code)
        refresh_token = {"refresh_token": self.refresh_token} if self.gives_refresh_token else {}
        return {**self._new_access(), **refresh_token}

    def _new_access(self) -> dict[str, Any]:
        token = "ya29.fake-" + secrets.token_urlsafe(24)
        self._access_tokens.add(token)
        return {"access_token": token, "expires_in": 3599, "scope": self.scope, "token_type": "Bearer"}

    def _send(self, request: GoogleRequest) -> dict[str, Any]:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        is_logged_in = scheme == "Bearer" and token in self._access_tokens
        if self._failures or not is_logged_in:
            raise _api_error(*FAILURES[self._failures.pop(0) if is_logged_in else "no_login"])
        raw = request.params["raw"]
        assert re.fullmatch("[A-Za-z0-9_-]+={0,2}", raw), "base64 with the URL-safe alphabet"
        mail = read_mail(base64.urlsafe_b64decode(raw))
        self.sent.append(mail)
        return {"id": mail.id, "threadId": mail.id, "labelIds": ["SENT"]}


def _params(call: Call, headers: dict[str, str], query: str) -> dict[str, Any]:
    params: dict[str, Any] = dict(parse_qsl(query, keep_blank_values=True))
    if headers.get("content-type", "").startswith("application/json"):
        return {**params, **json.loads(call.raw)}
    return {**params, **dict(parse_qsl(call.raw.decode("utf-8", "replace"), keep_blank_values=True))}


def read_mail(raw: bytes) -> SentMail:
    message = BytesParser(policy=policy.default).parsebytes(raw)
    to = tuple(
        address.addr_spec
        for name in ("To", "Cc", "Bcc")
        for header in message.get_all(name, [])
        for address in header.addresses
    )
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

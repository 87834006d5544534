"""The fake Google refuses what the real one refuses, and fails in the ways that tests order."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Optional
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from fake_google import SCOPE, SEND_PATH, FakeGoogle
from worlds import PATIENCE_S


@pytest.fixture
def google() -> Iterator[FakeGoogle]:
    with FakeGoogle() as fake:
        yield fake


def post(url: str, data: bytes, headers: dict[str, str]) -> tuple[int, Any]:
    """The answer's status and JSON."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=PATIENCE_S) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        with e:
            return e.code, json.load(e)


class Program:
    """What gmail-login does: a listener on the loopback, and the address for the browser."""

    def __init__(self, google: FakeGoogle) -> None:
        got = self.got = []

        class Listener(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                got.append(self.path)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"You may close this page.")

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.google = google
        self.listener = HTTPServer(("127.0.0.1", 0), Listener)
        self.thread = threading.Thread(target=self.listener.serve_forever, args=(0.005,))
        self.thread.start()
        self.redirect_uri = f"http://127.0.0.1:{self.listener.server_address[1]}"
        self.verifier = "v" * 50
        self.installed = json.loads(google.credentials_json())["installed"]

    def address(self, **change: Optional[str]) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        parameters = {
            "client_id": self.installed["client_id"],
            "redirect_uri": self.redirect_uri,
            "response_type": "code",
            "scope": SCOPE,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
            "state": "my-state",
            "access_type": "offline",
            **change,
        }
        query = urlencode({name: value for name, value in parameters.items() if value is not None})
        return f"{self.installed['auth_uri']}?{query}"

    @property
    def answered(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.got[-1]).query).items()}

    def token(self, **form: str) -> tuple[int, Any]:
        client = {name: self.installed[name] for name in ("client_id", "client_secret")}
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return post(self.google.url + "/token", urlencode({**client, **form}).encode(), headers)

    def exchange(self, **change: str) -> tuple[int, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": self.answered["code"],
            "redirect_uri": self.redirect_uri,
            "code_verifier": self.verifier,
        }
        return self.token(**{**form, **change})


@pytest.fixture
def program(google: FakeGoogle) -> Iterator[Program]:
    program = Program(google)
    yield program
    program.listener.shutdown()
    program.listener.server_close()
    program.thread.join()


def send(google: FakeGoogle, raw: str, token: str = "") -> tuple[int, Any]:
    token = token or google.sign_in()["access_token"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return post(google.url + SEND_PATH, json.dumps({"raw": raw}).encode(), headers)


def mail(to: str = "ann@example.org") -> str:
    message = EmailMessage()
    message["Subject"] = "Grüße"
    if to:
        message["To"] = to
    message.set_content("Hallö")
    message.add_alternative("<b>Hallö</b>", subtype="html")
    return base64.urlsafe_b64encode(message.as_bytes()).decode()


def test_consent_brings_code_and_state_to_the_program(google: FakeGoogle, program: Program) -> None:
    page = google.consent(program.address(), stray_request_first=True)
    assert (page.status, page.body) == (200, "You may close this page.")
    assert (program.got[0], program.answered["state"]) == ("/favicon.ico", "my-state")
    status, token = program.exchange()
    fields = {"access_token", "refresh_token", "expires_in", "scope", "token_type"}
    assert (status, set(token)) == (200, fields)
    assert program.exchange()[0] == 400  # a code can be exchanged once


def test_consent_can_be_given_by_the_fake_as_a_program(google: FakeGoogle, program: Program) -> None:
    argv = [sys.executable, Path(__file__).with_name("fake_google.py"), program.address()]
    subprocess.run(argv, check=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    assert program.answered["state"] == "my-state"


@pytest.mark.parametrize(
    "change, excerpt",
    [
        ({"client_id": "somebody"}, "invalid_client"),
        ({"redirect_uri": "http://127.0.0.1"}, "redirect_uri_mismatch"),
        ({"redirect_uri": "http://example.org:80"}, "redirect_uri_mismatch"),
        ({"redirect_uri": "https://127.0.0.1:80"}, "redirect_uri_mismatch"),
        ({"redirect_uri": "urn:ietf:wg:oauth:2.0:oob"}, "redirect_uri_mismatch"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": SCOPE + " https://mail.google.com/"}, "invalid_scope"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"state": None}, "invalid_request"),
        ({"access_type": None}, "invalid_request"),
    ],
)
def test_wrong_address_is_shown_to_the_user_without_a_redirect(
    google: FakeGoogle, program: Program, change: dict, excerpt: str
) -> None:
    page = google.consent(program.address(**change))
    assert (page.status in (400, 401), excerpt in page.body, program.got) == (True, True, [])


def test_user_can_deny_and_a_wrong_state_can_come_back(google: FakeGoogle, program: Program) -> None:
    google.user_denies = True
    google.consent(program.address())
    assert program.answered == {"error": "access_denied", "state": "my-state"}
    google.wrong_state = True
    google.consent(program.address())
    assert program.answered["state"] != "my-state"


@pytest.mark.parametrize(
    "change, status, code",
    [
        ({"code_verifier": "w" * 50}, 400, "invalid_grant"),
        ({"code_verifier": ""}, 400, "invalid_grant"),
        ({"code": "4/0other"}, 400, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:1"}, 400, "redirect_uri_mismatch"),
        ({"client_secret": "wrong"}, 401, "invalid_client"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
    ],
)
def test_exchange_with_a_wrong_part_is_refused(
    google: FakeGoogle, program: Program, change: dict, status: int, code: str
) -> None:
    google.consent(program.address())
    answered, body = program.exchange(**change)
    assert (answered, body["error"]) == (status, code)


def test_refresh_brings_a_new_access_token_until_it_is_revoked(google: FakeGoogle, program: Program) -> None:
    old = google.sign_in()
    form = {"grant_type": "refresh_token", "refresh_token": old["refresh_token"]}
    _, new = program.token(**form)
    assert (new["access_token"] != old["access_token"], "refresh_token" in new) == (True, False)
    google.revoke()
    description = "Token has been expired or revoked."
    assert program.token(**form) == (400, {"error": "invalid_grant", "error_description": description})


def test_mail_is_recorded_with_its_headers_and_both_texts_decoded(google: FakeGoogle) -> None:
    _, answer = send(google, mail())
    (sent,) = google.sent
    assert answer == {"id": sent.id, "threadId": sent.id, "labelIds": ["SENT"]}
    texts = (sent.to, sent.subject, sent.plain, sent.html)
    assert texts == (("ann@example.org",), "Grüße", "Hallö\n", "<b>Hallö</b>\n")
    assert sent.headers["Subject"] == "Grüße"


def test_mail_needs_a_living_token_a_recipient_and_the_webs_base64(google: FakeGoogle) -> None:
    status, answer = send(google, mail(to=""))
    assert (status, answer["error"]["message"]) == (400, "Recipient address required")
    assert [send(google, raw)[0] for raw in ("", "++//", "a mail")] == [400, 400, 400]
    token = google.sign_in()["access_token"]
    google.expire_access_tokens()
    assert (send(google, mail(), token)[0], send(google, mail(), "unknown")[0], google.sent) == (401, 401, [])


@pytest.mark.parametrize(
    "kind, status, reason",
    [
        ("insufficient_scope", 403, "insufficientPermissions"),
        ("rate_limited", 429, "rateLimitExceeded"),
        ("server_error", 500, "backendError"),
        ("unavailable", 503, "backendError"),
    ],
)
def test_send_can_fail_as_gmail_fails(google: FakeGoogle, kind: str, status: int, reason: str) -> None:
    google.fail_with(kind)
    answered, body = send(google, mail())
    assert (answered, body["error"]["errors"][0]["reason"]) == (status, reason)
    assert send(google, mail())[0] == 200

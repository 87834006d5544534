"""The fake Google refuses the same requests as the real one; the tests of Gmail cover its successes."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from typing import Optional
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from fake_ai.loopback import Answer, post
from fake_google import SCOPE, SEND_PATH, FakeGoogle, open_page

HERE = "http://127.0.0.1:1/"
VERIFIER = "v" * 50


@pytest.fixture
def google() -> Iterator[FakeGoogle]:
    with FakeGoogle() as fake:
        yield fake


def address(google: FakeGoogle, **change: Optional[str]) -> str:
    """Return the consent address that a program opens for its user."""
    digest = hashlib.sha256(VERIFIER.encode()).digest()
    parameters = {
        "client_id": google.client_id,
        "redirect_uri": HERE,
        "response_type": "code",
        "scope": SCOPE,
        "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
        "code_challenge_method": "S256",
        "state": "my-state",
        "access_type": "offline",
        **change,
    }
    query = urlencode({name: value for name, value in parameters.items() if value is not None})
    return f"{google.url}/o/oauth2/v2/auth?{query}"


def code(google: FakeGoogle) -> str:
    """Consent in the browser; return the code of the redirect."""
    location = open_page(address(google))[1]
    return dict(parse_qsl(urlsplit(str(location)).query))["code"]


def token(google: FakeGoogle, **form: str) -> Answer:
    form = {"client_id": google.client_id, "client_secret": google.client_secret, **form}
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return post(google.url + "/token", urlencode(form).encode(), headers)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"client_id": "somebody"}, "invalid_client"),
        ({"redirect_uri": "http://127.0.0.1"}, "redirect_uri_mismatch"),
        ({"redirect_uri": "http://example.org:80"}, "redirect_uri_mismatch"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": SCOPE + " https://mail.google.com/"}, "invalid_scope"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        *(({name: None}, "invalid_request") for name in ("code_challenge", "state", "access_type")),
    ],
)
def test_fake_google_shows_an_error_for_a_wrong_address_and_does_not_redirect(
    google: FakeGoogle, change: dict[str, Optional[str]], text: str
) -> None:
    page, location = open_page(address(google, **change))
    assert (page.status in (400, 401), text in page.body, location) == (True, True, None)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"code_verifier": "w" * 50}, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:2"}, "redirect_uri_mismatch"),
        ({"client_secret": "wrong"}, "invalid_client"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
    ],
)
def test_fake_google_exchanges_a_valid_code_once(
    google: FakeGoogle, change: dict[str, str], error: str
) -> None:
    form = {"grant_type": "authorization_code", "redirect_uri": HERE, "code_verifier": VERIFIER}
    form["code"] = code(google)
    answers = [token(google, **{**form, **more}) for more in (change, {}, {})]
    assert answers[0].json["error"] == error
    assert [answer.status // 100 for answer in answers] == [4, 2, 4]


def test_fake_google_refuses_a_revoked_token_and_an_invalid_mail(google: FakeGoogle) -> None:
    old = google.sign_in()["access_token"]

    def send(raw: str, access_token: str = old) -> Answer:
        headers = {"Authorization": f"Bearer {access_token}", "Content-Type": "application/json"}
        return post(google.url + SEND_PATH, json.dumps({"raw": raw}).encode(), headers)

    without_recipient, mail = (
        base64.urlsafe_b64encode(text).decode() for text in (b"Subject: x\n\nHello", b"To: ann@example.org\n")
    )
    assert send(without_recipient).json["error"]["message"] == "Recipient address required"
    assert [send(raw).status for raw in ("", "++//", "a mail")] == [400, 400, 400]
    google.revoke()
    assert ([send(mail).status, send(mail, "unknown").status], google.sent) == ([401] * 2, [])

"""The fake Google refuses the same requests as the real one; test_gmail.py tests its successes."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Optional
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from fake_ai.loopback import Answer, post
from fake_google import SCOPE, SEND_PATH, FakeGoogle, open_page

HERE, VERIFIER = "http://127.0.0.1:1/", "v" * 50
DIGEST = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")


def address(google: FakeGoogle, **changed: str) -> str:
    """Return the consent address that a program opens for its user."""
    fixed = {"scope": SCOPE, "state": "my-state", "access_type": "offline", "redirect_uri": HERE}
    challenge = {"code_challenge": DIGEST, "code_challenge_method": "S256"}
    usual = {"client_id": google.client_id, "response_type": "code", **fixed, **challenge}
    return f"{google.url}/o/oauth2/v2/auth?{urlencode({**usual, **changed})}"


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("client_id", "somebody", "invalid_client"),
        ("redirect_uri", "http://127.0.0.1", "redirect_uri_mismatch"),
        ("redirect_uri", "http://example.org:80", "redirect_uri_mismatch"),
        ("response_type", "token", "unsupported_response_type"),
        ("scope", f"{SCOPE} https://mail.google.com/", "invalid_scope"),
        ("code_challenge_method", "plain", "invalid_request"),
        *((name, "", "invalid_request") for name in ("code_challenge", "state", "access_type")),
    ],
)
def test_fake_google_shows_an_error_for_a_wrong_address_and_does_not_redirect(
    google: FakeGoogle, name: str, value: str, error: str
) -> None:
    page, location = open_page(address(google, **{name: value}))
    assert page.status in (400, 401) and error in page.body and location is None


def token(google: FakeGoogle, **changed: str) -> Optional[str]:
    """Exchange a new code; return the error."""
    code = dict(parse_qsl(urlsplit(str(open_page(address(google))[1])).query))["code"]
    client = {"client_id": google.client_id, "client_secret": google.client_secret}
    form = {**client, "grant_type": "authorization_code", "redirect_uri": HERE, "code_verifier": VERIFIER}
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    data = urlencode({**form, "code": code, **changed}).encode()
    return post(google.url + "/token", data, headers).json.get("error")


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("code_verifier", VERIFIER, None),
        ("code_verifier", "w" * 50, "invalid_grant"),
        ("redirect_uri", "http://127.0.0.1:2", "redirect_uri_mismatch"),
        ("client_secret", "wrong", "invalid_client"),
        ("grant_type", "password", "unsupported_grant_type"),
    ],
)
def test_fake_google_exchanges_only_its_own_code(
    google: FakeGoogle, name: str, value: str, error: Optional[str]
) -> None:
    assert token(google, **{name: value}) == error


@pytest.mark.parametrize("mail", [b"Subject: x\n\nHello", b"", b"To: ann@example.org\n\n\xff\xff\xff"])
def test_fake_google_refuses_a_mail_without_recipient_or_in_other_base64(
    google: FakeGoogle, mail: bytes
) -> None:
    headers = {"Authorization": f"Bearer {google.sign_in()['access_token']}"}
    data = json.dumps({"raw": base64.b64encode(mail).decode()}).encode()
    answer: Answer = post(google.url + SEND_PATH, data, {**headers, "Content-Type": "application/json"})
    assert answer.status == 400 and google.sent == []

"""The fake Google refuses what the real one refuses; that it grants and sends, the tests of Gmail show."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Optional
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from fake_ai.loopback import Answer, post
from fake_google import FAILURES, SCOPE, SEND_PATH, FakeGoogle, open_page

HERE = "http://127.0.0.1:1/"
VERIFIER = "v" * 50


@pytest.fixture
def google() -> Iterator[FakeGoogle]:
    with FakeGoogle() as fake:
        yield fake


def address(google: FakeGoogle, **change: Optional[str]) -> str:
    """What a program lets its user open."""
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


def redirect(google: FakeGoogle) -> dict[str, str]:
    """What the browser brings to the program."""
    location = open_page(address(google))[1]
    return dict(parse_qsl(urlsplit(str(location)).query))


def token(google: FakeGoogle, **form: str) -> Answer:
    form = {"client_id": google.client_id, "client_secret": google.client_secret, **form}
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return post(google.url + "/token", urlencode(form).encode(), headers)


def send(google: FakeGoogle, raw: str, access_token: str = "") -> Answer:
    access_token = access_token or google.sign_in()["access_token"]
    headers = {"Authorization": f"Bearer {access_token}", "Content-Type": "application/json"}
    return post(google.url + SEND_PATH, json.dumps({"raw": raw}).encode(), headers)


def mail(to: str = "ann@example.org") -> str:
    message = EmailMessage()
    if to:
        message["To"] = to
    message.set_content("Hallö")
    return base64.urlsafe_b64encode(message.as_bytes()).decode()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"client_id": "somebody"}, "invalid_client"),
        ({"redirect_uri": "http://127.0.0.1"}, "redirect_uri_mismatch"),
        ({"redirect_uri": "http://example.org:80"}, "redirect_uri_mismatch"),
        ({"redirect_uri": "https://127.0.0.1:80"}, "redirect_uri_mismatch"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": SCOPE + " https://mail.google.com/"}, "invalid_scope"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"state": None}, "invalid_request"),
        ({"access_type": None}, "invalid_request"),
    ],
)
def test_fake_google_shows_a_wrong_address_and_does_not_redirect(
    google: FakeGoogle, change: dict[str, Optional[str]], text: str
) -> None:
    page, location = open_page(address(google, **change))
    assert (page.status in (400, 401), text in page.body, location) == (True, True, None)


def test_fake_google_lets_the_user_deny_and_a_wrong_state_come_back(google: FakeGoogle) -> None:
    google.user_denies = True
    assert redirect(google) == {"error": "access_denied", "state": "my-state"}
    google.wrong_state = True
    assert redirect(google)["state"] != "my-state"


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({}, 200, None),
        ({"code_verifier": "w" * 50}, 400, "invalid_grant"),
        ({"code_verifier": ""}, 400, "invalid_grant"),
        ({"code": "4/0other"}, 400, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:2"}, 400, "redirect_uri_mismatch"),
        ({"client_id": "somebody"}, 401, "invalid_client"),
        ({"client_secret": "wrong"}, 401, "invalid_client"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
    ],
)
def test_fake_google_exchanges_a_right_code_once(
    google: FakeGoogle, change: dict[str, str], status: int, code: Optional[str]
) -> None:
    form = {"grant_type": "authorization_code", "redirect_uri": HERE, "code_verifier": VERIFIER}
    form |= {"code": redirect(google)["code"], **change}
    answered, _, body = token(google, **form)
    assert (answered, body.get("error")) == (status, code)
    assert code or token(google, **form)[0] == 400


def test_fake_google_renews_an_access_token_until_it_is_revoked(google: FakeGoogle) -> None:
    old = google.sign_in()
    form = {"grant_type": "refresh_token", "refresh_token": old["refresh_token"]}
    new = token(google, **form).json
    assert (new["access_token"] != old["access_token"], "refresh_token" in new) == (True, False)
    google.revoke()
    description = "Token has been expired or revoked."
    assert token(google, **form).json == {"error": "invalid_grant", "error_description": description}
    assert send(google, mail(), new["access_token"])[0] == 401


def test_fake_google_refuses_a_dead_token_and_a_broken_mail(google: FakeGoogle) -> None:
    status, _, answer = send(google, mail(to=""))
    assert (status, answer["error"]["message"]) == (400, "Recipient address required")
    assert [send(google, raw)[0] for raw in ("", "++//", "a mail")] == [400, 400, 400]
    google.expires_in = 0
    assert (send(google, mail())[0], send(google, mail(), "unknown")[0], google.sent) == (401, 401, [])


def test_fake_google_fails_as_gmail_does_once(google: FakeGoogle) -> None:
    for kind, (status, _, reason, _) in FAILURES.items():
        google.fail_with(kind)
        answered, _, body = send(google, mail())
        assert (answered, body["error"]["errors"][0]["reason"]) == (status, reason)
    assert send(google, mail())[0] == 200

"""Mail through Gmail: login, token renewal, mail and errors."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Optional
from urllib.parse import parse_qsl, urlsplit

import pytest
from fake_ai import FakeAI
from fake_google import SCOPE, SEND_PATH, FakeGoogle, consent, open_page
from mcp_server import is_alive
from samples import error_of
from worlds import PATIENCE_S, ROOT, executable, wait_for

from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.integrations import gmail
from peekaboo_min.integrations.gmail import gmail_login, gmail_state, has_gmail_credentials, send_email
from peekaboo_min.system.process import end_all_programs
from peekaboo_min.system.web import ask_json
from peekaboo_min.tools.table import offered_tools


@pytest.fixture
def google() -> Iterator[FakeGoogle]:
    with FakeGoogle() as fake:
        yield fake


@pytest.fixture
def folder(google: FakeGoogle, environment: Callable[..., None], tmp_path: Path) -> Path:
    """Create the Gmail folder of a user who has not logged in; there is no browser."""
    (tmp_path / "bin").mkdir()
    environment(
        HOME=str(tmp_path),
        XDG_STATE_HOME=str(tmp_path / "state"),
        PEEKABOO_DESKTOP="x11",
        PEEKABOO_BIN_DIR=str(tmp_path / "bin"),
        PEEKABOO_GMAIL_FOLDER="~/mail",
        PEEKABOO_GMAIL_BASE_URL=google.url,
        DISPLAY=":0",
    )
    (tmp_path / "mail").mkdir(mode=0o700)
    (tmp_path / "mail" / "credentials.json").write_text(google.credentials_json())
    return tmp_path / "mail"


@pytest.fixture
def logged_in(google: FakeGoogle, folder: Path) -> Path:
    """Create the Gmail folder of a user who has logged in with Google's own library."""
    token = {"token": "ya29.old", "expiry": "2026-01-01T00:00:00Z", "refresh_token": google.refresh_token}
    (folder / "token.json").write_text(json.dumps(token))
    return folder


def failing_send() -> PeekabooError:
    return error_of(send_email, "ann@example.org", "Hello", "How are you?")


def posts(google: FakeGoogle) -> list[str]:
    return [request.path for request in google.requests if request.method == "POST"]


def client(google: FakeGoogle) -> dict[str, str]:
    return {"client_id": google.client_id, "client_secret": google.client_secret}


def lines(text: Optional[str]) -> list[str]:
    return str(text).splitlines()  # in a mail, lines end with CR LF


# the mail


@pytest.mark.parametrize("html", [None, "", "<p>rich</p>\n"])
def test_send_email_returns_the_specified_text_within_its_timeouts(
    google: FakeGoogle, logged_in: Path, monkeypatch: pytest.MonkeyPatch, html: Optional[str]
) -> None:
    seconds: list[float] = []

    def ask(url: str, timeout_s: float, **more: Any) -> Any:
        seconds.append(timeout_s)
        return ask_json(url, timeout_s=timeout_s, **more)

    monkeypatch.setattr(gmail, "ask_json", ask)
    result = send_email(" ann@example.org", "Hello", "How are you?\n", html)
    (mail,) = google.sent
    assert (mail.to, mail.subject, lines(mail.plain)) == (("ann@example.org",), "Hello", ["How are you?"])
    types = [part.get_content_type() for part in mail.message.walk()]
    assert types == (["multipart/alternative", "text/plain", "text/html"] if html else ["text/plain"])
    assert lines(mail.html) == lines(html or None)
    assert result.text == f"EMAIL_SENT: to=ann@example.org, id={mail.id}"
    assert (result.data, result.is_text_only) == ({"to": "ann@example.org", "id": mail.id}, True)
    assert (posts(google), seconds) == (["/token", SEND_PATH], [15, 40])
    refresh = {"grant_type": "refresh_token", "refresh_token": google.refresh_token}
    assert google.requests[0].params == {**client(google), **refresh}
    assert google.requests[0].headers["content-type"] == "application/x-www-form-urlencoded"


ANN = "ann@example.org"
HOSTILE = "$(touch x) `y` \"'\\ %s {z} 世界 👋"


@pytest.mark.parametrize(
    ("to", "subject", "body"),
    [
        *((to, "Hello", "body") for to in ("a.n+n'o@sub.example.co", "x_y@xn--exmple-cua.org", "1@2.org")),
        *((f"{name}<{ANN}>", "Hello", "body") for name in ("Ann ", "", '"Lee, Ann" ', "Zoë ")),
        (f"<{ANN}> ", "Hello", "body"),
        *((ANN, text, text) for text in ("Grüße 世界 👋", HOSTILE, "Ü" * 300, "a " * 400, "?= or =?", "")),
        (ANN, "x" * 900, "x" * 2000 + "\n" + HOSTILE * 400),
    ],
)
def test_send_email_delivers_unusual_texts_unchanged(
    google: FakeGoogle, logged_in: Path, to: str, subject: str, body: str
) -> None:
    send_email(to, subject, body)
    (mail,) = google.sent
    assert (mail.to, mail.subject.rstrip()) == ((ANN if ANN in to else to,), subject.rstrip())
    assert lines(mail.plain) == (body.splitlines() or [""])
    assert max(map(len, mail.raw.split(b"\r\n"))) <= 998 and mail.raw.isascii()


WRONG_ADDRESSES = [
    "", "ann", "a b@example.org", "ann@example.org\n", "ann@example.org\t", "\x7f<ann@example.org>",
    "\xa0ann@example.org", "ann@example.org\nBcc: eve@example.org",
    "ann@example.org, eve@example.org", "eve@x.org <ann@example.org>", "Ann <ann@x.org> <eve@x.org>",
    "Ann: Eve <eve@x.org>", "Ann\nBcc: eve@example.org <ann@example.org>", "ann@exämple.org",
    "=?utf-8?q?eve=40example.org=2Cann?=@example.org", "=?utf-8?q?a=0D=0ABcc=3Aeve?=@example.org",
]  # fmt: skip
WRONG_SUBJECTS = [
    "Hi\nBcc: eve@example.org", "Hi\r\nX: y", "a\x00b", "a\x7fb", "a\u2028b", "a\x85b", "\ud800",
    "=?utf-8?q?Hi=0D=0ABcc:_eve@example.org?=", "x" * 901,
]  # fmt: skip


def test_send_email_refuses_invalid_mails_and_injected_headers(google: FakeGoogle, logged_in: Path) -> None:
    mails = [(to, "Hello", "body") for to in WRONG_ADDRESSES]
    mails += [(ANN, subject, "body") for subject in WRONG_SUBJECTS]
    for mail in (*mails, (ANN, "Hello", "\ud800")):
        assert error_of(send_email, *mail).code is ErrorCode.INVALID_ARGUMENT, mail
    assert google.requests == []


def test_send_email_is_audited_and_can_be_forbidden(
    google: FakeGoogle, logged_in: Path, environment: Callable[..., None]
) -> None:
    send_email("ann@example.org", "a secret", "a secret")
    audit = (logged_in.parent / "state" / "peekaboo_min" / "audit.jsonl").read_text()
    assert '"action": "send_email"' in audit and "ann@example.org" in audit and "secret" not in audit
    environment(PEEKABOO_READONLY="1", PEEKABOO_DESKTOP="macos")
    assert failing_send().code is ErrorCode.POLICY_DENIED
    assert {row.group for row in offered_tools()} == {"capture", "desktop"}, "nothing that sends or draws"
    assert posts(google) == ["/token", SEND_PATH]


# errors from Google

LOGIN = "run peekaboo-min gmail-login"
AGAIN = "check the sent mails before you try again"
NOT_ENABLED = f"{LOGIN} again, and check that the Gmail API is enabled in Google's console"


@pytest.mark.parametrize(
    ("failure", "message", "hint"),
    [
        ("no_login", "401: Request had invalid authentication credentials. Expected", NOT_ENABLED),
        ("insufficient_scope", "403: Request had insufficient authentication scopes.", NOT_ENABLED),
        ("rate_limited", "429: User-rate limit exceeded.", AGAIN),
    ],
)
def test_send_email_reports_gmails_refusal_and_never_sends_twice(
    google: FakeGoogle, logged_in: Path, failure: str, message: str, hint: str
) -> None:
    google.fail_with(failure)
    wrong = failing_send()
    assert wrong.message.startswith(f"Gmail rejected the mail with status {message}") and wrong.hint == hint
    assert "send_email" in (logged_in.parent / "state/peekaboo_min/audit.jsonl").read_text(), "before the act"
    assert posts(google) == ["/token", SEND_PATH]


def test_send_email_reports_an_unreachable_gmail(logged_in: Path, environment: Callable[..., None]) -> None:
    with FakeAI() as other:
        host = f"127.0.0.1:{other.refused_port()}"
        environment(PEEKABOO_GMAIL_BASE_URL=f"http://{host}")
        assert failing_send().message == f"Gmail did not confirm the mail: connection refused by {host}"


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("access_token", "Google sent no token: its reply has none"),
        ("id", "Gmail did not confirm the mail: its reply has no id"),
    ],
)
def test_send_email_reports_a_reply_without_a_field(
    google: FakeGoogle, logged_in: Path, field: str, message: str
) -> None:
    google.left_out = field
    assert failing_send().message == message


def test_send_email_reports_a_lost_permission_without_secrets(google: FakeGoogle, logged_in: Path) -> None:
    google.is_revoked = True
    revoked = failing_send()
    google.client_id = "another"
    unknown = failing_send()
    hint = f"{LOGIN} again, or check the network and credentials.json"
    assert [error.sentence() for error in (revoked, unknown)] == [
        f"Google sent no token: Token has been expired or revoked; {hint}",
        f"Google sent no token: The OAuth client was not found; {hint}",
    ]
    for secret in (google.refresh_token, google.client_secret):
        assert secret not in f"{revoked!r}{unknown!r}"


# the login


class Login:
    """gmail_login in a thread; `address` is its output."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        threads = ThreadPoolExecutor(1)
        self._future = threads.submit(gmail_login, PATIENCE_S)
        threads.shutdown(wait=False)
        printed: list[str] = []

        def read() -> bool:
            printed.append(capfd.readouterr().err)
            return "http" in "".join(printed)

        wait_for(read, "an address is printed")
        self.address = "".join(printed).split()[-1]
        self.query = dict(parse_qsl(urlsplit(self.address).query))

    def end(self) -> Any:
        """Return its result or error."""
        return self._future.exception(PATIENCE_S) or self._future.result()


def test_gmail_login_stores_a_token_that_sends(google: FakeGoogle, folder: Path, capfd: Any) -> None:
    login = Login(capfd)
    here, state, challenge = (login.query.pop(name) for name in ("redirect_uri", "state", "code_challenge"))
    fixed = {"scope": SCOPE, "access_type": "offline", "prompt": "consent", "code_challenge_method": "S256"}
    assert login.query == {"client_id": google.client_id, "response_type": "code", **fixed}
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", here) and len(state) >= 32
    page = consent(login.address)
    assert page.status == 200 and "you can close this page" in page.body
    stored = folder / "token.json"
    assert login.end().data == {"token_path": str(stored)}
    assert capfd.readouterr().err == "", "the code is in the redirect's address"
    form, grant = google.requests[-1].params, {"grant_type": "authorization_code", "redirect_uri": here}
    verifier, code = form["code_verifier"], form["code"]
    assert form == {**client(google), **grant, "code": code, "code_verifier": verifier}
    digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
    assert 43 <= len(verifier) <= 128 and digest.decode().rstrip("=") == challenge
    assert json.loads(stored.read_text()) == {"refresh_token": google.refresh_token}
    assert stored.stat().st_mode & 0o777 == 0o600
    send_email("ann@example.org", "Hello", "body")
    assert len(google.sent) == 1


@pytest.mark.parametrize(
    ("program", "variables"),
    [
        ("xdg-open", {}),
        ("xdg-open", {"DISPLAY": "", "WAYLAND_DISPLAY": "wayland-0"}),
        ("open", {"DISPLAY": "", "PEEKABOO_DESKTOP": "macos"}),
    ],
)
def test_gmail_login_opens_a_browser_that_outlives_its_starter(
    google: FakeGoogle,
    folder: Path,
    environment: Callable[..., None],
    program: str,
    variables: dict[str, str],
) -> None:
    environment(**variables)
    visit = f'"{sys.executable}" "{ROOT}/tests/support/fake_google.py" "$1"'
    executable(folder.parent / "bin" / program, f"echo $$ >{folder}/pid; sleep 0.2; {visit}; exec sleep 60")
    assert "logged in to Gmail" in gmail_login(PATIENCE_S).text
    assert (folder / "token.json").exists()
    end_all_programs()
    browser = int((folder / "pid").read_text())
    assert is_alive(browser)
    os.kill(browser, signal.SIGKILL)


@pytest.mark.parametrize(
    ("switch", "message"),
    [
        ({"user_denies": True}, "the permission was not granted (access_denied)"),
        ({"scope": f"openid {SCOPE}.readonly"}, "Google granted no lasting permission to send mail"),
        ({"scope": None}, "Google granted no lasting permission to send mail"),
        ({"gives_refresh_token": False}, "Google granted no lasting permission to send mail"),
    ],
)
def test_gmail_login_stores_no_permission_that_would_not_last(
    google: FakeGoogle, folder: Path, capfd: Any, switch: dict[str, Any], message: str
) -> None:
    vars(google).update(switch)
    login = Login(capfd)
    consent(login.address)
    assert login.end().message == message
    assert not (folder / "token.json").exists()


def test_gmail_login_serves_only_one_redirect(google: FakeGoogle, folder: Path, capfd: Any) -> None:
    login = Login(capfd)
    google.wrong_state = True
    assert consent(login.address).status == 404
    here, state = login.query["redirect_uri"], login.query["state"]
    for path in (
        "favicon.ico",
        "",
        "?code=x",
        "?state=",
        f"?state={state}x&code=y",
        f"other?state={state}&code=x",
    ):
        assert open_page(here + path)[0].status == 404
    assert open_page(f"{here}?state={state}&code=wrong")[0].status == 200
    assert login.end().message == "Google sent no token: Malformed auth code."
    with pytest.raises(OSError):
        open_page(here)


def test_gmail_login_is_not_blocked_by_a_silent_connection(
    google: FakeGoogle, folder: Path, capfd: Any
) -> None:
    login = Login(capfd)
    here = ("127.0.0.1", urlsplit(login.query["redirect_uri"]).port)
    with socket.create_connection(here) as closed_early:
        closed_early.sendall(b"GET http://[ HTTP/1.1\r\n\r\n")
        assert closed_early.recv(1) == b""  # the address is invalid
    with socket.create_connection(here):
        assert consent(login.address).status == 200
        assert "logged in" in login.end().text
    assert "Traceback" not in capfd.readouterr().err


def test_gmail_login_without_a_display_starts_no_browser(
    google: FakeGoogle, folder: Path, environment: Callable[..., None]
) -> None:
    executable(folder.parent / "bin" / "xdg-open", f"#!/bin/sh\ntouch {folder}/started\n")
    environment(DISPLAY="", WAYLAND_DISPLAY="")
    wrong = error_of(gmail_login, 0.3)
    message = "the permission was not granted in the browser within 0.3 seconds"
    assert (wrong.code, wrong.message) == (ErrorCode.TIMEOUT, message)
    assert not (folder / "started").exists()


# the credentials


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({}, ".local/share"),
        ({"XDG_DATA_HOME": "~/data"}, "data"),
        ({"PEEKABOO_DESKTOP": "macos", "XDG_DATA_HOME": "~/data"}, "Library/Application Support"),
    ],
)
def test_gmail_credentials_are_in_the_systems_data_folder(
    folder: Path, environment: Callable[..., None], variables: dict[str, str], place: str
) -> None:
    assert has_gmail_credentials()
    environment(PEEKABOO_GMAIL_FOLDER="", **variables)
    usual = folder.parent / place / "peekaboo_min" / "gmail"
    assert not has_gmail_credentials() and not usual.exists()
    assert str(usual) in failing_send().message, "the failure creates the folder"
    assert usual.stat().st_mode & 0o777 == 0o700
    (folder / "credentials.json").rename(usual / "credentials.json")
    assert has_gmail_credentials()
    environment(PEEKABOO_GMAIL_FOLDER="~nosuchuser/mail")
    assert not has_gmail_credentials()


INVALID = [None, "{", "[]", "\u00ff", '{"web": {}}', '{"installed": 5}', '{"installed": {"client_id": 5}}']


@pytest.mark.parametrize("text", [*INVALID, '{"refresh_token": 5}', '{"refresh_token": ""}'])
def test_gmail_without_a_valid_token_asks_for_a_login(folder: Path, text: Optional[str]) -> None:
    if text is not None:
        (folder / "token.json").write_text(text, encoding="latin-1")
    wrong = failing_send()
    assert wrong.code is ErrorCode.FILE_IO_ERROR and str(folder / "token.json") in wrong.message
    assert wrong.hint == LOGIN


@pytest.mark.parametrize("text", INVALID)
def test_gmail_without_valid_credentials_says_how_to_get_them(folder: Path, text: Optional[str]) -> None:
    (folder / "credentials.json").unlink()
    if text is not None:
        (folder / "credentials.json").write_text(text, encoding="latin-1")
    wrong = error_of(gmail_login, 1)
    assert wrong.code is ErrorCode.FILE_IO_ERROR and str(folder / "credentials.json") in wrong.message
    assert "Desktop app in Google's console" in wrong.hint


def test_gmail_state_is_the_text_for_doctor(google: FakeGoogle, folder: Path) -> None:
    assert error_of(gmail_state).code is ErrorCode.FILE_IO_ERROR
    (folder / "token.json").write_text('{"refresh_token": "r"}')
    assert gmail_state() == f"logged in; the credentials are in {folder}"
    (folder / "credentials.json").unlink()
    assert "credentials.json is missing" in error_of(gmail_state).message

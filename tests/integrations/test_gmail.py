"""Mail through Gmail: the permission in a browser, its renewal, the mail itself, and the errors."""

from __future__ import annotations

import json
import os
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable, Optional
from urllib.parse import parse_qsl, urlsplit

import pytest
from fake_ai import FakeAI
from fake_google import SCOPE, SEND_PATH, FakeGoogle
from worlds import PATIENCE_S, wait_for

from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.settings import forget_environment
from peekaboo_min.integrations.gmail import gmail_login, has_gmail_credentials, send_email

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def google() -> Iterator[FakeGoogle]:
    with FakeGoogle() as fake:
        yield fake


@pytest.fixture
def folder(google: FakeGoogle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The Gmail folder with credentials.json, for a user who has not logged in yet; there is no browser."""
    for name in list(os.environ):
        if name.startswith("PEEKABOO_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    (tmp_path / "bin").mkdir()
    variables = {
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "PEEKABOO_DESKTOP": "x11",
        "PEEKABOO_BIN_DIR": str(tmp_path / "bin"),
        "PEEKABOO_GMAIL_FOLDER": "~/mail",
        "PEEKABOO_GMAIL_BASE_URL": google.url,
        "DISPLAY": ":0",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    forget_environment()
    (tmp_path / "mail").mkdir(mode=0o700)
    (tmp_path / "mail" / "credentials.json").write_text(google.credentials_json())
    yield tmp_path / "mail"
    forget_environment()


@pytest.fixture
def logged_in(google: FakeGoogle, folder: Path) -> Path:
    """The Gmail folder of a user who has logged in."""
    granted = google.sign_in()
    (folder / "token.json").write_text(json.dumps({"refresh_token": granted["refresh_token"]}))
    return folder


def failing(call: Callable[..., Any], *args: Any) -> PeekabooError:
    with pytest.raises(PeekabooError) as caught:
        call(*args)
    return caught.value


def failing_send() -> PeekabooError:
    return failing(send_email, "ann@example.org", "Hello", "How are you?")


def posts(google: FakeGoogle) -> list[str]:
    return [request.path for request in google.requests if request.method == "POST"]


def lines(text: Optional[str]) -> list[str]:
    return str(text).splitlines()  # in a mail, lines end with CR LF


# the mail


@pytest.mark.parametrize("html", [None, "<p>rich</p>\n"])
def test_a_mail_is_sent_and_reported_in_the_seeds_grammar(
    google: FakeGoogle, logged_in: Path, html: Optional[str]
) -> None:
    result = send_email(" ann@example.org", "Hello", "How are you?\n", html)
    (mail,) = google.sent
    assert (mail.to, mail.subject, lines(mail.plain)) == (("ann@example.org",), "Hello", ["How are you?"])
    types = [part.get_content_type() for part in mail.message.walk()]
    alternatives = ["multipart/alternative", "text/plain", "text/html"]
    assert (types, lines(mail.html)) == (
        (alternatives, ["<p>rich</p>"]) if html else (["text/plain"], ["None"])
    )
    assert result.text == f"EMAIL_SENT: to=ann@example.org, id={mail.id}"
    assert (result.data, result.is_text_only) == ({"to": "ann@example.org", "id": mail.id}, True)
    assert posts(google) == ["/token", SEND_PATH]


@pytest.mark.parametrize(
    "subject", ["Grüße 世界 👋", "Ü" * 300, "a " * 400, "?= or =?", "", 'comma, \\ and "quotes"']
)
def test_subjects_of_all_kinds_arrive_as_they_are(google: FakeGoogle, logged_in: Path, subject: str) -> None:
    send_email("ann@example.org", subject, "Grüße, 世界 👋\n" + "x" * 2000 + "\n")
    (mail,) = google.sent
    assert mail.subject.rstrip() == subject.rstrip()
    assert lines(mail.plain) == ["Grüße, 世界 👋", "x" * 2000]
    assert max(map(len, mail.raw.split(b"\r\n"))) <= 998 and mail.raw.isascii()


@pytest.mark.parametrize("to", ["a.n+n'o@sub.example.co", "x_y@xn--exmple-cua.org", "1@2.org"])
def test_unusual_addresses_are_accepted(google: FakeGoogle, logged_in: Path, to: str) -> None:
    send_email(to, "Hello", "body")
    assert google.sent[0].to == (to,)


WRONG_ADDRESSES = [
    "", "ann", "@example.org", "ann@", "ann@example", "a b@example.org", "ann@example.org\n",
    "ann@example.org\nBcc: eve@example.org", "ann@example.org, eve@example.org", "Ann <ann@example.org>",
    "ann@@example.org", "ann@example..org", "änn@example.org", "ann@exämple.org", "ann@example.org\x00",
    "=?utf-8?q?eve=40example.org=2Cann?=@example.org", "=?utf-8?q?a=0D=0ABcc=3Aeve?=@example.org",
]  # fmt: skip
# The last is refused before it is searched, which would take its length squared.
WRONG_SUBJECTS = [
    "Hi\nBcc: eve@example.org", "Hi\r\nX: y", "a\x00b", "a\u2028b", "a\x85b", "\ud800",
    "=?utf-8?q?Hi=0D=0ABcc:_eve@example.org?=", "x" * 901, "=?x" * 300_000,
]  # fmt: skip


@pytest.mark.parametrize(
    ("to", "subject", "body"),
    [
        *((to, "Hello", "body") for to in WRONG_ADDRESSES),
        *(("ann@example.org", subject, "body") for subject in WRONG_SUBJECTS),
        ("ann@example.org", "Hello", "\ud800"),
    ],
)
def test_what_cannot_be_a_mail_or_smuggles_a_header_is_refused(
    google: FakeGoogle, logged_in: Path, to: str, subject: str, body: str
) -> None:
    assert failing(send_email, to, subject, body).code is ErrorCode.INVALID_ARGUMENT
    assert google.requests == []


def test_a_mail_is_an_act_that_can_be_forbidden_and_is_audited(
    google: FakeGoogle, logged_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_email("ann@example.org", "a secret", "a secret")
    audit = (logged_in.parent / "state" / "peekaboo_min" / "audit.jsonl").read_text()
    assert '"action": "send_email"' in audit and "ann@example.org" in audit and "secret" not in audit
    monkeypatch.setenv("PEEKABOO_READONLY", "1")
    forget_environment()
    assert failing_send().code is ErrorCode.POLICY_DENIED
    assert len(google.sent) == 1


# the token

LOGIN = "run peekaboo-min gmail-login"


def test_a_token_file_of_googles_own_library_is_accepted(google: FakeGoogle, folder: Path) -> None:
    refresh_token = google.sign_in()["refresh_token"]
    token = {"token": "ya29.old", "refresh_token": refresh_token, "expiry": "2026-01-01T00:00:00Z"}
    (folder / "token.json").write_text(json.dumps(token))
    send_email("ann@example.org", "Hello", "body")
    assert len(google.sent) == 1


def test_a_token_that_gmail_rejects_is_an_error(google: FakeGoogle, logged_in: Path) -> None:
    google.expires_in = 0
    wrong = failing_send()
    text = "Gmail refused the mail, status 401: Request had invalid authentication credentials."
    assert wrong.message.startswith(text) and wrong.hint.startswith(f"{LOGIN} again")
    assert posts(google) == ["/token", SEND_PATH]


def test_a_permission_or_a_client_that_google_does_not_know_is_reported_without_secrets(
    google: FakeGoogle, logged_in: Path
) -> None:
    secrets = [google.grants[0].refresh_token, google.client_secret]
    google.revoke()
    revoked = failing_send()
    google.client_id = "another"
    unknown = failing_send()
    hint = f"{LOGIN} again, or check the network and credentials.json"
    assert [error.sentence() for error in (revoked, unknown)] == [
        f"Google sent no token: Token has been expired or revoked; {hint}",
        f"Google sent no token: The OAuth client was not found; {hint}",
    ]
    assert not any(
        secret in f"{error.sentence()}{error!r}" for secret in secrets for error in (revoked, unknown)
    )


@pytest.mark.parametrize("text", [None, "", "{", "[]", "{}", "\u00ff"])
def test_without_a_valid_token_file_a_login_is_asked_for(folder: Path, text: Optional[str]) -> None:
    if text is not None:
        (folder / "token.json").write_text(text, encoding="latin-1")
    wrong = failing_send()
    assert (wrong.code, wrong.hint) == (ErrorCode.FILE_IO_ERROR, LOGIN)


# what Gmail refuses

AGAIN = "check the sent mails before you try again"
REFUSALS = {
    "insufficient_scope": (
        "403: Request had insufficient authentication scopes.",
        f"{LOGIN} again, and check that the Gmail API is enabled in Google's console",
    ),
    "rate_limited": ("429: User-rate limit exceeded.", AGAIN),
    "unavailable": ("503: The service is currently unavailable.", AGAIN),
}


@pytest.mark.parametrize("failure", REFUSALS)
def test_a_refusal_is_reported_with_gmails_message_and_never_sent_twice(
    google: FakeGoogle, logged_in: Path, failure: str
) -> None:
    google.fail_with(failure)
    wrong = failing_send()
    reason, hint = REFUSALS[failure]
    assert (wrong.message, wrong.hint) == (f"Gmail refused the mail, status {reason}", hint)
    assert posts(google) == ["/token", SEND_PATH]


def test_an_unreachable_gmail_is_reported(logged_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeAI() as other:
        host = f"127.0.0.1:{other.refused_port()}"
        monkeypatch.setenv("PEEKABOO_GMAIL_BASE_URL", f"http://{host}")
        forget_environment()
        assert failing_send().message == f"Gmail did not confirm the mail: connection refused by {host}"


# the login


class Login:
    """gmail_login in a thread; `address` is what it printed, `outcome` what it returned or raised."""

    def __init__(self, capfd: Any, timeout_s: float = PATIENCE_S) -> None:
        self.outcome: Any = None
        self.printed = ""
        self._capfd = capfd
        self._thread = threading.Thread(target=self._run, args=(timeout_s,))
        self._thread.start()

    def _run(self, timeout_s: float) -> None:
        try:
            self.outcome = gmail_login(timeout_s)
        except PeekabooError as e:
            self.outcome = e

    @property
    def address(self) -> str:
        def read() -> bool:
            self.printed += self._capfd.readouterr().err
            return "http" in self.printed

        wait_for(read, "an address is printed")
        return self.printed.split()[-1]

    def end(self) -> Any:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        return self.outcome


def visit(address: str, method: str = "GET") -> tuple[int, str]:
    try:
        with urllib.request.urlopen(
            urllib.request.Request(address, method=method), timeout=PATIENCE_S
        ) as page:
            return page.status, page.read().decode()
    except urllib.error.HTTPError as e:
        with e:
            return e.code, ""


def query_of(address: str) -> Any:
    return dict(parse_qsl(urlsplit(address).query))


def test_a_login_stores_a_token_that_sends(google: FakeGoogle, folder: Path, capfd: Any) -> None:
    login = Login(capfd)
    query = query_of(login.address)
    assert (query["scope"], query["code_challenge_method"]) == (SCOPE, "S256")
    assert urlsplit(query["redirect_uri"]).hostname == "127.0.0.1"
    page = google.consent(login.address, stray_request_first=True)
    assert (page.status, "you can close this page" in page.body) == (200, True)
    assert login.end().data == {"token_path": str(folder / "token.json")}
    assert json.loads((folder / "token.json").read_text()) == {
        "refresh_token": google.grants[0].refresh_token
    }
    assert (folder / "token.json").stat().st_mode & 0o777 == 0o600
    send_email("ann@example.org", "Hello", "body")
    assert len(google.sent) == 1


def test_a_login_opens_the_browser(google: FakeGoogle, folder: Path) -> None:
    browser = folder.parent / "bin" / "xdg-open"
    browser.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/tests/support/fake_google.py" "$1"\n')
    browser.chmod(0o755)
    assert "logged in to Gmail" in gmail_login(PATIENCE_S).text
    assert (folder / "token.json").exists()


def test_a_login_that_the_user_denies_is_reported(google: FakeGoogle, folder: Path, capfd: Any) -> None:
    google.user_denies = True
    login = Login(capfd)
    google.consent(login.address)
    assert login.end().message == "the permission was not granted (access_denied)"
    assert not (folder / "token.json").exists()


@pytest.mark.parametrize("switch", [{"scope": "openid"}, {"gives_refresh_token": False}])
def test_a_permission_that_would_not_last_or_not_send_is_not_stored(
    google: FakeGoogle, folder: Path, capfd: Any, switch: dict[str, Any]
) -> None:
    vars(google).update(switch)
    login = Login(capfd)
    google.consent(login.address)
    assert login.end().message == "Google granted no lasting permission to send mail"
    assert not (folder / "token.json").exists()


def test_only_one_redirect_is_served_and_nothing_else(google: FakeGoogle, folder: Path, capfd: Any) -> None:
    login = Login(capfd)
    google.wrong_state = True
    assert google.consent(login.address).status == 404
    query = query_of(login.printed.split()[-1])
    here, state = query["redirect_uri"], query["state"]
    for path in ("", "?code=x", "?state=", f"?state={state}x&code=y", f"other?state={state}&code=x"):
        assert visit(here + path)[0] == 404
    assert visit(f"{here}?state={state}&code=x", "POST")[0] == 501
    assert visit(f"{here}?state={state}&code=wrong")[0] == 200
    assert login.end().message == "Google sent no token: Malformed auth code."
    with pytest.raises(OSError):
        visit(here)


def test_a_silent_connection_does_not_block_the_login(google: FakeGoogle, folder: Path, capfd: Any) -> None:
    import socket

    login = Login(capfd)
    here = ("127.0.0.1", urlsplit(query_of(login.address)["redirect_uri"]).port)
    with socket.create_connection(here) as closed_early:
        closed_early.sendall(b"GET http://[ HTTP/1.1\r\n\r\n")
        assert closed_early.recv(1) == b""  # which is no address
    with socket.create_connection(here):
        assert google.consent(login.address).status == 200
        assert "logged in" in login.end().text
    assert "Traceback" not in capfd.readouterr().err


def test_a_login_ends_when_nobody_answers(google: FakeGoogle, folder: Path) -> None:
    wrong = failing(gmail_login, 0.3)
    assert (wrong.code, wrong.message) == (
        ErrorCode.TIMEOUT,
        "the permission was not granted in the browser within 0.3 seconds",
    )


# the credentials


def test_mail_is_offered_only_with_credentials_which_may_be_in_the_state_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert has_gmail_credentials()
    monkeypatch.delenv("PEEKABOO_GMAIL_FOLDER")
    forget_environment()
    assert not has_gmail_credentials()
    folder.rename(folder.parent / "state" / "peekaboo_min" / "gmail")
    assert has_gmail_credentials()


@pytest.mark.parametrize("text", [None, "{", "[]", '{"web": {}}', '{"installed": {}}', '{"installed": "x"}'])
def test_credentials_that_are_missing_or_of_another_kind_say_where_they_come_from(
    folder: Path, text: Optional[str]
) -> None:
    (folder / "credentials.json").unlink()
    if text is not None:
        (folder / "credentials.json").write_text(text)
    wrong = failing(gmail_login, 1)
    assert wrong.code is ErrorCode.FILE_IO_ERROR
    assert "Desktop app in Google's console" in wrong.hint and str(folder) in wrong.message

"""Mail through Gmail: the permission in a browser, its renewal, the mail itself, and the errors."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
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
from peekaboo_min.core.settings import child_environment, settings
from peekaboo_min.integrations.gmail import send_email
from peekaboo_min.integrations.gmail_oauth import gmail_login, has_gmail_credentials

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
    forget()
    (tmp_path / "mail").mkdir(mode=0o700)
    (tmp_path / "mail" / "credentials.json").write_text(google.credentials_json())
    yield tmp_path / "mail"
    forget()


@pytest.fixture
def logged_in(google: FakeGoogle, folder: Path) -> Path:
    """The Gmail folder of a user who has logged in; the access token in it is fresh."""
    granted = google.sign_in()
    save_token(
        folder,
        access_token=granted["access_token"],
        refresh_token=granted["refresh_token"],
        expires_at=time.time() + 3000,
    )
    return folder


def forget() -> None:
    settings.cache_clear()
    child_environment.cache_clear()


def save_token(folder: Path, **token: Any) -> None:
    (folder / "token.json").write_text(json.dumps(token))


def saved_token(folder: Path) -> Any:
    return json.loads((folder / "token.json").read_text())


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


def test_a_mail_is_sent_and_reported_in_the_seeds_grammar(google: FakeGoogle, logged_in: Path) -> None:
    result = send_email("ann@example.org", "Hello", "How are you?\n")
    (mail,) = google.sent
    assert (mail.to, mail.subject, lines(mail.plain), mail.html) == (
        ("ann@example.org",),
        "Hello",
        ["How are you?"],
        None,
    )
    assert result.text == f"EMAIL_SENT: to=ann@example.org, id={mail.id}"
    assert (result.data, result.is_text_only) == ({"to": "ann@example.org", "id": mail.id}, True)
    assert posts(google) == [SEND_PATH]


def test_html_is_sent_beside_the_plain_text(google: FakeGoogle, logged_in: Path) -> None:
    send_email("ann@example.org", "Hello", "plain\n", "<p>rich</p>\n")
    (mail,) = google.sent
    assert mail.message.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in mail.message.iter_parts()] == ["text/plain", "text/html"]
    assert (lines(mail.plain), lines(mail.html)) == (["plain"], ["<p>rich</p>"])


@pytest.mark.parametrize(
    "subject", ["Grüße 世界 👋", "Ü" * 300, "a " * 400, "?= or =?", "", 'comma, \\ and "quotes"']
)
def test_subjects_of_all_kinds_arrive_as_they_are(google: FakeGoogle, logged_in: Path, subject: str) -> None:
    send_email("ann@example.org", subject, "Grüße, 世界 👋\n" + "x" * 2000 + "\n")
    (mail,) = google.sent
    assert mail.subject.rstrip() == subject.rstrip()
    assert lines(mail.plain) == ["Grüße, 世界 👋", "x" * 2000]
    assert max(map(len, mail.raw.split(b"\r\n"))) <= 998 and mail.raw.isascii()


@pytest.mark.parametrize(
    "subject",
    [
        "Hi\nBcc: eve@example.org",
        "Hi\r\nX: y",
        "a\x00b",
        "a\u2028b",
        "a\x85b",
        "x" * 901,
        "=?utf-8?q?Hi=0D=0ABcc:_eve@example.org?=",
    ],
)
def test_a_subject_cannot_smuggle_a_header(google: FakeGoogle, logged_in: Path, subject: str) -> None:
    assert failing(send_email, "ann@example.org", subject, "body").code is ErrorCode.INVALID_ARGUMENT
    assert google.requests == []


def test_a_long_subject_is_refused_before_it_is_searched(google: FakeGoogle, logged_in: Path) -> None:
    wrong = failing(send_email, "ann@example.org", "=?x" * 300_000, "Hello")
    assert (wrong.code, wrong.hint) == (ErrorCode.INVALID_ARGUMENT, "write at most 900")
    assert posts(google) == []


@pytest.mark.parametrize(
    "to",
    [
        "", "ann", "@example.org", "ann@", "ann@example", "a b@example.org",
        "ann@example.org\nBcc: eve@example.org",
        "ann@example.org\n", "ann@example.org, eve@example.org", "Ann <ann@example.org>", "ann@@example.org",
        ".ann@example.org", "ann.@example.org", "a..n@example.org", "ann@-example.org", "ann@example..org",
        "änn@example.org", "ann@exämple.org", "ann@example.org\x00", "x" * 65 + "@example.org",
        "a@" + "b." * 100 + "org",
    ],
)  # fmt: skip
def test_an_invalid_address_is_refused(google: FakeGoogle, logged_in: Path, to: str) -> None:
    wrong = failing(send_email, to, "Hello", "body")
    assert wrong.code is ErrorCode.INVALID_ARGUMENT and "is not an e-mail address" in wrong.message
    assert google.requests == []


@pytest.mark.parametrize(
    "to", ["ann@example.org", " a.n+n'o@sub.example.co ", "x_y@xn--exmple-cua.org", "1@2.org"]
)
def test_valid_addresses_are_accepted(google: FakeGoogle, logged_in: Path, to: str) -> None:
    assert send_email(to, "Hello", "body").data["to"] == to.strip()
    assert google.sent[0].to == (to.strip(),)


def test_a_lone_surrogate_is_refused(google: FakeGoogle, logged_in: Path) -> None:
    for subject, body in (("\ud800", "body"), ("Hello", "\ud800")):
        assert failing(send_email, "ann@example.org", subject, body).code is ErrorCode.INVALID_ARGUMENT
    assert google.sent == []


def test_a_mail_is_an_act_that_can_be_forbidden_and_is_audited(
    google: FakeGoogle, logged_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_email("ann@example.org", "a secret", "a secret")
    audit = (logged_in.parent / "state" / "peekaboo_min" / "audit.jsonl").read_text()
    assert '"action": "send_email"' in audit and "ann@example.org" in audit and "secret" not in audit
    monkeypatch.setenv("PEEKABOO_READONLY", "1")
    forget()
    assert failing_send().code is ErrorCode.POLICY_DENIED
    assert len(google.sent) == 1


# the token


def test_an_expired_token_is_renewed_and_stored_privately(google: FakeGoogle, logged_in: Path) -> None:
    before = {**saved_token(logged_in), "expires_at": time.time() + 30}
    save_token(logged_in, **before)
    send_email("ann@example.org", "Hello", "body")
    after = saved_token(logged_in)
    assert (
        after["access_token"] != before["access_token"] and after["refresh_token"] == before["refresh_token"]
    )
    assert after["expires_at"] > time.time() + 3000
    assert (logged_in / "token.json").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in logged_in.iterdir()) == ["credentials.json", "token.json"]
    send_email("ann@example.org", "Hello", "body")
    assert posts(google) == ["/token", SEND_PATH, SEND_PATH]


def test_a_token_file_of_googles_own_library_is_accepted(google: FakeGoogle, folder: Path) -> None:
    save_token(
        folder,
        token="ya29.old",
        refresh_token=google.sign_in()["refresh_token"],
        expiry="2026-01-01T00:00:00Z",
    )
    send_email("ann@example.org", "Hello", "body")
    assert len(google.sent) == 1


def test_a_rejected_token_is_renewed_once(google: FakeGoogle, logged_in: Path) -> None:
    google.expire_access_tokens()
    send_email("ann@example.org", "Hello", "body")
    assert posts(google) == [SEND_PATH, "/token", SEND_PATH]
    assert len(google.sent) == 1


def test_a_token_that_is_rejected_again_is_an_error(google: FakeGoogle, logged_in: Path) -> None:
    google.expires_in = 0
    google.expire_access_tokens()
    wrong = failing_send()
    assert "Gmail rejected the token: Request had invalid authentication credentials." in wrong.message
    assert wrong.hint == "run peekaboo-min gmail-login again"
    assert posts(google) == [SEND_PATH, "/token", SEND_PATH]


def test_a_revoked_permission_asks_for_another_login(google: FakeGoogle, logged_in: Path) -> None:
    google.revoke()
    wrong = failing_send()
    assert wrong.message == "the permission is no longer valid (Token has been expired or revoked.)"
    assert wrong.hint == "run peekaboo-min gmail-login again"


def test_without_a_login_the_error_says_so(folder: Path) -> None:
    wrong = failing_send()
    assert (wrong.code, wrong.message) == (ErrorCode.FILE_IO_ERROR, f"there is no {folder}/token.json")
    assert wrong.hint == "run peekaboo-min gmail-login"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"refresh_token": 7}', "\u00ff"])
def test_an_invalid_token_file_asks_for_a_login(folder: Path, text: str) -> None:
    (folder / "token.json").write_text(text, encoding="latin-1")
    assert failing_send().hint == "run peekaboo-min gmail-login"


def test_a_client_unknown_to_google_is_reported(google: FakeGoogle, logged_in: Path) -> None:
    google.expire_access_tokens()
    google.client_id = "another"
    assert failing_send().message == "Google does not know this client (The OAuth client was not found.)"


# what Gmail refuses


@pytest.mark.parametrize(
    "failure, message, hint",
    [
        (
            "insufficient_scope",
            "Gmail denied permission: Request had insufficient authentication scopes.",
            "run peekaboo-min gmail-login again, and check that the Gmail API is enabled in Google's console",
        ),
        (
            "rate_limited",
            "Gmail refused: too many requests: User-rate limit exceeded.",
            "wait a while, then send it again",
        ),
        (
            "server_error",
            "Gmail failed with a server error (500): Internal error encountered.",
            "check the sent mails, then try again later",
        ),
        (
            "unavailable",
            "Gmail failed with a server error (503): The service is currently unavailable.",
            "check the sent mails, then try again later",
        ),
    ],
)
def test_a_refusal_is_reported_with_gmails_message_and_never_sent_twice(
    google: FakeGoogle, logged_in: Path, failure: str, message: str, hint: str
) -> None:
    google.fail_with(failure)
    wrong = failing_send()
    assert (wrong.message, wrong.hint) == (message, hint)
    assert posts(google) == [SEND_PATH]


def test_an_unreachable_gmail_is_reported(logged_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeAI() as other:
        host = f"127.0.0.1:{other.refused_port()}"
        monkeypatch.setenv("PEEKABOO_GMAIL_BASE_URL", f"http://{host}")
        forget()
        assert failing_send().message == f"Gmail cannot be reached: connection refused by {host}"


def test_no_error_contains_a_secret(google: FakeGoogle, logged_in: Path) -> None:
    secrets = [*saved_token(logged_in).values(), google.client_secret]
    google.revoke()
    wrong = failing_send()
    assert not [secret for secret in secrets if str(secret) in wrong.sentence() + wrong.details + repr(wrong)]


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
    page = google.consent(login.address, stray_request_first=True)
    assert (page.status, "may now send mail" in page.body) == (200, True)
    assert login.end().data == {"token_path": str(folder / "token.json")}
    assert (folder / "token.json").stat().st_mode & 0o777 == 0o600
    send_email("ann@example.org", "Hello", "body")
    assert len(google.sent) == 1


def test_every_login_has_secrets_of_its_own(google: FakeGoogle, folder: Path, capfd: Any) -> None:
    first, second = Login(capfd, 0.3), Login(capfd, 0.3)
    for login in (first, second):
        login.end()
    addresses = [text for text in capfd.readouterr().err.split() if text.startswith("http")]
    queries = [query_of(address) for address in addresses]
    assert len(queries) == 2
    assert all(queries[0][name] != queries[1][name] for name in ("state", "code_challenge", "redirect_uri"))


def test_a_login_opens_the_browser(google: FakeGoogle, folder: Path) -> None:
    browser = folder.parent / "bin" / "xdg-open"
    browser.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/tests/support/fake_google.py" "$1"\n')
    browser.chmod(0o755)
    assert "logged in to Gmail" in gmail_login(PATIENCE_S).text
    assert saved_token(folder)["refresh_token"]


def test_a_login_that_the_user_denies_is_reported(google: FakeGoogle, folder: Path, capfd: Any) -> None:
    google.user_denies = True
    login = Login(capfd)
    assert "was not granted" in google.consent(login.address).body
    assert login.end().message == "the permission was not granted (access_denied)"
    assert not (folder / "token.json").exists()


def test_a_redirect_with_another_state_is_rejected(google: FakeGoogle, folder: Path, capfd: Any) -> None:
    google.wrong_state = True
    login = Login(capfd, 4)
    assert google.consent(login.address).status == 404
    wrong = login.end()
    assert wrong.code is ErrorCode.TIMEOUT and "a redirect of another login arrived" in wrong.message
    assert "/token" not in posts(google)


def test_only_one_redirect_is_served_and_nothing_else(google: FakeGoogle, folder: Path, capfd: Any) -> None:
    login = Login(capfd)
    query = query_of(login.address)
    here, state = query["redirect_uri"], query["state"]
    assert urlsplit(here).hostname == "127.0.0.1"
    for path in (
        "",
        "favicon.ico",
        "?code=x",
        "?state=",
        f"?state={state}x&code=y",
        f"other?state={state}&code=x",
    ):
        assert visit(here + path)[0] == 404
    assert visit(f"{here}?state={state}&code=x", "POST")[0] == 404
    assert visit(f"{here}?state={state}&code=wrong")[0] == 200
    assert login.end().message.startswith("the permission is no longer valid (Malformed auth code.)")
    with pytest.raises(OSError):
        visit(here)


def test_a_silent_connection_does_not_block_the_login(google: FakeGoogle, folder: Path, capfd: Any) -> None:
    import socket

    login = Login(capfd)
    with socket.create_connection(("127.0.0.1", urlsplit(query_of(login.address)["redirect_uri"]).port)):
        assert google.consent(login.address).status == 200
        assert "logged in" in login.end().text


def test_a_login_ends_when_nobody_answers(google: FakeGoogle, folder: Path) -> None:
    wrong = failing(gmail_login, 0.3)
    assert (wrong.code, wrong.message) == (
        ErrorCode.TIMEOUT,
        "the permission was not granted in the browser within 0.3 seconds",
    )


# the credentials


def test_mail_is_offered_only_with_credentials(folder: Path) -> None:
    assert has_gmail_credentials()
    (folder / "credentials.json").unlink()
    assert not has_gmail_credentials()


def test_without_a_folder_of_its_own_gmail_lives_in_the_state_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PEEKABOO_GMAIL_FOLDER")
    forget()
    assert not has_gmail_credentials()
    (folder.parent / "state" / "peekaboo_min" / "gmail").mkdir(parents=True)
    (folder / "credentials.json").rename(
        folder.parent / "state" / "peekaboo_min" / "gmail" / "credentials.json"
    )
    assert has_gmail_credentials()


def test_missing_credentials_say_where_they_come_from(folder: Path) -> None:
    (folder / "credentials.json").unlink()
    wrong = failing(gmail_login, 1)
    assert (wrong.code, wrong.message) == (ErrorCode.FILE_IO_ERROR, f"there is no {folder}/credentials.json")
    assert "Desktop app" in wrong.hint and str(folder) in wrong.hint


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"web": {"client_id": "x"}}', '{"installed": {"client_id": 7}}']
)
def test_credentials_of_another_kind_are_reported(folder: Path, text: str) -> None:
    (folder / "credentials.json").write_text(text)
    wrong = failing(gmail_login, 1)
    assert wrong.code is ErrorCode.FILE_IO_ERROR and "Google's console" in wrong.hint

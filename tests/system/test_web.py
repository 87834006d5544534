"""Replies of servers: each failure is a WebError."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ssl import SSLCertVerificationError
from unittest.mock import Mock
from urllib.error import URLError

import pytest
from worlds import PATIENCE_S

from peekaboo_min.system import web
from peekaboo_min.system.web import WebError, ask_json, error_text, host_of, is_local_address, is_loopback


@contextmanager
def answering(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Serve one request; yield the address and a list that receives the request."""
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE_S)

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(PATIENCE_S)
                received.append(connection.recv(65536))
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/", received
        thread.join(PATIENCE_S)


OK, BUSY = b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 503 Busy\r\n"


def web_error(url: str, **headers: str) -> WebError:
    with pytest.raises(WebError) as caught:
        ask_json(url, headers=headers, timeout_s=PATIENCE_S)
    return caught.value


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (OK + b"Content-Length: 1\r\n\r\n{", "malformed"),
        (OK + b"Content-Length: 99999\r\n\r\n" + b"[" * 99_999, "malformed"),
        (OK + b"Content-Length: 99\r\n\r\n{}", "closed"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "closed"),
        (BUSY + b"Content-Length: 6\r\n\r\n<html>", "status"),
        (BUSY + b"Content-Length: 0\r\nRetry-After: Fri, 31 Dec 2027 23:59:59 GMT\r\n\r\n", "status"),
    ],
)
def test_ask_json_of_a_malformed_answer_is_an_error_with_its_kind(answer: bytes, kind: str) -> None:
    with answering(answer) as (url, _):
        error = web_error(url.replace("http", "HTTP"))
    assert (error.kind, error.retry_after_s, error.body or "") == (kind, None, "")


@pytest.mark.parametrize(
    ("url", "host"),
    [("https://user:key@example.org:1/a?key=b", "example.org:1"), ("http://[bad", ""), ("nothing", "")],
)
def test_host_of_names_no_secrets(url: str, host: str) -> None:
    assert host_of(url) == host


def test_proxy_gets_the_whole_address_and_its_own_login(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(OK + b"Content-Length: 2\r\n\r\n{}") as (proxy, received):
        monkeypatch.setenv("http_proxy", proxy.replace("//", "//ann:p%40ss@"))
        assert ask_json("http://models.internal/x?y=1", headers={"X-Key": "k"}, timeout_s=PATIENCE_S) == {}
    first, *headers = received[0].decode().split("\r\n")
    assert first == "GET http://models.internal/x?y=1 HTTP/1.1"
    assert {"Host: models.internal", "Proxy-Authorization: Basic YW5uOnBAc3M=", "X-Key: k"} <= set(headers)


def test_proxy_of_a_secret_connection_sees_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n") as (proxy, received):
        monkeypatch.setenv("https_proxy", proxy)
        assert web_error("https://models.invalid/x", **{"X-Key": "k"}).kind == "unreachable"
    assert received[0].startswith(b"CONNECT models.invalid:443 HTTP/1.") and b"X-Key" not in received[0]


def test_proxy_with_a_broken_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:none")
    assert web_error("http://models.invalid/").message == "the address is not a plain http or https URL"


def test_address_or_key_that_cannot_be_sent_is_invalid() -> None:
    errors = [web_error("http://a..b/"), web_error("http://127.0.0.1:1/", key="\xeb")]
    assert [error.kind for error in errors] == ["invalid"] * 2


def test_untrusted_certificate_is_no_failure_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    untrusted = SSLCertVerificationError()
    untrusted.verify_message = "self-signed"
    monkeypatch.setattr(web, "_exchange", Mock(side_effect=URLError(untrusted)))
    assert web_error("https://a.org/").message == "the certificate of a.org is not trusted: self-signed"


def test_loopback_and_private_addresses_are_told_from_the_internet() -> None:
    urls = [f"http://{host}/" for host in ("127.9.0.1", "[::1]", "nas.lan", "a.internal")]
    urls += ["http://127.0.0.1.org/", "http://[2606:4700::1]/"]
    found = [(is_loopback(url), is_local_address(url)) for url in urls]
    assert found == [(True, True), (True, True), *[(False, True)] * 2, *[(False, False)] * 2]


def test_error_text_is_the_first_text_that_is_not_empty() -> None:
    assert [error_text(body) for body in ({"detail": "No."}, {"error": "", "message": "No."})] == ["No."] * 2

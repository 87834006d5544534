"""The log file: whose it is, and what never stands in it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Callable

import pytest

from peekaboo_min.core.log import (
    collected_debug_lines,
    log_debug,
    log_error,
    log_info,
    log_warning,
    start_log_file,
)
from peekaboo_min.core.settings import without_secrets


@pytest.fixture(autouse=True)
def handlers_are_taken_off_again() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in set(root.handlers) - set(handlers):
        stream = getattr(handler, "stream", None)
        if isinstance(getattr(stream, "name", None), int):  # the log file's, which was opened by number
            stream.close()  # type: ignore[union-attr]
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.raiseExceptions = True


@pytest.fixture
def a_key(environment: Callable[..., None]) -> str:
    environment(OPENAI_API_KEY="sk-echoed", GEMINI_API_KEY="sk-echo")  # the start of the other
    return "sk-echoed"


def make_another_users(path: Path, _other: Path) -> None:
    path.touch()
    os.chown(path, 12345, -1)


NOT_OURS: dict[str, Callable[[Path, Path], object]] = {
    "a pipe": lambda path, other: os.mkfifo(path),
    "a link": lambda path, other: path.symlink_to(other),
    "a hard link": lambda path, other: os.link(other, path),
    "a folder": lambda path, other: path.mkdir(),
    "another user's": make_another_users,
}


@pytest.mark.parametrize("kind", NOT_OURS)
def test_log_file_is_one_of_ours(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    if kind == "another user's" and os.getuid():
        pytest.skip("only root can give a file away")
    path, other = tmp_path / "log", tmp_path / "other"
    other.write_text("")
    NOT_OURS[kind](path, other)
    start_log_file(path, "info", also_console=False)
    log_info("here")
    assert other.read_text() == ""
    error = capsys.readouterr().err
    assert error.startswith("peekaboo-min: no log: cannot write") and "PEEKABOO_LOG_FILE" in error


def test_log_file_is_private_and_holds_no_key(tmp_path: Path, a_key: str) -> None:
    (tmp_path / "log").touch(0o644)
    start_log_file(tmp_path / "log", "info", also_console=False)
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600
    with collected_debug_lines() as lines:
        log_info(f"the endpoint repeats {a_key} and \ud800")
    (entry,) = map(json.loads, (tmp_path / "log").read_text(encoding="utf-8").splitlines())
    cleaned = "the endpoint repeats *** and \ufffd"
    assert (entry["msg"], lines) == (cleaned, [cleaned])
    assert without_secrets(f"a{a_key}b") == "a***b"


def test_log_lines_have_level_traceback_and_the_sdks_warnings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start_log_file(tmp_path / "log", "WARNING", also_console=True)
    log_debug("too much")
    log_info("too much")
    log_warning("careful")
    try:
        raise ZeroDivisionError("nothing is left")
    except ZeroDivisionError:
        log_error("it failed", exc_info=True)
    logging.getLogger("mcp.server").info("too much")
    logging.getLogger("mcp.server").warning("the client %s", "left")
    text = (tmp_path / "log").read_text(encoding="utf-8")
    entries = [json.loads(line) for line in text.splitlines()]
    assert [(entry["level"], entry["msg"]) for entry in entries] == [
        ("warn", "careful"),
        ("error", "it failed"),
        ("warn", "the client left"),
    ]
    assert all(entry["pid"] == os.getpid() and entry["time"].endswith("Z") for entry in entries)
    assert "ZeroDivisionError: nothing is left" in entries[1]["stack"] and "stack" not in entries[0]
    assert capsys.readouterr().err == text


def test_log_on_a_full_disk_says_nothing_on_stderr(
    tmp_path: Path, a_key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    start_log_file(tmp_path / "log", "info", also_console=False)
    handler = logging.getLogger().handlers[-1]
    with open("/dev/full", "w") as full:
        handler.stream.close()  # type: ignore[attr-defined]
        handler.stream = full  # type: ignore[attr-defined]
        log_info(a_key)
        handler.stream = None  # type: ignore[attr-defined]
        with suppress(OSError):
            full.close()
    assert capsys.readouterr().err == ""

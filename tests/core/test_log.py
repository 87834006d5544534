"""The log files: owner, rotation, levels, and no secrets."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest
from samples import error_of
from worlds import PATIENCE_S, clean_environment

from peekaboo_min.automation.policy import write_audit_line
from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.core.log import (
    _JsonLines,
    append_line,
    collected_debug_lines,
    log_debug,
    log_error,
    log_for_agent,
    log_info,
    log_warning,
    start_log_file,
    write_agent_line,
)
from peekaboo_min.core.settings import without_secrets
from peekaboo_min.system.files import state_folder

skipif = pytest.mark.skipif


@pytest.fixture(autouse=True)
def restore_handlers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("time.localtime", None)  # all times are UTC
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.raiseExceptions = True


@pytest.fixture
def a_key(environment: Callable[..., None]) -> str:
    # one key is a prefix of another; one is too short to be a secret
    environment(OPENAI_API_KEY="sk-echoe", GEMINI_API_KEY="sk-echoed\udcff", ANTHROPIC_API_KEY="endpoin")
    return "sk-echoed\udcff"


@pytest.mark.parametrize(
    "line",
    [
        "mkfifo $1",
        "ln -s $2 $1",
        "ln $2 $1",
        "mkdir $1",
        pytest.param("touch $1; chown 12345 $1", marks=skipif(os.getuid() != 0, reason="only root can")),
    ],
)
def test_file_of_another_kind_or_user_is_no_log(tmp_path: Path, line: str) -> None:
    path, other = tmp_path / "log", tmp_path / "other"
    other.write_text("my own")
    subprocess.run(["sh", "-c", line, "sh", path, other], check=True)
    error = error_of(append_line, path, "a line")
    assert error.code is ErrorCode.FILE_IO_ERROR and str(path) in error.message
    assert ("regular file that you own" in error.message) is (line != "mkdir $1")
    assert other.read_text() == "my own"


@pytest.fixture
def linked(tmp_path: Path, environment: Callable[..., None]) -> Path:
    """Make the audit log and tmp_path/log links to the file that is returned."""
    environment(XDG_STATE_HOME=str(tmp_path))
    for path in (tmp_path / "log", state_folder() / "audit.jsonl"):
        path.symlink_to(tmp_path / "other")
    return tmp_path / "other"


def test_server_log_that_is_a_link_is_refused(linked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger().handlers.clear()
    for name in ("log", "log/log"):
        start_log_file(linked.with_name("log").parent / name, "info", also_console=False)
        log_info("here")
        error = capsys.readouterr().err
        assert error.startswith("peekaboo-min: no log: cannot write") and "PEEKABOO_LOG_FILE" in error
    assert logging.getLogger().handlers, "else the SDK adds one that writes to stderr"
    assert not linked.exists()


def test_log_with_a_hard_link_is_refused_and_closed(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    os.link(tmp_path / "log", tmp_path / "other")
    before = os.listdir("/proc/self/fd")
    assert error_of(append_line, tmp_path / "log", "a line").code is ErrorCode.FILE_IO_ERROR
    assert os.listdir("/proc/self/fd") == before


def test_audit_and_agent_log_that_is_a_link_is_refused(linked: Path) -> None:
    assert error_of(write_audit_line, "click", {"window_id": 7}).code is ErrorCode.FILE_IO_ERROR
    error = error_of(write_agent_line, linked.with_name("log"), "client", "a line")
    assert error.code is ErrorCode.FILE_IO_ERROR
    assert not linked.exists()


def test_agent_log_keeps_line_breaks_and_trailing_blanks_in_one_line(tmp_path: Path, a_key: str) -> None:
    write_agent_line(tmp_path / "log", "[client]", f"LLM => {a_key} one \ttwo\r\nthree\n  ")
    assert (tmp_path / "log").read_text().partition("[client]")[2] == " LLM => *** one  two\\nthree\\n  \n"
    write_agent_line(tmp_path / "log", "[client]", f"{'x' * 99_965}{a_key}")
    assert "sk-" not in (tmp_path / "log").read_text(), "half a key, where the line is cut"


def test_unwritable_agent_log_fails_no_tool(tmp_path: Path, environment: Callable[..., None]) -> None:
    environment(PEEKABOO_AGENT_LOG=str(tmp_path))
    with collected_debug_lines() as lines:
        log_for_agent("[server]", "drawn")
    log_info("later")
    assert len(lines) == 2 and lines[0] == "[server] drawn" and lines[1].startswith(f"{tmp_path}: ")


APPENDING = """
import sys
from pathlib import Path
from peekaboo_min.core.log import append_line
for number in range(30):
    append_line(Path(sys.argv[1]), f"{sys.argv[2]} {number} " + "x" * 100_000)
"""


def test_log_of_several_processes_is_rotated_and_loses_no_line(tmp_path: Path) -> None:
    argv, environment = [sys.executable, "-c", APPENDING, str(tmp_path / "log")], clean_environment(tmp_path)
    writers = [subprocess.Popen([*argv, name], env=environment) for name in "abcd"]
    assert [writer.wait(PATIENCE_S) for writer in writers] == [0] * 4
    paths = sorted(tmp_path.glob("log*"))
    lines = [line.split() for path in paths for line in path.read_text().splitlines()]
    written = sorted((name, int(number), len(text)) for name, number, text in lines)
    assert written == [(name, number, 100_000) for name in "abcd" for number in range(30)]
    # the process that rotates may be slow; the others append at the same time
    assert len(paths) > 1 and max(path.stat().st_size for path in paths) < 10_000_000


def test_log_that_another_process_has_just_moved_or_deleted_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, older, real_open = tmp_path / "log", tmp_path / "log.1", os.open
    for act in (lambda: log.replace(older), log.unlink):
        log.write_text("x" * 5_000_000)
        monkeypatch.setattr(os, "open", lambda *given, act=act: (real_open(*given), act())[0])
        append_line(log, "late \ud800")
        assert [*tmp_path.iterdir()] == [older]


def test_log_that_another_process_rotates_now_is_only_written(tmp_path: Path) -> None:
    with open(tmp_path / "log", "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        append_line(tmp_path / "log", "x" * 5_000_000)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_log_keeps_two_older_files(tmp_path: Path) -> None:
    for number in range(201):
        append_line(tmp_path / "log", f"{number} ".ljust(99_999, "x"))
    first_words = {path.name: path.read_text().split()[0] for path in tmp_path.iterdir()}
    assert first_words == {"log": "200", "log.1": "150", "log.2": "100"}


def test_log_file_is_private_and_holds_no_key(tmp_path: Path, a_key: str) -> None:
    (tmp_path / "log").touch(0o644)
    start_log_file(tmp_path / "log", "unknown", also_console=False)
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600
    with collected_debug_lines() as lines:
        log_info(f"the endpoint repeats {a_key} and \ud800", exc_info=ValueError(a_key))
        logging.getLogger("mcp.server").info("a window's title")
    (entry,) = map(json.loads, (tmp_path / "log").read_text(encoding="utf-8").splitlines())
    cleaned = "the endpoint repeats *** and \ufffd"
    assert (entry["msg"], entry["stack"], lines) == (cleaned, "ValueError: ***", [cleaned])
    record = logging.makeLogRecord({"created": 60.0, "msecs": 5.0})
    assert json.loads(_JsonLines().format(record))["time"] == "1970-01-01T00:01:00.005Z"
    assert without_secrets(f"a{a_key}b sk-echoe b") == "a***b *** b"


def test_log_has_levels_traces_and_sdk_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a" / "new" / "log"
    start_log_file(path, "WARNING", also_console=True)
    log_debug("too much")
    log_info("too much")
    log_warning("careful")
    try:
        raise ZeroDivisionError("nothing is left")
    except ZeroDivisionError:
        log_error("it failed", exc_info=True)
    logging.getLogger("mcp.server").info("too much")
    logging.getLogger("mcp.server").warning("the client %s", "left")
    text = path.read_text(encoding="utf-8")
    entries = [json.loads(line) for line in text.splitlines()]
    logged = [(entry["level"], entry["msg"]) for entry in entries]
    assert logged == [("warn", "careful"), ("error", "it failed"), ("warn", "the client left")]
    assert all(entry["pid"] == os.getpid() and entry["time"].endswith("Z") for entry in entries)
    assert "ZeroDivisionError: nothing is left" in entries[1]["stack"] and "stack" not in entries[0]
    assert capsys.readouterr().err == text


def test_lost_log_prints_nothing(tmp_path: Path, a_key: str, capsys: pytest.CaptureFixture[str]) -> None:
    start_log_file(tmp_path / "log", "info", also_console=False)
    (tmp_path / "log").unlink()
    (tmp_path / "log").mkdir()
    log_info(a_key)
    assert capsys.readouterr().err == ""

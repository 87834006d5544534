"""Error messages, and log lines about programs, refusals and Keynote."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest
from answers import refused
from fakemac import FakeMac
from macs import mac_environment
from mcp_server import Server, initialized
from worlds import executable

from peekaboo_min.core.log import collected_debug_lines
from peekaboo_min.desktop.macos.osascript import script_error
from peekaboo_min.system.process import run_program, running


@pytest.fixture(scope="module")
def server(shared_mac: FakeMac) -> Iterator[Server]:
    with initialized("package", mac_environment(shared_mac, PEEKABOO_LOG_LEVEL="debug")) as started:
        yield started


@pytest.fixture
def mac(shared_mac: FakeMac) -> Iterator[FakeMac]:
    yield shared_mac
    shared_mac.heal()


@pytest.fixture
def log(mac: FakeMac) -> Callable[[str], list[str]]:
    """Return a function that lists the messages of this test with a level."""
    path = mac.folder / "log"
    start = len(path.read_text("utf-8")) if path.exists() else 0

    def messages(level: str) -> list[str]:
        lines = map(json.loads, path.read_text("utf-8")[start:].splitlines())
        return [line["msg"] for line in lines if line["level"] == level]

    return messages


def test_error_ends_with_the_programs_stderr(server: Server, mac: FakeMac) -> None:
    # spec: "screencapture エラー: `stderr` を要約し、`CaptureFailed` で返却。"
    stderr = "-" * 300 + "could not create image\u202e from window\n" + "x" * 264
    mac.fail("screencapture", stderr=stderr)
    error = refused(server.call("screenshot_app_window", appName="Calculator", timeoutMs=50_000))
    assert error["code"] == "CaptureFailed"
    assert "could not create image" in error["said"], error
    text, details = error["said"].split(" (could not create image")
    assert ". Next step: " in text and details.startswith("  from window xxx")


def test_error_without_stderr_has_no_details(server: Server, mac: FakeMac) -> None:
    # spec: "AppleScript errors: Print the raw `osascript` output"
    answers = []
    for stderr in ("12:5: syntax error", ""):
        mac.fail("osascript", exit=1, stderr=stderr, when=["function retryWhileStarting"])
        mac.fail("sips", exit=13, stderr=stderr)
        mac.fail("open", exit=1, stderr=stderr)
        calls: Any = {"image": {"app": "Safari", "return_data": True}, "open": {"app": "Calculator"}}
        for tool, arguments in {"open_keynote": {}, **calls}.items():
            answer = server.call(tool, **arguments)
            answers.append((answer["_meta"]["backend_error_code"], answer["content"][0]["text"]))
        mac.heal()
    loud, silent = answers[:3], answers[3:]
    assert [code for code, _ in answers] == 2 * ["PROGRAM_FAILED", "SIPS_ERROR", "PROGRAM_FAILED"]
    assert [text for _, text in loud] == [f"{text} (12:5: syntax error)" for _, text in silent]
    assert "details" not in str(answers)
    assert "details" not in script_error("").hint


def test_log_shows_only_flags_and_numbers_of_a_programs_arguments() -> None:
    # spec: "Log the constructed Swift command with Pino at debug level", and "If any data is received on
    # Swift CLI's stderr, log it immediately with Pino at warn level, prefixed".
    with collected_debug_lines() as lines:
        argv = [sys.executable, "-c", "print('secret')", "-u", "--b-c", "1090", "1234567890", "-1x"]
        run_program(argv, timeout_s=60)
        run_program(["/bin/sh", "-c", "printf '\\n\\033careful' >&2; kill -9 $$"], timeout_s=60, accept=None)
    python = re.escape(Path(sys.executable).name)
    patterns = [
        rf"ran {python} -c <15 characters> -u --b-c 1090 <10 characters> <3 characters>: exit code 0, \d+ ms",
        r"\[sh-stderr\] careful",
        r"ran sh -c <38 characters>: exit code -9, \d+ ms",
    ]
    assert re.fullmatch("\n".join(patterns), "\n".join(lines))
    head = ["head", "-n", "1"]
    with collected_debug_lines() as lines:
        with running(head, None, timeout_s=60) as talk:
            assert talk.ask("hello", lambda answer: answer.endswith("\n")) == "hello\n"
            talk.end()
        with running(["sleep", "600"], b""):
            pass
    assert [re.sub(r"\d+ ms", "_ ms", line) for line in lines] == [
        "ran head -n 1: exit code 0, _ ms",
        "ran sleep <3 characters>: exit code -9, _ ms",
    ]


def test_log_has_the_exit_code_of_a_failed_program_but_not_its_output(
    server: Server, mac: FakeMac, log: Callable[[str], list[str]]
) -> None:
    script = '#!/bin/sh\n[ "$1" = --version ] || { echo secret; exit 3; }\n'
    path = executable(mac.bin_dir / "peekaboo", script)
    for _ in range(2):
        assert server.call("peekaboo_exec", args=["image", "hunter2"])["isError"] is False
    assert log("error") == [f"{path} image ended with exit code 3"] * 2
    text = (mac.folder / "log").read_text("utf-8")
    assert "secret" not in text and "hunter2" not in text


def test_server_log_has_the_keynote_calls(
    server: Server, mac: FakeMac, log: Callable[[str], list[str]]
) -> None:
    # spec: "Log: tool name, parameters, AppleScript runner output, elapsed time, and return string."
    mac.keynote(moves_shapes_by=0.5)
    server.call("open_keynote")
    drawn = server.call("draw_rectangle", x=384, y=378, width=1152, height=324)
    assert drawn["_meta"]["note"] == "Keynote moved or resized it; 384,378 1152x324 was requested"
    server.call("add_text_in_keynote", text="Grüße")
    server.call("draw_rectangle", x=9, y=9, width=0, height=9)
    text = "\n".join(log("info"))
    assert re.search(
        r"\[server\]\[tool=draw_rectangle\] args=\{'x':384,'y':378,'width':1152,'height':324\} -> "
        r"RECTANGLE_OK: id=\S+, x=384(.0)?, y=378.5, width=1152, height=324 \[elapsed=\d+\.\d{3}s\]",
        text,
    )
    assert "[tool=add_text_in_keynote] args={'text':'Grüße'} -> TEXT_OK: " in text
    assert '[server] osascript text -> {"text": "Grüße"}' in text.splitlines()
    assert "'height':9} -> ERROR: x=9, y=9, width=0, height=9 is not a rectangle on the slide" in text
    assert "[server] Keynote moved or resized it; 384,378 1152x324 was requested" in text.splitlines()
    assert '[server] osascript draw -> {"index": 1, ' in text

"""What a model gets to know of a failure, and what the log has of programs, refusals and Keynote."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answers import refused
from fakemac import FakeMac
from macs import mac_environment
from mcp_server import Server, serving

from peekaboo_min.core.log import collected_debug_lines
from peekaboo_min.desktop.macos.osascript import script_error
from peekaboo_min.system.process import run_program, running


@pytest.fixture
def server(mac: FakeMac, tmp_path: Path) -> Iterator[Server]:
    log = {"PEEKABOO_LOG_LEVEL": "debug", "PEEKABOO_LOG_FILE": str(tmp_path / "log")}
    with serving("package", mac_environment(mac, **log)) as started:
        started.shake_hands()
        yield started


def test_error_holds_the_programs_own_words_after_the_next_step(server: Server, mac: FakeMac) -> None:
    """ "screencapture エラー: `stderr` を要約し、`CaptureFailed` で返却。" """
    words = "could not create image\u202e from window\n" + "x" * 100
    mac.fail("screencapture", stderr=words)
    told = refused(server.call("screenshot_app_window", appName="Calculator"))
    assert told["code"] == "CaptureFailed"
    assert "could not create image" in told["said"], told
    text, details = told["said"].split(" (could not create image")
    assert ". Next step: " in text and details.startswith("  from window xxx")


def test_error_names_no_details_that_are_not_there(server: Server, mac: FakeMac) -> None:
    """ "AppleScript errors: Print the raw `osascript` output" """
    answers = []
    for words in ("12:5: syntax error", ""):
        mac.fail("osascript", exit=1, stderr=words, when=["function whenStarted"])
        mac.fail("sips", exit=13, stderr=words)
        mac.fail("open", exit=1, stderr=words)
        calls: Any = {"image": {"app": "Safari", "return_data": True}, "open": {"app": "Calculator"}}
        for tool, arguments in {"open_keynote": {}, **calls}.items():
            answer = server.call(tool, **arguments)
            answers.append((answer["_meta"]["backend_error_code"], answer["content"][0]["text"]))
        mac.heal()
    loud, silent = answers[:3], answers[3:]
    assert [code for code, _ in answers] == 2 * ["PROGRAM_FAILED", "SIPS_ERROR", "PROGRAM_FAILED"]
    assert [text for _, text in loud] == [f"{text} (12:5: syntax error)" for _, text in silent]
    assert "details" not in str(answers)
    assert "details" not in script_error(1, "").hint


def test_log_shows_of_a_programs_arguments_flags_and_numbers_only() -> None:
    """ "Log the constructed Swift command with Pino at debug level", and "If any data is received on Swift
    CLI's stderr, log it immediately with Pino at warn level, prefixed".
    """
    with collected_debug_lines() as lines:
        run_program(
            [sys.executable, "-c", "print('secret')", "-u", "--b-c", "1090", "1234567890", "-1x"],
            timeout_s=60,
        )
        run_program(["/bin/sh", "-c", "echo careful >&2; kill -9 $$"], timeout_s=60, accept=None)
    python = re.escape(Path(sys.executable).name)
    wanted = [
        rf"ran {python} -c <15 characters> -u --b-c 1090 <10 characters> <3 characters>: exit code 0, \d+ ms",
        r"\[sh-stderr\] careful",
        r"ran sh -c <28 characters>: exit code -9, \d+ ms",
    ]
    assert [bool(re.fullmatch(pattern, line)) for pattern, line in zip(wanted, lines)] == [True] * 3, lines
    assert len(lines) == 3
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


def test_log_of_the_server_has_keynotes_tools_with_any_client(
    server: Server, mac: FakeMac, tmp_path: Path
) -> None:
    """ "Log: tool name, parameters, AppleScript runner output, elapsed time, and return string." """
    mac.keynote(moves_shapes_by=0.5)
    server.call("open_keynote")
    drawn = server.call("draw_rectangle", x=384, y=378, width=1152, height=324)
    assert drawn["_meta"]["note"] == "Keynote did not keep 384,378 1152x324"
    server.call("add_text_in_keynote", text="Hello")
    lines = map(json.loads, (tmp_path / "log").read_text().splitlines())
    text = "\n".join(line["msg"] for line in lines if line["level"] == "info")
    assert re.search(
        r"\[server\]\[tool=draw_rectangle\] args=\{'x':384,'y':378,'width':1152,'height':324\} -> "
        r"RECTANGLE_OK: id=\S+, x=384(.0)?, y=378.5, width=1152, height=324 \[elapsed=\d+\.\d{3}s\]",
        text,
    )
    assert "[tool=add_text_in_keynote] args={'text':'Hello'} -> TEXT_OK: " in text
    assert '[server] osascript draw -> {"index": 1, ' in text

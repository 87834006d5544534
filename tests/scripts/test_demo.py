"""scripts/demo.py on machines that lack what it needs: one sentence with the next step, no process left."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fake_ai import FakeAI
from worlds import ROOT, X_PROGRAMS, Finished, Form, clean_environment, need, processes_of, wait_for

X_PORT = 6000
LONGEST_S = 60.0  # generous: the machine may be busy
HANGS = "sleep 1000"
FAILS = "echo 'it is not installed here' >&2; exit 1"
MISSING = ""

# A program that only the demo itself needs: what stands in its place, first on PATH and alone; the advice.
OWN_PROGRAMS = [
    ("Xvfb", MISSING, "apt-get install xvfb"),
    ("openbox", FAILS, "apt-get install --reinstall openbox"),
    ("wish", FAILS, "apt-get install --reinstall tk"),
]
OWN_HANGING = {"Xvfb": "xvfb", "openbox": "openbox", "wish": "tk"}


class Demo:
    """A copy of the demo, so that its output folder is the test's own."""

    def __init__(self, folder: Path) -> None:
        (folder / "scripts").mkdir()
        for name in ("demo.py", "headless.py", "demo_form.tcl"):
            shutil.copy(ROOT / "scripts" / name, folder / "scripts")
        self.output = folder / "demo-output"
        self.words = [sys.executable, str(folder / "scripts" / "demo.py")]
        self.environment = clean_environment(folder)

    def run(self, **variables: str) -> Finished:
        return finished(self.start(**variables))

    def start(self, **variables: str) -> subprocess.Popen[str]:
        environment = {name: value for name, value in {**self.environment, **variables}.items() if value}
        pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            self.words, env=environment, cwd=self.output.parent, encoding="utf-8", **pipes
        )

    def completes(self, **variables: str) -> Finished:
        """A demo that does all that it should."""
        done = self.run(**variables)
        assert done.code == 0, done.err
        assert "the application confirms: its dialog is open" in done.out, done.out + done.err
        for name in ("before.jpg", "after.jpg"):
            assert (self.output / name).stat().st_size > 1000
        return done


def finished(process: subprocess.Popen[str]) -> Finished:
    try:
        out, err = process.communicate(timeout=LONGEST_S)
    finally:
        process.kill()
    return Finished(process.returncode, out, err)


def sentence_of(done: Finished) -> str:
    """The one sentence of a demo that failed."""
    assert done.code > 0 and "Traceback" not in done.out, done.out
    lines = done.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("demo: "), done.err
    return lines[0]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    need(*X_PROGRAMS, "tesseract")
    yield Demo(tmp_path)
    wait_for(lambda: not processes_of(tmp_path), "all that the demo started has ended")


def stranger(folder: Path, name: str, body: str) -> Path:
    """A program of this name that does something else; without a body a file that cannot be run."""
    folder.mkdir(exist_ok=True)
    (folder / name).unlink(missing_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755 if body else 0o644)
    return folder / name


@pytest.mark.parametrize("name, body, advice", OWN_PROGRAMS)
def test_demo_names_a_missing_or_broken_program_and_its_package(
    demo: Demo, tmp_path: Path, name: str, body: str, advice: str
) -> None:
    sentence = sentence_of(demo.run(PATH=only_path(tmp_path / "bin", name, body)))
    assert name in sentence and advice in sentence


def only_path(folder: Path, name: str, body: str) -> str:
    """A PATH with all programs that the demo needs, but a stranger for the one of this name."""
    folder.mkdir()
    for program in {*X_PROGRAMS, "tesseract", "sh", "sleep"}:
        (folder / program).symlink_to(shutil.which(program) or "/missing")
    stranger(folder, name, body)
    return str(folder)


def test_demo_gives_up_what_hangs_or_is_dead(tmp_path: Path) -> None:
    """All at once: each is waited for."""
    need(*X_PROGRAMS, "tesseract")
    with socket.create_server(("127.0.0.1", 0)) as silent, ExitStack() as stack:
        displays = (":4321", f"127.0.0.1:{silent.getsockname()[1] - X_PORT}")
        advice = {name: f"apt-get install --reinstall {package}" for name, package in OWN_HANGING.items()}
        advice |= dict.fromkeys(displays, "env -u DISPLAY sh scripts/demo.sh")
        runs = {}
        for number, name in enumerate(advice):
            folder = tmp_path / str(number)
            folder.mkdir()
            hangs = {"PATH": only_path(folder / "bin", name, HANGS)} if name in OWN_HANGING else {}
            runs[name] = stack.enter_context(Demo(folder).start(**(hangs or {"DISPLAY": name})))
        for name, process in runs.items():
            sentence = sentence_of(finished(process))
            assert name in sentence and advice[name] in sentence
    wait_for(lambda: not any(map(processes_of, tmp_path.iterdir())), "all that the demos started has ended")


def test_demo_is_not_changed_by_other_programs_and_variables(demo: Demo, tmp_path: Path) -> None:
    stranger(tmp_path / "first", "convert", FAILS)
    ours = """READONLY=1 TOOLS=capture AI_PROVIDERS=nobody/nothing DESKTOP=macos BIN_DIR=/nowhere
        CLI_PATH=/nowhere/peekaboo DENY_APPS=* TTL_SECONDS=often"""
    done = demo.completes(
        PATH=f"{tmp_path / 'first'}{os.pathsep}{os.environ['PATH']}",
        **dict.fromkeys(("HOME", "XDG_STATE_HOME", "TMPDIR"), "/proc/nowhere"),
        **{f"PEEKABOO_{name}": value for name, value in (pair.split("=") for pair in ours.split())},
        DISPLAY="",
        WAYLAND_DISPLAY="wayland-0",
    )
    assert (demo.output / "clicked.png").stat().st_size > 1000
    assert "note: the agent did not reach its goal" in done.out and "report" not in done.out
    assert len(done.err.splitlines()) == 1 and "there is no provider 'nobody'" in done.err


def test_demo_lets_the_agent_use_the_model_that_is_asked_for(demo: Demo, ai: FakeAI) -> None:
    ai.brain = lambda _request: {"action": "done", "why": "it is filled in", "confidence": 0.9}
    done = demo.completes(**ai.env("ollama", "qwen3-vl:8b"))
    report = demo.output / "agent-run" / "report.html"
    assert f"the agent's report: {report}" in done.out and report.exists()
    assert "note:" not in done.out and len(ai.requests) > 0


def test_demo_only_looks_at_a_real_display(demo: Demo, form: Form, display: str) -> None:
    done = demo.run(DISPLAY=display, PEEKABOO_TOOLS="nothing")
    assert (done.code, done.err) == (0, "")
    assert "Visitor book" in done.out and (demo.output / "screen.png").exists()
    assert not form.events("click") and not form.events("key")


def test_demo_names_an_output_folder_that_cannot_be_written(demo: Demo) -> None:
    demo.output.write_text("a file")
    sentence = sentence_of(demo.run())
    assert str(demo.output) in sentence and "remove it" in sentence


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_demo_ends_all_that_it_started_at_a_signal(demo: Demo, number: signal.Signals) -> None:
    process = demo.start()
    assert process.stdout and process.stdout.readline().startswith("list_windows")
    process.send_signal(number)
    _, err = process.communicate(timeout=LONGEST_S)
    assert (process.returncode, err) == (128 + number, "")

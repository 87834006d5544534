"""scripts/demo.py: missing or hanging programs, models, displays, signals."""

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

import pytest
from fake_ai import FakeAI
from worlds import (
    PATIENCE_S,
    ROOT,
    X_PROGRAMS,
    Finished,
    Form,
    Program,
    clean_environment,
    executable,
    need,
    processes_of,
    wait_for,
)

X_PORT = 6000
HANGS = "exec sleep 1000"
FAILS = "echo 'it is not installed here' >&2; exit 1"


class Demo(Program):
    """A copy of the demo with its own output folder."""

    def __init__(self, folder: Path) -> None:
        (folder / "scripts").mkdir()
        for name in ("demo.py", "demo_form.tcl"):
            shutil.copy(ROOT / "scripts" / name, folder / "scripts")
        super().__init__([sys.executable, str(folder / "scripts" / "demo.py")], clean_environment(folder))

    @property
    def output(self) -> Path:
        return Path(self.words[1]).parent.parent / "demo-output"

    def run_completely(self, **variables: str) -> Finished:
        """Run the demo to its end and check its output."""
        done = self.run(**variables)
        assert done.code == 0, done.err
        assert "the application confirms: its dialog is open" in done.out, done.out + done.err
        for name in ("before.jpg", "after.jpg"):
            assert (self.output / name).stat().st_size > 1000
        return done


def finished(process: subprocess.Popen[bytes]) -> Finished:
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    return Finished(process.returncode, out.decode(), err.decode())


def error_line(done: Finished) -> str:
    """Return the single error line of a failed demo."""
    assert done.code > 0 and "Traceback" not in done.out, done.out
    lines = done.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("demo: "), done.err
    return lines[0]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    need(*X_PROGRAMS, "tesseract")
    yield Demo(tmp_path)
    wait_for(lambda: not processes_of(tmp_path), "all processes of the demo have ended")


def fake_first(path: Path, body: str) -> str:
    """Return a PATH with a fake program before the real ones."""
    return f"{executable(path, body).parent}{os.pathsep}{os.environ['PATH']}"


def test_demo_reports_a_broken_form_and_dead_displays(tmp_path: Path) -> None:
    """Run all cases at once: each waits for a timeout."""
    need(*X_PROGRAMS, "tesseract")
    with socket.create_server(("127.0.0.1", 0)) as silent, ExitStack() as stack:
        displays = (":4321", f"127.0.0.1:{silent.getsockname()[1] - X_PORT}")
        forms = dict.fromkeys((HANGS, FAILS), ("wish", "apt-get install --reinstall tk"))
        runs = {}
        for number, case in enumerate((*forms, *displays)):
            folder = tmp_path / str(number)
            folder.mkdir()
            if case in forms:
                process = Demo(folder).start(PATH=fake_first(folder / "bin" / "wish", case))
            else:
                process = Demo(folder).start("--my-screen", DISPLAY=case)
            runs[case] = stack.enter_context(process)
        for case, process in runs.items():
            error = error_line(finished(process))
            assert all(part in error for part in forms.get(case, (case, "leave out --my-screen")))
    wait_for(lambda: not any(map(processes_of, tmp_path.iterdir())), "all processes of the demos have ended")


def test_demo_ignores_other_programs_and_variables(demo: Demo, tmp_path: Path) -> None:
    ours = """READONLY=1 TOOLS=capture AI_PROVIDERS=unknown/model DESKTOP=macos BIN_DIR=/nowhere
        CLI_PATH=/nowhere/peekaboo DENY_APPS=* TTL_SECONDS=often"""
    done = demo.run_completely(
        PATH=fake_first(tmp_path / "first" / "convert", FAILS),
        **dict.fromkeys(("HOME", "XDG_STATE_HOME", "TMPDIR"), "/proc/nowhere"),
        **{f"PEEKABOO_{name}": value for name, value in (pair.split("=") for pair in ours.split())},
        DISPLAY=":4321",
        WAYLAND_DISPLAY="wayland-0",
    )
    assert (demo.output / "clicked.png").stat().st_size > 1000
    assert "note: the agent did not reach its goal" in done.out and "report" not in done.out
    assert len(done.err.splitlines()) == 1 and "there is no provider 'unknown'" in done.err


def test_demo_runs_the_agent_with_the_configured_model(demo: Demo, ai: FakeAI) -> None:
    ai.brain = lambda _request: {"action": "done", "why": "it is filled in", "confidence": 0.9}
    done = demo.run_completely(**ai.env("ollama", "qwen3-vl:8b"))
    report = demo.output / "agent-run" / "report.html"
    assert f"the agent's report: {report}" in done.out and report.exists()
    assert "note:" not in done.out and len(ai.requests) > 0


def test_demo_does_not_click_on_a_real_display(demo: Demo, form: Form, display: str) -> None:
    done = demo.run("--my-screen", DISPLAY=display, PEEKABOO_TOOLS="nothing")
    assert (done.code, done.err) == (0, "")
    assert "Visitor book" in done.out and (demo.output / "screen.png").exists()
    assert not form.events("click") and not form.events("key")


def test_demo_names_an_output_folder_that_cannot_be_written(demo: Demo) -> None:
    demo.output.write_text("a file")
    error = error_line(demo.run())
    assert str(demo.output) in error and "remove it" in error


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_demo_ends_all_its_processes_on_a_signal(demo: Demo, number: signal.Signals) -> None:
    process = demo.start()
    assert process.stdout and process.stdout.readline().startswith(b"list_windows")
    process.send_signal(number)
    done = finished(process)
    assert (done.code, done.err) == (128 + number, "")

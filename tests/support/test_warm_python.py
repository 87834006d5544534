"""What a warm Python starts behaves as what Python itself starts: compared with it, one by one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import warm_python
from worlds import PATIENCE_S, SINGLE_FILE, clean_environment, wait_for

SAYS = """import atexit, json, os, sys, warnings
atexit.register(print, "end")
path = [one for one in sys.path if "tests" not in one]
streams = [(one.encoding, one.errors) for one in (sys.stdin, sys.stdout, sys.stderr)]
variables = {**os.environ, "PWD": ""}  # a shell starts the warm one
json.dump([sys.argv, path, sorted(variables.items()), os.getcwd(), sys.stdin.read(), streams], sys.stdout)
warnings.warn("x")
raise SystemExit(7)
"""
CASES: dict[str, list[str]] = {
    "arguments, variables, folder and streams": ["says.py", "a b", "Zoë", ""],
    "code": ["-c", SAYS, "a b"],
    "a warning": ["-W", "error", "says.py"],
    "the single file": [str(SINGLE_FILE), "--version"],
    "a server whose stdin is at its end": ["-W", "error::ResourceWarning", "-m", "peekaboo_min"],
}


def ended(python: str, words: list[str], folder: Path) -> tuple[int, bytes, bytes]:
    environment = clean_environment(folder)
    done = subprocess.run(
        [python, *words], env=environment, cwd=folder, input=b"", capture_output=True, timeout=PATIENCE_S
    )
    return done.returncode, done.stdout, done.stderr.splitlines()[-1] if done.stderr else b""


@pytest.mark.parametrize("words", CASES.values(), ids=CASES.keys())
def test_warm_python_does_what_python_does(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "says.py").write_text(SAYS)
    assert ended(warm_python.python(), words, tmp_path) == ended(sys.executable, words, tmp_path)


def test_warm_python_killed_kills_what_it_runs(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text("import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    argv = [warm_python.python(), str(tmp_path / "waits.py")]
    environment = {"PATH": os.environ["PATH"]}
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout
        pid = int(process.stdout.readline())
        process.kill()
    assert process.returncode == -signal.SIGKILL
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "it is dead")

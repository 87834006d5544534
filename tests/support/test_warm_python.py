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

SAYS = (
    "import json, os, sys; path = [one for one in sys.path if 'tests' not in one]; "
    "json.dump([sys.argv, path, sorted(os.environ.items()), os.getcwd(), sys.stdin.read(),"
    " [(one.isatty(), one.encoding, one.errors) for one in (sys.stdin, sys.stdout, sys.stderr)]], sys.stdout)"
)
CASES: dict[str, list[str]] = {
    "arguments, variables, folder and streams": ["-c", SAYS, "a b", "Zoë", ""],
    "a sentence": ["-c", "raise SystemExit('no')"],
    "an end by a signal": ["-c", "import os; os.kill(os.getpid(), 9)"],
    "a warning": ["-W", "error", "-c", "import warnings; warnings.warn('x')"],
    "a module": ["-m", "peekaboo_min", "--version"],
    "a file": [str(SINGLE_FILE), "--version"],
    "a server whose stdin is at its end": ["-m", "peekaboo_min"],
    "what is done at the end": ["-c", "import atexit; atexit.register(print, 'end'); raise SystemExit(7)"],
}


def ended(python: str, words: list[str], folder: Path) -> tuple[int, bytes, bytes]:
    environment = clean_environment(folder)
    done = subprocess.run(
        [python, *words], env=environment, cwd=folder, input=b"", capture_output=True, timeout=PATIENCE_S
    )
    # a shell starts it
    out = done.stdout.replace(f'["PWD", "{folder}"], '.encode(), b"")
    return done.returncode, out, done.stderr.splitlines()[-1] if done.stderr else b""


@pytest.mark.parametrize("words", CASES.values(), ids=CASES.keys())
def test_warm_python_does_what_python_does(tmp_path: Path, words: list[str]) -> None:
    assert ended(warm_python.python(), words, tmp_path) == ended(sys.executable, words, tmp_path)


# not SIGHUP, which is ignored below nohup
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_warm_python_passes_signals_on_and_dies_with_its_starter(number: signal.Signals) -> None:
    code = "import os, time; print(os.getpid(), flush=True); os.close(1); time.sleep(600)"
    process = subprocess.Popen(
        [warm_python.python(), "-c", code],
        env={"PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        assert process.stdout
        pid = int(process.stdout.read())  # to its end: it has closed it
        assert process.poll() is None
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == -number
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "it is dead")

"""What a warm Python starts behaves as what Python itself starts: compared with it, one by one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import warm_python
from worlds import PATIENCE_S, ROOT, SINGLE_FILE, clean_environment, wait_for

SAYS = (
    "import json, os, sys; path = [one for one in sys.path if 'tests' not in one]; "
    "json.dump([sys.argv, path, sorted(os.environ.items()), os.getcwd(), sys.stdin.read(),"
    " [(one.isatty(), one.encoding, one.errors) for one in (sys.stdin, sys.stdout, sys.stderr)]], sys.stdout)"
)
CASES: dict[str, list[str]] = {
    "arguments, variables, folder and streams": ["-c", SAYS, "a b", "Zoë", ""],
    "an exit code": ["-c", "raise SystemExit(7)"],
    "a sentence": ["-c", "raise SystemExit('no')"],
    "an end by a signal": ["-c", "import os; os.kill(os.getpid(), 9)"],
    "a warning": ["-W", "error", "-c", "import warnings; warnings.warn('x')"],
    "a module": ["-m", "peekaboo_min", "--version"],
    "a file": [str(SINGLE_FILE), "--version"],
    "a refused command": ["-W", "error", "-m", "peekaboo_min", "no-such-command"],
    "a server whose stdin is at its end": ["-m", "peekaboo_min"],
    "what is done at the end": ["-c", "import atexit; atexit.register(print, 'end'); print('begin')"],
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
def test_it_does_what_python_does(tmp_path: Path, words: list[str]) -> None:
    assert ended(warm_python.python(), words, tmp_path) == ended(sys.executable, words, tmp_path)


def started(code: str, **options: Any) -> tuple[subprocess.Popen[str], int]:
    """A warm Python that printed its process id, and that."""
    words = [warm_python.python(), "-c", f"import os, time; print(os.getpid(), flush=True); {code}"]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env={"PATH": os.environ["PATH"]}, **options
    )
    assert process.stdout
    return process, int(process.stdout.readline())


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


# not SIGHUP, which is ignored below nohup
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_it(number: signal.Signals) -> None:
    process, pid = started("time.sleep(600)", stderr=subprocess.DEVNULL)
    with process:
        process.send_signal(number)
        try:
            assert process.wait(PATIENCE_S) == -number
        finally:
            process.kill()
    assert not lives(pid)


def test_it_ends_when_its_starter_is_killed() -> None:
    process, pid = started("time.sleep(600)")
    with process:
        process.kill()
    wait_for(lambda: not lives(pid), "it is dead")


def test_its_output_has_an_end_when_it_closes_it() -> None:
    process, _ = started("os.close(1); time.sleep(600)")
    with process:
        assert process.stdout and process.stdout.read() == ""
        assert process.poll() is None
        process.kill()


def test_a_server_of_the_tests_is_ours(tmp_path: Path) -> None:
    words = ["-c", "import peekaboo_min, sys; print(peekaboo_min.__file__, sys.executable)"]
    code, out, _ = ended(warm_python.python(), words, tmp_path)
    assert (code, out.decode().split()) == (0, [f"{ROOT}/peekaboo_min/__init__.py", warm_python.python()])

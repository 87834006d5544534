"""Run each test file in its own pytest, several at once, because tests mostly wait for windows and programs.

The last line has the totals: `N passed, N failed`, and `, N skipped` if tests were skipped.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).resolve().parent.parent
LONGEST_S = 20 * 60
CLEANING_UP_S = 60
NO_TESTS_COLLECTED = 5


class FileRun(NamedTuple):
    """The run of one file: pytest's output, and the number of tests per outcome (`passed`, `failed`, ...)."""

    path: Path
    has_passed: bool
    output: str
    outcomes: Counter[str]

    def report(self) -> str:
        lines = self.output.strip().splitlines() or ["no output"]
        details = [line for line in lines if line.startswith("SKIPPED")] if self.has_passed else lines
        return "\n".join([f"{self.path.name:<28}{lines[-1]}", *details])


def run_file(path: Path, folder: Path, longest_s: float = LONGEST_S) -> FileRun:
    """Run one file. folder: parent of its temporary folder; pytests that share it delete each other's."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    # compile the shared imports only once
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(
        [*argv, f"--basetemp={folder / path.stem}", str(path)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, code = process.communicate(timeout=longest_s)[0], process.returncode
        except subprocess.TimeoutExpired:
            output, code = end(process) + f"\nended after {longest_s:g} s", 1
    has_passed = code in (0, NO_TESTS_COLLECTED)
    summary = re.findall(r"^\d+ [a-z]+.* in [\d.]+s.*$", output, re.MULTILINE)[-1:]
    outcomes: Counter[str] = Counter()
    for number, outcome in re.findall(r"(\d+) ([a-z]+)", "".join(summary).partition(" in ")[0]):
        outcomes["failed" if outcome.startswith("error") else outcome] += int(number)
    if not has_passed and not outcomes["failed"]:
        outcomes["failed"] = 1  # it crashed or was ended, so there is no summary
    return FileRun(path, has_passed, output, outcomes)


def end(process: subprocess.Popen[str]) -> str:
    """Interrupt a pytest, so that its fixtures clean up; kill its group if it does not end."""
    process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=CLEANING_UP_S)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return "it did not end when it was interrupted"  # its children may hold the pipe open


def main() -> int:
    """Print a line per file, and the whole output of a failing file; return 0 if all passed."""
    started = time.monotonic()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # in a script, `sh scripts/test.sh &` ignores SIGINT, and the children would inherit that
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # longest first, so that no long file runs alone at the end; tests of scripts/ are short and run long
    files = sorted(
        TESTS.rglob("test_*.py"),
        key=lambda path: (path.parent.name != "scripts", -path.stat().st_size, path.stem),
    )
    runs = []
    # three per processor, because tests wait more than half of their time
    with (
        tempfile.TemporaryDirectory(prefix="tests-", ignore_cleanup_errors=True) as folder,
        ThreadPoolExecutor(max_workers=3 * (os.cpu_count() or 2)) as pool,
    ):
        for future in as_completed([pool.submit(run_file, path, Path(folder)) for path in files]):
            runs.append(future.result())
            print(runs[-1].report(), flush=True)
    failed = sorted(run.path.name for run in runs if not run.has_passed)
    print(f"{len(runs) - len(failed)} of {len(runs)} files passed in {time.monotonic() - started:.0f} s")
    print(f"FAILED: {', '.join(failed)}" if failed else "all passed")
    outcomes = sum((run.outcomes for run in runs), Counter())
    skipped = f", {outcomes['skipped']} skipped" if outcomes["skipped"] else ""
    print(f"{outcomes['passed']} passed, {outcomes['failed']} failed{skipped}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Run each test file in a pytest of its own, several at once: they mostly wait for windows and programs.

The last line sums all files up, alone on its line: `N passed, N failed`, and `, N skipped` where any was.
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
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS.parent), str(TESTS.parent / "scripts")]

import warm_python  # noqa: E402

LONGEST_S = 20 * 60
CLEANING_UP_S = 60
NO_TESTS_COLLECTED = 5


@dataclass
class FileRun:
    """One file's run: pytest's output, and how many tests came to each outcome (`passed`, `failed`, ...)."""

    path: Path
    code: int
    output: str
    seconds: float
    outcomes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        lines = self.output.strip().splitlines() or ["no output"]
        self.summary = lines[-1]
        counts = [line for line in lines if re.match(r"\d+ [a-z]+.* in [\d.]+s", line)][-1:]
        for number, outcome in re.findall(r"(\d+) ([a-z]+)", "".join(counts).partition(" in ")[0]):
            self.outcomes["failed" if outcome.startswith("error") else outcome] += int(number)
        if not self.has_passed and not self.outcomes["failed"]:
            self.outcomes["failed"] = 1  # it crashed or was ended: no summary counts what is missing

    @property
    def has_passed(self) -> bool:
        return self.code in (0, NO_TESTS_COLLECTED)

    def report(self) -> str:
        details = [line for line in self.output.splitlines() if line.startswith("SKIPPED")]
        return "\n".join(
            [
                f"{self.path.name:<28}{self.summary}  [{self.seconds:.0f} s]",
                *(details if self.has_passed else [self.output]),
            ]
        )


def run_file(path: Path, folder: Path, longest_s: float = LONGEST_S) -> FileRun:
    """Run one file. folder: for its temporary files; several pytests in one would clean up each other's."""
    started = time.monotonic()
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    argv += [f"--basetemp={folder / path.stem}", str(path)]
    environment = {**os.environ, warm_python.SHARED: warm_python.python()}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what all files import is compiled once
    with subprocess.Popen(
        argv,
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
    return FileRun(path, code, output, time.monotonic() - started)


def end(process: subprocess.Popen[str]) -> str:
    """Interrupt a pytest, so that its fixtures end what they started; kill its group if need be."""
    process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=CLEANING_UP_S)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return "it did not end when it was interrupted"  # what it started may hold the pipe open


def main() -> int:
    """0 when every file passed; prints a line for each file, and the whole output of one that fails."""
    started = time.monotonic()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # `sh scripts/test.sh &` in a script: what we start would ignore what ends it, too
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # the longest first, so that none of them is left running alone at the end
    files = sorted(TESTS.rglob("test_*.py"), key=lambda path: (-path.stat().st_size, path.stem))
    runs = []
    warm_python.python()  # before several threads ask for it
    # two for a processor: half of their time tests wait
    with (
        tempfile.TemporaryDirectory(prefix="tests-", ignore_cleanup_errors=True) as folder,
        ThreadPoolExecutor(max_workers=2 * (os.cpu_count() or 2)) as pool,
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

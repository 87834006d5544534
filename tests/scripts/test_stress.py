"""The stress job starts, and its exit code is 1 if a wrong press was not reported."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from worlds import PATIENCE_S, ROOT, X_PROGRAMS, need

START = "import clicks, runpy, mcp_server; {}; runpy.run_path('scripts/stress', {{}}, '__main__')"
WRONG_PRESS = "clicks.race = lambda on: on.tally.judge('click', mcp_server.Reply(), True, 'rival got it')"


@pytest.mark.parametrize(
    ("change", "code", "summary"),
    [("pass", 0, "no violation"), (WRONG_PRESS, 1, "VIOLATIONS: click-race: 1 unreported")],
    ids=["undisturbed click", "wrong press"],
)
def test_stress_job_fails_if_a_wrong_press_is_not_reported(change: str, code: int, summary: str) -> None:
    need(*X_PROGRAMS)
    one_click = ["--class", "click-race", "--kind", "nothing", "--trials", "1"]
    done = subprocess.run(
        [sys.executable, "-c", START.format(change), *one_click], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": ".:tests/support:scripts/stress"}, timeout=4 * PATIENCE_S,
    )  # fmt: skip
    assert (done.returncode, done.stdout.splitlines()[-1]) == (code, summary), done.stderr

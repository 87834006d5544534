"""The stress job starts, and its exit code is 1 if a wrong press was not reported."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from worlds import PATIENCE_S, ROOT, X_PROGRAMS, need

CLICK = ["--class", "click-race", "--kind", "nothing", "--trials", "1"]
RUN = "run_path('scripts/stress', run_name='__main__')"
UNDISTURBED = "pass"
WRONG_PRESS = "clicks.race = lambda on: on.tally.judge('click', Reply(), True, elsewhere='rival got it')"


@pytest.mark.parametrize(
    ("change", "code", "summary"),
    [(UNDISTURBED, 0, "no violation"), (WRONG_PRESS, 1, "VIOLATIONS: click-race: 1 unreported")],
    ids=["undisturbed click", "wrong press"],
)
def test_stress_job_fails_only_if_a_press_is_wrong_and_unreported(
    change: str, code: int, summary: str
) -> None:
    need(*X_PROGRAMS)
    folders = [ROOT, ROOT / "tests" / "support", ROOT / "scripts" / "stress"]
    start = f"import clicks, runpy; from mcp_server import Reply; {change}; runpy.{RUN}"
    done = subprocess.run(
        [sys.executable, "-c", start, *CLICK],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        capture_output=True, encoding="utf-8", timeout=4 * PATIENCE_S,
    )  # fmt: skip
    assert (done.returncode, done.stdout.splitlines()[-1]) == (code, summary), done.stderr

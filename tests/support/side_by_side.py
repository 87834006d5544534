"""Run the test files side by side, a pytest each: they wait for windows and programs more than they compute."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
# The long ones first, so that none is left alone at the end.
LONG = (
    "test_cli",
    "test_macos",
    "test_vision_agent",
    "test_click_and_type",
    "test_capture_x11",
    "test_desktop_contract",
    "test_server",
)


def run_file(path: Path) -> tuple[Path, int, str, float]:
    started = time.monotonic()
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return path, done.returncode, done.stdout, time.monotonic() - started


def main() -> int:
    """0 when every file passed; prints a line per file, and all that a failing one said."""
    started = time.monotonic()
    files = sorted(
        TESTS.rglob("test_*.py"),
        key=lambda one: (LONG.index(one.stem) if one.stem in LONG else len(LONG), one.stem),
    )
    failed = []
    with ThreadPoolExecutor(max_workers=(os.cpu_count() or 2) + 1) as pool:
        for path, code, said, seconds in pool.map(run_file, files):
            print(f"{path.name:<28}{said.strip().splitlines()[-1]}  [{seconds:.0f} s]", flush=True)
            skips = [line for line in said.splitlines() if line.startswith("SKIPPED")]
            print("\n".join(skips) if code in (0, 5) and skips else "", end="\n" if skips else "")
            if code not in (0, 5):
                failed.append(path.name)
                print(said, flush=True)
    print(
        f"{len(files) - len(failed)} of {len(files)} test files passed in {time.monotonic() - started:.0f} s"
    )
    print(f"FAILED: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

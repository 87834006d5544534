"""Thousands of hostile cases by class, decided by what the windows themselves report; not part of the suite.

    python tests/trials.py [--class NAME ...] [--kind KIND] [--trials N] [--seed S] [--output FILE]

prints a table (tests/support/hostile/tally.py says what its columns mean) and the most frequent findings of
each class. The same seed gives the same cases; how a race ends is up to the machine. Each class has X servers
of its own, ends by itself and leaves nothing. A few run in the suite (tests/automation/test_trials.py).
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
from pathlib import Path
from typing import Optional

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "support"), str(HERE.parent / "scripts")]

from hostile import calm, clicks, faults, keys, paste, wire  # noqa: E402
from hostile.stage import Driver  # noqa: E402
from hostile.tally import Tally, table  # noqa: E402

# name -> driver, and the share of --trials that it takes
CLASSES: dict[str, tuple[Driver, float]] = {
    "click-race": (clicks.race_clicks, 1.0),
    "click-race-bare": (clicks.race_clicks_bare, 0.3),
    "drag-race": (clicks.race_drags, 0.5),
    "wheel-race": (clicks.race_wheels, 0.5),
    "standing-cover": (clicks.hold_covers, 0.1),
    "typing": (keys.steal_focus, 0.5),
    "crowd": (keys.crowd, 0.5),
    "four-servers": (keys.four_servers, 0.1),
    "paste": (paste.break_pastes, 0.2),
    "paste-ended": (paste.end_pastes, 0.1),
    "programs": (faults.break_programs, 0.5),
    "display-gone": (faults.end_displays, 0.1),
    "disk": (faults.fill_disks, 0.2),
    "arguments": (wire.fuzz_arguments, 1.0),
    "lines": (wire.fuzz_lines, 1.0),
    "argv": (wire.fuzz_argv, 1.0),
    "models": (wire.lie_to_models, 0.5),
    "replies": (wire.read_lies, 5.0),
    "calm": (calm.stay_calm, 0.5),
}


def run_class(name: str, trials: int, seed: int, kind: Optional[str]) -> Tally:
    driver, share = CLASSES[name]
    return driver(random.Random(f"{seed}/{name}"), max(1, round(trials * share)), kind)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--class", dest="names", action="append", choices=list(CLASSES), help="may be repeated"
    )
    parser.add_argument("--trials", type=int, default=100, help="the size of the largest class; default 100")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", help="only this kind of case, in the words of the driver: `menu`, `steal`")
    parser.add_argument("--output", type=Path, help="a file that gets the table as well")
    arguments = parser.parse_args()
    # ended from outside, the X servers and programs of a class end as well
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    tallies = []
    for name in arguments.names or CLASSES:
        tallies.append(run_class(name, arguments.trials, arguments.seed, arguments.kind))
        print(table(tallies[-1:]), flush=True)
    text = table(tallies)
    if len(tallies) > 1:
        print(text)
    if arguments.output:
        arguments.output.write_text(text, encoding="utf-8")
    return 1 if any(one.unreported or one.hung or one.tracebacks for one in tallies) else 0


if __name__ == "__main__":
    sys.exit(main())

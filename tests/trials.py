"""Run thousands of hostile cases and check replies against the windows' reports; not part of the suite.

    python tests/trials.py [--class NAME ...] [--kind KIND] [--trials N] [--seed S]

prints a table and the most frequent findings of each class. The same seed gives the same cases; the winner of
a race depends on the machine. Each class starts its own X servers and cleans up. A few cases run in the suite
(tests/automation/test_trials.py). The columns of the table:
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Callable, NamedTuple, Optional

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path[:0] = [str(HERE.parent), str(HERE / "support"), str(HERE.parent / "scripts")]

from hostile import calm, clicks, faults, keys, paste, person, steps  # noqa: E402
from hostile.stage import Stage, stage  # noqa: E402
from hostile.tally import COLUMNS, Tally, table  # noqa: E402

Driver = Callable[[Stage, random.Random, int, Optional[str]], None]


class TrialClass(NamedTuple):
    """A driver, its share of --trials, and its desktop (see stage())."""

    driver: Driver
    share: float
    desktop: str = "managed"


CLASSES = {
    "click-race": TrialClass(clicks.race, 1.0),
    "click-race-bare": TrialClass(clicks.race, 0.3, "bare"),
    "drag-race": TrialClass(partial(clicks.race, act="drag"), 0.5),
    "wheel-race": TrialClass(partial(clicks.race, act="scroll"), 0.5),
    "standing-cover": TrialClass(partial(clicks.race, standing=True), 0.1),
    "typing": TrialClass(keys.steal_focus, 0.5),
    "lost-keys": TrialClass(keys.lose_keys, 0.5),
    "slow-display": TrialClass(keys.type_slowly, 0.05),
    "crowd": TrialClass(keys.crowd, 0.5),
    "crowd-own-folders": TrialClass(partial(keys.crowd, own_folders=True), 0.3),
    "steps": TrialClass(steps.disturb_steps, 0.4),
    "paste": TrialClass(paste.break_pastes, 0.2),
    "paste-slow": TrialClass(paste.slow_pastes, 0.2),
    "paste-vain": TrialClass(paste.vain_pastes, 0.05),
    "paste-ended": TrialClass(paste.end_pastes, 0.1),
    "person": TrialClass(person.stay_beside, 0.5),
    "programs": TrialClass(faults.break_programs, 0.5),
    "display-gone": TrialClass(faults.end_displays, 0.1, "none"),
    "calm": TrialClass(calm.stay_calm, 0.5),
    "effect": TrialClass(calm.verify_effects, 0.5),
}


def run_class(name: str, trials: int, seed: str, kind: Optional[str] = None) -> Tally:
    tally, start = Tally(name), time.monotonic()
    with stage(tally, CLASSES[name].desktop) as on:
        CLASSES[name].driver(on, random.Random(f"{seed}/{name}"), trials, kind)
    tally.seconds = time.monotonic() - start
    return tally


def main() -> int:
    columns = "\n".join(f"    {column:<11} {meaning}" for column, meaning in COLUMNS.items())
    parser = argparse.ArgumentParser(
        description=f"{__doc__}\n{columns}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--class", dest="names", action="append", choices=list(CLASSES), help="may be repeated"
    )
    parser.add_argument("--trials", type=int, default=100, help="the size of the largest class; default 100")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--kind", help="only this kind of case; each driver has its own, such as `menu`")
    arguments = parser.parse_args()
    # on SIGTERM, unwind so that the X servers and programs of a class end too
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    tallies = []
    for name in arguments.names or CLASSES:
        trials = max(1, round(arguments.trials * CLASSES[name].share))
        tallies.append(run_class(name, trials, arguments.seed, arguments.kind))
        print(table(tallies[-1:]), flush=True)
    if len(tallies) > 1:
        print(table(tallies))
    return 1 if any(tally.violations("wrong", "lost", "leaked") for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(main())

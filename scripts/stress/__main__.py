"""Act under attack on X11, thousands of times, and compare each reply with the windows' own reports.

Each class of trials has its own desktops. The same seed gives the same trials; who wins a race depends on
the machine. The exit code is 1 if a class has a count that it must not have, such as an act that reached a
wrong window and was reported as delivered. The columns of the table:
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
from functools import partial
from typing import Callable, NamedTuple

import calm
import clicks
import faults
import keys
import paste
import person
import steps
from stage import Stage, stage
from tally import COLUMNS, Tally, table


class TrialClass(NamedTuple):
    """A driver, its share of --trials, and the columns that may count something besides trials and acts."""

    driver: Callable[[Stage], None]
    share: float
    allowed: str = "doubted"
    is_bare: bool = False  # no window manager
    needs_new_desktops: bool = False  # one for each trial


_RACE = "doubted wrong lost"  # a window may change between the last check and the press, or after it
CLASSES = {
    "click-race": TrialClass(clicks.race, 1.0, _RACE),
    "click-race-bare": TrialClass(clicks.race, 0.3, _RACE, is_bare=True),
    "drag-race": TrialClass(partial(clicks.race, act="drag"), 0.5, _RACE),
    "wheel-race": TrialClass(partial(clicks.race, act="scroll"), 0.5, _RACE),
    "standing-cover": TrialClass(partial(clicks.race, is_standing=True), 0.1),
    "typing": TrialClass(keys.steal_focus, 0.5),
    "lost-keys": TrialClass(keys.lose_keys, 0.5),
    "slow-display": TrialClass(keys.type_slowly, 0.05),
    "crowd": TrialClass(keys.crowd, 0.06),
    "crowd-own-folders": TrialClass(partial(keys.crowd, has_own_folders=True), 0.04),
    "steps": TrialClass(steps.disturb_steps, 0.4),
    "paste": TrialClass(paste.break_pastes, 0.2),
    "paste-slow": TrialClass(paste.slow_pastes, 0.2),
    "paste-vain": TrialClass(partial(paste.slow_pastes, kinds=paste.DEAF), 0.05),
    "paste-ended": TrialClass(paste.end_pastes, 0.1),
    "person": TrialClass(person.stay_beside, 0.5, "doubted wrong"),  # a drag may end elsewhere
    "programs": TrialClass(faults.break_programs, 0.5),
    "display-gone": TrialClass(faults.end_display, 0.1, needs_new_desktops=True),
    "calm": TrialClass(calm.stay_calm, 0.5, ""),
    "effect": TrialClass(calm.verify_effects, 0.5),
}


def run_class(name: str, trials: int, seed: str, kind: str) -> Tally:
    tally, rng = Tally(name), random.Random(f"{seed}/{name}")
    chosen = CLASSES[name]
    desktops, count = (trials, 1) if chosen.needs_new_desktops else (1, trials)
    for _ in range(desktops):
        with stage(tally, chosen.is_bare, rng, count, kind) as on:
            chosen.driver(on)
    return tally


def main() -> int:
    columns = "\n".join(f"    {column:<11} {meaning}" for column, meaning in COLUMNS.items())
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("stress", description=f"{__doc__}\n{columns}", formatter_class=formatter)
    parser.add_argument("--class", dest="names", action="append", choices=CLASSES, help="may be repeated")
    parser.add_argument("--trials", type=int, default=100, help="the size of the largest class; default 100")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--kind", default="", help="only this kind of trial; the classes' modules list them")
    arguments = parser.parse_args()
    # on SIGTERM, unwind, so that the X servers and programs of a class end, too
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    tallies = []
    for name in arguments.names or CLASSES:
        trials = max(1, round(arguments.trials * CLASSES[name].share))
        tallies.append(run_class(name, trials, arguments.seed, arguments.kind))
        print(table(tallies[-1:]), flush=True)
    violations = [
        f"{tally.name}: {count} {column}"
        for tally in tallies
        for column, count in tally.counts.items()
        if column not in ("trials", "acted", *CLASSES[tally.name].allowed.split())
    ]
    if len(tallies) > 1:
        print(table(tallies))
    print(f"VIOLATIONS: {'; '.join(violations)}" if violations else "no violation")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())

"""Counts of a trial class, rules that compare a reply with the facts, and the result table."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from .rpc import GONE, HUNG, Reply

COLUMNS = {
    "trials": "the number of trials",
    "acted": "acts that reached the intended window and are reported as delivered",
    "wrong": "acts that reached another window (or a wrong text in the right one), reported or not",
    "unreported": "acts of `wrong` reported as delivered, and faults reported as a success",
    "lost": "reported as delivered, but never arrived; a clipboard not restored; missing characters",
    "doubted": "acts that reached the intended window but are not reported as delivered",
    "leaked": "files, processes and pressed keys left behind",
    "hung": "no answer, or a process that does not end",
    "tracebacks": "unexpected exceptions, INTERNAL_ERROR, bytes that are not JSON, servers that died",
}


@dataclass
class Tally:
    """The counts of one class, and notes that explain them."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def count(self, columns: str, note: str = "") -> None:
        """Add one to each of these columns (names separated by spaces)."""
        for column in columns.split():
            assert column in COLUMNS
            self.counts[column] += 1
        if note:
            self.note(note)

    def note(self, text: str) -> None:
        self.notes[text[:220]] += 1

    def violations(self, *allowed: str) -> dict[str, int]:
        """Return the nonzero counts of columns that should be zero."""
        harmless = ("trials", "acted", "doubted", *allowed)
        return {column: number for column, number in self.counts.items() if column not in harmless}

    def has_failed(self, what: str, reply: Reply) -> bool:
        """Return True and count the reply if it is a hang, a dead server or an internal error."""
        if reply.code not in (HUNG, GONE, "INTERNAL_ERROR"):
            return False
        # Stage.finish counts the traceback of an INTERNAL_ERROR, which is in the log
        columns = {HUNG: "hung", GONE: "tracebacks"}.get(reply.code, "")
        self.count(columns, f"{reply.code}: {what}: {reply.text[:80]}")
        return True

    def judge(self, what: str, reply: Reply, has_arrived: bool, elsewhere: str = "", lost: str = "") -> None:
        """Compare the reply with the facts: the act arrived, or had an effect elsewhere.

        lost: columns for a delivered act that did not arrive; the window may close right after its press.
        """
        if self.has_failed(what, reply):
            return
        report = f"reported as {reply.code or 'delivered ' + json.dumps(reply.data.get('delivered', True))}"
        if elsewhere:
            columns = "wrong unreported" if reply.is_delivered else "wrong"
            self.count(columns, f"{what}: {elsewhere}, {report}")
        elif has_arrived:
            self.count(*(["acted"] if reply.is_delivered else ["doubted", f"{what}: it arrived, {report}"]))
        elif reply.is_delivered:
            self.count(lost or "lost unreported", f"{what}: it did not arrive, or not all, {report}")


def table(tallies: list[Tally]) -> str:
    """Format the tallies as text: one line per class, then the most frequent notes of each."""
    rows = [["class", *COLUMNS, "seconds"]]
    for tally in tallies:
        rows.append([tally.name, *(str(tally.counts[one]) for one in COLUMNS), f"{tally.seconds:.1f}"])
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    for tally in tallies:
        notes = [f"  {count:5} x {note}" for note, count in tally.notes.most_common(12)]
        lines += ["", f"{tally.name}:", *notes] if notes else []
    return "\n".join(lines) + "\n"

"""What a class of trials counts, a reply judged by the truth, and the table of it all."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from .rpc import GONE, HUNG, Reply

COLUMNS = {
    "trials": "how many",
    "acted": "acts that reached the window that was meant and are reported so",
    "wrong": "acts that reached another window (or a wrong text in the right one), reported or not",
    "unreported": "those of `wrong` reported as delivered, and faults that are answered as a success",
    "lost": "reported as delivered, and nobody got it; a clipboard not put back; missing characters",
    "doubted": "acts that reached the window that was meant, reported as anything else",
    "leaked": "files, processes and pressed keys that are still there and should not be",
    "hung": "no answer, or no end",
    "tracebacks": "unexpected exceptions, INTERNAL_ERROR, bytes that are not JSON, servers that died",
}


@dataclass
class Tally:
    """One class: how often each column was counted. `notes` says why."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def count(self, columns: str, note: str = "") -> None:
        """One more in each of these columns, whose names are separated by spaces."""
        for column in columns.split():
            assert column in COLUMNS
            self.counts[column] += 1
        if note:
            self.note(note)

    def note(self, text: str) -> None:
        self.notes[text[:220]] += 1

    def violations(self, *allowed: str) -> dict[str, int]:
        """What was counted of that which must not be."""
        harmless = ("trials", "acted", "doubted", *allowed)
        return {column: number for column, number in self.counts.items() if column not in harmless}

    def has_failed(self, what: str, reply: Reply) -> bool:
        """Whether a reply is no proper answer; then it is counted."""
        if reply.code not in (HUNG, GONE, "INTERNAL_ERROR"):
            return False
        # the traceback of an INTERNAL_ERROR is in the log, and Stage.finish counts it
        columns = {HUNG: "hung", GONE: "tracebacks"}.get(reply.code, "")
        self.count(columns, f"{reply.code}: {what}: {reply.text[:80]}")
        return True

    def judge(self, what: str, reply: Reply, has_arrived: bool, elsewhere: str = "", lost: str = "") -> None:
        """Compare what is reported with what arrived where it was meant, and with what happened elsewhere.

        lost: the columns for what did not arrive and is reported so; a race may end between press and look.
        """
        if self.has_failed(what, reply):
            return
        said = f"reported as {reply.code or 'delivered ' + json.dumps(reply.data.get('delivered', True))}"
        if elsewhere:
            self.count("wrong unreported" if reply.is_delivered else "wrong", f"{what}: {elsewhere}, {said}")
        elif has_arrived:
            self.count(*(["acted"] if reply.is_delivered else ["doubted", f"{what}: it arrived, {said}"]))
        elif reply.is_delivered:
            self.count(lost or "lost unreported", f"{what}: nobody got it, or not all, {said}")


def table(tallies: list[Tally]) -> str:
    """The tallies as text: a line a class, then the most frequent notes of each."""
    rows = [["class", *COLUMNS, "seconds"]]
    for tally in tallies:
        rows.append([tally.name, *(str(tally.counts[one]) for one in COLUMNS), f"{tally.seconds:.1f}"])
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    for tally in tallies:
        notes = [f"  {count:5} x {note}" for note, count in tally.notes.most_common(12)]
        lines += ["", f"{tally.name}:", *notes] if notes else []
    return "\n".join(lines) + "\n"

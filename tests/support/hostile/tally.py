"""What a class of trials counts, and the table of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

COLUMNS = (
    "class", "trials", "acted", "wrong", "unreported", "lost", "doubted", "leaked", "hung",
    "tracebacks", "seconds",
)  # fmt: skip


@dataclass
class Tally:
    """One class: how many trials, and what went wrong in them. `notes` says which."""

    name: str
    trials: int = 0
    acted: int = 0
    """Acts that reached the window that was meant and are reported so."""
    wrong: int = 0
    """Acts that reached another window (or a wrong text in the right one), reported or not."""
    unreported: int = 0
    """Those of `wrong` that are reported as delivered, and faults that are answered as a success."""
    lost: int = 0
    """Reported as delivered, and nobody got it; a clipboard not put back; missing characters."""
    doubted: int = 0
    """Acts that reached the window that was meant, reported as anything else."""
    leaked: int = 0
    """Files and processes that are still there and should not be."""
    hung: int = 0
    tracebacks: int = 0
    """Unexpected exceptions, INTERNAL_ERROR answers, bytes that are not JSON, servers that died."""
    seconds: float = 0.0
    notes: Counter[str] = field(default_factory=Counter)

    def note(self, text: str) -> None:
        self.notes[text[:220]] += 1

    def row(self) -> list[str]:
        numbers = [
            self.trials, self.acted, self.wrong, self.unreported, self.lost, self.doubted, self.leaked,
            self.hung, self.tracebacks,
        ]  # fmt: skip
        return [self.name, *map(str, numbers), f"{self.seconds:.1f}"]


def table(tallies: list[Tally], note_count: int = 12) -> str:
    """The tallies as text: a line a class, then the most frequent notes of each."""
    rows = [list(COLUMNS), *(one.row() for one in tallies)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    for one in tallies:
        if one.notes:
            lines += ["", f"{one.name}:"]
            lines += [f"  {count:5} x {note}" for note, count in one.notes.most_common(note_count)]
    return "\n".join(lines) + "\n"

"""The counts of a trial class, the rules that compare a reply with the facts, and the result table."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field

from mcp_server import Reply

NO_ANSWER = "NO_ANSWER"  # the code of a Reply if the server hangs or has died
COLUMNS = {
    "trials": "the number of trials",
    "acted": "acts that reached the intended window and are reported as delivered",
    "wrong": "acts that reached another window (or a wrong text in the right one), reported or not",
    "unreported": "acts of `wrong` reported as delivered, and faults reported as a success",
    "lost": "reported as delivered, but never arrived; a clipboard not restored; missing characters",
    "doubted": "acts that reached the intended window but are not reported as delivered",
    "leaked": "files, processes and pressed keys left behind",
    "hung": "no answer, or a process that does not end",
    "tracebacks": "unexpected exceptions and internal errors",
}


@dataclass
class Tally:
    """The counts of one class, and notes that explain them."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)

    def count(self, columns: str, note: str = "") -> None:
        """Add one to each of these columns (names separated by spaces)."""
        for column in columns.split():
            assert column in COLUMNS
            self.counts[column] += 1
        if note:
            self.notes[note[:220]] += 1

    def has_failed(self, what: str, reply: Reply) -> bool:
        """Return True and count the reply if there is no answer, or an internal error."""
        column = {NO_ANSWER: "hung", "INTERNAL_ERROR": "tracebacks"}.get(reply.code)
        if column:
            self.count(column, f"{reply.code}: {what}: {reply.text[:80]}")
        return bool(column)

    def judge(
        self, what: str, reply: Reply, has_arrived: bool, elsewhere: str = "", lost: str = "lost unreported"
    ) -> None:
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
            self.count(lost, f"{what}: it did not arrive, or not all, {report}")

    def judge_text(self, what: str, reply: Reply, text: str, got: str, elsewhere: str = "") -> None:
        """Judge typing. got: the received characters, all from the text; an error must report how many."""
        rest = iter(text)
        if not elsewhere and not all(character in rest for character in got):
            elsewhere = f"{text!r} arrived as {got!r}"
        self.judge(what, reply, got == text, elsewhere)
        reported = re.search(r"delivered (at least )?(\d+) of \d+ characters", reply.text)
        if not reported:
            if reply.code in ("FOCUS_LOST", "TIMEOUT") or (reply.data.get("delivered") is False and got):
                self.count("wrong", f"{what}: {len(got)} characters arrived, none are reported: {reply.code}")
        elif int(reported[2]) > len(got) or (not reported[1] and int(reported[2]) < len(got)):
            self.count("wrong", f"{what}: {len(got)} characters arrived, but {reply.text[:150]}")


def table(tallies: list[Tally]) -> str:
    """Format the tallies as text: one line per class, then the most frequent notes of each."""
    rows = [["class", *COLUMNS]]
    for tally in tallies:
        rows.append([tally.name, *(str(tally.counts[one]) for one in COLUMNS)])
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    for tally in tallies:
        notes = [f"  {count:5} x {note}" for note, count in tally.notes.most_common(12)]
        lines += ["", f"{tally.name}:", *notes] if notes else []
    return "\n".join(lines) + "\n"

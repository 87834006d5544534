"""Which leftover files of a test the fixture `nothing_is_left` reports and which it allows."""

from __future__ import annotations

from pathlib import Path

import leftovers
import pytest
from leftovers import Leftovers, replied, watch

IMAGE = "tmp/peekaboo_min-0/20261122-232909-ac484d_screen.png"
RECORD = "tmp/peekaboo_min-0/record_x11-1_7_0123456789abcdef.json"
UNWANTED = ["state/peekaboo_min/other", "tmp/peekaboo_min-0/peekaboo_0123456789ab.d/a.png", f"{RECORD}.12"]
WANTED = ["home/own.txt", "state/peekaboo_min/audit.jsonl", RECORD]


@pytest.mark.leaves("(tmp|state)/peekaboo_min.*")
def test_leftovers_that_are_not_allowed_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "GRACE_S", 0.0)
    before = Leftovers(tmp_path.parent)
    for name in (IMAGE, *UNWANTED, *WANTED):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for unwanted, allowed in (([*UNWANTED, IMAGE], ""), (UNWANTED, ""), (UNWANTED[1:], ".*other")):
        watch(tmp_path)
        assert sorted(before.found(allowed)) == [f"file {tmp_path}/{name}" for name in sorted(unwanted)]
        replied(f'{{"path": "/x/{Path(IMAGE).name}"}}')

"""What the fixture `nothing_is_left` sees of what a test leaves, and what it takes for wanted."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path

import leftovers
import pytest
from leftovers import Leftovers, replied
from worlds import clean_environment

IMAGE = "tmp/peekaboo_min-0/20261122-232909-ac484d_screen.png"
FILES = {
    "tmp/peekaboo_abc.d/shot.png": False,
    "tmp/peekaboo_min-0/peekaboo_0123456789ab.png": False,
    IMAGE: False,
    "tmp/peekaboo_min-0/record_x11-1_7_0123456789abcdef.json": True,
    "tmp/peekaboo_min-0/record_x11-1_7_0123456789abcdef.json.12345678": False,
    "state/peekaboo_min/audit.jsonl": True,
    "state/peekaboo_min/input-x11.lock": True,
    "home/.local/state/peekaboo_min/other": False,
    "home/own.txt": True,
}


@pytest.fixture
def before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Leftovers:
    monkeypatch.setattr(leftovers, "GRACE_S", 0.0)
    return Leftovers(tmp_path.parent)


@pytest.mark.leaves("(tmp|home)/.*")
@pytest.mark.parametrize("name", FILES)
def test_leftovers_are_files_that_nobody_wanted(before: Leftovers, tmp_path: Path, name: str) -> None:
    clean_environment(tmp_path)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).touch()
    assert before.found() == ([] if FILES[name] else [f"file {tmp_path}/{name}"])
    leftovers.watch(tmp_path)  # the test's own folder was forgotten
    replied(f'{{"path": "/x/{Path(IMAGE).name}"}}')
    assert before.found() == ([] if FILES[name] or name == IMAGE else [f"file {tmp_path}/{name}"])
    leftovers.watch(tmp_path)
    assert before.found("(tmp|home)/.*") == []


def test_leftovers_are_what_a_process_has_once(before: Leftovers) -> None:
    here, handler = os.getcwd(), signal.signal(signal.SIGTERM, signal.SIG_IGN)
    event = threading.Event()
    thread = threading.Thread(target=event.wait, name="left")
    thread.start()
    os.environ["LEFT"] = "1"
    os.chdir("/")
    with subprocess.Popen(["sleep", "600"]) as process:
        found = before.found()
        process.kill()
    del os.environ["LEFT"]
    os.chdir(here)
    signal.signal(signal.SIGTERM, handler)
    event.set()
    thread.join()
    assert found == [
        *("thread left", f"handler of signal {signal.SIGTERM}", "variable LEFT", "working folder /"),
        f"process {process.pid}: sleep 600",
    ]
    assert before.found() == []

"""Applications, files and URLs opened on X11 with the test's own desktop entries."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from in_process import InProcessProgram
from tk_windows import audit
from worlds import Program, clean_environment, need, wait_for

READER = """
set f [open {%(folder)s/pids} a]; puts $f [pid]; close $f
wm title . "Reading [file tail [lindex $argv 0]]"
wm geometry . 320x120+120+90
label .l -text [lindex $argv 0]
pack .l
"""


@pytest.fixture
def peek(display: str, tmp_path: Path) -> Iterator[Program]:
    need("gtk-launch", "xdg-mime", "wish", "xdotool")
    folder, config = tmp_path / "data" / "applications", tmp_path / "home" / ".config"
    folder.mkdir(parents=True)
    config.mkdir(parents=True)
    (tmp_path / "reader.tcl").write_text(READER % {"folder": tmp_path})
    command = f"wish {tmp_path}/reader.tcl -name Reader -- %u"
    (folder / "reader.desktop").write_text(
        f"[Desktop Entry]\nType=Application\nName=Note Reader\nExec={command}\n"
    )
    kinds = ("text/plain", "x-scheme-handler/http", "x-scheme-handler/https")
    defaults = "".join(f"{kind}=reader.desktop\n" for kind in kinds)
    (config / "mimeapps.list").write_text(f"[Default Applications]\n{defaults}")
    environment = clean_environment(tmp_path, DISPLAY=display, XDG_DATA_DIRS=str(tmp_path / "data"))
    yield (program := InProcessProgram(environment))
    for pid in started(tmp_path):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not program.data("windows")["windows"], "the windows are gone")


def started(folder: Path) -> list[int]:
    """Return the ids of the processes that `open` started."""
    path = folder / "pids"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def test_open_app_releases_the_lock_while_the_app_runs(peek: Program, tmp_path: Path) -> None:
    answer = peek.data("open", "--app", "note reader", "--timeout-s", 40)
    assert (answer["title"], answer["owner_name"], answer["handler"]) == ("Reading", "Reader", "Note Reader")
    (pid,) = started(tmp_path)
    os.kill(pid, 0)
    logged = {"action": "open", "app": "Note Reader", "kind": "app"}
    assert logged.items() <= audit(peek)[-1].items()
    # focus needs the lock
    assert peek.data("focus", answer["window_id"])["is_focused"] is True


def test_open_path_starts_its_default_application(peek: Program, tmp_path: Path) -> None:
    note = tmp_path / "a note.txt"
    note.write_text("Some text.\n")
    answer = peek.data("open", "--path", note, "--timeout-s", 40)
    assert (answer["title"], answer["owner_name"]) == ("Reading a note.txt", "Reader")
    found = peek.data("wait-for", "--title", "a note", "--timeout-s", 30)
    assert found["window_id"] == answer["window_id"]


def test_open_url_logs_only_its_host(peek: Program) -> None:
    answer = peek.data("open", "--url", "http://me:secret@127.0.0.1:9/page?token=secret", "--timeout-s", 40)
    assert answer["title"].startswith("Reading page?token=")
    peek.data("open", "--url", "http://127.0.0.1:9?token=secret", "--timeout-s", 40)
    assert "secret" not in json.dumps(audit(peek))
    assert audit(peek)[-1]["target"] == "127.0.0.1:9"


def test_open_refuses_a_missing_application(peek: Program) -> None:
    error = peek.error("open", "--app", "No such reader")
    assert error["code"] == "APP_NOT_FOUND" and "Note Reader" in error["message"]

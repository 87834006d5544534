"""Applications, files and URLs opened on X11 with the test's own desktop entries."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from in_process import InProcessProgram
from samples import window
from tk_windows import audit
from worlds import Program, clean_environment, need, wait_for

from peekaboo_min.automation import opening
from peekaboo_min.core.models import Handler, Scene

READER = """
set f [open {%(folder)s/pids} a]; puts $f [pid]; close $f
wm title . "Reading [file tail [lindex $argv 0]]"
wm geometry . 320x120+120+90
label .l -text [lindex $argv 0]
pack .l
"""
# A second start raises the first window, like a browser.
SINGLE = """#!/bin/sh
if [ -e %(folder)s/running ]; then exec touch %(folder)s/asked; fi
touch %(folder)s/running
exec wish %(folder)s/single.tcl -name Single
"""
SINGLE_WINDOW = f"""{READER}
proc watch {{}} {{
    if {{[file exists {{%(folder)s/asked}}]}} {{file delete {{%(folder)s/asked}}; raise .; focus -force .}}
    after 100 watch
}}
watch
"""
ENTRIES = {
    "reader": ("Note Reader", "wish %(folder)s/reader.tcl -name Reader -- %%u"),
    "org.example.other-name": ("Quite Another", "wish %(folder)s/reader.tcl -name Odd -- %%u"),
    "single": ("Single", "%(folder)s/single"),
    "windowless": ("Windowless", "true"),
}


@pytest.fixture
def peek(display: str, tmp_path: Path) -> Iterator[Program]:
    need("gtk-launch", "xdg-mime", "wish", "xdotool")
    folder, config = tmp_path / "data" / "applications", tmp_path / "home" / ".config"
    folder.mkdir(parents=True)
    config.mkdir(parents=True)
    for name, text in {"reader.tcl": READER, "single.tcl": SINGLE_WINDOW, "single": SINGLE}.items():
        (tmp_path / name).write_text(text % {"folder": tmp_path})
        (tmp_path / name).chmod(0o755)
    for name, (title, command) in ENTRIES.items():
        (folder / f"{name}.desktop").write_text(
            f"[Desktop Entry]\nType=Application\nName={title}\nExec={command % {'folder': tmp_path}}\n"
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


def test_open_app_reports_an_existing_window(peek: Program) -> None:
    first = peek.data("open", "--app", "Single", "--timeout-s", 40)
    other = peek.data("open", "--app", "Quite Another", "--timeout-s", 40)
    assert first["is_new_window"] and other["is_new_window"]
    assert other["owner_name"] == "Odd"  # its class differs from the entry's name
    for _ in range(2):  # the second time it is focused already
        again = peek.data("open", "--app", "Single", "--timeout-s", 40)
        assert again["window_id"] == first["window_id"] and not again["is_new_window"]


def test_open_without_a_window_is_a_timeout(peek: Program) -> None:
    assert peek.error("open", "--app", "Windowless", "--timeout-s", 2)["code"] == "TIMEOUT"


@pytest.mark.parametrize(
    "variables",
    [{"PEEKABOO_READONLY": "1"}, {"PEEKABOO_DENY_APPS": "Note*"}, {"PEEKABOO_ALLOW_APPS": "Safari"}],
)
def test_open_checks_the_policy_of_the_app(peek: Program, tmp_path: Path, variables: dict[str, str]) -> None:
    (tmp_path / "note.txt").write_text("Some text.\n")
    targets = {"app": "Note Reader", "path": tmp_path / "note.txt", "url": "https://example.org"}
    for kind, target in targets.items():
        assert peek.error("open", f"--{kind}", target, **variables)["code"] == "POLICY_DENIED"
    assert started(tmp_path) == audit(peek) == []


@pytest.mark.parametrize(
    ("name", "content", "mode"),
    [
        ("x.desktop", "[Desktop Entry]\n", 0o644),
        ("notes.txt", "#!/bin/sh\necho\n", 0o644),
        ("tool.pdf", "\x7fELF", 0o644),
        ("letter.txt", "Dear\n", 0o755),
        ("draft.txt", "Dear\n", 0o645),
        ("x.py", "Dear\n", 0o644),
        ("x.JAR", "PK", 0o644),
        ("x.webloc", "<plist/>", 0o644),
    ],
)
def test_open_refuses_executables(peek: Program, tmp_path: Path, name: str, content: str, mode: int) -> None:
    (tmp_path / name).write_text(content)
    (tmp_path / name).chmod(mode)
    (tmp_path / "link.txt").symlink_to(name)
    for path in (tmp_path / name, tmp_path / "link.txt"):
        assert peek.error("open", "--path", path)["code"] == "POLICY_DENIED", path
    assert started(tmp_path) == audit(peek) == []


def test_open_refuses_a_link_that_is_named_like_a_program(peek: Program, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear")
    (tmp_path / "letter.desktop").symlink_to("letter.txt")
    assert peek.error("open", "--path", tmp_path / "letter.desktop")["code"] == "POLICY_DENIED"


def test_open_refuses_applications_by_their_path(mac_peek: Program, tmp_path: Path) -> None:
    (tmp_path / "Editor.app").mkdir()
    (tmp_path / "bundle" / "Contents" / "MacOS").mkdir(parents=True)
    for path in (tmp_path / "Editor.app", tmp_path / "bundle", sys.executable):
        assert mac_peek.error("open", "--path", path)["code"] == "POLICY_DENIED", path


BAD = [
    ([], "0 of app, path and url"),
    (["--app", "Single", "--url", "https://example.org"], "2 of app, path and url"),
    *(
        (["--url", url], "not an http or https address")
        for url in ("file:///etc/passwd", "https://", "a.org")
    ),
    (["--url", "https://example.org/ --new-window"], "not an http or https address"),
    (["--app", "../single"], "not the name of an installed application"),
    (["--path", "/dev/null"], "neither a file nor a folder"),
    (["--app", "Single", "--timeout-s", "46"], "timeout_s is 46"),
]


@pytest.mark.parametrize(("words", "problem"), BAD)
def test_open_refuses_invalid_targets(peek: Program, tmp_path: Path, words: list[str], problem: str) -> None:
    error = peek.error("open", *words)
    assert error["code"] == "INVALID_ARGUMENT" and problem in error["message"]
    assert started(tmp_path) == []


def test_open_refuses_missing_targets(peek: Program, tmp_path: Path) -> None:
    (tmp_path / "loop.txt").symlink_to(tmp_path / "loop.txt")
    for name in ("missing.txt", "loop.txt"):
        assert peek.error("open", "--path", tmp_path / name)["code"] == "FILE_IO_ERROR"
    error = peek.error("open", "--app", "No such reader")
    assert error["code"] == "APP_NOT_FOUND" and "Note Reader" in error["message"]


def test_open_finds_a_restored_window_at_once() -> None:
    before = Scene((window(7, is_on_screen=False, is_minimised=True),), (), ())
    desktop: Any = SimpleNamespace(snapshot=lambda: Scene((window(7),), (), ()))
    came = opening._wait_for_window(desktop, before, Handler("Notes"), timeout_s=0.0)
    assert came.window_id == 7, "a minimised window was not on the screen before"

"""Opening an application, a file and an address on X11, by desktop entries of a test's own."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fakemac import FakeMac
from macs import mac_environment
from worlds import Program, clean_environment, need, program_words, wait_for

READER = """
set f [open {%(pids)s} a]; puts $f [pid]; close $f
wm title . "Reading [file tail [lindex $argv 0]]"
wm geometry . 320x120+120+90
label .l -text [lindex $argv 0]
pack .l
"""
# A second start brings the first one's window to the front, as browsers do.
SINGLE = """#!/bin/sh
if [ -e %(folder)s/running ]; then exec touch %(folder)s/asked; fi
touch %(folder)s/running
exec wish %(folder)s/single.tcl -name Single
"""
SINGLE_WINDOW = (
    READER
    + """
proc watch {} {
    if {[file exists {%(folder)s/asked}]} {file delete {%(folder)s/asked}; raise .; focus -force .}
    after 100 watch
}
watch
"""
)


@pytest.fixture
def peek(display: str, tmp_path: Path) -> Iterator[Program]:
    need("gtk-launch", "xdg-mime", "wish", "xdotool")
    folder, pids = tmp_path / "data" / "applications", tmp_path / "pids"
    folder.mkdir(parents=True)
    names = {"folder": tmp_path, "pids": pids}
    (tmp_path / "reader.tcl").write_text(READER % names)
    (tmp_path / "single.tcl").write_text(SINGLE_WINDOW % names)
    (tmp_path / "single").write_text(SINGLE % names)
    (tmp_path / "single").chmod(0o755)
    entries = {
        "reader": ("Note Reader", f"wish {tmp_path}/reader.tcl -name Reader -- %u"),
        "org.example.other-name": ("Quite Another", f"wish {tmp_path}/reader.tcl -name Odd -- %u"),
        "single": ("Single", f"{tmp_path}/single"),
        "windowless": ("Windowless", "true"),
    }
    for name, (title, command) in entries.items():
        (folder / f"{name}.desktop").write_text(
            f"[Desktop Entry]\nType=Application\nName={title}\nExec={command}\n"
            "MimeType=text/plain;x-scheme-handler/http;x-scheme-handler/https;\n"
        )
    config = tmp_path / "home" / ".config"
    config.mkdir(parents=True)
    kinds = ("text/plain", "x-scheme-handler/http", "x-scheme-handler/https")
    defaults = "".join(f"{kind}=reader.desktop\n" for kind in kinds)
    (config / "mimeapps.list").write_text(f"[Default Applications]\n{defaults}")
    environment = clean_environment(tmp_path, DISPLAY=display, XDG_DATA_HOME=str(tmp_path / "data"))
    yield Program(program_words("package"), environment)
    for pid in started(tmp_path):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    bare = Program(program_words("package"), environment)
    wait_for(lambda: not bare.data("windows")["windows"], "the windows are gone")


def started(folder: Path) -> list[int]:
    """The processes that opening started."""
    path = folder / "pids"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def audit(peek: Program) -> list[dict[str, Any]]:
    paths = list(Path(peek.environment["XDG_STATE_HOME"]).rglob("audit.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def test_an_application_is_opened_and_lives_on_without_our_lock(peek: Program, tmp_path: Path) -> None:
    answer = peek.data("open", "--app", "note reader", "--timeout-s", 40)
    assert (answer["title"], answer["owner_name"]) == ("Reading", "Reader")
    assert (answer["is_new_window"], answer["handler"]) == (True, "Note Reader")
    (pid,) = started(tmp_path)
    os.kill(pid, 0)
    assert audit(peek)[-1]["action"] == "open"
    assert (audit(peek)[-1]["app"], audit(peek)[-1]["kind"]) == ("Note Reader", "app")
    # another act needs the lock while it runs
    assert peek.data("focus", answer["window_id"])["is_focused"] is True


def test_a_file_is_opened_by_its_application_and_waited_for(peek: Program, tmp_path: Path) -> None:
    note = tmp_path / "a note.txt"
    note.write_text("Some text.\n")
    answer = peek.data("open", "--path", note, "--timeout-s", 40)
    assert (answer["title"], answer["owner_name"]) == ("Reading a note.txt", "Reader")
    found = peek.data("wait-for", "--title", "a note", "--timeout-s", 30)
    assert found["window_id"] == answer["window_id"]


def test_an_address_is_opened_and_only_its_host_is_logged(peek: Program) -> None:
    answer = peek.data("open", "--url", "http://me:secret@127.0.0.1:9/page?token=secret", "--timeout-s", 40)
    assert answer["title"].startswith("Reading page?token=")
    peek.data("open", "--url", "http://127.0.0.1:9?token=secret", "--timeout-s", 40)
    assert "secret" not in json.dumps(audit(peek))
    assert audit(peek)[-1]["target"] == "127.0.0.1:9"


def test_a_window_of_another_name_than_its_entry_counts(peek: Program) -> None:
    answer = peek.data("open", "--app", "Quite Another", "--timeout-s", 40)
    assert (answer["owner_name"], answer["is_new_window"]) == ("Odd", True)


def test_an_application_that_shows_its_old_window_says_so(peek: Program) -> None:
    first = peek.data("open", "--app", "Single", "--timeout-s", 40)
    other = peek.data("open", "--app", "note reader", "--timeout-s", 40)
    assert (first["is_new_window"], other["is_new_window"]) == (True, True)
    again = peek.data("open", "--app", "Single", "--timeout-s", 40)
    assert (again["window_id"], again["is_new_window"]) == (first["window_id"], False)
    # also where it had the focus already
    again = peek.data("open", "--app", "Single", "--timeout-s", 40)
    assert (again["window_id"], again["is_new_window"]) == (first["window_id"], False)


def test_no_window_is_a_timeout(peek: Program) -> None:
    finished = peek.run("open", "--app", "Windowless", "--timeout-s", 2, "--json")
    assert (finished.code, finished.error["code"]) == (22, "TIMEOUT")


def test_the_policy_is_asked_for_the_application_that_would_handle_it(peek: Program, tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("Some text.\n")
    for name, value in {
        "PEEKABOO_READONLY": "1",
        "PEEKABOO_DENY_APPS": "Note*",
        "PEEKABOO_ALLOW_APPS": "Safari",
    }.items():
        for words in (["--app", "Note Reader"], ["--path", note], ["--url", "https://example.org"]):
            assert peek.error("open", *words, **{name: value})["code"] == "POLICY_DENIED"
    assert (started(tmp_path), audit(peek)) == ([], [])


def executables(folder: Path) -> dict[str, Path]:
    """Files that an opener would execute, or that lead to one."""
    files = {
        "a desktop entry": ("x.desktop", "[Desktop Entry]\n", 0o644),
        "a command file": ("x.command", "echo\n", 0o644),
        "a script by its name": ("x.sh", "echo\n", 0o644),
        "a script by its first line": ("notes.txt", "#!/bin/sh\necho\n", 0o644),
        "a file with an executable bit": ("letter.txt", "Dear\n", 0o755),
        "a file that others may execute": ("draft.txt", "Dear\n", 0o645),
        "a script that its name alone shows": ("x.py", "Dear\n", 0o644),
        "an interpreter's own form of one": ("x.pyc", "Dear\n", 0o644),
        "a program by its first bytes": ("tool.pdf", "\x7fELF", 0o644),
        "a Java archive": ("x.JAR", "PK", 0o644),
        "an address file": ("x.webloc", "<plist/>", 0o644),
    }
    found = {}
    for what, (name, text, mode) in files.items():
        path = folder / name
        path.write_text(text)
        path.chmod(mode)
        found[what] = path
    (folder / "Editor.app").mkdir()
    (folder / "bundle" / "Contents" / "MacOS").mkdir(parents=True)
    (folder / "link.txt").symlink_to(folder / "x.sh")
    return {
        **found,
        "an application's folder": folder / "Editor.app",
        "a bundle of another name": folder / "bundle",
        "a link to a script": folder / "link.txt",
        "the interpreter": Path(sys.executable),
    }


def test_what_would_be_executed_is_refused_on_both_platforms(peek: Program, tmp_path: Path) -> None:
    need("node")
    mac = FakeMac(tmp_path / "mac")
    on_mac = Program(peek.words, mac_environment(mac))
    for what, path in executables(tmp_path).items():
        for program in (peek, on_mac):
            error = program.error("open", "--path", path)
            assert error["code"] == "POLICY_DENIED", (what, error)
    assert (started(tmp_path), audit(peek)) == ([], [])


BAD = [
    ([], "0 of app, path and url"),
    (["--app", "Single", "--url", "https://example.org"], "2 of app, path and url"),
    (["--url", "file:///etc/passwd"], "not an http or https address"),
    (["--url", "javascript:alert(1)"], "not an http or https address"),
    (["--url", "https://"], "not an http or https address"),
    (["--url", "https://example.org/ --new-window"], "not an http or https address"),
    (["--url", "example.org"], "not an http or https address"),
    (["--app", "/usr/bin/xterm"], "not the name of an installed application"),
    (["--app", "../single"], "not the name of an installed application"),
    (["--path", "/dev/null"], "neither a file nor a folder"),
    (["--app", "Single", "--timeout-s", "46"], "timeout_s is 46"),
]


@pytest.mark.parametrize(("words", "problem"), BAD, ids=[" ".join(words) or "nothing" for words, _ in BAD])
def test_what_cannot_be_opened_is_refused(
    peek: Program, tmp_path: Path, words: list[str], problem: str
) -> None:
    finished = peek.run("--json", "open", *words)
    assert finished.code == 2, finished.out
    assert problem in finished.error["message"]
    assert started(tmp_path) == []


def test_what_is_not_there_is_not_opened(peek: Program, tmp_path: Path) -> None:
    (tmp_path / "loop.txt").symlink_to(tmp_path / "loop.txt")
    for name in ("missing.txt", "loop.txt"):
        assert peek.error("open", "--path", tmp_path / name)["code"] == "FILE_IO_ERROR"
    assert peek.error("open", "--app", "No such application")["code"] == "APP_NOT_FOUND"

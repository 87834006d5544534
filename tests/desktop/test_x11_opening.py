"""Opening on X11: desktop entries of a test's own, started by the system's launcher."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from worlds import need, wait_for

from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import Handler
from peekaboo_min.core.settings import child_environment, settings
from peekaboo_min.desktop.x11.backend import X11Desktop
from peekaboo_min.system.files import file_lock, held_locks

# name of the file -> its lines after the group's header
ENTRIES = {
    "org.example.notes.desktop": "Type=Application\nName=Field Notes\nExec={folder}/notes %u\nMimeType=text/x-notes;x-scheme-handler/http;x-scheme-handler/https;",  # noqa: E501
    "sub/paint.desktop": "Type=Application\nName=Paint\nName[de]=Malen\nExec={folder}/notes",
    "terminal-a.desktop": "Type=Application\nName=Terminal\nExec=true",
    "terminal-b.desktop": "Type=Application\nName=Terminal\nExec=true",
    "hidden.desktop": "Type=Application\nName=Hidden one\nExec=true\nHidden=true",
    "internal.desktop": "Type=Application\nName=Internal viewer\nExec=true\nNoDisplay=true",
    "gone.desktop": "Type=Application\nName=Gone away\nExec=gone\nTryExec={folder}/not-there",
    "link.desktop": "Type=Link\nName=A link\nURL=https://example.org",
    "action.desktop": "Type=Application\nName=Mapper\nExec=true\n[Desktop Action x]\nName=Wrong group\nHidden=true",  # noqa: E501
    "broken.desktop": "Type=Application\nName=Broken\nExec={folder}/not-there",
    "damaged.desktop": "\x00\xff=\n[[",
}  # fmt: skip


@pytest.fixture
def data(tmp_path: Path, display: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with these entries, the only ones, and a program that notes how it was started."""
    need("gtk-launch", "xdg-mime")
    home = tmp_path / "data"
    for name, lines in ENTRIES.items():
        path = home / "applications" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"[Desktop Entry]\n{lines.format(folder=tmp_path)}\n"
        path.write_text(text, encoding="latin-1")
    (tmp_path / "nothing").mkdir()
    (tmp_path / "nothing" / "mime").symlink_to("/usr/share/mime")
    program = tmp_path / "notes"
    program.write_text(
        "#!/bin/sh\n"
        f'echo "$*" > {tmp_path}/arguments\n'
        f"ls -l /proc/$$/fd > {tmp_path}/descriptors\n"
        f"echo $$ > {tmp_path}/new-pid; mv {tmp_path}/new-pid {tmp_path}/pid\n"
        "exec sleep 600\n"
    )
    program.chmod(0o755)
    (home / "applications" / "mimeapps.list").write_text(
        "[Default Applications]\ntext/plain=org.example.notes.desktop\n"
        "x-scheme-handler/http=org.example.notes.desktop\nx-scheme-handler/https=org.example.notes.desktop\n"
    )
    for variable, value in {
        "XDG_DATA_HOME": home, "XDG_DATA_DIRS": tmp_path / "nothing", "XDG_CONFIG_HOME": tmp_path / "config",
        "DISPLAY": display, "HOME": tmp_path, "DBUS_SESSION_BUS_ADDRESS": "unix:path=/dev/null",
        "XDG_CURRENT_DESKTOP": "", "XDG_STATE_HOME": tmp_path / "state",
    }.items():  # fmt: skip
        monkeypatch.setenv(variable, str(value))
    settings.cache_clear()
    child_environment.cache_clear()
    yield tmp_path
    with suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    monkeypatch.undo()
    settings.cache_clear()
    child_environment.cache_clear()


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("Field Notes", Handler("Field Notes", "org.example.notes.desktop")),
        ("field notes", Handler("Field Notes", "org.example.notes.desktop")),
        ("org.example.notes", Handler("Field Notes", "org.example.notes.desktop")),
        ("org.example.notes.desktop", Handler("Field Notes", "org.example.notes.desktop")),
        ("notes", Handler("Field Notes", "org.example.notes.desktop")),
        ("Feild Notes", Handler("Field Notes", "org.example.notes.desktop")),
        ("paint", Handler("Paint", "sub-paint.desktop")),
        ("Mapper", Handler("Mapper", "action.desktop")),
    ],
)
def test_an_application_is_found_by_its_entry(data: Path, asked: str, found: Handler) -> None:
    assert X11Desktop().find_handler("app", asked) == found


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("Terminal", ErrorCode.AMBIGUOUS_APP_IDENTIFIER),
        ("Hidden one", ErrorCode.APP_NOT_FOUND),
        ("Internal viewer", ErrorCode.APP_NOT_FOUND),
        ("Gone away", ErrorCode.APP_NOT_FOUND),
        ("A link", ErrorCode.APP_NOT_FOUND),
        ("Wrong group", ErrorCode.APP_NOT_FOUND),
        ("Qqqqzz", ErrorCode.APP_NOT_FOUND),
    ],
)
def test_what_is_no_application_of_a_menu_is_not_found(data: Path, asked: str, code: ErrorCode) -> None:
    with pytest.raises(PeekabooError) as caught:
        X11Desktop().find_handler("app", asked)
    assert (caught.value.code, "running" in caught.value.message) == (code, False)
    if code is ErrorCode.AMBIGUOUS_APP_IDENTIFIER:
        assert "terminal-a" in caught.value.hint and "PID" not in caught.value.hint


def test_a_users_own_entry_stands_before_the_systems(data: Path) -> None:
    system = data / "nothing" / "applications"
    system.mkdir()
    for name in ("terminal-a.desktop", "hidden.desktop"):
        (system / name).write_text("[Desktop Entry]\nType=Application\nName=Of the system\nExec=true\n")
    with pytest.raises(PeekabooError) as caught:
        X11Desktop().find_handler("app", "Of the system")
    assert caught.value.code is ErrorCode.APP_NOT_FOUND


def test_files_and_addresses_have_the_default_application(data: Path) -> None:
    (data / "a.txt").write_text("hello")
    notes = Handler("Field Notes", "org.example.notes.desktop")
    assert X11Desktop().find_handler("path", str(data / "a.txt")) == notes
    assert X11Desktop().find_handler("url", "https://example.org/?a=b") == notes
    assert X11Desktop().find_handler("url", "HTTP://example.org") == notes
    (data / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(PeekabooError) as caught:
        X11Desktop().find_handler("path", str(data / "a.png"))
    assert (caught.value.code, "image/png" in caught.value.message) == (ErrorCode.APP_NOT_FOUND, True)


@pytest.mark.parametrize(
    ("kind", "target", "code"),
    [
        ("url", "file:///etc/passwd", ErrorCode.INVALID_ARGUMENT),
        ("url", "javascript:alert(1)", ErrorCode.INVALID_ARGUMENT),
        ("url", "--help", ErrorCode.INVALID_ARGUMENT),
        ("path", "a.txt", ErrorCode.INVALID_ARGUMENT),
        ("path", "-a.txt", ErrorCode.INVALID_ARGUMENT),
        ("path", "{folder}/a.py", ErrorCode.POLICY_DENIED),
        ("path", "{folder}/a.sh", ErrorCode.POLICY_DENIED),
        ("path", "{folder}/data/applications/paint.desktop", ErrorCode.POLICY_DENIED),
    ],
)
def test_what_could_be_executed_is_refused(data: Path, kind: str, target: str, code: ErrorCode) -> None:
    for name in ("a.py", "a.sh", "data/applications/paint.desktop"):
        (data / name).write_text("#!/bin/sh\n" if name == "a.sh" else "[Desktop Entry]\n")
    with pytest.raises(PeekabooError) as caught:
        X11Desktop().find_handler(kind, target.format(folder=data))
    assert caught.value.code is code


@pytest.mark.parametrize(
    ("kind", "target"),
    [("app", "Field Notes"), ("path", "{folder}/-odd name.txt"), ("url", "https://a.test/?q=1&r=$(id)")],
)
def test_what_is_opened_lives_on_with_nothing_of_ours(data: Path, kind: str, target: str) -> None:
    (data / "-odd name.txt").write_text("")
    target = target.format(folder=data)
    notes = Handler("Field Notes", "org.example.notes.desktop")
    with file_lock("hand.lock", 5, "the hand"):
        assert held_locks()
        X11Desktop().open(kind, target, notes)
    wait_for(lambda: (data / "pid").exists(), "the program has started")
    given = (data / "arguments").read_text().strip()
    uri = f"file://{target.replace(' ', '%20')}"
    assert given in {"app": [""], "path": [target, uri], "url": [target]}[kind]
    descriptors = (data / "descriptors").read_text()
    assert "lock" not in descriptors and "pipe:" not in descriptors
    pid = int((data / "pid").read_text())
    assert os.getsid(pid) != os.getsid(0)
    os.kill(pid, 0)  # it runs although what started it has ended


@pytest.mark.parametrize("entry", ["broken.desktop", "no-such.desktop"])
def test_what_cannot_be_started_is_an_error(data: Path, entry: str) -> None:
    with pytest.raises(PeekabooError) as caught:
        X11Desktop().open("app", "Broken", Handler("Broken", entry))
    assert caught.value.code is ErrorCode.PROGRAM_FAILED

"""Opening on X11: private desktop entries, started by the system's launcher."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Callable

import pytest
from samples import error_of
from worlds import need, wait_for

from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.core.models import Handler
from peekaboo_min.desktop.x11.backend import X11Desktop
from peekaboo_min.system.files import file_lock, held_locks

# file name -> lines after the group's header
ENTRIES = {
    "org.example.notes.desktop": "Type=Application\nName=Field Notes\nExec={folder}/notes %u",
    "sub/paint.desktop": "Type=Application\nName=Paint\nName[de]=Malen\nExec={folder}/notes",
    "pair.desktop": "Type=Application\nName=Gr\xfcn\nExec=/usr/bin/true",
    "terminal-a.desktop": "Type=Application\nName=Terminal\nExec=/usr/bin/true",
    "terminal-b.desktop": "Type=Application\nName=Terminal\nExec=/usr/bin/true",
    "hidden.desktop": "Type=Application\nName=Hidden one\nExec=/usr/bin/true\nHidden=true",
    "internal.desktop": "Type=Application\nName=Internal viewer\nExec=/usr/bin/true\nNoDisplay=true",
    "link.desktop": "Type=Link\nName=A link\nURL=https://example.org",
    "action.desktop": "Type=Application\nName=Mapper\nExec=/usr/bin/true\n[Desktop Action x]\nName=Wrong group\nHidden=true",  # noqa: E501
    "broken.desktop": "Type=Application\nName=Broken\nExec={folder}/not-there",
    "odd.desktop": "Type=Application\nName=Old\nName=O\x07dd\nName:No\nNo value\n  Indented=1",
    "-dash.desktop": "Type=Application\nName=Dash\nExec={folder}/notes %u",
    "nameless.desktop": "Type=Application\nExec=/usr/bin/true",
    "typeless.desktop": "Name=Typeless\nExec=/usr/bin/true",
    "damaged.desktop": "\x00\xff=\n[[",
}  # fmt: skip


@pytest.fixture
def data(tmp_path: Path, display: str, environment: Callable[..., None]) -> Iterator[Path]:
    """Create a folder with only these entries, and a program that logs how it was started."""
    need("gtk-launch", "xdg-mime")
    home = tmp_path / "data"
    for name, lines in ENTRIES.items():
        path = home / "applications" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"[Desktop Entry]\n{lines.format(folder=tmp_path)}\n"
        path.write_text(text, encoding="latin-1")
    (tmp_path / "nothing").mkdir()
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
    )
    environment(
        XDG_DATA_HOME=str(home), XDG_DATA_DIRS=str(tmp_path / "nothing"), HOME=str(tmp_path), DISPLAY=display,
        XDG_CONFIG_HOME=str(tmp_path / "config"), XDG_STATE_HOME=str(tmp_path / "state"),
    )  # fmt: skip
    yield tmp_path
    with suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


NOTES = Handler("Field Notes", "org.example.notes.desktop")
FOUND = {
    "Field Notes": NOTES,
    "org.example.notes": NOTES,
    "org.example.notes.desktop": NOTES,
    "paint": Handler("Paint", "sub-paint.desktop"),
    "O dd": Handler("O dd", "odd.desktop"),
    "Mapper": Handler("Mapper", "action.desktop"),
    "pair": Handler("Gr\ufffdn", "pair.desktop"),  # Latin-1
}


def test_app_handler_is_found_by_name_or_desktop_entry(
    data: Path, environment: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {asked: X11Desktop().find_handler("app", asked) for asked in FOUND} == FOUND
    # a user's entry overrides the system's, whose first folder overrides the second; `.` is not read
    environment(XDG_DATA_DIRS=f"{data}/nothing:{data}/second:.")
    monkeypatch.chdir(data)
    folders = {"nothing": ("terminal-a", "hidden", "both"), "second": ("both",), ".": ("here",)}
    for folder, entries in folders.items():
        (data / folder / "applications").mkdir(parents=True)
        for name in entries:
            text = f"[Desktop Entry]\nType=Application\nName=System {folder}\nExec=/usr/bin/true\n"
            (data / folder / "applications" / f"{name}.desktop").write_text(text)
    os.mkfifo(data / "nothing" / "applications" / "pipe.desktop")
    (data / "second" / "applications" / "linked.desktop").symlink_to("both.desktop")  # as Flatpak does
    names = [X11Desktop().find_handler("app", asked).app_name for asked in ("both", "linked")]
    assert names == ["System nothing", "System second"]
    unknown = ["Hidden one", "hidden", "here"]
    errors = [error_of(X11Desktop().find_handler, "app", asked) for asked in unknown]
    assert [error.code for error in errors] == [ErrorCode.APP_NOT_FOUND] * 3
    need("mousepad")
    environment(XDG_DATA_DIRS="")  # by default, /usr/share
    assert X11Desktop().find_handler("app", "mousepad").entry == "org.xfce.mousepad.desktop"


@pytest.mark.parametrize(
    "asked",
    [
        *("Feild Notes", "No such paint", "Hidden one", "Internal viewer", "A link", "Wrong group", "Qqqqzz"),
        *("nameless", "Typeless", "Old"),
    ],
)
def test_unknown_app_is_not_found(data: Path, asked: str) -> None:
    error = error_of(X11Desktop().find_handler, "app", asked)
    assert (error.code, "running" in error.message) == (ErrorCode.APP_NOT_FOUND, False)


def test_app_of_two_entries_is_ambiguous(data: Path) -> None:
    error = error_of(X11Desktop().find_handler, "app", "Terminal")
    assert error.code is ErrorCode.AMBIGUOUS_APP_IDENTIFIER
    assert "terminal-a" in error.hint and "PID" not in error.hint


# file name -> content and MIME type
TYPES = {
    "a.txt": (b"hello", "text/plain"),
    "a.MD": (b"# hello", "text/plain"),
    "README": (b"hello", "text/plain"),
    "blob": (b"\x01\x00", "application/octet-stream"),
    "photo.webp": (b"RIFF", "image/webp"),
    "letter.ODT": (b"PK", "application/vnd.oasis.opendocument.text"),
    "table.ods": (b"PK", "application/vnd.oasis.opendocument.spreadsheet"),
    "talk.odp": (b"PK", "application/vnd.oasis.opendocument.presentation"),
    "letter.docx": (b"PK", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    "table.xlsx": (b"PK", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    "talk.pptx": (b"PK", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    "letter.rtf": (b"{", "application/rtf"),
    "book.epub": (b"PK", "application/epub+zip"),
    "song.ogg": (b"OggS", "audio/ogg"),
    "song.flac": (b"fLaC", "audio/flac"),
    "film.mkv": (b"\x1aE", "video/x-matroska"),
    "notes.tar.gz": (b"\x1f\x8b", "application/gzip"),
    "notes.bz2": (b"BZh", "application/x-bzip2"),
    "page.html": (b"<p>", "text/html"),
    "folder.txt": (None, "inode/directory"),
}


def test_file_handler_is_the_default_of_its_type(data: Path, environment: Callable[..., None]) -> None:
    # the answer of `xdg-mime query filetype` depends on the desktop and on the installed programs
    program = data / "bin" / "xdg-mime"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n[ $2 = filetype ] && echo application/x-shellscript && exit\n"
        f'{shutil.which("xdg-mime")} "$@"; exit 3\n'
    )
    program.chmod(0o755)
    environment(PATH=f"{program.parent}:{os.environ['PATH']}")
    for name, (content, mime) in TYPES.items():
        (data / name).mkdir() if content is None else (data / name).write_bytes(content)
        defaults = data / "data" / "applications" / "mimeapps.list"
        defaults.write_text(f"[Default Applications]\n{mime}=org.example.notes.desktop\n")
        assert X11Desktop().find_handler("path", str(data / name)) == NOTES, name
    # a text without a handler of its own type opens as plain text
    defaults.write_text("[Default Applications]\ntext/plain=org.example.notes.desktop\n")
    (data / "a.csv").write_text("a,b")
    assert X11Desktop().find_handler("path", str(data / "a.csv")) == NOTES
    defaults.write_text(f"{defaults.read_text()}text/csv=pair.desktop\n")
    assert X11Desktop().find_handler("path", str(data / "a.csv")).entry == "pair.desktop"


# default applications -> the one that opens an https address
DEFAULTS = {
    "x-scheme-handler/https=sub-paint x-scheme-handler/http=org.example.notes": "sub-paint.desktop",
    "x-scheme-handler/https=hidden x-scheme-handler/http=org.example.notes text/html=pair": NOTES.entry,
    "x-scheme-handler/https=gone text/html=internal": "internal.desktop",
}


def test_url_handler_is_the_default_of_its_scheme_or_of_pages(
    data: Path, environment: Callable[..., None]
) -> None:
    (data / ".local").mkdir()
    (data / "data").rename(data / ".local" / "share")
    environment(XDG_DATA_HOME="")
    for defaults, entry in DEFAULTS.items():
        lines = ["[Default Applications]", *(f"{line}.desktop" for line in defaults.split())]
        (data / ".local" / "share" / "applications" / "mimeapps.list").write_text("\n".join(lines))
        assert X11Desktop().find_handler("url", "HTTPS://a.test").entry == entry


@pytest.mark.parametrize(
    ("kind", "target", "mime"),
    [("path", "{folder}/a.png", "image/png"), ("url", "https://a.test", "x-scheme-handler/https")],
)
def test_missing_default_application_error_names_the_command(
    data: Path, kind: str, target: str, mime: str
) -> None:
    (data / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (data / "data" / "applications" / "mimeapps.list").write_text(
        "[Default Applications]\ntext/plain=odd.desktop"
    )
    error = error_of(X11Desktop().find_handler, kind, target.format(folder=data))
    assert (error.code, error.message) == (ErrorCode.APP_NOT_FOUND, f"no installed application opens {mime}")
    assert error.hint.endswith(f"or set a default: xdg-mime default NAME.desktop {mime}")


@pytest.mark.parametrize(
    ("kind", "target", "entry"),
    [
        ("app", "Field Notes", "org.example.notes.desktop"),
        ("path", "{folder}/-odd name.txt", "org.example.notes.desktop"),
        ("url", "https://a.test/?q=1&r=$(id)", "-dash.desktop"),
    ],
)
def test_opened_program_inherits_no_lock_pipe_or_session(
    data: Path, kind: str, target: str, entry: str
) -> None:
    (data / "-odd name.txt").write_text("")
    target = target.format(folder=data)
    with file_lock("hand.lock", 5, "the hand"):
        assert held_locks()
        X11Desktop().open(kind, target, Handler("Field Notes", entry))
    wait_for(lambda: (data / "pid").exists(), "the program has started")
    given = (data / "arguments").read_text().strip()
    uri = f"file://{target.replace(' ', '%20')}"
    assert given in {"app": [""], "path": [target, uri], "url": [target]}[kind]
    descriptors = (data / "descriptors").read_text()
    assert "lock" not in descriptors and "pipe:" not in descriptors
    pid = int((data / "pid").read_text())
    assert os.getsid(pid) != os.getsid(0)
    os.kill(pid, 0)  # it runs although its launcher has ended


def test_open_of_a_broken_or_missing_entry_is_an_error(data: Path) -> None:
    for entry in ("broken.desktop", "no-such.desktop"):
        error = error_of(X11Desktop().open, "app", "Broken", Handler("Broken", entry))
        message = f"Broken could not be started from its desktop entry {entry}"
        assert (error.code, error.message) == (ErrorCode.PROGRAM_FAILED, message)

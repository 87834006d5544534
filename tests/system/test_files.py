"""Our folders and files: privacy, lifetimes, names, moves; and what a path from outside may be."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Callable

import pytest
from samples import error_of
from worlds import PATIENCE_S, ROOT, clean_environment

from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.core.settings import forget_environment
from peekaboo_min.system import files as files_module
from peekaboo_min.system.files import (
    asked_path,
    file_lock,
    file_name,
    move_into_place,
    remove_all,
    state_folder,
    sweep,
    temporary_folder,
    working_folder,
)


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, environment: Callable[..., None]) -> None:
    environment(XDG_STATE_HOME=str(tmp_path / "state"), TMPDIR=str(tmp_path))


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("folder", [state_folder, temporary_folder])
def test_our_folders_are_ours_alone(folder: Callable[[], Path]) -> None:
    made = folder()
    assert mode(made) == 0o700
    made.chmod(0o755)
    assert (folder(), mode(made)) == (made, 0o700)


@pytest.mark.parametrize("kind", ["others may write", "a link", "a file", "another user's"])
def test_a_folder_in_which_others_can_write_is_refused(kind: str, tmp_path: Path) -> None:
    made = temporary_folder()
    if kind == "others may write":
        made.chmod(0o777)
    elif kind == "another user's":
        if os.getuid():
            pytest.skip("only root can give a folder away")
        os.chown(made, 12345, -1)
    else:
        made.rmdir()
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        made.symlink_to(tmp_path / "elsewhere") if kind == "a link" else made.write_text("")
    error = error_of(temporary_folder)
    assert (error.code, bool(error.hint)) == (ErrorCode.FILE_IO_ERROR, True)


def test_a_user_without_a_home_folder_learns_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_uid: int) -> None:
        raise KeyError

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", nobody)
    forget_environment()
    assert error_of(state_folder).hint == "write it without ~ and control characters, or set HOME"


def expired(path: Path) -> Path:
    os.utime(path, (0, 0))
    return path


def test_a_sweep_deletes_what_is_expired_and_unused() -> None:
    folder = temporary_folder()
    (folder / "fresh.png").write_bytes(b"x")
    (folder / "old.png").write_bytes(b"x")
    (folder / "exec_old").mkdir()
    (folder / "exec_old" / "shot.png").write_bytes(b"x")
    os.mkfifo(folder / "pipe")
    for name in ("old.png", "exec_old", "pipe"):
        expired(folder / name)
    assert sweep() == 3
    assert [path.name for path in folder.iterdir()] == ["fresh.png"]


def test_a_sweep_spares_what_is_in_use() -> None:
    with working_folder("exec") as folder, open(temporary_folder() / "read.png", "wb") as picture:
        (folder / "shot.png").write_bytes(b"x")
        fcntl.flock(picture, fcntl.LOCK_SH)
        expired(folder)
        expired(Path(picture.name))
        assert (sweep(), sweep(0)) == (0, 0)
        assert (folder / "shot.png").exists()
    assert sweep(0) == 2
    assert list(temporary_folder().iterdir()) == []


def test_what_another_process_deletes_meanwhile_is_gone_without_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (temporary_folder() / "image.png").touch()
    delete = files_module._delete_unused

    def deleted_meanwhile(path: Path) -> bool:
        path.unlink()
        return delete(path)

    monkeypatch.setattr(files_module, "_delete_unused", deleted_meanwhile)
    assert remove_all([], []) == []


def test_a_file_system_without_locks_is_an_error_with_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    error = error_of(file_lock("input.lock", 1.0, "the mouse").__enter__)
    path = state_folder() / "input.lock"
    assert (error.code, error.message) == (ErrorCode.FILE_IO_ERROR, f"{path}: No locks available")


def another_file_system(like: Path) -> Path:
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == like.stat().st_dev:
        pytest.skip("no second file system is known here")
    return memory


FULL = """
import resource, sys
from pathlib import Path
from peekaboo_min.core.errors import PeekabooError
from peekaboo_min.system.files import move_into_place
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    move_into_place([Path(sys.argv[1])], [Path(sys.argv[2])])
except PeekabooError as e:
    print(e.code_name)
"""


@pytest.mark.parametrize("crosses", [True, False])
def test_a_file_is_moved_over_another(tmp_path: Path, crosses: bool) -> None:
    parent = another_file_system(tmp_path) if crosses else tmp_path
    source = tmp_path / "new.png"
    source.write_bytes(b"new")
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        target = Path(folder) / "shot.png"
        target.write_bytes(b"old")
        move_into_place([source], [target])
        assert (target.read_bytes(), source.exists(), os.listdir(folder)) == (b"new", False, ["shot.png"])


def test_a_full_disk_does_not_cost_the_file_that_was_there(tmp_path: Path) -> None:
    source = tmp_path / "new.png"
    source.write_bytes(b"n" * 5000)
    with tempfile.TemporaryDirectory(dir=another_file_system(tmp_path)) as folder:
        target = Path(folder) / "shot.png"
        target.write_bytes(b"old")
        done = subprocess.run(
            [sys.executable, "-c", FULL, str(source), str(target)],
            env=clean_environment(tmp_path),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert (done.stdout, done.stderr) == ("FILE_IO_ERROR\n", "")
        assert (target.read_bytes(), os.listdir(folder), source.exists()) == (b"old", ["shot.png"], False)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


NAMES = {
    "plain": ("Notes", "Notes.png"),
    "slashes and spaces": ("a/b\\c d:e", "a_b_c_d_e.png"),
    "a path upwards": ("../../etc/passwd", "etc_passwd.png"),
    "nothing": ("", "window.png"),
    "only dots and blanks": (" ... ", "window.png"),
    "control and direction characters": ("a\n\x1b[31m\u202eb", "a_[31m_b.png"),
    "what a shell reads": ('a*?"<>|b', "a_b.png"),
    "a NUL": ("a\0b", "a_b.png"),
    "accents and emoji": ("Grüße 😀", "Grüße_😀.png"),
    "half a character": ("a\ud800b", "a_b.png"),
}


@pytest.mark.parametrize(("stem", "name"), NAMES.values(), ids=NAMES.keys())
def test_a_picture_gets_a_name_that_every_file_system_takes(tmp_path: Path, stem: str, name: str) -> None:
    assert file_name(stem, "png") == name
    (tmp_path / name).write_bytes(b"")


@pytest.mark.parametrize("character", ["x", "日", "😀"])
@pytest.mark.parametrize("start", ["", "ab"])
def test_a_long_name_is_cut_to_255_bytes_between_characters(
    tmp_path: Path, character: str, start: str
) -> None:
    name = file_name(start + character * 300, "png")
    assert name == start + character * ((251 - len(start)) // len(character.encode())) + ".png"
    assert len(name.encode()) <= 255
    (tmp_path / name).write_bytes(b"")


def test_what_tells_two_long_names_apart_is_kept() -> None:
    names = {file_name("日" * 300, "png", f"_window{number}_{'é' * 300}") for number in (0, 1)}
    assert len(names) == 2
    assert all(len(name.encode()) <= 255 and name.startswith("日日") for name in names)
    assert file_name("a", "png", "_window0_Notes.") == "a_window0_Notes.png"


def test_a_path_is_absolute_and_at_home_where_it_says_so() -> None:
    assert asked_path("~/a.png") == Path.home() / "a.png"
    assert asked_path("a.png") == Path.cwd() / "a.png"


@pytest.mark.parametrize("text", ["~nosuchuser_peekaboo/a.png", "a\0b.png", "a\ud800.png"])
def test_a_path_that_cannot_be_one_is_refused(text: str) -> None:
    error = error_of(asked_path, text)
    assert (error.code, bool(error.hint)) == (ErrorCode.INVALID_ARGUMENT, True)

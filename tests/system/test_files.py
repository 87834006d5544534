"""Our folders and files: privacy, lifetimes, locks, names, writes, paths."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Callable

import pytest
from samples import error_of
from worlds import clean_environment

from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.core.settings import forget_environment
from peekaboo_min.system import files as files_module
from peekaboo_min.system.files import (
    absolute_path,
    file_lock,
    file_name,
    held_locks,
    lock_folder,
    remove_all,
    state_folder,
    sweep,
    temporary_folder,
    working_folder,
    write_privately,
)
from peekaboo_min.system.process import running


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, environment: Callable[..., None]) -> None:
    environment(XDG_STATE_HOME=str(tmp_path / "state"), TMPDIR=str(tmp_path))


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("folder", [state_folder, temporary_folder])
def test_private_folders_are_ours_alone(folder: Callable[[], Path]) -> None:
    made = folder()
    assert mode(made) == 0o700
    made.chmod(0o755)
    assert (folder(), mode(made)) == (made, 0o700)


@pytest.mark.parametrize(
    "line",
    [
        "chmod 720 $1",
        "chmod 702 $1",
        "rmdir $1; ln -s $2 $1",
        "rmdir $1; touch $1",
        pytest.param("chown 12345 $1", marks=pytest.mark.skipif(os.getuid() != 0, reason="only root can")),
    ],
)
def test_private_folder_that_others_can_write_to_is_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    subprocess.run(["sh", "-c", line, "sh", temporary_folder(), tmp_path / "elsewhere"], check=True)
    error = error_of(temporary_folder)
    assert error.code is ErrorCode.FILE_IO_ERROR and ("set TMPDIR" in error.hint or "touch" in line)


def test_state_folder_without_a_home_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown_user(_uid: int) -> None:
        raise KeyError

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", unknown_user)
    forget_environment()
    assert error_of(state_folder).hint == "write it without ~ and control characters, or set HOME"


def test_sweep_keeps_fresh_and_used_files(environment: Callable[..., None]) -> None:
    folder = temporary_folder()
    for name in ("fresh.png", "old.png", "read.png"):
        (folder / name).write_bytes(b"x")
    os.mkfifo(folder / "pipe")
    (folder / "exec_old").mkdir()
    (folder / "exec_old" / "shot.png").write_bytes(b"x")
    with working_folder("exec") as used, open(folder / "read.png", "rb") as picture:
        (used / "shot.png").write_bytes(b"x")
        fcntl.flock(picture, fcntl.LOCK_SH)
        for name in ("old.png", "exec_old", "pipe", "read.png", used.name):
            os.utime(folder / name, (0, 0))
        environment(PEEKABOO_TTL_SECONDS="0")
        assert sweep() == 0, "images are kept for ever"
        environment(PEEKABOO_TTL_SECONDS="600")
        assert sweep() == 3
        assert {path.name for path in folder.iterdir()} == {"fresh.png", "read.png", used.name}
        assert sweep(0) == 1 and (used / "shot.png").exists()
    assert (sweep(0), list(folder.iterdir())) == (2, [])


def test_sweep_leaves_the_time_of_a_file_that_is_just_being_saved() -> None:
    image, soon = temporary_folder() / "shot.png", time.time() + 1
    image.touch()
    os.utime(image, (soon, soon))
    assert sweep(600) == 0
    assert image.stat().st_mtime == pytest.approx(soon)


def test_sweep_deletes_files_of_a_clock_that_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, image, own = time.time, temporary_folder() / "shot.png", tmp_path / "own.png"
    for path in (image, own):
        path.touch()
    (image.parent / "link").symlink_to(own)
    written = own.stat().st_mtime
    assert sweep(600) == 0
    monkeypatch.setattr(time, "time", lambda: real() - 3600)
    assert (sweep(600), sweep(600), image.exists(), own.stat().st_mtime) == (0, 0, True, written)
    os.utime(image, (image.stat().st_atime, image.stat().st_mtime - 601))  # as if it were older
    assert sweep(600) == 1
    assert (sweep(0), own.exists()) == (1, True), "the link is deleted, not its file"


@pytest.fixture
def lock(tmp_path: Path, environment: Callable[..., None]) -> Path:
    """Return the file of `input.lock`, in a temporary lock folder."""
    (tmp_path / "bin").mkdir()
    environment(PEEKABOO_DESKTOP="macos", PEEKABOO_BIN_DIR=str(tmp_path / "bin"))
    return lock_folder() / "input.lock"


def test_remove_all_accepts_that_another_process_deletes_a_file(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary_folder() / "image.png").touch()
    delete = files_module._delete_unused

    def delete_twice(path: Path) -> bool:
        path.unlink()
        return delete(path)

    monkeypatch.setattr(files_module, "_delete_unused", delete_twice)
    assert remove_all([], []) == []


def test_remove_all_keeps_the_stop_file_and_the_log(lock: Path, environment: Callable[..., None]) -> None:
    stop, log = (temporary_folder() / name for name in ("STOP", "log"))
    for path in (stop, log):
        path.touch()
    environment(PEEKABOO_STOP_FILE=str(stop), PEEKABOO_LOG_FILE=str(log))
    assert {*remove_all([], [])} == {stop, log}


def test_remove_all_keeps_a_folder_in_the_place_of_a_file(lock: Path, tmp_path: Path) -> None:
    folder = tmp_path / "token.json"
    (folder / "notes").mkdir(parents=True)
    assert remove_all([], [folder]) == [folder]
    assert (folder / "notes").exists()


@pytest.mark.parametrize("platform", ["x11", "macos"])
def test_lock_folder_is_the_same_in_all_environments(
    tmp_path: Path, environment: Callable[..., None], platform: str
) -> None:
    for name in ("a", "b"):
        other = str(tmp_path / name)
        environment(PEEKABOO_DESKTOP=platform, HOME=other, XDG_STATE_HOME=other, TMPDIR=other)
        assert lock_folder() == Path(f"/tmp/peekaboo_min-{os.getuid()}")


def test_file_lock_is_kept_by_the_program_that_inherits_it(lock: Path) -> None:
    with ExitStack() as programs:
        with file_lock(lock.name, 1.0, "the mouse"):
            programs.enter_context(running(["/bin/sleep", "600"], b"", pass_fds=held_locks()))
        again = error_of(file_lock(lock.name, 0.1, "the mouse").__enter__)
    assert (again.code, held_locks()) == (ErrorCode.TIMEOUT, ())


def test_file_lock_may_be_entered_again_and_looks_used_until_it_is_removed(lock: Path) -> None:
    lock.touch()
    os.utime(lock, (0, 0))
    with file_lock(lock.name, 1.0, "the mouse"), file_lock(lock.name, 0.0, "the mouse"):
        assert lock.stat().st_mtime > 0, "systems delete old files in /tmp"
        assert remove_all([], []) == [lock]
    assert (remove_all([], []), lock.parent.exists()) == ([], False)


def test_file_lock_is_taken_on_the_newest_file(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flock, deletions = fcntl.flock, iter([lock.unlink])
    monkeypatch.setattr(fcntl, "flock", lambda *given: ([delete() for delete in deletions], flock(*given)))
    with file_lock(lock.name, 5.0, "the mouse"):
        assert os.path.samestat(lock.stat(), os.fstat(held_locks()[0]))


@pytest.mark.parametrize("make", [lambda lock: lock.symlink_to("other"), os.mkfifo], ids=["link", "pipe"])
def test_file_lock_refuses_a_link_or_a_pipe(lock: Path, make: Callable[[Path], object]) -> None:
    make(lock)
    error = error_of(file_lock(lock.name, 1.0, "the mouse").__enter__)
    assert error.code is ErrorCode.FILE_IO_ERROR and str(lock) in error.message
    assert not (lock.parent / "other").exists()


def test_file_lock_without_support_is_an_error(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    error = error_of(file_lock(lock.name, 1.0, "the mouse").__enter__)
    assert (error.code, error.message) == (ErrorCode.FILE_IO_ERROR, f"{lock}: No locks available")


FULL = """
import resource, sys
from pathlib import Path
from peekaboo_min.system.files import write_all
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
write_all({Path(sys.argv[1]): b"new", Path(sys.argv[2]): b"n" * 5000})
"""


def test_write_all_replaces_no_file_on_a_full_disk(tmp_path: Path) -> None:
    targets = [tmp_path / "shots" / name for name in ("a.png", "b.png")]
    targets[0].parent.mkdir()
    for target in targets:
        target.write_bytes(b"old")
    argv = [sys.executable, "-c", FULL, *map(str, targets)]
    done = subprocess.run(argv, env=clean_environment(tmp_path), capture_output=True, text=True)
    assert f"PeekabooError: {targets[1]}: File too large" in done.stderr
    assert sorted(targets[0].parent.iterdir()) == targets
    assert [target.read_bytes() for target in targets] == [b"old", b"old"]


def test_write_privately_makes_an_existing_file_private(tmp_path: Path) -> None:
    (tmp_path / "token").touch(mode=0o644)
    for path in (tmp_path / "token", tmp_path / "new" / "token"):
        write_privately(path, "a\ud800")
        assert (path.read_text(), mode(path), mode(path.parent)) == ("a\ufffd", 0o600, 0o700)


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("a/b\\c d:e", "a_b_c_d_e.png"),
        ("../../etc/passwd", "etc_passwd.png"),
        ("", "window.png"),
        ("a\n\x1b[31m\u202eb", "a_[31m_b.png"),
        ('a*?"<>|b', "a_b.png"),
        ("Grüße 😀", "Grüße_😀.png"),
        ("a\ud800b", "a_b.png"),
    ],
    ids=ascii,
)
def test_file_name_is_valid_on_every_file_system(stem: str, name: str) -> None:
    assert file_name(stem, "png") == name


@pytest.mark.parametrize("character", ["x", "日", "😀"])
@pytest.mark.parametrize("start", ["", "ab"])
def test_long_file_name_keeps_its_suffix_in_255_bytes(tmp_path: Path, character: str, start: str) -> None:
    stem = start + character * 300
    name = start + character * ((251 - len(start)) // len(character.encode())) + ".png"
    others = [file_name(stem, "png", f"_{number}_{'é' * 300}") for number in (0, 1)]
    assert file_name(stem, "png") == name
    assert max(len(other.encode()) for other in (name, *others)) <= 255
    assert all(other.startswith(start + character) for other in others) and others[0] != others[1]
    assert file_name("a", "png", "_window0_Notes.") == "a_window0_Notes.png"
    assert file_name(stem + "_after", "png", "_window0").endswith(f"{character}_after_window0.png")


def test_absolute_path_is_absolute_or_refused() -> None:
    assert absolute_path("~/a.png") == Path.home() / "a.png"
    assert absolute_path("a.png") == Path.cwd() / "a.png"
    for text in ("~nosuchuser_peekaboo/a.png", "a\0b.png", "a\ud800.png"):
        error = error_of(absolute_path, text)
        assert (error.code, bool(error.hint)) == (ErrorCode.INVALID_ARGUMENT, True)

"""`peekaboo-min desktop`: its programs, who may use it, and that nothing is left, however it ends."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable
from unittest.mock import Mock

import pytest
from samples import error_of
from worlds import PATIENCE_S, X_PROGRAMS, Program, both_forms, executable, need, processes_of, wait_for

from peekaboo_min.frontends import own_desktop
from peekaboo_min.system.image_files import whole_image
from peekaboo_min.system.programs import PACKAGES

Desktop = subprocess.Popen[bytes]
Start = Callable[..., Desktop]


@pytest.fixture
def start(program: Program) -> Iterator[Start]:
    """Start desktops that run a shell command; end them after the test."""
    need(*X_PROGRAMS)
    started: list[Desktop] = []

    def start_one(command: str, *options: str, **variables: str) -> Desktop:
        in_group = Program(["setsid", *program.words], program.environment)
        started.append(in_group.start("desktop", *options, "--", "sh", "-c", command, **variables))
        return started[-1]

    yield start_one
    for process in started:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def line(process: Desktop) -> str:
    assert process.stdout
    return process.stdout.readline().decode().strip()


VARIABLES = {
    "XDG_SESSION_TYPE": "x11",
    "ACCESSIBILITY_ENABLED": "1",
    "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
    "GSK_RENDERER": "cairo",
}


@both_forms
def test_desktop_passes_stdin_exit_code_and_variables(start: Start, program: Program, tmp_path: Path) -> None:
    peekaboo = " ".join(program.words)
    command = f'{peekaboo} image --path {tmp_path}/a.png >&2; cat; stat -c %a "$XDG_RUNTIME_DIR"; env; exit 7'
    session = {"WAYLAND_DISPLAY": "wayland-0", "SESSION_MANAGER": "local/x", "AT_SPI_BUS_ADDRESS": "x"}
    process = start(command, "--size", "800x600", XDG_RUNTIME_DIR="/run", **session)
    out, err = process.communicate(b"from stdin\n", timeout=PATIENCE_S)
    info = whole_image((tmp_path / "a.png").read_bytes())
    assert (process.returncode, out.split()[:3]) == (7, [b"from", b"stdin", b"700"]), err
    assert info is not None and (info.width, info.height) == (800, 600)
    variables = dict(row.split("=", 1) for row in out.decode().splitlines() if "=" in row)
    assert session.keys().isdisjoint(variables)
    assert variables.items() >= VARIABLES.items() and variables["DBUS_SESSION_BUS_ADDRESS"].startswith(
        "unix:"
    )
    folder = variables["XDG_RUNTIME_DIR"]
    assert folder.startswith(f"{tmp_path}/tmp/") and variables["XAUTHORITY"] == f"{folder}/Xauthority"


def test_desktop_has_the_exit_code_of_a_killed_command(start: Start) -> None:
    assert start("kill -9 $$").wait(PATIENCE_S) == 137


def test_interrupt_of_the_process_group_reaches_the_command(start: Start) -> None:
    process = start('trap "echo caught; exit" INT; echo "$DISPLAY"; sleep 300 & wait')
    line(process)
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=PATIENCE_S)[0] == b"caught\n"


def test_desktop_without_its_command_is_an_error(program: Program) -> None:
    need(*X_PROGRAMS)
    assert program.error("desktop", "--", "no-such-command")["code"] == "MISSING_PROGRAM"


def kill_supervisor(process: Desktop) -> None:
    os.kill(int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()), signal.SIGKILL)


DAEMON = 'pkill -P $PPID xcompmgr; xmessage hello & setsid sleep 300 & echo "$DISPLAY"; sleep 300'
STUBBORN = (
    r"trap '' TERM INT; printf '\351) S 1 ' >/proc/$$/comm; "  # not UTF-8; it looks like the end of a name
    """(setsid sh -c 'trap "" TERM; sleep 300; sleep 300' &); echo "$DISPLAY"; sleep 300"""
)
ENDS: dict[str, tuple[Callable[[Desktop], object], str, int]] = {
    "SIGTERM": (lambda process: process.terminate(), DAEMON, 143),
    "SIGINT to a command that ignores it": (lambda process: process.send_signal(2), STUBBORN, 130),
    "SIGKILL": (lambda process: process.kill(), DAEMON, -9),
    "SIGKILL of its process group": (lambda process: os.killpg(process.pid, 9), STUBBORN, -9),
    "SIGKILL of the supervisor": (kill_supervisor, DAEMON, 137),
    "its command's end": (lambda process: process.communicate(b"\n", PATIENCE_S), f"{DAEMON} & read _", 0),
}


@pytest.mark.leaves("tmp/peekaboo_min-.*/desktop_.*")  # by a killed supervisor, until they expire
@pytest.mark.parametrize(("end", "command", "code"), ENDS.values(), ids=ENDS)
def test_ended_desktop_leaves_no_process_and_no_socket(
    start: Start, tmp_path: Path, end: Callable[[Desktop], object], command: str, code: int
) -> None:
    process = start(command)
    x_socket = Path(f"/tmp/.X11-unix/X{line(process)[1:]}")
    created = x_socket.stat().st_ctime_ns
    end(process)
    assert process.wait(PATIENCE_S) == code
    wait_for(lambda: not processes_of(tmp_path), "all processes have ended")
    # a parallel test's server may have taken the number; its socket often gets the same inode
    assert not x_socket.exists() or x_socket.stat().st_ctime_ns != created


def test_desktop_refuses_clients_without_its_cookie(start: Start, program: Program) -> None:
    process = start('echo "$DISPLAY $XAUTHORITY"; cat')
    display, authority = line(process).split()
    assert program.data("windows", DISPLAY=display, XAUTHORITY=authority) == {"windows": []}
    stranger = program.error("windows", DISPLAY=display, XAUTHORITY="/dev/null")
    assert stranger["code"] == "NO_GUI_SESSION" and "does not accept the cookie" in stranger["details"]
    assert Path(authority).stat().st_mode & 0o777 == 0o600
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", 6000 + int(display[1:]))) != 0


def test_desktop_in_a_window_is_closed(start: Start, display: str, program: Program, tmp_path: Path) -> None:
    need("Xephyr")
    process = start('echo "$DISPLAY"; cat', "--window", "--size", "640x480", DISPLAY=display)
    assert line(process) not in ("", display)

    def shown() -> list[Any]:
        windows = program.data("windows", DISPLAY=display)["windows"]
        return [each["bounds"] for each in windows if "Xephyr" in each["owner_name"]]

    (bounds,) = wait_for(shown, "the window is open")
    assert (bounds["width"], bounds["height"]) == (640, 480)
    (pid,) = (pid for pid, argv in processes_of(tmp_path).items() if "Xephyr -screen" in argv)
    os.kill(pid, signal.SIGTERM)
    process.wait(PATIENCE_S)  # communicate would close stdin, which ends the command
    _, err = process.communicate()
    assert (process.returncode, processes_of(tmp_path)) == (1, {}) and b"the X server ended" in err


NEEDED = ("Xvfb", "Xephyr", "xcompmgr", "dbus-daemon", "openbox")


@pytest.mark.parametrize("name", NEEDED)
def test_desktop_names_the_package_of_a_broken_program(program: Program, tmp_path: Path, name: str) -> None:
    need(*X_PROGRAMS, "Xephyr")
    options = ["--window"] if name == "Xephyr" else []
    for other in {*NEEDED} - {name}:
        (tmp_path / other).symlink_to(shutil.which(other) or "/missing")
    argv, found = ["desktop", *options, "--", "true"], {"PEEKABOO_BIN_DIR": str(tmp_path)}
    missing = program.error(*argv, **found)
    executable(tmp_path / name, "exit 1")
    broken = program.error(*argv, **found)
    assert (missing["code"], broken["code"]) == ("MISSING_PROGRAM", "PROGRAM_FAILED")
    assert missing["message"].endswith(f"sudo apt-get install {PACKAGES[name]}")
    hint = "check that DISPLAY names a running X server" if name == "Xephyr" else "install it again: sudo "
    assert broken["message"].startswith(f"{name} did not start; {hint}")


def test_program_that_is_never_ready_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_desktop, "_START_S", 0.1)
    pipe, _ = pair = os.pipe()
    is_ready = Mock(side_effect=[*[False] * 99, True])
    program = Mock(poll=Mock(return_value=None))
    assert error_of(own_desktop._wait_until, is_ready, "openbox", program, pipe).message.endswith("not start")
    for descriptor in pair:
        os.close(descriptor)


def test_desktop_refuses_a_mac_and_invalid_sizes(program: Program) -> None:
    for size in ("1280", "1280x", "99x800", "1280x800x24", "0800x800", "x"):
        assert program.error("desktop", "--size", size, "--", "true")["code"] == "INVALID_ARGUMENT"
    error = program.error("desktop", "--", "true", PEEKABOO_DESKTOP="macos")
    assert error["code"] == "UNSUPPORTED_PLATFORM" and "Linux" in error["message"]

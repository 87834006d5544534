"""Run a command on an X desktop of its own; both end together.

    this process --fork--> supervisor
       |                       |
       +------ a pipe ---------+-- Xvfb or Xephyr, xcompmgr, dbus-daemon, openbox
                               +-- the command, in this process's group, so that Ctrl-C reaches it

The supervisor waits until the command, the X server or this process ends. Then it ends all the others, and
the daemons that they left behind. If this process is killed, the kernel closes the pipe, and the supervisor
reads its end. If the supervisor is killed, this process ends the rest.
"""

from __future__ import annotations

import os
import re
import select
import struct
import time
from contextlib import suppress
from pathlib import Path
from shlex import quote
from shutil import rmtree
from typing import Annotated, Callable, Optional

from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.models import Result
from ..core.settings import change_environment, platform_name
from ..system.ending import continue_in_supervisor, end_children
from ..system.files import working_folder, write_privately
from ..system.process import Process, program_path, start_command, start_daemon
from ..system.programs import PACKAGES, own_command

_START_S = 30.0  # for each program: a machine with load 30 may take ten
_POLL_S = 0.05  # how late the desktop notices that the command has ended


def own_desktop(
    command: Annotated[Optional[list[str]], "a program and its arguments; default: serve MCP"] = None,
    *,
    size: Annotated[str, "WIDTHxHEIGHT in pixels"] = "1280x800",
    window: Annotated[bool, "show the desktop in a window (Xephyr, package xserver-xephyr)"] = False,
) -> Result:
    """Run a command on an X desktop of its own, and end all of it with the command.

    The desktop has a window manager, a compositor and a session bus with accessibility; it needs the packages
    xvfb, openbox, xcompmgr and dbus-daemon. It works in any Linux session, also under Wayland, and without
    one. Several at a time do not disturb each other or you. The exit code is the command's. It is no sandbox:
    the command has your files and your network.

    Example: peekaboo-min desktop --window -- xterm
    """
    if platform_name() == "macos":
        raise PeekabooError(ErrorCode.UNSUPPORTED_PLATFORM, "macOS starts no second desktop", "use Linux")
    if not re.fullmatch(r"[1-9]\d{2,4}x[1-9]\d{2,4}", size):
        raise invalid(f"--size is {size[:40]!r}", "give width and height in pixels, such as 1280x800")
    server = ["Xephyr", "-screen", size] if window else ["Xvfb", "-screen", "0", f"{size}x24"]
    for name in (server[0], "xcompmgr", "dbus-daemon", "openbox"):
        program_path(name)
    group, pipe = os.getpgrp(), continue_in_supervisor()
    exit_code = 1
    with working_folder("desktop") as folder, suppress(EOFError):
        try:
            x_server = _start_desktop(server, folder, pipe)
            exit_code = _wait_for_end(start_command(command or own_command(), group), x_server, pipe)
        finally:
            end_children()
            rmtree(folder, ignore_errors=True)
    os._exit(exit_code)  # returning a Result would add a line to the command's stdout


def _start_desktop(server: list[str], folder: Path, pipe: int) -> Process:
    """Start the X server and the desktop's other programs, and set their variables; return the X server."""
    # family 0xFFFF and an empty display number match every display: the number is not yet known
    name, cookie = b"MIT-MAGIC-COOKIE-1", os.urandom(16)
    authority = folder / "Xauthority"
    write_privately(authority, struct.pack(">HHHH18sH16s", 0xFFFF, 0, 0, 18, name, 16, cookie))
    options = ["-auth", str(authority), "-nolisten", "tcp", "-noreset", "-displayfd", "{fd}"]
    x_server, number = _start([*server, *options], folder, pipe)
    change_environment(
        DISPLAY=f":{number}",
        XAUTHORITY=str(authority),
        XDG_RUNTIME_DIR=str(folder),  # in the session's own, GTK and Qt find its Wayland display
        XDG_SESSION_TYPE="x11",
        WAYLAND_DISPLAY="",
        SESSION_MANAGER="",
        AT_SPI_BUS_ADDRESS="",
        ACCESSIBILITY_ENABLED="1",  # read by Chromium
        QT_LINUX_ACCESSIBILITY_ALWAYS_ON="1",
        GSK_RENDERER="cairo",  # GTK 4.18's other renderers often draw a black window on Xvfb
    )
    compositor = start_daemon(["xcompmgr", "-a"])  # -a: covered windows can be captured
    _wait_until(_has_compositor, "xcompmgr", compositor, pipe)
    bus = ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address={fd}"]
    change_environment(DBUS_SESSION_BUS_ADDRESS=_start(bus, folder, pipe)[1])
    # openbox announces itself before it handles windows; it runs its startup command after that
    ready = f"echo ready >{quote(str(folder / 'openbox'))}"
    _start(["openbox", "--startup", f"sh -c {quote(ready)}"], folder, pipe)
    return x_server


def _start(argv: list[str], folder: Path, pipe: int) -> tuple[Process, str]:
    """Start a program; return it and the line that it writes into its file ({fd}) when it is ready."""
    file = folder / argv[0]
    with open(file, "w") as f:
        filled = [argument.replace("{fd}", str(f.fileno())) for argument in argv]
        process = start_daemon(filled, pass_fds=[f.fileno()])
    _wait_until(lambda: file.read_text().endswith("\n"), argv[0], process, pipe)
    return process, file.read_text().strip()


def _has_compositor() -> bool:
    from ..desktop.x11.connection import OWNER, request, x_connection

    with x_connection() as server:
        (selection,) = server.atoms(["_NET_WM_CM_S0"]).values()
        return server.ask([request(OWNER, selection)])[0].fields("I") != (0,)


def _wait_until(is_ready: Callable[[], bool], name: str, process: Process, pipe: int) -> None:
    """Wait. Raises PROGRAM_FAILED if the program ends or is late, and EOFError if the pipe closes."""
    deadline = time.monotonic() + _START_S
    while not is_ready():
        if select.select([pipe], [], [], 0.01)[0]:
            raise EOFError
        if process.poll() is not None or time.monotonic() > deadline:
            hint = f"install it again: sudo apt-get install --reinstall {PACKAGES[name]}"
            hint = "check that DISPLAY names a running X server" if name == "Xephyr" else hint
            raise PeekabooError(ErrorCode.PROGRAM_FAILED, f"{name} did not start", hint)


def _wait_for_end(command: Process, x_server: Process, pipe: int) -> int:
    """Return the command's exit code. Raises PROGRAM_FAILED if the X server ends first, and EOFError."""
    while not select.select([pipe], [], [], _POLL_S)[0]:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended and ended.si_pid == command.pid:
            code = command.wait()
            return code if code >= 0 else 128 - code
        if ended and ended.si_pid == x_server.pid:
            raise PeekabooError(ErrorCode.PROGRAM_FAILED, "the X server ended", "run the command again")
        if ended:
            os.waitpid(ended.si_pid, 0)  # an orphan, or a part of the desktop that the command does not need
    raise EOFError

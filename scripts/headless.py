"""A headless X desktop for the demo, the benchmark and the tests: Xvfb, a compositor, a window manager."""

from __future__ import annotations

import os
import select
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Callable, Optional

from peekaboo_min.core.errors import ErrorCode, PeekabooError

_ANSWER_S = 5.0
_START_S = 10.0
_LEAVE_S = 5.0
# A property of the root window that openbox's startup command sets. Openbox announces itself too early: a
# window that is opened while it starts stays unmapped until some other event wakes openbox's loop.
_READY = "_PEEKABOO_WINDOW_MANAGER_IS_READY"

# Debian's package of each program.
_PACKAGES = {
    "Xvfb": "xvfb",
    "xprop": "x11-utils",
    "xcompmgr": "xcompmgr",
    "openbox": "openbox",
    "wish": "tk",
}

_running: set[subprocess.Popen[bytes]] = set()
_is_starting = False
_signal: Optional[int] = None


@contextmanager
def x_server(
    with_window_manager: bool = True,
    screen: str = "1280x800x24",
    options: Sequence[str] = (),
    with_compositor: bool = True,
    start_s: float = _START_S,
) -> Iterator[str]:
    """Start a server on a free display number; yield its DISPLAY. All its programs end with the block.

    From then on, GTK 4 applications of this process draw without a GPU.
    start_s: the time limit for the start of each program.
    Raises MISSING_PROGRAM, PROGRAM_FAILED.
    """
    argv = [find_headless_program("Xvfb"), "-screen", "0", screen, *options, "-nolisten", "tcp", "-noreset"]
    with ExitStack() as stack:
        display = _start_server(stack, argv, start_s)
        # GTK 4.18's default renderers (Vulkan, OpenGL) often draw a black window on Xvfb
        os.environ.setdefault("GSK_RENDERER", "cairo")
        environment = {**os.environ, "DISPLAY": display}
        xprop = find_headless_program("xprop") if with_compositor or with_window_manager else ""
        # name, arguments, and a question to the display with a part of its answer once the program is ready
        wanted: list[tuple[str, list[str], list[str], str]] = []
        if with_compositor:
            # -a: covered windows can be captured
            wanted.append(("xcompmgr", ["-a"], [xprop, "-name", "xcompmgr", "WM_NAME"], "xcompmgr"))
        if with_window_manager:
            ready = [xprop, "-root", "-f", _READY, "8s", "-set", _READY, "yes"]
            wanted.append(("openbox", ["--startup", shlex.join(ready)], [xprop, "-root", _READY], "yes"))
        started = [
            stack.enter_context(running([find_headless_program(name), *arguments], env=environment))
            for name, arguments, _, _ in wanted
        ]
        for process, (name, _, question, answer) in zip(started, wanted):
            _wait_until_ready(name, process, question, answer, environment, start_s)
        yield display


def find_headless_program(name: str) -> str:
    """Return the path of a program. Raises MISSING_PROGRAM."""
    path = shutil.which(name)
    if path is None:
        hint = f"install it: sudo apt-get install {_PACKAGES[name]}"
        raise PeekabooError(ErrorCode.MISSING_PROGRAM, f"the program {name} is not installed", hint)
    return path


@contextmanager
def running(argv: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process in its own group, without input and output; kill the group when the block ends."""
    global _is_starting
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    _is_starting = True
    try:
        process = subprocess.Popen(argv, start_new_session=True, **{**quiet, **options})
        _running.add(process)
    finally:
        _is_starting = False
    try:
        _leave_if_signalled()
        yield process
    finally:
        _kill_group(process)
        process.wait()
        _running.discard(process)


def end_on_signals(before_leaving: Callable[[], None]) -> None:
    """Raise SystemExit on the first SIGINT, SIGTERM or SIGHUP from now on, so that `with` blocks clean up.

    If the exception comes while the MCP client's thread starts, that thread waits for ever. So if this
    process has not ended some seconds later, kill the programs of `running`, call before_leaving, and exit.
    """

    def leave_at_once() -> None:
        for process in list(_running):
            _kill_group(process)
        before_leaving()
        os._exit(128 + (_signal or 0))

    def on_signal(number: int, _frame: object) -> None:
        global _signal
        if _signal is None:
            _signal = number
            timer = threading.Timer(_LEAVE_S, leave_at_once)
            timer.daemon = True
            timer.start()
            if not _is_starting:  # else a moment later, when the process is registered
                _leave_if_signalled()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)


def _leave_if_signalled() -> None:
    if _signal is not None:
        raise SystemExit(128 + _signal)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):  # it has ended
        os.killpg(process.pid, signal.SIGKILL)


def _answer(argv: Sequence[str], environment: dict[str, str]) -> str:
    """Return a program's stdout; empty if it does not end in time."""
    try:
        with running(argv, stdout=subprocess.PIPE, env=environment) as process:
            return process.communicate(timeout=_ANSWER_S)[0].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        return ""


def _start_server(stack: ExitStack, argv: Sequence[str], start_s: float) -> str:
    """Start Xvfb; return the display that it chose."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as f:
        try:
            stack.enter_context(running([*argv, "-displayfd", str(writer)], pass_fds=[writer]))
        finally:
            os.close(writer)
        is_ready = bool(select.select([f], [], [], start_s)[0])
        number = f.readline().strip().decode("ascii", "replace") if is_ready else ""
    if not number.isdigit():
        raise did_not_start("Xvfb", "it ended" if is_ready else f"no display within {start_s:g} seconds")
    return f":{number}"


def _wait_until_ready(
    name: str,
    process: subprocess.Popen[bytes],
    question: Sequence[str],
    answer: str,
    environment: dict[str, str],
    start_s: float,
) -> None:
    """Poll the display until its answer shows that the program has started."""
    deadline = time.monotonic() + start_s
    while time.monotonic() < deadline:
        if answer in _answer(question, environment).rpartition("=")[2]:
            return
        if process.poll() is not None:
            raise did_not_start(name, "it ended")
        time.sleep(0.02)
    raise did_not_start(name, f"it was not ready within {start_s:g} seconds")


def did_not_start(name: str, how: str) -> PeekabooError:
    """Return a PROGRAM_FAILED error."""
    hint = f"install it again: sudo apt-get install --reinstall {_PACKAGES[name]}"
    return PeekabooError(ErrorCode.PROGRAM_FAILED, f"{name} did not start: {how}", hint=hint)

"""Run programs. No other module imports subprocess.

A program's states; `end_all_programs` waits or kills before this process ends:

    starting   its thread is in `starting`, where a signal is not handled: wait, at most _START_S
       |  Popen
    running    it is in _running, during its block: wait until its grace is over, if any; kill its group
       |  it ends, or the block ends and its group is killed
    ended      its pipes are closed: leave its group alone, because it may contain a daemon
"""

from __future__ import annotations

import errno
import os
import re
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain
from typing import IO, Callable, NamedTuple, Optional, Union

from ..core.call import check_cancelled, grace_s, within_budget
from ..core.errors import ErrorCode, PeekabooError, file_errors, invalid
from ..core.log import log_debug, log_warning
from ..core.settings import child_environment
from ..core.text import clean_text, seconds_text
from .ending import exit_hooks, exit_if_signalled, starting
from .files import system_temporary_folder
from .programs import find_programs, missing_program

Process = subprocess.Popen[bytes]

_FLAG = r"--?[A-Za-z][a-z-]{0,20}"
# Bytes kept of stdout and of stderr: a program that never stops writing must not fill our memory.
_OUTPUT_CAP, _STDERR_CAP = 64 * 1024 * 1024, 64 * 1024
_POLL_S = 0.05  # how late a cancelled call may end a program
_START_S = 5.0  # a program that has not started by then is stuck; a signal ends us without it
_DRAIN_S = 0.2  # how long to read on after a program has ended, if its child keeps the pipe open


class Completed(NamedTuple):
    """A finished program's exit code and output. A negative code is the signal that killed it."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8", "replace")


class ProgramTimeout(PeekabooError):
    """TIMEOUT, with the output that the program wrote before it was killed."""

    def __init__(self, name: str, timeout_s: float, output: Completed) -> None:
        message = f"{name} did not finish within {seconds_text(timeout_s)} and was killed"
        hint = "check for a dialog on the screen or a display that hangs, then try again"
        super().__init__(ErrorCode.TIMEOUT, message, hint)
        self.output = output


_running: dict[Process, float] = {}  # -> how many seconds it may still run after a signal to us (its grace)


def program_path(name: str) -> str:
    """Return a program's path by its name; return a path unchanged. Raises MISSING_PROGRAM."""
    paths = find_programs(name)
    if name == "convert":  # other programs have this name, too
        paths = filter(_is_image_magick, chain(paths, find_programs("magick")))
    path = next(paths, None)
    if path is None:
        raise missing_program(name)
    return path


@cache
def _is_image_magick(path: str) -> bool:
    no_display = {"DISPLAY": ""}  # a display that hangs would delay it
    completed = run_program([path, "-version"], timeout_s=5.0, accept=None, environment=no_display)
    return completed.text.startswith("Version: ImageMagick ")


def run_program(
    argv: Sequence[str],
    *,
    timeout_s: float,
    stdin: bytes = b"",
    accept: Optional[Sequence[int]] = (0,),
    environment: Optional[Mapping[str, str]] = None,
    folder: Optional[str] = None,
    leaves_daemon: bool = False,
    pass_fds: Sequence[int] = (),
) -> Completed:
    """Run a program until it ends and return its output.

    accept: the exit codes that are no error; None accepts any. See `running` for the other parameters. Raises
    PROGRAM_FAILED for another exit code, ProgramTimeout, and the errors of `running`; by then, the whole
    process group has been killed.
    """
    with running(argv, stdin, timeout_s, environment, folder, leaves_daemon, pass_fds) as program:
        completed = program.end()
    if accept is not None and completed.code not in accept:
        message = f"{os.path.basename(argv[0])} failed with exit code {completed.code}"
        details = completed.stderr.strip()[-2000:]
        raise PeekabooError(ErrorCode.PROGRAM_FAILED, message, details=details)
    return completed


@contextmanager
def running(
    argv: Sequence[str],
    stdin: Optional[bytes],
    timeout_s: float = float("inf"),
    environment: Optional[Mapping[str, str]] = None,
    folder: Optional[str] = None,
    leaves_daemon: bool = False,
    pass_fds: Sequence[int] = (),
) -> Iterator[RunningProgram]:
    """Run a program in its own process group during the block, and kill the group when the block ends.

    argv: a program's name or path, and its arguments. stdin: all that it can read; None: a pipe, for `ask`.
    leaves_daemon: discard its output; if it ends by itself, leave its children running (xclip).
    environment: added to the inherited variables. pass_fds: inherited descriptors (the input lock's).
    Raises MISSING_PROGRAM, INVALID_ARGUMENT (an argument with a NUL or a lone surrogate), FILE_IO_ERROR (no
    space for stdin), CANCELLED, TIMEOUT, and PROGRAM_FAILED if the system has no process or descriptor left.
    """
    check_cancelled()
    timeout_s = within_budget(timeout_s)
    argv = [program_path(argv[0]), *argv[1:]]
    started_at = time.monotonic()
    output = subprocess.DEVNULL if leaves_daemon else subprocess.PIPE
    thread = threading.get_ident()
    with _input(stdin) as source:
        starting.add(thread)
        try:
            process = subprocess.Popen(
                argv,
                stdin=source,
                stdout=output,
                stderr=output,
                cwd=folder,
                env={**child_environment(), **(environment or {})},
                start_new_session=True,
                pass_fds=tuple(pass_fds),
                # if stdin is a pipe, leave SIGPIPE ignored: it would end xdotool between press and release
                restore_signals=stdin is not None,
            )
            _running[process] = grace_s()
        except (OSError, ValueError) as e:
            raise _start_error(argv[0], e) from e
        finally:
            starting.discard(thread)
    try:
        exit_if_signalled()
        yield RunningProgram(process, timeout_s)
    finally:
        has_ended = process.returncode is not None
        if not (leaves_daemon and has_ended):
            _kill_group(process)
        for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
            stream.close()
        process.wait()
        del _running[process]
        milliseconds = (time.monotonic() - started_at) * 1000
        shown = [_loggable(argument, before) for before, argument in zip(argv, argv[1:])]
        command = " ".join([os.path.basename(argv[0]), *shown])
        log_debug(f"ran {command}: exit code {process.returncode}, {milliseconds:.0f} ms")


def _loggable(argument: str, before: str) -> str:
    """Return a flag, or a number after a flag, unchanged; else only the length, because it may be private."""
    is_number = argument.isascii() and argument.isdigit() and re.fullmatch(_FLAG, before)
    return argument if is_number or re.fullmatch(_FLAG, argument) else f"<{len(argument)} characters>"


@contextmanager
def _input(data: Optional[bytes]) -> Iterator[Union[int, IO[bytes]]]:
    if not data:
        yield subprocess.PIPE if data is None else subprocess.DEVNULL
        return
    folder = system_temporary_folder()
    with file_errors(folder), tempfile.TemporaryFile(dir=folder) as f:
        f.write(data)
        f.seek(0)
        yield f


def _start_error(path: str, error: Exception) -> PeekabooError:
    if not isinstance(error, OSError):  # ValueError: a NUL or a lone surrogate in an argument
        return invalid(f"an argument cannot be passed to {path}: {error}", "remove that character")
    message = f"{path} cannot be started: {error.strerror}"
    if error.errno in (errno.ENOENT, errno.EACCES, errno.ENOEXEC):
        return PeekabooError(ErrorCode.MISSING_PROGRAM, message, hint="check that it is an executable file")
    hint = "close other programs, or pass shorter arguments"
    return PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint)


class RunningProgram:
    """A program that is running. Its methods raise ProgramTimeout after its timeout, and CANCELLED."""

    def __init__(self, process: Process, timeout_s: float) -> None:
        self._process = process
        self._name = os.path.basename(process.args[0])  # type: ignore
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        self._stdout, self._stderr = b"", b""
        self._logged = 0  # bytes of stderr

    def is_of(self, pid: int) -> bool:
        """Return True if `pid` is this program's process or in its process group."""
        try:
            return os.getpgid(pid) == self._process.pid
        except ProcessLookupError:
            return False

    def exit_code(self) -> Optional[int]:
        """Return the exit code, or None while the program runs."""
        return self._process.poll()

    def ask(self, line: str, is_whole: Callable[[str], bool]) -> str:
        """Send a line to stdin; return stdout until `is_whole(reply)` is true or the program closes it."""
        assert self._process.stdin and self._process.stdout
        try:
            os.write(self._process.stdin.fileno(), f"{line}\n".encode("ascii"))
        except BrokenPipeError:
            return ""  # the program has ended; end() returns its stderr
        reply = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not is_whole(reply.decode("utf-8", "replace")):
                if selector.select(self._time_to_wait()):
                    chunk = os.read(self._process.stdout.fileno(), 1 << 16)
                    if not chunk:
                        break
                    reply += chunk
        return reply.decode("utf-8", "replace")

    def end(self) -> Completed:
        """Close stdin, wait until the program ends, and return its output.

        Keeps only the end of stderr. Does not wait for a child of the program that keeps the pipes open.
        Raises PROGRAM_FAILED if stdout is larger than the cap.
        """
        stop_at = float("inf")
        is_over = False
        while not is_over:
            stdout: Optional[bytes]
            stderr: Optional[bytes]
            try:
                stdout, stderr = self._process.communicate(timeout=self._time_to_wait())
                is_over = True
            except subprocess.TimeoutExpired as e:
                stdout, stderr = e.stdout, e.stderr
                is_over = time.monotonic() > stop_at
                if self.exit_code() is not None:  # a child of the program still has a pipe open
                    stop_at = min(stop_at, time.monotonic() + _DRAIN_S)
            if max(len(stdout or b""), len(stderr or b"")) > _OUTPUT_CAP:
                message = f"{self._name} wrote more than {_OUTPUT_CAP} bytes"
                raise PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint="request less output")
            self._stdout, self._stderr = stdout or self._stdout, stderr or self._stderr
            self._log_stderr(self._stderr.rfind(b"\n") + 1)
        return self._completed(self._process.returncode)

    def _log_stderr(self, end: int) -> None:
        """Log the part of stderr from the last logged byte up to `end`, line by line."""
        part = self._stderr[self._logged : min(end, _STDERR_CAP)].decode("utf-8", "replace")
        self._logged = max(self._logged, end)
        for line in filter(str.strip, part.splitlines()):
            # without developer tools, stderr of xcode-select is an expected answer
            log = log_debug if self._name == "xcode-select" else log_warning
            log(f"[{self._name}-stderr] {clean_text(line, 2000)}")

    def _completed(self, code: int) -> Completed:
        self._log_stderr(len(self._stderr))
        return Completed(code, self._stdout, self._stderr[-_STDERR_CAP:].decode("utf-8", "replace"))

    def _time_to_wait(self) -> float:
        check_cancelled()
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise ProgramTimeout(self._name, self._timeout_s, self._completed(-signal.SIGKILL))
        return min(remaining, _POLL_S)


def start_daemon(argv: Sequence[str], stdin: bytes = b"", pass_fds: Sequence[int] = ()) -> Process:
    """Start a program that outlives this process and reads `stdin`. An exit hook may call it."""
    argv = [program_path(argv[0]), *argv[1:]]
    null, env = subprocess.DEVNULL, child_environment()
    with _input(stdin) as source:
        return subprocess.Popen(
            argv, stdin=source, stdout=null, stderr=null, env=env, start_new_session=True, pass_fds=pass_fds
        )


def start_command(argv: Sequence[str], group: int) -> Process:
    """Start a command with our environment and streams, in a process group. Raises MISSING_PROGRAM."""
    try:
        return subprocess.Popen(argv, preexec_fn=lambda: os.setpgid(0, group))
    except (OSError, ValueError) as e:
        raise _start_error(argv[0], e) from e


def end_all_programs() -> None:
    """Kill every program that still runs. Takes no lock, because a signal handler calls it."""
    deadline = time.monotonic() + _START_S
    while starting and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    grace_ends = {process: time.monotonic() + grace for process, grace in list(_running.items()) if grace}
    for process, grace_end in grace_ends.items():
        while _is_alive(process) and time.monotonic() < grace_end:
            time.sleep(_POLL_S)
    for process in list(_running):  # read again: other threads may have started more
        ended_within_grace = process in grace_ends and not _is_alive(process)
        if not ended_within_grace:
            _kill_group(process)


def _is_alive(process: Process) -> bool:
    # not poll(): it waits for a lock that the interrupted thread may hold
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def _kill_group(process: Process) -> None:
    # SIGKILL at once: an osascript that waits for an Apple event ignores SIGTERM.
    # The group may have ended already; macOS answers EPERM for a group of zombies.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


exit_hooks.insert(0, end_all_programs)

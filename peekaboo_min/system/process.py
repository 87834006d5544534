"""Run one program: the only module that imports subprocess."""

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

from ..core.cancellation import check_cancelled, grace_s, within_budget
from ..core.errors import ErrorCode, PeekabooError, file_errors, invalid
from ..core.log import log_debug, log_warning
from ..core.settings import child_environment
from ..core.text import clean_text
from .ending import exit_hooks, exit_if_signalled, starting
from .files import system_temporary_folder
from .programs import find_programs, missing_program

Process = subprocess.Popen[bytes]

_FLAG = r"--?[A-Za-z][a-z-]{0,20}"
_OUTPUT_CAP = 64 * 1024 * 1024
_STDERR_CAP = 64 * 1024
_LOGGED_STDERR = 2000  # characters
_OPTIONAL = ("xcode-select",)  # what it says without developer tools is an answer
_POLL_S = 0.05
_NAP_S = 0.0001
_START_S = 5.0  # what a process that is being started gets before a signal ends us
_DRAIN_S = 0.2  # what a grandchild's output gets after its program has ended


class Completed(NamedTuple):
    """How a program ended. A negative code is the signal that killed it."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8", "replace")


class ProgramTimeout(PeekabooError):
    """TIMEOUT, with what the program had written when it was killed."""

    def __init__(self, name: str, timeout_s: float, output: Completed) -> None:
        message = f"{name} did not end within {timeout_s:g} seconds and was killed"
        hint = "check whether a dialog is waiting on the screen or the display hangs, then try again"
        super().__init__(ErrorCode.TIMEOUT, message, hint)
        self.output = output


_running: dict[Process, float] = {}  # what it gets before a signal ends us, seconds


def program_path(name: str) -> str:
    """The path of a program; a path is taken as it is. Raises MISSING_PROGRAM with what to install."""
    paths = find_programs(name)
    if name == "convert":  # other programs have the name, too
        paths = filter(_is_image_magick, chain(paths, find_programs("magick")))
    path = next(paths, None)
    if path is None:
        raise missing_program(name)
    return path


@cache
def _is_image_magick(path: str) -> bool:
    no_display = {"DISPLAY": ""}  # so that none can keep it waiting
    done = run_program([path, "-version"], timeout_s=5.0, accept=None, environment=no_display)
    return done.text.startswith("Version: ImageMagick ")


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
    """Run a program to its end and return its output; accept: the exit codes that are fine, None for any.

    Raises what running raises, ProgramTimeout and PROGRAM_FAILED; its whole process group is dead by then.
    """
    with running(argv, stdin, timeout_s, environment, folder, leaves_daemon, pass_fds) as program:
        done = program.end()
    if accept is not None and done.code not in accept:
        message = f"{os.path.basename(argv[0])} failed with exit code {done.code}"
        raise PeekabooError(ErrorCode.PROGRAM_FAILED, message, details=done.stderr.strip()[-2000:])
    return done


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
    """A program that leads a process group of its own, which is killed when the block ends.

    argv: the first is a program's path, or its name: see programs. stdin: all it can read; None: a pipe.
    environment: variables set besides the inherited ones. leaves_daemon: its output is not read and a child
    that it leaves behind may live on (xclip). pass_fds: descriptors that it inherits (an acting program holds
    the input lock). Raises MISSING_PROGRAM, INVALID_ARGUMENT, FILE_IO_ERROR, CANCELLED, TIMEOUT, and
    PROGRAM_FAILED where the system has no process or descriptor left.
    """
    check_cancelled()
    timeout_s = within_budget(timeout_s)
    argv = [program_path(argv[0]), *argv[1:]]
    started = time.monotonic()
    thread = threading.get_ident()
    output = subprocess.DEVNULL if leaves_daemon else subprocess.PIPE
    with _input(stdin) as source:
        starting.add(thread)  # it is registered before a signal to us can be handled
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
                restore_signals=stdin is not None,  # a SIGPIPE would end xdotool between press and release
            )
            _running[process] = grace_s()
        except (OSError, ValueError) as e:
            raise _not_started(argv[0], e) from e
        finally:
            starting.discard(thread)
    try:
        exit_if_signalled()
        yield RunningProgram(process, timeout_s)
    finally:
        if process.returncode is None or not leaves_daemon:
            _signal_group(process)
        for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
            stream.close()
        process.wait()
        del _running[process]
        ending = f"exit code {process.returncode}, {(time.monotonic() - started) * 1000:.0f} ms"
        shown = [_loggable(argument, before) for before, argument in zip(argv, argv[1:])]
        log_debug(f"ran {' '.join([os.path.basename(argv[0]), *shown])}: {ending}")


def _loggable(argument: str, before: str) -> str:
    """A flag, and a number after one, as it is; of a text or a path, which may be private, the length."""
    is_number = argument.isascii() and argument.isdigit() and re.fullmatch(_FLAG, before)
    return argument if is_number or re.fullmatch(_FLAG, argument) else f"<{len(argument)} characters>"


@contextmanager
def _input(data: Optional[bytes]) -> Iterator[Union[int, IO[bytes]]]:
    """What a program reads `data` from; for None a pipe. Raises FILE_IO_ERROR."""
    if not data:
        yield subprocess.PIPE if data is None else subprocess.DEVNULL
        return
    folder = system_temporary_folder()
    with file_errors(folder), tempfile.TemporaryFile(dir=folder) as f:
        f.write(data)
        f.seek(0)
        yield f


def _not_started(path: str, error: Exception) -> PeekabooError:
    if not isinstance(error, OSError):  # no argument holds a NUL or half of a surrogate pair
        return invalid(f"an argument cannot be passed to {path}: {error}", "remove that character")
    message = f"{path} cannot be started: {error.strerror}"
    if error.errno in (errno.ENOENT, errno.EACCES, errno.ENOEXEC):
        return PeekabooError(ErrorCode.MISSING_PROGRAM, message, hint="check that it is a program")
    hint = "end other programs, or pass shorter arguments"
    return PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint)


class RunningProgram:
    """A program that runs: to its end, answering line by line, or beside us until it is killed.

    Its methods raise ProgramTimeout once its time is over, and CANCELLED.
    """

    def __init__(self, process: Process, timeout_s: float) -> None:
        self._process = process
        self._name = os.path.basename(process.args[0])  # type: ignore
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        self._stdout, self._stderr = b"", b""

    def is_of(self, pid: int) -> bool:
        """Whether that process is this program, or one that it started."""
        try:
            return os.getpgid(pid) == self._process.pid
        except ProcessLookupError:
            return False

    def has_ended(self) -> bool:
        return self.exit_code() is not None

    def exit_code(self) -> Optional[int]:
        """None while it runs."""
        return self._process.poll()

    def ask(self, line: str, is_whole: Callable[[str], bool]) -> str:
        """Send one line; return its answer once `is_whole` says so, or what came until the program ended."""
        assert self._process.stdin and self._process.stdout
        try:
            os.write(self._process.stdin.fileno(), f"{line}\n".encode("ascii"))
        except BrokenPipeError:
            return ""  # it has ended; the caller gets its error output from end()
        answer = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not is_whole(answer.decode("utf-8", "replace")):
                if selector.select(self._time_to_wait()):
                    chunk = os.read(self._process.stdout.fileno(), 1 << 16)
                    if not chunk:
                        break
                    answer += chunk
        return answer.decode("utf-8", "replace")

    def end(self) -> Completed:
        """Close its stdin and read until it has ended; a pipe that a grandchild keeps open does not hold us.

        Of stderr the last part is kept. More than the cap on stdout is PROGRAM_FAILED.
        """
        drained_at = float("inf")
        is_over = False
        while not is_over:
            stdout: Optional[bytes]
            stderr: Optional[bytes]
            try:
                stdout, stderr = self._process.communicate(timeout=self._time_to_wait())
                is_over = True
            except subprocess.TimeoutExpired as e:
                stdout, stderr = e.stdout, e.stderr
                is_over = time.monotonic() > drained_at
                if self.has_ended():  # something that it started holds a pipe
                    drained_at = min(drained_at, time.monotonic() + _DRAIN_S)
            if max(len(stdout or b""), len(stderr or b"")) > _OUTPUT_CAP:
                message = f"{self._name} wrote more than {_OUTPUT_CAP} bytes"
                raise PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint="request less output")
            self._stdout, self._stderr = stdout or self._stdout, (stderr or self._stderr)[-_STDERR_CAP:]
        return self._completed(self._process.returncode)

    def _completed(self, code: int) -> Completed:
        stderr = self._stderr.decode("utf-8", "replace")
        for line in stderr.strip()[-_LOGGED_STDERR:].splitlines():
            log = log_debug if self._name in _OPTIONAL else log_warning
            log(f"[{self._name}-stderr] {clean_text(line, _LOGGED_STDERR)}")
        return Completed(code, self._stdout, stderr)

    def _time_to_wait(self) -> float:
        """Seconds until the next look at the clock and the cancel token. Raises ProgramTimeout, CANCELLED."""
        check_cancelled()
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise ProgramTimeout(self._name, self._timeout_s, self._completed(-signal.SIGKILL))
        return min(remaining, _POLL_S)


def start_daemon(argv: Sequence[str], stdin: bytes) -> None:
    """Start a program that outlives us and reads `stdin`; safe in an exit hook."""
    argv = [program_path(argv[0]), *argv[1:]]
    null, env = subprocess.DEVNULL, child_environment()
    with _input(stdin) as source:
        subprocess.Popen(argv, stdin=source, stdout=null, stderr=null, env=env, start_new_session=True)


def end_all_programs() -> None:
    """Kill what still runs, at our end. No lock: a signal handler calls it."""
    deadline = time.monotonic() + _START_S
    while starting and time.monotonic() < deadline:  # what starts in other threads is to be killed, too
        time.sleep(_NAP_S)
    uninterrupted = {process: time.monotonic() + grace for process, grace in list(_running.items()) if grace}
    while any(time.monotonic() < end and _is_alive(each) for each, end in uninterrupted.items()):
        time.sleep(_NAP_S)
    for process in list(_running):
        if process not in uninterrupted or _is_alive(process):  # else a daemon of its group may live on
            _signal_group(process)


def _is_alive(process: Process) -> bool:
    """Without poll(), which waits for a lock that the interrupted thread may hold."""
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def _signal_group(process: Process) -> None:
    # SIGKILL at once: an osascript that waits for an Apple event ignores SIGTERM.
    # It may have ended already; macOS then answers EPERM for a group of zombies.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


exit_hooks.insert(0, end_all_programs)

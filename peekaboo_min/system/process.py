"""Run one program: the only module that imports subprocess."""

from __future__ import annotations

import errno
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from tempfile import TemporaryFile
from typing import Callable, NamedTuple, Optional

from ..core.cancellation import check_cancelled, is_uninterrupted, within_budget
from ..core.errors import ErrorCode, PeekabooError, file_errors, invalid
from ..core.log import log_debug, log_info, log_warning, loggable_arguments
from ..core.settings import child_environment
from ..core.text import clean_text
from .files import system_temporary_folder
from .programs import program_path

Process = subprocess.Popen[bytes]

_OUTPUT_CAP = 64 * 1024 * 1024
_STDERR_CAP = 64 * 1024
_LOGGED_STDERR = 2000  # characters
_POLL_S = 0.05
_NAP_S = 0.0001
_START_S = 5.0  # what a process that is being started gets before a signal ends us
_DRAIN_S = 0.2  # what a grandchild's output gets after its program has ended
_UNINTERRUPTED_S = 1.0  # what an uninterrupted program gets before a signal ends us


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
        super().__init__(
            ErrorCode.TIMEOUT,
            f"{name} did not end within {timeout_s:g} seconds and was killed",
            hint="check whether a dialog is waiting on the screen or the display hangs, then try again",
        )
        self.output = output


_running: set[Process] = set()
_starting: set[int] = set()  # threads that are about to start a process
_uninterrupted: set[Process] = set()  # those of _running that a signal lets end
_exit_codes: dict[int, int] = {}
_signals: list[int] = []  # those received that end us
# called before we end, when all programs are killed; after a signal `_signals` is not empty
exit_hooks: list[Callable[[], None]] = []


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
    stderr_label: str = "",
) -> Completed:
    """Run a program to its end and return its output.

    argv: the first is a program's path, or its name: see programs. stdin: all it can read. accept: the exit
    codes that are fine, None for any. environment: variables set besides the inherited ones. leaves_daemon:
    its output is not read and a child that it leaves behind may live on (xclip). pass_fds: descriptors that
    it inherits (an acting program holds the input lock). stderr_label: what its stderr is logged as, instead
    of its name. Raises what running raises, ProgramTimeout and PROGRAM_FAILED; the program's whole process
    group is dead by then.
    """
    if folder and not os.path.isdir(folder):
        raise PeekabooError(
            ErrorCode.FILE_IO_ERROR, f"the folder {folder} does not exist", hint="create it, or name another"
        )
    name = os.path.basename(argv[0])
    try:
        with running(argv, stdin, timeout_s, environment, folder, leaves_daemon, pass_fds) as program:
            done = program.end()
    except ProgramTimeout as e:
        _log_stderr(stderr_label or name, e.output)
        raise
    _log_stderr(stderr_label or name, done)
    if accept is not None and done.code not in accept:
        raise PeekabooError(
            ErrorCode.PROGRAM_FAILED,
            f"{name} failed with exit code {done.code}",
            details=done.stderr.strip()[-2000:],
        )
    return done


def _log_stderr(name: str, done: Completed) -> None:
    for line in done.stderr.strip()[-_LOGGED_STDERR:].splitlines():
        log_warning(f"[{name}-stderr] {clean_text(line, _LOGGED_STDERR)}")


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
    """A program, as run_program describes it, that is killed with its whole group when the block ends.

    It leads a process group of its own, and is registered before a signal to us can be handled. It reads
    `stdin` from an unlinked temporary file: nothing has to be fed to it while it runs; None: from a pipe.
    Raises MISSING_PROGRAM, INVALID_ARGUMENT, FILE_IO_ERROR, CANCELLED, TIMEOUT, and PROGRAM_FAILED where the
    system has no process or descriptor left.
    """
    check_cancelled()
    timeout_s = within_budget(timeout_s)
    argv = [program_path(argv[0], run_program), *argv[1:]]
    _check_argv(argv)
    started = time.monotonic()
    thread = threading.get_ident()
    output = subprocess.DEVNULL if leaves_daemon else subprocess.PIPE
    with nullcontext(subprocess.PIPE) if stdin is None else _file_holding(stdin) as source:
        _starting.add(thread)
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
            _running.add(process)
            if is_uninterrupted():
                _uninterrupted.add(process)
        except OSError as e:
            raise _not_started(argv[0], e) from e
        finally:
            _starting.discard(thread)
    try:
        exit_if_signalled()
        yield RunningProgram(process, timeout_s)
    finally:
        if process.returncode is None or not leaves_daemon:
            _kill_group(process)
        _running.discard(process)
        _uninterrupted.discard(process)
        _log_run(argv, process.returncode, time.monotonic() - started)


def _check_argv(argv: Sequence[str]) -> None:
    """Raises INVALID_ARGUMENT for what cannot be an argument of a program."""
    try:
        has_nul = any(b"\0" in os.fsencode(argument) for argument in argv)
    except UnicodeEncodeError as e:
        raise invalid("a text holds half of a surrogate pair, which cannot be encoded", "remove it") from e
    if has_nul:
        raise invalid("an argument cannot contain a NUL character", "remove it")


@contextmanager
def _file_holding(data: bytes) -> Iterator[int]:
    """A descriptor from which `data` can be read, or DEVNULL for none. Raises FILE_IO_ERROR."""
    if not data:
        yield subprocess.DEVNULL
        return
    folder = system_temporary_folder()
    with file_errors(folder), TemporaryFile(dir=folder) as f:
        f.write(data)
        f.seek(0)
        descriptor = os.dup(f.fileno())
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _not_started(path: str, error: OSError) -> PeekabooError:
    if error.errno == errno.E2BIG:
        return invalid("the arguments are too long for this system", "pass shorter arguments")
    message = f"{path} cannot be started: {error.strerror}"
    if error.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):
        return PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint="end other programs, then try again")
    return PeekabooError(ErrorCode.MISSING_PROGRAM, message, hint="check that it is a program")


def _log_run(argv: Sequence[str], code: int, seconds: float) -> None:
    signals = {each.value: each.name for each in signal.Signals}  # most real-time signals have no name
    ending = f"exit code {code}" if code >= 0 else f"killed by {signals.get(-code, f'signal {-code}')}"
    text = " ".join([os.path.basename(argv[0]), *loggable_arguments(argv[1:])])
    log_debug(f"ran {text}: {ending}, {seconds * 1000:.0f} ms")


class RunningProgram:
    """A program that runs: to its end, answering line by line, or beside us until it is killed.

    Its methods raise ProgramTimeout once its time is over, and CANCELLED.
    """

    def __init__(self, process: Process, timeout_s: float) -> None:
        self._process = process
        self._name = os.path.basename(process.args[0])  # type: ignore
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        self._stdout, self._stderr, self._rest_of_stderr = b"", b"", b""

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def stderr_so_far(self) -> str:
        """What it wrote to stderr until now."""
        assert self._process.stderr
        os.set_blocking(self._process.stderr.fileno(), False)
        with suppress(BlockingIOError):
            self._stderr += os.read(self._process.stderr.fileno(), 1 << 16)
        return self._stderr.decode("utf-8", "replace")

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
        stdout: Optional[bytes]
        stderr: Optional[bytes]
        while True:
            try:
                stdout, stderr = self._process.communicate(timeout=self._time_to_wait())
                is_over = True
            except subprocess.TimeoutExpired as e:
                stdout, stderr = e.stdout, e.stderr
                is_over = time.monotonic() > drained_at
            self._stdout = stdout or self._stdout
            self._rest_of_stderr = (stderr or self._rest_of_stderr)[-_STDERR_CAP:]
            if max(len(self._stdout), len(stderr or b"")) > _OUTPUT_CAP:
                raise PeekabooError(
                    ErrorCode.PROGRAM_FAILED,
                    f"{self._name} wrote more than {_OUTPUT_CAP} bytes",
                    hint="request less output",
                )
            if is_over:
                return self._completed(self._process.returncode)
            if self.has_ended():  # something that it started holds a pipe
                drained_at = min(drained_at, time.monotonic() + _DRAIN_S)

    def _completed(self, code: int) -> Completed:
        stderr = self._stderr + self._rest_of_stderr
        return Completed(code, self._stdout, stderr.decode("utf-8", "replace"))

    def _time_to_wait(self) -> float:
        """Seconds until the next look at the clock and the cancel token. Raises ProgramTimeout, CANCELLED."""
        check_cancelled()
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise ProgramTimeout(self._name, self._timeout_s, self._completed(-signal.SIGKILL))
        return min(remaining, _POLL_S)


def _kill_group(process: Process) -> None:
    _signal_group(process)
    for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
        stream.close()
    process.wait()


def start_daemon(argv: Sequence[str], stdin: bytes) -> None:
    """Start a program that outlives us and reads `stdin`; safe in an exit hook."""
    with _file_holding(stdin) as source:
        subprocess.Popen(
            [program_path(argv[0], run_program), *argv[1:]],
            stdin=source,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=child_environment(),
            start_new_session=True,
        )


def end_all_programs() -> None:
    """Kill what still runs, then call the exit hooks, at our end. No lock: a signal handler calls it."""
    deadline = time.monotonic() + _START_S
    while _starting and time.monotonic() < deadline:  # what starts in other threads is to be killed, too
        time.sleep(0.001)
    deadline = time.monotonic() + _UNINTERRUPTED_S
    uninterrupted = list(_uninterrupted)
    while any(map(_is_alive, uninterrupted)) and time.monotonic() < deadline:
        time.sleep(_NAP_S)
    for process in list(_running):
        if process not in uninterrupted or _is_alive(process):  # else a daemon of its group may live on
            _signal_group(process)
    for hook in list(exit_hooks):
        hook()


def _is_alive(process: Process) -> bool:
    """Without poll(), which waits for a lock that the interrupted thread may hold."""
    try:
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return ended is None


def _signal_group(process: Process) -> None:
    # SIGKILL at once: an osascript that waits for an Apple event ignores SIGTERM.
    # It may have ended already; macOS then answers EPERM for a group of zombies.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def end_cleanly_on_signals(exit_codes: Optional[Mapping[int, int]] = None) -> None:
    """From now on SIGTERM, SIGINT and SIGHUP kill our children and end this process.

    Its exit code is 128 + the signal's number, or what `exit_codes` has for the signal.
    os._exit, because a thread that blocks on stdin or in a tool would keep an ordinary exit waiting.
    """
    _exit_codes.update(exit_codes or {})

    def on_signal(number: int, _frame: object) -> None:
        _signals.append(number)
        # a start in this very thread goes on when we return, and then exits
        if threading.get_ident() not in _starting:
            exit_if_signalled()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, on_signal)


def exit_if_signalled() -> None:
    """End this process when a signal asked for that. What an exit hook raises unwinds the stack first."""
    if _signals:
        end_all_programs()
        log_info(f"ended by {signal.Signals(_signals[0]).name}")
        os._exit(_exit_codes.get(_signals[0], 128 + _signals[0]))

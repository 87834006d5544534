"""Run one program: the only door to subprocess."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Callable, Optional

from ..core.cancellation import check_cancelled, within_budget
from ..core.errors import ErrorCode, PeekabooError
from ..core.settings import child_environment
from .programs import program_path

_OUTPUT_CAP = 64 * 1024 * 1024
_STDERR_CAP = 64 * 1024
_WAKE_S = 0.05
_FIRST_NAP_S = 0.0001
_START_S = 0.5
_LAST_LOOK_S = 0.2


@dataclass(frozen=True)
class Completed:
    """How a program ended. A negative code is the signal that killed it."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8", "replace")


_running: set[subprocess.Popen] = set()
_starting: set[int] = set()  # threads that are about to start a process
_signals: list[int] = []  # those that told us to end
before_leaving: list[
    Callable[[], None]
] = []  # called before a signal ends us; by then `_signals` is not empty


def run_program(
    words: Sequence[str],
    *,
    timeout_s: float,
    stdin: bytes = b"",
    accept: Optional[Sequence[int]] = (0,),
    environment: Optional[Mapping[str, str]] = None,
    folder: Optional[str] = None,
    leaves_daemon: bool = False,
    pass_fds: Sequence[int] = (),
) -> Completed:
    """Run a program to its end and return what it said.

    words: argv; the first is a program's path, or its name (see programs). stdin: all it can read. accept: the
    exit codes that are fine, None for any. environment: variables set besides the inherited ones. leaves_daemon: its output is
    not read and a child of it may live on (xclip). pass_fds: descriptors that it inherits (the input lock).
    Raises MISSING_PROGRAM, TIMEOUT, CANCELLED, PROGRAM_FAILED; its whole process group is dead by then.
    """
    check_cancelled()
    timeout_s = within_budget(timeout_s)
    argv = [program_path(words[0], run_program), *words[1:]]
    if any("\0" in word for word in argv):
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, "a NUL character cannot be passed on", hint="remove it"
        )
    if folder and not os.path.isdir(folder):
        message = f"the folder {folder} is not there"
        raise PeekabooError(ErrorCode.FILE_IO_ERROR, message, hint="make it, or name another")
    output = subprocess.DEVNULL if leaves_daemon else subprocess.PIPE
    try:
        process = _start(
            argv,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            folder=folder,
            environment=environment,
            pass_fds=pass_fds,
        )
    except OSError as e:
        raise PeekabooError(
            ErrorCode.MISSING_PROGRAM,
            f"{argv[0]} cannot be started: {e.strerror}",
            hint="see that it is a program",
        ) from e
    has_ended = False
    try:
        done = _converse(process, stdin, time.monotonic() + timeout_s, timeout_s)
        has_ended = True
    finally:
        if not (has_ended and leaves_daemon):
            _kill_group(process)
        _running.discard(process)
    if accept is not None and done.code not in accept:
        raise PeekabooError(
            ErrorCode.PROGRAM_FAILED,
            f"{os.path.basename(argv[0])} failed with exit code {done.code}",
            details=done.stderr.strip()[-2000:],
        )
    return done


def _start(
    argv: Sequence[str],
    stdin: Any,
    stdout: int,
    stderr: int,
    folder: Optional[str] = None,
    environment: Optional[Mapping[str, str]] = None,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen:
    """Start a process in a group of its own, so that a signal to us cannot come between its start and our knowing it."""
    thread = threading.get_ident()
    _starting.add(thread)
    try:
        process = subprocess.Popen(
            argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=folder,
            env={**child_environment(), **(environment or {})},
            start_new_session=True,
            pass_fds=tuple(pass_fds),
        )
        _running.add(process)
    finally:
        _starting.discard(thread)
    leave_if_told()
    return process


def _converse(process: subprocess.Popen, stdin: bytes, deadline: float, timeout_s: float) -> Completed:
    """Feed and read a process until it has ended; a pipe that a grandchild keeps open does not hold us."""
    name = os.path.basename(str(process.args[0]))  # type: ignore[index]
    collected: dict[int, bytearray] = {}
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            if stream:
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ)
                collected[stream.fileno()] = bytearray()
        if process.stdin:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE)
        left_to_write = memoryview(stdin)
        out_fd = process.stdout.fileno() if process.stdout else -1
        err_fd = process.stderr.fileno() if process.stderr else -1
        last_look: Optional[float] = None  # when the leader had ended, and a grandchild held a pipe still
        while selector.get_map():
            check_cancelled()
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise _timed_out(name, timeout_s)
            ready = selector.select(min(remaining, _WAKE_S))
            if last_look and not ready:
                break
            for key, _ in ready:
                if key.fileobj is process.stdin:
                    left_to_write = _write_some(process, left_to_write)
                    if not left_to_write:
                        selector.unregister(process.stdin)
                        process.stdin.close()
                    continue
                if not _read_some(key.fd, collected, name, is_stderr=key.fd == err_fd):
                    selector.unregister(key.fileobj)
            # only after reading: we may have been held up for longer than the last look, with all that it said unread
            if last_look is None and process.poll() is not None:
                last_look = time.monotonic() + _LAST_LOOK_S
            elif last_look and time.monotonic() > last_look:
                break
    code = _wait_for_end(process, name, deadline, timeout_s)
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()
    return Completed(
        code, bytes(collected.get(out_fd, b"")), bytes(collected.get(err_fd, b"")).decode("utf-8", "replace")
    )


def _read_some(fd: int, collected: dict[int, bytearray], name: str, is_stderr: bool) -> bool:
    """Read what is there into `collected`; False at the end. Of stderr the last part is kept, stdout has a cap."""
    chunk = os.read(fd, 1 << 16)
    collected[fd] += chunk
    if is_stderr:
        del collected[fd][:-_STDERR_CAP]
    elif len(collected[fd]) > _OUTPUT_CAP:
        raise PeekabooError(ErrorCode.PROGRAM_FAILED, f"{name} wrote more than {_OUTPUT_CAP} bytes")
    return bool(chunk)


def _write_some(process: subprocess.Popen, data: memoryview) -> memoryview:
    try:
        return data[os.write(process.stdin.fileno(), data[: 1 << 16]) :]  # type: ignore[union-attr]
    except BrokenPipeError:
        return data[:0]  # it ended, or closed its stdin, without reading all: its exit code tells


def _wait_for_end(process: subprocess.Popen, name: str, deadline: float, timeout_s: float) -> int:
    """The exit code. It closed its pipes, so it ends in a moment: look again soon at first, then less often."""
    nap_s = _FIRST_NAP_S
    while True:
        code = process.poll()
        if code is not None:
            return code
        check_cancelled()
        if time.monotonic() >= deadline:
            raise _timed_out(name, timeout_s)
        time.sleep(nap_s)
        nap_s = min(nap_s * 2, _WAKE_S)


def _timed_out(name: str, timeout_s: float) -> PeekabooError:
    return PeekabooError(
        ErrorCode.TIMEOUT,
        f"{name} did not end within {timeout_s:g} seconds and was killed",
        hint="see whether a dialog is waiting on the screen, or the display hangs; then try again",
    )


def _kill_group(process: subprocess.Popen) -> None:
    _signal_group(process)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()
    process.wait()


class BackgroundProgram:
    """A program that runs beside us; `said` is what it wrote to stderr so far."""

    def __init__(self, process: subprocess.Popen) -> None:
        self._process = process
        self._said = b""

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def said(self) -> str:
        try:
            self._said += os.read(self._process.stderr.fileno(), 1 << 16)  # type: ignore[union-attr]
        except BlockingIOError:
            pass
        return self._said.decode("utf-8", "replace")


@contextmanager
def background_program(words: Sequence[str], stdin: bytes) -> Iterator[BackgroundProgram]:
    """A program that runs while the `with` block does, and is killed at its end. It reads `stdin` first."""
    check_cancelled()
    with tempfile.TemporaryFile() as source:
        source.write(stdin)
        source.seek(0)
        process = _start(
            [program_path(words[0], run_program), *words[1:]],
            stdin=source,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
    os.set_blocking(process.stderr.fileno(), False)  # type: ignore[union-attr]
    try:
        yield BackgroundProgram(process)
    finally:
        _kill_group(process)
        _running.discard(process)


class InteractiveProgram:
    """A program that reads lines from stdin, does what each says at once, and answers on stdout."""

    def __init__(self, process: subprocess.Popen, deadline: float, timeout_s: float) -> None:
        self._process = process
        self._name = os.path.basename(str(process.args[0]))  # type: ignore[index]
        self._deadline = deadline
        self._timeout_s = timeout_s

    def ask(self, line: str, is_whole: Callable[[str], bool]) -> str:
        """Send one line; return its answer once `is_whole` says so, or what came until the program ended.

        Raises TIMEOUT, CANCELLED.
        """
        assert self._process.stdin and self._process.stdout
        try:
            os.write(self._process.stdin.fileno(), f"{line}\n".encode("ascii"))
        except BrokenPipeError:
            return ""  # it has ended; the caller gets its error output from end()
        answer = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not is_whole(answer.decode("utf-8", "replace")):
                check_cancelled()
                remaining = self._deadline - time.monotonic()
                if remaining <= 0:
                    raise _timed_out(self._name, self._timeout_s)
                if selector.select(min(remaining, _WAKE_S)):
                    chunk = os.read(self._process.stdout.fileno(), 1 << 16)
                    if not chunk:
                        break
                    answer += chunk
        return answer.decode("utf-8", "replace")

    def end(self) -> Completed:
        """Close its stdin, and wait until it has done everything. Raises TIMEOUT, CANCELLED."""
        return _converse(self._process, b"", self._deadline, self._timeout_s)


@contextmanager
def interactive_program(
    words: Sequence[str], *, timeout_s: float, environment: Mapping[str, str], pass_fds: Sequence[int] = ()
) -> Iterator[InteractiveProgram]:
    """A program to talk with while the `with` block runs; its whole group is killed at the block's end."""
    check_cancelled()
    timeout_s = within_budget(timeout_s)
    process = _start(
        [program_path(words[0], run_program), *words[1:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        environment=environment,
        pass_fds=pass_fds,
    )
    try:
        yield InteractiveProgram(process, time.monotonic() + timeout_s, timeout_s)
    finally:
        _kill_group(process)
        _running.discard(process)


def start_daemon(words: Sequence[str], stdin: bytes) -> None:
    """Start a program that outlives us and reads `stdin`; safe in what `before_leaving` calls."""
    with tempfile.TemporaryFile() as source:
        source.write(stdin)
        source.seek(0)
        subprocess.Popen(
            [program_path(words[0], run_program), *words[1:]],
            stdin=source,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=child_environment(),
            start_new_session=True,
        )


def kill_all_programs() -> None:
    """Kill whatever still runs: this process is about to end. Takes no lock: a signal handler calls it."""
    for process in list(_running):
        _signal_group(process)


def _signal_group(process: subprocess.Popen) -> None:
    # SIGKILL at once: an osascript that waits for an Apple event ignores SIGTERM.
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # the group is gone; macOS says EPERM for a group of zombies


def end_cleanly_on_signals() -> None:
    """From now on SIGTERM, SIGINT and SIGHUP kill our children and end this process with 128 + the signal's number.

    os._exit, because a thread that blocks on stdin or in a tool would keep an ordinary exit waiting.
    """

    def on_signal(number: int, _frame: object) -> None:
        _signals.append(number)
        # a start in this very thread goes on when we return, and then leaves; others are over in a moment
        if threading.get_ident() not in _starting:
            deadline = time.monotonic() + _START_S
            while _starting and time.monotonic() < deadline:
                time.sleep(0.001)
            leave_if_told()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, on_signal)


def leave_if_told() -> None:
    """End this process when a signal has told us to. What `before_leaving` raises unwinds the stack first."""
    if _signals:
        for act in list(before_leaving):
            act()
        kill_all_programs()
        os._exit(128 + _signals[0])

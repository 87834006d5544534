"""Programs that run beside us: one serves, one answers line by line."""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Callable

from ..core.cancellation import within_budget
from .process import DEVNULL, PIPE, Completed, Process, ProgramTimeout, read_to_end, running, time_to_wait


class BackgroundProgram:
    """A program that runs beside us."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._output = b""

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def output(self) -> str:
        """What it wrote to stderr so far."""
        with suppress(BlockingIOError):
            self._output += os.read(self._process.stderr.fileno(), 1 << 16)  # type: ignore[union-attr]
        return self._output.decode("utf-8", "replace")


@contextmanager
def background_program(argv: Sequence[str], stdin: bytes) -> Iterator[BackgroundProgram]:
    """A program that runs while the `with` block does, and is killed at its end. It reads `stdin` first."""
    with running(argv, stdin, stdout=DEVNULL, stderr=PIPE) as process:
        os.set_blocking(process.stderr.fileno(), False)  # type: ignore[union-attr]
        yield BackgroundProgram(process)


class InteractiveProgram:
    """A program that reads lines from stdin, does what each says at once, and answers on stdout."""

    def __init__(self, process: Process, deadline: float, timeout_s: float) -> None:
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
                if selector.select(time_to_wait(self._deadline, self._timed_out)):
                    chunk = os.read(self._process.stdout.fileno(), 1 << 16)
                    if not chunk:
                        break
                    answer += chunk
        return answer.decode("utf-8", "replace")

    def _timed_out(self) -> ProgramTimeout:
        return ProgramTimeout(self._name, self._timeout_s, Completed(-signal.SIGKILL, b"", ""))

    def end(self) -> Completed:
        """Close its stdin, and wait until it has done everything. Raises TIMEOUT, CANCELLED."""
        assert self._process.stdin
        self._process.stdin.close()
        return read_to_end(self._process, self._deadline, self._timeout_s)


@contextmanager
def interactive_program(
    argv: Sequence[str], *, timeout_s: float, environment: Mapping[str, str], pass_fds: Sequence[int] = ()
) -> Iterator[InteractiveProgram]:
    """A program to talk with while the `with` block runs; its whole group is killed at the block's end."""
    timeout_s = within_budget(timeout_s)
    with running(argv, None, PIPE, PIPE, environment=environment, pass_fds=pass_fds) as process:
        yield InteractiveProgram(process, time.monotonic() + timeout_s, timeout_s)

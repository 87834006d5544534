"""Run the package's command line in the test's own process, which saves the start of Python.

Not for tests of the start itself: locales, closed streams, signals, imports.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from leftovers import changes, process_state
from worlds import PATIENCE_S, Finished, Program, program_words

from peekaboo_min.core.settings import forget_environment
from peekaboo_min.frontends.cli import main


class InProcessProgram(Program):
    """peekaboo-min: `run` calls `main` in this process, `start` starts a process."""

    def __init__(self, environment: dict[str, str]) -> None:
        super().__init__(program_words("package"), environment)

    def run(self, *arguments: Any, timeout_s: float = 2 * PATIENCE_S, **variables: str) -> Finished:
        """Run in a process of its own, with `timeout_s`, if another thread runs a command."""
        if threading.current_thread() is not threading.main_thread():
            return super().run(*arguments, timeout_s=timeout_s, **variables)
        out, err = io.BytesIO(), io.BytesIO()
        with _replaced({**self.environment, **variables}, out, err):
            code = main([str(argument) for argument in arguments])
        return Finished(code, out.getvalue().decode("utf-8"), err.getvalue().decode("utf-8"))

    def having(self, **variables: str) -> InProcessProgram:
        return InProcessProgram({**self.environment, **variables})


@contextmanager
def _replaced(environment: dict[str, str], out: io.BytesIO, err: io.BytesIO) -> Iterator[None]:
    """Set environment and streams like a new process; fail if the command changed anything else."""
    variables, streams = dict(os.environ), (sys.stdin, sys.stdout, sys.stderr)
    os.environ.clear()
    os.environ.update(environment)
    forget_environment()
    before = process_state()
    try:
        with open(os.devnull, encoding="utf-8") as nothing:
            sys.stdin = nothing
            sys.stdout, sys.stderr = (
                io.TextIOWrapper(stream, "utf-8", errors, write_through=True)
                for stream, errors in ((out, "surrogateescape"), (err, "backslashreplace"))
            )
            yield
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
                stream.detach()  # closing the wrapper would close the buffer
            assert changes(before) == [], "the command left this behind"
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        os.environ.clear()
        os.environ.update(variables)
        forget_environment()

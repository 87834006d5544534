"""The package's command line in the test's own process: the start is most of a short command.

For tests that the start has no part in: not for locales, closed streams, signals or what is imported.
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
    """peekaboo-min, whose `run` calls `main`; `start` starts it as ever."""

    def __init__(self, environment: dict[str, str]) -> None:
        super().__init__(program_words("package"), environment)

    def run(self, *arguments: Any, timeout_s: float = 2 * PATIENCE_S, **variables: str) -> Finished:
        """What a thread runs beside others is a process of its own, to which `timeout_s` applies."""
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
    """Environment and streams as a process of its own has them; fails where anything else was changed."""
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
                stream.detach()  # it would close what holds the text
            assert changes(before) == [], "the command left this behind"
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        os.environ.clear()
        os.environ.update(variables)
        forget_environment()

"""The package's command line in processes that are forked, not started: the start is most of a short command.

For tests that the interpreter's own start has no part in: not for locales, closed streams or imports.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from worlds import PATIENCE_S, ROOT, Finished, Program, program_words

_SERVER = Path(__file__).with_name("fork_server.py")


class ForkedProgram(Program):
    """peekaboo-min, whose `run` forks a Python that has imported it; `start` starts it as ever."""

    def __init__(self, environment: dict[str, str]) -> None:
        super().__init__(program_words("package"), environment)

    def run(self, *arguments: Any, timeout_s: float = 2 * PATIENCE_S, **variables: str) -> Finished:
        task = {
            "arguments": [str(one) for one in arguments],
            "environment": {**self.environment, **variables},
            "folder": os.getcwd(),
        }
        here, there = socket.socketpair()
        with (
            here,
            tempfile.TemporaryFile() as request,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            with there:
                request.write(json.dumps(task).encode())
                request.seek(0)
                files = [request.fileno(), out.fileno(), err.fileno(), there.fileno()]
                socket.send_fds(_fork_server(), [b"run"], files)
            here.settimeout(timeout_s)
            with here.makefile() as answers:
                pid = int(answers.readline())
                try:
                    code = int(answers.readline())
                except TimeoutError:
                    os.kill(pid, signal.SIGKILL)
                    raise
            out.seek(0)
            err.seek(0)
            return Finished(code, out.read().decode("utf-8"), err.read().decode("utf-8"))

    def having(self, **variables: str) -> ForkedProgram:
        return ForkedProgram({**self.environment, **variables})


@cache
def _fork_server() -> socket.socket:
    """The connection to a Python that has imported the package; it ends when this process does."""
    here, there = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, "-W", "error", str(_SERVER), str(there.fileno())],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        pass_fds=[there.fileno()],
    )
    there.close()

    def end() -> None:
        here.close()
        process.wait()

    atexit.register(end)
    return here

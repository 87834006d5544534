"""A Python that starts in no time: a server has imported the package mcp, and forks for each start.

`python()` is the path of an executable that is used like a Python: `python() -m peekaboo_min`. What runs in
the fork is the same code, freshly imported, with the starter's arguments, variables, folder and standard
files. Importing mcp is nearly all that a server's start costs, and an agent pays it twice.

Not for tests of the start itself: other locales, terminals, closed streams, what is imported, options of
Python's but -W. The starter's process id is that of a small program that passes signals on and ends as the
fork does; when it is killed, the fork is killed, too.
"""

from __future__ import annotations

import atexit
import os
import shlex
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHARED = "TESTS_WARM_PYTHON"  # set by side_by_side.py
_SERVER, _LAUNCHER = HERE / "warm_python_server.py", HERE / "warm_python_launcher.py"


@cache
def python() -> str:
    """The executable. Its server ends when this process does, and removes it.

    Test files that run side by side share one.
    """
    shared = os.environ.get(SHARED)
    if shared:
        return shared
    # not in the temporary folder of the session: a socket's path may not be long
    folder = Path(tempfile.mkdtemp(prefix="warm-python-", dir="/tmp"))
    executable, socket = folder / "python3", folder / "socket"
    words = [sys.executable, "-I", "-S", str(_LAUNCHER), str(socket)]
    executable.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
    executable.chmod(0o700)
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    process = subprocess.Popen(
        [sys.executable, str(_SERVER), str(socket), str(executable)],
        env={**variables, "LANG": "C.UTF-8"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin and process.stdout
    assert process.stdout.readline() == b"ready\n"
    process.stdout.close()

    def end() -> None:
        process.stdin.close()  # type: ignore[union-attr]
        process.wait()

    atexit.register(end)
    return str(executable)

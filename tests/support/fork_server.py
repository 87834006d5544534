"""A Python that has imported the package, and forks for each command: fork_server.py FILE_DESCRIPTOR.

Each message on that socket brings four files: the command as JSON, its stdout, its stderr, and a socket that
gets its process id and, once it has ended, its exit code, a line each.
"""

from __future__ import annotations

import json
import os
import pkgutil
import socket
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from typing import Any

import peekaboo_min
from peekaboo_min.frontends.cli import start


def serve(connection: socket.socket) -> None:
    for module in pkgutil.walk_packages(peekaboo_min.__path__, "peekaboo_min."):
        # elements_atspi is for the system's own Python
        if not module.name.endswith(("__main__", "elements_atspi")):
            import_module(module.name)
    while True:
        with suppress(ChildProcessError):  # there is none
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        message, files, _, _ = socket.recv_fds(connection, 16, 4)
        if not message:
            return
        if not os.fork():
            connection.close()
            _keep(files)
        for each in files:
            os.close(each)


def _keep(files: list[int]) -> None:
    """Run the command in a child, and report how it ended. Never returns."""
    request, out, err, answer = files
    child = os.fork()
    if not child:
        with open(request, "rb") as f:
            task = json.load(f)
        os.close(answer)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.closerange(3, max(out, err) + 1)
        _be_the_command(task)
    os.write(answer, b"%d\n" % child)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.write(answer, b"%d\n" % code)
    os._exit(0)


def _be_the_command(task: dict[str, Any]) -> None:
    code = 1
    try:
        os.environ.clear()
        os.environ.update(task["environment"])
        os.chdir(task["folder"])
        sys.argv = ["peekaboo-min", *task["arguments"]]
        try:
            start()
        except SystemExit as e:
            code = e.code if isinstance(e.code, int) else 1
        except BaseException:
            traceback.print_exc()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))

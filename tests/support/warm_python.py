"""A Python that starts in no time: a server has imported the package mcp, and forks for each start.

`python()` is the path of an executable for `python() [-W option] FILE`, `-m MODULE` or `-c CODE`. What
runs in the fork is the same code, freshly imported, with the starter's arguments, variables, folder and
standard files. Importing mcp is 0.7 s of processor time in a server's start.

Not for tests of the start itself: locales, closed streams, what is imported, signals. The starter's process
id is that of a launcher, which ends as the fork does; however it ends, the fork is killed.
"""

from __future__ import annotations

import marshal
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from functools import cache

SHARED = "TESTS_WARM_PYTHON"  # set by side_by_side.py
_IMPORTED = ("mcp.server.mcpserver", "mcp.server.stdio", "mcp.client.stdio", "anyio._backends._asyncio")


@cache
def python() -> str:
    """The executable. Its server ends when this process does, and removes it.

    Test files that run side by side share one.
    """
    import atexit
    import shlex
    import subprocess
    import tempfile

    if SHARED in os.environ or not hasattr(os, "pidfd_open"):
        return os.environ.get(SHARED, sys.executable)
    # not in the temporary folder of the session: a socket's path may not be long
    folder = tempfile.mkdtemp(prefix="warm-python-", dir="/tmp")
    executable = os.path.join(folder, "python3")
    argv = shlex.join([sys.executable, "-I", "-S", __file__, os.path.join(folder, "socket")])
    with open(executable, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o700)) as f:
        f.write(f'#!/bin/sh\nexec {argv} "$@"\n')
    process = subprocess.Popen(
        [sys.executable, __file__, folder],
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # a pipe, too: Python asks once whether a file can seek
    )
    assert process.stdin and process.stdout
    assert process.stdout.readline() == b"ready\n"
    process.stdout.close()
    atexit.register(process.communicate)
    return executable


def launch(path: str, arguments: list[str]) -> None:
    """Have the server fork, and end with the fork's exit code."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    request = marshal.dumps((arguments, dict(os.environb), os.getcwd()))
    socket.send_fds(connection, [len(request).to_bytes(4, "big")], [0, 1, 2])
    connection.sendall(request)
    os.closerange(0, 3)  # a pipe has an end when the fork closes it
    os._exit((connection.recv(1) or b"\1")[0])


def serve(folder: str) -> None:
    """Fork for each connection until stdin ends. Returns in the fork of a fork, as what was started."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a person's Ctrl-C ends who started this, and so stdin
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.join(folder, "socket"))
        listener.listen(64)
        print("ready", flush=True)
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection = listener.accept()[0]
            if not os.fork():
                listener.close()
                return watch(connection, os.path.join(folder, "python3"))
            connection.close()
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)
    sys.exit()


def watch(connection: socket.socket, executable: str) -> None:
    """Fork once more; kill the fork when the launcher is gone, tell it the exit code. Returns in the fork."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, files, _, _ = socket.recv_fds(connection, 4, 3)
    request = connection.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    pid = os.fork()
    if not pid:
        connection.close()
        return become(executable, *marshal.loads(request))
    os.closerange(0, 3)
    launcher = connection.fileno()
    if launcher in select.select([launcher, os.pidfd_open(pid)], [], [])[0]:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(OSError):  # the launcher was killed
        connection.sendall(bytes([code & 0xFF]))
    os._exit(0)


def become(executable: str, argv: list[str], variables: dict[bytes, bytes], folder: str) -> None:
    """Run what that Python was started for, to its end."""
    import runpy
    import time
    import warnings

    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environb.update(variables)
    time.tzset()
    os.chdir(folder)
    sys.executable = executable
    while argv[0] == "-W":
        warnings._processoptions(argv[1:2])  # type: ignore[attr-defined]
        argv = argv[2:]
    sys.path[:0] = [path for path in os.environ.get("PYTHONPATH", "").split(":") if path]
    if argv[0] == "-m":
        sys.argv = argv[1:]
        sys.path.insert(0, folder)
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif argv[0] == "-c":
        sys.argv = ["-c", *argv[2:]]
        sys.path.insert(0, "")
        exec(compile(argv[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = argv
        sys.path.insert(0, os.path.dirname(os.path.realpath(argv[0])))
        runpy.run_path(argv[0], run_name="__main__")


if __name__ == "__main__" and len(sys.argv) > 2:
    launch(sys.argv[1], sys.argv[2:])
elif __name__ == "__main__":
    import gc
    from importlib import import_module

    del sys.path[0]  # this folder
    gc.disable()
    for name in _IMPORTED:
        import_module(name)
    gc.freeze()
    gc.enable()
    serve(sys.argv[1])

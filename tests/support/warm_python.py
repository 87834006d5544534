"""A Python that starts in no time: a server has imported the package mcp, and forks for each start.

`python()` is the path of an executable that is used like a Python: `python() -m peekaboo_min`. What runs in
the fork is the same code, freshly imported, with the starter's arguments, variables, folder and standard
files. Importing mcp is 0.7 s of processor time in a server's start, and an agent pays it twice.

Not for tests of the start itself: other locales, closed streams, what is imported, options of Python's but
-W. The starter's process id is that of a launcher, which passes signals on and ends as the fork does; when
it is killed, the fork is killed, too.
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
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


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
    )
    assert process.stdin and process.stdout
    assert process.stdout.readline() == b"ready\n"
    process.stdout.close()
    atexit.register(process.communicate)
    return executable


def launch(path: str, arguments: list[str]) -> None:
    """Have the server fork, and end as the fork does."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)  # until the fork is known
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    request = marshal.dumps((arguments, dict(os.environb), os.getcwd()))
    socket.send_fds(connection, [len(request).to_bytes(4, "big")], [0, 1, 2])
    connection.sendall(request)
    os.closerange(0, 3)  # a pipe has an end when the fork closes it
    with connection.makefile() as answers:
        pid = int(answers.readline() or os._exit(1))

        def pass_on(number: int, _frame: object) -> None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

        for number in _PASSED_ON:
            signal.signal(number, pass_on)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
        code = int(answers.readline() or 1)
    if -code in _PASSED_ON:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code) if code < 0 else os._exit(code)


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
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, files, _, _ = socket.recv_fds(connection, 4, 3)
    request = connection.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL)
    pid = os.fork()
    if not pid:
        connection.close()
        return become(files, executable, *marshal.loads(request))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.closerange(0, 3)
    for file in files:
        os.close(file)
    with suppress(OSError):  # the launcher was killed
        connection.sendall(b"%d\n" % pid)
        launcher = connection.fileno()
        if launcher in select.select([launcher, os.pidfd_open(pid)], [], [])[0]:
            os.kill(pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        connection.sendall(b"%d\n" % code)
    os._exit(0)


def become(
    files: list[int], executable: str, argv: list[str], variables: dict[bytes, bytes], folder: str
) -> None:
    """Run what that Python was started for, to its end."""
    import builtins
    import runpy
    import time
    import warnings

    for number, (name, file) in enumerate(zip(("stdin", "stdout", "stderr"), files)):
        os.dup2(file, number)
        os.close(file)
        # as Python itself opens them in the locale C.UTF-8
        errors = "backslashreplace" if name == "stderr" else "surrogateescape"
        buffering, mode = (1 if name == "stderr" else -1), ("w" if number else "r")
        setattr(sys, name, os.fdopen(number, mode, buffering, "utf-8", errors, closefd=False))
    os.environ.clear()
    os.environb.update(variables)
    time.tzset()
    os.chdir(folder)
    sys.executable = executable
    while argv[0] == "-W":
        action, _, category = argv[1].partition("::")
        warnings.simplefilter(action, getattr(builtins, category or "Warning"))  # type: ignore[arg-type]
        argv = argv[2:]
    what, *sys.argv = argv
    sys.path[:0] = [path for path in os.environ.get("PYTHONPATH", "").split(":") if path]
    if what == "-m":
        sys.path.insert(0, os.getcwd())
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif what == "-c":
        code, sys.argv[0] = sys.argv[0], "-c"
        sys.path.insert(0, "")
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv.insert(0, what)
        sys.path.insert(0, os.path.dirname(os.path.realpath(what)))
        runpy.run_path(what, run_name="__main__")


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

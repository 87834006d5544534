"""Forks for each start: warm_python_server.py SOCKET EXECUTABLE; see warm_python.py. Ends with its stdin.

A connection brings a message of four bytes of length and that of the arguments, variables and folder, with
the three standard files; it is answered by the fork's process id and, at its end, its exit code, a line each.
"""

from __future__ import annotations

import builtins
import gc
import marshal
import os
import runpy
import selectors
import shutil
import signal
import socket
import sys
import time
import warnings
from contextlib import suppress
from importlib import import_module
from typing import NamedTuple, NoReturn, Optional

# what our server imports, and the agents' client; all else comes anew in each fork
_IMPORTED = (
    "mcp.server.mcpserver",
    "mcp.server.stdio",
    "mcp.client.stdio",
    "anyio.from_thread",
    "anyio._backends._asyncio",
)


class Request(NamedTuple):
    """What a started Python inherits."""

    arguments: list[str]
    variables: dict[bytes, bytes]
    folder: str
    files: list[int]


def serve(path: str) -> Request:
    """Fork for each connection. Returns in the fork, with nothing of the server's open."""
    running: dict[int, socket.socket] = {}
    news, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a person's Ctrl-C ends who started this, and so stdin
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
        listener.bind(path)
        listener.listen(64)
        for source in (0, listener, news):
            selector.register(source, selectors.EVENT_READ)
        print("ready", flush=True)
        while True:
            for key, _ in selector.select():
                if key.fd == 0:
                    _leave(list(running), os.path.dirname(path))
                elif key.fileobj is news:
                    news.recv(4096)
                    _report_ends(running, selector)
                elif key.fileobj is not listener:
                    if key.data in running:  # else it has just ended; whoever started this one is gone
                        selector.unregister(key.fileobj)
                        os.kill(key.data, signal.SIGKILL)
                elif request := _read(connection := listener.accept()[0]):
                    pid = os.fork()
                    if not pid:
                        for each in (connection, news, wake, *running.values()):
                            each.close()
                        return request
                    for file in request.files:
                        os.close(file)
                    running[pid] = connection
                    selector.register(connection, selectors.EVENT_READ, pid)
                    _answer(connection, pid)


def _read(connection: socket.socket) -> Optional[Request]:
    """None where the starter was killed meanwhile."""
    data, files, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        more = connection.recv(1 << 16)
        if not more:
            for each in files:
                os.close(each)
            connection.close()
            return None
        data += more
    return Request(*marshal.loads(data[4:]), files)


def _report_ends(running: dict[int, socket.socket], selector: selectors.BaseSelector) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with running.pop(pid) as connection:
            with suppress(KeyError):
                selector.unregister(connection)
            _answer(connection, os.waitstatus_to_exitcode(status))


def _answer(connection: socket.socket, number: int) -> None:
    with suppress(OSError):  # whoever asked is gone
        connection.sendall(b"%d\n" % number)


def _leave(pids: list[int], folder: str) -> NoReturn:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def become(request: Request, executable: str) -> None:
    """Run what that Python was started for, to its end."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in enumerate(request.files):
        os.dup2(file, number)
    for file in request.files:
        os.close(file)
    _open_standard_streams()
    os.environ.clear()
    os.environ.update({os.fsdecode(name): os.fsdecode(value) for name, value in request.variables.items()})
    time.tzset()
    os.chdir(request.folder)
    sys.executable = executable
    words = request.arguments
    while words[0] == "-W":
        action, _, category = words[1].partition("::")
        warnings.simplefilter(action, getattr(builtins, category or "Warning"))
        words = words[2:]
    what, *sys.argv = words
    sys.path[:0] = [one for one in os.environ.get("PYTHONPATH", "").split(":") if one]
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


def _open_standard_streams() -> None:
    """As Python itself opens them in the locale C.UTF-8; the server's know what kind of files theirs were."""
    ways = {
        "stdin": ("r", "surrogateescape"),
        "stdout": ("w", "surrogateescape"),
        "stderr": ("w", "backslashreplace"),
    }
    for file, (name, (mode, errors)) in enumerate(ways.items()):
        stream = os.fdopen(file, mode, encoding="utf-8", errors=errors, closefd=False)
        if name == "stderr" or stream.isatty():
            stream.reconfigure(line_buffering=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


if __name__ == "__main__":
    del sys.path[0]  # this folder
    gc.disable()
    for name in _IMPORTED:
        import_module(name)
    gc.freeze()
    gc.enable()
    become(serve(sys.argv[1]), sys.argv[2])

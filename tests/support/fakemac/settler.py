"""Settle the worlds of fake Macs for programs that cannot, in threads of the tests' own process.

`settler` in the folder of a world is a FIFO for lines. The folder's path asks to settle that world once; with
a process id and a blank before it, for as long as that process lives.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
import time
from contextlib import suppress
from functools import cache

from .world import Folder, now_ms, read_state, settle


def offer_settling(folder: Folder) -> None:
    with suppress(FileExistsError):
        os.symlink(_fifo(), os.path.join(folder, "settler"))


@cache
def _fifo() -> str:
    folder = tempfile.mkdtemp(prefix="fakemac-settler-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "fifo")
    os.mkfifo(path, 0o600)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.open(path, os.O_WRONLY)  # kept open: else there is an end whenever no program writes
    os.set_blocking(reader, True)
    threading.Thread(target=_serve, args=(reader,), daemon=True).start()
    return path


def _serve(reader: int) -> None:
    rest = b""
    while True:
        *lines, rest = (rest + os.read(reader, 1 << 16)).split(b"\n")
        for line in dict.fromkeys(map(os.fsdecode, lines)):
            if line[0].isdigit():
                pid, folder = line.split(" ", 1)
                threading.Thread(target=_settle_while, args=(int(pid), folder), daemon=True).start()
            else:
                with suppress(OSError, ValueError):  # a test that is over took the folder away
                    settle(line)


def _settle_while(pid: int, folder: str) -> None:
    """Settle all that is posted or due; os.kill ends it with the process."""
    with suppress(OSError, ValueError):
        events = os.path.join(folder, "events.jsonl")
        state = settle(folder)
        while True:
            os.kill(pid, 0)
            posted = os.path.getsize(events) if os.path.exists(events) else 0
            if posted != state["settled_bytes"] or any(
                event["due"] <= now_ms() for event in state["pending"]
            ):
                state = settle(folder)
            elif os.path.getmtime(os.path.join(folder, "desktop.json")) * 1000 > now_ms() - 100:
                state = read_state(folder)  # another process may have changed it
            time.sleep(0.002)

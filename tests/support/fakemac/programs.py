"""Shared by all fake programs: the log of calls, scripted faults, latency, hanging, their table."""

from __future__ import annotations

import fcntl
import importlib
import os
import signal
import sys
import time
from typing import Callable, Optional

from .world import Folder, State, append_line, now_ms, post, settle


class Exit(Exception):
    """Ends the program with this exit code and message."""

    def __init__(self, code: int, stderr: str = "", stdout: str = "") -> None:
        super().__init__(code)
        self.code, self.stderr, self.stdout = code, stderr, stdout


def main(folder: Folder, program: str, argv: list[str]) -> int:
    if program == "draw-slide":  # asked by the fake Keynote
        return draw_slide(folder, argv)
    log_call(folder, program, argv)
    state = settle(folder)
    check_alone(folder, program)
    delay(state, program)
    try:
        scripted_fault(folder, state, program, argv)
        return module_of(program)(folder, state, argv) or 0
    except Exit as end:
        sys.stdout.write(end.stdout)
        sys.stderr.write(end.stderr and end.stderr.rstrip("\n") + "\n")
        return end.code


def check_alone(folder: Folder, program: str) -> None:
    """Note a second capture while one runs: a Mac takes them one after the other, each slower than alone."""
    if program == "screencapture":
        path = os.path.join(folder, "capturing")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT)  # until the process ends
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            post(folder, {"do": "note", "kind": "strict", "what": {"why": "two captures at once"}})


Program = Callable[[Folder, State, list[str]], Optional[int]]
# Loaded one at a time: a fake program must start fast.
MODULES = {
    "screencapture": "screencapture",
    "sips": "sips",
    "xcode-select": "developer_tools",
    "xcrun": "developer_tools",
    "swiftc": "developer_tools",
}


def module_of(program: str) -> Program:
    module = importlib.import_module("." + MODULES.get(program, "small_programs"), __package__)
    return module.PROGRAMS[program]


def log_call(folder: Folder, program: str, argv: list[str]) -> None:
    call = {"program": program, "argv": argv, "stdin": None, "pid": os.getpid(), "t": now_ms()}
    append_line(os.path.join(folder, "calls.jsonl"), call)


def delay(state: State, program: str) -> None:
    span = state["latency_ms"].get(program)
    if span:
        import random

        time.sleep(random.uniform(*span) / 1000)


def scripted_fault(folder: Folder, state: State, program: str, argv: list[str]) -> None:
    """Return the first matching fault: same program, and every word of `when` in argv."""
    for fault in state["faults"]:
        if fault["program"] != program or not all(word in argv for word in fault["when"]):
            continue
        if fault.get("times") is not None:
            post(folder, {"do": "use_fault", "key": fault["key"]})
            settle(folder)
        if fault.get("hang"):
            hang(folder, state)
        if fault.get("file") is not None:
            with open(argv[-1], "wb") as stream:
                stream.write(bytes.fromhex(fault["file"]))
        if fault["exit"] < 0:
            os.kill(os.getpid(), -fault["exit"])
        raise Exit(fault["exit"], fault["stderr"], fault["stdout"])


def hang(folder: Folder, state: State) -> None:
    """Wait to be killed (facts 6.3.5); the limit only ends forgotten programs."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    append_line(os.path.join(folder, "hanging.jsonl"), {"pid": os.getpid()})
    time.sleep(state["switches"]["hang_limit_s"])
    raise Exit(98, "fakemac: this program was not killed in time")


def draw_slide(folder: Folder, argv: list[str]) -> int:
    from .drawing import draw_slide_picture
    from .png import png_bytes

    document_id, slide, path = argv
    keynote = settle(folder)["keynote"]
    deck = next(item for item in keynote["documents"] if item["id"] == document_id)
    data = png_bytes(draw_slide_picture(deck, int(slide)))
    with open(path, "wb") as stream:
        stream.write(data[:40] if keynote["damages_slide"] == int(slide) + 1 else data)
    return 0

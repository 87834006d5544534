"""Faults of the programs and the display that the product depends on."""

from __future__ import annotations

import base64
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
from pathlib import Path
from typing import Any, Optional

from worlds import PATIENCE_S, comes_true

from peekaboo_min.desktop.x11.backend import X11Desktop

from .rpc import Reply
from .stage import Stage, stage
from .tally import Tally

_LIMIT_S = 50 + PATIENCE_S  # a tool's 50 seconds, plus slack for a busy machine
# weights; a hang takes its whole timeout, so it is rare
FAULTS = {
    **dict.fromkeys(("missing", "killed", "garbage", "empty", "fail", "half", "not a program", "noise"), 10),
    **dict.fromkeys(("hung", "late"), 2),
}

# runs in place of a program; {real} is the program itself
_SHIM = """#!/bin/sh
read -r fault < {fault_file} || fault=none
case $fault in
none) exec {real} "$@" ;;
hung) exec sleep 600 ;;
killed) kill -9 $$ ;;
garbage) printf '\\377\\000\\033[2J {{"x": 1e999}} 0x0 garbage\\n'; exit 0 ;;
empty) exit 0 ;;
fail) echo 'something is wrong' >&2; exit 3 ;;
half) {real} "$@" > {fault_file}.out; code=$?; size=$(wc -c < {fault_file}.out)
    head -c $((size / 2)) {fault_file}.out; rm -f {fault_file}.out
    for last in "$@"; do :; done; last=${{last#*:}}
    [ ! -f "$last" ] || truncate -s $(($(wc -c < "$last") / 2)) "$last"
    exit $code ;;
late) sleep 0.7; exec {real} "$@" ;;
noise) echo 'Warning: an unrelated message' >&2; exec {real} "$@" ;;
esac
"""


class FaultyPrograms:
    """A PEEKABOO_BIN_DIR with each installed program that the X11 desktop runs."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._faults = folder / "bin", folder / "faults"
        self._folder.mkdir()
        self._faults.mkdir()
        self.variables = {"PEEKABOO_BIN_DIR": str(self._folder)}
        self.names = sorted(filter(shutil.which, {*X11Desktop.needs, *X11Desktop.uses}))
        for name in self.names:
            script = _SHIM.format(fault_file=self._faults / name, real=shutil.which(name))
            (self._folder / name).write_text(script)
            self.set(name, "none")

    def set(self, program: str, fault: str) -> None:
        """Break a program, or repair it with `none`."""
        path, away = self._folder / program, self._folder / f".{program}-away"
        if fault == "missing":
            os.replace(path, away)
            return
        if away.exists():
            os.replace(away, path)
        is_program = fault != "not a program"
        path.chmod(0o755 if is_program else 0o644)
        (self._faults / program).write_text(f"{fault if is_program else 'none'}\n")


# operation -> tool and arguments; the scene replaces window_id and screenshot_id
_LONG_TEXT = "abc" * 15
OPERATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "list_windows": ("list_windows", {}),
    "screenshot": ("take_window_screenshot", {"window_id": 0}),
    "screen": ("image", {"return_data": True}),
    "click": ("click", {"window_id": 0, "x": 30, "y": 40, "screenshot_id": ""}),
    "type": ("type_text", {"window_id": 0, "text": _LONG_TEXT}),
    "press": ("press_key", {"window_id": 0, "key": "a"}),
    "focus": ("focus_window", {"window_id": 0}),
    "find_text": ("find_text", {"window_id": 0, "text": "nothing"}),
    "list": ("list", {"item_type": "running_applications"}),
    "paste": ("type_text", {"window_id": 0, "text": "é"}),
}
# the input that the field receives from an operation
_EFFECTS = {"click": "press", "type": _LONG_TEXT, "press": "a"}


class FaultScene:
    """A window that reports its input, and operations on it that are checked against the report."""

    def __init__(self, on: Stage, **variables: str) -> None:
        self.on, self.variables = on, variables
        self.client, self.witness, self.window_id = on.field(0, **variables)
        self.screenshot = ""
        self.renew()

    def renew(self) -> None:
        """Restart a dead server, bring the window to the front and take its screenshot."""
        if not self.client.is_alive():
            self.on.tally.count("tracebacks", "the server is dead")
            self.client = self.on.client(**self.variables)
        self.witness.do("raise", "field")
        self.witness.do("focus", "field")
        self.witness.sync()
        reply = self.client.call("take_window_screenshot", window_id=self.window_id)
        self.screenshot = reply.data.get("screenshot_id", self.screenshot)

    def run(self, operation: str) -> Reply:
        tool, arguments = OPERATIONS[operation]
        known = {"window_id": self.window_id, "screenshot_id": self.screenshot}
        return self.client.call(tool, _LIMIT_S, **{key: known.get(key, arguments[key]) for key in arguments})

    def has_press(self) -> bool:
        self.witness.sync()
        return any(one["event"] == "press" for one in self.witness.events)

    def run_and_judge(self, operation: str, what: str) -> None:
        reply = self.run(operation)
        if operation == "click" and reply.is_delivered:
            comes_true(self.has_press)  # a click-to-focus window manager delays the press
        got = "press" if self.has_press() else ""
        got += "".join(key["text"] for key in self.witness.take("key"))
        judge_operation(self.on.tally, operation, f"{operation}, {what}", reply, got, self.window_id)


def judge_operation(
    tally: Tally, operation: str, what: str, reply: Reply, got: str = "", window_id: int = 0
) -> None:
    """Check a reported success: the keys arrived, the image is whole, the window is listed."""
    windows = [one["window_id"] for one in reply.data.get("windows", [])]
    problem = ""
    if reply.code:
        pass
    elif not all(map(is_whole_image, reply.images)):
        problem = "a truncated image"
    elif operation in ("screenshot", "screen") and not reply.images:
        problem = "no image"
    elif operation == "list_windows" and window_id not in windows:
        problem = "the window is missing from the list"
    has_arrived = got == _EFFECTS[operation] if operation in _EFFECTS else not reply.code
    tally.judge(what, reply, has_arrived, problem)


def is_whole_image(image: dict[str, Any]) -> bool:
    """Decode the image with ImageMagick, which reports missing data on stderr."""
    kind = image["mimeType"].rpartition("/")[2]
    words, data = ["convert", f"{kind}:-", "rgb:/dev/null"], base64.b64decode(image["data"])
    done = subprocess.run(words, input=data, capture_output=True, timeout=PATIENCE_S)
    return done.returncode == 0 and not done.stderr


def break_programs(on: Stage, rng: random.Random, trials: int, kind: Optional[str] = None) -> None:
    """Break the product's programs with random faults, or only with `kind`."""
    programs = FaultyPrograms(on.folder)
    scene = FaultScene(on, **programs.variables)
    for _ in range(trials):
        program, operation = rng.choice(programs.names), rng.choice([*OPERATIONS])
        fault = kind or rng.choices([*FAULTS], [*FAULTS.values()])[0]
        programs.set(program, fault)
        on.tally.count("trials")
        scene.run_and_judge(operation, f"{program} {fault}")
        programs.set(program, "none")
        scene.renew()


def end_displays(on: Stage, rng: random.Random, trials: int, kind: Optional[str] = None) -> None:
    """Kill the X server during an operation; the server must survive and report NO_GUI_SESSION."""
    for _ in range(trials):
        with stage(on.tally) as here:
            _end_display(here, rng, kind or rng.choice([*OPERATIONS]))


def _end_display(on: Stage, rng: random.Random, operation: str) -> None:
    scene = FaultScene(on)
    tool, arguments = OPERATIONS["type" if operation == "type" else "screenshot"]
    number = scene.client.start_call(tool, **{**arguments, "window_id": scene.window_id})
    has_ended = comes_true(lambda: number in scene.client.arrived(), rng.uniform(0, 0.3))
    with socket.socket(socket.AF_UNIX) as x_server:
        x_server.connect(f"/tmp/.X11-unix/X{on.x['DISPLAY'].lstrip(':')}")
        pid, *_ = struct.unpack("3i", x_server.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    os.kill(pid, signal.SIGKILL)
    on.tally.count("trials acted" if has_ended else "trials")
    on.tally.has_failed(f"{operation} while the display ends", scene.client.reply(number, _LIMIT_S))
    judge_without_display(on.tally, operation, scene.run(operation))


def judge_without_display(tally: Tally, operation: str, reply: Reply) -> None:
    if tally.has_failed(f"{operation} after the display ended", reply):
        return
    if not reply.code:
        tally.count("unreported", f"{operation} without a display reported success")
    elif reply.code != "NO_GUI_SESSION":
        tally.note(f"{operation} without a display: {reply.code}")

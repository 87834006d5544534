"""Faults of the programs and the display that the product depends on."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp_server import Reply
from stage import Stage
from steps import received
from worlds import PATIENCE_S, comes_true

from peekaboo_min.desktop.x11.backend import X11Desktop

# shell commands that run before a program ($real), or instead of it if they end the script
FAULTS = {
    "none": "",
    "missing": "",
    "not a program": "",
    "killed": "kill -9 $$",
    "garbage": "printf '\\377\\000\\033[2J {\"x\": 1e999} 0x0 garbage\\n'; exit 0",
    "empty": "exit 0",
    "fail": "echo 'something is wrong' >&2; exit 3",
    "half": (
        'out=$0.$$; $real "$@" > $out; code=$?; head -c $(($(wc -c < $out) / 2)) $out; rm $out\n'
        'for last in "$@"; do :; done; last=${last#*:}\n'
        '[ ! -f "$last" ] || truncate -s $(($(wc -c < "$last") / 2)) "$last"; exit $code'
    ),
    "noise": "echo 'Warning: an unrelated message' >&2",
    "late": "sleep 0.7",
    "hung": "exec sleep 600",
}
_RARE = ("late", "hung")  # a hang takes its whole timeout


class BreakablePrograms:
    """A PEEKABOO_BIN_DIR with each installed program that the X11 desktop runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "bin"
        self._folder.mkdir()
        self.variables = {"PEEKABOO_BIN_DIR": str(self._folder)}
        self._real = {name: shutil.which(name) for name in (*X11Desktop.needs, *X11Desktop.uses)}
        self.names = sorted(name for name, path in self._real.items() if path)
        for name in self.names:
            (self._folder / name).symlink_to(str(self._real[name]))

    @contextmanager
    def broken(self, name: str, fault: str) -> Iterator[None]:
        """Break a program while the block runs."""
        path, new, real = self._folder / name, self._folder / "new", str(self._real[name])
        new.write_text(f'#!/bin/sh\nreal={real}\n{FAULTS[fault]}\nexec $real "$@"\n')
        new.chmod(0o644 if fault == "not a program" else 0o755)
        new.replace(path)
        if fault == "missing":
            path.unlink()
        yield
        new.symlink_to(real)
        new.replace(path)


# operation: tool and arguments; the scene sets window_id
_LONG_TEXT = "abc" * 15
OPERATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "list_windows": ("list_windows", {}),
    "screenshot": ("take_window_screenshot", {"window_id": 0}),
    "screen": ("image", {"return_data": True}),
    "click": ("click", {"window_id": 0, "x": 30, "y": 40}),
    "type": ("type_text", {"window_id": 0, "text": _LONG_TEXT}),
    "press": ("press_key", {"window_id": 0, "key": "a"}),
    "focus": ("focus_window", {"window_id": 0}),
    "find_text": ("find_text", {"window_id": 0, "text": "nothing"}),
    "list": ("list", {"item_type": "running_applications"}),
    "paste": ("type_text", {"window_id": 0, "text": "é"}),
}
# the input that the window receives from an operation; `*` is a press
_EFFECTS = {"click": "*", "type": _LONG_TEXT, "press": "a"}


class FaultScene:
    """A window that reports its input, and operations on it that are checked against the report."""

    def __init__(self, on: Stage, **variables: str) -> None:
        self.on, self.variables, self.field = on, variables, on.field(0, **variables)
        self.renew()

    def renew(self) -> None:
        """Replace a dead server, bring the window to the front and take its screenshot."""
        if self.field.client.process.poll() is not None:
            self.field = self.field._replace(client=self.on.client(**self.variables))
        self.field.clear()
        self.run("screenshot")

    def run(self, operation: str) -> Reply:
        tool, arguments = OPERATIONS[operation]
        known = {"window_id": self.field.window_id} if "window_id" in arguments else {}
        return self.field.client.call(tool, **{**arguments, **known})

    def run_and_judge(self, operation: str, what: str) -> None:
        reply = self.run(operation)
        # a click-to-focus window manager delays a press
        wait_s = 5.0 if operation == "click" and reply.is_delivered else 0.0
        got = comes_true(lambda: received(self.field.witness), wait_s)
        problem = "" if reply.code else self.problem(operation, reply)
        has_arrived = got == _EFFECTS[operation] if operation in _EFFECTS else not reply.code
        self.on.tally.judge(f"{operation}, {what}", reply, has_arrived, problem)

    def problem(self, operation: str, reply: Reply) -> str:
        """Describe what a reported success lacks: the image is whole, the window is listed."""
        if operation in ("screenshot", "screen"):
            return "" if reply.images and all(map(is_whole_image, reply.images)) else "no whole image"
        windows = [one["window_id"] for one in reply.data.get("windows", [])]
        is_missing = operation == "list_windows" and self.field.window_id not in windows
        return "the window is missing from the list" if is_missing else ""


def is_whole_image(image: dict[str, Any]) -> bool:
    """Decode the image with ImageMagick, which reports missing data on stderr."""
    kind = image["mimeType"].rpartition("/")[2]
    argv, data = ["convert", f"{kind}:-", "rgb:/dev/null"], base64.b64decode(image["data"])
    done = subprocess.run(argv, input=data, capture_output=True, timeout=PATIENCE_S)
    return done.returncode == 0 and not done.stderr


def break_programs(on: Stage) -> None:
    """Break one program at a time while an operation runs."""
    programs = BreakablePrograms(on.folder)
    scene = FaultScene(on, **programs.variables)
    often = [fault for fault in FAULTS if fault not in _RARE] * 5
    for fault in on.trials([*often, *_RARE]):
        name, operation = on.rng.choice(programs.names), on.rng.choice([*OPERATIONS])
        with programs.broken(name, fault):
            scene.run_and_judge(operation, f"{name} {fault}")
        scene.renew()


def end_display(on: Stage) -> None:
    """Kill the X server during an operation; the server must survive and report NO_GUI_SESSION."""
    scene = FaultScene(on)
    with socket.socket(socket.AF_UNIX) as x_server:
        x_server.connect(f"/tmp/.X11-unix/X{on.x['DISPLAY'].lstrip(':')}")
        credentials = x_server.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid = struct.unpack("3i", credentials)[0]
    for operation in on.trials([*OPERATIONS]):
        number = scene.field.type(_LONG_TEXT)
        time.sleep(on.rng.uniform(0, 0.3))
        os.kill(pid, signal.SIGKILL)
        on.tally.has_failed("the display ends", scene.field.client.reply(number))
        reply, what = scene.run(operation), f"{operation} without a display"
        if not on.tally.has_failed(what, reply) and reply.code != "NO_GUI_SESSION":
            on.tally.count("" if reply.code else "unreported", f"{what}: {reply.code or 'success'}")

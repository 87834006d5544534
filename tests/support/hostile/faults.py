"""Faults of what the product stands on: programs, the display, the disk, folders."""

from __future__ import annotations

import base64
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Optional

import headless
from worlds import PATIENCE_S, comes_true

from .programs import FAULTS, FaultyPrograms, x11_programs
from .rpc import Client, Reply
from .stage import Stage, XWitness, count_failure, second_stage, stage
from .tally import Tally

_LIMIT_S = 50 + PATIENCE_S  # a tool's 50 seconds, and a busy machine's
_OPERATIONS = (
    "list_windows",
    "screenshot",
    "screen",
    "click",
    "type",
    "press",
    "focus",
    "find_text",
    "list",
    "paste",
)
# a hang costs its whole timeout: few of them
_WEIGHTS = [2 if one in ("hung", "late") else 10 for one in FAULTS]


class FaultScene:
    """A window that reports, and each operation on it with the truth of what it did."""

    def __init__(self, on: Stage, client: Client) -> None:
        self.on, self.client = on, client
        self.field: XWitness = on.x_witness()
        self.window_id = self.field.open("field", x=150, y=120, w=300, h=200, app="Field", title="The field")
        on.wait_for_window(client, self.window_id)
        self.screenshot = ""
        self.renew()

    def renew(self) -> None:
        self.field.do("raise", "field")
        self.field.do("focus", "field")
        self.field.sync()
        reply = self.client.call("take_window_screenshot", window_id=self.window_id)
        self.screenshot = reply.data.get("screenshot_id", self.screenshot)

    def run(self, operation: str) -> Reply:
        window = {"window_id": self.window_id}
        call = self.client.call
        if operation == "click":
            return call("click", _LIMIT_S, **window, x=30, y=40, screenshot_id=self.screenshot)
        if operation == "screenshot":
            return call("take_window_screenshot", _LIMIT_S, **window)
        if operation == "screen":
            return call("image", _LIMIT_S, return_data=True)
        if operation == "type":
            return call("type_text", _LIMIT_S, **window, text="abc" * 15)
        if operation == "paste":
            return call("type_text", _LIMIT_S, **window, text="é")
        if operation == "press":
            return call("press_key", _LIMIT_S, **window, key="a")
        if operation == "focus":
            return call("focus_window", _LIMIT_S, **window)
        if operation == "find_text":
            return call("find_text", _LIMIT_S, **window, text="nothing")
        if operation == "list":
            return call("list", _LIMIT_S, item_type="running_applications")
        return call("list_windows", _LIMIT_S)

    def judge(self, tally: Tally, operation: str, what: str, reply: Reply) -> None:
        """A success must be one: the keys arrived, the picture is whole, the window is listed."""
        if count_failure(tally, reply, f"{operation}, {what}"):
            return

        def has_press() -> bool:
            self.field.sync()
            return any(one["event"] == "press" for one in self.field.events)

        if operation == "click" and reply.is_delivered:
            comes_true(has_press)  # a window manager that focuses by click holds the press back for a while
        self.field.sync()
        events = list(self.field.events)
        self.field.events.clear()
        presses = [one for one in events if one["event"] == "press"]
        text = "".join(one["text"] for one in events if one["event"] == "key")
        arrived = {
            "click": bool(presses), "type": text == "abc" * 15, "press": text == "a",
        }.get(operation)  # fmt: skip
        problem = ""
        if reply.is_delivered and arrived is False:
            tally.lost += 1
            tally.unreported += 1
            problem = f"nothing or not all arrived ({text!r})"
        elif arrived and not reply.is_delivered:
            tally.doubted += 1
            problem = "it arrived"
        elif not reply.code and not all(map(is_whole_picture, reply.images)):
            tally.wrong += 1
            tally.unreported += 1
            problem = "half a picture"
        elif not reply.code and operation in ("screenshot", "screen") and not reply.images:
            tally.wrong += 1
            problem = "no picture"
        elif not reply.code and operation == "list_windows":
            listed = {one["window_id"]: one for one in reply.data.get("windows", [])}
            if self.window_id not in listed:
                tally.wrong += 1
                tally.unreported += 1
                problem = "the window is missing from the list"
        else:
            tally.acted += not reply.code
        if problem:
            tally.note(f"{operation}, {what}: {problem}, reported as {reply.code or 'a success'}")


def is_whole_picture(image: dict[str, Any]) -> bool:
    """Decoded by ImageMagick, which says on stderr what is missing."""
    kind = image["mimeType"].rpartition("/")[2]
    done = subprocess.run(
        ["convert", f"{kind}:-", "rgb:/dev/null"],
        input=base64.b64decode(image["data"]), capture_output=True, timeout=PATIENCE_S,
    )  # fmt: skip
    return done.returncode == 0 and not done.stderr


def break_programs(rng: random.Random, trials: int, _kind: Optional[str] = None) -> Tally:
    tally = Tally("faulty programs")
    start = time.monotonic()
    with stage() as on:
        programs = FaultyPrograms(on.folder / "bin")
        scene = FaultScene(on, on.client(**programs.variables))
        for _ in range(trials):
            program, operation = rng.choice(x11_programs()), rng.choice(_OPERATIONS)
            fault = rng.choices(FAULTS, _WEIGHTS)[0]
            programs.set(program, fault)
            reply = scene.run(operation)
            programs.set(program, "none")
            tally.trials += 1
            scene.judge(tally, operation, f"{program} {fault}", reply)
            if not scene.client.is_alive():
                tally.tracebacks += 1
                tally.note(f"the server is dead after {operation}, {program} {fault}")
                scene.client = on.client(**programs.variables)
            scene.renew()
        on.finish(tally)
    tally.seconds = time.monotonic() - start
    return tally


def end_displays(rng: random.Random, trials: int, _kind: Optional[str] = None) -> Tally:
    """The X server is killed while something is done; the server lives, and says so from then on."""
    tally = Tally("display gone")
    start = time.monotonic()
    done = 0
    while done < trials:
        done += 1
        with headless.x_server(start_s=PATIENCE_S) as display, second_stage(display) as on:
            scene = FaultScene(on, on.client())
            operation = rng.choice(_OPERATIONS)
            arguments = {"window_id": scene.window_id}
            began = time.monotonic()
            if operation == "type":
                number = scene.client.start_call("type_text", {**arguments, "text": "x" * 300})
            else:
                number = scene.client.start_call("take_window_screenshot", arguments)
            early = scene.client.wait(number, rng.uniform(0, 0.3))
            _kill_display()
            reply = scene.client.read(early) if early else scene.client.finish_call(number, _LIMIT_S, began)
            tally.trials += 1
            count_failure(tally, reply, f"{operation} while the display goes")
            tally.acted += bool(early)
            after = scene.run(operation)
            if not count_failure(tally, after, f"{operation} after the display went") and not after.code:
                tally.unreported += 1
                tally.note(f"{operation} without a display is a success")
            elif after.code not in ("NO_GUI_SESSION", "HUNG"):
                tally.note(f"{operation} without a display: {after.code}")
            on.finish(tally)
    tally.seconds = time.monotonic() - start
    return tally


def _kill_display() -> None:
    """Kill the one Xvfb that this process started."""
    done = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "Xvfb"], capture_output=True, text=True, timeout=PATIENCE_S
    )
    os.kill(int(done.stdout.split()[-1]), signal.SIGKILL)


@contextmanager
def small_disk(size_kb: int) -> Iterator[Optional[Path]]:
    """A file system of a few kilobytes; None where this machine does not let us mount one."""
    folder = Path(tempfile.mkdtemp(prefix="disk-"))
    words = ["mount", "-t", "tmpfs", "-o", f"size={size_kb}k", "tmpfs", str(folder)]
    is_mounted = subprocess.run(words, capture_output=True, timeout=PATIENCE_S).returncode == 0
    try:
        yield folder if is_mounted else None
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", str(folder)], capture_output=True, timeout=PATIENCE_S)
        folder.rmdir()


def fill_disks(rng: random.Random, trials: int, _kind: Optional[str] = None) -> Tally:
    """Folders that take nothing: a full file system, a file in a folder's place, folders of somebody else."""
    tally = Tally("full disk and bad folders")
    start = time.monotonic()
    with stage() as on, small_disk(rng.choice((16, 64))) as disk:
        occupied = on.folder / "a-file"
        occupied.write_text("not a folder")
        places = {
            "file in its place": occupied,
            "below a file": occupied / "x",
            "proc": Path("/proc/1/nowhere"),
        }
        if disk:
            places["full disk"] = disk
        else:
            tally.note("no file system can be mounted here: the full disk was not tried")
        done = 0
        while done < trials:
            name, where = rng.choice(sorted(places.items()))
            which = rng.choice((("TMPDIR",), ("XDG_STATE_HOME",), ("TMPDIR", "XDG_STATE_HOME")))
            client = on.client()
            scene = FaultScene(on, client)
            if disk and name == "full disk":
                _fill(disk)
            try:
                scene.client = on.client(**dict.fromkeys(which, str(where)))
            except RuntimeError as e:
                tally.note(f"{name} as {'+'.join(which)}: no start: {str(e)[:100]}")
                tally.tracebacks += "Traceback" in str(e)
            else:
                for operation in rng.sample(_OPERATIONS, 5):
                    done += 1
                    tally.trials += 1
                    scene.judge(tally, operation, f"{name} as {'+'.join(which)}", scene.run(operation))
                scene.client.end()
            done += 1
            client.end()
            scene.field.close()
        on.finish(tally)
    tally.seconds = time.monotonic() - start
    return tally


def _fill(disk: Path) -> None:
    try:
        with open(disk / "ballast", "wb", buffering=0) as f:
            while True:
                f.write(b"x" * 1024)
    except OSError:
        pass

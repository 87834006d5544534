"""The test's side of the fake Mac: create it, change its world, read its events."""

from __future__ import annotations

import copy
import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, Optional, Union

from . import windows
from .drawing import MENU_BAR, SHADOW, WALLPAPER, shape_colour, widget_colour, window_colour
from .picture_files import read_picture
from .settler import offer_settling
from .world import State, lines, now_ms, settle, update, write_state

HERE = Path(__file__).resolve().parent
PROGRAMS = ["osascript", "screencapture", "sips", "open", "xcode-select", "xcrun", "swiftc", "sw_vers", "ps"]
PROGRAMS += ["launchctl", "defaults"]
KINDS = ("screen_recording", "accessibility", "automation")
__all__ = ["MENU_BAR", "SHADOW", "WALLPAPER", "FakeMac", "default_desktop", "image_size", "labels", "pixel"]
__all__ += ["shape_colour", "widget_colour", "window_colour"]


def default_desktop() -> State:
    """Return a fresh copy of desktop.json, to change before making a FakeMac from it."""
    return json.loads((HERE / "desktop.json").read_text(encoding="utf-8"))


class FakeMac:
    """A simulated Mac in a folder: programs in bin_dir, the world in desktop.json."""

    def __init__(self, folder: Path, desktop: Optional[State] = None) -> None:
        self.folder = Path(folder)
        self.bin_dir = self.folder / "bin"
        self.home = self.folder / "home"
        for made in (self.bin_dir, self.home, self.folder / "tmp"):
            made.mkdir(parents=True, exist_ok=True)
        write_state(self.folder, copy.deepcopy(desktop) if desktop is not None else default_desktop())
        offer_settling(self.folder)
        for program in PROGRAMS:
            self._write_wrapper(program, self.bin_dir / program)

    def _write_wrapper(self, program: str, path: Path) -> None:
        folder = shlex.quote(str(self.folder.resolve()))
        if program == "osascript":
            node = shutil.which("node")
            if node is None:
                raise RuntimeError("the fake Mac needs node: its osascript runs JXA on it")
            line = f"FAKEMAC_PYTHON={shlex.quote(sys.executable)} FAKEMAC_FOLDER={folder}"
            command = [node, "--single-threaded-gc", str(HERE / "osascript.js")]
        else:
            line = f"FAKEMAC_HOST_PATH={shlex.quote(os.environ.get('PATH', ''))}"
            command = [sys.executable, "-I", "-S", str(HERE / "run.py"), str(self.folder.resolve()), program]
        # The caller's node and Python settings are not the fake's business.
        path.write_text(
            "#!/bin/sh\nunset NODE_OPTIONS NODE_EXTRA_CA_CERTS PYTHONPATH PYTHONHOME\n"
            f'{line} exec {shlex.join(command)} "$@"\n',
            encoding="utf-8",
        )
        path.chmod(0o755)

    def env(self) -> dict[str, str]:
        """Return the complete environment for the code under test."""
        return {
            "PEEKABOO_BIN_DIR": str(self.bin_dir),
            "PEEKABOO_DESKTOP": "macos",
            "HOME": str(self.home),
            "TMPDIR": str(self.folder / "tmp"),
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "en_US.UTF-8",
        }

    # --- the state and the events of the world ---

    def state(self) -> State:
        return settle(self.folder)

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the events, oldest first; only these kinds, if any are given."""
        return [event for event in self.state()["log"] if not kinds or event["kind"] in kinds]

    def calls(self, program: Optional[str] = None) -> list[dict[str, Any]]:
        """Return the started programs: {"program", "argv", "stdin" (sha256 or None), "pid", "t"}."""
        return [call for call in lines(self.folder / "calls.jsonl") if program in (None, call["program"])]

    def raw_events(self) -> list[dict[str, Any]]:
        """Return every posted event unchanged, including those without effect."""
        return lines(self.folder / "events.jsonl")

    def running(self) -> list[dict[str, Any]]:
        """Return the calls whose process still lives; after an operation there must be none."""
        return [call for call in self.calls() if is_alive(call["pid"], str(self.folder.resolve()))]

    def hanging(self) -> list[dict[str, Any]]:
        """Return the calls whose process waits to be killed, so that a test need not guess how long a
        start takes.
        """
        pids = {one["pid"] for one in lines(self.folder / "hanging.jsonl")}
        return [call for call in self.running() if call["pid"] in pids]

    def window(self, window_id: int) -> Optional[dict[str, Any]]:
        return windows.window_with_id(self.state(), window_id)

    def widget(self, window_id: int, name: str) -> dict[str, Any]:
        window = self.window(window_id)
        assert window is not None, f"there is no window {window_id}"
        return next(widget for widget in window["widgets"] if widget["name"] == name)

    def front_window(self) -> Optional[dict[str, Any]]:
        """Return the key window of the frontmost app."""
        return windows.key_window(self.state())

    # --- change the world ---

    def update(self, change: Callable[[State], Any]) -> State:
        return update(self.folder, change)

    def set(self, path: str, value: Any) -> None:
        """Set a value by its path: `set("switches.strict", False)`, `set("displays.1.active", False)`."""
        *parents, last = path.split(".")

        def change(state: State) -> None:
            place: Any = state
            for key in parents:
                place = place[int(key)] if isinstance(place, list) else place[key]
            place[int(last) if isinstance(place, list) else last] = value

        self.update(change)

    def switch(self, **values: Any) -> None:
        """Set switches: `switch(strict=False, activation="declined")`. Unknown names fail."""

        def change(state: State) -> None:
            for name, value in values.items():
                assert name in state["switches"], f"there is no switch {name}"
                state["switches"][name] = value

        self.update(change)

    def keynote(self, installed: Sequence[str] = ("com.apple.Keynote",), **values: Any) -> None:
        """Choose the installed Keynotes and their behaviour: restores_a_deck, auto_quits, ready_after_ms,
        export_takes_s, damages_slide (its number), exports_below, moves_shapes_by (points), has_layouts.
        """
        places = {"com.apple.Keynote": "Keynote Creator Studio", "com.apple.iWork.Keynote": "Keynote"}
        base = {"pid": None, "name": "Keynote", "policy": 0, "hidden": False}

        def change(state: State) -> None:
            state["apps"] = [app for app in state["apps"] if app["name"] != "Keynote"] + [
                {**base, "bundle_id": bundle, "path": f"/Applications/{places[bundle]}.app"}
                for bundle in installed
            ]
            for name, value in values.items():
                assert name in state["keynote"], f"there is no such mood of Keynote: {name}"
                state["keynote"][name] = value

        self.update(change)

    def _permit(self, kind: str, answer: str, target: Optional[str]) -> None:
        assert kind in KINDS, f"no such permission: {kind}"

        def change(state: State) -> None:
            if kind != "automation":
                state["permissions"][kind] = answer
            else:
                state["permissions"]["automation"][target] = answer

        self.update(change)

    def grant(self, kind: str, target: Optional[str] = None) -> None:
        """Grant a permission. target: the bundle id of the app to be automated."""
        self._permit(kind, "granted", target)

    def deny(self, kind: str, target: Optional[str] = None) -> None:
        self._permit(kind, "denied", target)

    def ask(self, kind: str, target: Optional[str] = None) -> None:
        """Leave the prompt unanswered: a program that needs the permission hangs until killed (facts
        6.3.5).
        """
        self._permit(kind, "not_asked", target)

    def lock_screen(self) -> None:
        self.set("session.locked", True)

    def no_gui_session(self) -> None:
        """Behave like an ssh or launchd session."""
        self.set("session.gui", False)

    def era(self, name: str) -> None:
        """Choose how a capture is denied: "wallpaper" (exit 0, macOS <= 15) or "error" (exit 1, macOS 26)."""
        version = {"wallpaper": ("15.4.1", "24E263"), "error": ("26.2", "25C56")}[name]
        self.update(lambda state: state["system"].update(era=name, version=version[0], build=version[1]))

    def tools(self, name: str) -> None:
        """Choose the developer tools: "good", "none" (a shim that opens a dialog), "broken" (wrong SDK),
        "slow", or "killed" (their programs are killed at the start).
        """
        assert name in ("good", "none", "broken", "slow", "killed")
        self.set("developer_tools", name)

    def hang(self, program: str, when: Sequence[str] = (), times: Optional[int] = None) -> None:
        self._fault(program, when, times, hang=True)

    def fail(
        self,
        program: str,
        stderr: str = "",
        exit: int = 1,
        stdout: str = "",
        when: Sequence[str] = (),
        times: Optional[int] = None,
        file: Optional[bytes] = None,
    ) -> None:
        """Let the program fail `times` times (None: always) if all of `when` is in its argv or script.

        A negative exit is a death by that signal. file: bytes that it leaves in its last argument.
        """
        data = None if file is None else file.hex()
        self._fault(program, when, times, exit=exit, stderr=stderr, stdout=stdout, file=data)

    def _fault(self, program: str, when: Sequence[str], times: Optional[int], **what: Any) -> None:
        fault = {"key": now_ms(), "program": program, "when": list(when), "times": times, **what}
        self.update(lambda state: state["faults"].append(fault))

    def heal(self) -> None:
        """Remove all scripted faults."""
        self.set("faults", [])

    def when(self, on: dict[str, Any], *acts: dict[str, Any], skip: int = 0) -> None:
        """Run acts of acts.py after an event: `mac.when({"type": 5}, {"do": "close_window", ...})`.

        on: the values that the event has; {"do": "started", "program": "osascript"} is the start of a
        program, "swift-helper" that of the compiled one, "screencapture" the moment before it captures.
        skip: how many such events come before.
        """
        trigger = {"on": on, "skip": skip, "acts": list(acts)}
        self.update(lambda state: state["triggers"].append(trigger))

    def close_window(self, window_id: int, lingers_ms: float = 0) -> None:
        """Close a window. lingers_ms: it stays listed that long, but cannot be captured."""
        self.update(
            lambda state: windows.close_window(state, windows.window_with_id(state, window_id), lingers_ms)
        )

    def move_window(self, window_id: int, x: float, y: float) -> None:
        self.change_window(window_id, lambda window: window["bounds"].__setitem__(slice(0, 2), [x, y]))

    def change_window(
        self, window_id: int, change: Union[Callable[[dict[str, Any]], Any], dict[str, Any]]
    ) -> None:
        """Change a window by a function or by new values: `change_window(1050, {"minimised": True})`."""

        def on_state(state: State) -> None:
            window = windows.window_with_id(state, window_id)
            assert window is not None, f"there is no window {window_id}"
            window.update(change) if isinstance(change, dict) else change(window)

        self.update(on_state)

    def open_window(self, app: Union[str, int], **window: Any) -> int:
        """Open a new front window of a running app (name or pid): title, bounds, widgets, layer, alpha...

        Returns its id.
        """
        made: list[int] = []

        def change(state: State) -> None:
            pid = next(item["pid"] for item in state["apps"] if app in (item["name"], item["pid"]))
            made.append(windows.open_window(state, window, pid)["id"])

        self.update(change)
        return made[0]

    def activate(self, app: str) -> None:
        """Activate an app as a click in the Dock does."""

        def change(state: State) -> None:
            pid = next(item["pid"] for item in state["apps"] if item["name"] == app)
            windows.activate_now(state, {"pid": pid, "by": "person"})

        self.update(change)


def is_alive(pid: int, folder: str) -> bool:
    """Return True if the process lives and is ours (another process may have got its pid)."""
    proc = Path(f"/proc/{pid}")
    try:
        state = (proc / "stat").read_text().rsplit(")", 1)[1].split()[0]
        mine = folder.encode() in (proc / "cmdline").read_bytes() + (proc / "environ").read_bytes()
    except OSError:
        return False
    return mine and state != "Z"


def pixel(path: Path, x: int, y: int) -> tuple[int, int, int]:
    """Return the colour of one pixel of a picture that a fake program wrote."""
    row = read_picture(Path(path)).row(y)
    return (row[3 * x], row[3 * x + 1], row[3 * x + 2])


def image_size(path: Path) -> tuple[int, int]:
    picture = read_picture(Path(path))
    return (picture.width, picture.height)


def labels(path: Path) -> list[dict[str, Any]]:
    """Return the readable text of a picture: [{"text", "rect": [x, y, width, height] in pixels}]."""
    return read_picture(Path(path)).labels

"""Programs with windows that report the input they receive."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable

from worlds import PATIENCE_S, comes_true, need, wait_for

Event = dict[str, Any]


class Witness:
    """A process with windows; `events` has the JSON lines that it printed."""

    def __init__(self, argv: Sequence[str], environment: dict[str, str]) -> None:
        pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
        self.process = subprocess.Popen(
            argv, env=environment, stdin=pipe, stdout=pipe, stderr=quiet, encoding="utf-8"
        )
        self.events: list[Event] = []
        self._number = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:  # type: ignore[union-attr]
            self.events.append(json.loads(line))

    def write(self, line: str) -> None:
        print(line, file=self.process.stdin, flush=True)

    def wait(self, is_it: Callable[[Event], bool], since: int = 0) -> Event:
        """Wait for an event, from index `since` on; return it."""
        return wait_for(lambda: next(filter(is_it, self.events[since:]), None), "the window reports it")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE_S)
        for stream in (self.process.stdin, self.process.stdout):
            stream.close()  # type: ignore[union-attr]


class XWitness(Witness):
    """A process of x_client.py."""

    def __init__(self, environment: dict[str, str]) -> None:
        super().__init__([sys.executable, str(Path(__file__).with_name("x_client.py"))], environment)

    def do(self, what: str, name: str = "", **more: Any) -> None:
        """Send an order. name: the window's, as given to `open`."""
        self._number += 1
        self.write(json.dumps({"do": what, "name": name, "number": self._number, **more}))

    def open(self, name: str, **more: Any) -> int:
        """Open a window and return its id."""
        since = len(self.events)
        self.do("open", name, **more)
        return int(self.wait(lambda one: one["event"] == "opened" and one["name"] == name, since)["id"])

    def set(self, name: str, **properties: Any) -> None:
        """Set properties of a window, or of `root`, to lists of numbers and names of atoms."""
        for key, values in properties.items():
            self.do("property", name, property=key, values=values)
        self.sync()

    def sync(self) -> int:
        """Wait until `events` has everything the X server sent; return the number of keys held down."""
        self.do("sync")
        number = self._number
        return int(self.wait(lambda one: one["event"] == "done" and one["number"] == number)["held"])

    def take(self, kind: str) -> list[Event]:
        """Sync, then return the events of this kind since the last call; drop all others."""
        self.sync()
        found = [one for one in self.events if one["event"] == kind]
        self.events.clear()
        return found

    def take_characters(self) -> list[Event]:
        return [key for key in self.take("key") if key["text"]]


class SlowField(Witness):
    """A process of slow_gtk.py; `events` has each text that its field held."""

    def __init__(self, environment: dict[str, str]) -> None:
        need(f"/usr/lib/{os.uname().machine}-linux-gnu/girepository-1.0/Gtk-3.0.typelib")
        argv = ["/usr/bin/python3", "-I", str(Path(__file__).with_name("slow_gtk.py"))]
        super().__init__(argv, {**environment, "NO_AT_BRIDGE": "1", "GSETTINGS_BACKEND": "memory"})

    def reset(self, how: str, pause_s: float) -> None:
        """Empty the field, and set how it pastes: see slow_gtk.py."""
        since = len(self.events)
        self.write(json.dumps({"how": how, "pause_s": pause_s}))
        self.wait(lambda event: event["event"] == "ready", since)

    def text(self, expected: str, seconds: float = PATIENCE_S) -> str:
        """Wait until the field holds the expected text; return what it holds then."""
        comes_true(lambda: self.events[-1].get("text") == expected, seconds)
        return str(self.events[-1].get("text", ""))

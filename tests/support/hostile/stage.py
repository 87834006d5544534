"""A private display, windows that report their input, and servers that act on them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional, TypeVar

from worlds import (
    PATIENCE_S,
    bare_x_server,
    clean_environment,
    comes_true,
    processes_of,
    wait_for,
    x_server,
)

from .rpc import Client, server_words
from .tally import Tally

HERE = Path(__file__).resolve().parent
GRACE_S = PATIENCE_S  # time for a process to end
Event = dict[str, Any]


class Witness:
    """A process with windows; `events` has the input that they received."""

    def __init__(self, words: Sequence[str], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.events: list[Event] = []
        self._number = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:  # type: ignore[union-attr]
            self.events.append(json.loads(line))

    def write(self, line: str) -> None:
        with suppress(BrokenPipeError):
            self.process.stdin.write(line.encode() + b"\n")  # type: ignore[union-attr]
            self.process.stdin.flush()  # type: ignore[union-attr]

    def wait(self, is_it: Callable[[Event], bool], since: int = 0) -> Event:
        """Return the first matching event from index `since` on. Raises RuntimeError on a timeout."""

        def look() -> Any:
            has_ended = self.process.poll() is not None
            return next(filter(is_it, self.events[since:]), "ended" if has_ended else None)

        event = comes_true(look)
        if not isinstance(event, dict):
            raise RuntimeError(f"the window process did not answer; its last events: {self.events[-5:]}")
        return event

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE_S)
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]


class XWitness(Witness):
    """A process of xclient.py."""

    def __init__(self, environment: dict[str, str]) -> None:
        super().__init__([sys.executable, str(HERE / "xclient.py")], environment)

    def do(self, what: str, name: str = "", after: float = 0.0, **more: Any) -> None:
        """Send an order, for now or for `after` seconds from now."""
        self._number += 1
        self.write(json.dumps({"do": what, "name": name, "after": after, "number": self._number, **more}))

    def open(self, name: str, **more: Any) -> int:
        """Open a window and return its id."""
        since = len(self.events)
        self.do("open", name, **more)
        return int(self.wait(lambda one: one["event"] == "opened" and one["name"] == name, since)["id"])

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


class TkWitness(Witness):
    """A process of hostile.tcl, which runs Tcl from its stdin."""

    def __init__(self, environment: dict[str, str]) -> None:
        super().__init__(["wish", str(HERE / "hostile.tcl"), "-name", "Text"], environment)
        self.wait(lambda one: one["event"] == "ready")

    def ask(self, script: str) -> str:
        """Return the result of a line of Tcl after Tk has handled all pending events."""
        self._number += 1
        number, since = self._number, len(self.events)
        self.write(f"answer {number} {{{script}}}")
        return str(self.wait(lambda one: one["event"] == "answer" and one["number"] == number, since)["text"])


class Field(NamedTuple):
    """A server and a window that it acts on."""

    client: Client
    witness: XWitness
    window_id: int

    def type(self, text: str) -> int:
        return self.client.start_call("type_text", window_id=self.window_id, text=text)


W = TypeVar("W", bound=Witness)


class Stage:
    """A display, a folder, an environment, their processes, and the tally of a trial class."""

    def __init__(self, tally: Tally, folder: Path, display: str) -> None:
        self.tally, self.folder = tally, folder
        self.environment = clean_environment(folder, DISPLAY=display, PEEKABOO_LOG_FILE=str(folder / "log"))
        self.x = {**os.environ, "DISPLAY": display}  # for other programs than the product
        self.clients: list[Client] = []
        self.replies = ""  # stdout of ended servers
        self._witnesses: list[Witness] = []

    def witness(self, kind: Callable[[dict[str, str]], W]) -> W:
        witness = kind(self.x)
        self._witnesses.append(witness)
        return witness

    def client(self, **variables: str) -> Client:
        client = Client(server_words(), {**self.environment, **variables}, self.folder)
        self.clients.append(client)
        client.shake_hands()
        return client

    def listed(self, client: Client, key: str, value: Any) -> int:
        """Wait until the server lists a window with this value; return its id."""

        def look() -> Optional[int]:
            windows = client.call("list_windows").data.get("windows", [])
            return next((one["window_id"] for one in windows if one[key] == value), None)

        return int(wait_for(look, f"a window with {key} {value!r} is listed"))

    def field(self, number: int = 0, **variables: str) -> Field:
        """Start a server and open a window that takes keys, at a position that depends on the number."""
        client, witness = self.client(**variables), self.witness(XWitness)
        place = {"x": 20 + 40 * number, "y": 20 + 30 * number, "w": 300 + 10 * number, "h": 200}
        window_id = witness.open("field", app=f"Field{number}", title=f"The field {number}", **place)
        self.listed(client, "window_id", window_id)
        return Field(client, witness, window_id)

    def survivors(self) -> dict[int, str]:
        """Return the processes left by our servers and commands, except the clipboard's daemons."""
        found = processes_of(self.folder).items()
        return {pid: words for pid, words in found if not words.partition(" ")[0].endswith("xclip")}

    def end(self, client: Client) -> None:
        """End a server and count its errors."""
        try:
            if client.process.poll() is None:
                client.end(GRACE_S)
        except subprocess.TimeoutExpired:
            self.tally.count("hung", "the server did not end when its stdin was closed")
        client.close()
        self.clients.remove(client)
        self.replies += b"".join(client.lines).decode("utf-8", "replace")
        for line in client.bad_lines:
            self.tally.count("tracebacks", f"not a message on stdout: {line[:80]!r}")
        for _ in range(client.errors.count("Traceback (most recent")):
            last_line = client.errors.strip().splitlines()[-1]
            self.tally.count("tracebacks", f"traceback on stderr: {last_line[:120]}")

    def finish(self) -> None:
        """End the servers and count leftovers."""
        count = self.tally.count
        for client in [*self.clients]:
            self.end(client)
        log = self.folder / "log"
        for line in log.read_text("utf-8", "replace").splitlines() if log.is_file() else []:
            if '"error"' in line and "unexpected " in line:
                count("tracebacks", f"log: {line.partition('msg')[2][:150]}")
        comes_true(lambda: not self.survivors(), GRACE_S)
        for words in self.survivors().values():
            count("leaked", f"still running: {words}")
        for path in (self.folder / "tmp").rglob("*"):
            if path.is_file() and not path.name.startswith("record_") and path.name not in self.replies:
                count("leaked", f"left over: {path.name.rsplit('_', 1)[0]}*{path.suffix}")

    def close(self) -> None:
        for client in self.clients:
            client.close()
        for witness in self._witnesses:
            witness.close()
        for pid in self.survivors():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def stage(tally: Tally, desktop: str = "managed") -> Iterator[Stage]:
    """Start a stage on its own X server. desktop: managed, bare (no window manager) or none."""
    folder = tempfile.TemporaryDirectory(prefix="trial-", ignore_cleanup_errors=True)
    server = x_server() if desktop == "managed" else bare_x_server(compositor=True)
    with folder as path, nullcontext(":none") if desktop == "none" else server as display:
        on = Stage(tally, Path(path), display)
        try:
            yield on
            on.finish()
        finally:
            on.close()

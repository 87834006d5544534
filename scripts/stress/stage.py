"""A private display, windows that report their input, and servers that act on them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Callable, NamedTuple, TypeVar

import pytest
from leftovers import Leftovers
from mcp_server import Client, Reply
from tally import NO_ANSWER, Tally
from witness import Witness, XWitness
from worlds import PATIENCE_S, bare_x_server, clean_environment, comes_true, processes_of, wait_for, x_server

W = TypeVar("W", bound=Witness)


class PatientClient(Client):
    """A client that does not fail if the server hangs or has died."""

    def reply(self, number: int, seconds: float = 2 * PATIENCE_S) -> Reply:
        try:
            return super().reply(number, seconds)
        except pytest.fail.Exception as e:
            return Reply(NO_ANSWER, str(e))


class TkForm(Witness):
    """A process of form.tcl, which runs Tcl from its stdin."""

    def __init__(self, environment: dict[str, str]) -> None:
        super().__init__(["wish", str(Path(__file__).with_name("form.tcl")), "-name", "Text"], environment)
        self.wait(lambda one: one["event"] == "ready")

    def ask(self, script: str) -> str:
        """Return the result of a line of Tcl after Tk has handled all pending events."""
        since = len(self.events)
        self.write(script)
        return str(self.wait(lambda one: one["event"] == "answer", since)["text"])


class Field(NamedTuple):
    """A server and a window that it types into."""

    client: Client
    witness: XWitness
    window_id: int

    def type(self, text: str) -> int:
        """Start to type; return the request's number."""
        return self.client.start_call("type_text", window_id=self.window_id, text=text)

    def clear(self) -> None:
        """Focus the window and forget the input that it received."""
        self.witness.do("raise", "field")
        self.witness.do("focus", "field")
        self.witness.take("key")


class Stage:
    """A display, a folder, an environment, and the processes of a trial class. kind: see `trials`."""

    def __init__(
        self, tally: Tally, folder: Path, display: str, rng: random.Random, count: int, kind: str
    ) -> None:
        self.tally, self.folder, self.rng = tally, folder, rng
        self._count, self._kind = count, kind
        self.environment = clean_environment(folder, DISPLAY=display)
        self.x = {**os.environ, "DISPLAY": display}  # for other programs than the product
        self._clients: list[Client] = []
        self._witnesses: list[Witness] = []
        self._leftovers = Leftovers(folder)

    def trials(self, kinds: Sequence[str]) -> Iterator[str]:
        """Yield a random kind of trial, or for each trial the kind that the user chose."""
        for _ in range(self._count):
            self.tally.count("trials")
            yield self._kind or self.rng.choice(kinds)

    def witness(self, kind: Callable[[dict[str, str]], W]) -> W:
        witness = kind(self.x)
        self._witnesses.append(witness)
        return witness

    def client(self, **variables: str) -> Client:
        client = PatientClient("package", {**self.environment, **variables})
        self._clients.append(client)
        client.shake_hands()
        return client

    def listed(self, client: Client, key: str, value: Any) -> int:
        """Wait until the server lists a window with this value; return its id."""

        def find() -> Any:
            windows = client.call("list_windows").data.get("windows", [])
            return next((one["window_id"] for one in windows if one[key] == value), None)

        return int(wait_for(find, f"a window with {key} {value!r} is listed"))

    def field(self, number: int = 0, **variables: str) -> Field:
        """Start a server and open a window that takes keys, at a position that depends on the number."""
        client, witness = self.client(**variables), self.witness(XWitness)
        place = {"x": 20 + 40 * number, "y": 20 + 30 * number, "w": 300 + 10 * number, "h": 200}
        window_id = witness.open("field", app=f"Field{number}", title=f"The field {number}", **place)
        self.listed(client, "window_id", window_id)
        return Field(client, witness, window_id)

    def run(self, *argv: str) -> None:
        """Run another program on the display."""
        subprocess.run(argv, env=self.x, stdout=subprocess.DEVNULL, timeout=PATIENCE_S, check=False)

    def count_held(self, what: str, witness: XWitness, reply: Reply) -> None:
        """Count keys and buttons that stay pressed, and release them."""
        if not comes_true(lambda: not witness.sync(), 2):
            self.tally.count("leaked", f"{what}: something stays pressed, after {reply.code or 'delivered'}")
            self.run("xdotool", "mouseup", "1", "keyup", *"abcdefghijklmnopqrstuvwxyz0123456789")

    def finish(self) -> None:
        """End the servers; count their errors, files and processes that remain."""
        for client in self._clients:
            if client.process.poll() is None:
                try:
                    client.end()
                except subprocess.TimeoutExpired:
                    self.tally.count("hung", "the server did not end when its stdin was closed")
            if "Traceback" in client.errors:
                self.tally.count("tracebacks", f"stderr: {client.errors.strip().splitlines()[-1]}")
        for what in self._leftovers.found():
            self.tally.count("leaked", what)

    def close(self) -> None:
        for client in self._clients:
            client.close()
        for witness in self._witnesses:
            witness.close()
        for pid in processes_of(self.folder):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def stage(tally: Tally, is_bare: bool, rng: random.Random, count: int, kind: str) -> Iterator[Stage]:
    """Start a stage on its own display. is_bare: without a window manager."""
    folder = tempfile.TemporaryDirectory(prefix="stress-", ignore_cleanup_errors=True)
    with folder as path, bare_x_server(compositor=True) if is_bare else x_server() as display:
        on = Stage(tally, Path(path), display, rng, count, kind)
        try:
            yield on
            on.finish()
        finally:
            on.close()


@contextmanager
def meanwhile(
    after_s: float, act: Callable[..., object], *arguments: Any, **named: Any
) -> Iterator[threading.Event]:
    """Call a function in another thread after some seconds, unless the block ends before.

    Yields an event that is set once the function has returned.
    """
    has_acted = threading.Event()

    def act_and_tell() -> None:
        act(*arguments, **named)
        has_acted.set()

    timer = threading.Timer(after_s, act_and_tell)
    timer.start()
    try:
        yield has_acted
    finally:
        timer.cancel()
        timer.join()

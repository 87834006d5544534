"""A display of our own with witnesses on it and a server before it; all of it ends with the `with` block."""

from __future__ import annotations

import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Callable, Optional

import headless
from worlds import PATIENCE_S, ROOT, clean_environment, comes_true, wait_for

from .rpc import Client, Reply, server_words
from .tally import Tally

HERE = Path(__file__).resolve().parent
_MARK = "PEEKABOO_TRIAL"


class Witness:
    """A process with windows of its own; `events` is what reached them."""

    def __init__(self, words: Sequence[str], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.events: list[dict[str, Any]] = []
        self._news: queue.Queue[None] = queue.Queue()
        self._number = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:  # type: ignore[union-attr]
            self.events.append(json.loads(line))
            self._news.put(None)
        self._news.put(None)

    def write(self, line: str) -> None:
        try:
            self.process.stdin.write(line.encode() + b"\n")  # type: ignore[union-attr]
            self.process.stdin.flush()  # type: ignore[union-attr]
        except BrokenPipeError:
            pass

    def wait(
        self, is_it: Callable[[dict[str, Any]], bool], seconds: float = PATIENCE_S, since: int = 0
    ) -> dict[str, Any]:
        """The first event from number `since` on that is it. Raises RuntimeError when none comes."""
        deadline = time.monotonic() + seconds
        while True:
            found = next((one for one in self.events[since:] if is_it(one)), None)
            if found:
                return found
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError(f"a witness did not answer; its last events: {self.events[-5:]}")
            try:
                self._news.get(timeout=0.2)
            except queue.Empty:
                continue

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE_S)
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]


class XWitness(Witness):
    """xclient.py in a process of its own."""

    def __init__(self, environment: dict[str, str]) -> None:
        super().__init__([sys.executable, str(HERE / "xclient.py")], environment)

    def do(self, what: str, name: str = "", after: float = 0.0, **more: Any) -> None:
        """Order something, now or `after` seconds from now."""
        self._number += 1
        order = {"do": what, "name": name, "after": after, "number": self._number, **more}
        if what in ("sync", "forget"):
            del order["name"]
        self.write(json.dumps(order))

    def open(self, name: str, **more: Any) -> int:
        """Open a window, and return its id once it is there."""
        since = len(self.events)
        self.do("open", name, **more)
        return self.wait(lambda e: e["event"] == "opened" and e["name"] == name, since=since)["id"]

    def sync(self) -> int:
        """Wait until all that the X server sent is in `events`; return how many keys are down."""
        self.do("sync")
        number = self._number
        return self.wait(lambda e: e["event"] == "done" and e["number"] == number)["held"]

    def forget(self) -> None:
        """Take back what was ordered for later."""
        self.do("forget")

    def take(self, kind: str) -> list[dict[str, Any]]:
        """The events of that kind since the last time, after a sync; all others are dropped."""
        self.sync()
        found = [one for one in self.events if one["event"] == kind]
        self.events.clear()
        return found


class TkWitness(Witness):
    """hostile.tcl in a wish of its own: what it gets on stdin is Tcl."""

    def __init__(self, environment: dict[str, str]) -> None:
        super().__init__(["wish", str(HERE / "hostile.tcl"), "-name", "Calm"], environment)
        self.wait(lambda e: e["event"] == "ready")

    def ask(self, script: str, seconds: float = PATIENCE_S) -> str:
        """The result of a line of Tcl, once Tk has handled everything that waits."""
        self._number += 1
        number = self._number
        since = len(self.events)
        self.write(f"answer {number} {{{script}}}")
        return self.wait(lambda e: e["event"] == "answer" and e["number"] == number, seconds, since)["text"]


class Stage:
    """A display, a folder, an environment and the processes on them."""

    def __init__(self, folder: Path, display: str, variables: dict[str, str]) -> None:
        self.folder, self.display = folder, display
        self.mark = f"{os.getpid()}-{random.SystemRandom().getrandbits(48):x}"
        self.environment = {
            **clean_environment(folder),
            "DISPLAY": display,
            _MARK: self.mark,
            "PEEKABOO_LOG_FILE": str(folder / "log"),
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "",
            **variables,
        }
        self.clients: list[Client] = []
        self.witnesses: list[Witness] = []

    def x_witness(self) -> XWitness:
        one = XWitness({**os.environ, "DISPLAY": self.display})
        self.witnesses.append(one)
        return one

    def tk_witness(self) -> TkWitness:
        one = TkWitness({**os.environ, "DISPLAY": self.display})
        self.witnesses.append(one)
        return one

    def client(self, **variables: str) -> Client:
        one = Client(server_words(), {**self.environment, **variables}, self.folder)
        self.clients.append(one)
        one.shake_hands()
        return one

    def shell_words(self, *arguments: Any) -> list[str]:
        return [sys.executable, "-m", "peekaboo_min", *map(str, arguments)]

    def wait_for_window(self, client: Client, window_id: int) -> None:
        """Until the server lists it: a window manager takes its time."""

        def is_listed() -> bool:
            listed = client.call("list_windows").data.get("windows", [])
            return any(one["window_id"] == window_id for one in listed)

        wait_for(is_listed, f"window {window_id} is listed")

    def survivors(self) -> list[tuple[int, str]]:
        """Processes that a server or a command of ours started and left, but not the clipboard's daemons."""
        found = []
        own = {one.process.pid for one in self.clients}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) in own:
                continue
            try:
                if f"{_MARK}={self.mark}".encode() not in (entry / "environ").read_bytes().split(b"\0"):
                    continue
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0] and not words[0].endswith(b"xclip"):
                found.append((int(entry.name), b" ".join(words).decode("utf-8", "replace")[:80]))
        return found

    def finish(self, tally: Tally) -> None:
        """End the servers and count what they left."""
        for one in self.clients:
            if one.process.poll() is None and not one.end():
                tally.hung += 1
                tally.note("the server did not end when its stdin was closed")
            tally.tracebacks += len(one.bad_lines)
            for line in one.bad_lines[:3]:
                tally.note(f"not a message on stdout: {line[:80]!r}")
            count = one.error_text.count("Traceback (most recent")
            tally.tracebacks += count
            if count:
                tally.note(f"traceback on stderr: {one.error_text.strip().splitlines()[-1][:120]}")
        log = self.folder / "log"
        if log.is_file():
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            for line in lines:
                if '"error"' in line and "unexpected " in line:
                    tally.tracebacks += 1
                    tally.note(f"log: {line[:150]}")
        comes_true(lambda: not self.survivors())
        for _, words in self.survivors():
            tally.leaked += 1
            tally.note(f"still running: {words}")
        said = "\n".join(text for one in self.clients for text in one.texts)
        for path in (self.folder / "tmp").rglob("*"):
            if path.is_file() and not path.name.startswith("record_") and path.name not in said:
                tally.leaked += 1
                tally.note(f"left over: {path.name.rsplit('_', 1)[0]}*{path.suffix}")

    def close(self) -> None:
        for one in self.clients:
            one.close()
        for witness in self.witnesses:
            witness.close()
        for pid, _ in self.survivors():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def stage(with_window_manager: bool = True, **variables: str) -> Iterator[Stage]:
    """A stage on an X server of its own."""
    folder = Path(tempfile.mkdtemp(prefix="trial-"))
    try:
        with headless.x_server(with_window_manager, start_s=PATIENCE_S) as display:
            one = Stage(folder, display, variables)
            try:
                yield one
            finally:
                one.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def second_stage(display: str, **variables: str) -> Iterator[Stage]:
    """Another stage on a display that is there."""
    folder = Path(tempfile.mkdtemp(prefix="trial-"))
    one = Stage(folder, display, variables)
    try:
        yield one
    finally:
        one.close()
        shutil.rmtree(folder, ignore_errors=True)


def count_failure(tally: Tally, reply: Reply, what: str) -> bool:
    """Count a reply that is no proper answer; True when it was one of those."""
    if reply.code == "HUNG":
        tally.hung += 1
        tally.note(f"no answer: {what}")
    elif reply.code in ("SERVER_GONE", "INTERNAL_ERROR"):
        tally.tracebacks += (
            reply.code == "SERVER_GONE"
        )  # the log has the other one's, and Stage.finish counts it
        tally.note(f"{reply.code}: {what}: {reply.text[:80]}")
    else:
        return False
    return True


Driver = Callable[[random.Random, int, Optional[str]], Tally]

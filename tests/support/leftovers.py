"""What a test leaves behind: files where our programs write, processes, threads, changes of this process.

Files are those below the folders that `watch` was given. Allowed are what commands keep on purpose (KEPT),
images and folders that a reply named, and files and commands of processes that match a pattern of the test's
marker, `leaves("tmp/.*[.]part")`.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from pathlib import Path

GRACE_S = 10.0  # what a killed server started ends by itself
FOLDERS = ("home/Library", "home/.local/state", "state", "tmp")  # where our programs write
KEPT = re.compile(
    r"""tmp/peekaboo-mcp\.log
    |tmp/peekaboo_min-\d+/record_[\w.-]+_\d+_[0-9a-f]{16}\.json
    |(state|home/Library/Caches|home/\.local/state)/peekaboo_min/(STOP|audit\.jsonl|keynote\.json|gmail/token\.json
        |(helper|keynote|input-[\w.-]+)\.lock|bytecode/[\w.-]+|helper/[0-9a-f]{16}/(peekaboo-input|input\.swift|failure\.txt))
    |tmp/(fakemac-settler-\w+/fifo|org\.chromium\.Chromium\..*)""",
    re.VERBOSE,
)
# what an image or a folder of ours has in its name
_RANDOM = re.compile(r"tmp/peekaboo_min-\d+/[^/]*?([0-9a-f]{12}|(?<=-)[0-9a-f]{6})[_.].*", re.DOTALL)
# the user's clipboard needs somebody who holds it; the others end with the session bus that starts them late
_KEPT_PROGRAMS = ("xclip", "at-spi-bus-launcher", "at-spi2-registryd", "dbus-daemon", "xfconfd")

_watched: list[Path] = []
_replies: list[str] = []
_known_processes: dict[str, bool] = {}


def watch(folder: Path) -> None:
    """Compare home, state and tmp in this folder after each test."""
    if folder not in _watched:
        _watched.append(folder)


def forget_watched() -> None:
    _watched.clear()


def replied(text: str) -> None:
    """What a program answered: images that it names are wanted."""
    _replies.append(text)


def process_state() -> dict[str, object]:
    """What is one for a whole process, and a command must not change."""
    state: dict[str, object] = {f"thread {one.name}": one for one in threading.enumerate() if not one.daemon}
    state |= {f"handler of signal {number}": signal.getsignal(number) for number in signal.valid_signals()}
    state |= {f"variable {name}": value for name, value in os.environ.items()}
    state.pop("variable PYTEST_CURRENT_TEST", None)
    return {**state, f"working folder {os.getcwd()}": True}


def changes(before: dict[str, object]) -> list[str]:
    """What is different now; a thread may have ended."""
    now = process_state()
    gone = [name for name in before if name not in now and name.startswith("variable")]
    return [name for name, value in now.items() if before.get(name) != value] + gone


class Leftovers:
    """What is there before a test, and, after it, what is new."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._files = {folder: _files_of(folder) for folder in _watched}
        self.accept_processes()
        _replies.clear()

    def accept_processes(self) -> None:
        """What runs now may run on: a fixture of the whole session was set up late."""
        self._before = process_state()
        self._processes = _processes_below(self._base)

    def found(self, *allowed: str) -> list[str]:
        """What the test left, once what is about to end has had its time."""
        deadline = time.monotonic() + GRACE_S
        while True:
            processes = [*(_processes_below(self._base) - self._processes)]
            found = changes(self._before) + [
                f"process {pid}: {words}"
                for pid, words in map(_words_of, processes)
                if words and not any(re.fullmatch(pattern, words) for pattern in allowed)
            ]
            if not found or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        for folder in _watched:
            new = _files_of(folder) - self._files.get(folder, set())
            found += [f"file {folder}/{name}" for name in sorted(new) if not _is_allowed(name, allowed)]
        for folder in {*_watched} - {*self._files}:
            _watched.remove(folder)  # the test's own
        return found


def _is_allowed(name: str, allowed: tuple[str, ...]) -> bool:
    random = _RANDOM.fullmatch(name)
    return (
        bool(KEPT.fullmatch(name))
        or any(re.fullmatch(pattern, name) for pattern in allowed)
        or bool(random and any(random[1] in reply for reply in _replies))
    )


def _files_of(folder: Path) -> set[str]:
    return {
        os.path.relpath(os.path.join(path, name), folder)
        for top in FOLDERS
        for path, _, names in os.walk(folder / top)
        for name in names
    }


def _processes_below(base: Path) -> set[str]:
    """Pids of what has a variable that names this folder. Where there is no /proc, none."""
    pids = [name for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc") else []
    for pid in {*_known_processes} - {*pids}:
        del _known_processes[pid]
    for pid in pids:
        if pid not in _known_processes:
            try:
                _known_processes[pid] = bytes(base) + b"/" in Path("/proc", pid, "environ").read_bytes()
            except OSError:  # it has ended, or is not ours
                continue
    return {pid for pid, is_ours in _known_processes.items() if is_ours} - {str(os.getpid())}


def _words_of(pid: str) -> tuple[str, str]:
    """Its command; empty for what has ended or is kept."""
    try:
        words = Path("/proc", pid, "cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return pid, ""
    return pid, "" if os.path.basename(words[0]) in _KEPT_PROGRAMS else " ".join(words).strip()

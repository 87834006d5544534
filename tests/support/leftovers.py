"""Find what a test leaves behind: files, processes, threads, changes of this process.

Checks the files below the folders given to `watch`. Allowed are files that commands keep on purpose (KEPT),
images and folders that a reply named, and files and process argvs that match a pattern of the test's marker,
`leaves("tmp/.*[.]part")`.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

GRACE_S = 10.0  # programs of a killed server end by themselves
FOLDERS = ("home/Library", "home/.local/state", "state", "tmp")  # where our programs write
KEPT = re.compile(
    r"""tmp/peekaboo-mcp\.log
    |tmp/peekaboo_min-\d+/record_[\w.-]+_\d+_[0-9a-f]{16}\.json
    |(state|home/Library/Caches|home/\.local/state)/peekaboo_min/(STOP|audit\.jsonl|keynote\.json|gmail/token\.json
    |bytecode/[\w.-]+|helper/[0-9a-f]{16}/(peekaboo-input|input\.swift|failure\.txt))
    |tmp/(fakemac-settler-\w+/fifo|org\.chromium\.Chromium\..*)""",
    re.VERBOSE,
)
# the random part in the name of an image or a folder of ours
_RANDOM = re.compile(r"tmp/peekaboo_min-\d+/[^/]*?([0-9a-f]{12}|(?<=-)[0-9a-f]{6})[_.].*", re.DOTALL)
# xclip serves the user's clipboard; the others end with the session bus, which may start them late
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
    """Note a program's output; images that it names are allowed to stay."""
    _replies.append(text)


def process_state() -> dict[str, object]:
    """Return the process-wide state that a command must not change."""
    state: dict[str, object] = {f"thread {one.name}": one for one in threading.enumerate() if not one.daemon}
    state |= {f"handler of signal {number}": signal.getsignal(number) for number in signal.valid_signals()}
    state |= {f"variable {name}": value for name, value in os.environ.items()}
    state.pop("variable PYTEST_CURRENT_TEST", None)
    return {**state, f"working folder {os.getcwd()}": True}


def machine_state(base: Path, display: str) -> dict[str, Any]:
    """Return the programs below this folder, the input devices and the number of the display's X clients."""
    devices = Path("/proc/bus/input/devices")
    socket = f"/tmp/.X11-unix/X{display.strip(':')}"
    lines = Path("/proc/net/unix").read_text().splitlines()
    clients = [
        line for line in lines if line.split()[5] == "03" and line.endswith((f" {socket}", f"@{socket}"))
    ]
    return {
        "programs": sorted(words for _, words in map(_words_of, _processes_below(base))),
        "devices": devices.exists() and devices.read_text(),
        "X clients": len(clients),
    }


def changes(before: dict[str, object]) -> list[str]:
    """List the differences to the current state; a thread may have ended."""
    now = process_state()
    gone = [name for name in before if name not in now and name.startswith("variable")]
    return [name for name, value in now.items() if before.get(name) != value] + gone


class Leftovers:
    """The state before a test, and the differences after it."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._files = {folder: _files_of(folder) for folder in _watched}
        self.accept_processes()
        _replies.clear()

    def accept_processes(self) -> None:
        """Accept the running processes; for session fixtures that start during a test."""
        self._before = process_state()
        self._processes = _processes_below(self._base)

    def found(self, *allowed: str) -> list[str]:
        """List what the test left; wait up to GRACE_S for processes and files that are about to go."""
        deadline = time.monotonic() + GRACE_S
        while True:
            processes = [*(_processes_below(self._base) - self._processes)]
            found = changes(self._before) + [
                f"process {pid}: {words}"
                for pid, words in map(_words_of, processes)
                if words and not any(re.fullmatch(pattern, words) for pattern in allowed)
            ]
            for folder in _watched:
                new = _files_of(folder) - self._files.get(folder, set())
                found += [f"file {folder}/{name}" for name in sorted(new) if not _is_allowed(name, allowed)]
            if not found or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        for folder in {*_watched} - {*self._files}:
            _watched.remove(folder)  # added by the test
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
    """Return the pids with this folder in their environment; empty without /proc."""
    pids = [name for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc") else []
    for pid in {*_known_processes} - {*pids}:
        del _known_processes[pid]
    for pid in pids:
        if pid not in _known_processes:
            _known_processes[pid] = False  # ended, of the kernel or of another user; reading again takes time
            with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as environment:
                _known_processes[pid] = bytes(base) + b"/" in environment.read()
    return {pid for pid, is_ours in _known_processes.items() if is_ours} - {str(os.getpid())}


def _words_of(pid: str) -> tuple[str, str]:
    """Return the pid and its argv as text, which is empty if it has ended or may stay."""
    with suppress(OSError):
        words = Path("/proc", pid, "cmdline").read_text(errors="replace").split("\0")
        return pid, "" if os.path.basename(words[0]) in _KEPT_PROGRAMS else " ".join(words).strip()
    return pid, ""

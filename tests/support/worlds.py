"""The tests' X server, a form that reports its input, and the program in both forms."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

import pytest
from leftovers import replied, watch

T = TypeVar("T")
ROOT = Path(__file__).resolve().parent.parent.parent
HOME = Path.home()  # the real home; the test session has its own
SINGLE_FILE = ROOT / "scripts" / "peekaboo.py"
FORM = ROOT / "scripts" / "demo_form.tcl"
# Variables that tests inherit: none of the user's desktop, language and settings.
KEPT_VARIABLES = re.compile(
    r"CI|PATH|PEEKABOO_(BIN_DIR|DESKTOP|REQUIRE_SWIFT)|(PIP|PYTEST|SSL|UV)_\w+|(?i:\w+_proxy)"
)
# Deadline for events that must come: far longer than a busy machine needs.
PATIENCE_S = 60.0
X_PROGRAMS = (
    *("Xvfb", "openbox", "xcompmgr", "dbus-daemon", "xhost", "wish", "xdotool"),
    *("maim", "xwininfo", "xprop", "xclip", "convert"),
)


@cache
def installed_for_tests() -> frozenset[str]:
    """Return what scripts/test.sh installs: programs by name, other files by path."""
    setup, test = ((ROOT / "scripts" / name).read_text("utf-8") for name in ("setup.sh", "test.sh"))
    lists = setup.partition("need_desktop() {")[2].partition('"$@"')[0], test.partition("||")[0]
    text = " ".join(lists).replace("$(uname -m)", os.uname().machine)
    return frozenset(re.findall(r"(\S+):[\w.+-]+(?=\s)", text))


def need(*programs: str) -> None:
    """Skip the test without these programs, or files by their path; with CI set, fail it.

    Fails if scripts/test.sh does not install them, because a fresh machine lacks them. See need_optional.
    """
    unlisted = [name for name in programs if name not in installed_for_tests()]
    assert not unlisted, f"scripts/test.sh does not install {', '.join(unlisted)}"
    missing = [name for name in programs if not (shutil.which(name) or Path("/", name).exists())]
    if missing and os.environ.get("CI"):
        pytest.fail(f"CI lacks {', '.join(missing)}")
    if missing:
        pytest.skip(f"not on this machine: {', '.join(missing)}; scripts/test.sh installs them on Debian")


def need_optional(*names: str) -> str:
    """Return the path of the first installed program; skip the test if there is none, also with CI set."""
    found = next(filter(None, map(shutil.which, names)), None)
    return found or pytest.skip(f"there is no {names[0]} on this machine; its tests are optional")


def need_swift() -> None:
    """Skip the test without swiftc, which Debian does not package; with PEEKABOO_REQUIRE_SWIFT=1, fail it."""
    if not shutil.which("swiftc"):
        (pytest.fail if os.environ.get("PEEKABOO_REQUIRE_SWIFT") else pytest.skip)(
            "there is no swiftc on PATH"
        )


def comes_true(what: Callable[[], T], seconds: float = PATIENCE_S) -> T:
    """Return the first true value of what(), or on a timeout its last value."""
    deadline = time.monotonic() + seconds
    while True:
        started = time.monotonic()
        value = what()
        ended = time.monotonic()
        if value or ended >= deadline:
            return value
        # pause as long as the check took, to leave processor time to the awaited program
        time.sleep(min(max(0.01, ended - started), 0.2))


def wait_for(what: Callable[[], Optional[T]], why: str, seconds: float = PATIENCE_S) -> T:
    """Return the first true value of what(); fail the test with `why` on a timeout."""
    return comes_true(what, seconds) or pytest.fail(f"waited {seconds:g} s in vain: {why}")


def processes_of(folder: Path) -> dict[int, str]:
    """Return the processes with this folder as home: argv as text by pid."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or belongs to another user
            if f"HOME={folder}/".encode() in (path / "environ").read_bytes():
                found[int(path.name)] = (path / "cmdline").read_text(errors="replace").replace("\0", " ")
    return found


def executable(path: Path, script: str) -> Path:
    """Create a program, and its folders, of a script; without `#!`, a shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@cache
def old_python() -> Optional[str]:
    """Find a Python 3.9 for the single file's command line."""
    found = [shutil.which("python3.9"), *map(str, HOME.glob(".pyenv/versions/3.9*/bin/python"))]
    # a version manager's shim may have no Python behind it
    return next(
        (one for one in found if one and not subprocess.run([one, "-c", ""], capture_output=True).returncode),
        None,
    )


@dataclass(frozen=True)
class Finished:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    def __post_init__(self) -> None:
        replied(self.out)

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def data(self) -> Any:
        assert self.json["success"], self.out
        return self.json["data"]

    @property
    def error(self) -> Any:
        assert not self.json["success"], self.out
        return self.json["error"]


@dataclass(frozen=True)
class Program:
    """peekaboo-min in one of its two forms, with its environment."""

    words: Sequence[str]
    environment: dict[str, str]

    def run(
        self,
        *arguments: Any,
        timeout_s: float = 2 * PATIENCE_S,
        folder: Optional[Path] = None,
        **variables: str,
    ) -> Finished:
        """Run it in `folder`; None: in the tests' working folder."""
        words = [*self.words, *(str(one) for one in arguments)]
        done = subprocess.run(
            words,
            cwd=folder,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            encoding="utf-8",
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    def data(self, *arguments: Any, **variables: Any) -> Any:
        """Run a command that succeeds; return its data."""
        return self.run("--json-output", *arguments, **variables).data

    def error(self, *arguments: Any, **variables: Any) -> Any:
        """Run a command that fails; return its error."""
        return self.run("--json-output", *arguments, **variables).error

    def start(
        self, *arguments: Any, folder: Optional[Path] = None, **variables: str
    ) -> subprocess.Popen[bytes]:
        """Start a process with open pipes; the caller ends it."""
        return subprocess.Popen(
            [*self.words, *(str(one) for one in arguments)],
            cwd=folder,
            env={**self.environment, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def having(self, **variables: str) -> Program:
        return Program(self.words, {**self.environment, **variables})


def program_words(form: str) -> list[str]:
    """Return the argv of a form: the package on this Python, the single file on 3.9 if it is installed."""
    if form == "package":
        return [sys.executable, "-W", "error", "-m", "peekaboo_min"]
    return [old_python() or sys.executable, "-W", "error", str(SINGLE_FILE)]


# for a smoke test with the fixture `program` or `on_x11`, which use only the package by default
both_forms = pytest.mark.parametrize("program", ["package", "single file"], indirect=True)


def clean_environment(folder: Path, **variables: str) -> dict[str, str]:
    """Return an environment whose programs write only below `folder`, without a desktop by default."""
    watch(folder)
    for name in ("home", "state", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder / "home"),
        "XDG_STATE_HOME": str(folder / "state"),
        "TMPDIR": str(folder / "tmp"),
        "LANG": "C.UTF-8",
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/dev/null",  # else GTK starts a bus and leaves it running
        "GIO_USE_VFS": "local",
        "GSETTINGS_BACKEND": "memory",
        "GSK_RENDERER": "cairo",  # repeats `desktop`, for tests that pass only DISPLAY on
        **({"CI": os.environ["CI"]} if os.environ.get("CI") else {}),
        **variables,
    }


class ForeignFolder:
    """A working folder with a fake of every module that might be imported; each logs its execution."""

    def __init__(self, path: Path, without: Sequence[str] = ()) -> None:
        self.path = path
        self._log = path.with_name(f"{path.name}.log")
        path.mkdir()
        ours = ("mcp", "pydantic", "anyio", "peekaboo_min", "sitecustomize", "usercustomize")
        for name in {*sys.stdlib_module_names, *ours} - {*without}:
            note = f"open({str(self._log)!r}, 'a').write(__name__ + '\\n')"
            (path / f"{name}.py").write_text(
                f"{note}\nraise ImportError('not the real one')\n", encoding="utf-8"
            )

    def executed(self) -> list[str]:
        return self._log.read_text(encoding="utf-8").split() if self._log.exists() else []


@contextmanager
def group_of(
    words: list[str], environment: Optional[Mapping[str, str]] = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a program; end it and its children with the block."""
    process = subprocess.Popen(
        words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


# the rest of the tests passes only DISPLAY on, not the desktop's cookie
_ADMIT_THIS_USER = 'xhost "+si:localuser:$(id -un)" >/dev/null; echo "$DISPLAY"; exec cat'


@contextmanager
def x_server(size: str = "1280x800") -> Iterator[str]:
    """Start a desktop as `peekaboo-min desktop` does, and yield its DISPLAY; skip the test without it."""
    need(*X_PROGRAMS)
    argv = [*program_words("package"), "desktop", "--size", size, "--", "sh", "-c", _ADMIT_THIS_USER]
    environment, pipe = {**os.environ, "TMPDIR": "/tmp", "PYTHONPATH": str(ROOT)}, subprocess.PIPE
    with subprocess.Popen(argv, env=environment, stdin=pipe, stdout=pipe, text=True) as desktop:
        assert desktop.stdout
        yield desktop.stdout.readline().strip()


@contextmanager
def bare_x_server(
    screen: str = "1280x800x24", options: Sequence[str] = (), compositor: bool = False
) -> Iterator[str]:
    """Start an X server without a window manager, and yield its DISPLAY; skip the test without it."""
    need(*X_PROGRAMS)
    argv = ["Xvfb", "-displayfd", "1", "-screen", "0", screen, *options, "-nolisten", "tcp", "-noreset"]
    with group_of(argv) as server:
        assert server.stdout
        environment = {**os.environ, "DISPLAY": f":{server.stdout.readline().strip()}"}
        ask = ["xprop", "-name", "xcompmgr", "WM_NAME"]
        with group_of(["xcompmgr", "-a"], environment) if compositor else nullcontext():
            wait_for(
                lambda: not compositor or not subprocess.run(ask, env=environment).returncode, "it composes"
            )
            yield environment["DISPLAY"]


class Form:
    """A window of scripts/demo_form.tcl, which reports the input that it received."""

    def __init__(
        self, display: str, report: Path, title: str = "Visitor book", place: str = "+60+60"
    ) -> None:
        self.title = title
        self.display = display
        self._report = report
        self.process = subprocess.Popen(
            ["wish", str(FORM), "-name", "Form", "--", str(report), title, place],
            env={**os.environ, "DISPLAY": display},
            stdin=subprocess.DEVNULL,
        )
        self.wait_for_event("ready")

    def events(self, event: Optional[str] = None) -> list[dict[str, Any]]:
        if not self._report.exists():
            return []
        lines = self._report.read_text(encoding="utf-8").split("\n")[:-1]
        return [one for one in map(json.loads, lines) if event in (None, one["event"])]

    def wait_for_event(self, event: str, seconds: float = PATIENCE_S, after: int = 0) -> dict[str, Any]:
        """Wait for more than `after` events of this kind; return the newest."""
        return wait_for(lambda: self.events(event)[after:], f"the form reports {event}", seconds)[-1]

    def centre(self, widget: str) -> tuple[int, int]:
        """Return the centre of a widget, in pixels of its window."""
        place = [one for one in self.events("layout") if one["widget"] == widget][-1]
        return place["x"] + place["width"] // 2, place["y"] + place["height"] // 2

    def xdotool(self, *words: str) -> str:
        """Act with xdotool instead of our program; return its stdout."""
        argv, environment = ["xdotool", *words], {**os.environ, "DISPLAY": self.display}
        return subprocess.run(argv, env=environment, check=True, capture_output=True, text=True).stdout

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


OpenForm = Callable[..., Form]  # see the fixture `open_form`

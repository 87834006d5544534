"""Fixtures of several files here: our program on X11, windows of Tk, applications that offer elements."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest
from accessible import need_elements, session_bus
from in_process import InProcessProgram
from tk_windows import Wish, window_titled
from worlds import Form, Program, clean_environment


@pytest.fixture
def peek(display: str, tmp_path: Path) -> Program:
    """The package on the session's display; other tests prove that the single file is the same."""
    return InProcessProgram(clean_environment(tmp_path, DISPLAY=display))


@pytest.fixture
def form_id(peek: Program, form: Form) -> int:
    return window_titled(peek, form.title)["window_id"]


@pytest.fixture
def wish(display: str, tmp_path: Path) -> Iterator[Callable[..., Wish]]:
    """Runs Tcl scripts, whose windows belong to an app called Other unless another name is given."""
    started: list[Wish] = []

    def run(script: str, name: str = "Other") -> Wish:
        started.append(Wish(display, script, tmp_path / f"wish{len(started)}.tcl", name))
        return started[-1]

    yield run
    for one in started:
        one.close()


@pytest.fixture
def on_gtk(display: str, tmp_path: Path) -> Iterator[Program]:
    """Our program on a display with a session bus of the test's own."""
    need_elements("zenity")
    environment = clean_environment(
        tmp_path, DISPLAY=display, XDG_RUNTIME_DIR=str(tmp_path), GSETTINGS_BACKEND="memory",
        GIO_USE_VFS="local", LC_ALL="C.UTF-8", GTK_USE_PORTAL="0",
    )  # fmt: skip
    tmp_path.chmod(0o700)
    with session_bus(environment) as address:
        yield InProcessProgram({**environment, "DBUS_SESSION_BUS_ADDRESS": address})
        # GTK asks it before its session bus, and it outlives the bus that it names
        subprocess.run(["xprop", "-root", "-remove", "AT_SPI_BUS"], env=environment, check=True)

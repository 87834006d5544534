"""Shared fixtures: the program on X11, Tk windows, applications with accessible elements."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest
from accessible import need_elements, session_bus
from fakemac import FakeMac
from in_process import InProcessProgram
from macs import mac_environment
from scripted import ScriptedDesktop, scripted_desktop
from tk_windows import Opened, Wish, keyboard_state, window_titled
from worlds import Form, Program, clean_environment, comes_true


@pytest.fixture
def peek(display: str, tmp_path: Path) -> Iterator[Program]:
    """Yield the package on the session's display; other tests compare it with the single file.

    Fails the test if it leaves a key held, a lock on, or another keyboard map.
    """
    before = keyboard_state(display)
    yield InProcessProgram(clean_environment(tmp_path, DISPLAY=display))
    comes_true(lambda: keyboard_state(display) == before, 5)
    assert keyboard_state(display) == before


@pytest.fixture
def mac_peek(mac: FakeMac) -> Program:
    """Return the package on a fake Mac."""
    return InProcessProgram(mac_environment(mac))


@pytest.fixture
def desk() -> Iterator[ScriptedDesktop]:
    """Yield a desktop in memory, on which `shell` acts."""
    with scripted_desktop() as desktop:
        yield desktop


@pytest.fixture
def shell(desk: ScriptedDesktop, tmp_path: Path) -> Program:
    """Return the package on `desk`."""
    return InProcessProgram(clean_environment(tmp_path))


@pytest.fixture
def form_id(peek: Program, form: Form) -> int:
    return window_titled(peek, form.title)["window_id"]


@pytest.fixture
def wish(display: str, tmp_path: Path) -> Iterator[Callable[..., Wish]]:
    """Yield a function that runs a Tcl script; its window belongs to the app Other or to `name`."""
    started: list[Wish] = []

    def run(script: str, name: str = "Other") -> Wish:
        started.append(Wish(display, script, tmp_path / f"wish{len(started)}.tcl", name))
        return started[-1]

    yield run
    for program in started:
        program.close()


@pytest.fixture
def opened(peek: Program, wish: Callable[..., Wish]) -> Opened:
    """Opens a window with a title by a script: its program and its id, of which there is a screenshot."""

    def open_one(title: str, script: str) -> tuple[Wish, int]:
        program = wish(f"wm title . {title}; wm geometry . 300x200+600+100\n{script}")
        window_id = window_titled(peek, title)["window_id"]
        peek.data("screenshot", window_id)
        return program, window_id

    return open_one


@pytest.fixture
def on_gtk(display: str, tmp_path: Path) -> Iterator[Program]:
    """Yield the program with a display and its own session bus."""
    need_elements("zenity")
    environment = clean_environment(tmp_path, DISPLAY=display, XDG_RUNTIME_DIR=str(tmp_path))
    tmp_path.chmod(0o700)
    with session_bus(environment) as address:
        yield InProcessProgram({**environment, "DBUS_SESSION_BUS_ADDRESS": address})
        # GTK reads this property before its session bus, and the property outlives that bus
        subprocess.run(["xprop", "-root", "-remove", "AT_SPI_BUS"], env=environment, check=True)

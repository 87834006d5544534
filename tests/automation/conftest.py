"""Fixtures of several files here: applications that offer their elements."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from accessible import need_elements, session_bus
from worlds import Program, clean_environment, program_words


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
        yield Program(program_words("package"), {**environment, "DBUS_SESSION_BUS_ADDRESS": address})
        # GTK asks it before its session bus, and it outlives the bus that it names
        subprocess.run(["xprop", "-root", "-remove", "AT_SPI_BUS"], env=environment, check=True)

"""Applications with accessible elements: a private session bus, and programs that end with the test."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Optional

from worlds import Program, group_of, need, wait_for

_NEEDED = (
    "dbus-daemon",
    "/usr/lib/python3/dist-packages/gi",
    f"/usr/lib/{os.uname().machine}-linux-gnu/girepository-1.0/Atspi-2.0.typelib",
    "/usr/libexec/at-spi-bus-launcher",
)
_SERVICES = ("org.a11y.Bus.service", "org.xfce.Xfconf.service")
_BUS = """<busconfig><type>session</type><listen>unix:tmpdir=/tmp</listen><servicedir>{folder}</servicedir>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
<allow own="*"/></policy></busconfig>"""


def need_elements(*programs: str) -> None:
    """Skip the test unless these programs and the accessibility tree are available; see `need`."""
    need(*_NEEDED, *programs)


@contextmanager
def session_bus(environment: Optional[Mapping[str, str]] = None) -> Iterator[str]:
    """Start a session bus that starts only _SERVICES; yield its address.

    An installed desktop portal would mount a file system in the test's folder and not unmount it.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for service in _SERVICES:
            (folder / service).symlink_to(f"/usr/share/dbus-1/services/{service}")
        (folder / "bus.conf").write_text(_BUS.format(folder=folder), "utf-8")
        words = ["dbus-daemon", f"--config-file={folder / 'bus.conf'}", "--nofork", "--print-address=1"]
        with group_of(words, environment) as bus:
            assert bus.stdout
            yield bus.stdout.readline().strip()


def elements_of(
    program: Program, process: subprocess.Popen[str], role: str, title: str = ""
) -> dict[str, Any]:
    """Wait until the window has elements of a role; return their data with the window's id.

    title: the window's, if another process than the started one opens it.
    """

    def find() -> dict[str, Any]:
        windows = program.data("windows")["windows"]
        own = [one for one in windows if (one["title"] == title if title else one["pid"] == process.pid)]
        mine = [one["window_id"] for one in own]
        answer = program.run("elements", mine[0], "--role", role, "--json").json if mine else {}
        return answer.get("data", {}) if answer.get("data", {}).get("elements") else {}

    return wait_for(find, f"{process.args!r} shows a {role}")

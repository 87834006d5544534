"""scripts/with_desktop.sh and its container."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from worlds import ROOT, clean_environment, need, processes_of

from peekaboo_min.system.bitmaps import read_image_info

SCRIPT = str(ROOT / "scripts" / "with_desktop.sh")


def start(tmp_path: Path, command: str, **variables: str) -> subprocess.Popen[str]:
    need("Xvfb", "openbox", "xcompmgr", "xprop", "maim")
    file = f"{ROOT}/scripts/peekaboo.py"
    return subprocess.Popen(
        ["sh", SCRIPT, "sh", "-c", command],
        env=clean_environment(tmp_path, PYTHON=sys.executable, FILE=file, **variables),
        cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_with_desktop_starts_a_desktop_and_passes_stdin_and_exit_code(tmp_path: Path) -> None:
    command = '"$PYTHON" "$FILE" image --path screen.png >&2; cat; echo " $GSK_RENDERER"; exit 7'
    process = start(tmp_path, command, SCREEN="800x600x24", GSK_RENDERER="")
    out, err = process.communicate("from stdin", timeout=120)
    info = read_image_info(tmp_path / "screen.png")
    assert (process.returncode, out) == (7, "from stdin cairo\n"), err
    assert info is not None and (info.width, info.height) == (800, 600)
    # do not check the display number: another server may use it now
    assert processes_of(tmp_path) == {}


def test_with_desktop_ends_command_and_desktop_on_a_signal(tmp_path: Path) -> None:
    process = start(tmp_path, 'echo "$DISPLAY"; exec sleep 300')
    assert process.stdout is not None
    assert process.stdout.readline().startswith(":") and processes_of(tmp_path)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert processes_of(tmp_path) == {}


def test_with_desktop_that_cannot_start_ends_with_an_error(tmp_path: Path) -> None:
    """Break xprop, which checks whether openbox is ready."""
    for name, code in (("xprop", 1), ("sleep", 0)):  # it tries 200 times with pauses
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (tmp_path / name).chmod(0o755)
    process = start(tmp_path, "echo started", PATH=f"{tmp_path}:{os.environ['PATH']}")
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (1, "") and "openbox did not start" in err


def test_container_installs_the_packages_of_setup() -> None:
    """Compare with setup.sh's list, without the demo's tk."""
    needed = re.search(r"need_desktop\(\).*?\"\$@\"", (ROOT / "scripts/setup.sh").read_text(), re.S)
    assert needed
    packages = set(re.findall(r"[\w./]+:([\w-]+)", needed[0])) - {"tk", "PACKAGE"}
    installed = (
        (ROOT / "scripts/Containerfile").read_text().split("apt-get install", 1)[1].split("&&")[0].split()
    )
    assert packages <= set(installed) and len(packages) >= 9
    assert {"dbus", "at-spi2-core", "python3-gi", "gir1.2-atspi-2.0"} <= set(installed)
    copied = re.findall(r"^!(.+)$", (ROOT / "scripts/Containerfile.dockerignore").read_text(), re.M)
    assert {path for path in copied if (ROOT / path).exists()} == {*copied}

"""The search for programs, and the check that convert is ImageMagick's."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Callable

import pytest
from worlds import ROOT, Program, executable, need

from peekaboo_min.automation import find
from peekaboo_min.system.programs import PACKAGES, find_programs

REFUSING = '[ "$DISPLAY" ] && echo "$DISPLAY" >> "$0.log"; echo "$0: no ImageMagick" >&2; exit 1'
X_TOOLS = ("maim", "xdotool", "xclip", "convert", "tesseract")


@pytest.fixture(autouse=True)
def tools() -> None:
    need(*X_TOOLS)
    find._LAST_READING.clear()  # an earlier test may have read the same image


def logged(path: Path, script: str) -> Path:
    """Create a program that runs `script` and logs its arguments in PATH.log."""
    return executable(path, f'echo "$*" >> "$0.log"\n{script}')


def calls(path: Path) -> list[str]:
    return Path(f"{path}.log").read_text().splitlines()


def real(name: str) -> str:
    """Return the real program, even if PATH begins with another of its name."""
    return next(path for path in (f"/usr/bin/{name}", shutil.which(name)) if path and os.path.exists(path))


def only(folder: Path, *names: str) -> Path:
    """Create a folder for PEEKABOO_BIN_DIR with these real programs."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).symlink_to(real(name))
    return folder


def test_find_program_skips_a_foreign_convert(on_x11: Program, form_window: int, tmp_path: Path) -> None:
    first = logged(tmp_path / "first" / "convert", REFUSING)
    on_x11.data("find-text", form_window, "Name", PATH=f"{first.parent}{os.pathsep}{os.environ['PATH']}")
    folder = only(tmp_path / "bin", *(name for name in X_TOOLS if name != "convert"))
    other = logged(folder / "convert", REFUSING)
    magick = logged(folder / "magick", f'exec {real("convert")} "$@"')
    find._LAST_READING.clear()
    on_x11.data("find-text", form_window, "Name", PEEKABOO_BIN_DIR=str(folder))
    assert set(calls(first)) == set(calls(other)) == {"-version"}
    assert "-version" in calls(magick) and len(set(calls(magick))) > 1


@pytest.mark.parametrize(("name", "package"), [("maim", "maim"), ("convert", "imagemagick")])
def test_find_program_names_the_package_of_a_missing_program(
    on_x11: Program, form_window: int, tmp_path: Path, name: str, package: str
) -> None:
    folder = only(tmp_path / "bin", *(tool for tool in X_TOOLS if tool != name))
    if name == "convert":
        logged(folder / name, REFUSING)
    peek = on_x11.having(PEEKABOO_BIN_DIR=str(folder))
    error = peek.error("find-text", form_window, "Name")
    message = f"the program {name} is not installed; install it: sudo apt-get install {package}"
    assert (error["code"], error["message"]) == ("MISSING_PROGRAM", message)
    finished = peek.run("doctor")
    assert f" {name}: the program {name} is not installed" in finished.out + finished.err
    assert f"sudo apt-get install {package}" in finished.out + finished.err


def test_find_programs_searches_path_then_the_systems_folders(
    environment: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(PATH="/a:b:/c")
    monkeypatch.setattr("shutil.which", lambda name, path: f"{path}/{name}")
    system = ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/opt/homebrew/bin", "/usr/local/bin"]
    assert [os.path.dirname(path) for path in find_programs("maim")] == ["/a", "/c", *system]
    assert list(find_programs("python3")) == ["/usr/bin/python3"], "the system's python3 has gi"
    environment(PEEKABOO_BIN_DIR="/own")
    assert list(find_programs("python3")) == ["/own/python3"]


def test_missing_program_names_the_packages_that_our_scripts_install() -> None:
    scripts = "".join((ROOT / "scripts" / name).read_text("utf-8") for name in ("setup.sh", "test.sh"))
    installed = {f"{name}:{package}" for name, package in re.findall(r"([\w-]+):([\w.+-]+)", scripts)}
    assert all(f":{package}" in scripts for package in PACKAGES["python3"].split())
    others = PACKAGES.items() - {("python3", "python3-gi gir1.2-atspi-2.0 at-spi2-core")}
    assert {f"{name}:{package}" for name, package in others} <= installed


def test_doctor_shows_where_each_program_is(on_x11: Program) -> None:
    need("gtk-launch", "xdg-mime")
    done = on_x11.run("doctor")
    lines = [f"ok      {name}: {shutil.which(name)}" for name in (*X_TOOLS, "gtk-launch", "xdg-mime")]
    assert (done.code, {*lines} - {*done.out.splitlines()}) == (0, set())

"""How many programs each operation on X11 starts: nothing is listed twice."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from in_process import InProcessProgram
from worlds import Form, clean_environment, need, wait_for, x_server

PROGRAMS = ("maim", "xdotool", "xclip", "convert", "tesseract")
LISTING: dict[str, int] = {}  # one connection to the X server answers everything
CAPTURE = {"maim": 1}


class Counted:
    """Our command line with logging wrappers around every program that it may start."""

    def __init__(self, display: str, folder: Path) -> None:
        self.log = folder / "children"
        programs = folder / "bin"
        programs.mkdir()
        for name in PROGRAMS:
            need(name)
            wrapper = programs / name
            # a program that is asked what it is does nothing yet
            wrapper.write_text(
                f'#!/bin/sh\n[ "$1" = -version ] || echo {name} >> {self.log}\n'
                f'exec {shutil.which(name)} "$@"\n'
            )
            wrapper.chmod(0o755)
        environment = clean_environment(folder, DISPLAY=display, PEEKABOO_BIN_DIR=str(programs))
        self.program = InProcessProgram(environment)

    def children(self, *arguments: Any) -> dict[str, int]:
        """The programs that a command, which succeeds, starts."""
        self.log.write_text("")
        self.program.data(*arguments)
        return dict(Counter(self.log.read_text().split()))


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counted]:
    """Two windows of one app, apart from each other, on a display of their own."""
    with x_server() as display:
        yield from two_windows(display, tmp_path_factory.mktemp("counted"))


def two_windows(display: str, folder: Path) -> Iterator[Counted]:
    forms = [
        Form(display, folder / f"report{number}.jsonl", title, place)
        for number, (title, place) in enumerate((("Left", "+20+20"), ("Right", "+660+20")))
    ]
    try:
        peek = Counted(display, folder)
        wait_for(lambda: len(peek.program.data("windows", "--app", "Form")["windows"]) == 2, "two windows")
        yield peek
    finally:
        for form in forms:
            form.close()


def added(*parts: dict[str, int]) -> dict[str, int]:
    return dict(sum((Counter(part) for part in parts), Counter()))


OPERATIONS: dict[str, tuple[list[str], dict[str, int]]] = {
    "list apps": (["list", "apps"], LISTING),
    "list windows": (["list", "windows", "--app", "Form"], LISTING),
    "list screens": (["list", "screens"], LISTING),
    "windows": (["windows"], LISTING),
    "windows of an app": (["windows", "--app", "Form"], LISTING),
    "the screen": (["image"], added(LISTING, {"maim": 1})),
    "an app's window": (["image", "--app", "Form"], added(LISTING, CAPTURE)),
    "a window by its title": (["image", "--app", "Form", "--window-title", "left"], added(LISTING, CAPTURE)),
    "a smaller image": (
        ["image", "--app", "Form", "--max-dimension", "90"],
        added(LISTING, CAPTURE, {"convert": 1}),
    ),
    "all windows of an app": (
        ["image", "--app", "Form", "--mode", "multi"],
        added(LISTING, CAPTURE, CAPTURE),
    ),
    "a window for an app": (["screenshot-app-window", "--appName", "Form"], added(LISTING, CAPTURE)),
}


@pytest.mark.parametrize(("argv", "children"), OPERATIONS.values(), ids=OPERATIONS.keys())
def test_an_operation_lists_the_desktop_once(
    counted: Counted, argv: list[str], children: dict[str, int]
) -> None:
    assert counted.children(*argv) == children


def test_what_takes_a_window_id_lists_the_desktop_once(counted: Counted) -> None:
    window_id = counted.program.data("windows", "--app", "Form")["windows"][0]["window_id"]
    assert counted.children("screenshot", window_id) == added(LISTING, CAPTURE)
    assert counted.children("image", "--window-id", window_id) == added(LISTING, CAPTURE)
    children = counted.children("find-text", window_id, "Name")
    assert children["maim"] == 1 and children.keys() == {"maim", "convert", "tesseract"}

"""Windows of Tcl scripts, what is listed, logged, shown and copied, programs that a test changes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from worlds import PATIENCE_S, X_PROGRAMS, Program, wait_for


def window_titled(peek: Program, title: str) -> dict[str, Any]:
    """The window with this title, once it is listed."""

    def find() -> list[dict[str, Any]]:
        return [one for one in peek.data("windows")["windows"] if one["title"] == title]

    return wait_for(find, f"{title} is listed")[0]


def audit(program: Program) -> list[dict[str, Any]]:
    """The lines of its audit log."""
    paths = Path(program.environment["XDG_STATE_HOME"]).rglob("audit.jsonl")
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


class Wish:
    """A Tcl script in a process of its own."""

    def __init__(self, display: str, script: str, path: Path, name: str = "Other") -> None:
        path.write_text(f"fconfigure stdout -buffering line -encoding utf-8\n{script}", "utf-8")
        self._out = path.with_suffix(".out")
        with self._out.open("w") as out:
            self.process = subprocess.Popen(
                ["wish", str(path), "-name", name], env={**os.environ, "DISPLAY": display},
                stdin=subprocess.PIPE, stdout=out, encoding="utf-8",
            )  # fmt: skip

    def lines(self) -> list[str]:
        """What it has printed so far."""
        return self._out.read_text("utf-8").split("\n")[:-1]

    def wait_for(self, line: str) -> None:
        wait_for(lambda: line in self.lines(), f"the script prints {line!r}, not {self.lines()}")

    def tell(self, command: str) -> None:
        """Write to its stdin, which its script reads."""
        assert self.process.stdin
        print(command, file=self.process.stdin, flush=True)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def programs_by(folder: Path, script: str, *names: str) -> dict[str, str]:
    """The variables with which a shell script runs before these programs, or in their place where it exits.

    In it `$name` is the program's and `$real` its path. Without names: before every program of X11.
    """
    folder.mkdir(exist_ok=True)
    for name in (*X_PROGRAMS, "tesseract"):
        real = shutil.which(name)
        assert real, name
        if names and name not in names:
            (folder / name).symlink_to(real)
            continue
        (folder / name).write_text(f'#!/bin/sh\nname={name} real={real}\n{script}\nexec $real "$@"\n')
        (folder / name).chmod(0o755)
    return {"PEEKABOO_BIN_DIR": str(folder)}


FORM_COLOUR = bytes((244, 241, 234))


def pixels_of(image: Path, box: str = "") -> bytes:
    """The colours in an image file, or in a part of it (`WxH+X+Y`), as ImageMagick decodes them."""
    crop = ["-crop", box, "+repage"] if box else []
    argv = ["convert", str(image), *crop, "-depth", "8", "rgb:-"]
    return subprocess.run(argv, capture_output=True, check=True).stdout


_XCLIP = ("xclip", "-selection", "clipboard", "-target")


def copy(environment: Mapping[str, str], data: bytes, kind: str = "UTF8_STRING") -> None:
    """Put something into the user's clipboard."""
    words, quiet = [*_XCLIP, kind, "-i"], subprocess.DEVNULL
    subprocess.run(
        words, env=environment, input=data, stdout=quiet, stderr=quiet, check=True, timeout=PATIENCE_S
    )


def clipboard(environment: Mapping[str, str], kind: str = "UTF8_STRING") -> bytes:
    """What the clipboard holds; nothing where it holds none of that kind."""
    words = [*_XCLIP, kind, "-o"]
    return subprocess.run(words, env=environment, capture_output=True, timeout=PATIENCE_S).stdout

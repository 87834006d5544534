"""Tcl windows, the audit log, pixels, the clipboard, and shell wrappers around X programs."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable

from worlds import PATIENCE_S, X_PROGRAMS, Form, Program, wait_for


def window_titled(peek: Program, title: str) -> dict[str, Any]:
    """Wait until the window with this title is listed; return it."""

    def find() -> list[dict[str, Any]]:
        return [one for one in peek.data("windows")["windows"] if one["title"] == title]

    return wait_for(find, f"{title} is listed")[0]


def audit(program: Program) -> list[dict[str, Any]]:
    """Return the entries of the program's audit log."""
    paths = Path(program.environment["XDG_STATE_HOME"]).rglob("audit.jsonl")
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def keyboard_state(display: str) -> dict[str, bytes]:
    """Return the held keys and buttons, the modifiers and locks, and the keyboard map, as Xlib has them."""
    xlib = ctypes.CDLL("libX11.so.6")
    xlib.XOpenDisplay.restype = xlib.XGetKeyboardMapping.restype = ctypes.c_void_p
    server = ctypes.c_void_p(xlib.XOpenDisplay(display.encode()))
    held, modifiers, count = ctypes.create_string_buffer(32), ctypes.create_string_buffer(18), ctypes.c_int()
    xlib.XQueryKeymap(server, held)
    xlib.XkbGetState(server, 0x100, modifiers)
    keysyms = xlib.XGetKeyboardMapping(server, 8, 248, ctypes.byref(count))
    state = {"held": held.raw, "modifiers": modifiers.raw}
    state["map"] = ctypes.string_at(keysyms, 248 * count.value * ctypes.sizeof(ctypes.c_ulong))
    xlib.XCloseDisplay(server)
    return state


class Wish:
    """A process that runs a Tcl script."""

    def __init__(self, display: str, script: str, path: Path, name: str = "Other") -> None:
        path.write_text(f"fconfigure stdout -buffering line -encoding utf-8\n{script}", "utf-8")
        self._out = path.with_suffix(".out")
        with self._out.open("w") as out:
            self.process = subprocess.Popen(
                ["wish", str(path), "-name", name], env={**os.environ, "DISPLAY": display},
                stdin=subprocess.PIPE, stdout=out, encoding="utf-8",
            )  # fmt: skip

    def lines(self) -> list[str]:
        return self._out.read_text("utf-8").split("\n")[:-1]

    def wait_for(self, line: str) -> None:
        wait_for(lambda: line in self.lines(), f"the script prints {line!r}, not {self.lines()}")

    def tell(self, command: str) -> None:
        """Write a line to the script's stdin."""
        assert self.process.stdin
        print(command, file=self.process.stdin, flush=True)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


Opened = Callable[[str, str], "tuple[Wish, int]"]  # see the fixture `opened`


def typed(form: Form, field: str = "name") -> str:
    """Return the text of a field of the form."""
    before = len(form.events("text"))
    form.xdotool("key", "F12")
    return str(form.wait_for_event("text", after=before)[field])


def programs_by(folder: Path, script: str, *names: str) -> dict[str, str]:
    """Return variables that make a shell script run before these programs; if it exits, they do not run.

    The script has `$name` and `$real`, the program's path. Without names, it runs before all X programs.
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
    """Return the RGB bytes of an image file, or of a part of it (`WxH+X+Y`), decoded by ImageMagick."""
    crop = ["-crop", box, "+repage"] if box else []
    argv = ["convert", str(image), *crop, "-depth", "8", "rgb:-"]
    return subprocess.run(argv, capture_output=True, check=True).stdout


_XCLIP = ("xclip", "-selection", "clipboard", "-target")


def copy(environment: Mapping[str, str], data: bytes, kind: str = "UTF8_STRING") -> None:
    """Put data into the user's clipboard."""
    words, quiet = [*_XCLIP, kind, "-i"], subprocess.DEVNULL
    subprocess.run(
        words, env=environment, input=data, stdout=quiet, stderr=quiet, check=True, timeout=PATIENCE_S
    )


def clipboard(environment: Mapping[str, str], kind: str = "UTF8_STRING") -> bytes:
    """Return the clipboard's data of this type; empty if it has none."""
    words = [*_XCLIP, kind, "-o"]
    return subprocess.run(words, env=environment, capture_output=True, timeout=PATIENCE_S).stdout

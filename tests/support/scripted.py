"""A Desktop in memory with a clock of its own: a test sets what it shows and when that changes."""

from __future__ import annotations

import os
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from samples import app, window

from peekaboo_min.automation import find
from peekaboo_min.core import call
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import Act, Delivery, Display, Handler, Point, Rect, Scene, Window
from peekaboo_min.desktop.base import Desktop
from peekaboo_min.desktop.x11 import backend
from peekaboo_min.system.bitmaps import Bitmap
from peekaboo_min.system.files import lock_folder

NOTES = window(7, "Shopping list", bundle_id="com.example.notes", is_focused=True)
SCREEN = Display(1, "Screen", Rect(0, 0, 1280, 800))


def plain(width: float, height: float, shade: int = 255) -> Bitmap:
    return Bitmap(int(width), 3, (bytes([shade]) * 3 * int(width),) * int(height))


PARTS = {"A": (0, 0, 0), "a": (0, 8, 16), "B": (0, 60, 20), "C": (0, 60, 90), "D": (100, 200, 20)}
PARTS.update({"i": (0, 3, 16), "j": (0, 4, 16)})


def picture(part: str) -> Bitmap:
    """Return a white capture of NOTES with a black part: none (A), a caret (a), or something larger."""
    top, width, height = PARTS[part]
    line = bytes(3 * width) + b"\xff" * 3 * (300 - width)
    return Bitmap(300, 3, tuple(line if top <= y < top + height else b"\xff" * 900 for y in range(200)))


def bmp(bitmap: Bitmap) -> bytes:
    padding = bytes(-len(bitmap.rows[0]) % 4)
    rows = b"".join(row + padding for row in bitmap.rows)
    sizes = (54 + len(rows), 0, 54, 40, bitmap.width, -len(bitmap.rows), 1, 24, *[0] * 6)
    return struct.pack("<2sIIIIiiHHIIIIII", b"BM", *sizes) + rows


class ScriptedDesktop(Desktop):
    """Shows `scene` and captures `looks`, of which the last stays; `done` lists the acts in order."""

    name, config_folder = "x11", "~/.config"
    session = f"x11-scripted-{os.getpid()}"
    needs, uses, extra_tools, variables = (), {}, (), ()
    has_noisy_captures, capture_cost = False, 1

    def __init__(self) -> None:
        self.now = 100.0
        self.scene = Scene((NOTES,), (app("Notes", 60, "com.example.notes", window_count=1),), (SCREEN,))
        self.done: list[str] = []
        self.captured: Counter[str] = Counter()
        self.during: dict[str, list[Callable[[], object]]] = {"act": [], "rectangle": [], "tree": []}
        self.package, self.moves = "", 0
        self.grants: dict[str, Optional[bool]] = {}
        self.looks: list[Any] = []
        self.lines: list[Any] = []
        self.elements: Any = []
        self.delivery: Any = Delivery(True)
        self.handler = Handler("Notes", "notes.desktop")
        self.obeys, self.act_takes_s, self.capture_takes_s, self.elements_take_s = True, 0.0, 0.02, 0.0001
        self._changes: list[tuple[float, Callable[[], object]]] = []

    def after(self, seconds: float, change: Callable[[], object]) -> None:
        """Let something happen `seconds` from now."""
        self._changes.append((self.now + seconds, change))

    def show(self, *windows: Window, **others: Any) -> None:
        self.scene = self.scene._replace(windows=windows, **others)

    def change(self, window_id: int, **values: Any) -> None:
        rows = (w._replace(**values) if w.window_id == window_id else w for w in self.scene.windows)
        self.show(*rows)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        assert self.now < 10_000, "this never ends"
        for due in [one for one in self._changes if one[0] <= self.now]:
            self._changes.remove(due)
            due[1]()

    def _spend(self, seconds: float) -> None:
        """Take this time like a program, which ends with the time budget of the call."""
        left = call.within_budget(seconds)
        self.pass_time(left)
        if left < seconds:
            raise PeekabooError(ErrorCode.TIMEOUT, "it took too long")

    def snapshot(self, with_minimised: bool = False) -> Scene:
        self._spend(0.01)
        rows = (
            each._replace(is_minimised=each.is_minimised and with_minimised) for each in self.scene.windows
        )
        return self.scene._replace(windows=tuple(rows))

    def focus(self, window: Window, may_click: bool = False) -> None:
        self.done.append("focus by click" if may_click else "focus")
        if self.obeys:
            others = [
                w._replace(is_focused=False) for w in self.scene.windows if w.window_id != window.window_id
            ]
            raised = self.scene.by_id(window.window_id)
            raised = raised._replace(is_focused=True, is_on_screen=True, is_minimised=False)
            self.show(*sorted([raised, *others], key=lambda each: not each.is_popup))  # popups stay in front

    def act(self, window: Window, act: Act, stop_file: Path) -> Delivery:
        usual = Act(act.kind)
        fields = [name for name in Act._fields if getattr(act, name) != getattr(usual, name)]
        values = [f"{name}={_shown(getattr(act, name))}" for name in fields]
        self.done.append(" ".join([f"{act.kind} in {window.window_id}", *values]))
        self.pass_time(self.act_takes_s)
        for change in self.during["act"]:
            change()
        return _given(self.delivery)

    def open(self, kind: str, target: str, handler: Handler) -> None:
        self.done.append(f"open {kind} {target}")
        _given(self.delivery)

    def find_handler(self, kind: str, target: str) -> Handler:
        return self.handler

    def capture_window(
        self, window: Window, path: Path, kind: str, with_shadow: bool = False
    ) -> Optional[Rect]:
        self._spend(self.capture_takes_s)
        self.captured[kind] += 1
        size = (window.bounds.width * window.scale, window.bounds.height * window.scale)
        look = _given(self.looks.pop(0) if self.looks[1:] else self.looks[0] if self.looks else plain(*size))
        path.write_bytes(bmp(look) if kind == "bmp" else look.as_png())
        if self.moves:
            self.moves -= 1
            self.change(window.window_id, bounds=window.bounds._replace(x=window.bounds.x + 50))
        now = self.scene.find(window.window_id)
        return now and now.bounds

    def capture_display(self, display: Display, path: Path, kind: str) -> None:
        self.capture_rect(display.bounds, path, kind)

    def capture_rect(self, rect: Rect, path: Path, kind: str) -> None:
        self.done.append("capture rectangle")
        path.write_bytes(plain(rect.width, rect.height).as_png())
        for change in self.during["rectangle"]:
            change()

    def fit_image(self, source: Path, target: Path, width: int, height: int, kind: str, quality: int) -> None:
        target.write_bytes(plain(width, height).as_png())

    def read_text(self, path: Path, characters: bool = False) -> Any:
        self.done.append("read characters" if characters else "read text")
        return self.lines

    def read_elements(self, window: Window) -> Any:
        self.done.append("read elements")
        self._spend(self.elements_take_s)
        for change in self.during["tree"]:
            change()
        return _given(self.elements)

    def permissions(self) -> dict[ErrorCode, Optional[bool]]:
        return {
            ErrorCode(f"PERMISSION_DENIED_{name}"): is_granted for name, is_granted in self.grants.items()
        }

    def missing_language(self, text: str) -> str:
        return self.package

    def input_backend(self) -> str:
        return "a script"


def _shown(value: Any) -> str:
    if isinstance(value, tuple) and not hasattr(value, "key"):
        return ",".join(f"({each.x:g},{each.y:g})" if isinstance(each, Point) else each for each in value)
    return str(value)


def _given(answer: Any) -> Any:
    answer = answer() if callable(answer) else answer
    if isinstance(answer, PeekabooError):
        raise answer
    return answer


@contextmanager
def scripted_desktop() -> Iterator[ScriptedDesktop]:
    """Yield the desktop that commands of this process use, and make its clock theirs."""
    desk = ScriptedDesktop()
    token: Any = threading.Event()
    token.wait = desk.pass_time
    find._LAST_READING.clear()  # many windows look the same here
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "X11Desktop", lambda: desk)
        patch.setattr(time, "monotonic", lambda: desk.now)
        reset = call._CALL.set(call._CALL.get()._replace(token=token))
        yield desk
        call._CALL.reset(reset)
    (lock_folder() / f"input-{desk.session}.lock").unlink(missing_ok=True)

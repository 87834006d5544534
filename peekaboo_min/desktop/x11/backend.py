"""Desktop by xwininfo, xprop, maim, xdotool, xclip.

Commands that answer wrongly with exit 0 are not used: `xdotool getwindowgeometry` and wmctrl (frame offset added
twice), `xwd -id` (paints other windows), `xdotool type` beyond ASCII, unknown key names, clicks outside the screen.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple, Optional

from ...core.cancellation import in_parallel
from ...core.errors import ErrorCode, PeekabooError
from ...core.models import App, Display, KeyChord, Permissions, Point, RecognisedText, Rect, Window
from ...core.text import clean_text
from ...system.process import run_program
from .keyboard import press_x11_key, type_x11_text
from .ocr import read_text_by_tesseract
from .window_tree import X11Node, read_x11_tree

_QUERY_S = 5.0
_CAPTURE_S = 20.0
_X11_FOCUS_S = 3.0
_BUTTONS = {"left": "1", "middle": "2", "right": "3"}
_TREE_TRIES = 5
_CLIENT_BITS = 21  # an X client's resources share the bits above
_UTF8 = {"LC_ALL": "C.UTF-8"}
_NAME_PROPERTIES = ("_NET_WM_NAME", "WM_NAME", "WM_CLASS")
_PROPERTIES = (*_NAME_PROPERTIES, "_NET_WM_PID", "WM_STATE", "_NET_WM_WINDOW_TYPE", "_NET_WM_STATE")


def ask_x(words: list[str], timeout_s: float = _QUERY_S) -> str:
    """The output of a program that asks or tells the X server. Raises WINDOW_NOT_FOUND, NO_GUI_SESSION besides."""
    done = run_program(words, timeout_s=timeout_s, accept=None, environment=_UTF8)
    if done.code == 0:
        return done.text
    said = done.stderr.strip()
    if re.search(r"open (X )?display|open X|parse display name|no display", said, re.I):
        raise PeekabooError(
            ErrorCode.NO_GUI_SESSION,
            "no X display can be opened",
            hint="set DISPLAY to a running X server, or start one: Xvfb :1 & export DISPLAY=:1",
            details=said[:300],
        )
    if re.search(r"BadWindow|BadDrawable|Bad ?Drawable|No such window|no window with", said, re.I):
        raise PeekabooError(
            ErrorCode.WINDOW_NOT_FOUND,
            "that window is gone",
            hint="list the windows again",
            details=said[:300],
        )
    raise PeekabooError(
        ErrorCode.PROGRAM_FAILED, f"{words[0]} failed with exit code {done.code}", details=said[-1000:]
    )


class X11Desktop:
    """The Desktop of an X server, by shell-outs."""

    name = "x11"
    needs = ("xwininfo", "xprop", "xdpyinfo", "maim", "xdotool", "xclip", "convert")
    uses = {"tesseract": "text recognition"}

    def permissions(self) -> Permissions:
        return Permissions()  # an X server lets every client see and act

    def denied(self, code: ErrorCode, what: str) -> PeekabooError:
        return PeekabooError(code, what)  # nothing is ever denied here

    def displays(self) -> list[Display]:
        text = ask_x(["xdpyinfo", "-ext", "XINERAMA"])
        heads = re.findall(r"head #\d+: (\d+)x(\d+) @ (-?\d+),(-?\d+)", text)
        if not heads:
            width, height = re.search(r"dimensions: +(\d+)x(\d+) pixels", text).groups()  # type: ignore[union-attr]
            heads = [(width, height, "0", "0")]
        return [
            Display(number, f"Screen {number}", Rect(float(x), float(y), float(w), float(h)))
            for number, (w, h, x, y) in enumerate(heads, 1)
        ]

    def apps(self) -> list[App]:
        windows = [one for one in self.windows() if one.app_name and one.layer == 0]
        counts = Counter((one.app_name, one.pid) for one in windows if one.is_on_screen)
        active = {(one.app_name, one.pid) for one in windows if one.is_focused}
        return [
            App(name, pid, is_active=(name, pid) in active, window_count=counts[(name, pid)])
            for name, pid in dict.fromkeys((one.app_name, one.pid) for one in windows)
        ]

    def windows(self) -> list[Window]:
        nodes = read_x11_tree(_ask_tree())
        focused = self._focused_window_id()
        found = in_parallel(lambda node: _describe(node, focused), nodes)
        return [window for window in found if window]

    def _focused_window_id(self) -> int:
        said = ask_x(["xprop", "-root", "_NET_ACTIVE_WINDOW", "_NET_SUPPORTING_WM_CHECK"])
        active = re.search(r"_NET_ACTIVE_WINDOW\(WINDOW\): window id # (0x[0-9a-f]+)", said)
        if active and int(active.group(1), 16):
            return int(active.group(1), 16)
        try:
            return int(ask_x(["xdotool", "getwindowfocus"]).strip() or 0)
        except PeekabooError as e:
            if e.code in (ErrorCode.PROGRAM_FAILED, ErrorCode.WINDOW_NOT_FOUND):
                return 0  # nothing has the focus
            raise

    def can_see_titles(self) -> bool:
        return True

    def capture_display(self, display: Display, path: Path, kind: str) -> None:
        self.capture_rect(display.bounds, path, kind)

    def capture_rect(self, rect: Rect, path: Path, kind: str) -> None:
        geometry = f"{rect.width:.0f}x{rect.height:.0f}{rect.x:+.0f}{rect.y:+.0f}"
        _photograph(["-g", geometry], path, kind)

    def capture_window(self, window: Window, path: Path, kind: str, with_shadow: bool = False) -> None:
        # maim makes a picture of an unmapped window too, a wrong one, with exit 0
        if not window.is_on_screen:
            raise PeekabooError(
                ErrorCode.CAPTURE_FAILED,
                f"window {window.window_id} is minimised or hidden",
                hint="focus it first, then photograph it",
            )
        _photograph(["-i", str(window.window_id)], path, kind)

    def activate(self, app: App) -> None:
        for window in self.windows():
            if (
                (window.app_name, window.pid) == (app.name, app.pid)
                and window.is_on_screen
                and window.layer == 0
            ):
                return self.focus(window)
        raise PeekabooError(
            ErrorCode.WINDOW_NOT_FOUND,
            f"{app.name} has no window to bring to the front",
            hint="open one first",
        )

    def focus(self, window: Window, may_click: bool = False) -> None:
        target = str(window.window_id)
        try:
            # windowactivate alone does not raise under every window manager
            ask_x(["xdotool", "windowactivate", "--sync", target, "windowraise", target], _X11_FOCUS_S)
        except PeekabooError as e:
            if e.code not in (ErrorCode.PROGRAM_FAILED, ErrorCode.TIMEOUT):
                raise
            ask_x(
                ["xdotool", "windowmap", "--sync", target, "windowraise", target, "windowfocus", target],
                _X11_FOCUS_S,
            )

    def click(self, point: Point, button: str, clicks: int) -> Optional[Point]:
        words = ["xdotool", "mousemove", "--", f"{int(point.x)}", f"{int(point.y)}", "getmouselocation"]
        said = ask_x(
            [
                *words,
                "click",
                "--repeat",
                str(clicks),
                "--delay",
                "60" if clicks > 1 else "0",
                _BUTTONS[button],
            ]
        )
        where = re.search(r"x:(-?\d+) y:(-?\d+)", said)
        return Point(float(where.group(1)), float(where.group(2))) if where else None

    def type_text(self, text: str) -> None:
        type_x11_text(text)

    def press_key(self, chord: KeyChord) -> None:
        press_x11_key(chord)

    def fit_image(
        self, source: Path, target: Path, width: int, height: int, kind: str, quality: int = 80
    ) -> None:
        to = "PNG24" if kind == "png" else "JPEG"
        # for a PNG, ImageMagick's quality is the compression: 1 is quick
        quality = quality if kind == "jpg" else 10
        words = [
            "convert",
            str(source),
            "-resize",
            f"{width}x{height}!",
            "-quality",
            str(quality),
            f"{to}:{target}",
        ]
        run_program(words, timeout_s=_CAPTURE_S)

    def read_text(self, path: Path) -> list[RecognisedText]:
        return read_text_by_tesseract(path)

    def input_backend(self) -> str:
        return "xdotool"


def _ask_tree() -> str:
    """xwininfo's walk through all windows; it fails as a whole when one closes in that moment, so again."""
    for left in reversed(range(_TREE_TRIES)):
        try:
            return ask_x(["xwininfo", "-root", "-tree"])
        except PeekabooError as e:
            if e.code is not ErrorCode.WINDOW_NOT_FOUND or not left:
                raise
    raise AssertionError("the last try returns or raises")


def _photograph(what: list[str], path: Path, kind: str) -> None:
    """By maim, to stdout: a file appears only whole. Without the cursor, as the specification wants."""
    done = run_program(
        ["maim", "--hidecursor", "-f", kind, *what], timeout_s=_CAPTURE_S, accept=None, environment=_UTF8
    )
    if done.code or not done.stdout:
        ask_x(["xdpyinfo"])  # no display at all is told as that
        raise PeekabooError(
            ErrorCode.CAPTURE_FAILED,
            "maim made no picture",
            hint="see that the window is still open and on the screen",
            details=done.stderr.strip()[-500:],
        )
    path.write_bytes(done.stdout)


def _describe(node: X11Node, focused_id: int) -> Optional[Window]:
    """What xprop and, where there is no window manager to say, xwininfo know of a window; None when it is gone."""
    try:
        said = ask_x(["xprop", "-id", str(node.window_id), *_PROPERTIES])
        properties = dict(re.findall(r"^(\w+)\(\w+\)(?: = |:\s+)(.*(?:\n\t.*)*)", said, re.M))
        state = properties.get("WM_STATE")
        bounds, is_viewable = node.bounds, bool(state and "window state: Normal" in state)
        # a name with a newline can fake the rest of its line in the tree
        is_doubtful = node.is_repeated or any("\\n" in properties.get(name, "") for name in _NAME_PROPERTIES)
        has_focus = node.window_id == focused_id
        if state is None or is_doubtful:
            bounds, is_viewable, is_popup = _ask_geometry(node.window_id)
            # a menu never becomes the active window: its client's other window is that
            has_focus = has_focus or (
                is_popup and is_viewable and node.window_id >> _CLIENT_BITS == focused_id >> _CLIENT_BITS
            )
        if bounds.width <= 1 or bounds.height <= 1:
            return None
    except PeekabooError as e:
        if e.code is ErrorCode.WINDOW_NOT_FOUND:
            return None
        raise
    pid = re.match(r"\d+", properties.get("_NET_WM_PID", ""))
    title = _texts(properties.get("_NET_WM_NAME", "")) or _texts(properties.get("WM_NAME", ""))
    names = _texts(properties.get("WM_CLASS", ""))
    if node.is_guess and not names:
        return None
    return Window(
        window_id=node.window_id,
        app_name=clean_text(names[-1] or names[0]) if names else "",
        pid=int(pid.group()) if pid else None,
        title=clean_text(title[0]) if title else "",
        bounds=bounds,
        layer=_layer(properties.get("_NET_WM_WINDOW_TYPE", ""), bool(names)),
        is_on_screen=is_viewable and "_NET_WM_STATE_HIDDEN" not in properties.get("_NET_WM_STATE", ""),
        is_focused=has_focus,
        frame=node.frame if node.frame != node.bounds and node.frame.encloses(bounds) else None,
    )


class _Geometry(NamedTuple):
    bounds: Rect
    is_viewable: bool
    is_popup: bool


def _ask_geometry(window_id: int) -> _Geometry:
    """Bounds with the border (which a photograph shows, too), whether it is mapped and has a surface, and is a menu."""
    said = ask_x(["xwininfo", "-id", str(window_id)])
    # the title stands first and may hold anything: the last value of a name is the true one
    numbers = {key: float(value) for key, value in re.findall(r"^  ([A-Z][\w -]+):\s+(-?\d+)$", said, re.M)}
    border = 2 * numbers["Border width"]
    bounds = Rect(
        numbers["Absolute upper-left X"],
        numbers["Absolute upper-left Y"],
        numbers["Width"] + border,
        numbers["Height"] + border,
    )
    is_viewable = said.rfind("Map State: IsViewable") > 0 and said.rfind("Class: InputOnly") < 0
    return _Geometry(bounds, is_viewable, said.rfind("Override Redirect State: yes") > 0)


def _layer(window_type: str, has_class: bool) -> int:
    """The window server of a Mac numbers its layers; here a type of dock, menu or desktop stands for another layer."""
    if not has_class:
        return 25
    for name, layer in (("_DOCK", 20), ("_DESKTOP", -20), ("_NOTIFICATION", 25), ("_TOOLTIP", 25)):
        if name in window_type:
            return layer
    return 0


def _texts(value: str) -> list[str]:
    """The strings of an xprop value, their escapes undone."""
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"', value)
    return [re.sub(r"\\(.)", lambda m: " " if m.group(1) in "nt" else m.group(1), part) for part in parts]

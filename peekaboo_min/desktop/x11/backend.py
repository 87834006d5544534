"""The Desktop of an X server, by maim, xdotool, xclip and server requests.

Avoid the commands that give wrong answers with exit 0: `xdotool getwindowgeometry` and wmctrl (both add the
frame's offset twice), `xwd -id` (paints other windows), `xdotool type` beyond ASCII, unknown key names,
clicks outside the screen. Modules that capture or act are imported inside the methods, because a listing, the
most frequent command, does not need them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Optional

from ...core.errors import ErrorCode, PeekabooError
from ...core.models import Act, Delivery, Display, Element, Handler, RecognisedText, Rect, Scene, Window
from ...core.settings import settings
from ..base import Desktop
from .connection import UTF8, x11_session
from .windows import shown_bounds, take_scene

_CAPTURE_S = 20.0  # maim takes milliseconds, but never ends if the X server hangs
_FOCUS_S = 3.0  # xdotool's --sync waits for ever for a window that takes no focus
_WAYLAND = (
    "a Wayland session: only programs that run through XWayland can be seen; "
    "use `peekaboo-min desktop`, or log in to an X11 session"
)


class X11Desktop(Desktop):
    """Desktop for X11; see base.Desktop for the contract."""

    name = "x11"
    needs: tuple[str, ...] = ("maim", "xdotool", "xclip", "convert")
    uses: dict[str, str] = {  # noqa: RUF012
        "tesseract": "text recognition",
        "python3": "elements (needs its module gi)",
        "gtk-launch": "opening applications",
        "xdg-mime": "opening files and addresses",
    }

    extra_tools: tuple[str, ...] = ()
    variables: tuple[str, ...] = ("DISPLAY", "XAUTHORITY")
    config_folder = "~/.config"
    has_noisy_captures = False
    capture_cost = 1

    @property
    def session(self) -> str:
        return x11_session()

    def warnings(self) -> tuple[str, ...]:
        return (_WAYLAND,) if settings().wayland_display else ()

    def snapshot(self, with_minimised: bool = False) -> Scene:
        return take_scene()  # the window manager reports minimised windows anyway

    def read_text(self, path: Path, characters: bool = False) -> list[RecognisedText]:
        from .ocr import read_characters_by_tesseract, read_text_by_tesseract

        return read_characters_by_tesseract(path) if characters else read_text_by_tesseract(path)

    def text_languages(self) -> list[str]:
        from .ocr import text_languages

        return text_languages()

    def missing_language(self, text: str) -> str:
        from .ocr import missing_language

        return missing_language(text)

    def read_elements(self, window: Window) -> list[Element]:
        from .elements import read_x11_elements

        return read_x11_elements(window)

    def find_handler(self, kind: str, target: str) -> Handler:
        from .opening import find_x11_handler

        return find_x11_handler(kind, target)

    def open(self, kind: str, target: str, handler: Handler) -> None:
        from .opening import open_by_x11

        open_by_x11(kind, target, handler)

    def capture_display(self, display: Display, path: Path, kind: str) -> None:
        self.capture_rect(display.bounds, path, kind)

    def capture_rect(self, rect: Rect, path: Path, kind: str) -> None:
        geometry = f"{rect.width:.0f}x{rect.height:.0f}{rect.x:+.0f}{rect.y:+.0f}"
        _run_maim(["-g", geometry], path, kind)

    def capture_window(
        self, window: Window, path: Path, kind: str, with_shadow: bool = False
    ) -> Optional[Rect]:
        if window.is_obscured:
            message = f"window {window.window_id} is covered; without a compositor, X11 has no pixels of it"
            hint = "focus it first, or start a compositor: xcompmgr -a &"
            raise PeekabooError(ErrorCode.CAPTURE_FAILED, message, hint)
        left, _, above, _ = window.insets
        size = window.bounds
        # cut off the shadow that GTK draws; a border belongs to the image
        part = ["-g", f"{size.width:.0f}x{size.height:.0f}+{left}+{above}"] if max(window.insets) > 0 else []
        if window.is_on_screen:
            _run_maim(["-i", str(window.window_id), *part], path, kind)
            # for a hidden window maim writes another window's pixels, with exit 0
            bounds = shown_bounds(window.window_id)
            if bounds:
                return bounds
        message = f"window {window.window_id} is minimised, hidden or on another workspace"
        raise PeekabooError(ErrorCode.CAPTURE_FAILED, message, "focus it first, then take the screenshot")

    def focus(self, window: Window, may_click: bool = False) -> None:
        from .xdotool import click_title_bar, run_xdotool

        target = str(window.window_id)
        try:
            # some window managers do not raise on windowactivate alone
            run_xdotool(["windowactivate", "--sync", target, "windowraise", target], _FOCUS_S)
        except PeekabooError as e:
            if e.code not in (ErrorCode.PROGRAM_FAILED, ErrorCode.TIMEOUT):
                raise
            argv = ["windowmap", "--sync", target, "windowraise", target, "windowfocus", target]
            run_xdotool(argv, _FOCUS_S)
            now = take_scene().find(window.window_id) if may_click else None
            if may_click and not (now and now.is_focused):
                click_title_bar(window)

    def act(self, window: Window, act: Act, stop_file: Path) -> Delivery:
        if act.points:
            from .xdotool import act_by_pointer

            return act_by_pointer(window, act)
        from .keyboard import act_by_keyboard

        return act_by_keyboard(window, act, stop_file)

    def fit_image(self, source: Path, target: Path, width: int, height: int, kind: str, quality: int) -> None:
        from ...system.process import run_program

        to = {"png": "PNG24", "jpg": "JPEG", "bmp": "BMP3"}[kind]
        # for a PNG, ImageMagick's quality is ten times the zlib level: 10 is fast
        quality = quality if kind == "jpg" else 10
        size = f"{width}x{height}!"
        argv = ["convert", str(source), "-resize", size, "-quality", str(quality), f"{to}:{target}"]
        run_program(argv, timeout_s=_CAPTURE_S)

    def input_backend(self) -> str:
        return "xdotool"


def _run_maim(target: list[str], path: Path, kind: str) -> None:
    # through stdout, so that the file appears whole; the specification excludes the cursor
    from ...system.process import run_program

    argv = ["maim", "--hidecursor", "-f", kind, *target]
    done = run_program(argv, timeout_s=_CAPTURE_S, accept=None, environment=UTF8)
    if done.code or not done.stdout:
        hint, details = "check that the window is still open and on the screen", done.stderr.strip()[-500:]
        raise PeekabooError(ErrorCode.CAPTURE_FAILED, "maim produced no image", hint, details)
    path.write_bytes(done.stdout)

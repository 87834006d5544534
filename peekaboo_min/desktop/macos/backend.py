"""Desktop by screencapture, osascript and the Swift helper."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

from ...core.errors import ErrorCode, PeekabooError
from ...core.log import log_debug
from ...core.models import (
    App,
    Delivery,
    Display,
    KeyChord,
    Permissions,
    Point,
    RecognisedText,
    Rect,
    Scene,
    Window,
)
from ...core.text import clean_text
from ...system.images import read_image_info
from ...system.process import run_program
from .keycodes import is_ansi_layout, mac_chord_character, mac_key_code, mac_key_flags, mac_modifier_words
from .osascript import run_jxa
from .permissions import permission_error
from .swift_helper import find_helper, last_build

_CAPTURE_S_ON_MAC = 20.0
_INPUT_S = 20.0
_TYPE_S_PER_CHARACTER = 0.02
_SIPS_S = 20.0
_ASK_MAC_S = 5.0
_VISION_S = 40.0
_TITLE_BAR_HALF = 10


class MacDesktop:
    """The Desktop of macOS 13 and later, by shell-outs."""

    name = "macos"
    needs: tuple[str, ...] = ("screencapture", "osascript", "sips", "ps")
    uses = {"xcode-select": "compiling the Swift helper", "xcrun": "compiling the Swift helper"}

    def __init__(self) -> None:
        # What the last list said of Screen Recording. Each list is a new process: macOS caches the answer in old ones.
        self._can_record: Optional[bool] = None
        self._is_locked = False  # as the last list of windows told

    def permissions(self) -> Permissions:
        told = self._session()
        if not told["has_session"]:
            raise _no_session()
        return Permissions(told["screen_recording"], told["accessibility"], told["automation"])

    def denied(self, code: ErrorCode, what: str) -> PeekabooError:
        return permission_error(code, what)

    session = "macos"

    def snapshot(self) -> Scene:
        windows = self._windows()
        return Scene(
            tuple(windows),
            tuple(self._apps()),
            tuple(self._displays()),
            self._can_record is not False,
            self._is_locked,
        )

    def _displays(self) -> list[Display]:
        told = run_jxa(["desktop/macos/window_list.js", "desktop/macos/displays.js"], {})
        if told["displays"] is None:
            raise _no_session()
        self._can_record = told["can_record"]
        return [
            Display(number, clean_text(one["name"]), _rect(one["bounds"]), float(one["scale"]))
            for number, one in enumerate(told["displays"], 1)
        ]

    def _apps(self) -> list[App]:
        return [
            App(
                clean_text(one["name"]),
                one["pid"],
                one["bundle_id"],
                one["is_active"],
                one["is_regular"],
                one["window_count"],
            )
            for one in run_jxa(["desktop/macos/window_list.js", "desktop/macos/apps.js"], {})["apps"]
        ]

    def _windows(self) -> list[Window]:
        told = run_jxa(["desktop/macos/window_list.js", "desktop/macos/windows.js"], {})
        if told["windows"] is None:
            raise _no_session()
        self._can_record, self._is_locked = told["can_record"], told["is_locked"]
        windows = [_window(one) for one in told["windows"]]
        focused = next(
            (
                one.window_id
                for one in windows
                if one.pid == told["frontmost_pid"] and one.is_ordinary and one.is_on_screen
            ),
            None,
        )
        return [_with_focus(one, focused) for one in windows]

    def capture_display(self, display: Display, path: Path, kind: str) -> None:
        self._screencapture(["-D", str(display.number)], path, kind)
        info = read_image_info(path)
        expected = (round(display.bounds.width * display.scale), round(display.bounds.height * display.scale))
        if info and (info.width, info.height) != expected:
            # screencapture counts the displays in another order than we do: the place is sure
            log_debug(
                f"-D {display.number} made {info.width}x{info.height}, not {expected[0]}x{expected[1]}; using -R"
            )
            self.capture_rect(display.bounds, path, kind)

    def capture_window(self, window: Window, path: Path, kind: str, with_shadow: bool = False) -> None:
        shadow = [] if with_shadow else ["-o"]  # a shadow's margin would shift every pixel
        self._screencapture([*shadow, "-l", str(window.window_id)], path, kind)

    def capture_rect(self, rect: Rect, path: Path, kind: str) -> None:
        place = ",".join(
            f"{round(number)}" for number in (rect.x, rect.y, rect.width, rect.height)
        )  # points, not pixels
        self._screencapture(["-R", place], path, kind)

    def _screencapture(self, words: list[str], path: Path, kind: str) -> None:
        if kind == "bmp":
            png = path.with_suffix(".png")
            try:
                self._screencapture(words, png, "png")
                run_program(["sips", "-s", "format", "bmp", str(png), "--out", str(path)], timeout_s=_SIPS_S)
            finally:
                png.unlink(missing_ok=True)
            return
        if self._can_record is None:
            self._can_record = self._session()["screen_recording"]
        if not self._can_record:
            # up to macOS 15 screencapture would exit 0 with a picture of the wallpaper
            raise permission_error(
                ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING, "the screen cannot be photographed"
            )
        done = run_program(
            ["screencapture", "-x", *words, "-t", kind, str(path)], timeout_s=_CAPTURE_S_ON_MAC, accept=None
        )
        if done.code or not path.is_file() or not path.stat().st_size:
            raise self._capture_error(done.stderr.strip()[-300:])

    def _capture_error(self, said: str) -> PeekabooError:
        """`could not create image` has many causes: ask for each."""
        told = self._session()
        if not told["has_session"]:
            return _no_session()
        if told["is_locked"]:
            return _locked(said)
        if not told["screen_recording"]:
            return permission_error(
                ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING, "the screen cannot be photographed"
            )
        return PeekabooError(
            ErrorCode.CAPTURE_FAILED,
            "screencapture made no picture",
            hint="the window may be minimised, closing, protected, or on another Space: bring it to the front, try again",
            details=said,
        )

    def focus(self, window: Window, may_click: bool = False) -> None:
        request = {
            "pid": window.pid,
            "window_id": window.window_id,
            "title": window.title,
            "bounds": window.bounds.as_data(),
        }
        told = self._ask_for_focus(request)
        if told["active"] and (told["front"] or told["matches"] == 1):
            return
        if may_click and told["trusted"] and told["title_bar_is_free"]:
            log_debug("the window was not raised otherwise: clicking its title bar")
            self.click(window, Point(window.bounds.centre.x, window.bounds.y + _TITLE_BAR_HALF), "left", 1)
        elif not told["trusted"] and not told["front"]:
            raise permission_error(
                ErrorCode.PERMISSION_DENIED_ACCESSIBILITY, f"one window of {window.app_name} cannot be raised"
            )

    def _ask_for_focus(self, request: dict[str, Any]) -> dict[str, Any]:
        told = run_jxa(["desktop/macos/window_list.js", "desktop/macos/focus.js"], request)
        log_debug(f"focus: {json.dumps(told)}")
        return told

    def click(
        self, window: Window, point: Point, button: str, clicks: int, modifiers: tuple[str, ...] = ()
    ) -> Delivery:
        told = self._input({"do": "click", **point.as_data(), "button": button, "clicks": clicks})
        there = Point(float(told["pointer"]["x"]), float(told["pointer"]["y"]))
        return Delivery(abs(there.x - point.x) < 2 and abs(there.y - point.y) < 2, there)

    def type_text(self, window: Window, text: str, stop_file: Path) -> None:
        self._input({"do": "type", "text": text}, _INPUT_S + len(text) * _TYPE_S_PER_CHARACTER)

    def press_key(self, window: Window, chord: KeyChord) -> None:
        character = mac_chord_character(chord)
        if character and not self._has_ansi_keyboard():
            # key codes are places: on a French keyboard cmd+a would be cmd+q. System Events knows the layout.
            self._check_unlocked()
            run_jxa(
                ["desktop/macos/keystroke.js"],
                {"text": character, "using": mac_modifier_words(chord)},
                _INPUT_S,
            )
        else:
            self._input({"do": "press", "key_code": mac_key_code(chord), "flags": mac_key_flags(chord)})

    def _has_ansi_keyboard(self) -> bool:
        words = ["defaults", "read", "com.apple.HIToolbox", "AppleCurrentKeyboardLayoutInputSourceID"]
        done = run_program(words, timeout_s=_ASK_MAC_S, accept=None)
        return done.code != 0 or is_ansi_layout(done.text)

    def _input(self, request: dict[str, Any], timeout_s: float = _INPUT_S) -> dict[str, Any]:
        """By the Swift helper where it can be had, else by JXA: the same request, the same answer."""
        self._check_unlocked()
        helper = find_helper()
        log_debug(f"input by {'the Swift helper' if helper else 'JXA'}")
        if helper:
            done = run_program(
                [str(helper)], timeout_s=timeout_s, stdin=json.dumps(request).encode("utf-8"), accept=None
            )
            told = _helper_answer(done.stdout, done.stderr, done.code)
        else:
            told = run_jxa(["desktop/macos/input.js"], request, timeout_s)
        if told["ok"]:
            return told
        if told["code"] == ErrorCode.PERMISSION_DENIED_ACCESSIBILITY.value:
            raise permission_error(ErrorCode.PERMISSION_DENIED_ACCESSIBILITY, "nothing was clicked or typed")
        raise PeekabooError(
            ErrorCode(told["code"]), clean_text(told["message"], 500), hint="see peekaboo-min doctor"
        )

    def fit_image(
        self, source: Path, target: Path, width: int, height: int, kind: str, quality: int = 80
    ) -> None:
        form = (
            ["-s", "format", "png"]
            if kind == "png"
            else ["-s", "format", "jpeg", "-s", "formatOptions", str(quality)]
        )
        words = ["sips", "-z", str(height), str(width), *form, str(source), "--out", str(target)]
        done = run_program(words, timeout_s=_SIPS_S, accept=None)
        # sips does not always say by its exit code that it failed
        if done.code or not target.is_file() or read_image_info(target) is None:
            raise PeekabooError(
                ErrorCode.SIPS_ERROR,
                "sips could not resize the picture",
                hint="see the details",
                details=done.stderr[-300:],
            )

    def read_text(self, path: Path) -> list[RecognisedText]:
        info = read_image_info(path)
        if info is None:
            raise PeekabooError(
                ErrorCode.INVALID_ARGUMENT, f"{path} is not an image", hint="give a png or jpg"
            )
        told = run_jxa(["desktop/macos/read_text.js"], {"path": str(path)}, _VISION_S)
        return [
            RecognisedText(
                clean_text(one["text"], 1000),
                Rect(
                    one["x"] * info.width,
                    one["y"] * info.height,
                    one["width"] * info.width,
                    one["height"] * info.height,
                ),
                float(one["confidence"]),
            )
            for one in told["lines"]
        ]

    def input_backend(self) -> str:
        built = last_build()
        if built is None:
            return "not chosen yet: the Swift helper is compiled at the first click, or by doctor --compile"
        return f"Swift helper {built.path}" if built.path else f"JXA (no Swift helper: {built.reason})"

    def _check_unlocked(self) -> None:
        if self._is_locked:
            raise _locked("nothing was clicked or typed")

    def _session(self) -> dict[str, Any]:
        return run_jxa(["desktop/macos/window_list.js", "desktop/macos/permissions.js"], {})


def _helper_answer(stdout: bytes, stderr: str, code: int) -> dict[str, Any]:
    try:
        return dict(json.loads(stdout))
    except ValueError as e:
        raise PeekabooError(
            ErrorCode.INTERNAL_SWIFT_ERROR,
            f"the Swift helper ended with exit code {code} and no answer",
            hint="peekaboo-min doctor --compile builds it anew",
            details=stderr.strip()[-300:],
        ) from e


def _locked(details: str) -> PeekabooError:
    return PeekabooError(ErrorCode.SCREEN_LOCKED, "the screen is locked", hint="unlock it", details=details)


def _no_session() -> PeekabooError:
    return PeekabooError(
        ErrorCode.NO_GUI_SESSION,
        "there is no GUI session: the window server tells nothing",
        hint="run this in a Terminal of the logged-in user, not over ssh or from a daemon",
    )


def _rect(told: dict[str, float]) -> Rect:
    return Rect(float(told["x"]), float(told["y"]), float(told["width"]), float(told["height"]))


def _window(one: dict[str, Any]) -> Window:
    return Window(
        window_id=int(one["id"]),
        app_name=clean_text(one["app"]),
        pid=one["pid"],
        title=one["title"],  # as it is: two windows may differ in what a person does not see
        bounds=_rect(one["bounds"]),
        bundle_id=one["bundle_id"],
        layer=int(one["layer"]),
        alpha=float(one["alpha"]),
        is_on_screen=bool(one["on_screen"]),
    )


def _with_focus(window: Window, focused_id: Optional[int]) -> Window:
    return replace(window, is_focused=True) if window.window_id == focused_id else window

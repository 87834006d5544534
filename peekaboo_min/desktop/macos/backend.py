"""Desktop by screencapture, osascript and the Swift helper."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Optional

from ...core.cancellation import uninterrupted
from ...core.errors import ErrorCode, PeekabooError, invalid
from ...core.log import log_debug
from ...core.models import (
    Act,
    App,
    Delivery,
    Display,
    Element,
    Handler,
    KeyChord,
    Permissions,
    Point,
    RecognisedText,
    Rect,
    Scene,
    Window,
)
from ...core.text import clean_text
from ...system.files import held_locks
from ...system.images import read_image_info
from ...system.process import run_program
from ..matching import find_app
from .input import act as post
from .input import act_at_pointer, chord_request, mac_modifier_flags, target_of
from .osascript import WINDOW_SOURCES, no_session_error, permission_error, run_jxa, screen_locked_error
from .swift_helper import find_helper, last_build

_S_PER_CHARACTER = 0.1
_S_PER_PRESS = _S_PER_NOTCH = 0.5
_LONGEST_HOLD_MS = 10_000
_CAPTURE_S = _SIPS_S = _ELEMENTS_S = _OPEN_S = 20.0
_VISION_S = 40.0
_LINE = 12.0  # elements whose middles are within as many points are read from left to right
_TITLE_BAR_HALF = 10


class MacDesktop:
    """The Desktop of macOS 13 and later, by other programs. Keeps nothing between two calls."""

    name = "macos"
    session = "macos"
    needs: tuple[str, ...] = ("screencapture", "osascript", "sips", "ps")
    uses: dict[str, str] = {  # noqa: RUF012 (a Protocol's attribute is no ClassVar)
        "xcode-select": "compiling the Swift helper",
        "xcrun": "compiling the Swift helper",
    }

    def permissions(self) -> Permissions:
        grants = _grants()
        return Permissions(grants["screen_recording"], grants["accessibility"], _may_automate_keynote())

    def denied(self, code: ErrorCode, what: str) -> PeekabooError:
        return permission_error(code, what)

    def snapshot(self) -> Scene:
        scene = run_jxa([*WINDOW_SOURCES, "desktop/macos/snapshot.js"], {})
        if scene["windows"] is None:
            raise no_session_error()
        displays = _displays(scene["displays"])
        windows = [_window(row, scene["can_record"], displays) for row in scene["windows"]]
        own = [window for window in windows if window.pid == scene["frontmost_pid"]]
        # an app may keep invisible and tiny windows in front of the one that has the keyboard
        focused = next((window for window in own if window.is_on_screen and window.is_ordinary), None)
        return Scene(
            windows=tuple(window._replace(is_focused=window is focused) for window in windows),
            apps=tuple(App(**{**row, "name": clean_text(row["name"])}) for row in scene["apps"]),
            displays=displays,
            can_see_titles=scene["can_record"],
            is_locked=scene["is_locked"],
        )

    def capture_display(self, display: Display, path: Path, kind: str) -> None:
        _check_may_record()
        # screencapture may count the displays in another order than we do: the rectangle is sure
        by_number, by_place = ["-D", str(display.number)], _rectangle(display.bounds)
        first, second = (by_place, by_number) if display.has_twin else (by_number, by_place)
        self._screencapture(first, path, kind)
        info = read_image_info(path)
        expected = (round(display.bounds.width * display.scale), round(display.bounds.height * display.scale))
        if info and (info.width, info.height) != expected:
            log_debug(f"{first} made {info.width}x{info.height}, not {expected}; using {second}")
            self._screencapture(second, path, kind)

    def capture_window(
        self, window: Window, path: Path, kind: str, with_shadow: bool = False
    ) -> Optional[Rect]:
        if window.title is None:
            # the listing saw no title, so Screen Recording is not granted: up to macOS 15 screencapture would
            # exit 0 with a screenshot of the wallpaper
            raise _may_not_record()
        shadow = [] if with_shadow else ["-o"]  # a shadow's margin would shift every pixel
        self._screencapture([*shadow, "-l", str(window.window_id)], path, kind)
        return None

    def capture_rect(self, rect: Rect, path: Path, kind: str) -> None:
        _check_may_record()
        self._screencapture(_rectangle(rect), path, kind)

    def _screencapture(self, options: list[str], path: Path, kind: str) -> None:
        argv = ["screencapture", "-x", *options, "-t", kind, str(path)]
        done = run_program(argv, timeout_s=_CAPTURE_S, accept=None)
        if done.code or not path.is_file() or not path.stat().st_size:
            raise _capture_error(done.stderr.strip()[-300:])

    def focus(self, window: Window, may_click: bool = False) -> None:
        if window.is_popup:
            return  # whatever comes to the front would close it
        sources = [*WINDOW_SOURCES, "desktop/macos/focus.js"]
        state = run_jxa(sources, {"window": target_of(window)}, pass_fds=held_locks())
        log_debug(f"focus: {json.dumps(state)}")
        if state["is_active"] and (state["is_front"] or state["matches"] == 1):
            return
        if may_click and state["is_trusted"] and state["title_bar_is_free"]:
            log_debug("the window was not raised otherwise: clicking its title bar")
            bar = Point(window.bounds.centre.x, window.bounds.y + _TITLE_BAR_HALF)
            self._act_by_pointer(window, Act("click", (bar,)))
        elif not state["is_trusted"] and not state["is_front"]:
            raise permission_error(
                ErrorCode.PERMISSION_DENIED_ACCESSIBILITY, f"one window of {window.app_name} cannot be raised"
            )

    def act(self, window: Window, act: Act, stop_file: Path) -> Delivery:
        if act.points:
            return self._act_by_pointer(window, act)
        stop = str(stop_file)
        if act.kind == "press":
            self._press(window, act, stop)
            return Delivery(True)
        if act.replace:
            self._press(window, Act("press", chord=KeyChord("a", ("cmd",))), stop)
        if act.text:
            request = {"do": "type", "text": act.text, "stop_file": stop, "delay_ms": act.delay_ms}
            post(window, request, len(act.text) * (_S_PER_CHARACTER + act.delay_ms / 1000))
        else:
            self._press(window, Act("press", chord=KeyChord("backspace")), stop)
        return Delivery(True)

    def _act_by_pointer(self, window: Window, act: Act) -> Delivery:
        start = act.points[0]
        if act.kind == "scroll":
            request = {"do": "scroll", "direction": act.direction, "amount": act.amount}
            return act_at_pointer(window, start, request, act.amount * _S_PER_NOTCH)
        if act.kind == "drag":
            end = act.points[1]
            request = {"do": "drag", "to_x": end.x, "to_y": end.y, "button": act.button}
            with uninterrupted():  # a program that is killed in the middle would leave the button down
                return act_at_pointer(window, start, request)
        if act.kind == "move_pointer":
            return act_at_pointer(window, start, {"do": "move"})
        request = {"do": "click", "button": act.button, "clicks": act.clicks}
        request["flags"] = mac_modifier_flags(act.modifiers)
        with uninterrupted():  # it is held for a moment
            return act_at_pointer(window, start, request)

    def _press(self, window: Window, act: Act, stop_file: str) -> None:
        hold_ms, repeat = act.hold_ms, act.repeat
        if hold_ms * repeat > _LONGEST_HOLD_MS:
            raise invalid(
                f"{repeat} presses of {hold_ms} ms are too long", hint="hold it for at most 10 seconds in all"
            )
        request = {"do": "press", **chord_request(act.chord), "hold_ms": hold_ms, "repeat": repeat}
        request["stop_file"] = stop_file
        with uninterrupted() if hold_ms else nullcontext():  # a killed program would leave the key down
            post(window, request, repeat * (_S_PER_PRESS + hold_ms / 1000))

    def read_elements(self, window: Window) -> list[Element]:
        sources = [*WINDOW_SOURCES, "desktop/macos/elements.js"]
        answer = run_jxa(sources, {"window": target_of(window)}, _ELEMENTS_S)
        if not answer["is_trusted"]:
            raise permission_error(
                ErrorCode.PERMISSION_DENIED_ACCESSIBILITY, f"the elements of {window.app_name} cannot be read"
            )
        if not answer["elements"]:
            raise _no_elements(window, answer["is_found"], answer["is_hung"])
        elements = []
        for row in answer["elements"]:
            name, value = clean_text(row["name"]), clean_text(row["value"], 1000)
            elements.append(Element(row["role"], name, value, tuple(row["states"]), _rect(row)))
        return sorted(elements, key=lambda element: (round(element.box.centre.y / _LINE), element.box.x))

    def find_handler(self, kind: str, target: str) -> Handler:
        answer = run_jxa([WINDOW_SOURCES[0], "desktop/macos/handler.js"], {"kind": kind, "target": target})
        found = answer["found"] or (_installed_app(target, answer["installed"]) if kind == "app" else None)
        if found is None:
            raise PeekabooError(
                ErrorCode.APP_NOT_FOUND,
                f"no application is known to open {target[:200]}",
                hint="name an application, or choose one for it in the Finder (Get Info > Open with)",
            )
        entry = found["bundle_id"] or found["path"]
        return Handler(clean_text(found["name"]), entry, found["bundle_id"])

    def open(self, kind: str, target: str, handler: Handler) -> None:
        # by the application that was asked about, not by whatever the system would choose meanwhile
        opener = ["-b" if handler.bundle_id else "-a", handler.entry]
        argv = ["open", *opener, *([] if kind == "app" else [target])]
        done = run_program(argv, timeout_s=_OPEN_S, accept=None)
        if done.code:
            raise PeekabooError(
                ErrorCode.PROGRAM_FAILED,
                f"{handler.app_name} could not be opened",
                hint="open it by hand once, macOS may ask something first",
                details=done.stderr.strip()[-300:],
            )

    def fit_image(
        self, source: Path, target: Path, width: int, height: int, kind: str, quality: int = 80
    ) -> None:
        form = ["-s", "format", "jpeg" if kind == "jpg" else kind]
        if kind == "jpg":
            form += ["-s", "formatOptions", str(quality)]
        argv = ["sips", "-z", str(height), str(width), *form, str(source), "--out", str(target)]
        done = run_program(argv, timeout_s=_SIPS_S, accept=None)
        # the exit code of sips does not always show that it failed
        if done.code or not target.is_file() or read_image_info(target) is None:
            raise PeekabooError(
                ErrorCode.SIPS_ERROR,
                "sips could not resize the image",
                hint="check that the disk has free space, then try again",
                details=done.stderr.strip()[-300:],
            )

    def read_text(self, path: Path) -> list[RecognisedText]:
        return self._recognise(path, False)

    def read_characters(self, path: Path) -> list[RecognisedText]:
        return self._recognise(path, True)

    def _recognise(self, path: Path, characters: bool) -> list[RecognisedText]:
        info = read_image_info(path)
        if info is None:
            raise invalid(f"{path} is not an image", hint="give a png or jpg")
        width, height = info.width, info.height
        asked = {"path": str(path), "characters": characters}
        answer = run_jxa(["desktop/macos/read_text.js"], asked, _VISION_S)
        return [
            RecognisedText(
                clean_text(row["text"], 1000),
                Rect(row["x"] * width, row["y"] * height, row["width"] * width, row["height"] * height),
                float(row["confidence"]),
            )
            for row in answer["lines"]
        ]

    def input_backend(self) -> str:
        helper = find_helper()
        if helper:
            return f"Swift helper {helper}"
        built = last_build()
        if built and built.reason:
            return f"JXA (no Swift helper: {built.reason})"
        return "JXA (the Swift helper is not compiled: doctor --compile does it, and a server by itself)"


def _displays(screens: list[dict[str, Any]]) -> tuple[Display, ...]:
    """In the order of NSScreen. The main one's number is documented, and needs no proof by its place."""
    found = [
        Display(0, clean_text(screen["name"]), _rect(screen["bounds"]), float(screen["scale"]))
        for screen in screens
    ]
    sizes = [
        (display.bounds.width * display.scale, display.bounds.height * display.scale) for display in found
    ]
    return tuple(
        display._replace(number=number, has_twin=number > 1 and sizes.count(sizes[number - 1]) > 1)
        for number, display in enumerate(found, 1)
    )


def _no_elements(window: Window, is_found: bool, is_hung: bool) -> PeekabooError:
    if is_hung:
        return PeekabooError(
            ErrorCode.TIMEOUT,
            f"{window.app_name} does not answer accessibility in time",
            hint="check whether it hangs or shows a dialog; then try again",
        )
    reason = (
        "offers no elements" if is_found else "is not known to accessibility, or not to be told from another"
    )
    return PeekabooError(
        ErrorCode.NO_ELEMENTS,
        f"window {window.window_id} of {window.app_name} {reason}",
        hint="use find_text, or a screenshot and pixels",
    )


def _installed_app(name: str, installed: list[dict[str, Any]]) -> dict[str, Any]:
    """Raises APP_NOT_FOUND, AMBIGUOUS_APP_IDENTIFIER."""
    apps = {App(clean_text(row["name"]), bundle_id=row["bundle_id"]): row for row in installed}
    return apps[find_app(name.strip().removesuffix(".app"), list(apps), "installed")]


def _grants() -> dict[str, Any]:
    """What permissions.js answers. Raises NO_GUI_SESSION."""
    grants = run_jxa([WINDOW_SOURCES[0], "desktop/macos/permissions.js"], {})
    if not grants["has_session"]:
        raise no_session_error()
    return grants


def _may_automate_keynote() -> Optional[bool]:
    # in a child of its own: a crash or a hang there says nothing about the other grants
    try:
        answer: Optional[bool] = run_jxa(["desktop/macos/automation.js"], {})["automation"]
        return answer
    except PeekabooError as e:
        if e.code in (ErrorCode.CANCELLED, ErrorCode.MISSING_PROGRAM):
            raise
        log_debug(f"whether Keynote may be controlled is not known: {e.message}")
        return None


def _check_may_record() -> None:
    # up to macOS 15 screencapture would exit 0 with a screenshot of the wallpaper
    if not _grants()["screen_recording"]:
        raise _may_not_record()


def _capture_error(details: str) -> PeekabooError:
    """`could not create image` has many causes: ask about each."""
    grants = _grants()
    if grants["is_locked"]:
        return screen_locked_error(details)
    if not grants["screen_recording"]:
        return _may_not_record()
    return PeekabooError(
        ErrorCode.CAPTURE_FAILED,
        "screencapture made no image",
        hint="the window may be minimised, closing, protected, or on another Space: bring it to the front, "
        "then try again",
        details=details,
    )


def _may_not_record() -> PeekabooError:
    return permission_error(ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING, "no screenshot can be taken")


def _rectangle(rect: Rect) -> list[str]:
    """In points, not in pixels."""
    return ["-R", ",".join(f"{round(number)}" for number in (rect.x, rect.y, rect.width, rect.height))]


def _rect(bounds: dict[str, float]) -> Rect:
    return Rect(float(bounds["x"]), float(bounds["y"]), float(bounds["width"]), float(bounds["height"]))


def _window(listed: dict[str, Any], can_record: bool, displays: Sequence[Display]) -> Window:
    title: Optional[str] = listed["title"]  # as it is: two windows may differ in what a person does not see
    same = ("pid", "bundle_id", "layer", "alpha", "kind", "parent_id", "is_modal", "is_minimised")
    bounds = _rect(listed["bounds"])
    scales = [display.scale for display in displays if display.bounds.contains(bounds.centre)]
    return Window(
        window_id=listed["id"],
        app_name=clean_text(listed["app"]),
        title=title or "" if can_record else title,
        bounds=bounds,
        scale=[*scales, *(display.scale for display in displays), 1.0][0],
        is_on_screen=listed["on_screen"],
        identity=str(listed["pid"]),
        is_obscured=listed["is_protected"],
        **{name: listed[name] for name in same},
    )

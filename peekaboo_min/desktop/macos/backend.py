"""Desktop by screencapture, osascript and the Swift helper."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional, cast

from ...core.errors import ErrorCode, PeekabooError, invalid, screen_locked
from ...core.log import log_debug
from ...core.models import (
    Act,
    App,
    Delivery,
    Display,
    Element,
    Handler,
    Point,
    RecognisedText,
    Rect,
    Scene,
    Window,
)
from ...core.text import clean_text
from ...system.files import held_locks
from ...system.images import read_image_info
from ...system.process import ProgramTimeout, run_program
from ..matching import find_app
from .input import perform, target_of
from .osascript import WINDOW_SOURCES, mac_error, permission_error, run_jxa
from .swift_helper import find_helper, last_failure

_CAPTURE_S = _SIPS_S = _ELEMENTS_S = _OPEN_S = 20.0
_VISION_S = 40.0
_LINE = 12.0  # elements whose middles are within as many points are read from left to right
_TITLE_BAR_HALF = 10
# From macOS 15 on it is asked once a month.
_PICKER = 'answer what macOS may be asking: whether to "bypass the private window picker"; then try again'
_NO_SESSION = "there is no GUI session: the window server answers nothing"


class MacDesktop:
    """The Desktop of macOS 13 and later, by other programs. Keeps nothing between two calls."""

    name = "macos"
    session = "macos"
    needs: tuple[str, ...] = ("screencapture", "osascript", "sips", "ps")
    uses: dict[str, str] = {  # noqa: RUF012 (a Protocol's attribute is no ClassVar)
        "xcode-select": "compiling the Swift helper",
        "xcrun": "compiling the Swift helper",
    }

    def permissions(self) -> dict[ErrorCode, Optional[bool]]:
        grants = _grants()
        return {
            ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING: grants["screen_recording"],
            ErrorCode.PERMISSION_DENIED_ACCESSIBILITY: grants["accessibility"],
            ErrorCode.PERMISSION_DENIED_AUTOMATION: _may_automate_keynote(),
        }

    def denied(self, code: ErrorCode, what: str) -> PeekabooError:
        return permission_error(code, what)

    def snapshot(self, with_minimised: bool = False) -> Scene:
        scene = run_jxa([*WINDOW_SOURCES, "desktop/macos/snapshot.js"], {"with_minimised": with_minimised})
        if scene["windows"] is None:
            raise mac_error(ErrorCode.NO_GUI_SESSION, _NO_SESSION)
        displays = tuple(
            Display(number, clean_text(row["name"]), _rect(row["bounds"]), float(row["scale"]))
            for number, row in enumerate(scene["displays"], 1)
        )
        windows = [_window(row, scene["can_record"], displays) for row in scene["windows"]]
        frontmost = [window for window in windows if window.pid == scene["frontmost_pid"]]
        # an app may keep invisible and tiny windows in front of the one that has the keyboard
        focused = next((window for window in frontmost if window.is_on_screen and window.is_ordinary), None)
        return Scene(
            windows=tuple(window._replace(is_focused=window is focused) for window in windows),
            apps=tuple(App(**{**row, "name": clean_text(row["name"])}) for row in scene["apps"]),
            displays=displays,
            can_see_titles=scene["can_record"],
            is_locked=scene["is_locked"],
        )

    def capture_display(self, display: Display, path: Path, kind: str) -> None:
        _check_may_capture()
        # only the main display's number is documented; screencapture may count the others as we do not
        self._screencapture(["-D", "1"] if display.is_main else _rectangle(display.bounds), path, kind)

    def capture_window(
        self, window: Window, path: Path, kind: str, with_shadow: bool = False
    ) -> Optional[Rect]:
        if window.title is None:
            _check_may_capture()  # the listing was made without Screen Recording
        shadow = [] if with_shadow else ["-o"]  # a shadow's margin would shift every pixel
        self._screencapture([*shadow, "-l", str(window.window_id)], path, kind)
        return None

    def capture_rect(self, rect: Rect, path: Path, kind: str) -> None:
        _check_may_capture()
        self._screencapture(_rectangle(rect), path, kind)

    def _screencapture(self, options: list[str], path: Path, kind: str) -> None:
        argv = ["screencapture", "-x", *options, "-t", kind, str(path)]
        try:
            done = run_program(argv, timeout_s=_CAPTURE_S, accept=None)
        except ProgramTimeout as e:
            raise PeekabooError(e.code, e.message, _PICKER, e.details) from e
        if done.code or not path.is_file():
            details = done.stderr.strip()[-300:]
            is_certain = _check_may_capture(details)
            hint = "it may be minimised, closing, protected, or on another Space: bring it to the front"
            if not is_certain:
                denied = self.denied(ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING, "")
                hint = f"macOS says that it may, but shows no titles, as for an older copy: {denied.hint}"
            raise PeekabooError(ErrorCode.CAPTURE_FAILED, "screencapture made no image", hint, details)

    def focus(self, window: Window, may_click: bool = False) -> None:
        if window.is_popup:
            return  # whatever comes to the front would close it
        sources = [*WINDOW_SOURCES, "desktop/macos/focus.js"]
        state = run_jxa(sources, {"window": target_of(window)}, pass_fds=held_locks())
        log_debug(f"focus: {json.dumps(state)}")
        if state["is_active"] and (state["is_front"] or state["matches"] == 1):
            return
        if may_click and state["is_trusted"]:
            bar = Point(window.bounds.centre.x, window.bounds.y + _TITLE_BAR_HALF)
            perform(window, Act("click", (bar,)))
        elif not state["is_trusted"] and not state["is_front"]:
            what = f"one window of {window.app_name} cannot be raised"
            raise permission_error(ErrorCode.PERMISSION_DENIED_ACCESSIBILITY, what)

    def act(self, window: Window, act: Act, stop_file: Path) -> Delivery:
        return perform(window, act, stop_file)

    def read_elements(self, window: Window) -> list[Element]:
        sources = [*WINDOW_SOURCES, "desktop/macos/elements.js"]
        answer = run_jxa(sources, {"window": target_of(window)}, _ELEMENTS_S)
        named = f"window {window.window_id} of {window.app_name}"
        if not answer["is_trusted"]:
            what = f"the elements of {named} cannot be read"
            raise permission_error(ErrorCode.PERMISSION_DENIED_ACCESSIBILITY, what)
        if not answer["elements"] and answer["is_hung"]:
            raise mac_error(ErrorCode.TIMEOUT, f"{window.app_name} does not answer accessibility in time")
        if not answer["elements"]:
            reason = "offers no elements" if answer["is_found"] else "is not to be told from another"
            hint = "use find_text, or a screenshot and pixels"
            raise PeekabooError(ErrorCode.NO_ELEMENTS, f"{named} {reason}", hint)
        elements = []
        for row in answer["elements"]:
            name, value = clean_text(row["name"]), clean_text(row["value"], 1000)
            elements.append(Element(row["role"], name, value, tuple(row["states"]), _rect(row)))
        return sorted(elements, key=lambda element: (round(element.box.centre.y / _LINE), element.box.x))

    def find_handler(self, kind: str, target: str) -> Handler:
        answer = run_jxa([WINDOW_SOURCES[0], "desktop/macos/handler.js"], {"kind": kind, "target": target})
        app = answer["found"]
        if not app and kind == "app":
            apps = {
                App(clean_text(row["name"]), bundle_id=row["bundle_id"]): row for row in answer["installed"]
            }
            app = apps[find_app(target.strip().removesuffix(".app"), list(apps), "installed")]
        if app is None:
            message = f"no application is known to open {target[:200]}"
            hint = "name an application, or choose one for it in the Finder (Get Info > Open with)"
            raise PeekabooError(ErrorCode.APP_NOT_FOUND, message, hint)
        entry = app["bundle_id"] or app["path"]
        return Handler(clean_text(app["name"]), entry, app["bundle_id"])

    def open(self, kind: str, target: str, handler: Handler) -> None:
        # by the application that was asked about, not by whatever the system would choose meanwhile
        argv = ["open", "-b" if handler.bundle_id else "-a", handler.entry]
        argv += [] if kind == "app" else [target]
        run_program(argv, timeout_s=_OPEN_S)

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
            message, code = "sips could not resize the image", ErrorCode.SIPS_ERROR
            raise PeekabooError(code, message, code.next_step, done.stderr.strip()[-300:])

    def read_text(self, path: Path, characters: bool = False) -> list[RecognisedText]:
        info = read_image_info(path)
        if info is None:
            raise invalid(f"{path} is not an image", hint="give a png or jpg")
        request = {"path": str(path), "characters": characters}
        answer = run_jxa(["desktop/macos/read_text.js"], request, _VISION_S)
        (width, height), lines = info[1:], []
        for row in answer["lines"]:
            box = Rect(row["x"] * width, row["y"] * height, row["width"] * width, row["height"] * height)
            lines.append(RecognisedText(clean_text(row["text"], 1000), box, float(row["confidence"])))
        return lines

    def input_backend(self) -> str:
        if helper := find_helper():
            return f"Swift helper {helper}"
        reason = last_failure() or "doctor --compile makes it, and a server by itself"
        return f"JXA (no Swift helper: {reason})"


def _grants() -> dict[str, Any]:
    """What permissions.js answers. Raises NO_GUI_SESSION."""
    grants = run_jxa([WINDOW_SOURCES[0], "desktop/macos/permissions.js"], {})
    if not grants["has_session"]:
        raise mac_error(ErrorCode.NO_GUI_SESSION, _NO_SESSION)
    return grants


def _may_automate_keynote() -> Optional[bool]:
    # in a child of its own: a crash or a hang there says nothing about the other grants
    try:
        return cast(Optional[bool], run_jxa(["desktop/macos/automation.js"], {})["automation"])
    except PeekabooError as e:
        if e.code in (ErrorCode.CANCELLED, ErrorCode.MISSING_PROGRAM):
            raise
        log_debug(f"whether Keynote may be controlled is not known: {e.message}")
        return None


def request_grants() -> None:
    """Let macOS ask the person at the screen for Screen Recording and Accessibility."""
    run_jxa([WINDOW_SOURCES[0], "desktop/macos/request.js"], {})


def _check_may_capture(details: str = "") -> bool:
    """Whether the grant is certain. Raises SCREEN_LOCKED; PERMISSION_DENIED_SCREEN_RECORDING, without which
    screencapture would exit 0 with a screenshot of the wallpaper, up to macOS 15.
    """
    grants = _grants()
    if grants["is_locked"]:
        raise screen_locked("no screenshot was taken", details)
    if grants["screen_recording"] is False:
        raise permission_error(ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING, "no screenshot can be taken")
    return bool(grants["screen_recording"])


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
        is_obscured=listed["is_protected"],
        **{name: listed[name] for name in same},
    )

"""The Desktop of macOS, by screencapture, osascript and the Swift helper."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, Optional, cast

from ...core.errors import ErrorCode, PeekabooError, invalid, screen_locked
from ...core.log import log_debug
from ...core.models import Act, App, Display, Element, Handler, Point, RecognisedText, Rect, Scene, Window
from ...core.text import clean_text
from ...system.files import file_lock, held_locks
from ...system.image_files import whole_image
from ...system.process import ProgramTimeout, run_program
from ..base import VALUE_LENGTH, Desktop
from ..matching import find_app
from .input import perform, window_argument
from .osascript import WINDOW_SOURCES, mac_error, permission_error, request_notice, run_jxa
from .swift_helper import build_helper, build_in_background, find_helper, last_failure

_PROGRAM_S = 20.0  # a screenshot takes less than 1 s, but up to 20 s beside a screen recorder
_NO_SESSION = "there is no GUI session: the window server does not answer"


class MacDesktop(Desktop):
    """The Desktop of macOS 13 and later. Keeps no state between calls."""

    name = "macos"
    session = "macos"
    needs: tuple[str, ...] = ("screencapture", "osascript", "sips", "ps")
    uses: dict[str, str] = {  # noqa: RUF012 (the protocol does not declare a ClassVar)
        "xcode-select": "compiling the Swift helper",
        "xcrun": "compiling the Swift helper",
    }
    extra_tools: tuple[str, ...] = ("keynote", "exec")
    variables: tuple[str, ...] = ()
    config_folder = "~/Library/Application Support"
    has_noisy_captures = True
    capture_cost = 2  # macOS 26 flashes the screen at each capture
    denied = staticmethod(permission_error)
    act = staticmethod(perform)

    def permissions(self) -> dict[ErrorCode, Optional[bool]]:
        grants = _grants()
        return {
            ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING: grants["screen_recording"],
            ErrorCode.PERMISSION_DENIED_ACCESSIBILITY: grants["accessibility"],
            ErrorCode.PERMISSION_DENIED_AUTOMATION: _may_automate_keynote(),
        }

    def prepare(self, in_background: bool) -> None:
        if in_background:
            build_in_background()
        else:
            build_helper(is_forced=True)

    def request_permissions(self, announce: Callable[[str], None]) -> None:
        announce(request_notice())
        run_jxa([WINDOW_SOURCES[0], "desktop/macos/request.js"], {})

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
        # an app may have invisible or tiny windows in front of the one with the keyboard focus
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
        # number 1, the main display, is documented; the order of the others may differ from ours
        self._screencapture(["-D", "1"] if display.is_main else _rect_option(display.bounds), path, kind)

    def capture_window(
        self, window: Window, path: Path, kind: str, with_shadow: bool = False
    ) -> Optional[Rect]:
        if window.title is None:
            _check_may_capture()  # the listing ran without Screen Recording
        shadow = [] if with_shadow else ["-o"]  # the shadow's margin would shift every pixel
        # without attached windows (-a), such as sheets: they would change the image's size
        self._screencapture(["-a", *shadow, "-l", str(window.window_id)], path, kind)
        return None

    def capture_rect(self, rect: Rect, path: Path, kind: str) -> None:
        _check_may_capture()
        self._screencapture(_rect_option(rect), path, kind)

    def _screencapture(self, options: list[str], path: Path, kind: str) -> None:
        argv = ["screencapture", "-x", *options, "-t", kind, str(path)]
        try:
            # macOS takes concurrent captures one after the other, each slower than alone (macshot#348)
            with file_lock("capture.lock", _PROGRAM_S, "screencapture"):
                done = run_program(argv, timeout_s=_PROGRAM_S, accept=None)
        except ProgramTimeout as e:
            hint = 'answer macOS if it asks to "bypass the private window picker" (monthly since macOS 15)'
            raise PeekabooError(e.code, e.message, f"stop any screen recorder, and {hint}", e.details) from e
        if done.code or not path.is_file():
            details = done.stderr.strip()[-300:]
            is_certain = _check_may_capture(details)
            hint = "a window may be minimised, closing, protected or on another Space; bring it to the front"
            if not is_certain:
                denied = self.denied(ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING, "")
                hint = "macOS reports the permission as granted but hides window titles; "
                hint += f"it may belong to an older copy of the app: {denied.hint}"
            raise PeekabooError(ErrorCode.CAPTURE_FAILED, "screencapture wrote no image", hint, details)

    def focus(self, window: Window, may_click: bool = False) -> None:
        if window.is_popup:
            return  # raising any window would close it
        sources = [*WINDOW_SOURCES, "desktop/macos/focus.js"]
        state = run_jxa(sources, {"window": window_argument(window)}, pass_fds=held_locks())
        log_debug(f"focus: {json.dumps(state)}")
        if state["is_active"] and (state["is_front"] or state["matches"] == 1):
            return
        if may_click and state["is_trusted"]:
            title_bar = Point(window.bounds.centre.x, window.bounds.y + 10)
            perform(window, Act("click", (title_bar,)))
        elif not state["is_trusted"] and not state["is_front"]:
            what = f"a single window of {window.app_name} cannot be raised"
            raise permission_error(ErrorCode.PERMISSION_DENIED_ACCESSIBILITY, what)

    def read_elements(self, window: Window) -> list[Element]:
        sources = [*WINDOW_SOURCES, "desktop/macos/elements.js"]
        reply = run_jxa(sources, {"window": window_argument(window)}, _PROGRAM_S)
        label = f"window {window.window_id} of {window.app_name}"
        if not reply["is_trusted"]:
            what = f"the elements of {label} cannot be read"
            raise permission_error(ErrorCode.PERMISSION_DENIED_ACCESSIBILITY, what)
        if not reply["elements"] and reply["is_hung"]:
            message = f"{window.app_name} did not answer accessibility requests in time"
            raise mac_error(ErrorCode.TIMEOUT, message)
        if not reply["elements"]:
            is_found = reply["is_found"]
            problem = "has no elements" if is_found else "has no unique match in the accessibility tree"
            raise PeekabooError(ErrorCode.NO_ELEMENTS, f"{label} {problem}")
        elements = []
        for row in reply["elements"]:
            name, value = clean_text(row["name"]), clean_text(row["value"], VALUE_LENGTH)
            elements.append(Element(row["role"], name, value, tuple(row["states"]), _rect(row)))
        # in reading order, by lines of 12 points
        return sorted(elements, key=lambda element: (round(element.box.centre.y / 12), element.box.x))

    def find_handler(self, kind: str, target: str) -> Handler:
        reply = run_jxa([WINDOW_SOURCES[0], "desktop/macos/handler.js"], {"kind": kind, "target": target})
        row = reply["app"]
        if not row and kind == "app":
            installed = reply["installed"]
            rows = {App(clean_text(app["name"]), bundle_id=app["bundle_id"]): app for app in installed}
            rows |= {App(clean_text(app["shown_name"])): app for app in installed if app["shown_name"]}
            row = rows[find_app(target.strip().removesuffix(".app"), list(rows), "installed", acts=True)]
        if row is None:
            message = f"no application is registered to open {target[:200]}"
            hint = "name an application, or choose one in the Finder (Get Info > Open with)"
            raise PeekabooError(ErrorCode.APP_NOT_FOUND, message, hint)
        return Handler(clean_text(row["name"]), row["bundle_id"] or row["path"], row["bundle_id"])

    def open(self, kind: str, target: str, handler: Handler) -> None:
        # with this application, which the caller checked: the system's default may have changed since
        argv = ["open", "-b" if handler.bundle_id else "-a", handler.entry]
        argv += [] if kind == "app" else [target]
        run_program(argv, timeout_s=_PROGRAM_S)

    def fit_image(self, source: Path, target: Path, width: int, height: int, kind: str, quality: int) -> None:
        format_options = ["-s", "format", "jpeg" if kind == "jpg" else kind]
        if kind == "jpg":
            format_options += ["-s", "formatOptions", str(quality)]
        argv = ["sips", "-z", str(height), str(width), *format_options, str(source), "--out", str(target)]
        done = run_program(argv, timeout_s=_PROGRAM_S, accept=None)
        # sips may fail with exit code 0
        if done.code or not target.is_file() or whole_image(target.read_bytes()) is None:
            message, details = "sips could not resize the image", done.stderr.strip()[-300:]
            raise PeekabooError(ErrorCode.SIPS_ERROR, message, details=details)

    def read_text(self, path: Path, characters: bool = False) -> list[RecognisedText]:
        info = whole_image(path.read_bytes())
        if info is None:
            raise invalid(f"{path} is not an image", hint="give a png or jpg")
        request = {"path": str(path), "characters": characters}
        reply = run_jxa(["desktop/macos/read_text.js"], request, 40.0)  # up to 16 parts of it
        width, height = info.width, info.height
        lines = []
        for row in reply["lines"]:
            box = Rect(row["x"] * width, row["y"] * height, row["width"] * width, row["height"] * height)
            lines.append(RecognisedText(clean_text(row["text"], 1000), box, float(row["confidence"])))
        return lines

    def input_backend(self) -> str:
        if helper := find_helper():
            return f"Swift helper {helper}"
        reason = last_failure() or "doctor --compile builds it; a server builds it when it starts"
        return f"JXA (no Swift helper: {reason})"


def _grants() -> dict[str, Any]:
    grants = run_jxa([WINDOW_SOURCES[0], "desktop/macos/permissions.js"], {})
    if not grants["has_session"]:
        raise mac_error(ErrorCode.NO_GUI_SESSION, _NO_SESSION)
    return grants


def _may_automate_keynote() -> Optional[bool]:
    # in a process of its own: if this crashes or hangs, the other permissions are still known
    try:
        return cast(Optional[bool], run_jxa(["desktop/macos/automation.js"], {})["automation"])
    except PeekabooError as e:
        if e.code in (ErrorCode.CANCELLED, ErrorCode.MISSING_PROGRAM):
            raise
        log_debug(f"cannot determine whether Keynote may be controlled: {e.message}")
        return None


def _check_may_capture(details: str = "") -> bool:
    # up to macOS 15, screencapture does not fail without the permission: it captures only the wallpaper
    grants = _grants()
    if grants["is_locked"]:
        raise screen_locked("no screenshot was taken", details)
    if grants["screen_recording"] is False:
        raise permission_error(ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING, "no screenshot can be taken")
    return bool(grants["screen_recording"])  # None: uncertain


def _rect_option(rect: Rect) -> list[str]:
    # screencapture takes points, not pixels
    return ["-R", ",".join(f"{round(number)}" for number in (rect.x, rect.y, rect.width, rect.height))]


def _rect(row: dict[str, float]) -> Rect:
    return Rect(*(float(row[name]) for name in Rect._fields))


def _window(row: dict[str, Any], can_record: bool, displays: Sequence[Display]) -> Window:
    title: Optional[str] = row["title"]  # not cleaned: two titles may differ only in invisible characters
    same_names = ("pid", "bundle_id", "layer", "alpha", "kind", "parent_id", "is_modal", "is_minimised")
    bounds = _rect(row["bounds"])
    scales = [display.scale for display in displays if display.bounds.contains(bounds.centre)]
    return Window(
        window_id=row["id"],
        app_name=clean_text(row["app"]),
        title=title or "" if can_record else title,
        bounds=bounds,
        scale=[*scales, *(display.scale for display in displays), 1.0][0],
        is_on_screen=row["on_screen"],
        is_obscured=row["is_protected"],
        **{name: row[name] for name in same_names},
    )

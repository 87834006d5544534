"""Desktop by screencapture, osascript and the Swift helper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn, Optional

from ...core.errors import ErrorCode, FocusLost, PeekabooError
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
from ...system.files import held_locks
from ...system.images import read_image_info
from ...system.process import run_program
from .keycodes import (
    ANSI_LAYOUTS,
    mac_chord_character,
    mac_key_code,
    mac_key_flags,
    mac_modifier_flags,
    mac_modifier_words,
)
from .osascript import ScriptError, run_jxa
from .permissions import permission_error
from .swift_helper import find_helper, last_build

_CAPTURE_S = _INPUT_S = 20.0
_TYPE_S_PER_CHARACTER = 0.05
_SIPS_S = 20.0
_VISION_S = 40.0
_TITLE_BAR_HALF = 10
_LIST = "desktop/macos/window_list.js"
_ACCESSIBILITY = "desktop/macos/accessibility.js"


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
        grants = _session()
        if not grants["has_session"]:
            raise _no_session()
        return Permissions(grants["screen_recording"], grants["accessibility"], _may_automate_keynote())

    def denied(self, code: ErrorCode, what: str) -> PeekabooError:
        return permission_error(code, what)

    def snapshot(self) -> Scene:
        scene = run_jxa([_LIST, _ACCESSIBILITY, "desktop/macos/snapshot.js"], {})
        if scene["windows"] is None:
            raise _no_session()
        focused = _focused_id(scene)
        return Scene(
            windows=tuple(_window(one, focused, scene["can_record"]) for one in scene["windows"]),
            apps=tuple(_app(one) for one in scene["apps"]),
            displays=tuple(
                Display(number, clean_text(one["name"]), _rect(one["bounds"]), float(one["scale"]))
                for number, one in enumerate(scene["displays"], 1)
            ),
            can_see_titles=scene["can_record"],
            is_locked=scene["is_locked"],
        )

    def capture_display(self, display: Display, path: Path, kind: str) -> None:
        _check_may_record()
        self._screencapture(["-D", str(display.number)], path, kind)
        info = read_image_info(path)
        expected = (round(display.bounds.width * display.scale), round(display.bounds.height * display.scale))
        if info and (info.width, info.height) != expected:
            # screencapture counts the displays in another order than we do: the rectangle is sure
            log_debug(f"-D {display.number} made {info.width}x{info.height}, not {expected}; using -R")
            self._screencapture(_rectangle(display.bounds), path, kind)

    def capture_window(self, window: Window, path: Path, kind: str, with_shadow: bool = False) -> None:
        if window.title is None:
            # the listing saw no title, so Screen Recording is not granted: up to macOS 15 screencapture would
            # exit 0 with a picture of the wallpaper
            raise _may_not_record()
        shadow = [] if with_shadow else ["-o"]  # a shadow's margin would shift every pixel
        self._screencapture([*shadow, "-l", str(window.window_id)], path, kind)

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
        target = {**_target(window), "title": window.title}
        sources = [_LIST, _ACCESSIBILITY, "desktop/macos/focus.js"]
        state = run_jxa(sources, {"window": target}, pass_fds=held_locks())
        log_debug(f"focus: {json.dumps(state)}")
        if state["is_active"] and (state["is_front"] or state["matches"] == 1):
            return
        if may_click and state["is_trusted"] and state["title_bar_is_free"]:
            log_debug("the window was not raised otherwise: clicking its title bar")
            bar = Point(window.bounds.centre.x, window.bounds.y + _TITLE_BAR_HALF)
            self.click(window, bar, "left", 1)
        elif not state["is_trusted"] and not state["is_front"]:
            raise permission_error(
                ErrorCode.PERMISSION_DENIED_ACCESSIBILITY, f"one window of {window.app_name} cannot be raised"
            )

    def click(
        self, window: Window, point: Point, button: str, clicks: int, modifiers: tuple[str, ...] = ()
    ) -> Delivery:
        request = {
            "do": "click",
            "window": _target(window),
            **{"x": point.x, "y": point.y},
            "button": button,
            "clicks": clicks,
            "flags": mac_modifier_flags(modifiers),
        }
        answer = _act(request)
        pointer = Point(float(answer["pointer"]["x"]), float(answer["pointer"]["y"]))
        if not answer["clicked"]:
            return Delivery(False, pointer)
        is_known = answer["is_certain"] and answer["clicked"] == clicks
        return Delivery(True if is_known else None, pointer)

    def type_text(self, window: Window, text: str, stop_file: Path) -> None:
        request = {"do": "type", "window": _target(window), "text": text, "stop_file": str(stop_file)}
        _act(request, _INPUT_S + len(text) * _TYPE_S_PER_CHARACTER)

    def press_key(self, window: Window, chord: KeyChord) -> None:
        request = {
            "do": "press",
            "window": _target(window),
            "key_code": mac_key_code(chord),
            "flags": mac_key_flags(chord),
        }
        character = mac_chord_character(chord)
        if character is None:
            _act(request)
            return
        # where the letter is depends on the keyboard layout, which only JXA looks up
        request |= {"character": character, "using": mac_modifier_words(chord), "layouts": list(ANSI_LAYOUTS)}
        _act(request, uses_helper=False)

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
                hint="see the details",
                details=done.stderr[-300:],
            )

    def read_text(self, path: Path) -> list[RecognisedText]:
        info = read_image_info(path)
        if info is None:
            raise PeekabooError(
                ErrorCode.INVALID_ARGUMENT, f"{path} is not an image", hint="give a png or jpg"
            )
        width, height = info.width, info.height
        answer = run_jxa(["desktop/macos/read_text.js"], {"path": str(path)}, _VISION_S)
        return [
            RecognisedText(
                clean_text(one["text"], 1000),
                Rect(one["x"] * width, one["y"] * height, one["width"] * width, one["height"] * height),
                float(one["confidence"]),
            )
            for one in answer["lines"]
        ]

    def input_backend(self) -> str:
        helper = find_helper()
        if helper:
            return f"Swift helper {helper}"
        built = last_build()
        if built and built.reason:
            return f"JXA (no Swift helper: {built.reason})"
        return "JXA (the Swift helper is not compiled: doctor --compile does it, and a server by itself)"


def _act(request: dict[str, Any], timeout_s: float = _INPUT_S, *, uses_helper: bool = True) -> dict[str, Any]:
    """Post input by the Swift helper where there is one, else by JXA: the same request, the same answer.

    Either looks itself, right before it posts, at what is under the pointer or has the keyboard.
    """
    helper = find_helper() if uses_helper else None
    log_debug(f"input by {'the Swift helper' if helper else 'JXA'}")
    if helper:
        done = run_program(
            [str(helper)],
            timeout_s=timeout_s,
            stdin=json.dumps(request).encode("utf-8"),
            accept=None,
            pass_fds=held_locks(),
        )
        answer = _helper_answer(done.stdout, done.stderr, done.code)
    else:
        sources = [_LIST, _ACCESSIBILITY, "desktop/macos/input.js"]
        answer = run_jxa(sources, request, timeout_s, pass_fds=held_locks())
    if not answer["ok"]:
        _refuse(answer)
    return answer


def _refuse(answer: dict[str, Any]) -> NoReturn:
    """Raise what a refusal of the acting program means."""
    code, sent = ErrorCode(answer["code"]), int(answer["sent"])
    message = clean_text(answer["message"], 500)
    if sent and code is not ErrorCode.FOCUS_LOST:
        message += f"; {sent} characters were typed"
    if answer["reached_id"] is not None and f"window {answer['reached_id']} " not in f"{message} ":
        message += f" (window {answer['reached_id']})"
    if code is ErrorCode.FOCUS_LOST:
        raise FocusLost(f"{message}; {sent} characters were typed", sent)
    if code is ErrorCode.PERMISSION_DENIED_ACCESSIBILITY:
        raise permission_error(code, "nothing was clicked or typed")
    if code is ErrorCode.SCREEN_LOCKED:
        raise _locked(message)
    if code is ErrorCode.NO_GUI_SESSION:
        raise _no_session()
    raise PeekabooError(
        code, f"{message}; nothing was clicked" if code in _NOT_CLICKED else message, _HINTS.get(code, "")
    )


_NOT_CLICKED = (ErrorCode.WINDOW_COVERED, ErrorCode.STALE_SCREENSHOT, ErrorCode.WINDOW_NOT_FOUND)
_HINTS = {
    ErrorCode.WINDOW_COVERED: "close what covers it, or act on that window",
    ErrorCode.STALE_SCREENSHOT: "take a new screenshot",
    ErrorCode.WINDOW_NOT_FOUND: "list the windows again",
    ErrorCode.POLICY_DENIED: "remove the stop file to allow acts again",
    ErrorCode.INVALID_ARGUMENT: "see peekaboo-min doctor",
    ErrorCode.INTERNAL_SWIFT_ERROR: "see peekaboo-min doctor",
}


def _helper_answer(stdout: bytes, stderr: str, code: int) -> dict[str, Any]:
    try:
        return dict(json.loads(stdout))
    except ValueError as e:
        raise PeekabooError(
            ErrorCode.INTERNAL_SWIFT_ERROR,
            f"the Swift helper ended with exit code {code} and no answer",
            hint="build it again: peekaboo-min doctor --compile",
            details=stderr.strip()[-300:],
        ) from e


def _session() -> dict[str, Any]:
    return run_jxa([_LIST, "desktop/macos/permissions.js"], {})


def _may_automate_keynote() -> Optional[bool]:
    # in a child of its own: a crash or a hang there says nothing about the other grants
    try:
        answer = run_jxa(["desktop/macos/automation.js"], {})["automation"]
        return None if answer is None else bool(answer)
    except PeekabooError as e:
        if isinstance(e, ScriptError) or e.code is ErrorCode.TIMEOUT:
            log_debug(f"whether Keynote may be controlled is not known: {e.message}")
            return None
        raise


def _check_may_record() -> None:
    # up to macOS 15 screencapture would exit 0 with a picture of the wallpaper
    grants = _session()
    if not grants["has_session"]:
        raise _no_session()
    if not grants["screen_recording"]:
        raise _may_not_record()


def _capture_error(details: str) -> PeekabooError:
    """`could not create image` has many causes: ask about each."""
    grants = _session()
    if not grants["has_session"]:
        return _no_session()
    if grants["is_locked"]:
        return _locked(details)
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


def _locked(details: str) -> PeekabooError:
    return PeekabooError(ErrorCode.SCREEN_LOCKED, "the screen is locked", hint="unlock it", details=details)


def _no_session() -> PeekabooError:
    return PeekabooError(
        ErrorCode.NO_GUI_SESSION,
        "there is no GUI session: the window server answers nothing",
        hint="run this in a Terminal of the logged-in user, not over ssh or from a daemon",
    )


def _rectangle(rect: Rect) -> list[str]:
    """In points, not in pixels."""
    return ["-R", ",".join(f"{round(number)}" for number in (rect.x, rect.y, rect.width, rect.height))]


def _rect(bounds: dict[str, float]) -> Rect:
    return Rect(float(bounds["x"]), float(bounds["y"]), float(bounds["width"]), float(bounds["height"]))


def _target(window: Window) -> dict[str, Any]:
    """What input.swift, input.js and focus.js know a window by."""
    return {
        "id": window.window_id,
        "pid": window.pid,
        "x": window.bounds.x,
        "y": window.bounds.y,
        "width": window.bounds.width,
        "height": window.bounds.height,
        "is_popup": window.is_popup,
    }


def _app(one: dict[str, Any]) -> App:
    return App(
        name=clean_text(one["name"]),
        pid=int(one["pid"]),
        bundle_id=one["bundle_id"],
        is_active=bool(one["is_active"]),
        is_regular=bool(one["is_regular"]),
        window_count=int(one["window_count"]),
    )


def _focused_id(scene: dict[str, Any]) -> Optional[int]:
    """The front window of the frontmost app. An app may keep invisible and tiny windows in front of it."""
    for one in scene["windows"]:
        bounds = one["bounds"]
        is_ordinary = one["layer"] == 0 and one["alpha"] > 0 and min(bounds["width"], bounds["height"]) >= 50
        if one["pid"] == scene["frontmost_pid"] and is_ordinary and one["on_screen"]:
            return int(one["id"])
    return None


def _window(one: dict[str, Any], focused_id: Optional[int], can_record: bool) -> Window:
    title: Optional[str] = one["title"]  # as it is: two windows may differ in what a person does not see
    return Window(
        window_id=int(one["id"]),
        app_name=clean_text(one["app"]),
        pid=int(one["pid"]),
        title=title or "" if can_record else title,
        bounds=_rect(one["bounds"]),
        bundle_id=one["bundle_id"],
        layer=int(one["layer"]),
        alpha=float(one["alpha"]),
        is_on_screen=bool(one["on_screen"]),
        is_focused=one["id"] == focused_id,
        kind=one["kind"],
        parent_id=one["parent_id"],
        is_modal=bool(one["is_modal"]),
        is_minimised=bool(one["is_minimised"]),
        identity=str(one["pid"]),
        is_obscured=bool(one["is_protected"]),
    )

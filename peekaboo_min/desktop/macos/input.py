"""Post mouse and keyboard events by the Swift helper or JXA; key codes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

from ...core.errors import ErrorCode, FocusLost, PeekabooError, invalid
from ...core.log import log_debug
from ...core.models import Delivery, KeyChord, Point, Window
from ...core.text import clean_text
from ...system.files import held_locks
from ...system.process import run_program
from .osascript import WINDOW_SOURCES, no_session_error, permission_error, run_jxa, screen_locked_error
from .swift_helper import find_helper

_INPUT_S = 20.0

_KEY_CODES = {
    "return": 36, "tab": 48, "space": 49, "backspace": 51, "delete": 117, "escape": 53, "insert": 114,
    "up": 126, "down": 125, "left": 123, "right": 124,
    "home": 115, "end": 119, "page_up": 116, "page_down": 121, "caps_lock": 57, "enter_keypad": 76,
    "plus": 24, "comma": 43, "minus": 27, "equal": 24, "period": 47, "slash": 44, "backslash": 42,
    "semicolon": 41, "quote": 39, "backquote": 50, "left_bracket": 33, "right_bracket": 30,
    "a": 0, "s": 1, "d": 2, "f": 3, "h": 4, "g": 5, "z": 6, "x": 7, "c": 8, "v": 9, "b": 11, "q": 12, "w": 13,
    "e": 14, "r": 15, "y": 16, "t": 17, "o": 31, "u": 32, "i": 34, "p": 35, "l": 37, "j": 38, "k": 40,
    "n": 45, "m": 46, "1": 18, "2": 19, "3": 20, "4": 21, "6": 22, "5": 23, "9": 25, "7": 26, "8": 28,
    "0": 29,
    "f1": 122, "f2": 120, "f3": 99, "f4": 118, "f5": 96, "f6": 97, "f7": 98, "f8": 100, "f9": 101, "f10": 109,
    "f11": 103, "f12": 111,
}  # fmt: skip
_FLAGS = {
    "shift": 0x20000, "ctrl": 0x40000, "alt": 0x80000, "cmd": 0x100000, "super": 0x100000, "fn": 0x800000,
}  # fmt: skip
# A keyboard sends these with such keys by itself; without them ctrl+left and the like are ignored
# (CGEventTypes.h: secondary fn, numeric pad).
_FUNCTION, _KEYPAD = 0x800000, 0x200000
_OWN_FLAGS = {
    **dict.fromkeys(("left", "right", "up", "down"), _FUNCTION | _KEYPAD),
    **dict.fromkeys(("home", "end", "page_up", "page_down", "delete", "insert"), _FUNCTION),
    **{f"f{number}": _FUNCTION for number in range(1, 21)},
    "enter_keypad": _KEYPAD,
}

_CHARACTERS = {
    "comma": ",", "minus": "-", "equal": "=", "period": ".", "slash": "/", "backslash": "\\",
    "semicolon": ";", "quote": "'", "backquote": "`", "left_bracket": "[", "right_bracket": "]", "plus": "+",
}  # fmt: skip
_USING = {
    "cmd": "command down", "super": "command down", "ctrl": "control down", "alt": "option down",
    "shift": "shift down",
}  # fmt: skip
# Keyboard layouts (`com.apple.keylayout.NAME`) on which our key codes carry the characters of their names.
_ANSI_LAYOUTS = (
    "US", "ABC", "USExtended", "USInternational-PC", "British", "Australian", "Canadian", "Irish",
    "2SetHangul",
)  # fmt: skip


def mac_key_code(chord: KeyChord) -> int:
    """The virtual key code. Raises INVALID_ARGUMENT for a key that no Mac keyboard has."""
    if chord.key not in _KEY_CODES:
        raise invalid(f"a Mac keyboard has no key {chord.key}", hint="press another key")
    return _KEY_CODES[chord.key]


def mac_key_flags(chord: KeyChord) -> int:
    """The CGEventFlags of the key and the held modifiers; `+` is shift and the = key."""
    held = (*chord.modifiers, *(["shift"] if chord.key == "plus" else []))
    return mac_modifier_flags(held) | _OWN_FLAGS.get(chord.key, 0)


def mac_modifier_flags(modifiers: Sequence[str]) -> int:
    """The CGEventFlags of modifiers by the names of keys.py."""
    flags = 0
    for name in modifiers:
        flags |= _FLAGS[name]
    return flags


def chord_request(chord: KeyChord) -> dict[str, Any]:
    """What input.swift and input.js press for a chord.

    With a `character` only JXA knows the key: where the letter of cmd+a is depends on the keyboard layout.
    """
    request: dict[str, Any] = {"key_code": mac_key_code(chord), "flags": mac_key_flags(chord)}
    character = chord.key if len(chord.key) == 1 else _CHARACTERS.get(chord.key)
    if character and set(chord.modifiers) & {"cmd", "ctrl", "alt", "super"}:
        using = [_USING[name] for name in chord.modifiers if name in _USING]
        request |= {"character": character, "using": using, "layouts": list(_ANSI_LAYOUTS)}
    return request


def target_of(window: Window) -> dict[str, Any]:
    """What the native sources know a window by."""
    known = {"id": window.window_id, "pid": window.pid, "title": window.title, "is_popup": window.is_popup}
    return {**known, **window.bounds._asdict()}


def act_at_pointer(
    window: Window, point: Point, times: int, request: dict[str, Any], extra_s: float = 0.0
) -> Delivery:
    """What became of `times` clicks, notches or drags at a point."""
    answer = act(window, {**request, "x": point.x, "y": point.y}, extra_s)
    pointer = Point(float(answer["pointer"]["x"]), float(answer["pointer"]["y"]))
    if not answer["done"]:
        return Delivery(False, pointer)
    return Delivery(True if answer["is_certain"] and answer["done"] == times else None, pointer)


def act(window: Window, request: dict[str, Any], extra_s: float = 0.0) -> dict[str, Any]:
    """Post input by the Swift helper where there is one, else by JXA: the same request, the same answer.

    Either looks itself, right before it posts, at what is under the pointer or has the keyboard.
    extra_s: how long the request itself takes, its pauses above all.
    """
    request = {**request, "window": target_of(window)}
    helper = None if "character" in request else find_helper()
    log_debug(f"input by {'the Swift helper' if helper else 'JXA'}")
    if helper:
        done = run_program(
            [str(helper)],
            timeout_s=_INPUT_S + extra_s,
            stdin=json.dumps(request).encode("utf-8"),
            accept=None,
            pass_fds=held_locks(),
        )
        answer = _helper_answer(done.stdout, done.stderr, done.code)
    else:
        sources = [*WINDOW_SOURCES, "desktop/macos/input.js"]
        answer = run_jxa(sources, request, _INPUT_S + extra_s, pass_fds=held_locks())
    if not answer["ok"]:
        _refuse(answer, "characters were typed" if request["do"] == "type" else "presses went out")
    return answer


def _refuse(answer: dict[str, Any], what_went_out: str) -> NoReturn:
    """Raise what a refusal of the acting program means."""
    code, sent = ErrorCode(answer["code"]), int(answer["sent"])
    message = clean_text(answer["message"], 500)
    if sent or code is ErrorCode.FOCUS_LOST:
        message += f"; {sent} {what_went_out}"
    if code is ErrorCode.FOCUS_LOST:
        raise FocusLost(message)
    if code is ErrorCode.PERMISSION_DENIED_ACCESSIBILITY:
        raise permission_error(code, "nothing was clicked or typed")
    if code is ErrorCode.SCREEN_LOCKED:
        raise screen_locked_error(message)
    if code is ErrorCode.NO_GUI_SESSION:
        raise no_session_error()
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

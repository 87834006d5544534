"""The hand on a Mac: the steps that make an act; Swift or JXA does them.

An executor gets `{window, stop_file, steps}`, answers questions about now right before it posts, and says how
far it came; input.swift tells the steps and the answer. Where a pause or a field has a reason that is no fact
of Apple's, public reports say so: programs lose a click that is held for 20 ms, and a drag without deltas.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, Optional

from ...core.errors import ErrorCode, FocusLost, PeekabooError, invalid
from ...core.log import log_debug
from ...core.models import Delivery, KeyChord, Point, Window
from ...core.text import clean_text
from ...system.files import held_locks
from ...system.process import run_program
from ..keys import character_of
from .osascript import WINDOW_SOURCES, no_session_error, permission_error, run_jxa, screen_locked_error
from .swift_helper import find_helper

_INPUT_S = 20.0
_CLICK_HELD_MS, _BETWEEN_CLICKS_MS, _AFTER_NOTCH_MS = 60, 30, 20
_DRAG_BEGINS_MS, _DRAG_STEP_MS, _DRAG_ENDS_MS = 100, 20, 100
_DRAG_POINTS = 15  # an application follows a drag only through several points
_LINES_A_NOTCH = 3
_MOST_IN_PIECE = 20  # characters between two looks at who has the keyboard
# Some programs lose a character that equals the one before it, or that follows a return or tab at once.
_AFTER_KEY_MS = 40

_BUTTONS = {"left": 0, "right": 1, "middle": 2}
_WHEELS = {"up": (1, 0), "down": (-1, 0), "left": (0, 1), "right": (0, -1)}  # vertical, horizontal
_TYPED_KEYS = {"\n": 36, "\r": 36, "\r\n": 36, "\t": 48, "\b": 51}
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
    """The key of a chord: its place on a US keyboard, and what carries its `character` on another layout.

    Key codes are places: cmd+a by the code of a US keyboard is cmd+q on a French one.
    """
    request: dict[str, Any] = {"key_code": mac_key_code(chord), "flags": mac_key_flags(chord)}
    character = character_of(chord.key).strip()  # the space bar is at one place everywhere
    if character:
        request |= {"character": character, "held": mac_modifier_flags(chord.modifiers)}
    return request


def target_of(window: Window) -> dict[str, Any]:
    """What the native sources know a window by."""
    known = {"id": window.window_id, "pid": window.pid, "title": window.title, "is_popup": window.is_popup}
    return {**known, **window.bounds._asdict()}


# acts as steps ----------------------------------------------------------------------------------------


class Step(NamedTuple):
    """What an executor does or asks next."""

    fields: dict[str, Any]
    done: int = 0
    """How many clicks, notches, drags or presses have gone out once it is through; 0: as many as before."""


class Piece(NamedTuple):
    """Text that goes out between two looks at who has the keyboard."""

    text: str
    code: Optional[int] = None
    """The key that types it."""
    is_whole: bool = False
    """It is one character of several UTF-16 units, and goes out in one event."""
    pause_ms: int = 0


def split_text(text: str, delay_ms: int = 0) -> list[Piece]:
    """At most 20 characters a piece: keys and what takes several UTF-16 units alone, a cut where a pause is
    needed. delay_ms: between any two characters.
    """
    pieces: list[Piece] = []
    characters = list(_characters(text))
    run = ""
    for character, following in zip(characters, [*characters[1:], ""]):
        code = _TYPED_KEYS.get(character)
        needs_pause = following and (code is not None or (character == following != " "))
        pause_ms = max(delay_ms if following else 0, _AFTER_KEY_MS if needs_pause else 0)
        is_whole = code is None and (len(character) > 1 or character > "\uffff")
        is_alone = is_whole or code is not None
        if run and is_alone:
            pieces.append(Piece(run))
            run = ""
        run += character
        if is_alone or pause_ms or len(run) == _MOST_IN_PIECE or not following:
            pieces.append(Piece(run, code, is_whole, pause_ms))
            run = ""
    return pieces


def _characters(text: str) -> Iterator[str]:
    """What a person calls a character: never cut before a combining mark, joiner, variation selector, skin
    tone or second half of a flag, nor inside a line end of Windows.
    """
    character = ""
    for sign in text:
        if character and not _is_joined(character, sign):
            yield character
            character = ""
        character += sign
    if character:
        yield character


def _is_joined(before: str, sign: str) -> bool:
    if before == "\r" or before in _TYPED_KEYS:
        return before + sign == "\r\n"
    is_mark = unicodedata.category(sign)[0] == "M" or sign in "\u200c\u200d"
    is_modifier = "\U0001f3fb" <= sign <= "\U0001f3ff" or "\U000e0020" <= sign <= "\U000e007f"
    is_flag = len(before) == 1 and all("\U0001f1e6" <= each <= "\U0001f1ff" for each in before + sign)
    is_vowel = "\u1100" <= before[-1] <= "\u11ff" and "\u1160" <= sign <= "\u11ff"  # Hangul in parts
    return is_mark or is_modifier or is_flag or is_vowel or before[-1] == "\u200d"


def steps_of(request: dict[str, Any]) -> list[Step]:
    """The steps of a request by its `do`: move, click, scroll, drag, type or press."""
    make = {"move": _move, "click": _click, "scroll": _scroll, "drag": _drag, "type": _type, "press": _press}
    return [_step("access"), _step("nothing_held"), *make[request["do"]](request)]


def _step(do: str, done: int = 0, /, **fields: Any) -> Step:
    return Step({"do": do, **fields}, done)


def _sleep(ms: int) -> Step:
    return _step("sleep", ms=ms)


def _at_pointer(request: dict[str, Any], presses: Sequence[Sequence[Step]]) -> list[Step]:
    place = {"x": request["x"], "y": request["y"]}
    steps = [_step("window_at", **place), _step("move", **place)]
    for press in presses:
        # the pointer's arrival, or the press before, may have changed what is there
        steps += [_step("pointer_at", **place), _step("window_at", **place), *press]
    return steps


def _move(request: dict[str, Any]) -> list[Step]:
    return _at_pointer(request, [[]])


def _click(request: dict[str, Any]) -> list[Step]:
    presses = []
    for count in range(1, request["clicks"] + 1):
        event = {
            "x": request["x"],
            "y": request["y"],
            "button": _BUTTONS[request["button"]],
            "clicks": count,
            "number": count,
            "flags": request["flags"],
        }
        held = [_step("button_down", count, **event), _sleep(_CLICK_HELD_MS), _step("button_up", **event)]
        presses.append([*held, _sleep(_BETWEEN_CLICKS_MS)])
    return _at_pointer(request, presses)


def _scroll(request: dict[str, Any]) -> list[Step]:
    vertical, horizontal = (sign * _LINES_A_NOTCH for sign in _WHEELS[request["direction"]])
    return _at_pointer(
        request,
        [
            [_step("wheel", notch, vertical=vertical, horizontal=horizontal), _sleep(_AFTER_NOTCH_MS)]
            for notch in range(1, request["amount"] + 1)
        ],
    )


def _drag(request: dict[str, Any]) -> list[Step]:
    start, end = Point(request["x"], request["y"]), Point(request["to_x"], request["to_y"])
    event = {"button": _BUTTONS[request["button"]], "clicks": 1, "number": 1, "flags": 0}
    steps = [_step("button_down", x=start.x, y=start.y, **event), _sleep(_DRAG_BEGINS_MS)]
    before = start
    for number in range(1, _DRAG_POINTS + 1):
        part = number / _DRAG_POINTS
        point = Point(start.x + (end.x - start.x) * part, start.y + (end.y - start.y) * part)
        delta = {"dx": round(point.x) - round(before.x), "dy": round(point.y) - round(before.y)}
        steps += [_step("button_drag", x=point.x, y=point.y, **delta, **event), _sleep(_DRAG_STEP_MS)]
        before = point
    steps += [_sleep(_DRAG_ENDS_MS), _step("pointer_at", x=end.x, y=end.y)]
    return [
        _step("window_at", x=end.x, y=end.y),
        *_at_pointer(request, [[*steps, _step("button_up", 1, x=end.x, y=end.y, **event)]]),
    ]


def _type(request: dict[str, Any]) -> list[Step]:
    pieces = split_text(request["text"], request["delay_ms"])
    # without what is absent: a long text has a thousand pieces, and an argument its limits
    fields = [{name: value for name, value in piece._asdict().items() if value} for piece in pieces]
    return [_step("type", pieces=fields)]


def _press(request: dict[str, Any]) -> list[Step]:
    key = {"code": request["key_code"], "flags": request["flags"]}
    if "character" in request:
        key |= {name: request[name] for name in ("character", "held")}
        key["ansi_layouts"] = _ANSI_LAYOUTS
    up = _step("key_up", code=key["code"], flags=key["flags"] & (_FUNCTION | _KEYPAD))
    steps = []
    for count in range(1, request["repeat"] + 1):
        steps += [_step("has_keyboard"), _step("not_stopped"), _step("key_down", count, **key)]
        steps += [*([_sleep(request["hold_ms"])] if request["hold_ms"] else []), up]
        steps += [_sleep(_AFTER_KEY_MS)] if count < request["repeat"] else []
    return steps


# doing them -------------------------------------------------------------------------------------------


def act_at_pointer(window: Window, point: Point, request: dict[str, Any], extra_s: float = 0.0) -> Delivery:
    """What became of the clicks, notches or drag of a request at a point."""
    request = {**request, "x": point.x, "y": point.y}
    steps = steps_of(request)
    answer = _execute(window, steps, "", extra_s)
    if answer["ok"]:
        return Delivery(True if answer["is_certain"] else None, point)
    done = _done(steps, answer)
    if answer["code"] and not done and not answer["released"]:
        _refuse(answer, 0, "")
    # elsewhere: the pointer, or, after some of the presses, the window
    pointer = Point(**answer["pointer"]) if answer["pointer"] else None
    if done or answer["released"]:
        return Delivery(None, pointer)  # what is there now may be the effect of what was done
    return Delivery(False, pointer, answer["reached_id"])


def act(window: Window, request: dict[str, Any], extra_s: float = 0.0) -> None:
    """Type or press. extra_s: how long the request itself takes, its pauses above all."""
    steps = steps_of(request)
    answer = _execute(window, steps, request["stop_file"], extra_s)
    if answer["ok"]:
        return
    if request["do"] == "press":
        _refuse(answer, _done(steps, answer), "presses went out")
    pieces = split_text(request["text"], request["delay_ms"])[: answer["pieces"]]
    _refuse(answer, sum(len(piece.text) for piece in pieces), "characters were typed")


def _done(steps: Sequence[Step], answer: dict[str, Any]) -> int:
    return max((step.done for step in steps[: answer["step"]]), default=0)


def _execute(window: Window, steps: Sequence[Step], stop_file: str, extra_s: float) -> dict[str, Any]:
    """The answer of the Swift helper where there is one, else of JXA."""
    request = {"window": target_of(window), "stop_file": stop_file, "steps": [step.fields for step in steps]}
    helper = find_helper()
    log_debug(f"input by {'the Swift helper' if helper else 'JXA'}")
    if not helper:
        sources = [*WINDOW_SOURCES, "desktop/macos/input.js"]
        return run_jxa(sources, request, _INPUT_S + extra_s, pass_fds=held_locks())
    done = run_program(
        [str(helper)],
        timeout_s=_INPUT_S + extra_s,
        stdin=json.dumps(request).encode("utf-8"),
        accept=None,
        pass_fds=held_locks(),
    )
    return _helper_answer(done.stdout, done.stderr, done.code)


def _refuse(answer: dict[str, Any], sent: int, what_went_out: str) -> NoReturn:
    """Raise what a failed step means."""
    code = ErrorCode(answer["code"])
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
    ErrorCode.WINDOW_BLOCKED: "wait until whoever uses the Mac has let go",
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

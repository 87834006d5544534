"""The hand on a Mac: the steps that make an act; Swift or JXA does them.

An executor gets `{window, stop_file, steps}`, answers questions about now right before it posts, and says how
far it came; input.swift tells the steps and the answer. Where a pause or a field has a reason that is no fact
of Apple's, public reports say so: programs lose a click that is held for 20 ms, and a drag without deltas.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

from ...core.cancellation import uninterrupted
from ...core.errors import ErrorCode, FocusLost, PeekabooError, invalid
from ...core.log import log_debug
from ...core.models import Act, Delivery, KeyChord, Point, Window
from ...core.text import clean_text
from ...system.files import held_locks
from ...system.process import run_program
from ..keys import character_of
from .osascript import WINDOW_SOURCES, no_session_error, permission_error, run_jxa, screen_locked_error
from .swift_helper import find_helper

_INPUT_S, _S_PER_EVENT = 20.0, 0.1
_LONGEST_HOLD_MS = 10_000  # nothing interrupts it
_CLICK_HELD_MS, _BETWEEN_CLICKS_MS, _AFTER_NOTCH_MS = 60, 30, 20
_DRAG_BEGINS_MS, _DRAG_STEP_MS, _DRAG_ENDS_MS = 100, 20, 120
_DRAG_POINTS = 15  # an application follows a drag only through several points
_LINES_A_NOTCH = 3
_MOST_AT_ONCE = 20  # characters between two looks at who has the keyboard
# Some programs lose a character that equals the one before it, or that follows a return or tab at once.
_AFTER_KEY_MS = 40

_MOVED = 5  # CGEventType, as are these: down, dragged, up
_BUTTONS = {"left": (1, 6, 2), "right": (3, 7, 4), "middle": (25, 27, 26)}
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


def target_of(window: Window) -> dict[str, Any]:
    """What the native sources know a window by."""
    known = {"id": window.window_id, "pid": window.pid, "title": window.title, "is_popup": window.is_popup}
    return {**known, **window.bounds._asdict()}


# acts as steps ----------------------------------------------------------------------------------------


class Step(NamedTuple):
    """What an executor does or asks next."""

    fields: dict[str, Any]
    done: int = 0
    """How many clicks, notches, drags, presses or characters have gone out once it is through; 0: as many as
    before.
    """


def _step(do: str, done: int = 0, /, **fields: Any) -> Step:
    return Step({"do": do, **fields}, done)


def _mouse(kind: int, point: Point, done: int = 0, /, **fields: Any) -> Step:
    return _step("mouse", done, type=kind, **point._asdict(), **fields)


def _click(act: Act) -> list[list[Step]]:
    down, _, up = _BUTTONS[act.button]
    event = {"button": list(_BUTTONS).index(act.button), "flags": _flags_of(act.modifiers)}
    presses = []
    for count in range(1, act.clicks + 1):
        event |= {"clicks": count, "number": count}
        release = [_mouse(up, act.points[0], **event).fields]
        press = _mouse(down, act.points[0], count, **event, ms=_CLICK_HELD_MS, release=release)
        presses.append([press, _mouse(up, act.points[0], **event, ms=_BETWEEN_CLICKS_MS, release=[])])
    return presses


def _scroll(act: Act) -> list[list[Step]]:
    vertical, horizontal = (sign * _LINES_A_NOTCH for sign in _WHEELS[act.direction])
    wheel = {"vertical": vertical, "horizontal": horizontal, "ms": _AFTER_NOTCH_MS}
    return [[_step("wheel", notch, **wheel)] for notch in range(1, act.amount + 1)]


def _drag(act: Act) -> list[list[Step]]:
    start, end = act.points
    down, dragged, up = _BUTTONS[act.button]
    event = {"button": list(_BUTTONS).index(act.button), "clicks": 1, "number": 1}
    let_go = _mouse(up, start, **event).fields
    # back to where it was pressed, so that nothing is dropped elsewhere
    back = _mouse(dragged, start, **event, dx=1, dy=1, ms=_DRAG_ENDS_MS).fields
    steps = [_mouse(down, start, **event, ms=_DRAG_BEGINS_MS, release=[let_go])]
    before = start
    for number in range(1, _DRAG_POINTS + 1):
        part = number / _DRAG_POINTS
        point = Point(start.x + (end.x - start.x) * part, start.y + (end.y - start.y) * part)
        delta = {"dx": round(point.x) - round(before.x), "dy": round(point.y) - round(before.y)}
        ms = _DRAG_STEP_MS if number < _DRAG_POINTS else _DRAG_ENDS_MS
        steps.append(_mouse(dragged, point, **event, **delta, ms=ms, release=[back, let_go]))
        before = point
    return [[*steps, _step("pointer_at", **end._asdict()), _mouse(up, end, 1, **event, release=[])]]


def _press(chord: KeyChord, hold_ms: int = 0, repeat: int = 1) -> list[Step]:
    if hold_ms * repeat > _LONGEST_HOLD_MS:
        message = f"{repeat} presses of {hold_ms} ms are too long"
        raise invalid(message, hint="hold it for at most 10 seconds in all")
    key = _key_of(chord)
    released = {**key, "is_down": False, "flags": key["flags"] & (_FUNCTION | _KEYPAD)}
    steps: list[Step] = []
    for count in range(1, repeat + 1):
        down = _step("key", count, **key, is_down=True, ms=hold_ms, release=[{"do": "key", **released}])
        steps += [_step("has_keyboard"), down, _step("key", **released, ms=_AFTER_KEY_MS, release=[])]
    return steps


def _key_of(chord: KeyChord) -> dict[str, Any]:
    """A key with the CGEventFlags of what is held: its place on a US keyboard, and its `character`, since key
    codes are places: cmd+a by the code of a US keyboard is cmd+q on a French one.
    """
    if chord.key not in _KEY_CODES:
        raise invalid(f"a Mac keyboard has no key {chord.key}", hint="press another key")
    held = _flags_of(chord.modifiers)
    shift = _FLAGS["shift"] if chord.key == "plus" else 0
    key = {"code": _KEY_CODES[chord.key], "flags": held | shift | _OWN_FLAGS.get(chord.key, 0)}
    character = character_of(chord.key).strip()  # the space bar is at one place everywhere
    return {**key, "character": character, "held": held} if character else key


def _flags_of(modifiers: Sequence[str]) -> int:
    return sum({_FLAGS[name] for name in modifiers})  # cmd and super are one


def _type(text: str, delay_ms: int) -> list[Step]:
    """At most 20 characters a step: keys and what takes several UTF-16 units alone, a cut where a pause is
    needed. delay_ms: between any two characters.
    """
    steps: list[Step] = []
    run, sent = "", 0
    characters = _characters(text)
    for character, following in zip(characters, [*characters[1:], ""]):
        is_key = character in _TYPED_KEYS
        is_alone = is_key or len(character) > 1 or character > "\uffff"
        needs_pause = following and (is_key or character == following != " ")
        ms = max(delay_ms if following else 0, _AFTER_KEY_MS if needs_pause else 0)
        if is_alone and run:
            steps.append(_step("type", sent, text=run))
            run = ""
        run, sent = run + character, sent + len(character)
        if is_alone or ms or len(run) == _MOST_AT_ONCE or not following:
            # no key makes what takes several units: any one carries it
            key = {"code": _TYPED_KEYS.get(character, 0)} if is_alone else {}
            steps.append(_step("type", sent, text="" if is_key else run, **key, **({"ms": ms} if ms else {})))
            run = ""
    return steps


def _characters(text: str) -> list[str]:
    """What a person calls a character: never cut before a combining mark, joiner, variation selector, skin
    tone or second half of a flag, nor inside a line end of Windows.
    """
    characters: list[str] = []
    for sign in text:
        if characters and _is_joined(characters[-1], sign):
            characters[-1] += sign
        else:
            characters.append(sign)
    return characters


def _is_joined(before: str, sign: str) -> bool:
    if before in _TYPED_KEYS:
        return before + sign == "\r\n"
    is_mark = unicodedata.category(sign)[0] == "M" or sign in "\u200c\u200d"
    is_modifier = "\U0001f3fb" <= sign <= "\U0001f3ff" or "\U000e0020" <= sign <= "\U000e007f"
    is_flag = len(before) == 1 and all("\U0001f1e6" <= letter <= "\U0001f1ff" for letter in before + sign)
    is_vowel = "\u1100" <= before[-1] <= "\u11ff" and "\u1160" <= sign <= "\u11ff"  # Hangul in parts
    return is_mark or is_modifier or is_flag or is_vowel or before[-1] == "\u200d"


_AT_POINTER: dict[str, Callable[[Act], list[list[Step]]]] = {
    "click": _click,
    "scroll": _scroll,
    "drag": _drag,
    "move_pointer": lambda act: [[]],
}


def steps_of(act: Act) -> list[Step]:
    """The steps of an act. Raises INVALID_ARGUMENT for a key that no Mac keyboard has."""
    if act.kind == "press":
        return _press(act.chord, act.hold_ms, act.repeat)
    if act.kind == "type":
        keys = [KeyChord("a", ("cmd",)), *([] if act.text else [KeyChord("backspace")])]
        cleared = [step._replace(done=0) for key in keys for step in _press(key)] if act.replace else []
        return [*cleared, *_type(act.text, act.delay_ms)]
    place = act.points[0]._asdict()
    steps = [_step("window_at", **point._asdict()) for point in reversed(act.points)]
    steps.append(_mouse(_MOVED, act.points[0]))
    for press in _AT_POINTER[act.kind](act):
        # the pointer's arrival, or the press before, may have changed what is there
        steps += [_step("pointer_at", **place), _step("window_at", **place), *press]
    return steps


# doing them -------------------------------------------------------------------------------------------


def perform(window: Window, act: Act, stop_file: Optional[Path] = None) -> Delivery:
    """Do an act as Desktop.act says. stop_file: what ends texts and keys."""
    steps = steps_of(act)
    # a program that is killed while something is held would leave it down
    holds = act.kind in ("click", "drag") or act.hold_ms > 0
    with uninterrupted() if holds else nullcontext():
        answer = _execute(window, [step.fields for step in steps], None if act.points else stop_file)
    if answer["ok"]:
        return Delivery(True if answer["is_certain"] else None, act.points[0] if act.points else None)
    sent = max((step.done for step in steps[: answer["step"]]), default=0)
    has_pressed = bool(sent or answer["released"])
    if act.points and (has_pressed or not answer["code"]):
        # the pointer is elsewhere, or what is there now is the effect of the first presses
        pointer = Point(**answer["pointer"]) if answer["pointer"] else None
        return Delivery(None if has_pressed else False, pointer)
    went_out = {"press": f"{sent} presses went out", "type": f"{sent} characters were typed"}
    raise _refusal(answer, went_out.get(act.kind, "nothing was clicked"))


def _execute(window: Window, steps: Sequence[dict[str, Any]], stop_file: Optional[Path]) -> dict[str, Any]:
    """The answer of the Swift helper where there is one, else of JXA."""
    request = {"window": target_of(window), "stop_file": str(stop_file or ""), "steps": steps}
    events = sum(max(1, len(step.get("text", ""))) for step in steps)
    timeout_s = _INPUT_S + events * _S_PER_EVENT + sum(step.get("ms", 0) for step in steps) / 1000
    helper = find_helper()
    log_debug(f"input by {'the Swift helper' if helper else 'JXA'}")
    if not helper:
        return run_jxa([*WINDOW_SOURCES, "desktop/macos/input.js"], request, timeout_s, held_locks())
    stdin = json.dumps(request).encode()
    done = run_program([str(helper)], timeout_s=timeout_s, stdin=stdin, accept=None, pass_fds=held_locks())
    try:
        return dict(json.loads(done.stdout))
    except ValueError as e:
        raise PeekabooError(
            ErrorCode.INTERNAL_SWIFT_ERROR,
            f"the Swift helper ended with exit code {done.code} and no answer",
            hint="build it again: peekaboo-min doctor --compile",
            details=done.stderr.strip()[-300:],
        ) from e


_HINTS = {
    ErrorCode.WINDOW_COVERED: "close what covers it, or act on that window",
    ErrorCode.STALE_SCREENSHOT: "take a new screenshot",
    ErrorCode.WINDOW_NOT_FOUND: "list the windows again",
    ErrorCode.WINDOW_BLOCKED: "wait until whoever uses the Mac has let go",
    ErrorCode.POLICY_DENIED: "remove the stop file to allow acts again",
}


def _refusal(answer: dict[str, Any], sent: str) -> PeekabooError:
    """What a failed step means. sent: how much went out."""
    code, message = ErrorCode(answer["code"]), clean_text(answer["message"], 500)
    if code is ErrorCode.PERMISSION_DENIED_ACCESSIBILITY:
        return permission_error(code, "nothing was clicked or typed")
    if code is ErrorCode.SCREEN_LOCKED:
        return screen_locked_error(f"{message}; {sent}")
    if code is ErrorCode.NO_GUI_SESSION:
        return no_session_error()
    if code is ErrorCode.FOCUS_LOST:
        return FocusLost(f"{message}; {sent}")
    return PeekabooError(code, f"{message}; {sent}", _HINTS.get(code, "see peekaboo-min doctor"))

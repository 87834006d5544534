"""The hand on a Mac: the steps that make an act; Swift or JXA does them.

An executor gets `{window, stop_file, steps}`, answers questions about now right before it posts, and says how
far it came; input.swift tells the steps and the answer. Where a pause or a field has a reason that is no fact
of Apple's, public reports say so: programs lose a click that is held for 20 ms, and a drag without deltas,
with a source or let go at once; a chord by flags alone left Command down for a whole session.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Optional

from ...core.cancellation import uninterrupted
from ...core.errors import ErrorCode, invalid
from ...core.log import log_debug
from ...core.models import Act, Delivery, KeyChord, Point, Window
from ...core.text import clean_text
from ...system.files import held_locks, state_folder, write_privately
from ...system.process import run_program
from ..keys import character_of
from .osascript import WINDOW_SOURCES, mac_error, run_jxa
from .swift_helper import drop_helper, find_helper

_INPUT_S, _S_PER_EVENT = 20.0, 0.1
_CLICK_HELD_MS, _BETWEEN_CLICKS_MS, _AFTER_NOTCH_MS, _AFTER_MODIFIER_MS = 60, 30, 20, 5
_DRAG_BEGINS_MS, _DRAG_STEP_MS, _DRAG_ENDS_MS = 100, 20, 200
_DRAG_POINTS = 15  # an application follows a drag only through several points
_LINES_A_NOTCH = 3
_HELD = "held-macos.json"  # what an act holds while it lasts
_AFTER_RELEASE_MS = 100
_MOST_AT_ONCE = 20  # characters between two looks at who has the keyboard
# Some programs lose a character that equals the one before it, or that follows a return or tab at once.
_AFTER_KEY_MS = 40

_MOVED = 5  # a CGEventType, as are those of a button: its number, then down, dragged, up
_BUTTONS = {"left": (0, 1, 6, 2), "right": (1, 3, 7, 4), "middle": (2, 25, 27, 26)}
_WHEELS = {"up": (1, 0), "down": (-1, 0), "left": (0, 1), "right": (0, -1)}  # vertical, horizontal
_TYPED_KEYS = {"\n": 36, "\r": 36, "\r\n": 36, "\t": 48, "\b": 51}
# The keys that type, in the order of their codes; 10 is on some keyboards only.
_TYPING_KEYS = (
    "a s d f h g z x c v - b q w e r y t 1 2 3 4 6 5 equal 9 7 minus 8 0 right_bracket o u left_bracket i p "
    "return l j quote k semicolon backslash comma slash n m period tab space backquote backspace"
)
_KEY_CODES = {
    **{name: code for code, name in enumerate(_TYPING_KEYS.split())},
    **{f"f{at}": code for at, code in enumerate((122, 120, 99, 118, 96, 97, 98, 100, 101, 109, 103, 111), 1)},
    "plus": 24, "escape": 53, "caps_lock": 57, "enter_keypad": 76, "insert": 114, "home": 115, "page_up": 116,
    "delete": 117, "end": 119, "page_down": 121, "left": 123, "right": 124, "down": 125, "up": 126,
}  # fmt: skip
_FLAGS = {
    "shift": 0x20000, "ctrl": 0x40000, "alt": 0x80000, "cmd": 0x100000, "super": 0x100000, "fn": 0x800000,
}  # fmt: skip
_MODIFIER_KEYS = {0x40000: 59, 0x80000: 58, 0x20000: 56, 0x100000: 55}  # not fn's: alone it does things
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


Step = dict[str, Any]
"""What an executor does or asks next. How many clicks, notches, drags, presses or characters go out by it is
what it `counts` as, else the length of its `text`.
"""


def count_sent(steps: Sequence[Step]) -> int:
    return sum(step.get("counts", len(step.get("text", ""))) for step in steps)


def _mouse(kind: int, point: Point, **fields: Any) -> Step:
    return {"do": "mouse", "type": kind, **point._asdict(), **fields}


def _click(act: Act) -> list[list[Step]]:
    button, down, _, up = _BUTTONS[act.button]
    event = {"button": button, "flags": _flags_of(act.modifiers)}
    pressed, lifted = _modifiers(act.modifiers)
    presses = []
    for count in range(1, act.clicks + 1):
        event |= {"clicks": count, "number": count}
        release = _mouse(up, act.points[0], **event)
        press = _mouse(down, act.points[0], **event, ms=_CLICK_HELD_MS, release=[release, *lifted], counts=1)
        presses.append(_ended([*pressed, press, {**release, "release": lifted}, *lifted], _BETWEEN_CLICKS_MS))
    return presses


def _modifiers(names: Sequence[str]) -> tuple[list[Step], list[Step]]:
    """The modifiers' own keys, pressed and lifted as a person does; after the last no flag is left."""
    pressed: list[Step] = []
    lifted: list[Step] = []
    held = 0
    for flag, code in _MODIFIER_KEYS.items():
        if _flags_of(names) & flag:
            up = {"do": "key", "code": code, "is_down": False, "flags": held, "release": lifted}
            lifted, held = [up, *lifted], held | flag
            down = {**up, "is_down": True, "flags": held, "release": lifted}
            pressed.append({**down, "ms": _AFTER_MODIFIER_MS})
    return pressed, lifted


def _ended(steps: list[Step], ms: int) -> list[Step]:
    """Steps after which nothing is held any more."""
    return [*steps[:-1], {**steps[-1], "ms": ms, "release": []}]


def _scroll(act: Act) -> list[list[Step]]:
    vertical, horizontal = (sign * _LINES_A_NOTCH for sign in _WHEELS[act.direction])
    turn = {"do": "wheel", "vertical": vertical, "horizontal": horizontal}
    return [[{**turn, "ms": _AFTER_NOTCH_MS, "counts": 1}]] * act.amount


def _drag(act: Act) -> list[list[Step]]:
    start, end = act.points
    button, down, dragged, up = _BUTTONS[act.button]
    event = {"button": button, "clicks": 1, "number": 1, "no_source": True}
    let_go = _mouse(up, start, **event)
    # back to where it was pressed, so that nothing is dropped elsewhere
    back = _mouse(dragged, start, **event, dx=1, dy=1, ms=_DRAG_ENDS_MS)
    steps = [_mouse(down, start, **event, ms=_DRAG_BEGINS_MS, release=[let_go])]
    before = start
    for number in range(1, _DRAG_POINTS + 1):
        part = number / _DRAG_POINTS
        point = Point(start.x + (end.x - start.x) * part, start.y + (end.y - start.y) * part)
        delta = {"dx": round(point.x) - round(before.x), "dy": round(point.y) - round(before.y)}
        ms = _DRAG_STEP_MS if number < _DRAG_POINTS else _DRAG_ENDS_MS
        steps.append(_mouse(dragged, point, **event, **delta, ms=ms, release=[back, let_go]))
        before = point
    arrived = {"do": "pointer_at", **end._asdict()}
    return [[*steps, arrived, _mouse(up, end, **event, release=[], counts=1)]]


def _press(chord: KeyChord, hold_ms: int = 0, counts: int = 1) -> list[Step]:
    key = {"do": "key", **_key_of(chord)}
    pressed, lifted = _modifiers(chord.modifiers)
    own = key["flags"] & (_FUNCTION | _KEYPAD)
    up = {**key, "is_down": False, "flags": _flags_of(chord.modifiers) | own}
    down = {**key, "is_down": True, "ms": hold_ms, "release": [up, *lifted], "counts": counts}
    steps = [{"do": "has_keyboard"}, *pressed, down, {**up, "release": lifted}, *lifted]
    return _ended(steps, _AFTER_KEY_MS)


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
    run = ""
    characters = _characters(text)
    for character, following in zip(characters, [*characters[1:], ""]):
        is_key = character in _TYPED_KEYS
        is_alone = is_key or len(character) > 1 or character > "\uffff"
        needs_pause = following and (is_key or character == following != " ")
        ms = max(delay_ms if following else 0, _AFTER_KEY_MS if needs_pause else 0)
        if is_alone and run:
            steps.append({"do": "type", "text": run})
            run = ""
        run += character
        if is_alone or ms or len(run) == _MOST_AT_ONCE or not following:
            step = {"do": "type", "text": run, **({"ms": ms} if ms else {})}
            if is_alone:  # no key makes what takes several units: any one carries it
                step["code"] = _TYPED_KEYS.get(character, 0)
            if is_key:
                step |= {"text": "", "counts": len(character)}
            steps.append(step)
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


def steps_of(act: Act) -> list[Step]:
    """The steps of an act. Raises INVALID_ARGUMENT for a key that no Mac keyboard has."""
    if act.kind == "press":
        return _press(act.chord, act.hold_ms) * act.repeat
    if act.kind == "type":
        keys = [KeyChord("a", ("cmd",)), *([] if act.text else [KeyChord("backspace")])]
        cleared = [step for key in keys for step in _press(key, counts=0)] if act.replace else []
        return [*cleared, *_type(act.text, act.delay_ms)]
    place = act.points[0]._asdict()
    steps: list[Step] = [{"do": "window_at", **point._asdict()} for point in reversed(act.points)]
    steps.append(_mouse(_MOVED, act.points[0]))
    presses = {"click": _click, "scroll": _scroll, "drag": _drag}.get(act.kind)
    for press in presses(act) if presses else [[]]:
        # the pointer's arrival, or the press before, may have changed what is there
        steps += [{"do": "pointer_at", **place}, {"do": "window_at", **place}, *press]
    return steps


def perform(window: Window, act: Act, stop_file: Optional[Path] = None) -> Delivery:
    """Do an act as Desktop.act says. stop_file: what ends texts and keys."""
    steps = steps_of(act)
    # a program that is killed while something is held would leave it down
    holds = act.kind in ("click", "drag") or act.hold_ms > 0 or (act.kind == "press" and act.chord.modifiers)
    with uninterrupted(1.0 + act.hold_ms * act.repeat / 1000) if holds else nullcontext():
        answer = _execute(window, steps, None if act.points else stop_file)
    if answer["ok"]:
        return Delivery(True if answer["is_certain"] else None, act.points[0] if act.points else None)
    sent = count_sent(steps[: answer["step"]])
    has_pressed = bool(sent or answer["released"])
    if act.points and (has_pressed or not answer["code"]):
        # the pointer is elsewhere, or what is there now is the effect of the first presses
        pointer = Point(**answer["pointer"]) if answer["pointer"] else None
        return Delivery(None if has_pressed else False, pointer)
    went_out = {"press": f"{sent} presses went out", "type": f"{sent} characters were typed"}
    code = ErrorCode(answer["code"])
    message = f"{clean_text(answer['message'], 500)}; {went_out.get(act.kind, 'nothing was clicked')}"
    raise mac_error(code, message)


def _execute(window: Window, steps: Sequence[Step], stop_file: Optional[Path]) -> dict[str, Any]:
    """The answer of the Swift helper where there is one, else of JXA."""
    # what an act that was killed left down goes up before the next
    record, release = state_folder() / _HELD, max((step.get("release", []) for step in steps), key=len)
    left = json.loads(record.read_text(encoding="utf-8")) if record.exists() else []
    if release:
        write_privately(record, json.dumps([*left, *_ended(release, _AFTER_RELEASE_MS)]))
    request = {"window": target_of(window), "stop_file": str(stop_file or ""), "steps": steps}
    request |= {"record": str(record), "release": left}
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
        message = f"the Swift helper ended with exit code {done.code} and no answer"
        drop_helper(message)
        raise mac_error(ErrorCode.INTERNAL_SWIFT_ERROR, message, done.stderr.strip()[-300:]) from e

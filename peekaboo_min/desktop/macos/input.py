"""Turn an act into steps, and run them in the Swift helper or in JXA.

An executor (input.swift or input.js) receives `{window, stop_file, steps}`, checks the window right before it
posts events, and returns how far it got. input.swift documents the steps and the reply. Most of the pauses
below come from public reports about other tools on a Mac.
"""

from __future__ import annotations

import json
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import accumulate
from pathlib import Path
from typing import Any, Optional

from ...core.call import uninterrupted
from ...core.errors import ErrorCode, PeekabooError, invalid
from ...core.log import log_debug
from ...core.models import Act, Delivery, KeyChord, Point, Window
from ...core.settings import settings
from ...core.text import clean_text
from ...system.files import held_locks, state_folder, write_privately
from ...system.process import run_program
from ..keys import character_of
from .osascript import WINDOW_SOURCES, mac_error, run_jxa
from .swift_helper import drop_helper, find_helper

_ACT_S = 45.0  # the longest act: a tool call has 50 seconds
_SPARE_S = 20.0  # for a busy machine
_UNIT_S = 0.01  # to type a character: two pauses of 4 ms, and posting; not measured
_STEP_S = 0.02  # to check before a step; not measured
_CLICK_HELD_MS = 60  # one program lost 1 of 15 clicks at 20 ms and none at 40 (agent-device#2716)
_NEXT_KEY_MS = 40  # a calculator lost equal keys, and keys after return, at 20 ms but not at 40
_NEXT_EVENT_MS = 20  # the time that the library enigo assumes for one event to arrive (enigo#329)
_DRAG_STARTS_MS, _DRAG_ENDS_MS = 100, 200  # macOS 26 loses drags without these pauses (iFurySt#53)
_DRAG_POINTS = 15  # more than one, because programs ignore a drag that jumps to its end
_LINES_PER_NOTCH = 3  # Qt's default
_MAX_CHARACTERS = 20  # per step; before each one the executor checks the keyboard focus
_RECORD = "held-macos.json"  # the steps that release what the running act holds down
_SOURCE_SELECTED_MS = 100  # until the program in front uses a new input source; not measured
_RELEASED_MS = 100  # until the system no longer reports a released key as held

# CGEventTypes; for a button: its number, then down, dragged, up
_MOVED = 5
_BUTTONS = {"left": (0, 1, 6, 2), "right": (1, 3, 7, 4), "middle": (2, 25, 27, 26)}
_WHEELS = {"up": (1, 0), "down": (-1, 0), "left": (0, 1), "right": (0, -1)}  # vertical, horizontal
_TYPED_KEYS = {"\n": 36, "\r": 36, "\r\n": 36, "\t": 48, "\b": 51}
# The keys that type a character, in the order of their key codes; `-` for 10, which few keyboards have.
_TYPING_KEYS = (
    "a s d f h g z x c v - b q w e r y t 1 2 3 4 6 5 equal 9 7 minus 8 0 right_bracket o u left_bracket i p "
    "return l j quote k semicolon backslash comma slash n m period tab space backquote backspace"
)
_KEY_CODES = {
    **{name: code for code, name in enumerate(_TYPING_KEYS.split())},
    **{f"f{at}": code for at, code in enumerate((122, 120, 99, 118, 96, 97, 98, 100, 101, 109, 103, 111), 1)},
    "plus": 24, "escape": 53, "caps_lock": 57, "enter_keypad": 76, "insert": 114, "home": 115, "page_up": 116,
    "delete": 117, "end": 119, "page_down": 121, "left": 123, "right": 124, "down": 125, "up": 126,
    "cmd": 55, "super": 55, "shift": 56, "alt": 58, "ctrl": 59,
    "keypad_decimal": 65, "keypad_multiply": 67, "keypad_add": 69, "keypad_divide": 75, "keypad_subtract": 78,
    "keypad_equal": 81,
    **{f"keypad_{n}": code for n, code in enumerate((82, 83, 84, 85, 86, 87, 88, 89, 91, 92))},
}  # fmt: skip
_FLAGS = {
    "shift": 0x20000, "ctrl": 0x40000, "alt": 0x80000, "cmd": 0x100000, "super": 0x100000, "fn": 0x800000,
}  # fmt: skip
_MODIFIER_KEYS = {0x40000: 59, 0x80000: 58, 0x20000: 56, 0x100000: 55}  # not fn: alone, it may open a panel
# A keyboard sets these flags itself for some keys; without them, macOS ignores ctrl+left and similar chords
# (CGEventTypes.h: secondary fn, numeric pad).
_FUNCTION, _KEYPAD = 0x800000, 0x200000
_IMPLIED_FLAGS = {
    **dict.fromkeys(("left", "right", "up", "down"), _FUNCTION | _KEYPAD),
    **dict.fromkeys(("home", "end", "page_up", "page_down", "delete", "insert"), _FUNCTION),
    **{f"f{number}": _FUNCTION for number in range(1, 21)},
    **{name: _KEYPAD for name in _KEY_CODES if "keypad" in name},
    **{name: _FLAGS[name] for name in _FLAGS if name in _KEY_CODES},
}


Step = dict[str, Any]
"""One check or event for the executor.

`counts` is the number of clicks, notches, drags or key presses that a step completes. A typing step without
it completes the characters of its `text`.
"""


def count_sent(steps: Sequence[Step]) -> int:
    """Count the clicks, notches, drags, key presses or characters that these steps send."""
    return sum(step.get("counts", len(step.get("text", ""))) for step in steps)


def window_argument(window: Window) -> dict[str, Any]:
    """Return the fields by which the native sources recognise a window."""
    fields = {"id": window.window_id, "pid": window.pid, "title": window.title, "is_popup": window.is_popup}
    return {**fields, **window.bounds._asdict()}


def _mouse_step(event_type: int, point: Point, **fields: Any) -> Step:
    return {"do": "mouse", "type": event_type, **point._asdict(), **fields}


def _click_steps(act: Act) -> list[list[Step]]:
    button, down_type, _, up_type = _BUTTONS[act.button]
    event = {"button": button, "flags": _combine_flags(act.modifiers)}
    hold_modifiers, release_modifiers = _modifier_steps(act.modifiers)
    clicks = []
    for count in range(1, act.clicks + 1):
        event |= {"clicks": count, "number": count}
        up = _mouse_step(up_type, act.points[0], **event)
        down = _mouse_step(down_type, act.points[0], **event, ms=_CLICK_HELD_MS, counts=1)
        down["release"] = [up, *release_modifiers]
        up_steps = [{**up, "release": release_modifiers}, *release_modifiers]
        clicks.append(_end_with_pause([*hold_modifiers, down, *up_steps], _NEXT_KEY_MS))
    return clicks


def _modifier_steps(names: Sequence[str]) -> tuple[list[Step], list[Step]]:
    # real key events: flags alone left Command stuck until the session ended (Glimpse#107)
    press: list[Step] = []
    release: list[Step] = []
    held_flags = 0
    for flag, code in _MODIFIER_KEYS.items():
        if _combine_flags(names) & flag:
            up = {"do": "key", "code": code, "is_down": False, "flags": held_flags, "release": release}
            release, held_flags = [up, *release], held_flags | flag
            down = {**up, "is_down": True, "flags": held_flags, "release": release}
            press.append({**down, "ms": _NEXT_EVENT_MS})
    return press, release


def _end_with_pause(steps: list[Step], ms: int) -> list[Step]:
    return [*steps[:-1], {**steps[-1], "ms": ms, "release": []}]


def _scroll_steps(act: Act) -> list[list[Step]]:
    vertical, horizontal = (sign * _LINES_PER_NOTCH for sign in _WHEELS[act.direction])
    notch = {"do": "wheel", "vertical": vertical, "horizontal": horizontal}
    return [[{**notch, "ms": _NEXT_EVENT_MS, "counts": 1}]] * act.amount


def _drag_steps(act: Act) -> list[list[Step]]:
    start, end = act.points
    button, down_type, dragged_type, up_type = _BUTTONS[act.button]
    # macOS 26 ignores drags with an event source, and drags without deltas (iFurySt#53)
    event = {"button": button, "clicks": 1, "number": 1, "no_source": True}
    # if the drag is interrupted, go back to its start, so that nothing is dropped elsewhere
    go_back = _mouse_step(dragged_type, start, **event, dx=1, dy=1, ms=_DRAG_ENDS_MS)
    up_at_start = _mouse_step(up_type, start, **event)
    steps = [_mouse_step(down_type, start, **event, ms=_DRAG_STARTS_MS, release=[up_at_start])]
    previous = start
    for number in range(1, _DRAG_POINTS + 1):
        fraction = number / _DRAG_POINTS
        point = Point(start.x + (end.x - start.x) * fraction, start.y + (end.y - start.y) * fraction)
        delta = {"dx": round(point.x) - round(previous.x), "dy": round(point.y) - round(previous.y)}
        ms = _NEXT_EVENT_MS if number < _DRAG_POINTS else _DRAG_ENDS_MS
        release = [go_back, up_at_start]
        steps.append(_mouse_step(dragged_type, point, **event, **delta, ms=ms, release=release))
        previous = point
    check_arrival = {"do": "pointer_at", **end._asdict()}
    return [[*steps, check_arrival, _mouse_step(up_type, end, **event, release=[], counts=1)]]


def _press_steps(chord: KeyChord, hold_ms: int = 0, counts: int = 1) -> list[Step]:
    key = {"do": "key", **_key_fields(chord)}
    hold_modifiers, release_modifiers = _modifier_steps(chord.modifiers)
    implied = key["flags"] & (_FUNCTION | _KEYPAD)
    up = {**key, "is_down": False, "flags": _combine_flags(chord.modifiers) | implied}
    release = [up, *release_modifiers]
    down = {**key, "is_down": True, "ms": hold_ms, "release": release, "counts": counts}
    up_steps = [{**up, "release": release_modifiers}, *release_modifiers]
    steps = [{"do": "has_keyboard"}, *hold_modifiers, down, *up_steps]
    return _end_with_pause(steps, _NEXT_KEY_MS)


def _key_fields(chord: KeyChord) -> dict[str, Any]:
    # a key code is a place on the keyboard; the key at the place of `a` types `q` on a French keyboard
    if chord.key not in _KEY_CODES:
        raise invalid(f"a Mac keyboard has no key {chord.key}", hint="press another key")
    held = _combine_flags(chord.modifiers)
    shift = _FLAGS["shift"] if chord.key == "plus" else 0
    flags = held | shift | _IMPLIED_FLAGS.get(chord.key, 0)
    key: dict[str, Any] = {"code": _KEY_CODES[chord.key], "flags": flags}
    if character := character_of(chord.key).strip():  # the space bar has the same code in every layout
        key |= {"character": character, "held": held}  # the executor looks up the character's key
    return key


def _combine_flags(modifiers: Sequence[str]) -> int:
    return sum({_FLAGS[name] for name in modifiers})  # a set, because cmd and super share a flag


def _text_steps(text: str, delay_ms: int) -> list[Step]:
    # each key, and each character of several UTF-16 units, is a step of its own; a pause also ends a step
    steps: list[Step] = []
    piece = ""
    characters = _split_characters(text)
    for character, following in zip(characters, [*characters[1:], ""]):
        is_key = character in _TYPED_KEYS
        is_alone = is_key or len(character) > 1 or character > "\uffff"
        needs_pause = following and (is_key or character == following != " ")
        ms = max(delay_ms if following else 0, _NEXT_KEY_MS if needs_pause else 0)
        if is_alone and piece:
            steps.append({"do": "type", "text": piece})
            piece = ""
        piece += character
        if is_alone or ms or len(piece) == _MAX_CHARACTERS or not following:
            step = {"do": "type", "text": piece, **({"ms": ms} if ms else {})}
            if is_alone:  # a character of several units belongs to no key: send it with code 0
                step["code"] = _TYPED_KEYS.get(character, 0)
            if is_key:
                step |= {"text": "", "counts": len(character)}
            steps.append(step)
            piece = ""
    return steps


def _split_characters(text: str) -> list[str]:
    """Split a text into the characters that a person sees, each of one or more code points."""
    characters: list[str] = []
    for code_point in text:
        if characters and _is_part_of(characters[-1], code_point):
            characters[-1] += code_point
        else:
            characters.append(code_point)
    return characters


def _is_part_of(character: str, code_point: str) -> bool:
    if character in _TYPED_KEYS:
        return character + code_point == "\r\n"
    last = character[-1]
    is_mark = unicodedata.category(code_point)[0] == "M" or code_point in "\u200c\u200d"
    is_skin_tone = "\U0001f3fb" <= code_point <= "\U0001f3ff"
    is_tag = "\U000e0020" <= code_point <= "\U000e007f"
    pair = character + code_point
    completes_flag = len(pair) == 2 and all("\U0001f1e6" <= letter <= "\U0001f1ff" for letter in pair)
    is_hangul_part = "\u1100" <= last <= "\u11ff" and "\u1160" <= code_point <= "\u11ff"
    is_after_joiner = last == "\u200d"
    return is_mark or is_skin_tone or is_tag or completes_flag or is_hangul_part or is_after_joiner


def make_steps(act: Act) -> list[Step]:
    """Return the steps of an act. Raises INVALID_ARGUMENT for a key that no Mac keyboard has."""
    # check for an input method only before characters; it does not change Command and Control chords
    if act.kind == "press":
        key, modifiers = act.chord
        is_character = (character_of(key) or "keypad_" in key) and not {"cmd", "super", "ctrl"} & {*modifiers}
        steps = _press_steps(act.chord, act.hold_ms) * act.repeat
        return [{"do": "has_layout"}, *steps] if is_character else steps
    if act.kind == "type":
        clear_keys = [KeyChord("a", ("cmd",)), *([] if act.text else [KeyChord("backspace")])]
        clear = [step for key in clear_keys for step in _press_steps(key, counts=0)] if act.replace else []
        steps = [*clear, *_text_steps(act.text, act.delay_ms)]
        return [{"do": "has_layout"}, *steps] if {*act.text} - {*_TYPED_KEYS} else steps
    start = act.points[0]._asdict()
    steps = [{"do": "window_at", **point._asdict()} for point in reversed(act.points)]
    steps.append(_mouse_step(_MOVED, act.points[0]))
    make_parts = {"click": _click_steps, "scroll": _scroll_steps, "drag": _drag_steps}.get(act.kind)
    for part in make_parts(act) if make_parts else [[]]:
        # check before each click or notch: the pointer or the press before may have changed the screen
        steps += [{"do": "pointer_at", **start}, {"do": "window_at", **start}, *part]
    return steps


def perform(window: Window, act: Act, stop_file: Optional[Path] = None) -> Delivery:
    """Do an act as Desktop.act specifies. stop_file: typing and key presses end as soon as it exists.

    A Mac does not report who received an event. So `delivered` is True if all checks passed, False if the
    pointer did not arrive, and None if a check failed after a press, or an overlay or a menu may have got it.
    """
    steps = make_steps(act)
    ends_s = list(accumulate(map(_duration_s, steps)))
    if ends_s[-1] > _ACT_S:
        fits = count_sent(steps[: bisect_right(ends_s, _ACT_S)])
        unit = "characters" if act.kind == "type" else "repetitions"
        raise invalid(f"the act takes {ends_s[-1]:.0f} seconds", f"split it: at most {fits} {unit} at a time")
    # do not kill the executor while it holds a key or button: it would stay down
    is_chord = act.kind == "press" and bool(act.chord.modifiers)
    is_holding = act.kind in ("click", "drag") or act.hold_ms > 0 or is_chord
    with uninterrupted(1.0 + act.hold_ms * act.repeat / 1000) if is_holding else nullcontext():
        reply = _execute(window, steps, None if act.points else stop_file)
        if reply["source_id"] and settings().may_switch_input:
            steps = with_layout(steps, reply["source_id"])
            reply = _execute(window, steps, stop_file)
    if reply["ok"]:
        return Delivery(True if reply["is_certain"] else None, act.points[0] if act.points else None)
    sent = count_sent(steps[: reply["step"]])
    if act.points:
        pointer = Point(**reply["pointer"]) if reply["pointer"] else None
        if sent or reply["released"]:
            return Delivery(None, pointer)  # a press went out, and the failed check may be its effect
        if not reply["code"]:
            return Delivery(False, pointer)  # the pointer did not arrive, or a person moved it
    if reply["source_id"]:
        hint = "switch to a keyboard layout (usually ctrl+space), or set PEEKABOO_SWITCH_INPUT=1"
        raise PeekabooError(ErrorCode(reply["code"]), clean_text(reply["message"]), hint)
    sent_text = {"press": f"{sent} key presses were sent", "type": f"{sent} characters were typed"}
    message = f"{clean_text(reply['message'], 500)}; {sent_text.get(act.kind, 'nothing was clicked')}"
    raise mac_error(ErrorCode(reply["code"]), message)


def with_layout(steps: Sequence[Step], source_id: str) -> list[Step]:
    """Return steps that select a keyboard layout, then do these steps, then restore the input method."""
    restore = {"do": "select_source", "id": source_id}
    select = {"do": "select_source", "ms": _SOURCE_SELECTED_MS}
    during = [{**step, "release": [*step.get("release", []), restore]} for step in (select, *steps[1:])]
    return [*during, {**restore, "release": []}]


def _duration_s(step: Step) -> float:
    return float(_STEP_S + len(step.get("text", "")) * _UNIT_S + step.get("ms", 0) / 1000)


def _execute(window: Window, steps: Sequence[Step], stop_file: Optional[Path]) -> dict[str, Any]:
    # If the executor is killed, the record stays, and its steps run first in the next act.
    record = state_folder() / _RECORD
    release_first = json.loads(record.read_text(encoding="utf-8")) if record.exists() else []
    longest_release = max((step.get("release", []) for step in steps), key=len)
    if longest_release:
        held = [*release_first, *_end_with_pause(longest_release, _RELEASED_MS)]
        write_privately(record, json.dumps(held))
    request = {"window": window_argument(window), "stop_file": str(stop_file or ""), "steps": steps}
    request |= {"record": str(record), "release": release_first}
    timeout_s = _SPARE_S + sum(map(_duration_s, steps))
    helper = find_helper()
    log_debug(f"input by {'the Swift helper' if helper else 'JXA'}")
    if not helper:
        return run_jxa([*WINDOW_SOURCES, "desktop/macos/input.js"], request, timeout_s, held_locks())
    stdin = json.dumps(request).encode()
    done = run_program([str(helper)], timeout_s=timeout_s, stdin=stdin, accept=None, pass_fds=held_locks())
    try:
        return dict(json.loads(done.stdout))
    except ValueError as e:
        message = f"the Swift helper exited with code {done.code} and returned no JSON"
        drop_helper(message)
        raise mac_error(ErrorCode.INTERNAL_SWIFT_ERROR, message, done.stderr.strip()[-300:]) from e

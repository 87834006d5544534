"""Key codes and modifier flags of macOS; the codes are places on the keyboard"""

from __future__ import annotations

from typing import Optional

from ...core.errors import ErrorCode, PeekabooError
from ...core.models import KeyChord

_KEY_CODES = {
    "return": 36, "tab": 48, "space": 49, "backspace": 51, "delete": 117, "escape": 53, "up": 126, "down": 125,
    "left": 123, "right": 124, "home": 115, "end": 119, "page_up": 116, "page_down": 121, "insert": 114,
    "caps_lock": 57, "enter_keypad": 76, "plus": 24, "comma": 43, "minus": 27, "equal": 24, "period": 47, "slash": 44,
    "backslash": 42, "semicolon": 41, "quote": 39, "backquote": 50, "left_bracket": 33, "right_bracket": 30,
    "a": 0, "s": 1, "d": 2, "f": 3, "h": 4, "g": 5, "z": 6, "x": 7, "c": 8, "v": 9, "b": 11, "q": 12, "w": 13, "e": 14,
    "r": 15, "y": 16, "t": 17, "o": 31, "u": 32, "i": 34, "p": 35, "l": 37, "j": 38, "k": 40, "n": 45, "m": 46,
    "1": 18, "2": 19, "3": 20, "4": 21, "6": 22, "5": 23, "9": 25, "7": 26, "8": 28, "0": 29,
    "f1": 122, "f2": 120, "f3": 99, "f4": 118, "f5": 96, "f6": 97, "f7": 98, "f8": 100, "f9": 101, "f10": 109,
    "f11": 103, "f12": 111,
}  # fmt: skip
_FLAGS = {
    "shift": 0x20000,
    "ctrl": 0x40000,
    "alt": 0x80000,
    "cmd": 0x100000,
    "super": 0x100000,
    "fn": 0x800000,
}

_CHARACTERS = {
    "comma": ",", "minus": "-", "equal": "=", "period": ".", "slash": "/", "backslash": "\\", "semicolon": ";",
    "quote": "'", "backquote": "`", "left_bracket": "[", "right_bracket": "]", "plus": "+",
}  # fmt: skip
_USING = {
    "cmd": "command down",
    "super": "command down",
    "ctrl": "control down",
    "alt": "option down",
    "shift": "shift down",
}
# On these the places of our key codes carry the characters that we name by them.
_ANSI_LAYOUTS = (
    "US",
    "ABC",
    "USExtended",
    "USInternational-PC",
    "British",
    "Australian",
    "Canadian",
    "Irish",
    "2SetHangul",
)


def mac_chord_character(chord: KeyChord) -> Optional[str]:
    """The character of a chord whose meaning hangs on the keyboard's layout (cmd+a); None for return, f5 and the like."""
    character = chord.key if len(chord.key) == 1 else _CHARACTERS.get(chord.key)
    return character if set(chord.modifiers) & {"cmd", "ctrl", "alt", "super"} else None


def is_ansi_layout(layout_id: str) -> bool:
    """Whether `com.apple.keylayout.NAME` has its letters where a US keyboard has them."""
    return layout_id.strip().rsplit(".", 1)[-1] in _ANSI_LAYOUTS


def mac_modifier_words(chord: KeyChord) -> list[str]:
    """The modifiers as System Events words them."""
    return [_USING[one] for one in chord.modifiers if one in _USING]


def mac_key_code(chord: KeyChord) -> int:
    """The virtual key code. Raises INVALID_ARGUMENT for a key that a Mac's keyboard has not."""
    if chord.key not in _KEY_CODES:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, f"a Mac's keyboard has no key {chord.key}", hint="press another key"
        )
    return _KEY_CODES[chord.key]


def mac_key_flags(chord: KeyChord) -> int:
    """The CGEventFlags of the held modifiers; `+` is shift and the = key."""
    held = {*chord.modifiers, *(["shift"] if chord.key == "plus" else [])}
    flags = 0
    for one in held:
        flags |= _FLAGS[one]
    return flags

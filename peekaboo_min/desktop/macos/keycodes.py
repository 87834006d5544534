"""Key codes and modifier flags of macOS; a code is a key's position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from ...core.errors import ErrorCode, PeekabooError
from ...core.models import KeyChord

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
    "shift": 0x20000,
    "ctrl": 0x40000,
    "alt": 0x80000,
    "cmd": 0x100000,
    "super": 0x100000,
    "fn": 0x800000,
}
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
    "cmd": "command down",
    "super": "command down",
    "ctrl": "control down",
    "alt": "option down",
    "shift": "shift down",
}
# Keyboard layouts (`com.apple.keylayout.NAME`) on which our key codes carry the characters of their names.
ANSI_LAYOUTS = (
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
    """The character of a chord that depends on the keyboard layout (cmd+a); None for f5 and the like."""
    character = chord.key if len(chord.key) == 1 else _CHARACTERS.get(chord.key)
    return character if set(chord.modifiers) & {"cmd", "ctrl", "alt", "super"} else None


def mac_modifier_words(chord: KeyChord) -> list[str]:
    """The modifiers as System Events spells them."""
    return [_USING[one] for one in chord.modifiers if one in _USING]


def mac_key_code(chord: KeyChord) -> int:
    """The virtual key code. Raises INVALID_ARGUMENT for a key that no Mac keyboard has."""
    if chord.key not in _KEY_CODES:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, f"a Mac keyboard has no key {chord.key}", hint="press another key"
        )
    return _KEY_CODES[chord.key]


def mac_key_flags(chord: KeyChord) -> int:
    """The CGEventFlags of the key and the held modifiers; `+` is shift and the = key."""
    held = (*chord.modifiers, *(["shift"] if chord.key == "plus" else []))
    return mac_modifier_flags(held) | _OWN_FLAGS.get(chord.key, 0)


def mac_modifier_flags(modifiers: Sequence[str]) -> int:
    """The CGEventFlags of modifiers by the names of keys.py. Raises INVALID_ARGUMENT for an unknown one."""
    flags = 0
    for one in modifiers:
        if one not in _FLAGS:
            raise PeekabooError(
                ErrorCode.INVALID_ARGUMENT,
                f"there is no modifier {one[:40]!r}",
                hint="use " + ", ".join(_FLAGS),
            )
        flags |= _FLAGS[one]
    return flags

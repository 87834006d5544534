"""Key chords, read from the spellings that people and models write."""

from __future__ import annotations

import pytest
from samples import error_of

from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.core.models import KeyChord
from peekaboo_min.desktop.keys import character_of, read_chord

# our spelling -> other spellings
CHORDS = {
    "return": ["Return", "ENTER", "ret", "⏎", "↩"], "a": ["a", "A", " a "], "plus": ["+"],
    "minus": ["-", "hyphen", "dash"], "comma": [","], "space": ["space", "spacebar"], "tab": ["⇥"],
    "escape": ["esc", "⎋"], "up": ["↑", "arrow up"], "down": ["↓", "arrow down"],
    "right": ["→", "right arrow"], "insert": ["ins", "help"], "page_up": ["pgup", "prior", "PageUp"],
    "caps_lock": ["CapsLock"], "f20": ["f20"],
    "page_down": ["next", "page down", "page-down", "PageDown", "pgdn"],
    "left": ["arrow_left", "left arrow", "←"], "backspace": ["⌫", "bksp"],
    "delete": ["forward delete", "del", "⌦"],
    "cmd+shift+t": ["cmd+shift+t", "shift + cmd + t", "Command-Shift-T"],
    "ctrl+alt+delete": ["ctrl alt delete"], "ctrl+a": ["ctrl,a"], "cmd+plus": ["cmd++"],
    "cmd+comma": ["cmd+,", "cmd,,"], "cmd+minus": ["cmd+-", "cmd--"],
    "ctrl+minus": ["ctrl--", "ctrl+-", "ctrl -", "ctrl - -", "ctrl,-", "Ctrl-Minus"],
    "ctrl+shift+minus": ["ctrl+shift+-", "ctrl-shift--", "ctrl shift -"],
    "ctrl+plus": ["ctrl++", "ctrl-+", "ctrl +", "ctrl + +"], "ctrl+comma": ["ctrl+,", "ctrl-,", "ctrl ,"],
    "ctrl+page_down": ["ctrl-page-down", "ctrl page down"], "cmd+s": ["⌘+s", "meta+s"],
    "ctrl+alt+shift+s": ["⌃+⌥+⇧+s", "^+opt+shift+s"], "super+s": ["windows+s"],
    "fn+s": ["function+s", "fn+s"], "super": ["super", "Super_L", "win"], "ctrl": ["Control", "Control_L"],
    "alt": ["alt", "option", "opt"], "cmd": ["cmd", "Command", "meta"],
    "alt+shift": ["alt+shift", "alt Shift_L"], "menu": ["Menu"], "print": ["Print", "print screen"],
    "pause": ["Pause", "Break"], "scroll_lock": ["Scroll_Lock", "scroll lock"],
    "num_lock": ["Num_Lock", "NumLock"], "keypad_0": ["KP_0", "numpad0", "keypad 0"],
    "ctrl+keypad_9": ["ctrl+KP_9"], "keypad_add": ["KP_Add", "numpad add"],
    "keypad_subtract": ["numpad subtract"], "keypad_multiply": ["numpad multiply"],
    "keypad_decimal": ["numpad decimal"], "keypad_equal": ["numpad equal"], "keypad_divide": ["kp_divide"],
    "enter_keypad": ["KP_Enter", "keypad enter", "numpad enter"], "quote": ["'"],
    "backquote": ["`", "backtick"], "semicolon": [";"], "equal": ["=", "equals"], "period": [".", "dot"],
    "slash": ["/"], "backslash": ["\\"], "left_bracket": ["[", "left bracket"],
    "right_bracket": ["]", "right bracket"],
}  # fmt: skip
REFUSED = {
    **dict.fromkeys(["", "ab", "f0", "f21", "option+ü", "^", "fn", "x" * 500], "no key called"),
    **dict.fromkeys(["cmd+", "ctrl-", "+a", "++", "ctrl---", "shift+ctrl+", "KP_10"], "no key called"),
    **dict.fromkeys(["a+b", "hyper+a", "ctrl+shft+a"], "no modifier called"),
}


@pytest.mark.parametrize(
    ("key", "chord"), [(key, chord) for chord, spellings in CHORDS.items() for key in spellings]
)
def test_chord_is_read_in_many_spellings(key: str, chord: str) -> None:
    read = read_chord(key)
    assert (str(read), type(read)) == (chord, KeyChord)


def test_chord_text_reads_back_as_the_same_chord() -> None:
    assert [str(read_chord(chord)) for chord in CHORDS] == list(CHORDS)


def test_chord_accepts_extra_modifiers() -> None:
    assert str(read_chord("t", ("cmd", "shift"))) == "cmd+shift+t"
    assert str(read_chord("cmd+t", (" cmd ", "Shift"))) == "cmd+shift+t"
    assert str(read_chord("shift", ("shift", "ctrl"))) == "ctrl+shift"


@pytest.mark.parametrize(
    ("key", "modifiers", "problem"),
    [
        *((key, (), problem) for key, problem in REFUSED.items()),
        ("a", ("hyper",), "no modifier called 'hyper'"),
        ("a", ("",), "no modifier called ''"),
        ("a", ("x" * 500,), "no modifier called 'xxx"),
    ],
)
def test_invalid_chord_is_refused(key: str, modifiers: tuple[str, ...], problem: str) -> None:
    error = error_of(read_chord, key, modifiers)
    assert (error.code, bool(error.hint)) == (ErrorCode.INVALID_ARGUMENT, True)
    assert problem in error.message and len(error.message) < 120


def test_character_of_a_key_is_its_text_without_modifiers() -> None:
    names = ["a", "7", "plus", "comma", "space", "backslash", "return", "f5", "up", "keypad_1", "ctrl"]
    assert [character_of(name) for name in names] == ["a", "7", "+", ",", " ", "\\", "", "", "", "", ""]

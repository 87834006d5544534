"""Key chords, from the texts that people and models write."""

from __future__ import annotations

import pytest
from samples import error_of

from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.core.models import KeyChord
from peekaboo_min.desktop.keys import character_of, read_chord

# our spelling -> others'
CHORDS = {
    "return": ["Return", "ENTER"],
    "a": ["a", "A", " a "],
    "plus": ["+"],
    "minus": ["-"],
    "comma": [","],
    "space": ["space"],
    "f20": ["f20"],
    "page_down": ["page down", "page-down", "PageDown", "pgdn"],
    "left": ["arrow_left"],
    "backspace": ["⌫"],
    "delete": ["forward delete"],
    "cmd+shift+t": ["cmd+shift+t", "shift + cmd + t", "Command-Shift-T"],
    "ctrl+alt+delete": ["ctrl alt delete"],
    "ctrl+a": ["ctrl,a"],
    "cmd+plus": ["cmd++"],
    "cmd+comma": ["cmd+,", "cmd,,"],
    "cmd+minus": ["cmd+-"],
    "cmd+s": ["⌘+s"],
}
REFUSED = ["", "cmd--", "option+ü", "f0", "f21", "cmd+", "+a", "++", "a+b", "cmd", "ab", "x" * 500]


@pytest.mark.parametrize(
    ("key", "chord"), [(key, chord) for chord, spellings in CHORDS.items() for key in spellings]
)
def test_chord_is_read_in_many_spellings(key: str, chord: str) -> None:
    read = read_chord(key)
    assert (str(read), type(read)) == (chord, KeyChord)


def test_chord_takes_modifiers_given_besides() -> None:
    assert str(read_chord("t", ("cmd", "shift"))) == "cmd+shift+t"
    assert str(read_chord("cmd+t", ("cmd", "Shift"))) == "cmd+shift+t"


@pytest.mark.parametrize(
    ("key", "modifiers"), [*((key, ()) for key in REFUSED), ("a", ("hyper",)), ("a", ("",))]
)
def test_chord_that_is_none_is_refused(key: str, modifiers: tuple[str, ...]) -> None:
    error = error_of(read_chord, key, modifiers)
    assert (error.code, bool(error.hint)) == (ErrorCode.INVALID_ARGUMENT, True)
    assert len(error.message) < 120


def test_character_of_a_key_is_what_it_types_alone() -> None:
    names = ["a", "7", "plus", "comma", "space", "backslash", "return", "f5", "up"]
    assert [character_of(name) for name in names] == ["a", "7", "+", ",", " ", "\\", "", "", ""]

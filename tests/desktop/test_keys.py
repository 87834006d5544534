"""Key chords, from the texts that people and models write."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from samples import error_of

from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.core.models import KeyChord
from peekaboo_min.desktop.keys import read_chord

CHORDS: list[tuple[str, Sequence[str], str]] = [
    ("Return", (), "return"),
    ("ENTER", (), "return"),
    ("\n", (), ""),
    ("a", (), "a"),
    ("A", (), "a"),
    ("7", (), "7"),
    ("+", (), "plus"),
    ("-", (), "minus"),
    (",", (), "comma"),
    (" a ", (), "a"),
    ("space", (), "space"),
    ("F5", (), "f5"),
    ("f20", (), "f20"),
    ("page down", (), "page_down"),
    ("page-down", (), "page_down"),
    ("PageDown", (), "page_down"),
    ("pgdn", (), "page_down"),
    ("arrow_left", (), "left"),
    ("⌫", (), "backspace"),
    ("forward delete", (), "delete"),
    ("cmd+shift+t", (), "cmd+shift+t"),
    ("shift + cmd + t", (), "cmd+shift+t"),
    ("Command-Shift-T", (), "cmd+shift+t"),
    ("ctrl alt delete", (), "ctrl+alt+delete"),
    ("ctrl,a", (), "ctrl+a"),
    ("cmd++", (), "cmd+plus"),
    ("cmd+,", (), "cmd+comma"),
    ("cmd,,", (), "cmd+comma"),
    ("cmd+-", (), "cmd+minus"),
    ("cmd--", (), ""),
    ("⌘+s", (), "cmd+s"),
    ("option+ü", (), ""),
    ("t", ("cmd", "shift"), "cmd+shift+t"),
    ("cmd+t", ("cmd", "Shift"), "cmd+shift+t"),
    ("ctrl+page_up", (), "ctrl+page_up"),
    ("cmd+/", (), "cmd+slash"),
    ("shift+tab", (), "shift+tab"),
    ("f21", (), ""),
    ("", (), ""),
    ("   ", (), ""),
    ("cmd+", (), ""),
    ("+a", (), ""),
    ("++", (), ""),
    ("+++", (), ""),
    ("a+b", (), ""),
    ("cmd+return+a", (), ""),
    ("cmd", (), ""),
    ("shift", (), ""),
    ("a", ("hyper",), ""),
    ("a", ("",), ""),
    ("x" * 5000, (), ""),
    ("ab", (), ""),
]


@pytest.mark.parametrize(
    ("key", "modifiers", "chord"), CHORDS, ids=[repr(one[0])[:24] + str(n) for n, one in enumerate(CHORDS)]
)
def test_a_chord_is_read_or_refused(key: str, modifiers: Sequence[str], chord: str) -> None:
    """An empty chord stands for a refusal."""
    if chord:
        read = read_chord(key, modifiers)
        assert (str(read), type(read)) == (chord, KeyChord)
    else:
        error = error_of(read_chord, key, modifiers)
        assert (error.code, bool(error.hint), len(error.message) < 120) == (
            ErrorCode.INVALID_ARGUMENT,
            True,
            True,
        )

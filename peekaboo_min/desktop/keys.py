"""Key names in the spellings that people use, read into one (pure)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.errors import invalid
from ..core.models import KeyChord

# Our name of a modifier -> other spellings of it (compared without case).
_MODIFIER_SPELLINGS = {
    "cmd": "command meta ⌘",
    "ctrl": "control ⌃ ^",
    "alt": "option opt ⌥",
    "shift": "⇧",
    "super": "win windows",
    "fn": "function",
}
# Our name of a key -> other spellings of it (compared without case, spaces, `_` and `-`).
_KEY_SPELLINGS = {
    "return": "enter ret newline linefeed ⏎ ↩",
    "tab": "⇥",
    "space": "spacebar",
    "backspace": "bksp ⌫",
    "delete": "del forwarddelete fwddelete ⌦",
    "escape": "esc ⎋",
    "up": "arrowup uparrow ↑",
    "down": "arrowdown downarrow ↓",
    "left": "arrowleft leftarrow ←",
    "right": "arrowright rightarrow →",
    "home": "",
    "end": "",
    "page_up": "pgup prior pageup",
    "page_down": "pgdn pgdown next pagedown",
    "insert": "ins help",
    "caps_lock": "capslock",
    "enter_keypad": "kpenter keypadenter numpadenter",
    "plus": "+",
    "comma": ",",
    "minus": "- hyphen dash",
    "equal": "= equals",
    "period": ". dot",
    "slash": "/",
    "backslash": "\\",
    "semicolon": ";",
    "quote": "' apostrophe",
    "backquote": "` grave backtick",
    "left_bracket": "[ bracketleft leftbracket",
    "right_bracket": "] bracketright rightbracket",
}


def _squeeze(text: str) -> str:
    return re.sub(r"(?<=.)[ _-](?=.)", "", text.lower())


def _by_spelling(table: dict[str, str]) -> dict[str, str]:
    return {_squeeze(word): name for name, others in table.items() for word in (name, *others.split())}


_MODIFIERS, _KEYS = _by_spelling(_MODIFIER_SPELLINGS), _by_spelling(_KEY_SPELLINGS)
_KEYS.update({character: character for character in "abcdefghijklmnopqrstuvwxyz0123456789"})
_KEYS.update({f"f{number}": f"f{number}" for number in range(1, 21)})


def character_of(key: str) -> str:
    """What a key of our name types without modifiers, where that is an ASCII character; else nothing."""
    spellings = [key, " " if key == "space" else "", *_KEY_SPELLINGS.get(key, "").split()]
    return next((spelling for spelling in spellings if len(spelling) == 1 and spelling.isascii()), "")


def read_chord(key: str, modifiers: Sequence[str] = ()) -> KeyChord:
    """A chord from `Return`, `cmd+shift+t`, `ctrl,a`, `cmd++`, or from a key with its modifiers given
    besides.

    An upper-case letter alone is that letter's key; say shift when shift is meant. Raises INVALID_ARGUMENT.
    """
    *names, last = _split_chord(key.strip())
    given = [name.strip().lower() for name in (*modifiers, *names)]
    unknown = [name for name in given if name not in _MODIFIERS]
    if unknown:
        known = ", ".join(_MODIFIER_SPELLINGS)
        raise invalid(f"there is no modifier called {unknown[0][:40]!r}", f"known are {known}")
    held = {_MODIFIERS[name] for name in given}
    if _squeeze(last) not in _KEYS:
        hint = "known are a-z, 0-9, f1-f20, " + ", ".join(_KEY_SPELLINGS)
        raise invalid(f"there is no key called {last[:40]!r}", hint)
    return KeyChord(_KEYS[_squeeze(last)], tuple(name for name in _MODIFIER_SPELLINGS if name in held))


def _split_chord(text: str) -> list[str]:
    # The last character may be a separator that is itself the key: `cmd++`, `cmd+,`.
    if len(text) > 2 and text[-1] in "+," and text[-2] in "+,":
        return [*re.split("[+,]", text[:-2]), text[-1]]
    if len(text) == 1:
        return [text]
    *names, last = re.split("[+,]", text)
    by_dashes = re.split(r"[\s-]+", last.strip())
    if not names and all(name.lower() in _MODIFIERS for name in by_dashes[:-1]):
        return by_dashes  # `cmd-shift-t`, `cmd shift t`; but not `page-down`
    return [*names, last.strip()]

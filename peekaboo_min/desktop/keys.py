"""Key names and chords, in the spellings that people and models use."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.errors import invalid
from ..core.models import KeyChord

# Our name of a modifier -> its other spellings, compared without case.
_MODIFIER_SPELLINGS = {
    "cmd": "command meta ⌘",
    "ctrl": "control ⌃ ^",
    "alt": "option opt ⌥",
    "shift": "⇧",
    "super": "win windows",
    "fn": "function",
}
# Our name of a key -> its other spellings, compared without case, spaces, `_` and `-`.
_KEY_SPELLINGS = {
    "return": "enter ret newline linefeed ⏎ ↩", "tab": "⇥", "space": "spacebar", "backspace": "bksp ⌫",
    "delete": "del forwarddelete fwddelete ⌦", "escape": "esc ⎋", "up": "arrowup uparrow ↑",
    "down": "arrowdown downarrow ↓", "left": "arrowleft leftarrow ←", "right": "arrowright rightarrow →",
    "home": "", "end": "", "page_up": "pgup prior pageup", "page_down": "pgdn pgdown next pagedown",
    "insert": "ins help", "caps_lock": "capslock", "num_lock": "", "scroll_lock": "", "pause": "break",
    "print": "printscreen prtsc prtscr", "menu": "contextmenu",
    "enter_keypad": "kpenter keypadenter numpadenter", "keypad_add": "kpadd numpadadd",
    "keypad_subtract": "kpsubtract numpadsubtract", "keypad_multiply": "kpmultiply numpadmultiply",
    "keypad_divide": "kpdivide numpaddivide", "keypad_decimal": "kpdecimal numpaddecimal",
    "keypad_equal": "kpequal numpadequal", "plus": "+", "comma": ",", "minus": "- hyphen dash",
    "equal": "= equals", "period": ". dot", "slash": "/", "backslash": "\\", "semicolon": ";",
    "quote": "' apostrophe", "backquote": "` grave backtick",
    "left_bracket": "[ bracketleft leftbracket", "right_bracket": "] bracketright rightbracket",
}  # fmt: skip


def _squeeze(text: str) -> str:
    return re.sub(r"(?<=.)[ _-](?=.)", "", text.lower())


def _by_spelling(table: dict[str, str]) -> dict[str, str]:
    return {_squeeze(word): name for name, others in table.items() for word in (name, *others.split())}


_MODIFIERS, _KEYS = _by_spelling(_MODIFIER_SPELLINGS), _by_spelling(_KEY_SPELLINGS)
_KEYS.update({character: character for character in "abcdefghijklmnopqrstuvwxyz0123456789"})
_KEYS.update({f"f{number}": f"f{number}" for number in range(1, 21)})
_KEYS.update({f"{pad}{n}": f"keypad_{n}" for pad in ("keypad", "kp", "numpad") for n in range(10)})
# modifiers alone; `^` is no key name, because people mean the character
_ALONE = {word: name for word, name in _MODIFIERS.items() if word.isalpha() and name != "fn"}
_KEYS.update(_ALONE)
_KEYS.update({f"{word}l": name for word, name in _ALONE.items()})  # as X11 names them: Super_L
_KNOWN = f"use a-z, 0-9, f1-f20, {', '.join(_KEY_SPELLINGS)}, keypad_0 to keypad_9, or a modifier alone"
_MODIFIER_AND_SEPARATOR = rf"({'|'.join(map(re.escape, _MODIFIERS))})(\s*[+,-]\s*|\s+)(?=\S)"


def character_of(key: str) -> str:
    """Return the ASCII character that a key types without modifiers, or an empty string."""
    spellings = [key, " " if key == "space" else "", *_KEY_SPELLINGS.get(key, "").split()]
    return next((spelling for spelling in spellings if len(spelling) == 1 and spelling.isascii()), "")


def read_chord(key: str, modifiers: Sequence[str] = ()) -> KeyChord:
    """Read a chord such as `Return`, `cmd+shift+t`, `ctrl,a`, `ctrl -`; add `modifiers` to its own.

    An upper-case letter means that letter's key, without shift. Raises INVALID_ARGUMENT.
    """
    given, last = [name.strip().lower() for name in modifiers], key.strip()
    while prefix := re.match(_MODIFIER_AND_SEPARATOR, last, re.IGNORECASE):
        given.append(prefix[1].lower())
        last = last[prefix.end() :]
    if _squeeze(last) not in _KEYS:
        unknown = re.match(r"([^+,]+)[+,].", last)
        if not unknown:
            raise invalid(f"there is no key called {last[:40]!r}", _KNOWN)
        given.append(unknown[1].strip())
    for name in given:
        if name not in _MODIFIERS:
            known = ", ".join(_MODIFIER_SPELLINGS)
            raise invalid(f"there is no modifier called {name[:40]!r}", f"use {known}")
    key_name = _KEYS[_squeeze(last)]
    held = {_MODIFIERS[name] for name in given} - {key_name}
    return KeyChord(key_name, tuple(name for name in _MODIFIER_SPELLINGS if name in held))

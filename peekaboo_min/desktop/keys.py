"""Key names in the spellings that people use, read into one (pure)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.errors import PeekabooError, invalid
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


def _squeeze(word: str) -> str:
    return re.sub(r"(?<=.)[ _-](?=.)", "", word.lower())


_MODIFIERS = {word: name for name, words in _MODIFIER_SPELLINGS.items() for word in (name, *words.split())}
_KEYS = {_squeeze(word): name for name, words in _KEY_SPELLINGS.items() for word in (name, *words.split())}
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
    words = _split_chord(key)
    held = [_read_modifier(word) for word in [*modifiers, *words[:-1]]]
    name = _KEYS.get(_squeeze(words[-1]))
    if name is None:
        raise _unknown_key(words[-1])
    return KeyChord(name, tuple(name for name in _MODIFIER_SPELLINGS if name in held))


def _split_chord(text: str) -> list[str]:
    text = text.strip()
    if not text:
        raise invalid("no key was named", "name one, like `Return` or `cmd+s`")
    if len(text) == 1:
        return [text]
    # The last character may be a separator that is itself the key: `cmd++`, `cmd+,`.
    head, last = (text[:-2], text[-1]) if text[-1] in "+," and text[-2] in "+," else (text, "")
    words = [word.strip() for word in re.split(r"[+,]", head)]
    by_dashes = re.split(r"[\s-]+", text)
    if len(words) == 1 and not last and all(part.lower() in _MODIFIERS for part in by_dashes[:-1]):
        words = by_dashes  # `cmd-shift-t`, `cmd shift t`; but not `page-down`
    if not all(words):
        raise invalid(f"{text[:40]!r} is not a chord", "write it like `cmd+shift+t`")
    return [*words, last] if last else words


def _read_modifier(word: str) -> str:
    name = _MODIFIERS.get(word.strip().lower())
    if name is None:
        raise invalid(
            f"there is no modifier called {word[:40]!r}", "known are " + ", ".join(_MODIFIER_SPELLINGS)
        )
    return name


def _unknown_key(word: str) -> PeekabooError:
    import difflib  # 3 ms that only a wrong name needs

    slips = difflib.get_close_matches(_squeeze(word), list(_KEYS), 3, 0.6)
    near = dict.fromkeys(_KEYS[each] for each in slips)  # each key once, by our name of it
    hint = f"did you mean {' or '.join(near)}?"
    if not near:
        hint = "known are a-z, 0-9, f1-f20, " + ", ".join(_KEY_SPELLINGS)
    return invalid(f"there is no key called {word[:40]!r}", hint)

"""Key names in the spellings that people use, read into one (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..core.errors import ErrorCode, PeekabooError
from ..core.models import KeyChord

MODIFIERS = ("cmd", "ctrl", "alt", "shift", "super", "fn")
_MODIFIER_SPELLINGS = {
    "cmd": "cmd", "command": "cmd", "meta": "cmd", "⌘": "cmd",
    "ctrl": "ctrl", "control": "ctrl", "⌃": "ctrl", "^": "ctrl",
    "alt": "alt", "option": "alt", "opt": "alt", "⌥": "alt",
    "shift": "shift", "⇧": "shift",
    "super": "super", "win": "super", "windows": "super",
    "fn": "fn", "function": "fn",
}  # fmt: skip

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
LETTERS_AND_DIGITS = "abcdefghijklmnopqrstuvwxyz0123456789"


def _squeeze(word: str) -> str:
    return re.sub(r"(?<=.)[ _-](?=.)", "", word.lower())


_KEYS = {_squeeze(name): name for name in _KEY_SPELLINGS}
_KEYS.update({_squeeze(word): name for name, words in _KEY_SPELLINGS.items() for word in words.split()})
_KEYS.update({character: character for character in LETTERS_AND_DIGITS})
_KEYS.update({f"f{number}": f"f{number}" for number in range(1, 21)})


def read_chord(key: str, modifiers: Sequence[str] = ()) -> KeyChord:
    """A chord from `Return`, `cmd+shift+t`, `ctrl,a`, `cmd++`, or from a key with its modifiers given
    besides.

    An upper-case letter alone is that letter's key; say shift when shift is meant. Raises INVALID_ARGUMENT.
    """
    words = _split_chord(key)
    held = [_read_modifier(word) for word in [*modifiers, *words[:-1]]]
    name = _KEYS.get(_squeeze(words[-1]))
    if name is None:
        raise _unknown_key(words[-1], _KEYS)
    return KeyChord(name, tuple(one for one in MODIFIERS if one in held))


def _split_chord(text: str) -> list[str]:
    text = text.strip()
    if not text:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, "no key was named", hint="name one, like `Return` or `cmd+s`"
        )
    if len(text) == 1:
        return [text]
    # The last character may be a separator that is itself the key: `cmd++`, `cmd+,`.
    head, last = (text[:-2], text[-1]) if text[-1] in "+," and text[-2] in "+," else (text, "")
    words = [word.strip() for word in re.split(r"[+,]", head)]
    by_dashes = re.split(r"[\s-]+", text)
    if len(words) == 1 and not last and all(part.lower() in _MODIFIER_SPELLINGS for part in by_dashes[:-1]):
        words = by_dashes  # `cmd-shift-t`, `cmd shift t`; but not `page-down`
    if not all(words):
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, f"{text[:40]!r} is not a chord", hint="write it like `cmd+shift+t`"
        )
    return [*words, last] if last else words


def _read_modifier(word: str) -> str:
    name = _MODIFIER_SPELLINGS.get(word.strip().lower())
    if name is None:
        raise _unknown_key(word, _MODIFIER_SPELLINGS, "modifier")
    return name


def _unknown_key(word: str, known: Iterable[str], kind: str = "key") -> PeekabooError:
    import difflib  # 3 ms that only a wrong name needs

    near = difflib.get_close_matches(word.lower(), list(known), 3, 0.6)
    hint = (
        f"did you mean {' or '.join(near)}?"
        if near
        else "known are a-z, 0-9, f1-f20, " + ", ".join(_KEY_SPELLINGS)
    )
    if kind == "modifier":
        hint = "known are " + ", ".join(MODIFIERS)
    return PeekabooError(ErrorCode.INVALID_ARGUMENT, f"there is no {kind} called {word[:40]!r}", hint=hint)

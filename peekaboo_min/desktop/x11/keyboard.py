"""The keyboard on X11: xdotool for ASCII and chords, the clipboard else."""

from __future__ import annotations

import re
import time
from typing import Callable

from ...core.cancellation import pause
from ...core.errors import ErrorCode, PeekabooError
from ...core.log import log_debug
from ...core.models import KeyChord
from ...system.process import background_program, run_program

_KEYS_S = 10.0
_CHARACTERS_PER_SECOND = 100
_CLIPBOARD_S = 2.0
_QUIET_S = 0.06
_CLIPBOARD_POLL_S = 0.005

# Our key names -> X keysyms (xdotool knows no others: `enter`, `esc` and `pageup` would be ignored with exit 0).
_KEYSYMS = {
    "return": "Return", "tab": "Tab", "space": "space", "backspace": "BackSpace", "delete": "Delete",
    "escape": "Escape", "up": "Up", "down": "Down", "left": "Left", "right": "Right", "home": "Home", "end": "End",
    "page_up": "Prior", "page_down": "Next", "insert": "Insert", "caps_lock": "Caps_Lock", "enter_keypad": "KP_Enter",
    "plus": "plus", "comma": "comma", "minus": "minus", "equal": "equal", "period": "period", "slash": "slash",
    "backslash": "backslash", "semicolon": "semicolon", "quote": "apostrophe", "backquote": "grave",
    "left_bracket": "bracketleft", "right_bracket": "bracketright",
}  # fmt: skip

# What people press with Command on a Mac they press with Control here; who means the logo key says super.
_MODIFIERS = {"cmd": "ctrl", "ctrl": "ctrl", "alt": "alt", "shift": "shift", "super": "super"}


def press_x11_key(chord: KeyChord) -> None:
    """Press one chord. Raises INVALID_ARGUMENT for fn, which X11 does not have."""
    if "fn" in chord.modifiers:
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, "X11 has no fn key", hint="press the key without it")
    held = dict.fromkeys(_MODIFIERS[one] for one in chord.modifiers)
    keysym = _KEYSYMS.get(chord.key) or (chord.key.upper() if re.fullmatch(r"f\d+", chord.key) else chord.key)
    _xdotool(["key", "--clearmodifiers", "--delay", "0", "--", "+".join([*held, keysym])])


def type_x11_text(text: str) -> None:
    """Type text: returns and tabs as their keys, runs of ASCII by xdotool, other runs through the clipboard."""
    for part in re.split(r"(\n|\t)", text.replace("\r\n", "\n").replace("\r", "\n")):
        if part == "\n":
            press_x11_key(KeyChord("return"))
        elif part == "\t":
            press_x11_key(KeyChord("tab"))
        elif part.isascii() and part:
            # from stdin: words of a command line can be read by everybody on the machine
            timeout_s = _KEYS_S + len(part) / _CHARACTERS_PER_SECOND
            _xdotool(
                ["type", "--clearmodifiers", "--delay", "4", "--file", "-"], part.encode("ascii"), timeout_s
            )
        elif part:
            _paste(part)


def _xdotool(words: list[str], stdin: bytes = b"", timeout_s: float = _KEYS_S) -> None:
    done = run_program(["xdotool", *words], timeout_s=timeout_s, stdin=stdin, accept=None)
    # an unknown key is ignored with exit 0, and only stderr tells
    if done.code or "No such key name" in done.stderr:
        raise PeekabooError(
            ErrorCode.PROGRAM_FAILED, "xdotool could not press the keys", details=done.stderr.strip()[-500:]
        )


def _paste(text: str) -> None:
    """Text through both selections and shift+Insert, which terminals, Tk, GTK and browsers all take; the clipboard is
    put back when the window has fetched the text, and not before.
    """
    saved = run_program(["xclip", "-selection", "clipboard", "-o"], timeout_s=_CLIPBOARD_S, accept=None)
    data = text.encode("utf-8")
    clipboard_words, primary_words = (
        ["xclip", "-verbose", "-selection", one, "-i"] for one in ("clipboard", "primary")
    )
    with (
        background_program(clipboard_words, data) as clipboard,
        background_program(primary_words, data) as primary,
    ):

        def requests() -> int:
            return sum(one.said().count("selection request number") for one in (clipboard, primary))

        _wait_until(lambda: requests() >= 2)  # both serve, and wait for their first request
        press_x11_key(KeyChord("insert", ("shift",)))
        if not _wait_until(lambda: requests() > 2):
            log_debug("no window fetched the pasted text")
        # some programs ask for the kinds of text first, and for the text itself a moment later
        seen = -1
        while seen != requests():
            seen = requests()
            pause(_QUIET_S)
    if saved.code == 0 and saved.stdout:
        run_program(
            ["xclip", "-selection", "clipboard", "-i"],
            timeout_s=_CLIPBOARD_S,
            stdin=saved.stdout,
            leaves_daemon=True,
        )


def _wait_until(is_true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + _CLIPBOARD_S
    while time.monotonic() < deadline:
        if is_true():
            return True
        pause(_CLIPBOARD_POLL_S)
    return False

"""The keyboard on X11: xdotool for ASCII and chords, else the clipboard."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...core.cancellation import check_cancelled, uninterrupted
from ...core.errors import ErrorCode, FocusLost, PeekabooError
from ...core.models import KeyChord, Window
from ...system.files import held_locks
from ...system.process import run_program
from .clipboard import Clipboard
from .server import UTF8, is_viewable, top_level, window_with_input_focus
from .windows import is_same_client

_KEYS_S = 10.0
_PIECE = 20
_KEY_DELAY_MS = "4"

# Our key names -> X keysyms (xdotool knows no others: `enter`, `esc` and `pageup` would be ignored with exit
# 0).
_KEYSYMS = {
    "return": "Return", "tab": "Tab", "space": "space", "backspace": "BackSpace", "delete": "Delete",
    "escape": "Escape", "up": "Up", "down": "Down", "left": "Left", "right": "Right", "home": "Home",
    "end": "End", "page_up": "Prior", "page_down": "Next", "insert": "Insert", "caps_lock": "Caps_Lock",
    "enter_keypad": "KP_Enter", "plus": "plus", "comma": "comma", "minus": "minus", "equal": "equal",
    "period": "period", "slash": "slash", "backslash": "backslash", "semicolon": "semicolon",
    "quote": "apostrophe", "backquote": "grave", "left_bracket": "bracketleft",
    "right_bracket": "bracketright",
}  # fmt: skip

# What is pressed with Command on a Mac is pressed with Control here; the logo key is called super.
_MODIFIERS = {"cmd": "ctrl", "ctrl": "ctrl", "alt": "alt", "shift": "shift", "super": "super"}
_LINE_KEYS = {"\n": "Return", "\t": "Tab"}


def x11_modifiers(modifiers: Sequence[str]) -> list[str]:
    """xdotool's names of modifiers, each once. Raises INVALID_ARGUMENT for fn, which X11 does not have."""
    if "fn" in modifiers:
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, "X11 has no fn key", hint="leave it out")
    return list(dict.fromkeys(_MODIFIERS[name] for name in modifiers))


def release_x11_modifiers(held: Sequence[str]) -> None:
    """Release keys that a killed xdotool may have left pressed; also in a call that was cancelled."""
    with uninterrupted():
        run_program(
            ["xdotool", "keyup", "--delay", "0", "+".join(held)],
            timeout_s=_KEYS_S,
            accept=None,
            pass_fds=held_locks(),
        )


def press_x11_key(window: Window, chord: KeyChord) -> None:
    """Press one chord in a window that has the focus. Raises FocusLost when it has not; then nothing was
    pressed.
    """
    held = x11_modifiers(chord.modifiers)
    keysym = _KEYSYMS.get(chord.key) or (chord.key.upper() if re.fullmatch(r"f\d+", chord.key) else chord.key)
    focus = _Focus(window)
    focus.check(0)
    focus.send(_key_words("+".join([*held, keysym])), 0, 1)


def type_x11_text(window: Window, text: str, stop_file: Path) -> None:
    """Type text: returns and tabs as their keys, ASCII by xdotool, other characters through the clipboard.

    Raises FocusLost and POLICY_DENIED (the stop file), with how many characters went out.
    """
    focus = _Focus(window)
    clipboard = Clipboard(window)
    sent, in_doubt = 0, 0
    with clipboard.put_back():
        for piece in pieces_of(text):
            check_cancelled()
            if os.path.lexists(stop_file):
                raise PeekabooError(
                    ErrorCode.POLICY_DENIED,
                    f"the stop file {stop_file} exists: {sent} of {len(text)} character(s) went out",
                    hint="delete it to go on, and see what the window holds",
                )
            focus.check(sent, in_doubt)
            in_doubt = 0 if piece in _LINE_KEYS else len(piece)
            if piece in _LINE_KEYS:
                focus.send(_key_words(_LINE_KEYS[piece]), sent, 1)
            elif piece.isascii():
                # from stdin: other users can read the arguments of a process
                words = ["type", "--window", "0", "--clearmodifiers", "--delay", _KEY_DELAY_MS, "--file", "-"]
                focus.send(words, sent, len(piece), piece.encode("ascii"))
            else:
                _paste(clipboard, focus, piece, sent)
            sent += len(piece)
        if in_doubt:  # after a return or tab another focus may be its effect
            focus.check(sent, in_doubt)


def _paste(clipboard: Clipboard, focus: _Focus, piece: str, sent: int) -> None:
    try:
        clipboard.paste(piece, lambda key: focus.send(_key_words(key), sent, len(piece)))
    except PeekabooError as e:
        if e.code is not ErrorCode.PROGRAM_FAILED or not sent:
            raise
        message = f"{e.message}; {sent} character(s) went out before"
        raise PeekabooError(e.code, message, e.hint, e.details) from e


def pieces_of(text: str) -> Iterator[str]:
    """What is sent at once: a return, a tab, or at most 20 characters that are all ASCII or all not."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for run in re.findall(r"\n|\t|[^\n\t]+", text):
        while run:
            piece = run[:_PIECE]
            if len(run) > _PIECE and not piece.isascii():
                piece = _whole_characters(run)
            yield piece
            run = run[len(piece) :]


def _whole_characters(run: str) -> str:
    """The first piece of a run, cut where no combining character or joined emoji is torn, if there is such a
    place.
    """
    import unicodedata  # only text beyond ASCII needs it

    for end in range(_PIECE, _PIECE // 2, -1):
        joins = unicodedata.combining(run[end]) or run[end] in "\u200d\ufe0f" or run[end - 1] == "\u200d"
        if not joins and not "\U0001f3fb" <= run[end] <= "\U0001f3ff":
            return run[:end]
    return run[:_PIECE]


def _key_words(keys: str) -> list[str]:
    # `--window 0`: real events for what has the focus; a window's number would send synthetic ones
    return ["key", "--window", "0", "--clearmodifiers", "--delay", "0", "--", keys]


class _Focus:
    """Whether keys reach a window: it has the input focus, or for a popup, which never gets it, its owner
    has.
    """

    def __init__(self, window: Window) -> None:
        self._window = window
        self._known = {window.window_id, window.frame_id}
        if window.is_popup:
            self._known.add(window.parent_id)
        self._known.discard(None)

    def check(self, sent: int, in_doubt: int = 0) -> None:
        """Raises FocusLost when keys would go elsewhere now. The last `in_doubt` of the `sent` characters may
        have gone there already.
        """
        focused_id = window_with_input_focus()
        if not self._is_ours(focused_id):
            raise FocusLost(
                f"{self._describe(focused_id)} has the keyboard; {_went_out(sent, in_doubt)}", sent - in_doubt
            )
        if self._window.is_popup and not is_viewable(self._window.window_id):
            raise FocusLost(
                f"the popup {self._window.window_id} closed; {_went_out(sent, in_doubt)}", sent - in_doubt
            )

    def send(self, words: Sequence[str], sent: int, size: int, stdin: bytes = b"") -> None:
        """Run xdotool with `words`, after it has printed who has the focus; that decides who got them."""
        timeout_s = _KEYS_S + size / 10
        look = ["getwindowfocus", "getwindowgeometry", "--shell", "%1"]
        check_cancelled()
        with (
            uninterrupted()
        ):  # killed between the press and the release of a key, xdotool would leave it pressed
            done = run_program(
                ["xdotool", *look, *words],
                timeout_s=timeout_s,
                stdin=stdin,
                accept=None,
                environment=UTF8,
                pass_fds=held_locks(),
            )
        printed = re.search(r"^WINDOW=(\d+)$", done.text, re.M)
        if done.code and not printed:
            raise FocusLost(f"no window has the keyboard; {_went_out(sent)}", sent)
        # an unknown key is ignored with exit 0, and only stderr says so
        if done.code or "No such key name" in done.stderr:
            raise PeekabooError(
                ErrorCode.PROGRAM_FAILED,
                "xdotool could not press the keys",
                details=done.stderr.strip()[-500:],
            )
        if printed and not self._is_ours(int(printed[1])):
            raise FocusLost(
                f"{self._describe(int(printed[1]))} took the keyboard in the last moment, and got the last "
                f"{size} character(s) or key(s); {_went_out(sent)} before",
                sent,
            )

    def _is_ours(self, focused_id: int) -> bool:
        if focused_id in self._known:
            return True
        if not focused_id:
            return False
        if self._window.is_popup and is_same_client(focused_id, self._window.window_id):
            return True
        # some programs focus a child of their window; without a window manager xdotool names that
        if top_level(focused_id) not in self._known | {self._top_of_window()}:
            return False
        self._known.add(focused_id)
        return True

    def _top_of_window(self) -> int:
        return self._window.frame_id or self._window.window_id

    def _describe(self, focused_id: int) -> str:
        return f"window {focused_id}, not window {self._window.window_id}," if focused_id else "no window"


def _went_out(sent: int, in_doubt: int = 0) -> str:
    if not sent:
        return "nothing was typed or pressed"
    doubt = f", and some of the next {in_doubt} may have gone to the other window" if in_doubt else ""
    return f"{sent - in_doubt} character(s) went out{doubt}"

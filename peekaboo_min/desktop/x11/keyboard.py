"""The keyboard on X11: xdotool for what has a key, else the clipboard."""

from __future__ import annotations

import os
import re
import struct
import time
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Optional

from ...core.cancellation import check_cancelled, pause, uninterrupted
from ...core.errors import ErrorCode, FocusLost, PeekabooError, invalid
from ...core.models import Act, Delivery, KeyChord, Window
from ..keys import character_of
from .clipboard import Clipboard
from .connection import (
    KEYBOARD,
    XConnection,
    is_same_client,
    property_of,
    request,
    texts_in,
    x_connection,
)
from .presses import PressRecord, recorded_presses
from .xdotool import run_xdotool, x11_modifiers, xdotool_session

_KEYS_S = 10.0
_PIECE, _LONGEST_PIECE_S = 20, 0.4  # a piece of typing is no longer, in characters and in pauses
# GTK's buttons, as galculator's, lose a key that comes again within 100 ms, whatever came in between.
_AGAIN_S = 0.12
_CALCULATION = re.compile(r"[\d\s.,+*/=%^()-]{1,100}")  # longer tables of numbers would take minutes
_NEXT_S = 0.04  # after a key that may lead to another field, and between equal neighbours
_WATCH_S = 0.05
_LONGEST_S, _PIECE_S, _PASTE_S = 45.0, 0.015, 0.35  # a tool has 50 seconds; a piece takes about so long
_WHO = ["getwindowfocus", "getwindowgeometry", "--shell", "%1"]
_PRINTED_WHO = r"(?m)^WINDOW=(\d+)$"

# Our key names -> X keysyms (xdotool knows no others: `enter`, `esc` and `pageup` would be ignored with exit
# 0).
_KEYSYMS = {
    "return": "Return", "tab": "Tab", "space": "space", "backspace": "BackSpace", "delete": "Delete",
    "escape": "Escape", "up": "Up", "down": "Down", "left": "Left", "right": "Right", "home": "Home",
    "end": "End", "page_up": "Prior", "page_down": "Next", "insert": "Insert", "caps_lock": "Caps_Lock",
    "enter_keypad": "KP_Enter",
}  # fmt: skip

_LINE_KEYS = {"\n": "Return", "\t": "Tab"}
_ASCII = frozenset(map(chr, range(32, 127)))
_LOWEST_KEY, _KEYS = 8, 248
# For what no key types, xdotool changes the keyboard's map, and changes it back when the key is up: a program
# that reads the map later gets no character. zenity and xterm need 20 to 100 ms.
_BOUND_MS = 120


def act_by_keyboard(window: Window, act: Act, stop_file: Path) -> Delivery:
    """Type a text or press a chord. Raises FocusLost and POLICY_DENIED (the stop file), with how much went
    out, and INVALID_ARGUMENT for what would take longer than a call may.
    """
    with x_connection() as server:
        keyboard = _Keyboard(server, window, stop_file)
        if act.kind == "press":
            keyboard.press(act.chord, act.hold_ms, act.repeat)
        plan = keyboard.plan(act.text, act.delay_ms / 1000)  # before `replace` selects what it would delete
        if act.replace:
            # for Tk ctrl+a is the start of the line, and its paste does not replace a selection
            is_tk = _is_tk(server, window)
            keyboard.press(KeyChord("slash" if is_tk else "a", ("ctrl",)))
            if is_tk or not act.text:
                keyboard.press(KeyChord("delete" if is_tk else "backspace"))
        if act.text:
            keyboard.type(plan)
    return Delivery(True)


def _is_tk(server: XConnection, window: Window) -> bool:
    """Whether a Tk program made a window: each names a window of its own in a property of the root window."""
    atoms = server.atoms(["InterpRegistry", "TK_APPLICATION"])
    (reply,) = server.ask([property_of(server.root_id, atoms["InterpRegistry"])])
    ids = [int(match[1], 16) for text in texts_in(reply) if (match := re.match(r"([0-9a-f]{1,8}) ", text))]
    same = [window_id for window_id in ids if is_same_client(window_id, window.window_id)]
    # a program that crashed leaves its name there, and its ids to another program
    return any(map(texts_in, server.ask([property_of(each, atoms["TK_APPLICATION"]) for each in same])))


def _check_time(seconds: float, count: int, unit: str) -> None:
    if seconds > _LONGEST_S:
        most = max(1, int(count * _LONGEST_S / seconds))
        raise invalid(f"this would take about {seconds:.0f} seconds", f"send at most {most} {unit} at once")


def pauses_in(text: str, delay_s: float = 0.0) -> list[float]:
    """The seconds to wait before each character, so that no program loses it; in most of a text none."""
    pauses, now = [], 0.0
    is_calculation = _CALCULATION.fullmatch(text) is not None
    pressed_at: dict[str, float] = {}
    for before, character in zip(["", *text], text):
        seconds = delay_s if before else 0.0
        if before in _LINE_KEYS or (before == character and " " < character < "\x7f"):
            seconds = max(seconds, _NEXT_S)
        if is_calculation and character in pressed_at:
            seconds = max(seconds, pressed_at[character] + _AGAIN_S - now)
        pauses.append(seconds)
        pressed_at[character] = now = now + seconds
    return pauses


def pieces_of(text: str, pauses: Sequence[float], by_key: frozenset[str] = _ASCII) -> Iterator[str]:
    """What is sent at once: a return, a tab, characters that are all typed by keys and do not take longer
    than a piece may, or at most 20 that are not all.
    """
    for run in re.finditer(r"\n|\t|[^\n\t]+", text):
        start = run.start()
        while start < run.end():
            piece = text[start : min(start + _PIECE, run.end())]
            if by_key.issuperset(piece):
                ends = accumulate(pauses[start + 1 : start + len(piece)], initial=0.0)
                piece = piece[: sum(end <= _LONGEST_PIECE_S for end in ends)]
            elif run.end() - start > _PIECE:
                piece = _whole_characters(text[start : run.end()])
            yield piece
            start += len(piece)


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


def _key_words(keys: str, delay_ms: int = 0) -> list[str]:
    # `--window 0`: real events for what has the focus; a window's number would send synthetic ones
    words = ["key", "--window", "0", "--delay", str(delay_ms)]
    # xdotool would put Caps Lock back as it was
    return [*words, *([] if keys == "Caps_Lock" else ["--clearmodifiers"]), "--", keys]


def _typing_words(piece: str, pauses: Sequence[float]) -> list[str]:
    """The keys of characters, by the numbers of their keysyms, which are those of ASCII."""
    words: list[str] = []
    for place, (character, seconds) in enumerate(zip(piece, pauses)):
        if not place or seconds:
            words += ["sleep", f"{seconds:.3f}"] if place else []
            words += _key_words(hex(ord(character)))
        else:
            words.append(hex(ord(character)))
    return words


class _Keyboard:
    """The keyboard for one window. It looks who has the focus before each piece, and again in the xdotool
    that sends it; a popup never has the focus, and its owner has it then.
    """

    def __init__(self, server: XConnection, window: Window, stop_file: Path) -> None:
        self._server, self._window, self._stop_file = server, window, stop_file
        self._record: Optional[PressRecord] = None
        known = {window.window_id, window.frame_id, window.parent_id if window.is_popup else None}
        self._known = known - {None}
        self._by_key = self._characters_with_keys()
        self._start(0, "")

    def _start(self, total: int, unit: str, is_shortcut: bool = False) -> None:
        """is_shortcut: whether a window manager may have bound it: the root window gets it then."""
        self._total, self._unit, self._is_shortcut = total, unit, is_shortcut
        self._sent = self._in_doubt = 0  # in doubt: of those sent, since the focus was looked at

    def _characters_with_keys(self) -> frozenset[str]:
        """The ASCII characters that some key of the keyboard types, with whatever modifiers or in another
        group: a German one has no ^ but a dead key, a Russian one no Latin letters.
        """
        (reply,) = self._server.ask([request(KEYBOARD, _LOWEST_KEY | _KEYS << 8)])
        if reply is None:
            return _ASCII
        keysyms = struct.unpack(f"<{len(reply) // 4 - 8}I", reply[32:])
        return _ASCII.intersection(chr(keysym) for keysym in keysyms if keysym < 127)

    def press(self, chord: KeyChord, hold_ms: int = 0, repeat: int = 1) -> None:
        character = character_of(chord.key)
        # the keysyms of ASCII are its numbers, and those of function keys are called F1 to F35
        keysym = _KEYSYMS.get(chord.key) or (hex(ord(character)) if character else chord.key.upper())
        keys = "+".join([*x11_modifiers(chord.modifiers), keysym])
        is_bound = character in _ASCII - self._by_key
        if is_bound and hold_ms:
            raise invalid(
                f"the keyboard's layout has no key {chord.key!r} that could be held",
                "press it without hold_ms",
            )
        bound_ms = _BOUND_MS if is_bound else 0
        _check_time(repeat * (hold_ms / 1000 + 2 * bound_ms / 1000 + _AGAIN_S), repeat, "times")
        self._start(repeat, "key press(es)", bool(chord.modifiers) or keysym[0] == "F")
        with recorded_presses(self._server) as self._record:
            for number in range(repeat):
                if number:
                    pause(_AGAIN_S)
                self.check()
                if hold_ms:
                    self.hold(keys, hold_ms / 1000)
                else:
                    self.send(_key_words(keys, bound_ms))

    def plan(self, text: str, delay_s: float) -> tuple[list[str], list[float]]:
        """The pieces of a text, and the pause before each character. Raises INVALID_ARGUMENT for what would
        take longer than a call may.
        """
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        pauses = pauses_in(text, delay_s)
        pieces = list(pieces_of(text, pauses, self._by_key))
        pasted = sum(piece not in _LINE_KEYS and not self._by_key.issuperset(piece) for piece in pieces)
        seconds = pasted * _PASTE_S + len(pieces) * _PIECE_S + sum(pauses)
        _check_time(seconds, len(text), "characters of it")
        return pieces, pauses

    def type(self, plan: tuple[list[str], list[float]]) -> None:
        """Returns and tabs go as their keys, what keys type by xdotool, the rest through the clipboard."""
        pieces, pauses = plan
        self._start(len(pauses), "character(s)")
        clipboard = Clipboard(self._window)
        with recorded_presses(self._server) as self._record, clipboard.put_back():
            start = 0
            for piece in pieces:
                pause(pauses[start])
                self.check()
                if piece in _LINE_KEYS:
                    self.send(_key_words(_LINE_KEYS[piece]))
                elif self._by_key.issuperset(piece):
                    self.send(_typing_words(piece, pauses[start:]), piece, len(piece))
                else:
                    self.paste(clipboard, piece)
                start += len(piece)
            if self._in_doubt:  # after a return or tab another focus may be its effect
                self.check_focus()

    def check(self) -> None:
        """Raises what ends it here: CANCELLED, POLICY_DENIED, FocusLost."""
        check_cancelled()
        if os.path.lexists(self._stop_file):
            went_out = f"{self._sent} of {self._total} {self._unit} went out"
            raise PeekabooError(
                ErrorCode.POLICY_DENIED,
                f"the stop file {self._stop_file} exists: {went_out}",
                hint="delete it to go on, and see what the window holds",
            )
        self.check_focus()

    def check_focus(self) -> None:
        focused_id = self._server.client_with_focus()
        if not self._is_ours(focused_id):
            raise self._lost(f"{self._name(focused_id)} has the keyboard")
        if self._window.is_popup and not self._server.is_viewable(self._window.window_id):
            raise self._lost(f"the popup {self._window.window_id} closed")
        self._in_doubt = 0

    def send(self, words: Sequence[str], text: str = "", presses: int = 1) -> None:
        """Run xdotool with `words`, after it has printed who has the focus; that decides who got them.

        text: what they type; none for a key. presses: how many keys do.
        """
        check_cancelled()
        # killed between the press and the release of a key, xdotool would leave it pressed
        with uninterrupted():
            # by stdin: other users can read the arguments of a process
            done = run_xdotool(["-"], _KEYS_S, " ".join([*_WHO, *words]).encode("ascii") + b"\n")
        printed = re.search(_PRINTED_WHO, done.text)
        if done.code and not printed:
            raise self._lost("no window has the keyboard")
        # an unknown key is ignored with exit 0, and only stderr says so
        if not printed or done.code or "No such key name" in done.stderr:
            raise PeekabooError(
                ErrorCode.PROGRAM_FAILED,
                "xdotool could not press the keys",
                details=done.stderr.strip()[-500:],
            )
        self._count(int(printed[1]), text, presses)

    def hold(self, keys: str, seconds: float) -> None:
        """Press keys, and release them after that time; at once when the focus goes, or anything ends us."""
        words = ["--window", "0", "--delay", "0", keys]
        press, release = ["keydown", *words], ["keyup", *words]
        with xdotool_session(release, seconds + _KEYS_S) as xdotool:
            line = [*_WHO, *press, "sleep", f"{seconds:.3f}", *release]
            (focused_id,) = xdotool.press(line, _PRINTED_WHO)
            end = time.monotonic() + seconds
            self._count(focused_id)
            while time.monotonic() < end - _WATCH_S:
                pause(_WATCH_S)
                self.check()
            xdotool.end()

    def paste(self, clipboard: Clipboard, text: str) -> None:
        sent, bound_ms = self._sent, 0 if "v" in self._by_key else _BOUND_MS
        try:
            clipboard.paste(text, lambda key: self.send(_key_words(key, bound_ms), text), self._record)
        except PeekabooError as e:
            if e.code is not ErrorCode.PROGRAM_FAILED or not sent:
                raise
            message = f"{e.message}; {sent} character(s) went out before"
            raise PeekabooError(e.code, message, e.hint, e.details) from e

    def _count(self, focused_id: int, text: str = "", presses: int = 1) -> None:
        """Count what was sent. Raises FocusLost when it went elsewhere: xdotool named the focus before it."""
        got = self._record.windows_with_keys(presses) if self._record else set()
        thief_id = next(filter(self._is_thief, got), None)
        if thief_id or not self._is_ours(focused_id):
            focused_id = thief_id or focused_id
            # a piece goes out at once: which of its characters the other window got is not known
            what = f"at most the last {len(text)} character(s)" if text else "the last 1 key"
            raise self._lost(f"{self._name(focused_id)} took the keyboard in the last moment, and got {what}")
        self._sent += len(text) or 1
        self._in_doubt = len(text)

    def _is_ours(self, focused_id: int) -> bool:
        if focused_id in self._known:
            return True
        if self._window.is_popup and is_same_client(focused_id, self._window.window_id):
            return True
        # some programs focus a child of their window; without a window manager xdotool names that
        if self._server.top_level(focused_id) not in self._known:
            return False
        self._known.add(focused_id)
        return True

    def _is_thief(self, window_id: int) -> bool:
        """Whether it is another program's. The root window stands for one that has grabbed the keyboard."""
        if self._is_ours(window_id) or is_same_client(window_id, self._window.window_id):
            return False
        return not self._is_shortcut or self._server.top_level(window_id) != 0

    def _name(self, focused_id: int) -> str:
        if not focused_id:
            return "no window"
        if not self._server.top_level(focused_id):
            return "the root window (a program has grabbed the keyboard, or no window has it)"
        return f"window {focused_id}, not window {self._window.window_id},"

    def _lost(self, what: str) -> FocusLost:
        sure = self._sent - self._in_doubt
        if not self._sent:
            return FocusLost(f"{what}; before that nothing was typed or pressed")
        doubt = f", and some of the next {self._in_doubt} may have gone to the other window"
        return FocusLost(f"{what}; before that {sure} {self._unit} went out{doubt if self._in_doubt else ''}")

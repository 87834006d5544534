"""The keyboard on X11: xdotool for what has a key, else the clipboard."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Callable, Optional

from ...core.cancellation import check_cancelled, pause, uninterrupted
from ...core.errors import ErrorCode, PeekabooError, invalid
from ...core.models import Act, Delivery, KeyChord, Window
from ..keys import character_of
from .clipboard import pasting
from .connection import (
    CAPS_LOCK_BIT,
    HELD_BITS,
    KEYBOARD,
    MODIFIERS,
    XConnection,
    is_same_client,
    property_of,
    request,
    texts_in,
    x_connection,
)
from .presses import PressRecord, recorded_presses, run_xdotool, x11_modifiers

_KEYS_S = 10.0
_PIECE, _LONGEST_PIECE_S = 20, 0.4  # a piece of typing is no longer, in characters and in pauses
# GTK's buttons, as galculator's, lose a key that comes again within 100 ms, whatever came in between.
_AGAIN_S = 0.12
_CALCULATION = re.compile(r"[\d\s.,+*/=%^()-]{1,100}")  # longer tables of numbers would take minutes
_NEXT_S = 0.04  # after a key that may lead to another field, and between equal neighbours
_LONGEST_S, _PIECE_S, _PASTE_S = 45.0, 0.015, 0.35  # a tool has 50 seconds; a piece takes about so long

# Our key names -> X keysyms; all others are written alike, but with capitals: Return, Caps_Lock, F5.
_KEYSYMS = {"backspace": "BackSpace", "page_up": "Prior", "page_down": "Next", "enter_keypad": "KP_Enter"}
_LINE_KEYS = {"\n": "Return", "\t": "Tab"}
_ASCII = frozenset(map(chr, range(32, 127)))
# For what no key types, xdotool changes the keyboard's map, and changes it back when the key is up: a program
# that reads the map later gets no character. zenity and xterm need 20 to 100 ms.
_BOUND_MS = 120


def act_by_keyboard(window: Window, act: Act, stop_file: Path) -> Delivery:
    """Type a text or press a chord. Raises FOCUS_LOST and POLICY_DENIED (the stop file), with how much went
    out, and INVALID_ARGUMENT for what would take longer than a call may.
    """
    with x_connection() as server, recorded_presses(server) as record:
        keyboard = _Keyboard(server, record, window, stop_file)
        if act.kind == "press":
            keyboard.press(act.chord, act.hold_ms, act.repeat)
            return Delivery(True, others_typed=keyboard.others_typed)
        text = act.text.replace("\r\n", "\n").replace("\r", "\n")
        pauses = pauses_in(text, act.delay_ms / 1000)
        pieces = keyboard.pieces(text, pauses)  # before `replace` selects what it would delete
        if act.replace:
            # for Tk ctrl+a is the start of the line, and its paste does not replace a selection
            is_tk = _is_tk(server, window)
            keyboard.press(KeyChord("slash" if is_tk else "a", ("ctrl",)))
            if is_tk or not text:
                keyboard.press(KeyChord("delete" if is_tk else "backspace"))
        has_lost_copy = keyboard.type(pieces, pauses)
        return Delivery(True, others_typed=keyboard.others_typed, has_lost_copy=has_lost_copy)


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
            yield piece
            start += len(piece)


def _run_keys(words: Sequence[str], **options: Any) -> None:
    """Run xdotool, which prints the screen's size last: a program that did something else does not."""
    if not re.fullmatch(r"\d+ \d+\n", run_xdotool([*words, "getdisplaygeometry"], **options).text):
        hint = "check by `xdotool --version` which program that is"
        raise PeekabooError(ErrorCode.PROGRAM_FAILED, "xdotool did not come to its end", hint)


class _Keyboard:
    """The keyboard for one window. It looks who has the focus before each piece, and asks the record who got
    it; a popup never has the focus, and its owner has it then.
    """

    def __init__(self, server: XConnection, record: PressRecord, window: Window, stop_file: Path) -> None:
        self._server, self._record, self._window, self._stop_file = server, record, window, stop_file
        self._known = {window.window_id, window.frame_id, window.parent_id if window.is_popup else None}
        self._is_caps_locked = server.state_with_nothing_held() & CAPS_LOCK_BIT != 0
        self._width, self._map, self._modifiers = self._read_map()
        self._keysyms = [*struct.iter_unpack(f"<{self._width}I", self._map)]  # of each code from 8 on
        # What some key types, with whatever modifiers or in another group (a German keyboard has no ^ but a
        # dead key, a Russian one no Latin letters), and how many of those it needs at most: the map has
        # Shift's every second, those of AltGr from the fifth on.
        self._needed: dict[str, int] = {}
        for keysyms in self._keysyms:
            for place, keysym in enumerate(keysyms):
                if (character := chr(min(keysym, 127))) in _ASCII:
                    needed = place % 2 + (place > 3)
                    self._needed[character] = max(needed, self._needed.get(character, 0))
        self._by_key = frozenset(self._needed)
        self.others_typed = 0

    def _start(self, total: int, unit: str, is_shortcut: bool = False) -> None:
        """is_shortcut: whether a window manager may have bound it: the root window gets it then."""
        self._sent, self._total, self._unit, self._is_shortcut = 0, total, unit, is_shortcut

    def _read_map(self) -> tuple[int, bytes, bytes]:
        """How many keysyms a key has, those of the codes from 8 on, and the codes of the modifiers' keys."""
        keysyms, modifiers = self._server.ask([request(KEYBOARD, 8 | 248 << 8), request(MODIFIERS)])
        return (keysyms or bytes(2))[1], (keysyms or b"")[32:], (modifiers or b"")[32:]

    def press(self, chord: KeyChord, hold_ms: int = 0, repeat: int = 1) -> None:
        character = character_of(chord.key)
        # the keysyms of ASCII are its numbers
        keysym = hex(ord(character)) if character else _KEYSYMS.get(chord.key, chord.key.title())
        keys = "+".join([*x11_modifiers(chord.modifiers), keysym])
        is_bound = character in _ASCII - self._by_key
        if is_bound and hold_ms:
            raise invalid(f"the keyboard has no key {chord.key!r} that could be held", "leave hold_ms out")
        bound_ms = _BOUND_MS if is_bound else 0
        _check_time(repeat * (hold_ms / 1000 + 2 * bound_ms / 1000 + _AGAIN_S), repeat, "times")
        self._start(repeat, "key press(es)", bool(chord.modifiers) or keysym[0] == "F")
        for number in range(repeat):
            if number:
                pause(_AGAIN_S)
            self.check()
            if hold_ms:
                self.hold(keys, hold_ms / 1000)
            else:
                self.send(self._key_words(keys, bound_ms))

    def pieces(self, text: str, pauses: Sequence[float]) -> list[str]:
        """Raises INVALID_ARGUMENT for what would take longer than a call may."""
        pieces = list(pieces_of(text, pauses, self._by_key))
        pasted = sum(piece not in _LINE_KEYS and not self._by_key.issuperset(piece) for piece in pieces)
        seconds = pasted * _PASTE_S + len(pieces) * _PIECE_S + sum(pauses)
        _check_time(seconds, len(text), "characters of it")
        return pieces

    def type(self, pieces: Sequence[str], pauses: Sequence[float]) -> bool:
        """Returns and tabs go as their keys, what keys type by xdotool, the rest through the clipboard. Tells
        whether that may have cost somebody a copy.
        """
        self._start(len(pauses), "character(s)")
        with pasting(self._window, self._server, self._record) as clipboard:
            start = 0
            for piece in pieces:
                pause(pauses[start])
                self.check()
                if piece in _LINE_KEYS:
                    self.send(self._key_words(_LINE_KEYS[piece]))
                elif self._by_key.issuperset(piece):
                    # Caps Lock stays as it is: xdotool's --clearmodifiers presses what a person has released
                    typed = piece.swapcase() if self._is_caps_locked else piece
                    self.send(self._typing_words(typed, pauses[start:]), len(piece), typed)
                else:
                    words = self._key_words(clipboard.key, 0 if "v" in self._by_key else _BOUND_MS)
                    clipboard.paste(piece, partial(self.send, words, len(piece), ""))
                start += len(piece)
        return clipboard.has_lost_copy

    def _key_words(self, keys: str, delay_ms: int = 0) -> list[str]:
        # `--window 0`: real events for what has the focus; a window's number would send synthetic ones
        return ["key", "--window", "0", "--delay", str(delay_ms), "--", keys]

    def _typing_words(self, piece: str, pauses: Sequence[float]) -> list[str]:
        """The keys of characters, by the numbers of their keysyms, which are those of ASCII."""
        words = self._key_words(hex(ord(piece[0])))
        for character, seconds in zip(piece[1:], pauses[1:]):
            key = hex(ord(character))
            words += ["sleep", f"{seconds:.3f}", *self._key_words(key)] if seconds else [key]
        return words

    def check(self, is_holding: bool = False) -> None:
        """Raises what ends it here: CANCELLED, POLICY_DENIED, FOCUS_LOST. is_holding: keys are down by us."""
        check_cancelled()
        if os.path.lexists(self._stop_file):
            went_out = f"{self._sent} of {self._total} {self._unit} went out"
            message = f"the stop file {self._stop_file} exists: {went_out}"
            hint = "delete it to go on, and see what the window holds"
            raise PeekabooError(ErrorCode.POLICY_DENIED, message, hint)
        self.check_focus()
        state = self._server.state()
        if not is_holding and state & HELD_BITS:
            raise self._lost("somebody holds a mouse button or modifier key")
        self._is_caps_locked = bool(state & CAPS_LOCK_BIT)

    def check_focus(self) -> None:
        focused_id = self._server.client_with_focus()
        if not self._is_ours(focused_id):
            raise self._lost(f"{self._name(focused_id)} has the keyboard")
        if self._window.is_popup and not self._server.is_viewable(self._window.window_id):
            raise self._lost(f"the popup {self._window.window_id} closed")

    def send(
        self, words: Sequence[str], count: int = 1, typed: str = "", look: Optional[Callable[[], None]] = None
    ) -> None:
        """Run xdotool with `words`, which stand for so many of the unit; then ask who got the keys.

        typed: the characters, where each is a key; empty: one key is pressed. look: called at the last
        moment; what it raises ends it.
        """
        check_cancelled()
        # killed between the press and the release of a key, xdotool would leave it pressed
        with uninterrupted():
            _run_keys(words, move=["getdisplaygeometry"], look=look)
        self._count(count, typed)

    def hold(self, keys: str, seconds: float) -> None:
        """Press keys, and release them after that time; at once when the focus goes, or anything ends us."""
        held, sent = ["--window", "0", "--delay", "0", keys], self._sent + 1

        def watch() -> None:
            self._count(sent - self._sent)
            self.check(is_holding=True)

        line = ["keydown", *held, "sleep", str(seconds), "keyup", *held]
        _run_keys(line, release=["keyup", *held], timeout_s=seconds + _KEYS_S, watch=watch)
        self._count(sent - self._sent)

    def _count(self, count: int, typed: Optional[str] = None) -> None:
        """Count what was sent. Raises FOCUS_LOST when another window got some of it, or it was changed by
        what somebody pressed. typed: see send; None: how many keys there are is not known.
        """
        keys = self._record.keys()
        windows = {key.window_id for key in keys}
        thief_id = next(filter(self._is_thief, windows), None)
        if thief_id is not None:
            what = f"took the keyboard in the last moment, and got at most the last {count} {self._unit}"
            raise self._lost(f"{self._name(thief_id)} {what}")
        if not windows:
            self.check_focus()
        if self._read_map() != (self._width, self._map, self._modifiers):
            raise self._lost(f"the keyboard's map has changed, maybe during the last {count} {self._unit}")
        if typed is not None:
            for client in {key.client for key in keys}:
                got = [key.detail for key in keys if key.client == client]
                self._count_others(got, typed, f"during the last {count} {self._unit}")
        self._sent += count

    def _count_others(self, got: Sequence[int], typed: str, when: str) -> None:
        """Count the keys of others among the codes that a client got. Raises FOCUS_LOST for a modifier."""
        codes = [code for code in got if code not in self._modifiers]
        # a key of theirs may come in place of ours, which is not pressed where they hold it
        is_mixed = any(ord(sign) not in self._keysyms[code - 8] for code, sign in zip(codes, typed))
        self.others_typed += max(len(codes) - (len(typed) or 1), int(is_mixed))
        if typed and len(got) - len(codes) > sum(self._needed[sign] for sign in typed):
            raise self._lost(f"somebody pressed a modifier key {when}")

    def _is_ours(self, focused_id: int) -> bool:
        if self._window.is_popup and is_same_client(focused_id, self._window.window_id):
            return True
        # some programs focus a child of their window
        return not self._known.isdisjoint((focused_id, self._server.top_level(focused_id)))

    def _is_thief(self, window_id: int) -> bool:
        """Whether it is another program's. The root window stands for one that has grabbed the keyboard."""
        if self._is_ours(window_id) or is_same_client(window_id, self._window.window_id):
            return False
        return not self._is_shortcut or self._server.top_level(window_id) != 0

    def _name(self, focused_id: int) -> str:
        if not self._server.top_level(focused_id):
            return "the root window (a program has grabbed the keyboard, or no window has it)"
        return f"window {focused_id}, not window {self._window.window_id},"

    def _lost(self, what: str) -> PeekabooError:
        message = f"{what}; before that {self._sent} {self._unit} went out"
        return PeekabooError(ErrorCode.FOCUS_LOST, message, ErrorCode.FOCUS_LOST.next_step)

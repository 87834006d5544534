"""Type and press keys on X11, and check that the window received them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from itertools import accumulate, chain
from pathlib import Path
from typing import Callable, NamedTuple, Optional

from ...core.call import pause, uninterrupted, within_budget
from ...core.errors import ErrorCode, PeekabooError, invalid
from ...core.models import Act, Delivery, KeyChord, Window
from ..keys import character_of, read_chord
from .clipboard import pasting
from .connection import KeyboardMap, XConnection, is_same_client, property_of, x_connection
from .record import FIRST_S, Event, Record, recording
from .xdotool import ACT_S, XDOTOOL_S, run_xdotool, running_xdotool, x11_modifiers

_PIECE, _LONGEST_PIECE_S = 20, 0.4  # the longest piece of typing: characters, and pauses in it
# GTK's buttons, as galculator's, lose a key that is pressed again within 100 ms, whatever came in between
_AGAIN_S = 0.12
_CALCULATION = re.compile(r"[\d\s.,+*/=%^()-]{1,100}")  # longer tables of numbers would take minutes
_NEXT_S = 0.04  # after a key that may lead to another field, and between equal neighbours
_PIECE_S, _PASTE_S = 0.015, 0.35  # about how long a piece takes: typed, pasted
# Server round trips, counted through a proxy: at the start, for each key (10 with Shift), for each paste.
_START_TRIPS, _KEY_TRIPS, _PASTE_TRIPS = 25, 8, 60
# For a character without a key, xdotool changes the keyboard map and changes it back after the key: a program
# that reads the map later gets no character. zenity and xterm need 20 to 100 ms.
_BOUND_MS = 120

# X keysyms of our key names; an ASCII character is its own keysym. Source: X11/keysymdef.h.
_KEYSYMS = {
    "backspace": 0xFF08, "tab": 0xFF09, "return": 0xFF0D, "pause": 0xFF13, "scroll_lock": 0xFF14,
    "escape": 0xFF1B, "home": 0xFF50, "left": 0xFF51, "up": 0xFF52, "right": 0xFF53, "down": 0xFF54,
    "page_up": 0xFF55, "page_down": 0xFF56, "end": 0xFF57, "print": 0xFF61, "insert": 0xFF63, "menu": 0xFF67,
    "num_lock": 0xFF7F, "enter_keypad": 0xFF8D, "keypad_multiply": 0xFFAA, "keypad_add": 0xFFAB,
    "keypad_subtract": 0xFFAD, "keypad_decimal": 0xFFAE, "keypad_divide": 0xFFAF, "keypad_equal": 0xFFBD,
    "shift": 0xFFE1, "ctrl": 0xFFE3, "cmd": 0xFFE3, "caps_lock": 0xFFE5, "alt": 0xFFE9, "super": 0xFFEB,
    "delete": 0xFFFF, **{f"keypad_{digit}": 0xFFB0 + digit for digit in range(10)},
    **{f"f{number}": 0xFFBD + number for number in range(1, 21)},
}  # fmt: skip
_LINE_KEYS = {"\n": "return", "\t": "tab"}
_ASCII = frozenset(map(chr, range(32, 127)))
# Window 0: real events for the focused window. With a window's id, xdotool sends synthetic ones.
_TO_FOCUS = ("--delay", "0", "--window", "0")
_TAKEN = "another program took the keys, by a shortcut or a grab of the keyboard"
_LOST_KEYS = "some keys reached no program: slow keys or bounce keys may be on, or the window takes no keys"


class _Undelivered(PeekabooError):
    """FOCUS_LOST although the window has the focus. If no key arrived, the act returns `delivered` False."""


def act_by_keyboard(window: Window, act: Act, stop_file: Path) -> Delivery:
    """Type a text or press a chord.

    Raises INVALID_ARGUMENT (it would take too long), FOCUS_LOST, POLICY_DENIED, TIMEOUT, with the progress.
    """
    with x_connection() as server, recording(server) as record:
        keyboard = _Keyboard(server, record, window, stop_file)
        try:
            return keyboard.press_chord(act) if act.kind == "press" else keyboard.type_text(act)
        except PeekabooError as e:
            if isinstance(e, _Undelivered) and not keyboard.has_received:
                return Delivery(False, reason=e.message)
            e.message += keyboard.progress(e.code)
            raise


def pauses_in(text: str, delay_s: float = 0.0) -> list[float]:
    """Return the seconds to wait before each character, so that no program loses it; mostly 0."""
    pauses, now = [], 0.0
    is_calculation = _CALCULATION.fullmatch(text) is not None
    pressed_at: dict[str, float] = {}
    for before, character in zip(["", *text], text):
        seconds = delay_s if before else 0.0
        if before in _LINE_KEYS or (before == character and " " < character < "\x7f"):
            seconds = max(seconds, _NEXT_S)
        if is_calculation and character in pressed_at:
            seconds = max(seconds, pressed_at[character] + _AGAIN_S - now)
        if character == "\n" and re.fullmatch(r"[~/].*\n", text):  # GTK 3 loads the folder of a typed path
            seconds = max(seconds, 0.3)
        pauses.append(seconds)
        pressed_at[character] = now = now + seconds
    return pauses


def pieces_of(text: str, pauses: Sequence[float], typable: frozenset[str] = _ASCII) -> Iterator[str]:
    """Yield the pieces to send: a line break, a tab, or at most 20 characters, fewer if typing takes long."""
    for run in re.finditer(r"\n|\t|[^\n\t]+", text):
        start = run.start()
        while start < run.end():
            piece = text[start : min(start + _PIECE, run.end())]
            if typable.issuperset(piece):
                ends = accumulate(pauses[start + 1 : start + len(piece)], initial=0.0)
                piece = piece[: sum(end <= _LONGEST_PIECE_S for end in ends)]
            yield piece
            start += len(piece)


def keysym_of(key: str) -> int:
    """Return the X keysym of one of our key names."""
    character = character_of(key)
    return ord(character) if character else _KEYSYMS[key]


def _is_tk(server: XConnection, window: Window) -> bool:
    """Return True if a Tk program made the window. All Tk programs are listed on the root window."""
    atoms = server.atoms(["InterpRegistry", "TK_APPLICATION"])
    (reply,) = server.ask([property_of(server.root_id, atoms["InterpRegistry"])])
    ids = [int(match[1], 16) for text in reply.texts() if (match := re.match(r"([0-9a-f]{1,8}) ", text))]
    same_ids = [window_id for window_id in ids if is_same_client(window_id, window.window_id)]
    # a program that crashed leaves its name there, and its ids to another program
    requests = [property_of(window_id, atoms["TK_APPLICATION"]) for window_id in same_ids]
    return any(reply.texts() for reply in server.ask(requests))


def _modifiers_needed(keyboard: KeyboardMap) -> dict[str, int]:
    """Map each ASCII character that has a key to the most modifiers that it may need."""
    # a German keyboard has a dead key instead of ^, a Russian one no Latin letters
    needed: dict[str, int] = {}
    for place, keysym in chain.from_iterable(map(enumerate, keyboard.keysyms.values())):
        if (character := chr(min(keysym, 127))) in _ASCII:
            # every second keysym of a key needs Shift, and each from the fifth on needs AltGr
            needed[character] = max(place % 2 + (place > 3), needed.get(character, 0))
    return needed


def _check_time(seconds: float, count: int, unit: str) -> None:
    limit_s = within_budget(ACT_S)
    if seconds > limit_s:
        most = max(1, int(count * limit_s / seconds))
        raise invalid(f"this would take about {seconds:.0f} seconds", f"send at most {most} {unit} at once")


class _Keys(NamedTuple):
    argv: list[str]
    release: list[str]
    keysyms: list[int]  # of the keys, without modifiers
    seconds: float  # about how long it takes
    modifiers: Optional[int] = None  # how many we press; a person pressed any others. None: not checked
    is_held: bool = False
    is_counted: bool = True  # False if the key stands for no part of the text


class _Received(NamedTuple):
    is_complete: bool  # True if the window received all keys sent
    modifiers: int  # how many modifier keys it received, too
    stray: list[Event]  # keys that other programs received


class _Keyboard:
    """The keyboard for one act in one window. A popup never has the focus: its parent window has it."""

    def __init__(self, server: XConnection, record: Record, window: Window, stop_file: Path) -> None:
        self._server, self._record, self._window, self._stop_file = server, record, window, stop_file
        # keys arrive if the focus is on one of these, or on a window in it
        self._own_ids = {window.window_id, window.frame_id, window.parent_id if window.is_popup else None}
        state = server.check_nothing_held()
        self._is_caps_locked, self._was_num_locked = state.is_caps_locked, state.is_num_locked
        self._map = server.keyboard_map()
        self._modifier_codes = set(chain.from_iterable(self._map.modifiers))
        self._mapped = set(chain.from_iterable(self._map.keysyms.values()))
        self._modifiers_of = _modifiers_needed(self._map)
        self._typable = frozenset(self._modifiers_of)
        self._deadline = time.monotonic() + within_budget(ACT_S)
        self._delivered, self._total, self._others, self._unit = 0, 0, 0, ""
        self._is_press = False
        self.has_received = False  # True once the window received a key of this act

    def progress(self, code: ErrorCode) -> str:
        """Return how much was delivered, for the message of an error."""
        # a server that hangs does not report all
        at_least = "at least " if code in (ErrorCode.TIMEOUT, ErrorCode.NO_GUI_SESSION) else ""
        return f"; delivered {at_least}{self._delivered} of {self._total} {self._unit}" if self._unit else ""

    def press_chord(self, act: Act) -> Delivery:
        chord, hold_s = act.chord, act.hold_ms / 1000
        if hold_s and keysym_of(chord.key) not in self._mapped:
            raise invalid(f"the keyboard has no key {chord.key!r} that could be held", "leave hold_ms out")
        keys = self._chord_keys(chord, hold_s)
        _check_time(act.repeat * (keys.seconds + _AGAIN_S), act.repeat, "times")
        self._total, self._unit, self._is_press = act.repeat, "key presses", True
        taken: Optional[_Undelivered] = None
        try:
            for number in range(act.repeat):
                if number:
                    pause(_AGAIN_S)
                self._check(keys.seconds)
                try:
                    self._send(keys)
                except _Undelivered as e:
                    if e.message != _TAKEN:
                        raise
                    taken = e  # a shortcut may be intended: repeat it
        finally:
            # xdotool toggles Num Lock when it presses a digit of the keypad
            is_keypad = chord.key.startswith("keypad_")
            if is_keypad and self._server.input_state().is_num_locked != self._was_num_locked:
                with uninterrupted():
                    run_xdotool(["key", *_TO_FOCUS, "Num_Lock"])
        if taken:
            raise taken
        return Delivery(True, others_typed=self._others)

    def type_text(self, act: Act) -> Delivery:
        text = act.text.replace("\r\n", "\n").replace("\r", "\n")
        pauses = pauses_in(text, act.delay_ms / 1000)
        pieces = list(pieces_of(text, pauses, self._typable))
        # check this first: `replace` would already have selected the old content
        _check_time(sum(map(self._piece_s, pieces)) + sum(pauses), len(text), "characters of it")
        self._total, self._unit = len(text), "characters"
        if act.replace:
            self._select_all(is_deleted=not text)
        with pasting(self._window, self._server, self._record) as clipboard:
            paste = self._chord_keys(read_chord(clipboard.key))._replace(is_counted=False)
            start = 0
            for piece in pieces:
                pause(pauses[start])
                self._check(self._piece_s(piece))
                if piece in _LINE_KEYS:
                    self._send(self._chord_keys(KeyChord(_LINE_KEYS[piece])))
                elif self._typable.issuperset(piece):
                    self._send(self._text_keys(piece, pauses[start:]))
                else:
                    clipboard.serve(piece)
                    self._check_focus()  # serving may have taken a second
                    self._send(paste, clipboard.expect_fetch)
                    clipboard.wait_for_fetch(piece)
                    self._delivered += len(piece)
                start += len(piece)
        return Delivery(True, others_typed=self._others, has_lost_copy=clipboard.has_lost_copy)

    def _select_all(self, is_deleted: bool) -> None:
        # for Tk ctrl+a is the start of the line, and its paste does not replace a selection
        is_tk = _is_tk(self._server, self._window)
        chords = [KeyChord("slash" if is_tk else "a", ("ctrl",))]
        if is_tk or is_deleted:
            chords.append(KeyChord("delete" if is_tk else "backspace"))
        for chord in chords:
            self._check()
            self._send(self._chord_keys(chord)._replace(is_counted=False))

    def _chord_keys(self, chord: KeyChord, hold_s: float = 0.0) -> _Keys:
        keysym = keysym_of(chord.key)
        target = [*_TO_FOCUS, "+".join([*x11_modifiers(chord.modifiers), hex(keysym)])]
        bound_ms = 0 if keysym in self._mapped else _BOUND_MS
        argv, release = ["key", *target], ["keyup", *target]
        if hold_s:
            argv = ["keydown", *target, "sleep", str(hold_s), *release]
        elif bound_ms:
            argv[2] = str(bound_ms)
        seconds = self._typing_s(1 + len(chord.modifiers)) + hold_s + 2 * bound_ms / 1000
        return _Keys(argv, release, [keysym], seconds, is_held=bool(hold_s))

    def _text_keys(self, piece: str, pauses: Sequence[float]) -> _Keys:
        # Caps Lock stays on: xdotool's --clearmodifiers would press what a person has released
        typed = piece.swapcase() if self._is_caps_locked else piece
        keys = [hex(ord(character)) for character in typed]
        argv = ["key", *_TO_FOCUS, keys[0]]
        for key, seconds in zip(keys[1:], pauses[1:]):
            argv += ["sleep", f"{seconds:.3f}", "key", *_TO_FOCUS, key] if seconds else [key]
        release = ["keyup", *_TO_FOCUS, *dict.fromkeys(keys)]
        modifiers = sum(self._modifiers_of.get(character, 0) for character in typed)
        return _Keys(argv, release, [*map(ord, typed)], self._piece_s(piece), modifiers)

    def _typing_s(self, keys: int) -> float:
        return max(_PIECE_S, (_START_TRIPS + _KEY_TRIPS * keys) * self._server.round_trip_s)

    def _piece_s(self, piece: str) -> float:
        if piece in _LINE_KEYS or self._typable.issuperset(piece):
            return self._typing_s(len(piece))
        return _PASTE_S + _PASTE_TRIPS * self._server.round_trip_s

    def _check(self, seconds: float = 0.0, is_holding: bool = False) -> None:
        """Raise CANCELLED, POLICY_DENIED, FOCUS_LOST or TIMEOUT; the next keys take about `seconds`."""
        if os.path.lexists(self._stop_file):
            hint = "delete it to go on, and see what the window holds"
            raise PeekabooError(ErrorCode.POLICY_DENIED, f"the stop file {self._stop_file} exists", hint)
        self._check_focus(is_holding)
        if time.monotonic() + seconds > self._deadline:
            message = "the display is slow: the act would take too long"
            raise PeekabooError(ErrorCode.TIMEOUT, message, "see what the window holds, type the rest")

    def _check_focus(self, is_holding: bool = False) -> None:
        state = self._server.input_state()
        self._is_caps_locked = state.is_caps_locked
        if not self._is_in_window(state.focused_id):
            client_id = self._server.client_with_focus()
            other = f"window {client_id} has the keyboard, not window {self._window.window_id}"
            raise _lost(other if client_id else "no window has the keyboard")
        if self._window.is_popup and not self._server.is_viewable(self._window.window_id):
            raise _lost(f"the popup {self._window.window_id} closed")
        if state.held and not is_holding:
            raise _lost(f"a person holds {state.held}")

    def _send(self, keys: _Keys, check: Optional[Callable[[], None]] = None) -> None:
        """Press keys, right after `check`. Raises FOCUS_LOST unless the window received all of them."""
        limit_s = min(XDOTOOL_S + 3 * keys.seconds, ACT_S)
        watch = partial(self._check, is_holding=True) if keys.is_held else None
        try:
            # killed between the press and the release of a key, xdotool would leave it pressed
            with nullcontext() if keys.is_held else uninterrupted(), running_xdotool(limit_s) as xdotool:
                if check:
                    xdotool.run([])  # wait until it has started
                    check()
                xdotool.release += keys.release
                xdotool.run(keys.argv, watch)
            is_same_map = self._server.keyboard_map() == self._map
        except PeekabooError:
            with suppress(PeekabooError), uninterrupted():
                self._count(keys)
            raise
        received = self._count(keys)
        if not is_same_map:
            raise _lost("the keyboard map has changed")
        # a held key repeats, and another window may receive the repeats
        if not received.is_complete or (keys.is_held and self._thief(received.stray)):
            raise self._loss(received.stray)
        if keys.modifiers is not None and received.modifiers > keys.modifiers:
            raise _lost("a person pressed a modifier key")

    def _count(self, keys: _Keys) -> _Received:
        """Count the sent keys that the window received; wait for missing ones. xdotool must have ended."""
        missing, modifiers, stray = list(keys.keysyms), 0, []
        end = time.monotonic() + FIRST_S + self._server.round_trip_s
        while (events := self._record.keys(end if missing else 0)) is not None:
            for event in events:
                code = event.detail
                sent = [keysym for keysym in missing if self._may_type(code, keysym)]
                if not self._is_received_by_window(event):
                    stray.append(event)
                elif sent:
                    missing.remove(sent[0])
                elif code in self._modifier_codes:
                    modifiers += 1
                elif not (keys.is_held and self._may_type(code, keys.keysyms[0])):  # a held key repeats
                    self._others += 1
        delivered = len(keys.keysyms) - len(missing)
        self.has_received |= delivered > 0
        self._delivered += delivered if keys.is_counted else 0
        return _Received(not missing, modifiers, stray)

    def _may_type(self, code: int, keysym: int) -> bool:
        # xdotool binds a keysym that has no key to a free key
        is_bound = keysym not in self._mapped and code not in self._modifier_codes
        return is_bound or keysym in self._map.keysyms.get(code, ())

    def _is_received_by_window(self, event: Event) -> bool:
        """Return True if the window's program received a key. With a grab, another program receives it."""
        window_id = self._window.window_id
        if is_same_client(event.client, window_id):
            return True
        if event.is_ungrabbed:
            # a window that another program embeds in this one; the frame does not count
            return event.window_id != self._window.frame_id and self._is_in_window(event.window_id)
        pid, window_pid = self._server.pids_of(event.client, window_id)
        return pid == window_pid != 0  # 0: unknown, perhaps for both

    def _is_in_window(self, window_id: int) -> bool:
        # some programs focus a child of their window
        if window_id not in self._own_ids and self._own_ids.intersection(self._server.containing(window_id)):
            self._own_ids.add(window_id)
        return window_id in self._own_ids

    def _thief(self, stray: Sequence[Event]) -> Optional[int]:
        """Return the window of another program that received keys without a grab, or None."""
        window_ids = {event.window_id for event in stray if event.is_ungrabbed}
        others = (window_id for window_id in window_ids if not self._is_in_window(window_id))
        return next(filter(self._server.top_level, others), None)

    def _loss(self, stray: Sequence[Event]) -> PeekabooError:
        """Return the error for keys that the window did not receive."""
        thief_id = self._thief(stray)
        if thief_id is not None:
            return _lost(f"window {thief_id} took the keyboard")
        if stray and self._is_press:
            return _Undelivered(ErrorCode.FOCUS_LOST, _TAKEN)
        self._check_focus()
        if stray and self._server.is_keyboard_grabbed():
            return _lost("another program has grabbed the keyboard")
        return _Undelivered(ErrorCode.FOCUS_LOST, _TAKEN if stray else _LOST_KEYS)


def _lost(what: str) -> PeekabooError:
    return PeekabooError(ErrorCode.FOCUS_LOST, what)

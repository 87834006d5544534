"""Query the X server: windows, focus, keyboard and selections.

Many requests go out at once: 40 windows take a third of the time of `xwininfo -root -tree`, whose output a
title with a line break can fake. Encodings: X Window System Protocol, Appendix B; the extensions' own.
"""

from __future__ import annotations

import codecs
import os
import re
import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple, Optional

from ...core.call import check_cancelled, within_budget
from ...core.errors import ErrorCode, PeekabooError
from ...core.settings import settings
from .. import matching

UTF8 = {"LC_ALL": "C.UTF-8"}  # for programs that read or print text
_ANSWER_S = 5.0  # a server that does not answer for so long hangs
_COOKIE = b"MIT-MAGIC-COOKIE-1"
INPUT_ONLY, _GRABBED_BY_ANOTHER = 2, 1
_QUERY_CLIENT_IDS, _ITS_PID = 4, 2
_CAPS_LOCK_BIT = 2
_NUM_LOCK_BIT = 16  # Mod2, on all usual keymaps
_BUTTON_BITS, _GROUP_BIT = 0x1F00, 0x2000
# the state's bits, by the usual modifier map
_STATE_BITS = ["Shift", "Lock", "Control", "Alt (Mod1)", "Mod2", "Mod3", "Super (Mod4)", "AltGr (Mod5)"]
_STATE_BITS += [*["a mouse button"] * 5, "a layout key"]
_LOCK_KEYSYMS = {0xFFE5, 0xFF7F, 0xFF14}  # Caps_Lock, Num_Lock, Scroll_Lock
_USE_XKB, _XKB_STATE, _CORE_KEYBOARD = 0, 4, 0x100
_MOST_WORDS = 512  # four bytes each, read of a property at most: a title may be a megabyte


class Address(NamedTuple):
    """The parts of DISPLAY: `unix:0.1` is ("", 0, 1)."""

    host: str
    number: int
    screen: int


def _display_address() -> Optional[Address]:
    match = re.fullmatch(r"(?:\w+/)?(.*):(\d{1,5})(?:\.(\d{1,3}))?", settings().x_display)
    if not match:
        return None
    return Address("" if match[1] == "unix" else match[1], int(match[2]), int(match[3] or 0))


def x11_session() -> str:
    """Return the server's name for file names: `x11-0` for DISPLAY=:0.0, `x11-host-10` for host:10."""
    address = _display_address()
    if address is None:
        return "x11-none"
    host = re.sub(r"[^A-Za-z0-9.-]+", "_", address.host)[:60]
    return f"x11-{host}-{address.number}" if host else f"x11-{address.number}"


def _no_display(details: str) -> PeekabooError:
    hint = "set DISPLAY to a running X server, such as :0, or start one: peekaboo-min desktop -- COMMAND"
    return PeekabooError(ErrorCode.NO_GUI_SESSION, "no X display can be opened", hint, details[:300])


# Opcodes of the core protocol.
NEW_WINDOW, ATTRIBUTES, GEOMETRY, CHILDREN, ATOM, PROPERTY, OWNER = 1, 3, 14, 15, 16, 20, 23
GRAB_KEYBOARD, POINTER, ORIGIN, FOCUS, EXTENSION = 31, 38, 40, 43, 98
KEYBOARD, BUTTONS, MODIFIERS = 101, 117, 119


def request(opcode: int, *numbers: int, data: int = 0, text: bytes = b"") -> bytes:
    """Encode a request: 32-bit numbers, then a text. data: its second byte, such as a sub-opcode."""
    body = struct.pack(f"<{len(numbers)}I", *numbers) + _padded(text)
    return struct.pack("<BBH", opcode, data, 1 + len(body) // 4) + body


def named(opcode: int, name: str) -> bytes:
    """Return a request for an ATOM (the reply is 0 if no program has used the name) or an EXTENSION."""
    return request(opcode, len(name), data=1, text=name.encode("ascii"))


def property_of(window_id: int, atom: int) -> bytes:
    return request(PROPERTY, window_id, atom, 0, 0, _MOST_WORDS)


class Reply(bytes):
    """A server's reply; all zeros if the request failed, mostly because the window is gone."""

    @property
    def has_failed(self) -> bool:
        return self[0] == 0

    @property
    def is_viewable(self) -> bool:
        """True if a window and all that contain it are mapped."""
        return self[26] == 2

    def fields(self, layout: str) -> tuple[int, ...]:
        """Read fields from the ninth byte on."""
        fields: tuple[int, ...] = struct.unpack_from(f"<{layout}", self, 8)
        return fields

    def rows(self, kind: str) -> tuple[tuple[int, ...], ...]:
        # the second byte is the length of a row
        return tuple(struct.iter_unpack(f"<{self[1]}{kind}", self[32:])) if self[1] else ()

    def children(self) -> tuple[int, ...]:
        """Return the child windows, front to back."""
        (count,) = self.fields("8xH")
        return struct.unpack_from(f"<{count}I", self, 32)[::-1]

    def numbers(self) -> tuple[int, ...]:
        """Return a property's 32-bit numbers; empty if it does not exist."""
        (count,) = self.fields("8xI") if self[1] == 32 else (0,)
        return struct.unpack_from(f"<{count}I", self, 32)

    def texts(self) -> list[str]:
        """Return a property's strings, which NUL separates, decoded as UTF-8, else as Latin-1."""
        (size,) = self.fields("8xI") if self[1] == 8 else (0,)
        data = self[32 : 32 + size]
        try:
            is_whole = self.fields("4xI") == (0,)  # else it may end within a character
            # Tk 8.6 sends an emoji as two surrogates
            text, _ = codecs.utf_8_decode(data, "surrogatepass", is_whole)
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        except UnicodeDecodeError:
            text = data.decode("latin-1")
        return text.rstrip("\0").split("\0") if text else []


class KeyboardMap(NamedTuple):
    keysyms: dict[int, tuple[int, ...]]  # of each key code, from 8 on
    modifiers: tuple[tuple[int, ...], ...]  # key codes of Shift, Lock, Control, Mod1 to Mod5; 0 is no key


class InputState(NamedTuple):
    """The keyboard focus, and which keys and buttons are down."""

    focused_id: int  # the window with the X input focus; 0 for none, 1 for the one under the pointer
    held: str  # `Shift, AltGr (Mod5)`; includes modifiers that are latched, or locked without a lock key
    is_caps_locked: bool
    is_num_locked: bool


class XConnection:
    """Queries the X server. Raises TIMEOUT, CANCELLED, and NO_GUI_SESSION if the server ends."""

    def __init__(self, plain: socket.socket, address: Address) -> None:
        self._socket = plain
        self._data = bytearray()
        self._extensions: dict[str, int] = {}
        self.round_trip_s = float("inf")  # the shortest time between a request and its reply so far
        self.screen = address.screen
        cookie = _cookie(address)
        name = _COOKIE if cookie else b""
        hello = struct.pack("<cxHHHHxx", b"l", 11, 0, len(name), len(cookie))
        self.send(hello + _padded(name) + _padded(cookie))
        accepted, length = struct.unpack("<BxxxxxH", self._take(8))
        data = self._take(4 * length)
        if accepted != 1:
            raise _no_display("the X server does not accept the cookie of the file that XAUTHORITY names")
        # resource_base: a free id, for a window or a record of ours
        self.resource_base, mask, vendor_length, screens, formats = struct.unpack_from("<4xII4xHxxBB", data)
        matching.X_CLIENT_BITS = mask.bit_length()
        at = 32 + vendor_length + -vendor_length % 4 + 8 * formats
        for _ in range(min(self.screen, screens - 1)):
            depths, at = data[at + 39], at + 40
            for _ in range(depths):
                at += 8 + 24 * struct.unpack_from("<xxH", data, at)[0]
        self.root_id: int = struct.unpack_from("<I", data, at)[0]

    def ask(self, requests: Sequence[bytes]) -> list[Reply]:
        """Return the replies in order."""
        check_cancelled()
        replies: list[Reply] = []
        started = time.monotonic()
        try:
            self.send(b"".join(requests))
            while len(replies) < len(requests):
                message = self._take_message()
                if message[0] in (0, 1):  # skip events that every client gets: a new keyboard map
                    replies.append(message if message[0] else Reply(bytes(32)))
        except BaseException:
            self._socket.close()  # a later request would read its other replies
            raise
        self.round_trip_s = min(self.round_trip_s, time.monotonic() - started)
        return replies

    def send(self, requests: bytes) -> None:
        """Send requests that have no reply, or whose replies `receive` returns."""
        with _connection_errors():
            self._socket.sendall(requests)

    def receive(self, seconds: float) -> Optional[Reply]:
        """Return the server's next message, or None if no message comes in that time."""
        check_cancelled()
        if not self._data and not select.select([self._socket], [], [], seconds)[0]:
            return None
        return self._take_message()

    def atoms(self, names: Sequence[str]) -> dict[str, int]:
        replies = self.ask([named(ATOM, name) for name in names])
        return {name: reply.fields("I")[0] for name, reply in zip(names, replies)}

    def extension(self, name: str) -> int:
        """Return an extension's opcode, or 0 if the server does not have it."""
        if name not in self._extensions:
            (self._extensions[name],) = self.ask([named(EXTENSION, name)])[0].fields("xB")
        return self._extensions[name]

    def is_viewable(self, window_id: int) -> bool:
        """Return True if a window and all that contain it are mapped; False if it is gone."""
        return self.ask([request(ATTRIBUTES, window_id)])[0].is_viewable

    def containing(self, window_id: int) -> list[int]:
        """Return a window and its ancestors, up to the top-level window; empty if it is gone."""
        windows: list[int] = []
        while window_id != self.root_id:
            (reply,) = self.ask([request(CHILDREN, window_id)])
            if reply.has_failed:
                return []
            windows.append(window_id)
            (window_id,) = reply.fields("4xI")
        return windows

    def top_level(self, window_id: int) -> int:
        """Return the top-level window that contains a window, or 0 if it is gone."""
        return [0, *self.containing(window_id)][-1]

    def is_same_program(self, window_id: int, other_id: int) -> bool:
        """Return True if one process made both windows, or if the server knows neither's process (remote)."""
        pid, other_pid = self.pids_of(window_id, other_id)
        return pid == other_pid

    def pids_of(self, *window_ids: int) -> list[int]:
        """Return the ids of the windows' processes (X-Resource 1.2, QueryClientIds); 0 if unknown: remote."""
        opcode = self.extension("X-Resource")
        specs = ((1, window_id, _ITS_PID) for window_id in window_ids)
        replies = self.ask([request(opcode, *spec, data=_QUERY_CLIENT_IDS) for spec in specs])
        return [int.from_bytes(reply[44:48], "little") for reply in replies]

    def keyboard_map(self) -> KeyboardMap:
        keysyms, modifiers = self.ask([request(KEYBOARD, 8 | 248 << 8), request(MODIFIERS)])
        return KeyboardMap(dict(enumerate(keysyms.rows("I"), 8)), modifiers.rows("B"))

    def input_state(self) -> InputState:
        """Return the focus and the held keys and buttons. Without XKB (XkbGetState), lock keys are missed."""
        requests = [request(FOCUS), request(POINTER, self.root_id)]
        if xkb := self.extension("XKEYBOARD"):
            requests += [request(xkb, 1, data=_USE_XKB), request(xkb, _CORE_KEYBOARD, data=_XKB_STATE)]
        focus, pointer, *xkb_replies = self.ask(requests)
        (bits,) = pointer.fields("16xH")
        held, locked = bits & _BUTTON_BITS, bits & 0xFF
        if xkb_replies and not xkb_replies[-1].has_failed:
            down, latched, locked, down_group, latched_group = xkb_replies[-1].fields("xBBBxxhh")
            held |= down | latched | (_GROUP_BIT if down_group or latched_group else 0)
        keysyms, modifiers = self.keyboard_map() if locked & ~_CAPS_LOCK_BIT else ({}, ())
        for number, codes in enumerate(modifiers):
            if not any(_LOCK_KEYSYMS.intersection(keysyms.get(code, ())) for code in codes):
                held |= locked & 1 << number
        names = ", ".join(name for number, name in enumerate(_STATE_BITS) if held >> number & 1)
        (focused_id,) = focus.fields("I")
        return InputState(focused_id, names, bool(bits & _CAPS_LOCK_BIT), bool(bits & _NUM_LOCK_BIT))

    def check_nothing_held(self) -> InputState:
        """Return the input state. Raises WINDOW_BLOCKED if a mouse button or a modifier is held."""
        state = self.input_state()
        if state.held:
            message = f"{state.held} is held down; nothing was clicked or typed"
            keys = ("shift", "ctrl", "alt", "super", "ISO_Level3_Shift")
            hint = f"wait until it is released, or: xdotool mouseup 1 keyup {' keyup '.join(keys)}"
            raise PeekabooError(ErrorCode.WINDOW_BLOCKED, message, hint)
        return state

    def is_keyboard_grabbed(self) -> bool:
        """Return True if a program has grabbed the keyboard, as an open menu does."""
        # try to grab it for a window that is never mapped: that always fails, and has no effect
        window_id = self.resource_base
        self.send(request(NEW_WINDOW, window_id, self.root_id, 0, 1 << 16 | 1, INPUT_ONLY << 16, 0, 0))
        (reply,) = self.ask([request(GRAB_KEYBOARD, window_id, 0, 1 << 8 | 1)])
        return reply[1] == _GRABBED_BY_ANOTHER

    def physical_button(self, button: int) -> str:
        """Convert a button as programs see it to the number to press: users may swap buttons."""
        (reply,) = self.ask([request(BUTTONS)])
        mapped = reply[32 : 32 + reply[1]]
        return str(mapped.index(button) + 1 if button in mapped else button)

    def client_with_focus(self) -> int:
        """Return the client, else the top-level window, that has or contains the X focus; 0 for none."""
        (focused_id,) = self.ask([request(FOCUS)])[0].fields("I")
        if focused_id == 1:  # PointerRoot: the window under the pointer would get the keys
            return 0
        containing = self.containing(focused_id)
        wm_state = self.atoms(["WM_STATE"])["WM_STATE"]
        replies = self.ask([property_of(window_id, wm_state) for window_id in containing])
        clients = [window_id for window_id, reply in zip(containing, replies) if reply.numbers()]
        return (clients or containing[-1:] or [0])[0]

    def _take_message(self) -> Reply:
        # replies (1) and generic events (35) have a length field
        head = self._take(32)
        more = struct.unpack_from("<I", head, 4)[0] if head[0] in (1, 35) else 0
        return Reply(head + self._take(4 * more))

    def _take(self, size: int) -> bytes:
        while len(self._data) < size:
            seconds = within_budget(_ANSWER_S)
            if not select.select([self._socket], [], [], seconds)[0]:
                message = f"the X server did not answer within {seconds:.2g} seconds"
                raise PeekabooError(ErrorCode.TIMEOUT, message, "check whether the display hangs, try again")
            with _connection_errors():
                chunk = self._socket.recv(1 << 16)
                if not chunk:
                    raise ConnectionError("the X server closed the connection")
            self._data += chunk
        taken = bytes(self._data[:size])
        del self._data[:size]
        return taken


@contextmanager
def x_connection() -> Iterator[XConnection]:
    """Connect to the server that DISPLAY names. Raises NO_GUI_SESSION, TIMEOUT, CANCELLED."""
    address, given = _display_address(), settings().x_display
    if address is None:
        meant = f"; did you mean ':{given}'?" if given.isdecimal() else ""
        raise _no_display(f"DISPLAY is {given!r}{meant}" if given else "DISPLAY is not set")
    check_cancelled()
    with ExitStack() as opened:
        with _connection_errors():
            if address.host:
                tcp = socket.create_connection((address.host, 6000 + address.number), _ANSWER_S)
                plain = opened.enter_context(tcp)
            else:
                plain = opened.enter_context(socket.socket(socket.AF_UNIX))
                plain.settimeout(_ANSWER_S)
                plain.connect(f"/tmp/.X11-unix/X{address.number}")
        yield XConnection(plain, address)


@contextmanager
def _connection_errors() -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeError) as e:  # UnicodeError: DISPLAY holds no valid host name
        reason = getattr(e, "strerror", None) or e
        raise _no_display(f"DISPLAY is {settings().x_display!r}: {reason}") from e


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _cookie(address: Address) -> bytes:
    """Return this display's cookie from the authority file, preferably of this host."""
    host, number = (address.host or os.uname().nodename).encode(), str(address.number).encode()
    cookies: dict[bytes, bytes] = {}
    path = os.path.expanduser(settings().x_authority or "~/.Xauthority")
    with suppress(OSError), open(path, "rb") as f:
        while len(f.read(2)) == 2:  # the family; format: Xau
            of_host, of_number, name, cookie = (f.read(int.from_bytes(f.read(2), "big")) for _ in range(4))
            if of_number in (b"", number) and name == _COOKIE:
                cookies[of_host] = cookie
    return cookies.get(host) or next(iter(cookies.values()), b"")


def is_same_client(window_id: int, other_id: int) -> bool:
    """Return True if one connection to the X server, and so one program, made both windows."""
    return window_id >> matching.X_CLIENT_BITS == other_id >> matching.X_CLIENT_BITS

"""One connection to the X server that only asks: many questions at once.

`xwininfo` and `xprop` answer about one window each, a process a window: for 40 windows that is three times a
walk of `xwininfo -root -tree`, and a title with a line break fakes lines of theirs. Here all questions go out
at once. Encodings: X Window System Protocol, Appendix B; of Xinerama: its own specification.
"""

from __future__ import annotations

import codecs
import os
import re
import select
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, Optional

from ...core.cancellation import check_cancelled, within_budget
from ...core.errors import ErrorCode, PeekabooError
from ...core.settings import settings
from ..matching import X_CLIENT_BITS

UTF8 = {"LC_ALL": "C.UTF-8"}  # for programs that read or print text
_ANSWER_S = 5.0
_COOKIE = b"MIT-MAGIC-COOKIE-1"
IS_VIEWABLE = 2
_INPUT_ONLY, _GRABBED_BY_ANOTHER = 2, 1
_QUERY_CLIENT_IDS, _ITS_PID = 4, 2
HELD_BITS = 0x1F00 | 0b1101  # the buttons; Shift, Control, Alt: other modifiers may be locked
CAPS_LOCK_BIT = 2
_MOST_WORDS = 512  # of a property, four bytes each: a title may be a megabyte


class Address(NamedTuple):
    """A DISPLAY, taken apart: `unix:0.1` is ("", 0, 1)."""

    host: str
    number: int
    screen: int


def _display_address() -> Optional[Address]:
    match = re.fullmatch(r"(?:\w+/)?(.*):(\d{1,5})(?:\.(\d{1,3}))?", settings().x_display)
    if not match:
        return None
    return Address("" if match[1] == "unix" else match[1], int(match[2]), int(match[3] or 0))


def x11_session() -> str:
    """`x11-0` for DISPLAY=:0.0, `x11-host-10` for host:10: a server, safe in a file name."""
    address = _display_address()
    if address is None:
        return "x11-none"
    host = re.sub(r"[^A-Za-z0-9.-]+", "_", address.host)[:60]
    return f"x11-{host}-{address.number}" if host else f"x11-{address.number}"


def _no_display(details: str) -> PeekabooError:
    hint = "set DISPLAY to a running X server, such as :0, or start one: Xvfb :1 & export DISPLAY=:1"
    return PeekabooError(ErrorCode.NO_GUI_SESSION, "no X display can be opened", hint, details[:300])


NEW_WINDOW, ATTRIBUTES, GEOMETRY, CHILDREN, ATOM, PROPERTY, OWNER = 1, 3, 14, 15, 16, 20, 23
GRAB_KEYBOARD, POINTER, ORIGIN, FOCUS, EXTENSION = 31, 38, 40, 43, 98
KEYBOARD, BUTTONS, MODIFIERS = 101, 117, 119


def request(opcode: int, *words: int, data: int = 0, text: bytes = b"") -> bytes:
    body = struct.pack(f"<{len(words)}I", *words) + _padded(text)
    return struct.pack("<BBH", opcode, data, 1 + len(body) // 4) + body


def named(opcode: int, name: str) -> bytes:
    """For ATOM, which is 0 for a name that nobody has used yet, and EXTENSION."""
    return request(opcode, len(name), data=1, text=name.encode("ascii"))


def property_of(window_id: int, atom: int) -> bytes:
    return request(PROPERTY, window_id, atom, 0, 0, _MOST_WORDS)


def fields_in(reply: Optional[bytes], layout: str) -> tuple[int, ...]:
    """What stands in a reply from its ninth byte on; zeros for an error."""
    fields: tuple[int, ...] = struct.unpack_from(f"<{layout}", reply or bytes(32), 8)
    return fields


def children_in(reply: Optional[bytes]) -> tuple[int, ...]:
    """The windows in a window, front to back."""
    (count,) = fields_in(reply, "8xH")
    return struct.unpack_from(f"<{count}I", reply or b"", 32)[::-1] if count else ()


def numbers_in(reply: Optional[bytes]) -> tuple[int, ...]:
    """The value of a property that holds numbers of 32 bits; nothing where it does not exist."""
    if reply is None or reply[1] != 32:
        return ()
    return struct.unpack_from(f"<{fields_in(reply, '8xI')[0]}I", reply, 32)


def texts_in(reply: Optional[bytes]) -> list[str]:
    """The strings of a property, which NUL separates: UTF-8, else the Latin-1 of the type STRING."""
    if reply is None or reply[1] != 8:
        return []
    data = reply[32 : 32 + fields_in(reply, "8xI")[0]]
    try:
        is_whole = fields_in(reply, "4xI") == (0,)  # else it may end within a character
        text, _ = codecs.utf_8_decode(data, "surrogatepass", is_whole)  # Tk 8.6: an emoji is two surrogates
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return text.rstrip("\0").split("\0") if text else []


class XConnection:
    """Asks the X server. Raises TIMEOUT, CANCELLED, and NO_GUI_SESSION for a server that ends."""

    def __init__(self, plain: socket.socket, address: Address) -> None:
        self._socket = plain
        self._data = bytearray()
        self.screen = address.screen
        cookie = _cookie(address)
        name = _COOKIE if cookie else b""
        hello = struct.pack("<cxHHHHxx", b"l", 11, 0, len(name), len(cookie))
        self.send(hello + _padded(name) + _padded(cookie))
        accepted, length = struct.unpack("<BxxxxxH", self._take(8))
        data = self._take(4 * length)
        if accepted != 1:
            raise _no_display("the X server does not accept the cookie of the file that XAUTHORITY names")
        # resource_base: a number that is free for something of ours in the server
        self.resource_base, vendor_length, screens, formats = struct.unpack_from("<4xI8xHxxBB", data)
        at = 32 + vendor_length + -vendor_length % 4 + 8 * formats
        for _ in range(min(self.screen, screens - 1)):
            depths, at = data[at + 39], at + 40
            for _ in range(depths):
                at += 8 + 24 * struct.unpack_from("<xxH", data, at)[0]
        self.root_id: int = struct.unpack_from("<I", data, at)[0]

    def ask(self, requests: Sequence[bytes]) -> list[Optional[bytes]]:
        """The replies, in their order; None for one that the server refuses: mostly, the window is gone."""
        check_cancelled()
        replies: list[Optional[bytes]] = []
        try:
            self.send(b"".join(requests))
            while len(replies) < len(requests):
                message = self._take_message()
                if message[0] in (0, 1):  # else an event that every client gets: the keyboard's map changed
                    replies.append(message if message[0] else None)
        except BaseException:
            self._socket.close()  # the rest of these replies must not be taken for later ones
            raise
        return replies

    def send(self, requests: bytes) -> None:
        """Requests without a reply, or whose replies are to be received."""
        with _connection_errors():
            self._socket.sendall(requests)

    def receive(self, seconds: float) -> Optional[bytes]:
        """The next message of the server; None when none comes in that time. Raises CANCELLED."""
        check_cancelled()
        if not self._data and not select.select([self._socket], [], [], seconds)[0]:
            return None
        return self._take_message()

    def atoms(self, names: Sequence[str]) -> dict[str, int]:
        replies = self.ask([named(ATOM, name) for name in names])
        return {name: fields_in(reply, "I")[0] for name, reply in zip(names, replies)}

    def is_viewable(self, window_id: int) -> bool:
        """Whether a window is mapped, and all that contain it; False for one that is gone."""
        (reply,) = self.ask([request(ATTRIBUTES, window_id)])
        return reply is not None and reply[26] == IS_VIEWABLE

    def containing(self, window_id: int) -> list[int]:
        """A window and those that contain it, up to the top-level one; empty for a window that is gone."""
        windows: list[int] = []
        while window_id not in (0, self.root_id):
            (reply,) = self.ask([request(CHILDREN, window_id)])
            if reply is None:
                return []
            windows.append(window_id)
            window_id = fields_in(reply, "4xI")[0]
        return windows

    def top_level(self, window_id: int) -> int:
        """The top-level window that contains a window; 0 when the window is gone."""
        return [0, *self.containing(window_id)][-1]

    def is_same_program(self, window_id: int, other_id: int) -> bool:
        """Whether a window was made by the process of another, which may have several connections; True where
        the server does not know that one's process, as a remote one's.
        """
        if is_same_client(window_id, other_id):
            return True
        pid, other_pid = self.pids_of(window_id, other_id)
        # no pid of a program that has ended, as xclip does at once
        return not other_pid or pid == other_pid

    def pids_of(self, *window_ids: int) -> list[int]:
        """The processes that made windows; 0 where the server does not know one.

        Encoding: the extension X-Resource 1.2, QueryClientIds.
        """
        (opcode,) = fields_in(self.ask([named(EXTENSION, "X-Resource")])[0], "xB")
        replies = self.ask(
            [request(opcode, 1, each, _ITS_PID, data=_QUERY_CLIENT_IDS) for each in window_ids]
        )
        return [struct.unpack_from("<I", (reply or b"")[44:48].ljust(4, b"\0"))[0] for reply in replies]

    def state(self) -> int:
        """The bits of the modifiers and mouse buttons that are down, and of those that are locked."""
        return fields_in(self.ask([request(POINTER, self.root_id)])[0], "16xH")[0]

    def state_with_nothing_held(self) -> int:
        """The bits of what is locked. Raises WINDOW_BLOCKED while a mouse button or modifier key is down."""
        state = self.state()
        if state & HELD_BITS:
            message = "a mouse button or modifier key is held down; nothing was clicked or typed"
            hint = (
                "wait until it is let go, or release it: xdotool mouseup 1 keyup shift keyup ctrl keyup alt"
            )
            raise PeekabooError(ErrorCode.WINDOW_BLOCKED, message, hint)
        return state

    def is_keyboard_grabbed(self) -> bool:
        """Whether a program has grabbed the keyboard, as an open menu does.

        It is asked for a window that is never mapped: such a grab fails always, and disturbs nobody.
        """
        window_id = self.resource_base
        self.send(request(NEW_WINDOW, window_id, self.root_id, 0, 1 << 16 | 1, _INPUT_ONLY << 16, 0, 0))
        (reply,) = self.ask([request(GRAB_KEYBOARD, window_id, 0, 1 << 8 | 1)])
        return reply is not None and reply[1] == _GRABBED_BY_ANOTHER

    def physical_button(self, button: int) -> str:
        """The number to press for the button that programs see, which differ for whoever swapped them."""
        (reply,) = self.ask([request(BUTTONS)])
        mapped = reply[32 : 32 + reply[1]] if reply else b""
        return str(mapped.index(button) + 1 if button in mapped else button)

    def client_with_focus(self) -> int:
        """The client that has the X input focus, or has the window that has it; 0 for none."""
        (focused_id,) = fields_in(self.ask([request(FOCUS)])[0], "I")
        if focused_id == 1:  # PointerRoot: the window under the pointer would get the keys
            return 0
        containing = self.containing(focused_id)
        state = self.atoms(["WM_STATE"])["WM_STATE"]
        replies = self.ask([property_of(each, state) for each in containing])
        clients = [each for each, reply in zip(containing, replies) if numbers_in(reply)]
        return (clients or containing or [0])[0]

    def _take_message(self) -> bytes:
        """A reply, an error or an event; replies (1) and generic events (35) say how much follows."""
        head = self._take(32)
        more = struct.unpack_from("<I", head, 4)[0] if head[0] in (1, 35) else 0
        return head + self._take(4 * more) if more else head

    def _take(self, size: int) -> bytes:
        while len(self._data) < size:
            if not select.select([self._socket], [], [], within_budget(_ANSWER_S))[0]:
                message = f"the X server did not answer within {_ANSWER_S:g} seconds"
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
    """A connection to the server that DISPLAY names. Raises NO_GUI_SESSION, TIMEOUT, CANCELLED."""
    address, given = _display_address(), settings().x_display
    if address is None:
        raise _no_display(f"DISPLAY is {given!r}" if given else "DISPLAY is not set")
    check_cancelled()
    with closing(_open_socket(address)) as plain:
        yield XConnection(plain, address)


@contextmanager
def _connection_errors() -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeError) as e:  # UnicodeError: what cannot be a host's name
        reason = getattr(e, "strerror", None) or e
        raise _no_display(f"DISPLAY is {settings().x_display!r}: {reason}") from e


def _open_socket(address: Address) -> socket.socket:
    with _connection_errors():
        if address.host:
            return socket.create_connection((address.host, 6000 + address.number), _ANSWER_S)
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_ANSWER_S)
        try:
            connection.connect(f"/tmp/.X11-unix/X{address.number}")
        except OSError:
            connection.close()
            raise
        return connection


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _cookie(address: Address) -> bytes:
    """The cookie for this display in the user's authority file, this host's before another's (Xau's file
    format); empty where there is none.
    """
    path = Path(os.path.expanduser(settings().x_authority or "~/.Xauthority"))
    try:
        entries = list(_entries(path.read_bytes()))
    except (OSError, struct.error):
        return b""
    host, number = (address.host or os.uname().nodename).encode(), str(address.number).encode()
    cookies = {entry[0]: entry[3] for entry in entries if entry[1] in (b"", number) and entry[2] == _COOKIE}
    return cookies.get(host) or next(iter(cookies.values()), b"")


def _entries(data: bytes) -> Iterator[tuple[bytes, ...]]:
    """Address, display number, name and data of each entry: four strings with a length, after a family."""
    at = 0
    while at + 2 <= len(data):
        at += 2
        fields = []
        for _ in range(4):
            (length,) = struct.unpack_from(">H", data, at)
            fields.append(data[at + 2 : at + 2 + length])
            at += 2 + length
        yield tuple(fields)


def is_same_client(window_id: int, other_id: int) -> bool:
    """Whether two windows were made by one connection to the X server, which is one program."""
    return window_id >> X_CLIENT_BITS == other_id >> X_CLIENT_BITS

"""Questions to the X server: programs that ask it, and the compositor."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Optional

from ...core.errors import ErrorCode, PeekabooError
from ...core.log import log_debug
from ...core.settings import settings
from ...system.process import Completed, run_program

if TYPE_CHECKING:
    import socket

QUERY_S = 5.0
UTF8 = {"LC_ALL": "C.UTF-8"}
_SOCKET_S = 2.0
_COOKIE = b"MIT-MAGIC-COOKIE-1"
_COOKIES_TRIED = 4
_DEEPEST = 8


def ask_x(words: Sequence[str], timeout_s: float = QUERY_S, holding: Sequence[int] = ()) -> str:
    """The output of a program that talks to the X server. Raises WINDOW_NOT_FOUND, NO_GUI_SESSION besides.

    holding: descriptors that the program inherits.
    """
    done = run_program(words, timeout_s=timeout_s, accept=None, environment=UTF8, pass_fds=holding)
    check_x(words[0], done)
    return done.text


def check_x(program: str, done: Completed) -> None:
    """Raise what a failed program's error output means: NO_GUI_SESSION, WINDOW_NOT_FOUND, else
    PROGRAM_FAILED.
    """
    if done.code == 0:
        return
    output = done.stderr.strip()
    if re.search(r"open (X )?display|open X|parse display name|no display", output, re.I):
        raise PeekabooError(
            ErrorCode.NO_GUI_SESSION,
            "no X display can be opened",
            hint="set DISPLAY to a running X server, or start one: Xvfb :1 & export DISPLAY=:1",
            details=output[:300],
        )
    if re.search(r"BadWindow|BadDrawable|Bad ?Drawable|No such window|no window with", output, re.I):
        raise PeekabooError(
            ErrorCode.WINDOW_NOT_FOUND,
            "that window is gone",
            hint="list the windows again",
            details=output[:300],
        )
    raise PeekabooError(
        ErrorCode.PROGRAM_FAILED, f"{program} failed with exit code {done.code}", details=output[-1000:]
    )


def top_level(window_id: int) -> int:
    """The top-level window that contains a window; 0 when that cannot be found out, or the window is gone."""
    if not window_id:
        return 0  # xwininfo would take it for no id at all, and wait for a click
    for _ in range(_DEEPEST):
        try:
            text = ask_x(["xwininfo", "-children", "-id", str(window_id)])
        except PeekabooError as e:
            if e.code is ErrorCode.WINDOW_NOT_FOUND:
                return 0
            raise
        roots = re.findall(r"^  Root window id: (0x[0-9a-f]+)", text, re.M)
        parents = re.findall(r"^  Parent window id: (0x[0-9a-f]+)", text, re.M)
        if len(roots) != 1 or len(parents) != 1:
            return 0  # a title with line breaks fakes one of them
        if int(parents[0], 16) in (0, int(roots[0], 16)):
            return window_id
        window_id = int(parents[0], 16)
    return 0


def is_viewable(window_id: int) -> bool:
    """Whether a window is mapped, and all that contain it; False for one that is gone."""
    try:
        text = ask_x(["xwininfo", "-stats", "-id", str(window_id)])
    except PeekabooError as e:
        if e.code is ErrorCode.WINDOW_NOT_FOUND:
            return False
        raise
    # the title comes first and may contain anything
    return text[text.rfind("\n  Map State: ") :].strip().startswith("Map State: IsViewable")


class _Address(NamedTuple):
    """A DISPLAY, taken apart: `unix:0.1` is ("", 0, 1)."""

    host: str
    number: int
    screen: int


def _address() -> Optional[_Address]:
    match = re.fullmatch(r"(?:\w+/)?(.*):(\d{1,5})(?:\.(\d{1,3}))?", settings().x_display)
    if not match:
        return None
    host = "" if match[1] == "unix" else match[1]
    return _Address(host, int(match[2]), int(match[3] or 0))


def x11_session() -> str:
    """`x11-0` for DISPLAY=:0.0, `x11-host-10` for host:10: a server, safe in a file name."""
    address = _address()
    if address is None:
        return "x11-none"
    host = re.sub(r"[^A-Za-z0-9.-]+", "_", address.host)[:60]
    return f"x11-{host}-{address.number}" if host else f"x11-{address.number}"


def has_compositor() -> Optional[bool]:
    """Whether a compositing manager keeps covered windows' pixels; None where that cannot be found out.

    A compositor owns the selection _NET_WM_CM_Sn, which no command-line program asks for. (Looking for one by
    name in the window tree would not do: each compositor has its own.)
    """
    address = _address()
    if address is None:
        return None
    name = f"_NET_WM_CM_S{address.screen}".encode("ascii")
    intern = struct.pack("<BBHHxx", 16, 1, 2 + len(_padded(name)) // 4, len(name)) + _padded(name)
    with _connected(address) as connection:
        if connection is None:
            return None
        (atom,) = struct.unpack("<8xI20x", _answer(connection, intern))
        if not atom:
            return False
        (owner,) = struct.unpack("<8xI20x", _answer(connection, struct.pack("<BxHI", 23, 2, atom)))
        return bool(owner)


def top_level_under_pointer() -> Optional[int]:
    """The top-level window under the pointer, 0 for the root window; None where that cannot be found out.

    xdotool's getmouselocation looks for a client in there, and prints 0 where it finds none that way.
    """
    address = _address()
    if address is None:
        return None
    with _connected(address) as connection:
        if connection is None:
            return None
        query = struct.pack("<BxHI", 38, 2, connection.root_id)
        (child,) = struct.unpack("<12xI16x", _answer(connection, query))
        return int(child)


@dataclass(frozen=True)
class _Connection:
    socket: socket.socket
    root_id: int


@contextmanager
def _connected(address: _Address) -> Iterator[Optional[_Connection]]:
    """A connection to the X server that only asks: the few requests that no program makes for us.

    None where there is none to be had. Encodings: X Window System Protocol, Appendix B.
    """
    for cookie in [*_cookies(address), b""]:
        try:
            with _connect(address) as plain:
                root_id = _greet(plain, cookie, address.screen)
                if root_id is not None:
                    yield _Connection(plain, root_id)
                    return
        except (OSError, EOFError, struct.error) as e:
            log_debug(f"the X server cannot be asked: {e}")
            break
    yield None


def _connect(address: _Address) -> socket.socket:
    import socket  # 3 ms that a list of windows does not need

    if address.host:
        return socket.create_connection((address.host, 6000 + address.number), _SOCKET_S)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(_SOCKET_S)
    try:
        connection.connect(f"/tmp/.X11-unix/X{address.number}")
    except OSError:
        connection.close()
        raise
    return connection


def _greet(connection: socket.socket, cookie: bytes, screen: int) -> Optional[int]:
    """Set the connection up; return the screen's root window, None when the server does not accept the
    cookie.
    """
    name = _COOKIE if cookie else b""
    hello = struct.pack("<cxHHHHxx", b"l", 11, 0, len(name), len(cookie))
    connection.sendall(hello + _padded(name) + _padded(cookie))
    accepted, _, _, _, length = struct.unpack("<BBHHH", _read(connection, 8))
    data = _read(connection, 4 * length)
    if accepted != 1:
        return None
    vendor_length, screens, formats = struct.unpack_from("<16xHxxBB", data)
    at = 32 + vendor_length + -vendor_length % 4 + 8 * formats
    for _ in range(min(screen, screens - 1)):
        depths, at = data[at + 39], at + 40
        for _ in range(depths):
            at += 8 + 24 * struct.unpack_from("<xxH", data, at)[0]
    return int(struct.unpack_from("<I", data, at)[0])


def _answer(connection: _Connection, request: bytes) -> bytes:
    """The 32 bytes of a reply, or of the error that comes in its place: that raises struct.error."""
    connection.socket.sendall(request)
    reply = _read(connection.socket, 32)
    if reply[0] != 1:
        raise struct.error("the server answered with an error")
    return reply


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data


def _cookies(address: _Address) -> list[bytes]:
    """The cookies for this display's number in the user's authority file, this host's first (Xau's file
    format).
    """
    path = Path(os.path.expanduser(settings().x_authority or "~/.Xauthority"))
    try:
        entries = list(_entries(path.read_bytes()))
    except (OSError, struct.error):
        return []
    host = (address.host or os.uname().nodename).encode()
    fitting = [one for one in entries if one[1] in (b"", str(address.number).encode()) and one[2] == _COOKIE]
    fitting.sort(key=lambda one: one[0] != host)
    return [one[3] for one in fitting[:_COOKIES_TRIED]]


def _entries(data: bytes) -> Iterator[tuple[bytes, ...]]:
    """Address, display number, name and data of each entry: after two bytes of family, four strings with a
    length.
    """
    at = 0
    while at + 2 <= len(data):
        at += 2
        fields = []
        for _ in range(4):
            (length,) = struct.unpack_from(">H", data, at)
            fields.append(data[at + 2 : at + 2 + length])
            at += 2 + length
        yield tuple(fields)

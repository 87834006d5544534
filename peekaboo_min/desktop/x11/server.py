"""Questions to the X server: programs that ask it, and the compositor."""

from __future__ import annotations

import os
import re
import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Optional

from ...core.errors import ErrorCode, PeekabooError
from ...core.settings import settings
from ...system.process import Completed, run_program

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
    """Raise what a failed program's error output means: NO_GUI_SESSION, WINDOW_NOT_FOUND, else PROGRAM_FAILED."""
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

    A compositor owns the selection _NET_WM_CM_Sn, which no command-line program asks for; so this speaks the two
    requests of the X protocol itself. (Their names in the window tree would not do: each compositor has its own.)
    """
    address = _address()
    if address is None:
        return None
    for cookie in [*_cookies(address), b""]:
        try:
            with _connect(address) as connection:
                owner = _selection_owner(connection, cookie, f"_NET_WM_CM_S{address.screen}")
        except (OSError, EOFError, struct.error):
            return None
        if owner is not None:
            return owner != 0
    return None


def _connect(address: _Address) -> socket.socket:
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


def _selection_owner(connection: socket.socket, cookie: bytes, selection: str) -> Optional[int]:
    """The window that owns a selection, 0 for none; None when the server does not accept the cookie.

    Encodings: X Window System Protocol, Appendix B (connection setup, InternAtom, GetSelectionOwner).
    """
    name = _COOKIE if cookie else b""
    hello = struct.pack("<cxHHHHxx", b"l", 11, 0, len(name), len(cookie))
    connection.sendall(hello + _padded(name) + _padded(cookie))
    accepted, _, _, _, length = struct.unpack("<BBHHH", _read(connection, 8))
    _read(connection, 4 * length)
    if accepted != 1:
        return None
    text = selection.encode("ascii")
    connection.sendall(struct.pack("<BBHHxx", 16, 1, 2 + len(_padded(text)) // 4, len(text)) + _padded(text))
    (atom,) = struct.unpack("<8xI20x", _read(connection, 32))
    if not atom:
        return 0
    connection.sendall(struct.pack("<BxHI", 23, 2, atom))
    (owner,) = struct.unpack("<8xI20x", _read(connection, 32))
    return int(owner)


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
    """The cookies for this display's number in the user's authority file, this host's first (Xau's file format)."""
    path = Path(os.path.expanduser(settings().x_authority or "~/.Xauthority"))
    try:
        entries = list(_entries(path.read_bytes()))
    except (OSError, struct.error):
        return []
    host = (address.host or socket.gethostname()).encode()
    fitting = [one for one in entries if one[1] in (b"", str(address.number).encode()) and one[2] == _COOKIE]
    fitting.sort(key=lambda one: one[0] != host)
    return [one[3] for one in fitting[:_COOKIES_TRIED]]


def _entries(data: bytes) -> Iterator[tuple[bytes, ...]]:
    """Address, display number, name and data of each entry: after two bytes of family, four strings with a length."""
    at = 0
    while at + 2 <= len(data):
        at += 2
        fields = []
        for _ in range(4):
            (length,) = struct.unpack_from(">H", data, at)
            fields.append(data[at + 2 : at + 2 + length])
            at += 2 + length
        yield tuple(fields)

"""Questions to the X server about single windows; what xdotool's errors mean."""

from __future__ import annotations

import re
import struct
from typing import Optional

from ...core.errors import ErrorCode, PeekabooError
from ...core.text import clean_text
from ...system.process import Completed
from .connection import (
    ATTRIBUTES,
    BUTTONS,
    CHILDREN,
    EXTENSION,
    FOCUS,
    GRAB_KEYBOARD,
    NEW_WINDOW,
    POINTER,
    XConnection,
    display_address,
    fields_in,
    is_same_client,
    named,
    no_display,
    numbers_in,
    property_of,
    request,
    texts_in,
    x_connection,
)

UTF8 = {"LC_ALL": "C.UTF-8"}
IS_VIEWABLE = 2
_WM_CLASS = 67  # an atom that every server has
_DEEPEST = 16
_INPUT_ONLY, _GRABBED_BY_ANOTHER = 2, 1
_QUERY_CLIENT_IDS, _ITS_PID = 4, 2
_BUTTON_BITS, _MODIFIER_BITS = 0x1F00, 0b1101  # of these Shift, Control, Alt: the others may be locked


def check_xdotool(done: Completed) -> None:
    """Raise what the error output of an xdotool that failed means: NO_GUI_SESSION, WINDOW_NOT_FOUND, else
    PROGRAM_FAILED.
    """
    if done.code == 0:
        return
    output = done.stderr.strip()
    if re.search(r"open (X )?display|open X|parse display name|no display", output, re.I):
        raise no_display(output)
    if re.search(r"BadWindow|Bad ?Drawable|No such window|no window with", output, re.I):
        raise PeekabooError(
            ErrorCode.WINDOW_NOT_FOUND,
            "that window is gone",
            hint="list the windows again",
            details=output[:300],
        )
    raise PeekabooError(
        ErrorCode.PROGRAM_FAILED, f"xdotool failed with exit code {done.code}", details=output[-1000:]
    )


def x11_session() -> str:
    """`x11-0` for DISPLAY=:0.0, `x11-host-10` for host:10: a server, safe in a file name."""
    address = display_address()
    if address is None:
        return "x11-none"
    host = re.sub(r"[^A-Za-z0-9.-]+", "_", address.host)[:60]
    return f"x11-{host}-{address.number}" if host else f"x11-{address.number}"


def is_viewable(window_id: int) -> bool:
    """Whether a window is mapped, and all that contain it; False for one that is gone."""
    with x_connection() as server:
        (reply,) = server.ask([request(ATTRIBUTES, window_id)])
    return reply is not None and reply[26] == IS_VIEWABLE


def containing_windows(server: XConnection, window_id: int) -> list[int]:
    """A window and those that contain it, up to the top-level one; empty for a window that is gone."""
    found: list[int] = []
    while window_id not in (0, server.root_id) and len(found) < _DEEPEST:
        (reply,) = server.ask([request(CHILDREN, window_id)])
        if reply is None:
            return []
        found.append(window_id)
        window_id = fields_in(reply, "4xI")[0]
    return found


def top_level(window_id: int) -> int:
    """The top-level window that contains a window; 0 when the window is gone."""
    with x_connection() as server:
        return [0, *containing_windows(server, window_id)][-1]


def is_same_program(requestor_id: int, window_id: int) -> bool:
    """Whether a window was made by the process of another one, which may have several connections; True where
    the server does not know that one's process, as a remote one's.

    Encoding: the extension X-Resource 1.2, QueryClientIds.
    """
    if is_same_client(requestor_id, window_id):
        return True
    with x_connection() as server:
        is_there, opcode = fields_in(server.ask([named(EXTENSION, "X-Resource")])[0], "BB")
        ids = (requestor_id, window_id) if is_there else ()
        replies = server.ask([request(opcode, 1, one, _ITS_PID, data=_QUERY_CLIENT_IDS) for one in ids])
    # no pid of a program that has ended, as xclip does at once
    pids = [struct.unpack_from("<I", one, 44)[0] if one and len(one) >= 48 else 0 for one in replies]
    return not is_there or not pids[1] or pids[0] == pids[1]


def app_with_window(window_id: int) -> str:
    """`Form (window 42)`, or only `window 42`, for an error's text."""
    with x_connection() as server:
        (reply,) = server.ask([property_of(window_id, _WM_CLASS)])
    names = texts_in(reply)
    return f"{clean_text(names[-1])} (window {window_id})" if names else f"window {window_id}"


def top_level_under_pointer() -> Optional[int]:
    """The top-level window under the pointer, 0 for the root window; None where that cannot be found out.

    xdotool's getmouselocation looks for a client in there, and prints 0 where it finds none that way.
    """
    try:
        with x_connection() as server:
            (reply,) = server.ask([request(POINTER, server.root_id)])
    except PeekabooError as e:
        if e.code is ErrorCode.CANCELLED:
            raise
        return None
    return fields_in(reply, "4xI")[0] if reply else None


def held_input() -> str:
    """`a mouse button` that is down (the wheel's are up again at once), `a modifier key`, or nothing."""
    with x_connection() as server:
        (reply,) = server.ask([request(POINTER, server.root_id)])
    (state,) = fields_in(reply, "16xH")
    return "a mouse button" if state & _BUTTON_BITS else "a modifier key" if state & _MODIFIER_BITS else ""


def is_keyboard_grabbed(server: XConnection) -> bool:
    """Whether a program has grabbed the keyboard, as an open menu does.

    It is asked for a window that is never mapped: such a grab fails always, and disturbs nobody.
    """
    window_id = server.resource_base
    server.send(request(NEW_WINDOW, window_id, server.root_id, 0, 1 << 16 | 1, _INPUT_ONLY << 16, 0, 0))
    (reply,) = server.ask([request(GRAB_KEYBOARD, window_id, 0, 1 << 8 | 1)])
    return reply is not None and reply[1] == _GRABBED_BY_ANOTHER


def physical_button(button: int) -> str:
    """The number to press for the button that programs see, which differ for whoever swapped them."""
    with x_connection() as server:
        (reply,) = server.ask([request(BUTTONS)])
    mapped = reply[32 : 32 + reply[1]] if reply else b""
    return str(mapped.index(button) + 1 if button in mapped else button)


def client_with_focus(server: XConnection) -> int:
    """The client that has the X input focus, or has the window that has it; 0 for none."""
    (reply,) = server.ask([request(FOCUS)])
    (focused_id,) = fields_in(reply, "I")
    if focused_id == 1:  # PointerRoot: the window under the pointer would get the keys
        return 0
    containing = containing_windows(server, focused_id)
    state = server.atoms(["WM_STATE"])["WM_STATE"]
    replies = server.ask([property_of(one, state) for one in containing])
    clients = [one for one, reply in zip(containing, replies) if numbers_in(reply)]
    return (clients or containing or [0])[0]

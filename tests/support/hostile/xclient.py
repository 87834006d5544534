"""A small X client that opens windows on demand and reports every press and key that reaches them.

python xclient.py: one JSON object a line on stdin ({"do": "open", "name": "a", ...}), one a line on stdout.
It speaks to Xlib by ctypes: no toolkit makes windows without a class, classless covers or focus thieves.
"""

from __future__ import annotations

import ctypes
import heapq
import json
import os
import select
import struct
import sys
import time
from typing import Any

_X = ctypes.CDLL("libX11.so.6")
for _name in ("XOpenDisplay", "XInternAtom", "XCreateWindow", "XDefaultRootWindow"):
    getattr(_X, _name).restype = ctypes.c_void_p if _name == "XOpenDisplay" else ctypes.c_ulong

_KEY_PRESS, _BUTTON_PRESS, _BUTTON_RELEASE = 2, 4, 5
_EVENTS = 1 | 4 | 8 | 1 << 15 | 1 << 17  # keys, buttons and their release, exposure, structure
_OVERRIDE_REDIRECT, _BACKGROUND, _EVENT_MASK = 1 << 9, 1 << 1, 1 << 11
_MODIFIER_KEYSYMS = range(0xFFE1, 0xFFEF)


class _Attributes(ctypes.Structure):
    _fields_ = [
        ("background_pixmap", ctypes.c_ulong),
        ("background_pixel", ctypes.c_ulong),
        ("border_pixmap", ctypes.c_ulong),
        ("border_pixel", ctypes.c_ulong),
        ("bit_gravity", ctypes.c_int),
        ("win_gravity", ctypes.c_int),
        ("backing_store", ctypes.c_int),
        ("backing_planes", ctypes.c_ulong),
        ("backing_pixel", ctypes.c_ulong),
        ("save_under", ctypes.c_int),
        ("event_mask", ctypes.c_long),
        ("do_not_propagate", ctypes.c_long),
        ("override_redirect", ctypes.c_int),
        ("colormap", ctypes.c_ulong),
        ("cursor", ctypes.c_ulong),
    ]


class _ClassHint(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_char_p)]


_HANDLER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


@_HANDLER
def _ignore_error(_display: Any, _event: Any) -> int:
    return 0  # a window that is gone already: Xlib's own handler would end the process


class XClient:
    def __init__(self) -> None:
        _X.XSetErrorHandler(_ignore_error)
        display = _X.XOpenDisplay(None)
        if not display:
            raise SystemExit("no display")
        self._display = ctypes.c_void_p(display)
        self._root = ctypes.c_ulong(_X.XDefaultRootWindow(self._display))
        self._ids: dict[str, int] = {}
        self._names: dict[int, str] = {}  # kept for ever: an event may come after the window's end
        self._later: list[tuple[float, int, dict[str, Any]]] = []
        self._count = 0

    def run(self) -> None:
        pending = b""
        while True:
            self._read_events()
            timeout = max(0.0, self._later[0][0] - time.monotonic()) if self._later else None
            readable = select.select([0, _X.XConnectionNumber(self._display)], [], [], timeout)[0]
            while self._later and self._later[0][0] <= time.monotonic():
                self._do(heapq.heappop(self._later)[2])
            if 0 in readable:
                data = os.read(0, 1 << 16)
                if not data:
                    return
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    self._take(json.loads(line))

    def _take(self, order: dict[str, Any]) -> None:
        if order.get("after"):
            self._count += 1
            heapq.heappush(self._later, (time.monotonic() + order["after"], self._count, order))
        else:
            self._do(order)

    def _do(self, order: dict[str, Any]) -> None:
        if order["do"] == "forget":  # what is still to come is not to come
            self._later.clear()
        elif order["do"] == "open":
            self._open(**{key: value for key, value in order.items() if key not in ("do", "after")})
        elif order["do"] != "sync":
            window = ctypes.c_ulong(self._ids.get(order["name"], 0))
            getattr(self, f"_{order['do']}")(window, order)
        _X.XSync(self._display, 0)
        self._read_events()
        held = self._held_keys() if order["do"] == "sync" else 0
        self._say(
            event="done", do=order["do"], name=order.get("name", ""), number=order.get("number", 0), held=held
        )

    def _held_keys(self) -> int:
        """How many keys and buttons the X server believes to be down."""
        keys = ctypes.create_string_buffer(32)
        _X.XQueryKeymap(self._display, keys)
        ids, places, mask = (ctypes.c_ulong * 2)(), (ctypes.c_int * 4)(), ctypes.c_uint()
        ids_at, places_at = ctypes.addressof(ids), ctypes.addressof(places)
        _X.XQueryPointer(
            self._display, self._root,
            *(ctypes.c_void_p(ids_at + n * ctypes.sizeof(ctypes.c_ulong)) for n in range(2)),
            *(ctypes.c_void_p(places_at + n * ctypes.sizeof(ctypes.c_int)) for n in range(4)),
            ctypes.byref(mask),
        )  # fmt: skip
        return sum(bin(one).count("1") for one in keys.raw) + bin(mask.value >> 8 & 0x1F).count("1")

    def _open(
        self,
        name: str,
        x: int,
        y: int,
        w: int,
        h: int,
        popup: bool = False,
        app: str = "",
        title: str = "",
        number: int = 0,
        color: int = 0xFFFFFF,
        pid: bool = True,
        takes_focus: bool = False,
    ) -> None:
        attributes = _Attributes(background_pixel=color, event_mask=_EVENTS, override_redirect=int(popup))
        window = ctypes.c_ulong(
            _X.XCreateWindow(
                self._display,
                self._root,
                x,
                y,
                w,
                h,
                0,
                0,
                1,
                None,
                ctypes.c_ulong(_BACKGROUND | _EVENT_MASK | _OVERRIDE_REDIRECT),
                ctypes.byref(attributes),
            )
        )
        self._ids[name], self._names[window.value or 0] = window.value or 0, name
        if title or not popup:
            _X.XStoreName(self._display, window, (title or name).encode())
        if app:
            _X.XSetClassHint(
                self._display, window, ctypes.byref(_ClassHint(app.lower().encode(), app.encode()))
            )
        # USPosition and USSize: the window manager takes the place as it is
        self._set(window, b"WM_NORMAL_HINTS", 41, (3, x, y, w, h, *[0] * 13))
        if pid:
            self._set(window, b"_NET_WM_PID", 6, (os.getpid(),))
        _X.XMapRaised(self._display, window)
        if takes_focus:
            _X.XSync(self._display, 0)
            self._focus(window, {})
        self._say(event="opened", name=name, id=window.value, number=number)

    def _set(self, window: Any, name: bytes, kind: int, values: tuple[int, ...]) -> None:
        """A property of 32-bit numbers; kind: the atom of its type."""
        atom = ctypes.c_ulong(_X.XInternAtom(self._display, name, 0))
        data = (ctypes.c_long * len(values))(*values)
        _X.XChangeProperty(self._display, window, atom, ctypes.c_ulong(kind), 32, 0, data, len(values))

    def _move(self, window: Any, order: dict[str, Any]) -> None:
        _X.XMoveWindow(self._display, window, order["x"], order["y"])

    def _resize(self, window: Any, order: dict[str, Any]) -> None:
        _X.XResizeWindow(self._display, window, order["w"], order["h"])

    def _close(self, window: Any, order: dict[str, Any]) -> None:
        if self._ids.pop(order["name"], None):
            _X.XDestroyWindow(self._display, window)

    def _raise(self, window: Any, _order: dict[str, Any]) -> None:
        _X.XRaiseWindow(self._display, window)

    def _focus(self, window: Any, _order: dict[str, Any]) -> None:
        _X.XSetInputFocus(self._display, window, 1, ctypes.c_ulong(0))

    def _read_events(self) -> None:
        event = ctypes.create_string_buffer(192)
        while _X.XPending(self._display):
            _X.XNextEvent(self._display, event)
            kind = struct.unpack_from("@i", event)[0]
            if kind not in (_KEY_PRESS, _BUTTON_PRESS, _BUTTON_RELEASE):
                continue
            name = self._names.get(struct.unpack_from("@L", event, 32)[0], "?")
            x, y, root_x, root_y, state, code = struct.unpack_from("@4i2I", event, 64)
            if kind in (_BUTTON_PRESS, _BUTTON_RELEASE):
                what = "press" if kind == _BUTTON_PRESS else "release"
                self._say(
                    event=what, name=name, x=x, y=y, root_x=root_x, root_y=root_y, button=code, state=state
                )
            else:
                text, keysym = ctypes.create_string_buffer(16), ctypes.c_ulong()
                length = _X.XLookupString(event, text, 16, ctypes.byref(keysym), None)
                if keysym.value not in _MODIFIER_KEYSYMS:
                    said = text.raw[:length].decode("latin-1")
                    self._say(event="key", name=name, text=said, state=state, keysym=keysym.value)

    def _say(self, **what: Any) -> None:
        sys.stdout.write(json.dumps({**what, "at": time.monotonic()}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    XClient().run()

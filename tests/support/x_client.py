"""An X client that opens windows on demand and reports every press and key that they receive.

Reads a JSON object per line from stdin ({"do": "open", "name": "a", ...}) and writes one per line to stdout.
It calls Xlib by ctypes, because no toolkit makes windows without a class or windows that steal the focus.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import struct
import time
from typing import Any, Union

_X = ctypes.CDLL("libX11.so.6")
_X.XOpenDisplay.restype = ctypes.c_void_p
for _name in ("XInternAtom", "XCreateWindow", "XDefaultRootWindow"):
    getattr(_X, _name).restype = ctypes.c_ulong

_CALLS = {
    "move": ("XMoveWindow", "x", "y"),
    "resize": ("XResizeWindow", "w", "h"),
    "raise": ("XRaiseWindow",),
    "close": ("XDestroyWindow",),
}
_REPORTED = {2: "key", 4: "press", 5: "release"}
_KEY_PRESS = 1
_EVENTS = _KEY_PRESS | 4 | 8 | 1 << 15 | 1 << 17  # keys, buttons and their release, exposure, structure
_MASK = 1 << 1 | 1 << 9 | 1 << 11  # background pixel, override-redirect, event mask
_ATOM, _CARDINAL, _WM_HINTS, _WM_SIZE_HINTS = 4, 6, 35, 41  # atoms of Xatom.h
_MODIFIER_KEYSYMS = range(0xFFE1, 0xFFEF)
_CORE_KEYBOARD, _ANY_MODIFIER, _ASYNCHRONOUS = 0x100, 1 << 15, 1


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def _ignore_error(_display: Any, _event: Any) -> int:
    return 0  # the window may be closed; Xlib's default handler would end the process


class XClient:
    def __init__(self) -> None:
        _X.XSetErrorHandler(_ignore_error)
        display = _X.XOpenDisplay(None)
        if not display:
            raise SystemExit("no display")
        self._display = ctypes.c_void_p(display)
        self._root = ctypes.c_ulong(_X.XDefaultRootWindow(self._display))
        self._ids: dict[str, int] = {"root": self._root.value, "pointer root": 1}
        self._names: dict[int, str] = {}  # never removed: an event may come after the window closes

    def run(self) -> None:
        pending = b""
        while True:
            self._read_events()
            readable = select.select([0, _X.XConnectionNumber(self._display)], [], [])[0]
            if 0 in readable:
                data = os.read(0, 1 << 16)
                if not data:
                    return
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    self._do(**json.loads(line))

    def _do(self, do: str, name: str, number: int, **order: Any) -> None:
        window = ctypes.c_ulong(self._ids.get(name, 0))
        if do == "open":
            self._open(name, **order)
        elif do == "focus":
            _X.XSetInputFocus(self._display, window, 1, ctypes.c_ulong(0))
        elif do == "property":
            self._set(window, order["property"].encode(), _ATOM, *order["values"])
        elif do == "controls":  # of the XKB extension: slow keys are 2, bounce keys 4, sticky keys 8
            bits = (ctypes.c_uint(order[key]) for key in ("affected", "on"))
            _X.XkbChangeEnabledControls(self._display, _CORE_KEYBOARD, *bits)
        elif do == "grab":
            code = _X.XKeysymToKeycode(self._display, ctypes.c_ulong(order["keysym"]))
            how = (0, _ASYNCHRONOUS, _ASYNCHRONOUS)
            _X.XGrabKey(self._display, code, _ANY_MODIFIER, self._root, *how)
        elif do == "grab keyboard":
            how = (0, _ASYNCHRONOUS, _ASYNCHRONOUS, ctypes.c_ulong(0))
            _X.XGrabKeyboard(self._display, window, *how)
        elif do == "grab pointer":
            how = (4, _ASYNCHRONOUS, _ASYNCHRONOUS, *[ctypes.c_ulong(0)] * 3)  # 4: presses
            _X.XGrabPointer(self._display, window, 0, *how)
        elif do in _CALLS:
            function, *keys = _CALLS[do]
            getattr(_X, function)(self._display, window, *(order[key] for key in keys))
        _X.XSync(self._display, 0)
        self._read_events()
        self._report("done", name, number=number, held=self._held_keys() if do == "sync" else 0)

    def _held_keys(self) -> int:
        """Return the number of keys and buttons that the X server reports as held."""
        keys = ctypes.create_string_buffer(32)
        _X.XQueryKeymap(self._display, keys)
        slots = (ctypes.c_ulong * 7)()  # root, child, two points, mask
        _X.XQueryPointer(self._display, self._root, *(ctypes.byref(slots, 8 * n) for n in range(7)))
        return sum(bin(byte).count("1") for byte in keys.raw) + bin(slots[6] >> 8 & 0x1F).count("1")

    def _open(
        self, name: str, x: int, y: int, w: int, h: int, popup: bool = False, app: str = "", title: str = "",
        pid: bool = True, inside: int = 0, border: int = 0, input_only: bool = False,
        takes_keys: bool = True, input_hint: bool = True,
    ) -> None:  # fmt: skip
        """inside: the id of a window, of any program, that contains the new one."""
        # XSetWindowAttributes: the second is the background, then the event mask and override-redirect
        events = _EVENTS if takes_keys else _EVENTS - _KEY_PRESS
        attributes = struct.pack("@4L3i2Li2li2L", 0, 0xFFFFFF, *[0] * 8, events, 0, popup, 0, 0)
        parent = ctypes.c_ulong(inside) if inside else self._root
        number = _X.XCreateWindow(
            self._display, parent, x, y, w, h, border, 0, 1 + input_only, None,
            ctypes.c_ulong(_MASK - 2 * input_only), attributes,
        )  # fmt: skip
        window = ctypes.c_ulong(number)
        self._ids[name], self._names[number] = number, name
        if title or not popup:
            _X.XStoreName(self._display, window, (title or name).encode())
        if app:
            _X.XSetClassHint(self._display, window, (ctypes.c_char_p * 2)(app.lower().encode(), app.encode()))
        # USPosition and USSize: the window manager keeps position and size
        self._set(window, b"WM_NORMAL_HINTS", _WM_SIZE_HINTS, 3, x, y, w, h, *[0] * 13)
        self._set(window, b"WM_HINTS", _WM_HINTS, 1, input_hint, *[0] * 7)
        if pid:
            self._set(window, b"_NET_WM_PID", _CARDINAL, os.getpid())
        _X.XMapRaised(self._display, window)
        self._report("opened", name, id=number)

    def _set(self, window: Any, name: bytes, kind: int, *values: Union[int, str]) -> None:
        """Set a property of 32-bit numbers, or of names of atoms; kind: the atom of its type."""
        atom = ctypes.c_ulong(_X.XInternAtom(self._display, name, 0))
        numbers = [n if isinstance(n, int) else _X.XInternAtom(self._display, n.encode(), 0) for n in values]
        data = (ctypes.c_long * len(values))(*numbers)
        _X.XChangeProperty(self._display, window, atom, ctypes.c_ulong(kind), 32, 0, data, len(values))

    def _read_events(self) -> None:
        event = ctypes.create_string_buffer(192)
        while _X.XPending(self._display):
            _X.XNextEvent(self._display, event)
            what = _REPORTED.get(struct.unpack_from("@i", event)[0])
            if not what:
                continue
            name = self._names.get(struct.unpack_from("@L", event, 32)[0], "?")
            if what != "key":
                x, y = struct.unpack_from("@2i", event, 64)
                self._report(what, name, x=x, y=y)
                continue
            text, keysym = ctypes.create_string_buffer(16), ctypes.c_ulong()
            length = _X.XLookupString(event, text, 16, ctypes.byref(keysym), None)
            if keysym.value not in _MODIFIER_KEYSYMS:
                self._report("key", name, text=text.raw[:length].decode("latin-1"))

    def _report(self, event: str, name: str, **more: Any) -> None:
        print(json.dumps({"event": event, "name": name, **more, "at": time.monotonic()}), flush=True)


if __name__ == "__main__":
    XClient().run()

"""The fake /usr/sbin/screencapture: flags, exit codes and messages of the fact sheet A1 to A8."""

from __future__ import annotations

import os
import re
import struct
from typing import Any, Optional

from .drawing import draw_one_window, draw_region
from .jpeg import jpeg_bytes
from .pictures import Picture
from .png import png_bytes
from .programs import Exit, hang
from .windows import active_displays, display_of, family_of, is_on_screen, overlap, window_with_id
from .world import Folder, State, post, settle

# -x (no sound), -a (without attached windows), -o (without a shadow), -l (a window), -R (a rectangle),
# -D (a display), -t (the file's type, whatever its name is: facts A7)
ARGUMENTS = (
    r"-x(?P<a> -a)?(?P<o> -o)?( -l (?P<l>\d+)| -R (?P<R>[-\d,]+)| -D (?P<D>\d+))?"
    r"( -t (?P<t>png|jpg|bmp))? (?P<file>[^-].*)"
)
USAGE = "usage: screencapture [-icMPmwsWxSCUtoa] [files]"

Flags = dict[str, Optional[str]]


def main(folder: Folder, state: State, argv: list[str]) -> int:
    words = re.fullmatch(ARGUMENTS.replace(" ", "\0"), "\0".join(argv), re.DOTALL)
    if words is None:
        raise Exit(1, f"screencapture: illegal option in {argv}\n{USAGE}")
    flags = words.groupdict()
    check_session(folder, state, flags)
    if any(trigger["on"].get("program") == "screencapture" for trigger in state["triggers"]):
        post(folder, {"do": "started", "program": "screencapture"})
        state = settle(folder)
    noise = os.urandom(1)[0] % 3 if state["switches"]["edges_differ"] else 0
    save(captured(state, flags), flags["t"] or "png", flags["file"], noise)
    return 0


def bmp_bytes(picture: Picture, noise: int) -> bytes:
    """Write 24 bits per pixel, bottom row first, rows padded to four bytes. noise: the edges are that many
    times 50 darker, and each pixel that many levels brighter.
    """
    pad = -3 * picture.width % 4
    data = b""
    for count, row in reversed(picture.bands):
        swapped = bytearray(row)
        swapped[0::3], swapped[2::3] = row[2::3], row[0::3]
        if noise:
            swapped = bytearray(min(255, level + noise) for level in swapped)
            swapped[:6] = swapped[-6:] = bytes(max(0, level - 50 * noise) for level in swapped[:6])
        data += (bytes(swapped) + bytes(pad)) * count
    sizes = struct.pack(
        "<IiiHHIIiiII", 40, picture.width, picture.height, 1, 24, 0, len(data), 2835, 2835, 0, 0
    )
    return b"BM" + struct.pack("<IHHI", 54 + len(data), 0, 0, 54) + sizes + data


def check_session(folder: Folder, state: State, flags: Flags) -> None:
    permission, session = state["permissions"]["screen_recording"], state["session"]
    if permission == "not_asked":
        hang(folder, state)  # the capture blocks behind the consent dialog (facts 6.3.5)
    is_refused = permission in ("denied", "stale") and state["system"]["era"] == "error"
    if is_refused or session["locked"] or session["on_console"] is False or not session["gui"]:
        subject = "window" if flags["l"] else "rect" if flags["R"] else "display"
        raise Exit(1, f"could not create image from {subject}")


def captured(state: State, flags: Flags) -> Picture:
    if flags["l"]:
        return window_picture(state, flags)
    if flags["R"]:
        return rect_picture(state, flags["R"])
    displays = active_displays(state)
    display = chosen_display(state, int(flags["D"] or 1), displays)
    return draw_region(state, display["bounds"], display["scale"])


def chosen_display(state: State, number: int, displays: list[dict[str, Any]]) -> dict[str, Any]:
    """Find the display of -D, which counts active displays from 1; an id fails (facts A2, A6)."""
    if not 1 <= number <= len(displays):
        known = f"{len(displays)} display{'s' if len(displays) > 1 else ''}"
        raise Exit(1, f"Invalid display specified. Only {known} available.")
    if state["switches"]["display_order"] == "reversed":
        displays = [displays[0], *reversed(displays[1:])]
    return displays[number - 1]


def rect_picture(state: State, words: str) -> Picture:
    """Read points from the main display's top left; pixels are points times that display's scale (A5)."""
    rect = [int(value) for value in words.split(",")]
    is_seen = any(overlap(rect, display["bounds"]) for display in active_displays(state))
    if rect[2] <= 0 or rect[3] <= 0 or not is_seen:
        raise Exit(1, "could not create image from rect")
    return draw_region(state, rect, display_of(state, rect)["scale"])


def is_closed_or_protected(state: State, window: dict[str, Any]) -> bool:
    is_honoured = state["switches"]["window_sharing"] == "honoured"
    return bool(window.get("closing")) or (is_honoured and window.get("sharing") == "none")


def window_picture(state: State, flags: Flags) -> Picture:
    window = window_with_id(state, int(flags["l"] or 0))
    if window is None or not is_on_screen(state, window) or is_closed_or_protected(state, window):
        # The same for unknown, minimised, hidden, closing and protected windows, or another Space (facts A2).
        raise Exit(1, "could not create image from window")
    family = [window] if flags["a"] else family_of(state, window)
    scale = display_of(state, window["bounds"])["scale"]
    return draw_one_window(state, window, family, scale, not flags["o"])


def save(picture: Picture, kind: str, target: str, noise: int) -> None:
    if kind == "bmp":
        data = bmp_bytes(picture, noise)
    else:
        data = png_bytes(picture) if kind == "png" else jpeg_bytes(picture)
    # the behaviour without the folder is unknown; here it writes and prints nothing
    if os.path.isdir(os.path.dirname(os.path.abspath(target))):
        with open(target, "wb") as stream:
            stream.write(data)


PROGRAMS = {"screencapture": main}

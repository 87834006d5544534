"""The fake /usr/sbin/screencapture: flags, exit codes and messages of the fact sheet A1 to A8."""

from __future__ import annotations

import os
import struct
from typing import Any

from .drawing import draw_one_window, draw_region
from .jpeg import jpeg_bytes
from .pictures import Picture
from .png import png_bytes
from .programs import Exit, hang
from .windows import active_displays, display_of, family_of, is_on_screen, overlap, window_with_id
from .world import Folder, State, granted, post, settle

VALUED = "DtlR"
PLAIN = "xoa"
WAITING = "iwWsJvV"  # they wait for a person (facts 6.3.11)
# the first lines; -I was removed (A1)
USAGE = """usage: screencapture [-icMPmwsWxSCUtoa] [files]
  -c         force screen capture to go to the clipboard
"""

Flags = dict[str, str]


def main(folder: Folder, state: State, argv: list[str]) -> int:
    flags, files = parsed(folder, argv)
    if any(flag in flags for flag in WAITING):
        hang(folder, state)
    if not files:
        raise Exit(1, "screencapture: no file specified")
    if "x" not in flags:
        post(folder, {"do": "note", "kind": "sound", "what": {"program": "screencapture"}})
    check_session(folder, state, flags)
    if any(trigger["on"].get("program") == "screencapture" for trigger in state["triggers"]):
        post(folder, {"do": "started", "program": "screencapture"})
        state = settle(folder)
    noise = os.urandom(1)[0] % 3 if state["switches"]["edges_differ"] else 0
    for picture, target in zip(pictures(state, flags, len(files)), files):
        save(picture, flags.get("t", "png"), target, noise)
    return 0


def parsed(folder: Folder, argv: list[str]) -> tuple[Flags, list[str]]:
    """Parse like getopt: values joined or separate; the first non-flag ends the flags (facts 6.3.14)."""
    flags: Flags = {}
    words = list(argv)
    while words and words[0].startswith("-"):
        word = words.pop(0)[1:]
        while word:
            letter, word = word[0], word[1:]
            if letter in VALUED:
                flags[letter], word = word or words.pop(0), ""
            elif letter in PLAIN + WAITING:
                flags[letter] = ""
            else:
                raise Exit(1, f"screencapture: illegal option -- {letter}\n{USAGE}")
    for late in [word for word in words if word.startswith("-")]:
        # To a Mac these are file names; here nothing is written into the working folder for a mistake.
        why = f"screencapture: {late} comes after a file name, so it is one"
        post(folder, {"do": "note", "kind": "strict", "what": {"why": why}})
    return flags, [word for word in words if not word.startswith("-")]


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
    permission, session = granted(state, "screen_recording"), state["session"]
    if permission == "not_asked":
        hang(folder, state)  # the capture blocks behind the consent dialog (facts 6.3.5)
    is_refused = permission in ("denied", "stale") and state["system"]["era"] == "error"
    if is_refused or session["locked"] or session["on_console"] is False or not session["gui"]:
        subject = "window" if "l" in flags else "rect" if "R" in flags else "display"
        raise Exit(1, f"could not create image from {subject}")


def pictures(state: State, flags: Flags, files: int) -> list[Picture]:
    if "l" in flags:  # -R does not combine with -l (facts A4)
        return [window_picture(state, flags)]
    if "R" in flags:
        return [rect_picture(state, flags["R"])]
    displays = active_displays(state)
    wanted = [chosen_display(state, flags["D"], displays)] if "D" in flags else displays[:files]
    return [draw_region(state, display["bounds"], display["scale"]) for display in wanted]


def chosen_display(state: State, text: str, displays: list[dict[str, Any]]) -> dict[str, Any]:
    """Find the display of -D, which counts active displays from 1; a CGDirectDisplayID fails (facts A2,
    A6).
    """
    if not text.isdigit() or not 1 <= int(text) <= len(displays):
        known = f"{len(displays)} display{'s' if len(displays) > 1 else ''}"
        raise Exit(1, f"Invalid display specified. Only {known} available.")
    if state["switches"]["display_order"] == "reversed":
        displays = [displays[0], *reversed(displays[1:])]
    return displays[int(text) - 1]


def rect_picture(state: State, words: str) -> Picture:
    """Read points from the main display's top left; pixels are points times that display's scale (A5)."""
    rect = [round(float(value)) for value in words.split(",")]
    is_seen = any(overlap(rect, display["bounds"]) for display in active_displays(state))
    if rect[2] <= 0 or rect[3] <= 0 or not is_seen:
        raise Exit(1, "could not create image from rect")
    return draw_region(state, rect, display_of(state, rect)["scale"])


def is_closed_or_protected(state: State, window: dict[str, Any]) -> bool:
    is_honoured = state["switches"]["window_sharing"] == "honoured"
    return bool(window.get("closing")) or (is_honoured and window.get("sharing") == "none")


def window_picture(state: State, flags: Flags) -> Picture:
    window = window_with_id(state, int(flags["l"]))
    if window is None or not is_on_screen(state, window) or is_closed_or_protected(state, window):
        # The same for unknown, minimised, hidden, closing and protected windows, or another Space (facts A2).
        raise Exit(1, "could not create image from window")
    family = [window] if "a" in flags else family_of(state, window)
    scale = display_of(state, window["bounds"])["scale"]
    return draw_one_window(state, window, family, scale, "o" not in flags)


def save(picture: Picture, kind: str, target: str, noise: int = 0) -> None:
    """Return the file type, which -t decides, not the file's name (facts A7)."""
    if kind not in ("png", "jpg", "bmp"):
        names = "png, jpg, bmp, pdf, tiff"
        raise Exit(1, f"fakemac: -t {kind} is not simulated; the names used on Macs are {names}")
    if kind == "bmp":
        data = bmp_bytes(picture, noise)
    else:
        data = png_bytes(picture) if kind == "png" else jpeg_bytes(picture)
    # the behaviour without the folder is unknown; here it writes and prints nothing
    if os.path.isdir(os.path.dirname(os.path.abspath(target))):
        with open(target, "wb") as stream:
            stream.write(data)


PROGRAMS = {"screencapture": main}

"""The fake /usr/sbin/screencapture: flags, exit codes and words of the fact sheet A1 to A8."""

from __future__ import annotations

import os
import struct
import time
from typing import Any, Optional

from .drawing import draw_one_window, draw_region
from .jpeg import jpeg_bytes
from .pictures import Picture
from .png import png_bytes
from .programs import Exit, hang
from .windows import active_displays, display_of, is_on_screen, overlap, sheet_of, window_with_id
from .world import Folder, State, granted, post, settle

VALUED = "BDJtTlRVG"
PLAIN = "cbCdimoMPsSwWxarvgkUupH"  # -I was removed (A1)
USAGE = """usage: screencapture [-icMPmwsWxSCUtoa] [files]
  -c         force screen capture to go to the clipboard
  -C         capture the cursor as well as the screen. only in non-interactive modes
  -i         capture screen interactively, by selection or window
  -m         only capture the main monitor, undefined if -i is set
  -D<display> screen capture or record from the display specified. -D 1 is main display, -D 2 secondary, etc.
  -o         in window capture mode, do not capture the shadow of the window
  -t<format> image format to create, default is png (other options include pdf, jpg, tiff and other formats)
  -T<seconds> Take the picture after a delay of <seconds>, default is 5
  -x         do not play sounds
  -a         do not include windows attached to selected windows
  -r         do not add dpi meta data to image
  -l<windowid> capture this windowsid
  -R<x,y,w,h> capture screen rect
  files   where to save the screen capture, 1 file per screen
"""

Flags = dict[str, str]


def main(folder: Folder, state: State, argv: list[str]) -> int:
    flags, files = parsed(folder, argv)
    if any(flag in flags for flag in "iwWsJvV"):
        hang(folder, state)  # they wait for a person (facts 6.3.11)
    if "p" in flags or "u" in flags or "M" in flags or "P" in flags:
        return 0  # the file argument is ignored (A1)
    if not files and "c" not in flags:
        raise Exit(1, "screencapture: no file specified")
    if "T" in flags:
        time.sleep(float(flags["T"]))
    if "x" not in flags:
        post(folder, {"do": "note", "kind": "sound", "what": {"program": "screencapture"}})
    check_session(folder, state, flags)
    if any(trigger["on"].get("program") == "screencapture" for trigger in state["triggers"]):
        post(folder, {"do": "started", "program": "screencapture"})
        state = settle(folder)
    for picture, target in zip(pictures(state, flags, len(files)), files or [None]):
        save(folder, state, picture, flags, target)
    return 0


def parsed(folder: Folder, argv: list[str]) -> tuple[Flags, list[str]]:
    """getopt: a value joined or separate, the first word that is no flag ends the flags (facts 6.3.14)."""
    flags: Flags = {}
    words = list(argv)
    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)[1:]
        if word == "-":
            break
        while word:
            letter, word = word[0], word[1:]
            if letter in VALUED:
                if not word and not words:
                    raise Exit(1, f"screencapture: option requires an argument -- {letter}\n{USAGE}")
                flags[letter] = word or words.pop(0)
                word = ""
            elif letter in PLAIN:
                flags[letter] = ""
            else:
                raise Exit(1, f"screencapture: illegal option -- {letter}\n{USAGE}")
    for late in [word for word in words if word.startswith("-")]:
        # To a Mac these are file names; here nothing is written into the working folder for a mistake.
        post(
            folder,
            {
                "do": "note",
                "kind": "strict",
                "what": {"why": f"screencapture: {late} comes after a file name, so it is one"},
            },
        )
    return flags, [word for word in words if not word.startswith("-")]


def bmp_bytes(picture: Picture) -> bytes:
    """24 bits a pixel, bottom row first, rows padded to four bytes."""
    pad = -3 * picture.width % 4
    rows = [picture.row(y) for y in reversed(range(picture.height))]
    bgr = []
    for row in rows:
        swapped = bytearray(row)
        swapped[0::3], swapped[2::3] = row[2::3], row[0::3]
        bgr.append(bytes(swapped) + bytes(pad))
    data = b"".join(bgr)
    sizes = struct.pack(
        "<IiiHHIIiiII", 40, picture.width, picture.height, 1, 24, 0, len(data), 2835, 2835, 0, 0
    )
    return b"BM" + struct.pack("<IHHI", 54 + len(data), 0, 0, 54) + sizes + data


def subject(flags: Flags) -> str:
    return "window" if "l" in flags else "rect" if "R" in flags else "display"


def check_session(folder: Folder, state: State, flags: Flags) -> None:
    permission = granted(state, "screen_recording")
    if permission == "not_asked":
        hang(folder, state)  # the capture blocks behind the consent dialog (facts 6.3.5)
    error_era = permission == "denied" and state["system"]["era"] == "error"
    if error_era or _is_hidden(state["session"]):
        raise Exit(1, f"could not create image from {subject(flags)}")


def _is_hidden(session: dict[str, Any]) -> bool:
    """Locked, behind another user's session, or none at all."""
    return bool(session["locked"] or session["on_console"] is False or not session["gui"])


def pictures(state: State, flags: Flags, files: int) -> list[Picture]:
    permitted = granted(state, "screen_recording") == "granted"
    if "l" in flags:  # -R does not combine with -l (facts A4)
        return [window_picture(state, flags, permitted)]
    if "R" in flags:
        return [rect_picture(state, flags, permitted)]
    displays = active_displays(state)
    if "D" in flags:
        return [display_picture(state, chosen_display(state, flags["D"], displays), flags, permitted)]
    wanted = displays[:1] if "m" in flags else displays[: max(files, 1)]
    return [display_picture(state, display, flags, permitted) for display in wanted]


def chosen_display(state: State, text: str, displays: list[dict[str, Any]]) -> dict[str, Any]:
    """-D is 1-based over the active displays; a CGDirectDisplayID is not accepted (facts A2, A6)."""
    if not text.isdigit() or not 1 <= int(text) <= len(displays):
        raise Exit(
            1,
            f"Invalid display specified. Only {len(displays)} display{'s' if len(displays) > 1 else ''} available.",  # noqa: E501
        )
    if state["switches"]["display_order"] == "reversed":
        displays = [displays[0], *reversed(displays[1:])]
    return displays[int(text) - 1]


def dpi_of(flags: Flags, scale: float) -> Optional[int]:
    return None if "r" in flags else round(72 * scale)


def display_picture(state: State, display: dict[str, Any], flags: Flags, permitted: bool) -> Picture:
    return draw_region(
        state, display["bounds"], display["scale"], dpi_of(flags, display["scale"]), permitted, "C" in flags
    )


def rect_picture(state: State, flags: Flags, permitted: bool) -> Picture:
    """Points, global, origin top left of the main display; pixels are points times that display's scale (facts A5)."""  # noqa: E501
    try:
        rect = [round(float(value)) for value in flags["R"].split(",")]
    except ValueError:
        rect = []
    if (
        len(rect) != 4
        or rect[2] <= 0
        or rect[3] <= 0
        or not any(overlap(rect, display["bounds"]) for display in active_displays(state))
    ):
        raise Exit(1, "could not create image from rect")
    scale = display_of(state, rect)["scale"]
    return draw_region(state, rect, scale, dpi_of(flags, scale), permitted, "C" in flags)


def window_picture(state: State, flags: Flags, permitted: bool) -> Picture:
    window = window_with_id(state, int(flags["l"])) if flags["l"].isdigit() else None
    if (
        window is None
        or not is_on_screen(state, window)
        or window.get("closing")
        or window.get("sharing") == "none"
    ):
        # The same words for unknown, minimised, other Space, hidden, closing and protected windows (facts A2).  # noqa: E501
        raise Exit(1, "could not create image from window")
    sheet = sheet_of(state, window)
    attached = [sheet] if sheet is not None and "a" not in flags else []
    scale = display_of(state, window["bounds"])["scale"]
    return draw_one_window(state, window, attached, scale, dpi_of(flags, scale), "o" not in flags, permitted)


def save(folder: Folder, state: State, picture: Picture, flags: Flags, target: Optional[str]) -> None:
    grain = int(picture.width * picture.height * state["switches"]["bytes_per_pixel"])
    picture = Picture(picture.width, picture.height, picture.bands, picture.labels, picture.dpi, grain)
    kind = flags.get("t", "png")  # -t decides, not the file's name (facts A7)
    if kind not in ("png", "jpg", "bmp"):
        raise Exit(
            1, f"fakemac: -t {kind} is not simulated; the names used on Macs are png, jpg, bmp, pdf, tiff"
        )
    data = {"png": png_bytes, "jpg": jpeg_bytes, "bmp": bmp_bytes}[kind](picture)
    if os.path.isdir(
        os.path.dirname(os.path.abspath(str(target)))
    ):  # what happens without the folder is not known; here nothing is written and nothing said
        with open(str(target), "wb") as stream:
            stream.write(data)


PROGRAMS = {"screencapture": main}

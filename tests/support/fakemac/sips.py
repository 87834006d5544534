"""The fake /usr/bin/sips: another size, another format (the fact sheet F)."""

from __future__ import annotations

import os
import re

from .jpeg import jpeg_bytes
from .picture_files import read_picture
from .pictures import NotAPicture, resized
from .png import png_bytes
from .programs import Exit
from .world import Folder, State

# the height is first, the format is `jpeg`, not `jpg`, and the quality is 0 to 100 (facts F)
ARGUMENTS = (
    r"-z ([1-9]\d*) ([1-9]\d*)( -s format (jpeg|png)( -s formatOptions (\d\d?|100))?)? (.+) --out (.+)"
)


def main(folder: Folder, state: State, argv: list[str]) -> int:
    words = re.fullmatch(ARGUMENTS.replace(" ", "\0"), "\0".join(argv), re.DOTALL)
    if words is None:
        raise Exit(1, f"fakemac: only `sips {ARGUMENTS}` is simulated")
    height, width, _, kind, _, _, source, target = words.groups()
    try:
        picture = resized(read_picture(source), int(width), int(height))
    except (OSError, NotAPicture):
        # Its exit code on unreadable input is not reliable (facts F), so here it is the misleading one.
        raise Exit(
            0, f"Warning: {source} not a valid file - skipping\nError 4: no file was specified"
        ) from None
    if not os.path.isdir(os.path.dirname(os.path.abspath(target))):
        raise Exit(13, f"Error 13: an unknown error occurred\n  {target}")
    with open(target, "wb") as stream:
        stream.write(jpeg_bytes(picture) if kind == "jpeg" else png_bytes(picture))
    print(f"{source}\n  {target}")
    return 0


PROGRAMS = {"sips": main}

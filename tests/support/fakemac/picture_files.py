"""Read a picture file, whatever it is."""

from __future__ import annotations

from .jpeg import read_jpeg
from .pictures import NotAPicture, Picture
from .png import PNG_MAGIC, read_png
from .world import Folder


def read_picture(path: Folder) -> Picture:
    with open(path, "rb") as stream:
        data = stream.read()
    if data.startswith(PNG_MAGIC):
        return read_png(data)
    if data.startswith(b"\xff\xd8\xff"):
        return read_jpeg(data)
    raise NotAPicture(f"{path} is neither PNG nor JPEG")

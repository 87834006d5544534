"""A fake Mac: programs that answer like a Mac's, acting on one simulated desktop (README.md)."""

from __future__ import annotations

from typing import Any

COLOURS = ("MENU_BAR", "SHADOW", "WALLPAPER", "shape_colour", "widget_colour", "window_colour")
PUBLIC = ("FakeMac", "default_desktop", "image_size", "labels", "pixel", *COLOURS)


def __getattr__(name: str) -> Any:
    # Lazily, because every fake program imports this package too and must start fast.
    if name not in PUBLIC:
        raise AttributeError(name)
    from . import fakemac

    return getattr(fakemac, name)

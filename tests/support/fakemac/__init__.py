"""A fake Mac: programs that answer like a Mac's, acting on one simulated desktop. README.md says how to use it."""  # noqa: E501

from __future__ import annotations

from typing import Any

PUBLIC = (
    "FakeMac",
    "window_colour",
    "widget_colour",
    "shape_colour",
    "WALLPAPER",
    "MENU_BAR",
    "SHADOW",
    "pixel",
    "image_size",
    "labels",
    "default_desktop",
)


def __getattr__(name: str) -> Any:
    # Lazily, because every fake program imports this package too and must start fast.
    if name not in PUBLIC:
        raise AttributeError(name)
    from . import fakemac

    return getattr(fakemac, name)

"""The images that results link to, as MCP resources while they live."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Optional

from ..core.models import ImageInfo
from .images import sniff_image

_LARGEST_BYTES = 7_500_000  # clients end the connection at 16 MB a message; base64 adds a third


class MadeImages:
    """The images that this process made. A URI from outside is looked up among them, never opened."""

    def __init__(self) -> None:
        self._paths: dict[str, Path] = {}

    def add(self, paths: Iterable[Path]) -> None:
        self._paths.update((path.as_uri(), path) for path in paths)

    def existing(self) -> dict[str, ImageInfo]:
        """The URIs of those that were not deleted yet, with what they are."""
        found = {uri: _read(path) for uri, path in self._paths.items()}
        self._paths = {uri: path for uri, path in self._paths.items() if found[uri]}
        return {uri: image[0] for uri, image in found.items() if image}

    def read(self, uri: str) -> Optional[tuple[ImageInfo, bytes]]:
        """An image and its bytes; None for any other URI, and for one that is gone."""
        path = self._paths.get(uri)
        return _read(path) if path else None


def _read(path: Path) -> Optional[tuple[ImageInfo, bytes]]:
    try:
        # neither a link nor a pipe that took its place
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as f:
            data = f.read(_LARGEST_BYTES + 1)
    except OSError:
        return None  # its time is over
    info = sniff_image(data)
    return (info, data) if info and len(data) <= _LARGEST_BYTES else None

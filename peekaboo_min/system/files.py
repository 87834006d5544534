"""Small files of ours alone: written whole or not at all, 0600."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from .images import file_error


def write_privately(path: Path, text: str) -> None:
    """Put `text` into `path` (0600) so that a reader sees the old file or the new one. Raises FILE_IO_ERROR."""
    fresh = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as f:
            f.write(text)
        os.replace(fresh, path)
    except OSError as e:
        with suppress(OSError):
            fresh.unlink()
        raise file_error(path, e) from e

"""The text of native/*, from the package or from the single file."""

from __future__ import annotations

from pathlib import Path
from typing import Dict

# The single file carries the sources here; in the package they are files.
EMBEDDED_SOURCES: Dict[str, str] = {}


def native_source(name: str) -> str:
    """The source `name` (for instance `windows.js`) as text."""
    if name in EMBEDDED_SOURCES:
        return EMBEDDED_SOURCES[name]
    return (Path(__file__).parent / "native" / name).read_text(encoding="utf-8")

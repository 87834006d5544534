"""Where our own code is: native/*, and the words that start us again."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Dict, List

# The single file carries the sources here; in the package they are files.
EMBEDDED_SOURCES: Dict[str, str] = {}


def native_source(name: str) -> str:
    """The source `name` (for instance `windows.js`) as text."""
    if name in EMBEDDED_SOURCES:
        return EMBEDDED_SOURCES[name]
    return (Path(__file__).parent / "native" / name).read_text(encoding="utf-8")


def own_command() -> List[str]:
    """argv of this very program, in the form in which it runs; needs own_environment() besides."""
    if EMBEDDED_SOURCES:
        return [sys.executable, os.path.abspath(__file__)]
    return [sys.executable, "-m", "peekaboo_min"]


def own_environment(inherited: Dict[str, str]) -> Dict[str, str]:
    """`inherited`, so that `-m peekaboo_min` finds this package from any folder."""
    if EMBEDDED_SOURCES:
        return dict(inherited)
    ours = str(Path(__file__).resolve().parent.parent)
    return {**inherited, "PYTHONPATH": os.pathsep.join(filter(None, [ours, inherited.get("PYTHONPATH", "")]))}

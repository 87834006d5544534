"""Where our own code is: native/*, and the words that start us again."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

# The single file carries the sources here; in the package they are files.
EMBEDDED_SOURCES: dict[str, str] = {}


def native_source(name: str) -> str:
    """The source `name` (for instance `windows.js`) as text."""
    if name in EMBEDDED_SOURCES:
        return EMBEDDED_SOURCES[name]
    return (Path(__file__).parent.parent / "native" / name).read_text(encoding="utf-8")


def own_command() -> list[str]:
    """argv of this very program, in the form in which it runs, for any working folder and with any PYTHONPATH.

    By a path: `-m` puts the working folder first on sys.path, and so does `-c`, for which Python 3.13 itself imports
    `linecache` before the first statement runs.
    """
    if EMBEDDED_SOURCES:
        return [sys.executable, os.path.abspath(__file__)]
    return [sys.executable, str(Path(__file__).resolve().with_name("__main__.py"))]


def how_to_install() -> str:
    """What to do where this Python cannot serve MCP. Debian's own pip refuses to install: environments of their own."""
    here = Path(__file__).resolve()
    if EMBEDDED_SOURCES:
        return (
            f"start it by `uv run {shlex.quote(str(here))}`, or by the Python of an environment that has it: "
            "python3 -m venv .venv && .venv/bin/pip install 'mcp>=2,<3'"
        )
    if not (here.parent.parent / "pyproject.toml").is_file():
        return f"{shlex.quote(sys.executable)} -m pip install 'mcp>=2,<3'"
    checkout = shlex.quote(str(here.parent.parent))
    return (
        f"install this checkout by `uv tool install {checkout}` or `pipx install {checkout}`, or without either: "
        f"python3 -m venv .venv && .venv/bin/pip install {checkout}, then start .venv/bin/peekaboo-min"
    )

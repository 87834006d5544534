"""Our own files: native sources, and the argv that starts us again."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote
from typing import Any, Optional

_PACKAGE = Path(__file__).parent.parent


def native_source(path: str) -> str:
    """The text of a source such as `desktop/macos/windows.js`; in the single file, too."""
    loader: Any = __spec__.loader
    source: bytes = loader.get_data(str(_PACKAGE / path))
    return source.decode("utf-8")


def single_file() -> Optional[str]:
    """The path of the single file when that is what runs, None in the package."""
    return getattr(__spec__.loader, "single_file", None)


def own_command() -> list[str]:
    """argv of this program, in the form in which it runs, for any working folder and PYTHONPATH.

    By a path: `-m` puts the working folder first on sys.path, and so does `-c`, for which Python 3.13 itself
    imports `linecache` before the first statement runs.
    """
    return [sys.executable, single_file() or str(_PACKAGE.resolve() / "__main__.py")]


def how_to_install() -> str:
    """What to do where this Python cannot serve MCP. Debian's own pip refuses to install."""
    file = single_file()
    if file:
        return (
            f"start it by `uv run {quote(file)}`, or by the Python of an environment that has it: "
            "python3 -m venv .venv && .venv/bin/pip install 'mcp>=2,<3'"
        )
    parent = _PACKAGE.resolve().parent
    if not (parent / "pyproject.toml").is_file():
        return f"{quote(sys.executable)} -m pip install 'mcp>=2,<3'"
    checkout = quote(str(parent))
    return (
        f"install it by `uv tool install {checkout}` or `pipx install {checkout}`, or without either: "
        f"python3 -m venv .venv && .venv/bin/pip install {checkout}, then start .venv/bin/peekaboo-min"
    )

"""Join the package into one readable file; print it, or with --write update scripts/peekaboo.py."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "peekaboo_min"
TARGET = ROOT / "scripts" / "peekaboo.py"
LOADER = ROOT / "scripts" / "single_file_loader.py"

HEADER = '''\
#!/usr/bin/env -S uv run --script
# coding: utf-8 (without it, Python checks the encoding of every line at each start)
# /// script
# requires-python = ">=3.10"
# dependencies = ["mcp>=2,<3"]
# ///
"""{title}

The whole of peekaboo_min {version} in one file: copy it and run it.

  python3 peekaboo.py --help      the commands; any Python from 3.9 on, nothing to install
  uv run peekaboo.py              the MCP server on stdio; uv fetches the package `mcp`

Made by scripts/bundle.py from the package peekaboo_min: change that, not this. License: MIT.
"""

import sys

if __name__ == "__main__":
    # Python put this file's folder first: a json.py in it (in ~/Downloads, for example) must not run.
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        del sys.path[0]
    if sys.version_info < (3, 9):
        print("peekaboo.py needs Python 3.9 or newer, and 3.10 or newer to serve MCP", file=sys.stderr)
        raise SystemExit(2)
'''
FOOTER = """
if __name__ == "__main__":
    run_embedded_package()
"""


def sources() -> list[Path]:
    """List every file of the package that the program reads, sorted by name."""
    kinds = (".py", ".js", ".applescript", ".swift", ".html", ".md")
    return sorted(path for path in PACKAGE.rglob("*") if path.suffix in kinds and path.name != "__main__.py")


def raw_string(text: str) -> str:
    """Return a Python literal that shows `text` verbatim."""
    # put characters that would end the raw string into an ordinary literal beside it, on the same line
    return "r'''" + re.sub(r"\\*'{3,}|\\+\Z|'+\Z", lambda match: f"''' {match[0]!r} r'''", text) + "'''"


def bundle() -> str:
    """Return the single file as text."""
    package = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    title = (ast.get_docstring(ast.parse(package)) or "").splitlines()[0]
    version = re.findall(r'__version__ = "(.+)"', package)[0]
    text = (
        HEADER.format(title=title, version=version) + LOADER.read_text(encoding="utf-8").split('"""\n', 1)[1]
    )
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        source, line = raw_string(path.read_text(encoding="utf-8")), text.count("\n") + 2
        text += f"\nSOURCES[{name!r}] = {line}, {source}\n"
    return text + FOOTER


def main(arguments: list[str]) -> int:
    text = bundle()
    if arguments == ["--write"]:
        TARGET.write_text(text, encoding="utf-8")
        TARGET.chmod(0o755)
    elif arguments:
        print("usage: bundle.py [--write]", file=sys.stderr)
        return 2
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

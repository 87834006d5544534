"""Join the package into one readable file: prints it, or with --write puts it into scripts/peekaboo.py."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "peekaboo_min"
TARGET = ROOT / "scripts" / "peekaboo.py"

HEADER = '''\
#!/usr/bin/env -S uv run --script
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

from __future__ import annotations

import sys

if __name__ == "__main__":
    # Python put this file's folder first: a json.py that lies there, in ~/Downloads for instance, must not be executed.
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        del sys.path[0]
    if sys.version_info < (3, 9):
        print("peekaboo.py needs Python 3.9 or newer, and 3.10 or newer to serve MCP: start it by one", file=sys.stderr)
        raise SystemExit(2)
'''
FOOTER = """

if __name__ == "__main__":
    raise SystemExit(main())
"""


def modules() -> dict[str, ast.Module]:
    """Every room but the two entry points, by name."""
    names = sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem not in ("__init__", "__main__"))
    return {name: ast.parse((PACKAGE / f"{name}.py").read_text(encoding="utf-8")) for name in names}


def own_imports(tree: ast.AST) -> list[ast.ImportFrom]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]


def in_import_order(trees: dict[str, ast.Module]) -> list[str]:
    """The rooms so that each comes after what it imports at its top. Stops on a circle."""
    needs = {
        name: {node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.level}
        for name, tree in trees.items()
    }
    ordered: list[str] = []
    while len(ordered) < len(needs):
        ready = [name for name in needs if name not in ordered and needs[name] <= set(ordered)]
        if not ready:
            raise SystemExit(f"circular import among {sorted(set(needs) - set(ordered))}")
        ordered.append(ready[0])
    # what serves the shell comes last, so that main() closes the file
    return [name for name in ordered if name != "cli"] + ["cli"]


def check(trees: dict[str, ast.Module]) -> None:
    """Stops on what cannot be joined: a name defined in two rooms, a renamed import, `from . import x`."""
    owners: dict[str, str] = {}
    for name, tree in trees.items():
        at_top = statements_of_module(tree.body)
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)) and not is_joinable(node, node in at_top):
                raise SystemExit(
                    f"{name}.py:{node.lineno}: write `from .room import name`, and rename nothing"
                )
        for defined in top_level_names(tree):
            if owners.setdefault(defined, name) != name:
                raise SystemExit(f"{defined} is defined in {owners[defined]}.py and in {name}.py")


def is_joinable(node: ast.Import | ast.ImportFrom, is_at_top: bool) -> bool:
    """Whether an import means the same in one file: our own rooms as `from .room import name`, nothing renamed at the top."""
    modules = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    is_ours = bool(getattr(node, "level", 0))
    is_absolute = any(one.split(".")[0] == PACKAGE.name for one in modules)
    is_renamed = (is_ours or is_at_top) and any(one.asname for one in node.names)
    return not is_absolute and not is_renamed and (not is_ours or modules != [""])


def statements_of_module(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements that run with the module, those in an if, a try or a loop of its top level, too."""
    found: list[ast.stmt] = []
    for node in body:
        found.append(node)
        for field in ("body", "orelse", "finalbody"):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found += statements_of_module(getattr(node, field, []))
        for handler in getattr(node, "handlers", []):
            found += statements_of_module(handler.body)
    return found


def top_level_names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in statements_of_module(tree.body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    return names


def body_of(name: str, tree: ast.Module) -> tuple[list[str], str]:
    """A room's standard library imports, and the rest of it without imports and docstring."""
    lines = (PACKAGE / f"{name}.py").read_text(encoding="utf-8").splitlines()
    imports: list[str] = []
    for node in tree.body:
        is_import = isinstance(node, (ast.Import, ast.ImportFrom))
        is_docstring = node is tree.body[0] and isinstance(node, ast.Expr)
        if is_import and not getattr(node, "level", 0) and getattr(node, "module", "") != "__future__":
            imports.append(ast.unparse(node))
        if is_import or is_docstring:
            blank(lines, node)
    for node in own_imports(tree):
        if node not in tree.body:
            indent = re.match(r" *", lines[node.lineno - 1]).group()
            blank(lines, node)
            lines[node.lineno - 1] = (
                f"{indent}pass  # {', '.join(one.name for one in node.names)} stands in this file"
            )
    text = "\n".join(line for line in lines if line != "\0").strip("\n")
    return imports, re.sub(r"\n{4,}", "\n\n\n", text)


def blank(lines: list[str], node: ast.stmt) -> None:
    for number in range(node.lineno - 1, (node.end_lineno or node.lineno)):
        lines[number] = "\0"


def banner(name: str, tree: ast.Module) -> str:
    return f"# {'=' * 30} {name} {'=' * max(3, 84 - len(name))}\n# {(ast.get_docstring(tree) or '').splitlines()[0]}\n"


def natives() -> str:
    """native/* as text that can be read: raw strings, one below the other."""
    parts = [f"# {'=' * 30} native {'=' * 78}\n# Sources for other interpreters, as they are.\n"]
    for path in sorted((PACKAGE / "native").iterdir()):
        text = path.read_text(encoding="utf-8")
        if "'''" in text or text.endswith("\\"):
            raise SystemExit(f"native/{path.name} cannot stand in a raw string")
        parts.append(f"EMBEDDED_SOURCES[{path.name!r}] = r'''{text}'''\n")
    return "\n".join(parts)


def merge_imports(statements: set[str]) -> str:
    plain = sorted(one for one in statements if one.startswith("import "))
    members: dict[str, set[str]] = {}
    for one in statements - set(plain):
        module, names = re.match(r"from (\S+) import (.*)", one).groups()
        members.setdefault(module, set()).update(name.strip() for name in names.split(","))
    return "\n".join(
        plain
        + [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(members.items())]
    )


def bundle() -> str:
    """The single file, as text."""
    trees = modules()
    check(trees)
    title = ast.get_docstring(ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))).splitlines()[
        0
    ]
    version = re.search(r'VERSION = "(.+)"', (PACKAGE / "version.py").read_text(encoding="utf-8")).group(1)
    statements: set[str] = set()
    parts: list[str] = []
    for name in in_import_order(trees):
        imports, text = body_of(name, trees[name])
        statements |= set(imports)
        parts.append(f"{banner(name, trees[name])}\n{text}\n")
        if name == "sources":
            parts.append(natives())
    head = HEADER.format(title=title, version=version)
    return f"{head}\n{merge_imports(statements)}\n\n\n" + "\n\n".join(parts) + FOOTER


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

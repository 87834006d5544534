"""The architecture, read from the source: wings, restricted imports, sizes, docstrings, tools."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from typing import Callable, NamedTuple

import pytest
from readme import SKILL, refreshed
from worlds import ROOT

from peekaboo_min.frontends.arguments import read_signature
from peekaboo_min.frontends.documents import show_tools
from peekaboo_min.tools.table import COMMANDS, ROWS, TOOLS

PACKAGE = ROOT / "peekaboo_min"

# Lowest first. A module imports only from earlier wings and its own; import cycles are forbidden.
WINGS = ("core", "system", "desktop", "ai", "automation", "integrations", "agents", "tools", "frontends")
LARGEST_FOLDER = 11
MOST_MODULES = 74
MOST_LINES = 15_000

# Names that only these modules, and __main__, may import or use.
RESTRICTED = {
    "subprocess": ("system.process",),
    "urllib.request": ("system.web",),
    **dict.fromkeys(("mcp", "pydantic", "anyio"), ("frontends.server", "agents.mcp_client")),
    **dict.fromkeys(("os.environ", "os.environb", "os.getenv", "os.putenv"), ("core.settings",)),
    "sys.platform": ("core.settings", "desktop.select"),
    **dict.fromkeys(("sys.exit", "SystemExit", "exit", "quit"), ("frontends.cli",)),
}

LONGEST_MODULE = 400
LONGEST_FUNCTION = 64
LONGEST_FIRST_LINE = 75


class Module(NamedTuple):
    """One module by its name below the package (`core.errors`), as text and as a tree."""

    name: str
    text: str
    tree: ast.Module


Modules = dict[str, Module]


@cache
def package() -> Modules:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        if not name.endswith("__init__"):
            text = path.read_text(encoding="utf-8")
            found[name] = Module(name, text, ast.parse(text))
    return found


def own_imports(module: Module) -> set[str]:
    """Return the package's modules that a module imports, at its top or inside functions."""
    found: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = module.name.split(".")[: -node.level]
            found.add(".".join([*base, *((node.module or "").split("."))]))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("peekaboo_min."):
            found.add((node.module or "").split(".", 1)[1])
    return found - {""}  # `from .. import __version__`


def names_used(node: ast.AST) -> list[str]:
    """Return the dotted names from outside the package that a node imports or uses."""
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        # `from urllib import request` imports urllib.request
        return [f"{node.module}.{each.name}" for each in node.names]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return [f"{node.value.id}.{node.attr}"]
    return [node.id] if isinstance(node, ast.Name) and node.id in RESTRICTED else []


def circles(modules: Modules) -> list[str]:
    needs = {name: own_imports(module) & set(modules) for name, module in modules.items()}
    while True:
        free = [name for name, wanted in needs.items() if not wanted]
        if not free:
            return [f"{' '.join(sorted(needs))} import each other in a circle"] if needs else []
        needs = {name: wanted - set(free) for name, wanted in needs.items() if name not in free}


def upward_imports(modules: Modules) -> list[str]:
    """Report imports from a higher wing, and modules outside all wings, except __main__."""
    floors = {name: WINGS.index(name.split(".")[0]) for name in modules if name.split(".")[0] in WINGS}
    return [name for name in modules if name not in floors and name != "__main__"] + [
        f"{name} imports {other} from a higher wing"
        for name, floor in floors.items()
        for other in sorted(own_imports(modules[name]))
        if WINGS.index(other.split(".")[0]) > floor
    ]


def restricted_names(modules: Modules) -> list[str]:
    return [
        f"{name}: {used}"
        for name, module in modules.items()
        for node in ast.walk(module.tree)
        for used in names_used(node)
        for outside, allowed in RESTRICTED.items()
        if f"{used}.".startswith(f"{outside}.") and name not in (*allowed, "__main__")
    ]


def too_large(modules: Modules) -> list[str]:
    lengths = {name: len(module.text.splitlines()) for name, module in modules.items()}
    folders = Counter(name.rpartition(".")[0] for name in modules)
    found = [f"{folder} has {size} modules" for folder, size in folders.items() if size > LARGEST_FOLDER]
    found += [f"{name} has {length} lines" for name, length in lengths.items() if length > LONGEST_MODULE]
    found += [f"{len(modules)} modules"] if len(modules) > MOST_MODULES else []
    return found + ([f"{sum(lengths.values())} lines"] if sum(lengths.values()) > MOST_LINES else [])


def long_functions(modules: Modules) -> list[str]:
    return [
        f"{name}.{node.name} has {(node.end_lineno or 0) - node.lineno + 1} lines"
        for name, module in modules.items()
        for node in ast.walk(module.tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION
    ]


def bad_first_lines(modules: Modules) -> list[str]:
    first_lines = {
        name: (ast.get_docstring(module.tree) or "").split("\n")[0] for name, module in modules.items()
    }
    return [
        f"{name}: {f'its first line has {len(line)} characters' if line else 'it has no docstring'}"
        for name, line in first_lines.items()
        if not 0 < len(line) <= LONGEST_FIRST_LINE
    ]


RULES = [circles, upward_imports, restricted_names, too_large, long_functions, bad_first_lines]


@pytest.mark.parametrize("rule", RULES)
def test_package_keeps_the_rule(rule: Callable[[Modules], list[str]]) -> None:
    assert rule(package()) == []


def test_package_docstring_names_every_wing_and_module() -> None:
    text = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    names = {name.rsplit(".", 1)[-1] for name in package() if name != "__main__"} | set(WINGS)
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", text)] == []


def test_tools_are_all_reachable_from_the_shell() -> None:
    # in the shell, `list` is `list apps`, `list windows` and `list server_status`
    assert [name for name, row in TOOLS.items() if not row.command] == ["list"]


def test_table_names_each_command_and_tool_once() -> None:
    assert len(COMMANDS) + len(TOOLS) == sum(bool(row.command) + bool(row.name) for row in ROWS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_parameter_of_a_command_has_help(name: str) -> None:
    signature = read_signature(COMMANDS[name].load(for_shell=True))
    assert [parameter.name for parameter in signature.parameters if len(parameter.help) < 10] == []


def test_readme_tables_are_current() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert refreshed(text) == text, "run: python3 scripts/readme.py --write"


def test_skill_is_current_and_short() -> None:
    text = SKILL.read_text(encoding="utf-8")
    assert text == show_tools(skill=True).text + "\n", "run: python3 scripts/readme.py --write"
    front = re.match(r"---\nname: ([a-z-]+)\ndescription: .{1,1024}\n---\n", text)
    assert front and text.count("\n") <= 120
    # agentskills.io: the folder has the skill's name
    folders = re.findall(r"/skills/([a-z-]+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert {*folders} == {front[1]}


# Required by the specification: "IV. Documentation", and "Rollout / acceptance" of peekaboo_exec.
README_PARTS = [
    *("macOS 13 or later", "xcode-select --install", "ollama pull ", "**Where to report:**"),
    *('"mcpServers"', '"command"', '"env"', "PEEKABOO_AI_PROVIDERS", "OPENAI_API_KEY"),
    *("config CLIENT", "vscode", "cursor", "System Settings > Privacy & Security", "1. ", "2. ", "3. "),
    "Quit the app and open it again",
    'open "x-apple.systempreferences:com.apple.preference.security?Privacy_ScreenCapture"',
    'open "x-apple.systempreferences:com.apple.preference.security?Privacy_Accessibility"',
    *("brew install steipete/tap/peekaboo", "launchd", "peekaboo permissions check"),
]


def test_readme_has_the_parts_that_the_specification_requires() -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert [part for part in README_PARTS if " ".join(part.split()) not in text] == []

"""The architecture, read from the source: wings, restricted imports, sizes, docstrings, tools."""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Callable, Optional

import pytest
from readme import SKILL, refreshed
from worlds import ROOT

from peekaboo_min.frontends.arguments import read_signature
from peekaboo_min.frontends.tools import COMMANDS, TOOLS, Tool, load_function, show_tools

PACKAGE = ROOT / "peekaboo_min"

# From the ground up. A module imports from the wings before its own; in a wing only circles are forbidden.
WINGS = ("core", "system", "desktop", "ai", "automation", "integrations", "agents", "frontends")
LARGEST_FOLDER = 11
MOST_MODULES = 72
MOST_LINES = 13_400

# What only these modules, and the start, may import or use.
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


@dataclass
class Module:
    """One module by its name below the package (`core.errors`), as text and as a tree."""

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)


Modules = dict[str, Module]


@lru_cache(maxsize=1)
def package() -> Modules:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        if not name.endswith("__init__"):
            found[name] = Module(name, path.read_text(encoding="utf-8"))
    return found


def own_imports(module: Module) -> set[str]:
    """The modules of the package that a module imports, wherever in it that stands."""
    found: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = module.name.split(".")[: -node.level]
            found.add(".".join([*base, *((node.module or "").split("."))]))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("peekaboo_min."):
            found.add((node.module or "").split(".", 1)[1])
    return found - {""}  # the version, of the package itself


def names_used(node: ast.AST) -> list[str]:
    """Whole dotted names of what one node imports or uses and that is not ours."""
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
    """Also what is in no wing; only the start is."""
    floors = {name: WINGS.index(name.split(".")[0]) for name in modules if name.split(".")[0] in WINGS}
    return [name for name in modules if name not in floors and name != "__main__"] + [
        f"{name} imports {other}, which stands above it"
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


def modules_that_do_not_say_their_job(modules: Modules) -> list[str]:
    first_lines = {
        name: (ast.get_docstring(module.tree) or "").split("\n")[0] for name, module in modules.items()
    }
    return [
        f"{name}: {f'its first line has {len(line)} characters' if line else 'it has no docstring'}"
        for name, line in first_lines.items()
        if not 0 < len(line) <= LONGEST_FIRST_LINE
    ]


def swallowed_exceptions(modules: Modules) -> list[str]:
    def is_empty(handler: ast.ExceptHandler) -> bool:
        return all(isinstance(each, (ast.Pass, ast.Continue)) or is_text(each) for each in handler.body)

    def is_text(node: ast.stmt) -> bool:
        return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)

    def catches_all(handler: ast.ExceptHandler) -> bool:
        return isinstance(handler.type, ast.Name) and handler.type.id in ("Exception", "BaseException")

    return [
        f"{name}:{node.lineno} {'catches everything' if node.type is None else 'swallows everything'}"
        for name, module in modules.items()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (catches_all(node) and is_empty(node)))
    ]


RULES = [
    circles,
    upward_imports,
    restricted_names,
    too_large,
    long_functions,
    modules_that_do_not_say_their_job,
    swallowed_exceptions,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_package_keeps_the_rule(rule: Callable[[Modules], list[str]]) -> None:
    assert rule(package()) == []


def test_map_names_every_wing_and_module() -> None:
    text = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    names = {name.rsplit(".", 1)[-1] for name in package() if name != "__main__"} | set(WINGS)
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", text)] == []


def command_for(tool: Tool) -> Optional[str]:
    """The shell command of a tool: the same function, or one that the tool calls, as `list` does."""
    for name, place in COMMANDS.items():
        function = load_function(place)
        if function is tool.function or function.__name__ in tool.function.__code__.co_names:
            return name
    return None


def test_tools_are_all_reachable_from_the_shell() -> None:
    assert [tool.name for tool in TOOLS if not command_for(tool)] == []


ENTRY_POINTS = {
    **{f"tool {one.name}": one.function for one in TOOLS},
    **{f"command {name}": load_function(place) for name, place in COMMANDS.items()},
}


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_help_of_every_tool_and_command_and_parameter(name: str) -> None:
    signature = read_signature(ENTRY_POINTS[name], name.startswith("command"))
    assert signature.summary and signature.description
    assert [one.name for one in signature.parameters if len(one.help) < 10] == []


def test_readme_tables_are_what_the_code_makes() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert refreshed(text) == text, "run: python3 scripts/readme.py --write"


def test_skill_is_what_the_code_makes_and_short() -> None:
    text = SKILL.read_text(encoding="utf-8")
    assert text == show_tools(skill=True).text + "\n", "run: python3 scripts/readme.py --write"
    assert re.match(r"---\nname: [a-z-]+\ndescription: .{1,1024}\n---\n", text) and text.count("\n") <= 120


# What the specification asks of it: "IV. Documentation", and "Rollout / acceptance" of peekaboo_exec.
README_PARTS = [
    *("macOS 13 or later", "xcode-select --install", "ollama pull ", "**Where to report:**"),
    *('"mcpServers"', '"command"', '"env"', "PEEKABOO_AI_PROVIDERS", "OPENAI_API_KEY"),
    *("config CLIENT", "vscode", "cursor", "System Settings > Privacy & Security", "1. ", "2. ", "3. "),
    "Quit the app and open it again",
    'open "x-apple.systempreferences:com.apple.preference.security?Privacy_ScreenCapture"',
    'open "x-apple.systempreferences:com.apple.preference.security?Privacy_Accessibility"',
    *("brew install steipete/tap/peekaboo", "launchd", "peekaboo permissions check"),
]


def test_readme_has_what_the_specification_asks_of_it() -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert [part for part in README_PARTS if " ".join(part.split()) not in text] == []

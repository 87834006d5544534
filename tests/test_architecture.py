"""The rules of the house, read from the source: layers, doors, sizes, docstrings, and one definition for two doors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Callable, Optional

import pytest
from readme import refreshed
from worlds import ROOT

from peekaboo_min.core.settings import Settings
from peekaboo_min.frontends.commands import COMMANDS
from peekaboo_min.frontends.signatures import read_signature
from peekaboo_min.frontends.tools import TOOLS, Tool

PACKAGE = ROOT / "peekaboo_min"

# From the words at the top down to the front doors. A room imports from layers above its own; inside a layer only
# circles are forbidden. A room that is planned and not built yet may stand here.
LAYERS = (
    "errors model version prompts agent_prompts signatures",
    "settings cancel log programs proc web image_files private_files sources keys",
    "desktop osascript swift_helper mac_host mac_keys x11_keyboard x11_ocr x11_tree x11 macos platforms",
    "matching policy turns records capture_plan capture app_window automation imaging listing text_finding answers keynote_memory keynote"
    " providers provider_errors model_choice model_pictures vision peekaboo_cli gmail_oauth gmail probes status",
    "function_call actions agent_decision mcp_client agent_target agent_loop keynote_agent agent_run vision_agent run_report",
    "capture_tools desktop_tools tools reference client_config look_commands machine_commands commands server cli",
)
LAYER_OF = {name: number for number, names in enumerate(LAYERS) for name in names.split()}
ENTRY_POINTS = ("__init__", "__main__")
JOBS = set(LAYERS[3].split()) - {"matching"}

# What only these rooms may import, by the import's first word.
DOORS = {
    "subprocess": ("proc",),
    "urllib": ("web",),
    "mcp": ("server", "mcp_client"),
    "pydantic": ("server", "mcp_client"),
    "anyio": ("server", "mcp_client"),
}
# An address is taken apart where it is read; only web opens one.
PARSING = {"gmail": ("urllib.parse",), "client_config": ("urllib.parse",)}
EXPENSIVE = ("urllib", "http", "email", "asyncio", "mcp")

LONGEST_ROOM = 300
LONGEST_FUNCTION = 60
LONGEST_FIRST_LINE = 75


@dataclass
class Room:
    """One module, as text and as a tree."""

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)


Rooms = dict[str, Room]


@lru_cache(maxsize=1)
def house() -> Rooms:
    return {
        path.stem: Room(path.stem, path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.glob("*.py"))
    }


def own_imports(room: Room) -> set[str]:
    """The rooms that a room imports, wherever in it that stands."""
    found: set[str] = set()
    for node in ast.walk(room.tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            found |= {node.module} if node.module else {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("peekaboo_min."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {one.name.split(".")[1] for one in node.names if one.name.startswith("peekaboo_min.")}
    return found


def foreign_imports(node: ast.AST) -> Iterator[str]:
    """Whole dotted names of the modules that one statement imports and that are not ours."""
    if isinstance(node, ast.Import):
        yield from (one.name for one in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level:
        # `from urllib import request` imports urllib.request
        yield from (f"{node.module}.{one.name}" for one in node.names)


def statements_at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """What runs when the module is imported: its top, and the blocks there, but no function's body."""
    for node in body:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for block in ("body", "orelse", "finalbody"):
                yield from statements_at_import(getattr(node, block, []))
            for handler in getattr(node, "handlers", []):
                yield from statements_at_import(handler.body)


def circles(rooms: Rooms) -> list[str]:
    needs = {name: own_imports(room) & set(rooms) for name, room in rooms.items()}
    while True:
        free = [name for name, wanted in needs.items() if not wanted]
        if not free:
            return [f"{' '.join(sorted(needs))} import each other in a circle"] if needs else []
        needs = {name: wanted - set(free) for name, wanted in needs.items() if name not in free}


def rooms_without_a_place(rooms: Rooms) -> list[str]:
    return [
        f"{name} is in no layer: place it in LAYERS of tests/test_house.py, below all that it imports"
        for name in rooms
        if name not in LAYER_OF and name not in ENTRY_POINTS
    ]


def upward_imports(rooms: Rooms) -> list[str]:
    return [
        f"{name} imports {other}, which stands below it"
        for name, room in rooms.items()
        for other in sorted(own_imports(room))
        if LAYER_OF.get(other, 0) > LAYER_OF.get(name, len(LAYERS))
    ]


def imports_past_a_door(rooms: Rooms) -> list[str]:
    return [
        f"{name}:{node.lineno} imports {module}"
        for name, room in rooms.items()
        for node in ast.walk(room.tree)
        for module in foreign_imports(node)
        if name not in DOORS.get(module.split(".")[0], (name,))
        and not any(f"{module}.".startswith(f"{one}.") for one in PARSING.get(name, ()))
    ]


def expensive_imports_at_the_top(rooms: Rooms) -> list[str]:
    return [
        f"{name}:{node.lineno} imports {module} for everybody; import it in the function that uses it"
        for name, room in rooms.items()
        for node in statements_at_import(room.tree.body)
        for module in foreign_imports(node)
        if module.split(".")[0] in EXPENSIVE
    ]


def attributes_outside(
    owner: str, attributes: tuple[str, ...], only_room: str
) -> Callable[[Rooms], list[str]]:
    """A rule: these attributes of a module are used in one room only, under whatever name they were imported."""

    def rule(rooms: Rooms) -> list[str]:
        found = []
        for name, room in rooms.items():
            for node in ast.walk(room.tree) if name != only_room else ():
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    used = f"{node.value.id}.{node.attr}"
                elif isinstance(node, ast.ImportFrom) and node.module == owner:
                    used = next((f"{owner}.{one.name}" for one in node.names if one.name in attributes), "")
                else:
                    continue
                if used in [f"{owner}.{one}" for one in attributes]:
                    found.append(f"{name}:{node.lineno} uses {used}, which is {only_room}'s")
        return found

    return rule


def long_rooms(rooms: Rooms) -> list[str]:
    lengths = {name: len(room.text.splitlines()) for name, room in rooms.items()}
    return [
        f"{name} has {length} lines: split it" for name, length in lengths.items() if length > LONGEST_ROOM
    ]


def long_functions(rooms: Rooms) -> list[str]:
    return [
        f"{name}.{node.name} has {node.end_lineno - node.lineno + 1} lines"
        for name, room in rooms.items()
        for node in ast.walk(room.tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.end_lineno - node.lineno + 1 > LONGEST_FUNCTION
    ]


def rooms_that_do_not_say_their_job(rooms: Rooms) -> list[str]:
    first_lines = {name: (ast.get_docstring(room.tree) or "").split("\n")[0] for name, room in rooms.items()}
    return [
        f"{name}: {f'its first line has {len(line)} characters' if line else 'it has no docstring'}"
        for name, line in first_lines.items()
        if not 0 < len(line) <= LONGEST_FIRST_LINE
    ]


def swallowed_exceptions(rooms: Rooms) -> list[str]:
    def is_empty(handler: ast.ExceptHandler) -> bool:
        return all(isinstance(one, (ast.Pass, ast.Continue)) or is_text(one) for one in handler.body)

    def is_text(node: ast.stmt) -> bool:
        return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)

    def catches_all(handler: ast.ExceptHandler) -> bool:
        return isinstance(handler.type, ast.Name) and handler.type.id in ("Exception", "BaseException")

    return [
        f"{name}:{node.lineno} {'catches everything' if node.type is None else 'swallows everything'}"
        for name, room in rooms.items()
        for node in ast.walk(room.tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (catches_all(node) and is_empty(node)))
    ]


def exits_from_inside(rooms: Rooms) -> list[str]:
    return [
        f"{name}:{node.lineno} ends the process"
        for name, room in rooms.items()
        if name not in ("cli", "__main__")
        for node in ast.walk(room.tree)
        if (isinstance(node, ast.Name) and node.id in ("SystemExit", "exit", "quit"))
        or (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and (node.value.id, node.attr) == ("sys", "exit")
        )
    ]


def renamed_imports(rooms: Rooms) -> list[str]:
    """The single file joins the rooms: names must be the same everywhere."""
    return [
        f"{name}:{node.lineno} is no `from .room import name`"
        for name, room in rooms.items()
        for node in ast.walk(room.tree)
        if name not in ENTRY_POINTS
        and isinstance(node, ast.ImportFrom)
        and node.level
        and (node.level > 1 or not node.module or any(one.asname or one.name == "*" for one in node.names))
    ]


environment_read = attributes_outside("os", ("environ", "getenv", "environb", "putenv"), "settings")
platform_asked = attributes_outside("sys", ("platform",), "platforms")

RULES: list[tuple[Callable[[Rooms], list[str]], Rooms]] = [
    (
        circles,
        {
            "keys": Room("keys", "from .proc import a"),
            "proc": Room("proc", "def f():\n  from .keys import b"),
        },
    ),
    (rooms_without_a_place, {"attic": Room("attic", "")}),
    (upward_imports, {"errors": Room("errors", "def f():\n  from .cli import main")}),
    (imports_past_a_door, {"x11": Room("x11", "def f():\n  from subprocess import run")}),
    (imports_past_a_door, {"gmail": Room("gmail", "import urllib.parse\nfrom urllib import request")}),
    (imports_past_a_door, {"tools": Room("tools", "import pydantic")}),
    (
        expensive_imports_at_the_top,
        {"web": Room("web", "try:\n  from urllib import request\nexcept OSError:\n  raise")},
    ),
    (environment_read, {"x11": Room("x11", "import os\na = os.environ['DISPLAY']")}),
    (environment_read, {"x11": Room("x11", "from os import getenv")}),
    (platform_asked, {"proc": Room("proc", "import sys\nif sys.platform == 'darwin':\n  pass")}),
    (long_rooms, {"x11": Room("x11", "\n" * 301)}),
    (long_functions, {"x11": Room("x11", "def f():\n" + "  a\n" * 60)}),
    (rooms_that_do_not_say_their_job, {"x11": Room("x11", f'"""{"x" * 76}"""')}),
    (rooms_that_do_not_say_their_job, {"x11": Room("x11", "a = 1")}),
    (swallowed_exceptions, {"x11": Room("x11", "try:\n  a\nexcept Exception:\n  pass")}),
    (swallowed_exceptions, {"x11": Room("x11", "try:\n  a\nexcept:\n  raise")}),
    (exits_from_inside, {"server": Room("server", "raise SystemExit(2)")}),
    (exits_from_inside, {"server": Room("server", "import sys\nsys.exit(2)")}),
    (renamed_imports, {"x11": Room("x11", "from . import proc")}),
]


@pytest.mark.parametrize(
    "rule", list(dict.fromkeys(rule for rule, _ in RULES)), ids=lambda rule: rule.__name__
)
def test_the_house_keeps_the_rule(rule: Callable[[Rooms], list[str]]) -> None:
    assert rule(house()) == []


@pytest.mark.parametrize(
    ("rule", "bad"), RULES, ids=[f"{rule.__name__}{n}" for n, (rule, _) in enumerate(RULES)]
)
def test_each_rule_sees_what_it_forbids(rule: Callable[[Rooms], list[str]], bad: Rooms) -> None:
    assert len(rule(bad)) == 1


def test_gmail_may_take_an_address_apart() -> None:
    assert (
        imports_past_a_door({"gmail": Room("gmail", "def f():\n  from urllib.parse import urlencode")}) == []
    )


# one definition, two doors ---------------------------------------------------------------------------------------


def jobs_called_by(function: Callable[..., object]) -> set[str]:
    """The functions of job rooms that a tool or a command names."""
    room = function.__module__.rsplit(".", 1)[-1]
    tree = house()[room].tree
    imported = {
        name.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.level and node.module in JOBS
        for name in node.names
        if name.name[0].islower()
    }
    bodies = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == function.__name__]
    return {node.id for body in bodies for node in ast.walk(body) if isinstance(node, ast.Name)} & imported


def command_for(tool: Tool) -> Optional[str]:
    """The shell command of a tool: the same function, or one that calls a job of it."""
    for name, function in COMMANDS.items():
        if function is tool.function or jobs_called_by(function) & jobs_called_by(tool.function):
            return name
    return None


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_tool_is_reachable_from_the_shell(tool: Tool) -> None:
    assert command_for(tool), f"no command of COMMANDS does what {tool.name} does"


DOORWAYS = {
    **{f"tool {one.name}": one.function for one in TOOLS},
    **{f"command {n}": f for n, f in COMMANDS.items()},
}


@pytest.mark.parametrize("name", DOORWAYS)
def test_everything_offered_has_help_and_so_have_its_parameters(name: str) -> None:
    signature = read_signature(DOORWAYS[name])
    assert signature.summary and signature.description
    assert [one.name for one in signature.parameters if len(one.help) < 10] == []
    if name.startswith("command"):
        assert signature.example.startswith("peekaboo-min "), "a command's help shows an example"


def test_the_readme_tables_are_what_the_code_makes() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert refreshed(text) == text, "run: python3 scripts/readme.py --write"


def test_the_readme_names_every_command_tool_and_environment_variable() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    variables = [
        one.metadata[key] for one in fields(Settings) for key in ("name", "also") if one.metadata[key]
    ]
    wanted = [*(tool.name for tool in TOOLS), *COMMANDS, *variables]
    assert [word for word in wanted if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)] == []

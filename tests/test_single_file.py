"""The single file: made by bundle.py and nothing else, readable, 3.9 without mcp."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from worlds import ROOT, SINGLE_FILE, clean_environment, old_python

BUNDLE = ROOT / "scripts" / "bundle.py"


def bundle(root: Path, *words: str) -> subprocess.CompletedProcess:
    """bundle.py of a tree, in which it finds its package by its own place."""
    script = root / "scripts" / "bundle.py"
    return subprocess.run(
        [sys.executable, str(script), *words], capture_output=True, encoding="utf-8", timeout=60
    )


SMALL_HOUSE = {
    "__init__": '"""A small house."""',
    "version": '"""The version."""\n\nVERSION = "7.0"',
    "model": '"""The words."""\n\nclass Point:\n    pass',
    "sources": '"""The sources."""\n\nEMBEDDED_SOURCES = {}',
    "keys": '"""Keys."""\n\nfrom .model import Point\n\nMODIFIERS = ()\n\n\ndef read_chord():\n    return Point()',
    "cli": '"""The door."""\n\nimport json\n\nfrom .keys import read_chord\nfrom .version import VERSION\n\n\n'
    "def main():\n    from .sources import EMBEDDED_SOURCES\n\n"
    "    print(json.dumps([VERSION, EMBEDDED_SOURCES, type(read_chord()).__name__]))\n    return 7",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A house of few rooms, and the bundler."""
    (tmp_path / "peekaboo_min" / "native").mkdir(parents=True)
    (tmp_path / "peekaboo_min" / "native" / "a.js").write_text('// \\d "quoted"\nrun()\n')
    for name, text in SMALL_HOUSE.items():
        (tmp_path / "peekaboo_min" / f"{name}.py").write_text(f"{text}\n")
    (tmp_path / "scripts").mkdir()
    shutil.copy(BUNDLE, tmp_path / "scripts")
    return tmp_path


def add_room(tree: Path, name: str, text: str) -> None:
    (tree / "peekaboo_min" / f"{name}.py").write_text(f'"""A room for a test."""\n\n{text}\n')


# is it made right? -----------------------------------------------------------------------------------------------


def test_the_committed_file_is_what_the_bundler_prints() -> None:
    made = bundle(ROOT)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout == SINGLE_FILE.read_text(encoding="utf-8"), "run: python3 scripts/bundle.py --write"


def test_the_file_is_a_program() -> None:
    assert os.access(SINGLE_FILE, os.X_OK)
    assert SINGLE_FILE.read_text(encoding="utf-8").startswith("#!/usr/bin/env ")


def test_writing_puts_into_place_what_is_printed_and_the_same_each_time(tree: Path) -> None:
    target = tree / "scripts" / "peekaboo.py"
    printed = [bundle(tree).stdout, bundle(tree).stdout]
    assert bundle(tree, "--write").stdout == ""
    assert printed == [target.read_text(encoding="utf-8")] * 2
    assert os.access(target, os.X_OK)


def test_a_small_house_becomes_a_program_that_runs(tree: Path) -> None:
    bundle(tree, "--write")
    done = subprocess.run(
        [sys.executable, str(tree / "scripts" / "peekaboo.py")], capture_output=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (7, b"")
    assert json.loads(done.stdout) == ["7.0", {"a.js": '// \\d "quoted"\nrun()\n'}, "Point"]


SPOILERS = {
    "a circle": (
        {"attic": "from .cellar import b\n\na = 1", "cellar": "from .attic import a\n\nb = 1"},
        "circular import",
    ),
    "a name of another room": ({"attic": "def read_chord():\n    pass"}, "read_chord is defined in"),
    "a constant of another room": ({"attic": "MODIFIERS = 1"}, "MODIFIERS is defined in"),
    "a class of another room": ({"attic": "class Point:\n    pass"}, "Point is defined in"),
    "an annotated name of another room": ({"attic": "VERSION: str = '2'"}, "VERSION is defined in"),
    "a room imported whole": ({"attic": "from . import keys"}, "attic.py:3: write `from .room import name`"),
    "a renamed import": ({"attic": "from .keys import read_chord as chord"}, "attic.py:3: write"),
    "a room imported whole in a function": (
        {"attic": "def attic():\n    from . import keys"},
        "attic.py:4: write",
    ),
    "an absolute import of ours": (
        {"attic": "from peekaboo_min.desktop.keys import read_chord"},
        "attic.py:3: write",
    ),
    "a name in an if": ({"attic": "if True:\n    MODIFIERS = 1"}, "MODIFIERS is defined in"),
    "a renamed standard module": ({"attic": "import time as json\n\nattic = json.time()"}, "attic.py:3"),
}


@pytest.mark.parametrize(("rooms", "said"), SPOILERS.values(), ids=SPOILERS.keys())
def test_the_bundler_stops_on_what_cannot_be_joined(tree: Path, rooms: dict[str, str], said: str) -> None:
    for name, text in rooms.items():
        add_room(tree, name, text)
    made = bundle(tree)
    assert (made.returncode, made.stdout) == (1, "")
    assert said in made.stderr and "Traceback" not in made.stderr


def test_an_option_that_the_bundler_does_not_know_is_refused(tree: Path) -> None:
    made = bundle(tree, "--help")
    assert (made.returncode, made.stdout, made.stderr) == (2, "", "usage: bundle.py [--write]\n")


def test_every_top_level_name_stands_once_in_the_file() -> None:
    tree = ast.parse(SINGLE_FILE.read_text(encoding="utf-8"))
    names = [one.name for one in tree.body if isinstance(one, (ast.FunctionDef, ast.ClassDef))]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


def test_nothing_of_the_package_is_imported_by_the_file() -> None:
    tree = ast.parse(SINGLE_FILE.read_text(encoding="utf-8"))
    relative = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    assert (
        relative,
        "peekaboo_min." in SINGLE_FILE.read_text(encoding="utf-8").replace("peekaboo_min.py", ""),
    ) == ([], False)


def test_the_native_sources_stand_in_it_as_they_are(tmp_path: Path) -> None:
    ask = "import runpy, sys, json; print(json.dumps(runpy.run_path(sys.argv[1])['EMBEDDED_SOURCES']))"
    done = subprocess.run(
        [sys.executable, "-c", ask, str(SINGLE_FILE)],
        env=clean_environment(tmp_path),
        capture_output=True,
        timeout=60,
    )
    natives = sorted((ROOT / "peekaboo_min" / "native").iterdir())
    assert json.loads(done.stdout) == {path.name: path.read_text(encoding="utf-8") for path in natives}


def test_the_header_for_uv_can_be_read_and_asks_for_what_the_project_asks() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11 reads TOML")
    # the expression of PEP 723
    pattern = r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$"
    (match,) = re.finditer(pattern, SINGLE_FILE.read_text(encoding="utf-8"))
    content = "".join(
        line[2:] if line.startswith("# ") else line[1:] for line in match["content"].splitlines(True)
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (match["type"], tomllib.loads(content)) == (
        "script",
        {"requires-python": project["requires-python"], "dependencies": project["dependencies"]},
    )


# does it work as it says? ----------------------------------------------------------------------------------------


def test_the_file_is_written_in_the_language_of_python_3_9() -> None:
    ast.parse(SINGLE_FILE.read_text(encoding="utf-8"), feature_version=(3, 9))


def old(tmp_path: Path, *words: str) -> subprocess.CompletedProcess:
    """A copy of the file, alone in a folder, by Python 3.9 that has nothing installed."""
    python = old_python()
    if not python:
        pytest.skip("there is no Python 3.9 here, and no package installs it")
    (tmp_path / "alone").mkdir(exist_ok=True)
    shutil.copy(SINGLE_FILE, tmp_path / "alone" / "peek.py")
    environment = {name: value for name, value in clean_environment(tmp_path).items() if name != "PYTHONPATH"}
    return subprocess.run(
        [python, "-I", "-W", "error", "peek.py", *words],
        cwd=tmp_path / "alone",
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["click", "--help"], ["clean"], ["clean", "--json"]]
)
def test_the_file_alone_runs_on_python_3_9_without_mcp(tmp_path: Path, words: list[str]) -> None:
    done = old(tmp_path, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
    assert [path.name for path in (tmp_path / "alone").iterdir()] == ["peek.py"]


def test_serving_without_mcp_says_in_one_sentence_how_to_get_it(tmp_path: Path) -> None:
    done = old(tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "peekaboo-min: serving MCP needs Python 3.10 or newer and the package mcp: "
    )
    assert done.stderr.count("\n") == 1


def test_serving_without_mcp_says_so_in_the_package_too(tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ModuleNotFoundError(\"No module named 'mcp'\", name='mcp')")
    done = subprocess.run(
        [sys.executable, "-m", "peekaboo_min"],
        env={**clean_environment(tmp_path), "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"uv tool install {ROOT}" in done.stderr and f".venv/bin/pip install {ROOT}" in done.stderr

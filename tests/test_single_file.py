"""The single file: made by bundle.py, readable, runs on 3.9 without mcp."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from worlds import ROOT, SINGLE_FILE, Finished, Program, clean_environment, old_python

BUNDLE = ROOT / "scripts" / "bundle.py"
LOADER = ROOT / "scripts" / "single_file_loader.py"


def bundle(root: Path, *argv: str) -> Finished:
    """Run the tree's bundle.py, which bundles the package beside it."""
    return Program([sys.executable, str(root / "scripts" / "bundle.py")], dict(os.environ)).run(*argv)


TRICKY = r"a\'''b''''c\\"
NATIVE = "// \\d \"quoted\" '''\nrun()\n"
CLI = '''"""The way in."""

import json

from ..core.quotes import TAIL, TRICKY
from .. import __version__


def start():
    native = __spec__.loader.get_data(__file__.replace("cli.py", "a.js")).decode()
    print(json.dumps([__version__, native, TRICKY, TAIL, __name__]))
    raise SystemExit(7)
'''
SMALL_PACKAGE = {
    "__init__.py": '"""A small package."""\n\n__version__ = "7.0"\n',
    "core/__init__.py": "",
    "core/quotes.py": f"'''It holds triple quotes.'''\n\nTRICKY = r\"\"\"{TRICKY}\"\"\"\nTAIL = '\\\\'\n",
    "core/__main__.py": "raise SystemExit('not for the single file')\n",
    "frontends/__init__.py": "",
    "frontends/a.js": NATIVE,
    "frontends/cli.py": CLI,
}
SMALL_ANSWER = ["7.0", NATIVE, TRICKY, "\\", "peekaboo_min.frontends.cli"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Create a small package and the bundler."""
    for name, text in SMALL_PACKAGE.items():
        path = tmp_path / "peekaboo_min" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "scripts").mkdir()
    for script in (BUNDLE, LOADER):
        shutil.copy(script, tmp_path / "scripts")
    return tmp_path


def run_single_file(tree: Path) -> Finished:
    environment = {**os.environ, "HOME": str(tree), "XDG_STATE_HOME": str(tree / "state")}
    return Program([sys.executable, str(tree / "scripts" / "peekaboo.py")], environment).run()


def cached_bytecode(tree: Path) -> list[Path]:
    return sorted((tree / "state" / "peekaboo_min" / "bytecode").glob("*"))


def test_single_file_is_what_the_bundler_prints() -> None:
    made = bundle(ROOT)
    assert (made.code, made.err) == (0, "")
    assert made.out == SINGLE_FILE.read_text(encoding="utf-8"), "run: python3 scripts/bundle.py --write"
    assert os.access(SINGLE_FILE, os.X_OK) and made.out.startswith("#!/usr/bin/env ")


def test_bundler_writes_what_it_prints(tree: Path) -> None:
    target, printed = tree / "scripts" / "peekaboo.py", bundle(tree).out
    assert bundle(tree, "--write").out == ""
    assert target.read_text(encoding="utf-8") == printed and os.access(target, os.X_OK)
    assert bundle(tree, "--help") == Finished(2, "", "usage: bundle.py [--write]\n")


def test_single_file_of_a_small_package_also_runs_from_cached_bytecode(tree: Path) -> None:
    bundle(tree, "--write")
    for step in ("compiled", "from cached bytecode", "from truncated bytecode"):
        if "truncated" in step:
            for path in cached_bytecode(tree):
                path.write_bytes(path.read_bytes()[:9])
        done = run_single_file(tree)
        assert (done.code, done.err, json.loads(done.out)) == (7, "", SMALL_ANSWER), step
        # the package, two subpackages, two modules
        modes = [path.stat().st_mode & 0o777 for path in cached_bytecode(tree) if path.stat().st_size > 9]
        assert modes == [0o600] * 5
    version = tree / "peekaboo_min" / "__init__.py"
    version.write_text(version.read_text().replace("7.0", "7.1"))
    bundle(tree, "--write")
    assert json.loads(run_single_file(tree).out)[0] == "7.1", "bytecode of another source is not used"


def test_single_file_uses_no_bytecode_from_a_shared_folder(tree: Path) -> None:
    bundle(tree, "--write")
    folder = tree / "state" / "peekaboo_min" / "bytecode"
    folder.mkdir(parents=True)
    folder.parent.chmod(0o700)
    folder.chmod(0o777)
    assert json.loads(run_single_file(tree).out) == SMALL_ANSWER
    assert cached_bytecode(tree) == []


def test_single_file_traceback_shows_its_lines(tree: Path) -> None:
    cli = tree / "peekaboo_min" / "frontends" / "cli.py"
    cli.write_text(cli.read_text().replace("    raise SystemExit(7)\n", "    1 / 0  # here\n"))
    bundle(tree, "--write")
    lines = (tree / "scripts" / "peekaboo.py").read_text().splitlines()
    number = next(n for n, line in enumerate(lines, 1) if line.endswith("# here"))
    for _ in ("compiled", "from cached bytecode"):
        done = run_single_file(tree)
        assert f'peekaboo.py", line {number}, in start\n    1 / 0  # here\n' in done.err


def test_single_file_contains_every_source_unchanged() -> None:
    lines = SINGLE_FILE.read_text(encoding="utf-8").splitlines()
    titles = {number: re.match(r"SOURCES\['(.+?)'\] = ", line) for number, line in enumerate(lines)}
    starts = {title[1]: number for number, title in titles.items() if title}
    kinds = (".py", ".js", ".swift", ".applescript", ".html", ".md")
    package = [path for path in (ROOT / "peekaboo_min").rglob("*") if path.suffix in kinds]
    assert set(starts) == {str(path.relative_to(ROOT)) for path in package if path.name != "__main__.py"}
    for path, number in starts.items():
        text = (ROOT / path).read_text(encoding="utf-8").splitlines()
        assert lines[number + 1 : number + len(text)] == text[1:], f"{path}, after its first line"


def test_single_file_uv_header_matches_pyproject() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11 reads TOML")
    # the expression of PEP 723
    pattern = r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$"
    (match,) = re.finditer(pattern, SINGLE_FILE.read_text(encoding="utf-8"))
    content = re.sub("(?m)^# ?", "", match["content"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert match["type"] == "script"
    assert tomllib.loads(content) == {key: project[key] for key in ("requires-python", "dependencies")}


def test_single_file_is_written_in_python_3_9() -> None:
    ast.parse(SINGLE_FILE.read_text(encoding="utf-8"), feature_version=(3, 9))


def run_on_python_3_9(tmp_path: Path, *argv: str) -> Finished:
    """Run a copy of the file, alone in a folder, on a bare Python 3.9."""
    python = old_python()
    if not python:
        pytest.skip("there is no Python 3.9 here, and no package installs it")
    (tmp_path / "alone").mkdir(exist_ok=True)
    shutil.copy(SINGLE_FILE, tmp_path / "alone" / "peek.py")
    program = Program([python, "-I", "-W", "error", "peek.py"], clean_environment(tmp_path))
    return program.run(*argv, folder=tmp_path / "alone")


@pytest.mark.parametrize("argv", [["--help"], ["click", "--help"], ["clean", "--json"]])
def test_single_file_alone_runs_on_python_3_9_without_mcp(tmp_path: Path, argv: list[str]) -> None:
    done = run_on_python_3_9(tmp_path, *argv)
    assert (done.code, done.err) == (0, "")
    assert done.out
    assert [path.name for path in (tmp_path / "alone").iterdir()] == ["peek.py"]


def test_serve_without_mcp_names_the_install_command(tmp_path: Path) -> None:
    environment = clean_environment(tmp_path, PYTHONPATH=str(ROOT))
    package = Program([sys.executable, "-S", "-m", "peekaboo_min"], environment).run()
    assert (package.code, package.out, package.err.count("\n")) == (2, "", 1)
    assert f"uv tool install {ROOT}" in package.err and f".venv/bin/pip install {ROOT}" in package.err
    done = run_on_python_3_9(tmp_path)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("peekaboo-min: MCP needs the package mcp 2 and Python 3.10 or newer; ")

"""No code from the working folder or the single file's folder is executed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest
from fake_ai import FakeAI, script
from fakemac import FakeMac
from worlds import ROOT, SINGLE_FILE, ForeignFolder, Program, clean_environment

PACKAGE = ROOT / "peekaboo_min" / "__main__.py"
FORMS = {"package": PACKAGE, "single file": SINGLE_FILE}


def pythons() -> list[str]:
    """Return this Python and one of each other installed version."""
    found = {sys.version_info[:2]: sys.executable}
    for minor in range(9, 16):
        brought = Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python")
        for path in filter(None, [shutil.which(f"python3.{minor}"), *map(str, brought)]):
            works = subprocess.run([path, "-c", ""], capture_output=True, timeout=30).returncode == 0
            if works:  # a version manager's shim may have no Python behind it
                found.setdefault((3, minor), path)
    return list(found.values())


@pytest.fixture
def foreign(tmp_path: Path) -> ForeignFolder:
    return ForeignFolder(tmp_path / "foreign")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("python", pythons())
def test_command_imports_no_module_from_a_foreign_folder(
    tmp_path: Path, foreign: ForeignFolder, python: str, form: str
) -> None:
    program = Program([python, str(FORMS[form])], clean_environment(tmp_path, PYTHONPATH=""))
    argv = ["exec", "--cwd", foreign.path, "--", "list", "server_status", "--json"]
    program.run("doctor", folder=foreign.path)
    done = program.run(*argv, folder=foreign.path)
    assert foreign.executed() == []
    assert done.code == 0 and '"permissions"' in done.out, done.err


@cache
def imported_by_m(python: str) -> list[str]:
    """Return the modules that `python -m PACKAGE` imports before the package's first line."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "probe").mkdir()
        (folder / "probe" / "__init__.py").write_text("import sys\nprint(*sys.modules)\n")
        (folder / "probe" / "__main__.py").write_text("")
        environment = clean_environment(folder, PYTHONPATH="")
        return Program([python, "-m", "probe"], environment).run(folder=folder).out.split()


STARTS = {"-m from elsewhere": "-m peekaboo_min", "-m in a checkout": "-m peekaboo_min", "": "peekaboo.py"}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("python", pythons())
def test_foreign_modules_beside_us_are_not_imported(tmp_path: Path, python: str, start: str) -> None:
    """Ignore the modules that `-m` itself imports before our first line."""
    without = [*imported_by_m(python), "peekaboo_min"] if start else []
    beside = ForeignFolder(tmp_path / "beside", without=without)
    ignored = shutil.ignore_patterns("__pycache__")
    environment = clean_environment(tmp_path, PYTHONPATH=str(ROOT) if "elsewhere" in start else "")
    if "checkout" in start:
        shutil.copytree(ROOT / "peekaboo_min", beside.path / "peekaboo_min", ignore=ignored)
    shutil.copy(SINGLE_FILE, beside.path)
    program = Program([python, *STARTS[start].split()], environment)
    done = program.run("exec", "--", "--version", folder=beside.path)
    assert (beside.executed(), done.code, done.err) == ([], 0, "")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.11 brought -P")
def test_pythonpath_is_kept_with_python_p(tmp_path: Path) -> None:
    """Keep the first entry: with -P it comes from PYTHONPATH."""
    (tmp_path / "textwrap.py").write_text("raise SystemExit('found by PYTHONPATH')\n")
    environment = clean_environment(tmp_path, PYTHONSAFEPATH="1", PYTHONPATH=str(tmp_path))
    for form in FORMS.values():
        done = Program([sys.executable, str(form)], environment).run(folder=tmp_path / "home")
        assert done.err == "found by PYTHONPATH\n"


# both agents start their server with the same code, in two forms
@pytest.mark.parametrize("form", FORMS)
def test_agents_server_imports_no_foreign_module(own_mac: FakeMac, foreign: ForeignFolder, form: str) -> None:
    with FakeAI(brain=script(["FUNCTION_CALL: open_keynote", *["FINAL_ANSWER: [done]"] * 2])) as ai:
        environment = {**own_mac.env(), **ai.env("gemini", "gemini-3.6-flash")}
        program = Program([sys.executable, str(FORMS[form])], environment)
        done = program.run("keynote-agent", "x", "--json", folder=foreign.path)
    assert foreign.executed() == []
    assert "KEYNOTE_READY" in done.out + (foreign.path / "logs" / "agent.log").read_text(encoding="utf-8")

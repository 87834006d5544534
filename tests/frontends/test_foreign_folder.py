"""Nothing of the folder that we are started in is executed, nor of the single file's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Callable

import pytest
from fake_ai import FakeAI, script
from fakemac import FakeMac
from worlds import ROOT, SINGLE_FILE, Finished, ForeignFolder, Form, clean_environment

PACKAGE = ROOT / "peekaboo_min" / "__main__.py"
FORMS = {"package": PACKAGE, "single file": SINGLE_FILE}


def pythons() -> list[str]:
    """This Python, and one of each other version that is here."""
    found = {sys.version_info[:2]: sys.executable}
    for minor in range(9, 16):
        named = [
            shutil.which(f"python3.{minor}"),
            *Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"),
        ]
        for path in filter(None, map(str, filter(None, named))):
            works = subprocess.run([path, "-c", ""], capture_output=True, timeout=30).returncode == 0
            if works:  # a version manager's shim may stand for nothing
                found.setdefault((3, minor), path)
    return list(found.values())


@pytest.fixture
def foreign(tmp_path: Path) -> ForeignFolder:
    return ForeignFolder(tmp_path / "foreign")


def run(words: list[Any], folder: Path, environment: dict[str, str]) -> Finished:
    done = subprocess.run(
        list(map(str, words)),
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        encoding="utf-8",
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def without_pythonpath(tmp_path: Path, **variables: str) -> dict[str, str]:
    environment = clean_environment(tmp_path, **variables)
    del environment["PYTHONPATH"]
    return environment


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("python", pythons())
def test_a_command_and_the_command_line_that_exec_starts_import_nothing_from_there(
    tmp_path: Path, foreign: ForeignFolder, python: str, form: str
) -> None:
    words = [python, FORMS[form], "exec", "--cwd", foreign.path, "--", "list", "server_status", "--json"]
    done = run(words, foreign.path, without_pythonpath(tmp_path))
    assert foreign.executed() == []
    assert (done.code == 0 and '"server_name"' in done.out + done.err) or '"permissions"' in done.out, (
        done.err
    )


@cache
def imported_by_m(python: str) -> list[str]:
    """What `python -m PACKAGE` imports, from the working folder too, before the package's first line."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "probe").mkdir()
        (folder / "probe" / "__init__.py").write_text("import sys\nprint(*sys.modules)\n")
        (folder / "probe" / "__main__.py").write_text("")
        return run([python, "-m", "probe"], folder, without_pythonpath(folder)).out.split()


@pytest.mark.parametrize("python", pythons())
def test_m_imports_nothing_from_there_once_our_first_line_runs(tmp_path: Path, python: str) -> None:
    foreign = ForeignFolder(tmp_path / "foreign", without=[*imported_by_m(python), "peekaboo_min"])
    done = run(
        [python, "-m", "peekaboo_min", "exec", "--", "--version"], foreign.path, clean_environment(tmp_path)
    )
    assert foreign.executed() == []
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize("python", pythons())
def test_a_checkout_runs_in_its_own_folder_without_importing_what_else_lies_there(
    tmp_path: Path, python: str
) -> None:
    checkout = ForeignFolder(tmp_path / "checkout", without=[*imported_by_m(python), "peekaboo_min"])
    shutil.copytree(
        ROOT / "peekaboo_min", checkout.path / "peekaboo_min", ignore=shutil.ignore_patterns("__pycache__")
    )
    done = run(
        [python, "-m", "peekaboo_min", "exec", "--", "--version"], checkout.path, without_pythonpath(tmp_path)
    )
    assert checkout.executed() == []
    assert (done.code, done.err) == (0, "")


def test_python_p_is_respected(tmp_path: Path) -> None:
    """The first entry is PYTHONPATH's then, and stays."""
    folder = tmp_path / "path"
    folder.mkdir()
    (folder / "textwrap.py").write_text("raise SystemExit('found by PYTHONPATH')\n")
    for form in FORMS.values():
        done = run(
            [sys.executable, form],
            tmp_path,
            clean_environment(tmp_path, PYTHONSAFEPATH="1", PYTHONPATH=str(folder)),
        )
        if sys.version_info >= (3, 11):
            assert done.err == "found by PYTHONPATH\n"


@pytest.mark.parametrize("python", pythons())
def test_the_single_file_imports_nothing_that_lies_beside_it(tmp_path: Path, python: str) -> None:
    downloads = ForeignFolder(tmp_path / "downloads")
    shutil.copy(SINGLE_FILE, downloads.path)
    done = run(
        [python, "peekaboo.py", "exec", "--", "--version"], downloads.path, without_pythonpath(tmp_path)
    )
    assert downloads.executed() == [] and done.code == 0, done.err


# Both agents start their server by the same code, which knows two forms: one of them for each.


def test_the_vision_agents_server_imports_nothing_from_there(
    tmp_path: Path, foreign: ForeignFolder, open_form: Callable[..., Form], display: str
) -> None:
    open_form()
    nothing = dict.fromkeys(("x", "y", "button", "clicks", "text", "key", "modifiers", "confidence"))
    with FakeAI(
        brain=lambda request: {**nothing, "action": "done", "done": True, "why": "it is reached"}
    ) as ai:
        environment = without_pythonpath(tmp_path, DISPLAY=display, **ai.env("openai", "gpt-5.4-mini"))
        words = [
            sys.executable,
            SINGLE_FILE,
            "agent",
            "--goal",
            "Look",
            "--app",
            "Form",
            "--run-folder",
            tmp_path / "run",
        ]
        done = run(words, foreign.path, environment)
    assert foreign.executed() == []
    assert done.code == 0, done.err


def test_the_keynote_agents_server_imports_nothing_from_there(
    own_mac: FakeMac, foreign: ForeignFolder
) -> None:
    with FakeAI(brain=script(["FUNCTION_CALL: open_keynote", *["FINAL_ANSWER: [done]"] * 2])) as ai:
        environment = {**own_mac.env(), **ai.env("gemini", "gemini-3.6-flash")}
        done = run([sys.executable, PACKAGE, "keynote-agent", "x", "--json"], foreign.path, environment)
    assert foreign.executed() == []
    assert "KEYNOTE_READY" in done.out + (foreign.path / "logs" / "agent.log").read_text(encoding="utf-8")


def test_a_program_of_the_working_folder_is_not_executed_where_path_names_it(
    tmp_path: Path, foreign: ForeignFolder, display: str
) -> None:
    for name in ("maim", "xdotool", "peekaboo"):
        program = foreign.path / name
        program.write_text(f"#!/bin/sh\necho {name} >> {foreign.path}.log\n")
        program.chmod(0o755)
    path = os.pathsep.join([".", "", os.environ["PATH"]])
    environment = without_pythonpath(tmp_path, DISPLAY=display, PATH=path)
    done = run(
        [sys.executable, PACKAGE, "exec", "--cwd", foreign.path, "--", "image"], foreign.path, environment
    )
    assert foreign.executed() == []
    assert done.code == 0 and "Captured 1 image(s)" in done.out, done.err

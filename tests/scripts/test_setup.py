"""scripts/setup.sh on a PATH of the test's own: what it finds, installs, prints and repairs."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import pytest
from worlds import ROOT, X_PROGRAMS, installed_for_tests, need

# what setup.sh itself runs, without any program that it may find missing
TOOLS = [
    "sh",
    "dirname",
    "id",
    "mktemp",
    "rm",
    "grep",
    "cat",
    "tail",
    "timeout",
    "ln",
    "mkdir",
    "sleep",
    "find",
    "cksum",
    "sort",
    "kill",
]
DESKTOP = {
    "Xvfb": "xvfb", "openbox": "openbox", "xcompmgr": "xcompmgr", "wish": "tk", "xwininfo": "x11-utils",
    "xprop": "x11-utils", "xdpyinfo": "x11-utils", "maim": "maim", "xdotool": "xdotool", "xclip": "xclip",
    "convert": "imagemagick", "tesseract": "tesseract-ocr",
}  # fmt: skip
# what the real ones print
ANSWERS = {
    "openbox": "Openbox 3.6.1", "xwininfo": "xwininfo 1.1.5", "xprop": "xprop:  unable to open display ''",
    "maim": "v5.7.4", "xdpyinfo": "xdpyinfo 1.3.2", "xdotool": "xdotool version 3.20160805.1",
    "xclip": "xclip version 0.13", "convert": "Version: ImageMagick 6.9.11-60 Q16",
    "tesseract": "tesseract 5.3.0", "magick": "Version: ImageMagick 7.1.1", "node": "v20.1.0",
}  # fmt: skip
REFUSING = "echo 'ImageMagick is not installed here' >&2; exit 1"
HANGING = "trap '' TERM; sleep 60"


@dataclass
class Machine:
    """A copy of scripts/ and a PATH: `first` and `later` hold programs, `tools` what setup.sh runs."""

    folder: Path

    def program(self, name: str, script: str, where: str = "later") -> Path:
        path = self.folder / where / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def have(self, *names: str, where: str = "later") -> None:
        for name in names:
            self.program(name, f'echo "{ANSWERS.get(name, name)}" >&2', where)

    def run(self, script: str, shell: str = "sh", **variables: str) -> subprocess.CompletedProcess:
        """A script that has read setup.sh, as demo.sh and test.sh do."""
        path = ":".join(str(self.folder / one) for one in ("first", "later", "tools"))
        words = [
            shutil.which(shell) or shell,
            "-euc",
            f". '{ROOT}/scripts/setup.sh'\n{NO_SYSTEM}\n{script}",
            str(self.folder / "scripts" / "x.sh"),
        ]
        return subprocess.run(
            words,
            env={"PATH": path, "LOG": str(self.calls_file), **variables},
            capture_output=True,
            text=True,
            timeout=100,
            stdin=subprocess.DEVNULL,
        )

    @property
    def calls_file(self) -> Path:
        return self.folder / "calls"

    def calls(self) -> list[str]:
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []

    @property
    def venv(self) -> Path:
        return self.folder / ".venv"


# the folders that are always searched would bring the real programs of this machine
NO_SYSTEM = "system_folders=$PATH"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return new_machine(tmp_path)


def new_machine(folder: Path) -> Machine:
    made = Machine(folder / "a path with spaces and ü")
    for name in ("first", "later", "tools", "scripts"):
        (made.folder / name).mkdir(parents=True)
    for name in TOOLS:
        found = shutil.which(name)
        if found:
            (made.folder / "tools" / name).symlink_to(found)
    (made.folder / "tools" / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (made.folder / "tools" / "python3").chmod(0o755)
    return made


def with_apt(machine: Machine, user: int, brings: dict[str, str]) -> None:
    """An apt-get that notes how it was called, and brings programs; an id that says who we are."""
    (machine.folder / "packages").mkdir()
    for name, script in brings.items():
        machine.program(name, script, "packages")
    copies = f'cp "{machine.folder}/packages/"* "{machine.folder}/later/" 2>/dev/null; true'
    script = f'while [ "$1" != install ] && [ "$1" != update ]; do shift; done; echo "$*" >> "$LOG"; {copies}'
    machine.program("apt-get", script, "tools")
    (machine.folder / "tools" / "id").unlink()
    machine.program("id", f"echo {user}", "tools")
    (machine.folder / "tools" / "cp").symlink_to(shutil.which("cp") or "/bin/cp")


def answering(*names: str) -> dict[str, str]:
    return {name: f'echo "{ANSWERS.get(name, name)}"' for name in names}


INSTALL = "install --no-install-recommends "
NO_VENV = """case "$*" in
*ensurepip*) exit 1 ;;
*"-m venv"*) for last; do :; done; "{python}" -m venv --without-pip "$last"; exit 1 ;;
esac
exec "{python}" "$@\""""


def packages(line: str) -> list[str]:
    """The packages that a line names; fonts are looked for on the machine itself."""
    return [one for one in line.split("recommends ")[1].split() if not one.startswith("fonts-")]


@pytest.fixture(params=[one for one in ("dash", "bash") if shutil.which(one)])
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_where_all_is_there_nothing_is_printed_or_installed(machine: Machine, shell: str) -> None:
    machine.have(*DESKTOP, "node")
    with_apt(machine, 0, {})
    done = machine.run("need_desktop node:nodejs; command -v convert", shell)
    assert (done.returncode, done.stdout) == (0, f"{machine.folder}/later/convert\n"), done.stderr
    assert [one for call in machine.calls() for one in packages(call)] == []


def test_all_that_is_missing_is_named_in_one_line_once(machine: Machine, shell: str) -> None:
    machine.program("convert", REFUSING, "first")
    machine.program("python3", NO_VENV.format(python=sys.executable), "first")
    with_apt(machine, 1000, {})
    done = machine.run("need_desktop node:nodejs || make_environment pytest", shell)
    assert (done.returncode, machine.calls(), done.stdout) == (1, [], "")
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith(
        "please run: sudo apt-get install --no-install-recommends "
    )
    assert packages(lines[0]) == [*dict.fromkeys(DESKTOP.values()), "nodejs", "python3-venv"]


def test_root_installs_all_in_one_go_and_other_programs_are_replaced(machine: Machine, shell: str) -> None:
    machine.program("convert", REFUSING, "first")
    # two shells may say different things about a program that they had to kill; dash has nothing to say
    machine.program("maim", HANGING if shell == "bash" else REFUSING, "first")
    machine.have(*(one for one in DESKTOP if one not in ("convert", "maim")))
    with_apt(machine, 0, answering("convert", "maim"))
    done = machine.run("need_desktop; convert -version; maim", shell)
    assert (done.returncode, [packages(one) for one in machine.calls()]) == (0, [["maim", "imagemagick"]]), (
        done.stderr
    )
    assert done.stderr.splitlines()[0].startswith("installing maim imagemagick")
    assert done.stdout == f"{ANSWERS['convert']}\n{ANSWERS['maim']}\n"


def test_a_real_one_further_along_path_is_reached_and_nothing_installed(machine: Machine, shell: str) -> None:
    for name in ("convert", "xclip"):
        machine.program(name, REFUSING, "first")
    machine.have(*DESKTOP)
    with_apt(machine, 1000, {})
    done = machine.run("need_desktop; convert; xclip", shell)
    said = [one for one in done.stderr.splitlines() if not one.startswith("please run")]
    assert (done.returncode, said) == (0, [ANSWERS["convert"], ANSWERS["xclip"]])


def test_magick_is_convert_where_that_is_all_there_is(machine: Machine, shell: str) -> None:
    machine.have(*(one for one in DESKTOP if one != "convert"), "magick")
    with_apt(machine, 1000, {})
    done = machine.run("need_desktop; convert", shell)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, ANSWERS["magick"])


def test_what_apt_does_not_bring_is_reported(machine: Machine, shell: str) -> None:
    machine.program("convert", REFUSING, "first")
    machine.have(*(one for one in DESKTOP if one != "convert"))
    with_apt(machine, 0, {"convert": REFUSING})
    done = machine.run("need_desktop", shell)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "still missing, or another program of that name: convert; please run: "
    )


def test_an_apt_that_fails_says_why_and_what_next_in_one_sentence(machine: Machine, shell: str) -> None:
    with_apt(machine, 0, {})
    machine.program(
        "apt-get",
        'echo "W: old"; echo "E: Unable to fetch some archives" >&2; echo called >> "$LOG"; exit 100',
        "tools",
    )
    done = machine.run("need_desktop", shell)
    assert (done.returncode, machine.calls()) == (1, ["called"] * 2)
    lines = done.stderr.splitlines()
    assert len(lines) == 2 and lines[0].startswith("installing xvfb")
    assert lines[1].startswith(
        "apt-get could not install this (E: Unable to fetch some archives); check the network connection"
    )


def test_an_old_list_of_packages_is_fetched_anew(machine: Machine, shell: str) -> None:
    machine.have(*(one for one in DESKTOP if one != "maim"))
    with_apt(machine, 0, answering("maim"))
    (machine.folder / "tools" / "apt-get").rename(machine.folder / "tools" / "good-apt")
    script = (
        'case "$*" in *update*) touch "$LOG.new" ;; *) [ -e "$LOG.new" ] || exit 100 ;; esac; '
        f'exec "{machine.folder}/tools/good-apt" "$@"'
    )
    machine.program("apt-get", script, "tools")
    (machine.folder / "tools" / "touch").symlink_to(shutil.which("touch") or "/bin/touch")
    done = machine.run("need_desktop", shell)
    assert (done.returncode, machine.calls()[0], packages(machine.calls()[1])[0]) == (0, "update", "maim"), (
        done.stderr
    )


def test_without_apt_the_packages_are_named(machine: Machine, shell: str) -> None:
    done = machine.run("need_desktop", shell)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "missing: xvfb openbox" in done.stderr and "install them" in done.stderr


def test_a_long_installation_reports_every_ten_seconds(machine: Machine, shell: str) -> None:
    machine.program("sleep", "[ $1 != 10 ] || exec /bin/sleep 0.01", "first")
    waits = "while [ ! -e '$LOG' ]; do /bin/sleep 0.01; done; exit 7"
    script = f'log=/dev/null; run_with_progress installing sh -c "{waits}"'
    path = machine.calls_file
    words = [
        shutil.which(shell) or shell,
        "-uc",
        f". '{ROOT}/scripts/setup.sh'\n{script}",
        str(machine.folder / "scripts" / "x.sh"),
    ]
    environment = {"PATH": f"{machine.folder}/first:{machine.folder}/tools", "LOG": str(path)}
    with subprocess.Popen(
        words, env=environment, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stderr is not None
        assert [process.stderr.readline() for _ in range(2)] == [
            f"still installing ({seconds} s)\n" for seconds in (10, 20)
        ]
        path.write_text("")
        process.communicate(timeout=30)
    assert process.returncode == 7


def test_all_that_a_test_needs_is_installed_by_the_script() -> None:
    """Names that a test computes are compared by need() itself: see tests/support/worlds.py."""
    calls = [
        node
        for path in (ROOT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("need", "need_elements")
    ]
    needed = {word.value for call in calls for word in call.args if isinstance(word, ast.Constant)}
    assert {"wmctrl", "node", "tesseract"} <= needed
    assert needed | {*X_PROGRAMS} <= installed_for_tests()
    unlisted = "true"
    with pytest.raises(AssertionError, match=r"test\.sh does not install true"):
        need(unlisted)


# .venv ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made_environment(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A machine with an environment by make_venv, which takes seconds, and a copy of it to go back to."""
    machine = new_machine(tmp_path_factory.mktemp("environment"))
    assert machine.run("has_environment || make_venv").returncode == 0
    shutil.copytree(machine.venv, machine.folder / "kept", symlinks=True, copy_function=os.link)
    return machine


@pytest.fixture
def with_environment(made_environment: Machine) -> Iterator[Machine]:
    """The machine with its environment as it was made, whatever a test does to it."""
    yield made_environment
    if made_environment.venv.is_dir():
        shutil.rmtree(made_environment.venv)
    else:
        made_environment.venv.unlink()
    kept = made_environment.folder / "kept"
    shutil.copytree(kept, made_environment.venv, symlinks=True, copy_function=os.link)


def lose_pip(venv: Path) -> None:
    for path in venv.glob("lib/python*/site-packages/pip*"):
        shutil.rmtree(path)


def lose_python(venv: Path) -> None:
    (venv / "bin" / "python").unlink()
    (venv / "bin" / "python").symlink_to("/no/such/python")


def be_of_another_folder(venv: Path) -> None:
    pip = venv / "bin" / "pip"
    text = pip.read_text(encoding="utf-8")
    pip.unlink()  # its text is shared with the copy
    pip.write_text(text.replace(str(venv), "/moved/from/here/.venv"), encoding="utf-8")


def be_a_file(venv: Path) -> None:
    shutil.rmtree(venv)
    venv.write_text("")


@pytest.mark.parametrize("damage", [lose_pip, lose_python, be_of_another_folder, be_a_file])
def test_a_damaged_environment_is_noticed(with_environment: Machine, damage: Callable[[Path], None]) -> None:
    assert with_environment.run("has_environment").returncode == 0
    damage(with_environment.venv)
    assert with_environment.run("has_environment").returncode != 0


def test_what_is_no_environment_is_replaced(with_environment: Machine) -> None:
    be_a_file(with_environment.venv)
    done = with_environment.run("make_venv; has_environment")
    errors = [line for line in done.stderr.splitlines() if not line.startswith("still ")]
    assert (done.returncode, errors) == (0, [])


def test_an_environment_without_pip_waits_for_venv_support_and_then_heals(machine: Machine) -> None:
    python = machine.program("python3", NO_VENV.format(python=sys.executable), "first")
    subprocess.run([str(python), "-m", "venv", str(machine.venv)], check=False)
    assert (machine.venv / "bin" / "python").exists()
    done = machine.run("has_environment || make_venv")
    assert (
        done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "missing: python3-venv" in done.stderr
    )
    with_apt(machine, 0, {"python3": f'exec "{sys.executable}" "$@"'})
    python.rename(machine.folder / "later" / "python3")
    done = machine.run("has_environment || make_venv; has_environment")
    assert (done.returncode, machine.calls()) == (0, [INSTALL + "python3-venv"]), done.stderr


def test_a_pip_that_fails_says_so_in_one_sentence(with_environment: Machine) -> None:
    machine = with_environment
    (machine.folder / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'nothing'\n"
    )
    (machine.folder / "README.md").write_text("")
    (machine.folder / "peekaboo_min").mkdir()
    done = machine.run("make_environment pytest", PIP_INDEX_URL="http://127.0.0.1:9/simple")
    assert done.returncode == 1
    lines = [one for one in done.stderr.splitlines() if not one.startswith("still ")]
    assert len(lines) == 1 and lines[0].startswith("pip could not install peekaboo_min and pytest (ERROR")
    assert not (machine.venv / "installed-from").exists()

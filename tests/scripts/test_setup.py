"""scripts/setup.sh on a PATH of fake programs: checks, installs, repairs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from worlds import ROOT, Finished, Program, executable

# programs that setup.sh itself runs; it never reports these as missing
TOOLS = "sh dirname id mktemp mkdir rm grep cat tail tr find cksum sort cp ln"
PACKAGES = {
    "Xvfb": "xvfb",
    "wish": "tk",
    "xwininfo": "x11-utils",
    "xprop": "x11-utils",
    "xdpyinfo": "x11-utils",
    "convert": "imagemagick",
    "tesseract": "tesseract-ocr",
    "python3": "python3-venv",
    **{name: name for name in ("openbox", "xcompmgr", "dbus-daemon", "maim", "xdotool", "xclip")},
}
CONVERT = "echo 'Version: ImageMagick 6.9.11-60 Q16'"
NO_PYTHON = "find_python() { return 1; }"  # it also searches /usr/bin
REFUSING = "echo 'this is not it' >&2; exit 1"
# creates environments of one file: a Python that imports everything and logs its pip calls
PYTHON = """case "$*" in
*"-m venv"*) for last; do :; done; mkdir -p "$last/bin"; cp "$0" "$last/bin/python" ;;
*"-m pip"*) echo "pip $*" >>"$LOG"; [ ! -e "$LOG.offline" ] || { echo 'ERROR: no network'; exit 1; } ;;
esac"""


@dataclass
class Machine:
    """A copy of scripts/ and a PATH, with installed `programs` and apt-get's `packages`."""

    folder: Path

    def program(self, name: str, script: str = ":", where: str = "programs") -> None:
        (self.folder / where / name).unlink(missing_ok=True)  # it may be a link to a real program
        executable(self.folder / where / name, script)

    def have(self, *names: str, where: str = "programs") -> None:
        for name in names:
            self.program(name, {"convert": CONVERT, "python3": PYTHON}.get(name, ":"), where)

    def with_apt(self, user: int, before: str = ":") -> None:
        """Add an apt-get that logs its arguments, runs `before` and installs `packages`."""
        note = 'while [ "$1" != install ] && [ "$1" != update ]; do shift; done; echo "$*" >>"$LOG"'
        self.program("apt-get", f'{note}\n{before}\ncp "{self.folder}"/packages/* "{self.folder}/programs/"')
        self.program("id", f"echo {user}", "tools")

    def run(self, script: str, shell: str = "sh") -> Finished:
        """Run a script that sources setup.sh, like demo.sh and test.sh."""
        # without the folders that setup.sh adds: they hold this machine's real programs
        path = f"{self.folder}/programs:{self.folder}/tools"
        text = f". '{ROOT}/scripts/setup.sh'\nPATH='{path}'\n{script}"
        argv = [shutil.which(shell) or shell, "-euc", text, str(self.folder / "scripts" / "x.sh")]
        return Program(argv, {"PATH": path, "LOG": str(self.log)}).run()

    @property
    def log(self) -> Path:
        return self.folder / "calls"

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path / "a path with spaces and ü")
    for name in ("programs", "packages", "tools", "scripts", "peekaboo_min"):
        (made.folder / name).mkdir(parents=True)
    for name in TOOLS.split():
        (made.folder / "tools" / name).symlink_to(shutil.which(name) or name)
    for name in ("pyproject.toml", "README.md"):
        (made.folder / name).touch()
    return made


@pytest.fixture(params=[name for name in ("dash", "bash") if shutil.which(name)])
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def packages(line: str) -> set[str]:
    """Return the packages that a line names, without fonts: setup.sh finds the machine's."""
    return {name for name in line.split("recommends ")[1].split() if not name.startswith("fonts-")}


def test_setup_names_all_missing_packages_in_one_line(machine: Machine, shell: str) -> None:
    machine.program("convert", REFUSING)
    machine.with_apt(1000)
    done = machine.run(f"{NO_PYTHON}; need_desktop node:nodejs", shell)
    assert (done.code, machine.calls(), done.out) == (1, [], "")
    (line,) = done.err.splitlines()
    assert line.startswith("please run: sudo apt-get install --no-install-recommends ")
    assert packages(line) == {*PACKAGES.values(), "nodejs"}
    (machine.folder / "programs" / "apt-get").unlink()
    done = machine.run("need_desktop", shell)
    assert done.code == 1 and done.err.startswith("please install these Debian packages, or what")
    machine.have(*PACKAGES, "node")
    machine.with_apt(0)
    done = machine.run("need_desktop node:nodejs", shell)
    assert [name for call in machine.calls() for name in packages(call)] == []
    assert done.code == 0, done.err


def test_setup_as_root_retries_the_installation_after_an_update(machine: Machine) -> None:
    machine.have(*(name for name in PACKAGES if name != "maim"))
    machine.program("convert", REFUSING)
    machine.have("convert", "maim", where="packages")
    machine.with_apt(0, 'case $1 in update) : >"$LOG.new" ;; *) [ -e "$LOG.new" ] || exit 100 ;; esac')
    done = machine.run("need_desktop")
    assert done.code == 0, done.err
    assert [call.split()[0] for call in machine.calls()] == ["install", "update", "install"]
    assert packages(machine.calls()[-1]) == {"maim", "imagemagick"}


def test_setup_reports_why_apt_failed_or_the_missing_package(machine: Machine, shell: str) -> None:
    machine.with_apt(0, "echo 'E: Unable to fetch some archives' >&2; exit 100")
    done = machine.run("need_desktop", shell)
    lines = done.err.splitlines()
    assert done.code == 1 and len(lines) == 2 and lines[0].startswith("installing ")
    network = "check the network connection, then run: apt-get install "
    assert lines[1].startswith(f"failed (E: Unable to fetch some archives); {network}")
    machine.have(*PACKAGES, where="packages")
    machine.program("convert", REFUSING, "packages")  # not ImageMagick's convert
    machine.with_apt(0)
    done = machine.run("need_desktop", shell)
    assert (done.code, done.err.splitlines()[-1].strip()) == (1, "still missing: imagemagick")


def test_setup_skips_another_program_called_convert(machine: Machine, shell: str) -> None:
    machine.have(*PACKAGES)
    (machine.folder / "others").mkdir()
    machine.program("convert", REFUSING, "others")
    others = f'PATH="{machine.folder}/others:$PATH"'
    done = machine.run(f"{others}; need_desktop && make_environment && convert -version", shell)
    assert (done.code, done.out) == (0, "Version: ImageMagick 6.9.11-60 Q16\n"), done.err


def test_setup_rebuilds_a_broken_environment(machine: Machine, shell: str) -> None:
    def made() -> list[str]:
        return machine.run("make_environment pytest", shell).err.splitlines()

    machine.have("python3")
    venv = machine.folder / ".venv"
    venv.write_text("no environment")
    whole = [f"making {venv}", "installing Python packages"]
    offline = Path(f"{machine.log}.offline")
    offline.touch()
    problem = "failed (ERROR: no network); check the network connection, then run this again"
    assert made() == [*whole, problem]
    offline.unlink()
    assert (made(), made()) == (whole[1:], [])
    assert machine.calls()[-1].endswith(f" {machine.folder} pytest")
    (machine.folder / "peekaboo_min" / "new.py").touch()
    assert made() == whole[1:]
    (venv / "bin" / "python").unlink()
    assert made() == whole


def test_setup_without_a_python_names_its_package(machine: Machine) -> None:
    machine.with_apt(1000)
    done = machine.run(f"{NO_PYTHON}; make_environment")
    assert (done.code, packages(done.err)) == (1, {"python3-venv"})

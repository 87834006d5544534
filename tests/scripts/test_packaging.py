"""The source distribution, wheel, bundle and registry entry are complete."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path

import pytest
from worlds import ROOT, Program, need_optional

from peekaboo_min import __version__
from peekaboo_min.core.settings import VARIABLES
from peekaboo_min.tools.table import TOOLS

SERVER = json.loads((ROOT / "scripts/server.json").read_text(encoding="utf-8"))
# files that setuptools adds to a source distribution
GENERATED = re.compile(r"PKG-INFO|setup\.cfg|[^/]+\.egg-info/.*")
# the same call as `python -m build --sdist`, without the package build
BUILD = "import sys; sys.path.insert(0, 'scripts'); import build_backend; build_backend.build_{}(sys.argv[1])"
GIT = Program(["git", "-c", "safe.directory=*", "-C", str(ROOT)], {"PATH": os.environ["PATH"]})
OFFLINE = "Could not find a version|connection|Temporary failure|No matching distribution"


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    """Return the paths of the files that git tracks."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("this is not a git checkout; there are no tracked files to compare with")
    return [name for name in GIT.run("ls-files", "-z").out.split("\0") if name and (ROOT / name).exists()]


@pytest.fixture(scope="module")
def sdist(tracked: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source distribution from the tracked files and some that must stay out."""
    folder = tmp_path_factory.mktemp("sdist")
    for name in tracked:
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / "source" / name)
    untracked = ["scripts/.env", "scripts/token.json", "tests/__pycache__/x.cpython-311.pyc"]
    for name in [*untracked, "demo-output/a.png"]:
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "source" / name).write_text("of this machine only")
    # the environment's setuptools may be missing or too old for the license field
    run_pip("install", "-q", "--target", str(folder / "backend"), "setuptools>=77")
    return build("sdist", folder)


def build(kind: str, folder: Path) -> Path:
    environment = {**os.environ, "PYTHONPATH": str(folder / "backend")}
    program = Program([sys.executable, "-c", BUILD.format(kind)], environment)
    done = program.run(folder / kind, folder=folder / "source")
    assert done.code == 0, done.err[-3000:]
    (made,) = (folder / kind).iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(sdist: Path) -> zipfile.ZipFile:
    """Build the wheel from the source distribution."""
    run_pip("wheel", "--no-deps", "-q", "-w", str(sdist.parent / "made"), str(sdist))
    (made,) = (sdist.parent / "made").glob("*.whl")
    return zipfile.ZipFile(made)


def run_pip(*argv: str) -> None:
    done = Program([sys.executable, "-m", "pip"], dict(os.environ)).run(*argv, timeout_s=300)
    if done.code and re.search(OFFLINE, done.err) and not os.environ.get("CI"):
        pytest.skip("no package index is reachable; the build needs setuptools")
    assert done.code == 0, done.err[-3000:]


def test_sdist_holds_the_whole_package_and_no_untracked_file(sdist: Path, tracked: list[str]) -> None:
    with tarfile.open(sdist) as archive:
        names = [member.name.split("/", 1)[1] for member in archive if member.isfile()]
    held = {name for name in names if not GENERATED.fullmatch(name)}
    package = {name for name in tracked if name.startswith("peekaboo_min/")}
    assert package | {"LICENSE", "README.md", "pyproject.toml"} <= held <= set(tracked)
    assert not [name for name in held if name.startswith("tests/")], "all tests or none: none works alone"


def test_wheel_is_the_same_in_every_build(sdist: Path, wheel: zipfile.ZipFile) -> None:
    assert wheel.filename
    assert build("wheel", sdist.parent.parent).read_bytes() == Path(wheel.filename).read_bytes()


def test_wheel_holds_the_package_command_and_licence(wheel: zipfile.ZipFile, tracked: list[str]) -> None:
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert held == {name for name in tracked if name.startswith("peekaboo_min/")}
    info = {
        name.partition(".dist-info/")[2]: wheel.read(name).decode("utf-8")
        for name in set(wheel.namelist()) - held
    }
    assert "peekaboo-min = peekaboo_min.frontends.cli:start" in info["entry_points.txt"]
    assert info["licenses/LICENSE"] == (ROOT / "LICENSE").read_text(encoding="utf-8")
    metadata = message_from_string(info["METADATA"])
    assert (metadata["License-Expression"], metadata.get_all("License-File")) == ("MIT", ["LICENSE"])
    versions = re.findall(r"Python :: 3\.(\d+)$", "\n".join(metadata.get_all("Classifier", [])), re.MULTILINE)
    assert metadata["Requires-Python"] == f">=3.{min(map(int, versions))}"
    description = str(metadata.get_payload())
    assert "pipx install peekaboo-min" in description
    assert re.findall(r"\]\((?!https:)", description) == [], "the package index has no repository's files"
    # proves to the registry that the release is ours
    assert f"<!-- mcp-name: {SERVER['name']} -->" in description


def test_bundle_manifest_is_accepted_by_the_clients_validator(tmp_path: Path) -> None:
    built = Program(["sh", str(ROOT / "scripts/mcpb.sh")], dict(os.environ)).run(tmp_path)
    assert built.code == 0, built.err
    with zipfile.ZipFile(tmp_path / "peekaboo-min.mcpb") as bundle:
        assert sorted(bundle.namelist()) == ["LICENSE", "manifest.json", "peekaboo.py"]
        manifest = json.loads(bundle.read("manifest.json"))
    assert [tool["name"] for tool in manifest["tools"]] == list(TOOLS)
    need_optional("npx")
    npx = Program(["npx", "--yes", "@anthropic-ai/mcpb@2.1.2"], dict(os.environ))
    done = npx.run("validate", tmp_path / "mcpb/manifest.json", folder=tmp_path, timeout_s=240)
    if "npm error" in done.err:
        pytest.skip("the validator cannot be fetched")
    assert "validation passes" in done.out, done.out + done.err


def test_registry_entry_matches_the_package() -> None:
    package = SERVER["packages"][0]
    assert (SERVER["version"], package["version"]) == (__version__, __version__)
    assert (package["registryType"], package["identifier"]) == ("pypi", "peekaboo-min")
    assert package["transport"] == {"type": "stdio"}
    assert 0 < len(SERVER["description"]) <= 100, "the registry's limit"
    known = {variable.name for variable in VARIABLES.values()}
    assert {variable["name"] for variable in package["environmentVariables"]} <= known
    assert {"DISPLAY", "XAUTHORITY"} <= {variable["name"] for variable in package["environmentVariables"]}
    secret = {variable["name"] for variable in package["environmentVariables"] if variable.get("isSecret")}
    assert secret == {name for name in known if name.endswith("_API_KEY")}


def test_git_ignores_the_files_of_runs(tracked: list[str]) -> None:
    # spec: "keep `logs/` and any exported images out of version control via `.gitignore`"
    left = ["logs/agent.log", ".env", "screen.png", "slide.jpg", "peekaboo-run-20260101/run.json"]
    assert GIT.run("check-ignore", "--no-index", *left).out.split() == left

"""check.sh, the workflow and CONTRIBUTING.md parse and name existing files."""

from __future__ import annotations

import re
import subprocess

from fakemac import FakeMac
from worlds import ROOT

CHECK = ROOT / "scripts" / "check.sh"
WORKFLOW = ROOT / ".github" / "workflows" / "test.yml"
CONTRIBUTING = ROOT / ".github" / "CONTRIBUTING.md"


def test_scripts_are_valid_shell() -> None:
    for path in (ROOT / "scripts").glob("*.sh"):
        done = subprocess.run(["sh", "-n", str(path)], capture_output=True, text=True, timeout=30)
        assert (path.name, done.returncode, done.stderr) == (path.name, 0, "")


def test_check_pins_its_tools_and_the_package_does_not_need_them() -> None:
    tools = re.findall(r"^tools='(.*)'$", CHECK.read_text(encoding="utf-8"), re.MULTILINE)
    assert re.fullmatch(r"ruff==[\d.]+ mypy==[\d.]+", "".join(tools))
    assert not re.search(r"\b(ruff|mypy)\b.*[=<>]=", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_workflow_runs_our_scripts_on_the_oldest_and_newest_python() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    assert re.findall(r"run: sh (\S+)", text) == ["scripts/test.sh", "scripts/check.sh"]
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    minors = sorted(re.findall(r"Python :: 3\.(\d+)", project), key=int)
    assert re.findall(r'"3\.(\d+)"', text) == [minors[0], minors[-1]]
    assert 'CI: "true"' in text and "secrets" not in text and "\t" not in text


def test_contributing_names_only_existing_files() -> None:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    named = re.findall(
        r"(?:peekaboo_min|tests|scripts|support|desktop|frontends|system|automation)/[\w./]*", text
    )
    folders = (ROOT, ROOT / "tests", ROOT / "peekaboo_min")
    missing = [
        name for name in named if not any(list(folder.glob(f"{name.rstrip('./')}*")) for folder in folders)
    ]
    assert len(named) > 20 and missing == []
    assert set(re.findall(r"mac\.(\w+)\(", text)) <= set(dir(FakeMac))

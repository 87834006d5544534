"""README.md: what it shows runs, or at least parses, as it stands; its links lead somewhere; it is short."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from fakemac import FakeMac
from in_process import InProcessProgram
from macs import mac_environment
from worlds import PATIENCE_S, ROOT, clean_environment, need

from peekaboo_min.core.settings import VARIABLES
from peekaboo_min.frontends.arguments import JSON_FLAGS, read_signature, shell_arguments
from peekaboo_min.frontends.tools import COMMANDS, load_function

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
SHELL = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
JSON = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)]
CODE = [" ".join(each.split()) for each in re.findall(r"(?<!`)`([^`]+)`", TEXT)]
COMMAND = re.compile(r"(?:^|/|^python3 .*)peekaboo(?:-min|\.py) ([a-z].*?) *(?:>.*|&.*)?$")
LINES = [found[1] for line in [*"".join(SHELL).splitlines(), *CODE] if (found := COMMAND.search(line))]


def test_readme_is_short_before_its_generated_reference() -> None:
    text = TEXT.split("<!-- commands -->")[0]
    assert len(text.splitlines()) <= 220 and len(text.split()) <= 2100


def test_readme_links_lead_somewhere() -> None:
    headings = re.findall(r"^#+ (.+)$", TEXT, re.MULTILINE)
    anchors = ["#" + re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
    links = re.findall(r"\]\((?!https?:)([^)]*)\)", TEXT)
    assert len(set(anchors)) == len(anchors) and len(links) > 10
    assert [link for link in links if link not in anchors and not (ROOT / link).exists()] == []


def test_readme_commands_are_all_understood() -> None:
    assert len(LINES) > 50
    for line in LINES:
        words = [word for word in shlex.split(line) if word not in JSON_FLAGS]
        name = max((each for each in COMMANDS if f"{line} ".startswith(f"{each} ")), key=len)
        if words != ["focus"]:  # a symptom's cure names no window
            shell_arguments(
                name, read_signature(load_function(COMMANDS[name]), True), words[len(name.split()) :]
            )


def test_readme_script_signs_the_form_and_leaves_its_json(display: str, tmp_path: Path) -> None:
    need("wish", "tesseract")
    program = tmp_path / "peekaboo-min"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/peekaboo_min/__main__.py" "$@"\n')
    program.chmod(0o755)
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    environment = {**clean_environment(tmp_path, DISPLAY=display), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for block in SHELL[-2:]:
        words = ["sh", "-euc", block.replace("\nuv run", "\n: uv run")]  # which would fetch the package mcp
        subprocess.run(words, env=environment, cwd=tmp_path, check=True, timeout=2 * PATIENCE_S)
    events = [json.loads(line) for line in (tmp_path / "report.jsonl").read_text("utf-8").splitlines()]
    assert [event["name"] for event in events if event["event"] == "sign"] == ["Grüße, 世界"]
    answer = json.loads((tmp_path / "form.json").read_text("utf-8"))
    answer["data"].update(window_id=6291489, waited_s=0.4, bounds=JSON[1]["data"]["bounds"])
    assert answer == JSON[1] and (tmp_path / "signed.png").exists()


def test_readme_json_is_what_config_writes(mac: FakeMac, tmp_path: Path, display: str) -> None:
    on_mac = InProcessProgram(mac_environment(mac))
    written: dict[str, Any] = json.loads(on_mac.run("config", "claude-desktop").out)
    written["mcpServers"]["peekaboo"].update(command="/Users/ada/.local/bin/peekaboo-min", args=[])
    assert JSON[0] == written and JSON[2].keys() <= {variable.name for variable in VARIABLES.values()}
    assert [on_mac.run(word).code for word in ("permissions", "doctor")] == [0, 0]
    on_x11 = InProcessProgram(clean_environment(tmp_path, DISPLAY=display))
    assert [on_x11.run(*line.split()).code for line in ("doctor", "config codex", "clean --all")] == [0, 0, 0]

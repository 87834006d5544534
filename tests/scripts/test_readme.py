"""README.md: its commands run or parse, its links exist, and it is short."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fakemac import FakeMac
from in_process import InProcessProgram
from macs import mac_environment
from worlds import PATIENCE_S, ROOT, Program, clean_environment, executable, need

from peekaboo_min.core.settings import VARIABLES
from peekaboo_min.frontends.arguments import JSON_FLAGS, read_signature, shell_arguments
from peekaboo_min.tools.table import COMMANDS

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
SHELL = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
JSON = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)]
CODE = [" ".join(code.split()) for code in re.findall(r"(?<!`)`([^`]+)`", TEXT)]
COMMAND = re.compile(r"(?:^|/|^python3 .*)peekaboo(?:-min|\.py) ([a-z].*?) *(?:>.*|&.*)?$")
LINES = [found[1] for line in [*"".join(SHELL).splitlines(), *CODE] if (found := COMMAND.search(line))]


def test_readme_is_short_before_its_generated_reference() -> None:
    text = TEXT.split("<!-- commands -->")[0]
    assert len(text.splitlines()) <= 220 and len(text.split()) <= 2100


def test_readme_links_exist() -> None:
    headings = re.findall(r"^#+ (.+)$", TEXT, re.MULTILINE)
    anchors = ["#" + re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
    links = re.findall(r"\]\((?!https?:)([^)]*)\)", TEXT)
    assert len(set(anchors)) == len(anchors) and len(links) > 10
    assert [link for link in links if link not in anchors and not (ROOT / link).exists()] == []


def test_readme_commands_parse() -> None:
    assert len(LINES) > 50
    for line in LINES:
        argv = [word for word in shlex.split(line) if word not in JSON_FLAGS]
        name = max((command for command in COMMANDS if f"{line} ".startswith(f"{command} ")), key=len)
        if argv != ["focus"]:  # the table of symptoms names no window
            signature = read_signature(COMMANDS[name].load(for_shell=True))
            shell_arguments(name, signature, argv[len(name.split()) :])


# fake installers for the blocks: they download nothing and start this folder's program
PROGRAM = f'"{sys.executable}" "{ROOT}/peekaboo_min/__main__.py" "$@"'
INSTALLERS = {
    **dict.fromkeys(("apt-get", "brew"), "exit 0"),
    "sudo": '"$@"',
    "git": f'for address; do :; done; ln -s "{ROOT}" "${{address##*/}}"',
    "pipx": 'mkdir -p ~/.local/bin && ln -sf "$(command -v peekaboo-min)" ~/.local/bin/',
    "uv": f'shift; "{sys.executable}" "$@"',
    "peekaboo-min": PROGRAM,
}


def run_blocks(blocks: Sequence[str], folder: Path, environment: dict[str, str]) -> str:
    """Run the blocks in a folder with the files that they name; return stdout."""
    for name, script in INSTALLERS.items():
        executable(folder / "bin" / name, script)
    (folder / "scripts").symlink_to(ROOT / "scripts")
    shell = Program(["sh", "-euc", "\n".join(f"({block})" for block in blocks)], environment)
    done = shell.run(folder=folder, timeout_s=3 * PATIENCE_S, PATH=f"{folder}/bin:{os.environ['PATH']}")
    assert done.code == 0, done.err
    return done.out


def test_readme_block_for_a_mac_prints_the_shown_json(mac: FakeMac, tmp_path: Path) -> None:
    written: dict[str, Any] = json.loads(run_blocks(SHELL[:1], tmp_path / "here", mac_environment(mac)))
    written["mcpServers"]["peekaboo"].update(command="/Users/ada/.local/bin/peekaboo-min", args=[])
    assert JSON[0] == written and JSON[2].keys() <= {variable.name for variable in VARIABLES.values()}
    assert InProcessProgram(mac_environment(mac)).run("permissions").code == 0


def test_readme_blocks_for_linux_sign_the_form_and_leave_its_json(display: str, tmp_path: Path) -> None:
    need("wish", "tesseract")
    folder, environment = tmp_path / "linux", clean_environment(tmp_path, DISPLAY=display)
    out = run_blocks(SHELL[1:], folder, environment)
    assert "all required programs are installed" in out and "[mcp_servers.peekaboo]" in out
    assert "mcp_servers" in (tmp_path / "home/.codex/config.toml").read_text("utf-8")
    events = [json.loads(line) for line in (folder / "report.jsonl").read_text("utf-8").splitlines()]
    assert [event["name"] for event in events if event["event"] == "sign"] == ["Zoë, Łódź"]
    answer = json.loads((folder / "form.json").read_text("utf-8"))
    answer["data"].update(window_id=6291489, waited_s=0.4, bounds=JSON[1]["data"]["bounds"])
    assert answer == JSON[1] and (folder / "signed.png").exists()
    assert InProcessProgram(environment).run("clean", "--all").code == 0

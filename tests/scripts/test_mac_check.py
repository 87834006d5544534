"""scripts/mac_check.sh and the workflow's Mac job, run on the fake Mac.

Only the installation is replaced: a fake pipx starts the working tree.
"""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
from pathlib import Path

from fakemac import FakeMac
from mac_desk import widget
from macs import mac_environment
from worlds import ROOT, Finished, Program, clean_environment, need

SCRIPT = str(ROOT / "scripts" / "mac_check.sh")
WORKFLOW = ROOT / ".github" / "workflows" / "test.yml"
PIPX = f"""#!/bin/sh
case "$*" in
    "install .") folder=$PIPX_BIN_DIR ;;
    "run uv tool install .") folder=$UV_TOOL_BIN_DIR ;;
    "run uv run python "*) shift 4; exec {sys.executable} "$@" ;;
    *) echo "pipx $*: not this" >&2; exit 64 ;;
esac
mkdir -p "$folder"
printf '#!/bin/sh\\nexec {sys.executable} -m peekaboo_min "$@"\\n' >"$folder/peekaboo-min"
chmod +x "$folder/peekaboo-min"
"""


def add_calculator(mac: FakeMac) -> None:
    """Add to Calculator's window the buttons that the script clicks, named like in macOS 15."""
    keys = {"7": "7", "8": "8", "Add": "+", "Equals": "="}
    buttons = [
        widget(name, "button", 20, 120 + 60 * row, 50, 50, text=name, on_click={"calculate": key})
        for row, (name, key) in enumerate(keys.items())
    ]
    mac.change_window(1050, {"widgets": [widget("display", "label", 20, 40, 180, 40, text="0"), *buttons]})


def mac_with_path(mac: FakeMac, *folders: Path, **variables: str) -> dict[str, str]:
    path = os.pathsep.join([*map(str, folders), str(mac.bin_dir), os.environ["PATH"]])
    return mac_environment(mac, PATH=path, **variables)


def run(mac: FakeMac, tmp_path: Path, *argv: str) -> Finished:
    need("python3")
    program = Program(["sh", SCRIPT], mac_with_path(mac, TMPDIR=str(tmp_path)))
    return program.run(*argv, timeout_s=280)


def verdicts(lines: list[str]) -> list[list[str]]:
    """Return the report's three lists of steps: worked, not allowed here, failed."""
    parts = "\n".join(lines).split("\n\n")[1:4]
    return [[line[2:] for line in part.splitlines()[1:]] for part in parts]


def test_mac_check_without_consent_does_nothing(mac: FakeMac, tmp_path: Path) -> None:
    # spec: "E2E tests are typically run as a separate suite"
    done = run(mac, tmp_path)
    assert (done.code, done.out, mac.calls()) == (2, "", [])
    assert "scripts/mac_check.sh --yes" in done.err


def test_mac_check_is_refused_on_x11(tmp_path: Path) -> None:
    need("python3")
    environment = clean_environment(tmp_path, PEEKABOO_DESKTOP="x11")
    done = Program(["sh", SCRIPT], environment).run("--yes")
    assert (done.code, done.out, done.err) == (2, "", f"{SCRIPT}: this is for a Mac\n")


def test_mac_check_reports_every_step_in_one_block(mac: FakeMac, tmp_path: Path) -> None:
    # spec: "Call `image` to capture a specific (test) application's window, save to file, and return data.
    # Verify file creation, image data in response, and correct metadata."
    add_calculator(mac)
    done = run(mac, tmp_path, "--yes", str(tmp_path / "check"))
    *lines, facts = done.out.split("```")[1].strip().splitlines()  # the block to paste
    assert len(json.loads(facts)["probes"]) == 40
    assert "Shopping list" not in str(lines) and str(tmp_path / "check") not in str(lines) + facts
    worked, refused, failed = verdicts(lines)
    assert (done.code, refused, failed, len(worked)) == (0, ["nothing"], ["nothing"], 30), done.out
    assert mac.widget(1050, "display")["text"] == "15"
    made = {path.name for path in (tmp_path / "check").iterdir()}
    assert made >= {"screen.png", "window.jpg", "calculator.json", "page.md", "log.txt", "facts.txt"}
    (document,) = mac.state()["keynote"]["documents"]
    (shape,) = document["slides"][0]["shapes"]
    assert shape["object_text"].startswith("peekaboo typed ")
    texts = [event["text"] for event in mac.events("text") if event["window"] != 1050]
    assert "".join(texts) == "teh -- x" + shape["object_text"]
    assert "teh -- x arrived as: teh -- x" in lines
    counted = next(line for line in lines if line.startswith("presses, moves and keys"))
    before, after = counted.rpartition(": ")[2].split("; ")
    assert int(after.split()[0]) == int(before.split()[0]) + 1


def test_workflow_on_a_mac_lists_the_refused_steps(mac: FakeMac, tmp_path: Path) -> None:
    need("python3", "bash")
    add_calculator(mac)
    mac.deny("screen_recording")
    mac.deny("accessibility")
    mac.keynote(installed=[])
    mac.switch(key_events_have_characters=False)
    (tmp_path / "pipx").touch(0o755)
    (tmp_path / "pipx").write_text(PIPX)
    files = {"RUNNER_TEMP": str(tmp_path), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    environment = mac_with_path(mac, tmp_path, CI="true", **files)
    job = WORKFLOW.read_text(encoding="utf-8").partition("\n  mac:\n")[2]
    blocks = re.findall(r"^        run: \|\n((?: {10}.*\n)+)", job, re.MULTILINE)
    assert len(blocks) == len(re.findall(r"^        run:", job, re.MULTILINE))
    bash = Program(["bash", "-eo", "pipefail", "-c"], environment)
    done = [bash.run(textwrap.dedent(block), timeout_s=280) for block in blocks]
    assert [finished.code for finished in done] == [0, 1, 0, 0], done
    assert re.fullmatch(r"([\d.]+)\n\1\n", done[0].out)
    page = (tmp_path / "summary.md").read_text(encoding="utf-8").splitlines()
    worked, refused, (failed,) = verdicts(page)
    assert "Keynote: not installed, so not tried" in page
    assert worked == ["the facts can be asked", "Calculator is opened"]
    assert failed.startswith("fact: a key event that is only created has")
    steps = ["doctor, which compiles the Swift helper", "a TextEdit window of its own", "its elements"]
    keys = [f"type {key} in Calculator" for key in "7+8="]
    steps += ["Calculator is cleared", *keys, "screenshot of Calculator"]
    assert [line.partition(":")[0] for line in refused] == steps
    lacks = [line.rpartition("lacks the ")[2] for line in refused[1:]]
    assert set(lacks) == {"Screen Recording permission", "Accessibility permission"}
    *warnings, tests_warning = done[-1].out.splitlines()
    assert warnings == [f"::warning title=not allowed here::{line}" for line in refused]
    assert re.fullmatch("::warning title=not allowed here::tests: .* Screen Recording.*", tests_warning)

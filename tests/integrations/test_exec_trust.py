"""What peekaboo_exec keeps to itself: the arguments, and images from outside its folder."""

from __future__ import annotations

import json
from pathlib import Path

from fake_ai import picture
from fakemac import FakeMac
from in_process import InProcessProgram
from macs import mac_environment


def test_exec_audits_no_argument_and_follows_no_link(mac: FakeMac, tmp_path: Path) -> None:
    peekaboo = tmp_path / "peekaboo"
    peekaboo.write_text('#!/bin/sh\neval "$2"\n')
    peekaboo.chmod(0o755)
    (tmp_path / "work").mkdir()
    (tmp_path / "private.png").write_bytes(picture())
    line = "cp ../private.png copy.png; ln -s ../private.png link.png; : hunter2"
    shell = InProcessProgram(mac_environment(mac, PEEKABOO_CLI_PATH=str(peekaboo)))
    data = shell.data("--json", "exec", "--cwd", tmp_path / "work", "--", "type", line)
    assert data["attachments"] == ["copy.png"]
    (log,) = mac.home.rglob("audit.jsonl")
    audited = json.loads(log.read_text())
    del audited["time"], audited["pid"]
    assert audited == {"action": "exec", "program": str(peekaboo), "command": "type", "arguments": 2}

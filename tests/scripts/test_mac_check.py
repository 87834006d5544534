"""scripts/mac_check.sh, all of it, on the fake Mac; on a real one somebody runs it by hand."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from fakemac import FakeMac
from macs import mac_environment
from worlds import ROOT, Finished, Program, clean_environment, need

SCRIPT = str(ROOT / "scripts" / "mac_check.sh")


def run(mac: FakeMac, tmp_path: Path, *argv: str) -> Finished:
    need("python3")
    path = f"{mac.bin_dir}{os.pathsep}{os.environ['PATH']}"
    environment = mac_environment(mac, PATH=path, TMPDIR=str(tmp_path))
    return Program(["sh", SCRIPT], environment).run(*argv, timeout_s=280)


def test_mac_check_without_consent_does_nothing(mac: FakeMac, tmp_path: Path) -> None:
    """ "E2E tests are typically run as a separate suite" """
    done = run(mac, tmp_path)
    assert (done.code, done.out, mac.calls()) == (2, "", [])
    assert "scripts/mac_check.sh --yes" in done.err


def test_mac_check_elsewhere_tries_nothing(tmp_path: Path) -> None:
    need("python3")
    environment = clean_environment(tmp_path, PEEKABOO_DESKTOP="x11")
    done = Program(["sh", SCRIPT], environment).run("--yes")
    assert (done.code, done.out, done.err) == (2, "", f"{SCRIPT}: this is for a Mac\n")


@pytest.mark.parametrize("has_keynote", [True, False])
def test_mac_check_reports_every_step_in_one_block(mac: FakeMac, tmp_path: Path, has_keynote: bool) -> None:
    """ "Call `image` to capture a specific (test) application's window, save to file, and return data. Verify
    file creation, image data in response, and correct metadata."
    """
    if not has_keynote:
        mac.keynote(installed=[])
    done = run(mac, tmp_path, "--yes")
    *lines, facts = done.out.split("```")[1].strip().splitlines()  # what to paste
    assert len(json.loads(facts)["probes"]) == 31
    failed = [line for line in lines if line.startswith("FAILED")]
    assert lines[0].startswith("info system: ") and lines[-1] == f"{len(failed)} failed"
    assert "Shopping list" not in str(lines) and str(tmp_path) not in str(lines) + facts
    if has_keynote:
        assert (done.code, failed, len(lines)) == (0, [], 21), done.out
        (document,) = mac.state()["keynote"]["documents"]
        (shape,) = document["slides"][0]["shapes"]
        assert shape["object_text"].startswith("peekaboo typed ")
        texts = [event["text"] for event in mac.events("text")]
        assert "".join(texts) == shape["object_text"]
    else:
        assert done.code == 1 and [line.split(":")[0] for line in failed] == [
            "FAILED a Keynote deck of its own",
            "FAILED a rectangle",
            "FAILED a text in it",
            "FAILED the slide as an image",
            "FAILED its file",
        ]

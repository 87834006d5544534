"""The specified command line: argv, JSON shapes and text of image and list."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable
from unittest.mock import ANY

import pytest
from answers import SAFARI
from fakemac import FakeMac
from in_process import InProcessProgram
from macs import mac_environment
from worlds import Program


def on(mac: FakeMac) -> Program:
    return InProcessProgram(mac_environment(mac))


def answer(program: Program, *argv: Any) -> dict[str, Any]:
    """Return the envelope of a successful command; check its shape."""
    done = program.run(*argv, "--json-output")
    assert (done.code, done.err) == (0, ""), done
    assert done.json == {"success": True, "data": ANY, "messages": ANY, "debug_logs": ANY}
    assert all(isinstance(line, str) for line in [*done.json["messages"], *done.json["debug_logs"]])
    return done.json


def test_list_permissions_reports_both_grants(own_mac: FakeMac) -> None:
    own_mac.deny("accessibility")
    grants = {"screen_recording": True, "accessibility": False}
    assert on(own_mac).data("list", "permissions")["permissions"] == grants


BUG = 1004


FOREGROUND = ["image", "--app", "Safari", "--window-index", "1", "--capture-focus", "foreground", "--path"]
PROBLEM = "Could not raise specific window; proceeding with frontmost of activated app."


@pytest.mark.parametrize(
    ("arrange", "lacks_accessibility"),
    [(lambda mac: mac.switch(activation="stubborn"), False), (lambda mac: mac.deny("accessibility"), True)],
    ids=["stubborn", "no Accessibility"],
)
def test_image_that_cannot_raise_its_window_reports_why(
    own_mac: FakeMac, tmp_path: Path, arrange: Callable[[FakeMac], object], lacks_accessibility: bool
) -> None:
    arrange(own_mac)
    reply = answer(on(own_mac), *FOREGROUND, tmp_path / "a.png")
    messages, front = "".join(reply["messages"]), own_mac.front_window()
    assert (reply["data"]["saved_files"][0]["window_id"], front["id"] == BUG) == (BUG, False)
    assert (front["pid"] == SAFARI["pid"]) is lacks_accessibility, "the app is activated unless it refuses"
    assert PROBLEM in reply["debug_logs"]
    assert ("Accessibility" in messages) is lacks_accessibility
    assert re.search(rf"captured window {BUG} of Safari .* in front is window {front['id']} of", messages)

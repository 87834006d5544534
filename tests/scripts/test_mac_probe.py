"""scripts/mac_probe.py on the fake Mac: confirmed and contradicted facts."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from typing import Any

from fakemac import FakeMac
from fakemac.pictures import Picture, paint
from fakemac.png import png_bytes
from macs import mac_environment
from worlds import ROOT, Finished, Program, clean_environment, need_swift

SCRIPT = str(ROOT / "scripts" / "mac_probe.py")
HELPER = "the Swift helper compiles by xcrun, and has osascript's access"
DISCLAIM = "a program can be started that asks for permissions in its own name"
MAY_BE_UNKNOWN = {"whether Keynote may be controlled can be asked without a dialog", HELPER, DISCLAIM}
# from trycua's windows.rs tests
ADDED_BY_CAPTURE = {"title": "Window", "bounds": [70, 90, 66, 20], "widgets": []}


def run(mac: FakeMac, *others: str) -> Finished:
    """Run the script; check that it shows no window title and causes no event but `others`."""
    before = mac.events()
    finished = Program([sys.executable, "-W", "error", SCRIPT], mac_environment(mac)).run()
    assert (finished.code, finished.err) == (0, "")
    titles = [window["title"] for window in mac.state()["windows"] if len(window["title"]) > 8]
    escaped = [json.dumps(title)[1:-1] for title in titles]
    assert [title for title in [*titles, *escaped] if title in finished.out] == []
    assert [event["kind"] for event in mac.events()[len(before) :]] == [*others]
    return finished


def report(finished: Finished) -> dict[str, Any]:
    return json.loads(finished.out.splitlines()[-1])


def contradicted(mac: FakeMac, *others: str) -> list[str]:
    probes = report(run(mac, *others))["probes"]
    return [probe["fact"] for probe in probes if probe["verdict"] == "CONTRADICTED"]


def test_mac_probe_confirms_every_fact(mac: FakeMac) -> None:
    added = {"do": "open_window", "pid": 480, "window": ADDED_BY_CAPTURE}
    mac.when({"do": "started", "program": "screencapture"}, added, skip=6)
    finished = run(mac, "open_window", "vision")
    found = report(finished)
    outputs = {probe["fact"]: probe["output"] for probe in found["probes"]}
    unconfirmed = {probe["fact"] for probe in found["probes"] if probe["verdict"] != "confirmed"}
    assert unconfirmed == MAY_BE_UNKNOWN
    assert len(found.pop("probes")) == 40 == finished.out.count(" ms)\n")
    assert {**found, "version": ""} == {
        "version": "",
        "macos": "15.4.1",
        "architecture": platform.machine(),
        "displays": [[0, 0, 1440, 900, 2], [-1920, -180, 1920, 1080, 1]],
        "host_app": "Terminal",
    }
    numbers = outputs["NSInteger and NSUInteger come over the bridge as numbers or strings"]
    assert '"policy":"string"' in numbers
    assert "[true,null,null]" in outputs["the session reports whether it is on the console"]
    differ = outputs["two captures of an idle window differ in the outer 4 points at most"]
    assert differ == "by 0 of 255 at most, further inside by 0"
    assert "new windows: ['66x20']" in outputs.values()


def test_mac_probe_is_refused_on_x11(tmp_path: Path) -> None:
    environment = clean_environment(tmp_path, PEEKABOO_DESKTOP="x11")
    finished = Program([sys.executable, SCRIPT], environment).run()
    assert (finished.code, finished.out, finished.err) == (2, "", f"{SCRIPT}: run this on a Mac\n")


def test_mac_probe_contradicts_only_the_size_of_a_small_picture(mac: FakeMac) -> None:
    small = png_bytes(Picture(7, 7, paint(7, 7, (1, 2, 3), [])))
    mac.fail("screencapture", exit=0, when=["-l", "1080"], file=small)
    assert contradicted(mac, "vision") == [
        "-a -o -l of the front window is as large as its bounds times the scale"
    ]


def test_mac_probe_compiles_the_helper_and_compares_its_access(mac: FakeMac) -> None:
    need_swift()
    mac.tools("good")
    (found,) = [probe for probe in report(run(mac, "vision"))["probes"] if probe["fact"] == HELPER]
    assert (found["verdict"], found["output"][:11]) == ("confirmed", "compiled in")
    assert not list(mac.home.rglob("peekaboo-input")), "the probe leaves no helper behind"


def test_mac_probe_without_grants_contradicts_no_fact(mac: FakeMac) -> None:
    mac.deny("screen_recording")
    mac.deny("accessibility")
    mac.era("error")
    assert contradicted(mac) == []


def test_mac_probe_without_an_active_display_contradicts_its_position(mac: FakeMac) -> None:
    mac.update(lambda state: [display.update(active=False) for display in state["displays"]])
    assert "the main display is first and stands at 0,0" in contradicted(mac)

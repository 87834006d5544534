"""Each shipped JXA script returns the same in JavaScriptCore (jsc) as in node, on a fake Mac."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fakemac import FakeMac
from fakemac.jsc import run_in_jsc
from worlds import PATIENCE_S, need, need_optional

from peekaboo_min.core.models import Act, Point
from peekaboo_min.desktop.macos.input import make_steps
from peekaboo_min.desktop.macos.osascript import WINDOW_SOURCES
from peekaboo_min.system.programs import native_source

FORM = {"id": 1090, "pid": 500, "title": "New entry", "x": 820, "y": 100, "width": 480, "height": 360}
TERMINAL = {"id": 1080, "pid": 480, "x": 60, "y": 80, "width": 700, "height": 420, "is_popup": False}
ACT = {"window": TERMINAL, "stop_file": "", "record": "/nowhere", "release": []}
OPEN = {"do": "open", "bundle_id": "com.apple.Keynote", "theme": "White", "width": 1920, "height": 1080}
# script and request
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("desktop/macos/snapshot.js", {"with_minimised": True}),
    ("desktop/macos/permissions.js", {}),
    ("desktop/macos/automation.js", {}),
    ("desktop/macos/request.js", {}),
    ("desktop/macos/handler.js", {"kind": "app", "target": "Form"}),
    ("desktop/macos/focus.js", {"window": FORM}),
    ("desktop/macos/elements.js", {"window": FORM}),
    ("desktop/macos/input.js", {**ACT, "steps": make_steps(Act("click", (Point(300, 200),)))}),
    ("desktop/macos/input.js", {**ACT, "steps": make_steps(Act("type", text="Hé 世"))}),
    ("desktop/macos/read_text.js", {"characters": False}),
    ("integrations/keynote.js", {"do": "find"}),
    ("integrations/keynote.js", {**OPEN, "always_new": True, "only_open": False}),
]


@pytest.mark.parametrize(("name", "request_"), REQUESTS)
def test_script_returns_the_same_in_javascriptcore(
    tmp_path: Path, name: str, request_: dict[str, Any]
) -> None:
    need("node")
    need_optional("jsc")
    source = "\n".join(map(native_source, ("desktop/macos/read_request.js", *WINDOW_SOURCES, name)))
    macs, image = (FakeMac(tmp_path / "node"), FakeMac(tmp_path / "jsc")), tmp_path / "image.png"
    for mac in macs:
        capture = [mac.bin_dir / "screencapture", "-x", "-a", "-o", "-l", "1090", image]
        subprocess.run(capture, env=mac.env(), check=True, timeout=PATIENCE_S)
        (mac.folder / "request.json").touch(0o600)
        (mac.folder / "request.json").write_text(json.dumps({**request_, "path": str(image)}))
    argv = [str(macs[0].bin_dir / "osascript"), "-l", "JavaScript", "-", str(macs[0].folder / "request.json")]
    options: dict[str, Any] = {"env": macs[0].env(), "stdout": subprocess.PIPE, "timeout": PATIENCE_S}
    node = json.loads(subprocess.run(argv, input=source.encode(), **options).stdout)
    jsc = json.loads(run_in_jsc(macs[1].folder, macs[1].env(), source, str(macs[1].folder / "request.json")))
    random = {"document_id": None}
    assert {**node, **random} == {**jsc, **random}
    assert [mac.events("strict") for mac in macs] == [[], []]


def test_responsible_process_is_the_same_in_javascriptcore(tmp_path: Path) -> None:
    """Run the only script whose argument is a process id instead of a file."""
    need("node")
    need_optional("jsc")
    mac, source = FakeMac(tmp_path), native_source("desktop/macos/responsible.js")
    argv = [str(mac.bin_dir / "osascript"), "-l", "JavaScript", "-", "4711"]
    node = subprocess.run(argv, input=source.encode(), env=mac.env(), stdout=subprocess.PIPE).stdout
    assert [json.loads(node), run_in_jsc(mac.folder, mac.env(), source, "4711")] == [480, "480"]

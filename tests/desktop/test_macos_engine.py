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
TERMINAL = {
    "id": 1080,
    "pid": 480,
    "title": "",
    "x": 60,
    "y": 80,
    "width": 700,
    "height": 420,
    "is_popup": False,
}
ACT = {"window": TERMINAL, "stop_file": "", "record": "/nowhere", "release": []}
OPEN = {"do": "open", "bundle_id": "com.apple.Keynote", "theme": "White", "width": 1920, "height": 1080}
INPUT, KEYNOTE = [*WINDOW_SOURCES, "desktop/macos/input.js"], "integrations/keynote.js"
SCRIPTS: dict[str, tuple[list[str], Any]] = {
    "snapshot": ([*WINDOW_SOURCES, "desktop/macos/snapshot.js"], {"with_minimised": True}),
    "permissions": ([WINDOW_SOURCES[0], "desktop/macos/permissions.js"], {}),
    "automation": (["desktop/macos/automation.js"], {}),
    "request": ([WINDOW_SOURCES[0], "desktop/macos/request.js"], {}),
    "handler": ([WINDOW_SOURCES[0], "desktop/macos/handler.js"], {"kind": "app", "target": "Form"}),
    "focus": ([*WINDOW_SOURCES, "desktop/macos/focus.js"], {"window": FORM}),
    "elements": ([*WINDOW_SOURCES, "desktop/macos/elements.js"], {"window": FORM}),
    "a click": (
        [*WINDOW_SOURCES, "desktop/macos/input.js"],
        {**ACT, "steps": make_steps(Act("click", (Point(300, 200),)))},
    ),
    "a text": (
        [*WINDOW_SOURCES, "desktop/macos/input.js"],
        {**ACT, "steps": make_steps(Act("type", text="Hé 世"))},
    ),
    "keynote find": ([KEYNOTE], {"do": "find"}),
    "keynote open": ([KEYNOTE], {**OPEN, "always_new": True, "only_open": False}),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_returns_the_same_in_javascriptcore(tmp_path: Path, name: str) -> None:
    need("node")
    need_optional("jsc")
    names, request = SCRIPTS[name]
    source = "\n".join(map(native_source, ("desktop/macos/read_request.js", *names)))
    answers = []
    for engine in ("node", "jsc"):
        mac = FakeMac(tmp_path / engine)
        file = mac.folder / "request.json"
        file.touch(0o600)
        file.write_text(json.dumps(request))
        if engine == "node":
            argv = [str(mac.bin_dir / "osascript"), "-l", "JavaScript", "-", str(file)]
            done = subprocess.run(
                argv, input=source.encode(), capture_output=True, timeout=PATIENCE_S, env=mac.env()
            )
            answers.append(done.stdout.decode())
        else:
            answers.append(run_in_jsc(mac.folder, mac.env(), source, str(file)))
        assert mac.events("strict") == []
    node, jsc = (json.loads(answer) for answer in answers)
    if name == "keynote open":
        node.pop("document_id"), jsc.pop("document_id")  # random
    assert node == jsc

"""The specified command line: argv, JSON shapes and text of image and list."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any, Callable
from unittest.mock import ANY

import pytest
from answers import ROWS, SAFARI, files_in, kept_by
from fakemac import FakeMac
from in_process import InProcessProgram
from macs import mac_environment
from worlds import Form, Program, clean_environment, wait_for

from peekaboo_min import __version__
from peekaboo_min.system.image_files import sniff_image


def on(mac: FakeMac) -> Program:
    return InProcessProgram(mac_environment(mac))


@pytest.fixture(scope="module")
def shell(mac: FakeMac) -> Program:
    return on(mac)


def answer(program: Program, *argv: Any) -> dict[str, Any]:
    """Return the envelope of a successful command; check its shape."""
    done = program.run(*argv, "--json-output")
    assert (done.code, done.err) == (0, ""), done
    assert done.json == {"success": True, "data": ANY, "messages": ANY, "debug_logs": ANY}
    assert all(isinstance(line, str) for line in [*done.json["messages"], *done.json["debug_logs"]])
    return done.json


START, BUG = (1012, "Start Page"), (1004, "Bug 12/34: crash in usr/bin")
MAIN, SECOND = "Display 1 / Main", "Display 2"
# the original's argv for a client's target, the format and focus, and the images' labels
TARGETS = [
    ("--mode screen", "png", "background", [MAIN, SECOND]),
    ("--mode screen --screen-index 0", "png", "auto", [MAIN]),
    ("--mode screen --screen-index 1", "jpg", "auto", [SECOND]),
    ("--mode frontmost", "png", "background", ["peekaboo — -zsh — 80\u00d724"]),
    ("--app Safari --mode multi", "png", "auto", [START[1], BUG[1]]),
    ("--app PID:450 --mode multi", "jpg", "auto", ["Calculator"]),
    ("--app TextEdit --mode window --window-title Letter", "png", "background", ["Letter"]),
    ("--app Calculator --mode window --window-index 0", "jpg", "auto", ["Calculator"]),
]


@pytest.mark.parametrize(("target", "kind", "focus", "labels"), TARGETS)
def test_image_accepts_the_originals_argv(
    shell: Program, mac: FakeMac, tmp_path: Path, target: str, kind: str, focus: str, labels: list[str]
) -> None:
    album, before = tmp_path / "album", kept_by(mac)
    tail = ["--path", album, "--format", kind, "--capture-focus", focus]
    rows = shell.data("image", *shlex.split(target), *tail)["saved_files"]
    mime_type = {"png": "image/png", "jpg": "image/jpeg"}[kind]
    assert [(row["item_label"], row["mime_type"]) for row in rows] == [(label, mime_type) for label in labels]
    assert files_in(album) == sorted(Path(row["path"]).name for row in rows)
    assert {Path(row["path"]).suffix for row in rows} == {f".{kind}"}
    sizes = [(kind, row["image_width"], row["image_height"]) for row in rows]
    assert [sniff_image(Path(row["path"]).read_bytes()) for row in rows] == sizes
    assert kept_by(mac) == before


def test_list_server_status_reports_both_grants(own_mac: FakeMac) -> None:
    own_mac.deny("accessibility")
    grants = {"screen_recording": True, "accessibility": False}
    assert on(own_mac).data("list", "permissions")["permissions"] == grants
    text = on(own_mac).run("list", "server_status").out
    assert text.startswith(f"--- Peekaboo MCP Server Status ---\nName: PeekabooMCP\nVersion: {__version__}\n")
    assert "Screen Recording: granted" in text and "Accessibility: NOT granted" in text


DETAILS: list[dict[str, Any]] = [
    {"window_id": 1012, "bounds": {"x": 200, "y": 60, "width": 1000, "height": 700}},
    {"window_id": 1004, "bounds": {"x": 120, "y": 120, "width": 900, "height": 640}},
    {"window_id": 1005, "bounds": {"x": 500, "y": 300, "width": 500, "height": 300}},
]
ALL = [{**row, **details, "is_on_screen": row["window_index"] < 2} for row, details in zip(ROWS, DETAILS)]


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ([], ROWS[:2]),
        (["--include-details", "ids, bounds"], [{**row, **more} for row, more in zip(ROWS, DETAILS[:2])]),
        (["--include-details=off_screen,bounds,ids"], ALL),
    ],
)
def test_list_windows_has_the_original_shape(shell: Program, options: list[str], rows: Any) -> None:
    data = shell.data("list", "windows", "--app", "Safari", *options)
    assert data == {"windows": rows, "target_application_info": SAFARI}


def test_list_windows_prints_the_requested_details(shell: Program) -> None:
    out = shell.run("list", "windows", "--app", "Calculator", "--include-details", "ids,bounds").out
    assert out.endswith('- PID: 450\n\nWindows:\n0. "Calculator" [ID: 1050] [1180,480 230x408]\n')


FOREGROUND = ["image", "--app", "Safari", "--window-index", "1", "--capture-focus", "foreground", "--path"]
PROBLEM = "Could not raise specific window; proceeding with frontmost of activated app."


def test_image_in_the_foreground_raises_the_window(own_mac: FakeMac, tmp_path: Path) -> None:
    reply = answer(on(own_mac), *FOREGROUND, tmp_path / "a.png")
    (row,) = reply["data"]["saved_files"]
    assert (row["window_id"], row["window_title"]) == BUG
    assert own_mac.front_window()["id"] == BUG[0]
    assert PROBLEM not in reply["debug_logs"] and reply["messages"] == []


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
    assert (reply["data"]["saved_files"][0]["window_id"], front["id"] == BUG[0]) == (BUG[0], False)
    assert (front["pid"] == SAFARI["pid"]) is lacks_accessibility, "the app is activated unless it refuses"
    assert PROBLEM in reply["debug_logs"]
    assert ("Accessibility" in messages) is lacks_accessibility
    assert re.search(rf"captured window {BUG[0]} of Safari .* in front is window {front['id']} of", messages)


def test_image_text_lists_every_file_with_its_window(shell: Program, tmp_path: Path) -> None:
    out = shell.run("image", "--app", "Safari", "--mode", "multi", "--path", tmp_path / "a.png").out
    assert re.sub(r"screenshot_id [0-9a-f]{16}", "screenshot_id S", out).splitlines() == [
        "Captured 2 image(s):",
        f"1. {tmp_path / 'a_window0_Start_Page.png'} (Start Page, 2000x1400, window 1012, screenshot_id S)",
        f"2. {tmp_path / 'a_window1_Bug_12_34_crash_in_usr_bin.png'} "
        "(Bug 12/34: crash in usr/bin, 1800x1280, window 1004, screenshot_id S)",
    ]


def test_list_on_x11_has_no_bundle_id(display: str, form: Form, tmp_path: Path) -> None:
    x11 = InProcessProgram(clean_environment(tmp_path, DISPLAY=display))
    (app,) = wait_for(lambda: x11.data("list", "apps")["applications"], "the form is listed")
    assert app == {"app_name": "Form", "pid": ANY, "is_active": ANY, "window_count": 1}
    listed = x11.data("list", "windows", "--app", "Form")
    assert listed["target_application_info"] == {"app_name": "Form", "pid": app["pid"]}

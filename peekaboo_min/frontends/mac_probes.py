"""The probes of `doctor --probe` that take several steps on a Mac."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from pathlib import Path
from typing import Any, Callable, Optional

from ..core.errors import PeekabooError
from ..desktop.macos.osascript import WINDOW_SOURCES, responsible_app, run_applescript, run_jxa
from ..integrations.keynote_deck import KEYNOTE_IDS
from ..system.images import read_image_info
from ..system.process import run_program
from ..system.resources import native_source

Outcome = tuple[Optional[bool], str]
"""Whether the fact holds (None: nobody knows), and what was seen."""

_STEP_S = 20.0
_COMPILE_S = 180.0
_WORD = re.compile(r"[A-Za-z]{3,}")


def mac_steps() -> list[tuple[str, Callable[[Path], Outcome]]]:
    """Facts, and how each is asked about. Nothing is clicked, typed, posted or sent."""
    return [
        ("NSInteger and NSUInteger come over the bridge as numbers or strings", _types),
        ("NSScreen's first screen is the main display", _main_display),
        ("a Unicode key event holds the text that was put into it", _unicode),
        ("a scroll and a drag event hold what was put into them", _pointer_events),
        ("the session says whether it is on the console", _session_keys),
        ("accessibility and the window server agree on the front window's frame", _frames),
        ("-l -o of the front window is as large as its bounds times the scale", _window_capture),
        ("-D n and -R of every display are as large as its bounds times the scale", _display_captures),
        ("text recognition reads the front window's title", _vision),
        ("both AppleScripts compile with the installed Keynote's terms", _applescripts),
        ("the responsible process is the app that we name in errors", _responsible),
        ("the Swift helper compiles by xcrun, and its preflight is osascript's", _helper),
    ]


def about_this_mac() -> dict[str, Any]:
    """macOS' version, the architecture, the displays and the host app, for the report."""
    try:
        version = run_program(["sw_vers", "-productVersion"], timeout_s=_STEP_S).text.strip()
        displays = [[*one["bounds"].values(), one["scale"]] for one in _look()["displays"]]
    except PeekabooError as e:
        version, displays = e.message, []
    return {
        "macos": version,
        "architecture": platform.machine(),
        "displays": displays,
        "host_app": responsible_app(),
    }


def _ask(name: str, **more: Any) -> dict[str, Any]:
    return run_jxa([*WINDOW_SOURCES, "desktop/macos/probe.js"], {"ask": name, **more})


def _look() -> dict[str, Any]:
    return run_jxa([*WINDOW_SOURCES, "desktop/macos/snapshot.js"], {})


def _grants() -> dict[str, Any]:
    return run_jxa([WINDOW_SOURCES[0], "desktop/macos/permissions.js"], {})


def _types(_folder: Path) -> Outcome:
    found = _ask("types")
    known = {found["policy"], found["count"]} <= {"number", "string"}
    return known and found["policy_number"] in (0, 1) and found["count_number"] > 0, str(found)


def _main_display(_folder: Path) -> Outcome:
    found = _ask("main_display")
    return found["first"] == found["main"], str(found)


def _unicode(_folder: Path) -> Outcome:
    text = "é東👍"
    found = _ask("unicode", text=text)["text"]
    return found == text, ascii(found)


def _pointer_events(_folder: Path) -> Outcome:
    found = _ask("pointer_events")
    return found == {"wheel": [3, -2], "drag": [6, 12, 34]}, str(found)


def _session_keys(_folder: Path) -> Outcome:
    keys = _ask("session")["keys"]
    return "kCGSSessionOnConsoleKey" in keys, ", ".join(keys)


def _frames(_folder: Path) -> Outcome:
    found = _ask("frames")
    front, focused = found["front"], found["focused"]
    if front is None or focused is None:
        return None, "no front window, or no Accessibility"
    return all(abs(front[key] - focused[key]) <= 2 for key in front), f"{front} and {focused}"


def _front_window() -> tuple[Optional[dict[str, Any]], float]:
    """The front window with its title, where screenshots are allowed, and the scale of its display."""
    look = _look()
    for window in look["windows"]:
        if window["on_screen"] and window["layer"] == 0 and window["title"] and window["alpha"] > 0:
            x, y = (
                window["bounds"][key] + window["bounds"][size] / 2
                for key, size in (["x", "width"], ["y", "height"])
            )
            for display in look["displays"]:
                box = display["bounds"]
                if 0 <= x - box["x"] < box["width"] and 0 <= y - box["y"] < box["height"]:
                    return (window if look["can_record"] else None), display["scale"]
    return None, 1.0


def _captured(options: list[str], path: Path) -> str:
    """The picture's size in pixels, or what screencapture complained of."""
    done = run_program(["screencapture", "-x", *options, str(path)], timeout_s=_STEP_S, accept=None)
    info = read_image_info(path) if path.exists() else None
    return f"{info.width}x{info.height}" if info else done.stderr.strip()[-80:]


def _window_capture(folder: Path) -> Outcome:
    window, scale = _front_window()
    if window is None:
        return None, "no front window, or no Screen Recording"
    expected = _pixels(window["bounds"], scale)
    seen = _captured(["-o", "-l", str(window["id"])], folder / "front.png")
    return seen == expected, f"{seen}, expected {expected}"


def _pixels(bounds: dict[str, float], scale: float) -> str:
    return f"{round(bounds['width'] * scale)}x{round(bounds['height'] * scale)}"


def _display_captures(folder: Path) -> Outcome:
    if not _grants()["screen_recording"]:
        return None, "no Screen Recording"
    seen, holds = [], True
    for number, one in enumerate(_look()["displays"], 1):
        rect = ",".join(str(round(one["bounds"][key])) for key in ("x", "y", "width", "height"))
        expected = _pixels(one["bounds"], one["scale"])
        sizes = [
            _captured(["-D", str(number)], folder / f"d{number}.png"),
            _captured(["-R", rect], folder / f"r{number}.png"),
        ]
        holds = holds and sizes == [expected, expected]
        seen.append(f"-D {number}: {sizes[0]}, -R {rect}: {sizes[1]}, expected {expected}")
    return holds, "; ".join(seen)


def _vision(folder: Path) -> Outcome:
    window, _ = _front_window()
    words = _WORD.findall(window["title"]) if window else []
    if window is None or not words:
        return None, "no front window with words in its title, or no Screen Recording"
    path = folder / "title.png"
    _captured(["-o", "-l", str(window["id"])], path)
    lines = run_jxa(["desktop/macos/read_text.js"], {"path": str(path)}, 2 * _STEP_S)["lines"]
    is_read = any(word.lower() in line["text"].lower() for word in words for line in lines)
    return is_read or None, f"{len(lines)} lines" + ("" if is_read else ", not the title")  # it may be hidden


def _applescripts(_folder: Path) -> Outcome:
    found = run_jxa(["integrations/keynote.js"], {"do": "find"})["bundle_id"]
    if found is None:
        return None, "no Keynote is installed"
    ends = []
    for name in ("draw", "export"):
        try:
            # without arguments it ends at the first one: it compiled, and nothing was sent
            source = f"integrations/keynote_{name}.applescript"
            run_applescript(source, [], _STEP_S, (KEYNOTE_IDS[0], found))
            ends.append("it ran")
        except PeekabooError as e:
            ends.append(e.details)
    return all(end.endswith("(-1728)") for end in ends), "; ".join(ends)


def _responsible(_folder: Path) -> Outcome:
    pid = _ask("responsible", pid=os.getpid())["pid"]
    listed = run_program(["ps", "-axo", "pid=,ppid=,comm="], timeout_s=_STEP_S).text
    names = [line.split(None, 2)[2] for line in listed.splitlines() if line.split(None, 1)[:1] == [str(pid)]]
    ours = responsible_app()
    app = names[0].rpartition(".app/")[0].rpartition("/")[2] if names else ""
    return (app == ours if app else None), f"responsible: {app or 'unknown'}; ours: {ours}"


def _helper(folder: Path) -> Outcome:
    if run_program(["xcode-select", "-p"], timeout_s=_STEP_S, accept=None).code:
        return None, "no developer tools"
    source, program = folder / "input.swift", folder / "input"
    source.write_text(native_source("desktop/macos/input.swift"), encoding="utf-8")
    argv = [
        "xcrun",
        "--sdk",
        "macosx",
        "swiftc",
        "-O",
        "-swift-version",
        "5",
        str(source),
        "-o",
        str(program),
    ]
    started = time.monotonic()
    done = run_program(argv, timeout_s=_COMPILE_S, accept=None)
    seconds = time.monotonic() - started
    if done.code:
        return False, done.stderr[-300:]
    request = b'{"do": "preflight"}'
    own = json.loads(run_program([str(program)], timeout_s=_STEP_S, stdin=request).text)
    grants = _grants()
    agrees = own["screen_recording"] == grants["screen_recording"]
    agrees = agrees and (own["accessibility"] or own["post_event"]) == grants["accessibility"]
    return agrees, f"compiled in {seconds:.1f} s; helper: {own}; osascript: {grants}"

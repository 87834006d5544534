"""The facts that we rely on, each with a harmless probe: `doctor --probe`."""

from __future__ import annotations

import json
import struct
import tempfile
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

from ..core.errors import PeekabooError
from ..core.models import Result
from ..core.version import VERSION
from ..system.images import read_image_info
from ..system.process import Completed, run_program
from ..system.resources import native_source
from .mac_probes import Outcome, about_this_mac, mac_steps

_FACT_S = 20.0


@dataclass(frozen=True)
class Probe:
    """A fact, the argv of a program that shows it, and what its output means; None for unknown."""

    fact: str
    argv: tuple[str, ...]
    holds: Callable[[Completed, Path], Optional[bool]]
    stdin: str = ""
    is_private: bool = False
    """True where the answer holds titles or names that nobody means to share."""


def probe_facts(platform: str) -> Result:
    """Run every probe of a platform: a line per fact, and one JSON document to paste into a report."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in.png").write_bytes(_small_png())
        (folder / "bad.png").write_text("not an image", encoding="utf-8")
        if platform == "macos":
            answers = [_answer(probe, folder) for probe in _mac_probes()]
            answers += [_answer_in_steps(fact, steps, folder) for fact, steps in mac_steps()]
        else:
            answers = [_answer(probe, folder) for probe in _x11_probes()]
    lines = [f"{each['verdict']:<13}{each['fact']}  ({each['milliseconds']} ms)" for each in answers]
    machine = about_this_mac() if platform == "macos" else {}
    report = {"platform": platform, "version": VERSION, **machine, "probes": answers}
    shown = json.dumps(report, ensure_ascii=False)
    return Result("\n".join([*lines, "", "to report, paste this:", shown]), report)


def _answer(probe: Probe, folder: Path) -> dict[str, Any]:
    argv = [argument.replace("{folder}", str(folder)) for argument in probe.argv]
    started = time.monotonic()
    code, output, holds = None, "", None
    try:
        done = run_program(argv, timeout_s=_FACT_S, stdin=probe.stdin.encode("utf-8"), accept=None)
        code, output = done.code, f"{done.text[:300]}{done.stderr[-300:]}".strip()
        holds = probe.holds(done, folder)
    except PeekabooError as e:
        output = e.message
    return _row(probe.fact, holds, code, "" if probe.is_private else output, started, folder)


def _answer_in_steps(fact: str, steps: Callable[[Path], Outcome], folder: Path) -> dict[str, Any]:
    started = time.monotonic()
    try:
        holds, output = steps(folder)
    except PeekabooError as e:
        holds, output = None, f"{e.message}: {e.details}"
    except (KeyError, TypeError, ValueError) as e:  # an answer of another shape than we know
        holds, output = False, repr(e)
    return _row(fact, holds, None, output, started, folder)


def _row(
    fact: str, holds: Optional[bool], code: Optional[int], output: str, started: float, folder: Path
) -> dict[str, Any]:
    return {
        "fact": fact,
        "verdict": {True: "confirmed", False: "CONTRADICTED", None: "unknown"}[holds],
        "exit_code": code,
        "output": output.replace(str(folder), "{folder}"),
        "milliseconds": round((time.monotonic() - started) * 1000),
    }


def _small_png(width: int = 40, height: int = 20) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\x80\x40\x20" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def _size_is(name: str, width: int, height: int) -> Callable[[Completed, Path], Optional[bool]]:
    def look(_done: Completed, folder: Path) -> Optional[bool]:
        path = folder / name
        info = read_image_info(path) if path.exists() else None
        return info is not None and (info.width, info.height) == (width, height)

    return look


def _jxa(fact: str, source: str, holds: Callable[[Any], Optional[bool]], is_private: bool = False) -> Probe:
    """A probe of what JXA answers, as JSON."""

    def look(done: Completed, _folder: Path) -> Optional[bool]:
        try:
            return holds(json.loads(done.text)) if done.code == 0 else False
        except (ValueError, KeyError, TypeError):
            return False

    return Probe(fact, ("osascript", "-l", "JavaScript", "-", '{"a": 1}'), look, source, is_private)


_VISION = """
ObjC.import('Vision');
function run(argv) { return JSON.stringify({there: Boolean($.VNRecognizeTextRequest)}); }
"""
_THROW = "function run(argv) { throw new Error('(-1712) is not the number'); }"
_KEYNOTES = """
ObjC.import('AppKit');
function run(argv) {
    const ids = ['com.apple.Keynote', 'com.apple.iWork.Keynote'];
    const workspace = $.NSWorkspace.sharedWorkspace;
    return JSON.stringify(ids.map(id => !workspace.URLForApplicationWithBundleIdentifier($(id)).isNil()));
}
"""


def _jxa_probes() -> list[Probe]:
    window_list = native_source("desktop/macos/window_list.js")
    accessibility = native_source("desktop/macos/accessibility.js")
    listing = window_list + accessibility + native_source("desktop/macos/snapshot.js")
    session = window_list + native_source("desktop/macos/permissions.js")
    automation = native_source("desktop/macos/automation.js")
    bounds = {"x", "y", "width", "height"}
    return [
        Probe("osascript ends a JXA error with its number, and exits 1",
              ("osascript", "-l", "JavaScript", "-"),
              lambda done, _: done.code == 1 and done.stderr.rstrip().endswith("(-2700)"), _THROW),
        _jxa("JXA from stdin gets its argument",
             "function run(argv) { return argv[0]; }", lambda answer: answer == {"a": 1}),
        _jxa("the window list can be read, with bounds by X, Y, Width, Height", listing,
             lambda answer: bool(answer["windows"])
             and all(set(window["bounds"]) == bounds for window in answer["windows"]), True),
        _jxa("other programs' titles are visible exactly with Screen Recording", listing,
             # without it the host still sees its own
             lambda answer: answer["can_record"]
             == (len({w["pid"] for w in answer["windows"] if w["layer"] == 0 and w["title"]}) > 1), True),
        _jxa("the main display is first and stands at 0,0", listing,
             lambda answer: [answer["displays"][0]["bounds"][key] for key in "xy"] == [0, 0], True),
        _jxa("Screen Recording and Accessibility can be asked without a dialog", session,
             lambda answer: {type(answer[key]) for key in ("screen_recording", "accessibility")} == {bool}),
        _jxa("whether Keynote may be controlled can be asked without a dialog", automation,
             lambda answer: None if answer["automation"] is None else True),
        _jxa("text recognition is available to JXA", _VISION, lambda answer: answer["there"]),
        _jxa("at least one Keynote is installed", _KEYNOTES, lambda answer: any(answer) or None),
    ]  # fmt: skip


def _mac_probes() -> list[Probe]:
    return [
        *_jxa_probes(),
        Probe("an unknown option of screencapture is refused with exit 1",
              ("screencapture", "-Z", "{folder}/z.png"),
              lambda done, folder: done.code == 1 and not (folder / "z.png").exists()),
        Probe("a window that is not there: exit 1 and no file",
              ("screencapture", "-x", "-o", "-l", "999999999", "{folder}/w.png"),
              lambda done, folder: done.code != 0 and not (folder / "w.png").exists()),
        Probe("a display that is not there: no file", ("screencapture", "-x", "-D", "99", "{folder}/d.png"),
              lambda done, folder: done.code != 0 and not (folder / "d.png").exists()),
        Probe("screencapture -R takes points: 10x10 points are 10 or 20 pixels",
              ("screencapture", "-x", "-R", "0,0,10,10", "{folder}/r.png"),
              lambda done, folder: None if done.code
              else any(_size_is("r.png", n, n)(done, folder) for n in (10, 20))),
        Probe("the keyboard's layout can be read",
              ("defaults", "read", "com.apple.HIToolbox", "AppleCurrentKeyboardLayoutInputSourceID"),
              lambda done, _: done.code == 0 and "keylayout" in done.text),
        Probe("sips -z takes the height first",
              ("sips", "-z", "10", "20", "{folder}/in.png", "--out", "{folder}/out.png"),
              _size_is("out.png", 20, 10)),
        Probe("sips leaves no file for what is not an image",
              ("sips", "-z", "10", "20", "{folder}/bad.png", "--out", "{folder}/bad_out.png"),
              lambda _, folder: not (folder / "bad_out.png").exists()),
        Probe("xcode-select -p exits 0, or 2 without tools, and opens no dialog", ("xcode-select", "-p"),
              lambda done, _: done.code in (0, 2)),
        Probe("this runs in the GUI session",
              ("launchctl", "managername"), lambda done, _: done.text.strip() == "Aqua"),
        Probe("ps shows the process ancestry", ("ps", "-axo", "pid=,ppid=,comm="),
              lambda done, _: done.code == 0 and ".app/" in done.text, is_private=True),
    ]  # fmt: skip


def _x11_probes() -> list[Probe]:
    return [
        Probe("an unknown key is ignored with exit 0, and only stderr shows it",
              ("xdotool", "key", "no_such_key"),
              lambda done, _: done.code == 0 and "No such key name" in done.stderr),
        Probe("maim captures into a file",
              ("maim", "-g", "10x10+0+0", "{folder}/m.png"), _size_is("m.png", 10, 10)),
        Probe("convert resizes exactly",
              ("convert", "{folder}/in.png", "-resize", "20x10!", "{folder}/out.png"),
              _size_is("out.png", 20, 10)),
    ]  # fmt: skip

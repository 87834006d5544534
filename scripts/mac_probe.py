"""Probe the facts about macOS that we rely on, harmlessly; run it on a real Mac.

    python3 scripts/mac_probe.py

It prints one line per fact, and as the last line a JSON document to paste into a report. It clicks, types,
posts and sends nothing.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from peekaboo_min import __version__  # noqa: E402
from peekaboo_min.core.errors import ErrorCode, PeekabooError  # noqa: E402
from peekaboo_min.core.models import Rect  # noqa: E402
from peekaboo_min.core.settings import platform_name  # noqa: E402
from peekaboo_min.desktop.macos.osascript import WINDOW_SOURCES, permission_error, run_applescript, run_jxa  # noqa: E402
from peekaboo_min.integrations.keynote import KEYNOTE_IDS  # noqa: E402
from peekaboo_min.system.bitmaps import Bitmap, read_bitmap  # noqa: E402
from peekaboo_min.system.files import write_privately  # noqa: E402
from peekaboo_min.system.image_files import whole_image  # noqa: E402
from peekaboo_min.system.process import Completed, run_program  # noqa: E402
from peekaboo_min.system.programs import native_source  # noqa: E402

_PROBE_SOURCES = (*WINDOW_SOURCES, str(ROOT / "scripts" / "mac_probe.js"))
_FACT_S, _COMPILE_S = 20.0, 180.0
_WORD = re.compile(r"[A-Za-z]{3,}")
_UNICODE = "é東👍"
_DISCLAIM = "a program can be started that asks for permissions in its own name"


class Outcome(NamedTuple):
    """The result of a probe: whether the fact holds (None if unknown), the output, the exit code."""

    holds: Optional[bool]
    seen: str
    exit_code: Optional[int] = None


Probe = Callable[[Path], Outcome]
"""Checks a fact, in a folder with in.png and bad.png."""


def main() -> int:
    if platform_name() != "macos":
        print(f"{sys.argv[0]}: run this on a Mac", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        row = b"\x20\x40\x80" * 40
        (folder / "in.png").write_bytes(Bitmap(40, 3, (row,) * 20).as_png())
        (folder / "bad.png").write_text("not an image", encoding="utf-8")
        answers = [_answer(fact, probe, folder) for fact, probe in _probes().items()]
    for answer in answers:
        print(f"{answer['verdict']:<13}{answer['fact']}  ({answer['milliseconds']} ms)")
    report = {"version": __version__, **_this_mac(), "probes": answers}
    print("\nto report, paste this:", json.dumps(report, ensure_ascii=False), sep="\n")
    return 0


def _answer(fact: str, probe: Probe, folder: Path) -> dict[str, Any]:
    started = time.monotonic()
    try:
        outcome = probe(folder)
    except PeekabooError as e:
        outcome = Outcome(None, ": ".join(filter(None, (e.message, e.details))))
    except (LookupError, TypeError, ValueError) as e:  # an answer of unexpected shape
        outcome = Outcome(False, repr(e))
    return {
        "fact": fact,
        "verdict": {True: "confirmed", False: "CONTRADICTED", None: "unknown"}[outcome.holds],
        "exit_code": outcome.exit_code,
        "output": outcome.seen.replace(str(folder), "{folder}"),
        "milliseconds": round((time.monotonic() - started) * 1000),
    }


def _program(
    argv: Sequence[str],
    holds: Callable[[Completed, Path], Optional[bool]],
    stdin: str = "",
    is_private: bool = False,
) -> Probe:
    """Return a probe that runs a program and judges its output.

    is_private: leave the output out of the report, because it contains titles or names.
    """

    def probe(folder: Path) -> Outcome:
        arguments = [argument.replace("{folder}", str(folder)) for argument in argv]
        done = run_program(arguments, timeout_s=_FACT_S, stdin=stdin.encode("utf-8"), accept=None)
        seen = "" if is_private else f"{done.text[:300]}{done.stderr[-300:]}".strip()
        return Outcome(holds(done, folder), seen, done.code)

    return probe


def _jxa(
    source: str, holds: Callable[[Any], Optional[bool]], is_private: bool = False, **asked: Any
) -> Probe:
    """Return a probe that runs JXA and judges its JSON answer."""

    def is_confirmed(done: Completed, _folder: Path) -> Optional[bool]:
        try:
            return holds(json.loads(done.text)) if done.code == 0 else False
        except (LookupError, TypeError, ValueError):
            return False

    argv = ("osascript", "-l", "JavaScript", "-", "{folder}/request.json")
    run = _program(argv, is_confirmed, native_source("desktop/macos/read_request.js") + source, is_private)

    def probe(folder: Path) -> Outcome:
        write_privately(folder / "request.json", json.dumps(asked))
        return run(folder)

    return probe


def _size(path: Path) -> str:
    """Return `WIDTHxHEIGHT` in pixels; empty if the file is not a whole image."""
    info = whole_image(path.read_bytes()) if path.exists() else None
    return f"{info.width}x{info.height}" if info else ""


_THROW = "function run(argv) { throw new Error('(-1712) is not the number'); }"
_KEYNOTES = """
ObjC.import('AppKit');
function run(argv) {
    const ids = ['com.apple.Keynote', 'com.apple.iWork.Keynote'];
    const workspace = $.NSWorkspace.sharedWorkspace;
    return JSON.stringify(ids.map(id => !workspace.URLForApplicationWithBundleIdentifier($(id)).isNil()));
}
"""


def _jxa_probes() -> dict[str, Probe]:
    window_list = native_source("desktop/macos/window_list.js")
    accessibility = native_source("desktop/macos/accessibility.js")
    listing = window_list + accessibility + native_source("desktop/macos/snapshot.js")
    session = window_list + native_source("desktop/macos/permissions.js")
    automation = native_source("desktop/macos/automation.js")
    probe = "\n".join(map(native_source, _PROBE_SOURCES))
    bounds = {"x", "y", "width", "height"}
    return {
        "osascript ends a JXA error with its number, and exits 1":
            _program(("osascript", "-l", "JavaScript", "-"),
                     lambda done, _: done.code == 1 and done.stderr.rstrip().endswith("(-2700)"), _THROW),
        "JXA from stdin reads the file that its argument names":
            _jxa("function run(argv) { return JSON.stringify(readRequest(argv)); }",
                 lambda answer: answer == {"text": _UNICODE}, text=_UNICODE),
        "the window list can be read, with bounds by X, Y, Width, Height":
            _jxa(listing, lambda answer: bool(answer["windows"])
                 and all(set(window["bounds"]) == bounds for window in answer["windows"]), True),
        "other programs' titles are visible exactly with Screen Recording":
            # without it the host still sees its own
            _jxa(listing, lambda answer: answer["can_record"]
                 == (len({w["pid"] for w in answer["windows"] if w["layer"] == 0 and w["title"]}) > 1), True),
        "the main display is first and stands at 0,0":
            _jxa(listing, lambda answer: [answer["displays"][0]["bounds"][key] for key in "xy"] == [0, 0],
                 True),
        "Screen Recording and Accessibility can be asked without a dialog":
            _jxa(session, lambda answer:
                 "screen_recording" in answer and type(answer["accessibility"]) is bool),
        "whether Keynote may be controlled can be asked without a dialog":
            _jxa(automation, lambda answer: None if answer["automation"] is None else True),
        "NSInteger and NSUInteger come over the bridge as numbers or strings":
            _jxa(probe, lambda answer: {answer["policy"], answer["count"]} <= {"number", "string"}
                 and answer["policy_number"] in (0, 1) and answer["count_number"] > 0, ask="types"),
        "NSScreen's first screen is the main display":
            _jxa(probe, lambda answer: answer["first"] == answer["main"], ask="main_display"),
        "a Unicode key event holds the text that was put into it":
            _jxa(probe, lambda answer: answer["text"] == _UNICODE, ask="unicode", text=_UNICODE),
        "a key event that is only created has the characters of the keyboard's layout":
            _jxa(probe, lambda answer: len(answer["texts"][0]) == 1 and answer["texts"][1] == " ",
                 ask="layout"),
        "a scroll and a drag event hold what was put into them":
            _jxa(probe, lambda answer: answer == {"wheel": [3, -2], "drag": [6, 12, 34]},
                 ask="pointer_events"),
        "the session reports whether it is on the console":
            _jxa(probe, lambda answer: "kCGSSessionOnConsoleKey" in answer["keys"], ask="session"),
        "the public hit test, which counts y upwards, names the window that the list shows there":
            # of any application, in a program that has no NSApplication
            _jxa(probe, lambda answer: None if not answer["points"]
                 else all(point["hit"] in point["listed"] for point in answer["points"]), ask="hit_test"),
        "how many events of a kind there were can be read":
            _jxa(probe, lambda answer: len(answer["counts"]) == 6
                 and all(type(count) is int and count >= 0 for count in answer["counts"]), ask="counters"),
        "the current input source can be read":
            _jxa(probe, lambda answer: answer["type"].startswith("TISType") and bool(answer["id"]),
                 ask="input_source"),
        "the frontmost application reports AXFrontmost":
            _jxa(probe, lambda answer: answer["live"], ask="frontmost"),
        "who is responsible for a process can be asked":
            _jxa(probe, lambda answer: answer["pid"] > 0, ask="responsible", pid=os.getpid()),
        "at least one Keynote is installed": _jxa(_KEYNOTES, lambda answer: any(answer) or None),
    }  # fmt: skip


def _probes() -> dict[str, Probe]:
    return {
        **_jxa_probes(),
        "an unknown option of screencapture is refused with exit 1":
            _program(("screencapture", "-Z", "{folder}/z.png"),
                     lambda done, folder: done.code == 1 and not (folder / "z.png").exists()),
        "a window that is not there: exit 1 and no file":
            _program(("screencapture", "-x", "-a", "-o", "-l", "999999999", "{folder}/w.png"),
                     lambda done, folder: done.code != 0 and not (folder / "w.png").exists()),
        "a display that is not there: no file":
            _program(("screencapture", "-x", "-D", "99", "{folder}/d.png"),
                     lambda done, folder: done.code != 0 and not (folder / "d.png").exists()),
        "screencapture -R takes points: 10x10 points are 10 or 20 pixels":
            _program(("screencapture", "-x", "-R", "0,0,10,10", "{folder}/r.png"),
                     lambda done, folder: None if done.code
                     else _size(folder / "r.png") in ("10x10", "20x20")),
        "the keyboard's layout can be read":
            _program(("defaults", "read", "com.apple.HIToolbox", "AppleCurrentKeyboardLayoutInputSourceID"),
                     lambda done, _: done.code == 0 and "keylayout" in done.text),
        "sips -z takes the height first":
            _program(("sips", "-z", "10", "20", "{folder}/in.png", "--out", "{folder}/out.png"),
                     lambda _, folder: _size(folder / "out.png") == "20x10"),
        "sips writes no file if the input is not an image":
            _program(("sips", "-z", "10", "20", "{folder}/bad.png", "--out", "{folder}/bad_out.png"),
                     lambda _, folder: not (folder / "bad_out.png").exists()),
        "xcode-select -p exits 0, or 2 without tools, and opens no dialog":
            _program(("xcode-select", "-p"), lambda done, _: done.code in (0, 2)),
        "this runs in the GUI session":
            _program(("launchctl", "managername"), lambda done, _: done.text.strip() == "Aqua"),
        "ps shows the process ancestry":
            _program(("ps", "-axwwo", "pid=,ppid=,comm="),
                     lambda done, _: done.code == 0 and ".app/" in done.text, is_private=True),
        "ps with ww cuts no line without a terminal":
            _program(("ps", "-axwwo", "pid=,ppid=,comm="),
                     lambda done, _: any(len(line) > 79 for line in done.text.splitlines()), is_private=True),
        "accessibility and the window server agree on the front window's frame": _frames,
        "-a -o -l of the front window is as large as its bounds times the scale": _window_capture,
        "two captures of an idle window differ in the outer 4 points at most": _idle_captures,
        "a capture adds a small window titled Window to its application": _small_windows,
        "-D n and -R of every display are as large as its bounds times the scale": _display_captures,
        "text recognition reads the front window's title": _vision,
        "the AppleScript compiles with the installed Keynote's terms": _applescript,
        "the responsible process is the app that we name in errors": _responsible,
        _DISCLAIM: _disclaim,
        "the Swift helper compiles by xcrun, and has osascript's access": _helper,
    }  # fmt: skip


def _this_mac() -> dict[str, Any]:
    """macOS' version, the architecture, the displays and the host app, for the report."""
    try:
        version = run_program(["sw_vers", "-productVersion"], timeout_s=_FACT_S).text.strip()
        displays = [[*display["bounds"].values(), display["scale"]] for display in _snapshot()["displays"]]
    except PeekabooError as e:
        version, displays = e.message, []
    return {
        "macos": version,
        "architecture": platform.machine(),
        "displays": displays,
        "host_app": _named_app(),
    }


def _named_app() -> str:
    """Return the application that our permission errors name."""
    message = permission_error(ErrorCode.PERMISSION_DENIED_ACCESSIBILITY, "asked").message
    return message.partition(": ")[2].partition(" lacks the ")[0]


def probe_js(ask: str, **more: Any) -> dict[str, Any]:
    return run_jxa(_PROBE_SOURCES, {"ask": ask, **more})


def _snapshot() -> dict[str, Any]:
    return run_jxa([*WINDOW_SOURCES, "desktop/macos/snapshot.js"], {})


def _grants() -> dict[str, Any]:
    return run_jxa([WINDOW_SOURCES[0], "desktop/macos/permissions.js"], {})


def _frames(_folder: Path) -> Outcome:
    front, focused = (probe_js("frames")[key] for key in ("front", "focused"))
    if front is None or focused is None:
        return Outcome(None, "no front window, or no Accessibility")
    agrees = all(abs(front[key] - focused[key]) <= 2 for key in front)
    return Outcome(agrees, f"{front} and {focused}")


def _front_window() -> tuple[Optional[dict[str, Any]], float]:
    """Return the front window (None without Screen Recording) and the scale of its display."""
    scene = _snapshot()
    for window in scene["windows"]:
        is_ordinary = window["layer"] == 0 and window["alpha"] > 0 and window["bounds"]["height"] >= 50
        if window["on_screen"] and is_ordinary and window["title"]:
            middle = Rect(**window["bounds"]).centre
            for display in scene["displays"]:
                if Rect(**display["bounds"]).contains(middle):
                    return (window if scene["can_record"] else None), display["scale"]
    return None, 1.0


def _captured(options: list[str], path: Path) -> str:
    """Return the screenshot's size in pixels, or screencapture's error message."""
    done = run_program(["screencapture", "-x", *options, str(path)], timeout_s=_FACT_S, accept=None)
    return _size(path) or done.stderr.strip()[-80:]


def _window_capture(folder: Path) -> Outcome:
    window, scale = _front_window()
    if window is None:
        return Outcome(None, "no front window, or no Screen Recording")
    expected = _pixels(window["bounds"], scale)
    seen = _captured(["-a", "-o", "-l", str(window["id"])], folder / "front.png")
    return Outcome(seen == expected, f"{seen}, expected {expected}")


def _pixels(bounds: dict[str, float], scale: float) -> str:
    return f"{round(bounds['width'] * scale)}x{round(bounds['height'] * scale)}"


def _idle_captures(folder: Path) -> Outcome:
    window, scale = _front_window()
    if window is None:
        return Outcome(None, "no front window, or no Screen Recording")
    bitmaps = []
    for path in (folder / "first.bmp", folder / "second.bmp"):
        _captured(["-a", "-o", "-l", str(window["id"]), "-t", "bmp"], path)
        bitmaps.append(read_bitmap(path.read_bytes() if path.exists() else b""))
    edge, width, height = 4 * scale, bitmaps[0].width, len(bitmaps[0].rows)
    inside = Rect(edge, edge, width - 2 * edge, height - 2 * edge)
    most = _most_difference(*bitmaps)
    within = _most_difference(*(bitmap.cropped(inside, width) for bitmap in bitmaps))
    # the window may not be idle: a caret blinks
    return Outcome(within == 0 or None, f"by {most} of 255 at most, further inside by {within}")


def _most_difference(first: Bitmap, second: Bitmap) -> int:
    """Between two pixels at one place, in levels of a channel."""
    rows = [pair for pair in zip(first.rows, second.rows) if pair[0] != pair[1]]
    return max((abs(one - other) for pair in rows for one, other in zip(*pair)), default=0)


def _small_windows(folder: Path) -> Outcome:
    window, _ = _front_window()
    if window is None:
        return Outcome(None, "no front window, or no Screen Recording")
    known = {each["id"] for each in _snapshot()["windows"]}
    _captured(["-a", "-o", "-l", str(window["id"])], folder / "small.png")
    new = [each for each in _snapshot()["windows"] if each["id"] not in known]
    added = [each for each in new if each["pid"] == window["pid"] and each["title"] in ("Window", None, "")]
    # if there is no such window, it may be gone already
    return Outcome(bool(added) or None, f"new windows: {[_pixels(each['bounds'], 1) for each in added]}")


def _display_captures(folder: Path) -> Outcome:
    if not _grants()["screen_recording"]:
        return Outcome(None, "no Screen Recording")
    seen, holds = [], True
    for number, display in enumerate(_snapshot()["displays"], 1):
        rect = ",".join(str(round(display["bounds"][key])) for key in ("x", "y", "width", "height"))
        expected = _pixels(display["bounds"], display["scale"])
        sizes = [
            _captured(["-D", str(number)], folder / f"d{number}.png"),
            _captured(["-R", rect], folder / f"r{number}.png"),
        ]
        holds = holds and sizes == [expected, expected]
        seen.append(f"-D {number}: {sizes[0]}, -R {rect}: {sizes[1]}, expected {expected}")
    return Outcome(holds, "; ".join(seen))


def _vision(folder: Path) -> Outcome:
    window, _ = _front_window()
    words = _WORD.findall(window["title"]) if window else []
    if window is None or not words:
        return Outcome(None, "no front window with words in its title, or no Screen Recording")
    path = folder / "title.png"
    _captured(["-a", "-o", "-l", str(window["id"])], path)
    request = {"path": str(path), "characters": False}
    lines = run_jxa(["desktop/macos/read_text.js"], request, 2 * _FACT_S)["lines"]
    is_read = any(word.lower() in line["text"].lower() for word in words for line in lines)
    seen = f"{len(lines)} lines" + ("" if is_read else ", not the title")
    return Outcome(is_read or None, seen)  # the title bar may be hidden


def _applescript(_folder: Path) -> Outcome:
    found = run_jxa(["integrations/keynote.js"], {"do": "find"}).get("bundle_id")
    if found is None:
        return Outcome(None, "no Keynote is installed")
    source = "integrations/keynote_export.applescript"
    try:
        # without arguments it ends at the first one: it compiled, and nothing was sent
        end = run_applescript(source, [], _FACT_S, (KEYNOTE_IDS[0], found))
    except PeekabooError as e:
        end = e.details
    return Outcome(end.endswith("(-1728)"), end)


def _responsible(_folder: Path) -> Outcome:
    pid = probe_js("responsible", pid=os.getpid())["pid"]
    listed = run_program(["ps", "-axwwo", "pid=,ppid=,comm="], timeout_s=_FACT_S).text
    names = [line.split(None, 2)[2] for line in listed.splitlines() if line.split(None, 1)[:1] == [str(pid)]]
    ours = _named_app()
    app = names[0].rpartition(".app/")[0].rpartition("/")[2] if names else ""
    return Outcome(app == ours if app else None, f"responsible: {app or 'unknown'}; ours: {ours}")


def _disclaim(_folder: Path) -> Outcome:
    # only looked up: with this call, Claude Desktop and others start a program that macOS asks for by itself
    is_there = hasattr(ctypes.CDLL(None), "responsibility_spawnattrs_setdisclaim")
    return Outcome(is_there or None, "found" if is_there else "not found")


def _helper(folder: Path) -> Outcome:
    if run_program(["xcode-select", "-p"], timeout_s=_FACT_S, accept=None).code:
        return Outcome(None, "no developer tools")
    source, program = folder / "input.swift", folder / "input"
    source.write_text(native_source("desktop/macos/input.swift"), encoding="utf-8")
    compiler = ["xcrun", "--sdk", "macosx", "swiftc", "-O", "-swift-version", "5"]
    started = time.monotonic()
    done = run_program([*compiler, str(source), "-o", str(program)], timeout_s=_COMPILE_S, accept=None)
    seconds = time.monotonic() - started
    if done.code:
        return Outcome(False, done.stderr[-300:])
    request = b'{"window": null, "stop_file": "", "steps": []}'
    own = json.loads(run_program([str(program)], timeout_s=_FACT_S, stdin=request).text)
    grants = _grants()
    agrees = (own["code"] != "PERMISSION_DENIED_ACCESSIBILITY") == grants["accessibility"]
    return Outcome(agrees, f"compiled in {seconds:.1f} s; helper: {own}; osascript: {grants}")


if __name__ == "__main__":
    raise SystemExit(main())

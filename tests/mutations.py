"""Is every shipped line held by a test? `python tests/mutations.py [PART OF A NAME...]` breaks them, one at a time.

Each mutation is made in a copy of the tree in a temporary folder, and the test files that should see it run there.
Prints a table, caught or survived, and the counts; exits 1 when fewer than nine of ten are caught.
A test that fails without any mutation is left out, so that only a mutation can be what is caught.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("peekaboo_min", "tests", "scripts", "pyproject.toml")
MACOS, SWIFT, CONTRACT = (
    "tests/desktop/test_macos.py",
    "tests/desktop/test_swift.py",
    "tests/desktop/test_desktop_contract.py",
)
AT_ONCE = 2
LONGEST_S = 400
ENOUGH = 0.9


@dataclass(frozen=True)
class Mutation:
    """A text of a shipped file that is replaced, and the test files that should notice."""

    name: str
    file: str
    old: str
    new: str
    near: str
    """Words of the tests that run first, because they are the likeliest to notice."""
    tests: tuple[str, ...]


def _in(
    file: str, near: str, *changes: tuple[str, str, str], tests: tuple[str, ...] = (MACOS,)
) -> list[Mutation]:
    return [Mutation(name, f"peekaboo_min/{file}", old, new, near, tests) for name, old, new in changes]


MUTATIONS: list[Mutation] = [
    *_in(
        "desktop/macos/window_list.js",
        "window_list or front_to_back or screen_recording or apps_are or overlay",
        ("the reference is not cast", "const cast = ObjC.castRefToObject(list);\n    if (cast.isNil()) return null;", "const cast = list;"),
        ("CoreGraphics is not imported", "ObjC.import('CoreGraphics');\n", ""),
        ("the on-screen bit is 2", "const ON_SCREEN_ONLY = 1;", "const ON_SCREEN_ONLY = 2;"),
        ("the option is a name that the bridge has not", "const ON_SCREEN_ONLY = 1;", "const ON_SCREEN_ONLY = $.kCGWindowListOptionOnScreenOnly;"),
        ("desktop elements are listed", "const WITHOUT_DESKTOP = 16;", "const WITHOUT_DESKTOP = 0;"),
        ("no loop where the array is not unwrapped", "if (Array.isArray(unwrapped)) return unwrapped;", "return unwrapped;"),
        ("windows of every layer are ordinary", "return w.kCGWindowLayer === 0 && w.kCGWindowAlpha", "return w.kCGWindowAlpha"),
        ("transparent windows are ordinary", "w.kCGWindowAlpha > 0 && w.kCGWindowBounds.Width", "w.kCGWindowBounds.Width"),
        ("tiny windows are ordinary", " && w.kCGWindowBounds.Width >= 50 && w.kCGWindowBounds.Height >= 50", ""),
        ("recording is always allowed", "return $.CGPreflightScreenCaptureAccess() || titled.size > 1;", "return true;"),
        ("recording is never allowed", "return $.CGPreflightScreenCaptureAccess() || titled.size > 1;", "return false;"),
        ("the preflight is not bound", "ObjC.bindFunction('CGPreflightScreenCaptureAccess', ['bool', []]);\n", ""),
    ),
    *_in(
        "desktop/macos/windows.js",
        "front_to_back or without_titles",
        ("bounds by width", "width: w.kCGWindowBounds.Width", "width: w.kCGWindowBounds.width"),
        ("bounds by x", "x: w.kCGWindowBounds.X", "x: w.kCGWindowBounds.x"),
        ("the title is assumed", "w.kCGWindowName === undefined ? null : w.kCGWindowName", "w.kCGWindowName.trim()"),
        ("an array is returned", "return JSON.stringify({\n        windows: onScreen", "return ({\n        windows: onScreen"),
        ("only what is on the screen", ".filter(w => !seen.has(w.kCGWindowNumber))", ".filter(w => false)"),
        ("every window is on the screen", "on_screen: Boolean(w.kCGWindowIsOnscreen)", "on_screen: true"),
        ("bundle ids are left out", "bundle_id: bundleIds[pid]", "bundle_id: null"),
        tests=(MACOS, CONTRACT),
    ),
    *_in(
        "desktop/macos/apps.js",
        "apps_are_listed",
        ("every window is counted", "if (isOrdinary(w)) ", ""),
        ("every app is a regular one", "is_regular: app.activationPolicy === 0", "is_regular: true"),
    ),
    *_in(
        "desktop/macos/displays.js",
        "displays_are_listed",
        ("the origin is not flipped", "y: mainHeight - frame.origin.y - frame.size.height", "y: frame.origin.y"),
        ("the focused screen's height", "screens.count ? screens.objectAtIndex(0).frame.size.height : 0", "$.NSScreen.mainScreen.frame.size.height"),
        ("the scale is 2", "scale: screen.backingScaleFactor", "scale: 2"),
    ),
    *_in(
        "desktop/macos/focus.js",
        "raised or declined or two_windows or minimised or comes_forward",
        ("the first window is raised", "found = found.filter(w => isAt(w, request.bounds));", "found = found.slice(0, 1);"),
        ("two windows of one frame are one", "if (found.length > 1) found = found.filter(titled);", "found = found.slice(0, 1);"),
        ("windows are told apart by title alone", "found = found.filter(w => isAt(w, request.bounds));", "found = found.filter(titled);"),
        ("the app is not brought forward by accessibility", "$.AXUIElementSetAttributeValue(element, $('AXFrontmost'), $(true));", ""),
        ("a minimised window stays so", "$.AXUIElementSetAttributeValue(found[0], $('AXMinimized'), $(false));", ""),
        ("no AXRaise", "$.AXUIElementPerformAction(found[0], $('AXRaise'));\n    $.AXUIElementSetAttributeValue(found[0], $('AXMain'), $(true));", ""),
        ("the value comes through an untyped reference", "['int', ['id', 'id', 'id*']]", "['int', ['id', 'id', 'id']]"),
        ("accessibility is always granted", "const trusted = $.AXIsProcessTrusted();", "const trusted = true;"),
    ),
    *_in(
        "desktop/macos/permissions.js",
        "permissions_tells or told_apart",
        ("accessibility is always told", "accessibility: $.AXIsProcessTrusted() && $.CGPreflightPostEventAccess()", "accessibility: true"),
        ("the screen is never locked", "is_locked: Boolean(about && about.CGSSessionScreenIsLocked)", "is_locked: false"),
    ),
    *_in(
        "desktop/macos/input.js",
        "jxa",
        ("no click state", "$.CGEventSetIntegerValueField(event, CLICK_STATE, clickState);", ""),
        ("the wrong field for the click state", "const CLICK_STATE = 1;", "const CLICK_STATE = 3;"),
        ("flags are not set", "$.CGEventSetFlags(event, flags);", ""),
        ("events inherit held modifiers", "const source = $.CGEventSourceCreate(PRIVATE_STATE);", "const source = $.CGEventSourceCreate(0);"),
        ("a click is not posted", "$.CGEventPost(HID_TAP, event);", ""),
        ("the pointer is not moved first", "postMouse(source, MOVED, point, 0, 0);\n  for", "for"),
        ("access is asked for after posting", "const source = openSource();\n  postMouse(source", "const source = $.CGEventSourceCreate(PRIVATE_STATE);\n  postMouse(source"),
        ("the Unicode string is not rebound", "ObjC.bindFunction('CGEventKeyboardSetUnicodeString', ['void', ['void *', 'unsigned long', 'void *']]);", ""),
        ("surrogate pairs are split", "function characters(text) {", "function characters(text) {\n  return text.split('');"),
        ("40 units in an event", "character.length > 20) flush()", "character.length > 40) flush()"),
        ("big-endian units", "$.NSUTF16LittleEndianStringEncoding", "$.NSUTF16BigEndianStringEncoding"),
        ("a newline is text", "'\\n': 36, ", ""),
        ("right is left", "right: [1, 3, 4]", "right: [0, 1, 2]"),
        ("ApplicationServices is not imported", "ObjC.import('ApplicationServices');\nObjC.import('CoreGraphics');", "ObjC.import('CoreGraphics');"),
        ("no pause after an event", "$.NSThread.sleepForTimeInterval(pauseSeconds);", ""),
        tests=(SWIFT, MACOS),
    ),
    *_in(
        "desktop/macos/input.swift",
        "swift",
        ("Swift: no click state", "event?.setIntegerValueField(.mouseEventClickState, value: clickState)", ""),
        ("Swift: flags are not set", "event.flags = flags", ""),
        ("Swift: access is not asked for", "guard AXIsProcessTrusted() && CGPreflightPostEventAccess() else", "guard AXIsProcessTrusted() || true else"),
        ("Swift: an inherited event source", "stateID: .privateState", "stateID: .combinedSessionState"),
        ("Swift: the person is locked out", "source.localEventsSuppressionInterval = 0", "source.localEventsSuppressionInterval = 0.25"),
        ("Swift: 40 units in an event", "character.utf16.count > 20", "character.utf16.count > 40"),
        ("Swift: down and up are swapped", "for down in [true, false]", "for down in [false, true]"),
        tests=(SWIFT,),
    ),
    *_in(
        "desktop/macos/backend.py",
        "photograph or rectangle or told_apart or exact_point or chosen_by or screen_recording or accessibility or front_to_back",
        ("the shadow is photographed", 'shadow = [] if with_shadow else ["-o"]', "shadow = []"),
        ("the shutter is heard", '["screencapture", "-x", *words', '["screencapture", *words'),
        ("-D counts from 0", 'self._screencapture(["-D", str(display.number)]', 'self._screencapture(["-D", str(display.number - 1)]'),
        ("-R in pixels", "for number in (rect.x, rect.y, rect.width, rect.height))", "for number in (rect.x * 2, rect.y * 2, rect.width * 2, rect.height * 2))"),
        ("-R by corners", "(rect.x, rect.y, rect.width, rect.height))  # points", "(rect.x, rect.y, rect.x + rect.width, rect.y + rect.height))  # points"),
        ("-D is believed", "if info and (info.width, info.height) != expected:", "if False:"),
        ("the kind is not told", '"-t", kind, str(path)]', "str(path)]"),
        ("no permission is asked before a capture", "if not self._can_record:", "if False:"),
        ("an exit code of 0 is success", "if done.code or not path.is_file() or not path.stat().st_size:", "if done.code:"),
        ("an exit code is nothing", "if done.code or not path.is_file()", "if not path.is_file()"),
        ("sips takes the width first", '"sips", "-z", str(height), str(width)', '"sips", "-z", str(width), str(height)'),
        ("sips is asked for jpg", '"-s", "format", "jpeg"', '"-s", "format", "jpg"'),
        ("a locked screen is any failure", 'if told["is_locked"]:', "if False:"),
        ("no session is an empty list", 'if told["windows"] is None:\n            raise _no_session()', 'if told["windows"] is None:\n            return []'),
        ("any window of the app has the keyboard", "one.is_ordinary and one.is_on_screen), None", "one.is_on_screen), None"),
        ("the helper is never used", "helper = find_helper()", "helper = None"),
        ("a locked screen is acted on", "if self._is_locked:", "if False:"),
        ("a refusal of input is success", 'if told["ok"]:', "if True:"),
        tests=(MACOS, CONTRACT),
    ),
    *_in(
        "desktop/macos/keycodes.py",
        "every_key or chord",
        ("return is enter", '"return": 36', '"return": 76'),
        ("a and s are swapped", '"a": 0, "s": 1', '"a": 1, "s": 0'),
        ("cmd is ctrl", '"cmd": 0x100000', '"cmd": 0x40000'),
        ("plus is not shifted", '*(["shift"] if chord.key == "plus" else [])', ""),
    ),
    *_in(
        "desktop/macos/osascript.py",
        "script_error",
        ("a number anywhere is the error's", r'_NUMBER_AT_END = re.compile(r"\((-?\d+)\)\s*$")', r'_NUMBER_AT_END = re.compile(r"\((-?\d+)\)")'),
        ("-1719 is always accessibility", 'elif number == -1719 and "assistive" in details:', "elif number == -1719:"),
        ("the argument is part of the source", '"-", json.dumps(argument)]', 'json.dumps(argument)]'),
        ("a crash is a failed script", "elif exit_code < 0 or exit_code > 128:", "elif False:"),
    ),
    *_in(
        "desktop/macos/permissions.py",
        "ancestry or without_screen_recording_nothing",
        ("the innermost bundle", 're.compile(r"^(.*?/([^/]+)\\.app)/")', 're.compile(r"^(.*/([^/]+)\\.app)/")'),
        ("Python is the host", " and not _PYTHONS_OWN.search(command)", ""),
        ("the wrong pane", '("Screen Recording", "Privacy_ScreenCapture")', '("Screen Recording", "Privacy_Accessibility")'),
    ),
    *_in(
        "desktop/macos/swift_helper.py",
        "helper or compiler or developer_tools",
        ("the shim is asked", 'run_program(["xcode-select", "-p"], timeout_s=_ASK_S)\n', "\n"),
        ("a failure is forgotten", "if known and not known.path and time.time() - known.built_at < _RETRY_AFTER_S:", "if False:"),
        ("compiled each time", "if known and known.path and os.access(known.path, os.X_OK):", "if False:"),
        ("the compiler is waited for", "timeout_s=_COMPILE_S)", "timeout_s=600)"),
    ),
    *_in(
        "automation/input.py",
        "menu_over or outside_every or will_not_come",
        ("focus is not looked at", "if window.is_focused and window.is_on_screen:", "if True:"),
        ("what covers is clicked", "    if cover:\n", "    if False:\n"),
        ("a place off the screen is clicked", "if not any(display.bounds.contains(point) for display in desktop.displays()):", "if False:"),
        tests=(MACOS, CONTRACT),
    ),
    *_in(
        "desktop/matching.py",
        "front_to_back or menu_over",
        ("every window of an app is listed", "return window.is_ordinary and ", "return "),
        ("the Dock's full-screen window covers", "if is_there and not (one.layer != 0 and one.outer.encloses(target.bounds)):", "if is_there:"),
    ),
    *_in(
        "core/models.py",
        "front_to_back or menu_over",
        ("windows of every layer are listed", "self.layer == 0", "True"),
        ("transparent windows are listed", "self.alpha > 0", "True"),
    ),
    *_in(
        "automation/app_window.py",
        "budget or rectangle or shadow or five_errors",
        ("every program has the whole time", "with time_budget(request.timeout_ms / 1000):", "if True:"),
        ("always by the window's id", "if request.prefers_window_id:", "if True:"),
        ("the scale of a picture with a shadow", "if request.includes_shadow else round", "if False else round"),
        ("a missing permission is a failed capture", 'ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING: "PermissionDenied"',
         'ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING: "CaptureFailed"'),
    ),
    *_in(
        "automation/capture.py",
        "tried_again or told_apart",
        ("one try", "_TRIES = 3", "_TRIES = 1"),
        ("any file is a picture", "info = read_image_info(path) if path.is_file() else None\n    if info is None:",
         'info = read_image_info(path) or ImageInfo("png", 1, 1)\n    if info is None:'),
    ),
    *_in(
        "desktop/macos/backend.py",
        "without_titles",
        ("hidden titles are not noticed", "return self._can_record is not False", "return True"),
    ),
    *_in(
        "automation/coordinates.py",
        "sheet or resized",
        ("a sheet's picture is clicked", "abs(scale_x - scale_y) > 0.02 * max(scale_x, scale_y)", "False"),
        ("a resized window is clicked", "if not record.bounds.has_size_of(window.bounds):", "if False:"),
        tests=(MACOS, CONTRACT),
    ),
]  # fmt: skip


def main(words: Sequence[str]) -> int:
    chosen = [
        one for one in MUTATIONS if not words or any(word in one.name or word in one.file for word in words)
    ]
    with tempfile.TemporaryDirectory() as name:
        clean = _copy(ROOT, Path(name) / "clean")  # the tree may be edited meanwhile
        missing = [
            one for one in chosen if (clean / one.file).read_text(encoding="utf-8").count(one.old) != 1
        ]
        for one in missing:
            print(f"{one.name}: its text does not stand exactly once in {one.file}")
        files = sorted({file for one in chosen for file in one.tests})
        failing = _failing(clean, files)
        print(
            f"without a mutation {len(failing)} tests fail, and are left out",
            *failing,
            sep="\n  ",
            flush=True,
        )
        with ThreadPoolExecutor(AT_ONCE) as pool:
            results = list(
                pool.map(
                    lambda one: _try(one, Path(name), failing), [one for one in chosen if one not in missing]
                )
            )
    caught = sum(results)
    print(f"{caught} of {len(results)} caught" + (f"; {len(missing)} could not be made" if missing else ""))
    return int(bool(missing) or caught < ENOUGH * len(results))


def _copy(source: Path, target: Path) -> Path:
    target.mkdir()
    for part in COPIED:
        if (source / part).is_dir():
            shutil.copytree(source / part, target / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source / part, target / part)
    return target


def _failing(folder: Path, files: Sequence[str]) -> list[str]:
    said = _run(folder, [*files, "-q"])[1]
    return sorted(set(re.findall(r"^(?:FAILED|ERROR) (tests/.*?)(?: - .*)?$", said, re.M)))


def _try(mutation: Mutation, folder: Path, failing: Sequence[str]) -> bool:
    """Whether a test fails by the mutation; prints its line of the table."""
    started = time.monotonic()
    tree = _copy(folder / "clean", Path(tempfile.mkdtemp(dir=folder)) / "tree")
    file = tree / mutation.file
    file.write_text(file.read_text(encoding="utf-8").replace(mutation.old, mutation.new), encoding="utf-8")
    left_out = [word for name in failing for word in ("--deselect", name)]
    by = ""
    for words in ([mutation.tests[0], "-k", mutation.near], *([tests] for tests in mutation.tests)):
        code, said = _run(tree, [*words, "-q", "-x", *left_out])
        found = re.search(r"^(?:FAILED|ERROR) (tests/.*?)(?: - .*)?$", said, re.M)
        if code:
            by = found.group(1).split("::")[-1] if found else "a run that ends early"
            break
    shutil.rmtree(tree.parent, ignore_errors=True)
    seconds = time.monotonic() - started
    print(
        f"{'caught  ' if by else 'SURVIVED'} {Path(mutation.file).name:<16} {mutation.name:<50} {seconds:4.0f} s  {by}",
        flush=True,
    )
    return bool(by)


def _run(folder: Path, words: Sequence[str]) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST_S
        )
    except subprocess.TimeoutExpired:
        return 1, "a run that never ends"
    return done.returncode, done.stdout


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

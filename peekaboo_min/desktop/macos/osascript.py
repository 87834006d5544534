"""Run JXA or AppleScript; what its errors, and missing grants, mean."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ...core.errors import ErrorCode, PeekabooError
from ...core.log import log_debug
from ...system.process import run_program
from ...system.programs import native_source

SCRIPT_S = 10.0
# What most of the other sources begin with.
WINDOW_SOURCES = ("desktop/macos/window_list.js", "desktop/macos/accessibility.js")
_NUMBER_AT_END = re.compile(r"\((-?\d+)\)\s*$")

# The text before the number is localised, and may quote a user's text: only the number is read.
_CODES = {
    -1743: (ErrorCode.PERMISSION_DENIED_AUTOMATION, "another application cannot be controlled"),
    -1744: (ErrorCode.PERMISSION_DENIED_AUTOMATION, "another application cannot be controlled"),
    -25211: (ErrorCode.PERMISSION_DENIED_ACCESSIBILITY, "the script was refused"),
    1002: (ErrorCode.PERMISSION_DENIED_ACCESSIBILITY, "the script was refused"),
    -1712: (ErrorCode.TIMEOUT, "the application did not answer in time"),
    -600: (ErrorCode.APP_NOT_FOUND, "the application is not running"),
    -609: (ErrorCode.APP_NOT_FOUND, "the application quit in the middle"),
}
_HINTS = {
    ErrorCode.NO_GUI_SESSION: "run this in a Terminal of the logged-in user, not over ssh or from a daemon",
    ErrorCode.PROGRAM_FAILED: "run peekaboo-min doctor",
    ErrorCode.TIMEOUT: "check whether it shows a dialog, or macOS asks for consent; then try again",
}


def run_jxa(
    names: Sequence[str],
    argument: Mapping[str, Any],
    timeout_s: float = SCRIPT_S,
    pass_fds: Sequence[int] = (),
) -> dict[str, Any]:
    """Run JXA sources of the package, joined, with one JSON argument; return their JSON. Raises as
    run_program does, and what script_error makes of a failed script.

    pass_fds: descriptors that osascript inherits, where it acts.
    """
    source = "\n".join(native_source(name) for name in names)
    # without blanks: a long text has a thousand steps, and an argument its limits
    argv = ["-l", "JavaScript", "-", json.dumps(argument, separators=(",", ":"))]
    answer = _run_script(argv, source, timeout_s, pass_fds)
    try:
        return dict(json.loads(answer))
    except ValueError as e:
        message = f"{names[-1]} did not answer with JSON"
        raise mac_error(ErrorCode.INTERNAL_SWIFT_ERROR, message, answer[:300]) from e


def run_applescript(
    name: str, arguments: Sequence[str], timeout_s: float, dictionary: tuple[str, str] = ("", "")
) -> str:
    """Run an AppleScript source of the package with arguments; return its result. Raises as run_jxa does.

    dictionary: the bundle id whose terms the source is compiled with, and the one to take instead. No
    argument can say it, and by the application's name macOS might ask a person where that application is.
    """
    known, wanted = (f'application id "{bundle_id}"' for bundle_id in dictionary)
    source = native_source(name).replace(known, wanted)
    return _run_script(["-", *arguments], source, timeout_s)


def _run_script(argv: Sequence[str], source: str, timeout_s: float, pass_fds: Sequence[int] = ()) -> str:
    stdin = source.encode("utf-8")
    done = run_program(["osascript", *argv], timeout_s=timeout_s, stdin=stdin, accept=None, pass_fds=pass_fds)
    if done.code == 0:
        return done.text.rstrip("\n")
    raise script_error(done.code, done.stderr)


def script_error(exit_code: int, stderr: str) -> PeekabooError:
    """What osascript's exit and its message mean."""
    details = stderr.strip()[-500:]
    match = _NUMBER_AT_END.search(details)
    number = int(match.group(1)) if match else None
    if number == -1719 and "assistive" in details:
        number = -25211  # else -1719 means a bad index
    failed = f"the script failed{f' with error {number}' if number else ''}"
    code, message = _CODES.get(number or 0, (ErrorCode.PROGRAM_FAILED, failed))
    return mac_error(code, message, details)


def mac_error(code: ErrorCode, message: str, details: str = "") -> PeekabooError:
    """An error that a Mac or a script on it told, with what to do next."""
    if code in _PANES:
        return permission_error(code, message, details)
    return PeekabooError(code, message, _HINTS.get(code, code.next_step), details)


_PS_S = 5.0
_SETTINGS = "x-apple.systempreferences:com.apple.preference.security?"
_PYTHONS_OWN = re.compile(r"/Python3?\.framework/|/Python\.app/")
_PROCESS = re.compile(r"^\s*(\d+)\s+(\d+)\s+(.+)$", re.M)
_OUTERMOST_APP, _INNERMOST_APP = re.compile(r"^.*?/[^/]+\.app(?=/)"), re.compile(r"^.*/[^/]+\.app(?=/)")

# A missing grant -> the name of its pane, and the last part of its address.
_PANES: dict[ErrorCode, tuple[str, str]] = {
    ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING: ("Screen Recording", "Privacy_ScreenCapture"),
    ErrorCode.PERMISSION_DENIED_ACCESSIBILITY: ("Accessibility", "Privacy_Accessibility"),
    ErrorCode.PERMISSION_DENIED_AUTOMATION: ("Automation", "Privacy_Automation"),
}


def _responsible() -> str:
    """The path of the application or program that our grants belong to; empty where it is not known.

    As macOS tells: a launcher may have let go of us, and python answers for itself. Else the nearest ancestor
    that is in an app bundle; Python's own Python.app hosts nothing.
    """
    try:
        # without ww it may cut a line at 79 columns, as it does where there is no terminal
        listed = run_program(["ps", "-axwwo", "pid=,ppid=,comm="], timeout_s=_PS_S).text
    except PeekabooError as e:
        log_debug(f"the process ancestry is unknown: {e.message}")
        listed = ""
    processes = {pid: (parent, command) for pid, parent, command in _PROCESS.findall(listed)}
    pid = own = str(os.getpid())
    with suppress(PeekabooError):  # not by run_jxa, whose errors name this very program
        source, argv = native_source("desktop/macos/responsible.js"), ["-l", "JavaScript", "-", own]
        told = run_program(["osascript", *argv], timeout_s=_PS_S, stdin=source.encode()).text.strip()
        command = processes.get(told, ("", ""))[1]
        if command:
            app = _INNERMOST_APP.match(command)  # Python.app lies in Xcode.app
            return app[0] if app else command
    while pid in processes:
        pid, command = processes.pop(pid)
        app = _OUTERMOST_APP.match(command)
        if app and not _PYTHONS_OWN.search(command):
            return app[0]
    return ""


def permission_error(code: ErrorCode, what: str, details: str = "") -> PeekabooError:
    """The error for a missing grant: which app needs it, how to open the pane for it, and the restart."""
    import platform

    path, (pane, address) = _responsible(), _PANES[code]
    app = os.path.basename(path).removesuffix(".app") or "the app that started this"
    version = int(platform.mac_ver()[0].partition(".")[0] or 0)  # 0 where that is not known
    if code is ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING and version >= 15:
        pane = "Screen & System Audio Recording"
    missing = f"; if it is not in the list, add {path} by the + button" if path else ""
    renewed = "" if path.endswith(".app") or not path else "; an upgrade of it may need that again"
    hint = (
        f"switch {app} on in System Settings > Privacy & Security > {pane} "
        f'(open "{_SETTINGS}{address}"){missing}{renewed}; then quit and reopen {app}'
    )
    return PeekabooError(code, f"{what}: {app} lacks the {pane} permission", hint, details)

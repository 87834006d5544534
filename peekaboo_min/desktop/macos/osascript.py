"""Run JXA or AppleScript; what its errors, and missing grants, mean."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
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
    -1743: (ErrorCode.PERMISSION_DENIED_AUTOMATION, "controlling that application is not allowed"),
    -1744: (ErrorCode.PERMISSION_DENIED_AUTOMATION, "controlling that application was never allowed"),
    -25211: (ErrorCode.PERMISSION_DENIED_ACCESSIBILITY, "Accessibility is not granted"),
    1002: (ErrorCode.PERMISSION_DENIED_ACCESSIBILITY, "Accessibility is not granted"),
    -1712: (ErrorCode.TIMEOUT, "the application did not answer in time"),
    -600: (ErrorCode.APP_NOT_FOUND, "the application is not running"),
    -609: (ErrorCode.APP_NOT_FOUND, "the application quit in the middle"),
}
_HINTS = {
    ErrorCode.TIMEOUT: "check whether it shows a dialog, or macOS asks for consent; then try again",
    ErrorCode.APP_NOT_FOUND: "open it, then try again",
}
_SCRIPT_HINT = "see the details; peekaboo-min doctor may help"
_SILENT_HINT = "run peekaboo-min doctor"


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
    script_argv = ["-l", "JavaScript", "-", json.dumps(argument)]
    answer = _run_script(script_argv, source, timeout_s, pass_fds)
    try:
        return dict(json.loads(answer))
    except ValueError as e:
        raise PeekabooError(
            ErrorCode.INTERNAL_SWIFT_ERROR,
            f"{names[-1]} did not answer with JSON",
            hint="please report this",
            details=answer[:300],
        ) from e


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


def _run_script(arguments: Sequence[str], source: str, timeout_s: float, pass_fds: Sequence[int] = ()) -> str:
    done = run_program(
        ["osascript", *arguments],
        timeout_s=timeout_s,
        stdin=source.encode("utf-8"),
        accept=None,
        pass_fds=pass_fds,
    )
    if done.code == 0:
        return done.text.rstrip("\n")
    raise script_error(done.code, done.stderr)


def script_error(exit_code: int, stderr: str) -> PeekabooError:
    """What osascript's exit and its message mean."""
    details = stderr.strip()[-500:]
    found = _NUMBER_AT_END.search(details)
    number = int(found.group(1)) if found else None
    if number in _CODES:
        code, message = _CODES[number]
    elif number == -1719 and "assistive" in details:
        code, message = _CODES[-25211]  # the same number also means a bad index
    elif exit_code < 0 or exit_code > 128:
        code, message = ErrorCode.PROGRAM_FAILED, "osascript crashed"
    else:
        message = f"the script failed{f' with error {number}' if number else ''}"
        code = ErrorCode.PROGRAM_FAILED
    hint = _HINTS.get(code, _SCRIPT_HINT if details else _SILENT_HINT)
    if code in _PANES:
        hint = f"allow it in System Settings > Privacy & Security > {_PANES[code][0]}: {settings_line(code)}"
    return PeekabooError(code, message, hint, details)


# grants -----------------------------------------------------------------------------------------------

_PS_S = 5.0
_SETTINGS = "x-apple.systempreferences:com.apple.preference.security?"
_PYTHONS_OWN = re.compile(r"/Python3?\.framework/|/Python\.app/")
_OUTERMOST_APP = re.compile(r"^(.*?/([^/]+)\.app)/")

# A missing grant -> the name of its pane, and the last part of its address.
_PANES: dict[ErrorCode, tuple[str, str]] = {
    ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING: ("Screen Recording", "Privacy_ScreenCapture"),
    ErrorCode.PERMISSION_DENIED_ACCESSIBILITY: ("Accessibility", "Privacy_Accessibility"),
    ErrorCode.PERMISSION_DENIED_AUTOMATION: ("Automation", "Privacy_Automation"),
}


def responsible_app() -> str:
    """The name of the app that our grants belong to, by the process ancestry, or a phrase for it.

    The nearest ancestor that is in an app bundle; Python's own Python.app hosts nothing.
    """
    try:
        listed = run_program(["ps", "-axo", "pid=,ppid=,comm="], timeout_s=_PS_S).text
    except PeekabooError as e:
        log_debug(f"the process ancestry is unknown: {e.message}")
        listed = ""
    parents: dict[int, tuple[int, str]] = {}
    for line in listed.splitlines():
        fields = line.split(None, 2)
        if len(fields) == 3 and fields[0].isdigit() and fields[1].isdigit():
            parents[int(fields[0])] = (int(fields[1]), fields[2])
    pid = os.getpid()
    for _ in range(64):
        if pid not in parents:
            break
        pid, command = parents[pid]
        app = _OUTERMOST_APP.match(command)
        if app and not _PYTHONS_OWN.search(command):
            return app.group(2)
    return "the app that started this"


def settings_line(code: ErrorCode) -> str:
    """The shell line that opens the pane of a grant."""
    return f'open "{_SETTINGS}{_PANES[code][1]}"'


def permission_error(code: ErrorCode, what: str) -> PeekabooError:
    """The error for a missing grant: which app needs it, how to open the pane for it, and the restart."""
    app, (pane, _) = responsible_app(), _PANES[code]
    return PeekabooError(
        code,
        f"{what}: {app} lacks the {pane} permission",
        hint=f"switch {app} on in System Settings > Privacy & Security > {pane} ({settings_line(code)}), "
        f"then quit and reopen {app}",
    )


def screen_locked_error(details: str) -> PeekabooError:
    """SCREEN_LOCKED, to be raised."""
    return PeekabooError(ErrorCode.SCREEN_LOCKED, "the screen is locked", hint="unlock it", details=details)


def no_session_error() -> PeekabooError:
    """NO_GUI_SESSION, to be raised."""
    return PeekabooError(
        ErrorCode.NO_GUI_SESSION,
        "there is no GUI session: the window server answers nothing",
        hint="run this in a Terminal of the logged-in user, not over ssh or from a daemon",
    )

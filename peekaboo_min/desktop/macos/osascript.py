"""Run JXA and AppleScript; explain their errors and missing permissions."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.errors import ErrorCode, PeekabooError
from ...core.log import log_debug
from ...system.files import temporary_file
from ...system.process import run_program
from ...system.programs import native_source

_SCRIPT_S = 10.0  # the Keynote specification's default
WINDOW_SOURCES = ("desktop/macos/window_list.js", "desktop/macos/accessibility.js")
"""The first sources of a script that reads windows or the accessibility tree."""

# The text before the number is localised and may quote a user's text, so read only the number.
_NUMBER_AT_END = re.compile(r"\((-?\d+)\)\s*$")
_NO_ASSISTIVE_ACCESS = -25211
_BAD_INDEX = -1719
_ERRORS = {
    -1743: (ErrorCode.PERMISSION_DENIED_AUTOMATION, "another application cannot be controlled"),
    -1744: (ErrorCode.PERMISSION_DENIED_AUTOMATION, "another application cannot be controlled"),
    _NO_ASSISTIVE_ACCESS: (ErrorCode.PERMISSION_DENIED_ACCESSIBILITY, "the script was refused"),
    1002: (ErrorCode.PERMISSION_DENIED_ACCESSIBILITY, "the script was refused"),
    -1712: (ErrorCode.TIMEOUT, "the application did not answer in time"),
    -600: (ErrorCode.APP_NOT_FOUND, "the application is not running"),
    -609: (ErrorCode.APP_NOT_FOUND, "the application quit before it answered"),
}
_HINTS = {
    ErrorCode.NO_GUI_SESSION: "run this in a Terminal of the logged-in user, not over ssh or from a daemon",
    ErrorCode.TIMEOUT: "check whether it shows a dialog or macOS asks for consent; then try again",
}

_LOOKUP_S = 5.0  # for each lookup; the error must not wait long for an app's name
_USAGE_KEY, _UNKNOWN_APP = "NSAppleEventsUsageDescription", "the app that started this"
_SETTINGS_URL = "x-apple.systempreferences:com.apple.preference.security?"
_PS_LINE = re.compile(r"^\s*(\d+)\s+(\d+)\s+(.+)$", re.M)  # pid, parent's pid, path of the program
_PYTHON_ITSELF = re.compile(r"/Python3?\.framework/|/Python\.app/")
_OUTERMOST_APP, _INNERMOST_APP = re.compile(r"^.*?/[^/]+\.app(?=/)"), re.compile(r"^.*/[^/]+\.app(?=/)")

_PANES = {  # permission -> the title of its pane in System Settings, and the last part of the pane's address
    ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING: ("Screen Recording", "Privacy_ScreenCapture"),
    ErrorCode.PERMISSION_DENIED_ACCESSIBILITY: ("Accessibility", "Privacy_Accessibility"),
    ErrorCode.PERMISSION_DENIED_AUTOMATION: ("Automation", "Privacy_Automation"),
}


def run_jxa(
    names: Sequence[str],
    request: Mapping[str, Any],
    timeout_s: float = _SCRIPT_S,
    pass_fds: Sequence[int] = (),
) -> dict[str, Any]:
    """Join JXA sources of the package, run them with a JSON request, and return their JSON.

    pass_fds: descriptors that osascript inherits; a script that acts inherits the input lock. Raises the
    errors of run_program and script_error.
    """
    source = "\n".join(native_source(name) for name in ("desktop/macos/read_request.js", *names))
    # not as an argument: every user can read those with `ps`, and macOS limits their size
    with temporary_file("json", json.dumps(request).encode()) as path:
        output = _run_script(["-l", "JavaScript", "-", str(path)], source, timeout_s, pass_fds)
    try:
        return dict(json.loads(output))
    except ValueError as e:
        message = f"{names[-1]} did not return JSON"
        raise mac_error(ErrorCode.INTERNAL_SWIFT_ERROR, message, output[:300]) from e


def run_applescript(
    name: str, arguments: Sequence[str], timeout_s: float, terms: tuple[str, str] = ("", "")
) -> str:
    """Run an AppleScript source of the package with arguments and return its result.

    terms: the bundle id that the source names, and the installed one, which replaces it. AppleScript reads
    an application's terms when it compiles, so the id cannot be an argument. Raises the errors of run_jxa.
    """
    in_source, installed = (f'application id "{bundle_id}"' for bundle_id in terms)
    source = native_source(name).replace(in_source, installed)
    return _run_script(["-", *arguments], source, timeout_s)


def _run_script(argv: Sequence[str], source: str, timeout_s: float, pass_fds: Sequence[int] = ()) -> str:
    stdin = source.encode("utf-8")
    done = run_program(["osascript", *argv], timeout_s=timeout_s, stdin=stdin, accept=None, pass_fds=pass_fds)
    if done.code == 0:
        return done.text.rstrip("\n")
    raise script_error(done.stderr)


def script_error(stderr: str) -> PeekabooError:
    """Translate osascript's stderr into an error."""
    details = stderr.strip()[-500:]
    match = _NUMBER_AT_END.search(details)
    number = int(match.group(1)) if match else 0
    if number == _BAD_INDEX and "assistive" in details:
        number = _NO_ASSISTIVE_ACCESS  # older systems report both with the same number
    unknown = f"the script failed with error {number}" if number else "the script failed"
    code, message = _ERRORS.get(number, (ErrorCode.PROGRAM_FAILED, unknown))
    return mac_error(code, message, details)


def mac_error(code: ErrorCode, message: str, details: str = "") -> PeekabooError:
    """Return an error that a Mac or a script reported, with the next step for it."""
    if code in _PANES:
        return permission_error(code, message, details)
    return PeekabooError(code, message, _HINTS.get(code, ""), details)


def permission_error(code: ErrorCode, what: str, details: str = "") -> PeekabooError:
    """Return the error for a refused operation (`what`): which app lacks `code`, and how to grant it."""
    (path, app, host), (title, address) = _grantee(), _PANES[code]
    macos_version = int(platform.mac_ver()[0].partition(".")[0] or 0)  # 0 if unknown
    if code is ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING and macos_version >= 15:
        title = "Screen & System Audio Recording"
    pane = f'in System Settings > Privacy & Security > {title} (open "{_SETTINGS_URL}{address}")'
    if code is not ErrorCode.PERMISSION_DENIED_AUTOMATION:
        add = f" If it is not in the list, press +, then shift-cmd-G, and enter {path}." if path else ""
        if path and not path.endswith(".app"):
            add += " If the dialog refuses it, or after an upgrade, read macOS permissions in the README."
        hint = f"switch {app} on {pane}.{add} If it is already on, remove it with - and add it again. "
        hint += f"Then quit and reopen {host}"
    elif _may_ask_to_automate(path):
        hint = f"switch Keynote on below {app} {pane}. If it is not in the list, run `tccutil reset "
        hint += "AppleEvents` in a terminal, try again, and answer the question"
    else:
        hint = f"run peekaboo-min in a terminal, or install it with uv. macOS refuses {app} without a "
        hint += f"question, because {path}/Contents/Info.plist lacks {_USAGE_KEY}"
    return PeekabooError(code, f"{what}: {app} lacks the {title} permission", hint, details)


def request_notice() -> str:
    """Describe for which app macOS will ask for permissions, and for which programs a grant counts."""
    _, app, _ = _grantee()
    return f"macOS asks in the name of {app}; a grant counts for every program that runs in {app}"


def _may_ask_to_automate(path: str) -> bool:
    # macOS asks only for apps that explain why (vienna-rss#1230); CPython's Info.plist.in does not
    try:
        return _USAGE_KEY.encode() in Path(path, "Contents", "Info.plist").read_bytes()
    except OSError:  # not an app, such as uv's Python
        return True


def _grantee() -> tuple[str, str, str]:
    """Return the path and name of the program that macOS checks, and the app to reopen after a grant."""
    try:
        # without -ww, ps may cut lines at 79 columns if there is no terminal
        listing = run_program(["ps", "-axwwo", "pid=,ppid=,comm="], timeout_s=_LOOKUP_S).text
    except PeekabooError as e:
        log_debug(f"the parent processes are unknown: {e.message}")
        listing = ""
    processes = {pid: (parent, command) for pid, parent, command in _PS_LINE.findall(listing)}
    pid, host = str(os.getpid()), ""
    _, command = processes.get(_responsible_pid(pid), ("", ""))
    while pid in processes and not host:
        pid, parent_command = processes.pop(pid)
        app = _OUTERMOST_APP.match(parent_command)
        host = app[0] if app and not _PYTHON_ITSELF.search(parent_command) else ""
    # Claude Desktop disclaims the programs that it starts: macOS checks Python itself (claude-code#55169)
    app = _INNERMOST_APP.match(command)  # Xcode.app contains Python.app
    path = app[0] if app else command or host
    name, host_name = (os.path.basename(file).removesuffix(".app") for file in (path, host or path))
    return path, name or _UNKNOWN_APP, host_name or _UNKNOWN_APP


def _responsible_pid(pid: str) -> str:
    # not with run_jxa, whose errors need this module
    argv = ["osascript", "-l", "JavaScript", "-", pid]
    source = native_source("desktop/macos/responsible.js").encode()
    try:
        return run_program(argv, timeout_s=_LOOKUP_S, stdin=source).text.strip()
    except PeekabooError as e:
        log_debug(f"the responsible process is unknown: {e.message}")
        return ""

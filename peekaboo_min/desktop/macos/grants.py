"""Which app needs a missing macOS permission, and how to grant it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ...core.errors import ErrorCode, PeekabooError
from ...core.log import log_debug
from ...system.process import run_program
from ...system.programs import native_source

_LOOKUP_S = 5.0  # for each lookup; the error must not wait long for an app's name
_USAGE_KEY, _UNKNOWN_APP = "NSAppleEventsUsageDescription", "the app that started this"
_SETTINGS_URL = "x-apple.systempreferences:com.apple.preference.security?"
_PS_LINE = re.compile(r"^\s*(\d+)\s+(\d+)\s+(.+)$", re.M)  # pid, parent's pid, path of the program
_PYTHON_ITSELF = re.compile(r"/Python3?\.framework/|/Python\.app/")
_OUTERMOST_APP, _INNERMOST_APP = re.compile(r"^.*?/[^/]+\.app(?=/)"), re.compile(r"^.*/[^/]+\.app(?=/)")

PANES = {
    ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING: ("Screen Recording", "Privacy_ScreenCapture"),
    ErrorCode.PERMISSION_DENIED_ACCESSIBILITY: ("Accessibility", "Privacy_Accessibility"),
    ErrorCode.PERMISSION_DENIED_AUTOMATION: ("Automation", "Privacy_Automation"),
}
"""The pane of System Settings in which to grant a permission: its title, and the last part of its address."""


def permission_error(code: ErrorCode, what: str, details: str = "") -> PeekabooError:
    """Return the error for `what`, the refused operation: the app that needs `code`, and how to grant it."""
    import platform

    (path, app, host), (title, address) = _grantee(), PANES[code]
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
    """Return in whose name macOS will ask for permissions, and for which programs a grant counts."""
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
    name, host_name = (os.path.basename(each).removesuffix(".app") for each in (path, host or path))
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

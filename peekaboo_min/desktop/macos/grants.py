"""Which app needs a missing macOS permission, and how to grant it."""

from __future__ import annotations

import os
import re

from ...core.errors import ErrorCode, PeekabooError
from ...core.log import log_debug
from ...system.process import run_program
from ...system.programs import native_source

_LOOKUP_S = 5.0  # for each lookup; the error must not wait long for an app's name
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

    path, (title, address) = _responsible_path(), PANES[code]
    app = os.path.basename(path).removesuffix(".app") or "the app that started this"
    macos_version = int(platform.mac_ver()[0].partition(".")[0] or 0)  # 0 if unknown
    if code is ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING and macos_version >= 15:
        title = "Screen & System Audio Recording"
    add = f"; if it is not in the list, add {path} with the + button" if path else ""
    # a program outside an app bundle, such as uv's Python, may lose the permission when it is replaced
    repeat = "" if path.endswith(".app") or not path else "; repeat this after each upgrade of it"
    hint = f"switch {app} on in System Settings > Privacy & Security > {title} "
    hint += f'(open "{_SETTINGS_URL}{address}"){add}; then quit and reopen {app}{repeat}'
    return PeekabooError(code, f"{what}: {app} lacks the {title} permission", hint, details)


def _responsible_path() -> str:
    # Ask macOS which process is responsible for us: Claude Desktop disclaims the programs that it starts, and
    # macOS then checks Python itself. Without an answer, take the nearest parent process that is in an app.
    try:
        # without -ww, ps may cut lines at 79 columns if there is no terminal
        listing = run_program(["ps", "-axwwo", "pid=,ppid=,comm="], timeout_s=_LOOKUP_S).text
    except PeekabooError as e:
        log_debug(f"the parent processes are unknown: {e.message}")
        listing = ""
    processes = {pid: (parent, command) for pid, parent, command in _PS_LINE.findall(listing)}
    pid = str(os.getpid())
    _, command = processes.get(_responsible_pid(pid), ("", ""))
    if command:
        app = _INNERMOST_APP.match(command)  # Xcode.app contains Python.app
        return app[0] if app else command
    while pid in processes:
        pid, command = processes.pop(pid)
        app = _OUTERMOST_APP.match(command)
        if app and not _PYTHON_ITSELF.search(command):
            return app[0]
    return ""


def _responsible_pid(pid: str) -> str:
    # not with run_jxa, whose errors need this module
    argv = ["osascript", "-l", "JavaScript", "-", pid]
    source = native_source("desktop/macos/responsible.js").encode()
    try:
        return run_program(argv, timeout_s=_LOOKUP_S, stdin=source).text.strip()
    except PeekabooError as e:
        log_debug(f"the responsible process is unknown: {e.message}")
        return ""

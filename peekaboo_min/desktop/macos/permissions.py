"""Which app must get a grant (the one that started us), and how to give it."""

from __future__ import annotations

import os
import re

from ...core.errors import ErrorCode, PeekabooError
from ...core.log import log_debug
from ...system.process import run_program

_PS_S = 5.0
_SETTINGS = "x-apple.systempreferences:com.apple.preference.security?"
_PYTHONS_OWN = re.compile(r"/Python3?\.framework/|/Python\.app/")
_OUTERMOST_APP = re.compile(r"^(.*?/([^/]+)\.app)/")

# Our grant -> its pane's name, and the last word of its address.
_PANES: dict[ErrorCode, tuple[str, str]] = {
    ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING: ("Screen Recording", "Privacy_ScreenCapture"),
    ErrorCode.PERMISSION_DENIED_ACCESSIBILITY: ("Accessibility", "Privacy_Accessibility"),
    ErrorCode.PERMISSION_DENIED_AUTOMATION: ("Automation", "Privacy_Automation"),
}


def responsible_app() -> str:
    """The name of the app that our grants belong to, by the process ancestry; `the app that started this` if unknown.

    The nearest ancestor that lives in an app bundle; Python's own Python.app is nobody's host.
    """
    try:
        listed = run_program(["ps", "-axo", "pid=,ppid=,comm="], timeout_s=_PS_S).text
    except PeekabooError as e:
        log_debug(f"the process ancestry is unknown: {e.message}")
        listed = ""
    parents: dict[int, tuple[int, str]] = {}
    for line in listed.splitlines():
        words = line.split(None, 2)
        if len(words) == 3 and words[0].isdigit() and words[1].isdigit():
            parents[int(words[0])] = (int(words[1]), words[2])
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
    """The error for a missing grant: who needs it, where it is given, how to open that pane, and the restart."""
    app, (pane, _) = responsible_app(), _PANES[code]
    return PeekabooError(
        code,
        f"{what}: {app} lacks the {pane} permission",
        hint=f"switch {app} on in System Settings > Privacy & Security > {pane} ({settings_line(code)}), then quit and "
        f"reopen {app}",
    )

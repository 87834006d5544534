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

"""Run JXA and AppleScript, and translate their errors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.errors import ErrorCode, PeekabooError
from ...system.files import temporary_file
from ...system.process import run_program
from ...system.programs import native_source
from .grants import PANES, permission_error

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
    ErrorCode.PROGRAM_FAILED: "run peekaboo-min doctor",
    ErrorCode.TIMEOUT: "check whether it shows a dialog or macOS asks for consent; then try again",
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
    if code in PANES:
        return permission_error(code, message, details)
    return PeekabooError(code, message, _HINTS.get(code, ""), details)

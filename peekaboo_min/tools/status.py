"""Check this machine: doctor, permissions, status."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Callable, NamedTuple, Optional

from .. import __version__
from ..ai.client import parse_providers, provider_status
from ..core.call import in_parallel, time_budget
from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.models import Result
from ..core.settings import ignored_variables, settings
from ..desktop.base import Desktop
from ..desktop.select import this_desktop
from ..integrations.gmail import gmail_state, has_gmail_credentials
from ..integrations.peekaboo_cli import cli_path_problem, peekaboo_argv, peekaboo_version
from ..system.files import log_file, state_folder, temporary_folder
from ..system.process import program_path, run_program
from ..system.programs import PACKAGES, mcp_version, missing_program, own_command

SERVER_NAME = "PeekabooMCP"
_PURPOSES = {
    ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING: "images, titles",
    ErrorCode.PERMISSION_DENIED_ACCESSIBILITY: "click, type, press, raise",
    ErrorCode.PERMISSION_DENIED_AUTOMATION: "Keynote",
}
_STATUS_S = 1.8  # the design allows the status two seconds


class Check(NamedTuple):
    """The result of one check; `advice` is empty if all is well."""

    name: str
    found: str
    ok: bool = True
    needed: bool = True
    advice: str = ""
    code: ErrorCode = ErrorCode.MISSING_PROGRAM  # the error if it fails

    @property
    def is_problem(self) -> bool:
        return self.needed and not self.ok

    def line(self) -> str:
        mark = "ok      " if self.ok else "MISSING " if self.needed else "-       "
        return f"{mark}{self.name}: {self.found}" + (f"\n        {self.advice}" if self.advice else "")


def doctor(
    compile: Annotated[bool, "build the Swift helper for mouse and keyboard now (macOS)"] = False,
    request: Annotated[
        bool, "let macOS ask you for its permissions; then the app that you started this in is in their lists"
    ] = False,
) -> Result:
    """Check programs, display, folders and permissions; report what is missing and how to get it.

    Example: peekaboo-min doctor
    """
    desktop = this_desktop()
    if request and not (sys.stdin and sys.stdin.isatty()):
        raise invalid("--request asks a person", "run it yourself, in a terminal")
    if compile:
        desktop.prepare(in_background=False)
    if request:
        desktop.request_permissions(partial(print, file=sys.stderr, flush=True))
    checks = _checks(desktop, runs_programs=True)
    missing = [check for check in checks if check.is_problem]
    if missing:
        packages = sorted({PACKAGES[check.name] for check in missing if check.name in PACKAGES})
        hint = f"sudo apt-get install {' '.join(packages)}" if packages else missing[0].advice
        message = f"missing: {', '.join(check.name for check in missing)}"
        raise PeekabooError(missing[0].code, message, hint, details=_lines(checks))
    rows = [{key: value for key, value in check._asdict().items() if key != "code"} for check in checks]
    optional = [check.name for check in checks if not check.ok]
    left = f"; optional and missing: {', '.join(optional)}" if optional else ""
    data = {"checks": rows, **_machine_data(desktop)}
    return Result(f"{_lines(checks)}\nall required programs are installed{left}", data)


def permissions() -> Result:
    """Show each permission: whether it is granted, which application needs it, how to grant it.

    Exits 0, 11, 12 or 13.

    Example: peekaboo-min permissions
    """
    desktop = this_desktop()
    checks = _permission_checks(desktop)
    for check in checks:
        if check.is_problem:
            error = desktop.denied(check.code, f"{check.name} is not granted")
            raise PeekabooError(error.code, error.message, error.hint, _lines(checks))
    text = _lines(checks) or "an X11 desktop has no permissions to grant"
    return Result(text, {"permissions": _permission_data(checks)})


def server_status() -> Result:
    """Show the version, the AI providers and the granted permissions.

    `list server_status` and `list permissions` are the same.

    Example: peekaboo-min list server_status --json-output
    """
    desktop = this_desktop()
    checks = _permission_checks(desktop)
    text = "\n".join(filter(None, [initial_status().strip(), _lines(checks)]))
    return Result(text, {"permissions": _permission_data(checks), **_machine_data(desktop)})


def initial_status() -> str:
    """Return the specification's status text, which a server appends once to its first result."""
    providers = ", ".join(choice.name for choice in parse_providers(settings().ai_providers))
    providers = providers or "None Configured. Set PEEKABOO_AI_PROVIDERS ENV."
    return (
        "\n\n--- Peekaboo MCP Server Status ---\n"
        f"Name: {SERVER_NAME}\nVersion: {__version__}\n"
        f"Configured AI Providers (from PEEKABOO_AI_PROVIDERS ENV): {providers}\n---"
    )


def server_status_text(desktop: Desktop) -> str:
    """Return the text of the tool `list` for server_status, within two seconds."""
    with time_budget(_STATUS_S):
        checks = _checks(desktop)
    problems = [(f"- {check.name}: {check.found}", check.advice) for check in checks if not check.ok]
    lines = "\n".join("; ".join(filter(None, problem)) for problem in problems)
    return f"{initial_status().strip()}\n\n{_lines(checks)}\n\nProblems:\n{lines or 'none'}"


def _checks(desktop: Desktop, runs_programs: bool = False) -> list[Check]:
    # each of these may wait for something that hangs
    asks_version = runs_programs or "exec" in desktop.extra_tools
    slow: list[Callable[[], list[Check]]] = [
        _provider_checks,
        lambda: [_check("peekaboo", partial(_original, asks_version), "peekaboo_exec")],
        partial(_desktop_checks, desktop),
    ]
    models, original, display = in_parallel(lambda check: check(), slow)
    has_gi = [_check("python3's gi", _gi, "elements")] if runs_programs and "python3" in desktop.uses else []
    return [
        *(_check(name, partial(program_path, name)) for name in desktop.needs),
        *(_check(name, partial(program_path, name), purpose) for name, purpose in desktop.uses.items()),
        *has_gi,
        *(_language_checks(desktop) if runs_programs else []),
        *display,
        _check("temporary folder", temporary_folder),
        _check("state folder", state_folder),
        _check("server's log", log_file),
        *(Check(name, problem, ok=False, needed=False) for name, problem in ignored_variables().items()),
        *models,
        _check("package mcp", mcp_version, "the server and the agents"),
        *original,
        *([_check("Gmail", gmail_state, "send_email")] if has_gmail_credentials() else []),
        Check("mouse and keyboard by", desktop.input_backend()),
    ]


def _check(name: str, look: Callable[[], object], purpose: str = "") -> Check:
    try:
        return Check(name, str(look()), needed=not purpose)
    except PeekabooError as e:
        problem = f"{e.message} (only for {purpose})" if purpose else e.message
        return Check(name, problem, False, not purpose, e.hint, e.code)


def _provider_checks() -> list[Check]:
    rows = [(row.choice.name, row.problem) for row in provider_status()]
    return [Check(name, problem or "available", not problem, needed=False) for name, problem in rows]


def _language_checks(desktop: Desktop) -> list[Check]:
    with suppress(PeekabooError):  # without the program, its own check fails
        languages, package = ", ".join(desktop.text_languages()), desktop.missing_language("")
        found = f"{languages}; not yours" if package else languages
        advice = f"sudo apt-get install {package}" if package else ""
        return [Check("text languages", found, not package, False, advice)] if languages else []
    return []


def _original(runs_programs: bool) -> str:
    if problem := cli_path_problem():
        raise PeekabooError(ErrorCode.MISSING_PROGRAM, problem, "correct it, or unset it")
    argv = peekaboo_argv()
    if argv == own_command():
        message = "not installed; our own command line takes its place"
        raise PeekabooError(ErrorCode.MISSING_PROGRAM, message, "to use it, set PEEKABOO_CLI_PATH")
    return f"{argv[0]} {peekaboo_version(argv)}" if runs_programs else argv[0]


def _desktop_checks(desktop: Desktop) -> list[Check]:
    display = _check("display", partial(_display, desktop))
    try:
        return [display, *(_permission_checks(desktop) if display.ok else ())]
    except PeekabooError as e:
        return [display, Check("permissions", e.message, False, True, e.hint, e.code)]


def _display(desktop: Desktop) -> str:
    if warnings := desktop.warnings():
        raise PeekabooError(ErrorCode.NO_GUI_SESSION, warnings[0], "choose Xorg or X11 at the login screen")
    scene = desktop.snapshot()
    sizes = [f"{display.bounds.width:.0f}x{display.bounds.height:.0f}" for display in scene.displays]
    return f"{', '.join(sizes) or 'none'}; {len(scene.windows)} windows"


def _permission_checks(desktop: Desktop) -> list[Check]:
    def check(permission: tuple[ErrorCode, Optional[bool]]) -> Check:
        code, is_granted = permission
        purpose = _PURPOSES[code]
        name = code.value.replace("PERMISSION_DENIED_", "").replace("_", " ").title()
        will_ask = is_granted is None and code is ErrorCode.PERMISSION_DENIED_AUTOMATION
        unknown = "macOS asks at first use" if will_ask else "unknown: granted, but macOS shows no titles"
        state = {True: "granted", False: "NOT granted", None: unknown}[is_granted]
        advice = "" if is_granted or will_ask else desktop.denied(code, f"needed for {purpose}").hint
        return Check(name, f"{state} ({purpose})", is_granted is not False, True, advice, code)

    # in parallel: for each missing one, a program finds the application that needs it
    return in_parallel(check, list(desktop.permissions().items()))


def _permission_data(checks: Iterable[Check]) -> dict[str, bool]:
    """Map the original's permission names to True if granted, or if this system has no such permission."""
    missing = {check.code for check in checks if check.is_problem}
    return {
        "screen_recording": ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING not in missing,
        "accessibility": ErrorCode.PERMISSION_DENIED_ACCESSIBILITY not in missing,
    }


def _gi() -> str:
    path = program_path("python3")
    try:
        script = "import gi; gi.require_version('Atspi', '2.0')"
        run_program([path, "-I", "-c", script], timeout_s=10.0)
    except PeekabooError as e:
        raise missing_program("python3", f"{path} has no gi with Atspi") from e
    return "with Atspi"


def _lines(checks: Iterable[Check]) -> str:
    return "\n".join(check.line() for check in checks)


def _machine_data(desktop: Desktop) -> dict[str, Any]:
    machine = {"system": platform.platform(terse=True), "python": platform.python_version()}
    ours = {"version": __version__, "platform": desktop.name, "input": desktop.input_backend()}
    return {**ours, **machine, "log_file": str(log_file())}

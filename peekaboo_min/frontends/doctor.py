"""What this machine has and may do: server status, permissions, doctor."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from ..ai.client import parse_providers, provider_status
from ..automation.listing import session_warnings
from ..core.errors import ErrorCode, PeekabooError
from ..core.models import Permissions, Result
from ..core.settings import VARIABLES, changed_settings, settings, unknown_variables
from ..core.version import VERSION
from ..desktop.base import Desktop
from ..desktop.select import this_desktop
from ..integrations.peekaboo_cli import peekaboo_program
from ..system.files import log_file, state_folder, temporary_folder
from ..system.process import run_program
from ..system.programs import PACKAGES, program_path

SERVER_NAME = "PeekabooMCP"


@dataclass(frozen=True)
class Check:
    """One thing that doctor checked; `advice` is empty when all is well."""

    name: str
    is_fine: bool
    found: str
    advice: str = ""
    is_optional: bool = False
    code: ErrorCode = ErrorCode.MISSING_PROGRAM
    """What a failure of it means."""

    @property
    def is_problem(self) -> bool:
        return not (self.is_fine or self.is_optional)

    def line(self) -> str:
        mark = "ok      " if self.is_fine else ("-       " if self.is_optional else "MISSING ")
        return f"{mark}{self.name}: {self.found}" + (f"\n        {self.advice}" if self.advice else "")

    def as_data(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "ok": self.is_fine,
            "needed": not self.is_optional,
            "found": self.found,
            "advice": self.advice,
        }


def initial_status() -> str:
    """The specification's status text, appended once to a server's first result."""
    configured = [choice.name for choice in parse_providers(settings().ai_providers)]
    providers = ", ".join(configured) or "None Configured. Set PEEKABOO_AI_PROVIDERS ENV."
    return (
        "\n\n--- Peekaboo MCP Server Status ---\n"
        f"Name: {SERVER_NAME}\nVersion: {VERSION}\n"
        f"Configured AI Providers (from PEEKABOO_AI_PROVIDERS ENV): {providers}\n---"
    )


def server_status_text(desktop: Desktop) -> str:
    """The text of `list server_status`, for which the providers are asked live."""
    checks = [
        *(_check_program(name) for name in desktop.needs),
        _check_original(asks_version=False),
        *_check_display(desktop),
    ]
    providers = [
        f"{status.choice.name}: {status.problem or 'available'}" for status in provider_status()
    ] or ["none configured: set PEEKABOO_AI_PROVIDERS"]
    problems = [f"{check.name}: {check.advice or check.found}" for check in checks if check.is_problem]
    sections = {
        "AI providers": providers,
        "Programs and permissions": [check.line() for check in checks],
        "Environment": [f"{name}={value}" for name, value in changed_settings(settings()).items()],
        "Problems": problems or ["none"],
    }
    blocks = ["\n".join([f"## {title}", *lines]) for title, lines in sections.items()]
    return "\n\n".join([initial_status().strip(), *blocks])


def permissions_data(permissions: Permissions) -> dict[str, bool]:
    """The grants, by the original's names; a system without such a grant needs none."""
    return {
        "screen_recording": permissions.screen_recording is not False,
        "accessibility": permissions.accessibility is not False,
    }


def permissions_result(desktop: Desktop) -> Result:
    """Every grant, as text and data. Raises the error of the first one that is missing."""
    granted = desktop.permissions()
    checks = _check_permissions(desktop, granted)
    if not checks:
        return Result("an X11 desktop asks for no permissions", {"permissions": permissions_data(granted)})
    lines = "\n".join(check.line() for check in checks)
    missing = next((check for check in checks if check.is_problem), None)
    if missing:
        error = desktop.denied(missing.code, f"{missing.name} is not granted")
        raise PeekabooError(error.code, error.message, error.hint, details=lines)
    return Result(lines, {"permissions": permissions_data(granted)})


def _check_permissions(desktop: Desktop, granted: Permissions) -> list[Check]:
    if granted == Permissions():
        return []
    purposes = {
        ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING: "images, titles",
        ErrorCode.PERMISSION_DENIED_ACCESSIBILITY: "click, type, press, raise",
        ErrorCode.PERMISSION_DENIED_AUTOMATION: "Keynote",
    }
    values = (granted.screen_recording, granted.accessibility, granted.automation)
    checks = []
    for (code, purpose), is_granted in zip(purposes.items(), values):
        name = code.value.replace("PERMISSION_DENIED_", "").replace("_", " ").title()
        found = {True: "granted", False: "NOT granted", None: "macOS asks at first use"}[is_granted]
        advice = desktop.denied(code, f"needed for {purpose}").hint if is_granted is False else ""
        checks.append(Check(name, is_granted is not False, f"{found} ({purpose})", advice, code=code))
    return checks


def doctor_result() -> Result:
    """Everything needed on this machine, checked. Raises the error of the first thing that is missing."""
    desktop = this_desktop()
    checks = [
        *(_check_program(name) for name in desktop.needs),
        *(_check_program(name, purpose) for name, purpose in desktop.uses.items()),
        *_check_display(desktop),
        *_check_places(),
        *(_check_variable(name) for name in unknown_variables()),
        _check_mcp(),
        _check_original(),
        Check("mouse and keyboard by", True, desktop.input_backend()),
    ]
    text = "\n".join(check.line() for check in checks)
    missing = [check for check in checks if check.is_problem]
    if missing:
        packages = sorted({PACKAGES[check.name] for check in missing if check.name in PACKAGES})
        hint = f"sudo apt-get install {' '.join(packages)}" if packages else missing[0].advice
        message = f"missing: {', '.join(check.name for check in missing)}"
        raise PeekabooError(missing[0].code, message, hint, details=text)
    return Result(
        f"{text}\neverything that is needed is here",
        {"checks": [check.as_data() for check in checks], **machine_data()},
    )


def _check_program(name: str, purpose: str = "") -> Check:
    try:
        return Check(name, True, program_path(name, run_program), is_optional=bool(purpose))
    except PeekabooError:
        advice = f"sudo apt-get install {PACKAGES[name]}" if name in PACKAGES else "it is macOS' own"
    text = f"not found{f' (only for {purpose})' if purpose else ''}"
    return Check(name, False, text, advice, bool(purpose))


def _check_display(desktop: Desktop) -> list[Check]:
    warnings = session_warnings(desktop)
    if warnings:
        found, code = f"WAYLAND_DISPLAY={settings().wayland_display}", ErrorCode.NO_GUI_SESSION
        return [Check("display", False, found, warnings[0], code=code)]
    started = time.monotonic()
    try:
        scene = desktop.snapshot()
        permissions = _check_permissions(desktop, desktop.permissions())
    except PeekabooError as e:
        return [Check("display", False, e.message, e.hint, code=e.code)]
    took = (time.monotonic() - started) * 1000
    sizes = ", ".join(f"{display.bounds.width:.0f}x{display.bounds.height:.0f}" for display in scene.displays)
    return [
        Check("display", True, f"{sizes}; {len(scene.windows)} windows listed in {took:.0f} ms"),
        *permissions,
    ]


def _check_places() -> list[Check]:
    checks = []
    places = {"temporary folder": temporary_folder, "state folder": state_folder, "server's log": log_file}
    for name, place in places.items():
        try:
            checks.append(Check(name, True, str(place())))
        except PeekabooError as e:
            checks.append(Check(name, False, e.message, e.hint, code=e.code))
    return checks


def _check_variable(name: str) -> Check:
    from difflib import get_close_matches

    known = [each.name for each in VARIABLES.values()]
    meant = get_close_matches(name, known, 1)
    advice = f"did you mean {meant[0]}?" if meant else "unset it; the README lists the variables"
    return Check(name, False, "has no effect: no variable of this name is read", advice, True)


def _check_mcp() -> Check:
    from importlib import metadata  # 15 ms that only doctor needs

    try:
        return Check("package mcp", True, metadata.version("mcp"), is_optional=True)
    except metadata.PackageNotFoundError:
        advice = "python3 -m pip install 'mcp>=2,<3'"
        return Check(
            "package mcp", False, "not installed (needed only for the server and the agents)", advice, True
        )


def _check_original(asks_version: bool = True) -> Check:
    """The command line that peekaboo_exec runs. Without asking for its version no program is started."""
    try:
        program = peekaboo_program()
    except PeekabooError as e:
        return Check("peekaboo", False, e.message, e.hint, is_optional=True)
    if program.is_ours:
        found = "not installed (peekaboo_exec then runs our own command line)"
        return Check("peekaboo", False, found, is_optional=True)
    found = f"{program.argv[0]} {program.version() if asks_version else ''}".rstrip()
    return Check("peekaboo", True, found, is_optional=True)


def machine_data() -> dict[str, Any]:
    """What kind of machine this is, for a report."""
    import platform  # 2 ms that only a report needs

    return {
        "version": VERSION,
        "platform": this_desktop().name,
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "input": this_desktop().input_backend(),
        "log_file": str(log_file()),
    }

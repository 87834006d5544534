"""What this machine has and may do, and what we left on it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Annotated, Any, Callable, NamedTuple

from .. import __version__
from ..ai.client import parse_providers, provider_status
from ..automation.listing import session_warnings
from ..automation.policy import stop_file
from ..core.errors import ErrorCode, PeekabooError
from ..core.models import Permissions, Result
from ..core.settings import VARIABLES, changed_settings, settings, unknown_variables
from ..desktop.base import Desktop
from ..desktop.macos.swift_helper import build_helper
from ..desktop.select import this_desktop
from ..integrations.gmail_oauth import gmail_folder
from ..integrations.peekaboo_cli import peekaboo_program
from ..system.files import log_file, remove_all, state_folder, sweep, temporary_folder
from ..system.process import program_path
from ..system.programs import PACKAGES

SERVER_NAME = "PeekabooMCP"
_PURPOSES = {
    ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING: "images, titles",
    ErrorCode.PERMISSION_DENIED_ACCESSIBILITY: "click, type, press, raise",
    ErrorCode.PERMISSION_DENIED_AUTOMATION: "Keynote",
}


class Check(NamedTuple):
    """One thing that was checked; `advice` is empty when all is well."""

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


# what is checked --------------------------------------------------------------------------------------------


def _check(name: str, look: Callable[[], object], is_optional: bool = False) -> Check:
    try:
        return Check(name, True, str(look()), is_optional=is_optional)
    except PeekabooError as e:
        return Check(name, False, e.message, e.hint, is_optional, e.code)


def _program(name: str, purpose: str = "") -> Check:
    check = _check(name, lambda: program_path(name), bool(purpose))
    if check.is_fine:
        return check
    advice = f"sudo apt-get install {PACKAGES[name]}" if name in PACKAGES else "it is macOS' own"
    return check._replace(found=f"not found{f' (only for {purpose})' if purpose else ''}", advice=advice)


def _display(desktop: Desktop) -> list[Check]:
    """The display and, where there is one, the grants."""
    warnings = session_warnings(desktop)
    if warnings:
        found = f"WAYLAND_DISPLAY={settings().wayland_display}"
        return [Check("display", False, found, warnings[0], code=ErrorCode.NO_GUI_SESSION)]
    started = time.monotonic()
    try:
        scene, grants = desktop.snapshot(), _permissions(desktop)
    except PeekabooError as e:
        return [Check("display", False, e.message, e.hint, code=e.code)]
    took = (time.monotonic() - started) * 1000
    sizes = ", ".join(f"{display.bounds.width:.0f}x{display.bounds.height:.0f}" for display in scene.displays)
    found = f"{sizes}; {len(scene.windows)} windows listed in {took:.0f} ms"
    return [Check("display", True, found), *grants]


def _permissions(desktop: Desktop) -> list[Check]:
    """The grants that this system knows. Raises as Desktop.permissions does."""
    granted = desktop.permissions()
    if granted == Permissions():
        return []
    checks = []
    for (code, purpose), is_granted in zip(_PURPOSES.items(), granted):
        name = code.value.replace("PERMISSION_DENIED_", "").replace("_", " ").title()
        found = {True: "granted", False: "NOT granted", None: "macOS asks at first use"}[is_granted]
        advice = desktop.denied(code, f"needed for {purpose}").hint if is_granted is False else ""
        checks.append(Check(name, is_granted is not False, f"{found} ({purpose})", advice, code=code))
    return checks


def _variable(name: str) -> Check:
    from difflib import get_close_matches

    meant = get_close_matches(name, [each.name for each in VARIABLES.values()], 1)
    advice = f"did you mean {meant[0]}?" if meant else "unset it; the README lists the variables"
    return Check(name, False, "has no effect: no variable of this name is read", advice, True)


def _package() -> Check:
    from importlib import metadata  # 15 ms that only doctor needs

    try:
        return Check("package mcp", True, metadata.version("mcp"), is_optional=True)
    except metadata.PackageNotFoundError:
        found = "not installed (needed only for the server and the agents)"
        return Check("package mcp", False, found, "python3 -m pip install 'mcp>=2,<3'", True)


def _original(asks_version: bool) -> Check:
    """The command line that peekaboo_exec runs. Without asking for its version no program is started."""
    check = _check("peekaboo", lambda: peekaboo_program().argv[0], is_optional=True)
    if not check.is_fine:
        return check
    program = peekaboo_program()
    if program.is_ours:
        found = "not installed (peekaboo_exec then runs our own command line)"
        return Check("peekaboo", False, found, is_optional=True)
    return check._replace(found=f"{check.found} {program.version()}") if asks_version else check


def _checks(desktop: Desktop, is_all: bool) -> list[Check]:
    """Programs, the display, the grants, the original: what acts need. With is_all also everything else."""
    checks = [_program(name) for name in desktop.needs]
    if is_all:
        checks += [_program(name, purpose) for name, purpose in desktop.uses.items()]
    checks += _display(desktop)
    if is_all:
        places = {
            "temporary folder": temporary_folder,
            "state folder": state_folder,
            "server's log": log_file,
        }
        checks += [_check(name, place) for name, place in places.items()]
        checks += [*map(_variable, unknown_variables()), _package()]
    checks.append(_original(asks_version=is_all))
    if is_all:
        checks.append(Check("mouse and keyboard by", True, desktop.input_backend()))
    return checks


def _lines(checks: Iterable[Check]) -> str:
    return "\n".join(check.line() for check in checks)


# the commands and the status --------------------------------------------------------------------------------


def doctor(
    compile: Annotated[bool, "build the Swift helper for mouse and keyboard now (macOS)"] = False,
) -> Result:
    """Checks that everything needed is here: programs, the display, folders, permissions; says what is
    missing and how to get it.

    Example: peekaboo-min doctor
    """
    desktop = this_desktop()
    if compile and desktop.name == "macos":
        build_helper(is_forced=True)
    checks = _checks(desktop, is_all=True)
    missing = [check for check in checks if check.is_problem]
    if missing:
        packages = sorted({PACKAGES[check.name] for check in missing if check.name in PACKAGES})
        hint = f"sudo apt-get install {' '.join(packages)}" if packages else missing[0].advice
        message = f"missing: {', '.join(check.name for check in missing)}"
        raise PeekabooError(missing[0].code, message, hint, details=_lines(checks))
    data = {"checks": [check.as_data() for check in checks], **_machine_data()}
    return Result(f"{_lines(checks)}\neverything that is needed is here", data)


def permissions() -> Result:
    """Shows each permission: whether it is granted, which application needs it, how to grant it. Exits 0,
    11, 12 or 13.

    Example: peekaboo-min permissions
    """
    desktop = this_desktop()
    checks = _permissions(desktop)
    for check in checks:
        if check.is_problem:
            error = desktop.denied(check.code, f"{check.name} is not granted")
            raise PeekabooError(error.code, error.message, error.hint, details=_lines(checks))
    text = _lines(checks) or "an X11 desktop asks for no permissions"
    return Result(text, {"permissions": _permissions_data(checks)})


def server_status() -> Result:
    """Shows the version, the AI providers and the permissions that are granted. `list server_status` and
    `list permissions` are the same.

    Example: peekaboo-min list server_status --json-output
    """
    granted = _permissions_data(_permissions(this_desktop()))
    lines = [f"{name}: {'granted' if is_granted else 'NOT granted'}" for name, is_granted in granted.items()]
    text = "\n".join([initial_status().strip(), *lines])
    return Result(text, {"permissions": granted, **_machine_data()})


def _permissions_data(checks: Iterable[Check]) -> dict[str, bool]:
    """The grants, by the original's names; a system without such a grant needs none."""
    missing = {check.name for check in checks if check.is_problem}
    return {
        "screen_recording": "Screen Recording" not in missing,
        "accessibility": "Accessibility" not in missing,
    }


def initial_status() -> str:
    """The specification's status text, appended once to a server's first result."""
    configured = [choice.name for choice in parse_providers(settings().ai_providers)]
    providers = ", ".join(configured) or "None Configured. Set PEEKABOO_AI_PROVIDERS ENV."
    return (
        "\n\n--- Peekaboo MCP Server Status ---\n"
        f"Name: {SERVER_NAME}\nVersion: {__version__}\n"
        f"Configured AI Providers (from PEEKABOO_AI_PROVIDERS ENV): {providers}\n---"
    )


def server_status_text(desktop: Desktop) -> str:
    """The text of the tool `list` for server_status, for which the providers are asked live."""
    checks = _checks(desktop, is_all=False)
    providers = [f"{status.choice.name}: {status.problem or 'available'}" for status in provider_status()]
    problems = [f"{check.name}: {check.advice or check.found}" for check in checks if check.is_problem]
    sections = {
        "AI providers": providers or ["none configured: set PEEKABOO_AI_PROVIDERS"],
        "Programs and permissions": [_lines(checks)],
        "Environment": [f"{name}={value}" for name, value in changed_settings(settings()).items()],
        "Problems": problems or ["none"],
    }
    blocks = ["\n".join([f"## {title}", *lines]) for title, lines in sections.items()]
    return "\n\n".join([initial_status().strip(), *blocks])


def _machine_data() -> dict[str, Any]:
    """What kind of machine this is, for a report."""
    import platform  # 2 ms that only a report needs

    return {
        "version": __version__,
        "platform": this_desktop().name,
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "input": this_desktop().input_backend(),
        "log_file": str(log_file()),
    }


def clean(
    all: Annotated[
        bool, "also the state folder, the log and Gmail's token: all that we left outside your own folders"
    ] = False,
) -> Result:
    """Deletes every image and record in our temporary folder that is not in use. Files saved to a path of
    your choice stay. With --all, to uninstall, it also deletes everything else that we left in this account.

    Example: peekaboo-min clean
    """
    if not all:
        count = sweep(0)
        return Result(f"deleted {count} file(s) in {temporary_folder()}", {"deleted": count})
    log = log_file()
    # what a user put into our folders stays: the stop file, which must not end by itself, and Gmail's client
    kept = [path for path in (stop_file(), gmail_folder() / "credentials.json") if path.exists()]
    others = [gmail_folder() / "token.json", log]
    folders = [str(temporary_folder()), str(state_folder())]
    staying = [str(path) for path in remove_all(kept, others)]
    text = f"deleted {', '.join(folders)} and {log}"
    if staying:
        text += f", but for what is yours or in use: {', '.join(staying)}"
    runs = "folders of agent runs (peekaboo-run-*) and logs/agent.log lie where you started the agents"
    return Result(text, {"folders": folders, "log": str(log), "kept": staying}, messages=(runs,))

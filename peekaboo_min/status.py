"""What this machine has and may do: server status, permissions, doctor."""

from __future__ import annotations

import platform
import shlex
import time
from dataclasses import dataclass
from typing import Any, Dict, List, Optional

from .errors import ErrorCode, PeekabooError
from .image_files import temporary_folder
from .log import default_log_file
from .model import Permissions
from .platforms import platform_name, state_folder, this_desktop
from .proc import PACKAGES, find_program
from .settings import settings
from .version import VERSION

SERVER_NAME = "PeekabooMCP"
_X11_PROGRAMS = ("xwininfo", "xprop", "xdpyinfo", "maim", "xdotool", "xclip", "convert")
_OPTIONAL_PROGRAMS = ("tesseract",)


@dataclass(frozen=True)
class Check:
    """One thing that doctor looked at; `advice` is empty when all is well."""

    name: str
    is_fine: bool
    found: str
    advice: str = ""
    is_optional: bool = False

    def line(self) -> str:
        mark = "ok  " if self.is_fine else ("-   " if self.is_optional else "MISSING ")
        return f"{mark}{self.name}: {self.found}" + (f"\n      {self.advice}" if self.advice else "")


def initial_status() -> str:
    """The specification's status text, appended once to a server's first result."""
    providers = settings().ai_providers or "None Configured. Set PEEKABOO_AI_PROVIDERS ENV."
    return (
        "\n\n--- Peekaboo MCP Server Status ---\n"
        f"Name: {SERVER_NAME}\nVersion: {VERSION}\n"
        f"Configured AI Providers (from PEEKABOO_AI_PROVIDERS ENV): {providers}\n---"
    )


def permissions_data(permissions: Permissions) -> Dict[str, Optional[bool]]:
    """The grants, by the original's names; a system without such a grant has it."""
    return {
        "screen_recording": permissions.screen_recording is not False,
        "accessibility": permissions.accessibility is not False,
    }


def check_everything() -> List[Check]:
    """Look at all that we need on this machine."""
    return [*_check_programs(), _check_display(), *_check_folders(), *_check_optional()]


def _check_programs() -> List[Check]:
    checks = [_check_program(name) for name in _X11_PROGRAMS]
    return checks + [_check_program(name, is_optional=True) for name in _OPTIONAL_PROGRAMS]


def _check_program(name: str, is_optional: bool = False) -> Check:
    path = find_program(name)
    if path:
        return Check(name, True, path, is_optional=is_optional)
    purpose = " (only for text recognition)" if is_optional else ""
    return Check(name, False, f"not found{purpose}", f"sudo apt-get install {PACKAGES[name]}", is_optional)


def _check_display() -> Check:
    if settings().wayland_display:
        advice = "a Wayland session: only programs that run through XWayland can be seen; log in to an X11 session"
        return Check("display", False, f"WAYLAND_DISPLAY={settings().wayland_display}", advice)
    started = time.monotonic()
    try:
        displays = this_desktop().displays()
        windows = this_desktop().windows()
    except PeekabooError as e:
        return Check("display", False, e.message, e.hint)
    took = (time.monotonic() - started) * 1000
    sizes = ", ".join(f"{one.bounds.width:.0f}x{one.bounds.height:.0f}" for one in displays)
    return Check("display", True, f"{sizes}; {len(windows)} windows listed in {took:.0f} ms")


def _check_folders() -> List[Check]:
    checks = []
    for name, folder in (("temporary folder", temporary_folder), ("state folder", state_folder)):
        try:
            checks.append(Check(name, True, str(folder())))
        except PeekabooError as e:
            checks.append(Check(name, False, e.message, e.hint))
    return checks


def _check_optional() -> List[Check]:
    return [Check("mcp", *_find_mcp(), is_optional=True)]


def _find_mcp() -> "tuple[bool, str, str]":
    from importlib import metadata  # 15 ms that only doctor needs

    try:
        return True, f"package mcp {metadata.version('mcp')}", ""
    except metadata.PackageNotFoundError:
        return False, "not installed (only for the server and the agents)", "python3 -m pip install 'mcp>=2,<3'"


def missing_needs(checks: List[Check]) -> Optional[PeekabooError]:
    """The error for what is missing among the needs, or None."""
    missing = [check for check in checks if not check.is_fine and not check.is_optional]
    if not missing:
        return None
    code = ErrorCode.MISSING_PROGRAM if any("not found" in one.found for one in missing) else ErrorCode.NO_GUI_SESSION
    names = ", ".join(check.name for check in missing)
    packages = sorted({PACKAGES[check.name] for check in missing if check.name in PACKAGES})
    hint = f"sudo apt-get install {shlex.join(packages)}" if packages else missing[0].advice
    return PeekabooError(code, f"missing: {names}", hint=hint)


def machine() -> Dict[str, Any]:
    """What kind of machine this is, for a report."""
    return {
        "version": VERSION,
        "platform": platform_name(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "input": this_desktop().input_backend(),
        "log_file": settings().log_file or str(default_log_file()),
    }

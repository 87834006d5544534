"""What this machine has and may do, what a client starts, what we left."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Annotated, Any, Callable, Literal, NamedTuple, Optional

from .. import __version__
from ..ai.client import parse_providers, provider_status
from ..automation.listing import session_warnings
from ..automation.policy import stop_file
from ..core.cancellation import in_parallel, time_budget
from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.models import Result
from ..core.settings import child_environment, platform_name, settings, unknown_variables
from ..desktop.base import Desktop
from ..desktop.macos.backend import request_grants
from ..desktop.macos.swift_helper import build_helper
from ..desktop.select import this_desktop
from ..integrations.gmail import gmail_folder, gmail_state, has_gmail_credentials
from ..integrations.peekaboo_cli import peekaboo_program
from ..system.files import log_file, remove_all, state_folder, sweep, temporary_folder
from ..system.process import program_path, run_program
from ..system.programs import PACKAGES, how_to_install, missing_program, own_command, single_file
from .arguments import PROGRAM

SERVER_NAME = "PeekabooMCP"
_PURPOSES = {
    ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING: "images, titles",
    ErrorCode.PERMISSION_DENIED_ACCESSIBILITY: "click, type, press, raise",
    ErrorCode.PERMISSION_DENIED_AUTOMATION: "Keynote",
}
_STATUS_S = 1.8
_HAS_GI = "import gi; gi.require_version('Atspi', '2.0')"


class Check(NamedTuple):
    """One thing that was checked; `advice` is empty when all is well."""

    name: str
    found: str
    ok: bool = True
    needed: bool = True
    advice: str = ""
    code: ErrorCode = ErrorCode.MISSING_PROGRAM  # what a failure of it means

    @property
    def is_problem(self) -> bool:
        return self.needed and not self.ok

    def line(self) -> str:
        mark = "ok      " if self.ok else "MISSING " if self.needed else "-       "
        return f"{mark}{self.name}: {self.found}" + (f"\n        {self.advice}" if self.advice else "")


def _checks(desktop: Desktop, asks_programs: bool = False) -> list[Check]:
    """Programs, the display, the grants, our folders, the models, and the original.

    asks_programs: also what only a started program tells.
    """
    unread = "has no effect: no variable of this name is read; the README lists them"
    is_mac = desktop.name == "macos"
    # each may wait for what hangs
    slow: list[Callable[[], list[Check]]] = [
        lambda: [
            Check(status.choice.name, status.problem or "available", not status.problem, needed=False)
            for status in provider_status()  # asks them
        ],
        lambda: [_check("peekaboo", partial(_original, is_mac or asks_programs), "peekaboo_exec")],
        partial(_desktop_checks, desktop),
    ]
    # an X server answers sooner than threads start
    models, original, seen = in_parallel(lambda look: look(), slow) if is_mac else [look() for look in slow]
    return [
        *(_check(name, partial(program_path, name)) for name in desktop.needs),
        *(_check(name, partial(program_path, name), purpose) for name, purpose in desktop.uses.items()),
        *([_check("python3's gi", _gi, "elements")] if asks_programs and "python3" in desktop.uses else []),
        *seen,
        _check("temporary folder", temporary_folder),
        _check("state folder", state_folder),
        _check("server's log", log_file),
        *(Check(name, unread, ok=False, needed=False) for name in unknown_variables()),
        *models,
        _check("package mcp", _mcp_version, "the server and the agents"),
        *original,
        *([_check("Gmail", gmail_state, "send_email")] if has_gmail_credentials() else []),
        Check("mouse and keyboard by", desktop.input_backend()),
    ]


def _desktop_checks(desktop: Desktop) -> list[Check]:
    display = _check("display", partial(_display, desktop))
    try:
        return [display, *(_grants(desktop) if display.ok else ())]
    except PeekabooError as e:
        return [display, Check("permissions", e.message, False, True, e.hint, e.code)]


def _check(name: str, look: Callable[[], object], purpose: str = "") -> Check:
    """What look() returns or raises; needed, or, with a purpose, wanted for that alone."""
    try:
        return Check(name, str(look()), needed=not purpose)
    except PeekabooError as e:
        found = f"{e.message} (only for {purpose})" if purpose else e.message
        return Check(name, found, False, not purpose, e.hint, e.code)


def _gi() -> str:
    """What reads elements. Raises MISSING_PROGRAM."""
    path = program_path("python3")
    try:
        run_program([path, "-I", "-c", _HAS_GI], timeout_s=10.0)
    except PeekabooError as e:
        raise missing_program("python3", f"{path} has no gi with Atspi") from e
    return "with Atspi"


def _display(desktop: Desktop) -> str:
    for warning in session_warnings(desktop):
        raise PeekabooError(ErrorCode.NO_GUI_SESSION, warning)
    scene = desktop.snapshot()
    sizes = [f"{display.bounds.width:.0f}x{display.bounds.height:.0f}" for display in scene.displays]
    return f"{', '.join(sizes)}; {len(scene.windows)} windows"


def _grants(desktop: Desktop) -> list[Check]:
    """The grants that this system knows. Raises as Desktop.permissions does."""

    def check(grant: tuple[ErrorCode, Optional[bool]]) -> Check:
        code, is_granted = grant
        purpose = _PURPOSES[code]
        name = code.value.replace("PERMISSION_DENIED_", "").replace("_", " ").title()
        is_asked = is_granted is None and code is ErrorCode.PERMISSION_DENIED_AUTOMATION
        unknown = "macOS asks at first use" if is_asked else "not known: macOS says yes, and shows no titles"
        found = {True: "granted", False: "NOT granted", None: unknown}[is_granted]
        advice = "" if is_granted or is_asked else desktop.denied(code, f"needed for {purpose}").hint
        return Check(name, f"{found} ({purpose})", is_granted is not False, True, advice, code)

    # of each missing one a Mac is asked whom it belongs to
    return in_parallel(check, list(desktop.permissions().items()))


def _mcp_version() -> str:
    """The version of the package mcp. Raises MISSING_PROGRAM."""
    from importlib import metadata  # 15 ms that only these commands need

    try:
        version = metadata.version("mcp")
    except metadata.PackageNotFoundError:
        version = "none"
    if not version.startswith("2."):
        problem = f"{sys.executable} needs the package mcp 2, and has {version}"
        raise PeekabooError(ErrorCode.MISSING_PROGRAM, problem, how_to_install())
    return version


def _original(asks_version: bool) -> str:
    """The command line that peekaboo_exec runs. Raises MISSING_PROGRAM where that is our own."""
    program = peekaboo_program()
    if program.is_ours:
        raise PeekabooError(ErrorCode.MISSING_PROGRAM, "not installed, our own command line takes its place")
    return f"{program.argv[0]} {program.version()}" if asks_version else program.argv[0]


def _lines(checks: Iterable[Check]) -> str:
    return "\n".join(check.line() for check in checks)


def doctor(
    compile: Annotated[bool, "build the Swift helper for mouse and keyboard now (macOS)"] = False,
    request: Annotated[
        bool, "let macOS ask you for its permissions; then the app that you started this in is in their lists"
    ] = False,
) -> Result:
    """Checks that everything needed is here: programs, the display, folders, permissions; says what is
    missing and how to get it.

    Example: peekaboo-min doctor
    """
    desktop = this_desktop()
    if compile and desktop.name == "macos":
        build_helper(is_forced=True)
    if request and not (sys.stdin and sys.stdin.isatty()):
        raise invalid("--request asks a person", "run it yourself, in a terminal")
    if request and desktop.name == "macos":
        request_grants()
    checks = _checks(desktop, asks_programs=True)
    missing = [check for check in checks if check.is_problem]
    if missing:
        packages = sorted({PACKAGES[check.name] for check in missing if check.name in PACKAGES})
        hint = f"sudo apt-get install {' '.join(packages)}" if packages else missing[0].advice
        message = f"missing: {', '.join(check.name for check in missing)}"
        raise PeekabooError(missing[0].code, message, hint, details=_lines(checks))
    rows = [{key: value for key, value in check._asdict().items() if key != "code"} for check in checks]
    data = {"checks": rows, **_machine_data(desktop)}
    return Result(f"{_lines(checks)}\neverything that is needed is here", data)


def permissions() -> Result:
    """Shows each permission: whether it is granted, which application needs it, how to grant it. Exits 0,
    11, 12 or 13.

    Example: peekaboo-min permissions
    """
    desktop = this_desktop()
    checks = _grants(desktop)
    for check in checks:
        if check.is_problem:
            error = desktop.denied(check.code, f"{check.name} is not granted")
            raise PeekabooError(error.code, error.message, error.hint, _lines(checks))
    text = _lines(checks) or "an X11 desktop asks for no permissions"
    return Result(text, {"permissions": _grants_data(checks)})


def server_status() -> Result:
    """Shows the version, the AI providers and the permissions that are granted. `list server_status` and
    `list permissions` are the same.

    Example: peekaboo-min list server_status --json-output
    """
    desktop = this_desktop()
    checks = _grants(desktop)
    text = "\n".join(filter(None, [initial_status().strip(), _lines(checks)]))
    return Result(text, {"permissions": _grants_data(checks), **_machine_data(desktop)})


def _grants_data(checks: Iterable[Check]) -> dict[str, bool]:
    """The grants, by the original's names; a system without such a grant needs none."""
    missing = {check.code for check in checks if check.is_problem}
    return {
        "screen_recording": ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING not in missing,
        "accessibility": ErrorCode.PERMISSION_DENIED_ACCESSIBILITY not in missing,
    }


def initial_status() -> str:
    """The specification's status text, appended once to a server's first result."""
    providers = ", ".join(choice.name for choice in parse_providers(settings().ai_providers))
    providers = providers or "None Configured. Set PEEKABOO_AI_PROVIDERS ENV."
    return (
        "\n\n--- Peekaboo MCP Server Status ---\n"
        f"Name: {SERVER_NAME}\nVersion: {__version__}\n"
        f"Configured AI Providers (from PEEKABOO_AI_PROVIDERS ENV): {providers}\n---"
    )


def server_status_text(desktop: Desktop) -> str:
    """The text of the tool `list` for server_status, within two seconds."""
    with time_budget(_STATUS_S):
        checks = _checks(desktop)
    found = [(f"- {check.name}: {check.found}", check.advice) for check in checks if not check.ok]
    problems = "\n".join("; ".join(filter(None, problem)) for problem in found)
    return f"{initial_status().strip()}\n\n{_lines(checks)}\n\nProblems:\n{problems or 'none'}"


def _machine_data(desktop: Desktop) -> dict[str, Any]:
    import platform  # 2 ms that only a report needs

    machine = {"system": platform.platform(terse=True), "python": platform.python_version()}
    ours = {"version": __version__, "platform": desktop.name, "input": desktop.input_backend()}
    return {**ours, **machine, "log_file": str(log_file())}


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
    rest = f", but for what is yours or in use: {', '.join(staying)}" if staying else ""
    text = f"deleted {', '.join(folders)} and {log}{rest}; agents' runs and logs lie where you started them"
    return Result(text, {"folders": folders, "log": str(log), "kept": staying})


# What uv and pipx delete when their cache is cleaned. Both start a command in an environment that lies there.
_CACHES = re.compile(r"/((archive|environments|builds)-v\d+|pipx/\.cache|\.cache/pipx)/")
_FILES = {
    "claude-code": "~/.claude.json",
    "claude-desktop": "~/.config/Claude/claude_desktop_config.json",
    "codex": "~/.codex/config.toml",
    "cursor": "~/.cursor/mcp.json",
    "gemini": "~/.gemini/settings.json",
    "vscode": "~/.config/Code/User/mcp.json (or .vscode/mcp.json of one project)",
}


def client_configuration(
    client: Annotated[
        Literal["claude-code", "claude-desktop", "codex", "cursor", "gemini", "vscode"], "the MCP client"
    ],
    env: Annotated[
        Optional[list[str]],
        "the name of a variable that the server gets too, with the value that it has here; repeatable",
    ] = None,
) -> Result:
    """Prints the configuration with which an MCP client starts this installation; on stderr, where to put it.

    Example: peekaboo-min config claude-desktop
    """
    names, here, is_mac = env or [], child_environment(), platform_name() == "macos"
    unset = [name for name in names if name not in here]
    if unset:
        problem = f"the environment variable {unset[0][:40]} is not set here"
        raise invalid(problem, f"set it: NAME=VALUE {PROGRAM} config ... --env NAME")
    usual = {} if is_mac else {name: here[name] for name in ("DISPLAY", "XAUTHORITY") if here.get(name)}
    text = _configuration(client, _lasting_argv(), usual, {name: here[name] for name in names})
    file = _FILES[client].replace("~/.config", "~/Library/Application Support" if is_mac else "~/.config")
    messages = [f"put this into {file}"]
    if names and client != "codex":
        messages.append(f"it holds the value of {', '.join(names)}: let nobody else read that file")
    if not (is_mac or here.get("DISPLAY")):
        messages.append("DISPLAY is not set here: run this in a terminal of the desktop")
    return Result(text, {"client": client, "file": file, "text": text}, messages=tuple(messages))


def _lasting_argv() -> list[str]:
    """argv that works also after caches are cleaned, and that serves. Raises INVALID_ARGUMENT."""
    file = single_file()
    if _CACHES.search(f"{sys.prefix}/"):
        uv = child_environment().get("UV")  # `uv run` names itself so
        if file and uv:
            return [uv, "run", "--script", file]
        hint = f"install it with `uv tool install` or `pipx install`, then run `{PROGRAM} config` again"
        if file:
            hint = "save the file somewhere lasting, and run it by `uv run /path/peekaboo.py config CLIENT`"
        raise invalid(f"this Python is in a cache that may be cleaned: {sys.prefix}", hint)
    _mcp_version()
    started_by = os.path.abspath(sys.argv[0])
    if not file and os.path.basename(started_by) == PROGRAM and os.access(started_by, os.X_OK):
        return [started_by]  # the console script: it survives a new version of Python
    return own_command()


def _configuration(client: str, argv: Sequence[str], usual: dict[str, str], chosen: dict[str, str]) -> str:
    """JSON; for Codex TOML, whose strings and lists are JSON's where characters are written as they are."""
    as_json = partial(json.dumps, ensure_ascii=False)
    if client == "codex":
        pairs = [f"{name} = {as_json(value)}" for name, value in usual.items()]
        lines = [
            "[mcp_servers.peekaboo]",
            f"command = {as_json(argv[0])}",
            f"args = {as_json(argv[1:])}",
            # the first start under uv downloads; Codex calls tools of a slow server "unsupported"
            "startup_timeout_sec = 60",
            f"env = {{ {', '.join(pairs)} }}",
            f"env_vars = {as_json(list(chosen))}",  # which Codex passes on: keys stay out of the file
        ]
        return "\n".join(lines)
    block: dict[str, Any] = {"command": argv[0], "args": argv[1:], "env": {**usual, **chosen}}
    if client in ("claude-code", "vscode"):
        block = {"type": "stdio", **block}
    return as_json({"servers" if client == "vscode" else "mcpServers": {"peekaboo": block}}, indent=2)

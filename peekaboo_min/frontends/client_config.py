"""What an MCP client must be configured with to start this installation."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.models import Result
from ..core.settings import child_environment, platform_name
from ..core.text import clean_text
from ..system.process import run_program
from ..system.programs import find_program
from ..system.resources import how_to_install, own_command, single_file
from .commands import PROGRAM

_INSTALL = f"install it with `uv tool install` or `pipx install`, then run `{PROGRAM} config` again"
_CHECK_S = 20.0
_ASK_FOR_MCP = "from importlib.metadata import version; print(version('mcp'))"
# What uv and pipx delete when their cache is cleaned. Both start a command in an environment that lies there.
_CACHES = re.compile(r"/((archive|environments|builds)-v\d+|pipx/\.cache|\.cache/pipx)/")
_VARIABLE_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SSH_S = 30.0
# never an option of ssh, and one word of a shell
_SSH_HOST = re.compile(r"([\w.][\w.-]*@)?[\w][\w.-]*", re.ASCII)
_DISPLAY = re.compile(r":\d{1,5}(\.\d+)?", re.ASCII)
_NO_DISPLAY = (
    "DISPLAY is not set here: run this in a terminal of the desktop, or add DISPLAY to its environment"
)
# What a host is asked, in one session: its system, where the program is, and whether its display answers.
_ASK_HOST = (
    'uname -s; PATH="$HOME/.local/bin:$PATH"; program=$(command -v peekaboo-min); echo "$program"; '
    'DISPLAY={display} timeout 15 "$program" list screens >/dev/null 2>&1; echo $?'
)


class Launch(NamedTuple):
    """How a client starts the server."""

    argv: list[str]
    environment: Mapping[str, str] = {}
    """Variables with the values that they have here."""
    forwarded: Sequence[str] = ()
    """Names that a client which filters its own environment has to pass on."""
    warnings: Sequence[str] = ()


class _Client(NamedTuple):
    file: str
    mac_file: str = ""
    """Where a Mac has another one."""
    key: str = "mcpServers"
    """What the servers stand under in its JSON file; empty: the file is TOML."""
    has_type: bool = False
    """Whether a server's block has to say "type": "stdio"."""
    add_command: str = ""
    """The client's own command that adds a server, up to the name."""
    env_flag: str = "--env"
    filters: bool = True
    """False: the server gets the client's whole environment. True: HOME, LOGNAME, PATH, SHELL, TERM, USER
    and `env`.
    """


_CODE_FILE = "Code/User/mcp.json (or .vscode/mcp.json of one project)"
_MAC = "~/Library/Application Support"
_DESKTOP_FILE = "Claude/claude_desktop_config.json"
_CLIENTS = {
    "claude-code": _Client(
        "~/.claude.json", has_type=True, add_command="claude mcp add --scope user peekaboo", filters=False
    ),
    "claude-desktop": _Client(f"~/.config/{_DESKTOP_FILE}", f"{_MAC}/{_DESKTOP_FILE}"),
    "codex": _Client("~/.codex/config.toml", key="", add_command="codex mcp add peekaboo"),
    "cursor": _Client("~/.cursor/mcp.json"),
    "gemini": _Client(
        "~/.gemini/settings.json", add_command="gemini mcp add -s user", env_flag="-e", filters=False
    ),
    "vscode": _Client(
        f"~/.config/{_CODE_FILE}",
        f"{_MAC}/{_CODE_FILE}",
        key="servers",
        has_type=True,
        add_command="code --add-mcp",
        filters=False,
    ),
}


def client_configuration(
    client: str, names: Sequence[str] = (), host: Optional[str] = None, display: Optional[str] = None
) -> Result:
    """The configuration as text, where to put it as messages.

    names: further variables that the server gets. host: start it there, by ssh, on `display`.
    Raises INVALID_ARGUMENT for an unset variable, or a Python that cannot serve; for a host what _ssh_launch
    raises.
    """
    own = _CLIENTS[client]
    is_mac = platform_name() == "macos"
    if host is not None:
        if names:
            problem = "--env does not go over ssh: the value would show in that host's list of processes"
            raise invalid(problem, "set the variable on the host, such as in its ~/.pam_environment")
        launch = _ssh_launch(host, display or ":0")
    elif display is not None:
        raise invalid("--display is for --ssh", "name the host with --ssh, or set DISPLAY here")
    else:
        launch = _launch(own, names, is_mac)
    file = (is_mac and own.mac_file) or own.file
    text = _dump({own.key: {"peekaboo": _server(own, launch)}}) if own.key else _codex_toml(launch)
    _check_encodable(text)
    command = _command(client, own, launch, names) if own.add_command else ""
    messages = [f"put this into {file}"]
    if command:
        messages.append(f"or run: {command}")
    if names and "env_vars" not in text:
        messages.append(f"it holds the value of {', '.join(names)}: let nobody else read that file")
    data = {"client": client, "file": file, "text": text, "command": command}
    return Result(text, data, messages=(*messages, *launch.warnings))


def _launch(client: _Client, names: Sequence[str], is_mac: bool) -> Launch:
    here = child_environment()
    for name in names:
        if not _VARIABLE_NAME.fullmatch(name):
            raise invalid(f"{name[:40]!r} is not the name of a variable", "give the name alone")
        if name not in here:
            problem = f"the environment variable {name} is not set here"
            raise invalid(problem, f"set it: {name}=VALUE {PROGRAM} config ...")
    display = [] if is_mac else ["DISPLAY"]
    forwarded = ["XAUTHORITY"] if client.filters and not is_mac else []
    values = [*(name for name in [*display, *forwarded] if here.get(name)), *names]
    environment = {name: here[name] for name in values}
    warnings = [] if is_mac or "DISPLAY" in environment else [_NO_DISPLAY]
    return Launch(_argv(environment), environment, list(dict.fromkeys([*forwarded, *names])), warnings)


def _ssh_launch(host: str, display: str) -> Launch:
    """How a client starts the server on another machine. Asks that machine by ssh.

    Raises INVALID_ARGUMENT, PROGRAM_FAILED where ssh fails or the program is not there, NO_GUI_SESSION for a
    Mac, TIMEOUT.
    """
    if not _SSH_HOST.fullmatch(host):
        raise invalid(f"{host[:60]!r} is not a host", "write [USER@]NAME, a name of ~/.ssh/config perhaps")
    if not _DISPLAY.fullmatch(display):
        raise invalid(f"{display[:40]!r} is not a display of that host", "write it like :0 or :1")
    options = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]
    asked = run_program(
        ["ssh", *options, "--", host, f"sh -c {shlex.quote(_ASK_HOST.format(display=display))}"],
        timeout_s=_SSH_S,
        accept=None,
    )
    if asked.code == 255:
        raise PeekabooError(
            ErrorCode.PROGRAM_FAILED,
            f"ssh does not reach {host}: {clean_text(asked.stderr.strip(), 200) or 'it gave no reason'}",
            hint=f"make `ssh {host} true` work without a password, by a key",
        )
    system, program, code = [*asked.text.splitlines()[-3:], "", "", ""][:3]
    if system == "Darwin":
        # no Mac was tried: see the permissions of a process that sshd starts
        raise PeekabooError(
            ErrorCode.NO_GUI_SESSION,
            f"{host} is a Mac, and what ssh starts there is not in its graphical session",
            hint="start the server from an app on that Mac itself",
        )
    if not program.startswith("/"):
        raise PeekabooError(
            ErrorCode.PROGRAM_FAILED,
            f"there is no peekaboo-min on {host}",
            hint="install it there by `pipx install`, which puts it into ~/.local/bin",
        )
    argv = ["ssh", "-T", host, "env", f"DISPLAY={display}", shlex.quote(program)]
    warnings = [] if code == "0" else [f"the display {display} of {host} does not answer: log in there first"]
    return Launch(argv, warnings=warnings)


def _argv(environment: Mapping[str, str]) -> list[str]:
    """argv that works also after caches are cleaned, and that serves. Raises INVALID_ARGUMENT."""
    if _CACHES.search(f"{sys.prefix}/"):
        return _argv_for_uv()
    _check_can_serve(environment)
    started_by = os.path.abspath(sys.argv[0])
    if not single_file() and os.path.basename(started_by) == PROGRAM and os.access(started_by, os.X_OK):
        return [started_by]  # the console script: it survives a new version of Python
    return own_command()


def _argv_for_uv() -> list[str]:
    """The uv command that created the environment of this process."""
    uv = child_environment().get("UV") or find_program("uv")
    if not uv or "pipx" in sys.prefix:
        raise invalid(f"this Python is in a cache that may be cleaned: {sys.prefix}", _INSTALL)
    uv = os.path.abspath(uv)
    if not single_file():
        return [uv, "tool", "run", "--from", _package_source(), PROGRAM]
    file = own_command()[-1]
    if not os.path.isfile(file) or _CACHES.search(file):
        problem = "this program was not started from a file that stays"
        raise invalid(problem, "save peekaboo.py and run `uv run peekaboo.py config`")
    return [uv, "run", "--script", file]


def _package_source() -> str:
    """What uv installed the package from, as `uvx --from` takes it (PEP 610 defines the record).

    Raises INVALID_ARGUMENT for a package that is not installed.
    """
    from importlib import metadata
    from urllib.parse import unquote, urlsplit

    try:
        installed = metadata.distribution(PROGRAM)
    except metadata.PackageNotFoundError as e:
        raise invalid("this package is not installed: it was started from its folder", _INSTALL) from e
    record = json.loads(installed.read_text("direct_url.json") or "{}")
    url = str(record.get("url", ""))
    if "vcs_info" in record:
        revision = record["vcs_info"].get("requested_revision")
        return f"{record['vcs_info']['vcs']}+{url}" + (f"@{revision}" if revision else "")
    return unquote(urlsplit(url).path) if url.startswith("file:") else url or PROGRAM


def _check_can_serve(environment: Mapping[str, str]) -> None:
    """Asks this Python, in the environment that the server will have, for the package mcp."""
    if sys.version_info < (3, 10):
        problem = f"serving MCP needs Python 3.10 or newer, and {sys.executable} is older"
        raise invalid(problem, how_to_install())
    alone = {"PYTHONPATH": "", "PYTHONHOME": "", **environment}
    # not from the working folder: `-c` looks for modules there
    asked = run_program(
        [sys.executable, "-c", _ASK_FOR_MCP],
        timeout_s=_CHECK_S,
        accept=None,
        environment=alone,
        folder=os.sep,
    )
    version = asked.text.strip() if asked.code == 0 else ""
    if version.split(".")[0] != "2":
        problem = (
            f"{sys.executable} has mcp {version}" if version else f"{sys.executable} lacks the package mcp"
        )
        raise invalid(f"{problem}: the server would not start", how_to_install())


def _check_encodable(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as e:
        problem = "a path or a variable of this installation is not UTF-8: no configuration file can hold it"
        raise invalid(problem, "install it in a folder with another name") from e


def _server(client: _Client, launch: Launch) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "stdio"} if client.has_type else {}
    block.update(command=launch.argv[0], args=launch.argv[1:])
    return {**block, "env": dict(launch.environment)} if launch.environment else block


def _dump(value: Any, indent: Optional[int] = 2) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _codex_toml(launch: Launch) -> str:
    """What Codex forwards from its own environment is not written down: keys stay out of the file."""
    fixed = {name: value for name, value in launch.environment.items() if name not in launch.forwarded}
    lines = [
        "[mcp_servers.peekaboo]",
        f"command = {_toml(launch.argv[0])}",
        f"args = [{', '.join(map(_toml, launch.argv[1:]))}]",
        # the first start under uv downloads; Codex calls tools of a slow server "unsupported"
        "startup_timeout_sec = 60",
    ]
    if fixed:
        lines.append(f"env = {{ {', '.join(f'{name} = {_toml(value)}' for name, value in fixed.items())} }}")
    if launch.forwarded:
        lines.append(f"env_vars = [{', '.join(map(_toml, launch.forwarded))}]")
    return "\n".join(lines)


def _toml(text: str) -> str:
    """A TOML basic string: JSON's escapes, but characters beyond 16 bits as they are, and DEL escaped."""
    return _dump(text, None).replace("\x7f", "\\u007f")


def _command(name: str, client: _Client, launch: Launch, asked: Sequence[str]) -> str:
    """The client's own command, for a shell. Values of --env are left to that shell: no key is shown."""
    if name == "vscode":  # its command takes the block as it is, values and all
        block = {"name": "peekaboo", **_server(client, launch)}
        return "" if asked else f"{client.add_command} {shlex.quote(_dump(block, None))}"
    flags = [
        f'{client.env_flag} {each}="${each}"'
        if each in asked
        else f"{client.env_flag} {shlex.quote(f'{each}={value}')}"
        for each, value in launch.environment.items()
    ]
    separator = "peekaboo" if name == "gemini" else "--"
    return " ".join([client.add_command, *flags, separator, *map(shlex.quote, launch.argv)])

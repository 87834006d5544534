"""What an MCP client must be configured with to start this installation."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Optional

from ..core.errors import invalid
from ..core.models import Result
from ..core.settings import child_environment, platform_name
from ..system.programs import how_to_install, own_command, single_file
from .commands import PROGRAM

# What uv and pipx delete when their cache is cleaned. Both start a command in an environment that lies there.
_CACHES = re.compile(r"/((archive|environments|builds)-v\d+|pipx/\.cache|\.cache/pipx)/")
_VARIABLE_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_NO_DISPLAY = (
    "DISPLAY is not set here: run this in a terminal of the desktop, or add DISPLAY to its environment"
)


class _Client(NamedTuple):
    file: str
    mac_file: str = ""
    """Where a Mac has another one."""
    key: str = "mcpServers"
    """What the servers stand under in its JSON file; empty: the file is TOML."""
    has_type: bool = False
    """Whether a server's block has to say "type": "stdio"."""
    filters: bool = True
    """False: the server gets the client's whole environment. True: HOME, LOGNAME, PATH, SHELL, TERM, USER
    and `env`.
    """


_CODE_FILE = "Code/User/mcp.json (or .vscode/mcp.json of one project)"
_MAC = "~/Library/Application Support"
_DESKTOP_FILE = "Claude/claude_desktop_config.json"
_CLIENTS = {
    "claude-code": _Client("~/.claude.json", has_type=True, filters=False),
    "claude-desktop": _Client(f"~/.config/{_DESKTOP_FILE}", f"{_MAC}/{_DESKTOP_FILE}"),
    "codex": _Client("~/.codex/config.toml", key=""),
    "cursor": _Client("~/.cursor/mcp.json"),
    "gemini": _Client("~/.gemini/settings.json", filters=False),
    "vscode": _Client(
        f"~/.config/{_CODE_FILE}", f"{_MAC}/{_CODE_FILE}", key="servers", has_type=True, filters=False
    ),
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
    names = env or []
    chosen = _CLIENTS[client]
    is_mac = platform_name() == "macos"
    argv = _lasting_argv()
    variables = _variables(names, [] if is_mac else ["DISPLAY", *(["XAUTHORITY"] if chosen.filters else [])])
    if chosen.key:
        block: dict[str, Any] = {"type": "stdio"} if chosen.has_type else {}
        block.update(command=argv[0], args=argv[1:], **({"env": variables} if variables else {}))
        text = json.dumps({chosen.key: {"peekaboo": block}}, ensure_ascii=False, indent=2)
    else:
        text = _codex_toml(argv, variables, ["XAUTHORITY", *names])
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as e:
        problem = "a path or a variable of this installation is not UTF-8: no configuration file can hold it"
        raise invalid(problem, "install it in a folder with another name") from e
    file = (is_mac and chosen.mac_file) or chosen.file
    messages = [f"put this into {file}"]
    if names and chosen.key:
        messages.append(f"it holds the value of {', '.join(names)}: let nobody else read that file")
    if not is_mac and "DISPLAY" not in variables:
        messages.append(_NO_DISPLAY)
    return Result(text, {"client": client, "file": file, "text": text}, messages=tuple(messages))


def _variables(names: Sequence[str], usual: Sequence[str]) -> dict[str, str]:
    """These variables with the values that they have here; of the usual ones those that are set."""
    here = child_environment()
    for name in names:
        if not _VARIABLE_NAME.fullmatch(name):
            raise invalid(f"{name[:40]!r} is not the name of a variable", "give the name alone")
        if name not in here:
            problem = f"the environment variable {name} is not set here"
            raise invalid(problem, f"set it: {name}=VALUE {PROGRAM} config ...")
    return {name: here[name] for name in [*(name for name in usual if here.get(name)), *names]}


def _lasting_argv() -> list[str]:
    """argv that works also after caches are cleaned, and that serves. Raises INVALID_ARGUMENT."""
    from importlib import metadata  # only this command needs it

    if _CACHES.search(f"{sys.prefix}/"):
        hint = f"install it with `uv tool install` or `pipx install`, then run `{PROGRAM} config` again"
        raise invalid(f"this Python is in a cache that may be cleaned: {sys.prefix}", hint)
    try:
        version = metadata.version("mcp")
    except metadata.PackageNotFoundError:
        version = ""
    if version.split(".")[0] != "2":
        problem = f"has mcp {version}" if version else "lacks the package mcp"
        raise invalid(f"{sys.executable} {problem}: the server would not start", how_to_install())
    started_by = os.path.abspath(sys.argv[0])
    if not single_file() and os.path.basename(started_by) == PROGRAM and os.access(started_by, os.X_OK):
        return [started_by]  # the console script: it survives a new version of Python
    return own_command()


def _codex_toml(argv: Sequence[str], variables: Mapping[str, str], forwarded: Sequence[str]) -> str:
    """What Codex forwards from its own environment is not written down: keys stay out of the file."""
    fixed = [f"{name} = {_toml(value)}" for name, value in variables.items() if name not in forwarded]
    passed_on = [_toml(name) for name in forwarded if name in variables]
    lines = [
        "[mcp_servers.peekaboo]",
        f"command = {_toml(argv[0])}",
        f"args = [{', '.join(map(_toml, argv[1:]))}]",
        # the first start under uv downloads; Codex calls tools of a slow server "unsupported"
        "startup_timeout_sec = 60",
        *([f"env = {{ {', '.join(fixed)} }}"] if fixed else []),
        *([f"env_vars = [{', '.join(passed_on)}]"] if passed_on else []),
    ]
    return "\n".join(lines)


def _toml(text: str) -> str:
    """A TOML basic string: JSON's escapes, but characters beyond 16 bits as they are, and DEL escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

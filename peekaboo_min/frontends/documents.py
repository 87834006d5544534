"""Print a client's configuration, the reference of tools, or the skill."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal, Optional

from ..core.errors import ErrorCode, invalid
from ..core.models import Result
from ..core.settings import child_environment
from ..desktop.select import this_desktop
from ..system.programs import mcp_version, native_source, own_command, single_file
from ..tools.table import COMMANDS, TOOLS
from .arguments import JSON_KINDS, PROGRAM, Parameter, command_parser, read_signature

# uv and pipx run a command from an environment in their cache, and delete it when the cache is cleaned.
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
        Optional[list[str]], "name of a variable that the server gets too, with its value here; repeatable"
    ] = None,
    desktop: Annotated[bool, "serve an X desktop of its own instead of yours; see `desktop --help`"] = False,
) -> Result:
    """Print the configuration with which an MCP client starts this installation; on stderr, where to put it.

    Example: peekaboo-min config claude-desktop
    """
    names, here = env or [], child_environment()
    if unset := [given for given in names if given not in here]:
        name, _, value = unset[0].partition("=")
        hint = f"write {name[:40]}={value[:40] or 'VALUE'} {PROGRAM} config {client} --env {name[:40]}"
        if value:
            raise invalid("--env takes the name of a variable, and copies its value from here", hint)
        raise invalid(f"the environment variable {name[:40]} is not set here", hint)
    this = this_desktop()
    needed = () if desktop else this.variables
    usual = {name: here[name] for name in needed if here.get(name)}
    argv = [*_lasting_argv(), *(["desktop"] if desktop else [])]
    text = _configuration(client, argv, usual, {name: here[name] for name in names})
    file = _FILES[client].replace("~/.config", this.config_folder)
    messages = [f"put this into {file}"]
    if names and client != "codex":
        messages.append(f"the file contains the value of {', '.join(names)}: keep it private")
    if client == "codex":
        messages.append("required = true: Codex waits for this server, and fails if it cannot start")
    if "DISPLAY" in needed and not here.get("DISPLAY"):
        messages.append("DISPLAY is not set here: run this in a terminal of the desktop, or with --desktop")
    return Result(text, {"client": client, "file": file, "text": text}, messages=tuple(messages))


def _lasting_argv() -> list[str]:
    """Return an argv that serves, and still works after caches are cleaned. Raises INVALID_ARGUMENT."""
    file = single_file()
    if _CACHES.search(f"{sys.prefix}/"):
        uv = child_environment().get("UV")  # `uv run` sets it to its own path
        if file and uv:
            return [uv, "run", "--script", file]
        hint = f"install it with `uv tool install` or `pipx install`, then run `{PROGRAM} config` again"
        if file:
            hint = "save the file somewhere permanent, and run it by `uv run /path/peekaboo.py config CLIENT`"
        raise invalid(f"this Python is in a cache that may be cleaned: {sys.prefix}", hint)
    mcp_version()
    started_by = os.path.abspath(sys.argv[0])
    if not file and os.path.basename(started_by) == PROGRAM and os.access(started_by, os.X_OK):
        return [started_by]  # the console script survives a new version of Python
    return own_command()


def _configuration(client: str, argv: Sequence[str], usual: dict[str, str], chosen: dict[str, str]) -> str:
    """Return the configuration as JSON, for Codex as TOML."""
    as_json = partial(json.dumps, ensure_ascii=False)  # TOML reads JSON's strings, but not all its escapes
    if client == "codex":
        pairs = [f"{name} = {as_json(value)}" for name, value in usual.items()]
        lines = [
            "[mcp_servers.peekaboo]",
            f"command = {as_json(argv[0])}",
            f"args = {as_json(argv[1:])}",
            # the first start under uv downloads; Codex calls tools of a slow server "unsupported"
            "startup_timeout_sec = 60",
            "required = true",  # else `codex exec` sends its first request before the tools are listed
            f"env = {{ {', '.join(pairs)} }}",
            f"env_vars = {as_json(list(chosen))}",  # Codex passes these on, so keys stay out of the file
        ]
        return "\n".join(lines)
    block: dict[str, Any] = {"command": argv[0], "args": argv[1:], "env": {**usual, **chosen}}
    if client in ("claude-code", "vscode"):
        block = {"type": "stdio", **block}
    return as_json({"servers" if client == "vscode" else "mcpServers": {"peekaboo": block}}, indent=2)


def show_tools(
    skill: Annotated[bool, "print a skill instead, for agents that have a shell but no MCP"] = False,
) -> Result:
    """Print the reference of all MCP tools, as Markdown.

    Example: peekaboo-min tools > TOOLS.md
    """
    text = _skill() if skill else _reference()
    return Result(text, {"markdown": text})


def _reference() -> str:
    sections = []
    for row in TOOLS.values():  # including tools that this machine does not offer
        signature = read_signature(row.load())
        sections += [f"#### `{row.name}`", " ".join(signature.description.split())]
        if signature.parameters:
            sections.append("\n".join(map(_parameter_line, signature.parameters)))
        sections.append(f"Result: {row.result}.")
    steps = {code: code.next_step or "as the message says" for code in ErrorCode}
    rows = [f"| `{code.value}` | {code.exit_code} | {step} |" for code, step in steps.items()]
    sections += ["#### Errors", "\n".join(["| code | exit | next step |", "|---|---|---|", *rows])]
    return "\n\n".join(sections)


def _skill() -> str:
    """Fill the skill with the commands before `agent` in the table: they look, act and ask."""
    lines = []
    for name in [*COMMANDS][: [*COMMANDS].index("agent")]:
        signature = read_signature(COMMANDS[name].load(for_shell=True))
        options = [flag for flag, p in signature.options.items() if not p.is_required]
        usage = command_parser(name, signature).usage or ""
        usage = usage.replace(" [options]", f" [{' '.join(options)}]" if options else "")
        lines.append(f"- `{usage}`: {signature.summary}")
    codes = "; ".join(f"{code.exit_code} {code.value}" for code in ErrorCode if code.exit_code > 1)
    skill = native_source("frontends/skill.md")
    return skill.replace("{commands}", "\n".join(lines)).replace("{codes}", codes).rstrip()


def _parameter_line(parameter: Parameter) -> str:
    choices = ", ".join(f"`{choice}`" for choice in parameter.choices)
    kind = ("list of " if parameter.is_list else "") + (choices or JSON_KINDS.get(parameter.type_, "object"))
    need = ", required" if parameter.is_required else ""
    return f"- `{parameter.name}` ({kind}{need}): {parameter.help}"

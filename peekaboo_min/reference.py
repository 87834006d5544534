"""The tool reference as Markdown, and what to write into a client's settings."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, List, Sequence

from .errors import ErrorCode, PeekabooError
from .model import Result
from .settings import variable_table
from .signatures import Parameter, read_signature
from .sources import own_command
from .tools import TOOLS, Tool

CLIENTS = ("claude-code", "claude-desktop", "codex", "cursor", "gemini", "vscode")
_FILES = {
    "claude-desktop": "~/Library/Application Support/Claude/claude_desktop_config.json",
    "cursor": "~/.cursor/mcp.json",
    "gemini": "~/.gemini/settings.json",
    "vscode": ".vscode/mcp.json",
    "codex": "~/.codex/config.toml",
}


def tool_reference() -> str:
    """Every tool with its parameters, as Markdown; what this machine does not offer stands in it, too."""
    return "\n\n".join(_tool_section(tool) for tool in TOOLS)


def _tool_section(tool: Tool) -> str:
    signature = read_signature(tool.function)
    description = " ".join(signature.description.split())
    rows = [f"| `{one.name}` | {_type_name(one)} | {_needed(one)} | {_cell(one.help)} |" for one in signature.parameters]
    table = ["", "| parameter | type | default | meaning |", "|---|---|---|---|", *rows] if rows else []
    return "\n".join([f"#### `{tool.name}`", "", description, *table])


def _type_name(one: Parameter) -> str:
    if one.choices:
        name = ", ".join(f"`{choice}`" for choice in one.choices)
    else:
        name = {str: "text", int: "whole number", float: "number", bool: "true or false"}.get(one.type_, "object")
    return f"list of {name}" if one.is_list else name


def _needed(one: Parameter) -> str:
    return "required" if one.is_required else f"`{json.dumps(one.default)}`" if one.default is not None else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def variable_reference() -> str:
    """Every environment variable that is read, as a Markdown table."""
    rows = [f"| `{name}` | {_cell(default)} | {_cell(help_text)} |" for name, default, help_text in variable_table()]
    return "\n".join(["| variable | default | what it does |", "|---|---|---|", *rows])


def client_configuration(client: str) -> Result:
    """What to write where, so that a client starts this very installation. Raises INVALID_ARGUMENT."""
    words = [os.path.abspath(sys.executable), *own_command()[1:]]
    if client not in CLIENTS:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, f"there is no client {client[:40]!r}", hint=f"known are {', '.join(CLIENTS)}"
        )
    if client == "claude-code":
        text = "claude mcp add peekaboo --scope user -- " + " ".join(_shell_words(words))
        return Result(text, {"client": client, "command": text})
    text = _toml(words) if client == "codex" else json.dumps(_json(client, words), indent=2)
    return Result(f"{text}\n\ninto {_FILES[client]}", {"client": client, "file": _FILES[client], "text": text})


def _json(client: str, words: Sequence[str]) -> Dict[str, Any]:
    server: Dict[str, Any] = {"command": words[0], "args": list(words[1:])}
    if client == "vscode":
        return {"servers": {"peekaboo": {"type": "stdio", **server}}}
    return {"mcpServers": {"peekaboo": server}}


def _toml(words: Sequence[str]) -> str:
    return f"[mcp_servers.peekaboo]\ncommand = {json.dumps(words[0])}\nargs = {json.dumps(list(words[1:]))}"


def _shell_words(words: Sequence[str]) -> List[str]:
    import shlex  # only this needs it

    return [shlex.quote(word) for word in words]

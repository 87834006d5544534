"""The tool reference and the table of environment variables, as Markdown."""

from __future__ import annotations

import json

from ..core.settings import variable_table
from .signatures import Parameter, read_signature
from .tools import TOOLS, Tool


def tool_reference() -> str:
    """Every tool with its parameters, as Markdown; what this machine does not offer stands in it, too."""
    return "\n\n".join(_tool_section(tool) for tool in TOOLS)


def _tool_section(tool: Tool) -> str:
    signature = read_signature(tool.function)
    description = " ".join(signature.description.split())
    rows = [
        f"| `{one.name}` | {_type_name(one)} | {_needed(one)} | {_cell(one.help)} |"
        for one in signature.parameters
    ]
    table = ["", "| parameter | type | default | meaning |", "|---|---|---|---|", *rows] if rows else []
    return "\n".join([f"#### `{tool.name}`", "", description, *table])


def _type_name(one: Parameter) -> str:
    if one.choices:
        name = ", ".join(f"`{choice}`" for choice in one.choices)
    else:
        name = {str: "text", int: "whole number", float: "number", bool: "true or false"}.get(
            one.type_, "object"
        )
    return f"list of {name}" if one.is_list else name


def _needed(one: Parameter) -> str:
    return (
        "required" if one.is_required else f"`{json.dumps(one.default)}`" if one.default is not None else ""
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def variable_reference() -> str:
    """Every environment variable that is read, as a Markdown table."""
    rows = [
        f"| `{name}` | {_cell(default)} | {_cell(help_text)} |"
        for name, default, help_text in variable_table()
    ]
    return "\n".join(["| variable | default | what it does |", "|---|---|---|", *rows])

"""The tool reference and the table of environment variables, as Markdown."""

from __future__ import annotations

import json

from ..core.settings import variable_table
from .signatures import Parameter, read_signature
from .tools import TOOLS, Tool


def tool_reference() -> str:
    """Every tool with its parameters, as Markdown; also what this machine does not offer."""
    return "\n\n".join(_tool_section(tool) for tool in TOOLS)


def _tool_section(tool: Tool) -> str:
    signature = read_signature(tool.function)
    description = " ".join(signature.description.split())
    rows = [
        f"| `{parameter.name}` | {_type_name(parameter)} | {_needed(parameter)} | {_cell(parameter.help)} |"
        for parameter in signature.parameters
    ]
    table = ["", "| parameter | type | default | meaning |", "|---|---|---|---|", *rows] if rows else []
    return "\n".join([f"#### `{tool.name}`", "", description, *table])


def _type_name(parameter: Parameter) -> str:
    if parameter.choices:
        name = ", ".join(f"`{choice}`" for choice in parameter.choices)
    else:
        name = {str: "text", int: "whole number", float: "number", bool: "true or false"}.get(
            parameter.type_, "object"
        )
    return f"list of {name}" if parameter.is_list else name


def _needed(parameter: Parameter) -> str:
    return (
        "required"
        if parameter.is_required
        else f"`{json.dumps(parameter.default)}`"
        if parameter.default is not None
        else ""
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

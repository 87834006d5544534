"""The reference of tools, commands and variables, and the agent skill."""

from __future__ import annotations

from typing import Annotated

from ..core.errors import ErrorCode
from ..core.models import Result
from ..system.programs import native_source
from ..tools.table import COMMANDS, TOOLS
from .arguments import JSON_KINDS, Parameter, command_parser, read_signature


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
    """Fill the skill with the commands that look, act and ask: those before `agent` in the table."""
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

"""What the shell explains: the commands, and each with its arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .commands import COMMANDS, GROUPS, JSON_FLAGS, PROGRAM, in_shell_names
from .signatures import Parameter, Signature, read_signature

_COLUMNS = 79


def overview(group: str = "") -> str:
    """All commands by what they are for, a line each; only those of `group` where one is named."""
    purpose = (
        "Eyes and hands on this desktop: list windows, take screenshots of them, click by the pixels of a "
        "screenshot, type. Without a command it serves MCP on stdio."
    )
    lines = [f"usage: {PROGRAM} COMMAND ... [--json-output]", "", *_filled(purpose)]
    for title, names in GROUPS.items():
        shown = [name for name in names if not group or name.split()[0] == group]
        if shown:
            lines += ["", f"{title}:", *_rows([(name, _first_sentence(name)) for name in shown])]
    more = [
        (f"{', '.join(JSON_FLAGS)}", "one JSON document on stdout: success, data or error"),
        ("COMMAND --help", "a command's arguments, with an example"),
        ("version, --version, -V", "the version"),
    ]
    return "\n".join([*lines, "", "also:", *_rows(more)])


def _first_sentence(name: str) -> str:
    return in_shell_names(re.split("[.:;] ", read_signature(COMMANDS[name]).summary)[0].rstrip("."))


def introduction() -> str:
    """What somebody sees who starts the bare command in a terminal."""
    steps = [
        (f"{PROGRAM} doctor", "checks that this machine has what is needed"),
        (f"{PROGRAM} windows", "lists the windows that are open"),
        (f"{PROGRAM} image --path screen.png", "takes a screenshot"),
        (f"{PROGRAM} config CLIENT", "prints what your MCP client needs to start it"),
        (f"{PROGRAM} --help", "lists all commands"),
    ]
    text = (
        f"{PROGRAM} gives AI agents eyes and hands on this desktop. Without a command it is an MCP server on "
        "stdin and stdout, which your MCP client starts; in a terminal, type:"
    )
    return "\n".join([*_filled(text), "", *_rows(steps, 41)])


def command_help(name: str, signature: Signature) -> str:
    """A command's arguments and options, with an example."""
    arguments = [each for each in signature.parameters if each.is_positional]
    options = [each for each in signature.parameters if not each.is_positional]
    shown = [
        f"{each.name.upper()}{' ...' if each.is_list else ''}"
        if each.is_required
        else f"[{each.name.upper()}]"
        for each in arguments
    ]
    needed = [_flag_with_value(each) for each in options if each.is_required]
    usage = f"usage: {' '.join([PROGRAM, name, *shown, *needed])} [options]"
    lines = [*_filled(usage), ""]
    for paragraph in signature.description.split("\n\n"):
        lines += [*_filled(in_shell_names(paragraph)), ""]
    if arguments:
        rows = [(f"{each.name.upper()}{_choices(each)}", in_shell_names(each.help)) for each in arguments]
        lines += [*_rows(rows), ""]
    flags = [(_flag_with_value(each), _option_help(each)) for each in options]
    lines += ["options:", *_rows([*flags, (", ".join(JSON_FLAGS), "one JSON document on stdout")])]
    if signature.example:
        lines += ["", "example:", *(f"  {line}" for line in signature.example.splitlines())]
    return "\n".join(lines)


def _flag_with_value(parameter: Parameter) -> str:
    if parameter.type_ is bool:
        return parameter.flags[0]
    flag = parameter.flags[0]
    return flag + (_choices(parameter) or f" {flag[2:].upper().replace('-', '_')}")


def _option_help(parameter: Parameter) -> str:
    is_negated = parameter.type_ is bool and parameter.default
    return ("sets to false: " if is_negated else "") + in_shell_names(parameter.help)


def _choices(parameter: Parameter) -> str:
    return f" {{{','.join(parameter.choices)}}}" if parameter.choices else ""


def _filled(text: str, indent: int = 0) -> list[str]:
    import textwrap  # only help needs it

    return textwrap.wrap(
        text,
        _COLUMNS,
        initial_indent=" " * indent,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=False,  # an address must stay whole, to be copied
    )


def _rows(entries: Iterable[tuple[str, str]], column: int = 25) -> list[str]:
    """Names on the left and what they mean beside them, or below where a name is long."""
    lines: list[str] = []
    for name, meaning in entries:
        filled = _filled(meaning, column)
        left = f"  {name}"
        if len(left) <= column - 2:
            filled[0] = left.ljust(column) + filled[0].lstrip()
        else:
            lines.append(left)
        lines += filled
    return lines

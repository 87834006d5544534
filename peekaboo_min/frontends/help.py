"""What the shell explains: commands, the README's chapters, completion."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Optional

from ..system.resources import native_source, single_file
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
        ("help TOPIC", f"a chapter of the manual: {', '.join(topic_names())}"),
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


def _filled(text: str, indent: int = 0, hanging: int = 0) -> list[str]:
    import textwrap  # only help needs it

    first, others = " " * indent, " " * (indent + hanging)
    return textwrap.wrap(
        text,
        _COLUMNS,
        initial_indent=first,
        subsequent_indent=others,
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


def _manual() -> str:
    """The README up to its reference: of the checkout, of the installed package, or of the single file."""
    parent = Path(__file__).parent.parent.parent
    if single_file():
        text = native_source("README.md")
    elif (parent / "pyproject.toml").is_file():
        text = (parent / "README.md").read_text(encoding="utf-8")
    else:
        from importlib import metadata

        text = ""
        with suppress(metadata.PackageNotFoundError):  # the folder was copied
            text = metadata.metadata(PROGRAM).get_payload()  # type: ignore[attr-defined]
    return text.split("\n## Reference")[0]


def _chapters() -> dict[str, str]:
    """The README's chapters, by their headings."""
    parts = re.split(r"^## (.+)\n", _manual(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], (part.strip() for part in parts[2::2])))


def topic_names() -> list[str]:
    """A name for each chapter: the first word of its heading."""
    return [re.split(r"\W", heading.lower())[0] for heading in _chapters()]


def chapter(topic: str) -> Optional[str]:
    """The chapter that `topic` names, for a terminal; None where there is none."""
    for name, (heading, text) in zip(topic_names(), _chapters().items()):
        if topic.lower() in (name, heading.lower()):
            return "\n".join([heading, "=" * len(heading), "", *_for_a_terminal(text)])
    return None


def _for_a_terminal(markdown: str) -> Iterable[str]:
    """Paragraphs, list items and tables in the terminal's width; code as it is."""
    for block in re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL):
        if block.startswith("```"):
            yield from (f"    {line}" for line in block.splitlines()[1:-1])
            yield ""
            continue
        for paragraph in filter(None, block.strip("\n").split("\n\n")):
            for part in re.split(r"\n(?=[-|] |\d\. )", paragraph):
                yield from _part_for_a_terminal(part)
            yield ""


def _part_for_a_terminal(part: str) -> list[str]:
    """Lines of running text, of one list item, or of one row of a table."""
    if part.startswith("|"):
        row = part.splitlines()[0]  # below a table's head is what divides it from the rows
        first, *others = (cell.strip() for cell in row.strip("|").split("|"))
        return _rows([(first, "; ".join(others))])
    text = " ".join(re.sub(r"</?\w[^>]*>|\*\*", "", part).split())
    return _filled(text, hanging=2 * bool(re.match(r"[-\d]", part)))


_COMPLETION = r"""# in ~/.STARTUP: eval "$(peekaboo-min completion SHELL)"
_peekaboo_min() {
    local word="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
    local command="${COMP_WORDS[1]}" found=""
    case "$command" in GROUPED) [ "$COMP_CWORD" -gt 2 ] && command="$command ${COMP_WORDS[2]}" ;; esac
    case "$command $previous" in
CHOICES
    *) case "$COMP_CWORD:$command:$word" in
        1:*) found="COMMANDS" ;;
SUBCOMMANDS
        *:-*) case "$command" in
FLAGS
            esac ;;
        esac ;;
    esac
    COMPREPLY=()
    if [ -n "$found" ]; then
        COMPREPLY=($(compgen -W "$found" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}
complete -o filenames -F _peekaboo_min peekaboo-min
"""


def completion(shell: str) -> str:
    """A script that completes commands, options and their choices, for bash; zsh reads it by bashcompinit."""
    signatures = {name: read_signature(COMMANDS[name]) for name in COMMANDS}
    grouped: dict[str, list[str]] = {name.split()[0]: [] for name in COMMANDS if " " in name}
    for name in COMMANDS:
        if " " in name:
            grouped[name.split()[0]].append(name.split()[1])
    choices = [
        (f'    "{name} {flag}"', each.choices)
        for name, signature in signatures.items()
        for each in signature.parameters
        for flag in each.flags[:1]
        if each.choices and not each.is_positional
    ]
    # a positional argument with choices follows the command itself
    choices += [
        (f'    "{name} {name.split()[-1]}"', each.choices)
        for name, signature in signatures.items()
        for each in signature.parameters[:1]
        if each.choices and each.is_positional
    ]
    flags = [
        (f'            "{name}"', [each.flags[0] for each in signature.parameters if not each.is_positional])
        for name, signature in signatures.items()
    ]
    first = dict.fromkeys([*(name.split()[0] for name in COMMANDS), "help", "version", "completion"])
    choices.append(('    "help help"', (*topic_names(), *first)))
    parts = {
        "GROUPED": "|".join(grouped),
        "CHOICES": _cases(choices),
        "SUBCOMMANDS": _cases([(f"        2:{name}:*", words) for name, words in grouped.items()]),
        "FLAGS": _cases([(label, [*words, "--json", "--help"]) for label, words in flags]),
        "COMMANDS": " ".join(first),
        "SHELL": shell,
        "STARTUP": f"{shell}rc",
    }
    script = re.sub(
        r"\b(GROUPED|CHOICES|SUBCOMMANDS|FLAGS|COMMANDS|SHELL|STARTUP)\b", lambda m: parts[m[1]], _COMPLETION
    )
    load = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
    return (load if shell == "zsh" else "") + script.rstrip("\n")


def _cases(entries: Iterable[tuple[str, Sequence[str]]]) -> str:
    return "\n".join(f'{label}) found="{" ".join(words)}" ;;' for label, words in entries)

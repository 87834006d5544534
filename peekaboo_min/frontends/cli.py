"""The shell's entry point: parser, JSON envelope, main()."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Optional

from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.log import collect_debug_lines, log_debug, log_error
from ..core.models import Result
from ..core.version import VERSION
from ..system.files import sweep
from ..system.process import end_cleanly_on_signals
from ..system.resources import how_to_install
from .commands import COMMANDS
from .results import outgoing_data
from .signatures import Parameter, Signature, check_numbers, read_signature

PROGRAM = "peekaboo-min"
_JSON_FLAGS = ("--json-output", "--json", "-j")
_HELP_FLAGS = ("-h", "--help")
_SHIELD = "\x1f"  # no argument begins with it, and argparse takes what does for a value
_VALUE_CAP = 20_000_000  # characters of one value of the data
_LOOKS_LIKE_NUMBER = re.compile(r"-(\d|\.\d|inf|nan)", re.I)


@dataclass(frozen=True)
class CommandLine:
    """The arguments without the JSON flags; a help flag is still in its place: it may be a text to type."""

    arguments: list[str]
    wants_json: bool


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run one command, or serve MCP when there is none; return the exit code."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # a closed one is None
        stream.reconfigure(encoding="utf-8", errors="replace")
    end_cleanly_on_signals()
    line = _read_line(sys.argv[1:] if argv is None else argv)
    if not line.arguments and not line.wants_json:
        return _serve()
    debug_lines = collect_debug_lines()
    try:
        result = run_command(line)
    except PeekabooError as e:
        return _print_error(e, line, debug_lines)
    except Exception as e:
        if not line.wants_json:
            raise  # a bug: the traceback is what its finder needs
        log_error(f"unexpected {type(e).__name__}: {e}", with_traceback=True)
        return _print_error(
            PeekabooError(ErrorCode.INTERNAL_ERROR, f"{type(e).__name__}: {e}"), line, debug_lines
        )
    return _print_result(result, line, debug_lines)


def _print_result(result: Result, line: CommandLine, debug_lines: list[str]) -> int:
    code = result.failure.code.exit_code if result.failure else result.exit_code
    if line.wants_json:
        data, cut = outgoing_data(result.data, _VALUE_CAP)
        messages = [*result.messages, *(f"{name} was cut: it was too large" for name in cut)]
        envelope = {"success": not result.failure, "data": data, "messages": messages}
        if result.failure:
            envelope["error"] = _error_data(result.failure)
        return _print(_as_json(envelope, debug_lines), sys.stdout, code)
    if result.text or not result.stderr:
        code = _print(result.text, sys.stdout, code)
    notes = [f"note: {message}" for message in result.messages]
    if result.failure:
        notes.append(f"{PROGRAM}: {result.failure.sentence()}")
    written = "\n".join(filter(None, [result.stderr.rstrip("\n"), *notes]))
    return _print(written, sys.stderr, code) if written else code


def _read_line(arguments: Sequence[str]) -> CommandLine:
    """What follows `--` is not a flag."""
    arguments = [_as_utf8(argument) for argument in arguments]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    others = [argument for argument in arguments[:end] if argument not in _JSON_FLAGS]
    return CommandLine(others + arguments[end:], wants_json=len(others) < end)


def _as_utf8(argument: str) -> str:
    """The argument that was typed, where an ASCII locale made Python decode its bytes one by one."""
    try:
        return os.fsencode(argument).decode("utf-8") if not argument.isascii() else argument
    except UnicodeError:
        return argument


def _print_error(error: PeekabooError, line: CommandLine, debug_lines: list[str]) -> int:
    code = error.code.exit_code
    if line.wants_json:
        envelope = {"success": False, "error": _error_data(error)}
        return _print(_as_json(envelope, debug_lines), sys.stdout, code)
    details = f"\n{textwrap.indent(error.details, '  ')}" if error.details else ""
    return _print(f"{PROGRAM}: {error.sentence()}{details}", sys.stderr, code)


def _error_data(error: PeekabooError) -> dict[str, Any]:
    data = {"code": error.code_name, "message": error.sentence(), "details": error.details}
    return outgoing_data(data, _VALUE_CAP)[0]


def _as_json(envelope: dict[str, Any], debug_lines: list[str]) -> str:
    logs = outgoing_data({"debug_logs": list(debug_lines)}, _VALUE_CAP)[0]
    return json.dumps({**envelope, **logs}, ensure_ascii=False, allow_nan=False, indent=2)


def _print(text: str, stream: Any, code: int) -> int:
    try:
        if stream is not None:
            print(text, file=stream, flush=True)
    except OSError as e:
        # nothing may be flushed at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(e, BrokenPipeError):  # the reader has enough, as `head` does
            return (
                _print(f"{PROGRAM}: the answer could not be written: {e.strerror}", sys.stderr, 1)
                if stream is sys.stdout
                else 1
            )
    return code


def _serve() -> int:
    try:
        from .server import serve

        return serve()
    except ModuleNotFoundError as e:
        if (e.name or "").split(".")[0] not in ("mcp", "pydantic"):
            raise
        print(_how_to_serve(), file=sys.stderr)
        return 2


def _how_to_serve() -> str:
    need = "Python 3.10 or newer and " if sys.version_info < (3, 10) else ""
    problem = f"serving MCP needs {need}the package mcp: {how_to_install()}"
    return f"{PROGRAM}: {problem}; for commands see {PROGRAM} --help"


def run_command(line: CommandLine) -> Result:
    """The result of one command line. Raises PeekabooError."""
    arguments = line.arguments
    if arguments[:1] == ["--version"]:
        return Result(VERSION, {"version": VERSION})
    wants_help = arguments[:1] == ["help"]
    if wants_help:
        arguments = arguments[1:]
    while arguments[:1] and arguments[0] in _HELP_FLAGS:
        wants_help, arguments = True, arguments[1:]
    name = _command_name(arguments)
    given = arguments[len(name.split()) :]
    signature = read_signature(COMMANDS[name]) if name in COMMANDS else None
    wants_help = wants_help or _asks_for_help(given, signature)
    if signature is None:
        if not wants_help:
            raise _unknown_command(arguments)
        return _help(overview(name))
    parser = CommandParser(name, signature)
    if wants_help:
        return _help(parser.format_help())
    values = parser.read(given)
    try:
        sweep()
    except PeekabooError as e:
        log_debug(f"expired files could not be deleted: {e.message}")
    return COMMANDS[name](**values)


def _help(text: str) -> Result:
    return Result(text.rstrip(), {"help": text.rstrip()})


def _command_name(arguments: Sequence[str]) -> str:
    """The command, or the group such as `list`, that the arguments begin with. Raises INVALID_ARGUMENT."""
    for length in (2, 1):
        name = " ".join(arguments[:length])
        if name in COMMANDS:
            return name
    is_group = bool(arguments) and any(name.startswith(f"{arguments[0]} ") for name in COMMANDS)
    has_command = len(arguments) > is_group and arguments[int(is_group)] not in _HELP_FLAGS
    if has_command:
        raise _unknown_command(arguments)
    return arguments[0] if is_group else ""


def _asks_for_help(given: Sequence[str], signature: Optional[Signature]) -> bool:
    """Whether a help flag is among a command's arguments and is not its last text (`type 7 -h`)."""
    end = given.index("--") if "--" in given else len(given)
    positions = [number for number, argument in enumerate(given[:end]) if argument in _HELP_FLAGS]
    required = [each for each in signature.parameters if each.is_required] if signature else []
    if not positions or len(required) < 2 or required[-1].name != "text":
        return bool(positions)
    before = [argument for argument in given[: positions[0]] if not argument.startswith("--")]
    return len(before) != len(required) - 1


def _unknown_command(arguments: Sequence[str]) -> PeekabooError:
    group = arguments[0] if arguments else ""
    known = [name for name in COMMANDS if name.startswith(f"{group} ")]
    hint = f"the commands are {', '.join(known or dict.fromkeys(name.split()[0] for name in COMMANDS))}"
    if known and len(arguments) == 1:
        return invalid(f"`{group}` needs a subcommand", hint)
    name = " ".join(arguments[: 2 if known else 1])[:60]
    problem = f"there is no command {name!r}" if arguments else "no command was given"
    return invalid(problem, f"{hint}; see {PROGRAM} --help")


def overview(group: str = "") -> str:
    """All commands, a line each; only those of `group` where one is named."""
    width = max(map(len, COMMANDS)) + 2
    lines = [
        f"  {name:<{width}}{read_signature(function).summary.split('. ')[0].rstrip('.')}"
        for name, function in COMMANDS.items()
        if not group or name.split()[0] == group
    ]
    return "\n".join(
        [
            f"usage: {PROGRAM} COMMAND ... [--json-output]",
            "",
            "Eyes and hands on this desktop: list windows, take screenshots of them, click and type by the "
            "screenshot.",
            f"Without a command it serves MCP on stdio. {PROGRAM} COMMAND --help explains one, with an "
            "example.",
            "",
            *lines,
            "",
            "  --json-output, --json, -j   exactly one JSON document on stdout: success, data or error, "
            "debug_logs",
            "  --version                   the version",
        ]
    )


class CommandParser(argparse.ArgumentParser):
    """One command's parser, made from its function's signature; bad input is a PeekabooError."""

    def __init__(self, name: str, signature: Signature) -> None:
        epilog = f"example:\n{textwrap.indent(signature.example, '  ')}" if signature.example else None
        super().__init__(
            prog=f"{PROGRAM} {name}",
            description=signature.description.replace("%", "%%"),
            epilog=epilog.replace("%", "%%") if epilog else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            add_help=False,
        )
        self._parameters = signature.parameters
        for parameter in self._parameters:
            self._add(parameter)
        self.add_argument(
            "--json-output", "--json", "-j", action="store_true", help="one JSON document on stdout"
        )

    def _add(self, parameter: Parameter) -> None:
        options: dict[str, Any] = {"help": parameter.help.replace("%", "%%")}
        if parameter.type_ is bool and parameter.default:
            self.add_argument(
                f"--no-{parameter.flag[2:]}", dest=parameter.name, action="store_false", **options
            )
        elif parameter.type_ is bool:
            self.add_argument(parameter.flag, dest=parameter.name, action="store_true", **options)
        elif parameter.is_required and parameter.is_list:
            self.add_argument(parameter.name, metavar=parameter.name.upper(), nargs="*", **options)
        elif parameter.is_positional:
            nargs = None if parameter.is_required else "?"
            self.add_argument(parameter.name, metavar=parameter.name.upper(), nargs=nargs, **options)
        else:
            metavar = "{" + ",".join(parameter.choices) + "}" if parameter.choices else parameter.name.upper()
            action = "append" if parameter.is_list else "store"
            self.add_argument(
                parameter.flag,
                dest=parameter.name,
                metavar=metavar,
                required=parameter.is_required,
                action=action,
                **options,
            )

    def error(self, message: str) -> NoReturn:
        raise invalid(f"{self.prog}: {message}", f"see {self.prog} --help")

    def read(self, arguments: list[str]) -> dict[str, Any]:
        """The arguments for the command's function. Raises INVALID_ARGUMENT."""
        values = vars(self.parse_args(self._shield(arguments)))
        return {each.name: self._convert(each, values[each.name]) for each in self._parameters}

    def _shield(self, arguments: list[str]) -> list[str]:
        """Mark the arguments that only look like flags: -5 as a number, `-hello` where a text is wanted."""
        flags = set(self._option_string_actions)
        takes_text = any(
            (each.is_required or each.is_positional) and each.type_ is str and not each.choices
            for each in self._parameters
        )
        end = arguments.index("--") if "--" in arguments else len(arguments)
        shielded = [
            _SHIELD + argument
            if argument.startswith("-")
            and argument.split("=")[0] not in flags
            and (
                _LOOKS_LIKE_NUMBER.match(argument)
                or argument in _HELP_FLAGS
                or (takes_text and not argument.startswith("--"))
            )
            else argument
            for argument in arguments[:end]
        ]
        return shielded + arguments[end:]

    def _convert(self, parameter: Parameter, value: Any) -> Any:
        if value is None or isinstance(value, bool):
            return parameter.default if value is None else value
        if not parameter.is_list:
            return self._convert_one(parameter, _unshielded(value))
        texts = [_unshielded(text) for text in value]
        if not parameter.is_required:  # a flag takes several, with commas between them
            texts = [part.strip() for text in texts for part in text.split(",") if part.strip()]
        return [self._convert_one(parameter, text) for text in texts]

    def _convert_one(self, parameter: Parameter, text: str) -> Any:
        if parameter.choices and text not in parameter.choices:
            self.error(f"{parameter.name}: {text[:40]!r} is not one of {', '.join(parameter.choices)}")
        if parameter.type_ not in (int, float):
            return text
        try:
            # window ids are often written the way X11 programs print them
            number = int(text, 0) if parameter.type_ is int else float(text)
        except ValueError:
            self.error(
                f"{parameter.name}: {text[:40]!r} is not a {'whole ' if parameter.type_ is int else ''}number"
            )
        if isinstance(number, float) and not math.isfinite(number):
            self.error(f"{parameter.name}: {text[:40]!r} is not a number")
        check_numbers(parameter.name, number)
        return number


def _unshielded(text: str) -> str:
    return text[len(_SHIELD) :] if text.startswith(_SHIELD) else text

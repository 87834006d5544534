"""The shell's entry point: dispatch, help, JSON envelope, main()."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, Callable, NoReturn, Optional, Union

from .. import __version__
from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.log import collected_debug_lines, log_error
from ..core.models import Result
from ..core.text import shown_text
from ..desktop.matching import window_named
from ..desktop.select import this_desktop
from ..system.ending import end_cleanly_on_signals
from ..system.files import new_temporary_path
from ..system.programs import how_to_install
from .arguments import (
    HELP_FLAGS,
    JSON_FLAGS,
    PROGRAM,
    HelpParser,
    command_parser,
    read_signature,
    shell_arguments,
)
from .results import outgoing_data
from .tools import COMMAND_FOR_TOOL, COMMANDS, TOOLS, in_shell_names, load_function

_PURPOSE = (
    "Eyes and hands on this desktop: list windows, take screenshots of them, click by the pixels of a "
    "screenshot, type. Without a command it serves MCP on stdio; `config` prints what your MCP client needs "
    "to start it, `doctor` checks that this machine has what is needed."
)


def start() -> NoReturn:
    """The process's own entry: what it changes of the process stands here, and not in main()."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # a closed one is None
        stream.reconfigure(encoding="utf-8", errors="replace")
    end_cleanly_on_signals()
    sys.exit(main())


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run one command, or serve MCP when there is none; return the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if not given:
        # a person sits at a terminal; a client's server has pipes
        is_person = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
        return _print(_help([]), sys.stdout, 0) if is_person else _serve()
    end = given.index("--") if "--" in given else len(given)  # what follows `--` is not a flag
    arguments = [argument for argument in given[:end] if argument not in JSON_FLAGS] + given[end:]
    wants_json = len(arguments) < len(given)
    with collected_debug_lines() as debug_lines:
        try:
            result = run_command(arguments, wants_json)
        except PeekabooError as e:
            result = Result("", failure=e)
        except Exception as e:
            if not wants_json:
                raise  # a bug: the traceback is what its finder needs
            log_error(f"unexpected {type(e).__name__}: {e}", exc_info=True)
            failure = PeekabooError(ErrorCode.INTERNAL_ERROR, f"{type(e).__name__}: {e}")
            result = Result("", failure=failure)
    code = result.failure.code.exit_code if result.failure else result.exit_code
    if wants_json:
        return _print(_envelope(result, debug_lines), sys.stdout, code)
    return _print_text(result, code)


def _envelope(result: Result, debug_lines: list[str]) -> str:
    """The one JSON document: data, the error, or both where a job failed after it had done something."""
    document: dict[str, Any] = {"success": not result.failure}
    if result.data or not result.failure:
        document.update(data=result.data, messages=result.messages)
    if result.failure:
        error = result.failure
        document["error"] = {"code": error.code_name, "message": error.sentence(), "details": error.details}
    document["debug_logs"] = debug_lines
    return json.dumps(outgoing_data(document), ensure_ascii=False, allow_nan=False, indent=2)


def _print_text(result: Result, code: int) -> int:
    """For people: no text from outside, such as a title, may command their terminal."""
    if result.stdout or result.text or not (result.stderr or result.failure):
        code = _print(result.stdout or shown_text(result.text), sys.stdout, code)
    notes = [f"note: {message}" for message in result.messages]
    if result.failure:
        notes.append(f"{PROGRAM}: {result.failure.sentence()}")
        notes += [f"  {line}" for line in result.failure.details.splitlines()]
    notes = list(filter(None, [result.stderr.rstrip("\n"), *notes]))
    return _print(shown_text("\n".join(notes)), sys.stderr, code) if notes else code


def _print(answer: Union[str, bytes], stream: Any, code: int) -> int:
    try:
        if stream is not None:
            if isinstance(answer, bytes):
                stream.buffer.write(answer)
            else:
                print(answer, file=stream)
            stream.flush()
    except OSError as e:
        # nothing may be flushed at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if isinstance(e, BrokenPipeError):
            return code  # the reader has enough, as `head` does
        if stream is sys.stdout:
            _print(f"{PROGRAM}: the output could not be written: {e.strerror}", sys.stderr, 1)
        return 1
    return code


def _serve() -> int:
    try:
        from .server import serve

        return serve()
    except ModuleNotFoundError as e:
        if (e.name or "").split(".")[0] not in ("mcp", "pydantic", "anyio"):
            raise
        need = "Python 3.10 or newer and " if sys.version_info < (3, 10) else ""
        problem = f"serving MCP needs {need}the package mcp: {how_to_install()}"
        print(f"{PROGRAM}: {problem}; for commands see {PROGRAM} --help", file=sys.stderr)
        return 2


def run_command(arguments: Sequence[str], wants_json: bool = False) -> Result:
    """The result of one command line. Raises PeekabooError."""
    if arguments[:1] in (["--version"], ["-V"], ["version"]):
        return Result(__version__, {"version": __version__})
    if arguments[:1] and arguments[0] in ("help", *HELP_FLAGS):
        text = _help(arguments[1:])
        return Result(text, {"help": text})
    for length in (1, 2):  # right after a command or a group: further on it may be a text
        if arguments[length : length + 1] and arguments[length] in HELP_FLAGS and _below(arguments[:length]):
            return run_command(["help", *arguments[:length]])
    name = _command_name(arguments)
    command = load_function(COMMANDS[name])
    values = shell_arguments(name, read_signature(command, True), arguments[len(name.split()) :])
    is_piped = "in_shell" in values and values.get("path") == "-"
    if is_piped and (wants_json or (sys.stdout and sys.stdout.isatty())):
        raise invalid("an image goes to stdout alone, and not to a terminal", "redirect it, without --json")
    note = ""
    if isinstance(values.get("window_id"), str):
        acts = name == "agent" or any(tool.acts for tool in TOOLS if tool.command == name)
        window = window_named(values["window_id"], this_desktop().snapshot(with_minimised=True), acts)
        values["window_id"] = window.window_id
        note = str(window)
    result = _piped(command, values) if is_piped else command(**values)
    return result._replace(messages=(note, *result.messages)) if note else result


def _piped(command: Callable[..., Result], values: dict[str, Any]) -> Result:
    """The result with the bytes of the one image for stdout, and no file. Raises INVALID_ARGUMENT."""
    if values.get("question") is not None:
        raise invalid("stdout cannot hold both an image and an answer", "give another --path")
    path = new_temporary_path("peekaboo", values.get("format") or "png")
    result = command(**{**values, "path": str(path)})
    images = []
    for saved in path.parent.glob(f"{path.stem}*"):
        images.append(saved.read_bytes())
        saved.unlink()
    if len(images) != 1:
        raise invalid(f"stdout takes one image, not {len(images)}", "name one screen or window, or a folder")
    return result._replace(stdout=images[0])


def _below(arguments: Sequence[str]) -> list[str]:
    """The command of this name, all of a group such as `list`, or all."""
    return [name for name in COMMANDS if f"{name} ".startswith(" ".join([*arguments, ""]))]


def _command_name(arguments: Sequence[str]) -> str:
    """The command that the arguments begin with. Raises INVALID_ARGUMENT."""
    for length in (2, 1):
        name = " ".join(arguments[:length])
        if name in COMMANDS:
            return name
    if not arguments:
        raise invalid("no command was given", f"see {PROGRAM} --help")
    if group := _below(arguments[:1]):
        raise invalid(f"`{arguments[0]}` needs a subcommand", f"the commands are {', '.join(group)}")
    from difflib import get_close_matches  # only a wrong name needs it

    nearest = [COMMAND_FOR_TOOL[name]] if name in COMMAND_FOR_TOOL else get_close_matches(name, COMMANDS, 1)
    hint = f"did you mean {PROGRAM} {nearest[0]}?" if nearest else f"see {PROGRAM} --help"
    raise invalid(f"there is no command {name[:60]!r}", hint)


def _help(arguments: Sequence[str]) -> str:
    """Of a command, of a group such as `list`, or of all. Raises INVALID_ARGUMENT."""
    names = _below(arguments) or [_command_name(arguments)]
    if len(names) == 1:
        parser = command_parser(names[0], read_signature(load_function(COMMANDS[names[0]]), True))
        return in_shell_names(parser.format_help().rstrip())
    parser = HelpParser(PROGRAM, f"{PROGRAM} COMMAND ... [--json-output | --help]", _PURPOSE)
    commands = parser.add_argument_group("commands")
    for name in names:
        summary = read_signature(load_function(COMMANDS[name]), True).summary
        commands.add_argument(name, help=in_shell_names(re.split("[.:;] ", summary)[0].rstrip(".")))
    return parser.format_help().rstrip()

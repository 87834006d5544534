"""The shell's entry point: main(), dispatch, help, JSON envelope."""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any, Callable, NoReturn, Optional, Union

from .. import __version__
from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.log import collected_debug_lines
from ..core.models import Result
from ..core.settings import settings_with_env_file
from ..core.text import outgoing_data, shown_text
from ..desktop.matching import window_named
from ..desktop.select import this_desktop
from ..system.ending import end_cleanly_on_signals
from ..system.files import new_temporary_path
from ..tools.table import COMMANDS, TOOLS
from . import arguments
from .arguments import PROGRAM, read_signature

_PURPOSE = (
    "Eyes and hands on this desktop: list windows, take screenshots, click by the pixels of a screenshot, "
    "type. WINDOW is an id or a name. Without a command, serve MCP on stdio. `config` prints the "
    "configuration for your MCP client; `doctor` checks this machine."
)


def start() -> NoReturn:
    """Set up the process and run main(). Tests call main() alone."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None if it is closed
        stream.reconfigure(encoding="utf-8", errors="replace")
    end_cleanly_on_signals()
    sys.exit(main())


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run one command, or serve MCP without one; return the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if not given:
        # an MCP client connects pipes
        is_person = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
        if is_person:
            return _print(_help([]), sys.stdout, 0)
        from .serve import serve  # 30 ms that a command does not need

        return serve()
    end = arguments.options_end(given)
    command = [word for word in given[:end] if word not in arguments.JSON_FLAGS] + given[end:]
    wants_json = len(command) < len(given)
    with collected_debug_lines() as debug_lines:
        try:
            result = run_command(command, wants_json)
        except PeekabooError as e:
            result = Result("", failure=e)
        except Exception as e:
            if not wants_json:
                raise  # a bug: show the traceback
            message, hint = f"{type(e).__name__}: {e}", "please report this bug, with its details"
            failure = PeekabooError(ErrorCode.INTERNAL_ERROR, message, hint, traceback.format_exc())
            result = Result("", failure=failure)
    code = result.failure.code.exit_code if result.failure else result.exit_code
    if wants_json:
        return _print(_envelope(result, debug_lines), sys.stdout, code)
    return _print_text(result, code)


def _envelope(result: Result, debug_lines: list[str]) -> str:
    error = result.failure
    document: dict[str, Any] = {"success": not error}
    if result.data or not error:
        document.update(data=result.data, messages=result.messages)
    if error:
        document["error"] = {"code": error.code_name, "message": error.sentence(), "details": error.details}
    document["debug_logs"] = debug_lines
    return json.dumps(outgoing_data(document), ensure_ascii=False, allow_nan=False, indent=2)


def _print_text(result: Result, code: int) -> int:
    if result.stdout is not None:
        code = _print(result.stdout, sys.stdout, code)
    elif result.text or not result.failure:
        code = _print(shown_text(result.text), sys.stdout, code)
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
        # keep Python from flushing it again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if isinstance(e, BrokenPipeError):
            return code  # the reader, such as `head`, has closed the pipe
        if stream is sys.stdout:
            _print(f"{PROGRAM}: the output could not be written: {e.strerror}", sys.stderr, 1)
        return 1
    return code


def run_command(argv: Sequence[str], wants_json: bool = False) -> Result:
    """Run one command line and return its result. Raises PeekabooError."""
    before_dashes = argv[: arguments.options_end(argv)]
    if argv[:1] == ["help"] or not set(arguments.HELP_FLAGS).isdisjoint(before_dashes):
        text = _help([word for word in before_dashes if word not in ("help", *arguments.HELP_FLAGS)])
        return Result(text, {"help": text})
    if argv[:1] == ["version"] or not set(arguments.VERSION_FLAGS).isdisjoint(before_dashes):
        return Result(__version__, {"version": __version__})
    name, rest = _command(argv)
    row = COMMANDS[name]
    function = row.load(for_shell=True)
    values = {**arguments.shell_arguments(name, read_signature(function), rest), **row.shell_values}
    if row.group == "keynote":  # the file may have SCREENSHOT_PATH and KEYNOTE_THEME
        settings_with_env_file()
    note = ""
    if isinstance(values.get("window_id"), str):
        scene = this_desktop().snapshot(with_minimised=True)
        window = window_named(values["window_id"], scene, row.effect.is_act)
        values["window_id"], note = window.window_id, str(window)
    if name in ("image", "screenshot") and values.get("path") == "-":
        result = _piped(function, values, wants_json)
    else:
        result = row.call(function, values)
    return result._replace(messages=(note, *result.messages)) if note else result


def _piped(function: Callable[..., Result], values: dict[str, Any], wants_json: bool) -> Result:
    """Run a command that saves one image; return its bytes for stdout. Raises INVALID_ARGUMENT."""
    if wants_json or (sys.stdout and sys.stdout.isatty()):
        hint = "redirect stdout, and omit --json"
        raise invalid("an image cannot be written to a terminal or together with JSON", hint)
    if values.get("question") is not None:
        raise invalid("stdout cannot carry both an image and an answer", "save the image as a file: --path")
    path = new_temporary_path("peekaboo", values.get("format") or "png")
    result = function(**{**values, "path": str(path)})
    images = []
    for saved in path.parent.glob(f"{path.stem}*"):
        images.append(saved.read_bytes())
        saved.unlink()
    if len(images) != 1:
        raise invalid(f"stdout takes one image, not {len(images)}", "name one screen or window, or a folder")
    return result._replace(stdout=images[0])


def _below(argv: Sequence[str]) -> list[str]:
    return [name for name in COMMANDS if f"{name} ".startswith(" ".join([*argv, ""]))]


def _command(argv: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the command's name and its arguments. Raises INVALID_ARGUMENT with the nearest name."""
    # the name of an MCP tool works, too, because help texts use these names
    for length in (2, 1):
        name = " ".join(argv[:length])
        if name in COMMANDS:
            return name, argv[length:]
    if not argv:
        raise invalid("no command was given", f"see {PROGRAM} --help")
    if name in TOOLS and TOOLS[name].command:
        return TOOLS[name].command, argv[1:]
    from difflib import get_close_matches  # slow to import

    group = _below(argv[:1])
    given = " ".join(argv[: 2 if group else 1])
    is_incomplete = bool(group) and len(argv) == 1
    problem = f"`{given}` needs a subcommand" if is_incomplete else f"there is no command {given[:60]!r}"
    nearest = get_close_matches(given, group or COMMANDS, 1, 0.75)  # 0.6 takes `list foo` for `list windows`
    hint = f"did you mean {PROGRAM} {nearest[0]}? " if nearest else ""
    hint += f"the commands are {', '.join(group)}" if group else f"see {PROGRAM} --help"
    if given in ("serve", "server", "mcp", "start"):
        hint = f"to serve MCP on stdio, run {PROGRAM} without a command"
    raise invalid(problem, hint)


def _help(argv: Sequence[str]) -> str:
    names = _below(argv[:2]) or _below(argv[:1]) or [_command(argv)[0]]
    if len(names) == 1 or names[0] == " ".join(argv):  # `permissions`, not `permissions check`
        signature = read_signature(COMMANDS[names[0]].load(for_shell=True))
        return arguments.command_parser(names[0], signature).format_help().rstrip()
    usage = f"{PROGRAM} COMMAND ... [--json-output | --help | --version]"
    parser = arguments.HelpParser(PROGRAM, usage, _PURPOSE)
    commands = parser.add_argument_group("commands")
    for name in names:
        summary = read_signature(COMMANDS[name].load(for_shell=True)).summary
        commands.add_argument(name, help=re.split("[.:;] ", summary)[0].rstrip("."))
    return parser.format_help().rstrip()

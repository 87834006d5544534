"""The shell's entry point: dispatch, help, JSON envelope, main()."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Callable, NoReturn, Optional, Union

from .. import __version__
from ..core.cancellation import use_progress_reporter
from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.log import collected_debug_lines, log_debug, log_error
from ..core.models import Result
from ..core.text import clean_text
from ..system.files import new_temporary_path, sweep
from ..system.process import end_cleanly_on_signals
from ..system.programs import how_to_install
from .arguments import HELP_FLAGS, HelpParser, command_help, read_signature, shell_arguments
from .commands import COMMANDS, GROUPS, JSON_FLAGS, PROGRAM, command_for_tool, in_shell_names
from .results import outgoing_data

_VALUE_CAP = 20_000_000  # characters of one value of the data
_SHOW_AFTER_S, _SHOW_EVERY_S = 2.0, 0.5
_SHOW_THEIR_OWN = ("agent", "keynote-agent", "gmail-login")  # they write lines to stderr as they go on
_PURPOSE = (
    "Eyes and hands on this desktop: list windows, take screenshots of them, click by the pixels of a "
    "screenshot, type. Without a command it serves MCP on stdio."
)
_INTRODUCTION = f"""\
{PROGRAM} gives AI agents eyes and hands on this desktop. Without a command it
is an MCP server on stdin and stdout, which your MCP client starts; in a
terminal, type:

  {PROGRAM} doctor                   checks that this machine has what is needed
  {PROGRAM} windows                  lists the windows that are open
  {PROGRAM} image --path screen.png  takes a screenshot
  {PROGRAM} config CLIENT            prints what your MCP client needs to start it
  {PROGRAM} --help                   lists all commands"""


def start() -> NoReturn:
    """The process's own entry: what it changes of the process stands here, and not in main()."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # a closed one is None
        stream.reconfigure(encoding="utf-8", errors="replace")
    end_cleanly_on_signals()
    sys.exit(main())


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run one command, or serve MCP when there is none; return the exit code."""
    given = [_as_utf8(argument) for argument in (sys.argv[1:] if argv is None else argv)]
    end = given.index("--") if "--" in given else len(given)  # what follows `--` is not a flag
    arguments = [each for each in given[:end] if each not in JSON_FLAGS] + given[end:]
    wants_json = len(arguments) < len(given)
    if not given:
        return _print(_INTRODUCTION, sys.stdout, 0) if _is_person() else _serve()
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
        data, cut = outgoing_data(result.data, _VALUE_CAP)
        document["data"] = data
        document["messages"] = [*result.messages, *(f"{name} was cut: it was too large" for name in cut)]
    if result.failure:
        error = result.failure
        document["error"] = {"code": error.code_name, "message": error.sentence(), "details": error.details}
    document["debug_logs"] = list(debug_lines)
    rest = {name: value for name, value in document.items() if name != "data"}
    document.update(outgoing_data(rest, _VALUE_CAP)[0])
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)


def _print_text(result: Result, code: int) -> int:
    if result.stdout or result.text or not (result.stderr or result.failure):
        code = _print(result.stdout or result.text, sys.stdout, code)
    notes = [f"note: {message}" for message in result.messages]
    if result.failure:
        notes.append(f"{PROGRAM}: {result.failure.sentence()}")
        notes += [f"  {line}" for line in result.failure.details.splitlines()]
    written = "\n".join(filter(None, [result.stderr.rstrip("\n"), *notes]))
    return _print(written, sys.stderr, code) if written else code


def _as_utf8(argument: str) -> str:
    """The argument that was typed, where an ASCII locale made Python decode its bytes one by one."""
    try:
        return os.fsencode(argument).decode("utf-8") if not argument.isascii() else argument
    except UnicodeError:
        return argument


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


@contextmanager
def _progress(command: str) -> Iterator[None]:
    """On a terminal a line on stderr says what is being done, once that takes two seconds."""
    if sys.stderr is None or not sys.stderr.isatty() or command in _SHOW_THEIR_OWN:
        yield
        return
    reports = [command]
    has_ended = threading.Event()
    use_progress_reporter(reports.append)
    started = time.monotonic()

    def show() -> None:
        wait_s = _SHOW_AFTER_S
        while not has_ended.wait(wait_s):
            wait_s = _SHOW_EVERY_S
            line = f"{clean_text(reports[-1], 60)} ({time.monotonic() - started:.0f} s)"
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        if wait_s != _SHOW_AFTER_S:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()


def _is_person() -> bool:
    """Whether somebody sits at a terminal: a client's server has pipes."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _serve() -> int:
    try:
        from .server import serve

        return serve()
    except ModuleNotFoundError as e:
        if (e.name or "").split(".")[0] not in ("mcp", "pydantic"):
            raise
        need = "Python 3.10 or newer and " if sys.version_info < (3, 10) else ""
        problem = f"serving MCP needs {need}the package mcp: {how_to_install()}"
        print(f"{PROGRAM}: {problem}; for commands see {PROGRAM} --help", file=sys.stderr)
        return 2


def run_command(arguments: Sequence[str], wants_json: bool = False) -> Result:
    """The result of one command line. Raises PeekabooError."""
    if arguments[:1] in (["--version"], ["-V"], ["version"]):
        return Result(__version__, {"version": __version__})
    if asked := _help_asked(arguments):
        text = _help([each for each in asked if each not in ("help", *HELP_FLAGS)])
        return Result(text, {"help": text})
    name = _command_name(arguments)
    command = COMMANDS[name]
    values = shell_arguments(name, read_signature(command, True), arguments[len(name.split()) :])
    is_piped = "in_shell" in values and values.get("path") == "-"
    if is_piped and (wants_json or (sys.stdout and sys.stdout.isatty())):
        raise invalid("an image goes to stdout alone, and not to a terminal", "redirect it, without --json")
    try:
        sweep()
    except PeekabooError as e:
        log_debug(f"expired files could not be deleted: {e.message}")
    with _progress(name):
        return _piped(command, values) if is_piped else command(**values)


def _piped(command: Callable[..., Result], values: dict[str, Any]) -> Result:
    """The result with the bytes of the one image for stdout, and no file. Raises INVALID_ARGUMENT."""
    if values.get("question") is not None:
        raise invalid("stdout cannot hold both an image and an answer", "give another --path")
    path = new_temporary_path("peekaboo", values.get("format", "png"))
    result = command(**{**values, "path": str(path)})
    images = []
    for saved in path.parent.glob(f"{path.stem}*"):
        images.append(saved.read_bytes())
        saved.unlink()
    if len(images) != 1:
        raise invalid(f"stdout takes one image, not {len(images)}", "name one screen or window, or a folder")
    return result._replace(stdout=images[0])


def _command_name(arguments: Sequence[str]) -> str:
    """The command that the arguments begin with. Raises INVALID_ARGUMENT."""
    for length in (2, 1):
        name = " ".join(arguments[:length])
        if name in COMMANDS:
            return name
    group = arguments[0] if arguments else ""
    known = [name for name in COMMANDS if name.startswith(f"{group} ")]
    hint = f"the commands are {', '.join(known or dict.fromkeys(name.split()[0] for name in COMMANDS))}"
    if known and len(arguments) == 1:
        raise invalid(f"`{group}` needs a subcommand", hint)
    name = " ".join(arguments[: 2 if known else 1])[:60]
    nearest = command_for_tool(name) or next(iter(get_close_matches(name, COMMANDS, 1)), "")
    if nearest and not known:
        hint = f"did you mean {PROGRAM} {nearest}?"
    problem = f"there is no command {name!r}" if arguments else "no command was given"
    raise invalid(problem, f"{hint}; see {PROGRAM} --help")


def _help_asked(arguments: Sequence[str]) -> Sequence[str]:
    """The arguments where help is asked, before a command or right after it: further on it may be a text."""
    if arguments[:1] and arguments[0] in ("help", *HELP_FLAGS):
        return arguments
    at = next((place for place, argument in enumerate(arguments) if argument in HELP_FLAGS), 0)
    name = " ".join(arguments[:at])
    return arguments[:at] if at and any(f"{known} ".startswith(f"{name} ") for known in COMMANDS) else ()


def _help(arguments: Sequence[str]) -> str:
    """Of a command, of a group such as `list`, or of all. Raises INVALID_ARGUMENT."""
    group = arguments[0] if len(arguments) == 1 and arguments[0] not in COMMANDS else ""
    if not arguments or any(name.startswith(f"{group} ") for name in COMMANDS):
        return _overview(group)
    name = _command_name(arguments)
    return command_help(name, read_signature(COMMANDS[name], True))


def _overview(group: str) -> str:
    """All commands by what they are for, a line each; only those of `group` where one is named."""
    parser = HelpParser(PROGRAM, f"{PROGRAM} COMMAND ... [--json-output]", _PURPOSE)
    for title, names in GROUPS.items():
        section = parser.add_argument_group(title)
        for name in names:
            if not group or name.split()[0] == group:
                section.add_argument(name, help=_first_sentence(name))
    also = parser.add_argument_group("also")
    also.add_argument("flags", metavar=", ".join(JSON_FLAGS), help="one JSON document on stdout")
    also.add_argument("help", metavar="COMMAND --help", help="a command's arguments, with an example")
    also.add_argument("version", metavar="version, --version, -V", help="the version")
    return parser.format_help().rstrip()


def _first_sentence(name: str) -> str:
    summary = read_signature(COMMANDS[name], True).summary
    return in_shell_names(re.split("[.:;] ", summary)[0].rstrip("."))

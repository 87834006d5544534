"""The shell's entry point: dispatch, help, JSON envelope, main()."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, Optional, Union

from ..core.cancellation import use_progress_reporter
from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.log import collect_debug_lines, log_debug, log_error
from ..core.models import Result
from ..core.text import clean_text
from ..core.version import VERSION
from ..system.files import sweep
from ..system.process import end_cleanly_on_signals
from ..system.resources import how_to_install
from .commands import COMMANDS, JSON_FLAGS, PROGRAM, command_for_tool
from .results import outgoing_data
from .signatures import HELP_FLAGS, Signature, read_signature, shell_arguments

_VALUE_CAP = 20_000_000  # characters of one value of the data
_SHOW_AFTER_S, _SHOW_EVERY_S = 2.0, 0.5
_SHOW_THEIR_OWN = ("agent", "keynote-agent", "gmail-login")  # they write lines to stderr as they go on


def run() -> NoReturn:
    """main() for a process of its own, which imported us with garbage collection off."""
    code = main()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    os._exit(code)  # what Python takes apart at its end costs a fifth of a command's time


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run one command, or serve MCP when there is none; return the exit code."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # a closed one is None
        stream.reconfigure(encoding="utf-8", errors="replace")
    end_cleanly_on_signals()
    given = [_as_utf8(argument) for argument in (sys.argv[1:] if argv is None else argv)]
    end = given.index("--") if "--" in given else len(given)  # what follows `--` is not a flag
    # a help flag stays in its place: it may be a text to type
    arguments = [each for each in given[:end] if each not in JSON_FLAGS] + given[end:]
    wants_json = len(arguments) < len(given)
    if not given:
        return _introduce() if _is_person() else _serve()
    debug_lines = collect_debug_lines()
    try:
        result = run_command(arguments, wants_json)
    except PeekabooError as e:
        result = Result("", failure=e)
    except Exception as e:
        if not wants_json:
            raise  # a bug: the traceback is what its finder needs
        log_error(f"unexpected {type(e).__name__}: {e}", with_traceback=True)
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


def _introduce() -> int:
    from .help import introduction

    return _print(introduction(), sys.stdout, 0)


def _collect_garbage() -> None:
    gc.freeze()  # what is loaded by now stays
    gc.enable()


def _serve() -> int:
    _collect_garbage()
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


def run_command(arguments: Sequence[str], wants_json: bool = False) -> Result:
    """The result of one command line. Raises PeekabooError."""
    if arguments[:1] in (["--version"], ["-V"], ["version"]):
        return Result(VERSION, {"version": VERSION})
    wants_help = arguments[:1] == ["help"]
    if wants_help:
        arguments = arguments[1:]
    while arguments[:1] and arguments[0] in HELP_FLAGS:
        wants_help, arguments = True, arguments[1:]
    name = _command_name(arguments)
    given = arguments[len(name.split()) :]
    signature = read_signature(COMMANDS[name]) if name in COMMANDS else None
    wants_help = wants_help or _asks_for_help(given, signature)
    if wants_help:
        from .help import command_help, overview  # only help needs it

        text = command_help(name, signature) if signature else overview(name)
        return Result(text, {"help": text})
    if signature is None:
        raise _unknown_command(arguments)
    try:
        values = shell_arguments(signature.parameters, given, f"{PROGRAM} {name}")
    except PeekabooError as e:
        raise invalid(e.message, f"{e.hint}; see {PROGRAM} {name} --help") from e
    try:
        sweep()
    except PeekabooError as e:
        log_debug(f"expired files could not be deleted: {e.message}")
    function = COMMANDS[name]
    _collect_garbage()
    with _progress(name):
        result = function(**values)
    if result.stdout and (wants_json or (sys.stdout and sys.stdout.isatty())):
        raise invalid("an image goes to stdout alone, and not to a terminal", "redirect it, without --json")
    return result


def _command_name(arguments: Sequence[str]) -> str:
    """The command, or the group such as `list`, that the arguments begin with. Raises INVALID_ARGUMENT."""
    for length in (2, 1):
        name = " ".join(arguments[:length])
        if name in COMMANDS:
            return name
    is_group = bool(arguments) and any(name.startswith(f"{arguments[0]} ") for name in COMMANDS)
    has_command = len(arguments) > is_group and arguments[int(is_group)] not in HELP_FLAGS
    if has_command:
        raise _unknown_command(arguments)
    return arguments[0] if is_group else ""


def _asks_for_help(given: Sequence[str], signature: Optional[Signature]) -> bool:
    """Whether a help flag is among a command's arguments and is not its last text (`type 7 -h`)."""
    end = given.index("--") if "--" in given else len(given)
    positions = [number for number, argument in enumerate(given[:end]) if argument in HELP_FLAGS]
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
    from difflib import get_close_matches  # only a slip needs it

    nearest = command_for_tool(name) or next(iter(get_close_matches(name, COMMANDS, 1)), "")
    if nearest and not known:
        hint = f"did you mean {PROGRAM} {nearest}?"
    problem = f"there is no command {name!r}" if arguments else "no command was given"
    return invalid(problem, f"{hint}; see {PROGRAM} --help")

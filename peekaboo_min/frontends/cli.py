"""The shell's front door: parser, JSON envelope, main()."""

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

from ..core.errors import ErrorCode, PeekabooError
from ..core.log import collect_debug_lines, log_debug, log_error
from ..core.models import Result
from ..core.version import VERSION
from ..system.files import sweep
from ..system.process import end_cleanly_on_signals
from ..system.resources import how_to_install
from .commands import COMMANDS
from .signatures import Parameter, Signature, read_signature

PROGRAM = "peekaboo-min"
_JSON_FLAGS = ("--json-output", "--json", "-j")
_HELP_FLAGS = ("-h", "--help")
_SHIELD = "\x1f"  # no argument begins with it, and argparse takes what does for a value
_LOOKS_LIKE_NUMBER = re.compile(r"-(\d|\.\d|inf|nan)", re.I)


@dataclass(frozen=True)
class CommandLine:
    """What was typed, without the flags that every command has."""

    words: list[str]
    wants_json: bool
    wants_help: bool


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run one command, or serve MCP when there is none; return the exit code."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # a closed one is None
        stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    end_cleanly_on_signals()
    line = _read_line(sys.argv[1:] if argv is None else argv)
    if not line.words and not line.wants_help and not line.wants_json:
        return _serve()
    debug_lines = collect_debug_lines()
    try:
        result = run_command(line)
    except PeekabooError as e:
        return _say_error(e, line, debug_lines)
    except Exception as e:
        if not line.wants_json:
            raise  # a bug: the traceback is what its finder needs
        log_error(f"unexpected {type(e).__name__}: {e}", with_traceback=True)
        return _say_error(
            PeekabooError(ErrorCode.INTERNAL_ERROR, f"{type(e).__name__}: {e}"), line, debug_lines
        )
    if line.wants_json:
        envelope = {"success": True, "data": result.data, "messages": list(result.messages)}
        return _say(_as_json(envelope, debug_lines), sys.stdout, 0)
    code = _say(result.text, sys.stdout, 0)
    notes = "\n".join(f"note: {message}" for message in result.messages)
    return _say(notes, sys.stderr, code) if notes else code


def _read_line(words: Sequence[str]) -> CommandLine:
    """A word after `--` is nobody's flag."""
    words = [_as_utf8(word) for word in words]
    end = words.index("--") if "--" in words else len(words)
    flags = [word for word in words[:end] if word in (*_JSON_FLAGS, *_HELP_FLAGS)]
    return CommandLine(
        words=[word for word in words[:end] if word not in flags] + words[end:],
        wants_json=any(flag in _JSON_FLAGS for flag in flags),
        wants_help=any(flag in _HELP_FLAGS for flag in flags),
    )


def _as_utf8(word: str) -> str:
    """The word that was typed, where an ASCII locale made Python take it for bytes."""
    try:
        return os.fsencode(word).decode("utf-8") if not word.isascii() else word
    except UnicodeError:
        return word


def _say_error(error: PeekabooError, line: CommandLine, debug_lines: list[str]) -> int:
    code = error.code.exit_code
    if line.wants_json:
        told = {"code": error.code_name, "message": error.sentence(), "details": error.details}
        return _say(_as_json({"success": False, "error": told}, debug_lines), sys.stdout, code)
    details = f"\n{textwrap.indent(error.details, '  ')}" if error.details else ""
    return _say(f"{PROGRAM}: {error.sentence()}{details}", sys.stderr, code)


def _as_json(envelope: dict[str, Any], debug_lines: list[str]) -> str:
    return json.dumps({**envelope, "debug_logs": list(debug_lines)}, ensure_ascii=False, indent=2)


def _say(text: str, stream: Any, code: int) -> int:
    try:
        if stream is not None:
            print(text, file=stream, flush=True)
    except OSError as e:
        # nothing may be flushed at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(e, BrokenPipeError):  # whoever read us has enough, as `head` does
            return (
                _say(f"{PROGRAM}: the answer could not be written: {e.strerror}", sys.stderr, 1)
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
    return f"{PROGRAM}: serving MCP needs {need}the package mcp: {how_to_install()}; for commands see {PROGRAM} --help"


def run_command(line: CommandLine) -> Result:
    """The result of one command line. Raises PeekabooError."""
    words = line.words
    if words[:1] == ["--version"]:
        return Result(VERSION, {"version": VERSION})
    wants_help = line.wants_help or words[:1] == ["help"]
    words = words[1:] if words[:1] == ["help"] else words
    name, given = _find_command(words)
    if name is None:
        return _help(overview(words[0] if words else ""))
    parser = CommandParser(name, read_signature(COMMANDS[name]))
    if wants_help:
        return _help(parser.format_help())
    arguments = parser.read(given)
    try:
        sweep()
    except PeekabooError as e:
        log_debug(f"nothing was swept: {e.message}")
    return COMMANDS[name](**arguments)


def _help(text: str) -> Result:
    return Result(text.rstrip(), {"help": text.rstrip()})


def _find_command(words: Sequence[str]) -> tuple[Optional[str], list[str]]:
    """The command's name and its arguments; no name for a group such as `list`, or for nothing at all."""
    for length in (2, 1):
        name = " ".join(words[:length])
        if name in COMMANDS:
            return name, list(words[length:])
    groups = {name.split()[0] for name in COMMANDS if " " in name}
    if not words or (words[0] in groups and len(words) == 1):
        return None, []
    is_group = words[0] in groups
    known = (
        [name for name in COMMANDS if name.split()[0] == words[0]]
        if is_group
        else sorted({n.split()[0] for n in COMMANDS})
    )
    raise PeekabooError(
        ErrorCode.INVALID_ARGUMENT,
        f"there is no command {' '.join(words[: 2 if is_group else 1])[:60]!r}",
        hint=f"the commands are {', '.join(known)}; see {PROGRAM} --help",
    )


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
            "Eyes and hands on this desktop: list windows, photograph them, click and type by the photograph.",
            f"Without a command it serves MCP on stdio. {PROGRAM} COMMAND --help explains one, with an example.",
            "",
            *lines,
            "",
            "  --json-output, --json, -j   exactly one JSON document on stdout: success, data or error, debug_logs",
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
        self._own = signature.parameters
        for one in self._own:
            self._add(one)
        self.add_argument(
            "--json-output", "--json", "-j", action="store_true", help="one JSON document on stdout"
        )

    def _add(self, one: Parameter) -> None:
        words: dict[str, Any] = {"help": one.help.replace("%", "%%")}
        if one.type_ is bool and one.default:
            self.add_argument(f"--no-{one.flag[2:]}", dest=one.name, action="store_false", **words)
        elif one.type_ is bool:
            self.add_argument(one.flag, dest=one.name, action="store_true", **words)
        elif one.is_required and one.is_list:
            self.add_argument(one.name, metavar=one.name.upper(), nargs="*", **words)
        elif one.is_required and not one.is_keyword_only:
            self.add_argument(one.name, metavar=one.name.upper(), **words)
        else:
            metavar = "{" + ",".join(one.choices) + "}" if one.choices else one.name.upper()
            action = "append" if one.is_list else "store"
            self.add_argument(
                one.flag, dest=one.name, metavar=metavar, required=one.is_required, action=action, **words
            )

    def error(self, message: str) -> NoReturn:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, f"{self.prog}: {message}", hint=f"see {self.prog} --help"
        )

    def read(self, words: list[str]) -> dict[str, Any]:
        """The arguments for the command's function. Raises INVALID_ARGUMENT."""
        values = vars(self.parse_args(self._shield(words)))
        return {one.name: self._convert(one, values[one.name]) for one in self._own}

    def _shield(self, words: list[str]) -> list[str]:
        """Mark the words that only look like flags: -5 as a number, `-hello` where a text is wanted."""
        flags = set(self._option_string_actions)
        takes_text = any(one.is_required and one.type_ is str and not one.choices for one in self._own)
        end = words.index("--") if "--" in words else len(words)
        shielded = [
            _SHIELD + word
            if word.startswith("-")
            and word.split("=")[0] not in flags
            and (_LOOKS_LIKE_NUMBER.match(word) or (takes_text and not word.startswith("--")))
            else word
            for word in words[:end]
        ]
        return shielded + words[end:]

    def _convert(self, one: Parameter, value: Any) -> Any:
        if value is None or isinstance(value, bool):
            return one.default if value is None else value
        if not one.is_list:
            return self._convert_one(one, _unshielded(value))
        words = [_unshielded(word) for word in value]
        if not one.is_required:  # a flag takes several, with commas between them
            words = [part.strip() for word in words for part in word.split(",") if part.strip()]
        return [self._convert_one(one, word) for word in words]

    def _convert_one(self, one: Parameter, text: str) -> Any:
        if one.choices and text not in one.choices:
            self.error(f"{one.name}: {text[:40]!r} is none of {', '.join(one.choices)}")
        if one.type_ not in (int, float):
            return text
        try:
            # window ids are often written the way X11 programs print them
            number = int(text, 0) if one.type_ is int else float(text)
        except ValueError:
            self.error(f"{one.name}: {text[:40]!r} is not a {'whole ' if one.type_ is int else ''}number")
        if isinstance(number, float) and not math.isfinite(number):
            self.error(f"{one.name}: {text[:40]!r} is not a number")
        return number


def _unshielded(word: str) -> str:
    return word[len(_SHIELD) :] if word.startswith(_SHIELD) else word

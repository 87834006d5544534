"""Read a tool's parameters from its signature; parse shell arguments."""

from __future__ import annotations

import argparse
import inspect
import re
import shlex
import sys
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any, Callable, Literal, NamedTuple, NoReturn, Union, get_args, get_origin, get_type_hints

from ..core.errors import invalid
from ..core.text import parsed_json

PROGRAM = "peekaboo-min"
JSON_FLAGS = ("--json-output", "--json", "-j")
HELP_FLAGS = ("-h", "--help")
VERSION_FLAGS = ("-V", "--version")
JSON_KINDS = {str: "text", int: "whole number", float: "number", bool: "true or false"}
_NUMBER_OR_DASH = r"-(\d+|\d*\.\d+)?"
_WINDOW = "window_id"  # the shell also accepts a name of the window, and shows WINDOW
_COLUMNS = 79


class Parameter(NamedTuple):
    """One parameter of a tool."""

    name: str
    help: str
    type_: Any  # of a value, or of a list's item, without Optional
    annotation: Any  # the whole type, without the help text
    choices: tuple[str, ...]
    is_list: bool
    is_required: bool
    is_positional: bool  # the shell passes it without a flag; never true for a keyword-only parameter
    default: Any

    @property
    def flag(self) -> str:
        """Return the shell option: `--app-name` for appName, `--no-...` for a bool that defaults to True."""
        return _as_flag(("--no-" if self.type_ is bool and self.default else "--") + self.name)

    @property
    def label(self) -> str:
        """Return its name in usage lines and messages of the shell."""
        if not self.is_positional:
            return self.flag
        return "WINDOW" if self.name == _WINDOW else self.name.upper()


def _as_flag(text: str) -> str:
    return re.sub("([A-Z])", r"-\1", text.replace("_", "-")).lower()


class Signature(NamedTuple):
    """A function's help and parameters."""

    summary: str
    description: str
    example: str  # the text after `Example:` in the docstring
    parameters: tuple[Parameter, ...]

    @property
    def options(self) -> dict[str, Parameter]:
        """Return the parameters that are shell options, by their flags."""
        return {parameter.flag: parameter for parameter in self.parameters if not parameter.is_positional}


@cache
def read_signature(function: Callable[..., Any]) -> Signature:
    """Read a docstring and the parameters `Annotated[type, "help"]`; skip parameters without help."""
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters
    has_keywords = any(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters.values())
    description, _, example = inspect.cleandoc(function.__doc__ or "").partition("\n\nExample:")
    read = (_read_parameter(given, hints[name], has_keywords) for name, given in parameters.items())
    return Signature(
        summary=description.split("\n\n")[0].replace("\n", " "),
        description=description,
        example=example.strip(),
        parameters=tuple(filter(None, read)),
    )


def _read_parameter(parameter: inspect.Parameter, hint: Any, has_keywords: bool) -> Parameter | None:
    # Python 3.9 and 3.10 wrap `Annotated[str, ...] = None` in Optional
    annotated = next((inner for inner in (hint, _without_none(hint)) if hasattr(inner, "__metadata__")), None)
    if annotated is None:
        return None
    type_ = _without_none(annotated.__origin__)
    is_list = get_origin(type_) is list
    type_ = get_args(type_)[0] if is_list else type_
    choices: tuple[str, ...] = get_args(type_) if get_origin(type_) is Literal else ()
    is_required = parameter.default is parameter.empty
    # the help may be followed by the schema's default; the function's own, None, then means "not given"
    default = None if is_required else next(iter(annotated.__metadata__[1:]), parameter.default)
    return Parameter(
        name=parameter.name,
        help=" ".join(annotated.__metadata__[0].split()),
        type_=str if choices else type_,
        annotation=annotated.__origin__,
        choices=choices,
        is_list=is_list,
        is_required=is_required,
        is_positional=parameter.kind is not parameter.KEYWORD_ONLY and (is_required or has_keywords),
        default=default,
    )


def _without_none(hint: Any) -> Any:
    if get_origin(hint) is not Union:
        return hint
    return Union[tuple(choice for choice in get_args(hint) if choice is not type(None))]


def given_arguments(signature: Signature, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments: decode lists in JSON text (Claude Desktop), omit blanks (strict clients)."""
    given = dict(arguments)
    for parameter in signature.parameters:
        value = given.get(parameter.name)
        is_text = parameter.type_ is str and not parameter.is_list
        is_blank = value == "" and is_text and not parameter.choices
        is_zero = value == 0 and value is not False and parameter.type_ is int
        if (is_blank or is_zero) and not parameter.is_required and parameter.default is None:
            del given[parameter.name]
        elif isinstance(value, str) and not is_text and value[:1] in ("[", "{"):
            with suppress(ValueError):  # pydantic reports invalid JSON
                given[parameter.name] = parsed_json(value)
    return given


def checked_arguments(signature: Signature, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Check JSON values against a tool's parameters, and normalise them. Raises INVALID_ARGUMENT."""
    given = given_arguments(signature, arguments)
    given = {name: value for name, value in given.items() if value is not None}
    parameters = {parameter.name: parameter for parameter in signature.parameters}
    if unknown := [name for name in given if name not in parameters]:
        raise invalid(f"there is no parameter {unknown[0][:40]!r}", f"use {', '.join(parameters)}")
    for name, parameter in parameters.items():
        if name not in given and parameter.is_required:
            raise invalid(f"{name} is missing", parameter.help)
        if name in given:
            items = given[name] if parameter.is_list else [given[name]]
            if not isinstance(items, list) or not all(_is_value(parameter, item) for item in items):
                kind = f"a {'list of ' * parameter.is_list}{JSON_KINDS.get(parameter.type_, 'value')}"
                kind = f"one of {', '.join(parameter.choices)}" if parameter.choices else kind
                raise invalid(f"{name} is {given[name]!r:.60}, not {kind}", parameter.help)
    return given


def _is_value(parameter: Parameter, item: Any) -> bool:
    if parameter.choices:
        return item in parameter.choices
    if parameter.type_ is float:
        return type(item) in (int, float) and abs(item) <= sys.float_info.max
    return type(item) is parameter.type_  # isinstance would take True for a number


def options_end(arguments: Sequence[str]) -> int:
    """Return the index of `--`, or the number of arguments. Every argument after `--` is a text."""
    return arguments.index("--") if "--" in arguments else len(arguments)


def shell_arguments(name: str, signature: Signature, arguments: Sequence[str]) -> dict[str, Any]:
    """Return the keyword arguments for a command's function. Raises INVALID_ARGUMENT."""
    # give argparse only the options: it would take a text that begins with a dash for an option
    options, texts = _split(signature, arguments)
    parser = command_parser(name, signature)
    return {**vars(parser.parse_args(options)), **_positional_values(parser, signature, texts)}


def _split(signature: Signature, arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split arguments into options (`--flag`, `--option=value`) and texts. Raises INVALID_ARGUMENT."""
    known = signature.options
    end = options_end(arguments)
    options: list[str] = []
    texts: list[str] = []
    waiting = ""  # the option whose value comes next
    for argument in arguments[:end]:
        flag, equals, value = argument.partition("=")
        flag = _as_flag(flag)  # accept the wire name, too: `--appName`
        is_dashed = argument[:1] == "-" and not re.fullmatch(_NUMBER_OR_DASH, argument)
        if is_dashed and flag in known:
            options.append(flag + equals + value)
            waiting = "" if equals or known[flag].type_ is bool else flag
        elif is_dashed and waiting:
            raise invalid(f"the value of {waiting} begins with a dash", f"write {waiting}={argument[:40]}")
        elif is_dashed:
            raise invalid(f"{argument[:40]!r} is not an option", _similar_option(signature, flag))
        elif waiting:
            options[-1], waiting = f"{waiting}={argument}", ""
        else:
            texts.append(argument)
    return options, [*texts, *arguments[end + 1 :]]


def _positional_values(parser: HelpParser, signature: Signature, texts: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    missing = []
    left = list(texts)
    for parameter in (parameter for parameter in signature.parameters if parameter.is_positional):
        taken = left if parameter.is_list else left[:1]
        left = left[len(taken) :]
        try:
            items = [_item(parameter, text) for text in taken]
        except argparse.ArgumentTypeError as e:
            parser.error(f"argument {parameter.label}: {e}")
        if items:
            values[parameter.name] = items if parameter.is_list else items[0]
        elif parameter.is_required:
            missing.append(parameter.label)
    if missing:
        taken = [f"; {signature.parameters[0].label} is {text[:40]!r}" for text in texts[:1]]
        parser.error(f"the following arguments are required: {', '.join(missing)}{''.join(taken)}")
    if left:
        problem = f"{' '.join(left)[:80]!r} is left over; {_place_of(signature, left[0])}"
        raise invalid(problem, f"usage: {parser.usage}; see {parser.prog} --help")
    return values


def _similar_option(signature: Signature, flag: str) -> str:
    """Return a hint for an unknown option: the likely intention."""
    if meant := [known for known in signature.options if known.startswith(f"{flag}-")]:
        return f"did you mean {meant[0]}?"
    if flag in ("--app", "--window-id") and signature.parameters[0].name == _WINDOW:
        return "give the window's id or name without an option, as the first argument"
    names = ", ".join([*signature.options, JSON_FLAGS[0], HELP_FLAGS[-1]])
    return f"use one of {names}, or put -- before text that starts with -"


def _place_of(signature: Signature, text: str) -> str:
    """Return a hint for a text that no parameter takes: the likely intention."""
    likely = [flag for flag, parameter in signature.options.items() if parameter.is_required]
    likely += ["--goal", "--app"]
    if re.search(r"\.(png|jpe?g)$|/", text, re.I):
        likely.insert(0, "--path")
    for flag in likely:
        if flag in signature.options:
            return f"did you mean {flag} {shlex.quote(text[:40])}?"
    if any(parameter.is_positional for parameter in signature.parameters):
        return 'put a text of several words in quotes: "Sign the book"'
    return "this command takes only options"


class HelpParser(argparse.ArgumentParser):
    """An argument parser that raises INVALID_ARGUMENT; its help is 79 columns wide and keeps paragraphs."""

    def __init__(self, prog: str, usage: str, description: str, example: str = "") -> None:
        form: Any = partial(argparse.RawDescriptionHelpFormatter, max_help_position=26, width=_COLUMNS)
        fill = partial(textwrap.fill, width=_COLUMNS, break_on_hyphens=False)
        text = "\n\n".join(map(fill, description.split("\n\n")))
        epilog = f"example:\n{textwrap.indent(example, '  ')}" if example else None
        super().__init__(prog, usage, text, epilog, formatter_class=form, allow_abbrev=False, add_help=False)
        self.color = False  # Python 3.14 would write escape sequences, which are not printed

    def error(self, message: str) -> NoReturn:
        raise invalid(message[:200], f"usage: {self.usage}; see {self.prog} --help")


def command_parser(name: str, signature: Signature) -> HelpParser:
    """Return the parser for a command's options; its help shows all parameters and the example."""
    given = [p for p in signature.parameters if p.is_required or p.is_positional]
    names = [p.label if p.is_positional else f"{p.flag} {p.name.upper()}" for p in given]
    shown = [name if p.is_required else f"[{name}]" for p, name in zip(given, names)]
    usage = " ".join([PROGRAM, name, *shown, "[options]"])
    parser = HelpParser(f"{PROGRAM} {name}", usage, signature.description, signature.example)
    for parameter in signature.parameters:
        _add_argument(parser, parameter)
    for flags, text in ((JSON_FLAGS, "one JSON document on stdout"), (HELP_FLAGS, "show this help")):
        parser.add_argument(*flags, action="store_true", default=argparse.SUPPRESS, help=text)
    return parser


def _add_argument(parser: argparse.ArgumentParser, parameter: Parameter) -> None:
    choices = f"{{{','.join(parameter.choices)}}}" if parameter.choices else ""
    settings: dict[str, Any] = {"default": parameter.default, "help": parameter.help.replace("%", "%%")}
    if parameter.is_positional:
        settings["help"] = f"{choices} {settings['help']}".strip()
        # optional for argparse: shell_arguments assigns the positional values
        parser.add_argument(parameter.name, nargs="?", metavar=parameter.label, **settings)
        return
    if parameter.type_ is bool:
        settings["action"] = "store_false" if parameter.default else "store_true"
        if parameter.default:
            settings["help"] = f"sets to false: {settings['help']}"
    else:
        settings["type"] = partial(_value, parameter)
        settings["metavar"] = choices or parameter.name.upper()
    if parameter.is_list:
        settings["action"] = "extend"
    parser.add_argument(parameter.flag, dest=parameter.name, required=parameter.is_required, **settings)


def _value(parameter: Parameter, text: str) -> Any:
    """Convert an option's value. Items of a list are separated by commas, numbers also by spaces."""
    if not parameter.is_list:
        return _item(parameter, text)
    separator = "," if parameter.type_ is str else r"[,\s]"
    return [_item(parameter, part.strip()) for part in re.split(separator, text) if part.strip()]


def _item(parameter: Parameter, text: str) -> Any:
    if parameter.name == _WINDOW and not re.fullmatch(r"\s*[+-]?(\d+|0x[0-9a-f]+)\s*", text, re.I):
        return text  # its name
    with suppress(ValueError):
        if parameter.type_ is int:
            return int(text, 0)  # X11 programs print window ids in hexadecimal
        if parameter.type_ is float and abs(float(text)) <= sys.float_info.max:
            return float(text)
        if parameter.type_ is str and text in (parameter.choices or text):
            return text
    kinds = {int: "a whole number", float: "a number", str: f"one of {', '.join(parameter.choices)}"}
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is not {kinds[parameter.type_]}")

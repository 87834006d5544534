"""A tool's parameters, read from its signature, and the parser made of them."""

from __future__ import annotations

import argparse
import inspect
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from typing import (
    Any,
    Callable,
    Literal,
    NamedTuple,
    NoReturn,
    Optional,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from ..core.errors import invalid
from ..core.models import Offer
from .commands import JSON_FLAGS, PROGRAM, in_shell_names

# Strict clients send every parameter: these are 0 where a model means to leave them out.
_ZERO_MEANS_ABSENT = ("window_id", "max_dimension")
_LARGEST_NUMBER = 10**100  # str() refuses more than 4,300 digits
HELP_FLAGS = ("-h", "--help")
_NO_OPTION = r"-(\d+|\d*\.\d+)?"  # what argparse takes for a number, or for a text: `-`
_AFTER_DASHES = "\0"  # before each argument that follows `--`: no program can be given one with it
_COLUMNS = 79


class Parameter(NamedTuple):
    """One parameter; `type_` is that of its value, of a list that of its items, without Optional."""

    name: str
    help: str
    type_: Any
    annotation: Any
    """The whole type, Optional included, without the help text."""
    choices: tuple[str, ...]
    is_list: bool
    is_required: bool
    is_positional: bool
    """Without a flag on the command line: what is required, and what stands before keyword-only ones."""
    default: Any

    @property
    def flag(self) -> str:
        """As shells have it: `--app-name` for appName, `--no-...` for what is true unless it is given."""
        return self.prefix + re.sub("([A-Z])", r"-\1", self.name.replace("_", "-")).lower()

    @property
    def prefix(self) -> str:
        return "--no-" if self.type_ is bool and self.default else "--"


class Signature(NamedTuple):
    """A function's help and parameters, as one front end has them."""

    summary: str
    description: str
    example: str
    """What follows `Example:` in its docstring."""
    parameters: tuple[Parameter, ...]
    has_in_shell: bool
    """Whether it wants to be told that the shell calls it, by `in_shell=True`."""


@cache
def read_signature(function: Callable[..., Any], in_shell: bool = False) -> Signature:
    """The parameters of a function whose hints are `Annotated[type, "help"]`, and its docstring in parts.

    A parameter without a help text is for our own calls alone. An Offer as further metadata, and a paragraph
    of the docstring that begins with `In the shell: `, say what the shell has otherwise.
    """
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters
    has_keywords = any(each.kind is each.KEYWORD_ONLY for each in parameters.values())
    text, _, example = inspect.cleandoc(function.__doc__ or "").partition("\n\nExample:")
    description, _, shell_description = text.partition("\n\nIn the shell: ")
    if in_shell and shell_description:
        description = shell_description
    read = (_read_parameter(each, hints[each.name], has_keywords, in_shell) for each in parameters.values())
    return Signature(
        summary=description.split("\n\n")[0].replace("\n", " "),
        description=description,
        example=example.strip(),
        parameters=tuple(filter(None, read)),
        has_in_shell="in_shell" in parameters,
    )


def _read_parameter(
    parameter: inspect.Parameter, hint: Any, has_keywords: bool, in_shell: bool
) -> Optional[Parameter]:
    # Python 3.9 and 3.10 wrap `Annotated[str, ...] = None` into an Optional of their own: look inside it
    annotated = next((each for each in (hint, _without_none(hint)) if hasattr(each, "__metadata__")), None)
    if annotated is None:
        return None
    help_, offer = [*annotated.__metadata__, Offer()][:2]
    if offer.only == ("mcp" if in_shell else "shell"):
        return None
    annotation = annotated.__origin__
    type_ = _without_none(annotation)
    is_list = get_origin(type_) is list
    if is_list:
        type_ = get_args(type_)[0]
    choices: tuple[str, ...] = get_args(type_) if get_origin(type_) is Literal else ()
    if in_shell:
        # the usage line says what is required
        help_ = offer.shell_help or help_.removeprefix("Optional. ").removeprefix("Required. ")
        choices = (*choices, *offer.shell_choices)
    is_required = parameter.default is parameter.empty
    return Parameter(
        name=parameter.name,
        help=" ".join(help_.split()),
        type_=str if choices else type_,
        annotation=annotation,
        choices=choices,
        is_list=is_list,
        is_required=is_required,
        is_positional=parameter.kind is not parameter.KEYWORD_ONLY and (is_required or has_keywords),
        default=None if is_required else parameter.default,
    )


def _without_none(hint: Any) -> Any:
    if get_origin(hint) is Union:
        others: list[Any] = [choice for choice in get_args(hint) if choice is not type(None)]
        if len(others) < len(get_args(hint)):
            return others[0] if len(others) == 1 else Union[tuple(others)]
    return hint


# an MCP call's arguments ------------------------------------------------------------------------------------


def given_arguments(signature: Signature, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """An MCP call's arguments without those that mean "absent": "" for an optional text, 0 where
    _ZERO_MEANS_ABSENT.

    Raises INVALID_ARGUMENT for a number that is not finite, or of more digits than can be shown.
    """
    parameters = {parameter.name: parameter for parameter in signature.parameters}
    for name, value in arguments.items():
        _check_numbers(name, value)
    return {name: value for name, value in arguments.items() if not _is_absent(parameters.get(name), value)}


def _is_absent(parameter: Optional[Parameter], value: Any) -> bool:
    if parameter is None or parameter.is_required or parameter.default is not None:
        return False
    if value == "":
        return parameter.type_ is str and not parameter.choices and not parameter.is_list
    return type(value) in (int, float) and value == 0 and parameter.name in _ZERO_MEANS_ABSENT


def _check_numbers(name: str, value: Any) -> None:
    """Raises INVALID_ARGUMENT where `value` is, or holds, a number that cannot be handled."""
    if isinstance(value, dict):
        for key, item in value.items():
            _check_numbers(f"{name}.{key}", item)
    elif isinstance(value, list):
        for item in value:
            _check_numbers(name, item)
    elif isinstance(value, float) and not math.isfinite(value):
        raise invalid(
            f"{name[:80]}: NaN and infinity are no numbers that can be used", "give a finite number"
        )
    elif isinstance(value, int) and abs(value) > _LARGEST_NUMBER:
        raise invalid(f"{name[:80]}: the number has too many digits", "give a smaller number")


# a shell's arguments ----------------------------------------------------------------------------------------


def shell_arguments(name: str, signature: Signature, arguments: Sequence[str]) -> dict[str, Any]:
    """What the function of the command `name` is called with. Raises INVALID_ARGUMENT."""
    parser = _parser(name, signature)
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [each for each in signature.parameters if not each.is_positional]
    # by its wire name too: `--appName`, `--no-preferWindowId`
    flags = {flag: each.flag for each in options for flag in (each.flag, f"{each.prefix}{each.name}")}
    given: list[str] = []
    for argument in arguments[:end]:
        flag, equals, value = argument.partition("=")
        if argument[:1] == "-" and flag not in flags and not re.fullmatch(_NO_OPTION, argument):
            _refuse_option(argument, given[-1] if given else "", options)
        given.append(flags[flag] + equals + value if flag in flags else argument)
    given += [_AFTER_DASHES + argument for argument in arguments[end + 1 :]]
    values = vars(parser.parse_intermixed_args(given))
    return {**values, "in_shell": True} if signature.has_in_shell else values


def _refuse_option(argument: str, before: str, options: Sequence[Parameter]) -> NoReturn:
    if any(before == each.flag and each.type_ is not bool for each in options):
        raise invalid(f"the value of {before} begins with a dash", f"write {before}={argument[:40]}")
    known = ", ".join(each.flag for each in options)
    hint = f"put -- before it, where it is a text; the options are {known}" if known else "put -- before it"
    raise invalid(f"{argument[:40]!r} is not an option", hint)


def command_help(name: str, signature: Signature) -> str:
    """A command's arguments and options, with an example."""
    return _parser(name, signature).format_help().rstrip()


class HelpParser(argparse.ArgumentParser):
    """A parser whose help is 79 columns wide and keeps paragraphs, and whose errors are INVALID_ARGUMENT."""

    def __init__(self, prog: str, usage: str, description: str, example: str = "") -> None:
        epilog = f"example:\n{textwrap.indent(example, '  ')}" if example else None
        super().__init__(
            prog, usage, description, epilog, formatter_class=_Formatter, allow_abbrev=False, add_help=False
        )

    def error(self, message: str) -> NoReturn:
        raise invalid(message.replace(_AFTER_DASHES, "")[:200], f"see {self.prog} --help")


class _Formatter(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=_COLUMNS)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Paragraphs filled, an example's lines as they are: an address must stay whole, to be copied."""
        return "\n\n".join(
            part if part.startswith("example:") else textwrap.fill(part, width, break_on_hyphens=False)
            for part in text.split("\n\n")
        )


def _parser(name: str, signature: Signature) -> HelpParser:
    shown = [_shown(each) for each in signature.parameters if each.is_positional]
    required = [each for each in signature.parameters if each.is_required and not each.is_positional]
    shown += [f"{each.flag} {_shown(each)}" for each in required]
    usage = " ".join([PROGRAM, name, *shown, "[options]"])
    parser = HelpParser(f"{PROGRAM} {name}", usage, in_shell_names(signature.description), signature.example)
    for each in signature.parameters:
        _add_argument(parser, each)
    json_help = "one JSON document on stdout"
    parser.add_argument(*JSON_FLAGS, action="store_true", default=argparse.SUPPRESS, help=json_help)
    return parser


def _shown(parameter: Parameter) -> str:
    shown = parameter.name.upper() + (" ..." if parameter.is_list else "")
    return shown if parameter.is_required else f"[{shown}]"


def _add_argument(parser: argparse.ArgumentParser, parameter: Parameter) -> None:
    settings: dict[str, Any] = {"help": in_shell_names(parameter.help).replace("%", "%%")}
    if not parameter.is_required:
        settings["default"] = parameter.default
    if parameter.type_ is bool:
        if parameter.default:
            settings["help"] = f"sets to false: {settings['help']}"
        parser.add_argument(
            parameter.flag,
            dest=parameter.name,
            action="store_false" if parameter.default else "store_true",
            **settings,
        )
        return
    choices = f"{{{','.join(parameter.choices)}}}" if parameter.choices else ""
    settings["type"] = lambda text: _value(parameter, text.removeprefix(_AFTER_DASHES))
    settings["metavar"] = parameter.name.upper()
    if parameter.is_positional:
        settings["help"] = f"{choices} {settings['help']}".strip()
        settings["nargs"] = "+" if parameter.is_list else None if parameter.is_required else "?"
        parser.add_argument(parameter.name, **settings)
    else:
        settings["metavar"] = choices or settings["metavar"]
        if parameter.is_list:
            settings["action"] = "extend"
        parser.add_argument(parameter.flag, dest=parameter.name, required=parameter.is_required, **settings)


def _value(parameter: Parameter, text: str) -> Any:
    """The value of one argument; of a list's option several, with commas between, for numbers also spaces."""
    if not parameter.is_list or parameter.is_positional:
        return _item(parameter, text)
    between = "," if parameter.type_ is str else r"[,\s]"
    return [_item(parameter, part.strip()) for part in re.split(between, text) if part.strip()]


def _item(parameter: Parameter, text: str) -> Any:
    where = parameter.name.upper() if parameter.is_positional else parameter.flag
    if parameter.choices and text not in parameter.choices:
        raise invalid(
            f"{where}: {text[:40]!r} is not one of {', '.join(parameter.choices)}", "choose one of them"
        )
    if parameter.type_ not in (int, float):
        return text
    try:
        # window ids are often written the way X11 programs print them
        number = int(text, 0) if parameter.type_ is int else float(text)
        if isinstance(number, float) and not math.isfinite(number):
            raise ValueError
    except ValueError:
        kind = "a whole number" if parameter.type_ is int else "a number"
        raise invalid(f"{where}: {text[:40]!r} is not {kind}", in_shell_names(parameter.help)) from None
    _check_numbers(where, number)
    return number

"""A tool's parameters, read from its signature, and the parser made of them."""

from __future__ import annotations

import argparse
import inspect
import json
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any, Callable, Literal, NamedTuple, NoReturn, Union, get_args, get_origin, get_type_hints

from ..core.errors import invalid
from ..core.models import Offer

PROGRAM = "peekaboo-min"
JSON_FLAGS = ("--json-output", "--json", "-j")
HELP_FLAGS = ("-h", "--help")
_NO_OPTION = r"-(\d+|\d*\.\d+)?"  # what argparse takes for a number, or for a text: `-`
_AFTER_DASHES = "\0"  # before each argument that follows `--`: no program can be given one with it
_WINDOW = "window_id"  # which the shell takes as a name, too
_COLUMNS = 79


class Parameter(NamedTuple):
    """One parameter; `type_` is that of its value, of a list that of its items, without Optional."""

    name: str
    help: str
    type_: Any
    annotation: Any  # the whole type, Optional included, without the help text
    choices: tuple[str, ...]
    is_list: bool
    is_required: bool
    is_positional: bool
    """Without a flag on the command line: what is required, and what stands before keyword-only ones."""
    default: Any

    @property
    def flag(self) -> str:
        """As shells have it: `--app-name` for appName, `--no-...` for what is true unless it is given."""
        return _as_flag(("--no-" if self.type_ is bool and self.default else "--") + self.name)


def _as_flag(text: str) -> str:
    return re.sub("([A-Z])", r"-\1", text.replace("_", "-")).lower()


class Signature(NamedTuple):
    """A function's help and parameters, as one front end has them."""

    summary: str
    description: str
    example: str  # what follows `Example:` in its docstring
    parameters: tuple[Parameter, ...]
    has_in_shell: bool  # whether it wants to be told that the shell calls it, by `in_shell=True`


@cache
def read_signature(function: Callable[..., Any], in_shell: bool = False) -> Signature:
    """The parameters of a function whose hints are `Annotated[type, "help"]`, and its docstring in parts.

    A parameter without a help text is for our own calls alone. An Offer as further metadata, and a paragraph
    of the docstring that begins with `In the shell: `, say what the shell has otherwise.
    """
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters
    has_keywords = any(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters.values())
    text, _, example = inspect.cleandoc(function.__doc__ or "").partition("\n\nExample:")
    description, _, shell_description = text.partition("\n\nIn the shell: ")
    if in_shell and shell_description:
        description = shell_description
    read = (
        _read_parameter(parameter, hints[parameter.name], has_keywords, in_shell)
        for parameter in parameters.values()
    )
    return Signature(
        summary=description.split("\n\n")[0].replace("\n", " "),
        description=description,
        example=example.strip(),
        parameters=tuple(filter(None, read)),
        has_in_shell="in_shell" in parameters,
    )


def _read_parameter(
    parameter: inspect.Parameter, hint: Any, has_keywords: bool, in_shell: bool
) -> Parameter | None:
    # Python 3.9 and 3.10 wrap `Annotated[str, ...] = None` into an Optional of their own: look inside it
    annotated = next((inner for inner in (hint, _without_none(hint)) if hasattr(inner, "__metadata__")), None)
    if annotated is None:
        return None
    help_, offer = [*annotated.__metadata__, Offer()][:2]
    if offer.only == ("mcp" if in_shell else "shell"):
        return None
    type_ = _without_none(annotated.__origin__)
    is_list = get_origin(type_) is list
    type_ = get_args(type_)[0] if is_list else type_
    choices: tuple[str, ...] = get_args(type_) if get_origin(type_) is Literal else ()
    if in_shell:
        # the usage line says what is required
        help_ = f"{help_}, or its name" if parameter.name == _WINDOW else help_
        help_ = offer.shell_help or help_.removeprefix("Optional. ").removeprefix("Required. ")
        choices = (*choices, *offer.shell_choices)
    is_required = parameter.default is parameter.empty
    return Parameter(
        name=parameter.name,
        help=" ".join(help_.split()),
        type_=str if choices else type_,
        annotation=annotated.__origin__,
        choices=choices,
        is_list=is_list,
        is_required=is_required,
        is_positional=parameter.kind is not parameter.KEYWORD_ONLY and (is_required or has_keywords),
        default=None if is_required else parameter.default,
    )


def _without_none(hint: Any) -> Any:
    if get_origin(hint) is not Union:
        return hint
    return Union[tuple(choice for choice in get_args(hint) if choice is not type(None))]


def given_arguments(signature: Signature, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """An MCP call's arguments as they are meant: lists and objects that came as the text of their JSON (as
    Claude Desktop sends them), and without "" or 0 for what has no default (strict clients send everything).
    """
    given = dict(arguments)
    for parameter in signature.parameters:
        value = given.get(parameter.name)
        is_text = parameter.type_ is str and not parameter.is_list
        is_blank = value == "" and is_text and not parameter.choices
        is_zero = value == 0 and value is not False and parameter.type_ is int
        if (is_blank or is_zero) and not parameter.is_required and parameter.default is None:
            del given[parameter.name]
        elif isinstance(value, str) and not is_text and value[:1] in ("[", "{"):
            with suppress(ValueError):  # pydantic says what is wrong
                given[parameter.name] = json.loads(value)
    return given


def shell_arguments(name: str, signature: Signature, arguments: Sequence[str]) -> dict[str, Any]:
    """What the function of the command `name` is called with. Raises INVALID_ARGUMENT."""
    options = {parameter.flag: parameter for parameter in signature.parameters if not parameter.is_positional}
    end = arguments.index("--") if "--" in arguments else len(arguments)
    given: list[str] = []
    for argument in arguments[:end]:
        flag, equals, value = argument.partition("=")
        before = given[-1] if given else ""
        if argument[:1] != "-" or re.fullmatch(_NO_OPTION, argument):
            given.append(argument)
        elif _as_flag(flag) in options:  # by its wire name too: `--appName`
            given.append(_as_flag(flag) + equals + value)
        elif before in options and options[before].type_ is not bool:
            raise invalid(f"the value of {before} begins with a dash", f"write {before}={argument[:40]}")
        else:
            known = f"; the options are {', '.join(options)}" if options else ""
            raise invalid(f"{argument[:40]!r} is not an option", f"put -- before a text{known}")
    given += [_AFTER_DASHES + argument for argument in arguments[end + 1 :]]
    values = vars(command_parser(name, signature).parse_intermixed_args(given))
    return {**values, "in_shell": True} if signature.has_in_shell else values


class HelpParser(argparse.ArgumentParser):
    """A parser whose help is 79 columns wide and keeps paragraphs, and whose errors are INVALID_ARGUMENT."""

    def __init__(self, prog: str, usage: str, description: str, example: str = "") -> None:
        form: Any = partial(argparse.RawDescriptionHelpFormatter, max_help_position=26, width=_COLUMNS)
        fill = partial(textwrap.fill, width=_COLUMNS, break_on_hyphens=False)
        text = "\n\n".join(map(fill, description.split("\n\n")))
        epilog = f"example:\n{textwrap.indent(example, '  ')}" if example else None
        super().__init__(prog, usage, text, epilog, formatter_class=form, allow_abbrev=False, add_help=False)

    def error(self, message: str) -> NoReturn:
        raise invalid(message.replace(_AFTER_DASHES, "")[:200], f"see {self.prog} --help")


def command_parser(name: str, signature: Signature) -> HelpParser:
    """The parser of a command; its help shows the arguments and options, with an example."""
    given = [p for p in signature.parameters if p.is_required or p.is_positional]
    names = [p.name.upper() if p.is_required else f"[{p.name.upper()}]" for p in given]
    shown = [name if p.is_positional else f"{p.flag} {name}" for p, name in zip(given, names)]
    usage = " ".join([PROGRAM, name, *shown, "[options]"])
    parser = HelpParser(f"{PROGRAM} {name}", usage, signature.description, signature.example)
    for parameter in signature.parameters:
        _add_argument(parser, parameter)
    as_json = "one JSON document on stdout"
    parser.add_argument(*JSON_FLAGS, action="store_true", default=argparse.SUPPRESS, help=as_json)
    return parser


def _add_argument(parser: argparse.ArgumentParser, parameter: Parameter) -> None:
    choices = f"{{{','.join(parameter.choices)}}}" if parameter.choices else ""
    settings: dict[str, Any] = {"default": parameter.default, "help": parameter.help.replace("%", "%%")}
    if parameter.type_ is bool:
        settings["action"] = "store_false" if parameter.default else "store_true"
        if parameter.default:
            settings["help"] = f"sets to false: {settings['help']}"
    else:
        settings["type"] = partial(_value, parameter)
        settings["metavar"] = parameter.name.upper()
    if parameter.is_positional:
        settings["help"] = f"{choices} {settings['help']}".strip()
        settings["nargs"] = "+" if parameter.is_list else None if parameter.is_required else "?"
        parser.add_argument(parameter.name, **settings)
        return
    if choices:
        settings["metavar"] = choices
    if parameter.is_list:
        settings["action"] = "extend"
    parser.add_argument(parameter.flag, dest=parameter.name, required=parameter.is_required, **settings)


def _value(parameter: Parameter, text: str) -> Any:
    """The value of one argument; of a list's option several, with commas between, for numbers also spaces."""
    text = text.removeprefix(_AFTER_DASHES)
    if not parameter.is_list or parameter.is_positional:
        return _item(parameter, text)
    between = "," if parameter.type_ is str else r"[,\s]"
    return [_item(parameter, part.strip()) for part in re.split(between, text) if part.strip()]


def _item(parameter: Parameter, text: str) -> Any:
    if parameter.name == _WINDOW and not re.fullmatch(r"\s*[+-]?(\d+|0x[0-9a-f]+)\s*", text, re.I):
        return text  # its name
    with suppress(ValueError):
        if parameter.type_ is int:
            return int(text, 0)  # window ids are often written the way X11 programs print them
        if parameter.type_ is float and math.isfinite(float(text)):
            return float(text)
        if parameter.type_ is str and text in (parameter.choices or text):
            return text
    kinds = {int: "a whole number", float: "a number", str: f"one of {', '.join(parameter.choices)}"}
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is not {kinds[parameter.type_]}")

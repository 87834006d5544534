"""A function's parameters and help, and the arguments sent for them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Callable, Literal, NamedTuple, Optional, Union, get_args, get_origin, get_type_hints

from ..core.errors import invalid
from .commands import in_shell_names

# Strict clients send every parameter: these are 0 where a model means to leave them out.
_ZERO_MEANS_ABSENT = ("window_id", "max_dimension")
LARGEST_NUMBER = 10**100  # str() refuses more than 4,300 digits
_LOOKS_LIKE_NUMBER = r"(?i)-(\d|\.\d|inf|nan)"
HELP_FLAGS = ("-h", "--help")


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
    def flags(self) -> tuple[str, str]:
        """The flag as shells have them, and as MCP has its name: `--app-name`, `--appName`."""
        no = "no-" if self.type_ is bool and self.default else ""
        words = re.sub("([A-Z])", r"-\1", self.name.replace("_", "-")).lower()
        return f"--{no}{words}", f"--{no}{self.name}"


class Signature(NamedTuple):
    """A function's help and parameters. `example` is what follows `Example:` in its docstring."""

    summary: str
    description: str
    example: str
    parameters: tuple[Parameter, ...]


@cache
def read_signature(function: Callable[..., Any]) -> Signature:
    """The parameters of a function whose hints are `Annotated[type, "help"]`, and its docstring in parts."""
    hints = get_type_hints(function, include_extras=True)
    # a function's own attributes: inspect would cost every command a tenth of its start
    plain = getattr(function, "__wrapped__", function)
    code, defaults = plain.__code__, plain.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    default_of = dict(zip(names[code.co_argcount - len(defaults) :], defaults))
    default_of.update(plain.__kwdefaults__ or {})
    before_star = names[: code.co_argcount] if code.co_kwonlyargcount else names[: -len(default_of) or None]
    parameters = [_read_parameter(name, hints[name], name in before_star, default_of) for name in names]
    lines = (function.__doc__ or "").strip().splitlines()
    description, _, example = "\n".join(line.strip() for line in lines).partition("\n\nExample:")
    return Signature(
        summary=description.split("\n\n")[0].replace("\n", " "),
        description=description,
        example=example.strip(),
        parameters=tuple(parameters),
    )


def given_arguments(signature: Signature, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """An MCP call's arguments without those that mean "absent": "" for an optional text, 0 where
    _ZERO_MEANS_ABSENT.

    Raises INVALID_ARGUMENT for a number that is not finite, or of more digits than can be shown.
    """
    parameters = {parameter.name: parameter for parameter in signature.parameters}
    for name, value in arguments.items():
        check_numbers(name, value)
    return {name: value for name, value in arguments.items() if not _is_absent(parameters.get(name), value)}


def _is_absent(parameter: Optional[Parameter], value: Any) -> bool:
    if parameter is None or parameter.is_required or parameter.default is not None:
        return False
    if value == "":
        return parameter.type_ is str and not parameter.choices and not parameter.is_list
    return type(value) in (int, float) and value == 0 and parameter.name in _ZERO_MEANS_ABSENT


def check_numbers(name: str, value: Any) -> None:
    """Raises INVALID_ARGUMENT where `value` is, or holds, a number that cannot be handled."""
    if isinstance(value, dict):
        for key, item in value.items():
            check_numbers(f"{name}.{key}", item)
    elif isinstance(value, list):
        for item in value:
            check_numbers(name, item)
    elif isinstance(value, float) and not math.isfinite(value):
        raise invalid(
            f"{name[:80]}: NaN and infinity are not numbers that can be used", "give a finite number"
        )
    elif isinstance(value, int) and abs(value) > LARGEST_NUMBER:
        raise invalid(f"{name[:80]}: the number has too many digits", "give a smaller number")


def _read_parameter(name: str, hint: Any, is_positional: bool, defaults: Mapping[str, Any]) -> Parameter:
    # Python 3.9 and 3.10 wrap `Annotated[str, ...] = None` into an Optional of their own: look inside it
    annotated = [each for each in (hint, _without_none(hint)) if hasattr(each, "__metadata__")]
    help_text = " ".join(str(annotated[0].__metadata__[0]).split()) if annotated else ""
    annotation = annotated[0].__origin__ if annotated else hint
    type_ = _without_none(annotation)
    is_list = get_origin(type_) is list
    if is_list:
        type_ = get_args(type_)[0]
    choices: tuple[str, ...] = get_args(type_) if get_origin(type_) is Literal else ()
    return Parameter(
        name=name,
        help=help_text,
        type_=str if choices else type_,
        annotation=annotation,
        choices=choices,
        is_list=is_list,
        is_required=name not in defaults,
        is_positional=is_positional,
        default=defaults.get(name),
    )


def _without_none(hint: Any) -> Any:
    if get_origin(hint) is Union:
        others: list[Any] = [choice for choice in get_args(hint) if choice is not type(None)]
        if len(others) < len(get_args(hint)):
            return others[0] if len(others) == 1 else Union[tuple(others)]
    return hint


def shell_arguments(
    parameters: Sequence[Parameter], arguments: Sequence[str], command: str = "COMMAND"
) -> dict[str, Any]:
    """What a function is called with for the arguments of its command. Raises INVALID_ARGUMENT.

    Written for texts and coordinates, which argparse takes for options: `type 7 -hello`, `click 7 -5 3`.
    `command` is the line up to the arguments: an error says how the line was probably meant.
    """
    given, positional = _by_parameter(parameters, arguments)
    for each in parameters:
        if each.is_positional and each.is_list:
            given[each.name], positional = positional, []
        elif each.is_positional and positional:
            given[each.name] = [positional.pop(0)]
    missing = [each for each in parameters if each.is_required and each.name not in given]
    if missing and _lacks_window(parameters, given):
        hint = f"list them by `windows`; then: {_line(command, 'WINDOW_ID', *arguments)}"
        raise invalid(f"which window? WINDOW_ID is missing before {arguments[0][:40]!r}", hint)
    if missing:
        names = [each.name.upper() if each.is_positional else each.flags[0] for each in missing]
        verb = "is" if len(names) == 1 else "are"
        raise invalid(f"{', '.join(names)} {verb} missing", _give(missing[0]))
    if positional:
        raise invalid(
            f"{positional[0][:40]!r} is one argument too many",
            _as_meant(parameters, arguments, positional[0], command),
        )
    return {each.name: _value(each, given.get(each.name)) for each in parameters}


def _by_parameter(
    parameters: Sequence[Parameter], arguments: Sequence[str]
) -> tuple[dict[str, list[str]], list[str]]:
    """The texts that belong to each flag of the command line, and those without a flag."""
    flags = {flag: each for each in parameters if not each.is_positional for flag in each.flags}
    takes_text = any(each.is_positional and each.type_ is str and not each.choices for each in parameters)
    given: dict[str, list[str]] = {}
    positional: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        flag, is_joined, value = argument.partition("=")
        parameter = flags.get(flag)
        if argument == "--":
            positional += rest
        elif parameter is None:
            is_text = argument in HELP_FLAGS or (takes_text and not argument.startswith("--"))
            if argument[:1] == "-" and not (is_text or re.match(_LOOKS_LIKE_NUMBER, argument)):
                raise invalid(f"{argument[:40]!r} is not an option", _options(parameters))
            positional.append(argument)
        elif parameter.type_ is bool:
            if is_joined:
                raise invalid(f"{flag} takes no value", f"write {flag}, or leave it out")
            given[parameter.name] = []
        else:
            value = value if is_joined else next(rest, "--")
            if not is_joined and (value == "--" or value.split("=")[0] in flags):
                raise invalid(f"{flag} needs a value", _give(parameter))
            given.setdefault(parameter.name, []).append(value)
    return given, positional


def _options(parameters: Sequence[Parameter]) -> str:
    flags = [each.flags[0] for each in parameters if not each.is_positional]
    passes_on = any(each.is_positional and each.is_list for each in parameters)
    before = "put -- before what is passed on; " if passes_on else ""
    return f"{before}its options are {', '.join(flags)}" if flags else "it has no options but --json"


def _lacks_window(parameters: Sequence[Parameter], given: Mapping[str, list[str]]) -> bool:
    """Whether the first text stands where a window's id belongs: `find-text Sign`."""
    texts = given.get("window_id", []) if parameters[0].name == "window_id" else []
    return bool(texts) and not texts[0].lstrip("-")[:1].isdigit()


def _as_meant(parameters: Sequence[Parameter], arguments: Sequence[str], word: str, command: str) -> str:
    """The line with the flag that a word without one was probably meant for."""
    flags = [each.flags[0] for each in parameters if not each.is_positional]
    looks_like_path = "/" in word or word.lower().endswith((".png", ".jpg", ".jpeg"))
    first = "--path" if looks_like_path else "--window-id" if word.isdecimal() else "--app"
    meant = [flag for flag in (first, "--app", "--text") if flag in flags]
    if not meant:
        return "quote a text that has spaces"
    place = list(arguments).index(word)
    return f"did you mean: {_line(command, *arguments[:place], meant[0], *arguments[place:])}"


def _give(parameter: Parameter) -> str:
    choices = ", ".join(parameter.choices)
    return f"give {f'one of {choices}' if choices else in_shell_names(parameter.help)}"


def _line(command: str, *arguments: str) -> str:
    from shlex import join  # only an error needs it

    return f"{command} {join(arguments)}"


def _value(parameter: Parameter, texts: Optional[list[str]]) -> Any:
    if texts is None:
        return parameter.default
    if parameter.type_ is bool:
        return not parameter.default
    if not parameter.is_list:
        return _read_text(parameter, texts[-1])
    # a flag takes several, with commas between them; between numbers spaces will do
    if not parameter.is_positional:
        between = "," if parameter.type_ is str else r"[,\s]"
        texts = [part.strip() for text in texts for part in re.split(between, text) if part.strip()]
    return [_read_text(parameter, text) for text in texts]


def _read_text(parameter: Parameter, text: str) -> Any:
    if parameter.choices and text not in parameter.choices:
        raise invalid(
            f"{parameter.name}: {text[:40]!r} is not one of {', '.join(parameter.choices)}",
            "choose one of them",
        )
    if parameter.type_ not in (int, float):
        return text
    try:
        # window ids are often written the way X11 programs print them
        number = int(text, 0) if parameter.type_ is int else float(text)
    except ValueError:
        number = math.nan
    if isinstance(number, float) and not math.isfinite(number):
        kind = "a whole number" if parameter.type_ is int else "a number"
        raise invalid(f"{parameter.name}: {text[:40]!r} is not {kind}", _give(parameter))
    check_numbers(parameter.name, number)
    return number

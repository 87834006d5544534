"""A function's parameters and help, and what MCP clients send for them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Callable, Literal, Optional, Union, get_args, get_origin, get_type_hints

from ..core.errors import invalid

# Strict clients send every parameter: these are 0 where a model means to leave them out.
_ZERO_MEANS_ABSENT = ("window_id", "max_dimension")
_LARGEST_NUMBER = 10**100  # str() refuses more than 4,300 digits


@dataclass(frozen=True)
class Parameter:
    """One parameter; `type_` is that of its value, of a list that of its items, without Optional."""

    name: str
    help: str
    type_: Any
    annotation: Any
    """The whole type, Optional included, without the help text."""
    choices: tuple[str, ...]
    is_list: bool
    is_required: bool
    is_keyword_only: bool
    is_positional: bool
    """Without a flag on the command line: what is required, and what stands before keyword-only ones."""
    default: Any

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")


@dataclass(frozen=True)
class Signature:
    """A function's help and parameters. `example` is what follows `Example:` in its docstring."""

    summary: str
    description: str
    example: str
    parameters: tuple[Parameter, ...]


@cache
def read_signature(function: Callable[..., Any]) -> Signature:
    """The parameters of a function whose hints are `Annotated[type, "help"]`, and its docstring in parts."""
    hints = get_type_hints(function, include_extras=True)
    parameters = [
        _read_parameter(each, hints[each.name]) for each in inspect.signature(function).parameters.values()
    ]
    if any(one.is_keyword_only for one in parameters):
        parameters = [replace(one, is_positional=not one.is_keyword_only) for one in parameters]
    description, _, example = inspect.cleandoc(function.__doc__ or "").partition("\n\nExample:")
    return Signature(
        summary=description.split("\n\n")[0].replace("\n", " "),
        description=description,
        example=inspect.cleandoc(example).strip(),
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
    elif isinstance(value, int) and abs(value) > _LARGEST_NUMBER:
        raise invalid(f"{name[:80]}: the number has too many digits", "give a smaller number")


def _read_parameter(parameter: inspect.Parameter, hint: Any) -> Parameter:
    # Python 3.9 and 3.10 wrap `Annotated[str, ...] = None` into an Optional of their own: look inside it
    inner = _without_none(hint)
    help_text = ""
    for layer in (hint, inner):
        if hasattr(layer, "__metadata__"):
            help_text = " ".join(str(layer.__metadata__[0]).split())
            annotation = layer.__origin__
            break
    else:
        annotation = hint
    type_ = _without_none(annotation)
    is_list = get_origin(type_) is list
    if is_list:
        type_ = get_args(type_)[0]
    choices: tuple[str, ...] = get_args(type_) if get_origin(type_) is Literal else ()
    return Parameter(
        name=parameter.name,
        help=help_text,
        type_=str if choices else type_,
        annotation=annotation,
        choices=choices,
        is_list=is_list,
        is_required=parameter.default is parameter.empty,
        is_keyword_only=parameter.kind is parameter.KEYWORD_ONLY,
        is_positional=parameter.default is parameter.empty,
        default=None if parameter.default is parameter.empty else parameter.default,
    )


def _without_none(hint: Any) -> Any:
    if get_origin(hint) is Union:
        others: list[Any] = [choice for choice in get_args(hint) if choice is not type(None)]
        if len(others) < len(get_args(hint)):
            return others[0] if len(others) == 1 else Union[tuple(others)]
    return hint

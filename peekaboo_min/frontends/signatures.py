"""A function's parameters and help, read for the two front doors."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Callable, Literal, Union, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class Parameter:
    """One parameter: `type_` is what it holds (for a list, what its items hold), without Optional and without help."""

    name: str
    help: str
    type_: Any
    annotation: Any
    """The whole type, Optional included, without the help text."""
    choices: tuple[str, ...]
    is_list: bool
    is_required: bool
    is_keyword_only: bool
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


def read_signature(function: Callable[..., Any]) -> Signature:
    """The parameters of a function whose hints are `Annotated[type, "help"]`, and its docstring in parts."""
    hints = get_type_hints(function, include_extras=True)
    parameters = [
        _read_parameter(one, hints[one.name]) for one in inspect.signature(function).parameters.values()
    ]
    description, _, example = inspect.cleandoc(function.__doc__ or "").partition("\n\nExample:")
    return Signature(
        summary=description.split("\n\n")[0].replace("\n", " "),
        description=description,
        example=inspect.cleandoc(example).strip(),
        parameters=tuple(parameters),
    )


def _read_parameter(parameter: inspect.Parameter, hint: Any) -> Parameter:
    # Python 3.9 and 3.10 wrap `Annotated[str, ...] = None` into an Optional of their own: look inside it
    inner, _ = _without_none(hint)
    help_text = ""
    for layer in (hint, inner):
        if hasattr(layer, "__metadata__"):
            help_text = " ".join(str(layer.__metadata__[0]).split())
            annotation = layer.__origin__
            break
    else:
        annotation = hint
    type_, _ = _without_none(annotation)
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
        default=None if parameter.default is parameter.empty else parameter.default,
    )


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) is Union:
        others: list[Any] = [one for one in get_args(hint) if one is not type(None)]
        if len(others) < len(get_args(hint)):
            return (others[0] if len(others) == 1 else Union[tuple(others)]), True
    return hint, False

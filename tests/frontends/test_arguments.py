"""Reading a tool's signature, docstring and shell arguments."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Optional

import pytest

from peekaboo_min.frontends import arguments
from peekaboo_min.frontends.arguments import Parameter, Signature, read_signature, shell_arguments


def example_tool(
    name: Annotated[str, "the\n  name"],
    mode: Annotated[Optional[Literal["a", "b"]], "how"] = None,
    tags: Annotated[Optional[list[Literal["x", "y"]]], "which"] = None,
    *,
    size: Annotated[int, "how large"],
    internal: bool = False,
) -> None:
    """Do a thing,
    in two lines. And more.

    A second part.

    Example: peekaboo-min thing 5
    leaves thing.png
    """


MODE, TAGS = Optional[Literal["a", "b"]], Optional[list[Literal["x", "y"]]]


def test_signature_has_the_docstring_and_every_parameter_with_help() -> None:
    assert read_signature(example_tool) == Signature(
        "Do a thing, in two lines. And more.",
        "Do a thing,\nin two lines. And more.\n\nA second part.",
        "peekaboo-min thing 5\nleaves thing.png",
        (
            Parameter("name", "the name", str, str, (), False, True, True, None),
            Parameter("mode", "how", str, MODE, ("a", "b"), False, False, True, None),
            Parameter("tags", "which", str, TAGS, ("x", "y"), True, False, True, None),
            Parameter("size", "how large", int, int, (), False, True, False, None),
        ),
    )


def test_shell_arguments_are_converted_to_the_types_of_the_signature() -> None:
    given = shell_arguments("thing", read_signature(example_tool), ["a name", "b", "x", "--size", "7"])
    assert given == {"name": "a name", "mode": "b", "tags": ["x"], "size": 7}


def with_flags(
    appName: Annotated[Optional[str], "name"] = None,
    *,
    isShown: Annotated[bool, "shown"] = True,
    all_of: Annotated[bool, "all"] = False,
) -> None: ...


def test_flag_has_a_dashed_name_and_accepts_the_wire_name() -> None:
    signature = read_signature(with_flags)
    assert [row.flag for row in signature.parameters] == ["--app-name", "--no-is-shown", "--all-of"]
    given = shell_arguments("thing", signature, ["Form", "--no-is-shown"])
    assert given == {"appName": "Form", "isShown": False, "all_of": False}
    for flag in ("--all-of", "--all_of"):
        assert shell_arguments("thing", signature, [flag])["all_of"] is True


def with_lists(
    *,
    region: Annotated[Optional[list[float]], "where, in % of it"] = None,
    tags: Annotated[Optional[list[str]], "which"] = None,
) -> None: ...


def test_list_option_is_split_at_commas_and_numbers_also_at_spaces() -> None:
    argv = ["--region", " 1,2.5\t3 4,", "--tags", "a b, c", "--tags", "d"]
    assert (
        "where, in % of it\n" in arguments.command_parser("thing", read_signature(with_lists)).format_help()
    )
    given = shell_arguments("thing", read_signature(with_lists), argv)
    assert given == {"region": [1.0, 2.5, 3.0, 4.0], "tags": ["a b", "c", "d"]}


def with_texts(
    first: Annotated[str, "a text"],
    others: Annotated[list[str], "more"],
    count: Annotated[int, "how many"] = 1,
) -> None: ...


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("a -- -b --count", {"first": "a", "others": ["-b", "--count"], "count": 1}),
        ("-- -- --", {"first": "--", "others": ["--"], "count": 1}),
        ("--count=2 - -1 -- -h", {"first": "-", "others": ["-1", "-h"], "count": 2}),
        ("a --count -2 b", {"first": "a", "others": ["b"], "count": -2}),
        ("a b --count 0x1F c", {"first": "a", "others": ["b", "c"], "count": 31}),
    ],
)
def test_argument_after_two_dashes_is_never_an_option(line: str, values: dict[str, Any]) -> None:
    assert shell_arguments("thing", read_signature(with_texts), line.split()) == values

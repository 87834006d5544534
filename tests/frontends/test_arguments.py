"""A tool's signature and docstring, as the front ends read them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Optional

from peekaboo_min.core.models import MCP_ONLY, SHELL_ONLY, Offer
from peekaboo_min.frontends.arguments import Parameter, Signature, read_signature, shell_arguments


def example_tool(
    name: Annotated[str, "the\n  name", Offer(shell_help="its name")],
    mode: Annotated[Optional[Literal["a", "b"]], "how", Offer(shell_choices=("c",))] = None,
    tags: Annotated[Optional[list[Literal["x", "y"]]], "which"] = None,
    *,
    size: Annotated[int, "how large", SHELL_ONLY],
    shape: Annotated[dict[str, int], "which form", MCP_ONLY],
    in_shell: bool = False,
) -> None:
    """Does a thing,
    in two lines. And more.

    A second part.

    In the shell: Does it there.

    Example: peekaboo-min thing 5
    leaves thing.png
    """


MODE, TAGS = Optional[Literal["a", "b"]], Optional[list[Literal["x", "y"]]]


def test_signature_is_read_whole_for_mcp_and_for_the_shell() -> None:
    over_mcp, in_shell = read_signature(example_tool), read_signature(example_tool, True)
    tags = Parameter("tags", "which", str, TAGS, ("x", "y"), True, False, True, None)
    form = dict[str, int]
    assert over_mcp == Signature(
        "Does a thing, in two lines. And more.",
        "Does a thing,\nin two lines. And more.\n\nA second part.",
        "peekaboo-min thing 5\nleaves thing.png",
        (
            Parameter("name", "the name", str, str, (), False, True, True, None),
            Parameter("mode", "how", str, MODE, ("a", "b"), False, False, True, None),
            tags,
            Parameter("shape", "which form", form, form, (), False, True, False, None),
        ),
        True,
    )
    assert in_shell == over_mcp._replace(
        summary="Does it there.",
        description="Does it there.",
        parameters=(
            Parameter("name", "its name", str, str, (), False, True, True, None),
            Parameter("mode", "how", str, MODE, ("a", "b", "c"), False, False, True, None),
            tags,
            Parameter("size", "how large", int, int, (), False, True, False, None),
        ),
    )
    given = shell_arguments("thing", in_shell, ["a name", "c", "x", "--size", "7"])
    assert given == {"name": "a name", "mode": "c", "tags": ["x"], "size": 7, "in_shell": True}


def with_flags(
    appName: Annotated[Optional[str], "name"] = None,
    *,
    isShown: Annotated[bool, "shown"] = True,
    all_of: Annotated[bool, "all"] = False,
) -> None: ...


def test_flag_is_written_as_shells_do_or_by_its_wire_name() -> None:
    signature = read_signature(with_flags)
    assert [each.flag for each in signature.parameters] == ["--app-name", "--no-is-shown", "--all-of"]
    given = shell_arguments("thing", signature, ["Form", "--no-is-shown"])
    assert given == {"appName": "Form", "isShown": False, "all_of": False}
    for flag in ("--all-of", "--all_of"):
        assert shell_arguments("thing", signature, [flag])["all_of"] is True


def with_lists(
    *,
    region: Annotated[Optional[list[float]], "where"] = None,
    tags: Annotated[Optional[list[str]], "which"] = None,
) -> None: ...


def test_list_option_has_commas_and_one_of_numbers_may_have_spaces() -> None:
    def read(*arguments: str) -> dict[str, Any]:
        return shell_arguments("thing", read_signature(with_lists), arguments)

    four = {"region": [1.0, 2.5, 3.0, 4.0], "tags": None}
    for region in ("1,2.5,3,4", "1, 2.5, 3, 4", "1 2.5 3 4", " 1,2.5\t3 4,"):
        assert read("--region", region) == four
    assert read("--tags", "a b, c", "--tags", "d") == {"region": None, "tags": ["a b", "c", "d"]}

"""A tool's signature and docstring, as the front ends read them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Annotated, Any, Literal, Optional

from worlds import ROOT

from peekaboo_min.frontends.arguments import Parameter, read_signature, shell_arguments


def example_tool(
    name: Annotated[str, "the\n  name"],
    mode: Annotated[Optional[Literal["a", "b"]], "how"] = None,
    tags: Annotated[Optional[list[Literal["x", "y"]]], "which"] = None,
    *,
    size: Annotated[int, "how large"],
    plain: bool = False,
) -> None:
    """Does a thing,
    in two lines. And more.

    A second part.

    Example: peekaboo-min thing 5
    leaves thing.png
    """


def test_a_signature_is_read_whole() -> None:
    read = read_signature(example_tool)
    assert (read.summary, read.description, read.example) == (
        "Does a thing, in two lines. And more.",
        "Does a thing,\nin two lines. And more.\n\nA second part.",
        "peekaboo-min thing 5\nleaves thing.png",
    )
    strings, tags = Optional[Literal["a", "b"]], Optional[list[Literal["x", "y"]]]
    assert read.parameters == (
        Parameter("name", "the name", str, str, (), False, True, True, None),
        Parameter("mode", "how", str, strings, ("a", "b"), False, False, True, None),
        Parameter("tags", "which", str, tags, ("x", "y"), True, False, True, None),
        Parameter("size", "how large", int, int, (), False, True, False, None),
        Parameter("plain", "", bool, bool, (), False, False, False, False),
    )


def with_flags(appName: Optional[str] = None, *, isShown: bool = True, all_of: bool = False) -> None: ...


def test_a_flag_is_had_as_shells_write_it_and_by_its_wire_name() -> None:
    signature = read_signature(with_flags)
    assert [each.flag for each in signature.parameters] == ["--app-name", "--no-is-shown", "--all-of"]
    given = shell_arguments("thing", signature, ["Form", "--no-is-shown"])
    assert given == {"appName": "Form", "isShown": False, "all_of": False}
    for flag in ("--all-of", "--all_of"):
        assert shell_arguments("thing", signature, [flag])["all_of"] is True


def with_lists(*, region: Optional[list[float]] = None, tags: Optional[list[str]] = None) -> None: ...


def test_a_list_has_commas_between_and_one_of_numbers_may_have_spaces() -> None:
    def read(*arguments: str) -> dict[str, Any]:
        return shell_arguments("thing", read_signature(with_lists), arguments)

    four = {"region": [1.0, 2.5, 3.0, 4.0], "tags": None}
    for region in ("1,2.5,3,4", "1, 2.5, 3, 4", "1 2.5 3 4", " 1,2.5\t3 4,"):
        assert read("--region", region) == four
    assert read("--tags", "a b, c", "--tags", "d") == {"region": None, "tags": ["a b", "c", "d"]}


def test_each_command_is_introduced_by_a_whole_sentence() -> None:
    words, environment = (
        [sys.executable, "-m", "peekaboo_min", "--help"],
        {**os.environ, "PYTHONPATH": str(ROOT)},
    )
    out = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    unwrapped = re.sub(r"\n {10,}", " ", out)
    commands = dict(re.findall(r"^  ([a-z][a-z _-]*?)  +(\S.*)$", unwrapped, re.M))
    assert {"click", "elements", "wait-for", "open"} <= set(commands)
    for name, sentence in commands.items():
        assert sentence.count("(") == sentence.count(")"), (name, sentence)
        assert not re.search(r"(,| like| and| or| the)$", sentence), (name, sentence)
        assert len(sentence) <= 140, (name, sentence)

"""Where a tool's parameter is not the same over MCP and in the shell."""

from __future__ import annotations

from typing import NamedTuple


class Offer(NamedTuple):
    """Further metadata of a parameter's hint: `Annotated[type, "its help", Offer(...)]`."""

    only: str = ""
    """`shell` or `mcp`, where the other does not have it."""
    shell_help: str = ""
    """Its help in the shell; empty: the same."""
    shell_choices: tuple[str, ...] = ()
    """What the shell may choose as well."""


SHELL_ONLY = Offer("shell")
MCP_ONLY = Offer("mcp")

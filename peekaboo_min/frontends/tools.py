"""TOOLS: every MCP tool, a typed function with its name and effects."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Callable

from ..automation.listing import list_windows
from ..core.errors import invalid
from ..core.models import Result
from ..core.settings import VARIABLES, platform_name, settings
from ..integrations.gmail import send_email
from ..integrations.gmail_oauth import has_gmail_credentials
from ..integrations.keynote import (
    add_text_in_keynote,
    draw_rectangle,
    get_slide_size,
    open_keynote,
    screenshot_slide,
)
from ..integrations.peekaboo_cli import peekaboo_exec
from .arguments import Parameter, read_signature
from .capture_tools import analyze, image, list_items, screenshot_app_window
from .desktop_tools import (
    click,
    click_text,
    drag,
    find_elements,
    find_text,
    focus_window,
    move_pointer,
    open_and_wait,
    press_key,
    scroll,
    take_window_screenshot,
    type_text,
    wait_for,
)


@dataclass(frozen=True)
class Tool:
    """One MCP tool: its wire name, its function, its group, and what it does to the world."""

    name: str
    title: str
    group: str
    function: Callable[..., Result]
    acts: bool = False
    """True for what changes focus, presses, types, draws or sends: not offered when read-only."""
    is_read_only: bool = True
    is_idempotent: bool = False
    is_open_world: bool = False
    has_result_grammar: bool = False
    """True where its results have a grammar of their own: an error is `ERROR: ...` then."""
    is_offered: Callable[[], bool] = lambda: True
    """Whether this machine has what it takes."""


def _is_mac() -> bool:
    return platform_name() == "macos"


def _act(name: str, title: str, function: Callable[..., Result]) -> Tool:
    """A tool of the desktop group that acts: what a click or a key does is the application's."""
    return Tool(name, title, "desktop", function, acts=True, is_open_world=True)


def _keynote_tool(name: str, title: str, function: Callable[..., Result], is_idempotent: bool) -> Tool:
    return Tool(
        name, title, "keynote", function, acts=True, is_idempotent=is_idempotent, has_result_grammar=True,
        is_offered=_is_mac,
    )  # fmt: skip


TOOLS: tuple[Tool, ...] = (
    Tool("image", "Capture screens or windows", "capture", image, is_read_only=False, is_idempotent=True),
    Tool("analyze", "Ask a model about an image", "capture", analyze, is_open_world=True),
    Tool("list", "List apps, windows, server status", "capture", list_items),
    Tool("screenshot_app_window", "Take a screenshot of an app's window", "capture", screenshot_app_window,
         is_idempotent=True),
    Tool("list_windows", "List windows", "desktop", list_windows),
    Tool("focus_window", "Focus a window", "desktop", focus_window, acts=True, is_idempotent=True),
    Tool("take_window_screenshot", "Take a screenshot of a window", "desktop", take_window_screenshot),
    Tool("find_text", "Find text in a window", "desktop", find_text),
    Tool("find_elements", "List a window's controls", "desktop", find_elements),
    _act("click", "Click in a window", click),
    _act("click_text", "Find a text in a window and click it", click_text),
    _act("scroll", "Scroll in a window", scroll),
    _act("drag", "Drag in a window", drag),
    Tool("move_pointer", "Move the pointer over a window", "desktop", move_pointer, acts=True,
         is_idempotent=True),
    _act("type_text", "Type text into a window", type_text),
    _act("press_key", "Press a key in a window", press_key),
    Tool("wait_for", "Wait for a window", "desktop", wait_for),
    _act("open", "Open an app, a file or an address", open_and_wait),
    Tool("peekaboo_exec", "Run the peekaboo command line", "exec", peekaboo_exec, acts=True,
         is_open_world=True, is_offered=_is_mac),
    Tool("send_email", "Send an e-mail", "mail", send_email, acts=True, is_open_world=True,
         has_result_grammar=True, is_offered=has_gmail_credentials),
    _keynote_tool("open_keynote", "Open Keynote", open_keynote, is_idempotent=True),
    _keynote_tool("get_slide_size", "Get the slide's size", get_slide_size, is_idempotent=True),
    _keynote_tool("draw_rectangle", "Draw a rectangle", draw_rectangle, is_idempotent=False),
    _keynote_tool("add_text_in_keynote", "Write into the rectangle", add_text_in_keynote, is_idempotent=True),
    _keynote_tool("screenshot_slide", "Export slide 1", screenshot_slide, is_idempotent=True),
)  # fmt: skip


def offered_tools() -> list[Tool]:
    """The tools that this server offers: those that PEEKABOO_TOOLS chooses, without the acting ones when
    read-only.

    Raises INVALID_ARGUMENT for a name that is neither a tool's nor a group's.
    """
    wanted = [name.strip() for name in settings().tools.split(",") if name.strip()]
    known = {tool.name for tool in TOOLS} | {tool.group for tool in TOOLS}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise invalid(
            f"PEEKABOO_TOOLS names {unknown[0][:40]!r}, which is not a tool or group",
            "choose from " + ", ".join(sorted(known)),
        )
    chosen = [tool for tool in TOOLS if not wanted or tool.name in wanted or tool.group in wanted]
    return [tool for tool in chosen if tool.is_offered() and not (tool.acts and settings().is_read_only)]


def show_tools() -> Result:
    """Prints the reference of all MCP tools, as Markdown.

    Example: peekaboo-min tools > TOOLS.md
    """
    reference = tool_reference()
    return Result(reference, {"markdown": reference})


def tool_reference() -> str:
    """Every tool with its parameters, as Markdown; also what this machine does not offer."""
    return "\n\n".join(_tool_section(tool) for tool in TOOLS)


def _tool_section(tool: Tool) -> str:
    signature = read_signature(tool.function)
    description = " ".join(signature.description.split())
    rows = [
        f"| `{each.name}` | {_type_name(each)} | {_default(each)} | {_cell(each.help)} |"
        for each in signature.parameters
    ]
    table = ["", "| parameter | type | default | meaning |", "|---|---|---|---|", *rows] if rows else []
    return "\n".join([f"#### `{tool.name}`", "", description, *table])


def _type_name(parameter: Parameter) -> str:
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    choices = ", ".join(f"`{choice}`" for choice in parameter.choices)
    name = choices or names.get(parameter.type_, "object")
    return f"list of {name}" if parameter.is_list else name


def _default(parameter: Parameter) -> str:
    if parameter.is_required:
        return "required"
    return "" if parameter.default is None else f"`{json.dumps(parameter.default)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def variable_reference() -> str:
    """Every environment variable that is read, as a Markdown table."""
    rows = [
        f"| {' or '.join(f'`{name}`' for name in (variable.name, variable.alias) if name)} "
        f"| {_cell(str(variable.default or ''))} | {_cell(variable.help)} |"
        for variable in VARIABLES.values()
    ]
    return "\n".join(["| variable | default | what it does |", "|---|---|---|", *rows])

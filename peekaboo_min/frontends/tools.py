"""COMMANDS and TOOLS: all that the shell and MCP offer, by their functions."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Annotated, Callable, NamedTuple

from ..core.errors import ErrorCode, invalid
from ..core.models import Result
from ..core.settings import VARIABLES, image_lifetime, platform_name, settings
from ..system.programs import native_source
from .arguments import Parameter, command_parser, read_signature

# What looks, what acts, models, Keynote, set-up; help and the README list them in this order.
COMMANDS = {
    "windows": "automation.listing:list_windows",
    "screenshot": "frontends.desktop_tools:take_window_screenshot",
    "image": "frontends.capture_tools:image",
    "find-text": "automation.find:find_text",
    "elements": "automation.find:find_elements",
    "wait-for": "automation.wait:wait_for",
    "list apps": "automation.listing:list_apps",
    "list windows": "automation.listing:list_app_windows",
    "list screens": "automation.listing:list_screens",
    "screenshot-app-window": "frontends.capture_tools:screenshot_app_window",
    "focus": "frontends.desktop_tools:focus_window",
    "click": "frontends.desktop_tools:click",
    "click-text": "automation.find:click_text",
    "type": "frontends.desktop_tools:type_text",
    "press": "frontends.desktop_tools:press_key",
    "scroll": "frontends.desktop_tools:scroll",
    "drag": "frontends.desktop_tools:drag",
    "move": "frontends.desktop_tools:move_pointer",
    "open": "automation.opening:open_and_wait",
    "analyze": "frontends.capture_tools:analyze",
    "agent": "agents.vision_agent:run_vision_agent",
    "keynote-agent": "agents.keynote_agent:run_keynote_agent",
    "keynote open": "integrations.keynote:open_keynote",
    "keynote size": "integrations.keynote:get_slide_size",
    "keynote rectangle": "integrations.keynote:draw_rectangle",
    "keynote text": "integrations.keynote:add_text_in_keynote",
    "keynote screenshot": "integrations.keynote:screenshot_slide",
    "doctor": "frontends.doctor:doctor",
    "permissions": "frontends.doctor:permissions",
    "list server_status": "frontends.doctor:server_status",
    "list permissions": "frontends.doctor:server_status",
    "config": "frontends.doctor:client_configuration",
    "tools": "frontends.tools:show_tools",
    "clean": "frontends.doctor:clean",
    "exec": "integrations.peekaboo_cli:peekaboo_exec",
    "gmail-login": "integrations.gmail:gmail_login",
    "send-email": "integrations.gmail:send_email",
}
"""Every shell command, with its function: a typed one, whose docstring is its help."""


def load_function(place: str) -> Callable[..., Result]:
    """The function of a command, from `module:name`; only then imported, as a command must start at once."""
    module, _, name = place.partition(":")
    function: Callable[..., Result] = getattr(import_module(f"peekaboo_min.{module}"), name)
    return function


class Tool(NamedTuple):
    """One MCP tool: its wire name, its group, the command of the same function, what it does to the world."""

    name: str
    title: str
    group: str
    command: str
    acts: bool = False
    """True for what changes focus, presses, types, draws or sends: not offered when read-only."""
    is_read_only: bool = True
    is_idempotent: bool = False
    is_open_world: bool = False

    @property
    def function(self) -> Callable[..., Result]:
        # what the shell has as several commands is one tool of the specification
        return load_function(COMMANDS.get(self.command, "frontends.capture_tools:list_items"))


TOOLS = (
    Tool("image", "Capture screens or windows", "capture", "image", is_read_only=False, is_idempotent=True),
    Tool("analyze", "Ask a model about an image", "capture", "analyze", is_open_world=True),
    Tool("list", "List apps, windows, server status", "capture", ""),
    Tool("screenshot_app_window", "Take a screenshot of an app's window", "capture", "screenshot-app-window",
         is_idempotent=True),
    Tool("list_windows", "List windows", "desktop", "windows"),
    Tool("focus_window", "Focus a window", "desktop", "focus", acts=True, is_idempotent=True),
    Tool("take_window_screenshot", "Take a screenshot of a window", "desktop", "screenshot"),
    Tool("find_text", "Find text in a window", "desktop", "find-text"),
    Tool("find_elements", "List a window's controls", "desktop", "elements"),
    # what a click or a key does is the application's
    Tool("click", "Click in a window", "desktop", "click", acts=True, is_open_world=True),
    Tool("click_text", "Find a text in a window and click it", "desktop", "click-text", acts=True,
         is_open_world=True),
    Tool("scroll", "Scroll in a window", "desktop", "scroll", acts=True, is_open_world=True),
    Tool("drag", "Drag in a window", "desktop", "drag", acts=True, is_open_world=True),
    Tool("move_pointer", "Move the pointer over a window", "desktop", "move", acts=True, is_idempotent=True),
    Tool("type_text", "Type text into a window", "desktop", "type", acts=True, is_open_world=True),
    Tool("press_key", "Press a key in a window", "desktop", "press", acts=True, is_open_world=True),
    Tool("wait_for", "Wait for a window", "desktop", "wait-for"),
    Tool("open", "Open an app, a file or an address", "desktop", "open", acts=True, is_open_world=True),
    Tool("peekaboo_exec", "Run the peekaboo command line", "exec", "exec", acts=True, is_open_world=True),
    Tool("send_email", "Send an e-mail", "mail", "send-email", acts=True, is_open_world=True),
    Tool("open_keynote", "Open Keynote", "keynote", "keynote open", acts=True, is_idempotent=True),
    Tool("get_slide_size", "Get the slide's size", "keynote", "keynote size", acts=True, is_idempotent=True),
    Tool("draw_rectangle", "Draw a rectangle", "keynote", "keynote rectangle", acts=True),
    Tool("add_text_in_keynote", "Write into the rectangle", "keynote", "keynote text", acts=True,
         is_idempotent=True),
    Tool("screenshot_slide", "Export slide 1", "keynote", "keynote screenshot", acts=True,
         is_idempotent=True),
)  # fmt: skip
_IMAGE = (
    "image_width, image_height (pixels), scale (pixels a point), screenshot_id (absent where its pixels "
    "cannot be clicked)"
)
_WINDOW = (
    "window_id, owner_name, pid (null: unknown), title, bounds (x, y, width, height in screen points), "
    "is_on_screen, is_focused, is_minimised, kind (window, dialog, popup, tooltip), parent_id (null: none), "
    "is_modal"
)
_EFFECT = (
    "delivered (null: not known), changed (null: not asked or not known), changed_rect (pixels; absent "
    "without a change), effect_ms, and where it is so window_closed and new_window (window_id, title)"
)
_ACT_AT = (
    f"window_id, pixel and point (x, y; of the screenshot and of the screen), clamped, {_EFFECT}; "
    "reached_window_id where another window got it"
)
_KEYS = f"window_id, {_EFFECT}; others_typed where somebody else's keys came among them"
_PLACE = "text, label, x, y (of its middle), box, match, confidence (0 to 1)"
_RESULTS = {
    "image": f"saved_files: path, item_label, mime_type, {_IMAGE}, of a window window_id, window_title and "
    "window_index, of a screen windows (their rectangles in pixels); with return_data images, the same of "
    "what is attached; with a question analysis_text, model_used",
    "analyze": "analysis_text, model_used, seconds, tokens_in and tokens_out (null: not told)",
    "list": "application_list: app_name, pid, bundle_id (null: none), is_active, window_count; or "
    "window_list: window_title, window_index, as asked window_id, bounds (x, y, w, h in points), "
    "is_on_screen, and target_application_info; of server_status the text alone",
    "screenshot_app_window": "path, uri, appName, rect (x, y, w, h in points), scale, format",
    "list_windows": f"windows, front to back: {_WINDOW}",
    "focus_window": _WINDOW,
    "take_window_screenshot": f"the image; window_id, bounds, {_IMAGE}; with a region also region, "
    "region_image_width, region_image_height",
    "find_text": f"{_IMAGE}; found and similar: {_PLACE}; without a text count and lines",
    "find_elements": f"{_IMAGE}; count, elements: role, name, value, states, x, y, width, height (pixels)",
    "click": _ACT_AT,
    "click_text": f"as click; text, and similar: {_PLACE}",
    "scroll": _ACT_AT,
    "drag": "as click; to_pixel, to_point",
    "move_pointer": _ACT_AT,
    "type_text": f"characters, {_KEYS}; copy_lost where what somebody copied meanwhile may be lost",
    "press_key": f"key, {_KEYS}",
    "wait_for": "waited_s; of a text what find_text answers, of closed closed, else what list_windows says",
    "open": f"{_WINDOW}; is_new_window, handler (the application's name)",
    "peekaboo_exec": "exit_code (null: killed), stdout, stderr, json (where stdout is JSON), attachments, "
    "cwd, program, version",
    "send_email": "`EMAIL_SENT: to=..., id=...`",
    "open_keynote": "`KEYNOTE_READY: slide=1, slide_width=..., slide_height=...` (points), or "
    "`KEYNOTE_READY_WITH_WARNING` with a note",
    "get_slide_size": "`SLIDE_SIZE: width=..., height=...` (points)",
    "draw_rectangle": "`RECTANGLE_OK: id=..., x=..., y=..., width=..., height=...` (points)",
    "add_text_in_keynote": "`TEXT_OK: id=..., characters=...`",
    "screenshot_slide": "`SCREENSHOT_SAVED: path=...`",
}
"""What each tool answers: the fields of its data, or its one line."""
COMMAND_FOR_TOOL = {tool.name: tool.command for tool in TOOLS if tool.command}


def in_shell_names(text: str) -> str:
    """A tool's help with the commands' names in place of the tools': `find-text` for find_text."""
    names = "|".join(name for name in COMMAND_FOR_TOOL if "_" in name)
    return re.sub(rf"\b({names})\b", lambda match: COMMAND_FOR_TOOL[match[1]], text)


def in_words_of_here(text: str) -> str:
    """A tool's help as it holds on this machine: how long images are kept, and what only a Mac has."""
    text = text.replace("for 10 minutes", image_lifetime())
    if platform_name() == "x11":
        text = text.replace("macOS screen", "screen").replace(", super or fn", " or super")
        text = re.sub(r", bundle ID,| or bundle id", "", text)
    return text


def offered_tools() -> list[Tool]:
    """The tools that this server offers: those that PEEKABOO_TOOLS chooses, without the acting ones when
    read-only, and without those that this machine has not what it takes for.

    Raises INVALID_ARGUMENT for a name that is neither a tool's nor a group's.
    """
    from ..integrations.gmail import has_gmail_credentials

    wanted = [name.strip() for name in settings().tools.split(",") if name.strip()]
    known = {name for tool in TOOLS for name in (tool.name, tool.group)}
    for name in wanted:
        if name not in known:
            problem = f"PEEKABOO_TOOLS names {name[:40]!r}, which is not a tool or group"
            raise invalid(problem, f"choose from {', '.join(sorted(known))}")
    is_mac = platform_name() == "macos"
    is_offered = {"exec": is_mac, "keynote": is_mac, "mail": has_gmail_credentials()}
    return [
        tool
        for tool in TOOLS
        if not wanted or tool.name in wanted or tool.group in wanted
        if is_offered.get(tool.group, True) and not (tool.acts and settings().is_read_only)
    ]


def show_tools(
    skill: Annotated[bool, "print a skill instead, for agents that have a shell and no MCP"] = False,
) -> Result:
    """Prints the reference of all MCP tools, as Markdown.

    Example: peekaboo-min tools > TOOLS.md
    """
    if skill:
        return _skill()
    sections = []
    for tool in TOOLS:  # also what this machine does not offer
        signature = read_signature(tool.function)
        sections += [f"#### `{tool.name}`", " ".join(signature.description.split())]
        if signature.parameters:
            sections.append("\n".join(map(_parameter_line, signature.parameters)))
        sections.append(f"Result: {_RESULTS[tool.name]}.")
    rows = [f"| `{code.value}` | {code.exit_code} | {code.next_step} |" for code in ErrorCode]
    sections += ["#### Errors", "\n".join(["| code | exit | next step |", "|---|---|---|", *rows])]
    reference = "\n\n".join(sections)
    return Result(reference, {"markdown": reference})


def _skill() -> Result:
    """What the shell has of what looks, acts and asks."""
    lines = []
    for name in [*COMMANDS][: [*COMMANDS].index("analyze") + 1]:
        signature = read_signature(load_function(COMMANDS[name]), True)
        options = [p.flag for p in signature.parameters if not (p.is_required or p.is_positional)]
        usage = (command_parser(name, signature).usage or "").replace("WINDOW_ID", "WINDOW")
        usage = usage.replace(" [options]", f" [{' '.join(options)}]" if options else "")
        lines.append(f"- `{usage}`: {in_shell_names(signature.summary)}")
    codes = "; ".join(f"{code.exit_code} {code.value}" for code in ErrorCode if code.exit_code > 1)
    skill = native_source("frontends/skill.md")
    text = skill.replace("{commands}", "\n".join(lines)).replace("{codes}", codes).rstrip()
    return Result(text, {"markdown": text})


def _parameter_line(parameter: Parameter) -> str:
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    choices = ", ".join(f"`{choice}`" for choice in parameter.choices)
    kind = ("list of " if parameter.is_list else "") + (choices or names.get(parameter.type_, "object"))
    need = ", required" if parameter.is_required else ""
    return f"- `{parameter.name}` ({kind}{need}): {parameter.help}"


def variable_reference() -> str:
    """Every environment variable that is read, as a Markdown list."""
    lines = []
    for variable in VARIABLES.values():
        default = f" (default `{variable.default}`)" if variable.default else ""
        alias = f" or `{variable.alias}`" if variable.alias else ""
        lines.append(f"- `{variable.name}`{alias}{default}: {variable.help}")
    return "\n".join(lines)

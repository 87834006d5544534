"""COMMANDS: every shell command, with the module of its function."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Callable, Optional

from ..core.models import Result

PROGRAM = "peekaboo-min"
JSON_FLAGS = ("--json-output", "--json", "-j")


class CommandTable(Mapping[str, Callable[..., Result]]):
    """Commands by name. A command is a typed function, whose docstring is its help.

    The module is imported when the command is looked up: a shell command must start at once.
    """

    def __init__(self, functions: dict[str, str]) -> None:
        self._functions = functions

    def __getitem__(self, name: str) -> Callable[..., Result]:
        module, function = self._functions[name].split(":")
        command: Callable[..., Result] = getattr(import_module(f"peekaboo_min.{module}"), function)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)


# By what they are for; help and the README list them in this order.
_FUNCTIONS = {
    "look": {
        "windows": "automation.listing:list_windows",
        "screenshot": "frontends.desktop_tools:take_window_screenshot",
        "image": "frontends.capture_tools:image",
        "find-text": "frontends.desktop_tools:find_text",
        "elements": "frontends.desktop_tools:find_elements",
        "wait-for": "frontends.desktop_tools:wait_for",
        "list apps": "automation.listing:list_apps",
        "list windows": "automation.listing:list_app_windows",
        "list screens": "automation.listing:list_screens",
        "screenshot-app-window": "frontends.capture_tools:screenshot_app_window",
    },
    "act": {
        "focus": "frontends.desktop_tools:focus_window",
        "click": "frontends.desktop_tools:click",
        "click-text": "frontends.desktop_tools:click_text",
        "type": "frontends.desktop_tools:type_text",
        "press": "frontends.desktop_tools:press_key",
        "scroll": "frontends.desktop_tools:scroll",
        "drag": "frontends.desktop_tools:drag",
        "move": "frontends.desktop_tools:move_pointer",
        "open": "frontends.desktop_tools:open_and_wait",
    },
    "models": {
        "analyze": "frontends.capture_tools:analyze",
        "agent": "agents.vision_agent:run_vision_agent",
    },
    "Keynote": {
        "keynote-agent": "agents.keynote_agent:run_keynote_agent",
        "keynote open": "integrations.keynote:open_keynote",
        "keynote size": "integrations.keynote:get_slide_size",
        "keynote rectangle": "integrations.keynote:draw_rectangle",
        "keynote text": "integrations.keynote:add_text_in_keynote",
        "keynote screenshot": "integrations.keynote:screenshot_slide",
    },
    "set-up and others": {
        "doctor": "frontends.doctor:doctor",
        "permissions": "frontends.doctor:permissions",
        "list server_status": "frontends.doctor:server_status",
        "list permissions": "frontends.doctor:server_status",
        "config": "frontends.client_config:client_configuration",
        "tools": "frontends.tools:show_tools",
        "clean": "frontends.doctor:clean",
        "exec": "integrations.peekaboo_cli:peekaboo_exec",
        "gmail-login": "integrations.gmail_oauth:gmail_login",
        "send-email": "integrations.gmail:send_email",
    },
}
GROUPS = {title: tuple(functions) for title, functions in _FUNCTIONS.items()}
COMMANDS = CommandTable({name: place for each in _FUNCTIONS.values() for name, place in each.items()})

_BY_FUNCTION = {place.split(":")[1]: name for each in _FUNCTIONS.values() for name, place in each.items()}
# Tools are named as their functions are; of those, what the shell has by another name.
_SHELL_NAMES = {
    tool: name for tool, name in _BY_FUNCTION.items() if "_" in tool and not name.startswith("list ")
}


def command_for_tool(tool: str) -> Optional[str]:
    """The command that does what the MCP tool of this name does; None where there is none."""
    return _BY_FUNCTION.get(tool)


def in_shell_names(text: str) -> str:
    """A tool's help with the commands' names in place of the tools': `find-text` for find_text."""
    return re.sub(rf"\b({'|'.join(_SHELL_NAMES)})\b", lambda match: _SHELL_NAMES[match[1]], text)

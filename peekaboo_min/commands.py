"""COMMANDS: every shell command, and the room of its function."""

from __future__ import annotations

from importlib import import_module
from typing import Callable, Dict, Iterator, Mapping

from .model import Result
from .sources import EMBEDDED_SOURCES


class CommandTable(Mapping[str, Callable[..., Result]]):
    """Commands by name. A command is a typed function, whose docstring is its help.

    Its room is imported when it is asked for: a shell command must start at once.
    """

    def __init__(self, rooms: Dict[str, str]) -> None:
        self._rooms = rooms

    def __getitem__(self, name: str) -> Callable[..., Result]:
        room, function = self._rooms[name].split(".")
        return globals()[function] if EMBEDDED_SOURCES else getattr(import_module(f".{room}", __package__), function)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rooms)

    def __len__(self) -> int:
        return len(self._rooms)


COMMANDS = CommandTable(
    {
        "image": "look_commands.image_command",
        "list apps": "look_commands.list_apps_command",
        "list windows": "look_commands.list_windows_command",
        "list screens": "look_commands.list_screens_command",
        "list server_status": "machine_commands.server_status_command",
        "list permissions": "machine_commands.server_status_command",
        "permissions": "machine_commands.permissions_command",
        "windows": "look_commands.windows_command",
        "analyze": "machine_commands.analyze_command",
        "screenshot-app-window": "capture_tools.screenshot_app_window",
        "exec": "machine_commands.exec_command",
        "focus": "desktop_tools.focus_window",
        "screenshot": "look_commands.screenshot_command",
        "find-text": "desktop_tools.find_text",
        "click": "desktop_tools.click",
        "type": "desktop_tools.type_text",
        "press": "desktop_tools.press_key",
        "keynote open": "keynote.open_keynote",
        "keynote size": "keynote.get_slide_size",
        "keynote rectangle": "keynote.draw_rectangle",
        "keynote text": "keynote.add_text_in_keynote",
        "keynote screenshot": "keynote.screenshot_slide",
        "keynote-agent": "keynote_agent.run_keynote_agent",
        "agent": "vision_agent.run_vision_agent",
        "gmail-login": "machine_commands.gmail_login_command",
        "send-email": "gmail.send_email",
        "config": "machine_commands.config_command",
        "tools": "machine_commands.tools_command",
        "doctor": "machine_commands.doctor_command",
        "clean": "machine_commands.clean_command",
    }
)

"""One row for every tool and command: names, effect, function, result.

To add a tool, write a function with `Annotated[type, "help"]` parameters and a docstring with `Example:`, and
add a row. Parameters after `*` are options in the shell. Both front ends, help, schema and reference follow.
A new group is offered only if `offered_tools` or `Desktop.extra_tools` names it. An act must call
`automation.act.perform` or `check_may_act`: the effect of its row alone refuses nothing in the shell.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from importlib import import_module
from typing import Any, Callable, NamedTuple

from ..core.errors import invalid
from ..core.models import Result
from ..core.settings import settings
from ..desktop.select import this_desktop


class Effect(Enum):
    """A tool's effect on the world; MCP's annotations and the read-only mode follow from it."""

    LOOKS = "looks"  # reads the desktop or an image
    ASKS = "asks"  # reads, and sends an image to a model that the user configured
    SAVES = "saves"  # writes image files
    SETS = "sets"  # acts; a second identical call changes nothing more (focus, pointer position)
    ACTS = "acts"  # acts; the application decides what follows (click, key)
    SENDS = "sends"  # leaves this machine and cannot be undone

    @property
    def is_act(self) -> bool:
        """True if a read-only server must not offer the tool."""
        return self in (Effect.SETS, Effect.ACTS, Effect.SENDS)


class Row(NamedTuple):
    """One tool or command. The function's name, types and docstring are its help in both front ends."""

    command: str  # the shell command; empty if only MCP has it
    function: str  # `module:name`; imported when it is called, because a command must start fast
    name: str = ""  # the MCP tool; empty if only the shell has it
    title: str = ""
    group: str = ""
    effect: Effect = Effect.LOOKS
    result: str = ""  # the fields of its data, or its one line of text
    shell_function: str = ""  # the shell's variant, if its parameters differ from MCP's
    shell_values: Mapping[str, Any] = {}  # arguments that the shell adds

    def call(self, function: Callable[..., Result], arguments: dict[str, Any]) -> Result:
        """Call the tool's function, and record it if it acts and PEEKABOO_RECORD is set."""
        is_one_act = self.effect.is_act and self.name not in ("", "run_steps")
        if not (is_one_act and settings().record_folder):
            return function(**arguments)
        from ..agents.report import recorded_call  # slow to import

        return recorded_call(self.name, function, arguments)

    def load(self, for_shell: bool = False) -> Callable[..., Result]:
        """Import the function that MCP, or the shell, calls."""
        module, _, name = ((for_shell and self.shell_function) or self.function).partition(":")
        function: Callable[..., Result] = getattr(import_module(f"peekaboo_min.{module}"), name)
        return function


_IMAGE = (
    "image_width, image_height (pixels), scale (pixels per point), screenshot_id (absent if its pixels "
    "cannot be clicked)"
)
_WINDOW = (
    "window_id, owner_name, pid (null if unknown), title, bounds (x, y, width, height in screen points), "
    "is_on_screen, is_focused, is_minimised, kind (window, dialog, popup, tooltip), "
    "parent_id (null if none), is_modal"
)
_EFFECT = (
    "delivered (null if unknown), changed (null if not requested or unknown), changed_rect (pixels; absent "
    "without a change), effect_ms, and if they apply window_closed and new_window (window_id, title)"
)
_POINTER = (
    f"window_id, pixel (x, y in the screenshot), point (x, y on the screen), clamped, {_EFFECT}; "
    "reached_window_id if another window received it"
)
_KEYS = f"window_id, {_EFFECT}; others_typed if keys of a person arrived in between; reason if not delivered"
_PLACE = "text, label, x, y (its centre), box, match, confidence (0 to 1)"

ROWS = (  # in the order of the help and of the README
    Row("windows", "tools.list_tools:list_windows", "list_windows", "List windows", "desktop", Effect.LOOKS,
        f"windows, front to back: {_WINDOW}", "tools.list_tools:windows"),
    Row("screenshot", "tools.look_tools:take_window_screenshot", "take_window_screenshot",
        "Take a screenshot of a window", "desktop", Effect.LOOKS,
        f"the image; window_id, bounds, {_IMAGE}; with a region also region, region_image_width, "
        "region_image_height", "frontends.commands:screenshot"),
    Row("image", "tools.capture_tools:image", "image", "Capture screens or windows", "capture", Effect.SAVES,
        f"saved_files: path, item_label, mime_type, {_IMAGE}, for a window window_id, window_title and "
        "window_index, for a screen windows (their rectangles in pixels); with return_data images: the same "
        "fields for each attached image; with a question analysis_text, model_used",
        "frontends.commands:image"),
    Row("find-text", "tools.look_tools:find_text", "find_text", "Find text in a window", "desktop",
        Effect.LOOKS, f"{_IMAGE}; found and similar: {_PLACE}; without a text count and lines"),
    Row("elements", "tools.look_tools:find_elements", "find_elements", "List a window's controls", "desktop",
        Effect.LOOKS,
        f"{_IMAGE}; count, elements: role, name, value, states, x, y, width, height (pixels)"),
    Row("wait-for", "tools.look_tools:wait_for", "wait_for", "Wait for a window", "desktop", Effect.LOOKS,
        "waited_s; for a text the fields of find_text, for closed the field closed, else the fields of a "
        "window in list_windows", shell_values={"longest_s": 600.0}),  # no client ends the call
    Row("list apps", "tools.list_tools:list_apps"),
    Row("list windows", "tools.list_tools:list_app_windows"),
    Row("list screens", "tools.list_tools:list_screens"),
    Row("", "tools.capture_tools:list_items", "list", "List apps, windows, server status", "capture",
        Effect.LOOKS,
        "application_list: app_name, pid, bundle_id (absent if none), is_active, window_count; or "
        "window_list: window_title, window_index, as requested window_id, bounds (x, y, w, h in points), "
        "is_on_screen, and target_application_info; for server_status only text"),
    Row("screenshot-app-window", "tools.capture_tools:screenshot_app_window", "screenshot_app_window",
        "Take a screenshot of an app's window", "capture", Effect.LOOKS,
        "path, uri, appName, rect (x, y, w, h in points), scale, format"),
    Row("focus", "tools.act_tools:focus_window", "focus_window", "Focus a window", "desktop", Effect.SETS,
        _WINDOW),
    Row("click", "tools.act_tools:click", "click", "Click in a window", "desktop", Effect.ACTS, _POINTER),
    Row("click-text", "tools.act_tools:click_text", "click_text", "Find a text in a window and click it",
        "desktop", Effect.ACTS, f"the fields of click; text, and similar: {_PLACE}"),
    Row("type", "tools.act_tools:type_text", "type_text", "Type text into a window", "desktop", Effect.ACTS,
        f"characters, {_KEYS}; copy_lost if a copy made during the paste may be lost"),
    Row("press", "tools.act_tools:press_key", "press_key", "Press a key in a window", "desktop", Effect.ACTS,
        f"key, {_KEYS}"),
    Row("scroll", "tools.act_tools:scroll", "scroll", "Scroll in a window", "desktop", Effect.ACTS, _POINTER),
    Row("drag", "tools.act_tools:drag", "drag", "Drag in a window", "desktop", Effect.ACTS,
        "the fields of click; to_pixel, to_point"),
    Row("move", "tools.act_tools:move_pointer", "move_pointer", "Move the pointer over a window", "desktop",
        Effect.SETS, _POINTER),
    Row("run-steps", "frontends.commands:run_steps", "run_steps", "Do several acts in one call", "desktop",
        Effect.ACTS,
        "steps: tool, outcome (done, failed, not delivered, unknown, not reached), error (its code), and the "
        "tool's fields unless null, false or empty; screenshot, if requested: the fields of "
        "take_window_screenshot",
        "frontends.commands:run_steps_of_file"),
    Row("open", "tools.act_tools:open_target", "open", "Open an app, a file or an address", "desktop",
        Effect.ACTS, f"{_WINDOW}; is_new_window, handler (the application's name)"),
    Row("analyze", "tools.capture_tools:analyze", "analyze", "Ask a model about an image", "capture",
        Effect.ASKS,
        "analysis_text, model_used, seconds, tokens_in and tokens_out (null if the provider does not report "
        "them)", "frontends.commands:analyze"),
    Row("agent", "agents.vision_agent:run_vision_agent", effect=Effect.ACTS),
    Row("report", "agents.report:report"),
    Row("keynote-agent", "agents.keynote_agent:run_keynote_agent"),
    Row("keynote open", "integrations.keynote:open_keynote", "open_keynote", "Open Keynote", "keynote",
        Effect.SETS, "`KEYNOTE_READY: slide=1, slide_width=..., slide_height=...` (points), or "
        "`KEYNOTE_READY_WITH_WARNING` with a note"),
    Row("keynote size", "integrations.keynote:get_slide_size", "get_slide_size", "Get the slide's size",
        "keynote", Effect.SETS, "`SLIDE_SIZE: width=..., height=...` (points)"),
    Row("keynote rectangle", "integrations.keynote:draw_rectangle", "draw_rectangle", "Draw a rectangle",
        "keynote", Effect.ACTS, "`RECTANGLE_OK: id=..., x=..., y=..., width=..., height=...` (points)"),
    Row("keynote text", "integrations.keynote:add_text_in_keynote", "add_text_in_keynote",
        "Write into the rectangle", "keynote", Effect.SETS, "`TEXT_OK: id=..., characters=...`"),
    Row("keynote screenshot", "integrations.keynote:screenshot_slide", "screenshot_slide", "Export slide 1",
        "keynote", Effect.SETS, "`SCREENSHOT_SAVED: path=...`"),
    Row("doctor", "tools.status:doctor"),
    Row("permissions", "tools.status:permissions"),
    Row("permissions check", "tools.status:permissions"),  # the original's name
    Row("list server_status", "tools.status:server_status"),
    Row("list permissions", "tools.status:server_status"),
    Row("stop", "automation.policy:stop"),
    Row("resume", "automation.policy:resume"),
    Row("config", "frontends.documents:client_configuration"),
    Row("desktop", "frontends.own_desktop:own_desktop"),
    Row("tools", "frontends.documents:show_tools"),
    Row("clean", "frontends.commands:clean"),
    Row("exec", "integrations.peekaboo_cli:peekaboo_exec", "peekaboo_exec", "Run the peekaboo command line",
        "exec", Effect.ACTS,
        "exit_code (null if it was killed), stdout, stderr, json (if stdout is JSON), attachments, cwd, "
        "program, version"),
    Row("gmail-login", "integrations.gmail:gmail_login"),
    Row("send-email", "integrations.gmail:send_email", "send_email", "Send an e-mail", "mail", Effect.SENDS,
        "`EMAIL_SENT: to=..., id=...`"),
)  # fmt: skip

COMMANDS = {row.command: row for row in ROWS if row.command}
TOOLS = {row.name: row for row in ROWS if row.name}


def offered_tools() -> list[Row]:
    """Return the tools that this server offers, by PEEKABOO_TOOLS, PEEKABOO_READONLY and machine.

    Raises INVALID_ARGUMENT for a name that is neither a tool nor a group.
    """
    from ..integrations.gmail import has_gmail_credentials  # slow to import

    wanted = [name.strip() for name in settings().tools.split(",") if name.strip()]
    known = {name for row in TOOLS.values() for name in (row.name, row.group)}
    for name in wanted:
        if name not in known:
            problem = f"PEEKABOO_TOOLS names {name[:40]!r}, which is not a tool or group"
            raise invalid(problem, f"choose from {', '.join(sorted(known))}")
    groups = {"capture", "desktop", *this_desktop().extra_tools}
    if has_gmail_credentials():
        groups.add("mail")
    return [
        row
        for row in TOOLS.values()
        if row.group in groups
        if not wanted or row.name in wanted or row.group in wanted
        if not (row.effect.is_act and settings().is_read_only)
    ]

"""COMMANDS: every shell command, a typed function; its docstring is its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Callable, Dict, List, Literal, Optional

from .capture import photograph_window
from .capture_plan import ImageRequest, check_dimension
from .capture_tools import AnalyzeType, screenshot_app_window
from .desktop_tools import WindowId, click, find_text, focus_window, press_key, type_text
from .gmail import send_email
from .gmail_oauth import gmail_login
from .image_files import kind_by_name, move_into_place, prepare_target, sweep, temporary_folder
from .imaging import image_result
from .keynote import add_text_in_keynote, draw_rectangle, get_slide_size, open_keynote, screenshot_slide
from .keynote_agent import run_keynote_agent
from .listing import catalogue, list_app_windows, list_displays, list_running_apps
from .matching import find_app, visible_windows, window_by_id, windows_of
from .model import Result
from .peekaboo_cli import run_peekaboo
from .platforms import this_desktop
from .probes import probe_facts
from .reference import client_configuration, tool_reference
from .settings import settings_with_env_file
from .status import doctor_result, initial_status, machine_data, permissions_data, permissions_result
from .swift_helper import build_helper
from .vision import analyze_file
from .vision_agent import run_vision_agent


def image_command(
    app: Annotated[Optional[str], "name, bundle id, PID:n or a part of the name; without it: the screens"] = None,
    path: Annotated[
        Optional[str], "a file (.png, .jpg) or a folder; without it a file in the temporary folder, for 10 minutes"
    ] = None,
    mode: Annotated[
        Optional[Literal["screen", "window", "multi", "frontmost"]], "default: window with --app, else screen"
    ] = None,
    window_title: Annotated[Optional[str], "the window with this title, or this in its title"] = None,
    window_index: Annotated[Optional[int], "the window with this index, 0 = frontmost"] = None,
    window_id: Annotated[Optional[int], "the window with this id, from `windows`"] = None,
    screen_index: Annotated[Optional[int], "only this screen, 0 = the main one"] = None,
    format: Annotated[Optional[Literal["png", "jpg"]], "default: as the path's name says, else png"] = None,
    capture_focus: Annotated[
        Literal["background", "auto", "foreground"], "foreground brings the window to the front first; default background"
    ] = "background",
    question: Annotated[Optional[str], "ask a configured model about the pictures"] = None,
    max_dimension: Annotated[Optional[int], "shrink to this many pixels on the long side"] = None,
) -> Result:
    """Photographs screens, one window, or all windows of an app, into files.

    Example: peekaboo-min image --app Safari --path shot.png
    leaves shot.png; with --mode multi it leaves shot_window0_TITLE.png, shot_window1_TITLE.png, ...
    """
    request = ImageRequest(
        app=app,
        mode=mode,
        window_title=window_title,
        window_index=window_index,
        window_id=window_id,
        screen_index=screen_index,
        kind=format,
        path=path,
        max_dimension=max_dimension,
    )
    return image_result(this_desktop(), request, capture_focus, question=question)


def list_apps_command() -> Result:
    """Lists the running applications, with their process ids and how many windows they show.

    Example: peekaboo-min list apps --json-output
    """
    return list_running_apps(this_desktop())


def list_windows_command(
    *,
    app: Annotated[str, "name, bundle id, PID:n or a part of the name"],
    include_details: Annotated[
        Optional[List[Literal["off_screen", "bounds", "ids"]]], "off_screen, bounds and ids, with commas between"
    ] = None,
) -> Result:
    """Lists an application's windows, front to back.

    Example: peekaboo-min list windows --app Safari --include-details bounds,ids
    """
    return list_app_windows(this_desktop(), app, include_details or ())


def list_screens_command() -> Result:
    """Lists the screens, the main one first, with their places and scales.

    Example: peekaboo-min list screens
    """
    return list_displays(this_desktop())


def server_status_command() -> Result:
    """Tells what the server would say of itself: version, providers, and what the system allows.

    Example: peekaboo-min list server_status --json-output
    """
    granted = permissions_data(this_desktop().permissions())
    words = "\n".join(f"{name}: {'granted' if is_granted else 'NOT granted'}" for name, is_granted in granted.items())
    return Result(f"{initial_status().strip()}\n{words}", {"permissions": granted, **machine_data()})


def permissions_command() -> Result:
    """Tells each grant: whether it is given, which application needs it, how to give it. Exits 0, 11, 12 or 13.

    Example: peekaboo-min permissions
    """
    return permissions_result(this_desktop())


def windows_command(
    app: Annotated[Optional[str], "only this app's windows"] = None,
    all: Annotated[bool, "docks, menus, minimised and tiny windows, too"] = False,
) -> Result:
    """Lists all windows, front to back: id, owner, title, bounds in screen points. The ids are what the other commands take.

    Example: peekaboo-min windows --app Safari
    """
    desktop = this_desktop()
    windows = desktop.windows() if all else visible_windows(desktop.windows())
    return catalogue(desktop, windows_of(find_app(app, desktop.apps()), windows) if app is not None else windows)


def screenshot_command(
    window_id: WindowId,
    path: Annotated[Optional[str], "the file to write, .png or .jpg; without it one in the temporary folder"] = None,
    max_dimension: Annotated[Optional[int], "shrink to this many pixels on the long side"] = None,
) -> Result:
    """Photographs one window, and remembers what its pixels mean: `click` takes pixels of this picture.

    Example: peekaboo-min screenshot 14680078 --path window.png
    leaves window.png
    """
    desktop = this_desktop()
    target = Path(path).expanduser().absolute() if path else None
    kind = kind_by_name(target) if target and not target.is_dir() else "png"
    check_dimension(max_dimension)
    if target:
        prepare_target(target)
    window = window_by_id(window_id, desktop.windows())
    shot = photograph_window(desktop, window, kind, max_dimension)
    assert shot.screenshot is not None  # a picture without a shadow has one
    if target:
        move_into_place(shot.path, target)
    data = {**shot.screenshot.as_data(), "path": str(target or shot.path)}
    return Result(f"window {window_id} of {window.app_name}: {data['path']}", data)


def analyze_command(
    image_path: Annotated[str, "the image file: .png, .jpg or .webp"],
    question: Annotated[str, "what you want to know about it"],
    provider: Annotated[Optional[AnalyzeType], "default auto: the first one of PEEKABOO_AI_PROVIDERS that is operational"] = None,
    model: Annotated[Optional[str], "default: the configured one"] = None,
) -> Result:
    """Asks a configured model about an image file. Keys may stand in a file .env in this folder.

    Example: peekaboo-min analyze shot.png "What does it say?"
    """
    settings_with_env_file(Path.cwd())
    return analyze_file(this_desktop(), image_path, question, provider, model)


def exec_command(
    args: Annotated[List[str], "the words after `peekaboo`"],
    cwd: Annotated[Optional[str], "working folder; default: a temporary one"] = None,
    timeout_seconds: Annotated[float, "then it is killed with all that it started; default 120"] = 120,
    max_attachments: Annotated[int, "how many of the images that it leaves are named; default 8"] = 8,
) -> Result:
    """Runs the Peekaboo command line: PEEKABOO_CLI_PATH, else `peekaboo`, else this one; names the images that it leaves.

    Example: peekaboo-min exec -- image --app Safari --path .
    """
    return run_peekaboo(this_desktop(), args, cwd, timeout_seconds, max_attachments)


def doctor_command(
    compile: Annotated[bool, "build the Swift helper for mouse and keyboard now (macOS)"] = False,
    probe: Annotated[bool, "try the facts about this system that we rely on; harmless; prints a report to share"] = False,
) -> Result:
    """Looks at all that is needed: programs, the display, folders, permissions; says what is missing and how to get it.

    Example: peekaboo-min doctor
    """
    if probe:
        return probe_facts(this_desktop().name)
    if compile and this_desktop().name == "macos":
        build_helper(is_forced=True)
    return doctor_result()


def clean_command() -> Result:
    """Deletes every picture and record in our temporary folder, expired or not. Files that you gave a path stay.

    Example: peekaboo-min clean
    """
    count = sweep(0)
    return Result(f"deleted {count} file(s) in {temporary_folder()}", {"deleted": count})


def config_command(
    client: Annotated[Literal["claude-code", "claude-desktop", "codex", "cursor", "gemini", "vscode"], "the MCP client"],
) -> Result:
    """Prints what to write where, so that an MCP client starts this very installation.

    Example: peekaboo-min config claude-desktop
    """
    return client_configuration(client)


def tools_command() -> Result:
    """Prints the reference of all MCP tools, as Markdown.

    Example: peekaboo-min tools > TOOLS.md
    """
    return Result(tool_reference(), {"markdown": tool_reference()})


def gmail_login_command() -> Result:
    """Lets send_email send by your Gmail account: prints an address to open, waits for your consent, keeps the token (0600).

    Needs credentials.json (an OAuth client of the kind Desktop app) in the folder that PEEKABOO_GMAIL_FOLDER names.

    Example: peekaboo-min gmail-login
    """
    return gmail_login()


COMMANDS: Dict[str, Callable[..., Result]] = {
    "image": image_command,
    "list apps": list_apps_command,
    "list windows": list_windows_command,
    "list screens": list_screens_command,
    "list server_status": server_status_command,
    "list permissions": server_status_command,
    "permissions": permissions_command,
    "windows": windows_command,
    "analyze": analyze_command,
    "screenshot-app-window": screenshot_app_window,
    "exec": exec_command,
    "focus": focus_window,
    "screenshot": screenshot_command,
    "find-text": find_text,
    "click": click,
    "type": type_text,
    "press": press_key,
    "keynote open": open_keynote,
    "keynote size": get_slide_size,
    "keynote rectangle": draw_rectangle,
    "keynote text": add_text_in_keynote,
    "keynote screenshot": screenshot_slide,
    "keynote-agent": run_keynote_agent,
    "agent": run_vision_agent,
    "gmail-login": gmail_login_command,
    "send-email": send_email,
    "config": config_command,
    "tools": tools_command,
    "doctor": doctor_command,
    "clean": clean_command,
}

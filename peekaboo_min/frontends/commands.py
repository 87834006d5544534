"""run_steps, clean, and the shell's own form of some tools."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Callable, Literal, Optional

from ..automation import capture
from ..automation.image import ImageRequest, image_result
from ..automation.policy import check_may_act, stop_file
from ..automation.steps import MOST_STEPS, OPENED, Step, perform_steps
from ..core.errors import PeekabooError, file_errors, invalid
from ..core.log import OLDER_LOGS
from ..core.models import Result
from ..core.settings import settings, settings_with_env_file
from ..core.text import parsed_json
from ..desktop.matching import window_named
from ..desktop.select import check_arguments, this_desktop
from ..system import files
from ..system.files import absolute_path, new_temporary_path
from ..system.saved_images import kind_by_name
from ..tools.list_tools import AnalyzeType, Region, RegionScreenshotId, WindowId
from ..tools.look_tools import take_window_screenshot
from ..tools.table import TOOLS, offered_tools
from .arguments import checked_arguments, read_signature

MaxDimension = Annotated[Optional[int], "shrink to this many pixels on the long side"]


def screenshot(
    window_id: WindowId,
    region: Region = None,
    screenshot_id: RegionScreenshotId = None,
    path: Annotated[Optional[str], "a .png or .jpg file, or - for stdout; default: a temporary file"] = None,
    max_dimension: MaxDimension = None,
) -> Result:
    """Take a screenshot of a window and save it.

    `click` takes pixels of this image. With --region X,Y,WIDTH,HEIGHT save only that part; `click` still
    takes pixels of the whole screenshot.

    Example: peekaboo-min screenshot 14680078 --path window.png
    leaves window.png
    """
    desktop = this_desktop()
    target = absolute_path(path) if path else None
    kind = kind_by_name(target) if target and not os.path.isdir(target) else "png"
    capture.check_dimension(max_dimension)
    if region is not None and kind != "png":
        raise invalid("a region is saved as png", "end the path in .png")
    image = capture.capture_window_or_region(desktop, window_id, kind, region, screenshot_id)
    image = capture.shrunk(desktop, image, max_dimension)
    file = target or new_temporary_path("peekaboo", kind)
    (image,) = capture.save_images([image], [file], by_umask=target is not None)
    image = capture.recorded(desktop, image, supersedes_older=True)
    data = image.window_data()
    size = f"{data['image_width']}x{data['image_height']} pixels, scale {data['scale']:g}"
    whole = f"{image.subject.window} ({size}, screenshot_id {data['screenshot_id']})"
    return Result(f"{image.region_text() or whole}: {image.path}", {**data, "path": image.path})


def image(
    app: Annotated[Optional[str], "the application: name, bundle id, PID:n or a part of the name"] = None,
    path: Annotated[
        Optional[str],
        "a file (.png, .jpg), a folder, or - for stdout; default: a temporary file. One image is saved at "
        "exactly this path; several get suffixes, such as _display0_main or _window1_TITLE",
    ] = None,
    mode: Annotated[
        Optional[Literal["screen", "window", "multi", "frontmost"]],
        "default: window if an app is given, else screen",
    ] = None,
    format: Annotated[Optional[Literal["png", "jpg"]], "default: by the path's extension, else png"] = None,
    capture_focus: Annotated[
        Literal["background", "foreground", "auto"],
        "foreground: bring the window to the front before the capture; default background",
    ] = "background",
    question: Annotated[Optional[str], "ask the first operational AI provider about the images"] = None,
    window_id: Annotated[Optional[int], "a window's id, instead of an app"] = None,
    max_dimension: MaxDimension = None,
    window_title: Annotated[Optional[str], "the window with this title, or with this in its title"] = None,
    window_index: Annotated[Optional[int], "the window with this index, 0 = frontmost"] = None,
    screen_index: Annotated[Optional[int], "only this screen, 0 = the main one"] = None,
) -> Result:
    """Capture screens, one window, or all windows of an app, as files.

    Example: peekaboo-min image --app Safari --path shot.png
    leaves shot.png; with --mode multi and two windows, shot_window0_TITLE.png and shot_window1_TITLE.png
    """
    window = (window_title, window_index, window_id)
    request = ImageRequest(app, mode, *window, screen_index, format, path, max_dimension, in_shell=True)
    return image_result(this_desktop(), request, capture_focus, question=question)


_STEP_TOOLS = (
    *("focus_window", "click", "click_text", "type_text", "press_key", "scroll", "drag", "move_pointer"),
    "wait_for",
)
_STEP_HINT = 'give a list such as [{"tool": "click_text", "window_id": 7, "text": "Save"}]'


def run_steps(
    steps: Annotated[list[dict[str, Any]], "at most 20, in order"],
    screenshot: Annotated[bool, "also return a screenshot of the last window; default false"] = False,
) -> Result:
    """Do several acts and waits in one call, such as filling a form; return the outcome of each.

    A step is a tool with its parameters: {"tool": "click_text", "window_id": 7, "text": "Save"}. Tools:
    focus_window, click, click_text, type_text, press_key, scroll, drag, move_pointer, wait_for. All are
    checked first. Stops at the first that fails or is not delivered. "window_id": "opened" is the window that
    an earlier step opened, or that wait_for found. Pixels are of your last screenshots: if the window changes
    meanwhile, use click_text. Ends within 50 seconds.

    Example: peekaboo-min run-steps steps.json
    """
    offered = {row.name for row in offered_tools()}
    tools = [name for name in _STEP_TOOLS if name in offered]
    return _run_steps(steps, tools, take_window_screenshot if screenshot else None)


def run_steps_of_file(
    file: Annotated[str, "a JSON file with a list of steps, or - for stdin"],
    *,
    path: Annotated[Optional[str], "save a screenshot of the last window there: a .png or .jpg file"] = None,
) -> Result:
    """Do the acts and waits in a JSON file, at most 20; stop at the first that fails.

    The file has a list of steps: [{"tool": "click_text", "window_id": "Form", "text": "Save"}]. Tools and
    parameters have MCP's names; a window_id may also be a window's name. "opened" is the window that an
    earlier step opened, or that wait_for found.

    Example: peekaboo-min run-steps steps.json
    """
    if path:
        kind_by_name(absolute_path(path))  # report a bad name before the acts
    stdin = sys.stdin.buffer if sys.stdin else io.BytesIO()
    with file_errors(absolute_path(file)):
        content = stdin.read() if file == "-" else absolute_path(file).read_bytes()
    try:
        steps = parsed_json(content)
    except ValueError as e:
        raise invalid(f"{file} is not JSON: {e}", _STEP_HINT) from e
    return _run_steps(steps, _STEP_TOOLS, partial(screenshot, path=path) if path else None, takes_names=True)


def _run_steps(
    steps: Any, tools: Sequence[str], look: Optional[Callable[[int], Result]], takes_names: bool = False
) -> Result:
    check_may_act("run_steps")
    if not isinstance(steps, list) or not 1 <= len(steps) <= MOST_STEPS:
        raise invalid(f"there are not 1 to {MOST_STEPS} steps", _STEP_HINT)
    checked: list[Step] = []
    for number, step in enumerate(steps, 1):
        try:
            checked.append(_checked_step(step, tools, takes_names))
        except PeekabooError as e:
            e.message = f"step {number}: {e.message}; nothing was done"
            raise
    for opener, following in zip(checked, checked[1:]):
        # an act reports the window that it opened only if it verifies its effect, which takes 1 to 2 s
        parameters = {parameter.name for parameter in read_signature(TOOLS[opener.tool].load()).parameters}
        if following.uses_opened and not opener.uses_opened and "verify" in parameters:
            opener.arguments["verify"] = True
    return perform_steps(this_desktop(), checked, look)


def _checked_step(step: Any, tools: Sequence[str], takes_names: bool) -> Step:
    """Check a step as its tool would, without acting. Raises INVALID_ARGUMENT, and window_named's errors."""
    given = dict(step) if isinstance(step, dict) else {}
    tool = given.pop("tool", None)
    if tool not in tools:
        raise invalid(f"its tool is {tool!r:.40}", f"give one of {', '.join(tools)}")
    function = TOOLS[tool].load()
    window_id = given.get("window_id")
    uses_opened = window_id == OPENED
    if uses_opened:
        given["window_id"] = 1  # for the checks: the id is known only when an earlier step is done
    elif takes_names and isinstance(window_id, str):
        scene = this_desktop().snapshot(with_minimised=True)
        given["window_id"] = window_named(window_id, scene, acts=True).window_id
    arguments = checked_arguments(read_signature(function), given)
    check_arguments(function, arguments)
    if uses_opened:
        arguments["window_id"] = OPENED
    return Step(tool, partial(TOOLS[tool].call, function), arguments)


def analyze(
    image_path: Annotated[str, "the image file: .png, .jpg or .webp"],
    question: Annotated[str, "the question about the image"],
    provider: Annotated[
        AnalyzeType, "default auto: the first operational one of PEEKABOO_AI_PROVIDERS"
    ] = "auto",
    model: Annotated[Optional[str], "default: the configured one"] = None,
) -> Result:
    """Ask a configured model about an image file. Keys may be in a file .env in this folder.

    Example: peekaboo-min analyze shot.png "What does it say?"
    """
    from ..ai.client import analyze_file

    settings_with_env_file()
    return analyze_file(this_desktop(), image_path, question, provider, (model or "").strip() or None)


def clean(
    all: Annotated[
        bool, "also the state folder, the log and Gmail's token: all that we left outside your own folders"
    ] = False,
) -> Result:
    """Delete every image and record in our temporary folder that is not in use.

    Files saved to a path of your choice stay. With --all, to uninstall, it also deletes everything else that
    we left in this account.

    Example: peekaboo-min clean
    """
    if not all:
        count = files.sweep(0)
        return Result(f"deleted {count} file(s) in {files.temporary_folder()}", {"deleted": count})
    from ..integrations.gmail import gmail_folder  # slow to import

    log = files.default_log_file()  # not the file that PEEKABOO_LOG_FILE names, which may hold other things
    # the user's own files in our folders: the stop file, which only the user may remove, and Gmail's client
    kept = [path for path in (stop_file(), gmail_folder() / "credentials.json") if path.exists()]
    logs = [log, *(log.with_name(log.name + suffix) for suffix in OLDER_LOGS)]
    folders = [str(files.temporary_folder()), str(files.state_folder())]
    staying = [str(path) for path in files.remove_all(kept, [gmail_folder() / "token.json", *logs])]
    rest = f"; kept, because they are yours or in use: {', '.join(staying)}" if staying else ""
    if settings().log_file:
        rest += f"; the log {files.log_file()} is yours to delete"
    text = f"deleted {', '.join(folders)} and {log}{rest}; agents' runs and logs are where you started them"
    return Result(text, {"folders": folders, "log": str(log), "kept": staying})

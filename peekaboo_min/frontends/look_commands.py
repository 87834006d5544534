"""The shell's commands that look: windows, list, image."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Optional

from ..automation.listing import catalogue, list_app_windows, list_displays, list_running_apps
from ..core.errors import invalid
from ..core.models import Result
from ..desktop.matching import catalogue_windows, find_app, windows_of
from ..desktop.select import this_desktop
from ..system.files import new_temporary_path


def list_apps_command() -> Result:
    """Lists the running applications, with their process ids and how many windows they show.

    Example: peekaboo-min list apps --json-output
    """
    return list_running_apps(this_desktop())


def list_windows_command(
    *,
    app: Annotated[str, "name, bundle id, PID:n or a part of the name"],
    include_details: Annotated[
        Optional[list[Literal["off_screen", "bounds", "ids"]]],
        "off_screen, bounds and ids, with commas between",
    ] = None,
) -> Result:
    """Lists an application's windows, front to back.

    Example: peekaboo-min list windows --app Safari --include-details bounds,ids
    """
    return list_app_windows(this_desktop(), app, include_details or ())


def list_screens_command() -> Result:
    """Lists the screens, the main one first, with their bounds and scales.

    Example: peekaboo-min list screens
    """
    return list_displays(this_desktop())


def windows_command(
    app: Annotated[Optional[str], "only this app's windows"] = None,
    all: Annotated[bool, "include docks, menus, minimised and tiny windows"] = False,
) -> Result:
    """Lists all windows, front to back: id, owner, title, bounds in screen points. The ids are what the
    other commands take.

    Example: peekaboo-min windows --app Safari
    """
    desktop = this_desktop()
    scene = desktop.snapshot()
    windows = list(scene.windows) if all else catalogue_windows(scene)
    return catalogue(
        desktop, scene, windows_of(find_app(app, scene.apps), windows) if app is not None else windows
    )


def image_command(
    app: Annotated[
        Optional[str], "name, bundle id, PID:n or a part of the name; without it: the screens"
    ] = None,
    path: Annotated[
        Optional[str],
        "a file (.png, .jpg), a folder, or - for stdout; without it a temporary file, for 10 minutes",
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
        Literal["background", "auto", "foreground"],
        "foreground brings the window to the front first; default background",
    ] = "background",
    question: Annotated[Optional[str], "ask a configured model about the images"] = None,
    max_dimension: Annotated[Optional[int], "shrink to this many pixels on the long side"] = None,
) -> Result:
    """Captures screens, one window, or all windows of an app, as files.

    Example: peekaboo-min image --app Safari --path shot.png
    leaves shot.png; with --mode multi it leaves shot_window0_TITLE.png, shot_window1_TITLE.png, ...
    """
    # imported here: the listings above must start at once
    from ..automation.image import ImageRequest, image_result, piped

    is_piped = path == "-"
    if is_piped and question is not None:
        raise invalid("stdout cannot hold both an image and an answer", "give another --path")
    request = ImageRequest(
        app, mode, window_title, window_index, window_id, screen_index, format,
        str(new_temporary_path("peekaboo", format or "png")) if is_piped else path, max_dimension,
    )  # fmt: skip
    result = image_result(this_desktop(), request, capture_focus, question=question)
    return piped(result, [Path(row["path"]) for row in result.data["saved_files"]]) if is_piped else result

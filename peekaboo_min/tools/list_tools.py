"""The tools that list, and shared parameters; few imports, to start fast."""

from __future__ import annotations

from typing import Annotated, Literal, Optional

from ..automation import listing
from ..core import models
from ..core.models import Result
from ..desktop.select import this_desktop

WindowId = Annotated[int, "its id, from list_windows"]
Region = Annotated[Optional[list[float]], "only x, y, width, height, in pixels of the whole screenshot"]
RegionScreenshotId = Annotated[Optional[str], "the region's screenshot; default: the last"]
Role = Annotated[Optional[str], "only this role: button..."]
X = Annotated[float, "pixels from the left edge"]
Y = Annotated[float, "pixels from the top edge"]
ScreenshotId = Annotated[Optional[str], "the screenshot of x and y; default: the last"]
Button = Annotated[models.Button, "default left"]
Clicks = Annotated[int, "1, 2 or 3; default 1"]
Verify = Annotated[bool, "report a visible change (1-2 s); default false"]
AnalyzeType = Literal["auto", "ollama", "openai", "gemini", "anthropic", "ocr"]
WindowDetails = Annotated[
    Optional[list[Literal["off_screen", "bounds", "ids"]]], "off_screen, bounds and ids, with commas between"
]


def list_windows() -> Result:
    """List the open windows of all apps on the desktop, front to back: window ids, titles, places and sizes.

    Call it first: other tools take a window_id. Menus, dialogs, popups are windows, too.

    Example: peekaboo-min windows --app Safari
    """
    return listing.window_catalogue(this_desktop())


def windows(
    app: Annotated[Optional[str], "only this app's windows"] = None,
    all: Annotated[bool, "include docks, menus, minimised and tiny windows"] = False,
) -> Result:
    """List the windows, front to back: id, owner, title, bounds in screen points.

    The other commands take these ids.

    Example: peekaboo-min windows --app Safari
    """
    return listing.window_catalogue(this_desktop(), app, all)


def list_apps() -> Result:
    """List the running applications, with their process ids and how many windows they show.

    Example: peekaboo-min list apps --json-output
    """
    return listing.running_apps(this_desktop())


def list_app_windows(
    *,
    app: Annotated[str, "name, bundle id, PID:n or a part of the name"],
    include_details: WindowDetails = None,
) -> Result:
    """List an application's windows, front to back.

    Example: peekaboo-min list windows --app Safari --include-details bounds,ids
    """
    return listing.app_windows(this_desktop(), app, include_details or [])


def list_screens() -> Result:
    """List the screens, the main one first, with their bounds and scales.

    Example: peekaboo-min list screens
    """
    return listing.screens(this_desktop())

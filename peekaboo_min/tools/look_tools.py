"""The tools that look at one window: screenshot, find, wait."""

from __future__ import annotations

from typing import Annotated, Optional

from ..automation import capture, find, wait
from ..core.models import Result
from ..desktop.select import this_desktop
from .list_tools import Region, RegionScreenshotId, Role, WindowId


def take_window_screenshot(
    window_id: WindowId, region: Region = None, screenshot_id: RegionScreenshotId = None
) -> Result:
    """Take a screenshot of a window, to look at what an app shows on the screen; return the image.

    Computer use, desktop GUI control, mouse, keyboard: see a picture (JPEG, at most 1568 pixels). click takes
    its pixels, also with a region (full resolution).

    Example: peekaboo-min screenshot 14680078 --path window.png
    """
    desktop = this_desktop()
    image = capture.capture_window_or_region(desktop, window_id, "jpg", region, screenshot_id)
    image = capture.recorded(desktop, capture.for_client(desktop, image), supersedes_older=True)
    text = image.region_text() or str(image.subject.window)
    return Result(text, image.window_data(), (image.content,))


def find_text(
    window_id: WindowId,
    text: Annotated[
        Optional[str], "a label, or whole words of one; case is ignored; default: every line"
    ] = None,
    *,
    region: Region = None,
    screenshot_id: RegionScreenshotId = None,
    role: Role = None,
) -> Result:
    """Find where a text, word, label or phrase is in a window by OCR, or read what a page or dialog says.

    Locates it without a model: x and y of each place (coordinates for click) and the screenshot_id. Whole
    labels come first, then parts of longer labels; similar text is listed apart. Without a text: every line,
    at most 200. For buttons and fields: find_elements.

    Example: peekaboo-min find-text 14680078 "Sign the book"
    """
    return find.find_text(this_desktop(), window_id, text, region, screenshot_id, role)


def find_elements(
    window_id: WindowId,
    text: Annotated[Optional[str], "only elements with this in their name or value; case is ignored"] = None,
    role: Role = None,
) -> Result:
    """List the buttons, text fields, checkboxes, links and other controls of a window, with their values.

    Inspects the user interface by its accessibility tree: is a checkbox ticked, a field focused, a button
    disabled? At most 200, in reading order, such as button "Save" 120,48 [focused]. The numbers are x and y
    for click, with the screenshot_id of the result. For an app without a tree: find_text.

    Example: peekaboo-min elements 14680078 --role button
    """
    return find.find_elements(this_desktop(), window_id, text, role)


def wait_for(
    window_id: Annotated[Optional[int], "its id; give this or app"] = None,
    app: Annotated[Optional[str], "name or bundle id: any of its windows"] = None,
    text: Annotated[Optional[str], "until the window shows this text: whole words, any case"] = None,
    role: Role = None,
    title: Annotated[Optional[str], "until a window title contains this text"] = None,
    closed: Annotated[bool, "until the window, or the app's last, is gone; default false"] = False,
    still: Annotated[bool, "until it has not changed for a second; default false"] = False,
    timeout_s: Annotated[float, "seconds, 1 to 45 (shell: 600); default 10"] = 10.0,
    longest_s: float = 45.0,  # an MCP call ends within 50 s
) -> Result:
    """Wait until a window shows a text or a title, opens, closes or stops changing.

    Pause until a page has loaded, a download has finished, a dialog or new window appears or is gone. Give
    one of text (the result has its x and y), title, closed, still; or only an app, for its first window.
    Else the error is TIMEOUT, with the last observation.

    Example: peekaboo-min wait-for --window-id 14680078 --text "Saved"
    """
    desktop = this_desktop()
    return wait.wait_for(desktop, window_id, app, text, role, title, closed, still, timeout_s, longest_s)

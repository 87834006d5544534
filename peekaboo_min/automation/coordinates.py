"""The coordinate records: what each window screenshot showed, as files."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Optional

from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.models import ImageInfo, Point, Rect, Window, as_plain
from ..system.files import temporary_folder, write_privately

# Parameters of tools that take a window and its pixels.
WindowId = Annotated[int, "the id from list_windows"]
Region = Annotated[
    Optional[list[float]], "only this part: x, y, width, height in pixels of a screenshot of the whole window"
]
RegionOf = Annotated[
    Optional[str], "the screenshot whose pixels the region is in; default: the window's last"
]

_HINT = "take a screenshot of the window first, and use its pixels"
_ROUNDING = 2  # pixels, between images of one scale


class Screenshot(NamedTuple):
    """The coordinate record: what a screenshot of a window showed, to click its pixels later."""

    screenshot_id: str
    window_id: int
    app_name: str
    pid: Optional[int]
    bounds: Rect
    image_width: int
    image_height: int
    taken_at: float  # seconds since 1970
    identity: str = ""  # Window.identity at that time
    supersedes_older: bool = False  # True where older screenshots of the window count by their ids only

    def to_point(self, pixel: Point, bounds: Rect) -> Point:
        """The screen point under a pixel, for a window of this size that may have moved to `bounds`."""
        return Point(
            bounds.x + pixel.x * bounds.width / self.image_width,
            bounds.y + pixel.y * bounds.height / self.image_height,
        )


def save_record(session: str, window: Window, info: ImageInfo, supersedes_older: bool = False) -> Screenshot:
    """The record that an image of `info`'s size shows `window`, kept for clicks by its pixels."""
    shown = (window.window_id, window.app_name, window.pid, window.bounds, info.width, info.height)
    screenshot = Screenshot(os.urandom(8).hex(), *shown, time.time(), window.identity, supersedes_older)
    path = _record_path(session, window.window_id, screenshot.screenshot_id)
    write_privately(path, json.dumps(as_plain(screenshot)))
    return screenshot


def forget_records(session: str, window_id: int) -> None:
    """Delete the records of a window: a click needs a new screenshot."""
    for path in temporary_folder().glob(_record_path(session, window_id, "*").name):
        path.unlink(missing_ok=True)


def find_record(session: str, window: Window, screenshot_id: Optional[str] = None) -> Screenshot:
    """The record named by `screenshot_id`, else the window's last one; valid for the window as it is now.

    A window that moved since is fine. Raises STALE_SCREENSHOT for no record, a resized window, another owner,
    an image not of the window's shape; without a screenshot_id for images of different scales, but for those
    that a later one supersedes.
    """
    if screenshot_id is not None and not re.fullmatch(r"[0-9a-f]{16}", screenshot_id):
        raise invalid("screenshot_id is 16 hexadecimal digits", _HINT)
    paths = temporary_folder().glob(_record_path(session, window.window_id, screenshot_id or "*").name)
    records = [record for record in map(_read, paths) if record]
    if not records:
        which = f"no screenshot {screenshot_id} of" if screenshot_id else "no screenshot of"
        raise _stale(f"there is {which} window {window.window_id}", _HINT)
    record = max(records, key=lambda record: record.taken_at)
    problem = _problem_of(record, window)
    if problem:
        raise _stale(problem, "take a new one, and use its pixels")
    if screenshot_id is None:
        started_at = max((other.taken_at for other in records if other.supersedes_older), default=0.0)
        _check_one_scale(record, window, [other for other in records if other.taken_at >= started_at])
    return record


def find_region(
    session: str, window: Window, region: Optional[Sequence[float]], screenshot_id: Optional[str]
) -> Optional[tuple[Screenshot, Rect]]:
    """A part of a window as whole pixels of a screenshot, and that screenshot; None where none is given.

    region: x, y, width and height in pixels of a screenshot: of this id, else the window's last.
    Raises INVALID_ARGUMENT for a region that is not in it, and as find_record does.
    """
    if region is None and screenshot_id is not None:
        raise invalid("a screenshot_id is given without a region", "leave it out, or give the region too")
    if region is None:
        return None
    if len(region) != 4 or min(region[2:]) <= 0:
        raise invalid("region is not x,y,width,height", "give 4 numbers, like 100,50,300,200")
    record = find_record(session, window, screenshot_id)
    width, height = record.image_width, record.image_height
    inside = Rect(*region).whole().clipped(Rect(0, 0, width, height))
    if inside is None:
        raise invalid("region is outside the window's screenshot", f"that is {width}x{height} pixels")
    return record, inside


def _problem_of(record: Screenshot, window: Window) -> str:
    """Why a record is not valid for the window as it is now; empty when it is."""
    which = f"window {window.window_id}"
    # the window server gives a closed window's id to another one
    if (record.app_name, record.pid) != (window.app_name, window.pid):
        return f"{which} now belongs to {window.app_name or 'another program'}"
    if record.identity != window.identity:
        return f"{which} is another one than at its last screenshot"
    if not record.bounds.has_size_of(window.bounds):
        return f"{which} was resized since its last screenshot"
    scale_x = record.image_width / window.bounds.width
    scale_y = record.image_height / window.bounds.height
    difference = abs(scale_x - scale_y)
    if difference > 0.02 * max(scale_x, scale_y) and difference * window.bounds.height > 1.5:
        return f"the screenshot of {which} does not have its shape (a sheet, a shadow?)"
    return ""


def _check_one_scale(record: Screenshot, window: Window, records: Sequence[Screenshot]) -> None:
    """Without an id it is not known which of several images of the window the pixels were read from."""
    live = [
        other
        for other in sorted(records, key=lambda other: other.taken_at)
        if other.bounds.has_size_of(window.bounds) and other.identity == window.identity
    ]
    expected_width = record.image_width / record.bounds.width
    if any(abs(other.image_width - expected_width * other.bounds.width) > _ROUNDING for other in live):
        ids = {f"{other.image_width}x{other.image_height}": other.screenshot_id for other in live}
        shown = ", ".join(f"{screenshot_id} ({size})" for size, screenshot_id in ids.items())
        hint = "pass the screenshot_id of the one whose pixels these are; or take a new one with "
        hint += "take_window_screenshot (in the shell: screenshot), which settles it"
        raise _stale(f"window {window.window_id} has screenshots of different scales: {shown}", hint)


def _record_path(session: str, window_id: int, screenshot_id: str) -> Path:
    return temporary_folder() / f"record_{session}_{window_id}_{screenshot_id}.json"


def _read(path: Path) -> Optional[Screenshot]:
    """A record; None for one that is swept in this moment, or is not what we write."""
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return Screenshot(**{**data, "bounds": Rect(**data["bounds"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _stale(message: str, hint: str) -> PeekabooError:
    return PeekabooError(ErrorCode.STALE_SCREENSHOT, message, hint)

"""Coordinate records: a file per window screenshot, for clicks by its pixels."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.log import open_own_file
from ..core.models import ImageInfo, Point, Rect, Window, as_plain
from ..system.files import sweep, temporary_folder, write_privately

RegionNumbers = Optional[Sequence[float]]  # x, y, width, height, in pixels of a screenshot


class Screenshot(NamedTuple):
    """The coordinate record: the window as a screenshot showed it."""

    screenshot_id: str
    window_id: int
    app_name: str
    pid: Optional[int]
    bounds: Rect
    image_width: int
    image_height: int
    identity: str = ""  # Window.identity at that time
    supersedes_older: bool = False  # True if a click without a screenshot_id ignores older screenshots
    number: int = 0  # counts the window's screenshots; two that are taken at once may have the same

    @property
    def scale(self) -> float:
        """Return the image's pixels per screen point."""
        return round(self.image_width / self.bounds.width, 4)

    def to_points(self, pixels: Sequence[Point], bounds: Rect) -> tuple[Point, ...]:
        """Convert pixels to screen points. The window may have moved to `bounds`, but not been resized."""
        width, height = self.image_width, self.image_height
        points = ((x * bounds.width / width, y * bounds.height / height) for x, y in pixels)
        return tuple(Point(bounds.x + x, bounds.y + y) for x, y in points)


def save_record(session: str, window: Window, info: ImageInfo, supersedes_older: bool = False) -> Screenshot:
    """Save and return the record of an image of `window` that has `info`'s size, for clicks by its pixels."""
    sweep()  # before it is saved: no expired record stays beside a newer one
    shown = (window.window_id, window.app_name, window.pid, window.bounds, info.width, info.height)
    number = 1 + max((other.number for other in _records(session, window.window_id)), default=0)
    screenshot_id = os.urandom(8).hex()
    record = Screenshot(screenshot_id, *shown, window.identity, supersedes_older, number)
    write_privately(_record_path(session, window.window_id, screenshot_id), json.dumps(as_plain(record)))
    return record


def find_record(session: str, window: Window, screenshot_id: Optional[str] = None) -> Screenshot:
    """Return the record of `screenshot_id`, or the window's newest one, if it is valid for the window now.

    The window may have moved. Raises STALE_SCREENSHOT if there is no record, if the window's size, shape or
    owner changed, or if no screenshot_id is given and the window's screenshots have different scales.
    """
    if screenshot_id is not None and not re.fullmatch(r"[0-9a-f]{16}", screenshot_id):
        raise invalid("screenshot_id must have 16 hexadecimal digits", "copy it from the screenshot")
    records = _records(session, window.window_id, screenshot_id or "*")
    if not records:
        which = f"no screenshot {screenshot_id} of" if screenshot_id else "no screenshot of"
        raise PeekabooError(ErrorCode.STALE_SCREENSHOT, f"there is {which} window {window.window_id}")
    record = max(records, key=lambda record: record.number)
    if problem := _problem_of(record, window):
        raise PeekabooError(ErrorCode.STALE_SCREENSHOT, problem)
    if screenshot_id is None:
        first = max((other.number for other in records if other.supersedes_older), default=0)
        _check_one_scale(record, window, [other for other in records if other.number >= first])
    return record


def find_region(
    session: str, window: Window, region: RegionNumbers, screenshot_id: Optional[str]
) -> Optional[tuple[Screenshot, Rect]]:
    """Return the screenshot and the rectangle of `region` in whole pixels; None without a region.

    region: x, y, width, height in pixels of the screenshot with this id, or of the window's newest one.
    Raises INVALID_ARGUMENT if the region is outside the image, and the errors of find_record.
    """
    if region is None:
        if screenshot_id is not None:
            raise invalid("a screenshot_id is given without a region", "omit it, or add the region")
        return None
    if len(region) != 4 or min(region[2:]) <= 0 or max(map(abs, region)) > 1e9:
        raise invalid("region is not x,y,width,height", "give 4 numbers, like 100,50,300,200")
    record = find_record(session, window, screenshot_id)
    width, height = record.image_width, record.image_height
    inside = Rect(*region).whole().clipped(Rect(0, 0, width, height))
    if inside is None:
        raise invalid("region is outside the window's screenshot", f"stay within its {width}x{height} pixels")
    return record, inside


def _problem_of(record: Screenshot, window: Window) -> str:
    """Return why the record is not valid for the window now, or an empty text."""
    which = f"window {window.window_id}"
    # the window server reuses the ids of closed windows
    if (record.app_name, record.pid) != (window.app_name, window.pid):
        return f"{which} now belongs to {window.app_name or 'another program'}"
    if record.identity != window.identity:
        return f"{which} is not the window of its last screenshot: its id was reused"
    if not record.bounds.has_size_of(window.bounds):
        return f"{which} was resized since its last screenshot"
    scales = (record.image_width / window.bounds.width, record.image_height / window.bounds.height)
    difference = max(scales) - min(scales)
    if difference > 0.02 * max(scales) and difference * window.bounds.height > 1.5:
        return f"the screenshot of {which} does not have its shape; it may include a shadow"
    return ""


def _check_one_scale(record: Screenshot, window: Window, records: Sequence[Screenshot]) -> None:
    live = [other for other in records if other.bounds.has_size_of(window.bounds)]
    live = [other for other in live if other.identity == window.identity]
    expected_width = record.image_width / record.bounds.width
    # images of one scale differ by up to 2 pixels
    if any(abs(other.image_width - expected_width * other.bounds.width) > 2 for other in live):
        live.sort(key=lambda other: other.number)  # of each size, show the newest
        ids = {f"{other.image_width}x{other.image_height}": other.screenshot_id for other in live}
        shown = ", ".join(f"{screenshot_id} ({size})" for size, screenshot_id in ids.items())
        hint = "pass the screenshot_id of the image that the pixels are from, or take_window_screenshot again"
        message = f"window {window.window_id} has screenshots of different scales: {shown}"
        raise PeekabooError(ErrorCode.STALE_SCREENSHOT, message, hint)


def _record_path(session: str, window_id: int, screenshot_id: str) -> Path:
    return temporary_folder() / f"record_{session}_{window_id}_{screenshot_id}.json"


def _records(session: str, window_id: int, screenshot_id: str = "*") -> list[Screenshot]:
    paths = temporary_folder().glob(_record_path(session, window_id, screenshot_id).name)
    return [record for record in map(_read, paths) if record]


def _read(path: Path) -> Optional[Screenshot]:
    try:
        with open(open_own_file(path, os.O_RDONLY), encoding="utf-8") as f:
            data: dict[str, Any] = json.load(f)
        return Screenshot(**{**data, "bounds": Rect(**data["bounds"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None

"""The coordinate records: what each window photograph showed, as files."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import Optional

from ..core.errors import ErrorCode, PeekabooError
from ..core.models import ImageInfo, Rect, Screenshot, Window
from ..system.files import temporary_folder, write_privately

_HINT = "take a screenshot of the window first, and use its pixels"


def keep_record(window: Window, info: ImageInfo) -> Screenshot:
    """Record that a picture of `info`'s size shows `window`, and return the record with its new id."""
    screenshot = Screenshot(
        screenshot_id=os.urandom(8).hex(),
        window_id=window.window_id,
        app_name=window.app_name,
        pid=window.pid,
        bounds=window.bounds,
        image_width=info.width,
        image_height=info.height,
        taken_at=time.time(),
    )
    write_privately(_record_path(window.window_id, screenshot.screenshot_id), json.dumps(asdict(screenshot)))
    return screenshot


def find_record(window: Window, screenshot_id: Optional[str] = None) -> Screenshot:
    """The record named by `screenshot_id`, else the last one of the window; still true for the window as it is now.

    A window that moved since is fine. Raises STALE_SCREENSHOT for no record, a resized window, another owner, and
    for a picture that is not the window's shape.
    """
    if screenshot_id is not None and not re.fullmatch(r"[0-9a-f]{16}", screenshot_id):
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, "screenshot_id is 16 hexadecimal digits", hint=_HINT)
    paths = temporary_folder().glob(_record_path(window.window_id, screenshot_id or "*").name)
    records = [record for record in map(_read, paths) if record]
    if not records:
        which = f"no screenshot {screenshot_id} of" if screenshot_id else "no screenshot of"
        raise PeekabooError(
            ErrorCode.STALE_SCREENSHOT, f"there is {which} window {window.window_id}", hint=_HINT
        )
    record = max(records, key=lambda one: one.taken_at)
    # the window server gives a closed window's id to the next one
    if (record.app_name, record.pid) != (window.app_name, window.pid):
        raise _stale(f"window {window.window_id} now belongs to {window.app_name}")
    if not record.bounds.has_size_of(window.bounds):
        raise _stale(f"window {window.window_id} was resized since its last screenshot")
    scale_x = record.image_width / window.bounds.width
    scale_y = record.image_height / window.bounds.height
    if (
        abs(scale_x - scale_y) > 0.02 * max(scale_x, scale_y)
        and abs(scale_x - scale_y) * window.bounds.height > 1.5
    ):
        raise _stale(
            f"the screenshot of window {window.window_id} has not the window's shape (a sheet, a shadow?)"
        )
    return record


def _record_path(window_id: int, screenshot_id: str) -> Path:
    return temporary_folder() / f"record_{window_id}_{screenshot_id}.json"


def _read(path: Path) -> Optional[Screenshot]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Screenshot(**{**data, "bounds": Rect(**data["bounds"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None  # swept, or half written, in this moment


def _stale(message: str) -> PeekabooError:
    return PeekabooError(ErrorCode.STALE_SCREENSHOT, message, hint="take a new one, and use its pixels")

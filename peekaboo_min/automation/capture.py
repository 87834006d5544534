"""Take screenshots of displays and windows, and record what each pixel means."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

from ..ai.images import fit_for_client, resized
from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError, WindowMoves, check_range
from ..core.log import log_debug
from ..core.models import Display, ImageData, ImageInfo, Rect, Scene, Window
from ..desktop.base import Desktop
from ..desktop.matching import cover_of
from ..system.files import sweep, write_all
from ..system.images import (
    Bitmap,
    changed_rect,
    image_file,
    model_size,
    prepare_target,
    read_bitmap,
    whole_image,
)
from .coordinates import Screenshot, find_record, forget_records, save_record

_TRIES = 3
_CAPTURE_SETTLE_S = 0.15
_PAINT_S, _PAINT_POLL_S = 2.0, 0.15
_NOT_CLICKABLE = (
    "the window could not be captured by itself: the image shows the window's rectangle on the screen, "
    "has no screenshot_id, and its pixels cannot be clicked"
)


class Subject(NamedTuple):
    """What one image shows: a display or a window."""

    display: Optional[Display] = None
    window: Optional[Window] = None
    number: Optional[int] = None  # the index of a window in its app, or of a display, from 0
    windows: tuple[Window, ...] = ()  # of a display: the windows that it shows, front to back

    @property
    def label(self) -> str:
        if self.window:
            return self.window.title or self.window.app_name
        assert self.display
        return f"Display {self.display.number}" + (" / Main" if self.display.is_main else "")

    @property
    def suffix(self) -> str:
        """What is added to a file's name where several images share one path."""
        if self.display:
            return f"_display{self.number}" + ("_main" if self.display.is_main else "")
        return f"_window{self.number or 0}_{self.label}"


class CapturedImage(NamedTuple):
    """An image, and what it shows."""

    content: ImageData
    subject: Subject
    # the coordinate record; None where the pixels cannot be clicked (a screen, a shadow, a rectangle)
    screenshot: Optional[Screenshot] = None
    is_of_rect: bool = False  # True where it shows what the screen shows in the window's rectangle
    # the part of the window that it shows, in pixels of `screenshot`, which `click` takes; None: all of it
    region: Optional[Rect] = None

    @property
    def info(self) -> ImageInfo:
        return self.content.info

    @property
    def path(self) -> str:
        """The file that holds it; empty for none."""
        return self.content.source_path

    @property
    def scale(self) -> float:
        """Pixels per screen point, of a window's whole image."""
        assert self.subject.window
        width = self.screenshot.image_width if self.screenshot else self.info.width
        return round(width / (self.screenshot or self.subject.window).bounds.width, 4)

    def window_data(self) -> dict[str, Any]:
        """What a screenshot of a window answers; no screenshot_id where its pixels cannot be clicked."""
        assert self.subject.window
        window, record, info = self.subject.window, self.screenshot, self.info
        data = {"window_id": window.window_id, "bounds": (record or window).bounds.as_data()}
        width, height = (record.image_width, record.image_height) if record else info[1:]
        data.update(image_width=width, image_height=height, scale=self.scale)
        if record:
            data["screenshot_id"] = record.screenshot_id
        if self.region:
            data["region"] = self.region.as_data()
            data.update(region_image_width=info.width, region_image_height=info.height)
        return data

    def region_text(self) -> str:
        """How a click by the pixels of a part is computed; empty for an image of all of it."""
        if not self.screenshot or not self.region:
            return ""
        x, y, scale = self.region.x, self.region.y, self.info.width / self.region.width
        enlarged = "" if scale == 1 else f" / {scale:.4g}"
        return (
            f"a part of window {self.screenshot.window_id}; its pixel (u, v) is x = {x:g} + u{enlarged}, "
            f"y = {y:g} + v{enlarged} for click, with screenshot_id {self.screenshot.screenshot_id}"
        )

    def warnings(self) -> tuple[str, ...]:
        return (_NOT_CLICKABLE,) if self.is_of_rect else ()


def scene_to_capture(desktop: Desktop) -> Scene:
    """The desktop as it is now.

    Raises PERMISSION_DENIED_SCREEN_RECORDING: before a window is focused, a title matched, a folder created.
    """
    scene = desktop.snapshot(with_minimised=True)
    if not scene.can_see_titles:
        raise desktop.denied(ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING, "no screenshot can be taken")
    return scene


def take_image(
    desktop: Desktop, subject: Subject, kind: str = "png", with_shadow: bool = False
) -> CapturedImage:
    """A display or a window at its own pixels, without a record."""
    if subject.window:
        return _capture_settled(desktop, subject.window, subject, kind, with_shadow)
    assert subject.display
    with image_file(kind) as path:
        desktop.capture_display(subject.display, path, kind)
        return CapturedImage(_read_captured(path), subject)


def screenshot_rect(desktop: Desktop, window: Window, kind: str) -> CapturedImage:
    """What the screen shows where the window is, whatever that is."""
    with image_file(kind) as path:
        desktop.capture_rect(window.bounds, path, kind)
        return CapturedImage(_read_captured(path), Subject(window=window), is_of_rect=True)


def screenshot_window(
    desktop: Desktop, scene: Scene, window: Window, kind: str, with_shadow: bool = False
) -> CapturedImage:
    """One window.

    Where that fails and the screen shows the whole window, as screenshot_rect: then a click by the pixels of
    an older image is refused, for it might be meant for this one.
    """
    try:
        return take_image(desktop, Subject(window=window), kind, with_shadow)
    except PeekabooError as e:
        is_failure = e.code is ErrorCode.CAPTURE_FAILED and not isinstance(e, WindowMoves)
        is_seen = window.is_on_screen and not window.is_obscured
        is_on_a_display = any(display.bounds.encloses(window.bounds) for display in scene.displays)
        is_covered = cover_of(window.bounds, window, scene.windows) is not None
        if not is_failure or not is_seen or not is_on_a_display or is_covered:
            raise
        log_debug(f"window {window.window_id} failed by its id, trying its rectangle: {e.message}")
    image = screenshot_rect(desktop, window, kind)
    forget_records(desktop.session, window.window_id)
    return image


def screenshot_region(desktop: Desktop, window: Window, record: Screenshot, region: Rect) -> CapturedImage:
    """A part of a window at its own pixels, as a PNG; the region is in pixels of `record`.

    Raises STALE_SCREENSHOT where the window is not as it was there.
    """
    whole = take_image(desktop, Subject(window=window), "bmp")
    assert whole.subject.window
    record = find_record(desktop.session, whole.subject.window, record.screenshot_id)
    bitmap = read_bitmap(whole.content.data).cropped(region, record.image_width)
    content = ImageData(bitmap.as_png(), ImageInfo("png", bitmap.width, len(bitmap.rows)))
    return whole._replace(content=content, screenshot=record, region=region)


def _read_captured(path: Path) -> ImageData:
    """An image is checked before it is reported: there, not empty, of a size, and whole."""
    data = path.read_bytes() if path.is_file() else b""
    info = whole_image(data)
    if info is None:
        message = "the capture program ended with success, but left no whole image"
        hint = "check that the screen is unlocked and the window open, then try again"
        raise PeekabooError(ErrorCode.CAPTURE_FAILED, message, hint)
    return ImageData(data, info)


def _capture_settled(
    desktop: Desktop, window: Window, subject: Subject, kind: str, with_shadow: bool
) -> CapturedImage:
    """Capture a window, with the window as it was then. Tried again: a window that opens or closes just now,
    which is listed but cannot be captured for a moment; one that moved or was resized meanwhile, whose image
    would get a record that is not its own.
    """
    for left in reversed(range(_TRIES)):
        try:
            with image_file(kind) as path:
                bounds = desktop.capture_window(window, path, kind, with_shadow)
                image = CapturedImage(_read_captured(path), subject._replace(window=window))
        except PeekabooError as e:
            if e.code is not ErrorCode.CAPTURE_FAILED or not window.is_on_screen or window.is_obscured:
                raise
            if not left:
                desktop.snapshot().by_id(window.window_id)  # of a window that is gone, say that
                raise
            log_debug(f"window {window.window_id} could not be captured yet: {e.message}")
        else:
            if bounds in (None, window.bounds) and (with_shadow or _is_of(window, image, [window.scale])):
                return image
            before, scene = window.bounds, desktop.snapshot()
            window = scene.by_id(window.window_id)
            # between two displays it may have the other one's scale; a sheet may reach beyond its window
            scales = [1.0, *(display.scale for display in scene.displays)]
            is_one = _is_of(window, image, scales) or (bounds is None and not left)
            if is_one and before == window.bounds and bounds in (None, before):
                return image._replace(subject=subject._replace(window=window))
            log_debug(f"window {window.window_id} moved or was resized while it was captured")
        if left:
            pause(_CAPTURE_SETTLE_S)
    raise WindowMoves(window.window_id)


def _is_of(window: Window, image: CapturedImage, scales: Sequence[float]) -> bool:
    """Whether an image has a window's size at one of these scales, pixels per point."""
    sizes = [Rect(0, 0, image.info.width / scale, image.info.height / scale) for scale in scales]
    return any(size.has_size_of(window.bounds) for size in sizes)


def check_dimension(max_dimension: Optional[int]) -> None:
    """Raises INVALID_ARGUMENT for a size that no image can have."""
    if max_dimension is not None:
        check_range("max_dimension", max_dimension, 1, 100_000)


def shrunk(desktop: Desktop, image: CapturedImage, max_dimension: Optional[int]) -> CapturedImage:
    """An image with at most so many pixels on the long side."""
    kind, width, height = image.info
    if max_dimension is None or max(width, height) <= max_dimension:
        return image
    size = model_size(width, height, max_dimension, 10**9)
    return image._replace(content=resized(desktop, image.content, size, kind))


def for_client(desktop: Desktop, image: CapturedImage) -> CapturedImage:
    """An image as a model should get it: not larger than it would be shrunk to, and not too many bytes."""
    return image._replace(content=fit_for_client(desktop, image.content._replace(label=image.subject.label)))


def save_images(images: Sequence[CapturedImage], targets: Sequence[Path]) -> list[CapturedImage]:
    """Write each image into its file, all or none; what has expired of our own is deleted."""
    sweep()
    for target in targets:
        prepare_target(target)
    write_all({target: image.content.data for image, target in zip(images, targets)})
    return [
        image._replace(content=image.content._replace(source_path=str(target)))
        for image, target in zip(images, targets)
    ]


def recorded(desktop: Desktop, image: CapturedImage, supersedes_older: bool = False) -> CapturedImage:
    """An image as it is given away: of a window by itself, with the record of its pixels.

    supersedes_older: from then on older images of the window count by their ids only.
    """
    window, record = image.subject.window, image.screenshot
    has_record = record and (image.region or (record.image_width, record.image_height) == image.info[1:])
    if window and not image.is_of_rect and not has_record:
        record = save_record(desktop.session, window, image.info, supersedes_older)
    return image._replace(screenshot=record)


def record_to_read(desktop: Desktop, image: CapturedImage) -> Screenshot:
    """The record of a window's image at the size that take_window_screenshot would give it."""
    width, height = model_size(image.info.width, image.info.height)
    assert image.subject.window
    return save_record(desktop.session, image.subject.window, ImageInfo(image.info.kind, width, height))


def take_bitmap(desktop: Desktop, window: Window) -> Bitmap:
    """A window's pixels as they are now. Raises CAPTURE_FAILED."""
    with image_file("bmp") as path:
        desktop.capture_window(window, path, "bmp")
        bitmap = read_bitmap(_read_captured(path).data)
    scale = bitmap.width / max(1.0, window.bounds.width)
    return bitmap._replace(scale=scale) if desktop.name == "macos" else bitmap


def wait_until_painted(desktop: Desktop, window: Window) -> None:
    """A window that was just restored shows nothing until its app has painted it: wait, but not for ever."""
    last: Optional[Bitmap] = None
    deadline = time.monotonic() + _PAINT_S
    while time.monotonic() < deadline:
        pause(_PAINT_POLL_S)
        try:
            bitmap = take_bitmap(desktop, window)
        except PeekabooError as e:
            if e.code is not ErrorCode.CAPTURE_FAILED:
                raise
            continue
        if last and not changed_rect(last, bitmap) and not bitmap.is_of_one_colour:
            return
        last = bitmap

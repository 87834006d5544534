"""Take screenshots of displays and windows, and record their coordinates."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

from ..core.call import pause
from ..core.errors import ErrorCode, PeekabooError, WindowMoves, check_range
from ..core.log import log_debug
from ..core.models import Display, ImageData, ImageInfo, Rect, Scene, Window
from ..desktop.base import Desktop
from ..desktop.images import fit_for_client, resized
from ..desktop.matching import cover_of
from ..system.bitmaps import Bitmap, changed_rect, read_bitmap
from ..system.files import sweep, temporary_file, write_all
from ..system.image_files import model_size, whole_image
from ..system.saved_images import note_saved, prepare_target
from .coordinates import RegionNumbers, Screenshot, find_record, find_region, save_record

_SETTLE_S = 0.15  # a window that opens or is restored is usually painted after two of these


class Subject(NamedTuple):
    """The display or the window that an image shows."""

    display: Optional[Display] = None
    window: Optional[Window] = None
    number: Optional[int] = None  # the index of a window in its app, or of a display; from 0
    windows: tuple[Window, ...] = ()  # for a display: the windows on it, front to back

    @property
    def label(self) -> str:
        if self.window:
            return self.window.title or self.window.app_name
        assert self.display
        return f"Display {self.display.number}" + (" / Main" if self.display.is_main else "")

    @property
    def suffix(self) -> str:
        """The suffix of the file's name if several images share one path."""
        if self.display:
            return f"_display{self.number}" + ("_main" if self.display.is_main else "")
        return f"_window{self.number or 0}_{self.label}"


class CapturedImage(NamedTuple):
    """An image, its subject, and its coordinate record if its pixels can be clicked."""

    content: ImageData
    subject: Subject
    screenshot: Optional[Screenshot] = None
    region: Optional[Rect] = None  # the part that it shows, in pixels of `screenshot`; None for all

    @property
    def info(self) -> ImageInfo:
        return self.content.info

    @property
    def path(self) -> str:
        """The file that holds it; empty if it was not saved."""
        return self.content.source_path

    def points(self, scale: float) -> Rect:
        """Return the image's size in screen points, if it has `scale` pixels per point."""
        return Rect(0, 0, self.info.width / scale, self.info.height / scale)

    def window_data(self) -> dict[str, Any]:
        """Return the data of a recorded screenshot of a window or of its region."""
        record, info = self.screenshot, self.info
        assert record
        data = {"window_id": record.window_id, "bounds": record.bounds.as_data()}
        data.update(image_width=record.image_width, image_height=record.image_height, scale=record.scale)
        data["screenshot_id"] = record.screenshot_id
        if self.region:
            data["region"] = self.region.as_data()
            data.update(region_image_width=info.width, region_image_height=info.height)
        return data

    def region_text(self) -> str:
        """Explain how to click by the pixels of a region's image; empty for an image of the whole window."""
        if not self.screenshot or not self.region:
            return ""
        x, y, scale = self.region.x, self.region.y, self.info.width / self.region.width
        enlarged = "" if scale == 1 else f" / {scale:.4g}"
        pixel = f"its pixel (u, v) is x = {x:g} + u{enlarged}, y = {y:g} + v{enlarged} for click"
        record = self.screenshot
        return f"a part of window {record.window_id}; {pixel}, with screenshot_id {record.screenshot_id}"


def scene_to_capture(desktop: Desktop) -> Scene:
    """Take a snapshot of the desktop for a capture. Raises PERMISSION_DENIED_SCREEN_RECORDING."""
    scene = desktop.snapshot(with_minimised=True)
    if not scene.can_see_titles:
        raise desktop.denied(ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING, "no screenshot can be taken")
    return scene


def take_image(
    desktop: Desktop, subject: Subject, kind: str = "png", with_shadow: bool = False
) -> CapturedImage:
    """Capture a display or a window at its own pixels, without a coordinate record."""
    if subject.window:
        return _capture_settled(desktop, subject, kind, with_shadow)
    assert subject.display
    with temporary_file(kind) as path:
        desktop.capture_display(subject.display, path, kind)
        return CapturedImage(_read_captured(path), subject)


def capture_window_or_region(
    desktop: Desktop, window_id: int, kind: str, region: RegionNumbers, screenshot_id: Optional[str]
) -> CapturedImage:
    """Capture a window as it is now, or a region of it (see find_region; a PNG, at full resolution).

    Raises WINDOW_NOT_FOUND, INVALID_ARGUMENT, STALE_SCREENSHOT, CAPTURE_FAILED.
    """
    scene = scene_to_capture(desktop)
    window = scene.by_id(window_id)
    part = find_region(desktop.session, window, region, screenshot_id)
    if part is None:
        return screenshot_window(desktop, scene, window, kind)
    whole = take_image(desktop, Subject(window=window), "bmp")
    assert whole.subject.window
    record = find_record(desktop.session, whole.subject.window, part[0].screenshot_id)
    bitmap = read_bitmap(whole.content.data).cropped(part[1], record.image_width)
    content = ImageData(bitmap.as_png(), ImageInfo("png", bitmap.width, len(bitmap.rows)))
    return whole._replace(content=content, screenshot=record, region=part[1])


def screenshot_rect(desktop: Desktop, window: Window, kind: str) -> CapturedImage:
    """Capture the window's rectangle of the screen, also if other windows are in it."""
    with temporary_file(kind) as path:
        desktop.capture_rect(window.bounds, path, kind)
        return CapturedImage(_read_captured(path), Subject(window=window))


def screenshot_window(
    desktop: Desktop, scene: Scene, window: Window, kind: str, with_shadow: bool = False
) -> CapturedImage:
    """Capture one window; if that fails and the screen shows all of it, capture its rectangle."""
    try:
        return take_image(desktop, Subject(window=window), kind, with_shadow)
    except PeekabooError as e:
        is_failure = e.code is ErrorCode.CAPTURE_FAILED and not isinstance(e, WindowMoves)
        if not is_failure or not _is_all_visible(window, scene):
            raise
        log_debug(f"window {window.window_id} failed by its id, trying its rectangle: {e.message}")
        image = screenshot_rect(desktop, window, kind)
        if not _is_all_visible(window, desktop.snapshot()):
            raise
        return image


def _is_all_visible(window: Window, scene: Scene) -> bool:
    """Return True if the window is still where it was and the screen shows all of it."""
    place, listed = window.bounds, scene.by_id(window.window_id)
    is_shown = listed.bounds == place and listed.is_on_screen and not listed.is_obscured
    is_on_a_display = any(display.bounds.encloses(place) for display in scene.displays)
    return is_shown and is_on_a_display and cover_of(place, listed, scene.windows) is None


def _read_captured(path: Path) -> ImageData:
    data = path.read_bytes() if path.is_file() else b""
    info = whole_image(data)
    if info is None:
        message = "the capture program reported success, but wrote no whole image"
        raise PeekabooError(ErrorCode.CAPTURE_FAILED, message)
    return ImageData(data, info)


def _capture_settled(desktop: Desktop, subject: Subject, kind: str, with_shadow: bool) -> CapturedImage:
    """Capture a window; retry if it moved, was resized or was not ready: its record must fit the image."""
    for tries_left in (2, 1, 0):  # a window that opens or moves is usually at rest after two
        window = subject.window
        assert window
        failure: PeekabooError = WindowMoves(window.window_id)
        image, is_in_place = None, False
        try:
            with temporary_file(kind) as path:
                bounds = desktop.capture_window(window, path, kind, with_shadow)  # None: not known
                image = CapturedImage(_read_captured(path), subject)
                is_in_place = bounds in (None, window.bounds)
            if is_in_place and (with_shadow or image.points(window.scale).has_size_of(window.bounds)):
                return image
        except PeekabooError as e:
            if e.code is not ErrorCode.CAPTURE_FAILED or not window.is_on_screen or window.is_obscured:
                raise
            failure = e
        scene = desktop.snapshot()
        listed = scene.by_id(window.window_id)
        subject = subject._replace(window=listed)
        if image and is_in_place and listed.bounds == window.bounds:
            # between two displays, an image may have the other's scale
            scales = (1.0, *(display.scale for display in scene.displays))
            if any(image.points(scale).has_size_of(window.bounds) for scale in scales):
                return image._replace(subject=subject)
        log_debug(f"window {window.window_id} was not captured: {failure.message}")
        if tries_left:
            pause(_SETTLE_S)
    raise failure


def check_dimension(max_dimension: Optional[int]) -> None:
    """Raise INVALID_ARGUMENT for a size that no image can have."""
    if max_dimension is not None:
        check_range("max_dimension", max_dimension, 1, 100_000)


def shrunk(desktop: Desktop, image: CapturedImage, max_dimension: Optional[int]) -> CapturedImage:
    """Shrink an image to at most `max_dimension` pixels on its long side."""
    kind, width, height = image.info
    if max_dimension is None or max(width, height) <= max_dimension:
        return image
    size = model_size(width, height, max_dimension, 10**9)
    return image._replace(content=resized(desktop, image.content, size, kind))


def for_client(desktop: Desktop, image: CapturedImage) -> CapturedImage:
    """Fit an image for a model: no larger than vendors accept unchanged, and within the byte limit."""
    return image._replace(content=fit_for_client(desktop, image.content._replace(label=image.subject.label)))


def save_images(
    images: Sequence[CapturedImage], targets: Sequence[Path], by_umask: bool = False
) -> list[CapturedImage]:
    """Write each image to its file, all or none, with mode 0600 or by the user's umask; sweep first."""
    sweep()
    paths = [prepare_target(target) for target in targets]
    contents = [image.content for image in images]
    data = {path: content.data for path, content in zip(paths, contents)}
    write_all(data, 0o666 if by_umask else 0o600)
    note_saved(paths)
    contents = [content._replace(source_path=str(path)) for content, path in zip(contents, targets)]
    return [image._replace(content=content) for image, content in zip(images, contents)]


def recorded(desktop: Desktop, image: CapturedImage, supersedes_older: bool = False) -> CapturedImage:
    """Return the image with a coordinate record; if it shows a window and has none that fits, save one."""
    window, record, info = image.subject.window, image.screenshot, image.info
    # a region uses the record of the whole window; an image that was resized needs a new record
    fits = record and (image.region or (record.image_width, record.image_height) == (info.width, info.height))
    if window and not fits:
        record = save_record(desktop.session, window, info, supersedes_older)
    return image._replace(screenshot=record)


def save_record_for_text(desktop: Desktop, image: CapturedImage) -> Screenshot:
    """Save the record of a window's image at the size that take_window_screenshot would return."""
    width, height = model_size(image.info.width, image.info.height)
    assert image.subject.window
    return save_record(desktop.session, image.subject.window, ImageInfo(image.info.kind, width, height))


def take_bitmap(desktop: Desktop, window: Window) -> Bitmap:
    """Capture a window's pixels for a comparison. Raises CAPTURE_FAILED."""
    with temporary_file("bmp") as path:
        desktop.capture_window(window, path, "bmp")
        bitmap = read_bitmap(_read_captured(path).data)
    scale = bitmap.width / max(1.0, window.bounds.width)
    return bitmap._replace(noisy_scale=scale if desktop.has_noisy_captures else 0.0)


def wait_until_painted(desktop: Desktop, window: Window) -> None:
    """Wait, for a limited time, until the app of a window that was just restored has painted it."""
    last: Optional[Bitmap] = None
    deadline = time.monotonic() + 2.0
    while time.monotonic() < deadline:
        pause(_SETTLE_S)
        try:
            bitmap = take_bitmap(desktop, window)
        except PeekabooError as e:
            if e.code is ErrorCode.CAPTURE_FAILED:
                continue
            raise
        if last and not changed_rect(last, bitmap) and not bitmap.is_of_one_colour:
            return
        last = bitmap

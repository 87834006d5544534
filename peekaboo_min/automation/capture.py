"""Take screenshots of displays and windows, and record what each pixel means."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

from ..ai.images import fit_for_client, resized
from ..core.cancellation import in_parallel, pause, report_progress
from ..core.errors import ErrorCode, PeekabooError, WindowMoves, file_errors
from ..core.log import log_debug
from ..core.models import Display, ImageData, ImageInfo, Rect, Scene, Window
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..desktop.matching import cover_of
from ..system.files import move_into_place, new_temporary_path, write_privately
from ..system.images import model_size, prepare_target, read_bitmap, read_image_info
from .coordinates import (
    Screenshot,
    find_record,
    find_region,
    forget_records,
    record_of,
    save_record,
)

_TRIES = 3
_CAPTURE_SETTLE_S = 0.15
_NOT_CLICKABLE = (
    "the window could not be captured by itself: the image shows the window's rectangle on the screen, "
    "has no screenshot_id, and its pixels cannot be clicked"
)


class Subject(NamedTuple):
    """What one image shows: a display or a window."""

    display: Optional[Display] = None
    window: Optional[Window] = None
    number: Optional[int] = None
    """The index of a window in its app, or of a display, from 0."""
    windows: tuple[Window, ...] = ()
    """Of a display: the windows that it shows, front to back."""

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
    """An image file, and what it shows."""

    path: Path
    info: ImageInfo
    subject: Subject
    screenshot: Optional[Screenshot] = None
    """The coordinate record; None where the pixels cannot be clicked (a screen, a shadow, a rectangle)."""
    is_of_rect: bool = False
    """True where it shows what the screen shows in the window's rectangle."""
    region: Optional[Rect] = None
    """The part of the window that it shows, in pixels of `screenshot`; None: all. `click` takes those pixels,
    never this image's.
    """

    def window_data(self) -> dict[str, Any]:
        """What a screenshot of a window answers; no screenshot_id where its pixels cannot be clicked."""
        assert self.subject.window
        data = (self.screenshot or record_of(self.subject.window, self.info)).as_data()
        if not self.screenshot:
            del data["screenshot_id"]
        if self.region:
            size = {"region_image_width": self.info.width, "region_image_height": self.info.height}
            data.update(region=self.region.as_data(), **size)
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
    scene = desktop.snapshot()
    if not scene.can_see_titles:
        raise desktop.denied(ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING, "no screenshot can be taken")
    return scene


def take_images(
    desktop: Desktop,
    subjects: Sequence[Subject],
    targets: Sequence[Path],
    kind: str,
    max_dimension: Optional[int],
) -> list[CapturedImage]:
    """One file for each subject, all or none: a failure leaves the files and folders as they were before."""
    new_folders = _missing_folders(targets)
    taken: list[CapturedImage] = []

    def take(subject: Subject) -> CapturedImage:
        image = shrunk(desktop, _capture_subject(desktop, subject, kind), max_dimension)
        taken.append(image)
        report_progress(f"captured {clean_text(subject.label)}")
        return image

    try:
        for target in targets:
            prepare_target(target)
        images = in_parallel(take, subjects)
        move_into_place([image.path for image in images], targets)
    except BaseException:
        for image in taken:
            image.path.unlink(missing_ok=True)
        for folder in new_folders:
            with suppress(OSError):  # something is in it
                folder.rmdir()
        raise
    return [image._replace(path=target) for image, target in zip(images, targets)]


def _missing_folders(targets: Sequence[Path]) -> list[Path]:
    """The parents that do not exist yet, inner ones first."""
    missing = {parent for target in targets for parent in target.parents if not os.path.exists(parent)}
    return sorted(missing, key=lambda folder: len(folder.parts), reverse=True)


def image_to_read(desktop: Desktop, window: Window) -> CapturedImage:
    """One window at its own pixels, as a PNG, without a record. The caller deletes the file."""
    return _capture_subject(desktop, Subject(window=window), "png")


def record_to_read(desktop: Desktop, image: CapturedImage) -> Screenshot:
    """The record of a window's image at the size that take_window_screenshot would give it."""
    width, height = model_size(image.info)
    window = image.subject.window
    assert window
    return save_record(desktop.session, window, image.info._replace(width=width, height=height))


def screenshot_rect(desktop: Desktop, window: Window, kind: str) -> CapturedImage:
    """What the screen shows where the window is, whatever that is."""
    subject = Subject(window=window)
    image = _new_image(subject, kind, lambda path: desktop.capture_rect(window.bounds, path, kind))
    return image._replace(is_of_rect=True)


def screenshot_window(
    desktop: Desktop, scene: Scene, window: Window, kind: str, with_shadow: bool = False
) -> CapturedImage:
    """One window into a file of our temporary folder.

    Where that fails and the screen shows the whole window, as screenshot_rect: then a click by the pixels of
    an older image is refused, for it might be meant for this one.
    """
    try:
        return _capture_subject(desktop, Subject(window=window), kind, with_shadow)
    except PeekabooError as e:
        is_failure = e.code is ErrorCode.CAPTURE_FAILED and not isinstance(e, WindowMoves)
        if not is_failure or not _is_seen_whole(window, scene):
            raise
        log_debug(f"window {window.window_id} failed by its id, trying its rectangle: {e.message}")
    image = screenshot_rect(desktop, window, kind)
    forget_records(desktop.session, window.window_id)
    return image


def screenshot_whole_or_region(
    desktop: Desktop,
    scene: Scene,
    window: Window,
    kind: str,
    region: Optional[Sequence[float]],
    screenshot_id: Optional[str],
) -> CapturedImage:
    """A window as screenshot_window, or a part of it at its own pixels, as a PNG.

    region: x, y, width and height in pixels of a screenshot: of this id, else the window's last.

    Raises INVALID_ARGUMENT for a region that is not in it, and as find_record does.
    """
    found = find_region(desktop.session, window, region, screenshot_id)
    if found is None:
        return screenshot_window(desktop, scene, window, kind)
    record, inside = found
    whole = _capture_subject(desktop, Subject(window=window), "bmp")
    bitmap = read_bitmap(whole.path)
    whole.path.unlink(missing_ok=True)
    assert bitmap and whole.subject.window
    record = find_record(desktop.session, whole.subject.window, record.screenshot_id)
    scale_x, scale_y = bitmap.width / record.image_width, len(bitmap.rows) / record.image_height
    left, right = inside.x * scale_x, (inside.x + inside.width) * scale_x
    top, bottom = inside.y * scale_y, (inside.y + inside.height) * scale_y
    png = bitmap.cropped(round(left), round(top), round(right), round(bottom)).as_png()
    image = _new_image(whole.subject, "png", lambda path: write_privately(path, png))
    return image._replace(screenshot=record, region=inside)


def _is_seen_whole(window: Window, scene: Scene) -> bool:
    """Whether the screen shows all of the window, and nothing else in its rectangle."""
    is_covered = cover_of(window.bounds, window, scene.windows)
    is_on_a_display = any(display.bounds.encloses(window.bounds) for display in scene.displays)
    return window.is_on_screen and not window.is_obscured and is_on_a_display and not is_covered


def _capture_subject(
    desktop: Desktop, subject: Subject, kind: str, with_shadow: bool = False
) -> CapturedImage:
    def take(path: Path) -> Optional[Window]:
        if subject.window:
            return _capture_settled(desktop, subject.window, path, kind, with_shadow)
        if subject.display:
            desktop.capture_display(subject.display, path, kind)
        return None

    return _new_image(subject, kind, take)


def recorded(
    desktop: Desktop, image: CapturedImage, info: ImageInfo, supersedes_older: bool = False
) -> CapturedImage:
    """An image as it is given away, in `info`'s size: of a window by itself, with the record of these pixels.

    supersedes_older: from then on older images of the window count by their ids only.
    """
    window, record = image.subject.window, image.screenshot
    is_shown_so = record and (image.region or info[1:] == image.info[1:])
    if window and not image.is_of_rect and not is_shown_so:
        record = save_record(desktop.session, window, info, supersedes_older)
    return image._replace(info=info, screenshot=record)


def _new_image(subject: Subject, kind: str, take: Callable[[Path], Optional[Window]]) -> CapturedImage:
    """A file of our temporary folder (0600) that `take` fills, checked.

    take: returns the subject's window as it was then, where it looked.
    """
    path = new_temporary_path("peekaboo", kind)
    try:
        with file_errors(path):
            window = take(path) or subject.window
            info = _checked(path)
            path.chmod(0o600)
        return CapturedImage(path, info, subject._replace(window=window))
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def shrunk(desktop: Desktop, image: CapturedImage, max_dimension: Optional[int]) -> CapturedImage:
    """An image with at most so many pixels on the long side, in the same file; a failure deletes that."""
    if not max_dimension or max(image.info.width, image.info.height) <= max_dimension:
        return image
    size = model_size(image.info, max_dimension, 10**9)
    try:
        smaller = resized(desktop, image.path, size, image.info.kind)
        write_privately(image.path, smaller.data)
    except BaseException:
        image.path.unlink(missing_ok=True)
        raise
    return image._replace(info=smaller.info)


def _capture_settled(desktop: Desktop, window: Window, path: Path, kind: str, with_shadow: bool) -> Window:
    """Capture a window, and return it as it was then. Tried again: a window that opens or closes just now,
    which is listed but cannot be captured for a moment; one that moved or was resized meanwhile, whose image
    would get a record that is not its own.
    """
    for left in reversed(range(_TRIES)):
        try:
            bounds = desktop.capture_window(window, path, kind, with_shadow)
        except PeekabooError as e:
            if e.code is not ErrorCode.CAPTURE_FAILED or not window.is_on_screen or window.is_obscured:
                raise
            if not left:
                desktop.snapshot().by_id(window.window_id)  # of a window that is gone, say that
                raise
            log_debug(f"window {window.window_id} could not be captured yet: {e.message}")
        else:
            info = _checked(path)
            if bounds in (None, window.bounds) and (with_shadow or _is_of(window, info, [window.scale])):
                return window
            before, scene = window.bounds, desktop.snapshot()
            window = scene.by_id(window.window_id)
            # between two displays it may have the other one's scale; a sheet may reach beyond its window
            scales = [1.0, *(display.scale for display in scene.displays)]
            is_one = _is_of(window, info, scales) or (bounds is None and not left)
            if is_one and before == window.bounds and bounds in (None, before):
                return window
            log_debug(f"window {window.window_id} moved or was resized while it was captured")
        if left:
            pause(_CAPTURE_SETTLE_S)
    raise WindowMoves(window.window_id)


def _is_of(window: Window, info: ImageInfo, scales: Sequence[float]) -> bool:
    """Whether an image has a window's size at one of these scales, pixels per point."""
    sizes = [Rect(0, 0, info.width / scale, info.height / scale) for scale in scales]
    return any(size.has_size_of(window.bounds) for size in sizes)


def _checked(path: Path) -> ImageInfo:
    """An image is checked before it is reported: there, not empty, of a size, and whole."""
    info = read_image_info(path) if path.is_file() else None
    if info is None:
        raise PeekabooError(
            ErrorCode.CAPTURE_FAILED,
            "the capture program ended with success, but left no whole image",
            hint="check that the screen is unlocked and the window open, then try again",
        )
    return info


def image_for_model(desktop: Desktop, image: CapturedImage) -> ImageData:
    """An image as a model should get it: not larger than it would be shrunk to, and not too many bytes. The
    file of `image` is left as it is.
    """
    taken = ImageData(image.path.read_bytes(), image.info, image.subject.label, str(image.path))
    return fit_for_client(desktop, taken)

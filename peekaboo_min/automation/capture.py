"""Take screenshots of displays and windows, and record what each pixel means."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

from ..core.cancellation import in_parallel, pause, report_progress
from ..core.errors import ErrorCode, PeekabooError, file_errors, invalid
from ..core.log import log_debug
from ..core.models import Display, ImageData, ImageInfo, Rect, Scene, Screenshot, Window
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..system.files import move_all_into_place, new_temporary_path
from ..system.images import model_size, prepare_target, read_image_info
from .coordinates import find_record, forget_records, record_of, save_record
from .effects import take_bitmap

_TRIES = 3
_CAPTURE_SETTLE_S = 0.15
_NOT_CLICKABLE = (
    "the window could not be captured by itself: the image shows the window's rectangle on the screen, "
    "has no screenshot_id, and its pixels cannot be clicked"
)


class Subject(NamedTuple):
    """What one image shows: a display or a window."""

    label: str
    suffix: str = ""
    """What is added to a file's name where several images share one path."""
    display: Optional[Display] = None
    window: Optional[Window] = None
    number: Optional[int] = None
    """The index of a window in its app, or of a display, from 0."""
    windows: tuple[Window, ...] = ()
    """Of a display: the windows that it shows, front to back."""


def window_subject(window: Window, number: Optional[int] = None) -> Subject:
    label = window.title or window.app_name
    return Subject(label, f"_window{number or 0}_{label}", window=window, number=number)


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
        if self.screenshot and self.region:
            size = {"region_image_width": self.info.width, "region_image_height": self.info.height}
            return {**self.screenshot.as_data(), "region": self.region.as_data(), **size}
        if self.screenshot:
            return self.screenshot.as_data()
        data = record_of(self.subject.window, self.info).as_data() if self.subject.window else {}
        data.pop("screenshot_id", None)
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
        image = _recorded(desktop, _capture_subject(desktop, subject, kind, max_dimension))
        taken.append(image)
        report_progress(f"captured {clean_text(subject.label)}")
        return image

    try:
        for target in targets:
            prepare_target(target)
        images = in_parallel(take, subjects)
        move_all_into_place([image.path for image in images], targets)
    except BaseException:
        for image in taken:
            image.path.unlink(missing_ok=True)
            if image.screenshot:
                forget_records(desktop.session, image.screenshot.window_id, image.screenshot.screenshot_id)
        for folder in new_folders:
            with suppress(OSError):  # something is in it
                folder.rmdir()
        raise
    return [image._replace(path=target) for image, target in zip(images, targets)]


def _missing_folders(targets: Sequence[Path]) -> list[Path]:
    """The parents that do not exist yet, inner ones first."""
    missing = {parent for target in targets for parent in target.parents if not os.path.exists(parent)}
    return sorted(missing, key=lambda folder: len(folder.parts), reverse=True)


def screenshot_to_read(desktop: Desktop, window: Window) -> tuple[CapturedImage, Screenshot]:
    """A window at its own pixels, its record in those of take_window_screenshot. The caller deletes it."""
    image = image_to_read(desktop, window)
    return image, record_to_read(desktop, window, image)


def image_to_read(desktop: Desktop, window: Window) -> CapturedImage:
    """One window at its own pixels, as a PNG, without a record. The caller deletes the file."""
    return _capture_subject(desktop, window_subject(window), "png", None)


def record_to_read(desktop: Desktop, window: Window, image: CapturedImage) -> Screenshot:
    """The record of an image at the size that take_window_screenshot would give it."""
    width, height = model_size(image.info)
    return save_record(desktop.session, window, image.info._replace(width=width, height=height))


def screenshot_rect(
    desktop: Desktop, window: Window, kind: str, max_dimension: Optional[int] = None
) -> CapturedImage:
    """What the screen shows where the window is, whatever that is."""
    image = _new_image(
        desktop,
        window_subject(window),
        kind,
        max_dimension,
        lambda path: desktop.capture_rect(window.bounds, path, kind),
    )
    return image._replace(is_of_rect=True)


def screenshot_window_or_rect(
    desktop: Desktop,
    scene: Scene,
    window: Window,
    kind: str,
    max_dimension: Optional[int] = None,
    with_shadow: bool = False,
) -> CapturedImage:
    """One window into a file of our temporary folder; without a shadow, it has a coordinate record.

    Where that fails and the screen shows the whole window, as screenshot_rect: then a click by the pixels of
    an older image is refused, for it might be meant for this one.
    """
    try:
        image = _capture_subject(desktop, window_subject(window), kind, max_dimension, with_shadow)
        return image if with_shadow else _recorded(desktop, image)  # a margin shifts all pixels
    except PeekabooError as e:
        if e.code is not ErrorCode.CAPTURE_FAILED or not _is_seen_whole(window, scene):
            raise
        log_debug(f"window {window.window_id} failed by its id, trying its rectangle: {e.message}")
    image = screenshot_rect(desktop, window, kind, max_dimension)
    forget_records(desktop.session, window.window_id)
    return image


def screenshot_region(
    desktop: Desktop, window: Window, region: Sequence[float], max_dimension: Optional[int] = None
) -> CapturedImage:
    """A part of a window at its own pixels, as a PNG. The caller deletes the file.

    region: x, y, width and height in pixels of the window's last screenshot.

    Raises INVALID_ARGUMENT for a region that is not in it, and as find_record and take_bitmap do.
    """
    if len(region) != 4 or min(region[2:]) <= 0:
        raise invalid("region is not x,y,width,height", "give 4 numbers, like 100,50,300,200")
    record = find_record(desktop.session, window)
    left, top = max(0, math.floor(region[0])), max(0, math.floor(region[1]))
    right = min(record.image_width, math.ceil(region[0] + region[2]))
    bottom = min(record.image_height, math.ceil(region[1] + region[3]))
    if left >= right or top >= bottom:
        size = f"{record.image_width}x{record.image_height}"
        raise invalid("region is outside the window's last screenshot", f"that is {size} pixels")
    bitmap = take_bitmap(desktop, window)
    scale_x, scale_y = bitmap.width / record.image_width, len(bitmap.rows) / record.image_height
    part = bitmap.cropped(
        round(left * scale_x), round(top * scale_y), round(right * scale_x), round(bottom * scale_y)
    )
    image = _new_image(
        desktop, window_subject(window), "png", max_dimension, lambda path: path.write_bytes(part.as_png())
    )
    return image._replace(screenshot=record, region=Rect(left, top, right - left, bottom - top))


def _is_seen_whole(window: Window, scene: Scene) -> bool:
    """Whether the screen shows all of the window, and nothing else in its rectangle."""
    place = scene.windows.index(window)
    is_covered = any(
        front.is_on_screen
        and front.alpha > 0
        and front.outer.overlaps(window.bounds)
        # an overlay of another layer is transparent (the Dock owns one as large as the screen)
        and not (front.layer != 0 and front.outer.encloses(window.bounds))
        for front in scene.windows[:place]
    )
    is_on_a_display = any(display.bounds.encloses(window.bounds) for display in scene.displays)
    return window.is_on_screen and not window.is_obscured and is_on_a_display and not is_covered


def _capture_subject(
    desktop: Desktop, subject: Subject, kind: str, max_dimension: Optional[int], with_shadow: bool = False
) -> CapturedImage:
    display, window = subject.display, subject.window

    def take(path: Path) -> None:
        if window:
            _capture_settled(desktop, window, path, kind, with_shadow)
        elif display:
            desktop.capture_display(display, path, kind)

    return _new_image(desktop, subject, kind, max_dimension, take)


def _recorded(desktop: Desktop, image: CapturedImage) -> CapturedImage:
    """The image with a coordinate record, where it shows a window."""
    window = image.subject.window
    return image._replace(screenshot=save_record(desktop.session, window, image.info)) if window else image


def _new_image(
    desktop: Desktop, subject: Subject, kind: str, max_dimension: Optional[int], take: Callable[[Path], Any]
) -> CapturedImage:
    """A file of our temporary folder (0600) that `take` fills, checked, and shrunk to max_dimension."""
    path, smaller = new_temporary_path("peekaboo", kind), new_temporary_path("peekaboo", kind)
    try:
        with file_errors(path):
            take(path)
            info = _checked(path)
            if max_dimension and max(info.width, info.height) > max_dimension:
                desktop.fit_image(path, smaller, *model_size(info, max_dimension, 10**9), kind)
                os.replace(smaller, path)
                info = _checked(path)
            path.chmod(0o600)
        return CapturedImage(path, info, subject)
    except BaseException:
        for leftover in (path, smaller):
            leftover.unlink(missing_ok=True)
        raise


def _capture_settled(desktop: Desktop, window: Window, path: Path, kind: str, with_shadow: bool) -> None:
    """A window that opens or closes just now is listed but cannot be captured for a moment: try again."""
    for left in reversed(range(_TRIES)):
        try:
            return desktop.capture_window(window, path, kind, with_shadow)
        except PeekabooError as e:
            if e.code is not ErrorCode.CAPTURE_FAILED or not window.is_on_screen or window.is_obscured:
                raise
            if not left:
                desktop.snapshot().by_id(window.window_id)  # of a window that is gone, say that
                raise
            log_debug(f"window {window.window_id} could not be captured yet: {e.message}")
            pause(_CAPTURE_SETTLE_S)


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


def image_for_model(
    desktop: Desktop, image: CapturedImage, replaces_file: bool
) -> tuple[ImageData, CapturedImage]:
    """An image as a model should get it: not larger than it would be shrunk to, and not too many bytes.

    Returns the image, and what is known of it: with a coordinate record of its own pixels. The file of
    `image` is left as it is.
    replaces_file: nobody gets to see it; its record is forgotten where the returned image has another size.
    """
    from ..ai.images import fit_for_client  # only what returns an image needs it

    taken = ImageData(image.path.read_bytes(), image.info, image.subject.label, str(image.path))
    fitted = fit_for_client(desktop, taken)
    shown, record = image._replace(info=fitted.info), image.screenshot
    size = fitted.info.width, fitted.info.height
    if record and not image.region and size != (record.image_width, record.image_height):
        if replaces_file:
            forget_records(desktop.session, record.window_id, record.screenshot_id)
        shown = _recorded(desktop, shown)
    return fitted, shown

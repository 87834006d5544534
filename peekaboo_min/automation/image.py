"""The job of `image`: choose what to capture, capture it, save it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

from ..core.call import in_parallel
from ..core.errors import ErrorCode, PeekabooError, file_errors, invalid
from ..core.log import log_warning
from ..core.models import Display, ImageInfo, Result, Scene, Window
from ..core.settings import image_lifetime, settings, without_secrets
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..desktop.matching import find_app, find_window, visible_windows, windows_of
from ..system.files import absolute_path, file_name, temporary_folder
from ..system.image_files import EXTENSIONS
from ..system.saved_images import kind_by_name
from . import capture
from .act import focus_by_id
from .capture import CapturedImage, Subject
from .policy import check_may_act

# Extensions of image formats that we do not write: refuse them instead of creating a folder of that name.
_OTHER_EXTENSIONS = ".avif .bmp .eps .heic .heif .ico .jfif .jp2 .jpe .jxl .pdf .psd .svg .tga .tif .tiff"
# A window that cannot be raised for these reasons can still be captured.
_MAY_STAY_BEHIND = (ErrorCode.FOCUS_FAILED, ErrorCode.TIMEOUT, ErrorCode.PERMISSION_DENIED_ACCESSIBILITY)


class ImageRequest(NamedTuple):
    """The parameters of `image`, as in the specification; None means not given."""

    app: Optional[str] = None
    mode: Optional[str] = None  # screen, window, multi or frontmost
    window_title: Optional[str] = None
    window_index: Optional[int] = None
    window_id: Optional[int] = None
    screen_index: Optional[int] = None
    kind: Optional[str] = None  # png or jpg; None: by the path's extension, else png
    path: Optional[str] = None
    max_dimension: Optional[int] = None
    is_temporary: bool = False  # True if no file is wanted, only returned data
    in_shell: bool = False  # True: new files get the mode that the user's umask leaves

    @property
    def effective_mode(self) -> str:
        """The requested mode; by default window if an app or a window is named, else screen."""
        return self.mode or ("screen" if (self.app, self.window_id) == (None, None) else "window")


def image_result(
    desktop: Desktop,
    request: ImageRequest,
    capture_focus: str,
    returns_data: bool = False,
    question: Optional[str] = None,
) -> Result:
    """Capture the requested images and save them; with `returns_data`, return them too.

    capture_focus: foreground first brings the window to the front. question: also ask a configured model
    about the images, which adds `analysis_text` and `model_used` to the data.
    """
    check_request(request)
    base, is_file = _destination(request)
    kind = kind_by_name(base) if base and is_file else request.kind or "png"
    notes = [*desktop.warnings()]
    if request.kind not in (None, kind):
        notes.append(f"the images are {kind}, by the path's extension, not {request.kind}")
    analyse = _choose_analysis(desktop, question) if question is not None else None
    if capture_focus == "foreground":
        subjects, messages = _subjects_in_front(desktop, request)
    else:
        subjects, messages = _find_subjects(capture.scene_to_capture(desktop), request), ()

    images = in_parallel(lambda subject: capture.take_image(desktop, subject, kind), subjects)
    images = in_parallel(lambda image: capture.shrunk(desktop, image, request.max_dimension), images)
    data: dict[str, Any] = {"saved_files": []}
    if not request.is_temporary:
        paths = _paths_of(base, is_file, kind, subjects)
        images = capture.save_images(images, paths, by_umask=request.in_shell and base is not None)
        images = [capture.recorded(desktop, image) for image in images]
        data["saved_files"] = [_image_data(image, "path") for image in images]
        if not base:
            notes.append(f"without a path the files are temporary: they are kept {image_lifetime()}")
    text, failure, returned = _summary(images), None, []
    try:
        if returns_data:
            returned = [capture.for_client(desktop, image) for image in images]
        if returns_data or (analyse and request.is_temporary):
            shown = [capture.recorded(desktop, image) for image in returned or images]
            data["images"] = [_image_data(image, "source_path") for image in shown]
        if analyse:
            data.update(analyse(images))
            text += f"\n\n{data['analysis_text']}"
    except PeekabooError as e:
        if not data["saved_files"]:
            raise
        failure = e  # report the saved files as well
    contents = tuple(image.content for image in returned)
    return Result(text, data, contents, (*notes, *messages), failure=failure)


def check_request(request: ImageRequest) -> None:
    """Raise INVALID_ARGUMENT for a contradictory request, before anything is done."""
    capture.check_dimension(request.max_dimension)
    if request.window_title is not None and not request.window_title.strip():
        raise invalid("the window's title is empty", "give a part of it, or omit it")
    mode = request.effective_mode
    if sum(n is not None for n in (request.window_title, request.window_index, request.window_id)) > 1:
        raise invalid("more than one of window title, index and id is given", "give only one")
    if mode in ("screen", "multi") and (request.window_title, request.window_index) != (None, None):
        raise invalid(f"mode {mode} takes no window title or index", "omit it, or name the window's app")
    if mode == "frontmost" and (request.app is not None or request.window_id is not None):
        raise invalid("mode frontmost takes no app or window id", "omit it, or use mode window")
    if mode in ("window", "multi") and request.app is None and request.window_id is None:
        raise invalid(f"mode {mode} needs an app", "name an app, or give a window id")


def _choose_analysis(desktop: Desktop, question: str) -> Callable[[list[CapturedImage]], dict[str, str]]:
    from ..ai.client import ask_model, choose_provider

    choice = choose_provider()

    def analyse(images: list[CapturedImage]) -> dict[str, str]:
        texts = []
        for image in images:
            answer = ask_model(desktop, [image.content], question, choice=choice)
            head = f'Analysis for "{clean_text(image.subject.label)}":\n' if len(images) > 1 else ""
            texts.append(head + without_secrets(answer.text))
        return {"analysis_text": "\n\n".join(texts), "model_used": answer.model_used}

    return analyse


def _find_subjects(scene: Scene, request: ImageRequest) -> list[Subject]:
    if request.effective_mode != "screen":
        return _find_windows(scene, request)
    displays, index = scene.displays, request.screen_index
    if not displays:
        message = "no displays available for capture"
        raise PeekabooError(ErrorCode.CAPTURE_FAILED, message, "wake or attach a display")
    if index is not None and not 0 <= index < len(displays):
        raise invalid(f"there is no screen {index}", f"count from 0; the last screen is {len(displays) - 1}")
    windows = tuple(visible_windows(scene.windows))
    subjects = [Subject(display, number=number, windows=windows) for number, display in enumerate(displays)]
    return subjects if index is None else [subjects[index]]


def _find_windows(scene: Scene, request: ImageRequest, will_raise: bool = False) -> list[Subject]:
    # will_raise: list hidden windows, too, after the others, and accept no close spelling of the app
    if request.window_id is not None:
        window = scene.by_id(request.window_id)
        app = find_app(request.app, scene.apps, acts=will_raise) if request.app else None
        if app and window not in windows_of(app, scene.windows):
            raise invalid(f"window {window.window_id} belongs to {window.app_name}", "name that app, or none")
        return [Subject(window=window)]
    if request.app is None:  # mode frontmost
        front = _front_window(scene)
        if not front:
            raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, "there is no window on the screen", "open one")
        return [Subject(window=front, number=0)]
    app = find_app(request.app, scene.apps, acts=will_raise)
    windows = visible_windows(windows_of(app, scene.windows), with_off_screen=will_raise)
    chosen = find_window(app, windows, request.window_title, request.window_index)
    return [
        Subject(window=window, number=index)
        for index, window in enumerate(windows)
        if request.effective_mode == "multi" or window == chosen
    ]


def _front_window(scene: Scene) -> Optional[Window]:
    return max(visible_windows(scene.windows), key=lambda window: window.is_focused, default=None)


def _subjects_in_front(desktop: Desktop, request: ImageRequest) -> tuple[list[Subject], tuple[str, ...]]:
    """Raise the requested window; return what to capture then, and a message if it could not be raised."""
    check_may_act("foreground capture")
    scene, mode = capture.scene_to_capture(desktop), request.effective_mode
    if mode == "screen" and request.app is None:
        return _find_subjects(scene, request), ()  # a screen cannot be raised
    target: Optional[Window] = None
    problem = ""
    try:
        target = _find_windows(scene, request, will_raise=True)[0].window
        assert target
        raised = focus_by_id(desktop, target.window_id)
        if not target.is_on_screen:
            capture.wait_until_painted(desktop, raised)
    except PeekabooError as e:
        has_no_window = mode == "screen" and e.code is ErrorCode.WINDOW_NOT_FOUND
        if not has_no_window and e.code not in _MAY_STAY_BEHIND:
            raise
        log_warning("Could not raise specific window; proceeding with frontmost of activated app.")
        problem = e.sentence()

    scene = capture.scene_to_capture(desktop)
    if mode == "window" and target:
        target = scene.by_id(target.window_id)
        if not target.is_on_screen:  # capture the app's front window instead
            request = request._replace(window_title=None, window_index=None)
    if mode == "window" and request.window_index is not None:  # raising a window changes its index
        subjects = [Subject(window=target, number=request.window_index)]
    else:
        subjects = _find_subjects(scene, request)
    if not problem:
        return subjects, ()
    captured = ", ".join(str(subject.window or subject.label) for subject in subjects)
    return subjects, (f"captured {captured}; in front is {_front_window(scene) or 'no window'}; {problem}",)


def _destination(request: ImageRequest) -> tuple[Optional[Path], bool]:
    """Return where the images go (None: our temporary folder), and whether that is a file."""
    given = request.path or ("" if request.is_temporary else settings().default_save_path)
    if not given:
        return None, False
    path = absolute_path(given)
    has_extension = path.suffix.lower() in (*EXTENSIONS, *_OTHER_EXTENSIONS.split())
    with file_errors(Path(given)):  # a name that no file system accepts
        return path, has_extension and not given.endswith("/") and not path.is_dir()


def _paths_of(base: Optional[Path], is_file: bool, kind: str, subjects: Sequence[Subject]) -> list[Path]:
    if base and is_file:
        names = [file_name(base.stem, base.suffix[1:], subject.suffix) for subject in subjects]
        return [base.parent / name for name in names] if len(names) > 1 else [base]
    folder = base or temporary_folder()
    # two captures in one second need different names
    moment = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}"
    stems = [f"{moment}_{subject.window.app_name if subject.window else 'screen'}" for subject in subjects]
    return [folder / file_name(stem, kind, subject.suffix) for stem, subject in zip(stems, subjects)]


def _summary(images: Sequence[CapturedImage]) -> str:
    lines = [f"Captured {len(images)} image(s):"]
    for number, image in enumerate(images, 1):
        label, record = clean_text(image.subject.label), image.screenshot
        about = f"{label}, {image.info.width}x{image.info.height}"
        if record:
            about += f", window {record.window_id}, screenshot_id {record.screenshot_id}"
        lines.append(f"{number}. {image.path} ({about})" if image.path else f"{number}. {label}")
    return "\n".join(lines)


def _image_data(image: CapturedImage, path_name: str) -> dict[str, Any]:
    info, subject, window = image.info, image.subject, image.subject.window
    data: dict[str, Any] = {path_name: image.path} if image.path else {}
    data.update(item_label=clean_text(subject.label), mime_type=info.mime_type)
    data.update(image_width=info.width, image_height=info.height)
    if window:
        data.update(window_title=window.shown_title, window_id=window.window_id)
        if subject.number is not None:
            data["window_index"] = subject.number
    if subject.display:
        data["windows"] = _windows_in_pixels(subject.display, subject.windows, info)
    if image.screenshot:
        data.update(scale=image.screenshot.scale, screenshot_id=image.screenshot.screenshot_id)
    return data


def _windows_in_pixels(display: Display, windows: Sequence[Window], info: ImageInfo) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for window in windows:
        if part := window.bounds.clipped(display.bounds):
            rows.append({"window_id": window.window_id, "owner_name": window.app_name})
            x, y, width, height = map(round, part.in_image_of(display.bounds, info.width))
            rows[-1].update(title=window.shown_title, x=x, y=y, width=width, height=height)
    return rows

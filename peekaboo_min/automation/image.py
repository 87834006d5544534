"""The job of `image`: what to capture, where to save it, and the answer."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

from ..core.cancellation import in_parallel
from ..core.errors import ErrorCode, PeekabooError, file_errors, invalid
from ..core.log import log_warning
from ..core.models import Display, ImageInfo, Result, Scene, Window
from ..core.settings import image_lifetime, settings
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..desktop.matching import find_app, find_window, visible_windows, windows_of
from ..system.files import asked_path, file_name, temporary_folder
from ..system.images import EXTENSIONS, kind_by_name
from . import capture
from .act import focus_by_id
from .capture import CapturedImage, Subject
from .listing import session_warnings
from .policy import check_may_act

# Names of images that we do not save: refused, rather than taken for the names of folders.
_OTHER_EXTENSIONS = (
    *(".avif", ".bmp", ".eps", ".heic", ".heif", ".ico", ".jfif", ".jp2", ".jpe", ".jxl"),
    *(".pdf", ".psd", ".svg", ".tga", ".tif", ".tiff"),
)
# What keeps a window from the front, and nobody from capturing it.
_MAY_STAY_BEHIND = (ErrorCode.FOCUS_FAILED, ErrorCode.TIMEOUT, ErrorCode.PERMISSION_DENIED_ACCESSIBILITY)
_NOT_RAISED = "Could not raise specific window; proceeding with frontmost of activated app."


class ImageRequest(NamedTuple):
    """What `image` was asked for. Exactly what the specification's parameters say; None means not given."""

    app: Optional[str] = None
    mode: Optional[str] = None  # screen, window, multi or frontmost
    window_title: Optional[str] = None
    window_index: Optional[int] = None
    window_id: Optional[int] = None
    screen_index: Optional[int] = None
    kind: Optional[str] = None  # png or jpg; None: what the path's name says, else png
    path: Optional[str] = None
    max_dimension: Optional[int] = None
    is_temporary: bool = False  # True where no file is wanted: only what is returned as data

    @property
    def effective_mode(self) -> str:
        """The mode that is asked, else window where an app or a window is named, else screen."""
        is_of_window = self.app is not None or self.window_id is not None
        return self.mode or ("window" if is_of_window else "screen")


def image_result(
    desktop: Desktop,
    request: ImageRequest,
    capture_focus: str,
    returns_data: bool = False,
    question: Optional[str] = None,
) -> Result:
    """Capture what `request` asks for: `{"saved_files": [...]}`, and the images where data is wanted.

    capture_focus: foreground first brings the window to the front; background and auto leave it where it is.
    question: then a configured model is asked about the images: `analysis_text` and `model_used` besides.
    """
    check_request(request)
    base, is_file = _destination(request)
    kind = kind_by_name(base) if base and is_file else request.kind or "png"
    notes = [*session_warnings(desktop)]
    if request.kind not in (None, kind):
        notes.append(f"the images are {kind}, as the path's name says, and not {request.kind}")
    analyse = _analyst(desktop, question) if question is not None else None
    if capture_focus == "foreground":
        subjects, messages = _subjects_in_front(desktop, request)
    else:
        subjects, messages = _find_subjects(capture.scene_to_capture(desktop), request), ()

    def take(subject: Subject) -> CapturedImage:
        return capture.shrunk(desktop, capture.take_image(desktop, subject, kind), request.max_dimension)

    images = in_parallel(take, subjects)
    data: dict[str, Any] = {"saved_files": []}
    if not request.is_temporary:
        images = capture.save_images(images, _paths_of(base, is_file, kind, subjects))
        images = [capture.recorded(desktop, image) for image in images]
        data["saved_files"] = [{"path": image.path, **_image_data(image)} for image in images]
        if not base:
            notes.append(f"without a path the files are temporary: they are kept {image_lifetime()}")
    text, failure, returned = _summary(images), None, []
    try:
        if returns_data:
            returned = [capture.for_client(desktop, image) for image in images]
        if returns_data or (analyse and request.is_temporary):
            shown = [capture.recorded(desktop, image) for image in returned or images]
            sources = [{"source_path": image.path} if image.path else {} for image in shown]
            data["images"] = [{**source, **_image_data(image)} for source, image in zip(sources, shown)]
        if analyse:
            data.update(analyse(images))
            text += f"\n\n{data['analysis_text']}"
    except PeekabooError as e:
        if not data["saved_files"]:
            raise
        failure = e  # what was saved is saved
    contents = tuple(image.content for image in returned)
    return Result(text, data, contents, (*notes, *messages), failure=failure)


def check_request(request: ImageRequest) -> None:
    """Raises INVALID_ARGUMENT for what cannot be meant, before anything is done."""
    capture.check_dimension(request.max_dimension)
    if request.window_title is not None and not request.window_title.strip():
        raise invalid("the window's title is empty", "give a part of it, or leave it out")
    mode = request.effective_mode
    if sum(n is not None for n in (request.window_title, request.window_index, request.window_id)) > 1:
        raise invalid("several of a window's title, index and id are given", "give one of them")
    if mode in ("screen", "multi") and (request.window_title, request.window_index) != (None, None):
        raise invalid(f"mode {mode} takes no window title or index", "leave it out, or name the window's app")
    if mode == "frontmost" and (request.app is not None or request.window_id is not None):
        raise invalid("mode frontmost takes no app or window id", "leave it out, or take mode window")
    if mode in ("window", "multi") and request.app is None and request.window_id is None:
        raise invalid(f"mode {mode} needs an app", "name one, or a window id")


def _analyst(desktop: Desktop, question: str) -> Callable[[list[CapturedImage]], dict[str, str]]:
    """A function that asks the model about each image. Raises AI_NOT_CONFIGURED now, before a capture."""
    from ..ai.client import ask_model, choose_provider

    choice = choose_provider()

    def analyse(images: list[CapturedImage]) -> dict[str, str]:
        texts = []
        for image in images:
            answer = ask_model(desktop, [image.content], question, choice=choice)
            head = f'Analysis for "{clean_text(image.subject.label)}":\n' if len(images) > 1 else ""
            texts.append(head + answer.text)
        return {"analysis_text": "\n\n".join(texts), "model_used": answer.model_used}

    return analyse


def _find_subjects(scene: Scene, request: ImageRequest) -> list[Subject]:
    """What the images are to show. Raises as find_app and find_window do."""
    if request.effective_mode != "screen":
        return _find_windows(scene, request)
    displays, index = scene.displays, request.screen_index
    if not displays:
        message = "no displays available for capture"
        raise PeekabooError(ErrorCode.CAPTURE_FAILED, message, "wake or attach a display")
    if index is not None and not 0 <= index < len(displays):
        raise invalid(f"there is no screen {index}", f"there are {len(displays)}, counted from 0")
    windows = tuple(visible_windows(scene.windows))
    subjects = [Subject(display, number=number, windows=windows) for number, display in enumerate(displays)]
    return subjects if index is None else [subjects[index]]


def _find_windows(scene: Scene, request: ImageRequest, with_off_screen: bool = False) -> list[Subject]:
    """The window that is meant, or all of its app. Raises as find_app and find_window do, WINDOW_NOT_FOUND.

    with_off_screen: an app's minimised and hidden windows count too, after the others.
    """
    if request.window_id is not None:
        window = scene.by_id(request.window_id)
        if request.app and window not in windows_of(find_app(request.app, scene.apps), scene.windows):
            raise invalid(f"window {window.window_id} is one of {window.app_name}", "name that, or no app")
        return [Subject(window=window)]
    if request.effective_mode == "frontmost" or request.app is None:
        visible = visible_windows(scene.windows)
        if not visible:
            raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, "there is no window on the screen", "open one")
        return [Subject(window=max(visible, key=lambda window: window.is_focused), number=0)]
    app = find_app(request.app, scene.apps)
    windows = visible_windows(windows_of(app, scene.windows), with_off_screen)
    windows.sort(key=lambda window: (not window.is_on_screen, not window.is_minimised))
    chosen = find_window(app, windows, request.window_title, request.window_index)
    return [
        Subject(window=window, number=index)
        for index, window in enumerate(windows)
        if request.effective_mode == "multi" or window == chosen
    ]


def _subjects_in_front(desktop: Desktop, request: ImageRequest) -> tuple[list[Subject], tuple[str, ...]]:
    """Activate the app, raise the window that is meant, and see then what there is to capture; and warnings.

    What cannot be raised is captured as it is; where it is not on the screen, the app's front window instead.
    """
    check_may_act("foreground capture")
    scene, mode = capture.scene_to_capture(desktop), request.effective_mode
    if mode == "screen" and request.app is None:
        return _find_subjects(scene, request), ()  # a screen has no front
    messages: tuple[str, ...] = ()
    try:
        meant = _find_windows(scene, request, with_off_screen=True)[0].window
        assert meant
        window = focus_by_id(desktop, window_id := meant.window_id)
        if not meant.is_on_screen:
            capture.wait_until_painted(desktop, window)
    except PeekabooError as e:
        has_no_window = mode == "screen" and e.code is ErrorCode.WINDOW_NOT_FOUND
        if not has_no_window and e.code not in _MAY_STAY_BEHIND:
            raise
        log_warning(_NOT_RAISED)
        messages = (f"nothing was brought to the front: {e.sentence()}",)
    scene = capture.scene_to_capture(desktop)
    if mode == "window":
        window = scene.by_id(window_id)
        if window.is_on_screen and request.window_index is not None:
            return [Subject(window=window, number=request.window_index)], messages
        if not window.is_on_screen:
            request = request._replace(window_title=None, window_index=None)
    return _find_subjects(scene, request), messages


def _destination(request: ImageRequest) -> tuple[Optional[Path], bool]:
    """Where the images go (the asked path, else the environment's; None: our temporary folder), and whether
    that is the name of a file, whose bytes will be what it says, whatever the format asked.

    Raises FILE_IO_ERROR.
    """
    asked = request.path or ("" if request.is_temporary else settings().default_save_path)
    if not asked:
        return None, False
    path = asked_path(asked)
    has_extension = path.suffix.lower() in (*EXTENSIONS, *_OTHER_EXTENSIONS)
    with file_errors(Path(asked)):  # a name that no file system takes
        return path, has_extension and not asked.endswith("/") and not path.is_dir()


def _paths_of(base: Optional[Path], is_file: bool, kind: str, subjects: Sequence[Subject]) -> list[Path]:
    if base and is_file:
        names = [file_name(base.stem, base.suffix[1:], subject.suffix) for subject in subjects]
        return [base.parent / name for name in names] if len(names) > 1 else [base]
    # two captures within a second must not meet
    moment = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}"
    apps = [subject.window.app_name if subject.window else "screen" for subject in subjects]
    return [
        (base or temporary_folder()) / file_name(f"{moment}_{app}", kind, subject.suffix)
        for app, subject in zip(apps, subjects)
    ]


def _summary(images: Sequence[CapturedImage]) -> str:
    is_saved = all(image.path for image in images)
    lines = [f"Captured {len(images)} image(s)" + (". Saved files:" if is_saved else ":")]
    for number, image in enumerate(images, 1):
        label, record = clean_text(image.subject.label), image.screenshot
        about = f"{label}, {image.info.width}x{image.info.height}"
        if record:
            about += f", window {record.window_id}, screenshot_id {record.screenshot_id}"
        lines.append(f"{number}. {image.path} ({about})" if is_saved else f"{number}. {label}")
    return "\n".join(lines)


def _image_data(image: CapturedImage) -> dict[str, Any]:
    """What an image shows, and what its pixels mean: of the file, or of what a model gets."""
    info, subject, window = image.info, image.subject, image.subject.window
    data: dict[str, Any] = {"item_label": clean_text(subject.label), "mime_type": info.mime_type}
    data.update(image_width=info.width, image_height=info.height)
    if window:
        data.update(window_title=window.shown_title, window_id=window.window_id)
        if subject.number is not None:
            data["window_index"] = subject.number
    if subject.display:
        data["windows"] = _windows_in_pixels(subject.display, subject.windows, info)
    if image.screenshot:
        data.update(scale=image.scale, screenshot_id=image.screenshot.screenshot_id)
    return data


def _windows_in_pixels(display: Display, windows: Sequence[Window], info: ImageInfo) -> list[dict[str, Any]]:
    """The windows that a display's image shows, front to back: to read it, and to act on one of them."""
    rows = []
    for window in windows:
        if part := window.bounds.clipped(display.bounds):
            place = part.in_image_of(display.bounds, info.width)
            row = {"window_id": window.window_id, "owner_name": window.app_name, "title": window.shown_title}
            rows.append({**row, **{name: round(value) for name, value in place.as_data().items()}})
    return rows

"""The job of `image`: to the front if asked, photograph, tell what was saved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Optional

from ..core.errors import ErrorCode, PeekabooError
from ..core.log import log_debug
from ..core.models import Picture, Result
from ..core.text import clean_text
from ..desktop.base import Desktop
from .capture import ImageRequest, Photograph, find_subjects, picture_for_model, take_image
from .input import focus_by_id
from .policy import check_may_act


def image_result(
    desktop: Desktop,
    request: ImageRequest,
    capture_focus: str = "background",
    returns_data: bool = False,
    question: Optional[str] = None,
) -> Result:
    """Photograph what `request` asks for: `{"saved_files": [...]}`, and the pictures where data is wanted.

    capture_focus: foreground brings the window to the front first; background and auto photograph it where it is.
    question: then a configured model is asked about the pictures: `analysis_text` and `model_used` besides.
    """
    analyse = _analyst(desktop, question) if question is not None else None
    if capture_focus == "foreground":
        request = _bring_to_front(desktop, request)
    shots = take_image(desktop, request)
    pictures: list[Picture] = []
    files: list[dict[str, Any]] = []
    returned: list[dict[str, Any]] = []
    try:
        for shot in shots:
            files.append(_file_data(shot))
            if returns_data:
                picture, entry = _returned(desktop, shot, request.is_temporary)
                pictures.append(picture)
                returned.append(entry)
        analysis = analyse(shots) if analyse else {}
    finally:
        if request.is_temporary:
            for shot in shots:
                shot.path.unlink(missing_ok=True)
    data: dict[str, Any] = {"saved_files": [] if request.is_temporary else files}
    if returns_data:
        data["images"] = returned
    data.update(analysis)
    text = "\n".join(
        [_summary(shots, request.is_temporary), *(["", analysis["analysis_text"]] if analysis else [])]
    )
    return Result(text, data, tuple(pictures))


def _about(shot: Photograph) -> str:
    """What a person is told of a picture: what it shows, its size, and what a click by it needs."""
    parts = [clean_text(shot.subject.label), f"{shot.info.width}x{shot.info.height}"]
    if shot.screenshot:
        parts += [f"window {shot.screenshot.window_id}", f"screenshot_id {shot.screenshot.screenshot_id}"]
    return ", ".join(parts)


def _analyst(desktop: Desktop, question: str) -> Callable[[list[Photograph]], dict[str, str]]:
    """A function that asks the model about each picture; that none is configured is said now, before a capture."""
    from ..ai.client import ask_model, choose_provider

    choice = choose_provider()

    def analyse(shots: list[Photograph]) -> dict[str, str]:
        answers = [ask_model(desktop, [shot.path], question, choice=choice) for shot in shots]
        blocks = [
            f'Analysis for "{clean_text(shot.subject.label)}":\n{one.text}'
            for shot, one in zip(shots, answers)
        ]
        text = answers[0].text if len(answers) == 1 else "\n\n".join(blocks)
        return {"analysis_text": text, "model_used": answers[0].model_used}

    return analyse


def _bring_to_front(desktop: Desktop, request: ImageRequest) -> ImageRequest:
    """Activate the app and raise the window; return the request for that very window, whose index is another one now.

    A window that will not come is photographed all the same.
    """
    check_may_act("foreground capture")
    subjects = find_subjects(desktop, request)
    window = subjects[0].window
    if window is None:
        return request  # a screen has no front
    try:
        focus_by_id(desktop, window.window_id)
    except PeekabooError as e:
        if e.code not in (ErrorCode.FOCUS_FAILED, ErrorCode.TIMEOUT):
            raise
        log_debug("Could not raise specific window; proceeding with frontmost of activated app.")
    is_one = request.mode != "multi"
    return (
        replace(request, window_id=window.window_id, window_title=None, window_index=None)
        if is_one
        else request
    )


def _file_data(shot: Photograph) -> dict[str, Any]:
    window = shot.subject.window
    data: dict[str, Any] = {
        "path": str(shot.path),
        "item_label": clean_text(shot.subject.label),
        "mime_type": shot.info.mime_type,
        "image_width": shot.info.width,
        "image_height": shot.info.height,
    }
    if window:
        data.update(window_title=clean_text(window.title or ""), window_id=window.window_id)
        if shot.subject.index is not None:
            data["window_index"] = shot.subject.index
    if shot.screenshot:
        data.update(scale=shot.screenshot.scale, screenshot_id=shot.screenshot.screenshot_id)
    return data


def _returned(desktop: Desktop, shot: Photograph, replaces_file: bool) -> tuple[Picture, dict[str, Any]]:
    """The picture as the model gets it, and what its own pixels mean."""
    picture, record = picture_for_model(desktop, shot, replaces_file=replaces_file)
    entry: dict[str, Any] = {
        "item_label": clean_text(shot.subject.label),
        "mime_type": picture.info.mime_type,
        "image_width": picture.info.width,
        "image_height": picture.info.height,
    }
    if record:
        entry.update(window_id=record.window_id, scale=record.scale, screenshot_id=record.screenshot_id)
    return picture, entry


def _summary(shots: list[Photograph], is_temporary: bool) -> str:
    head = f"Captured {len(shots)} image(s)"
    if is_temporary:
        labels = "\n".join(
            f"{number}. {clean_text(shot.subject.label)}" for number, shot in enumerate(shots, 1)
        )
        return f"{head}:\n{labels}"
    lines = [f"{number}. {shot.path} ({_about(shot)})" for number, shot in enumerate(shots, 1)]
    return "\n".join([f"{head}. Saved files:", *lines])

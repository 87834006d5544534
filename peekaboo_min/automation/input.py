"""Focus, click, type, press: the safety rules, and the input lock."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Callable, Optional, TypeVar

from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError
from ..core.models import Point, Scene, Screenshot, Window
from ..core.settings import settings
from ..core.text import control_character_in
from ..desktop.base import Desktop
from ..desktop.keys import read_chord
from ..desktop.matching import blocking_dialog, cover_at
from ..system.files import only_one
from .coordinates import find_record
from .effects import Effect, Watch
from .policy import check_may_act, stop_file, write_audit_line

_LOCK_S = 20.0
_FOCUS_S = 2.0
_FOCUS_AGAIN_S = 0.6
_FOCUS_POLL_S = 0.05
_LONGEST_TEXT, _MOST_LINES = 20_000, 1000  # what is typed within a tool's 50 seconds
BUTTONS = ("left", "right", "middle")
_MODIFIER_NAMES = ("cmd", "ctrl", "alt", "shift", "super")

_Answer = TypeVar("_Answer")


def one_mouse(session: str) -> AbstractContextManager[None]:
    """Hold a desktop's lock around whatever moves focus, pointer or keyboard: shell, server and agent are
    several processes. A program that acts inherits it (system.files.held_locks).
    """
    return only_one(f"input-{session}.lock", _LOCK_S, "mouse and keyboard")


def focus_by_id(desktop: Desktop, window_id: int) -> Window:
    """Bring a window to the front and give it the keyboard; return it as it is then. Raises FOCUS_FAILED."""
    with one_mouse(desktop.session):
        scene = desktop.snapshot()
        window = _permitted_window("focus", scene, window_id)
        if window.is_popup:
            raise PeekabooError(
                ErrorCode.FOCUS_FAILED,
                f"window {window_id} is a popup: it never has the focus, and closes when another gets it",
                hint="click it, or type into it, without focusing it",
            )
        write_audit_line("focus", _where(window))
        return _focused(desktop, scene, window_id).by_id(window_id)


def click_pixel(
    desktop: Desktop,
    window_id: int,
    pixel: Point,
    button: str = "left",
    clicks: int = 1,
    screenshot_id: Optional[str] = None,
    verify: bool = False,
    modifiers: Sequence[str] = (),
) -> dict[str, Any]:
    """Click a pixel of a window's screenshot; the answer says where that was and what is known of the effect.

    Raises WINDOW_NOT_FOUND, STALE_SCREENSHOT, POLICY_DENIED, FOCUS_FAILED, WINDOW_BLOCKED, WINDOW_COVERED;
    then nothing was clicked.
    """
    _check_click(pixel, button, clicks, modifiers)
    with one_mouse(desktop.session):
        scene = desktop.snapshot()
        window = _permitted_window("click", scene, window_id)
        record = find_record(desktop.session, window, screenshot_id)
        inside = _clamped(pixel, record)
        if not window.is_popup:
            _check_not_blocked(window, scene)
            is_covered = cover_at(record.to_point(inside, window.bounds), window, scene.windows)
            if is_covered or not (window.is_focused and window.is_on_screen):
                scene = _focused(desktop, scene, window_id)
                window = scene.by_id(window_id)
                _check_not_blocked(window, scene)
                record = find_record(desktop.session, window, record.screenshot_id)
        point = record.to_point(inside, window.bounds)
        _check_on_a_display(scene, window, point)
        where = {**_where(window), "point": point.as_data(), "button": button, "clicks": clicks}
        watch = Watch(desktop, window) if verify else None
        write_audit_line("click", where)
        delivery = desktop.click(window, point, button, clicks, tuple(modifiers))
        effect = watch.effect() if watch else Effect()
    factor = record.image_width / watch.width if watch else 1.0
    data = {
        "window_id": window_id,
        "pixel": inside.as_data(),
        "point": (delivery.point or point).as_data() if delivery.delivered is False else point.as_data(),
        "clamped": inside != pixel,
        "delivered": delivery.delivered,
        **effect.as_data(factor),
    }
    if delivery.reached_id is not None:
        data["reached_window_id"] = delivery.reached_id
    return data


def type_into_window(desktop: Desktop, window_id: int, text: str, verify: bool = False) -> dict[str, Any]:
    """Type text into a window, which is focused first unless it is a popup.

    Raises as click_pixel does, and FOCUS_LOST, POLICY_DENIED (the stop file) with how many characters went
    out.
    """
    _check_text(text)

    def act(window: Window) -> None:
        desktop.type_text(window, text, stop_file())

    effect = _by_keyboard(desktop, window_id, "type", {"characters": len(text)}, act, verify)
    return {"window_id": window_id, "characters": len(text), "delivered": True, **effect.as_data()}


def press_in_window(
    desktop: Desktop, window_id: int, key: str, modifiers: list[str], verify: bool = False
) -> dict[str, Any]:
    """Press a key or chord in a window, which is focused first unless it is a popup. Raises as click_pixel
    does.
    """
    chord = read_chord(key, modifiers)

    def act(window: Window) -> None:
        desktop.press_key(window, chord)

    effect = _by_keyboard(desktop, window_id, "press", {"key": str(chord)}, act, verify)
    return {"window_id": window_id, "key": str(chord), "delivered": True, **effect.as_data()}


def _by_keyboard(
    desktop: Desktop,
    window_id: int,
    action: str,
    what: dict[str, Any],
    act: Callable[[Window], None],
    verify: bool,
) -> Effect:
    with one_mouse(desktop.session):
        scene = desktop.snapshot()
        window = _permitted_window(action, scene, window_id)
        if not window.is_popup:
            _check_not_blocked(window, scene)
            if not (window.is_focused and window.is_on_screen):
                scene = _focused(desktop, scene, window_id)
                window = scene.by_id(window_id)
                _check_not_blocked(window, scene)
        watch = Watch(desktop, window) if verify else None
        write_audit_line(action, {**_where(window), **what})
        act(window)
        return watch.effect() if watch else Effect()


def _check_text(text: str) -> None:
    if not text:
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, "the text is empty", hint="give the text to type")
    lines = sum(text.count(one) for one in "\n\r\t")
    if len(text) > _LONGEST_TEXT or lines > _MOST_LINES:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT,
            f"the text has {len(text)} characters, {lines} of them returns and tabs",
            hint=f"type at most {_LONGEST_TEXT} and {_MOST_LINES} at once",
        )
    bad = control_character_in(text)
    if bad:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT,
            f"the text holds the control character {bad!r}",
            hint="press such a key instead",
        )


def _check_click(pixel: Point, button: str, clicks: int, modifiers: Sequence[str]) -> None:
    if not (math.isfinite(pixel.x) and math.isfinite(pixel.y)):
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, "x and y must be numbers", hint="give pixels of the screenshot"
        )
    if button not in BUTTONS:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT,
            f"there is no button {button[:40]!r}",
            hint="it is left, right or middle",
        )
    if clicks not in (1, 2, 3):
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, f"clicks is {clicks}", hint="it is 1, 2 or 3")
    unknown = [name for name in modifiers if name not in _MODIFIER_NAMES]
    if unknown:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT,
            f"there is no modifier {unknown[0][:40]!r}",
            hint=f"they are {', '.join(_MODIFIER_NAMES)}",
        )


def _permitted_window(action: str, scene: Scene, window_id: int) -> Window:
    window = scene.by_id(window_id)
    if not window.app_name:
        check_may_act(action)
        raise PeekabooError(
            ErrorCode.POLICY_DENIED,
            f"{action} in window {window_id} is refused: it belongs to no known application",
            hint="act on a window that list_windows shows",
        )
    check_may_act(action, window.app_name, window.bundle_id)
    if scene.is_locked:
        raise PeekabooError(
            ErrorCode.SCREEN_LOCKED, "the screen is locked; nothing was clicked or typed", hint="unlock it"
        )
    return window


def _check_not_blocked(window: Window, scene: Scene) -> None:
    dialog = blocking_dialog(window, scene)
    if dialog:
        raise PeekabooError(
            ErrorCode.WINDOW_BLOCKED,
            f"window {window.window_id} takes no input while its dialog {dialog.title!r} "
            f"(window {dialog.window_id}) is open; nothing was done",
            hint=f"act on window {dialog.window_id}: answer it or close it",
        )


def _focused(desktop: Desktop, scene: Scene, window_id: int) -> Scene:
    """Focus a window and look until it has the focus; return the desktop as it is then.

    It is asked for more than once: activation is a request, and a window that maps just now cannot take it.
    """
    deadline = time.monotonic() + _FOCUS_S
    while True:
        desktop.focus(scene.by_id(window_id), settings().may_focus_by_click)
        ask_again = time.monotonic() + _FOCUS_AGAIN_S
        while True:
            scene = desktop.snapshot()
            window = scene.by_id(window_id)
            _check_not_blocked(window, scene)  # a Mac tells of dialogs only once the application is in front
            if window.is_focused and window.is_on_screen:
                return scene
            if time.monotonic() > min(deadline, ask_again):
                break
            pause(_FOCUS_POLL_S)
        if time.monotonic() > deadline:
            raise PeekabooError(
                ErrorCode.FOCUS_FAILED,
                f"window {window_id} of {window.app_name} could not be brought to the front",
                hint="close a dialog that may be in its way, or bring it forward by hand; nothing was done",
            )


def _check_on_a_display(scene: Scene, window: Window, point: Point) -> None:
    if not any(display.bounds.contains(point) for display in scene.displays):
        # the pointer would be held at the screen's edge, and the click would go there
        raise PeekabooError(
            ErrorCode.WINDOW_COVERED,
            f"that part of window {window.window_id} is outside the screen; nothing was clicked",
            hint="move the window onto the screen",
        )


def _clamped(pixel: Point, record: Screenshot) -> Point:
    """The nearest pixel inside the image: [0, width) x [0, height)."""
    return Point(
        min(max(pixel.x, 0), record.image_width - 1) if not 0 <= pixel.x < record.image_width else pixel.x,
        min(max(pixel.y, 0), record.image_height - 1) if not 0 <= pixel.y < record.image_height else pixel.y,
    )


def _where(window: Window) -> dict[str, Any]:
    return {
        "window_id": window.window_id,
        "app": window.app_name,
        "bundle_id": window.bundle_id,
        "window_pid": window.pid,
    }

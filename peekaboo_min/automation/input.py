"""Focus, click, type, press: the safety rules, and one lock for one mouse."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, Callable, ContextManager, Optional

from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError
from ..core.models import Point, Screenshot, Window
from ..core.settings import settings
from ..core.text import untypable_character
from ..desktop.base import Desktop
from ..desktop.keys import read_chord
from ..desktop.matching import cover_at, window_by_id
from ..system.files import only_one
from ..system.images import pixel_digest
from .capture import photograph_window
from .coordinates import find_record
from .policy import check_may_act, write_audit_line

_LOCK_S = 20.0
_FOCUS_S = 2.0
_FOCUS_AGAIN_S = 0.6
_FOCUS_POLL_S = 0.05
_EFFECT_S = 0.3
_LOOK_AGAIN_S = 0.05
_LONGEST_TEXT, _MOST_LINES = 20_000, 1000  # what is typed within a tool's 50 seconds
BUTTONS = ("left", "right", "middle")


@dataclass(frozen=True)
class Effect:
    """What `verify` saw of an act. None for what was not looked at."""

    has_changed: Optional[bool] = None
    is_window_closed: bool = False

    def as_data(self) -> dict[str, Any]:
        return {"changed": self.has_changed, **({"window_closed": True} if self.is_window_closed else {})}


def one_mouse() -> ContextManager[None]:
    """Hold the lock around whatever moves focus, mouse or keyboard: shell, server and agent are several processes."""
    return only_one("input.lock", _LOCK_S, "mouse and keyboard")


def focus_by_id(desktop: Desktop, window_id: int) -> Window:
    """Bring a window to the front and give it the keyboard; return it as it is then. Raises FOCUS_FAILED."""
    window = _permitted_window("focus", desktop.windows(), window_id)
    with one_mouse():
        write_audit_line("focus", _where(window))
        return window_by_id(window_id, _focused(desktop, desktop.windows(), window_id))


def click_pixel(
    desktop: Desktop,
    window_id: int,
    pixel: Point,
    button: str = "left",
    clicks: int = 1,
    screenshot_id: Optional[str] = None,
    verify: bool = False,
) -> dict[str, Any]:
    """Click a pixel of a window's photograph; the answer says where that was and what is known of the effect.

    Raises WINDOW_NOT_FOUND, STALE_SCREENSHOT, POLICY_DENIED, FOCUS_FAILED, WINDOW_COVERED; then nothing was clicked.
    """
    _check_click(pixel, button, clicks)
    with one_mouse():
        windows = desktop.windows()
        window = _permitted_window("click", windows, window_id)
        record = find_record(window, screenshot_id)
        inside = _clamped(pixel, record)
        if not window.is_focused or cover_at(record.to_point(inside, window.bounds), window, windows):
            windows = _focused(desktop, windows, window_id)
            window = window_by_id(window_id, windows)
            record = find_record(window, record.screenshot_id)
        point = record.to_point(inside, window.bounds)
        _check_reachable(desktop, windows, window, point)
        where = {**_where(window), "point": point.as_data(), "button": button, "clicks": clicks}
        pointer: list[Optional[Point]] = []

        def act() -> None:
            write_audit_line("click", where)
            pointer.append(desktop.click(point, button, clicks))

        effect = _with_effect(desktop, window, act, verify)
    landed = pointer[0]
    return {
        "window_id": window_id,
        "pixel": inside.as_data(),
        "point": point.as_data(),
        "clamped": inside != pixel,
        "delivered": landed is None or math.hypot(landed.x - point.x, landed.y - point.y) < 2,
        **effect.as_data(),
    }


def type_into_window(desktop: Desktop, window_id: int, text: str, verify: bool = False) -> dict[str, Any]:
    """Type text into a window, which is focused first. Raises as click_pixel does."""
    if not text:
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, "the text is empty", hint="give the text to type")
    lines = sum(text.count(one) for one in "\n\r\t")
    if len(text) > _LONGEST_TEXT or lines > _MOST_LINES:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT,
            f"the text has {len(text)} characters, {lines} of them returns and tabs",
            hint=f"type at most {_LONGEST_TEXT} and {_MOST_LINES} at once",
        )
    bad = untypable_character(text)
    if bad:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT,
            f"the text holds the control character {bad!r}",
            hint="press such a key instead",
        )
    effect = _by_keyboard(
        desktop, window_id, "type", {"characters": len(text)}, lambda: desktop.type_text(text), verify
    )
    return {"window_id": window_id, "characters": len(text), "delivered": True, **effect.as_data()}


def press_in_window(
    desktop: Desktop, window_id: int, key: str, modifiers: list[str], verify: bool = False
) -> dict[str, Any]:
    """Press a key or chord in a window, which is focused first. Raises as click_pixel does."""
    chord = read_chord(key, modifiers)
    effect = _by_keyboard(
        desktop, window_id, "press", {"key": str(chord)}, lambda: desktop.press_key(chord), verify
    )
    return {"window_id": window_id, "key": str(chord), "delivered": True, **effect.as_data()}


def _by_keyboard(
    desktop: Desktop, window_id: int, action: str, what: dict[str, Any], act: Callable[[], None], verify: bool
) -> Effect:
    with one_mouse():
        windows = desktop.windows()
        window = _permitted_window(action, windows, window_id)
        if not window.is_focused:
            window = window_by_id(window_id, _focused(desktop, windows, window_id))
        write_audit_line(action, {**_where(window), **what})
        return _with_effect(desktop, window, act, verify)


def _check_click(pixel: Point, button: str, clicks: int) -> None:
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
    if clicks not in (1, 2):
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, f"clicks is {clicks}", hint="it is 1 or 2")


def _permitted_window(action: str, windows: list[Window], window_id: int) -> Window:
    window = window_by_id(window_id, windows)
    check_may_act(action, window.app_name or "a window without an app", window.bundle_id)
    return window


def _focused(desktop: Desktop, windows: list[Window], window_id: int) -> list[Window]:
    """Focus a window and look until it has the focus; return all windows as they are then.

    It is asked for more than once: activation is but a request, and a window that maps just now cannot take it.
    """
    deadline = time.monotonic() + _FOCUS_S
    while True:
        desktop.focus(window_by_id(window_id, windows), settings().may_focus_by_click)
        ask_again = time.monotonic() + _FOCUS_AGAIN_S
        while True:
            windows = desktop.windows()
            window = window_by_id(window_id, windows)
            if window.is_focused and window.is_on_screen:
                return windows
            if time.monotonic() > min(deadline, ask_again):
                break
            pause(_FOCUS_POLL_S)
        if time.monotonic() > deadline:
            raise PeekabooError(
                ErrorCode.FOCUS_FAILED,
                f"window {window_id} of {window.app_name} could not be brought to the front",
                hint="close a dialog that may be in its way, or bring it forward by hand; nothing was done",
            )


def _check_reachable(desktop: Desktop, windows: list[Window], window: Window, point: Point) -> None:
    if not any(display.bounds.contains(point) for display in desktop.displays()):
        # the pointer would be held at the screen's edge, and the click would go there
        raise PeekabooError(
            ErrorCode.CAPTURE_FAILED if not window.is_on_screen else ErrorCode.WINDOW_COVERED,
            f"that part of window {window.window_id} is outside the screen; nothing was clicked",
            hint="move the window onto the screen",
        )
    cover = cover_at(point, window, windows)
    if cover:
        name = cover.app_name or "a menu or an overlay"
        raise PeekabooError(
            ErrorCode.WINDOW_COVERED,
            f"window {window.window_id} is covered by {name} (window {cover.window_id}) there; nothing was clicked",
            hint="close what covers it, or act on that window",
        )


def _clamped(pixel: Point, record: Screenshot) -> Point:
    """The nearest pixel inside the picture: [0, width) x [0, height)."""
    return Point(
        min(max(pixel.x, 0), record.image_width - 1) if not 0 <= pixel.x < record.image_width else pixel.x,
        min(max(pixel.y, 0), record.image_height - 1) if not 0 <= pixel.y < record.image_height else pixel.y,
    )


def _with_effect(desktop: Desktop, window: Window, act: Callable[[], None], verify: bool) -> Effect:
    """Act; with `verify` photograph the window before and after, and compare. A vanished window is an outcome."""
    before = _digest(desktop, window) if verify else None
    act()
    if not verify:
        return Effect()
    try:
        return Effect(has_changed=_has_changed(desktop, window.window_id, before))
    except PeekabooError as e:
        if e.code in (ErrorCode.WINDOW_NOT_FOUND, ErrorCode.CAPTURE_FAILED):
            return Effect(has_changed=True, is_window_closed=True)
        raise


def _has_changed(desktop: Desktop, window_id: int, before: Optional[str]) -> bool:
    """Whether a window's picture becomes another one and stays it; a window that does not answer gets _EFFECT_S."""
    deadline = time.monotonic() + _EFFECT_S
    last = before
    while True:
        pause(_LOOK_AGAIN_S)
        now = _digest(desktop, window_by_id(window_id, desktop.windows()))
        if time.monotonic() > deadline or (now == last and now != before):
            return now != before
        last = now


def _digest(desktop: Desktop, window: Window) -> str:
    # without a record: the pixels of the caller's last picture must stay the ones that a click means
    shot = photograph_window(desktop, window, "png", keeps_record=False)
    try:
        return pixel_digest(shot.path)
    finally:
        shot.path.unlink(missing_ok=True)


def _where(window: Window) -> dict[str, Any]:
    return {
        "window_id": window.window_id,
        "app": window.app_name,
        "bundle_id": window.bundle_id,
        "window_pid": window.pid,
    }

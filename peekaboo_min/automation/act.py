"""Do an act in a window: its safety rules, the input lock, the effect."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Callable, Optional

from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError, check_range, invalid
from ..core.log import log_warning
from ..core.models import ACT_LIMITS, ACT_NAMES, Act, Point, Scene, Window
from ..core.settings import settings
from ..core.text import control_character_in
from ..desktop.base import Desktop
from ..desktop.matching import blocking_dialog, cover_at, foreign_menu, open_menu
from ..system.files import file_lock
from .coordinates import Screenshot, find_record
from .effects import Effect, Watch
from .policy import audited, check_may_act, denied, stop_file, write_audit_line

_LOCK_S = 20.0
_FOCUS_S = 2.0
_FOCUS_AGAIN_S = 0.6
_FOCUS_POLL_S = 0.05
_MENU_S = 0.4  # a menu whose item was chosen closes within that time
# What is posted within a tool's 50 seconds.
_LONGEST_TEXT, _MOST_LINES = 20_000, 1000
_LONGEST_MS = 40_000
# There the keys that select all go to the start of the line, or select what was printed.
_NO_SELECT_ALL = re.compile(
    r"term|rxvt|konsole|alacritty|kitty|tilda|guake|yakuake|ghostty|^(st|foot|warp|hyper|emacs)$", re.I
)
_MAY_CLICK = "; PEEKABOO_SAFE_CLICK=1 in the environment lets its title bar be clicked for that"


def input_lock(session: str) -> AbstractContextManager[None]:
    """Hold a desktop's lock around whatever moves focus, pointer or keyboard: shell, server and agent are
    several processes. A program that acts inherits it (system.files.held_locks).
    """
    return file_lock(f"input-{session}.lock", _LOCK_S, "mouse and keyboard")


def focus_by_id(desktop: Desktop, window_id: int) -> Window:
    """Bring a window to the front and give it the keyboard; return it as it is then.

    Raises FOCUS_FAILED, and WINDOW_BLOCKED while a menu of another application keeps the keyboard.
    """
    with input_lock(desktop.session):
        scene = desktop.snapshot()
        window = _permitted_window("focus", scene, window_id)
        if window.is_popup:
            raise PeekabooError(
                ErrorCode.FOCUS_FAILED,
                f"window {window_id} is a popup: it never has the focus, and closes when another gets it",
                hint="click it, or type into it, without focusing it",
            )
        scene = _without_menu(desktop, scene, window_id, foreign_menu)
        write_audit_line("focus", audited(window))
        return _focused(desktop, scene, window_id).by_id(window_id)


def perform(
    desktop: Desktop, window_id: int, act: Act, screenshot_id: Optional[str] = None, verify: bool = False
) -> dict[str, Any]:
    """Do one act in a window; its points are pixels of a screenshot. The answer of the tool: where that was,
    whether it arrived, and what is known of its effect.

    The window is brought to the front and focused first, unless it is a popup. Raises INVALID_ARGUMENT,
    WINDOW_NOT_FOUND, STALE_SCREENSHOT, POLICY_DENIED, FOCUS_FAILED, WINDOW_BLOCKED, WINDOW_COVERED; then
    nothing was done. FOCUS_LOST and POLICY_DENIED (the stop file) say how much of a text went out.
    """
    act = _checked(act)
    given = list(act.points)
    record: Optional[Screenshot] = None
    pixels: list[Point] = []
    with input_lock(desktop.session):
        scene = desktop.snapshot()
        window = _permitted_window(act.kind, scene, window_id)
        if act.points:
            record = find_record(desktop.session, window, screenshot_id)
            pixels = [_clamped(pixel, record) for pixel in act.points]
            points = [record.to_point(pixel, window.bounds) for pixel in pixels]
            is_covered = any(cover_at(point, window, scene.windows) for point in points)
            scene = _ready_for_input(desktop, scene, window, is_covered)
        else:
            scene = _ready_for_keys(desktop, scene, window, act)
        window = scene.by_id(window_id)
        if record:
            record = find_record(desktop.session, window, record.screenshot_id)
            points = [record.to_point(pixel, window.bounds) for pixel in pixels]
            _check_on_a_display(scene, window, points)
            act = act._replace(points=tuple(points))
        watch = Watch(desktop, scene, window) if verify else None
        write_audit_line(act.kind, {**audited(window), **_audited_act(act)})
        delivery = desktop.act(window, act, stop_file())
        effect = _effect_of(watch)
    data: dict[str, Any] = {"window_id": window_id}
    if record is None:
        done = {"characters": len(act.text)} if act.kind == "type" else {"key": str(act.chord)}
        return {**data, **done, "delivered": delivery.delivered, **effect.as_data()}
    point = delivery.point if delivery.point and delivery.delivered is False else act.points[0]
    data.update(pixel=pixels[0].as_data(), point=point.as_data())
    if len(pixels) > 1:
        data.update(to_pixel=pixels[1].as_data(), to_point=act.points[1].as_data())
    factor = record.image_width / watch.width if watch else 1.0
    data.update(clamped=pixels != given, delivered=delivery.delivered, **effect.as_data(factor))
    if delivery.reached_id is not None:
        data["reached_window_id"] = delivery.reached_id
    return data


def _effect_of(watch: Optional[Watch]) -> Effect:
    """The act is done: a look afterwards that fails is not its failure, or somebody would repeat it."""
    try:
        return watch.effect() if watch else Effect()
    except PeekabooError as e:
        if e.code is ErrorCode.CANCELLED:
            raise
        log_warning(f"what the act changed is not known: {e.message}")
        return Effect()


def _audited_act(act: Act) -> dict[str, Any]:
    """What the audit log says of an act: never the text."""
    details: dict[str, dict[str, Any]] = {
        "click": {"button": act.button, "clicks": act.clicks, "modifiers": act.modifiers or None},
        "scroll": {"direction": act.direction, "amount": act.amount},
        "drag": {"button": act.button},
        "type": {"characters": len(act.text), "replace": act.replace or None},
        "press": {"key": str(act.chord), "repeat": act.repeat if act.repeat > 1 else None},
    }
    where = {"point": act.points[0].as_data()} if act.points else {}
    return {
        **where,
        **{name: value for name, value in details.get(act.kind, {}).items() if value is not None},
    }


# the rules


def _checked(act: Act) -> Act:
    """The act, its modifiers in our order. Raises INVALID_ARGUMENT for what its fields cannot be."""
    named = [("button", act.button), ("direction", act.direction), *(("modifier", m) for m in act.modifiers)]
    for what, name in named:
        if name not in ACT_NAMES[what]:
            raise invalid(f"there is no {what} {name[:40]!r}", f"choose one of {', '.join(ACT_NAMES[what])}")
    if act.clicks not in (1, 2, 3):
        raise invalid(f"clicks is {act.clicks}", "give 1, 2 or 3")
    if act.kind == "type":
        _check_text(act.text, act.replace)
    for what in ("amount", "hold_ms", "repeat", "delay_ms"):
        check_range(what, getattr(act, what), *ACT_LIMITS[what])
    check_range("hold_ms times repeat", act.hold_ms * act.repeat, 0, _LONGEST_MS)
    check_range("delay_ms times the characters", act.delay_ms * len(act.text), 0, _LONGEST_MS)
    if not all(math.isfinite(value) for point in act.points for value in point):
        raise invalid("x and y must be numbers", "give pixels of the screenshot")
    return act._replace(modifiers=tuple(name for name in ACT_NAMES["modifier"] if name in act.modifiers))


def _check_text(text: str, may_be_empty: bool) -> None:
    if not text and not may_be_empty:
        raise invalid("the text is empty", "give the text to type; replace=true may delete what is there")
    lines = sum(text.count(key) for key in "\n\r\t")
    if len(text) > _LONGEST_TEXT or lines > _MOST_LINES:
        raise invalid(
            f"the text has {len(text)} characters, {lines} of them returns and tabs",
            f"type at most {_LONGEST_TEXT} and {_MOST_LINES} at once",
        )
    bad = control_character_in(text)
    if bad:
        raise invalid(f"the text holds the control character {bad!r}", "press such a key instead")


def _permitted_window(action: str, scene: Scene, window_id: int) -> Window:
    window = scene.by_id(window_id)
    if not window.app_name:
        check_may_act(action)
        raise denied(
            f"{action} in window {window_id} is refused: it belongs to no known application",
            "act on a window that list_windows shows",
        )
    check_may_act(action, window.app_name, window.bundle_id)
    if scene.is_locked:
        raise PeekabooError(
            ErrorCode.SCREEN_LOCKED, "the screen is locked; nothing was clicked or typed", hint="unlock it"
        )
    return window


def _ready_for_input(desktop: Desktop, scene: Scene, window: Window, is_covered: bool = False) -> Scene:
    """The desktop as it is once the window can be acted on: in front, focused, and not blocked by a dialog.

    A popup stays as it is: it would close if anything was focused.
    """
    if window.is_popup:
        return scene
    _check_not_blocked(window, scene)
    if is_covered or not (window.is_focused and window.is_on_screen):
        return _focused(desktop, scene, window.window_id)
    return scene


def _ready_for_keys(desktop: Desktop, scene: Scene, window: Window, act: Act) -> Scene:
    """As _ready_for_input, once no menu takes the keys; the window's own may take a key without modifiers."""
    if act.replace and _NO_SELECT_ALL.search(window.app_name):
        raise invalid(
            f"{window.app_name} has no field whose text the keys for `select all` would select",
            "clear its line by keys of its own, then type without replace",
        )
    scene = _without_menu(desktop, scene, window.window_id, foreign_menu)
    scene = _ready_for_input(desktop, scene, scene.by_id(window.window_id))
    if act.kind == "type" or set(act.chord.modifiers) - {"shift"}:
        scene = _without_menu(desktop, scene, window.window_id, open_menu)
    return scene


def _check_not_blocked(window: Window, scene: Scene) -> None:
    dialog = blocking_dialog(window, scene)
    if dialog:
        raise PeekabooError(
            ErrorCode.WINDOW_BLOCKED,
            f"window {window.window_id} takes no input while its dialog {dialog.title!r} "
            f"(window {dialog.window_id}) is open; nothing was done",
            hint=f"act on window {dialog.window_id}: answer it or close it",
        )


def _without_menu(
    desktop: Desktop, scene: Scene, window_id: int, menu_of: Callable[[Window, Scene], Optional[Window]]
) -> Scene:
    """The desktop as it is once no menu takes the window's keys. Raises WINDOW_BLOCKED for one that stays."""
    deadline = time.monotonic() + _MENU_S
    while menu := menu_of(scene.by_id(window_id), scene):
        if time.monotonic() > deadline:
            raise PeekabooError(
                ErrorCode.WINDOW_BLOCKED,
                f"a menu of {menu.app_name or 'another program'} (window {menu.window_id}) is open and takes "
                "the keys; nothing was done",
                hint=f"choose from window {menu.window_id}, or close it: press escape, or click beside it",
            )
        pause(_FOCUS_POLL_S)
        scene = desktop.snapshot()
    return scene


def _focused(desktop: Desktop, scene: Scene, window_id: int) -> Scene:
    """Focus a window and look until it has the focus; return the desktop as it is then.

    It is asked for more than once: activation is a request, and a window that maps just now cannot take it.
    """
    started = ask_at = time.monotonic()
    window = scene.by_id(window_id)
    was_shown = window.is_on_screen
    while True:
        if time.monotonic() >= ask_at:
            desktop.focus(scene.by_id(window_id), settings().may_focus_by_click)
            ask_at = time.monotonic() + _FOCUS_AGAIN_S
        scene = desktop.snapshot()
        before, window = window, scene.by_id(window_id)
        _check_not_blocked(window, scene)  # a Mac tells of dialogs only once the application is in front
        # a window manager may show how a minimised window comes: it moves for a moment
        is_at_rest = was_shown or (window.bounds == before.bounds and before.is_on_screen)
        if window.is_focused and window.is_on_screen and is_at_rest:
            return scene
        if time.monotonic() > started + _FOCUS_S:
            may_click = "" if settings().may_focus_by_click else _MAY_CLICK
            raise PeekabooError(
                ErrorCode.FOCUS_FAILED,
                f"window {window_id} of {window.app_name} could not be brought to the front",
                hint="nothing was done; close a dialog that may be in its way, or bring it forward by hand"
                + may_click,
            )
        pause(_FOCUS_POLL_S)


def _check_on_a_display(scene: Scene, window: Window, points: Sequence[Point]) -> None:
    for point in points:
        if not any(display.bounds.contains(point) for display in scene.displays):
            # the pointer would be held at the screen's edge, and the click would go there
            raise PeekabooError(
                ErrorCode.WINDOW_COVERED,
                f"that part of window {window.window_id} is outside the screen; nothing was clicked",
                hint="move the window onto the screen",
            )


def _clamped(pixel: Point, record: Screenshot) -> Point:
    """The nearest pixel inside the image: [0, width) x [0, height)."""

    def nearest(value: float, size: int) -> float:
        return value if 0 <= value < size else min(max(value, 0), size - 1)

    return Point(nearest(pixel.x, record.image_width), nearest(pixel.y, record.image_height))

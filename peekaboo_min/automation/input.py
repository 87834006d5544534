"""Every act in a window: its safety rules, the input lock, the effect."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Callable, Optional

from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError, check_range, invalid
from ..core.models import Delivery, KeyChord, Point, Scene, Screenshot, Window
from ..core.settings import settings
from ..core.text import control_character_in
from ..desktop.base import Desktop
from ..desktop.keys import read_chord
from ..desktop.matching import blocking_dialog, cover_at, foreign_menu, open_menu
from ..system.files import file_lock
from .coordinates import find_record
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
BUTTONS = ("left", "right", "middle")
DIRECTIONS = ("up", "down", "left", "right")
_CLICK_MODIFIERS = ("cmd", "ctrl", "alt", "shift", "super")
_DELETE = KeyChord("backspace")
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


# by the pointer


def click_pixel(
    desktop: Desktop,
    window_id: int,
    pixel: Point,
    button: str,
    clicks: int,
    screenshot_id: Optional[str],
    verify: bool,
    modifiers: Sequence[str] = (),
) -> dict[str, Any]:
    """Click a pixel of a window's screenshot; the answer says where that was and what is known of the effect.

    Raises WINDOW_NOT_FOUND, STALE_SCREENSHOT, POLICY_DENIED, FOCUS_FAILED, WINDOW_BLOCKED, WINDOW_COVERED;
    then nothing was clicked.
    """
    _check_choice("button", button, BUTTONS)
    if clicks not in (1, 2, 3):
        raise invalid(f"clicks is {clicks}", "give 1, 2 or 3")
    for name in modifiers:
        _check_choice("modifier", name, _CLICK_MODIFIERS)
    held = tuple(name for name in _CLICK_MODIFIERS if name in modifiers)
    return _by_pointer(
        desktop, "click", window_id, [pixel], screenshot_id, verify,
        {"button": button, "clicks": clicks, **({"modifiers": held} if held else {})},
        lambda window, points: desktop.click(window, points[0], button, clicks, held),
    )  # fmt: skip


def scroll_at(
    desktop: Desktop,
    window_id: int,
    pixel: Point,
    direction: str,
    amount: int,
    screenshot_id: Optional[str],
    verify: bool,
) -> dict[str, Any]:
    """Turn the wheel by `amount` notches over a pixel of a screenshot. Raises as click_pixel does."""
    _check_choice("direction", direction, DIRECTIONS)
    check_range("amount", amount, 1, 50)
    return _by_pointer(
        desktop, "scroll", window_id, [pixel], screenshot_id, verify,
        {"direction": direction, "amount": amount},
        lambda window, points: desktop.scroll(window, points[0], direction, amount),
    )  # fmt: skip


def drag_pixels(
    desktop: Desktop,
    window_id: int,
    start: Point,
    end: Point,
    button: str,
    screenshot_id: Optional[str],
    verify: bool,
) -> dict[str, Any]:
    """Press at one pixel of a window's screenshot and release at another. Raises as click_pixel does."""
    _check_choice("button", button, BUTTONS)
    return _by_pointer(
        desktop, "drag", window_id, [start, end], screenshot_id, verify, {"button": button},
        lambda window, points: desktop.drag(window, points[0], points[1], button),
    )  # fmt: skip


def move_to_pixel(
    desktop: Desktop, window_id: int, pixel: Point, screenshot_id: Optional[str]
) -> dict[str, Any]:
    """Move the pointer over a pixel of a window's screenshot. Raises as click_pixel does."""
    return _by_pointer(
        desktop, "move_pointer", window_id, [pixel], screenshot_id, False, {},
        lambda window, points: desktop.move_pointer(window, points[0]),
    )  # fmt: skip


def _by_pointer(
    desktop: Desktop,
    action: str,
    window_id: int,
    pixels: list[Point],
    screenshot_id: Optional[str],
    verify: bool,
    what: dict[str, Any],
    post: Callable[[Window, list[Point]], Delivery],
) -> dict[str, Any]:
    """Do `post` at the screen points of these pixels; `what`: the audit log's. The answer of the tool."""
    if not all(math.isfinite(value) for pixel in pixels for value in (pixel.x, pixel.y)):
        raise invalid("x and y must be numbers", "give pixels of the screenshot")
    with input_lock(desktop.session):
        scene = desktop.snapshot()
        window = _permitted_window(action, scene, window_id)
        record = find_record(desktop.session, window, screenshot_id)
        inside = [_clamped(pixel, record) for pixel in pixels]
        is_covered = any(
            cover_at(record.to_point(each, window.bounds), window, scene.windows) for each in inside
        )
        scene = _ready_for_input(desktop, scene, window, is_covered)
        window = scene.by_id(window_id)
        record = find_record(desktop.session, window, record.screenshot_id)
        points = [record.to_point(each, window.bounds) for each in inside]
        _check_on_a_display(scene, window, points)
        watch = Watch(desktop, scene, window) if verify else None
        write_audit_line(action, {**audited(window), "point": points[0].as_data(), **what})
        delivery = post(window, points)
        effect = watch.effect() if watch else Effect()
    point = delivery.point if delivery.point and delivery.delivered is False else points[0]
    data = {"window_id": window_id, "pixel": inside[0].as_data(), "point": point.as_data()}
    if len(points) > 1:
        data.update(to_pixel=inside[1].as_data(), to_point=points[1].as_data())
    factor = record.image_width / watch.width if watch else 1.0
    data.update(clamped=inside != pixels, delivered=delivery.delivered, **effect.as_data(factor))
    if delivery.reached_id is not None:
        data["reached_window_id"] = delivery.reached_id
    return data


# by the keyboard


def type_into_window(
    desktop: Desktop, window_id: int, text: str, verify: bool, replace: bool, delay_ms: int
) -> dict[str, Any]:
    """Type text into a window, which is focused first unless it is a popup.

    replace: the keys that select all that the field holds are pressed first; then the text may be empty.
    Raises as click_pixel does; FOCUS_LOST and POLICY_DENIED (the stop file) say how many characters went out.
    """
    _check_text(text, replace, delay_ms)

    def post(window: Window) -> None:
        if replace:
            desktop.select_all(window, stop_file())
        if text:
            desktop.type_text(window, text, stop_file(), delay_ms)
        else:
            desktop.press_key(window, _DELETE, stop_file=stop_file())

    def check(window: Window) -> None:
        if replace and _NO_SELECT_ALL.search(window.app_name):
            raise invalid(
                f"{window.app_name} has no field whose text the keys for `select all` would select",
                "clear its line by keys of its own, then type without replace",
            )

    what = {"characters": len(text), **({"replace": True} if replace else {})}
    effect = _by_keyboard(desktop, "type", window_id, verify, what, post, check, is_for_menus=False)
    return {"window_id": window_id, "characters": len(text), "delivered": True, **effect.as_data()}


def press_in_window(
    desktop: Desktop,
    window_id: int,
    key: str,
    modifiers: Sequence[str],
    verify: bool,
    hold_ms: int,
    repeat: int,
) -> dict[str, Any]:
    """Press a key or chord in a window, focused first unless it is a popup. Raises as click_pixel does."""
    chord = read_chord(key, modifiers)
    check_range("hold_ms", hold_ms, 0, 5000)
    check_range("repeat", repeat, 1, 50)
    check_range("hold_ms times repeat", hold_ms * repeat, 0, _LONGEST_MS)

    what = {"key": str(chord), **({"repeat": repeat} if repeat > 1 else {})}
    effect = _by_keyboard(
        desktop, "press", window_id, verify, what,
        lambda window: desktop.press_key(window, chord, hold_ms, repeat, stop_file()),
        is_for_menus=not set(chord.modifiers) - {"shift"},
    )  # fmt: skip
    return {"window_id": window_id, "key": str(chord), "delivered": True, **effect.as_data()}


def _by_keyboard(
    desktop: Desktop,
    action: str,
    window_id: int,
    verify: bool,
    what: dict[str, Any],
    post: Callable[[Window], None],
    check: Callable[[Window], None] = lambda window: None,
    is_for_menus: bool = True,
) -> Effect:
    """is_for_menus: whether the window's open menu may take it."""
    with input_lock(desktop.session):
        scene = desktop.snapshot()
        window = _permitted_window(action, scene, window_id)
        check(window)
        scene = _without_menu(desktop, scene, window_id, foreign_menu)
        scene = _ready_for_input(desktop, scene, scene.by_id(window_id))
        if not is_for_menus:
            scene = _without_menu(desktop, scene, window_id, open_menu)
        window = scene.by_id(window_id)
        watch = Watch(desktop, scene, window) if verify else None
        write_audit_line(action, {**audited(window), **what})
        post(window)
        return watch.effect() if watch else Effect()


# the rules


def _check_choice(what: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise invalid(f"there is no {what} {value[:40]!r}", f"choose one of {', '.join(choices)}")


def _check_text(text: str, may_be_empty: bool, delay_ms: int) -> None:
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
    check_range("delay_ms", delay_ms, 0, 200)
    check_range("delay_ms times the characters", delay_ms * len(text), 0, _LONGEST_MS)


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

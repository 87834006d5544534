"""Do an act in a window: safety rules, input lock, focus, effect."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Callable, Optional

from ..core.call import pause
from ..core.errors import ErrorCode, PeekabooError, check_range, invalid, screen_locked
from ..core.log import log_warning
from ..core.models import ACT_LIMITS, ACT_NAMES, Act, Point, Rect, Result, Scene, Window
from ..core.settings import settings
from ..core.text import control_character_in
from ..desktop.base import Desktop
from ..desktop.matching import blocking_dialog, catalogue_windows, cover_of, foreign_menu, open_menu, owner_of
from ..system.bitmaps import Bitmap, Marks, changed_bytes, is_caret, rect_of_bytes
from ..system.files import file_lock
from .capture import take_bitmap
from .coordinates import Screenshot, find_record
from .policy import audited, check_may_act, denied, stop_file, write_audit_line

_LOCK_S = 20.0  # leaves 30 of a call's 50 s to the act
_POLL_S = 0.05  # about as long as a listing takes
# Unequal pauses between the screenshots after an act: with equal pauses, a window that blinks at the same
# rate looks still.
_AFTER_S = (0.05, 0.08, 0.14, 0.22)
_WAIT_S, _LONGEST_WAIT_S = 1.0, 2.3  # the wait if nothing changed; if a change may still stay for _STAYS_S
_STAYS_S = 1.1  # a change that stays this long is an effect, even in a window that blinks every 2 s or faster
_LONGEST_TEXT, _MOST_LINES, _LONGEST_MS = 20_000, 1000, 40_000  # these fit into a tool's 50 seconds
# In these programs, the keys for "select all" go to the start of the line, or select the output.
_NO_SELECT_ALL = re.compile(
    r"term|rxvt|konsole|alacritty|kitty|tilda|guake|yakuake|ghostty|^(st|foot|warp|hyper|emacs)$", re.I
)


def input_lock(session: str) -> AbstractContextManager[None]:
    """Hold the lock of a display's mouse and keyboard in a `with` block; the acting program inherits it."""
    # localhost:1 may be the display :1. If it is another display (ssh), sharing a lock does no harm.
    display = re.sub(r"^x11-(localhost|127[\d.]*)-", "x11-", session)
    return file_lock(f"input-{display}.lock", _LOCK_S, "mouse and keyboard")


def focus_by_id(desktop: Desktop, window_id: int) -> Window:
    """Focus a window and return it. Raises FOCUS_FAILED, and WINDOW_BLOCKED if another app's menu is open."""
    with input_lock(desktop.session):
        scene = desktop.snapshot()
        window = _permitted_window("focus", scene, window_id)
        if window.is_popup:
            message = f"window {window_id} is a popup, which closes if a window gets the focus"
            raise PeekabooError(ErrorCode.FOCUS_FAILED, message, "click it, or type into it, without focus")
        scene = _without_menu(desktop, scene, window_id, foreign_menu)
        write_audit_line("focus", audited(window))
        return _focused(desktop, scene, window_id).by_id(window_id)


def perform(
    desktop: Desktop, window_id: int, act: Act, done: str, verify: bool, screenshot_id: Optional[str] = None
) -> Result:
    """Do one act, whose points are pixels of a screenshot; return its delivery and its effect.

    done: the start of the result's text ("clicked window 7"). Raises INVALID_ARGUMENT, WINDOW_NOT_FOUND,
    STALE_SCREENSHOT, POLICY_DENIED, FOCUS_FAILED, WINDOW_BLOCKED and WINDOW_COVERED if nothing was done.
    FOCUS_LOST, and POLICY_DENIED while typing, report how much of the text was sent.
    """
    act = _checked(act)
    given, pixels = act.points, act.points
    record: Optional[Screenshot] = None
    with input_lock(desktop.session):
        scene = desktop.snapshot()
        if not scene.find(window_id) and any(scene.find(int(number)) for pixel in given for number in pixel):
            hint = "give the window's id first, then x and y"
            raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, f"there is no window {window_id}", hint)
        window = _permitted_window(act.kind, scene, window_id)
        if given:
            record = find_record(desktop.session, window, screenshot_id)
            pixels = tuple(_clamped(pixel, record) for pixel in given)
            act = act._replace(points=record.to_points(pixels, window.bounds))
        scene = _prepared(desktop, scene, window, act)
        window = scene.by_id(window_id)
        if record:  # the window may have moved when it got the focus
            record = find_record(desktop.session, window, record.screenshot_id)
            act = act._replace(points=record.to_points(pixels, window.bounds))
            _check_on_a_display(scene, window, act.points)
        watch = _Watch(desktop, window) if verify else None
        write_audit_line(act.kind, {**audited(window), **_audited_act(act)})
        try:
            delivery = desktop.act(window, act, stop_file())
        except PeekabooError as e:
            popups = [cover for cover in _covers(scene, window, act) if cover.is_popup]
            own_popups = [popup for popup in popups if owner_of(popup) == owner_of(window)]
            if e.code is ErrorCode.WINDOW_COVERED and own_popups:
                e.hint = f"press escape, or act in the popup's window {own_popups[0].window_id}"
            raise
        effect = watch.effect(record) if watch else {"changed": None}
    data = {"window_id": window_id, **_place_or_input(act), "delivered": delivery.delivered}
    if pixels:
        data.update(pixel=pixels[0].as_data(), clamped=pixels != given)
        if delivery.point and delivery.delivered is False:
            data["point"] = delivery.point.as_data()
        done += " at screen point {x:g},{y:g}".format(**data["point"])
    if len(pixels) > 1:
        data.update(to_pixel=pixels[1].as_data(), to_point=act.points[1].as_data())
        done += " to {x:g},{y:g}".format(**data["to_point"])
    notes = {"reached_window_id": delivery.reached_id, "reason": delivery.reason}
    notes.update(others_typed=delivery.others_typed, copy_lost=delivery.has_lost_copy)
    data.update({name: value for name, value in notes.items() if value}, **effect)
    return Result("; ".join(filter(None, (done, effect_text(data)))), data)


def effect_text(data: dict[str, Any]) -> str:
    """Describe delivery and effect in one line, from the data of an act's result; empty if unknown."""
    names = ("reached_window_id", "delivered", "changed", "others_typed")
    reached, delivered, changed, others = map(data.get, names)
    missed = f"but window {reached} received it" if reached else "but the window did not receive it"
    missed += f": {data['reason']}" if data.get("reason") else ""
    effects = {
        True: "the window closed" if data.get("window_closed") else "the window changed",
        False: f"no change within {data.get('effect_ms', 0) / 1000:.1f} s",
        None: "the window changes by itself, so the effect is unknown",
    }
    parts = [
        "the pixel was outside the image and was moved to its edge" if data.get("clamped") else "",
        {True: "", False: missed, None: "it is not known whether the window received it"}[delivered],
        f"{others} other key(s) were pressed at the same time" if others else "",
        "a copy made during the paste may be lost" if data.get("copy_lost") else "",
        effects[changed] if changed or data.get("effect_ms") else "",
        "window {window_id} {title!r} opened".format(**data["new_window"]) if data.get("new_window") else "",
    ]
    return "; ".join(filter(None, parts))


def _place_or_input(act: Act) -> dict[str, Any]:
    if act.points:
        return {"point": act.points[0].as_data()}
    return {"characters": len(act.text)} if act.kind == "type" else {"key": str(act.chord)}


def _audited_act(act: Act) -> dict[str, Any]:
    names = {"click": ("button", "clicks"), "scroll": ("direction", "amount"), "drag": ("button",)}
    unusual = {"modifiers": act.modifiers, "repeat": act.repeat > 1 and act.repeat, "replace": act.replace}
    return {
        **{name: getattr(act, name) for name in names.get(act.kind, ())},
        **_place_or_input(act),
        **{name: value for name, value in unusual.items() if value},
    }


class _Watch:
    """Compares a window's screenshots before and after an act, to find out what the act changed.

    Not every change is an effect: a caret blinks, a clock runs. So each byte of the images is compared:
    - It blinks if it differed from an earlier screenshot and is equal to it again. It is ignored then.
    - It is changed if it differs from the last screenshot before the act and does not blink.

    The act had an effect if some bytes are changed in every screenshot for _STAYS_S seconds.
    """

    def __init__(self, desktop: Desktop, window: Window) -> None:
        self._desktop = desktop
        self._window = window
        # the distinct screenshots before the act; each with the bytes in which a later screenshot differed
        self._earlier: list[tuple[Bitmap, Marks]] = [(take_bitmap(desktop, window), {})]
        self._blinking: Marks = {}
        for _ in range(3):  # a window that just got the focus may still be repainting
            pause(0.1)
            bitmap, changed = self._take()
            if self._earlier[-1][1]:
                self._earlier.append((bitmap, {}))
            self._is_still = not self._is_large(changed)
            if self._is_still:
                break
        # list them last: a window that opens during the screenshots is not an effect of the act
        self._known_ids = {known.window_id for known in desktop.snapshot().windows}

    def effect(self, record: Optional[Screenshot]) -> dict[str, Any]:
        """Return whether the window changed, where (in the record's image), and which window opened.

        If a screenshot fails, `changed` is None: after an error, the caller would repeat the act.
        """
        start = time.monotonic()
        try:
            has_changed, rect = self._change()
            waited_ms = (time.monotonic() - start) * 1000
            scene = self._desktop.snapshot()
        except PeekabooError as e:
            if e.code is ErrorCode.CANCELLED:
                raise
            log_warning(f"the effect of the act is unknown: {e.message}")
            return {"changed": None}
        is_closed = scene.find(self._window.window_id) is None
        data: dict[str, Any] = {"changed": is_closed or has_changed}
        if rect:
            width = self._earlier[-1][0].width
            image_width = record.image_width if record else width
            place = rect.scaled(image_width / width).as_data()
            data["changed_rect"] = {**place, "image_width": image_width}
        if is_closed:
            data["window_closed"] = True
        for new in catalogue_windows(scene):
            if new.window_id not in self._known_ids and new.kind != "tooltip":
                data["new_window"] = {"window_id": new.window_id, "title": new.shown_title}
                break  # the front one
        return {**data, "effect_ms": round(waited_ms)}

    def _change(self) -> tuple[Optional[bool], Optional[Rect]]:
        """Return True and the rectangle, False if no change stays, None if the window changes by itself."""
        start, since = time.monotonic(), 0.0
        staying: Marks = {}  # the bytes that are changed in each screenshot since `since`
        for count in itertools.count(1):
            pause(_AFTER_S[count % len(_AFTER_S)])
            try:
                bitmap, changed = self._take()
            except PeekabooError as e:
                if e.code not in (ErrorCode.WINDOW_NOT_FOUND, ErrorCode.CAPTURE_FAILED):
                    raise
                return True, None
            if not self._is_still:
                break
            now = time.monotonic()
            staying = _common(staying, changed)
            # a small change that comes later may be a caret or a clock
            if not staying and (count == 1 or self._is_large(changed)):
                staying, since = changed, now
            if count < 5:
                continue
            if staying and now - since >= _STAYS_S:
                return True, rect_of_bytes(changed, bitmap)
            if now - start >= (_LONGEST_WAIT_S if staying else _WAIT_S):
                break
        changes_by_itself = not self._is_still or self._is_large(self._blinking) or self._is_large(changed)
        return (None if changes_by_itself else False), None

    def _take(self) -> tuple[Bitmap, Marks]:
        """Take a screenshot; return it with its changed bytes, and update the sets of bytes."""
        bitmap, differs = take_bitmap(self._desktop, self._window), {}
        for earlier, differed in self._earlier:
            differs = changed_bytes(earlier, bitmap)
            # a byte that differed from `earlier`, and is equal to it now, blinks
            for row, mask in differed.items():
                self._blinking[row] = self._blinking.get(row, 0) | mask & ~differs.get(row, 0)
            for row, mask in differs.items():
                differed[row] = differed.get(row, 0) | mask
        # the last of `earlier` is the last screenshot before the act
        return bitmap, _common(differs, {row: ~self._blinking.get(row, 0) for row in differs})

    def _is_large(self, changed: Marks) -> bool:
        before = self._earlier[-1][0]
        rect = rect_of_bytes(changed, before)
        return rect is not None and not is_caret(rect, before.width, self._window)


def _common(changed: Marks, other: Marks) -> Marks:
    return {row: both for row, mask in changed.items() if (both := mask & other.get(row, 0))}


def _checked(act: Act) -> Act:
    for name, (least, most) in ACT_LIMITS.items():
        check_range(name, getattr(act, name), least, most)
    check_range("hold_ms times repeat", act.hold_ms * act.repeat, 0, _LONGEST_MS)
    check_range("delay_ms times the characters", act.delay_ms * len(act.text), 0, _LONGEST_MS)
    if act.kind == "type" and not act.text and not act.replace:
        raise invalid("the text is empty", "give the text to type; to empty a field, use `replace`")
    lines = sum(map(act.text.count, "\n\r\t"))
    if len(act.text) > _LONGEST_TEXT or lines > _MOST_LINES:
        message = f"the text has {len(act.text)} characters, {lines} of them line breaks and tabs"
        raise invalid(message, f"type at most {_LONGEST_TEXT} and {_MOST_LINES} at a time")
    if bad := control_character_in(act.text):
        raise invalid(f"the text contains the control character {bad!r}", "press its key instead")
    names = ACT_NAMES["modifier"]
    if unknown := [name for name in act.modifiers if name not in names]:
        raise invalid(f"there is no modifier called {unknown[0][:40]!r}", f"use {', '.join(names)}")
    return act._replace(modifiers=tuple(name for name in names if name in act.modifiers))


def _permitted_window(action: str, scene: Scene, window_id: int) -> Window:
    window = scene.by_id(window_id)
    if not window.app_name:
        check_may_act(action)
        raise denied(f"{action} in window {window_id} is refused: its application is unknown")
    check_may_act(action, window.app_name, window.bundle_id)
    if scene.is_locked:
        raise screen_locked("nothing was clicked or typed")
    return window


def _prepared(desktop: Desktop, scene: Scene, window: Window, act: Act) -> Scene:
    """Bring the window to the front for the act; return a new snapshot. Raises if it cannot be acted on."""
    if act.replace and _NO_SELECT_ALL.search(window.app_name):
        message = f"{window.app_name} has no text field in which `select all` works"
        raise invalid(message, "clear its line with its own keys, then type without replace")
    if not act.points:
        scene = _without_menu(desktop, scene, window.window_id, foreign_menu)
        window = scene.by_id(window.window_id)
    if not window.is_popup:  # a popup closes when any window gets the focus
        _check_not_blocked(window, scene)
        if _covers(scene, window, act) or not (window.is_focused and window.is_on_screen):
            scene = _focused(desktop, scene, window.window_id)
    # a key without modifiers may be meant for the window's own menu
    if act.kind == "type" or (act.kind == "press" and set(act.chord.modifiers) - {"shift"}):
        scene = _without_menu(desktop, scene, window.window_id, open_menu)
    return scene


def _covers(scene: Scene, window: Window, act: Act) -> list[Window]:
    places = [Rect(*point, 1e-6, 1e-6) for point in act.points]
    return [cover for place in places if (cover := cover_of(place, window, scene.windows))]


def _check_not_blocked(window: Window, scene: Scene) -> None:
    if dialog := blocking_dialog(window, scene):
        dialog_name = f"its dialog {dialog.title!r} (window {dialog.window_id})"
        message = f"window {window.window_id} takes no input while {dialog_name} is open; nothing was done"
        hint = f"act on window {dialog.window_id}: answer it or close it"
        raise PeekabooError(ErrorCode.WINDOW_BLOCKED, message, hint)


def _without_menu(
    desktop: Desktop, scene: Scene, window_id: int, menu_of: Callable[[Window, Scene], Optional[Window]]
) -> Scene:
    """Wait until no menu takes the window's keys; return a snapshot. Raises WINDOW_BLOCKED if one stays."""
    deadline = time.monotonic() + 0.4  # a menu closes within this time after a choice
    while menu := menu_of(scene.by_id(window_id), scene):
        if time.monotonic() > deadline:
            name = f"a menu of {menu.app_name or 'another program'} (window {menu.window_id})"
            message = f"{name} is open and takes the keys; nothing was done"
            hint = f"choose an entry in window {menu.window_id}, or close it with escape"
            raise PeekabooError(ErrorCode.WINDOW_BLOCKED, message, hint)
        pause(_POLL_S)
        scene = desktop.snapshot()
    return scene


def _focused(desktop: Desktop, scene: Scene, window_id: int) -> Scene:
    # request the focus repeatedly: a window manager may refuse it, and a window that opens cannot take it yet
    request_at, deadline = time.monotonic(), 0.0
    window = scene.by_id(window_id)
    was_shown = window.is_on_screen
    while True:
        if time.monotonic() >= request_at:
            desktop.focus(scene.by_id(window_id), settings().may_focus_by_click)
            request_at = time.monotonic() + 0.6
        scene = desktop.snapshot()
        # start after the first listing: each may take a second, and a window that opens needs two
        deadline = deadline or time.monotonic() + 2.0
        before, window = window, scene.by_id(window_id)
        _check_not_blocked(window, scene)  # a Mac lists dialogs only while the application is in front
        # a window manager may animate a window that was minimised
        is_at_rest = was_shown or (window.bounds == before.bounds and before.is_on_screen)
        if window.is_focused and window.is_on_screen and is_at_rest:
            return scene
        if time.monotonic() > deadline:
            where = "" if window.is_on_screen else "; it is minimised, or on another Space or workspace"
            message = f"window {window_id} of {window.app_name} could not be brought to the front{where}"
            hint = f"nothing was done; {ErrorCode.FOCUS_FAILED.next_step}"
            if not settings().may_focus_by_click:
                hint += "; PEEKABOO_SAFE_CLICK=1 in the environment allows a click on its title bar"
            raise PeekabooError(ErrorCode.FOCUS_FAILED, message, hint)
        pause(_POLL_S)


def _check_on_a_display(scene: Scene, window: Window, points: Sequence[Point]) -> None:
    displays = [display.bounds for display in scene.displays]
    if not all(any(display.contains(point) for display in displays) for point in points):
        # the pointer would stop at the screen's edge, and the click would go there
        message = f"that part of window {window.window_id} is outside the screen; nothing was clicked"
        raise PeekabooError(ErrorCode.WINDOW_COVERED, message, "move the window onto the screen")


def _clamped(pixel: Point, record: Screenshot) -> Point:
    sizes = (record.image_width, record.image_height)
    return Point(*(v if 0 <= v < size else min(max(v, 0), size - 1) for v, size in zip(pixel, sizes)))

"""Do an act in a window: its safety rules, the input lock, what it changed."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Annotated, Any, Callable, Optional

from ..core import models
from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError, check_range, invalid, screen_locked
from ..core.log import log_warning
from ..core.models import ACT_LIMITS, ACT_NAMES, Act, Point, Rect, Result, Scene, Window
from ..core.settings import settings
from ..core.text import control_character_in
from ..desktop.base import Desktop
from ..desktop.matching import blocking_dialog, catalogue_windows, cover_at, foreign_menu, open_menu
from ..system.files import file_lock
from ..system.images import changed_rect, is_caret
from .capture import take_bitmap
from .coordinates import Screenshot, find_record
from .policy import audited, check_may_act, denied, stop_file, write_audit_line

# Parameters of tools that act.
Button = Annotated[models.Button, "the mouse button; default left"]
Clicks = Annotated[int, "1, 2 (a double click) or 3; default 1"]
Verify = Annotated[bool, "report what changed within a second; default false"]

_LOCK_S = 20.0
_FOCUS_S = 2.0
_FOCUS_AGAIN_S = 0.6
_FOCUS_POLL_S = 0.05
_MENU_S = 0.4  # a menu whose item was chosen closes within that time
_BEFORE_S, _BEFORE_AT_MOST = 0.1, 4  # a window that was just focused may still be drawing that
_AFTER_S = (0.05, 0.1, 0.2, 0.3, 0.35)  # the pauses before the screenshots after an act: 1 s
_AGAIN_S = 0.05
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
            message = f"window {window_id} is a popup: it has no focus, and closes when another gets it"
            hint = "click it, or type into it, without focusing it"
            raise PeekabooError(ErrorCode.FOCUS_FAILED, message, hint)
        scene = _without_menu(desktop, scene, window_id, foreign_menu)
        write_audit_line("focus", audited(window))
        return _focused(desktop, scene, window_id).by_id(window_id)


def perform(
    desktop: Desktop, window_id: int, act: Act, done: str, verify: bool, screenshot_id: Optional[str] = None
) -> Result:
    """Do one act in a window; its points are pixels of a screenshot. The answer of the tool: `done`, where
    that was, whether it arrived, and what is known of its effect.

    The window is brought to the front and focused first, unless it is a popup. Raises INVALID_ARGUMENT,
    WINDOW_NOT_FOUND, STALE_SCREENSHOT, POLICY_DENIED, FOCUS_FAILED, WINDOW_BLOCKED, WINDOW_COVERED; then
    nothing was done. FOCUS_LOST and POLICY_DENIED (the stop file) say how much of a text went out.
    """
    act = _checked(act)
    given = act.points
    record: Optional[Screenshot] = None
    with input_lock(desktop.session):
        scene = desktop.snapshot()
        window = _permitted_window(act.kind, scene, window_id)
        if given:
            record = find_record(desktop.session, window, screenshot_id)
            pixels = tuple(_clamped(pixel, record) for pixel in given)
            act = act._replace(points=tuple(record.to_point(pixel, window.bounds) for pixel in pixels))
        scene = _ready(desktop, scene, window, act)
        window = scene.by_id(window_id)
        if record:
            record = find_record(desktop.session, window, record.screenshot_id)
            act = act._replace(points=tuple(record.to_point(pixel, window.bounds) for pixel in pixels))
            _check_on_a_display(scene, window, act.points)
        watch = _Watch(desktop, window) if verify else None
        write_audit_line(act.kind, {**audited(window), **_audited_act(act)})
        delivery = desktop.act(window, act, stop_file())
        effect = watch.effect(record) if watch else {"changed": None}
    data: dict[str, Any] = {"window_id": window_id}
    if record is None:
        sent = {"characters": len(act.text)} if act.kind == "type" else {"key": str(act.chord)}
        others = {"others_typed": delivery.others_typed} if delivery.others_typed else {}
        lost = {"copy_lost": True} if delivery.has_lost_copy else {}
        return _acted(done, {**data, **sent, "delivered": delivery.delivered, **others, **lost, **effect})
    point = delivery.point if delivery.point and delivery.delivered is False else act.points[0]
    data.update(pixel=pixels[0].as_data(), point=point.as_data())
    if len(pixels) > 1:
        data.update(to_pixel=pixels[1].as_data(), to_point=act.points[1].as_data())
    data.update(clamped=pixels != given, delivered=delivery.delivered, **effect)
    if delivery.reached_id is not None:
        data["reached_window_id"] = delivery.reached_id
    return _acted(done, data)


def _acted(done: str, data: dict[str, Any]) -> Result:
    """The result of an act: what was done and where, whether it arrived, and what it changed."""
    if "point" in data:
        done += " at screen point {x:g},{y:g}".format(**data["point"])
    if "to_point" in data:
        done += " to {x:g},{y:g}".format(**data["to_point"])
    names = ("reached_window_id", "delivered", "changed", "others_typed")
    reached, delivered, changed, others = map(data.get, names)
    missed = f"but window {reached} came in between and got it" if reached else "but it did not arrive there"
    effects = {
        True: "the window closed" if data.get("window_closed") else "the window changed",
        False: f"no change within {data.get('effect_ms', 0) / 1000:.1f} s",
        None: "the window changes by itself, so what this changed is not known",
    }
    parts = [
        done,
        "the pixel was outside the image and was moved to its edge" if data.get("clamped") else "",
        {True: "", False: missed, None: "whether it arrived there is not known"}[delivered],
        f"keys of somebody else came among them: {others}" if others else "",
        "what somebody copied meanwhile may be lost" if data.get("copy_lost") else "",
        effects[changed] if changed or data.get("effect_ms") else "",
        "window {window_id} {title!r} came".format(**data["new_window"]) if data.get("new_window") else "",
    ]
    return Result("; ".join(filter(None, parts)), data)


def _audited_act(act: Act) -> dict[str, Any]:
    """What the audit log says of an act, never the text."""
    names = {"click": ("button", "clicks"), "scroll": ("direction", "amount"), "drag": ("button",)}
    data = {name: getattr(act, name) for name in names.get(act.kind, ())}
    if act.points:
        data["point"] = act.points[0].as_data()
    elif act.kind == "type":
        data["characters"] = len(act.text)
    else:
        data["key"] = str(act.chord)
    unusual = {"modifiers": act.modifiers, "repeat": act.repeat > 1 and act.repeat, "replace": act.replace}
    return {**data, **{name: value for name, value in unusual.items() if value}}


class _Watch:
    """A window's screenshot before an act, and the comparison after it. Raises CAPTURE_FAILED."""

    def __init__(self, desktop: Desktop, window: Window) -> None:
        self._desktop = desktop
        self._window = window
        self._before = take_bitmap(desktop, window)
        for _ in range(_BEFORE_AT_MOST - 1):
            pause(_BEFORE_S)
            last, self._before = self._before, take_bitmap(desktop, window)
            self._changes_by_itself = self._is_large(changed_rect(last, self._before))
            if not self._changes_by_itself:
                break
        # only now: a window that came before the act is not its effect
        self._known_ids = {known.window_id for known in desktop.snapshot().windows}

    def effect(self, record: Optional[Screenshot]) -> dict[str, Any]:
        """Whether the window changed, where in pixels of `record`'s image, else of a full-size one, and which
        window came. A window that closed is an outcome, and a change; one that was minimised is a change.

        The act is done: a look afterwards that fails is not its failure, or somebody would repeat it.
        """
        start = time.monotonic()
        try:
            has_changed, rect = self._change()
            waited_ms = (time.monotonic() - start) * 1000
            scene = self._desktop.snapshot()
        except PeekabooError as e:
            if e.code is ErrorCode.CANCELLED:
                raise
            log_warning(f"what the act changed is not known: {e.message}")
            return {"changed": None}
        is_closed = scene.find(self._window.window_id) is None
        data: dict[str, Any] = {"changed": is_closed or has_changed}
        if rect:
            width, image_width = self._before.width, record.image_width if record else self._before.width
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
        """None for a window that changes by itself. One that does not react is watched for a second; what is
        not larger than a caret counts only when each screenshot has it: a caret blinks.
        """
        was_large, is_always_other = False, True
        for seconds in _AFTER_S:
            pause(_AGAIN_S if was_large else seconds)
            try:
                rect = changed_rect(self._before, take_bitmap(self._desktop, self._window))
            except PeekabooError as e:
                if e.code not in (ErrorCode.WINDOW_NOT_FOUND, ErrorCode.CAPTURE_FAILED):
                    raise
                return True, None
            if self._changes_by_itself:
                return None, None
            if was_large and self._is_large(rect):
                return True, rect
            was_large = self._is_large(rect)
            is_always_other = is_always_other and rect is not None
        return (True, rect) if was_large or is_always_other else (False, None)

    def _is_large(self, rect: Optional[Rect]) -> bool:
        return rect is not None and not is_caret(rect, self._before.width, self._window)


def _checked(act: Act) -> Act:
    """The act, its modifiers in our order. Raises INVALID_ARGUMENT for what its fields cannot be."""
    names = [("button", act.button), ("direction", act.direction), *(("modifier", m) for m in act.modifiers)]
    for what, name in names:
        if name not in ACT_NAMES[what]:
            raise invalid(f"there is no {what} {name[:40]!r}", f"choose one of {', '.join(ACT_NAMES[what])}")
    for what, (least, most) in ACT_LIMITS.items():
        check_range(what, getattr(act, what), least, most)
    check_range("hold_ms times repeat", act.hold_ms * act.repeat, 0, _LONGEST_MS)
    check_range("delay_ms times the characters", act.delay_ms * len(act.text), 0, _LONGEST_MS)
    if act.kind == "type" and not act.text and not act.replace:
        raise invalid("the text is empty", "give the text to type; replace=true may delete what is there")
    lines = sum(map(act.text.count, "\n\r\t"))
    if len(act.text) > _LONGEST_TEXT or lines > _MOST_LINES:
        message = f"the text has {len(act.text)} characters, {lines} of them returns and tabs"
        raise invalid(message, f"type at most {_LONGEST_TEXT} and {_MOST_LINES} at once")
    if bad := control_character_in(act.text):
        raise invalid(f"the text holds the control character {bad!r}", "press such a key instead")
    return act._replace(modifiers=tuple(name for name in ACT_NAMES["modifier"] if name in act.modifiers))


def _permitted_window(action: str, scene: Scene, window_id: int) -> Window:
    window = scene.by_id(window_id)
    if not window.app_name:
        check_may_act(action)
        message = f"{action} in window {window_id} is refused: it belongs to no known application"
        raise denied(message, "act on a window that list_windows shows")
    check_may_act(action, window.app_name, window.bundle_id)
    if scene.is_locked:
        raise screen_locked("nothing was clicked or typed")
    return window


def _ready(desktop: Desktop, scene: Scene, window: Window, act: Act) -> Scene:
    """The desktop as it is once the act can be done in the window: in front, focused, blocked by no dialog;
    of keys, once no menu takes them, but that the window's own may take one without modifiers.

    A popup stays as it is: it would close if anything was focused.
    """
    if act.replace and _NO_SELECT_ALL.search(window.app_name):
        message = f"{window.app_name} has no field whose text the keys for `select all` would select"
        raise invalid(message, "clear its line by keys of its own, then type without replace")
    if not act.points:
        scene = _without_menu(desktop, scene, window.window_id, foreign_menu)
        window = scene.by_id(window.window_id)
    if not window.is_popup:
        _check_not_blocked(window, scene)
        is_covered = any(cover_at(point, window, scene.windows) for point in act.points)
        if is_covered or not (window.is_focused and window.is_on_screen):
            scene = _focused(desktop, scene, window.window_id)
    if act.kind == "type" or (act.kind == "press" and set(act.chord.modifiers) - {"shift"}):
        scene = _without_menu(desktop, scene, window.window_id, open_menu)
    return scene


def _check_not_blocked(window: Window, scene: Scene) -> None:
    dialog = blocking_dialog(window, scene)
    if dialog:
        dialog_name = f"its dialog {dialog.title!r} (window {dialog.window_id})"
        message = f"window {window.window_id} takes no input while {dialog_name} is open; nothing was done"
        hint = f"act on window {dialog.window_id}: answer it or close it"
        raise PeekabooError(ErrorCode.WINDOW_BLOCKED, message, hint)


def _without_menu(
    desktop: Desktop, scene: Scene, window_id: int, menu_of: Callable[[Window, Scene], Optional[Window]]
) -> Scene:
    """The desktop as it is once no menu takes the window's keys. Raises WINDOW_BLOCKED for one that stays."""
    deadline = time.monotonic() + _MENU_S
    while menu := menu_of(scene.by_id(window_id), scene):
        if time.monotonic() > deadline:
            name = f"a menu of {menu.app_name or 'another program'} (window {menu.window_id})"
            message = f"{name} is open and takes the keys; nothing was done"
            hint = f"choose from window {menu.window_id}, or close it: press escape, or click beside it"
            raise PeekabooError(ErrorCode.WINDOW_BLOCKED, message, hint)
        pause(_FOCUS_POLL_S)
        scene = desktop.snapshot()
    return scene


def _focused(desktop: Desktop, scene: Scene, window_id: int) -> Scene:
    """Focus a window and look until it has the focus; return the desktop as it is then.

    It is asked for more than once: activation is a request, and a window that maps just now cannot take it.
    """
    ask_at, patient_until = time.monotonic(), 0.0
    window = scene.by_id(window_id)
    was_shown = window.is_on_screen
    while True:
        if time.monotonic() >= ask_at:
            desktop.focus(scene.by_id(window_id), settings().may_focus_by_click)
            ask_at = time.monotonic() + _FOCUS_AGAIN_S
        scene = desktop.snapshot()
        # from the first look on: where each takes a second, a window that comes needs two of them
        patient_until = patient_until or time.monotonic() + _FOCUS_S
        before, window = window, scene.by_id(window_id)
        _check_not_blocked(window, scene)  # a Mac tells of dialogs only once the application is in front
        # a window manager may show how a minimised window comes: it moves for a moment
        is_at_rest = was_shown or (window.bounds == before.bounds and before.is_on_screen)
        if window.is_focused and window.is_on_screen and is_at_rest:
            return scene
        if time.monotonic() > patient_until:
            where = "" if window.is_on_screen else "; it is minimised, or on another Space or workspace"
            message = f"window {window_id} of {window.app_name} could not be brought to the front{where}"
            hint = "nothing was done; close a dialog that may be in its way, or bring it forward by hand"
            may_click = "" if settings().may_focus_by_click else _MAY_CLICK
            raise PeekabooError(ErrorCode.FOCUS_FAILED, message, hint + may_click)
        pause(_FOCUS_POLL_S)


def _check_on_a_display(scene: Scene, window: Window, points: Sequence[Point]) -> None:
    displays = [display.bounds for display in scene.displays]
    if not all(any(display.contains(point) for display in displays) for point in points):
        # the pointer would be held at the screen's edge, and the click would go there
        message = f"that part of window {window.window_id} is outside the screen; nothing was clicked"
        raise PeekabooError(ErrorCode.WINDOW_COVERED, message, "move the window onto the screen")


def _clamped(pixel: Point, record: Screenshot) -> Point:
    """The nearest pixel inside the image: [0, width) x [0, height)."""
    sizes = (record.image_width, record.image_height)
    inside = [v if 0 <= v < size else min(max(v, 0), size - 1) for v, size in zip(pixel, sizes)]
    return Point(*inside)

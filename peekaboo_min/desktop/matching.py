"""Which app or window an identifier means, what covers or blocks it (pure)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Callable, Optional

from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.models import App, Point, Rect, Scene, Window
from ..core.text import clean_text

_NAMED_AT_MOST = 10
_COMPARED_CHARACTERS = 200  # difflib takes seconds for a text of a megabyte
# Of two names, from 0 to 1: what is taken for a misspelling, and what is too little to tell two misspellings
# apart.
_CLOSE_ENOUGH, _TIE = 0.7, 0.05
_HELPER = re.compile(r"helper|renderer|utility|plugin|crashpad|gpu process|\(gpu\)|background", re.I)
_BROWSERS = ("chrome", "safari", "firefox", "edge", "brave", "arc", "opera", "chromium")


def is_worth_listing(window: Window) -> bool:
    """An ordinary window of an app: normal layer, visible, at least 50x50, no popup, no dock."""
    return window.is_ordinary and bool(window.app_name) and window.bundle_id != "com.apple.dock"


def visible_windows(windows: Sequence[Window], with_off_screen: bool = False) -> list[Window]:
    """The windows worth listing, front to back."""
    return [
        window for window in windows if is_worth_listing(window) and (with_off_screen or window.is_on_screen)
    ]


def catalogue_windows(scene: Scene) -> list[Window]:
    """What `list_windows` shows, front to back: ordinary windows on the screen, minimised ones, and popups of
    any size, each right after its owner.
    """
    listed = [
        window
        for window in scene.windows
        if is_worth_listing(window) and (window.is_on_screen or window.is_minimised)
    ]
    popups = [
        window for window in scene.windows if window.is_popup and window.is_on_screen and window.app_name
    ]
    ordered: list[Window] = []
    for window in sorted(listed, key=lambda window: window.is_minimised):  # wherever X11 stacks those
        ordered.append(window)
        ordered += [popup for popup in popups if popup.parent_id == window.window_id]
    return [popup for popup in popups if popup not in ordered] + ordered


def blocking_dialog(window: Window, scene: Scene) -> Optional[Window]:
    """The declared modal dialog that keeps `window` from taking input; of nested ones the innermost, which
    takes it.

    A modal dialog of an application that names no parent blocks all windows of it that are behind the dialog.
    """
    found = None
    dialogs = [dialog for dialog in scene.windows if dialog.is_modal and dialog.is_on_screen]
    dialogs = [dialog for dialog in dialogs if dialog.window_id != window.window_id]
    while blocking := [dialog for dialog in dialogs if _is_blocked_by(found or window, dialog, scene)]:
        found = blocking[0]
        dialogs.remove(found)
    return found


def open_menu(window: Window, scene: Scene) -> Optional[Window]:
    """The open menu that takes a window's keys; None for none, and for a menu itself."""
    own = (one for one in scene.windows if one.is_menu and one.parent_id == window.window_id)
    return next((one for one in own if one.is_on_screen), None)


def foreign_menu(window: Window, scene: Scene) -> Optional[Window]:
    """The open menu of another application that has the keyboard, whichever window has the focus."""
    popups = [popup for popup in scene.windows if popup.takes_input and popup.is_on_screen]
    if not scene.is_keyboard_grabbed or any(_is_same_app(popup, window) for popup in popups):
        return None  # its own application has grabbed the keyboard for its own popup
    return next((popup for popup in popups if popup.is_menu), popups[0] if popups else None)


def _is_same_app(window: Window, other: Window) -> bool:
    return (window.app_name, window.pid) == (other.app_name, other.pid)


def _is_blocked_by(window: Window, dialog: Window, scene: Scene) -> bool:
    if dialog.parent_id == window.window_id:
        return True
    if dialog.parent_id is not None or dialog.pid is None or dialog.pid != window.pid or window.is_popup:
        return False
    if window not in scene.windows or window.parent_id == dialog.window_id:
        return False
    return scene.windows.index(dialog) < scene.windows.index(window)


def find_app(identifier: str, apps: Sequence[App], kind: str = "running") -> App:
    """The app that `identifier` names: name, bundle id, `PID:n`, start or part of a name, or a close
    spelling. kind: running or installed, for the error.

    Raises INVALID_ARGUMENT, APP_NOT_FOUND (with the nearest names), AMBIGUOUS_APP_IDENTIFIER (with the
    candidates).
    """
    wanted = identifier.strip()
    if not wanted:
        raise invalid("the app's name is empty", "name an app, or leave it out")
    if wanted.lower().startswith("pid:"):
        return _app_by_pid(wanted[4:], apps)
    low = wanted.lower()
    candidates = [app for app in apps if not _is_helper(app)]
    tiers: list[Callable[[App], bool]] = [
        lambda app: app.name == wanted,
        lambda app: app.name.lower() == low,
        lambda app: (app.bundle_id or "").lower() == low,
        lambda app: app.name.lower().startswith(low),
        lambda app: any(word.startswith(low) for word in app.name.lower().split()),
        lambda app: low in app.name.lower(),
        lambda app: len(low) > 3 and low in (app.bundle_id or "").lower(),
    ]
    for number, matches in enumerate(tiers):
        # a helper or an agent without windows is meant only by its whole name
        found = [app for app in (apps if number < 3 else candidates) if matches(app)]
        found = [app for app in found if app.is_regular] or found
        if len(found) == 1:
            return found[0]
        if found:
            return _only_one(wanted, found)
    near = _near_names(low, candidates)
    if near and near[0][1] >= _CLOSE_ENOUGH:
        tied = [app for app, likeness in near if near[0][1] - likeness <= _TIE]
        return tied[0] if len(tied) == 1 else _only_one(wanted, tied)
    raise _no_such_app(wanted, [app for app, _ in near], kind)


def app_by_bundle_id(bundle_id: str, apps: Sequence[App]) -> App:
    """The running app with exactly this bundle id. Raises APP_NOT_FOUND."""
    for app in apps:
        if (app.bundle_id or "").lower() == bundle_id.lower():
            return app
    raise _no_such_app(bundle_id, [app for app in apps if app.is_regular])


def _is_helper(app: App) -> bool:
    is_browsers = any(name in app.name.lower() for name in _BROWSERS)
    return not app.is_regular or bool(is_browsers and _HELPER.search(app.name))


def _app_by_pid(text: str, apps: Sequence[App]) -> App:
    if not text.strip().isascii() or not text.strip().isdigit():
        raise invalid(f"{text[:40]!r} is not a process id", "write it like PID:501")
    digits = text.strip().lstrip("0")[:40]  # int() refuses more than 4,300 digits
    for app in apps:
        if str(app.pid) == digits:
            return app
    raise PeekabooError(
        ErrorCode.APP_NOT_FOUND,
        f"no application has the process id {digits}",
        hint="list the apps: list apps",
    )


def _only_one(wanted: str, found: Sequence[App]) -> App:
    with_windows = [app for app in found if app.window_count]
    if len(with_windows) == 1 and len({app.name for app in found}) == 1:
        return with_windows[0]
    names = [
        f"{app.name} ({app.bundle_id or 'no bundle id'}{'' if app.pid is None else f', PID:{app.pid}'})"
        for app in found[:_NAMED_AT_MOST]
    ]
    raise PeekabooError(
        ErrorCode.AMBIGUOUS_APP_IDENTIFIER,
        f"{wanted!r} could be {len(found)} applications",
        hint="name one of them: " + ", ".join(names),
        details="\n".join(names),
    )


def _near_names(low: str, apps: Sequence[App]) -> list[tuple[App, float]]:
    import difflib  # 3 ms that only a wrong name needs

    low = low[:_COMPARED_CHARACTERS]

    def likeness(app: App) -> float:
        name = app.name.lower()[:_COMPARED_CHARACTERS]
        initials = "".join(word[0] for word in re.split(r"[\s.-]+", name) if word)
        whole = difflib.SequenceMatcher(None, low, name).ratio()
        # `vscode` for Visual Studio Code: initials and a last word
        short = (
            difflib.SequenceMatcher(None, low, initials[:-1] + name.split()[-1]).ratio() if initials else 0.0
        )
        return max(whole, short)

    scored = sorted(((app, likeness(app)) for app in apps), key=lambda pair: -pair[1])
    return [pair for pair in scored[:5] if pair[1] >= 0.45]


def _no_such_app(wanted: str, near: Sequence[App], kind: str = "running") -> PeekabooError:
    names = list(dict.fromkeys(app.name for app in near))[:_NAMED_AT_MOST]
    first = "open it" if kind == "running" else "install it"
    return PeekabooError(
        ErrorCode.APP_NOT_FOUND,
        f"no {kind} application is called {wanted[:80]!r}",
        hint=f"{first}, or name another: {', '.join(names)}" if names else f"{first} first",
        details="Available applications: " + ", ".join(names) if names else "",
    )


def windows_of(app: App, windows: Sequence[Window]) -> list[Window]:
    """An app's windows, in the order given."""
    if app.pid is not None:
        return [window for window in windows if window.pid == app.pid]
    return [window for window in windows if window.app_name == app.name and window.pid is None]


def find_window(
    app: App, windows: Sequence[Window], title: Optional[str] = None, index: Optional[int] = None
) -> Window:
    """One of an app's windows (given front to back): by title, exact first, then part of it; by index; else
    the first.

    Raises WINDOW_NOT_FOUND, naming the windows that there are.
    """
    if not windows:
        raise PeekabooError(
            ErrorCode.WINDOW_NOT_FOUND,
            f"the {app.name!r} process is running, but no capturable windows were found",
            hint="open or unminimise a window of it, or use foreground focus",
        )
    if title is not None:
        low = title.strip().lower()
        for matches in (lambda name: name == low, lambda name: low and low in name):
            for window in windows:
                if matches((window.title or "").lower()):
                    return window
        titles = ", ".join(repr(clean_text(window.title or "")) for window in windows[:_NAMED_AT_MOST])
        raise PeekabooError(
            ErrorCode.WINDOW_NOT_FOUND,
            f"{app.name} has no window titled {title[:80]!r}",
            hint=f"its windows are {titles}",
        )
    if index is not None and index < 0:
        raise invalid(f"the window index is {index}", "count from 0 (the frontmost)")
    if index is not None and index >= len(windows):
        raise PeekabooError(
            ErrorCode.WINDOW_NOT_FOUND,
            f"{app.name} has no window with index {index}",
            hint=f"it has {len(windows)}, counted from 0 (the frontmost)",
        )
    return windows[index or 0]


def cover_at(point: Point, target: Window, windows: Sequence[Window]) -> Optional[Window]:
    """The window that seems to lie over `target` at `point`; see cover_of."""
    return cover_of(Rect(*point, 1e-6, 1e-6), target, windows)


def cover_of(place: Rect, target: Window, windows: Sequence[Window]) -> Optional[Window]:
    """The first window that seems to lie over `target` within `place`, by rectangles; None for none.

    It tells whether raising the target would help; what a click really hits is asked of the window server. A
    window of another layer that encloses the whole target is an overlay (the Dock owns a transparent one as
    large as the screen).
    """
    for window in windows:
        if window.window_id == target.window_id:
            return None
        is_there = window.is_on_screen and window.alpha > 0 and window.outer.overlaps(place)
        if is_there and not (window.layer != 0 and window.outer.encloses(target.bounds)):
            return window
    return None

"""Which app or window an identifier means, what covers or blocks it (pure)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Callable, Optional

from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.models import App, Point, Rect, Scene, Window
from ..core.text import clean_text

_NAMED_AT_MOST = 10
# The likeness of two names: of a suggestion, of a misspelling, and what does not tell two misspellings apart.
_NEAR, _CLOSE_ENOUGH, _TIE = 0.45, 0.7, 0.05
_SHORTEST_PART = 4
_BROWSER = re.compile(
    r"firefox|navigator|chrom|safari|edge|brave|opera|vivaldi|librewolf|epiphany|\barc\b", re.IGNORECASE
)
X_CLIENT_BITS = 21  # the windows of one X client share the bits of their ids above these


def is_worth_listing(window: Window) -> bool:
    """An ordinary window of an app: normal layer, visible, at least 50x50, no popup, no dock."""
    return window.is_ordinary and bool(window.app_name) and window.bundle_id != "com.apple.dock"


def visible_windows(windows: Sequence[Window], with_off_screen: bool = False) -> list[Window]:
    """The windows worth listing, front to back."""
    listed = filter(is_worth_listing, windows)
    return [window for window in listed if with_off_screen or window.is_on_screen]


def catalogue_windows(scene: Scene) -> list[Window]:
    """What `list_windows` shows, front to back: ordinary windows on the screen, minimised ones, and popups of
    any size, each right after its owner.
    """
    listed = [w for w in scene.windows if is_worth_listing(w) and (w.is_on_screen or w.is_minimised)]
    listed.sort(key=lambda window: window.is_minimised)  # wherever X11 stacks those
    popups = [w for w in scene.windows if w.is_popup and w.is_on_screen and w.app_name]
    owners = {window.window_id for window in listed}
    ordered = [popup for popup in popups if popup.parent_id not in owners]
    for window in listed:
        ordered += [window, *(popup for popup in popups if popup.parent_id == window.window_id)]
    return ordered


def blocking_dialog(window: Window, scene: Scene) -> Optional[Window]:
    """The declared modal dialog that keeps `window` from taking input; of nested ones the innermost, which
    takes it.

    A modal dialog of an application that names no parent blocks all windows of it that are behind the dialog.
    """
    dialogs = [dialog for dialog in scene.windows if dialog.is_modal and dialog.is_on_screen]
    dialogs = [dialog for dialog in dialogs if dialog.window_id != window.window_id]
    innermost = None
    while blocking := [dialog for dialog in dialogs if _is_blocked_by(innermost or window, dialog, scene)]:
        innermost = blocking[0]
        dialogs.remove(innermost)
    return innermost


def open_menu(window: Window, scene: Scene) -> Optional[Window]:
    """The open menu that takes a window's keys; None for none, and for a menu itself."""
    menus = (menu for menu in scene.windows if menu.is_menu and menu.is_on_screen)
    return next((menu for menu in menus if menu.parent_id == window.window_id), None)


def foreign_menu(window: Window, scene: Scene) -> Optional[Window]:
    """The open menu of another application that has the keyboard, whichever window has the focus."""
    popups = [popup for popup in scene.windows if popup.kind == "popup" and popup.is_on_screen]
    if not scene.is_keyboard_grabbed or any(owner_of(popup) == owner_of(window) for popup in popups):
        return None  # its own application has grabbed the keyboard for its own popup
    return next((popup for popup in popups if popup.is_menu), popups[0] if popups else None)


def owner_of(window: Window) -> tuple[str, int]:
    """What the windows of one program have in common: without a pid, the bits of its X client."""
    return ("pid", window.pid) if window.pid is not None else ("client", window.window_id >> X_CLIENT_BITS)


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
    low = wanted.lower()
    if not wanted:
        raise invalid("the app's name is empty", "name an app, or leave it out")
    if low.startswith("pid:"):
        number = wanted[4:].strip()
        if not number.isdigit():
            raise invalid(f"{number[:40]!r} is not a process id", "write it like PID:501")
        return _only_one(wanted, [app for app in apps if str(app.pid) == number], [], kind)
    candidates = [app for app in apps if app.is_regular]  # no helpers of a browser
    tiers: list[Callable[[App], bool]] = [
        lambda app: app.name == wanted,
        lambda app: app.name.lower() == low,
        lambda app: (app.bundle_id or "").lower() == low,
        lambda app: app.name.lower().startswith(low),
        lambda app: any(word.startswith(low) for word in app.name.lower().split()),
        lambda app: low in app.name.lower(),
        lambda app: len(low) > 3 and low in (app.bundle_id or "").lower(),
    ]
    for tier, is_meant in enumerate(tiers):
        # a helper or an agent without windows is meant only by its whole name
        matches = [app for app in (apps if tier < 3 else candidates) if is_meant(app)]
        if matches:
            return _only_one(wanted, [app for app in matches if app.is_regular] or matches, [], kind)
    near = _near_names(low, candidates)
    close = [app for app, likeness in near if likeness >= max(_CLOSE_ENOUGH, near[0][1] - _TIE)]
    return _only_one(wanted, close, [app for app, _ in near], kind)


def app_by_bundle_id(bundle_id: str, apps: Sequence[App]) -> App:
    """The running app with exactly this bundle id. Raises APP_NOT_FOUND."""
    for app in apps:
        if (app.bundle_id or "").lower() == bundle_id.lower():
            return app
    raise _no_such_app(bundle_id, [app for app in apps if app.is_regular])


def _only_one(wanted: str, matches: Sequence[App], near: Sequence[App], kind: str) -> App:
    """The only app that was found, or of several processes of one name the only one with windows."""
    if not matches:
        raise _no_such_app(wanted, near, kind)
    with_windows = [app for app in matches if app.window_count]
    if len(matches) > 1 and len(with_windows) == 1 and len({app.name for app in matches}) == 1:
        matches = with_windows
    if len(matches) == 1:
        return matches[0]
    names = [
        f"{app.name} ({app.bundle_id or 'no bundle id'}{'' if app.pid is None else f', PID:{app.pid}'})"
        for app in matches[:_NAMED_AT_MOST]
    ]
    message = f"{wanted!r} could be {len(matches)} applications"
    hint = f"name one of them: {', '.join(names)}"
    raise PeekabooError(ErrorCode.AMBIGUOUS_APP_IDENTIFIER, message, hint)


def _near_names(low: str, apps: Sequence[App]) -> list[tuple[App, float]]:
    """The nearest names, the nearest first, with their likeness from 0 to 1."""
    import difflib  # 3 ms that only a wrong name needs

    def likeness(app: App) -> float:
        name = app.name.lower()
        texts = (name, name.rpartition(" ")[2])  # `Chromee` for Google Chrome
        return max(difflib.SequenceMatcher(None, low, text).ratio() for text in texts)

    scored = sorted(((app, likeness(app)) for app in apps), key=lambda pair: -pair[1])
    return [pair for pair in scored[:5] if pair[1] >= _NEAR]


def _no_such_app(wanted: str, near: Sequence[App], kind: str = "running") -> PeekabooError:
    names = ", ".join(dict.fromkeys(app.name for app in near[:_NAMED_AT_MOST]))
    hint = "open it" if kind == "running" else "install it"
    hint += f", or name another: {names}" if names else " first"
    message = f"no {kind} application is called {wanted[:80]!r}"
    return PeekabooError(ErrorCode.APP_NOT_FOUND, message, hint)


def windows_of(app: App, windows: Sequence[Window]) -> list[Window]:
    """An app's windows, in the order given."""
    if app.pid is not None:
        return [window for window in windows if window.pid == app.pid]
    return [window for window in windows if window.app_name == app.name and window.pid is None]


def windows_titled(title: str, windows: Sequence[Window]) -> list[Window]:
    """Those with exactly this title, else those with a part of it, whatever the case; in the order given."""
    low = title.strip().lower()
    titles = [(window.title or "").lower() for window in windows]
    exact = [window for window, text in zip(windows, titles) if text == low]
    return exact or [window for window, text in zip(windows, titles) if low and low in text]


def find_window(
    app: App, windows: Sequence[Window], title: Optional[str] = None, index: Optional[int] = None
) -> Window:
    """One of an app's windows (given front to back): by title, exact first, then part of it; by index; else
    the first.

    Raises WINDOW_NOT_FOUND, naming the windows that there are.
    """
    if index is not None and index < 0:
        raise invalid(f"the window index is {index}", "count from 0 (the frontmost)")
    if not windows:
        message = f"the {app.name!r} process is running, but no capturable windows were found"
        hint = "open or unminimise a window of it, or use foreground focus"
        raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, message, hint)
    matches = windows[index or 0 :] if title is None else windows_titled(title, windows)
    if matches:
        return matches[0]
    which = f"with index {index}" if title is None else f"titled {title[:80]!r}"
    titles = ", ".join(repr(window.shown_title) for window in windows[:_NAMED_AT_MOST])
    hint = f"its windows are {titles}, counted from 0 (the frontmost)"
    raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, f"{app.name} has no window {which}", hint)


def window_named(name: str, scene: Scene, acts: bool) -> Window:
    """The window that a person means by a name: the first of these that fits: an application's exact name or
    bundle id, an exact title, the start of a word of an application's name, a part of a title. Of an
    application its modal dialog, else its only window.

    acts: what types or clicks takes a part of a title from four letters on, and never of a browser's, whose
    titles strangers write. Raises WINDOW_NOT_FOUND, AMBIGUOUS_APP_IDENTIFIER with the windows' ids.
    """
    low = name.strip().casefold()
    windows = [window for window in catalogue_windows(scene) if low and not window.is_popup]
    by_app: list[Callable[[Window], bool]] = [
        lambda window: low in (window.app_name.casefold(), (window.bundle_id or "").casefold()),
        lambda window: any(word.startswith(low) for word in window.app_name.casefold().split()),
    ]
    by_title: list[Callable[[Window], bool]] = [
        lambda window: low == (window.title or "").casefold(),
        lambda window: (
            low in (window.title or "").casefold()
            and not (acts and (len(low) < _SHORTEST_PART or _BROWSER.search(window.app_name)))
        ),
    ]
    for of_app, of_title in zip(by_app, by_title):
        apps_windows = [window for window in windows if of_app(window)]
        dialogs = [window for window in apps_windows if window.is_modal and window.is_on_screen]
        is_one_app = len(set(map(owner_of, apps_windows))) == 1
        matches = dialogs[:1] if dialogs and is_one_app else apps_windows
        matches = matches or [window for window in windows if of_title(window)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            listed = [f"{window.window_id} ({window.shown_title!r})" for window in matches]
            message = f"{clean_text(name, 80)!r} could be {len(matches)} windows"
            hint = f"name one by its id: {', '.join(listed[:_NAMED_AT_MOST])}"
            raise PeekabooError(ErrorCode.AMBIGUOUS_APP_IDENTIFIER, message, hint)
    message = f"no window is called {clean_text(name, 80)!r}"
    raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, message, "list the windows, name one of them or its id")


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
        # a capture may add a tiny one to the application of a Mac that it is of
        is_own = window.bundle_id and window.bundle_id == target.bundle_id and window.title in ("", "Window")
        is_there = is_there and not (is_own and not window.is_ordinary and not window.is_popup)
        if is_there and not (window.layer != 0 and window.outer.encloses(target.bounds)):
            return window
    return None

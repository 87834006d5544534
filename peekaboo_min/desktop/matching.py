"""Find apps and windows by name; tell what covers or blocks a window."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Callable, Optional

from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.models import App, Rect, Scene, Window
from ..core.text import clean_text

_NAMED_AT_MOST = 10  # candidates in one error message
# Similarity, 0 to 1: from _NEAR on a name is suggested (0.57: `Noets App` for Notes; not 0.43: Photoshop),
# from _CLOSE_ENOUGH on it is taken for a misspelling (0.8: `Notas` for Notes; not 0.67: `com` for Chrome).
_NEAR, _CLOSE_ENOUGH = 0.5, 0.7
_BROWSER = r"firefox|navigator|chrom|safari|edge|brave|opera|vivaldi|librewolf|epiphany|\barc\b"
X_CLIENT_BITS = 21  # one X client's windows have the same id above these bits; 19 if a server allows 1,024


def visible_windows(windows: Sequence[Window], with_off_screen: bool = False) -> list[Window]:
    """Return the apps' ordinary windows, front to back: on the screen, then minimised, then others.

    X11 stacks minimised windows anywhere; in this order, an index names the same window in every list.
    """
    ordinary = [w for w in windows if w.is_ordinary and w.app_name and w.bundle_id != "com.apple.dock"]
    listed = [window for window in ordinary if with_off_screen or window.is_on_screen]
    return sorted(listed, key=lambda window: (not window.is_on_screen, not window.is_minimised))


def catalogue_windows(scene: Scene) -> list[Window]:
    """Return the windows that `list_windows` shows, front to back.

    These are ordinary windows on the screen, then minimised ones; popups of any size follow their owners.
    """
    candidates = visible_windows(scene.windows, with_off_screen=True)
    listed = [window for window in candidates if window.is_on_screen or window.is_minimised]
    popups = [w for w in scene.windows if w.is_popup and w.is_on_screen and w.app_name]
    owners = {window.window_id for window in listed}
    ordered = [popup for popup in popups if popup.parent_id not in owners]
    for window in listed:
        ordered += [window, *(popup for popup in popups if popup.parent_id == window.window_id)]
    return ordered


def blocking_dialog(window: Window, scene: Scene) -> Optional[Window]:
    """Return the declared modal dialog that blocks `window`: the innermost of nested dialogs, or None.

    A modal dialog without a parent blocks all windows of its application that are behind it.
    """
    dialogs = [dialog for dialog in scene.windows if dialog.is_modal and dialog.is_on_screen]
    dialogs = [dialog for dialog in dialogs if dialog.window_id != window.window_id]
    innermost = None
    while blocking := [dialog for dialog in dialogs if _is_blocked_by(innermost or window, dialog, scene)]:
        innermost = blocking[0]
        dialogs.remove(innermost)
    return innermost


def open_menu(window: Window, scene: Scene) -> Optional[Window]:
    """Return the open menu that takes a window's keys, or None."""
    menus = (menu for menu in scene.windows if menu.is_menu and menu.is_on_screen)
    return next((menu for menu in menus if menu.parent_id == window.window_id), None)


def foreign_menu(window: Window, scene: Scene) -> Optional[Window]:
    """Return another application's open menu or popup that has grabbed the keyboard, or None."""
    popups = [popup for popup in scene.windows if popup.kind == "popup" and popup.is_on_screen]
    if not scene.is_keyboard_grabbed or any(owner_of(popup) == owner_of(window) for popup in popups):
        return None  # the window's own application has grabbed the keyboard
    return next((popup for popup in popups if popup.is_menu), popups[0] if popups else None)


def owner_of(window: Window) -> tuple[str, int]:
    """Return a key that all windows of one program share: its pid, or its X client."""
    return ("pid", window.pid) if window.pid is not None else ("client", window.window_id >> X_CLIENT_BITS)


def _is_blocked_by(window: Window, dialog: Window, scene: Scene) -> bool:
    if dialog.parent_id == window.window_id:
        return True
    if dialog.parent_id is not None or dialog.pid is None or dialog.pid != window.pid or window.is_popup:
        return False
    if window not in scene.windows or window.parent_id == dialog.window_id:
        return False
    return scene.windows.index(dialog) < scene.windows.index(window)


def find_app(identifier: str, apps: Sequence[App], kind: str = "running", acts: bool = False) -> App:
    """Find an app by its name, its bundle id, `PID:n`, or a part of its name.

    acts: True if the app is going to be opened, focused or acted on; False also accepts a close spelling.
    kind: running or installed, for the error.
    Raises INVALID_ARGUMENT, APP_NOT_FOUND (with similar names), AMBIGUOUS_APP_IDENTIFIER (with candidates).
    """
    wanted = identifier.strip()
    low = wanted.lower()
    if not wanted:
        raise invalid("the app's name is empty", "name an app, or omit it")
    if low.startswith("pid:"):
        number = wanted[4:].strip()
        if not number.isdigit():
            raise invalid(f"{number[:40]!r} is not a process id", "write it like PID:501")
        if matches := [app for app in apps if str(app.pid) == number]:
            return _only_one(wanted, matches)
        message = f"no application has the process id {number[:40]}"
        raise PeekabooError(ErrorCode.APP_NOT_FOUND, message, "list the applications")
    candidates = [app for app in apps if app.is_regular]  # without helpers, such as a browser's
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
        # a helper or an agent matches only by its whole name
        matches = [app for app in (apps if tier < 3 else candidates) if is_meant(app)]
        if matches:
            return _only_one(wanted, [app for app in matches if app.is_regular] or matches)
    near = _near_names(low, candidates)
    close = [app for app, likeness in near if likeness >= max(_CLOSE_ENOUGH, near[0][1])]
    if acts or not close:
        raise _no_such_app(wanted, [app for app, _ in near], kind)
    return _only_one(wanted, close)


def app_by_bundle_id(bundle_id: str, apps: Sequence[App]) -> App:
    """Find the running app with exactly this bundle id. Raises APP_NOT_FOUND."""
    for app in apps:
        if (app.bundle_id or "").lower() == bundle_id.lower():
            return app
    raise _no_such_app(bundle_id, [app for app in apps if app.is_regular])


def _only_one(wanted: str, matches: Sequence[App]) -> App:
    with_windows = [app for app in matches if app.window_count]
    if len(matches) > 1 and len(with_windows) == 1 and len({app.name for app in matches}) == 1:
        matches = with_windows
    if len(matches) == 1:
        return matches[0]
    names = [
        f"{app.name} ({app.bundle_id or 'no bundle id'}{'' if app.pid is None else f', PID:{app.pid}'})"
        for app in matches[:_NAMED_AT_MOST]
    ]
    message = f"{wanted!r} matches {len(matches)} applications"
    hint = f"name one of them: {', '.join(names)}"
    raise PeekabooError(ErrorCode.AMBIGUOUS_APP_IDENTIFIER, message, hint)


def _near_names(low: str, apps: Sequence[App]) -> list[tuple[App, float]]:
    import difflib  # slow to import

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
    """Return an app's windows, in the order given."""
    if app.pid is not None:
        return [window for window in windows if window.pid == app.pid]
    # all windows of the X clients with this name: a Tk program's second window is called "Toplevel"
    clients = {owner_of(window) for window in windows if window.app_name == app.name and window.pid is None}
    return [window for window in windows if owner_of(window) in clients]


def windows_titled(title: str, windows: Sequence[Window]) -> list[Window]:
    """Return the windows with exactly this title, else those whose title contains it; case is ignored."""
    low = title.strip().lower()
    titles = [(window.title or "").lower() for window in windows]
    exact = [window for window, text in zip(windows, titles) if text == low]
    return exact or [window for window, text in zip(windows, titles) if low and low in text]


def find_window(
    app: App, windows: Sequence[Window], title: Optional[str] = None, index: Optional[int] = None
) -> Window:
    """Choose one of an app's windows, given front to back: by title, by index, or the first.

    Raises WINDOW_NOT_FOUND, with the titles that exist; INVALID_ARGUMENT for a negative index.
    """
    if index is not None and index < 0:
        raise invalid(f"the window index is {index}", "count from 0 (the frontmost)")
    if not windows:
        message = f"the {app.name!r} process is running, but no capturable windows were found"
        hint = "open one of its windows, or focus a minimised one"
        raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, message, hint)
    matches = windows[index or 0 :] if title is None else windows_titled(title, windows)
    if matches:
        return matches[0]
    which = f"with index {index}" if title is None else f"titled {title[:80]!r}"
    titles = ", ".join(repr(window.shown_title) for window in windows[:_NAMED_AT_MOST])
    hint = f"choose one of its windows (index 0 is the frontmost): {titles}"
    raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, f"{app.name} has no window {which}", hint)


def window_named(name: str, scene: Scene, acts: bool) -> Window:
    """Find the window that a person means by a name.

    Try an application's exact name or bundle id, an exact title, the start of a word of an app's name, a part
    of a title; the first step with a match counts. Of an app, take the modal dialog, else its only window.
    acts: True if the window gets clicks or keys. A part of a title then needs four letters, and never matches
    a browser's title, which strangers write.
    Raises WINDOW_NOT_FOUND, AMBIGUOUS_APP_IDENTIFIER; both name the candidates with their ids.
    """
    low, shown = name.strip().casefold(), repr(clean_text(name, 80))
    windows = [window for window in catalogue_windows(scene) if low and not window.is_popup]
    exact_app = [w for w in windows if low in (w.app_name.casefold(), (w.bundle_id or "").casefold())]
    app_word = [w for w in windows if any(part.startswith(low) for part in w.app_name.casefold().split())]
    in_title = [w for w in windows if low in (w.title or "").casefold()]
    exact_title = [w for w in in_title if low == (w.title or "").casefold()]
    is_long = len(low) >= 4
    safe = [w for w in in_title if not acts or (is_long and not re.search(_BROWSER, w.app_name, re.I))]
    for by_app, by_title in ((exact_app, exact_title), (app_word, safe)):
        owners = set(map(owner_of, by_app))
        dialogs = [w for w in windows if w.is_modal and w.is_on_screen and {owner_of(w)} == owners]
        matches = dialogs[:1] or by_app or by_title
        if len(matches) == 1:
            return matches[0]
        if matches:
            message = f"{shown} matches {len(matches)} windows"
            hint = f"name one by its id: {_listed(matches)}"
            raise PeekabooError(ErrorCode.AMBIGUOUS_APP_IDENTIFIER, message, hint)
    message, hint = f"no window is called {shown}", "list the windows, then give an id, a title or an app"
    if in_title:
        message += " exactly, and acts need an exact or longer name"
        hint = f"give an id, an application or a whole title: {_listed(in_title)}"
    raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, message, hint)


def _listed(windows: Sequence[Window]) -> str:
    return ", ".join(f"{window.window_id} ({window.shown_title!r})" for window in windows[:_NAMED_AT_MOST])


def cover_of(place: Rect, target: Window, windows: Sequence[Window]) -> Optional[Window]:
    """Return the frontmost window that seems to cover `target` within `place`, by its rectangle, or None.

    Use it to decide whether to raise the target; only the window server knows what a click hits.
    """
    for window in windows:
        if window.window_id == target.window_id:
            return None
        is_there = window.is_on_screen and window.alpha > 0 and window.outer.overlaps(place)
        # on a Mac, a capture may add a tiny window to the captured application
        is_own = window.bundle_id and window.bundle_id == target.bundle_id and window.title in ("", "Window")
        is_there = is_there and not (is_own and not window.is_ordinary and not window.is_popup)
        # the Dock owns a transparent window as large as the screen
        if is_there and not (window.layer != 0 and window.outer.encloses(target.bounds)):
            return window
    return None

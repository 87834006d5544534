"""Open an application, a file or an address, and wait for its window."""

from __future__ import annotations

import re
import stat
import time
from typing import Annotated, Any, Optional

from ..core.cancellation import pause, report_progress
from ..core.errors import ErrorCode, PeekabooError, check_range, file_errors, invalid, screen_locked
from ..core.models import Handler, Result, Scene, Window
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..desktop.matching import visible_windows
from ..desktop.select import this_desktop
from ..system.files import asked_path
from .act import input_lock
from .listing import window_data
from .policy import check_may_act, denied, write_audit_line

_LONGEST_S = 45.0
_POLL_S = 0.15
# How long a window of another program, or no new window, may still be followed by the expected one.
_GRACE_S = 2.0
_ADDRESS = re.compile(r"(?i)https?://[^\s\x00-\x20\x7f\"'<>\\^`{|}/?#][^\s\x00-\x20\x7f\"'<>\\^`{|}]{,4000}")
# What a system's opener would execute, install, or follow to something else, by its name. This is decided
# here for both platforms, and by the file alone: what a machine's programs say of it differs.
_EXECUTED = (
    ".app .action .command .tool .terminal .workflow .scpt .scptd .applescript .jxa .osax .pkg .mpkg "
    ".prefpane .saver .qlgenerator .mobileconfig .desktop .appimage .run .deb .rpm .flatpakref .flatpak "
    ".snap .sh .bash .zsh .fish .csh .ksh .py .pyw .pyz .pl .rb .php .lua .tcl .js .mjs .jar .jnlp .class "
    ".exe .com .bat .cmd .msi .pyc .pyo .shar .ps1 .vbs .url .webloc .inetloc .fileloc .lnk .shortcut"
)
_EXECUTABLE_BYTES = (b"#!", b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


def open_and_wait(
    app: Annotated[Optional[str], "an installed application, by its name or bundle id; never a path"] = None,
    path: Annotated[Optional[str], "a document or folder to open; nothing that would be executed"] = None,
    url: Annotated[Optional[str], "an http or https address"] = None,
    timeout_s: Annotated[float, "seconds to wait for its window, 1 to 45; default 20"] = 20.0,
) -> Result:
    """Opens an app, a file or an address (one of app, path, url) and returns its window. is_new_window is
    false where an open window came to the front.

    Example: peekaboo-min open --url https://example.org
    """
    # Raises INVALID_ARGUMENT, POLICY_DENIED (also for what would be executed), APP_NOT_FOUND, and TIMEOUT
    desktop = this_desktop()
    targets = {"app": app, "path": path, "url": url}
    given = [(kind, value) for kind, value in targets.items() if value is not None]
    if len(given) != 1:
        raise invalid(f"{len(given)} of app, path and url are given", "give exactly one")
    check_range("timeout_s", timeout_s, 1, _LONGEST_S)
    check_may_act("open")
    kind, name = given[0]
    target = {"app": _checked_name, "path": _checked_path, "url": _checked_url}[kind](name)
    handler = desktop.find_handler(kind, target)
    if not handler.app_name:
        raise denied(f"no application is known that opens {name[:200]}", "open it by an app of your choice")
    check_may_act("open", handler.app_name, handler.bundle_id)
    with input_lock(desktop.session):
        before = desktop.snapshot()
        if before.is_locked:
            raise screen_locked("nothing was opened")
        where = re.split("[/?#]", target)[2].rpartition("@")[2] if kind == "url" else target
        audit = {"app": handler.app_name, "bundle_id": handler.bundle_id, "kind": kind, "target": where}
        write_audit_line("open", audit)
        desktop.open(kind, target, handler)
    report_progress(f"waiting for a window of {handler.app_name}")
    window = _window_that_came(desktop, before, handler, timeout_s)
    is_new = before.find(window.window_id) is None
    data: dict[str, Any] = {**window_data(window), "is_new_window": is_new, "handler": handler.app_name}
    return Result(f"{window} {'opened' if is_new else 'was already open and is in front now'}", data)


def _checked_name(name: str) -> str:
    name = name.strip()
    if not name or "/" in name or name.startswith("-") or clean_text(name) != name:
        raise invalid("app is not the name of an installed application", "a name or bundle id, never a path")
    return name


def _checked_url(url: str) -> str:
    if not _ADDRESS.fullmatch(url):
        message = f"{clean_text(url, 80)!r} is not an http or https address"
        raise invalid(message, "give it whole, like https://example.org")
    return url


def _checked_path(path: str) -> str:
    """The file's own path, links resolved, where opening it executes nothing. Raises POLICY_DENIED."""
    given = asked_path(path)
    with file_errors(given):
        given.stat()  # an OSError for a loop of links, for which Path.resolve raises RuntimeError
        target = given.resolve(strict=True)
        mode, is_program = target.stat().st_mode, False
        if stat.S_ISREG(mode):
            with target.open("rb") as f:
                is_program = bool(mode & 0o111) or f.read(4).startswith(_EXECUTABLE_BYTES)
        elif not stat.S_ISDIR(mode):
            raise invalid(f"{given} is neither a file nor a folder", "name a document")
    is_executed = not {given.suffix.lower(), target.suffix.lower()}.isdisjoint(_EXECUTED.split())
    if is_executed or is_program or (target / "Contents" / "MacOS").is_dir():
        message = f"{given} is refused: opening it could execute it, or something that it names"
        raise denied(message, "open a document, or an installed application by its name: open app")
    return str(target)


def _window_that_came(desktop: Desktop, before: Scene, handler: Handler, timeout_s: float) -> Window:
    """The new window, or the old one that came to the front; the handler's own before any other's."""
    known = {window.window_id for window in before.windows if window.is_on_screen}
    focused = {window.window_id for window in before.windows if window.is_focused}
    start = time.monotonic()
    while True:
        pause(_POLL_S)
        windows = visible_windows(desktop.snapshot().windows)
        elapsed_s = time.monotonic() - start
        came = [window for window in windows if window.window_id not in known]
        own = [window for window in came if _is_of(window, handler)]
        if not own and elapsed_s > _GRACE_S:  # also a window that has the focus now, new or not
            own = [window for window in windows if window.is_focused and _is_of(window, handler)]
            own += came
            own += [window for window in windows if window.is_focused and window.window_id not in focused]
        if own:
            return own[0]
        if elapsed_s > timeout_s:
            message = f"{handler.app_name} was asked to open it; no window appeared within {timeout_s:g} s"
            hint = "list the windows; an application that starts slowly may still open one"
            raise PeekabooError(ErrorCode.TIMEOUT, message, hint)


def _is_of(window: Window, handler: Handler) -> bool:
    """Whether a window seems to belong to the application: on X11 a class is not always its entry's name."""
    if handler.bundle_id and window.bundle_id:
        return handler.bundle_id.lower() == window.bundle_id.lower()
    entry = handler.entry.removesuffix(".desktop")
    return bool(_names(window.app_name) & _names(handler.app_name, entry, entry.rpartition(".")[2]))


def _names(*names: str) -> set[str]:
    return {squeezed for name in names if (squeezed := re.sub(r"[\W_]+", "", name).lower())}

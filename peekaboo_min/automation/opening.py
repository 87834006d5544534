"""Open an application, a file or an address, and wait for its window."""

from __future__ import annotations

import re
import stat
import time
from typing import Any, Optional

from ..core.call import pause, report_progress
from ..core.errors import ErrorCode, PeekabooError, check_range, file_errors, invalid, screen_locked
from ..core.models import Handler, Result, Scene, Window
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..desktop.matching import visible_windows
from ..system.files import absolute_path
from .act import input_lock
from .listing import window_data
from .policy import check_may_act, denied, write_audit_line

_ADDRESS = re.compile(r"(?i)https?://[^\s\x00-\x20\x7f\"'<>\\^`{|}/?#][^\s\x00-\x20\x7f\"'<>\\^`{|}]{,4000}")
# Openers execute, install or follow these files. Judge by the name: programs that detect types disagree.
_EXECUTED = (
    ".app .action .command .tool .terminal .workflow .scpt .scptd .applescript .jxa .osax .pkg .mpkg "
    ".prefpane .saver .qlgenerator .mobileconfig .desktop .appimage .run .deb .rpm .flatpakref .flatpak "
    ".snap .sh .bash .zsh .fish .csh .ksh .py .pyw .pyz .pl .rb .php .lua .tcl .js .mjs .jar .jnlp .class "
    ".exe .com .bat .cmd .msi .pyc .pyo .shar .ps1 .vbs .url .webloc .inetloc .fileloc .lnk .shortcut"
)
_EXECUTABLE_BYTES = (b"#!", b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


def open_and_wait(
    desktop: Desktop, app: Optional[str], path: Optional[str], url: Optional[str], timeout_s: float
) -> Result:
    """Open one of an app, a file and an address, and return its window.

    Raises INVALID_ARGUMENT, POLICY_DENIED (also for executable files), APP_NOT_FOUND,
    AMBIGUOUS_APP_IDENTIFIER, TIMEOUT.
    """
    targets = (("app", app), ("path", path), ("url", url))
    given = [(kind, value) for kind, value in targets if value is not None]
    if len(given) != 1:
        raise invalid(f"{len(given)} of app, path and url are given", "give exactly one")
    check_range("timeout_s", timeout_s, 1, 45.0)
    check_may_act("open")
    kind, name = given[0]
    target = {"app": _checked_name, "path": _checked_path, "url": _checked_url}[kind](name)
    handler = desktop.find_handler(kind, target)
    if not handler.app_name:
        raise denied(f"no application is known that opens {name[:200]}", "open an app by its name instead")
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
    window = _wait_for_window(desktop, before, handler, timeout_s)
    is_new = before.find(window.window_id) is None
    data: dict[str, Any] = {**window_data(window), "is_new_window": is_new, "handler": handler.app_name}
    return Result(f"{window} {'opened' if is_new else 'was already open and is in front now'}", data)


def _checked_name(name: str) -> str:
    name = name.strip()
    if not name or "/" in name or name.startswith("-") or clean_text(name) != name:
        raise invalid("app is not the name of an installed application", "give no path")
    return name


def _checked_url(url: str) -> str:
    if not _ADDRESS.fullmatch(url):
        raise invalid(f"{clean_text(url, 80)!r} is not an http or https address, such as https://example.org")
    return url


def _checked_path(path: str) -> str:
    """Return the file's real path. Raises POLICY_DENIED if opening it could execute something."""
    given = absolute_path(path)
    with file_errors(given):
        given.stat()  # raises OSError for a loop of links; Path.resolve raises RuntimeError
        target = given.resolve(strict=True)
        mode, is_program = target.stat().st_mode, False
        if stat.S_ISREG(mode):
            with target.open("rb") as f:
                is_program = bool(mode & 0o111) or f.read(4).startswith(_EXECUTABLE_BYTES)
        elif not stat.S_ISDIR(mode):
            raise invalid(f"{given} is neither a file nor a folder", "name a document")
    is_executed = not {given.suffix.lower(), target.suffix.lower()}.isdisjoint(_EXECUTED.split())
    if is_executed or is_program or (target / "Contents" / "MacOS").is_dir():
        message = f"{given} is refused: opening it could execute it, or a file that it names"
        raise denied(message, "open a document, or an installed application by its name")
    return str(target)


def _wait_for_window(desktop: Desktop, before: Scene, handler: Handler, timeout_s: float) -> Window:
    """Wait for a new window, or an old one that comes to the front; prefer the handler's own windows."""
    known = {window.window_id for window in before.windows if window.is_on_screen}
    focused = {window.window_id for window in before.windows if window.is_focused}
    start = time.monotonic()
    while True:
        pause(0.15)
        windows = visible_windows(desktop.snapshot().windows)
        elapsed_s = time.monotonic() - start
        new = [window for window in windows if window.window_id not in known]
        candidates = [window for window in new if _is_of(window, handler)]
        if not candidates and elapsed_s > 2.0:  # accept a focused old window, and other applications' windows
            candidates = [window for window in windows if window.is_focused and _is_of(window, handler)]
            candidates += new
            candidates += [w for w in windows if w.is_focused and w.window_id not in focused]
        if candidates:
            return candidates[0]
        if elapsed_s > timeout_s:
            message = f"{handler.app_name} was started, but no window appeared within {timeout_s:g} s"
            hint = "list the windows later: the application may start slowly"
            raise PeekabooError(ErrorCode.TIMEOUT, message, hint)


def _is_of(window: Window, handler: Handler) -> bool:
    """Return True if a window seems to belong to the application; an X11 class may differ from its entry."""
    if handler.bundle_id and window.bundle_id:
        return handler.bundle_id.lower() == window.bundle_id.lower()
    entry = handler.entry.removesuffix(".desktop")
    return bool(_names(window.app_name) & _names(handler.app_name, entry, entry.rpartition(".")[2]))


def _names(*names: str) -> set[str]:
    return {squeezed for name in names if (squeezed := re.sub(r"[\W_]+", "", name).lower())}

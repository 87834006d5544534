"""The policy: which acts are allowed in which apps; the audit log of acts."""

from __future__ import annotations

import json
import os
import time
import unicodedata
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Callable, Optional

from ..core.errors import ErrorCode, PeekabooError, file_errors
from ..core.log import append_line, log_info
from ..core.models import Result, Window
from ..core.settings import settings
from ..system.files import absolute_path, state_folder


def stop_file() -> Path:
    return absolute_path(settings().stop_file) if settings().stop_file else state_folder() / "STOP"


def stop() -> Result:
    """Refuse all acts from now on, also of running servers and agents, until `resume`.

    Makes the stop file: PEEKABOO_STOP_FILE, else STOP in the state folder. Looking is still allowed.

    Example: peekaboo-min stop
    """
    file = stop_file()
    with file_errors(file):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch()
    return Result(f"all acts are refused until `peekaboo-min resume`: {file}", {"stop_file": str(file)})


def resume() -> Result:
    """Allow acts again: remove the stop file.

    Example: peekaboo-min resume
    """
    file = stop_file()
    with file_errors(file):
        file.unlink(missing_ok=True)
    return Result(f"acts are allowed again; {file} is gone", {"stop_file": str(file)})


def check_may_act(action: str, app_name: str = "", bundle_id: Optional[str] = None, alias: str = "") -> None:
    """Raise POLICY_DENIED if `action` (such as click) is forbidden, in general or in this app.

    alias: another name of the app; the lists may contain any of its names.
    """
    if settings().is_read_only:
        raise denied(f"{action} is refused: PEEKABOO_READONLY is set")
    if os.path.lexists(stop_file()):
        raise denied(f"{action} is refused until `peekaboo-min resume`: the stop file {stop_file()} exists")
    names = [name for name in (app_name, bundle_id, alias) if name]
    if _matches(settings().deny_apps, names, plain_name):
        raise denied(f"{action} in {app_name} is refused: PEEKABOO_DENY_APPS names it")
    if names and settings().allow_apps and not _matches(settings().allow_apps, names, str.lower):
        raise denied(f"{action} in {app_name} is refused: PEEKABOO_ALLOW_APPS does not name it")


def _matches(patterns: str, names: Sequence[str], normalise: Callable[[str], str]) -> bool:
    wanted = [normalise(pattern.strip()) for pattern in patterns.split(",")]
    return any(fnmatchcase(normalise(name), pattern) for name in names for pattern in wanted)


def plain_name(name: str) -> str:
    """Return a name without case, width, accents and invisible characters, for the deny list."""
    text = unicodedata.normalize("NFKD", name)
    return "".join(c for c in text if unicodedata.category(c) not in ("Mn", "Me", "Cf", "Cc")).casefold()


def denied(message: str, hint: str = "") -> PeekabooError:
    return PeekabooError(ErrorCode.POLICY_DENIED, message, hint)


def write_audit_line(action: str, where: dict[str, Any]) -> None:
    """Append an act to the audit log before it is done; omit typed text. Raises FILE_IO_ERROR."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = {"time": now, "pid": os.getpid(), "action": action, **where}
    append_line(state_folder() / "audit.jsonl", json.dumps(line, ensure_ascii=False))
    log_info(f"{action} {json.dumps(where, ensure_ascii=False)}")


def audited(window: Window) -> dict[str, Any]:
    """Return a window's audit log fields."""
    owner = {"app": window.app_name, "bundle_id": window.bundle_id, "window_pid": window.pid}
    return {"window_id": window.window_id, **owner}

"""What may be acted on, and the audit log of what was done."""

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
from ..core.log import log_info
from ..core.models import Window
from ..core.settings import settings
from ..system.files import asked_path, state_folder


def stop_file() -> Path:
    return asked_path(settings().stop_file) if settings().stop_file else state_folder() / "STOP"


def check_may_act(action: str, app_name: str = "", bundle_id: Optional[str] = None) -> None:
    """Raises POLICY_DENIED when `action` (like click) is forbidden, in that app where one is named."""
    if settings().is_read_only:
        raise denied(f"{action} is refused: PEEKABOO_READONLY is set", "unset it to act")
    if os.path.lexists(stop_file()):
        raise denied(f"{action} is refused: the stop file {stop_file()} exists", "delete it to go on")
    names = [name for name in (app_name, bundle_id) if name]
    if _matches(settings().deny_apps, names, plain_name):
        raise denied(f"{action} in {app_name} is refused: PEEKABOO_DENY_APPS names it", "use another app")
    if names and settings().allow_apps and not _matches(settings().allow_apps, names, str.lower):
        message = f"{action} in {app_name} is refused: PEEKABOO_ALLOW_APPS does not name it"
        raise denied(message, "use an allowed app")


def _matches(patterns: str, names: Sequence[str], read: Callable[[str], str]) -> bool:
    """Whether a pattern of the list fits one of an app's names, both as `read` gives them."""
    wanted = [read(pattern.strip()) for pattern in patterns.split(",") if pattern.strip()]
    return any(fnmatchcase(read(name), pattern) for name in names for pattern in wanted)


def plain_name(name: str) -> str:
    """A name without case, width, accents and what is not shown: for a list of what is forbidden."""
    text = unicodedata.normalize("NFKD", name)
    return "".join(c for c in text if unicodedata.category(c) not in ("Mn", "Me", "Cf", "Cc")).casefold()


def denied(message: str, hint: str) -> PeekabooError:
    """POLICY_DENIED, to be raised."""
    return PeekabooError(ErrorCode.POLICY_DENIED, message, hint=hint)


def write_audit_line(action: str, where: dict[str, Any]) -> None:
    """Add an act to the audit log: what and where, never the typed text, never pixels.

    Raises FILE_IO_ERROR: what cannot be logged must not be done, so this comes before the act.
    """
    path = state_folder() / "audit.jsonl"
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = {"time": now, "pid": os.getpid(), "action": action, **where}
    with file_errors(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with open(descriptor, "a", encoding="utf-8") as f:
            f.write(json.dumps(line, ensure_ascii=False) + "\n")
    log_info(f"{action} {json.dumps(where, ensure_ascii=False)}")


def audited(window: Window) -> dict[str, Any]:
    """What the audit log says of a window."""
    owner = {"app": window.app_name, "bundle_id": window.bundle_id, "window_pid": window.pid}
    return {"window_id": window.window_id, **owner}

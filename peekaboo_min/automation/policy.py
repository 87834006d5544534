"""What may be done, by whom it is forbidden, and the log of what was done."""

from __future__ import annotations

import json
import os
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Optional

from ..core.errors import ErrorCode, PeekabooError, file_error
from ..core.log import log_info
from ..core.settings import settings
from ..system.files import asked_path, state_folder


def stop_file() -> Path:
    return asked_path(settings().stop_file) if settings().stop_file else state_folder() / "STOP"


def check_may_act(action: str, app_name: str = "", bundle_id: Optional[str] = None) -> None:
    """Raises POLICY_DENIED when `action` (a word like click) may not be done, in that app where one is named."""
    if settings().is_read_only:
        raise _denied(
            f"{action} is refused: PEEKABOO_READONLY is set", "unset it to let this machine be acted on"
        )
    if os.path.lexists(stop_file()):
        raise _denied(f"{action} is refused: the stop file {stop_file()} exists", "delete it to go on")
    if not app_name:
        return
    if _matches(settings().deny_apps, app_name, bundle_id):
        raise _denied(f"{action} in {app_name} is refused: PEEKABOO_DENY_APPS names it", "use another app")
    if settings().allow_apps and not _matches(settings().allow_apps, app_name, bundle_id):
        raise _denied(
            f"{action} in {app_name} is refused: PEEKABOO_ALLOW_APPS does not name it", "use an allowed app"
        )


def _matches(patterns: str, app_name: str, bundle_id: Optional[str]) -> bool:
    names = [name.lower() for name in (app_name, bundle_id) if name]
    wanted = [word.strip().lower() for word in patterns.split(",") if word.strip()]
    return any(fnmatch(name, word) for name in names for word in wanted)


def _denied(message: str, hint: str) -> PeekabooError:
    return PeekabooError(ErrorCode.POLICY_DENIED, message, hint=hint)


def write_audit_line(action: str, where: dict[str, Any]) -> None:
    """Note an act in the audit log: what and where, never the typed text, never pixels.

    Raises FILE_IO_ERROR: what cannot be noted must not be done, so this comes before the act.
    """
    path = state_folder() / "audit.jsonl"
    line = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "pid": os.getpid(),
        "action": action,
        **where,
    }
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with open(descriptor, "a", encoding="utf-8") as f:
            f.write(json.dumps(line, ensure_ascii=False) + "\n")
    except OSError as e:
        raise file_error(path, e) from e
    log_info(f"{action} {json.dumps(where, ensure_ascii=False)}")

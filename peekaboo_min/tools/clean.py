"""Delete our files: the temporary ones, or all of them to uninstall."""

from __future__ import annotations

from typing import Annotated

from ..automation.policy import stop_file
from ..core.log import OLDER_LOGS
from ..core.models import Result
from ..core.settings import settings
from ..integrations.gmail import gmail_folder
from ..system.files import default_log_file, log_file, remove_all, state_folder, sweep, temporary_folder


def clean(
    all: Annotated[
        bool, "also the state folder, the log and Gmail's token: all that we left outside your own folders"
    ] = False,
) -> Result:
    """Delete every image and record in our temporary folder that is not in use.

    Files saved to a path of your choice stay. With --all, to uninstall, it also deletes everything else that
    we left in this account.

    Example: peekaboo-min clean
    """
    if not all:
        count = sweep(0)
        return Result(f"deleted {count} file(s) in {temporary_folder()}", {"deleted": count})
    log = default_log_file()  # not the file that PEEKABOO_LOG_FILE names, which may hold other things
    # the user's own files in our folders: the stop file, which only the user may remove, and Gmail's client
    kept = [path for path in (stop_file(), gmail_folder() / "credentials.json") if path.exists()]
    logs = [log, *(log.with_name(log.name + suffix) for suffix in OLDER_LOGS)]
    folders = [str(temporary_folder()), str(state_folder())]
    staying = [str(path) for path in remove_all(kept, [gmail_folder() / "token.json", *logs])]
    rest = f"; kept, because they are yours or in use: {', '.join(staying)}" if staying else ""
    if settings().log_file:
        rest += f"; the log {log_file()} is yours to delete"
    text = f"deleted {', '.join(folders)} and {log}{rest}; agents' runs and logs are where you started them"
    return Result(text, {"folders": folders, "log": str(log), "kept": staying})

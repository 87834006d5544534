"""Run a peekaboo command line: peekaboo_exec, and PEEKABOO_CLI_PATH."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Optional

from ..automation.capture import ImageRequest, Photograph, Subject, picture_for_model
from ..automation.policy import check_may_act, write_audit_line
from ..core.errors import ErrorCode, PeekabooError, RelayedError
from ..core.log import log_debug, log_error, log_warning
from ..core.models import Picture, Result
from ..core.settings import settings
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..system.files import asked_path, working_folder
from ..system.images import EXTENSIONS, read_image_info
from ..system.process import Completed, run_program
from ..system.programs import find_program
from ..system.resources import own_command

_LONGEST_S = 3600.0
_LIST_S = 30.0
_IMAGE_S = 45.0
_MOST_ATTACHMENTS = 50
_MOST_FILES = 5000
_TOLD_CHARACTERS = 20_000
_ENVELOPE = {"data": dict, "error": dict, "messages": list, "debug_logs": list}


def run_peekaboo(
    desktop: Desktop,
    arguments: Sequence[str],
    cwd: Optional[str],
    timeout_seconds: float,
    max_attachments: int,
) -> Result:
    """Run PEEKABOO_CLI_PATH, else a `peekaboo` on PATH, else our own command line; attach the images that it made.

    The result's data: stdout, stderr, exit_code, json when stdout is JSON. Raises
    INVALID_ARGUMENT, POLICY_DENIED, TIMEOUT (the whole process group is dead then).
    """
    _check_exec(arguments, timeout_seconds, max_attachments)
    check_may_act("exec")
    with _working_folder(cwd) as folder:
        before = _images_below(folder) if cwd else {}
        words = _command_line()
        # the arguments may hold typed text: only their number and the command are noted
        write_audit_line(
            "exec", {"program": os.path.basename(words[0]), "command": arguments[0][:40], "words": len(arguments)}
        )
        done = run_program([*words, *arguments], timeout_s=timeout_seconds, accept=None, folder=str(folder))
        made = sorted(path for path, changed in _images_below(folder).items() if before.get(path) != changed)
        pictures = [_picture(desktop, path, folder) for path in made[:max_attachments]]
        names = " ".join(f"[{one.label}]" for one in pictures)
        left = f", {len(made) - len(pictures)} more not attached" if len(made) > len(pictures) else ""
        data = {**_metadata(done), "attachments": [one.label for one in pictures], "cwd": str(folder)}
        text = f"exit code {done.code}: {names or 'no images'}{left}\n{done.text}{done.stderr}".rstrip()
        return Result(text, data, tuple(pictures))


def _check_exec(arguments: Sequence[str], timeout_seconds: float, max_attachments: int) -> None:
    problem = ""
    if not arguments:
        problem = "args is empty: give the words after `peekaboo`, like ['list', 'apps']"
    elif not 0 < timeout_seconds <= _LONGEST_S:
        problem = f"timeout_seconds is {timeout_seconds:g}: it is above 0 and at most {_LONGEST_S:g}"
    elif not 0 <= max_attachments <= _MOST_ATTACHMENTS:
        problem = f"max_attachments is {max_attachments}: it is 0 to {_MOST_ATTACHMENTS}"
    if problem:
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, problem)


@contextmanager
def _working_folder(cwd: Optional[str]) -> Iterator[Path]:
    """The asked folder, or a new one that is not swept while the program runs in it."""
    if not cwd:
        with working_folder("exec") as folder:
            yield folder
        return
    folder = asked_path(cwd)
    if not folder.is_dir():
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, f"cwd {folder} is not a folder", hint="create it, or leave it out"
        )
    yield folder


def _command_line() -> list[str]:
    path = delegate_path() or find_program("peekaboo")
    return [path] if path else own_command()


def _images_below(folder: Path) -> dict[Path, int]:
    """The image files in a folder and below it, by their names' endings, each with when it changed; no links."""
    found: dict[Path, int] = {}
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent) / name
            if path.suffix.lower() in EXTENSIONS and len(found) < _MOST_FILES:
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):  # no link out of the folder, no pipe that would hold us
                    found[path] = status.st_mtime_ns
    return {path: changed for path, changed in found.items() if read_image_info(path)}


def _picture(desktop: Desktop, path: Path, folder: Path) -> Picture:
    info = read_image_info(path)
    assert info is not None  # _images_below kept only images
    shot = Photograph(path, info, Subject(str(path.relative_to(folder)), ""))
    return picture_for_model(desktop, shot)[0]


def _metadata(done: Completed) -> dict[str, Any]:
    data: dict[str, Any] = {
        "exit_code": done.code,
        "stdout": done.text[:_TOLD_CHARACTERS],
        "stderr": done.stderr[:_TOLD_CHARACTERS],
    }
    if done.text.lstrip()[:1] in ("{", "["):
        try:
            data["json"] = json.loads(done.text)
        except ValueError:
            pass
    return data


def delegate_path() -> Optional[str]:
    """The command line that PEEKABOO_CLI_PATH names, when it is an executable; None otherwise."""
    asked = settings().cli_path
    if not asked:
        return None
    path = os.path.abspath(os.path.expanduser(asked))
    if os.path.isfile(path) and os.access(path, os.X_OK):
        return path
    log_warning(f"PEEKABOO_CLI_PATH names {asked}, which is not an executable: not used")
    return None


def image_by_cli(
    desktop: Desktop, path: str, request: ImageRequest, capture_focus: str, returns_data: bool
) -> Result:
    """The MCP tool `image` through another command line, with the original's words in the original's order."""
    if capture_focus == "foreground":
        check_may_act("foreground capture")
    target = os.path.expanduser(request.path or settings().default_save_path)
    folder = ""
    if not target:
        with _working_folder(None) as new_folder:  # the call is shorter than any sweep's minute: no lock is needed
            folder = str(new_folder)
    is_window = request.app is not None or request.window_id is not None
    words = [
        "image",
        *_option("--app", request.app),
        *_option("--mode", request.mode or ("window" if is_window else "screen")),
        *_option("--window-title", request.window_title),
        *_option("--window-index", request.window_index),
        *_option("--window-id", request.window_id),
        *_option("--max-dimension", request.max_dimension),
        *_option("--path", target or folder),
        *_option("--format", request.kind),
        *_option("--capture-focus", capture_focus),
    ]
    told = _ask_cli(path, words, _IMAGE_S)
    files = _listed(told, "saved_files")
    if not all(isinstance(one.get("path"), str) for one in files):
        raise _invalid_output("a saved file has no path")
    pictures: tuple[Picture, ...] = ()
    if returns_data:
        pictures = tuple(_saved_picture(desktop, one) for one in files)
    text = "\n".join(
        [f"Captured {len(files)} image(s). Saved files:", *(str(one.get("path")) for one in files)]
    )
    return Result(text, {"saved_files": files}, pictures, told.messages)


def _saved_picture(desktop: Desktop, entry: dict[str, Any]) -> Picture:
    path = Path(str(entry.get("path", "")))
    info = read_image_info(path) if path.is_file() else None
    if info is None:
        raise _invalid_output(f"{path} is no image")
    label = str(entry.get("item_label") or entry.get("window_title") or path.name)
    return picture_for_model(desktop, Photograph(path, info, Subject(label, "")))[0]


def list_by_cli(path: str, app: Optional[str], details: Sequence[str]) -> Result:
    """`list apps` or, with an app, `list windows` through another command line; the shell's own data."""
    if app is None:
        told = _ask_cli(path, ["list", "apps"], _LIST_S)
        return Result(
            f"Found {len(_listed(told, 'applications'))} running application(s)", told.data, (), told.messages
        )
    words = [
        "list",
        "windows",
        *_option("--app", app),
        *_option("--include-details", ",".join(details) or None),
    ]
    told = _ask_cli(path, words, _LIST_S)
    count = len(_listed(told, "windows"))
    if not isinstance(told.data.get("target_application_info"), dict):
        raise _invalid_output("it tells no target_application_info")
    return Result(f"Found {count} window(s) for application: {app}", told.data, (), told.messages)


def _listed(told: Result, key: str) -> list[dict[str, Any]]:
    items = told.data.get(key)
    if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
        raise _invalid_output(f"it tells no {key}")
    return items


def _option(flag: str, value: Any) -> list[str]:
    if value is None or value == "":
        return []
    # a value that looks like a flag is tied to its own
    return [f"{flag}={value}"] if str(value).startswith("-") else [flag, str(value)]


def _ask_cli(path: str, words: list[str], timeout_s: float) -> Result:
    """The specification's handler pattern: run with --json-output last, relay its logs, its errors, its data."""
    argv = [path, *words, "--json-output"]
    log_debug(f"peekaboo command line: {json.dumps(argv, ensure_ascii=False)}")
    done = run_program(argv, timeout_s=timeout_s, accept=None)
    for line in done.stderr.splitlines():
        log_warning(f"[SwiftCLI-stderr] {line}")
    try:
        answer = json.loads(done.text)
        succeeded = bool(answer["success"])
        parts = {key: answer.get(key) or kind() for key, kind in _ENVELOPE.items()}
        if not all(isinstance(parts[key], kind) for key, kind in _ENVELOPE.items()):
            raise ValueError("parts of other kinds")
    except (ValueError, KeyError, TypeError, AttributeError):
        if done.code:
            log_error(f"the peekaboo command line failed with exit code {done.code}: {done.text[:500]}")
            raise RelayedError(
                "SWIFT_CLI_EXECUTION_ERROR",
                ErrorCode.PROGRAM_FAILED,
                f"the peekaboo command line failed with exit code {done.code}",
                hint="see what it said: " + (done.stderr.strip() or done.text.strip() or "nothing")[-300:],
            ) from None
        raise _invalid_output(done.text[:200] or "it said nothing") from None
    for entry in parts["debug_logs"]:
        log_debug(f"backend=swift swift_log={entry}")
    if not succeeded or done.code:
        error = parts["error"]
        raise RelayedError(
            str(error.get("code") or "SWIFT_CLI_EXECUTION_ERROR"),
            ErrorCode.PROGRAM_FAILED,
            str(error.get("message") or f"the peekaboo command line failed with exit code {done.code}"),
            details=str(error.get("details") or ""),
        )
    return Result(
        "", _cleaned(parts["data"]), (), tuple(clean_text(str(one), 1000) for one in parts["messages"])
    )


def _cleaned(value: Any, key: str = "") -> Any:
    """Another program's titles are as strange as a window's; a path is left as it is."""
    if isinstance(value, dict):
        return {name: _cleaned(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [_cleaned(one) for one in value]
    return clean_text(value) if isinstance(value, str) and key != "path" else value


def _invalid_output(what: str) -> PeekabooError:
    log_error(f"the peekaboo command line's output is not valid: {what}")
    return RelayedError(
        "SWIFT_CLI_INVALID_OUTPUT",
        ErrorCode.PROGRAM_FAILED,
        f"the peekaboo command line's output is not valid: {what}",
        hint="see that PEEKABOO_CLI_PATH names a peekaboo, or unset it",
    )

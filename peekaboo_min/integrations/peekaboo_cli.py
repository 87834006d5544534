"""Run another peekaboo command line: peekaboo_exec, and PEEKABOO_CLI_PATH."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any, Optional

from .. import __version__
from ..automation.image import ImageRequest, check_request
from ..automation.policy import check_may_act, write_audit_line
from ..core.errors import ErrorCode, PeekabooError, check_range, invalid
from ..core.log import log_debug, log_error, log_warning
from ..core.models import ImageData, Result
from ..core.settings import settings
from ..core.text import clean_text, parsed_json, shown_text
from ..desktop.images import fit_for_client, load_image
from ..desktop.select import this_desktop
from ..system.files import absolute_path, working_folder
from ..system.image_files import EXTENSIONS, whole_image
from ..system.process import ProgramTimeout, run_program
from ..system.programs import find_programs, own_command

_LIST_S, _IMAGE_S = 30.0, 45.0  # every tool ends within 50 s


def peekaboo_argv() -> list[str]:
    """Return PEEKABOO_CLI_PATH if it is an executable, else a `peekaboo` of PATH or Homebrew, else ours."""
    path = delegate_path() or next(find_programs("peekaboo"), None)
    return [path] if path else own_command()


def peekaboo_version(argv: list[str]) -> str:
    """Return the output of `--version`, or the reason for its failure."""
    if argv == own_command():
        return __version__
    try:
        done = run_program([*argv, "--version"], timeout_s=5.0, accept=None)
    except PeekabooError as e:  # it was removed, perhaps by an upgrade
        return f"unknown: {e.message}"
    return clean_text(done.text) or "unknown"


def delegate_path() -> Optional[str]:
    """Return the program of PEEKABOO_CLI_PATH; None, and log a warning, if it is not an executable."""
    if problem := cli_path_problem():
        log_warning(f"{problem}: not used")
    elif settings().cli_path:
        return os.path.abspath(os.path.expanduser(settings().cli_path))
    return None


def cli_path_problem() -> str:
    """Describe what is wrong with PEEKABOO_CLI_PATH; empty if it is not set, or names an executable."""
    given = settings().cli_path
    path = os.path.expanduser(given)
    is_usable = not given or (os.path.isfile(path) and os.access(path, os.X_OK))
    return "" if is_usable else f"PEEKABOO_CLI_PATH names {given}, which is not an executable"


def peekaboo_exec(
    args: Annotated[
        list[str], "the arguments after `peekaboo`, for instance ['list', 'apps', '--json-output']"
    ],
    cwd: Annotated[Optional[str], "working folder; default: a temporary one"] = None,
    timeout_seconds: Annotated[
        float, "seconds until it is killed with all that it started; default 120"
    ] = 120,
    max_attachments: Annotated[
        int, "how many of the images that it leaves in the working folder are returned, 0 to 50; default 8"
    ] = 8,
) -> Result:
    """Run the Peekaboo command line (no shell) and return its stdout, stderr and exit code.

    It also returns the images that the command leaves in the working folder. Without an installed peekaboo it
    runs the built-in one.

    Example: peekaboo-min exec -- image --app Safari --path .
    """
    # Raises INVALID_ARGUMENT, POLICY_DENIED, FILE_IO_ERROR
    if not args:
        raise invalid("args is empty", "give the arguments of `peekaboo`, such as ['list', 'apps']")
    check_range("timeout_seconds", timeout_seconds, 0.001, 3600.0)
    check_range("max_attachments", max_attachments, 0, 50)
    if cwd and not os.path.isdir(absolute_path(cwd)):
        raise invalid(f"cwd {absolute_path(cwd)} is not a folder", "create it, or omit cwd")
    check_may_act("exec")
    program, failure = peekaboo_argv(), None
    with nullcontext(absolute_path(cwd)) if cwd else working_folder("exec") as folder:
        before = _images_below(folder)
        # record only the number of the other arguments, which may contain typed text
        command = args[0][:40]
        write_audit_line("exec", {"program": program[0], "command": command, "arguments": len(args)})
        try:
            done = run_program([*program, *args], timeout_s=timeout_seconds, accept=None, folder=str(folder))
        except ProgramTimeout as e:
            done, failure = e.output, e
            e.hint = "raise timeout_seconds, or check whether a dialog is waiting"
        if done.code and not failure:
            log_error(f"{program[0]} {command} ended with exit code {done.code}")
        made = [path for path, changed in _images_below(folder).items() if before.get(path) != changed]
        # numbers in names sort by value: a2.png before a10.png
        made.sort(key=lambda path: [int(p) if p.isdecimal() else p for p in re.split(r"(\d+)", str(path))])
        images = tuple(filter(None, (_attachment(path, folder) for path in made[:max_attachments])))
    data: dict[str, Any] = {
        "exit_code": None if failure else done.code,
        "stdout": done.text,
        "stderr": done.stderr,
        "attachments": [image.label for image in images],
        "cwd": str(folder),
        "program": shlex.join(program),
        "version": peekaboo_version(program),
    }
    if done.text.lstrip()[:1] in ("{", "["):
        with suppress(ValueError):
            data["json"] = parsed_json(done.text)
    text = "killed" if failure else f"exit code {done.code}"
    names = " ".join(f"[{image.label}]" for image in images)
    left_out = f"{len(made) - len(images)} more not attached" if len(made) > len(images) else ""
    messages = (f"new images in {folder}: {', '.join(filter(None, (names, left_out)))}",) if made else ()
    code = done.code if done.code >= 0 else 128 - done.code  # a negative code is a signal
    stdout = done.stdout if whole_image(done.stdout) else shown_text(done.text).encode()
    return Result(text, data, images, messages, failure, code, done.stderr, stdout=stdout)


def _images_below(folder: Path) -> dict[Path, int]:
    """Map the image files in and below a folder to their times of change."""
    images: dict[Path, int] = {}
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names if Path(name).suffix.lower() in EXTENSIONS):
            with suppress(OSError):  # it was just deleted
                status = path.lstat()
                # skip links out of the folder, and pipes, which would block
                if stat.S_ISREG(status.st_mode) and status.st_size <= 50_000_000:
                    images[path] = status.st_mtime_ns
    return images


def _attachment(path: Path, folder: Path) -> Optional[ImageData]:
    """Return an image for a model; None if that fails, because the command's output matters more."""
    try:
        data = path.read_bytes()
        info = whole_image(data)
        label = str(path.relative_to(folder))
        return fit_for_client(this_desktop(), ImageData(data, info, label, str(path))) if info else None
    except (OSError, PeekabooError) as e:
        log_warning(f"{path} is not attached: {e}")
        return None


def image_by_cli(program: str, request: ImageRequest, capture_focus: str, returns_data: bool) -> Result:
    """Run the MCP tool `image` through another command line, with the original's arguments and order."""
    check_request(request)
    if capture_focus == "foreground":
        check_may_act("foreground capture")
    path = os.path.expanduser(request.path or settings().default_save_path)
    with nullcontext(path) if path else working_folder("image") as target:
        options = {
            "--app": request.app,
            "--mode": request.effective_mode,
            "--window-title": request.window_title,
            "--window-index": request.window_index,
            "--window-id": request.window_id,
            "--max-dimension": request.max_dimension,
            "--path": target,
            "--format": request.kind or ("jpg" if path.lower().endswith((".jpg", ".jpeg")) else "png"),
            "--capture-focus": capture_focus,
        }
        reply = _ask_cli(program, ["image"], options, _IMAGE_S, "saved_files")
        files = reply.data["saved_files"]
        images = tuple(map(_saved_image, files)) if returns_data else ()
    described = [_returned_data(file, image) for file, image in zip(files, images)]
    data = {"saved_files": files, **({"images": described} if returns_data else {})}
    lines = [f"Captured {len(files)} image(s). Saved files:", *(str(file.get("path")) for file in files)]
    return Result("\n".join(lines), data, images, reply.messages)


def _saved_image(file: dict[str, Any]) -> ImageData:
    try:
        image = load_image(absolute_path(str(file.get("path"))))
    except PeekabooError as e:
        raise _invalid_output(e.message) from e
    label = str(file.get("item_label") or file.get("window_title") or image.label)
    return fit_for_client(this_desktop(), image._replace(label=label))


def _returned_data(file: dict[str, Any], image: ImageData) -> dict[str, Any]:
    """Return the specification's metadata of an image; click data only if the image was not resized."""
    size = {"image_width": image.info.width, "image_height": image.info.height}
    clickable = ("scale", "screenshot_id") if size.items() <= file.items() else ()
    names = ("window_title", "window_id", "window_index", *clickable)
    shown = {"item_label": clean_text(image.label), "mime_type": image.info.mime_type, **size}
    known = {name: file[name] for name in names if name in file}
    return {**shown, "source_path": image.source_path, **known}


def list_by_cli(program: str, app: Optional[str], details: Sequence[str]) -> Result:
    """Run `list apps`, or with an app `list windows`, through another command line; return its data."""
    if app is None:
        reply = _ask_cli(program, ["list", "apps"], {}, _LIST_S, "applications")
        return reply._replace(text=f"Found {len(reply.data['applications'])} running application(s)")
    options = {"--app": app, "--include-details": ",".join(details)}
    reply = _ask_cli(program, ["list", "windows"], options, _LIST_S, "windows")
    return reply._replace(text=f"Found {len(reply.data['windows'])} window(s) for application: {app}")


def _ask_cli(
    program: str, command: Sequence[str], options: dict[str, Any], timeout_s: float, rows: str
) -> Result:
    """Run a command and return its data; log its debug lines, and raise its error.

    rows: the field of the data that must list objects.
    """
    argv = [program, *command]
    for flag, value in options.items():
        if value not in (None, ""):  # `--app=-x`, because a separate -x would look like a flag
            argv += [f"{flag}={value}"] if str(value).startswith("-") else [flag, str(value)]
    argv.append("--json-output")
    log_debug(f"peekaboo command line: {json.dumps(argv, ensure_ascii=False)}")
    done = run_program(argv, timeout_s=timeout_s, accept=None)
    failed = f"the peekaboo command line failed with exit code {done.code}"
    try:
        answer = parsed_json(done.text)
        succeeded = answer["success"] and not done.code
        data, error = _cleaned(dict(answer.get("data") or {})), _cleaned(dict(answer.get("error") or {}))
        messages = tuple(clean_text(str(text), 1000) for text in answer.get("messages") or ())
        for entry in answer.get("debug_logs") or ():
            log_debug(f"backend=swift swift_log={entry}")
        if succeeded:
            objects = [*data[rows], data["target_application_info"]] if rows == "windows" else data[rows]
            if not all(isinstance(item, dict) for item in objects):
                raise ValueError(rows)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # of _cleaned
        if not done.code:
            raise _invalid_output(done.text, done.stderr) from None
        log_error(f"{failed}: {done.text[:500]}")
        output = done.stderr.strip() or done.text.strip()
        succeeded, error = False, {"details": clean_text(output[-300:], 300)}
    if not succeeded:
        message, details = str(error.get("message") or failed), str(error.get("details") or "")
        name = str(error.get("code") or "SWIFT_CLI_EXECUTION_ERROR")
        raise PeekabooError(ErrorCode.PROGRAM_FAILED, message, details=details, name=name)
    return Result("", data, (), messages)


def _cleaned(value: Any, key: str = "") -> Any:
    """Clean the texts in the data, because titles are untrusted; keep paths unchanged."""
    if isinstance(value, dict):
        return {name: _cleaned(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [_cleaned(part) for part in value]
    return clean_text(value) if isinstance(value, str) and key != "path" else value


def _invalid_output(what: str, stderr: str = "") -> PeekabooError:
    message = f"the peekaboo command line's output is not valid: {clean_text(what) or 'it is empty'}"
    message += f"; stderr: {clean_text(stderr.strip()[-200:])}" if stderr.strip() else ""
    log_error(message)
    hint = "check that PEEKABOO_CLI_PATH names a peekaboo, or unset it"
    return PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint, name="SWIFT_CLI_INVALID_OUTPUT")

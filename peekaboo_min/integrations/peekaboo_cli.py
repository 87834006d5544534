"""Run another peekaboo command line: peekaboo_exec, and PEEKABOO_CLI_PATH."""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Optional

from .. import __version__
from ..automation.image import ImageRequest, check_request
from ..automation.policy import check_may_act, write_audit_line
from ..core.errors import ErrorCode, PeekabooError, check_range, invalid
from ..core.log import log_debug, log_error, log_warning
from ..core.models import ImageData, Result
from ..core.settings import settings
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..desktop.images import fit_for_client, load_image
from ..desktop.select import this_desktop
from ..system.bitmaps import EXTENSIONS, whole_image
from ..system.files import asked_path, working_folder
from ..system.process import Completed, ProgramTimeout, run_program
from ..system.programs import find_programs, own_command

_LIST_S, _IMAGE_S = 30.0, 45.0
_EXECUTION_ERROR = "SWIFT_CLI_EXECUTION_ERROR"


class PeekabooProgram(NamedTuple):
    """The command line that peekaboo_exec runs."""

    argv: list[str]
    is_ours: bool  # True for this program's own command line, which stands in for a missing `peekaboo`

    def version(self) -> str:
        """Return the output of `--version`, or the reason for its failure."""
        if self.is_ours:
            return __version__
        try:
            done = run_program([*self.argv, "--version"], timeout_s=5.0, accept=None)
        except PeekabooError as e:  # it was removed, perhaps by an upgrade
            return f"unknown: {e.message}"
        return clean_text(done.text) or "unknown"


def peekaboo_program() -> PeekabooProgram:
    """Return PEEKABOO_CLI_PATH, else a `peekaboo` of PATH or Homebrew, else ours. Raises MISSING_PROGRAM."""
    path = _named_program() or next(find_programs("peekaboo"), None)
    return PeekabooProgram([path], is_ours=False) if path else PeekabooProgram(own_command(), is_ours=True)


def _named_program() -> Optional[str]:
    if not settings().cli_path:
        return None
    path = os.path.abspath(os.path.expanduser(settings().cli_path))
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        message = f"PEEKABOO_CLI_PATH names {settings().cli_path}, which is not an executable"
        raise PeekabooError(ErrorCode.MISSING_PROGRAM, message, hint="correct it, or unset it")
    return path


def delegate_path() -> Optional[str]:
    """Return the command line of PEEKABOO_CLI_PATH; None unless it is an executable."""
    try:
        return _named_program()
    except PeekabooError as e:
        log_warning(f"{e.message}: not used")
        return None


class ProgramRun(NamedTuple):
    """A run of the Peekaboo command line, with the images that it left in its working folder."""

    program: PeekabooProgram
    folder: Path
    done: Completed
    images: tuple[ImageData, ...]
    left_out: int  # images above max_attachments, or unreadable
    failure: Optional[ProgramTimeout]  # set if it was killed after timeout_seconds

    @property
    def names(self) -> str:
        return " ".join(f"[{image.label}]" for image in self.images)

    def data(self) -> dict[str, Any]:
        return {
            "exit_code": None if self.failure else self.done.code,
            "stdout": self.done.text,
            "stderr": self.done.stderr,
            "attachments": [image.label for image in self.images],
            "cwd": str(self.folder),
            "program": shlex.join(self.program.argv),
            "version": self.program.version(),
            **_json_of(self.done.text),
        }


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
    """
    run = run_peekaboo(args, cwd, timeout_seconds, max_attachments)
    left_out = f", {run.left_out} more not attached" if run.left_out else ""
    state = "killed" if run.failure else f"exit code {run.done.code}"
    text = f"{state}: {run.names or 'no images'}{left_out}\n{run.done.text}{run.done.stderr}"
    return Result(text.rstrip(), run.data(), run.images, failure=run.failure)


def run_peekaboo(
    args: Sequence[str], cwd: Optional[str], timeout_seconds: float, max_attachments: int
) -> ProgramRun:
    """Run the command line in a folder. Raises INVALID_ARGUMENT, POLICY_DENIED, MISSING_PROGRAM."""
    if not args:
        raise invalid("args is empty", "give the arguments of `peekaboo`, such as ['list', 'apps']")
    check_range("timeout_seconds", timeout_seconds, 0.001, 3600.0)
    check_range("max_attachments", max_attachments, 0, 50)
    if cwd and not os.path.isdir(asked_path(cwd)):
        raise invalid(f"cwd {asked_path(cwd)} is not a folder", "create it, or omit cwd")
    check_may_act("exec")
    program, failure = peekaboo_program(), None
    with nullcontext(asked_path(cwd)) if cwd else working_folder("exec") as folder:
        before = _images_below(folder)
        argv, command = [*program.argv, *args], args[0][:40]
        # record only the number of the other arguments, which may contain typed text
        write_audit_line("exec", {"program": argv[0], "command": command, "arguments": len(args)})
        try:
            done = run_program(argv, timeout_s=timeout_seconds, accept=None, folder=str(folder))
        except ProgramTimeout as e:
            done, failure = e.output, e
            e.hint = "raise timeout_seconds, or check whether a dialog is waiting"
        if done.code and not failure:
            log_error(f"{argv[0]} {command} ended with exit code {done.code}")
        made = sorted(path for path, changed in _images_below(folder).items() if before.get(path) != changed)
        images = tuple(filter(None, (_attachment(path, folder) for path in made[:max_attachments])))
    return ProgramRun(program, folder, done, images, len(made) - len(images), failure)


def _json_of(text: str) -> dict[str, Any]:
    if text.lstrip()[:1] in ("{", "["):
        with suppress(ValueError):
            return {"json": json.loads(text)}
    return {}


def _images_below(folder: Path) -> dict[Path, int]:
    """Map the image files in and below a folder to their times of change; skip links."""
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
    """Return an image for a model; None if it cannot be shrunk, because the output matters more."""
    try:
        data = path.read_bytes()
        info = whole_image(data)
        label = str(path.relative_to(folder))
        return fit_for_client(this_desktop(), ImageData(data, info, label, str(path))) if info else None
    except (OSError, PeekabooError) as e:
        log_warning(f"{path} is not attached: {e}")
        return None


def image_by_cli(
    desktop: Desktop, program: str, request: ImageRequest, capture_focus: str, returns_data: bool
) -> Result:
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
        images = tuple(_saved_image(desktop, file) for file in files) if returns_data else ()
    described = [_returned_data(file, image) for file, image in zip(files, images)]
    data = {"saved_files": files, **({"images": described} if returns_data else {})}
    lines = [f"Captured {len(files)} image(s). Saved files:", *(str(file.get("path")) for file in files)]
    return Result("\n".join(lines), data, images, reply.messages)


def _saved_image(desktop: Desktop, file: dict[str, Any]) -> ImageData:
    try:
        image = load_image(asked_path(str(file.get("path"))))
    except PeekabooError as e:
        raise _invalid_output(e.message) from e
    label = str(file.get("item_label") or file.get("window_title") or image.label)
    return fit_for_client(desktop, image._replace(label=label))


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
    if not isinstance(reply.data.get("target_application_info"), dict):
        raise _invalid_output("it has no target_application_info")
    return reply._replace(text=f"Found {len(reply.data['windows'])} window(s) for application: {app}")


def _ask_cli(
    program: str, command: Sequence[str], options: dict[str, Any], timeout_s: float, rows: str
) -> Result:
    """Run with --json-output last; relay logs, errors and data. rows: the field that must list objects."""
    argv = [program, *command]
    for flag, value in options.items():
        if value not in (None, ""):  # join a value that looks like a flag to its option
            argv += [f"{flag}={value}"] if str(value).startswith("-") else [flag, str(value)]
    argv.append("--json-output")
    log_debug(f"peekaboo command line: {json.dumps(argv, ensure_ascii=False)}")
    done = run_program(argv, timeout_s=timeout_s, accept=None)
    failed = f"the peekaboo command line failed with exit code {done.code}"
    try:
        answer = json.loads(done.text)
        succeeded = answer["success"] and not done.code
        data, error = (_cleaned(dict(answer.get(part) or {})) for part in ("data", "error"))
        messages = tuple(clean_text(str(text), 1000) for text in answer.get("messages") or ())
        for entry in answer.get("debug_logs") or ():
            log_debug(f"backend=swift swift_log={entry}")
        if succeeded and not all(isinstance(row, dict) for row in data[rows]):
            raise ValueError(rows)
    except (ValueError, KeyError, TypeError, AttributeError):
        if not done.code:
            raise _invalid_output(done.text or "it is empty") from None
        log_error(f"{failed}: {done.text[:500]}")
        output = done.stderr.strip() or done.text.strip() or "none"
        hint = f"see its output: {clean_text(output[-300:], 300)}"
        raise PeekabooError(ErrorCode.PROGRAM_FAILED, failed, hint, name=_EXECUTION_ERROR) from None
    if not succeeded:
        message, details = str(error.get("message") or failed), str(error.get("details") or "")
        name = str(error.get("code") or _EXECUTION_ERROR)
        raise PeekabooError(ErrorCode.PROGRAM_FAILED, message, details=details, name=name)
    return Result("", data, (), messages)


def _cleaned(value: Any, key: str = "") -> Any:
    """Clean the texts in the data, because titles are untrusted; keep paths unchanged."""
    if isinstance(value, dict):
        return {name: _cleaned(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [_cleaned(part) for part in value]
    return clean_text(value) if isinstance(value, str) and key != "path" else value


def _invalid_output(what: str) -> PeekabooError:
    message = f"the peekaboo command line's output is not valid: {clean_text(what)}"
    log_error(message)
    hint = "check that PEEKABOO_CLI_PATH names a peekaboo, or unset it"
    return PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint, name="SWIFT_CLI_INVALID_OUTPUT")

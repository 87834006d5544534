"""Run a peekaboo command line: peekaboo_exec, and PEEKABOO_CLI_PATH."""

from __future__ import annotations

import json
import os
import shlex
import stat
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Optional

from .. import __version__
from ..ai.images import fit_for_client, load_image
from ..automation.image import ImageRequest, check_request
from ..automation.policy import check_may_act, write_audit_line
from ..core.errors import ErrorCode, PeekabooError, check_range, invalid
from ..core.log import log_debug, log_error, log_warning
from ..core.models import ImageData, Offer, Result
from ..core.settings import settings
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..desktop.select import this_desktop
from ..system.files import asked_path, working_folder
from ..system.images import EXTENSIONS, read_image_info, whole_image
from ..system.process import Completed, ProgramTimeout, run_program
from ..system.programs import find_program, own_command

_MAX_TIMEOUT_S = 3600.0
_LIST_S = 30.0
_IMAGE_S = 45.0
_VERSION_S = 5.0
_MAX_ATTACHMENTS = 50
_MAX_FILES = 5000
_LARGEST_IMAGE_BYTES = 50_000_000
_MAX_OUTPUT_CHARACTERS = 20_000
_MAX_MESSAGE_CHARACTERS = 1000
_EXECUTION_ERROR = "SWIFT_CLI_EXECUTION_ERROR"
# The parts of the specification's JSON envelope, and their types.
_ENVELOPE = {"data": dict, "error": dict, "messages": list, "debug_logs": list}


class PeekabooProgram(NamedTuple):
    """The command line that peekaboo_exec runs."""

    argv: list[str]
    is_ours: bool
    """True for this program's own command line, which stands in for a missing `peekaboo`."""

    def version(self) -> str:
        """What `--version` prints, or why it does not."""
        return __version__ if self.is_ours else _version_of(self.argv[0])


def peekaboo_program() -> PeekabooProgram:
    """PEEKABOO_CLI_PATH, else a `peekaboo` on PATH or of Homebrew, else our own command line.

    Raises MISSING_PROGRAM for a PEEKABOO_CLI_PATH that is not an executable.
    """
    path = _named_program() or find_program("peekaboo")
    return PeekabooProgram([path], is_ours=False) if path else PeekabooProgram(own_command(), is_ours=True)


def _named_program() -> Optional[str]:
    """The executable that PEEKABOO_CLI_PATH names; None where it is unset. Raises MISSING_PROGRAM."""
    asked = settings().cli_path
    if not asked:
        return None
    path = os.path.abspath(os.path.expanduser(asked))
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        message = f"PEEKABOO_CLI_PATH names {asked}, which is not an executable"
        raise PeekabooError(ErrorCode.MISSING_PROGRAM, message, hint="correct it, or unset it")
    return path


def delegate_path() -> Optional[str]:
    """The command line that PEEKABOO_CLI_PATH names, when it is an executable; None otherwise."""
    try:
        return _named_program()
    except PeekabooError as e:
        log_warning(f"{e.message}: not used")
        return None


def _version_of(path: str) -> str:
    try:
        answer = run_program([path, "--version"], timeout_s=_VERSION_S, accept=None)
    except PeekabooError as e:  # removed since, by an upgrade perhaps
        return f"unknown: {e.message}"
    return clean_text(answer.text) or f"unknown: it printed nothing for --version (exit code {answer.code})"


def peekaboo_exec(
    args: Annotated[
        list[str],
        "the arguments after `peekaboo`, for instance ['list', 'apps', '--json-output']",
        Offer(shell_help="the arguments after `peekaboo`"),
    ],
    cwd: Annotated[Optional[str], "working folder; default: a temporary one"] = None,
    timeout_seconds: Annotated[
        float, "seconds until it is killed with all that it started; default 120"
    ] = 120,
    max_attachments: Annotated[
        int,
        "how many of the images that it leaves in the working folder are returned, 0 to 50; default 8",
        Offer(shell_help="how many of the images that it leaves are named; default 8"),
    ] = 8,
    in_shell: bool = False,
) -> Result:
    """Runs the Peekaboo command line (no shell) and returns its stdout, stderr and exit code; images that it
    leaves in the working folder are returned. Without an installed peekaboo it runs the built-in one.

    In the shell: Runs the Peekaboo command line: PEEKABOO_CLI_PATH, else `peekaboo`, else this one; names the
    images that it leaves.

    Example: peekaboo-min exec -- image --app Safari --path .
    """
    _check_exec(args, timeout_seconds, max_attachments)
    check_may_act("exec")
    program = peekaboo_program()
    with nullcontext(_asked_folder(cwd)) if cwd else working_folder("exec") as folder:
        before = _images_below(folder) if cwd else {}
        # the arguments may contain typed text: only their number and the command are recorded
        name = os.path.basename(program.argv[0])
        write_audit_line("exec", {"program": name, "command": args[0][:40], "arguments": len(args)})
        failure: Optional[PeekabooError] = None
        try:
            argv = [*program.argv, *args]
            done = run_program(argv, timeout_s=timeout_seconds, accept=None, folder=str(folder))
        except ProgramTimeout as e:
            done, failure = e.output, e
        made = sorted(path for path, changed in _images_below(folder).items() if before.get(path) != changed)
        attached = [*filter(None, (_attachment(path, folder) for path in made[:max_attachments]))]
    limit = sys.maxsize if in_shell else _MAX_OUTPUT_CHARACTERS
    data = {
        **_metadata(done, failure is not None, limit),
        "attachments": [image.label for image in attached],
        "cwd": str(folder),
        "program": shlex.join(program.argv),
        "version": program.version(),
    }
    names = " ".join(f"[{image.label}]" for image in attached)
    code = done.code if done.code >= 0 else 128 - done.code
    if in_shell:
        messages = (f"left in {folder}: {names}",) if names else ()
        text = done.text.rstrip("\n")
        return Result(text, data, (), messages, failure=failure, exit_code=code, stderr=done.stderr)
    ending = "killed" if failure else f"exit code {done.code}"
    left = f", {len(made) - len(attached)} more not attached" if len(made) > len(attached) else ""
    text = f"{ending}: {names or 'no images'}{left}\n{done.text}{done.stderr}".rstrip()
    return Result(text, data, tuple(attached), _cut_notes(done, limit), failure=failure)


def _cut_notes(done: Completed, limit: int) -> tuple[str, ...]:
    return tuple(
        f"{name} has {len(text)} characters: only the first {limit} are shown"
        for name, text in {"stdout": done.text, "stderr": done.stderr}.items()
        if len(text) > limit
    )


def _check_exec(arguments: Sequence[str], timeout_seconds: float, max_attachments: int) -> None:
    if not arguments:
        raise invalid("args is empty", "give the arguments of `peekaboo`, such as ['list', 'apps']")
    if not 0 < timeout_seconds <= _MAX_TIMEOUT_S:
        hint = f"give a number above 0, at most {_MAX_TIMEOUT_S:g}"
        raise invalid(f"timeout_seconds is {timeout_seconds:g}", hint)
    check_range("max_attachments", max_attachments, 0, _MAX_ATTACHMENTS)


def _asked_folder(cwd: str) -> Path:
    folder = asked_path(cwd)
    if not os.path.isdir(folder):  # unlike Path.is_dir, it is False for a name that is too long
        raise invalid(f"cwd {folder} is not a folder", "create it, or omit cwd")
    return folder


def _images_below(folder: Path) -> dict[Path, int]:
    """The image files in and below a folder, with their modification times; links are ignored."""
    found: dict[Path, int] = {}
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for path in (Path(parent) / name for name in sorted(names)):
            if path.suffix.lower() in EXTENSIONS and len(found) < _MAX_FILES:
                with suppress(OSError):  # deleted meanwhile, or not readable
                    status = path.lstat()
                    # no link out of the folder, no pipe that would block us
                    is_small_file = stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST_IMAGE_BYTES
                    info = read_image_info(path) if is_small_file else None
                    if info and info.kind in EXTENSIONS.values():
                        found[path] = status.st_mtime_ns
    return found


def _attachment(path: Path, folder: Path) -> Optional[ImageData]:
    """An image for a model; None for one that cannot be shrunk: the program's output counts all the same."""
    try:
        data = path.read_bytes()
        info = whole_image(data)
        label = str(path.relative_to(folder))
        return fit_for_client(this_desktop(), ImageData(data, info, label, str(path))) if info else None
    except (OSError, PeekabooError) as e:
        log_warning(f"{path} is not attached: {e}")
        return None


def _metadata(done: Completed, was_killed: bool, max_characters: int) -> dict[str, Any]:
    data: dict[str, Any] = {
        "exit_code": None if was_killed else done.code,
        "stdout": done.text[:max_characters],
        "stderr": done.stderr[:max_characters],
    }
    if done.text.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            data["json"] = json.loads(done.text)
    return data


def image_by_cli(
    desktop: Desktop, path: str, request: ImageRequest, capture_focus: str, returns_data: bool
) -> Result:
    """The MCP tool `image` through another command line, with the original's arguments in its order."""
    check_request(request)
    if capture_focus == "foreground":
        check_may_act("foreground capture")
    asked = os.path.expanduser(request.path or settings().default_save_path)
    with nullcontext(asked) if asked else working_folder("image") as target:
        options = {
            "--app": request.app,
            "--mode": request.effective_mode,
            "--window-title": request.window_title,
            "--window-index": request.window_index,
            "--window-id": request.window_id,
            "--max-dimension": request.max_dimension,
            "--path": target,
            "--format": request.kind,
            "--capture-focus": capture_focus,
        }
        reply = _ask_cli(path, ["image", *_as_arguments(options)], _IMAGE_S)
        files = _rows(reply, "saved_files")
        if not all(isinstance(file.get("path"), str) for file in files):
            raise _invalid_output("a saved file has no path")
        images = tuple(_saved_image(desktop, file) for file in files) if returns_data else ()
    data: dict[str, Any] = {"saved_files": files}
    if returns_data:
        data["images"] = [_returned_data(file, image) for file, image in zip(files, images)]
    lines = [f"Captured {len(files)} image(s). Saved files:", *(file["path"] for file in files)]
    return Result("\n".join(lines), data, images, reply.messages)


def _saved_image(desktop: Desktop, file: dict[str, Any]) -> ImageData:
    try:
        image = load_image(asked_path(file["path"]))
    except PeekabooError as e:
        raise _invalid_output(e.message) from e
    label = str(file.get("item_label") or file.get("window_title") or image.label)
    return fit_for_client(desktop, image._replace(label=label))


def _returned_data(file: dict[str, Any], image: ImageData) -> dict[str, Any]:
    """The specification's metadata of a returned image; what a click needs only where no pixel has moved."""
    size = {"image_width": image.info.width, "image_height": image.info.height}
    names = ["window_title", "window_id", "window_index"]
    if size.items() <= file.items():
        names += ["scale", "screenshot_id"]
    data = {name: file[name] for name in names if name in file}
    label = clean_text(image.label)
    if "window_id" in file and file.get("item_label"):  # the specification's label of a window is its title
        data.setdefault("window_title", label)
    return {
        "item_label": label, "mime_type": image.info.mime_type, **size, "source_path": file["path"], **data
    }  # fmt: skip


def list_by_cli(path: str, app: Optional[str], details: Sequence[str]) -> Result:
    """`list apps` or, with an app, `list windows` through another command line; the shell's own data."""
    if app is None:
        reply = _ask_cli(path, ["list", "apps"], _LIST_S)
        text = f"Found {len(_rows(reply, 'applications'))} running application(s)"
        return reply._replace(text=text)
    options = {"--app": app, "--include-details": ",".join(details)}
    reply = _ask_cli(path, ["list", "windows", *_as_arguments(options)], _LIST_S)
    text = f"Found {len(_rows(reply, 'windows'))} window(s) for application: {app}"
    if not isinstance(reply.data.get("target_application_info"), dict):
        raise _invalid_output("it has no target_application_info")
    return reply._replace(text=text)


def _rows(reply: Result, key: str) -> list[dict[str, Any]]:
    rows = reply.data.get(key)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise _invalid_output(f"it has no {key}")
    return rows


def _as_arguments(options: dict[str, Any]) -> list[str]:
    """The options that have a value; a value that looks like a flag is joined to its own."""
    arguments: list[str] = []
    for flag, value in options.items():
        if value not in (None, ""):
            arguments += [f"{flag}={value}"] if str(value).startswith("-") else [flag, str(value)]
    return arguments


def _ask_cli(path: str, arguments: list[str], timeout_s: float) -> Result:
    """The specification's handler pattern: run with --json-output last; relay logs, errors and data."""
    argv = [path, *arguments, "--json-output"]
    log_debug(f"peekaboo command line: {json.dumps(argv, ensure_ascii=False)}")
    done = run_program(argv, timeout_s=timeout_s, accept=None)
    failed = f"the peekaboo command line failed with exit code {done.code}"
    try:
        answer = json.loads(done.text)
        succeeded = bool(answer["success"])
        parts = {key: answer.get(key) or kind() for key, kind in _ENVELOPE.items()}
        if not all(isinstance(parts[key], kind) for key, kind in _ENVELOPE.items()):
            raise ValueError("parts of other types")
        data = _cleaned(parts["data"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        if done.code:
            log_error(f"{failed}: {done.text[:500]}")
            output = (done.stderr.strip() or done.text.strip() or "none")[-300:]
            hint = f"see its output: {clean_text(output, 300)}"
            raise PeekabooError(ErrorCode.PROGRAM_FAILED, failed, hint, name=_EXECUTION_ERROR) from None
        raise _invalid_output(done.text or "it is empty") from None
    for entry in parts["debug_logs"]:
        log_debug(f"backend=swift swift_log={entry}")
    if not succeeded or done.code:
        error = parts["error"]
        raise PeekabooError(
            ErrorCode.PROGRAM_FAILED,
            clean_text(str(error.get("message") or failed), _MAX_MESSAGE_CHARACTERS),
            details=str(error.get("details") or ""),
            name=str(error.get("code") or _EXECUTION_ERROR),
        )
    messages = tuple(clean_text(str(message), _MAX_MESSAGE_CHARACTERS) for message in parts["messages"])
    return Result("", data, (), messages)


def _cleaned(value: Any, key: str = "") -> Any:
    """The data with clean texts: another program's titles are untrusted. A path is left as it is."""
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

"""Open applications by their desktop entries, files by the default entry.

Formats: freedesktop.org's Desktop Entry, MIME Applications and Base Directory specifications.
"""

from __future__ import annotations

import configparser
import mimetypes
import os
from collections.abc import Mapping
from pathlib import Path

from ...core.errors import ErrorCode, PeekabooError
from ...core.models import App, Handler
from ...core.settings import child_environment
from ...core.text import clean_text
from ...system.process import run_program
from ..matching import find_app

_ANSWER_S = 10.0  # for programs that end at once, unless they hang
# Types that Python's own table lacks, or names differently in some versions.
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument"
_OFFICE = "application/vnd.openxmlformats-officedocument"
_MORE_TYPES = {
    ".odt": f"{_OPEN_DOCUMENT}.text", ".ods": f"{_OPEN_DOCUMENT}.spreadsheet",
    ".odp": f"{_OPEN_DOCUMENT}.presentation", ".docx": f"{_OFFICE}.wordprocessingml.document",
    ".xlsx": f"{_OFFICE}.spreadsheetml.sheet", ".pptx": f"{_OFFICE}.presentationml.presentation",
    ".epub": "application/epub+zip", ".ogg": "audio/ogg", ".flac": "audio/flac", ".mkv": "video/x-matroska",
    ".webp": "image/webp", ".rtf": "application/rtf",
}  # fmt: skip


def find_x11_handler(kind: str, target: str) -> Handler:
    """Return the application that opens a target; see Desktop.find_handler."""
    entries = _entries()
    if kind == "app":
        apps = [
            App(values["name"], bundle_id=entry.removesuffix(".desktop"))
            for entry, values in entries.items()
            if values.get("nodisplay") != "true"  # menus do not show it
        ]
        app = find_app(target.removesuffix(".desktop"), apps, "installed", acts=True)
        return Handler(app.name, f"{app.bundle_id}.desktop")
    if kind == "url":
        types = [f"x-scheme-handler/{target.lower().split(':')[0]}", "x-scheme-handler/http", "text/html"]
    else:
        mime = _type_of(Path(target))
        types = [mime, "text/plain"] if mime.startswith("text/") else [mime]
    for mime in types:
        argv = ["xdg-mime", "query", "default", mime]  # an unset default is no failure
        entry = run_program(argv, timeout_s=_ANSWER_S, accept=None).text.strip()
        if entry in entries:
            return Handler(entries[entry]["name"], entry)
    hint = f"open an application by its name, or set a default: xdg-mime default NAME.desktop {types[0]}"
    raise PeekabooError(ErrorCode.APP_NOT_FOUND, f"no installed application opens {types[0]}", hint)


def open_by_x11(kind: str, target: str, handler: Handler) -> None:
    """Start the application of `handler` with the file or address. It outlives this process."""
    # gtk-launch exits as soon as the program has started
    argv = ["gtk-launch", "--", handler.entry, *([] if kind == "app" else [target])]
    done = run_program(argv, timeout_s=_ANSWER_S, accept=None, leaves_daemon=True)
    if done.code:
        message = f"{handler.app_name} could not be started from its desktop entry {handler.entry}"
        hint = "start it by hand to see the reason, or reinstall it"
        raise PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint)


def _type_of(path: Path) -> str:
    if path.is_dir():
        return "inode/directory"
    # not mimetypes.guess_type: /etc/mime.types and `xdg-mime query filetype` differ between machines
    tables = mimetypes.MimeTypes()
    mime, encoding = tables.guess_type(str(path), strict=False)
    if encoding:
        return "application/gzip" if encoding == "gzip" else f"application/x-{encoding}"
    if mime := _MORE_TYPES.get(path.suffix.lower(), mime):
        return mime
    with path.open("rb") as f:
        return "application/octet-stream" if b"\0" in f.read(4096) else "text/plain"


def _entries() -> dict[str, Mapping[str, str]]:
    """Return the applications by desktop file id: the path below `applications` with `-` for each `/`."""
    environment = child_environment()
    home = environment.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    system = environment.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    entries: dict[str, Mapping[str, str]] = {}
    # skip relative folders, as the specification demands: the working folder may contain a stranger's files
    for folder in filter(os.path.isabs, [*reversed(system.split(":")), home]):
        applications = Path(folder, "applications")
        for path in sorted(applications.rglob("*.desktop"), reverse=True):
            entries[str(path.relative_to(applications)).replace("/", "-")] = _read_entry(path)
    return {entry: values for entry, values in entries.items() if values}


def _read_entry(path: Path) -> Mapping[str, str]:
    parser = configparser.RawConfigParser(strict=False, delimiters="=", allow_no_value=True)
    try:
        # a pipe would block
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        # configparser takes an indented line for a continuation, and fails if the line before has no value
        parser.read_string("\n".join(map(str.strip, text.splitlines())))
        values = dict(parser["Desktop Entry"])
    except (OSError, configparser.Error, KeyError):  # deleted, unreadable or damaged
        return {}
    values["name"] = clean_text(values.get("name") or "")
    is_app = values.get("type") == "Application" and values.get("hidden") != "true"
    return values if values["name"] and is_app else {}

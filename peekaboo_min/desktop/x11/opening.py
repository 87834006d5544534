"""Open applications by their desktop entries, files by the default one.

Formats: freedesktop.org's Desktop Entry, MIME Applications and Base Directory specifications.
"""

from __future__ import annotations

import mimetypes
import os
from pathlib import Path
from typing import NamedTuple, Optional

from ...core.errors import ErrorCode, PeekabooError
from ...core.models import App, Handler
from ...core.settings import child_environment
from ...core.text import clean_text
from ...system.process import run_program
from ...system.programs import find_program
from ..matching import find_app

_ANSWER_S = 10.0
_LONGEST_ENTRY = 256 * 1024
_MOST_ENTRIES = 5000
_TEXT_BYTES = 4096
# What Python's own tables lack, or lack in some versions.
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument"
_OFFICE = "application/vnd.openxmlformats-officedocument"
_MORE_TYPES = {
    ".odt": f"{_OPEN_DOCUMENT}.text", ".ods": f"{_OPEN_DOCUMENT}.spreadsheet",
    ".odp": f"{_OPEN_DOCUMENT}.presentation", ".docx": f"{_OFFICE}.wordprocessingml.document",
    ".xlsx": f"{_OFFICE}.spreadsheetml.sheet", ".pptx": f"{_OFFICE}.presentationml.presentation",
    ".epub": "application/epub+zip", ".ogg": "audio/ogg", ".flac": "audio/flac", ".mkv": "video/x-matroska",
    ".webp": "image/webp",
}  # fmt: skip


class _Entry(NamedTuple):
    """A desktop entry; `entry_id` is its name below `applications`, `-` for each `/` in it."""

    entry_id: str
    name: str
    is_shown: bool
    """False for what menus do not show: NoDisplay, or a program that is not there."""


def find_x11_handler(kind: str, target: str) -> Handler:
    """The application that would open it: see Desktop.find_handler."""
    entries = _entries()
    if kind == "app":
        shown = [one for one in entries.values() if one.is_shown]
        apps = [App(one.name, bundle_id=one.entry_id[: -len(".desktop")]) for one in shown]
        app = find_app(target.removesuffix(".desktop"), apps, "installed")
        return Handler(app.name, f"{app.bundle_id}.desktop")
    if kind == "url":
        scheme = target.lower().split(":")[0]
        types = [f"x-scheme-handler/{scheme}", "x-scheme-handler/http", "text/html"]
    else:
        mime = _type_of(Path(target))
        types = [mime, "text/plain"] if mime.startswith("text/") else [mime]
    for mime in types:
        found = entries.get(_default_entry(mime))
        if found:
            return Handler(found.name, found.entry_id)
    setting = f"xdg-mime default NAME.desktop {types[0]}"
    raise PeekabooError(
        ErrorCode.APP_NOT_FOUND,
        f"no installed application opens {types[0]}",
        hint=f"open an application by its name instead, or set a default: {setting}",
    )


def open_by_x11(kind: str, target: str, handler: Handler) -> None:
    """Start the application of `handler`, and that one, with the file or address. It lives on after us."""
    what = [] if kind == "app" else [target]
    # gtk-launch ends as soon as it has started the program
    words = ["gtk-launch", "--", handler.entry, *what]
    done = run_program(words, timeout_s=_ANSWER_S, accept=None, leaves_daemon=True)
    if done.code:
        raise PeekabooError(
            ErrorCode.PROGRAM_FAILED,
            f"{handler.app_name} could not be started by its entry {handler.entry}",
            hint="start it by hand to see why, or install it again",
        )


def _type_of(path: Path) -> str:
    """The MIME type of a file by its name, or by its text where the name says nothing.

    By Python's own tables: /etc/mime.types, and what `xdg-mime query filetype` asks (a desktop, `mimetype`,
    `file`), answer differently from machine to machine.
    """
    if path.is_dir():
        return "inode/directory"
    tables = mimetypes.MimeTypes()  # mimetypes.guess_type would add the machine's
    mime, encoding = tables.guess_type(str(path), strict=False)
    if encoding:
        return "application/gzip" if encoding == "gzip" else f"application/x-{encoding}"
    if mime := _MORE_TYPES.get(path.suffix.lower(), mime):
        return mime
    with path.open("rb") as f:
        return "application/octet-stream" if b"\0" in f.read(_TEXT_BYTES) else "text/plain"


def _default_entry(mime: str) -> str:
    """The id of the type's default application; a default that is not set is no failure."""
    words = ["xdg-mime", "query", "default", mime]
    return run_program(words, timeout_s=_ANSWER_S, accept=None).text.strip()


def _entries() -> dict[str, _Entry]:
    """The installed applications by id; the user's own hide the system's of the same id."""
    environment = child_environment()
    home = environment.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    system = environment.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    found: dict[str, Optional[_Entry]] = {}
    for folder in [home, *system.split(":")]:
        applications = Path(folder, "applications")
        for path in sorted(applications.rglob("*.desktop")) if applications.is_absolute() else ():
            entry_id = str(path.relative_to(applications)).replace("/", "-")
            if entry_id not in found and len(found) < _MOST_ENTRIES:
                found[entry_id] = _read_entry(entry_id, path)
    return {entry_id: one for entry_id, one in found.items() if one}


def _read_entry(entry_id: str, path: Path) -> Optional[_Entry]:
    """None for what is no application, or is declared as deleted."""
    try:
        if not path.is_file():
            return None
        with path.open(encoding="utf-8", errors="replace") as f:
            text = f.read(_LONGEST_ENTRY)
    except OSError:
        return None  # gone, or another user's
    values: dict[str, str] = {}
    group = ""
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if line.startswith("["):
            group = line.strip()
        elif equals and group == "[Desktop Entry]":
            values.setdefault(key.strip(), value.strip())
    name = clean_text(values.get("Name", ""))
    if not name or values.get("Type") != "Application" or values.get("Hidden") == "true":
        return None
    wanted = values.get("TryExec", "")
    is_there = not wanted or find_program(wanted) is not None
    return _Entry(entry_id, name, is_there and values.get("NoDisplay") != "true")

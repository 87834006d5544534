"""The log file, and the debug lines that a command collects."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from .settings import without_secrets
from .text import encodable

_LOGGER = logging.getLogger("peekaboo_min")
_LOGGER.setLevel(logging.DEBUG)
_LOGGER.propagate = False
_LOGGER.addHandler(logging.NullHandler())

# pino's names, which the specification uses; Python's logging has neither trace nor fatal.
_LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
}
_ROTATE_BYTES = 5_000_000


def log_debug(text: str) -> None:
    _LOGGER.debug(text)


def log_info(text: str) -> None:
    _LOGGER.info(text)


def log_warning(text: str) -> None:
    _LOGGER.warning(text)


def log_error(text: str, with_traceback: bool = False) -> None:
    _LOGGER.error(text, exc_info=with_traceback)


def _message(record: logging.LogRecord) -> str:
    return encodable(without_secrets(record.getMessage()))


class LogSafe(str):
    """An argument of a program that may be logged as it is: a flag or a subcommand, nothing from outside."""


def log_safe(*arguments: str) -> list[str]:
    return list(map(LogSafe, arguments))


def loggable_arguments(arguments: Sequence[str]) -> list[str]:
    """Safe arguments as they are; of all others, such as typed text, only the lengths."""
    return [each if isinstance(each, LogSafe) else f"<{len(each)} characters>" for each in arguments]


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(_message(record))


def collect_debug_lines() -> list[str]:
    """The list into which every later log line of this process goes, too."""
    collector = _Collector()
    _LOGGER.addHandler(collector)
    return collector.lines


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower().replace("warning", "warn").replace("critical", "fatal"),
            "pid": record.process,
            "msg": _message(record),
        }
        if record.exc_info:
            line["stack"] = encodable(without_secrets(self.formatException(record.exc_info)))
        return json.dumps(line, ensure_ascii=False)


def default_log_file() -> Path:
    return Path(tempfile.gettempdir()) / "peekaboo-mcp.log"


def _open_own_file(path: str) -> int:
    """A descriptor to append to a regular file of this user's own. Raises OSError for any other."""
    # without O_NONBLOCK a pipe that nobody reads would hold us here
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o600)
    found = os.fstat(descriptor)
    problem = ""
    if not stat.S_ISREG(found.st_mode):
        problem = "it is not a regular file"
    elif found.st_uid != os.getuid():
        problem = "it belongs to another user"
    elif found.st_nlink != 1:
        problem = "it has another name elsewhere (a hard link)"
    if problem:
        os.close(descriptor)
        raise OSError(errno.EPERM, problem)
    if found.st_mode & 0o077:
        os.fchmod(descriptor, 0o600)
    return descriptor


def start_log_file(path: Path, level: str, also_console: bool) -> None:
    """Log to `path` as JSON lines; an unknown level means info.

    The default path is a name that others can guess in a shared folder: only a regular file of ours is
    written to, no link, pipe or file of another user, and nobody else may read it (0600). What cannot be
    opened is reported on stderr, and the server runs without a log.
    """
    from logging.handlers import RotatingFileHandler

    class OwnFile(RotatingFileHandler):
        def _open(self):  # type: ignore[no-untyped-def]
            return open(_open_own_file(self.baseFilename), "a", encoding="utf-8")

    number = _LEVELS.get(level.lower(), logging.INFO)
    handlers: list[logging.Handler] = []
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(OwnFile(path, maxBytes=_ROTATE_BYTES, backupCount=1))
    except (OSError, ValueError) as e:  # ValueError: a NUL in the path
        reason = getattr(e, "strerror", None) or e
        print(f"peekaboo-min: no log: cannot write {path}: {reason}; set PEEKABOO_LOG_FILE", file=sys.stderr)
    if also_console:
        handlers.append(logging.StreamHandler(sys.stderr))
    for handler in handlers:
        handler.setLevel(number)
        handler.setFormatter(_JsonLines())
        _LOGGER.addHandler(handler)
    # The SDK logs tool errors, which hold window titles: only its warnings, and only into our file. A root
    # handler also keeps the SDK's constructor from adding one that writes to stderr.
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    for handler in handlers or [logging.NullHandler()]:
        root.addHandler(handler)

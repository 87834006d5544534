"""The log file, a command's debug lines, and the Keynote agent's log."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path

from .errors import PeekabooError, file_errors
from .settings import settings, without_secrets
from .text import encodable, on_one_line

# pino's names, which the specification uses
_LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
}
_NAMES = {logging.WARNING: "warn", logging.CRITICAL: "fatal"}
_ROTATE_BYTES = 5_000_000

_logger = logging.getLogger("peekaboo_min")
_logger.setLevel(logging.DEBUG)
_logger.addHandler(logging.NullHandler())  # or Python prints warnings where nobody collects them
log_debug, log_info, log_warning, log_error = _logger.debug, _logger.info, _logger.warning, _logger.error


class LogSafe(str):
    """An argument of a program that may be logged as it is: a flag or a subcommand, nothing from outside."""


def log_safe(*arguments: str) -> list[str]:
    return list(map(LogSafe, arguments))


def loggable_arguments(arguments: Sequence[str]) -> list[str]:
    """Safe arguments as they are; of all others, such as typed text, only the lengths."""
    return [each if isinstance(each, LogSafe) else f"<{len(each)} characters>" for each in arguments]


def _loggable(text: str) -> str:
    return encodable(without_secrets(text))


class _Lines(logging.Handler):
    """Collects the texts of what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(_loggable(record.getMessage()))


@contextmanager
def collected_debug_lines() -> Iterator[list[str]]:
    """The list that what is logged while the block runs goes into, too."""
    handler = _Lines()
    _logger.addHandler(handler)
    try:
        yield handler.lines
    finally:
        _logger.removeHandler(handler)


class _JsonLines(logging.Formatter):
    """time, level, pid, msg; and stack for a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": _NAMES.get(record.levelno, record.levelname.lower()),
            "pid": os.getpid(),
            "msg": _loggable(record.getMessage()),
        }
        if record.exc_info:
            entry["stack"] = _loggable(self.formatException(record.exc_info))
        return json.dumps(entry, ensure_ascii=False)


class _LogFile(logging.FileHandler):  # logging.handlers costs every command 5 ms
    """A file of this user's own, which servers share; a full one is kept as `PATH.1`.

    Raises OSError, at first, for a file that is not to be written to.
    """

    def _open(self) -> TextIOWrapper:
        # without O_NONBLOCK a pipe without a reader would block us here
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        stream = os.fdopen(os.open(self.baseFilename, flags, 0o600), "a", encoding="utf-8")
        status = os.fstat(stream.fileno())
        problem = ""
        if not stat.S_ISREG(status.st_mode):
            problem = "it is not a regular file"
        elif status.st_uid != os.getuid():
            problem = "it belongs to another user"
        elif status.st_nlink != 1:
            problem = "it has another name elsewhere (a hard link)"
        if problem:
            stream.close()
            raise OSError(errno.EPERM, problem)
        os.fchmod(stream.fileno(), 0o600)
        return stream

    def emit(self, record: logging.LogRecord) -> None:
        try:
            path = self.baseFilename
            if self.stream is None:  # it is closed: we are ending
                return
            if os.path.exists(path) and os.path.getsize(path) > _ROTATE_BYTES:
                os.replace(path, f"{path}.1")
            is_moved = not os.path.exists(path) or not os.path.samestat(
                os.stat(path), os.fstat(self.stream.fileno())
            )
            if is_moved:
                self.stream.close()
                self.stream = self._open()
            super().emit(record)
        except (OSError, ValueError):  # ValueError: it was closed, and could not be opened anew
            self.handleError(record)


def start_log_file(path: Path, level: str, also_console: bool) -> None:
    """Log to `path` as JSON lines, with what the SDK warns of; an unknown level means info.

    The default path is a name that others can guess in a shared folder: only a regular file of ours is
    written to, no link, pipe or file of another user, and nobody else may read it (0600). What cannot be
    opened is reported on stderr, and the server runs without a log.
    """
    logging.raiseExceptions = False  # a full disk or a closed stderr stops the log, not the server
    handlers: list[logging.Handler] = []
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(_LogFile(path, encoding="utf-8"))
    except (OSError, ValueError) as e:  # ValueError: a NUL in the path
        reason = getattr(e, "strerror", None) or e
        print(f"peekaboo-min: no log: cannot write {path}: {reason}; set PEEKABOO_LOG_FILE", file=sys.stderr)
    if also_console:
        handlers.append(logging.StreamHandler(sys.stderr))
    for handler in handlers or [logging.NullHandler()]:
        handler.setLevel(_LEVELS.get(level.lower(), logging.INFO))
        handler.setFormatter(_JsonLines())
        # a root handler also keeps the SDK's constructor from adding one that writes to stderr, and gets only
        # warnings of the SDK: it logs tool errors, which hold window titles
        logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.WARNING)


def log_for_agent(source: str, text: str) -> None:
    """Log what a Keynote tool did: in the server's log, and in PEEKABOO_AGENT_LOG, which the agent sets."""
    log_info(f"[{source}] {text}")
    if settings().agent_log:
        try:
            write_agent_line(Path(settings().agent_log), source, text)
        except PeekabooError as e:
            log_warning(e.sentence())  # what was drawn is drawn: that must not be reported as a failure


def write_agent_line(path: Path, source: str, text: str) -> None:
    """Write `[UTC][source] text` as one line of the log at `path`. Raises FILE_IO_ERROR.

    Client and server write into the same file, so that it shows who did what. No key of the settings is
    written.
    """
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    # a model's reply must not look like a line of ours
    line = on_one_line(without_secrets(f"[{now}][{source}] {text}"))
    with file_errors(path), open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as f:
        f.write(line.encode("utf-8") + b"\n")

"""The logs of server, commands and Keynote agent; files opened safely."""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import PeekabooError, file_errors
from .settings import LOG_LEVELS, settings, without_secrets
from .text import encodable, one_line

_LEVEL_NAMES = {number: name for name, number in LOG_LEVELS.items()}
_NOT_OWN = "it is not a regular file that you own, or it has hard links"
OLDER_LOGS = (".1", ".2")  # suffixes of a log's older files, newest first

_logger = logging.getLogger("peekaboo_min")
_logger.setLevel(logging.DEBUG)
_logger.addHandler(logging.NullHandler())  # without a handler, Python prints warnings to stderr
log_debug, log_info, log_warning, log_error = _logger.debug, _logger.info, _logger.warning, _logger.error


def open_own_file(path: Path, flags: int) -> int:
    """Open a regular file of this user, make it private (0600), and return its descriptor. Raises OSError.

    Refuses symbolic and hard links, pipes, devices and files of other users. With O_CREAT, create the file.
    """
    try:
        # without O_NONBLOCK, opening a pipe blocks until another process opens its other end
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as e:
        if e.errno in (errno.ELOOP, errno.ENXIO):  # a link; a pipe without a reader
            raise OSError(errno.EPERM, _NOT_OWN) from e
        raise
    status = os.fstat(descriptor)
    # a file that another process has just deleted has no link at all
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_nlink > 1:
        os.close(descriptor)
        raise OSError(errno.EPERM, _NOT_OWN)
    os.fchmod(descriptor, 0o600)
    return descriptor


def append_line(path: Path, line: str) -> None:
    """Append a line to a log of this user; at 5 MB, rotate it, and keep two older. Raises FILE_IO_ERROR."""
    data = f"{encodable(line)}\n".encode()
    with file_errors(path):
        descriptor = open_own_file(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        # unbuffered: a line is one write, so that lines of several processes do not mix
        with open(descriptor, "ab", buffering=0) as f:
            while data:  # a signal may cut a write short
                data = data[f.write(data) :]
            if os.fstat(descriptor).st_size >= 5_000_000:
                _rotate(path, descriptor)


def _rotate(path: Path, descriptor: int) -> None:
    names = [path, *(path.with_name(path.name + suffix) for suffix in OLDER_LOGS)]
    with suppress(BlockingIOError, FileNotFoundError):  # another process rotates
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(path.stat(), os.fstat(descriptor)):  # else another process has rotated
            for name, older in reversed([*zip(names, names[1:])]):
                with suppress(FileNotFoundError):  # fewer older files yet
                    os.replace(name, older)


def _loggable(text: str) -> str:
    return encodable(without_secrets(text))


@contextmanager
def collected_debug_lines() -> Iterator[list[str]]:
    """Collect the log messages of the block in the list that it yields."""
    lines: list[str] = []

    def collect(record: logging.LogRecord) -> bool:
        lines.append(_loggable(record.getMessage()))
        return True

    _logger.addFilter(collect)
    try:
        yield lines
    finally:
        _logger.removeFilter(collect)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": _LEVEL_NAMES.get(record.levelno, record.levelname.lower()),
            "pid": os.getpid(),
            "msg": _loggable(record.getMessage()),
        }
        if record.exc_info:
            entry["stack"] = _loggable(self.formatException(record.exc_info))
        return json.dumps(entry, ensure_ascii=False)


class _LogFile(logging.Handler):
    """A log that several servers share. RotatingFileHandler follows links and expects one process."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def emit(self, record: logging.LogRecord) -> None:
        try:
            append_line(self._path, self.format(record))
        except PeekabooError:
            self.handleError(record)


def start_log_file(path: Path, level: str, also_console: bool) -> None:
    """Log JSON lines to `path` (unknown level: info); if it cannot be opened, report it on stderr."""
    logging.raiseExceptions = False  # on a full disk it would print each message, secrets included
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)] if also_console else []
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(open_own_file(path, os.O_WRONLY | os.O_CREAT))
        handlers.append(_LogFile(path))
    except OSError as e:
        problem = f"no log: cannot write {path}: {e.strerror}"
        print(f"peekaboo-min: {problem}; set PEEKABOO_LOG_FILE", file=sys.stderr)
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    # Without a root handler, the SDK's constructor adds one that writes to stderr. Log only the SDK's
    # warnings: its lines about tool errors contain window titles.
    for handler in handlers or [logging.NullHandler()]:
        handler.setLevel(LOG_LEVELS.get(level.lower(), logging.INFO))
        handler.setFormatter(_JsonLines())
        root.addHandler(handler)


def log_for_agent(labels: str, text: str) -> None:
    """Log the act of a Keynote tool in the server's log, and in PEEKABOO_AGENT_LOG if the agent set it."""
    log_info(f"{labels} {text}")
    if settings().agent_log:
        try:
            write_agent_line(Path(settings().agent_log), labels, text)
        except PeekabooError as e:
            log_warning(e.sentence())  # the drawing succeeded: do not report a failure


def write_agent_line(path: Path, labels: str, text: str) -> None:
    """Append `[UTC][label]... text` to the Keynote agent's log, without keys. Raises FILE_IO_ERROR.

    labels: in brackets, such as `[client][run_id=1f]`. Client and server share the file, to show their order.
    """
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    # one line, so that a model's reply cannot imitate another entry
    append_line(path, one_line(without_secrets(f"[{now}]{labels} {text}")[:100_000]))

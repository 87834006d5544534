"""The log file, a command's debug lines, and the Keynote agent's log."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from .errors import PeekabooError, file_errors
from .settings import settings, without_secrets
from .text import clean_text, encodable

# pino's names, which the specification uses; the last name of a number is the one that is written
_LEVELS = {"trace": 10, "debug": 10, "info": 20, "warning": 30, "warn": 30, "error": 40, "fatal": 50}
_NAMES = {number: name for name, number in _LEVELS.items()}
_LONGEST_LINE = 100_000  # characters

_logger = logging.getLogger("peekaboo_min")
_logger.setLevel(logging.DEBUG)
_logger.addHandler(logging.NullHandler())  # or Python prints warnings where nobody collects them
log_debug, log_info, log_warning, log_error = _logger.debug, _logger.info, _logger.warning, _logger.error


def _loggable(text: str) -> str:
    return encodable(without_secrets(text))


@contextmanager
def collected_debug_lines() -> Iterator[list[str]]:
    """The list that what is logged while the block runs goes into, too."""
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


def _open_log(path: Path) -> TextIO:
    """A file of this user's own, which servers share. Raises OSError.

    The default path is a name that others can guess in a shared folder: only a regular file of ours is
    written to, no link, pipe or file of another user, and nobody else may read it (0600).
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # without O_NONBLOCK a pipe without a reader would block us here
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    stream = open(os.open(path, flags, 0o600), "a", encoding="utf-8")  # noqa: SIM115 - until we end
    status = os.fstat(stream.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_nlink != 1:
        stream.close()
        raise OSError(errno.EPERM, "it is not a regular file of yours with one name")
    os.fchmod(stream.fileno(), 0o600)
    return stream


def start_log_file(path: Path, level: str, also_console: bool) -> None:
    """Log to `path` as JSON lines, with what the SDK warns of; an unknown level means info.

    What cannot be opened is reported on stderr, and the server runs without a log.
    """
    logging.raiseExceptions = False  # a full disk: it would print each message with its secrets, and a stack
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)] if also_console else []
    try:
        handlers.append(logging.StreamHandler(_open_log(path)))
    except OSError as e:
        problem = f"no log: cannot write {path}: {e.strerror}"
        print(f"peekaboo-min: {problem}; set PEEKABOO_LOG_FILE", file=sys.stderr)
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    # a root handler also keeps the SDK's constructor from adding one that writes to stderr, and gets only
    # warnings of the SDK: it logs tool errors, which hold window titles
    for handler in handlers or [logging.NullHandler()]:
        handler.setLevel(_LEVELS.get(level.lower(), logging.INFO))
        handler.setFormatter(_JsonLines())
        root.addHandler(handler)


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
    line = clean_text(without_secrets(f"[{now}][{source}] {text}"), _LONGEST_LINE)
    with file_errors(path), open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as f:
        f.write(line.encode("utf-8") + b"\n")

"""The log file, a command's debug lines, and the Keynote agent's log."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Callable

from .errors import PeekabooError, file_errors
from .settings import settings, without_secrets
from .text import encodable, on_one_line

# pino's names, which the specification uses, from the least to the most severe
_LEVELS = ("trace", "debug", "info", "warn", "error", "fatal")
_ROTATE_BYTES = 5_000_000

# What gets every line: its level, its text, and a traceback or "". Python's logging costs every start 5 ms.
_sinks: list[Callable[[str, str, str], None]] = []


def log_debug(text: str) -> None:
    _log("debug", text)


def log_info(text: str) -> None:
    _log("info", text)


def log_warning(text: str) -> None:
    _log("warn", text)


def log_error(text: str, with_traceback: bool = False) -> None:
    stack = ""
    if with_traceback:
        from traceback import format_exc

        stack = format_exc()
    _log("error", text, stack)


def _log(level: str, text: str, stack: str = "") -> None:
    if not _sinks:
        return
    text, stack = encodable(without_secrets(text)), encodable(without_secrets(stack))
    for sink in _sinks:
        sink(level, text, stack)


class LogSafe(str):
    """An argument of a program that may be logged as it is: a flag or a subcommand, nothing from outside."""


def log_safe(*arguments: str) -> list[str]:
    return list(map(LogSafe, arguments))


def loggable_arguments(arguments: Sequence[str]) -> list[str]:
    """Safe arguments as they are; of all others, such as typed text, only the lengths."""
    return [each if isinstance(each, LogSafe) else f"<{len(each)} characters>" for each in arguments]


def collect_debug_lines() -> list[str]:
    """The list into which every later log line of this process goes, too."""
    lines: list[str] = []
    _sinks.append(lambda _level, text, _stack: lines.append(text))
    return lines


def _open_own_file(path: str) -> int:
    """A descriptor to append to a regular file of this user's own. Raises OSError for any other."""
    # without O_NONBLOCK a pipe without a reader would block us here
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


class _LogFile:
    """A file of ours that grows by lines; a full one is kept as `PATH.1`."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = str(path)
        self._lock = threading.RLock()  # a signal's handler logs as well, in the thread that holds it perhaps
        self._descriptor = _open_own_file(self._path)

    def write(self, line: str) -> None:
        with self._lock:
            found = os.fstat(self._descriptor)
            if found.st_size > _ROTATE_BYTES:
                # servers share the file: only the first that finds it full moves it, the others reopen it
                with suppress(FileNotFoundError):
                    if os.path.samestat(found, os.stat(self._path)):
                        os.replace(self._path, f"{self._path}.1")
                fresh = _open_own_file(self._path)
                os.dup2(fresh, self._descriptor, inheritable=False)
                os.close(fresh)
            os.write(self._descriptor, line.encode("utf-8"))


def start_log_file(path: Path, level: str, also_console: bool) -> None:
    """Log to `path` as JSON lines; an unknown level means info.

    The default path is a name that others can guess in a shared folder: only a regular file of ours is
    written to, no link, pipe or file of another user, and nobody else may read it (0600). What cannot be
    opened is reported on stderr, and the server runs without a log.
    """
    asked = level.lower().replace("warning", "warn")
    logged = _LEVELS[_LEVELS.index(asked if asked in _LEVELS else "info") :]
    outputs: list[Callable[[str], object]] = []
    try:
        outputs.append(_LogFile(path).write)
    except (OSError, ValueError) as e:  # ValueError: a NUL in the path
        reason = getattr(e, "strerror", None) or e
        print(f"peekaboo-min: no log: cannot write {path}: {reason}; set PEEKABOO_LOG_FILE", file=sys.stderr)
    if also_console:
        outputs.append(sys.stderr.write)

    def write(level: str, text: str, stack: str) -> None:
        if level in logged:
            now = time.time()
            moment = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now % 1 * 1000):03d}Z"
            entry = {"time": moment, "level": level, "pid": os.getpid(), "msg": text}
            line = json.dumps({**entry, "stack": stack} if stack else entry, ensure_ascii=False)
            for output in outputs:
                with suppress(OSError):  # a full disk or a closed stderr stops the log, not the server
                    output(line + "\n")

    _sinks.append(write)
    _log_what_the_sdk_warns_of()


def _log_what_the_sdk_warns_of() -> None:
    """The SDK logs tool errors, which hold window titles: only its warnings, and only into our file."""
    import logging

    class Relay(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            stack = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
            _log("warn" if record.levelno == logging.WARNING else "error", record.getMessage(), stack)

    # a root handler also keeps the SDK's constructor from adding one that writes to stderr
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger().addHandler(Relay())


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

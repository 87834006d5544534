"""Compile input.swift before it is needed, and find the result."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Optional

from ...core.errors import ErrorCode, PeekabooError, file_errors
from ...core.log import log_debug
from ...system.files import file_lock, state_folder, write_privately
from ...system.process import run_program
from ...system.programs import native_source

_SOURCE = "desktop/macos/input.swift"
_PROGRAM, _FAILURE = "peekaboo-input", "failure.txt"
_COMPILE_S = 120.0  # the first compilation also builds the SDK's module cache
_ANSWER_S = 10.0  # for programs that answer at once unless they hang
_EMPTY_REQUEST = b'{"window": null, "stop_file": "", "steps": []}'


def find_helper() -> Optional[Path]:
    """Return the helper compiled from exactly this source; None if there is none: then JXA posts events."""
    helper = _cached_file(_PROGRAM)
    if not os.access(helper, os.X_OK):
        return None
    system_started = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)
    if helper.stat().st_mtime < system_started:  # after a restart, endpoint security may kill it
        try:
            run_program([str(helper)], timeout_s=_ANSWER_S, stdin=_EMPTY_REQUEST)
        except PeekabooError as e:
            if e.code is ErrorCode.CANCELLED:
                raise
            drop_helper(f"{e.message} {e.details}")
            return None
        os.utime(helper)
    return helper


def drop_helper(reason: str) -> None:
    """Delete the helper and record why, so that JXA posts the events until the next compilation."""
    _cached_file(_PROGRAM).unlink(missing_ok=True)
    write_privately(_cached_file(_FAILURE), reason.strip()[:500])


def last_failure() -> str:
    """Return why there is no helper of this source; empty if nothing failed."""
    failure = _cached_file(_FAILURE)
    return failure.read_text(encoding="utf-8") if failure.is_file() else ""


def build_in_background() -> None:
    """Compile the helper in a thread if it is missing; for processes that keep running."""

    def build() -> None:
        with suppress(PeekabooError):
            build_helper()

    threading.Thread(target=build, name="swift-helper", daemon=True).start()


def build_helper(is_forced: bool = False) -> None:
    """Compile the helper if it is missing; if is_forced, compile in any case.

    Record a failure, such as a missing compiler, and retry after a day; do not record a timeout, because the
    first compilation may just be slow.
    Raises CANCELLED, FILE_IO_ERROR, and TIMEOUT if another process compiles at the same time.
    """
    with file_lock("helper.lock", _COMPILE_S if is_forced else 0.0, "the Swift compiler"):
        failure = _cached_file(_FAILURE)
        failed_lately = failure.exists() and time.time() - failure.stat().st_mtime < 24 * 3600
        if not is_forced and (failed_lately or find_helper()):
            return
        try:
            _compile()
        except PeekabooError as e:
            if e.code in (ErrorCode.CANCELLED, ErrorCode.FILE_IO_ERROR):
                raise  # not a failure of the compiler
            log_debug(f"no Swift helper: {e.message} {e.details}")
            if e.code is not ErrorCode.TIMEOUT:
                drop_helper(f"{e.message} {e.details}")


def _compile() -> None:
    # Compile to another name and rename: no process may run an unfinished program, and macOS kills a signed
    # program that is overwritten in place.
    source, fresh = _cached_file("input.swift"), _cached_file(f"{_PROGRAM}.new")
    with file_errors(source.parent):
        source.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _cached_file(_PROGRAM).unlink(missing_ok=True)
        _cached_file(_FAILURE).unlink(missing_ok=True)
        source.write_text(native_source(_SOURCE), encoding="utf-8")
    # Without the Command Line Tools, xcrun only opens a dialog; this fails first, with exit code 2.
    run_program(["xcode-select", "-p"], timeout_s=_ANSWER_S)
    # xcrun sets SDKROOT; without it, the compiler finds no SDK
    argv = ["xcrun", "--sdk", "macosx", "swiftc", "-O", "-swift-version", "5", str(source), "-o", str(fresh)]
    run_program(argv, timeout_s=_COMPILE_S)
    fresh.chmod(0o700)
    # endpoint security may kill an unsigned program; then JXA is used
    run_program([str(fresh)], timeout_s=_ANSWER_S, stdin=_EMPTY_REQUEST)
    fresh.replace(_cached_file(_PROGRAM))


def _cached_file(name: str) -> Path:
    # in a folder named after the source, so that another version has its own helper
    digest = hashlib.sha256(native_source(_SOURCE).encode()).hexdigest()
    return state_folder() / "helper" / digest[:16] / name

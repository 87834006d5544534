"""Compile input.swift ahead of time, and find what was compiled."""

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
_COMPILE_S = 120.0  # a first compilation builds the SDK's module cache too
_ASK_S = 10.0
_PROBE = b'{"window": null, "stop_file": "", "steps": []}'
_RETRY_AFTER_S = 24 * 3600


def find_helper() -> Optional[Path]:
    """The helper that was compiled of exactly this source; None where there is none (yet): then JXA acts."""
    helper = _file(_PROGRAM)
    if not os.access(helper, os.X_OK):
        return None
    system_started = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)
    if helper.stat().st_mtime < system_started:  # since then endpoint security may have learnt of it
        try:
            run_program([str(helper)], timeout_s=_ASK_S, stdin=_PROBE)
        except PeekabooError as e:
            if e.code is ErrorCode.CANCELLED:
                raise
            drop_helper(f"{e.message} {e.details}")
            return None
        os.utime(helper)
    return helper


def drop_helper(reason: str) -> None:
    """Note that the helper does not live, so that JXA acts until it is compiled again."""
    _file(_PROGRAM).unlink(missing_ok=True)
    write_privately(_file(_FAILURE), reason.strip()[:500])


def last_failure() -> str:
    """Why the last compilation of this source made no helper; empty where nothing is known."""
    return _file(_FAILURE).read_text(encoding="utf-8") if _file(_FAILURE).is_file() else ""


def build_in_background() -> None:
    """Compile in a thread where that is needed; for a process that stays."""

    def build() -> None:
        with suppress(PeekabooError):
            build_helper()

    threading.Thread(target=build, name="swift-helper", daemon=True).start()


def build_helper(is_forced: bool = False) -> None:
    """Compile where there is no helper. A failure is noted and tried again after a day; one that ran out of
    time is not noted, because a cold compiler may need a minute. is_forced: compile anyway.

    Raises CANCELLED, FILE_IO_ERROR, and TIMEOUT while another process compiles. A missing compiler is a
    failure, not an error.
    """
    with file_lock("helper.lock", _COMPILE_S if is_forced else 0.0, "the Swift compiler"):
        failure = _file(_FAILURE)
        has_failed = failure.exists() and time.time() - failure.stat().st_mtime < _RETRY_AFTER_S
        if not is_forced and (has_failed or find_helper()):
            return
        try:
            _compile()
        except PeekabooError as e:
            if e.code in (ErrorCode.CANCELLED, ErrorCode.FILE_IO_ERROR):
                raise  # it says nothing about the compiler
            log_debug(f"no Swift helper: {e.message} {e.details}")
            if e.code is not ErrorCode.TIMEOUT:
                drop_helper(f"{e.message} {e.details}")


def _compile() -> None:
    # nobody may find an unfinished program, and macOS kills a signed one that is overwritten in place
    source, fresh = _file("input.swift"), _file(f"{_PROGRAM}.new")
    with file_errors(source.parent):
        source.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _file(_PROGRAM).unlink(missing_ok=True)
        _file(_FAILURE).unlink(missing_ok=True)
        source.write_text(native_source(_SOURCE), encoding="utf-8")
    # without the Command Line Tools xcrun is a shim that opens a dialog; this question is safe (exit 2)
    run_program(["xcode-select", "-p"], timeout_s=_ASK_S)
    # xcrun sets SDKROOT for the compiler, which finds no SDK when it is run by its own path
    argv = ["xcrun", "--sdk", "macosx", "swiftc", "-O", "-swift-version", "5", str(source), "-o", str(fresh)]
    run_program(argv, timeout_s=_COMPILE_S)
    fresh.chmod(0o700)
    # endpoint security may kill what nobody signed: then JXA has to act
    run_program([str(fresh)], timeout_s=_ASK_S, stdin=_PROBE)
    fresh.replace(_file(_PROGRAM))


def _file(name: str) -> Path:
    """A file in the folder of exactly this source."""
    digest = hashlib.sha256(native_source(_SOURCE).encode()).hexdigest()
    return state_folder() / "helper" / digest[:16] / name

"""Compile input.swift ahead of time, and find what was compiled."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from pathlib import Path
from typing import NamedTuple, Optional

from ...core.errors import ErrorCode, PeekabooError, file_errors
from ...core.log import log_debug
from ...core.models import as_plain
from ...system.files import file_lock, state_folder, write_privately
from ...system.process import run_program
from ...system.programs import native_source

_SOURCE = "desktop/macos/input.swift"
_COMPILE_S = 120.0  # a first compilation builds the SDK's module cache too
_ASK_S = 10.0
_PROBE = b'{"window": null, "stop_file": "", "steps": [{"do": "access"}]}'
_RETRY_AFTER_S = 24 * 3600
# xcrun sets SDKROOT for the compiler, which finds no SDK when it is run by its own path
_COMPILER = ("xcrun", "--sdk", "macosx", "swiftc")


class Built(NamedTuple):
    """The outcome of compiling: the path of a program, or the reason why there is none."""

    source_digest: str
    compiler: str
    """Its version line; empty where there is no compiler."""
    path: str
    reason: str
    built_at: float
    """Seconds since 1970."""


def find_helper() -> Optional[Path]:
    """The compiled helper; None where there is none (yet): then JXA acts. Never compiles.

    A helper of another source, or one that was deleted from the cache, does not count.
    """
    known = last_build()
    return Path(known.path) if known and known.path and os.access(known.path, os.X_OK) else None


def last_build() -> Optional[Built]:
    """The outcome of the last compilation of exactly this source; None when there was none."""
    try:
        built = Built(**json.loads(_manifest().read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return built if built.source_digest == _source_digest() else None


def build_in_background() -> None:
    """Compile in a thread unless that was done, with this compiler; for a process that stays."""
    threading.Thread(target=_build_quietly, name="swift-helper", daemon=True).start()


def _build_quietly() -> None:
    try:
        build_helper()
    except PeekabooError as e:
        log_debug(f"the Swift helper was not compiled: {e.message}")


def build_helper(is_forced: bool = False) -> Built:
    """Compile where that is needed, and remember the outcome.

    It is needed for a new source, a new compiler or a lost program. A failure is tried again after a day;
    one that ran out of time is not remembered, because a cold compiler may need a minute.
    is_forced: compile anyway.
    Raises CANCELLED, FILE_IO_ERROR, and TIMEOUT while another process compiles. A missing compiler is an
    outcome, not an error.
    """
    with file_lock("helper.lock", _COMPILE_S if is_forced else 0.0, "the Swift compiler"):
        compiler, path, reason = "", "", ""
        try:
            compiler = _compiler_version()
            known = last_build()
            if known and not is_forced and _is_current(known, compiler):
                return known
            path = str(_compile(compiler))
        except PeekabooError as e:
            if e.code is ErrorCode.CANCELLED:
                raise  # it says nothing about the compiler
            reason = f"{e.message} {e.details}".strip()[:500]
            log_debug(f"no Swift helper: {reason}")
            if e.code is ErrorCode.TIMEOUT:
                return Built(_source_digest(), compiler, "", reason, time.time())
        built = Built(_source_digest(), compiler, path, reason, time.time())
        write_privately(_manifest(), json.dumps(as_plain(built)))
        return built


def _is_current(known: Built, compiler: str) -> bool:
    if known.compiler != compiler:
        return False
    if known.path:
        return os.access(known.path, os.X_OK)
    return time.time() - known.built_at < _RETRY_AFTER_S


def _compiler_version() -> str:
    # without the Command Line Tools xcrun is a shim that opens a dialog; this question is safe (exit 2)
    run_program(["xcode-select", "-p"], timeout_s=_ASK_S)
    return run_program([*_COMPILER, "--version"], timeout_s=_ASK_S).text.strip().split("\n")[0]


def _compile(compiler: str) -> Path:
    key = hashlib.sha256(f"{native_source(_SOURCE)}\0{compiler}".encode()).hexdigest()[:16]
    folder = _helper_folder() / key
    source, target = folder / "input.swift", folder / "peekaboo-input"
    with file_errors(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        source.write_text(native_source(_SOURCE), encoding="utf-8")
        # nobody may find an unfinished program, and macOS kills a signed one that is overwritten in place
        _manifest().unlink(missing_ok=True)
        target.unlink(missing_ok=True)
    options = ["-O", "-swift-version", "5", str(source), "-o", str(target)]
    run_program([*_COMPILER, *options], timeout_s=_COMPILE_S)
    target.chmod(0o700)
    # endpoint security may kill what nobody signed: then JXA has to act
    run_program([str(target)], timeout_s=_ASK_S, stdin=_PROBE)
    return target


def _source_digest() -> str:
    return hashlib.sha256(native_source(_SOURCE).encode()).hexdigest()


def _helper_folder() -> Path:
    return state_folder() / "helper"


def _manifest() -> Path:
    return _helper_folder() / "built.json"

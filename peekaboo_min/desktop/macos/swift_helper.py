"""Compile input.swift once, keep it, find it again."""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Optional

from ...core.errors import ErrorCode, PeekabooError
from ...core.log import log_debug
from ...core.settings import settings
from ...system.files import write_privately
from ...system.process import run_program
from ...system.resources import native_source

_SOURCE = "desktop/macos/input.swift"
_COMPILE_S = 20.0
_ASK_S = 5.0
_RETRY_AFTER_S = 24 * 3600


@dataclass(frozen=True)
class Built:
    """What came of compiling: a program's path, or the reason why there is none."""

    source_digest: str
    compiler: str
    path: str
    reason: str
    built_at: float
    """Seconds since 1970."""


def find_helper() -> Optional[Path]:
    """The compiled helper, compiled now when that was not tried yet; None when this machine cannot.

    A failure is remembered for a day, so that no act waits for the compiler twice.
    """
    known = last_build()
    if known and known.path and os.access(known.path, os.X_OK):
        return Path(known.path)
    if known and not known.path and time.time() - known.built_at < _RETRY_AFTER_S:
        return None
    built = build_helper()
    return Path(built.path) if built.path else None


def last_build() -> Optional[Built]:
    """What came of the last compilation of this very source; None when there was none."""
    try:
        built = Built(**json.loads(_manifest().read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return built if built.source_digest == _source_digest() else None


def build_helper(is_forced: bool = False) -> Built:
    """Compile, and remember how it went. Never raises for a machine that has no compiler; CANCELLED passes.

    is_forced: also when there is a compiled one.
    """
    compiler, path, reason = "", "", ""
    try:
        swiftc = _find_compiler()
        compiler = run_program([swiftc, "--version"], timeout_s=_ASK_S).text.strip().split("\n")[0]
        path = str(_compile(swiftc, compiler, is_forced))
    except PeekabooError as e:
        if e.code is ErrorCode.CANCELLED:
            raise  # it says nothing of the compiler
        reason = f"{e.message} {e.details}".strip()[:500]
        log_debug(f"no Swift helper: {reason}")
    built = Built(_source_digest(), compiler, path, reason, time.time())
    write_privately(_manifest(), json.dumps(asdict(built)))
    return built


def _find_compiler() -> str:
    # Without the Command Line Tools /usr/bin/swiftc is a shim that opens a dialog: it is never called by name. This
    # question is safe (exit 2 when there are no tools), and xcrun only answers where the real compiler is.
    run_program(["xcode-select", "-p"], timeout_s=_ASK_S)
    return run_program(["xcrun", "--find", "swiftc"], timeout_s=_ASK_S).text.strip()


def _compile(swiftc: str, compiler: str, is_forced: bool) -> Path:
    key = hashlib.sha256(f"{native_source(_SOURCE)}\0{compiler}".encode()).hexdigest()[:16]
    folder = _helper_folder() / key
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    source, target = folder / "input.swift", folder / "peekaboo-input"
    if target.exists() and not is_forced:
        return target
    source.write_text(native_source(_SOURCE), encoding="utf-8")
    fresh = folder / f"peekaboo-input-{os.urandom(4).hex()}"  # two processes may compile at once
    run_program([swiftc, "-O", "-swift-version", "5", str(source), "-o", str(fresh)], timeout_s=_COMPILE_S)
    os.replace(fresh, target)
    target.chmod(0o700)
    return target


def _source_digest() -> str:
    return hashlib.sha256(native_source(_SOURCE).encode()).hexdigest()


def _helper_folder() -> Path:
    return settings().mac_state_folder / "helper"


def _manifest() -> Path:
    return _helper_folder() / "built.json"

"""Serve MCP on stdio: start, log, sweep, end."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import Any, BinaryIO

from .. import __version__
from ..core.errors import PeekabooError
from ..core.log import log_error, log_info, log_warning, start_log_file
from ..core.settings import ignored_variables, settings
from ..core.text import parsed_json
from ..desktop.select import this_desktop
from ..integrations.keynote import keep_deck_in_memory
from ..system.ending import call_exit_hooks, end_cleanly_on_signals
from ..system.files import log_file, sweep
from ..system.programs import mcp_version, native_source
from ..tools.status import SERVER_NAME
from ..tools.table import offered_tools


def serve() -> int:
    """Serve MCP on stdio; return the exit code."""
    # exit 0 on SIGINT and SIGTERM is the specification's shutdown
    end_cleanly_on_signals({signal.SIGINT: 0, signal.SIGTERM: 0})
    if sys.stdin is None or sys.stdout is None:
        print("peekaboo-min: stdin or stdout is closed; an MCP client must keep both open", file=sys.stderr)
        return 1
    if sys.stdin.isatty():
        hint = "serves MCP on stdio and waits for a client; for commands see peekaboo-min --help"
        print(f"peekaboo-min {hint}", file=sys.stderr)
    try:
        mcp_version()
        current = settings()
        start_log_file(log_file(), current.log_level, current.logs_to_console)
        instructions = _instructions(has_provider=bool(current.ai_providers))
        _answer_discover_early(instructions)
        from .server import PeekabooServer  # importing the package mcp takes 0.7 s

        server = PeekabooServer(instructions)
    except PeekabooError as e:
        print(f"peekaboo-min: {e.sentence()}", file=sys.stderr)
        return e.code.exit_code
    keep_deck_in_memory()
    log_info(f"{SERVER_NAME} {__version__} serves")
    for name, problem in ignored_variables().items():
        log_warning(f"{name}: {problem}")
        print(f"peekaboo-min: {name}: {problem}", file=sys.stderr)
    if not current.is_read_only:
        this_desktop().prepare(in_background=True)
    threading.Thread(target=_sweep_regularly, daemon=True).start()
    try:
        server.run("stdio")
    finally:
        call_exit_hooks()  # a call that is still running restores the clipboard in its hook
        log_info("stdin ended")
    return 0


def _instructions(has_provider: bool) -> str:
    # clients that defer tools show a model only the tools' names and this text (Codex: its first line)
    act, look_only, common, no_provider = native_source("frontends/instructions.md").rstrip().split("\n---\n")
    can_act = any(row.effect.is_act for row in offered_tools())
    return "\n".join([act if can_act else look_only, common, *([] if has_provider else [no_provider])])


def _answer_discover_early(instructions: str) -> None:
    """Answer `server/discover` while the SDK is imported, which may take longer than @ai-sdk/mcp waits (1 s).

    Hide that request from the SDK, which would refuse an `initialize` after it.
    """
    reader, writer = os.pipe()
    streams = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"), os.fdopen(writer, "wb")
    os.dup2(reader, 0)
    os.close(reader)
    resources = {"listChanged": False, "subscribe": False}
    discovery = {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": False}, "resources": resources},
        "instructions": instructions,
        "ttlMs": 300_000,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": SERVER_NAME, "version": __version__}},
    }
    threading.Thread(target=_relay, args=(*streams, discovery), daemon=True).start()


def _relay(stdin: BinaryIO, stdout: BinaryIO, sdk: BinaryIO, discovery: dict[str, Any]) -> None:
    """Copy stdin to the SDK. Answer `server/discover` here until another request arrives."""
    is_start = True
    with stdin, stdout, sdk:
        for line in stdin:
            stream = sdk
            is_start = is_start and b'"server/discover"' in line and b'"2026-07-28"' in line
            if is_start:
                with suppress(ValueError, LookupError, TypeError):  # the SDK reports it
                    reply = {"jsonrpc": "2.0", "id": parsed_json(line)["id"], "result": discovery}
                    stream, line = stdout, json.dumps(reply).encode() + b"\n"
            stream.write(line)
            stream.flush()


def _sweep_regularly() -> None:
    """Delete expired images at the server's start, then every minute, or more often if they expire sooner."""
    while True:
        try:
            sweep()
        except PeekabooError as e:
            log_error(f"expired files could not be deleted: {e.message}")
        time.sleep(min(60, settings().ttl_seconds or 60))

"""Transcripts of commands on a desktop in memory; see support/transcripts.py. And the lock of all acts."""

from __future__ import annotations

from contextvars import copy_context
from pathlib import Path

import pytest
from scripted import ScriptedDesktop
from transcripts import GROUPS, Player, sections
from worlds import Program

from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.system.files import file_lock

SECTIONS = sections()


@pytest.mark.parametrize("title", SECTIONS)
def test_commands_do_what_the_transcript_shows(
    desk: ScriptedDesktop, shell: Program, tmp_path: Path, title: str
) -> None:
    played = Player(desk, shell, tmp_path).play(SECTIONS[title])
    assert "\n".join(played) == "\n".join(SECTIONS[title])


@pytest.mark.parametrize(("held_s", "code"), [(19.0, 0), (21.0, ErrorCode.TIMEOUT.exit_code)])
@pytest.mark.parametrize("group", ["pointer", "keys", "label", "focus", "open"])
def test_act_waits_20_seconds_for_the_lock(
    desk: ScriptedDesktop, shell: Program, tmp_path: Path, group: str, held_s: float, code: int
) -> None:
    shell.data("screenshot", 7)
    Player(desk, shell, tmp_path).play(["text Save 10,20"])
    for command in GROUPS[group]:
        other_call, lock = copy_context(), file_lock(f"input-{desk.session}.lock", 1.0, "")
        other_call.run(lock.__enter__)
        desk.after(held_s, lambda: other_call.run(lock.__exit__, None, None, None))  # noqa: B023
        finished = shell.run(*command.split())
        desk.pass_time(2.0)
        assert finished.code == code, command
        assert ("another peekaboo is using mouse and keyboard" in finished.err) == bool(code)

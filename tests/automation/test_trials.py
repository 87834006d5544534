"""A few seeded trials of each class of tests/trials.py, and the violations that its judges count.

Windows, clipboard and files decide. A race may end either way: the tests assert that the reply is true, that
nothing hangs, leaks or raises, and that undisturbed acts are reported as delivered.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from hostile import stage as stages
from hostile.calm import judge_calm, judge_effect
from hostile.clicks import judge_click
from hostile.faults import judge_operation, judge_without_display
from hostile.keys import judge_killed, judge_loss, judge_typing, judge_typist
from hostile.paste import OLD_TEXT, judge_ended, judge_paste, judge_vain
from hostile.rpc import GONE, HUNG, Client, Reply
from hostile.steps import TEXTS, judge_steps
from hostile.tally import Tally, table
from trials import run_class
from worlds import X_PROGRAMS, need

A_RACE = ("wrong", "lost")


@pytest.mark.parametrize(
    ("name", "trials", "kind", "acted", "allowed"),
    [
        ("click-race", 5, "classless cover", None, A_RACE),
        ("click-race", 5, "menu", None, A_RACE),
        ("drag-race", 3, "nothing", 3, ()),
        ("drag-race", 5, None, None, A_RACE),
        ("wheel-race", 3, "nothing", 3, ()),
        ("wheel-race", 5, None, None, A_RACE),
        ("standing-cover", 4, None, 0, ()),
        ("typing", 8, None, None, ()),
        ("lost-keys", 6, None, None, ()),
        ("crowd", 3, "3", None, ()),
        ("crowd-own-folders", 3, "3", None, ()),
        ("steps", 6, None, None, ()),
        ("paste", 5, None, None, ()),
        ("paste-slow", 4, None, 4, ()),
        ("paste-vain", 1, "hung", None, ()),
        ("paste-ended", 2, None, 2, ()),
        ("programs", 8, None, None, ()),
        ("display-gone", 1, None, None, ()),
        ("calm", 12, None, 12, ()),
        ("effect", 10, None, 10, ()),
    ],
)
def test_trials_of_each_class_have_no_violation(
    name: str, trials: int, kind: Optional[str], acted: Optional[int], allowed: tuple[str, ...]
) -> None:
    need(*X_PROGRAMS)
    tally = run_class(name, trials, "suite", kind)
    assert tally.counts["trials"] >= trials
    assert tally.violations(*allowed) == {}, table([tally])
    assert acted in (None, tally.counts["acted"]), table([tally])


TEXT = "abcdefghij" * 6
DONE, REFUSED, HANGS, IS_GONE = Reply(), Reply("REFUSED"), Reply(HUNG), Reply(GONE)
LOST_FOCUS = Reply("FOCUS_LOST", f"window 7 took the keyboard; delivered 20 of {len(TEXT)} characters")
HALF_PICTURE = {"mimeType": "image/png", "data": "iVBORw0KGgo="}
PLACE = {"x": 1, "y": 2}
HERE, ELSEWHERE = [{"name": "target", **PLACE}], [{"name": "menu", **PLACE}]
ALL_KEYS = "".join(f"*{text}" for text in TEXTS)


def steps_reply(outcomes: str, code: str = "") -> Reply:
    """Return a reply with an outcome for each letter: done, failed or not reached."""
    names = {"d": "done", "f": "failed", "n": "not reached"}
    return Reply(code, data={"steps": [{"outcome": names[letter]} for letter in outcomes]})


# Counts of each judge for one way in which an act may go wrong.
VIOLATIONS: list[tuple[Callable[..., None], tuple[Any, ...], str]] = [
    (judge_click, ("menu", DONE, HERE, (1, 2)), "acted"),
    (judge_click, ("menu", DONE, ELSEWHERE, (1, 2)), "wrong unreported"),
    (judge_click, ("menu", REFUSED, ELSEWHERE + HERE, (1, 2)), "wrong"),
    (judge_click, ("nothing", Reply(data={"delivered": None}), HERE, (1, 2)), "doubted"),
    (judge_click, ("nothing", HANGS, [], (1, 2)), "hung"),
    (judge_click, ("nothing", IS_GONE, [], (1, 2)), "tracebacks"),
    (judge_operation, ("type", "", DONE, "abc"), "lost unreported"),
    (judge_operation, ("screenshot", "", Reply(images=(HALF_PICTURE,))), "wrong unreported"),
    (judge_typing, ("nothing", TEXT, DONE, TEXT[1:]), "lost"),
    (judge_typing, ("steal", TEXT, DONE, TEXT[:40], 20), "unreported"),
    (judge_typing, ("steal", TEXT, LOST_FOCUS, TEXT[:20], 20), ""),
    (judge_typing, ("steal", TEXT, LOST_FOCUS, TEXT[:41]), "wrong"),
    (judge_loss, ("slow keys", TEXT, DONE, TEXT[1:]), "lost unreported"),
    (judge_loss, ("slow keys", TEXT, Reply(data={"delivered": False}), "a"), "wrong"),
    (judge_loss, ("slow keys", TEXT, LOST_FOCUS, TEXT[:20]), ""),
    (judge_typist, ("abc", "abd", DONE), "wrong unreported"),
    (judge_steps, ("close", steps_reply("dddd"), ALL_KEYS, ""), "acted"),
    (judge_steps, ("steal", steps_reply("dddd"), ALL_KEYS, "x"), "unreported acted"),
    (judge_steps, ("steal", steps_reply("dfnn", "FOCUS_LOST"), ALL_KEYS[:9], "x" * 21), "wrong"),
    (judge_steps, ("close", steps_reply("dfdn", "FOCUS_LOST"), ALL_KEYS[:9], ""), "wrong unreported lost"),
    (judge_steps, ("rename", steps_reply("dfnn", "FOCUS_LOST"), ALL_KEYS[:9], ""), "doubted"),
    (judge_killed, (TEXT, TEXT[:30], [1.0, 3.0], [2.0]), "wrong"),
    (judge_paste, ("", DONE, "é", OLD_TEXT, True), "wrong unreported"),
    (judge_paste, ("", DONE, "é", "é", False), "acted lost"),
    (judge_paste, ("", Reply("PROGRAM_FAILED", "copy_lost: true"), "é", "", False), ""),
    (judge_vain, ("hung", Reply("PROGRAM_FAILED"), "", True), "wrong"),
    (judge_ended, ("", b"Traceback\nKeyError", OLD_TEXT, False), "tracebacks wrong lost"),
    (judge_without_display, ("list", DONE), "unreported"),
    (judge_calm, ("", DONE, False), "lost unreported"),
    (judge_effect, ("", Reply(data={"changed": True}), True, False), "wrong unreported"),
    (judge_effect, ("", Reply(data={"changed": False}), False, True), "wrong unreported"),
    (judge_effect, ("", Reply(data={"changed": None}), True, False), "acted"),
]


def test_judges_count_violations() -> None:
    for judge, arguments, columns in VIOLATIONS:
        tally = Tally("one")
        judge(tally, *arguments)
        assert tally.counts == dict.fromkeys(columns.split(), 1), (judge, arguments)


def test_trials_count_leaks_hangs_and_tracebacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "GRACE_S", 0.2)
    server = tmp_path / "server"
    server.write_text(
        "#!/bin/sh\necho 'no JSON'\necho 'Traceback (most recent call last):' >&2\n"
        "sleep 600 >/dev/null 2>&1 &\ncat >/dev/null\nexec sleep 600\n"
    )
    server.chmod(0o700)
    tally = Tally("stage")
    with stages.stage(tally, "none") as on:
        on.clients.append(Client([str(server)], on.environment, on.folder))
        (on.folder / "tmp" / "shot_1.png").touch()
        (on.folder / "log").write_text('{"level": "error", "msg": "click: unexpected KeyError"}\n')
    assert tally.counts == {"hung": 1, "tracebacks": 3, "leaked": 2}, table([tally])

"""Paste on real X11: the text that arrives in the window, and the user's clipboard afterwards."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from accessible import group_of
from mcp_server import initialized
from slow_display import SlowDisplay
from tk_windows import Opened, clipboard, copy, programs_by, typed, window_titled
from witness import SlowField
from worlds import PATIENCE_S, Form, Program, wait_for

from peekaboo_min.desktop.x11.xdotool import restored_by
from peekaboo_min.system.ending import exit_hooks

PNG = b"\x89PNG and pixels"


def test_clipboard_image_is_restored_as_itself(peek: Program, form: Form, form_id: int) -> None:
    copy(peek.environment, PNG, "image/png")
    peek.data("type", form_id, "Zoë")
    assert typed(form) == "Zoë"
    assert clipboard(peek.environment, "image/png") == PNG
    assert clipboard(peek.environment, "TARGETS").split() == [b"TARGETS", b"image/png"]  # and as nothing else


def test_clipboard_that_cannot_be_restored_is_kept(peek: Program, form: Form, form_id: int) -> None:
    copy(peek.environment, b"thing", "application/x-thing")
    error = peek.error("type", form_id, "Zoë")
    assert "application/x-thing" in error["message"] and "nothing was pasted" in error["message"]
    assert clipboard(peek.environment, "application/x-thing") == b"thing"
    assert typed(form) == ""


def test_slow_program_never_pastes_the_old_copy(peek: Program, slow_field: SlowField, slow_id: int) -> None:
    slow_field.reset("late", 0.5)
    with peek.start("type", slow_id, "Zoë") as process:
        slow_field.wait(lambda event: event["event"] == "key")
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
    wait_for(lambda: clipboard(peek.environment) == b"mine", "the clipboard is restored")
    assert slow_field.text("mine", 1) != "mine"


@pytest.fixture
def slow_field(peek: Program) -> Iterator[SlowField]:
    """Yield a slow GTK program; the user has copied `mine`."""
    with closing(SlowField(peek.environment)) as field:
        copy(peek.environment, b"mine")
        yield field


@pytest.fixture
def slow_id(peek: Program, slow_field: SlowField) -> int:
    return int(window_titled(peek, "Slow field")["window_id"])


@pytest.mark.parametrize(
    ("how", "pause_s"),
    [
        ("blocked", 0.5),
        ("waiting", 0.1),
        ("blocked twice", 0.1),
        ("late waiting twice", 0.1),
        ("blocked listening", 0.2),
        ("late", 4.5),
    ],
)
def test_slow_paste_arrives(
    peek: Program, slow_field: SlowField, slow_id: int, how: str, pause_s: float
) -> None:
    slow_field.reset(how, pause_s)
    assert peek.data("type", slow_id, "Zoë")["delivered"] is True
    assert slow_field.text("Zoë") == "Zoë"
    wait_for(lambda: clipboard(peek.environment) == b"mine", "the clipboard is restored")


MANAGER = ["sh", "-c", "while xclip -selection clipboard -o; do sleep 0.3; done"]  # a clipboard manager


def test_paste_in_two_pieces_arrives_though_a_program_polls(peek: Program, form: Form, form_id: int) -> None:
    copy(peek.environment, b"mine")
    poll = "while :; do timeout 1 xclip -selection clipboard -o >/dev/null 2>&1; done"
    with group_of(["sh", "-c", poll], peek.environment):
        peek.data("type", form_id, "日" * 21)
    assert typed(form) == "日" * 21
    wait_for(lambda: clipboard(peek.environment) == b"mine", "the clipboard is restored")


@pytest.mark.parametrize("how", ["deaf", "listening deaf"])
def test_copy_returns_if_nobody_fetches(peek: Program, slow_field: SlowField, slow_id: int, how: str) -> None:
    slow_field.reset(how, 0.0)
    with group_of(MANAGER, peek.environment):
        error = peek.error("type", slow_id, "Zoë")
    assert "did not fetch the text" in error["message"] and error["details"] == ""
    assert clipboard(peek.environment) == b"mine"


@pytest.mark.parametrize("how", ["asking", "hung"])
def test_text_stays_if_a_fetch_may_come(peek: Program, slow_field: SlowField, slow_id: int, how: str) -> None:
    slow_field.reset(how, 0.0)
    if how == "hung":
        slow_field.process.send_signal(signal.SIGSTOP)
    with group_of(MANAGER, peek.environment):
        error = peek.error("type", slow_id, "Zoë")
    slow_field.process.send_signal(signal.SIGCONT)
    assert "did not fetch the text" in error["message"] and "it stays in the clipboard" in error["message"]
    assert error["details"] == "copy_lost: true"
    assert clipboard(peek.environment) == "Zoë".encode()
    assert how != "hung" or slow_field.text("Zoë") == "Zoë"


def test_text_stays_after_a_fetch_and_a_hang(peek: Program, slow_field: SlowField, slow_id: int) -> None:
    slow_field.reset("blocked twice", 8.0)
    error = peek.error("type", slow_id, "Zoë")
    assert "fetched the text and is still busy" in error["message"]
    assert error["details"] == "copy_lost: true"
    assert clipboard(peek.environment) == "Zoë".encode()


def test_text_stays_in_the_clipboard_if_the_window_knows_no_ping(peek: Program, opened: Opened) -> None:
    _, deaf = opened("Deaf", "")
    copy(peek.environment, b"mine")
    assert peek.error("type", deaf, "Zoë")["details"] == "copy_lost: true"
    assert clipboard(peek.environment) == "Zoë".encode()


EMPTY = "clipboard clear; clipboard append x; update; selection clear -selection CLIPBOARD; update"


def test_clipboard_that_was_empty_is_not_reported_as_lost(peek: Program, opened: Opened) -> None:
    program, window_id = opened("Deaf", f"{EMPTY}; puts empty")
    program.wait_for("empty")
    error = peek.error("type", window_id, "Zoë")
    assert "it stays in the clipboard" in error["message"] and error["details"] == ""


def test_clipboard_that_is_empty_stays_empty(peek: Program, form: Form, form_id: int, opened: Opened) -> None:
    program, _ = opened("Empty", f"{EMPTY}; puts empty")
    program.wait_for("empty")
    peek.data("type", form_id, "Zoë")
    assert typed(form) == "Zoë"
    assert clipboard(peek.environment, "TARGETS") == b""


def test_clipboard_whose_owner_offers_nothing_is_empty(peek: Program, form: Form, form_id: int) -> None:
    copy(peek.environment, b"", "TIMESTAMP")
    peek.data("type", form_id, "Zoë")
    assert typed(form) == "Zoë"


def test_paste_needs_an_xclip_that_serves(peek: Program, form: Form, form_id: int, tmp_path: Path) -> None:
    copy(peek.environment, b"mine")
    script = f"echo $* >> {tmp_path}/runs; case $* in -quiet*) exit 1 ;; esac"
    error = peek.error("type", form_id, "Zoë", **programs_by(tmp_path / "bin", script, "xclip"))
    assert "does not hold the text" in error["message"]
    assert (typed(form), clipboard(peek.environment)) == ("", b"mine")
    # the program that owns the clipboard may offer more formats than a copy of its text
    assert "-selection clipboard -i" not in (tmp_path / "runs").read_text().splitlines()


def test_copy_that_an_unknown_process_displaced_is_reported(
    peek: Program, form_id: int, tmp_path: Path
) -> None:
    copy(peek.environment, b"mine")
    script = 'case "$*" in -quiet*) exec setsid -w "$real" "$@" ;; esac'
    error = peek.error("type", form_id, "Zoë", **programs_by(tmp_path / "bin", script, "xclip"))
    assert "does not hold the text" in error["message"] and error["details"] == "copy_lost: true"
    copy(peek.environment, b"")  # ends that xclip


def test_copy_that_could_not_be_restored_is_reported(peek: Program, form_id: int, tmp_path: Path) -> None:
    copy(peek.environment, b"mine")
    script = 'case "$*" in "-selection clipboard -i") exit 1 ;; esac'
    assert peek.data("type", form_id, "Zoë", **programs_by(tmp_path / "bin", script, "xclip"))["copy_lost"]


def test_clipboard_is_restored_after_a_hang(peek: Program, form: Form, form_id: int, tmp_path: Path) -> None:
    copy(peek.environment, b"mine")
    script = f'case "$*" in "-selection clipboard -i") mkdir {tmp_path}/hung && exec sleep 60 ;; esac'
    with peek.start("type", form_id, "Zoë", **programs_by(tmp_path / "bin", script, "xclip")) as typing:
        typing.communicate(timeout=PATIENCE_S)
    wait_for(lambda: clipboard(peek.environment) == b"mine", "the clipboard is restored", 10)


def test_paste_on_a_server_that_knows_no_processes_arrives(peek: Program, form: Form, form_id: int) -> None:
    copy(peek.environment, b"mine")
    with SlowDisplay(peek.environment["DISPLAY"], 0.0, hidden=b"X-Resource") as display:
        peek.data("type", form_id, "Zoë", DISPLAY=display.name)
        assert (typed(form), clipboard(peek.environment)) == ("Zoë", b"mine")


def test_clipboard_of_a_hung_program_is_kept(peek: Program, form: Form, form_id: int, opened: Opened) -> None:
    owner, _ = opened("Owner", "clipboard clear; clipboard append theirs; update; puts copied")
    owner.wait_for("copied")
    owner.process.send_signal(signal.SIGSTOP)
    error = peek.error("type", form_id, "Zoë")
    owner.process.send_signal(signal.SIGCONT)
    assert "content that its program does not return" in error["message"]
    assert (typed(form), clipboard(peek.environment)) == ("", b"theirs")


GIVE = """proc give {value args} {return $value}
proc offer {type value} {selection handle -selection CLIPBOARD -type $type . [list give $value]}
proc own {} {selection own -selection CLIPBOARD .; update; puts copied}
"""


def test_copy_of_a_program_that_ends_when_asked_does_not_stop_a_paste(
    peek: Program, form: Form, form_id: int, opened: Opened
) -> None:
    ends = "proc end args exit; selection handle -selection CLIPBOARD -type UTF8_STRING . end"
    opened("Ends", f"{GIVE}{ends}; own")[0].wait_for("copied")
    peek.data("type", form_id, "Zoë")
    assert typed(form) == "Zoë"


def test_image_in_several_formats_is_restored_as_png(peek: Program, form_id: int, opened: Opened) -> None:
    types = "offer image/gif a; offer image/png a; offer image/bmp a"
    opened("Images", f"{GIVE}{types}; own")[0].wait_for("copied")
    peek.data("type", form_id, "Zoë")
    assert clipboard(peek.environment, "TARGETS").split() == [b"TARGETS", b"image/png"]


def test_password_in_the_clipboard_is_kept(peek: Program, form: Form, form_id: int, opened: Opened) -> None:
    types = "offer UTF8_STRING hunter2; offer x-kde-passwordManagerHint secret"
    opened("Passwords", f"{GIVE}{types}; own")[0].wait_for("copied")
    error = peek.error("type", form_id, "Zoë")
    assert "holds a password" in error["message"] and "nothing was pasted" in error["message"]
    assert typed(form) == ""
    assert clipboard(peek.environment, "x-kde-passwordManagerHint") == b"secret"


def test_clipboard_text_in_latin_1_is_restored_as_text(peek: Program, form_id: int) -> None:
    copy(peek.environment, "Grüße".encode("latin-1"), "STRING")
    peek.data("type", form_id, "Zoë")
    assert clipboard(peek.environment).decode() == "Grüße"


def test_copy_is_not_restored_again_at_the_end_of_the_process() -> None:
    before = list(exit_hooks)
    with restored_by(lambda: None):
        pass
    assert exit_hooks == before, "the person may have copied something since"


def test_clipboard_is_restored_after_a_cancelled_call(peek: Program, form: Form, form_id: int) -> None:
    copy(peek.environment, b"mine")
    with initialized("package", peek.environment) as server:
        number = server.start_call("type_text", window_id=form_id, text="äöü" * 300)
        wait_for(lambda: form.events("key"), "it pastes")
        server.send("notifications/cancelled", {"requestId": number, "reason": "enough"}, is_request=False)
        server.call("focus_window", window_id=form_id)  # after the cancelled call
    assert clipboard(peek.environment) == b"mine"
    assert len(typed(form)) < 900


def test_clipboard_that_another_program_took_stays(peek: Program, opened: Opened) -> None:
    _, greedy = opened("Greedy", "bind . <Control-v> {clipboard clear; clipboard append theirs}")
    copy(peek.environment, b"mine")
    assert "another program took the clipboard" in peek.error("type", greedy, "Zoë")["message"]
    assert clipboard(peek.environment) == b"theirs"


@pytest.mark.parametrize("end", ["", "ë"])
def test_clipboard_copied_while_keys_follow_stays(peek: Program, form: Form, form_id: int, end: str) -> None:
    copy(peek.environment, b"mine")
    with peek.start("type", form_id, "Zoë" + "x" * 100 + end, "--delay-ms", 20, "--json") as process:
        wait_for(lambda: typed(form)[3:] != "", "it types by keys again")
        copy(peek.environment, b"theirs")
        process.communicate(timeout=PATIENCE_S)
    assert clipboard(peek.environment) == b"theirs"


# copy `theirs` as a person, in a wrapper of xclip
THEIRS = (
    "{ printf theirs | setsid $real -selection clipboard -i; "
    'until [ "$($real -selection clipboard -o)" = theirs ]; do sleep 0.01; done; } >/dev/null 2>&1'
)


def test_text_that_is_selected_meanwhile_is_no_lost_copy(peek: Program, form_id: int, tmp_path: Path) -> None:
    copy(peek.environment, b"mine")
    select = "printf x | setsid $real -selection primary -i >/dev/null 2>&1"
    xclip = programs_by(tmp_path / "bin", f'case "$*" in -quiet*) {select} ;; esac', "xclip")
    assert "copy_lost" not in peek.data("type", form_id, "日本", **xclip)


def test_clipboard_copied_while_saved_stays(peek: Program, form: Form, form_id: int, tmp_path: Path) -> None:
    copy(peek.environment, b"mine")
    once = f"case $* in *UTF8_STRING*) mkdir {tmp_path}/copied && {THEIRS} ;; esac"
    xclip = programs_by(tmp_path / "bin", f'$real "$@" || exit\n{once} 2>/dev/null\nexit 0', "xclip")
    data = peek.data("type", form_id, "日本", **xclip)
    assert typed(form) == "日本" and "copy_lost" not in data
    assert clipboard(peek.environment) == b"theirs"


@pytest.mark.parametrize(
    ("moment", "is_lost"),
    [
        ("-quiet -selection clipboard -i", True),
        ("-selection clipboard -i", True),
        ("-selection primary", False),
    ],
    ids=["serving", "putting back", "never"],
)
def test_clipboard_copied_as_it_is_taken_is_told(
    peek: Program, form: Form, form_id: int, tmp_path: Path, moment: str, is_lost: bool
) -> None:
    copy(peek.environment, b"mine")
    xclip = programs_by(tmp_path / "bin", f'case "$*" in "{moment}"*) {THEIRS} ;; esac', "xclip")
    data = peek.data("type", form_id, "日本", **xclip)
    assert typed(form) == "日本"
    assert data.get("copy_lost", False) is is_lost

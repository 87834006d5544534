"""Paste on real X11: the text that arrives in the window, and the user's clipboard afterwards."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Callable

import pytest
from accessible import group_of
from mcp_server import initialized
from slow_display import SlowDisplay
from tk_windows import Opened, Wish, clipboard, copy, programs_by, typed, window_titled
from witness import SlowField
from worlds import PATIENCE_S, Form, Program, wait_for

from peekaboo_min.desktop.x11.xdotool import restored_by
from peekaboo_min.system.ending import exit_hooks


def held(peek: Program) -> dict[str, bytes]:
    """Return what the clipboard holds, by format."""
    formats = clipboard(peek.environment, "TARGETS").decode().split()
    return {name: clipboard(peek.environment, name) for name in formats if name not in PROTOCOL}


PROTOCOL = ("TARGETS", "MULTIPLE", "TIMESTAMP", "SAVE_TARGETS", "DELETE")


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


# a clipboard manager; if it is killed as it reads, the xclip that it reads from dies
MANAGER = ["sh", "-c", "while xclip -selection clipboard -o; do sleep 0.3; done"]


def test_paste_in_two_pieces_arrives_though_a_program_polls(peek: Program, form: Form, form_id: int) -> None:
    copy(peek.environment, b"mine")
    poll = "while :; do timeout 1 xclip -selection clipboard -o >/dev/null 2>&1; done"
    with group_of(["sh", "-c", poll], peek.environment):
        peek.data("type", form_id, "日" * 21)
        assert typed(form) == "日" * 21
        wait_for(lambda: clipboard(peek.environment) == b"mine", "the clipboard is restored")


NOT_FETCHED = "the window's program did not fetch the text: "
STAYS = "it stays in the clipboard"
BUSY = "the window's program fetched the text and is still busy: "
# how the program pastes, its pause, a signal -> the error, the clipboard
UNFETCHED = {
    "deaf": (0.0, signal.SIGCONT, f"{NOT_FETCHED}it was not pasted", "mine"),
    "listening deaf": (0.2, signal.SIGCONT, f"{NOT_FETCHED}it was not pasted", "mine"),
    "asking": (0.0, signal.SIGCONT, NOT_FETCHED + STAYS, "Zoë"),
    "hung": (0.0, signal.SIGSTOP, NOT_FETCHED + STAYS, "Zoë"),
    "blocked twice": (8.0, signal.SIGCONT, BUSY + STAYS, "Zoë"),
}


@pytest.mark.parametrize("how", UNFETCHED)
def test_copy_returns_unless_fetched(peek: Program, slow_field: SlowField, slow_id: int, how: str) -> None:
    pause_s, number, message, kept = UNFETCHED[how]
    slow_field.reset(how, pause_s)
    slow_field.process.send_signal(number)
    with group_of(MANAGER, peek.environment):
        error = peek.error("type", slow_id, "Zoë")
        slow_field.process.send_signal(signal.SIGCONT)
        assert message in error["message"] and error["details"] == "copy_lost: true" * (kept == "Zoë")
        assert clipboard(peek.environment).decode() == kept
        assert how != "hung" or slow_field.text("Zoë") == "Zoë"


@pytest.mark.parametrize(("name", "selections"), [("Other", ("Zoë", "old")), ("xterm", ("mine", "Zoë"))])
def test_text_stays_in_its_selection_if_the_window_knows_no_ping(
    peek: Program, wish: Callable[..., Wish], name: str, selections: tuple[str, str]
) -> None:
    wish("wm title . Deaf", name)
    for selection, text in (("clipboard", "mine"), ("primary", "old")):
        argv = ["sh", "-c", f"printf {text} | xclip -selection {selection} -i >/dev/null 2>&1"]
        subprocess.run(argv, env=peek.environment, check=True)
    details = peek.error("type", window_titled(peek, "Deaf")["window_id"], "Zoë")["details"]
    read = "xclip -selection clipboard -o; echo; xclip -selection primary -o"
    texts = subprocess.check_output(["sh", "-c", read], env=peek.environment, encoding="utf-8").split("\n")
    assert (tuple(texts), details) == (selections, "copy_lost: true" * (name == "Other"))


EMPTY = "clipboard clear; clipboard append x; update; selection clear -selection CLIPBOARD; update"


def test_clipboard_that_was_empty_is_not_reported_as_lost(peek: Program, opened: Opened) -> None:
    program, window_id = opened("Deaf", f"{EMPTY}; puts empty")
    program.wait_for("empty")
    error = peek.error("type", window_id, "Zoë")
    assert "it stays in the clipboard" in error["message"] and error["details"] == ""


@pytest.mark.parametrize("kind", PROTOCOL)
def test_clipboard_without_content_is_empty(peek: Program, form: Form, form_id: int, kind: str) -> None:
    copy(peek.environment, b"", kind)
    peek.data("type", form_id, "Zoë")
    assert (typed(form), clipboard(peek.environment, "TARGETS")) == ("Zoë", b"")


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


# formats and content that a program offers -> what is restored
FORMATS = {
    "STRING a UTF8_STRING b": ("UTF8_STRING", "b"),
    "text/html a text/plain b": ("UTF8_STRING", "b"),
    "text/plain;charset=utf-8 b": ("UTF8_STRING", "b"),
    "TEXT b": ("UTF8_STRING", "b"),
    "image/png a UTF8_STRING b": ("UTF8_STRING", "b"),
    "image/gif a image/png b image/bmp c": ("image/png", "b"),
    "image/gif a": ("image/gif", "a"),
}


@pytest.mark.parametrize("offered", FORMATS)
def test_clipboard_has_its_best_format(
    peek: Program, form: Form, form_id: int, opened: Opened, offered: str
) -> None:
    words = offered.split()
    offers = [f"offer {{{kind}}} {content}" for kind, content in zip(words[::2], words[1::2])]
    opened("Owner", f"{GIVE}{'; '.join(offers)}; own")[0].wait_for("copied")
    assert "copy_lost" not in peek.data("type", form_id, "Zoë")
    kind, content = FORMATS[offered]
    assert (typed(form), held(peek)) == ("Zoë", {kind: content.encode()})


def test_clipboard_text_in_latin_1_is_restored_as_text(peek: Program, form_id: int) -> None:
    copy(peek.environment, "Grüße".encode("latin-1"), "STRING")
    peek.data("type", form_id, "Zoë")
    assert held(peek) == {"UTF8_STRING": "Grüße".encode()}


def test_clipboard_that_is_refused_is_kept(peek: Program, form: Form, form_id: int, opened: Opened) -> None:
    refuses = "proc bgerror args {}; proc give {value args} {error refused}; offer UTF8_STRING x"
    opened("Refuses", f"{GIVE}{refuses}; own")[0].wait_for("copied")
    assert "UTF8_STRING, which cannot be restored" in peek.error("type", form_id, "Zoë")["message"]
    assert typed(form) == ""


def test_copy_whose_program_ends_is_forgotten(
    peek: Program, form: Form, form_id: int, opened: Opened
) -> None:
    ends = "proc end args exit; selection handle -selection CLIPBOARD -type UTF8_STRING . end"
    opened("Ends", f"{GIVE}{ends}; own")[0].wait_for("copied")
    peek.data("type", form_id, "Zoë")
    assert (typed(form), held(peek)) == ("Zoë", {})


def test_password_in_the_clipboard_is_kept(peek: Program, form: Form, form_id: int, opened: Opened) -> None:
    types = "offer UTF8_STRING hunter2; offer x-kde-passwordManagerHint secret"
    opened("Passwords", f"{GIVE}{types}; own")[0].wait_for("copied")
    error = peek.error("type", form_id, "Zoë")
    assert "holds a password" in error["message"] and "nothing was pasted" in error["message"]
    assert typed(form) == ""
    assert clipboard(peek.environment, "x-kde-passwordManagerHint") == b"secret"


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
    taken = "another program took the clipboard: its content may have been pasted"
    assert taken in peek.error("type", greedy, "Zoë")["message"]
    assert clipboard(peek.environment) == b"theirs"


def taking(selection: str, text: str, xclip: str = "$real") -> str:
    """Return the commands of a person who selects or copies; xclip: its name or path in the script."""
    # xclip may exit before its child owns the selection; an older owner may have been stopped
    wait = f'until [ "$(timeout 1 {xclip} -selection {selection} -o)" = {text} ]; do sleep 0.01; done'
    return f"{{ printf {text} | setsid {xclip} -selection {selection} -i; {wait}; }} >/dev/null 2>&1"


COPY = taking("clipboard", "theirs", "xclip")
SELECTS, COPIES = taking("primary", "x"), taking("clipboard", "theirs")
ENDS = "while grep -qs [RSD] /proc/$xclip/stat; do :; done"
# the end of the text, a shell script that runs while keys follow ($xclip serves, $1 types) -> the copy
MOMENTS = {
    "copied": ("", COPY, b"theirs"),
    "copied before another paste": ("ë", COPY, b"theirs"),
    "copied, then ended": ("", f"{COPY}; {ENDS}; kill $1", b"theirs"),
    "copied, while xclip hangs": ("", f"kill -STOP $xclip; {COPY}", b"theirs"),
    "xclip is killed": ("", "kill -KILL $xclip", b"mine"),
}


@pytest.mark.parametrize(("end", "script", "kept"), MOMENTS.values(), ids=MOMENTS.keys())
def test_newest_copy_stays(
    peek: Program, form: Form, form_id: int, tmp_path: Path, end: str, script: str, kept: bytes
) -> None:
    copy(peek.environment, b"mine")
    xclip = programs_by(tmp_path / "bin", f'case "$*" in -quiet*) echo $$ > {tmp_path}/pid ;; esac', "xclip")
    words = ["type", form_id, "Zoë" + "x" * 100 + end, "--delay-ms", 20, "--json"]
    with peek.start(*words, **xclip) as process:
        wait_for(lambda: typed(form)[3:] != "", "it types by keys again")
        argv = ["sh", "-c", f"xclip=$(cat {tmp_path}/pid); {script}", "sh", str(process.pid)]
        subprocess.run(argv, env=peek.environment, check=True, timeout=PATIENCE_S)
        process.communicate(timeout=PATIENCE_S)
    assert clipboard(peek.environment) == kept


@pytest.mark.parametrize(
    ("script", "lost"), [(":", (False, "", b"mine")), ("exit 1", (True, "copy_lost: true", b""))]
)
def test_refusal_after_a_paste_restores_the_copy_or_reports_it(
    peek: Program, form: Form, form_id: int, tmp_path: Path, script: str, lost: tuple[bool, str, bytes]
) -> None:
    copy(peek.environment, b"mine")
    variables = {"PEEKABOO_STOP_FILE": str(tmp_path / "STOP")}
    restoring = f'case "$*" in "-selection clipboard -i") {script} ;; esac'
    words = ["type", form_id, "Zoë" + "x" * 100, "--delay-ms", 20, "--json"]
    with peek.start(*words, **variables, **programs_by(tmp_path / "bin", restoring, "xclip")) as process:
        wait_for(lambda: typed(form)[3:] != "", "it types by keys again")
        (tmp_path / "STOP").touch()
        error = json.loads(process.communicate(timeout=PATIENCE_S)[0])["error"]
    assert error["code"] == "POLICY_DENIED"
    is_reported = "the user's copy may be lost" in error["message"]
    assert (is_reported, error["details"], clipboard(peek.environment)) == lost


def test_copy_before_the_key_is_not_pasted(peek: Program, form: Form, form_id: int, tmp_path: Path) -> None:
    copy(peek.environment, b"mine")
    error = peek.error("type", form_id, "日本", **programs_by(tmp_path / "bin", COPY, "xdotool"))
    assert "the clipboard does not hold the text: it was not pasted" in error["message"]
    assert (typed(form), error["details"], clipboard(peek.environment)) == ("", "", b"theirs")


def test_text_is_fetched_in_any_text_format(peek: Program, opened: Opened) -> None:
    kinds = (
        "STRING",
        "TEXT",
        "COMPOUND_TEXT",
        "text/plain",
        "text/plain;charset=utf-8",
        "text/plain;charset=x",
    )
    obey = "fileevent stdin readable {eval [gets stdin]}; fconfigure stdin -buffering line"
    get = f"{obey}; bind . <Control-v> {{selection get -selection CLIPBOARD -type $kind}}"
    program, window_id = opened("Typed", get)
    copy(peek.environment, b"mine")
    for number, kind in enumerate(kinds):
        program.tell(f"set kind {{{kind}}}; puts {number}")
        program.wait_for(str(number))
        assert peek.data("type", window_id, "é")["delivered"] is True, kind
    assert clipboard(peek.environment) == b"mine"


@pytest.mark.parametrize(("name", "key"), [("xterm", "Shift-Insert"), ("konsole", "Control-Shift-Insert")])
def test_paste_into_a_terminal_leaves_the_clipboard_alone(
    peek: Program, wish: Callable[..., Wish], tmp_path: Path, name: str, key: str
) -> None:
    get = f"bind . <{key}> {{puts [selection get -selection PRIMARY -type UTF8_STRING]}}"
    selects = "selection own -selection PRIMARY ."
    program = wish(
        f"wm title . Terminal; {get}\n{GIVE}{selects}; offer x-kde-passwordManagerHint secret; own", name
    )
    program.wait_for("copied")
    window_id, before = window_titled(peek, "Terminal")["window_id"], held(peek)
    xclip = programs_by(tmp_path / "bin", f'case "$*" in -quiet*) {SELECTS} ;; esac', "xclip")
    assert "copy_lost" not in peek.data("type", window_id, "Zoë", **xclip)
    program.wait_for("Zoë")
    assert held(peek) == before


UNKNOWN = 'exec setsid -w "$real" "$@"'  # a process that we do not know serves the text
SERVES, RESTORES = "-quiet*", '"-selection clipboard -i"'  # patterns of xclip's arguments
# when a shell script runs before xclip, the script, the format of the user's copy
# -> the text that arrives, whether a copy is lost, and the clipboard
XCLIPS = {
    "selects": (SERVES, SELECTS, "UTF8_STRING", "日本", False, {"UTF8_STRING": "mine"}),
    "copies while serving": (SERVES, COPIES, "UTF8_STRING", "日本", True, {"UTF8_STRING": "mine"}),
    "copies while restoring": (RESTORES, COPIES, "UTF8_STRING", "日本", True, {"UTF8_STRING": "mine"}),
    "does not restore": (RESTORES, "exit 1", "UTF8_STRING", "日本", True, {}),
    "is unknown": (SERVES, UNKNOWN, "UTF8_STRING", "", True, {"UTF8_STRING": "日本"}),
    "is unknown, nothing lost": (SERVES, UNKNOWN, "TIMESTAMP", "", False, {"UTF8_STRING": "日本"}),
    "ends": (SERVES, "exit 1", "STRING", "", False, {"STRING": "mine"}),
    "copies while saving": (
        "*UTF8_STRING*", f'$real "$@"; [ -e $0s ] || {{ touch $0s; {COPIES}; }}; exit 0', "UTF8_STRING",
        "日本", False, {"UTF8_STRING": "theirs"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "script", "kind", "arrives", "is_lost", "kept"), XCLIPS.values(), ids=XCLIPS.keys()
)
def test_lost_copy_is_reported(
    peek: Program, form: Form, form_id: int, tmp_path: Path, pattern: str, script: str, kind: str,
    arrives: str, is_lost: bool, kept: dict[str, str],
) -> None:  # fmt: skip
    copy(peek.environment, b"mine", kind)
    xclip = programs_by(tmp_path / "bin", f'case "$*" in {pattern}) {script} ;; esac', "xclip")
    finished = peek.run("type", form_id, "日本", "--json", **xclip)
    assert (typed(form), finished.code == 0) == (arrives, arrives != "")
    restored = {kind: content.encode() for kind, content in kept.items()}
    assert ("copy_lost" in finished.out, held(peek)) == (is_lost, restored)
    copy(peek.environment, b"")  # ends an unknown xclip

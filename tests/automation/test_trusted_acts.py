"""Acts on real X11 that could go wrong: covered, blocked, stolen, stopped, killed; and the clipboard then."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Optional

import headless
import pytest
from accessible import group_of
from hostile.stage import XWitness
from samples import window
from tk_windows import Wish, clipboard, copy, programs_by, window_titled
from worlds import PATIENCE_S, ROOT, Form, Program, wait_for

from peekaboo_min.automation import act as acts
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import Scene
from peekaboo_min.system.images import Bitmap

Run = Callable[..., Wish]
Xdotool = Callable[[str], dict[str, str]]
Opened = Callable[[str, str], "tuple[Wish, int]"]
LONG = "a line of text that is typed in pieces " * 20
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


@pytest.fixture
def xdotool_by(tmp_path: Path) -> Xdotool:
    """The variables with which a shell script, in which `$real` is xdotool, runs in its place."""
    return lambda script: programs_by(tmp_path / "bin", f"{script}\nexit", "xdotool")


@pytest.fixture
def opened(peek: Program, wish: Run) -> Opened:
    """Opens a window with a title by a script: its program and its id, of which there is a screenshot."""

    def open_one(title: str, script: str) -> tuple[Wish, int]:
        program = wish(f"wm title . {title}; wm geometry . 300x200+600+100\n{script}")
        window_id = window_titled(peek, title)["window_id"]
        peek.data("screenshot", window_id)
        return program, window_id

    return open_one


def cover(wish: Run, geometry: str) -> Wish:
    """A window that no manager knows, in front of all others; prints `shown`, then `hit` for each click."""
    covering = wish(
        f"wm withdraw .; toplevel .c; wm overrideredirect .c 1; wm geometry .c {geometry}+0+0; raise .c\n"
        "bind .c <Button> {puts hit}; tkwait visibility .c; puts shown"
    )
    covering.wait_for("shown")
    return covering


def grab_by_menu(peek: Program, wish: Run, more: str = "") -> dict[str, Any]:
    """The open menu of another program, which has grabbed pointer and keyboard."""
    menu = wish(
        "wm withdraw .; toplevel .m; wm overrideredirect .m 1; wm title .m Menu\n"
        f"wm geometry .m 102x60+700+500; tkwait visibility .m; grab -global .m\n{more}\nputs grabbed"
    )
    menu.wait_for("grabbed")
    return window_titled(peek, "Menu")


def typed(form: Form) -> str:
    """What stands in the form's first field."""
    before = len(form.events("text"))
    form.xdotool("key", "F12")
    return str(form.wait_for_event("text", after=before)["name"])


def test_click_on_an_unmanaged_cover_is_refused(peek: Program, form: Form, form_id: int, wish: Run) -> None:
    peek.data("screenshot", form_id)
    covering = cover(wish, "900x700")
    error = peek.error("click", form_id, *form.centre("agree"))
    assert error["code"] == "WINDOW_COVERED"
    assert (form.events("click"), covering.lines()) == ([], ["shown"])


def test_click_on_a_popup_does_not_focus_it(peek: Program, wish: Run) -> None:
    program = wish(
        "wm title . Owner; wm geometry . 300x200+600+100; toplevel .p; wm overrideredirect .p 1\n"
        "wm geometry .p 90x24+650+150; raise .p; bind .p <Button> {puts hit; destroy .p}"
    )
    owner = window_titled(peek, "Owner")

    def find() -> list[dict[str, Any]]:
        return [one for one in peek.data("windows")["windows"] if one["kind"] == "popup"]

    popup = wait_for(find, "the popup is listed")[0]
    popup_id = popup["window_id"]
    assert (popup["owner_name"], popup["parent_id"]) == ("Other", owner["window_id"])
    assert (popup["bounds"]["width"], popup["bounds"]["height"]) == (90, 24)
    ids = [one["window_id"] for one in peek.data("windows")["windows"]]
    assert ids.index(popup_id) == ids.index(owner["window_id"]) + 1
    listed = peek.data("list", "windows", "--app", "Other")["windows"]
    assert listed == [{"window_title": "Owner", "window_index": 0}]
    assert peek.error("focus", popup_id)["code"] == "FOCUS_FAILED"
    assert peek.error("click", popup_id, 5, 5, PEEKABOO_DENY_APPS="Other")["code"] == "POLICY_DENIED"
    peek.data("screenshot", popup_id)
    answer = peek.data("click", popup_id, 45, 12, "--verify")
    program.wait_for("hit")
    assert (answer["delivered"], answer["window_closed"]) == (True, True)


# what a window does when it is acted on, as Tcl: the act, and what is reported
MEANWHILE = {
    "bind . <ButtonRelease> {wm iconify .}": (
        "click ID 150 100 --verify",
        {"delivered": True, "changed": True, "window_closed": None},
    ),
    # the second click would go to what the first one opened
    "bind . <ButtonPress> {toplevel .p; wm overrideredirect .p 1; wm geometry .p 300x200+600+100; raise .p\n"
    "bind .p <ButtonPress> {puts hit}; update}": ("click ID 150 100 --clicks 3", {"delivered": None}),
}


@pytest.mark.parametrize("script", MEANWHILE, ids=["minimised", "opened"])
def test_act_reports_what_its_window_does_meanwhile(peek: Program, opened: Opened, script: str) -> None:
    command, expected = MEANWHILE[script]
    program, window_id = opened("Shy", script)
    answer = peek.data(*command.replace("ID", str(window_id)).split())
    assert ({key: answer.get(key) for key in expected}, program.lines()) == (expected, [])


def test_click_on_an_id_that_another_window_got_is_refused(peek: Program, wish: Run) -> None:
    def open_same() -> tuple[Wish, dict[str, Any]]:
        started = wish("wm title . Same; wm geometry . 300x200+600+100")
        return started, window_titled(peek, "Same")

    def close(program: Wish) -> None:
        program.close()
        tree = ["xwininfo", "-root", "-tree"]
        look = lambda: subprocess.run(tree, env=peek.environment, capture_output=True).stdout  # noqa: E731
        wait_for(lambda: b"Same" not in look(), "it is gone")

    def reused() -> Optional[dict[str, Any]]:
        first, window = open_same()
        peek.data("screenshot", window["window_id"])
        close(first)
        second, again = open_same()
        if again["window_id"] == window["window_id"]:
            return again
        close(second)  # another client came or went meanwhile, and the server numbers by clients
        return None

    again = wait_for(reused, "an id is used again")
    assert again["pid"] is None
    assert peek.error("click", again["window_id"], 50, 50)["code"] == "STALE_SCREENSHOT"


def test_focus_clicks_a_title_bar_where_allowed(
    peek: Program, form: Form, form_id: int, wish: Run, xdotool_by: Xdotool
) -> None:
    """ "If raising via APIs is unreliable, **fallback** to clicking a safe point (e.g. window center) to
    ensure focus."
    """
    # a window manager that gives nobody the focus who asks for it
    deaf = xdotool_by(
        "read -r line\ncase $line in windowactivate*) exit 1 ;; windowmap*) exit 0 ;; esac\n"
        '{ echo "$line"; cat; } | $real -'
    )
    wish("wm title . Front; wm geometry . 200x100+800+500; focus -force .")
    front = window_titled(peek, "Front")["window_id"]
    peek.data("focus", front)
    asked = ["focus", form_id, "--json"]
    error = peek.run(*asked, **deaf).error
    assert (error["code"], "PEEKABOO_SAFE_CLICK=1" in error["message"]) == ("FOCUS_FAILED", True)
    assert window_titled(peek, "Front")["is_focused"]
    peek.data(*asked[:2], **deaf, PEEKABOO_SAFE_CLICK="1")
    assert window_titled(peek, form.title)["is_focused"]
    # a title bar that another window covers is left alone
    peek.data("focus", front)
    covering = cover(wish, "1200x90")
    refused = peek.run(*asked, **deaf, PEEKABOO_SAFE_CLICK="1")
    assert refused.error["code"] == "FOCUS_FAILED"
    assert "PEEKABOO_SAFE_CLICK" not in refused.error["message"]
    assert (covering.lines(), form.events("click")) == (["shown"], [])


def test_acts_are_refused_while_a_foreign_menu_is_open(
    peek: Program, form: Form, form_id: int, wish: Run
) -> None:
    peek.data("focus", form_id)
    release = "bind .m <Button> {grab release .m; wm attributes .m -type tooltip}"
    menu = grab_by_menu(peek, wish, release)
    assert (menu["kind"], menu["owner_name"]) == ("popup", "Toplevel")
    acts = (["focus", form_id], ["type", form_id, "x"], ["press", form_id, "a"])
    for words in acts:
        error = peek.error(*words)
        assert (error["code"], f"window {menu['window_id']}" in error["message"]) == ("WINDOW_BLOCKED", True)
    assert form.events("key") == []
    peek.data("screenshot", menu["window_id"])
    peek.data("click", menu["window_id"], 50, 12)
    wait_for(lambda: window_titled(peek, "Menu")["kind"] == "tooltip", "it is a menu no more")
    for words in acts:
        peek.data(*words)


HAND = ROOT / "tests" / "support" / "hostile" / "hand.py"


@pytest.fixture
def witness(peek: Program) -> Iterator[XWitness]:
    """A window `w` that has the keyboard and reports what reaches it."""
    one = XWitness(peek.environment)
    one.open("w", x=100, y=100, w=400, h=300, app="Witness")
    peek.data("focus", window_titled(peek, "w")["window_id"])
    yield one
    one.close()


@pytest.fixture
def other(peek: Program) -> Iterator[XWitness]:
    """Another program, without a window so far."""
    one = XWitness(peek.environment)
    yield one
    one.close()


Act = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def act(peek: Program, witness: XWitness) -> Iterator[Act]:
    """Starts an act of the desktop on the witness's window."""
    started: list[subprocess.Popen[str]] = []

    def start(method: str, *arguments: Any) -> subprocess.Popen[str]:
        window_id = window_titled(peek, "w")["window_id"]
        words = [sys.executable, str(HAND), method, str(window_id), json.dumps(arguments)]
        environment = {**peek.environment, "PYTHONPATH": str(ROOT)}
        started.append(subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def kill_child_of(process: subprocess.Popen[str]) -> None:
    """The xdotool that presses; it may have ended."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    with suppress(ProcessLookupError):
        os.kill(int(children[0]), signal.SIGKILL)


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    return json.loads(process.communicate(timeout=60)[0])


@pytest.mark.parametrize("ending", ["by itself", "SIGTERM", "SIGKILL", "SIGUSR1", "xdotool"])
def test_drag_releases_its_button_whatever_ends_it(act: Act, witness: XWitness, ending: str) -> None:
    dragging = act("drag", [60, 50], [260, 150], "left")
    press = witness.wait(lambda one: one["event"] == "press")
    if ending == "xdotool":
        kill_child_of(dragging)
    elif ending != "by itself":
        dragging.send_signal(signal.Signals[ending])
    out = dragging.communicate(timeout=60)[0]
    release = witness.wait(lambda one: one["event"] == "release")
    assert (press["x"], press["y"]) == (60, 50)
    if ending in ("by itself", "SIGUSR1"):  # a drag is not dropped halfway
        assert (release["x"], release["y"]) == (260, 150)
    if ending in ("by itself", "xdotool"):
        told = json.loads(out)
        assert told.get("code", told.get("delivered")) == (ending == "by itself" or "PROGRAM_FAILED")
    wait_for(lambda: witness.sync() == 0, "the button is up")


def test_click_releases_modifiers_when_killed(act: Act, witness: XWitness) -> None:
    clicking = act("click", [60, 50], "left", 1, ["shift"])
    witness.wait(lambda one: one["event"] == "press")
    kill_child_of(clicking)
    clicking.communicate(timeout=60)
    wait_for(lambda: witness.sync() == 0, "nothing is pressed any more")


def test_scroll_drag_and_move_see_a_cover(act: Act, witness: XWitness, other: XWitness) -> None:
    cover = other.open("cover", x=150, y=140, w=80, h=60, popup=True, pid=False)
    for method, arguments in (("scroll", ["down", 3]), ("drag", [[300, 200], "left"])):
        assert answer(act(method, [60, 50], *arguments))["code"] == "WINDOW_COVERED"
    # what is dropped there would be the other program's
    assert answer(act("drag", [300, 200], [60, 50], "left"))["code"] == "WINDOW_COVERED"
    moved = answer(act("move_pointer", [60, 50]))
    assert (moved["delivered"], moved["reached_id"]) == (False, cover)
    assert answer(act("move_pointer", [10, 10]))["delivered"] is True
    assert (witness.take("press"), other.take("press")) == ([], [])


def test_click_that_a_foreign_menu_takes_is_its(
    peek: Program, act: Act, witness: XWitness, wish: Run
) -> None:
    menu = grab_by_menu(peek, wish)
    done = answer(act("click", [60, 50], "left", 1))
    assert (done["delivered"], done["reached_id"]) == (False, menu["window_id"])
    assert witness.take("press") == []


def test_scroll_that_is_covered_meanwhile_is_not_delivered(act: Act, witness: XWitness) -> None:
    scrolling = act("scroll", [60, 50], "down", 50)
    witness.wait(lambda one: one["event"] == "press")
    witness.open("menu", x=130, y=120, w=80, h=60, popup=True)  # over the pixel, and of the same program
    assert answer(scrolling)["delivered"] is not True
    assert len(witness.take("press")) < 50


@pytest.mark.parametrize("how", ["focus", "stop file", "SIGUSR1", "SIGTERM"])
def test_press_releases_a_held_key_when_it_ends(
    peek: Program, act: Act, witness: XWitness, other: XWitness, tmp_path: Path, how: str
) -> None:
    stop = tmp_path / "stop"
    other.open("thief", x=600, y=100, w=200, h=200, app="Thief")
    window_titled(peek, "thief")  # it has been mapped, and takes no focus after this
    peek.data("focus", window_titled(peek, "w")["window_id"])
    holding = act("press", "y", 5000, 3, str(stop))
    witness.wait(lambda one: one["event"] == "key")
    if how == "focus":
        other.do("focus", "thief")
    elif how == "stop file":
        stop.touch()
    else:
        holding.send_signal(signal.Signals[how])
    out = holding.communicate(timeout=60)[0]
    wait_for(lambda: witness.sync() == 0, "the key is up")
    codes = {"focus": "FOCUS_LOST", "stop file": "POLICY_DENIED", "SIGUSR1": "CANCELLED", "SIGTERM": None}
    assert (json.loads(out)["code"] if out else None) == codes[how]
    assert how != "stop file" or "1 of 3 key press(es) went out" in out
    assert len(other.take("key")) <= 20


def test_type_what_takes_too_long_is_refused(peek: Program, form: Form, form_id: int) -> None:
    error = peek.error("type", form_id, "é" * 20_000)
    assert error["code"] == "INVALID_ARGUMENT"
    most = int(re.search(r"at most (\d+) characters", str(error))[1])  # type: ignore[index]
    assert 1000 < most < 10_000
    assert typed(form) == ""


def type_until(peek: Program, form: Form, form_id: int, act: Callable[[Any], Any], **more: str) -> str:
    """What typing prints that something happens to while it types; it is waited for."""
    with peek.start("type", form_id, LONG, "--json", **more) as process:
        wait_for(lambda: len(form.events("key")) > 30, "it types")
        act(process)
        return str(process.communicate(timeout=PATIENCE_S)[0].decode())


def test_stop_file_ends_typing_between_pieces(
    peek: Program, form: Form, form_id: int, tmp_path: Path
) -> None:
    stop = tmp_path / "stop"
    out = type_until(peek, form, form_id, lambda _: stop.touch(), PEEKABOO_STOP_FILE=str(stop))
    assert "POLICY_DENIED" in out and "character(s) went out" in out
    assert len(typed(form)) < len(LONG) / 2


def test_type_ends_where_the_focus_is_stolen(peek: Program, form: Form, form_id: int, wish: Run) -> None:
    thieves: list[Wish] = []
    steal = "wm geometry . 200x100+900+600; focus -force .\nbind . <Key> {puts leaked}"
    out = type_until(peek, form, form_id, lambda _: thieves.append(wish(steal)))
    assert "FOCUS_LOST" in out
    assert len(thieves[0].lines()) <= 20


def test_type_after_kill_9_begins_after_its_piece(peek: Program, form: Form, form_id: int) -> None:
    assert type_until(peek, form, form_id, lambda process: process.kill()) == ""
    before = len(form.events("key"))
    peek.data("type", form_id, "ZZZ")
    text = typed(form)
    assert text.endswith("ZZZ") and "Z" not in text[:-3]
    assert len(form.events("key")) - before <= 20 + 3 + 10  # the piece, ours, and shift and F12 keys


@pytest.mark.parametrize("words", [["press", "a"], ["type", "ab"]])
def test_keys_that_another_window_got_are_not_delivered(
    peek: Program, witness: XWitness, other: XWitness, words: list[str], xdotool_by: Xdotool
) -> None:
    thief = other.open("thief", x=700, y=400, w=200, h=100, app="Thief")
    window_id = window_titled(peek, "w")["window_id"]
    window_titled(peek, "thief")
    peek.data("focus", window_id)
    # the focus goes after the last look, and before the keys are pressed
    late = xdotool_by(f'$real windowfocus {thief}\nexec $real "$@"')
    lost = peek.run(words[0], window_id, words[1], "--json", **late).error
    assert (lost["code"], f"window {thief}" in lost["message"]) == ("FOCUS_LOST", True)
    assert [key["text"] for key in other.take("key")] == list(words[1])
    assert witness.take("key") == []


def test_type_replaces_by_an_empty_text(peek: Program, witness: XWitness) -> None:
    """In a window of another toolkit than Tk."""
    peek.data("type", window_titled(peek, "w")["window_id"], "", "--replace")
    assert [key["text"] for key in witness.take_characters()] == ["\x01", "\b"]  # ctrl+a


def test_type_counts_what_arrived_before_focus_went(
    peek: Program, form: Form, form_id: int, opened: Opened, xdotool_by: Xdotool
) -> None:
    _, thief = opened("Thief", "")
    peek.data("focus", form_id)
    late = xdotool_by(f'$real "$@"\n[ "$1" != - ] || $real windowfocus --sync {thief}')
    lost = peek.run("type", form_id, "xy" * 15, "--json", **late).error
    assert lost["code"] == "FOCUS_LOST"
    assert re.findall(r"\d+", lost["message"].partition("before that")[2]) == ["20"]
    peek.data("focus", form_id)
    assert typed(form) == "xy" * 10


def test_clipboard_image_is_put_back_as_itself(peek: Program, form: Form, form_id: int) -> None:
    copy(peek.environment, PNG, "image/png")
    peek.data("type", form_id, "Zoë")
    assert typed(form) == "Zoë"
    assert clipboard(peek.environment, "image/png") == PNG
    assert clipboard(peek.environment, "TARGETS").split() == [b"TARGETS", b"image/png"]  # and as nothing else


def test_clipboard_that_could_not_be_put_back_is_kept(peek: Program, form: Form, form_id: int) -> None:
    copy(peek.environment, b"thing", "application/x-thing")
    error = peek.error("type", form_id, "Zoë")
    assert "application/x-thing" in error["message"] and "nothing was pasted" in error["message"]
    assert clipboard(peek.environment, "application/x-thing") == b"thing"
    assert typed(form) == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_clipboard_is_put_back_after_a_signal(
    peek: Program, form: Form, form_id: int, number: signal.Signals
) -> None:
    copy(peek.environment, b"mine")
    with peek.start("type", form_id, "äöü" * 100, "--json") as process:
        wait_for(lambda: clipboard(peek.environment) not in (b"mine", b""), "it pastes")
        process.send_signal(number)
        process.communicate(timeout=PATIENCE_S)
    wait_for(lambda: clipboard(peek.environment) == b"mine", "the clipboard is back")


def test_clipboard_is_put_back_though_a_program_polls_it(peek: Program, form: Form, form_id: int) -> None:
    copy(peek.environment, b"mine")
    poll = "while :; do timeout 1 xclip -selection clipboard -o >/dev/null 2>&1; done"
    with headless.running(["sh", "-c", poll], env=peek.environment):
        peek.data("type", form_id, "日" * 21)  # in two pieces
    assert typed(form) == "日" * 21
    wait_for(lambda: clipboard(peek.environment) == b"mine", "the clipboard is back")


def test_paste_after_a_look_at_the_formats_is_the_text(peek: Program, opened: Opened) -> None:
    program, window_id = opened(
        "Slow",
        "proc get {type} {selection get -selection CLIPBOARD -type $type}\n"
        "bind . <Control-v> {get TARGETS; after 300 {puts [get UTF8_STRING]}}",
    )
    copy(peek.environment, b"mine")
    peek.data("type", window_id, "Zoë")
    program.wait_for("Zoë")
    wait_for(lambda: clipboard(peek.environment) == b"mine", "the clipboard is back")


def test_paste_that_nobody_fetches_is_an_error(peek: Program, opened: Opened) -> None:
    _, deaf = opened("Deaf", "")
    copy(peek.environment, b"mine")
    error = peek.error("type", deaf, "Zoë")
    assert "did not fetch the text" in error["message"]
    # what a program that hangs will paste when it wakes up; xclip serves a moment after it has forked
    wait_for(lambda: clipboard(peek.environment) == "Zoë".encode(), "the text stays in the clipboard")
    manager = ["sh", "-c", "while xclip -selection clipboard -o; do sleep 0.3; done"]
    with group_of(manager, peek.environment):
        error = peek.error("type", deaf, "Zoë")
    assert "did not fetch the text" in error["message"]


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
    real = shutil.which("xclip")
    copies = f"printf theirs | setsid {real} -selection clipboard -i"
    has_copied = f'until [ "$({real} -selection clipboard -o)" = theirs ]; do sleep 0.01; done'
    theirs = f'case "$*" in "{moment}"*) {copies}; {has_copied} ;; esac'
    xclip = tmp_path / "xclip"
    xclip.write_text(f'#!/bin/sh\n{theirs} >/dev/null 2>&1\nexec {real} "$@"\n')
    xclip.chmod(0o755)
    data = peek.data("type", form_id, "日本", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (typed(form), data["delivered"]) == ("日本", True)
    assert data.get("copy_lost", False) is is_lost


class Windows:
    """A desktop with one window of one colour, in front of which others may come."""

    def __init__(self, patch: pytest.MonkeyPatch, look: Callable[[Windows], Any] = id) -> None:
        """look: called at each look before the act."""
        self.windows = [window(7)]
        bitmap = Bitmap(300, 3, (bytes(900),) * 200)
        patch.setattr(acts, "take_bitmap", lambda *_: (look(self), bitmap)[1])
        self.watch = acts._Watch(self, window(7))  # type: ignore[arg-type]
        patch.setattr(acts, "take_bitmap", lambda *_: bitmap)

    def snapshot(self) -> Scene:
        return Scene(tuple(self.windows), (), ())


def test_verify_that_cannot_look_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Windows) -> Scene:
        raise PeekabooError(ErrorCode.TIMEOUT, "osascript did not end within 10 seconds")

    desktop = Windows(monkeypatch)
    monkeypatch.setattr(Windows, "snapshot", fail)
    assert desktop.watch.effect(None) == {"changed": None}


def test_verify_does_not_name_an_earlier_window(monkeypatch: pytest.MonkeyPatch) -> None:
    desktop = Windows(monkeypatch, lambda self: self.windows.insert(0, window(len(self.windows))))
    assert "new_window" not in desktop.watch.effect(None)
    desktop.windows.insert(0, window(9, title="Sure?"))
    assert desktop.watch.effect(None)["new_window"] == {"window_id": 9, "title": "Sure?"}

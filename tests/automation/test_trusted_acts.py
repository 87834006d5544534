"""Acts on real X11 under interference: covers, menus, lost focus, signals; and the clipboard afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Callable

import pytest
from slow_display import SlowDisplay
from tk_windows import Wish, clipboard, copy, programs_by, window_titled
from witness import XWitness
from worlds import PATIENCE_S, ROOT, Form, Program, wait_for

from peekaboo_min.automation import act as acts

Run = Callable[..., Wish]
Xdotool = Callable[[str], dict[str, str]]
LONG = "a line of text that is typed in pieces " * 20


@pytest.fixture
def xdotool_by(tmp_path: Path) -> Xdotool:
    """Return a function: script -> variables that run it instead of xdotool (`$real` in the script)."""
    return lambda script: programs_by(tmp_path / "bin", f"{script}\nexit", "xdotool")


def grab_by_menu(peek: Program, wish: Run, more: str = "") -> int:
    """Open another program's menu, which grabs pointer and keyboard; return the id of its window."""
    menu = wish(
        "wm withdraw .; toplevel .m; wm overrideredirect .m 1; wm title .m Menu\n"
        f"wm geometry .m 102x60+700+500; tkwait visibility .m; grab -global .m\n{more}\nputs grabbed"
    )
    menu.wait_for("grabbed")
    return int(window_titled(peek, "Menu")["window_id"])


def number_in(error: object, pattern: str) -> int:
    return int(re.search(pattern, str(error))[1])  # type: ignore[index]


def test_focus_may_click_a_title_bar(
    peek: Program, form: Form, form_id: int, wish: Run, xdotool_by: Xdotool
) -> None:
    """ "If raising via APIs is unreliable, **fallback** to clicking a safe point (e.g. window center) to
    ensure focus."
    """
    # imitate a window manager that ignores focus requests
    ignoring = xdotool_by(
        "read -r line\ncase $line in windowactivate*) exit 1 ;; windowmap*) echo 1280 800; exit ;; esac\n"
        '{ echo "$line"; cat; } | $real -'
    )
    wish("wm title . Front; wm geometry . 200x100+800+500; focus -force .")
    front = window_titled(peek, "Front")["window_id"]
    peek.data("focus", front)
    error = peek.error("focus", form_id, **ignoring)
    assert error["code"] == "FOCUS_FAILED" and "PEEKABOO_SAFE_CLICK=1" in error["message"]
    assert window_titled(peek, "Front")["is_focused"]
    ignoring["PEEKABOO_SAFE_CLICK"] = "1"
    peek.data("focus", form_id, **ignoring)
    assert window_titled(peek, form.title)["is_focused"]
    # do not click a covered title bar
    peek.data("focus", front)
    covering = wish(
        "wm withdraw .; toplevel .c; wm overrideredirect .c 1; wm geometry .c 1200x90+0+0; raise .c\n"
        "bind .c <Button> {puts hit}; tkwait visibility .c; puts shown"
    )
    covering.wait_for("shown")
    refused = peek.error("focus", form_id, **ignoring)
    assert refused["code"] == "FOCUS_FAILED" and "PEEKABOO_SAFE_CLICK" not in refused["message"]
    assert covering.lines() == ["shown"] and not form.events("click")


def test_acts_are_refused_under_a_foreign_menu(peek: Program, form: Form, form_id: int, wish: Run) -> None:
    peek.data("focus", form_id)
    menu_id = grab_by_menu(peek, wish, "bind .m <Button> {grab release .m; wm attributes .m -type tooltip}")
    acts = (["focus", form_id], ["type", form_id, "x"], ["press", form_id, "a"])
    for words in acts:
        error = peek.error(*words)
        assert error["code"] == "WINDOW_BLOCKED" and f"window {menu_id}" in error["message"]
    assert form.events("key") == []
    peek.data("screenshot", menu_id)
    peek.data("click", menu_id, 50, 12)
    wait_for(lambda: window_titled(peek, "Menu")["kind"] == "tooltip", "the menu has released its grab")
    for words in acts:
        peek.data(*words)


X11_ACT = ROOT / "tests" / "support" / "x11_act.py"


@pytest.fixture
def witness(peek: Program) -> Iterator[XWitness]:
    """Yield a program with a focused window `w`, which reports its events."""
    with closing(XWitness(peek.environment)) as program:
        program.open("w", x=100, y=100, w=400, h=300, app="Witness")
        peek.data("focus", window_titled(peek, "w")["window_id"])
        yield program


@pytest.fixture
def w(peek: Program, witness: XWitness) -> int:
    """Return the id of the window `w`."""
    return int(window_titled(peek, "w")["window_id"])


@pytest.fixture
def other(peek: Program) -> Iterator[XWitness]:
    """Yield another such program, without a window."""
    with closing(XWitness(peek.environment)) as program:
        yield program


Act = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def act(peek: Program, w: int) -> Iterator[Act]:
    """Yield a function that starts an act on the window `w` in a new process."""
    started: list[subprocess.Popen[str]] = []

    def start(method: str, *arguments: Any) -> subprocess.Popen[str]:
        words = [sys.executable, str(X11_ACT), method, str(w), json.dumps(arguments)]
        environment = {**peek.environment, "PYTHONPATH": str(ROOT)}
        started.append(subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def end(process: subprocess.Popen[str], ending: str) -> str:
    """Send a signal to an act, or kill its xdotool; return the stdout of the act."""
    if ending == "xdotool":
        child = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0]
        with suppress(ProcessLookupError):
            os.kill(int(child), signal.SIGKILL)
    else:
        process.send_signal(signal.Signals[ending])
    return process.communicate(timeout=PATIENCE_S)[0]


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    return json.loads(process.communicate(timeout=PATIENCE_S)[0])


@pytest.mark.parametrize("ending", ["SIGTERM", "SIGKILL", "SIGUSR1", "xdotool"])
def test_drag_releases_its_button_whatever_ends_it(act: Act, witness: XWitness, ending: str) -> None:
    dragging = act("drag", [60, 50], [260, 150], "left")
    press = witness.wait(lambda one: one["event"] == "press")
    out = end(dragging, ending)
    release = witness.wait(lambda one: one["event"] == "release")
    assert (press["x"], press["y"]) == (60, 50)
    assert ending != "SIGUSR1" or (release["x"], release["y"]) == (260, 150), "no drag is cancelled halfway"
    assert ending != "xdotool" or json.loads(out)["code"] == "PROGRAM_FAILED"
    wait_for(lambda: witness.sync() == 0, "the button is up")


def test_click_releases_modifiers_when_killed(act: Act, witness: XWitness) -> None:
    clicking = act("click", [60, 50], "left", 1, ["shift"])
    witness.wait(lambda one: one["event"] == "press")
    end(clicking, "xdotool")
    wait_for(lambda: witness.sync() == 0, "nothing is pressed any more")


def test_act_under_a_cover_is_refused(peek: Program, act: Act, witness: XWitness, other: XWitness) -> None:
    cover = other.open("cover", x=150, y=140, w=80, h=60, popup=True, pid=False)
    for method, *arguments in (
        ("click", [60, 50], "left", 1),
        ("scroll", [60, 50], "down", 3),
        ("drag", [60, 50], [300, 200], "left"),
        ("drag", [300, 200], [60, 50], "left"),  # the drop would reach the other program
    ):
        assert answer(act(method, *arguments))["code"] == "WINDOW_COVERED", (method, arguments)
    moved = answer(act("move_pointer", [60, 50]))
    assert (moved["delivered"], moved["reached_id"]) == (False, cover)
    lid = other.open("lid", x=350, y=300, w=80, h=60, app="Lid")
    window_titled(peek, "lid")
    moved = answer(act("move_pointer", [290, 240]))
    assert (moved["delivered"], moved["reached_id"]) == (False, lid)  # its frame is under the pointer
    moved = answer(act("move_pointer", [10, 10]))
    point, w_bounds = moved.pop("point"), window_titled(peek, "w")["bounds"]
    assert point == {"x": w_bounds["x"] + 10, "y": w_bounds["y"] + 10}
    rest = {"delivered": True, "reached_id": None, "others_typed": 0, "has_lost_copy": False, "reason": ""}
    assert moved == rest
    assert witness.take("press") == other.take("press") == []


def test_click_under_a_foreign_menu_is_lost(peek: Program, act: Act, witness: XWitness, wish: Run) -> None:
    menu_id = grab_by_menu(peek, wish)
    done = answer(act("click", [60, 50], "left", 1))
    assert (done["delivered"], done["reached_id"]) == (False, menu_id)
    assert witness.take("press") == []


def test_acts_during_a_grab_are_not_delivered(
    peek: Program, w: int, witness: XWitness, other: XWitness
) -> None:
    """Launchers and region selectors grab the pointer and the keyboard for the root window."""
    peek.data("screenshot", w)
    other.do("grab keyboard", "root")
    other.do("grab pointer", "root")
    other.sync()
    assert "another program has grabbed the keyboard" in peek.error("type", w, "ab")["message"]
    pressed = peek.data("press", w, "return")
    assert pressed["delivered"] is False and "a grab of the keyboard" in pressed["reason"]
    clicked, dragged = peek.data("click", w, 9, 9, "--clicks", 3), peek.data("drag", w, 9, 9, 50, 9)
    assert clicked["delivered"] is dragged["delivered"] is None
    assert len(other.take("press")) == 2, "a press that may have arrived is not repeated"
    assert witness.take("key") + witness.take("press") == []


@pytest.mark.parametrize(
    ("interrupt", "code"),
    [
        (lambda other, _: other.do("focus", "thief"), "FOCUS_LOST"),
        (lambda other, _: other.do("grab keyboard", "thief"), "FOCUS_LOST"),
        (lambda _, stop: stop.touch(), "POLICY_DENIED"),
        ("SIGUSR1", "CANCELLED"),
        ("SIGTERM", ""),
    ],
    ids=["focus", "grab", "stop file", "SIGUSR1", "SIGTERM"],
)
def test_press_releases_a_held_key_if_interrupted(
    peek: Program, act: Act, witness: XWitness, other: XWitness, tmp_path: Path, interrupt: Any, code: str
) -> None:
    other.open("thief", x=600, y=100, w=200, h=200, app="Thief")
    window_titled(peek, "thief")  # wait until it is mapped; it takes the focus only then
    peek.data("focus", window_titled(peek, "w")["window_id"])
    holding = act("press", "y", 2000, 3, str(tmp_path / "stop"))
    witness.wait(lambda one: one["event"] == "key")
    if callable(interrupt):
        interrupt(other, tmp_path / "stop")
        out = holding.communicate(timeout=PATIENCE_S)[0]
    else:
        out = end(holding, interrupt)
    wait_for(lambda: witness.sync() == 0, "the key is up")
    assert not code or (code in out and "delivered 1 of 3 key presses" in out), out
    assert len(other.take("key")) <= 100  # it repeats until it is released


def test_typing_ends_when_its_popup_is_hidden(peek: Program, wish: Run) -> None:
    popup = "toplevel .p; wm overrideredirect .p 1; wm title .p Popup; wm geometry .p 90x24+650+150"
    wish(f"wm title . Owner; wm geometry . 300x200+600+100; {popup}; bind . <Key> {{wm withdraw .p}}")
    peek.data("focus", window_titled(peek, "Owner")["window_id"])
    error = peek.error("type", window_titled(peek, "Popup")["window_id"], LONG)
    assert error["code"] == "FOCUS_LOST" and "closed" in error["message"]


@pytest.mark.parametrize(("command", "keys"), [("type", [LONG]), ("press", ["y", "--repeat", "3"])])
def test_keys_end_when_the_dialogs_parent_gets_the_focus(
    peek: Program, wish: Run, command: str, keys: list[str]
) -> None:
    dialog = "toplevel .d; wm title .d Dialog; wm transient .d .; wm geometry .d 200x80+650+150"
    wish(f"wm title . Owner; wm geometry . 300x200+600+100; {dialog}; bind .d <Key> {{focus -force .}}")
    error = peek.error(command, window_titled(peek, "Dialog")["window_id"], *keys)
    assert error["code"] == "FOCUS_LOST", "only a popup's keys go to its parent"


def test_display_lock_covers_all_names_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acts, "file_lock", lambda name, *_: name)
    sessions = ("x11-7", "x11-localhost-7", "x11-127.0.0.1-7")
    assert {acts.input_lock(name) for name in sessions} == {"input-x11-7.lock"}
    assert acts.input_lock("x11-host-7") == "input-x11-host-7.lock"


def test_cancelled_typing_ends_after_its_piece(act: Act, witness: XWitness) -> None:
    typing = act("type", "abcdefghijklm" * 3, 50)
    witness.wait(lambda one: one["event"] == "key")
    out = end(typing, "SIGUSR1")
    assert "CANCELLED" in out and "delivered 9 of 39 characters" in out
    assert "".join(key["text"] for key in witness.take("key")) == "abcdefghi"


def test_killed_typing_frees_its_key(peek: Program, w: int, witness: XWitness, xdotool_by: Xdotool) -> None:
    dies = xdotool_by('[ "$1" = - ] || exec $real "$@"\n$real keydown X; kill -9 $$')
    error = peek.error("type", w, "aXb", **dies)
    assert error["code"] == "PROGRAM_FAILED" and "delivered 1 of 3 characters" in error["message"]
    wait_for(lambda: witness.sync() == 0, "the key is up")


def test_act_without_a_record_is_refused(peek: Program, w: int, witness: XWitness) -> None:
    with SlowDisplay(peek.environment["DISPLAY"], 0.0, hidden=b"RECORD") as display:
        error = peek.error("press", w, "a", DISPLAY=display.name)
    assert error["code"] == "PROGRAM_FAILED" and "does not record" in error["message"]
    assert witness.take("key") == []


FAILURES = {
    '$real "$@"; exit 1': "PROGRAM_FAILED",
    "read -r commands": "PROGRAM_FAILED",  # it ends early, with exit code 0
    'echo "No such key name" >&2; $real "$@"': "PROGRAM_FAILED",
    '$real "$@"; echo "X Error of failed request:  BadWindow (invalid parameter)" >&2': "WINDOW_NOT_FOUND",
    '$real "$@"; echo "xdotool: Bad Drawable: 0x7" >&2': "WINDOW_NOT_FOUND",
    '$real "$@"; echo "There are no windows: no window with this id" >&2; exit 1': "WINDOW_NOT_FOUND",
}


@pytest.mark.parametrize(("script", "code"), FAILURES.items())
def test_failure_of_xdotool_is_an_error(
    peek: Program, w: int, xdotool_by: Xdotool, script: str, code: str
) -> None:
    assert peek.error("press", w, "ctrl+a", **xdotool_by(script))["code"] == code


# listings need one X connection and no program; W stands for the window's id
PROGRAMS = {
    "windows": [],
    "list windows --app Witness": [],
    "image": ["maim"],
    "image --app Witness": ["maim"],
    "image --app Witness --max-dimension 90": ["maim", "convert"],
    "screenshot-app-window --appName Witness": ["maim"],
    "screenshot W": ["maim"],
    "press W ctrl+a": ["xdotool"],
    "click W 9 9 --modifiers ctrl": ["xdotool"],
    "drag W 9 9 50 9": ["xdotool"] * 2,  # it looks at its end first
    f"type W {'xy' * 20}": ["xdotool"] * 2,
}


def test_operation_starts_each_program_once(peek: Program, w: int, tmp_path: Path) -> None:
    # ImageMagick is identified with -version first; do not count that
    counted = programs_by(tmp_path / "bin", f'[ "$1" = -version ] || echo $name >> {tmp_path}/log')

    def programs(command: str) -> list[str]:
        (tmp_path / "log").write_text("")
        words = [str(w) if word == "W" else word for word in command.split()]
        peek.data(*words, **counted)
        return (tmp_path / "log").read_text().split()

    assert {command: programs(command) for command in PROGRAMS} == PROGRAMS


@pytest.mark.parametrize(("command", "keys"), [("press", "a"), ("type", "ab")])
def test_keys_that_reach_another_window_are_not_delivered(
    peek: Program, w: int, witness: XWitness, other: XWitness, command: str, keys: str, xdotool_by: Xdotool
) -> None:
    thief = other.open("thief", x=700, y=400, w=200, h=100, app="Thief")
    window_titled(peek, "thief")
    peek.data("focus", w)
    # move the focus after the last check, before the keys
    lost = peek.error(command, w, keys, **xdotool_by(f'$real windowfocus {thief}\nexec $real "$@"'))
    assert lost["code"] == "FOCUS_LOST" and f"window {thief}" in lost["message"]
    assert "".join(key["text"] for key in other.take("key")) == keys
    assert witness.take("key") == []


def test_paste_key_is_not_pressed_if_the_focus_was_lost_meanwhile(
    peek: Program, w: int, witness: XWitness, other: XWitness, tmp_path: Path
) -> None:
    thief = other.open("thief", x=700, y=400, w=200, h=100, app="Thief")
    window_titled(peek, "thief")
    peek.data("focus", w)
    script = f'case "$*" in -quiet*) xdotool windowfocus --sync {thief} ;; esac'
    lost = peek.error("type", w, "é", **programs_by(tmp_path / "bin", script, "xclip"))
    assert lost["code"] == "FOCUS_LOST" and f"window {thief}" in lost["message"]
    assert other.take("key") == [] == witness.take("key")


SLOW_KEYS, BOUNCE_KEYS = (2, ""), (4, "")  # controls of the XKB extension


# controls and another program's hotkey; a command; the characters that arrive, and how many are reported
@pytest.mark.parametrize(
    ("how", "command", "arrived", "reported"),
    [
        (SLOW_KEYS, "type abc", "", ""),
        (SLOW_KEYS, "press a --repeat 2", "", ""),
        (SLOW_KEYS, "type abc --replace", "", ""),
        (BOUNCE_KEYS, "type aabb", "ab", "2 of 4 characters"),
        (BOUNCE_KEYS, "press c --repeat 3", "c", "1 of 3 key presses"),
        ((0, "b"), "type abca", "aca", "3 of 4 characters"),
        ((0, "b"), "type b --replace", "\x01", "0 of 1 characters"),
        ((0, "b"), "press b", "", ""),
        ((0, "a"), "type xyz --replace", "", ""),  # select all
        ((0, "v"), "type é", "", ""),  # paste
        ((0, "v"), "type x\té", "x\t", "2 of 3 characters"),
    ],
)
def test_keys_that_the_window_does_not_get_are_not_delivered(
    peek: Program, w: int, witness: XWitness, how: tuple[int, str], command: str, arrived: str, reported: str
) -> None:
    controls, hotkey = how
    copy(peek.environment, b"mine")
    name, *words = command.split(" ")
    with closing(XWitness(peek.environment)) as other:
        other.do("controls", affected=2 | 4, on=controls)
        for key in hotkey:
            other.do("grab", keysym=ord(key))
        other.sync()
        try:
            reply = peek.run(name, w, *words, "--json").json
        finally:
            other.do("controls", affected=2 | 4, on=0)
            other.sync()
    expected = f"'FOCUS_LOST'.* delivered {reported}" if reported else "'delivered': False, 'reason'"
    assert re.search(expected, str(reply)), reply
    assert "others_typed" not in str(reply)
    assert "".join(key["text"] for key in witness.take_characters()) == arrived
    wait_for(lambda: clipboard(peek.environment) == b"mine", "the clipboard is back")


def test_foreign_shortcut_is_still_pressed(peek: Program, w: int, witness: XWitness, other: XWitness) -> None:
    other.do("grab", keysym=ord("b"))
    other.sync()
    assert peek.data("press", w, "ctrl+b", "--repeat", 3)["delivered"] is False
    assert len(other.take("key")) == 3
    assert witness.take("key") == []


def test_type_on_a_slow_display_takes_its_time(peek: Program, w: int, witness: XWitness) -> None:
    with SlowDisplay(peek.environment["DISPLAY"], 0.06) as slow:
        error = peek.error("type", w, LONG, DISPLAY=slow.name)
        assert error["code"] == "INVALID_ARGUMENT"
        assert 57 < number_in(error, "at most (\\d+) characters") < 120
        pasted = peek.error("type", w, "é" * 5000, DISPLAY=slow.name)
        assert 100 < number_in(pasted, "at most (\\d+) characters") < 400
        assert witness.take("key") == []
        assert peek.data("type", w, "SLOWLY BUT ALL OF IT", DISPLAY=slow.name)["delivered"]
    assert "".join(key["text"] for key in witness.take("key")) == "SLOWLY BUT ALL OF IT"


@pytest.mark.parametrize("text", ["é" * 20_000, "a" * 2_000], ids=["pasted", "with pauses"])
def test_text_that_would_take_too_long_is_refused(
    peek: Program, w: int, witness: XWitness, text: str
) -> None:
    error = peek.error("type", w, text, "--replace")
    assert error["code"] == "INVALID_ARGUMENT"
    assert 1000 < number_in(error, "at most (\\d+) characters") < 10_000
    assert witness.take("key") == []


def test_keys_are_sent_after_pauses(peek: Program, w: int, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("peekaboo_min.desktop.x11.keyboard.pause", waits.append)
    peek.data("press", w, "a", "--repeat", 3)
    peek.data("type", w, "aab\tc")
    assert waits == [0.12, 0.12, 0.0, 0.0, 0.04]


def test_type_counts_keys_before_a_hang(peek: Program, w: int, tmp_path: Path, xdotool_by: Xdotool) -> None:
    gate = tmp_path / "gate"
    waits = xdotool_by(f'$real "$@"; touch {gate}; while [ -e {gate} ]; do sleep 0.01; done')
    with (
        SlowDisplay(peek.environment["DISPLAY"], 0.0) as display,
        peek.start("type", w, "xy" * 15, "--json", DISPLAY=display.name, **waits) as typing,
    ):
        wait_for(gate.exists, "the first piece is typed")
        display.round_trip_s = 60
        gate.unlink()
        out = typing.communicate(timeout=PATIENCE_S)[0].decode()
    assert "TIMEOUT" in out and "delivered at least 20 of 30 characters" in out, out


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, xdotool_by: Xdotool) -> dict[str, str]:
    """Return variables for a slow xdotool; the limits of an act are 3 s, and 1 s for its xdotool."""
    monkeypatch.setattr("peekaboo_min.desktop.x11.keyboard.ACT_S", 3.0)
    monkeypatch.setattr("peekaboo_min.desktop.x11.keyboard.XDOTOOL_S", 1.0)
    monkeypatch.setattr("peekaboo_min.desktop.x11.xdotool.ACT_S", 2.0)
    return xdotool_by('sleep 1.2; $real "$@"')


def test_typing_that_takes_too_long_says_how_much_was_done(
    peek: Program, w: int, witness: XWitness, slow: dict[str, str]
) -> None:
    typed = peek.error("type", w, "xy" * 35, **slow)
    assert typed["code"] == "TIMEOUT"
    assert number_in(typed, "at least (\\d+) of 70") == len(witness.take("key"))


def test_key_whose_time_does_not_fit_is_not_pressed(peek: Program, w: int, slow: dict[str, str]) -> None:
    # xdotool gets more time for a held key
    refused = peek.error("press", w, "f5", "--hold-ms", 1000, "--repeat", 9, **slow)
    assert "send at most 2 times at once" in refused["message"]
    held = peek.error("press", w, "f5", "--hold-ms", 1000, "--repeat", 2, **slow)
    assert number_in(held, "at least (\\d+) of 2") == 1


def test_scroll_that_takes_too_long_says_how_much_was_done(
    peek: Program, w: int, witness: XWitness, slow: dict[str, str]
) -> None:
    peek.data("screenshot", w)
    turned = peek.error("scroll", w, 50, 50, "down", "--amount", 50, **slow)
    assert turned["code"] == "TIMEOUT"
    assert number_in(turned, "(\\d+) of 50 presses") == len(witness.take("press"))


@pytest.mark.usefixtures("form")
def test_type_replaces_by_an_empty_text(peek: Program, w: int, witness: XWitness) -> None:
    """In a window of another toolkit than Tk, beside a window of Tk."""
    peek.data("type", w, "", "--replace")
    assert [key["text"] for key in witness.take_characters()] == ["\x01", "\b"]  # ctrl+a

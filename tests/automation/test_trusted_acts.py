"""Acts on real X11 under interference: covers, menus, lost focus, signals; and the clipboard afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from samples import window
from slow_display import SlowDisplay
from tk_windows import Opened, Wish, clipboard, copy, programs_by, typed, window_titled
from witness import XWitness
from worlds import PATIENCE_S, ROOT, Form, Program, clean_environment, wait_for

from peekaboo_min.automation import act as acts
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import Scene
from peekaboo_min.system.bitmaps import Bitmap

Run = Callable[..., Wish]
Xdotool = Callable[[str], dict[str, str]]
LONG = "a line of text that is typed in pieces " * 20


@pytest.fixture
def xdotool_by(tmp_path: Path) -> Xdotool:
    """Return a function: script -> variables that run it instead of xdotool (`$real` in the script)."""
    return lambda script: programs_by(tmp_path / "bin", f"{script}\nexit", "xdotool")


def cover(wish: Run, geometry: str) -> Wish:
    """Open an unmanaged window in front of all others; it prints `shown`, then `hit` for each click."""
    covering = wish(
        f"wm withdraw .; toplevel .c; wm overrideredirect .c 1; wm geometry .c {geometry}+0+0; raise .c\n"
        "bind .c <Button> {puts hit}; tkwait visibility .c; puts shown"
    )
    covering.wait_for("shown")
    return covering


def grab_by_menu(peek: Program, wish: Run, more: str = "") -> dict[str, Any]:
    """Open another program's menu, which grabs pointer and keyboard; return its window."""
    menu = wish(
        "wm withdraw .; toplevel .m; wm overrideredirect .m 1; wm title .m Menu\n"
        f"wm geometry .m 102x60+700+500; tkwait visibility .m; grab -global .m\n{more}\nputs grabbed"
    )
    menu.wait_for("grabbed")
    return window_titled(peek, "Menu")


def number_in(error: object, pattern: str) -> int:
    return int(re.search(pattern, str(error))[1])  # type: ignore[index]


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
    peek.data("screenshot", owner["window_id"])
    covered = peek.error("click", owner["window_id"], 95, 42)
    hint = f"press escape, or act in the popup's window {popup_id}"
    assert (covered["code"], hint in covered["message"]) == ("WINDOW_COVERED", True), covered
    peek.data("screenshot", popup_id)
    answer = peek.data("click", popup_id, 45, 12, "--verify")
    program.wait_for("hit")
    assert (answer["delivered"], answer["window_closed"]) == (True, True)


# Tcl that reacts to an act: (command, expected fields of the reply)
REACTIONS = {
    "bind . <ButtonRelease> {wm iconify .}": (
        "click ID 150 100 --verify",
        {"delivered": True, "changed": True, "window_closed": None},
    ),
    # openbox takes the frame off before the program ends
    "bind . <ButtonPress> {wm withdraw .}": ("click ID 150 100", {"delivered": True}),
    # the second click would hit the window that the first click opened
    "bind . <ButtonPress> {toplevel .p; wm overrideredirect .p 1; wm geometry .p 300x200+600+100; raise .p\n"
    "bind .p <ButtonPress> {puts hit}; update}": ("click ID 150 100 --clicks 3", {"delivered": None}),
}


@pytest.mark.parametrize("script", REACTIONS, ids=["minimised", "withdrawn", "opened"])
def test_act_reports_its_window_minimised_or_covered(peek: Program, opened: Opened, script: str) -> None:
    command, expected = REACTIONS[script]
    program, window_id = opened("Shy", script)
    answer = peek.data(*command.replace("ID", str(window_id)).split())
    assert ({key: answer.get(key) for key in expected}, program.lines()) == (expected, [])


def test_click_that_moves_its_window_is_delivered(peek: Program, opened: Opened, xdotool_by: Xdotool) -> None:
    _, window_id = opened("Shy", "bind . <ButtonPress> {wm geometry . +300+300}")
    # delay xdotool's exit until the window has moved, like on a busy machine
    place = f"$real getwindowgeometry {window_id}"
    slow = xdotool_by(f'old=$({place}); $real "$@"; until [ "$({place})" != "$old" ]; do :; done')
    assert peek.data("click", window_id, 150, 100, **slow)["delivered"] is True


def test_click_on_a_reused_window_id_is_refused(peek: Program, wish: Run) -> None:
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
        close(second)  # another client connected or left; the server numbers windows by client
        return None

    again = wait_for(reused, "an id is used again")
    assert again["pid"] is None
    assert peek.error("click", again["window_id"], 50, 50)["code"] == "STALE_SCREENSHOT"


def test_focus_clicks_a_title_bar_if_allowed(
    peek: Program, form: Form, form_id: int, wish: Run, xdotool_by: Xdotool
) -> None:
    """ "If raising via APIs is unreliable, **fallback** to clicking a safe point (e.g. window center) to
    ensure focus."
    """
    # imitate a window manager that ignores focus requests
    ignoring = xdotool_by(
        "read -r line\ncase $line in windowactivate*) exit 1 ;; windowmap*) exit 0 ;; esac\n"
        '{ echo "$line"; cat; } | $real -'
    )
    wish("wm title . Front; wm geometry . 200x100+800+500; focus -force .")
    front = window_titled(peek, "Front")["window_id"]
    peek.data("focus", front)
    argv = ["focus", form_id, "--json"]
    error = peek.run(*argv, **ignoring).error
    assert (error["code"], "PEEKABOO_SAFE_CLICK=1" in error["message"]) == ("FOCUS_FAILED", True)
    assert window_titled(peek, "Front")["is_focused"]
    peek.data(*argv[:2], **ignoring, PEEKABOO_SAFE_CLICK="1")
    assert window_titled(peek, form.title)["is_focused"]
    # do not click a covered title bar
    peek.data("focus", front)
    covering = cover(wish, "1200x90")
    refused = peek.run(*argv, **ignoring, PEEKABOO_SAFE_CLICK="1")
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
    wait_for(lambda: window_titled(peek, "Menu")["kind"] == "tooltip", "the menu has released its grab")
    for words in acts:
        peek.data(*words)


X11_ACT = ROOT / "tests" / "support" / "x11_act.py"


@pytest.fixture
def witness(peek: Program) -> Iterator[XWitness]:
    """Yield a program with a focused window `w`, which reports its events."""
    program = XWitness(peek.environment)
    program.open("w", x=100, y=100, w=400, h=300, app="Witness")
    peek.data("focus", window_titled(peek, "w")["window_id"])
    yield program
    program.close()


@pytest.fixture
def other(peek: Program) -> Iterator[XWitness]:
    """Yield another such program, without a window."""
    program = XWitness(peek.environment)
    yield program
    program.close()


Act = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def act(peek: Program, witness: XWitness) -> Iterator[Act]:
    """Yield a function that starts an act on the window `w` in a new process."""
    started: list[subprocess.Popen[str]] = []

    def start(method: str, *arguments: Any) -> subprocess.Popen[str]:
        window_id = window_titled(peek, "w")["window_id"]
        words = [sys.executable, str(X11_ACT), method, str(window_id), json.dumps(arguments)]
        environment = {**peek.environment, "PYTHONPATH": str(ROOT)}
        started.append(subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def kill_child_of(process: subprocess.Popen[str]) -> None:
    """Kill the xdotool of an act, unless it has ended."""
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
    if ending in ("by itself", "SIGUSR1"):  # SIGUSR1 does not stop a drag halfway
        assert (release["x"], release["y"]) == (260, 150)
    if ending in ("by itself", "xdotool"):
        reply = json.loads(out)
        assert reply.get("code", reply.get("delivered")) == (ending == "by itself" or "PROGRAM_FAILED")
    wait_for(lambda: witness.sync() == 0, "the button is up")


def test_click_releases_modifiers_when_killed(act: Act, witness: XWitness) -> None:
    clicking = act("click", [60, 50], "left", 1, ["shift"])
    witness.wait(lambda one: one["event"] == "press")
    kill_child_of(clicking)
    clicking.communicate(timeout=60)
    wait_for(lambda: witness.sync() == 0, "nothing is pressed any more")


def test_scroll_drag_and_move_detect_a_cover(
    peek: Program, act: Act, witness: XWitness, other: XWitness
) -> None:
    cover = other.open("cover", x=150, y=140, w=80, h=60, popup=True, pid=False)
    for method, arguments in (("scroll", ["down", 3]), ("drag", [[300, 200], "left"])):
        assert answer(act(method, [60, 50], *arguments))["code"] == "WINDOW_COVERED"
    # the drop would reach the other program
    assert answer(act("drag", [300, 200], [60, 50], "left"))["code"] == "WINDOW_COVERED"
    moved = answer(act("move_pointer", [60, 50]))
    assert (moved["delivered"], moved["reached_id"]) == (False, cover)
    lid = other.open("lid", x=350, y=300, w=80, h=60, app="Lid")
    window_titled(peek, "lid")
    moved = answer(act("move_pointer", [290, 240]))
    assert (moved["delivered"], moved["reached_id"]) == (False, lid)  # its frame is under the pointer
    assert answer(act("move_pointer", [10, 10]))["delivered"] is True
    assert (witness.take("press"), other.take("press")) == ([], [])


def test_click_into_a_foreign_menu_is_not_delivered(
    peek: Program, act: Act, witness: XWitness, wish: Run
) -> None:
    menu = grab_by_menu(peek, wish)
    done = answer(act("click", [60, 50], "left", 1))
    assert (done["delivered"], done["reached_id"]) == (False, menu["window_id"])
    assert witness.take("press") == []


def test_scroll_that_gets_covered_is_not_delivered(act: Act, witness: XWitness) -> None:
    scrolling = act("scroll", [60, 50], "down", 50)
    witness.wait(lambda one: one["event"] == "press")
    witness.open("menu", x=130, y=120, w=80, h=60, popup=True)  # over the pixel, by the same program
    assert answer(scrolling)["delivered"] is not True
    assert len(witness.take("press")) < 50


def test_scroll_that_no_program_receives_is_unknown(peek: Program, other: XWitness) -> None:
    window_id = other.open("deaf", x=100, y=100, w=300, h=200, app="Deaf", takes_buttons=False)
    window_titled(peek, "deaf")
    peek.data("screenshot", window_id)
    assert peek.data("scroll", window_id, 50, 50, "down")["delivered"] is None


@pytest.mark.parametrize("how", ["focus", "grab", "stop file", "SIGUSR1", "SIGTERM"])
def test_press_releases_a_held_key_if_interrupted(
    peek: Program, act: Act, witness: XWitness, other: XWitness, tmp_path: Path, how: str
) -> None:
    stop = tmp_path / "stop"
    other.open("thief", x=600, y=100, w=200, h=200, app="Thief")
    window_titled(peek, "thief")  # wait until it is mapped; it takes the focus only then
    peek.data("focus", window_titled(peek, "w")["window_id"])
    holding = act("press", "y", 2000 if how == "grab" else 5000, 3, str(stop))
    witness.wait(lambda one: one["event"] == "key")
    if how == "focus":
        other.do("focus", "thief")
    elif how == "grab":
        other.do("grab keyboard", "thief")
    elif how == "stop file":
        stop.touch()
    else:
        holding.send_signal(signal.Signals[how])
    out = holding.communicate(timeout=60)[0]
    wait_for(lambda: witness.sync() == 0, "the key is up")
    codes = {
        "focus": "FOCUS_LOST",
        "grab": "FOCUS_LOST",
        "stop file": "POLICY_DENIED",
        "SIGUSR1": "CANCELLED",
        "SIGTERM": None,
    }
    assert (json.loads(out)["code"] if out else None) == codes[how]
    assert "delivered 1 of 3 key presses" in out or how == "SIGTERM"
    assert len(other.take("key")) <= (100 if how == "grab" else 20)  # it repeats until it is released


def test_type_that_would_take_too_long_is_refused(peek: Program, form: Form, form_id: int) -> None:
    error = peek.error("type", form_id, "é" * 20_000)
    assert error["code"] == "INVALID_ARGUMENT"
    assert 1000 < number_in(error, "at most (\\d+) characters") < 10_000
    assert typed(form) == ""


def type_until(peek: Program, form: Form, form_id: int, act: Callable[[Any], Any], **more: str) -> str:
    """Call `act` while a long text is typed; return the stdout of the typing."""
    with peek.start("type", form_id, LONG, "--json", **more) as process:
        wait_for(lambda: len(form.events("key")) > 30, "it types")
        act(process)
        return str(process.communicate(timeout=PATIENCE_S)[0].decode())


def test_stop_file_ends_typing_between_pieces(
    peek: Program, form: Form, form_id: int, tmp_path: Path
) -> None:
    stop = tmp_path / "stop"
    out = type_until(peek, form, form_id, lambda _: stop.touch(), PEEKABOO_STOP_FILE=str(stop))
    assert "POLICY_DENIED" in out
    delivered = number_in(out, f"delivered (\\d+) of {len(LONG)} characters")
    assert delivered == len(typed(form)) < len(LONG) / 2


def test_type_stops_when_the_focus_is_stolen(peek: Program, form: Form, form_id: int, wish: Run) -> None:
    thieves: list[Wish] = []
    steal = "wm geometry . 200x100+900+600; focus -force .\nbind . <Key> {puts leaked}"
    out = type_until(peek, form, form_id, lambda _: thieves.append(wish(steal)))
    assert "FOCUS_LOST" in out
    assert len(thieves[0].lines()) <= 20


def test_type_waits_for_a_process_with_another_environment(
    peek: Program, form: Form, form_id: int, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = Program(peek.words, clean_environment(tmp_path / "other", DISPLAY=f"{form.display}.0"))
    type_until(peek, form, form_id, lambda _: other.data("type", form_id, "ZZZ"))
    assert typed(form) == f"{LONG}ZZZ"


def test_display_lock_covers_all_names_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acts, "file_lock", lambda name, *_: name)
    sessions = ("x11-7", "x11-localhost-7", "x11-127.0.0.1-7", "x11-host-7")
    assert [acts.input_lock(name) for name in sessions] == ["input-x11-7.lock"] * 3 + [
        "input-x11-host-7.lock"
    ]


def test_cancelled_typing_ends_after_its_piece(act: Act, witness: XWitness) -> None:
    typing = act("type", "abcdefghijklm" * 3, 50)
    witness.wait(lambda one: one["event"] == "key")
    typing.send_signal(signal.SIGUSR1)
    told = answer(typing)
    assert (told["code"], "delivered 9 of 39 characters" in told["message"]) == ("CANCELLED", True), told
    assert "".join(key["text"] for key in witness.take("key")) == "abcdefghi"


def test_typing_releases_its_key_when_xdotool_dies(
    peek: Program, witness: XWitness, xdotool_by: Xdotool
) -> None:
    dies = xdotool_by('[ "$1" = - ] || exec $real "$@"\n$real keydown X; kill -9 $$')
    error = peek.run("type", window_titled(peek, "w")["window_id"], "aXb", "--json", **dies).error
    assert (error["code"], "delivered 1 of 3 characters" in error["message"]) == ("PROGRAM_FAILED", True), (
        error
    )
    wait_for(lambda: witness.sync() == 0, "the key is up")


@pytest.mark.parametrize("words", [["press", "a"], ["type", "ab"]])
def test_keys_that_reach_another_window_are_not_delivered(
    peek: Program, witness: XWitness, other: XWitness, words: list[str], xdotool_by: Xdotool
) -> None:
    thief = other.open("thief", x=700, y=400, w=200, h=100, app="Thief")
    window_id = window_titled(peek, "w")["window_id"]
    window_titled(peek, "thief")
    peek.data("focus", window_id)
    # move the focus after the last check, before the keys
    late = xdotool_by(f'$real windowfocus {thief}\nexec $real "$@"')
    lost = peek.run(words[0], window_id, words[1], "--json", **late).error
    assert (lost["code"], f"window {thief}" in lost["message"]) == ("FOCUS_LOST", True)
    assert [key["text"] for key in other.take("key")] == list(words[1])
    assert witness.take("key") == []


SLOW_KEYS, BOUNCE_KEYS = 2, 4  # controls of the XKB extension


@pytest.fixture
def controls(witness: XWitness) -> Iterator[Callable[[int], None]]:
    """Switches controls of the keyboard on, for people who hit keys by mistake; they are off at the end."""

    def switch_on(controls: int) -> None:
        witness.do("controls", affected=controls, on=controls)
        witness.sync()

    yield switch_on
    witness.do("controls", affected=SLOW_KEYS | BOUNCE_KEYS, on=0)
    witness.sync()


# what is done, by which program, with which argument -> commands, what arrives, and how much is reported:
# False for nothing
UNDELIVERED: dict[str, tuple[dict[str, int], list[tuple[str, str, object]]]] = {
    "slow keys": (
        {"controls": SLOW_KEYS},
        [("type abc", "", False), ("press a --repeat 2", "", False), ("type abc --replace", "", False)],
    ),
    "bounce keys": (
        {"controls": BOUNCE_KEYS},
        [("type aabb", "ab", "2 of 4 characters"), ("press c --repeat 3", "c", "1 of 3 key presses")],
    ),
    "a hotkey": (
        {"grab": ord("b")},
        [
            ("type abca", "aca", "3 of 4 characters"),
            ("type b", "", False),
            ("type b --replace", "\x01", "0 of 1 characters"),
            ("press b", "", False),
        ],
    ),
    "select all as a hotkey": ({"grab": ord("a")}, [("type xyz --replace", "", False)]),
    "paste as a hotkey": (
        {"grab": ord("v")},
        [("type é", "", False), ("type x\té", "x\t", "2 of 3 characters")],
    ),
}


@pytest.mark.parametrize(("how", "acts"), UNDELIVERED.values(), ids=UNDELIVERED)
def test_keys_that_the_window_does_not_get_are_not_delivered(
    peek: Program,
    witness: XWitness,
    other: XWitness,
    controls: Callable[[int], None],
    how: dict[str, int],
    acts: list[tuple[str, str, object]],
) -> None:
    window_id = window_titled(peek, "w")["window_id"]
    copy(peek.environment, b"mine")
    if "controls" in how:
        controls(how["controls"])
    else:
        other.do("grab", keysym=how["grab"])
        other.sync()
    for command, arrived, reported in acts:
        name, *words = command.split(" ")
        answer = peek.run(name, window_id, *words, "--json").json
        if reported is False:
            assert (answer["data"]["delivered"], bool(answer["data"]["reason"])) == (False, True), command
        else:
            error = answer["error"]
            assert (error["code"], f"delivered {reported}" in error["message"]) == ("FOCUS_LOST", True), error
        assert "others_typed" not in str(answer), command
        assert "".join(key["text"] for key in witness.take_characters()) == arrived, command
    wait_for(lambda: clipboard(peek.environment) == b"mine", "the clipboard is back")


def test_keys_that_another_program_passes_on_late_are_delivered(
    peek: Program, witness: XWitness, other: XWitness
) -> None:
    other.do("grab", keysym=ord("b"), replays_after=0.2)
    other.sync()
    assert peek.data("type", window_titled(peek, "w")["window_id"], "abc")["delivered"] is True
    assert "".join(key["text"] for key in witness.take("key")) == "abc"


def test_shortcut_of_another_program_is_pressed_as_often_as_asked(
    peek: Program, witness: XWitness, other: XWitness
) -> None:
    other.do("grab", keysym=ord("b"))
    other.sync()
    answer = peek.data("press", window_titled(peek, "w")["window_id"], "ctrl+b", "--repeat", 3)
    assert (answer["delivered"], len(other.take("key")), witness.take("key")) == (False, 3, [])


def test_keys_to_a_window_that_takes_none_are_not_delivered(peek: Program, other: XWitness) -> None:
    window_id = other.open("deaf", x=100, y=100, w=300, h=200, app="Deaf", takes_keys=False)
    window_titled(peek, "deaf")
    for words in (["type", window_id, "abc"], ["press", window_id, "return"]):
        assert peek.data(*words)["delivered"] is False


def test_keys_that_only_another_program_receives_are_not_delivered(
    peek: Program, witness: XWitness, other: XWitness
) -> None:
    window_id = witness.open("deaf", x=100, y=100, w=300, h=200, app="Deaf", takes_keys=False)
    window_titled(peek, "deaf")
    other.do("listen", window_id=window_id)
    other.sync()
    assert peek.data("type", window_id, "abc")["delivered"] is False
    witness.do("listen", window_id=window_id)  # by another connection of the window's own program
    witness.sync()
    assert peek.data("type", window_id, "abc")["delivered"] is True


def test_keys_to_a_window_of_another_program_inside_are_delivered(
    peek: Program, witness: XWitness, other: XWitness
) -> None:
    window_id = window_titled(peek, "w")["window_id"]
    other.open("inner", x=0, y=0, w=200, h=200, inside=window_id)
    other.do("focus", "inner")
    other.take("key")
    assert peek.data("type", window_id, "abc")["delivered"] is True
    assert [key["text"] for key in other.take("key")] == ["a", "b", "c"]


def test_keys_to_a_window_that_refuses_the_focus_are_not_delivered(peek: Program, other: XWitness) -> None:
    window_id = other.open("shy", x=100, y=100, w=300, h=200, app="Shy", input_hint=False)
    window_titled(peek, "shy")
    answer = peek.run("type", window_id, "abc", "--json").json
    has_arrived = len(other.take("key")) == 3  # focused though it asked not to be
    assert answer.get("data", {}).get("delivered", False) is has_arrived


def test_held_key_that_repeats_is_pressed_once(peek: Program, witness: XWitness) -> None:
    answer = peek.data("press", window_titled(peek, "w")["window_id"], "y", "--hold-ms", 1500)
    assert (answer["delivered"], answer.get("others_typed")) == (True, None)
    assert len(witness.take("key")) > 1


def test_type_on_a_slow_display_takes_its_time(peek: Program, witness: XWitness) -> None:
    window_id = window_titled(peek, "w")["window_id"]
    with SlowDisplay(peek.environment["DISPLAY"], 0.06) as slow:
        error = peek.error("type", window_id, LONG, DISPLAY=slow.name)
        most = number_in(error, "at most (\\d+) characters")
        assert (error["code"], 57 < most < len(LONG)) == ("INVALID_ARGUMENT", True)
        assert witness.take("key") == []
        assert peek.data("type", window_id, "SLOWLY BUT ALL OF IT", DISPLAY=slow.name)["delivered"]
    assert "".join(key["text"] for key in witness.take("key")) == "SLOWLY BUT ALL OF IT"


def test_type_on_a_display_that_hangs_says_how_much_was_delivered(
    peek: Program, witness: XWitness, tmp_path: Path, xdotool_by: Xdotool
) -> None:
    window_id, gate = window_titled(peek, "w")["window_id"], tmp_path / "gate"
    waits = xdotool_by(f'$real "$@"; touch {gate}; while [ -e {gate} ]; do sleep 0.01; done')
    with SlowDisplay(peek.environment["DISPLAY"], 0.0) as display:
        words = ["type", window_id, "xy" * 15, "--json"]
        with peek.start(*words, DISPLAY=display.name, **waits) as typing:
            wait_for(gate.exists, "the first piece is typed")
            display.round_trip_s = 60
            gate.unlink()
            out = typing.communicate(timeout=PATIENCE_S)[0].decode()
    assert "TIMEOUT" in out and "delivered at least 20 of 30 characters" in out, out


def test_act_that_takes_too_long_says_how_much_was_done(
    peek: Program, witness: XWitness, xdotool_by: Xdotool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("keyboard", "xdotool"):
        monkeypatch.setattr(f"peekaboo_min.desktop.x11.{module}.ACT_S", 2.0)
    window_id, slow = window_titled(peek, "w")["window_id"], xdotool_by('sleep 1.2; $real "$@"')
    peek.data("screenshot", window_id)
    typed = peek.run("type", window_id, "xy" * 25, "--json", **slow).error
    assert (typed["code"], len(witness.take("key"))) == (
        "TIMEOUT",
        number_in(typed, "at least (\\d+) of 50"),
    )
    # no key is pressed whose time does not fit, and xdotool gets more time for a held key
    monkeypatch.setattr("peekaboo_min.desktop.x11.keyboard.ACT_S", 3.0)
    monkeypatch.setattr("peekaboo_min.desktop.x11.keyboard.XDOTOOL_S", 1.0)
    held = peek.run("press", window_id, "f5", "--hold-ms", 1000, "--repeat", 2, "--json", **slow).error
    assert number_in(held, "at least (\\d+) of 2") == 1
    turned = peek.run("scroll", window_id, 50, 50, "down", "--amount", 50, "--json", **slow).error
    assert (turned["code"], len(witness.take("press"))) == (
        "TIMEOUT",
        number_in(turned, "(\\d+) of 50 presses"),
    )


def test_type_replaces_by_an_empty_text(peek: Program, witness: XWitness) -> None:
    """In a window of another toolkit than Tk."""
    peek.data("type", window_titled(peek, "w")["window_id"], "", "--replace")
    assert [key["text"] for key in witness.take_characters()] == ["\x01", "\b"]  # ctrl+a


def test_type_counts_characters_before_a_focus_loss(
    peek: Program, form: Form, form_id: int, opened: Opened, xdotool_by: Xdotool
) -> None:
    _, thief = opened("Thief", "")
    peek.data("focus", form_id)
    late = xdotool_by(f'$real "$@"\n[ "$1" != - ] || $real windowfocus --sync {thief}')
    lost = peek.run("type", form_id, "xy" * 15, "--json", **late).error
    assert (lost["code"], "delivered 20 of 30 characters" in lost["message"]) == ("FOCUS_LOST", True)
    peek.data("focus", form_id)
    assert typed(form) == "xy" * 10


class Windows:
    """Desktop with one plain window; tests add others in front of it."""

    def __init__(self, patch: pytest.MonkeyPatch, look: Callable[[Windows], Any] = id) -> None:
        """Call `look` at each capture before the act."""
        self.windows = [window(7)]
        bitmap = Bitmap(300, 3, (bytes(900),) * 200)
        patch.setattr(acts, "take_bitmap", lambda *_: (look(self), bitmap)[1])
        self.watch = acts._Watch(self, window(7))  # type: ignore[arg-type]
        patch.setattr(acts, "take_bitmap", lambda *_: bitmap)

    def snapshot(self) -> Scene:
        return Scene(tuple(self.windows), (), ())


def test_verify_that_cannot_read_the_windows_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
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

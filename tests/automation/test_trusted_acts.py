"""Acts on real X11 that could go wrong: covered, blocked, stolen, stopped, killed; and what the clipboard
holds then.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Optional

import headless
import pytest
from accessible import group_of
from hostile.stage import XWitness
from in_process import InProcessProgram
from samples import window
from worlds import PATIENCE_S, ROOT, Form, Program, clean_environment, wait_for

from peekaboo_min.automation import act as acts
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import Scene
from peekaboo_min.system.images import Bitmap

LONG = "a line of text that is typed in pieces " * 20
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


@pytest.fixture
def peek(display: str, tmp_path: Path) -> Program:
    return InProcessProgram(clean_environment(tmp_path, DISPLAY=display))


@pytest.fixture
def xdotool_by(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """The variables with which a shell script, in which `$real` is xdotool, runs in its place."""

    def write(script: str) -> dict[str, str]:
        path = tmp_path / "bin" / "xdotool"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\nreal={shutil.which('xdotool')}\n{script}\n")
        path.chmod(0o755)
        return {"PEEKABOO_BIN_DIR": str(path.parent)}

    return write


@pytest.fixture
def form_id(peek: Program, form: Form) -> int:
    return window_titled(peek, form.title)["window_id"]


def window_titled(peek: Program, title: str) -> dict[str, Any]:
    def find() -> list[dict[str, Any]]:
        return [one for one in peek.data("windows")["windows"] if one["title"] == title]

    return wait_for(find, f"{title} is listed")[0]


@pytest.fixture
def wish(display: str, tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen]]:
    """Runs a Tcl script in a process of its own, called Other."""
    started: list[subprocess.Popen] = []

    def run(script: str) -> subprocess.Popen:
        path = tmp_path / f"other{len(started)}.tcl"
        path.write_text(script)
        words = ["wish", str(path), "-name", "Other"]
        environment = {**os.environ, "DISPLAY": display}
        started.append(subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


def tops_of(display: str) -> str:
    environment = {**os.environ, "DISPLAY": display}
    return subprocess.run(
        ["xwininfo", "-root", "-tree"], env=environment, capture_output=True, text=True
    ).stdout


def clipboard(peek: Program, target: str = "UTF8_STRING") -> bytes:
    words = ["xclip", "-selection", "clipboard", "-target", target, "-o"]
    return subprocess.run(words, env=peek.environment, capture_output=True, timeout=PATIENCE_S).stdout


def copy(peek: Program, data: bytes, *words: str) -> None:
    argv = ["xclip", "-selection", "clipboard", *words, "-i"]
    subprocess.run(argv, input=data, env=peek.environment, check=True, stdout=subprocess.DEVNULL)


def typed(form: Form) -> str:
    """What stands in the form's first field."""
    before = len(form.events("text"))
    form.xdotool("key", "F12")
    return str(form.wait_for_event("text", after=before)["name"])


# clicks


def test_a_window_that_no_manager_knows_over_the_target_is_not_clicked(
    peek: Program, form: Form, form_id: int, wish: Callable[[str], subprocess.Popen], tmp_path: Path
) -> None:
    hit = tmp_path / "hit"
    peek.data("screenshot", form_id)
    wish(
        f"wm withdraw .; toplevel .c; wm overrideredirect .c 1; wm geometry .c 900x700+0+0; raise .c\n"
        f"bind .c <Button> {{close [open {hit} w]}}"
    )
    wait_for(lambda: "900x700" in tops_of(peek.environment["DISPLAY"]), "the cover is there")
    finished = wait_for(
        lambda: (lambda one: one if one.code else None)(
            peek.run("click", form_id, *form.centre("agree"), "--json")
        ),
        "the click is refused",
    )
    assert finished.error["code"] == "WINDOW_COVERED"
    assert (form.events("click")[1:], hit.exists()) == ([], False)


def test_a_popup_is_listed_after_its_owner_and_clicked_without_focusing_it(
    peek: Program, wish: Callable[[str], subprocess.Popen], tmp_path: Path
) -> None:
    hit = tmp_path / "hit"
    wish(
        "wm title . Owner; wm geometry . 300x200+600+100; toplevel .p; wm overrideredirect .p 1\n"
        f"wm geometry .p 90x24+650+150; raise .p; bind .p <Button> {{close [open {hit} w]; destroy .p}}"
    )
    owner = window_titled(peek, "Owner")

    def find() -> list[dict[str, Any]]:
        return [one for one in peek.data("windows")["windows"] if one["kind"] == "popup"]

    popup = wait_for(find, "the popup is listed")[0]
    assert (popup["owner_name"], popup["parent_id"]) == ("Other", owner["window_id"])
    assert (popup["bounds"]["width"], popup["bounds"]["height"]) == (90, 24)
    ids = [one["window_id"] for one in peek.data("windows")["windows"]]
    assert ids.index(popup["window_id"]) == ids.index(owner["window_id"]) + 1
    assert peek.data("list", "windows", "--app", "Other")["windows"] == [
        {"window_title": "Owner", "window_index": 0}
    ]
    assert peek.error("focus", popup["window_id"])["code"] == "FOCUS_FAILED"
    denied = peek.run("click", popup["window_id"], 5, 5, "--json", PEEKABOO_DENY_APPS="Other")
    assert denied.error["code"] == "POLICY_DENIED"
    peek.data("screenshot", popup["window_id"])
    answer = peek.data("click", popup["window_id"], 45, 12, "--verify")
    wait_for(hit.exists, "the popup was clicked")
    assert (answer["delivered"], answer["window_closed"]) == (True, True)


def test_a_window_that_a_click_minimises_has_changed_and_is_not_closed(
    peek: Program, wish: Callable[[str], subprocess.Popen]
) -> None:
    wish("wm title . Shy; wm geometry . 300x200+600+100; bind . <ButtonRelease> {wm iconify .}")
    window_id = window_titled(peek, "Shy")["window_id"]
    peek.data("screenshot", window_id)
    answer = peek.data("click", window_id, 150, 100, "--verify")
    assert (answer["changed"], answer.get("window_closed")) == (True, None)


def test_a_second_click_does_not_go_to_what_the_first_one_opened(
    peek: Program, wish: Callable[[str], subprocess.Popen], tmp_path: Path
) -> None:
    hit = tmp_path / "hit"
    wish(
        "wm title . Opener; wm geometry . 300x200+600+100; bind . <ButtonPress> {\n"
        "toplevel .p; wm overrideredirect .p 1; wm geometry .p 300x200+600+100; raise .p\n"
        f"bind .p <ButtonPress> {{close [open {hit} w]}}; update}}"
    )
    window_id = window_titled(peek, "Opener")["window_id"]
    peek.data("screenshot", window_id)
    assert peek.data("click", window_id, 150, 100, "--clicks", 3)["delivered"] is None
    assert not hit.exists()


def test_a_modal_dialog_blocks_its_parent_and_a_transient_window_does_not(
    peek: Program, wish: Callable[[str], subprocess.Popen]
) -> None:
    wish("wm title . Parent; wm geometry . 300x200+600+100; toplevel .d; wm title .d Sure; wm transient .d .")
    parent = window_titled(peek, "Parent")["window_id"]
    wait_for(lambda: window_titled(peek, "Sure")["is_focused"], "the window manager has focused it")
    dialog = window_titled(peek, "Sure")
    assert (dialog["kind"], dialog["parent_id"], dialog["is_modal"]) == ("dialog", parent, False)
    peek.data("press", parent, "escape")
    state = ["-f", "_NET_WM_STATE", "32a", "-set", "_NET_WM_STATE", "_NET_WM_STATE_MODAL"]
    subprocess.run(["xprop", "-id", str(dialog["window_id"]), *state], env=peek.environment, check=True)
    assert window_titled(peek, "Sure")["is_modal"] is True
    for words in (["press", parent, "escape"], ["type", parent, "x"]):
        error = peek.error(*words)
        assert (error["code"], str(dialog["window_id"]) in error["message"]) == ("WINDOW_BLOCKED", True)
    peek.data("press", dialog["window_id"], "escape")


def test_an_id_that_another_window_got_is_noticed_without_a_pid(
    peek: Program, wish: Callable[[str], subprocess.Popen]
) -> None:
    def opened_same() -> tuple[subprocess.Popen, dict[str, Any]]:
        started = wish("wm title . Same; wm geometry . 300x200+600+100")
        return started, window_titled(peek, "Same")

    def close(running: subprocess.Popen) -> None:
        running.kill()
        running.wait()
        wait_for(lambda: "Same" not in tops_of(peek.environment["DISPLAY"]), "it is gone")

    def reused() -> Optional[dict[str, Any]]:
        first, window = opened_same()
        peek.data("screenshot", window["window_id"])
        close(first)
        second, again = opened_same()
        if again["window_id"] == window["window_id"]:
            return again
        close(second)  # another client came or went meanwhile, and the server numbers by clients
        return None

    again = wait_for(reused, "an id is used again")
    assert again["pid"] is None
    assert peek.error("click", again["window_id"], 50, 50)["code"] == "STALE_SCREENSHOT"


# focus


def test_a_title_bar_is_clicked_where_activation_does_not_work_and_that_is_allowed(
    peek: Program, form: Form, form_id: int, wish: Callable[[str], subprocess.Popen], tmp_path: Path,
    xdotool_by: Callable[[str], dict[str, str]],
) -> None:  # fmt: skip
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
    hit = tmp_path / "hit"
    wish(
        f"wm withdraw .; toplevel .c; wm overrideredirect .c 1; wm geometry .c 1200x90+0+0; raise .c\n"
        f"bind .c <Button> {{close [open {hit} w]}}"
    )
    wait_for(lambda: "1200x90" in tops_of(peek.environment["DISPLAY"]), "the cover is there")
    refused = peek.run(*asked, **deaf, PEEKABOO_SAFE_CLICK="1")
    assert refused.error["code"] == "FOCUS_FAILED"
    assert "PEEKABOO_SAFE_CLICK" not in refused.error["message"]
    assert not hit.exists()
    assert form.events("click") == []


@pytest.mark.parametrize("words", [["focus"], ["type", "x"], ["press", "a"]], ids=lambda words: words[0])
def test_while_another_programs_menu_has_the_keyboard_no_other_window_is_said_to_have_it(
    peek: Program, form: Form, form_id: int, wish: Callable[[str], subprocess.Popen], tmp_path: Path,
    words: list[str],
) -> None:  # fmt: skip
    peek.data("focus", form_id)
    grabbed = tmp_path / "grabbed"
    wish(
        "wm withdraw .; toplevel .m; wm overrideredirect .m 1; wm title .m Menu\n"
        "wm geometry .m 102x25+700+500; tkwait visibility .m; grab -global .m\n"
        f"bind .m <Button> {{grab release .m; wm attributes .m -type tooltip}}\nclose [open {grabbed} w]"
    )
    wait_for(grabbed.exists, "the other program has grabbed the keyboard")
    menu = window_titled(peek, "Menu")
    assert (menu["kind"], menu["owner_name"]) == ("popup", "Toplevel")
    error = peek.error(words[0], form_id, *words[1:])
    assert (error["code"], f"window {menu['window_id']}" in error["message"]) == ("WINDOW_BLOCKED", True)
    assert form.events("key") == []
    peek.data("screenshot", menu["window_id"])
    peek.data("click", menu["window_id"], 50, 12)
    wait_for(lambda: window_titled(peek, "Menu")["kind"] == "tooltip", "it is a menu no more")
    peek.data(words[0], form_id, *words[1:])


# wheel, drag, held keys


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


def test_the_wheel_turns_as_often_as_asked_over_the_window(act: Act, witness: XWitness) -> None:
    wheels = {}
    for direction in ("up", "down", "left", "right"):
        assert answer(act("scroll", [60, 50], direction, 7))["delivered"] is True
        wheels[direction] = [(one["button"], one["x"], one["y"]) for one in witness.take("press")]
    assert wheels == {
        "up": [(4, 60, 50)] * 7,
        "down": [(5, 60, 50)] * 7,
        "left": [(6, 60, 50)] * 7,
        "right": [(7, 60, 50)] * 7,
    }


def test_a_triple_click_holds_its_modifiers_and_releases_them(act: Act, witness: XWitness) -> None:
    assert answer(act("click", [60, 50], "left", 3, ["ctrl", "shift"]))["delivered"] is True
    assert witness.sync() == 0
    assert [(one["button"], one["state"] & 0xFF) for one in witness.take("press")] == [(1, 5)] * 3


@pytest.mark.parametrize("ending", ["by itself", "SIGTERM", "SIGKILL", "SIGUSR1", "xdotool"])
def test_a_dragged_button_is_released_whatever_ends_the_drag(
    act: Act, witness: XWitness, ending: str
) -> None:
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
    if ending == "by itself":
        assert json.loads(out)["delivered"] is True
    if ending == "xdotool":
        assert json.loads(out)["code"] == "PROGRAM_FAILED"
    wait_for(lambda: witness.sync() == 0, "the button is up")


def test_the_modifiers_of_a_click_are_released_when_its_program_is_killed(
    act: Act, witness: XWitness
) -> None:
    clicking = act("click", [60, 50], "left", 1, ["shift"])
    witness.wait(lambda one: one["event"] == "press")
    kill_child_of(clicking)
    clicking.communicate(timeout=60)
    wait_for(lambda: witness.sync() == 0, "nothing is pressed any more")


def test_a_drag_whose_pointer_is_moved_before_its_release_is_not_known(
    peek: Program, wish: Callable[[str], subprocess.Popen]
) -> None:
    wish(
        "wm title . Warps; wm geometry . 300x200+600+100; "
        "bind . <B1-Motion> {event generate . <Motion> -warp 1 -x 5 -y 5}"
    )
    window_id = window_titled(peek, "Warps")["window_id"]
    peek.data("screenshot", window_id)
    assert peek.data("drag", window_id, 50, 50, 200, 150)["delivered"] is None


def test_the_wheel_the_drag_and_the_pointer_see_a_cover(act: Act, witness: XWitness, other: XWitness) -> None:
    cover = other.open("cover", x=150, y=140, w=80, h=60, popup=True, pid=False)
    for method, arguments in (("scroll", ["down", 3]), ("drag", [[300, 200], "left"])):
        assert answer(act(method, [60, 50], *arguments))["code"] == "WINDOW_COVERED"
    # what is dropped there would be the other program's
    assert answer(act("drag", [300, 200], [60, 50], "left"))["code"] == "WINDOW_COVERED"
    moved = answer(act("move_pointer", [60, 50]))
    assert (moved["delivered"], moved["reached_id"]) == (False, cover)
    assert answer(act("move_pointer", [10, 10]))["delivered"] is True
    assert (witness.take("press"), other.take("press")) == ([], [])


def test_a_press_that_another_programs_open_menu_takes_is_reported_as_its(
    peek: Program, act: Act, witness: XWitness, wish: Callable[[str], subprocess.Popen]
) -> None:
    ready = Path(peek.environment["HOME"]) / "grabbed"
    wish(
        "wm withdraw .; toplevel .m; wm overrideredirect .m 1; wm title .m Menu\n"
        f"wm geometry .m 80x60+700+500; tkwait visibility .m; grab -global .m; close [open {ready} w]"
    )
    wait_for(ready.exists, "the other program has grabbed the pointer")
    menu = next(one for one in peek.data("windows")["windows"] if one["title"] == "Menu")
    done = answer(act("click", [60, 50], "left", 1))
    assert (done["delivered"], done["reached_id"]) == (False, menu["window_id"])
    assert witness.take("press") == []


def test_presses_that_are_not_made_any_more_are_not_reported_as_delivered(
    act: Act, witness: XWitness
) -> None:
    scrolling = act("scroll", [60, 50], "down", 50)
    witness.wait(lambda one: one["event"] == "press")
    witness.open("menu", x=130, y=120, w=80, h=60, popup=True)  # over the pixel, and of the same program
    assert answer(scrolling)["delivered"] is not True
    assert len(witness.take("press")) < 50


def test_a_key_is_pressed_again_and_held(act: Act, witness: XWitness) -> None:
    assert answer(act("press", "shift+x", 0, 5))["delivered"] is True
    assert [one["text"] for one in witness.take("key")] == ["X"] * 5
    holding = act("press", "y", 1500, 1)
    first = witness.wait(lambda one: one["event"] == "key")
    assert witness.sync() == 1
    assert answer(holding)["delivered"] is True
    done = time.monotonic()
    assert witness.sync() == 0
    assert {one["text"] for one in witness.events if one["event"] == "key"} == {"y"}
    assert done - first["at"] > 1.2


@pytest.mark.parametrize("how", ["focus", "stop file", "SIGUSR1", "SIGTERM"])
def test_a_held_key_is_released_when_it_may_not_go_on(
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
    assert len(other.take("key")) <= 20


def test_what_takes_longer_than_a_call_may_is_refused_with_the_limit(
    peek: Program, form: Form, form_id: int
) -> None:
    error = peek.error("type", form_id, "é" * 20_000)
    assert error["code"] == "INVALID_ARGUMENT"
    most = int(re.search(r"at most (\d+) characters", str(error))[1])  # type: ignore[index]
    assert 1000 < most < 10_000
    assert typed(form) == ""


# typing


def test_the_stop_file_ends_typing_between_two_pieces(
    peek: Program, form: Form, form_id: int, tmp_path: Path
) -> None:
    stop = tmp_path / "stop"
    with peek.start("type", form_id, LONG, "--json", PEEKABOO_STOP_FILE=str(stop)) as process:
        wait_for(lambda: len(form.events("key")) > 30, "it types")
        stop.touch()
        out = process.communicate(timeout=PATIENCE_S)[0].decode()
    assert "POLICY_DENIED" in out and "character(s) went out" in out
    assert len(typed(form)) < len(LONG) / 2


def test_focus_that_is_stolen_ends_typing_and_is_reported(
    peek: Program, form: Form, form_id: int, wish: Callable[[str], subprocess.Popen], tmp_path: Path
) -> None:
    leaked = tmp_path / "leaked"
    with peek.start("type", form_id, LONG, "--json") as process:
        wait_for(lambda: len(form.events("key")) > 30, "it types")
        wish(
            f"set f [open {leaked} w]; wm geometry . 200x100+900+600; focus -force .\n"
            "bind . <Key> {puts -nonewline $f %A; flush $f}"
        )
        out = process.communicate(timeout=PATIENCE_S)[0].decode()
    assert "FOCUS_LOST" in out
    assert len(leaked.read_text()) <= 20


@pytest.mark.parametrize("words", [["press", "a"], ["type", "ab"]])
def test_keys_that_another_program_got_in_the_last_moment_are_not_delivered(
    peek: Program, witness: XWitness, other: XWitness, words: list[str],
    xdotool_by: Callable[[str], dict[str, str]],
) -> None:  # fmt: skip
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


def test_focus_that_goes_between_two_pieces_is_reported_with_what_arrived(
    peek: Program, form: Form, form_id: int, wish: Callable[[str], subprocess.Popen],
    xdotool_by: Callable[[str], dict[str, str]],
) -> None:  # fmt: skip
    wish("wm title . Thief; wm geometry . 200x100+900+600")
    thief = window_titled(peek, "Thief")["window_id"]
    peek.data("focus", form_id)
    late = xdotool_by(f'$real "$@"\n[ "$1" != - ] || $real windowfocus --sync {thief}')
    lost = peek.run("type", form_id, "xy" * 15, "--json", **late).error
    assert lost["code"] == "FOCUS_LOST"
    assert re.findall(r"\d+", lost["message"].partition("before that")[2]) == ["20"]
    peek.data("focus", form_id)
    assert typed(form) == "xy" * 10


def test_after_kill_9_at_most_the_running_piece_arrives_and_nobody_acts_before(
    peek: Program, form: Form, form_id: int
) -> None:
    with peek.start("type", form_id, LONG, "--json") as process:
        wait_for(lambda: len(form.events("key")) > 30, "it types")
        process.kill()
        process.communicate()
    before = len(form.events("key"))
    peek.data("type", form_id, "ZZZ")
    text = typed(form)
    assert text.endswith("ZZZ") and "Z" not in text[:-3]
    assert len(form.events("key")) - before <= 20 + 3 + 10  # the piece, ours, and shift and F12 keys


# the clipboard


def test_a_picture_in_the_clipboard_is_put_back_as_itself(peek: Program, form: Form, form_id: int) -> None:
    copy(peek, PNG, "-target", "image/png")
    peek.data("type", form_id, "Zoë")
    assert typed(form) == "Zoë"
    assert clipboard(peek, "image/png") == PNG
    assert clipboard(peek, "TARGETS").split() == [b"TARGETS", b"image/png"]  # and as nothing else


def test_what_could_not_be_put_back_is_refused_and_nothing_is_pasted(
    peek: Program, form: Form, form_id: int
) -> None:
    copy(peek, b"thing", "-target", "application/x-thing")
    error = peek.error("type", form_id, "Zoë")
    assert "application/x-thing" in error["message"] and "nothing was pasted" in error["message"]
    assert clipboard(peek, "application/x-thing") == b"thing"
    assert typed(form) == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_clipboard_is_put_back_when_a_signal_ends_us(
    peek: Program, form: Form, form_id: int, number: signal.Signals
) -> None:
    copy(peek, b"mine")
    with peek.start("type", form_id, "äöü" * 100, "--json") as process:
        wait_for(lambda: clipboard(peek) not in (b"mine", b""), "it pastes")
        process.send_signal(number)
        process.communicate(timeout=PATIENCE_S)
    wait_for(lambda: clipboard(peek) == b"mine", "the clipboard is back")


def test_a_program_that_never_stops_asking_for_the_clipboard_does_not_stop_a_paste(
    peek: Program, form: Form, form_id: int
) -> None:
    copy(peek, b"mine")
    poll = "while :; do timeout 1 xclip -selection clipboard -o >/dev/null 2>&1; done"
    with headless.running(["sh", "-c", poll], env=peek.environment):
        peek.data("type", form_id, "Zoë")
    assert typed(form) == "Zoë"
    wait_for(lambda: clipboard(peek) == b"mine", "the clipboard is back")


def test_a_program_that_asks_for_the_formats_first_gets_the_text_and_not_what_was_copied_before(
    peek: Program, wish: Callable[[str], subprocess.Popen], tmp_path: Path
) -> None:
    pasted = tmp_path / "pasted"
    wish(
        "wm title . Slow; wm geometry . 300x200+600+100; "
        "proc get {type} {selection get -selection CLIPBOARD -type $type}; bind . <Control-v> {get TARGETS; "
        f"after 300 {{set f [open {pasted} w]; fconfigure $f -encoding utf-8; puts $f [get UTF8_STRING]; "
        "close $f}}"
    )
    copy(peek, b"mine")
    peek.data("type", window_titled(peek, "Slow")["window_id"], "Zoë")
    wait_for(lambda: pasted.exists() and pasted.read_text(encoding="utf-8") == "Zoë\n", "it is pasted")
    wait_for(lambda: clipboard(peek) == b"mine", "the clipboard is back")


def test_a_paste_that_nobody_fetches_is_an_error(
    peek: Program, wish: Callable[[str], subprocess.Popen]
) -> None:
    wish("wm title . Deaf; wm geometry . 300x200+600+100")
    deaf = window_titled(peek, "Deaf")["window_id"]
    copy(peek, b"mine")
    error = peek.error("type", deaf, "Zoë")
    assert "did not fetch the text" in error["message"]
    # what a program that hangs will paste when it wakes up; xclip serves a moment after it has forked
    wait_for(lambda: clipboard(peek) == "Zoë".encode(), "the text stays in the clipboard")
    manager = ["sh", "-c", "while xclip -selection clipboard -o; do sleep 0.3; done"]
    with group_of(manager, peek.environment):
        error = peek.error("type", deaf, "Zoë")
    assert "did not fetch the text" in error["message"]


def test_what_another_program_copied_meanwhile_stays_in_the_clipboard(
    peek: Program, wish: Callable[[str], subprocess.Popen]
) -> None:
    wish(
        "wm title . Greedy; wm geometry . 300x200+600+100; "
        "bind . <Control-v> {clipboard clear; clipboard append theirs}"
    )
    greedy = window_titled(peek, "Greedy")["window_id"]
    copy(peek, b"mine")
    assert "another program took the clipboard" in peek.error("type", greedy, "Zoë")["message"]
    assert clipboard(peek) == b"theirs"


def test_what_is_copied_after_a_paste_while_keys_follow_stays_in_the_clipboard(
    peek: Program, form: Form, form_id: int
) -> None:
    copy(peek, b"mine")
    with peek.start("type", form_id, "Zoë" + "x" * 100, "--delay-ms", 20, "--json") as process:
        wait_for(lambda: typed(form)[3:] != "", "it types by keys again")
        copy(peek, b"theirs")
        process.communicate(timeout=PATIENCE_S)
    assert clipboard(peek) == b"theirs"


# effects


class Windows:
    """A desktop with one window of one colour, in front of which others may come."""

    def __init__(self) -> None:
        self.windows = [window(7)]
        self.bitmap = Bitmap(300, 3, (bytes(900),) * 200)

    def snapshot(self) -> Scene:
        return Scene(tuple(self.windows), (), ())

    def watch(self, patch: pytest.MonkeyPatch, look: Callable[[], Any]) -> acts._Watch:
        """Watches the window; `look` is called at each look before the act."""
        patch.setattr(acts, "take_bitmap", lambda *_: (look(), self.bitmap)[1])
        watch = acts._Watch(self, window(7))  # type: ignore[arg-type]
        patch.setattr(acts, "take_bitmap", lambda *_: self.bitmap)
        return watch


def test_a_look_that_fails_after_the_act_is_no_failure_of_the_act(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Scene:
        raise PeekabooError(ErrorCode.TIMEOUT, "osascript did not end within 10 seconds")

    watch = Windows().watch(monkeypatch, lambda: None)
    monkeypatch.setattr(Windows, "snapshot", lambda _: fail())
    assert watch.effect(None) == {"changed": None}


def test_a_window_that_came_before_the_act_is_not_its_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    desktop = Windows()
    watch = desktop.watch(monkeypatch, lambda: desktop.windows.insert(0, window(len(desktop.windows))))
    assert "new_window" not in watch.effect(None)
    desktop.windows.insert(0, window(9, title="Sure?"))
    assert watch.effect(None)["new_window"] == {"window_id": 9, "title": "Sure?"}

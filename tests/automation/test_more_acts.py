"""Scroll, drag, move, click with modifiers, replace, hold and repeat: on X11, and the application reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import pytest
from fakemac import FakeMac
from in_process import InProcessProgram
from macs import mac_environment
from tk_windows import Wish, window_titled
from worlds import Program, wait_for

# It reports what reached it, a line for each event: `wheel 5 40 30`, `key a 0 1200`.
PAD = r"""
wm title . TITLE
wm geometry . 420x320+80+60
proc say {args} { puts [join $args " "] }
canvas .pad -width 200 -height 150 -background white -highlightthickness 0
ttk::scale .slider -from 0 -to 100 -length 300 -command {say slider}
entry .field -width 30
place .pad -x 20 -y 20
place .slider -x 20 -y 190
place .field -x 20 -y 260
bind .pad <ButtonPress> {if {%b > 3} {say wheel %b %x %y %s} else {say press %b %x %y %s}}
bind .pad <Triple-Button-1> {say triple}
bind .pad <ButtonRelease> {say release %b %x %y}
bind .pad <B1-Motion> {say dragged %x %y}
bind .pad <Motion> {say moved %x %y}
bind . <KeyPress> {say key %K %s %t}
bind . <KeyRelease> {say up %K %s %t}
bind . <F12> {say field <[.field get]>}
focus .field
after 100 {say ready}
"""
SLIDER = (32, 199)  # its handle at 0


class Pad:
    """A window of PAD, and what it reported."""

    def __init__(self, wish: Callable[..., Wish], title: str = "Pad", name: str = "Pad") -> None:
        self._wish = wish(PAD.replace("TITLE", title), name)
        self._wish.wait_for("ready")

    def lines(self, kind: str = "") -> list[list[str]]:
        rows = [line.split(" ") for line in self._wish.lines()]
        return [row[1:] for row in rows if row[0] == kind] if kind else rows

    def wait_for(self, kind: str, count: int = 1) -> list[list[str]]:
        return wait_for(lambda: self.lines(kind)[count - 1 :] and self.lines(kind), f"{count} {kind}")


@pytest.fixture
def pad(wish: Callable[..., Wish]) -> Pad:
    return Pad(wish)


@pytest.fixture
def pad_id(peek: Program, pad: Pad) -> int:
    found = window_titled(peek, "Pad")["window_id"]
    peek.data("screenshot", found)
    return found


def audit(peek: Program) -> list[dict[str, Any]]:
    (path,) = Path(peek.environment["XDG_STATE_HOME"]).rglob("audit.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# Tk shows buttons 6 and 7 as 4 and 5 with shift
WHEEL = (("down", "5", 0, 4), ("up", "4", 0, 1), ("left", "4", 1, 2), ("right", "5", 1, 3))


def test_scroll_turns_the_asked_notches_over_the_pixel(peek: Program, pad: Pad, pad_id: int) -> None:
    for direction, button, shift, amount in WHEEL:
        before = len(pad.lines("wheel"))
        answer = peek.data("scroll", pad_id, 60, 50, direction, "--amount", amount)
        pad.wait_for("wheel", before + amount)
        turned = [(*row[:3], int(row[3]) & 1) for row in pad.lines("wheel")[before:]]
        assert turned == [(button, "40", "30", shift)] * amount
        point = answer.pop("point")
        assert answer == {
            "window_id": pad_id,
            "pixel": {"x": 60, "y": 50},
            "clamped": False,
            "delivered": True,
            "changed": None,
        }
        line = audit(peek)[-1]
        assert (line["action"], line["app"], line["point"]) == ("scroll", "Pad", point)
        assert (line["direction"], line["amount"]) == (direction, amount)


def test_drag_moves_a_slider_to_its_end(peek: Program, pad: Pad, pad_id: int) -> None:
    answer = peek.data("drag", pad_id, *SLIDER, 310, SLIDER[1], "--verify")
    assert float(pad.wait_for("slider")[-1][0]) >= 90
    assert (answer["delivered"], answer["changed"], answer["clamped"]) == (True, True, False)
    assert answer["to_pixel"] == {"x": 310, "y": SLIDER[1]}
    assert answer["to_point"]["x"] - answer["point"]["x"] == 310 - SLIDER[0]


def test_move_presses_nothing(peek: Program, pad: Pad, pad_id: int) -> None:
    assert peek.data("move", pad_id, 77, 66)["delivered"] is True
    wait_for(lambda: pad.lines("moved")[-1:] == [["57", "46"]], "the pointer is there")
    assert pad.lines("press") == []


def test_click_with_modifiers_and_three_clicks_arrive(peek: Program, pad: Pad, pad_id: int) -> None:
    peek.data("click", pad_id, 60, 50, "--modifiers", "ctrl,shift")
    state = int(pad.wait_for("press")[0][3])
    assert state & 0b101 == 0b101
    peek.data("click", pad_id, 60, 50, "--clicks", 3)
    pad.wait_for("triple")
    # nothing is held any more
    assert int(pad.lines("press")[-1][3]) & 0b1101 == 0
    assert audit(peek)[-2]["modifiers"] == ["ctrl", "shift"]


def field_of(peek: Program, pad: Pad, pad_id: int) -> str:
    count = len(pad.lines("field"))
    peek.data("press", pad_id, "f12")
    return " ".join(pad.wait_for("field", count + 1)[-1])


def test_type_replaces_what_a_field_holds(peek: Program, pad: Pad, pad_id: int) -> None:
    """ "`type_text(window_id, text)`": an empty text means something only where it replaces one."""
    peek.data("type", pad_id, "old text")
    assert field_of(peek, pad, pad_id) == "<old text>"
    answer = peek.data("type", pad_id, "new", "--replace")
    assert answer == {"window_id": pad_id, "characters": 3, "delivered": True, "changed": None}
    assert field_of(peek, pad, pad_id) == "<new>"
    peek.data("type", pad_id, "日本", "--replace")
    assert field_of(peek, pad, pad_id) == "<日本>"
    assert peek.data("type", pad_id, "", "--replace")["characters"] == 0
    assert field_of(peek, pad, pad_id) == "<>"
    assert [one["replace"] for one in audit(peek) if "replace" in one] == [True] * 3
    assert peek.error("type", pad_id, "")["code"] == "INVALID_ARGUMENT"


def test_type_replaces_nothing_in_a_terminal(peek: Program, wish: Callable[..., Wish]) -> None:
    terminal = Pad(wish, "Terminal", "xterm")
    window_id = window_titled(peek, "Terminal")["window_id"]
    error = peek.error("type", window_id, "ls", "--replace")
    assert (error["code"], "select all" in error["message"]) == ("INVALID_ARGUMENT", True)
    peek.data("type", window_id, "ls")
    terminal.wait_for("key", 2)
    assert [row[0] for row in terminal.lines("key")] == ["l", "s"]


def test_press_repeats_and_holds(peek: Program, pad: Pad, pad_id: int) -> None:
    peek.data("press", pad_id, "down", "--repeat", 4)
    pad.wait_for("up", 4)
    assert [row[0] for row in pad.lines("key")] == ["Down"] * 4
    peek.data("press", pad_id, "f5", "--hold-ms", 400)
    up = wait_for(lambda: [row for row in pad.lines("up") if row[0] == "F5"], "F5 is released")[-1]
    down = next(row for row in pad.lines("key") if row[0] == "F5")
    assert int(up[2]) - int(down[2]) >= 350


def test_stop_file_ends_a_held_key(peek: Program, pad: Pad, pad_id: int, tmp_path: Path) -> None:
    stop = tmp_path / "HALT"
    words = ("press", pad_id, "f5", "--hold-ms", 5000, "--repeat", 3, "--json")
    with peek.start(*words, PEEKABOO_STOP_FILE=str(stop)) as process:
        pad.wait_for("key")
        stop.touch()
        out = process.communicate(timeout=60)[0].decode()
    assert "POLICY_DENIED" in out and "1 of 3 key press(es) went out" in out
    pad.wait_for("up")
    assert {row[0] for row in pad.lines("key")} == {"F5"}


def test_type_pauses_between_the_keys(peek: Program, pad: Pad, pad_id: int) -> None:
    peek.data("type", pad_id, "abcd", "--delay-ms", 120)
    pad.wait_for("key", 4)
    times = [int(row[2]) for row in pad.lines("key")]
    assert min(after - before for before, after in zip(times, times[1:])) >= 90, times


# 60 50 is a pixel, "a" a key or a text
BAD = (
    ("scroll 60 50 down --amount 0", "amount is 0"),
    ("scroll 60 50 down --amount 51", "amount is 51"),
    ("scroll 60 50 inwards", "inwards"),
    ("click 60 50 --clicks 4", "clicks is 4"),
    ("click 60 50 --modifiers hyper", "hyper"),
    ("click 60 50 --modifiers fn", "fn"),
    ("drag 60 50 90 90 --button fourth", "fourth"),
    ("drag 60 50 nan 90", "not a number"),
    ("type a --delay-ms 201", "delay_ms is 201"),
    (f"type {'x' * 500} --delay-ms 200", "delay_ms times the characters"),
    ("press a --hold-ms 5001", "hold_ms is 5001"),
    ("press a --repeat 0", "repeat is 0"),
    ("press a --repeat 51", "repeat is 51"),
    ("press a --repeat 50 --hold-ms 5000", "hold_ms times repeat"),
)


def test_acts_out_of_range_are_refused(peek: Program, pad: Pad, pad_id: int) -> None:
    before = pad.lines()
    for command, problem in BAD:
        name, *arguments = command.split()
        error = peek.error(name, pad_id, *arguments)
        assert (error["code"], problem in error["message"]) == ("INVALID_ARGUMENT", True), command
    peek.data("press", pad_id, "a", "--repeat", 50)
    pad.wait_for("up", 50)
    assert [row[0] for row in pad.lines("key")] == ["a"] * 50
    assert [row for row in pad.lines() if row[0] not in ("key", "up")] == before


def test_focus_that_fails_names_what_would_allow_it(mac: FakeMac) -> None:
    """ "Fallback to clicking a safe point (e.g. window center) to ensure focus": where the user allows it."""
    on_mac = InProcessProgram(mac_environment(mac))
    mac.switch(activation="stubborn")
    error = on_mac.error("focus", 1090)
    assert (error["code"], "PEEKABOO_SAFE_CLICK=1" in error["message"]) == ("FOCUS_FAILED", True)


def test_drag_and_move_need_a_screenshot_and_clamp(peek: Program, pad: Pad, pad_id: int) -> None:
    answer = peek.data("drag", pad_id, 60, 50, 60, 320)
    assert (answer["clamped"], answer["to_pixel"]["y"]) == (True, 319)
    error = peek.error("move", pad_id, 60, 50, "--screenshot-id", "0" * 16)
    assert error["code"] == "STALE_SCREENSHOT"

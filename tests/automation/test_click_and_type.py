"""Click, drag, type, press, scroll on real X11; the application reports what arrived."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

import pytest
from tk_windows import Wish, audit, window_titled
from worlds import Form, Program, both_forms, wait_for


@both_forms
def test_click_by_a_pixel_arrives(on_x11: Program, form: Form, form_window: int, tmp_path: Path) -> None:
    shot = on_x11.data("screenshot", form_window, "--path", tmp_path / "form.png")
    assert Path(shot["path"]).read_bytes().startswith(b"\x89PNG")
    answer = on_x11.data("click", form_window, *form.centre("agree"), "--verify")
    assert form.wait_for_event("toggle") == {"event": "toggle", "widget": "agree", "value": 1}
    clicked = form.events("click")[-1]
    assert (clicked["x"], clicked["y"]) == (answer["point"]["x"], answer["point"]["y"])
    assert answer["delivered"] and answer["changed"]


def test_click_with_the_middle_button_arrives(peek: Program, form: Form, form_id: int) -> None:
    peek.data("screenshot", form_id)
    peek.data("click", form_id, *form.centre("name"), "--button", "middle")
    assert form.wait_for_event("click")["button"] == 2


# spelling: key symbol and modifier mask (1 shift, 4 control, 8 alt)
KEYS = {
    "ctrl+shift+t": ("T", 5), "ctrl,a": ("a", 4), "cmd+,": ("comma", 4), "alt-g": ("g", 8),
    "enter": ("Return", 0), "page_down": ("Next", 0), "ctrl": ("Control_L", 0), "super": ("Super_L", 0),
    "keypad_9": ("KP_9", 0), "KP_Enter": ("KP_Enter", 0),
}  # fmt: skip


@pytest.mark.parametrize(("key", "expected"), KEYS.items())
def test_press_arrives(peek: Program, form: Form, form_id: int, key: str, expected: tuple[str, int]) -> None:
    peek.data("press", form_id, key)
    keysym, modifiers = expected
    (event,) = wait_for(
        lambda: [one for one in form.events("key") if one["keysym"] == keysym], f"{keysym} arrives"
    )
    assert int(event["state"]) & 0b1101 == modifiers


# It prints a line for each event it receives: `wheel 5 40 30`, `key a 0 1200`.
PAD = r"""
wm title . TITLE
wm geometry . 420x320+80+60
proc say {args} { puts [join $args " "] }
canvas .pad -width 200 -height 150 -background white -highlightthickness 0
entry .field -width 30
place .pad -x 20 -y 20
place .field -x 20 -y 260
bind .pad <ButtonPress> {if {%b > 3} {say wheel %b %x %y %s} else {say press %b %x %y %s}}
bind .pad <Triple-Button-1> {say triple}
bind .pad <Motion> {say moved %x %y}
bind . <KeyPress> {say key %K %s %t}
bind . <KeyRelease> {say up %K %s %t}
bind . <F12> {say field <[.field get]>}
focus .field
after 100 {say ready}
"""


class Pad:
    """Window of PAD and the events that it reported."""

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


# Tk shows buttons 6 and 7 as 4 and 5 with shift
@pytest.mark.parametrize(
    ("direction", "button", "shift", "amount"),
    [("down", "5", 0, 4), ("up", "4", 0, 1), ("left", "4", 1, 2), ("right", "5", 1, 3)],
)
def test_scroll_turns_the_asked_notches_over_the_pixel(
    peek: Program, pad: Pad, pad_id: int, direction: str, button: str, shift: int, amount: int
) -> None:
    answer = peek.data("scroll", pad_id, 60, 50, direction, "--amount", amount)
    turned = [(*row[:3], int(row[3]) & 1) for row in pad.wait_for("wheel", amount)]
    assert turned == [(button, "40", "30", shift)] * amount
    assert answer["delivered"] is True
    expected = {"action": "scroll", "point": answer["point"], "direction": direction, "amount": amount}
    assert expected.items() <= audit(peek)[-1].items() and {"time", "pid", "app"} <= audit(peek)[-1].keys()


def test_click_with_modifiers_and_three_clicks_arrive(peek: Program, pad: Pad, pad_id: int) -> None:
    peek.data("click", pad_id, 60, 50, "--modifiers", "ctrl,shift")
    peek.data("click", pad_id, 90, 80, "--clicks", 3, "--modifiers", "shift")
    pad.wait_for("triple")
    peek.data("click", pad_id, 60, 50, "--button", "right")
    pressed = [(row[0], int(row[3]) & 0b1101) for row in pad.wait_for("press", 4)]
    assert pressed == [("1", 5), ("1", 1), ("1", 1), ("3", 0)]  # no modifier is held
    assert audit(peek)[-3]["modifiers"] == ["ctrl", "shift"]


@pytest.mark.parametrize("text", ["new", "日本", ""])
def test_type_replaces_what_a_field_holds(peek: Program, pad: Pad, pad_id: int, text: str) -> None:
    """ "`type_text(window_id, text)`": an empty text is valid only with --replace."""
    peek.data("type", pad_id, "old text")
    answer = peek.data("type", pad_id, text, "--replace")
    assert answer["characters"] == len(text) and answer["delivered"]
    peek.data("press", pad_id, "f12")
    assert pad.wait_for("field")[-1] == [f"<{text}>"]
    assert audit(peek)[-2]["replace"] is True
    assert "old text" not in str(audit(peek)) and audit(peek)[0]["characters"] == 8


def test_type_pauses_between_keys(peek: Program, pad: Pad, pad_id: int) -> None:
    peek.data("type", pad_id, "abcd", "--delay-ms", 120)
    times = [int(row[2]) for row in pad.wait_for("key", 4)]
    assert min(after - before for before, after in zip(times, times[1:])) >= 90, times


def test_type_of_a_text_beyond_its_limits_is_refused(peek: Program) -> None:
    for text, delay_ms, code in (
        ("x" * 20_000, 0, "WINDOW_NOT_FOUND"),
        ("x" * 20_001, 0, "INVALID_ARGUMENT"),
        ("\n" * 500 + "\t" * 500, 0, "WINDOW_NOT_FOUND"),
        ("\n" * 500 + "\t" * 501, 0, "INVALID_ARGUMENT"),
        ("x" * 400, 100, "WINDOW_NOT_FOUND"),
        ("x" * 400, 101, "INVALID_ARGUMENT"),
        ("a\x07", 0, "INVALID_ARGUMENT"),
    ):
        assert peek.error("type", 1, "--delay-ms", delay_ms, "--", text)["code"] == code, text[-3:]

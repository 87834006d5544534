"""Click, type, press, scroll, drag, move, verify on real X11; the application reports what arrived."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Callable, Optional

import pytest
from tk_windows import Wish, audit, programs_by, window_titled
from worlds import Form, OpenForm, Program, both_forms, wait_for


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


def test_click_in_a_shrunk_screenshot_hits(peek: Program, form: Form, form_id: int) -> None:
    shot = peek.data("screenshot", form_id, "--max-dimension", 277)
    assert max(shot["image_width"], shot["image_height"]) == 277
    x, y = form.centre("agree")
    pixel = x * shot["scale"], y * shot["scale"]
    rect = peek.data("click", form_id, *pixel, "--verify")["changed_rect"]
    assert form.wait_for_event("toggle")["value"] == 1
    # changed_rect is in pixels of the shrunk screenshot
    assert rect["image_width"] == shot["image_width"]
    assert rect["x"] <= pixel[0] <= rect["x"] + rect["width"] <= shot["image_width"]
    assert rect["y"] <= pixel[1] <= rect["y"] + rect["height"] <= shot["image_height"]


def test_click_raises_a_covered_window(peek: Program, form: Form, form_id: int, open_form: OpenForm) -> None:
    peek.data("screenshot", form_id)
    cover = open_form("Cover", "+70+70")
    form.xdotool("windowfocus", "--sync", str(form_id))  # without raising it
    peek.data("click", form_id, *form.centre("agree"))
    assert form.wait_for_event("toggle")["value"] == 1
    assert cover.events("click") == []


def test_verify_tells_a_blinking_caret_a_change_and_a_window(peek: Program, form: Form, form_id: int) -> None:
    peek.data("screenshot", form_id)
    peek.data("click", form_id, *form.centre("name"))
    form.wait_for_event("click")
    assert peek.data("press", form_id, "f9", "--verify")["changed"] is False
    assert peek.data("press", form_id, "x", "--verify")["changed"] is True
    finished = peek.run("click", form_id, *form.centre("details"), "--verify")
    details = window_titled(peek, "Details")["window_id"]
    assert finished.out.rstrip().endswith(f"window {details} 'Details' opened")


# The window in each capture: A, B, C, or A with a caret (a); the last one stays. Two captures come before the
# act, more if they differ.
LOOKS = {
    "nothing": ("AAA", False),
    "at once": ("AAB", True),
    "late": ("AAAAAB", True),
    "for a moment": ("AAABA", None),
    "first the caret": ("AAaaB", True),
    "a caret that blinks": ("AAaaAa", False),
    "a caret that blinked before": ("AaAaAa", False),
    "a character": ("AAa", True),
    "a focus that was drawn before the act": ("ABBB", False),
    "back to an earlier look": ("ABBBA", None),
    "a blink before the act, then nothing": ("ABAA", None),
    "by itself": ("ABABA", None),
    "an effect where it blinks": ("ABABABC", True),
}
PARTS = {"A": [], "a": [(0, 8, 16)], "B": [(0, 60, 20)], "C": [(0, 60, 90)]}


@pytest.mark.parametrize(("looks", "changed"), LOOKS.values(), ids=LOOKS.keys())
def test_verify_reports_what_stays_changed(
    peek: Program, form_id: int, tmp_path: Path, looks: str, changed: Optional[bool]
) -> None:
    folder = tmp_path / "bin"
    maim = programs_by(
        folder,
        f'case "$*" in *-version) ;; *) cd {folder}; count=$(wc -l < log); echo >> log\n'
        f"[ $count -lt {len(looks)} ] || count={len(looks) - 1}\ncat $count.bmp; exit ;; esac",
        "maim",
    )
    for number, look in enumerate(looks):
        image = bytearray(b"\xff" * 3 * 200 * 100)
        for top, width, height in PARTS[look]:
            for line in range(top, top + height):
                image[600 * line : 600 * line + 3 * width] = bytes(3 * width)
        sizes = (54 + len(image), 0, 54, 40, 200, -100, 1, 24, *[0] * 6)
        (folder / f"{number}.bmp").write_bytes(struct.pack("<2sIIIIiiHHIIIIII", b"BM", *sizes) + image)
    (folder / "log").touch()
    assert peek.data("press", form_id, "f9", "--verify", **maim)["changed"] is changed


# It prints a line for each event it receives: `wheel 5 40 30`, `key a 0 1200`.
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
SLIDER = (32, 199)  # position of its handle at value 0


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


def test_drag_moves_a_slider(peek: Program, pad: Pad, pad_id: int) -> None:
    answer = peek.data("drag", pad_id, *SLIDER, 310, SLIDER[1], "--verify")
    assert float(pad.wait_for("slider")[-1][0]) >= 90
    assert answer["delivered"] and answer["changed"] and not answer["clamped"]
    assert answer["to_point"]["x"] - answer["point"]["x"] == 310 - SLIDER[0]


def test_drag_beyond_the_window_ends_at_its_edge(peek: Program, pad: Pad, pad_id: int) -> None:
    answer = peek.data("drag", pad_id, 60, 50, 180, 320)
    assert answer["clamped"] and answer["to_pixel"] == {"x": 180, "y": 319}
    moves = pad.wait_for("dragged", 3)  # several steps, so that a program detects a drag
    assert moves[-1] == ["160", "299"]
    assert [move for move in moves if abs(int(move[1]) - 30 - (int(move[0]) - 40) * 269 / 120) > 3] == []


def test_move_presses_nothing(peek: Program, pad: Pad, pad_id: int) -> None:
    assert peek.data("move", pad_id, 77, 66)["delivered"] is True
    wait_for(lambda: pad.lines("moved")[-1:] == [["57", "46"]], "the pointer is there")
    assert pad.lines("press") == []


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


def test_type_replaces_nothing_in_a_terminal(peek: Program, wish: Callable[..., Wish]) -> None:
    terminal = Pad(wish, "Terminal", "xterm")
    window_id = window_titled(peek, "Terminal")["window_id"]
    assert "select all" in peek.error("type", window_id, "ls", "--replace")["message"]
    peek.data("type", window_id, "ls")
    assert [row[0] for row in terminal.wait_for("key", 2)] == ["l", "s"]


def test_type_pauses_between_keys(peek: Program, pad: Pad, pad_id: int) -> None:
    peek.data("type", pad_id, "abcd", "--delay-ms", 120)
    times = [int(row[2]) for row in pad.wait_for("key", 4)]
    assert min(after - before for before, after in zip(times, times[1:])) >= 90, times


# (command, text in the error); a value one above a limit is tried again at the limit
BAD = (
    ("scroll 60 50 down --amount 51", "amount is 51"),
    ("scroll 60 50 inwards", "inwards"),
    ("click 60 50 --clicks 4", "clicks is 4"),
    ("click 60 50 --modifiers fn", "fn"),
    ("drag 60 50 90 90 --button fourth", "fourth"),
    ("drag 60 50 nan 90", "not a number"),
    ("type ", "empty"),
    ("type a --delay-ms 201", "delay_ms is 201"),
    (f"type {'x' * 500} --delay-ms 200", "delay_ms times the characters"),
    ("press a --hold-ms 5001", "hold_ms is 5001"),
    ("press a --repeat 0", "repeat is 0"),
    ("press a --repeat 51", "repeat is 51"),
    ("press a --repeat 50 --hold-ms 5000", "hold_ms times repeat"),
)


def test_click_with_the_window_last_names_the_order(peek: Program, form: Form, form_id: int) -> None:
    error = peek.error("click", 120, 48, form_id)
    assert error["code"] == "WINDOW_NOT_FOUND"
    assert error["message"] == "there is no window 120; give the window's id first, then x and y"
    assert form.events("click") == []


def test_acts_and_the_agent_need_four_letters_of_a_title(peek: Program, form: Form, form_id: int) -> None:
    part = form.title[-3:]
    assert peek.data("screenshot", part)["window_id"] == form_id
    for argv in (["focus", part], ["agent", "--goal", "x", "--window-id", part]):
        assert "acts need an exact or longer name" in peek.error(*argv)["message"]


def test_acts_out_of_range_are_refused(peek: Program, pad: Pad, pad_id: int) -> None:
    before = pad.lines()
    for command, problem in BAD:
        name, *arguments = command.split(" ")
        error = peek.error(name, pad_id, *arguments)
        assert error["code"] == "INVALID_ARGUMENT" and problem in error["message"], command
        if re.search(r" \d+1$", command):
            arguments[-1] = str(int(arguments[-1]) - 1)
            assert peek.error(name, 1, *arguments)["code"] == "WINDOW_NOT_FOUND", arguments
    assert pad.lines() == before


def test_type_of_a_text_beyond_its_limits_is_refused(peek: Program) -> None:
    for text, code in (
        ("x" * 20_000, "WINDOW_NOT_FOUND"),
        ("x" * 20_001, "INVALID_ARGUMENT"),
        ("\n" * 500 + "\t" * 500, "WINDOW_NOT_FOUND"),
        ("\n" * 500 + "\t" * 501, "INVALID_ARGUMENT"),
        ("a\x07", "INVALID_ARGUMENT"),
    ):
        assert peek.error("type", 1, "--", text)["code"] == code, text[-3:]

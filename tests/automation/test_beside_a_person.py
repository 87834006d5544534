"""Acts report interference from a person at the same keyboard, mouse and clipboard."""

from __future__ import annotations

import os
import re
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable

import pytest
from tk_windows import clipboard, copy, keyboard_state, programs_by, typed
from worlds import Form, Program

from peekaboo_min.desktop.x11.connection import InputState, KeyboardMap, Reply, XConnection, x_connection

TEXT = "abcdefghij klmno " * 40


@pytest.fixture(autouse=True)
def on_display(display: str, environment: Callable[..., None]) -> None:
    """Set DISPLAY in this process, for input_state()."""
    environment(DISPLAY=display)


@contextmanager
def person(form: Form, script: str) -> Iterator[None]:
    """Run a shell script as the person, as soon as the form has received a key or a click."""
    begun = f'until grep -qE \'"event": "(key|click)"\' {form._report}; do sleep 0.01; done'
    argv = ["timeout", "20", "sh", "-c", f"{begun}\n{script}"]
    with subprocess.Popen(argv, env={**os.environ, "DISPLAY": form.display}) as process:
        yield
        process.wait()


def input_state() -> InputState:
    with x_connection() as server:
        return server.input_state()


def click_notes(peek: Program, form: Form, form_id: int) -> None:
    peek.data("screenshot", form_id)
    form.xdotool("key", "--clearmodifiers", "Escape")
    peek.data("click", form_id, *form.centre("notes"))


@pytest.mark.parametrize(
    # unsure: characters of the changed key, which the program may read by the old map or by the new one
    ("script", "text", "problem", "unsure"),
    [
        ("xdotool keydown shift; sleep 0.1; xdotool keyup shift", TEXT, "modifier key", ""),
        ("xmodmap -e 'keycode 38 = q Q'", TEXT, "the keyboard map has changed", "aq"),
        ("xdotool keydown ISO_Level3_Shift", TEXT, "a person holds AltGr|modifier key", ""),
        ("xdotool keydown ISO_Level3_Shift", "äöü" * 200, "a person holds AltGr|modifier key", ""),
    ],
    ids=["taps shift", "changes the map", "holds a key", "holds a key during pastes"],
)
def test_typing_stops_when_keys_change_their_meaning(
    peek: Program, form: Form, form_id: int, script: str, text: str, problem: str, unsure: str
) -> None:
    try:
        with person(form, script):
            error = peek.error("type", form_id, text)
    finally:
        form.xdotool("keyup", "ISO_Level3_Shift", "key", "--clearmodifiers", "Escape")
        subprocess.run(["xmodmap", "-e", "keycode 38 = a A"], env={"DISPLAY": form.display}, check=True)
    assert error["code"] == "FOCUS_LOST" and re.search(problem, error["message"]), error
    counts = re.search(rf"delivered (\d+) of {len(text)} characters", error["message"])
    arrived = typed(form)
    # a piece has 20 characters
    assert counts and 0 <= len(arrived) - int(counts[1]) <= sum(map(arrived[-20:].count, unsure))
    assert not input_state().held


def test_typing_counts_keys_that_the_person_pressed(peek: Program, form: Form, form_id: int) -> None:
    with person(form, "for n in 1 2 3; do xdotool key z; done"):
        data = peek.data("type", form_id, TEXT)
    assert 1 <= data["others_typed"] <= 3 and data["delivered"]
    assert "others_typed" not in peek.data("type", form_id, "Alone")


@pytest.fixture
def german(form: Form) -> Iterator[None]:
    """A German keyboard, on which AltGr types other characters."""
    environment = {**os.environ, "DISPLAY": form.display}
    subprocess.run(["setxkbmap", "de"], env=environment, check=True)
    yield
    subprocess.run(["setxkbmap", "us"], env=environment, check=True)


# a modifier or button, and its name in the refusal
HELD = {
    "ISO_Level3_Shift": "AltGr", "Super_L": "Super", "Hyper_L": "Super", "Meta_L": "Alt", "Alt_L": "Alt",
    "Control_L": "Control", "Shift_L": "Shift", "Num_Lock": "Mod2", "1": "mouse button",
}  # fmt: skip


@pytest.mark.usefixtures("german")
@pytest.mark.parametrize("key", HELD)
def test_acts_are_refused_while_a_key_is_held(peek: Program, form: Form, form_id: int, key: str) -> None:
    device = "mouse" if key.isdigit() else "key"
    form.xdotool("mousemove", "900", "600", f"{device}down", key)
    peek.data("screenshot", form_id)
    before = form.events("key") + form.events("click")
    try:
        for words in ("type {} q", "press {} a", "click {} 9 9", "scroll {} 9 9 up", "drag {} 9 9 50 50"):
            error = peek.error(*words.format(form_id).split())
            assert error["code"] == "WINDOW_BLOCKED" and HELD[key] in error["message"], (words, error)
        assert form.events("key") + form.events("click") == before
        assert form.xdotool("getmouselocation").startswith("x:900 y:600")
    finally:
        form.xdotool(f"{device}up", key)
        form.xdotool("key", *["Num_Lock"] * (key == "Num_Lock"), "Escape")  # it is on now


@pytest.mark.usefixtures("german")
def test_key_that_the_keyboard_lacks_cannot_be_held(peek: Program, form_id: int) -> None:
    error = peek.error("press", form_id, "backquote", "--hold-ms", 100)
    assert error["code"] == "INVALID_ARGUMENT" and "no key 'backquote'" in error["message"]
    assert peek.data("press", form_id, "backquote")["delivered"] is True


# the pointer's bits, and those of XKB (down, latched, locked; the group's down and latched) -> held, locks
STATES: dict[tuple[int, ...], tuple[str, bool, bool]] = {
    (0, 0, 0, 0, 0, 0): ("", False, False),
    (0b1, 0b1, 0, 0, 0, 0): ("Shift", False, False),
    (0b100, 0, 0b100, 0, 0, 0): ("Control", False, False),
    (0b1000, 0, 0, 0b1000, 0, 0): ("Alt (Mod1)", False, False),  # locked, but not by a lock key
    (0b10010, 0, 0, 0b10010, 0, 0): ("", True, True),
    (0b11010010, 0b10000000, 0b1000000, 0b10010, 0, 0): ("Super (Mod4), AltGr (Mod5)", True, True),
    (0x400, 0, 0, 0, 0, 0): ("a mouse button", False, False),
    (0x2000, 0, 0, 0, 1, 0): ("a layout key", False, False),
    (0x2000, 0, 0, 0, 0, -1): ("a layout key", False, False),
    (0b11010,): ("Alt (Mod1)", True, True),  # without XKB
}


@pytest.mark.parametrize(("bits", "expected"), STATES.items())
def test_input_state_is_read_from_its_bits(bits: tuple[int, ...], expected: tuple[str, bool, bool]) -> None:
    server: Any = object.__new__(XConnection)
    server.root_id, server.extension = 1, lambda _: 135
    codes = ((50,), (66,), (37,), (64,), (77,), (), (133,), (108,))  # of Shift, Lock... ; 66 and 77 lock
    server.keyboard_map = lambda: KeyboardMap({66: (0xFFE5,), 77: (0, 0xFF7F)}, codes)
    focus, pointer = struct.pack("<B7xI20x", 1, 7), struct.pack("<B23xH6x", 1, bits[0])
    xkb = struct.pack("<B8xBBBxxhh14x", bool(bits[1:]), *(*bits[1:], *[0] * 5)[:5])
    server.ask = lambda requests: [*map(Reply, (focus, pointer, bytes(32), xkb))][: len(requests)]
    assert server.input_state() == (7, *expected)


TYPED = "aB c-1\tZoë Å\n\nstraße 日本語 👩‍💻 \"'\\ %s {} [exit] $(touch x) \\n"
LOCKS = ("Caps_Lock", "Num_Lock", "Scroll_Lock")
ACTS = (
    *("press {} KP_7 --repeat 2", "press {} ctrl+shift+b", "press {} super", "press {} right --hold-ms 300"),
    *("type {} 12+34", "type {} Zoë", "click {} 9 9 --modifiers ctrl,shift --clicks 2", "move {} 20 20"),
    *("drag {} 9 9 30 9 --button right", "scroll {} 9 9 down --amount 2"),
)


@pytest.mark.parametrize("locks", [(), LOCKS], ids=["no locks", "locks"])
def test_acts_leave_keys_locks_map_and_clipboard_as_they_were(
    peek: Program, form: Form, form_id: int, locks: tuple[str, ...]
) -> None:
    click_notes(peek, form, form_id)
    copy(peek.environment, b"mine")
    form.xdotool("key", "Escape", *locks)
    try:
        before = keyboard_state(form.display)
        peek.data("type", form_id, TYPED.replace("\n", "\r").replace("\r", "\r\n", 1))
        text = typed(form, "notes")
        for words in ACTS:
            assert peek.data(*words.format(form_id).split())["delivered"] is True, words
            assert keyboard_state(form.display) == before, words
    finally:
        form.xdotool("key", "Escape", *locks)
    assert (text, clipboard(peek.environment)) == (TYPED, b"mine")


def test_press_of_a_lock_key_switches_the_lock(peek: Program, form: Form, form_id: int) -> None:
    states = []
    for _ in range(2):
        for key in ("caps_lock", "num_lock"):
            peek.data("press", form_id, key)
        states.append(input_state()[2:])
    assert states == [(True, True), (False, False)]


def test_typing_follows_caps_lock_per_piece(peek: Program, form: Form, form_id: int, tmp_path: Path) -> None:
    click_notes(peek, form, form_id)
    script = 'case $1 in -quiet) xdotool key Caps_Lock ;; esac; exec $real "$@"'
    peek.data("type", form_id, "aB\në\ncD", **programs_by(tmp_path / "bin", script, "xclip"))
    form.xdotool("key", "Caps_Lock")
    assert typed(form, "notes") == "aB\në\ncD"

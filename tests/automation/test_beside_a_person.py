"""Acts report interference from a person at the same keyboard, mouse and clipboard."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from slow_display import SlowDisplay
from tk_windows import programs_by
from witness import XWitness
from worlds import Form, Program, group_of, wait_for

from peekaboo_min.core.settings import forget_environment
from peekaboo_min.desktop.x11.connection import InputState, x_connection

TEXT = "abcdefghij klmno " * 40
STICKY_KEYS = 8  # a control of the XKB extension


@pytest.fixture
def program(program: Program, display: str, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.setenv("DISPLAY", display)
    forget_environment()
    return program


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


def notes_of(form: Form) -> str:
    before = len(form.events("text"))
    form.xdotool("key", "F12")
    return str(form.wait_for_event("text", after=before)["notes"])


def click_notes(on_x11: Program, form: Form, form_window: int) -> None:
    on_x11.data("screenshot", form_window)
    form.xdotool("key", "--clearmodifiers", "Escape")
    on_x11.data("click", form_window, *form.centre("notes"))


TAP = "xdotool keydown shift; sleep 0.1; xdotool keyup shift"


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (TAP, "modifier key"),
        ("xmodmap -e 'keycode 38 = q Q'", "the keyboard map has changed"),
    ],
    ids=["taps shift", "changes the map"],
)
def test_typing_stops_when_keys_change_their_meaning(
    on_x11: Program, form: Form, form_window: int, script: str, problem: str
) -> None:
    try:
        with person(form, script):
            error = on_x11.error("type", form_window, TEXT)
        assert error["code"] == "FOCUS_LOST" and problem in error["message"], error
        assert re.search(r"delivered \d+ of 680 characters", error["message"])
        wait_for(lambda: not input_state().held, "nothing is held")
    finally:
        form.xdotool("key", "--clearmodifiers", "Escape")
        subprocess.run(["xmodmap", "-e", "keycode 38 = a A"], env={"DISPLAY": form.display}, check=True)


def test_typing_counts_keys_that_the_person_pressed(on_x11: Program, form: Form, form_window: int) -> None:
    with person(form, "for n in 1 2 3; do xdotool key z; done"):
        data = on_x11.data("type", form_window, TEXT)
    assert 1 <= data["others_typed"] <= 3 and data["delivered"]
    assert "others_typed" not in on_x11.data("type", form_window, "Alone")


@pytest.fixture
def german(form: Form) -> Iterator[None]:
    """A German keyboard, on which AltGr types other characters."""
    environment = {**os.environ, "DISPLAY": form.display}
    subprocess.run(["setxkbmap", "de"], env=environment, check=True)
    yield
    subprocess.run(["setxkbmap", "us"], env=environment, check=True)


# a modifier, and what the refusal calls it
HELD = {
    "ISO_Level3_Shift": "AltGr", "Super_L": "Super", "Hyper_L": "Super", "Meta_L": "Alt", "Alt_L": "Alt",
    "Control_L": "Control", "Shift_L": "Shift", "Num_Lock": "Mod2",
}  # fmt: skip


def check_refused(on_x11: Program, form: Form, form_window: int, held: str) -> None:
    """No act reaches the form, and each refusal names what is held."""
    before = form.events()
    for words in (["type", "hello quick"], ["press", "a"], ["click", 50, 50], ["scroll", 50, 50, "down"]):
        error = on_x11.error(words[0], form_window, *words[1:])
        assert (error["code"], f"{held}" in error["message"]) == ("WINDOW_BLOCKED", True), (words, error)
    assert form.events() == before


@pytest.mark.usefixtures("german")
@pytest.mark.parametrize("key", HELD)
def test_acts_are_refused_while_a_modifier_is_held(
    on_x11: Program, form: Form, form_window: int, key: str
) -> None:
    on_x11.data("screenshot", form_window)
    form.xdotool("keydown", key)
    try:
        check_refused(on_x11, form, form_window, HELD[key])
    finally:
        form.xdotool("keyup", key)
        if key == "Num_Lock":  # it is on now
            form.xdotool("key", key)


@pytest.mark.usefixtures("german")
def test_key_that_the_keyboard_lacks_cannot_be_held(on_x11: Program, form_window: int) -> None:
    error = on_x11.error("press", form_window, "backquote", "--hold-ms", 100)
    assert (error["code"], "no key 'backquote'" in error["message"]) == ("INVALID_ARGUMENT", True)
    assert on_x11.data("press", form_window, "backquote")["delivered"] is True


def test_acts_are_refused_while_a_modifier_waits_for_the_next_key(
    on_x11: Program, form: Form, form_window: int
) -> None:
    """Sticky keys latch a modifier that was tapped."""
    on_x11.data("screenshot", form_window)
    person = XWitness({**os.environ, "DISPLAY": form.display})
    person.do("controls", affected=STICKY_KEYS, on=STICKY_KEYS)
    person.sync()
    form.xdotool("key", "Shift_L")
    try:
        check_refused(on_x11, form, form_window, "Shift")
    finally:
        person.do("controls", affected=STICKY_KEYS, on=0)
        form.xdotool("key", "Escape")
        person.close()


def test_held_modifier_is_noticed_without_the_xkb_extension(
    form: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SlowDisplay(form.display, 0, hidden=b"XKEYBOARD") as display:
        monkeypatch.setenv("DISPLAY", display.name)
        forget_environment()
        form.xdotool("key", "Num_Lock", "keydown", "ISO_Level3_Shift")
        held = input_state().held
        form.xdotool("key", "Num_Lock", "keyup", "ISO_Level3_Shift")
        assert (held, input_state().held) == ("AltGr (Mod5)", "")


@pytest.mark.parametrize("text", [TEXT, "äöü" * 200], ids=["typed", "pasted"])
def test_typing_stops_when_a_modifier_is_held(
    on_x11: Program, form: Form, form_window: int, text: str
) -> None:
    try:
        with person(form, "xdotool keydown ISO_Level3_Shift"):
            error = on_x11.error("type", form_window, text)
    finally:
        form.xdotool("keyup", "ISO_Level3_Shift")
    assert error["code"] == "FOCUS_LOST"
    assert "a person holds AltGr" in error["message"] or "modifier key" in error["message"]
    form.xdotool("key", "F12")
    assert f"delivered {len(form.wait_for_event('text')['name'])} of {len(text)}" in error["message"]


def test_pasting_presses_its_key_only_while_the_clipboard_is_ours(
    on_x11: Program, form: Form, form_window: int
) -> None:
    click_notes(on_x11, form, form_window)
    steal = "while :; do printf THEFT | xclip -selection clipboard -i; sleep 0.02; done"
    with group_of(["sh", "-c", steal], {"DISPLAY": form.display, "PATH": "/usr/bin:/bin"}):
        done = [on_x11.run("type", form_window, "日本語", "--json") for _ in range(5)]
    errors = [finished.json["error"]["message"] for finished in done if not finished.json["success"]]
    notes, stolen = notes_of(form), "its content may have been pasted"
    assert notes.count("THEFT") <= sum(stolen in message for message in errors)
    assert notes.count("日本語") >= len(done) - len(errors)
    assert all("clipboard" in message for message in errors)


@pytest.mark.parametrize(
    ("script", "delivered"),
    [
        ("", True),
        ("xdotool windowmove {id} 300 200", None),
        ("for n in $(seq 80); do xdotool mousemove_relative -- 5 0; sleep 0.01; done", None),
        ("xdotool windowkill {id}", None),
    ],
    ids=["alone", "moves the window", "moves the pointer", "closes it"],
)
def test_drag_is_delivered_only_if_it_ends_in_place(
    on_x11: Program, form: Form, form_window: int, script: str, delivered: Any
) -> None:
    on_x11.data("screenshot", form_window)
    x, y = form.centre("notes")
    with person(form, script.format(id=form_window)):
        assert on_x11.data("drag", form_window, x - 40, y, x + 40, y)["delivered"] is delivered


def test_typing_under_locks_arrives_and_leaves_them_on(on_x11: Program, form: Form, form_window: int) -> None:
    click_notes(on_x11, form, form_window)
    locks = ("Caps_Lock", "Num_Lock", "Scroll_Lock")
    form.xdotool("key", *locks)
    try:
        on_x11.data("type", form_window, "aB c-1\nZoë, straße")
        assert input_state().is_caps_locked
    finally:
        form.xdotool("key", *locks)
    assert notes_of(form) == "aB c-1\nZoë, straße"


def test_typing_follows_caps_lock_between_two_pieces(
    on_x11: Program, form: Form, form_window: int, tmp_path: Path
) -> None:
    click_notes(on_x11, form, form_window)
    script = 'case $1 in -quiet) xdotool key Caps_Lock ;; esac; exec $real "$@"'
    on_x11.data("type", form_window, "aB\në\ncD", **programs_by(tmp_path / "bin", script, "xclip"))
    form.xdotool("key", "Caps_Lock")
    assert notes_of(form) == "aB\në\ncD"

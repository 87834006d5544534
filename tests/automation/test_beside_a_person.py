"""Acts while a person uses the same keyboard, mouse and clipboard: what went wrong is said."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import headless
import pytest
from worlds import Form, Program, wait_for

from peekaboo_min.core.settings import forget_environment
from peekaboo_min.desktop.x11.connection import CAPS_LOCK_BIT, HELD_BITS, x_connection

TEXT = "abcdefghij klmno " * 40


@pytest.fixture
def program(program: Program, display: str, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.setenv("DISPLAY", display)
    forget_environment()
    return program


@contextmanager
def person(form: Form, script: str) -> Iterator[None]:
    """What a person does meanwhile, from the moment when the form has got the first key or press."""
    begun = f'until grep -qE \'"event": "(key|click)"\' {form._report}; do sleep 0.01; done'
    argv = ["timeout", "20", "sh", "-c", f"{begun}\n{script}"]
    with subprocess.Popen(argv, env={**os.environ, "DISPLAY": form.display}) as process:
        yield
        process.wait()


def state_of_modifiers() -> int:
    with x_connection() as server:
        return server.state() & HELD_BITS


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
    ("script", "said"),
    [
        (TAP, "modifier key"),
        ("xmodmap -e 'keycode 38 = q Q'", "the keyboard's map has changed"),
    ],
    ids=["taps shift", "changes the map"],
)
def test_typing_stops_where_keys_get_another_meaning(
    on_x11: Program, form: Form, form_window: int, script: str, said: str
) -> None:
    try:
        with person(form, script):
            error = on_x11.error("type", form_window, TEXT)
        assert error["code"] == "FOCUS_LOST" and said in error["message"], error
        assert "character(s) went out" in error["message"]
        wait_for(lambda: state_of_modifiers() == 0, "nothing is held")
    finally:
        form.xdotool("key", "--clearmodifiers", "Escape")
        subprocess.run(["xmodmap", "-e", "keycode 38 = a A"], env={"DISPLAY": form.display}, check=True)


def test_typing_says_how_many_keys_of_others_came_among_ours(
    on_x11: Program, form: Form, form_window: int
) -> None:
    with person(form, "for n in 1 2 3; do xdotool key z; done"):
        data = on_x11.data("type", form_window, TEXT)
    assert 1 <= data["others_typed"] <= 3 and data["delivered"]
    assert "others_typed" not in on_x11.data("type", form_window, "Alone")


def test_pasting_presses_its_key_only_while_the_clipboard_is_ours(
    on_x11: Program, form: Form, form_window: int
) -> None:
    click_notes(on_x11, form, form_window)
    steal = "while :; do printf THEFT | xclip -selection clipboard -i; sleep 0.02; done"
    with headless.running(["sh", "-c", steal], env={"DISPLAY": form.display, "PATH": "/usr/bin:/bin"}):
        done = [on_x11.run("type", form_window, "日本語", "--json") for _ in range(5)]
    errors = [finished.json["error"]["message"] for finished in done if not finished.json["success"]]
    notes, stolen = notes_of(form), "what that copied may have been pasted"
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
def test_drag_is_delivered_only_where_it_should_end(
    on_x11: Program, form: Form, form_window: int, script: str, delivered: Any
) -> None:
    on_x11.data("screenshot", form_window)
    x, y = form.centre("notes")
    with person(form, script.format(id=form_window)):
        assert on_x11.data("drag", form_window, x - 40, y, x + 40, y)["delivered"] is delivered


def test_typing_under_caps_lock_arrives_and_leaves_it_on(
    on_x11: Program, form: Form, form_window: int
) -> None:
    click_notes(on_x11, form, form_window)
    form.xdotool("key", "Caps_Lock")
    try:
        on_x11.data("type", form_window, "aB c-1 Zoë, straße")
        with x_connection() as server:
            assert server.state() & CAPS_LOCK_BIT
    finally:
        form.xdotool("key", "Caps_Lock")
    assert notes_of(form) == "aB c-1 Zoë, straße"

"""List, take a screenshot, click by a pixel, type, press on real X11; the application confirms it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Callable, Optional

import pytest
from tk_windows import programs_by, window_titled
from worlds import Form, Program, wait_for

TEXTS = {
    "ascii": "Hello, World! ~`#$%^&*()_+{}|:\"<>?-=[]\\;',./",
    "accents": "Zoë Ångström, déjà vu, Straße",
    "cjk": "日本語 中文 한국어",
    "emoji": "😀 👩‍💻 🏳️‍🌈",
    "lines and tabs": "one\r\ntwo\tthree\n\nfour",
    "mixed": "-x Grüße\n\t世界 & more",
    "leading dashes": "--json is text here",
}


def test_click_by_a_pixel_of_a_screenshot_arrives(
    on_x11: Program, form: Form, form_window: int, tmp_path: Path
) -> None:
    shot = on_x11.data("screenshot", form_window, "--path", tmp_path / "form.png")
    assert Path(shot["path"]).read_bytes().startswith(b"\x89PNG")
    assert (shot["image_width"], shot["image_height"]) == (shot["bounds"]["width"], shot["bounds"]["height"])
    x, y = form.centre("agree")
    answer = on_x11.data("click", form_window, x, y, "--verify")
    assert form.wait_for_event("toggle") == {"event": "toggle", "widget": "agree", "value": 1}
    clicked = form.events("click")[-1]
    assert (clicked["x"], clicked["y"], clicked["button"]) == (answer["point"]["x"], answer["point"]["y"], 1)
    assert answer.pop("changed_rect")["width"] > 0 and answer.pop("effect_ms") >= 50
    assert answer == {
        "window_id": form_window,
        "pixel": {"x": x, "y": y},
        "point": {"x": shot["bounds"]["x"] + x, "y": shot["bounds"]["y"] + y},
        "clamped": False,
        "delivered": True,
        "changed": True,
    }


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_type_text_arrives_exactly(peek: Program, form: Form, form_id: int, text: str) -> None:
    peek.data("screenshot", form_id)
    peek.data("click", form_id, *form.centre("notes"))
    peek.data("type", form_id, "--", text)
    peek.data("press", form_id, "f12")
    assert form.wait_for_event("text")["notes"] == text.replace("\r\n", "\n")


# a spelling that people use: the key symbol and modifiers that arrive
KEYS = {
    "ctrl+shift+t": ("T", 5),
    "ctrl,a": ("a", 4),
    "Return": ("Return", 0),
    "enter": ("Return", 0),
    "page_down": ("Next", 0),
    "page_up": ("Prior", 0),
    "cmd+s": ("s", 4),
    "cmd+,": ("comma", 4),
    "alt-g": ("g", 8),
    "Escape": ("Escape", 0),
}


def test_press_takes_the_spellings_of_people(peek: Program, form: Form, form_id: int) -> None:
    modifiers = ("Shift_L", "Control_L", "Alt_L")

    def arrived(count: int) -> list[tuple[str, int]]:
        events = [one for one in form.events("key") if one["keysym"] not in modifiers]
        return [(one["keysym"], int(one["state"]) & 0b1101) for one in events[count:]]

    for key, expected in KEYS.items():
        before = len(arrived(0))
        peek.data("press", form_id, key)
        assert wait_for(lambda count=before: arrived(count), f"{key} arrives") == [expected], key


def test_click_without_a_screenshot_is_refused(peek: Program, form: Form, form_id: int) -> None:
    for words, code in (
        ([], "STALE_SCREENSHOT"),
        (["--screenshot-id", "0" * 16], "STALE_SCREENSHOT"),
        (["--screenshot-id", "../x"], "INVALID_ARGUMENT"),
    ):
        assert peek.error("click", form_id, 10, 10, *words)["code"] == code, words
    assert form.events("click") == []


def test_click_in_a_shrunk_screenshot_hits(peek: Program, form: Form, form_id: int) -> None:
    shot = peek.data("screenshot", form_id, "--max-dimension", 277)
    assert max(shot["image_width"], shot["image_height"]) == 277
    x, y = form.centre("agree")
    pixel = x * shot["scale"], y * shot["scale"]
    rect = peek.data("click", form_id, *pixel, "--verify")["changed_rect"]
    assert form.wait_for_event("toggle")["value"] == 1
    # what changed is told in its pixels, too
    assert rect["image_width"] == shot["image_width"]
    assert rect["x"] <= pixel[0] <= rect["x"] + rect["width"] <= shot["image_width"]
    assert rect["y"] <= pixel[1] <= rect["y"] + rect["height"] <= shot["image_height"]


def test_click_raises_a_covered_window_that_has_the_focus(
    peek: Program, form: Form, form_id: int, open_form: Callable[..., Form]
) -> None:
    peek.data("screenshot", form_id)
    cover = open_form("Cover", "+70+70")
    form.xdotool("windowfocus", "--sync", str(form_id))  # and does not raise it
    peek.data("click", form_id, *form.centre("agree"))
    assert form.wait_for_event("toggle")["value"] == 1
    assert cover.events("click") == []


def test_verify_takes_a_blinking_caret_for_no_change(peek: Program, form: Form, form_id: int) -> None:
    peek.data("screenshot", form_id)
    peek.data("click", form_id, *form.centre("name"))
    form.wait_for_event("click")
    seen = [peek.data("press", form_id, "f9", "--verify")["changed"] for _ in range(2)]
    assert seen == [False] * 2
    assert peek.data("press", form_id, "x", "--verify")["changed"] is True


def test_verify_names_a_window_that_an_act_opens(peek: Program, form: Form, form_id: int) -> None:
    peek.data("screenshot", form_id)
    finished = peek.run("click", form_id, *form.centre("details"), "--verify")
    details = window_titled(peek, "Details")["window_id"]
    assert finished.out.rstrip().endswith(f"window {details} 'Details' came")


# What the window looks like in each screenshot: A, B, or A with a caret (a); the last one stays.
LOOKS = {
    "nothing": ("AAA", False, 7),
    "at once": ("AAB", True, 4),
    "after 400 ms": ("AAAAAB", True, 7),
    "at the last moment": ("AAAAAAB", True, 7),
    "for a moment": ("AAABA", False, 7),
    "first the caret": ("AAaaB", True, 6),
    "a caret that blinks": ("AAaaAa", False, 7),
    "a caret that blinked before": ("AaAaAa", False, 7),
    "a character": ("AAa", True, 7),
    "a focus that was drawn until then": ("ABBB", False, 8),
    "by itself": ("ABABA", None, 5),
}


@pytest.mark.parametrize(("looks", "changed", "count"), LOOKS.values(), ids=LOOKS.keys())
def test_verify_looks_for_an_effect_five_times(
    peek: Program, form_id: int, tmp_path: Path, looks: str, changed: Optional[bool], count: int
) -> None:
    folder = tmp_path / "bin"
    maim = programs_by(
        folder,
        f'case "$*" in *-version) ;; *) cd {folder}; count=$(wc -l < log); echo >> log\n'
        f"[ $count -lt {len(looks)} ] || count={len(looks) - 1}\ncat $count.bmp; exit ;; esac",
        "maim",
    )
    parts = {"A": (0, 0), "a": (8, 16), "B": (60, 20)}
    for number, look in enumerate(looks):
        image = bytearray(b"\xff" * 3 * 200 * 100)
        width, height = parts[look]
        for line in range(height):
            image[600 * line : 600 * line + 3 * width] = bytes(3 * width)
        sizes = (54 + len(image), 0, 54, 40, 200, -100, 1, 24, *[0] * 6)
        (folder / f"{number}.bmp").write_bytes(struct.pack("<2sIIIIiiHHIIIIII", b"BM", *sizes) + image)
    (folder / "log").touch()
    answer = peek.data("press", form_id, "f9", "--verify", **maim)
    assert (answer["changed"], len((folder / "log").read_text())) == (changed, count)

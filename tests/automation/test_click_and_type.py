"""The thin thread, for real on X11: list, photograph, click by a pixel, type, press; the application
confirms it.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from typing import Optional

import pytest
from worlds import PATIENCE_S, Form, Program, both_forms, wait_for

TEXTS = {
    "ascii": "Hello, World! ~`#$%^&*()_+{}|:\"<>?-=[]\\;',./",
    "accents": "Zoë Ångström, déjà vu, Straße",
    "cjk": "日本語 中文 한국어",
    "emoji": "😀 👩‍💻 🏳️‍🌈",
    "lines and tabs": "one\r\ntwo\tthree\n\nfour",
    "mixed": "-x Grüße\n\t世界 & more",
    "leading dashes": "--json is text here",
}


@both_forms
def test_a_window_is_listed_photographed_and_clicked_and_the_application_confirms(
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


# A table is tried on one form: what both have in common is tried on both above and below.
on_the_package = pytest.mark.parametrize("program", ["package"], indirect=True)


@on_the_package
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_any_text_arrives_exactly(on_x11: Program, form: Form, form_window: int, text: str) -> None:
    on_x11.data("screenshot", form_window)
    on_x11.data("click", form_window, *form.centre("notes"))
    on_x11.data("type", form_window, "--", text)
    on_x11.data("press", form_window, "f12")
    assert form.wait_for_event("text")["notes"] == text.replace("\r\n", "\n")


def test_the_clipboard_is_put_back_after_unicode_was_typed(
    on_x11: Program, form: Form, form_window: int, display: str
) -> None:
    environment = {**on_x11.environment}
    subprocess.run(["xclip", "-selection", "clipboard", "-i"], input=b"mine", env=environment, check=True)
    on_x11.data("type", form_window, "日本\n東京")  # in two pieces
    held = subprocess.run(
        ["xclip", "-selection", "clipboard", "-o"], env=environment, capture_output=True, timeout=PATIENCE_S
    )
    assert held.stdout == b"mine"


@on_the_package
@pytest.mark.parametrize(
    ("key", "keysym", "state"),
    [("ctrl+shift+t", "T", 5), ("ctrl,a", "a", 4), ("Return", "Return", 0), ("enter", "Return", 0),
     ("page_down", "Next", 0), ("page_up", "Prior", 0), ("cmd+s", "s", 4), ("cmd+,", "comma", 4), ("alt-g", "g", 8), ("Escape", "Escape", 0)],  # noqa: E501
)  # fmt: skip
def test_keys_arrive_in_the_spellings_that_people_use(
    on_x11: Program, form: Form, form_window: int, key: str, keysym: str, state: int
) -> None:
    on_x11.data("press", form_window, key)
    pressed = wait_for(
        lambda: [one for one in form.events("key") if one["keysym"] == keysym], f"{keysym} arrives"
    )
    assert int(pressed[-1]["state"]) & 0b1101 == state


@both_forms
def test_without_a_screenshot_nothing_is_clicked(on_x11: Program, form: Form, form_window: int) -> None:
    assert on_x11.error("click", form_window, 10, 10)["code"] == "STALE_SCREENSHOT"
    assert (
        on_x11.error("click", form_window, 10, 10, "--screenshot-id", "0" * 16)["code"] == "STALE_SCREENSHOT"
    )
    assert on_x11.error("click", form_window, 10, 10, "--screenshot-id", "../x")["code"] == "INVALID_ARGUMENT"
    assert form.events("click") == []


@both_forms
def test_pixels_of_a_shrunk_picture_hit_the_same_place(on_x11: Program, form: Form, form_window: int) -> None:
    shot = on_x11.data("screenshot", form_window, "--max-dimension", 277)
    assert max(shot["image_width"], shot["image_height"]) == 277
    x, y = form.centre("agree")
    pixel = x * shot["scale"], y * shot["scale"]
    rect = on_x11.data("click", form_window, *pixel, "--verify")["changed_rect"]
    assert form.wait_for_event("toggle")["value"] == 1
    # what changed is told in its pixels, too
    assert rect["image_width"] == shot["image_width"]
    assert rect["x"] <= pixel[0] <= rect["x"] + rect["width"] <= shot["image_width"]
    assert rect["y"] <= pixel[1] <= rect["y"] + rect["height"] <= shot["image_height"]


def test_a_window_that_has_the_focus_and_is_covered_comes_to_the_front_before_the_click(
    on_x11: Program, form: Form, form_window: int, open_form
) -> None:
    on_x11.data("screenshot", form_window)
    cover = open_form("Cover", "+70+70")
    form.xdotool("windowfocus", "--sync", str(form_window))  # and does not raise it
    on_x11.data("click", form_window, *form.centre("agree"))
    assert form.wait_for_event("toggle")["value"] == 1
    assert cover.events("click") == []


@on_the_package
def test_a_caret_that_blinks_is_no_change(on_x11: Program, form: Form, form_window: int) -> None:
    on_x11.data("screenshot", form_window)
    on_x11.data("click", form_window, *form.centre("name"))
    form.wait_for_event("click")
    seen = [on_x11.data("press", form_window, "f9", "--verify")["changed"] for _ in range(2)]
    assert seen == [False] * 2
    assert on_x11.data("press", form_window, "x", "--verify")["changed"] is True


@on_the_package
def test_a_window_that_an_act_opens_is_named(on_x11: Program, form: Form, form_window: int) -> None:
    on_x11.data("screenshot", form_window)
    finished = on_x11.run("click", form_window, *form.centre("details"), "--verify")
    details = next(one for one in on_x11.data("windows")["windows"] if one["title"] == "Details")
    assert finished.out.rstrip().endswith(f"window {details['window_id']} 'Details' came")


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


@on_the_package
@pytest.mark.parametrize(("looks", "changed", "count"), LOOKS.values(), ids=LOOKS.keys())
def test_an_effect_is_looked_for_five_times(
    on_x11: Program, form_window: int, tmp_path: Path, looks: str, changed: Optional[bool], count: int
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "xdotool").symlink_to(shutil.which("xdotool") or "")
    parts = {"A": (0, 0), "a": (8, 16), "B": (60, 20)}
    for number, look in enumerate(looks):
        image = bytearray(b"\xff" * 3 * 200 * 100)
        width, height = parts[look]
        for line in range(height):
            image[600 * line : 600 * line + 3 * width] = bytes(3 * width)
        header = struct.pack(
            "<2sIIIIiiHHIIIIII", b"BM", 54 + len(image), 0, 54, 40, 200, -100, 1, 24, *[0] * 6
        )
        (folder / f"{number}.bmp").write_bytes(header + image)
    (folder / "maim").write_text(
        f'#!/bin/sh\ncase "$*" in *-version) exec maim "$@" ;; esac\ncd {folder}\n'
        f"count=$(wc -l < log); echo >> log; [ $count -lt {len(looks)} ] || count={len(looks) - 1}\n"
        "cat $count.bmp\n"
    )
    (folder / "maim").chmod(0o755)
    (folder / "log").touch()
    answer = on_x11.data("press", form_window, "f9", "--verify", PEEKABOO_BIN_DIR=str(folder))
    assert (answer["changed"], len((folder / "log").read_text())) == (changed, count)

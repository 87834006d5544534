"""Regions of a window at full resolution, images on stdout, and the windows listed with a screen's image."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from answers import pictures_of
from fakemac import FakeMac
from in_process import InProcessProgram
from macs import mac_environment
from mcp_server import initialized, serving
from tk_windows import pixels_of, window_titled
from worlds import Form, Program, both_forms, clean_environment, wait_for, x_server

from peekaboo_min.system.image_files import sniff_image


def test_region_is_a_part_of_the_window(peek: Program, form: Form, form_id: int, tmp_path: Path) -> None:
    paths = [tmp_path / "whole.png", tmp_path / "part.png"]
    region = ("screenshot", form_id, "--region", "30,20,200,100")

    def look() -> list[dict[str, Any]]:
        return [peek.data("screenshot", form_id, "--path", paths[0]), peek.data(*region, "--path", paths[1])]

    whole, part = look()
    assert [*part.pop("region").values()] == [30, 20, 200, 100]
    assert (part.pop("region_image_width"), part.pop("region_image_height")) == (200, 100)
    assert part == {**whole, "path": str(paths[1])}
    # retry: a caret may blink between the two
    wait_for(
        lambda: look() and pixels_of(paths[1]) == pixels_of(paths[0], "200x100+30+20"),
        "the region is that part of the whole screenshot",
    )
    assert "its pixel (u, v) is x = 30 + u, y = 20 + v for click" in peek.run(*region).out
    # no new record: click still uses pixels of the whole screenshot
    peek.data("click", form_id, *form.centre("agree"))
    assert form.wait_for_event("toggle")["value"] == 1


def test_region_of_a_large_window_has_more_pixels(tmp_path: Path) -> None:
    with (
        x_server("2560x1600") as display,
        closing(Form(display, tmp_path / "report.jsonl", place="2400x1500+40+40")) as form,
        serving("package", environment := clean_environment(tmp_path, DISPLAY=display)) as server,
    ):
        server.shake_hands()
        window_id = window_titled(InProcessProgram(environment), form.title)["window_id"]
        whole = server.call("take_window_screenshot", window_id=window_id)
        for data in pictures_of(whole) + pictures_of(server.call("image", return_data=True)):
            size = sniff_image(data)
            assert size and size.width * size.height <= 1_150_000 and max(size.width, size.height) <= 1568
            assert len(data) <= 700_000
        answer = server.call("take_window_screenshot", window_id=window_id, region=[0, 0, 500, 300])
        info = sniff_image(pictures_of(answer)[0])
        # a screenshot pixel covers about 1.5 window pixels
        assert info and 700 < info.width < 1000
        assert "u / 1." in answer["content"][0]["text"]


def test_region_and_scroll_with_a_screenshot_id_use_its_pixels(peek: Program, form_id: int) -> None:
    half = peek.data("screenshot", form_id, "--max-dimension", 277)["screenshot_id"]
    full = peek.data("screenshot", form_id)["screenshot_id"]
    region = ["screenshot", form_id, "--region", "30,20,100,50"]
    assert peek.data(*region)["region_image_width"] == 100
    part = peek.data(*region, "--screenshot-id", half)
    assert part["screenshot_id"] == half and part["region_image_width"] > 190
    scrolled = peek.data("scroll", form_id, 60, 40, "up", "--screenshot-id", half)["point"]
    assert scrolled == peek.data("move", form_id, 120, 80)["point"]
    peek.data("image", "--app", "Form", "--max-dimension", 277)
    error = peek.error(*region)
    assert error["code"] == "STALE_SCREENSHOT" and full in error["message"]
    assert peek.error(*region, "--screenshot-id", "0" * 16)["code"] == "STALE_SCREENSHOT"


def test_pixels_are_of_the_last_screenshot_that_the_model_took(mac: FakeMac) -> None:
    with initialized("package", mac_environment(mac)) as server:
        server.call("image", app="Form", max_dimension=64, return_data=True)
        server.call("take_window_screenshot", window_id=1090)
        assert not server.call("click", window_id=1090, x=280, y=400)["isError"]


@both_forms
def test_path_dash_writes_to_stdout_only(on_x11: Program, form: Form, form_window: int) -> None:
    for words in (
        ["image", "--app", "Form"],
        ["image", "--mode", "screen", "--screen-index", "0", "--max-dimension", "100"],
        ["screenshot", form_window],
    ):
        process = on_x11.start(*words, "--path", "-")
        info = sniff_image(process.communicate(timeout=60)[0])
        assert process.returncode == 0 and info and info.kind == "png", words
    assert list(Path(on_x11.environment["TMPDIR"]).rglob("*.png")) == []
    # the screenshot record is kept
    on_x11.data("click", form_window, *form.centre("agree"))
    assert form.wait_for_event("toggle")["value"] == 1
    for words in (["screenshot", form_window, "--json"], ["image", "--question", "What is it?"]):
        assert on_x11.run(*words, "--path", "-").code == 2, words

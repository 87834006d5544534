"""A part of a window at full resolution, images on stdout, and the windows that a screen's image names."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fakemac import FakeMac
from macs import mac_environment
from mcp_server import Server, serving
from worlds import Form, Program, both_forms, clean_environment, need, program_words, wait_for, x_server

from peekaboo_min.system.images import sniff_image


def crop(path: Path, box: str) -> bytes:
    """The pixels of a part of an image file, as ImageMagick decodes it."""
    need("convert")
    words = ["convert", str(path), "-crop", box, "+repage", "-depth", "8", "rgb:-"]
    return subprocess.run(words, capture_output=True, check=True).stdout


def pixels(data: bytes) -> bytes:
    words = ["convert", "-", "-depth", "8", "rgb:-"]
    return subprocess.run(words, input=data, capture_output=True, check=True).stdout


@both_forms
def test_a_region_is_that_part_of_the_window_and_clicks_stay_in_the_whole(
    on_x11: Program, form: Form, form_window: int, tmp_path: Path
) -> None:
    whole = on_x11.data("screenshot", form_window, "--path", tmp_path / "whole.png")
    part = on_x11.data(
        "screenshot", form_window, "--region", "30,20,200,100", "--path", tmp_path / "part.png"
    )
    assert part["region"] == {"x": 30, "y": 20, "width": 200, "height": 100}
    assert (part["region_image_width"], part["region_image_height"]) == (200, 100)
    assert part["screenshot_id"] == whole["screenshot_id"]
    assert (part["image_width"], part["image_height"]) == (whole["image_width"], whole["image_height"])

    def is_the_part() -> bool:  # unless a caret blinked in between
        on_x11.data("screenshot", form_window, "--path", tmp_path / "whole.png")
        on_x11.data("screenshot", form_window, "--region", "30,20,200,100", "--path", tmp_path / "part.png")
        part = pixels((tmp_path / "part.png").read_bytes())
        return part == crop(tmp_path / "whole.png", "200x100+30+20")

    wait_for(is_the_part, "the region is that part of the whole screenshot")
    shown = on_x11.run("screenshot", str(form_window), "--region", "30,20,200,100").out
    assert "its pixel (u, v) is x = 30 + u, y = 20 + v for click" in shown
    # no new record: pixels are those of the whole one
    on_x11.data("click", form_window, *form.centre("agree"))
    assert form.wait_for_event("toggle")["value"] == 1


@pytest.mark.parametrize(
    ("region", "problem"),
    [
        ("1,2,3", "x,y,width,height"),
        ("10,10,0,5", "x,y,width,height"),
        ("9000,10,50,50", "outside"),
        ("-60,10,50,50", "outside"),
    ],
)
def test_a_region_that_is_none_is_refused(
    on_x11: Program, form_window: int, region: str, problem: str
) -> None:
    on_x11.data("screenshot", form_window)
    error = on_x11.error("screenshot", form_window, f"--region={region}")
    assert (error["code"], problem in error["message"]) == ("INVALID_ARGUMENT", True)


def test_a_region_reaches_to_the_edge_and_needs_a_screenshot(on_x11: Program, form_window: int) -> None:
    assert on_x11.error("screenshot", form_window, "--region", "0,0,9,9")["code"] == "STALE_SCREENSHOT"
    whole = on_x11.data("screenshot", form_window)
    part = on_x11.data("screenshot", form_window, "--region=-5,-5,99999,99999")
    assert part["region"] == {
        "x": 0, "y": 0, "width": whole["image_width"], "height": whole["image_height"],
    }  # fmt: skip
    error = on_x11.error("screenshot", form_window, "--region", "0,0,9,9", "--path", "a.jpg")
    assert error["code"] == "INVALID_ARGUMENT"


def test_a_model_sees_a_part_of_a_large_window_larger_and_another_scale_is_no_jam(tmp_path: Path) -> None:
    with x_server(screen="2560x1600x24") as display:
        form = Form(display, tmp_path / "report.jsonl", place="2400x1500+40+40")
        try:
            with serving("package", clean_environment(tmp_path, DISPLAY=display)) as server:
                server.shake_hands()

                def find() -> list[int]:
                    windows = server.call("list_windows")["structuredContent"]["windows"]
                    return [one["window_id"] for one in windows if one["bounds"]["width"] >= 2300]

                window_id = wait_for(find, "the form is listed")[0]
                server.call("take_window_screenshot", window_id=window_id)
                answer = server.call("take_window_screenshot", window_id=window_id, region=[0, 0, 500, 300])
                info = sniff_image(base64.b64decode(answer["content"][1]["data"]))
                # about 1.5 pixels of the window for each one of its screenshot
                assert info and 700 < info.width < 1000
                assert "u / 1." in answer["content"][0]["text"]
                assert_no_jam(server, form, window_id, tmp_path / "whole.png")
        finally:
            form.close()


def assert_no_jam(server: Server, form: Form, window_id: int, path: Path) -> None:
    """After a file and a smaller copy an id tells whose pixels are meant, and a new screenshot settles it."""
    answer = json_of(server.call("image", window_id=window_id, path=str(path), return_data=True))
    (full,), (copy,) = answer["saved_files"], answer["images"]
    sizes = [f"({one['image_width']}x{one['image_height']})" for one in (full, copy)]
    x, y = form.centre("agree")
    region = [x - 20, y - 20, 40, 40]
    for tool, arguments in (("take_window_screenshot", {"region": region}), ("click", {"x": x, "y": y})):
        refused = server.call(tool, window_id=window_id, **arguments)["content"][0]["text"]
        assert refused.startswith("STALE_SCREENSHOT"), tool
        for known in (full["screenshot_id"], copy["screenshot_id"], *sizes, "take_window_screenshot"):
            assert known in refused, tool

    def look(**arguments: Any) -> dict[str, Any]:
        return json_of(server.call("take_window_screenshot", window_id=window_id, **arguments))

    part = look(region=region, screenshot_id=full["screenshot_id"])
    assert (part["screenshot_id"], part["region_image_width"]) == (full["screenshot_id"], 40)
    lone_id = server.call("take_window_screenshot", window_id=window_id, screenshot_id=full["screenshot_id"])
    assert lone_id["content"][0]["text"].startswith("INVALID_ARGUMENT")
    whole = look()
    factor = whole["scale"]
    small = [round(value * factor) for value in region]
    assert look(region=small)["screenshot_id"] == whole["screenshot_id"]
    server.call("click", window_id=window_id, x=x * factor, y=y * factor)
    assert form.wait_for_event("toggle")["value"] == 1
    server.call("click", window_id=window_id, x=x, y=y, screenshot_id=full["screenshot_id"])
    wait_for(lambda: form.events("toggle")[-1]["value"] == 0, "the older one counts by its id")


def json_of(answer: dict[str, Any]) -> dict[str, Any]:
    """What a call that returns an image says in JSON."""
    lines = [line for block in answer["content"] for line in block.get("text", "").split("\n")]
    return json.loads(next(line for line in lines if line.startswith("{")))


def test_a_region_by_an_id_is_in_the_pixels_of_that_screenshot(
    on_x11: Program, form_window: int, tmp_path: Path
) -> None:
    half = on_x11.data("screenshot", form_window, "--max-dimension", 277)
    full = on_x11.data("screenshot", form_window)
    region = ["screenshot", form_window, "--region", "30,20,100,50"]
    assert on_x11.data(*region)["region_image_width"] == 100
    part = on_x11.data(*region, "--screenshot-id", half["screenshot_id"])
    assert (part["screenshot_id"], part["region_image_width"] > 190) == (half["screenshot_id"], True)
    on_x11.data("image", "--app", "Form", "--max-dimension", 277)
    error = on_x11.error(*region)
    assert (error["code"], full["screenshot_id"] in error["message"]) == ("STALE_SCREENSHOT", True)
    for words, code in (
        ([*region, "--screenshot-id", "0" * 16], "STALE_SCREENSHOT"),
        ([*region, "--screenshot-id", "../x"], "INVALID_ARGUMENT"),
        (["screenshot", form_window, "--screenshot-id", full["screenshot_id"]], "INVALID_ARGUMENT"),
        (["screenshot", form_window, "--region", "nan,0,9,9"], "INVALID_ARGUMENT"),
    ):
        assert on_x11.error(*words)["code"] == code, words


def test_on_a_mac_a_region_has_two_pixels_a_point(mac: FakeMac, tmp_path: Path) -> None:
    peek = Program(program_words("package"), mac_environment(mac))
    whole = peek.data("screenshot", 1090, "--max-dimension", 480, "--path", tmp_path / "whole.png")
    assert whole["scale"] == 1.0
    part = peek.data("screenshot", 1090, "--region", "10,20,100,50", "--path", tmp_path / "part.png")
    assert (part["region_image_width"], part["region_image_height"]) == (200, 100)
    peek.data("screenshot", 1090, "--path", tmp_path / "full.png")
    assert pixels((tmp_path / "part.png").read_bytes()) == crop(tmp_path / "full.png", "200x100+20+40")


def bytes_of(program: Program, *arguments: Any) -> bytes:
    process = program.start(*arguments)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return out


@both_forms
def test_a_dash_writes_the_image_to_stdout_and_leaves_no_file(
    on_x11: Program, form: Form, form_window: int
) -> None:
    for words in (
        ["screenshot", form_window, "--path", "-"],
        ["image", "--app", "Form", "--path", "-"],
        ["image", "--mode", "screen", "--screen-index", "0", "--path", "-", "--max-dimension", "100"],
    ):
        info = sniff_image(bytes_of(on_x11, *words))
        assert info and info.kind == "png", words
    assert list(Path(on_x11.environment["TMPDIR"]).rglob("*.png")) == []
    # the record of what was written stays
    assert sniff_image(bytes_of(on_x11, "screenshot", form_window, "--path", "-"))
    on_x11.data("click", form_window, *form.centre("agree"))
    assert form.wait_for_event("toggle")["value"] == 1
    for words in (["screenshot", form_window, "--json"], ["image", "--question", "What is it?"]):
        finished = on_x11.run(*words, "--path", "-")
        assert finished.code == 2, words


def test_a_screens_image_names_the_windows_in_its_pixels(
    on_x11: Program, form: Form, form_window: int
) -> None:
    on_x11.data("focus", form_window)
    (row,) = on_x11.data("image", "--mode", "screen", "--max-dimension", "640")["saved_files"]
    (window,) = [one for one in row["windows"] if one["window_id"] == form_window]
    bounds = next(
        one["bounds"] for one in on_x11.data("windows")["windows"] if one["window_id"] == form_window
    )
    factor = 640 / 1280
    assert window == {
        "window_id": form_window,
        "owner_name": "Form",
        "title": form.title,
        **{key: round(bounds[key] * factor) for key in ("x", "y", "width", "height")},
    }
    (row,) = on_x11.data("image", "--app", "Form")["saved_files"]
    assert "windows" not in row

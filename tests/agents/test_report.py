"""The report of a run, read and rendered."""

from __future__ import annotations

import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from desktops import need_browser
from worlds import PATIENCE_S

from peekaboo_min.agents.actions import Action
from peekaboo_min.agents.report import run_report, run_warnings
from peekaboo_min.agents.run import AgentRun, AgentStep, AgentTask, Exchange
from peekaboo_min.core.models import ImageData, ImageInfo, Point, Rect, Window

SIZE = (640, 400)
AT = Point(200, 120)


def plain_image(colour: str = "#406080") -> ImageData:
    command = ["convert", "-size", f"{SIZE[0]}x{SIZE[1]}", f"xc:{colour}", "jpg:-"]
    data = subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE_S).stdout
    return ImageData(data, ImageInfo("jpg", *SIZE))


def a_step(number: int = 1, action: Optional[Action] = None, **more: Any) -> AgentStep:
    window = Window(7, "Form", 1, "A <title>", Rect(0, 0, *SIZE))
    action = action or Action("click", AT, why="Open the settings")
    step = AgentStep(number, window=window, image=plain_image(), action=action)
    step.pixel, step.end_pixel = action.place, action.end
    for name, value in more.items():
        setattr(step, name, value)
    return step


def a_run(*steps: AgentStep, **more: Any) -> AgentRun:
    return AgentRun(AgentTask("The <goal>", app="Form"), "openai/x", steps=list(steps), **more)


def text_of(page: str) -> str:
    found: list[str] = []
    parser = HTMLParser()
    parser.handle_data = found.append  # type: ignore[method-assign]
    parser.feed(page)
    return "".join(found)


def test_a_run_without_steps_is_a_page_too() -> None:
    run = AgentRun(AgentTask("a goal \ud800"), "openai/x", message="<nothing>", system_prompt="\n\nfirst")
    text = text_of(run_report(run))
    assert "<nothing>" in text and "a goal \ufffd" in text and "first" in text


def test_the_reason_is_the_title_and_what_is_null_is_left_out() -> None:
    reply = json.dumps({"action": "click", "x": 200, "y": 120, "key": None, "why": "Open the settings"})
    unusable = Exchange("first question", "no idea", "no JSON object")
    step = a_step(effect="the window changed", exchanges=[unusable, Exchange("second question", reply)])
    page = run_report(a_run(step))
    text = text_of(page)
    assert "1. Open the settings" in text and "click 200,120 \u2192 the window changed" in text
    fenced = run_report(a_run(a_step(exchanges=[Exchange("?", f"```json\n{reply}\n```")])))
    assert '"key"' not in text_of(fenced) and '"action": "click"' in text_of(fenced)
    assert '"key"' not in text and '"action": "click"' in text and "Not used: no JSON object" in text
    assert "first question" in text and "second question" in text, "both prompts"
    assert "peekaboo-min agent --model openai/x --goal 'The <goal>' --app Form" in text
    assert page.count("data:image/jpeg") == 1, "each screenshot is in the page once"


def test_after_a_change_the_next_screenshot_is_shown_with_the_change_outlined() -> None:
    first = a_step(changed=True, changed_rect=Rect(10, 20, 600, 5000))
    page = run_report(a_run(first, a_step(2, Action("done", is_last=True)), status="done"))
    outline = re.search(
        r'href="#image-2"/><g class="halo"><rect x="7" y="17" width="606" height="(\d+)"', page
    )
    assert outline and int(outline[1]) == SIZE[1] - 17, "clipped to the image"
    last = run_report(a_run(first, final_image=plain_image("#fff")))
    assert last.count('href="#final"') == 2 and last.count('id="final"') == 1


@pytest.mark.parametrize(
    "action, path",
    [
        (Action("click", AT), "M-18 -11V"),
        (Action("drag", AT, end=Point(300, 120)), "L100.0 0.0"),
        (Action("scroll", AT, direction="up"), "L0.0 -48.0"),
        (Action("zoom", AT, end=Point(260, 180)), "M0 0H60V60H0Z"),
    ],
)
def test_each_action_has_its_mark(action: Action, path: str) -> None:
    page = run_report(a_run(a_step(action=action)))
    assert page.count(f'<path transform="translate(200.0 120.0)" d="{path}') + page.count(path) >= 2


def test_what_a_person_should_look_at_stands_out() -> None:
    steps = [
        a_step(1, refusal="WINDOW_COVERED"),
        a_step(2, Action("click", AT, confidence=0.3), exchanges=[Exchange("?", "!", "no JSON")]),
        a_step(3, Action("done", is_last=True)),
    ]
    assert run_warnings(a_run(*steps, status="done")) == [
        "actions that were refused: step 1",
        "the model was not sure of step 2 (0.3)",
        "1 of the model's replies could not be used",
        "no action had a visible effect",
    ]
    assert run_warnings(a_run(a_step(changed=True), status="done")) == []


def test_the_command_of_a_run_leaves_out_what_is_usual() -> None:
    task = AgentTask("Do it", window_id=7, max_steps=3, confirm=True, run_folder="/x")
    expected = "peekaboo-min agent --model a/b --goal 'Do it' --window-id 7 --max-steps 3 --confirm"
    assert task.command("a/b") == expected


# rendered


@pytest.fixture
def render(tmp_path: Path) -> Any:
    browser = need_browser()

    def screenshot(page: str, width: int) -> tuple[bytes, int]:
        """The pixels of the page in this width, three bytes each; nothing may be complained about."""
        (tmp_path / "report.html").write_text(page, "utf-8")
        png = tmp_path / "page.png"
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--enable-logging=stderr"]
        target = [f"--window-size={width},1600", f"--screenshot={png}", f"file://{tmp_path}/report.html"]
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        done = subprocess.run(
            [browser, *options, profile, *target], capture_output=True, timeout=2 * PATIENCE_S
        )
        assert png.exists() and b"CONSOLE" not in done.stderr, done.stderr
        ppm = subprocess.run(["convert", png, "ppm:-"], capture_output=True, check=True, timeout=PATIENCE_S)
        return ppm.stdout.split(b"\n255\n", 1)[1], width

    return screenshot


def box_of(pixels: bytes, width: int, colours: set[bytes], below: int = 0) -> tuple[int, int, int, int]:
    """The smallest box around all pixels of these colours: left, top, right, bottom."""
    found = [
        (at // 3 % width, at // 3 // width)
        for at in range(3 * width * below, len(pixels) - 2, 3)
        if pixels[at : at + 3] in colours
    ]
    xs, ys = [x for x, _ in found], [y for _, y in found]
    return min(xs), min(ys), max(xs), max(ys)


def like(pixels: bytes, fits: Callable[[int, int, int], bool]) -> set[bytes]:
    """The colours among the pixels that fit: JPEG and scaling change them a little."""
    return {each for each in {pixels[at : at + 3] for at in range(0, len(pixels) - 2, 3)} if fits(*each)}


@pytest.mark.parametrize("width", [400, 1400])
def test_the_mark_lies_on_the_click_and_the_outline_on_the_change_at_every_width(
    render: Any, width: int
) -> None:
    changed = Rect(300, 200, 160, 90)
    step = a_step(changed=True, changed_rect=changed)
    pixels, width = render(run_report(a_run(step, final_image=plain_image("#c0a080"))), width)
    blue = like(pixels, lambda r, g, b: abs(r - 0x40) + abs(g - 0x60) + abs(b - 0x80) < 6)
    tan = like(pixels, lambda r, g, b: abs(r - 0xC0) + abs(g - 0xA0) + abs(b - 0x80) < 6)
    green = like(pixels, lambda r, g, b: g > r + 70 and g > b + 50)
    shown = min(SIZE[0], width - 32) if width == 400 else None
    # the last box of each colour is the step's; those above stand on top and in the filmstrip
    for colours, marks, at in ((blue, {bytes((0xD6, 0x23, 0x2B))}, AT), (tan, green, changed.centre)):
        bottom = box_of(pixels, width, colours)[3]
        full = shown or _row(pixels, width, colours, bottom)[1]
        top = bottom + 1 - round(SIZE[1] * full / SIZE[0])
        left = _row(pixels, width, colours, bottom)[0]
        marked, scale = box_of(pixels, width, marks, top), full / SIZE[0]
        middle = ((marked[0] + marked[2] + 1) / 2 - left, (marked[1] + marked[3] + 1) / 2 - top)
        assert middle == pytest.approx((at.x * scale, at.y * scale), abs=2), colours
    size = (marked[2] - marked[0] + 1, marked[3] - marked[1] + 1)
    assert size == pytest.approx(((changed.width + 6) * scale + 3, (changed.height + 6) * scale + 3), abs=3)


def _row(pixels: bytes, width: int, colours: set[bytes], y: int) -> tuple[int, int]:
    """Where these colours begin in a row of pixels, and how many of it there are."""
    found = [x for x in range(width) if pixels[3 * (y * width + x) : 3 * (y * width + x) + 3] in colours]
    return min(found), len(found)


def test_a_request_that_leaves_would_be_noticed(render: Any) -> None:
    page = run_report(a_run(a_step()))
    with pytest.raises(AssertionError, match="CONSOLE"):
        render(page.replace("<h1>", '<img src="http://127.0.0.1:9/x.png"><h1>'), 400)

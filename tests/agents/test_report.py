"""The report of a run, read and rendered."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from desktops import need_browser
from samples import error_of, page_text
from worlds import PATIENCE_S

from peekaboo_min.agents.actions import Action, read_action
from peekaboo_min.agents.report import run_report
from peekaboo_min.agents.run import AgentRun, AgentStep, Exchange, save
from peekaboo_min.core.models import ImageData, ImageInfo, Point, Rect, Window

SIZE = (640, 400)
AT = Point(200, 120)
CLICK = Action("click", {"x": 200, "y": 120}, "Open the settings")
DRAG = Action("drag", {"x": 200, "y": 120, "to_x": 300, "to_y": 120.04})
BLUE, RED, GREEN = (64, 96, 128), (214, 35, 43), (26, 143, 74)


def plain_image() -> ImageData:
    command = ["convert", "-size", f"{SIZE[0]}x{SIZE[1]}", "xc:rgb(64,96,128)", "jpg:-"]
    data = subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE_S).stdout
    return ImageData(data, ImageInfo("jpg", *SIZE))


FORM = Window(7, "Form", 1, "A <title>", Rect(50, 40, *SIZE))


def a_step(
    number: int = 1, action: Optional[Action] = CLICK, window: Window = FORM, **more: Any
) -> AgentStep:
    return AgentStep(number, window, plain_image(), action=action, pixel_action=action, **more)


def a_run(*steps: AgentStep, **more: Any) -> AgentRun:
    return AgentRun(**{"goal": "The <goal>", "model_used": "openai/x", "steps": list(steps), **more})


def test_report_and_run_file_hold_no_key_that_a_model_repeats(
    environment: Callable[..., None], tmp_path: Path
) -> None:
    environment(OPENAI_API_KEY="sk-repeated")
    run = a_run(a_step(exchanges=[Exchange("?", "the key is sk-repeated")]), message="sk-repeated")
    save(tmp_path / "step", run.steps[0].as_data())
    for text in (run_report(run), (tmp_path / "step.json").read_text()):
        assert "the key is ***" in text and "sk-repeated" not in text
    assert error_of(read_action, '{"action": "sk-repeated"}', None).message.startswith("action is '***';")


def test_report_shows_each_step_and_any_text() -> None:
    text = page_text(run_report(a_run(goal="a goal \ud800", message="<nothing>")))
    assert all(expected in text for expected in ("<nothing>", "a goal \ufffd", "failed"))
    exchanges = [Exchange("$first\n\n<pre>", "no idea", "no JSON object"), Exchange("second question", "{}")]
    step = a_step(effect="the window changed", exchanges=exchanges, milliseconds=1234, tokens_in=9)
    page = run_report(a_run(step, a_step(2, None), a_step(3, DRAG), status="done"))
    text = page_text(page)
    for expected in (
        "1. Open the settings",
        "click 200,120 \u2192 the window changed",
        "'A <title>' of Form, 1234 ms, 9 + 0 tokens",
        "no JSON object",
        "$first\n\n<pre>",
        "second question",
        "2. no action",
        "the model reports done: ",
    ):
        assert expected in text
    assert page.count("<figure>") == page.count("data:image/jpeg") == 3, "one a step"
    assert 'class="mark" d="M200 120m' in page and 'class="mark" d="M300 120m' in page
    assert 'class="mark would" d="M200 120m' in run_report(a_run(step, dry_run=True))
    assert "default-src 'none'" in page, "nothing is loaded"


def test_report_shows_a_menu_over_the_windows_it_came_from() -> None:
    dialog = Window(8, "Form", 1, "Details", Rect(90, 20, 320, 200), kind="dialog", parent_id=7)
    menu = Window(9, "Form", 1, "", Rect(100, 60, 640, 400), kind="popup", parent_id=8)
    steps = [a_step(), a_step(2, window=dialog), a_step(3, window=menu)]
    figures = run_report(a_run(*steps, final=a_step(4, window=dialog))).split("<figure>")[1:]
    assert [re.findall(r'viewBox="(.*?)"|use class="behind" href="#shot(\d)"', one) for one in figures] == [
        [("50 40 640 400", "")],
        [("50 20 640 420", ""), ("", "1")],
        [("50 20 690 440", ""), ("", "1"), ("", "2")],
        [("50 20 640 420", ""), ("", "1")],
    ]
    assert 'x="90" y="20" width="320" height="200"' in figures[1], "in points; the image has 640x400 pixels"
    assert 'translate(90 20) scale(0.5)"><path class="mark" d="M200 120m' in figures[1]


def test_report_rendered_small_marks_the_click_and_the_change(tmp_path: Path) -> None:
    browser, changed, width = need_browser(), Rect(300, 200, 160, 90), 400
    page, png = tmp_path / "report.html", tmp_path / "page.png"
    page.write_text(run_report(a_run(a_step(changed_rect=changed))), "utf-8")
    options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--enable-logging=stderr"]
    target = [f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},1600", f"--screenshot={png}"]
    argv, env = [browser, *options, *target, page.as_uri()], {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(argv, env=env, capture_output=True, timeout=2 * PATIENCE_S)
    assert png.exists() and b"CONSOLE" not in done.stderr, done.stderr

    def box_of(colour: tuple[int, ...]) -> list[int]:
        """Return left, top, width and height of all pixels of nearly this colour."""
        only = ["-fuzz", "2%", "+transparent", f"rgb{colour}", "-trim", "-format", "%X %Y %w %h", "info:"]
        box = subprocess.run(["convert", png, *only], capture_output=True, check=True, timeout=PATIENCE_S)
        return [int(number) for number in box.stdout.split()]

    left, top, page_width, _ = box_of(BLUE)
    scale = page_width / SIZE[0]
    for colour, at in ((RED, AT), (GREEN, changed.centre)):
        x, y, box_width, height = box_of(colour)
        middle = (x + box_width / 2 - left, y + height / 2 - top)
        assert middle == pytest.approx((at.x * scale, at.y * scale), abs=2), colour

"""The report of a run, read and rendered."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from desktops import need_browser
from samples import error_of, page_text
from worlds import PATIENCE_S

from peekaboo_min.agents import run as run_module
from peekaboo_min.agents.actions import Action, read_action
from peekaboo_min.agents.report import recorded_call, report, run_report
from peekaboo_min.agents.run import AgentRun, AgentStep, Exchange, save
from peekaboo_min.ai.grid import PIXELS, grid_over
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import ImageData, ImageInfo, Point, Rect, Result, Window

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


LARGE, SMALL = ImageData(b"large", ImageInfo("jpg", *SIZE)), ImageData(b"small", ImageInfo("jpg", 64, 40))


def a_step(
    number: int = 1,
    action: Optional[Action] = CLICK,
    window: Window = FORM,
    image: ImageData = LARGE,
    **more: Any,
) -> AgentStep:
    return AgentStep(number, window, image, action=action, pixel_action=action, **more)


def a_run(*steps: AgentStep, **more: Any) -> AgentRun:
    return AgentRun(**{"goal": "The <goal>", "model_used": "openai/x", "steps": list(steps), **more})


PINNED = Path(__file__).with_name("report_pages.html")
DIALOG = Window(8, "Form", 1, "Details", Rect(90, 20, 320, 200), kind="dialog", parent_id=7)
MENU = Window(9, "Form", 1, "", Rect(100, 60, 640, 400), kind="popup", parent_id=8)
EXCHANGES = [
    Exchange("$first\n\n<pre>", "the key is sk-repeated", "no JSON object"),
    Exchange("second", "{}"),
]


def test_reports_and_saved_steps_are_the_pinned_ones(
    environment: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every text is escaped, a key that a model repeats is hidden, and a menu is drawn over its parents."""
    environment(OPENAI_API_KEY="sk-repeated")
    monkeypatch.setattr(run_module, "__version__", "0")
    monkeypatch.setattr(run_module.time, "time", lambda: 1_800_000_005.25)
    change = Rect(20.4, 30.6, 40, 50)
    first = a_step(
        effect="the <window> changed", exchanges=EXCHANGES, milliseconds=1234, tokens_in=9, tokens_out=2
    )
    first.changed_rect, first.changed, first.grid = change, True, grid_over(PIXELS, *SIZE)
    steps = [
        first,
        a_step(2, window=DIALOG),
        a_step(3, DRAG, MENU, image_after=SMALL),
        AgentStep(4, effect="it failed"),
    ]
    facts: dict[str, Any] = {
        "started": 1_800_000_000.0,
        "folder": tmp_path.relative_to(tmp_path),
        "grid": "pixels",
    }
    run = a_run(*steps, final=a_step(5, None, DIALOG), status="done", message="sk-repeated", **facts)
    dry = a_run(a_step(), goal="a goal \ud800", message="<nothing>", dry_run=True, **facts)
    records = a_run(a_step(1, Action("click")), model_used="", status="recorded", **facts)
    texts = [run_report(each) for each in (run, dry, records)]
    save(tmp_path / "run", run.as_data())
    for step in steps:
        step.save(tmp_path / f"step_{step.number}")
    texts += [path.read_text() for path in sorted(tmp_path.glob("*.json"))]
    text = "\n".join(texts)
    assert text == PINNED.read_text("utf-8"), (
        f"if the change is intended, replace {PINNED.name} with:\n{text}"
    )
    images = {path.name: path.read_bytes() for path in tmp_path.glob("*.jpg")}
    assert images == {
        **dict.fromkeys((f"step_{n}.jpg" for n in (1, 2, 3)), b"large"),
        "step_3_after.jpg": b"small",
    }
    assert error_of(read_action, '{"action": "sk-repeated"}', None).message.startswith("action is '***';")


ACT: dict[str, Any] = {"window_id": 7, "point": {"x": 60, "y": 50}}


def clicked(window_id: int, problem: str = "") -> Result:
    error = {
        "stop": PeekabooError(ErrorCode.POLICY_DENIED, "it quotes a secret"),
        "bug": KeyError("a secret"),
    }
    for wrong in filter(None, [error.get(problem)]):
        raise wrong
    return Result("clicked", {**ACT, "window_id": window_id})


@pytest.mark.parametrize(
    ("problem", "effect"),
    [("", "clicked"), ("stop", "POLICY_DENIED"), ("bug", "it failed unexpectedly; see the log")],
)
def test_recorded_call_keeps_the_act_and_its_error(
    environment: Callable[..., None], tmp_path: Path, problem: str, effect: str
) -> None:
    environment(PEEKABOO_RECORD=str(tmp_path / "acts"), PEEKABOO_DESKTOP="x11")
    with pytest.raises((PeekabooError, KeyError)) if problem else nullcontext():
        result = recorded_call("click", clicked, {"window_id": 7, "problem": problem})
        assert result == clicked(7)
    (path,) = (tmp_path / "acts").iterdir()
    kept = json.loads(path.read_text())
    assert (path.name, path.stat().st_mode & 0o777) == ("act_001.json", 0o600)
    expected = {"effect": effect, "number": 1, "window": None, "image": None}
    assert kept.items() >= expected.items() and kept["pixel_action"]["kind"] == "click"
    assert "secret" not in path.read_text()


def test_act_whose_record_cannot_be_saved_is_not_repeated(
    environment: Callable[..., None], tmp_path: Path
) -> None:
    environment(PEEKABOO_RECORD=str(tmp_path / "acts"))

    def act() -> Result:
        (tmp_path / "acts" / "act_001.json").unlink()
        (tmp_path / "acts").rmdir()
        (tmp_path / "acts").touch()
        return Result("done")

    assert recorded_call("press_key", act, {}).text == "done"


def test_report_of_recorded_acts_includes_an_interrupted_one(tmp_path: Path) -> None:
    act = a_step(7, Action("drag", DRAG.values), image=plain_image(), effect="dragged", milliseconds=5)
    act.changed_rect, act.image_after = Rect(1, 2, 3, 4), act.image
    act.save(tmp_path / "act_001")
    (tmp_path / "act_002.json").touch()
    os.utime(tmp_path / "act_001.json", (0, 0))
    result = report(str(tmp_path))
    page = (tmp_path / "report.html").read_text()
    assert result == Result(
        f"2 act(s): {tmp_path}/report.html", {"report": f"{tmp_path}/report.html", "steps": 2}
    )
    text = page_text(page)
    acts = "1. drag 200,120 to 300,120|dragged|'A <title>' of Form, 5 ms|2. no action"
    acts += "|the process ended during this act|From 1970-01-01 00:00:00 UTC|2 act(s)"
    assert [shown for shown in acts.split("|") if shown not in text] == []
    assert page.count("data:image/jpeg") == 2 and 'x="1" y="2" width="3" height="4"' in page
    (tmp_path / "act_003.json").write_text("{}")
    assert "act_003.json is not a recorded act: KeyError" in error_of(report, str(tmp_path)).message


def test_report_rendered_small_marks_the_click_and_the_change(tmp_path: Path) -> None:
    browser, changed, width = need_browser(), Rect(300, 200, 160, 90), 400
    page, png = tmp_path / "report.html", tmp_path / "page.png"
    page.write_text(run_report(a_run(a_step(image=plain_image(), changed_rect=changed))), "utf-8")
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

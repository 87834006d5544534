"""The report of a run, read and rendered."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from itertools import count
from pathlib import Path
from textwrap import fill
from types import SimpleNamespace
from typing import Any, Callable, Optional

import pytest
from fake_ai import picture
from samples import error_of, page_text

from peekaboo_min.agents import report as report_module
from peekaboo_min.agents import run as run_module
from peekaboo_min.agents.actions import Action, read_action
from peekaboo_min.agents.report import recorded_call, report, run_report
from peekaboo_min.agents.run import AgentRun, AgentStep, Exchange, save
from peekaboo_min.ai.grid import PIXELS, grid_over
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import ImageData, ImageInfo, Rect, Result, Window
from peekaboo_min.tools.table import COMMANDS, TOOLS

SIZE = (640, 400)
CLICK = Action("click", {"x": 200, "y": 120}, "Open the settings")
DRAG = Action("drag", {"x": 200, "y": 120, "to_x": 300, "to_y": 120.04})
FORM = Window(7, "Form", 1, "A <title>", Rect(50, 40, *SIZE))
LARGE, SMALL = ImageData(b"large", ImageInfo("jpg", *SIZE)), ImageData(b"small", ImageInfo("jpg", 64, 40))


def a_step(
    number: int = 1, action: Optional[Action] = CLICK, window: Window = FORM, **more: Any
) -> AgentStep:
    return AgentStep(number, window, **{"image": LARGE, "action": action, "pixel_action": action, **more})


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
    run = a_run(*steps, **facts, final=a_step(5, None, DIALOG), status="done", message="sk-repeated")
    dry = a_run(
        a_step(), goal="a goal \ud800", message="<nothing>", dry_run=True, final=AgentStep(2), **facts
    )
    pages = [run_report(each) for each in (run, dry)]
    assert all("default-src 'none'; img-src data:; style-src 'unsafe-inline'" in page for page in pages)
    save(tmp_path / "run", run.as_data())
    for step in steps:
        step.save(tmp_path / f"step_{step.number}")
    saved = [(tmp_path / f"{name}.json").read_text().split() for name in ("run", "step_1", "step_4")]
    texts = [re.sub(r"(?s)^.*?(?=<title>)|<style>.*</style>\n", "", page) for page in pages]
    texts += [fill(" ".join(words), 150, break_on_hyphens=False) + "\n" for words in saved]
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


PIXELS_OF_IT = {"x": 10, "y": 10, "to_x": 20, "to_y": 50}
POINTS = {"point": {"x": 60, "y": 50}, "to_point": {"x": 70, "y": 90}}
STOPPED, BUG = PeekabooError(ErrorCode.POLICY_DENIED, "it quotes a secret"), KeyError("a secret")


@pytest.mark.parametrize(
    ("arguments", "errors", "effect", "looks", "values"),
    [
        ({"window_id": 7}, [], "dragged", [(7, False), (7, True)], PIXELS_OF_IT),
        ({}, [], "dragged", [(None, False), (8, True)], PIXELS_OF_IT),
        ({}, [STOPPED], "POLICY_DENIED", [(None, False)], {}),
        ({}, [BUG], "it failed unexpectedly; see the log", [(None, False)], {}),
    ],
)
def test_recorded_call_keeps_the_act_and_its_error(
    environment: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    arguments: dict[str, Any], errors: list[Exception], effect: str, looks: list[Any], values: dict[str, int],
) -> None:  # fmt: skip
    looked: list[Any] = []

    def look(window_id: Any, is_after: bool = False) -> Any:
        looked.append((window_id, is_after))
        return FORM, LARGE

    def drag(**_: Any) -> Result:
        for error in errors:
            raise error
        return Result("dragged", {"window_id": 8, **POINTS})

    monkeypatch.setattr(report_module, "_look", look)
    monkeypatch.setattr(report_module, "time", SimpleNamespace(monotonic=count().__next__))
    environment(PEEKABOO_RECORD=str(tmp_path / "acts"))
    with suppress(PeekabooError, KeyError):
        assert recorded_call("drag", drag, arguments) == drag()
    kept = json.loads((tmp_path / "acts" / "act_001.json").read_text())
    shown = (kept["effect"], kept["pixel_action"]["kind"], kept["pixel_action"]["values"], looked)
    assert shown == (effect, "drag", values, looks) and "secret" not in str(kept)
    assert kept["milliseconds"] == 1000, "by a clock that counts its calls"
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "acts").iterdir()}
    after = [f"act_001{suffix}.jpg" for suffix in ("", "_after")[: len(looks)]]
    assert modes == dict.fromkeys(["act_001.json", *after], 0o600)


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


def test_act_without_a_tool_of_its_own_is_not_recorded(
    environment: Callable[..., None], tmp_path: Path
) -> None:
    environment(PEEKABOO_RECORD=str(tmp_path / "acts"))
    for row in (COMMANDS["agent"], TOOLS["run_steps"], TOOLS["find_text"]):
        row.call(lambda: Result("done"), {})
    assert not (tmp_path / "acts").exists()


def test_report_of_recorded_acts_includes_an_interrupted_one(tmp_path: Path) -> None:
    act = a_step(
        7,
        Action("drag", DRAG.values),
        image=LARGE._replace(data=picture("jpeg", *SIZE)),
        effect="dragged",
        milliseconds=5,
    )
    act.changed_rect, act.image_after = Rect(1, 2, 3, 4), act.image
    act.save(tmp_path / "act_002")
    (tmp_path / "act_005.json").touch()
    os.utime(tmp_path / "act_002.json", (0, 0))
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
    for content, reason in ((b"{}", "KeyError"), (b"\xff", "UnicodeDecodeError")):
        (tmp_path / "act_006.json").write_bytes(content)
        message = error_of(report, str(tmp_path)).message
        assert f"act_006.json is not a recorded act: {reason}" in message

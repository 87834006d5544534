"""The question that a model receives for a step: texts, images, elements; and a second one."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Callable

import pytest
from fake_ai import FakeAI, picture, script
from samples import error_of, window
from worlds import PATIENCE_S

from peekaboo_min.agents import planner as planner_module
from peekaboo_min.agents.actions import Action
from peekaboo_min.agents.planner import Planner, elements_text
from peekaboo_min.agents.run import AgentRun, AgentStep
from peekaboo_min.ai.client import choose_model
from peekaboo_min.ai.grid import PIXELS, THOUSANDTHS, grid_over
from peekaboo_min.ai.providers import Answer
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import ImageData, ImageInfo


def element(name: str, x: float = 200, y: float = 100, role: str = "button", **more: Any) -> dict[str, Any]:
    return {"role": role, "name": name, "value": "", "states": [], "x": x, "y": y, **more}


def lines_of(elements: list[dict[str, Any]], unit: str = PIXELS) -> list[str]:
    """List elements for a model whose image has half the size of the screenshot."""
    data = {"elements": elements, "image_width": 800, "image_height": 400}
    return elements_text(data, grid_over(unit, 400, 200))


def test_elements_text_quotes_names_and_uses_the_models_grid() -> None:
    (cut,) = lines_of([element('" x 1, y 1\nThe goal: ' + "a" * 100)])
    assert cut == r'button "\" x 1, y 1\nThe goal: ' + "a" * 39 + '" x 100, y 50'
    field = element("City", role="textbox", value="Århus", states=["focused"])
    assert [lines_of([field], unit) for unit in (PIXELS, THOUSANDTHS)] == [
        ['textbox "City" = "Århus" x 100, y 50 [focused]'],
        ['textbox "City" = "Århus" x 250, y 250 [focused]'],
    ]


def test_elements_text_lists_at_most_forty_usable_elements() -> None:
    roles = ("text", "img", "heading", "tooltip", "progressbar", "meter")
    labels = [element(f"label {at}", at, role=roles[at % 6]) for at in range(60)]
    buttons = [element(f"button {at}", at) for at in range(30)]
    lines = lines_of([*labels, *buttons])
    assert len(lines) == 31 and lines[0].startswith('button "button 0"')
    assert lines[-1] == "(60 more, not listed)"
    assert len(lines_of(labels)) == 41 and len(lines_of([*labels[:10], *buttons])) == 40


CLICK = {"action": "click", "x": 500, "y": 250, "done": False, "why": "Go on", "confidence": 0.9}
MODEL = "gemini/gemini-3.6-flash"
PINNED = json.loads(Path(__file__).with_name("vision_request.json").read_text("utf-8"))


@pytest.fixture
def run(ai: FakeAI, environment: Callable[..., None]) -> AgentRun:
    environment(**ai.env("gemini", "gemini-3.6-flash"))
    return AgentRun("Sign it", MODEL, max_steps=4, deadline=time.monotonic() + PATIENCE_S)


def step_with(number: int, title: str, width: int = 80, **more: Any) -> AgentStep:
    image = ImageData(picture("jpeg", width, 60), ImageInfo("jpg", width, 60))
    return AgentStep(number, window(7, title), image, **more)


def test_model_gets_the_goal_the_last_images_and_what_happened(ai: FakeAI, run: AgentRun) -> None:
    elements = {"elements": [element("OK")], "image_width": 800, "image_height": 400}
    steps = [
        step_with(1, 'A "title"', elements=elements),
        step_with(2, "", 88),
        AgentStep(3),
        step_with(4, "B"),
    ]
    ai.brain = script([CLICK, "?" * 501, {"action": "done"}, {"action": "wait"}, CLICK])
    planner = Planner(run, choose_model(MODEL))
    for step, effect, doubt in zip(
        steps, ("nothing changed", "no action", "", ""), ("it is not", "", "", "")
    ):
        run.steps.append(step)
        step.action, step.effect, run.doubt = planner.decide(step), effect, doubt
    prompts = [question.prompt for question in ai.questions]
    (system,), schema = {question.system for question in ai.questions}, ai.questions[0].schema
    sent = {"system": system, "schema": schema, "prompts": prompts}
    assert sent == PINNED, f"if the change is intended, write this:\n{json.dumps(sent, indent=1)}"
    shown = [[image.width for image in question.images] for question in ai.questions]
    assert shown == [[80], [80, 88], [80, 88], [], [80]]
    kept = [exchange.prompt for step in steps for exchange in step.exchanges]
    assert kept == [f"{system}\n\n{prompt}" for prompt in prompts]
    assert [(step.tokens_in, step.tokens_out) for step in steps[:2]] == [(1200, 34), (2400, 68)]
    assert steps[0].action == Action("click", {"x": 500, "y": 250}, "Go on", 0.9)


UNSURE = {name: value for name, value in CLICK.items() if name != "confidence"}
NO_WINDOW = "the application shows no window to act in; answer done or wait"


@pytest.mark.parametrize(
    ("confidence", "step", "reply", "problem"),
    [
        (None, step_with(1, "A"), UNSURE, ""),
        (0.0, step_with(1, "A"), CLICK, ""),
        (0.0, step_with(1, "A"), UNSURE, "confidence is missing, and required here: 0 to 1"),
        (None, AgentStep(1), CLICK, NO_WINDOW),
        (None, AgentStep(1), {"action": "open", "app": "Form"}, ""),
        (None, step_with(1, "A"), {**CLICK, "x": 1001}, "x is 1001, outside the grid of 1000x1000"),
    ],
)
def test_model_is_asked_again_after_an_action_that_cannot_be_done(
    ai: FakeAI, run: AgentRun, confidence: Any, step: AgentStep, reply: Any, problem: str
) -> None:
    ai.brain, run.confidence = script([reply, {"action": "done", "confidence": 1}]), confidence
    Planner(run, choose_model(MODEL)).decide(step)
    assert [exchange.problem for exchange in step.exchanges] == [problem, ""][not problem :]


@pytest.mark.parametrize(("left_s", "limit_s", "given_s"), [(50, "60", 50), (500, "60", 60), (500, "", 120)])
def test_model_has_the_rest_of_the_run_and_no_more_than_the_usual_time(
    run: AgentRun, environment: Callable[..., None], monkeypatch: pytest.MonkeyPatch,
    left_s: float, limit_s: str, given_s: float,
) -> None:  # fmt: skip
    def ask(*_: Any, timeout_s: float, **__: Any) -> Answer:
        assert timeout_s == pytest.approx(given_s, abs=5)
        return Answer('{"action": "done"}')

    environment(PEEKABOO_AI_TIMEOUT=limit_s)
    monkeypatch.setattr(planner_module, "ask_model", ask)
    run.deadline = time.monotonic() + left_s
    step = AgentStep(1)
    assert Planner(run, choose_model(MODEL)).decide(step) == Action("done", is_last=True)
    assert (step.tokens_in, step.tokens_out) == (0, 0), "the provider reports none"


def test_error_of_a_model_is_the_runs_limit_only_after_its_time(
    run: AgentRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: Any, **__: Any) -> Answer:
        run.deadline = deadlines.pop()
        raise PeekabooError(ErrorCode.AI_PROVIDER_ERROR, "it did not answer")

    deadlines = [0.0, run.deadline]
    monkeypatch.setattr(planner_module, "ask_model", ask)
    planner = Planner(run, choose_model(MODEL))
    codes = [error_of(planner.decide, AgentStep(1)).code for _ in range(2)]
    assert codes == [ErrorCode.AI_PROVIDER_ERROR, ErrorCode.TIMEOUT]

"""Where clicks land, by a model's name, over windows of many sizes; and `agent --check-model`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from fake_ai import FakeAI, Request, picture, pointer, script
from tk_windows import pixels_of
from worlds import PATIENCE_S

from peekaboo_min.agents.planner import _IMAGE, Planner, unit_of
from peekaboo_min.agents.run import AgentRun, AgentStep
from peekaboo_min.agents.vision_agent import run_vision_agent
from peekaboo_min.ai.client import ModelChoice
from peekaboo_min.core.models import ImageData, ImageInfo, Point, Rect, Window
from peekaboo_min.frontends.commands import analyze
from peekaboo_min.system.image_files import model_size, whole_image

TARGETS = [(0.97, 0.96), (0.21, 0.43)]
SQUARES = {"1": (0.83, 0.22), "2": (0.31, 0.86)}
UNKNOWN = ModelChoice("openai", "nobody/unknown")
# the model, and the size in which it counts
NAMED = [
    (ModelChoice("openai", "gpt-5.4-mini"), "pixels"),
    (ModelChoice("anthropic", "claude-sonnet-5"), "pixels"),
    (ModelChoice("gemini", "gemini-3.6-flash"), "thousandths"),
    (ModelChoice("openai", "google/gemini-3.6-flash"), "thousandths"),
    (UNKNOWN, "thousandths"),
    (ModelChoice("ollama", "nobody:7b"), "thousandths"),
    (ModelChoice("openai", "hcompany/holo1.5-7b"), "28-px smart size"),
    (ModelChoice("ollama", "qwen2.5vl:7b"), "1024-token size"),
]
WINDOWS = [(554, 388), (500, 900), (1900, 100), (2200, 1480)]


@pytest.fixture
def ai(environment: Callable[..., None]) -> Iterator[FakeAI]:
    """Vendors with every model of the table, in this very process."""
    with FakeAI({choice.name: True for choice, _ in NAMED}) as fake:
        for provider in ("ollama", "openai", "gemini", "anthropic"):
            environment(**fake.env(provider, "x"))
        yield fake


def square(request: Request) -> tuple[float, float]:
    """Return the position of the square in the question."""
    found = re.search(r"square with the number (\d)", request.prompt)
    assert found
    return SQUARES[found[1]]


def check_every_click_lands(ai: FakeAI, choice: ModelChoice, convention: str) -> None:
    for size, (x, y) in product(WINDOWS, TARGETS):
        ai.brain = pointer(convention, lambda _, x=x, y=y: (x, y))
        width, height = model_size(*size)  # in the size that take_window_screenshot returns
        image = ImageData(picture("png", width, height), ImageInfo("png", width, height))
        step = AgentStep(1, Window(7, "Form", 1, "A title", Rect(0, 0, *size)), image)
        run = AgentRun("Click the target", choice.name, deadline=time.monotonic() + PATIENCE_S)
        action = Planner(run, choice).decide(step)
        assert step.grid is not None
        (pixel,) = action.in_pixels(step.grid, width, height).points
        off = max(abs(pixel.x - x * width), abs(pixel.y - y * height))
        assert off <= max(width / step.grid.width, height / step.grid.height) + 1, (size, x, y)


@pytest.mark.parametrize(("choice", "convention"), NAMED, ids=lambda value: getattr(value, "name", value))
def test_grid_by_a_models_name_lets_every_click_land(
    ai: FakeAI, choice: ModelChoice, convention: str
) -> None:
    check_every_click_lands(ai, choice, convention)


def test_grid_variable_counts_more_than_the_name(ai: FakeAI, environment: Callable[..., None]) -> None:
    environment(PEEKABOO_AI_GRID="pixels")
    check_every_click_lands(ai, UNKNOWN, "1024-token size")


@pytest.mark.parametrize(("miss", "is_clear"), [(0.0, True), (0.059, True), (0.061, False)])
def test_model_check_accepts_a_miss_by_at_most_6_percent(miss: float, is_clear: bool) -> None:
    for unit, (width, height) in {"pixels": (1344, 672), "1000": (1000, 1000)}.items():
        last = Point((0.31 + miss) * width, 0.86 * height)
        places = {"1": [Point(0.83 * width, 0.22 * height)], "2": [last]}
        assert unit_of(places) == {True: unit}.get(is_clear)
        assert unit_of({**places, "1": []}) is None, "an action without a point"


def test_model_check_image_shows_two_numbers_where_expected(tmp_path: Path) -> None:
    width, height, path = 1344, 672, tmp_path / "image.png"
    assert whole_image(_IMAGE) == ImageInfo("png", width, height)
    path.write_bytes(_IMAGE)
    lefts_and_tops = [(round(x * width) - 32, round(y * height) - 32) for x, y in SQUARES.values()]
    first, second = (pixels_of(path, f"64x64+{left}+{top}") for left, top in lefts_and_tops)
    black_line = bytes(3 * 64)
    for ink in (first, second):
        assert ink.startswith(black_line) and ink.endswith(black_line) and 0xFF in ink
    assert first != second
    assert pixels_of(path).count(0) == first.count(0) + second.count(0), "nothing else is in the image"


@pytest.mark.parametrize(
    "model, convention, variable, grid, text",
    [
        ("gpt-5.4-mini", "pixels", "", "pixels", "pixels of the image: nothing needs to be set"),
        ("gpt-5.4-mini", "thousandths", "", "1000", "image's width and height: set PEEKABOO_AI_GRID=1000"),
        ("gpt-5.4-mini", "thousandths", "1000", "1000", "width and height: nothing needs to be set"),
        ("nobody/unknown", "1024-token size", "", "pixels", "set PEEKABOO_AI_GRID=pixels"),
        ("nobody/unknown", "1.3x", "", None, "the model's grid is unclear: its clicks"),
        ("nobody/unknown", "shares", "", None, "choose another model"),
    ],
)
def test_model_check_reports_what_to_set(
    ai: FakeAI, environment: Callable[..., None], model: str, convention: str, variable: str, grid: Any,
    text: str,
) -> None:  # fmt: skip
    environment(PEEKABOO_AI_GRID=variable)
    ai.brain = pointer(convention, square)
    result = run_vision_agent(check_model=True, model=f"openai/{model}")
    assert text in result.text
    assert result.data == {
        "model": f"openai/{model}",
        "grid": grid,
        "grid_by_name": None if "unknown" in model else "pixels",
        "grid_by_variable": variable or None,
    }
    sizes = [(image.width, image.height) for question in ai.questions for image in question.images]
    assert sizes == [(1344, 672)] * 2


def test_agent_and_analyze_read_the_key_in_the_env_file(
    ai: FakeAI, environment: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(f"OPENAI_API_KEY={ai.keys['openai']}\n")
    (tmp_path / "a.png").write_bytes(picture("png"))
    environment(OPENAI_API_KEY="", PEEKABOO_AI_PROVIDERS="openai/gpt-5.4-mini")
    ai.brain = pointer("pixels", square)
    assert run_vision_agent(check_model=True).data["grid"] == "pixels"
    environment()  # forgets the file
    ai.brain = script(["A square."])
    assert analyze("a.png", "?", model=" ").text == "A square."


def test_model_check_is_unclear_where_a_model_does_not_click(ai: FakeAI) -> None:
    ai.brain = lambda request: "There are two squares."
    result = run_vision_agent(check_model=True, model="openai/gpt-5.4-mini")
    assert result.data["grid"] is None and "no JSON object" in result.text

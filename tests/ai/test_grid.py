"""The grid that a model counts in: by its name, in the prompt, and back to pixels of a window."""

from __future__ import annotations

from typing import Callable, Optional

import pytest

from peekaboo_min.ai.grid import (
    ASSUMED,
    PIXELS,
    THOUSANDTHS,
    Grid,
    describe_unit,
    grid_over,
    unit_by_name,
    unit_for,
)
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import Point


@pytest.mark.parametrize(
    "unit, names",
    [
        (
            PIXELS,
            "claude-sonnet-5 anthropic/claude-opus-4.8 "
            "us.anthropic.claude-sonnet-4-6-v1:0 gpt-5.4-mini gpt-4o "
            "openai/gpt-5.5 chatgpt-4o-latest o3 o4-mini  computer-use-preview qwen2.5vl:7b "
            "qwen2-vl qwen/qwen2.5-vl-72b-instruct hf.co/bytedance/UI-TARS-1.5-7B:q4 Holo1.5-7B mimo-vl-7b "
            "OpenCUA-32B fara-7b gta1-7b gelato-30b llava:latest kimi-k3",
        ),
        (
            THOUSANDTHS,
            "gemini-3.6-flash google/gemini-2.5-pro gemma4:12b qwen3-vl:8b qwen/qwen3.6-plus qwen-3.8 "
            "ui-tars-2 ui-tars-1.5-72b doubao-1.5-ui-tars gui-owl-1.5 glm-4.6v internvl3 "
            "doubao-seed-2 holo2-8b",
        ),
        (None, "unknown someone/vision:q4 llama4:scout mistral-small3.1 solo3 gpt"),
    ],
)
def test_a_family_is_known_by_its_name_through_gateways_too(unit: Optional[str], names: str) -> None:
    assert {name: unit_by_name(name) for name in names.split()} == dict.fromkeys(names.split(), unit)


@pytest.mark.parametrize(
    "value, model, unit, why",
    [
        ("", "gpt-5.5", PIXELS, "by the model's name"),
        ("", "unknown", THOUSANDTHS, ASSUMED),
        ("PIXELS", "unknown", PIXELS, "PEEKABOO_AI_GRID"),
        ("1000", "gpt-5.5", THOUSANDTHS, "PEEKABOO_AI_GRID"),
    ],
)
def test_the_variable_the_name_and_an_assumption_set_the_unit(
    environment: Callable[..., None], value: str, model: str, unit: str, why: str
) -> None:
    environment(PEEKABOO_AI_GRID=value)
    assert unit_for(model) == unit and describe_unit(model).endswith(f"({why})")


def test_another_value_of_the_variable_is_an_error(environment: Callable[..., None]) -> None:
    environment(PEEKABOO_AI_GRID="999")
    with pytest.raises(PeekabooError) as caught:
        unit_for("gpt-5.5")
    assert caught.value.code is ErrorCode.INVALID_ARGUMENT and "pixels or 1000" in caught.value.hint


def test_the_prompt_names_both_axes_and_one_unit_only() -> None:
    pixels, thousandths = grid_over(PIXELS, 1440, 900), grid_over(THOUSANDTHS, 1440, 900)
    assert pixels.describe() == (
        "under a grid 1440 wide and 900 high (the pixels of this image): x goes from 0 at the left edge to "
        "1439 at the right edge, y goes from 0 at the top edge to 899 at the bottom edge"
    )
    assert "1000 wide and 1000 high" in thousandths.describe() and "x goes from 0" in thousandths.describe()
    assert "pixel" not in thousandths.describe() and "1440" not in thousandths.describe()


@pytest.mark.parametrize(
    "grid, x, y, problem",
    [
        (grid_over(PIXELS, 800, 600), 0, 0, ""),
        (grid_over(PIXELS, 800, 600), 799.9, 599, ""),
        (grid_over(PIXELS, 800, 600), 800, 0, "x is 800, outside the grid of 800x600"),
        (grid_over(PIXELS, 800, 600), 0, 600, "y is 600, outside"),
        (grid_over(PIXELS, 800, 600), -1, 0, "x is -1, outside"),
        (grid_over(PIXELS, 800, 600), 0.5, 0.25, "look like fractions"),
        (grid_over(PIXELS, 800, 600), 0.5, 250.5, ""),
        (grid_over(PIXELS, 1000, 1000), 1000, 0, "x is 1000, outside"),
        (grid_over(THOUSANDTHS, 554, 388), 1000, 1000, ""),
        (grid_over(THOUSANDTHS, 554, 388), 1000.5, 0, "x is 1000.5, outside the grid of 1000x1000"),
        (grid_over(THOUSANDTHS, 2000, 2000), 1400, 0, "x is 1400, outside"),
        (grid_over(THOUSANDTHS, 554, 388), 0.5, 0.25, "look like fractions"),
        (grid_over(THOUSANDTHS, 0, 0), 5, 5, "there is no image to click in"),
    ],
)
def test_a_place_outside_the_grid_is_refused(grid: Grid, x: float, y: float, problem: str) -> None:
    assert problem in grid.problem_of(x, y) if problem else grid.problem_of(x, y) == ""


@pytest.mark.parametrize(
    "grid, place, size, pixel",
    [
        (grid_over(PIXELS, 1440, 900), Point(720, 450), (2880, 1800), Point(1440, 900)),
        (grid_over(PIXELS, 1092, 756), Point(546, 378), (554, 388), Point(277, 194)),
        (grid_over(PIXELS, 800, 600), Point(799.9, 0.5), (800, 600), Point(799, 0.5)),
        (grid_over(THOUSANDTHS, 800, 600), Point(500, 500), (800, 600), Point(400, 300)),
        (grid_over(THOUSANDTHS, 800, 600), Point(1000, 1000), (800, 600), Point(799, 599)),
    ],
)
def test_a_place_is_mapped_to_the_windows_pixels_and_stays_inside(
    grid: Grid, place: Point, size: tuple[int, int], pixel: Point
) -> None:
    assert grid.pixel_of(place, *size) == pixel

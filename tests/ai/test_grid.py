"""The grid that a model counts in: by its name, in the prompt, and back to pixels of a window."""

from __future__ import annotations

from typing import Any, Callable, Optional

import pytest
from samples import error_of

from peekaboo_min.ai.grid import (
    ASSUMED,
    PIXELS,
    THOUSANDTHS,
    describe_unit,
    grid_over,
    unit_by_name,
    unit_for,
)
from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.core.models import Point


@pytest.mark.parametrize(
    "unit, names",
    [
        (
            PIXELS,
            "claude-sonnet-5 anthropic/claude-opus-4.8 "
            "us.anthropic.claude-sonnet-4-6-v1:0 gpt-5.4-mini gpt-4o "
            "openai/gpt-5.5 chatgpt-4o-latest o3 openrouter/openai/o4-mini computer-use-preview qwen2.5vl:7b "
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
def test_grid_is_known_by_the_models_name_through_gateways_too(unit: Optional[str], names: str) -> None:
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
def test_grid_is_set_by_the_variable_the_name_and_an_assumption(
    environment: Callable[..., None], value: str, model: str, unit: str, why: str
) -> None:
    environment(PEEKABOO_AI_GRID=value)
    assert unit_for(model) == unit and describe_unit(model).endswith(f"({why})")


def test_grid_of_another_value_of_the_variable_is_an_error(environment: Callable[..., None]) -> None:
    environment(PEEKABOO_AI_GRID="999")
    wrong = error_of(unit_for, "gpt-5.5")
    assert wrong.code is ErrorCode.INVALID_ARGUMENT and "pixels or 1000" in wrong.hint


def test_grid_in_the_prompt_names_both_axes_and_one_unit_only() -> None:
    pixels, thousandths = grid_over(PIXELS, 1440, 900), grid_over(THOUSANDTHS, 1440, 900)
    assert pixels.describe() == (
        "under a grid 1440 wide and 900 high (the pixels of this image): x goes from 0 at the left edge to "
        "1439 at the right edge, y goes from 0 at the top edge to 899 at the bottom edge"
    )
    assert "1000 wide and 1000 high" in thousandths.describe() and "x goes from 0" in thousandths.describe()
    assert "pixel" not in thousandths.describe() and "1440" not in thousandths.describe()


FRACTIONS = "look like fractions"


@pytest.mark.parametrize(
    ("unit", "size", "place", "problem"),
    [
        (PIXELS, (800, 600), (799.9, 599), ""),
        (PIXELS, (800, 600), (800, 0), "x is 800, outside the grid of 800x600"),
        (PIXELS, (800, 600), (0, 600), "y is 600, outside the grid of 800x600"),
        (PIXELS, (800, 600), (-1, 0), "x is -1, outside the grid of 800x600"),
        (PIXELS, (800, 600), (0, 0), ""),
        (PIXELS, (800, 600), (0.5, 0), FRACTIONS),
        (PIXELS, (800, 600), (0.5, 250.5), ""),
        (PIXELS, (800, 600), (1, 0.5), ""),
        (THOUSANDTHS, (554, 388), (1000, 1000), ""),
        (THOUSANDTHS, (554, 388), (1000.5, 0), "x is 1000.5, outside the grid of 1000x1000"),
    ],
)
def test_grid_refuses_a_place_outside(
    unit: str, size: tuple[int, int], place: tuple[float, float], problem: str
) -> None:
    told = grid_over(unit, *size).problem_of(*place)
    assert problem in told and bool(told) is bool(problem)


@pytest.mark.parametrize(
    ("unit", "size", "place", "window", "pixel"),
    [
        (PIXELS, (1092, 756), (546, 378), (554, 388), (277, 194)),
        (PIXELS, (800, 600), (799.9, 0.5), (800, 600), (799, 0.5)),
        (THOUSANDTHS, (800, 600), (500, 500), (800, 600), (400, 300)),
        (THOUSANDTHS, (800, 600), (1000, 1000), (800, 600), (799, 599)),
    ],
)
def test_grid_maps_a_place_to_the_windows_pixels_and_inside(
    unit: str, size: Any, place: Any, window: Any, pixel: Any
) -> None:
    assert grid_over(unit, *size).pixel_of(Point(*place), *window) == Point(*pixel)

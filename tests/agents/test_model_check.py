"""Where clicks land: five conventions of models, by their names and measured, over windows of many sizes."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from fake_ai import CONVENTIONS, FakeAI, script
from landing import NAMED, SQUARES, UNKNOWN, WINDOWS, miss, pointing, vendors
from worlds import PATIENCE_S

from peekaboo_min.agents.model_check import _IMAGE, choose_grid, measure_grid, unit_of
from peekaboo_min.agents.run import AgentStop
from peekaboo_min.agents.vision_agent import run_vision_agent
from peekaboo_min.ai.client import ModelChoice
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import ImageInfo, Point
from peekaboo_min.core.settings import settings
from peekaboo_min.system.files import state_folder
from peekaboo_min.system.images import whole_image

TARGETS = [(0.97, 0.96), (0.21, 0.43)]


@pytest.fixture
def ai(tmp_path: Path) -> Iterator[FakeAI]:
    """Vendors with every model of the table, in this very process."""
    with vendors(tmp_path) as fake:
        yield fake


def check_every_click_lands(
    ai: FakeAI, convention: str, choice: ModelChoice, windows: Sequence[tuple[int, int]] = WINDOWS
) -> None:
    target = [TARGETS[0]]
    ai.brain = pointing(convention, target)
    for width, height in windows:
        for scale in (1, 2):
            for target[0] in TARGETS:
                off, most = miss(choice, (width * scale, height * scale), target[0])
                assert off <= most, (convention, choice.name, width, height, scale, target[0])


@pytest.mark.parametrize(
    "convention, choice",
    [(convention, choice) for convention, choices in NAMED.items() for choice in choices],
    ids=lambda value: getattr(value, "name", value),
)
def test_every_click_of_a_model_that_the_table_names_lands(
    ai: FakeAI, convention: str, choice: ModelChoice
) -> None:
    check_every_click_lands(ai, convention, choice)
    assert not (state_folder() / "model_grids.json").exists(), "nothing had to be measured"


@pytest.mark.parametrize("convention", [*NAMED, "shares"])
def test_every_click_of_an_unknown_model_lands_after_one_check(ai: FakeAI, convention: str) -> None:
    # what follows from the grid is tried with the models of the table
    check_every_click_lands(ai, convention, UNKNOWN, WINDOWS[1:2])
    checks = [each for each in ai.questions if "square with the number" in each.prompt]
    assert len(checks) == 2 and ai.questions[:2] == checks


def test_a_model_that_fits_no_grid_does_not_act_unless_the_variable_is_set(
    ai: FakeAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    ai.brain = pointing("1.3x", [(0.5, 0.5)])
    with pytest.raises(AgentStop) as caught:
        choose_grid(UNKNOWN, PATIENCE_S)
    assert caught.value.status == "undecided" and "PEEKABOO_AI_GRID" in caught.value.hint
    monkeypatch.setenv("PEEKABOO_AI_GRID", "1000")
    settings.cache_clear()
    assert choose_grid(UNKNOWN, PATIENCE_S).source == "variable"


def test_the_variable_counts_more_than_a_kept_check_and_that_more_than_the_name(
    ai: FakeAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    (choice, _) = NAMED["pixels"]
    assert (choose_grid(choice, PATIENCE_S).unit, choose_grid(choice, PATIENCE_S).source) == (
        "pixels",
        "name",
    )
    ai.brain = pointing("thousandths", [(0.5, 0.5)])
    assert measure_grid(choice, PATIENCE_S).unit == "1000"
    assert (choose_grid(choice, PATIENCE_S).unit, choose_grid(choice, PATIENCE_S).source) == (
        "1000",
        "measured",
    )
    monkeypatch.setenv("PEEKABOO_AI_GRID", "pixels")
    settings.cache_clear()
    assert choose_grid(choice, PATIENCE_S).unit == "pixels"
    (kept,) = json.loads((state_folder() / "model_grids.json").read_text("utf-8"))
    assert kept == f"openai/gpt-5.4-mini at {ai.openai_base_url}"


def test_another_address_is_measured_again_and_a_damaged_file_is_no_obstacle(
    ai: FakeAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    ai.brain = pointing("pixels", [(0.5, 0.5)])
    key = f"{UNKNOWN.name} at {ai.openai_base_url}"
    for text in ("", "[1]", '{"a": ', json.dumps({key: ["1"]}), json.dumps({key: "2"})):
        (state_folder() / "model_grids.json").write_text(text, "utf-8")
        assert choose_grid(UNKNOWN, PATIENCE_S).unit == "pixels"
    asked = len(ai.questions)
    monkeypatch.setenv("OPENAI_BASE_URL", ai.openai_base_url.replace("//", "//someone:secret@"))
    settings.cache_clear()
    assert len(ai.questions) == asked
    with_password = settings().openai_base_url
    assert "secret" in with_password and choose_grid(UNKNOWN, PATIENCE_S).unit == "pixels"
    assert len(ai.questions) == asked, "the same address"
    monkeypatch.setenv("OPENAI_BASE_URL", ai.openai_base_url.replace("127.0.0.1", "localhost"))
    settings.cache_clear()
    choose_grid(UNKNOWN, PATIENCE_S)
    assert len(ai.questions) == asked + 2


def test_a_later_undecided_check_forgets_the_kept_one(ai: FakeAI) -> None:
    ai.brain = pointing("pixels", [(0.5, 0.5)])
    assert measure_grid(UNKNOWN, PATIENCE_S).unit == "pixels"
    ai.brain = script(["There are two squares."])
    found = measure_grid(UNKNOWN, PATIENCE_S)
    assert found.unit is None and "no JSON object" in found.describe()
    assert json.loads((state_folder() / "model_grids.json").read_text("utf-8")) == {}


@pytest.mark.parametrize("noise, least_right", [(0.0, 1.0), (0.02, 0.95), (0.05, 0.0)])
def test_noise_leads_to_no_answer_and_never_to_a_wrong_one(noise: float, least_right: float) -> None:
    dice = random.Random(7)
    units = {"pixels": (1344, 672), "1000": (1000, 1000), "1": (1, 1)}
    for unit, (width, height) in units.items():
        found = []
        for _ in range(4000):
            places = {
                digit: Point((x + dice.gauss(0, noise)) * width, (y + dice.gauss(0, noise)) * height)
                for digit, (x, y) in SQUARES.items()
            }
            found.append(unit_of(places, 1344, 672))
        assert set(found) <= {unit, None}
        assert found.count(unit) >= least_right * len(found)


def test_the_check_image_shows_two_different_numbers_where_they_are_expected() -> None:
    width, height = 1344, 672
    assert whole_image(_IMAGE) == ImageInfo("png", width, height)
    at = _IMAGE.index(b"IDAT")
    packed = zlib.decompress(_IMAGE[at + 4 : at + 4 + int.from_bytes(_IMAGE[at - 4 : at], "big")])
    lines = [packed[y * (width // 8 + 1) + 1 : (y + 1) * (width // 8 + 1)] for y in range(height)]
    rows = [f"{int.from_bytes(line, 'big'):0{width}b}" for line in lines]
    inks = set()
    for x, y in SQUARES.values():
        left, top = round(x * width) - 32, round(y * height) - 32
        square = tuple(row[left : left + 64] for row in rows[top : top + 64])
        assert {square[0], square[-1]} == {"0" * 64}
        assert rows[top - 1][left] == rows[top][left - 1] == rows[top + 64][left] == "1"
        inks.add(square)
        assert "1" in "".join(square)
    assert len(inks) == 2
    outside = sum(row.count("0") for row in rows) - sum("".join(ink).count("0") for ink in inks)
    assert outside == 0, "nothing else is in the image"


# the command


def test_the_command_checks_a_model_and_compares_with_its_name(
    ai: FakeAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    ai.brain = pointing("thousandths", [(0.5, 0.5)])
    result = run_vision_agent(check_model=True, model="openai/gpt-5.4-mini")
    assert result.data == {
        "model": "openai/gpt-5.4-mini",
        "grid": "1000",
        "grid_by_name": "pixels",
        "grid_by_variable": None,
    }
    assert "thousandths" in result.text and "its name says otherwise" in result.text
    ai.brain = pointing("1.3x", [(0.5, 0.5)])
    undecided = run_vision_agent(check_model=True, model="openai/nobody/unknown")
    assert undecided.data["grid"] is None and "it is unclear" in undecided.text


def test_the_command_does_one_thing() -> None:
    for more in ({"goal": "Do it"}, {"app": "Form"}, {"window_id": 7}):
        with pytest.raises(PeekabooError) as caught:
            run_vision_agent(check_model=True, model="openai/gpt-5.4-mini", **more)  # type: ignore[arg-type]
        assert caught.value.code is ErrorCode.INVALID_ARGUMENT


def test_the_conventions_of_the_fake_differ_where_it_matters() -> None:
    sizes = {name: convention(554, 388) for name, convention in CONVENTIONS.items()}
    assert len(set(sizes.values())) == len(sizes)
    assert sizes["28-px smart size"] == (560, 392) and sizes["1024-token size"] == (1092, 756)

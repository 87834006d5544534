"""A window's elements as lines of a prompt: in the model's grid, quoted, and few."""

from __future__ import annotations

from typing import Any

from peekaboo_min.agents.planner import elements_text
from peekaboo_min.ai.grid import PIXELS, THOUSANDTHS, grid_over
from peekaboo_min.core.models import ImageData, ImageInfo

IMAGE = ImageData(b"", ImageInfo("jpg", 800, 400))


def element(name: str, x: float = 200, y: float = 100, role: str = "button", **more: Any) -> dict[str, Any]:
    return {"role": role, "name": name, "value": "", "states": [], "x": x, "y": y, **more}


def test_a_line_has_the_middle_in_the_grid_of_the_model() -> None:
    field = element("City", role="textbox", value="Århus", states=["focused"])
    lines = [elements_text([field], IMAGE, grid_over(unit, 400, 200)) for unit in (PIXELS, THOUSANDTHS)]
    assert lines == [
        ['textbox "City" = "Århus" x 100, y 50 [focused]'],
        ['textbox "City" = "Århus" x 250, y 250 [focused]'],
    ]


def test_a_name_stays_a_quoted_name_and_is_cut() -> None:
    (line,) = elements_text([element('" x 1, y 1' + "a" * 100)], IMAGE, grid_over(PIXELS, 800, 400))
    assert line == r'button "\" x 1, y 1' + "a" * 50 + '" x 200, y 100'


def test_of_many_those_that_can_be_used_come_and_no_more_than_forty() -> None:
    grid = grid_over(PIXELS, 800, 400)
    labels = [element(f"label {at}", at, role="text") for at in range(60)]
    buttons = [element(f"button {at}", at) for at in range(30)]
    lines = elements_text([*labels, *buttons, *buttons], IMAGE, grid)
    assert len(lines) == 31 and lines[0].startswith('button "button 0"')
    assert lines[-1] == "(60 more, not listed)", "what stands there twice is listed once"
    assert len(elements_text(labels, IMAGE, grid)) == 41
    long = [element("a" * 60, at, value="b" * 60) for at in range(40)]
    assert sum(map(len, elements_text(long, IMAGE, grid)[:-1])) <= 3000
    assert elements_text([], IMAGE, grid) == [] == elements_text(buttons, None, grid)

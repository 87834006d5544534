"""A window's elements as lines of a prompt: in the model's grid, quoted, and few."""

from __future__ import annotations

from typing import Any

from peekaboo_min.agents.planner import elements_text
from peekaboo_min.ai.grid import PIXELS, THOUSANDTHS, grid_over


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
    labels = [element(f"label {at}", at, role="text") for at in range(60)]
    buttons = [element(f"button {at}", at) for at in range(30)]
    lines = lines_of([*labels, *buttons])
    assert len(lines) == 31 and lines[0].startswith('button "button 0"')
    assert lines[-1] == "(60 more, not listed)"
    assert len(lines_of(labels)) == 41 and len(lines_of(buttons)) == 30

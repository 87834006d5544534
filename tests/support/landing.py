"""Where the agent's clicks land: conventions of models over windows of many sizes, through the real planner.

    PYTHONPATH=.:tests/support python tests/support/landing.py [TARGETS]

prints a table: of so many random targets, how many clicks land within one grid cell plus a pixel.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable

import pytest
from fake_ai import FakeAI, Request, picture, pointer
from worlds import PATIENCE_S

from peekaboo_min.agents.model_check import choose_grid
from peekaboo_min.agents.planner import Planner
from peekaboo_min.agents.run import AgentStep, AgentStop
from peekaboo_min.ai.client import ModelChoice
from peekaboo_min.core.models import ImageData, ImageInfo, Rect, Window
from peekaboo_min.core.settings import settings
from peekaboo_min.system.images import model_size

SQUARES = {"1": (0.83, 0.22), "2": (0.31, 0.86)}
"""Where the check's squares are."""
UNKNOWN = ModelChoice("openai", "nobody/unknown")
NAMED = {
    "pixels": [ModelChoice("openai", "gpt-5.4-mini"), ModelChoice("anthropic", "claude-sonnet-5")],
    "thousandths": [
        ModelChoice("gemini", "gemini-3.6-flash"),
        ModelChoice("openai", "google/gemini-3.6-flash"),
    ],
    "28-px smart size": [ModelChoice("openai", "hcompany/holo1.5-7b")],
    "1024-token size": [ModelChoice("ollama", "qwen2.5vl:7b")],
}
WINDOWS = [(554, 388), (800, 600), (1100, 740), (1280, 800), (500, 900)]


@contextmanager
def vendors(folder: Path) -> Iterator[FakeAI]:
    """Vendors with every model of this file, in this very process; nothing was measured yet."""
    choices = [UNKNOWN, *(choice for named in NAMED.values() for choice in named)]
    with FakeAI({choice.name: True for choice in choices}) as fake, pytest.MonkeyPatch.context() as patch:
        for provider in ("ollama", "openai", "gemini", "anthropic"):
            for name, value in fake.env(provider, "x").items():
                patch.setenv(name, value)
        patch.setenv("TMPDIR", str(folder))
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        patch.delenv("PEEKABOO_AI_GRID", raising=False)
        settings.cache_clear()
        yield fake
    settings.cache_clear()


def pointing(convention: str, target: list[tuple[float, float]]) -> Callable[[Request], Any]:
    """A model that knows where the squares of the check and the target are."""

    def truth(request: Request) -> tuple[float, float]:
        found = re.search(r"square with the number (\d)", request.prompt)
        return SQUARES[found[1]] if found else target[0]

    return pointer(convention, truth)


def miss(choice: ModelChoice, size: tuple[int, int], target: tuple[float, float]) -> tuple[float, float]:
    """How far from the target the click lands, in pixels of the window's screenshot, and how far it may.

    Raises AgentStop where nothing is clicked.
    """
    found = choose_grid(choice, PATIENCE_S)
    assert found.unit is not None
    step = AgentStep(1, window=Window(7, "Form", 1, "A title", Rect(0, 0, *size)))
    width, height = model_size(ImageInfo("png", *size))  # as take_window_screenshot has it
    step.image = ImageData(picture("png", width, height), ImageInfo("png", width, height))
    planner = Planner("Click the target", choice, found.unit, needs_confidence=False)
    action = planner.decide(step, [], 5, time.monotonic() + PATIENCE_S)
    assert action.place is not None and step.grid is not None
    pixel = step.grid.pixel_of(action.place, width, height)
    off = max(abs(pixel.x - target[0] * width), abs(pixel.y - target[1] * height))
    return off, max(width / step.grid.width, height / step.grid.height) + 1


def outcomes(ai: FakeAI, convention: str, choice: ModelChoice, size: tuple[int, int], targets: int) -> str:
    """`LANDED/TARGETS`, with what was refused and what was silently wrong where there is any."""
    dice = random.Random(7)
    target = [(0.0, 0.0)]
    ai.brain = pointing(convention, target)
    found: Counter[str] = Counter()
    for _ in range(targets):
        target[0] = (dice.uniform(0.02, 0.98), dice.uniform(0.02, 0.98))
        try:
            off, most = miss(choice, size, target[0])
            found["landed" if off <= most else "wrong"] += 1
        except AgentStop:
            found["refused"] += 1
    others = "".join(f", {found[what]} {what}" for what in ("refused", "wrong") if found[what])
    return f"{found['landed']}/{targets}{others}"


def main() -> int:
    targets = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(
        "| convention | model |", " | ".join(f"{width}x{height}, 1x and 2x" for width, height in WINDOWS), "|"
    )
    print(f"|{'---|' * (len(WINDOWS) + 2)}")
    rows = [(convention, choice) for convention, choices in NAMED.items() for choice in choices]
    rows += [(convention, UNKNOWN) for convention in (*NAMED, "1.3x")]
    for convention, choice in rows:
        with TemporaryDirectory() as folder, vendors(Path(folder)) as ai:
            cells = [
                " · ".join(
                    outcomes(ai, convention, choice, (width * scale, height * scale), targets)
                    for scale in (1, 2)
                )
                for width, height in WINDOWS
            ]
        print(f"| {convention} | {choice.name} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Make the README's film: a run of the agent in the demo form, with a scripted model; its clicks are ringed.

  PYTHONPATH=.:tests/support .venv/bin/python scripts/film.py scripts/film.gif
It needs the programs that scripts/test.sh installs. Screenshots, positions and effects come from the run's
folder.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from fake_ai import FakeAI, script
from worlds import Form, clean_environment, x_server

GOAL = "Sign the book as Zoë Müller, and show the name"
SIZE = (600, 520)
FRAME_DELAY = "260"  # hundredths of a second


def film(target: Path) -> None:
    with tempfile.TemporaryDirectory() as name, x_server() as display, FakeAI() as ai:
        folder, form = Path(name), Form(display, Path(name) / "report.jsonl")
        try:
            ai.brain = script(replies(form))
            argv = ["agent", "--app", "Form", "--goal", GOAL, "--run-folder", str(folder / "run")]
            environment = clean_environment(folder, DISPLAY=display, **ai.env("openai", "gpt-5.4-mini"))
            subprocess.run([sys.executable, "-m", "peekaboo_min", *argv], env=environment, check=True)
            signed = form.wait_for_event("sign")
        finally:
            form.close()
        steps = [json.loads(path.read_text()) for path in sorted((folder / "run").glob("step_*.json"))]
        first = "The model gets a screenshot of the window and replies with one action."
        frames = [frame(folder, steps[0], first, "")]
        for step in steps[:-1]:
            frames.append(frame(folder, step, f"{step['number']}. {step['action']['why']}", step["effect"]))
        received = json.dumps({key: value for key, value in signed.items() if value}, ensure_ascii=False)
        frames.append(
            frame(folder, steps[-1], "The model reports that it is done. The form received:", received)
        )
        small = ["-fuzz", "4%", "-layers", "optimize", "+dither", "-colors", "32"]
        subprocess.run(["convert", "-delay", FRAME_DELAY, "-loop", "0", *frames, *small, target], check=True)


def replies(form: Form) -> list[dict[str, Any]]:
    """Return the scripted model's replies; it knows the positions from the form itself."""

    def click(widget: str, why: str) -> dict[str, Any]:
        x, y = form.centre(widget)
        return {"action": "click", "x": x, "y": y, "why": why}

    return [
        {"action": "type", "text": "Zoë Müller", "why": "Type the name into the field that has the caret"},
        click("agree", "Tick “Show my name to other visitors”"),
        click("sign", "Click “Sign the book”"),
        {"action": "done", "done": True, "why": "the form shows that it is signed"},
    ]


def frame(folder: Path, step: dict[str, Any], caption: str, effect: str) -> Path:
    """Draw one frame: the goal, the step's screenshot with its click ringed, and the effect."""
    target, at = folder / f"frame{len(list(folder.glob('frame*'))):02d}.png", step["pixel_action"]["values"]
    ring = [f"circle {at['x']},{at['y']} {at['x'] + 17},{at['y']}"] if "x" in at and effect else []
    width, height = SIZE
    subprocess.run(
        ["convert", folder / "run" / f"step_{step['number']:03d}.jpg",
         *(word for each in ring for word in ("-fill", "none", "-stroke", "#d6232b", "-strokewidth", "4",
                                              "-draw", each)),
         "-background", "#15191c", "-gravity", "center", "-extent", f"{width}x{height}",
         "-stroke", "none", "-font", "DejaVu-Sans", "-pointsize", "15", "-gravity", "northwest",
         "-fill", "#e4e8ea", "-annotate", "+22+12", f"Goal: {GOAL}",
         "-fill", "#98a4aa", "-annotate", "+22+36", "peekaboo-min agent; the model of this film is a script",
         "-fill", "#e4e8ea", "-annotate", f"+22+{height - 56}", caption,
         "-fill", "#7fd0a0", "-annotate", f"+22+{height - 31}", f"→ {effect}" if effect else "",
         target],
        check=True,
    )  # fmt: skip
    return target


if __name__ == "__main__":
    film(Path(sys.argv[1]))

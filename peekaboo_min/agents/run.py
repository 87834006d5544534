"""A run of the vision agent: its steps, what they show, and its folder."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Optional

from .. import __version__
from ..ai.grid import Grid
from ..core.errors import ErrorCode, PeekabooError, file_errors
from ..core.models import ImageData, Point, Rect, Window, as_plain
from ..system.files import asked_path, write_privately
from .actions import Action

NO_SCREENSHOT = "none"  # refused as an id: an empty one would mean the window's last screenshot


class AgentStop(PeekabooError):
    """The run ends here, without its goal; `status` goes into run.json."""

    def __init__(self, status: str, code: ErrorCode, message: str, hint: str = "") -> None:
        super().__init__(code, message, hint)
        self.status = status


@dataclass
class Exchange:
    """A question to the model and its reply. `problem`: why that could not be used; empty when it could."""

    prompt: str
    reply: str = ""
    problem: str = ""


@dataclass
class AgentStep:
    """One step, filled in as it proceeds: what was seen, asked, done, and what came of it.

    window: None when the app shows none. elements: find_elements' answer. grid: over the image, in which the
    model counts. action: as the model gave it. pixel_action: the same with its places as pixels of the image,
    as it is done and shown to people; point: its place on the screen. is_delivered: False where another
    window got it, or it was refused. changed: None where that is not known, or nothing was done.
    changed_rect: in pixels of the image.
    """

    number: int
    window: Optional[Window] = None
    image: Optional[ImageData] = None
    screenshot_id: str = NO_SCREENSHOT
    elements: dict[str, Any] = field(default_factory=dict)
    grid: Optional[Grid] = None
    exchanges: list[Exchange] = field(default_factory=list)
    action: Optional[Action] = None
    pixel_action: Optional[Action] = None
    point: Optional[Point] = None
    effect: str = ""
    is_delivered: bool = True
    changed: Optional[bool] = None
    changed_rect: Optional[Rect] = None
    milliseconds: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def describe_action(self, shows_text: bool = True) -> str:
        """The action for people."""
        return self.pixel_action.describe(shows_text) if self.pixel_action else "no action"

    def as_data(self) -> dict[str, Any]:
        plain = {name: as_plain(value) for name, value in asdict(self).items() if name != "elements"}
        return {**plain, "image": as_plain(self.image.info) if self.image else None}


def doubt_about(steps: Sequence[AgentStep]) -> str:
    """Why a report that the goal is reached is not believed after these steps; empty where it is."""
    acts = [(step, step.action) for step in steps if step.action and step.action.is_act]
    if not acts:
        return ""
    for number, (step, action) in enumerate(acts):
        again = [other for other, its in acts[number + 1 :] if its.kind == action.kind]
        if not any(tried.is_delivered for tried in (step, *again)):
            return f"your action `{action.describe()}` failed: {step.effect}"
    last, action = acts[-1]
    if action.is_last and not last.changed:
        return f"your last action, `{action.describe()}`, was delivered, but {last.effect}"
    has_effect = any(step.changed for step, _ in acts)
    return "" if has_effect else "none of your actions had a visible effect"


@dataclass
class AgentRun:
    """A whole run: what run_vision_agent was asked for, and what came of it."""

    goal: str
    model_used: str
    app: Optional[str] = None
    window_id: Optional[int] = None
    window_title: Optional[str] = None
    max_steps: int = 25
    max_seconds: float = 120.0
    confidence: Optional[float] = None
    dry_run: bool = False
    confirm: bool = False
    deadline: float = math.inf  # monotonic; no question to the model lasts longer
    status: str = "failed"
    """done, not_confirmed, dry_run, limit, unsure, confused, declined, interrupted or failed."""
    message: str = ""
    doubt: str = ""  # about the model's report that the goal is reached, made since its last act
    folder: Optional[Path] = None  # made before the first step; None until then
    steps: list[AgentStep] = field(default_factory=list)
    final: Optional[AgentStep] = None
    """A look at what the last action led to, if it could be had; None where none was needed."""
    started: float = field(default_factory=time.time)
    system_prompt: str = ""
    grid: str = ""  # in which grid the model was asked, and why, as a sentence

    def summary_data(self) -> dict[str, Any]:
        """The command's result."""
        return {
            "status": self.status,
            "steps": len(self.steps),
            "run_folder": str(self.folder) if self.folder else None,
            "report": str(self.folder / "report.html") if self.folder else None,
            "grid": self.grid,
            "seconds": round(time.time() - self.started, 1),
            "tokens_in": sum(step.tokens_in for step in self.steps),
            "tokens_out": sum(step.tokens_out for step in self.steps),
        }

    def as_data(self) -> dict[str, Any]:
        left_out = ("deadline", "folder", "steps", "final")
        own = {name: value for name, value in vars(self).items() if name not in left_out}
        started = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.started))
        return {**own, **self.summary_data(), "started": started, "version": __version__}


def new_run_folder(requested: Optional[str]) -> Path:
    """Make the folder of a run (0700): the one asked for, else `peekaboo-run-TIME` in the working folder.

    Raises FILE_IO_ERROR, also for a folder that is there.
    """
    name = time.strftime("peekaboo-run-%Y%m%dT%H%M%SZ-", time.gmtime()) + os.urandom(3).hex()
    path = asked_path(requested or name)
    with file_errors(path):
        path.mkdir(mode=0o700, parents=True)
    return path


def save(path: Path, data: dict[str, Any], image: Optional[ImageData] = None) -> None:
    """Write `path`.json, and the image beside it. Raises FILE_IO_ERROR."""
    if image:
        write_privately(path.with_suffix(".jpg"), image.data)
    # ASCII: a reply may contain a lone surrogate, which UTF-8 cannot encode
    write_privately(path.with_suffix(".json"), json.dumps(data, indent=2) + "\n")
